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

use std::sync::mpsc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{
    Device, LearningLosses, Loss, PolicyBatch, PolicySample, PolicyWeights, SelectedRows, Tape, greatest_pickable,
};

use self::acting::Trajectory;
pub use self::acting::gumbel;
use crate::error::TrainError;
use crate::fleet::{Fleet, FleetError, mix};
use crate::learner::{Learner, Outputs, PendingUpdate, Shard, ShardOutput, UpdateFigures};
use crate::limits::{negative, not_a_share, not_environments, not_positive, not_whole};
use crate::method::{Algorithm, Method, MethodDevice, NetworkPart, Phase};
use crate::recipe::Recipe;
use crate::sample::SampleView;
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

/// Batches that are gathered before the device needs them.
const GATHERED_AHEAD: usize = 2;

/// All choices of a round, ready to learn from.
#[derive(Default)]
pub struct PpoRound {
    /// What each environment showed.
    trajectories: Vec<Trajectory>,
    /// Trajectory of each choice, and the choice's place there.
    places: Vec<(u32, u32)>,
    made: Vec<PolicySample>,
}

impl PpoRound {
    fn state(&self, index: usize) -> SampleView<'_> {
        let (trajectory, choice) = self.places[index];
        self.trajectories[trajectory as usize].state(choice as usize)
    }

    fn picked(&self, index: usize) -> &[u32] {
        let (trajectory, choice) = self.places[index];
        self.trajectories[trajectory as usize].picked(choice as usize)
    }
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
        let (mut current, mut next) = (PpoRound::default(), PpoRound::default());
        self.collect(&mut actors, fleet, seed(0), &mut current)?;
        for round in 0..rounds {
            let mut acted = Ok(());
            let figures = rayon::in_place_scope(|scope| {
                if round + 1 < rounds {
                    let (actors, fleet, next, acted) = (&mut actors, &mut *fleet, &mut next, &mut acted);
                    scope.spawn(move |_| *acted = self.collect(actors, fleet, seed(round + 1), next));
                }
                self.learn(learner, &current, seed(round), updates)
            });
            figures.into_iter().try_for_each(|figures| updates.report(learner, figures))?;
            acted?;
            std::mem::swap(&mut current, &mut next);
            actors.iter_mut().for_each(|actor| actor.follow(learner));
        }
        Ok(())
    }

    /// Acts for a round and estimates the advantage of each choice. Each actor has its share of the environments. The
    /// memory of the round is used again.
    pub fn collect<D: Device>(
        &self,
        actors: &mut [Learner<D>],
        fleet: &mut Fleet,
        seed: u64,
        round: &mut PpoRound,
    ) -> Result<(), FleetError> {
        let PpoRound { trajectories, places, made } = round;
        trajectories.resize_with(fleet.members.len(), Trajectory::default);
        acting::act(&self.settings, actors, fleet, trajectories, seed)?;
        let advantages = || trajectories.iter().flat_map(|own| own.choices.iter().map(|choice| choice.advantage));
        let (mean, deviation) = if self.normalizes { mean_and_deviation(advantages) } else { (0.0, 1.0) };
        places.clear();
        made.clear();
        for (trajectory, own) in (0..).zip(trajectories) {
            places.extend((0..own.choices.len() as u32).map(|choice| (trajectory, choice)));
            made.extend(own.choices.iter().map(|choice| PolicySample {
                log_likelihood: choice.log as f32,
                advantage: ((choice.advantage - mean) / deviation) as f32,
                // The value loss is on the scale of the value head's output.
                value_target: (choice.target / self.settings.value_scale) as f32,
            }));
        }
        Ok(())
    }

    /// Learns from a round for all epochs. All updates are queued before the first one is waited for.
    pub fn learn<D: LearningLosses>(
        &self,
        learner: &mut Learner<D>,
        round: &PpoRound,
        seed: u64,
        updates: &mut Updates<'_, D>,
    ) -> Vec<UpdateFigures> {
        let settings = &self.settings;
        let mut order: Vec<usize> = (0..round.made.len()).collect();
        let mut rng = Pcg64::seed_from_u64(mix(seed, u64::MAX));
        let mut all = Vec::new();
        for _ in 0..settings.epochs {
            order.shuffle(&mut rng);
            all.push(order.clone());
        }
        let batches = || all.iter().flat_map(|order| order.chunks(settings.batch.max(1)));
        let (gathering, computes_beside) = (learner.gathering(), learner.computes_beside());
        let gather = |batch: &[usize]| {
            let states: Vec<SampleView<'_>> = batch.iter().map(|index| round.state(*index)).collect();
            (gathering.gather(&states, None), states)
        };
        let mut queued = Vec::new();
        let mut update = |batch: &[usize], (gathered, states): (Vec<Shard<'_>>, Vec<SampleView<'_>>)| {
            queued.push(self.update(learner, round, batch, gathered, &states, updates));
        };
        if computes_beside {
            // While the device is given work for one batch, the next ones are gathered.
            std::thread::scope(|scope| {
                let (send, receive) = mpsc::sync_channel(GATHERED_AHEAD);
                scope.spawn(|| {
                    let send = send;
                    // The receiver is gone only if an update has panicked.
                    let _ = batches().try_for_each(|batch| send.send(gather(batch)));
                });
                batches().zip(receive).for_each(|(batch, gathered)| update(batch, gathered));
            });
        } else {
            batches().for_each(|batch| update(batch, gather(batch)));
        }
        queued.iter().map(|update| learner.figures(update)).collect()
    }

    /// Queues the update by one batch of a round.
    fn update<D: LearningLosses>(
        &self,
        learner: &mut Learner<D>,
        round: &PpoRound,
        batch: &[usize],
        gathered: Vec<Shard<'_>>,
        states: &[SampleView<'_>],
        updates: &mut Updates<'_, D>,
    ) -> PendingUpdate<D> {
        let settings = &self.settings;
        let weights = PolicyWeights {
            clip: settings.clip as f32,
            entropy: settings.entropy as f32,
            value: settings.value as f32,
            share: 1.0 / batch.len() as f32,
        };
        let found = learner.backward_on(gathered, |tape, ShardOutput { range, rows, output, .. }| {
            let chosen = batch[range.clone()].iter().map(|index| round.picked(*index));
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
        learner.step(losses, updates.next_size()).plus(known)
    }
}

/// Returns the mean of some numbers and their standard deviation, at least 1e-6.
fn mean_and_deviation<I: Iterator<Item = f64>>(numbers: impl Fn() -> I) -> (f64, f64) {
    let count = numbers().count().max(1) as f64;
    let mean = numbers().sum::<f64>() / count;
    let variance = numbers().map(|number| (number - mean).powi(2)).sum::<f64>();
    (mean, (variance / count).sqrt().max(1e-6))
}

/// Estimates the return of a state, on the scale of the value head's output.
fn state_value(outputs: &Outputs, index: usize, state: SampleView<'_>) -> f32 {
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
fn policy_weights(logits: &[f32], state: SampleView<'_>) -> (f32, Vec<f32>) {
    let runs = state.cores.min(state.counts.iter().sum()) as f32;
    let most = greatest_pickable(logits, state.counts);
    let powers =
        logits[1..].iter().zip(state.counts).map(|(logit, count)| (logit - most).min(0.0).exp() * *count as f32);
    let powers: Vec<f32> = powers.collect();
    let total = powers.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    (1.0 - runs, powers.iter().map(|power| runs * power / total).collect())
}

/// Squared error of the returns that the critic of a network with an actor estimates, for the policy as it is; `None`
/// for other networks.
fn critic_loss<D: Device>(
    tape: &mut Tape<'_, D>,
    output: &TapeOutput,
    states: &[SampleView<'_>],
    made: &[PolicySample],
    weights: PolicyWeights,
) -> Option<Loss<D>> {
    let critic = output.critic?;
    let (logits, q) = (tape.values(output.q), tape.values(critic));
    let mut slopes = vec![0.0; q.len()];
    let (mut loss, mut first) = (0.0, 0);
    for (state, made) in states.iter().zip(made) {
        let own = first..first + state.rows();
        let (idle, jobs) = policy_weights(&logits[own.clone()], *state);
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
