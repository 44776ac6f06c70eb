//! The decisions of Linux with given settings, for simulations: reservations first, by their deadlines, then SCHED_FIFO
//! by priority, then the fair class.
//!
//! A task is a thread that runs its jobs one after the other. It sleeps when none is left, and whoever has waited
//! longest goes first among equal priorities.
//!
//! *Reservations* are those of the kernel: a thread that wakes before the deadline of its reservation goes on with what
//! is left of the budget unless that is too much for the time left; a budget that is used up is full again in the next
//! period, and the thread waits until then (hard reservations; Abeni and Buttazzo, RTSS 1998, with the kernel's own rule
//! for deadlines before the end of the period).
//!
//! *The fair class* is EEVDF over all processors as if they shared one queue, with slices of [`SLICE`]. The kernel has a
//! queue for each processor and balances them now and then, and it switches at ticks. So figures of fair threads are an
//! approximation.
//!
//! Not represented: throttling of real-time threads, and interrupts.
//! Ties: earlier wake-up, then lower task index.

use std::collections::VecDeque;

use temponet_task::{Assignment, Event, JobId, NotApplicable, Scheduler, System, SystemView, TaskId, Time};

use super::settings::{Policy, Settings};

/// Slice of a fair thread.
const SLICE: Time = Time::from_ms(3);

/// Weights of the nice values −20 to 19, as the kernel has them: each step is a factor of about 1.25.
fn weight(nice: i8) -> f64 {
    1024.0 * 1.25f64.powi(-i32::from(nice))
}

/// A scheduler that decides as Linux does with these settings.
pub struct LinuxPolicies {
    settings: Settings,
    threads: Vec<Thread>,
    /// Threads with jobs, best first; scratch memory.
    order: Vec<(Rank, TaskId)>,
    chosen: Vec<JobId>,
}

/// Order among threads: class, then the order within the class, then the wake-up.
type Rank = (u8, u64, u64, Time);

#[derive(Clone, Default)]
struct Thread {
    jobs: VecDeque<JobId>,
    /// Execution of the first job up to the last decision.
    seen: Time,
    woke: Time,
    /// Budget and deadline of a reservation, and the date from which it has a budget again.
    budget: Time,
    deadline: Time,
    throttled_until: Option<Time>,
    /// Weighted service of a fair thread, and its virtual deadline.
    service: f64,
    due: f64,
}

impl LinuxPolicies {
    /// Creates the scheduler for a set with these settings; the set has to be [`Settings::applied`].
    pub fn new(settings: Settings) -> LinuxPolicies {
        LinuxPolicies { settings, threads: Vec::new(), order: Vec::new(), chosen: Vec::new() }
    }

    fn policy(&self, task: TaskId) -> Policy {
        self.settings.threads[task.index()].policy
    }

    /// Mean service of the fair threads that have jobs, by weight.
    fn fair_mean(&self) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (thread, setting) in self.threads.iter().zip(&self.settings.threads) {
            if let (Policy::Other { nice }, false) = (setting.policy, thread.jobs.is_empty()) {
                sum += thread.service * weight(nice);
                weights += weight(nice);
            }
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }

    /// Charges what the first job of each thread has executed since the last decision.
    fn charge(&mut self, view: &SystemView<'_>) {
        for (thread, setting) in self.threads.iter_mut().zip(&self.settings.threads) {
            let Some(first) = thread.jobs.front() else { continue };
            let executed = view.job(*first).executed;
            let used = executed.saturating_sub(thread.seen);
            thread.seen = executed;
            match setting.policy {
                Policy::Other { nice } => {
                    thread.service += used.0 as f64 * 1024.0 / weight(nice);
                    if thread.service >= thread.due {
                        thread.due = thread.service + SLICE.0 as f64 * 1024.0 / weight(nice);
                    }
                }
                Policy::Deadline { .. } => thread.budget = thread.budget.saturating_sub(used),
                Policy::Fifo { .. } => {}
            }
        }
    }

    /// Takes note of jobs that came and went. Threads that had none before wake up.
    fn follow(&mut self, view: &SystemView<'_>) {
        let slept: Vec<TaskId> =
            view.system.task_ids().filter(|task| self.threads[task.index()].jobs.is_empty()).collect();
        for event in view.events {
            match *event {
                Event::Released(id) => self.threads[view.job(id).task.index()].jobs.push_back(id),
                Event::Completed(id) | Event::Aborted(id) => {
                    let thread = &mut self.threads[view.job(id).task.index()];
                    if thread.jobs.front() == Some(&id) {
                        thread.seen = Time::ZERO;
                    }
                    thread.jobs.retain(|job| *job != id);
                }
                _ => {}
            }
        }
        let mean = self.fair_mean();
        for task in slept {
            if !self.threads[task.index()].jobs.is_empty() {
                let policy = self.policy(task);
                self.threads[task.index()].wake(policy, view.now, mean);
            }
        }
    }

    fn rank(&self, task: TaskId, mean: f64) -> Rank {
        let thread = &self.threads[task.index()];
        match self.policy(task) {
            Policy::Deadline { .. } => (0, thread.deadline.0, 0, thread.woke),
            Policy::Fifo { priority } => (1, u64::from(u8::MAX - priority), 0, thread.woke),
            // Threads that are behind the mean are eligible, in the order of their virtual deadlines; all others wait.
            Policy::Other { .. } => {
                let is_ahead = thread.service > mean + 1.0;
                (2, u64::from(is_ahead), thread.due.max(0.0) as u64, thread.woke)
            }
        }
    }
}

impl Thread {
    fn wake(&mut self, policy: Policy, now: Time, fair_mean: f64) {
        self.woke = now;
        match policy {
            Policy::Fifo { .. } => {}
            Policy::Other { nice } => {
                self.service = self.service.max(fair_mean);
                self.due = self.service + SLICE.0 as f64 * 1024.0 / weight(nice);
            }
            Policy::Deadline { budget, deadline, period } => {
                if let Some(date) = self.throttled_until {
                    if now < date {
                        return;
                    }
                    // The budget became full while the thread slept.
                    self.throttled_until = None;
                    (self.budget, self.deadline) = (budget, self.deadline + period);
                }
                // `deadline` before `period`: the next period begins that much after the deadline.
                let next = (self.deadline + period).saturating_sub(deadline);
                if self.deadline == Time::ZERO {
                    (self.budget, self.deadline) = (budget, now + deadline);
                } else if self.deadline <= now && now < next {
                    self.throttled_until = Some(next);
                } else if self.deadline <= now {
                    (self.budget, self.deadline) = (budget, now + deadline);
                } else {
                    let left = u128::from((self.deadline - now).0);
                    if u128::from(self.budget.0) * u128::from(deadline.0) > left * u128::from(budget.0) {
                        match deadline == period {
                            true => (self.budget, self.deadline) = (budget, now + deadline),
                            false => self.budget = Time((left * u128::from(budget.0) / u128::from(deadline.0)) as u64),
                        }
                    }
                }
            }
        }
    }

    /// Ends a budget that is used up and fills it again when its time has come.
    fn replenish(&mut self, now: Time, [budget, deadline, period]: [Time; 3]) {
        if self.budget == Time::ZERO && self.throttled_until.is_none() {
            self.throttled_until = Some((self.deadline + period).saturating_sub(deadline));
        }
        if self.throttled_until.is_some_and(|date| date <= now) {
            self.throttled_until = None;
            (self.budget, self.deadline) = (budget, self.deadline + period);
            if self.deadline <= now {
                self.deadline = now + deadline;
            }
        }
    }
}

impl Scheduler for LinuxPolicies {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        if system.tasks().len() != self.settings.threads.len() {
            return Err(NotApplicable("the settings are those of another set".into()));
        }
        self.threads = vec![Thread::default(); system.tasks().len()];
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.charge(view);
        self.follow(view);
        let mean = self.fair_mean();
        self.order.clear();
        for task in view.system.task_ids() {
            let policy = self.policy(task);
            let thread = &mut self.threads[task.index()];
            if thread.jobs.is_empty() {
                continue;
            }
            if let Policy::Deadline { budget, deadline, period } = policy {
                thread.replenish(view.now, [budget, deadline, period]);
                if let Some(date) = thread.throttled_until {
                    assignment.wake_at(date);
                    continue;
                }
            }
            let rank = self.rank(task, mean);
            self.order.push((rank, task));
        }
        self.order.sort_unstable();
        self.chosen.clear();
        let first = |(_, task): &(Rank, TaskId)| self.threads[task.index()].jobs.front().copied();
        let most = view.system.most_offered();
        self.chosen.extend(self.order.iter().filter_map(first).take(most));
        assignment.place(view, &self.chosen);
        let waits = self.order.len() > view.cores() || most > view.cores();
        for core in view.system.core_ids() {
            let Some(id) = assignment.cores()[core.index()] else { continue };
            let job = view.job(id);
            let thread = &self.threads[job.task.index()];
            match self.policy(job.task) {
                Policy::Deadline { .. } if thread.budget > Time::ZERO => {
                    assignment.wake_at(view.date_after_on(job, thread.budget, core));
                }
                Policy::Other { nice } if waits => {
                    // Until the end of the slice, and at least for a tenth of one, so that decisions do not pile up.
                    let left = (thread.due - thread.service) * weight(nice) / 1024.0;
                    let left = Time((left.max(0.0) as u64).max(SLICE.0 / 10));
                    assignment.wake_at(view.date_after_on(job, left, core));
                }
                _ => {}
            }
        }
    }
}
