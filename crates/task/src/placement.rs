//! Placement where it matters which core a job gets: cores of different speeds, and tasks that may use only some of
//! them.
//!
//! The rule, in this order, with jobs sorted best first:
//!
//! 1. A job that holds its core stays.
//! 2. A job is chosen if it can have a core beside all jobs chosen before it, which move to other cores if need be
//!    (*strong* affinity: Cerqueira, Gujarati and Brandenburg, RTSS 2014). A lower job never keeps a higher one from a
//!    core.
//! 3. Each chosen job in turn gets the highest speed that leaves every other chosen job a core. Jobs before it keep
//!    their speeds, though not their cores.
//! 4. With all speeds fixed, each running job in turn stays on its core if the others can keep their speeds.
//! 5. The others take the lowest cores, each in turn.
//!
//! Without bound tasks the n-th job gets the n-th fastest core, so that a decision takes little more than sorting the
//! cores. Otherwise each step fixes part of a matching of jobs and cores and moves the rest along alternating paths; a
//! decision then takes about the square of the number of cores, the fourth power at worst. On a plain machine none of
//! this is done.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use crate::{Assignment, CoreId, JobId, Speed, SystemView, TaskId};

/// What a chosen job may still be matched with.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// Any core that its task may use.
    Any,
    /// A core of this speed.
    Speed(Speed),
    /// This core.
    Core(CoreId),
}

/// A chosen job and its core so far.
#[derive(Clone, Copy, Debug)]
struct Match {
    id: JobId,
    /// Place of its core among the free cores.
    slot: usize,
    limit: Limit,
}

/// Matching of jobs and cores. The buffers are reused between decisions.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    /// Cores that no job holds, ascending.
    free: Vec<CoreId>,
    /// Chosen jobs, best first.
    jobs: Vec<Match>,
    /// Place of the job on each free core.
    on: Vec<Option<usize>>,
    /// Free cores that the search for a path has been at.
    visited: Vec<bool>,
    /// Tasks of which no further job finds a core.
    full: Vec<TaskId>,
    /// Speeds of the free cores, descending, and the number of cores of that speed that no job is restricted to yet.
    speeds: Vec<(Speed, usize)>,
}

impl Assignment {
    /// Puts the best jobs of `order` on cores of the range by the rule of this module.
    #[cold]
    #[inline(never)]
    pub(crate) fn place_by_core(&mut self, view: &SystemView<'_>, order: &[JobId], cores: Range<usize>) {
        self.keep_held(view, cores.clone());
        let mut matching = core::mem::take(&mut self.matching);
        if view.system.machine().is_bound() {
            matching.choose(view, order, cores);
            matching.prefer_fast(view);
            matching.prefer_own(view);
            matching.prefer_low(view);
        } else {
            matching.rank(view, order, cores);
        }
        for matched in &matching.jobs {
            self.run(matching.free[matched.slot], matched.id);
        }
        self.matching = matching;
    }
}

impl Matching {
    /// Forgets the last decision. Cores that no job holds are free.
    fn clear(&mut self, view: &SystemView<'_>, cores: Range<usize>) {
        self.free.clear();
        self.free.extend(cores.map(CoreId::new).filter(|core| !view.is_held(*core)));
        self.jobs.clear();
        self.full.clear();
        self.on.clear();
        self.on.resize(self.free.len(), None);
    }

    /// Matches the jobs with the fastest cores where every job may use every core.
    fn rank(&mut self, view: &SystemView<'_>, order: &[JobId], cores: Range<usize>) {
        self.clear(view, cores);
        let speed = |core: CoreId| view.system.machine().speed(core);
        self.free.sort_by_key(|core| (Reverse(speed(*core)), *core));
        let unheld = order.iter().filter(|id| !view.job(**id).held).take(self.free.len());
        self.jobs.extend(unheld.map(|id| Match { id: *id, slot: usize::MAX, limit: Limit::Any }));
        let mut first = 0;
        for alike in self.free.chunk_by(|a, b| speed(*a) == speed(*b)) {
            let end = (first + alike.len()).min(self.jobs.len());
            let jobs = self.jobs.get_mut(first..end).unwrap_or_default();
            let on = &mut self.on[first..first + alike.len()];
            for (place, matched) in jobs.iter_mut().enumerate() {
                let job = view.job(matched.id);
                let own = job.last_core.filter(|_| job.running);
                if let Some(slot) = own.and_then(|core| alike.binary_search(&core).ok()) {
                    (matched.slot, on[slot]) = (first + slot, Some(first + place));
                }
            }
            let mut open = (0..alike.len()).filter(|slot| on[*slot].is_none());
            for matched in jobs.iter_mut().filter(|matched| matched.slot == usize::MAX) {
                // There are at most as many jobs as cores, so one is open.
                matched.slot = first + open.next().unwrap_or_default();
            }
            first += alike.len();
        }
    }

    /// Chooses the best jobs that can have a core together.
    fn choose(&mut self, view: &SystemView<'_>, order: &[JobId], cores: Range<usize>) {
        self.clear(view, cores);
        for id in order {
            if self.jobs.len() == self.free.len() {
                break;
            }
            let job = view.job(*id);
            if job.held || self.full.contains(&job.task) {
                continue;
            }
            self.jobs.push(Match { id: *id, slot: usize::MAX, limit: Limit::Any });
            if !self.find_core(view, self.jobs.len() - 1) {
                self.jobs.pop();
                self.full.push(job.task);
            }
        }
    }

    /// Gives each job in turn the highest speed that leaves every other one a core.
    fn prefer_fast(&mut self, view: &SystemView<'_>) {
        if !view.system.machine().is_unequal() {
            return;
        }
        let machine = view.system.machine();
        let mut speeds = core::mem::take(&mut self.speeds);
        speeds.clear();
        speeds.extend(self.free.iter().map(|core| (machine.speed(*core), 1)));
        speeds.sort_unstable_by(|a, b| b.cmp(a));
        speeds.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += usize::from(is_same);
            is_same
        });
        for job in 0..self.jobs.len() {
            let mut open = speeds.iter_mut().filter(|(_, room)| *room > 0);
            // The speed that it has is possible, so one is found.
            if let Some((_, room)) = open.find(|(speed, _)| self.restrict(view, job, Limit::Speed(*speed))) {
                *room -= 1;
            }
        }
        self.speeds = speeds;
    }

    /// Lets running jobs stay on their cores.
    fn prefer_own(&mut self, view: &SystemView<'_>) {
        for place in 0..self.jobs.len() {
            let job = view.job(self.jobs[place].id);
            let own = job.last_core.filter(|_| job.running);
            if let Some(core) = own.filter(|core| self.free.binary_search(core).is_ok()) {
                self.restrict(view, place, Limit::Core(core));
            }
        }
    }

    /// Gives the jobs that move the lowest cores.
    fn prefer_low(&mut self, view: &SystemView<'_>) {
        for place in 0..self.jobs.len() {
            if !matches!(self.jobs[place].limit, Limit::Core(_)) {
                let _ = (0..self.free.len()).any(|slot| self.restrict(view, place, Limit::Core(self.free[slot])));
            }
        }
    }

    /// Restricts a job further, if every job can keep a core then. Returns whether.
    fn restrict(&mut self, view: &SystemView<'_>, place: usize, limit: Limit) -> bool {
        let before = self.jobs[place];
        if let (Limit::Speed(speed), Limit::Core(core)) = (before.limit, limit)
            && view.system.machine().speed(core) != speed
        {
            return false;
        }
        if let Limit::Core(core) = limit
            && let Ok(slot) = self.free.binary_search(&core)
            && self.on[slot].is_some_and(|other| matches!(self.jobs[other].limit, Limit::Core(_)))
        {
            return false;
        }
        self.jobs[place].limit = limit;
        if self.allows(view, place, before.slot) {
            return true;
        }
        self.on[before.slot] = None;
        if self.find_core(view, place) {
            return true;
        }
        self.jobs[place] = before;
        self.on[before.slot] = Some(place);
        false
    }

    fn allows(&self, view: &SystemView<'_>, place: usize, slot: usize) -> bool {
        let (Match { id, limit, .. }, core) = (self.jobs[place], self.free[slot]);
        let is_within = match limit {
            Limit::Any => true,
            Limit::Speed(speed) => view.system.machine().speed(core) == speed,
            Limit::Core(own) => own == core,
        };
        is_within && view.may_run(view.job(id), core)
    }

    /// Finds a core for a job without one, moving others to other cores if need be. Returns whether there is one;
    /// without, nothing has changed.
    fn find_core(&mut self, view: &SystemView<'_>, place: usize) -> bool {
        self.visited.clear();
        self.visited.resize(self.free.len(), false);
        self.search(view, place)
    }

    fn search(&mut self, view: &SystemView<'_>, place: usize) -> bool {
        let is_open =
            |matching: &Matching, slot: usize| matching.on[slot].is_none() && matching.allows(view, place, slot);
        if let Some(slot) = (0..self.free.len()).find(|slot| is_open(self, *slot)) {
            self.take(place, slot);
            return true;
        }
        for slot in 0..self.free.len() {
            if self.visited[slot] || !self.allows(view, place, slot) {
                continue;
            }
            self.visited[slot] = true;
            if let Some(other) = self.on[slot]
                && self.search(view, other)
            {
                self.take(place, slot);
                return true;
            }
        }
        false
    }

    fn take(&mut self, place: usize, slot: usize) {
        self.jobs[place].slot = slot;
        self.on[slot] = Some(place);
    }
}
