//! The losses of reinforcement learning on the CPU: the formulas of one sample, applied to all samples in turn.

use crate::losses::imitation::{cross_entropy, logistic};
use crate::losses::q_values::{huber, target_of_one};
use crate::losses::selection::counts_of;
use crate::losses::{policy, q_values};
use crate::real::double;
use crate::{Cpu, ImitationBatch, LearningLosses, NextStates, PolicyBatch, QValueBatch, Real, likelihood, q_value_of};

impl LearningLosses for Cpu {
    fn regression(
        &mut self,
        delta: Option<Real>,
        x: &Vec<Real>,
        target: &Vec<Real>,
        weights: &Vec<Real>,
        out: &mut Vec<Real>,
    ) -> f64 {
        let mut total = 0.0;
        for (((x, target), weight), out) in x.iter().zip(target).zip(weights).zip(out) {
            let (loss, slope) = huber(delta, *x - *target);
            total += double(loss * *weight);
            *out = slope * *weight;
        }
        total
    }

    fn imitation_loss(&mut self, imitation: &ImitationBatch<'_>, q: &Vec<Real>, by_q: &mut Vec<Real>) -> f64 {
        let [share, gain_share] = [imitation.share, imitation.gain_share].map(|share| share as Real);
        let mut total = 0.0;
        for ((rows, counts, picked), exchanges) in
            imitation.selected.samples().zip(imitation.exchange_segments.ranges())
        {
            let (q, by_q) = (&q[rows.clone()], &mut by_q[rows]);
            total += cross_entropy(q, counts, picked, share, by_q);
            total += logistic(q, &imitation.exchanges[exchanges], gain_share, by_q);
        }
        total
    }

    fn policy_loss(
        &mut self,
        choices: &PolicyBatch<'_>,
        q: &Vec<Real>,
        value: &Vec<Real>,
        by_q: &mut Vec<Real>,
        by_value: &mut Vec<Real>,
    ) -> f64 {
        let PolicyBatch { selected, samples, weights } = choices;
        let mut total = 0.0;
        for (sample, (rows, counts, picked)) in selected.samples().enumerate() {
            let now = likelihood(&q[rows.clone()], counts, picked);
            let (by_q, by_value) = (&mut by_q[rows], &mut by_value[sample]);
            total += policy::loss_of_one(weights, &samples[sample], &now, value[sample], by_q, by_value);
        }
        total
    }

    fn bootstrap_targets(
        &mut self,
        next_states: &NextStates<'_>,
        chooser: Option<&Vec<Real>>,
        q: &Vec<Real>,
        value: &Vec<Real>,
        out: &mut Vec<Real>,
    ) {
        next_states.check();
        let chooser = chooser.unwrap_or(q);
        for (sample, (rows, out)) in next_states.rows.ranges().zip(out).enumerate() {
            let counts = counts_of(next_states.counts, sample, &rows);
            let judged = (&q[rows.clone()], value[sample]);
            *out = target_of_one(next_states, &next_states.returns[sample], counts, &chooser[rows], judged);
        }
    }

    fn q_value_loss(
        &mut self,
        values: &QValueBatch<'_>,
        q: &Vec<Real>,
        value: &Vec<Real>,
        target: &Vec<Real>,
        by_q: &mut Vec<Real>,
        by_value: &mut Vec<Real>,
        errors: &mut Vec<Real>,
    ) -> f64 {
        let mut total = 0.0;
        for (sample, (rows, counts, picked)) in values.selected.samples().enumerate() {
            let (q, by_q) = (&q[rows.clone()], &mut by_q[rows]);
            let error = q_value_of(values.is_dueling, q, value[sample], picked) - target[sample];
            errors[sample] = error;
            let (weight, by_value) = (values.weights[sample], &mut by_value[sample]);
            total += q_values::loss_of_one(values, weight, (counts, picked), error, q, by_q, by_value);
        }
        total
    }
}
