//! Estimates that the jobs of a task carry, drawn with the error that the task states.
//!
//! They have random numbers of their own: a task with estimates has the same arrivals and execution times as without,
//! and as with other errors.

use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg32;
use temponet_task::{Estimate, Task, Time};

use super::random_stream;
use crate::mixed_seed;

/// Tells the random numbers of estimates apart from those of execution times.
const STREAM: u64 = 5_100_000_001;

/// State of the estimates of one task.
#[derive(Clone)]
pub(crate) struct Estimates {
    rng: Pcg32,
    error: f64,
}

impl Estimates {
    /// Creates the estimates of the task with this index; `None` if its jobs carry none.
    pub fn of(task: &Task, seed: u64, index: u64) -> Option<Estimates> {
        task.estimate_error.map(|error| Estimates { rng: stream(seed, index), error })
    }

    /// Starts anew, with other random numbers.
    pub fn restart(&mut self, seed: u64, index: u64) {
        self.rng = stream(seed, index);
    }

    /// Draws the estimate of a job with this execution time, best and worst case.
    pub fn draw(&mut self, execution: Time, bounds: [Time; 2]) -> Estimate {
        drawn(execution, self.error, bounds, &mut self.rng)
    }
}

/// Draws an estimate with this error of a job with this execution time, best and worst case.
pub(crate) fn drawn(execution: Time, error: f64, bounds: [Time; 2], rng: &mut Pcg32) -> Estimate {
    Estimate::of(execution, error, rng.sample(StandardNormal), bounds)
}

fn stream(seed: u64, index: u64) -> Pcg32 {
    random_stream(mixed_seed(STREAM, seed), index)
}

#[cfg(test)]
mod tests {
    use temponet_task::{ExecutionModel, TaskSet};

    use super::*;
    use crate::{ReleasedJob, Workload};

    fn jobs(error: Option<f64>) -> Vec<ReleasedJob> {
        let ms = Time::from_ms;
        let model = ExecutionModel::Lognormal { median: ms(4), sigma: 0.5 };
        let task =
            Task::periodic("t", ms(5), ms(1_000)).with_bcet(Time(1)).with_execution(model).with_estimate_error(error);
        let set = TaskSet::new("s", vec![task.clone(), task.with_name("u".into()).with_jitter(ms(3))], 1);
        let mut workload = Workload::new(&set, 7);
        (0..4_000).filter_map(|_| workload.pop()).collect()
    }

    #[test]
    fn estimates_change_no_job() {
        let plain = jobs(None);
        assert!(plain.iter().all(|job| job.estimate.is_none()));
        for error in [0.0, 0.3, 4.0] {
            let estimated = jobs(Some(error)).into_iter().map(|job| ReleasedJob { estimate: None, ..job });
            assert!(estimated.eq(plain.iter().copied()), "{error}");
        }
    }

    #[test]
    fn half_of_the_jobs_exceed_the_median_and_a_tenth_the_ninth_decile() {
        let jobs = jobs(Some(0.4));
        let share = |exceeds: &dyn Fn(&ReleasedJob, Estimate) -> bool| {
            jobs.iter().filter(|job| exceeds(job, job.estimate.unwrap())).count() as f64 / jobs.len() as f64
        };
        assert!((share(&|job, estimate| job.execution > estimate.median()) - 0.5).abs() < 0.03);
        assert!((share(&|job, estimate| job.execution > estimate.high()) - 0.1).abs() < 0.02);
        let exact = self::jobs(Some(0.0));
        let is_exact = |job: &ReleasedJob| job.estimate == Estimate::new(job.execution, job.execution);
        assert!(exact.iter().all(is_exact));
    }
}
