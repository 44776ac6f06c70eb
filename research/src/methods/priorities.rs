//! Actor–critics over continuous priorities: the action is a vector with a priority of −1 to 1 for every ready job, and
//! the jobs with the highest priorities run.
//!
//! The priority of a job is tanh of the network's output, so the deployed scheduler, which takes the highest outputs,
//! takes the highest priorities. Two critics of their own read tokens and priorities ([`PriorityCritics`]), and the
//! policy follows their gradient with respect to the priorities. Two algorithms:
//! - TD3 (Fujimoto et al., "Addressing Function Approximation Error in Actor-Critic Methods", 2018): a deterministic
//!   policy that explores with Gaussian noise, targets with clipped noise on the priorities, the lower of two target
//!   critics, and delayed updates of the policy and of all target networks.
//! - SAC (Haarnoja et al., "Soft Actor-Critic Algorithms and Applications", 2018): a Gaussian policy through tanh,
//!   learned by reparametrization, with its entropy as an additional reward and a learned temperature. The network's
//!   actor gives the means. The job head, which a network with an actor needs in training only, gives the logarithms of
//!   the deviations.
//!
//! Deviations:
//! - The number of ready jobs, and so the dimension of the action, differs from state to state. The entropy of SAC is
//!   therefore the mean over the priorities, not their sum, and so is the target entropy.
//! - Jobs with equal tokens share a row, and with it a priority and its noise. Of equal priorities the earlier deadline
//!   wins.
//! - The schedule depends on the order of the priorities only, so the true value is constant between changes of order.
//!   What the policy climbs is the critics' smooth estimate of it.
//! - Discounts are γ to the power of the time between choices, and an episode that the horizon cuts off is not a
//!   terminal state.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, LearningLosses, Tensors};
use temponet_train::limits::{negative, not_positive, not_whole};
use temponet_train::{
    Algorithm, Ending, Fleet, FleetError, Learner, Method, MethodDevice, Outputs, Phase, Recipe, ReplaySettings,
    RingBuffer, Sample, SampleLoss, ShardOutput, StepSize, TensorVisitor, TrainError, UpdateFigures, decode_memory,
    encode_memory,
};

use super::priority_critics::{PriorityCritics, PriorityTransition, with_priorities};

/// Settings of actor–critics over continuous priorities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrioritySettings {
    /// Acting, learning and the replay buffer. The choices before the first update have random priorities.
    #[serde(flatten)]
    pub replay: ReplaySettings,
    /// Algorithm and its settings; default TD3 with the paper's settings.
    pub algorithm: PriorityAlgorithm,
}

/// Algorithm that learns priorities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PriorityAlgorithm {
    /// Twin delayed deep deterministic policy gradient.
    Td3 {
        /// Updates of the critics per update of the policy and of the target networks; at least 1.
        delay: u64,
        /// Standard deviation of the noise on the priorities while acting, 0 or more.
        exploration: f64,
        /// Standard deviation of the noise on the priorities of targets, 0 or more.
        smoothing: f64,
        /// Bound of the noise on the priorities of targets, 0 or more.
        bound: f64,
    },
    /// Soft actor–critic.
    Sac {
        /// Entropy of a priority that the temperature is learned for, in nats; at most ln 2, that of a uniform
        /// priority.
        entropy: f64,
        /// Step of the logarithm of the temperature at each update, positive, for an entropy that is wrong by 1.
        rate: f64,
    },
}

impl Default for PriorityAlgorithm {
    fn default() -> Self {
        PriorityAlgorithm::Td3 { delay: 2, exploration: 0.1, smoothing: 0.2, bound: 0.5 }
    }
}

impl Method for PrioritySettings {
    const NAME: &'static str = "priorities";

    fn problem(&self, recipe: &Recipe) -> Option<String> {
        self.replay.problem().or_else(|| match self.algorithm {
            PriorityAlgorithm::Td3 { delay, exploration, smoothing, bound } => {
                let amounts = [("exploration", exploration), ("smoothing", smoothing), ("bound", bound)];
                not_whole(&[("delay", delay as usize)]).or_else(|| negative(&amounts))
            }
            PriorityAlgorithm::Sac { entropy, .. } if !(-20.0..=std::f64::consts::LN_2).contains(&entropy) => {
                Some(format!("entropy = {entropy} is not from -20 to ln 2"))
            }
            PriorityAlgorithm::Sac { .. } if recipe.network.body.keys().actor.is_none() => {
                Some("priorities with sac need network.actor, for the means beside the deviations".into())
            }
            PriorityAlgorithm::Sac { rate, .. } => not_positive(&[("rate", rate)]),
        })
    }

    fn updates(&self) -> u64 {
        self.replay.updates()
    }

    fn begin<D: MethodDevice>(&self, recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Priorities::new(self.clone(), recipe, learner))
    }
}

/// Temperature of SAC at the start.
const FIRST_ALPHA: f64 = 0.1;

/// Range of the logarithm of a deviation.
const LOG_DEVIATIONS: (f32, f32) = (-5.0, 2.0);

/// What the algorithm keeps in a checkpoint besides tensors: the replay buffer, the number of choices and of updates
/// made, the logarithm of the temperature, and the optimizer steps of the critics.
type PriorityMemory = (RingBuffer<PriorityTransition>, u64, u64, f64, [u64; 2]);

/// An actor–critic over priorities: its settings and what it remembers from phase to phase.
struct Priorities<D: Device> {
    settings: PrioritySettings,
    critics: PriorityCritics<D>,
    /// Target network of the policy, which only TD3 uses.
    target: Tensors<D>,
    replay: RingBuffer<PriorityTransition>,
    choices: u64,
    updates: u64,
    log_alpha: f64,
}

impl<D: LearningLosses> Algorithm<D> for Priorities<D> {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let Phase { rng, updates, .. } = phase;
        let mut fleet = Fleet::new(phase.episodes.clone(), self.settings.replay.environments, phase.seed)?;
        let mut made = 0;
        while made < self.settings.replay.steps {
            let acted = self.act(learner, &mut fleet, rng)?;
            made += acted;
            for _ in 0..self.settings.replay.updates_due(&mut self.choices, acted) {
                let figures = self.update(learner, rng, updates.next_size());
                updates.report(learner, figures)?;
            }
        }
        Ok(())
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        let steps = self.critics.critics.each_ref().map(|critic| critic.learner.adam.steps);
        encode_memory(&(&self.replay, self.choices, self.updates, self.log_alpha, steps))
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        let memory: PriorityMemory = decode_memory(memory)?;
        let steps;
        (self.replay, self.choices, self.updates, self.log_alpha, steps) = memory;
        self.critics.critics.iter_mut().zip(steps).for_each(|(critic, steps)| critic.learner.adam.steps = steps);
        Ok(())
    }

    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        learner.visit(vec![("target", &mut self.target)], |name, device, tensors| each(name.into(), device, tensors));
        for (place, critic) in self.critics.critics.iter_mut().enumerate() {
            critic.visit(&format!("critic-{place}"), each);
        }
    }
}

impl<D: LearningLosses> Priorities<D> {
    /// An empty replay buffer, and two critics with random weights.
    fn new(settings: PrioritySettings, recipe: &Recipe, learner: &mut Learner<D>) -> Priorities<D> {
        Priorities {
            critics: PriorityCritics::new(recipe, learner),
            target: learner.copy_parameters(),
            replay: RingBuffer::new(settings.replay.capacity),
            choices: 0,
            updates: 0,
            log_alpha: FIRST_ALPHA.ln(),
            settings,
        }
    }

    /// Lets every environment make one choice, and remembers them; returns their number.
    fn act(&mut self, policy: &mut Learner<D>, fleet: &mut Fleet, rng: &mut Pcg64) -> Result<u64, FleetError> {
        let samples: Vec<Arc<Sample>> = fleet.members.iter().map(|member| Arc::new(member.sample())).collect();
        let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
        let is_random = self.choices < self.settings.replay.learn_from;
        let outputs = if is_random { Outputs::default() } else { policy.outputs(None, &states) };
        for (index, state) in samples.iter().enumerate() {
            let priorities: Vec<f32> = match self.settings.algorithm {
                _ if is_random => state.counts.iter().map(|_| rng.random_range(-1.0..=1.0)).collect(),
                PriorityAlgorithm::Td3 { exploration, .. } => noisy(outputs.q(index), exploration, f64::INFINITY, rng),
                PriorityAlgorithm::Sac { .. } => Drawn::of(&outputs, index, rng).priorities,
            };
            let member = &mut fleet.members[index];
            let jobs = member.top_jobs(|_, row| priorities[row as usize - 1]);
            let outcome = member.act(&fleet.episodes, &jobs)?;
            let is_last = outcome.ending == Some(Ending::Terminated);
            self.replay.push(PriorityTransition {
                state: state.clone(),
                priorities,
                reward: outcome.reward as f32,
                discount: if is_last { 0.0 } else { outcome.discount as f32 },
                next: Arc::new(member.sample()),
            });
            if outcome.ending.is_some() {
                member.restart(&fleet.episodes)?;
            }
        }
        Ok(samples.len() as u64)
    }

    /// Makes one update of both critics on a batch from the replay buffer, and one of the policy if it is due. Returns
    /// the first critic's loss and the norm of its gradient.
    fn update(&mut self, policy: &mut Learner<D>, rng: &mut Pcg64, size: StepSize) -> UpdateFigures {
        let Priorities { settings, critics, target, replay, log_alpha, .. } = self;
        let batch = replay.draw(settings.replay.batch, rng);
        let next: Vec<&Sample> = batch.iter().map(|transition| &*transition.next).collect();
        let states: Vec<&Sample> = batch.iter().map(|transition| &*transition.state).collect();
        let alpha = log_alpha.exp();
        // The priorities of the next states, and what their entropy earns.
        let ahead: Vec<(Vec<f32>, f64)> = match settings.algorithm {
            PriorityAlgorithm::Td3 { smoothing, bound, .. } => {
                let outputs = policy.outputs(Some(target), &next);
                (0..next.len()).map(|index| (noisy(outputs.q(index), smoothing, bound, rng), 0.0)).collect()
            }
            PriorityAlgorithm::Sac { .. } => {
                let outputs = policy.outputs(None, &next);
                let drawn = (0..next.len()).map(|index| Drawn::of(&outputs, index, rng));
                drawn
                    .map(|drawn| (alpha * drawn.entropy(), drawn.priorities))
                    .map(|(bonus, own)| (own, bonus))
                    .collect()
            }
        };
        let judged: Vec<Sample> =
            next.iter().zip(&ahead).map(|(state, (priorities, _))| with_priorities(state, priorities)).collect();
        let values = critics.target_values(&judged.iter().collect::<Vec<_>>());
        let target_of = |(place, transition): (usize, &&PriorityTransition)| {
            transition.reward + transition.discount * (values[place] + ahead[place].1 as f32)
        };
        let targets: Vec<f32> = batch.iter().enumerate().map(target_of).collect();
        let acted: Vec<Sample> =
            batch.iter().map(|transition| with_priorities(&transition.state, &transition.priorities)).collect();
        let figures = critics.learn(&acted.iter().collect::<Vec<_>>(), &targets, size);
        self.updates += 1;
        match settings.algorithm {
            PriorityAlgorithm::Td3 { delay, .. } if self.updates.is_multiple_of(delay.max(1)) => {
                follow_first(policy, critics, &states, size);
                policy.blend_into(target, settings.replay.target_share as f32);
                critics.blend(settings.replay.target_share);
            }
            PriorityAlgorithm::Td3 { .. } => {}
            PriorityAlgorithm::Sac { entropy, rate } => {
                let found = follow_lower(policy, critics, &states, alpha, rng, size);
                *log_alpha -= rate * (found - entropy);
                critics.blend(settings.replay.target_share);
            }
        }
        figures
    }
}

/// The priorities by a network's outputs, with Gaussian noise of this deviation, which is clipped at `bound`.
fn noisy(outputs: &[f32], deviation: f64, bound: f64, rng: &mut Pcg64) -> Vec<f32> {
    let one = |output: &f32| {
        let noise = (deviation * rng.sample::<f64, _>(StandardNormal)).clamp(-bound, bound) as f32;
        (output.tanh() + noise).clamp(-1.0, 1.0)
    };
    outputs[1..].iter().map(one).collect()
}

/// Moves the deterministic policy of TD3 along the gradient of the first critic.
fn follow_first<D: LearningLosses>(
    policy: &mut Learner<D>,
    critics: &mut PriorityCritics<D>,
    states: &[&Sample],
    size: StepSize,
) {
    let outputs = policy.outputs(None, states);
    let priorities = |index: usize| outputs.q(index)[1..].iter().map(|output| output.tanh()).collect::<Vec<f32>>();
    let judged: Vec<Sample> =
        states.iter().enumerate().map(|(index, state)| with_priorities(state, &priorities(index))).collect();
    let slopes = critics.slopes(&judged.iter().collect::<Vec<_>>(), false);
    let share = 1.0 / states.len().max(1) as f32;
    policy.gradients(states, None, |index, outputs, _, by_q| {
        for ((by_q, output), slope) in by_q[1..].iter_mut().zip(&outputs[1..]).zip(&slopes[index]) {
            *by_q = -share * slope * (1.0 - output.tanh().powi(2));
        }
        SampleLoss::default()
    });
    policy.step(Vec::new(), size);
}

/// Moves the Gaussian policy of SAC along the gradient of the lower critic and of its entropy. Returns the mean entropy
/// of a priority.
fn follow_lower<D: LearningLosses>(
    policy: &mut Learner<D>,
    critics: &mut PriorityCritics<D>,
    states: &[&Sample],
    alpha: f64,
    rng: &mut Pcg64,
    size: StepSize,
) -> f64 {
    let outputs = policy.outputs(None, states);
    let drawn: Vec<Drawn> = (0..states.len()).map(|index| Drawn::of(&outputs, index, rng)).collect();
    let judged: Vec<Sample> =
        states.iter().zip(&drawn).map(|(state, drawn)| with_priorities(state, &drawn.priorities)).collect();
    let slopes = critics.slopes(&judged.iter().collect::<Vec<_>>(), true);
    let share = 1.0 / states.len().max(1) as f32;
    policy.backward(states, None, |tape, ShardOutput { range, output, .. }| {
        let (mut by_mean, mut by_log) = (Vec::new(), Vec::new());
        for index in range {
            // The idle row has no priority.
            by_mean.push(0.0);
            by_log.push(0.0);
            for (mean, log) in drawn[index].loss_slopes(alpha as f32, &slopes[index]) {
                by_mean.push(share * mean);
                by_log.push(share * log);
            }
        }
        let means = tape.loss(output.q, 0.0, &by_mean);
        let logs = output.critic.map(|logs| tape.loss(logs, 0.0, &by_log));
        (std::iter::once(means).chain(logs).collect(), ())
    });
    policy.step(Vec::new(), size);
    drawn.iter().map(Drawn::entropy).sum::<f64>() / drawn.len().max(1) as f64
}

/// Priorities drawn from the policy of SAC, tanh(mean + deviation · noise), one for each job row.
struct Drawn {
    /// Gaussian noise of each priority.
    noise: Vec<f32>,
    /// Logarithm of each deviation, as the network gives it.
    logs: Vec<f32>,
    /// Each priority before tanh.
    before: Vec<f32>,
    priorities: Vec<f32>,
}

impl Drawn {
    /// Draws the priorities of one sample. The outputs must be those of a network with an actor.
    fn of(outputs: &Outputs, index: usize, rng: &mut Pcg64) -> Drawn {
        let (means, logs) = (&outputs.q(index)[1..], outputs.critic(index)[1..].to_vec());
        let noise = means.iter().map(|_| rng.sample::<f64, _>(StandardNormal) as f32).collect();
        Drawn::with_noise(means, logs, noise)
    }

    fn with_noise(means: &[f32], logs: Vec<f32>, noise: Vec<f32>) -> Drawn {
        let deviations = logs.iter().map(|log| log.clamp(LOG_DEVIATIONS.0, LOG_DEVIATIONS.1).exp());
        let before: Vec<f32> = means
            .iter()
            .zip(deviations)
            .zip(&noise)
            .map(|((mean, deviation), noise)| mean + deviation * noise)
            .collect();
        let priorities = before.iter().map(|before| before.tanh()).collect();
        Drawn { noise, logs, before, priorities }
    }

    /// Mean of −ln π over the priorities: an estimate of the entropy of one.
    fn entropy(&self) -> f64 {
        let one = |((noise, log), before): ((&f32, &f32), &f32)| {
            let (noise, before) = (f64::from(*noise), f64::from(*before));
            let log = f64::from(log.clamp(LOG_DEVIATIONS.0, LOG_DEVIATIONS.1));
            // ln(1 − tanh²), without loss of precision.
            let narrowing = 2.0 * (std::f64::consts::LN_2 - before - (-2.0 * before).exp().ln_1p());
            0.5 * noise * noise + log + 0.5 * std::f64::consts::TAU.ln() + narrowing
        };
        let sum: f64 = self.noise.iter().zip(&self.logs).zip(&self.before).map(one).sum();
        sum / self.noise.len().max(1) as f64
    }

    /// Gradient of −α · entropy − Q with respect to the mean and to the logarithm of the deviation of each priority,
    /// where `slopes` is the gradient of Q with respect to the priorities.
    fn loss_slopes(&self, alpha: f32, slopes: &[f32]) -> impl Iterator<Item = (f32, f32)> {
        let weight = alpha / self.noise.len().max(1) as f32;
        (0..self.noise.len()).map(move |row| {
            let (priority, log) = (self.priorities[row], self.logs[row]);
            let by_before = 2.0 * weight * priority - slopes[row] * (1.0 - priority * priority);
            let is_free = (LOG_DEVIATIONS.0..LOG_DEVIATIONS.1).contains(&log);
            let by_log = if is_free { by_before * log.exp() * self.noise[row] - weight } else { 0.0 };
            (by_before, by_log)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slopes_of_the_soft_policy_are_those_of_small_steps() {
        let (means, logs, noise) = ([0.3f32, -0.8, 1.1], vec![-0.5f32, 0.2, -1.4], vec![0.7f32, -1.2, 0.4]);
        let (alpha, slopes) = (0.3f32, [0.9f32, -0.4, 0.2]);
        let loss = |means: &[f32], logs: &[f32]| {
            let drawn = Drawn::with_noise(means, logs.to_vec(), noise.clone());
            let earned: f32 = drawn.priorities.iter().zip(slopes).map(|(priority, slope)| priority * slope).sum();
            -f64::from(alpha) * drawn.entropy() - f64::from(earned)
        };
        let found: Vec<(f32, f32)> =
            Drawn::with_noise(&means, logs.clone(), noise.clone()).loss_slopes(alpha, &slopes).collect();
        for row in 0..3 {
            let step = 1e-2;
            let mut moved = [means; 2];
            (moved[0][row], moved[1][row]) = (means[row] + step, means[row] - step);
            let by_mean = (loss(&moved[0], &logs) - loss(&moved[1], &logs)) / f64::from(2.0 * step);
            assert!((by_mean - f64::from(found[row].0)).abs() < 1e-3, "{by_mean} {}", found[row].0);
            let mut moved = [logs.clone(), logs.clone()];
            (moved[0][row], moved[1][row]) = (logs[row] + step, logs[row] - step);
            let by_log = (loss(&means, &moved[0]) - loss(&means, &moved[1])) / f64::from(2.0 * step);
            assert!((by_log - f64::from(found[row].1)).abs() < 1e-3, "{by_log} {}", found[row].1);
        }
    }

    /// −ln π, averaged over many draws, is the entropy that the density of tanh of a Gaussian has by numeric
    /// integration.
    #[test]
    fn the_entropy_is_that_of_the_density() {
        let (mean, log) = (0.4f64, -0.3f64);
        let deviation = log.exp();
        let density = |priority: f64| {
            let standard = (priority.atanh() - mean) / deviation;
            (-0.5 * standard * standard).exp()
                / (deviation * std::f64::consts::TAU.sqrt() * (1.0 - priority * priority))
        };
        let steps = 200_000;
        let expected: f64 = (0..steps)
            .map(|step| density(-1.0 + 2.0 * (f64::from(step) + 0.5) / f64::from(steps)))
            .filter(|density| *density > 0.0)
            .map(|density| -density * density.ln() * 2.0 / f64::from(steps))
            .sum();
        let mut rng: Pcg64 = rand::SeedableRng::seed_from_u64(1);
        let count = 100_000;
        let noise: Vec<f32> = (0..count).map(|_| rng.sample::<f64, _>(StandardNormal) as f32).collect();
        let drawn = Drawn::with_noise(&vec![mean as f32; count], vec![log as f32; count], noise);
        assert!((drawn.entropy() - expected).abs() < 0.02, "{} {expected}", drawn.entropy());
    }
}
