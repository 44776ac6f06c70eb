//! Partitioned and clustered scheduling: every task is bound to one cluster of cores, and each cluster runs a global
//! scheduler on its own tasks. With clusters of one core this is partitioned scheduling.
//!
//! Tasks are packed by decreasing utilization, or by density where the deadline is shorter than the period. A task that
//! fits no cluster goes to the one with the most room, so overload is not an error.

use std::ops::Range;

use temponet_analysis::packing::{Admits, Fit, pack};
use temponet_task::{Assignment, Event, Job, NotApplicable, Scheduler, System, SystemView};

use super::ranked::Ranked;

/// Returns the clusters of this many cores each; the last one may be smaller.
pub(crate) fn clusters(cores: usize, size: usize) -> Vec<Range<usize>> {
    (0..cores).step_by(size).map(|start| start..(start + size).min(cores)).collect()
}

/// Returns the cluster of each task.
pub(crate) fn packed(system: &System, size: usize, fit: Fit, admits: Admits) -> Vec<usize> {
    pack(system, &clusters(system.cores(), size), fit, admits)
}

/// A scheduler with fixed job keys inside each cluster.
pub(crate) struct Clustered<K> {
    key: fn(&SystemView<'_>, &Job) -> K,
    admits: Admits,
    fit: Fit,
    /// Cores per cluster.
    size: usize,
    clusters: Vec<Cluster<K>>,
    cluster_of_task: Vec<usize>,
}

struct Cluster<K> {
    cores: Range<usize>,
    ready: Ranked<K>,
}

impl<K: Ord + Copy> Clustered<K> {
    pub fn new(key: fn(&SystemView<'_>, &Job) -> K, admits: Admits, fit: Fit, size: usize) -> Clustered<K> {
        Clustered { key, admits, fit, size, clusters: Vec::new(), cluster_of_task: Vec::new() }
    }
}

impl<K: Ord + Copy + Send> Scheduler for Clustered<K> {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let clusters = clusters(system.cores(), self.size).into_iter();
        self.clusters = clusters.map(|cores| Cluster { cores, ready: Ranked::new() }).collect();
        self.cluster_of_task = packed(system, self.size, self.fit, self.admits);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        for event in view.events {
            if let Event::Released(id) | Event::Completed(id) | Event::Aborted(id) = *event {
                let job = view.job(id);
                let cluster = &mut self.clusters[self.cluster_of_task[job.task]];
                match event {
                    Event::Released(_) => cluster.ready.insert((self.key)(view, job), job, id),
                    _ => cluster.ready.remove(job, id),
                }
            }
        }
        for cluster in &mut self.clusters {
            let most = if view.system.most_offered() == usize::MAX { usize::MAX } else { cluster.cores.len() };
            assignment.place_on(view, cluster.ready.best(most), cluster.cores.clone());
        }
    }

    fn most_ready(&self) -> usize {
        usize::MAX
    }
}
