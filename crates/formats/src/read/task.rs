//! `[[task]]` and `[[burst]]` tables to tasks.

use std::path::{Path, PathBuf};

use temponet_wording::did_you_mean;
use temponet_task::{Arrival, Core, Gap, Preemption, Server, Speed, Task, Time, TimeUnit};

use super::precedence::Links;
use super::sections::sections;
use super::{MOST_VALUE, Names, affinity, criticality, hopeless, limit, preemption};
use crate::Problem;
use crate::node::{Fields, Node, Value};

/// Largest number of jobs in a burst.
const MOST_JOBS_PER_BURST: i64 = 1_000_000;

/// Keys of `[[task]]`.
pub const TASK_KEYS: &[&str] = &[
    "name",
    "period",
    "wcet",
    "deadline",
    "offset",
    "jitter",
    "kind",
    "gap",
    "bcet",
    "acet",
    "execution",
    "estimate",
    "estimate_error",
    "wcet_high",
    "overrun",
    "criticality",
    "guarantee",
    "value",
    "priority",
    "skip",
    "mk",
    "server",
    "preemption",
    "after",
    "reads",
    "section",
    "cores",
];
/// Keys of `[[burst]]`.
pub const BURST_KEYS: &[&str] = &[
    "name",
    "jobs",
    "every",
    "wcet",
    "deadline",
    "start",
    "for",
    "criticality",
    "guarantee",
    "value",
    "preemption",
    "cores",
];

/// Reader of the `[[task]]` and `[[burst]]` tables of a file.
pub(super) struct TaskReader<'a> {
    /// Unit of bare numbers.
    pub unit: TimeUnit,
    /// Path of the file.
    pub origin: &'a Path,
    pub servers: &'a [Server],
    /// Cores with names; none if they have none.
    pub machine: &'a [Core],
    /// Number of cores.
    pub cores: usize,
    /// Limit on preemption of tasks that state none, and its line.
    pub default_preemption: Option<(Preemption, usize)>,
    pub warnings: Vec<Problem>,
    pub names: Names,
    /// Files that tasks refer to.
    pub files: Vec<PathBuf>,
    /// What each `[[task]]` says about other tasks.
    pub links: Vec<Links>,
    /// Names of the resources so far.
    pub resources: Vec<String>,
}

impl TaskReader<'_> {
    /// Reads a `[[task]]` table.
    pub fn task(&mut self, node: &Node) -> Result<Task, Problem> {
        let unit = self.unit;
        let mut fields = Fields::of(node, "task")?.only(TASK_KEYS)?;
        let name = self.names.take(&mut fields)?;
        let (links, period) = Links::take(&mut fields, unit)?;
        // The period of a task that arrives with others follows once all tasks are known.
        let period = period.unwrap_or(Time(1));
        let execution_node = fields.take("execution");
        let samples = self.samples(execution_node)?;
        let wcet = match (fields.positive_time("wcet", unit)?, &samples) {
            (Some(wcet), _) => wcet,
            (None, Some(samples)) => samples.iter().copied().max().unwrap_or_default(),
            (None, None) => return Err(Problem::at(node.line, format!("task {name:?} has no wcet"))),
        };
        let mut task = Task::periodic("", period, wcet).with_name(name);
        task.arrival = self.arrival(&mut fields, period)?;
        let deadline = fields.positive_time("deadline", unit)?;
        task.deadline = deadline.unwrap_or(period);
        task.offset = fields.time("offset", unit)?.unwrap_or_default();
        task.jitter = fields.time("jitter", unit)?.unwrap_or_default();
        self.execution_times(&mut fields, &mut task, execution_node, samples)?;
        task.estimate_error = super::estimate::error(&mut fields)?;
        self.importance(&mut fields, &mut task)?;
        if let Some(node) = fields.take("priority") {
            task.priority = Some(node.integer("priority", i64::from(i32::MIN), i64::from(i32::MAX))?);
        }
        if let Some(node) = fields.take("skip") {
            task.skip = Some(node.integer("skip", 2, i64::from(u32::MAX))? as u32);
        }
        if let Some(node) = fields.take("mk") {
            task.mk = Some(mk(node)?);
        }
        if let Some(node) = fields.take("server") {
            let wanted = node.text("server")?;
            let index = self.servers.iter().position(|server| server.name == wanted);
            let hint = || did_you_mean(wanted, self.servers.iter().map(|server| server.name.as_str()));
            let unknown = || Problem::at(node.line, format!("there is no server {wanted:?}{}", hint()));
            task.server = Some(index.ok_or_else(unknown)?);
        }
        self.preemption(&mut fields, &mut task)?;
        if let Some(node) = fields.take("section") {
            sections(node, &mut task, &mut self.resources, unit)?;
        }
        let fastest = self.cores(&mut fields, &mut task)?;
        fields.finish()?;
        if !links.follows() {
            self.warnings.extend(hopeless(node.line, &task, fastest));
        }
        self.links.push(links.with_deadline(deadline.is_some()));
        Ok(task)
    }

    /// Reads a `[[burst]]` table.
    pub fn burst(&mut self, node: &Node) -> Result<Task, Problem> {
        let unit = self.unit;
        let mut fields = Fields::of(node, "burst")?.only(BURST_KEYS)?;
        let name = self.names.take(&mut fields)?;
        let jobs = fields.need("jobs")?.integer("jobs", 1, MOST_JOBS_PER_BURST)? as u32;
        let every = fields.need("every")?.positive_time("every", unit)?;
        let wcet = fields.need("wcet")?.positive_time("wcet", unit)?;
        let mut task = Task::periodic("", every, wcet).with_name(name);
        if let Some(deadline) = fields.positive_time("deadline", unit)? {
            task.deadline = deadline;
        }
        task.offset = fields.time("start", unit)?.unwrap_or_default();
        let until = match fields.positive_time("for", unit)? {
            Some(length) => task.offset + length,
            None => Time::NEVER,
        };
        task.arrival = Arrival::Burst { jobs, every, until };
        self.importance(&mut fields, &mut task)?;
        self.preemption(&mut fields, &mut task)?;
        let fastest = self.cores(&mut fields, &mut task)?;
        fields.finish()?;
        self.warnings.extend(hopeless(node.line, &task, fastest));
        Ok(task)
    }

    /// Reads criticality, guarantee and value.
    fn importance(&self, fields: &mut Fields<'_>, task: &mut Task) -> Result<(), Problem> {
        if let Some(node) = fields.take("criticality") {
            task.criticality = criticality(node)?;
        }
        if let Some(node) = fields.take("guarantee") {
            task.guarantee = node.boolean("guarantee")?;
        }
        if let Some(node) = fields.take("value") {
            task.value = node.number("value", 0.0, MOST_VALUE)?;
        }
        Ok(())
    }

    /// Reads where jobs can be preempted, or takes the default of the file.
    fn preemption(&self, fields: &mut Fields<'_>, task: &mut Task) -> Result<(), Problem> {
        let own = fields.take("preemption").map(|node| Ok((preemption(node, self.unit)?, node.line)));
        match own.transpose()?.or(self.default_preemption) {
            Some((preemption, line)) => limit(task, preemption, line),
            None => Ok(()),
        }
    }

    /// Reads the cores that jobs may use. Returns the speed of the fastest of them.
    fn cores(&self, fields: &mut Fields<'_>, task: &mut Task) -> Result<Speed, Problem> {
        if let Some(node) = fields.take("cores") {
            task.cores = affinity(node, self.machine, self.cores)?;
        }
        let named = self.machine.iter().enumerate().filter(|(core, _)| task.cores.contains(*core));
        Ok(named.map(|(_, core)| core.speed).max().unwrap_or(Speed::FULL))
    }

    /// Reads `kind` and `gap`.
    fn arrival(&self, fields: &mut Fields<'_>, period: Time) -> Result<Arrival, Problem> {
        let kind = fields.take("kind");
        let gap = fields.take("gap");
        match kind.map(|node| node.text("kind")).transpose()? {
            None | Some("periodic") => match gap {
                None => Ok(Arrival::Periodic { period }),
                Some(node) => Err(Problem::at(node.line, "gap belongs to kind = \"sporadic\"")),
            },
            Some("sporadic") => {
                let gap = gap.map_or(Ok(Gap::Uniform { max: period + period }), |node| self.gap(node, period))?;
                Ok(Arrival::Sporadic { minimum: period, gap })
            }
            Some(other) => {
                let line = kind.map_or(fields.line(), |node| node.line);
                Err(Problem::at(line, format!("kind = {other:?} is none of periodic, sporadic")))
            }
        }
    }

    /// Reads the distribution of gaps, none of which is shorter than `period`.
    fn gap(&self, node: &Node, period: Time) -> Result<Gap, Problem> {
        let mut fields = Fields::of(node, "gap")?;
        let model = fields.need("model")?;
        let at_least_period = |node: &Node, key: &'static str| match node.time(key, self.unit)? {
            time if time >= period => Ok(time),
            _ => Err(Problem::at(node.line, format!("{key} = {} is less than the period {period}", node.shown()))),
        };
        let gap = match model.text("model")? {
            "uniform" => Gap::Uniform { max: at_least_period(fields.need("max")?, "max")? },
            "exponential" => Gap::Exponential { mean: at_least_period(fields.need("mean")?, "mean")? },
            other => {
                return Err(Problem::at(model.line, format!("gap model {other:?} is none of uniform, exponential")));
            }
        };
        fields.finish()?;
        Ok(gap)
    }
}

/// Reads `mk = [2, 3]`, or `2/3` in a CSV cell.
fn mk(node: &Node) -> Result<(u32, u32), Problem> {
    let wrong = || Problem::at(node.line, format!("mk = {} must be [m, k] with 1 <= m <= k", node.shown()));
    let (m, k) = match &node.value {
        Value::List(items) if items.len() == 2 => {
            (items[0].integer("mk", 1, i64::from(u32::MAX))?, items[1].integer("mk", 1, i64::from(u32::MAX))?)
        }
        Value::Text(text) | Value::Cell(text) => {
            let (m, k) = text.split_once('/').ok_or_else(wrong)?;
            let part = |text: &str| text.trim().parse::<u32>().map(i64::from).map_err(|_| wrong());
            (part(m)?, part(k)?)
        }
        _ => return Err(wrong()),
    };
    if m < 1 || m > k {
        return Err(wrong());
    }
    Ok((m as u32, k as u32))
}
