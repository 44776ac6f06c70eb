//! Losses of reinforcement learning: imitation, policy optimization and Q-learning over rows that are selected without replacement.
//!
//! A [`Device`] knows plain tensor operations only. [`LearningLosses`] adds the losses, each with its gradients, so that a device can compute them
//! where the network's outputs are instead of waiting for a download. The formulas for one sample are in the modules below; the CPU uses them as
//! they stand, and the CUDA kernels repeat them.

pub(crate) mod imitation;
pub(crate) mod policy;
pub(crate) mod q_values;
mod record;
pub(crate) mod selection;

pub use imitation::{Exchange, ImitationBatch};
pub use policy::{PolicyBatch, PolicySample, PolicyWeights};
pub use q_values::{NStepReturn, NextStates, QValueBatch, q_value_of};
pub use selection::{Likelihood, SelectedRows, best_rows, likelihood};

use crate::Device;

/// A device that computes the losses of reinforcement learning. Gradients are written, not added.
pub trait LearningLosses: Device {
    /// Weighted loss of each number against its target: squared, or Huber's with `delta`. Gives the sum, and the gradient in `out`.
    fn regression(
        &mut self,
        delta: Option<Self::Real>,
        x: &Self::Buffer,
        target: &Self::Buffer,
        weights: &Self::Buffer,
        out: &mut Self::Buffer,
    ) -> f64;

    /// The loss of doing what a teacher does, given what the network says of the rows; its gradient goes to `by_q`.
    fn imitation_loss(
        &mut self,
        imitation: &ImitationBatch<'_>,
        q: &Self::Buffer,
        by_q: &mut Self::Buffer,
    ) -> Self::Number;
    /// The loss of policy optimisation, given what the network says of the choices' rows and samples; its gradients go to `by_q` and `by_value`.
    fn policy_loss(
        &mut self,
        choices: &PolicyBatch<'_>,
        q: &Self::Buffer,
        value: &Self::Buffer,
        by_q: &mut Self::Buffer,
        by_value: &mut Self::Buffer,
    ) -> Self::Number;

    /// What each choice should have been worth: the reward, and discounted what the best rows ahead are worth by `q` and `value`. Which ones they are says
    /// `chooser`, or `q` itself.
    fn bootstrap_targets(
        &mut self,
        next_states: &NextStates<'_>,
        chooser: Option<&Self::Buffer>,
        q: &Self::Buffer,
        value: &Self::Buffer,
        out: &mut Self::Buffer,
    );
    /// The loss of the choices' values against targets, given what the network says of their rows and samples; its gradients go to `by_q` and `by_value`, and
    /// by how much the values are too great to `errors`.
    #[allow(clippy::too_many_arguments)]
    fn q_value_loss(
        &mut self,
        values: &QValueBatch<'_>,
        q: &Self::Buffer,
        value: &Self::Buffer,
        target: &Self::Buffer,
        by_q: &mut Self::Buffer,
        by_value: &mut Self::Buffer,
        errors: &mut Self::Buffer,
    ) -> Self::Number;
}
