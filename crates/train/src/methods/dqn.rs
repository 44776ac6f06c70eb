//! Deep Q-learning.
//!
//! An action is a set of jobs, one for each core. Its value is Q(s, jobs) = V(s) + Σ (A_job − A_idle), so the jobs with
//! the highest outputs are the best action on any number of cores. A network with speeds adds to each A_job the gain of
//! the speed that the job runs at, and the best action takes each job at its best speed.
//!
//! Papers: Mnih et al., "Human-level control through deep reinforcement learning" (Nature, 2015), and the options
//! Double DQN (van Hasselt et al., 2016), dueling networks (Wang et al., 2016), prioritized replay (Schaul et al.,
//! 2016), n-step returns, and the conservative penalty of CQL (Kumar et al., 2020). Further parts are variants
//! ([`DqnVariant`]). Deviations:
//! - A transition lasts from one choice to the next, and its discount is γ to the power of the time between them (a
//!   semi-Markov process).
//! - Advantages count relative to idling, not to their mean over the actions.
//! - The target network follows the network a little at each update, instead of being copied once in a while.
//! - The importance weights of prioritized replay correct the whole bias from the start (β = 1).
//! - An episode that the horizon cuts off is not a terminal state: the value of the state it ends in still counts.
//! - Adam instead of RMSProp; ε falls over the first half of the stage, whatever its length.
//! - A stage that begins with learned weights first rescales the outputs to returns (`logits_to_returns.rs`).

mod settings;
mod update;

use std::collections::VecDeque;
use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use temponet_grad::{Device, LearningLosses, Tensors};
use temponet_task::JobId;

use crate::checkpoint::{decode_memory, encode_memory};
use crate::environment::Ending;
use crate::error::TrainError;
use crate::exploration::{ExplorationBonus, VisitCounter};
use crate::fleet::{ChoiceOutcome, Fleet, mix};
use crate::learner::Learner;
use crate::method::{Algorithm, Phase, TensorVisitor};
use crate::methods::logits_to_returns::map_outputs_to_returns;
use crate::replay_buffer::{ReplayBuffer, Transition};
use crate::sample::{Sample, SampleView};
use crate::updates::{StepSize, Updates};

pub use settings::DqnSettings;

/// What Q-learning keeps in a checkpoint besides tensors: the replay buffer, the visit counter, the number of choices
/// made, and the optimizer steps of its variant.
pub(crate) type DqnMemory = (ReplayBuffer, VisitCounter, u64, u64);

/// Q-learning: its settings and what it remembers from phase to phase.
pub struct Dqn<D: Device> {
    /// Settings.
    pub settings: DqnSettings,
    /// Parameters of the target network.
    pub target: Tensors<D>,
    /// Transitions to learn from.
    pub replay: ReplayBuffer,
    /// Number of times that each (slack bin, task) pair was tried.
    pub counter: VisitCounter,
    /// Choices made so far, in all phases.
    pub choices: u64,
    /// What is done in another way; `None` is plain Q-learning.
    variant: Option<Box<dyn DqnVariant<D>>>,
}

/// Parts of Q-learning that a variant does in another way. The functions are called in this order.
pub trait DqnVariant<D: Device>: Sync {
    /// Changes the network before it acts and before an update, and before an update the target network, too.
    fn perturb(&mut self, learner: &mut Learner<D>, target: Option<&mut Tensors<D>>, rng: &mut Pcg64);

    /// Computes the gradients of an update, and returns its loss and the error of each transition, which decides its
    /// priority. `weights` are factors on the losses. `None` leaves the gradients to plain Q-learning.
    fn gradients(
        &self,
        learner: &mut Learner<D>,
        target: &Tensors<D>,
        settings: &DqnSettings,
        transitions: &[&Transition],
        weights: &[f32],
    ) -> Option<(f64, Vec<f32>)>;

    /// Takes back what [`DqnVariant::perturb`] changed. After the gradients of an update it gets the target network,
    /// the step size and the share that target networks move by, to learn from the gradients itself.
    fn restore(&mut self, learner: &mut Learner<D>, update: Option<(&mut Tensors<D>, StepSize, f32)>);

    /// Tensors of its own that a checkpoint keeps.
    fn tensors(&mut self) -> Vec<(&'static str, &mut Tensors<D>)>;

    /// Optimizer steps of its own, for a checkpoint.
    fn steps(&self) -> u64;

    /// Goes back to this number of optimizer steps.
    fn set_steps(&mut self, steps: u64);
}

/// A choice whose n-step return is not complete yet.
struct OpenTransition {
    state: Arc<Sample>,
    chosen: Vec<u32>,
    speeds: Vec<u8>,
    reward: f64,
    discount: f64,
}

impl<D: LearningLosses> Algorithm<D> for Dqn<D> {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let Phase { index, count, is_warm_start, seed, rng, episodes, updates, .. } = phase;
        // A distribution of returns has their scale: nothing but Q-learning gives one.
        if *index == 0 && *is_warm_start && learner.network.architecture.atoms().is_none() {
            let mut fleet = Fleet::new(episodes.clone(), self.settings.replay.environments, mix(*seed, 6))?;
            map_outputs_to_returns(&self.settings, learner, &mut fleet, rng)?;
            self.target = learner.copy_parameters();
        }
        let mut fleet = Fleet::new(episodes.clone(), self.settings.replay.environments, *seed)?;
        let (from, to) = self.settings.epsilon;
        let epsilon = |done: f64| from + (to - from) * (2.0 * (*index as f64 + done) / *count as f64).min(1.0);
        self.act_and_learn(learner, &mut fleet, rng, epsilon, updates)
    }

    fn may_idle(&self) -> bool {
        self.settings.may_idle
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        encode_memory(&self.to_memory())
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        self.restore_memory(decode_memory(memory)?);
        Ok(())
    }

    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        let mut others = vec![("target", &mut self.target)];
        others.extend(self.variant.iter_mut().flat_map(|variant| variant.tensors()));
        learner.visit(others, |name, device, tensors| each(name.into(), device, tensors));
    }
}

impl<D: LearningLosses> Dqn<D> {
    /// An empty replay buffer, and a target network that equals the learner's network.
    pub fn new(settings: DqnSettings, learner: &mut Learner<D>) -> Dqn<D> {
        let replay = ReplayBuffer::new(settings.replay.capacity, settings.priority);
        let counter = VisitCounter::new(settings.bonus);
        learner.network.dueling = settings.dueling;
        Dqn { target: learner.copy_parameters(), replay, counter, choices: 0, variant: None, settings }
    }

    /// The same with a variant of some of its parts.
    pub fn with_variant(self, variant: impl DqnVariant<D> + 'static) -> Dqn<D> {
        Dqn { variant: Some(Box::new(variant)), ..self }
    }

    pub(crate) fn to_memory(&self) -> DqnMemory {
        let variant_steps = self.variant.as_ref().map_or(0, |variant| variant.steps());
        (self.replay.clone(), self.counter.clone(), self.choices, variant_steps)
    }

    pub(crate) fn restore_memory(&mut self, memory: DqnMemory) {
        let variant_steps;
        (self.replay, self.counter, self.choices, variant_steps) = memory;
        if let Some(variant) = &mut self.variant {
            variant.set_steps(variant_steps);
        }
    }

    /// Acts for the steps or episodes of a phase, and makes an update every few choices. `epsilon` gives the
    /// probability of a random choice for the share of the phase that is done, 0 to 1.
    pub fn act_and_learn(
        &mut self,
        learner: &mut Learner<D>,
        fleet: &mut Fleet,
        rng: &mut Pcg64,
        epsilon: impl Fn(f64) -> f64,
        updates: &mut Updates<'_, D>,
    ) -> Result<(), TrainError> {
        let mut open: Vec<VecDeque<OpenTransition>> = fleet.members.iter().map(|_| VecDeque::new()).collect();
        let (mut made, mut ended) = (0, 0);
        let share_done = |made: u64, ended: u64, settings: &DqnSettings| {
            let of_episodes = settings.episodes.map_or(0.0, |episodes| ended as f64 / episodes as f64);
            of_episodes.max(made as f64 / settings.replay.steps as f64)
        };
        while share_done(made, ended, &self.settings) < 1.0 {
            let samples = fleet.samples();
            let chosen = self.choose(learner, fleet, &samples, rng, epsilon(share_done(made, ended, &self.settings)));
            for (index, (jobs, speeds)) in chosen.iter().enumerate() {
                let member = &mut fleet.members[index];
                let rows = member.rows_of(jobs);
                let outcome = member.act_at(&fleet.episodes, jobs, speeds)?;
                let next = Arc::new(member.sample());
                let (state, speeds) = (samples[index].clone(), speeds.clone());
                open[index].push_back(OpenTransition { state, chosen: rows, speeds, reward: 0.0, discount: 1.0 });
                self.remember(&mut open[index], outcome, &next);
                if outcome.ending.is_some() {
                    ended += 1;
                    member.restart(&fleet.episodes)?;
                }
            }
            made += chosen.len() as u64;
            let due = self.settings.replay.updates_due(&mut self.choices, chosen.len() as u64);
            for _ in 0..if self.replay.is_empty() { 0 } else { due } {
                let size = updates.next_size();
                let update = self.update(learner, rng, size);
                updates.queue(learner, update)?;
            }
        }
        updates.flush(learner)
    }

    /// Adds an outcome to the open transitions of an environment, and moves those that span enough choices to the
    /// replay buffer.
    fn remember(&mut self, open: &mut VecDeque<OpenTransition>, outcome: ChoiceOutcome, next: &Arc<Sample>) {
        for earlier in open.iter_mut() {
            earlier.reward += earlier.discount * outcome.reward;
            earlier.discount *= outcome.discount;
        }
        while open.len() >= self.settings.n_step.max(1) || (outcome.ending.is_some() && !open.is_empty()) {
            let Some(oldest) = open.pop_front() else { break };
            let is_last = outcome.ending == Some(Ending::Terminated);
            self.replay.push(Transition {
                state: oldest.state,
                chosen: oldest.chosen,
                speeds: oldest.speeds,
                reward: oldest.reward as f32,
                discount: if is_last { 0.0 } else { oldest.discount as f32 },
                next: next.clone(),
            });
        }
    }

    /// Chooses jobs and their speeds for every environment: random ones with probability `epsilon`, otherwise those
    /// with the highest Q-value plus bonus. The speeds are empty if the network has none.
    fn choose(
        &mut self,
        learner: &mut Learner<D>,
        fleet: &Fleet,
        samples: &[Arc<Sample>],
        rng: &mut Pcg64,
        epsilon: f64,
    ) -> Vec<(Vec<JobId>, Vec<u8>)> {
        let is_random: Vec<bool> = samples.iter().map(|_| rng.random::<f64>() < epsilon).collect();
        let greedy = samples.iter().zip(&is_random).filter(|(_, is_random)| !**is_random);
        let states: Vec<&Sample> = greedy.map(|(sample, _)| &**sample).collect();
        if let Some(variant) = &mut self.variant {
            variant.perturb(learner, None, rng);
        }
        let outputs = learner.outputs(None, &states);
        if let Some(variant) = &mut self.variant {
            variant.restore(learner, None);
        }
        let mut next_output = 0..states.len();
        let mut all = Vec::new();
        for ((member, is_random), sample) in fleet.members.iter().zip(is_random).zip(samples) {
            let view = member.environment().view();
            let bin = |row: u32| {
                let (token, real) = SampleView::from(&**sample).job_row(row);
                fleet.episodes.tokenizer.bin(token, real, member.environment().scale())
            };
            let speed_count = fleet.episodes.speeds as u8;
            let (jobs, speeds) = match if is_random { None } else { next_output.next() } {
                Some(output) => {
                    let mut q = outputs.q(output).to_vec();
                    for (row, q) in (1..).zip(&mut q[1..]) {
                        *q += outputs.best_speed(output, row).1;
                    }
                    let threshold = if self.settings.may_idle { q[0] } else { f32::NEG_INFINITY };
                    let bonus = |id: JobId, row: u32| {
                        let slack = bin(row);
                        self.settings.bonus.of(&self.counter, self.choices, slack, view.job(id).task) as f32
                    };
                    let mut jobs = member.top_jobs(|id, row| q[row as usize] + bonus(id, row));
                    jobs.retain(|id| member.rows_of(&[*id]).iter().all(|row| q[*row as usize] >= threshold));
                    let rows = if speed_count > 0 { member.rows_of(&jobs) } else { Vec::new() };
                    let speeds = rows.iter().map(|row| outputs.best_speed(output, *row).0).collect();
                    (jobs, speeds)
                }
                None => {
                    let jobs = member.top_jobs(|_, _| rng.random());
                    let drawn = jobs.iter().filter(|_| speed_count > 0);
                    let speeds = drawn.map(|_| rng.random_range(0..=speed_count)).collect();
                    (jobs, speeds)
                }
            };
            if self.settings.bonus != ExplorationBonus::None {
                for id in &jobs {
                    for row in member.rows_of(&[*id]) {
                        self.counter.add(bin(row), view.job(*id).task);
                    }
                }
            }
            all.push((jobs, speeds));
        }
        all
    }
}
