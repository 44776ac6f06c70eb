//! What an experiment does, as a file in `crates/lab/experiments`: the paper's figures, the workloads with their seeds, who takes part, and how
//! much of it each mode runs. Its version changes with every change that moves a figure.

use std::collections::BTreeMap;
use temponet_task::Aim;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use temponet_train::Recipe;

use super::ReproduceError;
use temponet_lab::arena::scenario_file::{Burst, ExecutionShares, FileCosts, Generate, ScenarioFile, Switch, read_aim};
use temponet_lab::arena::{Case, Scenario};

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Hardly anything: only to see that it runs.
    Smallest,
    /// Minutes for all experiments together; some figures are then mere noise, and are marked.
    Quick,
    /// What is published.
    Full,
}

impl Mode {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Smallest => "smallest",
            Mode::Quick => "quick",
            Mode::Full => "full",
        }
    }
}

/// A protocol file; `S` is what the modes of this experiment set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol<S> {
    /// Changes with every change that moves a figure.
    pub version: u32,
    /// What it is about.
    pub title: String,
    /// What the paper did and says.
    pub claim: String,
    /// How we read it where the paper leaves something open or cannot be right.
    pub reading: String,
    /// The paper's figures by the names that ours have: shares as fractions, times in the unit of the figure.
    #[serde(default)]
    pub paper: BTreeMap<String, f64>,
    /// How far from the paper's a figure may be to count as the same; without one, the unit says.
    #[serde(default)]
    pub tolerance: BTreeMap<String, f64>,
    /// Classical schedulers that take part.
    #[serde(default)]
    pub schedulers: Vec<String>,
    /// How models learn in it, where it trains any; the modes say how much of it.
    #[serde(default)]
    pub recipe: Recipe,
    /// Task sets and runs by name.
    #[serde(default)]
    pub workload: BTreeMap<String, Workload>,
    /// What is run to see that it runs.
    pub smallest: S,
    /// What `--quick` runs.
    pub quick: S,
    /// What `--full` runs.
    pub full: S,
}

/// Where task sets come from; the keys are those of a scenario of the arena.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What is scored.
    #[serde(default = "met", deserialize_with = "read_aim")]
    pub goal: Aim,
    /// The first set's; each further one has the next. All are kept from training.
    pub first_seed: u64,
    /// Number of cores; none: the sets'.
    pub cores: Option<usize>,
    /// Load per core at mean execution times, evenly spaced over the sets; none: the sets as they are.
    pub load: Option<[f64; 2]>,
    /// The miss rule.
    #[serde(default = "abort")]
    pub on_miss: String,
    builtin: Option<Vec<String>>,
    generate: Option<Generate>,
    execution: Option<ExecutionShares>,
    burst: Option<Burst>,
    #[serde(default)]
    costs: FileCosts,
    #[serde(default)]
    mode: Vec<Switch>,
}

fn met() -> Aim {
    Aim::Met
}

fn abort() -> String {
    "abort".into()
}

/// How many runs of a workload, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Sets, one run each.
    pub sets: u64,
    /// Jobs of each run, about.
    pub jobs: u64,
    /// How long the clairvoyant optimum of one run may take, in seconds of one core.
    pub oracle_seconds: f64,
}

impl<S: DeserializeOwned> Protocol<S> {
    /// Reads the file of an experiment.
    pub fn parse(id: &str, text: &str) -> Result<Protocol<S>, ReproduceError> {
        toml::from_str(text)
            .map_err(|error| ReproduceError::Protocol(id.into(), error.to_string().trim().replace('\n', " ")))
    }
}

impl<S> Protocol<S> {
    /// What a mode sets.
    pub fn settings(&self, mode: Mode) -> &S {
        match mode {
            Mode::Smallest => &self.smallest,
            Mode::Quick => &self.quick,
            Mode::Full => &self.full,
        }
    }

    /// The runs of a workload.
    pub fn cases(&self, workload: &str, size: Size) -> Result<Vec<Case>, ReproduceError> {
        self.varied(workload, size, |_| {})
    }

    /// The runs of a workload at one load per core; the n-th load of several has seeds of its own.
    pub fn cases_at(&self, workload: &str, size: Size, load: f64, n: usize) -> Result<Vec<Case>, ReproduceError> {
        self.varied(workload, size, |workload| {
            workload.load = Some([load, load]);
            workload.first_seed += n as u64 * size.sets;
        })
    }

    /// The runs of a workload with so many tasks in each set.
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

impl Workload {
    /// The same as a scenario of the arena.
    pub fn scenario(&self, name: &str, size: Size) -> Result<Scenario, String> {
        let Workload { goal, first_seed, cores, load, on_miss, builtin, generate, execution, burst, costs, mode } =
            self.clone();
        let file = ScenarioFile {
            version: 1,
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
            execution,
            burst,
            costs,
            mode,
        };
        Scenario::of(name, file)
    }
}
