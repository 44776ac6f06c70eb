//! The losses of reinforcement learning on an NVIDIA GPU: uploads a batch's lists and starts the kernels of losses.cu.

use super::launch::Argument::{At, Float, From, Int};
use super::launch::{Argument, Grid, THREADS};
use super::memory::Memory;
use super::{Cuda, Number};
use crate::{Device, ImitationBatch, LearningLosses, NextStates, PolicyBatch, PolicySample, QValueBatch, SelectedRows};

/// Greatest number of blocks that sum a regression loss.
const LOSS_BLOCKS: usize = 1024;

impl Cuda {
    /// Uploads selected rows in the layout of the kernels, followed by the words of `more`. Returns the memory and the
    /// place where those begin.
    fn upload_selected(&self, selected: &SelectedRows<'_>, more: impl IntoIterator<Item = u32>) -> (Memory, usize) {
        let mut words =
            [selected.rows.starts(), selected.picked_segments.starts(), &selected.picked, selected.counts].concat();
        let first = words.len();
        words.extend(more);
        (self.pool.upload(&words), first)
    }
}

impl LearningLosses for Cuda {
    fn regression(
        &mut self,
        delta: Option<f32>,
        x: &Memory,
        target: &Memory,
        weights: &Memory,
        out: &mut Memory,
    ) -> f64 {
        let n = x.len();
        assert!([target, weights, out].iter().all(|column| column.len() == n));
        let blocks = n.div_ceil(THREADS).min(LOSS_BLOCKS);
        let parts = self.pool.blank::<f64>(blocks);
        let arguments = [Int(n), bound_of(delta), At(x), At(target), At(weights), At(out), At(&parts)];
        self.launch(|kernels| &kernels.regression, Grid::blocks(blocks), &arguments);
        self.number(&self.sum_of_parts(&parts, false))
    }

    fn imitation_loss(&mut self, imitation: &ImitationBatch<'_>, q: &Memory, by_q: &mut Memory) -> Number {
        let ImitationBatch { selected, share, exchange_segments, exchanges, gain_share } = imitation;
        let samples = selected.rows.len();
        assert!(q.len() == selected.rows.rows() && by_q.len() == q.len());
        let exchanges = exchanges.iter().flat_map(|(inward, outward, gain)| [*inward, *outward, gain.to_bits()]);
        let (lists, first_segment) =
            self.upload_selected(selected, exchange_segments.starts().iter().copied().chain(exchanges));
        let first_exchange = first_segment + exchange_segments.starts().len();
        let losses = self.pool.blank::<f64>(samples);
        let arguments = [
            Int(samples),
            Int(selected.picked.len()),
            At(&lists),
            From(&lists, first_segment),
            From(&lists, first_exchange),
            Float(*share),
            Float(*gain_share),
            At(q),
            At(by_q),
            At(&losses),
        ];
        self.launch(|kernels| &kernels.imitation_loss, Grid::warps(samples), &arguments);
        self.sum_of_parts(&losses, false)
    }

    fn policy_loss(
        &mut self,
        choices: &PolicyBatch<'_>,
        q: &Memory,
        value: &Memory,
        by_q: &mut Memory,
        by_value: &mut Memory,
    ) -> Number {
        let PolicyBatch { selected, samples, weights } = choices;
        let rows = selected.rows;
        assert!([q, by_q].iter().all(|column| column.len() == rows.rows()) && samples.len() == rows.len());
        assert!([value, by_value].iter().all(|column| column.len() == rows.len()));
        let words =
            |sample: &PolicySample| [sample.log_likelihood, sample.advantage, sample.value_target].map(f32::to_bits);
        let (lists, first_sample) = self.upload_selected(selected, samples.iter().flat_map(words));
        let losses = self.pool.blank::<f64>(rows.len());
        let arguments = [
            Int(rows.len()),
            Int(selected.picked.len()),
            At(&lists),
            From(&lists, first_sample),
            Float(weights.clip),
            Float(weights.entropy),
            Float(weights.value),
            Float(weights.share),
            At(q),
            At(value),
            At(by_q),
            At(by_value),
            At(&losses),
        ];
        self.launch(|kernels| &kernels.policy_loss, Grid::warps(rows.len()), &arguments);
        self.sum_of_parts(&losses, false)
    }

    fn bootstrap_targets(
        &mut self,
        next_states: &NextStates<'_>,
        chooser: Option<&Memory>,
        q: &Memory,
        value: &Memory,
        out: &mut Memory,
    ) {
        next_states.check();
        let NextStates { rows, counts, returns, is_dueling, may_idle } = *next_states;
        let chooser = chooser.unwrap_or(q);
        assert!([chooser, q].iter().all(|column| column.len() == rows.rows()));
        assert!(value.len() == rows.len() && out.len() == rows.len());
        let mut words = [rows.starts(), counts].concat();
        let first_return = words.len();
        words.extend(
            returns.iter().flat_map(|n_step| [n_step.places, n_step.reward.to_bits(), n_step.discount.to_bits()]),
        );
        let lists = self.pool.upload(&words);
        let arguments = [
            Int(rows.len()),
            At(&lists),
            From(&lists, first_return),
            Int(usize::from(is_dueling)),
            Int(usize::from(may_idle)),
            At(chooser),
            At(q),
            At(value),
            At(out),
        ];
        self.launch(|kernels| &kernels.bootstrap_targets, Grid::warps(rows.len()), &arguments);
    }

    fn q_value_loss(
        &mut self,
        values: &QValueBatch<'_>,
        q: &Memory,
        value: &Memory,
        target: &Memory,
        by_q: &mut Memory,
        by_value: &mut Memory,
        errors: &mut Memory,
    ) -> Number {
        let QValueBatch { selected, weights, is_dueling, bound, likelihood } = values;
        let rows = selected.rows;
        assert!([q, by_q].iter().all(|column| column.len() == rows.rows()) && weights.len() == rows.len());
        assert!([value, target, by_value, errors].iter().all(|column| column.len() == rows.len()));
        let (lists, first_weight) = self.upload_selected(selected, weights.iter().map(|weight| weight.to_bits()));
        let losses = self.pool.blank::<f64>(rows.len());
        let arguments = [
            Int(rows.len()),
            Int(selected.picked.len()),
            At(&lists),
            From(&lists, first_weight),
            Int(usize::from(*is_dueling)),
            bound_of(*bound),
            Float(*likelihood),
            At(q),
            At(value),
            At(target),
            At(by_q),
            At(by_value),
            At(errors),
            At(&losses),
        ];
        self.launch(|kernels| &kernels.q_value_loss, Grid::warps(rows.len()), &arguments);
        self.sum_of_parts(&losses, false)
    }
}

/// Bound of the Huber loss as an argument; a negative one stands for none.
fn bound_of(bound: Option<f32>) -> Argument<'static> {
    Float(bound.unwrap_or(-1.0))
}
