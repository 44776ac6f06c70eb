//! Largest local remaining execution first: inside each interval between deadlines, the m jobs with most of their fluid share left
//! run; it is looked at again when one has none left or one must run without pause. Optimal at U ≤ m (implicit deadlines).
//!
//! `lre-tl` is its cheap variant: as optimal, but running jobs go on until they have to make room, which saves most preemptions.
//!
//! Reference: Cho, Ravindran and Jensen, RTSS 2006; Funk, LRE-TL: An Optimal Multiprocessor Algorithm for Sporadic Task Sets, Real-Time
//! Systems 46(3), 2010.
//! Ties: equal rests go to the earlier release, then the lower task index.

use std::cmp::Reverse;

use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, Tie, Time};

use crate::shared::fluid::Fluid;

/// Whether it must run without pause, whether it should keep running, what is left of its share, tie, id.
type Rank = (Reverse<bool>, Reverse<bool>, Reverse<Time>, Tie, JobId);

#[derive(Default)]
pub(crate) struct Llref {
    /// LRE-TL: do not preempt without need.
    lazy: bool,
    fluid: Fluid,
    /// Jobs with something left to do in this interval.
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
                wake = wake.min(view.now + *left + view.job(*id).overhead);
            } else if *left < rest {
                // It runs out of local laxity. One that already has and still waits cannot be helped in this interval.
                wake = wake.min(view.now + (rest - *left));
            }
        }
        assignment.wake_at(wake);
        self.chosen.clear();
        self.chosen.extend(self.order[..running].iter().map(|(.., id)| *id));
        assignment.place(view, &self.chosen);
    }

    /// Everybody gets a share of every interval, which is as many switches.
    fn most_ready(&self) -> usize {
        crate::shared::fluid::MOST_SHARED
    }
}
