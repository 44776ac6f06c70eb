//! Schedulers that compete on the same runs, beside the clairvoyant optimum. Most experiments are such contests.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet::stages::Learned;
use temponet::{Model, NetworkError, Options, Temponet, Tuning};
use temponet_sim::{Metrics, SimError, Unobserved, simulate};
use temponet_task::{Aim, Scheduler};

use super::baselines::Baselines;
use super::paper_model::{PAPER, PaperModel, READINGS};
use super::result_line::{Better, Line, RepeatedMean, Unit};
use super::{Context, Protocol, ReproduceError, Size};
use temponet_lab::arena::{Case, possible};
use temponet_lab::clairvoyant::OptimumRange;
use temponet_lab::comparison::CompareError;
use temponet_lab::progress::Progress;
use temponet_lab::roster::{SHIELDED, kind};
use temponet_lab::stats;

/// Runs that schedulers compete on, and what they are compared with.
#[derive(Clone, Debug)]
pub struct TestBed<'a> {
    /// Label of the progress bar.
    pub label: String,
    /// The runs.
    pub cases: Vec<Case>,
    /// Specifications of the classical schedulers that take part.
    pub classical: &'a [String],
    /// Measure by which the clairvoyant optimum is computed, and its limit per run in seconds of one core; none: no
    /// optimum.
    pub oracle: Option<(Aim, f64)>,
}

impl Protocol {
    /// A test bed of a workload, with the schedulers of the protocol and the optimum by jobs in time.
    pub fn test_bed(
        &self,
        label: impl Into<String>,
        workload: &str,
        size: Size,
    ) -> Result<TestBed<'_>, ReproduceError> {
        Ok(self.test_bed_of(label, self.cases(workload, size)?, size))
    }

    /// A test bed of given runs, with the schedulers of the protocol and the optimum by jobs in time.
    pub fn test_bed_of(&self, label: impl Into<String>, cases: Vec<Case>, size: Size) -> TestBed<'_> {
        let oracle = Some((Aim::Met, size.oracle_seconds));
        TestBed { label: label.into(), cases, classical: &self.schedulers, oracle }
    }
}

impl TestBed<'_> {
    /// Computes the optimum by critical jobs in time instead.
    pub fn by_critical_jobs(mut self) -> Self {
        self.oracle = self.oracle.map(|(_, seconds)| (Aim::Critical, seconds));
        self
    }
}

/// Builds a scheduler for one run.
pub type Make<'a> = Box<dyn Fn() -> Result<Box<dyn Scheduler>, CompareError> + Sync + 'a>;

/// A scheduler that takes part in a contest.
pub struct Entrant<'a> {
    /// Name in the results.
    pub name: String,
    /// Whether the scheduler counts as classical.
    pub is_classical: bool,
    make: Make<'a>,
}

/// Figures of one run. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Share of jobs in time.
    pub compliance: f64,
    /// Share of critical jobs in time; none if no job is critical.
    pub pitmd: Option<f64>,
    /// 1 if every critical job (every job, where none is critical) was in time, else 0.
    pub success: f64,
    /// Mean response time of the jobs that completed.
    pub art_completed: Option<f64>,
    /// Mean time from release to end over all jobs.
    pub art_all: Option<f64>,
    /// 95th percentile of the lateness, which is the end of a job minus its deadline.
    pub lateness_p95: Option<f64>,
    /// Migrations per job.
    pub migrations: f64,
    /// Dynamic energy, which only busy cores spend. One unit is one core at full speed for one second.
    pub energy: f64,
    /// Dynamic energy per job in time.
    pub energy_per_met: f64,
    /// Share of decisions that the learned scheduler left to its fallback.
    pub fallbacks: f64,
}

impl RunFigures {
    /// Collects the figures of a run that `scheduler` has just made.
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

    /// Returns the share of jobs in time, as a [`RunMetric`].
    pub fn in_time(&self) -> Option<f64> {
        Some(self.compliance)
    }
}

/// Selects a figure of a run; none where the run has no such figure.
pub type RunMetric = fn(&RunFigures) -> Option<f64>;

/// Results of one scheduler on all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Name of the scheduler.
    pub name: String,
    /// Whether the scheduler counts as classical.
    pub is_classical: bool,
    /// Figures, run by run.
    pub runs: Vec<RunFigures>,
}

impl Contender {
    /// Returns a figure, run by run; runs without it are left out.
    pub fn values(&self, of: RunMetric) -> Vec<f64> {
        self.runs.iter().filter_map(of).collect()
    }

    /// Returns the mean of a figure over the runs; none if no run has it.
    pub fn mean(&self, of: RunMetric) -> Option<f64> {
        let values = self.values(of);
        (!values.is_empty()).then(|| stats::mean(&values))
    }

    /// Estimates a figure over the runs.
    pub fn estimate(&self, of: RunMetric) -> RepeatedMean {
        RepeatedMean::of(&self.values(of))
    }

    /// Returns the share of jobs in time, run by run.
    pub fn shares(&self) -> Vec<f64> {
        self.values(RunFigures::in_time)
    }
}

/// Results of a contest.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Schedulers that are applicable to every run, in the order of the entrants.
    pub contenders: Vec<Contender>,
    /// Names of the other schedulers, and why they are not applicable.
    pub skipped: Vec<(String, String)>,
    /// Greatest possible score of each run; empty if no optimum was asked for.
    pub possible: Vec<OptimumRange>,
}

impl Context<'_> {
    /// Returns entrants by the names of the roster: classical schedulers, and the learned one with or without its
    /// shield.
    pub fn entrants(&self, names: &[String]) -> Vec<Entrant<'_>> {
        let entrant = |name: &String| {
            let spec = name.clone();
            Entrant {
                name: self.roster.label(name),
                is_classical: kind(name).is_classical(),
                make: Box::new(move || Ok(self.roster.build(&spec)?)),
            }
        };
        names.iter().map(entrant).collect()
    }

    /// Returns readings of the paper's own TempoNet, the learned scheduler as it ships, and classical schedulers.
    pub fn learned_and(
        &self,
        readings: &[&PaperModel],
        classical: &[String],
    ) -> Result<Vec<Entrant<'_>>, ReproduceError> {
        let names: Vec<String> = [SHIELDED.to_string()].into_iter().chain(classical.iter().cloned()).collect();
        let papers = readings.iter().map(|reading| reading.entrant()).collect::<Result<Vec<_>, _>>()?;
        Ok(papers.into_iter().chain(self.entrants(&names)).collect())
    }

    /// Runs the paper's own TempoNet, the learned scheduler as it ships, and the classical schedulers of a test bed.
    pub fn contest(&self, bed: &TestBed<'_>) -> Result<Contest, ReproduceError> {
        self.contest_of(bed, &self.learned_and(&[&PAPER], bed.classical)?)
    }

    /// Runs the given entrants on every run of a test bed, in parallel. The results do not depend on the number of
    /// threads.
    pub fn contest_of(&self, bed: &TestBed<'_>, entrants: &[Entrant<'_>]) -> Result<Contest, ReproduceError> {
        let TestBed { label, cases, oracle, .. } = bed;
        let progress = Progress::steps((cases.len() * (entrants.len() + usize::from(oracle.is_some()))) as u64);
        progress.say(label);
        let possible = oracle.map_or(Vec::new(), |(aim, seconds)| {
            let one = |case: &Case| {
                let range = possible(aim, seconds, case);
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
    /// Builds a scheduler for one run.
    pub fn scheduler(&self) -> Result<Box<dyn Scheduler>, CompareError> {
        (self.make)()
    }
}

/// Returns an entrant that runs a model with the given options, with or without the shield. The network is followed on
/// every set.
pub fn model_entrant(name: &str, model: &Arc<Model>, options: Options, is_shielded: bool) -> Entrant<'static> {
    let (model, label) = (model.clone(), name.to_string());
    let make = move || -> Result<Box<dyn Scheduler>, CompareError> {
        let wrong = |error: NetworkError| {
            CompareError::Spec(temponet_sched::SpecError::Option(label.clone(), error.to_string()))
        };
        Ok(match is_shielded {
            true => Box::new(Temponet::new(model.clone(), Options { tuning: Tuning::Off, ..options }).map_err(wrong)?),
            false => Box::new(Learned::new(model.clone(), options).map_err(wrong)?),
        })
    };
    Entrant { name: name.into(), is_classical: false, make: Box::new(make) }
}

impl Contest {
    /// Returns the contender with this name.
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }

    /// Returns the paper's own TempoNet.
    pub fn paper(&self) -> Option<&Contender> {
        self.contender(PAPER.name)
    }

    /// Returns the learned scheduler as it ships: the first contender that is neither classical nor a reading of the
    /// paper.
    pub fn shipped(&self) -> Option<&Contender> {
        let is_paper = |name: &str| READINGS.iter().any(|reading| reading.name == name);
        self.contenders.iter().find(|contender| !contender.is_classical && !is_paper(&contender.name))
    }

    /// Returns the paper's own TempoNet and the learned scheduler as it ships, as far as they took part, each with the
    /// prefix of its figures.
    pub fn learned(&self) -> impl Iterator<Item = (&'static str, &Contender)> {
        [("", self.paper()), ("temponet_", self.shipped())].into_iter().filter_map(|(prefix, who)| Some((prefix, who?)))
    }

    /// Returns a contender's share of jobs in time, run by run; empty if it did not take part.
    pub fn shares(&self, name: &str) -> Vec<f64> {
        self.contender(name).map(Contender::shares).unwrap_or_default()
    }

    /// Returns a contender's mean share of jobs in time.
    pub fn share(&self, name: &str) -> Option<f64> {
        self.contender(name)?.mean(RunFigures::in_time)
    }

    /// Returns the classical scheduler with the best mean, and that mean.
    pub fn best_classical(&self, better: Better, of: RunMetric) -> Option<(&Contender, f64)> {
        let classical = self.contenders.iter().filter(|contender| contender.is_classical);
        let known = classical.filter_map(|contender| Some((contender, contender.mean(of)?)));
        known.reduce(|best, next| {
            let is_better = if better == Better::Lower { next.1 < best.1 } else { next.1 > best.1 };
            if is_better { next } else { best }
        })
    }

    /// Returns the mean of the greatest possible scores, and whether it is the optimum rather than an upper bound.
    pub fn optimum(&self) -> Option<(f64, bool)> {
        let upper: Vec<f64> = self.possible.iter().map(|range| range.upper).collect();
        (!upper.is_empty()).then(|| (stats::mean(&upper), self.possible.iter().all(OptimumRange::is_exact)))
    }

    /// Returns the figures of EDF and of the best classical scheduler, without the optimum.
    pub fn classical_baselines(&self, better: Better, of: RunMetric) -> Baselines {
        let best = self.best_classical(better, of);
        Baselines {
            edf: self.contender("edf").and_then(|edf| edf.mean(of)),
            best: best.map(|(_, mean)| mean),
            best_name: best.map(|(best, _)| best.name.clone()),
            optimum: None,
        }
    }

    /// Returns the shares of jobs in time of EDF, of the best classical scheduler and of the optimum.
    pub fn baselines(&self) -> Baselines {
        let classical = self.classical_baselines(Better::Higher, RunFigures::in_time);
        Baselines { optimum: self.optimum(), ..classical }
    }

    /// A figure of a contender as a line, with EDF and the best classical scheduler beside it.
    pub fn line(&self, name: &str, who: &Contender, unit: Unit, better: Better, of: RunMetric) -> Line {
        self.beside_classical(Line::new(name, unit, better, who.estimate(of)), of)
    }

    /// Puts the figures of EDF and of the best classical scheduler beside a line.
    pub fn beside_classical(&self, line: Line, of: RunMetric) -> Line {
        let baselines = self.classical_baselines(line.better, of);
        line.beside_baselines(&baselines)
    }

    /// A share of a contender as a line, with EDF, the best classical scheduler and the optimum beside it. The optimum
    /// must have been computed by the same measure.
    pub fn score_line(&self, name: &str, who: &Contender, of: RunMetric) -> Line {
        let baselines = Baselines { optimum: self.optimum(), ..self.classical_baselines(Better::Higher, of) };
        Line::share(name, who.estimate(of)).beside_baselines(&baselines)
    }
}

/// Formats the mean difference of two paired series of shares in percentage points, with its 95% confidence interval.
pub fn paired_gain(to: &[f64], from: &[f64]) -> String {
    let gain = RepeatedMean::of(&differences(to, from));
    stats::points(gain.mean) + &gain.ci95.map(|half| format!(" ± {}", stats::points(half))).unwrap_or_default()
}

/// Returns `to − from`, pair by pair.
pub fn differences(to: &[f64], from: &[f64]) -> Vec<f64> {
    to.iter().zip(from).map(|(to, from)| to - from).collect()
}
