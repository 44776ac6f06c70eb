//! Protocol files in `research/experiments`.
//!
//! A protocol states the paper's figures, the workloads with their seeds, the schedulers that take part and the extent
//! of the experiment in each mode.

use std::collections::BTreeMap;
use temponet_task::{Aim, Time};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use temponet_train::Recipe;

use super::{READINGS, Reading, ReproduceError, learner};
use temponet_lab::arena::scenario_file::{Burst, FileCosts, ScenarioFile, Switch, read_aim};
use temponet_lab::arena::{Case, Scenario};
use temponet_sim::generate::ExecutionShares;
use temponet_sim::generate::text::SpecText;

/// Extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The least that exercises the whole experiment, for tests.
    Smallest,
    /// Minutes for all experiments together. Figures with too few repetitions are marked as noise.
    Quick,
    /// The extent that is published: hours.
    Full,
}

impl Mode {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Smallest => "smallest",
            Mode::Quick => "quick",
            Mode::Full => "full",
        }
    }
}

/// A protocol file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Version, which changes with every change that affects a figure.
    pub version: u32,
    /// Title of the experiment.
    pub title: String,
    /// What the paper did and claims.
    pub claim: String,
    /// How the claim is interpreted where the paper is incomplete or cannot be right.
    pub reading: String,
    /// The paper's figures, by the names of ours. Shares are fractions; times are in the unit of the figure.
    #[serde(default)]
    pub paper: BTreeMap<String, f64>,
    /// Greatest difference from the paper's figure that counts as equal, by name; default: one that depends on the
    /// unit.
    #[serde(default)]
    pub tolerance: BTreeMap<String, f64>,
    /// Specifications of the classical schedulers that take part.
    #[serde(default)]
    pub schedulers: Vec<String>,
    /// Training recipe, where the experiment trains models: what is different from the paper's learner. The settings of a
    /// mode determine the amount of training.
    #[serde(default = "learner::paper", deserialize_with = "learner::read")]
    pub recipe: Recipe,
    /// Names of the readings of the paper that the experiment is carried out in; default: slack alone.
    #[serde(default = "slack")]
    readings: Vec<String>,
    /// Further readings of the full mode.
    #[serde(default)]
    full_readings: Vec<String>,
    /// Workloads by name.
    #[serde(default)]
    pub workload: BTreeMap<String, Workload>,
    smallest: toml::Table,
    quick: toml::Table,
    full: toml::Table,
}

/// Source of task sets. Its keys are those of an arena scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Measure that is scored; default: jobs in time.
    #[serde(default = "met", deserialize_with = "read_aim")]
    pub goal: Aim,
    /// Seed of the first set; each further set has the next seed. All of them are reserved for evaluation and never
    /// used in training.
    pub first_seed: u64,
    /// Number of cores; none: the number in the set.
    pub cores: Option<usize>,
    /// Range of the load per core at mean execution times, evenly spaced over the sets; none: the sets are not scaled.
    pub load: Option<[f64; 2]>,
    /// Rule for jobs that miss their deadline: `abort` (default) or `continue`.
    #[serde(default = "abort")]
    pub on_miss: String,
    builtin: Option<Vec<String>>,
    generate: Option<SpecText>,
    execution: Option<ExecutionShares>,
    burst: Option<Burst>,
    #[serde(default)]
    costs: FileCosts,
    #[serde(default)]
    mode: Vec<Switch>,
}

fn slack() -> Vec<String> {
    vec![READINGS[0].name.into()]
}

fn met() -> Aim {
    Aim::Met
}

fn abort() -> String {
    "abort".into()
}

/// Number and length of the runs of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Number of sets, each of which is run once.
    pub sets: u64,
    /// Approximate number of jobs in each run.
    pub jobs: u64,
    /// Limit on the computation of the clairvoyant optimum of one run, in seconds of one core.
    pub oracle_seconds: f64,
}

/// Number and length of the runs of a workload that all last the same time, however many jobs that is.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedSize {
    /// Number of sets, each of which is run once.
    pub sets: u64,
    /// Length of each run, in seconds.
    pub seconds: f64,
    /// Limit on the computation of the clairvoyant optimum of one run, in seconds of one core.
    pub oracle_seconds: f64,
}

impl TimedSize {
    /// Returns the same runs with another length, which [`TimedSize::lasting`] corrects.
    pub fn size(self) -> Size {
        Size { sets: self.sets, jobs: 1, oracle_seconds: self.oracle_seconds }
    }

    /// Gives runs their length. Modes of a set, which follow from the number of jobs, are not moved.
    pub fn lasting(self, mut cases: Vec<Case>) -> Vec<Case> {
        cases.iter_mut().for_each(|case| case.horizon = Time((self.seconds * 1e9) as u64));
        cases
    }
}

impl Protocol {
    /// Parses the protocol of the experiment `id`.
    pub fn parse(id: &str, text: &str) -> Result<Protocol, ReproduceError> {
        crate::register();
        toml::from_str(text).map_err(|error| invalid(id, &error))
    }

    /// Returns the settings of a mode of the experiment `id`. Those of the other modes have to be valid, too.
    pub fn settings<S: DeserializeOwned>(&self, id: &str, mode: Mode) -> Result<S, ReproduceError> {
        let settings = |table: &toml::Table| table.clone().try_into().map_err(|error| invalid(id, &error));
        let (smallest, quick, full) = (settings(&self.smallest)?, settings(&self.quick)?, settings(&self.full)?);
        Ok(match mode {
            Mode::Smallest => smallest,
            Mode::Quick => quick,
            Mode::Full => full,
        })
    }

    /// Returns what a file says about the figures of a mode: all of it but comments and what is of other modes.
    pub(crate) fn fingerprint(id: &str, text: &str, mode: Mode) -> Result<String, ReproduceError> {
        let mut table: toml::Table = toml::from_str(text).map_err(|error| invalid(id, &error))?;
        for other in [Mode::Smallest, Mode::Quick, Mode::Full].into_iter().filter(|other| *other != mode) {
            table.remove(other.name());
        }
        if mode != Mode::Full {
            table.remove("full_readings");
        }
        Ok(table.to_string())
    }

    /// Returns the readings of the paper that the experiment is carried out in.
    pub fn readings(&self, mode: Mode) -> Result<Vec<&'static Reading>, String> {
        let further = if mode == Mode::Full { &self.full_readings[..] } else { &[] };
        let find = |name: &String| Reading::find(name).ok_or_else(|| format!("there is no reading {name:?}"));
        self.readings.iter().chain(further).map(find).collect()
    }

    /// Gives every mode the number and length of the smallest mode's runs.
    pub(crate) fn shorten(&mut self) {
        for table in [&mut self.quick, &mut self.full] {
            shorten(table, &self.smallest);
        }
    }

    /// Whether the full mode simulates runs.
    pub(crate) fn has_runs(&self) -> bool {
        has_runs(&self.full)
    }

    /// Returns the runs of a workload.
    pub fn cases(&self, workload: &str, size: Size) -> Result<Vec<Case>, ReproduceError> {
        self.varied(workload, size, |_| {})
    }

    /// Returns the runs of a workload at one load per core. Each index `n` of a load has its own seeds.
    pub fn cases_at(&self, workload: &str, size: Size, load: f64, n: usize) -> Result<Vec<Case>, ReproduceError> {
        self.varied(workload, size, |workload| {
            workload.load = Some([load, load]);
            workload.first_seed += n as u64 * size.sets;
        })
    }

    /// Returns the runs of a workload with `tasks` tasks in each set.
    pub fn cases_of(&self, workload: &str, size: Size, tasks: usize) -> Result<Vec<Case>, ReproduceError> {
        self.varied(workload, size, |workload| {
            if let Some(generate) = &mut workload.generate {
                generate.tasks = Some([tasks, tasks]);
            }
        })
    }

    fn varied(&self, name: &str, size: Size, vary: impl Fn(&mut Workload)) -> Result<Vec<Case>, ReproduceError> {
        let wrong = |why: String| ReproduceError::Protocol(self.title.clone(), format!("workload {name}: {why}"));
        let mut workload = self.workload.get(name).cloned().ok_or_else(|| wrong("there is none".into()))?;
        vary(&mut workload);
        workload.scenario(name, size).map_err(wrong)?.cases(false).map_err(|error| wrong(error.to_string()))
    }
}

/// Key that every table of runs has.
const RUNS: &str = "oracle_seconds";

/// Puts the tables of runs of another mode in place of those in a table.
fn shorten(table: &mut toml::Table, smallest: &toml::Table) {
    if table.contains_key(RUNS) {
        for key in [RUNS, "sets", "jobs", "seconds"] {
            if let Some(value) = smallest.get(key) {
                table.insert(key.into(), value.clone());
            }
        }
    }
    for (key, value) in table.iter_mut() {
        if let (toml::Value::Table(table), Some(toml::Value::Table(smallest))) = (value, smallest.get(key)) {
            shorten(table, smallest);
        }
    }
}

fn has_runs(table: &toml::Table) -> bool {
    let inside = table.values().filter_map(toml::Value::as_table).any(has_runs);
    inside || table.contains_key(RUNS)
}

fn invalid(id: &str, error: &toml::de::Error) -> ReproduceError {
    ReproduceError::Protocol(id.into(), error.to_string().trim().replace('\n', " "))
}

impl Workload {
    /// Converts the workload into an arena scenario.
    pub fn scenario(&self, name: &str, size: Size) -> Result<Scenario, String> {
        let Workload { goal, first_seed, cores, load, on_miss, builtin, generate, execution, burst, costs, mode } =
            self.clone();
        let file = ScenarioFile {
            version: 1,
            arena: 1,
            held_out: false,
            description: String::new(),
            goal,
            seeds: [first_seed, first_seed + size.sets.max(1) - 1],
            quick_sets: size.sets,
            jobs: size.jobs,
            load,
            cores,
            on_miss,
            oracle_seconds: size.oracle_seconds,
            builtin,
            generate,
            ranges: None,
            frames: None,
            requests: None,
            variety: None,
            shape: Default::default(),
            execution,
            burst,
            costs,
            mode,
        };
        Scenario::of(name, file)
    }
}
