//! Parts: a task that runs in turn on several cores, such as a processor, a GPU and the processor again.
//!
//! The parts of a task are tasks of their own, directly one after the other in the list of tasks. Each part but the
//! first comes after the one before ([`Task::after`]), and each but the last is marked ([`Task::is_part`]). The last
//! one has the name of the whole and stands for it: its jobs are those that count, and whatever names the whole names
//! it. All parts have the deadline of the whole, counted from the arrival of the first.
//!
//! So schedulers, analysis and engine see tasks that follow each other, and whoever counts or draws jobs asks here
//! which of them belong together.

use crate::{System, Task, TaskId};

/// Returns the first part of the task that `task` belongs to; the task itself if it has no parts.
pub(crate) fn first_part(tasks: &[Task], task: TaskId) -> TaskId {
    let mut first = task.index();
    while first > 0 && tasks.get(first - 1).is_some_and(|before| before.is_part) {
        first -= 1;
    }
    TaskId::new(first)
}

/// Returns the id of the first part that is not followed by the next one of its task, if there is one.
pub(crate) fn loose_part(tasks: &[Task]) -> Option<TaskId> {
    let is_loose = |part: &TaskId| {
        let next = tasks.get(part.index() + 1);
        tasks[*part].is_part && next.is_none_or(|next| next.after != [*part])
    };
    TaskId::all(tasks.len()).find(is_loose)
}

impl System {
    /// Returns whether some task has parts.
    pub fn has_parts(&self) -> bool {
        self.tasks().iter().any(|task| task.is_part)
    }

    /// Returns the task that a part belongs to, which is its last part; other tasks are their own whole.
    pub fn whole(&self, task: TaskId) -> TaskId {
        let behind = self.tasks()[task.index()..].iter().take_while(|task| task.is_part).count();
        TaskId::new((task.index() + behind).min(self.tasks().len().saturating_sub(1)))
    }

    /// Returns the first part of the whole that a task belongs to: the one that says what the whole comes after and
    /// what it reads. A task without parts is its own first part.
    pub fn first_part(&self, task: TaskId) -> TaskId {
        first_part(self.tasks(), task)
    }

    /// Iterates over the parts of a whole task, in their order; the last is the task itself.
    pub fn parts(&self, whole: TaskId) -> impl DoubleEndedIterator<Item = TaskId> + Clone + use<> {
        let first = self.first_part(whole).index();
        (first..whole.index() + 1).map(TaskId::new)
    }

    /// Iterates over the tasks whose jobs count: all but the parts of others.
    pub fn whole_tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + Clone + '_ {
        self.task_ids().filter(|task| !self.tasks()[*task].is_part)
    }

    /// Returns the number of tasks, each with its parts counted once.
    pub fn task_count(&self) -> usize {
        self.whole_tasks().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InvalidSystem, PrecedenceProblem, Time};
    use alloc::{vec, vec::Vec};

    /// A task, one with three parts, and another one.
    fn system() -> System {
        let task = |name: &str| Task::periodic(name, Time(100), Time(10));
        let part = |name: &str, after: &[u32]| task(name).with_after(after.iter().copied().map(TaskId).collect());
        let mut first = task("camera (part 1)");
        first.is_part = true;
        let second = part("camera (part 2)", &[1]).with_is_part(true);
        System::new(vec![task("a"), first, second, part("camera", &[2]), task("b")], 2)
    }

    #[test]
    fn the_last_part_stands_for_the_whole() {
        let system = system();
        assert_eq!(system.validate(), Ok(()));
        let wholes: Vec<u32> = system.task_ids().map(|task| system.whole(task).0).collect();
        assert_eq!(wholes, [0, 3, 3, 3, 4]);
        assert_eq!(system.first_part(TaskId(3)), TaskId(1));
        assert_eq!(system.parts(TaskId(3)).map(|part| part.0).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(system.parts(TaskId(4)).map(|part| part.0).collect::<Vec<_>>(), [4]);
        assert_eq!(system.whole_tasks().map(|task| task.0).collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!((system.task_count(), system.has_parts()), (3, true));
    }

    #[test]
    fn a_part_that_the_next_task_does_not_follow_is_refused() {
        for loose in [2, 3, 4] {
            let mut system = system();
            system.tasks_mut()[loose].is_part = true;
            if loose == 2 {
                system.tasks_mut()[3].after = vec![TaskId(0), TaskId(2)];
            }
            let found = system.validate();
            assert!(
                matches!(found, Err(InvalidSystem::Precedence { what: PrecedenceProblem::LoosePart, .. })),
                "{loose}: {found:?}"
            );
        }
    }
}
