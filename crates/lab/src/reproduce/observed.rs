//! Slack as it is met: what data-driven bins and z-scores are fitted to.

use std::sync::Arc;

use temponet_train::{Episodes, Fleet, Recipe, TaskSetSource};

use super::{Context, ReproduceError};

/// Environments that are looked at, and choices in each.
const ENVIRONMENTS: usize = 64;
const CHOICES: usize = 40;
/// Apart from the seeds of trainings.
const SEED: u64 = 0x51AC;

impl Context<'_> {
    /// Slack and remaining wcet, in median wcets, of the ready jobs that EDF meets on sets that a recipe draws.
    pub fn observed(&self, recipe: &Recipe) -> Result<Vec<[f64; 2]>, ReproduceError> {
        let wrong = |error: temponet_train::FleetError| self.wrong(error.to_string());
        let episodes = Episodes {
            source: TaskSetSource::Drawn(Box::new(recipe.workload.clone())),
            tokenizer: Arc::new(recipe.tokens.tokenizer()),
            reward: recipe.episode.reward,
            length: recipe.episode.length,
            tick: None,
            gamma: recipe.episode.gamma,
            teacher: Some("edf".into()),
            with_base_scheduler: false,
        };
        let mut fleet = Fleet::new(episodes, ENVIRONMENTS, SEED).map_err(wrong)?;
        let mut observed = Vec::new();
        for member in &mut fleet.members {
            for _ in 0..CHOICES {
                let (view, unit) = (member.environment().view(), member.environment().scale().unit);
                let pair =
                    |job: &temponet_task::Job| [job.slack(view.now) as f64 / unit, job.remaining().0 as f64 / unit];
                observed.extend(view.ready().map(|(_, job)| pair(job)));
                let jobs = member.teacher_jobs();
                if member.act(&fleet.episodes, &jobs).map_err(wrong)?.ending.is_some() {
                    member.restart(&fleet.episodes).map_err(wrong)?;
                }
            }
        }
        Ok(observed)
    }
}
