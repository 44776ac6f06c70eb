//! Networks and ways of learning held against each other: each is trained with several seeds, and all run the same unseen sets, without a shield,
//! which would hide what they have learned.

use std::sync::Arc;

use serde::Deserialize;
use temponet::Options;
use temponet_task::{Aim, TaskSet};
use temponet_train::{Method, NetworkShape, Recipe};

use super::contest::model_entrant;
use super::{
    Better, Contender, Contest, Context, Estimate, Findings, FindingsTable, Line, ReproduceError, RunMetric, Size,
    Trained, Training, Unit,
};
use temponet_lab::arena::Case;
use temponet_lab::stats::{self, percent};
use temponet_page::plot::{Panel, Span, svg};

/// How much of an ablation a mode does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Trainings of each variant, whose seeds follow each other.
    pub seeds: u64,
    /// The network, where a variant has no other.
    pub network: NetworkShape,
    /// Phases of Q-learning.
    pub phases: u64,
    /// Choices made in each.
    pub steps: u64,
    /// Runs that tell which phase was the best.
    pub validation: usize,
    /// The sets that all are held against.
    pub test: Size,
}

impl Effort {
    /// A recipe with so much learning.
    pub fn recipe(&self, recipe: &Recipe) -> Recipe {
        let mut recipe = Recipe { network: self.network, ..recipe.clone() };
        recipe.validation.runs = self.validation;
        for stage in &mut recipe.stage {
            if let Method::Dqn(settings) = &mut stage.method {
                stage.phases = self.phases;
                settings.steps = self.steps;
            }
        }
        recipe
    }
}

/// One of those held against each other.
#[derive(Clone, Debug)]
pub struct Variant<'a> {
    /// Its name, also of its figure.
    pub name: String,
    /// How it learns; its seed is that of its first training.
    pub recipe: Recipe,
    /// What it learns on; none: sets that the recipe draws.
    pub set: Option<&'a TaskSet>,
    /// The model it begins with, one for each training; none: random weights.
    pub begin_with: Option<&'a [Trained]>,
}

impl Variant<'_> {
    /// From random weights, on sets that the recipe draws.
    pub fn new(name: impl Into<String>, recipe: Recipe) -> Variant<'static> {
        Variant { name: name.into(), recipe, set: None, begin_with: None }
    }
}

/// What became of a variant.
#[derive(Clone, Debug)]
pub struct VariantResult {
    /// Its name.
    pub name: String,
    /// Its trainings, seed by seed.
    pub trained: Vec<Trained>,
    /// How each did on all sets.
    pub runs: Vec<Contender>,
}

impl VariantResult {
    /// A figure of each training: the mean over the sets.
    pub fn values(&self, of: RunMetric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.mean(of)).collect()
    }

    /// Shares of jobs in time.
    pub fn shares(&self) -> Vec<f64> {
        self.values(|run| run.in_time())
    }

    /// The score on validation jobs after each phase, mean over the trainings.
    pub fn convergence(&self) -> Vec<(f64, f64)> {
        let phases = self.trained.iter().map(|trained| trained.history.phases.len()).min().unwrap_or(0);
        let score = |phase: usize| {
            let scores: Vec<f64> = self.trained.iter().map(|trained| trained.history.phases[phase].score).collect();
            ((phase + 1) as f64, stats::mean(&scores))
        };
        (0..phases).map(score).collect()
    }

    /// Wall-clock seconds of a training, on average.
    pub fn seconds(&self) -> f64 {
        stats::mean(&self.trained.iter().map(|trained| trained.history.seconds).collect::<Vec<_>>())
    }
}

/// All variants, and the classical schedulers and the optimum on the same sets.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// The classical schedulers and the optimum.
    pub contest: Contest,
    /// The variants, in their order.
    pub results: Vec<VariantResult>,
}

impl Context<'_> {
    /// Trains every variant with so many seeds, as far as that has not been done before.
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

    /// Holds trained models against each other, the classical schedulers and the optimum.
    pub fn contest_models(
        &self,
        what: &str,
        named: Vec<(String, Vec<Trained>)>,
        cases: &[Case],
        classical: &[String],
        oracle_seconds: f64,
    ) -> Result<Ablation, ReproduceError> {
        let mut entrants = self.entrants(classical);
        for (name, trained) in &named {
            for (seed, trained) in trained.iter().enumerate() {
                let model = Arc::new(trained.model.clone());
                entrants.push(model_entrant(&format!("{name} {seed}"), &model, Options::default(), false));
            }
        }
        let mut contest = self.contest(what, cases, &entrants, Some((Aim::Met, oracle_seconds)))?;
        if let Some((name, why)) = contest.skipped.iter().find(|(name, _)| !classical.contains(name)) {
            return Err(self.protocol_error(format!("{name}: {why}")));
        }
        let (classical, learned): (Vec<_>, Vec<_>) = contest.contenders.drain(..).partition(|of| of.is_classical);
        contest.contenders = classical;
        let mut learned = learned.into_iter();
        let tried = named.into_iter().map(|(name, trained)| {
            let runs = learned.by_ref().take(trained.len()).collect();
            VariantResult { name, trained, runs }
        });
        Ok(Ablation { results: tried.collect(), contest })
    }

    /// Trains every variant and holds all against each other.
    pub fn ablation(
        &self,
        what: &str,
        variants: &[Variant<'_>],
        seeds: u64,
        cases: &[Case],
        classical: &[String],
        oracle_seconds: f64,
    ) -> Result<Ablation, ReproduceError> {
        let trained = self.train_variants(variants, seeds)?;
        let named = variants.iter().map(|variant| variant.name.clone()).zip(trained).collect();
        self.contest_models(what, named, cases, classical, oracle_seconds)
    }
}

impl Ablation {
    /// The variant of a name.
    pub fn of(&self, name: &str) -> Option<&VariantResult> {
        self.results.iter().find(|tried| tried.name == name)
    }

    /// The share of jobs in time over the trainings, with EDF, the best classical scheduler and the optimum beside it.
    pub fn share_line(&self, name: impl Into<String>, tried: &VariantResult) -> Line {
        self.contest.beside_optimum(self.line(name, tried, Unit::Share, Better::Higher, |run| run.in_time()))
    }

    /// A figure over the trainings, with EDF and the best classical scheduler beside it.
    pub fn line(
        &self,
        name: impl Into<String>,
        tried: &VariantResult,
        unit: Unit,
        better: Better,
        of: RunMetric,
    ) -> Line {
        self.contest.beside(Line::new(name, unit, better, Estimate::of(&tried.values(of))), of)
    }

    /// By how much one variant is above another, seed by seed.
    pub fn gain(&self, name: &str, to: &VariantResult, from: &VariantResult, paper: Option<f64>) -> Line {
        let gains: Vec<f64> = to.shares().iter().zip(from.shares()).map(|(to, from)| to - from).collect();
        Line { paper, ..Line::share(name, Estimate::of(&gains)) }
    }

    /// What EDF, the best classical scheduler and the optimum come to, for a sentence.
    pub fn beside(&self) -> String {
        let of = |run: &super::RunFigures| run.in_time();
        let edf = self.contest.of("edf").and_then(|edf| edf.mean(of)).map_or(String::new(), percent);
        let best = self.contest.best_classical(Better::Higher, of);
        let best = best.map_or(String::new(), |(best, share)| format!("{} as {}", percent(share), best.name));
        let optimum = match self.contest.optimum() {
            Some((optimum, true)) => format!(", the optimum {}", percent(optimum)),
            Some((bound, false)) => format!(", the optimum at most {}", percent(bound)),
            None => String::new(),
        };
        format!("on the same sets EDF meets {edf}, the best classical scheduler {best}{optimum}")
    }

    /// Adds the classical schedulers and the optimum as a table.
    pub fn add_classical(&self, findings: &mut Findings) {
        let row = |name: &str, share: f64| vec![name.to_string(), percent(share)];
        let mut rows: Vec<Vec<String>> =
            self.contest.optimum().map(|(share, _)| row("clairvoyant, at most", share)).into_iter().collect();
        let mut classical: Vec<_> =
            self.contest.contenders.iter().filter_map(|of| Some((of, of.mean(|run| run.in_time())?))).collect();
        classical.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows.extend(classical.iter().map(|(of, share)| row(&of.name, *share)));
        let header = ["scheduler", "in time"].map(String::from).to_vec();
        findings.tables.push(FindingsTable { title: "The same sets".into(), header, rows });
    }

    /// Draws how the trainings of some variants went.
    pub fn add_convergence(&self, findings: &mut Findings, names: &[&str]) {
        let curves: Vec<Vec<(f64, f64)>> =
            names.iter().map(|name| self.of(name).map(VariantResult::convergence).unwrap_or_default()).collect();
        let names: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
        let panel = Panel {
            title: "In time on validation jobs".into(),
            x_label: "phase of the training",
            y: span(curves.iter().flatten().map(|(_, score)| *score)),
            curves,
            marks: Vec::new(),
            is_log: false,
        };
        let caption = "The share of unseen jobs in time after each phase of the training, without a shield; means over the seeds.";
        findings.picture("Convergence", caption, svg(&[panel], 1, &names));
    }
}

/// A span that holds some shares, on whole steps of four per cent.
pub fn span(shares: impl Iterator<Item = f64>) -> Span {
    let (low, high) = shares.fold((1.0f64, 0.0f64), |(low, high), share| (low.min(share), high.max(share)));
    let (low, high) = ((low * 25.0).floor() / 25.0, (high * 25.0).ceil() / 25.0);
    if low < high { Span::Shares(low, high) } else { Span::Shares(0.0, 1.0) }
}
