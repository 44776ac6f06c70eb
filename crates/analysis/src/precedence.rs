//! Sets whose tasks follow each other, on one core, or on several of which each task may use a single one.
//!
//! *Fixed priorities.* A job that follows others is released at the latest when the slowest of them completes. So its
//! task is a sporadic task whose release jitter is the longest response time of its predecessors, counted from the
//! arrival. Response times and jitters depend on each other and are found together (holistic analysis: Tindell and
//! Clark, Microprocessing and Microprogramming 40, 1994). Where every task is bound to one core, such as a processor, a
//! GPU or a bus, each core is analyzed by itself, and a follower brings the jitter of its predecessors along from the
//! cores on which they run.
//!
//! *EDF by due dates.* Every job is due at least its successors' wcet before they are. Where all jobs of a graph are
//! released together, EDF by due dates therefore never runs a job before its predecessors, and its schedule is that of
//! independent tasks with the due dates as deadlines (Chetto, Silly and Bouchentouf, Real-Time Systems 2, 1990). Where
//! sources have release jitter, those that follow them have at most the same one.
//!
//! Where a task may use several cores neither argument holds: independent jobs run in parallel there. Nothing is
//! claimed then.

use temponet_task::{CoreId, OnMiss, Precedence, TaskId, TaskSet, Time};

use super::Outcome;
use super::response_time::{PriorityRule, ResponseTimes, Wanted, response_times, response_times_within};
use super::sections::sharing_response_times;
use super::step_budget::StepBudget;
use super::uniprocessor_edf::qpa;
use super::worst_case::{NotAnalyzable, WorstCase};

/// Largest number of times that response times and jitters are found from each other.
const MOST_ROUNDS: usize = 1_000;

/// Greatest jitter of a follower on several cores, as a multiple of its deadline or, if that is longer, of its period.
/// Where a job comes back to a core, jitters beyond that hardly ever stop growing, and nothing is proved with them.
const MOST_JITTER: u64 = 4;

/// Computes bounds on the response times of a set under `rule`, from the arrivals of the jobs, on one core, or on
/// several if each task may use a single one of them. Tasks may follow each other or, on one core, share resources.
/// Where jobs are aborted at their deadlines, those that follow a task which may miss them have no bound.
pub fn dependent_response_times(set: &TaskSet, rule: PriorityRule) -> Result<ResponseTimes, NotAnalyzable> {
    holistic(set, rule, Wanted::Bounds)
}

/// Returns the outcome of [`dependent_response_times`]. It ends at the first deadline that may be missed: bounds only
/// grow.
pub fn dependent_outcome(set: &TaskSet, rule: PriorityRule) -> Result<Outcome, NotAnalyzable> {
    Ok(holistic(set, rule, Wanted::Verdict)?.outcome)
}

fn holistic(set: &TaskSet, rule: PriorityRule, wanted: Wanted) -> Result<ResponseTimes, NotAnalyzable> {
    if set.has_sections() {
        return sharing_response_times(set, rule);
    }
    let mut worst_case = WorstCase::ignoring_precedence(set)?;
    let Ok(Some(graph)) = Precedence::of(set.tasks()) else { return Ok(response_times(&worst_case, rule)) };
    let unknown =
        |outcome: Outcome| ResponseTimes { bounds: vec![None; set.tasks().len()], from_schedule: false, outcome };
    let Some(cores) = Cores::of(&worst_case) else {
        return Ok(unknown(Outcome::NotApplicable("tasks come after each other on several cores".into())));
    };
    if worst_case.is_limited() {
        return Ok(unknown(Outcome::NotApplicable("tasks come after each other, and one limits preemption".into())));
    }
    let mut budget = StepBudget::standard();
    for round in 0..MOST_ROUNDS {
        let found = cores.response_times(&worst_case, rule, wanted, &mut budget);
        if wanted == Wanted::Verdict && found.outcome != Outcome::Schedulable {
            let is_refuted = found.outcome == Outcome::NotSchedulable && cores.is_overloaded(&worst_case);
            return Ok(unknown(if is_refuted { Outcome::NotSchedulable } else { Outcome::NotProved }));
        }
        let (mut has_changed, mut is_hopeless) = (false, false);
        for index in graph.order().iter().copied().filter(|index| !set.tasks()[*index].after.is_empty()) {
            let before: Option<Vec<Time>> =
                set.tasks()[index].after.iter().map(|before| found.bounds[*before]).collect();
            let Some(latest) = before.and_then(|bounds| bounds.into_iter().max()) else {
                return Ok(unknown(Outcome::NotProved));
            };
            let task = &set.tasks()[index];
            let most = task.deadline.max(task.period().unwrap_or_default()).0.saturating_mul(MOST_JITTER);
            is_hopeless |= worst_case.cores > 1 && latest.0 > most;
            // Jitters only grow, so that the rounds end.
            has_changed |= latest > worst_case.tasks[index].jitter;
            worst_case.tasks[index].jitter = worst_case.tasks[index].jitter.max(latest);
        }
        if !has_changed && round > 0 {
            // The bound presupposes more delay than there can be, so it refutes nothing.
            let outcome = match found.outcome {
                Outcome::NotSchedulable if !cores.is_overloaded(&worst_case) => Outcome::NotProved,
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
        if is_hopeless || worst_case.tasks.iter().any(|task| task.jitter > Time::MAX_INPUT) {
            return Ok(unknown(Outcome::NotProved));
        }
    }
    Ok(unknown(Outcome::Undecided))
}

/// Whether [`dependent_response_times`] covers the tasks of a set that follow each other on several cores: no task may
/// use more than one of them, and none limits preemption.
pub fn covers_followers(set: &TaskSet) -> bool {
    WorstCase::ignoring_precedence(set).is_ok_and(|worst| Cores::of(&worst).is_some() && !worst.is_limited())
}

/// The cores of a set whose tasks are each bound to one of them: the places of their tasks.
struct Cores(Vec<Vec<usize>>);

impl Cores {
    /// Returns the tasks of each core; none if a task may use several.
    fn of(worst_case: &WorstCase) -> Option<Cores> {
        let mut cores = vec![Vec::new(); worst_case.cores];
        for place in 0..worst_case.tasks.len() {
            let mut own = (0..worst_case.cores).filter(|core| worst_case.may_use(place, CoreId::new(*core)));
            let (Some(core), None) = (own.next(), own.next()) else { return None };
            cores[core].push(place);
        }
        Some(Cores(cores))
    }

    /// The worst case of the tasks of each core that has some, with their places.
    fn each<'a>(&'a self, worst_case: &'a WorstCase) -> impl Iterator<Item = (&'a [usize], WorstCase)> + 'a {
        let used = self.0.iter().enumerate().filter(|(_, places)| !places.is_empty());
        used.map(|(core, places)| (&places[..], worst_case.cluster(places.iter().copied(), core..core + 1)))
    }

    /// Bounds core by core, and the outcome for all together.
    fn response_times(
        &self,
        worst_case: &WorstCase,
        rule: PriorityRule,
        wanted: Wanted,
        budget: &mut StepBudget,
    ) -> ResponseTimes {
        let mut all = ResponseTimes {
            bounds: vec![None; worst_case.tasks.len()],
            from_schedule: true,
            outcome: Outcome::Schedulable,
        };
        for (places, own) in self.each(worst_case) {
            let found = response_times_within(&own, rule, wanted, budget);
            places.iter().zip(found.bounds).for_each(|(place, bound)| all.bounds[*place] = bound);
            all.from_schedule &= found.from_schedule;
            // One core that fails is enough; otherwise one that is not decided.
            all.outcome = match (all.outcome, found.outcome) {
                (Outcome::Schedulable, outcome) => outcome,
                (_, Outcome::NotSchedulable) => Outcome::NotSchedulable,
                (Outcome::NotProved, Outcome::Undecided) => Outcome::Undecided,
                (outcome, _) => outcome,
            };
        }
        all
    }

    /// Whether the utilization of a core exceeds its speed.
    fn is_overloaded(&self, worst_case: &WorstCase) -> bool {
        self.each(worst_case).any(|(_, own)| own.is_overloaded() == Some(true))
    }
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
