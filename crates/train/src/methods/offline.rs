//! Offline learning: from logged runs of other schedulers alone, without acting.
//!
//! Two algorithms. Conservative Q-learning is [`Dqn`] with a penalty on actions that were not logged. Implicit
//! Q-learning never values an action that was not logged: the first of two critics learns an upper expectile of the
//! logged values, and the policy clones logged actions weighted by their advantage.
//!
//! Papers: Kumar et al., "Conservative Q-Learning for Offline Reinforcement Learning" (2020); Kostrikov et al.,
//! "Offline Reinforcement Learning with Implicit Q-Learning" (2022). Deviations:
//! - CQL: the penalty is the negative logarithm of the softmax likelihood of the jobs that ran, with a constant weight.
//! - IQL: the expectile value is the value head of the first critic, and not a network of its own.
//! - IQL: the exponent of the advantage weight is clamped to −10 … 3, which bounds the weight at about 20 instead of
//!   the paper's 100.
//! - IQL: critic and policy have the same learning rate.

use std::sync::Arc;

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, LearningLosses, likelihood, q_value_of};

use crate::checkpoint::{decode_memory, encode_memory};
use crate::critic::Critic;
use crate::environment::Ending;
use crate::error::TrainError;
use crate::fleet::{Episodes, Fleet, FleetError, mix};
use crate::learner::{Learner, Outputs, SampleLoss, UpdateFigures};
use crate::limits::{negative, not_a_share, not_whole};
use crate::method::{Algorithm, Method, MethodDevice, NetworkPart, Phase, TensorVisitor};
use crate::methods::dqn::{Dqn, DqnMemory, DqnSettings};
use crate::recipe::Recipe;
use crate::replay_buffer::{ReplayBuffer, Transition};
use crate::sample::Sample;
use crate::updates::StepSize;

/// Settings of offline learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OfflineSettings {
    /// Names of the schedulers whose runs are logged, in equal parts; [`crate::OPTIMUM`] may be one. At least one;
    /// default `edf`, `edf-skip` and `mh-edf`.
    pub teachers: Vec<String>,
    /// Transitions that are logged; at least 1, default 20,000.
    pub transitions: usize,
    /// Updates per phase; at least 1, default 500.
    pub updates: u64,
    /// Algorithm that learns from the log; default conservative Q-learning with weight 1.
    pub algorithm: OfflineAlgorithm,
    /// Settings of the Q-values. Those that concern acting are not used, except `environments`, in which the log is
    /// made, and `may_idle`.
    pub dqn: DqnSettings,
}

/// Algorithm that learns from logged runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OfflineAlgorithm {
    /// Conservative Q-learning: actions that were not logged get lower values.
    Cql {
        /// Weight of the penalty, 0 or more; see [`DqnSettings::conservative`].
        conservative: f64,
    },
    /// Implicit Q-learning: state values by expectile regression, the policy by advantage-weighted cloning of what was
    /// logged.
    Iql {
        /// Expectile of the logged values, 0 to 1; above 0.5, so that the value is that of good actions.
        expectile: f64,
        /// Inverse temperature of the advantage weights, 0 or more; 0 clones everything alike.
        sharpness: f64,
    },
}

impl Default for OfflineSettings {
    fn default() -> Self {
        OfflineSettings {
            teachers: vec!["edf".into(), "edf-skip".into(), "mh-edf".into()],
            transitions: 20_000,
            updates: 500,
            algorithm: OfflineAlgorithm::Cql { conservative: 1.0 },
            dqn: DqnSettings::default(),
        }
    }
}

impl Method for OfflineSettings {
    const NAME: &'static str = "offline";

    fn problem(&self, recipe: &Recipe) -> Option<String> {
        if self.teachers.is_empty() {
            return Some("teachers names no scheduler".into());
        }
        let algorithm = match self.algorithm {
            OfflineAlgorithm::Cql { conservative } => negative(&[("conservative", conservative)]),
            OfflineAlgorithm::Iql { expectile, sharpness } => {
                not_a_share(&[("expectile", expectile)]).or_else(|| negative(&[("sharpness", sharpness)]))
            }
        };
        let whole = [("transitions", self.transitions), ("updates", self.updates as usize)];
        not_whole(&whole).or(algorithm).or_else(|| self.dqn.problem(recipe))
    }

    fn learns(&self, _part: NetworkPart) -> bool {
        false
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn teachers(&self) -> &[String] {
        &self.teachers
    }

    fn begin<D: MethodDevice>(&self, recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Offline::new(self.clone(), recipe, learner))
    }
}

/// Offline learning: its settings, the log, and the critics if it has any.
struct Offline<D: Device> {
    settings: OfflineSettings,
    /// Holds the log as its replay buffer.
    dqn: Dqn<D>,
    objective: Objective<D>,
}

/// What an update improves.
enum Objective<D: Device> {
    Conservative,
    Implicit { critics: Box<ImplicitCritics<D>>, expectile: f64, sharpness: f64 },
}

impl<D: LearningLosses> Algorithm<D> for Offline<D> {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let Phase { training_seed, rng, episodes, updates, .. } = phase;
        if self.dqn.replay.is_empty() {
            self.dqn.replay = log_runs(&self.settings, episodes, mix(*training_seed, 4))?;
        }
        for _ in 0..self.settings.updates {
            let size = updates.next_size();
            match &mut self.objective {
                Objective::Conservative => {
                    let update = self.dqn.update(learner, rng, size);
                    updates.queue(learner, update)?;
                }
                Objective::Implicit { critics, expectile, sharpness } => {
                    let figures = critics.update(&self.dqn, (*expectile, *sharpness), learner, rng, size);
                    updates.report(learner, figures)?;
                }
            }
        }
        updates.flush(learner)
    }

    fn may_idle(&self) -> bool {
        self.settings.dqn.may_idle
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        let critic_steps = match &self.objective {
            Objective::Conservative => [0; 2],
            Objective::Implicit { critics, .. } => critics.critics.each_ref().map(|critic| critic.learner.adam.steps),
        };
        encode_memory(&(critic_steps, self.dqn.to_memory()))
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        let (critic_steps, dqn): ([u64; 2], DqnMemory) = decode_memory(memory)?;
        self.dqn.restore_memory(dqn);
        match &mut self.objective {
            Objective::Conservative => {}
            Objective::Implicit { critics, .. } => {
                let both = critics.critics.iter_mut().zip(critic_steps);
                both.for_each(|(critic, steps)| critic.learner.adam.steps = steps);
            }
        }
        Ok(())
    }

    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        self.dqn.visit_tensors(learner, each);
        match &mut self.objective {
            Objective::Conservative => {}
            Objective::Implicit { critics, .. } => {
                for (place, critic) in critics.critics.iter_mut().enumerate() {
                    critic.visit(&format!("judge-{place}"), each);
                }
            }
        }
    }
}

impl<D: LearningLosses> Offline<D> {
    /// Nothing logged so far, and critics with random weights if the algorithm has any.
    fn new(settings: OfflineSettings, recipe: &Recipe, learner: &mut Learner<D>) -> Offline<D> {
        let (dqn_settings, objective) = match settings.algorithm {
            OfflineAlgorithm::Cql { conservative } => {
                (DqnSettings { conservative, ..settings.dqn.clone() }, Objective::Conservative)
            }
            OfflineAlgorithm::Iql { expectile, sharpness } => {
                let critics = Box::new(ImplicitCritics::new(recipe, learner));
                (settings.dqn.clone(), Objective::Implicit { critics, expectile, sharpness })
            }
        };
        Offline { dqn: Dqn::new(dqn_settings, learner), settings, objective }
    }
}

/// Logs runs of the teachers, in equal parts, until there are as many transitions as the settings say.
pub fn log_runs(settings: &OfflineSettings, episodes: &Episodes, seed: u64) -> Result<ReplayBuffer, FleetError> {
    let mut replay = ReplayBuffer::new(settings.transitions, settings.dqn.priority);
    for (index, name) in settings.teachers.iter().enumerate() {
        let episodes = Episodes { teacher: Some(name.clone()), ..episodes.clone() };
        let mut fleet = Fleet::new(episodes, settings.dqn.replay.environments, mix(seed, index as u64))?;
        let logged = settings.transitions * (index + 1) / settings.teachers.len();
        while replay.len() < logged {
            for member in &mut fleet.members {
                let (state, jobs) = (Arc::new(member.sample()), member.teacher_jobs());
                let chosen = member.rows_of(&jobs);
                let outcome = member.act(&fleet.episodes, &jobs)?;
                let is_last = outcome.ending == Some(Ending::Terminated);
                replay.push(Transition {
                    state,
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
        }
    }
    Ok(replay)
}

/// The critics' Q-values do not use the value head, which leaves that of the first critic free for the expectile.
const IS_DUELING: bool = false;

/// The two critics of implicit Q-learning. An action is worth the lower of their target networks' values.
struct ImplicitCritics<D: Device> {
    critics: [Critic<D>; 2],
}

impl<D: LearningLosses> ImplicitCritics<D> {
    /// Critics with random weights, of the policy's architecture.
    fn new(recipe: &Recipe, policy: &Learner<D>) -> ImplicitCritics<D> {
        let architecture = &policy.network.architecture;
        let critic = |number: u64| Critic::new(architecture.clone(), mix(recipe.seed, number), recipe, policy);
        ImplicitCritics { critics: [critic(2), critic(5)] }
    }

    /// Makes one update of the critics and then one of the policy, on the same batch of the log. Returns the policy's
    /// loss and the norm of the first critic's gradient.
    fn update(
        &mut self,
        dqn: &Dqn<D>,
        (expectile, sharpness): (f64, f64),
        policy: &mut Learner<D>,
        rng: &mut Pcg64,
        size: StepSize,
    ) -> UpdateFigures {
        let settings = &dqn.settings;
        let draw = dqn.replay.draw(settings.replay.batch, 1.0, rng);
        let transitions: Vec<&Transition> = draw.places.iter().map(|place| dqn.replay.get(*place)).collect();
        let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
        let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
        let next_values = self.critics[0].learner.outputs(None, &next).value;
        let [first, second] =
            self.critics.each_mut().map(|critic| critic.learner.outputs(Some(&critic.target), &states));
        let action_value = |index: usize| {
            let by = |outputs: &Outputs| q_value_of(IS_DUELING, outputs.q(index), 0.0, &transitions[index].chosen);
            by(&first).min(by(&second))
        };
        let action_values: Vec<f32> = (0..states.len()).map(action_value).collect();
        let sample_weight = 1.0 / settings.replay.batch as f32;
        let mut norm = 0.0;
        for (place, critic) in self.critics.iter_mut().enumerate() {
            critic.learner.gradients(&states, None, |index, q, value, by_q| {
                let transition = transitions[index];
                let target = transition.reward + transition.discount * next_values[index];
                let error = q_value_of(IS_DUELING, q, 0.0, &transition.chosen) - target;
                by_q[0] += error * sample_weight;
                for row in &transition.chosen {
                    by_q[*row as usize] += error * sample_weight;
                    by_q[0] -= error * sample_weight;
                }
                let loss = f64::from(sample_weight * 0.5 * error * error);
                if place > 0 {
                    return SampleLoss { loss, by_value: 0.0 };
                }
                let over = action_values[index] - value;
                let weight = if over < 0.0 { 1.0 - expectile } else { expectile } as f32;
                let loss = loss + f64::from(sample_weight * weight * over * over);
                SampleLoss { loss, by_value: -2.0 * weight * over * sample_weight }
            });
            let update = critic.learner.step(Vec::new(), size);
            critic.blend(settings.replay.target_share);
            if place == 0 {
                norm = critic.learner.figures(&update).norm;
            }
        }
        let loss = policy.gradients(&states, None, |index, q, _, by_q| {
            let transition = transitions[index];
            let advantage = f64::from(action_values[index] - first.value[index]);
            let weight = (sharpness * advantage).clamp(-10.0, 3.0).exp();
            let likelihood = likelihood(q, &transition.state.counts, &transition.chosen);
            let factor = weight as f32 * sample_weight;
            by_q.iter_mut().zip(&likelihood.gradient).for_each(|(by_q, slope)| *by_q = -factor * slope);
            SampleLoss { loss: -likelihood.log * f64::from(factor), ..SampleLoss::default() }
        });
        policy.step(Vec::new(), size);
        UpdateFigures { loss, norm }
    }
}
