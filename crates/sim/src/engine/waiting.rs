//! Precedence: jobs that have arrived and wait for the completion of others.
//!
//! A job of a task that follows others is released in the instant in which the last of its predecessors completes,
//! among the arrivals of that instant: by task index, then by number. If a predecessor leaves without completing, the
//! job is never released. It counts as missed at once, and so do the jobs that follow it.
//!
//! Most sets have no precedence. They have no [`Waiting`], and the functions here are kept out of the engine's hot
//! loop.

use std::collections::BTreeMap;

use temponet_task::{Job, JobId, OnMiss, Precedence, SystemView, Task, TaskId, Time};

use super::{Engine, new_job};
use crate::metrics::{End, Metrics};
use crate::trace::Observer;
use crate::workload::ReleasedJob;

/// Jobs that wait for others; whoever runs jobs says when they arrive and leave. `J` is what is known of a job.
#[derive(Clone)]
pub struct Waiting<J = ReleasedJob> {
    graph: Precedence,
    /// Number of predecessors of each task.
    needed: Vec<u32>,
    /// Jobs of each task by their number, from the first that a predecessor or the job itself has announced.
    jobs: Vec<BTreeMap<u64, WaitingJob<J>>>,
    /// Jobs that are to be released in this instant.
    ripe: Vec<J>,
    /// Tasks with parts; `None` if there are none.
    parts: Option<Parts>,
}

/// What counts of jobs with parts.
#[derive(Clone)]
struct Parts {
    /// The whole that begins with each task; `None` for parts that are not the first one.
    begins: Vec<Option<TaskId>>,
    /// Whether each task is a part of another one.
    is_part: Vec<bool>,
    /// Releases of the first parts of jobs that have not ended, by whole task and number.
    begun: BTreeMap<(TaskId, u64), Time>,
}

impl Parts {
    fn of(tasks: &[Task]) -> Option<Parts> {
        let is_part: Vec<bool> = tasks.iter().map(|task| task.is_part).collect();
        let mut begins = vec![None; tasks.len()];
        let mut first = 0;
        for whole in TaskId::all(tasks.len()).filter(|task| !is_part[task.index()]) {
            begins[first] = Some(whole).filter(|whole| whole.index() > first);
            first = whole.index() + 1;
        }
        is_part.contains(&true).then(|| Parts { begins, is_part, begun: BTreeMap::new() })
    }
}

#[derive(Clone, Copy)]
struct WaitingJob<J> {
    /// The job; `None` before its arrival and once it is released or lost.
    arrived: Option<J>,
    /// Predecessors that have completed.
    done: u32,
    /// Predecessors that have left without completing, or that are lost themselves.
    lost: u32,
    /// Whether the job has been released or is lost.
    is_settled: bool,
}

impl<J> Default for WaitingJob<J> {
    fn default() -> WaitingJob<J> {
        WaitingJob { arrived: None, done: 0, lost: 0, is_settled: false }
    }
}

impl Waiting {
    /// Returns the state at a decision point, as far as an online scheduler knows it; `None` if no task follows
    /// another. `next` is the number of each task's next arrival; `delayed` are jobs that have arrived and are not
    /// released yet; `job` draws a waiting job by task, number and arrival.
    ///
    /// What waits follows from the active and the delayed jobs: everything behind them. A predecessor that has left is
    /// taken to have completed.
    pub(crate) fn resumed(
        tasks: &[Task],
        view: &SystemView<'_>,
        delayed: &[ReleasedJob],
        next: &[u64],
        mut job: impl FnMut(TaskId, u64, Time) -> ReleasedJob,
    ) -> Option<Box<Waiting>> {
        let mut waiting = Waiting::of(tasks)?;
        // Arrival of every job that is active or delayed, or waits behind such a one.
        let mut open: Vec<BTreeMap<u64, Time>> = vec![BTreeMap::new(); tasks.len()];
        for (_, active) in view.ready() {
            let arrival = active.deadline.saturating_sub(tasks[active.task].deadline);
            open[active.task].insert(active.number, arrival);
        }
        for release in delayed {
            let arrival = release.deadline.saturating_sub(tasks[release.task].deadline);
            open[release.task].insert(release.number, arrival);
        }
        for at in 0..tasks.len() {
            let index = waiting.graph.order()[at];
            if tasks[index].after.is_empty() {
                continue;
            }
            let mut behind: BTreeMap<u64, (u32, Time)> = BTreeMap::new();
            for before in &tasks[index].after {
                for (number, arrival) in &open[*before] {
                    let (missing, latest) = behind.entry(*number).or_default();
                    (*missing, *latest) = (*missing + 1, (*latest).max(*arrival));
                }
            }
            // Jobs that have not arrived and some of whose predecessors have completed.
            let ahead = tasks[index].after.iter().map(|before| next[*before]).max().unwrap_or(0);
            for number in next[index]..ahead.min(next[index].saturating_add(MOST_AHEAD)) {
                behind.entry(number).or_default();
            }
            for (number, (missing, arrival)) in behind {
                let to_come = tasks[index].after.iter().filter(|before| next[**before] <= number).count() as u32;
                let done = waiting.needed[index].saturating_sub(missing + to_come);
                let has_arrived = number < next[index];
                let arrived = has_arrived.then(|| job(index, number, arrival));
                waiting.jobs[index].insert(number, WaitingJob { arrived, done, ..WaitingJob::default() });
                if has_arrived {
                    open[index].insert(number, arrival);
                }
            }
        }
        Some(waiting)
    }

    /// Adds a job that leaves to the metrics if its deadline is within the horizon. A part of a job does not count; a
    /// whole job counts from the release of its first part.
    pub(crate) fn record(&mut self, metrics: &mut Metrics, job: &Job, end: End, now: Time, horizon: Time) {
        let begun = match &mut self.parts {
            Some(parts) if parts.is_part[job.task.index()] => return,
            Some(parts) => parts.begun.remove(&(job.task, job.number)),
            None => None,
        };
        if job.deadline > horizon {
            return;
        }
        metrics.unreleased += u64::from(end == End::Unreleased && begun.is_none());
        match begun {
            Some(begun) => metrics.record(&job.with_release(begun), end, now),
            None => metrics.record(job, end, now),
        }
    }
}

impl<J: Clone> Waiting<J> {
    /// Returns the state at the beginning of a run; `None` if no task follows another.
    pub fn of(tasks: &[Task]) -> Option<Box<Waiting<J>>> {
        let graph = Precedence::of(tasks).ok().flatten()?;
        let needed = tasks.iter().map(|task| task.after.len() as u32).collect();
        let (jobs, ripe, parts) = (vec![BTreeMap::new(); tasks.len()], Vec::new(), Parts::of(tasks));
        Some(Box::new(Waiting { graph, needed, jobs, ripe, parts }))
    }

    /// Takes a job that has arrived, with its task and its number there. Jobs that are never released are added to
    /// `lost`.
    pub fn arrive(&mut self, task: TaskId, number: u64, job: J, lost: &mut Vec<J>) {
        if self.needed[task] == 0 {
            return self.ripe.push(job);
        }
        self.jobs[task].entry(number).or_default().arrived = Some(job);
        self.settle(task, number, lost);
    }

    /// Takes note that a job has left. Jobs that are never released because of that are added to `lost`.
    pub fn left(&mut self, task: TaskId, number: u64, has_completed: bool, lost: &mut Vec<J>) {
        for at in 0..self.graph.successors(task).len() {
            let next = self.graph.successors(task)[at];
            let job = self.jobs[next].entry(number).or_default();
            match has_completed {
                true => job.done += 1,
                false => job.lost += 1,
            }
            self.settle(next, number, lost);
        }
    }

    /// Releases or loses a job if that is decided, and forgets it once nothing more will be reported of it.
    fn settle(&mut self, task: TaskId, number: u64, lost: &mut Vec<J>) {
        let needed = self.needed[task];
        let Some(job) = self.jobs[task].get_mut(&number) else { return };
        let (is_lost, is_ripe) = (job.lost > 0, job.done == needed);
        let settled = if !job.is_settled && (is_lost || is_ripe) { job.arrived.take() } else { None };
        job.is_settled |= settled.is_some();
        if job.is_settled && job.done + job.lost == needed {
            self.jobs[task].remove(&number);
        }
        match settled {
            Some(release) if is_lost => {
                lost.push(release);
                self.left(task, number, false, lost);
            }
            Some(release) => self.ripe.push(release),
            None => {}
        }
    }

    /// Jobs that are to be released now: those whose predecessors have all completed, in no particular order. Whoever
    /// releases them takes them out.
    pub fn ripe(&mut self) -> &mut Vec<J> {
        &mut self.ripe
    }

    /// Removes and returns the jobs that have arrived and have not been released, in no particular order.
    pub fn rest(&mut self) -> Vec<J> {
        let waiting = self.jobs.iter_mut().flat_map(std::mem::take).filter_map(|(_, job)| job.arrived);
        self.ripe.drain(..).chain(waiting).collect()
    }
}

/// Largest number of coming jobs of a task for which the predecessors are looked at.
const MOST_AHEAD: u64 = 1_000;

impl Engine {
    /// Lets an arriving job be released in this instant, or wait for its predecessors.
    #[cold]
    #[inline(never)]
    pub(super) fn release_or_wait(&mut self, release: ReleasedJob, observer: &mut impl Observer) {
        let mut lost = Vec::new();
        match &mut self.waiting {
            Some(waiting) => waiting.arrive(release.task, release.number, release, &mut lost),
            None => self.release(release, observer),
        }
        self.lose(lost, observer);
    }

    /// Releases the jobs of this instant, by task and number: those that arrive, and those whose predecessors have
    /// completed.
    #[cold]
    #[inline(never)]
    pub(super) fn release_ripe(&mut self, observer: &mut impl Observer) {
        let Some(waiting) = &mut self.waiting else { return };
        let mut ripe = std::mem::take(&mut waiting.ripe);
        ripe.sort_by_key(|release| (release.task, release.number));
        if let Some(parts) = &mut waiting.parts {
            for release in &ripe {
                if let Some(whole) = parts.begins[release.task.index()] {
                    parts.begun.insert((whole, release.number), self.now);
                }
            }
        }
        for release in ripe.drain(..) {
            self.release(ReleasedJob { time: self.now, ..release }, observer);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.ripe = ripe;
        }
    }

    /// Tells the jobs that wait for a job that it has left.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_followers(&mut self, id: JobId, end: End, observer: &mut impl Observer) {
        let job = &self.jobs[id.index()];
        let mut lost = Vec::new();
        if let Some(waiting) = &mut self.waiting {
            waiting.left(job.task, job.number, end == End::Completed, &mut lost);
        }
        self.lose(lost, observer);
    }

    /// Counts jobs that are never released.
    fn lose(&mut self, lost: Vec<ReleasedJob>, observer: &mut impl Observer) {
        for release in lost {
            let job = new_job(&release, &self.known);
            // Where late jobs are removed, this one would not have outlasted its deadline.
            let removes = self.known.on_miss() == OnMiss::Abort;
            let end = if removes { self.now.min(job.deadline) } else { self.now };
            if let Some(waiting) = &mut self.waiting {
                waiting.record(&mut self.metrics, &job, End::Unreleased, end, self.horizon);
            }
            observer.left(&job, None, End::Unreleased, self.now);
        }
    }

    /// Counts the jobs that wait at the end of the run.
    pub(super) fn count_waiting(&mut self, observer: &mut impl Observer) {
        let mut rest = self.waiting.as_mut().map(|waiting| waiting.rest()).unwrap_or_default();
        rest.sort_by_key(|release| (release.task, release.number));
        for release in rest {
            let job = new_job(&release, &self.known);
            if let Some(waiting) = &mut self.waiting {
                waiting.record(&mut self.metrics, &job, End::Unfinished, self.now, self.horizon);
            }
            observer.left(&job, None, End::Unfinished, self.now);
        }
    }
}
