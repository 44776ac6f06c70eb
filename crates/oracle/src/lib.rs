//! The clairvoyant optimum: how many deadlines, or how much weight of them, *any* scheduler could have met that knew every release and every
//! true execution time beforehand. Preemption and migration are free, so no schedule of ours can beat it.
//!
//! A run falls into parts that do not touch each other (nobody's window reaches across; on one core, also where even all the work is done).
//! Each part is solved on its own; equal parts once. One core: [`labels`] on the prices of the linear relaxation, exact for most
//! sets. Several cores: [`branch`] and bound on the relaxation, which is NP-hard; the result then says how far it may be off.

mod branch;
mod flow_network;
mod labels;
mod lawler;
mod parts;
mod relaxation;

use temponet_task::Time;

pub use lawler::lawler;

/// Room for the rounding of sums of floating-point numbers.
const WHOLE: f64 = 1e-6;

/// A job, with hindsight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OracleJob {
    /// When it could begin.
    pub release: Time,
    /// By when it had to be done.
    pub deadline: Time,
    /// What it really took.
    pub execution: Time,
    /// What meeting its deadline is worth; positive.
    pub weight: f64,
}

/// How much weight can be in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// No schedule has more in time.
    pub upper: f64,
    /// A schedule with so much is known: `chosen` can be in time together.
    pub lower: f64,
    /// The jobs of that schedule.
    pub chosen: Vec<bool>,
}

impl Optimum {
    /// Whether it is proved that there is nothing better.
    pub fn is_exact(&self) -> bool {
        self.upper <= self.lower * (1.0 + 1e-12)
    }
}

fn weight_of(jobs: &[OracleJob], chosen: &[bool]) -> f64 {
    jobs.iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(job, _)| job.weight).sum()
}

/// A stretch of one core given to one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The core.
    pub core: usize,
    /// Index of the job.
    pub job: usize,
    /// From here.
    pub start: Time,
    /// To here.
    pub end: Time,
}

/// Steps that take about a second.
pub const STEPS_PER_SECOND: f64 = 4e7;

/// The greatest weight that `cores` cores can have in time. The effort is about `steps` elementary steps (see [`STEPS_PER_SECOND`]), counted
/// and not timed, so that the result does not depend on the machine.
pub fn optimum(jobs: &[OracleJob], cores: usize, steps: u64) -> Optimum {
    let parts = parts::split(jobs, cores);
    parts::solve(jobs, &parts, cores, steps)
}

/// A schedule that has the chosen jobs in time; none if they cannot be.
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
