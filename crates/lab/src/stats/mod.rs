//! Statistics of repeated runs: means, confidence intervals, tests, fits, and how shares are written.

pub mod streaming;

use temponet_sim::statistics::two_sided_p;

pub use temponet_sim::statistics::{ci95, deviation, mean, paired_difference};

/// Result of a statistical test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestResult {
    /// Test statistic: Student's t, or the Kolmogorov–Smirnov distance D.
    pub statistic: f64,
    /// Probability of a statistic at least as extreme if there is no difference.
    pub p: f64,
}

/// Student's paired two-sided t-test of `a − b`; `None` for fewer than two pairs, or if all differences are equal.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> Option<TestResult> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let n = differences.len() as f64;
    let error = deviation(&differences) / n.sqrt();
    let t = mean(&differences) / error;
    if differences.len() < 2 || error == 0.0 || t.is_nan() {
        return None;
    }
    Some(TestResult { statistic: t, p: two_sided_p(t, differences.len() - 1) })
}

/// The two-sample Kolmogorov–Smirnov test: the greatest distance between the two distributions, with the asymptotic
/// p-value in Stephens's correction; `None` if a sample is empty.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Option<TestResult> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let share = |values: &[f64], at: f64| values.partition_point(|value| *value <= at) as f64 / values.len() as f64;
    let distances = a.iter().chain(&b).map(|at| (share(&a, *at) - share(&b, *at)).abs());
    let distance = distances.fold(0.0, f64::max);
    let size = (a.len() as f64 * b.len() as f64 / (a.len() + b.len()) as f64).sqrt();
    let lambda = (size + 0.12 + 0.11 / size) * distance;
    // For small lambda the series converges slowly, but the result is one.
    let term = |k: i32| 2.0 * (-1.0f64).powi(k - 1) * (-2.0 * (f64::from(k) * lambda).powi(2)).exp();
    let p = if lambda < 0.2 { 1.0 } else { (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0) };
    Some(TestResult { statistic: distance, p })
}

/// A power law `y = factor · x^exponent`, fitted to the logarithms by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    /// Exponent of the law.
    pub exponent: f64,
    /// Value at `x = 1`.
    pub factor: f64,
    /// Share of the variance of the logarithms that the law explains (R²), 0 to 1.
    pub r_squared: f64,
}

/// Fits a power law to points `(x, y)` with positive coordinates.
pub fn power_law(points: &[(f64, f64)]) -> PowerLaw {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().map(|(x, y)| (x.ln(), y.ln())).unzip();
    let (x, y) = (mean(&xs), mean(&ys));
    let sum = |of: &dyn Fn(f64, f64) -> f64| xs.iter().zip(&ys).map(|(a, b)| of(a - x, b - y)).sum::<f64>();
    let (products, squares, total) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    let exponent = products / squares;
    PowerLaw { exponent, factor: (y - exponent * x).exp(), r_squared: products * products / (squares * total) }
}

/// Returns the interpolated quantile: the value that a `share` of the values does not exceed; `None` if there are no
/// values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// Returns the quantile as one of the values, without interpolation, and sorts them; `None` if there are no values.
pub fn nearest_quantile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get((values.len().saturating_sub(1) as f64 * share).round() as usize).copied()
}

/// Formats a share as a percentage. Only a share of at least 1 reads as 100%.
pub fn percent(share: f64) -> String {
    let digits = if (0.99995..1.0).contains(&share) { 4 } else { 2 };
    match format!("{:.digits$}%", 100.0 * share) {
        text if text.starts_with("100") && share < 1.0 => ">99.9999%".into(),
        text => text,
    }
}

/// Formats a difference of shares, or the width of an interval, in percentage points.
pub fn points(difference: f64) -> String {
    let text = format!("{:.2}", 100.0 * difference);
    if text == "-0.00" { "0.00".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t_test_gives_the_published_values() {
        // Student's sleep data (1908): t = -4.0621, 9 degrees of freedom, p = 0.002833.
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let test = paired_t_test(&one, &two).unwrap();
        assert!((test.statistic + 4.0621).abs() < 1e-4 && (test.p - 0.002_833).abs() < 1e-6, "{test:?}");
        assert_eq!(paired_t_test(&[1.0, 2.0], &[0.0, 1.0]), None, "no spread");
        assert_eq!(paired_t_test(&[1.0], &[0.0]), None);
    }

    #[test]
    fn the_kolmogorov_smirnov_test_gives_known_values() {
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        let shifted: Vec<f64> = even.iter().map(|value| value + 20.0).collect();
        let test = kolmogorov_smirnov(&even, &shifted).unwrap();
        // lambda = (sqrt(50) + 0.12 + 0.11 / sqrt(50)) * 0.2 = 1.4413; 2 exp(-2 lambda^2) = 0.0314.
        assert!((test.statistic - 0.2).abs() < 1e-12 && (test.p - 0.0314).abs() < 1e-4, "{test:?}");
        let same = kolmogorov_smirnov(&even, &even).unwrap();
        assert_eq!((same.statistic, same.p), (0.0, 1.0));
        assert!(kolmogorov_smirnov(&[], &even).is_none());
        // The published critical value of large samples at 5% is 1.358 / sqrt(n / 2), which is 0.01920 for samples of
        // 10 000.
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let at_critical = kolmogorov_smirnov(&many, &many.iter().map(|value| value + 192.0).collect::<Vec<_>>());
        assert!((at_critical.unwrap().p - 0.05).abs() < 1e-3, "{at_critical:?}");
    }

    #[test]
    fn a_power_law_is_found_again() {
        let points: Vec<(f64, f64)> = (1..50).map(|x| (f64::from(x), 3.0 * f64::from(x).powf(1.1))).collect();
        let law = power_law(&points);
        assert!((law.exponent - 1.1).abs() < 1e-9 && (law.factor - 3.0).abs() < 1e-9, "{law:?}");
        assert!((law.r_squared - 1.0).abs() < 1e-12);
        let noisy: Vec<(f64, f64)> =
            points.iter().map(|(x, y)| (*x, if (*x as u32).is_multiple_of(2) { 2.0 * y } else { *y })).collect();
        let law = power_law(&noisy);
        assert!(law.r_squared < 0.95 && law.r_squared > 0.5, "{law:?}");
    }

    #[test]
    fn quantiles_are_interpolated() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!((quantile(&values, 0.5), quantile(&values, 1.0), quantile(&[], 0.5)), (Some(2.5), Some(4.0), None));
        assert!((deviation(&values) - 1.290_994).abs() < 1e-6);
        let mut values = values;
        assert_eq!([0.0, 0.5, 0.99].map(|share| nearest_quantile(&mut values, share)), [1.0, 3.0, 4.0].map(Some));
        assert_eq!(nearest_quantile(&mut [], 0.5), None);
    }

    #[test]
    fn what_is_not_everything_is_not_a_hundred_percent() {
        assert_eq!(percent(1.0), "100.00%");
        assert_eq!(percent(0.99998), "99.9980%");
        assert_eq!(percent(1.0 - 1e-9), ">99.9999%");
        assert_eq!(percent(0.5), "50.00%");
        assert_eq!((points(-0.000_01), points(-0.0123)), ("0.00".into(), "-1.23".into()));
    }
}
