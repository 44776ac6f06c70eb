//! A sample of the slack and remaining time that occur in practice. Data-driven bins and z-scores are fitted to it.

use temponet_train::{EpisodeSettings, Episodes, Fleet, Recipe, TaskSetSource};

use super::{Context, ReproduceError};

/// Number of environments that are sampled.
const ENVIRONMENTS: usize = 64;
/// Number of decisions sampled in each environment.
const CHOICES: usize = 40;
/// Seed of the environments, different from the seeds of trainings.
const SEED: u64 = 0x51AC;

impl Context<'_> {
    /// Returns slack and remaining wcet, in median wcets, of all jobs that are ready at decision points under EDF, on
    /// sets drawn as the recipe says.
    pub fn observed(&self, recipe: &Recipe) -> Result<Vec<[f64; 2]>, ReproduceError> {
        let wrong = |error: temponet_train::FleetError| self.protocol_error(error);
        let source = TaskSetSource::Drawn(Box::new(recipe.workload.clone()));
        let settings = EpisodeSettings { tick: None, ..recipe.episode };
        let episodes = Episodes::new(source, recipe.tokens.tokenizer(), settings);
        let episodes = Episodes { teacher: Some("edf".into()), ..episodes };
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
