//! Time, tasks, jobs, task sets and their files, and the [`Scheduler`] contract.
//!
//! Everything else of TempoNet builds on this crate and it builds on nothing of ours. It knows no simulator: a
//! scheduler written against it also runs inside a real-time program.

mod goal;
mod invalid;
pub mod ready_jobs;
mod scheduler;
mod set;
mod task;
mod time;
mod view;
pub mod wording;

pub use goal::{Aim, Goal, Measure, Worths};
pub use invalid::InvalidSystem;
pub use ready_jobs::{Decision, ReadyJobs, ReadyJobsError, Release};
pub use scheduler::{Assignment, MOST_LOOKED_AT, NotApplicable, Scheduler};
pub use set::{Costs, Mode, OnMiss, Server, Speed, TaskSet};
pub use task::{Arrival, ExecutionModel, Gap, ListedJob, Task};
pub use time::{Time, TimeError, TimeUnit};
pub use view::{Event, Job, JobId, System, SystemView, Tie};

impl TaskSet {
    /// What a scheduler is told before a run.
    pub fn system(&self) -> System {
        System {
            tasks: self.tasks.clone(),
            cores: self.cores,
            on_miss: self.on_miss,
            speeds: self.speeds.clone(),
            servers: self.servers.clone(),
            costs: self.costs,
        }
    }
}
