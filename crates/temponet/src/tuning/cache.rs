//! Choices that have been made, shared between schedulers: many runs of the same system need one simulation.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use temponet_task::System;

use super::choice::Choice;
use crate::Model;

/// Choices by system. Clones share them.
///
/// A choice depends on the model and on the settings, too. Schedulers with another model object or other settings make their own.
#[derive(Clone, Default)]
pub struct Choices {
    made: Arc<Mutex<HashMap<Key, Made>>>,
}

/// Fingerprint of the system, address of the model, and the settings in words.
type Key = (String, usize, String);

/// Number of choices after which they are forgotten, because tasks of a long run may change again and again.
const MOST: usize = 1_024;

/// A choice that has been made or is being made.
#[derive(Clone, Default)]
struct Made {
    choice: Arc<OnceLock<Choice>>,
    /// Keeps the model, so that no other one gets its address.
    _model: Option<Arc<Model>>,
}

impl Choices {
    /// Returns the choice for a system, and makes it if this is the first call for the system. Of several threads that ask at once, one makes it and the
    /// others wait.
    pub(super) fn get_or_make(
        &self,
        system: &System,
        model: Option<&Arc<Model>>,
        settings: &str,
        make: impl FnOnce() -> Choice,
    ) -> Choice {
        let key = (system.fingerprint(), model.map_or(0, |model| Arc::as_ptr(model) as usize), settings.to_string());
        let made = {
            let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MOST {
                all.clear();
            }
            let new = || Made { _model: model.cloned(), ..Made::default() };
            all.entry(key).or_insert_with(new).clone()
        };
        made.choice.get_or_init(make).clone()
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).len();
        out.debug_struct("Choices").field("made", &made).finish()
    }
}
