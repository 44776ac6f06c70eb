//! Task sets: read, drawn, changed and written.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use temponet_formats::builtin::{self, Builtin};
use temponet_formats::{Format, Loaded};
use temponet_lab::drawing::{self, draw};
use temponet_lab::horizon::default_horizon;
use temponet_sim::generate::text::{self, SpecText};
use temponet_sim::generate::{Properties, Spec};
use temponet_task::{Costs, OnMiss, Time};
use temponet_wording::did_you_mean;

use crate::errors;

/// A task set that does not change.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct TaskSet {
    /// The set.
    pub set: Arc<temponet_task::TaskSet>,
    /// Statements of another tool's file that the set does not represent.
    pub notes: Vec<String>,
    warnings: Vec<String>,
}

fn format(name: &str) -> PyResult<Format> {
    let found = Format::of(Path::new(&format!("set.{name}")));
    found.ok_or_else(|| errors::input(format!("format {name:?} is none of toml, json, csv, xml")))
}

impl TaskSet {
    /// A set without notes.
    pub fn of(set: temponet_task::TaskSet) -> TaskSet {
        TaskSet { set: Arc::new(set), notes: Vec::new(), warnings: Vec::new() }
    }

    fn loaded(loaded: Loaded) -> TaskSet {
        TaskSet { set: Arc::new(loaded.set), notes: loaded.notes, warnings: loaded.warnings }
    }
}

#[pymethods]
impl TaskSet {
    /// Reads a file, or a built-in set where no file has that name.
    #[staticmethod]
    fn load(name: &str) -> PyResult<TaskSet> {
        let path = Path::new(name);
        let loaded = match Builtin::find(name) {
            Some(set) if !path.exists() => set.load(),
            None if !path.exists() && path.extension().is_none() => {
                let hint = did_you_mean(name, builtin::ALL.iter().map(|set| set.name));
                return Err(errors::input(format!("there is no file and no built-in set {name:?}{hint}")));
            }
            _ => temponet_formats::load(path),
        };
        loaded.map(TaskSet::loaded).map_err(|error| errors::file(&error))
    }

    /// Reads a text of a format. Messages name it `origin`, whose stem names the set.
    #[staticmethod]
    fn parse(text: &str, kind: &str, origin: &str) -> PyResult<TaskSet> {
        let loaded = temponet_formats::parse(text, format(kind)?, Path::new(origin));
        loaded.map(TaskSet::loaded).map_err(|error| errors::file(&error))
    }

    /// The set as the text of a format.
    fn write(&self, kind: &str) -> PyResult<String> {
        temponet_formats::write(&self.set, format(kind)?).map_err(errors::input)
    }

    /// The set with other settings of the machine; times are in nanoseconds.
    #[pyo3(signature = (*, name = None, cores = None, on_miss = None, switch_cost = None, migration_cost = None, decision_cost = None))]
    fn replaced(
        &self,
        name: Option<String>,
        cores: Option<usize>,
        on_miss: Option<&str>,
        switch_cost: Option<u64>,
        migration_cost: Option<u64>,
        decision_cost: Option<u64>,
    ) -> PyResult<TaskSet> {
        let mut set = (*self.set).clone();
        set.name = name.unwrap_or(set.name);
        if let Some(cores) = cores {
            if !(1..=4096).contains(&cores) {
                return Err(errors::input(format!("cores = {cores} is not from 1 to 4096")));
            }
            set.system.change_cores(cores).map_err(errors::input)?;
        }
        if let Some(rule) = on_miss {
            let found = OnMiss::from_name(rule);
            set.system.set_on_miss(
                found.ok_or_else(|| errors::input(format!("on_miss = {rule:?} is none of abort, continue")))?,
            );
        }
        let own = set.costs();
        set.system.set_costs(Costs {
            context_switch: switch_cost.map_or(own.context_switch, Time),
            migration: migration_cost.map_or(own.migration, Time),
            decision: decision_cost.map_or(own.decision, Time),
        });
        Ok(TaskSet { set: Arc::new(set), notes: self.notes.clone(), warnings: self.warnings.clone() })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.set.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.set.description
    }

    #[getter]
    fn cores(&self) -> usize {
        self.set.cores()
    }

    #[getter]
    fn on_miss(&self) -> &'static str {
        self.set.on_miss().name()
    }

    #[getter]
    fn task_names(&self) -> Vec<String> {
        self.set.whole_tasks().map(|task| self.set.tasks()[task].name.clone()).collect()
    }

    #[getter]
    fn utilization(&self) -> f64 {
        self.set.utilization()
    }

    #[getter]
    fn mean_utilization(&self) -> f64 {
        self.set.mean_utilization()
    }

    #[getter]
    fn hyperperiod(&self) -> Option<u64> {
        self.set.hyperperiod().map(|time| time.0)
    }

    #[getter]
    fn is_random(&self) -> bool {
        self.set.is_random()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Length of a run if none is given, in nanoseconds.
    fn default_horizon(&self) -> u64 {
        default_horizon(&self.set).0
    }

    fn __eq__(&self, other: &TaskSet) -> bool {
        self.set == other.set
    }
}

/// Reads the options of random sets, as `temponet generate` has them, from a JSON object.
pub fn spec(json: &str) -> PyResult<Spec> {
    serde_json::from_str::<SpecText>(json).map_err(errors::input)?.read().map_err(errors::input)
}

/// Draws a random set, the same as `temponet generate` with these options.
#[pyfunction]
#[pyo3(signature = (tasks, utilization, cores, seed, shape, variety))]
pub fn generate(
    py: Python<'_>,
    tasks: Option<usize>,
    utilization: f64,
    cores: usize,
    seed: u64,
    shape: &str,
    variety: Option<&str>,
) -> PyResult<TaskSet> {
    let shape = spec(shape)?;
    if !(utilization > 0.0 && utilization.is_finite()) {
        return Err(errors::input(format!("utilization = {utilization} is not a number greater than zero")));
    }
    for (name, value, most) in [("tasks", tasks.unwrap_or(1), 100_000), ("cores", cores, 4096)] {
        if !(1..=most).contains(&value) {
            return Err(errors::input(format!("{name} = {value} is not from 1 to {most}")));
        }
    }
    let variety = variety.map(drawing::variety).transpose();
    let variety = variety.map_err(|why| errors::input(format!("variety: {why}")))?;
    let properties = Properties { variety, ..Properties::default() };
    let spec = Spec { tasks, cores, utilization, properties, ..shape };
    let drawn = crate::calls::interruptible(py, || draw(&spec, seed))?;
    drawn.map(TaskSet::of).map_err(errors::input)
}

/// Names, descriptions and sources of the built-in sets.
#[pyfunction]
pub fn sets() -> PyResult<Vec<(String, String, String)>> {
    let row = |set: &Builtin| -> PyResult<_> {
        let loaded = set.load().map_err(|error| errors::file(&error))?;
        Ok((set.name.to_string(), loaded.set.description, set.source()))
    };
    builtin::ALL.iter().map(row).collect()
}

/// JSON schema of task-set files, as JSON.
#[pyfunction]
pub fn schema() -> String {
    temponet_formats::schema().to_string()
}

/// Nanoseconds of a time that is written with a unit, such as `500ms`.
#[pyfunction]
pub fn time(written: &str) -> PyResult<u64> {
    text::time(written).map(|time| time.0).map_err(|why| errors::input(format!("{written:?}: {why}")))
}

/// Longest time that an input may state, in nanoseconds.
pub const LONGEST: u64 = Time::MAX_INPUT.0;
