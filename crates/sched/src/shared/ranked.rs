//! Ready jobs in priority order, for schedulers whose key for a job does not change while the job is ready.
//!
//! The order is kept in a sorted ring buffer. Jobs leave near its front, because the best jobs run, and in a long
//! backlog they enter near its back; the ring moves the shorter side. That was faster than heaps and trees at every
//! measured size. A backlog with many insertions in its middle would be the exception.

use std::collections::VecDeque;

use temponet_task::{Assignment, CoreId, Event, Job, JobId, NotApplicable, Scheduler, System, SystemView, Tie, Time};

/// Ready jobs sorted by key, then by the common tie-break.
#[derive(Debug)]
pub(crate) struct Ranked<K> {
    order: VecDeque<(K, Tie, JobId)>,
    /// Key with which each job id was inserted.
    keys: Vec<Option<K>>,
    best: Vec<JobId>,
}

impl<K: Ord + Copy> Ranked<K> {
    pub fn new() -> Ranked<K> {
        Ranked { order: VecDeque::new(), keys: Vec::new(), best: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.order.clear();
        self.keys.clear();
    }

    /// Makes room for this many jobs.
    pub fn reserve(&mut self, jobs: usize) {
        self.order.reserve(jobs);
        self.keys.reserve(jobs);
    }

    pub fn insert(&mut self, key: K, job: &Job, id: JobId) {
        let entry = (key, job.tie(), id);
        // Most jobs are inserted at one of the ends.
        if self.order.back().is_none_or(|worst| *worst < entry) {
            self.order.push_back(entry);
        } else if self.order.front().is_some_and(|best| entry < *best) {
            self.order.push_front(entry);
        } else {
            let at = self.order.partition_point(|better| *better < entry);
            self.order.insert(at, entry);
        }
        if id.index() >= self.keys.len() {
            self.keys.resize(id.index() + 1, None);
        }
        self.keys[id.index()] = Some(key);
    }

    /// Removes a job; does nothing if it is not there.
    pub fn remove(&mut self, job: &Job, id: JobId) {
        self.remove_tied(job.tie(), id);
    }

    /// Removes a job with this tie-break; does nothing if it is not there.
    pub fn remove_tied(&mut self, tie: Tie, id: JobId) {
        // Mostly it is the best job, which has just completed.
        if self.order.front().is_some_and(|(_, _, first)| *first == id) {
            self.order.pop_front();
        } else if let Some(key) = self.keys.get(id.index()).copied().flatten()
            && let Ok(at) = self.order.binary_search(&(key, tie, id))
        {
            self.order.remove(at);
        }
    }

    /// Returns the number of jobs.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Iterates over the jobs, best first.
    pub fn iter(&self) -> impl Iterator<Item = (K, Tie, JobId)> + '_ {
        self.order.iter().copied()
    }

    /// Inserts the jobs that were released, with the keys that `key` returns, and removes those that have left.
    pub fn follow(&mut self, view: &SystemView<'_>, key: impl Fn(&Job) -> K) {
        for event in view.events {
            match *event {
                Event::Released(id) => self.insert(key(view.job(id)), view.job(id), id),
                Event::Completed(id) | Event::Aborted(id) => self.remove(view.job(id), id),
                _ => {}
            }
        }
    }

    /// Puts the best jobs on all cores.
    pub fn assign(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        // On one core no placement is needed, except where jobs hold it or wait for each other.
        if view.cores() == 1 && !view.system.is_limited() && view.locks.is_none() {
            if let Some((_, _, id)) = self.order.front() {
                assignment.run(CoreId(0), *id);
            }
            return;
        }
        assignment.place(view, self.best(view.system.most_offered()));
    }

    /// Returns the `n` best jobs, best first.
    pub fn best(&mut self, n: usize) -> &[JobId] {
        let (front, back) = self.order.as_slices();
        let (front, back) = (&front[..n.min(front.len())], &back[..n.saturating_sub(front.len()).min(back.len())]);
        self.best.clear();
        self.best.extend(front.iter().chain(back).map(|(_, _, id)| *id));
        &self.best
    }
}

/// A global scheduler that runs the jobs with the least keys. The key of a job is computed at its release.
pub(crate) struct FixedKey<K> {
    key: fn(&SystemView<'_>, &Job) -> K,
    ranked: Ranked<K>,
}

impl<K: Ord + Copy> FixedKey<K> {
    pub fn new(key: fn(&SystemView<'_>, &Job) -> K) -> FixedKey<K> {
        FixedKey { key, ranked: Ranked::new() }
    }
}

/// A global scheduler that runs the jobs with the least keys, where the key of a job depends on a time of its task that
/// is computed at the start, such as the longest path of work behind it.
pub(crate) struct TaskKey<K> {
    prepare: fn(&System) -> Vec<Time>,
    key: fn(&Job, Time) -> K,
    /// Time of each task. Tasks beyond the end of the list have zero.
    times: Vec<Time>,
    ranked: Ranked<K>,
}

impl<K: Ord + Copy> TaskKey<K> {
    pub fn new(prepare: fn(&System) -> Vec<Time>, key: fn(&Job, Time) -> K) -> TaskKey<K> {
        TaskKey { prepare, key, times: Vec::new(), ranked: Ranked::new() }
    }
}

impl<K: Ord + Copy + Send> Scheduler for TaskKey<K> {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.times = (self.prepare)(system);
        self.ranked.clear();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let time = |job: &Job| self.times.get(job.task.index()).copied().unwrap_or_default();
        self.ranked.follow(view, |job| (self.key)(job, time(job)));
        self.ranked.assign(view, assignment);
    }

    fn most_ready(&self) -> usize {
        usize::MAX
    }
}

impl<K: Ord + Copy + Send> Scheduler for FixedKey<K> {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        self.ranked.clear();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.ranked.follow(view, |job| (self.key)(view, job));
        self.ranked.assign(view, assignment);
    }

    fn most_ready(&self) -> usize {
        usize::MAX
    }
}
