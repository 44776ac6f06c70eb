//! Limits on preemption: which jobs hold their cores, when they reach a preemption point, and removals that wait for
//! it.
//!
//! A job of a task with a limit holds its core from every decision that leaves it there to its next preemption point or
//! to its completion. At a point it is not held, and the scheduler decides. What cannot be interrupted cannot be
//! removed either: a held job that is abandoned, or that reaches its deadline under `abort`, leaves at its next point.
//! If it completes first, it has completed. A job that can be cancelled leaves at once.
//!
//! Most sets have no limits. The functions that only sets with limits call are kept out of the engine's hot loop.

use temponet_task::{CoreId, Event, JobId, Preemption, Time};

use super::Engine;
use crate::metrics::End;
use crate::trace::Observer;

impl Engine {
    /// Makes every running job of a limited task hold its core, and finds its next preemption point.
    #[cold]
    #[inline(never)]
    pub(super) fn hold_cores(&mut self) {
        for core in CoreId::all(self.cores.len()) {
            if let Some(id) = self.running[core] {
                let task = self.jobs[id.index()].task;
                self.jobs[id.index()].held = self.set.tasks()[task].preemption.is_limited();
            }
        }
        self.find_points();
    }

    /// Finds the next preemption point of every held job.
    #[cold]
    #[inline(never)]
    pub(super) fn find_points(&mut self) {
        for core in CoreId::all(self.cores.len()) {
            let held = self.running[core].filter(|id| self.jobs[id.index()].held);
            self.points[core] = held.map_or(Time::NEVER, |id| self.point(core, id));
        }
        self.find_next_point();
    }

    /// Returns the time at which a held job reaches its next preemption point, if it does not complete before or there.
    fn point(&self, core: CoreId, id: JobId) -> Time {
        let (job, hidden) = (&self.jobs[id.index()], &self.hidden[id.index()]);
        let work = self.set.tasks()[job.task].preemption.next_point(job.executed);
        if work >= hidden.execution {
            return Time::NEVER;
        }
        self.now + self.time_for(core, id, work - job.executed + job.overhead)
    }

    pub(super) fn find_next_point(&mut self) {
        let of_sections = self.sections.as_ref().map_or(Time::NEVER, |sections| sections.next_point(self.now));
        self.next_point = self.points.iter().copied().min().unwrap_or(Time::NEVER).min(of_sections);
    }

    /// Ends the hold of the jobs that reach a preemption point now. Those that are to be removed leave. Jobs that reach
    /// a lock or unlock take it. Returns whether the scheduler has to decide.
    #[cold]
    #[inline(never)]
    pub(super) fn reach_points(&mut self, observer: &mut impl Observer) -> bool {
        let mut decides = false;
        for core in CoreId::all(self.cores.len()) {
            if self.points[core] != self.now {
                continue;
            }
            self.points[core] = Time::NEVER;
            decides = true;
            let Some(id) = self.running[core] else { continue };
            self.jobs[id.index()].held = false;
            if let Some(end) = self.hidden[id.index()].removal {
                self.take_off_core(id, observer);
                self.leave(id, end, observer);
                self.events.push(Event::Aborted(id));
            }
        }
        if self.sections.is_some() {
            decides |= self.reach_sections(observer);
        }
        self.find_next_point();
        decides
    }

    /// Removes a job, or notes that it has to leave at its next preemption point if it is held and cannot be cancelled.
    /// Returns whether it has left.
    pub(super) fn remove(&mut self, id: JobId, end: End, observer: &mut impl Observer) -> bool {
        let job = &mut self.jobs[id.index()];
        if job.held && self.set.tasks()[job.task].preemption == Preemption::Cancel {
            job.held = false;
        }
        if job.held {
            self.hidden[id.index()].removal.get_or_insert(end);
            return false;
        }
        self.take_off_core(id, observer);
        self.leave(id, end, observer);
        true
    }
}
