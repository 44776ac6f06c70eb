//! The clairvoyant optimum of runs: the most that a scheduler that knows the future could meet.
//!
//! The search itself is in `temponet-oracle`. This module decides which questions to ask it, bounds its memory, and
//! adds up the answers over runs.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet_oracle::{
    Optimum, OracleJob, Piece, STEPS_PER_SECOND, bound_by_speed, optimum, optimum_without_preemption,
};
use temponet_sim::{Metrics, ReleasedJob, Workload};
use temponet_task::{CoreId, OnMiss, Precedence, Speed, TaskId, TaskSet, Time};

/// Bounds on the greatest possible figure; the optimum is known exactly if they are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptimumRange {
    /// Lower bound: a schedule that reaches it is known.
    pub lower: f64,
    /// Upper bound: no schedule exceeds it.
    pub upper: f64,
}

impl OptimumRange {
    /// Whether both bounds are equal, up to rounding.
    pub fn is_exact(&self) -> bool {
        self.upper <= self.lower * (1.0 + 1e-12)
    }

    fn add(&mut self, other: OptimumRange) {
        self.lower += other.lower;
        self.upper += other.upper;
    }
}

impl From<&Optimum> for OptimumRange {
    fn from(optimum: &Optimum) -> OptimumRange {
        OptimumRange { lower: optimum.lower, upper: optimum.upper }
    }
}

/// The clairvoyant optimum, added up over the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clairvoyant {
    /// Number of jobs that count, that is, whose deadline lies within the horizon.
    pub released: u64,
    /// Greatest number of deadlines met.
    pub met: OptimumRange,
    /// Greatest value of jobs in time, if jobs differ in value.
    pub value: Option<OptimumRange>,
    /// Greatest number of critical jobs in time, if there are any.
    pub critical: Option<OptimumRange>,
    /// For each level of criticality above 0, the greatest number of its jobs in time. Each level is maximized alone.
    pub levels: Vec<(u8, OptimumRange)>,
    /// Greatest number of all jobs in time among schedules with the most critical jobs in time; `None` unless that is
    /// exact.
    pub met_critical_first: Option<u64>,
    /// Jobs of the first run that count, and whether the best schedule found has each in time.
    pub first_run: Vec<(ReleasedJob, bool)>,
    /// Whether only upper bounds are computed; see [`has_only_bounds`].
    pub is_bound: bool,
    /// Schedule of the first run where tasks limit preemption; the pieces hold indices into `first_run`.
    pub pieces: Option<Vec<Piece>>,
}

impl Clairvoyant {
    /// Drops the lower bounds. The optimum switches and migrates for free; where that costs time, its schedules are not
    /// feasible and only the upper bounds hold.
    pub fn forget_schedules(&mut self) {
        let ranges = [Some(&mut self.met), self.value.as_mut(), self.critical.as_mut()].into_iter().flatten();
        ranges.chain(self.levels.iter_mut().map(|(_, range)| range)).for_each(|range| range.lower = 0.0);
        self.met_critical_first = None;
    }

    /// Raises the lower bounds to what a scheduler reached on the same jobs. Where only bounds are known, it may have
    /// found a better schedule than the oracle.
    pub fn raise_to(&mut self, reached: &Metrics) {
        let raise = |range: &mut OptimumRange, to: f64| range.lower = range.lower.max(to);
        let (met, critical) = (reached.jobs.met as f64, reached.critical().met as f64);
        raise(&mut self.met, met);
        self.value.iter_mut().for_each(|range| raise(range, reached.value));
        self.critical.iter_mut().for_each(|range| raise(range, critical));
        for (level, range) in &mut self.levels {
            let jobs = reached.by_criticality.get(usize::from(*level)).copied().unwrap_or_default();
            raise(range, jobs.met as f64);
        }
        if met >= self.met.upper && self.critical.is_some_and(|range| critical >= range.upper) {
            self.met_critical_first = Some(reached.jobs.met);
        }
    }

    /// Returns the best schedule found for the first run, with the jobs released before `until`. The pieces hold
    /// indices into `first_run`.
    pub fn schedule(&self, cores: usize, until: Time) -> Vec<Piece> {
        if let Some(pieces) = &self.pieces {
            return pieces.iter().copied().filter(|piece| piece.start < until).collect();
        }
        let early: Vec<usize> =
            (0..self.first_run.len()).filter(|index| self.first_run[*index].0.time < until).collect();
        let releases: Vec<ReleasedJob> = early.iter().map(|index| self.first_run[*index].0).collect();
        let chosen: Vec<bool> = early.iter().map(|index| self.first_run[*index].1).collect();
        let mut pieces = temponet_oracle::schedule(&jobs(&releases, |_| 1.0), &chosen, cores).unwrap_or_default();
        pieces.iter_mut().for_each(|piece| piece.job = early[piece.job]);
        pieces
    }
}

/// Finds an upper bound on the weight of releases in time on cores that differ in speed or that some tasks may not use.
///
/// Cores and tasks are divided into groups that have nothing to do with each other. In a group, the speeds count, and
/// which task may use which core does not.
fn bound_on_unlike_cores(
    set: &TaskSet,
    releases: &[ReleasedJob],
    weight: &dyn Fn(&ReleasedJob) -> f64,
    steps: u64,
) -> f64 {
    let mut group_of: Vec<CoreId> = set.core_ids().collect();
    for task in set.tasks() {
        let own: Vec<CoreId> = task.cores.iter(set.cores()).map(|core| group_of[core]).collect();
        let Some(first) = own.iter().copied().min() else { continue };
        group_of.iter_mut().filter(|group| own.contains(group)).for_each(|group| *group = first);
    }
    let group_of_task = |task: TaskId| set.tasks()[task].cores.iter(set.cores()).next().map(|core| group_of[core]);
    let bound = |group: CoreId| {
        let is_core = |core: &CoreId| group_of[*core] == group;
        let cores: Vec<Speed> = set.core_ids().filter(is_core).map(|core| set.machine().speed(core)).collect();
        let own = |release: &&ReleasedJob| group_of_task(release.task) == Some(group) && weight(release) > 0.0;
        let own: Vec<ReleasedJob> = releases.iter().filter(own).copied().collect();
        if own.is_empty() {
            return 0.0;
        }
        let steps = steps / releases.len() as u64 * own.len() as u64;
        let found = jobs(&own, weight);
        if cores.iter().all(|speed| *speed == cores[0]) {
            let at_speed = |job: &OracleJob| OracleJob { execution: cores[0].time_for(job.execution), ..*job };
            return optimum(&found.iter().map(at_speed).collect::<Vec<_>>(), cores.len(), steps).upper;
        }
        let fastest = own.iter().map(|release| set.fastest(&set.tasks()[release.task]));
        bound_by_speed(&found, &fastest.collect::<Vec<_>>(), &cores, steps).upper
    };
    set.core_ids().filter(|core| group_of[*core] == *core).map(bound).sum()
}

/// Finds the optimum of the jobs of a run that have a weight above zero; see [`optimum_of`]. Where cores differ, only
/// the upper bound is computed: the lower one is zero, and no job is chosen.
pub(crate) fn optimum_of_run(
    set: &TaskSet,
    releases: &[ReleasedJob],
    weight: impl Fn(&ReleasedJob) -> f64,
    steps: u64,
) -> (Optimum, Option<Vec<Piece>>) {
    if set.has_identical_cores() {
        return optimum_of(set, &jobs(releases, weight), steps);
    }
    let upper = bound_on_unlike_cores(set, releases, &weight, steps);
    let chosen = vec![false; releases.iter().filter(|release| weight(release) > 0.0).count()];
    (Optimum { upper, lower: 0.0, chosen }, Some(Vec::new()))
}

/// Whether only upper bounds on the optimum of a set are computed: cores differ in speed, tasks are bound to some of
/// them, come after each other or share resources. No schedule that reaches a bound is known then.
pub fn has_only_bounds(set: &TaskSet) -> bool {
    !set.has_identical_cores() || set.has_precedence() || set.has_sections()
}

/// Finds the optimum of jobs of a set with identical cores. Where its tasks limit preemption, the schedule behind the
/// lower bound never interrupts a job, and it is returned, too. The upper bound is that of schedules without any
/// preemption if no task allows it, else of schedules with preemption at any time.
///
/// Where tasks come after each other, the jobs must be those of [`counted`]. There, and where tasks share resources,
/// only the upper bound holds, and no schedule is known.
pub fn optimum_of(set: &TaskSet, jobs: &[OracleJob], steps: u64) -> (Optimum, Option<Vec<Piece>>) {
    if set.has_precedence() || set.has_sections() {
        let upper = optimum(jobs, set.cores(), steps).upper;
        return (Optimum { upper, lower: 0.0, chosen: vec![false; jobs.len()] }, None);
    }
    if !set.is_limited() {
        return (optimum(jobs, set.cores(), steps), None);
    }
    if set.tasks().iter().all(|task| task.preemption.is_never()) {
        let found = optimum_without_preemption(jobs, set.cores(), steps);
        return (found.optimum, Some(found.pieces));
    }
    let found = optimum_without_preemption(jobs, set.cores(), steps / 2);
    let upper = optimum(jobs, set.cores(), steps / 2).upper.max(found.optimum.lower);
    (Optimum { upper, ..found.optimum }, Some(found.pieces))
}

/// Returns the jobs of a run that count, for the optimum: a job that follows others is released when the longest path
/// of true execution times before it could be done. No schedule releases it earlier, so the optimum of these jobs as
/// independent ones is an upper bound. The other demands of precedence are left out.
///
/// Of a job with parts, the longest part stands for all, between the parts before and behind it: the others are left
/// out, too.
///
/// A job that no schedule can complete in time gets a window that is too short, so that jobs keep their places.
pub fn counted(set: &TaskSet, seed: u64, horizon: Time) -> Vec<ReleasedJob> {
    let mut releases = Workload::with_parts(set, seed, horizon);
    let Ok(Some(graph)) = Precedence::of(set.tasks()) else { return releases };
    let place: HashMap<(TaskId, u64), usize> =
        releases.iter().enumerate().map(|(at, release)| ((release.task, release.number), at)).collect();
    let mut rank = vec![0; set.tasks().len()];
    graph.order().iter().enumerate().for_each(|(at, task)| rank[*task] = at);
    let mut order: Vec<usize> = (0..releases.len()).collect();
    order.sort_by_key(|at| rank[releases[*at].task]);
    // A late job is removed at its deadline, and those that follow it are never released.
    let removes = set.on_miss() == OnMiss::Abort && !set.is_limited();
    let mut is_lost = vec![false; releases.len()];
    let shortest = |release: &ReleasedJob| set.fastest(&set.tasks()[release.task]).time_for(release.execution);
    for at in order {
        let ReleasedJob { task, number, .. } = releases[at];
        for before in &set.tasks()[task].after {
            // A predecessor that does not count may still complete in time.
            let Some(before) = place.get(&(*before, number)).copied() else { continue };
            releases[at].time = releases[at].time.max(releases[before].time + shortest(&releases[before]));
            is_lost[at] |= removes && is_lost[before];
        }
        is_lost[at] |= releases[at].time + shortest(&releases[at]) > releases[at].deadline;
    }
    if set.has_parts() {
        let lost = releases.iter().zip(&is_lost).filter(|(_, is_lost)| **is_lost);
        let lost: HashSet<(TaskId, u64)> = lost.map(|(release, _)| (release.task, release.number)).collect();
        releases = longest_parts(set, releases, shortest);
        is_lost = releases.iter().map(|release| lost.contains(&(set.whole(release.task), release.number))).collect();
    }
    for (release, is_lost) in releases.iter_mut().zip(is_lost) {
        if is_lost {
            release.time = Time(release.deadline.0.saturating_sub(1));
            // More than any core does in the nanosecond that is left.
            release.execution = release.execution.max(Time(2 * u64::from(Speed::RANGE.end().0)));
        }
    }
    releases
}

/// Returns of each job with parts the part that takes longest, in the window that the parts behind it leave. Parts are
/// released when the longest path before them could be done, and other jobs are as they were.
fn longest_parts(
    set: &TaskSet,
    releases: Vec<ReleasedJob>,
    shortest: impl Fn(&ReleasedJob) -> Time,
) -> Vec<ReleasedJob> {
    let mut longest: HashMap<(TaskId, u64), (Time, ReleasedJob)> = HashMap::new();
    let mut parts = releases.clone();
    // From the last part of a job to its first, so that the time behind a part is known.
    parts.retain(|release| set.tasks()[release.task].is_part);
    parts.sort_by_key(|release| std::cmp::Reverse((release.number, release.task)));
    let mut jobs: Vec<ReleasedJob> = releases;
    jobs.retain(|release| !set.tasks()[release.task].is_part);
    for whole in jobs.iter().filter(|whole| set.first_part(whole.task) != whole.task) {
        longest.insert((whole.task, whole.number), (shortest(whole), *whole));
    }
    for part in parts {
        let Some((behind, so_far)) = longest.get_mut(&(set.whole(part.task), part.number)) else { continue };
        let time = shortest(&part);
        if time > shortest(so_far) {
            *so_far = ReleasedJob { deadline: part.deadline.saturating_sub(*behind), ..part };
        }
        *behind += time;
    }
    for job in &mut jobs {
        if let Some((_, part)) = longest.get(&(job.task, job.number)) {
            *job = *part;
        }
    }
    jobs
}

/// Converts the jobs of a run for the oracle, with the given weights; jobs of weight zero are left out.
pub(crate) fn jobs(releases: &[ReleasedJob], weight: impl Fn(&ReleasedJob) -> f64) -> Vec<OracleJob> {
    let job = |release: &ReleasedJob| OracleJob {
        release: release.time,
        deadline: release.deadline,
        execution: release.execution,
        weight: weight(release),
    };
    releases.iter().map(job).filter(|job| job.weight > 0.0).collect()
}

/// Number of jobs that the optimum handles even with an effort of zero. Each takes about 140 bytes.
const FREE_JOBS: u64 = 200_000;
/// Number of steps of effort that allow for one further job.
const STEPS_PER_JOB: u64 = 100;

/// Returns the greatest number of jobs per run for an effort of `steps`. The limit ties memory to the effort: some
/// hundred megabytes with 5 seconds.
pub fn most_jobs(steps: u64) -> u64 {
    FREE_JOBS + steps / STEPS_PER_JOB
}

/// Counts the jobs of a run without keeping them. Stops with `None` as soon as there are more than `most`.
fn count(set: &TaskSet, seed: u64, horizon: Time, most: u64) -> Option<u64> {
    let mut workload = Workload::until(set, seed, horizon);
    let mut drawn = 0;
    while workload.next_time() < horizon && workload.pop().is_some() {
        drawn += 1;
        if drawn > most {
            return None;
        }
    }
    Some(drawn)
}

/// Returns the optimum of a run with all jobs of equal weight, and the number of jobs that count; `None` if there are
/// more jobs than the effort allows.
pub fn equal_optimum(set: &TaskSet, seed: u64, horizon: Time, steps: u64) -> Option<(Optimum, u64)> {
    count(set, seed, horizon, most_jobs(steps))?;
    let releases = Workload::counted(set, seed, horizon);
    Some((optimum_of_run(set, &releases, |_| 1.0, steps).0, releases.len() as u64))
}

/// Returns the jobs of a run that count, each with weight one.
pub fn equal_jobs(set: &TaskSet, seed: u64, horizon: Time) -> Vec<OracleJob> {
    jobs(&counted(set, seed, horizon), |_| 1.0)
}

/// Returns the optimum of the runs with seeds `seed`, `seed + 1`, and so on. The effort for all of them is about
/// `seconds` of one core of a reference machine. If a run has too many jobs for that, nothing is computed and the error
/// says so.
pub fn clairvoyant(set: &TaskSet, horizon: Time, seed: u64, runs: u64, seconds: f64) -> Result<Clairvoyant, String> {
    let is_valued = set.has_values();
    let is_critical = set.has_critical_tasks();
    let levels = set.levels();
    // With a single level, the answer for all critical jobs is also that of the level.
    let level_questions = if levels.len() > 1 { levels.len() as u64 } else { 0 };
    let questions = 1 + u64::from(is_valued) + u64::from(is_critical) + level_questions;
    let steps = (seconds * STEPS_PER_SECOND / (runs * questions) as f64) as u64;
    let most = most_jobs(steps);
    if count(set, seed, horizon, most).is_none() {
        return Err(format!(
            "not computed: a run has more than {most} jobs, the most for an effort of {seconds} s and {}",
            if runs == 1 { "1 run".into() } else { format!("{runs} runs") }
        ));
    }
    // Without randomness all runs are the same.
    let (different, times) = if set.is_random() { (runs, 1.0) } else { (1, runs as f64) };
    let one = |run: u64| {
        let releases = counted(set, seed.wrapping_add(run), horizon);
        let solve = |weight: &dyn Fn(&ReleasedJob) -> f64| optimum_of_run(set, &releases, weight, steps).0;
        let mut total = Clairvoyant { released: releases.len() as u64, ..Clairvoyant::default() };
        let (most, pieces) = optimum_of_run(set, &releases, |_| 1.0, steps);
        total.met = (&most).into();
        if run == 0 {
            total.pieces = pieces;
            total.first_run = releases.iter().copied().zip(most.chosen).collect();
        }
        total.value = is_valued.then(|| (&solve(&|release| release.value)).into());
        if is_critical {
            // One critical job outweighs all others together, so critical jobs come first.
            let others = releases.iter().filter(|release| release.criticality == 0).count() as f64;
            let first = solve(&|release| if release.criticality > 0 { others + 1.0 } else { 1.0 });
            let critical = |weight: f64| (weight / (others + 1.0)).floor();
            total.critical = Some(OptimumRange { lower: critical(first.lower), upper: critical(first.upper) });
            let met = first.lower - others * critical(first.lower);
            total.met_critical_first = first.is_exact().then_some(met as u64);
            let alone = |level: &u8| match levels.len() {
                1 => total.critical.unwrap_or_default(),
                _ => (&solve(&|release| f64::from(u8::from(release.criticality == *level)))).into(),
            };
            total.levels = levels.iter().map(|level| (*level, alone(level))).collect();
        }
        total
    };
    let mut all: Vec<Clairvoyant> = (0..different).into_par_iter().map(one).collect();
    let first_run = all.first_mut().map(|run| std::mem::take(&mut run.first_run)).unwrap_or_default();
    let pieces = all.first_mut().and_then(|run| run.pieces.take());
    let sum = |of: &dyn Fn(&Clairvoyant) -> OptimumRange| {
        let mut sum = OptimumRange::default();
        all.iter().for_each(|run| sum.add(of(run)));
        OptimumRange { lower: sum.lower * times, upper: sum.upper * times }
    };
    let is_bound = has_only_bounds(set);
    let met_first: Option<u64> = all.iter().map(|run| run.met_critical_first).sum();
    Ok(Clairvoyant {
        first_run: if is_bound { Vec::new() } else { first_run },
        is_bound,
        pieces,
        released: all.iter().map(|run| run.released).sum::<u64>() * times as u64,
        met: sum(&|run| run.met),
        value: is_valued.then(|| sum(&|run| run.value.unwrap_or_default())),
        critical: is_critical.then(|| sum(&|run| run.critical.unwrap_or_default())),
        levels: levels.iter().enumerate().map(|(at, level)| (*level, sum(&|run| run.levels[at].1))).collect(),
        met_critical_first: met_first.map(|met| met * times as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Task;

    /// Without a limit, every job of a run would be kept in memory, however many there are.
    #[test]
    fn the_optimum_of_more_jobs_than_its_budget_allows_is_not_computed() {
        let set = TaskSet::new("s", vec![Task::periodic("a", Time(1_000), Time(100))], 1);
        let seconds = 0.001;
        let most = most_jobs((seconds * STEPS_PER_SECOND) as u64);
        let why = clairvoyant(&set, Time(1_000 * (most + 1)), 1, 1, seconds).unwrap_err();
        assert!(why.contains("not computed") && why.contains(&most.to_string()), "{why}");
        // A horizon of years with a job per microsecond is not even counted to its end.
        assert!(clairvoyant(&set, Time::MAX_INPUT, 1, 1, seconds).is_err());
        assert_eq!(equal_optimum(&set, 1, Time::MAX_INPUT, 1_000).map(|found| found.1), None);
        assert_eq!(
            clairvoyant(&set, Time(50_000), 1, 1, seconds).unwrap().met,
            OptimumRange { lower: 50.0, upper: 50.0 }
        );
    }
}
