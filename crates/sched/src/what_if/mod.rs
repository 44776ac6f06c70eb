//! What to change in a set: how far each task is from the edge of what is proved, and single changes after which the
//! answer is another one.
//!
//! The answer rests on the proofs of the catalog and on the necessary conditions, not on simulation. Both sides of every
//! edge were tried, so a change that is returned changes the answer, and the next smaller one does not. Searches take
//! for granted that less work, longer periods, longer deadlines and more cores do no harm; where a sufficient test is
//! not that regular, a smaller change may do as well.

mod change;
mod search;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use temponet_analysis::{Outcome, WorstCase, qpa, refutations};
use temponet_task::{CoreId, CoreSet, Mode, System, Task, TaskId, TaskSet, Time};

pub use change::Change;
pub use search::Edge;

use crate::catalog::{all, find};
use crate::proofs::{Facts, Proof};
use crate::sensitivity::SCHEDULERS;
use crate::shield::Role;
use search::{first_in, first_that_suffices, last_that_suffices, natural_periods};

/// What is known of a set without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This scheduler is proved to meet every deadline.
    Fits(Proof),
    /// Nothing is proved, neither that every deadline can be met nor that it cannot.
    Open,
    /// No scheduler can meet every deadline if jobs arrive as often and take as long as they may.
    Impossible,
}

impl Answer {
    /// Returns what is known of a set.
    pub fn of(set: &TaskSet) -> Answer {
        match proof(set) {
            Some(proof) => Answer::Fits(proof),
            None if is_impossible(set) => Answer::Impossible,
            None => Answer::Open,
        }
    }
}

/// Returns the first proof of a scheduler, the well-known ones first, and of the shield where there is no other.
fn proof(set: &TaskSet) -> Option<Proof> {
    // Tests that cannot succeed are not tried.
    if is_overloaded(set) {
        return None;
    }
    let by_itself = Facts::of(set).and_then(|facts| {
        let main = SCHEDULERS.iter().filter(|(_, is_asked)| is_asked(set)).filter_map(|(name, _)| find(name));
        let mut entries = main.chain(all());
        entries.find_map(|entry| Some(Proof { scheduler: &entry.name, by: entry.proved_by(&facts)? }))
    });
    by_itself.or_else(|| by_shield(set))
}

/// Returns the proof of the shield if it guarantees every deadline, in all modes.
fn by_shield(set: &TaskSet) -> Option<Proof> {
    let asks_for_more = |mode: &Mode| mode.work > 1.0 || set.task_ids().any(|task| mode.rate_of(task) > 1.0);
    if set.modes().iter().any(asks_for_more) {
        return None;
    }
    let role = Role::on(&set.system);
    let guarantee = role.guarantee().filter(|of| of.is_for_all() && of.covers_overruns())?;
    let is_certain = !guarantee.needs_pattern() || set.modes().is_empty();
    is_certain.then(|| Proof { scheduler: "shield:edf", by: "slack stealing".into() })
}

/// Whether the utilization alone is too much.
fn is_overloaded(set: &TaskSet) -> bool {
    WorstCase::ignoring_sections(set).is_ok_and(|worst_case| worst_case.is_overloaded() == Some(true))
}

/// Whether no scheduler can meet every deadline: a necessary condition fails, or the exact test of EDF on one core,
/// where EDF is optimal.
pub fn is_impossible(set: &TaskSet) -> bool {
    let edf_fails = || {
        let fails = |worst_case: WorstCase| !worst_case.is_limited() && qpa(&worst_case) == Outcome::NotSchedulable;
        set.cores() == 1 && WorstCase::of(set).is_ok_and(fails)
    };
    !refutations(set).is_empty() || edf_fails()
}

/// What a change is to bring about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Fits,
    NotImpossible,
}

/// How much the numbers of a task may move while the set still provably fits, the rest unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// The task.
    pub task: TaskId,
    /// Longest wcet.
    pub wcet: Edge,
    /// Shortest period; a deadline that is the period goes with it. None for tasks that follow others.
    pub period: Option<Edge>,
    /// Shortest deadline.
    pub deadline: Edge,
}

impl Room {
    /// Returns the least share by which a number of the task may change.
    fn least(&self, task: &Task) -> f64 {
        let grows = self.wcet.to.0 as f64 / task.wcet.0.max(1) as f64 - 1.0;
        let shrinks = |from: Time, edge: Edge| 1.0 - edge.to.0 as f64 / from.0.max(1) as f64;
        let period = self.period.zip(task.period()).map(|(edge, from)| shrinks(from, edge));
        grows.min(shrinks(task.deadline, self.deadline)).min(period.unwrap_or(f64::INFINITY))
    }
}

/// A change after which more is known in favor of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// The change.
    pub change: Change,
    /// The nearest smaller change that was tried and is not enough; none if there is none, or if it is no change.
    pub not_enough: Option<Change>,
    /// The answer after the change.
    pub then: Answer,
    /// How much of the number goes, from 0 to 1; 1 for a task that is left out.
    pub size: f64,
}

/// What to change in a set, and how far it is from the edge.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// What is known of the set as it is.
    pub answer: Answer,
    /// Room of each task where the set provably fits, the tightest first.
    pub rooms: Vec<Room>,
    /// What is known with one core less; none if the set cannot have fewer, or if it does not provably fit.
    pub one_core_less: Option<Answer>,
    /// Changes where it does not, the most effective first.
    pub advice: Vec<Advised>,
    /// Tasks whose deadlines the shield would all guarantee if they were marked so, and does not guarantee now together.
    pub guarantee: Vec<TaskId>,
    /// Tasks of which no change alone is enough.
    pub in_vain: Vec<TaskId>,
    /// Tasks that were not looked at, because the effort was spent.
    pub left_out: Vec<TaskId>,
}

/// Greatest effort: tasks of every changed set, and a tenth of their square where tests are tried that compare each task
/// with each other one.
const MOST_EFFORT: usize = 500_000;
/// Effort of a test of tasks that follow each other on several cores, as a multiple of that of others.
const MOST_ROUNDS: usize = 200;
/// Greatest number of tasks for which a part to guarantee is looked for.
const MOST_GUARANTEED: usize = 64;
/// Greatest factor by which a number of a task is changed.
const MOST_FACTOR: u64 = 1000;
/// Greatest factor on the period of a task that is slowed down together with others.
const MOST_SLOWER: u64 = 4;
/// Greatest factor on the number of cores.
const MOST_CORES_FACTOR: usize = 4;

/// Returns what to change in a set.
pub fn what_if(set: &TaskSet) -> WhatIf {
    let search = Search { set, effort: Cell::new(0) };
    let mut found = WhatIf {
        answer: Answer::of(set),
        rooms: Vec::new(),
        one_core_less: None,
        advice: Vec::new(),
        guarantee: Vec::new(),
        in_vain: Vec::new(),
        left_out: Vec::new(),
    };
    let mut tasks: Vec<TaskId> = set.task_ids().filter(|task| set.tasks()[*task].period().is_some()).collect();
    let utilization = |task: &TaskId| set.tasks()[*task].utilization();
    tasks.sort_by(|a, b| utilization(b).total_cmp(&utilization(a)).then(a.cmp(b)));
    if let Answer::Fits(_) = found.answer {
        found.one_core_less =
            set.cores().checked_sub(1).filter(|left| *left > 0).and_then(|left| search.at_cores(left));
        for task in tasks {
            if search.is_spent() { found.left_out.push(task) } else { found.rooms.push(search.room(task)) }
        }
        found.rooms.sort_by(|a, b| {
            let least = |room: &Room| room.least(&set.tasks()[room.task]);
            least(a).total_cmp(&least(b)).then(a.task.cmp(&b.task))
        });
        return found;
    }
    found.advice.extend(search.whole_set(&found.answer));
    for task in tasks {
        if search.is_spent() {
            found.left_out.push(task);
            continue;
        }
        let advice = search.of_task(task, &found.answer);
        if advice.is_empty() {
            found.in_vain.push(task);
        }
        found.advice.extend(advice);
    }
    let is_proved = |of: &Advised| matches!(of.then, Answer::Fits(_));
    for target in targets(&found.answer) {
        let is_enough = |of: &Advised| of.change.is_of_one_task() && (target == Target::NotImpossible || is_proved(of));
        if !found.advice.iter().any(is_enough) {
            found.advice.extend(search.together(target));
        }
    }
    found.advice.sort_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal));
    let mut seen: Vec<Change> = Vec::new();
    found.advice.retain(|of| {
        let is_new = !seen.contains(&of.change);
        seen.push(of.change.clone());
        is_new
    });
    found.guarantee = part_to_guarantee(&set.system);
    found
}

/// Order of advice: what is proved to fit first; then changes of one task, of several, of all, of the machine; then by
/// size.
fn order(advised: &Advised) -> (bool, u8, f64) {
    let group = match advised.change {
        Change::Move(..) => 0,
        Change::Wcet(..) | Change::Period(..) | Change::Deadline(..) => 1,
        Change::Drop(_) => 2,
        Change::Periods(_) => 3,
        Change::EveryWcet(_) | Change::EveryPeriod(_) => 4,
        Change::Cores(_) => 5,
    };
    (!matches!(advised.then, Answer::Fits(_)), group, advised.size)
}

struct Search<'a> {
    set: &'a TaskSet,
    effort: Cell<usize>,
}

impl Search<'_> {
    fn is_spent(&self) -> bool {
        self.effort.get() > MOST_EFFORT
    }

    /// Whether the target is reached after a change.
    fn reaches(&self, target: Target, change: &Change) -> bool {
        let Some(changed) = change.apply(self.set) else { return false };
        let tasks = self.set.tasks().len();
        // Response times of tasks that follow each other are found again and again until they agree.
        let rounds = if self.set.cores() > 1 && self.set.has_precedence() { MOST_ROUNDS } else { 1 };
        let is_quick = target == Target::NotImpossible || is_overloaded(&changed);
        let pairs = if is_quick { 0 } else { tasks * tasks * rounds / 10 };
        self.effort.set(self.effort.get() + tasks + pairs);
        match target {
            Target::Fits => proof(&changed).is_some(),
            Target::NotImpossible => !is_impossible(&changed),
        }
    }

    fn at_cores(&self, count: usize) -> Option<Answer> {
        Some(Answer::of(&Change::Cores(count).apply(self.set)?))
    }

    fn room(&self, task: TaskId) -> Room {
        let (set, of) = (self.set, &self.set.tasks()[task]);
        let fits = |change: fn(TaskId, Time) -> Change| move |to: Time| self.reaches(Target::Fits, &change(task, to));
        // A job that takes twice its deadline on the fastest core does not fit.
        let longest = (u128::from(of.deadline.0) * u128::from(set.fastest(of).0) / 500).max(u128::from(of.wcet.0) * 2);
        let most = Time(u64::try_from(longest).unwrap_or(u64::MAX).min(Time::MAX_INPUT.0));
        let wcet = last_that_suffices(of.wcet, most, fits(Change::Wcet));
        let least = |time: Time| Time((time.0 / MOST_FACTOR).max(1));
        let own = of.period().filter(|_| of.after.is_empty());
        let period = own.map(|period| last_that_suffices(period, least(period), fits(Change::Period)));
        let deadline = last_that_suffices(of.deadline, least(of.deadline), fits(Change::Deadline));
        Room { task, wcet, period, deadline }
    }

    /// What each change of a task alone achieves; empty if nothing.
    fn of_task(&self, task: TaskId, now: &Answer) -> Vec<Advised> {
        let mut found = Vec::new();
        let of = &self.set.tasks()[task];
        // What concerns all parts of a task is said of the last one, which stands for the whole.
        let is_whole = !of.is_part;
        for target in targets(now) {
            let reaches = |change: Change| self.reaches(target, &change);
            // If nothing is left of a task's work and that is not enough, no other wcet is. Another period or no job at
            // all can be: then there is no deadline that others' jobs or sections could hold it up beyond.
            if reaches(Change::Wcet(task, Time(1))) {
                let edge = first_that_suffices(of.wcet, Time(1), |to| reaches(Change::Wcet(task, to)));
                let share = |edge: &Edge| 1.0 - edge.to.0 as f64 / of.wcet.0 as f64;
                found.extend(edge.map(|edge| self.advised(edge, of.wcet, share(&edge), |to| Change::Wcet(task, to))));
            }
            if is_whole {
                found.extend(self.slower(task, target));
                if reaches(Change::Drop(task)) {
                    found.extend(self.sized(Change::Drop(task), None, 1.0));
                }
            }
            if let Some(period) = of.period().filter(|period| is_whole && of.deadline < *period) {
                let edge = first_that_suffices(of.deadline, period, |to| reaches(Change::Deadline(task, to)));
                let share = |edge: &Edge| 1.0 - of.deadline.0 as f64 / edge.to.0 as f64;
                let change = |to| Change::Deadline(task, to);
                found.extend(edge.map(|edge| self.advised(edge, of.deadline, share(&edge), change)));
            }
            found.extend(self.moved(task, target));
        }
        found
    }

    /// The greatest rate that people choose at which the target is reached, else the least period.
    fn slower(&self, task: TaskId, target: Target) -> Option<Advised> {
        let task = self.set.first_part(task);
        let of = &self.set.tasks()[task];
        let period = of.period().filter(|_| of.after.is_empty())?;
        let limit = Time(period.0.saturating_mul(MOST_FACTOR).min(Time::MAX_INPUT.0));
        let reaches = |to: Time| self.reaches(target, &Change::Period(task, to));
        let natural = first_in(&natural_periods(period, limit), period, reaches);
        let edge = natural.or_else(|| first_that_suffices(period, limit, reaches))?;
        let share = 1.0 - period.0 as f64 / edge.to.0 as f64;
        Some(self.advised(edge, period, share, |to| Change::Period(task, to)))
    }

    /// Cores on which a task that is bound to some of them would not be in the way.
    fn moved(&self, task: TaskId, target: Target) -> Option<Advised> {
        let now = &self.set.tasks()[task].cores;
        if now.is_all() {
            return None;
        }
        // A core that is only for tasks that name it is of another kind: not every task can run there.
        let is_open = |core: &CoreId| self.set.machine().cores().get(core.index()).is_none_or(|core| !core.only);
        let single = self.set.core_ids().filter(is_open).map(|core| CoreSet::of([core])).filter(|cores| cores != now);
        let changes = single.chain([CoreSet::ALL]).map(|cores| Change::Move(task, cores));
        let change = changes.into_iter().find(|change| self.reaches(target, change))?;
        self.sized(change, None, 0.0)
    }

    /// Changes of all tasks alike, and of the number of cores.
    fn whole_set(&self, now: &Answer) -> Vec<Advised> {
        let mut found = Vec::new();
        for target in targets(now) {
            let reaches = |change: Change| self.reaches(target, &change);
            let whole = Time(1000);
            let shorter = first_that_suffices(whole, Time(1), |to| reaches(Change::EveryWcet(to.0)));
            let share = |edge: &Edge| 1.0 - edge.to.0 as f64 / 1000.0;
            found.extend(shorter.map(|edge| self.advised(edge, whole, share(&edge), |to| Change::EveryWcet(to.0))));
            let limit = Time(whole.0 * 100);
            let slower = first_that_suffices(whole, limit, |to| reaches(Change::EveryPeriod(to.0)));
            let share = |edge: &Edge| 1.0 - 1000.0 / edge.to.0 as f64;
            found.extend(slower.map(|edge| self.advised(edge, whole, share(&edge), |to| Change::EveryPeriod(to.0))));
            let cores = self.set.cores();
            let counts: Vec<Time> = (cores + 1..=(cores * MOST_CORES_FACTOR).min(System::MOST_CORES))
                .map(|count| Time(count as u64))
                .collect();
            let more = first_in(&counts, Time(cores as u64), |count| reaches(Change::Cores(count.0 as usize)));
            let share = |edge: &Edge| 1.0 - cores as f64 / edge.to.0 as f64;
            let change = |count: Time| Change::Cores(count.0 as usize);
            found.extend(more.map(|edge| self.advised(edge, Time(cores as u64), share(&edge), change)));
        }
        found
    }

    /// Rates that people choose for several tasks, the least critical and busiest first, that reach the target together.
    /// None of them can be one step faster.
    fn together(&self, target: Target) -> Option<Advised> {
        let set = self.set;
        let slower = |task: TaskId| {
            let of = &set.tasks()[task];
            let period = of.period().filter(|_| of.after.is_empty())?;
            let limit = Time(period.0.saturating_mul(MOST_SLOWER).min(Time::MAX_INPUT.0));
            Some((task, [vec![period], natural_periods(period, limit)].concat()))
        };
        let choices: Vec<(TaskId, Vec<Time>)> = set.task_ids().filter_map(slower).collect();
        let mut steps = vec![0; choices.len()];
        let change = |steps: &[usize]| {
            let slowed = choices.iter().zip(steps).filter(|(_, step)| **step > 0);
            Change::Periods(slowed.map(|((task, periods), step)| (*task, periods[*step])).collect())
        };
        let reaches = |steps: &[usize]| self.reaches(target, &change(steps));
        let load = |place: usize, step: usize| {
            let (task, periods) = &choices[place];
            let parts = set.parts(set.whole(*task)).map(|part| set.tasks()[part].utilization());
            parts.sum::<f64>() * periods[0].0 as f64 / periods[step].0 as f64
        };
        while !reaches(&steps) {
            let can_slow = |place: &usize| steps[*place] + 1 < choices[*place].1.len();
            let level = |place: usize| set.tasks()[choices[place].0].criticality;
            let least = (0..steps.len()).filter(can_slow).map(level).min()?;
            let next = (0..steps.len())
                .filter(|place| can_slow(place) && level(*place) == least)
                .max_by(|a, b| load(*a, steps[*a]).total_cmp(&load(*b, steps[*b])).then(b.cmp(a)))?;
            steps[next] += 1;
            if self.is_spent() {
                return None;
            }
        }
        for place in 0..steps.len() {
            while steps[place] > 0 {
                steps[place] -= 1;
                if !reaches(&steps) {
                    steps[place] += 1;
                    break;
                }
            }
        }
        let all: f64 = (0..steps.len()).map(|place| load(place, 0)).sum();
        let left: f64 = (0..steps.len()).map(|place| load(place, steps[place])).sum();
        self.sized(change(&steps), None, 1.0 - left / all)
    }

    fn advised(&self, edge: Edge, from: Time, size: f64, change: impl Fn(Time) -> Change) -> Advised {
        let not_enough = edge.beyond.filter(|beyond| *beyond != from).map(&change);
        let change = change(edge.to);
        let then = change.apply(self.set).map_or(Answer::Open, |changed| Answer::of(&changed));
        Advised { change, not_enough, then, size }
    }

    fn sized(&self, change: Change, not_enough: Option<Change>, size: f64) -> Option<Advised> {
        let then = Answer::of(&change.apply(self.set)?);
        Some(Advised { change, not_enough, then, size })
    }
}

/// What would be better than the present answer, the best first.
fn targets(now: &Answer) -> Vec<Target> {
    match now {
        Answer::Fits(_) => Vec::new(),
        Answer::Open => vec![Target::Fits],
        Answer::Impossible => vec![Target::Fits, Target::NotImpossible],
    }
}

/// Tasks that the shield would guarantee all together, chosen in the order of criticality and deadline; empty if they
/// are no better than those that it guarantees now. Below a level of which a task does not fit, nothing is chosen, since
/// a guarantee by name would be at its cost, unless the set asks for it by name already.
fn part_to_guarantee(system: &System) -> Vec<TaskId> {
    if system.tasks().len() > MOST_GUARANTEED {
        return Vec::new();
    }
    let kept = |system: &System| -> Vec<TaskId> {
        let role = Role::on(system);
        let guarantee = role.guarantee();
        system.whole_tasks().filter(|task| guarantee.is_some_and(|of| of.core_of(*task).is_some())).collect()
    };
    let level = |task: &TaskId| system.tasks()[*task].criticality;
    let mut order: Vec<TaskId> = system.whole_tasks().collect();
    order.sort_by_key(|task| {
        let of = &system.tasks()[*task];
        (!of.guarantee, std::cmp::Reverse(of.criticality), of.deadline, *task)
    });
    let mut marked = system.clone();
    marked.tasks_mut().iter_mut().for_each(|task| task.guarantee = false);
    let mut chosen: Vec<TaskId> = Vec::new();
    let mut highest_out = 0;
    for task in order {
        if level(&task) < highest_out && !system.tasks()[task].guarantee {
            continue;
        }
        let mark = |marked: &mut System, is_marked: bool| {
            let mut tasks = marked.tasks_mut();
            system.parts(task).for_each(|part| tasks[part].guarantee = is_marked);
        };
        mark(&mut marked, true);
        let guaranteed = kept(&marked);
        let fits = chosen.iter().chain([&task]).all(|of| guaranteed.contains(of));
        mark(&mut marked, fits);
        if fits {
            chosen.push(task);
        } else {
            highest_out = highest_out.max(level(&task));
        }
    }
    chosen.sort_unstable();
    let levels = |tasks: &[TaskId]| {
        let mut levels: Vec<u8> = tasks.iter().map(level).collect();
        levels.sort_unstable_by_key(|level| std::cmp::Reverse(*level));
        levels
    };
    if levels(&chosen) > levels(&kept(system)) { chosen } else { Vec::new() }
}
