//! Which assignments can be carried out. The simulator, [`crate::ReadyJobs`] and the shield ask the same question here.
//!
//! A core that keeps its job needs no check, and most decisions change one core or none.

use alloc::{format, string::String};

use crate::{Assignment, CoreId, JobId, Speed, SystemView, Time};

/// What is wrong with an [`Assignment`]. Jobs are named by their ids; [`AssignmentProblem::named`] has the names of
/// tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssignmentProblem {
    /// The assignment is for another number of cores.
    #[error("it has {0} cores")]
    Cores(usize),
    /// A core has a job that is not ready: no ready job has this id.
    #[error("no ready job has the id {}", .0.0)]
    UnknownJob(JobId),
    /// A job is given up that is not ready: no ready job has this id.
    #[error("no ready job has the id {}", .0.0)]
    UnknownGivenUp(JobId),
    /// A job is on two cores.
    #[error("the job with the id {} is on two cores", .0.0)]
    TwoCores(JobId),
    /// A job is given up and put on a core, or given up twice.
    #[error("the job with the id {} is given up and used", .0.0)]
    GivenUp(JobId),
    /// A job is taken off the core that it holds until its next preemption point.
    #[error("the job with the id {} is taken off the core that it holds", .0.0)]
    Held(JobId),
    /// A job is put on a core that its task may not use.
    #[error("the job with the id {} is put on core {core}, which its task may not use", .job.0)]
    Forbidden {
        /// The job.
        job: JobId,
        /// The core.
        core: CoreId,
    },
    /// A job is put on a core although it waits for a resource that another one holds.
    #[error("the job with the id {} is put on a core, but it waits for a resource", .0.0)]
    Blocked(JobId),
    /// A core does not have this speed.
    #[error("no core has the speed {}/1000", .speed.0)]
    Speed {
        /// The core.
        core: CoreId,
        /// The speed that it is set to.
        speed: Speed,
    },
    /// A decision is asked for at a date that is not in the future.
    #[error("a decision is asked for at {0}, which is not in the future")]
    Wake(Time),
}

impl AssignmentProblem {
    /// Returns the problem in words, with the names of tasks, cores and resources. `view` is the one that the
    /// assignment was made for.
    pub fn named(self, view: &SystemView<'_>) -> String {
        let missing = |id: JobId, action: &str| match view.jobs.get(id.index()) {
            Some(_) => format!("{} {action} after it left", view.job_name(id)),
            None => format!("unknown job id {} {action}", id.0),
        };
        match self {
            AssignmentProblem::Cores(given) => format!("{given} cores assigned where there are {}", view.cores()),
            AssignmentProblem::UnknownJob(id) | AssignmentProblem::GivenUp(id) => missing(id, "put on a core"),
            AssignmentProblem::UnknownGivenUp(id) => missing(id, "given up"),
            AssignmentProblem::TwoCores(id) => format!("{} put on two cores", view.job_name(id)),
            AssignmentProblem::Held(id) => {
                let (job, core) = (view.job_name(id), view.job(id).last_core.unwrap_or_default());
                format!("{job} taken off core {core}, which it holds until it can be preempted")
            }
            AssignmentProblem::Forbidden { job, core } => {
                let (job, core) = (view.job_name(job), view.system.core_name(core));
                format!("{job} put on {core}, which its task may not use")
            }
            AssignmentProblem::Blocked(id) => {
                let job = view.job_name(id);
                match view.locks.and_then(|locks| locks.blocker(id)) {
                    Some((resource, holder)) => {
                        let (resource, holder) = (&view.system.resources()[resource], view.job_name(holder));
                        format!("{job} put on a core, but it waits for {resource:?}, which {holder} holds")
                    }
                    None => format!("{job} put on a core, but it waits for a resource"),
                }
            }
            AssignmentProblem::Speed { core, speed } => {
                format!("core {core} set to {}/1000 of full speed, which it does not have", speed.0)
            }
            AssignmentProblem::Wake(date) => format!("a wake-up asked for at {date}, which is not in the future"),
        }
    }
}

impl Assignment {
    /// Checks whether the assignment can be carried out in the state of `view`.
    // In every decision of the simulator, where a call would take a few percent of a run.
    #[inline(always)]
    pub fn check(&self, view: &SystemView<'_>) -> Result<(), AssignmentProblem> {
        if !self.abandoned().is_empty() {
            self.check_abandoned(view)?;
        }
        self.check_cores(view)?;
        if self.has_speeds() {
            self.check_speeds(view)?;
        }
        match self.wake() {
            Some(date) if date <= view.now => Err(AssignmentProblem::Wake(date)),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn check_cores(&self, view: &SystemView<'_>) -> Result<(), AssignmentProblem> {
        let cores = self.cores();
        if cores.len() != view.cores() || cores.len() != view.running.len() {
            return Err(AssignmentProblem::Cores(cores.len()));
        }
        if view.system.is_limited() {
            self.check_held(view)?;
        }
        let is_bound = view.system.machine().is_bound();
        for (core, (id, running)) in CoreId::all(cores.len()).zip(cores.iter().zip(view.running)) {
            let (Some(id), true) = (*id, id != running) else { continue };
            if !view.is_active(id) {
                return Err(AssignmentProblem::UnknownJob(id));
            }
            if is_bound && !view.may_run(view.job(id), core) {
                return Err(AssignmentProblem::Forbidden { job: id, core });
            }
            if view.is_blocked(id) {
                return Err(AssignmentProblem::Blocked(id));
            }
            let job = view.job(id);
            let stays = job.running && job.last_core.is_some_and(|own| cores.get(own.index()) == Some(&Some(id)));
            if stays || cores[core.index() + 1..].contains(&Some(id)) {
                return Err(AssignmentProblem::TwoCores(id));
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn check_held(&self, view: &SystemView<'_>) -> Result<(), AssignmentProblem> {
        let leaves = |core: CoreId| view.held_on(core).filter(|id| self.cores()[core] != Some(*id));
        let first = CoreId::all(self.cores().len().min(view.running.len())).find_map(leaves);
        first.map_or(Ok(()), |id| Err(AssignmentProblem::Held(id)))
    }

    /// Checks the jobs that are given up. A held one stays on its core for now.
    #[cold]
    #[inline(never)]
    fn check_abandoned(&self, view: &SystemView<'_>) -> Result<(), AssignmentProblem> {
        for (place, id) in self.abandoned().iter().enumerate() {
            if !view.is_active(*id) {
                return Err(AssignmentProblem::UnknownGivenUp(*id));
            }
            let is_used = self.cores().contains(&Some(*id)) || self.abandoned()[..place].contains(id);
            if is_used && !view.job(*id).held {
                return Err(AssignmentProblem::GivenUp(*id));
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn check_speeds(&self, view: &SystemView<'_>) -> Result<(), AssignmentProblem> {
        let is_unknown = |core: &CoreId| !view.system.speeds().contains(&self.speed(*core));
        match CoreId::all(view.cores()).find(is_unknown) {
            Some(core) => Err(AssignmentProblem::Speed { core, speed: self.speed(core) }),
            None => Ok(()),
        }
    }
}
