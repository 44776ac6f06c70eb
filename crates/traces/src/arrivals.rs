//! How the jobs of a task arrive: periodic or sporadic, by their releases alone.
//!
//! Each release gets the number of the period in which it lies, and a straight line through (number, release) gives
//! period and phase, by least squares. Releases that are missing leave a gap in the numbers, and nothing else. What is left beside the line is the residual.
//!
//! The *concentration* R is the length of the mean of the unit vectors with the phases of the releases as angles: 1 if they are
//! equal, near 0 if they are spread over the period. Releases at random have a concentration of R or more with a probability of about exp(−nR²)
//! (Rayleigh's test); three times that, since the period is fitted, is what the confidence falls short of 1.

/// Least concentration of a periodic task: releases uniform over 37% of the period have it.
const LEAST_CONCENTRATION: f64 = 0.8;
/// Least confidence.
const LEAST_CONFIDENCE: f64 = 0.95;
/// Largest share of releases that may lie beside the grid of a periodic task.
const MOST_BESIDE: f64 = 0.05;
/// Largest difference between a period that is stated and the mean gap, as a share.
const NEAR_STATED: f64 = 0.05;
/// Largest share of gaps that may be another number of periods than one.
const MOST_SKIPS: f64 = 0.25;
/// Fewest releases from which anything is said.
pub(crate) const FEWEST: usize = 4;
/// Difference of the rates of two clocks of one machine that is taken for none.
const CLOCK_RATE: f64 = 50e-6;

/// How jobs arrive. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arrivals {
    Periodic(Periodic),
    Sporadic(Sporadic),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Periodic {
    /// Roundest period within the error of the fit.
    pub period: u64,
    /// Period as fitted.
    pub fitted: f64,
    /// Standard deviation of the releases beside the line.
    pub residual: f64,
    /// Confidence that they are no releases at random, 0 to 1.
    pub confidence: f64,
    /// Date of the first arrival: the earliest release of any period, moved to the first one.
    pub phase: u64,
    /// Largest delay of a release after its arrival.
    pub jitter: u64,
    /// Releases that do not lie on the grid.
    pub beside: usize,
    /// Periods without a release.
    pub missing: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sporadic {
    pub least: u64,
    pub mean: f64,
    pub most: u64,
    /// Standard deviation of the gaps.
    pub deviation: f64,
    /// Confidence in a period, which did not suffice.
    pub confidence: f64,
}

impl Arrivals {
    /// Finds out, from releases in order; none if they are too few. A period that the trace states, as that of a timer,
    /// is believed if the mean gap is near it, however late the releases are. `ends` has the end of each job, or nothing: a
    /// task that is busy at a release skips it, as timers of most programs do, and that is no irregularity.
    pub fn of(releases: &[u64], ends: &[u64], known: Option<u64>) -> Option<Arrivals> {
        if releases.len() < FEWEST {
            return None;
        }
        let mut gaps: Vec<u64> = releases.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        let mean = (releases[releases.len() - 1] - releases[0]) as f64 / gaps.len() as f64;
        let squares: f64 = gaps.iter().map(|gap| (*gap as f64 - mean).powi(2)).sum();
        let deviation = (squares / gaps.len() as f64).sqrt();
        gaps.sort_unstable();
        // Where most releases are skipped, the median is several periods.
        let likely = [gaps[gaps.len() / 2], gaps[gaps.len() / 10]];
        let mut fits = likely.iter().filter_map(|gap| Fit::of(releases, *gap as f64)?.without_outliers(releases));
        let first = fits.next();
        let confidence = first.as_ref().map_or(0.0, |fit| fit.confidence);
        let mut fits = first.into_iter().chain(fits).map(|fit| fit.excusing(releases, ends));
        if let Some(fit) = fits.find(Fit::is_periodic) {
            return Some(Arrivals::Periodic(fit.periodic()));
        }
        if let Some(period) = known.filter(|period| *period > 0 && (mean / *period as f64 - 1.0).abs() <= NEAR_STATED)
            && let Some(fit) = Fit::of(releases, period as f64)
        {
            return Some(Arrivals::Periodic(Periodic { period, ..fit.periodic() }));
        }
        let (least, most) = (gaps[0].max(1), gaps[gaps.len() - 1].max(1));
        Some(Arrivals::Sporadic(Sporadic { least, mean: mean.max(least as f64), most, deviation, confidence }))
    }
}

/// A line through releases.
#[derive(Clone, Debug)]
struct Fit {
    /// First release, from which all others are counted, so that nothing is lost in floating-point numbers.
    origin: u64,
    period: f64,
    /// Value of the line at number 0, after the origin.
    phase: f64,
    residual: f64,
    /// Standard error of the period.
    error: f64,
    /// Smallest and largest residual.
    bounds: (f64, f64),
    concentration: f64,
    confidence: f64,
    total: usize,
    beside: usize,
    missing: u64,
    /// Gaps of more than one period, or of less.
    skips: usize,
}

impl Fit {
    /// Fits a line, beginning with an approximate period.
    fn of(releases: &[u64], period: f64) -> Option<Fit> {
        if period < 1.0 {
            return None;
        }
        let origin = releases[0];
        let mut numbers = numbers(releases, period);
        let mut line = line(releases, &numbers)?;
        for _ in 0..3 {
            let (slope, start) = line;
            if slope < 1.0 {
                return None;
            }
            for (number, release) in numbers.iter_mut().zip(releases) {
                *number = (((release - origin) as f64 - start) / slope).round();
            }
            line = self::line(releases, &numbers)?;
        }
        Fit::along(releases, &numbers, line, releases.len())
    }

    fn along(releases: &[u64], numbers: &[f64], (period, phase): (f64, f64), total: usize) -> Option<Fit> {
        if period < 1.0 {
            return None;
        }
        let (origin, count) = (releases[0], releases.len() as f64);
        let beside = |(number, release): (&f64, &u64)| (release - origin) as f64 - phase - number * period;
        let residuals: Vec<f64> = numbers.iter().zip(releases).map(beside).collect();
        let residual = (residuals.iter().map(|value| value * value).sum::<f64>() / count).sqrt();
        let mean = numbers.iter().sum::<f64>() / count;
        let spread = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
        let angle = |value: &f64| value / period * std::f64::consts::TAU;
        let (x, y) =
            (residuals.iter().map(|value| angle(value).cos()), residuals.iter().map(|value| angle(value).sin()));
        let concentration = x.sum::<f64>().hypot(y.sum::<f64>()) / count;
        let confidence = (1.0 - 3.0 * (-count * concentration * concentration).exp()).clamp(0.0, 1.0);
        let doubled = numbers.windows(2).filter(|pair| pair[1] <= pair[0]).count();
        let skips = numbers.windows(2).filter(|pair| pair[1] - pair[0] != 1.0).count();
        let span = numbers[numbers.len() - 1] - numbers[0] + 1.0;
        Some(Fit {
            origin,
            period,
            phase: phase + numbers[0] * period,
            residual,
            error: if spread > 0.0 { residual / spread.sqrt() } else { residual },
            bounds: residuals
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value))),
            concentration,
            confidence,
            total,
            beside: doubled,
            missing: (span - count + doubled as f64).max(0.0) as u64,
            skips,
        })
    }

    /// Returns the line without the few releases that lie beside its grid, if there are any.
    fn without_outliers(self, releases: &[u64]) -> Option<Fit> {
        let place = |release: &u64| {
            let place = ((release - self.origin) as f64 - self.phase) / self.period;
            (place.round(), (place - place.round()).abs())
        };
        // Of several in one period, the one that is nearest to the line.
        let mut kept: Vec<(u64, f64, f64)> = Vec::with_capacity(releases.len());
        for release in releases {
            let (number, distance) = place(release);
            match kept.last_mut().filter(|last| last.1 == number) {
                Some(last) if last.2 <= distance => {}
                Some(last) => *last = (*release, number, distance),
                None => kept.push((*release, number, distance)),
            }
        }
        let most = MOST_BESIDE * releases.len() as f64;
        let far = kept.iter().filter(|(.., distance)| *distance > 0.25).count();
        if far > 0 && far as f64 <= most {
            kept.retain(|(.., distance)| *distance <= 0.25);
        }
        let beside = releases.len() - kept.len();
        if beside == 0 || beside as f64 > most || kept.len() < FEWEST {
            return Some(self);
        }
        let on_grid: Vec<u64> = kept.iter().map(|(release, ..)| *release).collect();
        let first = kept[0].1;
        let numbers: Vec<f64> = kept.iter().map(|(_, number, _)| number - first).collect();
        let line = line(&on_grid, &numbers)?;
        let fit = Fit::along(&on_grid, &numbers, line, releases.len())?;
        Some(Fit { beside, ..fit })
    }

    /// Does not count as skips what a task that was busy has skipped: every release between, to its end.
    fn excusing(mut self, releases: &[u64], ends: &[u64]) -> Fit {
        let number = |release: u64| ((release.saturating_sub(self.origin)) as f64 - self.phase) / self.period;
        let was_busy = |(pair, end): (&[u64], &u64)| {
            let (before, after) = (number(pair[0]).round(), number(pair[1]).round());
            // The last release that was skipped; a job that ends just before it may still be late for it.
            after - before > 1.0 && number(*end) >= after - 1.0 - MOST_BESIDE
        };
        let excused = releases.windows(2).zip(ends).filter(|pair| was_busy(*pair)).count();
        self.skips = self.skips.saturating_sub(excused);
        self
    }

    fn is_periodic(&self) -> bool {
        self.concentration >= LEAST_CONCENTRATION
            && self.confidence >= LEAST_CONFIDENCE
            && self.beside as f64 <= MOST_BESIDE * self.total as f64
            && self.skips as f64 <= MOST_SKIPS * self.total as f64
    }

    fn periodic(&self) -> Periodic {
        let tolerance = (3.0 * self.error).max(CLOCK_RATE * self.period).min(0.0005 * self.period);
        let early = self.phase + self.bounds.0;
        // The sum of a date and a small number, without going through a floating-point date.
        let phase = match early < 0.0 {
            true => self.origin.saturating_sub((-early).round() as u64),
            false => self.origin.saturating_add(early.round() as u64),
        };
        Periodic {
            period: roundest(self.period, tolerance),
            fitted: self.period,
            residual: self.residual,
            confidence: self.confidence,
            phase,
            jitter: (self.bounds.1 - self.bounds.0).max(0.0).round() as u64,
            beside: self.beside,
            missing: self.missing,
        }
    }
}

/// Numbers the releases by an approximate period, each from the last one that was near the grid: neither an error of the
/// period nor a release between adds up.
fn numbers(releases: &[u64], period: f64) -> Vec<f64> {
    let (mut anchor, mut beside) = ((releases[0], 0.0), 0);
    let mut numbers = Vec::with_capacity(releases.len());
    for release in releases {
        let place = anchor.1 + (release - anchor.0) as f64 / period;
        if (place - place.round()).abs() <= 0.25 {
            anchor = (*release, place.round());
        } else {
            beside += 1;
        }
        numbers.push(place.round());
    }
    if 2 * beside <= releases.len() {
        return numbers;
    }
    // The first one was beside the grid: gap by gap.
    let mut number = 0.0;
    let gap = |pair: &[u64]| ((pair[1] - pair[0]) as f64 / period).round();
    let later = releases.windows(2).map(|pair| {
        number += gap(pair);
        number
    });
    std::iter::once(0.0).chain(later).collect()
}

/// Returns slope and value at number 0 of the line through the releases, by least squares.
fn line(releases: &[u64], numbers: &[f64]) -> Option<(f64, f64)> {
    let (origin, count) = (releases[0], releases.len() as f64);
    let x_mean = numbers.iter().sum::<f64>() / count;
    let y_mean = releases.iter().map(|release| (release - origin) as f64).sum::<f64>() / count;
    let (mut xx, mut xy) = (0.0, 0.0);
    for (number, release) in numbers.iter().zip(releases) {
        let x = number - x_mean;
        xx += x * x;
        xy += x * ((release - origin) as f64 - y_mean);
    }
    (xx > 0.0).then(|| (xy / xx, y_mean - xy / xx * x_mean))
}

/// Returns the number with the fewest digits that is at most `tolerance` away, at least 1.
fn roundest(value: f64, tolerance: f64) -> u64 {
    let mut step = 1e18;
    while step >= 1.0 {
        for part in [step, step / 2.0] {
            let near = (value / part).round() * part;
            if near >= 1.0 && part >= 1.0 && (near - value).abs() <= tolerance {
                return near as u64;
            }
        }
        step /= 10.0;
    }
    (value.round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator, so that the tests need no crate for it.
    fn noise(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    fn periodic(releases: &[u64]) -> Periodic {
        match Arrivals::of(releases, &[], None) {
            Some(Arrivals::Periodic(periodic)) => periodic,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_period_with_jitter_and_gaps_is_found() {
        let mut state = 1;
        for (period, jitter) in [(10_000_000u64, 2_000_000.0), (33_333_333, 50_000.0), (1_000_000, 300_000.0)] {
            let start = 1_234_567_890_123u64;
            let all =
                (0..500).filter(|k| k % 17 != 3).map(|k| start + k * period + (noise(&mut state) * jitter) as u64);
            let found = periodic(&all.collect::<Vec<_>>());
            assert!((found.period as f64 / period as f64 - 1.0).abs() < 1e-3, "{found:?}");
            assert!(found.confidence > 0.999 && found.beside == 0 && found.missing == 30, "{found:?}");
            assert!((found.jitter as f64 - jitter).abs() < 0.1 * jitter + 20_000.0, "{found:?}");
            assert!(found.phase.abs_diff(start) < (0.02 * jitter) as u64 + 20_000, "{found:?}");
        }
    }

    #[test]
    fn a_round_period_comes_out_round() {
        let exact: Vec<u64> = (0..200).map(|k| 5_000_000_777 + k * 10_000_099).collect();
        assert_eq!(periodic(&exact).period, 10_000_000);
        let third: Vec<u64> = (0..200).map(|k| 77 + k * 33_333_333).collect();
        assert!(periodic(&third).period.abs_diff(33_333_333) < 2_000);
    }

    #[test]
    fn a_few_releases_between_are_counted_and_ignored() {
        let mut all: Vec<u64> = (0..200).map(|k| k * 10_000_000).collect();
        all.extend([54_000_000, 333_000_000, 1_205_000_000]);
        all.sort_unstable();
        let found = periodic(&all);
        assert_eq!((found.period, found.beside, found.jitter), (10_000_000, 3, 0));
    }

    /// A task that is late skips the releases that pass meanwhile. One that is called at some ticks of a clock does not.
    #[test]
    fn releases_that_a_busy_task_skips_are_no_irregularity() {
        let (mut state, mut number) = (5, 0);
        let (mut releases, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let late = if noise(&mut state) < 0.7 { 1 + (4.0 * noise(&mut state)) as u64 } else { 0 };
            releases.push(7_000_000 + 10_000_000 * number + (2e4 * noise(&mut state)) as u64);
            ends.push(7_000_000 + 10_000_000 * (number + late) + 4_000_000);
            number += late + 1;
        }
        match Arrivals::of(&releases, &ends, None) {
            Some(Arrivals::Periodic(found)) => assert_eq!(found.period, 10_000_000, "{found:?}"),
            other => panic!("{other:?}"),
        }
        let soon: Vec<u64> = releases.iter().map(|release| release + 1_000_000).collect();
        for ends in [&soon[..], &[]] {
            assert!(matches!(Arrivals::of(&releases, ends, None), Some(Arrivals::Sporadic(_))));
        }
    }

    #[test]
    fn a_stated_period_is_believed_if_the_mean_gap_is_near() {
        let mut state = 3;
        let late: Vec<u64> = (0..100).map(|k| k * 20_000_000 + (noise(&mut state) * 18e6) as u64).collect();
        assert!(matches!(Arrivals::of(&late, &[], None), Some(Arrivals::Sporadic(_))));
        assert!(matches!(
            Arrivals::of(&late, &[], Some(20_000_000)),
            Some(Arrivals::Periodic(Periodic { period: 20_000_000, .. }))
        ));
        assert!(matches!(Arrivals::of(&late, &[], Some(30_000_000)), Some(Arrivals::Sporadic(_))));
    }

    #[test]
    fn releases_at_random_are_sporadic() {
        let mut state = 7;
        for _ in 0..20 {
            let mut time = 0.0;
            let all: Vec<u64> = (0..300)
                .map(|_| {
                    time += 1e6 - 9e6 * (1.0 - noise(&mut state)).ln();
                    time as u64
                })
                .collect();
            let Some(Arrivals::Sporadic(found)) = Arrivals::of(&all, &[], None) else { panic!("{all:?}") };
            assert!(found.least >= 1_000_000 && (found.mean / 10e6 - 1.0).abs() < 0.25, "{found:?}");
        }
        // Two releases in each period are no period.
        let two: Vec<u64> = (0..200).flat_map(|k| [k * 10_000_000, k * 10_000_000 + 3_000_000]).collect();
        assert!(matches!(Arrivals::of(&two, &[], None), Some(Arrivals::Sporadic(_))));
        assert_eq!(Arrivals::of(&[1, 2, 3], &[], None), None);
        assert!(Arrivals::of(&[5, 5, 5, 5, 5], &[], None).is_some());
    }
}
