//! Largest local remaining execution first: inside each interval between deadlines, the m jobs with most of their fluid
//! share left run. The choice is made again when a share is used up or a waiting job has to run without pause. Optimal
//! at U ≤ m (implicit deadlines).
//!
//! `lre-tl` is the cheaper variant: it is optimal as well, but running jobs continue until they have to make room,
//! which saves most preemptions.
//!
//! Reference: Cho, Ravindran and Jensen, RTSS 2006; Funk, LRE-TL: An Optimal Multiprocessor Algorithm for Sporadic Task
//! Sets, Real-Time Systems 46(3), 2010.
//! Ties: equal remaining shares go to the earlier release, then the lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, Tie, Time};

use crate::shared::fluid::Fluid;

/// Order of the jobs: whether the job must run without pause, whether it should continue to run, remaining share, tie,
/// id.
type Rank = (Reverse<bool>, Reverse<bool>, Reverse<Time>, Tie, JobId);

#[derive(Default)]
pub(crate) struct Llref {
    /// LRE-TL: preempts only when necessary.
    lazy: bool,
    fluid: Fluid,
    /// Jobs with work left in this interval.
    order: Vec<Rank>,
    chosen: Vec<JobId>,
}

impl Llref {
    pub fn lazy() -> Llref {
        Llref { lazy: true, ..Llref::default() }
    }
}

impl Scheduler for Llref {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.fluid.start(system);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if !self.fluid.update(view) {
            self.fluid.forget(view);
        }
        let rest = self.fluid.end - view.now;
        self.order.clear();
        for share in &self.fluid.shares {
            let left = self.fluid.left(share, view);
            if left > Time::ZERO {
                let job = view.job(share.id);
                let keeps = self.lazy && job.running;
                self.order.push((Reverse(left >= rest), Reverse(keeps), Reverse(left), job.tie(), share.id));
            }
        }
        let running = self.order.len().min(view.cores());
        if running < self.order.len() {
            self.order.select_nth_unstable(running);
        }
        self.order[..running].sort_unstable();
        let mut wake = self.fluid.end;
        for (place, (_, _, Reverse(left), _, id)) in self.order.iter().enumerate() {
            if place < running {
                wake = wake.min(view.date_after(view.job(*id), *left));
            } else if *left < rest {
                // The date at which the job has no local laxity left. A waiting job without local laxity cannot be
                // helped in this interval.
                wake = wake.min(view.now + (rest - *left));
            }
        }
        assignment.wake_at(wake);
        self.chosen.clear();
        self.chosen.extend(self.order[..running].iter().map(|(.., id)| *id));
        assignment.place(view, &self.chosen);
    }

    /// Every ready job gets a share of every interval, so the number of switches grows with the number of ready jobs.
    fn most_ready(&self) -> usize {
        crate::shared::fluid::MOST_SHARED
    }
}
