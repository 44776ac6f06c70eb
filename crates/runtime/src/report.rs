//! What happened in a run: every job, the metrics of the simulator, and the latencies of the machine.

use serde::{Deserialize, Serialize};
use temponet_sim::{End, Histogram, Metrics};
use temponet_task::{CoreId, Job, Task, TaskId, Time};

use crate::releases::Due;

/// A job that has left, with what was measured of it. Dates count from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobOutcome {
    /// Index of its task.
    pub task: TaskId,
    /// Number within its task, from 0.
    pub number: u64,
    /// Nominal release.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// Worst-case execution time that the scheduler was told.
    pub wcet: Time,
    /// Criticality level.
    pub criticality: u8,
    /// Value of meeting the deadline.
    pub value: f64,
    /// Date of its first instruction; none if it never ran.
    pub start: Option<Time>,
    /// Date at which it left: its last instruction if it completed.
    pub left: Time,
    /// Why it left.
    pub end: End,
    /// Processor time that it used.
    pub executed: Time,
    /// Number of times that it lost the processor before it was done.
    pub preemptions: u32,
    /// Index of the core that it was last put on.
    pub core: Option<CoreId>,
    /// Whether it used more than its wcet.
    pub overran: bool,
    /// Whether it was not released, because the previous job of its task still held the thread.
    pub skipped: bool,
}

impl JobOutcome {
    /// A job that never ran and was aborted at its deadline.
    pub(crate) fn not_run(due: &Due) -> JobOutcome {
        let Due { task, number, release, .. } = *due;
        JobOutcome {
            task,
            number,
            release: release.release,
            deadline: release.deadline,
            wcet: release.wcet,
            criticality: release.criticality,
            value: release.value,
            start: None,
            left: release.deadline,
            end: End::Aborted,
            executed: Time::ZERO,
            preemptions: 0,
            core: None,
            overran: false,
            skipped: false,
        }
    }

    /// Whether the job completed by its deadline.
    pub fn met(&self) -> bool {
        self.end == End::Completed && self.left <= self.deadline
    }

    /// The job as metrics and observers of the simulator take it.
    pub fn as_job(&self) -> Job {
        let task = Task::periodic("", Time(1), self.wcet);
        Job::first(self.task, &task)
            .with_task(self.task)
            .with_criticality(self.criticality)
            .with_number(self.number)
            .with_release(self.release)
            .with_deadline(self.deadline)
            .with_executed(self.executed)
            .with_last_core(self.core)
            .with_value(self.value)
    }
}

/// Latencies of the machine, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// From the nominal release to the job's first instruction, of jobs that the first decision after their release put
    /// on a core.
    pub start: Histogram,
    /// From the earliest nominal release of a round to the dispatcher's awakening, where it slept until then.
    pub timer: Histogram,
    /// From then on: noting completions and reading the processor time of running jobs.
    pub charge: Histogram,
    /// Adding the released jobs to the ready ones.
    pub release: Histogram,
    /// Time that the scheduler takes for a decision.
    pub decide: Histogram,
    /// The system calls that carry a decision out, where it changes something.
    pub order: Histogram,
    /// From the order to switch to the new job's first instruction, of jobs that took the core from another one.
    pub switch: Histogram,
    /// Time that the decider takes for an answer.
    pub answer: Histogram,
}

impl Latencies {
    /// Returns all kinds with their names.
    pub fn kinds(&self) -> [(&'static str, &Histogram); Latencies::KINDS] {
        let Latencies { start, timer, charge, release, decide, order, switch, answer } = self;
        [
            ("release to start", start),
            ("timer", timer),
            ("charge", charge),
            ("release", release),
            ("decide", decide),
            ("order", order),
            ("switch", switch),
            ("learned answer", answer),
        ]
    }

    /// Number of kinds.
    pub const KINDS: usize = 8;

    /// Latencies from histograms in the order of [`Latencies::kinds`].
    pub(crate) fn of_kinds(kinds: [Histogram; Latencies::KINDS]) -> Latencies {
        let [start, timer, charge, release, decide, order, switch, answer] = kinds;
        Latencies { start, timer, charge, release, decide, order, switch, answer }
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Latencies) {
        let Latencies { start, timer, charge, release, decide, order, switch, answer } = self;
        let own = [start, timer, charge, release, decide, order, switch, answer];
        own.into_iter().zip(other.kinds()).for_each(|(own, (_, other))| own.merge(other));
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Decisions taken at once.
    pub decisions: u64,
    /// Running jobs that lost their core by a decision.
    pub preemptions: u64,
    /// Jobs that resumed on another core.
    pub migrations: u64,
    /// Answers of the decider that came in time and changed what ran.
    pub adopted: u64,
    /// Answers of the decider that came in time and were what ran already.
    pub agreed: u64,
    /// Answers of the decider that an event overtook.
    pub overtaken: u64,
    /// Jobs that used more than their wcet.
    pub overruns: u64,
    /// Releases that were skipped, because the task's thread was busy.
    pub skipped: u64,
    /// Jobs whose code panicked.
    pub panics: u64,
}

impl Counts {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Counts) {
        let Counts { decisions, preemptions, migrations, adopted, agreed, overtaken, overruns, skipped, panics } =
            *other;
        self.decisions += decisions;
        self.preemptions += preemptions;
        self.migrations += migrations;
        self.adopted += adopted;
        self.agreed += agreed;
        self.overtaken += overtaken;
        self.overruns += overruns;
        self.skipped += skipped;
        self.panics += panics;
    }
}

/// What happened in a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Length of the run.
    pub horizon: Time,
    /// Every job that left, in the order in which they left.
    pub jobs: Vec<JobOutcome>,
    /// Metrics as the simulator computes them, of the jobs whose deadline lies within the run.
    pub metrics: Metrics,
    /// Latencies of the machine.
    pub latencies: Latencies,
    /// Counts of the dispatcher.
    pub counts: Counts,
    /// Processor time of the dispatcher thread; zero in virtual time.
    pub dispatcher_time: Time,
    /// Names of the tasks whose code had not returned when the run was over. Their threads stay behind, without
    /// real-time priority.
    pub lost: Vec<String>,
    /// What could not be had, such as locked memory.
    pub notes: Vec<String>,
}

impl Report {
    /// Counts a job that was never released, because its release came no earlier than its deadline, as missed.
    #[cfg(target_os = "linux")]
    pub(crate) fn add_unreleased(&mut self, due: &Due) {
        let outcome = JobOutcome::not_run(due);
        self.metrics.record(&outcome.as_job(), outcome.end, outcome.left);
        self.jobs.push(outcome);
    }

    /// Share of one core that the dispatcher used, 0 to 1.
    pub fn dispatcher_share(&self) -> f64 {
        self.dispatcher_time.0 as f64 / self.horizon.0.max(1) as f64
    }
}

/// Computes the metrics of jobs that have left, as the simulator does.
pub(crate) fn metrics(tasks: &[Task], jobs: &[JobOutcome], horizon: Time, counts: &Counts, cores: usize) -> Metrics {
    let mut metrics = Metrics::new(tasks);
    for job in jobs.iter().filter(|job| job.deadline <= horizon) {
        metrics.record(&job.as_job(), job.end, job.left);
    }
    let is_unreleased = |job: &&JobOutcome| job.end == End::Unreleased && job.deadline <= horizon;
    metrics.unreleased = jobs.iter().filter(is_unreleased).count() as u64;
    metrics.finish_run();
    metrics.preemptions = counts.preemptions;
    metrics.migrations = counts.migrations;
    metrics.decisions = counts.decisions;
    let busy: u128 = jobs.iter().map(|job| u128::from(job.executed.0)).sum();
    metrics.idle_ns = (u128::from(horizon.0) * cores as u128).saturating_sub(busy);
    metrics.energy = busy as f64 * 1e-9;
    metrics
}
