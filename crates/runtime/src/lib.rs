//! Real threads under any [`Scheduler`]: the loop of the simulator with a real clock, on Linux.
//!
//! A [`Runtime`] is told tasks, each with a closure, and a scheduler. It runs every task on a thread of its own, and a
//! *dispatcher* thread releases jobs, asks the scheduler, and carries out what it decides by changing the priorities of
//! those threads.
//!
//! ```no_run
//! use temponet_runtime::{Runtime, Time};
//!
//! let report = Runtime::new()
//!     .cores([1])
//!     .housekeeping(0)
//!     .scheduler(temponet_sched::build("edf")?)
//!     .task("control", Time::from_ms(10), Time::from_ms(2), |_job| { /* read sensors, set motors */ })
//!     .criticality(1)
//!     .task("vision", Time::from_ms(40), Time::from_ms(20), |job| {
//!         while !job.expired() { /* refine the picture */ }
//!     })
//!     .run_for(Time::from_secs(10))?;
//! println!("{} of {} jobs in time", report.metrics.jobs.met, report.metrics.jobs.released);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Parts
//!
//! - [`Runtime`] describes tasks, cores and rules; [`Report`] says what happened, job by job.
//! - The dispatcher (`dispatcher.rs`) knows no threads. It stands on a platform, of which there are two: threads of
//!   Linux, and *virtual time*, in which jobs take the time that they are said to take. [`Runtime::run_virtual`] uses
//!   the latter, needs no privilege, and gives the schedule of the simulator, job by job.
//! - A [`Decider`](Runtime::decider) thread asks a slow scheduler, such as the learned one. The dispatcher never waits
//!   for it.
//! - The guard is a process of its own that kills a program whose dispatcher no longer beats, so that no mistake in a
//!   task can take the machine.
//! - [`trial`] runs drawn jobs that only compute, under our schedulers and under those of Linux, for `temponet exec`.
//!
//! What is promised, what is not, and how to measure: `docs/runtime.md`.
//!
//! Everything compiles on any system; running threads is an error on systems other than Linux.

mod carrier;
mod decider;
mod dispatcher;
mod doorbell;
mod error;
mod job;
pub mod kernel_trace;
mod platform;
pub mod platform_sheet;
mod releases;
mod report;
mod runtime;
pub mod trial;
mod virtual_time;
pub mod wire;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(test)]
mod tests;

pub use carrier::Carrier;
pub use error::RuntimeError;
pub use job::Job;
#[cfg(target_os = "linux")]
pub use linux::{die_with_parent, recording};
pub use report::{Counts, JobOutcome, Latencies, Report};
pub use runtime::{OnOverrun, Runtime, TaskHandle};
pub use temponet_task::{OnMiss, Preemption, Scheduler, Server, Task, Time};

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
