//! Acting for a round: every environment makes its choices, and the advantage of each is estimated.
//!
//! On a device that computes beside the processor there are several actors, each with a thread and a share of the
//! environments. While one waits for the device, the environments of the others act.

use std::ops::Range;
use std::panic::resume_unwind;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_grad::{Device, log_likelihood};

use super::{PpoSettings, state_value};
use crate::environment::Ending;
use crate::fleet::{ChoiceOutcome, Episodes, Fleet, FleetError, FleetMember, mix};
use crate::learner::{Learner, Outputs};
use crate::parallel::par_map;
use crate::sample::{SampleView, Samples};

/// Environments that one thread lets act at a time.
const MEMBERS_PER_TASK: usize = 8;
/// Environments whose advantages one thread estimates at a time.
const LISTS_PER_TASK: usize = 128;

/// What one environment showed in a round, and what was chosen there.
#[derive(Default)]
pub(super) struct Trajectory {
    /// States, those at the ends of episodes included, in the order in which they were seen.
    states: Samples,
    /// Rows of the jobs that ran, choice after choice.
    picked: Vec<u32>,
    /// Choices, in order.
    pub choices: Vec<Choice>,
}

impl Trajectory {
    /// Returns the state of a choice.
    pub fn state(&self, choice: usize) -> SampleView<'_> {
        self.states.get(self.choices[choice].state)
    }

    /// Returns the rows of the jobs that ran by a choice.
    pub fn picked(&self, choice: usize) -> &[u32] {
        &self.picked[self.choices[choice].picked.clone()]
    }

    /// Returns the state that was seen last: that of the next choice.
    fn now(&self) -> SampleView<'_> {
        self.states.get(self.states.len() - 1)
    }

    /// Begins a round with the state of an environment.
    fn begin(&mut self, member: &FleetMember) {
        self.states.clear();
        self.picked.clear();
        self.choices.clear();
        member.add_sample(&mut self.states);
    }
}

/// One choice and its outcome.
pub(super) struct Choice {
    /// Place of the state among those of the trajectory.
    state: usize,
    /// Places of the rows of the jobs that ran.
    picked: Range<usize>,
    /// Logarithm of the choice's likelihood when it was made.
    pub log: f64,
    /// Estimated return of the state.
    value: f64,
    outcome: ChoiceOutcome,
    /// Place of the state at the end of the episode, if the choice ended one.
    last: Option<usize>,
    pub advantage: f64,
    /// Return that the value head should have estimated.
    pub target: f64,
}

/// Lets every environment make its choices of a round; fills a trajectory for each, with the advantages of its choices.
/// Each actor has its share of the environments.
pub(super) fn act<D: Device>(
    settings: &PpoSettings,
    actors: &mut [Learner<D>],
    fleet: &mut Fleet,
    trajectories: &mut [Trajectory],
    seed: u64,
) -> Result<(), FleetError> {
    let Fleet { episodes, members } = fleet;
    let size = members.len().div_ceil(actors.len()).max(1);
    let act = |actor: &mut Learner<D>, place: usize, members: &mut [FleetMember], trajectories: &mut [Trajectory]| {
        let mut group = Group::new(members, trajectories, seed, place * size);
        for _ in 0..settings.length {
            let outputs = look(actor, group.trajectories);
            group.act(episodes, &outputs, settings)?;
        }
        group.estimate_advantages(actor, settings);
        Ok(())
    };
    if let [actor] = actors {
        return act(actor, 0, members, trajectories);
    }
    let groups = actors.iter_mut().zip(members.chunks_mut(size).zip(trajectories.chunks_mut(size))).enumerate();
    let act = &act;
    let results: Vec<Result<(), FleetError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = groups
            .map(|(place, (actor, (members, own)))| scope.spawn(move || act(actor, place, members, own)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|payload| resume_unwind(payload))).collect()
    });
    results.into_iter().collect()
}

/// Shows the states of all environments to the network.
fn look<D: Device>(actor: &mut Learner<D>, trajectories: &[Trajectory]) -> Outputs {
    actor.outputs(None, &trajectories.iter().map(Trajectory::now).collect::<Vec<_>>())
}

/// Environments that act together.
struct Group<'a> {
    members: &'a mut [FleetMember],
    rngs: Vec<Pcg64>,
    trajectories: &'a mut [Trajectory],
}

impl<'a> Group<'a> {
    /// Creates the group of some environments, the first of which has the number `first`.
    fn new(members: &'a mut [FleetMember], trajectories: &'a mut [Trajectory], seed: u64, first: usize) -> Group<'a> {
        let each = members.iter_mut().zip(&mut *trajectories);
        par_map(each, MEMBERS_PER_TASK, |_, (member, trajectory)| trajectory.begin(member));
        let rng = |place: usize| Pcg64::seed_from_u64(mix(seed, (first + place) as u64));
        Group { rngs: (0..members.len()).map(rng).collect(), members, trajectories }
    }

    /// Lets every environment make a choice by the network's outputs.
    fn act(&mut self, episodes: &Episodes, outputs: &Outputs, settings: &PpoSettings) -> Result<(), FleetError> {
        let each = self.members.iter_mut().zip(&mut self.rngs).zip(&mut *self.trajectories);
        let acted = par_map(each, MEMBERS_PER_TASK, |index, ((member, rng), trajectory)| {
            let (q, state) = (outputs.q(index), trajectory.now());
            let value = f64::from(state_value(outputs, index, state)) * settings.value_scale;
            let jobs = member.top_jobs(|_, row| q[row as usize] + gumbel(rng));
            let chosen = member.rows_of(&jobs);
            let log = log_likelihood(q, state.counts, &chosen);
            if !outputs.memory(index).is_empty() {
                member.remember(state, outputs.memory(index), settings.truncation);
            }
            let Trajectory { states, picked, choices } = trajectory;
            let (state, first) = (states.len() - 1, picked.len());
            picked.extend(chosen);
            let outcome = member.act(episodes, &jobs)?;
            let mut last = None;
            if outcome.ending.is_some() {
                last = Some(states.len());
                member.add_sample(states);
                member.restart(episodes)?;
            }
            member.add_sample(states);
            let picked = first..picked.len();
            choices.push(Choice { state, picked, log, value, outcome, last, advantage: 0.0, target: 0.0 });
            Ok(())
        });
        acted.into_iter().collect()
    }

    /// Gives the choices their generalized advantages and the targets of the value head, from the rewards and from the
    /// estimated returns of the states that were reached.
    fn estimate_advantages<D: Device>(self, actor: &mut Learner<D>, settings: &PpoSettings) {
        let ends = |trajectory: &Trajectory| trajectory.choices.iter().filter(|choice| choice.last.is_some()).count();
        let each = self.trajectories.iter();
        let ended = each.flat_map(|own| own.choices.iter().filter_map(|choice| Some(own.states.get(choice.last?))));
        let states: Vec<SampleView<'_>> = self.trajectories.iter().map(Trajectory::now).chain(ended).collect();
        let outputs = actor.outputs(None, &states);
        let estimate = |(index, state): (usize, &SampleView<'_>)| {
            f64::from(state_value(&outputs, index, *state)) * settings.value_scale
        };
        let values: Vec<f64> = states.iter().enumerate().map(estimate).collect();
        let (reached, mut at_ends) = values.split_at(self.trajectories.len());
        let lists = self.trajectories.iter_mut().zip(reached).map(|(trajectory, reached)| {
            let (own, others) = at_ends.split_at(ends(trajectory));
            at_ends = others;
            (&mut trajectory.choices, *reached, own)
        });
        let lists: Vec<_> = lists.collect();
        par_map(lists, LISTS_PER_TASK, |_, (list, reached, ends)| {
            estimate_advantages(list, reached, ends, settings.lambda);
        });
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
