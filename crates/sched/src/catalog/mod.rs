//! The catalog: every scheduler by name, and the way from a user's `name:option=value` to a scheduler.

mod entries;
mod options;

use temponet_task::Scheduler;
use temponet_wording::did_you_mean;

use crate::proofs::{Facts, unproved};
use crate::schedulers::edf;
use crate::shield::Shield;

pub use entries::ALL;
pub(crate) use options::Options;

/// A scheduler that users can name.
pub struct Entry {
    /// Name that users write.
    pub name: &'static str,
    /// The rule of the scheduler, in one line.
    pub summary: &'static str,
    /// What the scheduler is good for, or what it guarantees, in one line.
    pub purpose: &'static str,
    /// Options: name, default and meaning.
    pub options: &'static [(&'static str, &'static str, &'static str)],
    build: fn(&Options) -> Result<Box<dyn Scheduler>, String>,
    /// Proof that the scheduler with these options meets every deadline, if there is one: the name of the test or
    /// theorem.
    proof: fn(&Facts, &Options) -> Option<String>,
}

impl Entry {
    /// Finds the entry called `name`, without options.
    pub(crate) fn find(name: &str) -> Option<&'static Entry> {
        ALL.iter().find(|entry| entry.name == name)
    }

    /// Returns the proof that the scheduler, with its default options, meets every deadline of the set behind `facts`.
    pub(crate) fn proof(&'static self, facts: &Facts) -> Option<String> {
        (self.proof)(facts, &Options { entry: self, given: Vec::new() })
    }
}

/// The `shield:` prefix, which puts any scheduler behind the shield ([`crate::shield`]). This entry is for listings
/// only.
pub const SHIELD: Entry = Entry {
    name: "shield:NAME",
    summary: "any of these schedulers, overruled where its choice could cost a guaranteed deadline",
    purpose: "no guaranteed deadline is missed: those of all tasks if they fit, else of the most critical ones; impossible jobs make way",
    options: &[],
    build: |_| Err(SHIELD_USE.into()),
    proof: unproved,
};
const SHIELD_USE: &str = "write the name of the scheduler behind it, as in shield:srpt";

/// Global EDF, the baseline of most comparisons.
pub fn global_edf() -> Box<dyn Scheduler> {
    Box::new(edf::edf())
}

const LOOK_AHEAD: &str = "look-ahead";

/// Whether a scheduler of the catalog, named with or without options, has been published by others.
pub fn is_classical(spec: &str) -> bool {
    spec.split(':').all(|word| word != LOOK_AHEAD)
}

/// Reason why a text does not name a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// There is no scheduler of this name; the second text suggests another one.
    #[error("there is no scheduler {0:?}; `temponet schedulers` lists them{1}")]
    Unknown(String, String),
    /// The scheduler does not have the option, or the option cannot take the value.
    #[error("scheduler {0:?}: {1}")]
    Option(String, String),
}

/// Makes the scheduler that `spec` names, such as `edf`, `llf:quantum=500us`, `c-edf:size=4:fit=worst` or
/// `shield:srpt`.
pub fn build(spec: &str) -> Result<Box<dyn Scheduler>, SpecError> {
    match spec.split_once(':').unwrap_or((spec, "")) {
        ("shield", inner) if inner.is_empty() || inner.starts_with("shield") => {
            return Err(SpecError::Option(spec.into(), SHIELD_USE.into()));
        }
        ("shield", inner) => return Ok(Box::new(Shield::new(build(inner)?))),
        _ => {}
    }
    let mut parts = spec.split(':');
    let name = parts.next().unwrap_or_default();
    let entry = Entry::find(name).ok_or_else(|| {
        SpecError::Unknown(name.into(), did_you_mean(name, ALL.iter().map(|entry| entry.name).chain(["shield"])))
    })?;
    let wrong = |message: String| SpecError::Option(spec.into(), message);
    let mut given = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong(format!("{part:?} is not option=value")))?;
        if !entry.options.iter().any(|(known, ..)| *known == key) {
            let known: Vec<&str> = entry.options.iter().map(|(known, ..)| *known).collect();
            let hint = did_you_mean(key, known.iter().copied());
            let known = if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            return Err(wrong(format!("there is no option {key:?}; {known}{hint}")));
        }
        given.push((key, value));
    }
    (entry.build)(&Options { entry, given }).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        build(spec).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_entry_builds_with_its_defaults() {
        for entry in ALL {
            assert!(build(entry.name).is_ok(), "{}", entry.name);
        }
    }

    #[test]
    fn options_are_checked() {
        assert!(build("llf:quantum=500us").is_ok());
        assert!(build("c-edf:size=4:fit=worst").is_ok());
        assert!(error("edff").contains("did you mean \"edf\""));
        assert!(error("EDF").contains("did you mean \"edf\""));
        assert!(error("llf:quntum=1ms").contains("did you mean \"quantum\""));
        assert!(error("llf:quantum=2").contains("2 what?"));
        assert!(error("edf:quantum=1ms").contains("it has none"));
        assert!(error("llf:quantum=0").contains("greater than zero"));
        assert!(error("p-edf:fit=tight").contains("first, best, worst"));
        assert!(error("d-over:k=nan").contains("at least 1"));
        assert!(build("look-ahead:caution=0:capacity=0.9").is_ok());
        assert!(error("look-ahead:caution=1.5").contains("from 0 to 1"));
        assert!(build("shield:llf:quantum=500us").is_ok());
        assert!(error("shield:edff").contains("did you mean \"edf\""));
        for spec in ["shield", "shield:", "shield:shield:edf"] {
            assert!(error(spec).contains("as in shield:srpt"), "{spec}");
        }
    }
}
