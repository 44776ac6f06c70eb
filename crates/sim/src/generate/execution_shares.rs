//! Models of execution times relative to the wcet, for sets whose tasks come without any.

use serde::Deserialize;
use temponet_task::{ExecutionModel, Task, Time};

/// Model of the true execution times. All times are shares of the wcet, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ExecutionShares {
    /// Uniform between `bcet` and the wcet.
    Uniform {
        /// Best-case execution time.
        bcet: f64,
    },
    /// Weibull from `bcet` with mean `acet`, cut off at the wcet.
    Weibull {
        /// Best-case execution time.
        bcet: f64,
        /// Mean execution time.
        acet: f64,
        /// Share of the distribution that lies beyond the wcet before it is cut off, 0 to 1.
        exceed: f64,
    },
    /// Pareto from `bcet`, cut off at the wcet.
    Pareto {
        /// Best-case execution time.
        bcet: f64,
        /// Tail index of the distribution.
        shape: f64,
    },
    /// Log-normal, from `bcet` to the wcet.
    Lognormal {
        /// Best-case execution time.
        bcet: f64,
        /// Median execution time.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// One of three execution times, the longest of which is the wcet.
    Trimodal {
        /// The shortest and the middle time.
        lengths: [f64; 2],
        /// How often each of the three occurs, in parts of the sum.
        parts: [u32; 3],
    },
}

impl ExecutionShares {
    /// Returns what is wrong with the numbers, or `None`.
    pub(super) fn problem(&self) -> Option<String> {
        match *self {
            ExecutionShares::Trimodal { lengths, parts } => {
                let count: u64 = parts.iter().map(|part| u64::from(*part)).sum();
                let is_wrong =
                    !(1..=1000).contains(&count) || lengths.iter().any(|length| !(0.0..=1.0).contains(length));
                is_wrong.then(|| "execution: lengths are not shares, or parts do not add up to 1 to 1000".into())
            }
            ExecutionShares::Lognormal { median, sigma, .. } => {
                let is_good = (0.0..=1.0).contains(&median) && (0.0..=Task::MOST_SPREAD).contains(&sigma);
                (!is_good).then(|| {
                    format!("execution: the median is no share, or sigma is not from 0 to {}", Task::MOST_SPREAD)
                })
            }
            _ => None,
        }
    }

    /// Gives a task these execution times.
    pub(super) fn apply(&self, task: &mut Task) {
        let wcet = task.wcet;
        let part = |share: f64| Time((share * wcet.0 as f64).round().max(1.0) as u64).min(wcet);
        match *self {
            ExecutionShares::Uniform { bcet } => (task.bcet, task.execution) = (part(bcet), ExecutionModel::Uniform),
            ExecutionShares::Weibull { bcet, acet, exceed } => {
                (task.bcet, task.acet) = (part(bcet), Some(part(acet)));
                task.execution = ExecutionModel::Weibull { exceed };
            }
            ExecutionShares::Pareto { bcet, shape } => {
                (task.bcet, task.execution) = (part(bcet), ExecutionModel::Pareto { shape });
            }
            ExecutionShares::Lognormal { bcet, median, sigma } => {
                (task.bcet, task.execution) = (part(bcet), ExecutionModel::Lognormal { median: part(median), sigma });
            }
            ExecutionShares::Trimodal { lengths: [short, middle], parts } => {
                let times = [part(short), part(middle), wcet].into_iter().zip(parts);
                let samples = times.flat_map(|(time, count)| std::iter::repeat_n(time, count as usize)).collect();
                (task.bcet, task.execution) = (part(short.min(middle)), ExecutionModel::Empirical { samples });
            }
        }
    }
}
