//! TempoNet to embed: a deadline scheduler that learns, with a safety net.
//!
//! At every decision the ready jobs become urgency tokens, a small Transformer reads all of them at once, every job
//! gets a Q-value, and the best jobs get the cores. Where a simulation of the described tasks shows that a simple
//! scheduler serves them better, that one is followed instead ([`tuning`]). A shield around it overrules a choice that
//! could cost a guaranteed deadline.
//!
//! # Quick start
//!
//! A program describes its tasks once, reports releases and completions to [`ReadyJobs`], and runs what each
//! [`Decision`] says:
//!
//! ```
//! use temponet::{ReadyJobs, System, Task, TaskId, Temponet, Time};
//!
//! let tasks = vec![
//!     Task::periodic("control", Time::from_ms(10), Time::from_ms(4)),
//!     Task::periodic("vision", Time::from_ms(40), Time::from_ms(22)),
//! ];
//! let mut ready = ReadyJobs::new(System::new(tasks, 1))?;
//! let mut scheduler = Temponet::built_in()?; // or `Temponet::load("mine.safetensors")?`
//! ready.start(&mut scheduler)?;
//!
//! let (control, vision) = (ready.release(TaskId(0))?, ready.release(TaskId(1))?);
//! let decision = ready.decide(&mut scheduler)?;
//! let first = decision.cores()[0].expect("two jobs are ready");
//! assert!(first == control || first == vision);
//! let latest = decision.next().expect("a deadline is ahead");
//!
//! // … 3 ms later the job is done.
//! ready.advance(Time::from_ms(3).min(latest))?;
//! ready.complete(first)?;
//! assert!(ready.decide(&mut scheduler)?.cores()[0].is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo run -p temponet --example embed` runs a whole loop. Any other [`Scheduler`] can stand in the place of
//! [`Temponet`].
//!
//! # What a program must honour
//!
//! [`ReadyJobs`] takes care of the first three. A program that fills a [`SystemView`] itself has to do so on its own.
//!
//! - **Events are complete.** Every release, completion, abort and passed deadline appears exactly once, in the
//!   [`SystemView::events`] of the next decision. Many schedulers keep the ready jobs in order by these events alone
//!   and never see a job that was not announced.
//! - **Ids are unique until they are told.** A [`JobId`] may be used again only after a decision has shown the event
//!   with which its job left. A [`JobHandle`] is never used again, so a worker that reports too late gets an error and
//!   hits no other job.
//! - **Running state is true.** [`SystemView::running`] and [`Job::running`](Job::running) agree with each other and
//!   with the last assignment.
//! - **Wake-ups are kept.** The program decides again after every release and completion, and at [`Decision::next`] at
//!   the latest. The shield's guarantee and schedulers that watch slack rely on this date ([`Assignment::wake`]).
//! - **Time is one clock.** [`SystemView::now`] never goes back. All times are nanoseconds since the program began, at
//!   most 30 years: not since 1970. [`Task::offset`](Task) counts from the same zero.
//! - **Tasks are what they were said to be.** The guarantee of the shield holds for jobs that take no longer than their
//!   wcet and arrive no more often than their task says; a job that does not loses its own guarantee.
//!   [`Temponet::shield_role`] says what is guaranteed on a system.
//! - **A change of tasks or cores is a new start.** Make new [`ReadyJobs`], [`advance`](ReadyJobs::advance) them to the
//!   current date, start the scheduler with them, and release the jobs that go on with [`ReadyJobs::release_with`] and
//!   [`ReadyJobs::set_executed`]. Handles of the old ones are no longer valid. A scheduler may only be asked about the
//!   system that it was started with.
//!
//! # In real time
//!
//! The guarantee is a theorem about exact clocks. A shield that lends slack lends all of it, so a program on real
//! timers leaves room:
//!
//! - **Date releases by the plan, not by the timer.** A timer that fires late makes the next release look early. Pass
//!   the nominal date (`Release::of(&task, nominal)`) to [`ReadyJobs::release_with`], and state the worst lateness as
//!   [`Task::jitter`](Task).
//! - **Put latencies into the wcet.** Add the time that the program takes to react to [`Decision::next`], to decide and
//!   to switch, twice for each job, to the wcets. A decision that comes a microsecond too late can otherwise cost a
//!   deadline. Leave [`Costs`] at zero then: `advance` counts all time on a core as execution.
//! - **Watch the guarantee.** [`Temponet::is_armed`] says whether it holds at present, [`Temponet::shield_counters`]
//!   how often it lapsed. [`ReadyJobs::complete`] returns whether a job was on time.
//! - **Tune before, not during, the run.** [`Scheduler::start`] simulates the tasks for some tenths of a second, unless
//!   the model has been tuned for them (`temponet tune`). [`Tuning::AtStart`] keeps simulations out of decisions.
//! - **Several cores.** Each guaranteed task belongs to a core, which keeps the time that its jobs need. A guaranteed
//!   job may run anywhere, and it moves to its core when that core has no slack left. Where everything fits but cannot
//!   be divided among the cores, a proved scheduler stands in and decides alone. [`Temponet::shield_role`] says so.
//!
//! # Threads and memory
//!
//! A scheduler belongs to one thread. [`Temponet::share`] makes another one over the same prepared weights, for another
//! thread or another system. After the first decisions of a load, a decision allocates nothing.
//!
//! # Stability
//!
//! Everything at the top of this crate follows semantic versioning. The modules of [`stages`] are the steps of one
//! decision, which training and diagnostics share with the scheduler; they may change at any time.

mod added_features;
mod advice;
mod assignment;
mod binning;
mod bins;
mod continuous;
mod feature;
mod firm;
mod learned;
mod mapping;
mod model;
mod number;
mod observation;
mod outlook;
pub mod planner;
mod prediction;
mod scale;
mod scheduler;
mod shown;
mod speed;
mod stage_latencies;
mod staying;
mod task_row;
mod tokenizer;
mod tokenizer_error;
pub mod tuning;

pub use learned::Options;
pub use mapping::Mapping;
pub use model::{Model, ModelError};
pub use scheduler::Temponet;
pub use stage_latencies::{Calibration, LatencyTable, MEASURED_CORES, MEASURED_SIZES, StageLatencies};
pub use temponet_infer::NetworkError;
pub use temponet_infer::NetworkOptions;
pub use temponet_sched::shield::{Guarantee, NoGuarantee, Role, ShieldCounters, WhyNot};
pub use temponet_task::ready_jobs::ReleaseProblem;
pub use temponet_task::{
    Aim, Arrival, Assignment, AssignmentProblem, Chain, Communication, Core, CoreId, CoreSet, Costs, Decision,
    DueDates, Estimate, Event, ExecutionModel, Gap, Goal, InvalidSystem, Job, JobHandle, JobId, JobTable, ListedJob,
    Locks, Machine, Measure, Mode, NotApplicable, OnMiss, PrecedenceProblem, Preemption, Protocol, ReadyJobs,
    ReadyJobsError, Release, ResourceId, Scheduler, Section, SectionProblem, Server, Speed, StoppedJob, System,
    SystemView, Task, TaskId, TaskSet, TaskSettingProblem, TasksMut, Tie, Time, TimeError, TimeUnit, Worths, Wrapper,
};
pub use tokenizer_error::TokenizerError;
pub use tuning::Tuning;

/// The steps of one decision, for training and diagnostics. These items may change at any time.
pub mod stages {
    pub use crate::added_features::GrowthError;
    pub use crate::advice::JobAdvice;
    pub use crate::assignment::{Hungarian, Sinkhorn};
    pub use crate::binning::Binning;
    pub use crate::continuous::Continuous;
    pub use crate::feature::{Feature, IdleFeature};
    pub use crate::firm::{FirmHistory, LastOutcomes};
    pub use crate::learned::{Learned, is_overloaded};
    pub use crate::mapping::Mapper;
    pub use crate::model::provenance;
    pub use crate::number::Number;
    pub use crate::observation::Observation;
    pub use crate::scale::Scale;
    pub use crate::speed::{best_speed, core_speed};
    pub use crate::staying::{Kept, Staying};
    pub use crate::tokenizer::Tokenizer;
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
