//! The first half of a step: time advances to the next decision point. Running jobs do their work, and then
//! completions, deadlines and releases are processed in this order.

use temponet_task::{CoreId, Event, JobId, OnMiss, Speed, Time};

use super::{Engine, Hidden, MOST_READY, new_job};
use crate::metrics::End;
use crate::trace::{Observer, Unobserved};
use crate::workload::ReleasedJob;

impl Engine {
    /// Advances to the next decision point. Returns `false` at the end of the run.
    pub fn advance(&mut self, mut observer: &mut dyn Observer) -> bool {
        if observer.ignores_everything() {
            return self.advance_observed(&mut Unobserved);
        }
        let Some(mut jobs) = self.whole_jobs.take() else { return self.advance_observed(&mut observer) };
        let goes_on = self.advance_observed(&mut jobs.told(observer));
        self.whole_jobs = Some(jobs);
        goes_on
    }

    pub(super) fn advance_observed(&mut self, observer: &mut impl Observer) -> bool {
        loop {
            let next = self.next_instant().min(self.horizon);
            self.run_until(next);
            if self.next_completion == next {
                self.complete_jobs(observer);
            }
            let reached = self.next_point == next && self.reach_points(observer);
            self.pass_deadlines(observer);
            if next == self.horizon {
                return false;
            }
            // A burst that is too large is released in part; the rest follows after the next decision.
            while self.workload.next_time() == next && self.table.active().len() <= MOST_READY {
                let Some(release) = self.workload.pop() else { break };
                match self.waiting {
                    None => self.release(release, observer),
                    Some(_) => self.release_or_wait(release, observer),
                }
            }
            if self.waiting.is_some() {
                self.release_ripe(observer);
            }
            let asked = self.wake == next;
            if asked {
                self.wake = Time::NEVER;
            }
            if asked || reached || !self.events.is_empty() {
                return true;
            }
            if self.sections.is_some() {
                self.lock_resources(observer);
            }
        }
    }

    /// Returns the time of the next event: a completion, a preemption point, a lock or unlock, a release, a wake-up or
    /// the deadline of an active job.
    #[inline]
    fn next_instant(&mut self) -> Time {
        let next = self.next_completion.min(self.workload.next_time()).min(self.wake).min(self.next_point);
        let is_active = |job: JobId, generation| self.table.is(job, generation);
        self.deadlines.next(next, is_active).map_or(next, |deadline| next.min(deadline))
    }

    /// Advances the clock to `date` and adds the work of the running jobs. Overhead is paid before their own work.
    #[inline]
    fn run_until(&mut self, date: Time) {
        let elapsed = date - self.now;
        self.now = date;
        if elapsed == Time::ZERO {
            return;
        }
        for (running, core) in self.running.iter().zip(&self.cores) {
            let Some(id) = running else { continue };
            let job = &mut self.jobs[id.index()];
            let work = if core.speed == Speed::FULL {
                elapsed
            } else {
                let hidden = &mut self.hidden[id.index()];
                let thousandths = u128::from(elapsed.0) * u128::from(core.speed.0) + u128::from(hidden.fraction);
                hidden.fraction = (thousandths % 1000) as u32;
                Time((thousandths / 1000) as u64)
            };
            if job.overhead == Time::ZERO {
                job.executed += work;
            } else {
                let paid = job.overhead.min(work);
                job.overhead = job.overhead - paid;
                job.executed += work - paid;
            }
        }
    }

    /// Completes the running jobs that have no remaining work now.
    fn complete_jobs(&mut self, observer: &mut impl Observer) {
        for core in CoreId::all(self.cores.len()) {
            if self.cores[core].completion != self.now {
                continue;
            }
            if let Some(id) = self.running[core] {
                // The last partial nanosecond on a slow core rounds up.
                let job = &mut self.jobs[id.index()];
                job.executed = self.hidden[id.index()].execution;
                self.vacate(core, observer);
                self.leave(id, End::Completed, observer);
                self.events.push(Event::Completed(id));
            }
        }
        self.find_next_completion();
    }

    /// Applies the miss rule to every active job whose deadline is now.
    fn pass_deadlines(&mut self, observer: &mut impl Observer) {
        while let Some((id, generation)) = self.deadlines.pop_due(self.now) {
            if self.table.is(id, generation) {
                self.deadline_passed(id, observer);
            }
        }
    }

    /// Applies the miss rule to a job that is not complete at its deadline.
    fn deadline_passed(&mut self, id: JobId, observer: &mut impl Observer) {
        if self.known.on_miss() == OnMiss::Abort && self.remove(id, End::Aborted, observer) {
            self.events.push(Event::Aborted(id));
        } else {
            observer.passed_deadline(&self.jobs[id.index()]);
            self.events.push(Event::DeadlinePassed(id));
        }
    }

    /// Makes a released job active, under a reused or a new id.
    // Left to itself, the compiler calls it for each job, because jobs that wait are released elsewhere; a few percent
    // of a run.
    #[inline(always)]
    pub(super) fn release(&mut self, release: ReleasedJob, observer: &mut impl Observer) {
        let job = new_job(&release, &self.known);
        let hidden =
            Hidden { execution: release.execution, fraction: 0, assigned: 0, first_start: Time::NEVER, removal: None };
        let id = self.table.enter();
        if id.index() == self.jobs.len() {
            self.jobs.push(job);
            self.hidden.push(hidden);
        } else {
            self.jobs[id.index()] = job;
            self.hidden[id.index()] = hidden;
        }
        if self.sections.is_some() {
            self.enter_sections(id);
        }
        observer.released(&job);
        self.events.push(Event::Released(id));
        if release.deadline <= self.now {
            // Jitter or a predecessor delayed the release until the job's own deadline or later.
            self.deadline_passed(id, observer);
        } else {
            self.deadlines.add(release.deadline, id, self.table.generation(id));
        }
    }
}
