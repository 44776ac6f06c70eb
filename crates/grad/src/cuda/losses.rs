//! The losses of reinforcement learning on an NVIDIA GPU: what their kernels (losses.cu) are given.

use super::launch::Argument::{At, Float, From, Int};
use super::launch::{Argument, Grid, THREADS};
use super::memory::Memory;
use super::{Cuda, Number};
use crate::{Ahead, Choices, Device, Imitation, LearningLosses, Picks, Values};

/// A loss is summed by at most so many blocks.
const LOSS_BLOCKS: usize = 1024;

impl Cuda {
    /// Rows picked, as the kernels have them, and more words after them: both together, and where the latter begin.
    fn upload_picks(&self, picks: &Picks<'_>, more: impl IntoIterator<Item = u32>) -> (Memory, usize) {
        let mut words = [picks.rows.starts(), picks.turns.starts(), &picks.picked, picks.counts].concat();
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

    fn imitation_loss(&mut self, imitation: &Imitation<'_>, q: &Memory, by_q: &mut Memory) -> Number {
        let Imitation { picks, share, turns, exchanges, gain_share } = imitation;
        let samples = picks.rows.len();
        assert!(q.len() == picks.rows.rows() && by_q.len() == q.len());
        let exchanges = exchanges.iter().flat_map(|(inward, outward, gain)| [*inward, *outward, gain.to_bits()]);
        let (lists, first_turn) = self.upload_picks(picks, turns.starts().iter().copied().chain(exchanges));
        let first_exchange = first_turn + turns.starts().len();
        let losses = self.pool.blank::<f64>(samples);
        let arguments = [
            Int(samples),
            Int(picks.picked.len()),
            At(&lists),
            From(&lists, first_turn),
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
        choices: &Choices<'_>,
        q: &Memory,
        value: &Memory,
        by_q: &mut Memory,
        by_value: &mut Memory,
    ) -> Number {
        let Choices { picks, made, weights } = choices;
        let rows = picks.rows;
        assert!([q, by_q].iter().all(|column| column.len() == rows.rows()) && made.len() == rows.len());
        assert!([value, by_value].iter().all(|column| column.len() == rows.len()));
        let made = made.iter().flat_map(|made| [made.log, made.advantage, made.worth].map(f32::to_bits));
        let (lists, first_made) = self.upload_picks(picks, made);
        let losses = self.pool.blank::<f64>(rows.len());
        let arguments = [
            Int(rows.len()),
            Int(picks.picked.len()),
            At(&lists),
            From(&lists, first_made),
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

    fn best_values(
        &mut self,
        ahead: &Ahead<'_>,
        chooser: Option<&Memory>,
        q: &Memory,
        value: &Memory,
        out: &mut Memory,
    ) {
        ahead.check();
        let Ahead { rows, counts, ways, is_dueling, may_idle } = *ahead;
        let chooser = chooser.unwrap_or(q);
        assert!([chooser, q].iter().all(|column| column.len() == rows.rows()));
        assert!(value.len() == rows.len() && out.len() == rows.len());
        let mut words = [rows.starts(), counts].concat();
        let first_way = words.len();
        words.extend(ways.iter().flat_map(|way| [way.places, way.reward.to_bits(), way.discount.to_bits()]));
        let lists = self.pool.upload(&words);
        let arguments = [
            Int(rows.len()),
            At(&lists),
            From(&lists, first_way),
            Int(usize::from(is_dueling)),
            Int(usize::from(may_idle)),
            At(chooser),
            At(q),
            At(value),
            At(out),
        ];
        self.launch(|kernels| &kernels.best_values, Grid::warps(rows.len()), &arguments);
    }

    fn value_loss(
        &mut self,
        values: &Values<'_>,
        q: &Memory,
        value: &Memory,
        target: &Memory,
        by_q: &mut Memory,
        by_value: &mut Memory,
        errors: &mut Memory,
    ) -> Number {
        let Values { picks, weights, is_dueling, bound, likelihood } = values;
        let rows = picks.rows;
        assert!([q, by_q].iter().all(|column| column.len() == rows.rows()) && weights.len() == rows.len());
        assert!([value, target, by_value, errors].iter().all(|column| column.len() == rows.len()));
        let (lists, first_weight) = self.upload_picks(picks, weights.iter().map(|weight| weight.to_bits()));
        let losses = self.pool.blank::<f64>(rows.len());
        let arguments = [
            Int(rows.len()),
            Int(picks.picked.len()),
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
        self.launch(|kernels| &kernels.value_loss, Grid::warps(rows.len()), &arguments);
        self.sum_of_parts(&losses, false)
    }
}

/// The bound of Huber's loss; a negative one stands for none.
fn bound_of(bound: Option<f32>) -> Argument<'static> {
    Float(bound.unwrap_or(-1.0))
}
