//! Progress of a training on the terminal, and its checkpoint and logs.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use temponet::Model;
use temponet_lab::stats::percent;
use temponet_school::curves::{self, About, Baseline};
use temponet_train::{EventFile, PhaseFigures, Recipe, TrainError, TrainingObserver, UpdateFigures, ValidationScores};

use super::Args;
use crate::paths::{Kind, Output, Replace};
use crate::{interrupt, output, table};

/// Shows the progress of a training, and writes its checkpoint, curves and logs after each phase.
pub struct Watcher {
    /// Progress bar.
    pub bar: ProgressBar,
    /// The set as the user named it; none if the recipe draws sets.
    set: Option<String>,
    /// Start of the training.
    pub begun: Instant,
    /// File of the checkpoint.
    pub checkpoint: Output,
    /// File of the curves, which are drawn anew after each phase.
    pub plot: Option<Output>,
    log: Option<Output>,
    tensorboard: Option<Output>,
    /// Files of the models of all phases, by stage and phase; empty unless the user asks for them.
    snapshots: HashMap<(usize, u64), Output>,
    events: EventFile,
    /// Figures of the phases so far.
    pub phases: Vec<PhaseFigures>,
    /// Best validation score so far.
    best: Option<f64>,
}

impl Watcher {
    /// Claims the logs that the user asks for.
    pub fn new(args: &Args, recipe: &Recipe, checkpoint: Output) -> Result<Watcher> {
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent}% · {msg} · {eta} left") {
            bar.set_style(style);
        }
        let plot = Output::wanted(args.plot.as_deref(), Kind::PictureOrPage, args.force)?;
        let log = Output::wanted(args.log.as_deref(), Kind::Log, args.force)?;
        let events = |folder: &Path| {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
            let path = folder.join("events.out.tfevents.0.temponet");
            Output::claim(&path, Kind::Events, Replace::earlier_or(args.force))
        };
        let snapshots = args.snapshots.as_deref().map(|folder| claimed_models(folder, recipe, args.force));
        let snapshots = snapshots.transpose()?.unwrap_or_default();
        let tensorboard = args.tensorboard.as_deref().map(events).transpose()?;
        Ok(Watcher {
            bar,
            set: args.set.clone(),
            begun: Instant::now(),
            checkpoint,
            plot,
            log,
            tensorboard,
            snapshots,
            events: EventFile::default(),
            phases: Vec::new(),
            best: None,
        })
    }

    /// Records the figures of a phase.
    pub fn note(&mut self, figures: &PhaseFigures) {
        self.best = Some(figures.best);
        self.phases.push(figures.clone());
        let (step, seconds) = (self.phases.len() as u64, self.begun.elapsed().as_secs_f64());
        for (name, value) in [("loss", figures.loss), ("norm", figures.norm), ("score", figures.score)] {
            self.events.add(name, step, seconds, value as f32);
        }
    }

    /// Draws the curves so far, if the user asks for them.
    pub fn draw(&self, baselines: &[Baseline], about: &About) -> Result<()> {
        let Some(file) = &self.plot else { return Ok(()) };
        file.write(match file.is_page() {
            true => curves::page(&self.phases, baselines, about),
            false => curves::svg(&self.phases, baselines),
        })
    }

    /// Returns the log with one row per phase.
    fn csv(&self) -> String {
        let mut text = String::from("stage,method,phase,updates,loss,norm,score,best,met,critical,skipped\n");
        for p in &self.phases {
            let [loss, norm, score, best, met] = [p.loss, p.norm, p.score, p.best, p.met].map(table::number);
            let critical = p.critical.map(table::number).unwrap_or_default();
            let place = format!("{},{},{},{}", p.stage, p.method, p.phase, p.updates);
            let skipped = p.skipped;
            text += &format!("{place},{loss},{norm},{score},{best},{met},{critical},{skipped}\n");
        }
        text
    }
}

impl TrainingObserver for Watcher {
    fn begun(&mut self, validated: &ValidationScores) {
        self.best = Some(validated.score);
        let ValidationScores { score, met, critical } = *validated;
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

    fn kept(&mut self, figures: &PhaseFigures, model: &dyn Fn() -> Model) -> Result<(), TrainError> {
        let Some(file) = self.snapshots.get(&(figures.stage, figures.phase)) else { return Ok(()) };
        let written = model().to_bytes().map_err(anyhow::Error::from).and_then(|bytes| file.write(bytes));
        written.map_err(stopped)
    }

    fn phase(
        &mut self,
        figures: &PhaseFigures,
        checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
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
        let checkpoint = self.checkpoint.path().display();
        interrupt::set_last_words(Some(format!(
            "interrupted: {checkpoint} holds what was learned; the same command with --resume goes on with it"
        )));
        self.draw(&[], &About::unfinished(self.set.as_deref())).map_err(stopped)?;
        if let Some(file) = &self.log {
            file.write(self.csv()).map_err(stopped)?;
        }
        if let Some(file) = &self.tensorboard {
            file.write(self.events.bytes()).map_err(stopped)?;
        }
        Ok(())
    }
}

/// Claims a file for the model of each phase of a recipe.
fn claimed_models(folder: &Path, recipe: &Recipe, is_forced: bool) -> Result<HashMap<(usize, u64), Output>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let stages = (1..).zip(&recipe.stage);
    let places = stages.flat_map(|(number, stage)| (1..=stage.phases).map(move |phase| (number, phase)));
    places
        .map(|(stage, phase)| {
            let path = folder.join(format!("stage-{stage}-phase-{phase:03}.safetensors"));
            Ok(((stage, phase), Output::claim(&path, Kind::Model, Replace::earlier_or(is_forced))?))
        })
        .collect()
}

fn stopped(error: anyhow::Error) -> TrainError {
    TrainError::Stopped(format!("{error:#}"))
}

/// Describes the results of a phase on unseen jobs: critical jobs first, then the score that the weights are chosen by
/// if it differs from the share of jobs in time.
fn shares(score: f64, met: f64, critical: Option<f64>) -> String {
    let critical = critical.map(|share| format!("critical {}, ", percent(share))).unwrap_or_default();
    let worth = if score == met { String::new() } else { format!("worth {}, ", percent(score)) };
    format!("{critical}{worth}in time {}", percent(met))
}
