//! Time, tasks, jobs, task sets, and the [`Scheduler`] contract.
//!
//! Every other crate of TempoNet builds on this one; it depends on none of them. It does not know the simulator: a
//! scheduler written against this crate also runs inside a real-time program.
//!
//! Without its default feature `std`, the crate needs no operating system, only an allocator.

// Tests have the standard library.
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(all(feature = "std", not(test)))]
extern crate std;

/// Defines for fields of a type methods that return a value of the type with the field replaced.
macro_rules! replaced_fields {
    ($type:ident: $($with:ident $field:ident: $of:ty),* $(,)?) => {
        impl $type {
            $(#[doc = concat!("Returns it with this [`", stringify!($type), "::", stringify!($field), "`].")]
            #[must_use]
            pub fn $with(mut self, $field: $of) -> $type {
                self.$field = $field;
                self
            })*
        }
    };
}

pub mod encoding;
mod estimate;
mod extra;
#[cfg(not(feature = "std"))]
mod float;
mod goal;
mod ids;
mod invalid;
mod job_table;
mod legality;
mod locks;
mod log_normal;
mod machine;
mod mode;
mod parts;
mod placement;
mod placement_with_locks;
mod precedence;
mod product_limit;
pub mod ready_jobs;
mod request_index;
mod scheduler;
mod sections;
mod set;
mod system;
mod task;
mod time;
mod view;
mod wrapper;

pub use estimate::Estimate;
pub use extra::{Attribute, Extra};
pub use goal::{Aim, Goal, Measure, Worths};
pub use ids::{CoreId, ResourceId, TaskId};
pub use invalid::{InvalidSystem, TaskSettingProblem};
pub use job_table::JobTable;
pub use legality::AssignmentProblem;
pub use locks::Locks;
pub use log_normal::LogNormal;
pub use machine::{Core, CoreSet, Machine, Speed};
pub use mode::Mode;
pub use precedence::{Chain, Communication, DueDates, Precedence, PrecedenceProblem, levels};
pub use product_limit::ProductLimit;
pub use ready_jobs::{Decision, JobHandle, ReadyJobs, ReadyJobsError, Release, StoppedJob};
pub use request_index::{IndexWeights, IndexedRequest, Lengths as RequestLengths, RequestIndex, Score, WeightsProblem};
pub use scheduler::{Assignment, MOST_LOOKED_AT, NotApplicable, Scheduler};
pub use sections::{Protocol, Section, SectionProblem, Step, ceilings, preemption_levels, steps};
pub use set::{Costs, OnMiss, Server, TaskSet};
pub use system::{System, TasksMut};
pub use task::{Arrival, ExecutionModel, Gap, ListedJob, Preemption, Task};
pub use time::{Time, TimeError, TimeUnit, without_separators};
pub use view::{Event, Job, JobId, SystemView, Tie};
pub use wrapper::Wrapper;

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
