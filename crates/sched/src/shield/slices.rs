//! Slices of deadlines: when a task has to be done so that those that come after it can be guaranteed, too.
//!
//! A guaranteed task is done by its deadline, so whatever comes after it is released by then: that is its release
//! jitter. With the deadlines of a file nothing would be left, because the predecessor may take as long as its
//! follower. So the deadline of a follower is divided among the tasks on the way, in proportion to their times on the
//! longest path: a task is *due* at the share that the path up to it has in the path up to its follower. The shield
//! keeps time for tasks by these dates.

use temponet_task::{Precedence, System, TaskId, Time};

/// Dates by which tasks are due, and how late their jobs can be released.
#[derive(Clone)]
pub(super) struct Slices {
    /// For each task, the time from its due date to its deadline.
    pub lead: Vec<Time>,
    /// For each task, the longest time from an arrival to its release; none if it comes after a task that is not kept.
    pub jitter: Vec<Option<Time>>,
    /// For each task, whether it and the tasks before it take longer than its deadline.
    pub is_too_long: Vec<bool>,
    /// Whether deadlines are divided.
    pub is_divided: bool,
}

impl Slices {
    /// Every task is due at its deadline, and nothing is known of followers.
    pub fn none(system: &System) -> Slices {
        let jitter = |task: TaskId| Some(system.tasks()[task].jitter).filter(|_| system.tasks()[task].after.is_empty());
        let lead = vec![Time::ZERO; system.tasks().len()];
        let is_too_long = vec![false; system.tasks().len()];
        Slices { lead, jitter: system.task_ids().map(jitter).collect(), is_too_long, is_divided: false }
    }

    /// Divides the deadlines of the followers among the tasks that are kept. `times` are the longest times that jobs
    /// take, by task. Returns none if no kept task follows another.
    pub fn of(system: &System, times: &[Time], mut is_kept: Vec<bool>) -> Option<Slices> {
        let tasks = system.tasks();
        let graph = Precedence::of(tasks).ok().flatten()?;
        // Longest path up to each task, itself included.
        let mut heads = vec![0u64; tasks.len()];
        for task in graph.order() {
            let before = &tasks[*task].after;
            is_kept[*task] &= before.iter().all(|before| is_kept[*before]);
            let head = before.iter().map(|before| heads[*before]).max().unwrap_or_default();
            heads[*task] = head.saturating_add(times[*task].0.max(1));
        }
        let mut due: Vec<Time> = tasks.iter().map(|task| task.deadline).collect();
        for task in graph.order().iter().rev() {
            for next in graph.successors(*task).iter().filter(|next| is_kept[**next]) {
                let share = u128::from(due[*next].0) * u128::from(heads[*task]) / u128::from(heads[*next].max(1));
                due[*task] = due[*task].min(Time(share as u64));
            }
        }
        let jitter = |task: TaskId| match tasks[task].after.as_slice() {
            [] => Some(tasks[task].jitter),
            before => before.iter().map(|before| due[*before]).max().filter(|_| is_kept[task]),
        };
        let follows = |task: TaskId| is_kept[task] && !tasks[task].after.is_empty();
        system.task_ids().any(follows).then(|| Slices {
            lead: tasks.iter().zip(&due).map(|(task, due)| task.deadline - *due).collect(),
            jitter: system.task_ids().map(jitter).collect(),
            is_too_long: tasks.iter().zip(&heads).map(|(task, head)| *head > task.deadline.0).collect(),
            is_divided: true,
        })
    }
}
