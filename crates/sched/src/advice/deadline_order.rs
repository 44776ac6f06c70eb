//! Jobs in deadline order, computed once for all schedulers that plan in that order: the ready jobs, and the jobs that
//! tasks are expected to release and that are due by the last deadline of these.
//!
//! Ties: among equal deadlines ready jobs come before future ones, then the earlier release, then the lower task id.

use temponet_task::{Job, JobId, SystemView, Task, TaskId, Time};

use super::forecast::Forecast;
use super::future_arrivals::{FutureArrivals, most_coming};
use super::repair::{merge, sort};

/// Binary logarithm of the factor by which one level of criticality multiplies the importance of a job.
const CRITICAL_DOUBLINGS: u64 = 3;

/// The jobs of one decision. The buffers are reused between decisions, and the order of the ready jobs is repaired
/// rather than computed anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadlineOrder {
    /// Deadlines and ids of the ready jobs, in order.
    keys: Vec<(Time, u32)>,
    /// Deadlines and ids of the ready jobs that were not in `keys` before.
    fresh: Vec<(Time, u32)>,
    /// Number of the decision, from 1.
    decision: u64,
    /// For every job id, the last decision at which the job was ready and had not been found in `keys` yet.
    seen: Vec<u64>,
    ready: Vec<JobId>,
    forecast: Forecast,
    entries: Vec<PlanEntry>,
    /// Whether the execution times of all ready jobs are known: bcet and wcet are equal.
    knows_ready: bool,
    /// Whether the execution times of all entries are known.
    knows_entries: bool,
}

/// A job to plan: a ready job with its id, or a future job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlanEntry {
    pub deadline: Time,
    pub id: Option<JobId>,
    pub task: TaskId,
    /// Whether the job carries an estimate.
    pub is_estimated: bool,
    /// Least and greatest remaining work; of a job with an estimate, the work to expect and the work to plan with.
    pub least: Time,
    pub most: Time,
    pub importance: f64,
}

impl DeadlineOrder {
    /// Reserves memory for one ready job per task and for the future jobs.
    pub fn reserve(&mut self, all: &[Task]) {
        let (tasks, coming) = (all.len(), all.iter().map(most_coming).sum::<usize>());
        self.keys.clear();
        self.keys.reserve(tasks);
        self.fresh.clear();
        self.fresh.reserve(tasks);
        // The ids of jobs that have just left are still in use.
        self.seen.reserve((2 * tasks).saturating_sub(self.seen.len()));
        self.ready.clear();
        self.ready.reserve(tasks);
        self.forecast.reserve(all);
        self.entries.clear();
        self.entries.reserve(coming + tasks);
    }

    /// The ready jobs of the last decision, in deadline order.
    pub fn ready(&self) -> &[JobId] {
        &self.ready
    }

    /// The ready and future jobs in deadline order; see [`DeadlineOrder::look_ahead`].
    pub fn entries(&self) -> &[PlanEntry] {
        &self.entries
    }

    /// Whether every ready job has one possible execution time, so that all estimates of it are equal.
    pub fn knows_ready(&self) -> bool {
        self.knows_ready
    }

    /// Whether every ready or future job has one possible execution time. Call [`DeadlineOrder::look_ahead`] before.
    pub fn knows_entries(&self) -> bool {
        self.knows_entries
    }

    /// Takes the ready jobs of a decision.
    pub fn gather(&mut self, view: &SystemView<'_>) {
        if self.keys.is_empty() {
            self.keys.extend(view.ready().map(|(id, job)| (job.deadline, id.0)));
            sort(&mut self.keys, |id| view.job(JobId(id)).tie());
            return self.list_ready(view);
        }
        self.decision += 1;
        self.seen.resize(view.jobs.len().max(self.seen.len()), 0);
        view.active.iter().for_each(|id| self.seen[id.index()] = self.decision);
        let tie = |id: u32| view.job(JobId(id)).tie();
        // Most jobs were ready at the last decision and are in order. An id may stand for another job now: its deadline
        // differs, or its place among equal deadlines.
        let mut kept = 0;
        for at in 0..self.keys.len() {
            let (deadline, id) = self.keys[at];
            if self.seen[id as usize] != self.decision || view.job(JobId(id)).deadline != deadline {
                continue;
            }
            if kept > 0 && self.keys[kept - 1].0 == deadline && tie(self.keys[kept - 1].1) > tie(id) {
                continue;
            }
            self.seen[id as usize] = 0;
            self.keys[kept] = (deadline, id);
            kept += 1;
        }
        self.keys.truncate(kept);
        self.fresh.clear();
        if kept < view.active.len() {
            let new = view.ready().filter(|(id, _)| self.seen[id.index()] == self.decision);
            self.fresh.extend(new.map(|(id, job)| (job.deadline, id.0)));
            sort(&mut self.fresh, tie);
            merge(&mut self.keys, &self.fresh, tie);
        }
        self.list_ready(view);
    }

    /// Forgets the order of the last decision, which is of no use where other jobs come next.
    pub fn forget(&mut self) {
        self.keys.clear();
    }

    /// Like [`DeadlineOrder::gather`], but takes at most `most` jobs, those with the earliest deadlines. If there are
    /// more, impossible jobs are left out, provided that enough others remain for the cores: in such a backlog they
    /// could not run anyway.
    pub fn gather_earliest(&mut self, view: &SystemView<'_>, most: usize) {
        if view.active.len() <= most {
            return self.gather(view);
        }
        let possible = view.ready().filter(|(_, job)| !job.is_impossible(view.now));
        self.keys.clear();
        self.keys.extend(possible.map(|(id, job)| (job.deadline, id.0)));
        if self.keys.len() < view.cores() {
            self.keys.clear();
            self.keys.extend(view.ready().map(|(id, job)| (job.deadline, id.0)));
        }
        if self.keys.len() > most {
            self.keys.select_nth_unstable_by_key(most, |(deadline, id)| (*deadline, view.job(JobId(*id)).tie()));
            self.keys.truncate(most);
        }
        sort(&mut self.keys, |id| view.job(JobId(id)).tie());
        self.list_ready(view);
    }

    fn list_ready(&mut self, view: &SystemView<'_>) {
        self.ready.clear();
        self.ready.extend(self.keys.iter().map(|(_, id)| JobId(*id)));
        self.knows_ready = self.ready.iter().all(|id| view.job(*id).least_remaining() == view.job(*id).remaining());
    }

    /// Finds the next arrivals of all tasks, and the future jobs up to the last deadline of the gathered ones, which it
    /// returns.
    pub fn foresee(&mut self, view: &SystemView<'_>) -> Time {
        let last = self.ready.last().map_or(Time::ZERO, |id| view.job(*id).deadline);
        self.forecast.update(view, last);
        last
    }

    /// Next arrivals of the tasks whose arrivals can be foreseen; see [`DeadlineOrder::foresee`].
    pub fn arrivals(&self) -> impl Iterator<Item = (TaskId, FutureArrivals)> {
        self.forecast.arrivals()
    }

    /// Merges the future jobs into the ready ones that were gathered, up to the last deadline of these.
    pub fn look_ahead(&mut self, view: &SystemView<'_>) {
        let last = self.foresee(view);
        let DeadlineOrder { keys, forecast, entries, .. } = self;
        entries.clear();
        let (mut ready, mut knows_coming) = (&keys[..], true);
        forecast.for_each_until(last, |coming| {
            // Ready jobs come before future ones with the same deadline.
            while let [(deadline, id), rest @ ..] = ready
                && *deadline <= coming.deadline
            {
                entries.push(PlanEntry::ready(JobId(*id), view));
                ready = rest;
            }
            knows_coming &= coming.least == coming.most;
            entries.push(*coming);
        });
        entries.extend(ready.iter().map(|(_, id)| PlanEntry::ready(JobId(*id), view)));
        self.knows_entries = self.knows_ready && knows_coming;
    }
}

impl PlanEntry {
    fn ready(id: JobId, view: &SystemView<'_>) -> PlanEntry {
        let job = view.job(id);
        let Job { deadline, task, .. } = *job;
        let importance = importance(job.value, job.criticality);
        let (is_estimated, least, most) = match job.estimate {
            None => (false, job.least_remaining(), job.remaining()),
            Some(_) => (true, job.expected_remaining(), view.planned_remaining(job)),
        };
        PlanEntry { deadline, id: Some(id), task, is_estimated, least, most, importance }
    }

    pub fn coming(id: TaskId, task: &Task, deadline: Time) -> PlanEntry {
        let importance = importance(task.value, task.criticality);
        PlanEntry { deadline, id: None, task: id, is_estimated: false, least: task.bcet, most: task.wcet, importance }
    }

    /// Estimate of the work; `share` is 0 for the least work and 1 for the greatest.
    pub fn work(&self, share: f64) -> Time {
        if self.most <= self.least {
            return self.least;
        }
        Time(self.least.0 + (share * (self.most.0 - self.least.0) as f64) as u64)
    }
}

fn importance(value: f64, criticality: u8) -> f64 {
    // A power of two is its exponent, which is far below the greatest one for every level.
    let critical = f64::from_bits((1_023 + CRITICAL_DOUBLINGS * u64::from(criticality)) << 52);
    value.max(f64::MIN_POSITIVE) * critical
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::generate::{Spec, generate};
    use temponet_sim::{Engine, Unobserved};
    use temponet_task::{Arrival, Assignment, TaskSet, Tie};

    /// Ready jobs and the next three jobs of each periodic task, by deadline, ready ones first, then by release and
    /// task.
    fn naive_plan(view: &SystemView<'_>) -> Vec<(Time, bool, Tie)> {
        let mut plan: Vec<(Time, bool, Tie)> = view.ready().map(|(_, job)| (job.deadline, false, job.tie())).collect();
        let last = plan.iter().map(|(deadline, ..)| *deadline).max().unwrap_or_default();
        for (id, task) in view.system.task_ids().zip(view.system.tasks()) {
            let Arrival::Periodic { period } = task.arrival else { continue };
            let release = |number: &u64| task.offset + period * *number;
            for number in (0..).filter(|number| release(number) > view.now).take(3) {
                plan.push((release(&number) + task.deadline, true, (release(&number), id, number)));
            }
        }
        plan.retain(|(deadline, ..)| *deadline <= last);
        plan.sort_unstable();
        plan
    }

    #[test]
    fn the_plan_of_periodic_tasks_has_their_next_three_jobs() {
        let mut coming = 0;
        for seed in 0..12 {
            let cores = 1 + seed as usize % 3;
            let mut spec = Spec::new(4 * cores + 3, cores, 1.4 * cores as f64);
            (spec.values, spec.bcet) = ((1.0, 5.0), 0.4);
            let mut set = generate(&spec, seed).unwrap();
            set.system
                .tasks_mut()
                .iter_mut()
                .zip(1..)
                .for_each(|(task, index)| task.offset = Time(task.deadline.0 * index / 7));
            let mut engine = Engine::new(&set, seed, Time::from_ms(300));
            let mut order = DeadlineOrder::default();
            order.reserve(set.tasks());
            while engine.advance(&mut Unobserved) {
                let view = engine.view();
                order.gather(&view);
                order.look_ahead(&view);
                let expected = naive_plan(&view);
                assert_eq!(order.entries().len(), expected.len());
                for (entry, (deadline, is_coming, (_, task, _))) in order.entries().iter().zip(expected) {
                    assert_eq!((entry.deadline, entry.id.is_none(), entry.task), (deadline, is_coming, task));
                    if is_coming {
                        coming += 1;
                        let Task { bcet, wcet, value, .. } = set.tasks()[task];
                        assert_eq!((entry.least, entry.most, entry.importance), (bcet, wcet, value));
                    }
                }
                let mut assignment = Assignment::default();
                assignment.reset(cores);
                let ready = order.ready().to_vec();
                assignment.place(&view, &ready[..ready.len().min(cores)]);
                engine.apply(&assignment, &mut Unobserved).unwrap();
            }
        }
        assert!(coming > 1_000, "{coming}");
    }

    /// A program may read another system without saying so.
    #[test]
    fn the_order_of_one_system_does_not_disturb_that_of_another() {
        let mut kept = DeadlineOrder::default();
        for seed in 0..40 {
            // The same number of tasks and jobs, with the same ids.
            let set = generate(&Spec::new(20, 2, 3.0), seed).unwrap();
            let mut engine = Engine::new(&set, seed, Time::from_ms(300));
            assert!(engine.advance(&mut Unobserved));
            let mut fresh = DeadlineOrder::default();
            for order in [&mut kept, &mut fresh] {
                order.gather(&engine.view());
                order.look_ahead(&engine.view());
            }
            assert_eq!(kept.ready(), fresh.ready());
            assert_eq!(kept.entries(), fresh.entries());
        }
    }

    #[test]
    fn bursts_and_sporadic_jobs_are_planned() {
        let long = Task::periodic("long", Time(9_000), Time(100)).with_deadline(Time(2_000));
        let burst = Arrival::Burst { jobs: 40, every: Time(500), until: Time(5_000) };
        let burst = long.clone().with_arrival(burst).with_deadline(Time(300)).with_offset(Time(200));
        let gap = temponet_task::Gap::Exponential { mean: Time(600) };
        let sporadic = Arrival::Sporadic { minimum: Time(100), gap };
        let sporadic = long.clone().with_arrival(sporadic).with_deadline(Time(200));
        let tasks = [("long", long), ("burst", burst), ("sporadic", sporadic)];
        let tasks = tasks.map(|(name, task)| task.with_name(name.into())).to_vec();
        let system = TaskSet::new("set", tasks, 1).system;
        let jobs = [
            Job::first(TaskId(0), &system.tasks()[0]),
            Job::first(TaskId(2), &system.tasks()[2]).with_release(Time(90)),
        ];
        let active = [JobId(0), JobId(1)];
        let now = Time(100);
        let view = SystemView::new(now, &system, &active, &jobs, &[None]);
        let mut order = DeadlineOrder::default();
        order.gather(&view);
        order.look_ahead(&view);
        let of = |task: TaskId| -> Vec<u64> {
            let own = order.entries().iter().filter(|entry| entry.task == task && entry.id.is_none());
            own.map(|entry| entry.deadline.0).collect()
        };
        // Bursts at 200, 700 and 1200: of the second one, only as many jobs as a plan takes, and none of the third.
        assert_eq!(of(TaskId(1)), [vec![500; 40], vec![1_000; 24]].concat());
        // The last sporadic release was at 90.
        assert_eq!(of(TaskId(2)), [890, 1_490]);
        assert!(order.entries().is_sorted_by_key(|entry| entry.deadline));
    }
}
