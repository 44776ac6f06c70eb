//! Chains under schedulers as rows of a table: share in time, reaction times and data ages.

use temponet_sim::{ChainMetrics, Histogram};
use temponet_task::{Chain, TaskSet};

use crate::comparison::ComparisonRow;

/// Heading of the columns after that of the scheduler.
pub const COLUMNS: [&str; 10] =
    ["chain", "in time", "instances", "lost", "reaction mean", "p99", "max", "data age mean", "p99", "max"];

/// Figures of one chain under one scheduler. Times are in nanoseconds.
pub struct ChainFigures<'a> {
    /// The chain.
    pub chain: &'a Chain,
    /// Its metrics.
    pub metrics: &'a ChainMetrics,
}

impl<'a> ChainFigures<'a> {
    /// Returns the figures of every chain of a set under a scheduler.
    pub fn of(set: &'a TaskSet, row: &'a ComparisonRow) -> impl Iterator<Item = ChainFigures<'a>> {
        set.chains().iter().zip(&row.metrics.chains).map(|(chain, metrics)| ChainFigures { chain, metrics })
    }

    /// Returns the chain's name, with its deadline if it has one.
    pub fn label(&self) -> String {
        match self.chain.deadline {
            Some(deadline) => format!("{} (within {deadline})", self.chain.name),
            None => self.chain.name.clone(),
        }
    }

    /// Returns mean, 99th percentile and maximum of the reaction times and then of the data ages.
    pub fn times(&self) -> [Option<f64>; 6] {
        let of = |times: &Histogram| {
            [times.mean(), times.quantile(0.99).map(|time| time as f64), times.max().map(|time| time as f64)]
        };
        let ([a, b, c], [d, e, f]) = (of(&self.metrics.reaction), of(&self.metrics.age));
        [a, b, c, d, e, f]
    }
}
