//! E10: mapping from Q-values to cores: greedy, by Sinkhorn's relaxation, and exact.
//!
//! The mappings are compared with the paper's own TempoNet, with the given model, and with models that clone a
//! scheduler on sets of the same kind: one by single picks, deployed with the greedy mapping, and one through
//! Sinkhorn's relaxation, deployed with it. No decision falls back to another scheduler.

use std::sync::Arc;

use serde::Deserialize;
use temponet::stages::{Feature, Learned, Observation, Scale, Tokenizer};
use temponet::{Mapping, Model, Options};
use temponet_infer::{Network, NetworkOptions};
use temponet_lab::arena::Case;
use temponet_lab::stats::quantile;
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, Scheduler};
use temponet_train::{CloningSettings, MatchingSettings, NetworkShape, Recipe, Tokens};

use crate::ablation::{Variant, VariantResult};
use crate::contest::paired_gain;
use crate::{
    Better, Contender, Contest, Context, Entrant, Findings, Line, ReproduceError, RunFigures, Size, Trained, Unit,
    models_entrant,
};
use temponet_bench::decision::{TimingEffort, measure};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    size: Size,
    /// Number of ready jobs in the decisions that are timed.
    jobs: usize,
    /// Number of decisions that are timed.
    passes: u64,
    /// Temperature of Sinkhorn's relaxation, as a share of the spread of the Q-values.
    temperature: f32,
    /// Number of iterations of Sinkhorn's relaxation.
    iterations: u32,
    /// Cost of a migration in the matchings, as a share of the spread of the Q-values.
    migration: f32,
    /// The relaxation that a model learns through, and is deployed with.
    learned: MatchingSettings,
    /// Number of trainings of each way to learn, with consecutive seeds.
    seeds: u64,
    /// Shape of the trained networks.
    network: NetworkShape,
    /// Number of phases, and of decisions and updates in each.
    phases: u64,
    steps: u64,
    updates: u64,
    /// Number of validation runs.
    validation: usize,
}

impl Settings {
    /// Sinkhorn's relaxation and the exact matching for Q-values with this spread.
    fn matchings(&self, spread: f32) -> [Mapping; 2] {
        let (temperature, migration) = (self.temperature * spread, self.migration * spread);
        [Mapping::Sinkhorn { temperature, iterations: self.iterations, migration }, Mapping::Hungarian { migration }]
    }

    /// The ways to learn: their names, recipes and mappings.
    fn ways(&self, recipe: &Recipe) -> [(&'static str, Recipe, Mapping); 2] {
        let MatchingSettings { temperature, iterations, migration } = self.learned;
        let (temperature, migration) = (temperature as f32, migration as f32);
        let sinkhorn = Mapping::Sinkhorn { temperature, iterations, migration };
        [("cloned_greedy", None, Mapping::Greedy), ("learned_sinkhorn", Some(self.learned), sinkhorn)]
            .map(|(name, matching, mapping)| (name, self.recipe(recipe, matching), mapping))
    }

    fn recipe(&self, recipe: &Recipe, matching: Option<MatchingSettings>) -> Recipe {
        let mut recipe = Recipe { network: self.network, ..recipe.clone() };
        recipe.validation.runs = self.validation;
        // What the teacher looks at, and where a job has run; not what the teacher would do, which the full tokens
        // tell.
        let features = vec![Feature::Remaining, Feature::Criticality, Feature::Core];
        recipe.tokens = Tokens::Custom(Box::new(Tokenizer { features, ..Tokenizer::full() }));
        for stage in &mut recipe.stage {
            stage.phases = self.phases;
            if let Some(settings) = stage.method.settings_mut::<CloningSettings>() {
                (settings.steps, settings.updates, settings.matching) = (self.steps, self.updates, matching);
            }
        }
        recipe
    }
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let (paper, model) = (context.papers()?, vec![context.model()?.clone()]);
    let ways = settings.ways(&protocol.recipe);
    let variants: Vec<Variant<'_>> = ways.iter().map(|(name, recipe, _)| Variant::new(*name, recipe.clone())).collect();
    let trained = context.train_variants(&variants, settings.seeds)?;
    if context.is_planning() {
        return Ok(());
    }
    let bed = protocol.test_bed("mappings", "trace", settings.size)?.by_critical_jobs();
    let spreads = [spread(&paper[0], &bed.cases)?, spread(&model[0], &bed.cases)?];
    let [[sinkhorn, exact], [own_sinkhorn, own_exact]] = spreads.map(|spread| settings.matchings(spread as f32));
    for (name, spread) in ["", "temponet_"].into_iter().zip(spreads) {
        findings.add(Line::neither(format!("{name}spread_of_q"), Unit::Number, spread));
    }
    let mappings = [
        ("greedy", &paper, Mapping::Greedy),
        ("sinkhorn", &paper, sinkhorn),
        ("exact", &paper, exact),
        ("temponet_greedy", &model, Mapping::Greedy),
        ("temponet_sinkhorn", &model, own_sinkhorn),
        ("temponet_exact", &model, own_exact),
    ];
    let mut entrants: Vec<Entrant<'_>> =
        mappings.iter().map(|(name, models, mapping)| entrant(name, models, *mapping)).collect();
    entrants =
        entrants.into_iter().map(|one| if one.name.starts_with("temponet") { one.shared() } else { one }).collect();
    entrants.extend(context.entrants(bed.classical));
    for ((name, _, mapping), trained) in ways.iter().zip(&trained) {
        for (seed, trained) in trained.iter().enumerate() {
            entrants.push(entrant(&format!("{name} {seed}"), &[Arc::new(trained.model.clone())], *mapping).shared());
        }
    }
    let contest = context.contest_of(&bed, &entrants)?;
    for (name, models, mapping) in mappings {
        let Some(contender) = contest.contender(name) else { continue };
        add_lines(findings, &contest, contender);
        add_times(context, findings, settings, (name, &models[0], mapping))?;
    }
    let results: Vec<VariantResult> =
        ways.iter().zip(trained).map(|((name, ..), trained)| result(&contest, name, trained)).collect();
    results.iter().for_each(|result| add_trained(findings, &contest, result));
    let all = contest.contenders.iter().map(|one| one.estimate(|run| Some(run.fallbacks)).mean);
    findings.add(Line::neither("fallbacks", Unit::Share, all.fold(0.0, f64::max)));
    let (Some(greedy), Some(sinkhorn)) = (contest.contender("greedy"), contest.contender("sinkhorn")) else {
        return Ok(());
    };
    let gain = match &results[..] {
        [cloned, learned] => paired_gain(&learned.values(|run| run.pitmd), &cloned.values(|run| run.pitmd)),
        _ => String::new(),
    };
    findings.add(Line::order("lead_of_sinkhorn", sinkhorn.lead_over(greedy, |run| run.pitmd)));
    let baselines = contest.classical_baselines(Better::Higher, |run| run.pitmd);
    let beside = format!(
        "the paper has Sinkhorn 0.50 points ahead in critical jobs; a decision among {} jobs takes {:.0} µs against {:.0} µs \
         (the paper: 860 and 420); a model that learned through Sinkhorn meets {} and one that cloned the same scheduler by single picks {} ({gain} points, \
         training by training); of critical jobs, {}",
        settings.jobs,
        findings.value("sinkhorn_decision"),
        findings.value("greedy_decision"),
        findings.percent("learned_sinkhorn_pitmd"),
        findings.percent("cloned_greedy_pitmd"),
        baselines.sentence("runs"),
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}

/// Number of decisions whose Q-values tell their spread.
const SEEN: usize = 50;

/// Returns the distance between the quartiles of a model's Q-values of ready jobs, at the first decisions of a run that
/// have more jobs than cores.
fn spread(model: &Arc<Model>, cases: &[Case]) -> Result<f64, ReproduceError> {
    let Some(case) = cases.first() else { return Ok(1.0) };
    let mut scheduler = Learned::new(model.clone(), Options::default())?;
    let mut network = Network::new(&model.weights, NetworkOptions::default())?;
    let mut engine = Engine::new(&case.set, case.seed, case.horizon);
    scheduler.start(engine.system()).map_err(SimError::NotApplicable)?;
    let scale = Scale::of(&model.tokenizer, engine.system());
    let (mut observation, mut assignment) = (Observation::default(), Assignment::default());
    let (mut q, mut values, mut seen) = (Vec::new(), Vec::new(), 0);
    while seen < SEEN && engine.advance(&mut Unobserved) {
        let view = engine.view();
        if view.active.len() > view.cores() {
            observation.read(&model.tokenizer, &scale, &view, false);
            network.forward(&observation.rows(), &mut q);
            values.extend(observation.jobs().iter().map(|(_, row)| f64::from(q[*row as usize])));
            seen += 1;
        }
        assignment.reset(case.set.cores());
        scheduler.decide(&view, &mut assignment);
        engine.apply(&assignment, &mut Unobserved)?;
    }
    let quartile = |share: f64| quantile(&values, share);
    Ok(quartile(0.75).zip(quartile(0.25)).map_or(1.0, |(high, low)| high - low))
}

/// The models of several trainings without a shield, with a mapping.
fn entrant(name: &str, models: &[Arc<Model>], mapping: Mapping) -> Entrant<'static> {
    models_entrant(name, models, Options { mapping, ..Options::default() }, false)
}

/// Collects the runs of all trainings of a way to learn.
fn result(contest: &Contest, name: &str, trained: Vec<Trained>) -> VariantResult {
    let run = |seed: usize| contest.contender(&format!("{name} {seed}")).cloned();
    VariantResult { name: name.into(), runs: (0..trained.len()).filter_map(run).collect(), trained }
}

/// Adds what a trained model achieves on the trace with its mapping.
fn add_trained(findings: &mut Findings, contest: &Contest, result: &VariantResult) {
    let name = &result.name;
    let pitmd = Line::share(format!("{name}_pitmd"), result.values(|run| run.pitmd));
    findings.add(contest.beside_classical(pitmd, |run| run.pitmd));
    let shares = Line::share(format!("{name}_in_time"), result.shares());
    findings.add(contest.beside_classical(shares, RunFigures::in_time));
    let migrations = result.values(|run| Some(run.migrations));
    findings.add(Line::lower(format!("{name}_migrations"), Unit::Number, migrations));
}

/// Adds what a mapping achieves on the trace.
fn add_lines(findings: &mut Findings, contest: &Contest, contender: &Contender) {
    let name = &contender.name;
    let line = contest.score_line(&format!("{name}_pitmd"), contender, |run| run.pitmd);
    let is_paper = ["greedy", "sinkhorn"].contains(&name.as_str());
    findings.add(line.headline_if(is_paper));
    let ms = |what: &str, of| contest.line(&format!("{name}_{what}"), contender, Unit::Milliseconds, Better::Lower, of);
    findings.add(ms("art_completed", |run| run.art_completed));
    findings.add(ms("art_all", |run| run.art_all));
    let migrations = contender.estimate(|run| Some(run.migrations));
    findings.add(Line::lower(format!("{name}_migrations"), Unit::Number, migrations));
}

/// Adds the time of a decision with a mapping. The network decides, however many jobs are ready.
fn add_times(
    context: &Context<'_>,
    findings: &mut Findings,
    settings: &Settings,
    (name, model, mapping): (&str, &Arc<Model>, Mapping),
) -> Result<(), ReproduceError> {
    let effort = TimingEffort { passes: settings.passes, mapping, ..TimingEffort::default() };
    let figures = measure("mapping", model, settings.jobs, effort).map_err(|error| context.protocol_error(error))?;
    let micro = |what: &str, ns: f64| Line::lower(format!("{name}_{what}"), Unit::Microseconds, ns / 1e3);
    findings.add(micro("decision", figures.end_to_end_ns_p50));
    findings.add(micro("mapping", figures.mapping_ns_p50));
    Ok(())
}
