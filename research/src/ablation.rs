//! Network shapes and training methods compared with each other.
//!
//! Every variant is trained with several seeds, and all of them run the same unseen task sets. They run without a
//! shield, because a shield would hide what they have learned.

use std::sync::Arc;

use serde::Deserialize;
use temponet::Options;
use temponet_task::TaskSet;
use temponet_train::{DqnSettings, NetworkShape, Recipe};

use super::contest::{differences, model_entrant};
use super::findings::words;
use super::learner;
use super::plots::{Curve, share_panel};
use super::{
    Better, Contender, Contest, Context, Findings, FindingsTable, Line, Protocol, ReproduceError, RunFigures,
    RunMetric, Size, TestBed, Trained, Training, Unit,
};
use temponet_lab::stats::{self, percent};

/// Name of a workload of more than can be met.
const OVERLOAD: &str = "overload";

/// Extent of an ablation in one mode.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Number of trainings of each variant, with consecutive seeds.
    pub seeds: u64,
    /// Shape of the network, where a variant does not set its own; none: the recipe's.
    pub network: Option<NetworkShape>,
    /// Learning rate, where a variant does not set its own; none: the recipe's. Small networks and short trainings need
    /// a greater one.
    pub rate: Option<f64>,
    /// Number of phases of Q-learning.
    pub phases: u64,
    /// Number of decisions in each phase.
    pub steps: u64,
    /// Number of validation runs, by which the best phase is chosen.
    pub validation: usize,
    /// Test runs on which all variants are compared.
    pub test: Size,
}

impl Effort {
    /// Returns the recipe with the network and the amount of training of this effort, and says in the findings how it
    /// learns.
    pub fn recipe(&self, recipe: &Recipe, findings: &mut Findings) -> Recipe {
        let mut recipe = Recipe { network: self.network.unwrap_or(recipe.network), ..recipe.clone() };
        recipe.optimizer.rate = self.rate.unwrap_or(recipe.optimizer.rate);
        recipe.validation.runs = self.validation;
        for stage in &mut recipe.stage {
            if let Some(DqnSettings { replay, .. }) = stage.method.settings_mut() {
                stage.phases = self.phases;
                replay.steps = self.steps;
            }
        }
        findings.notes.push(learner::described(&recipe));
        recipe
    }
}

/// A way of training that an ablation compares with others.
#[derive(Clone, Debug)]
pub struct Variant<'a> {
    /// Name of the variant and of its figure.
    pub name: String,
    /// Recipe of the first training; further trainings increase its seed by one each.
    pub recipe: Recipe,
    /// Task set to train on; none: sets drawn as the recipe says.
    pub set: Option<&'a TaskSet>,
    /// Initial model of each training; none: random weights.
    pub begin_with: Option<&'a [Trained]>,
}

impl Variant<'_> {
    /// A variant that starts from random weights and trains on sets drawn as the recipe says.
    pub fn new(name: impl Into<String>, recipe: Recipe) -> Variant<'static> {
        Variant { name: name.into(), recipe, set: None, begin_with: None }
    }
}

/// Results of a variant.
#[derive(Clone, Debug)]
pub struct VariantResult {
    /// Name of the variant.
    pub name: String,
    /// Trained models, seed by seed.
    pub trained: Vec<Trained>,
    /// Results of each trained model on all test runs.
    pub runs: Vec<Contender>,
}

impl VariantResult {
    /// Returns a figure of each training: its mean over the test runs.
    pub fn values(&self, of: RunMetric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.mean(of)).collect()
    }

    /// Returns the share of jobs in time of each training.
    pub fn shares(&self) -> Vec<f64> {
        self.values(RunFigures::in_time)
    }

    /// Returns the share of jobs in time, averaged over the trainings.
    pub fn mean_share(&self) -> f64 {
        stats::mean(&self.shares())
    }

    /// Returns the validation scores of each training, phase by phase.
    pub fn scores(&self) -> Vec<Vec<f64>> {
        let of_one = |trained: &Trained| trained.history.phases.iter().map(|phase| phase.score).collect();
        self.trained.iter().map(of_one).collect()
    }

    /// Returns the validation score after each phase, averaged over the trainings. Phases count from 1.
    pub fn convergence(&self) -> Curve {
        let scores = self.scores();
        let phases = scores.iter().map(Vec::len).min().unwrap_or(0);
        let score = |phase: usize| {
            let scores: Vec<f64> = scores.iter().map(|scores| scores[phase]).collect();
            ((phase + 1) as f64, stats::mean(&scores))
        };
        (0..phases).map(score).collect()
    }

    /// Returns the wall-clock duration of each training, in seconds.
    pub fn seconds(&self) -> Vec<f64> {
        self.trained.iter().map(|trained| trained.history.seconds).collect()
    }

    /// A line with the difference in the share of jobs in time from another variant, seed by seed.
    pub fn gain_over(&self, from: &VariantResult, name: &str) -> Line {
        Line::share(name, differences(&self.shares(), &from.shares()))
    }
}

/// Results of all variants, with the classical schedulers and the optimum on the same runs.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// Classical schedulers and the optimum.
    pub contest: Contest,
    /// Results of the variants, in their order.
    pub results: Vec<VariantResult>,
}

impl Context<'_> {
    /// Trains every variant with `seeds` consecutive seeds. Trainings found in the cache are not repeated.
    pub fn train_variants(&self, variants: &[Variant<'_>], seeds: u64) -> Result<Vec<Vec<Trained>>, ReproduceError> {
        let mut recipes = Vec::new();
        for variant in variants {
            if let Some(problem) = variant.recipe.problem() {
                return Err(self.protocol_error(format!("{}: {problem}", variant.name)));
            }
            let first = variant.recipe.seed;
            recipes.extend((0..seeds).map(|number| Recipe { seed: first + number, ..variant.recipe.clone() }));
        }
        let mut trainings = Vec::new();
        for (place, recipe) in recipes.iter().enumerate() {
            let (variant, number) = (&variants[place / seeds as usize], place % seeds as usize);
            let begin_with = variant.begin_with.map(|models| &models[number].model);
            trainings.push(Training { name: &variant.name, recipe, set: variant.set, begin_with });
        }
        let all = self.trained_all(&trainings)?;
        Ok(all.chunks(seeds.max(1) as usize).map(<[Trained]>::to_vec).collect())
    }

    /// Compares trained models, given by the names of their variants, with each other and with the baselines of a test
    /// bed.
    pub fn contest_models(
        &self,
        bed: &TestBed<'_>,
        named: Vec<(String, Vec<Trained>)>,
    ) -> Result<Ablation, ReproduceError> {
        let mut entrants = self.entrants(bed.classical);
        for (name, trained) in &named {
            for (seed, trained) in trained.iter().enumerate() {
                let model = Arc::new(trained.model.clone());
                entrants.push(model_entrant(&format!("{name} {seed}"), &model, Options::default(), false));
            }
        }
        let mut contest = self.contest_of(bed, &entrants)?;
        if let Some((name, why)) = contest.skipped.iter().find(|(name, _)| !bed.classical.contains(name)) {
            return Err(self.protocol_error(format!("{name}: {why}")));
        }
        let (classical, learned): (Vec<_>, Vec<_>) = contest.contenders.drain(..).partition(|of| of.is_classical);
        contest.contenders = classical;
        let mut learned = learned.into_iter();
        let results = named.into_iter().map(|(name, trained)| {
            let runs = learned.by_ref().take(trained.len()).collect();
            VariantResult { name, trained, runs }
        });
        Ok(Ablation { results: results.collect(), contest })
    }

    /// Compares the models of an ablation on the protocol's workload `overload`, where there is more to win than where
    /// everything can be met, and adds their shares.
    pub fn in_overload(
        &self,
        findings: &mut Findings,
        ablation: &Ablation,
        size: Size,
    ) -> Result<Ablation, ReproduceError> {
        let protocol = Protocol::parse(self.experiment.id, self.experiment.protocol)?;
        let bed = protocol.test_bed("overload", OVERLOAD, size)?;
        let models = ablation.results.iter().map(|result| (result.name.clone(), result.trained.clone()));
        let overload = self.contest_models(&bed, models.collect())?;
        for result in &overload.results {
            findings.add(overload.share_line(format!("overload_{}", result.name), result));
        }
        Ok(overload)
    }

    /// Trains every variant with `seeds` consecutive seeds and compares all of them on a test bed.
    pub fn ablation(
        &self,
        bed: &TestBed<'_>,
        variants: &[Variant<'_>],
        seeds: u64,
    ) -> Result<Ablation, ReproduceError> {
        let trained = self.train_variants(variants, seeds)?;
        let named = variants.iter().map(|variant| variant.name.clone()).zip(trained).collect();
        self.contest_models(bed, named)
    }
}

impl Ablation {
    /// Returns the results of the variant with this name.
    pub fn result(&self, name: &str) -> Option<&VariantResult> {
        self.results.iter().find(|result| result.name == name)
    }

    /// Returns the results of two variants, if both exist.
    pub fn pair(&self, first: &str, second: &str) -> Option<(&VariantResult, &VariantResult)> {
        self.result(first).zip(self.result(second))
    }

    /// A line with the share of jobs in time over the trainings of a variant, with EDF, the best classical scheduler
    /// and the optimum beside it.
    pub fn share_line(&self, name: impl Into<String>, result: &VariantResult) -> Line {
        Line::share(name, result.shares()).beside_baselines(&self.contest.baselines())
    }

    /// A line with a figure over the trainings of a variant, with EDF and the best classical scheduler beside it.
    pub fn line(
        &self,
        name: impl Into<String>,
        result: &VariantResult,
        unit: Unit,
        better: Better,
        of: RunMetric,
    ) -> Line {
        self.contest.beside_classical(Line::new(name, unit, better, result.values(of)), of)
    }

    /// Adds the share of jobs in time of every variant.
    pub fn add_shares(&self, findings: &mut Findings) {
        self.results.iter().for_each(|result| findings.add(self.share_line(&result.name, result)));
    }

    /// Describes EDF, the best classical scheduler and the optimum in a sentence.
    pub fn baselines_sentence(&self) -> String {
        self.contest.baselines().sentence("sets")
    }

    /// Adds a table of the classical schedulers and the optimum.
    pub fn add_classical(&self, findings: &mut Findings) {
        let row = |name: &str, share: f64| vec![name.to_string(), percent(share)];
        let mut rows: Vec<Vec<String>> =
            self.contest.optimum().map(|(share, _)| row("clairvoyant, at most", share)).into_iter().collect();
        let mut classical: Vec<_> =
            self.contest.contenders.iter().filter_map(|of| Some((of, of.mean(RunFigures::in_time)?))).collect();
        classical.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows.extend(classical.iter().map(|(of, share)| row(&of.name, *share)));
        findings.tables.push(FindingsTable::new("The same sets", &["scheduler", "in time"], rows));
    }

    /// Adds a plot of the validation scores of every variant.
    pub fn add_convergence(&self, findings: &mut Findings) {
        let curves = self.results.iter().map(VariantResult::convergence).collect();
        let names: Vec<String> = self.results.iter().map(|result| words(&result.name)).collect();
        let panel = share_panel("In time on validation jobs", "phase of the training", curves);
        let caption = "The share of unseen jobs in time after each phase of the training, without a shield; means over the seeds.";
        findings.plot("Convergence", caption, panel, &names);
    }
}
