//! The clairvoyant optimum: the greatest number, or the greatest weight, of deadlines that any scheduler could have met
//! that knew every release and every execution time beforehand. Preemption and migration are free here, so no real
//! schedule can beat it.
//!
//! A run is cut into parts that do not affect each other: no window reaches across, or, on one core, all work is done
//! before the next release. Each part is solved on its own, and equal parts only once. On one core, `labels` searches
//! at the prices of the linear relaxation, which is exact for most sets. On several cores the problem is NP-hard;
//! `branch` does branch and bound on the relaxation, and the result says how far it may be off.
//!
//! For jobs that must not be interrupted, `non_preemptive` searches over their sequences on one core. Its schedules are
//! also possible where jobs can be interrupted at some points only, and the optimum with preemption is an upper bound
//! there.
//!
//! For cores of different speeds, `uniform` has an upper bound by a relaxation.

mod branch;
mod flow_network;
mod labels;
mod lawler;
mod non_preemptive;
mod parts;
mod relaxation;
mod uniform;

use temponet_task::{CoreId, Time};

pub use lawler::lawler;
pub use non_preemptive::{Sequence, optimum_without_preemption};
pub use uniform::bound_by_speed;

/// Tolerance for the rounding of floating-point sums.
const WHOLE: f64 = 1e-6;

/// A job whose execution time is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OracleJob {
    /// Earliest start.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// Actual execution time.
    pub execution: Time,
    /// Weight of meeting the deadline; positive.
    pub weight: f64,
}

/// Bounds on the greatest weight of jobs in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// Upper bound: no schedule has more weight in time.
    pub upper: f64,
    /// Lower bound: the jobs in `chosen` have this weight and can be in time together.
    pub lower: f64,
    /// Whether each job belongs to the schedule behind `lower`.
    pub chosen: Vec<bool>,
}

impl Optimum {
    /// Whether `lower` is proved to be the optimum.
    pub fn is_exact(&self) -> bool {
        self.upper <= self.lower * (1.0 + 1e-12)
    }
}

fn weight_of(jobs: &[OracleJob], chosen: &[bool]) -> f64 {
    jobs.iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(job, _)| job.weight).sum()
}

/// A stretch of time on one core that is given to one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the core.
    pub core: CoreId,
    /// Index of the job.
    pub job: usize,
    /// Start date.
    pub start: Time,
    /// End date.
    pub end: Time,
}

/// Number of steps that take about one second.
pub const STEPS_PER_SECOND: f64 = 4e7;

/// Computes the greatest weight of jobs that `cores` cores can complete in time. The search takes about `steps`
/// elementary steps (see [`STEPS_PER_SECOND`]). They are counted, not timed, so the result does not depend on the
/// machine.
pub fn optimum(jobs: &[OracleJob], cores: usize, steps: u64) -> Optimum {
    let parts = parts::split(jobs, cores);
    parts::solve(jobs, &parts, cores, steps)
}

/// Returns a schedule that completes the chosen jobs in time, or none if there is no such schedule.
pub fn schedule(jobs: &[OracleJob], chosen: &[bool], cores: usize) -> Option<Vec<Piece>> {
    let indices: Vec<usize> = (0..jobs.len()).filter(|index| chosen[*index]).collect();
    let taken: Vec<OracleJob> = indices.iter().map(|index| jobs[*index]).collect();
    let mut network = flow_network::FlowNetwork::new(&taken, cores);
    for (index, job) in taken.iter().enumerate() {
        if network.push(index, job.execution.0) < job.execution.0 {
            return None;
        }
    }
    let mut pieces = network.schedule();
    pieces.iter_mut().for_each(|piece| piece.job = indices[piece.job]);
    Some(pieces)
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
