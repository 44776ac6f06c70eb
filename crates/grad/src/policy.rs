//! Choosing rows one after the other, without putting any back: how likely a choice is, its gradients, and the loss of policy optimisation. Equal
//! ones are one row with a count, so a row that stands for c is c times as likely.

use crate::{Real, Segments};

/// A choice's likelihood under some numbers.
#[derive(Clone, Debug, Default)]
pub struct Likelihood<R> {
    /// The logarithm of the choice's probability.
    pub log: f64,
    /// Its gradient with respect to each row's number; the first row's is nought.
    pub gradient: Vec<R>,
    /// Entropy of the first pick.
    pub entropy: f64,
    /// Its gradient.
    pub entropy_gradient: Vec<R>,
}

/// The likelihood of picking `chosen` rows in this order. The first row of `q` is never chosen and has no count.
pub fn likelihood<R: Real>(q: &[R], counts: &[u32], chosen: &[u32]) -> Likelihood<R> {
    let mut left: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
    let most = q[1..].iter().fold(R::of(f64::NEG_INFINITY), |most, q| most.max(*q));
    let powers: Vec<f64> = q[1..].iter().map(|q| (*q - most).to_f64().exp()).collect();
    let mut result = Likelihood {
        log: 0.0,
        gradient: vec![R::ZERO; q.len()],
        entropy: 0.0,
        entropy_gradient: vec![R::ZERO; q.len()],
    };
    for (turn, row) in chosen.iter().enumerate() {
        let total: f64 = left.iter().zip(&powers).map(|(left, power)| left * power).sum();
        let total = total.max(f64::MIN_POSITIVE);
        let share = |place: usize| left[place] * powers[place] / total;
        let above = |place: usize| (q[place + 1] - most).to_f64();
        if turn == 0 {
            let mean: f64 = (0..left.len()).map(|place| share(place) * above(place)).sum();
            result.entropy = total.ln() - mean;
            for place in 0..left.len() {
                result.entropy_gradient[place + 1] = R::of(-share(place) * (above(place) - mean));
            }
        }
        let place = *row as usize - 1;
        result.log += above(place) + left[place].max(1.0).ln() - total.ln();
        for other in 0..left.len() {
            result.gradient[other + 1] -= R::of(share(other));
        }
        result.gradient[place + 1] += R::ONE;
        left[place] = (left[place] - 1.0).max(0.0);
    }
    result
}

/// Choices to learn a policy from, sample by sample.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    /// The rows of each sample: one that is never chosen, then the others.
    pub rows: &'a Segments,
    /// How many equal ones each of those others stands for.
    pub counts: &'a [u32],
    /// Whose picks are whose.
    pub picks: &'a Segments,
    /// The rows picked, in their order, counted from the sample's first.
    pub picked: &'a [u32],
    /// What is known of each sample's choice.
    pub made: &'a [Made],
    /// How they count.
    pub weights: PolicyWeights,
}

impl Choices<'_> {
    /// Panics unless the lists are of the lengths that the samples say.
    pub(crate) fn check(&self) {
        let Choices { rows, counts, picks, picked, made, .. } = self;
        assert!(rows.len() == picks.len() && made.len() == picks.len() && picked.len() == picks.rows());
        assert_eq!(counts.len() + rows.len(), rows.rows());
        for (sample, picks) in picks.ranges().enumerate() {
            let most = rows.range(sample).len() as u32;
            assert!(picked[picks].iter().all(|row| (1..most).contains(row)));
        }
    }
}

/// What is known of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Made {
    /// The logarithm of its likelihood when it was made.
    pub log: f32,
    /// How much better than expected it was.
    pub advantage: f32,
    /// What the state's value should have been.
    pub worth: f32,
}

/// How the parts of a policy's loss count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyWeights {
    /// How far a choice's likelihood may move before its gain stops counting.
    pub clip: f32,
    /// Weight of the entropy.
    pub entropy: f32,
    /// Weight of the value's error.
    pub value: f32,
    /// What the loss of one sample is multiplied by.
    pub share: f32,
}

/// The loss of one sample's choice; writes its gradients.
pub(crate) fn loss_of_one<R: Real>(
    weights: &PolicyWeights,
    made: &Made,
    now: &Likelihood<R>,
    value: R,
    by_q: &mut [R],
    by_value: &mut R,
) -> f64 {
    let PolicyWeights { clip, entropy, value: value_weight, share } = *weights;
    let [clip, entropy, value_weight, share] = [clip, entropy, value_weight, share].map(f64::from);
    let advantage = f64::from(made.advantage);
    let ratio = (now.log - f64::from(made.log)).clamp(-20.0, 20.0).exp();
    let clipped = ratio.clamp(1.0 - clip, 1.0 + clip);
    let slope = if ratio * advantage <= clipped * advantage { -ratio * advantage } else { 0.0 };
    let gain = (ratio * advantage).min(clipped * advantage);
    let error = value.to_f64() - f64::from(made.worth);
    for ((by_q, by_log), by_entropy) in by_q.iter_mut().zip(&now.gradient).zip(&now.entropy_gradient) {
        *by_q = R::of(share * (slope * by_log.to_f64() - entropy * by_entropy.to_f64()));
    }
    *by_value = R::of(share * value_weight * error);
    share * (-gain - entropy * now.entropy + value_weight * 0.5 * error * error)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// On either side of the bounds, with either sign of the advantage.
    #[test]
    fn a_policys_gradients_are_right() {
        let (q, counts, picked, value) = ([9.0, 0.3, -0.5, 1.2], [1, 2, 1], [2, 3], 0.7);
        let weights = PolicyWeights { clip: 0.2, entropy: 0.25, value: 0.5, share: 0.125 };
        let usual = likelihood(&q, &counts, &picked).log;
        for (moved, advantage) in [(0.05, 1.5), (-0.05, -1.5), (0.5, 1.5), (0.5, -1.5), (-0.5, 1.5), (-0.5, -1.5)] {
            let made = Made { log: (usual - moved) as f32, advantage, worth: 0.2 };
            let loss = |q: &[f64; 4], value: f64, by_q: &mut [f64], by_value: &mut f64| {
                loss_of_one(&weights, &made, &likelihood(q, &counts, &picked), value, by_q, by_value)
            };
            let (mut by_q, mut by_value, mut unused) = ([0.0; 4], 0.0, ([0.0; 4], 0.0));
            loss(&q, value, &mut by_q, &mut by_value);
            let mut at = |place: usize, step: f64| {
                let (mut q, mut value) = (q, value);
                *q.get_mut(place).unwrap_or(&mut value) += step;
                loss(&q, value, &mut unused.0, &mut unused.1)
            };
            for (place, gradient) in by_q.into_iter().chain([by_value]).enumerate() {
                let slope = (at(place, 1e-5) - at(place, -1e-5)) / 2e-5;
                assert!((slope - gradient).abs() < 1e-6, "{moved} {advantage} {place}: {gradient} and not {slope}");
            }
        }
    }
}
