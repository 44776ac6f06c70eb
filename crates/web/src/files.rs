//! Files that are opened and written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use temponet_formats::builtin::{self, Builtin};
use temponet_formats::{Format, Loaded};
use temponet_lab::comparison::picture_window;
use temponet_lab::gantt;
use temponet_lab::progress::Progress;
use temponet_sim::generate::text::positive_time;
use temponet_sim::{JobsCsv, Observer, Recorder, simulate};
use temponet_task::{TaskSet, Time};
use temponet_traces::{Files, Import, Options, import_from, is_trace_in};
use temponet_wording::{did_you_mean, grouped};

use crate::held::{Held, ReadPiece};
use crate::request::{File, Kind, Run, Set};
use crate::{Failure, failure};

/// Greatest number of tasks of a set on a page, which is written as a whole with each change.
const MOST_TASKS: usize = 10_000;

/// Opens a file: its set as JSON to edit, with warnings and notes, and what was found in a trace.
pub fn open(file: &File, read: ReadPiece) -> Result<Value, Failure> {
    let mut found = Value::Null;
    let (name, loaded) = match file {
        File::BuiltIn { built_in } => (built_in.clone(), built_in_set(built_in)?),
        File::Held { paths, files, trace } => {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let held = Held { files, read };
            let loaded = match set_file(&held, paths) {
                Some(path) => temponet_formats::load_from(path, held.length(path), || held.open(path))?,
                None => {
                    let import = trace.read().and_then(|options| import(&held, paths, &options));
                    let import = import.map_err(|why| Failure { is_of_trace: true, ..why })?;
                    found = import.json();
                    Loaded { set: import.set, warnings: Vec::new(), notes: import.notes, files: Vec::new() }
                }
            };
            (names.join(", "), loaded)
        }
        File::Text { name, text } => {
            let path = Path::new(name);
            let format = Format::of(path).ok_or_else(|| {
                failure(format!("{name}: unknown kind of file: the name must end in .toml, .csv, .json or .xml"))
            })?;
            (name.clone(), temponet_formats::parse(text, format, path)?)
        }
    };
    let Loaded { set, warnings, notes, .. } = loaded;
    if set.task_count() > MOST_TASKS {
        let count = grouped(set.task_count() as u64);
        let most = grouped(MOST_TASKS as u64);
        return Err(failure(format!(
            "{name}: has {count} tasks, and a page takes at most {most}; the command line takes more"
        )));
    }
    let text = temponet_formats::write(&set, Format::Json)?;
    let mut keys: Value = serde_json::from_str(&text)?;
    // What is found in a trace is shown as it is written.
    if found.is_null() {
        leave_out_derived_deadlines(&mut keys, &set);
    }
    let notes = [warnings, notes].concat();
    Ok(json!({ "file": name, "name": set.name, "set": keys, "notes": notes, "trace": found }))
}

/// Removes the deadlines of tasks that come after others where they are those that such a task has by itself, so that they
/// follow when the others are edited.
fn leave_out_derived_deadlines(keys: &mut Value, set: &TaskSet) {
    fn followers(keys: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
        let tasks = keys.get_mut("task").and_then(Value::as_array_mut).into_iter().flatten();
        tasks.filter_map(Value::as_object_mut).filter(|task| task.contains_key("after"))
    }
    let mut shorter = keys.clone();
    followers(&mut shorter).for_each(|task| drop(task.remove("deadline")));
    let Ok(derived) = temponet_formats::parse(&shorter.to_string(), Format::Json, Path::new("derived.json")) else {
        return;
    };
    let deadlines = |set: &TaskSet| -> HashMap<String, Time> {
        set.whole_tasks().map(|id| &set.tasks()[id]).map(|task| (task.name.clone(), task.deadline)).collect()
    };
    let (stated, derived) = (deadlines(set), deadlines(&derived.set));
    for task in followers(keys) {
        let name = task.get("name").and_then(Value::as_str).unwrap_or_default();
        if stated.get(name) == derived.get(name) {
            task.remove("deadline");
        }
    }
}

/// Returns the file of a task set; `None` for traces. As on the command line, our own formats go by their names, and JSON
/// is that of many tools.
fn set_file<'a>(held: &Held<'_>, paths: &'a [PathBuf]) -> Option<&'a Path> {
    let [path] = paths else { return None };
    let is_set = match Format::of(path) {
        None | Some(Format::Json) => held.has_file(path) && !is_trace_in(held, path),
        Some(_) => true,
    };
    is_set.then_some(path)
}

/// Number of bytes of a step of the progress.
const STEP: u64 = 1 << 20;

/// Imports traces, and says how much of them has been read.
fn import(held: &Held<'_>, paths: &[PathBuf], options: &Options) -> Result<Import, Failure> {
    let total: u64 = held.files.iter().map(|(_, bytes)| bytes).sum();
    let progress = Progress::steps((total / STEP).max(1));
    progress.say("reading");
    let mut shown = 0;
    let found = import_from(held, paths, options, None, &mut |bytes| {
        while shown < bytes / STEP {
            shown += 1;
            progress.step();
        }
    })?;
    progress.finish();
    Ok(found)
}

fn built_in_set(name: &str) -> Result<Loaded, Failure> {
    let unknown = || {
        let hint = did_you_mean(name, builtin::ALL.iter().map(|set| set.name));
        failure(format!("there is no built-in set {name:?}{hint}"))
    };
    Ok(Builtin::find(name).ok_or_else(unknown)?.load()?)
}

/// Writes a set.
pub fn write(set: &Set, to: Kind) -> Result<Value, Failure> {
    let set = set.load()?.set;
    let (text, notes) = match to {
        Kind::Toml => (temponet_formats::write(&set, Format::Toml)?, Vec::new()),
        Kind::Json => (temponet_formats::write(&set, Format::Json)?, Vec::new()),
        Kind::Csv => (temponet_formats::write(&set, Format::Csv)?, Vec::new()),
        Kind::RtApp => {
            let exported = temponet_formats::to_rt_app(&set)?;
            (exported.text, exported.notes)
        }
    };
    Ok(json!({ "text": text, "notes": notes }))
}

/// Runs one scheduler once under an observer, and calls `done` with the observer.
fn observed(run: &Run, scheduler: &str, observer: &mut dyn Observer) -> Result<(), Failure> {
    let plan = run.plan()?;
    plan.roster.foresee(&plan.set);
    let mut built = plan.roster.build(scheduler)?;
    simulate(&plan.set, plan.seed, plan.horizon, &mut *built, observer)?;
    Ok(())
}

/// Writes the jobs of a run as CSV, as `temponet simulate --jobs` does.
pub fn jobs(run: &Run, scheduler: &str) -> Result<Value, Failure> {
    let plan = run.plan()?;
    let mut csv = JobsCsv::new(&plan.set, plan.horizon, Vec::new())?;
    observed(run, scheduler, &mut csv)?;
    let text = String::from_utf8(csv.finish()?)?;
    Ok(json!({ "text": text }))
}

/// Draws a schedule, as `temponet simulate --gantt` does.
pub fn picture(run: &Run, scheduler: &str, until: Option<&str>) -> Result<Value, Failure> {
    let plan = run.plan()?;
    let until = match until {
        Some(text) => positive_time(text).map_err(|why| failure(format!("{text:?}: {why}")))?.min(plan.horizon),
        None => picture_window(&plan.set, plan.horizon, gantt::PICTURE_JOBS),
    };
    let mut recorder = Recorder::until(until);
    observed(run, scheduler, &mut recorder)?;
    Ok(json!({ "text": gantt::svg(&plan.set, scheduler, &recorder, until) }))
}
