//! One figure of an experiment: ours beside the paper's and those of others.

use serde::{Deserialize, Serialize};

use temponet_lab::stats;

/// A figure found by repeating something.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean, or the only value.
    pub mean: f64,
    /// The standard deviation over the repetitions.
    pub deviation: Option<f64>,
    /// Half the 95% confidence interval of the mean.
    pub ci95: Option<f64>,
    /// Repetitions; none where nothing is random, or where the figure is one of a whole (a fit, a test).
    pub count: Option<usize>,
}

impl Estimate {
    /// From repetitions.
    pub fn of(values: &[f64]) -> Estimate {
        let deviation = (values.len() > 1).then(|| stats::deviation(values));
        Estimate { mean: stats::mean(values), deviation, ci95: stats::ci95(values), count: Some(values.len()) }
    }

    /// A figure of which there is only one.
    pub fn single(value: f64) -> Estimate {
        Estimate { mean: value, deviation: None, ci95: None, count: None }
    }
}

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A fraction, shown as per cent.
    Share,
    /// A plain number.
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
    /// A value for people.
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

    /// The width of an interval for people.
    pub fn show_width(self, value: f64) -> String {
        match self {
            Unit::Share => stats::points(value),
            _ => significant(value),
        }
    }

    /// Differences up to this are none, unless the protocol says otherwise: one point, or a twentieth.
    fn tolerance(self, paper: f64) -> f64 {
        match self {
            Unit::Share => 0.01,
            _ => 0.05 * paper.abs(),
        }
    }
}

/// Four significant digits.
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

/// Which values of a figure are good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The higher, the better.
    Higher,
    /// The lower, the better.
    Lower,
    /// Neither: only whether it is the same counts.
    Neither,
}

/// The same figure of somebody else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The column: `edf`, `best classical`, `optimum` or a scheduler's name.
    pub column: String,
    /// Who it is, where the column does not say.
    pub who: Option<String>,
    /// The value.
    pub value: f64,
}

/// Why a figure says little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Too few repetitions.
    Few,
    /// The interval is wider than the difference to the paper's figure.
    Wide,
}

impl Noise {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Noise::Few => "noise: too few seeds",
            Noise::Wide => "interval wider than the difference",
        }
    }
}

/// Fewer repetitions than this are called noise.
const FEWEST: usize = 5;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its name, also in JSON and in the protocol.
    pub name: String,
    /// What it is measured in.
    pub unit: Unit,
    /// Which values are good.
    pub better: Better,
    /// Whether the verdict rests on it.
    pub is_headline: bool,
    /// Ours.
    pub ours: Estimate,
    /// The paper's, if it has one.
    pub paper: Option<f64>,
    /// How far apart they may be to count as the same.
    pub tolerance: Option<f64>,
    /// The same of others.
    pub references: Vec<Reference>,
}

/// Ours beside the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The same within the tolerance, or better by less than its interval.
    Same,
    /// Better by more than tolerance and interval.
    Better,
    /// Worse, or different where neither is better, by more than the tolerance but less than its interval: it cannot be told.
    Undecided,
    /// The same, but by more than both.
    Worse,
}

impl Line {
    /// A figure of ours.
    pub fn new(name: impl Into<String>, unit: Unit, better: Better, ours: Estimate) -> Line {
        Line {
            name: name.into(),
            unit,
            better,
            is_headline: false,
            ours,
            paper: None,
            tolerance: None,
            references: Vec::new(),
        }
    }

    /// The share of jobs in time, or another share of which more is better.
    pub fn share(name: impl Into<String>, ours: Estimate) -> Line {
        Line::new(name, Unit::Share, Better::Higher, ours)
    }

    /// The verdict rests on it.
    pub fn headline(self) -> Line {
        Line { is_headline: true, ..self }
    }

    /// Adds the same figure of somebody else.
    pub fn beside(mut self, column: &str, who: Option<&str>, value: Option<f64>) -> Line {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.references.push(Reference { column: column.into(), who: who.map(String::from), value });
        }
        self
    }

    /// Ours beside the paper's, if it has a figure.
    pub fn standing(&self) -> Option<Standing> {
        let paper = self.paper?;
        let tolerance = self.tolerance.unwrap_or_else(|| self.unit.tolerance(paper));
        let allowed = tolerance.max(self.ours.ci95.unwrap_or(0.0));
        let difference = self.ours.mean - paper;
        let gain = match self.better {
            Better::Higher => difference,
            Better::Lower => -difference,
            Better::Neither => -difference.abs(),
        };
        Some(match gain {
            less if less < -allowed => Standing::Worse,
            less if less < -tolerance => Standing::Undecided,
            more if more > allowed => Standing::Better,
            _ => Standing::Same,
        })
    }

    /// Why it says little, if it does.
    pub fn noise(&self) -> Option<Noise> {
        let count = self.ours.count?;
        if count < FEWEST {
            return Some(Noise::Few);
        }
        let difference = (self.ours.mean - self.paper?).abs();
        (self.ours.ci95? > difference).then_some(Noise::Wide)
    }

    /// Ours with its interval, for people.
    pub fn shown(&self) -> String {
        let interval = self.ours.ci95.map(|half| format!(" ± {}", self.unit.show_width(half))).unwrap_or_default();
        self.unit.show(self.ours.mean) + &interval
    }
}
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn line(mean: f64, ci95: Option<f64>, count: usize, paper: f64) -> Line {
        let ours = Estimate { mean, deviation: None, ci95, count: Some(count) };
        Line { paper: Some(paper), ..Line::share("x", ours) }
    }

    #[test]
    fn what_is_within_tolerance_or_better_within_the_interval_is_the_same() {
        assert_eq!(line(0.795, None, 9, 0.79).standing(), Some(Standing::Same), "within a point");
        assert_eq!(line(0.785, Some(0.2), 9, 0.79).standing(), Some(Standing::Same), "within a point");
        assert_eq!(line(0.85, Some(0.07), 9, 0.79).standing(), Some(Standing::Same), "within the interval");
        assert_eq!(line(0.85, Some(0.01), 9, 0.79).standing(), Some(Standing::Better));
        assert_eq!(line(0.70, Some(0.01), 9, 0.79).standing(), Some(Standing::Worse));
        let lower = Line { better: Better::Lower, ..line(0.85, None, 9, 0.79) };
        assert_eq!(lower.standing(), Some(Standing::Worse));
        let neither = Line { better: Better::Neither, ..line(0.85, None, 9, 0.79) };
        assert_eq!(neither.standing(), Some(Standing::Worse), "different is all there is");
        assert_eq!(Line { paper: None, ..lower }.standing(), None);
    }

    #[test]
    fn what_is_worse_by_less_than_its_interval_cannot_be_told() {
        let wide = line(0.70, Some(0.35), 10, 0.982);
        assert_eq!(wide.standing(), Some(Standing::Undecided));
        let lower = Line { better: Better::Lower, ..line(0.85, Some(0.07), 9, 0.79) };
        assert_eq!(lower.standing(), Some(Standing::Undecided));
        for mean in [0.72, 0.86] {
            let neither = Line { better: Better::Neither, ..line(mean, Some(0.08), 9, 0.79) };
            assert_eq!(neither.standing(), Some(Standing::Undecided), "{mean}");
        }
    }

    #[test]
    fn noise_is_marked() {
        assert_eq!(line(0.85, Some(0.07), 9, 0.79).noise(), Some(Noise::Wide));
        assert_eq!(line(0.85, Some(0.01), 9, 0.79).noise(), None);
        assert_eq!(line(0.85, Some(0.01), 3, 0.79).noise(), Some(Noise::Few));
        assert_eq!(Line::share("x", Estimate::single(0.5)).noise(), None);
    }

    #[test]
    fn numbers_have_four_digits() {
        let shown: Vec<String> = [0.0, 12.4, 0.012_345, 98_765.4, 1.5e12].into_iter().map(significant).collect();
        assert_eq!(shown, ["0", "12.40", "0.01235", "98765", "1.500e12"]);
    }
}
