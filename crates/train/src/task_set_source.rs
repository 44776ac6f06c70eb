//! Where task sets to learn on come from: the user's own, or drawn at random within ranges.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_sim::generate::{Critical, Deadlines, GenerateError, Lengths, Rule, Spec, generate};
use temponet_sim::is_for_evaluation;
use temponet_task::{Costs, ExecutionModel, TaskSet, Time};

use crate::job_trace::JobTrace;

/// How execution times vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// Always the wcet.
    Known,
    /// Uniform from the bcet to the wcet.
    Uniform,
    /// Weibull from the bcet, few near the wcet.
    Weibull,
    /// Pareto from the bcet.
    Pareto,
}

/// Ranges to draw sets from; every range is inclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadRanges {
    /// Numbers of cores, each as likely.
    pub cores: Vec<usize>,
    /// Tasks per core.
    pub tasks_per_core: (f64, f64),
    /// Mean load per core.
    pub load: (f64, f64),
    /// Kinds of execution times, each as likely.
    pub execution: Vec<ExecutionKind>,
    /// The bcet as a share of the wcet, where execution times vary.
    pub bcet: (f64, f64),
    /// Periods, in ms: log-uniform from the first to a longest one, which is itself drawn between three times the first and the second.
    pub periods_ms: (f64, f64),
    /// How often periods are heavy-tailed instead: Pareto with shape 2 from the first on.
    pub heavy_tailed: f64,
    /// How often deadlines are shorter than periods.
    pub constrained: f64,
    /// How often sets have values, log-uniform over a factor of ten.
    pub values: f64,
    /// How often sets have critical tasks, a third of them.
    pub critical: f64,
    /// How often migrations and context switches cost something, and how much at most, as a share of the shortest wcet.
    pub costs: (f64, f64),
}

impl Default for WorkloadRanges {
    fn default() -> Self {
        WorkloadRanges {
            cores: vec![1, 2, 4, 8],
            tasks_per_core: (3.0, 6.0),
            load: (0.8, 1.5),
            execution: vec![ExecutionKind::Known, ExecutionKind::Uniform],
            bcet: (0.2, 0.6),
            periods_ms: (10.0, 100.0),
            heavy_tailed: 0.0,
            constrained: 0.2,
            values: 0.0,
            critical: 0.0,
            costs: (0.0, 0.0),
        }
    }
}

impl WorkloadRanges {
    /// Why nothing can be drawn from them, if nothing can.
    pub fn problem(&self) -> Option<String> {
        let ranges = [
            ("tasks_per_core", self.tasks_per_core, 0.01),
            ("load", self.load, 0.01),
            ("bcet", self.bcet, 0.001),
            ("periods_ms", self.periods_ms, 0.001),
        ];
        for (name, (low, high), least) in ranges {
            if !(low.is_finite() && high.is_finite() && low >= least && low <= high) {
                return Some(format!("{name} = [{low}, {high}] is no range from {least} on"));
            }
        }
        if self.bcet.1 > 1.0 {
            return Some(format!("bcet = {} is above 1", self.bcet.1));
        }
        if self.cores.is_empty() || self.cores.iter().any(|cores| !(1..=1024).contains(cores)) {
            return Some(format!("cores = {:?} are not numbers from 1 to 1024", self.cores));
        }
        if self.execution.is_empty() {
            return Some("execution names no kind of execution times".into());
        }
        let shares = [
            ("constrained", self.constrained),
            ("heavy_tailed", self.heavy_tailed),
            ("values", self.values),
            ("critical", self.critical),
        ];
        let wrong =
            shares.into_iter().chain([("costs[0]", self.costs.0)]).find(|(_, share)| !(0.0..=1.0).contains(share));
        if let Some((name, share)) = wrong {
            return Some(format!("{name} = {share} is no share from 0 to 1"));
        }
        (!(0.0..=1.0).contains(&self.costs.1)).then(|| format!("costs[1] = {} is no share from 0 to 1", self.costs.1))
    }

    /// Draws a set.
    pub fn draw(&self, seed: u64) -> Result<TaskSet, GenerateError> {
        let mut rng = Pcg64::seed_from_u64(seed);
        let within = |rng: &mut Pcg64, (low, high): (f64, f64)| low + (high - low) * rng.random::<f64>();
        let cores = self.cores[rng.random_range(0..self.cores.len())];
        let tasks = ((within(&mut rng, self.tasks_per_core) * cores as f64).round() as usize).max(1);
        let execution = self.execution[rng.random_range(0..self.execution.len())];
        let bcet = if execution == ExecutionKind::Known { 1.0 } else { within(&mut rng, self.bcet) };
        let mean = match execution {
            ExecutionKind::Known => 1.0,
            ExecutionKind::Uniform | ExecutionKind::Weibull => (1.0 + bcet) / 2.0,
            // A first guess; what is drawn is scaled to the load below.
            ExecutionKind::Pareto => bcet + 0.25 * (1.0 - bcet),
        };
        let load = within(&mut rng, self.load) * cores as f64;
        let utilization = (load / mean).min(0.95 * tasks as f64);
        let (low, high) = self.periods_ms;
        let spread = (3.0 * low).min(high);
        let longest = spread * (high / spread).powf(rng.random::<f64>());
        let [shortest, longest] = [low, longest].map(|ms| Time::from_us((ms * 1e3) as u64));
        let periods = match rng.random::<f64>() < self.heavy_tailed {
            true => Rule::Pareto(2.0, shortest),
            false => Rule::LogUniform(shortest, longest),
        };
        let mut spec = Spec { lengths: Lengths::Periods(periods), bcet, ..Spec::new(tasks, cores, utilization) };
        if rng.random::<f64>() < self.constrained {
            spec.deadlines = Deadlines::Slack(0.5, 1.0);
        }
        if rng.random::<f64>() < self.values {
            spec.values = (1.0, 10.0);
        }
        if rng.random::<f64>() < self.critical {
            spec.critical = Critical { share: 0.34, factor: 1.0, overrun: 0.0 };
        }
        let seed = std::iter::repeat_with(|| rng.random()).find(|seed| !is_for_evaluation(*seed)).unwrap_or_default();
        let mut set = generate(&spec, seed)?;
        for task in &mut set.tasks {
            match execution {
                ExecutionKind::Known | ExecutionKind::Uniform => {}
                ExecutionKind::Weibull => {
                    task.acet = Some(Time((task.bcet.0 + task.wcet.0) / 2));
                    task.execution = ExecutionModel::Weibull { exceed: 0.01 };
                }
                ExecutionKind::Pareto => task.execution = ExecutionModel::Pareto { shape: 1.5 },
            }
        }
        if rng.random::<f64>() < self.costs.0 {
            let shortest = set.tasks.iter().map(|task| task.wcet.0).min().unwrap_or(0) as f64;
            let cost = |rng: &mut Pcg64| Time((shortest * self.costs.1 * rng.random::<f64>()) as u64);
            set.costs = Costs { migration: cost(&mut rng), context_switch: Time(cost(&mut rng).0 / 4), ..set.costs };
        }
        Ok(set)
    }
}

/// Where sets come from.
#[derive(Clone, Debug)]
pub enum TaskSetSource {
    /// Always the same, with other jobs each time.
    Fixed(Arc<TaskSet>),
    /// A part of a trace, from another date on each time.
    Trace(Arc<JobTrace>),
    /// Drawn anew each time.
    Drawn(Box<WorkloadRanges>),
}

impl TaskSetSource {
    /// The set of an episode.
    pub fn set(&self, seed: u64) -> Result<Arc<TaskSet>, GenerateError> {
        match self {
            TaskSetSource::Fixed(set) => Ok(set.clone()),
            TaskSetSource::Trace(trace) => Ok(Arc::new(trace.window(seed))),
            TaskSetSource::Drawn(ranges) => ranges.draw(seed).map(Arc::new),
        }
    }
}
