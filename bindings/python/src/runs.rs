//! Single runs of several schedulers with several seeds, as a table: the piece of work that a cluster is given.

use pyo3::prelude::*;
use rayon::prelude::*;
use temponet_lab::comparison::CompareError;
use temponet_lab::horizon::default_horizon;
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::Time;

use crate::calls::{at_once, interruptible};
use crate::errors;
use crate::model::Model;
use crate::roster::{Named, roster};
use crate::table::{Table, optional_real, real, whole, word};
use crate::task_set::TaskSet;

/// Runs each scheduler with each seed, and returns a row for each run: by scheduler, then by seed. Schedulers that do
/// not apply to the set have no rows.
#[pyfunction]
#[pyo3(signature = (set, schedulers, seeds, horizon, model))]
pub fn runs(
    py: Python<'_>,
    set: &TaskSet,
    schedulers: Vec<Named<'_>>,
    seeds: Vec<u64>,
    horizon: Option<u64>,
    model: Option<&Model>,
) -> PyResult<Table> {
    let (roster, names) = roster(model, None, schedulers)?;
    let own = set.set.clone();
    let horizon = horizon.map_or_else(|| default_horizon(&own), Time);
    let cells: Vec<(&String, u64)> =
        names.iter().flat_map(|name| seeds.iter().map(move |seed| (name, *seed))).collect();
    let one = |(name, seed): &(&String, u64)| -> Result<Option<Metrics>, CompareError> {
        let mut scheduler = roster.build(name)?;
        match simulate(&own, *seed, horizon, &mut *scheduler, &mut Unobserved) {
            Ok(metrics) => Ok(Some(metrics)),
            Err(why) if why.is_about_the_set() => Ok(None),
            Err(why) => Err(CompareError::Run(name.to_string(), why)),
        }
    };
    let found = interruptible(py, || -> Result<Vec<Option<Metrics>>, CompareError> {
        let mut found = Vec::with_capacity(cells.len());
        for some in cells.chunks(at_once()) {
            found.extend(some.par_iter().map(one).collect::<Result<Vec<_>, CompareError>>()?);
        }
        Ok(found)
    })?;
    let found = found.map_err(errors::input)?;
    let rows: Vec<(&str, u64, &Metrics)> = cells
        .iter()
        .zip(&found)
        .filter_map(|((name, seed), metrics)| Some((name.as_str(), *seed, metrics.as_ref()?)))
        .collect();
    let labels: Vec<String> = rows.iter().map(|(name, ..)| roster.label(name)).collect();
    let figures = || rows.iter().map(|(.., metrics)| *metrics);
    Table::of(vec![
        word("scheduler", labels.iter().map(String::as_str)),
        whole("seed", rows.iter().map(|(_, seed, _)| *seed as i64)),
        whole("released", figures().map(|metrics| metrics.jobs.released as i64)),
        whole("met", figures().map(|metrics| metrics.jobs.met as i64)),
        real("compliance", figures().map(|metrics| metrics.jobs.compliance())),
        optional_real("pitmd", figures().map(|metrics| metrics.pitmd())),
        real("value", figures().map(|metrics| metrics.value)),
        real("value_possible", figures().map(|metrics| metrics.value_possible)),
        optional_real("art_completed_ns", figures().map(|metrics| metrics.art_completed())),
        optional_real("art_all_ns", figures().map(|metrics| metrics.art_all())),
        whole("preemptions", figures().map(|metrics| metrics.preemptions as i64)),
        whole("migrations", figures().map(|metrics| metrics.migrations as i64)),
        whole("decisions", figures().map(|metrics| metrics.decisions as i64)),
        whole("shed", figures().map(|metrics| metrics.shed as i64)),
        whole("wasted_ns", figures().map(|metrics| metrics.wasted_ns as i64)),
        real("energy", figures().map(|metrics| metrics.energy)),
    ])
}
