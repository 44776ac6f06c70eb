//! Schedulers that compete on the same runs, beside the clairvoyant optimum. Most experiments are such contests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet::stages::Learned;
use temponet::{Model, NetworkError, Options, Temponet, Tuning};
use temponet_sim::{Metrics, SimError, Unobserved, simulate};
use temponet_task::{Aim, Scheduler};

use super::baselines::Baselines;
use super::cache::{self, CODE, model_key, options_key};
use super::paper_model::PAPER;
use super::result_line::{Better, Line, RepeatedMean, Unit};
use super::{Context, Mode, Protocol, ReproduceError, Size};
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
    /// Builds the scheduler for one run, in each of its trainings.
    makes: Vec<Make<'a>>,
    /// Whether its name says what it is: results of the same runs are then kept.
    is_shared: bool,
    /// What decides the results of each training beside the code and the runs; none if the clock does, too.
    identities: Vec<Option<String>>,
}

/// Results of schedulers that are the same in every reading of the paper, and bounds on what is possible, by what they
/// are of.
#[derive(Default)]
pub struct SharedResults {
    runs: Mutex<BTreeMap<String, Result<Vec<RunFigures>, String>>>,
    possible: Mutex<BTreeMap<String, Vec<OptimumRange>>>,
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
    /// Figures of no run.
    const ZERO: RunFigures = RunFigures {
        compliance: 0.0,
        pitmd: Some(0.0),
        success: 0.0,
        art_completed: Some(0.0),
        art_all: Some(0.0),
        lateness_p95: Some(0.0),
        migrations: 0.0,
        energy: 0.0,
        energy_per_met: 0.0,
        fallbacks: 0.0,
    };

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

    /// Averages the figures of several trainings on the same run.
    fn mean(all: &[RunFigures]) -> RunFigures {
        let mean = |of: fn(&RunFigures) -> f64| stats::mean(&all.iter().map(of).collect::<Vec<f64>>());
        let known = |of: RunMetric| {
            let values: Vec<f64> = all.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| stats::mean(&values))
        };
        RunFigures {
            compliance: mean(|run| run.compliance),
            pitmd: known(|run| run.pitmd),
            success: mean(|run| run.success),
            art_completed: known(|run| run.art_completed),
            art_all: known(|run| run.art_all),
            lateness_p95: known(|run| run.lateness_p95),
            migrations: mean(|run| run.migrations),
            energy: mean(|run| run.energy),
            energy_per_met: mean(|run| run.energy_per_met),
            fallbacks: mean(|run| run.fallbacks),
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
    /// Figures, run by run; of several trainings, their mean.
    pub runs: Vec<RunFigures>,
    /// Figures of each training, run by run, where there are several.
    pub trainings: Vec<Vec<RunFigures>>,
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

    /// Estimates a figure over the runs. The interval covers the trainings as well, where there are several.
    pub fn estimate(&self, of: RunMetric) -> RepeatedMean {
        RepeatedMean::of(&self.values(of)).with_trainings(&self.by_training(of))
    }

    /// Estimates by how much a figure is greater than that of another scheduler, run by run.
    pub fn lead_over(&self, other: &Contender, of: RunMetric) -> RepeatedMean {
        let lead = differences(&self.values(of), &other.values(of));
        RepeatedMean::of(&lead).with_trainings(&self.by_training(of))
    }

    /// Returns the mean of a figure over the runs of each training; empty where there are not several.
    pub fn by_training(&self, of: RunMetric) -> Vec<f64> {
        let mean = |runs: &Vec<RunFigures>| stats::mean(&runs.iter().filter_map(of).collect::<Vec<f64>>());
        self.trainings.iter().map(mean).collect()
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
        let model = self.roster.model.as_ref().and_then(|model| identity(model, &self.roster.options));
        let entrant = |name: &String| {
            let spec = name.clone();
            let known = if kind(name).is_classical() { Some(String::new()) } else { model.clone() };
            Entrant {
                identities: vec![known.map(|model| format!("{name} {model}"))],
                name: self.roster.label(name),
                is_classical: kind(name).is_classical(),
                makes: vec![Box::new(move || Ok(self.roster.build(&spec)?))],
                is_shared: true,
            }
        };
        names.iter().map(entrant).collect()
    }

    /// Returns the paper's own TempoNet, the learned scheduler as it ships, and classical schedulers.
    pub fn learned_and(&self, classical: &[String]) -> Result<Vec<Entrant<'_>>, ReproduceError> {
        let names: Vec<String> = [SHIELDED.to_string()].into_iter().chain(classical.iter().cloned()).collect();
        Ok([self.paper_entrant()?].into_iter().chain(self.entrants(&names)).collect())
    }

    /// Runs the paper's own TempoNet, the learned scheduler as it ships, and the classical schedulers of a test bed.
    pub fn contest(&self, bed: &TestBed<'_>) -> Result<Contest, ReproduceError> {
        self.contest_of(bed, &self.learned_and(bed.classical)?)
    }

    /// Says whom the learned scheduler that ships follows on these runs: its network, or a simple scheduler that it has
    /// found to be better there by simulation.
    pub fn followed(&self, cases: &[Case]) -> String {
        if self.is_planning() {
            return String::new();
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for case in cases {
            let decider = self.roster.decider(SHIELDED, &case.set);
            *counts.entry(decider.map_or("nobody".into(), |decider| decider.name)).or_default() += 1;
        }
        let of = cases.len();
        let said = counts.into_iter().map(|(name, count)| match count == of {
            true => name,
            false => format!("{name} on {count} of {of}"),
        });
        said.collect::<Vec<String>>().join(", ")
    }

    /// Runs the given entrants on every run of a test bed, in parallel. The results do not depend on the number of
    /// threads.
    pub fn contest_of(&self, bed: &TestBed<'_>, entrants: &[Entrant<'_>]) -> Result<Contest, ReproduceError> {
        let TestBed { label, cases, oracle, .. } = bed;
        if self.is_planning() {
            // What is trained does not depend on who wins.
            return Ok(Contest::blank(entrants, cases.len(), oracle.is_some()));
        }
        let trainings: usize = entrants.iter().map(|entrant| entrant.makes.len()).sum();
        let progress = Progress::steps((cases.len() * (trainings + usize::from(oracle.is_some()))) as u64);
        progress.say(label);
        let runs = key(cases);
        let runs_key = || runs.as_str();
        let possible = match oracle {
            None => Vec::new(),
            Some((aim, seconds)) => {
                let name = format!("{aim:?} {seconds} {}", runs_key());
                let one = |case: &Case| {
                    let range = possible(*aim, *seconds, case);
                    progress.step();
                    range
                };
                let work_out = || Ok(cases.par_iter().map(one).collect());
                kept(&self.shared.possible, name.clone(), || self.kept_result(Some(&name), work_out))?
            }
        };
        let (mut contenders, mut skipped) = (Vec::new(), Vec::new());
        for entrant in entrants {
            let (name, is_classical) = (entrant.name.clone(), entrant.is_classical);
            let run = |(make, identity): (&Make<'_>, &Option<String>)| {
                let identity = identity.as_ref().map(|identity| format!("{identity} {}", runs_key()));
                self.kept_result(identity.as_deref(), || self.runs(cases, &name, make, &progress))
            };
            let mut trainings = entrant.makes.iter().zip(&entrant.identities);
            let found = match entrant.is_shared {
                true => {
                    let work_out = || trainings.next().map_or(Ok(Ok(Vec::new())), run);
                    kept(&self.shared.runs, format!("{name} {}", runs_key()), work_out)?.map(|runs| vec![runs])
                }
                false => trainings.map(run).collect::<Result<Result<Vec<_>, String>, ReproduceError>>()?,
            };
            match found {
                Ok(mut trainings) if trainings.len() == 1 => {
                    contenders.push(Contender { name, is_classical, runs: trainings.remove(0), trainings });
                }
                Ok(trainings) => {
                    let of_run = |run| trainings.iter().map(|runs| runs[run]).collect::<Vec<RunFigures>>();
                    let runs = (0..cases.len()).map(|run| RunFigures::mean(&of_run(run))).collect();
                    contenders.push(Contender { name, is_classical, runs, trainings });
                }
                Err(why) => skipped.push((name, why)),
            }
        }
        progress.finish();
        Ok(Contest { contenders, skipped, possible })
    }

    /// Returns a result by what it is of, beside the code. In the full mode it is kept in the cache, so that an experiment
    /// that is cut off loses only what it is at.
    fn kept_result<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        of: Option<&str>,
        work_out: impl FnOnce() -> Result<T, ReproduceError>,
    ) -> Result<T, ReproduceError> {
        let Some(of) = of.filter(|_| self.mode == Mode::Full) else { return work_out() };
        let file = format!("runs-{}.json", cache::key(&[CODE, of]));
        if let Some(known) = self.cache.result(&file)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(known);
        }
        let result = work_out()?;
        let wrong = |error: serde_json::Error| ReproduceError::Cache(file.clone(), error.to_string());
        self.cache.write(&file, &serde_json::to_vec(&result).map_err(wrong)?)?;
        Ok(result)
    }

    /// Runs a scheduler on all cases, in parallel; or says why it is not applicable.
    fn runs(
        &self,
        cases: &[Case],
        name: &str,
        make: &Make<'_>,
        progress: &Progress,
    ) -> Result<Result<Vec<RunFigures>, String>, ReproduceError> {
        let one = |case: &Case| -> Result<RunFigures, CompareError> {
            let mut scheduler = make()?;
            let metrics = simulate(&case.set, case.seed, case.horizon, &mut *scheduler, &mut Unobserved);
            progress.step();
            let metrics = metrics.map_err(|error| CompareError::Run(name.into(), error))?;
            Ok(RunFigures::of(&metrics, &*scheduler))
        };
        match cases.par_iter().map(one).collect::<Result<Vec<_>, CompareError>>() {
            Ok(runs) => Ok(Ok(runs)),
            Err(CompareError::Run(_, SimError::NotApplicable(why))) => Ok(Err(why.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns what is known under a name, or works it out and keeps it.
fn kept<T: Clone>(
    known: &Mutex<BTreeMap<String, T>>,
    name: String,
    work_out: impl FnOnce() -> Result<T, ReproduceError>,
) -> Result<T, ReproduceError> {
    if let Some(known) = known.lock().unwrap_or_else(PoisonError::into_inner).get(&name) {
        return Ok(known.clone());
    }
    let found = work_out()?;
    known.lock().unwrap_or_else(PoisonError::into_inner).insert(name, found.clone());
    Ok(found)
}

/// Text that tells a model with its options apart; none if its decisions depend on the clock.
fn identity(model: &Model, options: &Options) -> Option<String> {
    let key = model_key(model).ok().filter(|_| options.budget_ns.is_none())?;
    Some(format!("{key} {}", options_key(options)))
}

/// Text that tells runs apart.
fn key(cases: &[Case]) -> String {
    let one = |case: &Case| format!("{} {} {}", case.set.fingerprint(), case.seed, case.horizon.0);
    cases.iter().map(one).collect::<Vec<String>>().join(", ")
}

impl Entrant<'_> {
    /// Keeps the results of the same runs for other readings of the paper: its name says what it is.
    pub fn shared(self) -> Self {
        Entrant { is_shared: self.makes.len() == 1, ..self }
    }

    /// Builds the scheduler for one run; of several trainings, the first.
    pub fn scheduler(&self) -> Result<Box<dyn Scheduler>, CompareError> {
        (self.makes[0])()
    }

    /// Builds the schedulers of all trainings for one run.
    pub fn schedulers(&self) -> impl Iterator<Item = Result<Box<dyn Scheduler>, CompareError>> {
        self.makes.iter().map(|make| make())
    }
}

/// Returns an entrant that runs a model with the given options, with or without the shield. The network is followed on
/// every set.
pub fn model_entrant(name: &str, model: &Arc<Model>, options: Options, is_shielded: bool) -> Entrant<'static> {
    models_entrant(name, std::slice::from_ref(model), options, is_shielded)
}

/// Returns the same for the models of several trainings.
pub fn models_entrant(name: &str, models: &[Arc<Model>], options: Options, is_shielded: bool) -> Entrant<'static> {
    let make = |model: &Arc<Model>| -> Make<'static> {
        let (model, label) = (model.clone(), name.to_string());
        Box::new(move || {
            let wrong = |error: NetworkError| {
                CompareError::Spec(temponet_sched::SpecError::Option(label.clone(), error.to_string()))
            };
            Ok(match is_shielded {
                true => {
                    let options = Options { tuning: Tuning::Off, ..options };
                    Box::new(Temponet::new(model.clone(), options).map_err(wrong)?)
                }
                false => Box::new(Learned::new(model.clone(), options).map_err(wrong)?),
            })
        })
    };
    let of = |model: &Arc<Model>| Some(format!("{is_shielded} {}", identity(model, &options)?));
    let (makes, identities) = (models.iter().map(make).collect(), models.iter().map(of).collect());
    Entrant { name: name.into(), is_classical: false, makes, is_shared: false, identities }
}

impl Contest {
    /// A contest whose runs were not made: every figure is zero.
    fn blank(entrants: &[Entrant<'_>], runs: usize, has_optimum: bool) -> Contest {
        let contender = |entrant: &Entrant<'_>| {
            let runs = vec![RunFigures::ZERO; runs];
            let trainings = match entrant.makes.len() {
                1 => Vec::new(),
                count => vec![runs.clone(); count],
            };
            Contender { name: entrant.name.clone(), is_classical: entrant.is_classical, runs, trainings }
        };
        Contest {
            contenders: entrants.iter().map(contender).collect(),
            skipped: Vec::new(),
            possible: vec![OptimumRange::default(); if has_optimum { runs } else { 0 }],
        }
    }

    /// Returns the contender with this name.
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }

    /// Returns the paper's own TempoNet.
    pub fn paper(&self) -> Option<&Contender> {
        self.contender(PAPER)
    }

    /// Returns the learned scheduler as it ships: the first contender that is neither classical nor the paper's.
    pub fn shipped(&self) -> Option<&Contender> {
        self.contenders.iter().find(|contender| !contender.is_classical && contender.name != PAPER)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, DeviceTrainer};
    use temponet::stages::Tokenizer;
    use temponet_lab::roster::Roster;
    use temponet_task::{Task, TaskSet, Time};

    fn edf<'a>(context: &'a Context<'_>) -> Entrant<'a> {
        context.entrants(&["edf".into()]).remove(0)
    }

    #[test]
    fn in_the_full_mode_a_contest_that_was_cut_off_goes_on_with_the_runs_that_are_missing() {
        let folder = std::env::temp_dir().join(format!("temponet-contest-{}", std::process::id()));
        let cache = Cache::open(&folder).unwrap();
        let (roster, trainer) = (Roster::with(Model::random(Tokenizer::paper(), 1)), DeviceTrainer::cpu());
        let context = |mode, cache| Context::new(&crate::ALL[0], mode, &roster, cache, &trainer);
        let task = |name: &str, ms: u64| Task::periodic(name, Time(ms * 1_000_000), Time(ms * 600_000));
        let set = TaskSet::new("two", vec![task("a", 10), task("b", 15)], 1);
        let case = Case { set, seed: 1, horizon: Time(300_000_000) };
        let bed = TestBed { label: "two".into(), cases: vec![case], classical: &[], oracle: Some((Aim::Met, 0.1)) };
        let models = [1, 2].map(|seed| Arc::new(Model::random(Tokenizer::paper(), seed)));
        // Two entrants of one identity: the second cannot run.
        let able = || models_entrant("two", &models, Options::default(), false);
        let broken = || {
            let wrong = || SimError::IllegalAssignment { time: Time(0), what: "it was not asked to run".into() };
            let make = || -> Make<'static> { Box::new(move || Err(CompareError::Run("broken".into(), wrong()))) };
            Entrant { makes: vec![make(), make()], ..able() }
        };
        let full = context(Mode::Full, &cache);
        assert!(full.contest_of(&bed, &[broken()]).is_err(), "nothing is known yet");
        let first = full.contest_of(&bed, &[able(), edf(&full)]).unwrap();
        let again = context(Mode::Full, &cache);
        let second = again.contest_of(&bed, &[broken(), edf(&again)]).unwrap();
        assert_eq!((second.contenders, second.possible), (first.contenders.clone(), first.possible));
        assert_eq!(first.contenders[0].trainings.len(), 2);
        let files = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(files, 4, "the optimum, two trainings and EDF");
        let other = models_entrant("two", &models, Options::default(), true);
        assert!(other.identities.iter().zip(&able().identities).all(|(other, own)| other.is_some() && other != own));
        let in_time = Options { budget_ns: Some(1_000), ..Options::default() };
        assert!(models_entrant("two", &models, in_time, false).identities.iter().all(Option::is_none));
        // A short look keeps and reads nothing, and neither does a forced call read.
        assert!(context(Mode::Quick, &cache).contest_of(&bed, &[broken()]).is_err());
        assert!(context(Mode::Full, &cache.clone().anew(true)).contest_of(&bed, &[broken()]).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
