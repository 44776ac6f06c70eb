//! Early rejection by a predicted load: a job is admitted when it comes if it would be on time behind all admitted ones,
//! each taking a quantile of its length. Admitted jobs run in the order in which they came.
//!
//! Lengths are those of estimates, of completed jobs of the same task, or of the bounds; see [`Lengths`].
//!
//! Reference: Qin et al., "Mooncake: trading more storage for less computation" (FAST 2025), section on overload:
//! early rejection based on prediction. There, the load of the second of two stages is predicted for the time at which
//! a request will have passed the first, with one length for all requests; here there is one stage, and each job has
//! the length that is known of it.
//! Ties: jobs that come together are judged in the order of their tasks. A job that was rejected never runs. Where late
//! jobs continue, it would stay for ever, so nothing is rejected there.

use temponet_task::{Assignment, Event, JobId, NotApplicable, OnMiss, Scheduler, System, SystemView, Time};

use crate::shared::lengths::Lengths;
use crate::shared::planned_jobs::add;
use crate::shared::ranked::Ranked;

pub(crate) struct EarlyReject {
    lengths: Lengths,
    admitted: Ranked<()>,
    /// Dates at which the cores become free, ascending.
    free_at: Vec<Time>,
}

impl EarlyReject {
    pub fn new(quantile: f64) -> EarlyReject {
        EarlyReject { lengths: Lengths::at(quantile), admitted: Ranked::new(), free_at: Vec::new() }
    }

    /// Whether a job is on time behind all that are admitted.
    fn is_on_time(&mut self, view: &SystemView<'_>, id: JobId) -> bool {
        self.free_at.clear();
        self.free_at.resize(view.cores(), view.now);
        for (.., ahead) in self.admitted.iter() {
            add(&mut self.free_at, self.lengths.time_to_finish(view.job(ahead)));
        }
        let job = view.job(id);
        add(&mut self.free_at, self.lengths.time_to_finish(job)) <= job.deadline
    }
}

impl Scheduler for EarlyReject {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.lengths.start(system);
        self.admitted.clear();
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.lengths.follow(view);
        // Jobs that leave make room for those that come at the same time.
        for event in view.events {
            if let Event::Completed(id) | Event::Aborted(id) = *event {
                self.admitted.remove(view.job(id), id);
            }
        }
        for event in view.events {
            match *event {
                Event::Released(id) if view.system.on_miss() == OnMiss::Continue || self.is_on_time(view, id) => {
                    self.admitted.insert((), view.job(id), id);
                }
                // It came and left at the same time.
                Event::Completed(id) | Event::Aborted(id) => self.admitted.remove(view.job(id), id),
                _ => {}
            }
        }
        self.admitted.assign(view, assignment);
    }
}
