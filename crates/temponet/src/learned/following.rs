//! The upper level of a hierarchical model: which advisor the network follows, and for how many decisions.
//!
//! The advisor is a feature of the idle row. With it, the output of the idle row is the Q-value of following this
//! advisor, so the upper level's choice takes one pass of the network for each advisor.

use temponet_infer::Network;
use temponet_sched::advice::Advisor;

use crate::Model;
use crate::stages::Observation;

/// The advisor that is followed, and the decisions left for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Following {
    /// Place of the advisor among the features of the idle row; none for a model without levels.
    place: Option<usize>,
    /// Decisions for which an advisor is followed.
    period: u32,
    advisor: u16,
    left: u32,
}

impl Following {
    /// Follows no advisor yet.
    pub(super) fn new(model: &Model) -> Following {
        let period = model.following().unwrap_or(1);
        Following { place: model.tokenizer.advisor_place(), period, advisor: 0, left: 0 }
    }

    /// Sets the advisor of a decision in its observation; chooses a new one first if the last one has been followed
    /// long enough. `q` is working memory.
    pub(super) fn guide(&mut self, network: &mut Network, observation: &mut Observation, q: &mut Vec<f32>) {
        let Some(place) = self.place else { return };
        if self.left == 0 {
            let mut best = f32::NEG_INFINITY;
            for advisor in 0..Advisor::ALL.len() as u16 {
                observation.set_idle(place, advisor);
                q.clear();
                network.forward(&observation.rows(), q);
                if advisor == 0 || q[0] > best {
                    (self.advisor, best) = (advisor, q[0]);
                }
            }
            self.left = self.period;
        }
        self.left -= 1;
        observation.set_idle(place, self.advisor);
    }
}
