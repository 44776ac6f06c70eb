//! Sweeps: schedulers on many random sets.

use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;
use temponet_lab::progress::Progress;
use temponet_lab::sweep::{Refused, SweepError, SweepPlan, SweepPoint, SweepRow, page};
use temponet_sim::generate::Spec;

use crate::calls::{at_once, interruptible};
use crate::errors;
use crate::model::Model;
use crate::roster::{Named, roster};
use crate::table::{Table, optional, real, whole, word};
use crate::task_set::spec;

/// A finished sweep, or a part of one.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Sweep {
    plan: SweepPlan,
    rows: Vec<SweepRow>,
    refused: Vec<Refused>,
}

/// What to sweep over, as a JSON object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ranges {
    loads: Vec<f64>,
    cores: Vec<usize>,
    tasks: Vec<Option<usize>>,
    sets: u64,
    jobs: u64,
    seed: u64,
    oracle: Option<f64>,
}

impl Ranges {
    fn points(&self, shape: &Spec) -> PyResult<Vec<SweepPoint>> {
        let mut points = Vec::new();
        for cores in &self.cores {
            for tasks in &self.tasks {
                for load in &self.loads {
                    let good = *load > 0.0 && load.is_finite() && (1..=4096).contains(cores) && *tasks != Some(0);
                    if !good {
                        let wrong = format!("load {load}, cores {cores}, tasks {tasks:?}: a value is out of range");
                        return Err(errors::input(wrong));
                    }
                    let utilization = load * *cores as f64;
                    let spec = Spec { tasks: *tasks, cores: *cores, utilization, ..shape.clone() };
                    points.push(SweepPoint { load: *load, spec });
                }
            }
        }
        Ok(points)
    }
}

/// Runs a sweep: all of its sets, or those of a range of cells. Cell `i` is set `i % sets` of point `i / sets`; points
/// are ordered by cores, then tasks, then loads.
#[pyfunction]
#[pyo3(signature = (ranges, shape, schedulers, model, cells))]
pub fn sweep(
    py: Python<'_>,
    ranges: &str,
    shape: &str,
    schedulers: Vec<Named<'_>>,
    model: Option<&Model>,
    cells: Option<(u64, u64)>,
) -> PyResult<Sweep> {
    let ranges: Ranges = serde_json::from_str(ranges).map_err(errors::input)?;
    let (roster, schedulers) = roster(model, None, schedulers)?;
    let points = ranges.points(&spec(shape)?)?;
    let Ranges { sets, jobs, seed, oracle, .. } = ranges;
    let plan = SweepPlan { points, sets, jobs, schedulers, roster, seed, oracle };
    let all = plan.points.len() as u64 * sets;
    let (first, end) = cells.unwrap_or((0, all));
    let found = interruptible(py, || run(&plan, first..end.min(all)))?.map_err(errors::input)?;
    let (rows, refused) = found;
    Ok(Sweep { plan, rows, refused })
}

fn run(plan: &SweepPlan, cells: std::ops::Range<u64>) -> Result<(Vec<SweepRow>, Vec<Refused>), SweepError> {
    let (applicable, refused) = plan.applicable()?;
    let progress = Progress::steps(cells.end.saturating_sub(cells.start));
    progress.say("sets");
    let one = |cell: u64| {
        let (point, set) = ((cell / plan.sets) as usize, cell % plan.sets);
        let rows = plan.run_set(point, set, &applicable[&plan.points[point].spec.cores]);
        progress.step();
        rows
    };
    let mut rows = Vec::new();
    for first in cells.clone().step_by(at_once()) {
        let some = first..(first + at_once() as u64).min(cells.end);
        let found = some.into_par_iter().map(one).collect::<Result<Vec<_>, SweepError>>()?;
        rows.extend(found.into_iter().flatten());
    }
    progress.finish();
    Ok((rows, refused))
}

#[pymethods]
impl Sweep {
    /// The curves, as `temponet sweep --json` prints them.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.plan.json(&self.plan.summary(&self.rows))).map_err(errors::input)
    }

    /// Schedulers that do not apply: number of cores, name and reason.
    fn refused(&self) -> Vec<(usize, String, String)> {
        self.refused.clone()
    }

    /// One row for each scheduler on each set, with the columns of the CSV file of `temponet sweep`.
    fn rows(&self) -> PyResult<Table> {
        let (names, point) = (self.plan.names(), |row: &SweepRow| &self.plan.points[row.point]);
        let rows = || self.rows.iter();
        Table::of(vec![
            real("load", rows().map(|row| point(row).load)),
            whole("cores", rows().map(|row| point(row).spec.cores as i64)),
            optional("tasks", rows().map(|row| point(row).spec.tasks.map(|tasks| tasks as i64))),
            whole("set", rows().map(|row| row.set as i64)),
            word("scheduler", rows().map(|row| names[row.scheduler].as_str())),
            whole("released", rows().map(|row| row.released as i64)),
            whole("met", rows().map(|row| row.met as i64)),
        ])
    }

    /// The curves as an SVG picture.
    fn svg(&self) -> String {
        self.plan.picture(&self.rows).file()
    }

    /// The self-contained page of `temponet sweep --report`.
    fn html(&self) -> String {
        page(&self.plan, &self.rows)
    }

    /// The rows in a compact form that [`Sweep::with_rows`] reads.
    fn packed(&self) -> Vec<(usize, u64, usize, u64, u64)> {
        self.rows.iter().map(|row| (row.point, row.set, row.scheduler, row.released, row.met)).collect()
    }

    /// The same plan with other rows.
    fn with_rows(&self, rows: Vec<(usize, u64, usize, u64, u64)>) -> PyResult<Sweep> {
        let (points, names) = (self.plan.points.len(), self.plan.names().len());
        if rows.iter().any(|(point, _, scheduler, ..)| *point >= points || *scheduler >= names) {
            return Err(errors::input("a row is not of this sweep"));
        }
        let row = |(point, set, scheduler, released, met)| SweepRow { point, set, scheduler, released, met };
        let rows = rows.into_iter().map(row).collect();
        Ok(Sweep { plan: self.plan.clone(), rows, refused: self.refused.clone() })
    }
}
