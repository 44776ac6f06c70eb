//! The keys `after` and `reads` of tasks, and `[[chain]]` tables.
//!
//! Names can stand before the tasks that they name, so tasks are connected once all of them have been read. What a task with `after` does not state follows
//! then: its arrivals are those of its sources, and its deadline is that of the chains through it, otherwise the period.

use std::collections::BTreeMap;

use temponet_wording::did_you_mean;
use temponet_task::{Chain, Communication, Precedence, TaskSet, Time, TimeUnit};

use super::{Names, hopeless, printable};
use crate::Problem;
use crate::node::{Fields, Node, Value};

/// Keys of `[[chain]]`.
const CHAIN_KEYS: &[&str] = &["name", "tasks", "deadline", "communication"];
/// Keys that say how a task arrives, and that a task with `after` cannot have.
const OWN_ARRIVAL: [&str; 4] = ["offset", "jitter", "kind", "gap"];

/// A name of a task, with its line.
pub(super) type Named = (String, usize);

/// What a task says about other tasks.
#[derive(Default)]
pub(super) struct Links {
    /// Line of the task.
    line: usize,
    after: Vec<Named>,
    reads: Vec<Named>,
    /// Period that a task with `after` states, with its line.
    period: Option<(Time, usize)>,
    states_deadline: bool,
}

impl Links {
    /// Reads `after` and `reads` of a task, and its period, which only a task with `after` can leave out.
    pub fn take(fields: &mut Fields<'_>, unit: TimeUnit) -> Result<(Links, Option<Time>), Problem> {
        let after = fields.take("after");
        let mut links = Links {
            line: fields.line(),
            after: after.map_or(Ok(Vec::new()), |node| names(node, "after"))?,
            reads: fields.take("reads").map_or(Ok(Vec::new()), |node| names(node, "reads"))?,
            ..Links::default()
        };
        if after.is_none() {
            return Ok((links, Some(fields.need("period")?.positive_time("period", unit)?)));
        }
        if let Some(node) = OWN_ARRIVAL.into_iter().find_map(|key| Some((key, fields.take(key)?))) {
            let (key, node) = node;
            let message = format!("{key} = {}: a task with after arrives with its sources", node.shown());
            return Err(Problem::at(node.line, message));
        }
        if let Some(node) = fields.take("period") {
            links.period = Some((node.positive_time("period", unit)?, node.line));
        }
        Ok((links, None))
    }

    /// Notes whether the task states a deadline.
    pub fn with_deadline(self, states_deadline: bool) -> Links {
        Links { states_deadline, ..self }
    }

    /// Whether the task arrives with others.
    pub fn follows(&self) -> bool {
        !self.after.is_empty()
    }
}

/// Reads a list of names. In a CSV cell they are separated by semicolons or, if it is not a single name with spaces, by spaces.
fn names(node: &Node, key: &'static str) -> Result<Vec<Named>, Problem> {
    let names: Vec<Named> = match &node.value {
        Value::Cell(text) => text.split(';').map(|name| (name.trim().to_string(), node.line)).collect(),
        Value::Text(text) => vec![(text.trim().to_string(), node.line)],
        _ => {
            let item = |item: &Node| Ok((item.text(key)?.trim().to_string(), item.line));
            node.list(key)?.iter().map(item).collect::<Result<_, _>>()?
        }
    };
    let shown = || match &node.value {
        Value::List(_) if names.is_empty() => "[]".into(),
        _ => node.shown(),
    };
    match names.iter().find(|(name, _)| name.is_empty()) {
        _ if names.is_empty() || matches!(&names[..], [(name, _)] if name.is_empty()) => {
            Err(Problem::at(node.line, format!("{key} = {} names no task", shown())))
        }
        Some((_, line)) => Err(Problem::at(*line, format!("{key} = {} has an empty name", shown()))),
        None => Ok(names),
    }
}

/// Indices of the tasks by their names.
pub(super) struct Indices(BTreeMap<String, usize>);

impl Indices {
    pub fn of(set: &TaskSet) -> Indices {
        Indices(set.tasks().iter().enumerate().map(|(index, task)| (task.name.clone(), index)).collect())
    }

    /// Returns the index of the task with a name that stands in this line.
    pub fn find(&self, name: &str, line: usize) -> Result<usize, Problem> {
        let hint = || did_you_mean(name, self.0.keys().map(String::as_str));
        let index = self.0.get(name).copied();
        index.ok_or_else(|| Problem::at(line, format!("there is no task {name:?}{}", hint())))
    }

    /// Returns the indices of the tasks with these names. A single text that is no name is taken for names with spaces between them.
    fn find_all(&self, names: &[Named]) -> Result<Vec<usize>, Problem> {
        if let [(text, line)] = names
            && !self.0.contains_key(text)
            && text.contains(char::is_whitespace)
        {
            return text.split_whitespace().map(|name| self.find(name, *line)).collect();
        }
        names.iter().map(|(name, line)| self.find(name, *line)).collect()
    }
}

/// Connects the tasks of a set: `links` has what each of them says about others. Returns warnings about tasks and chains that cannot meet their deadlines.
pub(super) fn connect(
    set: &mut TaskSet,
    links: &[Links],
    chains: &[Node],
    communication: Communication,
) -> Result<Vec<Problem>, Problem> {
    let indices = Indices::of(set);
    for (task, link) in set.system.tasks_mut().iter_mut().zip(links) {
        (task.after, task.reads) = (indices.find_all(&link.after)?, indices.find_all(&link.reads)?);
    }
    let line_of = |index: usize| links.get(index).map_or(0, |link| link.after.first().map_or(link.line, |name| name.1));
    let followed = set.system.follow_sources();
    followed.map_err(|(index, problem)| {
        Problem::at(line_of(index), format!("task {:?}: after: {problem}", set.tasks()[index].name))
    })?;
    for (index, link) in links.iter().enumerate() {
        let (task, period) = (&set.tasks()[index], set.tasks()[index].period().unwrap_or_default());
        if let Some((stated, line)) = link.period.filter(|(stated, _)| *stated != period) {
            let message =
                format!("task {:?}: period = {stated}, but the tasks that it comes after have {period}", task.name);
            return Err(Problem::at(line, message));
        }
        let unusable = task
            .reads
            .iter()
            .find(|read| **read == index || task.reads.iter().filter(|other| other == read).count() > 1);
        if let Some(read) = unusable {
            let what = if *read == index { "itself".into() } else { format!("{:?} twice", set.tasks()[*read].name) };
            return Err(Problem::at(link.reads[0].1, format!("task {:?}: reads names {what}", task.name)));
        }
    }
    let (mut chain_names, mut warnings) = (Names::default(), Vec::new());
    let mut read = Vec::with_capacity(chains.len());
    for node in chains {
        let chain = chain(node, set, &indices, communication, &mut chain_names)?;
        warnings.extend(hopeless_chain(node.line, &chain, set));
        read.push(chain);
    }
    set.system.set_chains(read);
    // The shortest deadline of the chains through each task.
    let mut shortest: Vec<Option<Time>> = vec![None; set.tasks().len()];
    for (chain, deadline) in set.chains().iter().filter_map(|chain| Some((chain, chain.deadline?))) {
        for task in &chain.tasks {
            shortest[*task] = Some(shortest[*task].map_or(deadline, |other| other.min(deadline)));
        }
    }
    for ((task, link), shortest) in set.system.tasks_mut().iter_mut().zip(links).zip(shortest) {
        if link.follows() && !link.states_deadline {
            task.deadline = shortest.or(task.period()).unwrap_or_default();
        }
    }
    for (task, link) in set.tasks().iter().zip(links).filter(|(_, link)| link.follows()) {
        warnings.extend(hopeless(link.line, task, set.fastest(task)));
    }
    Ok(warnings)
}

/// Reads a `[[chain]]` table.
fn chain(
    node: &Node,
    set: &TaskSet,
    indices: &Indices,
    default: Communication,
    taken: &mut Names,
) -> Result<Chain, Problem> {
    let mut fields = Fields::of(node, "chain")?.only(CHAIN_KEYS)?;
    let named = fields.need("name")?;
    let name = taken.add(printable(named.text("name")?, named.line)?, named.line)?;
    let steps = fields.need("tasks")?;
    let named = names(steps, "tasks")?;
    let tasks: Vec<usize> = named.iter().map(|(name, line)| indices.find(name, *line)).collect::<Result<_, _>>()?;
    let deadline = fields.positive_time("deadline", set.time_unit)?;
    let communication = fields.take("communication").map_or(Ok(default), self::communication)?;
    fields.finish()?;
    let chain = Chain { name, tasks, deadline, communication };
    match chain.problem(set.tasks()) {
        Some(problem) => Err(Problem::at(steps.line, format!("chain {:?}: {problem}", chain.name))),
        None => Ok(chain),
    }
}

/// Returns the warning about a chain that cannot meet its end-to-end deadline in the worst case, if it is one: its jobs run one after the other.
fn hopeless_chain(line: usize, chain: &Chain, set: &TaskSet) -> Option<Problem> {
    let tasks = chain.tasks.iter().map(|task| &set.tasks()[*task]);
    let sum = |sum: Time, time: Time| Time(sum.0.saturating_add(time.0));
    let wcets = tasks.clone().map(|task| task.wcet).fold(Time::ZERO, sum);
    let time = tasks.map(|task| set.fastest(task).time_for(task.wcet)).fold(Time::ZERO, sum);
    let on_cores = if time == wcets { String::new() } else { format!(", {time} on their fastest cores,") };
    let deadline = chain.deadline.filter(|deadline| time > *deadline)?;
    let message =
        format!("warning: chain {:?} has wcets of {wcets} in all{on_cores} > deadline {deadline}", chain.name);
    Some(Problem::at(line, message))
}

/// Reads `communication`.
pub(super) fn communication(node: &Node) -> Result<Communication, Problem> {
    Communication::from_name(node.text("communication")?)
        .ok_or_else(|| Problem::at(node.line, format!("communication = {} is none of implicit, let", node.shown())))
}

/// Checks that a mode releases all or none of the tasks that follow each other.
pub(super) fn whole_graphs(set: &TaskSet, released: &[usize], line: usize) -> Result<(), Problem> {
    let Ok(Some(graph)) = Precedence::of(set.tasks()) else { return Ok(()) };
    let mut is_released = vec![false; set.tasks().len()];
    released.iter().for_each(|index| is_released[*index] = true);
    for (index, task) in set.tasks().iter().enumerate() {
        let differs = |source: &&usize| is_released[**source] != is_released[index];
        if let Some(source) = graph.sources(index).iter().find(differs) {
            let source = &set.tasks()[*source].name;
            let message = format!(
                "a mode must have all or none of the tasks that come after each other, such as {source:?} and {:?}",
                task.name
            );
            return Err(Problem::at(line, message));
        }
    }
    Ok(())
}
