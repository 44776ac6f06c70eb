//! DP-Wrap, the simplest optimal multicore scheduler: the fluid shares of an interval are laid end to end and cut into
//! pieces that fill one core each (McNaughton's wrap-around). Meets every deadline at U ≤ m (implicit deadlines) with
//! at most m − 1 migrations per interval.
//!
//! Reference: Levin et al., DP-FAIR, ECRTS 2010; McNaughton, Management Science 6(1), 1959.
//! Ties: shares are laid in order of the task index. A core whose job completes early stays idle until its next piece.

use temponet_task::{Assignment, CoreId, JobId, NotApplicable, Scheduler, System, SystemView, Time};

use crate::shared::fluid::Fluid;

#[derive(Default)]
pub(crate) struct DpWrap {
    fluid: Fluid,
    /// Pieces of the current interval: core, job, start, end.
    pieces: Vec<(CoreId, JobId, Time, Time)>,
}

impl DpWrap {
    fn wrap(&mut self, cores: usize) {
        self.pieces.clear();
        let (begin, length) = (self.fluid.begin, self.fluid.end - self.fluid.begin);
        let (mut core, mut used) = (0, Time::ZERO);
        for share in &self.fluid.shares {
            let mut local = share.local;
            while local > Time::ZERO && core < cores {
                let piece = local.min(length - used);
                self.pieces.push((CoreId::new(core), share.id, begin + used, begin + used + piece));
                (local, used) = (local - piece, used + piece);
                if used == length {
                    (core, used) = (core + 1, Time::ZERO);
                }
            }
        }
    }
}

impl Scheduler for DpWrap {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.fluid.start(system);
        self.pieces.clear();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if self.fluid.update(view) {
            self.wrap(view.cores());
        } else if self.fluid.forget(view) {
            self.pieces.retain(|(_, id, ..)| self.fluid.shares.iter().any(|share| share.id == *id));
        }
        let mut wake = self.fluid.end;
        for (core, id, from, to) in &self.pieces {
            if (*from..*to).contains(&view.now) {
                assignment.run(*core, *id);
                wake = wake.min(*to);
            } else if *from > view.now {
                wake = wake.min(*from);
            }
        }
        assignment.wake_at(wake);
    }

    /// Every ready job gets a share of every interval, so the number of switches grows with the number of ready jobs.
    fn most_ready(&self) -> usize {
        crate::shared::fluid::MOST_SHARED
    }
}
