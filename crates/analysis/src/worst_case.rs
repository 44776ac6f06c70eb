//! What the tests know of a set: every task as a sporadic one, jobs at least so far apart, each with a bounded delay of its release.
//!
//! Bursts are jobs that arrive together. Lists of single jobs and mode switches have no such model, and a cost of decisions, which falls
//! on whichever job happens to run, is covered by no test: those sets are not analysable, and say why.

use std::cmp::Ordering;

use temponet_task::{Arrival, ExecutionModel, Task, TaskSet, Time};

use super::fractions::{Fraction, compare_sum};

/// A task as its worst case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sporadic {
    /// Its place in the set.
    pub index: usize,
    /// What one job takes at most, switching included.
    pub wcet: Time,
    /// Jobs that arrive together, more than one only for bursts.
    pub jobs: u32,
    /// From the arrival.
    pub deadline: Time,
    /// The least time between arrivals.
    pub period: Time,
    /// A release comes up to this long after the arrival.
    pub jitter: Time,
    /// First arrival.
    pub offset: Time,
    /// As [`Task::priority`].
    pub priority: Option<i64>,
    /// Arrivals are exactly a period apart, for ever.
    pub is_periodic: bool,
}

impl Sporadic {
    /// What all jobs of one arrival take together.
    pub fn work(&self) -> u64 {
        self.wcet.0.saturating_mul(u64::from(self.jobs))
    }

    /// From the latest release to the deadline; zero if the release can be later than that.
    pub fn window(&self) -> u64 {
        self.deadline.saturating_sub(self.jitter).0
    }

    pub(crate) fn utilization(&self) -> Fraction {
        (self.work(), self.period.0)
    }

    /// Work over the time it surely has for itself before the deadline and before the next arrival; more than any machine has if
    /// jitter can take all of that.
    pub(crate) fn density(&self) -> Fraction {
        match self.deadline.min(self.period).saturating_sub(self.jitter) {
            Time::ZERO => (u64::MAX, 1),
            time => (self.work(), time.0),
        }
    }
}

/// A set as its worst case.
#[derive(Clone, Debug)]
pub struct WorstCase {
    /// In the set's order.
    pub tasks: Vec<Sporadic>,
    /// Identical cores.
    pub cores: usize,
    /// What dispatching adds to a job at most; it is part of every wcet here, and verdicts are no longer exact.
    pub switching: Time,
    /// Dispatching or migrating takes time.
    pub has_costs: bool,
    /// Jobs may take longer than the wcet that schedulers are told.
    pub may_overrun: bool,
    /// A burst ends some day, so that the load in the long run is less than it looks.
    pub has_end: bool,
}

/// Whether jobs can take longer than the wcet.
pub(crate) fn may_overrun(task: &Task) -> bool {
    let overruns = matches!(task.execution, ExecutionModel::Overrun { probability, .. } if probability > 0.0);
    overruns && task.wcet_high.is_some_and(|high| high > task.wcet)
}

impl WorstCase {
    /// The worst case of a set, or why it has none that the tests understand.
    pub fn of(set: &TaskSet) -> Result<WorstCase, String> {
        if !set.modes.is_empty() {
            return Err("mode switches change the load; analyse each mode as a set of its own".into());
        }
        if set.costs.decision > Time::ZERO {
            return Err("decisions cost time, which falls on whichever job runs and which no test covers".into());
        }
        // A job that starts, and one that resumes after it.
        let switching = set.costs.context_switch * 2;
        let mut tasks = Vec::with_capacity(set.tasks.len());
        for (index, task) in set.tasks.iter().enumerate() {
            let (jobs, is_periodic) = match task.arrival {
                Arrival::Periodic { .. } => (1, true),
                Arrival::Sporadic { .. } => (1, false),
                Arrival::Burst { jobs, until, .. } => (jobs, until == Time::NEVER),
                Arrival::Listed(_) => return Err("it is a list of single jobs, which do not recur".into()),
            };
            let Some(period) = task.period() else { continue };
            let wcet = if may_overrun(task) { task.wcet_high.unwrap_or(task.wcet) } else { task.wcet };
            let (wcet, deadline) = (wcet + switching, task.deadline);
            let Task { jitter, offset, priority, .. } = *task;
            tasks.push(Sporadic { index, wcet, jobs, deadline, period, jitter, offset, priority, is_periodic });
        }
        let ends = |task: &Task| matches!(task.arrival, Arrival::Burst { until, .. } if until != Time::NEVER);
        Ok(WorstCase {
            tasks,
            cores: set.cores,
            switching,
            has_costs: switching > Time::ZERO || set.costs.migration > Time::ZERO,
            may_overrun: set.tasks.iter().any(may_overrun),
            has_end: set.tasks.iter().any(ends),
        })
    }

    /// The same machine with some of the tasks only, on so many cores.
    pub fn part(&self, tasks: impl IntoIterator<Item = usize>, cores: usize) -> WorstCase {
        WorstCase { tasks: tasks.into_iter().map(|place| self.tasks[place]).collect(), cores, ..*self }
    }

    /// Whether the utilisation exceeds the cores, to the last nanosecond, so that no scheduler can meet every deadline if jobs arrive as
    /// often as they may and take as long as they may. None if it is too close to tell.
    pub fn is_overloaded(&self) -> Option<bool> {
        if self.has_end {
            return Some(false);
        }
        let own = |task: &Sporadic| Sporadic { wcet: task.wcet - self.switching, ..*task }.utilization();
        Some(compare_sum(self.tasks.iter().map(own), self.cores as u64)? == Ordering::Greater)
    }

    /// Σ of work over the time between arrivals.
    pub fn utilization(&self) -> f64 {
        self.utilizations().map(|(work, time)| work as f64 / time as f64).sum()
    }

    /// Σ of work over the time that each arrival surely has for itself; infinite if jitter can take all of that.
    pub fn density(&self) -> f64 {
        if self.tasks.iter().any(|task| task.deadline.min(task.period) <= task.jitter) {
            return f64::INFINITY;
        }
        self.tasks.iter().map(Sporadic::density).map(|(work, time)| work as f64 / time as f64).sum()
    }

    /// The utilisations.
    pub(crate) fn utilizations(&self) -> impl Iterator<Item = Fraction> + Clone + '_ {
        self.tasks.iter().map(Sporadic::utilization)
    }

    /// All tasks may arrive together and then as often as they can, so that a worst case of the model is one of the set.
    pub fn is_synchronous(&self) -> bool {
        let first = self.tasks.first().map(|task| task.offset);
        let together = self.tasks.iter().all(|task| Some(task.offset) == first && task.jitter == Time::ZERO);
        together && !self.has_costs && !self.has_end
    }

    /// Every release is known beforehand.
    pub fn is_strictly_periodic(&self) -> bool {
        self.tasks.iter().all(|task| task.is_periodic && task.jitter == Time::ZERO)
    }

    /// No deadline is longer than the period.
    pub fn is_constrained(&self) -> bool {
        self.tasks.iter().all(|task| task.deadline <= task.period)
    }

    /// As [`WorstCase::tasks`], but the jobs of a burst, which can run side by side on several cores, as tasks of their own.
    pub(crate) fn single_jobs(&self) -> Result<Vec<Sporadic>, String> {
        if let Some(long) = self.tasks.iter().find(|task| task.jobs > MOST_BURST_JOBS) {
            return Err(format!("a burst of {} jobs at once is too long", long.jobs));
        }
        let copies = |task: &Sporadic| std::iter::repeat_n(Sporadic { jobs: 1, ..*task }, task.jobs as usize);
        Ok(self.tasks.iter().flat_map(copies).collect())
    }
}

/// Longer bursts are not analysed on several cores.
const MOST_BURST_JOBS: u32 = 1_000;
