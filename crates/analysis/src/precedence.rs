//! Sets whose tasks follow each other, on one core.
//!
//! *Fixed priorities.* A job that follows others is released at the latest when the slowest of them completes. So its
//! task is a sporadic task whose release jitter is the longest response time of its predecessors, counted from the
//! arrival. Response times and jitters depend on each other and are found together (holistic analysis: Tindell and
//! Clark, Microprocessing and Microprogramming 40, 1994).
//!
//! *EDF by due dates.* Every job is due at least its successors' wcet before they are. Where all jobs of a graph are
//! released together, EDF by due dates therefore never runs a job before its predecessors, and its schedule is that of
//! independent tasks with the due dates as deadlines (Chetto, Silly and Bouchentouf, Real-Time Systems 2, 1990). Where
//! sources have release jitter, those that follow them have at most the same one.
//!
//! On several cores neither argument holds: independent jobs run in parallel there. Nothing is claimed then.

use temponet_task::{OnMiss, Precedence, TaskId, TaskSet, Time};

use super::Outcome;
use super::response_time::{PriorityRule, ResponseTimes, response_times};
use super::sections::sharing_response_times;
use super::uniprocessor_edf::qpa;
use super::worst_case::{NotAnalyzable, WorstCase};

/// Largest number of times that response times and jitters are found from each other.
const MOST_ROUNDS: usize = 1_000;

/// Computes bounds on the response times of a set under `rule` on one core, from the arrivals of the jobs. Tasks may
/// follow each other or share resources. Where jobs are aborted at their deadlines, those that follow a task which may
/// miss them have no bound.
pub fn dependent_response_times(set: &TaskSet, rule: PriorityRule) -> Result<ResponseTimes, NotAnalyzable> {
    if set.has_sections() {
        return sharing_response_times(set, rule);
    }
    let mut worst_case = WorstCase::ignoring_precedence(set)?;
    let Ok(Some(graph)) = Precedence::of(set.tasks()) else { return Ok(response_times(&worst_case, rule)) };
    let unknown =
        |outcome: Outcome| ResponseTimes { bounds: vec![None; set.tasks().len()], from_schedule: false, outcome };
    if worst_case.cores > 1 {
        return Ok(unknown(Outcome::NotApplicable("tasks come after each other on several cores".into())));
    }
    if worst_case.is_limited() {
        return Ok(unknown(Outcome::NotApplicable("tasks come after each other, and one limits preemption".into())));
    }
    for round in 0..MOST_ROUNDS {
        let found = response_times(&worst_case, rule);
        let mut has_changed = false;
        for index in graph.order().iter().copied().filter(|index| !set.tasks()[*index].after.is_empty()) {
            let before: Option<Vec<Time>> =
                set.tasks()[index].after.iter().map(|before| found.bounds[*before]).collect();
            let Some(latest) = before.and_then(|bounds| bounds.into_iter().max()) else {
                return Ok(unknown(Outcome::NotProved));
            };
            // Jitters only grow, so that the rounds end.
            has_changed |= latest > worst_case.tasks[index].jitter;
            worst_case.tasks[index].jitter = worst_case.tasks[index].jitter.max(latest);
        }
        if !has_changed && round > 0 {
            // The bound presupposes more delay than there can be, so it refutes nothing.
            let outcome = match found.outcome {
                Outcome::NotSchedulable if worst_case.is_overloaded() != Some(true) => Outcome::NotProved,
                outcome => outcome,
            };
            let mut bounds = found.bounds;
            if set.on_miss() == OnMiss::Abort {
                // A job whose predecessor is aborted at its deadline is never released.
                for index in graph.order().iter().copied() {
                    let completes =
                        |before: &TaskId| bounds[*before].is_some_and(|bound| bound <= set.tasks()[*before].deadline);
                    if !set.tasks()[index].after.iter().all(completes) {
                        bounds[index] = None;
                    }
                }
            }
            return Ok(ResponseTimes { outcome, bounds, ..found });
        }
        if worst_case.tasks.iter().any(|task| task.jitter > Time::MAX_INPUT) {
            return Ok(unknown(Outcome::NotProved));
        }
    }
    Ok(unknown(Outcome::Undecided))
}

/// Tests EDF by due dates on one core. `leads` is how long before its deadline each task's jobs are due; every job must
/// be due before its successors, by their wcet at least, as [`temponet_task::DueDates`] has it.
pub fn due_date_edf(set: &TaskSet, leads: &[Time]) -> Result<Outcome, NotAnalyzable> {
    let mut worst_case = WorstCase::ignoring_precedence(set)?;
    let graph = Precedence::of(set.tasks()).ok().flatten();
    if worst_case.cores > 1 {
        return Ok(Outcome::NotApplicable("it is proved on one core only".into()));
    }
    if worst_case.is_limited() {
        return Ok(Outcome::NotApplicable("a task limits preemption".into()));
    }
    let jitters: Vec<Time> = set
        .task_ids()
        .map(|id| match &graph {
            Some(graph) => graph.sources(id).iter().map(|source| set.tasks()[*source].jitter).max().unwrap_or_default(),
            None => set.tasks()[id].jitter,
        })
        .collect();
    for task in &mut worst_case.tasks {
        let lead = leads.get(task.id.index()).copied().unwrap_or_default();
        if lead >= task.deadline {
            return Ok(Outcome::NotProved);
        }
        task.deadline = task.deadline - lead;
        task.jitter = jitters[task.id];
    }
    Ok(match qpa(&worst_case) {
        // Another order may still meet the deadlines, which are later than the due dates.
        Outcome::NotSchedulable => Outcome::NotProved,
        outcome => outcome,
    })
}
