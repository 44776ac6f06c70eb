//! Q-learning over selections of rows. The Q-value of a selection is V + Σ (q of the row − q of the first row), so the
//! best selection is the greedy one. Here are the bootstrapped targets of choices and the loss of their Q-values
//! against targets.

use crate::real::double;
use crate::{Real, Segments, SelectedRows, best_rows, likelihood};

/// States that n-step targets are bootstrapped from: for each sample the state that was reached n choices later, and
/// the rewards on the way there.
#[derive(Clone, Copy, Debug)]
pub struct NextStates<'a> {
    /// Rows of each state. The first stands for selecting none, the others can be selected.
    pub rows: &'a Segments,
    /// Multiplicity of each row except the first of each state: the number of equal items that it stands for.
    pub counts: &'a [u32],
    /// Rewards and discount of each sample.
    pub returns: &'a [NStepReturn],
    /// Whether the state value V is an output of its own (dueling network). Otherwise V is the Q-value of the first
    /// row.
    pub is_dueling: bool,
    /// Whether places may stay empty: if `true`, only rows with at least the first row's Q-value are selected.
    pub may_idle: bool,
}

impl NextStates<'_> {
    /// Panics unless the lengths of all lists match the segments.
    pub(crate) fn check(&self) {
        assert!(self.counts.len() + self.rows.len() == self.rows.rows() && self.returns.len() == self.rows.len());
    }
}

/// The n-step return of a choice up to a later state, before bootstrapping.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NStepReturn {
    /// Number of rows that can be selected in the later state.
    pub places: u32,
    /// Sum of the rewards on the way, discounted to the time of the choice.
    pub reward: f32,
    /// Discount of the later state's value.
    pub discount: f32,
}

/// Batch of choices whose Q-values are learned, one per sample.
#[derive(Clone, Debug)]
pub struct QValueBatch<'a> {
    /// Rows that were selected in each sample.
    pub selected: SelectedRows<'a>,
    /// Factor on the loss of each sample.
    pub weights: &'a [f32],
    /// Whether the state value V is an output of its own (dueling network). Otherwise V is the Q-value of the first
    /// row.
    pub is_dueling: bool,
    /// Bound of the Huber loss. `None` means half the squared error.
    pub bound: Option<f32>,
    /// Weight of the negative log-likelihood of the choice, which is added to the loss. 0 leaves it out.
    pub likelihood: f32,
}

/// Q-value of selecting the rows `picked`: V plus the advantage of each row over the first. V is `value` for a dueling
/// network and `q[0]` otherwise.
pub fn q_value_of(is_dueling: bool, q: &[Real], value: Real, picked: &[u32]) -> Real {
    let v = if is_dueling { value } else { q[0] };
    v + picked.iter().map(|row| q[*row as usize] - q[0]).sum::<Real>()
}

/// Bootstrapped target of one choice. `chooser` selects the best rows of the next state; `q` and `value` evaluate them.
pub(crate) fn target_of_one(
    next_states: &NextStates<'_>,
    n_step: &NStepReturn,
    counts: &[u32],
    chooser: &[Real],
    (q, value): (&[Real], Real),
) -> Real {
    let threshold = if next_states.may_idle { chooser[0] } else { Real::NEG_INFINITY };
    let best = best_rows(chooser, counts, n_step.places, threshold);
    let [reward, discount] = [n_step.reward, n_step.discount].map(|number| number as Real);
    reward + discount * q_value_of(next_states.is_dueling, q, value, &best)
}

/// Regression loss of an error and its derivative: half the square, or the Huber loss with `bound`.
pub(crate) fn huber(bound: Option<Real>, error: Real) -> (Real, Real) {
    match bound {
        Some(bound) if error.abs() > bound => {
            (bound * (error.abs() - bound * 0.5), if error > 0.0 { bound } else { -bound })
        }
        _ => (error * error * 0.5, error),
    }
}

/// Loss of one sample's Q-value, whose temporal-difference error is `error`. Writes the gradients to `by_q` and
/// `by_value`.
pub(crate) fn loss_of_one(
    values: &QValueBatch<'_>,
    weight: f32,
    (counts, picked): (&[u32], &[u32]),
    error: Real,
    q: &[Real],
    by_q: &mut [Real],
    by_value: &mut Real,
) -> f64 {
    let weight = weight as Real;
    let (own, slope) = huber(values.bound.map(|bound| bound as Real), error);
    let (mut loss, slope) = (double(own * weight), slope * weight);
    by_q.fill(0.0);
    for row in picked {
        by_q[*row as usize] += slope;
        by_q[0] -= slope;
    }
    *by_value = if values.is_dueling { slope } else { 0.0 };
    if !values.is_dueling {
        by_q[0] += slope;
    }
    if values.likelihood > 0.0 && !picked.is_empty() {
        let likelihood = likelihood(q, counts, picked);
        let factor = values.likelihood as Real * weight;
        loss -= likelihood.log * double(factor);
        by_q.iter_mut().zip(&likelihood.gradient).for_each(|(by_q, slope)| *by_q -= factor * *slope);
    }
    loss
}
