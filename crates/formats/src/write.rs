//! Task set to file. Whatever is written reads back as the same set. What a format cannot represent is an error that
//! names it.
//!
//! The entries come from `keys/`, their texts from `out.rs`; CSV is written by the `csv` crate.

use temponet_task::{Arrival, Attribute, ListedJob, Task, TaskId, TaskSet};

use crate::Format;
use crate::keys::{Csv, GUARANTEE, JOB, JobRow, Kind, PRIORITY, SECTIONS, SET, Spec, Specs, TASK};
use crate::out::{Entries, Out, line};

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
        Format::Json => {
            let (head, lists) = entries(set);
            let mut out = String::new();
            Out::Table(head.into_iter().chain(lists).collect()).json(0, &mut out);
            Ok(out + "\n")
        }
    }
}

/// Returns the entries of the set as a whole, and its lists of tables.
fn entries(set: &TaskSet) -> (Entries, Entries) {
    let is_head = |(spec, _): &(&Spec, Out)| !matches!(spec.kind, Kind::List(Kind::Table(_), ..));
    SET.entries(set, set).into_iter().partition(is_head)
}

fn toml(set: &TaskSet) -> String {
    let (head, lists) = entries(set);
    let mut out = lines(&head);
    for (list, tables) in lists {
        let Out::List(tables) = tables else { continue };
        for table in tables {
            let Out::Table(entries) = table else { continue };
            out += &format!("\n[[{}]]\n{}", list.name, lines(&entries));
        }
    }
    out
}

fn lines(entries: &Entries) -> String {
    entries.iter().map(|(key, value)| line(key, value) + "\n").collect()
}

/// Refuses what CSV has no place for in the set as a whole, unless it has the default of a CSV file.
fn only_tasks(set: &TaskSet, hint: &'static str) -> Result<(), NotRepresentable> {
    let refuse = |what: String| Err(NotRepresentable { what, format: "CSV", hint });
    let (head, lists) = entries(set);
    if let Some((list, _)) = lists.iter().find(|(list, _)| list.name != TASK.what) {
        return refuse(format!("[[{}]]", list.name));
    }
    // The column `cores` implies the number of cores.
    let highest = set.tasks().iter().filter_map(|task| task.cores.last()).max();
    let plain = TaskSet::new("", Vec::new(), highest.map_or(1, |core| core.index() + 1));
    let defaults = lines(&entries(&plain).0);
    let differs = |(key, value): &&(&Spec, Out)| !defaults.contains(&(line(key, value) + "\n"));
    match head.iter().filter(|(key, _)| !matches!(key.csv, Csv::Omitted)).find(differs) {
        Some((key, _)) => refuse(format!("{:?} of the whole set", key.name)),
        None => Ok(()),
    }
}

const HINT: &str = ": use TOML or JSON";

/// Writes tasks as CSV. The columns are the keys that occur.
fn csv(set: &TaskSet) -> Result<String, NotRepresentable> {
    only_tasks(set, HINT)?;
    let tasks: Vec<&Task> = set.tasks().iter().filter(|task| !task.is_part).collect();
    let rows: Vec<Entries> = tasks.iter().map(|task| TASK.entries(set, task)).collect();
    let mut columns: Vec<&Spec> = Vec::new();
    for (key, _) in rows.iter().flatten() {
        if !columns.iter().any(|column| column.name == key.name) {
            columns.push(key);
        }
    }
    let mut table = vec![columns.iter().map(|key| key.alias.unwrap_or(key.name).to_string()).collect::<Vec<_>>()];
    for (row, task) in rows.iter().zip(tasks) {
        let mut cells = vec![String::new(); columns.len()];
        for (key, value) in row {
            let refuse = |what: String| NotRepresentable { what, format: "CSV", hint: HINT };
            let at = columns.iter().position(|column| column.name == key.name).unwrap_or_default();
            cells[at] = match key.csv {
                Csv::Refused(what) => return Err(refuse(format!("{what} of {:?}", task.name))),
                Csv::Omitted => String::new(),
                Csv::Column(between) => {
                    cell(value, between).map_err(|why| refuse(format!("{} of {:?} with {why}", key.name, task.name)))?
                }
            };
        }
        table.push(cells);
    }
    Ok(csv_text(&table))
}

/// Returns a value as a CSV cell, or what it has that a cell cannot have.
fn cell(value: &Out, between: &str) -> Result<String, &'static str> {
    Ok(match value {
        Out::Text(text) => text.clone(),
        Out::Number(number) => number.to_string(),
        Out::Integer(_) | Out::Bool(_) => value.toml(),
        Out::List(items) => {
            let is_split = |item: &Out| matches!(item, Out::Text(text) if text.contains(';') || text.trim() != text);
            if items.iter().any(is_split) {
                return Err("a semicolon or an outer space in a name");
            }
            items.iter().map(|item| cell(item, between)).collect::<Result<Vec<_>, _>>()?.join(between)
        }
        // A table with a single value is that value.
        Out::Table(entries) => match &entries[..] {
            [(_, value)] => cell(value, between)?,
            _ => return Err("parameters"),
        },
        Out::Named(_) => return Err("names"),
    })
}

/// Writes listed jobs as CSV, in the order of their releases.
fn job_list(set: &TaskSet) -> Result<String, NotRepresentable> {
    only_tasks(set, "")?;
    let without_column = set.tasks().iter().find_map(|task| match task {
        Task { name, .. } if task.extra.has(Attribute::Priority) => Some((PRIORITY.spec.name, name)),
        Task { guarantee: true, name, .. } => Some((GUARANTEE.spec.name, name)),
        Task { name, .. } if !task.sections.is_empty() => Some((SECTIONS.spec.name, name)),
        Task { name, .. } if !task.reads.is_empty() => Some(("chains", name)),
        _ => None,
    });
    if let Some((key, name)) = without_column {
        let what = format!("the {key} of {name:?}, whose jobs are listed,");
        return Err(NotRepresentable { what, format: "CSV", hint: "" });
    }
    let mut jobs: Vec<(&ListedJob, TaskId)> = Vec::new();
    for (id, task) in set.task_ids().zip(set.tasks()) {
        if let Arrival::Listed(list) = &task.arrival {
            jobs.extend(list.iter().map(|job| (job, id)));
        }
    }
    jobs.sort_by_key(|(job, task)| (job.release, *task));
    // A list with known execution times states no wcets; a list with wcets leaves the execution times unknown to
    // schedulers.
    let is_known = |job: &ListedJob| job.bcet == job.wcet && job.wcet == job.execution && job.estimate.is_none();
    let states_wcet = !jobs.iter().all(|(job, _)| is_known(job));
    let row = |(job, task): (&ListedJob, TaskId)| JOB.entries(set, &JobRow { task, job: *job, states_wcet });
    let rows: Vec<Entries> = jobs.into_iter().map(row).collect();
    let occurs = |spec: &&Spec| rows.iter().flatten().any(|(key, _)| key.name == spec.name);
    let columns: Vec<&Spec> = JOB.specs().into_iter().filter(occurs).collect();
    let is_time = |key: &Spec| matches!(key.kind, Kind::Time | Kind::PositiveTime);
    let header = |key: &&Spec| format!("{}{}", key.name, if is_time(key) { "_ns" } else { "" });
    let mut table = vec![columns.iter().map(header).collect::<Vec<_>>()];
    for row in &rows {
        let value = |column: &&Spec| row.iter().find(|(key, _)| key.name == column.name).map(|(_, value)| value);
        let text = |value: &Out| cell(value, " ").unwrap_or_default();
        table.push(columns.iter().map(|column| value(column).map_or(String::new(), text)).collect());
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
