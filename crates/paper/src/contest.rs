//! Schedulers on the same runs, beside the clairvoyant optimum: what most experiments are.

use std::sync::Arc;

use rayon::prelude::*;
use temponet::{Learned, Model, Options, Temponet};
use temponet_sim::{Metrics, SimError, Unobserved, simulate};
use temponet_task::{Aim, Scheduler};

use super::findings::{Better, Estimate, Line, Unit};
use super::{Context, ReproduceError};
use temponet_lab::arena::{Case, possible};
use temponet_lab::clairvoyant::OptimumRange;
use temponet_lab::comparison::CompareError;
use temponet_lab::progress::Progress;
use temponet_lab::roster::{SHIELDED, is_classical};
use temponet_lab::stats;

/// Makes a scheduler for one run.
pub type Make<'a> = Box<dyn Fn() -> Result<Box<dyn Scheduler>, CompareError> + Sync + 'a>;

/// Who takes part.
pub struct Entrant<'a> {
    /// How results call it.
    pub name: String,
    /// Whether it may be the best classical scheduler.
    pub is_classical: bool,
    make: Make<'a>,
}

/// The figures of one run; times in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigures {
    /// Share of jobs in time.
    pub compliance: f64,
    /// Share of critical jobs in time.
    pub pitmd: Option<f64>,
    /// One if every critical job (every job, where none is critical) was in time, else zero.
    pub success: f64,
    /// Mean response time over the jobs that completed.
    pub art_completed: Option<f64>,
    /// Mean time from release to end over all jobs.
    pub art_all: Option<f64>,
    /// End less deadline that 95% of the jobs do not exceed.
    pub lateness_p95: Option<f64>,
    /// Migrations per job.
    pub migrations: f64,
    /// Dynamic energy, which only busy cores spend: one unit is a core at full speed for a second.
    pub energy: f64,
    /// The same for each job in time.
    pub energy_per_met: f64,
    /// Share of the decisions that the learned scheduler left to its fallback.
    pub fallbacks: f64,
}

impl RunFigures {
    /// The figures of a run that a scheduler has just made.
    pub fn of(metrics: &Metrics, scheduler: &dyn Scheduler) -> RunFigures {
        let ms = |ns: f64| ns / 1e6;
        let fallbacks =
            scheduler.counters().into_iter().find(|(name, _)| *name == "fallbacks").map_or(0, |(_, count)| count);
        RunFigures {
            compliance: metrics.jobs.compliance(),
            pitmd: metrics.pitmd(),
            success: metrics.successful_runs as f64 / metrics.runs.max(1) as f64,
            art_completed: metrics.art_completed().map(ms),
            art_all: metrics.art_all().map(ms),
            lateness_p95: metrics.lateness.quantile(0.95).map(|ns| ms(ns as f64)),
            migrations: metrics.migrations as f64 / metrics.jobs.released.max(1) as f64,
            energy: metrics.energy,
            energy_per_met: metrics.energy / metrics.jobs.met.max(1) as f64,
            fallbacks: fallbacks as f64 / metrics.decisions.max(1) as f64,
        }
    }

    /// Share of jobs in time.
    pub fn in_time(&self) -> Option<f64> {
        Some(self.compliance)
    }
}

/// Which figure of a run; none where the run has none.
pub type Of = fn(&RunFigures) -> Option<f64>;

/// One scheduler on all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// Whether it is classical.
    pub is_classical: bool,
    /// Run by run.
    pub runs: Vec<RunFigures>,
}

impl Contender {
    /// A figure, run by run.
    pub fn values(&self, of: Of) -> Vec<f64> {
        self.runs.iter().filter_map(of).collect()
    }

    /// Its mean; none if no run has it.
    pub fn mean(&self, of: Of) -> Option<f64> {
        let values = self.values(of);
        (!values.is_empty()).then(|| stats::mean(&values))
    }

    /// The figure with its spread.
    pub fn estimate(&self, of: Of) -> Estimate {
        Estimate::of(&self.values(of))
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Those that apply to every run, in the order of the entrants.
    pub contenders: Vec<Contender>,
    /// Those that do not, and why.
    pub skipped: Vec<(String, String)>,
    /// The greatest possible score of each run by the metric asked for; empty if it was not asked for.
    pub possible: Vec<OptimumRange>,
}

impl Context<'_> {
    /// Entrants by name: classical schedulers, and the learned one of this call with its shield and without.
    pub fn entrants(&self, names: &[String]) -> Vec<Entrant<'_>> {
        let entrant = |name: &String| {
            let spec = name.clone();
            Entrant {
                name: self.roster.label(name),
                is_classical: is_classical(name),
                make: Box::new(move || Ok(self.roster.build(&spec)?)),
            }
        };
        names.iter().map(entrant).collect()
    }

    /// The learned scheduler of this call, behind its shield, and classical schedulers.
    pub fn learned_and(&self, classical: &[String]) -> Vec<Entrant<'_>> {
        let names: Vec<String> = [SHIELDED.to_string()].into_iter().chain(classical.iter().cloned()).collect();
        self.entrants(&names)
    }

    /// Runs everybody on every run, in parallel; the result does not depend on the number of threads. With `oracle`, the optimum by that
    /// metric as well, in at most so many seconds of one core for each run.
    pub fn contest(
        &self,
        what: &str,
        cases: &[Case],
        entrants: &[Entrant<'_>],
        oracle: Option<(Aim, f64)>,
    ) -> Result<Contest, ReproduceError> {
        let progress = Progress::steps((cases.len() * (entrants.len() + usize::from(oracle.is_some()))) as u64);
        progress.say(what);
        let possible = oracle.map_or(Vec::new(), |(metric, seconds)| {
            let one = |case: &Case| {
                let range = possible(metric, seconds, case);
                progress.step();
                range
            };
            cases.par_iter().map(one).collect()
        });
        let (mut contenders, mut skipped) = (Vec::new(), Vec::new());
        for entrant in entrants {
            let one = |case: &Case| -> Result<RunFigures, CompareError> {
                let mut scheduler = entrant.scheduler()?;
                let metrics = simulate(&case.set, case.seed, case.horizon, &mut *scheduler, &mut Unobserved);
                progress.step();
                let metrics = metrics.map_err(|error| CompareError::Run(entrant.name.clone(), error))?;
                Ok(RunFigures::of(&metrics, &*scheduler))
            };
            match cases.par_iter().map(one).collect::<Result<Vec<_>, CompareError>>() {
                Ok(runs) => {
                    let (name, is_classical) = (entrant.name.clone(), entrant.is_classical);
                    contenders.push(Contender { name, is_classical, runs });
                }
                Err(CompareError::Run(name, SimError::NotApplicable(why))) => skipped.push((name, why.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
        progress.finish();
        Ok(Contest { contenders, skipped, possible })
    }
}

impl Entrant<'_> {
    /// A scheduler for one run.
    pub fn scheduler(&self) -> Result<Box<dyn Scheduler>, CompareError> {
        (self.make)()
    }
}

/// A model as an entrant, used as the options say, with the shield or without.
pub fn model_entrant(name: &str, model: &Arc<Model>, options: Options, is_shielded: bool) -> Entrant<'static> {
    let (model, label) = (model.clone(), name.to_string());
    let make = move || -> Result<Box<dyn Scheduler>, CompareError> {
        let wrong = |error: temponet::NetworkError| {
            CompareError::Spec(temponet_sched::SpecError::Option(label.clone(), error.to_string()))
        };
        Ok(match is_shielded {
            true => Box::new(Temponet::new(model.clone(), options).map_err(wrong)?),
            false => Box::new(Learned::new(model.clone(), options).map_err(wrong)?),
        })
    };
    Entrant { name: name.into(), is_classical: false, make: Box::new(make) }
}

impl Contest {
    /// One of them.
    pub fn of(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }

    /// The learned one: whoever is not classical and came first.
    pub fn learned(&self) -> Option<&Contender> {
        self.contenders.iter().find(|contender| !contender.is_classical)
    }

    /// The classical scheduler with the best mean, and that mean.
    pub fn best_classical(&self, better: Better, of: Of) -> Option<(&Contender, f64)> {
        let classical = self.contenders.iter().filter(|contender| contender.is_classical);
        let known = classical.filter_map(|contender| Some((contender, contender.mean(of)?)));
        known.reduce(|best, next| {
            let is_better = if better == Better::Lower { next.1 < best.1 } else { next.1 > best.1 };
            if is_better { next } else { best }
        })
    }

    /// The mean of what is possible, and whether it is the optimum and no mere bound.
    pub fn optimum(&self) -> Option<(f64, bool)> {
        let upper: Vec<f64> = self.possible.iter().map(|range| range.upper).collect();
        (!upper.is_empty()).then(|| (stats::mean(&upper), self.possible.iter().all(OptimumRange::is_exact)))
    }

    /// Puts EDF's and the best classical scheduler's figure beside a line.
    pub fn beside(&self, line: Line, of: Of) -> Line {
        let best = self.best_classical(line.better, of);
        line.beside("edf", None, self.of("edf").and_then(|edf| edf.mean(of))).beside(
            "best classical",
            best.map(|(best, _)| best.name.as_str()),
            best.map(|(_, mean)| mean),
        )
    }

    /// Puts the optimum beside a line, if it was asked for.
    pub fn beside_optimum(&self, line: Line) -> Line {
        match self.optimum() {
            Some((optimum, is_exact)) => line.beside("optimum", (!is_exact).then_some("at most"), Some(optimum)),
            None => line,
        }
    }

    /// A figure of a contender as a line, with EDF and the best classical scheduler beside it.
    pub fn line(&self, name: &str, who: &Contender, unit: Unit, better: Better, of: Of) -> Line {
        self.beside(Line::new(name, unit, better, who.estimate(of)), of)
    }

    /// The share of jobs in time as a line, with the optimum beside it if it was asked for by that metric.
    pub fn score_line(&self, name: &str, who: &Contender, of: Of) -> Line {
        self.beside_optimum(self.line(name, who, Unit::Share, Better::Higher, of))
    }
}
