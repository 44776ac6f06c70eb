//! The loss of doing what others do, or what would have been better: picks against those of a teacher, and exchanges of one row for another
//! that gain or lose something.

use crate::{Real, Segments, SelectedRows};

/// The row that comes in, the row that goes out, and what is gained by it.
pub type Exchange = (u32, u32, f32);

/// What should have been picked, sample by sample.
#[derive(Clone, Debug)]
pub struct ImitationBatch<'a> {
    /// The rows that the teacher picked.
    pub(crate) selected: SelectedRows<'a>,
    /// What the cross-entropy of one sample is multiplied by.
    pub(crate) share: f32,
    /// Whose exchanges are whose.
    pub(crate) exchange_segments: Segments,
    /// What came of them.
    pub(crate) exchanges: Vec<Exchange>,
    /// What the loss of an exchange is multiplied by.
    pub(crate) gain_share: f32,
}

impl<'a> ImitationBatch<'a> {
    /// A teacher's picks; the cross-entropy of each sample is multiplied by a share.
    pub fn new(selected: SelectedRows<'a>, share: f32) -> ImitationBatch<'a> {
        let exchange_segments = Segments::of_lengths(selected.rows.ranges().map(|_| 0));
        ImitationBatch { selected, share, exchange_segments, exchanges: Vec::new(), gain_share: 0.0 }
    }

    /// The same with exchanges of rows of each sample, counted from its first; their losses are multiplied by a share. Panics if there are no such rows.
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

/// The cross-entropy, times a share, of the pick of one row against any of the teacher's; writes its gradient. The first row is out of the question.
pub(crate) fn cross_entropy<R: Real>(q: &[R], counts: &[u32], picked: &[u32], share: R, by_q: &mut [R]) -> f64 {
    let most = q[1..].iter().fold(R::of(f64::NEG_INFINITY), |most, q| most.max(*q));
    by_q[0] = R::ZERO;
    for ((by_q, q), count) in by_q[1..].iter_mut().zip(&q[1..]).zip(counts) {
        *by_q = (*q - most).exp() * R::of(f64::from(*count));
    }
    let total: R = by_q[1..].iter().copied().sum();
    by_q[1..].iter_mut().for_each(|by_q| *by_q = *by_q * (share / total));
    let each = share / R::of(picked.len() as f64);
    let mut loss = 0.0;
    for row in picked {
        let row = *row as usize;
        loss -= (each * (q[row] - most - total.ln())).to_f64();
        by_q[row] -= each;
    }
    loss
}

/// The logistic loss, times a share, of whether to make each exchange, weighed by what it gains or loses; adds its gradient.
pub(crate) fn logistic<R: Real>(q: &[R], exchanges: &[Exchange], share: R, by_q: &mut [R]) -> f64 {
    let mut loss = 0.0;
    for (inward, outward, gain) in exchanges {
        let (inward, outward, sign) = (*inward as usize, *outward as usize, R::of(f64::from(gain.signum())));
        let margin = (q[inward] - q[outward]) * sign;
        let weight = R::of(f64::from(gain.abs())) * share;
        loss += weight.to_f64() * (-margin.to_f64()).exp().ln_1p();
        let slope = -weight * sign * (-margin).sigmoid();
        by_q[inward] += slope;
        by_q[outward] -= slope;
    }
    loss
}
