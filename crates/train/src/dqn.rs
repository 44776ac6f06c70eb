//! Deep Q-learning. The value of running some jobs is V(s) + Σ (A_k − A_idle), so the best choice is the greedy one.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Ahead, Device, Picks, Tape, Tensors, Values, Way};
use temponet_task::JobId;

use crate::environment::Ending;
use crate::exploration::{ExplorationBonus, VisitCounter};
use crate::fleet::{ChoiceOutcome, Fleet, FleetError};
use crate::learner::{Learner, PendingUpdate, ShardOutput, UpdateFigures};
use crate::replay_buffer::{ReplayBuffer, Transition};
use crate::sample::{Batch, Sample};
use crate::tape_network::{OutputRows, TapeNetwork};

/// How Q-learning learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnSettings {
    /// Choices made in a phase, by all environments together.
    pub steps: u64,
    /// A phase ends after so many whole episodes, of all environments together, if that is sooner; none: it has all its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episodes: Option<u64>,
    /// Environments that act together.
    pub environments: usize,
    /// Transitions of an update.
    pub batch: usize,
    /// Choices between updates.
    pub update_every: u64,
    /// Choices made before the first update.
    pub learn_from: u64,
    /// Transitions kept.
    pub replay: usize,
    /// Exponent of their priorities; nought draws uniformly.
    pub priority: f64,
    /// Share of the parameters that the target network takes over at each update.
    pub target_share: f64,
    /// The best choice is the network's own, its value the target network's.
    pub double: bool,
    /// A value head of its own; without it V is what idling is worth.
    pub dueling: bool,
    /// Choices that a transition spans.
    pub n_step: usize,
    /// Huber's loss with this bound; none, in a file `inf`, is the squared error.
    #[serde(with = "bound")]
    pub huber: Option<f64>,
    /// Random choices: their share at first and at last; it falls in a straight line over the first half of the stage's phases and then stays.
    pub epsilon: (f64, f64),
    /// What else makes it try.
    pub bonus: ExplorationBonus,
    /// May leave cores idle although jobs wait.
    pub may_idle: bool,
    /// Weight of the conservative penalty (CQL): the negative logarithm of the softmax likelihood of the jobs that ran. It raises their Q-values above the
    /// others', which is at once what cloning them would do.
    pub conservative: f64,
}

impl Default for DqnSettings {
    fn default() -> Self {
        DqnSettings {
            steps: 4_000,
            episodes: None,
            environments: 16,
            batch: 64,
            update_every: 4,
            learn_from: 1_000,
            replay: 100_000,
            priority: 0.0,
            target_share: 0.01,
            double: true,
            dueling: true,
            n_step: 1,
            huber: Some(1.0),
            epsilon: (1.0, 0.05),
            bonus: ExplorationBonus::None,
            may_idle: false,
            conservative: 0.0,
        }
    }
}

/// A bound in a file, where leaving it out means the default: no bound is an infinite one.
mod bound {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bound: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(bound.unwrap_or(f64::INFINITY))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Ok(Some(f64::deserialize(deserializer)?).filter(|bound| *bound != f64::INFINITY))
    }
}

/// Q-learning's memory.
pub struct Dqn<D: Device<Real = f32>> {
    /// How it learns.
    pub settings: DqnSettings,
    /// The target network.
    pub target: Tensors<D>,
    /// What it learns from.
    pub replay: ReplayBuffer,
    /// How often what was tried.
    pub counter: VisitCounter,
    /// Choices made in all.
    pub choices: u64,
}

/// A choice waiting for what follows it.
struct Pending {
    state: Arc<Sample>,
    chosen: Vec<u32>,
    reward: f64,
    discount: f64,
}

impl<D: Device<Real = f32>> Dqn<D> {
    /// With nothing learned from yet.
    pub fn new(settings: DqnSettings, learner: &mut Learner<D>) -> Dqn<D> {
        let replay = ReplayBuffer::new(settings.replay, settings.priority);
        let counter = VisitCounter::new(settings.bonus);
        Dqn { target: learner.copy_parameters(), replay, counter, choices: 0, settings }
    }

    /// What a job must be worth to run.
    fn threshold(&self, idle: f32) -> f32 {
        if self.settings.may_idle { idle } else { f32::NEG_INFINITY }
    }

    /// Acts for a phase, learning as it goes. `epsilon` is asked with the share of the phase that is done. `done` is told of each update, once the next one is queued, and may end the phase with an error.
    #[allow(clippy::too_many_arguments)]
    pub fn phase<E: From<FleetError>>(
        &mut self,
        learner: &mut Learner<D>,
        fleet: &mut Fleet,
        rng: &mut Pcg64,
        epsilon: impl Fn(f64) -> f64,
        mut rate: impl FnMut() -> (f64, f64),
        mut done: impl FnMut(&Learner<D>, UpdateFigures) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pending: Vec<VecDeque<Pending>> = fleet.slots.iter().map(|_| VecDeque::new()).collect();
        let (mut made, mut ended, mut last) = (0, 0, None);
        let share = |made: u64, ended: u64, settings: &DqnSettings| {
            let of_episodes = settings.episodes.map_or(0.0, |episodes| ended as f64 / episodes as f64);
            of_episodes.max(made as f64 / settings.steps as f64)
        };
        while share(made, ended, &self.settings) < 1.0 {
            let samples: Vec<Arc<Sample>> = fleet.slots.iter().map(|slot| Arc::new(slot.sample())).collect();
            let chosen = self.choose(learner, fleet, &samples, rng, epsilon(share(made, ended, &self.settings)));
            for (place, jobs) in chosen.iter().enumerate() {
                let slot = &mut fleet.slots[place];
                let rows = slot.rows_of(jobs);
                let outcome = slot.act(&fleet.episodes, jobs)?;
                let next = Arc::new(slot.sample());
                let state = samples[place].clone();
                pending[place].push_back(Pending { state, chosen: rows, reward: 0.0, discount: 1.0 });
                self.remember(&mut pending[place], outcome, &next);
                if outcome.ending.is_some() {
                    ended += 1;
                    slot.restart(&fleet.episodes)?;
                }
            }
            let before = self.choices / self.settings.update_every.max(1);
            self.choices += chosen.len() as u64;
            made += chosen.len() as u64;
            if self.choices < self.settings.learn_from || self.replay.is_empty() {
                continue;
            }
            for _ in before..self.choices / self.settings.update_every.max(1) {
                let (rate, clip) = rate();
                let queued = self.update(learner, rng, rate, clip);
                learner.tell(&mut last, Some(queued), &mut done)?;
            }
        }
        learner.tell(&mut last, None, &mut done)
    }

    /// Adds an outcome to the choices that wait, and keeps those that have waited long enough.
    fn remember(&mut self, pending: &mut VecDeque<Pending>, outcome: ChoiceOutcome, next: &Arc<Sample>) {
        for earlier in pending.iter_mut() {
            earlier.reward += earlier.discount * outcome.reward;
            earlier.discount *= outcome.discount;
        }
        while pending.len() >= self.settings.n_step.max(1) || (outcome.ending.is_some() && !pending.is_empty()) {
            let Some(oldest) = pending.pop_front() else { break };
            let is_last = outcome.ending == Some(Ending::Terminated);
            self.replay.push(Transition {
                state: oldest.state,
                chosen: oldest.chosen,
                reward: oldest.reward as f32,
                discount: if is_last { 0.0 } else { oldest.discount as f32 },
                next: next.clone(),
            });
        }
    }

    /// Jobs for every environment: at random at times, else the best with their bonus.
    fn choose(
        &mut self,
        learner: &mut Learner<D>,
        fleet: &Fleet,
        samples: &[Arc<Sample>],
        rng: &mut Pcg64,
        epsilon: f64,
    ) -> Vec<Vec<JobId>> {
        let is_random: Vec<bool> = samples.iter().map(|_| rng.random::<f64>() < epsilon).collect();
        let asked: Vec<&Sample> = samples.iter().zip(&is_random).filter(|(_, r)| !**r).map(|(s, _)| &**s).collect();
        let outputs = learner.outputs(None, &asked);
        let mut answered = 0..asked.len();
        let mut all = Vec::new();
        for (slot, is_random) in fleet.slots.iter().zip(is_random) {
            let view = slot.environment().view();
            let bin = |row: u32| {
                let (observation, scale) = (slot.observation(), slot.environment().scale());
                fleet.episodes.tokenizer.bin(observation.token(row), observation.real(row), scale)
            };
            let jobs = match if is_random { None } else { answered.next() } {
                Some(answer) => {
                    let q = outputs.q(answer);
                    let threshold = self.threshold(q[0]);
                    let bonus = |id: JobId, row: u32| {
                        let slack = bin(row);
                        self.settings.bonus.of(&self.counter, self.choices, slack, view.job(id).task) as f32
                    };
                    let mut jobs = slot.best(|_, id, row| q[row as usize] + bonus(id, row));
                    jobs.retain(|id| slot.rows_of(&[*id]).iter().all(|row| q[*row as usize] >= threshold));
                    jobs
                }
                None => slot.best(|_, _, _| rng.random()),
            };
            if self.settings.bonus != ExplorationBonus::None {
                for id in &jobs {
                    for row in slot.rows_of(&[*id]) {
                        self.counter.add(bin(row), view.job(*id).task);
                    }
                }
            }
            all.push(jobs);
        }
        all
    }

    /// One step of learning from what is remembered. Unless there are priorities, which need the errors, it waits for nothing.
    pub fn update(&mut self, learner: &mut Learner<D>, rng: &mut Pcg64, rate: f64, clip: f64) -> PendingUpdate<D> {
        let settings = &self.settings;
        let draw = self.replay.draw(settings.batch, 1.0, rng);
        let transitions: Vec<&Transition> = draw.places.iter().map(|place| self.replay.get(*place)).collect();
        let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
        let weights: Vec<f32> = draw.weights.iter().map(|weight| weight / settings.batch as f32).collect();
        let likelihood = settings.conservative as f32;
        let is_whole = likelihood > 0.0;
        let distinct: Vec<Vec<u32>> = transitions.iter().map(|transition| distinct(&transition.chosen)).collect();
        let wanted: Vec<&[u32]> = distinct.iter().map(Vec::as_slice).collect();
        // Rows in focus count from one in their own order.
        let in_focus = |(transition, distinct): (&&Transition, &Vec<u32>)| -> Vec<u32> {
            let at = |row: &u32| 1 + distinct.partition_point(|other| other < row) as u32;
            if is_whole { transition.chosen.clone() } else { transition.chosen.iter().map(at).collect() }
        };
        let chosen: Vec<Vec<u32>> = transitions.iter().zip(&distinct).map(in_focus).collect();
        let wanted = if is_whole { None } else { Some(&wanted[..]) };
        let targets = learner.each_shard(&states, |device, network, parameters, range| {
            self.targets(device, network, parameters, &transitions[range])
        });
        let found = learner.backward(&states, wanted, |tape, ShardOutput { shard, range, focus, output }| {
            let values = Values {
                picks: Picks::new(&focus.segments, &focus.counts, chosen[range.clone()].iter().map(Vec::as_slice)),
                weights: &weights[range],
                is_dueling: settings.dueling,
                bound: settings.huber.map(|bound| bound as f32),
                likelihood,
            };
            let (losses, total, errors) = tape.value_loss(output.q, output.value, &targets[shard], &values);
            (losses, (total, errors))
        });
        let (losses, errors): (Vec<D::Number>, Vec<D::Buffer>) = found.into_iter().unzip();
        let queued = learner.step(losses, rate, clip);
        learner.blend_into(&mut self.target, settings.target_share as f32);
        if settings.priority > 0.0 {
            let errors = errors.iter().flat_map(|errors| learner.download(errors));
            for (place, error) in draw.places.into_iter().zip(errors) {
                self.replay.set_td_error(place, f64::from(error));
            }
        }
        queued
    }

    /// What each transition should have been worth, on a device.
    fn targets(
        &self,
        device: &mut D,
        network: &TapeNetwork,
        parameters: &Tensors<D>,
        transitions: &[&Transition],
    ) -> D::Buffer {
        let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
        let batch = Batch::of(&next);
        let focus = OutputRows::all(&batch);
        let chooser = self.settings.double.then(|| {
            let mut tape = Tape::new(device, parameters);
            let output = network.forward(&mut tape, &batch, &focus);
            tape.keep(output.q)
        });
        let way = |transition: &&Transition| Way {
            places: transition.next.cores,
            reward: transition.reward,
            discount: transition.discount,
        };
        let ahead = Ahead {
            rows: &batch.segments,
            counts: &batch.counts,
            ways: &transitions.iter().map(way).collect::<Vec<_>>(),
            is_dueling: self.settings.dueling,
            may_idle: self.settings.may_idle,
        };
        let mut judge = Tape::new(device, &self.target);
        let output = network.forward(&mut judge, &batch, &focus);
        let targets = judge.best_values(&ahead, chooser.as_ref(), output.q, output.value);
        drop(judge);
        chooser.into_iter().for_each(|chooser| device.recycle(chooser));
        targets
    }
}

fn distinct(rows: &[u32]) -> Vec<u32> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows.dedup();
    rows
}
