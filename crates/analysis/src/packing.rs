//! Packing of tasks onto clusters of cores, for partitioned and clustered scheduling.
//!
//! Tasks are packed in order of decreasing load. The load is the density where the deadline is shorter than the period,
//! and the utilization otherwise. A task that fits no cluster goes to the one with the most room, so overload is not an
//! error. A core with a speed of its own has as much room as its speed, and a task goes only where it may run.

use std::ops::Range;

use temponet_task::{CoreId, System, Task};

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
    /// Total speed of its cores, as a number of cores at full speed.
    capacity: f64,
    /// Sum of the loads of its tasks.
    sum: f64,
    /// Product of one plus the load of each task, as a share of one of its cores.
    product: f64,
}

impl ClusterLoad {
    /// A cluster without tasks: its number of cores and their total speed.
    pub fn empty(cores: usize, capacity: f64) -> ClusterLoad {
        ClusterLoad { cores, capacity, sum: 0.0, product: 1.0 }
    }

    fn with(self, load: f64) -> ClusterLoad {
        let share = load / (self.capacity / self.cores as f64);
        ClusterLoad { sum: self.sum + load, product: self.product * (share + 1.0), ..self }
    }

    /// Whether the loads fit one core, with a margin for rounding.
    pub fn surely_fits_one(&self) -> bool {
        self.cores == 1 && self.sum <= self.capacity * (1.0 - 1e-6)
    }

    fn room(&self) -> f64 {
        self.capacity - self.sum
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

/// Returns the cluster of each task of a system. A cluster is a range of cores.
pub fn pack(system: &System, clusters: &[Range<usize>], fit: Fit, admits: Admits) -> Vec<usize> {
    let loads: Vec<f64> = system.tasks().iter().map(load).collect();
    let machine = system.machine();
    let empty = |cores: &Range<usize>| {
        let capacity = cores.clone().map(|core| machine.speed(CoreId::new(core)).as_f64()).sum();
        ClusterLoad::empty(cores.len(), capacity)
    };
    let own = |task: usize, cluster: usize| {
        let cores = clusters[cluster].clone().map(CoreId::new);
        cores.filter(move |core| system.tasks()[task].cores.contains(*core)).map(move |core| machine.speed(core))
    };
    let may_use = |task: usize, cluster: usize| own(task, cluster).next().is_some();
    // A job is never faster than the fastest core that it may use.
    let keeps_up = |task: usize, cluster: usize| {
        machine.is_full_speed() || own(task, cluster).any(|speed| loads[task] <= speed.as_f64() + 1e-9)
    };
    let empty: Vec<ClusterLoad> = clusters.iter().map(empty).collect();
    let admits =
        |cluster: usize, packed: ClusterLoad, _: &[usize], task: usize| admits(packed) && keeps_up(task, cluster);
    pack_by(&loads, &empty, fit, may_use, admits).cluster_of
}

/// Result of a packing.
pub struct Partition {
    /// Cluster of each task.
    pub cluster_of: Vec<usize>,
    /// Tasks of each cluster.
    pub members: Vec<Vec<usize>>,
}

/// Packs tasks with these loads, in decreasing order, into these empty clusters. `may_use` says whether a task may be
/// in a cluster at all. `admits` gets a cluster, its load with the next task included, the tasks that it has so far,
/// and the next task.
pub fn pack_by(
    loads: &[f64],
    empty: &[ClusterLoad],
    fit: Fit,
    may_use: impl Fn(usize, usize) -> bool,
    mut admits: impl FnMut(usize, ClusterLoad, &[usize], usize) -> bool,
) -> Partition {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]));
    let mut clusters = empty.to_vec();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); clusters.len()];
    let mut cluster_of = vec![0; loads.len()];
    for index in order {
        let task_load = loads[index];
        let by_room = |a: &usize, b: &usize| clusters[*a].room().total_cmp(&clusters[*b].room());
        // Ties go to the lowest index. `max_by` returns the last maximum, so the candidates are reversed.
        let roomiest = |candidates: &mut dyn DoubleEndedIterator<Item = usize>| candidates.rev().max_by(by_room);
        let mut fitting = (0..clusters.len()).filter(|cluster| {
            may_use(index, *cluster) && admits(*cluster, clusters[*cluster].with(task_load), &members[*cluster], index)
        });
        let found = match fit {
            Fit::First => fitting.next(),
            Fit::Best => fitting.min_by(by_room),
            Fit::Worst => roomiest(&mut fitting),
        };
        let mut usable = (0..clusters.len()).filter(|cluster| may_use(index, *cluster));
        let cluster = found.or_else(|| roomiest(&mut usable)).unwrap_or(0);
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
    use temponet_task::{Core, CoreSet, Speed, TaskSet, Time};

    use super::*;

    fn tasks(loads: &[u64]) -> Vec<Task> {
        let named = loads.iter().enumerate();
        named.map(|(i, load)| Task::periodic(format!("t{i}"), Time::from_ms(100), Time::from_ms(*load))).collect()
    }

    /// Packs tasks onto two cores.
    fn pack(tasks: &[Task], speeds: [u32; 2], fit: Fit, admits: Admits) -> Vec<usize> {
        let mut set = TaskSet::new("set", tasks.to_vec(), 2);
        set.system.set_machine(speeds.map(|speed| Core::new("core", Speed(speed))).to_vec());
        super::pack(&set.system, &[0..1, 1..2], fit, admits)
    }

    #[test]
    fn a_core_has_as_much_room_as_its_speed_for_those_who_may_use_it() {
        // The heaviest task keeps up only with the fast core; the next two fill it.
        let mut tasks = tasks(&[120, 60, 50, 20]);
        assert_eq!(pack(&tasks, [500, 2000], Fit::First, fills_cores), [1, 1, 0, 1]);
        tasks[3].cores = CoreSet::of([CoreId(0)]);
        assert_eq!(pack(&tasks, [500, 2000], Fit::First, fills_cores), [1, 1, 0, 0]);
        // Shares of a core count in the hyperbolic bound: (0.6 + 1)(0.3 + 1) > 2.
        assert_eq!(pack(&tasks[..2], [500, 2000], Fit::First, hyperbolic_bound), [1, 1]);
    }

    #[test]
    fn fits_differ_as_their_names_say() {
        // Decreasing order: 60, 50, 30, 20. With 60 | 50 packed, first fit puts 30 on core 0, worst fit on core 1.
        let tasks = tasks(&[20, 60, 30, 50]);
        assert_eq!(pack(&tasks, [1000; 2], Fit::First, fills_cores), [1, 0, 0, 1]);
        assert_eq!(pack(&tasks, [1000; 2], Fit::Worst, fills_cores), [0, 0, 1, 1]);
        // With 70 | 60 packed, best fit puts 25 on the fuller core, worst fit on the other.
        assert_eq!(pack(&self::tasks(&[60, 70, 25]), [1000; 2], Fit::Best, fills_cores), [1, 0, 0]);
        assert_eq!(pack(&self::tasks(&[60, 70, 25]), [1000; 2], Fit::Worst, fills_cores), [1, 0, 1]);
    }

    #[test]
    fn what_fits_nowhere_goes_where_most_room_is() {
        assert_eq!(pack(&tasks(&[90, 80, 70]), [1000; 2], Fit::First, fills_cores), [0, 1, 1]);
    }
}
