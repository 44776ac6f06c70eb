//! Columns of a list of single jobs.

use temponet_task::{CoreSet, Estimate, ListedJob, Preemption, TaskId, Time};

use super::machine::{CORES, affinity, write_affinity};
use super::preemption::{PREEMPTION, preemption, write_preemption};
use super::task::{CRITICALITY, DEADLINE, VALUE, WCET, criticality};
use super::{Csv, EXECUTION, Key, Kind, NAME, Plain, Spec, Table, put, set};
use crate::out::{Out, text};

/// A row of a list of jobs that is being read.
#[derive(Default)]
pub(crate) struct JobDraft {
    /// Name of the task.
    pub name: String,
    pub release: Time,
    pub execution: Time,
    pub deadline: Option<Time>,
    pub slo: Option<Time>,
    pub wcet: Option<Time>,
    /// Median and ninth decile of the estimate, each with its line.
    pub estimate: Option<(Time, usize)>,
    pub estimate_p90: Option<(Time, usize)>,
    pub criticality: u8,
    pub value: Option<f64>,
    /// Limit on preemption, which is the same for all jobs of a task.
    pub preemption: Option<Preemption>,
    /// Cores that jobs may use, which are the same for all jobs of a task.
    pub cores: Option<CoreSet>,
}

/// A row of a list of jobs that is being written.
pub(crate) struct JobRow {
    /// Index of the task.
    pub task: TaskId,
    pub job: ListedJob,
    /// Whether the list states wcets. Without them, execution times are known.
    pub states_wcet: bool,
}

type Row = Key<Plain<JobDraft, JobRow>>;

/// Returns a time in nanoseconds.
fn ns(time: Time) -> Out {
    Out::Integer(time.0 as i64)
}

/// Other names of columns in traces of other programs.
pub(crate) const SYNONYMS: [(&str, &str); 2] = [("arrival", RELEASE.name), ("duration", EXECUTION)];

/// Names of columns in traces of other programs that can mean several things, and what is wanted in their place.
pub(crate) const AMBIGUOUS: [(&str, &str); 2] = [
    (
        "start",
        "can be when a job arrives or when it begins to run: call it \"release\" if it is the arrival, else leave it out",
    ),
    (
        "size",
        "is not said to be a time: call it \"execution\" if it is what a job takes, or \"estimate\" if it is what is known before",
    ),
];

/// Date of the release, whose column makes a CSV file a list of jobs.
pub(crate) const RELEASE: Spec = Spec::new("release", Kind::Time, "date of the release").required();

/// Columns of a list of jobs.
pub(crate) static JOB: Table<Plain<JobDraft, JobRow>> = Table {
    what: "job",
    keys: &[
        Row::new(
            NAME.doc("name of the task; rows with the same name are jobs of one task"),
            |draft, given| set(&mut draft.name, given.printable()),
            |set, row| Some(text(&set.tasks()[row.task].name)),
        ),
        Row::new(RELEASE, |draft, given| set(&mut draft.release, given.time()), |_, row| Some(ns(row.job.release))),
        Row::new(
            Spec::new(EXECUTION, Kind::PositiveTime, "what the job really takes").required(),
            |draft, given| set(&mut draft.execution, given.time()),
            |_, row| Some(ns(row.job.execution)),
        ),
        Row::new(
            Spec { kind: Kind::Time, ..DEADLINE.spec }.doc("absolute deadline, after the release").unless(&["slo"]),
            |draft, given| put(&mut draft.deadline, given.time()),
            |_, row| Some(ns(row.job.deadline)),
        ),
        Row::new(
            Spec::new("slo", Kind::PositiveTime, "deadline relative to the release, in place of `deadline`"),
            |draft, given| put(&mut draft.slo, given.time()),
            |_, _| None,
        ),
        Row::new(
            WCET.doc("what the scheduler is told, at least the execution time")
                .default("the execution time; with estimates, the longest one of the name"),
            |draft, given| put(&mut draft.wcet, given.time()),
            |_, row| row.states_wcet.then(|| ns(row.job.wcet)),
        ),
        Row::new(
            Spec::new("estimate", Kind::PositiveTime, "median of what is said about the job, up to its wcet")
                .see("#estimates"),
            |draft, given| put(&mut draft.estimate, given.at(given.time())),
            |_, row| row.job.estimate.map(Estimate::median).map(ns),
        ),
        Row::new(
            Spec::new("estimate_p90", Kind::PositiveTime, "ninth decile of it, up to the wcet").default("`estimate`"),
            |draft, given| put(&mut draft.estimate_p90, given.at(given.time())),
            |_, row| row.job.estimate.map(Estimate::high).map(ns),
        ),
        Row::new(
            CRITICALITY,
            |draft, given| set(&mut draft.criticality, criticality(given)),
            |_, row| Some(Out::Integer(i64::from(row.job.criticality))),
        ),
        Row::new(
            VALUE,
            |draft, given| put(&mut draft.value, given.number()),
            |_, row| Some(Out::Number(row.job.value)),
        ),
        Row::new(
            PREEMPTION.doc("as of a task, the same for all its jobs").default("`\"free\"`"),
            |draft, given| put(&mut draft.preemption, preemption(given)),
            |set, row| write_preemption(set, &set.tasks()[row.task]),
        ),
        Row::new(
            CORES.doc("numbers of the cores that the jobs of the task may use").csv(Csv::Column(" ")),
            |draft, given| put(&mut draft.cores, affinity(given)),
            |set, row| write_affinity(set, &set.tasks()[row.task]),
        ),
    ],
};
