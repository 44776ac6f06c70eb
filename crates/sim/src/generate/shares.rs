//! How a total utilisation is shared out among the tasks.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::fixed_sum::{capped_fixed_sum, rand_fixed_sum};
use super::{GenerateError, Spec, Unc};

/// How a total utilisation is shared out among the tasks. The first three are uniform over all ways to do so.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// UUniFast (Bini and Buttazzo 2005), drawn again while a task has more than one (Davis and Burns 2009). Exact; slow, or
    /// without end, when the total is close to the number of tasks.
    UUniFastDiscard,
    /// Stafford's RandFixedSum, brought to the field by Emberson, Stafford and Davis (WATERS 2010). As exact, at any total.
    RandFixedSum,
    /// Convolutional fixed sum: no task has more than its cap. One cap for all, or one per task.
    Capped(Vec<f64>),
    /// Tasks of a named distribution until the total is reached; the last is cut to fit.
    Unc(Unc),
    /// Periods and execution times of the WATERS 2015 automotive benchmark, runnables gathered into tasks.
    Waters2015,
}

/// Most tasks of [`Method::Capped`]: its tables grow with their square.
const MOST_CAPPED: usize = 500;

/// Most tasks of RandFixedSum itself, and draws of UUniFast in its stead.
const MOST_FIXED_SUM: usize = 2_000;
const MOST_LARGE_DRAWS: usize = 1_000;

/// Draws of UUniFast-discard before it gives up.
const MOST_DISCARDS: usize = 100_000;

/// The tasks' utilisations.
pub(super) fn draw(spec: &Spec, rng: &mut Pcg64) -> Result<Vec<f64>, GenerateError> {
    let total = spec.utilization;
    if let Method::Unc(named) = spec.method {
        return named.until(total, spec.tasks, rng);
    }
    let tasks = spec.tasks.ok_or_else(|| GenerateError::Invalid("the number of tasks is missing".into()))?;
    let most = match &spec.method {
        Method::Capped(caps) => expand(caps, tasks)?.iter().sum(),
        _ => tasks as f64,
    };
    if total > most {
        return Err(GenerateError::TooMuch { tasks, total, most });
    }
    match &spec.method {
        Method::Capped(_) if tasks > MOST_CAPPED => {
            Err(GenerateError::Invalid(format!("caps work for at most {MOST_CAPPED} tasks, not {tasks}")))
        }
        Method::Capped(caps) => Ok(capped_fixed_sum(&expand(caps, tasks)?, total, rng)),
        // The same distribution; RandFixedSum's tables would grow with the square of the tasks.
        Method::RandFixedSum if tasks > MOST_FIXED_SUM => {
            let mut draws = (0..MOST_LARGE_DRAWS).map(|_| uunifast(tasks, total, rng));
            let found = draws.find(|shares| shares.iter().all(|share| *share <= 1.0));
            let message = format!("more than {MOST_FIXED_SUM} tasks can share out small loads only, not {total}");
            found.ok_or(GenerateError::Invalid(message))
        }
        Method::UUniFastDiscard => {
            let mut draws = (0..MOST_DISCARDS).map(|_| uunifast(tasks, total, rng));
            let found = draws.find(|shares| shares.iter().all(|share| *share <= 1.0));
            found.ok_or(GenerateError::TooManyDiscards { tasks, total, draws: MOST_DISCARDS })
        }
        _ => Ok(rand_fixed_sum(tasks, total, rng)),
    }
}

/// One cap per task.
fn expand(caps: &[f64], tasks: usize) -> Result<Vec<f64>, GenerateError> {
    match caps {
        [one] => Ok(vec![*one; tasks]),
        _ if caps.len() == tasks => Ok(caps.to_vec()),
        _ => Err(GenerateError::Invalid(format!("{} caps for {tasks} tasks: give one, or one per task", caps.len()))),
    }
}

/// UUniFast without discarding: the shares of a total, uniform over all ways to share it out.
pub(super) fn uunifast(tasks: usize, total: f64, rng: &mut Pcg64) -> Vec<f64> {
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

/// The numbers below `n` in random order.
pub(super) fn shuffled(n: usize, rng: &mut Pcg64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, rng.random_range(0..=last));
    }
    order
}
