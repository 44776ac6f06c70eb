//! The future jobs of all tasks in deadline order, kept from decision to decision.
//!
//! The next jobs of a periodic task or of a burst stay the same until the first of them is released. So a decision
//! computes only the jobs of tasks that have released one since the last decision, and repairs the order instead of
//! sorting anew. What a sporadic task is expected to release changes with time and is computed at every decision.
//!
//! The result never depends on earlier decisions: tasks are compared with those of the last decision, and time may run
//! backwards.

use temponet_task::{Arrival, SystemView, Task, TaskId, Tie, Time};

use super::deadline_order::PlanEntry;
use super::future_arrivals::{AHEAD, ArrivalRule, FutureArrivals, most_coming};
use super::repair::{merge, sort};

/// Future jobs of a system. The buffers are reused between decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct Forecast {
    tasks: Vec<TaskForecast>,
    /// Known future jobs. Each task has a range of its own.
    slots: Vec<ComingJob>,
    /// Whether the job of a slot has to leave `order`.
    is_stale: Vec<bool>,
    /// Deadlines and slots of the known future jobs, in order.
    order: Vec<(Time, u32)>,
    /// Deadlines and slots of the jobs that enter `order`.
    fresh: Vec<(Time, u32)>,
    /// Indices of the sporadic tasks.
    sporadic: Vec<TaskId>,
    /// Jobs that sporadic tasks are expected to release.
    expected: Vec<ComingJob>,
    /// Deadlines and places of the expected jobs, in order.
    expected_order: Vec<(Time, u32)>,
    /// Release of each task's latest ready job; filled only where a task is sporadic.
    latest: Vec<Option<Time>>,
    /// Next arrivals of each task, as far as they can be foreseen.
    arrivals: Vec<Option<FutureArrivals>>,
}

/// The next arrivals of all tasks without the jobs that they release, for whoever plans nothing.
#[derive(Clone, Debug, Default)]
pub struct NextArrivals {
    /// Release of each task's latest ready job; filled only where a task is sporadic.
    latest: Vec<Option<Time>>,
}

impl NextArrivals {
    /// Calls `take` with the tasks whose arrivals can be foreseen and their next ones, in the order of the tasks. `rules`
    /// are those of all tasks of the view's system.
    pub fn find(
        &mut self,
        view: &SystemView<'_>,
        rules: impl Iterator<Item = Option<ArrivalRule>>,
        mut take: impl FnMut(TaskId, FutureArrivals),
    ) {
        self.latest.clear();
        for (id, rule) in view.system.task_ids().zip(rules) {
            let Some(rule) = rule else { continue };
            let arrivals = rule.next(view.now, || latest_release(&mut self.latest, view, id));
            if arrivals.first < arrivals.end {
                take(id, arrivals);
            }
        }
    }
}

/// A future job.
#[derive(Clone, Copy, Debug)]
struct ComingJob {
    tie: Tie,
    entry: PlanEntry,
}

/// When the slots of a task hold its next jobs.
#[derive(Clone, Copy, Debug)]
struct TaskForecast {
    basis: Basis,
    /// The slots are right from `since` on and before `until`.
    since: Time,
    until: Time,
    first_slot: u32,
    /// Number of slots that hold a job.
    used: u32,
}

/// The properties of a task that its future jobs follow from.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Basis {
    arrival: Pattern,
    offset: Time,
    deadline: Time,
    bcet: Time,
    wcet: Time,
    value: f64,
    criticality: u8,
}

/// Arrivals of a task as far as they are known ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    Known { gap: Time, jobs: u32, end: Time },
    Sporadic,
    Unknown,
}

impl Basis {
    fn of(task: &Task) -> Basis {
        let arrival = match task.arrival {
            Arrival::Periodic { period } => Pattern::Known { gap: period, jobs: 1, end: Time::NEVER },
            Arrival::Burst { jobs, every, until } => Pattern::Known { gap: every, jobs, end: until },
            Arrival::Sporadic { .. } => Pattern::Sporadic,
            _ => Pattern::Unknown,
        };
        let Task { offset, deadline, bcet, wcet, value, criticality, .. } = *task;
        Basis { arrival, offset, deadline, bcet, wcet, value, criticality }
    }
}

impl Forecast {
    /// Reserves memory for the future jobs of these tasks.
    pub fn reserve(&mut self, tasks: &[Task]) {
        self.begin(tasks);
        let sporadic = self.sporadic.iter().map(|task| most_coming(&tasks[*task])).sum();
        self.fresh.reserve(self.slots.len());
        self.order.reserve(self.slots.len());
        self.expected.clear();
        self.expected.reserve(sporadic);
        self.expected_order.clear();
        self.expected_order.reserve(sporadic);
        self.latest.clear();
        self.latest.reserve(tasks.len());
    }

    /// Computes the future jobs with a deadline of at most `last`.
    pub fn update(&mut self, view: &SystemView<'_>, last: Time) {
        let tasks = view.system.tasks();
        let is_same = |(known, task): (&TaskForecast, &Task)| known.basis == Basis::of(task);
        if self.tasks.len() != tasks.len() || !self.tasks.iter().zip(tasks).all(is_same) {
            self.begin(tasks);
        }
        self.fresh.clear();
        let mut has_changed = false;
        for (id, task) in TaskId::all(tasks.len()).zip(tasks) {
            let TaskForecast { since, until, .. } = self.tasks[id];
            if !(since <= view.now && view.now < until) {
                self.renew(id, task, view.now);
                has_changed = true;
            }
        }
        if has_changed {
            let Forecast { order, fresh, slots, is_stale, .. } = self;
            order.retain(|(_, slot)| !std::mem::take(&mut is_stale[*slot as usize]));
            let tie = |slot: u32| slots[slot as usize].tie;
            sort(fresh, tie);
            merge(order, fresh, tie);
        }
        self.expect(view, last);
    }

    /// Calls `take` in deadline order with the future jobs with a deadline of at most `last`, as of the last update.
    pub fn for_each_until(&self, last: Time, mut take: impl FnMut(&PlanEntry)) {
        let end = self.order.partition_point(|(deadline, _)| *deadline <= last);
        let mut expected = self.expected_order.iter().map(|(_, place)| &self.expected[*place as usize]).peekable();
        for (_, slot) in &self.order[..end] {
            let known = &self.slots[*slot as usize];
            let key = |job: &ComingJob| (job.entry.deadline, job.tie);
            while let Some(job) = expected.next_if(|job| key(job) < key(known)) {
                take(&job.entry);
            }
            take(&known.entry);
        }
        expected.for_each(|job| take(&job.entry));
    }

    /// Iterates over the tasks whose arrivals can be foreseen, with their next ones, as of the last update.
    pub fn arrivals(&self) -> impl Iterator<Item = (TaskId, FutureArrivals)> {
        let ids = TaskId::all(self.arrivals.len());
        ids.zip(&self.arrivals).filter_map(|(id, arrivals)| Some((id, (*arrivals)?)))
    }

    /// Forgets all jobs and takes these tasks.
    fn begin(&mut self, tasks: &[Task]) {
        self.tasks.clear();
        self.tasks.reserve(tasks.len());
        self.slots.clear();
        self.order.clear();
        self.sporadic.clear();
        let nothing = PlanEntry {
            deadline: Time::ZERO,
            id: None,
            task: TaskId(0),
            is_estimated: false,
            least: Time::ZERO,
            most: Time::ZERO,
            importance: 0.0,
        };
        for (id, task) in TaskId::all(tasks.len()).zip(tasks) {
            let basis = Basis::of(task);
            let is_known = matches!(basis.arrival, Pattern::Known { .. });
            let slots = if is_known { most_coming(task) } else { 0 };
            let until = if is_known { Time::ZERO } else { Time::NEVER };
            let first_slot = self.slots.len() as u32;
            self.tasks.push(TaskForecast { basis, since: Time::ZERO, until, first_slot, used: 0 });
            self.slots.resize(self.slots.len() + slots, ComingJob { tie: (Time::ZERO, TaskId(0), 0), entry: nothing });
            if basis.arrival == Pattern::Sporadic {
                self.sporadic.push(id);
            }
        }
        self.is_stale.clear();
        self.is_stale.resize(self.slots.len(), false);
        self.arrivals.clear();
        self.arrivals.resize(tasks.len(), None);
    }

    /// Computes the next jobs of a task whose arrivals are known.
    fn renew(&mut self, id: TaskId, task: &Task, now: Time) {
        let TaskForecast { first_slot, used, .. } = self.tasks[id];
        self.is_stale[first_slot as usize..][..used as usize].fill(true);
        let mut slot = first_slot;
        let Some(coming) = FutureArrivals::of(task, now, || None) else { return };
        self.arrivals[id] = (coming.first < coming.end).then_some(coming);
        for_each_job(id, task, coming, Time::NEVER, |job| {
            self.slots[slot as usize] = job;
            self.fresh.push((job.entry.deadline, slot));
            slot += 1;
        });
        let forecast = &mut self.tasks[id];
        forecast.used = slot - first_slot;
        // A date beyond the range of `Time` says nothing about when it holds.
        let holds = coming.first < Time::NEVER;
        forecast.until = if holds { coming.first } else { Time::ZERO };
        forecast.since = if coming.number == 0 { Time::ZERO } else { coming.first.saturating_sub(coming.gap) };
    }

    /// Computes what sporadic tasks are expected to release, with deadlines of at most `last`.
    fn expect(&mut self, view: &SystemView<'_>, last: Time) {
        let Forecast { sporadic, latest, expected, expected_order, arrivals, .. } = self;
        expected.clear();
        expected_order.clear();
        latest.clear();
        for id in sporadic {
            let task = &view.system.tasks()[*id];
            let latest = || latest_release(latest, view, *id);
            arrivals[*id] = FutureArrivals::of(task, view.now, latest);
            if let Some(coming) = arrivals[*id] {
                for_each_job(*id, task, coming, last, |job| {
                    expected_order.push((job.entry.deadline, expected.len() as u32));
                    expected.push(job);
                });
            }
        }
        sort(expected_order, |place| expected[place as usize].tie);
    }
}

/// Calls `take` with the next jobs of the task with this id, up to the deadline `last`.
fn for_each_job(id: TaskId, task: &Task, coming: FutureArrivals, last: Time, mut take: impl FnMut(ComingJob)) {
    let mut left = most_coming(task) as u64;
    for step in 0..AHEAD {
        let release = Time(coming.first.0.saturating_add(step.saturating_mul(coming.gap.0)));
        let deadline = Time(release.0.saturating_add(task.deadline.0));
        if deadline > last || release >= coming.end {
            break;
        }
        let entry = PlanEntry::coming(id, task, deadline);
        let number = (coming.number + step).saturating_mul(coming.jobs);
        for job in 0..coming.jobs.min(left) {
            take(ComingJob { tie: (release, id, number + job), entry });
        }
        left = left.saturating_sub(coming.jobs);
    }
}

/// Returns the release of a task's latest ready job. Reads the ready jobs of all tasks into `latest` if it is empty.
fn latest_release(latest: &mut Vec<Option<Time>>, view: &SystemView<'_>, task: TaskId) -> Option<Time> {
    if latest.is_empty() {
        latest.resize(view.system.tasks().len(), None);
        for (_, job) in view.ready() {
            // A view may hold a job of a task that the system does not have.
            if let Some(of_task) = latest.get_mut(job.task.index()) {
                *of_task = (*of_task).max(Some(job.release));
            }
        }
    }
    latest[task]
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::generate::WorkloadRanges;
    use temponet_sim::{Engine, Unobserved};
    use temponet_task::{Assignment, JobId};

    #[test]
    fn arrivals_without_jobs_are_those_of_the_forecast() {
        let (mut next, mut seen) = (NextArrivals::default(), [0, 0]);
        for seed in 0..60 {
            let set = WorkloadRanges::wide().draw(seed).unwrap();
            let rules: Vec<_> = set.tasks().iter().map(ArrivalRule::of).collect();
            let mut forecast = Forecast::default();
            forecast.reserve(set.tasks());
            let mut engine = Engine::new(&set, seed, Time::MAX_INPUT);
            for _ in 0..80 {
                assert!(engine.advance(&mut Unobserved));
                let view = engine.view();
                forecast.update(&view, Time::NEVER);
                let mut found = Vec::new();
                next.find(&view, rules.iter().copied(), |task, arrivals| found.push((task, arrivals)));
                assert_eq!(found, forecast.arrivals().collect::<Vec<_>>());
                seen[usize::from(forecast.sporadic.is_empty())] += found.len();
                let mut assignment = Assignment::default();
                assignment.reset(set.cores());
                let chosen: Vec<JobId> = view.active.iter().copied().take(set.cores()).collect();
                assignment.place(&view, &chosen);
                engine.apply(&assignment, &mut Unobserved).unwrap();
            }
        }
        assert!(seen.iter().all(|seen| *seen > 1_000), "{seen:?}");
    }
}
