//! E11: six shapes of the reward, and a reward without a penalty for misses.
//!
//! All networks have the same heads: one for jobs and one for half speed, so that the energy-aware reward has a
//! frequency to choose. Three regimes: the paper's (overload, late jobs are aborted), the same with late jobs that go
//! on (`continue`), and a light load, where slowing down can be free.

use std::sync::Arc;

use serde::Deserialize;
use temponet::stages::{Feature, Learned};
use temponet::{Model, Options};
use temponet_sim::{End, Observer, simulate};
use temponet_task::{Job, Time};
use temponet_train::{Recipe, RewardShape, Tokens, WorkloadRanges};

use crate::ablation::{Ablation, Effort, Variant, VariantResult};
use crate::findings::words;
use crate::plots::{panel, share_span};
use crate::{Better, Context, Findings, Line, Protocol, ReproduceError, RunMetric, Size, Standing, TestBed, Unit};
use temponet_lab::arena::Case;
use temponet_lab::horizon::horizon_of;
use temponet_lab::stats::{deviation, mean, percent, points};
use temponet_page::plot::svg;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of tasks per core.
    tasks_per_core: f64,
    /// Weight of the term that each shape adds to the binary reward.
    weight: f64,
    /// Further weights, which are tried for each shape but the energy-aware one, and number of trainings of each.
    weights: Vec<f64>,
    tuning_seeds: u64,
    /// Mean load per core of the light regime.
    light_load: f64,
    /// Number of trainings of each reward in the other two regimes.
    other_seeds: u64,
    /// Number of trainings of each reward where those of `effort` leave a judged figure open; none: no more.
    most_seeds: Option<u64>,
    effort: Effort,
}

/// Reward that the energy index, the energy per job in time, is relative to.
const ENERGY: &str = "r5_energy";

/// Rewards that judged figures rest on.
const JUDGED: [&str; 3] = ["binary", "r3_slack", ENERGY];

/// Load per core up to which late jobs go on: any.
const GREATEST_LOAD: f64 = 1_000.0;

/// Schedulers that the light regime is compared with: EDF, and EDF that slows down.
const SLOW: [&str; 3] = ["edf", "static-edf", "cc-edf"];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let Settings { tasks_per_core, effort, .. } = settings;
    let mut recipe = effort.recipe(&protocol.recipe, findings);
    recipe.workload.tasks_per_core = (*tasks_per_core, *tasks_per_core);
    // The paper's tokens in this reading, and the bcet as a share of the wcet, which tells the tasks that R4 is about.
    let mut tokenizer = recipe.tokens.tokenizer();
    tokenizer.features.push(Feature::Uncertainty);
    recipe.tokens = Tokens::Custom(Box::new(tokenizer));
    let shapes = tuned(context, findings, settings, &recipe)?;
    let cases = cases(protocol, &recipe.workload, "sets", effort.test)?;
    let bed = protocol.test_bed_of("rewards", cases, effort.test);
    let variants = variants(&recipe, &shapes);
    let mut ablation = context.ablation(&bed, &variants, effort.seeds())?;
    // Where the trainings leave a judged figure open, more are made, once; not in the further readings of the paper.
    if let Some(most) = settings.most_seeds.filter(|_| !context.is_planning() && !context.is_further()) {
        let mut first = findings.clone();
        add_judged(&mut first, &ablation);
        if first.lines.iter().any(|line| line.is_headline && line.standing() == Some(Standing::Undecided)) {
            findings.notes.push(format!("{} seeds left a judged figure open, so there are {most}", effort.seeds));
            ablation = context.ablation(&bed, &variants, Effort { seeds: most, ..effort.clone() }.seeds())?;
        }
    }
    let base = ablation.result(ENERGY).map(energy).unwrap_or(f64::NAN);
    add_lines(findings, &ablation, base);
    add_judged(findings, &ablation);
    if let Some((none, binary)) = ablation.pair("no_penalty", "binary") {
        findings.add(none.gain_over(binary, "change_without_penalty"));
    }
    if !context.is_planning() {
        add_risk(findings, &ablation, &bed)?;
    }
    let loads = bed.cases.iter().map(|case| case.set.mean_utilization() / case.set.cores() as f64).collect::<Vec<_>>();
    findings.add(Line::neither("load_per_core", Unit::Number, loads));
    draw(findings, &ablation, base);
    ablation.add_convergence(findings);
    ablation.add_classical(findings);
    // No judged figure is of the other two regimes.
    let mut regimes = String::new();
    if !context.is_further() {
        let light = light(context, findings, (protocol, settings), &recipe, &shapes)?;
        let continued = continued(context, findings, (protocol, settings), &recipe, &shapes)?;
        regimes = format!("{light}; {continued}; ");
    }
    let change = findings.line("change_without_penalty").map(Line::shown);
    let spent =
        |name: &str| ablation.result(name).map_or(f64::NAN, |result| mean(&result.values(|run| Some(run.energy))));
    let rests = format!("in all, R5 spends {} of the binary reward's energy", percent(spent(ENERGY) / spent("binary")));
    let baselines = ablation.baselines_sentence();
    let without = change.map(|change| format!("without the penalty it changes by {change}; ")).unwrap_or_default();
    findings.judge_claim(&format!("{without}{rests}; {regimes}{baselines}"));
    Ok(())
}

/// Adds the figures that are judged.
fn add_judged(findings: &mut Findings, ablation: &Ablation) {
    if let Some((slack, binary)) = ablation.pair("r3_slack", "binary") {
        findings.add(slack.gain_over(binary, "gain_of_slack_reward").headline());
    }
    if let Some((saving, binary)) = ablation.pair(ENERGY, "binary") {
        // The claim is both: energy saved, and few deadlines lost for it.
        findings.add(saved(saving, binary, "energy_saved_by_r5", |run| Some(run.energy_per_met)).headline());
        findings.add(lost(saving, binary, "in_time_lost_by_r5").headline());
    }
}

/// Returns the shapes with the weights whose trainings have the best validation scores. Their seeds are not those of the
/// trainings that count.
fn tuned(
    context: &Context<'_>,
    findings: &mut Findings,
    settings: &Settings,
    recipe: &Recipe,
) -> Result<Shapes, ReproduceError> {
    let mut chosen = shapes(settings.weight);
    if settings.weights.is_empty() {
        return Ok(chosen);
    }
    let recipe = Recipe { seed: recipe.seed + TUNING, ..recipe.clone() };
    let weights: Vec<f64> = [settings.weight].into_iter().chain(settings.weights.iter().copied()).collect();
    for (place, (name, shape)) in chosen.iter_mut().enumerate() {
        let is_meant = JUDGED.contains(name) || !context.is_further();
        if !is_meant || ["binary", ENERGY, "no_penalty"].contains(name) {
            continue;
        }
        let tried: Shapes = weights.iter().map(|weight| shapes(*weight).swap_remove(place)).collect();
        let mut best = f64::MIN;
        let trained = context.train_variants(&variants(&recipe, &tried), settings.tuning_seeds)?;
        context.chooses(&trained, name);
        for ((weight, (_, tried)), trained) in weights.iter().zip(&tried).zip(trained) {
            let of_one = |one: &crate::Trained| one.history.phases.iter().map(|phase| phase.score).fold(0.0, f64::max);
            let score = mean(&trained.iter().map(of_one).collect::<Vec<f64>>());
            if score > best {
                (best, *shape) = (score, *tried);
                findings.notes.retain(|note| !note.starts_with(&format!("weight of {name}:")));
                findings.notes.push(format!("weight of {name}: {weight}"));
            }
        }
    }
    Ok(chosen)
}

/// Distance from the seeds of the trainings that count to those that choose the weights.
const TUNING: u64 = 10_000;

/// Shapes of the reward by name.
type Shapes = Vec<(&'static str, RewardShape)>;

fn shapes(weight: f64) -> Shapes {
    vec![
        ("binary", RewardShape::Binary),
        ("r1_lateness", RewardShape::Lateness { weight }),
        ("r2_early", RewardShape::Early { weight }),
        ("r3_slack", RewardShape::Slack { weight }),
        ("r4_risk", RewardShape::Risk { weight }),
        (ENERGY, RewardShape::Energy { weight }),
        ("no_penalty", RewardShape::NoPenalty),
    ]
}

fn variants(recipe: &Recipe, shapes: &[(&str, RewardShape)]) -> Vec<Variant<'static>> {
    let variant = |(name, shape): &(&str, RewardShape)| {
        let mut recipe = recipe.clone();
        recipe.episode.reward.shape = *shape;
        Variant::new(*name, recipe).judged_if(JUDGED.contains(name))
    };
    shapes.iter().map(variant).collect()
}

/// Draws test sets as the training draws its own, with the seeds of a workload of the protocol.
fn cases(protocol: &Protocol, ranges: &WorkloadRanges, seeds: &str, size: Size) -> Result<Vec<Case>, ReproduceError> {
    let workload = protocol.workload.get(seeds);
    let missing = || ReproduceError::Protocol(protocol.title.clone(), format!("workload {seeds}: there is none"));
    let first = workload.ok_or_else(missing)?.first_seed;
    let case = |seed: u64| {
        let set = ranges.draw(seed)?;
        Ok(Case { horizon: horizon_of(&set, size.jobs as f64), set, seed })
    };
    (first..first + size.sets).map(case).collect()
}

/// The same rewards where late jobs go on: shares of jobs in time and lateness. Returns a part of the sentence.
fn continued(
    context: &Context<'_>,
    findings: &mut Findings,
    (protocol, settings): (&Protocol, &Settings),
    recipe: &Recipe,
    shapes: &[(&str, RewardShape)],
) -> Result<String, ReproduceError> {
    let mut recipe = recipe.clone();
    if let Some(variety) = &mut recipe.workload.variety {
        (variety.keep_late.chance, variety.keep_late.range) = (1.0, (0.0, GREATEST_LOAD));
    }
    let cases = cases(protocol, &recipe.workload, "continue", settings.effort.test)?;
    let bed = TestBed { oracle: None, ..protocol.test_bed_of("rewards, continue", cases, settings.effort.test) };
    let ablation = context.ablation(&bed, &variants(&recipe, shapes), settings.other_seeds)?;
    for result in &ablation.results {
        findings.add(ablation.share_line(format!("continue_{}", result.name), result));
        let name = format!("continue_lateness_{}", result.name);
        findings.add(ablation.line(name, result, Unit::Milliseconds, Better::Lower, |run| run.lateness_p95));
    }
    let late =
        |name: &str| ablation.result(name).map_or(f64::NAN, |result| mean(&result.values(|run| run.lateness_p95)));
    Ok(format!(
        "where late jobs go on, the 95th lateness is {:.0} ms with the binary reward, {:.0} ms with R1 and {:.0} ms with R3 ({})",
        late("binary"),
        late("r1_lateness"),
        late("r3_slack"),
        ablation.baselines_sentence()
    ))
}

/// The binary and the energy-aware reward at a light load. Returns a part of the sentence.
fn light(
    context: &Context<'_>,
    findings: &mut Findings,
    (protocol, settings): (&Protocol, &Settings),
    recipe: &Recipe,
    shapes: &[(&str, RewardShape)],
) -> Result<String, ReproduceError> {
    let mut recipe = recipe.clone();
    recipe.workload.load = (settings.light_load, settings.light_load);
    let wanted: Vec<_> = shapes.iter().copied().filter(|(name, _)| ["binary", ENERGY].contains(name)).collect();
    let cases = cases(protocol, &recipe.workload, "light", settings.effort.test)?;
    let classical = SLOW.map(String::from);
    let bed = TestBed { classical: &classical, ..protocol.test_bed_of("light load", cases, settings.effort.test) };
    let ablation = context.ablation(&bed, &variants(&recipe, &wanted), settings.other_seeds)?;
    for result in &ablation.results {
        findings.add(ablation.share_line(format!("light_{}", result.name), result));
    }
    let edf = ablation.contest.contender("edf").and_then(|edf| edf.mean(|run| Some(run.energy)));
    let of_edf =
        |energies: Vec<f64>| energies.iter().map(|energy| energy / edf.unwrap_or(f64::NAN)).collect::<Vec<_>>();
    for result in &ablation.results {
        let energies = of_edf(result.values(|run| Some(run.energy)));
        findings.add(Line::lower(format!("light_energy_{}", result.name), Unit::Share, energies));
    }
    for name in &SLOW[1..] {
        let Some(contender) = ablation.contest.contender(name) else { continue };
        let label = name.replace('-', "_");
        findings.add(Line::share(format!("light_{label}"), contender.shares()));
        let energies = of_edf(contender.values(|run| Some(run.energy)));
        findings.add(Line::lower(format!("light_energy_{label}"), Unit::Share, mean(&energies)));
    }
    let Some((saving, binary)) = ablation.pair(ENERGY, "binary") else { return Ok(String::new()) };
    findings.add(saved(saving, binary, "light_energy_saved_by_r5", |run| Some(run.energy)));
    findings.add(lost(saving, binary, "light_in_time_lost_by_r5"));
    Ok(format!(
        "at a light load R5 saves {} of the energy for {} points of jobs in time (cc-edf spends {} of EDF's and meets {})",
        findings.percent("light_energy_saved_by_r5"),
        points(findings.value("light_in_time_lost_by_r5")),
        findings.percent("light_energy_cc_edf"),
        findings.percent("light_cc_edf"),
    ))
}

/// A line with the share of an energy that a reward saves against another, seed by seed.
fn saved(of: &VariantResult, against: &VariantResult, name: &str, energy: RunMetric) -> Line {
    let saved: Vec<f64> =
        of.values(energy).iter().zip(against.values(energy)).map(|(to, from)| 1.0 - to / from).collect();
    Line::share(name, saved)
}

/// A line with the share of jobs in time that a reward loses against another, seed by seed.
fn lost(of: &VariantResult, against: &VariantResult, name: &str) -> Line {
    let lost: Vec<f64> = of.shares().iter().zip(against.shares()).map(|(to, from)| from - to).collect();
    Line::lower(name, Unit::Share, lost)
}

/// Jobs and jobs in time of the tasks whose execution times vary, and of the others.
struct Classes {
    varies: Vec<bool>,
    horizon: Time,
    all: [f64; 2],
    met: [f64; 2],
}

impl Observer for Classes {
    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        if job.deadline <= self.horizon {
            let class = usize::from(self.varies[job.task]);
            self.all[class] += 1.0;
            self.met[class] += f64::from(end == End::Completed && now <= job.deadline);
        }
    }
}

/// Returns the share of jobs in time of the tasks whose execution times vary, less that of the others.
fn favor(model: &Model, bed: &TestBed<'_>) -> Result<f64, ReproduceError> {
    let model = Arc::new(model.clone());
    let mut favors = Vec::new();
    for case in &bed.cases {
        let varies = case.set.tasks().iter().map(|task| task.bcet < task.wcet).collect();
        let mut classes = Classes { varies, horizon: case.horizon, all: [0.0; 2], met: [0.0; 2] };
        let mut scheduler = Learned::new(model.clone(), Options::default())?;
        simulate(&case.set, case.seed, case.horizon, &mut scheduler, &mut classes)?;
        if classes.all.iter().all(|jobs| *jobs > 0.0) {
            favors.push(classes.met[1] / classes.all[1] - classes.met[0] / classes.all[0]);
        }
    }
    Ok(mean(&favors))
}

/// Adds how much more the tasks with varying execution times are favored by R4 than by the binary reward.
fn add_risk(findings: &mut Findings, ablation: &Ablation, bed: &TestBed<'_>) -> Result<(), ReproduceError> {
    let Some((risk, binary)) = ablation.pair("r4_risk", "binary") else { return Ok(()) };
    let mut gains = Vec::new();
    for (risk, binary) in risk.trained.iter().zip(&binary.trained) {
        gains.push(favor(&risk.model, bed)? - favor(&binary.model, bed)?);
    }
    findings.add(Line::share("varying_tasks_favored_by_r4", gains));
    Ok(())
}

/// Adds the share of jobs in time, lateness, energy index and stability of every reward. The energy index is relative
/// to `base`.
fn add_lines(findings: &mut Findings, ablation: &Ablation, base: f64) {
    ablation.add_shares(findings);
    for result in &ablation.results {
        let name = format!("lateness_{}", result.name);
        findings.add(ablation.line(name, result, Unit::Milliseconds, Better::Lower, |run| run.lateness_p95));
    }
    let edf = ablation.contest.contender("edf").and_then(|edf| edf.mean(|run| Some(run.energy_per_met)));
    for result in &ablation.results {
        let energies = result.values(|run| Some(run.energy_per_met));
        let index: Vec<f64> = energies.iter().map(|energy| energy / base).collect();
        let line = Line::lower(format!("energy_{}", result.name), Unit::Number, index);
        findings.add(line.beside("edf", None, edf.map(|energy| energy / base)));
        findings.add(Line::lower(format!("stability_{}", result.name), Unit::Number, stability(result)));
    }
}
/// Returns the energy per job in time.
fn energy(result: &VariantResult) -> f64 {
    mean(&result.values(|run| Some(run.energy_per_met)))
}

/// Returns the standard deviation of each training's validation score in its second half.
fn stability(result: &VariantResult) -> Vec<f64> {
    result.scores().iter().map(|scores| deviation(&scores[scores.len() / 2..])).collect()
}

/// Draws the share of jobs in time over lateness and over energy.
fn draw(findings: &mut Findings, ablation: &Ablation, base: f64) {
    let names: Vec<String> = ablation.results.iter().map(|result| words(&result.name)).collect();
    let y = share_span(ablation.results.iter().map(VariantResult::mean_share));
    let over = |title: &str, x_label: &'static str, x: &dyn Fn(&VariantResult) -> f64| {
        let points = ablation.results.iter().map(|result| vec![(x(result), result.mean_share())]);
        panel(title, x_label, points.collect(), y)
    };
    let late = |result: &VariantResult| mean(&result.values(|run| run.lateness_p95));
    let panels = [
        over("In time against lateness", "95th percentile of lateness, ms", &late),
        over("In time against energy", "energy for a job in time, of R5's", &|result| energy(result) / base),
    ];
    findings.picture(
        "Trade-offs of rewards",
        "A point for each shape of the reward, mean over the seeds.",
        svg(&panels, 2, &names),
    );
}
