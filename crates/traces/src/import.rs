//! From files to a task set.

use std::io::Write;
use std::path::{Path, PathBuf};

use temponet_task::TaskSet;

use crate::collect::{Collector, Row};
use crate::ctf::ClockOf;
use crate::error::TraceError;
use crate::event::{Names, What};
use crate::files::{Disk, Files};
use crate::notes::{self, Reading};
use crate::open::{TraceFormat, open};
use crate::set::{self, Found};
use crate::source::Merged;
use crate::{Options, TaskBy, jobs_csv, text};

/// A task set that was found in a trace.
#[derive(Clone, Debug)]
pub struct Import {
    /// Task set.
    pub set: TaskSet,
    /// Its tasks as they were found, in the same order.
    pub tasks: Vec<Found>,
    /// What the trace says and the set does not represent, one line each.
    pub notes: Vec<String>,
    /// File of the set, with what was found in comments.
    pub toml: String,
    /// Formats of the files.
    pub formats: Vec<TraceFormat>,
    /// What the tasks are.
    pub task_by: TaskBy,
    /// Length of the part of the trace that was asked for, in nanoseconds.
    pub length: u64,
    /// Number of events that were used.
    pub events: u64,
    /// Number of bytes that were read.
    pub bytes: u64,
    /// Number of jobs that count, of all tasks.
    pub jobs: u64,
    /// Number of jobs that do not, because events were lost while they ran.
    pub dropped: u64,
}

/// Events between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

/// Imports files of this machine. `jobs` gets a row for each job that counts, and `progress` the number of bytes read so far.
pub fn import(
    files: &[PathBuf],
    options: &Options,
    jobs: Option<&mut dyn Write>,
    progress: &mut dyn FnMut(u64),
) -> Result<Import, TraceError> {
    import_from(&Disk, files, options, jobs, progress)
}

/// Imports files from wherever they lie.
pub fn import_from(
    from: &dyn Files,
    files: &[PathBuf],
    options: &Options,
    mut jobs: Option<&mut dyn Write>,
    progress: &mut dyn FnMut(u64),
) -> Result<Import, TraceError> {
    let first_file = files.first().map_or(Path::new(""), PathBuf::as_path);
    let (mut sources, mut formats, mut clocks, mut suggestions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let opened = open(from, file)?;
        sources.extend(opened.sources);
        formats.push(opened.format);
        clocks.extend(opened.clocks.into_iter().map(|clock| (file.as_path(), clock)));
        suggestions.push(opened.suggests);
    }
    check_clocks(&clocks)?;
    let suggested = suggestions.into_iter().find(|by| *by != TaskBy::Thread).unwrap_or(TaskBy::Thread);
    let task_by = options.task_by.unwrap_or(suggested);
    let mut names = Names::new();
    let mut events = Merged::new(sources, &mut names)?;
    let Some(first) = events.next(&mut names)? else {
        return Err(TraceError::whole(first_file, "has no event of the kinds that are read here"));
    };
    let origin = first.time;
    let failed = |error: std::io::Error| TraceError::whole(Path::new("--jobs"), error.to_string());
    if let Some(out) = &mut jobs {
        out.write_all(jobs_csv::HEADER.as_bytes()).map_err(failed)?;
    }
    let mut collector = Collector::new(task_by, options.threads.as_ref(), jobs.is_some());
    let at = |time: Option<temponet_task::Time>, otherwise: u64| {
        time.map_or(otherwise, |time| origin.saturating_add(time.0))
    };
    collector.threads.recorded = events.recorded();
    collector.window = (at(options.from, 0), at(options.to, u64::MAX));
    let (mut count, mut last) = (0u64, origin);
    let mut next = Some(first);
    while let Some(event) = next {
        // What is released by then may still be running.
        if event.time > collector.window.1 {
            last = collector.window.1;
            break;
        }
        last = last.max(match event.what {
            What::Slice { length, .. } => event.time.saturating_add(length),
            _ => event.time,
        });
        collector.take(event, &names);
        if let Some(out) = &mut jobs {
            write_rows(&mut collector, out, origin).map_err(failed)?;
        }
        count += 1;
        if count % REPORT_EVERY == 0 {
            progress(events.bytes());
        }
        next = events.next(&mut names)?;
    }
    events.check_clocks()?;
    collector.finish(&names);
    if let Some(out) = &mut jobs {
        write_rows(&mut collector, out, origin).map_err(failed)?;
    }
    let reading = Reading {
        collector: &collector,
        names: &names,
        unread: events.unread(),
        remarks: events.remarks(),
        origin,
        begin: collector.window.0.clamp(origin, last),
        last,
        task_by,
    };
    let name = first_file.file_stem().filter(|_| first_file != Path::new("-"));
    let name =
        name.map_or_else(|| "trace".into(), |stem| temponet_wording::visible(&stem.to_string_lossy()).into_owned());
    let (mut set, tasks, own_notes) =
        set::build(&reading, options, name).map_err(|message| TraceError::whole(first_file, message))?;
    set = set.with_description(description(files, &formats, &reading));
    let notes = [notes::of_reading(&reading, &tasks), own_notes].concat();
    let toml = text::toml(&set, &tasks, &notes).map_err(|message| TraceError::whole(first_file, message))?;
    let jobs = tasks.iter().map(|task| task.jobs).sum();
    let dropped = collector.tasks.iter().map(|task| task.log.dropped).sum();
    let bytes = events.bytes();
    progress(bytes);
    let length = reading.length();
    Ok(Import { set, tasks, notes, toml, formats, task_by, length, events: count, bytes, jobs, dropped })
}

/// Writes the jobs that have ended since the last call.
fn write_rows(collector: &mut Collector<'_>, out: &mut dyn Write, origin: u64) -> std::io::Result<()> {
    let Some(rows) = &mut collector.rows else { return Ok(()) };
    for Row { task, number, tid, job } in rows.drain(..) {
        jobs_csv::row(out, &collector.tasks[task].name, number, tid, &job, origin)?;
    }
    Ok(())
}

/// One sentence about the origin of a set.
fn description(files: &[PathBuf], formats: &[TraceFormat], reading: &Reading<'_>) -> String {
    let name = |file: &PathBuf| match file.file_name() {
        Some(name) if file != Path::new("-") => temponet_wording::visible(&name.to_string_lossy()).into_owned(),
        _ => "standard input".into(),
    };
    let mut named: Vec<String> =
        files.iter().zip(formats).map(|(file, of)| format!("{} ({})", name(file), of.name())).collect();
    if named.len() > 3 {
        let others = named.len() - 3;
        named.truncate(3);
        named.push(format!("{others} more"));
    }
    let by = match reading.task_by {
        TaskBy::Thread => "threads",
        TaskBy::Callback => "callbacks",
        TaskBy::Marker => "markers",
    };
    let seconds = reading.length() as f64 / 1e9;
    format!("imported from {}: {by} in {seconds:.3} s", named.join(", "))
}

/// Refuses traces whose clocks are known to be different ones.
fn check_clocks(clocks: &[(&Path, ClockOf)]) -> Result<(), TraceError> {
    let Some((first_file, first)) = clocks.first() else { return Ok(()) };
    for (file, clock) in &clocks[1..] {
        if clock.uuid != first.uuid || clock.name != first.name {
            let shown = |clock: &ClockOf| format!("{} {}", clock.name, clock.uuid.as_deref().unwrap_or("without uuid"));
            let message = format!(
                "has the clock {}, and {} the clock {}: their dates cannot be compared",
                shown(clock),
                first_file.display(),
                shown(first)
            );
            return Err(TraceError::whole(file, message));
        }
    }
    Ok(())
}
