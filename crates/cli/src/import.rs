//! `temponet import`: a task set from a trace of a real system.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;
use temponet_formats::{Format, Loaded};
use temponet_lab::progress::Progress;
use temponet_task::Time;
use temponet_traces::{Found, Import, Kind as Arrives, NamePattern, Options, TaskBy, import};
use temponet_wording::{counted, grouped};

use crate::paths::{Kind, Output, Replace};
use crate::setup::{any_time, positive_time};
use crate::{output, paths, table};

/// Find the task set in a trace of a real system: perf, ftrace, LTTng, ROS 2
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    perf sched record -a -- sleep 10 && perf script > trace.txt\n  \
    temponet import trace.txt -o mytasks.toml\n  \
    temponet import trace.txt --threads '^(control|camera)' -o mytasks.toml --jobs jobs.csv\n  \
    temponet import ~/lttng-traces/session -o callbacks.toml        # CTF; callbacks of ROS 2 where there are some\n  \
    babeltrace2 session | temponet import - -o mytasks.toml\n  \
    temponet compare trace.txt                                      # imports by itself\n\n\
    Reads text of perf script, ftrace and trace-cmd report, folders of CTF, text of babeltrace2, and Chrome's JSON,\n\
    that of `exec --trace` and `simulate --trace` included. Several files are one trace.")]
pub struct Args {
    /// Trace: a file, a folder of CTF, or - for standard input; the content determines the format
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Task-set file to write (.toml with comments on what was found, .json or .csv)
    #[arg(short, long, value_name = "OUT.toml")]
    pub output: Option<PathBuf>,
    /// Import only tasks whose name matches this regular expression: names of threads, callbacks or markers
    #[arg(long, value_name = "RE", value_parser = NamePattern::new)]
    pub threads: Option<NamePattern>,
    /// What a task is: thread, callback (of ROS 2) or marker [default: callback where the trace has some, marker for
    /// Chrome's JSON, else thread]
    #[arg(long, value_name = "WHAT", value_parser = task_by)]
    pub task_by: Option<TaskBy>,
    /// Count only jobs released this long after the first event, or later, such as 2s
    #[arg(long, value_name = "TIME", value_parser = any_time)]
    pub from: Option<Time>,
    /// Count only jobs complete this long after the first event, or earlier, such as 30s
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub to: Option<Time>,
    /// Number of cores of the set, which all tasks may use, 1 to 4096 [default: the processors of the trace; each task
    /// gets those that it was seen on]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub cores: Option<u16>,
    /// Write a CSV row for each job
    #[arg(long, value_name = "OUT.csv")]
    pub jobs: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    pub force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

fn task_by(text: &str) -> Result<TaskBy, String> {
    TaskBy::from_name(text).ok_or_else(|| format!("is none of {}", TaskBy::ALL.map(TaskBy::name).join(", ")))
}

pub fn run(args: Args) -> Result<()> {
    args.files.iter().try_for_each(|file| paths::reads(file))?;
    for (at, file) in args.files.iter().enumerate() {
        let real = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
        if args.files[..at].iter().any(|other| real(other) == real(file)) {
            bail!("{}: is named twice", file.display());
        }
    }
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from {from}: is not before --to {to}");
    }
    let format = args.output.as_deref().map(|path| {
        let format = Format::of(path).filter(|format| *format != Format::SimSo);
        format.with_context(|| format!("{}: the name must end in .toml, .csv or .json", path.display()))
    });
    let format = format.transpose()?;
    let claim = |path: &PathBuf| Output::claim(path, Kind::TaskSet, Replace::nothing_or(args.force));
    let out = args.output.as_ref().map(claim).transpose()?;
    let jobs = Output::wanted(args.jobs.as_deref(), Kind::Jobs, args.force)?;
    let mut rows = jobs.as_ref().map(Output::open).transpose()?;
    let options = Options {
        threads: args.threads.clone(),
        task_by: args.task_by,
        from: args.from,
        to: args.to,
        cores: args.cores,
    };
    let writer = rows.as_mut().map(|file| &mut file.out as &mut dyn std::io::Write);
    let found = with_progress(&args.files, |progress| import(&args.files, &options, writer, progress))?;
    let text = match format {
        Some(Format::Toml) | None => found.toml.clone(),
        Some(format) => temponet_formats::write(&found.set, format)?,
    };
    if let Some(rows) = rows {
        rows.finish()?;
    }
    if let Some(out) = &out {
        out.write(&text)?;
    }
    found.notes.iter().for_each(|note| output::say(&format!("note: {note}")));
    if args.json {
        let mut json = found.json();
        json["written"] = json!(out.as_ref().map(|out| out.path().display().to_string()));
        return output::print_json(&json);
    }
    output::print(&as_text(&found))?;
    if out.is_none() {
        output::say("nothing is written: -o set.toml writes the task set");
    }
    Ok(())
}

/// The formats of the files, each once.
fn formats(import: &Import, separator: &str) -> String {
    let mut names: Vec<&str> = import.formats.iter().map(|format| format.name()).collect();
    names.dedup();
    names.join(separator)
}

/// Imports a trace that a command got in place of a task set, and says so.
pub fn load(path: &Path) -> Result<Loaded> {
    let files = [path.to_path_buf()];
    let found = with_progress(&files, |progress| import(&files, &Options::default(), None, progress))?;
    output::say(&format!(
        "imported: {} is a trace ({}): {} from {}; `temponet import {0} -o set.toml` writes them",
        path.display(),
        formats(&found, ", "),
        counted(found.tasks.len(), "task"),
        jobs(found.jobs)
    ));
    let in_file = |note: String| format!("{}: {note}", path.display());
    Ok(Loaded {
        set: found.set,
        warnings: Vec::new(),
        notes: found.notes.into_iter().map(in_file).collect(),
        files: Vec::new(),
    })
}

/// Number of bytes of a step of the progress bar.
const STEP: u64 = 1 << 20;

/// Does work with a bar that shows how much of the files has been read.
fn with_progress<R>(files: &[PathBuf], work: impl FnOnce(&mut dyn FnMut(u64)) -> R) -> R {
    let sizes: Option<u64> = files.iter().map(|file| size(file)).sum();
    let Some(total) = sizes else {
        let _bar = Progress::busy("reading");
        return work(&mut |_| {});
    };
    let bar = Progress::steps((total / STEP).max(1));
    bar.say("reading");
    let mut shown = 0;
    let result = work(&mut |bytes| {
        while shown < bytes / STEP {
            shown += 1;
            bar.step();
        }
    });
    bar.finish();
    result
}

/// Size of a file, or of the files in a folder; none if it is not known.
fn size(path: &Path) -> Option<u64> {
    let about = path.metadata().ok()?;
    if about.is_file() {
        return Some(about.len());
    }
    let entries = std::fs::read_dir(path).ok()?;
    let sizes = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_link = path.symlink_metadata().ok()?.is_symlink();
        if is_link { None } else { size(&path) }
    });
    Some(sizes.sum())
}

fn jobs(count: u64) -> String {
    format!("{} job{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Period with its residual; the gaps of a sporadic task; the task before one that comes after another.
fn period(found: &Found, all: &[Found]) -> String {
    match &found.kind {
        Arrives::Periodic { residual, .. } => format!("{} ± {}", found.period, table::time(*residual)),
        Arrives::Sporadic { mean, .. } => format!("{} ± {}", table::time(*mean), table::time(found.kind.residual())),
        Arrives::Follows { after } => all[*after].name.clone(),
    }
}

/// The table of tasks.
fn as_text(import: &Import) -> String {
    let header = ["task", "kind", "period or gap", "jobs", "median", "max", "load", "cores"];
    let row = |found: &Found| {
        let cores: Vec<String> = found.processors.iter().map(u32::to_string).collect();
        vec![
            found.name.clone(),
            found.arrives().into(),
            period(found, &import.tasks),
            grouped(found.jobs),
            table::time(found.median.0 as f64),
            table::time(found.most.0 as f64),
            format!("{:.1}%", 100.0 * found.share(import.length)),
            cores.join(" "),
        ]
    };
    let rows: Vec<Vec<String>> = import.tasks.iter().map(row).collect();
    let total: f64 = import.tasks.iter().map(|found| found.share(import.length)).sum();
    let dropped = if import.dropped > 0 { format!(" ({} left out)", grouped(import.dropped)) } else { String::new() };
    format!(
        "{}: {} in {}, {}{dropped}, {} on {}\n\n{}\nmeasured load: {:.2} of {}\n",
        import.set.name,
        counted(import.tasks.len(), "task"),
        table::time(import.length as f64),
        jobs(import.jobs),
        formats(import, " and "),
        crate::setup::cores(&import.set),
        table::render_fitting(&header, &rows, 3),
        total,
        counted(import.set.cores(), "core"),
    )
}
