//! Behavioural cloning: doing what a teacher does. After the first phase the learner acts itself and the teacher only says what it would have
//! done (DAgger), so that the learner also knows the states it gets itself into.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, Imitation, Picks, best_rows};

use crate::fleet::{Fleet, FleetError};
use crate::learner::{Learner, PendingUpdate, ShardOutput};
use crate::ring_buffer::RingBuffer;
use crate::sample::Sample;

/// How cloning learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloningSettings {
    /// A scheduler's name, or `optimum`.
    pub teacher: String,
    /// Choices that are looked at in a phase.
    pub steps: u64,
    /// Environments that act together.
    pub environments: usize,
    /// Choices of an update.
    pub batch: usize,
    /// Updates in a phase.
    pub updates: u64,
    /// Choices kept.
    pub memory: usize,
    /// How often the learner acts in later phases; nought is plain cloning.
    pub dagger: f64,
}

impl Default for CloningSettings {
    fn default() -> Self {
        CloningSettings {
            teacher: "mh-edf".into(),
            steps: 4_000,
            environments: 32,
            batch: 64,
            updates: 250,
            memory: 200_000,
            dagger: 0.8,
        }
    }
}

/// A state and the rows that the teacher ran there.
type Demonstration = (Arc<Sample>, Vec<u32>);

/// What cloning remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemonstrationBuffer {
    list: RingBuffer<Demonstration>,
}

impl DemonstrationBuffer {
    /// None so far.
    pub fn new(settings: &CloningSettings) -> DemonstrationBuffer {
        DemonstrationBuffer { list: RingBuffer::new(settings.memory) }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Collects a phase's lessons. The fleet must have a teacher.
    pub fn collect<D: Device<Real = f32>>(
        &mut self,
        settings: &CloningSettings,
        learner: &mut Learner<D>,
        fleet: &mut Fleet,
        rng: &mut Pcg64,
        own_share: f64,
    ) -> Result<(), FleetError> {
        let mut seen = 0;
        while seen < settings.steps {
            let samples: Vec<Arc<Sample>> = fleet.slots.iter().map(|slot| Arc::new(slot.sample())).collect();
            let is_own: Vec<bool> = samples.iter().map(|_| rng.random::<f64>() < own_share).collect();
            let asked: Vec<&Sample> = samples.iter().zip(&is_own).filter(|(_, own)| **own).map(|(s, _)| &**s).collect();
            let outputs = learner.outputs(None, &asked);
            let mut answered = 0..asked.len();
            for (place, is_own) in is_own.into_iter().enumerate() {
                let slot = &mut fleet.slots[place];
                let teacher_jobs = slot.teacher_jobs();
                let rows = slot.rows_of(&teacher_jobs);
                if !rows.is_empty() {
                    self.list.push((samples[place].clone(), rows));
                }
                let own = if is_own { answered.next() } else { None };
                let jobs = own.map_or(teacher_jobs, |answer| slot.best(|_, _, row| outputs.q(answer)[row as usize]));
                let outcome = slot.act(&fleet.episodes, &jobs)?;
                if outcome.ending.is_some() {
                    slot.restart(&fleet.episodes)?;
                }
                seen += 1;
            }
        }
        Ok(())
    }

    /// One step of learning: the cross-entropy of the pick of one job against any of the teacher's. Idling is out of the question.
    pub fn update<D: Device<Real = f32>>(
        &self,
        settings: &CloningSettings,
        learner: &mut Learner<D>,
        rng: &mut Pcg64,
        rate: f64,
        clip: f64,
    ) -> PendingUpdate<D> {
        let drawn = self.list.draw(settings.batch, rng);
        let states: Vec<&Sample> = drawn.iter().map(|(state, _)| &**state).collect();
        let share = 1.0 / settings.batch as f32;
        let losses = learner.backward(&states, None, |tape, ShardOutput { range, focus, output, .. }| {
            let teacher_jobs = drawn[range].iter().map(|(_, rows)| &rows[..]);
            let picks = Picks::new(&focus.segments, &focus.counts, teacher_jobs);
            tape.imitation_loss(output.q, &Imitation::new(picks, share))
        });
        learner.step(losses, rate, clip)
    }

    /// How often the jobs a learner would run are those the teacher ran.
    pub fn agreement<D: Device<Real = f32>>(&self, learner: &mut Learner<D>) -> f64 {
        let states: Vec<&Sample> = self.list.iter().map(|(state, _)| &**state).collect();
        let outputs = learner.outputs(None, &states);
        let same = self.list.iter().enumerate().filter(|(place, (state, rows))| {
            let mut best = best_rows(outputs.q(*place), &state.counts, rows.len() as u32, f32::NEG_INFINITY);
            let mut rows = rows.clone();
            best.sort_unstable();
            rows.sort_unstable();
            best == rows
        });
        same.count() as f64 / self.list.len().max(1) as f64
    }
}
