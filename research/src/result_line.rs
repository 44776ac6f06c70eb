//! One figure of an experiment: ours beside the paper's and beside the same figure of other schedulers.
//!
//! A [`Line`] also decides how our figure stands against the paper's, and whether it rests on enough repetitions. The
//! verdict over all lines is derived in `findings`.

use serde::{Deserialize, Serialize};

use temponet_lab::stats;
use temponet_sim::statistics::margin;

/// Mean of a repeated measurement, with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatedMean {
    /// Mean, or the only value.
    pub mean: f64,
    /// Standard deviation over the repetitions.
    pub deviation: Option<f64>,
    /// Half the width of the 95% confidence interval of the mean.
    pub ci95: Option<f64>,
    /// Number of repetitions; none where nothing is random, or where the figure belongs to the whole experiment (a fit,
    /// a test).
    pub count: Option<usize>,
}

impl RepeatedMean {
    /// Estimates a figure from its repetitions. Two of them say next to nothing of a spread, so there is no interval.
    pub fn of(values: &[f64]) -> RepeatedMean {
        let deviation = (values.len() > 1).then(|| stats::deviation(values));
        let ci95 = stats::ci95(values).filter(|_| values.len() > 2);
        RepeatedMean { mean: stats::mean(values), deviation, ci95, count: Some(values.len()) }
    }

    /// Widens the interval of a mean over runs by that of several trainings, whose means these are, so that it covers
    /// both. Fewer than three trainings have none.
    pub fn with_trainings(self, means: &[f64]) -> RepeatedMean {
        let trainings = RepeatedMean::of(means).ci95;
        RepeatedMean { ci95: self.ci95.map(|runs| runs.hypot(trainings.unwrap_or(0.0))), ..self }
    }

    /// A figure with a single value and no spread.
    pub fn single(value: f64) -> RepeatedMean {
        RepeatedMean { mean: value, deviation: None, ci95: None, count: None }
    }
}

impl From<f64> for RepeatedMean {
    fn from(value: f64) -> RepeatedMean {
        RepeatedMean::single(value)
    }
}

impl From<&[f64]> for RepeatedMean {
    fn from(values: &[f64]) -> RepeatedMean {
        RepeatedMean::of(values)
    }
}

impl From<&Vec<f64>> for RepeatedMean {
    fn from(values: &Vec<f64>) -> RepeatedMean {
        RepeatedMean::of(values)
    }
}

impl From<Vec<f64>> for RepeatedMean {
    fn from(values: Vec<f64>) -> RepeatedMean {
        RepeatedMean::of(&values)
    }
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Fraction from 0 to 1, shown in percent.
    Share,
    /// Dimensionless number.
    Number,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// Bits.
    Bits,
    /// Megabytes.
    Megabytes,
}

impl Unit {
    /// Formats a value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Share => stats::percent(value),
            Unit::Number => significant(value),
            Unit::Milliseconds => significant(value) + " ms",
            Unit::Microseconds => significant(value) + " µs",
            Unit::Seconds => significant(value) + " s",
            Unit::Bits => significant(value) + " bits",
            Unit::Megabytes => significant(value) + " MB",
        }
    }

    /// Formats the width of an interval, without the unit.
    pub fn show_width(self, value: f64) -> String {
        match self {
            Unit::Share => stats::points(value),
            _ => significant(value),
        }
    }

    /// Greatest difference that counts as equal where the protocol sets none: one percentage point, or 5% of the
    /// paper's figure.
    fn tolerance(self, paper: f64) -> f64 {
        match self {
            Unit::Share => 0.01,
            _ => 0.05 * paper.abs(),
        }
    }
}

/// Formats a number with four significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs().log10().floor();
    if !(-4.0..9.0).contains(&size) {
        return format!("{value:.3e}");
    }
    format!("{value:.*}", (3.0 - size).max(0.0) as usize)
}

/// Direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
    /// Neither direction is better: only equality with the paper counts.
    Neither,
}

/// The same figure of another scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Column of the table: `edf`, `best classical`, `optimum` or the name of a scheduler.
    pub column: String,
    /// Qualifier shown before the value: the scheduler's name where the column does not tell it, or `at most` for a
    /// bound.
    pub who: Option<String>,
    /// Value, in the unit of the line.
    pub value: f64,
}

/// Reason why a figure carries little evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// There are fewer than five repetitions.
    Few,
    /// The confidence interval is wider than the difference from the paper's figure.
    Wide,
}

impl Noise {
    /// Returns the reason as text for a table.
    pub fn text(self) -> &'static str {
        match self {
            Noise::Few => "noise: too few seeds",
            Noise::Wide => "interval wider than the difference",
        }
    }
}

/// Number of repetitions below which a figure is called noise.
const FEWEST: usize = 5;

/// What the paper says of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Its value.
    #[default]
    Value,
    /// That it is greater than zero: a difference between two that the paper puts in an order.
    Order,
}

/// One figure of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Name of the figure; the key in JSON and in the protocol.
    pub name: String,
    /// Unit of all values of the line.
    pub unit: Unit,
    /// Direction in which the figure improves.
    pub better: Better,
    /// Whether the verdict rests on this figure.
    pub is_headline: bool,
    /// What the paper says of it.
    #[serde(default)]
    pub claim: Claim,
    /// Our figure.
    pub ours: RepeatedMean,
    /// The paper's figure, if it has one.
    pub paper: Option<f64>,
    /// Greatest difference from the paper that counts as equal; none: the default of the unit.
    pub tolerance: Option<f64>,
    /// The same figure of other schedulers and of the optimum.
    pub references: Vec<Reference>,
}

/// How our figure compares with the paper's. A difference has to be greater than the tolerance and than the confidence
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As the paper says: no worse than its figure by more than the tolerance, nor different where neither direction is
    /// better, and this holds at both ends of the interval. Or, of an order, greater than zero.
    Same,
    /// Better.
    Better,
    /// The interval is too wide to tell.
    Undecided,
    /// Worse, or different where neither direction is better, or the other way round.
    Worse,
}

impl Line {
    /// A line with our figure only.
    pub fn new(name: impl Into<String>, unit: Unit, better: Better, ours: impl Into<RepeatedMean>) -> Line {
        Line {
            name: name.into(),
            unit,
            better,
            is_headline: false,
            claim: Claim::Value,
            ours: ours.into(),
            paper: None,
            tolerance: None,
            references: Vec::new(),
        }
    }

    /// A share of which more is better, such as the share of jobs in time.
    pub fn share(name: impl Into<String>, ours: impl Into<RepeatedMean>) -> Line {
        Line::new(name, Unit::Share, Better::Higher, ours)
    }

    /// A figure of which less is better.
    pub fn lower(name: impl Into<String>, unit: Unit, ours: impl Into<RepeatedMean>) -> Line {
        Line::new(name, unit, Better::Lower, ours)
    }

    /// A figure of which neither more nor less is better.
    pub fn neither(name: impl Into<String>, unit: Unit, ours: impl Into<RepeatedMean>) -> Line {
        Line::new(name, unit, Better::Neither, ours)
    }

    /// Makes the verdict rest on this line.
    pub fn headline(self) -> Line {
        Line { is_headline: true, ..self }
    }

    /// Makes the verdict rest on this line under a condition.
    pub fn headline_if(self, is_headline: bool) -> Line {
        Line { is_headline, ..self }
    }

    /// Sets the paper's figure where the protocol has none under this name.
    pub fn claimed(self, paper: f64) -> Line {
        Line { paper: Some(paper), ..self }
    }

    /// A difference of two shares, of which the paper says that it is greater than zero. The verdict rests on it.
    pub fn order(name: impl Into<String>, differences: impl Into<RepeatedMean>) -> Line {
        Line { claim: Claim::Order, ..Line::share(name, differences) }.headline()
    }

    /// Adds the same figure of another scheduler. A value that is missing or not finite is left out.
    pub fn beside(mut self, column: &str, who: Option<&str>, value: Option<f64>) -> Line {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.references.push(Reference { column: column.into(), who: who.map(String::from), value });
        }
        self
    }

    /// Compares our figure with what the paper says of it; none if it says nothing.
    pub fn standing(&self) -> Option<Standing> {
        let (gain, tolerance) = self.gain()?;
        let half = self.half_width();
        Some(match gain {
            _ if half.is_nan() => Standing::Undecided,
            less if less < -tolerance.max(half) => Standing::Worse,
            more if self.claim == Claim::Value && more > tolerance.max(half) => Standing::Better,
            like if like - half >= -tolerance && self.claim == Claim::Value => Standing::Same,
            more if more > half && self.claim == Claim::Order => Standing::Same,
            _ => Standing::Undecided,
        })
    }

    /// By how much our figure is better than what the paper says, and the greatest difference that counts as equal.
    fn gain(&self) -> Option<(f64, f64)> {
        if self.claim == Claim::Order {
            return Some((self.ours.mean, 0.0));
        }
        let paper = self.paper?;
        let difference = self.ours.mean - paper;
        let gain = match self.better {
            Better::Higher => difference,
            Better::Lower => -difference,
            Better::Neither => -difference.abs(),
        };
        Some((gain, self.tolerance.unwrap_or_else(|| self.unit.tolerance(paper))))
    }

    /// By how much our figure is better than the paper's, if there is one.
    pub fn gain_over_paper(&self) -> Option<f64> {
        self.gain().map(|(gain, _)| gain)
    }

    /// Half the width of the interval of our figure: zero where nothing is random, not a number where nothing is known
    /// of it.
    fn half_width(&self) -> f64 {
        let unknown = if self.ours.count.is_none() { 0.0 } else { f64::NAN };
        self.ours.ci95.unwrap_or(unknown)
    }

    /// Number of repetitions after which an undecided figure would be decided, if their mean and spread stay what they
    /// are.
    pub fn repetitions_to_decide(&self) -> Option<usize> {
        let ((gain, tolerance), deviation) = (self.gain()?, self.ours.deviation?);
        // Either the figure turns out to be the same, or to be worse.
        let needed = if gain < -tolerance { -gain } else { gain + tolerance };
        (needed > 0.0 && self.ours.count? > 1).then(|| repetitions_for(deviation, needed))
    }

    /// Returns why the figure carries little evidence; none if it carries enough.
    pub fn noise(&self) -> Option<Noise> {
        let count = self.ours.count?;
        if count < FEWEST {
            return Some(Noise::Few);
        }
        let difference = (self.ours.mean - self.paper?).abs();
        (self.ours.ci95? > difference).then_some(Noise::Wide)
    }

    /// Formats our figure with its confidence interval.
    pub fn shown(&self) -> String {
        let interval = self.ours.ci95.map(|half| format!(" ± {}", self.unit.show_width(half))).unwrap_or_default();
        self.unit.show(self.ours.mean) + &interval
    }
}

/// Returns the number of values with this standard deviation after which half the 95% confidence interval of their mean
/// is no wider than `half`: at most a million.
fn repetitions_for(deviation: f64, half: f64) -> usize {
    let is_enough = |count: usize| margin(count, 0.025) * deviation <= half * (count as f64).sqrt();
    // Two have no interval.
    let (mut few, mut enough) = (2_usize, 1_000_000);
    while enough - few > 1 {
        let middle = few.midpoint(enough);
        if is_enough(middle) { enough = middle } else { few = middle }
    }
    enough
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn line(mean: f64, ci95: Option<f64>, count: usize, paper: f64) -> Line {
        let ours = RepeatedMean { mean, deviation: None, ci95, count: Some(count) };
        Line { paper: Some(paper), ..Line::share("x", ours) }
    }

    #[test]
    fn what_is_within_tolerance_or_better_within_the_interval_is_the_same() {
        assert_eq!(line(0.795, Some(0.0), 9, 0.79).standing(), Some(Standing::Same), "within a point");
        assert_eq!(
            line(0.795, Some(0.01), 9, 0.79).standing(),
            Some(Standing::Same),
            "within a point, and so is the interval"
        );
        assert_eq!(
            line(0.85, Some(0.065), 9, 0.79).standing(),
            Some(Standing::Same),
            "within the interval, at least as good"
        );
        assert_eq!(line(0.85, Some(0.01), 9, 0.79).standing(), Some(Standing::Better));
        assert_eq!(line(0.70, Some(0.01), 9, 0.79).standing(), Some(Standing::Worse));
        let lower = Line { better: Better::Lower, ..line(0.85, Some(0.0), 9, 0.79) };
        assert_eq!(lower.standing(), Some(Standing::Worse));
        let neither = Line { better: Better::Neither, ..line(0.85, Some(0.0), 9, 0.79) };
        assert_eq!(neither.standing(), Some(Standing::Worse), "different is all there is");
        assert_eq!(Line { paper: None, ..lower }.standing(), None);
    }

    #[test]
    fn what_is_worse_by_less_than_its_interval_cannot_be_told() {
        let wide = line(0.70, Some(0.35), 10, 0.982);
        assert_eq!(wide.standing(), Some(Standing::Undecided));
        let lower = Line { better: Better::Lower, ..line(0.85, Some(0.07), 9, 0.79) };
        assert_eq!(lower.standing(), Some(Standing::Undecided));
        assert_eq!(
            line(0.785, Some(0.2), 9, 0.79).standing(),
            Some(Standing::Undecided),
            "a wide interval confirms nothing"
        );
        let two = Line { ours: RepeatedMean::of(&[0.79, 0.79]), ..line(0.0, None, 2, 0.79) };
        assert_eq!((two.standing(), two.shown().as_str()), (Some(Standing::Undecided), "79.00%"));
        for mean in [0.72, 0.86] {
            let neither = Line { better: Better::Neither, ..line(mean, Some(0.08), 9, 0.79) };
            assert_eq!(neither.standing(), Some(Standing::Undecided), "{mean}");
        }
    }

    #[test]
    fn an_interval_over_runs_covers_the_trainings_as_well() {
        let runs = RepeatedMean::of(&[0.5, 0.6, 0.7, 0.6]);
        let wider = runs.with_trainings(&[0.4, 0.6, 0.8]);
        let trainings = RepeatedMean::of(&[0.4, 0.6, 0.8]);
        assert_eq!(wider.ci95, Some(runs.ci95.unwrap().hypot(trainings.ci95.unwrap())));
        assert_eq!((wider.mean, wider.count), (runs.mean, Some(4)));
        assert_eq!(runs.with_trainings(&[0.4, 0.8]), runs, "two trainings have no interval");
        assert_eq!(RepeatedMean::of(&[0.5, 0.6]).with_trainings(&[0.4, 0.6, 0.8]).ci95, None, "nor do two runs");
    }

    #[test]
    fn an_order_holds_if_the_difference_is_greater_than_its_interval() {
        let order = |values: &[f64]| Line::order("lead", values);
        assert_eq!(order(&[0.02, 0.03, 0.025]).standing(), Some(Standing::Same));
        assert_eq!(order(&[-0.02, -0.03, -0.025]).standing(), Some(Standing::Worse));
        assert_eq!(order(&[0.02, -0.03, 0.025]).standing(), Some(Standing::Undecided));
        assert_eq!(Line::order("lead", 0.0).standing(), Some(Standing::Undecided), "level");
        assert_eq!(Line::order("lead", -0.1).standing(), Some(Standing::Worse), "nothing is random");
    }

    #[test]
    fn the_repetitions_that_would_decide_are_named() {
        let spread = |mean: f64| {
            let ours = RepeatedMean { mean, deviation: Some(0.05), ci95: Some(0.062), count: Some(5) };
            Line { paper: Some(0.8), ..Line::share("x", ours) }
        };
        // Worse by two points: 0.05 t / √n ≤ 0.02.
        assert_eq!(spread(0.78).standing(), Some(Standing::Undecided));
        assert_eq!(spread(0.78).repetitions_to_decide(), Some(27));
        // The same: within a point at the lower end.
        assert_eq!(spread(0.8).repetitions_to_decide(), Some(99));
        assert_eq!(Line::share("x", 0.5).repetitions_to_decide(), None);
    }

    #[test]
    fn noise_is_marked() {
        assert_eq!(line(0.85, Some(0.07), 9, 0.79).noise(), Some(Noise::Wide));
        assert_eq!(line(0.85, Some(0.01), 9, 0.79).noise(), None);
        assert_eq!(line(0.85, Some(0.01), 3, 0.79).noise(), Some(Noise::Few));
        assert_eq!(Line::share("x", RepeatedMean::single(0.5)).noise(), None);
    }

    #[test]
    fn numbers_have_four_digits() {
        let shown: Vec<String> = [0.0, 12.4, 0.012_345, 98_765.4, 1.5e12].into_iter().map(significant).collect();
        assert_eq!(shown, ["0", "12.40", "0.01235", "98765", "1.500e12"]);
    }
}
