//! Nodes to a task set: which keys there are, what they mean, what is refused.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use temponet_task::wording::did_you_mean;
use temponet_task::{
    Aim, Arrival, Costs, ExecutionModel, Gap, Mode, OnMiss, Server, Speed, Task, TaskSet, Time, TimeUnit,
};

use crate::Problem;
use crate::csv::Rows;
use crate::input::read_bytes;
use crate::node::{Fields, Node, Value};
use crate::notes::{Imported, Notes};

/// What reading gives: a set and its warnings, or what is wrong.
pub(super) type ReadResult = Result<(TaskSet, Vec<Problem>), Problem>;

/// Sums of values stay finite and exact enough.
pub(super) const MOST_VALUE: f64 = 1e12;
pub(super) const MOST_CORES: i64 = 4096;
const MOST_JOBS_PER_BURST: i64 = 1_000_000;

/// The keys of each table.
const FILE_KEYS: &[&str] =
    &["time_unit", "description", "cores", "on_miss", "goal", "costs", "speeds", "server", "task", "burst", "mode"];
const TASK_KEYS: &[&str] = &[
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
    "wcet_high",
    "overrun",
    "criticality",
    "value",
    "priority",
    "skip",
    "mk",
    "server",
];
const BURST_KEYS: &[&str] = &["name", "jobs", "every", "wcet", "deadline", "start", "for", "criticality", "value"];
const SERVER_KEYS: &[&str] = &["name", "budget", "period"];
const MODE_KEYS: &[&str] = &["name", "at", "work", "rate", "tasks"];
const COST_KEYS: &[&str] = &["context_switch", "migration", "decision"];

pub(super) fn task_set(root: &Node, name: String, origin: &Path) -> Result<Imported, Problem> {
    let mut fields = Fields::of(root, "the file")?.only(FILE_KEYS)?;
    let time_unit = match fields.take("time_unit") {
        None => TimeUnit::Ms,
        Some(node) => TimeUnit::from_name(node.text("time_unit")?)
            .ok_or_else(|| Problem::at(node.line, format!("time_unit = {} is none of ns, us, ms, s", node.shown())))?,
    };
    let mut set = TaskSet { time_unit, ..TaskSet::new(name, Vec::new(), 1) };
    if let Some(node) = fields.take("description") {
        set.description = node.text("description")?.to_string();
    }
    if let Some(node) = fields.take("cores") {
        set.cores = node.integer("cores", 1, MOST_CORES)? as usize;
    }
    if let Some(node) = fields.take("on_miss") {
        set.on_miss = OnMiss::from_name(node.text("on_miss")?)
            .ok_or_else(|| Problem::at(node.line, format!("on_miss = {} is none of abort, continue", node.shown())))?;
    }
    if let Some(node) = fields.take("goal") {
        set.aims = aims(node)?;
    }
    if let Some(node) = fields.take("costs") {
        set.costs = costs(node, time_unit)?;
    }
    if let Some(node) = fields.take("speeds") {
        set.speeds = speeds(node)?;
    }
    let mut names = Names::default();
    for node in list(&mut fields, "server")? {
        set.servers.push(server(node, time_unit, &mut names)?);
    }
    let mut reader =
        TaskReader { unit: time_unit, origin, servers: &set.servers, warnings: Vec::new(), names, files: Vec::new() };
    reader.names.0.clear();
    for node in list(&mut fields, "task")? {
        set.tasks.push(reader.task(node)?);
    }
    for node in list(&mut fields, "burst")? {
        set.tasks.push(reader.burst(node)?);
    }
    let (warnings, files) = (reader.warnings, reader.files);
    for node in list(&mut fields, "mode")? {
        set.modes.push(mode(node, &set)?);
    }
    set.modes.sort_by_key(|mode| mode.at);
    fields.finish()?;
    if set.tasks.is_empty() {
        return Err(Problem::whole_file("has no tasks: write at least one [[task]] with name, period and wcet"));
    }
    Ok(Imported { set, warnings, notes: Notes::default(), files })
}

fn list<'a>(fields: &mut Fields<'a>, key: &'static str) -> Result<&'a [Node], Problem> {
    fields.take(key).map_or(Ok(&[]), |node| node.list(key))
}

/// A name that can be shown, with its line.
pub(super) fn name(fields: &mut Fields<'_>) -> Result<(String, usize), Problem> {
    let node = fields.need("name")?;
    Ok((printable(node.text("name")?, node.line)?, node.line))
}

/// A name without the spaces around it.
pub(super) fn printable(name: &str, line: usize) -> Result<String, Problem> {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::at(line, format!("name = {name:?} must be a printable text")));
    }
    Ok(name.to_string())
}

/// The names of a set so far with their lines.
#[derive(Default)]
pub(super) struct Names(HashMap<String, usize>);

impl Names {
    fn take(&mut self, fields: &mut Fields<'_>) -> Result<String, Problem> {
        let (name, line) = name(fields)?;
        self.add(name, line)
    }

    /// The name, if it is new.
    pub fn add(&mut self, name: String, line: usize) -> Result<String, Problem> {
        match self.0.insert(name.clone(), line) {
            Some(first) => Err(Problem::at(line, format!("the name {name:?} stands already in line {first}"))),
            None => Ok(name),
        }
    }
}

/// `goal = ["critical", "value"]`, or one aim alone.
fn aims(node: &Node) -> Result<Vec<Aim>, Problem> {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let aim = |item: &Node| {
        let known = || Aim::ALL.map(Aim::name).join(", ");
        Aim::from_name(item.text("goal")?)
            .ok_or_else(|| Problem::at(item.line, format!("goal = {} is none of {}", item.shown(), known())))
    };
    items.iter().map(aim).collect()
}

fn costs(node: &Node, unit: TimeUnit) -> Result<Costs, Problem> {
    let mut fields = Fields::of(node, "costs")?.only(COST_KEYS)?;
    let costs = Costs {
        context_switch: fields.time("context_switch", unit)?.unwrap_or_default(),
        migration: fields.time("migration", unit)?.unwrap_or_default(),
        decision: fields.time("decision", unit)?.unwrap_or_default(),
    };
    fields.finish()?;
    Ok(costs)
}

fn speeds(node: &Node) -> Result<Vec<Speed>, Problem> {
    let mut speeds = Vec::new();
    for item in node.list("speeds")? {
        let share = item.number("speeds", 0.001, 1.0)?;
        speeds.push(Speed((share * 1000.0).round() as u32));
    }
    speeds.sort();
    speeds.dedup();
    match speeds.last() {
        Some(&Speed::FULL) => Ok(speeds),
        _ => Err(Problem::at(node.line, "speeds are shares of full speed and must contain 1.0")),
    }
}

fn server(node: &Node, unit: TimeUnit, names: &mut Names) -> Result<Server, Problem> {
    let mut fields = Fields::of(node, "server")?.only(SERVER_KEYS)?;
    let name = names.take(&mut fields)?;
    let budget = fields.need("budget")?.positive_time("budget", unit)?;
    let period = fields.need("period")?.positive_time("period", unit)?;
    let line = fields.line();
    fields.finish()?;
    if budget > period {
        return Err(Problem::at(line, format!("server {name:?} has budget {budget} > period {period}")));
    }
    Ok(Server { name, budget, period })
}

fn mode(node: &Node, set: &TaskSet) -> Result<Mode, Problem> {
    let mut fields = Fields::of(node, "mode")?.only(MODE_KEYS)?;
    let at = fields.need("at")?.time("at", set.time_unit)?;
    let name = match fields.take("name") {
        Some(node) => printable(node.text("name")?, node.line)?,
        None => format!("mode {}", set.modes.len() + 1),
    };
    let mut factor = |key| fields.take(key).map_or(Ok(1.0), |node: &Node| node.number(key, 0.001, 1000.0));
    let (work, rate) = (factor("work")?, factor("rate")?);
    let tasks = match fields.take("tasks") {
        None => None,
        Some(node) => {
            let mut indices = Vec::new();
            for item in node.list("tasks")? {
                let wanted = item.text("tasks")?;
                let index = set.tasks.iter().position(|task| task.name == wanted);
                let hint = || did_you_mean(wanted, set.tasks.iter().map(|task| task.name.as_str()));
                let unknown = || Problem::at(item.line, format!("there is no task {wanted:?}{}", hint()));
                indices.push(index.ok_or_else(unknown)?);
            }
            Some(indices)
        }
    };
    fields.finish()?;
    Ok(Mode { name, at, work, rate, tasks })
}

pub(super) fn criticality(node: &Node) -> Result<u8, Problem> {
    match &node.value {
        Value::Text(text) | Value::Cell(text) if text == "low" => Ok(0),
        Value::Text(text) | Value::Cell(text) if text == "high" => Ok(1),
        Value::Number(_) | Value::Cell(_) => node.integer("criticality", 0, 255).map(|level| level as u8),
        _ => Err(Problem::at(node.line, format!("criticality = {} is none of low, high, 0 to 255", node.shown()))),
    }
}

/// The warning about a task that cannot meet its deadline in the worst case.
pub(super) fn hopeless(line: usize, task: &Task) -> Option<Problem> {
    let Task { name, wcet, deadline, .. } = task;
    let message = || format!("warning: task {name:?} has wcet {wcet} > deadline {deadline}");
    (wcet > deadline).then(|| Problem::at(line, message()))
}

/// Reads `[[task]]` and `[[burst]]` tables of one file.
struct TaskReader<'a> {
    unit: TimeUnit,
    origin: &'a Path,
    servers: &'a [Server],
    warnings: Vec<Problem>,
    names: Names,
    /// The files that tasks refer to.
    files: Vec<PathBuf>,
}

impl TaskReader<'_> {
    fn task(&mut self, node: &Node) -> Result<Task, Problem> {
        let unit = self.unit;
        let mut fields = Fields::of(node, "task")?.only(TASK_KEYS)?;
        let name = self.names.take(&mut fields)?;
        let period = fields.need("period")?.positive_time("period", unit)?;
        let execution_node = fields.take("execution");
        let samples = self.samples(execution_node)?;
        let wcet = match (fields.positive_time("wcet", unit)?, &samples) {
            (Some(wcet), _) => wcet,
            (None, Some(samples)) => samples.iter().copied().max().unwrap_or_default(),
            (None, None) => return Err(Problem::at(node.line, format!("task {name:?} has no wcet"))),
        };
        let mut task = Task { name, ..Task::periodic("", period, wcet) };
        task.arrival = self.arrival(&mut fields, period)?;
        if let Some(deadline) = fields.positive_time("deadline", unit)? {
            task.deadline = deadline;
        }
        task.offset = fields.time("offset", unit)?.unwrap_or_default();
        task.jitter = fields.time("jitter", unit)?.unwrap_or_default();
        self.execution_times(&mut fields, &mut task, execution_node, samples)?;
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
        fields.finish()?;
        self.warnings.extend(hopeless(node.line, &task));
        Ok(task)
    }

    fn burst(&mut self, node: &Node) -> Result<Task, Problem> {
        let unit = self.unit;
        let mut fields = Fields::of(node, "burst")?.only(BURST_KEYS)?;
        let name = self.names.take(&mut fields)?;
        let jobs = fields.need("jobs")?.integer("jobs", 1, MOST_JOBS_PER_BURST)? as u32;
        let every = fields.need("every")?.positive_time("every", unit)?;
        let wcet = fields.need("wcet")?.positive_time("wcet", unit)?;
        let mut task = Task { name, ..Task::periodic("", every, wcet) };
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
        fields.finish()?;
        self.warnings.extend(hopeless(node.line, &task));
        Ok(task)
    }

    fn importance(&self, fields: &mut Fields<'_>, task: &mut Task) -> Result<(), Problem> {
        if let Some(node) = fields.take("criticality") {
            task.criticality = criticality(node)?;
        }
        if let Some(node) = fields.take("value") {
            task.value = node.number("value", 0.0, MOST_VALUE)?;
        }
        Ok(())
    }

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

    /// bcet, acet, wcet_high and the model, which must fit each other.
    fn execution_times(
        &self,
        fields: &mut Fields<'_>,
        task: &mut Task,
        model: Option<&Node>,
        samples: Option<Arc<[Time]>>,
    ) -> Result<(), Problem> {
        let unit = self.unit;
        let line = fields.line();
        let wrong = |message: String| Err(Problem::at(line, format!("task {:?}: {message}", task.name)));
        let bcet = fields.positive_time("bcet", unit)?;
        let acet = fields.positive_time("acet", unit)?;
        let wcet = task.wcet;
        if let Some(samples) = &samples {
            let longest = samples.iter().copied().max().unwrap_or_default();
            if longest > wcet {
                return wrong(format!("a measured time of {longest} is more than the wcet {wcet}"));
            }
        }
        let least_sample = samples.as_ref().and_then(|samples| samples.iter().copied().min());
        let name = model.map_or(Ok(None), model_name)?;
        let bcet = match (bcet, least_sample, acet, name) {
            (Some(bcet), ..) => bcet,
            (None, Some(least), ..) => least,
            (None, None, None, None | Some("wcet")) => wcet,
            _ => return wrong("execution times that vary need a bcet".into()),
        };
        if bcet > wcet {
            return wrong(format!("bcet {bcet} is more than the wcet {wcet}"));
        }
        if least_sample.is_some_and(|least| least < bcet) {
            return wrong(format!("a measured time is less than the bcet {bcet}"));
        }
        if acet.is_some_and(|acet| acet < bcet || acet > wcet) {
            let acet = acet.unwrap_or_default();
            return wrong(format!("acet {acet} is not between bcet {bcet} and wcet {wcet}"));
        }
        let execution = match (name, model) {
            (Some(_), Some(node)) => self.model(node, acet, samples)?,
            _ if bcet == wcet => ExecutionModel::Wcet,
            _ if acet.is_some() => ExecutionModel::Weibull { exceed: DEFAULT_EXCEED },
            _ => ExecutionModel::Uniform,
        };
        let wcet_high = fields.take("wcet_high");
        let overrun = fields.take("overrun");
        let high = wcet_high.map(|node| node.positive_time("wcet_high", unit)).transpose()?;
        if high.is_some_and(|high| high < wcet) {
            return wrong(format!("wcet_high {} is less than the wcet {wcet}", high.unwrap_or_default()));
        }
        let execution = match overrun {
            None => execution,
            Some(node) if high.is_none() => return Err(Problem::at(node.line, "overrun needs a wcet_high")),
            Some(node) => match node.number("overrun", 0.0, 1.0)? {
                0.0 => execution,
                probability => ExecutionModel::Overrun { probability, below: Box::new(execution) },
            },
        };
        (task.bcet, task.acet, task.wcet_high, task.execution) = (bcet, acet, high, execution);
        Ok(())
    }

    fn model(&self, node: &Node, acet: Option<Time>, samples: Option<Arc<[Time]>>) -> Result<ExecutionModel, Problem> {
        let Some(name) = model_name(node)? else { return Ok(ExecutionModel::Wcet) };
        let table = matches!(node.value, Value::Table(_));
        let mut fields = if table { Some(Fields::of(node, "execution")?) } else { None };
        let mut take = |key| fields.as_mut().and_then(|fields| fields.take(key));
        take("model");
        let needs_acet = || match acet {
            Some(_) => Ok(()),
            None => Err(Problem::at(node.line, format!("execution model {name:?} needs an acet"))),
        };
        let model = match name {
            "wcet" => ExecutionModel::Wcet,
            "uniform" => ExecutionModel::Uniform,
            "normal" => {
                let deviation = take("deviation")
                    .ok_or_else(|| Problem::at(node.line, "execution model \"normal\" needs a deviation"))?;
                ExecutionModel::Normal { deviation: deviation.positive_time("deviation", self.unit)? }
            }
            "weibull" => {
                needs_acet()?;
                let exceed = take("exceed").map(|node| node.number("exceed", 1e-9, 0.5)).transpose()?;
                ExecutionModel::Weibull { exceed: exceed.unwrap_or(DEFAULT_EXCEED) }
            }
            "pareto" => {
                let shape = take("shape").map(|node| node.number("shape", 0.01, 100.0)).transpose()?;
                ExecutionModel::Pareto { shape: shape.unwrap_or(2.0) }
            }
            "empirical" => {
                for key in ["file", "column", "samples"] {
                    take(key);
                }
                let samples = samples
                    .ok_or_else(|| Problem::at(node.line, "execution model \"empirical\" needs a file and a column"))?;
                ExecutionModel::Empirical { samples }
            }
            other => {
                let known = "wcet, uniform, normal, weibull, pareto, empirical";
                return Err(Problem::at(node.line, format!("execution model {other:?} is none of {known}")));
            }
        };
        if let Some(fields) = fields {
            fields.finish()?;
        }
        Ok(model)
    }

    /// The measured times of `execution = { model = "empirical", … }`.
    fn samples(&mut self, execution: Option<&Node>) -> Result<Option<Arc<[Time]>>, Problem> {
        let Some(node) = execution.filter(|node| matches!(node.value, Value::Table(_))) else { return Ok(None) };
        if model_name(node)? != Some("empirical") {
            return Ok(None);
        }
        let mut fields = Fields::of(node, "execution")?;
        let samples: Vec<Time> = match (fields.take("samples"), fields.take("file")) {
            (Some(list), None) => {
                let items = list.list("samples")?.iter();
                items.map(|item| item.positive_time("samples", self.unit)).collect::<Result<_, _>>()?
            }
            (None, Some(file)) => {
                let column = fields.need("column")?.text("column")?;
                let path = self.origin.with_file_name(file.text("file")?);
                let times = self.measured(&path, file.line, column)?;
                self.files.push(path);
                times
            }
            _ => return Err(Problem::at(node.line, "an empirical model has either samples, or a file and a column")),
        };
        if samples.is_empty() {
            return Err(Problem::at(node.line, "an empirical model without a single measured time"));
        }
        Ok(Some(samples.into()))
    }

    /// One column of a CSV file as times.
    fn measured(&self, path: &Path, line: usize, wanted: &str) -> Result<Vec<Time>, Problem> {
        let cannot = |why: String| Problem::at(line, format!("cannot read {}: {why}", path.display()));
        // A device or a pipe may never end.
        if path.metadata().is_ok_and(|kind| !kind.is_file()) {
            return Err(cannot("it is no ordinary file".into()));
        }
        let bytes = read_bytes(path).map_err(|error| cannot(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".into()))?;
        let in_file = |problem: Problem| Problem { file: Some(path.display().to_string()), ..problem };
        let mut rows = Rows::of(&text).map_err(in_file)?;
        let key = rows.key_of(wanted);
        let key = key.ok_or_else(|| Problem::at(line, format!("{} has no column {wanted:?}", path.display())))?;
        let mut times = Vec::new();
        while let Some(row) = rows.next_row().map_err(in_file)? {
            let cell = row.table("row")?.entries.iter().find(|(column, _)| *column == key);
            let (_, cell) = cell.ok_or_else(|| in_file(Problem::at(row.line, format!("{wanted} is empty"))))?;
            times.push(cell.positive_time(wanted, self.unit).map_err(in_file)?);
        }
        Ok(times)
    }
}

/// The share of a Weibull's mass beyond the wcet when a file does not say.
const DEFAULT_EXCEED: f64 = 0.005;

/// The model of `execution = "uniform"` or `execution = { model = "uniform" }`.
fn model_name(node: &Node) -> Result<Option<&str>, Problem> {
    match &node.value {
        Value::Table(table) => match table.entries.iter().find(|(key, _)| key == "model") {
            Some((_, model)) => model.text("model").map(Some),
            None => Err(Problem::at(node.line, "execution has no model")),
        },
        _ => node.text("execution").map(Some),
    }
}

/// `mk = [2, 3]`, or `2/3` in a CSV cell.
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
