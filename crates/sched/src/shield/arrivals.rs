//! The jobs that are guaranteed, and the earliest arrivals to come.
//!
//! A job is guaranteed from its release if it comes no earlier and no later than its task says and announces no longer
//! wcet, until it has used up its budget. A job that comes too early or takes too long loses only its own guarantee: it
//! is served like the jobs of other tasks, and the time that is kept for its task stays as it was.
//!
//! A job that announces a longer wcet, as in a mode with more work, would use up its budget and then often be late all
//! the same. In such an overload, time spent on its budget is lost to jobs that can complete.

use temponet_task::{Arrival, CoreId, Event, Job, JobId, System, SystemView, TaskId, Tie, Time};

use super::guarantee::{Guarantee, Reserved};
use crate::shared::ranked::Ranked;

/// The guaranteed jobs, and the arrivals of every guaranteed task.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// For each task, a date before which none of its unreleased jobs arrives.
    next: Vec<Time>,
    /// For each task, the number of guaranteed jobs of its last arrival.
    together: Vec<u32>,
    /// For each task, a date from which on no job arrives.
    until: Vec<Time>,
    /// Largest factor by which a mode lengthens relative deadlines.
    stretch: f64,
    /// State of each job, by its id.
    jobs: Vec<Cover>,
    /// The guaranteed jobs of each core in the order of their deadlines.
    ready: Vec<Ranked<Time>>,
    /// Core and tie-break of each guaranteed job, by its id.
    places: Vec<Option<(CoreId, Tie)>>,
    /// Number of active jobs of guaranteed tasks that are not guaranteed.
    uncovered: usize,
}

/// Whether a job is guaranteed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cover {
    /// Its task is not guaranteed, or the job has left.
    #[default]
    None,
    Guaranteed,
    /// The job has lost its guarantee.
    Lost,
}

/// What happened to the guarantee since the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Number of jobs that lost their guarantee.
    pub jobs: u64,
    /// Whether arrivals have left the pattern that the proof relies on. This cannot be undone.
    pub breaks_pattern: bool,
}

impl Arrivals {
    pub fn start(&mut self, system: &System) {
        self.next.clear();
        self.next.extend(system.tasks().iter().map(|task| task.offset));
        self.together.clear();
        self.together.resize(system.tasks().len(), 0);
        self.until.clear();
        self.until.extend(system.tasks().iter().map(|task| match task.arrival {
            Arrival::Burst { until, .. } => until,
            _ => Time::NEVER,
        }));
        self.stretch = system.stretch();
        self.jobs.clear();
        self.places.clear();
        // Ids of jobs that have just left are not free yet.
        self.jobs.reserve(2 * system.tasks().len());
        self.places.reserve(2 * system.tasks().len());
        self.ready.resize_with(system.cores(), Ranked::new);
        for ready in &mut self.ready {
            ready.clear();
            ready.reserve(2 * system.tasks().len());
        }
        self.uncovered = 0;
    }

    /// Records the events since the last decision.
    pub fn observe(&mut self, view: &SystemView<'_>, guarantee: &Guarantee) -> Losses {
        let mut losses = Losses::default();
        for event in view.events {
            let id = event.job();
            let Some(job) = view.jobs.get(id.index()) else { continue };
            let Some(task) = guarantee.of(job) else { continue };
            match *event {
                Event::Released(_) => {
                    let (is_admitted, is_expected) = self.admit(view.now, job, task);
                    losses.breaks_pattern |= guarantee.is_exact && !is_expected;
                    self.cover(id, if is_admitted { Cover::Guaranteed } else { Cover::Lost }, &mut losses);
                    if is_admitted && task.core.index() < self.ready.len() {
                        self.places[id.index()] = Some((task.core, job.tie()));
                        self.ready[task.core].insert(task.due(job), job, id);
                    }
                }
                Event::Completed(_) => {
                    if job.executed > task.budget {
                        self.lose(id, &mut losses);
                    }
                    self.left(id);
                }
                Event::DeadlinePassed(_) => self.lose(id, &mut losses),
                Event::Aborted(_) => {
                    self.lose(id, &mut losses);
                    self.left(id);
                }
                _ => {}
            }
        }
        // A job that has used up its budget was on a core until now.
        for id in view.running.iter().flatten() {
            let Some(job) = view.jobs.get(id.index()) else { continue };
            if guarantee.of(job).is_some_and(|task| job.executed >= task.budget) {
                self.lose(*id, &mut losses);
            }
        }
        losses
    }

    /// Records the release of a job. Returns whether the job is guaranteed: it comes no earlier than its task allows
    /// and announces no more work. Also returns whether it arrives exactly where the periodic pattern of its task has
    /// an arrival.
    fn admit(&mut self, now: Time, job: &Job, task: &Reserved) -> (bool, bool) {
        let until = self.until[job.task];
        let (next, together) = (&mut self.next[job.task], &mut self.together[job.task]);
        // A job with a later deadline than its task promises may have arrived at its release.
        let latest = job.deadline.saturating_sub(task.deadline).min(job.release);
        // In a mode that lengthens deadlines, it may have arrived before. Whole nanoseconds are rounded, so one is
        // added.
        let longer = Time((task.deadline.0 as f64 * self.stretch) as u64 + 1);
        let stretched = if self.stretch > 1.0 { longer } else { task.deadline };
        let earliest = job.deadline.saturating_sub(stretched).min(latest).max(now.saturating_sub(task.jitter));
        let last = next.saturating_sub(task.period);
        let is_of_last = *together > 0 && *together < task.jobs && earliest <= last && last <= latest;
        // The earliest arrival that agrees with those before leaves the most room for those to come.
        let arrival = if is_of_last { last } else { earliest.max(*next) };
        let is_in_time = latest + task.deadline <= job.deadline && earliest <= latest && arrival < until;
        // A pattern of which jobs are left out is as schedulable as the whole.
        let is_in_phase = latest >= *next && (latest - *next).0.is_multiple_of(task.period.0.max(1));
        let is_expected = latest + task.deadline == job.deadline && (is_in_phase || is_of_last);
        let is_one_to_come = is_in_time && arrival <= latest;
        if is_one_to_come {
            *together = if is_of_last { *together + 1 } else { 1 };
            *next = arrival + task.period;
        }
        (is_one_to_come && job.wcet <= task.budget, is_expected)
    }

    fn cover(&mut self, id: JobId, cover: Cover, losses: &mut Losses) {
        if id.index() >= self.jobs.len() {
            self.jobs.resize(id.index() + 1, Cover::None);
            self.places.resize(id.index() + 1, None);
        }
        self.left(id);
        self.jobs[id.index()] = cover;
        if cover == Cover::Lost {
            self.uncovered += 1;
            losses.jobs += 1;
        }
    }

    fn lose(&mut self, id: JobId, losses: &mut Losses) {
        if self.is_guaranteed(id) {
            self.cover(id, Cover::Lost, losses);
        }
    }

    /// Forgets a job that has left.
    pub fn left(&mut self, id: JobId) {
        let Some(cover) = self.jobs.get_mut(id.index()) else { return };
        if std::mem::take(cover) == Cover::Lost {
            self.uncovered -= 1;
        }
        if let Some((core, tie)) = self.places[id.index()].take() {
            self.ready[core].remove_tied(tie, id);
        }
    }

    /// Whether the job is guaranteed at present.
    pub fn is_guaranteed(&self, id: JobId) -> bool {
        self.jobs.get(id.index()) == Some(&Cover::Guaranteed)
    }

    /// The guaranteed jobs of a core, by deadline and tie-break.
    pub fn ready(&self, core: CoreId) -> &Ranked<Time> {
        &self.ready[core]
    }

    /// Whether every active job of a guaranteed task is guaranteed.
    pub fn is_complete(&self) -> bool {
        self.uncovered == 0
    }

    /// Earliest arrival of an unreleased job of the task; none if there will be no such job. Jobs that arrived longer
    /// ago than the jitter have been released.
    pub fn next_arrival(&self, now: Time, id: TaskId, task: &Reserved) -> Option<Time> {
        let arrival = self.next[id].max(now.saturating_sub(task.jitter));
        Some(arrival).filter(|arrival| *arrival < self.until[id])
    }
}
