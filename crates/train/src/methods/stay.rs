//! Search for the stay bonus: the greatest Q-value bonus that a running job gets for keeping its core. How much of it
//! counts at a decision depends on what moving jobs costs ([`temponet::stages::Staying`]).
//!
//! Nothing is learned and no parameter moves. Each phase proposes the best weights so far with another bonus, the
//! validation scores the proposal, and the best one is kept with the model. The grid is 0, `step`, 2 · `step`, …, one
//! value for each phase of the stage.

use serde::{Deserialize, Serialize};
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_grad::Device;
use temponet_infer::Weights;

use crate::error::TrainError;
use crate::learner::Learner;
use crate::limits::not_positive;
use crate::method::{Algorithm, Method, MethodDevice, Phase};
use crate::recipe::Recipe;

/// Settings of the search for the stay bonus.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaySettings {
    /// Step between the bonuses that consecutive phases try, in units of Q; the first phase tries 0. Positive; default
    /// 2.
    pub step: f64,
}

impl Default for StaySettings {
    fn default() -> Self {
        StaySettings { step: 2.0 }
    }
}

impl Method for StaySettings {
    const NAME: &'static str = "stay";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        not_positive(&[("step", self.step)])
    }

    fn updates(&self) -> u64 {
        0
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, _learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Stay { settings: *self })
    }
}

/// Search for the stay bonus.
struct Stay {
    settings: StaySettings,
}

impl<D: Device> Algorithm<D> for Stay {
    /// Makes no update: the phase is its validation alone.
    fn phase(&mut self, _learner: &mut Learner<D>, _phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        Ok(())
    }

    /// The best weights so far with the next bonus of the grid.
    fn candidate(&self, _learner: &Learner<D>, tokenizer: Tokenizer, best: &Weights, phases: u64) -> Model {
        let mut model = Model { tokenizer, weights: best.clone() };
        model.set_stay((self.settings.step * (phases - 1) as f64) as f32);
        model
    }
}
