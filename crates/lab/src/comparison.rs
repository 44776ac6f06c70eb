//! Every scheduler on the same jobs: the experiment behind `temponet compare`.

use rayon::prelude::*;
use temponet_sched::SpecError;
use temponet_sim::{Histogram, Metrics, Recorder, SimError, simulate};
use temponet_task::{Scheduler, TaskSet, Time};

use crate::clairvoyant::{Clairvoyant, clairvoyant};
use crate::horizon::expected_jobs;
use crate::latency::Timed;
use crate::progress::Progress;
use crate::roster::Roster;
use crate::stats;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tasks and the machine, with the user's changes already made.
    pub set: TaskSet,
    /// How long each run lasts.
    pub horizon: Time,
    /// The first run's seed; each further run has the next.
    pub seed: u64,
    /// How many runs.
    pub runs: u64,
    /// Scheduler names with options.
    pub schedulers: Vec<String>,
    /// What the names stand for.
    pub roster: Roster,
    /// Time every decision; runs then follow each other instead of sharing the cores.
    pub latency: bool,
    /// Keep the first run's schedule until this date, for pictures.
    pub record_until: Time,
    /// How long finding the clairvoyant optimum may take, in seconds of one core; none: it is left out.
    pub oracle: Option<f64>,
}

/// One scheduler's figures.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name with options, as it was asked for.
    pub scheduler: String,
    /// All runs added up.
    pub metrics: Metrics,
    /// Compliance run by run.
    pub compliance: Vec<f64>,
    /// Decision latencies in ns, if asked for.
    pub latency: Option<Histogram>,
    /// The first run until the date asked for.
    pub recording: Recorder,
    /// What the scheduler counted about itself, added up over the runs.
    pub counters: Vec<(&'static str, u64)>,
}

impl Row {
    /// Half the 95% confidence interval of the mean compliance over the runs.
    pub fn ci95(&self) -> Option<f64> {
        stats::ci95(&self.compliance)
    }
}

/// The outcome, best scheduler first.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What was run.
    pub plan: Plan,
    /// Most deadlines met first; then most critical ones, then fewest preemptions.
    pub rows: Vec<Row>,
    /// Schedulers that do not apply to this set, and why.
    pub skipped: Vec<(String, String)>,
    /// What any scheduler could have met; none if it was not wanted or no job counts.
    pub clairvoyant: Option<Clairvoyant>,
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A name that means nothing.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A scheduler that broke its contract.
    #[error("scheduler {0:?}: {1}")]
    Run(String, SimError),
}

/// How the clairvoyant optimum is called where it is not computed.
const OPTIMUM: &str = "clairvoyant optimum";

/// Runs of each scheduler that are under way together.
const CHUNK: u64 = 32;

/// Runs everything, in parallel; the result does not depend on the number of threads.
pub fn compare(plan: Plan, progress: &Progress) -> Result<Comparison, CompareError> {
    for spec in &plan.schedulers {
        plan.roster.build(spec)?;
    }
    let mut totals: Vec<Option<Row>> = vec![None; plan.schedulers.len()];
    let mut skipped: Vec<(String, String)> = Vec::new();
    // In chunks, so that memory does not grow with the number of runs; added up in order, so that threads do not matter.
    for first in (0..plan.runs).step_by(CHUNK as usize) {
        let runs = first..(first + CHUNK).min(plan.runs);
        let cells: Vec<(usize, u64)> =
            (0..plan.schedulers.len()).flat_map(|scheduler| runs.clone().map(move |run| (scheduler, run))).collect();
        let one = |(scheduler, run): &(usize, u64)| run_one(&plan, &plan.schedulers[*scheduler], *run, progress);
        let outcomes: Vec<Result<Row, CompareError>> =
            if plan.latency { cells.iter().map(one).collect() } else { cells.par_iter().map(one).collect() };
        for ((scheduler, _), outcome) in cells.iter().zip(outcomes) {
            match (outcome, &mut totals[*scheduler]) {
                (Ok(row), total @ None) => *total = Some(row),
                (Ok(row), Some(total)) => add(total, &row),
                (Err(CompareError::Run(name, why)), _) if why.is_about_the_set() => {
                    if !skipped.iter().any(|(known, _)| *known == name) {
                        skipped.push((name, why.to_string()));
                    }
                }
                (Err(error), _) => return Err(error),
            }
        }
    }
    let clairvoyant = plan.oracle.map(|seconds| {
        progress.say("clairvoyant optimum");
        clairvoyant(&plan.set, plan.horizon, plan.seed, plan.runs, seconds)
    });
    let clairvoyant = clairvoyant.and_then(|found| found.map_err(|why| skipped.push((OPTIMUM.into(), why))).ok());
    progress.finish();
    // Who could not run everything is not held against those who did.
    let has_run = |name: &String| !skipped.iter().any(|(skipped, _)| skipped == name);
    let mut rows: Vec<Row> =
        plan.schedulers.iter().zip(totals).filter(|(name, _)| has_run(name)).filter_map(|(_, row)| row).collect();
    rows.sort_by(|a, b| {
        let critical = |row: &Row| row.metrics.critical().met;
        let by_met = b.metrics.jobs.met.cmp(&a.metrics.jobs.met).then(critical(b).cmp(&critical(a)));
        by_met.then(a.metrics.preemptions.cmp(&b.metrics.preemptions))
    });
    let mut clairvoyant = clairvoyant.filter(|optimum| optimum.released > 0);
    if let (Some(optimum), Some(best)) = (&mut clairvoyant, rows.first()) {
        // Where only bounds are known, a scheduler may have found a better schedule than they have.
        optimum.met.lower = optimum.met.lower.max(best.metrics.jobs.met as f64);
    }
    Ok(Comparison { plan, rows, skipped, clairvoyant })
}

fn run_one(plan: &Plan, spec: &str, run: u64, progress: &Progress) -> Result<Row, CompareError> {
    progress.say(spec);
    let seed = plan.seed.wrapping_add(run);
    let mut scheduler = plan.roster.build(spec)?;
    let mut watched = progress.watch(Recorder::until(if run == 0 { plan.record_until } else { Time::ZERO }));
    let mut simulate = |scheduler: &mut dyn Scheduler| {
        let metrics = simulate(&plan.set, seed, plan.horizon, scheduler, &mut watched);
        metrics.map_err(|error| CompareError::Run(spec.to_string(), error))
    };
    let (metrics, latency) = if plan.latency {
        let mut timed = Timed::new(&mut *scheduler);
        (simulate(&mut timed)?, Some(timed.latencies))
    } else {
        (simulate(&mut *scheduler)?, None)
    };
    let compliance = vec![metrics.jobs.compliance()];
    let (scheduler, counters) = (plan.roster.label(spec), scheduler.counters());
    Ok(Row { scheduler, metrics, compliance, latency, recording: watched.done(plan.horizon), counters })
}

fn add(total: &mut Row, run: &Row) {
    total.metrics.merge(&run.metrics);
    total.compliance.extend(&run.compliance);
    for ((_, total), (_, run)) in total.counters.iter_mut().zip(&run.counters) {
        *total += run;
    }
    if let (Some(total), Some(run)) = (&mut total.latency, &run.latency) {
        total.merge(run);
    }
}

/// A date by which about `jobs` jobs are released: how much of a run a picture can show.
pub fn picture_window(set: &TaskSet, horizon: Time, jobs: f64) -> Time {
    let expected = expected_jobs(set, horizon);
    if expected <= jobs {
        return horizon;
    }
    let longest = set.tasks.iter().map(|task| task.deadline).max().unwrap_or_default();
    Time((horizon.0 as f64 * jobs / expected) as u64).max(longest).min(horizon)
}

impl Comparison {
    /// The row of a scheduler, if it ran.
    pub fn row(&self, scheduler: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.scheduler == scheduler)
    }

    /// The share of the clairvoyant optimum that a scheduler met; where only bounds are known, at least that share.
    pub fn of_optimum(&self, row: &Row) -> Option<f64> {
        let most = self.clairvoyant.as_ref()?.met.upper;
        (most > 0.0).then(|| row.metrics.jobs.met as f64 / most)
    }

    /// The greatest share of the critical jobs that any scheduler could have met, or a bound on it.
    pub fn critical_possible(&self) -> Option<f64> {
        let critical = self.rows.first()?.metrics.critical().released;
        Some(self.clairvoyant.as_ref()?.critical?.upper / critical.max(1) as f64)
    }

    /// The greatest share of the value that any scheduler could have had, or a bound on it.
    pub fn value_possible(&self) -> Option<f64> {
        let possible = self.rows.first()?.metrics.value_possible;
        Some(self.clairvoyant.as_ref()?.value?.upper / possible.max(f64::MIN_POSITIVE))
    }

    /// The schedulers that do as well as the best one as far as these runs can tell, the best one included.
    pub fn level_with_best(&self) -> Vec<&Row> {
        let Some(best) = self.rows.first() else { return Vec::new() };
        let is_level = |row: &&Row| match stats::paired_difference(&best.compliance, &row.compliance) {
            (difference, Some(interval)) => difference <= interval,
            (difference, None) => difference == 0.0,
        };
        self.rows.iter().filter(is_level).collect()
    }

    /// What to conclude, in one sentence.
    pub fn verdict(&self) -> String {
        let Some(best) = self.rows.first() else { return "No scheduler applies to this set.".into() };
        if best.metrics.jobs.released == 0 {
            return "No job's deadline lies within the horizon: make it longer.".into();
        }
        let percent = |row: &Row| stats::percent(row.metrics.jobs.compliance());
        let level = self.level_with_best();
        let names = listed(&level.iter().map(|row| row.scheduler.as_str()).collect::<Vec<_>>());
        if best.metrics.missed() == 0 {
            let all_met = level.iter().filter(|row| row.metrics.missed() == 0).map(|row| row.scheduler.as_str());
            let all_met: Vec<&str> = all_met.collect();
            return match all_met[..] {
                [only] => format!("Only {only} meets every deadline."),
                _ => format!(
                    "{} of {} schedulers meet every deadline; {} does it with the fewest preemptions.",
                    all_met.len(),
                    self.rows.len(),
                    best.scheduler
                ),
            };
        }
        let edf = self.row("edf").filter(|edf| !level.iter().any(|row| row.scheduler == edf.scheduler));
        let against = edf.map(|edf| format!(", against {} for edf", percent(edf))).unwrap_or_default();
        let share = self.of_optimum(best).zip(self.clairvoyant.as_ref()).map(|(share, optimum)| {
            let at_least = if optimum.met.is_exact() { "" } else { "at least " };
            format!(", {at_least}{} of the clairvoyant optimum", stats::percent(share))
        });
        let share = share.unwrap_or_default();
        match level.len() {
            1 => format!("{names} meets the most deadlines: {}{share}{against}.", percent(best)),
            _ if level.iter().all(|row| row.metrics.jobs.met == best.metrics.jobs.met) => {
                format!("{names} tie for the most deadlines met: {}{share}{against}.", percent(best))
            }
            _ => format!(
                "{names} meet the most deadlines, about {}{share}: these runs cannot tell them apart{against}.",
                percent(best)
            ),
        }
    }
}

/// A verdict that ties more schedulers than about this names only the first three.
const MOST_NAMED: usize = 7;

/// Names as a sentence has them; the first three and a count where there are many.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [first, second, third, others @ ..] if others.len() > MOST_NAMED => {
            format!("{first}, {second}, {third} and {} others", others.len())
        }
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{ExecutionModel, Task};

    fn plan(schedulers: &[&str], runs: u64) -> Plan {
        let ms = Time::from_ms;
        let mut tasks = vec![
            Task::periodic("a", ms(40), ms(18)),
            Task::periodic("b", ms(60), ms(24)),
            Task::periodic("c", ms(100), ms(40)),
        ];
        for task in &mut tasks {
            task.bcet = Time(task.wcet.0 * 3 / 4);
            task.execution = ExecutionModel::Uniform;
        }
        let schedulers = schedulers.iter().map(|name| name.to_string()).collect();
        let set = TaskSet::new("s", tasks, 1);
        Plan {
            roster: Roster::classical(),
            set,
            horizon: Time::from_secs(6),
            seed: 1,
            runs,
            schedulers,
            latency: false,
            record_until: Time::ZERO,
            oracle: Some(1.0),
        }
    }

    fn outcome(plan: Plan) -> Comparison {
        let progress = Progress::new(1, plan.horizon);
        compare(plan, &progress).unwrap()
    }

    #[test]
    fn runs_add_up_and_the_best_comes_first() {
        let comparison = outcome(plan(&["edf", "mh-edf", "fcfs"], 5));
        assert!(comparison.rows.windows(2).all(|pair| pair[0].metrics.jobs.met >= pair[1].metrics.jobs.met));
        let edf = comparison.row("edf").unwrap();
        assert_eq!((edf.compliance.len(), edf.metrics.runs), (5, 5));
        let mean = stats::mean(&edf.compliance);
        assert!((mean - edf.metrics.jobs.compliance()).abs() < 1e-3);
        assert!(edf.ci95().unwrap() > 0.0);
        assert!(comparison.verdict().contains("mh-edf"), "{}", comparison.verdict());
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| outcome(plan(&["edf", "llf", "mh-edf"], 8)))
        };
        let (one, four) = (on(1), on(4));
        for (a, b) in one.rows.iter().zip(&four.rows) {
            assert_eq!((&a.scheduler, &a.metrics, &a.compliance), (&b.scheduler, &b.metrics, &b.compliance));
        }
    }

    #[test]
    fn what_does_not_apply_is_skipped_with_its_reason() {
        let mut plan = plan(&["edf", "d-over"], 3);
        plan.set.cores = 2;
        let comparison = outcome(plan);
        assert_eq!((comparison.rows.len(), comparison.skipped.len()), (1, 1));
        assert!(comparison.skipped[0].1.contains("one core"));
    }

    #[test]
    fn latency_is_measured_only_when_asked_for() {
        let timed = outcome(Plan { latency: true, ..plan(&["edf"], 2) });
        let latency = timed.rows[0].latency.clone().unwrap();
        assert_eq!(latency.count(), timed.rows[0].metrics.decisions);
        assert!(outcome(plan(&["edf"], 2)).rows[0].latency.is_none());
    }
}
