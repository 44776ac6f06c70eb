//! Who holds which resource, who waits for whom, and which job runs if a waiting one is chosen.
//!
//! Whoever runs jobs keeps the state up to date: it says when jobs enter and leave and how far they have come, and
//! gives a running job what it wants while that is free. A resource has no queue. Once it is free, every job that wants
//! it can run, and the one that runs first takes it; the order among them is the scheduler's.
//!
//! A job that comes to several locks at the same work takes all of them or none. While one of them is taken it waits
//! without the others, so it never gets a core only to lose it in the same instant.

use alloc::sync::Arc;
use alloc::{vec, vec::Vec};

use crate::sections::{Step, ceilings, preemption_levels, steps};
use crate::{Job, JobId, Protocol, ResourceId, System, Time};

/// State of the resources of a system with critical sections.
#[derive(Clone, Debug)]
pub struct Locks {
    rules: Arc<Rules>,
    /// Job that holds each resource.
    holders: Vec<Option<JobId>>,
    /// By job id.
    states: Vec<State>,
}

/// What does not change during a run.
#[derive(Debug)]
struct Rules {
    protocol: Protocol,
    /// Locks and unlocks, by task.
    steps: Vec<Vec<Step>>,
    /// Worst-case execution times, by task.
    wcets: Vec<Time>,
    /// Preemption levels, by task.
    levels: Vec<i64>,
    /// By resource.
    ceilings: Vec<i64>,
}

/// State of a job.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Number of locks and unlocks behind the job.
    passed: u32,
    /// Whether the job has to lock resources before it can go on.
    wants: bool,
    /// Resource that keeps the job from running, and the job that holds it.
    waits: Option<(ResourceId, JobId)>,
}

impl Locks {
    /// Creates the state in which no job is there; `None` if the system has no resources.
    pub fn of(system: &System) -> Option<Locks> {
        if !system.has_sections() {
            return None;
        }
        let resources = system.resources().len();
        let rules = Rules {
            protocol: system.protocol(),
            steps: system.tasks().iter().map(|task| steps(task, resources)).collect(),
            wcets: system.tasks().iter().map(|task| task.wcet).collect(),
            levels: preemption_levels(system.tasks()),
            ceilings: ceilings(system.tasks(), resources),
        };
        Some(Locks { rules: Arc::new(rules), holders: vec![None; resources], states: Vec::new() })
    }

    /// Returns the number of resources.
    pub fn resources(&self) -> usize {
        self.holders.len()
    }

    /// Returns the job that holds a resource.
    pub fn holder(&self, resource: ResourceId) -> Option<JobId> {
        self.holders.get(resource.index()).copied().flatten()
    }

    /// Returns whether a job has to lock resources before it can go on, be they free or not.
    pub fn wants_any(&self, id: JobId) -> bool {
        self.state(id).wants
    }

    /// Iterates over the resources that a job has to lock, all at once, before it can go on, be they free or not.
    pub fn wanted_by(&self, id: JobId, job: &Job) -> impl Iterator<Item = ResourceId> + '_ {
        let steps = if self.wants_any(id) { self.steps_ahead(id, job) } else { &[] };
        let (job, wcet) = (*job, self.rules.wcets.get(job.task.index()).copied().unwrap_or_default());
        let comes_now = move |step: &&Step| step.locks && step.work_in(&job, wcet) <= job.executed;
        steps.iter().take_while(comes_now).map(|step| step.resource)
    }

    /// Returns the resource that keeps a job from running and the job that holds it; `None` if the job can run.
    pub fn blocker(&self, id: JobId) -> Option<(ResourceId, JobId)> {
        self.state(id).waits
    }

    /// Returns whether a job cannot run now.
    pub fn is_blocked(&self, id: JobId) -> bool {
        self.state(id).waits.is_some()
    }

    /// Returns the job that runs if `id` is chosen: the job itself, or the one at the end of what it waits for. `None`
    /// if nothing can run in its place, because the protocol has no inheritance or because jobs wait for each other in
    /// a circle.
    pub fn runs_as(&self, id: JobId) -> Option<JobId> {
        let (mut runner, mut steps) = (id, 0);
        while let Some((_, holder)) = self.state(runner).waits {
            if self.rules.protocol == Protocol::None || steps > self.holders.len() {
                return None;
            }
            (runner, steps) = (holder, steps + 1);
        }
        Some(runner)
    }

    fn state(&self, id: JobId) -> State {
        self.states.get(id.index()).copied().unwrap_or_default()
    }

    /// Takes a job that has just been released.
    pub fn enter(&mut self, id: JobId, job: &Job) {
        if id.index() >= self.states.len() {
            self.states.resize(id.index() + 1, State::default());
        }
        self.states[id.index()] = State::default();
        self.advance(id, job, |_| {});
        self.states[id.index()].waits = self.found_blocker(id, job);
    }

    /// Forgets a job that leaves. `unlocked` is called for every resource that it held.
    pub fn leave(&mut self, id: JobId, mut unlocked: impl FnMut(ResourceId)) {
        for resource in ResourceId::all(self.holders.len()) {
            if self.holders[resource] == Some(id) {
                self.holders[resource] = None;
                unlocked(resource);
            }
        }
        if let Some(state) = self.states.get_mut(id.index()) {
            *state = State::default();
        }
    }

    /// Returns the work at the next lock or unlock of a job; `None` if it has none.
    pub fn next_work(&self, id: JobId, job: &Job) -> Option<Time> {
        self.step(id, job).map(|step| step.work_in(job, self.rules.wcets[job.task]))
    }

    fn step(&self, id: JobId, job: &Job) -> Option<Step> {
        self.steps_ahead(id, job).first().copied()
    }

    /// Iterates over the resources that a job has still to lock, in the order of its work.
    pub fn ahead(&self, id: JobId, job: &Job) -> impl Iterator<Item = ResourceId> + '_ {
        self.steps_ahead(id, job).iter().filter(|step| step.locks).map(|step| step.resource)
    }

    fn steps_ahead(&self, id: JobId, job: &Job) -> &[Step] {
        let steps = self.rules.steps.get(job.task.index()).map(Vec::as_slice).unwrap_or_default();
        steps.get(self.state(id).passed as usize..).unwrap_or_default()
    }

    /// Returns the work at which a job locks, for the first time from now on, a resource that `is_meant`, and the work
    /// at which it unlocks that resource.
    pub fn next_section(
        &self,
        id: JobId,
        job: &Job,
        is_meant: impl Fn(ResourceId) -> bool,
    ) -> Option<(ResourceId, Time, Time)> {
        let steps = self.steps_ahead(id, job);
        let at = steps.iter().position(|step| step.locks && is_meant(step.resource))?;
        let resource = steps[at].resource;
        let end = steps[at + 1..].iter().find(|step| step.resource == resource)?;
        let wcet = self.rules.wcets[job.task];
        Some((resource, steps[at].work_in(job, wcet), end.work_in(job, wcet)))
    }

    /// Returns the work at which a job unlocks a resource that it holds.
    pub fn end_of_section(&self, id: JobId, job: &Job, resource: ResourceId) -> Option<Time> {
        let end = self.steps_ahead(id, job).iter().find(|step| step.resource == resource && !step.locks)?;
        Some(end.work_in(job, self.rules.wcets[job.task]))
    }

    /// Unlocks what the job has come to the end of, and stops at the next lock that it has come to. `unlocked` is
    /// called for every resource that it unlocks.
    pub fn advance(&mut self, id: JobId, job: &Job, mut unlocked: impl FnMut(ResourceId)) {
        while let (Some(step), Some(work)) = (self.step(id, job), self.next_work(id, job)) {
            if work > job.executed {
                break;
            }
            if step.locks {
                self.states[id.index()].wants = true;
                break;
            }
            self.states[id.index()].passed += 1;
            if self.holders[step.resource] == Some(id) {
                self.holders[step.resource] = None;
                unlocked(step.resource);
            }
        }
    }

    /// Gives a running job everything that it wants now. Returns whether it can go on; if not, another job holds
    /// something that it wants next. `changed` is called for every resource that it locks (`true`) or unlocks again at
    /// once (`false`).
    pub fn take(&mut self, id: JobId, job: &Job, mut changed: impl FnMut(ResourceId, bool)) -> bool {
        while self.wants_any(id) {
            if self.held_by_others(id, job).next().is_some() {
                return false;
            }
            let first = self.state(id).passed as usize;
            let count = self.wanted_by(id, job).count();
            for at in first..first + count {
                let resource = self.rules.steps[job.task][at].resource;
                self.holders[resource] = Some(id);
                changed(resource, true);
            }
            let state = &mut self.states[id.index()];
            (state.wants, state.passed) = (false, state.passed + count as u32);
            self.advance(id, job, |resource| changed(resource, false));
        }
        true
    }

    /// Iterates over what a job wants and other jobs hold, with these jobs.
    fn held_by_others(&self, id: JobId, job: &Job) -> impl Iterator<Item = (ResourceId, JobId)> + '_ {
        let taken = move |resource: ResourceId| self.holders[resource].filter(|holder| *holder != id);
        self.wanted_by(id, job).filter_map(move |resource| Some((resource, taken(resource)?)))
    }

    /// Finds out anew who waits for whom among the active jobs. `freed` is called for every job that no longer waits.
    /// Returns whether there is one.
    pub fn update(&mut self, active: &[JobId], jobs: &[Job], mut freed: impl FnMut(JobId)) -> bool {
        let mut is_freed = false;
        for id in active {
            let before = self.state(*id).waits;
            let now = self.found_blocker(*id, &jobs[id.index()]);
            self.states[id.index()].waits = now;
            if before.is_some() && now.is_none() {
                is_freed = true;
                freed(*id);
            }
        }
        is_freed
    }

    /// Returns what keeps a job from running.
    fn found_blocker(&self, id: JobId, job: &Job) -> Option<(ResourceId, JobId)> {
        let held_by_other = |resource: ResourceId| self.holders[resource].filter(|holder| *holder != id);
        if let Some(found) = self.held_by_others(id, job).next() {
            return Some(found);
        }
        if self.rules.protocol != Protocol::Ceiling || job.last_core.is_some() {
            return None;
        }
        let level = *self.rules.levels.get(job.task.index())?;
        let held =
            ResourceId::all(self.holders.len()).filter_map(|resource| Some((resource, held_by_other(resource)?)));
        let above = held.filter(|(resource, _)| self.rules.ceilings[*resource] >= level);
        above.max_by_key(|(resource, _)| (self.rules.ceilings[*resource], core::cmp::Reverse(*resource)))
    }
}
