//! Rejects jobs that come while all cores are taken; those that are admitted run in the order in which they came. A
//! queue admits some more, which wait.
//!
//! Reference: a limit of concurrency that sheds load, the usual stack of RPC servers (tower's `ConcurrencyLimit` with
//! `LoadShed`); the Erlang loss system M/G/m/m, with a queue M/G/m/m+k.
//! Ties: jobs that come together are admitted in the order of their tasks. A job that was rejected never runs. Where
//! late jobs continue, it would stay for ever, so nothing is rejected there.

use temponet_task::{Assignment, Event, NotApplicable, OnMiss, Scheduler, System, SystemView};

use crate::shared::ranked::Ranked;

pub(crate) struct RejectWhenBusy {
    /// Number of admitted jobs that may wait.
    queue: usize,
    admitted: Ranked<()>,
}

impl RejectWhenBusy {
    pub fn new(queue: usize) -> RejectWhenBusy {
        RejectWhenBusy { queue, admitted: Ranked::new() }
    }
}

impl Scheduler for RejectWhenBusy {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        self.admitted.clear();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let most = match view.system.on_miss() {
            OnMiss::Abort => view.cores().saturating_add(self.queue),
            OnMiss::Continue => usize::MAX,
        };
        // Jobs that leave make room for those that come at the same time.
        for event in view.events {
            if let Event::Completed(id) | Event::Aborted(id) = *event {
                self.admitted.remove(view.job(id), id);
            }
        }
        for event in view.events {
            match *event {
                Event::Released(id) if self.admitted.len() < most => self.admitted.insert((), view.job(id), id),
                // It came and left at the same time.
                Event::Completed(id) | Event::Aborted(id) => self.admitted.remove(view.job(id), id),
                _ => {}
            }
        }
        self.admitted.assign(view, assignment);
    }
}
