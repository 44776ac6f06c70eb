//! A stand-in: on several cores, where the tasks cannot be divided among the cores, a scheduler that is proved to meet
//! every deadline decides alone. This module chooses it, and checks during the run that jobs arrive and take their time
//! as the proof assumes.

use temponet_analysis::{Sporadic, WorstCase};
use temponet_task::{Event, Job, NotApplicable, Scheduler, System, SystemView, Time};

use super::guarantee::as_set;
use crate::catalog::Entry;
use crate::proofs::Facts;

/// A scheduler that decides alone, and what its proof relies on.
pub(super) struct StandIn {
    /// Name in the catalog.
    pub name: &'static str,
    pub scheduler: Box<dyn Scheduler>,
    /// Whether every deadline is guaranteed at present.
    pub is_armed: bool,
    /// Tasks in the order of the set. Each wcet is the bound that jobs have to keep to.
    tasks: Vec<Sporadic>,
    /// Whether the proof holds only for these exact arrivals. Otherwise jobs may also arrive later.
    is_exact: bool,
    /// For each task, a date before which none of its unreleased jobs arrives.
    next: Vec<Time>,
}

/// Violations of the premise since the last decision.
#[derive(Clone, Copy, Debug, Default)]
struct Violations {
    /// A job was released too early or too late, or its wcet or deadline is not that of its task.
    breaks_model: bool,
    /// Arrivals have left the pattern that the proof relies on. This cannot be undone.
    breaks_pattern: bool,
    /// A job took too long or missed its deadline.
    is_overload: bool,
}

const DP_WRAP: &str = "dp-wrap";

impl StandIn {
    /// Returns a scheduler that is proved to meet every deadline. The candidates are in order of increasing migrations,
    /// and the first proved one is taken.
    pub fn proved(system: &System, covers_overruns: bool) -> Option<StandIn> {
        if system.cores == 1 || system.costs.decision > Time::ZERO {
            return None;
        }
        let set = as_set(system, covers_overruns);
        let worst_case = WorstCase::of(&set).ok()?;
        if worst_case.is_overloaded() == Some(true) {
            return None;
        }
        let facts = Facts::with(&set, worst_case.clone());
        let is_proved = |name: &&str| Entry::find(name).is_some_and(|entry| entry.proof(&facts).is_some());
        let name = ["cd-split", DP_WRAP, "edf"].into_iter().find(is_proved)?;
        let scheduler = crate::build(name).ok()?;
        let (tasks, is_exact) = (worst_case.tasks, name == DP_WRAP);
        Some(StandIn { name, scheduler, is_armed: false, tasks, is_exact, next: Vec::new() })
    }

    pub fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.next.clear();
        self.next.extend(system.tasks.iter().map(|task| task.offset));
        self.is_armed = true;
        self.scheduler.start(system)
    }

    /// Disarms when the premise is violated, and arms again when no effect of the violation is left. Returns whether the
    /// proof is void for the rest of the run.
    pub fn look_around(&mut self, view: &SystemView<'_>) -> bool {
        let violations = self.observe(view);
        let is_sound = (self.is_armed && !violations.is_overload) || is_idle_instant(view);
        self.is_armed = is_sound && !violations.breaks_model && !violations.breaks_pattern;
        violations.breaks_pattern
    }

    /// Records the events since the last decision. Returns the violations among them.
    fn observe(&mut self, view: &SystemView<'_>) -> Violations {
        let mut violations = Violations::default();
        for event in view.events {
            let job = view.job(event.job());
            match *event {
                Event::Released(_) => self.released(job, &mut violations),
                Event::Completed(_) => {
                    violations.is_overload |= self.bound(job).is_none_or(|bound| job.executed > bound)
                }
                Event::Aborted(_) | Event::DeadlinePassed(_) => violations.is_overload = true,
            }
        }
        // A job that exceeds its bound is on a core.
        let overruns = |job: &Job| self.bound(job).is_none_or(|bound| job.executed >= bound);
        violations.is_overload |= view.running.iter().flatten().any(|id| overruns(view.job(*id)));
        violations
    }

    fn bound(&self, job: &Job) -> Option<Time> {
        self.tasks.get(job.task as usize).map(|task| task.wcet)
    }

    fn released(&mut self, job: &Job, violations: &mut Violations) {
        let (Some(task), Some(next)) = (self.tasks.get(job.task as usize), self.next.get_mut(job.task as usize)) else {
            violations.breaks_model = true;
            return;
        };
        let arrival = job.deadline.saturating_sub(task.deadline);
        let is_in_time = arrival + task.deadline == job.deadline && arrival <= job.release;
        let is_expected = arrival == *next || (task.jobs > 1 && arrival + task.period == *next);
        violations.breaks_pattern |= self.is_exact && !is_expected;
        let keeps_apart = arrival >= *next || is_expected;
        let keeps_promise = is_in_time && job.release <= arrival + task.jitter && job.wcet <= task.wcet;
        violations.breaks_model |= !keeps_apart || !keeps_promise;
        *next = (*next).max(arrival + task.period);
    }
}

/// Whether no job was waiting just before, that is, whether every ready job has just been released.
fn is_idle_instant(view: &SystemView<'_>) -> bool {
    view.ready().all(|(_, job)| job.release == view.now && job.executed == Time::ZERO && job.deadline > view.now)
}
