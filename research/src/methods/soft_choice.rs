//! A choice of a stochastic policy: picks of jobs for the cores, one after the other without replacement, and what soft
//! actor–critic computes from them.
//!
//! Expectations over a pick are exact, given the picks before it, which are drawn.

use temponet_train::{Outputs, Sample};

/// Outputs of a critic for one state.
#[derive(Clone, Copy)]
pub(super) struct CriticOutput<'a> {
    q: &'a [f32],
    value: f32,
}

impl<'a> CriticOutput<'a> {
    pub(super) fn of(outputs: &'a Outputs, sample: usize) -> CriticOutput<'a> {
        CriticOutput { q: outputs.q(sample), value: outputs.value[sample] }
    }

    /// Advantage of running a job of a row, which is counted from 0 without the idle row, over idling.
    fn advantage(&self, row: usize) -> f64 {
        f64::from(self.q[row + 1] - self.q[0])
    }
}

/// The distribution of each pick of a choice, given the picks before it. Rows are counted from 0, without the idle row.
pub(super) struct SoftChoice {
    /// For each pick the probability of each row.
    shares: Vec<Vec<f64>>,
    /// For each pick the logarithm of the probability of one job of each row.
    logs: Vec<Vec<f64>>,
}

impl SoftChoice {
    /// Draws the picks for all cores by the softmax of `logits`; `seed` is a number from 0 to 1 that decides them.
    pub(super) fn draw(logits: &[f32], state: &Sample, seed: f64) -> SoftChoice {
        let mut left: Vec<f64> = state.counts.iter().map(|count| f64::from(*count)).collect();
        let most = logits[1..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let above: Vec<f64> = logits[1..].iter().map(|logit| f64::from(logit - most)).collect();
        let mut choice = SoftChoice { shares: Vec::new(), logs: Vec::new() };
        let (mut point, ready) = (seed, left.iter().sum::<f64>() as usize);
        for _ in 0..(state.cores as usize).min(ready) {
            let total: f64 = left.iter().zip(&above).map(|(left, above)| left * above.exp()).sum();
            let log_total = total.max(f64::MIN_POSITIVE).ln();
            let shares: Vec<f64> =
                left.iter().zip(&above).map(|(left, above)| left * (above - log_total).exp()).collect();
            choice.logs.push(above.iter().map(|above| above - log_total).collect());
            // The place of the point within the share that it falls into is as good as a new random number.
            let (mut before, mut pick) = (0.0, shares.iter().rposition(|share| *share > 0.0).unwrap_or(0));
            for (row, share) in shares.iter().enumerate() {
                if point < before + share {
                    pick = row;
                    break;
                }
                before += share;
            }
            point = ((point - before) / shares[pick].max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            left[pick] = (left[pick] - 1.0).max(0.0);
            choice.shares.push(shares);
        }
        choice
    }

    /// Rows that a pick can be of, with their probabilities and the logarithms for one job.
    fn of(&self, pick: usize) -> impl Iterator<Item = (usize, f64, f64)> {
        let both = self.shares[pick].iter().zip(&self.logs[pick]).enumerate();
        both.filter(|(_, (share, _))| **share > 0.0).map(|(row, (share, log))| (row, *share, *log))
    }

    /// Entropy of the first pick.
    pub(super) fn entropy(&self) -> f64 {
        if self.shares.is_empty() { 0.0 } else { -self.of(0).map(|(_, share, log)| share * log).sum::<f64>() }
    }

    /// Value of the state: the lower of the two critics', and α times the entropy of all picks.
    pub(super) fn soft_value(&self, alpha: f64, critics: [CriticOutput<'_>; 2]) -> f64 {
        let all = || (0..self.shares.len()).flat_map(|pick| self.of(pick));
        let [first, second] = critics.map(|critic| {
            f64::from(critic.value) + all().map(|(row, share, _)| share * critic.advantage(row)).sum::<f64>()
        });
        first.min(second) - alpha * all().map(|(_, share, log)| share * log).sum::<f64>()
    }

    /// Loss of the policy, times `weight`: α times the negative entropy of each pick, less its expected advantage by
    /// the lower critic. Writes the gradient with respect to the logits to `slopes`.
    pub(super) fn policy_loss(
        &self,
        alpha: f64,
        critics: [CriticOutput<'_>; 2],
        weight: f64,
        slopes: &mut [f32],
    ) -> f64 {
        let worth = |row: usize| {
            let [first, second] = critics.map(|critic| f64::from(critic.value) + critic.advantage(row));
            first.min(second)
        };
        let mut loss = 0.0;
        for pick in 0..self.shares.len() {
            let cost = |(row, _, log): (usize, f64, f64)| alpha * log - worth(row);
            let mean: f64 = self.of(pick).map(|one| one.1 * cost(one)).sum();
            loss += weight * mean;
            for one in self.of(pick) {
                slopes[one.0 + 1] += (weight * one.1 * (cost(one) - mean)) as f32;
            }
        }
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(counts: &[u32], cores: u32) -> Sample {
        let tokens = vec![0; counts.len()];
        let bias = vec![0.0; 1 + counts.len()];
        Sample { idle: vec![0], tokens, real: vec![], counts: counts.to_vec(), bias, cores, past: None }
    }

    #[test]
    fn picks_are_drawn_with_their_probabilities_and_without_replacement() {
        let (logits, state) = ([9.0, 0.0, 1.0, -1.0], state(&[2, 1, 1], 2));
        let total = 2.0 + 1f64.exp() + (-1f64).exp();
        let (mut second_after, mut count) = (0.0, 0.0);
        for step in 0..10_000 {
            let choice = SoftChoice::draw(&logits, &state, (f64::from(step) + 0.5) / 1e4);
            assert!((choice.shares[0][0] - 2.0 / total).abs() < 1e-6 && choice.shares.len() == 2);
            // The second row has a single job. It is gone once it is picked.
            second_after += f64::from(u8::from(choice.shares[1][1] == 0.0));
            count += 1.0;
        }
        assert!((second_after / count - 1f64.exp() / total).abs() < 1e-3, "{}", second_after / count);
    }

    #[test]
    fn on_one_core_value_and_slopes_are_those_of_the_discrete_algorithm() {
        let (state, alpha) = (state(&[1, 2, 1], 1), 0.3);
        let logits = [5.0f32, 0.4, -0.3, 0.9];
        let (first, second) = ([0.1f32, 0.5, 0.2, -0.4], [0.0f32, 0.2, 0.9, 0.1]);
        let critics = [CriticOutput { q: &first, value: 1.0 }, CriticOutput { q: &second, value: 0.7 }];
        let loss = |logits: &[f32], slopes: &mut [f32]| {
            SoftChoice::draw(logits, &state, 0.5).policy_loss(alpha, critics, 1.0, slopes)
        };
        let mut slopes = [0.0; 4];
        loss(&logits, &mut slopes);
        assert_eq!(slopes[0], 0.0, "idling is masked");
        for place in 1..4 {
            let at = |step: f32| {
                let mut moved = logits;
                moved[place] += step;
                loss(&moved, &mut [0.0; 4])
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - f64::from(slopes[place])).abs() < 1e-4, "{place}: {slope} {}", slopes[place]);
        }
        // The best policy for these critics is proportional to exp(worth / α): there the slopes vanish.
        let worth = [1.0 + 0.4, 1.0 + 0.1, 0.5f64].map(|first| first);
        let lower = [worth[0].min(0.7 + 0.2), worth[1].min(0.7 + 0.9), worth[2].min(0.7 + 0.1)];
        let best = [0.0, lower[0] / alpha, lower[1] / alpha, lower[2] / alpha].map(|logit| logit as f32);
        let mut slopes = [0.0; 4];
        let least = loss(&best, &mut slopes);
        assert!(slopes.iter().all(|slope| slope.abs() < 1e-6), "{slopes:?}");
        let soft = -alpha
            * [1.0, 2.0, 1.0].iter().zip(lower).map(|(count, worth)| count * (worth / alpha).exp()).sum::<f64>().ln();
        assert!((least - soft).abs() < 1e-6, "{least} {soft}");
    }
}
