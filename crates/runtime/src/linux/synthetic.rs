//! Synthetic jobs: they compute until they have used a given processor time, as the thread's own clock measures it, and
//! return early when they should. In critical sections they hold the resources of their task.

use std::sync::Arc;

use temponet_task::{ResourceId, Step, Task, Time, steps};

use super::resources::PiMutex;
use super::{monotonic_ns, own_processor_ns};
use crate::job::Job;

/// Time between two looks at the processor clock, in nanoseconds. Reading it is a system call; in between, the job
/// watches the monotonic clock, which is not.
const LOOK: u64 = 20_000;
/// Jump of the monotonic clock between two readings that shows that the job was off its processor, in nanoseconds. Most
/// interrupts are shorter.
const GAP: u64 = 10_000;

/// A stretch of time that a job ran without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RanSlice {
    /// Number of the job within its task.
    pub number: u64,
    /// Dates on the monotonic clock, in nanoseconds.
    pub start: u64,
    pub end: u64,
    /// Processor that it ended on.
    pub cpu: u32,
}

/// The slices of a worker's jobs, as many as there is room for.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    pub slices: Vec<RanSlice>,
    /// Number of times that a job was found on another processor than before.
    pub migrations: u64,
}

impl Slices {
    /// Room for this many slices.
    pub fn with_room(slices: usize) -> Slices {
        Slices { slices: Vec::with_capacity(slices), migrations: 0 }
    }

    fn add(&mut self, slice: RanSlice) {
        if self.slices.len() < self.slices.capacity() && slice.start < slice.end {
            self.slices.push(slice);
        }
    }
}

/// What the synthetic jobs of a thread do, and what they recorded.
pub struct Synthetic {
    pub slices: Slices,
    /// Locks and unlocks of a job, in the order of its work.
    steps: Vec<Step>,
    /// Worst-case execution time of the task.
    wcet: Time,
    resources: Arc<[PiMutex]>,
    /// Resources that the job at hand holds.
    held: Vec<ResourceId>,
}

impl Synthetic {
    /// Jobs of a task of a set with these resources, with room for this many slices.
    pub fn of(task: &Task, resources: &Arc<[PiMutex]>, slices: usize) -> Synthetic {
        let steps = steps(task, resources.len());
        let held = Vec::with_capacity(steps.len());
        Synthetic { slices: Slices::with_room(slices), steps, wcet: task.wcet, resources: resources.clone(), held }
    }

    /// Runs a job with these times, whose thread's processor clock showed `since` when it began. Returns whether it did
    /// all its work.
    pub fn run(&mut self, execution: Time, wcet: Time, since: u64, job: &Job<'_>) -> bool {
        let is_complete = self.run_steps(execution, wcet, since, job);
        // A job that completes or returns within a section releases its resources there.
        while let Some(resource) = self.held.pop() {
            self.resources[resource.index()].unlock();
        }
        is_complete
    }

    fn run_steps(&mut self, execution: Time, wcet: Time, since: u64, job: &Job<'_>) -> bool {
        for step in &self.steps {
            let work = step.work_at(wcet, self.wcet);
            if work >= execution {
                break;
            }
            if !compute(work, since, job, &mut self.slices) {
                return false;
            }
            let resource = &self.resources[step.resource.index()];
            match step.locks {
                true if resource.lock(job) => self.held.push(step.resource),
                true => return false,
                false => {
                    self.held.retain(|held| *held != step.resource);
                    resource.unlock();
                }
            }
        }
        compute(execution, since, job, &mut self.slices)
    }
}

/// Computes until the thread has used `execution` since its processor clock showed `since`. Returns whether it did;
/// otherwise the job should return.
pub fn compute(execution: Time, since: u64, job: &Job<'_>, slices: &mut Slices) -> bool {
    let number = job.number;
    let cpu_now = || rustix::thread::sched_getcpu() as u32;
    let (mut start, mut cpu) = (monotonic_ns(), cpu_now());
    let mut last = start;
    loop {
        let used = own_processor_ns().saturating_sub(since);
        if used >= execution.0 {
            slices.add(RanSlice { number, start, end: last, cpu });
            return true;
        }
        let look_at = last + (execution.0 - used).min(LOOK);
        while last < look_at {
            let now = monotonic_ns();
            if now - last > GAP {
                slices.add(RanSlice { number, start, end: last, cpu });
                let cpu_after = cpu_now();
                slices.migrations += u64::from(cpu_after != cpu);
                (start, last, cpu) = (now, now, cpu_after);
                break;
            }
            last = now;
            if job.clock.is_some_and(|clock| clock.is_over(job.deadline, now)) {
                slices.add(RanSlice { number, start, end: last, cpu });
                return false;
            }
        }
    }
}
