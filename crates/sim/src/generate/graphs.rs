//! Random graphs: independent tasks become tasks that come after each other.
//!
//! Consecutive tasks form a graph. Its first task is the source, its last one the sink, and every pair in between is
//! joined with a probability (Erdős and Rényi's model on an order, as in Cordeiro, Mounié, Perarnau, Trystram, Vincent
//! and Wagner, SIMUTools 2010). All tasks of a graph arrive with its source, and each keeps the utilization that it was
//! drawn with. A chain follows the longest path of wcets from the source to the sink.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;
use temponet_task::{Arrival, Chain, Communication, Precedence, TaskId, TaskSet, Time, levels};

/// Shape of random graphs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graphs {
    /// Number of tasks of a graph, at least 2. The last graph of a set may be smaller.
    pub size: usize,
    /// Probability that one task of a graph comes after an earlier one, 0 to 1.
    pub edges: f64,
    /// End-to-end deadline as a multiple of the period.
    #[serde(default = "whole_period")]
    pub deadline: f64,
}

fn whole_period() -> f64 {
    1.0
}

impl Graphs {
    /// Returns what is wrong with the numbers, or `None`.
    pub fn problem(&self) -> Option<&'static str> {
        let is_good = (2..=1000).contains(&self.size) && (0.0..=1.0).contains(&self.edges);
        let is_good = is_good && (0.01..=100.0).contains(&self.deadline);
        (!is_good)
            .then_some("graphs have 2 to 1000 tasks, a probability of edges, and a deadline of 0.01 to 100 periods")
    }

    /// Joins the tasks of a set to graphs, at random. Tasks that are not periodic, or that come after others already,
    /// stay as they are. A mode that releases the source of a graph releases all of it.
    pub fn join(&self, set: &mut TaskSet, seed: u64) {
        let mut rng = Pcg64::seed_from_u64(seed ^ 0x6772_6170_6873);
        let is_single = |task: &TaskId| {
            matches!(set.tasks()[*task].arrival, Arrival::Periodic { .. }) && set.tasks()[*task].after.is_empty()
        };
        let single: Vec<TaskId> = set.task_ids().filter(is_single).collect();
        for (number, nodes) in single.chunks(self.size.max(2)).filter(|nodes| nodes.len() > 1).enumerate() {
            self.join_one(set, number, nodes, &mut rng);
        }
    }

    /// Makes one graph of these tasks.
    fn join_one(&self, set: &mut TaskSet, number: usize, nodes: &[TaskId], rng: &mut Pcg64) {
        let (source, sink) = (nodes[0], nodes[nodes.len() - 1]);
        let period = set.tasks()[source].period().unwrap_or_default();
        let deadline = Time(((period.0 as f64 * self.deadline) as u64).clamp(1, Time::MAX_INPUT.0));
        for (at, node) in nodes.iter().enumerate() {
            let own = set.tasks()[*node].period().unwrap_or(period);
            // A period that is longer by a factor takes work that is longer by the same factor.
            let mut task = set.tasks()[*node].with_work(period.0, own.0);
            task.deadline = deadline;
            task.after = nodes[..at].iter().copied().filter(|_| rng.random_bool(self.edges)).collect();
            if at > 0 && task.after.is_empty() {
                task.after = vec![source];
            }
            set.system.tasks_mut()[*node] = task;
        }
        let has_successor = |node: &TaskId| nodes.iter().any(|other| set.tasks()[*other].after.contains(node));
        let ends: Vec<TaskId> = nodes.iter().copied().filter(|node| *node != sink && !has_successor(node)).collect();
        set.system.tasks_mut()[sink].after.extend(ends);
        set.system.tasks_mut()[sink].after.sort_unstable();
        // The graph is in order and has one source, so its tasks can follow it.
        let _ = set.system.follow_sources();
        let mut modes = set.modes().to_vec();
        for mode in &mut modes {
            // A graph stops with its source, and goes on with it.
            let is_stopped = mode.stops(source);
            mode.stop.retain(|task| !nodes.contains(task));
            mode.stop.extend(nodes.iter().filter(|_| is_stopped));
        }
        set.set_modes(modes);
        let chain = longest_chain(set, number, source, deadline);
        set.system.set_chains([set.chains(), &[chain]].concat());
    }
}

/// Returns the chain along the longest path of wcets from a source.
fn longest_chain(set: &TaskSet, number: usize, source: TaskId, deadline: Time) -> Chain {
    let (levels, graph) = (levels(set.tasks()), Precedence::of(set.tasks()).ok().flatten());
    let next = |task: TaskId| {
        let behind = graph.as_ref().map_or(&[][..], |graph| graph.successors(task)).iter().copied();
        behind.max_by_key(|next| (levels[*next], std::cmp::Reverse(*next)))
    };
    let tasks = std::iter::successors(Some(source), |task| next(*task)).collect();
    Chain { name: format!("graph{number}"), tasks, deadline: Some(deadline), communication: Communication::Implicit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Spec, Variety, generate};

    #[test]
    fn graphs_are_valid_and_keep_the_load() {
        for seed in 0..40 {
            let mut set = generate(&Spec::new(17, 3, 2.0), seed).unwrap();
            let before = set.utilization();
            let graphs = Graphs { size: 5, edges: 0.1 * (seed % 10) as f64, deadline: 1.5 };
            assert_eq!(graphs.problem(), None);
            graphs.join(&mut set, seed);
            assert_eq!(set.system.validate(), Ok(()));
            assert!((set.utilization() / before - 1.0).abs() < 1e-3);
            assert_eq!(set.chains().len(), 4);
            let graph = Precedence::of(set.tasks()).unwrap().unwrap();
            assert!((0..15).all(|task| graph.sources(TaskId(task)) == [TaskId(task / 5 * 5)]));
            let again = {
                let mut set = generate(&Spec::new(17, 3, 2.0), seed).unwrap();
                graphs.join(&mut set, seed);
                set
            };
            assert_eq!(set, again);
        }
        assert!(Graphs { size: 1, edges: 0.5, deadline: 1.0 }.problem().is_some());
    }

    #[test]
    fn a_mode_stops_whole_graphs() {
        let modes = Variety::certain(["modes"].into_iter()).unwrap();
        let mut partial = 0;
        for seed in 0..40 {
            let mut set = generate(&Spec::new(10, 2, 1.6), seed).unwrap();
            modes.apply(&mut set, seed);
            Graphs { size: 4, edges: 0.5, deadline: 1.0 }.join(&mut set, seed);
            let graph = Precedence::of(set.tasks()).unwrap().unwrap();
            for mode in set.modes() {
                partial += usize::from(!mode.stop.is_empty());
                assert!(mode.stop.is_sorted());
                let is_whole =
                    |task: TaskId| graph.sources(task).iter().all(|source| mode.stops(*source) == mode.stops(task));
                assert!(set.task_ids().all(is_whole), "{seed}: {mode:?}");
            }
        }
        assert!(partial > 20, "{partial}");
    }
}
