//! The loss of policy optimisation.

use crate::{Likelihood, Real, SelectedRows};

/// Choices to learn a policy from, sample by sample.
#[derive(Clone, Debug)]
pub struct PolicyBatch<'a> {
    /// The rows chosen.
    pub selected: SelectedRows<'a>,
    /// What is known of each sample's choice.
    pub samples: &'a [PolicySample],
    /// How they count.
    pub weights: PolicyWeights,
}

/// What is known of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct PolicySample {
    /// The logarithm of its likelihood when it was made.
    pub log_likelihood: f32,
    /// How much better than expected it was.
    pub advantage: f32,
    /// What the state's value should have been.
    pub value_target: f32,
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
    sample: &PolicySample,
    now: &Likelihood<R>,
    value: R,
    by_q: &mut [R],
    by_value: &mut R,
) -> f64 {
    let PolicyWeights { clip, entropy, value: value_weight, share } = *weights;
    let [clip, entropy, value_weight, share] = [clip, entropy, value_weight, share].map(f64::from);
    let advantage = f64::from(sample.advantage);
    let ratio = (now.log - f64::from(sample.log_likelihood)).clamp(-20.0, 20.0).exp();
    let clipped = ratio.clamp(1.0 - clip, 1.0 + clip);
    let slope = if ratio * advantage <= clipped * advantage { -ratio * advantage } else { 0.0 };
    let gain = (ratio * advantage).min(clipped * advantage);
    let error = value.to_f64() - f64::from(sample.value_target);
    for ((by_q, by_log), by_entropy) in by_q.iter_mut().zip(&now.gradient).zip(&now.entropy_gradient) {
        *by_q = R::of(share * (slope * by_log.to_f64() - entropy * by_entropy.to_f64()));
    }
    *by_value = R::of(share * value_weight * error);
    share * (-gain - entropy * now.entropy + value_weight * 0.5 * error * error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood;

    /// On either side of the bounds, with either sign of the advantage.
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
