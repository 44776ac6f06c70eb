//! Comparisons: all schedulers on the same jobs.

use pyo3::prelude::*;
use temponet_lab::comparison::json::JsonReport;
use temponet_lab::comparison::{self as lab, ComparisonPlan, picture_window, report};
use temponet_lab::gantt;
use temponet_lab::horizon::default_horizon;
use temponet_lab::progress::Progress;
use temponet_task::{Aim, Time};

use crate::calls::interruptible;
use crate::errors;
use crate::model::Model;
use crate::roster::{Named, roster};
use crate::table::{Table, optional_real, real, whole, word};
use crate::task_set::TaskSet;

/// Default number of runs if anything in the set is random, as in `temponet compare`.
const RUNS: u64 = 10;

/// A finished comparison.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Comparison {
    comparison: lab::Comparison,
    notes: Vec<String>,
}

/// Runs schedulers on the same jobs.
#[pyfunction]
#[pyo3(signature = (set, schedulers, seed, horizon, runs, rank_by, model, budget, latency, charge_latency, oracle))]
#[expect(clippy::too_many_arguments, reason = "the Python layer passes keyword arguments on")]
pub fn compare(
    py: Python<'_>,
    set: &TaskSet,
    schedulers: Vec<Named<'_>>,
    seed: u64,
    horizon: Option<u64>,
    runs: Option<u64>,
    rank_by: Vec<String>,
    model: Option<&Model>,
    budget: Option<u64>,
    latency: bool,
    charge_latency: bool,
    oracle: Option<f64>,
) -> PyResult<Comparison> {
    let (roster, schedulers) = roster(model, budget, schedulers)?;
    let mut own = (*set.set).clone();
    let horizon = horizon.map_or_else(|| default_horizon(&own), Time);
    let runs = runs.unwrap_or(if own.is_random() { RUNS } else { 1 });
    let aims = rank_by.iter().map(|name| {
        let wrong = || errors::input(format!("rank_by = {name:?} is none of {}", Aim::ALL.map(Aim::name).join(", ")));
        Aim::from_name(name).ok_or_else(wrong)
    });
    let aims = aims.collect::<PyResult<Vec<Aim>>>()?;
    if aims.contains(&Aim::Critical) && own.levels().is_empty() {
        return Err(errors::input("rank_by = \"critical\": no task is critical"));
    }
    if aims.contains(&Aim::Mk) && own.tasks().iter().all(|task| task.mk.is_none()) {
        return Err(errors::input("rank_by = \"mk\": no task has an (m,k) constraint"));
    }
    if aims.contains(&Aim::Chains) && !own.has_chain_deadlines() {
        return Err(errors::input("rank_by = \"chains\": no chain has a deadline"));
    }
    // The schedulers are told the goal that they are ranked by.
    own.system.set_aims([&aims, own.aims()].concat());
    let record_until = picture_window(&own, horizon, report::MOST_JOBS);
    let plan = ComparisonPlan {
        goal: own.goal().clone(),
        set: own,
        horizon,
        seed,
        runs,
        schedulers,
        roster,
        latency,
        charge_latency,
        record_until,
        oracle,
    };
    let progress = Progress::new(plan.runs * plan.schedulers.len() as u64, horizon);
    let comparison = interruptible(py, || lab::compare(plan, &progress))?.map_err(errors::input)?;
    Ok(Comparison { comparison, notes: set.notes.clone() })
}

#[pymethods]
impl Comparison {
    /// The report, as `temponet compare --json` prints it.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&JsonReport::of(&self.comparison, &self.notes)).map_err(errors::input)
    }

    /// One row for each scheduler, the best first.
    fn table(&self) -> PyResult<Table> {
        let rows = || self.comparison.rows.iter();
        let jobs = |row: &lab::ComparisonRow| row.metrics.jobs;
        Table::of(vec![
            word("scheduler", rows().map(|row| row.scheduler.as_str())),
            whole("released", rows().map(|row| jobs(row).released as i64)),
            whole("met", rows().map(|row| jobs(row).met as i64)),
            optional_real("compliance", rows().map(|row| (jobs(row).released > 0).then(|| jobs(row).compliance()))),
            optional_real("compliance_ci95", rows().map(|row| row.ci95())),
            optional_real("pitmd", rows().map(|row| row.metrics.pitmd())),
            optional_real("of_optimum", rows().map(|row| self.comparison.of_optimum(row))),
            real("value", rows().map(|row| row.metrics.value)),
            real("value_possible", rows().map(|row| row.metrics.value_possible)),
            optional_real("art_completed_ns", rows().map(|row| row.metrics.art_completed())),
            optional_real("art_all_ns", rows().map(|row| row.metrics.art_all())),
            whole("preemptions", rows().map(|row| row.metrics.preemptions as i64)),
            whole("migrations", rows().map(|row| row.metrics.migrations as i64)),
            whole("decisions", rows().map(|row| row.metrics.decisions as i64)),
            whole("shed", rows().map(|row| row.metrics.shed as i64)),
            whole("wasted_ns", rows().map(|row| row.metrics.wasted_ns as i64)),
            real("energy", rows().map(|row| row.metrics.energy)),
        ])
    }

    /// The self-contained page of `temponet compare --report`.
    fn html(&self) -> String {
        report::html(&self.comparison)
    }

    /// Share of deadlines met, scheduler by scheduler and run by run, in the order of the rows.
    fn by_run(&self) -> Vec<(String, Vec<f64>)> {
        self.comparison.rows.iter().map(|row| (row.scheduler.clone(), row.compliance.clone())).collect()
    }

    /// The beginning of the schedule of a scheduler's first run as an SVG picture.
    #[pyo3(signature = (scheduler, until = None))]
    fn gantt(&self, scheduler: &str, until: Option<u64>) -> PyResult<String> {
        let plan = &self.comparison.plan;
        let few = || picture_window(&plan.set, plan.horizon, gantt::PICTURE_JOBS);
        let until = until.map_or_else(few, Time).min(plan.record_until);
        Ok(gantt::svg(&plan.set, scheduler, &self.row(scheduler)?.recording, until))
    }

    /// One row for each recorded job of a scheduler's first run.
    fn jobs(&self, scheduler: &str) -> PyResult<Table> {
        let plan = &self.comparison.plan;
        crate::jobs::jobs(&plan.set, plan.horizon, &self.row(scheduler)?.recording)
    }
}

impl Comparison {
    fn row(&self, scheduler: &str) -> PyResult<&lab::ComparisonRow> {
        let missing = || errors::input(format!("scheduler {scheduler:?} is not among the results"));
        self.comparison.row(scheduler).ok_or_else(missing)
    }
}
