//! A worker: the thread of a task, and the cell through which the dispatcher gives it jobs.
//!
//! The dispatcher writes a job into the cell, then its number into `given`, on which the worker sleeps. The worker
//! writes what it measured, then the number into `returned`, and rings the doorbell. Everything in between is plain
//! atomics: neither side allocates or takes a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex;
use temponet_task::{OnMiss, Time};

use super::synthetic::{Slices, Synthetic};
use super::{monotonic_ns, own_processor_ns, sys};
use crate::doorbell::{Doorbell, Marks};
use crate::job::{Job, JobClock};
use crate::platform::{Done, Slot};
use crate::releases::Due;
use crate::runtime::Body;

/// What dispatcher and worker share.
#[derive(Default)]
pub struct Cell {
    /// Number of jobs given so far; the worker sleeps on it.
    given: AtomicU32,
    /// Number of jobs that have begun, and that have returned.
    begun: AtomicU32,
    returned: AtomicU32,
    /// Whether the worker should end instead of taking a job.
    quits: AtomicBool,
    /// Whether the job at hand should return.
    stop: AtomicBool,
    /// The kernel's id of the thread; zero before it runs.
    thread: AtomicI32,
    number: AtomicU64,
    release: AtomicU64,
    deadline: AtomicU64,
    execution: AtomicU64,
    wcet: AtomicU64,
    /// Date on the monotonic clock, and the thread's processor time, at which the job began and returned.
    start: AtomicU64,
    start_processor: AtomicU64,
    end: AtomicU64,
    executed: AtomicU64,
    preemptions: AtomicU32,
    is_complete: AtomicBool,
    has_panicked: AtomicBool,
}

/// What a worker does with a job.
pub enum Work {
    /// Calls the code of the task.
    Closure(Body),
    /// Computes for the job's execution time.
    Synthetic(Synthetic),
}

/// What a worker is told when it is made.
pub struct WorkerPlan {
    pub cell: Arc<Cell>,
    /// Its place on the platform.
    pub slot: Slot,
    pub doorbell: Arc<Doorbell>,
    /// Where the worker leaves its mark when a job has returned.
    pub returned: Arc<Marks>,
    pub on_miss: OnMiss,
    /// Date on the monotonic clock at which the run begins; set before the first job.
    pub epoch: Arc<AtomicU64>,
}

impl Cell {
    /// Id of the thread; zero before it runs.
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Writes a job into the cell. The worker sees it with [`Cell::wake`].
    pub fn prepare(&self, due: &Due) {
        self.number.store(due.number, Ordering::Relaxed);
        self.release.store(due.release.release.0, Ordering::Relaxed);
        self.deadline.store(due.release.deadline.0, Ordering::Relaxed);
        self.execution.store(due.execution.0, Ordering::Relaxed);
        self.wcet.store(due.release.wcet.0, Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Has the worker run the prepared job.
    pub fn wake(&self) {
        self.given.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.given, futex::Flags::PRIVATE, 1);
    }

    /// Tells the job at hand to return.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the worker, now or when its job returns.
    pub fn quit(&self) {
        self.quits.store(true, Ordering::Release);
        self.stop();
        self.wake();
    }

    /// Whether the last job that was given has returned.
    pub fn is_done(&self) -> bool {
        self.returned.load(Ordering::SeqCst) == self.given.load(Ordering::Relaxed)
    }

    /// Processor time of the thread when the job at hand began; none if it has not begun.
    pub fn start_processor(&self) -> Option<u64> {
        let has_begun = self.begun.load(Ordering::Acquire) == self.given.load(Ordering::Relaxed);
        has_begun.then(|| self.start_processor.load(Ordering::Relaxed))
    }

    /// What was measured of the last job, in dates since `epoch`.
    pub fn done(&self, epoch: u64) -> Done {
        let date = |at: &AtomicU64| Time(at.load(Ordering::Relaxed).saturating_sub(epoch));
        Done {
            start: date(&self.start),
            end: date(&self.end),
            executed: Time(self.executed.load(Ordering::Relaxed)),
            preemptions: self.preemptions.load(Ordering::Relaxed),
            is_complete: self.is_complete.load(Ordering::Relaxed),
            has_panicked: self.has_panicked.load(Ordering::Relaxed),
        }
    }
}

/// The life of a worker. Returns what it recorded of its slices.
pub fn work(plan: WorkerPlan, mut work: Work) -> Slices {
    let cell = &*plan.cell;
    cell.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
    let mut taken = 0;
    loop {
        while cell.given.load(Ordering::Acquire) == taken {
            let _ = futex::wait(&cell.given, futex::Flags::PRIVATE, taken, None);
        }
        taken = taken.wrapping_add(1);
        if cell.quits.load(Ordering::Acquire) {
            return match work {
                Work::Synthetic(synthetic) => synthetic.slices,
                Work::Closure(_) => Slices::default(),
            };
        }
        let start = monotonic_ns();
        let start_processor = own_processor_ns();
        cell.start.store(start, Ordering::Relaxed);
        cell.start_processor.store(start_processor, Ordering::Relaxed);
        cell.begun.store(taken, Ordering::Release);
        let preemptions = sys::own_preemptions();
        let job = Job {
            number: cell.number.load(Ordering::Relaxed),
            release: Time(cell.release.load(Ordering::Relaxed)),
            deadline: Time(cell.deadline.load(Ordering::Relaxed)),
            clock: Some(JobClock {
                stop: &cell.stop,
                on_miss: plan.on_miss,
                now: monotonic_ns,
                epoch: plan.epoch.load(Ordering::Relaxed),
                processor: own_processor_ns,
                began_with: start_processor,
            }),
        };
        let is_complete = match &mut work {
            Work::Closure(body) => {
                // A panic costs the job, not the program. Without unwinding it ends the program, and the guard with it.
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&job))).is_ok()
            }
            Work::Synthetic(synthetic) => {
                let time = |at: &AtomicU64| Time(at.load(Ordering::Relaxed));
                synthetic.run(time(&cell.execution), time(&cell.wcet), start_processor, &job)
            }
        };
        cell.executed.store(own_processor_ns().saturating_sub(start_processor), Ordering::Relaxed);
        cell.preemptions.store(sys::own_preemptions().wrapping_sub(preemptions), Ordering::Relaxed);
        cell.is_complete.store(is_complete, Ordering::Relaxed);
        cell.has_panicked.store(!is_complete && matches!(work, Work::Closure(_)), Ordering::Relaxed);
        cell.end.store(monotonic_ns(), Ordering::Relaxed);
        cell.returned.store(taken, Ordering::SeqCst);
        plan.returned.mark(plan.slot);
        plan.doorbell.ring_for_completion();
    }
}
