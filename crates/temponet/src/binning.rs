//! Edges of the slack bins: fixed by a formula, or fitted to observed slacks.
//!
//! This module defines the edges. Finding the bin of a slack, which is done for every job at every decision, is the job
//! of `bins.rs`.

use serde::{Deserialize, Serialize};

use crate::TokenizerError;

/// How slack is divided into bins. Slacks are in units of [`crate::stages::Scale::unit`], the median wcet of the task
/// set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Binning {
    /// Bins of equal width, starting at zero, as in the paper.
    Uniform {
        /// Width of a bin, the paper's Δ; positive.
        width: f64,
    },
    /// Bins that widen by a constant factor. The factor is chosen so that the last bin begins at `last`.
    Log {
        /// Slack below which bins are nearly equal in width, and above which they are nearly logarithmic; positive and
        /// less than `last`.
        first: f64,
        /// Slack at which the last bin begins.
        last: f64,
    },
    /// Bins fitted to data; see [`Binning::fit`].
    Fitted {
        /// Slack at which each bin but the first begins, strictly ascending; fewer than there are bins.
        edges: Vec<f64>,
    },
}

impl Binning {
    /// Returns the slack at which each of `bins` bins but the first begins, ascending.
    pub fn edges(&self, bins: usize) -> Vec<f64> {
        let inner = 1..bins;
        match self {
            Binning::Uniform { width } => inner.map(|k| k as f64 * width).collect(),
            Binning::Log { first, last } => {
                let rate = (last / first).ln_1p() / (bins.max(2) - 1) as f64;
                inner.map(|k| first * (k as f64 * rate).exp_m1()).collect()
            }
            Binning::Fitted { edges } => edges.clone(),
        }
    }

    /// Fits bins to the clusters of observed slacks by one-dimensional k-means, starting from the quantiles.
    ///
    /// Negative and infinite slacks are ignored. There are fewer than `bins` bins if the slacks have too few distinct
    /// values.
    pub fn fit(slacks: &[f64], bins: usize) -> Binning {
        let mut sorted: Vec<f64> = slacks.iter().copied().filter(|slack| slack.is_finite() && *slack >= 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let mut centres: Vec<f64> = Vec::new();
        for k in 0..bins {
            if let Some(value) = sorted.get((2 * k + 1) * sorted.len() / (2 * bins)) {
                centres.push(*value);
            }
        }
        centres.dedup();
        let sums: Vec<f64> = std::iter::once(0.0)
            .chain(sorted.iter().scan(0.0, |sum, value| {
                *sum += value;
                Some(*sum)
            }))
            .collect();
        let borders =
            |centres: &[f64]| -> Vec<f64> { centres.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect() };
        for _ in 0..100 {
            let cuts = borders(&centres);
            let mut ends: Vec<usize> = cuts.iter().map(|cut| sorted.partition_point(|value| value < cut)).collect();
            ends.push(sorted.len());
            let mut begin = 0;
            let mut moved = false;
            for (centre, end) in centres.iter_mut().zip(ends) {
                if end > begin {
                    let mean = (sums[end] - sums[begin]) / (end - begin) as f64;
                    moved |= (mean - *centre).abs() > 1e-12 * mean.abs();
                    *centre = mean;
                }
                begin = end;
            }
            if !moved {
                break;
            }
        }
        Binning::Fitted { edges: borders(&centres) }
    }

    /// Returns why the parameters do not define `bins` bins; none if they do.
    pub fn problem(&self, bins: usize) -> Option<TokenizerError> {
        let is_good = |value: f64| value.is_finite() && value > 0.0;
        match self {
            Binning::Uniform { width } if is_good(*width) => None,
            Binning::Log { first, last } if is_good(*first) && is_good(*last) && last > first => None,
            Binning::Fitted { edges } if edges.len() < bins && edges.is_sorted_by(|a, b| a < b) => None,
            _ => Some(TokenizerError::Binning { binning: self.clone(), bins }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binning_has_rising_edges() {
        let fitted = Binning::fit(&(0..1_000).map(|k| f64::from(k * k) / 1e4).collect::<Vec<_>>(), 16);
        for binning in [Binning::Uniform { width: 0.25 }, Binning::Log { first: 0.05, last: 100.0 }, fitted] {
            assert_eq!(binning.problem(16), None);
            let edges = binning.edges(16);
            assert!(edges.len() == 15 && edges.is_sorted() && edges[0] > 0.0 && edges[14] < 199.0, "{edges:?}");
        }
        assert_eq!(Binning::Uniform { width: 0.5 }.edges(5), [0.5, 1.0, 1.5, 2.0]);
        let log = Binning::Log { first: 0.05, last: 100.0 }.edges(16);
        assert!(
            (log[14] - 100.0).abs() < 1e-9 && log.windows(2).all(|pair| pair[1] - pair[0] > pair[0] * 0.5),
            "{log:?}"
        );
        assert!(Binning::Uniform { width: 0.0 }.problem(4).is_some());
        assert!(Binning::Fitted { edges: vec![2.0, 1.0] }.problem(4).is_some());
    }

    #[test]
    fn k_means_finds_the_clusters() {
        let data: Vec<f64> =
            [1.0, 10.0, 50.0].iter().flat_map(|centre| (0..50).map(move |k| centre + f64::from(k) * 0.01)).collect();
        let Binning::Fitted { edges } = Binning::fit(&data, 3) else { panic!() };
        assert!(edges.len() == 2 && (2.0..10.0).contains(&edges[0]) && (11.0..50.0).contains(&edges[1]), "{edges:?}");
        assert_eq!(Binning::fit(&[], 4), Binning::Fitted { edges: vec![] });
    }
}
