//! The learned scheduler behind its shield: what users embed.

use std::path::Path;
use std::sync::Arc;

use temponet_infer::NetworkError;
use temponet_sched::shield::{Role, Shield, ShieldCounters};
use temponet_task::{Assignment, Scheduler, SystemView};

use crate::learned::{Learned, Options};
use crate::tuning::{Choice, Choices, Portfolio, decides_alone};
use crate::{Model, ModelError};

/// The learned scheduler behind its shield. Whatever its weights say, it misses no guaranteed deadline: those of every
/// task if all fit, otherwise those of the most critical tasks that do.
pub struct Temponet {
    shielded: Shield<Portfolio>,
}

impl Temponet {
    /// A scheduler with the built-in model and default options.
    pub fn built_in() -> Result<Temponet, ModelError> {
        Ok(Temponet::new(Model::built_in()?.into(), Options::default())?)
    }

    /// A scheduler with the model of a weights file and default options.
    pub fn load(path: impl AsRef<Path>) -> Result<Temponet, ModelError> {
        Ok(Temponet::new(Model::load(path.as_ref())?.into(), Options::default())?)
    }

    /// A scheduler with this model and these options.
    pub fn new(model: Arc<Model>, options: Options) -> Result<Temponet, NetworkError> {
        Ok(Temponet { shielded: Shield::new(Portfolio::with_network(Learned::new(model, options)?.at_full_speed())) })
    }

    /// The same scheduler with choices that are shared with others: many runs of one system then need one simulation.
    pub fn sharing(self, choices: Choices) -> Temponet {
        Temponet { shielded: Shield::new(self.shielded.inner().share().sharing(choices)) }
    }

    /// The choice at the start: which candidate is followed on this system, and what speaks for it. `None` before the
    /// start.
    pub fn choice(&self) -> Option<&Choice> {
        self.shielded.inner().choice()
    }

    /// Name of the candidate that is followed at present: `network`, or a scheduler of the catalog. `None` before the
    /// start.
    pub fn followed(&self) -> Option<&'static str> {
        self.shielded.inner().followed()
    }

    /// Another scheduler over the same prepared weights, for another thread or another system. It has to be started
    /// like a new one.
    ///
    /// ```
    /// use temponet::Temponet;
    ///
    /// let one = Temponet::built_in()?;
    /// let other = one.share();
    /// std::thread::spawn(move || drop(other)).join().expect("it ran");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share(&self) -> Temponet {
        Temponet { shielded: Shield::new(self.shielded.inner().share()) }
    }

    /// Whether the guarantee of the shield holds at present for every job of the guaranteed tasks. A job that takes
    /// longer than its wcet or comes earlier than its task allows loses its own guarantee; the others keep theirs.
    pub fn is_armed(&self) -> bool {
        self.shielded.is_armed()
    }

    /// What the shield has done since the start: overruled choices, lapses of the guarantee, and what broke it.
    pub fn shield_counters(&self) -> ShieldCounters {
        self.shielded.counters()
    }

    /// What the shield guarantees on the system that the scheduler was started with, and who decides.
    pub fn shield_role(&self) -> Role {
        self.shielded.role()
    }
}

impl std::fmt::Debug for Temponet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Temponet").field("shield", &self.shield_role()).finish_non_exhaustive()
    }
}

impl temponet_task::Wrapper for Temponet {
    temponet_task::wraps!(shielded: Shield<Portfolio>);

    /// Where nothing is guaranteed and a simple scheduler keeps (m,k) constraints, that one decides alone, as it does
    /// without a shield (`decides_alone`).
    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let is_network = self.shielded.inner().is_network();
        if self.shielded.why_disarmed().is_some() && !is_network && decides_alone(view.system) {
            self.shielded.step_aside(view, assignment);
        } else {
            Scheduler::decide(&mut self.shielded, view, assignment);
        }
    }

    /// Decides, as the shield does.
    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        Scheduler::decide(self, view, scratch);
    }
}
