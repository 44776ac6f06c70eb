//! Task set to file. Whatever is written reads back as the same set. What a format cannot represent is an error that names
//! it.
//!
//! CSV is written by the `csv` crate. TOML and JSON are laid out here, because people read and compare these files: JSON
//! has one line per task, and TOML has one line per key, with gaps, execution models and costs as inline tables.
//! `serde_json` puts either every value or the whole file on one line, and `toml` turns inner tables into sections.
//! Quoting and escaping of texts is left to those crates.

use temponet_task::{
    Arrival, Communication, Core, Costs, Estimate, ExecutionModel, Gap, ListedJob, OnMiss, Preemption, Protocol,
    Section, Speed, Task, TaskSet, Time,
};

use crate::Format;

/// Reason why a set cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be written as {format}{hint}")]
pub struct NotRepresentable {
    pub(super) what: String,
    pub(super) format: &'static str,
    pub(super) hint: &'static str,
}

/// Returns the set as the text of a file in this format.
pub fn write(set: &TaskSet, format: Format) -> Result<String, NotRepresentable> {
    let is_listed = |task: &Task| matches!(task.arrival, Arrival::Listed(_));
    let listed = set.tasks().iter().any(is_listed);
    match format {
        Format::SimSo => Err(NotRepresentable {
            what: "a task set".into(),
            format: "SimSo XML",
            hint: ": the name must end in .toml, .csv or .json",
        }),
        _ if listed && !set.tasks().iter().all(is_listed) => Err(NotRepresentable {
            what: "single jobs beside tasks that recur".into(),
            format: "one file",
            hint: "; the file they come from can be simulated as it is",
        }),
        Format::Csv if listed => job_list(set),
        Format::Csv => csv(set),
        Format::Toml | Format::Json if listed => Err(NotRepresentable {
            what: "a list of single jobs".into(),
            format: if format == Format::Toml { "TOML" } else { "JSON" },
            hint: ": use CSV",
        }),
        Format::Toml => Ok(toml(set)),
        Format::Json => Ok(json(set)),
    }
}

/// A value to write.
enum Out {
    Text(String),
    Number(f64),
    Integer(i64),
    Bool(bool),
    List(Vec<Out>),
    Table(Entries),
}

/// Keys and values of a table, in the order of the file.
type Entries = Vec<(&'static str, Out)>;

fn time(time: Time) -> Out {
    Out::Text(time.to_string())
}

fn text(value: impl Into<String>) -> Out {
    Out::Text(value.into())
}

/// Returns the entries of the set as a whole.
fn head(set: &TaskSet) -> Entries {
    let mut entries: Entries = Vec::new();
    if !set.description.is_empty() {
        entries.push(("description", text(&set.description)));
    }
    entries.push(("time_unit", text(set.time_unit.name())));
    if set.machine().cores().is_empty() {
        entries.push(("cores", Out::Integer(set.cores() as i64)));
    }
    if set.on_miss() != OnMiss::default() {
        entries.push(("on_miss", text(set.on_miss().name())));
    }
    if set.protocol() != Protocol::default() {
        entries.push(("protocol", text(set.protocol().name())));
    }
    if !set.aims().is_empty() {
        entries.push(("goal", Out::List(set.aims().iter().map(|aim| text(aim.name())).collect())));
    }
    if set.speeds() != [Speed::FULL] {
        let shares = set.speeds().iter().map(|speed| Out::Number(f64::from(speed.0) / 1000.0));
        entries.push(("speeds", Out::List(shares.collect())));
    }
    if set.costs() != Costs::default() {
        let Costs { context_switch, migration, decision } = set.costs();
        let costs = vec![
            ("context_switch", time(context_switch)),
            ("migration", time(migration)),
            ("decision", time(decision)),
        ];
        entries.push(("costs", Out::Table(costs)));
    }
    entries
}

/// Returns the non-empty lists of tables of a set, by the name of the list.
fn tables(set: &TaskSet) -> Vec<(&'static str, Vec<Entries>)> {
    let is_burst = |task: &&Task| matches!(task.arrival, Arrival::Burst { .. });
    let servers = set.servers().iter().map(|server| {
        vec![("name", text(&server.name)), ("budget", time(server.budget)), ("period", time(server.period))]
    });
    let groups = set.machine().cores().chunk_by(|a, b| a == b).map(|group| {
        let mut entries = vec![("name", text(&group[0].name)), ("speed", Out::Number(group[0].speed.as_f64()))];
        if group.len() > 1 {
            entries.push(("count", Out::Integer(group.len() as i64)));
        }
        entries
    });
    let tasks = set.tasks().iter().filter(|task| !is_burst(task)).map(|task| task_entries(task, set));
    let bursts = set.tasks().iter().filter(is_burst).map(|task| burst_entries(task, set));
    let modes = set.modes.iter().map(|mode| {
        let mut entries = vec![("name", text(&mode.name)), ("at", time(mode.at))];
        entries.push(("work", Out::Number(mode.work)));
        entries.push(("rate", Out::Number(mode.rate)));
        if let Some(tasks) = &mode.tasks {
            let names = tasks.iter().map(|index| text(&set.tasks()[*index].name));
            entries.push(("tasks", Out::List(names.collect())));
        }
        entries
    });
    let chains = set.chains().iter().map(|chain| {
        let tasks = chain.tasks.iter().map(|index| text(&set.tasks()[*index].name)).collect();
        let mut entries = vec![("name", text(&chain.name)), ("tasks", Out::List(tasks))];
        entries.extend(chain.deadline.map(|deadline| ("deadline", time(deadline))));
        if chain.communication != Communication::default() {
            entries.push(("communication", text(chain.communication.name())));
        }
        entries
    });
    let lists = [
        ("core", groups.collect::<Vec<_>>()),
        ("server", servers.collect()),
        ("task", tasks.collect()),
        ("burst", bursts.collect()),
        ("chain", chains.collect()),
        ("mode", modes.collect()),
    ];
    lists.into_iter().filter(|(_, tables)| !tables.is_empty()).collect()
}

/// Returns the entries of a task that is not a burst. Defaults are left out.
fn task_entries(task: &Task, set: &TaskSet) -> Entries {
    let period = task.period().unwrap_or_default();
    let mut entries: Entries = vec![("name", text(&task.name))];
    let named = |tasks: &[usize]| Out::List(tasks.iter().map(|index| text(&set.tasks()[*index].name)).collect());
    let follows = !task.after.is_empty();
    if follows {
        entries.push(("after", named(&task.after)));
    }
    if !task.reads.is_empty() {
        entries.push(("reads", named(&task.reads)));
    }
    if let (Arrival::Sporadic { gap, .. }, false) = (&task.arrival, follows) {
        let gap = *gap;
        entries.push(("kind", text("sporadic")));
        entries.push((
            "gap",
            Out::Table(match gap {
                Gap::Uniform { max } => vec![("model", text("uniform")), ("max", time(max))],
                Gap::Exponential { mean } => vec![("model", text("exponential")), ("mean", time(mean))],
            }),
        ));
    }
    if !follows {
        entries.push(("period", time(period)));
    }
    entries.push(("wcet", time(task.wcet)));
    if follows || task.deadline != period {
        entries.push(("deadline", time(task.deadline)));
    }
    for (key, value) in [("offset", task.offset), ("jitter", task.jitter)] {
        if value > Time::ZERO && !follows {
            entries.push((key, time(value)));
        }
    }
    let (model, overrun) = match &task.execution {
        ExecutionModel::Overrun { probability, below } => (&**below, Some(*probability)),
        model => (model, None),
    };
    if task.bcet != task.wcet || *model != ExecutionModel::Wcet {
        entries.push(("bcet", time(task.bcet)));
        entries.push(("execution", execution(model)));
    }
    if let Some(acet) = task.acet {
        entries.push(("acet", time(acet)));
    }
    if let Some(error) = task.estimate_error {
        entries.push(("estimate", Out::Table(vec![("error", Out::Number(error))])));
    }
    if let Some(high) = task.wcet_high {
        entries.push(("wcet_high", time(high)));
    }
    if let Some(probability) = overrun {
        entries.push(("overrun", Out::Number(probability)));
    }
    entries.extend(importance(task));
    if let Some(priority) = task.priority {
        entries.push(("priority", Out::Integer(priority)));
    }
    if let Some(skip) = task.skip {
        entries.push(("skip", Out::Integer(i64::from(skip))));
    }
    if let Some((m, k)) = task.mk {
        entries.push(("mk", Out::List(vec![Out::Integer(i64::from(m)), Out::Integer(i64::from(k))])));
    }
    if let Some(server) = task.server {
        entries.push(("server", text(&set.servers()[server].name)));
    }
    entries.extend(preemption(task));
    entries.extend(affinity(task, set));
    if !task.sections.is_empty() {
        entries.push(("section", Out::List(task.sections.iter().map(|section| sections(section, set)).collect())));
    }
    entries
}

/// Returns a critical section.
fn sections(section: &Section, set: &TaskSet) -> Out {
    let resource = text(&set.resources()[section.resource]);
    Out::Table(vec![("resource", resource), ("at", time(section.at)), ("length", time(section.length))])
}

/// Returns the cores that a task may use, unless it may use all: their names if these say it, otherwise their numbers.
fn affinity(task: &Task, set: &TaskSet) -> Option<(&'static str, Out)> {
    if task.cores.is_all() {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for core in task.cores.iter(set.machine().cores().len()) {
        let name = set.machine().cores()[core].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_said = |(core, named): (usize, &Core)| task.cores.contains(core) == names.contains(&named.name.as_str());
    if !names.is_empty() && set.machine().cores().iter().enumerate().all(is_said) {
        return Some(("cores", Out::List(names.into_iter().map(text).collect())));
    }
    Some(("cores", Out::List(task.cores.iter(set.cores()).map(|core| Out::Integer(core as i64)).collect())))
}

/// Returns the limit on preemption, if there is one.
fn preemption(task: &Task) -> Option<(&'static str, Out)> {
    let value = match task.preemption {
        Preemption::Free => return None,
        Preemption::None => text("none"),
        Preemption::Every(every) => Out::Table(vec![("every", time(every))]),
    };
    Some(("preemption", value))
}

/// Returns the limit on preemption as a CSV cell, which is empty where there is none.
fn preemption_cell(task: &Task) -> String {
    match task.preemption {
        Preemption::Free => String::new(),
        Preemption::None => "none".into(),
        Preemption::Every(every) => every.to_string(),
    }
}

/// Returns the cores that a task may use as a CSV cell, which is empty if it may use all.
fn cores_cell(task: &Task, cores: usize) -> String {
    match task.cores.is_all() {
        true => String::new(),
        false => task.cores.iter(cores).map(|core| core.to_string()).collect::<Vec<_>>().join(" "),
    }
}

/// Returns criticality, guarantee and value, unless they are the default.
fn importance(task: &Task) -> Entries {
    let mut entries: Entries = Vec::new();
    if task.criticality > 0 {
        entries.push(("criticality", Out::Integer(i64::from(task.criticality))));
    }
    if task.guarantee {
        entries.push(("guarantee", Out::Bool(true)));
    }
    if task.value != 1.0 {
        entries.push(("value", Out::Number(task.value)));
    }
    entries
}

/// Returns the value of `execution`.
fn execution(model: &ExecutionModel) -> Out {
    match model {
        ExecutionModel::Uniform => text("uniform"),
        ExecutionModel::Normal { deviation } => {
            Out::Table(vec![("model", text("normal")), ("deviation", time(*deviation))])
        }
        ExecutionModel::Weibull { exceed } => {
            Out::Table(vec![("model", text("weibull")), ("exceed", Out::Number(*exceed))])
        }
        ExecutionModel::Pareto { shape } => Out::Table(vec![("model", text("pareto")), ("shape", Out::Number(*shape))]),
        ExecutionModel::Lognormal { median, sigma } => {
            Out::Table(vec![("model", text("lognormal")), ("median", time(*median)), ("sigma", Out::Number(*sigma))])
        }
        ExecutionModel::Bimodal { levels, probability, spread } => Out::Table(vec![
            ("model", text("bimodal")),
            ("levels", Out::List(levels.iter().map(|level| time(*level)).collect())),
            ("probability", Out::Number(*probability)),
            ("spread", Out::Number(*spread)),
        ]),
        ExecutionModel::Empirical { samples } => {
            let samples = samples.iter().map(|sample| time(*sample)).collect();
            Out::Table(vec![("model", text("empirical")), ("samples", Out::List(samples))])
        }
        _ => text("wcet"),
    }
}

/// Returns the entries of a burst.
fn burst_entries(task: &Task, set: &TaskSet) -> Entries {
    let mut entries: Entries = vec![("name", text(&task.name))];
    if let Arrival::Burst { jobs, every, until } = task.arrival {
        entries.push(("jobs", Out::Integer(i64::from(jobs))));
        entries.push(("every", time(every)));
        entries.push(("wcet", time(task.wcet)));
        entries.push(("deadline", time(task.deadline)));
        entries.push(("start", time(task.offset)));
        if until != Time::NEVER {
            entries.push(("for", time(until - task.offset)));
        }
    }
    entries.extend(importance(task));
    entries.extend(preemption(task));
    entries.extend(affinity(task, set));
    entries
}

fn toml(set: &TaskSet) -> String {
    let mut out = String::new();
    for (key, value) in head(set) {
        out += &format!("{key} = {}\n", toml_value(&value));
    }
    for (list, tables) in tables(set) {
        for table in tables {
            out += &format!("\n[[{list}]]\n");
            for (key, value) in table {
                out += &format!("{key} = {}\n", toml_value(&value));
            }
        }
    }
    out
}

fn toml_value(value: &Out) -> String {
    match value {
        Out::Text(text) => ::toml::Value::String(text.clone()).to_string(),
        Out::Number(number) => format!("{number:?}"),
        Out::Integer(number) => number.to_string(),
        Out::Bool(value) => value.to_string(),
        Out::List(items) => format!("[{}]", items.iter().map(toml_value).collect::<Vec<_>>().join(", ")),
        Out::Table(entries) => {
            let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key} = {}", toml_value(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

fn json(set: &TaskSet) -> String {
    let mut root = head(set);
    for (list, tables) in tables(set) {
        root.push((list, Out::List(tables.into_iter().map(Out::Table).collect())));
    }
    let mut out = String::new();
    json_value(&Out::Table(root), 0, &mut out);
    out.push('\n');
    out
}

/// Appends a value. Line breaks end at one line per task, which is how people read and compare such files.
fn json_value(value: &Out, depth: usize, out: &mut String) {
    let (open, close, items): (_, _, Vec<(Option<&str>, &Out)>) = match value {
        Out::Text(text) => return out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
        Out::Number(number) => return out.push_str(&format!("{number:?}")),
        Out::Integer(number) => return out.push_str(&number.to_string()),
        Out::Bool(value) => return out.push_str(&value.to_string()),
        Out::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
        Out::Table(entries) => ('{', '}', entries.iter().map(|(key, item)| (Some(*key), item)).collect()),
    };
    let holds_tables = items.iter().any(|(_, item)| matches!(item, Out::Table(_)));
    let line_break = if depth == 0 || (depth == 1 && holds_tables) { "\n" } else { " " };
    let indent = |depth| if line_break == "\n" { "  ".repeat(depth) } else { String::new() };
    out.push(open);
    for (at, (key, item)) in items.iter().enumerate() {
        out.push_str(if at > 0 { "," } else { "" });
        out.push_str(line_break);
        out.push_str(&indent(depth + 1));
        if let Some(key) = key {
            out.push_str(&format!("\"{key}\": "));
        }
        json_value(item, depth + 1, out);
    }
    out.push_str(line_break);
    out.push_str(&indent(depth));
    out.push(close);
}

/// Refuses entries of the set as a whole, for which CSV has no place, unless they have their default.
fn no_head(set: &TaskSet, hint: &'static str) -> Result<(), NotRepresentable> {
    for (key, value) in head(set) {
        // The column `cores` implies the number of cores.
        let highest = set.tasks().iter().filter_map(|task| task.cores.last()).max();
        let implied = highest.map_or(1, |core| core as i64 + 1);
        let default = match (key, &value) {
            ("cores", Out::Integer(cores)) => *cores == implied,
            _ => matches!(key, "time_unit" | "description"),
        };
        if !default {
            return Err(NotRepresentable { what: format!("{key:?} of the whole set"), format: "CSV", hint });
        }
    }
    Ok(())
}

/// Writes tasks as CSV. The columns are the keys that occur.
fn csv(set: &TaskSet) -> Result<String, NotRepresentable> {
    const HINT: &str = ": use TOML or JSON";
    let refuse = |what: &str| Err(NotRepresentable { what: what.into(), format: "CSV", hint: HINT });
    for (list, _) in tables(set) {
        if list != "task" {
            return refuse(&format!("[[{list}]]"));
        }
    }
    no_head(set, HINT)?;
    let mut rows: Vec<Entries> = set.tasks().iter().map(|task| task_entries(task, set)).collect();
    // A cell is a single value.
    for (key, value) in rows.iter_mut().flatten() {
        if let ("estimate", Out::Table(entries)) = (*key, &mut *value)
            && let Some((_, error)) = entries.pop()
        {
            (*key, *value) = ("estimate_error", error);
        }
    }
    let mut columns: Vec<&str> = Vec::new();
    for (key, _) in rows.iter().flatten() {
        if !columns.contains(key) {
            columns.push(key);
        }
    }
    let mut table = vec![columns.iter().map(|key| key.to_string()).collect::<Vec<_>>()];
    for (row, task) in rows.iter().zip(set.tasks()) {
        let mut cells = vec![String::new(); columns.len()];
        for (key, value) in row {
            let cell = match (*key, value) {
                ("preemption", _) => preemption_cell(task),
                (_, Out::Text(text)) => text.clone(),
                (_, Out::Number(number)) => number.to_string(),
                (_, Out::Integer(number)) => number.to_string(),
                (_, Out::Bool(value)) => value.to_string(),
                ("after" | "reads", Out::List(names)) => names_cell(names).ok_or_else(|| NotRepresentable {
                    what: format!("{key} = a name with a semicolon or an outer space"),
                    format: "CSV",
                    hint: HINT,
                })?,
                ("section", _) => return refuse(&format!("the critical sections of {:?}", task.name)),
                ("cores", Out::List(items)) => items.iter().map(toml_value).collect::<Vec<_>>().join(" "),
                ("mk", Out::List(items)) => items.iter().map(toml_value).collect::<Vec<_>>().join("/"),
                _ => return refuse(&format!("{key} with parameters")),
            };
            let at = columns.iter().position(|column| column == key).unwrap_or_default();
            cells[at] = cell;
        }
        table.push(cells);
    }
    Ok(csv_text(&table))
}

/// Returns names as a CSV cell; `None` if they would not be read back.
fn names_cell(names: &[Out]) -> Option<String> {
    let name = |name: &Out| match name {
        Out::Text(text) if !text.contains(';') && text.trim() == text => Some(text.clone()),
        _ => None,
    };
    Some(names.iter().map(name).collect::<Option<Vec<_>>>()?.join("; "))
}

/// Writes listed jobs as CSV, in the order of their releases.
fn job_list(set: &TaskSet) -> Result<String, NotRepresentable> {
    no_head(set, "")?;
    if !set.machine().cores().is_empty() {
        return Err(NotRepresentable { what: "[[core]]".into(), format: "CSV", hint: "" });
    }
    let without_column = set.tasks().iter().find_map(|task| match task {
        Task { priority: Some(_), name, .. } => Some(("priority", name)),
        Task { guarantee: true, name, .. } => Some(("guarantee", name)),
        Task { name, .. } if !task.sections.is_empty() => Some(("section", name)),
        Task { name, .. } if !task.reads.is_empty() || !set.chains().is_empty() => Some(("chains", name)),
        _ => None,
    });
    if let Some((key, name)) = without_column {
        let what = format!("the {key} of {name:?}, whose jobs are listed,");
        return Err(NotRepresentable { what, format: "CSV", hint: "" });
    }
    let mut jobs: Vec<(&ListedJob, usize)> = Vec::new();
    for (index, task) in set.tasks().iter().enumerate() {
        if let Arrival::Listed(list) = &task.arrival {
            jobs.extend(list.iter().map(|job| (job, index)));
        }
    }
    jobs.sort_by_key(|(job, index)| (job.release, *index));
    // A list with known execution times states no wcets; a list with wcets leaves the execution times unknown to schedulers.
    let is_known = jobs.iter().all(|(job, _)| job.bcet == job.wcet && job.wcet == job.execution);
    let estimated = jobs.iter().any(|(job, _)| job.estimate.is_some());
    let wcet = if is_known && !estimated { None } else { Some("wcet_ns") };
    let quantiles: &[&str] = if estimated { &["estimate_ns", "estimate_p90_ns"] } else { &[] };
    let header = ["name", "release_ns", "execution_ns", "deadline_ns"].into_iter().chain(wcet);
    let header = header.chain(quantiles.iter().copied());
    let limited = set.is_limited().then_some("preemption");
    let bound = set.tasks().iter().any(|task| !task.cores.is_all()).then_some("cores");
    let header = header.chain(["criticality", "value"]).chain(limited).chain(bound);
    let mut table = vec![header.map(String::from).collect::<Vec<_>>()];
    for (job, index) in jobs {
        let times = [job.release, job.execution, job.deadline].into_iter().chain(wcet.map(|_| job.wcet));
        let mut row = vec![set.tasks()[index].name.clone()];
        row.extend(times.map(|time| time.0.to_string()));
        if estimated {
            let cell = |time: Option<Time>| time.map_or(String::new(), |time| time.0.to_string());
            row.extend([cell(job.estimate.map(Estimate::median)), cell(job.estimate.map(Estimate::high))]);
        }
        row.extend([job.criticality.to_string(), job.value.to_string()]);
        row.extend(limited.map(|_| preemption_cell(&set.tasks()[index])));
        row.extend(bound.map(|_| cores_cell(&set.tasks()[index], set.cores())));
        table.push(row);
    }
    Ok(csv_text(&table))
}

/// Returns rows as the text of a CSV file.
fn csv_text(table: &[Vec<String>]) -> String {
    // With the comment character set, a cell that could be taken for a comment is quoted.
    let mut writer = ::csv::WriterBuilder::new().comment(Some(b'#')).from_writer(Vec::new());
    for row in table {
        // Writing to memory cannot fail, and all rows have the length of the header.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
