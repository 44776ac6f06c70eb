//! Threads of the trace: who runs, who is ready, who sleeps, and the processor time of each.
//!
//! ```text
//!            wake-up                switched in
//!   asleep ───────────► ready ──────────────────────► running
//!     ▲                   ▲                            │  │  │
//!     │                   └── switched out, ready ─────┘  │  │
//!     │ waits (state D) ── ► ready, the same job ◄────────┘  │
//!     └────────────────── switched out, asleep ──────────────┘   the job is done
//! ```
//!
//! A thread that was running when the trace began, and one of which events were lost, is unknown until it is woken or
//! switched out; jobs of that time are touched and do not count.

use std::collections::{HashMap, HashSet};

use crate::event::{Leaving, NO_CPU, NO_PRIORITY, Name, Names, Party};

/// A job of a thread, from its wake-up to its sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub tid: i32,
    pub name: Name,
    pub priority: i32,
    pub release: u64,
    pub start: u64,
    pub end: u64,
    /// Processor time.
    pub executed: u64,
    pub preemptions: u32,
    pub first_cpu: u32,
    pub last_cpu: u32,
    /// Whether events of its time were lost, or it began before the trace.
    pub is_touched: bool,
    /// Whether its wake-up is in the trace; without it, the release is when it got a processor.
    pub was_woken: bool,
    /// Whether it waited in state D.
    pub waited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Asleep { since: u64 },
    Waiting,
    Ready,
    Running { since: u64, cpu: u32 },
}

/// A job that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    release: u64,
    start: Option<u64>,
    /// Processor time of the thread at the release.
    ran_before: u64,
    preemptions: u32,
    first_cpu: u32,
    is_touched: bool,
    was_woken: bool,
    waited: bool,
}

/// A thread.
#[derive(Clone, Debug)]
struct Thread {
    name: Name,
    priority: i32,
    state: State,
    ran: u64,
    job: Option<Open>,
    /// Date of a wake-up that came while it ran. It is that of the next job if the thread was about to sleep.
    woken_early: Option<u64>,
    /// Number of times that its processor time was not known.
    breaks: u32,
    jobs: u64,
}

impl Thread {
    fn open(&mut self, release: u64, was_woken: bool, is_touched: bool) {
        self.job = Some(Open {
            release,
            start: None,
            ran_before: self.ran,
            preemptions: 0,
            first_cpu: NO_CPU,
            is_touched,
            was_woken,
            waited: false,
        });
    }

    /// Processor time by a date that is not before the last event.
    fn ran_by(&self, now: u64) -> u64 {
        match self.state {
            State::Running { since, .. } => self.ran + now.saturating_sub(since),
            _ => self.ran,
        }
    }

    /// Forgets what it was doing, because events were lost.
    fn lose_track(&mut self) {
        self.breaks += 1;
        if let Some(job) = &mut self.job {
            job.is_touched = true;
        }
    }
}

/// Processor time of a thread at a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    ran: u64,
    breaks: u32,
    pub cpu: u32,
}

impl Clock {
    /// Processor time since an earlier date; none if it is not known throughout.
    pub fn since(self, earlier: Clock) -> Option<u64> {
        (self.breaks == earlier.breaks).then(|| self.ran.saturating_sub(earlier.ran))
    }
}

/// Longest time between a wake-up and the sleep that it ends, in nanoseconds: a thread that was about to sleep.
const ABOUT_TO_SLEEP: u64 = 200_000;
/// Most processors.
const MOST_CPUS: u32 = 1 << 14;

/// All threads.
#[derive(Default)]
pub(crate) struct Threads {
    threads: HashMap<i32, Thread>,
    /// Thread on each processor; none if unknown.
    running: Vec<Option<i32>>,
    /// Events may have been lost until this date.
    lost_until: u64,
    pub saw_switch: bool,
    pub saw_wake: bool,
    /// Switches from a thread that was not there: an event is missing.
    pub missing: u64,
    /// Jobs that began before the trace.
    pub begun_before: u64,
    /// Jobs that ended with their threads, by name: how many, and their processor time. No other job of the thread is
    /// like them, since the end of a thread is work, too.
    pub ended: HashMap<Name, (u64, u64)>,
    /// Threads of which every event is in the trace, if that is not so of all. The others are what a processor does
    /// meanwhile, as if it were idle.
    pub recorded: Option<HashSet<i32>>,
}

impl Threads {
    /// A processor goes from one thread to another. Returns the job that this ends.
    pub fn switch(&mut self, time: u64, cpu: u32, from: Party, leaving: Leaving, to: Party) -> Option<Job> {
        self.saw_switch = true;
        let [from, to] = [from, to].map(|who| self.or_nobody(who));
        if cpu < MOST_CPUS {
            let at = cpu as usize;
            if at >= self.running.len() {
                self.running.resize(at + 1, None);
            }
            if let Some(known) = self.running[at].filter(|known| *known != from.tid) {
                self.missing += 1;
                self.lost_until = self.lost_until.max(time);
                if let Some(thread) = self.threads.get_mut(&known).filter(|_| known != 0) {
                    thread.lose_track();
                    thread.state = State::Unknown;
                }
            }
            self.running[at] = Some(to.tid);
        }
        let done = if from.tid > 0 { self.leave(time, cpu, from, leaving) } else { None };
        if to.tid > 0 {
            self.enter(time, cpu, to);
        }
        done
    }

    /// A recorded thread, or none.
    fn or_nobody(&self, who: Party) -> Party {
        let is_recorded = self.recorded.as_ref().is_none_or(|threads| threads.contains(&who.tid));
        if is_recorded { who } else { Party { tid: 0, ..who } }
    }

    /// A thread begins.
    pub fn start(&mut self, tid: i32) {
        if let Some(threads) = &mut self.recorded {
            threads.insert(tid);
        }
    }

    fn thread(&mut self, who: Party) -> &mut Thread {
        let thread = self.threads.entry(who.tid).or_insert(Thread {
            name: who.name,
            priority: who.priority,
            state: State::Unknown,
            ran: 0,
            job: None,
            woken_early: None,
            breaks: 0,
            jobs: 0,
        });
        if who.name != Names::UNKNOWN {
            thread.name = who.name;
        }
        if who.priority != NO_PRIORITY {
            thread.priority = who.priority;
        }
        thread
    }

    fn leave(&mut self, time: u64, cpu: u32, who: Party, leaving: Leaving) -> Option<Job> {
        let lost_until = self.lost_until;
        let thread = self.thread(who);
        match thread.state {
            State::Running { since, cpu: at } if at == cpu || at == NO_CPU || cpu == NO_CPU => {
                thread.ran += time.saturating_sub(since);
            }
            State::Unknown if thread.job.is_none() => {
                // It was running when the trace began, or when events were lost.
                thread.breaks += 1;
                thread.open(time, false, true);
            }
            _ => thread.lose_track(),
        }
        let done = match leaving {
            Leaving::Preempted => {
                thread.state = State::Ready;
                if let Some(job) = &mut thread.job {
                    job.preemptions += 1;
                }
                None
            }
            Leaving::Waits => {
                thread.state = State::Waiting;
                if let Some(job) = &mut thread.job {
                    job.waited = true;
                }
                None
            }
            Leaving::Sleeps => {
                thread.state = State::Asleep { since: time };
                thread.job.take()
            }
            Leaving::Ends => thread.job.take(),
        };
        let job = done.map(|job| Job {
            tid: who.tid,
            name: thread.name,
            priority: thread.priority,
            release: job.release,
            start: job.start.unwrap_or(job.release),
            end: time,
            executed: thread.ran.saturating_sub(job.ran_before),
            preemptions: job.preemptions,
            first_cpu: job.first_cpu,
            last_cpu: cpu,
            is_touched: job.is_touched || job.release < lost_until,
            was_woken: job.was_woken,
            waited: job.waited,
        });
        if let Some(job) = &job {
            thread.jobs += u64::from(!job.is_touched);
        }
        if leaving == Leaving::Ends {
            // The number may be given to another thread.
            self.threads.remove(&who.tid);
            self.recorded.as_mut().map(|threads| threads.remove(&who.tid));
            if let Some(job) = job {
                let (count, ran) = self.ended.entry(job.name).or_default();
                *count += 1;
                *ran += job.executed;
            }
            return None;
        }
        job.filter(|job| {
            let is_of_before = job.start == job.end && job.is_touched && job.executed == 0;
            self.begun_before += u64::from(is_of_before);
            !is_of_before
        })
    }

    fn enter(&mut self, time: u64, cpu: u32, who: Party) {
        let thread = self.thread(who);
        match thread.state {
            State::Asleep { since } => {
                let early = thread.woken_early.filter(|woken| woken.saturating_add(ABOUT_TO_SLEEP) >= since);
                let release = early.map_or(time, |woken| woken.max(since));
                thread.open(release, early.is_some(), false);
            }
            State::Unknown => {
                // It was ready before the trace began.
                thread.breaks += 1;
                if thread.job.is_none() {
                    thread.open(time, false, true);
                }
            }
            State::Ready | State::Waiting => {}
            State::Running { .. } => thread.lose_track(),
        }
        thread.woken_early = None;
        thread.state = State::Running { since: time, cpu };
        if let Some(job) = thread.job.as_mut().filter(|job| job.start.is_none()) {
            job.start = Some(time);
            job.first_cpu = cpu;
        }
    }

    /// A thread is woken.
    pub fn wake(&mut self, time: u64, who: Party, is_new: bool) {
        self.saw_wake = true;
        if self.or_nobody(who).tid <= 0 {
            return;
        }
        if is_new {
            self.threads.remove(&who.tid);
        }
        let thread = self.thread(who);
        match thread.state {
            State::Asleep { .. } => {
                thread.open(time, true, false);
                thread.state = State::Ready;
            }
            // A thread that is woken was asleep.
            State::Unknown => {
                thread.open(time, true, false);
                thread.state = State::Ready;
            }
            State::Waiting => thread.state = State::Ready,
            State::Ready => {}
            State::Running { .. } => thread.woken_early = Some(time),
        }
    }

    /// Events between two dates were lost: whatever was going on is touched, and no thread is known to be asleep.
    pub fn lose(&mut self, until: u64) {
        self.lost_until = self.lost_until.max(until);
        for thread in self.threads.values_mut() {
            thread.lose_track();
            thread.state = State::Unknown;
            thread.woken_early = None;
        }
        self.running.fill(None);
    }

    /// A thread says something itself, so it is running. Returns its processor time.
    pub fn clock(&mut self, time: u64, cpu: u32, tid: i32) -> Clock {
        let saw_switch = self.saw_switch;
        let who = Party { tid, name: Names::UNKNOWN, priority: NO_PRIORITY };
        let thread = self.thread(who);
        let ran = match thread.state {
            State::Running { since, .. } => thread.ran + time.saturating_sub(since),
            _ => {
                // Without switches, a thread is taken to run all the time.
                if saw_switch {
                    thread.breaks += 1;
                }
                thread.state = State::Running { since: time, cpu };
                thread.ran
            }
        };
        let on = match thread.state {
            State::Running { cpu: on, .. } if cpu == NO_CPU => on,
            _ => cpu,
        };
        Clock { ran, breaks: thread.breaks, cpu: on }
    }

    /// Priority of a thread.
    pub fn priority(&self, tid: i32) -> i32 {
        self.threads.get(&tid).map_or(NO_PRIORITY, |thread| thread.priority)
    }

    /// Number of jobs that have not ended, and their processor time by a date.
    pub fn unfinished(&self, now: u64) -> (u64, u64) {
        let open = self.threads.values().filter_map(|thread| Some((thread, thread.job.filter(|job| !job.is_touched)?)));
        open.fold((0, 0), |(count, ran), (thread, job)| {
            (count + 1, ran + thread.ran_by(now).saturating_sub(job.ran_before))
        })
    }

    /// Threads that ran and completed no job, with the processor time of each by a date, most time first.
    pub fn without_jobs(&self, now: u64) -> Vec<(i32, Name, u64)> {
        let idle = self.threads.iter().filter(|(_, thread)| thread.jobs == 0);
        let mut all: Vec<_> = idle.map(|(tid, thread)| (*tid, thread.name, thread.ran_by(now))).collect();
        all.sort_by_key(|(tid, _, ran)| (std::cmp::Reverse(*ran), *tid));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(tid: i32) -> Party {
        Party { tid, name: Name(1), priority: 120 }
    }

    const IDLE: Party = Party { tid: 0, name: Name(0), priority: 120 };

    #[test]
    fn a_preemption_is_not_an_end_and_processor_time_is_not_wall_time() {
        let mut threads = Threads::default();
        threads.wake(100, party(7), false);
        assert_eq!(threads.switch(110, 0, IDLE, Leaving::Preempted, party(7)), None);
        threads.wake(150, party(8), false);
        assert_eq!(threads.switch(150, 0, party(7), Leaving::Preempted, party(8)), None);
        let other = threads.switch(170, 0, party(8), Leaving::Sleeps, party(7)).unwrap();
        assert_eq!((other.release, other.start, other.executed), (150, 150, 20));
        let job = threads.switch(200, 0, party(7), Leaving::Sleeps, IDLE).unwrap();
        assert_eq!((job.release, job.start, job.end, job.executed, job.preemptions), (100, 110, 200, 70, 1));
        assert!(job.was_woken && !job.is_touched && !job.waited);
    }

    #[test]
    fn switches_of_others_that_are_not_recorded_are_no_loss() {
        let mut threads = Threads { recorded: Some(HashSet::from([7])), ..Threads::default() };
        threads.wake(0, party(7), false);
        threads.switch(0, 0, IDLE, Leaving::Preempted, party(7));
        // The job is preempted by 8, which gives the processor to 9: neither is recorded.
        threads.switch(10, 0, party(7), Leaving::Preempted, party(8));
        threads.switch(20, 0, party(9), Leaving::Sleeps, party(7));
        let job = threads.switch(25, 0, party(7), Leaving::Sleeps, party(8)).unwrap();
        assert_eq!((job.executed, job.preemptions, job.is_touched, threads.missing), (15, 1, false, 0));
        // What 8 did in between is not known, though it seems to have run all the time.
        assert_eq!(threads.switch(40, 0, party(8), Leaving::Sleeps, party(7)), None);
        assert_eq!(threads.switch(45, 0, party(7), Leaving::Preempted, party(8)), None);
        threads.wake(50, party(8), false);
        assert_eq!(threads.switch(50, 0, party(8), Leaving::Sleeps, IDLE), None);
        assert_eq!(threads.without_jobs(60).len(), 0);
        // A thread that a recorded one starts is recorded.
        threads.start(9);
        threads.wake(60, party(9), true);
        threads.switch(60, 0, IDLE, Leaving::Preempted, party(9));
        assert!(!threads.switch(70, 0, party(9), Leaving::Sleeps, IDLE).unwrap().is_touched);
    }

    #[test]
    fn waiting_for_a_disk_is_within_a_job() {
        let mut threads = Threads::default();
        threads.wake(0, party(7), false);
        threads.switch(0, 1, IDLE, Leaving::Preempted, party(7));
        assert_eq!(threads.switch(10, 1, party(7), Leaving::Waits, IDLE), None);
        threads.wake(50, party(7), false);
        threads.switch(60, 2, IDLE, Leaving::Preempted, party(7));
        let job = threads.switch(65, 2, party(7), Leaving::Sleeps, IDLE).unwrap();
        assert_eq!((job.release, job.executed, job.waited, job.first_cpu, job.last_cpu), (0, 15, true, 1, 2));
    }

    #[test]
    fn a_job_that_ends_with_its_thread_is_counted_with_its_time() {
        let mut threads = Threads::default();
        threads.wake(0, party(7), true);
        threads.switch(10, 0, IDLE, Leaving::Preempted, party(7));
        assert_eq!(threads.unfinished(15), (1, 5));
        assert_eq!(threads.switch(40, 0, party(7), Leaving::Ends, IDLE), None);
        assert_eq!((threads.ended[&Name(1)], threads.unfinished(50)), ((1, 30), (0, 0)));
        assert!(threads.without_jobs(50).is_empty());
    }

    #[test]
    fn what_began_before_and_what_was_lost_does_not_count() {
        let mut threads = Threads::default();
        assert_eq!(threads.switch(5, 0, party(7), Leaving::Sleeps, IDLE), None);
        assert_eq!(threads.begun_before, 1);
        threads.wake(10, party(7), false);
        threads.switch(10, 0, IDLE, Leaving::Preempted, party(7));
        threads.lose(12);
        assert!(threads.switch(20, 0, party(7), Leaving::Sleeps, IDLE).unwrap().is_touched);
        threads.wake(30, party(7), false);
        threads.switch(30, 0, IDLE, Leaving::Preempted, party(7));
        assert!(!threads.switch(40, 0, party(7), Leaving::Sleeps, IDLE).unwrap().is_touched);
        // The switch from 7 to 8 is missing.
        threads.wake(50, party(7), false);
        threads.switch(50, 0, IDLE, Leaving::Preempted, party(7));
        threads.switch(60, 0, party(8), Leaving::Sleeps, IDLE);
        assert_eq!(threads.missing, 1);
        threads.wake(70, party(7), false);
        threads.switch(70, 0, IDLE, Leaving::Preempted, party(7));
        assert!(!threads.switch(75, 0, party(7), Leaving::Sleeps, IDLE).unwrap().is_touched);
    }

    #[test]
    fn a_wake_up_just_before_the_sleep_is_that_of_the_next_job() {
        let mut threads = Threads::default();
        threads.wake(0, party(7), false);
        threads.switch(0, 0, IDLE, Leaving::Preempted, party(7));
        threads.wake(99, party(7), false);
        threads.switch(100, 0, party(7), Leaving::Sleeps, IDLE).unwrap();
        threads.switch(500, 0, IDLE, Leaving::Preempted, party(7));
        let job = threads.switch(600, 0, party(7), Leaving::Sleeps, IDLE).unwrap();
        assert_eq!((job.release, job.was_woken, job.executed), (100, true, 100));
    }
}
