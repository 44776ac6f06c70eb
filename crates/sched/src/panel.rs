//! The schedulers that the learned one takes advice from, asked together: each chooses what it would choose alone ([`crate::advisors`],
//! [`crate::planners`]), but what most of them need, the jobs in deadline order, is found once.

use crate::deadline_order::DeadlineOrder;
use crate::dios::Dios;
use crate::look_ahead::LookAhead;
use crate::mh_edf::MhEdf;
use crate::planners;
use crate::srpt::Srpt;
use temponet_task::{JobId, Scheduler, System, SystemView};

/// Keeps its memory between decisions.
pub struct Panel {
    order: DeadlineOrder,
    edf_skip: Vec<JobId>,
    srpt: Srpt,
    mh_edf: MhEdf,
    mh_edf_by_mean: MhEdf,
    dios: Dios,
    planners: [LookAhead; 3],
}

impl Default for Panel {
    fn default() -> Panel {
        Panel {
            order: DeadlineOrder::default(),
            edf_skip: Vec::new(),
            srpt: Srpt::skipping(),
            mh_edf: MhEdf::default(),
            mh_edf_by_mean: MhEdf::by_mean(),
            dios: Dios::default(),
            planners: planners(),
        }
    }
}

impl Panel {
    /// Prepares for a system.
    pub fn start(&mut self, system: &System) {
        self.order.reserve(system.tasks.len());
        self.edf_skip.clear();
        self.edf_skip.reserve(system.cores);
        let others: [&mut dyn Scheduler; 4] =
            [&mut self.srpt, &mut self.mh_edf, &mut self.mh_edf_by_mean, &mut self.dios];
        others.into_iter().for_each(|advisor| drop(advisor.start(system)));
        self.planners.iter_mut().for_each(|planner| drop(planner.start(system)));
    }

    /// Takes a decision's jobs; `ahead` if planners will be asked.
    pub fn look(&mut self, view: &SystemView<'_>, ahead: bool) {
        self.order.gather(view);
        if ahead {
            self.order.look_ahead(view);
        }
    }

    /// The jobs of the decision that was looked at, in deadline order.
    pub fn ready(&self) -> &[JobId] {
        self.order.ready()
    }

    /// The jobs that an advisor would run at the decision that was looked at, by its place among the [`crate::advisors`].
    pub fn advisor(&mut self, place: usize, view: &SystemView<'_>) -> &[JobId] {
        let order = self.order.ready();
        match place {
            0 => {
                let with = |late: bool| {
                    let is_it = move |id: &&JobId| view.job(**id).is_late_by_wcet(view.now) == late;
                    order.iter().filter(is_it).copied()
                };
                self.edf_skip.clear();
                self.edf_skip.extend(with(false).chain(with(true)).take(view.cores()));
                &self.edf_skip
            }
            1 => self.srpt.choose(view),
            2 => self.mh_edf.choose(view, order),
            3 => self.mh_edf_by_mean.choose(view, order),
            _ => self.dios.choose(view, order),
        }
    }

    /// The jobs that a planner would run, by its place among the [`crate::planners`].
    pub fn planner(&mut self, place: usize, view: &SystemView<'_>) -> &[JobId] {
        self.planners[place].choose(view, self.order.entries())
    }

    /// What the first planner, once it was asked, knows of the pressure on jobs; see [`LookAhead::pressures`].
    pub fn pressures(&self, view: &SystemView<'_>) -> impl Iterator<Item = (JobId, f64)> {
        self.planners[0].pressures(view)
    }
}
