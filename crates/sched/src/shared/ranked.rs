//! Ready jobs kept in priority order, for schedulers whose key for a job never changes while it is ready.
//!
//! A sorted ring: jobs leave near its front (the best run) and, in a long backlog, come in near its back, and it moves the
//! shorter side. That beats heaps and trees at every size we measured; a backlog that keeps inserting into its own middle
//! would be the exception.

use std::collections::VecDeque;

use temponet_task::{Assignment, Event, Job, JobId, NotApplicable, Scheduler, System, SystemView, Tie};

/// Ready jobs by key, then by the common tie-break.
pub(crate) struct Ranked<K> {
    order: VecDeque<(K, Tie, JobId)>,
    /// The key each job id was inserted with.
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

    pub fn insert(&mut self, key: K, job: &Job, id: JobId) {
        let entry = (key, job.tie(), id);
        // Most come in at one of the ends.
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

    /// Takes a job out; nothing happens if it is not in.
    pub fn remove(&mut self, job: &Job, id: JobId) {
        // Mostly it is the best one, which has just run to its end.
        if self.order.front().is_some_and(|(_, _, first)| *first == id) {
            self.order.pop_front();
        } else if let Some(key) = self.keys.get(id.index()).copied().flatten()
            && let Ok(at) = self.order.binary_search(&(key, job.tie(), id))
        {
            self.order.remove(at);
        }
    }

    /// Takes in the jobs that were released, with the keys they get, and takes out those that have left.
    pub fn follow(&mut self, view: &SystemView<'_>, key: impl Fn(&Job) -> K) {
        for event in view.events {
            match *event {
                Event::Released(id) => self.insert(key(view.job(id)), view.job(id), id),
                Event::Completed(id) | Event::Aborted(id) => self.remove(view.job(id), id),
                Event::DeadlinePassed(_) => {}
            }
        }
    }

    /// Puts the best jobs on all cores.
    pub fn assign(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        match (view.cores(), self.order.front()) {
            // On one core there is nothing to place.
            (1, Some((_, _, id))) => assignment.run(0, *id),
            (1, None) => {}
            (cores, _) => assignment.place(view, self.best(cores)),
        }
    }

    /// The `n` best jobs, best first.
    pub fn best(&mut self, n: usize) -> &[JobId] {
        let (front, back) = self.order.as_slices();
        let (front, back) = (&front[..n.min(front.len())], &back[..n.saturating_sub(front.len()).min(back.len())]);
        self.best.clear();
        self.best.extend(front.iter().chain(back).map(|(_, _, id)| *id));
        &self.best
    }
}

/// A global scheduler that runs the jobs with the least keys. The key is asked for at the release.
pub(crate) struct FixedKey<K> {
    key: fn(&SystemView<'_>, &Job) -> K,
    ranked: Ranked<K>,
}

impl<K: Ord + Copy> FixedKey<K> {
    pub fn new(key: fn(&SystemView<'_>, &Job) -> K) -> FixedKey<K> {
        FixedKey { key, ranked: Ranked::new() }
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
