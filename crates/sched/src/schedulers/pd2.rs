//! PD², the Pfair scheduler: each job is cut into subtasks of one quantum whose windows follow the fluid schedule, and
//! the earliest pseudo-deadline runs. Meets every deadline at U ≤ m on any number of cores if all times are whole
//! quanta.
//!
//! ER-PD² (`er-pd2`) lets a subtask run before its window begins, once the subtask before it is done. It is optimal as
//! well, with shorter response times.
//!
//! Reference: Anderson and Srinivasan, JCSS 68(1), 2004. Subtask i (from 1) of a job of e quanta in a window of p
//! quanta has the window [⌊(i−1)p/e⌋, ⌈ip/e⌉). Order: pseudo-deadline, then overlap bit 1 first, then the later group
//! deadline.
//! Ties: earlier release, then lower task index.
//!
//! Decisions are made at multiples of the quantum. As usual in Pfair scheduling, a core that becomes free between them
//! stays idle. Execution times are rounded up and windows rounded inward to whole quanta. If times are not whole
//! quanta, or in overload, the scheduler is best effort.

use std::cmp::Reverse;

use temponet_task::{Assignment, Job, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::quantum::quantum;
use crate::shared::selection::Selection;

pub(crate) struct Pd2 {
    given: Option<Time>,
    quantum: Time,
    /// ER-PD²: a subtask may run as soon as the one before it is done.
    early_release: bool,
    selection: Selection<Priority>,
    /// The next multiple of the quantum, if a decision was asked for. On a real machine it comes later than asked.
    asked: Option<Time>,
}

/// Priority of a job. The first part is whether its subtask has to wait for its window; such jobs come last and are not
/// run.
type Priority = (bool, Time, Reverse<bool>, Reverse<u64>);

impl Pd2 {
    pub fn new(given: Option<Time>) -> Pd2 {
        Pd2 { given, quantum: Time::ZERO, early_release: false, selection: Selection::new(), asked: None }
    }

    pub fn with_early_release(given: Option<Time>) -> Pd2 {
        Pd2 { early_release: true, ..Pd2::new(given) }
    }
}

/// Priority of the next subtask of a job: whether it must still wait at `now`, pseudo-deadline, overlap bit, group
/// deadline.
fn priority(job: &Job, quantum: Time, now: Time) -> Priority {
    let quanta = |time: Time| time.0.div_ceil(quantum.0);
    let first = quanta(job.release);
    let window = (job.deadline.0 / quantum.0).saturating_sub(first).max(1);
    let needed = quanta(job.wcet).clamp(1, window);
    // With whole quanta `executed` is a multiple of the quantum here.
    let subtask = (job.executed.0 / quantum.0).min(needed - 1) + 1;
    let wide = |value: u64| u128::from(value);
    let ceil = |i: u64| (wide(i) * wide(window)).div_ceil(wide(needed)) as u64;
    let floor = |i: u64| (wide(i) * wide(window) / wide(needed)) as u64;
    let overlaps = ceil(subtask) > floor(subtask);
    let is_heavy = 2 * needed >= window;
    let group_deadline = if !overlaps || !is_heavy {
        0
    } else {
        // The complement of the fluid schedule has the rate (window − needed)/window; its windows end the cascades of
        // this job's.
        let spare = window - needed;
        let gaps = (wide(ceil(subtask)) * wide(spare)).div_ceil(wide(window));
        first + (gaps * wide(window)).div_ceil(wide(spare)) as u64
    };
    let waits = now < quantum * (first + floor(subtask - 1));
    (waits, quantum * (first + ceil(subtask)), Reverse(overlaps), Reverse(group_deadline))
}

impl Scheduler for Pd2 {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.quantum = quantum(self.given, system);
        self.asked = None;
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let asked = self.asked.take();
        if view.active.is_empty() {
            return;
        }
        let next = view.now.next_multiple(self.quantum);
        assignment.wake_at(next);
        self.asked = Some(next);
        if !view.now.0.is_multiple_of(self.quantum.0) && asked.is_none_or(|asked| view.now < asked) {
            for (core, running) in view.system.core_ids().zip(view.running) {
                if let Some(id) = running {
                    assignment.run(core, *id);
                }
            }
            return;
        }
        let priority = |job: &Job| {
            let (waits, deadline, overlap, group) = priority(job, self.quantum, view.now);
            (waits && !self.early_release, deadline, overlap, group)
        };
        let chosen = self.selection.select(view, view.cores(), priority);
        let eligible = chosen.iter().filter(|id| !priority(view.job(**id)).0).count();
        assignment.place(view, &chosen[..eligible]);
    }
}
