//! Imitation losses: the cross-entropy of the rows that a teacher selected, and a logistic loss of exchanging one row
//! for another, weighted by the known gain of the exchange.

use crate::losses::greatest_pickable;
use crate::real::{double, exp, rounded, sigmoid};
use crate::{Real, Segments, SelectedRows};

/// Exchange of one selected row for another: the row that comes in, the row that goes out, and the gain, which is
/// negative for a loss.
pub type Exchange = (u32, u32, f32);

/// Rows that should have been selected, sample by sample.
#[derive(Clone, Debug)]
pub struct ImitationBatch<'a> {
    /// Rows that the teacher selected.
    pub(crate) selected: SelectedRows<'a>,
    /// Factor on the cross-entropy of each sample.
    pub(crate) share: f32,
    /// Exchanges of each sample.
    pub(crate) exchange_segments: Segments,
    /// Exchanges of all samples.
    pub(crate) exchanges: Vec<Exchange>,
    /// Factor on the loss of each exchange.
    pub(crate) gain_share: f32,
}

impl<'a> ImitationBatch<'a> {
    /// Creates a batch of a teacher's selections without exchanges. The cross-entropy of each sample is multiplied by
    /// `share`.
    pub fn new(selected: SelectedRows<'a>, share: f32) -> ImitationBatch<'a> {
        let exchange_segments = Segments::of_lengths(selected.rows.ranges().map(|_| 0));
        ImitationBatch { selected, share, exchange_segments, exchanges: Vec::new(), gain_share: 0.0 }
    }

    /// Adds exchanges, one list per sample, with rows counted from the sample's first row. The loss of each exchange is
    /// multiplied by `share`.
    ///
    /// # Panics
    ///
    /// Panics if the number of lists is not that of samples, or if a sample has no such row.
    pub fn with_exchanges<'b>(
        self,
        share: f32,
        exchanges: impl IntoIterator<Item = &'b [Exchange]>,
    ) -> ImitationBatch<'a> {
        let mut all = Vec::new();
        let exchange_segments = Segments::of_lengths(exchanges.into_iter().map(|own| {
            all.extend_from_slice(own);
            own.len()
        }));
        assert_eq!(exchange_segments.len(), self.selected.rows.len());
        for (rows, own) in self.selected.rows.ranges().zip(exchange_segments.ranges()) {
            let rows = 0..rows.len() as u32;
            assert!(all[own].iter().all(|(inward, outward, _)| rows.contains(inward) && rows.contains(outward)));
        }
        ImitationBatch { exchange_segments, exchanges: all, gain_share: share, ..self }
    }
}

/// Cross-entropy of one sample, times `share`: the target is the uniform distribution over the rows that the teacher
/// picked. Writes the gradient to `by_q`. The first row cannot be selected and takes no part.
pub(crate) fn cross_entropy(q: &[Real], counts: &[u32], picked: &[u32], share: Real, by_q: &mut [Real]) -> f64 {
    let most = greatest_pickable(q, counts);
    by_q[0] = 0.0;
    for ((by_q, q), count) in by_q[1..].iter_mut().zip(&q[1..]).zip(counts) {
        *by_q = exp((*q - most).min(0.0)) * *count as Real;
    }
    let total: Real = by_q[1..].iter().copied().sum();
    by_q[1..].iter_mut().for_each(|by_q| *by_q *= share / total);
    let each = share / rounded(picked.len() as f64);
    let mut loss = 0.0;
    for row in picked {
        let row = *row as usize;
        loss -= double(each * (q[row] - most - total.ln()));
        by_q[row] -= each;
    }
    loss
}

/// Logistic loss of one sample, times `share`: whether each exchange should be made, weighted by the magnitude of its
/// gain. Adds the gradient to `by_q`.
pub(crate) fn logistic(q: &[Real], exchanges: &[Exchange], share: Real, by_q: &mut [Real]) -> f64 {
    let mut loss = 0.0;
    for (inward, outward, gain) in exchanges {
        let (inward, outward, sign) = (*inward as usize, *outward as usize, gain.signum() as Real);
        let margin = (q[inward] - q[outward]) * sign;
        let weight = gain.abs() as Real * share;
        loss += double(weight) * (-double(margin)).exp().ln_1p();
        let slope = -weight * sign * sigmoid(-margin);
        by_q[inward] += slope;
        by_q[outward] -= slope;
    }
    loss
}
