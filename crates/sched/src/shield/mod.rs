//! The shield: any scheduler chooses, and it is overruled where its choice could cost a deadline that is guaranteed.
//!
//! - *The guarantee* ([`Guarantee`]). Every task if everything fits; otherwise the tasks that ask for it or the most
//!   critical ones, as many as fit. Each guaranteed task belongs to one core.
//! - *The rule.* At each decision the shield computes for how long each core can run anything else without endangering
//!   its guaranteed tasks. It lets the chosen jobs run for that long. A core without slack runs the guaranteed job with
//!   the earliest deadline. So no guaranteed deadline is missed, whichever jobs the scheduler chooses.
//! - *Stand-in.* If everything fits on several cores, but the tasks cannot be divided among them, a scheduler that is
//!   proved to meet every deadline decides.
//! - *Disarmed.* Where nothing is proved the inner scheduler decides.
//! - *Always.* An impossible job never takes a core from a job that can still meet its deadline, unless the caller lets
//!   the shield step aside.
//!
//! Statement, proof and premises in words: `docs/shield.md`.
//!
//! Ties: those of the inner scheduler; where EDF runs, earlier release, then lower task index.

mod arrivals;
mod choice;
mod costs;
mod guarantee;
mod interrupts;
mod no_guarantee;
mod pins;
mod provable;
mod queue;
mod reasons;
mod role;
mod rule;
mod slack;
mod slices;
mod stand_in;
mod stretches;

use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use arrivals::Arrivals;
use guarantee::Premise;
use rule::{Now, Rule, quantum};

pub use guarantee::Guarantee;
pub use no_guarantee::{NoGuarantee, WhyNot};
pub use role::Role;

/// A scheduler behind the shield.
pub struct Shield<S> {
    inner: S,
    premise: Result<Premise, NoGuarantee>,
    arrivals: Arrivals,
    rule: Rule,
    /// Time after which an inner scheduler that is overruled may be asked again.
    patience: Time,
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
    /// Decisions made while every job of a guaranteed task was guaranteed.
    pub armed: u64,
    /// Decisions that differ from what the inner scheduler proposed, armed or not.
    pub overrides: u64,
    /// Decisions that let a core run something else while its guaranteed job with the earliest deadline waits.
    pub deviations: u64,
    /// Decisions that left no choice, so that the inner scheduler was not asked.
    pub unasked: u64,
    /// Decisions of a stand-in. The inner scheduler is not asked.
    pub stand_in: u64,
    /// Guaranteed jobs that the inner scheduler abandoned and the shield kept.
    pub kept: u64,
    /// Impossible jobs that lost their core to a job that can still meet its deadline.
    pub impossible: u64,
    /// Jobs of guaranteed tasks that lost their guarantee: they came too early, took too long, or, because the premise
    /// was violated in another way, missed their deadline. With a stand-in, the number of times it was disarmed.
    pub lapses: u64,
    /// Decisions in which it would have taken too long to tell whether the choice is safe, so EDF ran. They count as
    /// overrides, too.
    pub unknown: u64,
}

impl<S: Scheduler> Shield<S> {
    /// Puts a scheduler behind the shield.
    pub fn new(inner: S) -> Shield<S> {
        Shield {
            inner,
            premise: Err(NoGuarantee::NotStarted),
            arrivals: Arrivals::default(),
            rule: Rule::default(),
            patience: Time::ZERO,
            proposal: Assignment::default(),
            plan: Assignment::default(),
            counters: ShieldCounters::default(),
        }
    }

    /// What the shield did since the run began.
    pub fn counters(&self) -> ShieldCounters {
        self.counters
    }

    /// Lets the scheduler behind the shield decide as if there were no shield, for callers that find nothing
    /// guaranteed ([`Shield::why_disarmed`]). Impossible jobs do not make way.
    pub fn step_aside(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.counters.decisions += 1;
        self.inner.decide(view, assignment);
    }

    /// The scheduler behind the shield.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The scheduler without its shield.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// Whether the guarantee holds at present for every job of the guaranteed tasks.
    pub fn is_armed(&self) -> bool {
        match &self.premise {
            Ok(Premise::Reserved(_)) => self.arrivals.is_complete(),
            Ok(Premise::StandIn(stand_in, _)) => stand_in.is_armed,
            Err(_) => false,
        }
    }

    /// Reason why nothing is guaranteed in this run; none if something is.
    pub fn why_disarmed(&self) -> Option<&NoGuarantee> {
        self.premise.as_ref().err()
    }

    /// What the shield does on this system as long as jobs keep to the premise.
    pub fn role(&self) -> Role {
        Role::of(&self.premise)
    }

    /// Checks whether jobs kept to the premise since the last decision.
    fn look_around(&mut self, view: &SystemView<'_>) {
        let losses =
            kept_tasks(&self.premise).map(|guarantee| self.arrivals.observe(view, guarantee)).unwrap_or_default();
        match &mut self.premise {
            Ok(Premise::Reserved(_)) => {
                self.counters.lapses += losses.jobs;
                if losses.breaks_pattern {
                    self.premise = Err(NoGuarantee::PatternBroken);
                }
            }
            Ok(Premise::StandIn(stand_in, guarantee)) => {
                let was_armed = stand_in.is_armed;
                let is_void = stand_in.look_around(view);
                self.counters.lapses += u64::from(was_armed && !stand_in.is_armed);
                if is_void {
                    self.premise = guarantee.take().map(Premise::Reserved).ok_or(NoGuarantee::PatternBroken);
                }
            }
            Err(_) => {}
        }
    }

    /// Asks the inner scheduler and takes the cores from impossible jobs. Returns whether that overrules it; none if
    /// the proposal is illegal.
    fn ask(&mut self, view: &SystemView<'_>) -> Option<bool> {
        self.proposal.reset(view.cores());
        self.inner.decide(view, &mut self.proposal);
        self.proposal.check(view).ok()?;
        let replaced = make_way(view, &mut self.proposal);
        self.counters.impossible += replaced;
        Some(replaced > 0)
    }

    /// Counts a proposal that is overruled. A scheduler that is overruled may ask for the same over and over, and so
    /// may one whose job pays for each decision, so its wake-up is limited.
    fn take_note(&mut self, view: &SystemView<'_>, is_overruled: bool) {
        self.counters.overrides += u64::from(is_overruled);
        if is_overruled || view.system.costs().decision > Time::ZERO {
            self.proposal.wake_no_sooner_than(view.now + self.patience);
        }
    }

    /// Lets the inner scheduler decide. With `keeps_all`, no job is abandoned. An illegal proposal is passed on, so
    /// that the caller reports the error.
    fn let_inner_rule(&mut self, view: &SystemView<'_>, assignment: &mut Assignment, keeps_all: bool) {
        if let Some(is_overruled) = self.ask(view) {
            self.take_note(view, is_overruled);
            if keeps_all {
                self.counters.kept += self.proposal.abandoned().len() as u64;
                self.proposal.keep_all();
            }
        }
        std::mem::swap(assignment, &mut self.proposal);
    }

    /// Decides where each core keeps time for its guaranteed tasks. The inner scheduler chooses within the slack.
    fn decide_within_slack(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let Some(guarantee) = kept_tasks(&self.premise) else { return };
        let now = Now { view, guarantee, arrivals: &self.arrivals };
        self.rule.look(now);
        if self.rule.leaves_no_choice(now, assignment) {
            self.proposal.reset(view.cores());
            self.inner.watch(view, &mut self.proposal);
            self.counters.unasked += 1;
            return;
        }
        let Some(makes_way) = self.ask(view) else {
            // As in `let_inner_rule`.
            return std::mem::swap(assignment, &mut self.proposal);
        };
        let Some(guarantee) = kept_tasks(&self.premise) else { return };
        let now = Now { view, guarantee, arrivals: &self.arrivals };
        let applied = self.rule.apply(now, &self.proposal, assignment);
        self.take_note(view, makes_way || applied.overrides);
        self.counters.deviations += u64::from(applied.deviates);
        self.counters.unknown += u64::from(applied.is_unknown);
        // On one core the job in turn would pay for the decision at a wake-up.
        let is_wake_up_free = view.system.costs().decision == Time::ZERO || view.cores() > 1 || !self.rule.runs_first();
        self.proposal.wake().filter(|_| is_wake_up_free).into_iter().for_each(|date| assignment.wake_at(date));
        let keeps_all = matches!(self.premise, Ok(Premise::StandIn(..)));
        for id in self.proposal.abandoned() {
            let is_pinned = self.rule.is_planned(*id) && !view.job(*id).held;
            if keeps_all || self.arrivals.is_guaranteed(*id) || is_pinned {
                self.counters.kept += 1;
            } else {
                assignment.abandon(*id);
                self.arrivals.left(*id);
            }
        }
    }

    /// A stand-in decides. It must see every event, and it does not see jobs that others abandon. So it is asked at
    /// every decision, and no job is abandoned.
    fn stand_in(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if let Ok(Premise::StandIn(stand_in, _)) = &mut self.premise {
            self.plan.reset(view.cores());
            stand_in.scheduler.decide(view, &mut self.plan);
        }
        if self.is_armed() {
            self.proposal.reset(view.cores());
            self.inner.watch(view, &mut self.proposal);
            self.counters.kept += self.proposal.abandoned().len() as u64;
            self.counters.stand_in += 1;
            std::mem::swap(assignment, &mut self.plan);
        } else if matches!(self.premise, Ok(Premise::StandIn(_, Some(_)))) {
            self.decide_within_slack(view, assignment);
        } else {
            self.let_inner_rule(view, assignment, true);
        }
    }
}

/// The tasks that cores keep time for, if any.
fn kept_tasks(premise: &Result<Premise, NoGuarantee>) -> Option<&Guarantee> {
    premise.as_ref().ok().and_then(Premise::kept_tasks)
}

/// Gives the cores of impossible jobs to jobs that can still meet their deadlines, the earliest deadline first. Returns
/// the number of these cores.
fn make_way(view: &SystemView<'_>, proposal: &mut Assignment) -> u64 {
    let mut replaced = 0;
    if view.locks.is_some() {
        // Others may wait for what an impossible job holds, and those that could take its place may have to wait
        // themselves.
        return replaced;
    }
    for core in view.system.core_ids().filter(|core| !view.is_held(*core)) {
        let Some(id) = proposal.cores()[core].filter(|id| view.job(*id).is_impossible(view.now)) else { continue };
        let can_take_over = |id: &JobId, job: &Job| {
            // In a long backlog most jobs are impossible.
            let is_possible = !job.is_impossible(view.now) && view.may_run(job, core);
            is_possible && !proposal.cores().contains(&Some(*id)) && !proposal.abandoned().contains(id)
        };
        let others = view.ready().filter(|(other, job)| *other != id && can_take_over(other, job));
        let Some((best, _)) = others.min_by_key(|(_, job)| (job.deadline, job.tie())) else { break };
        proposal.run(core, best);
        replaced += 1;
    }
    replaced
}

impl<S: Scheduler> temponet_task::Wrapper for Shield<S> {
    temponet_task::wraps!(inner: S);

    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.inner.start(system)?;
        self.premise = guarantee::prove(system);
        if let Some(guarantee) = kept_tasks(&self.premise) {
            self.rule.start(system, guarantee);
        }
        if let Ok(Premise::StandIn(stand_in, _)) = &mut self.premise {
            stand_in.start(system)?;
        }
        self.patience = quantum(system.tasks().iter().map(|task| task.deadline).min().unwrap_or_default());
        self.arrivals.start(system);
        self.counters = ShieldCounters::default();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.counters.decisions += 1;
        self.look_around(view);
        match &self.premise {
            // A system with another number of cores is not the one that the shield was started with.
            Ok(premise) if premise.kept_tasks().is_some() && view.cores() != self.rule.cores() => {
                self.let_inner_rule(view, assignment, false);
            }
            Ok(Premise::Reserved(_)) => self.decide_within_slack(view, assignment),
            Ok(Premise::StandIn(..)) => self.stand_in(view, assignment),
            Err(_) => self.let_inner_rule(view, assignment, false),
        }
        self.counters.armed += u64::from(self.is_armed());
    }

    /// Decides: the shield needs every event, and what it does with the scheduler inside depends on them.
    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        Scheduler::decide(self, view, scratch);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let ShieldCounters { overrides, unasked, stand_in, lapses, .. } = self.counters;
        let own = [
            ("shield_overrides", overrides),
            ("shield_unasked", unasked),
            ("stand_in_decisions", stand_in),
            ("guarantee_lapses", lapses),
        ];
        own.into_iter().chain(self.inner.counters()).collect()
    }
}
