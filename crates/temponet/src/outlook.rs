//! What surrounds a row: sums over the ready jobs that are due earlier, and over the jobs that tasks will release.
//!
//! Releases are counted as a fluid after the first one of each task: until a date d, a task with the next release at r
//! and the gap g releases (d − r) / g + 1/2 jobs, from r on. That is right in the mean, exact enough beside the rows of
//! the coming jobs themselves, and makes each sum one lookup in a table that is sorted once per decision.

use temponet_sched::advice::FutureArrivals;
use temponet_task::{Job, JobId, SystemView, TaskId, Time};

use crate::feature::LOWEST_LEVEL;
use crate::number::RowFacts;
use crate::prediction::Prediction;
use crate::scale::Scale;
use crate::tokenizer::RowJob;

/// The surroundings of the rows of one decision. Its buffers are reused from decision to decision.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    now: Time,
    /// One over the unit of the scale, per nanosecond.
    per_unit: f64,
    capacity: f64,
    /// What is expected of each ready job, in deadline order.
    predictions: Vec<Prediction>,
    /// Worth of each ready job for each unit of its expected remaining time, in deadline order; `None` if it is
    /// impossible.
    densities_by_place: Vec<Option<f64>>,
    /// Ready jobs that are not impossible, in the order of their due dates, with the sums of work up to each.
    ready: Vec<ReadyWork>,
    /// Remaining times of these jobs, the shortest first.
    remaining: Vec<Time>,
    /// Worth of these jobs for each unit of their expected remaining time, the least first.
    densities: Vec<f64>,
    /// Next arrivals, the earliest first.
    arrivals: Vec<(TaskId, FutureArrivals)>,
    released: Inflow,
    due: Inflow,
}

/// Sums of remaining work, in units of the scale, over the ready jobs up to one due date.
#[derive(Clone, Copy, Debug)]
struct ReadyWork {
    due: Time,
    wcet: f64,
    expected: f64,
    /// The expected work of each rank of levels and all above it, the highest first; those of no level are last.
    levels: [f64; LEVELS],
}

/// Number of ranks of levels that are told apart, that of no level included.
const LEVELS: usize = LOWEST_LEVEL as usize + 1;

/// Place of a [`crate::feature::Feature::Level`] among the ranks.
fn level_place(level: u16) -> usize {
    if level == 0 { LEVELS - 1 } else { usize::from(level - 1).min(LEVELS - 1) }
}

impl ReadyWork {
    fn add(&mut self, before: &ReadyWork) {
        self.wcet += before.wcet;
        self.expected += before.expected;
        self.levels.iter_mut().zip(before.levels).for_each(|(level, before)| *level += before);
    }
}

impl Outlook {
    /// Reads the ready jobs, in deadline order, and the next arrivals.
    pub fn read(
        &mut self,
        view: &SystemView<'_>,
        scale: &Scale,
        ready: impl Iterator<Item = JobId>,
        arrivals: impl Iterator<Item = (TaskId, FutureArrivals)>,
    ) {
        let now = view.now;
        self.reserve(view);
        (self.now, self.per_unit, self.capacity) = (now, 1.0 / scale.unit, view.system.capacity());
        for id in ready {
            let job = view.job(id);
            if job.is_impossible(now) {
                self.predictions.push(Prediction::default());
                self.densities_by_place.push(None);
                continue;
            }
            let prediction = scale.prediction(job, now);
            self.predictions.push(prediction);
            let expected = expected_time(job, now, prediction) * self.per_unit;
            let wcet = job.expected_time_to_finish().0 as f64 * self.per_unit;
            let mut levels = [0.0; LEVELS];
            levels[level_place(scale.level(job))..].fill(expected);
            self.ready.push(ReadyWork { due: scale.due(job), wcet, expected, levels });
            let density = density(job, scale, expected);
            self.densities.push(density);
            self.densities_by_place.push(Some(density));
            self.remaining.push(job.expected_time_to_finish());
        }
        // Jobs come in deadline order, which is not that of due dates where others follow them.
        if !self.ready.is_sorted_by_key(|work| work.due) {
            self.ready.sort_by_key(|work| work.due);
        }
        for place in 1..self.ready.len() {
            let before = self.ready[place - 1];
            self.ready[place].add(&before);
        }
        self.remaining.sort_unstable();
        self.densities.sort_unstable_by(f64::total_cmp);
        self.arrivals.extend(arrivals);
        self.arrivals.sort_unstable_by_key(|(task, arrivals)| (arrivals.first, *task));
        for (task, arrivals) in &self.arrivals {
            let from = |date: Time| date.saturating_sub(now).0 as f64 * self.per_unit;
            let work = arrivals.jobs as f64 * scale.mean_execution(*task) * self.per_unit;
            let is_last = arrivals.first.0.saturating_add(arrivals.gap.0) >= arrivals.end.0;
            let gap = if is_last { f64::INFINITY } else { arrivals.gap.0 as f64 * self.per_unit };
            let deadline = scale.relative_due(*task, view.system);
            self.released.push(from(arrivals.first), gap, work);
            self.due.push(from(Time(arrivals.first.0.saturating_add(deadline.0))), gap, work);
        }
        self.released.sum();
        self.due.sum();
    }

    /// Reserves memory for all ready jobs and all tasks, so that a later decision with fewer allocates nothing.
    fn reserve(&mut self, view: &SystemView<'_>) {
        let (ready, tasks) = (view.active.len(), view.system.tasks().len());
        self.predictions.clear();
        self.densities_by_place.clear();
        self.ready.clear();
        self.remaining.clear();
        self.densities.clear();
        self.arrivals.clear();
        self.released.parts.clear();
        self.due.parts.clear();
        self.predictions.reserve(ready);
        self.densities_by_place.reserve(ready);
        self.ready.reserve(ready);
        self.remaining.reserve(ready);
        self.densities.reserve(ready);
        self.arrivals.reserve(tasks);
        self.released.parts.reserve(tasks);
        self.due.parts.reserve(tasks);
    }

    /// What is expected of the ready job at this place of the deadline order.
    pub fn prediction(&self, place: usize) -> Prediction {
        self.predictions[place]
    }

    /// Worth of each ready job for each unit of its expected remaining time, in deadline order; `None` if it is
    /// impossible.
    pub fn densities(&self) -> &[Option<f64>] {
        &self.densities_by_place
    }

    /// Tasks that release a job before the last due date of the ready jobs that are not impossible, with their next
    /// arrivals, the earliest first.
    pub fn coming(&self) -> &[(TaskId, FutureArrivals)] {
        let last = self.ready.last().map_or(Time::ZERO, |work| work.due);
        &self.arrivals[..self.arrivals.partition_point(|(_, arrivals)| arrivals.first < last)]
    }

    /// Returns the facts of a row, where `firm` is what an (m,k) constraint says about its job.
    pub fn facts(&self, row: &RowJob<'_>, view: &SystemView<'_>, scale: &Scale, firm: (f32, f32)) -> RowFacts {
        let RowJob { job, at, prediction, .. } = *row;
        let units = |time: Time| time.0 as f64 * self.per_unit;
        let (date, level) = (scale.due(job), scale.level(job));
        let due = units(date.saturating_sub(self.now));
        let until = self.ready.partition_point(|work| work.due <= date);
        let earlier = self.ready.partition_point(|work| work.due < date);
        let before = until.checked_sub(1).map(|last| &self.ready[last]);
        let [wcet, expected_before, level_before] =
            before.map_or([0.0; 3], |work| [work.wcet, work.expected, work.levels[level_place(level)]]);
        let remaining = job.expected_time_to_finish();
        let shorter = self.remaining.partition_point(|other| *other < remaining);
        let expected = expected_time(job, at, prediction) * self.per_unit;
        let own_density = density(job, scale, expected);
        let denser = self.densities.len() - self.densities.partition_point(|other| *other <= own_density);
        RowFacts {
            start: units(at.saturating_sub(self.now)),
            span: date.signed_sub(at) as f64 * self.per_unit,
            gap: scale.gap(job.task) * self.per_unit,
            wcet: units(job.wcet),
            remaining: [units(remaining), expected, units(job.least_time_to_finish())],
            executed: job.executed.0 as f64 / job.wcet.0.max(1) as f64,
            chance: prediction.chance,
            work: [
                wcet,
                expected_before,
                expected_before + self.due.until(due),
                self.released.until(due),
                level_before,
            ],
            jobs: [earlier as f64, shorter as f64, self.ready.len() as f64, denser as f64],
            capacity: self.capacity,
            is_running: job.running,
            has_run: job.last_core.is_some(),
            worth: scale.relative_worth(job),
            level,
            cost: scale.cost(job, view).0,
            rank: scale.rank(job.task),
            lead: job.deadline.saturating_sub(date).0 as f64 * self.per_unit,
            firm,
        }
    }
}

/// Returns the worth of a job for each unit of its expected remaining time.
fn density(job: &Job, scale: &Scale, expected: f64) -> f64 {
    scale.relative_worth(job) / expected.max(f64::MIN_POSITIVE)
}

/// Returns the expected remaining time of a job that can begin at a date, in nanoseconds.
fn expected_time(job: &Job, at: Time, prediction: Prediction) -> f64 {
    job.deadline.signed_sub(at) as f64 - prediction.slack
}

/// Work that comes in over time: a jump at the first date of each task and a steady flow after it.
#[derive(Debug, Default)]
struct Inflow {
    /// First date, gap and work of each task; then, sorted by date, with the sums up to each.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    first: f64,
    /// Work until d is `level` + `rate` · d.
    level: f64,
    rate: f64,
}

impl Inflow {
    fn push(&mut self, first: f64, gap: f64, work: f64) {
        let rate = work / gap;
        // A task that comes once comes whole; of the others half a job is left over in the mean.
        let jump = if rate == 0.0 { work } else { work / 2.0 };
        self.parts.push(Part { first, level: jump - rate * first, rate });
    }

    fn sum(&mut self) {
        self.parts.sort_unstable_by(|a, b| a.first.total_cmp(&b.first));
        let (mut level, mut rate) = (0.0, 0.0);
        for part in &mut self.parts {
            level += part.level;
            rate += part.rate;
            (part.level, part.rate) = (level, rate);
        }
    }

    /// Returns the work that comes in until a date.
    fn until(&self, date: f64) -> f64 {
        let count = self.parts.partition_point(|part| part.first <= date);
        count.checked_sub(1).map_or(0.0, |last| self.parts[last].level + self.parts[last].rate * date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::generate::{Spec, generate};
    use temponet_sim::{Engine, Unobserved};
    use temponet_task::{Assignment, Task, TaskSet};

    use crate::feature::RowKind;
    use crate::number::Number;
    use crate::observation::Observation;
    use crate::shown::RowLimits;
    use crate::tokenizer::Tokenizer;

    #[test]
    fn work_flows_in_from_the_first_release_on() {
        let mut inflow = Inflow::default();
        inflow.push(10.0, 4.0, 2.0);
        inflow.push(3.0, f64::INFINITY, 5.0);
        inflow.sum();
        assert_eq!([0.0, 3.0, 9.0].map(|date| inflow.until(date)), [0.0, 5.0, 5.0], "one job that comes once");
        assert_eq!([10.0, 14.0, 18.0].map(|date| inflow.until(date)), [6.0, 8.0, 10.0]);
    }

    /// Numbers of every row of random runs against sums over all jobs.
    #[test]
    fn sums_are_those_over_all_jobs_and_coming_rows_are_never_chosen() {
        for most_rows in [Some(96), None, Some(3)] {
            sums_hold(&Tokenizer { most_rows, ..Tokenizer::ahead() });
        }
    }

    fn sums_hold(tokenizer: &Tokenizer) {
        let limits = RowLimits::of(tokenizer.most_rows, 2);
        let (mut coming_rows, mut skipped, mut left_out) = (0, 0, 0);
        for seed in 0..6 {
            let mut spec = Spec::new(9, 2, 2.6);
            spec.bcet = 0.5;
            let set = generate(&spec, seed).unwrap();
            let scale = Scale::of(tokenizer, &set.system);
            let mut engine = Engine::new(&set, seed, Time::from_ms(400));
            let mut observation = Observation::default();
            observation.start(&set.system);
            while engine.advance(&mut Unobserved) {
                let view = engine.view();
                observation.read(tokenizer, &scale, &view, false);
                let number = |row: u32, number: Number| observation.real(row)[number as usize];
                for (id, row) in observation.jobs() {
                    let job = view.job(*id);
                    let is_impossible = job.is_impossible(view.now);
                    assert!(!(is_impossible && observation.may_choose(*row)));
                    if *row == 0 {
                        (skipped, left_out) =
                            (skipped + u32::from(is_impossible), left_out + u32::from(!is_impossible));
                        continue;
                    }
                    let due = (job.deadline - view.now).0 as f64;
                    let others = || view.ready().map(|(_, job)| job).filter(|job| !job.is_impossible(view.now));
                    let work: u64 =
                        others().filter(|other| other.deadline <= job.deadline).map(|other| other.remaining().0).sum();
                    let expected = (work as f64 / (2.0 * due)).min(4.0) as f32;
                    assert!((number(*row, Number::WorkBefore) - expected).abs() < 1e-4);
                }
                let last =
                    view.ready().filter(|(_, job)| !job.is_impossible(view.now)).map(|(_, job)| job.deadline).max();
                let next = |task: &Task| {
                    let period = task.deadline;
                    Time((view.now.0 / period.0 + 1) * period.0)
                };
                let expected = set.tasks().iter().filter(|task| Some(next(task)) < last).count();
                let jobs = observation.jobs().iter().map(|(_, row)| *row).max().unwrap_or(0);
                let coming = jobs + 1..=observation.distinct() as u32;
                let expected = if last.is_some() { expected.min(limits.coming) } else { 0 };
                assert_eq!(coming.clone().count(), expected);
                for row in coming {
                    assert_eq!(observation.token(row)[0], RowKind::Coming as u16);
                    assert_eq!(observation.counts()[row as usize - 1], 0);
                    assert!(number(row, Number::Start) > 0.0);
                    coming_rows += 1;
                }
                let mut assignment = Assignment::default();
                assignment.reset(2);
                let ready: Vec<JobId> = view.active.iter().copied().take(2).collect();
                assignment.place(&view, &ready);
                engine.apply(&assignment, &mut Unobserved).unwrap();
            }
        }
        assert!(coming_rows > 500 && skipped > 100, "{coming_rows} {skipped}");
        assert_eq!(left_out > 0, limits.ready < 9, "{left_out} have no rows");
    }

    /// Numbers of the only job of each task at the start of a run.
    fn numbers_at_start(set: &TaskSet) -> Vec<[f32; 5]> {
        let tokenizer = Tokenizer::ahead();
        let mut engine = Engine::new(set, 1, Time(1_000));
        assert!(engine.advance(&mut Unobserved));
        let mut observation = Observation::default();
        observation.start(&set.system);
        observation.read(&tokenizer, &Scale::of(&tokenizer, &set.system), &engine.view(), false);
        let asked = [Number::Due, Number::Lead, Number::LevelBefore, Number::AtStake, Number::Closeness];
        let of = |row: u32| asked.map(|number| observation.real(row)[number as usize]);
        let mut jobs: Vec<(TaskId, u32)> =
            observation.jobs().iter().map(|(id, row)| (engine.view().job(*id).task, *row)).collect();
        jobs.sort_unstable();
        jobs.into_iter().map(|(_, row)| of(row)).collect()
    }

    #[test]
    fn work_of_lower_levels_is_left_out_and_constraints_are_seen() {
        let task = |name: &str| Task::periodic(name, Time(100), Time(20));
        let mut tasks = vec![task("low").with_deadline(Time(40)), task("high").with_deadline(Time(80))];
        (tasks[1].criticality, tasks[0].mk) = (2, Some((2, 2)));
        let numbers = numbers_at_start(&TaskSet::new("set", tasks, 1));
        let [_, _, level_before, at_stake, closeness] = numbers[0];
        assert_eq!((level_before, at_stake, closeness), (0.5, 1.0, 1.0));
        let [_, _, level_before, at_stake, closeness] = numbers[1];
        assert_eq!((level_before, at_stake, closeness), (0.25, 0.0, 0.0), "the job of the lower level does not count");
    }

    #[test]
    fn a_job_that_others_follow_is_due_before_its_deadline() {
        let task = |name: &str| Task::periodic(name, Time(100), Time(20));
        let mut tasks = vec![task("first"), task("second")];
        tasks[1].after = vec![TaskId(0)];
        let [due, lead, ..] = numbers_at_start(&TaskSet::new("set", tasks, 1))[0];
        let alone = numbers_at_start(&TaskSet::new("set", vec![task("alone").with_deadline(Time(80))], 1))[0];
        assert_eq!((due, alone[1]), (alone[0], 0.0));
        assert!(lead > 0.0);
    }

    #[test]
    fn a_set_without_a_future_has_no_coming_rows() {
        let tokenizer = Tokenizer::ahead();
        let burst = temponet_task::Arrival::Burst { jobs: 3, every: Time(100), until: Time(1) };
        let task = Task::periodic("t", Time(100), Time(40)).with_arrival(burst).with_deadline(Time(90));
        let set = TaskSet::new("set", vec![task], 1);
        let mut engine = Engine::new(&set, 1, Time(1_000));
        assert!(engine.advance(&mut Unobserved));
        let mut observation = Observation::default();
        observation.read(&tokenizer, &Scale::of(&tokenizer, &set.system), &engine.view(), false);
        assert_eq!((observation.jobs().len(), observation.distinct()), (3, 1));
        assert!(observation.real(1).iter().all(|number| number.is_finite()));
    }
}
