//! The distribution of a task's execution times as a table: the probability that a job takes longer than a given time,
//! and the mean execution time of the jobs that do.
//!
//! A scheduler asks for every ready job at every decision how likely the job is to complete in time. The distributions
//! of most models need powers, exponentials or error functions, so a few of their points are computed once, and a
//! lookup is a binary search and a straight line. Wcets and uniform times are exact. Other tables are finer in the
//! upper tail, because a job that has run for long is in it.

use temponet_task::{LogNormal, Task, Time};

use crate::execution::{MOST_REDRAWS, Sampler};

/// Steps of equal probability in a table; further points divide the last one.
const STEPS: i32 = 32;
/// Number of points in the last step: two for each halving of the remaining probability.
const TAIL: i32 = 32;
/// Number of distinct measured times up to which each is a point of its own.
const MOST_SAMPLES: usize = 64;
/// Number of points of a normal distribution, and number of standard deviations around the mean that they cover.
const NORMAL_POINTS: u32 = 64;
const DEVIATIONS: f64 = 8.0;
/// Least probability of a single time that makes a step of the curve.
const STEP: f64 = 1e-9;

/// Survival function of a task's execution time X: P(X > t), and the mean of X given X > t.
#[derive(Clone, Debug, PartialEq)]
pub struct Survival {
    /// Least, mean and greatest execution time in nanoseconds. Most jobs that are asked about have not begun and have
    /// time enough, and these three answer for them without the table.
    least: f64,
    mean: f64,
    most: f64,
    /// Times of the points in nanoseconds, ascending. A time with a positive probability of its own occurs twice.
    times: Box<[f64]>,
    points: Box<[Point]>,
}

/// Values at one of the times.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// P(X > time).
    beyond: f64,
    /// E[X; X > time], in nanoseconds.
    work: f64,
}

impl Survival {
    /// Computes the table of a task. Jobs of a list have no distribution that a scheduler may know; their task's model
    /// says nothing about them.
    pub fn of(task: &Task) -> Survival {
        let mut curve = curve(&Sampler::new(task));
        // Time passes beyond the last possible execution time without effect.
        let end = curve.iter().position(|(_, beyond)| *beyond <= 0.0).map_or(curve.len(), |place| place + 1);
        curve.truncate(end);
        let mut points = Vec::with_capacity(curve.len());
        let (mut work, mut next) = (0.0, None::<(f64, f64)>);
        for (time, beyond) in curve.iter().rev().copied() {
            if let Some((later, less)) = next {
                work += (beyond - less) * (time + later) / 2.0;
            }
            points.push(Point { beyond, work });
            next = Some((time, beyond));
        }
        points.reverse();
        let times: Box<[f64]> = curve.iter().map(|(time, _)| *time).collect();
        let (least, mean, most) = (times[0], points[0].work, times[times.len() - 1]);
        Survival { least, mean, most, times, points: points.into() }
    }

    /// Returns the least execution time in nanoseconds.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// Returns the greatest execution time in nanoseconds.
    pub fn most(&self) -> f64 {
        self.most
    }

    /// Returns the mean execution time in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the probability that a job takes longer than `time` nanoseconds.
    pub fn beyond(&self, time: f64) -> f64 {
        self.at(time).beyond
    }

    /// Returns P(X > `time`) and the mean execution time of the jobs that take longer than `time`, in nanoseconds. The
    /// mean is `None` if no job does.
    pub fn mean_beyond(&self, time: f64) -> (f64, Option<f64>) {
        let Point { beyond, work } = self.at(time);
        (beyond, (beyond > 0.0).then(|| (work / beyond).max(time)))
    }

    fn at(&self, time: f64) -> Point {
        let place = self.times.partition_point(|earlier| *earlier <= time);
        if place == 0 {
            return self.points[0];
        }
        let Some(after) = self.points.get(place).copied() else {
            return Point { beyond: 0.0, work: 0.0 };
        };
        let (begin, end) = (self.times[place - 1], self.times[place]);
        let before = self.points[place - 1].beyond;
        let beyond = before + (time - begin) / (end - begin) * (after.beyond - before);
        Point { beyond, work: after.work + (beyond - after.beyond) * (time + end) / 2.0 }
    }
}

/// Returns points of a survival function, from probability 1 to 0, with ascending times.
fn curve(sampler: &Sampler) -> Vec<(f64, f64)> {
    let with =
        |time: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> { levels().map(|beyond| (time(beyond), beyond)).collect() };
    match sampler {
        Sampler::Fixed(Time(time)) => vec![(*time as f64, 1.0), (*time as f64, 0.0)],
        Sampler::Uniform { least, most } => vec![(least.0 as f64, 1.0), (most.0 as f64, 0.0)],
        Sampler::Normal { mean, deviation, least, most } => normal_curve(*mean, *deviation, *least, *most),
        Sampler::Weibull { least, scale, inverse_shape, mass, most } => with(&|beyond| {
            let untruncated = 1.0 - mass + beyond * mass;
            (least + scale * (-untruncated.ln()).powf(*inverse_shape)).clamp(*least, *most)
        }),
        Sampler::Pareto { least, inverse_shape, mass, most } => {
            with(&|beyond| (least * (1.0 - mass + beyond * mass).powf(-inverse_shape)).clamp(*least, *most))
        }
        Sampler::Lognormal(law) => log_normal_curve(&[(1.0, *law)]),
        Sampler::Bimodal { levels: [first, second], probability } => {
            log_normal_curve(&[(1.0 - probability, *first), (*probability, *second)])
        }
        Sampler::Empirical(samples) => empirical_curve(samples),
        Sampler::Overrun { probability, below, above } => {
            let mut whole: Vec<(f64, f64)> = curve(below);
            whole.iter_mut().for_each(|(_, beyond)| *beyond = probability + (1.0 - probability) * *beyond);
            // Jobs that overrun take longer than the others, unless `below` has overruns of its own.
            let last = whole.last().map_or(0.0, |(time, _)| *time);
            whole.extend(curve(above).iter().map(|(time, beyond)| (time.max(last), probability * beyond)));
            whole
        }
    }
}

/// Probabilities of the points, descending from 1 to 0.
fn levels() -> impl Iterator<Item = f64> {
    let body = (1..=STEPS).rev().map(|step| f64::from(step) / f64::from(STEPS));
    let tail = (1..=TAIL).map(|half| (-f64::from(half) / 2.0).exp2() / f64::from(STEPS));
    body.chain(tail).chain([0.0])
}

/// Curve of a normal distribution that is redrawn until it is within its bounds, and drawn uniformly if that fails too
/// often.
fn normal_curve(mean: f64, deviation: f64, least: f64, most: f64) -> Vec<(f64, f64)> {
    if deviation <= 0.0 && (least..=most).contains(&mean) {
        return vec![(mean, 1.0), (mean, 0.0)];
    }
    let untruncated = |time: f64| match deviation > 0.0 {
        true => libm::erfc((time - mean) / (deviation * std::f64::consts::SQRT_2)) / 2.0,
        false => 0.0,
    };
    let last = untruncated(most);
    let mass = untruncated(least) - last;
    let uniform = (1.0 - mass).powi(MOST_REDRAWS as i32);
    let beyond = |time: f64| {
        let normal = if mass > 0.0 { (untruncated(time) - last) / mass } else { 0.0 };
        (1.0 - uniform) * normal + uniform * (most - time) / (most - least)
    };
    let first = (mean - DEVIATIONS * deviation).clamp(least, most);
    let width = (mean + DEVIATIONS * deviation).clamp(least, most) - first;
    let place = |step: u32| first + width * f64::from(step) / f64::from(NORMAL_POINTS);
    let inner = (1..NORMAL_POINTS).map(place).filter(|time| (least..most).contains(time));
    let inner = inner.map(|time| (time, beyond(time).clamp(0.0, 1.0)));
    std::iter::once((least, 1.0))
        .chain([(first, beyond(first).clamp(0.0, 1.0))])
        .chain(inner)
        .chain([(most, 0.0)])
        .collect()
}

/// Curve of a mixture of log-normal distributions with the same bounds and these shares.
fn log_normal_curve(parts: &[(f64, LogNormal)]) -> Vec<(f64, f64)> {
    let beyond = |time: f64| parts.iter().map(|(share, law)| share * law.beyond(time)).sum::<f64>();
    let place = |step: u32| -DEVIATIONS + 2.0 * DEVIATIONS * f64::from(step) / f64::from(NORMAL_POINTS);
    let of_part = |(_, law): &(f64, LogNormal)| (0..=NORMAL_POINTS).map(|step| law.at(place(step))).collect::<Vec<_>>();
    let mut times: Vec<f64> = parts.iter().flat_map(of_part).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut curve = Vec::with_capacity(2 * times.len());
    for time in times {
        // A bound, and a level without spread, have a probability of their own: the curve has a step there.
        let (from, to) = (if curve.is_empty() { 1.0 } else { beyond(time.next_down()) }, beyond(time));
        if curve.is_empty() || from - to > STEP {
            curve.push((time, from));
        }
        curve.push((time, to));
    }
    curve
}

/// Curve of measured times: a step at each of them if there are few, otherwise a straight line between quantiles.
fn empirical_curve(samples: &[Time]) -> Vec<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let count = sorted.len();
    let same: Vec<&[Time]> = sorted.chunk_by(|a, b| a == b).collect();
    if same.len() > MOST_SAMPLES {
        let quantile = |beyond: f64| sorted[(((1.0 - beyond) * count as f64) as usize).min(count - 1)].0 as f64;
        return levels().map(|beyond| (quantile(beyond), beyond)).collect();
    }
    let (mut left, mut steps) = (count, Vec::with_capacity(2 * same.len()));
    for same in same {
        let (time, share) = (same[0].0 as f64, |left: usize| left as f64 / count as f64);
        steps.push((time, share(left)));
        left -= same.len();
        steps.push((time, share(left)));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use rand_pcg::Pcg32;
    use temponet_task::ExecutionModel;

    fn task(execution: ExecutionModel) -> Task {
        let (bcet, acet, wcet) = (Time::from_us(100), Time::from_us(250), Time::from_us(1_000));
        let wcet_high = Some(Time::from_us(1_700));
        Task::periodic("t", Time::from_ms(1), wcet)
            .with_bcet(bcet)
            .with_acet(Some(acet))
            .with_wcet_high(wcet_high)
            .with_execution(execution)
    }

    fn models() -> Vec<ExecutionModel> {
        let mut rng = Pcg32::new(3, 1);
        let many: Vec<Time> = (0..500).map(|_| Time(rng.random_range(100_000..700_000))).collect();
        let few = [Time::from_us(120), Time::from_us(120), Time::from_us(900)].into();
        let overrun = |below| ExecutionModel::Overrun { probability: 0.03, below: Box::new(below) };
        vec![
            ExecutionModel::Wcet,
            ExecutionModel::Uniform,
            ExecutionModel::Normal { deviation: Time::from_us(80) },
            ExecutionModel::Normal { deviation: Time::from_secs(100) },
            ExecutionModel::Normal { deviation: Time::ZERO },
            ExecutionModel::Weibull { exceed: 0.005 },
            ExecutionModel::Pareto { shape: 1.3 },
            ExecutionModel::Lognormal { median: Time::from_us(300), sigma: 0.6 },
            ExecutionModel::Lognormal { median: Time::from_us(2_000), sigma: 1.0 },
            ExecutionModel::Bimodal { levels: [150, 800].map(Time::from_us), probability: 0.3, spread: 0.1 },
            ExecutionModel::Bimodal { levels: [150, 800].map(Time::from_us), probability: 0.3, spread: 0.0 },
            ExecutionModel::Empirical { samples: few },
            ExecutionModel::Empirical { samples: many.into() },
            overrun(ExecutionModel::Wcet),
            overrun(ExecutionModel::Uniform),
            overrun(ExecutionModel::Weibull { exceed: 0.005 }),
        ]
    }

    #[test]
    fn tables_agree_with_draws() {
        for (number, model) in models().into_iter().enumerate() {
            let task = task(model);
            let (survival, sampler, mut rng) = (Survival::of(&task), Sampler::new(&task), Pcg32::new(11, 5));
            let drawn: Vec<f64> = (0..40_000).map(|_| sampler.draw(&mut rng).0 as f64).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            assert!((survival.mean() / mean - 1.0).abs() < 0.01, "model {number}: {} and {mean}", survival.mean());
            for time in (0..90).map(|step| f64::from(step) * 20_000.0) {
                let later: Vec<f64> = drawn.iter().copied().filter(|drawn| *drawn > time).collect();
                let share = later.len() as f64 / drawn.len() as f64;
                let (beyond, mean) = survival.mean_beyond(time);
                assert!((beyond - share).abs() < 0.02, "model {number} at {time}: {beyond} and {share}");
                if later.len() > 300 {
                    let drawn = later.iter().sum::<f64>() / later.len() as f64;
                    let mean = mean.unwrap();
                    assert!((mean / drawn - 1.0).abs() < 0.03, "model {number} at {time}: {mean} and {drawn}");
                }
            }
        }
    }

    #[test]
    fn survival_falls_from_one_to_zero_within_the_bounds() {
        for model in models() {
            let survival = Survival::of(&task(model.clone()));
            assert!(
                survival.times.is_sorted() && survival.points.is_sorted_by(|a, b| a.beyond >= b.beyond),
                "{model:?}"
            );
            assert_eq!(survival.beyond(survival.least() - 1.0), 1.0, "{model:?}");
            assert_eq!(survival.beyond(survival.most()), 0.0, "{model:?}");
            assert!(survival.least() >= 100_000.0 && survival.most() <= 1_700_000.0, "{model:?}");
            let mean = |step: u32| survival.mean_beyond(f64::from(step) * 10_000.0).1;
            assert!((0..170).all(|step| mean(step + 1).is_none_or(|later| Some(later) >= mean(step))), "{model:?}");
        }
    }
}
