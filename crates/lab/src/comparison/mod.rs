//! The experiment behind `temponet compare`: all schedulers on the same jobs, over repeated runs.
//!
//! [`ranking`] orders the schedulers by the goal, [`crate::advice`] puts the result into words, and [`report`] makes
//! the page.

pub mod json;
pub mod report;

use rayon::prelude::*;
use temponet_sched::shield::Role;
use temponet_sched::{Kind, SpecError};
pub use temponet_sim::ranking;
use temponet_sim::statistics::{FEW, Interval, share_interval};
use temponet_sim::{Count, Histogram, Metrics, Recorder, SimError, Unobserved, simulate};
use temponet_task::{Costs, Goal, Measure, Scheduler, TaskSet, Time};

use crate::advice::{Decider, Premise, rank};
use crate::clairvoyant::{Clairvoyant, OptimumRange, clairvoyant};
use crate::guarantee::Guaranteed;
use crate::horizon::expected_jobs;
use crate::latency::{Timed, charged};
use crate::progress::Progress;
use crate::roster::{self, Roster, is_shielded};
use crate::stats;

/// What to run in a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonPlan {
    /// Tasks and machine, with the user's changes already applied.
    pub set: TaskSet,
    /// Goal that ranks the schedulers.
    pub goal: Goal,
    /// Length of each run.
    pub horizon: Time,
    /// Seed of the first run; each further run uses the next seed.
    pub seed: u64,
    /// Number of runs.
    pub runs: u64,
    /// Scheduler names with options.
    pub schedulers: Vec<String>,
    /// Roster that builds schedulers from their names.
    pub roster: Roster,
    /// Whether to time every decision. Runs then execute one after the other instead of in parallel.
    pub latency: bool,
    /// Whether to charge each scheduler its median latency for every decision; has no effect without `latency`.
    pub charge_latency: bool,
    /// Time up to which the schedule of the first run is recorded, for pictures.
    pub record_until: Time,
    /// Effort for the clairvoyant optimum, in seconds of one core of a reference machine; `None` leaves it out.
    pub oracle: Option<f64>,
}

/// Figures of one scheduler.
#[derive(Clone, Debug)]
pub struct ComparisonRow {
    /// Name with options, as the user wrote it.
    pub spec: String,
    /// Name with options, as [`Roster::label`] shows it.
    pub scheduler: String,
    /// Metrics of all runs together.
    pub metrics: Metrics,
    /// Share of deadlines met, run by run.
    pub compliance: Vec<f64>,
    /// Measures of the goal, run by run.
    pub scores: Vec<Vec<f64>>,
    /// Share of deadlines met of each task, run by run ([`task_shares`]).
    pub tasks: Vec<Vec<f64>>,
    /// Decision latencies in nanoseconds, if they were measured.
    pub latency: Option<Histogram>,
    /// Schedule of the first run, up to the time of the plan.
    pub recording: Recorder,
    /// The scheduler's own counters, added up over the runs.
    pub counters: Vec<(&'static str, u64)>,
    /// Who decides, where the scheduler follows another one.
    pub decider: Option<Decider>,
}

impl ComparisonRow {
    /// Returns what the scheduler is.
    pub fn kind(&self) -> Kind {
        roster::kind(&self.spec)
    }

    /// Whether the scheduler can be used: the planner is too slow.
    pub fn is_usable(&self) -> bool {
        self.kind() != Kind::Planning
    }

    /// Whether the scheduler is the baseline, which tables and pictures always show.
    pub fn is_baseline(&self) -> bool {
        roster::is_baseline(&self.scheduler)
    }

    /// Returns the 95% confidence interval of the share of deadlines met; `None` for a single run.
    pub fn interval(&self) -> Option<Interval> {
        share_interval(&self.compliance, Some(self.metrics.jobs.released as f64))
    }

    /// Returns the distance from the mean to the farther end of the 95% confidence interval of the share of deadlines
    /// met; `None` for a single run.
    pub fn ci95(&self) -> Option<f64> {
        let mean = stats::mean(&self.compliance);
        self.interval().map(|Interval { low, high }| (mean - low).max(high - mean))
    }

    /// Whether so few jobs are missed, or met, that the interval comes from their number.
    pub(crate) fn is_counted(&self) -> bool {
        let Count { released, met } = self.metrics.jobs;
        (met.min(released - met) as f64) < FEW
    }

    /// Returns the interval as a table shows it: the distance to its farther end; both ends where few jobs are missed,
    /// or few met; the lower one where none is missed.
    pub fn interval_in_words(&self) -> String {
        let Some(Interval { low, high }) = self.interval() else { return "–".into() };
        let is_whole = self.metrics.missed() == 0;
        match self.is_counted() {
            _ if low <= 0.0 && high >= 1.0 => "too few runs".into(),
            true if is_whole => format!("≥{}", stats::percent(low)),
            true => format!("{:.2}–{}", 100.0 * low, stats::percent(high)),
            false => self.ci95().map_or("–".into(), stats::percent),
        }
    }

    /// Returns the name with who decides, as in "temponet (muf)" or "temponet (untrained, muf)". Options of that one
    /// are left out.
    pub fn shown(&self) -> String {
        match &self.decider {
            Some(decider) => {
                let (name, _) = decider.name.split_once(':').unwrap_or((&decider.name, ""));
                match self.scheduler.strip_suffix(')') {
                    Some(marked) => format!("{marked}, {name})"),
                    None => format!("{} ({name})", self.scheduler),
                }
            }
            None => self.scheduler.clone(),
        }
    }

    /// Whether every job meets its deadline and every instance of a chain its end-to-end deadline.
    pub fn misses_nothing(&self) -> bool {
        let instances = self.metrics.chain_instances();
        self.metrics.missed() == 0 && instances.met == instances.released
    }
}

/// Result of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The plan that was run.
    pub plan: ComparisonPlan,
    /// What was assumed of the machine and whether it held, for runs on real threads; `None` for simulated ones.
    pub premise: Option<Premise>,
    /// Schedulers, the best first: by the goal ([`crate::advice::rank`]), then, where nothing is missed, those that are
    /// proved to miss nothing, then by fewest preemptions.
    pub rows: Vec<ComparisonRow>,
    /// Schedulers that do not apply to this set, with the reason.
    pub skipped: Vec<(String, String)>,
    /// The clairvoyant optimum; `None` if it was not asked for or no job counts.
    pub clairvoyant: Option<Clairvoyant>,
    /// Role of the shield on the set; `None` if no scheduler of the plan is behind the shield, or if decisions are
    /// charged as they were measured, so that the role differs from run to run.
    pub shield: Option<Role>,
}

/// Error of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Unknown scheduler name or invalid option.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Scheduler whose run failed, and how.
    #[error("scheduler {0:?}: {1}")]
    Run(String, SimError),
}

/// Name of the clairvoyant optimum in the list of what was skipped.
const OPTIMUM: &str = "clairvoyant optimum";

/// Number of runs per scheduler that are processed together.
const CHUNK: u64 = 32;

/// Runs the plan in parallel. The result does not depend on the number of threads.
pub fn compare(mut plan: ComparisonPlan, progress: &Progress) -> Result<Comparison, CompareError> {
    // Equal runs are no more evidence than one. Only what they cost on the clock differs.
    if !plan.set.is_random() && !plan.latency {
        plan.runs = plan.runs.min(1);
    }
    for spec in &plan.schedulers {
        plan.roster.build(spec)?;
    }
    plan.roster.foresee(&plan.set);
    let mut totals: Vec<Option<ComparisonRow>> = vec![None; plan.schedulers.len()];
    let mut skipped: Vec<(String, String)> = Vec::new();
    // Chunks keep memory independent of the number of runs; adding up in order makes the result independent of threads.
    for first in (0..plan.runs).step_by(CHUNK as usize) {
        let runs = first..(first + CHUNK).min(plan.runs);
        let cells: Vec<(usize, u64)> =
            (0..plan.schedulers.len()).flat_map(|scheduler| runs.clone().map(move |run| (scheduler, run))).collect();
        let one = |(scheduler, run): &(usize, u64)| run_one(&plan, &plan.schedulers[*scheduler], *run, progress);
        let outcomes: Vec<Result<ComparisonRow, CompareError>> =
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
    // A scheduler that failed on some runs is left out, because its figures would cover fewer jobs than the others'.
    let has_run = |name: &String| !skipped.iter().any(|(skipped, _)| skipped == name);
    let mut rows: Vec<ComparisonRow> =
        plan.schedulers.iter().zip(totals).filter(|(name, _)| has_run(name)).filter_map(|(_, row)| row).collect();
    rows.sort_by_cached_key(|row| row.metrics.preemptions);
    rank(&plan.goal, &mut rows, |row| row);
    rows.iter_mut().for_each(|row| row.decider = plan.roster.decider(&row.spec, &plan.set));
    let mut clairvoyant = clairvoyant.filter(|optimum| optimum.released > 0);
    if let Some(optimum) = &mut clairvoyant {
        if plan.charge_latency || *plan.set.costs() != Costs::default() {
            optimum.forget_schedules();
        }
        rows.iter().for_each(|row| optimum.raise_to(&row.metrics));
    }
    let has_role = !plan.charge_latency && plan.schedulers.iter().any(|name| is_shielded(name));
    let shield = has_role.then(|| Role::on(&plan.set.system));
    let mut comparison = Comparison { plan, premise: None, rows, skipped, clairvoyant, shield };
    comparison.put_proved_first();
    Ok(comparison)
}

/// Runs each scheduler once, without optimum and proofs: for schedules that follow a change at once. The order is that
/// of the goal alone.
pub fn sketch(mut plan: ComparisonPlan, progress: &Progress) -> Result<Comparison, CompareError> {
    plan.runs = 1;
    plan.roster.foresee(&plan.set);
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for spec in &plan.schedulers {
        match run_one(&plan, spec, 0, progress) {
            Ok(row) => rows.push(row),
            Err(CompareError::Run(name, why)) if why.is_about_the_set() => skipped.push((name, why.to_string())),
            Err(error) => return Err(error),
        }
    }
    rank(&plan.goal, &mut rows, |row| row);
    Ok(Comparison { plan, premise: None, rows, skipped, clairvoyant: None, shield: None })
}

fn run_one(plan: &ComparisonPlan, spec: &str, run: u64, progress: &Progress) -> Result<ComparisonRow, CompareError> {
    temponet_cancel::checkpoint();
    progress.say(spec);
    let seed = plan.seed.wrapping_add(run);
    let mut scheduler = plan.roster.build(spec)?;
    let failed = |error: SimError| CompareError::Run(spec.to_string(), error);
    let mut watched = progress.watch(Recorder::until(if run == 0 { plan.record_until } else { Time::ZERO }));
    let mut latency = None;
    let mut charged_set = None;
    if plan.latency && plan.charge_latency {
        // The latency must be known before it can be charged, so the first of two runs measures it.
        let mut timed = Timed::new(&mut *scheduler);
        simulate(&plan.set, seed, plan.horizon, &mut timed, &mut Unobserved).map_err(failed)?;
        charged_set = Some(charged(&plan.set, &timed.latencies));
        latency = Some(timed.latencies);
    }
    let set = charged_set.as_ref().unwrap_or(&plan.set);
    let metrics = if plan.latency && latency.is_none() {
        let mut timed = Timed::new(&mut *scheduler);
        let metrics = simulate(set, seed, plan.horizon, &mut timed, &mut watched).map_err(failed)?;
        latency = Some(timed.latencies);
        metrics
    } else {
        simulate(set, seed, plan.horizon, &mut *scheduler, &mut watched).map_err(failed)?
    };
    let (compliance, scores) = (vec![metrics.jobs.compliance()], vec![metrics.scores(&plan.goal)]);
    let tasks = vec![task_shares(&metrics)];
    let (scheduler, counters) = (plan.roster.label(spec), scheduler.counters());
    Ok(ComparisonRow {
        spec: spec.into(),
        scheduler,
        metrics,
        compliance,
        scores,
        tasks,
        latency,
        recording: watched.done(plan.horizon),
        counters,
        decider: None,
    })
}

fn add(total: &mut ComparisonRow, run: &ComparisonRow) {
    total.metrics.merge(&run.metrics);
    total.compliance.extend(&run.compliance);
    total.scores.extend_from_slice(&run.scores);
    total.tasks.extend_from_slice(&run.tasks);
    for ((_, total), (_, run)) in total.counters.iter_mut().zip(&run.counters) {
        *total += run;
    }
    if let (Some(total), Some(run)) = (&mut total.latency, &run.latency) {
        total.merge(run);
    }
}

/// Returns the share of deadlines met of each task of a run.
pub fn task_shares(run: &Metrics) -> Vec<f64> {
    run.tasks.iter().map(|task| task.jobs.compliance()).collect()
}

/// Returns the time by which about `jobs` jobs are released: the part of a run that fits into a picture. It is never
/// shorter than the longest relative deadline, nor longer than the horizon.
pub fn picture_window(set: &TaskSet, horizon: Time, jobs: f64) -> Time {
    let expected = expected_jobs(set, horizon);
    if expected <= jobs {
        return horizon;
    }
    let longest = set.tasks().iter().map(|task| task.deadline).max().unwrap_or_default();
    Time((horizon.0 as f64 * jobs / expected) as u64).max(longest).min(horizon)
}

impl Comparison {
    /// Of the schedulers that miss nothing, puts those first that are proved to miss nothing.
    fn put_proved_first(&mut self) {
        let first_that_misses = self.rows.iter().position(|row| !row.misses_nothing() || !row.is_usable());
        let equal = first_that_misses.unwrap_or(self.rows.len());
        if equal > 1 {
            let proved: Vec<String> = self.proved().into_iter().map(|row| row.spec.clone()).collect();
            self.rows[..equal].sort_by_key(|row| !proved.contains(&row.spec));
        }
    }

    /// Returns the row of a scheduler, if it ran.
    pub fn row(&self, scheduler: &str) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.scheduler == scheduler)
    }

    /// Returns what the shield does on the set for the schedulers behind it, as one line without a full stop; `None` if
    /// none of them ran.
    pub fn shield_line(&self) -> Option<String> {
        let role = self.shield.as_ref()?;
        let behind: Vec<&ComparisonRow> = self.rows.iter().filter(|row| is_shielded(&row.spec)).collect();
        let is_network = behind.iter().all(|row| row.kind() == Kind::Learned);
        let inner = if is_network { "the network" } else { "the scheduler behind it" };
        let names: Vec<&str> = behind.iter().map(|row| row.scheduler.as_str()).collect();
        let except = || Guaranteed::with(&self.plan.set, role.clone()).exceptions_by_modes();
        (!names.is_empty()).then(|| {
            let except: String =
                except().iter().map(|sentence| format!(". {}", sentence.trim_end_matches('.'))).collect();
            format!("{}: the shield {}{except}", names.join(", "), role.sentence(inner))
        })
    }

    /// Returns the share of the clairvoyant optimum that a scheduler reached, by value if the goal has it, else by
    /// jobs. Where only bounds on the optimum are known, the true share is at least this.
    pub fn of_optimum(&self, row: &ComparisonRow) -> Option<f64> {
        let (most, _) = self.possible(self.counted())?;
        (most > 0.0).then(|| row.metrics.score(self.counted()) / most)
    }

    /// Returns the measure of [`of_optimum`](Self::of_optimum): value if the goal has it, else deadlines met.
    pub fn counted(&self) -> Measure {
        let is_valued = self.plan.goal.measures().contains(&Measure::Value);
        if is_valued { Measure::Value } else { Measure::Met }
    }

    /// Returns the greatest share that any scheduler could have reached in a measure, over all runs, and whether that
    /// is exact. Each measure is maximized alone, so for all but the first measure of the goal it is only an upper
    /// bound, unless a scheduler reaches it together with the bounds of all measures before it.
    pub fn possible(&self, measure: Measure) -> Option<(f64, bool)> {
        let is_first = measure == self.plan.goal.first();
        let is_known = is_first && self.range(measure).is_some_and(|range| range.is_exact());
        let is_exact = is_known || self.is_reached(measure);
        match self.bound(measure) {
            Some(bound) => Some((bound, is_exact)),
            // No bound is computed, but none exceeds 1.
            None => self.clairvoyant.as_ref().filter(|_| is_exact).map(|_| (1.0, true)),
        }
    }

    /// Returns the range of the optimum of a measure, in jobs or in value; `None` if it is not computed.
    fn range(&self, measure: Measure) -> Option<OptimumRange> {
        let optimum = self.clairvoyant.as_ref()?;
        match measure {
            Measure::Met => Some(optimum.met),
            Measure::Value => optimum.value,
            Measure::Critical(level) => {
                optimum.levels.iter().find(|(other, _)| *other == level).map(|(_, range)| *range)
            }
            Measure::Chains | Measure::Mk | Measure::WorstTask => None,
        }
    }

    /// Returns the upper bound on a measure as a share; `None` if it is not computed.
    fn bound(&self, measure: Measure) -> Option<f64> {
        let (range, metrics) = (self.range(measure)?, &self.rows.first()?.metrics);
        let of = match measure {
            Measure::Value => metrics.value_possible,
            Measure::Critical(level) => metrics.by_criticality.get(usize::from(level))?.released as f64,
            _ => self.clairvoyant.as_ref()?.released as f64,
        };
        (of > 0.0).then(|| range.upper / of)
    }

    /// Whether a scheduler reaches the bounds of a measure and of all measures of the goal before it.
    fn is_reached(&self, measure: Measure) -> bool {
        let before = self.plan.goal.measures().iter().copied().take_while(|other| *other != measure);
        let bounds: Vec<(Measure, f64)> =
            before.chain([measure]).map(|measure| (measure, self.bound(measure).unwrap_or(1.0))).collect();
        let reaches = |(measure, bound): &(Measure, f64), row: &ComparisonRow| {
            row.metrics.measured(*measure).is_none_or(|share| share >= bound * (1.0 - 1e-12))
        };
        self.rows.iter().any(|row| bounds.iter().all(|bound| reaches(bound, row)))
    }

    /// Whether the optimum is exact, rather than a bound, in every measure of the goal.
    pub fn is_exact(&self) -> bool {
        self.plan.goal.measures().iter().all(|measure| self.possible(*measure).is_some_and(|(_, is_exact)| is_exact))
    }
}

/// Greatest number of names that [`listed`] lists in full, and how many of more.
const MOST_NAMED: usize = 10;
const FIRST_NAMED: usize = 3;

/// Returns how many of this many names [`listed`] gives.
pub fn named_of(names: usize) -> usize {
    if names > MOST_NAMED { FIRST_NAMED } else { names }
}

/// Joins names as in a sentence; of many names it gives the first three and the number of the others.
pub fn listed(names: &[&str]) -> String {
    let (named, others) = names.split_at(named_of(names.len()));
    match named {
        [] => String::new(),
        [one] => one.to_string(),
        _ if !others.is_empty() => format!("{} and {} others", named.join(", "), others.len()),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{ExecutionModel, Task, TaskId};

    fn plan(schedulers: &[&str], runs: u64) -> ComparisonPlan {
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
        ComparisonPlan {
            roster: Roster::classical(),
            goal: set.goal().clone(),
            set,
            horizon: Time::from_secs(6),
            seed: 1,
            runs,
            schedulers,
            latency: false,
            charge_latency: false,
            record_until: Time::ZERO,
            oracle: Some(1.0),
        }
    }

    fn outcome(plan: ComparisonPlan) -> Comparison {
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
    fn equal_runs_are_one_run_and_what_is_proved_comes_first() {
        let ms = Time::from_ms;
        let mut plan = plan(&["srpt", "edf"], 5);
        plan.set = TaskSet::new("s", vec![Task::periodic("a", ms(10), ms(4)), Task::periodic("b", ms(30), ms(16))], 1);
        let comparison = outcome(plan);
        assert_eq!(comparison.plan.runs, 1);
        assert!(comparison.rows.iter().all(|row| row.misses_nothing()), "both meet everything");
        assert!(
            comparison.row("srpt").unwrap().metrics.preemptions <= comparison.row("edf").unwrap().metrics.preemptions
        );
        assert_eq!(comparison.rows[0].scheduler, "edf", "only edf is proved to");
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
    fn a_sketch_has_the_schedules_of_the_first_run() {
        let plan = || ComparisonPlan { record_until: Time::from_ms(600), ..plan(&["edf", "d-over", "mh-edf"], 3) };
        let comparison = outcome(plan());
        let sketch = sketch(plan(), &Progress::new(1, Time(1))).unwrap();
        assert_eq!(sketch.rows.len(), 3);
        for row in &sketch.rows {
            assert_eq!(row.recording.slices, comparison.row(&row.scheduler).unwrap().recording.slices);
        }
    }

    #[test]
    fn what_does_not_apply_is_skipped_with_its_reason() {
        let mut plan = plan(&["edf", "d-over"], 3);
        plan.set.system.set_cores(2);
        let comparison = outcome(plan);
        assert_eq!((comparison.rows.len(), comparison.skipped.len()), (1, 1));
        assert!(comparison.skipped[0].1.contains("one core"));
    }

    #[test]
    fn what_a_scheduler_reaches_raises_every_lower_bound() {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("a", ms(10), ms(3)), Task::periodic("b", ms(10), ms(3))];
        (tasks[0].criticality, tasks[1].after, tasks[1].value) = (1, vec![TaskId(0)], 2.0);
        let mut set = TaskSet::new("s", tasks, 2);
        set.system.follow_sources().unwrap();
        let comparison = outcome(ComparisonPlan { goal: set.goal().clone(), set, ..plan(&["edf"], 1) });
        let optimum = comparison.clairvoyant.as_ref().unwrap();
        let critical = OptimumRange { lower: 600.0, upper: 600.0 };
        assert_eq!((optimum.critical, &optimum.levels[..]), (Some(critical), &[(1, critical)][..]));
        assert!(optimum.met.is_exact() && optimum.value.unwrap().is_exact());
        assert_eq!(optimum.met_critical_first, Some(1200));
        assert!(comparison.is_exact(), "one scheduler reaches all bounds at once");
    }

    #[test]
    fn latency_is_measured_only_when_asked_for() {
        let timed = outcome(ComparisonPlan { latency: true, ..plan(&["edf"], 2) });
        let latency = timed.rows[0].latency.clone().unwrap();
        assert_eq!(latency.count(), timed.rows[0].metrics.decisions);
        assert!(outcome(plan(&["edf"], 2)).rows[0].latency.is_none());
    }
}
