//! Edge generation: a graph with more parallel tasks than cores gets more edges until it is no wider than the cores.
//! Such a graph meets its deadline on its own whenever its longest path does. Jobs then run by EDF with the due dates
//! of the graph with the new edges.
//!
//! Reference: Sun, Mao, Wang, Cao and Gu, "Edge Generation Scheduling for DAG Tasks Using Deep Reinforcement Learning",
//! IEEE Transactions on Computers 73(4), 2024. What is taken: the width and the longest path as what makes a graph
//! trivially schedulable, and edges that are added until the width fits. What is not: there, a learned policy chooses
//! the edges, and the edges bind. Here, each edge is the one between tasks of a largest antichain that makes the
//! longest path grow the least, and the edges only order jobs, so that no core waits and several graphs can share the
//! cores. Ties: of edges, the lower task indices; of jobs, earlier release, then lower task index.

use temponet_task::{DueDates, Precedence, Scheduler, System, Task, TaskId, Time};

use crate::shared::ranked::TaskKey;

/// Largest graph that gets edges, in tasks. Larger ones keep the due dates that they have.
const MOST_TASKS: usize = 128;

pub(crate) fn egs() -> impl Scheduler {
    TaskKey::new(leads, |job, lead| job.deadline.saturating_sub(lead))
}

/// Returns how long before its deadline each task's jobs are due.
pub(crate) fn leads(system: &System) -> Vec<Time> {
    let dates = DueDates::among(&with_edges(system.tasks(), system.cores()), system);
    system.task_ids().map(|task| dates.lead(task)).collect()
}

/// Returns the tasks with generated edges, so that no graph is wider than the number of cores.
fn with_edges(tasks: &[Task], cores: usize) -> Vec<Task> {
    let mut extended = tasks.to_vec();
    let Ok(Some(graph)) = Precedence::of(tasks) else { return extended };
    for nodes in graphs(tasks, &graph).into_iter().filter(|nodes| (2..=MOST_TASKS).contains(&nodes.len())) {
        let mut order = Order::of(tasks, &nodes);
        while let Some(antichain) = order.wider_than(cores) {
            let Some((first, second)) = order.cheapest_edge(&antichain) else { break };
            order.add(first, second);
            extended[nodes[second]].after.push(nodes[first]);
        }
    }
    extended
}

/// Returns the tasks of each connected graph, each after its predecessors.
fn graphs(tasks: &[Task], graph: &Precedence) -> Vec<Vec<TaskId>> {
    let mut graph_of: Vec<usize> = (0..tasks.len()).collect();
    for (index, task) in tasks.iter().enumerate() {
        for before in &task.after {
            let (old, new) = (graph_of[index], graph_of[*before]);
            graph_of.iter_mut().filter(|of| **of == old).for_each(|of| *of = new);
        }
    }
    let members = |of: usize| graph.order().iter().copied().filter(|task| graph_of[*task] == of).collect();
    (0..tasks.len()).map(members).filter(|nodes: &Vec<TaskId>| !nodes.is_empty()).collect()
}

/// The partial order of one graph's tasks.
struct Order {
    wcets: Vec<u64>,
    /// Whether the first task comes before the second one, directly or not.
    before: Vec<Vec<bool>>,
}

impl Order {
    fn of(tasks: &[Task], nodes: &[TaskId]) -> Order {
        let mut order = Order {
            wcets: nodes.iter().map(|node| tasks[*node].wcet.0).collect(),
            before: vec![vec![false; nodes.len()]; nodes.len()],
        };
        for (second, node) in nodes.iter().enumerate() {
            for first in (0..second).filter(|first| tasks[*node].after.contains(&nodes[*first])) {
                order.add(first, second);
            }
        }
        order
    }

    /// Lets one task come before another, with everything that follows from it.
    fn add(&mut self, first: usize, second: usize) {
        let nodes = 0..self.wcets.len();
        let earlier: Vec<usize> = nodes.clone().filter(|node| *node == first || self.before[*node][first]).collect();
        let later: Vec<usize> = nodes.filter(|node| *node == second || self.before[second][*node]).collect();
        for node in earlier {
            later.iter().for_each(|next| self.before[node][*next] = true);
        }
    }

    /// Returns a largest set of tasks that are not ordered among each other, if it has more than `most` tasks (Dilworth
    /// 1950; the matching of Fulkerson 1956).
    fn wider_than(&self, most: usize) -> Option<Vec<usize>> {
        let count = self.wcets.len();
        let mut matched: Vec<Option<usize>> = vec![None; count];
        let mut size = 0;
        for node in 0..count {
            size += usize::from(self.augment(node, &mut vec![false; count], &mut matched));
        }
        if count - size <= most {
            return None;
        }
        // The rest of a smallest vertex cover (König 1931): nodes that alternating paths from unmatched ones reach.
        let mut reached = (vec![false; count], vec![false; count]);
        let mut open: Vec<usize> = (0..count).filter(|node| !matched.contains(&Some(*node))).collect();
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut reached.0[node], true) {
                continue;
            }
            for next in (0..count).filter(|next| self.before[node][*next]) {
                if !std::mem::replace(&mut reached.1[next], true) {
                    open.extend(matched[next]);
                }
            }
        }
        Some((0..count).filter(|node| reached.0[*node] && !reached.1[*node]).collect())
    }

    /// Finds a successor for a node in the matching; `matched` has the predecessor of each node.
    fn augment(&self, node: usize, seen: &mut [bool], matched: &mut [Option<usize>]) -> bool {
        for next in 0..matched.len() {
            if !self.before[node][next] || std::mem::replace(&mut seen[next], true) {
                continue;
            }
            if matched[next].is_none_or(|other| self.augment(other, seen, matched)) {
                matched[next] = Some(node);
                return true;
            }
        }
        false
    }

    /// Returns the edge between two tasks of an antichain that makes the longest path grow the least.
    fn cheapest_edge(&self, antichain: &[usize]) -> Option<(usize, usize)> {
        let count = self.wcets.len();
        // Longest paths to the end and from the start of each task, that task included.
        let longest = |is_before: &dyn Fn(usize, usize) -> bool| {
            let mut nodes: Vec<usize> = (0..count).collect();
            nodes.sort_by_key(|node| (0..count).filter(|other| is_before(*other, *node)).count());
            let mut longest = vec![0u64; count];
            for node in nodes {
                let before = (0..count).filter(|other| is_before(*other, node)).map(|other| longest[other]).max();
                longest[node] = self.wcets[node].saturating_add(before.unwrap_or(0));
            }
            longest
        };
        let to = longest(&|first, second| self.before[first][second]);
        let from = longest(&|first, second| self.before[second][first]);
        let pairs = antichain.iter().flat_map(|first| antichain.iter().map(move |second| (*first, *second)));
        let pairs = pairs.filter(|(first, second)| first != second);
        pairs.min_by_key(|(first, second)| (to[*first].saturating_add(from[*second]), *first, *second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(given: &[(u64, &[u32])]) -> Vec<Task> {
        let task = |(index, (wcet, after)): (usize, &(u64, &[u32]))| {
            Task::periodic(format!("t{index}"), Time(1_000), Time(*wcet))
                .with_after(after.iter().copied().map(TaskId).collect())
        };
        given.iter().enumerate().map(task).collect()
    }

    /// Largest number of unordered tasks by trying all subsets.
    fn width(order: &Order) -> usize {
        let count = order.wcets.len();
        let unordered = |set: &u32| {
            let members: Vec<usize> = (0..count).filter(|node| set >> node & 1 == 1).collect();
            members.iter().all(|first| members.iter().all(|second| !order.before[*first][*second]))
        };
        (0..1u32 << count).filter(unordered).map(u32::count_ones).max().unwrap_or(0) as usize
    }

    #[test]
    fn graphs_become_no_wider_than_the_cores() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_pcg::Pcg64::seed_from_u64(7);
        for _ in 0..300 {
            let count = rng.random_range(2..9);
            let mut given = tasks(&vec![(1, &[][..]); count]);
            for (index, task) in given.iter_mut().enumerate().skip(1) {
                task.wcet = Time(rng.random_range(1..50));
                task.after = TaskId::all(index).filter(|_| rng.random_bool(0.3)).collect();
                if task.after.is_empty() {
                    task.after = vec![TaskId(0)];
                }
            }
            let cores = rng.random_range(1..4);
            let nodes: Vec<TaskId> = TaskId::all(count).collect();
            let before = Order::of(&given, &nodes);
            let found = before.wider_than(cores);
            assert_eq!(found.is_some(), width(&before) > cores);
            if let Some(antichain) = found {
                assert_eq!(antichain.len(), width(&before));
            }
            let extended = with_edges(&given, cores);
            let graph = Precedence::of(&extended).unwrap().unwrap();
            assert!(width(&Order::of(&extended, graph.order())) <= cores);
        }
    }

    #[test]
    fn the_longer_path_comes_first_where_only_one_can() {
        // A source, two branches of 10 and 30, one core: the longer branch first makes nothing longer than the other
        // order, so the lower index decides.
        let given = tasks(&[(1, &[]), (10, &[0]), (30, &[0]), (5, &[2])]);
        let extended = with_edges(&given, 1);
        assert!(extended.iter().zip(&given).any(|(after, before)| after.after.len() > before.after.len()));
        let system = temponet_task::TaskSet::new("s", given, 2).system;
        let plain = crate::schedulers::edf_chain::leads(&system);
        assert_eq!(leads(&system), plain, "two cores are wide enough");
    }
}
