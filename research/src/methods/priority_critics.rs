//! Twin critics of priorities: networks that read the token and the priority of every ready job.
//!
//! A critic has the policy's encoder with one more real-valued input of a job's row, its priority. It is a per-token
//! critic: the value of a state and its priorities is Q(s, a) = V + m/n · Σ q_job, over all n ready jobs, where m of
//! them run. V is the value head, which reads all rows through attention.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use temponet_grad::Device;
use temponet_infer::{Architecture, RealInput};
use temponet_train::{Critic, Learner, Outputs, Recipe, Sample, SampleLoss, StepSize, UpdateFigures, training_seed};

/// A choice by priorities and its result, up to the next choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PriorityTransition {
    /// State of the choice.
    pub state: Arc<Sample>,
    /// Priority of each job row, −1 to 1.
    pub priorities: Vec<f32>,
    /// Reward until the next choice, discounted to this one.
    pub reward: f32,
    /// Discount factor at the next choice; 0 if the episode terminated.
    pub discount: f32,
    /// State of the next choice.
    pub next: Arc<Sample>,
}

/// Returns a state as the critics read it: with the priority of each job row as its last real-valued input.
pub(super) fn with_priorities(state: &Sample, priorities: &[f32]) -> Sample {
    let inputs = state.real.len() / state.counts.len().max(1);
    let mut real = Vec::with_capacity(state.real.len() + priorities.len());
    for (row, priority) in priorities.iter().enumerate() {
        real.extend_from_slice(&state.real[row * inputs..(row + 1) * inputs]);
        real.push(*priority);
    }
    Sample { real, ..state.clone() }
}

/// Returns the weight of each job row's output in Q(s, a): the jobs of the row as a share of the ready jobs, times the
/// number of jobs that run.
fn row_weights(state: &Sample) -> impl Iterator<Item = f32> {
    let ready: u32 = state.counts.iter().sum();
    let scale = state.cores.min(ready) as f32 / ready.max(1) as f32;
    state.counts.iter().map(move |count| scale * *count as f32)
}

/// Value of one state with its priorities, by the outputs of a critic.
fn value_of(state: &Sample, q: &[f32], value: f32) -> f32 {
    row_weights(state).zip(&q[1..]).fold(value, |sum, (weight, q)| sum + weight * q)
}

/// Two critics, so that the lower of their values can be taken.
pub(super) struct PriorityCritics<D: Device> {
    pub(super) critics: [Critic<D>; 2],
}

impl<D: Device> PriorityCritics<D> {
    /// Two critics with random weights of their own.
    pub(super) fn new(recipe: &Recipe, policy: &Learner<D>) -> PriorityCritics<D> {
        let architecture = policy.network.architecture.clone();
        let RealInput { inputs, hidden } = architecture.real.unwrap_or(RealInput { inputs: 0, hidden: 0 });
        let real = Some(RealInput { inputs: inputs + 1, hidden });
        let architecture = Architecture { real, ..architecture.without_actor() };
        let critic =
            |number: u64| Critic::new(architecture.clone(), training_seed(recipe.seed, 5 + number), recipe, policy);
        PriorityCritics { critics: [critic(0), critic(1)] }
    }

    /// Returns the values of some states with their priorities: the lower of the two target networks.
    pub(super) fn target_values(&mut self, states: &[&Sample]) -> Vec<f32> {
        let [first, second] = self.critics.each_mut().map(|critic| {
            let outputs = critic.learner.outputs(Some(&critic.target), states);
            let value = |(index, state): (usize, &&Sample)| value_of(state, outputs.q(index), outputs.value[index]);
            states.iter().enumerate().map(value).collect::<Vec<f32>>()
        });
        first.into_iter().zip(second).map(|(first, second)| first.min(second)).collect()
    }

    /// Makes one update of both critics towards these targets. Returns the first critic's figures.
    pub(super) fn learn(&mut self, states: &[&Sample], targets: &[f32], size: StepSize) -> UpdateFigures {
        let share = 1.0 / states.len().max(1) as f32;
        let [first, _] = self.critics.each_mut().map(|Critic { learner, .. }| {
            let loss = learner.gradients(states, None, |index, q, value, by_q| {
                let error = value_of(states[index], q, value) - targets[index];
                let slopes = by_q[1..].iter_mut().zip(row_weights(states[index]));
                slopes.for_each(|(slope, weight)| *slope = error * share * weight);
                SampleLoss { loss: f64::from(0.5 * error * error * share), by_value: error * share }
            });
            let update = learner.step(Vec::new(), size);
            UpdateFigures { loss, norm: learner.figures(&update).norm }
        });
        first
    }

    /// Returns the gradient of each state's value with respect to its priorities, by the first critic, or by the critic
    /// with the lower value.
    pub(super) fn slopes(&mut self, states: &[&Sample], of_lower: bool) -> Vec<Vec<f32>> {
        let is_first: Vec<bool> = if of_lower {
            let [first, second] = self.critics.each_mut().map(|critic| critic.learner.outputs(None, states));
            let value =
                |outputs: &Outputs, index: usize| value_of(states[index], outputs.q(index), outputs.value[index]);
            (0..states.len()).map(|index| value(&first, index) <= value(&second, index)).collect()
        } else {
            vec![true; states.len()]
        };
        let mut all: Vec<Vec<f32>> = states.iter().map(|state| vec![0.0; state.counts.len()]).collect();
        for (critic, number) in self.critics.iter_mut().zip([true, false]) {
            let own: Vec<usize> = (0..states.len()).filter(|index| is_first[*index] == number).collect();
            let judged: Vec<&Sample> = own.iter().map(|index| states[*index]).collect();
            if judged.is_empty() {
                continue;
            }
            let gradients = critic.learner.input_gradients(&judged, |index, by_q| {
                by_q[1..].iter_mut().zip(row_weights(judged[index])).for_each(|(slope, weight)| *slope = weight);
                1.0
            });
            let mut rest = &gradients[..];
            for (index, state) in own.iter().zip(judged) {
                let (part, others) = rest.split_at(state.real.len());
                let inputs = part.len() / state.counts.len().max(1);
                // The priority is the last input of a row.
                let last = part.chunks_exact(inputs.max(1)).map(|row| row[inputs - 1]);
                all[*index].iter_mut().zip(last).for_each(|(slope, found)| *slope = found);
                rest = others;
            }
        }
        all
    }

    /// Moves both target networks towards their networks, by a share of the difference.
    pub(super) fn blend(&mut self, share: f64) {
        self.critics.iter_mut().for_each(|critic| critic.blend(share));
    }
}
