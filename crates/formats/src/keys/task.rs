//! Keys of `[[task]]` and `[[burst]]`, and of the tables within them.

use temponet_task::{Arrival, Attribute, ExecutionModel, Gap, Preemption, Task, TaskSet, Time};
use temponet_wording::did_you_mean;

use super::estimate::{ESTIMATE, estimate};
use super::execution::{EXECUTION, names as models, specs, write_model};
use super::links::{NAMES, Named, names, write_names};
use super::machine::{CORES, affinity, write_affinity};
use super::models::{gaps, write_gap};
use super::parts::{PARTS, PARTS_KEY, first, has_parts};
use super::preemption::{PREEMPTION, preemption, write_preemption};
use super::sections::{SECTIONS, SectionDraft};
use super::{Csv, Given, Key, Kind, NAME, Spec, Subject, Table, put, set};
use crate::Problem;
use crate::node::{Node, Value};
use crate::out::{Out, text, time};

/// What a `[[task]]` or `[[burst]]` states: attributes in `task`, and beside it what has to be seen together.
pub(crate) struct TaskDraft<'a> {
    pub task: Task,
    pub name_line: usize,
    /// Period and its line.
    pub period: Option<(Time, usize)>,
    pub deadline: Option<Time>,
    pub wcet: Option<Time>,
    pub bcet: Option<Time>,
    /// Model of the execution times.
    pub execution: Option<&'a Node>,
    /// Share of jobs that overrun, and its line.
    pub overrun: Option<(f64, usize)>,
    pub is_sporadic: bool,
    pub gap: Option<&'a Node>,
    /// First key that says how the task arrives.
    pub own_arrival: Option<Given<'a>>,
    pub after: Option<Vec<Named>>,
    pub reads: Vec<Named>,
    /// Limit on preemption and its line.
    pub preemption: Option<(Preemption, usize)>,
    /// Critical sections with the names of their resources and their lines.
    pub sections: Vec<(SectionDraft, usize)>,
    /// Parts of the task, with their tables.
    pub parts: Vec<(TaskDraft<'a>, &'a Node)>,
    /// Number of jobs of a burst, and how long the peak lasts.
    pub jobs: u32,
    pub lasts: Option<Time>,
}

impl<'a> TaskDraft<'a> {
    pub fn new() -> TaskDraft<'a> {
        TaskDraft {
            task: Task::periodic("", Time(1), Time(1)),
            name_line: 0,
            period: None,
            deadline: None,
            wcet: None,
            bcet: None,
            execution: None,
            overrun: None,
            is_sporadic: false,
            gap: None,
            own_arrival: None,
            after: None,
            reads: Vec::new(),
            preemption: None,
            sections: Vec::new(),
            parts: Vec::new(),
            jobs: 0,
            lasts: None,
        }
    }

    /// Notes that a key says how the task arrives, which a task with `after` cannot.
    fn arrives_by(&mut self, given: Given<'a>) {
        self.own_arrival.get_or_insert(given);
    }
}

pub(crate) struct OfTask;

impl Subject for OfTask {
    type Draft<'a> = TaskDraft<'a>;
    type Source = Task;
}

type Row = Key<OfTask>;

/// What is lost with the keys on execution times.
const VARIATION: Option<&str> = Some("execution times below the wcet are");
/// Name of the key that makes a task follow others.
const AFTER: &str = "after";

/// Name of the task.
pub(crate) const OWN_NAME: Row = Row::new(
    NAME,
    |draft, given| {
        draft.name_line = given.node.line;
        set(&mut draft.task.name, given.printable())
    },
    |_, task| Some(text(&task.name)),
);

/// Time between arrivals.
pub(crate) const PERIOD: Row = Row::new(
    Spec::new("period", Kind::PositiveTime, "time between arrivals; the shortest such time for sporadic tasks")
        .unless(&[AFTER])
        .lost(None),
    |draft, given| put(&mut draft.period, given.at(given.time())),
    |set, task| first(set, task).after.is_empty().then(|| time(task.period().unwrap_or_default())),
);

/// Worst-case execution time.
pub(super) const WCET: Spec = Spec::new("wcet", Kind::PositiveTime, "worst-case execution time").lost(None);

/// Relative deadline.
pub(crate) const DEADLINE: Row = Row::new(
    Spec::new(
        "deadline",
        Kind::PositiveTime,
        "deadline relative to the arrival; can be shorter or longer than the period",
    )
    .default("the period; with `after`, that of the chains through the task")
    .lost(None),
    |draft, given| put(&mut draft.deadline, given.time()),
    |set, task| {
        let follows = !first(set, task).after.is_empty();
        (follows || Some(task.deadline) != task.period()).then(|| time(task.deadline))
    },
);

/// First arrival.
pub(crate) const OFFSET: Row = Row::new(
    Spec::new("offset", Kind::Time, "first arrival").default("`0`").lost(None),
    |draft, given| {
        draft.arrives_by(given);
        set(&mut draft.task.offset, given.time())
    },
    |set, task| own_time(first(set, task), task.offset),
);

/// Level of criticality.
pub(super) const CRITICALITY: Spec = Spec::new(
    "criticality",
    Kind::Either(&[Kind::Word(|| vec!["low", "high"]), Kind::Integer(0, 255)]),
    "`\"low\"` is 0, `\"high\"` is 1; above 0 is critical",
)
.default("`\"low\"`");

pub(super) const OWN_CRITICALITY: Row = Row::new(
    CRITICALITY,
    |draft, given| set(&mut draft.task.criticality, criticality(given)),
    |_, task| (task.criticality > 0).then(|| Out::Integer(i64::from(task.criticality))),
);

/// Whether deadlines are guaranteed.
pub(crate) const GUARANTEE: Row = Row::new(
    Spec::new("guarantee", Kind::Bool, "whether the shield is to guarantee its deadlines in overload")
        .default("`false`")
        .see("#guaranteed-tasks")
        .example("true"),
    |draft, given| set(&mut draft.task.guarantee, given.boolean()),
    |_, task| task.guarantee.then_some(Out::Bool(true)),
);

/// Value of a met deadline. Its range keeps sums of values finite and accurate.
pub(super) const VALUE: Spec = Spec::new("value", Kind::Number(0.0, 1e12), "value of one met deadline").default("`1`");

pub(super) const OWN_VALUE: Row = Row::new(
    VALUE,
    |draft, given| set(&mut draft.task.value, given.number()),
    |_, task| (task.value != 1.0).then_some(Out::Number(task.value)),
);

/// Priority for `fp`.
pub(crate) const PRIORITY: Row = Row::new(
    Spec::new("priority", Kind::Integer(i32::MIN as i64, i32::MAX as i64), "for `fp`: the larger number runs first")
        .default("after all others")
        .example("3"),
    |draft, given| extra(draft, Attribute::Priority, given.integer()),
    |_, task| task.extra.get(Attribute::Priority).map(Out::Integer),
);

pub(super) const OWN_PREEMPTION: Row =
    Row::new(PREEMPTION, |draft, given| put(&mut draft.preemption, given.at(preemption(given))), write_preemption);

pub(super) const OWN_CORES: Row =
    Row::new(CORES, |draft, given| set(&mut draft.task.cores, affinity(given)), write_affinity);

/// Worst-case execution time of a task or of a part.
pub(super) const OWN_WCET: Row = Row::new(
    WCET.doc("worst-case execution time; where times are measured, the greatest if not said").unless(&[EXECUTION]),
    |draft, given| put(&mut draft.wcet, given.time()),
    |_, task| Some(time(task.wcet)),
);

/// Best-case execution time.
pub(super) const BCET: Row = Row::new(
    Spec::new("bcet", Kind::PositiveTime, "best-case execution time").default("the wcet").lost(VARIATION),
    |draft, given| put(&mut draft.bcet, given.time()),
    |_, task| varies(task).then(|| time(task.bcet)),
);

/// Model of the execution times.
pub(super) const MODEL: Row = Row::new(
    Spec::new(EXECUTION, Kind::Either(&[Kind::Word(models), Kind::Models(specs)]), "what a job really takes")
        .default("wcet; uniform with a `bcet`; Weibull with an `acet`")
        .lost(VARIATION)
        .see("#execution-times"),
    |draft, given| put(&mut draft.execution, Ok(given.node)),
    |_, task| write_model(below_wcet(&task.execution)).filter(|_| varies(task)),
);

/// Average execution time.
pub(super) const ACET: Row = Row::new(
    Spec::new("acet", Kind::PositiveTime, "average execution time").default("unknown").lost(VARIATION),
    |draft, given| put(&mut draft.task.acet, given.time()),
    |_, task| task.acet.map(time),
);

/// Keys of `[[task]]`.
pub(crate) static TASK: Table<OfTask> = Table {
    what: "task",
    keys: &[
        OWN_NAME,
        PERIOD,
        Row::new(OWN_WCET.spec.unless(&[EXECUTION, PARTS_KEY]), OWN_WCET.read, |set, task| {
            written_unless_in_parts(set, task, &OWN_WCET)
        }),
        PARTS,
        DEADLINE,
        OFFSET,
        Row::new(
            Spec::new(
                "jitter",
                Kind::Time,
                "each release is delayed by a random time up to this, the deadline is not; can exceed the period",
            )
            .default("`0`"),
            |draft, given| {
                draft.arrives_by(given);
                set(&mut draft.task.jitter, given.time())
            },
            |set, task| own_time(first(set, task), first(set, task).jitter),
        ),
        Row::new(
            Spec::new("kind", Kind::Word(|| vec!["periodic", "sporadic"]), "how jobs arrive")
                .rank(2)
                .lost(None)
                .default("`\"periodic\"`"),
            |draft, given| {
                draft.arrives_by(given);
                set(&mut draft.is_sporadic, given.word(is_sporadic))
            },
            |set, task| sporadic_gap(first(set, task)).map(|_| text("sporadic")),
        ),
        Row::new(
            Spec::new("gap", Kind::Models(gaps), "time between arrivals of a sporadic task, never below the period")
                .rank(2)
                .lost(None)
                .default("uniform up to twice the period"),
            |draft, given| {
                draft.arrives_by(given);
                put(&mut draft.gap, Ok(given.node))
            },
            |set, task| {
                write_gap(
                    sporadic_gap(first(set, task))
                        .filter(|gap| **gap != default_gap(task.period().unwrap_or_default()))?,
                )
            },
        ),
        Row::new(BCET.spec, BCET.read, |set, task| written_unless_in_parts(set, task, &BCET)),
        Row::new(MODEL.spec, MODEL.read, |set, task| written_unless_in_parts(set, task, &MODEL)),
        Row::new(ACET.spec, ACET.read, |set, task| written_unless_in_parts(set, task, &ACET)),
        Row::new(
            Spec {
                alias: Some("estimate_error"),
                ..Spec::new("estimate", Kind::Table(&ESTIMATE), "jobs carry an estimate of their execution time")
            }
            .see("#estimates"),
            |draft, given| estimate(&mut draft.task, given),
            |set, task| task.estimate_error.map(|error| Out::Table(ESTIMATE.entries(set, &error))),
        ),
        Row::new(
            Spec::new(
                "wcet_high",
                Kind::PositiveTime,
                "mixed criticality: worst case at high criticality, at least the wcet",
            )
            .example("30"),
            |draft, given| put(&mut draft.task.wcet_high, given.time()),
            |_, task| task.wcet_high.map(time),
        ),
        Row::new(
            Spec::new("overrun", Kind::Number(0.0, 1.0), "share of jobs that take between `wcet` and `wcet_high`")
                .default("`0`")
                .example("0.1"),
            |draft, given| put(&mut draft.overrun, given.at(given.number())),
            |_, task| match task.execution {
                ExecutionModel::Overrun { probability, .. } => Some(Out::Number(probability)),
                _ => None,
            },
        ),
        OWN_CRITICALITY,
        GUARANTEE,
        OWN_VALUE,
        PRIORITY,
        Row::new(
            Spec::new("skip", Kind::Integer(2, u32::MAX as i64), "one job in every `skip` can be skipped").example("4"),
            |draft, given| extra(draft, Attribute::Skip, given.integer()),
            |_, task| task.extra.get(Attribute::Skip).map(Out::Integer),
        ),
        Row::new(
            Spec::new(
                "mk",
                Kind::Either(&[Kind::List(&Kind::Integer(1, u32::MAX as i64), 2, 2), Kind::Fraction]),
                "`[m, k]`: at least m of any k consecutive jobs must meet their deadline",
            )
            .csv(Csv::Column("/"))
            .example("[2, 3]"),
            |draft, given| put(&mut draft.task.mk, mk(given)),
            |_, task| task.mk.map(|(m, k)| Out::list([m, k].map(|number| Out::Integer(i64::from(number))))),
        ),
        Row::new(
            Spec::new("server", Kind::Reference, "name of the `[[server]]` that serves its jobs")
                .lost(Some("its server is"))
                .csv(Csv::Refused("the server"))
                .example("\"aperiodic\""),
            |draft, given| extra(draft, Attribute::Server, server(given)),
            |set, task| task.extra.get(Attribute::Server).map(|server| text(&set.servers()[server as usize].name)),
        ),
        Row::new(PREEMPTION, OWN_PREEMPTION.read, |set, task| written_unless_in_parts(set, task, &OWN_PREEMPTION)),
        Row::new(
            Spec::new(AFTER, NAMES, "names of the tasks that this one comes after")
                .rank(1)
                .see("#precedence-and-chains")
                .csv(Csv::Column("; ")),
            |draft, given| put(&mut draft.after, names(given)),
            |set, task| {
                let after = &first(set, task).after;
                (!after.is_empty()).then(|| write_names(set, after))
            },
        ),
        Row::new(
            Spec::new("reads", NAMES, "names of the tasks whose newest values its jobs read")
                .rank(1)
                .csv(Csv::Column("; "))
                .example("[\"camera\"]"),
            |draft, given| set(&mut draft.reads, names(given)),
            |set, task| {
                let reads = &first(set, task).reads;
                (!reads.is_empty()).then(|| write_names(set, reads))
            },
        ),
        Row::new(CORES, OWN_CORES.read, |set, task| written_unless_in_parts(set, task, &OWN_CORES)),
        SECTIONS,
    ],
};

/// Returns the value of a key that parts state for themselves, unless the task has parts.
fn written_unless_in_parts(set: &TaskSet, task: &Task, key: &Row) -> Option<Out> {
    if has_parts(set, task) { None } else { (key.write)(set, task) }
}

/// Returns a time that a task states for itself, unless it is zero or the task arrives with others.
fn own_time(task: &Task, value: Time) -> Option<Out> {
    (value > Time::ZERO && task.after.is_empty()).then(|| time(value))
}

/// Returns the gaps of a sporadic task that states none.
pub(crate) fn default_gap(period: Time) -> Gap {
    Gap::Uniform { max: period + period }
}

/// Returns the gaps of a sporadic task that does not arrive with others.
fn sporadic_gap(task: &Task) -> Option<&Gap> {
    match &task.arrival {
        Arrival::Sporadic { gap, .. } if task.after.is_empty() => Some(gap),
        _ => None,
    }
}

/// Returns the model of the jobs that do not overrun.
fn below_wcet(model: &ExecutionModel) -> &ExecutionModel {
    match model {
        ExecutionModel::Overrun { below, .. } => below,
        model => model,
    }
}

/// Returns whether the execution times of a task are more than its wcet.
fn varies(task: &Task) -> bool {
    task.bcet != task.wcet || *below_wcet(&task.execution) != ExecutionModel::Wcet
}

fn is_sporadic(kind: &str) -> Option<bool> {
    ["periodic", "sporadic"].iter().position(|known| *known == kind).map(|index| index == 1)
}

/// Reads a criticality: `low`, `high` or a level.
pub(super) fn criticality(given: Given<'_>) -> Result<u8, Problem> {
    match &given.node.value {
        Value::Text(text) | Value::Cell(text) if text == "low" => Ok(0),
        Value::Text(text) | Value::Cell(text) if text == "high" => Ok(1),
        Value::Number(_) | Value::Cell(_) => given.integer().map(|level| level as u8),
        _ => Err(given.is("is none of low, high, 0 to 255")),
    }
}

/// Reads `mk = [2, 3]`, or `2/3` in a CSV cell.
fn mk(given: Given<'_>) -> Result<(u32, u32), Problem> {
    let wrong = || given.is("must be [m, k] with 1 <= m <= k");
    let (m, k) = match &given.node.value {
        Value::List(items) if items.len() == 2 => {
            let number = |node: &Node| node.integer(given.name, 1, i64::from(u32::MAX)).map(|number| number as u32);
            (number(&items[0])?, number(&items[1])?)
        }
        Value::Text(text) | Value::Cell(text) => {
            let (m, k) = text.split_once('/').ok_or_else(wrong)?;
            let part = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
            (part(m)?, part(k)?)
        }
        _ => return Err(wrong()),
    };
    if m < 1 || m > k { Err(wrong()) } else { Ok((m, k)) }
}

/// Takes an attribute that only some schedulers read.
fn extra(draft: &mut TaskDraft<'_>, attribute: Attribute, value: Result<i64, Problem>) -> Result<(), Problem> {
    draft.task.extra.set(attribute, Some(value?));
    Ok(())
}

/// Reads the name of a server, and returns its place.
fn server(given: Given<'_>) -> Result<i64, Problem> {
    let (wanted, servers) = (given.text()?, given.with.servers);
    let hint = || did_you_mean(wanted, servers.iter().map(|server| server.name.as_str()));
    let unknown = || Problem::at(given.node.line, format!("there is no server {wanted:?}{}", hint()));
    let place = servers.iter().position(|server| server.name == wanted).ok_or_else(unknown)?;
    Ok(place as i64)
}
