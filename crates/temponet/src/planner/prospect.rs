//! What is known of a system while it runs, and how far into the future it is worth looking.

use temponet_sim::Outlook;
use temponet_task::{System, SystemView, Task, Time, Worths};

/// Largest length of a future in mean execution times of a job. Where short jobs are frequent and most tasks are long,
/// a future of some median wcets would hold hundreds of jobs.
pub(crate) const MOST_JOBS: f64 = 40.0;

/// What follows from the system that a planner was started with, and what was seen since.
pub struct Prospect {
    /// What is known of the jobs to come.
    pub outlook: Outlook,
    /// Worth of a job by the goal of the system.
    pub worths: Worths,
    /// Greatest length of a future.
    horizon: Time,
}

impl Prospect {
    /// Creates the prospect of a system of which no job has been seen. Futures last `horizon` median wcets, and at most
    /// `MOST_JOBS` mean execution times.
    pub fn new(system: &System, worths: Worths, horizon: f64) -> Prospect {
        let unit = system.median_wcet().0 as f64;
        let mean = mean_execution(system).unwrap_or(unit);
        let horizon = (horizon * unit).min(MOST_JOBS * mean).min(Time::MAX_INPUT.0 as f64);
        Prospect { outlook: Outlook::new(system), worths, horizon: Time(horizon as u64).max(Time(1)) }
    }

    /// Returns the end of a future: it holds at most about `MOST_JOBS` listed jobs a core, by the rate at which they
    /// came lately.
    pub fn end(&self, view: &SystemView<'_>) -> Time {
        let length = MOST_JOBS * view.cores() as f64 / self.outlook.listed_jobs_per_second() * 1e9;
        view.now + Time((length as u64).max(1)).min(self.horizon)
    }
}

/// Returns the mean execution time over the jobs of a system, as far as a scheduler knows them, in nanoseconds; `None`
/// if no jobs are known to come.
fn mean_execution(system: &System) -> Option<f64> {
    // The load of a list would tell of jobs that have not come.
    let known = || system.tasks().iter().filter(|task| task.jobs_per_second() > 0.0);
    let load: f64 = known().map(Task::mean_utilization).sum();
    let rate: f64 = known().map(Task::jobs_per_second).sum();
    (rate > 0.0).then(|| load / rate * 1e9)
}
