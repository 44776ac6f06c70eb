//! From a slack to one of a few bins.

use serde::{Deserialize, Serialize};

/// How slack, in units of the set's own scale, is cut into bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Binning {
    /// Equal widths from zero: the paper's Δ.
    Uniform {
        /// Δ.
        width: f64,
    },
    /// The first bin is as wide as `first`; each further one is wider by the same factor, up to `last`.
    Log {
        /// Width of the first bin.
        first: f64,
        /// Where the last bin begins.
        last: f64,
    },
    /// Bins found in data: where each but the first begins, ascending.
    Fitted {
        /// One fewer than there are bins.
        edges: Vec<f64>,
    },
}

impl Binning {
    /// The bin of a slack that is not negative; there are `bins`.
    pub fn bin(&self, slack: f64, bins: usize) -> usize {
        let place = match self {
            Binning::Uniform { width } => (slack / width) as usize,
            Binning::Log { first, last } => {
                // Edges at first·(e^(k·r) − 1)/(e^r − 1) would be exact; this is the same idea in closed form.
                let rate = (last / first).ln_1p() / (bins.max(2) - 1) as f64;
                ((slack / first).ln_1p() / rate) as usize
            }
            Binning::Fitted { edges } => edges.partition_point(|edge| *edge <= slack),
        };
        place.min(bins - 1)
    }

    /// Bins around the clusters of observed slacks: k-means in one dimension, begun at the quantiles.
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

    /// Why it cuts nothing into bins, if it does not.
    pub fn problem(&self, bins: usize) -> Option<String> {
        let is_good = |value: f64| value.is_finite() && value > 0.0;
        match self {
            Binning::Uniform { width } if is_good(*width) => None,
            Binning::Log { first, last } if is_good(*first) && is_good(*last) && last > first => None,
            Binning::Fitted { edges } if edges.len() < bins && edges.is_sorted_by(|a, b| a < b) => None,
            _ => Some(format!("{self:?} does not make {bins} bins")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_rise_with_slack_and_stay_in_range() {
        let fitted = Binning::fit(&(0..1_000).map(|k| f64::from(k * k) / 1e4).collect::<Vec<_>>(), 16);
        for binning in [Binning::Uniform { width: 0.25 }, Binning::Log { first: 0.05, last: 100.0 }, fitted] {
            assert_eq!(binning.problem(16), None);
            let bins: Vec<usize> = (0..4_000).map(|k| binning.bin(f64::from(k) * 0.05, 16)).collect();
            assert!(bins.is_sorted() && bins[0] == 0 && bins[3_999] == 15, "{binning:?}");
        }
        assert_eq!(Binning::Uniform { width: 0.5 }.bin(1.7, 128), 3);
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
