//! The decider: a slow scheduler on a thread of its own.
//!
//! The dispatcher applies the choice of a fast scheduler at once and leaves a copy of the state in a [`Mailbox`]. The
//! decider answers when it is done. Each state has a number; the dispatcher adopts an answer only if its state is still
//! the present one. So a slow decision never delays a release, and a stale one is never carried out. An answer that is
//! what runs already waits in the mailbox until the dispatcher wakes up for another reason.
//!
//! While the decider computes, states pass that it does not see; the next one that it sees has the events of those,
//! too. The turn of the mailbox says which side may use the buffers, so neither side ever waits for a lock: `try_lock`
//! succeeds for the side whose turn it is.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use temponet_task::{Assignment, Event, Job, JobId, Scheduler, System, SystemView, Time};

use crate::doorbell::Doorbell;

/// Turn of the mailbox in which no question is open.
const IDLE: u32 = 0;
/// Turn of the decider, which has a question to answer.
const ASKED: u32 = 1;
/// Turn of the dispatcher, which has an answer to read.
const ANSWERED: u32 = 2;
/// Turn of the decider, which has a question to answer that an event has overtaken: there is another one to ask.
const OVERTAKEN: u32 = 3;
/// Turn in which the decider ends.
const QUIT: u32 = 4;

/// Room for jobs and events that is set aside before the run.
const ROOM: usize = 1024;

/// A copy of the state at a decision.
struct Question {
    now: Time,
    active: Vec<JobId>,
    jobs: Vec<Job>,
    running: Vec<Option<JobId>>,
    events: Vec<Event>,
    /// Date of the next decision if nothing happens before.
    next: Time,
}

impl Question {
    /// Whether an assignment changes nothing.
    fn is_answered_by(&self, assignment: &Assignment) -> bool {
        let is_soon_enough = assignment.wake().is_none_or(|date| date >= self.next);
        assignment.cores() == self.running && !assignment.has_speeds() && is_soon_enough
    }
}

/// What dispatcher and decider share.
struct Shared {
    turn: AtomicU32,
    question: Mutex<Question>,
    assignment: Mutex<Assignment>,
    took_ns: AtomicU64,
    /// Whether the answer changes nothing.
    agrees: AtomicBool,
    doorbell: Arc<Doorbell>,
}

/// The dispatcher's side.
pub(crate) struct Mailbox {
    shared: Arc<Shared>,
    /// Number of the state that was asked about last.
    asked: Option<u64>,
    assignment: Assignment,
}

/// An answer of the decider.
pub(crate) struct Answer {
    /// Number of the state that it is about.
    pub state: u64,
    /// Time that it took, in nanoseconds.
    pub took_ns: u64,
    /// Whether it is what runs already.
    pub agrees: bool,
}

/// The decider's side.
pub(crate) struct Decider {
    shared: Arc<Shared>,
    system: System,
    scheduler: Box<dyn Scheduler>,
}

/// Makes both sides. The scheduler must have been started with the system.
pub(crate) fn pair(scheduler: Box<dyn Scheduler>, system: System, doorbell: Arc<Doorbell>) -> (Mailbox, Decider) {
    let mut assignment = Assignment::default();
    assignment.reset(system.cores());
    let question = Question {
        now: Time::ZERO,
        active: Vec::with_capacity(ROOM),
        jobs: Vec::with_capacity(ROOM),
        running: Vec::with_capacity(system.cores()),
        events: Vec::with_capacity(ROOM),
        next: Time::NEVER,
    };
    let shared = Arc::new(Shared {
        turn: AtomicU32::new(IDLE),
        question: Mutex::new(question),
        assignment: Mutex::new(assignment.clone()),
        took_ns: AtomicU64::new(0),
        agrees: AtomicBool::new(false),
        doorbell,
    });
    (Mailbox { shared: shared.clone(), asked: None, assignment }, Decider { shared, system, scheduler })
}

impl Mailbox {
    /// Shows a state to the decider, with the date of the next decision and the events since it was last shown a state,
    /// which are taken out. Returns whether the decider was free and has not seen this state. One that is not free
    /// wakes the dispatcher when it is.
    pub fn ask(&mut self, state: u64, view: &SystemView<'_>, next: Time, events: &mut Vec<Event>) -> bool {
        if self.asked == Some(state) {
            return false;
        }
        match self.shared.turn.compare_exchange(ASKED, OVERTAKEN, Ordering::AcqRel, Ordering::Acquire) {
            Err(IDLE) => {}
            Err(ANSWERED) => {
                self.shared.doorbell.ring();
                return false;
            }
            _ => return false,
        }
        let Ok(mut question) = self.shared.question.try_lock() else { return false };
        (question.now, question.next) = (view.now, next);
        question.active.clear();
        question.active.extend_from_slice(view.active);
        question.jobs.clear();
        question.jobs.extend_from_slice(view.jobs);
        question.running.clear();
        question.running.extend_from_slice(view.running);
        question.events.clear();
        question.events.append(events);
        drop(question);
        self.asked = Some(state);
        self.shared.pass(ASKED);
        true
    }

    /// Takes an answer, if there is one.
    pub fn answer(&mut self) -> Option<Answer> {
        if self.shared.turn.load(Ordering::Acquire) != ANSWERED {
            return None;
        }
        let agrees = self.shared.agrees.load(Ordering::Relaxed);
        if !agrees {
            self.assignment.clone_from(&*self.shared.assignment.try_lock().ok()?);
        }
        let took_ns = self.shared.took_ns.load(Ordering::Relaxed);
        self.shared.turn.store(IDLE, Ordering::Release);
        Some(Answer { state: self.asked?, took_ns, agrees })
    }

    /// The assignment of the last answer that did not agree with what runs.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }
}

#[cfg(test)]
impl Mailbox {
    /// Tells whether a question is open, from any thread.
    pub fn is_asked(&self) -> impl Fn() -> bool + use<> {
        let shared = self.shared.clone();
        move || matches!(shared.turn.load(Ordering::Acquire), ASKED | OVERTAKEN)
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.shared.pass(QUIT);
    }
}

impl Shared {
    fn pass(&self, turn: u32) {
        self.turn.store(turn, Ordering::Release);
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::futex::wake(&self.turn, rustix::thread::futex::Flags::PRIVATE, 1);
    }
}

#[cfg(target_os = "linux")]
impl Decider {
    /// Answers questions until the mailbox is dropped. Returns the scheduler.
    pub fn serve(mut self, now: fn() -> u64) -> Box<dyn Scheduler> {
        let mut proposed = Assignment::default();
        loop {
            match self.shared.turn.load(Ordering::Acquire) {
                QUIT => return self.scheduler,
                ASKED | OVERTAKEN => {}
                other => {
                    let flags = rustix::thread::futex::Flags::PRIVATE;
                    let _ = rustix::thread::futex::wait(&self.shared.turn, flags, other, None);
                    continue;
                }
            }
            let Ok(question) = self.shared.question.try_lock() else { continue };
            let view = SystemView::new(question.now, &self.system, &question.active, &question.jobs, &question.running)
                .with_events(&question.events);
            let begin = now();
            proposed.reset(self.system.cores());
            self.scheduler.decide(&view, &mut proposed);
            // The fast scheduler would not learn that a job was given up. A job that gets no core leaves at its
            // deadline.
            proposed.keep_all();
            self.shared.took_ns.store(now() - begin, Ordering::Relaxed);
            let agrees = question.is_answered_by(&proposed);
            self.shared.agrees.store(agrees, Ordering::Relaxed);
            drop(question);
            if !agrees && let Ok(mut assignment) = self.shared.assignment.try_lock() {
                assignment.clone_from(&proposed);
            }
            // The question may have been overtaken, or the mailbox dropped.
            let pass = |from| self.shared.turn.compare_exchange(from, ANSWERED, Ordering::AcqRel, Ordering::Acquire);
            let is_overtaken = pass(ASKED).is_err();
            if (is_overtaken && pass(OVERTAKEN).is_ok()) || (!is_overtaken && !agrees) {
                self.shared.doorbell.ring();
            }
        }
    }
}
