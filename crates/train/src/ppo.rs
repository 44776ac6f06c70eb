//! Proximal policy optimisation: the network's numbers are logits, jobs for the cores are picked one after the other without putting any back,
//! and the value head judges states. While a round is learned, the environments already act for the next one, with the weights of before.

use std::sync::Arc;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet_grad::{Choices, Device, Made, Picks, PolicyWeights, likelihood};

use crate::environment::Ending;
use crate::fleet::{ChoiceOutcome, Fleet, FleetError, mix};
use crate::learner::{Learner, ShardOutput, UpdateFigures};
use crate::sample::Sample;

/// How policy optimisation learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoSettings {
    /// Environments that act together.
    pub environments: usize,
    /// Choices of each environment between updates.
    pub length: usize,
    /// Rounds of acting and learning in a phase.
    pub rounds: u64,
    /// Times that what was seen is gone through.
    pub epochs: usize,
    /// Choices of an update.
    pub batch: usize,
    /// How far a choice's likelihood may move before its gain stops counting.
    pub clip: f64,
    /// Weight of the entropy.
    pub entropy: f64,
    /// Weight of the value's error.
    pub value: f64,
    /// How far advantages look ahead: λ of generalised advantage estimation, per median wcet of time, since the more cores there are the more choices are made
    /// in it.
    pub lambda: f64,
    /// A state's worth is the value head's number times this.
    pub value_scale: f64,
}

impl Default for PpoSettings {
    fn default() -> Self {
        PpoSettings {
            environments: 64,
            length: 32,
            rounds: 4,
            epochs: 3,
            batch: 256,
            clip: 0.2,
            entropy: 0.01,
            value: 0.5,
            lambda: 0.95,
            value_scale: 10.0,
        }
    }
}

/// One choice and what came of it.
struct Choice {
    state: Arc<Sample>,
    chosen: Vec<u32>,
    log: f64,
    value: f64,
    outcome: ChoiceOutcome,
    /// The state at the end of the episode.
    last: Option<Arc<Sample>>,
    advantage: f64,
    worth: f64,
}

/// What a round of acting brought, choice by choice.
struct Seen {
    states: Vec<Arc<Sample>>,
    chosen: Vec<Vec<u32>>,
    made: Vec<Made>,
}

/// Acts and learns for a phase's rounds. `rate` is asked for the learning rate and the greatest norm of each update, and `done` is told after a round
/// what each of them came to. What is seen does not depend on how fast either side is: a round acts with what was learned from the last but one.
pub fn rounds<D: Device<Real = f32>, E: From<FleetError>>(
    settings: &PpoSettings,
    learner: &mut Learner<D>,
    fleet: &mut Fleet,
    seed: u64,
    mut rate: impl FnMut() -> (f64, f64),
    mut done: impl FnMut(&Learner<D>, UpdateFigures) -> Result<(), E>,
) -> Result<(), E> {
    let seed = |round: u64| mix(seed, 100 + round);
    let mut actor = learner.twin();
    let mut seen = look(settings, &mut actor, fleet, seed(0))?;
    for round in 0..settings.rounds {
        let mut next = None;
        let updates = rayon::in_place_scope(|scope| {
            if round + 1 < settings.rounds {
                let (actor, fleet, next) = (&mut actor, &mut *fleet, &mut next);
                scope.spawn(move |_| *next = Some(look(settings, actor, fleet, seed(round + 1))));
            }
            learn(settings, learner, seen, seed(round), &mut rate)
        });
        updates.into_iter().try_for_each(|figures| done(learner, figures))?;
        let Some(next) = next else { break };
        seen = next?;
        actor.follow(learner);
    }
    Ok(())
}

/// Acts for a round, and judges what came of it.
fn look<D: Device<Real = f32>>(
    settings: &PpoSettings,
    actor: &mut Learner<D>,
    fleet: &mut Fleet,
    seed: u64,
) -> Result<Seen, FleetError> {
    let mut choices = act(settings, actor, fleet, seed)?;
    judge(settings, actor, fleet, &mut choices);
    let choices: Vec<Choice> = choices.into_iter().flatten().collect();
    let mean = choices.iter().map(|choice| choice.advantage).sum::<f64>() / choices.len().max(1) as f64;
    let variance = choices.iter().map(|choice| (choice.advantage - mean).powi(2)).sum::<f64>();
    let deviation = (variance / choices.len().max(1) as f64).sqrt().max(1e-6);
    let made = |choice: &Choice| Made {
        log: choice.log as f32,
        advantage: ((choice.advantage - mean) / deviation) as f32,
        // The value's error counts on the scale of the value head.
        worth: (choice.worth / settings.value_scale) as f32,
    };
    let made = choices.iter().map(made).collect();
    let (states, chosen) = choices.into_iter().map(|choice| (choice.state, choice.chosen)).unzip();
    Ok(Seen { states, chosen, made })
}

/// Goes through what was seen several times. All updates are queued before the first is waited for.
fn learn<D: Device<Real = f32>>(
    settings: &PpoSettings,
    learner: &mut Learner<D>,
    seen: Seen,
    seed: u64,
    rate: &mut impl FnMut() -> (f64, f64),
) -> Vec<UpdateFigures> {
    let mut order: Vec<usize> = (0..seen.made.len()).collect();
    let mut rng = Pcg64::seed_from_u64(mix(seed, u64::MAX));
    let mut queued = Vec::new();
    for _ in 0..settings.epochs {
        order.shuffle(&mut rng);
        for places in order.chunks(settings.batch.max(1)) {
            let states: Vec<&Sample> = places.iter().map(|place| &*seen.states[*place]).collect();
            let weights = PolicyWeights {
                clip: settings.clip as f32,
                entropy: settings.entropy as f32,
                value: settings.value as f32,
                share: 1.0 / places.len() as f32,
            };
            let losses = learner.backward(&states, None, |tape, ShardOutput { range, focus, output, .. }| {
                let chosen = places[range.clone()].iter().map(|place| &seen.chosen[*place][..]);
                let picks = Picks::new(&focus.segments, &focus.counts, chosen);
                let made: Vec<Made> = places[range].iter().map(|place| seen.made[*place]).collect();
                tape.policy_loss(output.q, output.value, &Choices { picks, made: &made, weights })
            });
            let (rate, clip) = rate();
            queued.push(learner.step(losses, rate, clip));
        }
    }
    // There is time for it: the device is still busy.
    seen.states.into_par_iter().for_each(drop);
    queued.iter().map(|queued| learner.figures(queued)).collect()
}

/// Every environment makes its choices; by environment, then in order.
fn act<D: Device<Real = f32>>(
    settings: &PpoSettings,
    actor: &mut Learner<D>,
    fleet: &mut Fleet,
    seed: u64,
) -> Result<Vec<Vec<Choice>>, FleetError> {
    let mut rngs: Vec<Pcg64> =
        (0..fleet.slots.len() as u64).map(|place| Pcg64::seed_from_u64(mix(seed, place))).collect();
    let mut all: Vec<Vec<Choice>> = fleet.slots.iter().map(|_| Vec::with_capacity(settings.length)).collect();
    for _ in 0..settings.length {
        let samples: Vec<Arc<Sample>> = fleet.slots.par_iter_mut().map(|slot| Arc::new(slot.sample())).collect();
        let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
        let outputs = actor.outputs(None, &states);
        let episodes = &fleet.episodes;
        let slots = fleet.slots.par_iter_mut().zip(&mut rngs).zip(samples.par_iter()).enumerate();
        let made = slots.map(|(place, ((slot, rng), sample))| {
            let (q, value) = (outputs.q(place), outputs.value[place]);
            // The highest of the logits with Gumbel noise are a draw without putting back.
            let jobs = slot.best(|_, _, row| q[row as usize] + gumbel(rng));
            let chosen = slot.rows_of(&jobs);
            let log = likelihood(q, &sample.counts, &chosen).log;
            let outcome = slot.act(episodes, &jobs)?;
            let mut last = None;
            if outcome.ending.is_some() {
                last = Some(Arc::new(slot.sample()));
                slot.restart(episodes)?;
            }
            let value = f64::from(value) * settings.value_scale;
            let (advantage, worth) = (0.0, 0.0);
            Ok(Choice { state: sample.clone(), chosen, log, value, outcome, last, advantage, worth })
        });
        for (list, choice) in all.iter_mut().zip(made.collect::<Result<Vec<_>, FleetError>>()?) {
            list.push(choice);
        }
    }
    Ok(all)
}

/// Generalised advantages, from what followed and from what the states reached are worth.
fn judge<D: Device<Real = f32>>(
    settings: &PpoSettings,
    actor: &mut Learner<D>,
    fleet: &mut Fleet,
    choices: &mut [Vec<Choice>],
) {
    let reached: Vec<Arc<Sample>> = fleet.slots.par_iter_mut().map(|slot| Arc::new(slot.sample())).collect();
    let ends: Vec<Arc<Sample>> =
        choices.iter().flatten().filter_map(|choice| choice.last.clone()).chain(reached).collect();
    let states: Vec<&Sample> = ends.iter().map(|sample| &**sample).collect();
    let mut values = actor.outputs(None, &states).value;
    let ahead = values.split_off(values.len() - choices.len());
    let mut ends = values.into_iter();
    let scale = settings.value_scale;
    for (list, ahead) in choices.iter_mut().zip(ahead) {
        let at_ends: Vec<f64> =
            list.iter().filter(|choice| choice.last.is_some()).filter_map(|_| ends.next()).map(f64::from).collect();
        let mut at_ends = at_ends.into_iter().rev();
        let (mut next_value, mut next_advantage) = (f64::from(ahead) * scale, 0.0);
        for choice in list.iter_mut().rev() {
            if choice.last.is_some() {
                next_value = at_ends.next().unwrap_or(0.0) * scale;
                next_advantage = 0.0;
            }
            let is_last = choice.outcome.ending == Some(Ending::Terminated);
            let discount = if is_last { 0.0 } else { choice.outcome.discount };
            let surprise = choice.outcome.reward + discount * next_value - choice.value;
            choice.advantage = surprise + discount * settings.lambda.powf(choice.outcome.elapsed) * next_advantage;
            choice.worth = choice.advantage + choice.value;
            (next_value, next_advantage) = (choice.value, choice.advantage);
        }
    }
}

fn gumbel(rng: &mut Pcg64) -> f32 {
    let uniform = rng.random::<f64>().max(1e-12);
    (-(-uniform.ln()).ln()) as f32
}
