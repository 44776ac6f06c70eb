//! The second half of a step: a scheduler's decision is checked and carried out. Abandoned jobs leave, cores change
//! their jobs and speeds, and overheads are charged. An illegal decision ([`Assignment::check`]) is an error that names
//! the job or core.

use temponet_task::{Assignment, CoreId, JobId, Speed, Time};

use super::{Engine, SimError};
use crate::metrics::End;
use crate::trace::{Observer, Unobserved};

impl Engine {
    /// Carries out a decision: abandoned jobs leave, cores change their jobs and speeds, and overheads are charged.
    pub fn apply(&mut self, assignment: &Assignment, mut observer: &mut dyn Observer) -> Result<(), SimError> {
        if observer.ignores_everything() {
            return self.apply_observed(assignment, &mut Unobserved);
        }
        let Some(mut jobs) = self.whole_jobs.take() else { return self.apply_observed(assignment, &mut observer) };
        let applied = self.apply_observed(assignment, &mut jobs.told(observer));
        self.whole_jobs = Some(jobs);
        applied
    }

    pub(super) fn apply_observed(
        &mut self,
        assignment: &Assignment,
        observer: &mut impl Observer,
    ) -> Result<(), SimError> {
        if let Err(problem) = assignment.check(&self.view()) {
            let what = problem.named(&self.view());
            return Err(SimError::IllegalAssignment { time: self.now, what });
        }
        self.metrics.decisions += 1;
        if self.sections.is_some() {
            self.begin_sections();
        }
        for id in assignment.abandoned() {
            self.remove(*id, End::Abandoned, observer);
        }
        if self.note_moves(assignment) {
            self.reassign_cores(assignment, observer);
        }
        if assignment.has_speeds() || !self.all_full {
            // Cores with speeds of their own have none to choose from.
            if self.known.machine().is_full_speed() {
                self.change_speeds(assignment, observer);
            }
        }
        if self.costs.decision > Time::ZERO {
            self.charge_decision();
        }
        if self.is_limited {
            self.hold_cores();
        }
        self.wake = assignment.wake().unwrap_or(Time::NEVER);
        self.events.clear();
        self.table.forget_left();
        if self.sections.is_some() {
            // Jobs that leave here are events of the next decision.
            self.apply_sections(assignment, observer);
        }
        Ok(())
    }

    /// Marks the jobs that this decision moves to a core. Returns whether any core gets another job or none.
    #[inline]
    fn note_moves(&mut self, assignment: &Assignment) -> bool {
        let mut changes = false;
        for (id, running) in assignment.cores().iter().zip(&self.running) {
            if id != running {
                changes = true;
                if let Some(id) = id {
                    self.hidden[id.index()].assigned = self.metrics.decisions;
                }
            }
        }
        changes
    }

    /// Vacates the cores that get another job or none, then dispatches the new jobs.
    fn reassign_cores(&mut self, assignment: &Assignment, observer: &mut impl Observer) {
        for core in CoreId::all(self.cores.len()) {
            let Some(id) = self.running[core] else { continue };
            if assignment.cores()[core] != Some(id) {
                let moves = self.hidden[id.index()].assigned == self.metrics.decisions;
                self.metrics.preemptions += u64::from(!moves);
                self.vacate(core, observer);
            }
        }
        for core in CoreId::all(self.cores.len()) {
            let Some(id) = assignment.cores()[core] else { continue };
            // A held job that is abandoned stays on its core; one that could be cancelled has left.
            if self.running[core].is_none() && !assignment.abandoned().contains(&id) {
                self.dispatch(id, core);
                observer.dispatched(core, &self.jobs[id.index()], self.now);
            }
        }
        self.find_next_completion();
    }

    /// Sets the speed of every core. A running job starts a new slice if its core changes speed.
    fn change_speeds(&mut self, assignment: &Assignment, observer: &mut impl Observer) {
        self.all_full = true;
        for core in CoreId::all(self.cores.len()) {
            let speed = assignment.speed(core);
            self.all_full &= speed == Speed::FULL;
            let before = std::mem::replace(&mut self.cores[core].speed, speed);
            if let (true, Some(id)) = (before != speed, self.running[core]) {
                self.end_slice(core, id, before, observer);
                self.set_completion(core, id);
            }
        }
        self.find_next_completion();
    }

    /// Adds the decision overhead to the job on core 0, which takes the decisions, and to every job just dispatched.
    fn charge_decision(&mut self) {
        for core in CoreId::all(self.cores.len()) {
            let Some(id) = self.running[core] else { continue };
            if core == CoreId(0) || self.hidden[id.index()].assigned == self.metrics.decisions {
                self.jobs[id.index()].overhead += self.costs.decision;
                self.set_completion(core, id);
            }
        }
        self.find_next_completion();
    }

    /// Puts a ready job on an idle core and charges context switch and migration.
    fn dispatch(&mut self, id: JobId, core: CoreId) {
        let job = &mut self.jobs[id.index()];
        let hidden = &mut self.hidden[id.index()];
        if job.last_core.is_some_and(|last| last != core) {
            self.metrics.migrations += 1;
            job.overhead += self.costs.migration;
        }
        if self.cores[core].previous != Some((id, self.table.generation(id))) {
            job.overhead += self.costs.context_switch;
        }
        job.running = true;
        job.last_core = Some(core);
        hidden.first_start = hidden.first_start.min(self.now);
        self.running[core] = Some(id);
        self.cores[core].since = self.now;
        self.set_completion(core, id);
    }

    /// Computes when the job of a core will complete at the core's speed.
    pub(super) fn set_completion(&mut self, core: CoreId, id: JobId) {
        let job = &self.jobs[id.index()];
        let hidden = &self.hidden[id.index()];
        let work = hidden.execution.saturating_sub(job.executed) + job.overhead;
        self.cores[core].completion = self.now + self.time_for(core, id, work);
    }

    /// Returns the time that the job of a core takes for `work`, overhead included, at the core's speed.
    #[inline]
    pub(super) fn time_for(&self, core: CoreId, id: JobId, work: Time) -> Time {
        let (speed, fraction) = (self.cores[core].speed, self.hidden[id.index()].fraction);
        if speed == Speed::FULL && fraction == 0 {
            return work;
        }
        let thousandths = u128::from(work.0) * 1000 - u128::from(fraction);
        speed.time_for_thousandths(thousandths)
    }
}
