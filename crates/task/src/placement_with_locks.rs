//! Placement of jobs that share resources: a job that waits is replaced by the one that it waits for, or passed over.
//!
//! Jobs are taken best first until the cores are full. A job that can run takes a core. For one that waits, the job at
//! the end of what it waits for does, unless it has a core already; that is inheritance for any order of jobs, be it of
//! deadlines, priorities or learned. Without inheritance, or where jobs wait for each other in a circle, the job is
//! passed over. Of several jobs that want the same free resource, only the best gets a core, or the one that keeps its
//! core in any case: it will lock the resource.

use core::ops::Range;

use crate::{Assignment, CoreId, JobId, Locks, SystemView};

impl Assignment {
    /// Puts the best jobs of `order` that can run on cores of the range, by the rule of this module.
    #[cold]
    #[inline(never)]
    pub(crate) fn place_sharing(&mut self, view: &SystemView<'_>, locks: &Locks, order: &[JobId], cores: Range<usize>) {
        let mut runners = core::mem::take(&mut self.runners);
        runners.clear();
        // Where it matters which core a job gets, the first jobs need not be the ones that get cores.
        let most = if view.system.machine().is_plain() { cores.len() } else { usize::MAX };
        let held = cores.clone().filter(|core| view.is_held(CoreId::new(*core))).count();
        let mut taken = held;
        for id in order {
            if taken >= most || taken >= view.active.len() {
                break;
            }
            if locks.is_blocked(*id) && taken < cores.len() {
                self.pass_over(*id);
            }
            let Some(runner) = locks.runs_as(*id).filter(|runner| !runners.contains(runner)) else { continue };
            let wanted_by = |id: JobId| locks.wanted_by(id, view.job(id));
            let wants_same = |other: &JobId| {
                *other != runner && wanted_by(*other).any(|one| wanted_by(runner).any(|resource| resource == one))
            };
            let held = || view.running.iter().flatten().filter(|id| view.job(**id).held);
            if locks.wants_any(runner) && runners.iter().chain(held()).any(wants_same) {
                continue;
            }
            runners.push(runner);
            taken += usize::from(!view.job(runner).held);
        }
        self.place_independent(view, &runners, cores);
        self.runners = runners;
    }
}
