//! Checks for anybody who changes the environment or adds a method of learning.

use std::sync::Arc;

use temponet::stages::{Observation, Scale, Tokenizer};
use temponet_grad::Cpu;
use temponet_sched::build;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Assignment, Scheduler, Time};

use crate::environment::{Ending, Environment, EnvironmentSettings};
use crate::error::TrainError;
use crate::observer::{PhaseFigures, TrainingObserver};
use crate::recipe::Recipe;
use crate::reward::Reward;
use crate::run::TrainingRun;
use crate::task_set_source::TaskSetSource;

/// Runs EDF on this many sets, once in the environment and once in the simulator itself.
///
/// Checks that time moves on, that tokens are within their vocabularies, that rewards add up to the jobs met less those
/// missed, that an ending is reported once, and that the same seed gives the same run.
pub fn check_environment(source: &TaskSetSource, tokenizer: &Tokenizer, seed: u64, sets: u64) -> Result<(), String> {
    for number in 0..sets {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
        let set = source.set(seed).map_err(|error| error.to_string())?;
        let scale = Scale::of(tokenizer, &set.system);
        let horizon = Time((scale.unit * 60.0) as u64);
        let mut edf = build("edf").map_err(|error| error.to_string())?;
        let metrics = simulate(&set, seed, horizon, &mut edf, &mut Unobserved).map_err(|error| error.to_string())?;
        let run = || episode(Arc::clone(&set), tokenizer, scale.clone(), seed, horizon);
        let (earned, decisions) = run()?;
        if run()? != (earned, decisions) {
            return Err(format!("seed {seed}: the same seed gave another run"));
        }
        // Jobs that are unfinished at the horizon have no reward yet.
        let (met, missed) = (metrics.jobs.met as f64, metrics.missed() as f64);
        let most_open = (set.tasks().len() * 4) as f64;
        if decisions != metrics.decisions || earned > met + most_open || earned < met - missed - most_open {
            return Err(format!("seed {seed}: earned {earned} in {decisions} decisions, met {met}, missed {missed}"));
        }
    }
    Ok(())
}

fn episode(
    set: Arc<temponet_task::TaskSet>,
    tokenizer: &Tokenizer,
    scale: Scale,
    seed: u64,
    horizon: Time,
) -> Result<(f64, u64), String> {
    let mut edf = build("edf").map_err(|error| error.to_string())?;
    edf.start(&set.system).map_err(|error| error.to_string())?;
    // Every job counts as 1, whatever the goal of its set.
    let reward = Reward { by_value: Some(false), ..Reward::default() };
    let mut environment = Environment::new(set, EnvironmentSettings { scale, seed, horizon, reward, tick: None });
    let sizes: Vec<usize> = tokenizer.job_vocabularies().iter().map(|vocabulary| vocabulary.size).collect();
    let (mut observation, mut assignment) = (Observation::default(), Assignment::default());
    let (mut earned, mut decisions, mut ready) = (0.0, 0, Vec::new());
    while environment.ending().is_none() {
        let view = environment.view();
        observation.read(tokenizer, environment.scale(), &view, false);
        for row in 1..=observation.distinct() as u32 {
            let token = observation.token(row);
            if token.len() != sizes.len() || token.iter().zip(&sizes).any(|(value, size)| usize::from(*value) >= *size)
            {
                return Err(format!("seed {seed}: the token {token:?} is outside its vocabularies"));
            }
        }
        let choosable = tokenizer.choosable(&view, &mut ready);
        let shown = observation.jobs().iter().filter(|(_, row)| observation.may_choose(*row)).count();
        let all_are_shown = shown == choosable || (tokenizer.most_rows.is_some() && shown < choosable);
        if observation.jobs().len() != view.active.len()
            || observation.counts().iter().sum::<u32>() as usize != shown
            || !all_are_shown
        {
            return Err(format!("seed {seed}: the rows do not stand for all jobs"));
        }
        assignment.reset(view.cores());
        edf.decide(&view, &mut assignment);
        let before = view.now;
        let step = environment.act(&mut assignment).map_err(|error| error.to_string())?;
        if step.elapsed < 0.0 || environment.view().now < before || !step.reward.is_finite() {
            return Err(format!("seed {seed}: {step:?} after {before}"));
        }
        if step.ending != environment.ending() || step.ending == Some(Ending::Terminated) {
            return Err(format!("seed {seed}: a run of recurring tasks was terminated"));
        }
        earned += step.reward;
        decisions += 1;
    }
    Ok((earned, decisions))
}

/// Trains by a recipe without interruption, on one and on three threads, and once more for each phase, interrupted
/// after it and continued. Returns the last checkpoint and the figures of all phases, or what differs.
pub fn check_resumption(recipe: &Recipe) -> Result<(Vec<u8>, Vec<PhaseFigures>), String> {
    let wrong = |error: TrainError| error.to_string();
    let whole = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| error.to_string())?;
        pool.install(|| interrupted(recipe, usize::MAX)).map_err(wrong)
    };
    let (expected, figures) = whole(1)?;
    if whole(3)? != (expected.clone(), figures.clone()) {
        return Err("the number of threads matters".into());
    }
    for phases in 1..figures.len() {
        let (checkpoint, first) = interrupted(recipe, phases).map_err(wrong)?;
        let mut run = TrainingRun::new(Cpu::default(), recipe.clone(), None, None);
        run.resume(&checkpoint).map_err(wrong)?;
        let mut rest = StopAfter { phases: usize::MAX, checkpoint: Vec::new(), figures: first };
        run.train(&mut rest).map_err(wrong)?;
        if rest.figures != figures || run.checkpoint().map_err(wrong)? != expected {
            return Err(format!("an interruption after {phases} phases matters"));
        }
    }
    Ok((expected, figures))
}

/// Trains by a recipe until this many phases are done, at most all of them. Returns the checkpoint and the figures.
pub fn interrupted(recipe: &Recipe, phases: usize) -> Result<(Vec<u8>, Vec<PhaseFigures>), TrainError> {
    let mut watch = StopAfter { phases, checkpoint: Vec::new(), figures: Vec::new() };
    let mut run = TrainingRun::new(Cpu::default(), recipe.clone(), None, None);
    match run.train(&mut watch) {
        Ok(()) => Ok((run.checkpoint()?, watch.figures)),
        Err(TrainError::Stopped(_)) if watch.figures.len() == phases => Ok((watch.checkpoint, watch.figures)),
        Err(error) => Err(error),
    }
}

/// Stops after some phases and keeps the last checkpoint.
struct StopAfter {
    phases: usize,
    checkpoint: Vec<u8>,
    figures: Vec<PhaseFigures>,
}

impl TrainingObserver for StopAfter {
    fn phase(
        &mut self,
        figures: &PhaseFigures,
        checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
        self.checkpoint = checkpoint()?;
        self.figures.push(figures.clone());
        if self.figures.len() == self.phases { Err(TrainError::Stopped("enough".into())) } else { Ok(()) }
    }
}
