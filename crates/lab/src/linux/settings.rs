//! What Linux can be told about each thread of a set.

use std::collections::BTreeSet;
use std::fmt;

use temponet_analysis::Sporadic;
use temponet_task::{Attribute, CoreId, CoreSet, TaskId, TaskSet, Time};

/// Policy of a thread, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: a fair share.
    Other {
        /// Nice value, −20 to 19.
        nice: i8,
    },
    /// SCHED_FIFO.
    Fifo {
        /// Priority, 1 to 99; the larger runs first.
        priority: u8,
    },
    /// SCHED_DEADLINE: a reservation.
    Deadline {
        /// Processor time in each period.
        budget: Time,
        /// Relative deadline of the reservation.
        deadline: Time,
        /// Period of the reservation.
        period: Time,
    },
}

/// Share of the processors that the kernel gives to SCHED_DEADLINE at most, unless it was told otherwise.
pub const ADMITTED: f64 = 0.95;

/// Highest priority that advice gives where the levels below suffice: handlers of interrupts that are threads have 50.
const BELOW_INTERRUPTS: u8 = 49;
/// Highest priority otherwise: threads of the kernel that keep the machine alive have 99.
const HIGHEST: u8 = 98;
/// Range of the priorities of SCHED_FIFO.
const PRIORITIES: std::ops::RangeInclusive<i64> = 1..=99;

impl Policy {
    /// Name in system calls.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Other { .. } => "SCHED_OTHER",
            Policy::Fifo { .. } => "SCHED_FIFO",
            Policy::Deadline { .. } => "SCHED_DEADLINE",
        }
    }

    /// Share of a processor that a reservation takes; zero for other policies.
    pub fn bandwidth(self) -> f64 {
        match self {
            Policy::Deadline { budget, period, .. } => budget.0 as f64 / period.0 as f64,
            _ => 0.0,
        }
    }

    /// What a processor has to do for a task with this policy: a reservation takes the place of its jobs.
    pub(super) fn served(self, task: &Sporadic) -> Sporadic {
        let Policy::Deadline { budget, deadline, period } = self else { return *task };
        let (jitter, offset) = (Time::ZERO, Time::ZERO);
        Sporadic { wcet: budget, jobs: 1, deadline, period, jitter, offset, is_periodic: false, ..*task }
    }

    pub(super) fn is_deadline(self) -> bool {
        matches!(self, Policy::Deadline { .. })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other { nice: 0 } => f.write_str("other"),
            Policy::Other { nice } => write!(f, "other, nice {nice}"),
            Policy::Fifo { priority } => write!(f, "fifo {priority}"),
            Policy::Deadline { budget, deadline, period } if deadline == period => {
                write!(f, "deadline {budget} in {period}")
            }
            Policy::Deadline { budget, deadline, period } => {
                write!(f, "deadline {budget} by {deadline} in {period}")
            }
        }
    }
}

/// Settings of the thread of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Policy.
    pub policy: Policy,
    /// Processors that it may run on.
    pub cores: CoreSet,
}

/// Settings of the threads of a set, one for each task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// In the order of the tasks.
    pub threads: Vec<Setting>,
    /// Whether the kernel is to keep reservations on single processors, which it does for root domains (cpuset
    /// partitions) alone.
    pub has_partitions: bool,
}

impl Settings {
    /// The settings that a set states: SCHED_FIFO for tasks with a priority, SCHED_OTHER for all others, on the cores
    /// that they may use. Priorities that SCHED_FIFO does not have are mapped to some in the same order, which the
    /// second result says.
    pub fn stated(set: &TaskSet) -> (Settings, Option<String>) {
        let given = |id: TaskId| set.tasks()[id].extra.get(Attribute::Priority);
        let distinct: BTreeSet<i64> = set.task_ids().filter_map(given).collect();
        let is_linux = distinct.iter().all(|priority| PRIORITIES.contains(priority));
        let ranks: Vec<i64> = distinct.into_iter().rev().collect();
        let levels = levels(ranks.len(), 1, highest_for(ranks.len()));
        let level = |priority: i64| match is_linux {
            true => priority as u8,
            false => ranks.iter().position(|rank| *rank == priority).map_or(1, |at| levels[at]),
        };
        let thread = |id: TaskId| Setting {
            policy: given(id).map_or(Policy::Other { nice: 0 }, |priority| Policy::Fifo { priority: level(priority) }),
            cores: set.tasks()[id].cores.clone(),
        };
        let note = "priorities beyond 1 to 99 are read as priorities of SCHED_FIFO in the same order";
        let settings = Settings { threads: set.task_ids().map(thread).collect(), has_partitions: false };
        (settings, (!is_linux).then(|| note.into()))
    }

    /// The set with the priorities and processors of these settings.
    pub fn applied(&self, set: &TaskSet) -> TaskSet {
        let mut tasks = set.tasks().to_vec();
        for (task, thread) in tasks.iter_mut().zip(&self.threads) {
            let priority = match thread.policy {
                Policy::Fifo { priority } => Some(i64::from(priority)),
                _ => None,
            };
            task.extra.set(Attribute::Priority, priority);
            task.cores = thread.cores.clone();
        }
        set.clone().with_tasks(tasks)
    }

    /// The only core of a thread; none if it may use several.
    pub fn pinned(&self, task: usize, cores: usize) -> Option<CoreId> {
        let mut own = self.threads[task].cores.iter(cores);
        own.next().filter(|_| own.next().is_none())
    }

    /// Whether the kernel admits the reservations: at most 95% of the processors, and of each processor where these are
    /// partitions.
    pub fn is_admitted(&self, cores: usize) -> bool {
        let total = |core: Option<CoreId>| -> f64 {
            let own =
                (0..self.threads.len()).filter(|task| core.is_none_or(|core| self.pinned(*task, cores) == Some(core)));
            own.map(|task| self.threads[task].policy.bandwidth()).sum()
        };
        let most = ADMITTED - 1e-9;
        match self.has_partitions {
            true => CoreId::all(cores).all(|core| total(Some(core)) <= most),
            false => total(None) <= most * cores as f64,
        }
    }

    /// Work that reservations and SCHED_FIFO can ask for on a core within a second is beyond what the kernel leaves
    /// them, so that it may throttle them while other threads wait.
    pub fn may_be_throttled(&self, set: &TaskSet) -> bool {
        let second = Time::from_secs(1);
        let work = |task: usize| match self.threads[task].policy {
            Policy::Fifo { .. } => set.tasks()[task].period().map_or(second.0, |period| {
                let jobs = second.0.div_ceil(period.0).saturating_add(1);
                jobs.saturating_mul(set.tasks()[task].wcet.0)
            }),
            _ => 0,
        };
        let on = |core: CoreId| (0..self.threads.len()).filter(move |task| self.threads[*task].cores.contains(core));
        let asked = |core: CoreId| on(core).map(work).fold(0, u64::saturating_add);
        CoreId::all(set.cores()).any(|core| asked(core) as f64 > ADMITTED * second.0 as f64)
    }
}

/// Longest time that a reservation may take to serve a job of a task.
pub(super) fn time_to_serve(task: &Sporadic) -> Time {
    task.deadline.min(task.period).saturating_sub(task.jitter)
}

/// Whether the jobs of an arrival find their thread awake. Those of a burst come apart if they have jitter, and the thread
/// sleeps in between; a reservation does not serve them.
pub(super) fn wakes_once(task: &Sporadic) -> bool {
    task.jobs == 1 || task.jitter == Time::ZERO
}

/// Priorities for `count` threads from the highest on, from `high` down to `low`. Where there are more threads than
/// priorities, some share one.
pub(super) fn levels(count: usize, low: u8, high: u8) -> Vec<u8> {
    let span = usize::from(high.saturating_sub(low)) + 1;
    let level = |at: usize| if count <= span { at } else { at * span / count };
    (0..count).map(|at| high.saturating_sub(level(at) as u8).max(low)).collect()
}

/// Highest priority that advice gives to this many levels.
pub(super) fn highest_for(count: usize) -> u8 {
    if count <= usize::from(BELOW_INTERRUPTS) { BELOW_INTERRUPTS } else { HIGHEST }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Task;

    fn set(priorities: &[Option<i64>]) -> TaskSet {
        let task = |priority: &Option<i64>| {
            let mut task = Task::periodic("t", Time::from_ms(10), Time::from_ms(1));
            task.extra.set(Attribute::Priority, *priority);
            task
        };
        TaskSet::new("s", priorities.iter().map(task).collect(), 2)
    }

    #[test]
    fn stated_priorities_are_those_of_linux_or_in_the_same_order() {
        let policies = |priorities: &[Option<i64>]| -> (Vec<Policy>, bool) {
            let (settings, note) = Settings::stated(&set(priorities));
            (settings.threads.iter().map(|thread| thread.policy).collect(), note.is_some())
        };
        let fifo = |priority| Policy::Fifo { priority };
        assert_eq!(policies(&[Some(80), None, Some(1)]), (vec![fifo(80), Policy::Other { nice: 0 }, fifo(1)], false));
        assert_eq!(policies(&[Some(0), Some(-5), Some(7000)]), (vec![fifo(48), fifo(47), fifo(49)], true));
    }

    #[test]
    fn levels_fall_and_are_shared_where_they_do_not_suffice() {
        assert_eq!(levels(3, 1, 49), [49, 48, 47]);
        assert_eq!(levels(4, 7, 8), [8, 8, 7, 7]);
        let many = levels(300, 1, HIGHEST);
        assert!(many.windows(2).all(|pair| pair[0] >= pair[1]) && many[0] == HIGHEST && many[299] == 1);
        assert!(levels(0, 1, 49).is_empty());
    }

    #[test]
    fn the_kernel_admits_reservations_of_95_percent() {
        let reserve = |ms: u64, core: Option<u32>| Setting {
            policy: Policy::Deadline {
                budget: Time::from_ms(ms),
                deadline: Time::from_ms(100),
                period: Time::from_ms(100),
            },
            cores: core.map_or(CoreSet::ALL, |core| CoreSet::of([CoreId(core)])),
        };
        let of = |threads: Vec<Setting>, has_partitions| Settings { threads, has_partitions };
        assert!(!of(vec![reserve(99, None), reserve(91, None)], false).is_admitted(2));
        assert!(of(vec![reserve(99, None), reserve(90, None)], false).is_admitted(2));
        assert!(!of(vec![reserve(99, Some(0)), reserve(10, Some(1))], true).is_admitted(2));
        assert!(of(vec![reserve(94, Some(0)), reserve(94, Some(1))], true).is_admitted(2));
    }
}
