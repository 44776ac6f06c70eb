//! Critical sections in the naive simulator: who holds what, who waits, and since when.

use temponet_sim::{End, Stretch};
use temponet_task::{Attribute, Protocol, ResourceId, Section, Task, TaskId, TaskSet, Time};

use super::{Naive, NaiveJob};

/// State of a section that the job has left.
pub const DONE: i64 = i64::MAX;

impl NaiveJob {
    fn holds<'a>(&'a self, set: &'a TaskSet) -> impl Iterator<Item = usize> + 'a {
        let inside = self.inside.iter().zip(&set.tasks()[self.task].sections);
        inside
            .filter(|(state, _)| state.is_some_and(|since| since != DONE))
            .map(|(_, section)| section.resource.index())
    }

    /// The sections that the job has to enter, all at once, before it can go on. Outer ones come first; those behind the
    /// end of another one are entered later.
    fn wants(&self, set: &TaskSet) -> Vec<usize> {
        let sections = &set.tasks()[self.task].sections;
        let is_next = |at: &usize| self.inside[*at].is_none() && sections[*at].at.0 as i64 <= self.executed();
        let mut wanted: Vec<usize> = (0..sections.len()).filter(is_next).collect();
        wanted.sort_by_key(|at| (sections[*at].at, std::cmp::Reverse(sections[*at].length), *at));
        let is_open = |at: &usize| self.inside[*at].is_some_and(|since| since != DONE);
        let held: Vec<usize> = (0..sections.len()).filter(is_open).collect();
        let count = (1..wanted.len()).find(|next| {
            let ends = held.iter().chain(&wanted[..*next]).map(|at| sections[*at].end());
            ends.min().is_some_and(|end| end <= sections[wanted[*next]].at)
        });
        wanted.truncate(count.unwrap_or(wanted.len()));
        wanted
    }
}

impl Naive<'_> {
    fn stretch(&self, job: &NaiveJob, resource: usize, start: i64) -> Stretch {
        let (resource, task, number) = (resource as u32, job.task as u32, job.number);
        Stretch {
            resource: ResourceId(resource),
            task: TaskId(task),
            number,
            start: Time(start as u64),
            end: Time(self.now as u64),
        }
    }

    /// The other job that holds a resource.
    fn holder(&self, resource: usize, but: usize) -> Option<usize> {
        let others = (0..self.jobs.len()).filter(|other| *other != but);
        others.into_iter().find(|other| self.jobs[*other].holds(self.set).any(|held| held == resource))
    }

    pub(super) fn wanted_resources(&self, index: usize) -> Vec<usize> {
        let job = &self.jobs[index];
        let sections = &self.set.tasks()[job.task].sections;
        job.wants(self.set).into_iter().map(|section| sections[section].resource.index()).collect()
    }

    /// What keeps a job from running: the resource and the index of the job that holds it.
    pub(super) fn blocker(&self, index: usize) -> Option<(usize, usize)> {
        let job = &self.jobs[index];
        for resource in self.wanted_resources(index) {
            if let Some(holder) = self.holder(resource, index) {
                return Some((resource, holder));
            }
        }
        if self.set.protocol() != Protocol::Ceiling || job.last_core.is_some() {
            return None;
        }
        // Every task of these sets has a priority, which is its preemption level.
        let level = |task: &Task| task.extra.get(Attribute::Priority).unwrap();
        let ceiling = |resource: usize| {
            let users = self.set.tasks().iter();
            users
                .filter(|task| task.sections.iter().any(|own| own.resource == ResourceId::new(resource)))
                .map(level)
                .max()
                .unwrap()
        };
        let above = (0..self.set.resources().len()).filter(|resource| self.holder(*resource, index).is_some());
        let above = above.filter(|resource| ceiling(*resource) >= level(&self.set.tasks()[job.task]));
        let highest = above.min_by_key(|resource| (-ceiling(*resource), *resource))?;
        Some((highest, self.holder(highest, index).unwrap()))
    }

    /// Ends the sections and the wait of a job that leaves.
    pub(super) fn end_sections(&mut self, job: &NaiveJob) {
        for (state, section) in job.inside.iter().zip(&self.set.tasks()[job.task].sections) {
            if let Some(since) = state.filter(|since| *since != DONE) {
                self.outcome.holds.push(self.stretch(job, section.resource.index(), since));
            }
        }
        if let Some((since, resource)) = job.waits {
            self.outcome.waits.push(self.stretch(job, resource, since));
        }
    }

    /// Ends the waits of jobs that can run. Returns whether there is one.
    pub(super) fn end_waits(&mut self) -> bool {
        let mut is_freed = false;
        for index in 0..self.jobs.len() {
            let is_blocked = self.blocker(index).is_some();
            let was_blocked = std::mem::replace(&mut self.jobs[index].was_blocked, is_blocked);
            is_freed |= was_blocked && !is_blocked;
            if !is_blocked && let Some((since, resource)) = self.jobs[index].waits.take() {
                self.outcome.waits.push(self.stretch(&self.jobs[index], resource, since));
            }
        }
        is_freed
    }

    /// Takes jobs off their cores that want what others hold. Returns whether there is one.
    pub(super) fn stop(&mut self) -> bool {
        let mut stopped: Vec<(usize, u64)> = Vec::new();
        for index in 0..self.jobs.len() {
            let blocker = self.blocker(index);
            if let (Some(_), Some((resource, _))) = (self.jobs[index].core, blocker) {
                let job = &mut self.jobs[index];
                (job.core, job.held) = (None, false);
                job.waits.get_or_insert((self.now, resource));
                stopped.push(job.id());
            }
        }
        for id in &stopped {
            let index = self.jobs.iter().position(|job| job.id() == *id).unwrap();
            if self.jobs[index].leaves {
                self.leave(index, End::Aborted);
                self.end_waits();
            }
        }
        !stopped.is_empty()
    }

    /// Ends the sections of a job whose work is done.
    pub(super) fn unlock(&mut self, index: usize) {
        let job = self.jobs[index].clone();
        let sections = &self.set.tasks()[job.task].sections;
        for (at, section) in sections.iter().enumerate() {
            // A fast core can do more than a section in a tick. It comes to all of them nevertheless, one after
            // another.
            let is_skipped = |(other, inner): (usize, &Section)| {
                job.inside[other].is_none() && section.at <= inner.at && inner.end() <= section.end()
            };
            if sections.iter().enumerate().any(is_skipped) {
                continue;
            }
            let is_over = section.end().0 as i64 <= job.executed();
            if let Some(since) = job.inside[at].filter(|since| *since != DONE && is_over) {
                self.outcome.holds.push(self.stretch(&job, section.resource.index(), since));
                self.jobs[index].inside[at] = Some(DONE);
            }
        }
    }

    /// Lets running jobs lock, core by core. Returns whether the scheduler has to decide again.
    pub(super) fn lock(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.jobs.len()).filter(|index| self.jobs[*index].core.is_some()).collect();
        order.sort_by_key(|index| self.jobs[*index].core);
        for index in order {
            loop {
                let wanted = self.jobs[index].wants(self.set);
                let is_taken = |resource: &usize| self.holder(*resource, index).is_some();
                if wanted.is_empty() || self.wanted_resources(index).iter().any(is_taken) {
                    break;
                }
                for section in wanted {
                    self.jobs[index].inside[section] = Some(self.now);
                }
                self.unlock(index);
            }
        }
        let freed = self.end_waits();
        self.stop() || freed
    }
}
