//! Sampling of true execution times from the model of each task.
//!
//! Weibull and Pareto times are drawn by inverting the truncated distribution, not by redrawing until a value is within
//! bounds: the bounds may contain almost no probability mass, and redrawing would then never end. Normal times are
//! redrawn a limited number of times, then drawn uniformly.

use rand::{Rng, RngExt};
use rand_distr::{Exp1, StandardNormal};
use temponet_task::{Estimate, ExecutionModel, LogNormal, Task, Time};

/// Execution-time model of a task with precomputed constants.
#[derive(Clone, Debug)]
pub(crate) enum Sampler {
    Fixed(Time),
    Uniform {
        least: Time,
        most: Time,
    },
    Normal {
        mean: f64,
        deviation: f64,
        least: f64,
        most: f64,
    },
    /// `least + scale · (−ln(1 − u))^(1/shape)` with `u` uniform from 0 to `mass`, the share of probability within the
    /// bounds.
    Weibull {
        least: f64,
        scale: f64,
        inverse_shape: f64,
        mass: f64,
        most: f64,
    },
    Pareto {
        least: f64,
        inverse_shape: f64,
        mass: f64,
        most: f64,
    },
    Lognormal(LogNormal),
    Bimodal {
        levels: [LogNormal; 2],
        probability: f64,
    },
    Empirical(std::sync::Arc<[Time]>),
    Overrun {
        probability: f64,
        below: Box<Sampler>,
        above: Box<Sampler>,
    },
}

/// Draws of a normal value before falling back to a uniform one. If none of them is within the bounds, the bounds
/// contain almost no probability mass, and the distribution within them is nearly uniform.
pub(crate) const MOST_REDRAWS: usize = 64;

impl Sampler {
    /// Creates the sampler for a task.
    pub fn new(task: &Task) -> Sampler {
        Self::of_model(&task.execution, task)
    }

    fn of_model(model: &ExecutionModel, task: &Task) -> Sampler {
        let (least, most) = (task.bcet.0 as f64, task.wcet.0 as f64);
        match model {
            _ if task.bcet == task.wcet && !matches!(model, ExecutionModel::Overrun { .. }) => {
                Sampler::Fixed(task.wcet)
            }
            ExecutionModel::Uniform => Sampler::Uniform { least: task.bcet, most: task.wcet },
            ExecutionModel::Normal { deviation } => {
                let mean = task.acet.map_or((least + most) / 2.0, |acet| acet.0 as f64);
                Sampler::Normal { mean, deviation: deviation.0 as f64, least, most }
            }
            ExecutionModel::Weibull { exceed } => {
                let mean = task.acet.map_or((least + most) / 2.0, |acet| acet.0 as f64) - least;
                if mean <= 0.0 {
                    return Sampler::Fixed(task.bcet);
                }
                let inverse_shape = weibull_inverse_shape(mean, most - least, *exceed);
                let scale = mean / libm::tgamma(1.0 + inverse_shape);
                let mass = -(-((most - least) / scale).powf(1.0 / inverse_shape)).exp_m1();
                Sampler::Weibull { least, scale, inverse_shape, mass, most }
            }
            ExecutionModel::Pareto { shape } => {
                let mass = 1.0 - (least / most).powf(*shape);
                Sampler::Pareto { least, inverse_shape: 1.0 / shape, mass, most }
            }
            ExecutionModel::Lognormal { median, sigma } => {
                Sampler::Lognormal(LogNormal::new(median.0 as f64, *sigma, [least, most]))
            }
            ExecutionModel::Bimodal { levels, probability, spread } => Sampler::Bimodal {
                levels: levels.map(|level| LogNormal::new(level.0 as f64, *spread, [least, most])),
                probability: *probability,
            },
            ExecutionModel::Empirical { samples } => Sampler::Empirical(samples.clone()),
            ExecutionModel::Overrun { probability, below } => Sampler::Overrun {
                probability: *probability,
                below: Box::new(Self::of_model(below, task)),
                above: Box::new(Sampler::Uniform { least: task.wcet, most: task.wcet_high.unwrap_or(task.wcet) }),
            },
            _ => Sampler::Fixed(task.wcet),
        }
    }

    /// Draws an execution time.
    pub fn draw(&self, rng: &mut impl Rng) -> Time {
        match self {
            Sampler::Fixed(time) => *time,
            Sampler::Uniform { least, most } => Time(rng.random_range(least.0..=most.0)),
            Sampler::Normal { mean, deviation, least, most } => {
                for _ in 0..MOST_REDRAWS {
                    let value = mean + deviation * rng.sample::<f64, _>(StandardNormal);
                    if (*least..=*most).contains(&value) {
                        return Time(value.round() as u64);
                    }
                }
                Time(rng.random_range(*least as u64..=*most as u64))
            }
            Sampler::Weibull { least, scale, inverse_shape, mass, most } => {
                let u = rng.random::<f64>() * mass;
                let value = least + scale * (-(-u).ln_1p()).powf(*inverse_shape);
                Time(value.clamp(*least, *most).round() as u64)
            }
            Sampler::Pareto { least, inverse_shape, mass, most } => {
                let u = rng.random::<f64>() * mass;
                let value = least * (1.0 - u).powf(-inverse_shape);
                Time(value.clamp(*least, *most).round() as u64)
            }
            Sampler::Lognormal(law) => draw_from(law, rng),
            Sampler::Bimodal { levels, probability } => {
                draw_from(&levels[usize::from(rng.random_bool(*probability))], rng)
            }
            Sampler::Empirical(samples) => samples[rng.random_range(0..samples.len())],
            Sampler::Overrun { probability, below, above } => {
                if rng.random_bool(*probability) {
                    above.draw(rng)
                } else {
                    below.draw(rng)
                }
            }
        }
    }
}

impl Sampler {
    /// Draws an execution time of a job that has executed for `executed` and is not complete: a draw under the
    /// condition that it is longer. A job that has reached the longest time of its model is assumed to need one more
    /// nanosecond.
    pub fn draw_beyond(&self, executed: Time, rng: &mut impl Rng) -> Time {
        let next = executed + Time(1);
        let drawn = match self {
            Sampler::Fixed(time) => *time,
            Sampler::Uniform { least, most } => Time(rng.random_range(next.max(*least).min(*most).0..=most.0)),
            Sampler::Weibull { least, scale, inverse_shape, mass, most } => {
                let reached = ((executed.0 as f64 - least) / scale).max(0.0);
                let below = -(-reached.powf(1.0 / inverse_shape)).exp_m1();
                let time = |u: f64| (least + scale * (-(-u).ln_1p()).powf(*inverse_shape)).clamp(*least, *most);
                Time(time(below + rng.random::<f64>() * (mass - below).max(0.0)).round() as u64)
            }
            Sampler::Pareto { least, inverse_shape, mass, most } => {
                let below = 1.0 - (least / (executed.0 as f64).max(*least)).powf(1.0 / inverse_shape);
                let time = |u: f64| (least * (1.0 - u).powf(-inverse_shape)).clamp(*least, *most);
                Time(time(below + rng.random::<f64>() * (mass - below).max(0.0)).round() as u64)
            }
            Sampler::Normal { mean, deviation, most, .. } => {
                let (least, most) = (next.0.min(*most as u64), *most as u64);
                let tail = || (least as f64 - mean) / deviation;
                let drawn = match *deviation > 0.0 && tail() > 0.0 {
                    true => normal_tail(tail(), rng).map(|z| Time((mean + deviation * z).round() as u64)),
                    false => self.redraw_beyond(executed, rng),
                };
                drawn.filter(|time| time.0 <= most).unwrap_or_else(|| Time(rng.random_range(least..=most)))
            }
            Sampler::Lognormal(law) => draw_from_beyond(law, executed, rng).unwrap_or(next),
            Sampler::Bimodal { levels, probability } => {
                // A job that has run for long is likely to be one of the longer level.
                let [first, second] = levels.each_ref().map(|law| law.beyond(executed.0 as f64));
                let (first, second) = (first * (1.0 - probability), second * probability);
                let is_second = rng.random::<f64>() * (first + second) >= first;
                draw_from_beyond(&levels[usize::from(is_second)], executed, rng).unwrap_or(next)
            }
            Sampler::Empirical(samples) => self.redraw_beyond(executed, rng).unwrap_or_else(|| {
                let longer = samples.iter().filter(|sample| **sample > executed);
                longer.copied().min().unwrap_or(next)
            }),
            Sampler::Overrun { above, .. } => {
                self.redraw_beyond(executed, rng).unwrap_or_else(|| above.draw_beyond(executed, rng))
            }
        };
        drawn.max(next)
    }

    /// Draws until a time is longer than `executed`; `None` if it has not happened after [`MOST_REDRAWS`] draws.
    fn redraw_beyond(&self, executed: Time, rng: &mut impl Rng) -> Option<Time> {
        (0..MOST_REDRAWS).map(|_| self.draw(rng)).find(|time| *time > executed)
    }
}

/// Draws a time from a log-normal distribution.
fn draw_from(law: &LogNormal, rng: &mut impl Rng) -> Time {
    Time(law.at(rng.sample(StandardNormal)).round() as u64)
}

/// Draws a time from a log-normal distribution under the condition that it is longer than `executed`. `None` if none
/// is.
fn draw_from_beyond(law: &LogNormal, executed: Time, rng: &mut impl Rng) -> Option<Time> {
    if law.beyond(executed.0 as f64) <= 0.0 {
        return None;
    }
    let least = law.deviations((executed.0 as f64).max(1.0));
    let deviations = match least > 0.0 {
        true => normal_tail(least, rng),
        false => (0..MOST_REDRAWS).map(|_| rng.sample(StandardNormal)).find(|z| law.at(*z) > executed.0 as f64),
    };
    Some(Time(law.at(deviations.unwrap_or(least.max(0.0))).round() as u64).max(executed + Time(1)))
}

/// Draws the execution time of a job that has executed for `executed` and is not complete, from what its estimate says.
///
/// `None` means that the time is to be drawn as if the job had no estimate. It comes with the probability that is the
/// [vagueness](Estimate::vagueness) of the estimate, and if the job has exceeded everything that the estimate considers
/// possible.
pub fn draw_estimated(estimate: Estimate, executed: Time, bounds: [Time; 2], rng: &mut impl Rng) -> Option<Time> {
    let [least, most] = bounds;
    if rng.random::<f64>() < estimate.vagueness(least, most) {
        return None;
    }
    draw_from_beyond(&estimate.distribution(least, most), executed, rng)
}

/// Draws a standard normal number above `least`, which is positive, by rejection from an exponential distribution
/// (Robert, "Simulation of truncated normal variables", 1995). `None` if nothing is accepted after [`MOST_REDRAWS`]
/// draws.
fn normal_tail(least: f64, rng: &mut impl Rng) -> Option<f64> {
    let rate = (least + (least * least + 4.0).sqrt()) / 2.0;
    (0..MOST_REDRAWS).find_map(|_| {
        let z = least + rng.sample::<f64, _>(Exp1) / rate;
        (rng.random::<f64>() <= (-(z - rate) * (z - rate) / 2.0).exp()).then_some(z)
    })
}

/// Returns 1/k for the Weibull distribution of shape k with the given mean, of which a share `exceed` lies beyond
/// `bound`.
///
/// With x = 1/k the condition is g(x) = x·ln ln(1/exceed) − ln Γ(1 + x) = ln(bound/mean). g rises from 0 to its peak,
/// where digamma(1 + x) = ln ln(1/exceed), so the smallest solution is found by bisection. If no Weibull distribution
/// of this mean reaches the bound with that share, the result is the peak, which has the heaviest tail.
fn weibull_inverse_shape(mean: f64, bound: f64, exceed: f64) -> f64 {
    let level = (1.0 / exceed).ln().ln();
    let g = |x: f64| x * level - libm::lgamma(1.0 + x);
    let wanted = (bound / mean).ln();
    let slope_is_positive = |x: f64| g(x + 1e-4) > g(x);
    let peak = bisect(1e-3, 50.0, slope_is_positive);
    bisect(1e-3, peak, |x| g(x) < wanted)
}

/// Returns the point in `[low, high]` where `holds` changes from true to false.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg32;

    fn task(execution: ExecutionModel) -> Task {
        let (bcet, acet, wcet) = (Time::from_us(100), Time::from_us(250), Time::from_us(1_000));
        Task::periodic("t", Time::from_ms(1), wcet).with_bcet(bcet).with_acet(Some(acet)).with_execution(execution)
    }

    fn draws(task: &Task) -> Vec<f64> {
        let sampler = Sampler::new(task);
        let mut rng = Pcg32::new(7, 1);
        (0..40_000).map(|_| sampler.draw(&mut rng).0 as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn share_beyond(values: &[f64], bound: f64) -> f64 {
        values.iter().filter(|value| **value > bound).count() as f64 / values.len() as f64
    }

    #[test]
    fn every_model_stays_within_its_bounds() {
        let samples = [Time::from_us(100), Time::from_us(900)].into();
        for model in [
            ExecutionModel::Wcet,
            ExecutionModel::Uniform,
            ExecutionModel::Normal { deviation: Time::from_secs(1_000) },
            ExecutionModel::Weibull { exceed: 0.005 },
            ExecutionModel::Pareto { shape: 0.1 },
            ExecutionModel::Lognormal { median: Time::from_us(300), sigma: 2.0 },
            ExecutionModel::Bimodal { levels: [50, 800].map(Time::from_us), probability: 0.3, spread: 0.5 },
            ExecutionModel::Empirical { samples },
        ] {
            let drawn = draws(&task(model.clone()));
            assert!(drawn.iter().all(|value| (1e5..=1e6).contains(value)), "{model:?}");
        }
    }

    #[test]
    fn uniform_and_normal_have_their_means() {
        assert!((mean(&draws(&task(ExecutionModel::Uniform))) / 550e3 - 1.0).abs() < 0.01);
        let narrow = ExecutionModel::Normal { deviation: Time::from_us(20) };
        assert!((mean(&draws(&task(narrow))) / 250e3 - 1.0).abs() < 0.01);
    }

    #[test]
    fn weibull_keeps_mean_and_exceedance() {
        let drawn = draws(&task(ExecutionModel::Weibull { exceed: 0.005 }));
        assert!((mean(&drawn) / 250e3 - 1.0).abs() < 0.03, "{}", mean(&drawn));
        // The untruncated distribution is P(X > x) = exp(−((x − bcet)/scale)^k), which must hold halfway as well.
        let inverse_shape = weibull_inverse_shape(150e3, 900e3, 0.005);
        let scale = 150e3 / libm::tgamma(1.0 + inverse_shape);
        let beyond = |x: f64| (-((x - 100e3) / scale).powf(1.0 / inverse_shape)).exp();
        assert!((beyond(1e6) - 0.005).abs() < 1e-6);
        assert!((share_beyond(&drawn, 500e3) - beyond(500e3)).abs() < 0.01);
    }

    #[test]
    fn pareto_has_its_tail() {
        let drawn = draws(&task(ExecutionModel::Pareto { shape: 2.0 }));
        // P(X > 2·bcet) of the untruncated distribution is 1/4; truncation at 10·bcet removes 1/100 of the mass.
        let expected = (0.25 - 0.01) / 0.99;
        assert!((share_beyond(&drawn, 200e3) - expected).abs() < 0.01);
    }

    #[test]
    fn the_mean_load_of_a_task_is_that_of_its_draws() {
        let overrun = ExecutionModel::Overrun { probability: 0.3, below: Box::new(ExecutionModel::Uniform) };
        for model in [
            ExecutionModel::Uniform,
            ExecutionModel::Pareto { shape: 1.5 },
            ExecutionModel::Pareto { shape: 1.0 },
            ExecutionModel::Lognormal { median: Time::from_us(300), sigma: 0.8 },
            ExecutionModel::Bimodal { levels: [150, 800].map(Time::from_us), probability: 0.3, spread: 0.2 },
            overrun,
        ] {
            let task = task(model).with_wcet_high(Some(Time::from_us(2_000)));
            let drawn = mean(&draws(&task)) / 1e6;
            assert!((drawn / task.mean_utilization() - 1.0).abs() < 0.02, "{:?} {drawn}", task.execution);
        }
    }

    /// Redrawing until a time is longer is the definition of the condition.
    #[test]
    fn a_draw_beyond_what_has_executed_is_a_draw_under_that_condition() {
        let samples: std::sync::Arc<[Time]> = (1..=10).map(|k| Time::from_us(100 * k)).collect();
        let overrun = ExecutionModel::Overrun { probability: 0.3, below: Box::new(ExecutionModel::Uniform) };
        for model in [
            ExecutionModel::Uniform,
            ExecutionModel::Normal { deviation: Time::from_us(150) },
            ExecutionModel::Weibull { exceed: 0.005 },
            ExecutionModel::Pareto { shape: 1.5 },
            ExecutionModel::Lognormal { median: Time::from_us(300), sigma: 0.8 },
            ExecutionModel::Bimodal { levels: [150, 800].map(Time::from_us), probability: 0.3, spread: 0.2 },
            ExecutionModel::Empirical { samples },
            overrun,
        ] {
            let task = task(model).with_wcet_high(Some(Time::from_us(2_000)));
            let sampler = Sampler::new(&task);
            let mut rng = Pcg32::new(9, 1);
            for executed in [Time::ZERO, Time::from_us(90), Time::from_us(250), Time::from_us(600)] {
                let mut redrawn = Vec::new();
                while redrawn.len() < 20_000 {
                    redrawn
                        .extend(Some(sampler.draw(&mut rng)).filter(|time| *time > executed).map(|time| time.0 as f64));
                }
                let drawn: Vec<f64> = (0..20_000).map(|_| sampler.draw_beyond(executed, &mut rng).0 as f64).collect();
                let (expected, found) = (mean(&redrawn), mean(&drawn));
                assert!(
                    (found / expected - 1.0).abs() < 0.02,
                    "{:?} beyond {executed}: {found}, not {expected}",
                    task.execution
                );
                assert!(drawn.iter().all(|time| *time > executed.0 as f64));
            }
            let longest = task.wcet_high.unwrap();
            assert_eq!(sampler.draw_beyond(longest, &mut rng), longest + Time(1), "{:?}", task.execution);
        }
    }

    #[test]
    fn overruns_come_as_often_as_said() {
        let model = ExecutionModel::Overrun { probability: 0.2, below: Box::new(ExecutionModel::Wcet) };
        let drawn = draws(&task(model).with_wcet_high(Some(Time::from_us(2_000))));
        assert!((share_beyond(&drawn, 1e6) - 0.2).abs() < 0.01);
    }
}
