//! Behavioral cloning with DAgger: learning to do what a teacher does.
//!
//! In the first phase the teacher acts. In later phases the learner acts most of the time and the teacher only says
//! what it would have done, so that the learner also knows the states it gets itself into.
//!
//! Paper: Ross, Gordon and Bagnell, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
//! Learning" (DAgger, AISTATS 2011). Deviations:
//! - The learner's share of the choices is 0 in the first phase and constant afterwards, instead of growing from phase
//!   to phase.
//! - Old demonstrations are overwritten once the buffer is full, instead of aggregating all of them.
//! - A teacher picks a set of jobs. The loss is the cross-entropy of picking one job against any job of that set, or
//!   that of the whole assignment under a relaxed matching (`matching.rs`).

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use temponet_grad::{Device, ImitationBatch, LearningLosses, SelectedRows, best_rows};

use crate::checkpoint::{decode_memory, encode_memory};
use crate::error::TrainError;
use crate::fleet::{Episodes, Fleet, FleetError};
use crate::learner::{Learner, PendingUpdate, ShardOutput};
use crate::limits::{not_a_share, not_environments, not_whole};
use crate::method::{Algorithm, Method, MethodDevice, Phase};
use crate::methods::matching::{MatchingSettings, TaughtMatching, matching_loss};
use crate::recipe::Recipe;
use crate::ring_buffer::RingBuffer;
use crate::sample::Sample;
use crate::updates::StepSize;

/// Settings of cloning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloningSettings {
    /// Name of the scheduler to clone, or [`crate::OPTIMUM`], which knows the future. Default `mh-edf`.
    pub teacher: String,
    /// Choices that all environments together collect in a phase; at least 1, default 4,000.
    pub steps: u64,
    /// Environments that act in parallel, 1 to 100,000; default 32.
    pub environments: usize,
    /// Demonstrations per update; at least 1, default 64.
    pub batch: usize,
    /// Updates per phase; at least 1, default 250.
    pub updates: u64,
    /// Capacity of the buffer of demonstrations; at least 1, default 200,000.
    pub memory: usize,
    /// Probability, 0 to 1, that the learner makes a choice in a later phase; 0 is plain cloning. Default 0.8.
    pub dagger: f64,
    /// Relaxed matching that the loss goes through; `None`, the default, takes the cross-entropy of single picks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matching: Option<MatchingSettings>,
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
            matching: None,
        }
    }
}

impl Method for CloningSettings {
    const NAME: &'static str = "cloning";

    fn problem(&self, _recipe: &Recipe) -> Option<String> {
        let (steps, updates) = (self.steps as usize, self.updates as usize);
        not_whole(&[("steps", steps), ("batch", self.batch), ("updates", updates), ("memory", self.memory)])
            .or_else(|| not_environments(self.environments))
            .or_else(|| not_a_share(&[("dagger", self.dagger)]))
            .or_else(|| self.matching.as_ref().and_then(MatchingSettings::problem))
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn teachers(&self) -> &[String] {
        std::slice::from_ref(&self.teacher)
    }

    fn begin<D: MethodDevice>(&self, _recipe: &Recipe, _learner: &mut Learner<D>) -> Box<dyn Algorithm<D>> {
        Box::new(Cloning::new(self.clone()))
    }
}

/// A state, the rows of the jobs that the teacher ran there, and its whole decision if a matching is learned.
type Demonstration = (Arc<Sample>, Vec<u32>, Option<TaughtMatching>);

/// Behavioral cloning: its settings and its buffer of demonstrations.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloning {
    settings: CloningSettings,
    demonstrations: RingBuffer<Demonstration>,
}

impl<D: LearningLosses> Algorithm<D> for Cloning {
    fn phase(&mut self, learner: &mut Learner<D>, phase: &mut Phase<'_, D>) -> Result<(), TrainError> {
        let teacher = Some(self.settings.teacher.clone());
        let episodes = Episodes { teacher, ..phase.episodes.clone() };
        let mut fleet = Fleet::new(episodes, self.settings.environments, phase.seed)?;
        let learner_share = if phase.index == 0 { 0.0 } else { self.settings.dagger };
        self.collect(learner, &mut fleet, &mut phase.rng, learner_share)?;
        if self.demonstrations.is_empty() {
            return Ok(());
        }
        for _ in 0..self.settings.updates {
            let size = phase.updates.next_size();
            let update = self.update(learner, &mut phase.rng, size);
            phase.updates.queue(learner, update)?;
        }
        phase.updates.flush(learner)
    }

    fn memory(&self) -> Result<Vec<u8>, TrainError> {
        encode_memory(&self.demonstrations)
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), TrainError> {
        self.demonstrations = decode_memory(memory)?;
        Ok(())
    }
}

impl Cloning {
    /// No demonstrations so far.
    pub fn new(settings: CloningSettings) -> Cloning {
        Cloning { demonstrations: RingBuffer::new(settings.memory), settings }
    }

    /// Collects a phase's demonstrations. The fleet must have a teacher. The learner makes a choice with probability
    /// `learner_share`, the teacher makes the others.
    pub fn collect<D: Device>(
        &mut self,
        learner: &mut Learner<D>,
        fleet: &mut Fleet,
        rng: &mut Pcg64,
        learner_share: f64,
    ) -> Result<(), FleetError> {
        let mut seen = 0;
        while seen < self.settings.steps {
            let samples = fleet.samples();
            let by_learner: Vec<bool> = samples.iter().map(|_| rng.random::<f64>() < learner_share).collect();
            let own = samples.iter().zip(&by_learner).filter(|(_, by_learner)| **by_learner);
            let states: Vec<&Sample> = own.map(|(sample, _)| &**sample).collect();
            let outputs = learner.outputs(None, &states);
            let mut next_output = 0..states.len();
            for (index, by_learner) in by_learner.into_iter().enumerate() {
                let member = &mut fleet.members[index];
                let taught = member.teacher_jobs();
                let rows = member.rows_of(&taught);
                if !rows.is_empty() {
                    let matching = self.settings.matching.map(|_| TaughtMatching::of(member));
                    self.demonstrations.push((samples[index].clone(), rows, matching));
                }
                let output = if by_learner { next_output.next() } else { None };
                let jobs = output.map_or(taught, |output| member.top_jobs(|_, row| outputs.q(output)[row as usize]));
                let outcome = member.act(&fleet.episodes, &jobs)?;
                if outcome.ending.is_some() {
                    member.restart(&fleet.episodes)?;
                }
                seen += 1;
            }
        }
        Ok(())
    }

    /// Makes one update on a batch of demonstrations drawn at random. Idling is not among the picks, because the
    /// cross-entropy leaves the idle row out.
    fn update<D: LearningLosses>(&self, learner: &mut Learner<D>, rng: &mut Pcg64, size: StepSize) -> PendingUpdate<D> {
        let batch = self.settings.batch;
        let drawn = self.demonstrations.draw(batch, rng);
        let states: Vec<&Sample> = drawn.iter().map(|(state, ..)| &**state).collect();
        let sample_weight = 1.0 / batch as f32;
        if let Some(settings) = self.settings.matching {
            let losses = learner.backward(&states, None, |tape, ShardOutput { range, rows, output, .. }| {
                let taught: Vec<&TaughtMatching> =
                    drawn[range].iter().filter_map(|(_, _, matching)| matching.as_ref()).collect();
                let share = f64::from(sample_weight);
                let (loss, total) = matching_loss(&settings, tape, output.q, rows, &taught, share);
                (vec![loss], total)
            });
            return learner.step(Vec::new(), size).plus(losses.iter().sum());
        }
        let losses = learner.backward(&states, None, |tape, ShardOutput { range, rows, output, .. }| {
            let taught = drawn[range].iter().map(|(_, rows, _)| &rows[..]);
            let picks = SelectedRows::new(&rows.segments, &rows.counts, taught);
            tape.imitation_loss(output.q, &ImitationBatch::new(picks, sample_weight))
        });
        learner.step(losses, size)
    }

    /// Returns the share of the demonstrations, 0 to 1, in which the jobs that a learner would run are those of the
    /// teacher.
    pub fn agreement<D: Device>(&self, learner: &mut Learner<D>) -> f64 {
        let states: Vec<&Sample> = self.demonstrations.iter().map(|(state, ..)| &**state).collect();
        let outputs = learner.outputs(None, &states);
        let same = self.demonstrations.iter().enumerate().filter(|(index, (state, rows, _))| {
            let mut best = best_rows(outputs.q(*index), &state.counts, rows.len() as u32, f32::NEG_INFINITY);
            let mut rows = rows.clone();
            best.sort_unstable();
            rows.sort_unstable();
            best == rows
        });
        same.count() as f64 / self.demonstrations.len().max(1) as f64
    }
}
