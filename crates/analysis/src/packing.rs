//! Packing of tasks onto clusters of cores, for partitioned and clustered scheduling.
//!
//! Tasks are packed in order of decreasing load. The load is the density where the deadline is shorter than the period,
//! and the utilization otherwise. A task that fits no cluster goes to the one with the most room, so overload is not an
//! error.

use temponet_task::Task;

/// Rule that picks a cluster among those that have room for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The cluster with the lowest index.
    First,
    /// The fullest cluster.
    Best,
    /// The emptiest cluster.
    Worst,
}

/// Load of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ClusterLoad {
    cores: usize,
    /// Sum of the loads of its tasks.
    sum: f64,
    /// Product of one plus the load of each task.
    product: f64,
}

impl ClusterLoad {
    fn with(self, load: f64) -> ClusterLoad {
        ClusterLoad { sum: self.sum + load, product: self.product * (load + 1.0), ..self }
    }

    /// Whether the loads fit one core, with a margin for rounding.
    pub fn surely_fits_one(&self) -> bool {
        self.cores == 1 && self.sum <= 1.0 - 1e-6
    }

    fn room(&self) -> f64 {
        self.cores as f64 - self.sum
    }
}

/// Whether a cluster with this load, the next task included, is acceptable.
pub type Admits = fn(ClusterLoad) -> bool;

/// Load of a task.
fn load(task: &Task) -> f64 {
    match task.period() {
        Some(period) if task.deadline < period => task.utilization() * period.0 as f64 / task.deadline.0 as f64,
        _ => task.utilization(),
    }
}

/// Returns the cluster of each task. `cores` holds the number of cores of each cluster.
pub fn pack(tasks: &[Task], cores: &[usize], fit: Fit, admits: Admits) -> Vec<usize> {
    let loads: Vec<f64> = tasks.iter().map(load).collect();
    pack_by(&loads, cores, fit, |packed, _, _| admits(packed)).cluster_of
}

/// Result of a packing.
pub struct Partition {
    /// Cluster of each task.
    pub cluster_of: Vec<usize>,
    /// Tasks of each cluster.
    pub members: Vec<Vec<usize>>,
}

/// Packs tasks with these loads, in decreasing order. `admits` gets the load of a cluster with the next task included,
/// the tasks that the cluster has so far, and the next task.
pub fn pack_by(
    loads: &[f64],
    cores: &[usize],
    fit: Fit,
    mut admits: impl FnMut(ClusterLoad, &[usize], usize) -> bool,
) -> Partition {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]));
    let mut clusters: Vec<ClusterLoad> =
        cores.iter().map(|cores| ClusterLoad { cores: *cores, sum: 0.0, product: 1.0 }).collect();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); cores.len()];
    let mut cluster_of = vec![0; loads.len()];
    for index in order {
        let task_load = loads[index];
        let by_room = |a: &usize, b: &usize| clusters[*a].room().total_cmp(&clusters[*b].room());
        // Ties go to the lowest index. `max_by` returns the last maximum, so the candidates are reversed.
        let roomiest = |candidates: &mut dyn DoubleEndedIterator<Item = usize>| candidates.rev().max_by(by_room);
        let mut fitting =
            (0..clusters.len()).filter(|cluster| admits(clusters[*cluster].with(task_load), &members[*cluster], index));
        let found = match fit {
            Fit::First => fitting.next(),
            Fit::Best => fitting.min_by(by_room),
            Fit::Worst => roomiest(&mut fitting),
        };
        let cluster = found.or_else(|| roomiest(&mut (0..clusters.len()))).unwrap_or(0);
        clusters[cluster] = clusters[cluster].with(task_load);
        members[cluster].push(index);
        cluster_of[index] = cluster;
    }
    Partition { cluster_of, members }
}

/// Whether the total load is at most the number of cores. This is exact for EDF on one core and optimistic on several.
pub fn fills_cores(load: ClusterLoad) -> bool {
    load.room() >= -1e-9
}

/// Whether the load is within the hyperbolic bound of rate-monotonic scheduling on one core.
pub fn hyperbolic_bound(load: ClusterLoad) -> bool {
    load.product <= 2.0 + 1e-9
}

#[cfg(test)]
mod tests {
    use temponet_task::Time;

    use super::*;

    fn tasks(loads: &[u64]) -> Vec<Task> {
        let named = loads.iter().enumerate();
        named.map(|(i, load)| Task::periodic(format!("t{i}"), Time::from_ms(100), Time::from_ms(*load))).collect()
    }

    #[test]
    fn fits_differ_as_their_names_say() {
        // Decreasing order: 60, 50, 30, 20. With 60 | 50 packed, first fit puts 30 on core 0, worst fit on core 1.
        let tasks = tasks(&[20, 60, 30, 50]);
        assert_eq!(pack(&tasks, &[1, 1], Fit::First, fills_cores), [1, 0, 0, 1]);
        assert_eq!(pack(&tasks, &[1, 1], Fit::Worst, fills_cores), [0, 0, 1, 1]);
        // With 70 | 60 packed, best fit puts 25 on the fuller core, worst fit on the other.
        assert_eq!(pack(&self::tasks(&[60, 70, 25]), &[1, 1], Fit::Best, fills_cores), [1, 0, 0]);
        assert_eq!(pack(&self::tasks(&[60, 70, 25]), &[1, 1], Fit::Worst, fills_cores), [1, 0, 1]);
    }

    #[test]
    fn what_fits_nowhere_goes_where_most_room_is() {
        assert_eq!(pack(&tasks(&[90, 80, 70]), &[1, 1], Fit::First, fills_cores), [0, 1, 1]);
    }
}
