//! Choices that have been made, shared between schedulers: many runs of the same system need one simulation.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use temponet_task::{Mode, System};

use super::Settings;
use super::choice::Choice;
use crate::{Model, Options};

/// Choices by system. Clones share them.
///
/// A choice depends on the model and on the settings, too. Schedulers with another model object or other settings make
/// their own.
#[derive(Clone, Default)]
pub struct Choices {
    made: Arc<Mutex<ByKey>>,
    /// Modes that are to be expected, by the fingerprint of their system.
    foreseen: Arc<Mutex<HashMap<String, Vec<Mode>>>>,
}

/// Choices by what they are made for, and then by how they are made.
type ByKey = HashMap<Key, Vec<(How, Made)>>;

/// What a choice is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Fingerprint of the system.
    system: String,
    /// Fingerprint of the system that the candidates are told of, if it is another one.
    told: Option<String>,
    /// Modes that are to be expected.
    modes: String,
    /// Address of the model; zero without one.
    model: usize,
}

/// How a choice is made: the settings of the simulation, and the options of the network if there is one.
pub(super) type How = (Settings, Option<Options>);

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
    /// Makes choices on a system with modes in mind that end a guarantee of every deadline
    /// ([`super::choose_with_modes`]). Schedulers do not see modes coming, but whoever describes them wants them
    /// counted.
    pub fn foresee(&self, system: &System, modes: &[Mode]) {
        let mut foreseen = self.foreseen.lock().unwrap_or_else(PoisonError::into_inner);
        if !modes.is_empty() {
            foreseen.insert(system.fingerprint(), modes.to_vec());
        } else if !foreseen.is_empty() {
            foreseen.remove(&system.fingerprint());
        }
    }

    /// Modes that are to be expected on a system.
    pub(super) fn foreseen(&self, system: &System) -> Vec<Mode> {
        let foreseen = self.foreseen.lock().unwrap_or_else(PoisonError::into_inner);
        if foreseen.is_empty() { Vec::new() } else { foreseen.get(&system.fingerprint()).cloned().unwrap_or_default() }
    }

    /// Returns the choice for a system, and makes it if this is the first call for the system. Of several threads that
    /// ask at once, one makes it and the others wait. `told` is the system that the candidates are told of, if it is
    /// another one.
    pub(super) fn get_or_make(
        &self,
        system: &System,
        told: Option<&System>,
        model: Option<&Arc<Model>>,
        how: How,
        make: impl FnOnce() -> Choice,
    ) -> Choice {
        let key = Key {
            system: system.fingerprint(),
            told: told.map(System::fingerprint),
            modes: format!("{:?}", self.foreseen(system)),
            model: model.map_or(0, |model| Arc::as_ptr(model) as usize),
        };
        let made = {
            let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MOST {
                all.clear();
            }
            let made = all.entry(key).or_default();
            let place = made.iter().position(|(known, _)| *known == how).unwrap_or_else(|| {
                made.push((how, Made { _model: model.cloned(), ..Made::default() }));
                made.len() - 1
            });
            made[place].1.clone()
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
