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
        self.is_clear() && self.edge.difference > 0.0
    }

    /// Whether the second scheduler is ahead by more than chance explains.
    pub fn is_deficit(&self) -> bool {
        self.is_clear() && self.edge.difference < 0.0
    }

    /// Whether the difference is more than chance explains, and outweighs whatever speaks against it in a more important
    /// measure.
    fn is_clear(&self) -> bool {
        self.edge.is_clear() && self.passed.iter().all(|doubt| ranking::outweighs(&self.edge, doubt))
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
            let (ahead, behind, whole) = (percent(ahead), percent(behind), labels::whole(goal, edge.measure));
            // Shares whose digits are equal show no difference.
            match ahead == behind {
                true => format!(" (but {} points less of {whole}, which may be chance)", edge.points()),
                false => {
                    format!(" (but {ahead} against {behind} of {whole}: {} points, which may be chance)", edge.points())
                }
            }
        };
        self.passed.iter().map(clause).collect()
    }
}

/// Orders rows by the goal, the best first: by their means, with equal ones in the order that they have. Means may
/// differ by chance in a more important measure, so the first place among those that can be used goes to the first one
/// that no other is ahead of beyond what chance explains over all of them. It is the scheduler that is recommended.
pub fn rank<T>(goal: &Goal, rows: &mut [T], row: impl Fn(&T) -> &ComparisonRow) {
    rows.sort_by(|a, b| ranking::order(&ranking::means(&row(a).scores), &ranking::means(&row(b).scores)));
    let usable: Vec<usize> = (0..rows.len()).filter(|place| row(&rows[*place]).is_usable()).collect();
    let is_ahead = |one: &usize, other: &usize| {
        let (one, other) = (row(&rows[*one]), row(&rows[*other]));
        let units = one.metrics.units(goal);
        let edges = ranking::edges_among(usable.len(), goal, &one.scores, &other.scores, &units);
        Claim::from_edges(edges).is_some_and(|claim| claim.is_lead())
    };
    if let Some(best) = ranking::first_unbeaten(&usable, is_ahead) {
        rows[usable[0]..=usable[best]].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Aim;

    /// Among many rivals a small loss of critical jobs is not clear. It is no chance either, so no lead in the jobs passes
    /// over it.
    #[test]
    fn a_loss_that_is_no_chance_by_itself_is_not_passed_over() {
        let goal = Goal::new(&[Aim::Critical, Aim::Met], &[1]);
        let one: Vec<Vec<f64>> = (0..10).map(|run| vec![1.0 - 0.001 * f64::from(run % 3), 0.9]).collect();
        let other: Vec<Vec<f64>> = (0..10).map(|_| vec![1.0, 0.8]).collect();
        let lead = |rivals: usize| Claim::from_edges(ranking::edges_among(rivals, &goal, &one, &other, &[])).unwrap();
        assert!(lead(1).is_deficit());
        let among_many = lead(40);
        assert!(among_many.edge.difference > 0.0 && !among_many.passed[0].is_clear(), "{among_many:?}");
        assert!(!among_many.is_lead() && !among_many.is_deficit(), "{among_many:?}");
    }

    #[test]
    fn shares_with_equal_digits_are_not_held_against_each_other() {
        let goal = Goal::new(&[Aim::Critical, Aim::Met], &[1]);
        // The first one is behind in one run of four, and ahead in the jobs.
        let rows = |loss: f64, met: f64| -> Vec<Vec<f64>> {
            (0..4).map(|run| vec![0.5211 - if run == 0 { loss } else { 0.0 }, met]).collect()
        };
        let claim = |loss: f64| {
            let edges = ranking::edges(&goal, &rows(loss, 0.9), &rows(0.0, 0.8), &[]);
            let claim = Claim::from_edges(edges).unwrap();
            claim.reservation(&goal, |_| (0.5211 - loss / 4.0, 0.5211))
        };
        assert_eq!(claim(1e-5), " (but 0.00025 ± 0.00080 points less of the critical jobs, which may be chance)");
        assert!(claim(0.1).contains("(but 49.61% against 52.11% of the critical jobs: 2.50 ± "), "{}", claim(0.1));
    }
}
