//! Losses of reinforcement learning: imitation, policy optimization and Q-learning over rows that are selected without
//! replacement.
//!
//! A [`Device`] knows plain tensor operations only. [`LearningLosses`] adds the losses, each with its gradients, so
//! that a device can compute them where the network's outputs are instead of waiting for a download. The formulas for
//! one sample are in the modules below; the CPU uses them as they stand, and the CUDA kernels repeat them.

pub(crate) mod imitation;
pub(crate) mod policy;
pub(crate) mod q_values;
mod record;
pub(crate) mod selection;

pub use imitation::{Exchange, ImitationBatch};
pub use policy::{PolicyBatch, PolicySample, PolicyWeights};
pub use q_values::{NStepReturn, NextStates, QValueBatch, q_value_of};
pub use selection::{Likelihood, SelectedRows, best_rows, greatest_pickable, likelihood, log_likelihood};

use crate::{Device, Real};

/// A device that computes the losses of reinforcement learning. Gradients are written, not added.
pub trait LearningLosses: Device {
    /// Weighted regression loss of each number against its target: half the squared error, or the Huber loss with bound
    /// `delta`. Returns the sum and writes its gradient to `out`.
    fn regression(
        &mut self,
        delta: Option<Real>,
        x: &Self::Buffer,
        target: &Self::Buffer,
        weights: &Self::Buffer,
        out: &mut Self::Buffer,
    ) -> f64;

    /// Imitation loss of the Q-values `q` of all rows. Writes its gradient to `by_q`.
    fn imitation_loss(
        &mut self,
        imitation: &ImitationBatch<'_>,
        q: &Self::Buffer,
        by_q: &mut Self::Buffer,
    ) -> Self::Number;
    /// Policy loss (PPO) of the Q-values `q` of all rows and the state values `value` of all samples. Writes its
    /// gradients to `by_q` and `by_value`.
    fn policy_loss(
        &mut self,
        choices: &PolicyBatch<'_>,
        q: &Self::Buffer,
        value: &Self::Buffer,
        by_q: &mut Self::Buffer,
        by_value: &mut Self::Buffer,
    ) -> Self::Number;

    /// Bootstrapped target of each choice: its n-step reward plus the discounted Q-value of the best selection in the
    /// next state, by `q` and `value`. The best rows are those with the highest Q-values in `chooser` (double
    /// Q-learning), or in `q` if there is none.
    fn bootstrap_targets(
        &mut self,
        next_states: &NextStates<'_>,
        chooser: Option<&Self::Buffer>,
        q: &Self::Buffer,
        value: &Self::Buffer,
        out: &mut Self::Buffer,
    );
    /// Loss of the choices' Q-values against `target`, given the Q-values `q` of all rows and the state values `value`
    /// of all samples. Writes its gradients to `by_q` and `by_value`, and the temporal-difference error of each sample,
    /// Q-value minus target, to `errors`.
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
