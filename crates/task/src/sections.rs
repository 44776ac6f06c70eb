//! Critical sections: stretches of a job's work in which it holds a shared resource, and the protocol that keeps others
//! waiting.
//!
//! Sections are counted in the work of a job at its wcet, overhead not included. They do not stretch or shrink with the
//! true execution time, which a scheduler could otherwise read off them: a job that completes within a section releases
//! its resource there, and one that completes before does not lock it. A job whose wcet differs from that of its task,
//! in a mode or a list of jobs, has its sections in proportion to its wcet.

use crate::{Attribute, Job, ResourceId, System, Task, TaskId, Time};
use alloc::{string::String, vec, vec::Vec};

/// A stretch of every job of a task in which it holds a resource that one job at a time can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The resource.
    pub resource: ResourceId,
    /// Work of the job at which it locks the resource.
    pub at: Time,
    /// Work that it does before it unlocks the resource; greater than zero.
    pub length: Time,
}

impl Section {
    /// Returns the work of the job at which it unlocks the resource.
    pub fn end(&self) -> Time {
        self.at + self.length
    }

    /// Returns whether the section is a part of `outer`, or covers the same work.
    fn is_within(&self, outer: &Section) -> bool {
        outer.at <= self.at && self.end() <= outer.end()
    }
}

/// Rule for jobs that want a resource that another job holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// A job that waits does not compete for the cores. The job that it waits for competes by its own urgency only.
    None,
    /// A scheduler that chooses a job that waits runs the job that it waits for, which thereby inherits its urgency,
    /// whatever that is (Sha, Rajkumar and Lehoczky, IEEE Transactions on Computers 39, 1990). This is the default.
    #[default]
    Inheritance,
    /// Stack resource policy (Baker, Real-Time Systems 3, 1991), for one core: a job starts only if its preemption
    /// level exceeds the ceilings of all resources that others hold. Under fixed priorities this is the immediate
    /// priority ceiling. In all else it is inheritance.
    Ceiling,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 3] = [Protocol::None, Protocol::Inheritance, Protocol::Ceiling];

    /// Name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::None => "none",
            Protocol::Inheritance => "inheritance",
            Protocol::Ceiling => "ceiling",
        }
    }

    /// Returns the protocol with this name.
    pub fn from_name(name: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// Largest number of sections that one section may lie within. Bounds on waiting take time with its cube.
const MOST_NESTED: usize = 256;

/// Reason why a task cannot have its critical sections.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SectionProblem {
    /// There is no resource with this index.
    #[error("there is no resource {0}")]
    UnknownResource(ResourceId),
    /// The length is zero.
    #[error("the section has no length")]
    Empty,
    /// The section ends after the wcet.
    #[error("the section ends at {end}, after the wcet of {wcet}")]
    BeyondWcet {
        /// Work at its end.
        end: Time,
        /// Worst-case execution time of the task.
        wcet: Time,
    },
    /// Two sections overlap, and none of them is within the other.
    #[error(
        "the section from {at} to {end} overlaps the one from {other_at} to {other_end}; sections must be nested or apart"
    )]
    Overlap {
        /// Work at its beginning.
        at: Time,
        /// Work at its end.
        end: Time,
        /// Beginning of the other section.
        other_at: Time,
        /// End of the other section.
        other_end: Time,
    },
    /// A section locks a resource that the job holds already.
    #[error("the section locks {0:?} within a section that holds it already")]
    Again(String),
    /// The section lies within too many others.
    #[error("the section lies within more than {MOST_NESTED} others")]
    TooDeep,
    /// The ceiling protocol on several cores.
    #[error("the protocol ceiling is for one core, and there are {0}; inheritance works on several")]
    CeilingOnCores(usize),
}

impl Task {
    /// Returns what is wrong with the sections of the task, with the index of the section. `resources` are the names of
    /// the set's resources.
    pub fn section_problem(&self, resources: &[String]) -> Option<(usize, SectionProblem)> {
        for (index, section) in self.sections.iter().enumerate() {
            if section.resource.index() >= resources.len() {
                return Some((index, SectionProblem::UnknownResource(section.resource)));
            }
            if section.length == Time::ZERO {
                return Some((index, SectionProblem::Empty));
            }
            let end = Time(section.at.0.saturating_add(section.length.0));
            if end > self.wcet {
                return Some((index, SectionProblem::BeyondWcet { end, wcet: self.wcet }));
            }
            if self.sections.len() > MOST_NESTED && self.sections_around(index).nth(MOST_NESTED).is_some() {
                return Some((index, SectionProblem::TooDeep));
            }
            for other in &self.sections[..index] {
                let is_apart = section.end() <= other.at || other.end() <= section.at;
                if is_apart {
                    continue;
                }
                if !section.is_within(other) && !other.is_within(section) {
                    let (at, end, other_at, other_end) = (section.at, section.end(), other.at, other.end());
                    return Some((index, SectionProblem::Overlap { at, end, other_at, other_end }));
                }
                if section.resource == other.resource {
                    return Some((index, SectionProblem::Again(resources[section.resource].clone())));
                }
            }
        }
        None
    }

    /// Returns the places of the sections in which the job holds the resource of the section at `inner` beside another
    /// one: those that it is within. Of sections of the same work, the first is around the others.
    pub fn sections_around(&self, inner: usize) -> impl Iterator<Item = usize> {
        let section = &self.sections[inner];
        let is_around = move |(at, outer): &(usize, &Section)| {
            *at != inner && section.is_within(outer) && (*at < inner || !outer.is_within(section))
        };
        self.sections.iter().enumerate().filter(is_around).map(|(at, _)| at)
    }
}

impl System {
    /// Returns whether tasks share resources.
    #[inline]
    pub fn has_sections(&self) -> bool {
        !self.resources().is_empty()
    }

    /// Returns why the system cannot run under its protocol on its cores.
    pub fn protocol_problem(&self) -> Option<SectionProblem> {
        let is_wrong = self.has_sections() && self.protocol() == Protocol::Ceiling && self.cores() > 1;
        is_wrong.then(|| SectionProblem::CeilingOnCores(self.cores()))
    }

    /// Returns the first task with a critical section, if there is one.
    pub fn task_with_sections(&self) -> Option<&Task> {
        self.tasks().iter().find(|task| !task.sections.is_empty())
    }

    /// Returns two tasks of different groups that share a resource, with its name. `group` is the group of each task.
    pub fn shared_across(&self, group: &[usize]) -> Option<(&Task, &Task, &str)> {
        let mut first: Vec<Option<TaskId>> = vec![None; self.resources().len()];
        for (id, task) in self.task_ids().zip(self.tasks()) {
            for section in &task.sections {
                let user = *first.get_mut(section.resource.index())?.get_or_insert(id);
                if group.get(user.index()) != group.get(id.index()) {
                    return Some((&self.tasks()[user], task, &self.resources()[section.resource]));
                }
            }
        }
        None
    }
}

/// Returns the preemption level of each task: the higher, the sooner its jobs may preempt others.
///
/// Where every task states a priority, the levels are the priorities; otherwise the level of a task is the higher the
/// shorter its relative deadline is. Tasks that are equal in it have equal levels.
pub fn preemption_levels(tasks: &[Task]) -> Vec<i64> {
    let given: Option<Vec<i64>> = tasks.iter().map(|task| task.extra.get(Attribute::Priority)).collect();
    given.unwrap_or_else(|| tasks.iter().map(|task| -(task.deadline.0.min(i64::MAX as u64) as i64)).collect())
}

/// Returns the ceiling of each resource: the highest preemption level of the tasks that lock it.
pub fn ceilings(tasks: &[Task], resources: usize) -> Vec<i64> {
    let levels = preemption_levels(tasks);
    let mut ceilings = vec![i64::MIN; resources];
    for (task, level) in tasks.iter().zip(levels) {
        for section in &task.sections {
            if let Some(ceiling) = ceilings.get_mut(section.resource.index()) {
                *ceiling = level.max(*ceiling);
            }
        }
    }
    ceilings
}

/// A lock or an unlock in the course of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Work of the job at which it happens, at the wcet of the task.
    pub work: Time,
    /// The resource.
    pub resource: ResourceId,
    /// Whether the job locks it; otherwise it unlocks it.
    pub locks: bool,
}

impl Step {
    /// Returns the work at which the step happens in `job`, whose task has this wcet.
    pub fn work_in(&self, job: &Job, wcet: Time) -> Time {
        self.work_at(job.wcet, wcet)
    }

    /// Returns the work at which the step happens in a job with the wcet `of_job`, whose task has the wcet `of_task`.
    pub fn work_at(&self, of_job: Time, of_task: Time) -> Time {
        if of_job == of_task {
            return self.work;
        }
        Time((u128::from(self.work.0) * u128::from(of_job.0) / u128::from(of_task.0.max(1))) as u64)
    }
}

/// Returns the locks and unlocks of a task in the order of its work, of that many resources. At equal work, unlocks
/// come first, inner ones before outer ones, and then locks, outer ones before inner ones.
pub fn steps(task: &Task, resources: usize) -> Vec<Step> {
    let known = |section: &&Section| section.resource.index() < resources;
    let mut sections: Vec<&Section> = task.sections.iter().filter(known).collect();
    sections.sort_by_key(|section| (section.at, core::cmp::Reverse(section.length)));
    let (mut steps, mut open) = (Vec::new(), Vec::<&Section>::new());
    let unlock = |section: &Section| Step { work: section.end(), resource: section.resource, locks: false };
    for section in sections {
        while let Some(inner) = open.pop_if(|inner| inner.end() <= section.at) {
            steps.push(unlock(inner));
        }
        steps.push(Step { work: section.at, resource: section.resource, locks: true });
        open.push(section);
    }
    steps.extend(open.iter().rev().map(|section| unlock(section)));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_within_too_many_others_are_refused() {
        let nested = |depth: u64| {
            let section =
                |at: u64| Section { resource: ResourceId(at as u32), at: Time(at), length: Time(2 * (depth + 1 - at)) };
            Task::periodic("a", Time(10_000), Time(5_000)).with_sections((0..=depth).map(section).collect())
        };
        let resources: Vec<String> = (0..1_000).map(|place| format!("r{place}")).collect();
        assert_eq!(nested(256).section_problem(&resources), None);
        assert_eq!(nested(257).section_problem(&resources), Some((257, SectionProblem::TooDeep)));
    }
}
