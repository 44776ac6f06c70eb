//! Losses of matrices on a tape: the methods of [`Tape`] that need [`LearningLosses`].

use crate::real::rounded;
use crate::{ImitationBatch, LearningLosses, Loss, NextStates, PolicyBatch, QValueBatch, Real, Tape, Var};

impl<D: LearningLosses> Tape<'_, D> {
    /// Weighted sum of regression losses of `x` against `target`: half the squared error, or the Huber loss with bound
    /// `delta`.
    pub fn regression(&mut self, x: Var, delta: Option<f64>, target: &[Real], weights: &[Real]) -> Loss<D> {
        let (rows, columns) = self.shape(x);
        assert!(target.len() == rows * columns && weights.len() == target.len());
        let (target, weights) = (self.device.upload(target), self.device.upload(weights));
        let mut gradient = self.device.blank(rows * columns);
        let delta = delta.map(rounded);
        let value = self.device.regression(delta, &self.nodes[x.0].value, &target, &weights, &mut gradient);
        self.device.recycle(target);
        self.device.recycle(weights);
        Loss { value, var: x, gradient }
    }

    /// Imitation loss of the Q-values `q`, one per row. Returns the losses to pass to [`Tape::backward`], and their
    /// total, which may not have been computed yet.
    pub fn imitation_loss(&mut self, q: Var, imitation: &ImitationBatch<'_>) -> (Vec<Loss<D>>, D::Number) {
        let rows = imitation.selected.rows.rows();
        assert_eq!(self.shape(q), (rows, 1));
        let mut by_q = self.device.blank(rows);
        let total = self.device.imitation_loss(imitation, &self.nodes[q.0].value, &mut by_q);
        (vec![Loss { value: 0.0, var: q, gradient: by_q }], total)
    }

    /// Policy loss of the Q-values `q`, one per row, and the state values `value`, one per sample. Returns the losses
    /// to pass to [`Tape::backward`], and their total, which may not have been computed yet.
    pub fn policy_loss(&mut self, q: Var, value: Var, choices: &PolicyBatch<'_>) -> (Vec<Loss<D>>, D::Number) {
        let rows = choices.selected.rows;
        assert_eq!((self.shape(q), self.shape(value)), ((rows.rows(), 1), (rows.len(), 1)));
        assert_eq!(choices.samples.len(), rows.len());
        let (mut by_q, mut by_value) = (self.device.blank(rows.rows()), self.device.blank(rows.len()));
        let [q_value, value_value] = [q, value].map(|var| &self.nodes[var.0].value);
        let total = self.device.policy_loss(choices, q_value, value_value, &mut by_q, &mut by_value);
        let loss = |var, gradient| Loss { value: 0.0, var, gradient };
        (vec![loss(q, by_q), loss(value, by_value)], total)
    }

    /// Bootstrapped targets of choices, from the Q-values `q` and the state values `value` of the next states.
    /// `chooser` selects the best rows there; without it `q` does.
    pub fn bootstrap_targets(
        &mut self,
        next_states: &NextStates<'_>,
        chooser: Option<&D::Buffer>,
        q: Var,
        value: Var,
    ) -> D::Buffer {
        assert_eq!((self.shape(q), self.shape(value)), ((next_states.rows.rows(), 1), (next_states.rows.len(), 1)));
        let mut out = self.device.blank(next_states.rows.len());
        let [q, value] = [q, value].map(|var| &self.nodes[var.0].value);
        self.device.bootstrap_targets(next_states, chooser, q, value, &mut out);
        out
    }

    /// Loss of the choices' Q-values against `target`. Returns the losses to pass to [`Tape::backward`], their total,
    /// which may not have been computed yet, and the temporal-difference error of each sample.
    pub fn q_value_loss(
        &mut self,
        q: Var,
        value: Var,
        target: &D::Buffer,
        values: &QValueBatch<'_>,
    ) -> (Vec<Loss<D>>, D::Number, D::Buffer) {
        let rows = values.selected.rows;
        assert_eq!((self.shape(q), self.shape(value)), ((rows.rows(), 1), (rows.len(), 1)));
        assert_eq!(values.weights.len(), rows.len());
        let mut by_q = self.device.blank(rows.rows());
        let [mut by_value, mut errors] = [(); 2].map(|()| self.device.blank(rows.len()));
        let [q_value, v] = [q, value].map(|var| &self.nodes[var.0].value);
        let total = self.device.q_value_loss(values, q_value, v, target, &mut by_q, &mut by_value, &mut errors);
        let loss = |var, gradient| Loss { value: 0.0, var, gradient };
        (vec![loss(q, by_q), loss(value, by_value)], total, errors)
    }
}
