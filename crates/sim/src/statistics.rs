//! Statistics of samples: means, standard errors and confidence intervals, also of paired differences.
//!
//! Runs are independent; the jobs of a run are not. So intervals come from the spread over runs (Student's t), as long as
//! there is something to spread: of a share with fewer than [`FEW`] exceptions, runs differ by single jobs or not at
//! all, and their spread says too little. Then jobs are counted ([`share_interval`], [`paired_interval`]).

/// Returns the mean; zero if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the standard deviation of a sample; zero for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// Returns the standard error of the mean; `None` for fewer than two values.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| deviation(values) / (values.len() as f64).sqrt())
}

/// Returns half the width of the 95% confidence interval of the mean (Student's t); `None` for fewer than two values.
pub fn ci95(values: &[f64]) -> Option<f64> {
    Some(margin(values.len(), 0.025) * standard_error(values)?)
}

/// Returns the mean of `a − b` over pairs, and half its 95% confidence interval. This is the right comparison when both
/// saw the same jobs.
pub fn paired_difference(a: &[f64], b: &[f64]) -> (f64, Option<f64>) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    (mean(&differences), ci95(&differences))
}

/// Number of exceptions (jobs missed, or jobs in which two schedulers differ) below which they are counted.
pub const FEW: f64 = 30.0;
/// Chance of a value beyond each end of a 95% interval.
const EACH_SIDE: f64 = 0.025;
/// Number of standard deviations of a normal distribution that [`EACH_SIDE`] lies beyond.
const NORMAL: f64 = 1.959_964;

/// Ends of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the value lies within the ends, or on one of them.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Returns the 95% confidence interval of a share from its values in independent runs; `None` for fewer than two runs.
/// `units` is the number of jobs in all runs that it is a share of, or `None` if it is no share of a number.
///
/// With few exceptions (jobs missed, or jobs met), the interval is that of a count ([`count_interval`]) in an effective
/// sample, as Korn and Graubard (1998) define it. Its size is divided by the design effect: how much more runs differ
/// than if each exception came by itself, at least 1. It is also divided by the square of Student's t in normal
/// quantiles, because the runs that tell the effect are few. Without any exception it is the rule of three: the share
/// of exceptions is at most about 3 / `units`. Otherwise it is Student's t, corrected for skewed runs.
pub fn share_interval(shares: &[f64], units: Option<f64>) -> Option<Interval> {
    let (mean, error) = (mean(shares), standard_error(shares)?);
    let Interval { low, high } = skewed_interval(shares, error, EACH_SIDE);
    let by_runs = Interval { low: low.max(0.0), high: high.min(1.0) };
    let Some(units) = units.filter(|units| *units > 0.0) else { return Some(by_runs) };
    let misses = (1.0 - mean) * units;
    if misses.min(units - misses) >= FEW {
        return Some(by_runs);
    }
    let alone = mean * (1.0 - mean) / units;
    let of_few_runs = (margin(shares.len(), EACH_SIDE) / NORMAL).powi(2);
    let effect = if misses > 0.0 { (error * error / alone).max(1.0) * of_few_runs } else { 1.0 };
    Some(count_interval((units - misses) / effect, units / effect))
}

/// Returns the confidence interval of the mean of values that may be skewed, where `error` is its standard error and
/// `chance` that of a mean beyond each end: Student's t of the studentized mean T after a cubic transformation that removes its skewness (Hall, 1992),
/// T + γT²/3 + γ²T³/27 + γ/6 for a mean with skewness γ. The inverse has a closed form.
fn skewed_interval(values: &[f64], error: f64, chance: f64) -> Interval {
    let (mean, t) = (mean(values), margin(values.len(), chance));
    let of_mean = skewness(values) / (values.len() as f64).sqrt();
    let inverse = |transformed: f64| match of_mean.abs() > f64::EPSILON.sqrt() {
        true => 3.0 / of_mean * ((1.0 + of_mean * (transformed - of_mean / 6.0)).cbrt() - 1.0),
        false => transformed,
    };
    Interval { low: mean - error * inverse(t), high: mean - error * inverse(-t) }
}

/// Returns the skewness of a sample: the third central moment over the cube of the standard deviation. Of the usual
/// estimators it varies least in small samples (Joanes and Gill, 1998).
fn skewness(values: &[f64]) -> f64 {
    let (mean, deviation) = (mean(values), deviation(values));
    let cubes: f64 = values.iter().map(|value| ((value - mean) / deviation).powi(3)).sum();
    if deviation > 0.0 { cubes / values.len() as f64 } else { 0.0 }
}

/// Returns the mean of `a − b` over pairs of runs, and its confidence interval: 95% over `tests` differences that are
/// looked at together; `None` for fewer than two runs. `units` is the number of jobs in all runs.
///
/// It is Student's t, and reaches as far as t corrected for skewed differences where that is farther: of a backlog, most
/// differences are small and a few are large. The correction alone would claim too many differences, since few runs
/// tell the skewness. If runs differ by few jobs, the spread over the runs may be zero by chance. The interval then
/// reaches at least as far as that of as many jobs, each of which differs in either direction (McNemar's test with
/// Edwards's correction).
pub fn paired_interval(a: &[f64], b: &[f64], units: Option<f64>, tests: usize) -> (f64, Option<Interval>) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (mean, chance) = (mean(&differences), EACH_SIDE / tests.max(1) as f64);
    let Some(error) = standard_error(&differences) else { return (mean, None) };
    let counted = units.filter(|units| *units > 0.0).map_or(0.0, |units| {
        let each = units / differences.len().max(1) as f64;
        let differing: f64 = differences.iter().map(|difference| difference.abs() * each).sum();
        match differing {
            // Nothing differs: the rule of three.
            none if none <= 0.0 => rule_of_three(units as u64),
            few if few < FEW => (margin(usize::MAX, chance) * few.sqrt() + 1.0) / units,
            _ => 0.0,
        }
    });
    let even = counted.max(margin(differences.len(), chance) * error);
    let Interval { low, high } = skewed_interval(&differences, error, chance);
    (mean, Some(Interval { low: low.min(mean - even), high: high.max(mean + even) }))
}

/// Returns the 95% confidence interval of a share of which `part` of `whole` were seen, each by itself (binomial,
/// mid-P: Lancaster, 1961). Without any it is the rule of three.
pub fn count_interval(part: f64, whole: f64) -> Interval {
    Interval { low: 1.0 - largest_share(whole - part, whole), high: largest_share(part, whole) }
}

/// Returns the largest share that is still plausible if `count` of `all` were seen: with a larger one, at most `count`
/// would come with a probability below 2.5%, where the probability of exactly `count` counts half.
fn largest_share(count: f64, all: f64) -> f64 {
    let rest = all - count;
    if rest <= 0.0 {
        return 1.0;
    }
    let at_most = |share: f64| {
        // P(X ≤ count) and P(X < count) of a binomial distribution, also for counts that are not whole.
        let below = if count > 0.0 { incomplete_beta(1.0 - share, rest + 1.0, count) } else { 0.0 };
        (incomplete_beta(1.0 - share, rest, count + 1.0) + below) / 2.0
    };
    let (mut below, mut above) = (0.0, 1.0);
    for _ in 0..BISECTIONS {
        let middle = (below + above) / 2.0;
        if at_most(middle) > EACH_SIDE { below = middle } else { above = middle }
    }
    above
}

/// Returns the regularized incomplete beta function I_x(a, b), by its continued fraction (Numerical Recipes, 6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let away_from_zero = |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..MOST_TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            fraction *= d * c;
        }
        if (fraction - before).abs() <= 1e-14 * fraction.abs() {
            break;
        }
    }
    front * fraction
}

/// Greatest number of terms of the continued fraction. It takes about the square root of the larger parameter.
const MOST_TERMS: u32 = 100_000;

/// Returns the logarithm of the gamma function of a positive number (Lanczos's approximation with g = 7).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = COEFFICIENTS.iter().zip(1..).map(|(coefficient, place)| coefficient / (x + f64::from(place)));
    let sum = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    let base = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

/// Returns the largest share of exceptions that is plausible at 95% if none was seen among `all`: the rule of three,
/// about 3 / `all`.
pub fn rule_of_three(all: u64) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / all.max(1) as f64)
}

/// Returns the number of standard errors that the mean of `samples` values without a trend exceeds with probability
/// `chance`, in one direction (Student's t). It is infinite for fewer than two values, which have no standard error.
pub fn margin(samples: usize, chance: f64) -> f64 {
    // With this many degrees of freedom, the distribution is normal to three digits.
    let degrees = samples.saturating_sub(1).min(MOST_DEGREES);
    if degrees == 0 {
        return f64::INFINITY;
    }
    let (mut below, mut above) = (0.0, 1.0);
    while tail(above, degrees) > chance && above < MOST {
        above *= 2.0;
    }
    for _ in 0..BISECTIONS {
        let middle = (below + above) / 2.0;
        if tail(middle, degrees) > chance { below = middle } else { above = middle }
    }
    above
}

/// Largest margin that is told apart from infinity, and number of bisections, which is enough for six digits of it.
const MOST: f64 = 1e9;
const BISECTIONS: u32 = 60;
const MOST_DEGREES: usize = 2_000;

/// Returns the two-sided p-value of Student's t: the probability of a statistic at least as far from zero if there is
/// no difference. Below about 1e-15 it is zero.
pub fn two_sided_p(t: f64, degrees: usize) -> f64 {
    (2.0 * tail(t.abs(), degrees)).clamp(0.0, 1.0)
}

/// Returns the probability that Student's t with this many degrees of freedom exceeds `t` (Abramowitz and Stegun,
/// 26.7.3 and 26.7.4).
fn tail(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The series begins with cos⁰ for even and with cos¹ for odd degrees; each term has two more powers than the one
    // before.
    let is_odd = degrees % 2 == 1;
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    let first = if is_odd { 1 } else { 0 };
    for power in (first..degrees.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
    }
    let within = match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sine * sum),
        false => sine * sum,
    };
    (1.0 - within) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_the_published_quantiles() {
        let published = [
            (1, 0.025, 12.706),
            (2, 0.025, 4.303),
            (3, 0.01, 4.541),
            (5, 0.01, 3.365),
            (8, 0.0005, 5.041),
            (15, 0.001, 3.733),
            (40, 0.05, 1.684),
            (120, 0.025, 1.980),
        ];
        for (degrees, chance, expected) in published {
            assert!((margin(degrees + 1, chance) - expected).abs() < 1e-3, "{degrees} {chance}");
        }
        assert_eq!(margin(1, 0.05), f64::INFINITY);
        assert!(margin(2, 1e-6).is_finite());
    }

    #[test]
    fn the_t_distribution_has_its_quantiles() {
        // A t at the 97.5% quantile has a two-sided p-value of 5%.
        for (degrees, t) in [(1, 12.706_2), (4, 2.776_445), (30, 2.042_272), (1000, 1.962_339)] {
            let p = two_sided_p(t, degrees);
            assert!((p - 0.05).abs() < 1e-6 && two_sided_p(-t, degrees) == p, "{degrees}: {p}");
        }
    }

    #[test]
    fn few_exceptions_are_counted_and_none_is_the_rule_of_three() {
        let none = share_interval(&[1.0; 10], Some(3_000.0)).unwrap();
        assert!((1.0 - none.low - rule_of_three(3_000)).abs() < 1e-9 && none.high == 1.0, "{none:?}");
        assert!((rule_of_three(3_000) - 0.001).abs() < 1e-5);
        // Nothing spreads over ten runs: 4 in 100 count like 3 in 75, since t is 2.262157 with nine degrees of freedom.
        let four = share_interval(&[0.96; 10], Some(100.0)).unwrap();
        let size = 100.0 * (1.959_964_f64 / 2.262_157).powi(2);
        let expected = count_interval(0.96 * size, size);
        assert!((four.low - expected.low).abs() < 1e-6 && (four.high - expected.high).abs() < 1e-6, "{four:?}");
        assert!((1.0 - four.high - 0.0103).abs() < 1e-4 && (1.0 - four.low - 0.1050).abs() < 1e-4, "{four:?}");
        // All four in one run of ten are one event rather than four.
        let mut at_once = [1.0; 10];
        at_once[3] = 0.6;
        let at_once = share_interval(&at_once, Some(100.0)).unwrap();
        assert!(at_once.low < four.low && at_once.high > four.high, "{at_once:?}");
        // Many exceptions, or a share of no number, leave it to the runs.
        let shares = [0.5, 0.6, 0.7];
        let (mean, half) = (0.6, ci95(&shares).unwrap());
        for units in [Some(1_000.0), None] {
            let interval = share_interval(&shares, units).unwrap();
            assert!((interval.low - mean + half).abs() < 1e-12 && (interval.high - mean - half).abs() < 1e-12);
        }
        assert_eq!(share_interval(&[0.5], Some(10.0)), None);
        // Intervals of wide spreads end where shares do.
        assert_eq!(share_interval(&[0.0, 1.0], None), Some(Interval { low: 0.0, high: 1.0 }));
    }

    #[test]
    fn the_interval_of_a_skewed_sample_reaches_farther_into_its_tail() {
        let values = [0.01, 0.02, 0.02, 0.03, 0.03, 0.04, 0.05, 0.06, 0.12, 0.25];
        let (mean, error) = (mean(&values), standard_error(&values).unwrap());
        let Interval { low, high } = share_interval(&values, None).unwrap();
        assert!(high - mean > 2.0 * (mean - low), "{low} {high}");
        // Both ends are where the transformed studentized mean is the quantile of Student's t.
        let gamma = skewness(&values) / 10.0_f64.sqrt();
        assert!((skewness(&values) - 1.645_3).abs() < 1e-4, "{}", skewness(&values));
        for (end, t) in [(low, 2.262_157), (high, -2.262_157)] {
            let of_end = (mean - end) / error;
            let transformed =
                of_end + gamma * of_end.powi(2) / 3.0 + gamma.powi(2) * of_end.powi(3) / 27.0 + gamma / 6.0;
            assert!((transformed - t).abs() < 1e-5, "{end}: {transformed}");
        }
        // The other way round for the shares of the rest.
        let rest = values.map(|value| 1.0 - value);
        let mirrored = share_interval(&rest, None).unwrap();
        assert!((mirrored.low - (1.0 - high)).abs() < 1e-12 && (mirrored.high - (1.0 - low)).abs() < 1e-12);
    }

    #[test]
    fn counts_have_their_mid_p_limits() {
        // From sums of binomial probabilities.
        let Interval { low, high } = count_interval(8.0, 10.0);
        assert!((low - 0.480_490).abs() < 1e-6 && (high - 0.965_002).abs() < 1e-6, "{low} {high}");
        assert_eq!((count_interval(0.0, 10.0).low, count_interval(10.0, 10.0).high), (0.0, 1.0));
        assert_eq!(count_interval(0.0, 0.0), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn jobs_in_which_all_runs_differ_alike_are_counted() {
        let (two, one) = ([0.99, 0.99], [1.0, 1.0]);
        let by_runs = paired_difference(&two, &one);
        assert!(by_runs.1.is_some_and(|half| half < 1e-9));
        let is_clear = |(_, interval): (f64, Option<Interval>)| !interval.unwrap().contains(0.0);
        assert!(!is_clear(paired_interval(&two, &one, Some(200.0), 1)), "two jobs of two hundred tell nothing");
        // The sign test needs six jobs in one direction.
        for (jobs, expected) in [(5, false), (6, true)] {
            let a: Vec<f64> = (0..10).map(|run| if run < jobs { 0.99 } else { 1.0 }).collect();
            assert_eq!(is_clear(paired_interval(&a, &[1.0; 10], Some(1_000.0), 1)), expected, "{jobs}");
        }
        let of = |tests| paired_interval(&[0.9, 0.8, 0.7], &[0.5, 0.6, 0.4], None, tests).1.unwrap();
        assert!(of(3).low < of(1).low && of(3).high > of(1).high, "more differences need more evidence each");
        // One large difference among small ones: the mean may well be larger.
        let skewed = paired_interval(&[0.01, 0.02, 0.01, 0.02, 0.2], &[0.0; 5], None, 1);
        let Interval { low, high } = skewed.1.unwrap();
        assert!(high - skewed.0 > 1.5 * (skewed.0 - low), "{low} {high}");
    }

    #[test]
    fn interval_of_a_known_sample() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        // s = 1.5811, s/√5 = 0.7071, t = 2.776.
        assert!((ci95(&values).unwrap() - 1.963).abs() < 1e-3);
        assert_eq!(ci95(&[1.0]), None);
        let (difference, interval) = paired_difference(&[2.0, 3.0, 4.0], &[1.0, 2.0, 3.0]);
        assert_eq!((difference, interval), (1.0, Some(0.0)));
    }
}
