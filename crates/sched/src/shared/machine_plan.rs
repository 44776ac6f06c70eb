//! List schedules on cores that differ in speed or that some tasks may not use.
//!
//! In deadline order, each job goes to the core on which it completes first, among those that its task may use; ties go
//! to the lower core. There are no bounds and no kept states as for identical cores: leaving a job out may delay
//! another one, so the whole schedule is computed anew. That is why fewer jobs are planned ([`MOST_PLANNED_BY_CORE`]).

use temponet_task::{CoreId, CoreSet, Machine, System, Time};

use crate::shared::planned_jobs::PlannedJob;

/// Maximum number of jobs that one decision plans with where cores differ.
pub(crate) const MOST_PLANNED_BY_CORE: usize = 256;

/// A machine whose cores differ, as planning sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachinePlan {
    machine: Machine,
    /// Cores that each task may use.
    allowed: Vec<CoreSet>,
    /// Date at which each core becomes free.
    free_at: Vec<Time>,
}

impl MachinePlan {
    /// Takes the machine of a system, if it is another one than before.
    pub fn look(&mut self, system: &System) {
        let is_same = |(known, task): (&CoreSet, &temponet_task::Task)| *known == task.cores;
        let same_tasks =
            self.allowed.len() == system.tasks().len() && self.allowed.iter().zip(system.tasks()).all(is_same);
        if !same_tasks || self.machine != *system.machine() || self.free_at.len() != system.cores() {
            self.machine = system.machine().clone();
            self.allowed = system.tasks().iter().map(|task| task.cores.clone()).collect();
            self.free_at = vec![Time::ZERO; system.cores()];
        }
    }

    /// Returns the first accepted job that is late in the list schedule from `now` on, and its tardiness.
    pub fn first_late(&mut self, jobs: &[PlannedJob], now: Time) -> Option<(usize, Time)> {
        self.free_at.fill(now);
        for (place, job) in jobs.iter().enumerate().filter(|(_, job)| job.accepted) {
            let completion = self.add(job);
            if completion > job.deadline {
                return Some((place, completion - job.deadline));
            }
        }
        None
    }

    /// Accepts the jobs at these places one by one, each if all accepted ones are then on time.
    pub fn accept_each(&mut self, jobs: &mut [PlannedJob], places: &[usize], now: Time) {
        for place in places {
            jobs[*place].accepted = true;
            jobs[*place].accepted = self.first_late(jobs, now).is_none();
        }
    }

    /// Moore and Hodgson's rule: jobs are added in deadline order, and as long as one is late, the accepted one with
    /// the greatest key is dropped; among equal keys the last.
    pub fn drop_worst(&mut self, jobs: &mut [PlannedJob], now: Time, key: impl Fn(&PlannedJob) -> u64) {
        for last in 0..jobs.len() {
            jobs[last].accepted = true;
            while self.first_late(&jobs[..=last], now).is_some() {
                let accepted = jobs[..=last].iter().enumerate().filter(|(_, job)| job.accepted);
                let Some((worst, _)) = accepted.max_by_key(|(place, job)| (key(job), *place)) else { break };
                jobs[worst].accepted = false;
            }
        }
    }

    /// Puts a job on the core on which it completes first. Returns its completion.
    fn add(&mut self, job: &PlannedJob) -> Time {
        let task = job.tie.1;
        let work = self.machine.fastest(task).work_in(job.remaining);
        let completion = |core: CoreId| self.free_at[core] + self.machine.speed(core).time_for(work);
        let may_use = |core: &CoreId| self.allowed.get(task.index()).is_none_or(|cores| cores.contains(*core));
        let first = CoreId::all(self.free_at.len()).filter(may_use).map(|core| (completion(core), core)).min();
        let Some((completion, core)) = first else { return Time::NEVER };
        self.free_at[core] = completion;
        completion
    }
}
