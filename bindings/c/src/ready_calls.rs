//! What a program reports to its ready jobs and asks of them.
#![allow(unsafe_code, reason = "names that C links to; pointers are checked where they are read")]

use temponet::{CoreId, Estimate, Release, TaskId, Time};

use crate::boundary::Failure;
use crate::handles::{tn_ready, tn_text};
use crate::input::{checked, read, write, write_all};
use crate::job::{tn_core, tn_decision, tn_job, tn_job_state, tn_release, tn_stopped};
use crate::ready::{Loop, refused, with};
use crate::result::tn_result;
use crate::set::task;
use crate::text;

/// Moves on to the date `now_ns`, in nanoseconds since the program began, and adds the time that has passed to the
/// execution of the running jobs. A program that measures processor time corrects that with `tn_ready_set_executed`.
#[unsafe(no_mangle)]
pub extern "C" fn tn_ready_advance(ready: tn_ready, now_ns: u64) -> tn_result {
    with(ready, |own| own.ready.advance(Time(now_ns)).map_err(refused))
}

/// Releases a job of a task now and writes it to `job`. Its deadline counts from now.
///
/// # Safety
/// `job` must have room for a job, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_release(ready: tn_ready, task: usize, job: *mut tn_job) -> tn_result {
    with(ready, |own| {
        checked(job, "job")?;
        let (id, _) = self::task(own.ready.system().tasks(), task)?;
        let handle = own.ready.release(id).map_err(refused)?;
        // SAFETY: the caller guarantees the room.
        unsafe { write(job, "job", tn_job::new(own.own, handle)) }
    })
}

/// Writes what a task says about a job that is released at `release_ns`, for `tn_ready_release_with`.
///
/// # Safety
/// `release` must have room for a release, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_usual_release(
    ready: tn_ready,
    task: usize,
    release_ns: u64,
    release: *mut tn_release,
) -> tn_result {
    with(ready, |own| {
        let (_, found) = self::task(own.ready.system().tasks(), task)?;
        let usual = Release::of(found, Time(release_ns));
        let usual = tn_release {
            release_ns: usual.release.0,
            deadline_ns: usual.deadline.0,
            wcet_ns: usual.wcet.0,
            bcet_ns: usual.bcet.0,
            estimate_median_ns: 0,
            estimate_high_ns: 0,
            value: usual.value,
            criticality: usual.criticality,
        };
        // SAFETY: the caller guarantees the room.
        unsafe { write(release, "release", usual) }
    })
}

/// Releases a job of a task that has a release date, deadline, execution time, criticality, value or estimate of its
/// own, and writes it to `job`. A program whose timers are late passes the nominal date.
///
/// # Safety
/// `release` must point to a release, and `job` have room for a job, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_release_with(
    ready: tn_ready,
    task: usize,
    release: *const tn_release,
    job: *mut tn_job,
) -> tn_result {
    with(ready, |own| {
        checked(job, "job")?;
        // SAFETY: the caller guarantees the release.
        let asked = unsafe { read(release, "release")? };
        let (id, found) = self::task(own.ready.system().tasks(), task)?;
        let estimate = match (asked.estimate_median_ns, asked.estimate_high_ns) {
            (0, 0) => None,
            (median, high) => Some(Estimate::new(Time(median), Time(high)).ok_or_else(|| {
                let why = format!("task {:?}: an estimate of {median} ns and {high} ns makes no sense", found.name);
                Failure::new(tn_result::Release, why)
            })?),
        };
        let mut released = Release::of(found, Time(asked.release_ns));
        released.deadline = Time(asked.deadline_ns);
        (released.wcet, released.bcet) = (Time(asked.wcet_ns), Time(asked.bcet_ns));
        (released.criticality, released.value, released.estimate) = (asked.criticality, asked.value, estimate);
        let handle = own.ready.release_with(id, released).map_err(refused)?;
        // SAFETY: the caller guarantees the room.
        unsafe { write(job, "job", tn_job::new(own.own, handle)) }
    })
}

/// Reports that a job is done. Writes whether it is on time, which it is exactly at its deadline, to `on_time`, if that
/// is not null.
///
/// # Safety
/// `on_time` must have room for a `bool`, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_complete(ready: tn_ready, job: tn_job, on_time: *mut bool) -> tn_result {
    with(ready, |own| {
        let met = own.ready.complete(own.handle(job)?).map_err(refused)?;
        // SAFETY: not null; the caller guarantees the room.
        if on_time.is_null() { Ok(()) } else { unsafe { write(on_time, "on_time", met) } }
    })
}

/// Takes a job out that the program gives up, such as one that has overrun its worst case.
#[unsafe(no_mangle)]
pub extern "C" fn tn_ready_abort(ready: tn_ready, job: tn_job) -> tn_result {
    with(ready, |own| own.ready.withdraw(own.handle(job)?).map_err(refused))
}

/// Corrects the execution time of a ready job so far, as a processor-time clock measures it.
#[unsafe(no_mangle)]
pub extern "C" fn tn_ready_set_executed(ready: tn_ready, job: tn_job, executed_ns: u64) -> tn_result {
    with(ready, |own| own.ready.set_executed(own.handle(job)?, Time(executed_ns)).map_err(refused))
}

/// Counts a job of a task that the program does not release, so that the numbers of later jobs keep step with the
/// task's arrivals.
#[unsafe(no_mangle)]
pub extern "C" fn tn_ready_skip(ready: tn_ready, task: usize) -> tn_result {
    with(ready, |own| {
        let (id, _): (TaskId, _) = self::task(own.ready.system().tasks(), task)?;
        own.ready.skip(id).map_err(refused)
    })
}

/// Finds passed deadlines, asks the scheduler, and writes what each core does to `cores`, which the caller owns, and the
/// rest to `decision`.
///
/// Call it after every release and completion, those of one date together, and at `next_ns` of the last decision at the
/// latest. `room` is the number of elements of `cores`; one per core of the set is needed. After a set has shown its
/// load once, a decision allocates no memory.
///
/// After `TN_RESULT_ASSIGNMENT` jobs stay on the cores that they have, and another scheduler can be started and asked.
///
/// # Safety
/// `cores` must have room for `room` elements, and `decision` for a decision, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_decide(
    ready: tn_ready,
    cores: *mut tn_core,
    room: usize,
    decision: *mut tn_decision,
) -> tn_result {
    with(ready, |own| {
        let count = own.ready.system().cores();
        checked(cores, "cores")?;
        checked(decision, "decision")?;
        if room < count {
            let message = format!("cores: there are {count}, and the buffer has room for {room}");
            return Err(Failure::new(tn_result::SmallBuffer, message));
        }
        let Loop { ready, scheduler, stopped, late, own } = own;
        let taken = ready.decide(&mut **scheduler).map_err(refused)?;
        Loop::keep(stopped, late, &taken);
        let next_ns = taken.next().map_or(u64::MAX, |next| next.0);
        let summary = tn_decision { next_ns, stopped: stopped.len(), late: late.len(), cores: count };
        for (place, job) in taken.cores().iter().enumerate() {
            let speed = taken.speed(CoreId::new(place)).0;
            let job = job.map_or(tn_job::NONE, |handle| tn_job::new(*own, handle));
            // SAFETY: not null and aligned; the place is below `count` and so within the room that the caller
            // guarantees.
            unsafe { cores.add(place).write(tn_core { job, task: 0, speed }) };
        }
        // The decision borrows the jobs, so their tasks are looked up after it.
        for place in 0..count {
            // SAFETY: this element has just been written.
            let core = unsafe { &mut *cores.add(place) };
            let job = ready.job(temponet::JobHandle::from_bits(core.job.value));
            core.task = job.filter(|_| core.job != tn_job::NONE).map_or(0, |job| job.task.index());
        }
        // SAFETY: the caller guarantees the room.
        unsafe { write(decision, "decision", summary) }
    })
}

/// Writes one of the jobs that left at the last decision without completing, by its place among `stopped` of the
/// decision.
///
/// # Safety
/// `stopped` must have room for one, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_stopped(ready: tn_ready, index: usize, stopped: *mut tn_stopped) -> tn_result {
    with(ready, |own| {
        let found = own.stopped.get(index).ok_or_else(|| beyond("stopped", index, own.stopped.len()))?;
        // SAFETY: the caller guarantees the room.
        unsafe { write(stopped, "stopped", tn_stopped::new(own.own, found)) }
    })
}

/// Writes one of the jobs that were late at the last decision and stay, by its place among `late` of the decision.
///
/// # Safety
/// `job` must have room for a job, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_late(ready: tn_ready, index: usize, job: *mut tn_job) -> tn_result {
    with(ready, |own| {
        let found = own.late.get(index).ok_or_else(|| beyond("late", index, own.late.len()))?;
        // SAFETY: the caller guarantees the room.
        unsafe { write(job, "job", tn_job::new(own.own, *found)) }
    })
}

fn beyond(what: &str, index: usize, count: usize) -> Failure {
    Failure::new(tn_result::OutOfRange, format!("there is no {what} job {index}: the last decision has {count}"))
}

/// Writes a ready job as it is now.
///
/// # Safety
/// `state` must have room for a state, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_job(ready: tn_ready, job: tn_job, state: *mut tn_job_state) -> tn_result {
    with(ready, |own| {
        let handle = own.handle(job)?;
        let found = own.ready.job(handle).ok_or_else(|| Failure::new(tn_result::JobLeft, "the job has left"))?;
        // SAFETY: the caller guarantees the room.
        unsafe { write(state, "state", tn_job_state::of(found)) }
    })
}

/// Writes the number of ready jobs, running ones included, to `count`, and the jobs, in no particular order, to `jobs`,
/// which has `room` elements. With a null `jobs` and a `room` of 0 only the number is written.
///
/// # Safety
/// `jobs` must have room for `room` jobs, and `count` for a number, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_jobs(
    ready: tn_ready,
    jobs: *mut tn_job,
    room: usize,
    count: *mut usize,
) -> tn_result {
    with(ready, |own| {
        // SAFETY: the caller guarantees the room of both.
        unsafe {
            write(count, "count", own.ready.len())?;
            if jobs.is_null() && room == 0 {
                return Ok(());
            }
            let all: Vec<tn_job> = own.ready.iter().map(|(handle, _)| tn_job::new(own.own, handle)).collect();
            write_all(all.into_iter(), jobs, room, "jobs")
        }
    })
}

/// Writes the current date, in nanoseconds since the program began.
///
/// # Safety
/// `now_ns` must have room for a number, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_now(ready: tn_ready, now_ns: *mut u64) -> tn_result {
    // SAFETY: the caller guarantees the room.
    with(ready, |own| unsafe { write(now_ns, "now_ns", own.ready.now().0) })
}

/// Gives the counters that the scheduler has kept since it was started, as a JSON object. Of the learned scheduler they
/// say how often the shield overruled a choice, and how often the network was not asked.
///
/// # Safety
/// `counters` must have room for a handle, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_ready_counters(ready: tn_ready, counters: *mut tn_text) -> tn_result {
    with(ready, |own| {
        let make = || {
            let counters = own.scheduler.counters().into_iter();
            let object: serde_json::Map<_, _> = counters.map(|(name, count)| (name.into(), count.into())).collect();
            Ok(serde_json::Value::Object(object).to_string())
        };
        // SAFETY: the caller guarantees the room.
        unsafe { text::give(counters, make) }
    })
}
