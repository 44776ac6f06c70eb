//! Statistics of samples: means, standard errors and confidence intervals, also of paired differences.

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

/// Returns the number of standard errors that the mean of `samples` values without a trend exceeds with probability
/// `chance`, in one direction (Student's t). It is infinite for fewer than two values, which have no standard error.
pub fn margin(samples: usize, chance: f64) -> f64 {
    let degrees = samples.saturating_sub(1);
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
    fn interval_of_a_known_sample() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        // s = 1.5811, s/√5 = 0.7071, t = 2.776.
        assert!((ci95(&values).unwrap() - 1.963).abs() < 1e-3);
        assert_eq!(ci95(&[1.0]), None);
        let (difference, interval) = paired_difference(&[2.0, 3.0, 4.0], &[1.0, 2.0, 3.0]);
        assert_eq!((difference, interval), (1.0, Some(0.0)));
    }
}
