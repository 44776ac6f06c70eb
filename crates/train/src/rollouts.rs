//! Learning from what would have come of other choices. At a state the simulator goes on several times with the same jobs: once as the best simple
//! scheduler would, and with one job exchanged for another. The difference in what is earned says, without noise from the jobs themselves, what
//! the exchange is worth; the network learns when one pays on average over all that cannot be known.

use std::sync::Arc;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, Exchange, Imitation, Picks};
use temponet_task::JobId;

use crate::base_scheduler::chosen_jobs;
use crate::environment::JobExchange;
use crate::fleet::{Fleet, FleetError, Slot, mix};
use crate::learner::{Learner, PendingUpdate, ShardOutput};
use crate::ring_buffer::RingBuffer;
use crate::sample::Sample;

/// How learning from other choices learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutSettings {
    /// States looked at in a phase.
    pub states: u64,
    /// Environments that act together.
    pub environments: usize,
    /// Exchanges tried at a state.
    pub alternatives: usize,
    /// How long each is followed, in median wcets.
    pub length: f64,
    /// States of an update.
    pub batch: usize,
    /// Updates in a phase.
    pub updates: u64,
    /// States kept.
    pub memory: usize,
    /// How often the learner itself acts after the second phase, as it was two phases before.
    pub own_share: f64,
    /// How often one job of the choice that is followed is exchanged at random.
    pub random: f64,
    /// Weight of doing what the best simple scheduler does: how much an exchange must gain on average to be made.
    pub cloning: f64,
}

impl Default for RolloutSettings {
    fn default() -> Self {
        RolloutSettings {
            states: 4_000,
            environments: 64,
            alternatives: 3,
            length: 30.0,
            batch: 128,
            updates: 250,
            memory: 2_000_000,
            own_share: 0.5,
            random: 0.1,
            cloning: 0.02,
        }
    }
}

/// A state and what exchanges there gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    state: Arc<Sample>,
    /// The rows that the best simple scheduler runs.
    base: Vec<u32>,
    exchanges: Vec<Exchange>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonBuffer {
    list: RingBuffer<Comparison>,
    /// What was found for the next phase while the last one was learned.
    pub(crate) ahead: Option<Vec<Comparison>>,
}

impl ComparisonBuffer {
    /// Nothing so far.
    pub fn new(settings: &RolloutSettings) -> ComparisonBuffer {
        ComparisonBuffer { list: RingBuffer::new(settings.memory), ahead: None }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Remembers a phase's findings.
    pub fn add(&mut self, found: Vec<Comparison>) {
        for finding in found {
            self.list.push(finding);
        }
    }

    /// One step of learning: a logistic loss on whether to make each exchange, weighed by what it gains or loses, and cloning of the base.
    pub fn update<D: Device<Real = f32>>(
        &self,
        settings: &RolloutSettings,
        learner: &mut Learner<D>,
        rng: &mut Pcg64,
        rate: f64,
        clip: f64,
    ) -> PendingUpdate<D> {
        let drawn = self.list.draw(settings.batch, rng);
        let states: Vec<&Sample> = drawn.iter().map(|finding| &*finding.state).collect();
        let share = 1.0 / settings.batch as f32;
        let losses = learner.backward(&states, None, |tape, ShardOutput { range, focus, output, .. }| {
            let drawn = &drawn[range];
            let picks = Picks::new(&focus.segments, &focus.counts, drawn.iter().map(|finding| &finding.base[..]));
            let imitation = Imitation::new(picks, settings.cloning as f32 * share)
                .with_exchanges(share, drawn.iter().map(|finding| &finding.exchanges[..]));
            tape.imitation_loss(output.q, &imitation)
        });
        learner.step(losses, rate, clip)
    }
}

/// A phase's findings. The fleet must know its base.
pub fn look<D: Device<Real = f32>>(
    settings: &RolloutSettings,
    actor: &mut Learner<D>,
    fleet: &mut Fleet,
    seed: u64,
    own_share: f64,
) -> Result<Vec<Comparison>, FleetError> {
    let mut rngs: Vec<Pcg64> =
        (0..fleet.slots.len() as u64).map(|place| Pcg64::seed_from_u64(mix(seed, place))).collect();
    let (mut all, mut seen) = (Vec::new(), 0);
    while seen < settings.states {
        let samples: Vec<Arc<Sample>> = fleet.slots.par_iter_mut().map(|slot| Arc::new(slot.sample())).collect();
        let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
        let outputs = (own_share > 0.0).then(|| actor.outputs(None, &states));
        let episodes = &fleet.episodes;
        let slots = fleet.slots.par_iter_mut().zip(&mut rngs).zip(samples.par_iter()).enumerate();
        let found = slots.map(|(place, ((slot, rng), sample))| -> Result<Comparison, FleetError> {
            let (base, exchanges) = compare(settings, slot, rng)?;
            let rows = slot.rows_of(&base);
            let own = outputs.as_ref().filter(|_| rng.random::<f64>() < own_share);
            let mut jobs = own.map_or(base, |outputs| slot.best(|_, _, row| outputs.q(place)[row as usize]));
            if rng.random::<f64>() < settings.random {
                exchange_at_random(slot, &mut jobs, rng);
            }
            if slot.act(episodes, &jobs)?.ending.is_some() {
                slot.restart(episodes)?;
            }
            Ok(Comparison { state: sample.clone(), base: rows, exchanges })
        });
        let found = found.collect::<Result<Vec<_>, FleetError>>()?;
        all.extend(found.into_iter().filter(|finding| !finding.base.is_empty()));
        seen += samples.len() as u64;
    }
    Ok(all)
}

/// What the base would run here, and what some exchanges are worth.
fn compare(
    settings: &RolloutSettings,
    slot: &mut Slot,
    rng: &mut Pcg64,
) -> Result<(Vec<JobId>, Vec<Exchange>), FleetError> {
    let (environment, observation, base) = slot.with_base_scheduler();
    let Some(base) = base else { return Ok((Vec::new(), Vec::new())) };
    let view = environment.view();
    let chosen = chosen_jobs(&mut **base, &view);
    let row = |id: JobId| observation.jobs().iter().find(|(job, _)| *job == id).map_or(0, |(_, row)| *row);
    let is_other = |id: &JobId| !chosen.contains(id) && !view.job(*id).is_impossible(view.now);
    let mut others: Vec<JobId> = view.active.iter().copied().filter(is_other).collect();
    others.shuffle(rng);
    // Those that some simple scheduler would run are the likeliest to be worth it; the last one tried may be any.
    let any = others.last().copied().filter(|_| settings.alternatives > 1);
    others.sort_by_key(|id| observation.supporters(*id) == 0);
    others.truncate(settings.alternatives);
    if let (Some(any), Some(last)) = (any.filter(|any| !others.contains(any)), others.last_mut()) {
        *last = any;
    }
    let mut exchanges = Vec::new();
    let mut worth = None;
    for other in others {
        if chosen.is_empty() {
            break;
        }
        // It takes the place of any of them, or of the one that the fewest would run.
        let least = (0..chosen.len()).min_by_key(|place| observation.supporters(chosen[*place])).unwrap_or(0);
        let place = if rng.random() { least } else { rng.random_range(0..chosen.len()) };
        let (inward, outward) = (row(other), row(chosen[place]));
        if inward == outward {
            continue;
        }
        let before = match worth {
            Some(worth) => worth,
            None => environment.rollout_reward(&chosen, None, &mut **base, settings.length)?,
        };
        worth = Some(before);
        let mut jobs = chosen.clone();
        jobs[place] = other;
        let exchange = JobExchange { inward: other, outward: chosen[place] };
        let after = environment.rollout_reward(&jobs, Some(exchange), &mut **base, settings.length)?;
        exchanges.push((inward, outward, (after - before) as f32));
    }
    Ok((chosen, exchanges))
}

fn exchange_at_random(slot: &Slot, jobs: &mut [JobId], rng: &mut Pcg64) {
    let others: Vec<JobId> =
        slot.observation().jobs().iter().map(|(id, _)| *id).filter(|id| !jobs.contains(id)).collect();
    if !others.is_empty() && !jobs.is_empty() {
        let (place, other) = (rng.random_range(0..jobs.len()), rng.random_range(0..others.len()));
        jobs[place] = others[other];
    }
}
