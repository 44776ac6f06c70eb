//! Ranges that whole task sets are drawn from: cores, tasks, load, periods. Recipes of a training and scenarios of the
//! arena state them. They are a distribution over [`Spec`].
//!
//! A file spells the ranges out, or names a preset: `workload = "wide"`. Properties beyond load, periods and the few
//! keys here come from a [`Variety`].

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Deserializer, Serialize};
use temponet_task::{Arrival, Costs, ExecutionModel, Speed, Task, TaskSet, Time};

use super::variety::named_or_table;
use super::{Critical, Deadlines, GenerateError, Lengths, Rule, Spec, Variety, generate};
use crate::is_for_evaluation;

/// Distribution of the execution times of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// Always the wcet.
    Known,
    /// Uniform between the bcet and the wcet.
    Uniform,
    /// Weibull above the bcet, with few execution times near the wcet.
    Weibull,
    /// Pareto from the bcet on.
    Pareto,
}

/// Ranges to draw random sets from. Every range is (low, high), both inclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadRanges {
    /// Numbers of cores, 1 to 1024, each equally likely; a number listed twice is twice as likely. Default 1, 2, 4 and
    /// 8.
    pub cores: Vec<usize>,
    /// Tasks per core, from 0.01; default 3 to 6.
    pub tasks_per_core: (f64, f64),
    /// Mean load per core, from 0.01; 1 is a fully loaded core. Default 0.8 to 1.5.
    pub load: (f64, f64),
    /// Distributions of execution times, each equally likely; default known and uniform.
    pub execution: Vec<ExecutionKind>,
    /// Bcet as a share of the wcet, 0.001 to 1, where execution times vary; default 0.2 to 0.6.
    pub bcet: (f64, f64),
    /// Periods in milliseconds, from 0.001. They are log-uniform between the first number and a longest period, which
    /// is drawn for each set between three times the first number and the second. Default 10 to 100.
    pub periods_ms: (f64, f64),
    /// Probability, 0 to 1, that the periods of a set are heavy-tailed instead: Pareto with shape 2 from the shortest
    /// period on. Default 0.
    pub heavy_tailed: f64,
    /// Probability, 0 to 1, that a set has deadlines shorter than its periods; default 0.2.
    pub constrained: f64,
    /// Probability, 0 to 1, that the tasks of a set differ in value, log-uniform between 1 and 10; default 0.
    pub values: f64,
    /// Probability, 0 to 1, that some of the tasks of a set are critical; default 0.
    pub critical: f64,
    /// Share, 0 to 1, of the tasks that are then critical; default 0.34.
    pub critical_share: f64,
    /// Probability, 0 to 1, that migrations and context switches have costs, and the greatest migration cost as a
    /// share, 0 to 1, of the shortest wcet; default 0 and 0.
    pub costs: (f64, f64),
    /// Speeds of the cores as shares of full speed, ascending to 1; default 1 alone.
    pub speeds: Vec<f64>,
    /// Further properties, each with its probability and range, that a set gets after it has been drawn: a table, or
    /// the name of a preset. Default none.
    #[serde(deserialize_with = "read_variety", skip_serializing_if = "Option::is_none")]
    pub variety: Option<Variety>,
}

fn read_variety<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Variety>, D::Error> {
    named_or_table(from, Variety::preset, &Variety::PRESETS).map(Some)
}

/// Deserializes ranges from a table or from the name of a preset.
pub fn read_workload<'de, D: Deserializer<'de>>(from: D) -> Result<WorkloadRanges, D::Error> {
    named_or_table(from, WorkloadRanges::preset, &Variety::PRESETS)
}

/// As [`read_workload`], for a setting that may be absent.
pub fn read_optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WorkloadRanges>, D::Error> {
    #[derive(Deserialize)]
    struct Present(#[serde(deserialize_with = "read_workload")] WorkloadRanges);
    // A recipe inside a checkpoint is JSON and states an absent workload as null.
    Ok(Option::<Present>::deserialize(from)?.map(|present| present.0))
}

/// Greatest number of jobs per core and median wcet of a set with variety. Two tasks with periods of 1 ms and 1 s may
/// release hundreds of jobs in the time that a job of median length takes, and an episode, whose length is measured in
/// such times, would take hundreds of times as long as others.
const MOST_JOBS: f64 = 20.0;

/// Least ratio between the longest and the shortest period that the limit on jobs makes of a set.
const LEAST_SPREAD: f64 = 3.0;

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
            critical_share: 0.34,
            costs: (0.0, 0.0),
            speeds: vec![1.0],
            variety: None,
        }
    }
}

impl WorkloadRanges {
    /// Returns the preset with this name; see [`Variety::PRESETS`].
    pub fn preset(name: &str) -> Option<WorkloadRanges> {
        (name == "wide").then(WorkloadRanges::wide)
    }

    /// The whole range that the model is meant for: 1 to 16 cores, 1 to 40 tasks a core, loads of 0.5 to 3, periods
    /// over a factor of 3 to 1000, and [`Variety::wide`].
    pub fn wide() -> WorkloadRanges {
        WorkloadRanges {
            cores: vec![1, 1, 1, 2, 2, 2, 3, 4, 4, 6, 8, 12, 16],
            tasks_per_core: (1.0, 40.0),
            load: (0.5, 3.0),
            execution: vec![ExecutionKind::Known],
            periods_ms: (1.0, 1000.0),
            heavy_tailed: 0.1,
            constrained: 0.0,
            variety: Some(Variety::wide()),
            ..WorkloadRanges::default()
        }
    }

    /// Returns why no set can be drawn from these ranges, or `None`.
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
            ("critical_share", self.critical_share),
        ];
        let wrong =
            shares.into_iter().chain([("costs[0]", self.costs.0)]).find(|(_, share)| !(0.0..=1.0).contains(share));
        if let Some((name, share)) = wrong {
            return Some(format!("{name} = {share} is no share from 0 to 1"));
        }
        if !(0.0..=1.0).contains(&self.costs.1) {
            return Some(format!("costs[1] = {} is no share from 0 to 1", self.costs.1));
        }
        let is_ascending = self.speeds.is_sorted_by(|a, b| a < b) && self.speeds.iter().all(|speed| *speed >= 0.001);
        if !is_ascending || self.speeds.last() != Some(&1.0) {
            return Some(format!("speeds = {:?} are not shares of full speed that ascend to 1", self.speeds));
        }
        self.variety.as_ref().and_then(Variety::problem).map(|problem| format!("variety.{problem}"))
    }

    /// Draws the specification of a set and the distribution of its execution times.
    fn spec(&self, rng: &mut Pcg64) -> (Spec, ExecutionKind) {
        let within = |rng: &mut Pcg64, (low, high): (f64, f64)| low + (high - low) * rng.random::<f64>();
        let cores = self.cores[rng.random_range(0..self.cores.len())];
        let per_core = match self.variety {
            // Over a wide range, small numbers are as interesting as large ones.
            Some(_) => {
                self.tasks_per_core.0 * (self.tasks_per_core.1 / self.tasks_per_core.0).powf(rng.random::<f64>())
            }
            None => within(rng, self.tasks_per_core),
        };
        let tasks = ((per_core * cores as f64).round() as usize).max(1);
        let execution = self.execution[rng.random_range(0..self.execution.len())];
        let bcet = if execution == ExecutionKind::Known { 1.0 } else { within(rng, self.bcet) };
        let mean = match execution {
            ExecutionKind::Known => 1.0,
            ExecutionKind::Uniform | ExecutionKind::Weibull => (1.0 + bcet) / 2.0,
            // A rough estimate; the load is divided by it below.
            ExecutionKind::Pareto => bcet + 0.25 * (1.0 - bcet),
        };
        let load = within(rng, self.load) * cores as f64;
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
            spec.critical = Critical { share: self.critical_share, factor: 1.0, overrun: 0.0 };
        }
        (spec, execution)
    }

    /// Draws a set. Its variety has a seed of its own, which is why it is no property of the specification here.
    pub fn draw(&self, seed: u64) -> Result<TaskSet, GenerateError> {
        let mut rng = Pcg64::seed_from_u64(seed);
        let (mut spec, execution) = self.spec(&mut rng);
        let mut seed =
            || std::iter::repeat_with(|| rng.random()).find(|seed| !is_for_evaluation(*seed)).unwrap_or_default();
        let Some(variety) = &self.variety else {
            let set = generate(&spec, seed())?;
            return Ok(self.with_times_and_costs(set, execution, &mut rng));
        };
        let (set_seed, variety_seed, costs_seed) = (seed(), seed(), seed());
        loop {
            let set = generate(&spec, set_seed)?;
            let mut set = self.with_times_and_costs(set, execution, &mut Pcg64::seed_from_u64(costs_seed));
            variety.apply(&mut set, variety_seed);
            if jobs_per_median_wcet(&set) <= MOST_JOBS || !narrow(&mut spec.lengths) {
                return Ok(set);
            }
        }
    }

    /// Gives a drawn set its distribution of execution times and, in some sets, costs.
    fn with_times_and_costs(&self, mut set: TaskSet, execution: ExecutionKind, rng: &mut Pcg64) -> TaskSet {
        for task in set.system.tasks_mut().iter_mut() {
            match execution {
                ExecutionKind::Known | ExecutionKind::Uniform => {}
                ExecutionKind::Weibull => {
                    task.acet = Some(Time((task.bcet.0 + task.wcet.0) / 2));
                    task.execution = ExecutionModel::Weibull { exceed: 0.01 };
                }
                ExecutionKind::Pareto => task.execution = ExecutionModel::Pareto { shape: 1.5 },
            }
        }
        set.system.set_speeds(self.speeds.iter().map(|share| Speed((share * 1000.0).round() as u32)).collect());
        if rng.random::<f64>() < self.costs.0 {
            let shortest = set.tasks().iter().map(|task| task.wcet.0).min().unwrap_or(0) as f64;
            let cost = |rng: &mut Pcg64| Time((shortest * self.costs.1 * rng.random::<f64>()) as u64);
            set.system.set_costs(Costs { migration: cost(rng), context_switch: Time(cost(rng).0 / 4), ..*set.costs() });
        }
        set
    }
}

/// Returns the mean number of jobs that a core gets within the median wcet of the tasks.
fn jobs_per_median_wcet(set: &TaskSet) -> f64 {
    let mut wcets: Vec<u64> = set.tasks().iter().map(|task| task.wcet.0).collect();
    wcets.sort_unstable();
    let rate = |task: &Task| match &task.arrival {
        Arrival::Listed(jobs) => {
            let last = jobs.iter().map(|job| job.deadline).max().unwrap_or_default();
            jobs.len() as f64 / last.0.max(1) as f64
        }
        _ => task.mean_utilization() / task.mean_execution().max(1.0),
    };
    let rate: f64 = set.tasks().iter().map(rate).sum();
    rate * wcets.get(wcets.len() / 2).copied().unwrap_or(0) as f64 / set.cores() as f64
}

/// Takes the square root of the spread of the periods; returns whether there was anything to narrow.
fn narrow(lengths: &mut Lengths) -> bool {
    let (low, high) = match lengths {
        Lengths::Periods(Rule::LogUniform(low, high)) => (*low, *high),
        Lengths::Periods(Rule::Pareto(_, low)) => (*low, Time((low.0 as f64 * LEAST_SPREAD.powi(4)) as u64)),
        _ => return false,
    };
    let spread = high.0 as f64 / low.0 as f64;
    // A little more than the least spread, because periods are whole nanoseconds.
    if spread < LEAST_SPREAD * 1.001 {
        return false;
    }
    let narrower = (low.0 as f64 * spread.sqrt().max(LEAST_SPREAD)) as u64;
    *lengths = Lengths::Periods(Rule::LogUniform(low, Time(narrower)));
    true
}
