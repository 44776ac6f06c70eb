//! An upper bound for cores of different speeds.
//!
//! The relaxation asks less of a schedule than a machine does: the jobs together get at most the total speed of the
//! cores, and each job at most the speed of the fastest one. In time at that speed, this is the flow network of
//! identical cores with as many cores as the total speed is a multiple of the fastest one, which need not be a whole
//! number. That a job may use only some cores counts only in whether it can be in time at all.

use temponet_task::{Speed, Time};

use super::parts::split;
use super::relaxation::{Fixed, by_density, relax_with, tighten};
use super::{Optimum, OracleJob};

/// Returns an upper bound on the weight of jobs in time on cores of these speeds. `fastest` holds, for each job, the
/// speed of the fastest core that it may use. No schedule is found: the lower bound is zero. The effort is about
/// `steps` steps.
pub fn bound_by_speed(jobs: &[OracleJob], fastest: &[Speed], cores: &[Speed], steps: u64) -> Optimum {
    let none = Optimum { upper: 0.0, lower: 0.0, chosen: vec![false; jobs.len()] };
    let Some(top) = cores.iter().copied().max() else { return none };
    let total: u64 = cores.iter().map(|speed| u64::from(speed.0)).sum();
    let can_be_in_time = |(job, speed): (&OracleJob, &Speed)| {
        let time = job.execution.0 as u128 * 1000;
        job.release + speed.time_for_thousandths(time) <= job.deadline
    };
    // Time at the top speed is rounded down, which relaxes the problem.
    let at_top = |job: &OracleJob| {
        let time = u128::from(job.execution.0) * 1000 / u128::from(top.0.max(1));
        OracleJob { execution: Time(time.clamp(1, u128::from(Time::MAX_INPUT.0)) as u64), ..*job }
    };
    let possible = jobs.iter().zip(fastest).filter(|pair| can_be_in_time(*pair)).map(|(job, _)| at_top(job));
    let possible: Vec<OracleJob> = possible.collect();
    // Parts whose windows do not overlap; two cores stand for several.
    let parts = split(&possible, 2);
    let upper = parts.iter().map(|part| {
        let part: Vec<OracleJob> = part.iter().map(|index| possible[*index]).collect();
        bound_of_part(&part, (total, u64::from(top.0)), steps * part.len() as u64 / possible.len() as u64)
    });
    Optimum { upper: upper.sum(), ..none }
}

/// Bound for jobs whose windows overlap. The capacity is a number of cores, as a fraction.
fn bound_of_part(jobs: &[OracleJob], capacity: (u64, u64), steps: u64) -> f64 {
    let all: f64 = jobs.iter().map(|job| job.weight).sum();
    let last = jobs.iter().map(|job| job.deadline.0).max().unwrap_or(0);
    let is_countable = last.checked_mul(2).and_then(|twice| twice.checked_mul(capacity.0)).is_some();
    if jobs.len() == 1 || !is_countable {
        return all;
    }
    let (order, free) = (by_density(jobs), vec![Fixed::Free; jobs.len()]);
    let has_whole_weights = jobs.iter().all(|job| job.weight.fract() == 0.0);
    match relax_with(jobs, capacity, &order, &free, steps) {
        Some(relaxed) => tighten(relaxed.upper, has_whole_weights).min(all),
        None => all,
    }
}
