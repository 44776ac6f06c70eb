//! Jobs of tasks with parts, as observers see them: one job from the release of its first part to the end of its last.
//!
//! The engine runs the parts as jobs of their own. [`WholeJobs`] stands between it and an observer, and gives every
//! event the task of the whole, the release of the first part, and the work of all parts so far. Only the release of
//! the first part is reported, and of the ends only the one that ends the whole: that of the last part, or of the first
//! part that does not complete.

use std::collections::HashMap;

use temponet_task::{CoreId, Job, ResourceId, Speed, System, TaskId, Time};

use crate::metrics::End;
use crate::trace::Observer;

/// Jobs of tasks with parts that have begun and have not ended.
#[derive(Clone, Debug)]
pub(crate) struct WholeJobs {
    /// By task, what follows from the parts of its whole.
    places: Vec<Place>,
    /// By whole task and number of the job.
    open: HashMap<(TaskId, u64), Open>,
}

/// Place of a task among the parts of its whole.
#[derive(Clone, Copy, Debug)]
struct Place {
    whole: TaskId,
    is_first: bool,
    /// Work of the parts behind it, at the wcet and at the bcet.
    behind: [Time; 2],
    /// Speed of the fastest core that any of the parts may use.
    fastest: Speed,
}

/// A job of which a part has been released.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Release of the first part.
    release: Time,
    first_start: Option<Time>,
    /// Wcets and bcets of the parts that have completed, and what they took.
    wcet: Time,
    bcet: Time,
    executed: Time,
    /// Whether it has been reported that its deadline has passed.
    is_late: bool,
    /// Whether its end has been reported.
    is_over: bool,
}

impl Open {
    fn new(release: Time) -> Open {
        let none = Time::ZERO;
        Open { release, first_start: None, wcet: none, bcet: none, executed: none, is_late: false, is_over: false }
    }
}

impl WholeJobs {
    /// Returns the jobs at the beginning of a run; `None` if no task has parts.
    pub fn of(system: &System) -> Option<Box<WholeJobs>> {
        let place = |task: TaskId| {
            let whole = system.whole(task);
            let tasks = || system.parts(whole).map(|part| (part, &system.tasks()[part]));
            let behind = tasks().filter(|(part, _)| *part > task);
            let behind = behind.fold([Time::ZERO; 2], |[wcet, bcet], (_, of)| [wcet + of.wcet, bcet + of.bcet]);
            let fastest = tasks().map(|(part, _)| system.machine().fastest(part)).max().unwrap_or(Speed::FULL);
            Place { whole, is_first: system.first_part(task) == task, behind, fastest }
        };
        let places = || system.task_ids().map(place).collect();
        system.has_parts().then(|| Box::new(WholeJobs { places: places(), open: HashMap::new() }))
    }

    /// Returns an observer of parts that tells `observer` about the whole jobs.
    pub fn told<O: Observer>(&mut self, observer: O) -> Told<'_, O> {
        Told { jobs: self, observer }
    }

    /// Returns the whole job that a part belongs to. One that began before this was there begins with the part.
    fn open(&mut self, part: &Job) -> &mut Open {
        let key = (self.places[part.task].whole, part.number);
        self.open.entry(key).or_insert_with(|| Open::new(part.release))
    }

    /// Returns the whole job in the state of its part.
    fn whole(&mut self, part: &Job) -> Job {
        let Place { whole, behind, fastest, is_first } = self.places[part.task];
        if is_first && whole == part.task {
            return *part;
        }
        let open = *self.open(part);
        let mut job = part.with_release(open.release).with_fastest(fastest).with_estimate(None);
        job.task = whole;
        job.wcet = open.wcet + part.wcet + behind[0];
        job.bcet = open.bcet + part.bcet + behind[1];
        job.executed = open.executed + part.executed;
        job
    }
}

/// Observer of parts; see [`WholeJobs::told`].
pub(crate) struct Told<'a, O> {
    jobs: &'a mut WholeJobs,
    observer: O,
}

impl<O: Observer> Observer for Told<'_, O> {
    fn released(&mut self, job: &Job) {
        if self.jobs.places[job.task].is_first {
            let whole = self.jobs.whole(job);
            self.observer.released(&whole);
        }
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        let whole = self.jobs.whole(job);
        self.observer.dispatched(core, &whole, now);
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        let whole = self.jobs.whole(job);
        self.observer.ran(core, &whole, start, end, speed);
    }

    fn passed_deadline(&mut self, job: &Job) {
        let whole = self.jobs.whole(job);
        let Place { whole: last, is_first, .. } = self.jobs.places[job.task];
        // All parts have the deadline of the whole, and each that comes after it is late again.
        let was_late = match is_first && last == job.task {
            true => false,
            false => std::mem::replace(&mut self.jobs.open(job).is_late, true),
        };
        if !was_late {
            self.observer.passed_deadline(&whole);
        }
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        let Place { whole, is_first, .. } = self.jobs.places[job.task];
        let is_last = whole == job.task;
        if is_first && is_last {
            return self.observer.left(job, first_start, end, now);
        }
        let as_whole = self.jobs.whole(job);
        let open = self.jobs.open(job);
        let (was_over, started) = (open.is_over, open.first_start.or(first_start));
        if end == End::Completed && !is_last {
            open.first_start = started;
            open.wcet += job.wcet;
            open.bcet += job.bcet;
            open.executed += job.executed;
            return;
        }
        open.is_over = true;
        if is_last {
            self.jobs.open.remove(&(whole, job.number));
        }
        if !was_over {
            self.observer.left(&as_whole, started, end, now);
        }
    }

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        let whole = self.jobs.whole(job);
        self.observer.held(resource, &whole, start, end);
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        let whole = self.jobs.whole(job);
        self.observer.blocked(resource, &whole, start, end);
    }
}
