//! Tasks that name each other: `after`, `reads` and `[[chain]]`.
//!
//! Names can stand before the tasks that they name, so tasks are connected once all of them have been read. What a task
//! with `after` does not state follows then: its arrivals are those of its sources, and its deadline is that of the
//! chains through it, otherwise the period.

use temponet_task::{Chain, Communication, TaskId, TaskSet, Time};

use super::{Names, hopeless, hopeless_parts};
use crate::Problem;
use crate::keys::{CHAIN, Context, Named, TaskDraft, TaskIds};
use crate::node::Node;

/// What a task says about other tasks.
#[derive(Clone)]
pub(super) struct Links {
    /// Line of the task.
    line: usize,
    after: Vec<Named>,
    reads: Vec<Named>,
    /// Period that a task with `after` states, with its line.
    period: Option<(Time, usize)>,
    states_deadline: bool,
    /// Whether the task as a whole arrives with others.
    follows: bool,
    /// Whether it comes after the task before it in the list, as the next part.
    is_next_part: bool,
}

impl Links {
    /// Takes what the draft of a task in this line says about other tasks.
    pub fn of(line: usize, draft: &mut TaskDraft<'_>) -> Links {
        Links {
            line,
            follows: draft.after.is_some(),
            is_next_part: false,
            period: draft.period.filter(|_| draft.after.is_some()),
            after: draft.after.take().unwrap_or_default(),
            reads: std::mem::take(&mut draft.reads),
            states_deadline: draft.deadline.is_some(),
        }
    }

    /// Returns what a part says that comes after another one of the task.
    pub fn next_part(&self) -> Links {
        Links { after: Vec::new(), reads: Vec::new(), period: None, is_next_part: true, ..self.clone() }
    }

    /// Whether the task as a whole arrives with others.
    pub fn follows(&self) -> bool {
        self.follows
    }
}

/// Connects the tasks of a set: `links` has what each of them says about others. Returns warnings about tasks and
/// chains that cannot meet their deadlines.
pub(super) fn connect(
    set: &mut TaskSet,
    links: &[Links],
    chains: &[Node],
    communication: Communication,
    file: &Context<'_>,
) -> Result<Vec<Problem>, Problem> {
    let ids = TaskIds::of(set);
    for (at, (task, link)) in set.system.tasks_mut().iter_mut().zip(links).enumerate() {
        (task.after, task.reads) = (ids.find_all(&link.after)?, ids.find_all(&link.reads)?);
        task.after.extend(link.is_next_part.then(|| TaskId::new(at - 1)));
    }
    let line_of =
        |task: TaskId| links.get(task.index()).map_or(0, |link| link.after.first().map_or(link.line, |name| name.1));
    let followed = set.system.follow_sources();
    followed.map_err(|(task, problem)| {
        Problem::at(line_of(task), format!("task {:?}: after: {problem}", set.tasks()[set.whole(task)].name))
    })?;
    for (id, link) in set.task_ids().zip(links) {
        let (whole, task) = (set.whole(id), &set.tasks()[id]);
        let (name, period) = (&set.tasks()[whole].name, task.period().unwrap_or_default());
        if let Some((stated, line)) = link.period.filter(|(stated, _)| *stated != period) {
            let message = format!("task {name:?}: period = {stated}, but the tasks that it comes after have {period}");
            return Err(Problem::at(line, message));
        }
        let is_twice = |read: &TaskId| task.reads.iter().filter(|other| *other == read).count() > 1;
        if let Some(read) = task.reads.iter().find(|read| **read == whole || is_twice(read)) {
            let what = if *read == whole { "itself".into() } else { format!("{:?} twice", set.tasks()[*read].name) };
            return Err(Problem::at(link.reads[0].1, format!("task {name:?}: reads names {what}")));
        }
    }
    let (mut chain_names, mut warnings) = (Names::default(), Vec::new());
    let mut read = Vec::with_capacity(chains.len());
    for node in chains {
        let chain = chain(node, communication, &mut chain_names, &Context { tasks: Some((set, &ids)), ..*file })?;
        warnings.extend(hopeless_chain(node.line, &chain, set));
        read.push(chain);
    }
    set.system.set_chains(read);
    // The shortest deadline of the chains through each task.
    let mut shortest: Vec<Option<Time>> = vec![None; set.tasks().len()];
    for (chain, deadline) in set.chains().iter().filter_map(|chain| Some((chain, chain.deadline?))) {
        for task in chain.tasks.iter().flat_map(|task| set.parts(*task)) {
            shortest[task] = Some(shortest[task].map_or(deadline, |other| other.min(deadline)));
        }
    }
    for ((task, link), shortest) in set.system.tasks_mut().iter_mut().zip(links).zip(shortest) {
        if link.follows() && !link.states_deadline {
            task.deadline = shortest.or(task.period()).unwrap_or_default();
        }
    }
    for id in set.whole_tasks() {
        let (task, Some(link)) = (&set.tasks()[id], links.get(id.index()).filter(|link| link.follows())) else {
            continue;
        };
        warnings.extend(match set.first_part(id) == id {
            true => hopeless(link.line, task, set.fastest(task)),
            false => {
                let time = |part: TaskId| set.machine().fastest(part).time_for(set.tasks()[part].wcet).0;
                hopeless_parts(link.line, task, Time(set.parts(id).map(time).fold(0, u64::saturating_add)))
            }
        });
    }
    Ok(warnings)
}

/// Reads a `[[chain]]` table.
fn chain(node: &Node, default: Communication, taken: &mut Names, file: &Context<'_>) -> Result<Chain, Problem> {
    let unknown = Chain { name: String::new(), tasks: Vec::new(), deadline: None, communication: default };
    let mut draft = (unknown, [0; 2]);
    CHAIN.read(node, &mut draft, file)?;
    let (chain, [name_line, tasks_line]) = draft;
    taken.add(chain.name.clone(), name_line)?;
    match file.tasks.and_then(|(set, _)| chain.problem(set.tasks())) {
        Some(problem) => Err(Problem::at(tasks_line, format!("chain {:?}: {problem}", chain.name))),
        None => Ok(chain),
    }
}

/// Returns the warning about a chain that cannot meet its end-to-end deadline in the worst case, if it is one: its jobs
/// run one after the other.
fn hopeless_chain(line: usize, chain: &Chain, set: &TaskSet) -> Option<Problem> {
    let tasks = chain.tasks.iter().flat_map(|task| set.parts(*task)).map(|task| &set.tasks()[task]);
    let sum = |sum: Time, time: Time| Time(sum.0.saturating_add(time.0));
    let wcets = tasks.clone().map(|task| task.wcet).fold(Time::ZERO, sum);
    let time = tasks.map(|task| set.fastest(task).time_for(task.wcet)).fold(Time::ZERO, sum);
    let on_cores = if time == wcets { String::new() } else { format!(", {time} on their fastest cores,") };
    let deadline = chain.deadline.filter(|deadline| time > *deadline)?;
    let message =
        format!("warning: chain {:?} has wcets of {wcets} in all{on_cores} > deadline {deadline}", chain.name);
    Some(Problem::at(line, message))
}
