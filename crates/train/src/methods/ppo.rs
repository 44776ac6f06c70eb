//! Proximal policy optimization (PPO).
//!
//! The network's outputs are logits. A choice picks jobs for the cores one after the other without replacement
//! (Plackett–Luce), which adding Gumbel noise to the logits and taking the highest does at once. The value head
//! estimates the return of a state.
//!
//! A network with an actor gets its logits from the actor, and its critic has a Q-value for every row. The return of a
//! state is then estimated as that of the policy's expected picks, q_idle + m · Σ π_k (q_k − q_idle), where m is the
//! number of jobs that run and π the distribution of the first pick.
//!
//! Papers: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), with generalized advantage estimation
//! (Schulman et al., 2016); Kool et al., "Stochastic Beams and Where to Find Them" (2019) for the Gumbel trick.
//! Deviations:
//! - While a round is learned, the environments already act for the next one. A round is therefore acted with the
//!   weights from before the last round's updates, and does not depend on how fast either side is.
//! - λ counts per median wcet of time (per mean deadline if episodes have a horizon), not per choice: the more cores
//!   there are, the more choices are made in the same time.
//! - Advantages are normalized over a whole round, not over each batch. The value loss is not clipped.
//! - An episode that the horizon cuts off is not a terminal state: the value of the state it ends in still counts.

mod acting;

use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{
    Device, LearningLosses, Loss, PolicyBatch, PolicySample, PolicyWeights, SelectedRows, Tape, greatest_pickable,
};

use self::acting::Choice;
pub use self::acting::gumbel;
use crate::error::TrainError;
use crate::fleet::{Fleet, FleetError, mix};
use crate::learner::{Learner, Outputs, ShardOutput, UpdateFigures};
use crate::limits::{negative, not_a_share, not_environments, not_positive, not_whole};
use crate::method::{Algorithm, Method, MethodDevice, NetworkPart, Phase};
use crate::parallel::par_map;
use crate::recipe::Recipe;
use crate::sample::Sample;
use crate::tape_network::TapeOutput;
use crate::updates::Updates;

/// Settings of policy optimization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoSettings {
    /// Environments that act in parallel, 1 to 100,000; default 64.
    pub environments: usize,
    /// Choices of each environment in a round; at least 1, default 32.
    pub length: usize,
    /// Rounds of acting and learning per phase; at least 1, default 4.
    pub rounds: u64,
    /// Passes over the choices of a round; at least 1, default 3.
    pub epochs: usize,
    /// Choices per update; at least 1, default 256.
    pub batch: usize,
    /// Bound on the change of a choice's likelihood ratio beyond which its gain stops counting, positive; default 0.2.
    pub clip: f64,
    /// Weight of the entropy bonus, 0 or more; default 0.01.
    pub entropy: f64,
    /// Weight of the value loss, 0 or more; default 0.5.
    pub value: f64,
    /// λ of generalized advantage estimation per median wcet of time, or per mean relative deadline if the episodes have
    /// a horizon, 0 to 1; default 0.95.
    pub lambda: f64,
    /// Factor from the value head's output to the return it estimates, positive; default 10.
    pub value_scale: f64,
    /// Greatest number of decisions that the gradients of a recurrent network flow back through (truncated
    /// backpropagation through time); at least 1, default 16.
    pub truncation: usize,
}

impl Default for PpoSettings {
    fn default() -> Self {
        PpoSettings {
            environments: 64,
            length: 32,
            rounds: 4,
            epochs: 3,
            batch: 256,
            clip: 0.2,
            entropy: 0.01,
            value: 0.5,
            lambda: 0.95,
            value_scale: 10.0,
            truncation: 16,
        }
    }
}

impl Method for PpoSettings {
    const NAME: &'static str = "ppo";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        let whole = [
            ("length", self.length),
            ("rounds", self.rounds as usize),
            ("epochs", self.epochs),
            ("batch", self.batch),
            ("truncation", self.truncation),
        ];
        not_whole(&whole)
            .or_else(|| not_environments(self.environments))
            .or_else(|| not_positive(&[("clip", self.clip), ("value_scale", self.value_scale)]))
            .or_else(|| negative(&[("entropy", self.entropy), ("value", self.value)]))
            .or_else(|| not_a_share(&[("lambda", self.lambda)]))
    }

    fn learns(&self, part: NetworkPart) -> bool {
        matches!(part, NetworkPart::Actor | NetworkPart::Memory)
    }

    fn updates(&self) -> u64 {
        let choices = (self.environments as u64).saturating_mul(self.length as u64);
        let updates = choices.div_ceil(self.batch.max(1) as u64);
        self.rounds.saturating_mul(self.epochs as u64).saturating_mul(updates)
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, _learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Ppo::new(self.clone()))
    }
}

/// Policy optimization. It keeps nothing from phase to phase.
pub struct Ppo {
    settings: PpoSettings,
    /// Whether the advantages of a round are shifted and scaled to a mean of 0 and a deviation of 1.
    normalizes: bool,
}

/// Number of actors on a device that computes beside the processor: enough that some environments can act while others
/// wait for the device.
const ACTORS: usize = 4;

/// States that one thread frees at a time.
const STATES_PER_TASK: usize = 4096;

/// All choices of a round, ready to learn from.
pub struct PpoRound {
    states: Vec<Arc<Sample>>,
    chosen: Vec<Vec<u32>>,
    made: Vec<PolicySample>,
}

impl<D: LearningLosses> Algorithm<D> for Ppo {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let mut fleet = Fleet::new(phase.episodes.clone(), self.settings.environments, phase.seed)?;
        self.act_and_learn(learner, &mut fleet, phase.seed, &mut phase.updates)
    }
}

impl Ppo {
    /// Policy optimization with these settings.
    pub fn new(settings: PpoSettings) -> Ppo {
        Ppo { settings, normalizes: true }
    }

    /// The same with advantages as they are.
    pub fn unnormalized(self) -> Ppo {
        Ppo { normalizes: false, ..self }
    }

    /// Acts and learns for the rounds of a phase. Updates are reported at the end of their round.
    pub fn act_and_learn<D: LearningLosses>(
        &self,
        learner: &mut Learner<D>,
        fleet: &mut Fleet,
        seed: u64,
        updates: &mut Updates<'_, D>,
    ) -> Result<(), TrainError> {
        let rounds = self.settings.rounds;
        let seed = |round: u64| mix(seed, 100 + round);
        let count = if learner.computes_beside() { ACTORS } else { 1 };
        let mut actors: Vec<Learner<D>> = (0..count).map(|_| learner.twin()).collect();
        let mut current = self.collect(&mut actors, fleet, seed(0))?;
        for round in 0..rounds {
            let mut next = None;
            let figures = rayon::in_place_scope(|scope| {
                if round + 1 < rounds {
                    let (actors, fleet, next) = (&mut actors, &mut *fleet, &mut next);
                    scope.spawn(move |_| *next = Some(self.collect(actors, fleet, seed(round + 1))));
                }
                self.learn(learner, current, seed(round), updates)
            });
            figures.into_iter().try_for_each(|figures| updates.report(learner, figures))?;
            let Some(next) = next else { break };
            current = next?;
            actors.iter_mut().for_each(|actor| actor.follow(learner));
        }
        Ok(())
    }

    /// Acts for a round and estimates the advantage of each choice. Each actor has its share of the environments.
    pub fn collect<D: Device>(
        &self,
        actors: &mut [Learner<D>],
        fleet: &mut Fleet,
        seed: u64,
    ) -> Result<PpoRound, FleetError> {
        let choices: Vec<Choice> = acting::choices(&self.settings, actors, fleet, seed)?;
        let (mean, deviation) = if self.normalizes { mean_and_deviation(&choices) } else { (0.0, 1.0) };
        let made = |choice: &Choice| PolicySample {
            log_likelihood: choice.log as f32,
            advantage: ((choice.advantage - mean) / deviation) as f32,
            // The value loss is on the scale of the value head's output.
            value_target: (choice.target / self.settings.value_scale) as f32,
        };
        let made = choices.iter().map(made).collect();
        let (states, chosen) = choices.into_iter().map(|choice| (choice.state, choice.chosen)).unzip();
        Ok(PpoRound { states, chosen, made })
    }

    /// Learns from a round for all epochs. All updates are queued before the first one is waited for.
    pub fn learn<D: LearningLosses>(
        &self,
        learner: &mut Learner<D>,
        round: PpoRound,
        seed: u64,
        updates: &mut Updates<'_, D>,
    ) -> Vec<UpdateFigures> {
        let settings = &self.settings;
        let mut order: Vec<usize> = (0..round.made.len()).collect();
        let mut rng = Pcg64::seed_from_u64(mix(seed, u64::MAX));
        let mut queued = Vec::new();
        for _ in 0..settings.epochs {
            order.shuffle(&mut rng);
            for batch in order.chunks(settings.batch.max(1)) {
                let states: Vec<&Sample> = batch.iter().map(|index| &*round.states[*index]).collect();
                let weights = PolicyWeights {
                    clip: settings.clip as f32,
                    entropy: settings.entropy as f32,
                    value: settings.value as f32,
                    share: 1.0 / batch.len() as f32,
                };
                let found = learner.backward(&states, None, |tape, ShardOutput { range, rows, output, .. }| {
                    let chosen = batch[range.clone()].iter().map(|index| &round.chosen[*index][..]);
                    let picks = SelectedRows::new(&rows.segments, &rows.counts, chosen);
                    let made: Vec<PolicySample> = batch[range.clone()].iter().map(|index| round.made[*index]).collect();
                    // The value head learns nothing where a critic estimates the return.
                    let value = if output.critic.is_some() { 0.0 } else { weights.value };
                    let policy = PolicyWeights { value, ..weights };
                    let choices = PolicyBatch { selected: picks, samples: &made, weights: policy };
                    let (mut losses, total) = tape.policy_loss(output.q, output.value, &choices);
                    let critic_loss = critic_loss(tape, &output, &states[range], &made, weights);
                    let known = critic_loss.as_ref().map_or(0.0, |loss| loss.value);
                    losses.extend(critic_loss);
                    (losses, (total, known))
                });
                let known = found.iter().map(|(_, known)| known).sum();
                let losses = found.into_iter().map(|(total, _)| total).collect();
                queued.push(learner.step(losses, updates.next_size()).plus(known));
            }
        }
        // Freeing many samples takes a while, and the device is still busy.
        par_map(round.states, STATES_PER_TASK, |_, state| drop(state));
        queued.iter().map(|update| learner.figures(update)).collect()
    }
}

/// Returns the mean of the choices' advantages and their standard deviation, at least 1e-6.
fn mean_and_deviation(choices: &[Choice]) -> (f64, f64) {
    let mean = choices.iter().map(|choice| choice.advantage).sum::<f64>() / choices.len().max(1) as f64;
    let variance = choices.iter().map(|choice| (choice.advantage - mean).powi(2)).sum::<f64>();
    (mean, (variance / choices.len().max(1) as f64).sqrt().max(1e-6))
}

/// Estimates the return of a state, on the scale of the value head's output.
fn state_value(outputs: &Outputs, index: usize, state: &Sample) -> f32 {
    match outputs.critic(index) {
        [] => outputs.value[index],
        critic => {
            let (first, weights) = policy_weights(outputs.q(index), state);
            weights.iter().zip(&critic[1..]).fold(first * critic[0], |sum, (weight, q)| sum + weight * q)
        }
    }
}

/// Returns the weights of the idle row and of each job row in the estimated return: 1 − m and m · π, where m is the
/// number of jobs that run and π the distribution of the first pick by these logits.
fn policy_weights(logits: &[f32], state: &Sample) -> (f32, Vec<f32>) {
    let runs = state.cores.min(state.counts.iter().sum()) as f32;
    let most = greatest_pickable(logits, &state.counts);
    let powers =
        logits[1..].iter().zip(&state.counts).map(|(logit, count)| (logit - most).min(0.0).exp() * *count as f32);
    let powers: Vec<f32> = powers.collect();
    let total = powers.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    (1.0 - runs, powers.iter().map(|power| runs * power / total).collect())
}

/// Squared error of the returns that the critic of a network with an actor estimates, for the policy as it is; `None`
/// for other networks.
fn critic_loss<D: Device>(
    tape: &mut Tape<'_, D>,
    output: &TapeOutput,
    states: &[&Sample],
    made: &[PolicySample],
    weights: PolicyWeights,
) -> Option<Loss<D>> {
    let critic = output.critic?;
    let (logits, q) = (tape.values(output.q), tape.values(critic));
    let mut slopes = vec![0.0; q.len()];
    let (mut loss, mut first) = (0.0, 0);
    for (state, made) in states.iter().zip(made) {
        let own = first..first + state.rows();
        let (idle, jobs) = policy_weights(&logits[own.clone()], state);
        let parts = || std::iter::once(idle).chain(jobs.iter().copied());
        let value: f32 = parts().zip(&q[own.clone()]).map(|(weight, q)| weight * q).sum();
        let error = value - made.value_target;
        let share = weights.share * weights.value;
        loss += f64::from(share * 0.5 * error * error);
        slopes[own.clone()].iter_mut().zip(parts()).for_each(|(slope, weight)| *slope = share * error * weight);
        first = own.end;
    }
    Some(tape.loss(critic, loss, &slopes))
}
