//! A critic that is a network of its own, with its target network, for the algorithms whose policy and critics share no
//! weights.

use temponet_grad::{Device, Tensors};
use temponet_infer::{Architecture, Weights};

use crate::learner::Learner;
use crate::method::TensorVisitor;
use crate::recipe::Recipe;

/// A critic: its network and its target network.
pub struct Critic<D: Device> {
    /// The network.
    pub learner: Learner<D>,
    /// Parameters of the target network.
    pub target: Tensors<D>,
}

impl<D: Device> Critic<D> {
    /// A critic with random weights, on a device of its own beside the policy's.
    pub fn new(architecture: Architecture, seed: u64, recipe: &Recipe, policy: &Learner<D>) -> Critic<D> {
        let weights = Weights::random(architecture, seed);
        let mut learner = Learner::new(policy.another_device(), &weights, recipe.optimizer.adam);
        learner.network.sparse = policy.network.sparse;
        let target = learner.copy_parameters();
        Critic { learner, target }
    }

    /// Moves the target network towards the network, by a share of the difference.
    pub fn blend(&mut self, share: f64) {
        self.learner.blend_into(&mut self.target, share as f32);
    }

    /// Shows the tensors of a checkpoint. The prefix of their names is part of the checkpoint format.
    pub fn visit(&mut self, prefix: &str, each: TensorVisitor<'_, D>) {
        self.learner.visit(vec![("target", &mut self.target)], |name, device, tensors| {
            each(format!("{prefix}-{name}"), device, tensors);
        });
    }
}
