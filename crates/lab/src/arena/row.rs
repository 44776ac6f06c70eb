//! The result of one scheduler on a scenario, its differences from others, and the bounds on what is possible.

use serde::Serialize;
use temponet_sched::Kind;

use super::{LEVELS, Score};
use crate::roster::kind;
use crate::stats;

/// Result of one scheduler on all runs of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaRow {
    /// Scheduler name with options.
    pub spec: String,
    /// Name shown in results; it marks untrained models.
    pub label: String,
    /// Numbers of the runs that the scheduler made, ascending; a planner may run on some of the sets only.
    pub runs: Vec<usize>,
    /// Scores of these runs.
    pub scores: Vec<Score>,
}

/// Mean of a paired difference of scores, set by set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean difference.
    pub mean: f64,
    /// Half the width of its 95% confidence interval; `None` for fewer than two sets.
    pub ci95: Option<f64>,
}

impl ArenaRow {
    /// Returns the name in tables of a scenario with `sets` sets. It tells if the scheduler ran on some of them only.
    pub fn name(&self, sets: usize) -> String {
        match self.runs.len() {
            all if all == sets => self.label.clone(),
            some => format!("{} ({some} sets)", self.label),
        }
    }

    /// Returns the scores by the scenario's goal, run by run.
    pub fn values(&self) -> Vec<f64> {
        self.scores.iter().map(|score| score.score).collect()
    }

    /// Returns the mean score.
    pub fn score(&self) -> f64 {
        stats::mean(&self.values())
    }

    /// Returns half the width of the 95% confidence interval of the mean score over the sets; `None` for fewer than two
    /// sets.
    pub fn ci95(&self) -> Option<f64> {
        stats::ci95(&self.values())
    }

    /// Returns the mean share of jobs that met their deadline.
    pub fn compliance(&self) -> f64 {
        stats::mean(&self.scores.iter().map(|score| score.compliance).collect::<Vec<f64>>())
    }

    /// Returns the mean share of jobs in time by criticality level, the highest level first, over the sets that have
    /// it.
    pub fn levels(&self) -> Vec<f64> {
        let of_rank = |rank: usize| {
            let shares: Vec<f64> = self.scores.iter().filter_map(|score| score.levels[rank]).collect();
            (!shares.is_empty()).then(|| stats::mean(&shares))
        };
        (0..LEVELS).map_while(of_rank).collect()
    }

    /// Returns what the scheduler is.
    pub fn kind(&self) -> Kind {
        kind(&self.spec)
    }

    /// Whether the scheduler is a classical one.
    pub fn is_classical(&self) -> bool {
        self.kind().is_classical()
    }

    /// Whether the learned scheduler is held against this one: any other than itself and planners.
    pub fn is_rival(&self) -> bool {
        !self.kind().is_learned() && self.kind() != Kind::Planning
    }

    /// Returns the pairs of scores of this scheduler and another one, on the runs that both made.
    fn pairs<'a>(&'a self, other: &'a ArenaRow) -> impl Iterator<Item = (Score, Score)> + 'a {
        let of_other = |run: &usize| other.runs.binary_search(run).ok().map(|at| other.scores[at]);
        self.runs.iter().zip(&self.scores).filter_map(move |(run, own)| Some((*own, of_other(run)?)))
    }

    /// Returns the score of this scheduler minus that of another one, on the runs that both made.
    pub fn less(&self, other: &ArenaRow) -> Difference {
        let (own, others): (Vec<f64>, Vec<f64>) =
            self.pairs(other).map(|(own, other)| (own.score, other.score)).unzip();
        let (mean, ci95) = stats::paired_difference(&own, &others);
        Difference { mean, ci95 }
    }

    /// Returns the number of runs in which fewer critical jobs are in time than with another scheduler, level by level
    /// from the highest: the first level in which they differ decides.
    pub fn runs_with_fewer_critical(&self, other: &ArenaRow) -> usize {
        let is_fewer = |(own, other): &(Score, Score)| {
            let first = own.levels.iter().zip(&other.levels).find(|(own, other)| own != other);
            first.is_some_and(|(own, other)| own < other)
        };
        self.pairs(other).filter(is_fewer).count()
    }
}

/// Bounds on the greatest possible mean score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Possible {
    /// Whether both bounds are equal, that is, the optimum of every run is known.
    #[serde(rename = "exact")]
    pub is_exact: bool,
    /// Upper bound: no schedule scores more.
    pub upper: f64,
    /// Lower bound: schedules with this score are known.
    pub lower: f64,
}

impl Possible {
    /// Name in tables; a bound is never called an optimum.
    pub fn name(&self) -> &'static str {
        if self.is_exact { "clairvoyant optimum" } else { "clairvoyant bound" }
    }

    /// Sign before the upper bound; empty if it is the optimum itself.
    pub fn sign(&self) -> &'static str {
        if self.is_exact { "" } else { "≤" }
    }
}
