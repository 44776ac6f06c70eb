//! Soft actor–critic (SAC) over the choice of jobs.
//!
//! The policy picks jobs for the cores one after the other without replacement, by the softmax of the network's
//! outputs. Two critics of their own learn Q(s, jobs) = V(s) + Σ (q_job − q_idle), as Q-learning does, but of the
//! policy and with its entropy as an additional reward. The policy follows the lower of the two. The learned outputs
//! are logits, and the deployed scheduler takes the highest ones.
//!
//! Papers: Haarnoja et al., "Soft Actor-Critic: Off-Policy Maximum Entropy Deep Reinforcement Learning with a
//! Stochastic Actor" (2018), and Christodoulou, "Soft Actor-Critic for Discrete Action Settings" (2019). Deviations:
//! - A choice is several picks. Expectations over the next pick are exact, given the picks before it, which are drawn;
//!   on one core this is the discrete algorithm. The gradient of the policy leaves out that an early pick changes what
//!   is left for later ones.
//! - The target takes the critic whose whole value is lower; the policy takes the lower one for each job.
//! - The critics are networks of their own; they do not share the policy's encoder.
//! - The temperature is fixed, or learned so that the entropy of the first pick is a share of the greatest possible
//!   one, the logarithm of the number of ready jobs.
//! - Discounts are γ to the power of the time between choices, and an episode that the horizon cuts off is not a
//!   terminal state.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, LearningLosses, q_value_of};
use temponet_train::limits::{not_a_share, not_positive};
use temponet_train::{
    Algorithm, Critic, Ending, Fleet, Learner, Method, MethodDevice, Phase, Recipe, ReplayBuffer, ReplaySettings,
    Sample, SampleLoss, StepSize, TensorVisitor, TrainError, Transition, UpdateFigures, Updates, decode_memory,
    encode_memory, gumbel, training_seed,
};

use super::soft_choice::{CriticOutput, SoftChoice};

/// Settings of soft actor–critic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SacSettings {
    /// Acting, learning and the replay buffer.
    #[serde(flatten)]
    pub replay: ReplaySettings,
    /// Weight of the entropy; by default learned for a tenth of the greatest entropy.
    pub temperature: Temperature,
}

impl Method for SacSettings {
    const NAME: &'static str = "sac";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        self.replay.problem().or_else(|| match self.temperature {
            Temperature::Fixed { alpha } => not_positive(&[("temperature.alpha", alpha)]),
            Temperature::Learned { entropy, rate } => {
                not_a_share(&[("temperature.entropy", entropy)]).or_else(|| not_positive(&[("temperature.rate", rate)]))
            }
        })
    }

    fn updates(&self) -> u64 {
        self.replay.updates()
    }

    fn begin<D: MethodDevice>(&self, recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Sac::new(self.clone(), recipe, learner))
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

impl Default for Temperature {
    fn default() -> Self {
        Temperature::Learned { entropy: 0.1, rate: 0.003 }
    }
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

/// What soft actor–critic keeps in a checkpoint besides tensors: the replay buffer, the number of choices made, the
/// logarithm of α, and the optimizer steps of the critics.
type SacMemory = (ReplayBuffer, u64, f64, [u64; 2]);

/// Soft actor–critic: its settings and what it remembers from phase to phase.
struct Sac<D: Device> {
    settings: SacSettings,
    critics: [Critic<D>; 2],
    replay: ReplayBuffer,
    choices: u64,
    log_alpha: f64,
}

impl<D: LearningLosses> Algorithm<D> for Sac<D> {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let mut fleet = Fleet::new(phase.episodes.clone(), self.settings.replay.environments, phase.seed)?;
        self.act_and_learn(learner, &mut fleet, &mut phase.rng, &mut phase.updates)
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        let steps = self.critics.each_ref().map(|critic| critic.learner.adam.steps);
        encode_memory(&(&self.replay, self.choices, self.log_alpha, steps))
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        let memory: SacMemory = decode_memory(memory)?;
        let steps;
        (self.replay, self.choices, self.log_alpha, steps) = memory;
        self.critics.iter_mut().zip(steps).for_each(|(critic, steps)| critic.learner.adam.steps = steps);
        Ok(())
    }

    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        learner.visit(Vec::new(), |name, device, tensors| each(name.into(), device, tensors));
        for (place, critic) in self.critics.iter_mut().enumerate() {
            critic.visit(&format!("critic-{place}"), each);
        }
    }
}

impl<D: LearningLosses> Sac<D> {
    /// An empty replay buffer, and two critics with random weights of their own.
    fn new(settings: SacSettings, recipe: &Recipe, learner: &Learner<D>) -> Sac<D> {
        let architecture = learner.network.architecture.clone().without_actor();
        let critic =
            |number: u64| Critic::new(architecture.clone(), training_seed(recipe.seed, 5 + number), recipe, learner);
        Sac {
            replay: ReplayBuffer::new(settings.replay.capacity, 0.0),
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
        while made < self.settings.replay.steps {
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
            made += samples.len() as u64;
            for _ in 0..self.settings.replay.updates_due(&mut self.choices, samples.len() as u64) {
                let figures = self.update(policy, rng, updates.next_size());
                updates.report(policy, figures)?;
            }
        }
        Ok(())
    }

    /// Makes one update of both critics, of the policy and of the temperature on a batch from the replay buffer.
    /// Returns the policy's loss and the norm of its gradient.
    fn update(&mut self, policy: &mut Learner<D>, rng: &mut Pcg64, size: StepSize) -> UpdateFigures {
        let draw = self.replay.draw(self.settings.replay.batch, 1.0, rng);
        let transitions: Vec<&Transition> = draw.places.iter().map(|place| self.replay.get(*place)).collect();
        let states: Vec<&Sample> = transitions.iter().map(|transition| &*transition.state).collect();
        let next: Vec<&Sample> = transitions.iter().map(|transition| &*transition.next).collect();
        let (alpha, share) = (self.log_alpha.exp(), 1.0 / self.settings.replay.batch as f32);
        let next_logits = policy.outputs(None, &next);
        let judged = self.critics.each_mut().map(|critic| critic.learner.outputs(Some(&critic.target), &next));
        let target = |index: usize| {
            let transition = transitions[index];
            let choice = SoftChoice::draw(next_logits.q(index), &transition.next, rng.random());
            let value = choice.soft_value(alpha, [0, 1].map(|critic| CriticOutput::of(&judged[critic], index)));
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
            critic.blend(self.settings.replay.target_share);
        }
        let judged = self.critics.each_mut().map(|critic| critic.learner.outputs(None, &states));
        let seeds: Vec<f64> = states.iter().map(|_| rng.random()).collect();
        let logits = policy.outputs(None, &states);
        let choice = |index: usize, logits: &[f32]| SoftChoice::draw(logits, states[index], seeds[index]);
        let surplus: f64 = match self.settings.temperature {
            Temperature::Fixed { .. } => 0.0,
            Temperature::Learned { entropy, .. } => {
                let one = |index: usize| {
                    let ready: u32 = states[index].counts.iter().sum();
                    choice(index, logits.q(index)).entropy() - entropy * f64::from(ready.max(1)).ln()
                };
                (0..states.len()).map(one).sum::<f64>() / states.len().max(1) as f64
            }
        };
        let loss = policy.gradients(&states, None, |index, logits, _, by_q| {
            let critics = [0, 1].map(|critic| CriticOutput::of(&judged[critic], index));
            let loss = choice(index, logits).policy_loss(alpha, critics, f64::from(share), by_q);
            SampleLoss { loss, by_value: 0.0 }
        });
        let update = policy.step(Vec::new(), size);
        if let Temperature::Learned { rate, .. } = self.settings.temperature {
            self.log_alpha -= rate * surplus;
        }
        UpdateFigures { loss, norm: policy.figures(&update).norm }
    }
}
