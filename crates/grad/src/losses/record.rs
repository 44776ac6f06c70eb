//! Losses of matrices on a tape.

use crate::{ImitationBatch, LearningLosses, Loss, NextStates, PolicyBatch, QValueBatch, Real, Tape, Var};

impl<D: LearningLosses> Tape<'_, D> {
    /// The weighted sum of the numbers' losses against targets: half the square, or Huber's with `delta`.
    pub fn regression(&mut self, x: Var, delta: Option<f64>, target: &[D::Real], weights: &[D::Real]) -> Loss<D> {
        let (rows, columns) = self.shape(x);
        assert!(target.len() == rows * columns && weights.len() == target.len());
        let (target, weights) = (self.device.upload(target), self.device.upload(weights));
        let mut gradient = self.device.blank(rows * columns);
        let delta = delta.map(D::Real::of);
        let value = self.device.regression(delta, &self.nodes[x.0].value, &target, &weights, &mut gradient);
        self.device.recycle(target);
        self.device.recycle(weights);
        Loss { value, var: x, gradient }
    }

    /// The loss of doing what a teacher does by what the network says of rows: to go backwards from, and what it comes to in all, which need not be
    /// waited for.
    pub fn imitation_loss(&mut self, q: Var, imitation: &ImitationBatch<'_>) -> (Vec<Loss<D>>, D::Number) {
        let rows = imitation.selected.rows.rows();
        assert_eq!(self.shape(q), (rows, 1));
        let mut by_q = self.device.blank(rows);
        let total = self.device.imitation_loss(imitation, &self.nodes[q.0].value, &mut by_q);
        (vec![Loss { value: 0.0, var: q, gradient: by_q }], total)
    }

    /// The same for the loss of policy optimisation, by what the network says of rows, `q`, and of samples, `value`.
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

    /// What choices should have been worth by what the network says of the rows and samples that came after them. Which rows are the best there says
    /// `chooser`, or `q` itself.
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

    /// The loss of choices' values against targets, as that of policy optimisation; with it by how much each is too great.
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
