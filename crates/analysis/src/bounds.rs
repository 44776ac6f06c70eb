//! Tests that look only at utilizations and densities. They are quick and sufficient: a set that fails may still be
//! schedulable.
//!
//! Reference: Liu and Layland, JACM 20(1), 1973; Bini, Buttazzo and Buttazzo, IEEE TC 52(7), 2003 (hyperbolic bound);
//! Goossens, Funk and Baruah, Real-Time Systems 25, 2003 (GFB, here by densities); Baker, RTSS 2003 (BAK).

use temponet_task::Time;

use super::Outcome;
use super::fractions::{MARGIN, product_is_at_most, sum_is_at_most};
use super::global::global_tasks;
use super::worst_case::{Sporadic, WorstCase};

/// Checks the assumptions of the two bounds for rate-monotonic scheduling: free preemption, no jitter, and no deadline
/// shorter than its period.
fn rate_monotonic_only(worst_case: &WorstCase) -> Result<(), Outcome> {
    if let Some(outcome) = worst_case.if_limited() {
        return Err(outcome);
    }
    if worst_case.tasks.iter().any(|task| task.jitter > Time::ZERO) {
        return Err(Outcome::NotApplicable("releases have jitter".into()));
    }
    if worst_case.tasks.iter().any(|task| task.deadline < task.period) {
        return Err(Outcome::NotApplicable("a deadline is shorter than its period".into()));
    }
    Ok(())
}

/// Liu and Layland's bound for rate-monotonic scheduling on one core: U ≤ n(2^{1/n} − 1).
pub fn liu_layland(worst_case: &WorstCase) -> Outcome {
    if let Err(outcome) = rate_monotonic_only(worst_case) {
        return outcome;
    }
    let n = worst_case.tasks.len() as f64;
    let load: f64 = worst_case.utilizations().map(|(work, period)| work as f64 / period as f64).sum();
    let alone = worst_case.tasks.len() == 1 && sum_is_at_most(worst_case.utilizations(), 1);
    Outcome::if_proved(alone || load < n * ((1.0 / n).exp2() - 1.0) * (1.0 - MARGIN))
}

/// Hyperbolic bound for rate-monotonic scheduling on one core: Π(Uᵢ + 1) ≤ 2.
pub fn hyperbolic(worst_case: &WorstCase) -> Outcome {
    if let Err(outcome) = rate_monotonic_only(worst_case) {
        return outcome;
    }
    let factors = worst_case.utilizations().map(|(work, period)| (work.saturating_add(period), period));
    Outcome::if_proved(product_is_at_most(factors, 2))
}

/// Density bound for EDF on one core: the densities add up to at most 1.
pub fn density(worst_case: &WorstCase) -> Outcome {
    if let Some(outcome) = worst_case.if_limited() {
        return outcome;
    }
    Outcome::if_proved(sum_is_at_most(worst_case.tasks.iter().map(Sporadic::density), 1))
}

/// Goossens, Funk and Baruah's bound for global EDF: Σλ ≤ m − (m − 1)·λmax, where λ are the densities.
pub fn gfb(worst_case: &WorstCase) -> Outcome {
    let tasks = match global_tasks(worst_case, false) {
        Ok(tasks) => tasks,
        Err(outcome) => return outcome,
    };
    let greater =
        |a: &(u64, u64), b: &(u64, u64)| (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)));
    let Some(greatest) = tasks.iter().map(Sporadic::density).max_by(greater) else { return Outcome::Schedulable };
    let densities = tasks.iter().map(Sporadic::density);
    let with_heaviest = densities.chain(std::iter::repeat_n(greatest, worst_case.cores - 1));
    Outcome::if_proved(sum_is_at_most(with_heaviest, worst_case.cores as u64))
}

/// Baker's test for global EDF: checks every task against the load of the others in its problem window.
pub fn bak(worst_case: &WorstCase) -> Outcome {
    let tasks = match global_tasks(worst_case, true) {
        Ok(tasks) => tasks,
        Err(outcome) => return outcome,
    };
    if tasks.iter().any(|task| task.jitter > Time::ZERO) {
        return Outcome::NotApplicable("releases have jitter".into());
    }
    if tasks.len() > MOST_TASKS {
        return Outcome::Undecided;
    }
    let time = |time: Time| time.0 as f64;
    let cores = worst_case.cores as f64;
    let passes = |k: &Sporadic| {
        let (density, window) = (time(k.wcet) / time(k.deadline), time(k.deadline));
        let share = |task: &Sporadic| {
            let load = time(task.wcet) / time(task.period);
            let carried = (time(task.wcet) - density * time(task.period)).max(0.0) / window;
            (load * (1.0 + (time(task.period) - time(task.deadline)) / window) + carried).min(1.0)
        };
        let shares: f64 = tasks.iter().map(share).sum();
        density <= 1.0 && shares <= (cores * (1.0 - density) + density) * (1.0 - MARGIN)
    };
    Outcome::if_proved(tasks.iter().all(passes))
}

/// Largest number of tasks that [`bak`] looks at. Its running time is quadratic in the number of tasks.
const MOST_TASKS: usize = 4_000;
