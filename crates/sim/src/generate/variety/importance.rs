//! What jobs are worth: criticality levels, values, (m,k)-firm constraints.

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_task::TaskSet;

use super::super::shares::shuffled;
use super::{Ranged, Relation, Variety, is_burst, share_of_tasks};

/// Greatest label of a criticality level.
const MOST_LABEL: u8 = 9;

/// Exponent of the wcet with which values grow at most. Values in proportion to the wcet are a relation of their own.
const MOST_GROWTH: f64 = 0.9;

/// Gives some tasks criticality levels with random labels. A set of several tasks keeps one at level 0.
pub(super) fn criticality(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let levels = ranged.whole(rng) as usize;
    let mut labels: Vec<u8> = shuffled(usize::from(MOST_LABEL), rng).into_iter().map(|label| label as u8 + 1).collect();
    labels.truncate(levels);
    let count = set.tasks().len();
    let critical = (rng.random_range(0.15..0.7) * count as f64).round() as usize;
    let critical = critical.max(levels).min(count.saturating_sub(1)).max(1);
    let mut tasks = set.system.tasks_mut();
    for (place, index) in shuffled(count, rng).into_iter().enumerate() {
        let label = labels[place % labels.len()];
        tasks[index].criticality = if place < critical { label } else { 0 };
    }
}

/// Gives tasks values, rounded to three digits.
pub(super) fn values(variety: &Variety, set: &mut TaskSet, rng: &mut Pcg64) {
    if !variety.values.happens(rng) || variety.relations.is_empty() {
        return;
    }
    let relation = variety.relations[rng.random_range(0..variety.relations.len())];
    let (low, high) = variety.values.range;
    let span = (low + (high - low) * rng.random::<f64>()) * std::f64::consts::LN_10;
    let lengths: Vec<f64> = set.tasks().iter().map(|task| (task.wcet.0.max(1) as f64).ln()).collect();
    let (least, most) = lengths.iter().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
    // The span asked for, as an exponent of the wcet.
    let exponent = (span / (most - least).max(1e-9)).min(MOST_GROWTH);
    let dear = rng.random_range(0..set.tasks().len().max(1));
    for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
        let random = rng.random::<f64>();
        let logarithm = match relation {
            Relation::Independent => span * random,
            Relation::Growing => exponent * (lengths[index] - least),
            Relation::ConstantDensity => lengths[index] - least,
            Relation::Inverse => exponent * (most - lengths[index]),
            Relation::OneDear => span * f64::from(u8::from(index == dear)),
        };
        task.value = three_digits(logarithm.exp());
    }
}

/// Rounds to three significant digits, which keeps files readable.
fn three_digits(number: f64) -> f64 {
    let unit = 10_f64.powf(number.log10().floor() - 2.0);
    (number / unit).round() * unit
}

/// Gives tasks (m,k)-firm constraints with m < k.
pub(super) fn firm(ranged: &Ranged, set: &mut TaskSet, rng: &mut Pcg64) {
    if !ranged.happens(rng) {
        return;
    }
    let share = share_of_tasks(rng);
    for task in set.system.tasks_mut().iter_mut() {
        let (is_chosen, k) = (rng.random::<f64>() < share, ranged.whole(rng));
        let m = rng.random_range(1..k.max(2));
        if is_chosen && !is_burst(task) {
            task.mk = Some((m, k.max(2)));
        }
    }
}
