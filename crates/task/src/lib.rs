//! Time, tasks, jobs, task sets, and the [`Scheduler`] contract.
//!
//! Every other crate of TempoNet builds on this one; it depends on none of them. It does not know the simulator: a
//! scheduler written against this crate also runs inside a real-time program.

pub mod cancel;
mod estimate;
mod goal;
mod invalid;
mod locks;
mod log_normal;
mod machine;
mod placement;
mod precedence;
pub mod ready_jobs;
mod scheduler;
mod sections;
mod set;
mod sharing;
mod task;
mod time;
mod view;
pub mod wording;

pub use estimate::Estimate;
pub use goal::{Aim, Goal, Measure, Worths};
pub use invalid::{InvalidSystem, TaskSettingProblem};
pub use locks::Locks;
pub use log_normal::LogNormal;
pub use machine::{Core, CoreSet, Machine, Speed};
pub use precedence::{Chain, Communication, DueDates, Precedence, PrecedenceProblem, levels};
pub use ready_jobs::{Decision, JobHandle, ReadyJobs, ReadyJobsError, Release, StoppedJob};
pub use scheduler::{Assignment, MOST_LOOKED_AT, NotApplicable, Scheduler};
pub use sections::{Protocol, Section, SectionProblem, ceilings, preemption_levels};
pub use set::{Costs, Mode, OnMiss, Server, TaskSet};
pub use task::{Arrival, ExecutionModel, Gap, ListedJob, Preemption, Task};
pub use time::{Time, TimeError, TimeUnit};
pub use view::{Event, Job, JobId, System, SystemView, Tie};

impl TaskSet {
    /// Creates a set with the tasks and the machine of a system. What a scheduler does not know, such as modes, has the
    /// default value of a file.
    pub fn of_system(name: impl Into<String>, system: &System) -> TaskSet {
        TaskSet {
            on_miss: system.on_miss,
            costs: system.costs,
            speeds: if system.speeds.is_empty() { vec![Speed::FULL] } else { system.speeds.clone() },
            servers: system.servers.clone(),
            chains: system.chains.clone(),
            resources: system.resources.clone(),
            protocol: system.protocol,
            machine: system.machine.cores().to_vec(),
            ..TaskSet::new(name, system.tasks.clone(), system.cores)
        }
    }

    /// Returns the description of the system that a scheduler receives before a run.
    pub fn system(&self) -> System {
        System {
            tasks: self.tasks.clone(),
            cores: self.cores,
            machine: Machine::new(&self.machine, self.cores, &self.tasks),
            is_limited: self.is_limited(),
            on_miss: self.on_miss,
            speeds: self.speeds.clone(),
            servers: self.servers.clone(),
            chains: self.chains.clone(),
            resources: self.resources.clone(),
            protocol: self.protocol,
            costs: self.costs,
            goal: self.goal(),
        }
    }
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
