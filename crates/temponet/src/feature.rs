//! The discrete features of job rows and of the idle row: names, meanings and numbers of values.
//!
//! A feature's name is the name of its embedding in a model file. Features of a model are never reordered and never
//! change their meaning. New ones are added at the end, and old models keep the list that they were trained with.

use serde::{Deserialize, Serialize};
use temponet_infer::Vocabulary;

use temponet_sched::advice::Advisor;
use temponet_task::{Job, Time};

use crate::advice::{ADVICE_VALUES, PLAN_VALUES};

/// A further feature of a job's token, after the slack bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Remaining wcet, in 16 logarithmic bins around the task set's median wcet.
    Remaining,
    /// Criticality: 0, 1, 2, or 3 and above.
    Criticality,
    /// Value relative to the mean value of the task set's tasks, in 8 logarithmic bins.
    Value,
    /// Dispatch state: has not run yet (0), has run but lost its core (1), or is running (2).
    Core,
    /// Least remaining work (by the bcet) as a share of the remaining wcet, in 8 bins.
    Uncertainty,
    /// Time to the deadline, in the slack bins.
    Due,
    /// The subset of the five advisors, which are classical schedulers, that would run the job now.
    Advice,
    /// The subset of the three planners, which look ahead to coming jobs, that would run the job now.
    Plan,
    /// Work due by the job's deadline, coming jobs included, as a share of what the cores can do until then: 16 bins,
    /// the last from 1.875 on.
    Pressure,
    /// Utilization per core of all tasks whose mean execution time per value is no greater than that of the job's task:
    /// 16 bins, the last from 1.5 on.
    Rank,
    /// Worth of the job under the goal of the system, relative to the mean over the tasks: 32 bins, one for each
    /// doubling, the middle one around 1. It tells the network what schedules are judged by.
    Worth,
    /// Rank of the job's criticality among the levels of the system: 0 for a job that is not critical, 1 for the
    /// highest level, 2 for the second, 3 for the third, and 4 for all lower ones. The numbers of the levels do not
    /// matter.
    Level,
    /// Probability that the job completes by its deadline if it runs from now on without interruption, given what it
    /// has executed: 12 bins, the first for exactly 0, the last for exactly 1, and finer near 1.
    Chance,
    /// Slack by the expected remaining execution time, given what the job has executed, instead of the remaining wcet:
    /// the slack bins, and one for a job that is expected to be late.
    Expected,
    /// Cost of running the job now, relative to the task set's median wcet: 0 below 1/256, then 6 logarithmic bins from
    /// 2 on, one for each factor of four. It is a context switch unless the job is running, and a migration if the job
    /// has run on a core that another job occupies.
    Cost,
    /// What the row stands for: a ready job (0), a ready job that is impossible (1) or a coming job (2).
    Kind,
    /// Number of the task, modulo 128. It ties a network to the task set that it learned on.
    Task,
}

/// Number of values of [`Feature::Task`].
pub(crate) const TASK_NUMBERS: u16 = 128;
/// Number of bins of [`Feature::Worth`].
pub(crate) const WORTH_BINS: u16 = 32;
/// Greatest value of [`Feature::Level`].
pub(crate) const LOWEST_LEVEL: u16 = 4;
/// Probabilities at which the bins of [`Feature::Chance`] begin, except for the first, which is exactly 0, and the
/// second, which is everything above.
pub(crate) const CHANCES: [f64; 10] = [0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];
/// Number of bins of [`Feature::Cost`], that of no cost and the unused one included.
pub(crate) const COST_BINS: u16 = 8;

impl Feature {
    /// The features of [`crate::stages::Tokenizer::full`], in its order: all that describe a ready job.
    pub const ALL: [Feature; 15] = [
        Feature::Remaining,
        Feature::Criticality,
        Feature::Value,
        Feature::Core,
        Feature::Uncertainty,
        Feature::Due,
        Feature::Advice,
        Feature::Plan,
        Feature::Pressure,
        Feature::Rank,
        Feature::Worth,
        Feature::Level,
        Feature::Chance,
        Feature::Expected,
        Feature::Cost,
    ];

    /// Name and number of values of the feature, where slack has `bins` bins.
    pub(crate) fn vocabulary(self, bins: usize) -> Vocabulary {
        let (name, size) = match self {
            Feature::Remaining => ("remaining", 16),
            Feature::Criticality => ("criticality", 4),
            Feature::Value => ("value", 8),
            Feature::Core => ("core", 3),
            Feature::Uncertainty => ("uncertainty", 8),
            Feature::Due => ("due", bins),
            Feature::Advice => ("advice", ADVICE_VALUES),
            Feature::Plan => ("plan", PLAN_VALUES),
            Feature::Pressure => ("pressure", 16),
            Feature::Rank => ("rank", 16),
            Feature::Worth => ("worth", usize::from(WORTH_BINS)),
            Feature::Level => ("level", usize::from(LOWEST_LEVEL) + 1),
            Feature::Chance => ("chance", CHANCES.len() + 2),
            Feature::Expected => ("expected", bins + 1),
            Feature::Cost => ("cost", usize::from(COST_BINS)),
            Feature::Kind => ("kind", RowKind::Coming as usize + 1),
            Feature::Task => ("task", usize::from(TASK_NUMBERS)),
        };
        Vocabulary { name: name.into(), size }
    }

    /// Whether the feature needs the distribution of the job's execution time.
    pub(crate) fn needs_prediction(self) -> bool {
        matches!(self, Feature::Chance | Feature::Expected)
    }
}

/// What a job row stands for: the value of [`Feature::Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    Ready,
    Impossible,
    Coming,
}

impl RowKind {
    /// Kind of a ready job.
    pub fn of(job: &Job, now: Time) -> RowKind {
        if job.is_impossible(now) { RowKind::Impossible } else { RowKind::Ready }
    }
}

/// A feature of the idle row. It describes the system, not a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleFeature {
    /// Number of cores: 1, 2, up to 4, up to 8, and so on, in 8 bins.
    Cores,
    /// Mean utilization per core, in 16 bins of equal width, the last from 1.875 on.
    Load,
    /// Rule for jobs that are not complete at their deadline: abort (0) or continue (1).
    Misses,
    /// Mean utilization per core, in 24 logarithmic bins: six to a doubling, from a quarter to four.
    Demand,
    /// Advisor that a hierarchical model follows: its number in [`Advisor::ALL`]. The upper level sets it; it says
    /// nothing about the system.
    Advisor,
}

/// Number of bins for the number of cores.
pub(crate) const CORE_BINS: u16 = 8;
/// Number of bins of [`IdleFeature::Load`].
pub(crate) const LOAD_BINS: u16 = 16;
/// Number of bins of [`IdleFeature::Demand`].
pub(crate) const DEMAND_BINS: u16 = 24;

impl IdleFeature {
    /// The idle features of [`crate::stages::Tokenizer::full`], in its order: all that describe the system.
    pub const ALL: [IdleFeature; 4] = [IdleFeature::Cores, IdleFeature::Load, IdleFeature::Misses, IdleFeature::Demand];

    /// The features of tokenizers that list none: those of the paper's tokens and of older models.
    pub(crate) fn first() -> Vec<IdleFeature> {
        vec![IdleFeature::Cores, IdleFeature::Load]
    }

    /// Name and number of values of the feature.
    pub(crate) fn vocabulary(self) -> Vocabulary {
        let (name, size) = match self {
            IdleFeature::Cores => ("cores", CORE_BINS),
            IdleFeature::Load => ("load", LOAD_BINS),
            IdleFeature::Misses => ("misses", 2),
            IdleFeature::Demand => ("demand", DEMAND_BINS),
            IdleFeature::Advisor => ("advisor", Advisor::ALL.len() as u16),
        };
        Vocabulary { name: name.into(), size: usize::from(size) }
    }
}
