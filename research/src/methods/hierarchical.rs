//! A hierarchical scheduler (h-DQN): an upper level chooses an advisor to follow for some choices, and a lower level
//! chooses the jobs.
//!
//! One network serves both levels. The advisor is a feature of its idle row, so the lower level is conditioned on it.
//! With advisor o, the output of the idle row is the upper level's Q-value of following o, and the outputs of the job
//! rows are the lower level's. Every few choices, the upper level takes the advisor with the highest Q-value, and earns
//! the reward until it chooses again. The lower level earns the same reward and a bonus for running the jobs that its
//! advisor would run, so it learns where to deviate from the advisor. The deployed scheduler does the same with the
//! same numbers (`crates/temponet/src/learned/following.rs`).
//!
//! Papers: Kulkarni et al., "Hierarchical Deep Reinforcement Learning: Integrating Temporal Abstraction and Intrinsic
//! Motivation" (2016), over the options of Sutton, Precup and Singh, "Between MDPs and semi-MDPs" (1999). Deviations:
//! - Both levels are one network and share its encoder, instead of two networks.
//! - A goal is an advisor, a classical scheduler, and it is followed for a fixed number of choices instead of until it
//!   is reached.
//! - The intrinsic reward is added to the reward, instead of replacing it: to follow an advisor everywhere is no end in
//!   itself.
//! - The lower level's target assumes that its advisor stays.
//! - Discounts are γ to the power of the time between choices, and an episode that the horizon cuts off is not a
//!   terminal state.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet::Model;
use temponet::stages::{Feature, Tokenizer};
use temponet_grad::{Device, LearningLosses, Tensors, best_rows};
use temponet_infer::Weights;
use temponet_sched::advice::Advisor;
use temponet_train::limits::{negative, not_a_share, not_whole};
use temponet_train::{
    Algorithm, ChoiceOutcome, Ending, Fleet, FleetError, Learner, Method, MethodDevice, Outputs, Phase, Recipe,
    ReplayBuffer, ReplaySettings, Sample, SampleLoss, StepSize, TensorVisitor, TrainError, Transition, UpdateFigures,
    decode_memory, encode_memory,
};

/// Settings of the hierarchical scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HierarchicalSettings {
    /// Acting, learning and the replay buffers. Each level has a buffer and a batch of this size.
    #[serde(flatten)]
    pub replay: ReplaySettings,
    /// Probability of a random advisor, and of random jobs, at first and at last, each 0 to 1. It falls linearly over
    /// the first half of the stage's phases and then stays. Default (1, 0.05).
    pub epsilon: (f64, f64),
    /// Choices for which an advisor is followed; at least 1, default 8.
    pub period: u32,
    /// Weight of the lower level's bonus, 0 or more: it is earned if all jobs that run are those of the advisor, and in
    /// parts for parts of them. Default 0.5.
    pub agreement: f64,
}

impl Default for HierarchicalSettings {
    fn default() -> Self {
        HierarchicalSettings { replay: ReplaySettings::default(), epsilon: (1.0, 0.05), period: 8, agreement: 0.5 }
    }
}

impl Method for HierarchicalSettings {
    const NAME: &'static str = "hierarchical";

    fn problem(&self, recipe: &Recipe) -> Option<String> {
        let (first, last) = self.epsilon;
        let problem = self.replay.problem().or_else(|| not_whole(&[("period", self.period as usize)]));
        problem
            .or_else(|| not_a_share(&[("epsilon[0]", first), ("epsilon[1]", last)]))
            .or_else(|| negative(&[("agreement", self.agreement)]))
            .or_else(|| missing_feature(&recipe.tokenizer()))
    }

    fn updates(&self) -> u64 {
        self.replay.updates()
    }

    fn begin<D: MethodDevice>(&self, recipe: &Recipe, learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Hierarchical::new(self.clone(), &recipe.tokenizer(), learner))
    }
}

/// Number of advisors.
const ADVISORS: u16 = Advisor::ALL.len() as u16;

/// What the algorithm keeps in a checkpoint besides tensors: the replay buffers of the lower and of the upper level,
/// and the number of choices made.
type HierarchicalMemory = (ReplayBuffer, ReplayBuffer, u64);

/// The hierarchical scheduler: its settings and what it remembers from phase to phase.
struct Hierarchical<D: Device> {
    settings: HierarchicalSettings,
    /// Place of the advisor among the features of the idle row, and of the advice among the values of a job's token.
    places: (usize, usize),
    target: Tensors<D>,
    lower: ReplayBuffer,
    upper: ReplayBuffer,
    choices: u64,
}

/// Choice of the upper level in one environment that is being followed.
struct Following {
    /// State of the choice, with the advisor.
    state: Arc<Sample>,
    advisor: u16,
    /// Choices for which the advisor is still followed.
    left: u32,
    /// Reward so far, and the discount factor now.
    reward: f64,
    discount: f64,
}

impl<D: LearningLosses> Algorithm<D> for Hierarchical<D> {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let Phase { index, count, rng, updates, .. } = phase;
        let mut fleet = Fleet::new(phase.episodes.clone(), self.settings.replay.environments, phase.seed)?;
        let mut followed: Vec<Option<Following>> = fleet.members.iter().map(|_| None).collect();
        let (from, to) = self.settings.epsilon;
        let mut made = 0;
        while made < self.settings.replay.steps {
            let done = (*index as f64 + made as f64 / self.settings.replay.steps as f64) / *count as f64;
            let epsilon = from + (to - from) * (2.0 * done).min(1.0);
            self.act(learner, &mut fleet, &mut followed, epsilon, rng)?;
            made += fleet.members.len() as u64;
            let due = self.settings.replay.updates_due(&mut self.choices, fleet.members.len() as u64);
            for _ in 0..if self.upper.is_empty() { 0 } else { due } {
                let figures = self.update(learner, rng, updates.next_size());
                updates.report(learner, figures)?;
            }
        }
        Ok(())
    }

    fn candidate(&self, learner: &Learner<D>, tokenizer: Tokenizer, _best: &Weights, _phases: u64) -> Model {
        let mut model = Model { tokenizer, weights: learner.weights() };
        model.set_never_idles(true);
        model.set_following(self.settings.period);
        model
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        encode_memory(&(&self.lower, &self.upper, self.choices))
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        let memory: HierarchicalMemory = decode_memory(memory)?;
        (self.lower, self.upper, self.choices) = memory;
        Ok(())
    }

    fn visit_tensors(&mut self, learner: &mut Learner<D>, each: TensorVisitor<'_, D>) {
        learner.visit(vec![("target", &mut self.target)], |name, device, tensors| each(name.into(), device, tensors));
    }
}

impl<D: LearningLosses> Hierarchical<D> {
    /// Empty replay buffers, and a target network that equals the learner's network. The tokenizer must have the
    /// features that [`missing_feature`] asks for.
    fn new(settings: HierarchicalSettings, tokenizer: &Tokenizer, learner: &mut Learner<D>) -> Hierarchical<D> {
        Hierarchical {
            places: (tokenizer.advisor_place().unwrap_or_default(), advice_place(tokenizer).unwrap_or_default()),
            target: learner.copy_parameters(),
            lower: ReplayBuffer::new(settings.replay.capacity, 0.0),
            upper: ReplayBuffer::new(settings.replay.capacity, 0.0),
            choices: 0,
            settings,
        }
    }

    /// Returns a state in which an advisor is followed.
    fn following(&self, state: &Sample, advisor: u16) -> Sample {
        let mut state = state.clone();
        state.idle[self.places.0] = advisor;
        state
    }

    /// Lets every environment make one choice, by the levels or at random, and remembers it.
    fn act(
        &mut self,
        learner: &mut Learner<D>,
        fleet: &mut Fleet,
        followed: &mut [Option<Following>],
        epsilon: f64,
        rng: &mut Pcg64,
    ) -> Result<(), FleetError> {
        let samples: Vec<Sample> = fleet.members.iter().map(|member| member.sample()).collect();
        self.choose_advisors(learner, &samples, followed, epsilon, rng);
        let advisors: Vec<u16> =
            followed.iter().map(|following| following.as_ref().map_or(0, |following| following.advisor)).collect();
        let states: Vec<Arc<Sample>> =
            samples.iter().zip(&advisors).map(|(sample, advisor)| Arc::new(self.following(sample, *advisor))).collect();
        let outputs = learner.outputs(None, &states.iter().map(|state| &**state).collect::<Vec<_>>());
        for (place, state) in states.iter().enumerate() {
            let (member, advisor) = (&mut fleet.members[place], advisors[place]);
            let is_random = rng.random::<f64>() < epsilon;
            let q = outputs.q(place);
            let jobs = member.top_jobs(|_, row| if is_random { rng.random() } else { q[row as usize] });
            let chosen = member.rows_of(&jobs);
            let bonus = self.settings.agreement * self.agreement(state, &chosen, advisor);
            let outcome = member.act(&fleet.episodes, &jobs)?;
            let next = Arc::new(self.following(&member.sample(), advisor));
            let lower = ChoiceOutcome { reward: outcome.reward + bonus, ..outcome };
            self.lower.push(transition(state, chosen, lower, &next));
            if let Some(following) = &mut followed[place] {
                following.reward += following.discount * outcome.reward;
                following.discount *= outcome.discount;
                following.left -= 1;
                if following.left == 0 || outcome.ending.is_some() {
                    let whole = ChoiceOutcome { reward: following.reward, discount: following.discount, ..outcome };
                    self.upper.push(transition(&following.state, Vec::new(), whole, &next));
                    followed[place] = None;
                }
            }
            if outcome.ending.is_some() {
                member.restart(&fleet.episodes)?;
            }
        }
        Ok(())
    }

    /// Lets the upper level choose an advisor in the environments that follow none: a random one with probability
    /// `epsilon`, otherwise the one with the highest Q-value.
    fn choose_advisors(
        &self,
        learner: &mut Learner<D>,
        samples: &[Sample],
        followed: &mut [Option<Following>],
        epsilon: f64,
        rng: &mut Pcg64,
    ) {
        let free: Vec<usize> = (0..samples.len()).filter(|place| followed[*place].is_none()).collect();
        let all: Vec<Sample> = free.iter().flat_map(|place| self.with_each_advisor(&samples[*place])).collect();
        let outputs = learner.outputs(None, &all.iter().collect::<Vec<_>>());
        for (number, place) in free.into_iter().enumerate() {
            let best = best_advisor(&outputs, number).0;
            let advisor = if rng.random::<f64>() < epsilon { rng.random_range(0..ADVISORS) } else { best };
            let state = Arc::new(self.following(&samples[place], advisor));
            let left = self.settings.period.max(1);
            followed[place] = Some(Following { state, advisor, left, reward: 0.0, discount: 1.0 });
        }
    }

    fn with_each_advisor(&self, state: &Sample) -> impl Iterator<Item = Sample> {
        (0..ADVISORS).map(|advisor| self.following(state, advisor))
    }

    /// Share of the chosen jobs that the advisor would run, 0 to 1.
    fn agreement(&self, state: &Sample, chosen: &[u32], advisor: u16) -> f64 {
        let width = state.tokens.len() / state.counts.len().max(1);
        let is_advised = |row: &&u32| state.tokens[(**row as usize - 1) * width + self.places.1] >> advisor & 1 == 1;
        chosen.iter().filter(is_advised).count() as f64 / chosen.len().max(1) as f64
    }

    /// Makes one update of both levels, on a batch from each replay buffer. Returns their loss and the norm of its
    /// gradient.
    fn update(&mut self, learner: &mut Learner<D>, rng: &mut Pcg64, size: StepSize) -> UpdateFigures {
        let batch = self.settings.replay.batch;
        let (lower, upper) = (self.lower.draw(batch, 1.0, rng).places, self.upper.draw(batch, 1.0, rng).places);
        let lower: Vec<&Transition> = lower.iter().map(|place| self.lower.get(*place)).collect();
        let upper: Vec<&Transition> = upper.iter().map(|place| self.upper.get(*place)).collect();
        let next: Vec<&Sample> = lower.iter().map(|transition| &*transition.next).collect();
        let outputs = learner.outputs(Some(&self.target), &next);
        let mut targets: Vec<f32> = Vec::with_capacity(2 * batch);
        for (index, transition) in lower.iter().enumerate() {
            let (state, q) = (&transition.next, outputs.q(index));
            let best = best_rows(q, &state.counts, state.cores, f32::NEG_INFINITY);
            let value = outputs.value[index] + best.iter().map(|row| q[*row as usize]).sum::<f32>();
            targets.push(transition.reward + transition.discount * value);
        }
        let ahead: Vec<Sample> = upper.iter().flat_map(|transition| self.with_each_advisor(&transition.next)).collect();
        let outputs = learner.outputs(Some(&self.target), &ahead.iter().collect::<Vec<_>>());
        for (number, transition) in upper.iter().enumerate() {
            targets.push(transition.reward + transition.discount * best_advisor(&outputs, number).1);
        }
        let all: Vec<&Transition> = lower.into_iter().chain(upper).collect();
        let states: Vec<&Sample> = all.iter().map(|transition| &*transition.state).collect();
        let share = 1.0 / batch as f32;
        let loss = learner.gradients(&states, None, |index, q, value, by_q| {
            if index >= batch {
                let error = q[0] - targets[index];
                by_q[0] = share * error;
                return SampleLoss { loss: f64::from(0.5 * share * error * error), by_value: 0.0 };
            }
            let chosen = &all[index].chosen;
            let error = value + chosen.iter().map(|row| q[*row as usize]).sum::<f32>() - targets[index];
            chosen.iter().for_each(|row| by_q[*row as usize] += share * error);
            SampleLoss { loss: f64::from(0.5 * share * error * error), by_value: share * error }
        });
        let update = learner.step(Vec::new(), size);
        learner.blend_into(&mut self.target, self.settings.replay.target_share as f32);
        UpdateFigures { loss, norm: learner.figures(&update).norm }
    }
}

fn transition(state: &Arc<Sample>, chosen: Vec<u32>, outcome: ChoiceOutcome, next: &Arc<Sample>) -> Transition {
    let is_last = outcome.ending == Some(Ending::Terminated);
    Transition {
        state: state.clone(),
        chosen,
        speeds: Vec::new(),
        reward: outcome.reward as f32,
        discount: if is_last { 0.0 } else { outcome.discount as f32 },
        next: next.clone(),
    }
}

/// Returns the advisor with the highest Q-value by the upper level, and that value, for the state with this number
/// among states with each advisor.
fn best_advisor(outputs: &Outputs, number: usize) -> (u16, f32) {
    let value = |advisor: u16| outputs.q(number * usize::from(ADVISORS) + usize::from(advisor))[0];
    let values = (0..ADVISORS).map(|advisor| (advisor, value(advisor)));
    values.reduce(|best, other| if other.1 > best.1 { other } else { best }).unwrap_or_default()
}

/// Returns the place of the advice among the values of a job's token.
fn advice_place(tokenizer: &Tokenizer) -> Option<usize> {
    let place = tokenizer.features.iter().position(|feature| *feature == Feature::Advice)?;
    Some(place + usize::from(tokenizer.continuous.is_none()))
}

/// Returns what tokens of the hierarchical scheduler lack, or `None`.
fn missing_feature(tokenizer: &Tokenizer) -> Option<String> {
    if tokenizer.advisor_place().is_none() {
        return Some("hierarchical needs tokens with the idle feature \"advisor\"".into());
    }
    advice_place(tokenizer).is_none().then(|| "hierarchical needs tokens with the feature \"advice\"".into())
}
