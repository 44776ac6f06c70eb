//! The exact schedulability test of EDF on one core: the processor demand never exceeds the time there is.
//!
//! Reference: Baruah, Rosier and Howell 1990; the quick convergence (QPA) of Zhang and Burns, IEEE TC 58(9), 2009.

use temponet_task::Time;

/// What a sporadic task asks for at most: `wcet` within `deadline` of each arrival, arrivals at least `period` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub wcet: Time,
    pub deadline: Time,
    pub period: Time,
}

/// Iterations after which a set is taken not to be schedulable; only sets at the very edge of full load need so many.
const MOST_ITERATIONS: usize = 2_000;

/// Whether EDF on one core meets every deadline of these tasks.
pub(crate) fn is_schedulable(tasks: &[Demand]) -> bool {
    if tasks.is_empty() {
        return true;
    }
    let utilization: f64 = tasks.iter().map(|task| task.wcet.0 as f64 / task.period.0 as f64).sum();
    if utilization > 1.0 + 1e-12 || tasks.iter().any(|task| task.wcet > task.deadline) {
        return false;
    }
    let Some(limit) = last_date_to_check(tasks, utilization) else { return false };
    let least = tasks.iter().map(|task| task.deadline.0).min().unwrap_or_default();
    let mut date = latest_deadline_before(tasks, limit);
    for _ in 0..MOST_ITERATIONS {
        let Some(t) = date else { return true };
        let demanded = demand(tasks, t);
        if demanded > t {
            return false;
        }
        if demanded <= least {
            return true;
        }
        date = if demanded < t { Some(demanded) } else { latest_deadline_before(tasks, t) };
    }
    false
}

/// Work with release and deadline inside an interval of length `t`, at most.
fn demand(tasks: &[Demand], t: u64) -> u64 {
    let jobs = |task: &Demand| t.checked_sub(task.deadline.0).map_or(0, |room| room / task.period.0 + 1);
    tasks.iter().map(|task| jobs(task).saturating_mul(task.wcet.0)).fold(0, u64::saturating_add)
}

/// The end of the interval that must be checked: the synchronous busy period, or the bound by utilisation if that is shorter.
fn last_date_to_check(tasks: &[Demand], utilization: f64) -> Option<u64> {
    let longest = tasks.iter().map(|task| task.deadline.0).max().unwrap_or_default();
    let mut bound = u64::MAX;
    if utilization < 1.0 - 1e-9 {
        let slack =
            |task: &Demand| (task.period.0 as f64 - task.deadline.0 as f64) * task.wcet.0 as f64 / task.period.0 as f64;
        let by_load = tasks.iter().map(slack).sum::<f64>() / (1.0 - utilization);
        bound = (by_load.max(0.0).ceil() as u64 + 1).max(longest + 1);
    }
    let mut busy: u64 = tasks.iter().map(|task| task.wcet.0).sum();
    for _ in 0..MOST_ITERATIONS {
        if busy >= bound {
            return Some(bound);
        }
        let next: u64 = tasks.iter().map(|task| busy.div_ceil(task.period.0).saturating_mul(task.wcet.0)).sum();
        if next == busy {
            return Some(busy.max(1).min(bound).saturating_add(1));
        }
        busy = next;
    }
    (bound < u64::MAX).then_some(bound)
}

fn latest_deadline_before(tasks: &[Demand], t: u64) -> Option<u64> {
    let before = tasks.iter().filter(|task| task.deadline.0 < t);
    before.map(|task| (t - 1 - task.deadline.0) / task.period.0 * task.period.0 + task.deadline.0).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// The definition: every deadline up to the hyperperiod and the longest deadline.
    fn by_definition(tasks: &[Demand]) -> bool {
        let total: f64 = tasks.iter().map(|task| task.wcet.0 as f64 / task.period.0 as f64).sum();
        total <= 1.0 + 1e-12 && (1..=30_030).all(|t| demand(tasks, t) <= t)
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut yes, mut no) = (0, 0);
        for _ in 0..3_000 {
            let tasks: Vec<Demand> = (0..rng.random_range(1..5))
                .map(|_| {
                    let period = [2, 3, 5, 6, 7, 10, 14, 15, 30][rng.random_range(0..9)];
                    let wcet = rng.random_range(1..=(period / 2).max(1));
                    let deadline = rng.random_range(wcet..=period + 5);
                    Demand { wcet: Time(wcet), deadline: Time(deadline), period: Time(period) }
                })
                .collect();
            let expected = by_definition(&tasks);
            assert_eq!(is_schedulable(&tasks), expected, "{tasks:?}");
            if expected { yes += 1 } else { no += 1 }
        }
        assert!(yes > 300 && no > 300, "{yes} {no}");
    }
}
