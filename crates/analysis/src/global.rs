//! Tests for global EDF and global fixed priorities on several cores, from the interference that a job can suffer
//! before its deadline.
//!
//! Reference: Bertogna, Cirinei and Lipari, IEEE TPDS 20(4), 2009 (the iterative test, BCL: once the slack of a task is
//! known, it limits the work that the task carries into the windows of others); Bertogna and Cirinei, RTSS 2007
//! (response-time analysis on several cores, RTA). Both tests are sufficient, and RTA proves whatever BCL proves.
//!
//! Deadlines must not exceed periods, so that two jobs of one task are never active together. With release jitter, a
//! job has only its deadline less the jitter, and it interferes wherever it can lie between its arrival and its
//! deadline. Tasks of equal priority interfere with each other.

use temponet_task::Time;

use super::Outcome;
use super::response_time::{Key, PriorityRule};
use super::step_budget::StepBudget;
use super::worst_case::{Sporadic, WorstCase};

/// The order in which jobs get the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Earliest deadline first.
    Edf,
    /// Highest priority first.
    Fixed(PriorityRule),
}

/// Returns the tasks as the tests of global scheduling see them, or the outcome if these tests do not apply.
/// `constrained` asks for deadlines up to the period.
pub(crate) fn global_tasks(worst_case: &WorstCase, constrained: bool) -> Result<Vec<Sporadic>, Outcome> {
    if let Some(outcome) = worst_case.if_cores_differ().or_else(|| worst_case.if_limited()) {
        return Err(outcome);
    }
    if worst_case.has_costs {
        return Err(Outcome::NotApplicable("switching or migration costs time".into()));
    }
    if constrained && !worst_case.is_constrained() {
        return Err(Outcome::NotApplicable("a deadline is longer than its period".into()));
    }
    worst_case.single_jobs().map_err(Outcome::NotApplicable)
}

/// Iterative test of Bertogna, Cirinei and Lipari.
pub fn bcl(worst_case: &WorstCase, order: Order) -> Outcome {
    run(worst_case, order, |tasks, place, budget| tasks.slack_at_deadline(place, budget))
}

/// Response-time analysis on several cores.
pub fn rta(worst_case: &WorstCase, order: Order) -> Outcome {
    run(worst_case, order, |tasks, place, budget| tasks.slack_by_response(place, budget))
}

/// Improves the slack of every task in turn until all tasks are known to meet their deadlines or no slack improves.
/// `slack` returns the inner `None` if the task may miss its deadline, and the outer `None` if the budget is spent.
fn run(
    worst_case: &WorstCase,
    order: Order,
    slack: impl Fn(&Tasks, usize, &mut StepBudget) -> Option<Option<u64>>,
) -> Outcome {
    let tasks = match global_tasks(worst_case, true) {
        Ok(tasks) => tasks,
        Err(outcome) => return outcome,
    };
    let keys = match order {
        Order::Edf => None,
        Order::Fixed(rule) => Some(rule.keys(&tasks)),
    };
    let slacks = vec![0; tasks.len()];
    let mut tasks = Tasks { tasks, keys, cores: worst_case.cores as u128, slacks };
    let mut budget = StepBudget::standard();
    loop {
        let (mut all_met, mut improved) = (true, false);
        for place in 0..tasks.tasks.len() {
            match slack(&tasks, place, &mut budget) {
                None => return Outcome::Undecided,
                Some(None) => all_met = false,
                Some(Some(slack)) if slack > tasks.slacks[place] => {
                    tasks.slacks[place] = slack;
                    improved = true;
                }
                Some(Some(_)) => {}
            }
        }
        if all_met {
            return Outcome::Schedulable;
        }
        if !improved {
            return Outcome::NotProved;
        }
    }
}

struct Tasks {
    tasks: Vec<Sporadic>,
    /// Priority of each task; none under EDF.
    keys: Option<Vec<Key>>,
    cores: u128,
    /// Time before its deadline by which each task is known to complete, as long as no task has missed.
    slacks: Vec<u64>,
}

impl Tasks {
    /// Upper bounds on the work that each other task can do within `length` nanoseconds after a release of the task at
    /// `place`.
    fn interfering(&self, place: usize, length: u64) -> impl Iterator<Item = u64> + '_ {
        let window = self.tasks[place].window();
        let goes_first = move |other: usize| self.keys.as_ref().is_none_or(|keys| keys[other] <= keys[place]);
        let others = (0..self.tasks.len()).filter(move |other| *other != place && goes_first(*other));
        others.map(move |other| {
            let (task, slack) = (&self.tasks[other], self.slacks[other]);
            let due = if self.keys.is_none() { due_work(task, slack, window) } else { u64::MAX };
            workload(task, slack, length).min(due)
        })
    }

    /// BCL: slack of the task at `place`, from the interference in its whole window.
    fn slack_at_deadline(&self, place: usize, budget: &mut StepBudget) -> Option<Option<u64>> {
        budget.spend(self.tasks.len())?;
        let own = &self.tasks[place];
        let Some(room) = own.window().checked_sub(own.wcet.0) else { return Some(None) };
        let work = self.interfering(place, own.window()).map(|work| u128::from(work.min(room + 1)));
        let waiting = work.sum::<u128>() / self.cores;
        Some(u128::from(room).checked_sub(waiting).map(|slack| slack as u64))
    }

    /// RTA: slack of the task at `place`, from the least R with R = C + ⌊Σ min(W(R), R − C + 1)/m⌋. Plain iteration
    /// could take one step per nanosecond. For given W, however, R is C plus the minimum over j < m of the sum of all W
    /// except the j largest, divided by m − j.
    fn slack_by_response(&self, place: usize, budget: &mut StepBudget) -> Option<Option<u64>> {
        let own = &self.tasks[place];
        let mut response = own.wcet.0;
        while response <= own.window() {
            budget.spend(4 * self.tasks.len())?;
            let mut work: Vec<u64> = self.interfering(place, response).collect();
            work.sort_unstable_by_key(|work| std::cmp::Reverse(*work));
            let mut rest: u128 = work.iter().copied().map(u128::from).sum();
            let mut waiting = u128::MAX;
            for (larger, free) in (1..=self.cores).rev().enumerate() {
                waiting = waiting.min(rest / free);
                rest -= work.get(larger).copied().map_or(0, u128::from);
            }
            let next = own.wcet.0.saturating_add(u64::try_from(waiting).unwrap_or(u64::MAX));
            if next == response {
                return Some(Some(own.window() - response));
            }
            response = next;
        }
        Some(None)
    }
}

/// Upper bound on the work of a task in any interval of `length` nanoseconds, if its jobs complete `slack` before their
/// deadlines.
fn workload(task: &Sporadic, slack: u64, length: u64) -> u64 {
    let Time(wcet) = task.wcet;
    let Some(reach) = (length + task.deadline.0).checked_sub(wcet + slack) else { return wcet };
    (reach / task.period.0).saturating_mul(wcet).saturating_add(wcet.min(reach % task.period.0))
}

/// Upper bound on the part of that work with deadlines up to the end of a window.
fn due_work(task: &Sporadic, slack: u64, window: u64) -> u64 {
    let Time(wcet) = task.wcet;
    let carried = wcet.min((window % task.period.0).saturating_sub(slack));
    (window / task.period.0).saturating_mul(wcet).saturating_add(carried)
}
