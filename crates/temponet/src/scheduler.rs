//! The learned scheduler behind its shield: what users embed.

use std::path::Path;
use std::sync::Arc;

use temponet_infer::NetworkError;
use temponet_sched::shield::{NoGuarantee, Shield};
use temponet_task::{Assignment, NotApplicable, Scheduler, System, SystemView};

use crate::learned::{Learned, Options};
use crate::{Model, ModelError};

/// The learned scheduler. Whatever its weights say, it misses no deadline that is proved to be safe.
pub struct Temponet {
    shielded: Shield<Learned>,
}

impl Temponet {
    /// A scheduler that asks a model, used as the options say.
    pub fn new(model: Arc<Model>, options: Options) -> Result<Temponet, NetworkError> {
        Ok(Temponet { shielded: Shield::new(Learned::new(model, options)?) })
    }

    /// A scheduler from a weights file.
    pub fn load(path: impl AsRef<Path>) -> Result<Temponet, ModelError> {
        Ok(Temponet::new(Model::load(path.as_ref())?.into(), Options::default())?)
    }

    /// What the shield does on this system: what it guarantees, and whether the network is asked. One sentence, which goes on after "the shield".
    pub fn shield_role(&self) -> String {
        self.shielded.role().sentence("the network")
    }

    /// Why the shield guarantees nothing on this system; none if it does.
    pub fn why_unguarded(&self) -> Option<&NoGuarantee> {
        self.shielded.why_disarmed()
    }
}

impl Scheduler for Temponet {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.shielded.start(system)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.shielded.decide(view, assignment);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Scheduler::counters(&self.shielded)
    }
}
