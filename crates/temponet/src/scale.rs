//! Properties of a whole task set that tokens are relative to.

use temponet_sched::advice::ArrivalRule;
use temponet_task::{CoreId, DueDates, Job, Measure, OnMiss, System, SystemView, Task, TaskId, Time, Worths};

use crate::bins::Bins;
use crate::feature::{
    CHANCES, CORE_BINS, COST_BINS, DEMAND_BINS, Feature, IdleFeature, LOAD_BINS, LOWEST_LEVEL, WORTH_BINS,
};
use crate::number::Number;
use crate::prediction::{Prediction, Predictions};
use crate::task_row::TaskRow;
use crate::tokenizer::Tokenizer;

/// Properties of a whole task set that tokens are relative to, computed once when a scheduler starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// Unit of time: the median wcet, in nanoseconds; at least 1.
    pub unit: f64,
    /// Mean value of the tasks; positive.
    pub value: f64,
    /// Token of the idle row.
    pub idle: Vec<u16>,
    /// Slack bins, with edges in nanoseconds; a single one if the tokenizer has numbers in their place.
    pub(crate) bins: Bins,
    /// Whether tasks differ in value or criticality.
    pub(crate) differs: bool,
    /// Load per core of the tasks that are no dearer than each task; [`Feature::Rank`] is its bin.
    ranks: Vec<f64>,
    /// Worth of jobs under the goal; none if the tokenizer does not ask for it.
    worths: Option<Worths>,
    /// Criticality, value and [`Feature::Worth`] of the jobs of each task; empty if the tokenizer does not ask for it.
    task_worths: Vec<(u8, f64, u16)>,
    /// [`Feature::Level`] of each criticality.
    levels: Vec<u16>,
    /// Distributions of the execution times; none if the tokenizer does not ask for them.
    pub(crate) predictions: Option<Predictions>,
    /// Cost of a job that needs a context switch, and of one that needs a migration too, in units; and the
    /// [`Feature::Cost`] of each.
    costs: [(f64, u16); 2],
    /// Dates by which jobs with successors have to complete.
    due_dates: DueDates,
    /// How the jobs of each task come; empty if the tokenizer does not ask for it.
    pub(crate) flows: Vec<Flow>,
    /// What is expected of a job of each task at its release; empty if the tokenizer does not ask for it.
    at_release: Vec<Prediction>,
    /// What the rows of the jobs of each task have in common; empty if the tokenizer has no numbers.
    pub(crate) rows: Vec<TaskRow>,
}

/// How the jobs of a task come: all that is needed of each task at every decision, apart from tasks, which are large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flow {
    /// Rule of the arrivals; `None` if they cannot be foreseen.
    pub rule: Option<ArrivalRule>,
    /// Mean execution time in nanoseconds.
    pub mean_execution: f64,
    /// Mean time between releases in nanoseconds; infinite for a list of jobs with none.
    pub gap: f64,
    /// Time from an arrival to the date by which the job has to complete.
    pub due: Time,
}

impl Scale {
    /// Computes the scale of a system for a tokenizer.
    pub fn of(tokenizer: &Tokenizer, system: &System) -> Scale {
        let unit = system.median_wcet().0 as f64;
        let total: f64 = system.tasks().iter().map(|task| task.value).sum();
        let value = (total / system.tasks().len().max(1) as f64).max(f64::MIN_POSITIVE);
        let loads = system.mean_utilizations();
        let load = loads.iter().sum::<f64>() / system.capacity();
        // The table of the bins takes kilobytes and more time than all the rest.
        let edges = if tokenizer.has_bins() { tokenizer.binning.edges(tokenizer.bins) } else { Vec::new() };
        let edges = edges.iter().map(|edge| edge * unit).collect();
        let importance = |task: &Task| (task.value, task.criticality);
        let differs = system.tasks().windows(2).any(|pair| importance(&pair[0]) != importance(&pair[1]));
        let asks = |wanted: fn(Feature) -> bool| tokenizer.features.iter().any(|feature| wanted(*feature));
        let worths = (asks(|feature| feature == Feature::Worth) || tokenizer.numbers.contains(&Number::Worth))
            .then(|| system.goal().worths(system.tasks()));
        let task_worth = |worths: &Worths| {
            let of = |task: &Task| (task.criticality, task.value, worth_bin(worths.of(task.criticality, task.value)));
            system.tasks().iter().map(of).collect()
        };
        let switch = system.costs().context_switch.0 as f64 / unit;
        let migration = system.costs().migration.0 as f64 / unit;
        let needs_predictions = asks(Feature::needs_prediction) || tokenizer.needs_outlook();
        let predictions = needs_predictions.then(|| Predictions::of(system));
        let first = |predictions: &Predictions| {
            let about = |(id, task): (TaskId, &Task)| {
                let job = Job::first(id, task).with_fastest(system.machine().fastest(id));
                predictions.about(&job, task.offset)
            };
            system.task_ids().zip(system.tasks()).map(about).collect()
        };
        let due_dates = DueDates::of(system);
        let flows = if tokenizer.needs_outlook() { flows(system, &loads, &due_dates) } else { Vec::new() };
        let mut scale = Scale {
            unit,
            value,
            idle: tokenizer.idle.iter().map(|feature| idle_value(*feature, system, load)).collect(),
            bins: Bins::new(edges),
            differs,
            ranks: ranks(system, &loads),
            task_worths: worths.as_ref().map_or_else(Vec::new, task_worth),
            worths,
            levels: levels(system),
            at_release: predictions.as_ref().filter(|_| tokenizer.coming).map_or_else(Vec::new, first),
            predictions,
            costs: [switch, switch + migration].map(|cost| (cost, cost_bin(cost))),
            due_dates,
            flows,
            rows: Vec::new(),
        };
        if !tokenizer.numbers.is_empty() {
            scale.rows = system.task_ids().map(|id| TaskRow::of(id, system, &scale)).collect();
        }
        scale
    }

    /// Returns what is expected of a job that can begin at a date; nothing if the tokenizer does not ask for it.
    pub(crate) fn prediction(&self, job: &Job, at: Time) -> Prediction {
        self.predictions.as_ref().map(|predictions| predictions.about(job, at)).unwrap_or_default()
    }

    /// Returns what is expected of a job of a task at its release.
    pub(crate) fn prediction_at_release(&self, task: TaskId) -> Prediction {
        self.at_release.get(task.index()).copied().unwrap_or_default()
    }

    /// Mean time between the releases of a task, in nanoseconds; infinite for a list of jobs with none.
    pub(crate) fn gap(&self, task: TaskId) -> f64 {
        self.flows.get(task.index()).map_or(f64::INFINITY, |flow| flow.gap)
    }

    /// Returns the slack of a job in nanoseconds, by the work to expect, to the date by which it has to complete so
    /// that its successors can be in time.
    #[inline]
    pub(crate) fn slack(&self, job: &Job, now: Time) -> i64 {
        job.expected_slack(now) - self.due_dates.lead(job.task).0 as i64
    }

    /// Returns the date by which a job has to complete.
    pub(crate) fn due(&self, job: &Job) -> Time {
        self.due_dates.due(job)
    }

    /// Returns the [`Feature::Worth`] of a job.
    pub(crate) fn worth(&self, job: &Job) -> u16 {
        // Only jobs of a list differ from their task.
        if let Some((criticality, value, worth)) = self.task_worths.get(job.task.index())
            && (*criticality, *value) == (job.criticality, job.value)
        {
            return *worth;
        }
        worth_bin(self.relative_worth(job))
    }

    /// Returns the worth of a job under the goal, relative to the mean over the tasks; 1 if the tokenizer does not ask.
    pub(crate) fn relative_worth(&self, job: &Job) -> f64 {
        self.worths.as_ref().map_or(1.0, |worths| worths.of(job.criticality, job.value))
    }

    /// Returns the load per core of the tasks that are no dearer than that of a job.
    pub(crate) fn rank(&self, task: TaskId) -> f64 {
        self.ranks.get(task.index()).copied().unwrap_or(0.0)
    }

    /// Returns the [`Feature::Level`] of a job.
    pub(crate) fn level(&self, job: &Job) -> u16 {
        self.levels.get(usize::from(job.criticality)).copied().unwrap_or(0)
    }

    /// Returns the cost of running a job that has not begun, in units.
    pub(crate) fn cost_of_starting(&self) -> f64 {
        self.costs[0].0
    }

    /// Returns the cost of running a job now in units, and its [`Feature::Cost`].
    pub(crate) fn cost(&self, job: &Job, view: &SystemView<'_>) -> (f64, u16) {
        if job.running {
            return (0.0, 0);
        }
        // With a single core there is nowhere to migrate to: the job would take its core back.
        let is_taken = |core: CoreId| view.cores() > 1 && view.running.get(core.index()).is_some_and(Option::is_some);
        self.costs[usize::from(job.last_core.is_some_and(is_taken))]
    }
}

/// Returns the value of an idle feature, where `load` is the mean utilization per core.
fn idle_value(feature: IdleFeature, system: &System, load: f64) -> u16 {
    match feature {
        IdleFeature::Cores => {
            let doublings = usize::BITS - (system.cores() - 1).leading_zeros();
            (doublings as u16).min(CORE_BINS - 1)
        }
        IdleFeature::Load => ((load * 8.0) as u16).min(LOAD_BINS - 1),
        IdleFeature::Misses => u16::from(system.on_miss() == OnMiss::Continue),
        // Whoever follows an advisor sets it.
        IdleFeature::Advisor => 0,
        IdleFeature::Demand => {
            let place = (6.0 * load.log2()).floor() + f64::from(DEMAND_BINS / 2);
            place.clamp(0.0, f64::from(DEMAND_BINS - 1)) as u16
        }
    }
}

/// Computes the load per core of the tasks whose mean execution time per value is no greater than that of each task,
/// where `loads` are the tasks' mean utilizations.
fn ranks(system: &System, loads: &[f64]) -> Vec<f64> {
    let price = |place: &usize| system.tasks()[*place].mean_execution() / system.tasks()[*place].value;
    let mut order: Vec<usize> = (0..system.tasks().len()).collect();
    order.sort_by(|a, b| price(a).total_cmp(&price(b)));
    let mut ranks = vec![0.0; order.len()];
    let mut load = 0.0;
    for same in order.chunk_by(|a, b| price(a) == price(b)) {
        let more: f64 = same.iter().map(|place| loads[*place]).sum();
        load += more / system.capacity();
        same.iter().for_each(|place| ranks[*place] = load);
    }
    ranks
}

/// Computes how the jobs of each task come, where `loads` are the tasks' mean utilizations.
fn flows(system: &System, loads: &[f64], due_dates: &DueDates) -> Vec<Flow> {
    let flow = |((id, task), load): ((TaskId, &Task), &f64)| {
        let (rule, mean_execution) = (ArrivalRule::of(task), task.mean_execution());
        Flow { rule, mean_execution, gap: mean_execution / load, due: task.deadline.saturating_sub(due_dates.lead(id)) }
    };
    system.task_ids().zip(system.tasks()).zip(loads).map(flow).collect()
}

/// Computes the [`Feature::Level`] of each criticality up to the highest one in the goal.
fn levels(system: &System) -> Vec<u16> {
    let mut levels = Vec::new();
    let critical = system.goal().measures().iter().filter_map(|measure| match measure {
        Measure::Critical(level) => Some(usize::from(*level)),
        _ => None,
    });
    // A goal lists the levels from the highest down.
    for (rank, level) in (1..).zip(critical) {
        if levels.len() <= level {
            levels.resize(level + 1, 0);
        }
        levels[level] = LOWEST_LEVEL.min(rank);
    }
    levels
}

/// Returns ⌊2·log₂ ratio⌋ of a positive number. It is read off the bits of the floating-point representation, which is
/// faster than a logarithm.
fn half_doublings(ratio: f64) -> i64 {
    let exponent = (ratio.to_bits() >> 52) as i64 - 1023;
    let is_upper_half = ratio.to_bits() << 12 >= std::f64::consts::SQRT_2.to_bits() << 12;
    2 * exponent + i64::from(is_upper_half)
}

/// Returns the logarithmic bin of a positive number, two bins per doubling: ⌊2·log₂ ratio⌋ + `bins` / 2, clamped to the
/// bins.
pub(crate) fn log_bin(ratio: f64, bins: usize) -> u16 {
    (half_doublings(ratio) + bins as i64 / 2).clamp(0, bins as i64 - 1) as u16
}

/// Returns the [`Feature::Worth`] of a worth: its logarithm to base 2, rounded to the nearest integer. Rounding keeps
/// worths that differ from 1 by rounding errors in one bin.
fn worth_bin(worth: f64) -> u16 {
    let place = (half_doublings(worth) + 1).div_euclid(2) + i64::from(WORTH_BINS / 2);
    place.clamp(0, i64::from(WORTH_BINS - 1)) as u16
}

/// Returns the [`Feature::Chance`] of a probability.
pub(crate) fn chance_bin(chance: f64) -> u16 {
    if chance >= 1.0 {
        return CHANCES.len() as u16 + 1;
    }
    u16::from(chance > 0.0) + CHANCES.iter().map(|begin| u16::from(chance >= *begin)).sum::<u16>()
}

/// Returns the [`Feature::Cost`] of a cost that is this many times the median wcet. Bins 5 and 6 meet at 1. A cost that
/// is too small for bin 2 counts as none, so that what the cost changes vanishes with it; bin 1 is not used.
fn cost_bin(ratio: f64) -> u16 {
    if ratio < 1.0 / 256.0 {
        return 0;
    }
    (half_doublings(ratio).div_euclid(4) + 6).clamp(2, i64::from(COST_BINS - 1)) as u16
}

#[cfg(test)]
mod tests {
    use temponet_task::{Aim, Costs, JobId, TaskId, TaskSet, Time};

    use super::*;

    #[test]
    fn two_bins_to_a_doubling() {
        let ratios = [1e-12, 0.24, 0.25, 0.5, 0.7, 0.71, 1.0, 1.41, 1.42, 2.0, 3.0, 1e12];
        let expected = [0, 3, 4, 6, 6, 7, 8, 8, 9, 10, 11, 15];
        assert_eq!(ratios.map(|ratio| log_bin(ratio, 16)), expected);
        let plain = |ratio: f64| ((ratio.log2() * 2.0).floor() + 8.0).clamp(0.0, 15.0) as u16;
        assert!((1..4_000).map(|k| f64::from(k) * 0.00317).all(|ratio| log_bin(ratio, 16) == plain(ratio)));
    }

    #[test]
    fn bins_of_worth_are_centred_on_one() {
        assert_eq!(
            [0.0, 1e-9, 0.5, 0.71, 1.0 - 1e-12, 1.0, 1.41, 1.42, 2.0, 1e9].map(worth_bin),
            [0, 0, 15, 16, 16, 16, 16, 17, 17, 31]
        );
        let plain = |worth: f64| (worth.log2().round() + 16.0).clamp(0.0, 31.0) as u16;
        assert!((1..4_000).map(|k| f64::from(k) * 0.00317).all(|worth| worth_bin(worth) == plain(worth)));
    }

    #[test]
    fn bins_of_chance_are_finer_near_one_and_exact_at_both_ends() {
        let chances = [0.0, 1e-12, 0.1, 0.3, 0.5, 0.75, 0.85, 0.92, 0.97, 0.995, 0.9995, 1.0];
        assert_eq!(chances.map(chance_bin), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn bins_of_cost_grow_by_four_and_a_tiny_cost_is_none() {
        let costs = [0.0, 1e-9, 0.005, 0.02, 0.1, 0.3, 1.0, 3.9, 4.0, 1e9];
        assert_eq!(costs.map(cost_bin), [0, 0, 2, 3, 4, 5, 6, 6, 7, 7]);
        assert!((1..4_000).map(|k| f64::from(k) * 0.00317).is_sorted_by_key(cost_bin));
    }

    fn set(kinds: &[(u8, f64)], cores: usize) -> TaskSet {
        let task = |(index, (criticality, value)): (usize, &(u8, f64))| {
            Task::periodic(format!("t{index}"), Time(100_000), Time(10_000))
                .with_criticality(*criticality)
                .with_value(*value)
        };
        TaskSet::new("set", kinds.iter().enumerate().map(task).collect(), cores)
    }

    #[test]
    fn levels_are_ranks_whatever_their_labels() {
        let kinds = [(0, 1.0), (3, 1.0), (7, 1.0), (8, 1.0), (100, 1.0), (255, 1.0)];
        let system = set(&kinds, 1).system;
        let scale = Scale::of(&Tokenizer::full(), &system);
        let job = |index: usize| Job::first(TaskId::new(index), &system.tasks()[index]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|index| scale.level(&job(index))), [0, 4, 4, 3, 2, 1]);
        // A level that the goal does not have.
        assert_eq!(scale.level(&job(1).with_criticality(9)), 0);
        let single = set(&[(0, 1.0), (9, 1.0)], 1).system;
        let scale = Scale::of(&Tokenizer::full(), &single);
        assert_eq!([0, 9, 10].map(|criticality| scale.level(&job(0).with_criticality(criticality))), [0, 1, 0]);
    }

    #[test]
    fn the_worth_of_a_job_follows_the_goal() {
        let rich = set(&[(0, 1.0), (0, 1000.0), (2, 1.0)], 1);
        let bins = |set: &TaskSet| {
            let system = set.system.clone();
            let scale = Scale::of(&Tokenizer::full(), &system);
            let worth = |(id, task)| scale.worth(&Job::first(id, task));
            system.task_ids().zip(system.tasks()).map(worth).collect::<Vec<u16>>()
        };
        let by_level = bins(&rich);
        assert!(by_level[0] + 9 < by_level[1] && by_level[1] <= by_level[2], "{by_level:?}");
        assert_eq!(bins(&rich.clone().with_aims(vec![Aim::Met])), [16; 3]);
        let by_value = bins(&rich.with_aims(vec![Aim::Value]));
        assert!(by_value[0] == by_value[2] && by_value[0] + 9 < by_value[1], "{by_value:?}");
        assert_eq!(bins(&set(&[(0, 0.1); 7], 1)), [16; 7], "rounding errors do not matter");
    }

    #[test]
    fn cost_counts_the_switch_and_the_way_and_vanishes_with_them() {
        let bin = |costs: Costs, cores: usize, job: fn(Job) -> Job| {
            let system = set(&[(0, 1.0), (0, 1.0)], cores).with_costs(costs).system;
            let jobs = [Job::first(TaskId(0), &system.tasks()[0]), job(Job::first(TaskId(1), &system.tasks()[1]))];
            // Job 0 is on core 0; the other cores are idle.
            let running: Vec<_> = (0..cores).map(|core| (core == 0).then_some(JobId(0))).collect();
            let active = [JobId(0), JobId(1)];
            let now = Time::ZERO;
            let view = SystemView::new(now, &system, &active, &jobs, &running);
            Scale::of(&Tokenizer::full(), &system).cost(&jobs[1], &view).1
        };
        let (new, free) = (|job: Job| job, |job: Job| job.with_last_core(Some(CoreId(1))));
        let taken = |job: Job| job.with_last_core(Some(CoreId(0)));
        let running = |job: Job| job.with_last_core(Some(CoreId(1))).with_running(true);
        let costs = Costs { context_switch: Time(500), migration: Time(10_000), ..Costs::default() };
        let all =
            |costs: Costs| [bin(costs, 2, new), bin(costs, 2, free), bin(costs, 2, taken), bin(costs, 2, running)];
        assert_eq!(all(costs), [3, 3, 6, 0]);
        assert_eq!(bin(costs, 1, taken), 3, "one core has nowhere to migrate to");
        assert_eq!(all(Costs { context_switch: Time(0), ..costs }), [0, 0, 6, 0]);
        assert_eq!(all(Costs { migration: Time(0), ..costs }), [3, 3, 3, 0]);
        assert_eq!(all(Costs::default()), [0; 4]);
    }

    #[test]
    fn the_idle_token_tells_the_machine_and_the_load() {
        let idle = |cores: usize, on_miss: OnMiss, tasks: usize| {
            let set = set(&vec![(0, 1.0); tasks], cores).with_on_miss(on_miss);
            Scale::of(&Tokenizer::full(), &set.system).idle
        };
        // A utilization of 0.1 each.
        assert_eq!(idle(1, OnMiss::Abort, 1), [0, 0, 0, 0]);
        assert_eq!(idle(4, OnMiss::Continue, 40), [2, 8, 1, 12]);
        assert_eq!(idle(1, OnMiss::Abort, 30), [0, 15, 0, 21]);
        assert_eq!(idle(1, OnMiss::Abort, 90), [0, 15, 0, 23]);
        let paper = Scale::of(&Tokenizer::paper(), &set(&[(0, 1.0)], 2).system);
        assert_eq!(paper.idle, [0]);
    }
}
