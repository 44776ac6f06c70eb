//! The catalog: every scheduler by name, with what it is, what it needs, its options, what proves it, and how it is
//! built.
//!
//! It is one list for the whole process. It begins with the schedulers of this crate; others add theirs with
//! [`register`] before they use it: the lab the learned one, a program its own. Commands, tables, documentation and
//! Python read this list and no other. Whoever has to tell schedulers apart asks for the [`Kind`] or the [`Mark`] of
//! an entry; names are for users.
//!
//! An entry stays for good, because schedulers are built from it in every thread. A scheduler of a single call, as
//! Python passes one, is an entry that the caller keeps instead, see [`Spec::parse`].

mod entries;
mod entry;
mod needs;
mod options;
mod spec;

use std::sync::{LazyLock, PoisonError, RwLock};

use temponet_task::Scheduler;

use crate::schedulers::edf;

pub use entry::{Entry, Kind, Mark, Request};
pub use needs::Need;
pub use options::{OptionHelp, Options};
pub use spec::{Spec, SpecError};

/// All entries, in the order in which they were registered.
static ENTRIES: LazyLock<RwLock<Vec<&'static Entry>>> =
    LazyLock::new(|| RwLock::new(entries::classical().into_iter().map(leaked).collect()));

fn leaked(entry: Entry) -> &'static Entry {
    Box::leak(Box::new(entry))
}

/// Reason why an entry cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Another scheduler has the name.
    #[error("there is a scheduler {0:?} already")]
    Taken(String),
    /// The name could not be written where schedulers are named.
    #[error(
        "{0:?} cannot be the name of a scheduler: it must not be empty, `all` or `shield`, nor contain spaces, commas, colons or equals signs"
    )]
    Name(String),
}

/// Adds a scheduler to the catalog, for every thread and for good.
pub fn register(entry: Entry) -> Result<(), RegisterError> {
    let name = entry.name.to_string();
    let is_special = |letter: char| letter.is_whitespace() || ",:=".contains(letter);
    if name.is_empty() || name.contains(is_special) || [spec::ALL, spec::SHIELD].contains(&name.as_str()) {
        return Err(RegisterError::Name(name));
    }
    let mut entries = ENTRIES.write().unwrap_or_else(PoisonError::into_inner);
    if entries.iter().any(|known| known.name == entry.name) {
        return Err(RegisterError::Taken(name));
    }
    entries.push(leaked(entry));
    Ok(())
}

/// Returns all entries in the order of lists: the learned scheduler and what is built on simulation first, those that
/// search last.
pub fn all() -> Vec<&'static Entry> {
    let mut entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner).clone();
    entries.sort_by_key(|entry| entry.kind.shelf());
    entries
}

/// Finds the entry called `name`, without options.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.read().unwrap_or_else(PoisonError::into_inner).iter().find(|entry| entry.name == name).copied()
}

/// Whether the scheduler called `name`, without options, has this mark.
pub fn is_marked(name: &str, mark: Mark) -> bool {
    find(name).is_some_and(|entry| entry.mark == Some(mark))
}

/// The `shield:` prefix, which puts a scheduler behind the shield ([`crate::shield`]): name, summary and purpose, for
/// lists.
pub const SHIELD_PREFIX: (&str, &str, &str) = (
    "shield:NAME",
    "any of these schedulers, overruled where its choice could cost a guaranteed deadline",
    "no guaranteed deadline is missed: those of all tasks if they fit, else of the most critical ones; impossible jobs make way",
);

/// Makes the scheduler that `spec` names, such as `edf`, `llf:quantum=500us`, `c-edf:size=4:fit=worst` or
/// `shield:srpt`.
pub fn build(spec: &str) -> Result<Box<dyn Scheduler>, SpecError> {
    Spec::parse(spec, &[])?.build(&())
}

/// Global EDF, the baseline of most comparisons.
pub fn global_edf() -> Box<dyn Scheduler> {
    Box::new(edf::edf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        build(spec).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_entry_builds_with_its_defaults_also_written_out() {
        for entry in all() {
            assert!(build(&entry.name).is_ok(), "{}", entry.name);
            // A default of several words describes a value.
            for (option, default, _) in entry.options.iter().filter(|(_, default, _)| !default.contains(' ')) {
                let spec = format!("{}:{option}={default}", entry.name);
                assert_eq!(error(&spec), "", "{spec}");
            }
        }
    }

    #[test]
    fn a_mark_is_that_of_one_scheduler() {
        for mark in [Mark::Baseline, Mark::CriticalFirst, Mark::ValueFirst, Mark::DueDatesFirst] {
            assert_eq!(all().iter().filter(|entry| entry.mark == Some(mark)).count(), 1, "{mark:?}");
        }
        assert!(is_marked("edf", Mark::Baseline) && !is_marked("edf", Mark::ValueFirst));
    }

    #[test]
    fn options_are_checked() {
        assert!(build("llf:quantum=500us").is_ok());
        assert!(build("c-edf:size=4:fit=worst").is_ok());
        assert!(build("c-edf:size=4,fit=worst").is_ok(), "both spellings");
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

    #[test]
    fn a_registered_scheduler_is_found_and_built_and_its_name_is_taken() {
        let own = |name: &'static str| Entry::new(name, "a test's own", "this test", |_| Ok(global_edf()));
        register(own("tests-own").kind(Kind::User)).unwrap();
        assert_eq!(find("tests-own").map(|entry| entry.kind), Some(Kind::User));
        assert!(build("shield:tests-own").is_ok() && error("tests-owm").contains("did you mean \"tests-own\""));
        assert_eq!(register(own("tests-own")), Err(RegisterError::Taken("tests-own".into())));
        for name in ["", "all", "shield", "a b", "a:b", "a,b", "a=b"] {
            assert_eq!(register(own(name)), Err(RegisterError::Name(name.into())));
        }
    }
}
