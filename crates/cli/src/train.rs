//! `temponet train`: learn a scheduler for a load, and say honestly whether it is worth using.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use temponet::{Model, Scale};
use temponet_formats::read_bytes;
use temponet_grad::Device;
use temponet_infer::Weights;
use temponet_lab::arena::Case;
use temponet_lab::roster::Roster;
use temponet_lab::stats::percent;
use temponet_lab::training::curves;
use temponet_lab::training::verdict::{JudgedScheduler, TrainingVerdict, judge};
use temponet_task::{Arrival, Measure, TaskSet, Time};
use temponet_train::{
    Events, FEWEST_JOBS, Parts, PhaseFigures, Ranges, Recipe, Run, Source, Trace, TrainError, UpdateFigures, Validated,
    Watch, cannot_teach, trial_seed,
};

use crate::device::{self, Opened};
use crate::output;
use crate::paths::{Kind, Output, Replace};
use crate::recipe;
use crate::setup::{self, SetupArgs, heading};
use crate::table;

/// Learn a scheduler for your load
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet train standard-125 -o mine.safetensors\n  \
    temponet train --recipe recipe.toml -o mine.safetensors --resume\n  \
    temponet train --print-recipe > recipe.toml\n  \
    temponet compare standard-125 --model mine.safetensors")]
pub struct Args {
    /// Task-set file or a built-in set's name; without one, sets are drawn as the recipe says
    #[arg(value_name = "FILE|NAME")]
    pub set: Option<String>,
    /// Where the model goes
    #[arg(short, long, value_name = "OUT.safetensors", required_unless_present = "print_recipe")]
    pub output: Option<PathBuf>,
    /// How to learn: network, stages, everything [default: see --print-recipe]
    #[arg(long, value_name = "RECIPE.toml")]
    pub recipe: Option<PathBuf>,
    /// Print the recipe with all its settings and do nothing
    #[arg(long)]
    pub print_recipe: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
    /// Begin with the weights of a model of the same shape
    #[arg(long, value_name = "FILE")]
    pub begin_with: Option<String>,
    /// Go on where an interrupted training stopped
    #[arg(long)]
    pub resume: bool,
    /// Replace the model and forget an interrupted training
    #[arg(long, conflicts_with = "resume")]
    pub force: bool,
    /// Write one CSV row per phase
    #[arg(long, value_name = "OUT.csv")]
    pub log: Option<PathBuf>,
    /// Write TensorBoard's event file into this folder
    #[arg(long, value_name = "FOLDER")]
    pub tensorboard: Option<PathBuf>,
    /// Draw how the training went
    #[arg(long, value_name = "OUT.svg|OUT.html")]
    pub plot: Option<PathBuf>,
    /// Where to compute: cpu, cuda, or auto, which takes what is there
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = ["auto", "cpu", "cuda"])]
    pub device: String,
    /// Runs on unseen jobs for the verdict
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub trials: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct JsonTraining<'a> {
    model: String,
    seed: u64,
    phases: &'a [PhaseFigures],
    seconds: f64,
    verdict: &'a TrainingVerdict,
    sentence: String,
}

pub fn run(args: Args) -> Result<()> {
    let mut recipe = args.recipe.as_deref().map(recipe::read).transpose()?.unwrap_or_default();
    recipe.seed = args.setup.seed.unwrap_or(recipe.seed);
    if args.print_recipe {
        return output::print(&toml::to_string(&recipe)?);
    }
    let output = args.output.clone().context("there is no --output")?;
    let checkpoint = checkpoint_path(&output);
    if !args.force && !args.resume && checkpoint.exists() {
        let name = checkpoint.display();
        bail!("{name} is there: a training was interrupted; --resume goes on with it, --force forgets it");
    }
    let set = prepare_set(&args)?;
    say_parts(set.as_ref())?;
    check_teachers(&recipe, set.as_ref())?;
    let begin_with = args.begin_with.as_deref().map(setup::model).transpose()?;
    if let Some(model) = &begin_with {
        let tokenizer = recipe.tokenizer();
        if model.tokenizer != tokenizer || model.weights.architecture != recipe.network.architecture(&tokenizer) {
            bail!("--begin-with: the model has another shape or other tokens than the recipe");
        }
    }
    let weights = begin_with.map(|model| model.weights);
    // An interrupted training may have left its model.
    let replace = if args.resume { Replace::Earlier } else { Replace::nothing_or(args.force) };
    let model_file = Output::claim(&output, Kind::Model, replace)?;
    let checkpoint_file = Output::claim(&checkpoint, Kind::Checkpoint, Replace::earlier_or(args.force || args.resume))?;
    let plot = Output::wanted(args.plot.as_deref(), Kind::PictureOrPage, args.force)?;
    let mut watcher = Watcher::new(&args, checkpoint_file)?;
    if args.force {
        let _ = std::fs::remove_file(&checkpoint);
    }
    let begin = Begin { recipe: &recipe, set: set.as_ref(), weights: weights.as_ref(), is_resumed: args.resume };
    let (model, outcome) = match device::open(&args.device)? {
        Opened::Cpu(device) => begin.train(device, &mut watcher),
        #[cfg(feature = "cuda")]
        Opened::Cuda(device) => begin.train(*device, &mut watcher),
    }?;
    watcher.bar.finish_and_clear();
    if let Err(error) = outcome {
        if matches!(error, TrainError::Diverged { .. }) && !watcher.phases.is_empty() {
            model_file.write(model.to_bytes()?)?;
        }
        return Err(error.into());
    }
    model_file.write(model.to_bytes()?)?;
    let trials = trials(&recipe, set, args.trials)?;
    let roster = Roster { model: Some(Arc::new(model)) };
    // Every other scheduler there is: which of them suits a load is not known beforehand. Those that do not apply are left out.
    let _progress = temponet_lab::progress::Progress::busy("verdict");
    let verdict = judge(&roster, &Roster::classical().names(), &trials, ORACLE_SECONDS)?;
    if let Some(file) = plot {
        let is_picture = file.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
        let draw = if is_picture { curves::svg } else { curves::page };
        file.write(draw(&watcher.phases, &baselines(&verdict)))?;
    }
    if args.json {
        output::print_json(&JsonTraining {
            model: output.display().to_string(),
            seed: recipe.seed,
            phases: &watcher.phases,
            seconds: watcher.begun.elapsed().as_secs_f64(),
            sentence: verdict.sentence(),
            verdict: &verdict,
        })?;
    } else {
        output::print(&text(&output, &verdict, trials.first()))?;
    }
    // Only now is there nothing left to go on with.
    let _ = std::fs::remove_file(&checkpoint);
    Ok(())
}

/// EDF and the best other scheduler on the runs of the verdict; none where the curve counts jobs by what they are worth.
fn baselines(verdict: &TrainingVerdict) -> Vec<curves::Baseline> {
    if !verdict.goal().is_plain() {
        return Vec::new();
    }
    let is_shown = |(place, judged): &(usize, &JudgedScheduler)| *place == 0 || judged.name == "edf";
    let others = verdict.others.iter().enumerate().filter(is_shown);
    others.map(|(_, judged)| (judged.name.clone(), judged.compliance)).collect()
}

/// What a training begins with.
struct Begin<'a> {
    recipe: &'a Recipe,
    set: Option<&'a TaskSet>,
    weights: Option<&'a Weights>,
    is_resumed: bool,
}

impl Begin<'_> {
    /// Trains on a device: the best model, and whether the training came to its end.
    fn train<D: Device<Real = f32>>(
        &self,
        device: D,
        watcher: &mut Watcher,
    ) -> Result<(Model, Result<(), TrainError>)> {
        let mut run = Run::new(device, self.recipe.clone(), self.set.cloned(), self.weights);
        if self.is_resumed {
            let path = watcher.checkpoint.path().display();
            let bytes = read_bytes(watcher.checkpoint.path())
                .with_context(|| format!("{path}: there is no interrupted training to go on with"))?;
            run.resume(&bytes).map_err(|error| anyhow!("{path}: {error}"))?;
            run.figures().iter().for_each(|figures| watcher.note(figures));
        }
        let outcome = run.train(watcher);
        Ok((run.model(), outcome))
    }
}

/// Seconds of one core that the optimum of a trial may take.
const ORACLE_SECONDS: f64 = 0.5;

fn checkpoint_path(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".checkpoint");
    output.with_file_name(name)
}

/// The user's own set, if he names one. What only a set has, or only a run, means nothing without it.
fn prepare_set(args: &Args) -> Result<Option<TaskSet>> {
    let SetupArgs { cores, horizon, on_miss, switch_cost, migration_cost, decision_cost, .. } = &args.setup;
    if horizon.is_some() {
        bail!("--horizon: the recipe says how long episodes and validation runs are");
    }
    let costs = [switch_cost, migration_cost, decision_cost];
    if args.set.is_none() && (cores.is_some() || on_miss.is_some() || costs.iter().any(|cost| cost.is_some())) {
        bail!("there is no task set to change; the recipe's workload says what is drawn");
    }
    Ok(args.set.as_deref().map(|name| args.setup.prepare(Some(name))).transpose()?.map(|(set, ..)| set))
}

fn is_trace(set: &TaskSet) -> bool {
    set.tasks.iter().all(|task| matches!(task.arrival, Arrival::Listed(_)))
}

/// Says how a trace is cut; one that is too short to be cut is of no use.
fn say_parts(set: Option<&TaskSet>) -> Result<()> {
    let Some(set) = set.filter(|set| is_trace(set)) else { return Ok(()) };
    let Some(Parts { training, validation, verdict }) = Trace::split(set) else {
        bail!("a trace is cut in time to be judged on jobs that were not learned on, which takes {FEWEST_JOBS} jobs");
    };
    eprintln!(
        "a trace: it learns on the first {} jobs, is chosen by the next {}, and judged on the last {}",
        training.len(),
        validation.len(),
        verdict.len()
    );
    Ok(())
}

/// Whether the teachers can teach on the set, or on each number of cores that is drawn.
fn check_teachers(recipe: &Recipe, set: Option<&TaskSet>) -> Result<()> {
    for stage in &recipe.stage {
        let ranges = stage.workload.as_ref().unwrap_or(&recipe.workload);
        let draw = |cores: &usize| Ranges { cores: vec![*cores], ..ranges.clone() }.draw(trial_seed(recipe.seed, 0));
        let sets = match set {
            Some(set) => vec![set.clone()],
            None => ranges.cores.iter().map(draw).collect::<Result<_, _>>()?,
        };
        let problem = |name: &String| sets.iter().find_map(|set| cannot_teach(name, set));
        if let Some(problem) = stage.method.teachers().iter().find_map(problem) {
            bail!("teacher: {problem}");
        }
    }
    Ok(())
}

fn trials(recipe: &Recipe, set: Option<TaskSet>, count: u32) -> Result<Vec<Case>> {
    if let Some(Parts { verdict, .. }) = set.as_ref().and_then(Trace::split) {
        let seed = trial_seed(recipe.seed, 0);
        return Ok(vec![Case { set: (**verdict.set()).clone(), seed, horizon: verdict.end() }]);
    }
    // Runs of a set in which nothing is random are one and the same.
    let count = if set.as_ref().is_some_and(|set| !set.is_random()) { 1 } else { count };
    let source = match set {
        Some(set) => Source::Fixed(Arc::new(set)),
        None => Source::Drawn(Box::new(recipe.workload.clone())),
    };
    let tokenizer = recipe.tokenizer();
    let trial = |number: u64| -> Result<Case> {
        let seed = trial_seed(recipe.seed, number);
        let set = source.set(seed)?;
        let horizon = Time((Scale::of(&tokenizer, &set.system()).unit * TRIAL_LENGTH) as u64);
        Ok(Case { set: (*set).clone(), seed, horizon })
    };
    (0..u64::from(count)).map(trial).collect()
}

/// Length of a trial in median wcets.
const TRIAL_LENGTH: f64 = 1_000.0;

/// Shows a training and keeps its checkpoints and logs.
struct Watcher {
    bar: ProgressBar,
    begun: Instant,
    checkpoint: Output,
    log: Option<Output>,
    tensorboard: Option<Output>,
    events: Events,
    phases: Vec<PhaseFigures>,
    best: Option<f64>,
}

impl Watcher {
    fn new(args: &Args, checkpoint: Output) -> Result<Watcher> {
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent}% · {msg} · {eta} left") {
            bar.set_style(style);
        }
        let log = Output::wanted(args.log.as_deref(), Kind::Log, args.force)?;
        let events = |folder: &Path| {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
            let path = folder.join("events.out.tfevents.0.temponet");
            Output::claim(&path, Kind::Events, Replace::earlier_or(args.force))
        };
        let tensorboard = args.tensorboard.as_deref().map(events).transpose()?;
        Ok(Watcher {
            bar,
            begun: Instant::now(),
            checkpoint,
            log,
            tensorboard,
            events: Events::default(),
            phases: Vec::new(),
            best: None,
        })
    }

    /// Keeps a phase's figures.
    fn note(&mut self, figures: &PhaseFigures) {
        self.best = Some(figures.best);
        self.phases.push(figures.clone());
        let (step, seconds) = (self.phases.len() as u64, self.begun.elapsed().as_secs_f64());
        for (name, value) in [("loss", figures.loss), ("norm", figures.norm), ("score", figures.score)] {
            self.events.add(name, step, seconds, value as f32);
        }
    }

    fn csv(&self) -> String {
        let mut text = String::from("stage,method,phase,updates,loss,norm,score,best,met,critical\n");
        for p in &self.phases {
            let [loss, norm, score, best, met] = [p.loss, p.norm, p.score, p.best, p.met].map(table::number);
            let critical = p.critical.map(table::number).unwrap_or_default();
            let place = format!("{},{},{},{}", p.stage, p.method, p.phase, p.updates);
            text += &format!("{place},{loss},{norm},{score},{best},{met},{critical}\n");
        }
        text
    }
}

impl Watch for Watcher {
    fn begun(&mut self, validated: &Validated) {
        self.best = Some(validated.score);
        let Validated { score, met, critical } = *validated;
        self.bar.suspend(|| output::say(&format!("it begins with a model that has {}", shares(score, met, critical))));
    }

    fn updated(&mut self, stage: usize, done: u64, of: u64, figures: UpdateFigures) {
        self.bar.set_length(of);
        self.bar.set_position(done);
        if done.is_multiple_of(8) {
            let so_far = self
                .phases
                .last()
                .map(|last| format!(", {}", shares(last.score, last.met, last.critical)))
                .unwrap_or_default();
            self.bar.set_message(format!("stage {stage}, loss {:.4}{so_far}", figures.loss));
        }
    }

    fn phase(
        &mut self,
        figures: &PhaseFigures,
        checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
        let stopped = |error: anyhow::Error| TrainError::Stopped(format!("{error:#}"));
        let is_best = self.best.is_none_or(|best| figures.score > best);
        self.note(figures);
        let (stage, phase, method) = (figures.stage, figures.phase, &figures.method);
        let best = if is_best { ", the best so far" } else { "" };
        self.bar.suspend(|| {
            let loss = figures.loss;
            let shares = shares(figures.score, figures.met, figures.critical);
            output::say(&format!("stage {stage} ({method}), phase {phase}: loss {loss:.4}, {shares}{best}"));
        });
        self.checkpoint.write(checkpoint()?).map_err(stopped)?;
        if let Some(file) = &self.log {
            file.write(self.csv()).map_err(stopped)?;
        }
        if let Some(file) = &self.tensorboard {
            file.write(self.events.bytes()).map_err(stopped)?;
        }
        Ok(())
    }
}

/// What a phase came to on unseen jobs: critical jobs first, and what the weights are chosen by where that is not the number of jobs.
fn shares(score: f64, met: f64, critical: Option<f64>) -> String {
    let critical = critical.map(|share| format!("critical {}, ", percent(share))).unwrap_or_default();
    let worth = if score == met { String::new() } else { format!("worth {}, ", percent(score)) };
    format!("{critical}{worth}in time {}", percent(met))
}

fn text(output: &Path, verdict: &TrainingVerdict, first: Option<&Case>) -> String {
    let mut text = String::new();
    if let Some(trial) = first {
        text += &format!("{}\n", heading(&trial.set, trial.horizon));
    }
    let is_trace = first.is_some_and(|trial| is_trace(&trial.set));
    let runs = match verdict.trials {
        1 if is_trace => "1 run: the last fifth of the trace, which nothing was learned or chosen on".into(),
        1 => "1 run: nothing in this set is random".into(),
        trials => format!("{trials} unseen runs"),
    };
    text += &format!("{runs}, goal: {}\n\n", verdict.goal());
    // Jobs in time come with their interval; the measures before them in the goal without.
    let goal = verdict.goal();
    let measures: Vec<Measure> = goal.measures().iter().copied().filter(|measure| *measure != Measure::Met).collect();
    let mut header: Vec<String> = vec!["scheduler".into()];
    header.extend(measures.iter().map(|measure| goal.label(*measure)));
    header.extend(["in time".into(), "95%".into()]);
    let row = |judged: &JudgedScheduler| {
        let interval = judged.ci95.map(|half| format!("± {:.2}", 100.0 * half)).unwrap_or_default();
        let mut cells = vec![judged.name.clone()];
        let figures = goal.measures().iter().zip(&judged.goal).filter(|(measure, _)| **measure != Measure::Met);
        cells.extend(figures.map(|(_, share)| percent(*share)));
        cells.extend([percent(judged.compliance), interval]);
        cells
    };
    let mut optimum = vec!["clairvoyant, at most".to_string()];
    optimum.extend(measures.iter().enumerate().map(|(place, _)| match verdict.clairvoyant_goal {
        Some(share) if place == 0 => percent(share),
        _ => String::new(),
    }));
    optimum.extend([percent(verdict.clairvoyant), String::new()]);
    let mut rows = vec![optimum, row(&verdict.temponet), row(&verdict.unshielded)];
    let is_shown = |(place, judged): &(usize, &JudgedScheduler)| *place < 3 || judged.name == "edf";
    rows.extend(verdict.others.iter().enumerate().filter(is_shown).map(|(_, judged)| row(judged)));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    text += &table::render_with(&header, &rows, 1);
    text += &format!("\n{}\n{} holds the model.\n", verdict.sentence(), output.display());
    text
}
