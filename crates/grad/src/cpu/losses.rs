//! Losses with their gradients.

use super::loops;
use crate::policy::{likelihood, loss_of_one};
use crate::{Choices, Real, Segments};

pub fn regression<R: Real>(delta: Option<R>, x: &[R], target: &[R], weights: &[R], out: &mut [R]) -> f64 {
    let mut total = 0.0;
    for (((x, target), weight), out) in x.iter().zip(target).zip(weights).zip(out) {
        let error = *x - *target;
        let (loss, slope) = match delta {
            Some(delta) if error.abs() > delta => {
                (delta * (error.abs() - delta * R::of(0.5)), if error > R::ZERO { delta } else { -delta })
            }
            _ => (error * error * R::of(0.5), error),
        };
        total += (loss * *weight).to_f64();
        *out = slope * *weight;
    }
    total
}

pub fn cross_entropy<R: Real>(segments: &Segments, x: &[R], shares: &[R], weights: &[R], out: &mut [R]) -> f64 {
    out.copy_from_slice(x);
    let mut total = 0.0;
    for (range, weight) in segments.ranges().zip(weights) {
        let (x, shares, out) = (&x[range.clone()], &shares[range.clone()], &mut out[range]);
        let most = loops::greatest(x);
        let sum = x.iter().map(|x| (*x - most).exp()).sum::<R>();
        let log_sum = most + sum.ln();
        for ((x, share), out) in x.iter().zip(shares).zip(out) {
            total += (*weight * *share * (log_sum - *x)).to_f64();
            *out = *weight * ((*x - log_sum).exp() - *share);
        }
    }
    total
}

pub fn policy<R: Real>(choices: &Choices<'_>, q: &[R], value: &[R], by_q: &mut [R], by_value: &mut [R]) -> f64 {
    choices.check();
    let Choices { rows, counts, picks, picked, made, weights } = choices;
    assert!(
        q.len() == rows.rows() && by_q.len() == q.len() && value.len() == rows.len() && by_value.len() == rows.len()
    );
    let mut total = 0.0;
    for (sample, (rows, picks)) in rows.ranges().zip(picks.ranges()).enumerate() {
        // Every sample before this one, and this one, has a row without a count.
        let counts = &counts[rows.start - sample..rows.end - sample - 1];
        let now = likelihood(&q[rows.clone()], counts, &picked[picks]);
        total += loss_of_one(weights, &made[sample], &now, value[sample], &mut by_q[rows], &mut by_value[sample]);
    }
    total
}
