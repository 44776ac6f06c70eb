//! Q-learning: the value of picking some rows is V + Σ (q of the row − q of the first), so the best choice is the greedy one. What the best choice in a later
//! state is worth, and the loss of values against that.

use crate::{Real, Segments, SelectedRows, best_rows, likelihood};

/// The states that came after some choices, sample by sample, and what came on the way there.
#[derive(Clone, Copy, Debug)]
pub struct NextStates<'a> {
    /// The rows of each sample: one that stands for picking none, then the others.
    pub rows: &'a Segments,
    /// How many equal ones each of those others stands for.
    pub counts: &'a [u32],
    /// The way to each sample.
    pub returns: &'a [NStepReturn],
    /// Whether V is told apart; if not, it is the first row's number.
    pub is_dueling: bool,
    /// Whether only rows that are worth as much as the first are picked.
    pub may_idle: bool,
}

impl NextStates<'_> {
    /// Panics unless the lists are of the lengths that the samples say.
    pub(crate) fn check(&self) {
        assert!(self.counts.len() + self.rows.len() == self.rows.rows() && self.returns.len() == self.rows.len());
    }
}

/// From a choice to a later state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NStepReturn {
    /// How many rows can be picked there.
    pub places: u32,
    /// What was earned on the way, discounted to the choice.
    pub reward: f32,
    /// The discount at the later state.
    pub discount: f32,
}

/// Choices whose values are learned, sample by sample.
#[derive(Clone, Debug)]
pub struct QValueBatch<'a> {
    /// The rows chosen.
    pub selected: SelectedRows<'a>,
    /// What each sample's loss is multiplied by.
    pub weights: &'a [f32],
    /// Whether V is told apart; if not, it is the first row's number.
    pub is_dueling: bool,
    /// Huber's loss with this bound; none is half the squared error.
    pub bound: Option<f32>,
    /// Weight of the choice's likelihood, which is raised beside.
    pub likelihood: f32,
}

/// The value of picking some rows.
pub fn q_value_of<R: Real>(is_dueling: bool, q: &[R], value: R, picked: &[u32]) -> R {
    let v = if is_dueling { value } else { q[0] };
    v + picked.iter().map(|row| q[*row as usize] - q[0]).sum::<R>()
}

/// What a choice should have been worth: `chooser` says which rows are the best in the state that came after it, `q` and `value` what they are worth.
pub(crate) fn target_of_one<R: Real>(
    next_states: &NextStates<'_>,
    n_step: &NStepReturn,
    counts: &[u32],
    chooser: &[R],
    (q, value): (&[R], R),
) -> R {
    let threshold = if next_states.may_idle { chooser[0] } else { R::of(f64::NEG_INFINITY) };
    let best = best_rows(chooser, counts, n_step.places, threshold);
    let [reward, discount] = [n_step.reward, n_step.discount].map(|number| R::of(f64::from(number)));
    reward + discount * q_value_of(next_states.is_dueling, q, value, &best)
}

/// A loss against a target and its slope by the error: half the square, or Huber's with `bound`.
pub(crate) fn huber<R: Real>(bound: Option<R>, error: R) -> (R, R) {
    match bound {
        Some(bound) if error.abs() > bound => {
            (bound * (error.abs() - bound * R::of(0.5)), if error > R::ZERO { bound } else { -bound })
        }
        _ => (error * error * R::of(0.5), error),
    }
}

/// The loss of one sample's value, which is so much too great; writes its gradients.
pub(crate) fn loss_of_one<R: Real>(
    values: &QValueBatch<'_>,
    weight: f32,
    (counts, picked): (&[u32], &[u32]),
    error: R,
    q: &[R],
    by_q: &mut [R],
    by_value: &mut R,
) -> f64 {
    let weight = R::of(f64::from(weight));
    let (own, slope) = huber(values.bound.map(|bound| R::of(f64::from(bound))), error);
    let (mut loss, slope) = ((own * weight).to_f64(), slope * weight);
    by_q.fill(R::ZERO);
    for row in picked {
        by_q[*row as usize] += slope;
        by_q[0] -= slope;
    }
    *by_value = if values.is_dueling { slope } else { R::ZERO };
    if !values.is_dueling {
        by_q[0] += slope;
    }
    if values.likelihood > 0.0 && !picked.is_empty() {
        let likelihood = likelihood(q, counts, picked);
        let factor = R::of(f64::from(values.likelihood)) * weight;
        loss -= likelihood.log * factor.to_f64();
        by_q.iter_mut().zip(&likelihood.gradient).for_each(|(by_q, slope)| *by_q -= factor * *slope);
    }
    loss
}
