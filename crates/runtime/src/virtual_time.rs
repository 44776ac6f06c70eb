//! Virtual time: a platform without threads, in which jobs take exactly the time that they are said to take and every
//! wait ends at once.
//!
//! It runs the same dispatcher as the threads do, so that tests of the dispatcher need neither privilege nor patience.
//! Orders, wake-ups and decisions cost nothing.

use temponet_task::Time;

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
}

/// The platform.
pub(crate) struct VirtualTime<'a> {
    now: Time,
    jobs: Vec<Option<VirtualJob>>,
    cores: Vec<Option<Slot>>,
    begin: Begin<'a>,
}

impl<'a> VirtualTime<'a> {
    pub fn new(cores: usize, begin: Begin<'a>) -> VirtualTime<'a> {
        VirtualTime { now: Time::ZERO, jobs: Vec::new(), cores: vec![None; cores], begin }
    }

    fn on_cores(&self) -> impl Iterator<Item = &VirtualJob> {
        self.cores.iter().flatten().filter_map(|slot| self.jobs[*slot].as_ref())
    }
}

impl VirtualJob {
    fn remaining(&self) -> Time {
        self.begun.map_or(Time::ZERO, |(_, execution)| execution.saturating_sub(self.executed))
    }
}

impl Platform for VirtualTime<'_> {
    fn wait(&mut self, until: Time) -> Time {
        let ends = self.on_cores().map(|job| self.now + job.remaining()).min();
        let is_stopped = self.jobs.iter().flatten().any(|job| job.is_stopped);
        let until = if is_stopped { self.now } else { until };
        let next = ends.map_or(until, |end| end.min(until)).max(self.now);
        let passed = next - self.now;
        for slot in self.cores.iter().flatten() {
            if let Some(job) = &mut self.jobs[*slot] {
                job.executed += passed;
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
        let job = self.jobs[slot].take()?;
        self.cores.iter_mut().filter(|core| **core == Some(slot)).for_each(|core| *core = None);
        let (start, _) = job.begun?;
        let VirtualJob { executed, preemptions, is_stopped, .. } = job;
        let done = Done { start, end: self.now, executed, preemptions, is_complete: !is_stopped, has_panicked: false };
        Some(Note::Done { slot, done })
    }

    fn admit(&mut self, due: &Due) -> Option<Slot> {
        let job = VirtualJob { due: *due, begun: None, executed: Time::ZERO, preemptions: 0, is_stopped: false };
        let slot = self.jobs.iter().position(Option::is_none).unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        self.jobs[slot] = Some(job);
        Some(slot)
    }

    fn vacate(&mut self, slot: Slot) {
        self.jobs[slot] = None;
    }

    fn executed(&mut self, _: Slot) -> Option<Time> {
        None
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
