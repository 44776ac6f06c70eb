//! Division of a total utilization among tasks.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::fixed_sum::{capped_fixed_sum, rand_fixed_sum};
use super::{GenerateError, Lengths, Rule, Spec, Unc};

/// Method that divides a total utilization among tasks. The first three are uniform over all possible divisions.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// UUniFast (Bini and Buttazzo 2005), redrawn while a task has a utilization above 1 (Davis and Burns 2009). Exact,
    /// but slow or without a result if the total is close to the number of tasks.
    UUniFastDiscard,
    /// Stafford's RandFixedSum, introduced to the field by Emberson, Stafford and Davis (WATERS 2010). Exact at any
    /// total.
    RandFixedSum,
    /// Convolutional fixed sum, in which no task exceeds its cap. One cap for all tasks, or one per task.
    Capped(Vec<f64>),
    /// Utilizations drawn from a named distribution until the total is reached. The last one is cut to fit.
    Unc(Unc),
    /// Periods and execution times of the WATERS 2015 automotive benchmark, with runnables grouped into tasks.
    Waters2015,
}

impl Method {
    /// Whether the method chooses the number of tasks itself, so that none has to be given.
    pub fn counts_tasks(&self) -> bool {
        matches!(self, Method::Unc(_) | Method::Waters2015)
    }

    /// Returns the share of critical tasks where none is stated, 0 to 1.
    pub fn critical_share(&self) -> f64 {
        if *self == Method::Waters2015 { 0.3 } else { 0.0 }
    }

    /// Returns the times to draw where a user states one of the two distributions or none.
    pub fn lengths(&self, periods: Option<Rule>, wcets: Option<Rule>, bcet: f64) -> Result<Lengths, GenerateError> {
        if *self == Method::Waters2015 && (periods.is_some() || wcets.is_some() || bcet < 1.0) {
            return Err(GenerateError::OwnTimes);
        }
        match (periods, wcets) {
            (Some(_), Some(_)) => Err(GenerateError::Invalid("either periods or wcets are drawn".into())),
            (Some(rule), None) => Ok(Lengths::Periods(rule)),
            (None, Some(rule)) => Ok(Lengths::Wcets(rule)),
            (None, None) => Ok(Lengths::default()),
        }
    }
}

/// Largest number of tasks for [`Method::Capped`], whose tables grow with the square of the number of tasks.
const MOST_CAPPED: usize = 500;

/// Largest number of tasks for RandFixedSum itself. Above it, UUniFast-discard takes its place.
const MOST_FIXED_SUM: usize = 2_000;
/// Draws of UUniFast-discard in place of RandFixedSum before it gives up.
const MOST_LARGE_DRAWS: usize = 1_000;

/// Draws of UUniFast-discard before it gives up.
const MOST_DISCARDS: usize = 100_000;

/// Draws the utilizations of the tasks.
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
        // This is the same distribution. The tables of RandFixedSum would grow with the square of the number of tasks.
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

/// Returns one cap per task.
fn expand(caps: &[f64], tasks: usize) -> Result<Vec<f64>, GenerateError> {
    match caps {
        [one] => Ok(vec![*one; tasks]),
        _ if caps.len() == tasks => Ok(caps.to_vec()),
        _ => Err(GenerateError::Invalid(format!("{} caps for {tasks} tasks: give one, or one per task", caps.len()))),
    }
}

/// UUniFast without discarding: divides a total among the tasks, uniformly over all divisions. Shares may exceed 1.
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

/// Returns the numbers below `n` in random order.
pub(super) fn shuffled(n: usize, rng: &mut Pcg64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, rng.random_range(0..=last));
    }
    order
}
