//! Validation of a model on sets and jobs that training never sees, to choose the best weights by.

use std::sync::Arc;

use temponet::stages::{Learned, Scale};
use temponet::{Model, Options};
use temponet_sim::{Metrics, simulate};
use temponet_task::Time;

use crate::error::TrainError;
use crate::fleet::{FleetError, mix};
use crate::parallel::par_map;
use crate::recipe::ValidationSettings;
use crate::reward::{Reward, RewardAccumulator};
use crate::task_set_source::TaskSetSource;

/// Results of a model on the validation runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValidationScores {
    /// Mean over the runs of the reward as a share of what it would be with every deadline met, 0 to 1. Each job counts
    /// by what the recipe's reward says it is worth, and an energy-aware reward also takes its cost of energy off. The
    /// best weights are chosen by this score.
    pub score: f64,
    /// Mean share of the jobs that met their deadlines, 0 to 1; each job counts alike.
    pub met: f64,
    /// Mean share of the critical jobs that met their deadlines, 0 to 1, over the runs that have critical jobs; `None`
    /// if none has.
    pub critical: Option<f64>,
}

/// Offset between the seeds of validation and those of training episodes.
const VALIDATION: u64 = 0x7A11_DA7E;

/// Validation runs of one training.
pub(crate) struct ValidationRuns {
    /// Sets to run.
    pub source: TaskSetSource,
    /// Number of runs and their length.
    pub settings: ValidationSettings,
    /// Reward that says what jobs are worth.
    pub reward: Reward,
    /// Seed of the training.
    pub seed: u64,
}

impl ValidationRuns {
    /// Scores a model without a shield.
    pub(crate) fn score(&self, model: &Arc<Model>) -> Result<ValidationScores, TrainError> {
        let seed = mix(self.seed, VALIDATION);
        // All runs of a set without randomness are the same.
        let is_random = match &self.source {
            TaskSetSource::Fixed(set) => set.is_random(),
            TaskSetSource::Trace(_) | TaskSetSource::Drawn(_) => true,
        };
        let count = if is_random { self.settings.runs as u64 } else { 1 };
        let runs = par_map(0..count, 1, |_, run| self.run(model, mix(seed, run)));
        let runs = runs.into_iter().collect::<Result<Vec<_>, TrainError>>()?;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let scores: Vec<f64> = runs.iter().map(|(score, _)| *score).collect();
        let met: Vec<f64> = runs.iter().map(|(_, metrics)| metrics.jobs.compliance()).collect();
        let critical: Vec<f64> = runs.iter().filter_map(|(_, metrics)| metrics.pitmd()).collect();
        let critical = (!critical.is_empty()).then(|| mean(&critical));
        Ok(ValidationScores { score: mean(&scores), met: mean(&met), critical })
    }

    fn run(&self, model: &Arc<Model>, seed: u64) -> Result<(f64, Metrics), TrainError> {
        let set = self.source.set(seed).map_err(FleetError::from)?;
        let scale = Scale::of(&model.tokenizer, &set.system);
        let horizon = Time((scale.unit * self.settings.length).min(Time::MAX_INPUT.0 as f64) as u64);
        let mut scheduler = Learned::new(model.clone(), Options::default())?;
        let mut rewards = RewardAccumulator::new(self.reward, scale.unit, &set).score(horizon);
        let metrics = simulate(&set, seed, horizon, &mut scheduler, &mut rewards)?;
        Ok((rewards.share(), metrics))
    }
}
