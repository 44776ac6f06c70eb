//! Partitioned and clustered scheduling: every task is bound to one cluster of cores, and each cluster runs a global
//! scheduler on its own tasks. With clusters of one core this is partitioned scheduling.
//!
//! Tasks are packed by decreasing utilization, or by density where the deadline is shorter than the period. A task that
//! fits no cluster goes to the one with the most room, so overload is not an error.

use std::ops::Range;

use temponet_analysis::packing::{Admits, Fit, pack};
use temponet_task::{Assignment, Event, Job, NotApplicable, Protocol, Scheduler, System, SystemView};

use super::ranked::Ranked;

/// A scheduler with fixed job keys inside each cluster.
pub(crate) struct Clustered<K> {
    key: fn(&SystemView<'_>, &Job) -> K,
    admits: Admits,
    fit: Fit,
    /// Cores per cluster; the last cluster may be smaller.
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
        let starts = (0..system.cores()).step_by(self.size);
        let ranges = starts.map(|start| start..(start + self.size).min(system.cores()));
        self.clusters = ranges.map(|cores| Cluster { cores, ready: Ranked::new() }).collect();
        let ranges: Vec<Range<usize>> = self.clusters.iter().map(|cluster| cluster.cores.clone()).collect();
        self.cluster_of_task = pack(system, &ranges, self.fit, self.admits);
        // Without inheritance, a job that waits runs nothing in its place, wherever that is.
        match system.shared_across(&self.cluster_of_task) {
            Some((one, other, resource)) if system.protocol() != Protocol::None => Err(NotApplicable(format!(
                "tasks {:?} and {:?} share {resource:?} but are on different cores, where neither inherits from the other",
                one.name, other.name
            ))),
            _ => Ok(()),
        }
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        for event in view.events {
            if let Event::Released(id) | Event::Completed(id) | Event::Aborted(id) = *event {
                let job = view.job(id);
                let cluster = &mut self.clusters[self.cluster_of_task[job.task as usize]];
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
