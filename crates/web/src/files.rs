//! Files that are opened and written.

use std::path::Path;

use serde_json::{Value, json};
use temponet_formats::builtin::{self, Builtin};
use temponet_formats::{Format, Loaded};
use temponet_lab::comparison::picture_window;
use temponet_lab::gantt;
use temponet_sim::generate::text::positive_time;
use temponet_sim::{JobsCsv, Observer, Recorder, simulate};
use temponet_wording::did_you_mean;

use crate::request::{File, Kind, Run, Set};
use crate::{Failure, failure};

/// Opens a file: its set as JSON to edit, with warnings and notes.
pub fn open(file: &File) -> Result<Value, Failure> {
    let (name, loaded) = match file {
        File::BuiltIn { built_in } => (built_in.as_str(), built_in_set(built_in)?),
        File::Text { name, text } => {
            let path = Path::new(name);
            let format = Format::of(path).ok_or_else(|| {
                failure(format!("{name}: unknown kind of file: the name must end in .toml, .csv, .json or .xml"))
            })?;
            (name.as_str(), temponet_formats::parse(text, format, path)?)
        }
    };
    let Loaded { set, warnings, notes, .. } = loaded;
    let text = temponet_formats::write(&set, Format::Json)?;
    let keys: Value = serde_json::from_str(&text)?;
    let notes = [warnings, notes].concat();
    Ok(json!({ "file": name, "name": set.name, "set": keys, "notes": notes }))
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
