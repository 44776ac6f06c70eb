//! D-over, the best possible online scheduler for value on one core. It obtains at least 1/(1+√k)² of the value of a
//! clairvoyant scheduler, where k is the ratio of the highest to the lowest value density, and all of the value if
//! every deadline can be met. For equal densities the guarantee is a quarter, and no online scheduler can guarantee
//! more.
//!
//! Reference: Koren and Shasha, SIAM J. Computing 24(2), 1995. Execution times are the remaining wcets. Densities are
//! value/wcet over the tasks of the set, unless `k` is given.
//! Ties: equal deadlines go to the earlier release, then the lower task index; a new job preempts only with a strictly
//! earlier deadline. At one instant completions come first, then releases, then latest-start alarms in deadline order.

use std::collections::VecDeque;

use temponet_task::{
    Arrival, Assignment, CoreId, Event, JobId, NotApplicable, Scheduler, System, SystemView, Task, Tie, Time,
};

pub(crate) struct DOver {
    fixed_k: Option<f64>,
    /// 1 + √k.
    threshold: f64,
    current: Option<JobId>,
    /// Work that can run before the current job and the preempted ones without making one of them late, in nanoseconds.
    available: i64,
    /// Stack of jobs that were preempted by a job with an earlier deadline while there was time for both.
    privileged: Vec<Preempted>,
    /// All other waiting jobs, by deadline.
    other: VecDeque<(Time, Tie, JobId)>,
}

struct Preempted {
    id: JobId,
    since: Time,
    available: i64,
}

impl DOver {
    pub fn new(fixed_k: Option<f64>) -> DOver {
        let (privileged, other) = (Vec::new(), VecDeque::new());
        DOver { fixed_k, threshold: 2.0, current: None, available: 0, privileged, other }
    }

    fn put_aside(&mut self, view: &SystemView<'_>, id: JobId) {
        let job = view.job(id);
        let entry = (job.deadline, job.tie(), id);
        let at = self.other.partition_point(|earlier| *earlier < entry);
        self.other.insert(at, entry);
    }

    /// Removes all jobs that have left in one pass, because a whole burst may leave together.
    fn forget(&mut self, mut gone: Vec<JobId>) {
        gone.sort_unstable();
        let stays = |id: &JobId| gone.binary_search(id).is_err();
        self.other.retain(|(_, _, other)| stays(other));
        self.privileged.retain(|preempted| stays(&preempted.id));
        self.current = self.current.filter(stays);
    }

    fn released(&mut self, view: &SystemView<'_>, id: JobId) {
        let job = view.job(id);
        let (slack, remaining) = (job.slack(view.now), job.time_to_finish().0 as i64);
        let Some(current) = self.current else {
            self.current = Some(id);
            self.available = slack;
            return;
        };
        if job.deadline < view.job(current).deadline && self.available >= remaining {
            self.privileged.push(Preempted { id: current, since: view.now, available: self.available });
            self.available = (self.available - remaining).min(slack);
            self.current = Some(id);
        } else {
            self.put_aside(view, id);
        }
    }

    /// Chooses the next job when the current one has left.
    fn resume(&mut self, view: &SystemView<'_>) {
        let left = |preempted: &Preempted| preempted.available - view.now.signed_sub(preempted.since);
        let earliest = self.other.front().map(|(_, _, id)| *id);
        if let (Some(top), Some(other)) = (self.privileged.last(), earliest) {
            let (job, left) = (view.job(other), left(top));
            let remaining = job.time_to_finish().0 as i64;
            if job.deadline < view.job(top.id).deadline && left >= remaining {
                self.other.pop_front();
                self.available = (left - remaining).min(job.slack(view.now));
                self.current = Some(other);
                return;
            }
        }
        if let Some(top) = self.privileged.pop() {
            self.available = left(&top);
            self.current = Some(top.id);
        } else if let Some(other) = earliest {
            self.other.pop_front();
            self.available = view.job(other).slack(view.now);
            self.current = Some(other);
        }
    }

    /// Handles a waiting job that must start now or be late. It takes the core if its value exceeds the threshold times
    /// the value that would be lost; otherwise it is abandoned.
    fn alarm(&mut self, view: &SystemView<'_>, id: JobId, assignment: &mut Assignment) {
        let Some(current) = self.current else {
            self.current = Some(id);
            self.available = 0;
            return;
        };
        let value = |id: JobId| view.job(id).value;
        let at_stake = value(current) + self.privileged.iter().map(|preempted| value(preempted.id)).sum::<f64>();
        if value(id) > self.threshold * at_stake {
            for preempted in std::mem::take(&mut self.privileged) {
                self.put_aside(view, preempted.id);
            }
            self.put_aside(view, current);
            self.current = Some(id);
            self.available = 0;
        } else {
            assignment.abandon(id);
        }
    }
}

/// Ratio of the highest to the lowest value density of the set.
fn importance_ratio(tasks: &[Task]) -> f64 {
    let mut densities = Vec::new();
    for task in tasks {
        match &task.arrival {
            Arrival::Listed(jobs) => densities.extend(jobs.iter().map(|job| job.value / job.wcet.0 as f64)),
            _ => densities.push(task.value / task.wcet.0 as f64),
        }
    }
    let valued = densities.into_iter().filter(|density| *density > 0.0);
    let (low, high) = valued.fold((f64::MAX, 0.0f64), |(low, high), density| (low.min(density), high.max(density)));
    if high > 0.0 { high / low } else { 1.0 }
}

impl Scheduler for DOver {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let k = self.fixed_k.unwrap_or_else(|| importance_ratio(system.tasks()));
        *self = DOver { threshold: 1.0 + k.sqrt(), ..DOver::new(self.fixed_k) };
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let mut gone = Vec::new();
        for event in view.events {
            if let Event::Completed(id) | Event::Aborted(id) | Event::DeadlinePassed(id) = *event {
                gone.push(id);
                if matches!(event, Event::DeadlinePassed(_)) {
                    assignment.abandon(id);
                }
            }
        }
        if !gone.is_empty() {
            self.forget(gone);
        }
        if self.current.is_none() {
            self.resume(view);
        }
        for event in view.events {
            if let Event::Released(id) = *event
                && !view.job(id).is_late_by_wcet(view.now)
            {
                self.released(view, id);
            }
        }
        // Alarms: jobs whose latest start has come. A job that an alarm moved to `other` may already be past its latest
        // start.
        while let Some(at) = self.other.iter().position(|(_, _, id)| view.job(*id).slack(view.now) <= 0) {
            let Some((_, _, id)) = self.other.remove(at) else { break };
            if view.job(id).slack(view.now) < 0 {
                assignment.abandon(id);
            } else {
                self.alarm(view, id, assignment);
            }
        }
        if let Some(current) = self.current {
            assignment.run(CoreId(0), current);
        }
        if let Some(slack) = self.other.iter().map(|(_, _, id)| view.job(*id).slack(view.now)).min() {
            assignment.wake_at(view.now + Time(slack as u64));
        }
    }
}
