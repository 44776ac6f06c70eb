//! What there is: built-in sets, schedulers, version.

use serde_json::{Value, json};
use temponet_formats::builtin;
use temponet_lab::roster;

/// Lists sets and schedulers.
pub fn about() -> Value {
    let sets = builtin::ALL.iter().map(|set| set.name);
    let schedulers = roster::all().into_iter().map(|entry| {
        let (is_slow, is_rule) = (entry.kind.is_slow(), entry.kind.is_rule());
        json!({
            "name": entry.name, "summary": entry.summary, "purpose": entry.purpose, "slow": is_slow, "rule": is_rule,
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "default_set": builtin::DEFAULT,
        "sets": sets.collect::<Vec<_>>(),
        "schedulers": schedulers.collect::<Vec<_>>(),
    })
}
