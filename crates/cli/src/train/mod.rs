//! `temponet train`: training of a model for a load, and a verdict on whether the model is worth using.
//!
//! The verdict compares the trained scheduler with all others on unseen runs. Training itself is in the crate
//! `temponet-train`.

mod watcher;

use std::path::{Path, PathBuf};
use temponet_sim::labels;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use temponet::Model;
use temponet_formats::read_bytes;
use temponet_infer::Weights;
use temponet_lab::arena::Case;
use temponet_lab::models::{self, BUILT_IN};
use temponet_lab::roster::is_baseline;
use temponet_lab::stats::percent;
use temponet_school::preparation::{
    baselines, check_teachers, initial_weights, is_trace, parts, start, trials, verdict,
};
use temponet_school::recipe_file;
use temponet_school::verdict::{JudgedScheduler, TrainingVerdict};
use temponet_task::{Measure, TaskSet};
use temponet_train::{PhaseFigures, Recipe, TraceSplit, TrainError, TrainingDevice};

use self::watcher::Watcher;
use crate::interrupt;
use crate::output;
use crate::paths::{self, Kind, Output, Replace};
use crate::setup::{SetupArgs, heading};
use crate::table;

/// Train a model for your load
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet train standard-125 -o mine.safetensors\n  \
    temponet train --recipe recipe.toml -o mine.safetensors --resume\n  \
    temponet train --print-recipe > recipe.toml\n  \
    temponet compare standard-125 --model mine.safetensors")]
pub struct Args {
    /// Task-set file or a built-in set's name to train on [default: random sets, drawn as the recipe says]
    #[arg(value_name = "FILE|NAME")]
    pub set: Option<String>,
    /// Model file to write
    #[arg(short, long, value_name = "OUT.safetensors", required_unless_present = "print_recipe")]
    pub output: Option<PathBuf>,
    /// Recipe file with all settings of network and training [default: the recipe of --print-recipe]
    #[arg(long, value_name = "RECIPE.toml")]
    pub recipe: Option<PathBuf>,
    /// Print the recipe with all its settings and exit
    #[arg(long)]
    pub print_recipe: bool,
    #[command(flatten)]
    pub setup: SetupArgs,
    /// Model whose weights to start from; it must have the shape and tokens of the recipe [default: the built-in model
    /// without a recipe, random weights with one]
    #[arg(long, value_name = "FILE")]
    pub begin_with: Option<String>,
    /// Continue an interrupted training from its checkpoint
    #[arg(long)]
    pub resume: bool,
    /// Replace an existing model and discard the checkpoint of an interrupted training
    #[arg(long, conflicts_with = "resume")]
    pub force: bool,
    /// Write a CSV file with one row per training phase
    #[arg(long, value_name = "OUT.csv")]
    pub log: Option<PathBuf>,
    /// Write the model of each training phase into this folder
    #[arg(long, value_name = "FOLDER")]
    pub snapshots: Option<PathBuf>,
    /// Write a TensorBoard event file into this folder
    #[arg(long, value_name = "FOLDER")]
    pub tensorboard: Option<PathBuf>,
    /// Write a plot of the training as an SVG picture or an HTML page
    #[arg(long, value_name = "OUT.svg|OUT.html")]
    pub plot: Option<PathBuf>,
    /// Device for training: cpu, cuda, or auto for a GPU if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = ["auto", "cpu", "cuda"])]
    pub device: String,
    /// Number of runs on unseen jobs for the verdict
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub trials: u32,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct JsonTraining<'a> {
    /// The model file; null if training found nothing better than its start, so that none was written.
    model: Option<String>,
    seed: u64,
    phases: &'a [PhaseFigures],
    seconds: f64,
    verdict: &'a TrainingVerdict,
    sentence: String,
}

pub fn run(args: Args) -> Result<()> {
    if let Some(path) = &args.recipe {
        paths::reads(path)?;
    }
    let mut recipe = args.recipe.as_deref().map(recipe_file::read).transpose()?.unwrap_or_else(recipe_file::standard);
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
    // Without a recipe, the training goes on from the built-in model, which knows most loads already.
    let begin_with = args.begin_with.as_deref().or(args.recipe.is_none().then_some(BUILT_IN));
    if let Some(file) = begin_with.filter(|name| models::is_path(name)) {
        paths::reads(Path::new(file))?;
    }
    let weights = begin_with.map(|name| initial_weights(name, &recipe)).transpose()?;
    let start = begin_with.zip(weights.as_ref()).map(|(name, weights)| start(name, weights, &recipe));
    // An interrupted training may already have written its model.
    let replace = if args.resume { Replace::Earlier } else { Replace::nothing_or(args.force) };
    let model_file = Output::claim(&output, Kind::Model, replace)?;
    let checkpoint_file = Output::claim(&checkpoint, Kind::Checkpoint, Replace::earlier_or(args.force || args.resume))?;
    let mut watcher = Watcher::new(&args, &recipe, checkpoint_file)?;
    if args.force {
        let _ = std::fs::remove_file(&checkpoint);
    }
    let begin = Begin { recipe: &recipe, set: set.as_ref(), weights: weights.as_ref(), is_resumed: args.resume };
    let device = TrainingDevice::open(&args.device).map_err(|why| anyhow!("--device {}: {why}", args.device))?;
    let (mut model, outcome) = begin.train(device, &mut watcher)?;
    watcher.bar.finish_and_clear();
    if let Err(error) = outcome {
        // A training that diverged leaves its best model, if it has completed a phase. Weights that did not change are
        // no new model.
        let is_unchanged = start.as_ref().is_some_and(|start| start.is_unchanged(&model));
        if matches!(error, TrainError::Diverged { .. }) && !watcher.phases.is_empty() && !is_unchanged {
            model_file.write(model.to_bytes()?)?;
        }
        return Err(error.into());
    }
    // What began with random weights is new, whatever the verdict says; of the rest, the verdict tells.
    if start.is_none() {
        model_file.write(model.to_bytes()?)?;
    }
    let set_name = set.as_ref().map(|set| set.name.clone());
    let trials = trials(&recipe, set.clone(), args.trials)?;
    let mut verdict = verdict(model.clone(), start.as_ref(), &trials)?;
    if let Some(start) = start.filter(|_| !verdict.is_new) {
        model = start.model;
    }
    verdict.settle(&mut model, set.as_ref());
    if verdict.is_new {
        model_file.write(model.to_bytes()?)?;
    }
    watcher.draw(&baselines(&verdict), &temponet_school::curves::About::of(set_name.as_deref(), &verdict))?;
    if args.json {
        output::print_json(&JsonTraining {
            model: verdict.is_new.then(|| output.display().to_string()),
            seed: recipe.seed,
            phases: &watcher.phases,
            seconds: watcher.begun.elapsed().as_secs_f64(),
            sentence: verdict.sentence(),
            verdict: &verdict,
        })?;
    } else {
        output::print(&text(&output, &verdict, trials.first()))?;
    }
    // The checkpoint is removed last, because only now there is nothing left to resume.
    interrupt::set_last_words(None);
    let _ = std::fs::remove_file(&checkpoint);
    Ok(())
}

/// Inputs of a training.
struct Begin<'a> {
    recipe: &'a Recipe,
    set: Option<&'a TaskSet>,
    weights: Option<&'a Weights>,
    is_resumed: bool,
}

impl Begin<'_> {
    /// Trains on a device. Returns the best model, and whether the training completed.
    fn train(&self, device: TrainingDevice, watcher: &mut Watcher) -> Result<(Model, Result<(), TrainError>)> {
        let mut run = device.session(self.recipe.clone(), self.set.cloned(), self.weights);
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

fn checkpoint_path(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".checkpoint");
    output.with_file_name(name)
}

/// Loads the task set that the user names, if any. Options that only concern a set are rejected without one.
fn prepare_set(args: &Args) -> Result<Option<TaskSet>> {
    let SetupArgs { cores, horizon, on_miss, protocol, switch_cost, migration_cost, decision_cost, .. } = &args.setup;
    if horizon.is_some() {
        bail!("--horizon: the recipe says how long episodes and validation runs are");
    }
    let costs = [switch_cost, migration_cost, decision_cost];
    let changes = cores.is_some() || on_miss.is_some() || protocol.is_some();
    if args.set.is_none() && (changes || costs.iter().any(|cost| cost.is_some())) {
        bail!("there is no task set to change; the recipe's workload says what is drawn");
    }
    Ok(args.set.as_deref().map(|name| args.setup.prepare(Some(name))).transpose()?.map(|(set, ..)| set))
}

/// Tells the user how a trace is divided. A trace that is too short to be divided is rejected.
fn say_parts(set: Option<&TaskSet>) -> Result<()> {
    let Some(TraceSplit { training, validation, verdict }) = parts(set)? else { return Ok(()) };
    eprintln!(
        "a trace: it learns on the first {} jobs, is chosen by the next {}, and judged on the last {}",
        training.len(),
        validation.len(),
        verdict.len()
    );
    Ok(())
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
        trials => format!("{trials} unseen runs, other ones than those of `temponet compare`"),
    };
    text += &format!("{runs}; goal: {}\n\n", verdict.goal());
    // Jobs in time have a confidence interval; the other measures of the goal do not.
    let goal = verdict.goal();
    let measures: Vec<Measure> = goal.measures().iter().copied().filter(|measure| *measure != Measure::Met).collect();
    let mut header: Vec<String> = vec!["scheduler".into()];
    header.extend(measures.iter().map(|measure| labels::measure(goal, *measure)));
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
    rows.extend(verdict.start.as_ref().map(row));
    let is_shown = |(place, judged): &(usize, &JudgedScheduler)| *place < 3 || is_baseline(&judged.name);
    rows.extend(verdict.others.iter().enumerate().filter(is_shown).map(|(_, judged)| row(judged)));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    text += &table::render_fitting(&header, &rows, 1);
    let output = output.display();
    let written = match verdict.is_new {
        true => format!("{output} holds the model."),
        false => format!("{output} was not written."),
    };
    text += &format!("\n{}\n{written}\n", verdict.sentence());
    text
}
