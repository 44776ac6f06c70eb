//! Precedence among tasks, chains of tasks, and what follows from them: arrivals, due dates and levels.
//!
//! A task *follows* the tasks that its `after` names: its job number k is released when job number k of each of them
//! has completed. It arrives with its *sources*, the tasks at the beginning of its paths, and its deadline counts from
//! that arrival, so that neither depends on the schedule.
//!
//! A [`Chain`] is a path through the tasks whose reaction time and data age are measured. Each step follows the one
//! before, or reads the newest value that it has written.

use crate::parts::{first_part, loose_part};
use crate::{Arrival, Job, System, Task, TaskId, Time};
use alloc::{format, string::String, vec, vec::Vec};

/// When a value that one task writes and another one reads changes hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Communication {
    /// A job reads when it starts and writes when it completes. This is the default.
    #[default]
    Implicit,
    /// Logical execution time: a job reads at its release, and its value can be read from its deadline on.
    Let,
}

impl Communication {
    /// Name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Communication::Implicit => "implicit",
            Communication::Let => "let",
        }
    }

    /// Returns the communication with this name.
    pub fn from_name(name: &str) -> Option<Communication> {
        [Communication::Implicit, Communication::Let].into_iter().find(|known| known.name() == name)
    }
}

/// A path through the tasks, from a source of data to an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Name, unique among the chains of the set.
    pub name: String,
    /// Tasks, at least two. Each task follows or reads the one before it. A task with parts is named once, as a whole.
    pub tasks: Vec<TaskId>,
    /// End-to-end deadline, from the arrival of a job of the first task to the first output with its data or newer
    /// data. For a chain whose every step follows the one before, that output is the job of the last task with the same
    /// number, and newer data does not count. `None`: times are measured, but nothing is late.
    pub deadline: Option<Time>,
    /// When the values that are read change hands.
    pub communication: Communication,
}

impl Chain {
    /// Returns whether every step follows the one before, so that one job of each task makes up an instance.
    pub fn is_triggered(&self, tasks: &[Task]) -> bool {
        self.steps(tasks).all(|is_triggered| is_triggered)
    }

    /// Returns for each step whether it follows the task before; otherwise it reads its newest value.
    pub fn steps<'a>(&'a self, tasks: &'a [Task]) -> impl Iterator<Item = bool> + 'a {
        self.tasks.windows(2).map(|pair| tasks[first_part(tasks, pair[1])].after.contains(&pair[0]))
    }
}

/// Reason why tasks cannot precede each other as stated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrecedenceProblem {
    /// There is no such task.
    #[error("there is no task {0}")]
    UnknownTask(TaskId),
    /// A task is named twice.
    #[error("it names {0:?} twice")]
    Twice(String),
    /// A task follows or reads itself.
    #[error("it names itself")]
    Itself,
    /// A task follows itself by way of others.
    #[error("it comes after itself: {0}")]
    Cycle(String),
    /// A predecessor has no arrivals that another task could follow one by one.
    #[error("{0:?} is a burst or a list of jobs, which no task can come after")]
    Aperiodic(String),
    /// The sources of a task arrive at different rates, or several of them arrive irregularly.
    #[error(
        "its sources {first:?} and {second:?} do not arrive together: several sources must be periodic with the same period"
    )]
    Periods {
        /// A source.
        first: String,
        /// Another one that arrives differently.
        second: String,
    },
    /// A task arrives other than with its sources.
    #[error("it arrives other than its sources")]
    Arrival,
    /// A chain has fewer than two tasks.
    #[error("it has fewer than two tasks")]
    Short,
    /// A step of a chain neither follows nor reads the task before.
    #[error("{after:?} neither comes after {before:?} nor reads it")]
    Unconnected {
        /// The task before.
        before: String,
        /// The task of the step.
        after: String,
    },
    /// A part of a task is not followed by the next part, and by it alone.
    #[error("it is a part, and the next task does not come after it alone")]
    LoosePart,
    /// The end-to-end deadline is zero or longer than [`Time::MAX_INPUT`].
    #[error("its deadline is zero or too long")]
    Deadline,
}

/// Largest number of names in the message about a cycle, beside the last one, which is the first one again.
const MOST_NAMED: usize = 8;

/// The graph of the tasks that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precedence {
    /// Tasks that follow each task, ascending.
    successors: Vec<Vec<TaskId>>,
    /// All tasks, each after its predecessors.
    order: Vec<TaskId>,
    /// Sources of each task, ascending; a task without predecessors is its own.
    sources: Vec<Vec<TaskId>>,
}

impl Precedence {
    /// Returns the graph of the tasks, or `None` if no task follows another. A task that cannot follow what it names is
    /// an error with its id.
    pub fn of(tasks: &[Task]) -> Result<Option<Precedence>, (TaskId, PrecedenceProblem)> {
        if tasks.iter().all(|task| task.after.is_empty()) {
            return Ok(None);
        }
        let mut successors = vec![Vec::new(); tasks.len()];
        for (index, task) in TaskId::all(tasks.len()).zip(tasks) {
            named(tasks, index, &task.after).map_err(|problem| (index, problem))?;
            task.after.iter().for_each(|before| successors[*before].push(index));
        }
        let order = ordered(tasks, &successors)?;
        let mut sources: Vec<Vec<TaskId>> = vec![Vec::new(); tasks.len()];
        for index in &order {
            let mut own: Vec<TaskId> = match tasks[*index].after.as_slice() {
                [] => vec![*index],
                before => before.iter().flat_map(|before| sources[*before].iter().copied()).collect(),
            };
            own.sort_unstable();
            own.dedup();
            sources[*index] = own;
        }
        Ok(Some(Precedence { successors, order, sources }))
    }

    /// Returns the tasks that follow a task, ascending.
    pub fn successors(&self, task: TaskId) -> &[TaskId] {
        &self.successors[task]
    }

    /// Returns all tasks, each after its predecessors.
    pub fn order(&self) -> &[TaskId] {
        &self.order
    }

    /// Returns the sources of a task; a task without predecessors is its own.
    pub fn sources(&self, task: TaskId) -> &[TaskId] {
        &self.sources[task]
    }
}

/// Checks the tasks that a task names.
fn named(tasks: &[Task], index: TaskId, names: &[TaskId]) -> Result<(), PrecedenceProblem> {
    for (at, other) in names.iter().enumerate() {
        let Some(task) = tasks.get(other.index()) else { return Err(PrecedenceProblem::UnknownTask(*other)) };
        if *other == index {
            return Err(PrecedenceProblem::Itself);
        }
        if names[..at].contains(other) {
            return Err(PrecedenceProblem::Twice(task.name.clone()));
        }
    }
    Ok(())
}

/// Returns the tasks, each after its predecessors.
fn ordered(tasks: &[Task], successors: &[Vec<TaskId>]) -> Result<Vec<TaskId>, (TaskId, PrecedenceProblem)> {
    let mut missing: Vec<usize> = tasks.iter().map(|task| task.after.len()).collect();
    let mut order: Vec<TaskId> = TaskId::all(tasks.len()).filter(|index| missing[*index] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for next in &successors[order[at]] {
            missing[*next] -= 1;
            if missing[*next] == 0 {
                order.push(*next);
            }
        }
        at += 1;
    }
    let Some(start) = TaskId::all(tasks.len()).find(|index| missing[*index] > 0) else { return Ok(order) };
    // A task that is left has a predecessor that is left: going back comes to a cycle, and then round it.
    let before =
        |index: TaskId| tasks[index].after.iter().copied().find(|before| missing[*before] > 0).unwrap_or(index);
    let on_cycle = (0..tasks.len()).fold(start, |index, _| before(index));
    let mut cycle = vec![on_cycle];
    while before(cycle[cycle.len() - 1]) != on_cycle {
        cycle.push(before(cycle[cycle.len() - 1]));
    }
    let first = cycle.iter().copied().min().unwrap_or(on_cycle);
    let turn = cycle.iter().position(|index| *index == first).unwrap_or(0);
    cycle.rotate_left(turn);
    cycle.push(first);
    let mut names: Vec<String> = cycle.iter().map(|index| tasks[*index].name.clone()).collect();
    if let Some(more) = names.len().checked_sub(MOST_NAMED + 1).filter(|more| *more > 1) {
        names.splice(MOST_NAMED..MOST_NAMED + more, [format!("{more} others")]);
    }
    Err((first, PrecedenceProblem::Cycle(names.join(" after "))))
}

/// Returns how a task with these sources arrives, and the date of its first arrival.
fn arrival_of(tasks: &[Task], sources: &[TaskId]) -> Result<(Arrival, Time), PrecedenceProblem> {
    let first = &tasks[sources[0]];
    for source in sources.iter().map(|source| &tasks[*source]) {
        if matches!(source.arrival, Arrival::Burst { .. } | Arrival::Listed(_)) {
            return Err(PrecedenceProblem::Aperiodic(source.name.clone()));
        }
        let is_regular = matches!(source.arrival, Arrival::Periodic { .. });
        if sources.len() > 1 && (!is_regular || source.arrival != first.arrival) {
            let second = if source.name == first.name { sources[1] } else { sources[0] };
            return Err(PrecedenceProblem::Periods { first: tasks[second].name.clone(), second: source.name.clone() });
        }
    }
    let offset = sources.iter().map(|source| tasks[*source].offset).max().unwrap_or_default();
    Ok((first.arrival.clone(), offset))
}

impl System {
    /// Gives every task that follows others the arrivals of its sources: the arrival pattern, the latest offset and no
    /// jitter of its own.
    ///
    /// Whoever builds a set in code calls it once all tasks are there. A task that cannot follow what it names is an
    /// error with its index.
    pub fn follow_sources(&mut self) -> Result<(), (TaskId, PrecedenceProblem)> {
        let Some(graph) = Precedence::of(self.tasks())? else { return Ok(()) };
        let mut tasks = self.tasks_mut();
        for index in graph.order() {
            if tasks[*index].after.is_empty() {
                continue;
            }
            let found = arrival_of(&tasks, graph.sources(*index)).map_err(|problem| (*index, problem))?;
            let task = &mut tasks[*index];
            (task.arrival, task.offset) = found;
            task.jitter = Time::ZERO;
        }
        Ok(())
    }

    /// Returns whether some chain has an end-to-end deadline.
    pub fn has_chain_deadlines(&self) -> bool {
        self.chains().iter().any(|chain| chain.deadline.is_some())
    }

    /// Returns whether some task follows another one.
    pub fn has_precedence(&self) -> bool {
        self.tasks().iter().any(|task| !task.after.is_empty())
    }
}

/// Checks precedence, reads and chains of a system. An error names a task or a chain.
pub(crate) fn validate(tasks: &[Task], chains: &[Chain]) -> Result<(), (String, PrecedenceProblem)> {
    let graph = Precedence::of(tasks).map_err(|(index, problem)| (tasks[index].name.clone(), problem))?;
    for (index, task) in TaskId::all(tasks.len()).zip(tasks) {
        let wrong = |problem| (task.name.clone(), problem);
        named(tasks, index, &task.reads).map_err(wrong)?;
        if let Some(graph) = graph.as_ref().filter(|_| !task.after.is_empty()) {
            let (arrival, offset) = arrival_of(tasks, graph.sources(index)).map_err(wrong)?;
            if arrival != task.arrival || offset != task.offset || task.jitter > Time::ZERO {
                return Err(wrong(PrecedenceProblem::Arrival));
            }
        }
    }
    if let Some(part) = loose_part(tasks) {
        return Err((tasks[part].name.clone(), PrecedenceProblem::LoosePart));
    }
    chains.iter().try_for_each(|chain| chain.problem(tasks).map_or(Ok(()), |what| Err((chain.name.clone(), what))))
}

impl Chain {
    /// Returns what is wrong with the chain among these tasks.
    pub fn problem(&self, tasks: &[Task]) -> Option<PrecedenceProblem> {
        if let Some(unknown) = self.tasks.iter().find(|task| task.index() >= tasks.len()) {
            return Some(PrecedenceProblem::UnknownTask(*unknown));
        }
        if self.tasks.len() < 2 {
            return Some(PrecedenceProblem::Short);
        }
        let mut is_named = vec![false; tasks.len()];
        if let Some(twice) = self.tasks.iter().find(|task| core::mem::replace(&mut is_named[**task], true)) {
            return Some(PrecedenceProblem::Twice(tasks[*twice].name.clone()));
        }
        if self.deadline.is_some_and(|deadline| deadline == Time::ZERO || deadline > Time::MAX_INPUT) {
            return Some(PrecedenceProblem::Deadline);
        }
        let joined = |pair: &&[TaskId]| {
            let second = &tasks[first_part(tasks, pair[1])];
            second.after.contains(&pair[0]) || second.reads.contains(&pair[0])
        };
        let apart = self.tasks.windows(2).find(|pair| !joined(pair))?;
        let [before, after] = [apart[0], apart[1]].map(|index| tasks[index].name.clone());
        Some(PrecedenceProblem::Unconnected { before, after })
    }
}

/// Dates by which jobs have to complete so that what follows them can still be in time.
///
/// A job without successors is due at its deadline. A job with successors is due so much earlier that the longest path
/// of wcets behind it still fits before the deadlines of its successors and of the chains through it, each on the
/// fastest core that it may use (Chetto, Silly and Bouchentouf, Real-Time Systems 2, 1990).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueDates {
    /// Time from the due date to the deadline, by task. Empty if no job is due before its deadline.
    leads: Vec<Time>,
}

impl DueDates {
    /// Computes the due dates of a system.
    pub fn of(system: &System) -> DueDates {
        DueDates::among(system.tasks(), system)
    }

    /// Computes the due dates of tasks of a system that may have more predecessors than there.
    pub fn among(tasks: &[Task], system: &System) -> DueDates {
        let chains = system.chains();
        let time = |task: TaskId| system.machine().fastest(task).time_for(tasks[task].wcet);
        let graph = match Precedence::of(tasks) {
            Ok(Some(graph)) => graph,
            _ => return DueDates::default(),
        };
        // Time from a task's arrival to its due date, in nanoseconds.
        let mut due: Vec<i128> = tasks.iter().map(|task| i128::from(task.deadline.0)).collect();
        let later =
            |first: TaskId, second: TaskId| i128::from(tasks[second].offset.0) - i128::from(tasks[first].offset.0);
        for chain in chains.iter().filter(|chain| chain.is_triggered(tasks)) {
            if let (Some(deadline), [first, .., last]) = (chain.deadline, chain.tasks.as_slice()) {
                due[*last] = due[*last].min(i128::from(deadline.0) - later(*first, *last));
            }
        }
        for task in graph.order().iter().rev() {
            for next in graph.successors(*task) {
                let before = due[*next] - i128::from(time(*next).0) + later(*task, *next);
                due[*task] = due[*task].min(before);
            }
        }
        let lead = |(task, due): (&Task, i128)| Time((i128::from(task.deadline.0) - due.max(0)).max(0) as u64);
        let leads: Vec<Time> = tasks.iter().zip(due).map(lead).collect();
        DueDates { leads: if leads.iter().all(|lead| *lead == Time::ZERO) { Vec::new() } else { leads } }
    }

    /// Returns whether every job is due at its deadline.
    pub fn is_empty(&self) -> bool {
        self.leads.is_empty()
    }

    /// Returns how long before the deadline the jobs of a task are due.
    #[inline]
    pub fn lead(&self, task: TaskId) -> Time {
        self.leads.get(task.index()).copied().unwrap_or_default()
    }

    /// Returns the date by which a job has to complete.
    #[inline]
    pub fn due(&self, job: &Job) -> Time {
        job.deadline.saturating_sub(self.lead(job.task))
    }
}

/// Returns the level of each task: the longest path of wcets from its start to the end of a task that nothing follows.
pub fn levels(tasks: &[Task]) -> Vec<Time> {
    let mut levels: Vec<Time> = tasks.iter().map(|task| task.wcet).collect();
    if let Ok(Some(graph)) = Precedence::of(tasks) {
        for task in graph.order().iter().rev() {
            let behind = graph.successors(*task).iter().map(|next| levels[*next].0).max().unwrap_or(0);
            levels[*task] = Time(tasks[*task].wcet.0.saturating_add(behind));
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskSet;

    /// Periodic tasks with these wcets, and the tasks that each comes after.
    fn tasks(given: &[(u64, &[u32])]) -> Vec<Task> {
        let task = |(index, (wcet, after)): (usize, &(u64, &[u32]))| {
            let after = after.iter().copied().map(TaskId).collect();
            Task::periodic(format!("t{index}"), Time(100), Time(*wcet)).with_after(after)
        };
        given.iter().enumerate().map(task).collect()
    }

    fn dates(tasks: &[Task], chains: &[Chain]) -> DueDates {
        DueDates::of(&TaskSet::new("s", tasks.to_vec(), 1).with_chains(chains.to_vec()).system)
    }

    #[test]
    fn due_dates_leave_room_for_the_longest_path_behind_a_job() {
        // A diamond: 0 before 1 and 2, both before 3.
        let tasks = tasks(&[(5, &[]), (10, &[0]), (20, &[0]), (7, &[1, 2]), (3, &[])]);
        let found = dates(&tasks, &[]);
        let leads: Vec<u64> = (0..5).map(|task| found.lead(TaskId(task)).0).collect();
        assert_eq!(leads, [27, 7, 7, 0, 0]);
        assert_eq!(levels(&tasks).iter().map(|level| level.0).collect::<Vec<_>>(), [32, 17, 27, 7, 3]);
        let tight = Chain {
            name: "c".into(),
            tasks: [0, 1, 3].map(TaskId).into(),
            deadline: Some(Time(60)),
            communication: Communication::Implicit,
        };
        let found = dates(&tasks, std::slice::from_ref(&tight));
        assert_eq!((0..4).map(|task| found.lead(TaskId(task)).0).collect::<Vec<_>>(), [67, 47, 47, 40]);
        assert!(dates(&tasks[4..], &[]).is_empty());
    }

    #[test]
    fn impossible_graphs_are_refused_with_the_task() {
        let problem = |given: &[(u64, &[u32])]| {
            let (task, problem) = Precedence::of(&tasks(given)).unwrap_err();
            (task.0, problem)
        };
        assert_eq!(problem(&[(1, &[]), (1, &[1])]), (1, PrecedenceProblem::Itself));
        assert_eq!(problem(&[(1, &[]), (1, &[0, 0])]), (1, PrecedenceProblem::Twice("t0".into())));
        assert_eq!(problem(&[(1, &[7])]), (0, PrecedenceProblem::UnknownTask(TaskId(7))));
        let cycle = problem(&[(1, &[]), (1, &[0, 3]), (1, &[1]), (1, &[2]), (1, &[3])]);
        assert_eq!(cycle, (1, PrecedenceProblem::Cycle("t1 after t3 after t2 after t1".into())));
        let ring: Vec<(u64, [u32; 1])> = (0..20_000).map(|index| (1, [(index + 1) % 20_000])).collect();
        let ring: Vec<(u64, &[u32])> = ring.iter().map(|(wcet, after)| (*wcet, &after[..])).collect();
        let named = "t0 after t1 after t2 after t3 after t4 after t5 after t6 after t7 after 19992 others after t0";
        assert_eq!(problem(&ring), (0, PrecedenceProblem::Cycle(named.into())));
    }

    #[test]
    fn followers_arrive_with_their_sources() {
        let mut given = tasks(&[(1, &[]), (1, &[]), (1, &[0, 1]), (1, &[2])]);
        given[1].offset = Time(30);
        let mut set = TaskSet::new("s", given, 1);
        set.system.follow_sources().unwrap();
        assert_eq!(set.tasks()[3].offset, Time(30));
        assert_eq!(set.system.validate(), Ok(()));
        set.system.tasks_mut()[1].arrival = Arrival::Periodic { period: Time(90) };
        let problem = set.system.follow_sources().unwrap_err();
        assert_eq!(problem, (TaskId(2), PrecedenceProblem::Periods { first: "t0".into(), second: "t1".into() }));
        assert!(set.system.validate().is_err());
    }

    #[test]
    fn chains_need_a_link_at_every_step() {
        let mut given = tasks(&[(1, &[]), (1, &[0]), (1, &[])]);
        given[2].reads = vec![TaskId(1)];
        let chain = |tasks: &[u32]| Chain {
            name: "c".into(),
            tasks: tasks.iter().copied().map(TaskId).collect(),
            deadline: None,
            communication: Communication::Let,
        };
        assert_eq!(chain(&[0, 1, 2]).problem(&given), None);
        assert!(!chain(&[0, 1, 2]).is_triggered(&given) && chain(&[0, 1]).is_triggered(&given));
        assert_eq!(chain(&[0]).problem(&given), Some(PrecedenceProblem::Short));
        let apart = PrecedenceProblem::Unconnected { before: "t0".into(), after: "t2".into() };
        assert_eq!(chain(&[0, 2]).problem(&given), Some(apart));
    }
}
