//! What a page can ask for.

use std::path::Path;

use serde::Deserialize;
use temponet_formats::{Format, LoadError, Loaded};
use temponet_lab::comparison::ComparisonPlan;
use temponet_lab::horizon::default_horizon;
use temponet_sim::generate::text::positive_time;
use temponet_task::{TaskSet, Time};

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
        Failure { line: error.line, message: error.message }
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
