//! The shield: any scheduler chooses, and is overruled where its choice could cost a deadline that is otherwise safe.
//!
//! *One core.* If EDF is proved to meet every deadline, the shield is *armed*. At each decision it works out for how long the chosen job
//! can run without endangering one that is due earlier, allows for just that, and runs EDF where there is no such time. So no deadline
//! is missed, whoever chooses.
//! *Several cores.* If some scheduler is proved to meet every deadline, that one runs instead.
//! *Disarmed*, that is where nothing is proved, or from an overload until the next idle instant, the inner scheduler rules, except that a
//! job that is impossible never takes a core from one that can still make it.
//!
//! Statement, proof and premises in words: `docs/shield.md`.
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
    /// What the inner scheduler wants.
    proposal: Assignment,
    /// What the stand-in wants, on several cores.
    plan: Assignment,
    counters: ShieldCounters,
}

/// What a shield did since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShieldCounters {
    /// Decisions in all.
    pub decisions: u64,
    /// Of these, those taken while it was armed.
    pub armed: u64,
    /// Decisions that are not what the inner scheduler wanted, armed or not.
    pub overrides: u64,
    /// Armed, one core: the inner scheduler wanted another job than EDF and was allowed to.
    pub deviations: u64,
    /// Armed, a stand-in decided alone: what the inner scheduler wanted was not used.
    pub stand_in: u64,
    /// Jobs given up that were kept, because where everything can be met nothing needs to be given up.
    pub kept: u64,
    /// Impossible jobs that lost their core to one that can still make it.
    pub impossible: u64,
    /// Times it was disarmed during the run.
    pub lapses: u64,
    /// Armed, one core: it would have taken too long to tell whether the choice is safe, so EDF ran. These are overrides, too.
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

    /// What it did since the run began.
    pub fn counters(&self) -> ShieldCounters {
        self.counters
    }

    /// Whether it guarantees every deadline at present.
    pub fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Why it is not armed at any time of this run; none if it is.
    pub fn why_disarmed(&self) -> Option<&NoGuarantee> {
        self.premise.as_ref().err()
    }

    /// What it does on this system as long as jobs keep to what was proved.
    pub fn role(&self) -> Role {
        Role::of(&self.premise)
    }

    /// Disarms after what the premise does not allow for, and arms again when nothing of it is left.
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

    /// Armed, on one core.
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
                // Overdrawn, time is lost to something that is in no wcet, such as switching: EDF still loses least.
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

    /// For how long `job` can run before `first`, which is due earliest, and all that is due before `job`; at most what it needs.
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

    /// The inner scheduler rules, but impossible jobs make way. `keeps_all`: nothing is given up.
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
        // Whoever runs the decisions tells what is wrong with this one.
        if self.proposal.cores().iter().flatten().any(|id| !view.active.contains(id)) {
            std::mem::swap(assignment, &mut self.proposal);
            return;
        }
        self.look_around(view);
        let mut keeps_all = false;
        if let Ok(Premise { safe: SafeScheduler::StandIn { scheduler: stand_in, .. }, .. }) = &mut self.premise {
            // It must see every event, and every job whose end it does not: so it is always asked, and nothing is given up.
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
