//! Every scheduler of the lab by name: the classical ones and, with a model, the learned one.

use std::sync::Arc;

use temponet::{Learned, Model, NetworkError, Options, Temponet};
use temponet_sched::SpecError;
use temponet_task::Scheduler;
use temponet_task::wording::did_you_mean;

/// The learned scheduler, behind its shield.
pub const SHIELDED: &str = "temponet";
/// The network alone.
pub const UNSHIELDED: &str = "temponet-unshielded";
/// Both.
pub const LEARNED: [&str; 2] = [SHIELDED, UNSHIELDED];

/// Whether a name, with or without options, is that of a scheduler that others have published: not the learned one, nor another one of ours.
pub fn is_classical(spec: &str) -> bool {
    !LEARNED.contains(&spec) && temponet_sched::is_classical(spec)
}

/// What names can stand for.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// What the learned scheduler asks.
    pub model: Option<Arc<Model>>,
}

impl Roster {
    /// The classical schedulers only.
    pub fn classical() -> Roster {
        Roster::default()
    }

    /// All names there are, the learned scheduler's first.
    pub fn names(&self) -> Vec<String> {
        let learned = LEARNED.iter().filter(|_| self.model.is_some()).copied();
        learned.chain(temponet_sched::ALL.iter().map(|entry| entry.name)).map(String::from).collect()
    }

    /// Makes the scheduler that a text names, with options.
    pub fn build(&self, spec: &str) -> Result<Box<dyn Scheduler>, SpecError> {
        if !LEARNED.contains(&spec) {
            return temponet_sched::build(spec).map_err(|error| match error {
                // The learned scheduler may be what was meant.
                SpecError::Unknown(name, _) if LEARNED.contains(&name.as_str()) => {
                    SpecError::Option(spec.into(), format!("{name} has no options and needs no other shield"))
                }
                SpecError::Unknown(name, _) => {
                    let hint = did_you_mean(&name, self.names().iter().map(String::as_str).chain(["shield"]));
                    SpecError::Unknown(name, hint)
                }
                error => error,
            });
        }
        let wrong = |why: String| SpecError::Option(spec.into(), why);
        let missing = || wrong("needs a model: --model FILE or --model random:SEED".into());
        let (model, options) = (self.model.clone().ok_or_else(missing)?, Options::default());
        let cannot_run = |error: NetworkError| wrong(error.to_string());
        Ok(match spec {
            SHIELDED => Box::new(Temponet::new(model, options).map_err(cannot_run)?),
            _ => Box::new(Learned::new(model, options).map_err(cannot_run)?),
        })
    }

    /// How results call a scheduler: random weights are never reported as TempoNet's.
    pub fn label(&self, spec: &str) -> String {
        let is_untrained = LEARNED.contains(&spec) && self.model.as_ref().is_some_and(|model| model.is_untrained());
        if is_untrained { format!("{spec} (untrained)") } else { spec.into() }
    }
}
