//! Critical sections: when running jobs lock and unlock, and which jobs lose their core because another one holds what
//! they want.
//!
//! A job unlocks in the instant in which its work reaches the end of a section, or in which it leaves. It locks when it
//! goes on: after the decision of the instant in which its work reaches a section, if it has a core then. One that
//! wants what another job holds gives up its core at once, even where its task limits preemption, and the scheduler
//! decides. It also decides when a job no longer has to wait. A lock that succeeds is no decision point.
//!
//! Most sets have no critical sections. They have no [`Sections`], and the functions here are kept out of the engine's
//! hot loop.

use temponet_task::{Assignment, CoreId, Event, JobId, Locks, ResourceId, System, Time};

use super::Engine;
use crate::trace::Observer;

/// State of the critical sections in a run.
#[derive(Clone)]
pub(super) struct Sections {
    pub locks: Locks,
    /// Next lock or unlock of the job on each core; [`Time::NEVER`] without one.
    points: Vec<Time>,
    /// Whether the scheduler has to decide once more in this instant.
    decides_again: bool,
    /// By resource: time since which it is held.
    held_since: Vec<Time>,
    /// By job id.
    waits: Vec<Waited>,
}

/// How long a job has waited.
#[derive(Clone, Copy)]
struct Waited {
    /// Time since which the job waits, [`Time::NEVER`] if it does not, and the resource that it waits for.
    since: Time,
    resource: ResourceId,
    /// Time for which it waited before.
    total: Time,
}

const NOT_WAITED: Waited = Waited { since: Time::NEVER, resource: ResourceId(0), total: Time::ZERO };

impl Sections {
    /// Returns the state at the beginning of a run; `None` if no task has critical sections.
    pub fn of(system: &System) -> Option<Box<Sections>> {
        Locks::of(system).map(|locks| Sections::resumed(locks, system.cores(), 0, Time::ZERO))
    }

    /// Returns the state of a run that continues with these locks and up to this many job ids.
    pub fn resumed(locks: Locks, cores: usize, ids: usize, now: Time) -> Box<Sections> {
        Box::new(Sections {
            points: vec![Time::NEVER; cores],
            decides_again: false,
            held_since: vec![now; locks.resources()],
            waits: vec![NOT_WAITED; ids],
            locks,
        })
    }

    /// Returns the next time at which something has to be done.
    pub fn next_point(&self, now: Time) -> Time {
        if self.decides_again { now } else { self.points.iter().copied().min().unwrap_or(Time::NEVER) }
    }

    /// Notes that a job waits from now on.
    fn begin_wait(&mut self, id: JobId, now: Time) {
        let waited = &mut self.waits[id.index()];
        if let (Some((resource, _)), Time::NEVER) = (self.locks.blocker(id), waited.since) {
            (waited.since, waited.resource) = (now, resource);
        }
    }
}

impl Engine {
    /// Takes a job that is released.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_sections(&mut self, id: JobId) {
        let Some(sections) = &mut self.sections else { return };
        if id.index() >= sections.waits.len() {
            sections.waits.resize(id.index() + 1, NOT_WAITED);
        }
        sections.waits[id.index()] = NOT_WAITED;
        sections.locks.enter(id, &self.jobs[id.index()]);
    }

    /// Releases what a job holds that leaves, and counts how long it has waited.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_sections(&mut self, id: JobId, observer: &mut impl Observer) {
        self.end_wait(id, observer);
        let Some(sections) = &mut self.sections else { return };
        let job = &self.jobs[id.index()];
        let (now, since) = (self.now, &sections.held_since);
        sections.locks.leave(id, |resource| observer.held(resource, job, since[resource], now));
        let total = sections.waits[id.index()].total;
        if job.deadline <= self.horizon {
            self.metrics.record_blocked(job, total);
        }
        self.update_locks(observer);
    }

    /// Ends the wait of a job.
    fn end_wait(&mut self, id: JobId, observer: &mut impl Observer) {
        let Some(sections) = &mut self.sections else { return };
        let waited = &mut sections.waits[id.index()];
        let since = std::mem::replace(&mut waited.since, Time::NEVER);
        if since != Time::NEVER {
            waited.total += self.now - since;
            observer.blocked(waited.resource, &self.jobs[id.index()], since, self.now);
        }
    }

    /// Finds out anew who waits. The scheduler has to decide if a job no longer does.
    fn update_locks(&mut self, observer: &mut impl Observer) {
        let mut freed = Vec::new();
        if let Some(sections) = &mut self.sections {
            sections.decides_again |= sections.locks.update(self.table.active(), &self.jobs, |id| freed.push(id));
        }
        freed.into_iter().for_each(|id| self.end_wait(id, observer));
    }

    /// Takes the locks and unlocks that running jobs come to now. Returns whether the scheduler has to decide.
    #[cold]
    #[inline(never)]
    pub(super) fn reach_sections(&mut self, observer: &mut impl Observer) -> bool {
        for core in CoreId::all(self.cores.len()) {
            let (Some(sections), Some(id)) = (&mut self.sections, self.running[core]) else { continue };
            if sections.points[core] != self.now {
                continue;
            }
            sections.points[core] = Time::NEVER;
            let (job, now, since) = (&self.jobs[id.index()], self.now, &sections.held_since);
            sections.locks.advance(id, job, |resource| observer.held(resource, job, since[resource], now));
        }
        self.update_locks(observer);
        self.stop_blocked(observer);
        self.sections.as_mut().is_some_and(|sections| std::mem::take(&mut sections.decides_again))
    }

    /// Takes jobs off their cores that want what others hold.
    fn stop_blocked(&mut self, observer: &mut impl Observer) {
        let mut removed = Vec::new();
        for core in CoreId::all(self.cores.len()) {
            let (Some(sections), Some(id)) = (&mut self.sections, self.running[core]) else { continue };
            if !sections.locks.is_blocked(id) {
                continue;
            }
            sections.decides_again = true;
            sections.begin_wait(id, self.now);
            (self.jobs[id.index()].held, self.points[core]) = (false, Time::NEVER);
            self.take_off_core(id, observer);
            removed.extend(self.hidden[id.index()].removal.map(|end| (id, end)));
        }
        // What waited for a preemption point need not wait any longer.
        for (id, end) in removed {
            self.leave(id, end, observer);
            self.events.push(Event::Aborted(id));
        }
    }

    /// Lets running jobs lock what they want, core by core, and finds their next points. One that comes too late gives
    /// up its core.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_resources(&mut self, observer: &mut impl Observer) {
        let mut is_changed = false;
        for core in CoreId::all(self.cores.len()) {
            let (Some(sections), Some(id)) = (&mut self.sections, self.running[core]) else { continue };
            if !sections.locks.wants_any(id) {
                continue;
            }
            let (job, now, since) = (&self.jobs[id.index()], self.now, &mut sections.held_since);
            sections.locks.take(id, job, |resource, locked| match locked {
                true => since[resource] = now,
                false => observer.held(resource, job, since[resource], now),
            });
            is_changed = true;
        }
        if is_changed {
            self.update_locks(observer);
            self.stop_blocked(observer);
        }
        self.find_section_points();
    }

    /// Finds the next lock or unlock of every running job.
    pub(super) fn find_section_points(&mut self) {
        for core in CoreId::all(self.cores.len()) {
            let point = self.running[core].map_or(Time::NEVER, |id| self.section_point(core, id));
            if let Some(sections) = &mut self.sections {
                sections.points[core] = point;
            }
        }
        self.find_next_point();
    }

    /// Returns the time at which the job of a core reaches its next lock or unlock, if it does not complete before or
    /// there.
    fn section_point(&self, core: CoreId, id: JobId) -> Time {
        let (job, hidden) = (&self.jobs[id.index()], &self.hidden[id.index()]);
        let work = self.sections.as_ref().and_then(|sections| sections.locks.next_work(id, job));
        match work {
            Some(work) if work < hidden.execution && work > job.executed => {
                self.now + self.time_for(core, id, work - job.executed + job.overhead)
            }
            _ => Time::NEVER,
        }
    }

    /// Begins a decision: what asked for it is done with.
    pub(super) fn begin_sections(&mut self) {
        if let Some(sections) = &mut self.sections {
            sections.decides_again = false;
        }
    }

    /// Carries out the part of a decision that is about resources.
    #[cold]
    #[inline(never)]
    pub(super) fn apply_sections(&mut self, assignment: &Assignment, observer: &mut impl Observer) {
        if let Some(sections) = &mut self.sections {
            assignment
                .passed_over()
                .iter()
                .filter(|id| self.table.is_active(**id))
                .for_each(|id| sections.begin_wait(*id, self.now));
        }
        self.lock_resources(observer);
    }

    /// Ends the sections and waits of the jobs that are active at the horizon.
    pub(super) fn finish_sections(&mut self, observer: &mut impl Observer) {
        for id in self.table.active().to_vec() {
            self.leave_sections(id, observer);
        }
    }
}
