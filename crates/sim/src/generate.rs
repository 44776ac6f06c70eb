//! Random task sets: periodic tasks with implicit deadlines whose utilisations add up to a given total.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Task, TaskSet, Time};

/// What to draw.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Number of tasks.
    pub tasks: usize,
    /// Number of cores.
    pub cores: usize,
    /// Total utilisation; at most one per task.
    pub utilization: f64,
    /// How the total is shared out.
    pub method: Method,
    /// How periods are drawn.
    pub periods: Periods,
    /// Periods and execution times are whole multiples of this.
    pub granularity: Time,
}

/// How a total utilisation is shared out among the tasks, uniformly over all ways to do so with at most one per task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// UUniFast (Bini and Buttazzo 2005), drawn again while a task has more than one (Davis and Burns 2009). Exact; slow, or
    /// without end, when the total is close to the number of tasks.
    UUniFastDiscard,
    /// Stafford's RandFixedSum, brought to the field by Emberson, Stafford and Davis (WATERS 2010). As exact, at any total.
    RandFixedSum,
}

/// How periods are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Periods {
    /// The logarithm is uniform, so that each order of magnitude is as likely: the field's default.
    LogUniform(Time, Time),
    /// Uniform.
    Uniform(Time, Time),
    /// One of these, each as likely.
    List(Vec<Time>),
    /// The first times a power of two, at most the second: every period divides every longer one.
    Harmonic(Time, Time),
}

/// Why a set cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// No such sharing exists.
    #[error("{tasks} tasks cannot have a total utilisation of {total}: each has at most 1")]
    TooMuch {
        /// Number of tasks.
        tasks: usize,
        /// The total asked for.
        total: f64,
    },
    /// Discarding took too long.
    #[error(
        "UUniFast-discard found no sharing of {total} among {tasks} tasks in {MOST_DISCARDS} draws; RandFixedSum always does"
    )]
    TooManyDiscards {
        /// Number of tasks.
        tasks: usize,
        /// The total asked for.
        total: f64,
    },
}

const MOST_DISCARDS: usize = 100_000;

/// Draws a set. Rounding to the granularity moves the total utilisation a little.
pub fn generate(spec: &Spec, seed: u64) -> Result<TaskSet, GenerateError> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let shares = shares(spec.method, spec.tasks, spec.utilization, &mut rng)?;
    let grain = spec.granularity.0 as f64;
    let steps = |length: f64| (length / grain).round().max(1.0);
    let time = |steps: f64| Time(steps as u64 * spec.granularity.0);
    let mut tasks = Vec::with_capacity(spec.tasks);
    for (index, share) in shares.iter().enumerate() {
        let period = steps(draw_period(&spec.periods, &mut rng));
        let wcet = steps(share * period * grain).min(period);
        tasks.push(Task::periodic(format!("task{index}"), time(period), time(wcet)));
    }
    let name = format!("random-{}x{}-{seed}", spec.tasks, spec.cores);
    Ok(TaskSet::new(name, tasks, spec.cores))
}

fn draw_period(periods: &Periods, rng: &mut Pcg64) -> f64 {
    match periods {
        Periods::LogUniform(low, high) => {
            let (low, high) = ((low.0 as f64).ln(), (high.0 as f64).ln());
            (low + (high - low) * rng.random::<f64>()).exp()
        }
        Periods::Uniform(low, high) => rng.random_range(low.0..=high.0) as f64,
        Periods::List(list) => list[rng.random_range(0..list.len())].0 as f64,
        Periods::Harmonic(base, most) => {
            let doublings = (most.0 / base.0).max(1).ilog2();
            (base.0 << rng.random_range(0..=doublings)) as f64
        }
    }
}

fn shares(method: Method, tasks: usize, total: f64, rng: &mut Pcg64) -> Result<Vec<f64>, GenerateError> {
    if total > tasks as f64 {
        return Err(GenerateError::TooMuch { tasks, total });
    }
    match method {
        Method::RandFixedSum => Ok(rand_fixed_sum(tasks, total, rng)),
        Method::UUniFastDiscard => {
            let mut draws = (0..MOST_DISCARDS).map(|_| uunifast(tasks, total, rng));
            let found = draws.find(|shares| shares.iter().all(|share| *share <= 1.0));
            found.ok_or(GenerateError::TooManyDiscards { tasks, total })
        }
    }
}

fn uunifast(tasks: usize, total: f64, rng: &mut Pcg64) -> Vec<f64> {
    let mut left = total;
    let mut shares = Vec::with_capacity(tasks);
    for rest in (1..tasks).rev() {
        let next = left * rng.random::<f64>().powf(1.0 / rest as f64);
        shares.push(left - next);
        left = next;
    }
    shares.push(left);
    shares
}

/// `n` numbers in [0, 1] with the given sum, uniform over all such. The polytope is cut into simplices whose volumes follow a
/// recurrence (`volumes`); walking down it with the right odds (`odds`) picks one, and a point in it is uniform.
fn rand_fixed_sum(n: usize, total: f64, rng: &mut Pcg64) -> Vec<f64> {
    if n == 1 {
        return vec![total];
    }
    let whole = (total.floor() as usize).min(n - 1);
    let total = total.clamp(whole as f64, whole as f64 + 1.0);
    let above: Vec<f64> = (0..n).map(|i| total - (whole as f64 - i as f64)).collect();
    let below: Vec<f64> = (0..n).map(|i| (whole + n - i) as f64 - total).collect();
    let mut volumes = vec![0.0; n + 2];
    volumes[1] = f64::MAX / 1e10;
    let mut odds = vec![vec![0.0; n]; n - 1];
    for i in 2..=n {
        let mut next = vec![0.0; n + 2];
        for j in 0..i {
            let (up, down) = (above[j], below[n - i + j]);
            let stay = volumes[j + 1] * up / i as f64;
            let step = volumes[j] * down / i as f64;
            next[j + 1] = stay + step;
            let sum = next[j + 1] + f64::MIN_POSITIVE;
            odds[i - 2][j] = if down > up { step / sum } else { 1.0 - stay / sum };
        }
        volumes = next;
    }
    let mut values = Vec::with_capacity(n);
    let (mut left, mut j, mut sum, mut product) = (total, whole + 1, 0.0, 1.0);
    for i in (1..n).rev() {
        let steps = rng.random::<f64>() <= odds[i - 1][j - 1];
        let step = if steps { 1.0 } else { 0.0 };
        let shrink = rng.random::<f64>().powf(1.0 / i as f64);
        sum += (1.0 - shrink) * product * left / (i + 1) as f64;
        product *= shrink;
        values.push(sum + product * step);
        left -= step;
        j -= usize::from(steps);
    }
    values.push(sum + product * left);
    // The construction orders the values; the order must not mean anything.
    for last in (1..n).rev() {
        values.swap(last, rng.random_range(0..=last));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(tasks: usize, utilization: f64, method: Method) -> Spec {
        let periods = Periods::LogUniform(Time::from_ms(10), Time::from_ms(100));
        Spec { tasks, cores: 8, utilization, method, periods, granularity: Time::from_us(1) }
    }

    fn periods_of(periods: Periods) -> Vec<f64> {
        let spec = Spec { periods, ..spec(20, 6.5, Method::UUniFastDiscard) };
        let sets = (0..200).map(|seed| generate(&spec, seed).unwrap());
        sets.flat_map(|set| set.tasks).map(|task| task.period().unwrap().as_ms_f64()).collect()
    }

    fn share_below(values: &[f64], bound: f64) -> f64 {
        values.iter().filter(|value| **value < bound).count() as f64 / values.len() as f64
    }

    #[test]
    fn utilisation_is_as_asked() {
        for method in [Method::UUniFastDiscard, Method::RandFixedSum] {
            for seed in 0..200 {
                let set = generate(&spec(20, 6.5, method), seed).unwrap();
                assert!((set.utilization() - 6.5).abs() < 1e-2);
                assert!(set.tasks.iter().all(|task| task.utilization() <= 1.0));
            }
        }
    }

    #[test]
    fn periods_are_distributed_as_they_claim() {
        let (low, high) = (Time::from_ms(10), Time::from_ms(100));
        let log = periods_of(Periods::LogUniform(low, high));
        // Log-uniform over one decade: half of the mass lies below √10 times the least.
        assert!((share_below(&log, 31.62) - 0.5).abs() < 0.02 && (share_below(&log, 17.78) - 0.25).abs() < 0.02);
        let uniform = periods_of(Periods::Uniform(low, high));
        assert!((share_below(&uniform, 55.0) - 0.5).abs() < 0.02 && (share_below(&uniform, 32.5) - 0.25).abs() < 0.02);
        let listed = periods_of(Periods::List(vec![low, high]));
        assert!((share_below(&listed, 50.0) - 0.5).abs() < 0.02 && listed.iter().all(|ms| *ms == 10.0 || *ms == 100.0));
        let harmonic = periods_of(Periods::Harmonic(low, high));
        assert!(harmonic.iter().all(|ms| [10.0, 20.0, 40.0, 80.0].contains(ms)));
        assert!((share_below(&harmonic, 15.0) - 0.25).abs() < 0.02);
    }

    /// Both methods draw from the same uniform distribution, so their moments and tails agree.
    #[test]
    fn rand_fixed_sum_is_as_uniform_as_uunifast_discard() {
        for (n, total) in [(3, 1.5), (4, 0.8), (5, 2.2), (6, 3.0)] {
            let mut rng = Pcg64::seed_from_u64(9);
            let mut first = |method| {
                let draws = (0..30_000).map(|_| shares(method, n, total, &mut rng).unwrap());
                draws.map(|shares| shares[0]).collect::<Vec<f64>>()
            };
            let (fixed, discard) = (first(Method::RandFixedSum), first(Method::UUniFastDiscard));
            let greatest_gap = (1..40)
                .map(|step| step as f64 / 40.0)
                .map(|bound| (share_below(&fixed, bound) - share_below(&discard, bound)).abs())
                .fold(0.0, f64::max);
            // The Kolmogorov–Smirnov statistic of two samples of 30 000 exceeds 0.0133 by chance in one case of a hundred.
            assert!(greatest_gap < 0.0133, "n = {n}, total {total}: {greatest_gap}");
        }
    }

    #[test]
    fn rand_fixed_sum_reaches_full_load_and_the_impossible_is_refused() {
        let full = generate(&spec(8, 7.95, Method::RandFixedSum), 1).unwrap();
        assert!((full.utilization() - 7.95).abs() < 1e-2);
        assert!(matches!(generate(&spec(8, 8.5, Method::RandFixedSum), 1), Err(GenerateError::TooMuch { .. })));
        let hard = generate(&spec(40, 39.9, Method::UUniFastDiscard), 1);
        assert!(matches!(hard, Err(GenerateError::TooManyDiscards { .. })));
    }

    #[test]
    fn one_seed_is_one_set() {
        let draw = |seed| generate(&spec(10, 3.0, Method::RandFixedSum), seed).unwrap();
        assert_eq!(draw(4), draw(4));
        assert_ne!(draw(4), draw(5));
    }
}
