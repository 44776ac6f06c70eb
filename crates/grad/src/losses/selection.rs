//! Selection of rows one after the other, without replacement: the best selection, the likelihood of a selection under
//! a softmax policy, and its gradients.
//!
//! Equal items share one row with a count, so a row that stands for c items is c times as likely to be picked.

use std::ops::Range;

use crate::real::{double, max, rounded};
use crate::{Real, Segments};

/// Rows that were selected in each sample of a batch, in order.
#[derive(Clone, Debug)]
pub struct SelectedRows<'a> {
    /// Rows of each sample. The first is never picked.
    pub(crate) rows: &'a Segments,
    /// Multiplicity of each row except the first of each sample.
    pub(crate) counts: &'a [u32],
    /// Picks of each sample.
    pub(crate) picked_segments: Segments,
    /// Picked rows of all samples, in order, counted from the sample's first row.
    pub(crate) picked: Vec<u32>,
}

impl<'a> SelectedRows<'a> {
    /// Creates a batch of selections. `counts` holds the multiplicity of each row except the first of each sample,
    /// which is never picked; `picked` holds the rows of each sample in the order of picking, counted from its first
    /// row.
    ///
    /// # Panics
    ///
    /// Panics if the lengths do not match, or if a sample has no such row.
    pub fn new<'b>(
        rows: &'a Segments,
        counts: &'a [u32],
        picked: impl IntoIterator<Item = &'b [u32]>,
    ) -> SelectedRows<'a> {
        assert_eq!(counts.len() + rows.len(), rows.rows());
        let mut all = Vec::new();
        let picked_segments = Segments::of_lengths(picked.into_iter().map(|own| {
            all.extend_from_slice(own);
            own.len()
        }));
        assert_eq!(picked_segments.len(), rows.len());
        for (rows, own) in rows.ranges().zip(picked_segments.ranges()) {
            assert!(all[own].iter().all(|row| (1..rows.len() as u32).contains(row)));
        }
        SelectedRows { rows, counts, picked_segments, picked: all }
    }

    /// For each sample the range of its rows, their counts and its picked rows.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (Range<usize>, &[u32], &[u32])> {
        let each = self.rows.ranges().zip(self.picked_segments.ranges()).enumerate();
        each.map(|(sample, (rows, own))| {
            let counts = counts_of(self.counts, sample, &rows);
            (rows, counts, &self.picked[own])
        })
    }
}

/// The part of `counts` that belongs to one sample. Each sample has one row without a count.
pub(crate) fn counts_of<'a>(counts: &'a [u32], sample: usize, rows: &Range<usize>) -> &'a [u32] {
    &counts[rows.start - sample..rows.end - sample - 1]
}

/// Rows with the highest Q-values that are at least `threshold`, best first, for up to `places` places. A row is
/// repeated up to its count. The first row of `q` is never selected and has no count.
pub fn best_rows(q: &[Real], counts: &[u32], places: u32, threshold: Real) -> Vec<u32> {
    let mut rows: Vec<u32> = (1..q.len() as u32).filter(|row| q[*row as usize] >= threshold).collect();
    rows.sort_by(|a, b| q[*b as usize].total_cmp(&q[*a as usize]).then(a.cmp(b)));
    let mut chosen = Vec::new();
    for row in rows {
        let room = places as usize - chosen.len();
        chosen.extend(std::iter::repeat_n(row, room.min(counts[row as usize - 1] as usize)));
        if chosen.len() == places as usize {
            break;
        }
    }
    chosen
}

/// Likelihood of a selection under the softmax policy of some Q-values.
#[derive(Clone, Debug, Default)]
pub struct Likelihood {
    /// Logarithm of the selection's probability.
    pub log: f64,
    /// Gradient of `log` with respect to each row's Q-value; 0 for the first row.
    pub gradient: Vec<Real>,
    /// Entropy of the first pick.
    pub entropy: f64,
    /// Gradient of `entropy` with respect to each row's Q-value.
    pub entropy_gradient: Vec<Real>,
}

/// Greatest Q-value of the rows that can be picked: those with items, without the first row. Others are never picked,
/// whatever their Q-values.
pub fn greatest_pickable(q: &[Real], counts: &[u32]) -> Real {
    let pickable = q[1..].iter().zip(counts).filter(|(_, count)| **count > 0);
    pickable.fold(Real::NEG_INFINITY, |most, (q, _)| max(most, *q))
}

/// Logarithm of the likelihood of picking the rows `chosen` in this order, as in [`likelihood`], without gradients.
pub fn log_likelihood(q: &[Real], counts: &[u32], chosen: &[u32]) -> f64 {
    let most = greatest_pickable(q, counts);
    let powers: Vec<f64> = q[1..].iter().map(|q| double(*q - most).min(0.0).exp()).collect();
    let mut log = 0.0;
    for (turn, row) in chosen.iter().enumerate() {
        let left = |place: usize| {
            let gone = chosen[..turn].iter().filter(|row| **row as usize == place + 1).count();
            (f64::from(counts[place]) - gone as f64).max(0.0)
        };
        let total: f64 = powers.iter().enumerate().map(|(place, power)| left(place) * power).sum();
        let place = *row as usize - 1;
        log += double(q[place + 1] - most) + left(place).max(1.0).ln() - total.max(f64::MIN_POSITIVE).ln();
    }
    log
}

/// Likelihood of picking the rows `chosen` in this order. The first row of `q` is never picked and has no count; rows
/// with a count of 0 are never picked either.
pub fn likelihood(q: &[Real], counts: &[u32], chosen: &[u32]) -> Likelihood {
    let mut left: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
    let most = greatest_pickable(q, counts);
    let powers: Vec<f64> = q[1..].iter().map(|q| double(*q - most).min(0.0).exp()).collect();
    let mut result =
        Likelihood { log: 0.0, gradient: vec![0.0; q.len()], entropy: 0.0, entropy_gradient: vec![0.0; q.len()] };
    for (turn, row) in chosen.iter().enumerate() {
        let total: f64 = left.iter().zip(&powers).map(|(left, power)| left * power).sum();
        let total = total.max(f64::MIN_POSITIVE);
        let share = |place: usize| left[place] * powers[place] / total;
        let above = |place: usize| double(q[place + 1] - most);
        if turn == 0 {
            let mean: f64 = (0..left.len()).map(|place| share(place) * above(place)).sum();
            result.entropy = total.ln() - mean;
            for place in 0..left.len() {
                result.entropy_gradient[place + 1] = rounded(-share(place) * (above(place) - mean));
            }
        }
        let place = *row as usize - 1;
        result.log += above(place) + left[place].max(1.0).ln() - total.ln();
        for other in 0..left.len() {
            result.gradient[other + 1] -= rounded(share(other));
        }
        result.gradient[place + 1] += 1.0;
        left[place] = (left[place] - 1.0).max(0.0);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rows_fill_the_places() {
        let q = [0.0, 1.0, 3.0, -1.0];
        assert_eq!(best_rows(&q, &[2, 1, 5], 4, f64::NEG_INFINITY), [2, 1, 1, 3]);
        assert_eq!(best_rows(&q, &[2, 1, 5], 4, 0.0), [2, 1, 1]);
        assert_eq!(best_rows(&q, &[2, 1, 5], 1, 0.0), [2]);
    }

    #[test]
    fn rows_without_items_take_no_part() {
        let with = likelihood(&[9.0, 0.3, 800.0, -0.5, 1.2], &[1, 0, 2, 1], &[3, 4]);
        let without = likelihood(&[9.0, 0.3, -0.5, 1.2], &[1, 2, 1], &[2, 3]);
        assert_eq!((with.log, with.entropy), (without.log, without.entropy));
        assert_eq!(with.log, log_likelihood(&[9.0, 0.3, 800.0, -0.5, 1.2], &[1, 0, 2, 1], &[3, 4]));
        let (q, counts, chosen) = (&[0.0, 1.5, -2.0, 0.7], &[2, 3, 1], &[1, 2, 1, 3, 2]);
        assert_eq!(likelihood(q, counts, chosen).log, log_likelihood(q, counts, chosen));
        let others = |all: &[f64]| [all[0], all[1], all[3], all[4]];
        assert_eq!(others(&with.gradient), *without.gradient);
        assert_eq!(others(&with.entropy_gradient), *without.entropy_gradient);
        assert_eq!((with.gradient[2], with.entropy_gradient[2].abs()), (0.0, 0.0));
    }

    #[test]
    fn likelihoods_sum_to_one_and_gradients_are_right() {
        let (q, counts) = ([9.0, 0.3, -0.5, 1.2], [1, 2, 1]);
        let mut total = 0.0;
        for a in 1..=3u32 {
            for b in 1..=3u32 {
                if a != b || counts[a as usize - 1] > 1 {
                    total += likelihood(&q, &counts, &[a, b]).log.exp();
                }
            }
        }
        assert!((total - 1.0).abs() < 1e-6, "{total}");
        let at = |place: usize, step: f64| {
            let mut moved = q;
            moved[place] += step;
            let likelihood = likelihood(&moved, &counts, &[2, 3]);
            (likelihood.log, likelihood.entropy)
        };
        let found = likelihood(&q, &counts, &[2, 3]);
        for place in 0..4 {
            let (up, down) = (at(place, 1e-4), at(place, -1e-4));
            assert!(((up.0 - down.0) / 2e-4 - found.gradient[place]).abs() < 1e-6);
            assert!(((up.1 - down.1) / 2e-4 - found.entropy_gradient[place]).abs() < 1e-6);
        }
    }
}
