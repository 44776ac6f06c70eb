//! What a page can ask for.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use temponet_formats::{Format, LoadError, Loaded};
use temponet_lab::comparison::ComparisonPlan;
use temponet_lab::horizon::default_horizon;
use temponet_sim::generate::text::{positive_time, time};
use temponet_task::{TaskSet, Time};
use temponet_traces::{NamePattern, Options, TaskBy};

use crate::rosters::{self, Kernel};
use crate::{Failure, failure};

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Built-in sets, schedulers and version.
    About,
    /// A file, or a built-in set, as a set to edit.
    Open(File),
    /// A set as the text of a file.
    Write {
        /// The set.
        set: Set,
        /// The kind of file.
        to: Kind,
    },
    /// The jobs of one run as CSV.
    Jobs {
        /// The run.
        run: Run,
        /// The scheduler.
        scheduler: String,
    },
    /// One schedule as SVG.
    Picture {
        /// The run.
        run: Run,
        /// The scheduler.
        scheduler: String,
        /// Length of the schedule in the picture.
        until: Option<String>,
    },
    /// The schedules of one run alone, while something is being changed.
    Schedules(Run),
    /// A comparison with everything that the command line says.
    Compare(Run),
    /// What can be proved of a set.
    Analyze {
        /// The set.
        set: Set,
    },
    /// One decision of each scheduler, explained.
    Moment {
        /// The run.
        run: Run,
        /// The time of the decision: the last one at or before it is explained.
        at_ns: u64,
    },
    /// The shares of deadlines met when all execution times are longer or shorter.
    Curve {
        /// The run.
        run: Run,
        /// Mean load per core to reach.
        load: f64,
    },
}

/// A file that a user opens.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum File {
    /// A built-in set by its name.
    BuiltIn {
        /// Its name.
        built_in: String,
    },
    /// A text; the extension of the name says what it is.
    Text {
        /// Name of the file.
        name: String,
        /// What the file holds.
        text: String,
    },
    /// What a reader chose or dropped.
    Held {
        /// A file or folder, or several that are one trace.
        paths: Vec<PathBuf>,
        /// Each file with its size in bytes, those in folders with their whole paths.
        files: Vec<(PathBuf, u64)>,
        /// What to find, if it is a trace.
        #[serde(default)]
        trace: TraceOptions,
    },
}

/// What to find in a trace, as the options of `temponet import`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceOptions {
    threads: String,
    task_by: String,
    from: String,
    to: String,
    cores: String,
}

/// Greatest number of cores of an imported set, as on the command line.
const MOST_CORES: u16 = 4096;

impl TraceOptions {
    /// Reads the options; empty ones are the defaults of the command line.
    pub fn read(&self) -> Result<Options, Failure> {
        let given = |text: &String| Some(text.trim().to_string()).filter(|text| !text.is_empty());
        let wrong = |key: &str, text: &str, why: &str| failure(format!("{key} {text:?} {why}"));
        let read_time = |key: &str, text: &String, read: fn(&str) -> Result<Time, String>| {
            given(text).map(|text| read(&text).map_err(|why| failure(format!("{key} {text:?}: {why}")))).transpose()
        };
        let threads = given(&self.threads);
        let threads = threads.map(|text| NamePattern::new(&text).map_err(|why| wrong("names", &text, &why)));
        let task_by = given(&self.task_by);
        let task_by =
            task_by.map(|text| TaskBy::from_name(&text).ok_or_else(|| wrong("task by", &text, "is no kind of task")));
        let cores = given(&self.cores).map(|text| {
            let count = text.parse().ok().filter(|count| (1..=MOST_CORES).contains(count));
            count.ok_or_else(|| wrong("cores", &text, &format!("is not in 1..={MOST_CORES}")))
        });
        Ok(Options {
            threads: threads.transpose()?,
            task_by: task_by.transpose()?,
            from: read_time("from", &self.from, time)?,
            to: read_time("to", &self.to, positive_time)?,
            cores: cores.transpose()?,
        })
    }
}

/// Kinds of files that are written.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// TOML.
    Toml,
    /// JSON.
    Json,
    /// CSV.
    Csv,
    /// A workload of rt-app.
    RtApp,
}

/// A set as the page keeps it.
#[derive(Debug, Deserialize)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// JSON with the keys of task-set files, one on each line, so that an error has a line.
    pub text: String,
}

impl Set {
    /// Reads the set.
    pub fn load(&self) -> Result<Loaded, Failure> {
        let origin = format!("{}.json", self.name);
        temponet_formats::parse(&self.text, Format::Json, Path::new(&origin)).map_err(Failure::in_set)
    }
}

impl Failure {
    /// A failure in the text of a set, which has no file name that a user knows.
    fn in_set(error: LoadError) -> Failure {
        Failure { line: error.line, ..failure(error.message) }
    }
}

/// Runs of several schedulers.
#[derive(Debug, Deserialize)]
pub struct Run {
    set: Set,
    schedulers: Vec<String>,
    /// Length of each run, such as "1s"; the default of the command line if it is absent.
    #[serde(default)]
    horizon: Option<String>,
    #[serde(default = "first_seed")]
    seed: u64,
    /// Number of runs; the default of the command line if it is absent.
    #[serde(default)]
    runs: Option<u64>,
    /// Effort for the optimum, in seconds of one core of a reference machine; none leaves it out.
    #[serde(default)]
    optimum: Option<f64>,
    #[serde(default)]
    kernel: Kernel,
}

fn first_seed() -> u64 {
    1
}

/// Default number of runs if anything in the set is random, as on the command line.
const RUNS: u64 = 10;
/// Greatest number of runs, as on the command line.
const MOST_RUNS: u64 = 1_000_000;

impl Run {
    /// Returns the plan, in which nothing is recorded yet.
    pub fn plan(&self) -> Result<ComparisonPlan, Failure> {
        let set = self.set.load()?.set;
        if let Some(problem) = set.protocol_problem() {
            return Err(failure(problem.to_string()));
        }
        let runs = self.runs.unwrap_or(if set.is_random() { RUNS } else { 1 });
        if !(1..=MOST_RUNS).contains(&runs) {
            return Err(failure(format!("runs = {runs} is not in 1..={MOST_RUNS}")));
        }
        let roster = rosters::of(self.kernel)?;
        let schedulers = roster.chosen(self.schedulers.iter().map(String::as_str));
        if schedulers.is_empty() {
            return Err(failure("no scheduler is chosen"));
        }
        Ok(ComparisonPlan {
            horizon: self.horizon(&set)?,
            goal: set.goal().clone(),
            set,
            seed: self.seed,
            runs,
            schedulers,
            roster,
            latency: false,
            charge_latency: false,
            record_until: Time::ZERO,
            oracle: self.optimum.filter(|seconds| *seconds > 0.0),
        })
    }

    fn horizon(&self, set: &TaskSet) -> Result<Time, Failure> {
        match self.horizon.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            None => Ok(default_horizon(set)),
            Some(text) => positive_time(text).map_err(|why| failure(format!("horizon {text:?}: {why}"))),
        }
    }
}
