//! Schedulers on many random task sets, over load, cores and tasks: the share of sets that each meets completely (the
//! acceptance ratio of the literature), and the share of all deadlines.

mod page;
#[cfg(feature = "parquet")]
mod parquet;

use std::collections::BTreeMap;

use temponet_oracle::STEPS_PER_SECOND;
use temponet_sim::generate::{GenerateError, Spec, generate};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Scheduler, TaskSet, Time};

use crate::clairvoyant::equal_optimum;
use crate::comparison::CompareError;
use crate::horizon::jobs_per_second;
use crate::roster::Roster;
use temponet_page::plot::{Panel, Span, picture};
use temponet_page::svg::Svg;

pub use page::page;
#[cfg(feature = "parquet")]
pub use parquet::parquet;

/// Indices of the schedulers that apply, by number of cores.
pub type Applicable = BTreeMap<usize, Vec<usize>>;

/// A scheduler that does not apply to a number of cores: cores, name and reason.
pub type Refused = (usize, String, String);

/// What to run in a sweep.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// Points to sweep over.
    pub points: Vec<SweepPoint>,
    /// Number of sets per point.
    pub sets: u64,
    /// Approximate number of jobs per set.
    pub jobs: u64,
    /// Scheduler names with options.
    pub schedulers: Vec<String>,
    /// Roster that builds schedulers from their names.
    pub roster: Roster,
    /// Seed of the sets.
    pub seed: u64,
    /// Effort for the clairvoyant optimum per set, in seconds of one core of a reference machine; `None` leaves it out.
    pub oracle: Option<f64>,
}

/// Names of the curves of the clairvoyant optimum: no scheduler meets more than the first, and schedules that meet the
/// second are known. Both are equal where the optimum was found exactly.
const OPTIMUM: [&str; 2] = ["clairvoyant-upper", "clairvoyant-lower"];

/// A point of a sweep: sets of one kind.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// Utilization per core.
    pub load: f64,
    /// Specification of the generated sets.
    pub spec: Spec,
}

/// Result of one scheduler on one set.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// Index into the points of the plan.
    pub point: usize,
    /// Number of the set at that point, from zero.
    pub set: u64,
    /// Index into [`SweepPlan::names`].
    pub scheduler: usize,
    /// Number of jobs that count.
    pub released: u64,
    /// Number of those that met their deadline.
    pub met: u64,
}

/// Error of a sweep.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SweepError {
    /// Set that cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Scheduler that is unknown or broke its contract.
    #[error(transparent)]
    Run(#[from] CompareError),
    /// Clairvoyant optimum with too many jobs for its effort.
    #[error("the sets have too many jobs for the clairvoyant optimum: fewer jobs, a larger effort or no optimum")]
    TooManyJobs,
}

impl SweepPlan {
    /// Returns the names of the curves: the schedulers and, if it was asked for, the clairvoyant optimum.
    pub fn names(&self) -> Vec<String> {
        let optimum = OPTIMUM.iter().filter(|_| self.oracle.is_some());
        self.schedulers.iter().cloned().chain(optimum.map(|name| name.to_string())).collect()
    }

    /// Returns the indices of the schedulers that do not apply to this number of cores, with the reasons.
    pub fn inapplicable(&self, cores: usize) -> Result<Vec<(usize, String)>, SweepError> {
        let Some(point) = self.points.iter().position(|point| point.spec.cores == cores) else { return Ok(Vec::new()) };
        let system = self.draw(point, 0)?.system.clone();
        let mut refused = Vec::new();
        for (index, name) in self.schedulers.iter().enumerate() {
            if let Err(why) = self.roster.build(name).map_err(CompareError::from)?.start(&system) {
                refused.push((index, why.to_string()));
            }
        }
        Ok(refused)
    }

    /// Returns the indices of the applicable schedulers by number of cores, and the others: cores, name and reason.
    pub fn applicable(&self) -> Result<(Applicable, Vec<Refused>), SweepError> {
        let (mut applicable, mut all_refused) = (BTreeMap::new(), Vec::new());
        for cores in self.core_counts() {
            let refused = self.inapplicable(cores)?;
            let left = (0..self.schedulers.len()).filter(|index| refused.iter().all(|(refused, _)| refused != index));
            applicable.insert(cores, left.collect());
            all_refused.extend(refused.into_iter().map(|(index, why)| (cores, self.schedulers[index].clone(), why)));
        }
        Ok((applicable, all_refused))
    }

    /// Returns the summary of the rows as a JSON object: a curve for each scheduler.
    pub fn json(&self, summary: &[Vec<PointSummary>]) -> serde_json::Value {
        let point = |(point, summary): (&SweepPoint, &PointSummary)| {
            serde_json::json!({
                "load": point.load, "cores": point.spec.cores, "tasks": point.spec.tasks,
                "sets": summary.sets, "acceptance": summary.acceptance(), "compliance": summary.compliance(),
            })
        };
        let curve = |(name, points): (&String, &Vec<PointSummary>)| {
            let there = self.points.iter().zip(points).filter(|(_, summary)| summary.sets > 0);
            serde_json::json!({ "scheduler": name, "points": there.map(point).collect::<Vec<_>>() })
        };
        let curves: Vec<_> = self.names().iter().zip(summary).map(curve).collect();
        serde_json::json!({ "seed": self.seed, "curves": curves })
    }

    /// Returns the numbers of cores, in ascending order.
    pub fn core_counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.points.iter().map(|point| point.spec.cores).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// Returns the seed of a set. It depends only on the seed of the plan and on the load, cores, tasks and number of
    /// the set, so a sweep over other points draws the same set again.
    fn seed_of(&self, point: usize, set: u64) -> u64 {
        let SweepPoint { load, spec } = &self.points[point];
        let parts = [load.to_bits(), spec.cores as u64, spec.tasks.unwrap_or(0) as u64, set];
        parts.into_iter().fold(self.seed, |seed, part| seed.wrapping_mul(1_000_003).wrapping_add(part))
    }

    fn draw(&self, point: usize, set: u64) -> Result<TaskSet, GenerateError> {
        generate(&self.points[point].spec, self.seed_of(point, set))
    }

    /// Runs the given schedulers on one set. The result depends only on the plan, the point and the number of the set.
    pub fn run_set(&self, point: usize, set: u64, schedulers: &[usize]) -> Result<Vec<SweepRow>, SweepError> {
        let (drawn, seed) = (self.draw(point, set)?, self.seed_of(point, set));
        let horizon = Time((self.jobs as f64 / jobs_per_second(&drawn) * 1e9) as u64);
        let mut rows = Vec::new();
        for index in schedulers {
            let name = &self.schedulers[*index];
            let mut scheduler = self.roster.build(name).map_err(CompareError::from)?;
            let metrics = simulate(&drawn, seed, horizon, &mut *scheduler, &mut Unobserved);
            let metrics = metrics.map_err(|error| CompareError::Run(name.clone(), error))?;
            let (released, met) = (metrics.jobs.released, metrics.jobs.met);
            rows.push(SweepRow { point, set, scheduler: *index, released, met });
        }
        if let Some(seconds) = self.oracle {
            let found = equal_optimum(&drawn, seed, horizon, (seconds * STEPS_PER_SECOND) as u64);
            let (found, released) = found.ok_or(SweepError::TooManyJobs)?;
            for (index, met) in [found.upper, found.lower].into_iter().enumerate() {
                let scheduler = self.schedulers.len() + index;
                rows.push(SweepRow { point, set, scheduler, released, met: met as u64 });
            }
        }
        Ok(rows)
    }

    /// Adds up the rows by scheduler and point: `[scheduler][point]`.
    pub fn summary(&self, rows: &[SweepRow]) -> Vec<Vec<PointSummary>> {
        let mut summary = vec![vec![PointSummary::default(); self.points.len()]; self.names().len()];
        for row in rows {
            let cell = &mut summary[row.scheduler][row.point];
            cell.sets += 1;
            cell.accepted += u64::from(row.met == row.released);
            cell.released += row.released;
            cell.met += row.met;
        }
        summary
    }

    /// Returns the x axis of the charts, and the title and points of each. The axis is the load if it varies, else the
    /// tasks or the cores. Each combination of the other two has a chart.
    fn charts(&self) -> (Axis, Vec<(String, Vec<usize>)>) {
        let is_swept = |axis: Axis| {
            let first = self.points.first().map(|point| axis.of(point));
            self.points.iter().any(|point| Some(axis.of(point)) != first)
        };
        let axis =
            [Axis::Load, Axis::Tasks, Axis::Cores].into_iter().find(|axis| is_swept(*axis)).unwrap_or(Axis::Load);
        let mut charts: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, point) in self.points.iter().enumerate() {
            let others = [Axis::Load, Axis::Cores, Axis::Tasks].into_iter().filter(|other| *other != axis);
            let title = others.filter_map(|other| other.label(point)).collect::<Vec<_>>().join(", ");
            match charts.iter_mut().find(|(known, _)| *known == title) {
                Some((_, points)) => points.push(index),
                None => charts.push((title, vec![index])),
            }
        }
        for (_, points) in &mut charts {
            points.sort_by(|a, b| axis.of(&self.points[*a]).total_cmp(&axis.of(&self.points[*b])));
        }
        (axis, charts)
    }

    /// Draws the acceptance ratio and the share of deadlines met, with one row of charts per combination.
    pub fn picture(&self, rows: &[SweepRow]) -> Svg {
        let summary = self.summary(rows);
        let (axis, charts) = self.charts();
        let mut panels = Vec::new();
        for (title, points) in &charts {
            let curve = |of: &Vec<PointSummary>, value: SummaryShare| -> Vec<(f64, f64)> {
                let there = points.iter().filter(|at| of[**at].sets > 0);
                there.map(|at| (axis.of(&self.points[*at]), value(&of[*at]))).collect()
            };
            for (name, value) in PointSummary::KINDS {
                let curves = summary.iter().map(|of| curve(of, value)).collect();
                let (title, y) = (format!("{name} · {title}"), Span::Shares(0.0, 1.0));
                panels.push(Panel { title, x_label: axis.name(), curves, y, marks: Vec::new(), is_log: false });
            }
        }
        picture(&panels, 2, &self.names())
    }
}

/// Quantity that can be swept over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Load,
    Cores,
    Tasks,
}

impl Axis {
    fn of(self, point: &SweepPoint) -> f64 {
        match self {
            Axis::Load => point.load,
            Axis::Cores => point.spec.cores as f64,
            Axis::Tasks => point.spec.tasks.unwrap_or(0) as f64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Axis::Load => "utilization per core",
            Axis::Cores => "cores",
            Axis::Tasks => "tasks",
        }
    }

    fn label(self, point: &SweepPoint) -> Option<String> {
        let plural = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        match self {
            Axis::Load => Some(format!("U = {} per core", point.load)),
            Axis::Cores => Some(plural(point.spec.cores, "core")),
            Axis::Tasks => point.spec.tasks.map(|tasks| plural(tasks, "task")),
        }
    }
}

/// Results of one scheduler at one point, added up over the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PointSummary {
    /// Number of sets run; zero if the scheduler does not apply.
    pub sets: u64,
    /// Number of sets without a miss.
    pub accepted: u64,
    /// Number of jobs that count.
    pub released: u64,
    /// Number of those that met their deadline.
    pub met: u64,
}

/// Function that computes a share, 0 to 1, from a summary.
pub type SummaryShare = fn(&PointSummary) -> f64;

impl PointSummary {
    /// The shares of a sweep: title and function.
    pub const KINDS: [(&'static str, SummaryShare); 2] =
        [("Sets met completely", PointSummary::acceptance), ("Deadlines met", PointSummary::compliance)];

    /// Returns the acceptance ratio: the share of sets without a miss, 0 to 1.
    pub fn acceptance(&self) -> f64 {
        self.accepted as f64 / self.sets.max(1) as f64
    }

    /// Returns the share of jobs that met their deadline, 0 to 1.
    pub fn compliance(&self) -> f64 {
        self.met as f64 / self.released.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two points with one set each, and their rows.
    pub(super) fn small_sweep() -> (SweepPlan, Vec<SweepRow>) {
        let point = |load: f64| SweepPoint { load, spec: Spec::new(5, 2, 2.0 * load) };
        let schedulers = ["edf", "rm"].map(String::from).to_vec();
        let plan = SweepPlan {
            points: vec![point(0.5), point(1.25)],
            sets: 1,
            jobs: 100,
            schedulers,
            roster: crate::roster::Roster::classical(),
            seed: 1,
            oracle: Some(0.1),
        };
        let rows = (0..2).flat_map(|point| plan.run_set(point, 0, &[0, 1]).unwrap()).collect();
        (plan, rows)
    }

    fn plan(points: &[(f64, usize, usize)], schedulers: &[&str]) -> SweepPlan {
        let point = |(load, cores, tasks): &(f64, usize, usize)| SweepPoint {
            load: *load,
            spec: Spec::new(*tasks, *cores, load * *cores as f64),
        };
        let schedulers = schedulers.iter().map(|name| name.to_string()).collect();
        SweepPlan {
            points: points.iter().map(point).collect(),
            sets: 30,
            jobs: 300,
            schedulers,
            roster: Roster::classical(),
            seed: 1,
            oracle: Some(0.1),
        }
    }

    #[test]
    fn acceptance_falls_with_load_and_optimal_schedulers_accept_all_that_fits() {
        let plan = plan(&[(0.5, 2, 5), (0.95, 2, 5), (1.2, 2, 5)], &["edf", "dp-wrap", "d-over"]);
        let refused = plan.inapplicable(2).unwrap();
        assert_eq!(refused.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [2], "d-over needs one core");
        let cells = (0..3).flat_map(|point| (0..30).map(move |set| (point, set)));
        let rows: Vec<SweepRow> = cells.flat_map(|(point, set)| plan.run_set(point, set, &[0, 1]).unwrap()).collect();
        let summary = plan.summary(&rows);
        let [edf, wrap] = [0, 1].map(|at| summary[at].iter().map(PointSummary::acceptance).collect::<Vec<_>>());
        assert_eq!(wrap, [1.0, 1.0, 0.0]);
        assert!(edf[0] > edf[1] && edf[1] < 1.0 && edf[2] == 0.0, "{edf:?}");
        assert_eq!(summary[2][0].sets, 0);
        let [upper, lower] = [3, 4].map(|at| summary[at].iter().map(PointSummary::compliance).collect::<Vec<_>>());
        assert!(upper[1] == 1.0 && upper[2] < 1.0 && lower[2] > summary[0][2].compliance(), "{upper:?}");
        assert!(upper.iter().zip(&lower).all(|(upper, lower)| upper >= lower && upper - lower < 0.03), "{lower:?}");
        assert_eq!(plan.run_set(1, 7, &[0, 1]).unwrap(), plan.run_set(1, 7, &[0, 1]).unwrap());
    }

    #[test]
    fn the_swept_axis_is_the_one_that_varies() {
        let loads = plan(&[(0.5, 1, 5), (1.0, 1, 5), (0.5, 2, 5), (1.0, 2, 5)], &["edf"]);
        let (axis, charts) = loads.charts();
        assert_eq!((axis, charts.len()), (Axis::Load, 2));
        assert_eq!(charts[1], ("2 cores, 5 tasks".into(), vec![2, 3]));
        let tasks = plan(&[(1.0, 2, 9), (1.0, 2, 5)], &["edf"]);
        let (axis, charts) = tasks.charts();
        assert_eq!((axis, charts), (Axis::Tasks, vec![("U = 1 per core, 2 cores".into(), vec![1, 0])]));
    }
}
