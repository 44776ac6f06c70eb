//! Stretches: how long a job keeps its core although the shield wants it back.
//!
//! A job keeps its core while its task does not let it be preempted, and, where guaranteed tasks use a resource, from
//! the moment it asks for that resource to the moment it returns it. The shield itself sees to the latter: such jobs
//! wait on their cores, first come first served, and are not preempted inside ([`super::queue`]). So at most one job of
//! every other core is ahead of a job that waits, and the wait has a bound.
//!
//! No bound is claimed for a resource that is locked within the section of another one, or that a task uses whose jobs
//! hold their cores anyway: their waits add up in ways that this bound does not count.

use temponet_task::{Arrival, CoreId, ResourceId, Section, Speed, System, Task, Time};

use super::no_guarantee::WhyNot;

/// Bounds on the stretches of all tasks of a system.
pub(super) struct Stretches<'a> {
    system: &'a System,
    /// For each resource, why its sections have no bound.
    problems: Vec<Option<WhyNot>>,
    /// For each resource, the longest work of a section.
    longest: Vec<Time>,
    /// For each resource, the longest wait for it.
    waits: Vec<Time>,
}

impl<'a> Stretches<'a> {
    pub fn of(system: &'a System) -> Stretches<'a> {
        let resources = system.resources().len();
        let mut found = Stretches {
            system,
            problems: vec![None; resources],
            longest: vec![Time::ZERO; resources],
            waits: vec![Time::ZERO; resources],
        };
        for task in system.tasks() {
            let known = task.sections.iter().enumerate().filter(|(_, section)| section.resource.index() < resources);
            for (at, section) in known {
                let is_apart = |(other, around): (usize, &Section)| {
                    other == at || around.end() <= section.at || section.end() <= around.at
                };
                let problem = match task.preemption.is_limited() {
                    true => Some(WhyNot::SharesWithLimited),
                    false if !task.sections.iter().enumerate().all(is_apart) => Some(WhyNot::SharesNested),
                    false => None,
                };
                let known = &mut found.problems[section.resource];
                *known = known.take().or(problem);
                let longest = &mut found.longest[section.resource];
                *longest = (*longest).max(longest_work(system, task, section.length));
            }
        }
        for resource in ResourceId::all(resources) {
            // One section of every other core, at its longest there.
            let of_core = |core: CoreId| {
                let users = system.tasks().iter().filter(|task| task.cores.contains(core));
                let sections = users.flat_map(|task| task.sections.iter().map(move |section| (task, section)));
                let lengths = sections.filter(|(_, section)| section.resource == resource);
                let longest = lengths.map(|(task, section)| longest_work(system, task, section.length)).max();
                longest.map_or(Time::ZERO, |work| system.machine().speed(core).time_for(work) + found.entry())
            };
            let (mut sum, mut least) = (Time::ZERO, Time::NEVER);
            for time in system.core_ids().map(of_core) {
                (sum, least) = (Time(sum.0.saturating_add(time.0)), least.min(time));
            }
            found.waits[resource] = sum.saturating_sub(least);
        }
        found
    }

    /// Time that a job pays for its dispatch before its own work goes on.
    fn entry(&self) -> Time {
        let costs = self.system.costs();
        costs.context_switch + costs.migration
    }

    /// Returns why the waits of a task have no bound.
    pub fn problem(&self, task: &Task) -> Option<WhyNot> {
        task.sections.iter().find_map(|section| self.problems.get(section.resource.index())?.clone())
    }

    /// Returns the first resource without a bound.
    pub fn unbounded(&self) -> Option<ResourceId> {
        ResourceId::all(self.problems.len()).find(|resource| self.problems[*resource].is_some())
    }

    /// Longest work of a section of a resource.
    pub fn longest_section(&self, resource: ResourceId) -> Time {
        self.longest[resource]
    }

    /// Longest time for which a job waits for a resource once it has asked for it.
    pub fn wait(&self, resource: ResourceId) -> Time {
        self.waits[resource]
    }

    /// Longest time for which a job of the task waits, for all of its sections together.
    pub fn waits_of(&self, task: &Task) -> Time {
        let waits = task.sections.iter().filter_map(|section| self.waits.get(section.resource.index()));
        Time(waits.fold(0, |sum: u64, wait| sum.saturating_add(wait.0)))
    }

    /// Longest stretch of a job of a task at this speed; zero if it can always be preempted. `region` is the longest
    /// work for which the task holds its core, and only resources that the shield rules count.
    pub fn longest(&self, task: &Task, region: Time, speed: Speed, is_ruled: impl Fn(ResourceId) -> bool) -> Time {
        let ruled = task.sections.iter().filter(|section| is_ruled(section.resource));
        let sections = ruled.map(|section| {
            let work = longest_work(self.system, task, section.length);
            Time(self.waits[section.resource].0.saturating_add(speed.time_for(work).0))
        });
        let longest = sections.max().unwrap_or_default().max(speed.time_for(region));
        if longest > Time::ZERO { Time(longest.0.saturating_add(self.entry().0)) } else { longest }
    }
}

/// Longest work that becomes of `work` in a job of the task: sections grow with the wcet of the job, in modes and lists.
fn longest_work(system: &System, task: &Task, work: Time) -> Time {
    let listed = match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| job.wcet).max().unwrap_or_default(),
        _ => Time::ZERO,
    };
    let scaled = u128::from(work.0) * u128::from(listed.max(task.wcet).0);
    let longest = scaled.div_ceil(u128::from(task.wcet.0.max(1)));
    if system.most_work() <= 1.0 {
        return Time(longest as u64);
    }
    // The wcet of a job in a mode is a rounded one.
    Time(((longest as f64 * system.most_work()).ceil() as u64 + 1).min(Time::MAX_INPUT.0))
}

/// Longest time for which a job of the task holds its core, overruns included; zero if it can be preempted at any time.
pub(super) fn longest_region(task: &Task) -> Time {
    let longest = |wcet: Time| task.preemption.longest_region(wcet.max(task.wcet_high.unwrap_or_default()));
    match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| longest(job.wcet)).max().unwrap_or_default(),
        _ => longest(task.wcet),
    }
}
