//! Modes: from a date on, tasks arrive more or less often, take more or less work, or stop.

use alloc::{string::String, vec::Vec};

use crate::{TaskId, Time};

/// A change of the load that lasts from `at` until the next mode begins. Tasks that it does not name go on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mode {
    /// Name shown in reports.
    pub name: String,
    /// Time at which the mode begins.
    pub at: Time,
    /// Factor on execution times, best and worst case included.
    pub work: f64,
    /// Factor on the arrival rate. Relative deadlines shrink by the same factor.
    pub rate: f64,
    /// Factors on the periods and relative deadlines of single tasks, by ascending task, beside `rate`: above 1 a task
    /// is slower, below 1 faster. Tasks that follow each other have the same factor.
    pub slower: Vec<(TaskId, f64)>,
    /// Tasks that release no jobs, ascending. A task stops with the tasks that it follows.
    pub stop: Vec<TaskId>,
}

impl Mode {
    /// Creates a mode that changes nothing.
    pub fn new(name: impl Into<String>, at: Time) -> Mode {
        Mode { name: name.into(), at, work: 1.0, rate: 1.0, slower: Vec::new(), stop: Vec::new() }
    }

    /// Returns the mode with every task stopped, among this many, but these.
    #[must_use]
    pub fn with_only(self, released: &[TaskId], tasks: usize) -> Mode {
        self.with_stop(TaskId::all(tasks).filter(|task| !released.contains(task)).collect())
    }

    /// Puts the tasks that it names in order.
    pub(crate) fn sort(&mut self) {
        self.slower.sort_by_key(|(task, _)| *task);
        self.stop.sort_unstable();
        self.stop.dedup();
    }

    /// Returns whether the task releases no jobs in the mode.
    #[inline]
    pub fn stops(&self, task: TaskId) -> bool {
        self.stop.binary_search(&task).is_ok()
    }

    /// Returns the factor on the arrival rate of a task, with its own factor. Its relative deadline shrinks by the same
    /// factor.
    #[inline]
    pub fn rate_of(&self, task: TaskId) -> f64 {
        match self.slower.binary_search_by_key(&task, |(slowed, _)| *slowed) {
            Ok(place) => self.rate / self.slower[place].1,
            Err(_) => self.rate,
        }
    }

    /// Returns the largest factor by which the mode lengthens the period of a task.
    pub fn stretch(&self) -> f64 {
        self.slower.iter().map(|(_, factor)| factor / self.rate).fold(1.0 / self.rate, f64::max)
    }
}

replaced_fields! { Mode:
    with_at at: Time,
    with_work work: f64,
    with_rate rate: f64,
    with_slower slower: Vec<(TaskId, f64)>,
    with_stop stop: Vec<TaskId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_changes_what_it_names_and_lets_the_rest_go_on() {
        let mut mode = Mode::new("m", Time(1))
            .with_rate(0.5)
            .with_slower(vec![(TaskId(7), 4.0), (TaskId(2), 0.25)])
            .with_stop(vec![TaskId(9), TaskId(1), TaskId(9)]);
        mode.sort();
        let rates = [0, 1, 2, 7].map(|task| mode.rate_of(TaskId(task)));
        assert_eq!(rates, [0.5, 0.5, 2.0, 0.125]);
        let stopped: Vec<u32> = (0..12).filter(|task| mode.stops(TaskId(*task))).collect();
        assert_eq!(stopped, [1, 9]);
        assert_eq!(mode.stretch(), 8.0);
        assert_eq!(Mode::new("m", Time(1)).with_only(&[TaskId(1)], 3).stop, [TaskId(0), TaskId(2)]);
        assert_eq!(Mode::new("fast", Time(1)).with_slower(vec![(TaskId(0), 0.5)]).stretch(), 1.0);
    }
}
