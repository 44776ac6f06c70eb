//! Learning from rollouts: the planner's labels.
//!
//! At a state a [planner](temponet::planner) over the best simple scheduler for the set compares that scheduler's
//! choice with others: each one is followed through the same futures, drawn from what an online scheduler knows. The
//! network learns whether an exchange of one job for another pays on average, and clones what the planner chooses. The
//! learner's own choice is among those that are compared.
//!
//! Related: rollout algorithms (Bertsekas, Tsitsiklis and Wu, "Rollout Algorithms for Combinatorial Optimization",
//! 1997), which improve a base heuristic by simulating it after each candidate action; expert iteration (Anthony, Tian
//! and Barber, "Thinking Fast and Slow with Deep Learning and Tree Search", 2017), in which a network learns from a
//! search and acts. Deviations:
//! - The base stays a simple scheduler: a decision of the network takes many times as long, and a label takes thousands
//!   of decisions.
//! - Only the sign of a gain is learned, by a logistic loss that is weighted by the size of the gain. Noise in a gain
//!   does not change which sign is learned in the mean, so that a label needs few futures.
//! - A cross-entropy term clones the planner; its weight is the gain an exchange needs to be preferred.
//!
//! While a phase is learned, the comparisons of the next one are already simulated, with the weights from the start of
//! the phase.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet::planner::{Compared, PlannerSettings};
use temponet_grad::{Device, Exchange, ImitationBatch, LearningLosses, SelectedRows};
use temponet_task::JobId;

use crate::checkpoint::{decode_memory, encode_memory};
use crate::error::TrainError;
use crate::fleet::{Episodes, Fleet, FleetError, FleetMember, mix};
use crate::learner::{Learner, PendingUpdate, ShardOutput};
use crate::limits::{negative, not_a_share, not_environments, not_positive, not_whole};
use crate::method::{Algorithm, Method, MethodDevice, Phase};
use crate::parallel::par_map;
use crate::recipe::Recipe;
use crate::ring_buffer::RingBuffer;
use crate::sample::Sample;
use crate::updates::StepSize;

/// Settings of learning from rollouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutSettings {
    /// States that all environments together compare choices in, per phase; at least 1, default 4,000.
    pub states: u64,
    /// Environments that act in parallel, 1 to 100,000; default 64.
    pub environments: usize,
    /// Exchanges tried in each state; 0 compares whole choices only. Default 6.
    pub alternatives: usize,
    /// Futures drawn in each state, from what an online scheduler knows, that gains are averaged over; at least 1,
    /// default 16. With many ready jobs there are fewer.
    pub futures: usize,
    /// Length of a future in median wcets, positive. Default 15.
    pub length: f64,
    /// States per update; at least 1, default 128.
    pub batch: usize,
    /// Updates per phase; at least 1, default 250.
    pub updates: u64,
    /// Capacity of the buffer of states; at least 1, default 2,000,000.
    pub memory: usize,
    /// Probability, 0 to 1, that the learner makes a choice, with the weights it had at the start of the phase before;
    /// from the third phase on if nothing was learned before. The planner makes the others. Default 0.5.
    pub own_share: f64,
    /// Probability, 0 to 1, that one job of a choice is exchanged for a random one before it is carried out. Default
    /// 0.1.
    pub random: f64,
    /// Weight of cloning the planner, 0 or more: the gain that an exchange must have on average to be preferred.
    /// Default 0.02.
    pub cloning: f64,
}

/// Effort of one plan: some milliseconds. Without a limit, a plan with a hundred ready jobs takes seconds, and all
/// others wait for it.
const EFFORT: usize = 50_000;

impl RolloutSettings {
    /// Returns the settings of the planner.
    fn planner(&self) -> PlannerSettings {
        let RolloutSettings { futures, length, alternatives: exchanges, .. } = *self;
        PlannerSettings { futures, horizon: length, exchanges, effort: Some(EFFORT), ..PlannerSettings::default() }
    }
}

impl Default for RolloutSettings {
    fn default() -> Self {
        RolloutSettings {
            states: 4_000,
            environments: 64,
            alternatives: 6,
            futures: 16,
            length: 15.0,
            batch: 128,
            updates: 250,
            memory: 2_000_000,
            own_share: 0.5,
            random: 0.1,
            cloning: 0.02,
        }
    }
}

impl Method for RolloutSettings {
    const NAME: &'static str = "rollouts";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        let whole = [
            ("states", self.states as usize),
            ("batch", self.batch),
            ("updates", self.updates as usize),
            ("memory", self.memory),
            ("futures", self.futures),
        ];
        not_whole(&whole)
            .or_else(|| not_environments(self.environments))
            .or_else(|| not_a_share(&[("own_share", self.own_share), ("random", self.random)]))
            .or_else(|| negative(&[("cloning", self.cloning)]))
            .or_else(|| not_positive(&[("length", self.length)]))
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, _learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        let memory = RolloutMemory { comparisons: RingBuffer::new(self.memory), next_phase: None };
        Box::new(Rollouts { settings: self.clone(), memory })
    }
}

/// A state, the planner's choice there, and the gains of some exchanges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Comparison {
    state: Arc<Sample>,
    /// Rows of the jobs that the planner runs.
    chosen: Vec<u32>,
    exchanges: Vec<Exchange>,
}

/// Comparisons that are kept from phase to phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RolloutMemory {
    comparisons: RingBuffer<Comparison>,
    /// Comparisons of the next phase, made while the last one was learned.
    next_phase: Option<Vec<Comparison>>,
}

/// Learning from rollouts: its settings and its comparisons.
struct Rollouts {
    settings: RolloutSettings,
    memory: RolloutMemory,
}

impl<D: LearningLosses> Algorithm<D> for Rollouts {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let Phase { index, count, is_warm_start, stage_seed, rng, episodes, updates, .. } = phase;
        let Rollouts { settings, memory } = self;
        let episodes = Episodes { planner: Some(settings.planner()), ..episodes.clone() };
        let mut actor = learner.twin();
        let mut compare = |index: u64| -> Result<Vec<Comparison>, FleetError> {
            let seed = mix(*stage_seed, index);
            let mut fleet = Fleet::new(episodes.clone(), settings.environments, seed)?;
            let own_share = if index < 2 && !*is_warm_start { 0.0 } else { settings.own_share };
            compare_choices(settings, &mut actor, &mut fleet, mix(seed, 5), own_share)
        };
        let compared = memory.next_phase.take().map_or_else(|| compare(*index), Ok)?;
        for comparison in compared {
            memory.comparisons.push(comparison);
        }
        let mut ahead = None;
        rayon::in_place_scope(|scope| {
            if *index + 1 < *count {
                // An error here comes up again when the next phase finds nothing prepared and compares for itself.
                scope.spawn(|_| ahead = compare(*index + 1).ok());
            }
            let planned = if memory.comparisons.is_empty() { 0 } else { settings.updates };
            for _ in 0..planned {
                let size = updates.next_size();
                let update = update(settings, &memory.comparisons, learner, rng, size);
                updates.queue(learner, update)?;
            }
            updates.flush(learner)
        })?;
        memory.next_phase = ahead;
        Ok(())
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        encode_memory(&self.memory)
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        self.memory = decode_memory(memory)?;
        Ok(())
    }
}

/// Makes one update on a batch of comparisons drawn at random: a logistic loss on whether to make each exchange,
/// weighted by the size of its gain or loss, and cloning of the planner.
fn update<D: LearningLosses>(
    settings: &RolloutSettings,
    comparisons: &RingBuffer<Comparison>,
    learner: &mut Learner<D>,
    rng: &mut Pcg64,
    size: StepSize,
) -> PendingUpdate<D> {
    let drawn = comparisons.draw(settings.batch, rng);
    let states: Vec<&Sample> = drawn.iter().map(|comparison| &*comparison.state).collect();
    let sample_weight = 1.0 / settings.batch as f32;
    let losses = learner.backward(&states, None, |tape, ShardOutput { range, rows, output, .. }| {
        let drawn = &drawn[range];
        let picks =
            SelectedRows::new(&rows.segments, &rows.counts, drawn.iter().map(|comparison| &comparison.chosen[..]));
        let imitation = ImitationBatch::new(picks, settings.cloning as f32 * sample_weight)
            .with_exchanges(sample_weight, drawn.iter().map(|comparison| &comparison.exchanges[..]));
        tape.imitation_loss(output.q, &imitation)
    });
    learner.step(losses, size)
}

/// Acts for a phase and compares choices in every state. The fleet must have planners.
fn compare_choices<D: Device>(
    settings: &RolloutSettings,
    actor: &mut Learner<D>,
    fleet: &mut Fleet,
    seed: u64,
    own_share: f64,
) -> Result<Vec<Comparison>, FleetError> {
    let mut rngs: Vec<Pcg64> =
        (0..fleet.members.len() as u64).map(|index| Pcg64::seed_from_u64(mix(seed, index))).collect();
    let (mut all, mut seen) = (Vec::new(), 0);
    while seen < settings.states {
        let samples = fleet.samples();
        let states: Vec<&Sample> = samples.iter().map(|sample| &**sample).collect();
        let outputs = (own_share > 0.0).then(|| actor.outputs(None, &states));
        let episodes = &fleet.episodes;
        // Some comparisons take a hundred times as long as others.
        let members = fleet.members.iter_mut().zip(&mut rngs).zip(&samples);
        let compared = par_map(members, 1, |index, ((member, rng), sample)| -> Result<Comparison, FleetError> {
            let own = outputs.as_ref().map(|outputs| member.top_jobs(|_, row| outputs.q(index)[row as usize]));
            let plan = member.plan(own.as_slice())?.unwrap_or_default();
            let exchanges = plan.compared.iter().filter_map(|compared| exchange(compared, member)).collect();
            let rows = member.rows_of(&plan.chosen);
            let mut jobs = own.filter(|_| rng.random::<f64>() < own_share).unwrap_or(plan.chosen);
            if rng.random::<f64>() < settings.random {
                exchange_at_random(member, &mut jobs, rng);
            }
            if member.act(episodes, &jobs)?.ending.is_some() {
                member.restart(episodes)?;
            }
            Ok(Comparison { state: sample.clone(), chosen: rows, exchanges })
        });
        let compared = compared.into_iter().collect::<Result<Vec<_>, FleetError>>()?;
        all.extend(compared.into_iter().filter(|comparison| !comparison.chosen.is_empty()));
        seen += samples.len() as u64;
    }
    Ok(all)
}

/// Returns the rows and the gain of an alternative that exchanges one job for another.
fn exchange(compared: &Compared, member: &FleetMember) -> Option<Exchange> {
    let (&[inward], &[outward]) = (&compared.inward[..], &compared.outward[..]) else { return None };
    let [inward, outward] = member.rows_of(&[inward, outward])[..] else { return None };
    // A share of the worth, so that a critical or dear job does not make all other exchanges vanish, and at most all of
    // it: what the exchange does to dearer jobs says only that it matters.
    let share = (compared.gain / compared.worth.max(f64::MIN_POSITIVE)).clamp(-1.0, 1.0);
    (inward != outward).then_some((inward, outward, share as f32))
}

/// Replaces a random job of a choice by a random other one, if there is one.
fn exchange_at_random(member: &FleetMember, jobs: &mut [JobId], rng: &mut Pcg64) {
    let others: Vec<JobId> = member.jobs().iter().map(|(id, _)| *id).filter(|id| !jobs.contains(id)).collect();
    if !others.is_empty() && !jobs.is_empty() {
        let (index, other) = (rng.random_range(0..jobs.len()), rng.random_range(0..others.len()));
        jobs[index] = others[other];
    }
}
