//! Online quantile regression of the logarithm of lengths on the caller's features.
//!
//! Each quantile has weights of its own, moved along the gradient of the pinball loss (Koenker and Bassett, 1978) by
//! Adagrad (Duchi, Hazan and Singer, 2011), whose steps need no rate that fits the data. A feature enters as it is and as
//! its logarithm, each with mean 0 and variance 1 as far as seen, so lengths that are proportional to a feature, to a
//! power of it or to a sum of several are all within reach. A length that was cut off below the prediction may be on
//! either side of it: it moves the weights by the share of such lengths that go beyond it, as far as others tell (as in
//! Portnoy, 2003).

use crate::sketch::{Sketch, UNIT};

/// Length of the first step, in logarithms.
const STEP: f64 = 0.5;
/// Steps do not become shorter than after this many, so that weights follow a drift.
const MOST_STEPS: f64 = 4096.0;
/// Distance from the mean, in standard deviations, beyond which a feature counts as this far.
const FARTHEST: f64 = 4.0;
/// Lengths for each weight that have to be seen before anything is predicted.
const LENGTHS_PER_WEIGHT: f64 = 8.0;

#[derive(Clone, Debug)]
pub(crate) struct Regressor {
    /// Number of features of a request.
    features: usize,
    /// Mean and variance of each input.
    moments: Vec<Moments>,
    /// The first is that of the median.
    lines: Vec<Line>,
    /// Ratios of lengths to their predicted medians.
    ratios: Sketch,
    seen: f64,
    /// Logarithms of the shortest length seen, the longest that was complete, and the longest that was cut off.
    range: [f64; 3],
    /// Inputs of the last request; kept for its memory.
    inputs: Vec<f64>,
}

/// Weights of one quantile.
#[derive(Clone, Debug)]
struct Line {
    share: f64,
    weights: Vec<f64>,
    /// Sums of the squares of the gradient.
    squares: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        // Squares of what is greater would not be finite, and would stay so.
        let value = value.clamp(-1e100, 1e100);
        self.count = (self.count + 1.0).min(MOST_STEPS);
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += (off * (value - self.mean) - self.squares) / self.count;
    }

    fn normal(&self, value: f64) -> f64 {
        let deviation = self.squares.sqrt();
        if deviation > 1e-9 { ((value - self.mean) / deviation).clamp(-FARTHEST, FARTHEST) } else { 0.0 }
    }
}

impl Regressor {
    pub fn new(features: usize, shares: &[f64]) -> Regressor {
        // Each feature twice, the estimate, and a constant.
        let width = 2 * features + 2;
        let line = |share: &f64| Line { share: *share, weights: vec![0.0; width], squares: vec![1e-6; width] };
        Regressor {
            features,
            moments: vec![Moments::default(); width - 1],
            lines: shares.iter().map(line).collect(),
            ratios: Sketch::new(),
            seen: 0.0,
            range: [f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
            inputs: Vec::with_capacity(width),
        }
    }

    /// Returns the length at the quantile with this place, in nanoseconds. None if too little has been seen.
    pub fn predict(&mut self, features: &[f64], estimate: Option<f64>, quantile: usize) -> Option<u64> {
        if self.seen < LENGTHS_PER_WEIGHT * (self.moments.len() + 1) as f64 {
            return None;
        }
        self.read(features, estimate, false);
        // Where lines go on, nothing bears them out: what is refused for such a length never tells how long it is.
        let [least, complete, cut_off] = self.range;
        let most = if cut_off >= complete { cut_off + 1.0 } else { complete };
        let logarithm = self.lines[quantile].value(&self.inputs).clamp(least, most);
        Some(logarithm.exp() as u64)
    }

    /// Learns from a length in nanoseconds that was complete, or was cut off there.
    pub fn observe(&mut self, features: &[f64], estimate: Option<f64>, length: u64, is_complete: bool) {
        let logarithm = (length.max(1) as f64).ln();
        if self.seen == 0.0 {
            let constant = self.moments.len();
            self.lines.iter_mut().for_each(|line| line.weights[constant] = logarithm);
        }
        self.seen += 1.0;
        let longest = &mut self.range[if is_complete { 1 } else { 2 }];
        *longest = longest.max(logarithm);
        self.range[0] = self.range[0].min(logarithm);
        self.read(features, estimate, true);
        let median = self.lines[0].value(&self.inputs);
        let ratio = |logarithm: f64| (UNIT * (logarithm - median).clamp(-20.0, 20.0).exp()) as u64;
        let beyond = self.ratios.share_beyond(ratio(logarithm));
        for line in &mut self.lines {
            let predicted = line.value(&self.inputs);
            // Share of lengths like this one that the prediction covers.
            let covered = match (logarithm <= predicted, is_complete) {
                (true, true) => 1.0,
                (true, false) if beyond > 0.0 => 1.0 - self.ratios.share_beyond(ratio(predicted)) / beyond,
                _ => 0.0,
            };
            line.step(line.share - covered, &self.inputs);
        }
        self.ratios.add(ratio(logarithm), is_complete);
    }

    /// Fills the inputs. Features that are not finite, or missing, count as the mean.
    fn read(&mut self, features: &[f64], estimate: Option<f64>, learns: bool) {
        self.inputs.clear();
        let features = (0..self.features).map(|place| features.get(place).copied().filter(|value| value.is_finite()));
        let both = features.flat_map(|value| [value, value.map(|value| value.signum() * value.abs().ln_1p())]);
        let inputs = both.chain([estimate.map(f64::ln)]);
        for (value, moments) in inputs.zip(&mut self.moments) {
            if let (Some(value), true) = (value, learns) {
                moments.add(value);
            }
            self.inputs.push(value.map_or(0.0, |value| moments.normal(value)));
        }
        self.inputs.push(1.0);
    }
}

impl Line {
    fn value(&self, inputs: &[f64]) -> f64 {
        self.weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum()
    }

    fn step(&mut self, slope: f64, inputs: &[f64]) {
        for ((weight, squares), input) in self.weights.iter_mut().zip(&mut self.squares).zip(inputs) {
            let gradient = slope * input;
            *squares = (*squares + gradient * gradient).min(MOST_STEPS * self.share * (1.0 - self.share));
            *weight += STEP * gradient / squares.sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform numbers from 0 to 1.
    struct Draws(u64);

    impl Draws {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        /// About normal, with mean 0 and variance 1.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    /// Prompt and answer tokens, and the length in nanoseconds of a request with them.
    fn drawn(draws: &mut Draws) -> ([f64; 2], f64) {
        let (prompt, answer) = ((6.0 + 1.2 * draws.normal()).exp(), (4.5 + 0.8 * draws.normal()).exp());
        ([prompt, answer], (0.1 * prompt + 25.0 * answer) * 1e6 * (0.3 * draws.normal()).exp())
    }

    fn shares_covered(cut_at: f64) -> [f64; 2] {
        let mut draws = Draws(7);
        let mut regressor = Regressor::new(2, &[0.5, 0.9]);
        for _ in 0..20_000 {
            let (features, length) = drawn(&mut draws);
            regressor.observe(&features, None, length.min(cut_at) as u64, length <= cut_at);
        }
        let mut covered = [0.0; 2];
        for _ in 0..5_000 {
            let (features, length) = drawn(&mut draws);
            for (place, covered) in covered.iter_mut().enumerate() {
                let predicted = regressor.predict(&features, None, place).unwrap();
                *covered += f64::from(u8::from(length <= predicted as f64)) / 5_000.0;
            }
        }
        covered
    }

    #[test]
    fn quantiles_cover_their_shares_of_lengths() {
        let [median, decile] = shares_covered(f64::INFINITY);
        assert!((median - 0.5).abs() < 0.06 && (decile - 0.9).abs() < 0.04, "{median} {decile}");
    }

    /// About one length in four is cut off; taking them as complete would bring the ninth decile far below its share.
    #[test]
    fn lengths_that_were_cut_off_do_not_shorten_the_others() {
        let [median, decile] = shares_covered(4e9);
        assert!((median - 0.5).abs() < 0.06 && decile > 0.8, "{median} {decile}");
    }

    #[test]
    fn features_explain_lengths() {
        let mut draws = Draws(3);
        let mut regressor = Regressor::new(2, &[0.5]);
        let mut error = 0.0;
        for count in 0..12_000 {
            let (features, length) = drawn(&mut draws);
            if let (Some(predicted), true) = (regressor.predict(&features, None, 0), count >= 10_000) {
                error += (predicted as f64 / length).ln().abs() / 2_000.0;
            }
            regressor.observe(&features, None, length as u64, true);
        }
        // The noise alone has a mean of 0.24; without features it would be 0.7.
        assert!(error < 0.32, "{error}");
    }

    /// Lengths that grow with a feature up to where they are known, and all that is beyond is refused for its length.
    #[test]
    fn no_length_is_believed_beyond_those_that_were_seen() {
        let mut draws = Draws(11);
        let mut regressor = Regressor::new(1, &[0.5]);
        for _ in 0..2_000 {
            let feature = 1.0 + 9.0 * draws.next();
            regressor.observe(&[feature], None, (feature * feature * 1e6) as u64, true);
        }
        let longest = regressor.predict(&[1e6], None, 0).unwrap();
        assert!((80_000_000..=101_000_000).contains(&longest), "{longest}");
        // One that was cut off beyond them says that there are longer ones.
        regressor.observe(&[10.0], None, 200_000_000, false);
        assert!(regressor.predict(&[1e6], None, 0).unwrap() > longest);
    }

    #[test]
    fn anything_may_come_as_a_feature() {
        let mut regressor = Regressor::new(2, &[0.5]);
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, 0.0, -1.0, 1e300];
        for count in 0..5_000 {
            let features = [odd[count % 7], odd[count / 7 % 7]];
            regressor.observe(&features[..count % 3], Some(1e-300), [0, 1, u64::MAX][count % 3], count % 2 == 0);
            if let Some(length) = regressor.predict(&features, Some(f64::MAX), 0) {
                assert!(length > 0 || regressor.range[0] < 1.0, "{length}");
            }
            assert!(regressor.lines[0].weights.iter().all(|weight| weight.is_finite()));
        }
    }
}
