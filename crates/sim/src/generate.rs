//! Random task sets.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Task, TaskSet, Time};

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Number of tasks.
    pub tasks: usize,
    /// Number of cores.
    pub cores: usize,
    /// Total utilisation; at most `tasks`.
    pub utilization: f64,
    /// Periods are log-uniform between these.
    pub periods: (Time, Time),
    /// Periods and execution times are whole multiples of this.
    pub granularity: Time,
}

/// A set of periodic tasks with implicit deadlines: utilisations by UUniFast-discard (Bini and Buttazzo 2005, Davis and
/// Burns 2009), periods log-uniform. Rounding to the granularity moves the total utilisation a little.
pub fn uunifast(spec: &Spec, seed: u64) -> TaskSet {
    let mut rng = Pcg64::seed_from_u64(seed);
    let utilizations = loop {
        let drawn = uunifast_shares(spec.tasks, spec.utilization, &mut rng);
        if drawn.iter().all(|share| *share <= 1.0) {
            break drawn;
        }
    };
    let grain = spec.granularity.0 as f64;
    let tasks = utilizations.iter().enumerate().map(|(index, utilization)| {
        let (low, high) = ((spec.periods.0.0 as f64).ln(), (spec.periods.1.0 as f64).ln());
        let period = (low + (high - low) * rng.random::<f64>()).exp();
        let steps = |length: f64| (length / grain).round().max(1.0);
        let period_steps = steps(period);
        let wcet_steps = steps(utilization * period_steps * grain).min(period_steps);
        let time = |steps: f64| Time(steps as u64 * spec.granularity.0);
        Task::periodic(format!("task{index}"), time(period_steps), time(wcet_steps))
    });
    let name = format!("random-{}x{}-{}", spec.tasks, spec.cores, seed);
    TaskSet::new(name, tasks.collect(), spec.cores)
}

fn uunifast_shares(tasks: usize, total: f64, rng: &mut Pcg64) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisation_and_periods_are_as_asked() {
        let periods = (Time::from_ms(10), Time::from_ms(100));
        let spec = Spec { tasks: 20, cores: 8, utilization: 6.5, periods, granularity: Time::from_us(1) };
        let mut logs = Vec::new();
        for seed in 0..200 {
            let set = uunifast(&spec, seed);
            assert!((set.utilization() - 6.5).abs() < 1e-2);
            for task in &set.tasks {
                let period = task.period().unwrap();
                assert!(period >= periods.0 && period <= periods.1 && task.utilization() <= 1.0);
                logs.push((period.0 as f64 / 1e7).log10());
            }
        }
        // Log-uniform over one decade: the logarithm is uniform on [0, 1].
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let below_quarter = logs.iter().filter(|log| **log < 0.25).count() as f64 / logs.len() as f64;
        assert!((mean - 0.5).abs() < 0.02 && (below_quarter - 0.25).abs() < 0.02, "{mean} {below_quarter}");
    }
}
