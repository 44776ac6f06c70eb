//! The arena: schedulers on fixed scenarios.

use pyo3::prelude::*;
use temponet_lab::arena::json::{JsonArena, JsonListed};
use temponet_lab::arena::scenario::{all, find, of_version};
use temponet_lab::arena::{ArenaPart, ArenaPlan, ArenaResults, Scenario, join, page, run, run_part};

use crate::calls::interruptible;
use crate::errors;
use crate::model::Model;
use crate::roster::{Named, roster};
use crate::table::{Table, optional_real, real, whole, word};

/// Results of the arena.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Arena {
    results: ArenaResults,
}

fn chosen(names: &[String], version: Option<u32>) -> PyResult<Vec<Scenario>> {
    let found = match (names.is_empty(), version) {
        (false, _) => names.iter().map(|name| find(name)).collect(),
        (true, Some(version @ 1..=2)) => of_version(version),
        (true, Some(other)) => return Err(errors::input(format!("version = {other} is none of 1, 2"))),
        (true, None) => all(),
    };
    found.map_err(errors::input)
}

/// Runs schedulers on scenarios.
#[pyfunction]
#[pyo3(signature = (scenarios, version, schedulers, model, quick, planner_sets))]
pub fn arena(
    py: Python<'_>,
    scenarios: Vec<String>,
    version: Option<u32>,
    schedulers: Vec<Named<'_>>,
    model: Option<&Model>,
    quick: bool,
    planner_sets: Option<usize>,
) -> PyResult<Arena> {
    let (roster, schedulers) = roster(model, None, schedulers)?;
    let plan = ArenaPlan { scenarios: chosen(&scenarios, version)?, schedulers, roster, quick, planner_sets };
    let results = interruptible(py, || run(&plan, &plan.progress()))?.map_err(errors::input)?;
    Ok(Arena { results })
}

/// The scenarios as a JSON array, as `temponet arena --list --json` prints them.
#[pyfunction]
#[pyo3(signature = (version))]
pub fn scenarios(version: Option<u32>) -> PyResult<String> {
    let scenarios = chosen(&[], version)?;
    let listed: Vec<JsonListed<'_>> = scenarios.iter().map(JsonListed::of).collect();
    serde_json::to_string(&listed).map_err(errors::input)
}

#[pymethods]
impl Arena {
    /// Runs one scheduler, or the optimum for `None`, on one scenario, and returns a part for [`Arena::of_parts`].
    #[staticmethod]
    #[pyo3(signature = (scenario, scheduler, model, quick, planner_sets))]
    fn part(
        py: Python<'_>,
        scenario: &str,
        scheduler: Option<Named<'_>>,
        model: Option<&Model>,
        quick: bool,
        planner_sets: Option<usize>,
    ) -> PyResult<String> {
        let scenario = find(scenario).map_err(errors::input)?;
        let named = scheduler.map(|named| roster(model, None, vec![named])).transpose()?;
        let (roster, schedulers) = named.unwrap_or_default();
        let plan = ArenaPlan { scenarios: vec![scenario], schedulers, roster, quick, planner_sets };
        let part =
            interruptible(py, || run_part(&plan, &plan.scenarios[0], plan.schedulers.first().map(String::as_str)));
        serde_json::to_string(&part?.map_err(errors::input)?).map_err(errors::input)
    }

    /// Joins the parts of scenarios. The order of the schedulers is that of the parts.
    #[staticmethod]
    fn of_parts(parts: Vec<(String, Vec<String>)>, quick: bool) -> PyResult<Arena> {
        let mut scenarios = Vec::new();
        for (name, parts) in parts {
            let scenario = find(&name).map_err(errors::input)?;
            let parts = parts.iter().map(|part| serde_json::from_str::<ArenaPart>(part)).collect::<Result<_, _>>();
            scenarios.push(join(scenario, parts.map_err(errors::input)?));
        }
        Ok(Arena { results: ArenaResults { scenarios, quick } })
    }

    /// The report, as `temponet arena --json` prints it.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&JsonArena::of(&self.results)).map_err(errors::input)
    }

    /// One row for each scheduler on each scenario.
    fn table(&self) -> PyResult<Table> {
        let rows = || self.results.scenarios.iter().flat_map(|of| of.rows.iter().map(move |row| (of, row)));
        Table::of(vec![
            word("scenario", rows().map(|(of, _)| of.scenario.name.as_str())),
            word("scheduler", rows().map(|(_, row)| row.label.as_str())),
            real("score", rows().map(|(_, row)| row.score())),
            optional_real("ci95", rows().map(|(_, row)| row.ci95())),
            real("compliance", rows().map(|(_, row)| row.compliance())),
            whole("sets", rows().map(|(_, row)| row.runs.len() as i64)),
            real("optimum_upper", rows().map(|(of, _)| of.possible.upper)),
        ])
    }

    /// The self-contained page of `temponet arena --report`.
    fn html(&self) -> String {
        page::html(&self.results)
    }
}
