//! Tasks that arrive with others: a job of a task that follows others arrives when the jobs with its number of all its
//! sources have arrived.
//!
//! Whether it is released then, and when, depends on the schedule and is not decided here.

use temponet_task::{Precedence, Task, TaskId};

/// Arrivals of the tasks that follow others.
#[derive(Clone)]
pub(super) struct Followers {
    /// Tasks that arrive with each task that is a source.
    of_source: Vec<Vec<TaskId>>,
    /// Number of sources of each task.
    sources: Vec<u32>,
    /// Number of jobs of each task that have arrived.
    arrived: Vec<u64>,
    /// For each task with several sources: how many sources of its next jobs have arrived, its next job first.
    partly: Vec<std::collections::VecDeque<u32>>,
    /// Tasks whose jobs arrive now.
    now: Vec<TaskId>,
}

impl Followers {
    /// Returns the followers among the tasks; `None` if there are none.
    pub fn of(tasks: &[Task]) -> Option<Box<Followers>> {
        let graph = Precedence::of(tasks).ok().flatten()?;
        let mut of_source = vec![Vec::new(); tasks.len()];
        let mut sources = vec![0; tasks.len()];
        for id in TaskId::all(tasks.len()).filter(|id| !tasks[*id].after.is_empty()) {
            sources[id] = graph.sources(id).len() as u32;
            graph.sources(id).iter().for_each(|source| of_source[*source].push(id));
        }
        let (arrived, partly) = (vec![0; tasks.len()], vec![Default::default(); tasks.len()]);
        Some(Box::new(Followers { of_source, sources, arrived, partly, now: Vec::new() }))
    }

    /// Goes on in the middle of a run, where the next job of each task has this number.
    pub fn resume(&mut self, numbers: impl Iterator<Item = u64>) {
        self.arrived = numbers.collect();
        for (source, followers) in self.of_source.iter().enumerate() {
            // A source that is ahead of a follower with another source has arrived already.
            for follower in followers.iter().copied() {
                let ahead = self.arrived[source].saturating_sub(self.arrived[follower]) as usize;
                let partly = &mut self.partly[follower];
                partly.resize(partly.len().max(ahead), 0);
                partly.iter_mut().take(ahead).for_each(|sources| *sources += 1);
            }
        }
    }

    /// Takes note that a job of a source has arrived. Returns the tasks whose jobs with this number arrive with it,
    /// ascending.
    pub fn source_arrived(&mut self, source: TaskId, number: u64) -> &[TaskId] {
        self.now.clear();
        for follower in &self.of_source[source] {
            let at = *follower;
            if self.sources[at] > 1 {
                // A job that arrived before the middle of a run in which this one began is not waited for.
                let Some(ahead) = number.checked_sub(self.arrived[at]) else { continue };
                let partly = &mut self.partly[at];
                if partly.len() <= ahead as usize {
                    partly.resize(ahead as usize + 1, 0);
                }
                partly[ahead as usize] += 1;
                if partly[0] < self.sources[at] {
                    continue;
                }
                partly.pop_front();
            }
            self.arrived[at] = number + 1;
            self.now.push(at);
        }
        &self.now
    }
}
