//! Automotive task sets after Kramer, Ziegenbein and Hamann, Real World Automotive Benchmarks for Free (Bosch, WATERS
//! 2015). Runnables (functions of some microseconds) with the published periods, execution times and best- and
//! worst-case factors are drawn until the total utilization is reached. Runnables of the same period are grouped into
//! tasks.

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_task::{ExecutionModel, Task, Time};

use super::shares::shuffled;
use super::{GenerateError, Spec};

/// The runnables of one period.
struct Class {
    period: Time,
    /// Share of all runnables, in percent.
    share: f64,
    /// Minimum, mean and maximum of the average execution time, in microseconds.
    acet: [f64; 3],
    /// Bounds of the best case as a multiple of the average; uniform in between.
    best: [f64; 2],
    /// Bounds of the worst case as a multiple of the average; uniform in between.
    worst: [f64; 2],
}

const fn class(period_ms: u64, share: f64, acet: [f64; 3], best: [f64; 2], worst: [f64; 2]) -> Class {
    Class { period: Time::from_ms(period_ms), share, acet, best, worst }
}

/// Tables III to V of the paper. The runnables of 15 ms are the angle-synchronous ones, for a four-cylinder engine at
/// 2000 rpm.
const CLASSES: [Class; 10] = [
    class(1, 3.0, [0.34, 5.0, 30.11], [0.19, 0.92], [1.3, 29.11]),
    class(2, 2.0, [0.32, 4.2, 40.69], [0.12, 0.89], [1.54, 19.04]),
    class(5, 2.0, [0.36, 11.04, 83.38], [0.17, 0.94], [1.13, 18.44]),
    class(10, 25.0, [0.21, 10.09, 309.87], [0.05, 0.99], [1.06, 30.03]),
    class(15, 15.0, [0.45, 6.52, 88.58], [0.13, 0.92], [1.2, 28.17]),
    class(20, 25.0, [0.25, 8.74, 291.42], [0.11, 0.98], [1.06, 15.61]),
    class(50, 3.0, [0.29, 17.56, 92.98], [0.32, 0.95], [1.13, 7.76]),
    class(100, 20.0, [0.21, 10.53, 420.43], [0.09, 0.99], [1.02, 8.88]),
    class(200, 1.0, [0.22, 2.56, 21.95], [0.45, 0.98], [1.03, 4.9]),
    class(1000, 4.0, [0.37, 0.43, 0.46], [0.68, 0.8], [1.84, 4.75]),
];

/// Share of the Weibull distribution beyond the wcet, before truncation.
const EXCEED: f64 = 0.001;

/// Largest number of runnables in a set. About a hundred fill one core.
const MOST_RUNNABLES: usize = 100_000;

/// Best-case, average and worst-case execution time in nanoseconds.
type Times = [f64; 3];

/// Draws a runnable: the index of its class and its execution times.
fn runnable(tilts: &[f64], rng: &mut Pcg64) -> (usize, Times) {
    let mut place = rng.random_range(0.0..CLASSES.iter().map(|class| class.share).sum());
    let found = CLASSES.iter().position(|class| {
        place -= class.share;
        place < 0.0
    });
    let index = found.unwrap_or(CLASSES.len() - 1);
    let class = &CLASSES[index];
    let [least, _, most] = class.acet;
    let acet = least + tilted(most - least, tilts[index], rng.random());
    let mut factor = |[low, high]: [f64; 2]| rng.random_range(low..high);
    (index, [factor(class.best) * acet * 1e3, acet * 1e3, factor(class.worst) * acet * 1e3])
}

/// Returns the `u`-quantile of the density proportional to `e^(−tilt·x)` on `[0, length]`.
fn tilted(length: f64, tilt: f64, u: f64) -> f64 {
    match (tilt * length).abs() < 1e-9 {
        true => u * length,
        false => -((1.0 - u) + u * (-tilt * length).exp()).ln() / tilt,
    }
}

/// Computes the tilt with which the truncated exponential distribution has the mean of the class. Of all distributions
/// with this minimum, mean and maximum, it has the largest entropy: it assumes the least.
fn tilt_of(class: &Class) -> f64 {
    let [least, mean, most] = class.acet;
    let length = most - least;
    let mean_at = |tilt: f64| {
        let x: f64 = tilt * length;
        if x.abs() < 1e-6 { length / 2.0 } else { 1.0 / tilt - length / x.exp_m1() }
    };
    let (mut low, mut high) = (-500.0 / length, 500.0 / length);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if mean_at(middle) > mean - least { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Draws tasks with the total utilization of `spec`: about as many as `spec.tasks`, or ten per core by default.
pub(super) fn draw(spec: &Spec, rng: &mut Pcg64) -> Result<Vec<Task>, GenerateError> {
    let tilts: Vec<f64> = CLASSES.iter().map(tilt_of).collect();
    let mut classes: Vec<Vec<Times>> = vec![Vec::new(); CLASSES.len()];
    let (mut total, mut count) = (0.0, 0);
    while total < spec.utilization {
        if count == MOST_RUNNABLES {
            let message =
                format!("a total utilization of {:e} takes more than {MOST_RUNNABLES} runnables", spec.utilization);
            return Err(GenerateError::Invalid(message));
        }
        let (class, times) = runnable(&tilts, rng);
        total += times[2] / CLASSES[class].period.0 as f64;
        count += 1;
        classes[class].push(times);
    }
    // The last runnable exceeded the total slightly.
    let scale = spec.utilization / total;
    let wanted = spec.tasks.unwrap_or(10 * spec.cores);
    let mut tasks = Vec::new();
    for (class, runnables) in CLASSES.iter().zip(classes).filter(|(_, runnables)| !runnables.is_empty()) {
        let groups = (wanted as f64 * runnables.len() as f64 / count as f64).round() as usize;
        for (index, [best, average, worst]) in gather(class, runnables, groups.max(1), scale, rng)?.iter().enumerate() {
            let time = |ns: f64| Time((ns.round() as u64).max(1));
            let name = format!("t{}ms-{index}", class.period.0 / 1_000_000);
            let wcet = time(*worst);
            tasks.push(
                Task::periodic(name, class.period, wcet)
                    .with_bcet(time(*best).min(wcet))
                    .with_acet(Some(time(*average).min(wcet)))
                    .with_execution(ExecutionModel::Weibull { exceed: EXCEED }),
            );
        }
    }
    Ok(tasks)
}

/// Distributes runnables over `groups` tasks in random order, each to the task with the smallest wcet so far. Uses more
/// tasks if one would have a wcet above the period.
fn gather(
    class: &Class,
    runnables: Vec<Times>,
    groups: usize,
    scale: f64,
    rng: &mut Pcg64,
) -> Result<Vec<Times>, GenerateError> {
    let period = class.period.0 as f64;
    for groups in groups.min(runnables.len()).. {
        let mut tasks: Vec<Times> = vec![[0.0; 3]; groups];
        for index in shuffled(runnables.len(), rng) {
            let least = (0..groups).min_by(|a, b| tasks[*a][2].total_cmp(&tasks[*b][2])).unwrap_or(0);
            (0..3).for_each(|at| tasks[least][at] += runnables[index][at] * scale);
        }
        if tasks.iter().all(|task| task[2] <= period) {
            tasks.retain(|task| task[2] > 0.0);
            return Ok(tasks);
        }
        if groups > runnables.len() {
            break;
        }
    }
    Err(GenerateError::Invalid("a runnable longer than its period was drawn; try another seed".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn runnables_have_the_published_shares_means_and_bounds() {
        let tilts: Vec<f64> = CLASSES.iter().map(tilt_of).collect();
        let mut rng = Pcg64::seed_from_u64(1);
        let mut by_class: Vec<Vec<Times>> = vec![Vec::new(); CLASSES.len()];
        let draws = 400_000;
        for _ in 0..draws {
            let (class, times) = runnable(&tilts, &mut rng);
            by_class[class].push(times);
        }
        for (class, drawn) in CLASSES.iter().zip(by_class) {
            let share = 100.0 * drawn.len() as f64 / f64::from(draws);
            assert!((share - class.share).abs() < 0.3, "{}: {share}%", class.period);
            let [least, mean, most] = class.acet;
            let drawn_mean = drawn.iter().map(|times| times[1] / 1e3).sum::<f64>() / drawn.len() as f64;
            assert!((drawn_mean / mean - 1.0).abs() < 0.05, "{}: mean {drawn_mean} µs, not {mean}", class.period);
            for [best, average, worst] in drawn {
                let acet = average / 1e3;
                assert!(acet >= least - 1e-9 && acet <= most + 1e-9);
                assert!((class.best[0]..class.best[1]).contains(&(best / average)));
                assert!((class.worst[0]..class.worst[1]).contains(&(worst / average)));
            }
        }
    }
}
