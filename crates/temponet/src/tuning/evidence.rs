//! Evidence: how far apart two candidates must be before the difference counts.
//!
//! Differences are means over a few paired blocks, so they are judged by Student's t, not by the normal distribution: with four blocks, a difference of three
//! standard errors is common. The more differences are looked at, the less likely by chance each of them must be.

/// Returns the number of standard errors that the mean of `samples` values without a trend exceeds with probability `chance`, in one direction. It is infinite
/// for fewer than two values, which have no standard error.
pub(super) fn margin(samples: usize, chance: f64) -> f64 {
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

/// Returns the probability that Student's t with this many degrees of freedom exceeds `t` (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn tail(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The series begins with cos⁰ for even and with cos¹ for odd degrees; each term has two more powers than the one before.
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
        ];
        for (degrees, chance, expected) in published {
            assert!((margin(degrees + 1, chance) - expected).abs() < 1e-3, "{degrees} {chance}");
        }
        assert_eq!(margin(1, 0.05), f64::INFINITY);
        assert!(margin(2, 1e-6).is_finite());
    }
}
