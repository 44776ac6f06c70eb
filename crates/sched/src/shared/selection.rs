//! The m best ready jobs by a key that changes with time, found in one pass.

use temponet_task::{Job, JobId, SystemView, Tie};

/// Selects jobs by a key. The buffers are reused between decisions.
pub(crate) struct Selection<K> {
    best: Vec<(K, Tie, JobId)>,
    ids: Vec<JobId>,
}

impl<K: Ord + Copy> Selection<K> {
    pub fn new() -> Selection<K> {
        Selection { best: Vec::new(), ids: Vec::new() }
    }

    /// Returns the `n` ready jobs with the least keys, best first. Jobs that hold a core are left out, and for each of
    /// them one job fewer is returned.
    pub fn select(&mut self, view: &SystemView<'_>, n: usize, key: impl Fn(&Job) -> K) -> &[JobId] {
        self.select_by_id(view, n, |_, job| key(job))
    }

    /// Like [`Selection::select`], for keys that depend on the job id.
    pub fn select_by_id(&mut self, view: &SystemView<'_>, n: usize, key: impl Fn(JobId, &Job) -> K) -> &[JobId] {
        self.best.clear();
        // If every job is wanted, as where jobs may not use every core, one sort takes less than to insert each.
        let wants_all = n >= view.active.len();
        let mut held = 0;
        for (id, job) in view.ready() {
            if job.held {
                held += 1;
                continue;
            }
            let entry = (key(id, job), job.tie(), id);
            if wants_all {
                self.best.push(entry);
                continue;
            }
            if self.best.len() == n {
                if self.best.last().is_none_or(|worst| *worst < entry) {
                    continue;
                }
                self.best.pop();
            }
            let at = self.best.partition_point(|better| *better < entry);
            self.best.insert(at, entry);
        }
        if wants_all {
            self.best.sort_unstable();
        }
        self.best.truncate(n.saturating_sub(held));
        self.ids.clear();
        self.ids.extend(self.best.iter().map(|(_, _, id)| *id));
        &self.ids
    }

    /// Returns the key and tie-break of the last of the jobs just selected.
    pub fn worst(&self) -> Option<(K, Tie)> {
        self.best.last().map(|(key, tie, _)| (*key, *tie))
    }
}

#[cfg(test)]
mod tests {
    use temponet_task::{Task, TaskSet, Time};

    use super::*;

    /// All jobs are sorted at once, and fewer are inserted one by one: the order is the same.
    #[test]
    fn the_best_of_all_are_the_best() {
        let task = |index: u64| Task::periodic(format!("t{index}"), Time(100), Time(1 + index * 37 % 11));
        let system = TaskSet::new("set", (0..40).map(task).collect(), 1).system;
        let mut jobs: Vec<Job> = system.task_ids().map(|id| Job::first(id, &system.tasks()[id])).collect();
        jobs[3].held = true;
        let active: Vec<JobId> = (0..40).rev().map(JobId).collect();
        let view = SystemView::new(Time::ZERO, &system, &active, &jobs, &[None]);
        let best = |n: usize| Selection::new().select(&view, n, |job| job.wcet).to_vec();
        let all = best(40);
        assert_eq!((all.len(), best(usize::MAX).len()), (39, 39), "one holds its core");
        for n in 1..40 {
            assert_eq!(best(n), all[..n - 1], "{n}");
        }
    }
}
