//! From a policy to Q-values. Cloning and policy optimisation learn logits: only their order and differences mean something, and a value head is
//! missing or has another scale. Q-learning that begins with them takes them for returns, and its first errors, as great as the scale is wrong,
//! destroy what was learned. So a few thousand choices are made first, some at random, and the outputs are mapped to the returns they had:
//! each number times one positive factor, plus a constant. That keeps the order of the jobs, hence every schedule.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_grad::Device;

use crate::dqn::DqnSettings;
use crate::environment::Ending;
use crate::fleet::{Fleet, FleetError};
use crate::learner::Learner;
use crate::sample::Sample;
use crate::tape_network::OutputMap;

/// Choices made by all environments together.
const CHOICES: usize = 8_192;
/// How many of them are made at random: what these come to shows what a job's number is worth, since nothing about the state decides them.
const RANDOM: f64 = 0.25;
/// Returns of which more than this share lies beyond what was seen say little.
const UNSEEN: f64 = 0.5;

/// One choice.
struct Try {
    is_random: bool,
    /// Jobs chosen.
    jobs: f64,
    /// Their numbers, less what as many ready jobs have on average.
    excess: f64,
    /// The mean of all ready jobs' numbers.
    mean: f64,
    /// What the value head says.
    value: f64,
    /// What was earned until the next choice, later until the end, and the discount there.
    earned: f64,
    discount: f64,
    is_cut: bool,
}

/// Acts for a while, and maps the outputs of a network to the returns of its choices.
pub(crate) fn calibrate<D: Device<Real = f32>>(
    settings: &DqnSettings,
    learner: &mut Learner<D>,
    fleet: &mut Fleet,
    rng: &mut Pcg64,
) -> Result<(), FleetError> {
    let mut lowest = f64::INFINITY;
    let mut tries: Vec<Vec<Try>> = fleet.slots.iter().map(|_| Vec::new()).collect();
    for _ in 0..CHOICES.div_ceil(fleet.slots.len().max(1)) {
        let samples: Vec<Arc<Sample>> = fleet.slots.iter().map(|slot| Arc::new(slot.sample())).collect();
        let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
        let outputs = learner.outputs(None, &states);
        for (place, sample) in samples.iter().enumerate() {
            let (q, slot) = (outputs.q(place), &mut fleet.slots[place]);
            let is_random = rng.random::<f64>() < RANDOM;
            let jobs = slot.best(|_, _, row| if is_random { rng.random() } else { q[row as usize] });
            let rows = slot.rows_of(&jobs);
            let ready: u32 = sample.counts.iter().sum();
            let sum: f64 = q[1..].iter().zip(&sample.counts).map(|(q, count)| f64::from(*q) * f64::from(*count)).sum();
            let mean = sum / f64::from(ready.max(1));
            lowest = q[1..].iter().fold(lowest, |lowest, q| lowest.min(f64::from(*q)));
            let outcome = slot.act(&fleet.episodes, &jobs)?;
            tries[place].push(Try {
                is_random,
                jobs: rows.len() as f64,
                excess: rows.iter().map(|row| f64::from(q[*row as usize]) - mean).sum(),
                mean,
                value: f64::from(outputs.value[place]),
                earned: outcome.reward,
                discount: if outcome.ending == Some(Ending::Terminated) { 0.0 } else { outcome.discount },
                is_cut: outcome.ending.is_some(),
            });
            if outcome.ending.is_some() {
                slot.restart(&fleet.episodes)?;
            }
        }
    }
    learner.map_outputs(&map(settings, tries, lowest));
    Ok(())
}

/// The map of outputs that fits what was seen best.
fn map(settings: &DqnSettings, mut tries: Vec<Vec<Try>>, lowest: f64) -> OutputMap {
    // From what followed each choice to what followed it until the end of what was seen.
    for list in &mut tries {
        let (mut later, mut discount) = (0.0, 1.0);
        for own in list.iter_mut().rev() {
            if own.is_cut {
                (later, discount) = (0.0, 1.0);
            }
            own.earned += own.discount * later;
            own.discount *= discount;
            (later, discount) = (own.earned, own.discount);
        }
    }
    let tries: Vec<Try> = tries.into_iter().flatten().collect();
    let count = tries.len().max(1) as f64;
    // What comes beyond is worth as much as any state on average: V = mean of earned + discount · V.
    let (earned, seen) =
        tries.iter().fold((0.0, 0.0), |(earned, seen), own| (earned + own.earned, seen + 1.0 - own.discount));
    let worth = earned / f64::max(seen, f64::MIN_POSITIVE);
    let returned = |own: &Try| own.earned + own.discount * worth;
    let telling = || tries.iter().filter(|own| own.discount < UNSEEN);
    let random: Vec<(f64, f64)> =
        telling().filter(|own| own.is_random).map(|own| (own.excess, returned(own))).collect();
    let scale = match fit(&random) {
        // A factor that cannot be told from zero is as small as it can be told.
        Some(fit) => fit.slope.max(fit.error),
        None => 1.0,
    };
    let values: Vec<(f64, f64)> = telling().map(|own| (own.value, returned(own))).collect();
    let value_scale = fit(&values).map_or(0.0, |fit| if fit.slope > 2.0 * fit.error { fit.slope } else { 0.0 });
    let mean_value = tries.iter().map(|own| own.value).sum::<f64>() / count;
    let (jobs, mean) =
        tries.iter().fold((0.0, 0.0), |(jobs, mean), own| (jobs + own.jobs / count, mean + own.mean / count));
    // Where idling is a choice, it begins below every job.
    let over_idling = if settings.may_idle && lowest.is_finite() { scale * (mean - lowest) } else { 0.0 };
    let worth = worth - jobs * over_idling;
    let (job, idle, value) = match settings.dueling {
        true => ((scale, 0.0), scale * mean - over_idling, (value_scale, worth - value_scale * mean_value)),
        // What idling is worth is what the state is worth.
        false => ((scale, worth + over_idling - scale * mean), worth, (1.0, 0.0)),
    };
    let pair = |(scale, shift): (f64, f64)| (scale as f32, shift as f32);
    OutputMap { job: pair(job), idle: idle as f32, value: pair(value) }
}

/// A straight line through points.
struct Fit {
    slope: f64,
    /// Its standard error.
    error: f64,
}

/// By least squares; none if all points are above one another.
fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let count = points.len() as f64;
    let (mean_x, mean_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if points.len() < 3 || spread <= 1e-12 * count {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    let rest: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    Some(Fit { slope, error: (rest / (count - 2.0) / spread).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Endless choices between two jobs, one a point better, each worth 2 on average and followed by half of what comes.
    fn tries() -> Vec<Vec<Try>> {
        let one = |place: usize| {
            let is_better = place.is_multiple_of(2);
            Try {
                is_random: true,
                jobs: 1.0,
                excess: if is_better { 5.0 } else { -5.0 },
                mean: 20.0,
                value: 0.0,
                earned: if is_better { 2.5 } else { 1.5 },
                discount: 0.5,
                is_cut: place % 40 == 39,
            }
        };
        (0..8).map(|list| (list..400 + list).map(one).collect()).collect()
    }

    #[test]
    fn outputs_are_mapped_to_returns_and_keep_their_order() {
        for (dueling, may_idle) in [(true, false), (true, true), (false, false), (false, true)] {
            let settings = DqnSettings { dueling, may_idle, ..DqnSettings::default() };
            let OutputMap { job, idle, value } = map(&settings, tries(), 10.0);
            let q = |z: f32| (if dueling { value.1 } else { idle }) + (job.0 * z + job.1 - idle);
            assert!(job.0 > 0.0, "the better job stays the better one");
            // A choice is worth 4 on average; the better job earns one more now. What comes later varies with what is chosen later.
            assert!((0.5..1.5).contains(&(q(25.0) - q(15.0))), "{}", q(25.0) - q(15.0));
            assert!(((q(25.0) + q(15.0)) / 2.0 - 4.0).abs() < 0.1, "{} {}", q(25.0), q(15.0));
            assert!(!may_idle || job.0 * 10.0 + job.1 >= idle - 1e-4, "idling begins below every job");
        }
    }
}
