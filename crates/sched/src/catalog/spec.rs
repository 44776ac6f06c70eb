//! Schedulers as users write them: a name, its options, and the shield in front of it.
//!
//! `llf`, `c-edf:size=4:fit=worst`, `look-ahead:caution=0.2,capacity=0.9`, `shield:srpt`. Options are separated by
//! colons or by commas.

use std::any::Any;

use temponet_task::Scheduler;
use temponet_wording::did_you_mean;

use super::entry::{Entry, Request};
use super::options::Options;
use super::{all, find};
use crate::shield::Shield;

/// Stands for all schedulers in a list of them.
pub(super) const ALL: &str = "all";
/// Puts the scheduler after it behind the shield.
pub(super) const SHIELD: &str = "shield";
const SHIELD_USE: &str = "write the name of the scheduler behind it, as in shield:srpt";

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

/// A scheduler that a user has named.
#[derive(Clone, Debug)]
pub struct Spec<'a> {
    text: &'a str,
    /// The scheduler, behind the shield or not.
    pub entry: &'a Entry,
    /// Whether the scheduler goes behind the shield.
    pub is_shielded: bool,
    options: Options,
}

impl<'a> Spec<'a> {
    /// Reads the text of a user. The names in `own`, which are the caller's alone, win over those of the catalog.
    pub fn parse(text: &'a str, own: &'a [Entry]) -> Result<Spec<'a>, SpecError> {
        let wrong = |why: String| SpecError::Option(text.into(), why);
        let (is_shielded, named) = unshielded(text);
        if is_shielded && (named.is_empty() || unshielded(named).0) {
            return Err(wrong(SHIELD_USE.into()));
        }
        let (entry, options) = look_up(named, own).ok_or_else(|| {
            let name = named.split(':').next().unwrap_or_default();
            let known = all().into_iter().chain(own).map(|entry| &*entry.name);
            SpecError::Unknown(name.into(), did_you_mean(name, known.chain([SHIELD])))
        })?;
        if let Some(why) = entry.kind.why_unshielded(&entry.name).filter(|_| is_shielded) {
            return Err(wrong(why));
        }
        Ok(Spec { text, entry, is_shielded, options: Options::parse(entry, options).map_err(wrong)? })
    }

    /// Returns the entry that a text names, whatever its options are; none if there is no such scheduler.
    pub fn entry_of(text: &str, own: &'a [Entry]) -> Option<&'a Entry> {
        look_up(unshielded(text).1, own).map(|(entry, _)| entry)
    }

    /// Makes the scheduler. `context` is what the caller has for its entries, see [`Request::context`].
    pub fn build(&self, context: &dyn Any) -> Result<Box<dyn Scheduler>, SpecError> {
        let request = Request { options: &self.options, is_shielded: self.is_shielded, context };
        let scheduler = self.entry.build(&request).map_err(|why| SpecError::Option(self.text.into(), why))?;
        Ok(if self.is_shielded { Box::new(Shield::new(scheduler)) } else { scheduler })
    }
}

/// Takes the shield off a text. Returns whether there was one, and what is left.
fn unshielded(text: &str) -> (bool, &str) {
    match text.split_once(':').unwrap_or((text, "")) {
        (SHIELD, inner) => (true, inner),
        _ => (false, text),
    }
}

/// Finds the entry of a name with options, and returns it with the text of the options.
fn look_up<'a, 'b>(named: &'b str, own: &'a [Entry]) -> Option<(&'a Entry, &'b str)> {
    // The caller may call its schedulers what it likes, so the whole text can be a name.
    if let Some(entry) = own.iter().find(|entry| entry.name == named) {
        return Some((entry, ""));
    }
    // A colon without an option after it is a mistake, which reading the options tells.
    let (name, options) =
        named.split_once(':').map_or((named, ""), |(name, rest)| (name, if rest.is_empty() { ":" } else { rest }));
    own.iter().find(|entry| entry.name == name).or_else(|| find(name)).map(|entry| (entry, options))
}
