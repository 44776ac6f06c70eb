//! The shield: any scheduler chooses, and it is overruled where its choice could cost a deadline that is otherwise
//! safe.
//!
//! - *One core.* If EDF is proved to meet every deadline, the shield is *armed*. At each decision it computes how long
//!   the chosen job can run without endangering a job with an earlier deadline. It lets the job run for that long, and
//!   runs EDF where there is no such time. So no deadline is missed, whichever job the scheduler chooses.
//! - *Several cores.* If some scheduler is proved to meet every deadline, that scheduler stands in and decides.
//! - *Disarmed.* Where nothing is proved, or from an overload until the next idle instant, the inner scheduler decides.
//!   The only exception: an impossible job never takes a core from a job that can still meet its deadline.
//!
//! Statement, proof and premises in words: `docs/shield.md`.
//!
//! Ties: those of the inner scheduler; where EDF runs, earlier release, then lower task index.

mod monitor;
mod no_guarantee;
mod premise;
mod role;
mod slack;

use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView};

use monitor::{Monitor, is_idle_instant};
use premise::{Premise, SafeScheduler};
use slack::{Claims, Slack};

pub use no_guarantee::NoGuarantee;
pub use role::Role;

/// A scheduler behind the shield.
pub struct Shield<S> {
    inner: S,
    premise: Result<Premise, NoGuarantee>,
    is_armed: bool,
    monitor: Monitor,
    claims: Claims,
    /// Assignment that the inner scheduler proposes.
    proposal: Assignment,
    /// Assignment of the stand-in.
    plan: Assignment,
    counters: ShieldCounters,
}

/// Counts of what a shield did since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShieldCounters {
    /// All decisions.
    pub decisions: u64,
    /// Decisions made while the shield was armed.
    pub armed: u64,
    /// Decisions that differ from what the inner scheduler proposed, armed or not.
    pub overrides: u64,
    /// Armed, one core: decisions in which the inner scheduler chose another job than EDF and was allowed to.
    pub deviations: u64,
    /// Armed: decisions of a stand-in, which does not use the proposal of the inner scheduler.
    pub stand_in: u64,
    /// Jobs that the inner scheduler abandoned and the shield kept. Where every deadline can be met, no job has to be
    /// abandoned.
    pub kept: u64,
    /// Impossible jobs that lost their core to a job that can still meet its deadline.
    pub impossible: u64,
    /// Number of times the shield was disarmed during the run.
    pub lapses: u64,
    /// Armed, one core: decisions in which it would have taken too long to tell whether the choice is safe, so EDF ran.
    /// They count as overrides, too.
    pub unknown: u64,
}

impl<S: Scheduler> Shield<S> {
    /// Puts a scheduler behind the shield.
    pub fn new(inner: S) -> Shield<S> {
        Shield {
            inner,
            premise: Err(NoGuarantee::NotStarted),
            is_armed: false,
            monitor: Monitor::default(),
            claims: Claims::default(),
            proposal: Assignment::default(),
            plan: Assignment::default(),
            counters: ShieldCounters::default(),
        }
    }

    /// What the shield did since the run began.
    pub fn counters(&self) -> ShieldCounters {
        self.counters
    }

    /// The scheduler behind the shield.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Whether the shield guarantees every deadline at present.
    pub fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Reason why the shield is never armed in this run; none if it can be armed.
    pub fn why_disarmed(&self) -> Option<&NoGuarantee> {
        self.premise.as_ref().err()
    }

    /// What the shield does on this system as long as jobs keep to the premise.
    pub fn role(&self) -> Role {
        Role::of(&self.premise)
    }

    /// Disarms when the premise is violated, and arms again when no effect of the violation is left.
    fn look_around(&mut self, view: &SystemView<'_>) {
        let Ok(premise) = &self.premise else { return };
        let violations = self.monitor.observe(view, premise);
        let was_armed = self.is_armed;
        let is_sound = (was_armed && !violations.is_overload) || is_idle_instant(view);
        self.is_armed = is_sound && !violations.breaks_model && !violations.breaks_pattern;
        self.counters.lapses += u64::from(was_armed && !self.is_armed);
        if violations.breaks_pattern {
            self.premise = Err(NoGuarantee::PatternBroken);
        }
    }

    /// Decides on one core while armed.
    fn decide_on_one_core(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let earliest = view.ready().min_by_key(|(_, job)| (job.deadline, job.tie()));
        let wanted = self.proposal.cores()[0];
        let Some((edf, first)) = earliest else {
            self.proposal.wake().into_iter().for_each(|date| assignment.wake_at(date));
            return;
        };
        let chosen = match wanted.map(|id| (id, view.job(id))) {
            None => edf,
            Some((id, _)) if id == edf => id,
            Some((id, job)) => match self.slack(view, first, job) {
                Slack::Spare(time) if time.0 > 0 => {
                    assignment.wake_at(view.now + time);
                    self.counters.deviations += 1;
                    id
                }
                // Overdrawn: time was lost to something that is not part of any wcet, such as switching. EDF still
                // loses least.
                Slack::Spare(_) | Slack::Overdrawn => edf,
                Slack::Unknown => {
                    self.counters.unknown += 1;
                    edf
                }
            },
        };
        assignment.run(0, chosen);
        if wanted == Some(chosen) {
            self.proposal.wake().into_iter().for_each(|date| assignment.wake_at(date));
        } else {
            self.counters.overrides += 1;
        }
    }

    /// Returns how long `job` can run before `first`, the job with the earliest deadline, and all other work with
    /// deadlines before that of `job`; at most the remaining work of `job`.
    fn slack(&mut self, view: &SystemView<'_>, first: &Job, job: &Job) -> Slack {
        let Ok(premise) = &self.premise else { return Slack::Overdrawn };
        self.claims.clear();
        for (_, other) in view.ready().filter(|(_, other)| other.deadline < job.deadline) {
            self.claims.add_job(other.deadline, premise.remaining(other));
        }
        for (place, task) in premise.tasks.iter().enumerate() {
            let Some(arrival) = self.monitor.next_arrival(view.now, place, premise) else { continue };
            if arrival + task.deadline < job.deadline {
                self.claims.add_task(arrival + task.deadline, task.period, task.work());
            }
        }
        self.claims.slack(view.now, first.deadline, job.deadline, premise.remaining(job))
    }

    /// The inner scheduler decides, but impossible jobs make way. With `keeps_all`, no job is abandoned.
    fn let_inner_rule(&mut self, view: &SystemView<'_>, assignment: &mut Assignment, keeps_all: bool) {
        if keeps_all {
            let cores = self.proposal.cores().iter().enumerate();
            cores.filter_map(|(core, id)| Some((core, (*id)?))).for_each(|(core, id)| assignment.run(core, id));
            if self.proposal.has_speeds() {
                (0..view.cores()).for_each(|core| assignment.set_speed(core, self.proposal.speed(core)));
            }
            self.proposal.wake().into_iter().for_each(|date| assignment.wake_at(date));
            self.counters.kept += self.proposal.abandoned().len() as u64;
        } else {
            std::mem::swap(assignment, &mut self.proposal);
        }
        let mut replaced = 0;
        for core in 0..view.cores() {
            let Some(id) = assignment.cores()[core].filter(|id| view.job(*id).is_impossible(view.now)) else {
                continue;
            };
            let can_take_over = |id: &JobId, job: &Job| {
                let is_free = !assignment.cores().contains(&Some(*id)) && !assignment.abandoned().contains(id);
                is_free && !job.is_impossible(view.now)
            };
            let others = view.ready().filter(|(other, job)| *other != id && can_take_over(other, job));
            let Some((best, _)) = others.min_by_key(|(_, job)| (job.deadline, job.tie())) else { break };
            assignment.run(core, best);
            replaced += 1;
        }
        self.counters.impossible += replaced;
        self.counters.overrides += u64::from(replaced > 0);
    }
}

impl<S: Scheduler> Scheduler for Shield<S> {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.inner.start(system)?;
        self.premise = premise::prove(system);
        if let Ok(Premise { safe: SafeScheduler::StandIn { scheduler: stand_in, .. }, .. }) = &mut self.premise {
            stand_in.start(system)?;
        }
        self.is_armed = self.premise.is_ok();
        self.monitor.start(system);
        self.claims.reserve(2 * system.tasks.len());
        self.counters = ShieldCounters::default();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.counters.decisions += 1;
        self.proposal.reset(view.cores());
        self.inner.decide(view, &mut self.proposal);
        // An illegal proposal is passed on, so that the caller reports the error.
        if self.proposal.cores().iter().flatten().any(|id| !view.active.contains(id)) {
            std::mem::swap(assignment, &mut self.proposal);
            return;
        }
        self.look_around(view);
        let mut keeps_all = false;
        if let Ok(Premise { safe: SafeScheduler::StandIn { scheduler: stand_in, .. }, .. }) = &mut self.premise {
            // The stand-in must see every event, and it does not see jobs that others abandon. So it is asked at every
            // decision, and no job is abandoned.
            self.plan.reset(view.cores());
            stand_in.decide(view, &mut self.plan);
            keeps_all = true;
        }
        if self.is_armed && keeps_all {
            let is_wanted = |id: &Option<JobId>| self.proposal.cores().contains(id);
            self.counters.overrides += u64::from(!self.plan.cores().iter().all(is_wanted));
            self.counters.stand_in += 1;
            std::mem::swap(assignment, &mut self.plan);
        } else if self.is_armed {
            self.decide_on_one_core(view, assignment);
        }
        if self.is_armed {
            self.counters.armed += 1;
            self.counters.kept += self.proposal.abandoned().len() as u64;
        } else {
            self.let_inner_rule(view, assignment, keeps_all);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let ShieldCounters { overrides, stand_in, .. } = self.counters;
        let own = [("shield_overrides", overrides), ("stand_in_decisions", stand_in)];
        own.into_iter().chain(self.inner.counters()).collect()
    }
}
