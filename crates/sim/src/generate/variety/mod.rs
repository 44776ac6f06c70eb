//! Variety: random properties on top of a drawn task set, one dimension of the task model at a time.
//!
//! [`generate`](super::generate) draws utilizations and periods. A [`Variety`] then decides, with a probability for
//! each dimension, which further properties the set has: sporadic arrivals, bursts, jitter, deadlines, execution times,
//! values, criticality levels, costs, modes, job lists. Training draws its sets this way, and so does the arena, so
//! that both mean the same by a word.
//!
//! Every change keeps the mean utilization of each task: the drawn period stays the mean time between jobs, and the
//! drawn wcet becomes the mean execution time. A set therefore has the load that it was drawn with, whatever else it
//! gets.
//!
//! Each dimension has random numbers of its own. Turning one off changes nothing about the others.

mod execution;
mod importance;
mod machine;
mod reading;
mod timing;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_task::{Arrival, Task, TaskSet};

pub use reading::named_or_table;

/// A property that some sets have: how likely it is, and the range that its size is drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranged {
    /// Probability that a set has the property, 0 to 1.
    pub chance: f64,
    /// Least and greatest size.
    pub range: (f64, f64),
}

impl Ranged {
    const fn new(chance: f64, low: f64, high: f64) -> Ranged {
        Ranged { chance, range: (low, high) }
    }

    /// Draws whether a set has the property.
    fn happens(&self, rng: &mut Pcg64) -> bool {
        rng.random::<f64>() < self.chance
    }

    /// Draws a size, log-uniform over the range.
    fn log_size(&self, rng: &mut Pcg64) -> f64 {
        log_uniform(self.range, rng)
    }

    /// Draws a whole number from the range.
    fn whole(&self, rng: &mut Pcg64) -> u32 {
        let (low, high) = (self.range.0.round() as u32, self.range.1.round() as u32);
        rng.random_range(low..=high.max(low))
    }
}

/// Draws a number between two positive ones, log-uniform.
fn log_uniform((low, high): (f64, f64), rng: &mut Pcg64) -> f64 {
    low * (high / low).powf(rng.random::<f64>())
}

/// Draws the share of the tasks that a property applies to: all of them in half of the sets.
fn share_of_tasks(rng: &mut Pcg64) -> f64 {
    if rng.random_bool(0.5) { 1.0 } else { rng.random_range(0.2..1.0) }
}

/// Kind of execution times of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// Always the same.
    Known,
    /// Uniform between bcet and wcet.
    Uniform,
    /// Normal around a mean between bcet and wcet.
    Normal,
    /// Weibull from the bcet on, with few jobs near the wcet.
    Weibull,
    /// Pareto from the bcet on.
    Pareto,
    /// Measured times around two lengths, the longer of which is rarer.
    Bimodal,
    /// Measured times around four to six lengths.
    FewModes,
    /// Measured times from a log-normal distribution, a few of them very long.
    HeavyTailed,
}

impl Times {
    /// Every kind.
    pub const ALL: [Times; 8] = [
        Times::Known,
        Times::Uniform,
        Times::Normal,
        Times::Weibull,
        Times::Pareto,
        Times::Bimodal,
        Times::FewModes,
        Times::HeavyTailed,
    ];
}

/// Distribution of the gaps of sporadic tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapKind {
    /// Uniform from the minimum gap on.
    Uniform,
    /// The minimum gap plus an exponentially distributed time.
    Exponential,
}

/// Relation between the value of a task and its wcet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// None: values are log-uniform.
    Independent,
    /// Values grow with the wcet, more slowly than it.
    Growing,
    /// Value per unit of work is the same for all tasks.
    ConstantDensity,
    /// Short tasks are worth more.
    Inverse,
    /// One task is worth more than each of the others, which are equal.
    OneDear,
}

impl Relation {
    /// Every relation.
    pub const ALL: [Relation; 5] =
        [Relation::Independent, Relation::Growing, Relation::ConstantDensity, Relation::Inverse, Relation::OneDear];
}

/// Probability and range of every property that a drawn set can get. The default draws none of them.
///
/// A drawn property replaces the set's own. Execution times are drawn only for tasks that always take their wcet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variety {
    /// Sporadic arrivals of some or all tasks: mean gap as a multiple, from 1, of the minimum gap.
    pub sporadic: Ranged,
    /// Distributions of sporadic gaps, each equally likely.
    pub gaps: Vec<GapKind>,
    /// Tasks that release several jobs at once, about a fifth of the tasks: number of jobs, 2 to 1000.
    pub bursts: Ranged,
    /// Release jitter of some or all tasks: as a share of the period, 0.0001 to 1. It leaves at least a tenth of the
    /// slack.
    pub jitter: Ranged,
    /// Probability, 0 to 1, that first releases are spread over the periods instead of being simultaneous.
    pub offsets: f64,
    /// Relative deadlines: as a multiple of the mean period, 0.01 to 100. A deadline is at least the wcet.
    pub deadlines: Ranged,
    /// Kinds of execution times, each equally likely; a kind listed twice is twice as likely. Empty leaves times alone.
    pub execution: Vec<Times>,
    /// Probability, 0 to 1, that each task of a set has a kind of its own instead of one kind for all.
    pub mixed: f64,
    /// Shortest execution time as a share, 0.001 to 1, of the longest one, where execution times vary. `range` applies
    /// to every set with such times.
    pub spread: (f64, f64),
    /// Wcets that are told too high: as a multiple, from 1, of the longest execution time. Never beyond the deadline.
    pub told: Ranged,
    /// Jobs of about a third of the tasks overrun their wcet: longest overrun as a multiple, from 1, of the wcet. One
    /// job in a hundred to one in five overruns.
    pub overruns: Ranged,
    /// Values: orders of magnitude from the least to the greatest value, 0 to 9.
    pub values: Ranged,
    /// Relations between value and wcet, each equally likely.
    pub relations: Vec<Relation>,
    /// Criticality levels above 0: their number, 1 to 9. Labels are random, and some tasks stay at level 0.
    pub criticality: Ranged,
    /// (m,k)-firm constraints of some or all tasks: k, 2 to 64.
    pub firm: Ranged,
    /// Costs of migrations, context switches or both: as a share, 0.000001 to 10, of the median mean execution time.
    pub costs: Ranged,
    /// Late jobs go on. `range` is the mean load per core within which they may: beyond 1, the number of ready jobs
    /// grows with the length of the run.
    pub keep_late: Ranged,
    /// Mode switches: factor on execution times and on rates, 0.01 to 100. Some modes silence tasks.
    pub modes: Ranged,
    /// Job lists instead of tasks, whose future no scheduler knows: number of jobs per core, 1 to 100000.
    pub lists: Ranged,
}

impl Variety {
    /// Names of the presets.
    pub const PRESETS: [&'static str; 1] = ["wide"];

    /// Names of the dimensions, as [`Variety::certain`] takes them.
    pub const DIMENSIONS: [&'static str; 15] = [
        "sporadic",
        "bursts",
        "jitter",
        "offsets",
        "deadlines",
        "execution",
        "told",
        "overruns",
        "values",
        "criticality",
        "firm",
        "costs",
        "keep_late",
        "modes",
        "lists",
    ];

    /// Returns the preset with this name.
    pub fn preset(name: &str) -> Option<Variety> {
        (name == "wide").then(Variety::wide)
    }

    /// Every dimension, each in a minority of the sets, over the whole range that the model is meant for.
    pub fn wide() -> Variety {
        Variety {
            sporadic: Ranged::new(0.25, 1.1, 5.0),
            gaps: vec![GapKind::Uniform, GapKind::Exponential],
            bursts: Ranged::new(0.12, 2.0, 12.0),
            jitter: Ranged::new(0.2, 0.02, 0.5),
            offsets: 0.5,
            deadlines: Ranged::new(0.5, 0.4, 3.0),
            execution: Times::ALL.to_vec(),
            mixed: 0.3,
            spread: (0.05, 0.9),
            told: Ranged::new(0.3, 1.0, 5.0),
            overruns: Ranged::new(0.12, 1.1, 2.0),
            values: Ranged::new(0.4, 0.3, 4.0),
            relations: Relation::ALL.to_vec(),
            criticality: Ranged::new(0.3, 1.0, 4.0),
            firm: Ranged::new(0.12, 2.0, 10.0),
            costs: Ranged::new(0.3, 0.001, 1.0),
            keep_late: Ranged::new(0.25, 0.0, 1.3),
            modes: Ranged::new(0.15, 0.5, 2.0),
            lists: Ranged::new(0.1, 200.0, 800.0),
        }
    }

    /// Returns the named dimensions of the preset `wide` with certainty and no other ones. Names are those of the
    /// fields; `sporadic` includes `gaps`, `execution` includes `mixed` and `spread`, and `values` includes
    /// `relations`.
    pub fn certain<'a>(names: impl Iterator<Item = &'a str>) -> Result<Variety, String> {
        let wide = Variety::wide();
        let mut variety = Variety::default();
        for name in names {
            let certain = |of: Ranged| Ranged { chance: 1.0, ..of };
            match name {
                "sporadic" => {
                    (variety.sporadic, variety.gaps) = (certain(wide.sporadic), wide.gaps.clone());
                }
                "bursts" => variety.bursts = certain(wide.bursts),
                "jitter" => variety.jitter = certain(wide.jitter),
                "offsets" => variety.offsets = 1.0,
                "deadlines" => variety.deadlines = certain(wide.deadlines),
                "execution" => {
                    (variety.execution, variety.mixed, variety.spread) =
                        (wide.execution.clone(), wide.mixed, wide.spread);
                }
                "told" => variety.told = certain(wide.told),
                "overruns" => variety.overruns = certain(wide.overruns),
                "values" => {
                    (variety.values, variety.relations) = (certain(wide.values), wide.relations.clone());
                }
                "criticality" => variety.criticality = certain(wide.criticality),
                "firm" => variety.firm = certain(wide.firm),
                "costs" => variety.costs = certain(wide.costs),
                "keep_late" => variety.keep_late = certain(wide.keep_late),
                "modes" => variety.modes = certain(wide.modes),
                "lists" => variety.lists = certain(wide.lists),
                _ => return Err(format!("{name:?} is none of {}", Variety::DIMENSIONS.join(", "))),
            }
        }
        Ok(variety)
    }

    /// Returns what is wrong with the numbers, or `None`.
    pub fn problem(&self) -> Option<String> {
        let ranged = [
            ("sporadic", self.sporadic, 1.0, 1e6),
            ("bursts", self.bursts, 2.0, 1000.0),
            ("jitter", self.jitter, 1e-4, 1.0),
            ("deadlines", self.deadlines, 0.01, 100.0),
            ("told", self.told, 1.0, 1000.0),
            ("overruns", self.overruns, 1.0, 1000.0),
            ("values", self.values, 0.0, 9.0),
            ("criticality", self.criticality, 1.0, 9.0),
            ("firm", self.firm, 2.0, 64.0),
            ("costs", self.costs, 1e-6, 10.0),
            ("keep_late", self.keep_late, 0.0, 1000.0),
            ("modes", self.modes, 0.01, 100.0),
            ("lists", self.lists, 1.0, 1e5),
        ];
        let chances = ranged.iter().map(|(name, of, ..)| (*name, of.chance));
        for (name, chance) in chances.chain([("offsets", self.offsets), ("mixed", self.mixed)]) {
            if !(0.0..=1.0).contains(&chance) {
                return Some(format!("{name}: {chance} is no probability from 0 to 1"));
            }
        }
        let used = ranged
            .into_iter()
            .filter(|(_, of, ..)| of.chance > 0.0)
            .map(|(name, of, low, high)| (name, of.range, low, high));
        let spread = (!self.execution.is_empty()).then_some(("spread", self.spread, 0.001, 1.0));
        for (name, (low, high), least, most) in used.chain(spread) {
            if !(least <= low && low <= high && high <= most) {
                return Some(format!("{name}: [{low}, {high}] is no range from {least} to {most}"));
            }
        }
        if self.sporadic.chance > 0.0 && self.gaps.is_empty() {
            return Some("sporadic without gaps: name at least one distribution of gaps".into());
        }
        let no_relation = self.values.chance > 0.0 && self.relations.is_empty();
        no_relation.then(|| "values without relations: name at least one relation to the wcet".into())
    }

    /// Gives a set the properties that it draws. The same set and seed always get the same. The mean load stays as it
    /// is, up to rounding; modes and overruns of job lists aside.
    pub fn apply(&self, set: &mut TaskSet, seed: u64) {
        let mut seeds = Pcg64::seed_from_u64(seed);
        // New dimensions draw their seeds after all others, so that the others stay as they are.
        let mut dimension = || Pcg64::seed_from_u64(seeds.random());
        timing::sporadic(&self.sporadic, &self.gaps, set, &mut dimension());
        timing::bursts(&self.bursts, set, &mut dimension());
        timing::deadlines(&self.deadlines, set, &mut dimension());
        execution::vary(self, set, &mut dimension());
        execution::tell_more(&self.told, set, &mut dimension());
        execution::overrun(&self.overruns, set, &mut dimension());
        set.system.tasks_mut().iter_mut().for_each(|task| task.deadline = task.deadline.max(task.wcet));
        timing::jitter(&self.jitter, set, &mut dimension());
        timing::offsets(self.offsets, set, &mut dimension());
        importance::criticality(&self.criticality, set, &mut dimension());
        importance::values(self, set, &mut dimension());
        importance::firm(&self.firm, set, &mut dimension());
        machine::costs(&self.costs, set, &mut dimension());
        machine::keep_late(&self.keep_late, set, &mut dimension());
        machine::modes(&self.modes, set, &mut dimension());
        machine::lists(&self.lists, set, &mut dimension());
    }
}

/// Whether a task releases bursts. As in files, such a task has known execution times, no jitter and no (m,k)
/// constraint.
fn is_burst(task: &Task) -> bool {
    matches!(task.arrival, Arrival::Burst { .. })
}

/// Returns the mean number of jobs per nanosecond of a task.
fn rate(task: &Task) -> f64 {
    task.mean_utilization() / task.mean_execution().max(1.0)
}

/// Returns the median of some numbers; 1 without any.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
