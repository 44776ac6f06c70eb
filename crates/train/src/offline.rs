//! Learning from logged runs alone: conservative Q-learning, and implicit Q-learning, which never asks what an action that was not logged is worth.

use std::sync::Arc;

use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, Tensors, likelihood, value_of};

use crate::dqn::{Dqn, DqnSettings};
use crate::environment::Ending;
use crate::fleet::{Episodes, Fleet, FleetError, mix};
use crate::learner::{Learner, SampleLoss, UpdateFigures};
use crate::replay_buffer::{ReplayBuffer, Transition};
use crate::sample::Sample;

/// How offline learning learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OfflineSettings {
    /// The schedulers whose runs are logged, in equal parts; `optimum` may be one.
    pub teachers: Vec<String>,
    /// Transitions logged.
    pub transitions: usize,
    /// Updates in a phase.
    pub updates: u64,
    /// What is done with them.
    pub algorithm: OfflineAlgorithm,
    /// The settings of the Q-values.
    pub dqn: DqnSettings,
}

/// What is done with logged runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OfflineAlgorithm {
    /// Conservative Q-learning: what was not logged is worth less.
    Cql {
        /// Weight of the penalty; see [`DqnSettings::conservative`].
        conservative: f64,
    },
    /// Implicit Q-learning: values by expectiles, the policy by weighing what was logged by its advantage.
    Iql {
        /// The expectile, above a half.
        expectile: f64,
        /// How sharply advantages weigh.
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

/// Logs runs of the teachers.
pub fn log_runs(settings: &OfflineSettings, episodes: &Episodes, seed: u64) -> Result<ReplayBuffer, FleetError> {
    let mut replay = ReplayBuffer::new(settings.transitions, settings.dqn.priority);
    for (place, name) in settings.teachers.iter().enumerate() {
        let episodes = Episodes { teacher: Some(name.clone()), ..episodes.clone() };
        let mut fleet = Fleet::new(episodes, settings.dqn.environments, mix(seed, place as u64))?;
        let share = settings.transitions * (place + 1) / settings.teachers.len();
        while replay.len() < share {
            for slot in &mut fleet.slots {
                let (state, jobs) = (Arc::new(slot.sample()), slot.teacher_jobs());
                let chosen = slot.rows_of(&jobs);
                let outcome = slot.act(&fleet.episodes, &jobs)?;
                let is_last = outcome.ending == Some(Ending::Terminated);
                replay.push(Transition {
                    state,
                    chosen,
                    reward: outcome.reward as f32,
                    discount: if is_last { 0.0 } else { outcome.discount as f32 },
                    next: Arc::new(slot.sample()),
                });
                if outcome.ending.is_some() {
                    slot.restart(&fleet.episodes)?;
                }
            }
        }
    }
    Ok(replay)
}

/// Without a value head of its own in the Q-values, that head is free to be the expectile.
const IS_DUELING: bool = false;

/// Implicit Q-learning's judge: a second network for Q-values and values, and its target.
pub struct Critic<D: Device<Real = f32>> {
    /// The judging network.
    pub learner: Learner<D>,
    /// Its target.
    pub target: Tensors<D>,
}

impl<D: Device<Real = f32>> Critic<D> {
    /// One step of learning: the judge's, then the policy's.
    pub fn update(
        &mut self,
        dqn: &Dqn<D>,
        (expectile, sharpness): (f64, f64),
        policy: &mut Learner<D>,
        rng: &mut Pcg64,
        rate: f64,
        clip: f64,
    ) -> UpdateFigures {
        let settings = &dqn.settings;
        let draw = dqn.replay.draw(settings.batch, 1.0, rng);
        let transitions: Vec<&Transition> = draw.places.iter().map(|place| dqn.replay.get(*place)).collect();
        let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
        let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
        let next_values = self.learner.outputs(None, &next).value;
        let judged = self.learner.outputs(Some(&self.target), &states);
        let worth: Vec<f32> = (0..states.len())
            .map(|place| value_of(IS_DUELING, judged.q(place), 0.0, &transitions[place].chosen))
            .collect();
        let share = 1.0 / settings.batch as f32;
        self.learner.gradients(&states, None, |place, q, value, by_q| {
            let transition = transitions[place];
            let target = transition.reward + transition.discount * next_values[place];
            let error = value_of(IS_DUELING, q, 0.0, &transition.chosen) - target;
            by_q[0] += error * share;
            for row in &transition.chosen {
                by_q[*row as usize] += error * share;
                by_q[0] -= error * share;
            }
            let over = worth[place] - value;
            let weight = if over < 0.0 { 1.0 - expectile } else { expectile } as f32;
            let loss = f64::from(share * (0.5 * error * error + weight * over * over));
            SampleLoss { loss, by_value: -2.0 * weight * over * share }
        });
        let judges = self.learner.step(Vec::new(), rate, clip);
        self.learner.blend_into(&mut self.target, settings.target_share as f32);
        let loss = policy.gradients(&states, None, |place, q, _, by_q| {
            let transition = transitions[place];
            let advantage = f64::from(worth[place] - judged.value[place]);
            let weight = (sharpness * advantage).clamp(-10.0, 3.0).exp();
            let likelihood = likelihood(q, &transition.state.counts, &transition.chosen);
            let factor = weight as f32 * share;
            by_q.iter_mut().zip(&likelihood.gradient).for_each(|(by_q, slope)| *by_q = -factor * slope);
            SampleLoss { loss: -likelihood.log * f64::from(factor), ..SampleLoss::default() }
        });
        policy.step(Vec::new(), rate, clip);
        UpdateFigures { loss, norm: self.learner.figures(&judges).norm }
    }
}
