//! Schedulers over many random sets of rising load, on several numbers of cores and tasks: which share of the sets each of them meets
//! completely (the acceptance ratio that the field publishes), and which share of all deadlines.

pub mod files;

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

/// What to run.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// What is swept over.
    pub points: Vec<SweepPoint>,
    /// Sets per point.
    pub sets: u64,
    /// Jobs per set, about.
    pub jobs: u64,
    /// Names with options.
    pub schedulers: Vec<String>,
    /// What the names stand for.
    pub roster: Roster,
    /// Different seeds draw different sets.
    pub seed: u64,
    /// How long finding the clairvoyant optimum of a set may take, in seconds of one core; none: it is left out.
    pub oracle: Option<f64>,
}

/// The curves of the clairvoyant optimum: no scheduler can meet more than the first, and a schedule that meets the second is known. They are
/// one where the optimum was found exactly.
const OPTIMUM: [&str; 2] = ["clairvoyant-upper", "clairvoyant-lower"];

/// Sets of one kind.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// Utilisation per core.
    pub load: f64,
    /// What is drawn: load, cores, tasks and all else.
    pub spec: Spec,
}

/// One scheduler on one set.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// Index into the plan's points.
    pub point: usize,
    /// Which set of that point.
    pub set: u64,
    /// Index into the plan's names.
    pub scheduler: usize,
    /// Jobs that count.
    pub released: u64,
    /// Those in time.
    pub met: u64,
}

/// Why a sweep cannot go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SweepError {
    /// A set that cannot be drawn.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A scheduler that is unknown or broke its contract.
    #[error(transparent)]
    Run(#[from] CompareError),
    /// The clairvoyant optimum would take more memory than its budget allows.
    #[error(
        "the sets have too many jobs for the clairvoyant optimum: fewer --jobs, a larger --oracle-budget or --no-oracle"
    )]
    TooManyJobs,
}

impl SweepPlan {
    /// What there is a curve of: the schedulers and, if it is wanted, the clairvoyant optimum.
    pub fn names(&self) -> Vec<String> {
        let optimum = OPTIMUM.iter().filter(|_| self.oracle.is_some());
        self.schedulers.iter().cloned().chain(optimum.map(|name| name.to_string())).collect()
    }

    /// The schedulers, by index, that cannot run on so many cores, and why.
    pub fn inapplicable(&self, cores: usize) -> Result<Vec<(usize, String)>, SweepError> {
        let Some(point) = self.points.iter().position(|point| point.spec.cores == cores) else { return Ok(Vec::new()) };
        let system = self.draw(point, 0)?.system();
        let mut refused = Vec::new();
        for (index, name) in self.schedulers.iter().enumerate() {
            if let Err(why) = self.roster.build(name).map_err(CompareError::from)?.start(&system) {
                refused.push((index, why.to_string()));
            }
        }
        Ok(refused)
    }

    /// The numbers of cores, ascending.
    pub fn core_counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.points.iter().map(|point| point.spec.cores).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The same load, cores, tasks and number draw the same set, whatever else is swept over.
    fn seed_of(&self, point: usize, set: u64) -> u64 {
        let SweepPoint { load, spec } = &self.points[point];
        let parts = [load.to_bits(), spec.cores as u64, spec.tasks.unwrap_or(0) as u64, set];
        parts.into_iter().fold(self.seed, |seed, part| seed.wrapping_mul(1_000_003).wrapping_add(part))
    }

    fn draw(&self, point: usize, set: u64) -> Result<TaskSet, GenerateError> {
        generate(&self.points[point].spec, self.seed_of(point, set))
    }

    /// The given schedulers on one set; a function of the plan, the point and the set's number alone.
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

    /// Acceptance ratio and compliance of each scheduler at each point: `[scheduler][point]`.
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

    /// What the curves run over, and the points of each chart in order: over the loads, if there are several, else over the tasks or the
    /// cores; a chart for each combination of the others.
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

    /// Both curves of every combination, as one picture with a row each.
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

/// What can be swept over.
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
            Axis::Load => "utilisation per core",
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

/// One scheduler at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PointSummary {
    /// Sets run; none where the scheduler does not apply.
    pub sets: u64,
    /// Sets without a miss.
    pub accepted: u64,
    /// Jobs that count.
    pub released: u64,
    /// Those in time.
    pub met: u64,
}

/// A share of a summary.
pub type SummaryShare = fn(&PointSummary) -> f64;

impl PointSummary {
    /// What is published, and how it is found.
    pub const KINDS: [(&'static str, SummaryShare); 2] =
        [("Sets met completely", PointSummary::acceptance), ("Deadlines met", PointSummary::compliance)];

    /// Share of sets without a miss.
    pub fn acceptance(&self) -> f64 {
        self.accepted as f64 / self.sets.max(1) as f64
    }

    /// Share of jobs in time.
    pub fn compliance(&self) -> f64 {
        self.met as f64 / self.released.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
