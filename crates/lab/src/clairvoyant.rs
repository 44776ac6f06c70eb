//! The clairvoyant optimum of a comparison's runs: what any scheduler could have met that knew the future.

use rayon::prelude::*;
use temponet_oracle::{Optimum, OracleJob, Piece, STEPS_PER_SECOND, optimum};
use temponet_sim::{Release, Workload};
use temponet_task::{TaskSet, Time};

/// The greatest possible figure lies between these; it is `lower` where they are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OptimumRange {
    /// A schedule with so much is known.
    pub lower: f64,
    /// No schedule has more.
    pub upper: f64,
}

impl OptimumRange {
    /// Whether nothing is left open.
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

/// The optimum, summed over the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clairvoyant {
    /// Jobs that count.
    pub released: u64,
    /// Most jobs in time.
    pub met: OptimumRange,
    /// Most value in time, if jobs differ in value.
    pub value: Option<OptimumRange>,
    /// Most critical jobs in time, if there are any.
    pub critical: Option<OptimumRange>,
    /// Most jobs in time of each level of criticality above 0, each alone.
    pub levels: Vec<(u8, OptimumRange)>,
    /// With most critical jobs in time, the most jobs in all; only where that is exact.
    pub met_critical_first: Option<u64>,
    /// The first run's jobs that count, and which of them the best schedule found has in time.
    pub first_run: Vec<(Release, bool)>,
}

impl Clairvoyant {
    /// The optimum switches and migrates for nothing: where that costs something, what it has is only a bound.
    pub fn forget_schedules(&mut self) {
        let ranges = [Some(&mut self.met), self.value.as_mut(), self.critical.as_mut()].into_iter().flatten();
        ranges.chain(self.levels.iter_mut().map(|(_, range)| range)).for_each(|range| range.lower = 0.0);
        self.met_critical_first = None;
    }

    /// The best schedule found for the first run, until a date: pieces with indices into `first_run`.
    pub fn schedule(&self, cores: usize, until: Time) -> Vec<Piece> {
        let early: Vec<usize> =
            (0..self.first_run.len()).filter(|index| self.first_run[*index].0.time < until).collect();
        let releases: Vec<Release> = early.iter().map(|index| self.first_run[*index].0).collect();
        let chosen: Vec<bool> = early.iter().map(|index| self.first_run[*index].1).collect();
        let mut pieces = temponet_oracle::schedule(&jobs(&releases, |_| 1.0), &chosen, cores).unwrap_or_default();
        pieces.iter_mut().for_each(|piece| piece.job = early[piece.job]);
        pieces
    }
}

/// What the jobs of one run are worth to whom.
pub(crate) fn jobs(releases: &[Release], weight: impl Fn(&Release) -> f64) -> Vec<OracleJob> {
    let job = |release: &Release| OracleJob {
        release: release.time,
        deadline: release.deadline,
        execution: release.execution,
        weight: weight(release),
    };
    releases.iter().map(job).filter(|job| job.weight > 0.0).collect()
}

/// Jobs of which a budget of no time at all may hold the optimum's memory, about 140 bytes each.
const FREE_JOBS: u64 = 200_000;
/// Steps that a further job must be worth.
const STEPS_PER_JOB: u64 = 100;

/// More jobs of one run than this are not looked at within this many steps: the memory that they take grows with the budget only, to some
/// hundred megabytes with 5 seconds.
pub fn most_jobs(steps: u64) -> u64 {
    FREE_JOBS + steps / STEPS_PER_JOB
}

/// The number of jobs that count, without keeping them, if that is at most `most`; only as many are drawn.
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

/// The optimum of a run with all jobs worth the same and how many count; none if they are more than the steps allow.
pub fn equal_optimum(set: &TaskSet, seed: u64, horizon: Time, steps: u64) -> Option<(Optimum, u64)> {
    count(set, seed, horizon, most_jobs(steps))?;
    let jobs = equal_jobs(set, seed, horizon);
    Some((optimum(&jobs, set.cores, steps), jobs.len() as u64))
}

/// The jobs of a run that count, each worth one.
pub fn equal_jobs(set: &TaskSet, seed: u64, horizon: Time) -> Vec<OracleJob> {
    jobs(&Workload::counted(set, seed, horizon), |_| 1.0)
}

/// The optimum of the runs with seeds `seed`, `seed + 1`, …; all of it may take about `seconds` of one core. Where that does not allow for so
/// many jobs it is not computed, and why.
pub fn clairvoyant(set: &TaskSet, horizon: Time, seed: u64, runs: u64, seconds: f64) -> Result<Clairvoyant, String> {
    let is_valued = set.has_values();
    let is_critical = set.has_critical_tasks();
    let levels = set.levels();
    // A single level is answered with all critical jobs.
    let level_questions = if levels.len() > 1 { levels.len() as u64 } else { 0 };
    let questions = 1 + u64::from(is_valued) + u64::from(is_critical) + level_questions;
    let steps = (seconds * STEPS_PER_SECOND / (runs * questions) as f64) as u64;
    let most = most_jobs(steps);
    if count(set, seed, horizon, most).is_none() {
        return Err(format!(
            "not computed: a run has more than {most} jobs, the most for an --oracle-budget of {seconds} s and {}",
            if runs == 1 { "1 run".into() } else { format!("{runs} runs") }
        ));
    }
    // Without anything random every run is the same.
    let (different, times) = if set.is_random() { (runs, 1.0) } else { (1, runs as f64) };
    let one = |run: u64| {
        let releases = Workload::counted(set, seed.wrapping_add(run), horizon);
        let solve = |jobs: Vec<OracleJob>| optimum(&jobs, set.cores, steps);
        let mut total = Clairvoyant { released: releases.len() as u64, ..Clairvoyant::default() };
        let most = solve(jobs(&releases, |_| 1.0));
        total.met = (&most).into();
        if run == 0 {
            total.first_run = releases.iter().copied().zip(most.chosen).collect();
        }
        total.value = is_valued.then(|| (&solve(jobs(&releases, |release| release.value))).into());
        if is_critical {
            // One critical job outweighs all others together, so that it comes first.
            let others = releases.iter().filter(|release| release.criticality == 0).count() as f64;
            let first = solve(jobs(&releases, |release| if release.criticality > 0 { others + 1.0 } else { 1.0 }));
            let critical = |weight: f64| (weight / (others + 1.0)).floor();
            total.critical = Some(OptimumRange { lower: critical(first.lower), upper: critical(first.upper) });
            let met = first.lower - others * critical(first.lower);
            total.met_critical_first = first.is_exact().then_some(met as u64);
            let alone = |level: &u8| match levels.len() {
                1 => total.critical.unwrap_or_default(),
                _ => (&solve(jobs(&releases, |release| f64::from(u8::from(release.criticality == *level))))).into(),
            };
            total.levels = levels.iter().map(|level| (*level, alone(level))).collect();
        }
        total
    };
    let mut all: Vec<Clairvoyant> = (0..different).into_par_iter().map(one).collect();
    let first_run = all.first_mut().map(|run| std::mem::take(&mut run.first_run)).unwrap_or_default();
    let sum = |of: &dyn Fn(&Clairvoyant) -> OptimumRange| {
        let mut sum = OptimumRange::default();
        all.iter().for_each(|run| sum.add(of(run)));
        OptimumRange { lower: sum.lower * times, upper: sum.upper * times }
    };
    let met_first: Option<u64> = all.iter().map(|run| run.met_critical_first).sum();
    Ok(Clairvoyant {
        first_run,
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

    /// Every job of a run was kept, however many there were.
    #[test]
    fn the_optimum_of_more_jobs_than_its_budget_allows_is_not_computed() {
        let set = TaskSet::new("s", vec![Task::periodic("a", Time(1_000), Time(100))], 1);
        let seconds = 0.001;
        let most = most_jobs((seconds * STEPS_PER_SECOND) as u64);
        let why = clairvoyant(&set, Time(1_000 * (most + 1)), 1, 1, seconds).unwrap_err();
        assert!(why.contains("not computed") && why.contains(&most.to_string()), "{why}");
        // Years of nanoseconds are not even counted.
        assert!(clairvoyant(&set, Time::MAX_INPUT, 1, 1, seconds).is_err());
        assert_eq!(equal_optimum(&set, 1, Time::MAX_INPUT, 1_000).map(|found| found.1), None);
        assert_eq!(
            clairvoyant(&set, Time(50_000), 1, 1, seconds).unwrap().met,
            OptimumRange { lower: 50.0, upper: 50.0 }
        );
    }
}
