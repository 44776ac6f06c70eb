//! The loss of proximal policy optimization (PPO): clipped policy gain, entropy bonus and squared error of the state
//! value.

use crate::real::{double, rounded};
use crate::{Likelihood, Real, SelectedRows};

/// Batch of choices to learn a policy from, one per sample.
#[derive(Clone, Debug)]
pub struct PolicyBatch<'a> {
    /// Rows that were selected in each sample.
    pub selected: SelectedRows<'a>,
    /// Known quantities of each sample's choice.
    pub samples: &'a [PolicySample],
    /// Weights of the parts of the loss.
    pub weights: PolicyWeights,
}

/// Quantities of a choice that were recorded when it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct PolicySample {
    /// Logarithm of the choice's likelihood under the policy that made it.
    pub log_likelihood: f32,
    /// Advantage of the choice: by how much it was better than expected.
    pub advantage: f32,
    /// Target of the state value.
    pub value_target: f32,
}

/// Weights of the parts of the policy loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyWeights {
    /// Clipping bound ε: the likelihood ratio counts only between 1 − ε and 1 + ε.
    pub clip: f32,
    /// Weight of the entropy bonus.
    pub entropy: f32,
    /// Weight of the squared error of the state value.
    pub value: f32,
    /// Factor on the loss of each sample.
    pub share: f32,
}

/// Loss of one sample, given the likelihood of its choice under the current policy. Writes the gradients to `by_q` and
/// `by_value`.
pub(crate) fn loss_of_one(
    weights: &PolicyWeights,
    sample: &PolicySample,
    now: &Likelihood,
    value: Real,
    by_q: &mut [Real],
    by_value: &mut Real,
) -> f64 {
    let PolicyWeights { clip, entropy, value: value_weight, share } = *weights;
    let [clip, entropy, value_weight, share] = [clip, entropy, value_weight, share].map(f64::from);
    let advantage = f64::from(sample.advantage);
    let ratio = (now.log - f64::from(sample.log_likelihood)).clamp(-20.0, 20.0).exp();
    let clipped = ratio.clamp(1.0 - clip, 1.0 + clip);
    let slope = if ratio * advantage <= clipped * advantage { -ratio * advantage } else { 0.0 };
    let gain = (ratio * advantage).min(clipped * advantage);
    let error = double(value) - f64::from(sample.value_target);
    for ((by_q, by_log), by_entropy) in by_q.iter_mut().zip(&now.gradient).zip(&now.entropy_gradient) {
        *by_q = rounded(share * (slope * double(*by_log) - entropy * double(*by_entropy)));
    }
    *by_value = rounded(share * value_weight * error);
    share * (-gain - entropy * now.entropy + value_weight * 0.5 * error * error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood;

    /// Likelihood ratios within and beyond both clipping bounds, with either sign of the advantage.
    #[test]
    fn a_policys_gradients_are_right() {
        let (q, counts, picked, value) = ([9.0, 0.3, -0.5, 1.2], [1, 2, 1], [2, 3], 0.7);
        let weights = PolicyWeights { clip: 0.2, entropy: 0.25, value: 0.5, share: 0.125 };
        let usual = likelihood(&q, &counts, &picked).log;
        for (moved, advantage) in [(0.05, 1.5), (-0.05, -1.5), (0.5, 1.5), (0.5, -1.5), (-0.5, 1.5), (-0.5, -1.5)] {
            let sample = PolicySample { log_likelihood: (usual - moved) as f32, advantage, value_target: 0.2 };
            let loss = |q: &[f64; 4], value: f64, by_q: &mut [f64], by_value: &mut f64| {
                loss_of_one(&weights, &sample, &likelihood(q, &counts, &picked), value, by_q, by_value)
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
