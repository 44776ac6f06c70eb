//! Slack and remaining wcet as real numbers instead of a slack bin: the paper's ablation without the Urgency Tokenizer.

use serde::{Deserialize, Serialize};
use temponet_infer::RealInput;

use crate::TokenizerError;

/// How slack and remaining wcet become the two numbers that a network reads.
///
/// Both are in units of [`crate::stages::Scale::unit`], the median wcet of the task set, and are clamped to ±1000. In
/// pairs, slack comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Continuous {
    /// The numbers themselves.
    Raw,
    /// Z-scores: the mean of observed values is subtracted, and the result is divided by their standard deviation.
    ZScore {
        /// Means of slack and of remaining wcet, from −1000 to 1000.
        mean: [f64; 2],
        /// Standard deviations of slack and of remaining wcet, from 10⁻⁶ to 1000.
        deviation: [f64; 2],
    },
    /// The z-score of slack alone. The remaining wcet is hidden: its number is always zero.
    Slack {
        /// Mean of the slack, from −1000 to 1000.
        mean: f64,
        /// Standard deviation of the slack, from 10⁻⁶ to 1000.
        deviation: f64,
    },
    /// The numbers themselves, which then pass through a hidden layer of the network.
    Mlp {
        /// Width of the hidden layer; at least 1.
        hidden: usize,
    },
}

/// Greatest magnitude of slack and remaining wcet, in units of the scale; greater values are clamped.
const LIMIT: f64 = 1_000.0;
/// Least standard deviation to divide by; [`Continuous::fit`] replaces smaller ones by 1.
const LEAST_DEVIATION: f64 = 1e-6;

impl Continuous {
    /// Fits z-scores to observed pairs of slack and remaining wcet. A number that never varies is only shifted, with a
    /// deviation of 1.
    pub fn fit(observed: &[[f64; 2]]) -> Continuous {
        let count = observed.len().max(1) as f64;
        let mean = [0, 1].map(|of| observed.iter().map(|pair| limited(*pair)[of]).sum::<f64>() / count);
        let deviation = [0, 1].map(|of| {
            let squares = observed.iter().map(|pair| (limited(*pair)[of] - mean[of]).powi(2));
            let deviation = (squares.sum::<f64>() / count).sqrt();
            if deviation < LEAST_DEVIATION { 1.0 } else { deviation }
        });
        Continuous::ZScore { mean, deviation }
    }

    /// The same without the remaining wcet: z-scores become those of slack alone. Other ways of reading slack have no
    /// such form.
    pub fn without_remaining(&self) -> Option<Continuous> {
        match self {
            Continuous::ZScore { mean, deviation } => {
                Some(Continuous::Slack { mean: mean[0], deviation: deviation[0] })
            }
            Continuous::Slack { .. } => Some(self.clone()),
            Continuous::Raw | Continuous::Mlp { .. } => None,
        }
    }

    /// Returns the real inputs that the network must have.
    pub fn input(&self) -> RealInput {
        let hidden = if let Continuous::Mlp { hidden } = self { *hidden } else { 0 };
        RealInput { inputs: 2, hidden }
    }

    /// Returns why the parameters are invalid; none if they are valid.
    pub fn problem(&self) -> Option<TokenizerError> {
        match self {
            Continuous::Mlp { hidden: 0 } => Some(TokenizerError::EmptyHiddenLayer),
            Continuous::ZScore { mean, deviation } => {
                let is_bad = !mean.iter().zip(deviation).all(|(mean, deviation)| is_z_score(*mean, *deviation));
                is_bad.then_some(TokenizerError::ZScores { mean: *mean, deviation: *deviation })
            }
            Continuous::Slack { mean, deviation } => (!is_z_score(*mean, *deviation))
                .then_some(TokenizerError::ZScores { mean: [*mean, 0.0], deviation: [*deviation, 1.0] }),
            _ => None,
        }
    }

    /// Returns the network's input for a pair of slack and remaining wcet.
    pub fn numbers(&self, pair: [f64; 2]) -> [f32; 2] {
        let pair = limited(pair);
        match self {
            Continuous::ZScore { mean, deviation } => [0, 1].map(|of| ((pair[of] - mean[of]) / deviation[of]) as f32),
            Continuous::Slack { mean, deviation } => [((pair[0] - mean) / deviation) as f32, 0.0],
            _ => pair.map(|number| number as f32),
        }
    }

    /// Returns the slack that [`Continuous::numbers`] turned into `number`: its inverse, up to rounding and clamping.
    pub fn slack(&self, number: f32) -> f64 {
        match self {
            Continuous::ZScore { mean: [mean, _], deviation: [deviation, _] }
            | Continuous::Slack { mean, deviation } => f64::from(number) * deviation + mean,
            _ => f64::from(number),
        }
    }
}

/// Whether a mean and a standard deviation are within their limits.
fn is_z_score(mean: f64, deviation: f64) -> bool {
    mean.abs() <= LIMIT && (LEAST_DEVIATION..=LIMIT).contains(&deviation)
}

fn limited(pair: [f64; 2]) -> [f64; 2] {
    pair.map(|number| number.clamp(-LIMIT, LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z_scores_have_no_mean_and_a_deviation_of_one() {
        let observed: Vec<[f64; 2]> = (0..100).map(|k| [f64::from(k * k % 37) - 9.0, 4.0]).collect();
        let fitted = Continuous::fit(&observed);
        assert_eq!(fitted.problem(), None);
        let scores: Vec<[f32; 2]> = observed.iter().map(|pair| fitted.numbers(*pair)).collect();
        let mean = scores.iter().map(|pair| pair[0]).sum::<f32>() / 100.0;
        let variance = scores.iter().map(|pair| pair[0] * pair[0]).sum::<f32>() / 100.0;
        assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-5, "{mean} {variance}");
        assert!(scores.iter().all(|pair| pair[1] == 0.0), "a number that never varies becomes zero");
        assert!(observed.iter().zip(&scores).all(|(pair, score)| (fitted.slack(score[0]) - pair[0]).abs() < 1e-4));
        let alone = fitted.without_remaining().unwrap();
        assert_eq!(alone.problem(), None);
        assert_eq!(alone.numbers([3.0, 1.0]), alone.numbers([3.0, 50.0]), "the remaining wcet is hidden");
        assert_eq!(alone.numbers([3.0, 1.0])[0], fitted.numbers([3.0, 1.0])[0]);
    }

    #[test]
    fn nothing_is_infinite() {
        for continuous in [Continuous::Raw, Continuous::fit(&[]), Continuous::fit(&[[f64::INFINITY, 0.0], [0.0, 1.0]])]
        {
            assert_eq!(continuous.problem(), None);
            assert!(continuous.numbers([-1e300, f64::INFINITY]).iter().all(|number| number.is_finite()));
        }
        let narrow = Continuous::ZScore { mean: [0.0; 2], deviation: [1.0, 0.0] };
        assert!(narrow.problem().unwrap().to_string().contains("deviation [1.0, 0.0]"));
        assert!(Continuous::Mlp { hidden: 0 }.problem().is_some());
    }
}
