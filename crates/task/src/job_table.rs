//! The ids of the jobs that are active, shared by whatever runs a scheduler's decisions.
//!
//! An id is an index: whoever owns the table keeps what it knows of its jobs in vectors of its own, by id. After a job
//! has left, its id is not used again before the scheduler has been told, because events of the next decision still
//! name it. The *generation* of an id tells the jobs apart that had it one after another.

use alloc::vec::Vec;

use crate::JobId;

/// Place of a job that has left.
const GONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Index among the active jobs, or [`GONE`].
    place: u32,
    /// Number of jobs that had the id before.
    generation: u32,
}

/// Ids of active jobs, and of those that have left but are still known.
#[derive(Clone, Debug, Default)]
pub struct JobTable {
    active: Vec<JobId>,
    /// By id.
    slots: Vec<Slot>,
    /// Ids that may be used again.
    free: Vec<JobId>,
    /// Ids of jobs that left since the last decision.
    leaving: Vec<JobId>,
    /// Ids of jobs that left before the last decision and that a further reader has not been told of.
    unread: Vec<JobId>,
    has_reader: bool,
}

impl JobTable {
    /// Creates a table without jobs, with room for this many.
    pub fn with_capacity(jobs: usize) -> JobTable {
        JobTable {
            active: Vec::with_capacity(jobs),
            slots: Vec::with_capacity(jobs),
            free: Vec::with_capacity(jobs),
            leaving: Vec::with_capacity(jobs),
            ..JobTable::default()
        }
    }

    /// Creates a table of `ids` ids in which these jobs are active.
    pub fn with_active(ids: usize, active: &[JobId]) -> JobTable {
        let mut table = JobTable { active: active.to_vec(), ..JobTable::default() };
        table.slots.resize(ids, Slot { place: GONE, generation: 0 });
        for (place, id) in active.iter().enumerate() {
            table.slots[id.index()].place = place as u32;
        }
        table.free = (0..ids as u32).map(JobId).filter(|id| table.slots[id.index()].place == GONE).collect();
        table
    }

    /// Ids of the active jobs, in no particular order.
    #[inline]
    pub fn active(&self) -> &[JobId] {
        &self.active
    }

    /// Returns whether an active job has this id.
    #[inline]
    pub fn is_active(&self, id: JobId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.place != GONE)
    }

    /// Returns whether the job of this generation of the id is active.
    #[inline]
    pub fn is(&self, id: JobId, generation: u32) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| slot.generation == generation && slot.place != GONE)
    }

    /// Returns the generation of an id: the number of jobs that had it before its present or latest one.
    ///
    /// # Panics
    ///
    /// If no job has ever had the id.
    #[inline]
    pub fn generation(&self, id: JobId) -> u32 {
        self.slots[id.index()].generation
    }

    /// Makes a job active and returns its id: one that is free, or else the number of ids so far.
    #[inline]
    pub fn enter(&mut self) -> JobId {
        let place = self.active.len() as u32;
        let id = match self.free.pop() {
            Some(id) => {
                let slot = &mut self.slots[id.index()];
                *slot = Slot { place, generation: slot.generation.wrapping_add(1) };
                id
            }
            None => {
                self.slots.push(Slot { place, generation: 0 });
                JobId(self.slots.len() as u32 - 1)
            }
        };
        self.active.push(id);
        id
    }

    /// Takes an active job out. Its id is not used again before [`JobTable::forget_left`].
    #[inline]
    pub fn leave(&mut self, id: JobId) {
        let place = core::mem::replace(&mut self.slots[id.index()].place, GONE);
        self.active.swap_remove(place as usize);
        if let Some(moved) = self.active.get(place as usize) {
            self.slots[moved.index()].place = place;
        }
        self.leaving.push(id);
    }

    /// Frees the ids of the jobs that have left, after a decision at which the scheduler was told.
    #[inline]
    pub fn forget_left(&mut self) {
        if !self.leaving.is_empty() {
            let told = if self.has_reader { &mut self.unread } else { &mut self.free };
            told.append(&mut self.leaving);
        }
    }

    /// Keeps the ids of jobs that leave from being used again until a further reader has been told; see
    /// [`JobTable::reader_was_told`].
    pub fn add_reader(&mut self) {
        self.has_reader = true;
    }

    /// Frees the ids of the jobs that left before the last decision.
    pub fn reader_was_told(&mut self) {
        self.free.append(&mut self.unread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_used_again_after_the_scheduler_was_told() {
        let mut table = JobTable::default();
        let (a, b) = (table.enter(), table.enter());
        assert_eq!((a, b, table.active()), (JobId(0), JobId(1), &[a, b][..]));
        table.leave(a);
        assert!(!table.is_active(a) && table.is_active(b) && !table.is_active(JobId(7)));
        assert_eq!(
            (table.generation(a), table.enter()),
            (0, JobId(2)),
            "the id of a job that has just left is not free"
        );
        table.forget_left();
        assert_eq!((table.enter(), table.generation(a)), (a, 1));
        assert!(table.is(a, 1) && !table.is(a, 0) && table.is(b, 0));
        assert_eq!(table.active(), [b, JobId(2), a]);
    }

    #[test]
    fn ids_wait_for_a_further_reader() {
        let mut table = JobTable::with_active(3, &[JobId(1)]);
        table.add_reader();
        table.leave(JobId(1));
        table.forget_left();
        assert_eq!([table.enter(), table.enter(), table.enter()], [2, 0, 3].map(JobId));
        table.reader_was_told();
        assert_eq!(table.enter(), JobId(1));
    }
}
