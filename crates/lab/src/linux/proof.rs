//! What settings guarantee, proved task by task, whoever made them.
//!
//! *SCHED_FIFO on one processor.* The response-time test of fixed priorities. Threads of equal priority count as if each
//! of them went first, because a thread that goes on without sleeping keeps its place in the queue. Reservations on the
//! same processor count as tasks above, with their budgets.
//!
//! *SCHED_FIFO on all processors.* The global response-time test, if no two threads have the same priority and no job
//! can be waiting when the next one of its task arrives.
//!
//! *SCHED_DEADLINE.* A reservation gives a job its budget by the end of the reservation's deadline after its release. If
//! budget ≥ wcet, period ≤ the task's, and deadline ≤ the task's deadline and period less its jitter, then each job
//! finds a full budget and ends in time, provided that the reservations themselves are always served: EDF's demand test
//! on one processor, GFB, BAK, BCL and RTA on several. A shorter deadline than the task's leaves room for its jitter.
//!
//! Of the fair class nothing is proved. All of this presupposes what every proof here does: jobs keep to their wcets and
//! separations, and costs are those of the set.

use temponet_analysis::{
    NotAnalyzable, Order, Outcome, PriorityRule, Sporadic, StepBudget, WorstCase, bak, bcl, dependent_response_times,
    gfb, qpa, response_among, rta,
};
use temponet_task::{CoreId, TaskSet, Time};

use super::settings::{Policy, Settings, time_to_serve, wakes_once};

/// Proof that a task is always in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Upper bound on the response time, from arrival to completion.
    pub response: Time,
    /// Name of the test.
    pub by: &'static str,
}

/// Returns for each task of a set the proof that it is always in time with these settings; none where nothing is proved.
pub fn proved(set: &TaskSet, settings: &Settings) -> Vec<Option<Bound>> {
    let applied = settings.applied(set);
    let nothing = vec![None; set.tasks().len()];
    if !settings.is_admitted(set.cores()) {
        return nothing;
    }
    match WorstCase::of(&applied) {
        Ok(worst_case) if worst_case.tasks.len() == nothing.len() => Proof::new(settings, worst_case).of_all(),
        Err(NotAnalyzable::Precedence | NotAnalyzable::SharedResources) => dependent(&applied, settings),
        _ => nothing,
    }
}

/// Proofs for tasks that follow each other or share resources: all by SCHED_FIFO, each on one processor, no two of equal
/// priority there.
fn dependent(applied: &TaskSet, settings: &Settings) -> Vec<Option<Bound>> {
    let nothing = vec![None; settings.threads.len()];
    let place = |task: usize| match settings.threads[task].policy {
        Policy::Fifo { priority } => Some((settings.pinned(task, applied.cores())?, priority)),
        _ => None,
    };
    let Some(mut places) = (0..settings.threads.len()).map(place).collect::<Option<Vec<_>>>() else { return nothing };
    places.sort_unstable();
    if places.windows(2).any(|pair| pair[0] == pair[1]) {
        return nothing;
    }
    let Ok(found) = dependent_response_times(applied, PriorityRule::Given) else { return nothing };
    // Where resources are shared, a bound may rest on the others being in time.
    if applied.has_sections() && found.outcome != Outcome::Schedulable {
        return nothing;
    }
    let in_time = |(bound, task): (&Option<Time>, &temponet_task::Task)| {
        let response = bound.filter(|bound| *bound <= task.deadline)?;
        Some(Bound { response, by: "response times of tasks that depend on each other" })
    };
    found.bounds.iter().zip(applied.tasks()).map(in_time).collect()
}

/// A set of independent tasks with settings.
struct Proof<'a> {
    settings: &'a Settings,
    /// The worst case, in which a task with a reservation is its reservation.
    served: WorstCase,
    /// Deadline and jitter of each task itself.
    own: Vec<(Time, Time)>,
    /// Whether each reservation serves its task. Those of others, and threads without, are true.
    fits: Vec<bool>,
}

impl<'a> Proof<'a> {
    fn new(settings: &'a Settings, mut worst_case: WorstCase) -> Proof<'a> {
        let own = worst_case.tasks.iter().map(|task| (task.deadline, task.jitter)).collect();
        let serve = |(task, thread): (&mut Sporadic, &super::Setting)| {
            let Policy::Deadline { budget, deadline, period } = thread.policy else { return true };
            let fits = wakes_once(task)
                && budget.0 >= task.work()
                && deadline <= time_to_serve(task)
                && deadline <= period
                && period <= task.period;
            *task = thread.policy.served(task);
            fits
        };
        let fits = worst_case.tasks.iter_mut().zip(&settings.threads).map(serve).collect();
        Proof { settings, served: worst_case, own, fits }
    }

    fn policy(&self, place: usize) -> Policy {
        self.settings.threads[place].policy
    }

    fn cores(&self) -> usize {
        self.served.cores
    }

    fn of_all(&self) -> Vec<Option<Bound>> {
        let mut bounds = vec![None; self.own.len()];
        let real_time: Vec<usize> =
            (0..self.own.len()).filter(|place| !matches!(self.policy(*place), Policy::Other { .. })).collect();
        for core in CoreId::all(self.cores()) {
            self.on_core(core, &mut bounds);
        }
        let is_global = |place: &usize| self.cores() > 1 && self.settings.threads[*place].cores.is_all();
        if self.served.is_limited() || !self.served.speeds.is_empty() {
            return bounds;
        }
        let (reserved, fifo): (Vec<usize>, Vec<usize>) =
            real_time.iter().partition(|place| self.policy(**place).is_deadline());
        // Threads below do not matter; threads above do.
        if !reserved.is_empty() && reserved.iter().all(is_global) && self.fit(&reserved) {
            let part = self.served.part(reserved.iter().copied(), self.cores());
            if let Some(by) = global_edf(&part) {
                reserved.iter().for_each(|place| bounds[*place] = Some(self.reserved_bound(*place, by)));
            }
        }
        if reserved.is_empty() && !fifo.is_empty() && fifo.iter().all(is_global) && self.is_global_fifo_proved(&fifo) {
            fifo.iter().for_each(|place| {
                bounds[*place] = Some(Bound { response: self.own[*place].0, by: "RTA on all processors" });
            });
        }
        bounds
    }

    fn fit(&self, places: &[usize]) -> bool {
        places.iter().all(|place| self.fits[*place])
    }

    fn reserved_bound(&self, place: usize, by: &'static str) -> Bound {
        Bound { response: self.served.tasks[place].deadline + self.own[place].1, by }
    }

    fn is_global_fifo_proved(&self, fifo: &[usize]) -> bool {
        let part = self.served.part(fifo.iter().copied(), self.cores());
        let mut priorities: Vec<Option<i64>> = part.tasks.iter().map(|task| task.priority).collect();
        priorities.sort_unstable();
        // Several jobs of a task wait for their thread, which the test lets run beside each other.
        let are_single = part.tasks.iter().all(|task| task.jobs == 1 && task.deadline <= task.period);
        let differ = priorities.windows(2).all(|pair| pair[0] != pair[1]);
        are_single && differ && rta(&part, Order::Fixed(PriorityRule::Given)) == Outcome::Schedulable
    }

    /// Proves the threads that may run on this core alone.
    fn on_core(&self, core: CoreId, bounds: &mut [Option<Bound>]) {
        let members: Vec<usize> =
            (0..self.own.len()).filter(|place| self.settings.threads[*place].cores.contains(core)).collect();
        let pinned = |place: usize| self.settings.pinned(place, self.cores()) == Some(core);
        let is_reserved = |place: &usize| self.policy(*place).is_deadline();
        if members.iter().any(|place| is_reserved(place) && !pinned(*place)) {
            return;
        }
        let on_core = |places: &[usize]| self.served.cluster(places.iter().copied(), core.index()..core.index() + 1);
        let reserved: Vec<usize> = members.iter().copied().filter(is_reserved).collect();
        let all = on_core(&members);
        if !reserved.is_empty() {
            // The demand test here does not count jobs that hold the processor.
            let is_served =
                !all.is_limited() && self.fit(&reserved) && qpa(&on_core(&reserved)) == Outcome::Schedulable;
            if !is_served {
                return;
            }
            reserved
                .iter()
                .for_each(|place| bounds[*place] = Some(self.reserved_bound(*place, "demand of reservations")));
        }
        let mut budget = StepBudget::standard();
        for (at, place) in members.iter().copied().enumerate() {
            let Policy::Fifo { priority: own } = self.policy(place) else { continue };
            let may_precede = |other: usize| match self.policy(members[other]) {
                Policy::Deadline { .. } => true,
                Policy::Fifo { priority } => priority >= own,
                Policy::Other { .. } => false,
            };
            let is_above_elsewhere = |other: usize| other != at && may_precede(other) && !pinned(members[other]);
            if !pinned(place) || (0..members.len()).any(is_above_elsewhere) {
                continue;
            }
            let found = response_among(&all, at, may_precede, &mut budget);
            bounds[place] = found.map(|response| Bound { response, by: "response times" });
        }
    }
}

/// Name of the first test that proves global EDF.
fn global_edf(reservations: &WorstCase) -> Option<&'static str> {
    let is_proved = |outcome: Outcome| outcome == Outcome::Schedulable;
    match () {
        () if is_proved(gfb(reservations)) => Some("GFB of reservations"),
        () if is_proved(bak(reservations)) => Some("BAK of reservations"),
        () if is_proved(bcl(reservations, Order::Edf)) => Some("BCL of reservations"),
        () if is_proved(rta(reservations, Order::Edf)) => Some("RTA of reservations"),
        () => None,
    }
}
