//! Soft actor–critic (SAC) over the choice of jobs.
//!
//! The policy picks jobs for the cores one after the other without replacement, by the softmax of the network's outputs. Two critics of their own learn
//! Q(s, jobs) = V(s) + Σ (q_job − q_idle), as Q-learning does, but of the policy and with its entropy as an additional reward. The policy follows the
//! lower of the two. The learned outputs are logits, and the deployed scheduler takes the highest ones.
//!
//! Papers: Haarnoja et al., "Soft Actor-Critic: Off-Policy Maximum Entropy Deep Reinforcement Learning with a Stochastic Actor" (2018), and
//! Christodoulou, "Soft Actor-Critic for Discrete Action Settings" (2019). Deviations:
//! - A choice is several picks. Expectations over the next pick are exact, given the picks before it, which are drawn; on one core this is the discrete
//!   algorithm. The gradient of the policy leaves out that an early pick changes what is left for later ones.
//! - The target takes the critic whose whole value is lower; the policy takes the lower one for each job.
//! - The critics are networks of their own; they do not share the policy's encoder.
//! - The temperature is fixed, or learned so that the entropy of the first pick is a share of the greatest possible one, the logarithm of the number of
//!   ready jobs.
//! - Discounts are γ to the power of the time between choices, and an episode that the horizon cuts off is not a terminal state.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, LearningLosses, Tensors, q_value_of};
use temponet_infer::{Architecture, Weights};

use crate::algorithm::{Algorithm, Memory, Phase, TensorVisitor};
use crate::environment::Ending;
use crate::error::TrainError;
use crate::fleet::{Fleet, mix};
use crate::learner::{Learner, Outputs, SampleLoss, UpdateFigures};
use crate::ppo::gumbel;
use crate::recipe::Recipe;
use crate::replay_buffer::{ReplayBuffer, Transition};
use crate::sample::Sample;
use crate::updates::{StepSize, Updates};

/// Settings of soft actor–critic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SacSettings {
    /// Choices that all environments together make in a phase; at least 1, default 4,000.
    pub steps: u64,
    /// Environments that act in parallel, 1 to 100,000; default 16.
    pub environments: usize,
    /// Transitions per update; at least 1, default 64.
    pub batch: usize,
    /// Choices per update; at least 1, default 4.
    pub update_every: u64,
    /// Choices made before the first update; default 1,000.
    pub learn_from: u64,
    /// Capacity of the replay buffer in transitions; at least 1, default 100,000.
    pub replay: usize,
    /// Share, 0 to 1, by which the target networks move towards the critics at each update; default 0.01.
    pub target_share: f64,
    /// Weight of the entropy; by default learned for a tenth of the greatest entropy.
    pub temperature: Temperature,
}

impl Default for SacSettings {
    fn default() -> Self {
        SacSettings {
            steps: 4_000,
            environments: 16,
            batch: 64,
            update_every: 4,
            learn_from: 1_000,
            replay: 100_000,
            target_share: 0.01,
            temperature: Temperature::Learned { entropy: 0.1, rate: 0.003 },
        }
    }
}

/// Weight of the entropy, α.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Temperature {
    /// Always the same, positive.
    Fixed {
        /// α in units of the reward.
        alpha: f64,
    },
    /// Learned, so that the entropy of the first pick becomes a share of the greatest possible one.
    Learned {
        /// That share, 0 to 1.
        entropy: f64,
        /// Step of the logarithm of α at each update, positive, for an entropy that is wrong by 1.
        rate: f64,
    },
}

impl Temperature {
    /// Logarithm of α at the start.
    fn first(self) -> f64 {
        match self {
            Temperature::Fixed { alpha } => alpha.ln(),
            Temperature::Learned { .. } => FIRST_ALPHA.ln(),
        }
    }
}

/// α at the start where it is learned.
const FIRST_ALPHA: f64 = 0.1;

/// A critic: its network and its target network.
struct Critic<D: Device<Real = f32>> {
    learner: Learner<D>,
    target: Tensors<D>,
}

/// What soft actor–critic keeps in a checkpoint besides tensors: the replay buffer, the number of choices made, the logarithm of α, and the optimizer
/// steps of the critics.
pub(crate) type SacMemory = (ReplayBuffer, u64, f64, [u64; 2]);

/// Soft actor–critic: its settings and what it remembers from phase to phase.
pub(crate) struct Sac<D: Device<Real = f32>> {
    settings: SacSettings,
    critics: [Critic<D>; 2],
    replay: ReplayBuffer,
    choices: u64,
    log_alpha: f64,
}

impl<D: LearningLosses<Real = f32>> Algorithm<D> for Sac<D> {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let mut fleet = Fleet::new(phase.episodes.clone(), self.settings.environments, phase.seed)?;
        self.act_and_learn(learner, &mut fleet, &mut phase.rng, &mut phase.updates)
    }

    fn memory(&self) -> Memory {
        let steps = self.critics.each_ref().map(|critic| critic.learner.adam.steps);
        Memory { sac: Some((self.replay.clone(), self.choices, self.log_alpha, steps)), ..Memory::default() }
    }

    fn restore(&mut self, memory: Memory) -> Result<(), TrainError> {
        let steps;
        (self.replay, self.choices, self.log_alpha, steps) =
            memory.sac.ok_or_else(|| Memory::missing("transitions"))?;
        self.critics.iter_mut().zip(steps).for_each(|(critic, steps)| critic.learner.adam.steps = steps);
        Ok(())
    }

    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        learner.visit(Vec::new(), |name, device, tensors| each(name.into(), device, tensors));
        for (place, Critic { learner, target }) in self.critics.iter_mut().enumerate() {
            // The prefix is part of the checkpoint format.
            learner.visit(vec![("target", target)], |name, device, tensors| {
                each(format!("critic-{place}-{name}"), device, tensors);
            });
        }
    }
}

impl<D: LearningLosses<Real = f32>> Sac<D> {
    /// An empty replay buffer, and two critics with random weights of their own.
    pub(crate) fn new(settings: SacSettings, recipe: &Recipe, learner: &Learner<D>) -> Sac<D> {
        let critic = |number: u64| {
            let architecture = Architecture { actor: None, ..learner.network.architecture.clone() };
            let weights = Weights::random(architecture, mix(recipe.seed, 5 + number));
            let mut learner = Learner::new(learner.another_device(), &weights, recipe.optimizer.adam);
            let target = learner.copy_parameters();
            Critic { learner, target }
        };
        Sac {
            replay: ReplayBuffer::new(settings.replay, 0.0),
            critics: [critic(0), critic(1)],
            choices: 0,
            log_alpha: settings.temperature.first(),
            settings,
        }
    }

    /// Acts by the policy for the steps of a phase, and makes an update every few choices.
    fn act_and_learn(
        &mut self,
        policy: &mut Learner<D>,
        fleet: &mut Fleet,
        rng: &mut Pcg64,
        updates: &mut Updates<'_, D>,
    ) -> Result<(), TrainError> {
        let mut made = 0;
        while made < self.settings.steps {
            let samples: Vec<Arc<Sample>> = fleet.members.iter().map(|member| Arc::new(member.sample())).collect();
            let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
            let outputs = policy.outputs(None, &states);
            for (index, state) in samples.iter().enumerate() {
                let (member, logits) = (&mut fleet.members[index], outputs.q(index));
                let jobs = member.top_jobs(|_, row| logits[row as usize] + gumbel(rng));
                let chosen = member.rows_of(&jobs);
                let outcome = member.act(&fleet.episodes, &jobs)?;
                let is_last = outcome.ending == Some(Ending::Terminated);
                self.replay.push(Transition {
                    state: state.clone(),
                    chosen,
                    speeds: Vec::new(),
                    reward: outcome.reward as f32,
                    discount: if is_last { 0.0 } else { outcome.discount as f32 },
                    next: Arc::new(member.sample()),
                });
                if outcome.ending.is_some() {
                    member.restart(&fleet.episodes)?;
                }
            }
            let before = self.choices / self.settings.update_every.max(1);
            self.choices += samples.len() as u64;
            made += samples.len() as u64;
            if self.choices < self.settings.learn_from {
                continue;
            }
            for _ in before..self.choices / self.settings.update_every.max(1) {
                let figures = self.update(policy, rng, updates.next_size());
                updates.report(policy, figures)?;
            }
        }
        Ok(())
    }

    /// Makes one update of both critics, of the policy and of the temperature on a batch from the replay buffer. Returns the policy's loss and the norm of
    /// its gradient.
    fn update(&mut self, policy: &mut Learner<D>, rng: &mut Pcg64, size: StepSize) -> UpdateFigures {
        let draw = self.replay.draw(self.settings.batch, 1.0, rng);
        let transitions: Vec<&Transition> = draw.places.iter().map(|place| self.replay.get(*place)).collect();
        let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
        let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
        let (alpha, share) = (self.log_alpha.exp(), 1.0 / self.settings.batch as f32);
        let next_logits = policy.outputs(None, &next);
        let judged = self.critics.each_mut().map(|critic| critic.learner.outputs(Some(&critic.target), &next));
        let target = |index: usize| {
            let transition = transitions[index];
            let picks = Picks::draw(next_logits.q(index), &transition.next, rng.random());
            let value = picks.soft_value(alpha, [0, 1].map(|critic| Judged::of(&judged[critic], index)));
            transition.reward + transition.discount * value as f32
        };
        let targets: Vec<f32> = (0..transitions.len()).map(target).collect();
        for critic in &mut self.critics {
            critic.learner.gradients(&states, None, |index, q, value, by_q| {
                let chosen = &transitions[index].chosen;
                let error = q_value_of(true, q, value, chosen) - targets[index];
                for row in chosen {
                    by_q[*row as usize] += error * share;
                    by_q[0] -= error * share;
                }
                SampleLoss { loss: f64::from(0.5 * error * error * share), by_value: error * share }
            });
            critic.learner.step(Vec::new(), size);
            critic.learner.blend_into(&mut critic.target, self.settings.target_share as f32);
        }
        let judged = self.critics.each_mut().map(|critic| critic.learner.outputs(None, &states));
        let seeds: Vec<f64> = states.iter().map(|_| rng.random()).collect();
        let logits = policy.outputs(None, &states);
        let picks = |index: usize, logits: &[f32]| Picks::draw(logits, states[index], seeds[index]);
        let surplus: f64 = match self.settings.temperature {
            Temperature::Fixed { .. } => 0.0,
            Temperature::Learned { entropy, .. } => {
                let one = |index: usize| {
                    let ready: u32 = states[index].counts.iter().sum();
                    picks(index, logits.q(index)).entropy() - entropy * f64::from(ready.max(1)).ln()
                };
                (0..states.len()).map(one).sum::<f64>() / states.len().max(1) as f64
            }
        };
        let loss = policy.gradients(&states, None, |index, logits, _, by_q| {
            let critics = [0, 1].map(|critic| Judged::of(&judged[critic], index));
            let loss = picks(index, logits).policy_loss(alpha, critics, f64::from(share), by_q);
            SampleLoss { loss, by_value: 0.0 }
        });
        let update = policy.step(Vec::new(), size);
        if let Temperature::Learned { rate, .. } = self.settings.temperature {
            self.log_alpha -= rate * surplus;
        }
        UpdateFigures { loss, norm: policy.figures(&update).norm }
    }
}

/// Outputs of a critic for one state.
#[derive(Clone, Copy)]
struct Judged<'a> {
    q: &'a [f32],
    value: f32,
}

impl<'a> Judged<'a> {
    fn of(outputs: &'a Outputs, sample: usize) -> Judged<'a> {
        Judged { q: outputs.q(sample), value: outputs.value[sample] }
    }

    /// Advantage of running a job of a row, which is counted from 0 without the idle row, over idling.
    fn advantage(&self, row: usize) -> f64 {
        f64::from(self.q[row + 1] - self.q[0])
    }
}

/// The distribution of each pick of a choice, given the picks before it. Rows are counted from 0, without the idle row.
struct Picks {
    /// For each pick the probability of each row.
    shares: Vec<Vec<f64>>,
    /// For each pick the logarithm of the probability of one job of each row.
    logs: Vec<Vec<f64>>,
}

impl Picks {
    /// Draws the picks for all cores by the softmax of `logits`; `seed` is a number from 0 to 1 that decides them.
    fn draw(logits: &[f32], state: &Sample, seed: f64) -> Picks {
        let mut left: Vec<f64> = state.counts.iter().map(|count| f64::from(*count)).collect();
        let most = logits[1..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let above: Vec<f64> = logits[1..].iter().map(|logit| f64::from(logit - most)).collect();
        let mut picks = Picks { shares: Vec::new(), logs: Vec::new() };
        let (mut point, ready) = (seed, left.iter().sum::<f64>() as usize);
        for _ in 0..(state.cores as usize).min(ready) {
            let total: f64 = left.iter().zip(&above).map(|(left, above)| left * above.exp()).sum();
            let log_total = total.max(f64::MIN_POSITIVE).ln();
            let shares: Vec<f64> =
                left.iter().zip(&above).map(|(left, above)| left * (above - log_total).exp()).collect();
            picks.logs.push(above.iter().map(|above| above - log_total).collect());
            // The place of the point within the share that it falls into is as good as a new random number.
            let (mut before, mut pick) = (0.0, shares.iter().rposition(|share| *share > 0.0).unwrap_or(0));
            for (row, share) in shares.iter().enumerate() {
                if point < before + share {
                    pick = row;
                    break;
                }
                before += share;
            }
            point = ((point - before) / shares[pick].max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            left[pick] = (left[pick] - 1.0).max(0.0);
            picks.shares.push(shares);
        }
        picks
    }

    /// Rows that a pick can be of, with their probabilities and the logarithms for one job.
    fn of(&self, pick: usize) -> impl Iterator<Item = (usize, f64, f64)> {
        let both = self.shares[pick].iter().zip(&self.logs[pick]).enumerate();
        both.filter(|(_, (share, _))| **share > 0.0).map(|(row, (share, log))| (row, *share, *log))
    }

    /// Entropy of the first pick.
    fn entropy(&self) -> f64 {
        if self.shares.is_empty() { 0.0 } else { -self.of(0).map(|(_, share, log)| share * log).sum::<f64>() }
    }

    /// Value of the state: the lower of the two critics', and α times the entropy of all picks.
    fn soft_value(&self, alpha: f64, critics: [Judged<'_>; 2]) -> f64 {
        let all = || (0..self.shares.len()).flat_map(|pick| self.of(pick));
        let [first, second] = critics.map(|critic| {
            f64::from(critic.value) + all().map(|(row, share, _)| share * critic.advantage(row)).sum::<f64>()
        });
        first.min(second) - alpha * all().map(|(_, share, log)| share * log).sum::<f64>()
    }

    /// Loss of the policy, times `weight`: α times the negative entropy of each pick, less its expected advantage by the lower critic. Writes the gradient
    /// with respect to the logits to `slopes`.
    fn policy_loss(&self, alpha: f64, critics: [Judged<'_>; 2], weight: f64, slopes: &mut [f32]) -> f64 {
        let worth = |row: usize| {
            let [first, second] = critics.map(|critic| f64::from(critic.value) + critic.advantage(row));
            first.min(second)
        };
        let mut loss = 0.0;
        for pick in 0..self.shares.len() {
            let cost = |(row, _, log): (usize, f64, f64)| alpha * log - worth(row);
            let mean: f64 = self.of(pick).map(|one| one.1 * cost(one)).sum();
            loss += weight * mean;
            for one in self.of(pick) {
                slopes[one.0 + 1] += (weight * one.1 * (cost(one) - mean)) as f32;
            }
        }
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(counts: &[u32], cores: u32) -> Sample {
        let tokens = vec![0; counts.len()];
        let bias = vec![0.0; 1 + counts.len()];
        Sample { idle: vec![0], tokens, real: vec![], counts: counts.to_vec(), bias, cores }
    }

    #[test]
    fn picks_are_drawn_with_their_probabilities_and_without_replacement() {
        let (logits, state) = ([9.0, 0.0, 1.0, -1.0], state(&[2, 1, 1], 2));
        let total = 2.0 + 1f64.exp() + (-1f64).exp();
        let (mut second_after, mut count) = (0.0, 0.0);
        for step in 0..10_000 {
            let picks = Picks::draw(&logits, &state, (f64::from(step) + 0.5) / 1e4);
            assert!((picks.shares[0][0] - 2.0 / total).abs() < 1e-6 && picks.shares.len() == 2);
            // The second row has a single job. It is gone once it is picked.
            second_after += f64::from(u8::from(picks.shares[1][1] == 0.0));
            count += 1.0;
        }
        assert!((second_after / count - 1f64.exp() / total).abs() < 1e-3, "{}", second_after / count);
    }

    #[test]
    fn on_one_core_value_and_slopes_are_those_of_the_discrete_algorithm() {
        let (state, alpha) = (state(&[1, 2, 1], 1), 0.3);
        let logits = [5.0f32, 0.4, -0.3, 0.9];
        let (first, second) = ([0.1f32, 0.5, 0.2, -0.4], [0.0f32, 0.2, 0.9, 0.1]);
        let critics = [Judged { q: &first, value: 1.0 }, Judged { q: &second, value: 0.7 }];
        let loss = |logits: &[f32], slopes: &mut [f32]| {
            Picks::draw(logits, &state, 0.5).policy_loss(alpha, critics, 1.0, slopes)
        };
        let mut slopes = [0.0; 4];
        loss(&logits, &mut slopes);
        assert_eq!(slopes[0], 0.0, "idling is masked");
        for place in 1..4 {
            let at = |step: f32| {
                let mut moved = logits;
                moved[place] += step;
                loss(&moved, &mut [0.0; 4])
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - f64::from(slopes[place])).abs() < 1e-4, "{place}: {slope} {}", slopes[place]);
        }
        // The best policy for these critics is proportional to exp(worth / α): there the slopes vanish.
        let worth = [1.0 + 0.4, 1.0 + 0.1, 0.5f64].map(|first| first);
        let lower = [worth[0].min(0.7 + 0.2), worth[1].min(0.7 + 0.9), worth[2].min(0.7 + 0.1)];
        let best = [0.0, lower[0] / alpha, lower[1] / alpha, lower[2] / alpha].map(|logit| logit as f32);
        let mut slopes = [0.0; 4];
        let least = loss(&best, &mut slopes);
        assert!(slopes.iter().all(|slope| slope.abs() < 1e-6), "{slopes:?}");
        let soft = -alpha
            * [1.0, 2.0, 1.0].iter().zip(lower).map(|(count, worth)| count * (worth / alpha).exp()).sum::<f64>().ln();
        assert!((least - soft).abs() < 1e-6, "{least} {soft}");
    }
}
