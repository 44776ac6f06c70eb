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
        let mut held = 0;
        for (id, job) in view.ready() {
            if job.held {
                held += 1;
                continue;
            }
            let entry = (key(id, job), job.tie(), id);
            if self.best.len() == n {
                if self.best.last().is_none_or(|worst| *worst < entry) {
                    continue;
                }
                self.best.pop();
            }
            let at = self.best.partition_point(|better| *better < entry);
            self.best.insert(at, entry);
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
