//! One run of one scheduler.

use pyo3::prelude::*;
use temponet_lab::comparison::json::JsonRun;
use temponet_lab::comparison::{CompareError, ComparisonPlan, ComparisonRow, picture_window, task_shares};
use temponet_lab::gantt;
use temponet_lab::horizon::default_horizon;
use temponet_lab::latency::Timed;
use temponet_lab::progress::Progress;
use temponet_sim::{ChromeTrace, Recorder, simulate as run_engine};
use temponet_task::Time;

use crate::calls::interruptible;
use crate::errors;
use crate::model::Model;
use crate::roster::{Named, roster};
use crate::table::Table;
use crate::task_set::TaskSet;

/// A finished run.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Run {
    plan: ComparisonPlan,
    row: ComparisonRow,
    notes: Vec<String>,
}

/// Runs a scheduler once.
#[pyfunction]
#[pyo3(signature = (set, scheduler, seed, horizon, model, budget, latency, record_until))]
#[expect(clippy::too_many_arguments, reason = "the Python layer passes keyword arguments on")]
pub fn simulate(
    py: Python<'_>,
    set: &TaskSet,
    scheduler: Named<'_>,
    seed: u64,
    horizon: Option<u64>,
    model: Option<&Model>,
    budget: Option<u64>,
    latency: bool,
    record_until: Option<u64>,
) -> PyResult<Run> {
    let (roster, schedulers) = roster(model, budget, vec![scheduler])?;
    let horizon = horizon.map_or_else(|| default_horizon(&set.set), Time);
    let plan = ComparisonPlan {
        goal: set.set.goal().clone(),
        set: (*set.set).clone(),
        horizon,
        seed,
        runs: 1,
        schedulers,
        roster,
        latency,
        charge_latency: false,
        record_until: record_until.map_or(horizon, Time),
        oracle: None,
    };
    let row = interruptible(py, || run(&plan))?.map_err(errors::input)?;
    Ok(Run { plan, row, notes: set.notes.clone() })
}

fn run(plan: &ComparisonPlan) -> Result<ComparisonRow, CompareError> {
    let name = &plan.schedulers[0];
    plan.roster.foresee(&plan.set);
    let mut scheduler = plan.roster.build(name)?;
    let progress = Progress::new(1, plan.horizon);
    progress.say(name);
    let mut watched = progress.watch(Recorder::until(plan.record_until));
    let (metrics, latency) = if plan.latency {
        let mut timed = Timed::new(&mut *scheduler);
        let metrics = run_engine(&plan.set, plan.seed, plan.horizon, &mut timed, &mut watched);
        (metrics, Some(timed.latencies))
    } else {
        (run_engine(&plan.set, plan.seed, plan.horizon, &mut *scheduler, &mut watched), None)
    };
    let metrics = metrics.map_err(|error| CompareError::Run(name.clone(), error))?;
    let recording = watched.done(plan.horizon);
    progress.finish();
    let (scheduler, counters) = (plan.roster.label(name), scheduler.counters());
    let (compliance, scores) = (vec![metrics.jobs.compliance()], vec![metrics.scores(&plan.goal)]);
    let tasks = vec![task_shares(&metrics)];
    let (spec, decider) = (name.clone(), plan.roster.decider(name, &plan.set));
    Ok(ComparisonRow { spec, scheduler, metrics, compliance, scores, tasks, latency, recording, counters, decider })
}

#[pymethods]
impl Run {
    /// The figures, as `temponet simulate --json` prints them.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&JsonRun::of(&self.row, &self.plan, &self.notes)).map_err(errors::input)
    }

    /// One row for each recorded job that counts.
    fn jobs(&self) -> PyResult<Table> {
        crate::jobs::jobs(&self.plan.set, self.plan.horizon, &self.row.recording)
    }

    /// One row for each recorded stretch of execution.
    fn slices(&self) -> PyResult<Table> {
        crate::jobs::slices(&self.plan.set, &self.row.recording)
    }

    /// The schedule as an SVG picture, up to a time in nanoseconds or about 40 jobs.
    #[pyo3(signature = (until = None))]
    fn gantt(&self, until: Option<u64>) -> String {
        let plan = &self.plan;
        let window = match until {
            Some(until) => Time(until).min(plan.horizon),
            None => picture_window(&plan.set, plan.horizon, gantt::PICTURE_JOBS),
        };
        gantt::svg(&plan.set, &plan.schedulers[0], &self.row.recording, window.min(plan.record_until))
    }

    /// The trace for ui.perfetto.dev, as a JSON text. The run is simulated once more.
    fn perfetto(&self, py: Python<'_>) -> PyResult<String> {
        let plan = &self.plan;
        let text = interruptible(py, || -> Result<String, String> {
            let text = |error: &dyn std::fmt::Display| error.to_string();
            let mut trace = ChromeTrace::new(&plan.set, plan.horizon, Vec::new()).map_err(|error| text(&error))?;
            let mut scheduler = plan.roster.build(&plan.schedulers[0]).map_err(|error| text(&error))?;
            run_engine(&plan.set, plan.seed, plan.horizon, &mut *scheduler, &mut trace)
                .map_err(|error| text(&error))?;
            String::from_utf8(trace.finish().map_err(|error| text(&error))?).map_err(|error| text(&error))
        });
        text?.map_err(errors::input)
    }
}
