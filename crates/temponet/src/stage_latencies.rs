//! Expected latencies of the parts of a decision, by which the decision budget chooses who decides.
//!
//! A [`Calibration`] is measured once (`learned/measurement.rs`) or given by the user, and never changes afterwards. So
//! the choice depends only on the number of jobs, rows and events of a decision, and decisions stay deterministic.
//!
//! A latency is a table over a few sizes with straight lines in between. The parts of a decision take n, n log n, n² or
//! n³ steps, and these curves lie below the line between any two of their points.

use serde::{Deserialize, Serialize};

/// Sizes at which the latencies of a [`LatencyTable`] are given.
// The network computes 16 rows at a time. Schedulers that plan, plan with at most 2048 jobs, so their curves bend
// there.
pub const MEASURED_SIZES: [usize; 7] = [1, 16, 32, 128, 512, 2_048, 8_192];

/// Numbers of cores at which [`StageLatencies`] are given.
pub const MEASURED_CORES: [usize; 2] = [1, 8];

/// Expected latency in nanoseconds at each of the [`MEASURED_SIZES`], which should not decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LatencyTable(pub [u64; MEASURED_SIZES.len()]);

impl LatencyTable {
    /// Returns the expected latency at any size, in nanoseconds: linear between the measured sizes, constant below the
    /// first, and quadratic beyond the last.
    pub fn at(&self, size: usize) -> u64 {
        let place = MEASURED_SIZES.partition_point(|measured| *measured < size);
        let above = self.0.get(place).copied();
        match (place.checked_sub(1), above) {
            (None, _) => self.0[0],
            (Some(below), Some(above)) => {
                let (from, to) = (MEASURED_SIZES[below], MEASURED_SIZES[place]);
                on_line(self.0[below], above, size - from, to - from)
            }
            (Some(last), None) => {
                let ratio = |latency: u64| on_line(0, latency, size, MEASURED_SIZES[last]);
                ratio(ratio(self.0[last]))
            }
        }
    }

    /// Returns the table on a number of cores, given the tables on each of the [`MEASURED_CORES`]. Latencies grow
    /// linearly with the number of cores.
    fn on_cores([few, many]: [&LatencyTable; MEASURED_CORES.len()], cores: usize) -> LatencyTable {
        let steps = cores.saturating_sub(MEASURED_CORES[0]);
        let width = MEASURED_CORES[1] - MEASURED_CORES[0];
        LatencyTable(std::array::from_fn(|place| on_line(few.0[place], many.0[place].max(few.0[place]), steps, width)))
    }
}

/// Returns the value at `step` on the straight line that is `first` at 0 and `second` at `width`. Beyond `width`,
/// `second` must not be less than `first`.
fn on_line(first: u64, second: u64, step: usize, width: usize) -> u64 {
    let (first, second, step, width) = (i128::from(first), i128::from(second), step as i128, width as i128);
    u64::try_from(first + (second - first).saturating_mul(step) / width).unwrap_or(u64::MAX)
}

/// Expected latencies of the parts of a decision that depend on the number of ready jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageLatencies {
    /// Tokens and advice, and the pass over all jobs that maps their Q-values to cores.
    pub observation: LatencyTable,
    /// Decision of the usual fallback.
    pub fallback: LatencyTable,
    /// Decision of EDF with two events: a release and a completion.
    pub edf: LatencyTable,
}

impl StageLatencies {
    /// Returns the latencies on a number of cores, given those on each of the [`MEASURED_CORES`].
    fn on_cores([few, many]: &[StageLatencies; MEASURED_CORES.len()], cores: usize) -> StageLatencies {
        let table = |of: fn(&StageLatencies) -> &LatencyTable| LatencyTable::on_cores([of(few), of(many)], cores);
        StageLatencies {
            observation: table(|stages| &stages.observation),
            fallback: table(|stages| &stages.fallback),
            edf: table(|stages| &stages.edf),
        }
    }
}

/// Expected latencies of the parts of a decision, for [`crate::Options::budget_ns`].
///
/// A calibration holds for one model, one set of [`crate::Options`], one build of the program and one machine. Without
/// one in the options, a scheduler with a budget measures its own when it is built, so two processes may decide
/// differently. Measure once and give the same calibration to all to avoid that; it can be stored with serde.
///
/// ```
/// use std::sync::Arc;
/// use temponet::{Calibration, Model, Options, Temponet};
///
/// let model = Arc::new(Model::built_in()?);
/// let options = Options { budget_ns: Some(100_000), ..Options::default() };
/// let calibration = Calibration::measure(&model, options)?;
/// let scheduler = Temponet::new(model, Options { calibration: Some(calibration), ..options })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Network, by the number of rows, the idle row included, rounded up to a multiple of
    /// [`temponet_infer::ROW_GROUP`].
    pub network: LatencyTable,
    /// Mapping of Q-values to cores, by the number of cores, where dispatching is free.
    pub mapping: LatencyTable,
    /// Like `mapping`, where context switches or migrations cost time, and running jobs may keep their cores.
    pub staying: LatencyTable,
    /// Other parts by the number of ready jobs, on each of the [`MEASURED_CORES`], where all tasks have the same value
    /// and criticality.
    pub equal: [StageLatencies; MEASURED_CORES.len()],
    /// Like `equal`, where tasks differ in value or criticality. The fallback and one of the advisors are slower there.
    pub differing: [StageLatencies; MEASURED_CORES.len()],
}

impl Calibration {
    /// Returns the latencies that depend on the number of ready jobs, on a system with this many cores.
    pub(crate) fn stages(&self, differs: bool, cores: usize) -> StageLatencies {
        StageLatencies::on_cores(if differs { &self.differing } else { &self.equal }, cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_exact_where_measured_linear_in_between_and_quadratic_beyond() {
        let table = LatencyTable([10, 160, 320, 1_280, 5_120, 20_480, 1_000_000]);
        assert!(MEASURED_SIZES.iter().zip(table.0).all(|(size, latency)| table.at(*size) == latency));
        assert_eq!([0, 1, 2, 9, 100, 2_047].map(|size| table.at(size)), [10, 10, 20, 90, 1_000, 20_470]);
        assert_eq!(table.at(2 * 8_192), 4_000_000);
        assert!((1..20_000).all(|size| table.at(size) <= table.at(size + 1)));
        // No table of a user makes the arithmetic overflow.
        assert_eq!(LatencyTable([u64::MAX; 7]).at(usize::MAX), u64::MAX);
        assert_eq!(LatencyTable([9, 9, 1, 1, 1, 1, 0]).at(24), 5);
    }

    #[test]
    fn latencies_grow_linearly_with_the_cores() {
        let stage = |latency: u64| StageLatencies { edf: LatencyTable([latency; 7]), ..StageLatencies::default() };
        let calibration = Calibration { equal: [stage(100), stage(170)], ..Calibration::default() };
        let on = |cores: usize| calibration.stages(false, cores).edf.at(5);
        assert_eq!([1, 2, 8, 15].map(on), [100, 110, 170, 240]);
        assert_eq!(calibration.stages(true, 8), StageLatencies::default());
    }
}
