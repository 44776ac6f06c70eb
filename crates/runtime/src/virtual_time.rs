//! Virtual time: a platform without threads, in which jobs take exactly the time that they are said to take and every
//! wait ends at once.
//!
//! It runs the same dispatcher as the threads do, so that tests of the dispatcher need neither privilege nor patience.
//! Orders, wake-ups and decisions cost nothing.

use temponet_task::{Job, JobId, Locks, TaskId, Time};

use crate::platform::{Done, Note, Platform, Slot};
use crate::releases::Due;

/// Called when a job is put on a core for the first time. Returns the time that it will take.
pub(crate) type Begin<'a> = Box<dyn FnMut(&Due) -> Time + 'a>;

struct VirtualJob {
    due: Due,
    /// Date of its first instruction and time that it takes; none before.
    begun: Option<(Time, Time)>,
    executed: Time,
    preemptions: u32,
    /// Whether it was told to return.
    is_stopped: bool,
    /// The job as the rules of critical sections see it.
    job: Job,
}

/// The platform.
pub(crate) struct VirtualTime<'a> {
    now: Time,
    jobs: Vec<Option<VirtualJob>>,
    cores: Vec<Option<Slot>>,
    begin: Begin<'a>,
    /// Jobs that run at present.
    running: Vec<Slot>,
    /// Who holds and wants what; none without critical sections.
    locks: Option<Locks>,
}

impl<'a> VirtualTime<'a> {
    pub fn new(cores: usize, begin: Begin<'a>) -> VirtualTime<'a> {
        VirtualTime {
            now: Time::ZERO,
            jobs: Vec::new(),
            cores: vec![None; cores],
            begin,
            running: Vec::new(),
            locks: None,
        }
    }

    /// The platform with the critical sections of a system with one core: where the chosen job waits, the one that holds
    /// what it wants runs in its place, as with mutexes that inherit priorities.
    #[cfg(test)]
    pub fn with_sections_of(self, system: &temponet_task::System) -> VirtualTime<'a> {
        VirtualTime { locks: Locks::of(system), ..self }
    }

    /// Finds the job that runs on each core.
    fn find_running(&mut self) {
        let VirtualTime { jobs, cores, locks, running, .. } = self;
        running.clear();
        let Some(locks) = locks else { return running.extend(cores.iter().flatten()) };
        let view: Vec<Job> = jobs.iter().map(|job| job.as_ref().map_or_else(nobody, |job| job.job)).collect();
        let active: Vec<JobId> = (0..jobs.len()).filter(|slot| jobs[*slot].is_some()).map(id).collect();
        for wanted in cores.iter().flatten() {
            // Every round gives a job what it wants, or comes one job further in the chain of those that wait.
            while let Some(runner) = locks.runs_as(id(*wanted)) {
                let job = &view[runner.index()];
                locks.advance(runner, job, |_| {});
                let goes_on = locks.take(runner, job, |_, _| {});
                locks.update(&active, &view, |_| {});
                if goes_on && locks.runs_as(id(*wanted)) == Some(runner) {
                    running.push(runner.index());
                    break;
                }
            }
        }
    }

    /// Time until a running job completes or comes to a lock or unlock.
    fn until_next(&self, slot: Slot) -> Time {
        let Some(job) = &self.jobs[slot] else { return Time::NEVER };
        let step = self.locks.as_ref().and_then(|locks| locks.next_work(id(slot), &job.job));
        let step = step.map_or(Time::NEVER, |work| work.saturating_sub(job.executed));
        job.remaining().min(if step > Time::ZERO { step } else { Time::NEVER })
    }

    /// Forgets a job that has left.
    fn leave(&mut self, slot: Slot) -> Option<VirtualJob> {
        let job = self.jobs[slot].take()?;
        if let Some(locks) = &mut self.locks {
            locks.leave(id(slot), |_| {});
        }
        Some(job)
    }
}

/// A slot as the rules of critical sections name it.
fn id(slot: Slot) -> JobId {
    JobId(slot as u32)
}

/// A job for places without one.
fn nobody() -> Job {
    Job::new(TaskId(0), Time::ZERO, Time(1), Time(1))
}

impl VirtualJob {
    fn remaining(&self) -> Time {
        self.begun.map_or(Time::ZERO, |(_, execution)| execution.saturating_sub(self.executed))
    }
}

impl Platform for VirtualTime<'_> {
    fn wait(&mut self, until: Time) -> Time {
        self.find_running();
        let ends = self.running.iter().map(|slot| self.now + self.until_next(*slot)).min();
        let is_stopped = self.jobs.iter().flatten().any(|job| job.is_stopped);
        let until = if is_stopped { self.now } else { until };
        let next = ends.map_or(until, |end| end.min(until)).max(self.now);
        let passed = next - self.now;
        for slot in &self.running {
            if let Some(job) = &mut self.jobs[*slot] {
                job.executed += passed;
                job.job.executed = job.executed;
            }
        }
        self.now = next;
        next
    }

    fn date(&self) -> Time {
        self.now
    }

    fn note(&mut self) -> Option<Note> {
        let is_done = |job: &VirtualJob| job.is_stopped || (job.begun.is_some() && job.remaining() == Time::ZERO);
        let slot = self.jobs.iter().position(|job| job.as_ref().is_some_and(is_done))?;
        let job = self.leave(slot)?;
        self.cores.iter_mut().filter(|core| **core == Some(slot)).for_each(|core| *core = None);
        let (start, _) = job.begun?;
        let VirtualJob { executed, preemptions, is_stopped, .. } = job;
        let done = Done { start, end: self.now, executed, preemptions, is_complete: !is_stopped, has_panicked: false };
        Some(Note::Done { slot, done })
    }

    fn admit(&mut self, due: &Due) -> Option<Slot> {
        let release = due.release;
        let job = Job::new(due.task, release.release, release.deadline, release.wcet);
        let job = VirtualJob { due: *due, begun: None, executed: Time::ZERO, preemptions: 0, is_stopped: false, job };
        let slot = self.jobs.iter().position(Option::is_none).unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        if let Some(locks) = &mut self.locks {
            locks.enter(id(slot), &job.job);
        }
        self.jobs[slot] = Some(job);
        Some(slot)
    }

    fn vacate(&mut self, slot: Slot) {
        self.leave(slot);
    }

    fn executed(&mut self, slot: Slot) -> Option<Time> {
        self.locks.as_ref().and(self.jobs[slot].as_ref()).map(|job| job.executed)
    }

    fn switch(&mut self, cores: &[Option<Slot>]) -> Time {
        for slot in self.cores.iter().flatten().filter(|slot| !cores.contains(&Some(**slot))) {
            if let Some(job) = &mut self.jobs[*slot] {
                job.preemptions += 1;
            }
        }
        self.cores.copy_from_slice(cores);
        for slot in self.cores.iter().flatten() {
            if let Some(job) = &mut self.jobs[*slot]
                && job.begun.is_none()
            {
                job.begun = Some((self.now, (self.begin)(&job.due)));
            }
        }
        self.now
    }

    /// A job that is told to return does so at once; one that is only taken out of competition goes on when a core is
    /// idle, which in virtual time is never.
    fn retire(&mut self, slot: Slot, expired: bool) {
        self.cores.iter_mut().filter(|core| **core == Some(slot)).for_each(|core| *core = None);
        if let Some(job) = &mut self.jobs[slot] {
            job.is_stopped = expired;
        }
    }
}
