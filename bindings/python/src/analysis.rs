//! What can be proved about a set, and the clairvoyant optimum of its runs.

use pyo3::prelude::*;
use temponet_lab::analysis::{Analysis, json};
use temponet_lab::clairvoyant::clairvoyant;
use temponet_lab::comparison::json::JsonClairvoyant;
use temponet_lab::horizon::default_horizon;
use temponet_lab::overload::OverloadPlan;
use temponet_lab::progress::Progress;
use temponet_lab::what_if::WhatToChange;
use temponet_task::Time;

use crate::calls::interruptible;
use crate::errors;
use crate::model::Model;
use crate::roster::{Named, roster};
use crate::task_set::TaskSet;

/// Number of runs at each load factor if anything in the set is random, as in `temponet analyze`.
const RUNS: u64 = 3;

/// Analyzes a set and returns the report of `temponet analyze --json`. Without schedulers nothing is simulated.
#[pyfunction]
#[pyo3(signature = (set, schedulers, seed, horizon, model, what_if))]
pub fn analyze(
    py: Python<'_>,
    set: &TaskSet,
    schedulers: Option<Vec<Named<'_>>>,
    seed: u64,
    horizon: Option<u64>,
    model: Option<&Model>,
    what_if: bool,
) -> PyResult<String> {
    let own = (*set.set).clone();
    let horizon = horizon.map_or_else(|| default_horizon(&own), Time);
    let runs = if own.is_random() { RUNS } else { 1 };
    let plan = match schedulers {
        None => None,
        Some(names) => {
            let (roster, schedulers) = roster(model, None, names)?;
            Some(OverloadPlan { set: own.clone(), horizon, seed, runs, schedulers, roster })
        }
    };
    let notes = set.notes.clone();
    let report = interruptible(py, move || {
        let run = |plan: OverloadPlan| plan.run(&Progress::new(plan.runs_in_all(), horizon));
        let analysis = Analysis::of(own, plan.map(run).transpose()?);
        let changes = what_if.then(|| WhatToChange::on(&analysis.set));
        Ok::<_, temponet_lab::comparison::CompareError>(json::report(&analysis, &notes, changes.as_ref()))
    })?;
    serde_json::to_string(&report.map_err(errors::input)?).map_err(errors::input)
}

/// Returns the clairvoyant optimum of runs, as in the report of a comparison; `None` if no job counts.
#[pyfunction]
#[pyo3(signature = (set, seed, horizon, runs, seconds))]
pub fn optimum(
    py: Python<'_>,
    set: &TaskSet,
    seed: u64,
    horizon: Option<u64>,
    runs: u64,
    seconds: f64,
) -> PyResult<Option<String>> {
    let own = set.set.clone();
    let horizon = horizon.map_or_else(|| default_horizon(&own), Time);
    let found = interruptible(py, move || {
        clairvoyant(&own, horizon, seed, runs, seconds).map(|mut found| {
            if *own.costs() != temponet_task::Costs::default() {
                found.forget_schedules();
            }
            found
        })
    })?;
    let found = found.map_err(errors::input)?;
    match found.released {
        0 => Ok(None),
        _ => serde_json::to_string(&JsonClairvoyant::from(&found)).map(Some).map_err(errors::input),
    }
}
