//! Look-ahead EDF, our own scheduler: Moore and Hodgson's rule over the ready jobs and over the jobs that tasks will
//! release and that are due by the last deadline of these. A long job that fits now makes way if it would cost several
//! short ones soon. Periodic jobs and bursts are known ahead; sporadic tasks are expected to keep their mean gap.
//!
//! The rule: add ready and future jobs in deadline order; when the work up to a deadline exceeds what the cores can do
//! until then, drop the job with the most work relative to its importance. Of the ready jobs, those that stay run
//! first, by deadline; then the dropped ones by deadline; then those that are late. Work is estimated between its mean
//! (`caution` 0) and its wcet (`caution` 1); work of a job with an estimate, between what it says to expect and its
//! ninth decile, or its wcet if it is critical or its task is to be guaranteed. `capacity` is the share of the cores'
//! time to plan with. With more than 2048 ready jobs, only the earliest deadlines among those that are still possible
//! are planned.
//!
//! Ties: among equal deadlines ready jobs come before future ones, then the earlier release, then the lower task index;
//! among jobs with equal work relative to their importance, the last in that order is dropped.

use std::collections::BinaryHeap;

use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, Task, Time};

use crate::advice::deadline_order::{DeadlineOrder, PlanEntry};
use crate::advice::most_coming;
use crate::shared::planned_jobs::MOST_PLANNED;

/// Maximum number of jobs in a plan, future ones included.
const MOST_ENTRIES: usize = 4 * MOST_PLANNED;

/// Look-ahead EDF: plans with the ready jobs and the next jobs of each task, and drops the jobs that cost most.
#[derive(Clone, Debug)]
pub struct LookAhead {
    caution: f64,
    capacity: f64,
    /// For each task, the estimate of its work as a share of the way from its bcet (0) to its wcet (1).
    shares: Vec<f64>,
    order: DeadlineOrder,
    /// The plan, in deadline order.
    plan: Vec<Planned>,
    late: Vec<JobId>,
    /// Jobs that stay, as a heap by length.
    longest: BinaryHeap<Length>,
    chosen: Vec<JobId>,
}

/// Work divided by importance, as bits, and below them the place in the plan. A single number is the fastest to
/// compare.
type Length = u128;

/// A job in the plan: a ready job with its id, or a future job.
#[derive(Clone, Copy, Debug)]
struct Planned {
    deadline: Time,
    id: Option<JobId>,
    work: f64,
    importance: f64,
    /// Work of all jobs in the plan up to this deadline, in nanoseconds. It can exceed the range of `Time` when many
    /// jobs have decades of work.
    demand: f64,
    stays: bool,
}

impl LookAhead {
    /// A scheduler with this `caution` (0 estimates work by its mean, 1 by its wcet) and this `capacity`, the share of
    /// the cores' time to plan with.
    pub fn new(caution: f64, capacity: f64) -> LookAhead {
        LookAhead {
            caution,
            capacity,
            shares: Vec::new(),
            order: DeadlineOrder::default(),
            plan: Vec::new(),
            late: Vec::new(),
            longest: BinaryHeap::new(),
            chosen: Vec::new(),
        }
    }

    /// Pressure on each ready job of the last decision that was not late: the work due until its deadline divided by
    /// what the cores can do until then.
    pub fn pressures(&self, view: &SystemView<'_>) -> impl Iterator<Item = (JobId, f64)> {
        let (now, cores) = (view.now, view.system.capacity());
        let pressure = move |job: &Planned| job.demand / (cores * (job.deadline - now).0.max(1) as f64);
        self.plan.iter().filter_map(move |job| Some((job.id?, pressure(job))))
    }

    fn estimate(&self, system: &System) -> Vec<f64> {
        let share = |task: &Task| {
            let (least, most) = (task.bcet.0 as f64, task.wcet.0 as f64);
            let mean = if most > least { (task.mean_execution() - least) / (most - least) } else { 1.0 };
            let mean = mean.clamp(0.0, 1.0);
            mean + self.caution * (1.0 - mean)
        };
        system.tasks().iter().map(share).collect()
    }

    /// Returns the jobs to run, the best first, from ready and future jobs in deadline order.
    pub(crate) fn choose(&mut self, view: &SystemView<'_>, entries: &[PlanEntry]) -> &[JobId] {
        if self.shares.len() != view.system.tasks().len() {
            self.shares = self.estimate(view.system);
        }
        self.list(view, entries);
        self.drop_longest(view);
        let ready = |stays: bool| self.plan.iter().filter(move |job| job.stays == stays).filter_map(|job| job.id);
        self.chosen.clear();
        self.chosen
            .extend(ready(true).chain(ready(false)).chain(self.late.iter().copied()).take(view.system.most_offered()));
        &self.chosen
    }

    /// The jobs of the last decision to run, the best first.
    pub(crate) fn chosen(&self) -> &[JobId] {
        &self.chosen
    }

    /// Lists the jobs to plan: ready jobs that are not late, and future jobs up to the last deadline of these.
    fn list(&mut self, view: &SystemView<'_>, entries: &[PlanEntry]) {
        let (now, machine, shares) = (view.now, view.system.machine(), &self.shares);
        let caution = self.caution;
        let work = |entry: &PlanEntry| match entry.is_estimated {
            true => entry.work(caution),
            false => entry.work(shares[entry.task]),
        };
        let is_late = |entry: &PlanEntry, work: Time| {
            entry.id.is_some() && now + machine.fastest(entry.task).time_for(work) > entry.deadline
        };
        let is_planned = |entry: &&PlanEntry| entry.id.is_some() && !is_late(entry, work(entry));
        // Of a larger backlog, only the earliest deadlines.
        let last = match entries.len() > MOST_PLANNED {
            true => entries.iter().filter(is_planned).take(MOST_PLANNED).last(),
            false => entries.iter().rev().find(is_planned),
        };
        let last = last.map(|entry| entry.deadline);
        self.plan.clear();
        self.late.clear();
        for entry in entries {
            let PlanEntry { deadline, id, importance, .. } = *entry;
            let work = work(entry);
            if is_late(entry, work) {
                self.late.extend(id);
            } else if Some(deadline) <= last && self.plan.len() < MOST_ENTRIES {
                let work = work.0 as f64;
                self.plan.push(Planned { deadline, id, work, importance, demand: 0.0, stays: true });
            }
        }
    }

    /// Drops jobs until the rest fits.
    fn drop_longest(&mut self, view: &SystemView<'_>) {
        self.longest.clear();
        let speed = view.system.capacity() * self.capacity;
        let (mut demand, mut kept) = (0.0, 0.0);
        // Jobs before this place are in `longest`. Jobs are added to it only when something has to be dropped.
        let mut unlisted = 0;
        for place in 0..self.plan.len() {
            let job = &mut self.plan[place];
            demand += job.work;
            kept += job.work;
            job.demand = demand;
            let possible = speed * (job.deadline - view.now).0 as f64;
            if kept <= possible {
                continue;
            }
            for earlier in unlisted..place {
                self.longest.push(self.plan[earlier].length(earlier));
            }
            unlisted = place + 1;
            // At least one job makes way: this one, or a longer one, whose place in the heap this one takes.
            let mut dropped = self.plan[place].length(place);
            if let Some(mut longest) = self.longest.peek_mut()
                && *longest > dropped
            {
                std::mem::swap(&mut *longest, &mut dropped);
            }
            let mut next = Some(dropped);
            while let Some(dropped) = next {
                let dropped = &mut self.plan[dropped as u64 as usize];
                kept -= dropped.work;
                dropped.stays = false;
                next = if kept > possible { self.longest.pop() } else { None };
            }
        }
    }
}

impl Planned {
    fn length(&self, place: usize) -> Length {
        Length::from((self.work / self.importance).to_bits()) << 64 | place as Length
    }
}

impl Scheduler for LookAhead {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.shares = self.estimate(system);
        let tasks = system.tasks().len();
        let most = tasks + system.tasks().iter().map(most_coming).sum::<usize>();
        self.order.reserve(system.tasks());
        self.plan.clear();
        self.plan.reserve(most);
        self.longest.clear();
        self.longest.reserve(most);
        self.late.clear();
        self.late.reserve(tasks);
        self.chosen.clear();
        self.chosen.reserve(system.cores());
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let mut order = std::mem::take(&mut self.order);
        order.gather_earliest(view, MOST_PLANNED);
        order.look_ahead(view);
        assignment.place(view, self.choose(view, order.entries()));
        self.order = order;
    }
}

#[cfg(test)]
mod tests {
    use temponet_task::{Job, TaskId, TaskSet};

    use super::*;

    /// At time 0 a long job is ready that fits alone. Two short jobs arrive before its deadline, and then there is no
    /// room for them.
    #[test]
    fn a_long_job_makes_way_for_short_ones_to_come() {
        let ms = Time::from_ms;
        let long = Task::periodic("long", ms(100), ms(9)).with_deadline(ms(12));
        let other = Task::periodic("other", ms(100), ms(2)).with_deadline(ms(20));
        let short = |name: &str| Task::periodic(name, ms(100), ms(3)).with_deadline(ms(4)).with_offset(ms(6));
        let system = TaskSet::new("set", vec![long, other, short("one"), short("two")], 1).system;
        let job = |task: TaskId| Job::first(task, &system.tasks()[task]);
        let (jobs, active) = ([job(TaskId(0)), job(TaskId(1))], [JobId(0), JobId(1)]);
        let view = SystemView::new(Time::ZERO, &system, &active, &jobs, &[None]);
        let choice = |scheduler: &mut dyn Scheduler| {
            let mut assignment = Assignment::default();
            assignment.reset(1);
            scheduler.start(&system).unwrap();
            scheduler.decide(&view, &mut assignment);
            assignment.cores()[0]
        };
        let mut ahead = LookAhead::new(1.0, 1.0);
        assert_eq!(choice(&mut ahead), Some(JobId(1)));
        assert_eq!(choice(&mut crate::schedulers::mh_edf::MhEdf::default()), Some(JobId(0)));
        // 15 ms of work are due until 12 ms, 17 ms until 20 ms.
        assert_eq!(ahead.pressures(&view).collect::<Vec<_>>(), [(JobId(0), 15.0 / 12.0), (JobId(1), 17.0 / 20.0)]);
    }

    /// The demand of jobs with decades of work exceeds the range of `Time`.
    #[test]
    fn decades_of_work_are_added_up() {
        let tasks =
            (0..40).map(|index| Task::periodic(format!("t{index}"), Time::MAX_INPUT, Time::MAX_INPUT)).collect();
        let set = TaskSet::new("set", tasks, 1);
        let mut engine = temponet_sim::Engine::new(&set, 1, Time::MAX_INPUT);
        assert!(engine.advance(&mut temponet_sim::Unobserved), "there is something to decide");
        let mut ahead = LookAhead::new(1.0, 1.0);
        ahead.start(engine.system()).unwrap();
        let mut assignment = Assignment::default();
        assignment.reset(1);
        ahead.decide(&engine.view(), &mut assignment);
        let pressures: Vec<f64> = ahead.pressures(&engine.view()).map(|(_, pressure)| pressure).collect();
        assert_eq!(pressures, (1..=40).map(f64::from).collect::<Vec<_>>());
    }
}
