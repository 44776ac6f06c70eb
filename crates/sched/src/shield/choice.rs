//! The choice of the guaranteed tasks where not all can be, and why the others are left out.
//!
//! Wanted are the tasks that ask for a guarantee, or, if none does, the critical ones: the more critical first, the
//! lighter first among equally critical ones. What cannot be guaranteed even by itself is passed over. Below a level
//! with such a task, nothing is guaranteed at its cost: time that is kept for a less critical task is time that the more
//! critical one may lack. Whoever asks for a guarantee by name gets it whatever it costs others. The largest prefix of
//! the rest that fits is guaranteed.

use temponet_task::{ResourceId, System, Task, TaskId, Time};

use super::guarantee::Guarantee;
use super::no_guarantee::WhyNot;
use super::provable::{Fit, ProvableTasks};
use super::reasons::{self, name_of_whole};

/// The tasks that should be guaranteed where not all can be.
pub(super) struct Wanted {
    /// Whether they ask for a guarantee. Otherwise they are the critical ones.
    pub by_name: bool,
    /// In the order in which they are added.
    pub tasks: Vec<TaskId>,
    /// Level of each of them, not increasing: the highest criticality of the task itself and of those that come after
    /// it. All are equal if tasks are wanted by name.
    levels: Vec<u8>,
}

impl Wanted {
    pub fn of(system: &System) -> Wanted {
        let by_name = system.tasks().iter().any(|task| task.guarantee);
        let is_wanted = |task: &Task| if by_name { task.guarantee } else { task.criticality > 0 };
        let mut tasks: Vec<TaskId> = system.task_ids().filter(|task| is_wanted(&system.tasks()[*task])).collect();
        // The parts of a task stay together.
        let utilization = |task: TaskId| -> f64 {
            system.parts(system.whole(task)).map(|part| system.tasks()[part].utilization()).sum()
        };
        tasks.sort_by(|a, b| {
            let level = |task: TaskId| system.tasks()[task].criticality;
            level(*b).cmp(&level(*a)).then(utilization(*a).total_cmp(&utilization(*b)))
        });
        if system.has_precedence() {
            tasks = predecessors_first(system, tasks);
        }
        // Those that a task comes after are directly before it, unless more critical ones need them, too.
        let mut highest = 0;
        let level = |task: &TaskId| {
            highest = highest.max(if by_name { 0 } else { system.tasks()[*task].criticality });
            highest
        };
        let mut levels: Vec<u8> = tasks.iter().rev().map(level).collect();
        levels.reverse();
        Wanted { by_name, tasks, levels }
    }

    pub fn with_levels(&self) -> impl Iterator<Item = (TaskId, u8)> + '_ {
        self.tasks.iter().copied().zip(self.levels.iter().copied())
    }
}

/// Puts each task behind those of the list that it comes after, because it needs their guarantees.
fn predecessors_first(system: &System, tasks: Vec<TaskId>) -> Vec<TaskId> {
    let mut is_missing = vec![false; system.tasks().len()];
    tasks.iter().for_each(|task| is_missing[*task] = true);
    let mut ordered = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let mut open = vec![*task];
        while let Some(task) = open.last().copied() {
            let before = system.tasks()[task].after.iter().find(|before| is_missing[**before]);
            // Tasks that come after each other in a circle are no system.
            match before.filter(|_| open.len() <= tasks.len()) {
                Some(before) => open.push(*before),
                None => {
                    open.pop();
                    if std::mem::replace(&mut is_missing[task], false) {
                        ordered.push(task);
                    }
                }
            }
        }
    }
    ordered
}

/// The tasks that are guaranteed.
pub(super) struct Choice {
    tasks: Vec<TaskId>,
    /// Their cores; none if no task is guaranteed.
    fit: Option<Fit>,
    /// Why each task of the system is not guaranteed.
    pub why_not: Vec<Option<WhyNot>>,
}

impl Choice {
    /// Chooses the most of the wanted tasks.
    pub fn of(provable: &ProvableTasks<'_>, wanted: &Wanted) -> Choice {
        let (mut able, mut why_not) = able(provable, wanted);
        let ends = ends(provable.system, &mut able);
        let (mut most, mut too_many) = (0, ends.len());
        let mut found = None;
        while most + 1 < too_many {
            // All of them at first, then bisection.
            let tried =
                if found.is_none() && too_many == ends.len() { ends.len() - 1 } else { most + (too_many - most) / 2 };
            match provable.fit(&able[..ends[tried]]) {
                Some(fit) => (most, found) = (tried, Some(fit)),
                None => too_many = tried,
            }
        }
        able.truncate(ends[most]);
        reasons::complete(provable.system, wanted, &able, &mut why_not);
        Choice { tasks: able, fit: found, why_not }
    }

    /// Whether every task is guaranteed that is so in the other choice.
    pub fn keeps(&self, other: &Choice) -> bool {
        self.fit.is_some() && other.tasks.iter().all(|task| self.why_not[*task].is_none())
    }

    /// Returns what is guaranteed, if anything is.
    pub fn guarantee(self, provable: &ProvableTasks<'_>) -> Option<Guarantee> {
        Some(provable.guarantee(&self.tasks, &self.fit?, self.why_not))
    }
}

/// Returns the wanted tasks that can be guaranteed by themselves and cost no task of a higher level that cannot, and why
/// the others are not among them.
fn able(provable: &ProvableTasks<'_>, wanted: &Wanted) -> (Vec<TaskId>, Vec<Option<WhyNot>>) {
    let system = provable.system;
    let (mut is_able, mut why_not) = (vec![false; system.tasks().len()], provable.why_not());
    let (mut higher, mut same_level) = (LeftOut::none(system), Vec::new());
    let mut last_level = None;
    for (task, level) in wanted.with_levels() {
        if last_level.replace(level).is_some_and(|last| last > level) {
            same_level.drain(..).for_each(|task| higher.add(system, task));
        }
        let reason = || {
            if let Some(out) = higher.pays_for(provable, task) {
                return Some(WhyNot::HigherLeftOut(name_of_whole(system, out)));
            }
            if !system.tasks()[task].after.iter().all(|before| is_able[*before]) {
                return Some(WhyNot::Follows);
            }
            provable.fit(&[task]).is_none().then(|| provable.why_not_alone(task))
        };
        why_not[task] = why_not[task].take().or_else(reason);
        is_able[task] = why_not[task].is_none();
        if !is_able[task] {
            same_level.push(task);
        }
    }
    (wanted.tasks.iter().copied().filter(|task| is_able[*task]).collect(), why_not)
}

/// Returns the numbers of tasks, from none to all, after which the list may end: where no task with parts is cut.
/// Tasks of which a part is not there are taken out, since a part alone is worth nothing.
fn ends(system: &System, able: &mut Vec<TaskId>) -> Vec<usize> {
    if !system.has_parts() {
        return (0..=able.len()).collect();
    }
    let is_whole = |tasks: &[TaskId], task: TaskId| system.parts(system.whole(task)).all(|part| tasks.contains(&part));
    let all = able.clone();
    able.retain(|task| is_whole(&all, *task));
    let is_end = |count: &usize| able[..*count].iter().all(|task| is_whole(&able[..*count], *task));
    (0..=able.len()).filter(is_end).collect()
}

/// Tasks that are left out, by what a guarantee of others could take from them.
struct LeftOut {
    /// For each core, one of the tasks that use it themselves or come after one that does.
    cores: Vec<Option<TaskId>>,
    /// For each resource, such a task.
    resources: Vec<Option<TaskId>>,
    first: Option<TaskId>,
    /// Whether each task is among them, or one of them comes after it.
    is_counted: Vec<bool>,
}

impl LeftOut {
    fn none(system: &System) -> LeftOut {
        LeftOut {
            cores: vec![None; system.cores()],
            resources: vec![None; system.resources().len()],
            first: None,
            is_counted: vec![false; system.tasks().len()],
        }
    }

    fn add(&mut self, system: &System, out: TaskId) {
        let whole = system.whole(out);
        if system.parts(whole).any(|part| is_hopeless(system, &system.tasks()[part])) {
            return;
        }
        self.first.get_or_insert(whole);
        let mut open = vec![whole];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut self.is_counted[id], true) {
                continue;
            }
            let task = &system.tasks()[id];
            task.cores.iter(system.cores()).for_each(|core| _ = self.cores[core].get_or_insert(whole));
            for section in &task.sections {
                self.resources[section.resource].get_or_insert(whole);
            }
            open.extend(&task.after);
        }
    }

    /// Returns a task that is left out and that a guarantee of this one could cost something: it may use a core of the
    /// same ones, or waits for a resource that the shield would rule. Where decisions cost time, those that the shield
    /// asks for can cost everybody.
    fn pays_for(&self, provable: &ProvableTasks<'_>, task: TaskId) -> Option<TaskId> {
        self.first?;
        let system = provable.system;
        let of_decisions = self.first.filter(|_| system.costs().decision > Time::ZERO);
        let of_cores = || system.tasks()[task].cores.iter(system.cores()).find_map(|core| self.cores[core]);
        let of_resources = || {
            let rules = provable.rules(&[task]);
            let mut ruled = ResourceId::all(rules.len()).filter(|resource| rules[resource.index()].is_some());
            ruled.find_map(|resource| self.resources[resource])
        };
        of_decisions.or_else(of_cores).or_else(of_resources)
    }
}

/// Whether no job of the task can meet its deadline in any mode, so that it has nothing to lose.
fn is_hopeless(system: &System, task: &Task) -> bool {
    let latest = task.deadline.0 as f64 * system.stretch();
    let least = system.fastest(task).time_for(task.bcet).0 as f64 * system.least_work();
    task.period().is_some() && least > latest
}
