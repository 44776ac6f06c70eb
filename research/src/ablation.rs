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
use temponet_lab::stats::{self, percent, points};

/// Name of a workload of more than can be met.
const OVERLOAD: &str = "overload";

/// Extent of an ablation in one mode.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Number of trainings of each variant, with consecutive seeds.
    pub seeds: u64,
    /// The same for variants that no judged figure rests on; none: as many.
    pub other_seeds: Option<u64>,
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

/// Number of trainings of each variant, with consecutive seeds.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// Of a variant that a judged figure rests on.
    judged: u64,
    /// Of any other.
    other: u64,
}

impl From<u64> for Seeds {
    fn from(count: u64) -> Seeds {
        Seeds { judged: count, other: count }
    }
}

impl Seeds {
    fn of(self, variant: &Variant<'_>) -> u64 {
        if variant.is_judged { self.judged } else { self.other }
    }
}

impl Effort {
    /// Returns the number of trainings of each variant.
    pub fn seeds(&self) -> Seeds {
        Seeds { judged: self.seeds, other: self.other_seeds.unwrap_or(self.seeds) }
    }

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
    /// Whether a judged figure rests on it. Only such variants are trained in the further readings of the paper.
    pub is_judged: bool,
}

impl Variant<'_> {
    /// A variant that starts from random weights and trains on sets drawn as the recipe says.
    pub fn new(name: impl Into<String>, recipe: Recipe) -> Variant<'static> {
        Variant { name: name.into(), recipe, set: None, begin_with: None, is_judged: true }
    }

    /// Says whether a judged figure rests on the variant.
    pub fn judged_if(self, is_judged: bool) -> Self {
        Variant { is_judged, ..self }
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
        scores(&self.trained)
    }

    /// Returns the validation score after each phase, averaged over the trainings. Phases count from 1.
    pub fn convergence(&self) -> Curve {
        convergence(&self.trained)
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

fn scores(trained: &[Trained]) -> Vec<Vec<f64>> {
    let of_one = |trained: &Trained| trained.history.phases.iter().map(|phase| phase.score).collect();
    trained.iter().map(of_one).collect()
}

/// Returns the validation score after each phase, averaged over trainings. Phases count from 1.
pub(crate) fn convergence(trained: &[Trained]) -> Curve {
    let scores = scores(trained);
    let phases = scores.iter().map(Vec::len).min().unwrap_or(0);
    let score = |phase: usize| {
        let scores: Vec<f64> = scores.iter().map(|scores| scores[phase]).collect();
        ((phase + 1) as f64, stats::mean(&scores))
    };
    (0..phases).map(score).collect()
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
    /// Trains every variant with consecutive seeds. Trainings found in the cache are not repeated.
    pub fn train_variants(
        &self,
        variants: &[Variant<'_>],
        seeds: impl Into<Seeds>,
    ) -> Result<Vec<Vec<Trained>>, ReproduceError> {
        let seeds = seeds.into();
        let mut recipes = Vec::new();
        for variant in variants {
            if let Some(problem) = variant.recipe.problem() {
                return Err(self.protocol_error(format!("{}: {problem}", variant.name)));
            }
            let with_seed = |number| Recipe { seed: variant.recipe.seed + number, ..variant.recipe.clone() };
            recipes.extend((0..seeds.of(variant)).map(|number| (variant, number as usize, with_seed(number))));
        }
        let mut trainings = Vec::new();
        for (variant, number, recipe) in &recipes {
            let begin_with = variant.begin_with.map(|models| &models[*number].model);
            trainings.push(Training { name: &variant.name, recipe, set: variant.set, begin_with });
        }
        let mut all = self.trained_all(&trainings)?.into_iter();
        Ok(variants.iter().map(|variant| all.by_ref().take(seeds.of(variant) as usize).collect()).collect())
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

    /// Trains every variant with consecutive seeds and compares all of them on a test bed. In a further reading of the
    /// paper only the variants count that a judged figure rests on.
    pub fn ablation(
        &self,
        bed: &TestBed<'_>,
        variants: &[Variant<'_>],
        seeds: impl Into<Seeds>,
    ) -> Result<Ablation, ReproduceError> {
        let meant = variants.iter().filter(|variant| variant.is_judged || !self.is_further);
        let variants: Vec<Variant<'_>> = meant.cloned().collect();
        let trained = self.train_variants(&variants, seeds)?;
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

    /// Adds a plot of the validation scores of every variant, and says whether they are flat in the end.
    pub fn add_convergence(&self, findings: &mut Findings) {
        let curves: Vec<Curve> = self.results.iter().map(VariantResult::convergence).collect();
        findings.notes.extend(flatness(&self.results, &curves));
        let names: Vec<String> = self.results.iter().map(|result| words(&result.name)).collect();
        let panel = share_panel("In time on validation jobs", "phase of the training", curves);
        let caption = "The share of unseen jobs in time after each phase of the training, without a shield; means over the seeds.";
        findings.plot("Convergence", caption, panel, &names);
    }
}

/// Says by how much the validation scores change at the end of the trainings.
fn flatness(results: &[VariantResult], curves: &[Curve]) -> Option<String> {
    let changes = results.iter().zip(curves).filter_map(|(result, curve)| Some((&result.name, last_change(curve)?)));
    let (name, most) = changes.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(format!(
        "validation: from the third quarter of the phases to the last, the mean score of a variant changes by {} points at most ({})",
        points(most),
        words(name)
    ))
}

/// Mean of the last quarter of a curve less that of the quarter before; none if it has fewer than four points.
fn last_change(curve: &Curve) -> Option<f64> {
    let quarter = curve.len() / 4;
    if quarter == 0 {
        return None;
    }
    let mean = |part: &[(f64, f64)]| stats::mean(&part.iter().map(|(_, score)| *score).collect::<Vec<f64>>());
    let (before, last) = curve[curve.len() - 2 * quarter..].split_at(quarter);
    Some(mean(last) - mean(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_flat_where_its_last_quarters_are_alike() {
        let curve = |scores: &[f64]| -> Curve { (1..).map(f64::from).zip(scores.iter().copied()).collect() };
        assert_eq!(last_change(&curve(&[0.1, 0.2, 0.3])), None);
        let change = last_change(&curve(&[0.1, 0.2, 0.5, 0.7, 0.8, 0.8, 0.8, 0.9])).unwrap();
        assert!((change - 0.05).abs() < 1e-12, "{change}");
    }

    #[test]
    fn a_variant_that_no_judged_figure_rests_on_has_fewer_trainings() {
        let judged = Variant::new("one", Recipe::default());
        let seeds = Seeds { judged: 5, other: 3 };
        assert_eq!((seeds.of(&judged), seeds.of(&judged.clone().judged_if(false))), (5, 3));
        assert_eq!(Seeds::from(2).of(&judged.judged_if(false)), 2);
    }
}
