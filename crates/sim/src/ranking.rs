//! The order of schedulers by a goal, and whether the runs can tell two of them apart.
//!
//! A score is a vector with one figure per measure of the goal. Schedulers are ordered by their mean scores,
//! lexicographically and strictly, so no critical job is lost to rounding. Two schedulers are told apart by the first
//! measure in which they differ by more than chance explains, at 95% over all measures together, unless the one that is
//! ahead there may lose too much in a more important one ([`outweighs`]).

use std::cmp::Ordering;

use temponet_task::{Goal, Measure};

use crate::statistics::{self as stats, Interval};

/// Scores of one scheduler: for each run, one figure per measure of the goal.
pub type Scores = [Vec<f64>];

/// Differences below this come from the order of floating-point additions and count as none.
pub const ROUNDING: f64 = 1e-9;

/// Largest share of the critical jobs of a level that is negligible while it is not certain that any is lost.
pub const NEGLIGIBLE: f64 = 1e-3;

/// The difference that tells two schedulers apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Measure in which they differ.
    pub measure: Measure,
    /// Mean difference, the first scheduler minus the second, run by run.
    pub difference: f64,
    /// 95% confidence interval of the difference; `None` for a single run.
    pub interval: Option<Interval>,
    /// Interval that must exclude zero for a difference to be claimed: 95% over all measures that differ, and over all
    /// rivals.
    among_all: Option<Interval>,
}

impl Edge {
    /// Whether the difference is more than chance explains; always true for a single run.
    pub fn is_clear(&self) -> bool {
        self.among_all.is_none_or(|interval| !interval.contains(0.0))
    }

    /// Whether the difference may be chance by itself: its own interval reaches zero. That is less than not to be clear:
    /// among many, a difference has to be greater to be claimed, but that is no reason to pass it over.
    pub fn may_be_chance(&self) -> bool {
        self.interval.is_some_and(|interval| interval.contains(0.0))
    }

    /// The share that the first scheduler may still lose in this measure, at 95%: the lower end of the interval,
    /// negated. It is negative if the first one is ahead beyond chance.
    pub fn possible_loss(&self) -> f64 {
        -self.interval.map_or(self.difference, |interval| interval.low)
    }

    /// What the first scheduler is ahead by for certain, at 95% over all measures and rivals; negative if it is not.
    fn certain_gain(&self) -> f64 {
        self.among_all.map_or(self.difference, |interval| interval.low)
    }

    /// The end of the interval that is farther from zero, without its sign.
    pub fn most(&self) -> f64 {
        let Interval { low, high } = self.interval.unwrap_or(Interval { low: self.difference, high: self.difference });
        high.max(-low)
    }

    /// Distance from the difference to the end of its interval on the side of zero, which decides whether it may be
    /// chance; `None` for a single run.
    pub fn half(&self) -> Option<f64> {
        let Interval { low, high } = self.interval?;
        Some(if self.difference < 0.0 { high - self.difference } else { self.difference - low })
    }

    /// The same difference with the schedulers exchanged.
    fn reversed(self) -> Edge {
        let reversed = |Interval { low, high }| Interval { low: -high, high: -low };
        let (interval, among_all) = (self.interval.map(reversed), self.among_all.map(reversed));
        Edge { difference: -self.difference, interval, among_all, ..self }
    }

    /// Formats the absolute difference in percentage points, as in "2.31 ± 0.20".
    pub fn points(&self) -> String {
        // Small differences need more digits to be visible.
        let digits = if self.difference.abs() < 5e-5 { 5 } else { 2 };
        let interval = self.half().map(|half| format!(" ± {:.digits$}", 100.0 * half)).unwrap_or_default();
        format!("{:.digits$}{interval}", 100.0 * self.difference.abs())
    }
}

/// Returns one measure, run by run.
pub fn values(scores: &Scores, place: usize) -> Vec<f64> {
    scores.iter().filter_map(|run| run.get(place).copied()).collect()
}

/// Returns the mean of each measure over the runs.
pub fn means(scores: &Scores) -> Vec<f64> {
    let measures = scores.first().map_or(0, Vec::len);
    (0..measures).map(|place| stats::mean(&values(scores, place))).collect()
}

/// Orders two vectors of means, the better one first.
pub fn order(a: &[f64], b: &[f64]) -> Ordering {
    let rounded = |means: &[f64]| means.iter().map(|mean| (mean / ROUNDING).round() as i64).collect::<Vec<i64>>();
    rounded(b).cmp(&rounded(a))
}

/// Returns the mean paired difference in one measure, `a` minus `b`, and its standard error, which is `None` for a
/// single run.
pub fn difference(a: &Scores, b: &Scores, place: usize) -> (f64, Option<f64>) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a[place] - b[place]).collect();
    (stats::mean(&differences), stats::standard_error(&differences))
}

/// Returns the difference, `a` minus `b`, in the first measure in which it exceeds `margin` standard errors; `None` if
/// it does in none. A measure in which nothing differs, or in which the runs tell too little, passes to the next one.
pub fn first_beyond(goal: &Goal, a: &Scores, b: &Scores, margin: f64) -> Option<f64> {
    (0..goal.measures().len()).find_map(|place| {
        let (difference, error) = difference(a, b, place);
        (difference.abs() > ROUNDING && difference.abs() > margin * error?).then_some(difference)
    })
}

/// Whether `a` is ahead of `b` for good: by more than `margin` standard errors of the paired difference in the first
/// measure in which any run differs. No other measure decides, because more runs may still decide that one.
pub fn leads_for_good(goal: &Goal, a: &Scores, b: &Scores, margin: f64) -> bool {
    let differs = |place: &usize| a.iter().zip(b).any(|(a, b)| (a[*place] - b[*place]).abs() > ROUNDING);
    (0..goal.measures().len()).find(differs).is_some_and(|place| {
        let (difference, error) = difference(a, b, place);
        error.is_some_and(|error| difference > (margin * error).max(ROUNDING))
    })
}

/// Returns the place of the first of ordered schedulers that no other one is ahead of; the first one if each is behind
/// another, and `None` if there are none. Evidence is not transitive: whoever is ahead of the second one by evidence
/// may be behind the first.
pub fn first_unbeaten<T>(ordered: &[T], is_ahead: impl Fn(&T, &T) -> bool) -> Option<usize> {
    let is_beaten = |one: &T| ordered.iter().any(|other| is_ahead(other, one));
    let unbeaten = ordered.iter().position(|one| !is_beaten(one));
    unbeaten.or((!ordered.is_empty()).then_some(0))
}

/// Returns the differences of two schedulers, one for each measure in which any run differs, the most important first.
/// `units` are the numbers of jobs, windows or instances of each measure in all runs ([`crate::Metrics::units`]).
pub fn edges(goal: &Goal, a: &Scores, b: &Scores, units: &[Option<f64>]) -> Vec<Edge> {
    edges_among(1, goal, a, b, units)
}

/// Returns the differences of two schedulers, where each is held against this many others: a difference is clear at 95%
/// over all of them together.
pub fn edges_among(rivals: usize, goal: &Goal, a: &Scores, b: &Scores, units: &[Option<f64>]) -> Vec<Edge> {
    let differs = |place: usize| a.iter().zip(b).any(|(a, b)| (a[place] - b[place]).abs() > ROUNDING);
    let differing: Vec<(usize, Measure)> =
        goal.measures().iter().copied().enumerate().filter(|(place, _)| differs(*place)).collect();
    let edge = |(place, measure): &(usize, Measure)| {
        let (own, other) = (values(a, *place), values(b, *place));
        let units = units.get(*place).copied().flatten();
        let (difference, interval) = stats::paired_interval(&own, &other, units, 1);
        let (_, among_all) = stats::paired_interval(&own, &other, units, differing.len() * rivals.max(1));
        Edge { measure: *measure, difference, interval, among_all }
    };
    differing.iter().map(edge).collect()
}

/// Returns the difference in the measure at this place, where `units` is the number of its jobs in all runs.
pub fn edge_at(goal: &Goal, a: &Scores, b: &Scores, place: usize, units: Option<f64>) -> Edge {
    let (difference, interval) = stats::paired_interval(&values(a, place), &values(b, place), units, 1);
    Edge { measure: goal.measures()[place], difference, interval, among_all: interval }
}

/// Whether a scheduler that is ahead by `lead` is preferred although a more important measure leaves a `doubt`: it may
/// lose something there. Both are differences of the same two schedulers, in the same order. This is the one rule for
/// uncertain losses, of comparisons and of tuning.
///
/// - A loss that is no chance is never outweighed.
/// - Of critical jobs, what may still be lost must be [`NEGLIGIBLE`]. Where a loss is not even likely, beyond half of
///   its interval, it may also be less than what is won for certain, if those are critical jobs, too; each is a share of
///   its own level. What is not critical does not count against them.
/// - Any other loss that may be chance is passed over.
pub fn outweighs(lead: &Edge, doubt: &Edge) -> bool {
    let (lead, doubt) = if lead.difference < 0.0 { (lead.reversed(), doubt.reversed()) } else { (*lead, *doubt) };
    if doubt.difference < 0.0 && !doubt.may_be_chance() {
        return false;
    }
    let is_likely = doubt.difference < -0.5 * doubt.half().unwrap_or(0.0);
    let is_critical = |edge: &Edge| matches!(edge.measure, Measure::Critical(_));
    let is_won_more = !is_likely && is_critical(&lead) && lead.certain_gain() > doubt.possible_loss();
    !is_critical(&doubt) || doubt.possible_loss() <= NEGLIGIBLE || is_won_more
}

/// Returns the difference that tells two schedulers apart: the first clear one, else the first one; `None` if all runs
/// are equal.
pub fn edge(goal: &Goal, a: &Scores, b: &Scores, units: &[Option<f64>]) -> Option<Edge> {
    let edges = edges(goal, a, b, units);
    edges.iter().find(|edge| edge.is_clear()).or(edges.first()).copied()
}

/// Whether no clear difference tells the two apart.
pub fn are_level(goal: &Goal, a: &Scores, b: &Scores, units: &[Option<f64>]) -> bool {
    edge(goal, a, b, units).is_none_or(|edge| !edge.is_clear())
}

/// Whether all runs are equal in every measure.
pub fn are_equal(a: &Scores, b: &Scores) -> bool {
    let is_equal = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= ROUNDING);
    a.iter().zip(b).all(is_equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Aim;

    fn goal() -> Goal {
        Goal::new(&[Aim::Critical, Aim::Value, Aim::Met], &[1])
    }

    #[test]
    fn the_first_measure_that_differs_decides() {
        let (safe, rich) = (vec![vec![1.0, 0.47, 0.9]; 3], vec![vec![0.9, 0.94, 0.9]; 3]);
        assert_eq!(order(&means(&safe), &means(&rich)), Ordering::Less, "critical jobs outrank any value");
        let edge = edge(&goal(), &safe, &rich, &[]).unwrap();
        assert_eq!((edge.measure, edge.points()), (Measure::Critical(1), "10.00 ± 0.00".into()));
        let (poor, rich) = (vec![vec![1.0, 0.47, 0.9]; 3], vec![vec![1.0, 0.94, 0.2]; 3]);
        assert_eq!(order(&means(&poor), &means(&rich)), Ordering::Greater);
    }

    #[test]
    fn noise_in_one_measure_does_not_hide_a_clear_difference_in_the_next() {
        let a = vec![vec![1.0, 0.5, 0.9], vec![1.0, 0.5, 0.9], vec![1.0, 0.5, 0.9]];
        let b = vec![vec![1.0, 0.4, 0.9], vec![0.999, 0.4, 0.9], vec![1.0, 0.4, 0.9]];
        assert_eq!(edge(&goal(), &a, &b, &[]).unwrap().measure, Measure::Value);
        assert!(!are_level(&goal(), &a, &b, &[]));
    }

    #[test]
    fn evidence_is_counted_in_standard_errors_and_a_single_run_is_none() {
        let a = vec![vec![1.0, 0.50, 0.9], vec![1.0, 0.52, 0.9], vec![1.0, 0.51, 0.9]];
        let b = vec![vec![1.0, 0.49, 0.8], vec![1.0, 0.53, 0.8], vec![1.0, 0.49, 0.8]];
        // Differences in value are 0.01, -0.01 and 0.02: 0.0067 ± 0.0088; those in jobs in time are all 0.1.
        assert!(first_beyond(&goal(), &a, &b, 0.5).is_some_and(|difference| difference < 0.01));
        let too_little = first_beyond(&goal(), &a, &b, 1.0);
        assert!(too_little.is_some_and(|difference| difference > 0.09), "it passes to the next measure");
        assert_eq!(first_beyond(&goal(), &a[..1], &b[..1], 1.0), None);
        assert_eq!(first_beyond(&goal(), &a, &a, 0.0), None);
        assert!(leads_for_good(&goal(), &a, &b, 0.5));
        assert!(!leads_for_good(&goal(), &a, &b, 1.0), "more runs may decide the value");
        assert!(!leads_for_good(&goal(), &a[..1], &b[..1], 0.5) && !leads_for_good(&goal(), &a, &a, 0.0));
    }

    /// Each is behind the one before in the more important measure, perhaps by chance, and ahead of it in the next one;
    /// further down, the losses have added up.
    #[test]
    fn nobody_wins_who_is_behind_another_beyond_chance() {
        let is_ahead = |one: &i32, other: &i32| *one == other + 1 || *one == 0 && *other > 1;
        assert_eq!(first_unbeaten(&[0, 1, 2], is_ahead), Some(0), "each is behind another, so that the order decides");
        assert_eq!(first_unbeaten(&[0, 2, 5], is_ahead), Some(0));
        assert_eq!(first_unbeaten(&[0, 1, 5], is_ahead), Some(1));
        assert_eq!(first_unbeaten(&[], is_ahead), None);
    }

    #[test]
    fn a_difference_is_less_clear_the_more_rivals_there_are() {
        let goal = Goal::new(&[Aim::Met], &[]);
        let (a, b) = (vec![vec![0.50], vec![0.53], vec![0.52]], vec![vec![0.40], vec![0.41], vec![0.45]]);
        let is_clear = |rivals: usize| edges_among(rivals, &goal, &a, &b, &[])[0].is_clear();
        assert!(is_clear(1) && !is_clear(40));
        assert_eq!(edges_among(40, &goal, &a, &b, &[])[0].points(), edges(&goal, &a, &b, &[])[0].points());
    }

    /// Differences of ten runs: a loss in a few runs of a measure, then a lead in the measure after it.
    fn doubted(goal: &Goal, loss: f64, lead: f64) -> (Edge, Edge) {
        let lost = |run: i32| if run % 5 == 0 { loss } else { 0.0 };
        let one: Vec<Vec<f64>> =
            (0..10).map(|run| vec![1.0 - lost(run), 0.5 + lead + 0.001 * f64::from(run % 3)]).collect();
        let other = vec![vec![1.0, 0.5]; 10];
        (edge_at(goal, &one, &other, 0, None), edge_at(goal, &one, &other, 1, None))
    }

    #[test]
    fn a_doubt_about_critical_jobs_is_passed_over_for_more_critical_jobs_or_if_it_is_negligible() {
        let levels = Goal::new(&[Aim::Critical], &[2, 1]);
        let (small, large) = (doubted(&levels, 0.01, 0.3), doubted(&levels, 0.01, 0.003));
        assert!(small.0.may_be_chance() && (small.0.possible_loss() - 0.0081).abs() < 0.0001, "{small:?}");
        assert!(!outweighs(&small.1, &small.0), "a likely loss of the higher level, whatever is won below it");
        let reach = Interval { low: -0.004, high: 0.002 };
        let open = Edge { difference: -0.001, interval: Some(reach), ..small.0 };
        assert!(
            open.possible_loss() > NEGLIGIBLE && outweighs(&small.1, &open),
            "a certain 30 points against an open 0.4"
        );
        assert!(!outweighs(&large.1, &open), "less is won than may be lost");
        let then_jobs = Goal::new(&[Aim::Critical, Aim::Met], &[1]);
        let (doubt, lead) = doubted(&then_jobs, 0.01, 0.3);
        assert!(!outweighs(&lead, &doubt), "what is not critical does not count against critical jobs");
        let (doubt, lead) = doubted(&then_jobs, 0.001, 0.3);
        assert!(doubt.possible_loss() < NEGLIGIBLE && outweighs(&lead, &doubt));
        assert!(outweighs(&lead.reversed(), &doubt.reversed()), "whichever of the two comes first");
        let (doubt, lead) = doubted(&Goal::new(&[Aim::Value, Aim::Met], &[]), 0.01, 0.3);
        assert!(outweighs(&lead, &doubt), "chance in other measures is passed over");
        let certain = edge_at(&levels, &vec![vec![0.9995, 0.9]; 10], &vec![vec![1.0, 0.5]; 10], 0, None);
        assert!(!outweighs(&small.1, &certain), "a loss that is no chance, however small");
    }

    #[test]
    fn rounding_is_no_difference_and_noise_no_clear_one() {
        let (a, b) = (vec![vec![1.0, 0.3, 0.5]], vec![vec![1.0, 0.1 + 0.2, 0.5]]);
        assert_eq!(edge(&goal(), &a, &b, &[]), None);
        assert!(are_equal(&a, &b));
        let a = vec![vec![1.0, 0.5, 0.5], vec![1.0, 0.7, 0.5], vec![1.0, 0.3, 0.5]];
        let b = vec![vec![1.0, 0.6, 0.5], vec![1.0, 0.5, 0.5], vec![1.0, 0.35, 0.5]];
        assert!(are_level(&goal(), &a, &b, &[]));
    }
}
