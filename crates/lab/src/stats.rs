//! The statistics of repeated runs.

/// The mean of some values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Half the width of the 95% confidence interval of the mean (Student's t); none for fewer than two values.
pub fn ci95(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = mean(values);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t_quantile_975(values.len() - 1) * (variance / n).sqrt())
}

/// Mean and half interval of `a − b` over pairs: the right comparison when both saw the same jobs.
pub fn paired_difference(a: &[f64], b: &[f64]) -> (f64, Option<f64>) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    (mean(&differences), ci95(&differences))
}

/// The 97.5% quantile of Student's t: a table, then the Cornish–Fisher expansion, which is exact to 0.001 from there on.
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

/// A share as a percentage. What is less than everything never reads as 100%.
pub fn percent(share: f64) -> String {
    let digits = if (0.99995..1.0).contains(&share) { 4 } else { 2 };
    match format!("{:.digits$}%", 100.0 * share) {
        text if text.starts_with("100") && share < 1.0 => ">99.9999%".into(),
        text => text,
    }
}

/// A difference of shares, or the width of an interval, in percentage points.
pub fn points(difference: f64) -> String {
    let text = format!("{:.2}", 100.0 * difference);
    if text == "-0.00" { "0.00".into() } else { text }
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
    fn what_is_not_everything_is_not_a_hundred_percent() {
        assert_eq!(percent(1.0), "100.00%");
        assert_eq!(percent(0.99998), "99.9980%");
        assert_eq!(percent(1.0 - 1e-9), ">99.9999%");
        assert_eq!(percent(0.5), "50.00%");
        assert_eq!((points(-0.000_01), points(-0.0123)), ("0.00".into(), "-1.23".into()));
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
