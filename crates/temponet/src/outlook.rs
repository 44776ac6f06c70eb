//! What surrounds a row: sums over the ready jobs that are due earlier, and over the jobs that tasks will release.
//!
//! Releases are counted as a fluid after the first one of each task: until a date d, a task with the next release at r
//! and the gap g releases (d − r) / g + 1/2 jobs, from r on. That is right in the mean, exact enough beside the rows of
//! the coming jobs themselves, and makes each sum one lookup in a table that is sorted once per decision.

use temponet_sched::advice::FutureArrivals;
use temponet_task::{Job, JobId, SystemView, TaskId, Time};

use crate::feature::LOWEST_LEVEL;
use crate::number::{JobsPerCore, Moment, Number, Progress, RowFacts};
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
    /// What is known of each ready job, in deadline order; nothing of one that is impossible.
    known: Vec<Option<Known>>,
    /// Ready jobs that are not impossible, in the order of their due dates, with the sums of work up to each.
    ready: Vec<ReadyWork>,
    /// Due dates of these jobs, each with the place of the first job that is due then.
    dues: Vec<Time>,
    first_due: Vec<u32>,
    /// Remaining times of these jobs in nanoseconds.
    remaining: Ranks,
    /// Whether each of these numbers is exactly the time that it stands for.
    is_exact: bool,
    /// Worth of these jobs for each unit of their expected remaining time.
    densities: Ranks,
    /// Next arrivals, in the order of the tasks.
    arrivals: Vec<(TaskId, FutureArrivals)>,
    /// Places of the arrivals, the earliest first, and then of the due dates of what arrives.
    order: Vec<u32>,
    due_order: Vec<u32>,
    /// Working memory of sorting.
    keys: Keys,
    jobs_per_core: JobsPerCore,
    released: Inflow,
    due: Inflow,
}

/// What is known of a job, or of one that comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    pub prediction: Prediction,
    pub due: Time,
    level: u16,
    /// Remaining time at the work to plan with.
    remaining: Time,
    /// Expected remaining time in units.
    expected: f64,
    /// Worth for each unit of the expected remaining time.
    pub density: f64,
}

impl Known {
    /// What is known of a job that can begin at a date, where `per_unit` is one over the unit of the scale.
    pub fn of(job: &Job, at: Time, prediction: Prediction, scale: &Scale, per_unit: f64) -> Known {
        let expected = (job.deadline.signed_sub(at) as f64 - prediction.slack) * per_unit;
        Known {
            prediction,
            due: scale.due(job),
            level: scale.level(job),
            remaining: job.expected_time_to_finish(),
            expected,
            density: scale.relative_worth(job) / expected.max(f64::MIN_POSITIVE),
        }
    }
}

/// Numbers among which others are ranked. A few are counted one by one, which a processor does several at a time, and
/// without a sorted order; many are sorted.
#[derive(Debug, Default)]
struct Ranks(Vec<f64>);

/// Most numbers that are counted one by one.
const FEW: usize = 48;

impl Ranks {
    fn sort_if_many(&mut self) {
        if self.0.len() > FEW {
            self.0.sort_unstable_by(f64::total_cmp);
        }
    }

    /// Number of numbers below this one.
    #[inline]
    fn below(&self, number: f64) -> usize {
        match self.0.len() <= FEW {
            true => count(&self.0, |other| other < number),
            false => self.0.partition_point(|other| *other < number),
        }
    }

    /// Number of numbers that are not above this one.
    #[inline]
    fn up_to(&self, number: f64) -> usize {
        match self.0.len() <= FEW {
            true => count(&self.0, |other| other <= number),
            false => self.0.partition_point(|other| *other <= number),
        }
    }
}

#[inline]
fn count(numbers: &[f64], is_counted: impl Fn(f64) -> bool) -> usize {
    numbers.iter().map(|number| u64::from(is_counted(*number))).sum::<u64>() as usize
}

/// Least time in nanoseconds that a floating-point number may not hold exactly.
const INEXACT: Time = Time(1 << 53);

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
    /// Reads the ready jobs, in deadline order, and the next arrivals, which `find_arrivals` passes on.
    pub fn read(
        &mut self,
        view: &SystemView<'_>,
        scale: &Scale,
        ready: impl Iterator<Item = JobId>,
        find_arrivals: impl FnOnce(&mut dyn FnMut(TaskId, FutureArrivals)),
    ) {
        let now = view.now;
        self.reserve(view);
        (self.now, self.per_unit, self.capacity) = (now, 1.0 / scale.unit, view.system.capacity());
        for id in ready {
            let job = view.job(id);
            if job.is_impossible(now) {
                self.known.push(None);
                continue;
            }
            let known = Known::of(job, now, scale.prediction(job, now), scale, self.per_unit);
            let mut levels = [0.0; LEVELS];
            levels[level_place(known.level)..].fill(known.expected);
            let wcet = known.remaining.0 as f64 * self.per_unit;
            self.ready.push(ReadyWork { due: known.due, wcet, expected: known.expected, levels });
            self.densities.0.push(known.density);
            self.remaining.0.push(known.remaining.0 as f64);
            self.is_exact &= known.remaining < INEXACT;
            self.known.push(Some(known));
        }
        // Jobs come in deadline order, which is not that of due dates where others follow them.
        if !self.ready.is_sorted_by_key(|work| work.due) {
            self.ready.sort_by_key(|work| work.due);
        }
        for place in 1..self.ready.len() {
            let (before, from) = self.ready.split_at_mut(place);
            from[0].add(&before[place - 1]);
        }
        for (place, work) in self.ready.iter().enumerate() {
            let is_first = self.dues.last() != Some(&work.due);
            let first = if is_first { place as u32 } else { self.first_due[place - 1] };
            self.dues.push(work.due);
            self.first_due.push(first);
        }
        self.remaining.sort_if_many();
        self.densities.sort_if_many();
        find_arrivals(&mut |task, coming| self.arrivals.push((task, coming)));
        // Tasks come in order, and so equal dates stay in theirs.
        self.keys.sort(self.arrivals.iter().map(|(_, coming)| coming.first.saturating_sub(now)), &mut self.order);
        for (task, arrivals) in self.order.iter().map(|place| &self.arrivals[*place as usize]) {
            let from = |date: Time| date.saturating_sub(now).0 as f64 * self.per_unit;
            let flow = &scale.flows[task.index()];
            let work = arrivals.jobs as f64 * flow.mean_execution * self.per_unit;
            let is_last = arrivals.first.0.saturating_add(arrivals.gap.0) >= arrivals.end.0;
            let gap = if is_last { f64::INFINITY } else { arrivals.gap.0 as f64 * self.per_unit };
            // A task that comes once comes whole; of the others half a job is left over in the mean.
            let rate = work / gap;
            let jump = if rate == 0.0 { work } else { work / 2.0 };
            self.released.push(from(arrivals.first), jump, rate);
            self.due.push(from(Time(arrivals.first.0.saturating_add(flow.due.0))), jump, rate);
        }
        let due = |place: &u32| {
            let (task, arrivals) = &self.arrivals[*place as usize];
            Time(arrivals.first.0.saturating_add(scale.flows[task.index()].due.0)).saturating_sub(now)
        };
        self.keys.sort(self.order.iter().map(due), &mut self.due_order);
        self.released.sum();
        self.due.sort(&self.due_order);
        self.due.sum();
        self.jobs_per_core.prepare(self.capacity, self.ready.len());
    }

    /// Reserves memory for all ready jobs and all tasks, so that a later decision with fewer allocates nothing.
    fn reserve(&mut self, view: &SystemView<'_>) {
        let (ready, tasks) = (view.active.len(), view.system.tasks().len());
        self.known.clear();
        self.ready.clear();
        self.dues.clear();
        self.first_due.clear();
        self.remaining.0.clear();
        self.is_exact = true;
        self.densities.0.clear();
        self.arrivals.clear();
        self.order.clear();
        self.due_order.clear();
        self.released.clear();
        self.due.clear();
        self.known.reserve(ready);
        self.ready.reserve(ready);
        self.dues.reserve(ready);
        self.first_due.reserve(ready);
        self.remaining.0.reserve(ready);
        self.densities.0.reserve(ready);
        self.arrivals.reserve(tasks);
        self.order.reserve(tasks);
        self.due_order.reserve(tasks);
        self.keys.reserve(tasks);
        self.released.reserve(tasks);
        self.due.reserve(tasks);
    }

    /// What is known of each ready job, in deadline order; nothing of one that is impossible.
    pub fn known(&self) -> &[Option<Known>] {
        &self.known
    }

    /// Number of tasks that release a job before the last due date of the ready jobs that are not impossible.
    pub fn coming(&self) -> usize {
        let last = self.ready.last().map_or(Time::ZERO, |work| work.due);
        self.order.partition_point(|place| self.arrivals[*place as usize].1.first < last)
    }

    /// The task that comes at this place and its next arrivals, the earliest first.
    pub fn coming_at(&self, place: usize) -> (TaskId, FutureArrivals) {
        self.arrivals[self.order[place] as usize]
    }

    /// Returns what surrounds a row that is due at a date. `remaining` and `density` are those of its job.
    #[inline]
    fn surroundings(&self, known: &Known, due: Time) -> Surroundings {
        let until = self.dues.partition_point(|other| *other <= due);
        let (before, earlier) = match until.checked_sub(1) {
            Some(last) if self.dues[last] == due => (Some(&self.ready[last]), self.first_due[last] as usize),
            Some(last) => (Some(&self.ready[last]), until),
            None => (None, 0),
        };
        let [wcet, expected, level] =
            before.map_or([0.0; 3], |work| [work.wcet, work.expected, work.levels[level_place(known.level)]]);
        let shorter = match self.is_exact && known.remaining < INEXACT {
            true => self.remaining.below(known.remaining.0 as f64),
            false => self.known.iter().flatten().filter(|other| other.remaining < known.remaining).count(),
        };
        let denser = self.densities.0.len() - self.densities.up_to(known.density);
        let from_now = due.saturating_sub(self.now).0 as f64 * self.per_unit;
        Surroundings {
            work: [wcet, expected, expected + self.due.until(from_now), self.released.until(from_now), level],
            jobs: [earlier, shorter, self.ready.len(), denser],
        }
    }

    /// Returns the numbers of a row, where `known` is what is known of its job, if that has been looked up, and `firm`
    /// is what an (m,k) constraint says about it.
    pub fn numbers(
        &self,
        row: &RowJob<'_>,
        known: Option<Known>,
        view: &SystemView<'_>,
        scale: &Scale,
        firm: (f32, f32),
    ) -> [f32; Number::ALL.len()] {
        let RowJob { job, at, prediction, .. } = *row;
        let known = known.unwrap_or_else(|| Known::of(job, at, prediction, scale, self.per_unit));
        let Surroundings { work, jobs } = self.surroundings(&known, known.due);
        let units = |time: Time| time.0 as f64 * self.per_unit;
        let of_task = scale.rows.get(job.task.index()).filter(|of_task| of_task.is_of(job, known.due));
        let Some(of_task) = of_task else {
            let facts = RowFacts::of(job, at, &known, scale, (self.per_unit, self.capacity));
            let (start, jobs) = (units(at.saturating_sub(self.now)), jobs.map(|jobs| jobs as f64));
            return RowFacts { start, work, jobs, cost: scale.cost(job, view).0, firm, ..facts }.numbers();
        };
        let mut numbers = of_task.numbers;
        let moment = Moment {
            start: units(at.saturating_sub(self.now)),
            span: known.due.signed_sub(at) as f64 * self.per_unit,
            gap: scale.gap(job.task) * self.per_unit,
            capacity: self.capacity,
            work,
            firm,
            jobs: jobs.map(|jobs| self.jobs_per_core.of(jobs)),
        };
        let progress = Progress {
            remaining: [units(known.remaining), known.expected, units(job.least_time_to_finish())],
            executed: job.executed.0 as f64 / job.wcet.0.max(1) as f64,
            chance: prediction.chance,
            cost: scale.cost(job, view).0,
            is_running: job.running,
            has_run: job.last_core.is_some(),
        };
        moment.set_ready(&progress, &mut numbers);
        // A job that is not ready yet.
        if at > self.now {
            moment.set_coming(&mut numbers);
        }
        numbers
    }

    /// Returns the numbers of the row of a task's next job, which is released at a date, where `firm` is what an (m,k)
    /// constraint says about it; `None` if it is due beyond all dates.
    pub fn numbers_of_coming(
        &self,
        id: TaskId,
        at: Time,
        scale: &Scale,
        firm: (f32, f32),
    ) -> Option<[f32; Number::ALL.len()]> {
        let of_task = scale.rows.get(id.index())?;
        let flow = scale.flows.get(id.index())?;
        let due = Time(at.0.checked_add(of_task.deadline.0).filter(|deadline| *deadline < Time::NEVER.0)?);
        let due = due - of_task.deadline.saturating_sub(flow.due);
        let Surroundings { work, jobs } = self.surroundings(&of_task.known, due);
        let moment = Moment {
            start: at.saturating_sub(self.now).0 as f64 * self.per_unit,
            span: of_task.span,
            gap: flow.gap * self.per_unit,
            capacity: self.capacity,
            work,
            firm,
            jobs: jobs.map(|jobs| self.jobs_per_core.of(jobs)),
        };
        let mut numbers = of_task.numbers;
        moment.set_coming(&mut numbers);
        Some(numbers)
    }
}

/// What surrounds a row: see [`RowFacts::work`] and [`RowFacts::jobs`].
struct Surroundings {
    work: [f64; 5],
    jobs: [usize; 4],
}

impl RowFacts {
    /// Facts of the row of a job that can begin at a date, where nothing surrounds it, with one over the unit of the
    /// scale and the capacity of the machine.
    pub fn of(job: &Job, at: Time, known: &Known, scale: &Scale, (per_unit, capacity): (f64, f64)) -> RowFacts {
        let units = |time: Time| time.0 as f64 * per_unit;
        RowFacts {
            start: 0.0,
            span: known.due.signed_sub(at) as f64 * per_unit,
            gap: scale.gap(job.task) * per_unit,
            wcet: units(job.wcet),
            remaining: [units(known.remaining), known.expected, units(job.least_time_to_finish())],
            executed: job.executed.0 as f64 / job.wcet.0.max(1) as f64,
            chance: known.prediction.chance,
            work: [0.0; 5],
            jobs: [0.0; 4],
            capacity,
            is_running: job.running,
            has_run: job.last_core.is_some(),
            worth: scale.relative_worth(job),
            level: known.level,
            cost: scale.cost_of_starting(),
            rank: scale.rank(job.task),
            lead: job.deadline.saturating_sub(known.due).0 as f64 * per_unit,
            firm: (0.0, 0.0),
        }
    }
}

/// Sorting of times by keys that hold a time and its place.
#[derive(Debug, Default)]
struct Keys {
    short: Vec<u64>,
    long: Vec<(Time, u32)>,
}

/// Bits of the place in a short key.
const PLACE_BITS: u32 = 12;

impl Keys {
    fn reserve(&mut self, times: usize) {
        self.short.clear();
        self.short.reserve(times);
    }

    /// Replaces `order` by the places of the times, the shortest first, equal ones in their order.
    fn sort(&mut self, times: impl Iterator<Item = Time> + Clone, order: &mut Vec<u32>) {
        order.clear();
        self.short.clear();
        self.short.extend(times.clone().zip(0u64..).map(|(time, place)| time.0 << PLACE_BITS | place));
        let all = times.clone().fold(0, |all, time| all | time.0);
        if all >> (u64::BITS - PLACE_BITS) == 0 && self.short.len() <= 1 << PLACE_BITS {
            self.short.sort_unstable();
            order.extend(self.short.iter().map(|key| (key & ((1 << PLACE_BITS) - 1)) as u32));
            return;
        }
        self.long.clear();
        self.long.extend(times.zip(0..));
        self.long.sort_unstable();
        order.extend(self.long.iter().map(|(_, place)| *place));
    }
}

/// Work that comes in over time: a jump at the first date of each task and a steady flow after it.
#[derive(Debug, Default)]
struct Inflow {
    /// First dates, in order once they are sorted.
    firsts: Vec<f64>,
    parts: Vec<Part>,
    /// Working memory of sorting.
    spare: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    first: f64,
    /// Work until d is `level` + `rate` · d; of this task, or of all up to it once they are summed.
    level: f64,
    rate: f64,
}

impl Inflow {
    fn clear(&mut self) {
        self.firsts.clear();
        self.parts.clear();
        self.spare.clear();
    }

    fn reserve(&mut self, tasks: usize) {
        self.firsts.reserve(tasks);
        self.parts.reserve(tasks);
        self.spare.reserve(tasks);
    }

    fn push(&mut self, first: f64, jump: f64, rate: f64) {
        self.parts.push(Part { first, level: jump - rate * first, rate });
    }

    /// Brings the parts into an order that is that of their dates.
    fn sort(&mut self, order: &[u32]) {
        self.spare.clear();
        self.spare.extend(order.iter().map(|place| self.parts[*place as usize]));
        if self.spare.is_sorted_by(|a, b| a.first < b.first) {
            std::mem::swap(&mut self.spare, &mut self.parts);
        } else {
            // The sums of equal dates depend on their order in the last bit, and so weights would.
            self.parts.sort_unstable_by(|a, b| a.first.total_cmp(&b.first));
        }
    }

    fn sum(&mut self) {
        let (mut level, mut rate) = (0.0, 0.0);
        for part in &mut self.parts {
            level += part.level;
            rate += part.rate;
            (part.level, part.rate) = (level, rate);
            self.firsts.push(part.first);
        }
    }

    /// Returns the work that comes in until a date.
    #[inline]
    fn until(&self, date: f64) -> f64 {
        let count = match self.firsts.len() <= FEW {
            true => count(&self.firsts, |first| first <= date),
            false => self.firsts.partition_point(|first| *first <= date),
        };
        count.checked_sub(1).map_or(0.0, |last| self.parts[last].level + self.parts[last].rate * date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::generate::{Spec, WorkloadRanges, generate};
    use temponet_sim::{Engine, Unobserved};
    use temponet_task::{Assignment, Task, TaskSet};

    use crate::feature::RowKind;
    use crate::firm::FirmHistory;
    use crate::observation::Observation;
    use crate::shown::RowLimits;
    use crate::tokenizer::Tokenizer;

    #[test]
    fn work_flows_in_from_the_first_release_on() {
        let mut inflow = Inflow::default();
        inflow.push(10.0, 1.0, 0.5);
        inflow.push(3.0, 5.0, 0.0);
        inflow.sort(&[1, 0]);
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

    /// What is computed once for each task changes no number, and an observation that has read other runs reads as one of
    /// its own.
    #[test]
    fn numbers_are_those_of_a_scale_without_rows_in_an_observation_that_serves_many_runs() {
        let ranges = WorkloadRanges { tasks_per_core: (1.5, 30.0), ..WorkloadRanges::wide() };
        let (mut shared, mut rows) = (Observation::default(), 0);
        for numbers in [Number::ALL.to_vec(), vec![Number::Cost, Number::Due]] {
            let tokenizer = Tokenizer { numbers, ..Tokenizer::ahead() };
            let begin = |seed: u64| {
                let set = ranges.draw(seed).unwrap();
                let (scale, mut own) = (Scale::of(&tokenizer, &set.system), Observation::default());
                own.start(&set.system);
                let mut history = FirmHistory::default();
                history.start(&set.system);
                (Engine::new(set, seed, Time::MAX_INPUT), scale, own, history)
            };
            let mut runs: Vec<_> = (0..40).map(begin).collect();
            for _ in 0..60 {
                for (engine, scale, own, history) in &mut runs {
                    assert!(engine.advance(&mut Unobserved));
                    let view = engine.view();
                    own.note(&view);
                    history.note(&view);
                    let mut plain = scale.clone();
                    plain.rows.clear();
                    own.read(&tokenizer, &plain, &view, false);
                    shared.read_after(history, &tokenizer, scale, &view, false);
                    assert_eq!((shared.jobs(), shared.counts()), (own.jobs(), own.counts()));
                    assert_eq!(shared.rows().jobs, own.rows().jobs);
                    let bits = |of: &Observation| of.rows().real.iter().map(|real| real.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&shared), bits(own));
                    rows += own.distinct();
                    let chosen: Vec<JobId> = own.jobs().iter().rev().map(|(id, _)| *id).take(view.cores()).collect();
                    let mut assignment = Assignment::default();
                    assignment.reset(view.cores());
                    assignment.place(&view, &chosen);
                    engine.apply(&assignment, &mut Unobserved).unwrap();
                }
            }
        }
        assert!(rows > 50_000, "{rows}");
    }

    #[test]
    fn keys_sort_short_and_long_times_and_keep_equal_ones_in_order() {
        let (mut keys, mut order) = (Keys::default(), Vec::new());
        for longest in [9, u64::MAX] {
            let times = [5, 3, longest, 3, 0, 5, 3].map(Time);
            keys.sort(times.into_iter(), &mut order);
            assert_eq!(order, [4, 1, 3, 6, 0, 5, 2]);
        }
    }

    /// The ranks of few numbers are counted, and those of many searched.
    #[test]
    fn ranks_are_the_same_for_few_and_many() {
        for many in [FEW, FEW + 1] {
            let mut ranks = Ranks((0..many).map(|place| (place * 7 % 11) as f64).collect());
            let plain =
                |is_counted: &dyn Fn(usize) -> bool| (0..many).filter(|place| is_counted(place * 7 % 11)).count();
            let expected: Vec<_> =
                (0..12usize).map(|n| (plain(&|other| other < n), plain(&|other| other <= n))).collect();
            ranks.sort_if_many();
            let found: Vec<_> = (0..12u8).map(|n| (ranks.below(f64::from(n)), ranks.up_to(f64::from(n)))).collect();
            assert_eq!(found, expected);
        }
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
