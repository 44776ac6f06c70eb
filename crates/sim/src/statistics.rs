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
    Some(t_quantile_975(values.len().saturating_sub(1)) * standard_error(values)?)
}

/// Returns the mean of `a − b` over pairs, and half its 95% confidence interval. This is the right comparison when both
/// saw the same jobs.
pub fn paired_difference(a: &[f64], b: &[f64]) -> (f64, Option<f64>) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    (mean(&differences), ci95(&differences))
}

/// Returns the 97.5% quantile of Student's t. The first ten are from a table; from there on, the Cornish–Fisher
/// expansion is exact to 0.001.
fn t_quantile_975(degrees_of_freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if let Some(quantile) = TABLE.get(degrees_of_freedom.saturating_sub(1)) {
        return *quantile;
    }
    let (z, nu) = (1.959_964_f64, degrees_of_freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / nu + second / nu.powi(2) + third / nu.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_published_ones() {
        for (degrees, published) in [(1, 12.706), (10, 2.228), (11, 2.201), (20, 2.086), (30, 2.042), (120, 1.980)] {
            assert!((t_quantile_975(degrees) - published).abs() < 1e-3, "{degrees}");
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
