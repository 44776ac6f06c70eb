//! Differences between two schedulers in words, and the winner of several.
//!
//! A difference in one measure is never stated alone where a more important measure speaks against it: that one is
//! named, too, with its interval, even though the runs cannot tell whether it is chance.

use temponet_sim::labels;
use temponet_task::Goal;

use crate::comparison::ComparisonRow;
use crate::comparison::ranking::{self, Edge};
use crate::stats::percent;

/// What tells two schedulers apart.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The first clear difference, or else the first one: the first scheduler minus the second.
    pub edge: Edge,
    /// More important measures in which the one that is ahead is behind, though by no more than chance explains.
    pub passed: Vec<Edge>,
}

impl Claim {
    /// Compares two rows of a comparison; `None` if all their runs are equal.
    pub fn of(goal: &Goal, one: &ComparisonRow, other: &ComparisonRow) -> Option<Claim> {
        Claim::from_edges(ranking::edges(goal, &one.scores, &other.scores, &one.metrics.units(goal)))
    }

    /// Takes the differences of two schedulers, the most important measure first.
    pub fn from_edges(edges: Vec<Edge>) -> Option<Claim> {
        let place = edges.iter().position(Edge::is_clear).unwrap_or(0);
        let edge = *edges.get(place)?;
        let is_against = |passed: &&Edge| passed.difference.signum() != edge.difference.signum();
        let passed = edges[..place].iter().filter(is_against).copied().collect();
        Some(Claim { edge, passed })
    }

    /// Whether the first scheduler is ahead by more than chance explains.
    pub fn is_lead(&self) -> bool {
        self.edge.is_clear() && self.edge.difference > 0.0
    }

    /// Whether the second scheduler is ahead by more than chance explains.
    pub fn is_deficit(&self) -> bool {
        self.edge.is_clear() && self.edge.difference < 0.0
    }

    /// Returns the difference as in "2.31 ± 0.20 points of the jobs".
    pub fn points(&self, goal: &Goal) -> String {
        format!("{} points of {}", self.edge.points(), labels::whole(goal, self.edge.measure))
    }

    /// Names the more important measures in which the scheduler that is ahead is behind, with their shares under both;
    /// empty if there are none. `ahead` and `behind` are the shares of a measure under the two.
    pub fn reservation(&self, goal: &Goal, shares: impl Fn(&Edge) -> (f64, f64)) -> String {
        let clause = |edge: &Edge| {
            let (ahead, behind) = shares(edge);
            format!(
                " (but {} against {} of {}: {} points, which may be chance)",
                percent(ahead),
                percent(behind),
                labels::whole(goal, edge.measure),
                edge.points()
            )
        };
        self.passed.iter().map(clause).collect()
    }
}

/// Returns the row that serves the goal best: the first one, unless another one is ahead of it in the first measure in
/// which runs tell the two apart. Rows are ordered by their means, which may differ by chance in a more important one.
pub fn winner<'a>(goal: &Goal, rows: impl IntoIterator<Item = &'a ComparisonRow>) -> Option<&'a ComparisonRow> {
    let is_ahead =
        |one: &ComparisonRow, best: &ComparisonRow| Claim::of(goal, one, best).is_some_and(|claim| claim.is_lead());
    rows.into_iter().reduce(|best, row| if is_ahead(row, best) { row } else { best })
}
