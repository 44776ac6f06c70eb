//! Acting for a round: every environment makes its choices, and the advantage of each is estimated.
//!
//! On a device that computes beside the processor there are several actors, each with a thread and a share of the
//! environments. While one waits for the device, the environments of the others act.

use std::panic::resume_unwind;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_grad::{Device, likelihood};

use super::{PpoSettings, state_value};
use crate::environment::Ending;
use crate::fleet::{ChoiceOutcome, Episodes, Fleet, FleetError, FleetMember, mix};
use crate::learner::{Learner, Outputs};
use crate::parallel::par_map;
use crate::sample::Sample;

/// Environments that one thread lets act at a time.
const MEMBERS_PER_TASK: usize = 8;
/// Environments whose advantages one thread estimates at a time.
const LISTS_PER_TASK: usize = 128;

/// One choice and its outcome.
pub(super) struct Choice {
    pub state: Arc<Sample>,
    /// Rows of the jobs that ran.
    pub chosen: Vec<u32>,
    /// Logarithm of the choice's likelihood when it was made.
    pub log: f64,
    /// Estimated return of the state.
    value: f64,
    outcome: ChoiceOutcome,
    /// State at the end of the episode, if the choice ended one.
    last: Option<Arc<Sample>>,
    pub advantage: f64,
    /// Return that the value head should have estimated.
    pub target: f64,
}

/// Lets every environment make its choices of a round; returns them environment by environment, in order, with their
/// advantages. Each actor has its share of the environments.
pub(super) fn choices<D: Device>(
    settings: &PpoSettings,
    actors: &mut [Learner<D>],
    fleet: &mut Fleet,
    seed: u64,
) -> Result<Vec<Choice>, FleetError> {
    let Fleet { episodes, members } = fleet;
    let size = members.len().div_ceil(actors.len()).max(1);
    let act = |actor: &mut Learner<D>, place: usize, members: &mut [FleetMember]| {
        let mut group = Group::new(members, seed, place * size, settings.length);
        for _ in 0..settings.length {
            let outputs = look(actor, &group.states);
            group.act(episodes, &outputs, settings)?;
        }
        Ok(group.with_advantages(actor, settings))
    };
    if let [actor] = actors {
        return act(actor, 0, members);
    }
    let groups = actors.iter_mut().zip(members.chunks_mut(size)).enumerate();
    let act = &act;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            groups.map(|(place, (actor, members))| scope.spawn(move || act(actor, place, members))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|payload| resume_unwind(payload))).collect()
    });
    results.into_iter().try_fold(Vec::new(), |mut all, choices| {
        all.extend(choices?);
        Ok(all)
    })
}

/// Shows states to the network.
fn look<D: Device>(actor: &mut Learner<D>, states: &[Arc<Sample>]) -> Outputs {
    actor.outputs(None, &states.iter().map(|state| &**state).collect::<Vec<_>>())
}

/// Environments that act together.
struct Group<'a> {
    members: &'a mut [FleetMember],
    rngs: Vec<Pcg64>,
    /// What the network sees of each environment.
    states: Vec<Arc<Sample>>,
    /// Choices of each environment, in order.
    choices: Vec<Vec<Choice>>,
}

impl<'a> Group<'a> {
    /// Creates the group of some environments, the first of which has the number `first`.
    fn new(members: &'a mut [FleetMember], seed: u64, first: usize, length: usize) -> Group<'a> {
        let rng = |place: usize| Pcg64::seed_from_u64(mix(seed, (first + place) as u64));
        Group {
            rngs: (0..members.len()).map(rng).collect(),
            states: par_map(&mut *members, MEMBERS_PER_TASK, |_, member| Arc::new(member.sample())),
            choices: members.iter().map(|_| Vec::with_capacity(length)).collect(),
            members,
        }
    }

    /// Lets every environment make a choice by the network's outputs.
    fn act(&mut self, episodes: &Episodes, outputs: &Outputs, settings: &PpoSettings) -> Result<(), FleetError> {
        let Group { members, rngs, states, choices } = self;
        let each = members.iter_mut().zip(rngs).zip(states.iter_mut().zip(choices));
        let acted = par_map(each, MEMBERS_PER_TASK, |index, ((member, rng), (state, choices))| {
            let (q, value) = (outputs.q(index), state_value(outputs, index, state));
            let jobs = member.top_jobs(|_, row| q[row as usize] + gumbel(rng));
            let chosen = member.rows_of(&jobs);
            let log = likelihood(q, &state.counts, &chosen).log;
            if !outputs.memory(index).is_empty() {
                member.remember(state, outputs.memory(index), settings.truncation);
            }
            let outcome = member.act(episodes, &jobs)?;
            let mut last = None;
            if outcome.ending.is_some() {
                last = Some(Arc::new(member.sample()));
                member.restart(episodes)?;
            }
            let state = std::mem::replace(state, Arc::new(member.sample()));
            let value = f64::from(value) * settings.value_scale;
            choices.push(Choice { state, chosen, log, value, outcome, last, advantage: 0.0, target: 0.0 });
            Ok(())
        });
        acted.into_iter().collect()
    }

    /// Returns the choices with their generalized advantages and the targets of the value head, from the rewards and
    /// from the estimated returns of the states that were reached.
    fn with_advantages<D: Device>(self, actor: &mut Learner<D>, settings: &PpoSettings) -> Vec<Choice> {
        let ends: Vec<Arc<Sample>> = self.choices.iter().flatten().filter_map(|choice| choice.last.clone()).collect();
        let states: Vec<&Sample> = self.states.iter().chain(&ends).map(|state| &**state).collect();
        let outputs = actor.outputs(None, &states);
        let estimate =
            |(index, state): (usize, &&Sample)| f64::from(state_value(&outputs, index, state)) * settings.value_scale;
        let values: Vec<f64> = states.iter().enumerate().map(estimate).collect();
        let (reached, mut at_ends) = values.split_at(self.states.len());
        let lists = self.choices.into_iter().zip(reached).map(|(list, reached)| {
            let ended = list.iter().filter(|choice| choice.last.is_some()).count();
            let (own, others) = at_ends.split_at(ended);
            at_ends = others;
            (list, *reached, own)
        });
        let lists: Vec<_> = lists.collect();
        let estimated = par_map(lists, LISTS_PER_TASK, |_, (mut list, reached, ends)| {
            estimate_advantages(&mut list, reached, ends, settings.lambda);
            list
        });
        estimated.into_iter().flatten().collect()
    }
}

/// Fills in the advantages and targets of one environment's choices, where `reached` is the value of the state after
/// the last choice, and `ends` are those of the states at the ends of episodes.
fn estimate_advantages(choices: &mut [Choice], reached: f64, ends: &[f64], lambda: f64) {
    let mut ends = ends.iter().rev();
    let (mut next_value, mut next_advantage) = (reached, 0.0);
    for choice in choices.iter_mut().rev() {
        if choice.last.is_some() {
            next_value = ends.next().copied().unwrap_or(0.0);
            next_advantage = 0.0;
        }
        let is_last = choice.outcome.ending == Some(Ending::Terminated);
        let discount = if is_last { 0.0 } else { choice.outcome.discount };
        let td_error = choice.outcome.reward + discount * next_value - choice.value;
        let decay = discount * lambda.powf(choice.outcome.elapsed);
        choice.advantage = td_error + decay * next_advantage;
        choice.target = choice.advantage + choice.value;
        (next_value, next_advantage) = (choice.value, choice.advantage);
    }
}

/// Draws from the standard Gumbel distribution.
pub fn gumbel(rng: &mut Pcg64) -> f32 {
    let uniform = rng.random::<f64>().max(1e-12);
    (-(-uniform.ln()).ln()) as f32
}
