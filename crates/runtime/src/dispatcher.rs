//! The dispatcher: releases jobs, asks the scheduler, and has a platform carry out what it decides. It knows no
//! threads.
//!
//! One round is: sleep until the next date or note; take notes (completions, requests); charge processor time and look
//! for overruns; release what is due; if any of this happened, or the scheduler asked for this date, decide once. The
//! order within an instant is that of the simulator's engine.
//!
//! [`ReadyJobs`] keeps ids, events and cores, and checks every assignment. Everything that grows is allocated before
//! the run, as far as its size is known.

mod answers;
mod precedence;
mod samples;

use temponet_sim::{End, Waiting};
use temponet_task::{CoreId, Event, JobHandle, OnMiss, ReadyJobs, Scheduler, System, TaskId, Time};

use crate::decider::Mailbox;
use crate::error::RuntimeError;
use crate::platform::{Done, Note, Platform, Slot};
use crate::releases::{Due, Releases};
use crate::report::{Counts, JobOutcome, Latencies};
use crate::runtime::OnOverrun;
use answers::Watched;
use samples::Samples;

/// A job that has used this many times its wcet is taken out of competition, whatever the rule: it may never return.
const RUNAWAY: u64 = 10;

/// What a dispatcher is told before a run.
pub(crate) struct DispatchPlan {
    /// Tasks and cores.
    pub system: System,
    /// What to do with a job that uses more than its wcet, by task.
    pub on_overrun: Vec<OnOverrun>,
    /// End of the run.
    pub horizon: Time,
    /// Number of jobs to expect, for which memory is set aside.
    pub jobs: usize,
    /// Jobs that are never released, by task and number, so that those that follow them are not either.
    pub hopeless: Vec<(TaskId, u64)>,
    /// Whether jobs may run that are not chosen, because a chosen one waits for what they hold.
    pub shares: bool,
}

/// What is known of the job in a slot.
#[derive(Clone, Copy, Debug)]
struct Live {
    due: Due,
    /// Its handle, as long as it is among the ready jobs.
    handle: Option<JobHandle>,
    /// Date of the order that put it on a core first.
    ordered: Option<Time>,
    /// Number of the state in which it was released.
    released_in: u64,
    /// Whether that order came with the first decision after the release, and whether it took the core from another
    /// job.
    is_prompt: bool,
    preempts: bool,
    overran: bool,
    core: Option<CoreId>,
    /// Date at which it first lost its core.
    lost: Option<Time>,
    /// Why it left, if it left before its code returned.
    end: Option<End>,
}

/// State of a run.
pub(crate) struct Dispatcher<'a, P> {
    platform: P,
    plan: DispatchPlan,
    ready: ReadyJobs,
    scheduler: &'a mut dyn Scheduler,
    releases: Box<dyn Releases>,
    /// Jobs that wait for others; none if no task follows another.
    waiting: Option<Box<Waiting<Due>>>,
    /// Where a slow scheduler is asked, if there is one.
    mailbox: Option<Mailbox>,
    /// Events that the slow scheduler has not been told yet.
    untold: Vec<Event>,
    /// Whether a task limits preemption.
    limits_preemption: bool,
    /// Number of the present state: it changes with every event.
    state: u64,
    /// By slot.
    live: Vec<Option<Live>>,
    /// Slot of the job with each id.
    slot_of: Vec<Slot>,
    /// Slot on each core.
    cores: Vec<Option<Slot>>,
    /// Slot on each core in the decision at hand.
    wanted: Vec<Option<Slot>>,
    stopped: Vec<(JobHandle, bool)>,
    /// Date of the next decision, if the scheduler or a deadline asks for one.
    decide_at: Time,
    jobs: Vec<JobOutcome>,
    counts: Counts,
    samples: Samples,
}

impl<'a, P: Platform> Dispatcher<'a, P> {
    /// A dispatcher that has started its scheduler and has not begun.
    pub fn new(
        plan: DispatchPlan,
        platform: P,
        scheduler: &'a mut dyn Scheduler,
        releases: Box<dyn Releases>,
        mailbox: Option<Mailbox>,
    ) -> Result<Dispatcher<'a, P>, RuntimeError> {
        let mut ready = ReadyJobs::new(plan.system.clone())?;
        ready.start(scheduler)?;
        if mailbox.is_some() {
            ready.hold_ids();
        }
        let (cores, room) = (plan.system.cores(), plan.jobs + 1024);
        let mut waiting = Waiting::of(plan.system.tasks());
        if let Some(waiting) = &mut waiting {
            // Nothing has arrived, so nothing is lost yet.
            plan.hopeless.iter().for_each(|(task, number)| waiting.left(*task, *number, false, &mut Vec::new()));
        }
        Ok(Dispatcher {
            platform,
            ready,
            scheduler,
            releases,
            waiting,
            mailbox,
            untold: Vec::with_capacity(1024),
            limits_preemption: plan.system.tasks().iter().any(|task| task.preemption.is_limited()),
            state: 0,
            live: Vec::with_capacity(256),
            slot_of: Vec::with_capacity(256),
            cores: vec![None; cores],
            wanted: vec![None; cores],
            stopped: Vec::with_capacity(256),
            decide_at: Time::NEVER,
            jobs: Vec::with_capacity(room),
            counts: Counts::default(),
            samples: Samples::with_room(room),
            plan,
        })
    }

    /// Runs until the horizon.
    pub fn run(&mut self) -> Result<(), RuntimeError> {
        self.platform.begin();
        let result = self.run_rounds();
        self.platform.finish();
        result
    }

    fn run_rounds(&mut self) -> Result<(), RuntimeError> {
        let horizon = self.plan.horizon;
        loop {
            let next = self.next_date();
            let must_know = self.must_know_completions();
            self.platform.wake_for_completions(must_know);
            let now = self.platform.wait(next.min(horizon)).max(self.ready.now());
            self.ready.advance(now.min(horizon))?;
            let releases = self.releases.next();
            let mut happened = self.take_notes()?;
            if now >= horizon {
                self.finish(horizon);
                return Ok(());
            }
            self.take_answer()?;
            happened |= self.charge()?;
            if releases <= now {
                let charged = self.platform.date();
                happened |= self.release_due(now)?;
                // A round that was late because of the one before says nothing about timers.
                if next == releases {
                    self.samples.timer.push((now - releases).0);
                }
                self.samples.charge.push(charged.saturating_sub(now).0);
                self.samples.release.push(self.platform.date().saturating_sub(charged).0);
            }
            happened |= self.release_ripe()?;
            if happened || self.decide_at <= now {
                self.decide(now)?;
            }
        }
    }

    /// The earliest date at which something is to be done.
    fn next_date(&self) -> Time {
        let mut next = self.releases.next().min(self.decide_at);
        let now = self.ready.now();
        for live in self.cores.iter().flatten().filter_map(|slot| self.live[*slot].as_ref()) {
            let Some(job) = live.handle.and_then(|handle| self.ready.job(handle)) else { continue };
            let limit = if live.overran { job.wcet * RUNAWAY } else { job.wcet };
            next = next.min(now + limit.saturating_sub(job.executed) + self.platform.overrun_margin());
        }
        next
    }

    /// Whether a completion has to be noticed at once. It does if a job waits for a core. Otherwise the next release is
    /// soon enough, if it comes before the deadlines of the running jobs: a completion that is noticed after the
    /// deadline would look late to the scheduler.
    fn must_know_completions(&self) -> bool {
        let on_cores = self.cores.iter().flatten().count();
        if self.ready.len() > on_cores || self.waiting.is_some() {
            return true;
        }
        let (next, margin) = (self.releases.next(), self.platform.overrun_margin());
        let is_due = |live: &Live| live.due.release.deadline.saturating_sub(margin) <= next;
        self.cores.iter().flatten().any(|slot| self.live[*slot].as_ref().is_some_and(is_due))
    }

    /// Takes what the platform reports. Returns whether anything asks for a decision.
    fn take_notes(&mut self) -> Result<bool, RuntimeError> {
        let mut happened = false;
        while let Some(note) = self.platform.note() {
            match note {
                Note::Done { slot, done } => happened |= self.returned(slot, done)?,
                Note::Asked { task, date } => {
                    if let Some(due) = self.releases.asked(task, date.min(self.ready.now())) {
                        happened |= self.release(due)?;
                    }
                }
            }
        }
        Ok(happened)
    }

    /// A job's code has returned. Returns whether it was still among the ready jobs.
    fn returned(&mut self, slot: Slot, done: Done) -> Result<bool, RuntimeError> {
        let Some(live) = self.live[slot].take() else { return Ok(false) };
        let was_ready = live.handle.is_some();
        if let Some(handle) = live.handle {
            self.ready.set_executed(handle, done.executed)?;
            self.ready.complete(handle)?;
        }
        self.cores.iter_mut().filter(|core| **core == Some(slot)).for_each(|core| *core = None);
        self.counts.panics += u64::from(done.has_panicked);
        let end = match live.end {
            Some(end @ (End::Aborted | End::Abandoned)) => end,
            _ if !done.is_complete => End::Aborted,
            _ => End::Completed,
        };
        // A job whose code returns late under the rule that aborts late jobs would have been aborted at its deadline,
        // unless it held its core.
        let can_hold = self.can_hold(&live);
        let aborts = self.plan.system.on_miss() == OnMiss::Abort && !can_hold;
        let is_late = done.end > live.due.release.deadline && aborts;
        let end = if is_late && end == End::Completed { End::Aborted } else { end };
        // A job that lost its core before its first instruction says nothing about how long a switch takes.
        let is_direct = live.lost.is_none_or(|lost| done.start <= lost);
        if let Some(ordered) = live.ordered.filter(|_| is_direct) {
            if live.is_prompt {
                self.samples.start.push(done.start.saturating_sub(live.due.release.release).0);
            }
            if live.preempts {
                self.samples.switch.push(done.start.saturating_sub(ordered).0);
            }
        }
        let left = if end == End::Aborted && !can_hold { live.due.release.deadline.min(done.end) } else { done.end };
        self.record(&live, Some(done), end, left);
        if live.end.is_none() {
            self.tell_followers(&live.due, (end == End::Completed).then_some(left))?;
        }
        Ok(was_ready)
    }

    /// Whether the job's task limits preemption, so that the job leaves its core at its preemption points only.
    fn can_hold(&self, live: &Live) -> bool {
        self.plan.system.tasks()[live.due.task].preemption.is_limited()
    }

    /// Adds a job that has left to the results.
    fn record(&mut self, live: &Live, done: Option<Done>, end: End, left: Time) {
        let release = live.due.release;
        let executed = done.map_or(Time::ZERO, |done| done.executed);
        let overran = live.overran || executed >= release.wcet + self.platform.overrun_margin();
        self.counts.overruns += u64::from(overran);
        self.jobs.push(JobOutcome {
            start: done.map(|done| done.start),
            left,
            end,
            executed,
            preemptions: done.map_or(0, |done| done.preemptions),
            core: live.core,
            overran,
            ..JobOutcome::not_run(&live.due)
        });
    }

    /// Charges the running jobs the processor time that they have used, and acts on overruns. Returns whether a job
    /// left the ready jobs.
    fn charge(&mut self) -> Result<bool, RuntimeError> {
        let mut left = false;
        if self.plan.shares {
            self.charge_holders()?;
        }
        for core in CoreId::all(self.cores.len()) {
            let Some(slot) = self.cores[core] else { continue };
            let Some(live) = &mut self.live[slot] else { continue };
            let Some(handle) = live.handle else { continue };
            if let Some(executed) = self.platform.executed(slot) {
                self.ready.set_executed(handle, executed)?;
            }
            let Some(job) = self.ready.job(handle) else { continue };
            let beyond = |limit: Time| job.executed >= limit + self.platform.overrun_margin();
            let (is_over, is_runaway) = (beyond(job.wcet), beyond(job.wcet * RUNAWAY));
            // A job that holds its core cannot be taken off it. One that may never return is taken out all the same.
            let rule = match (is_runaway, job.held) {
                (true, _) => OnOverrun::Demote,
                (false, true) => OnOverrun::Report,
                (false, false) => self.plan.on_overrun[live.due.task],
            };
            if !is_over || (live.overran && !is_runaway) {
                continue;
            }
            live.overran = true;
            if rule != OnOverrun::Report {
                let is_aborted = rule == OnOverrun::Abort;
                live.handle = None;
                live.end = is_aborted.then_some(End::Abandoned);
                self.ready.withdraw(handle)?;
                self.cores[core] = None;
                let due = live.due;
                self.platform.retire(slot, is_aborted);
                if is_aborted {
                    self.tell_followers(&due, None)?;
                }
                left = true;
            }
        }
        Ok(left)
    }

    /// Releases the jobs whose date has come.
    fn release_due(&mut self, now: Time) -> Result<bool, RuntimeError> {
        let mut happened = false;
        while self.releases.next() <= now {
            let Some(due) = self.releases.pop() else { continue };
            match self.waiting.is_some() {
                true => self.arrive(due)?,
                false => happened |= self.release(due)?,
            }
        }
        Ok(happened)
    }

    /// Charges the started jobs that are not chosen and may run all the same.
    fn charge_holders(&mut self) -> Result<(), RuntimeError> {
        for slot in 0..self.live.len() {
            let Some(handle) = self.live[slot].filter(|live| live.ordered.is_some()).and_then(|live| live.handle)
            else {
                continue;
            };
            if let Some(executed) = self.platform.executed(slot) {
                self.ready.set_executed(handle, executed)?;
            }
        }
        Ok(())
    }

    fn release(&mut self, due: Due) -> Result<bool, RuntimeError> {
        let live = Live {
            due,
            handle: None,
            ordered: None,
            released_in: self.state,
            is_prompt: false,
            preempts: false,
            overran: false,
            core: None,
            lost: None,
            end: None,
        };
        let Some(slot) = self.platform.admit(&due) else {
            self.ready.skip(due.task)?;
            self.counts.skipped += 1;
            self.record(&live, None, End::Abandoned, due.release.release);
            if let Some(job) = self.jobs.last_mut() {
                job.skipped = true;
            }
            self.tell_followers(&due, None)?;
            return Ok(false);
        };
        let handle = self.ready.release_with(due.task, due.release)?;
        if slot >= self.live.len() {
            self.live.resize(slot + 1, None);
        }
        self.live[slot] = Some(Live { handle: Some(handle), ..live });
        if handle.id().index() >= self.slot_of.len() {
            self.slot_of.resize(handle.id().index() + 1, 0);
        }
        self.slot_of[handle.id().index()] = slot;
        Ok(true)
    }

    /// Asks the scheduler and carries out what it decides. Then shows the state to the slow scheduler, if there is one.
    fn decide(&mut self, now: Time) -> Result<(), RuntimeError> {
        self.state += 1;
        self.counts.decisions += 1;
        let untold = self.mailbox.is_some().then_some(&mut self.untold);
        let begin = self.platform.date();
        let decision = self.ready.decide(&mut Watched { inner: &mut *self.scheduler, events: untold })?;
        self.samples.decide.push(self.platform.date().saturating_sub(begin).0);
        self.decide_at = decision.next().unwrap_or(Time::NEVER);
        self.stopped.clear();
        self.stopped.extend(decision.stopped().iter().map(|job| (job.handle, job.is_late)));
        for (core, handle) in decision.cores().iter().enumerate() {
            self.wanted[core] = handle.map(|handle| self.slot_of[handle.id().index()]);
        }
        if self.mailbox.is_some() {
            // The scheduler knows what it has given up; the other one has to be told.
            let given_up = self.stopped.iter().filter(|(_, is_late)| !is_late);
            self.untold.extend(given_up.map(|(handle, _)| Event::Aborted(handle.id())));
        }
        self.stop_jobs(now)?;
        self.carry_out();
        self.ask();
        Ok(())
    }

    /// Takes out the jobs that a decision has stopped.
    fn stop_jobs(&mut self, now: Time) -> Result<(), RuntimeError> {
        for place in 0..self.stopped.len() {
            let (handle, is_late) = self.stopped[place];
            let slot = self.slot_of[handle.id().index()];
            let Some(live) = &mut self.live[slot] else { continue };
            let end = if is_late { End::Aborted } else { End::Abandoned };
            (live.handle, live.end) = (None, Some(end));
            let live = *live;
            self.cores.iter_mut().filter(|core| **core == Some(slot)).for_each(|core| *core = None);
            if live.ordered.is_some() {
                self.platform.retire(slot, true);
            } else {
                self.platform.vacate(slot);
                self.live[slot] = None;
                self.record(&live, None, end, if is_late { live.due.release.deadline } else { now });
            }
            self.tell_followers(&live.due, None)?;
        }
        Ok(())
    }

    /// Has the platform put the wanted jobs on the cores.
    fn carry_out(&mut self) {
        if self.cores == self.wanted {
            return;
        }
        for core in CoreId::all(self.cores.len()) {
            let lost = self.cores[core].filter(|slot| !self.wanted.contains(&Some(*slot)));
            self.counts.preemptions += u64::from(lost.is_some());
            if let Some(live) = lost.and_then(|slot| self.live[slot].as_mut()) {
                live.lost = live.lost.or(Some(self.ready.now()));
            }
        }
        let ordered = self.platform.switch(&self.wanted);
        self.samples.order.push(self.platform.date().saturating_sub(ordered).0);
        for core in CoreId::all(self.cores.len()) {
            let Some(slot) = self.wanted[core] else { continue };
            let took_over = self.cores[core].is_some_and(|old| old != slot);
            let Some(live) = &mut self.live[slot] else { continue };
            self.counts.migrations += u64::from(live.core.is_some_and(|old| old != core));
            live.core = Some(core);
            if live.ordered.is_none() {
                live.ordered = Some(ordered);
                live.preempts = took_over;
                live.is_prompt = self.state == live.released_in + 1;
            }
        }
        std::mem::swap(&mut self.cores, &mut self.wanted);
    }

    /// Ends the run: jobs that are not done leave as aborted, if their deadline has come and late jobs are aborted, or
    /// as unfinished.
    fn finish(&mut self, horizon: Time) {
        for slot in 0..self.live.len() {
            let Some(live) = self.live[slot].take() else { continue };
            let is_due = live.due.release.deadline <= horizon;
            let holds = live.handle.and_then(|handle| self.ready.job(handle)).is_some_and(|job| job.held);
            let aborts = self.plan.system.on_miss() == OnMiss::Abort && !holds;
            let end = live.end.unwrap_or(if is_due && aborts { End::Aborted } else { End::Unfinished });
            let executed = live.handle.and_then(|handle| self.ready.job(handle)).map(|job| job.executed);
            let done = live.ordered.map(|start| Done {
                start,
                end: horizon,
                executed: executed.unwrap_or_default(),
                ..Done::default()
            });
            if done.is_some() {
                self.platform.retire(slot, true);
            } else {
                self.platform.vacate(slot);
            }
            let left = if end == End::Aborted { live.due.release.deadline.min(horizon) } else { horizon };
            self.record(&live, done, end, left);
        }
        for due in self.waiting.as_mut().map(|waiting| waiting.rest()).unwrap_or_default() {
            self.jobs.push(JobOutcome { left: horizon, end: End::Unfinished, ..JobOutcome::not_run(&due) });
        }
    }

    /// Takes the results out: jobs, counts and latencies.
    pub fn results(self) -> (P, Vec<JobOutcome>, Counts, Latencies) {
        (self.platform, self.jobs, self.counts, self.samples.latencies())
    }
}
