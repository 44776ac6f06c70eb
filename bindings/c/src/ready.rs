//! The ready jobs behind a handle, with their scheduler: making them, and exchanging the scheduler.
#![allow(unsafe_code, reason = "names that C links to; pointers are checked where they are read")]

use std::ffi::c_char;
use std::sync::{Arc, Mutex, TryLockError};

use temponet::{JobHandle, ReadyJobs, ReadyJobsError, Scheduler, StoppedJob};
use temponet_lab::roster::{self, Roster};

use crate::boundary::{Failure, guarded};
use crate::handles::{self, tn_model, tn_ready, tn_set};
use crate::input::{name, write};
use crate::job::tn_job;
use crate::model;
use crate::result::tn_result;

/// Ready jobs, their scheduler, and what the last decision told.
pub struct Loop {
    pub ready: ReadyJobs,
    pub scheduler: Box<dyn Scheduler>,
    pub stopped: Vec<StoppedJob>,
    pub late: Vec<JobHandle>,
    /// Own handle.
    pub own: u64,
}

impl Loop {
    /// The handle of a job, unless it belongs to other ready jobs.
    pub fn handle(&self, job: tn_job) -> Result<JobHandle, Failure> {
        match (job.of, job == tn_job::NONE) {
            (of, _) if of == self.own => Ok(JobHandle::from_bits(job.value)),
            (_, true) => Err(Failure::new(tn_result::JobLeft, "the job is null")),
            _ => Err(Failure::new(tn_result::ForeignJob, "the job belongs to other ready jobs")),
        }
    }

    /// Takes note of a decision's jobs that are not on cores. Allocates nothing once there have been as many.
    pub fn keep(stopped: &mut Vec<StoppedJob>, late: &mut Vec<JobHandle>, decision: &temponet::Decision<'_>) {
        stopped.clear();
        stopped.extend_from_slice(decision.stopped());
        late.clear();
        late.extend_from_slice(decision.late());
    }
}

/// Error of the loop, as C sees it.
pub fn refused(error: ReadyJobsError) -> Failure {
    let result = match &error {
        ReadyJobsError::Time { .. } => tn_result::Time,
        ReadyJobsError::UnknownTask(_) => tn_result::OutOfRange,
        ReadyJobsError::Left(_) => tn_result::JobLeft,
        ReadyJobsError::NotStarted => tn_result::NotApplicable,
        ReadyJobsError::Release { .. } => tn_result::Release,
        ReadyJobsError::Assignment(_) => tn_result::Assignment,
        _ => tn_result::Panic,
    };
    Failure::new(result, error.to_string())
}

/// Runs the body of a call on ready jobs that no other thread is using.
pub fn with(ready: tn_ready, body: impl FnOnce(&mut Loop) -> Result<(), Failure>) -> tn_result {
    guarded(|| {
        let shared = handles::find(ready)?;
        let mut own = shared.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::new(tn_result::Busy, "another thread is using the ready jobs"),
            TryLockError::Poisoned(_) => {
                Failure::new(tn_result::Broken, "a call on the ready jobs has ended in a panic; they can only be freed")
            }
        })?;
        body(&mut own)
    })
}

/// Builds a scheduler by its name.
///
/// # Safety
/// `spec` must end with a zero, unless it is null.
unsafe fn build(spec: *const c_char, model: tn_model) -> Result<Box<dyn Scheduler>, Failure> {
    // SAFETY: the caller guarantees the zero.
    let spec = unsafe { name(spec, "scheduler")? };
    let model = match model.value {
        0 if !roster::kind(spec).is_learned() => None,
        0 => Some(model::built_in()?),
        _ => Some(handles::find(model)?.0.clone()),
    };
    let roster = Roster { model, ..Roster::default() };
    roster.build(spec).map_err(|error| Failure::new(tn_result::Scheduler, error.to_string()))
}

/// Makes the ready jobs of a task set, at date 0 and with none ready, and starts a scheduler for them.
///
/// `scheduler` is a name with options, as `temponet schedulers` lists them: `edf`, `llf:quantum=500us`, `shield:srpt`,
/// or `temponet` for the learned one. `model` is that of the learned scheduler; the null handle is the built-in one.
/// The set and the model may be freed at once.
///
/// Starting the learned scheduler simulates the set for some tenths of a second, unless the model has been tuned for it
/// (`temponet tune`). A set whose tasks share resources is `TN_RESULT_NOT_APPLICABLE`.
///
/// # Safety
/// `scheduler` must end with a zero, and `ready` must have room for a handle, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_new(
    set: tn_set,
    scheduler: *const c_char,
    model: tn_model,
    ready: *mut tn_ready,
) -> tn_result {
    guarded(|| {
        // SAFETY: the caller guarantees the room.
        unsafe { write(ready, "ready", tn_ready { value: 0 })? };
        let set = handles::find(set)?;
        // SAFETY: the caller guarantees the zero.
        let mut scheduler = unsafe { build(scheduler, model)? };
        let refused = |why: String| Failure::new(tn_result::NotApplicable, why);
        let mut jobs = ReadyJobs::new(set.set.system.clone()).map_err(|error| refused(error.to_string()))?;
        jobs.start(&mut *scheduler).map_err(|error| refused(error.to_string()))?;
        let make = |own| {
            let room = jobs.system().tasks().len();
            let (stopped, late) = (Vec::with_capacity(room), Vec::with_capacity(room));
            Arc::new(Mutex::new(Loop { ready: jobs, scheduler, stopped, late, own }))
        };
        // SAFETY: the caller guarantees the room.
        unsafe { write(ready, "ready", handles::insert(make)?) }
    })
}

/// Exchanges the scheduler. The new one is told at the next decision which jobs are ready, and those on cores stay there
/// until then. `scheduler` and `model` are as for `tn_ready_new`.
///
/// # Safety
/// `scheduler` must end with a zero, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_start(ready: tn_ready, scheduler: *const c_char, model: tn_model) -> tn_result {
    with(ready, |own| {
        // SAFETY: the caller guarantees the zero.
        let mut scheduler = unsafe { build(scheduler, model)? };
        let started = own.ready.start(&mut *scheduler);
        started.map_err(|error| Failure::new(tn_result::NotApplicable, error.to_string()))?;
        own.scheduler = scheduler;
        Ok(())
    })
}

/// Frees ready jobs, with their scheduler and all their jobs. A call of another thread on them goes on to its end.
/// Freeing the null handle does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn tn_ready_free(ready: tn_ready) -> tn_result {
    guarded(|| if ready.value == 0 { Ok(()) } else { handles::remove(ready).map(drop) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet::{Assignment, NotApplicable, System, SystemView, Task, Time};

    struct Panics;

    impl Scheduler for Panics {
        fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
            Ok(())
        }

        fn decide(&mut self, _: &SystemView<'_>, _: &mut Assignment) {
            panic!("a mistake");
        }
    }

    #[test]
    fn after_a_panic_ready_jobs_can_only_be_freed() {
        let tasks = vec![Task::periodic("control", Time::from_ms(10), Time::from_ms(4))];
        let mut jobs = ReadyJobs::new(System::new(tasks, 1)).unwrap();
        jobs.start(&mut Panics).unwrap();
        let make = |own| {
            let scheduler = Box::new(Panics);
            Arc::new(Mutex::new(Loop { ready: jobs, scheduler, stopped: Vec::new(), late: Vec::new(), own }))
        };
        let ready: tn_ready = handles::insert(make).unwrap();
        let decide = || with(ready, |own| own.ready.decide(&mut *own.scheduler).map(drop).map_err(refused));
        assert_eq!(decide(), tn_result::Panic);
        assert_eq!(decide(), tn_result::Broken);
        assert_eq!(with(ready, |_| Ok(())), tn_result::Broken);
        assert_eq!(tn_ready_free(ready), tn_result::Ok);
        assert_eq!(tn_ready_free(ready), tn_result::StaleHandle);
    }

    #[test]
    fn ready_jobs_in_use_are_busy() {
        let jobs = ReadyJobs::new(System::new(vec![Task::periodic("a", Time::from_ms(1), Time::from_us(1))], 1));
        let make = |own| {
            let (ready, scheduler) = (jobs.unwrap(), Box::new(Panics));
            Arc::new(Mutex::new(Loop { ready, scheduler, stopped: Vec::new(), late: Vec::new(), own }))
        };
        let ready: tn_ready = handles::insert(make).unwrap();
        let mut inner = tn_result::Ok;
        let outer = with(ready, |_| {
            inner = with(ready, |_| Ok(()));
            // Freed in the middle of a call, the object lives until its end.
            assert_eq!(tn_ready_free(ready), tn_result::Ok);
            Ok(())
        });
        assert_eq!((outer, inner), (tn_result::Ok, tn_result::Busy));
        assert_eq!(with(ready, |_| Ok(())), tn_result::StaleHandle);
    }
}
