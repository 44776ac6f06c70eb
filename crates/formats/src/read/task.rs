//! `[[task]]` and `[[burst]]` tables to tasks: what follows from several of their keys.

use std::path::PathBuf;

use temponet_task::{Arrival, CoreId, CoreSet, ExecutionModel, Preemption, ResourceId, Section, Speed, Task, Time};

use super::precedence::Links;
use super::{Names, hopeless};
use crate::Problem;
use crate::keys::{BURST, Bounds, Context, Measured, TASK, TaskDraft};
use crate::keys::{default_gap, default_model, gap, model, named_model, samples};
use crate::node::Node;

/// Reader of the `[[task]]` and `[[burst]]` tables of a file.
pub(super) struct TaskReader<'a> {
    with: &'a Context<'a>,
    /// Limit on preemption of tasks that state none, and its line.
    default_preemption: Option<(Preemption, usize)>,
    pub(super) names: Names,
    pub warnings: Vec<Problem>,
    /// Files that tasks refer to.
    pub files: Vec<PathBuf>,
    /// What each `[[task]]` says about other tasks.
    pub links: Vec<Links>,
    /// Names of the resources so far.
    pub resources: Vec<String>,
}

impl<'a> TaskReader<'a> {
    pub fn new(with: &'a Context<'a>, default_preemption: Option<(Preemption, usize)>) -> TaskReader<'a> {
        let (names, warnings, files, links) = (Names::default(), Vec::new(), Vec::new(), Vec::new());
        TaskReader { with, default_preemption, names, warnings, files, links, resources: Vec::new() }
    }

    /// Reads a `[[task]]` table. A task with parts is as many tasks.
    pub fn task(&mut self, node: &'a Node) -> Result<Vec<Task>, Problem> {
        let mut draft = TaskDraft::new();
        TASK.read(node, &mut draft, self.with)?;
        self.names.add(draft.task.name.clone(), draft.name_line)?;
        // The period of a task that arrives with others follows once all tasks are known.
        let period = match (&draft.after, draft.period, draft.own_arrival) {
            (None, Some((period, _)), _) => period,
            (None, None, _) => return Err(missing(node, &draft.task, "period")),
            (Some(_), _, Some(given)) => {
                let message =
                    format!("{} = {}: a task with after arrives with its sources", given.name, given.node.shown());
                return Err(Problem::at(given.node.line, message));
            }
            (Some(_), ..) => Time(1),
        };
        draft.task.arrival = self.arrival(&draft, period)?;
        draft.task.deadline = draft.deadline.unwrap_or(period);
        if !draft.parts.is_empty() {
            return self.parts(node, draft);
        }
        self.execution_times(node, &mut draft)?;
        self.sections(&mut draft)?;
        let links = Links::of(node.line, &mut draft);
        let (task, fastest) = self.limited(draft, node.line)?;
        if !links.follows() {
            self.warnings.extend(hopeless(node.line, &task, fastest));
        }
        self.links.push(links);
        Ok(vec![task])
    }

    /// Reads a `[[burst]]` table.
    pub fn burst(&mut self, node: &'a Node) -> Result<Task, Problem> {
        let mut draft = TaskDraft::new();
        BURST.read(node, &mut draft, self.with)?;
        self.names.add(draft.task.name.clone(), draft.name_line)?;
        let every = draft.period.map_or(Time::ZERO, |(every, _)| every);
        let until = draft.lasts.map_or(Time::NEVER, |lasts| draft.task.offset + lasts);
        draft.task.arrival = Arrival::Burst { jobs: draft.jobs, every, until };
        draft.task.wcet = draft.wcet.unwrap_or_default();
        (draft.task.bcet, draft.task.deadline) = (draft.task.wcet, draft.deadline.unwrap_or(every));
        let (task, fastest) = self.limited(draft, node.line)?;
        self.warnings.extend(hopeless(node.line, &task, fastest));
        Ok(task)
    }

    /// Returns the task of a draft with its limit on preemption, and the speed of the fastest core that it may use.
    pub(super) fn limited(&self, draft: TaskDraft<'_>, line: usize) -> Result<(Task, Speed), Problem> {
        let mut task = draft.task;
        if task.cores.is_all() && !self.with.machine.is_empty() && self.with.machine.iter().all(|core| core.only) {
            let message = format!("task {:?} names no core, and every core is only for tasks that name it", task.name);
            return Err(Problem::at(line, message));
        }
        if let Some(shared) = CoreSet::shared(self.with.machine).filter(|_| task.cores.is_all()) {
            task.cores = shared;
        }
        if let Some((preemption, line)) = draft.preemption.or(self.default_preemption) {
            limit(&mut task, preemption, line)?;
        }
        let named = self.with.machine.iter().enumerate().filter(|(core, _)| task.cores.contains(CoreId::new(*core)));
        let fastest = named.map(|(_, core)| core.speed).max().unwrap_or(Speed::FULL);
        Ok((task, fastest))
    }

    /// Returns the arrival pattern.
    fn arrival(&self, draft: &TaskDraft<'_>, period: Time) -> Result<Arrival, Problem> {
        match (draft.is_sporadic, draft.gap) {
            (false, None) => Ok(Arrival::Periodic { period }),
            (false, Some(node)) => Err(Problem::at(node.line, "gap belongs to kind = \"sporadic\"")),
            (true, None) => Ok(Arrival::Sporadic { minimum: period, gap: default_gap(period) }),
            (true, Some(node)) => Ok(Arrival::Sporadic { minimum: period, gap: gap(node, period, self.with)? }),
        }
    }

    /// Sets the bounds and the model of the execution times, which must be consistent.
    pub(super) fn execution_times(&mut self, node: &Node, draft: &mut TaskDraft<'_>) -> Result<(), Problem> {
        let task = &mut draft.task;
        let measured = draft.execution.map_or(Ok(None), |node| samples(node, self.with))?;
        let samples = measured.map(|Measured { times, file }| {
            self.files.extend(file);
            times
        });
        let (least, longest) = match &samples {
            Some(samples) => (samples.iter().copied().min(), samples.iter().copied().max()),
            None => (None, None),
        };
        let wcet = draft.wcet.or(longest).ok_or_else(|| missing(node, task, "wcet"))?;
        // An error is in the line of its key, or of the task where the key is missing.
        let wrong = |key: &str, message: String| {
            let line = node.entry(key).map_or(node.line, |given| given.line);
            Err(Problem::at(line, format!("task {:?}: {message}", task.name)))
        };
        if let Some(longest) = longest.filter(|longest| *longest > wcet) {
            return wrong("execution", format!("a measured time of {longest} is more than the wcet {wcet}"));
        }
        let name = draft.execution.map(named_model).transpose()?;
        let bcet = match (draft.bcet.or(least), task.acet, name) {
            (Some(bcet), ..) => bcet,
            (None, None, None | Some("wcet")) => wcet,
            _ => return wrong("execution", "execution times that vary need a bcet".into()),
        };
        if bcet > wcet {
            return wrong("bcet", format!("bcet {bcet} is more than the wcet {wcet}"));
        }
        if let Some(least) = least.filter(|least| *least < bcet) {
            return wrong("execution", format!("a measured time of {least} is less than the bcet {bcet}"));
        }
        if let Some(acet) = task.acet.filter(|acet| *acet < bcet || *acet > wcet) {
            return wrong("acet", format!("acet {acet} is not between bcet {bcet} and wcet {wcet}"));
        }
        let bounds = Bounds { bcet, wcet, acet: task.acet, samples };
        let below = match draft.execution {
            Some(node) => model(node, &bounds, self.with)?,
            None => default_model(&bounds),
        };
        if let Some(high) = task.wcet_high.filter(|high| *high < wcet) {
            return wrong("wcet_high", format!("wcet_high {high} is less than the wcet {wcet}"));
        }
        (task.wcet, task.bcet) = (wcet, bcet);
        task.execution = match draft.overrun {
            Some((_, line)) if task.wcet_high.is_none() => return Err(Problem::at(line, "overrun needs a wcet_high")),
            None | Some((0.0, _)) => below,
            Some((probability, _)) => ExecutionModel::Overrun { probability, below: Box::new(below) },
        };
        Ok(())
    }

    /// Gives the task its critical sections. Resources that have not been named before are added.
    fn sections(&mut self, draft: &mut TaskDraft<'_>) -> Result<(), Problem> {
        for (section, line) in std::mem::take(&mut draft.sections) {
            let known = self.resources.iter().position(|resource| *resource == section.resource);
            let resource = known.unwrap_or(self.resources.len());
            if known.is_none() {
                self.resources.push(section.resource);
            }
            let task = &mut draft.task;
            task.sections.push(Section { resource: ResourceId::new(resource), at: section.at, length: section.length });
            if let Some((_, problem)) = task.section_problem(&self.resources) {
                return Err(Problem::at(line, format!("task {:?}: {problem}", task.name)));
            }
        }
        Ok(())
    }
}

/// Creates the error for a key that the task has to have.
fn missing(node: &Node, task: &Task, key: &str) -> Problem {
    Problem::at(node.line, format!("task {:?} has no {key}", task.name))
}

/// Gives a task the limit on preemption that `line` states. Too many preemption points are refused.
pub(crate) fn limit(task: &mut Task, preemption: Preemption, line: usize) -> Result<(), Problem> {
    let wcet = task.wcet.max(task.wcet_high.unwrap_or_default());
    if let Preemption::Every(every) = preemption
        && !preemption.is_usable(wcet)
    {
        let name = &task.name;
        let many =
            format!("every = {every} gives task {name:?} with wcet {wcet} more than 1 000 000 preemption points");
        return Err(Problem::at(line, many));
    }
    task.preemption = preemption;
    Ok(())
}
