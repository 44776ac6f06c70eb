//! From the logits of a policy to Q-values: a map of outputs to returns.
//!
//! Cloning and policy optimization learn logits. Only their order and differences mean something, and their value head
//! is missing or has another scale. Q-learning that begins with such weights takes the outputs for returns. Its first
//! errors are as large as the scale is wrong, and destroy what was learned.
//!
//! Therefore Q-learning first makes a few thousand choices, some of them at random, and maps the outputs to the returns
//! of those choices: each output times one positive factor, plus a constant. The map keeps the order of the jobs, and
//! thus every schedule.

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_grad::Device;

use crate::environment::Ending;
use crate::fleet::{Fleet, FleetError};
use crate::learner::Learner;
use crate::methods::dqn::DqnSettings;
use crate::sample::Sample;
use crate::tape_network::OutputMap;

/// Choices made by all environments together.
const CHOICES: usize = 8_192;
/// Probability of a random choice. The returns of random choices show what a difference in output is worth, because
/// nothing about the state decided them.
const RANDOM: f64 = 0.25;
/// Greatest share of a return that may lie beyond the observed choices; returns with a larger one say little and are
/// left out of the fits.
const UNSEEN: f64 = 0.5;

/// One choice that was made to learn what outputs are worth.
struct Trial {
    is_random: bool,
    /// Number of jobs chosen.
    jobs: f64,
    /// Sum of the chosen jobs' outputs, each less the mean output of all ready jobs.
    excess: f64,
    /// Mean output of all ready jobs.
    mean: f64,
    /// Output of the value head.
    value: f64,
    /// Reward until the next choice, and the discount there; later those until the end of the observed choices.
    reward: f64,
    discount: f64,
    /// Whether the episode ended with this choice.
    is_cut: bool,
}

/// Acts for a while, and maps the outputs of a network to the returns of its choices.
pub(crate) fn map_outputs_to_returns<D: Device>(
    settings: &DqnSettings,
    learner: &mut Learner<D>,
    fleet: &mut Fleet,
    rng: &mut Pcg64,
) -> Result<(), FleetError> {
    let mut lowest = f64::INFINITY;
    let mut trials: Vec<Vec<Trial>> = fleet.members.iter().map(|_| Vec::new()).collect();
    for _ in 0..CHOICES.div_ceil(fleet.members.len().max(1)) {
        let samples = fleet.samples();
        let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
        let outputs = learner.outputs(None, &states);
        for (place, sample) in samples.iter().enumerate() {
            let (q, member) = (outputs.q(place), &mut fleet.members[place]);
            let is_random = rng.random::<f64>() < RANDOM;
            let jobs = member.top_jobs(|_, row| if is_random { rng.random() } else { q[row as usize] });
            let rows = member.rows_of(&jobs);
            let ready: u32 = sample.counts.iter().sum();
            let sum: f64 = q[1..].iter().zip(&sample.counts).map(|(q, count)| f64::from(*q) * f64::from(*count)).sum();
            let mean = sum / f64::from(ready.max(1));
            lowest = q[1..].iter().fold(lowest, |lowest, q| lowest.min(f64::from(*q)));
            let outcome = member.act(&fleet.episodes, &jobs)?;
            trials[place].push(Trial {
                is_random,
                jobs: rows.len() as f64,
                excess: rows.iter().map(|row| f64::from(q[*row as usize]) - mean).sum(),
                mean,
                value: f64::from(outputs.value[place]),
                reward: outcome.reward,
                discount: if outcome.ending == Some(Ending::Terminated) { 0.0 } else { outcome.discount },
                is_cut: outcome.ending.is_some(),
            });
            if outcome.ending.is_some() {
                member.restart(&fleet.episodes)?;
            }
        }
    }
    learner.map_outputs(&map(settings, trials, lowest));
    Ok(())
}

/// Returns the map of the outputs that fits the observed returns best.
fn map(settings: &DqnSettings, mut trials: Vec<Vec<Trial>>, lowest: f64) -> OutputMap {
    // Extend the reward and the discount of each choice from the next choice to the end of what was observed.
    for list in &mut trials {
        let (mut later, mut discount) = (0.0, 1.0);
        for own in list.iter_mut().rev() {
            if own.is_cut {
                (later, discount) = (0.0, 1.0);
            }
            own.reward += own.discount * later;
            own.discount *= discount;
            (later, discount) = (own.reward, own.discount);
        }
    }
    let trials: Vec<Trial> = trials.into_iter().flatten().collect();
    let count = trials.len().max(1) as f64;
    // What comes after the observed choices has the mean value V of a state: V = mean of (reward + discount · V).
    let (reward, seen) =
        trials.iter().fold((0.0, 0.0), |(reward, seen), own| (reward + own.reward, seen + 1.0 - own.discount));
    let state_value = reward / f64::max(seen, f64::MIN_POSITIVE);
    let returned = |own: &Trial| own.reward + own.discount * state_value;
    let telling = || trials.iter().filter(|own| own.discount < UNSEEN);
    let random: Vec<(f64, f64)> =
        telling().filter(|own| own.is_random).map(|own| (own.excess, returned(own))).collect();
    let scale = match fit(&random) {
        // A slope that cannot be told from zero is replaced by its standard error.
        Some(fit) => fit.slope.max(fit.error),
        None => 1.0,
    };
    let values: Vec<(f64, f64)> = telling().map(|own| (own.value, returned(own))).collect();
    let value_scale = fit(&values).map_or(0.0, |fit| if fit.slope > 2.0 * fit.error { fit.slope } else { 0.0 });
    let mean_value = trials.iter().map(|own| own.value).sum::<f64>() / count;
    let (jobs, mean) =
        trials.iter().fold((0.0, 0.0), |(jobs, mean), own| (jobs + own.jobs / count, mean + own.mean / count));
    // If idling is an option, it starts below every job.
    let over_idling = if settings.may_idle && lowest.is_finite() { scale * (mean - lowest) } else { 0.0 };
    let state_value = state_value - jobs * over_idling;
    let (job, idle, value) = match settings.dueling {
        true => ((scale, 0.0), scale * mean - over_idling, (value_scale, state_value - value_scale * mean_value)),
        // Without a value head, the output for idling is the value of the state.
        false => ((scale, state_value + over_idling - scale * mean), state_value, (1.0, 0.0)),
    };
    let pair = |(scale, shift): (f64, f64)| (scale as f32, shift as f32);
    OutputMap { job: pair(job), idle: idle as f32, value: pair(value) }
}

/// Straight line fitted to points.
struct Fit {
    slope: f64,
    /// Standard error of the slope.
    error: f64,
}

/// Fits a line by least squares; `None` for fewer than three points, or if all have the same x.
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

    /// Choices between two jobs. One earns 2.5 and the other 1.5; each is followed by half of what comes later.
    fn trials() -> Vec<Vec<Trial>> {
        let one = |place: usize| {
            let is_better = place.is_multiple_of(2);
            Trial {
                is_random: true,
                jobs: 1.0,
                excess: if is_better { 5.0 } else { -5.0 },
                mean: 20.0,
                value: 0.0,
                reward: if is_better { 2.5 } else { 1.5 },
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
            let OutputMap { job, idle, value } = map(&settings, trials(), 10.0);
            let q = |z: f32| (if dueling { value.1 } else { idle }) + (job.0 * z + job.1 - idle);
            assert!(job.0 > 0.0, "the better job stays the better one");
            // A choice has a return of 4 on average, and the better job earns 1 more at once. What follows varies with
            // the later choices.
            assert!((0.5..1.5).contains(&(q(25.0) - q(15.0))), "{}", q(25.0) - q(15.0));
            assert!(((q(25.0) + q(15.0)) / 2.0 - 4.0).abs() < 0.1, "{} {}", q(25.0), q(15.0));
            assert!(!may_idle || job.0 * 10.0 + job.1 >= idle - 1e-4, "idling begins below every job");
        }
    }
}
