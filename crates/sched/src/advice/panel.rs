//! The advisors and planners of the learned scheduler, asked together. Each one chooses what it would choose alone
//! ([`crate::advisors`], [`crate::planners`]), but the deadline order of the jobs, which most of them need, is computed
//! once. Members that differ only in their estimates of execution times choose the same where these times are known,
//! and are then asked once.

use temponet_task::{JobId, Scheduler, System, SystemView, TaskId};

use super::deadline_order::DeadlineOrder;
use super::future_arrivals::FutureArrivals;
use super::{Advisor, Planner, planners};
use crate::schedulers::dios::Dios;
use crate::schedulers::look_ahead::LookAhead;
use crate::schedulers::mh_edf::MhEdf;
use crate::schedulers::srpt::Srpt;

/// All advisors and planners. The buffers are reused between decisions.
pub struct Panel {
    order: DeadlineOrder,
    edf_skip: Vec<JobId>,
    srpt: Srpt,
    mh_edf: MhEdf,
    mh_edf_by_mean: MhEdf,
    dios: Dios,
    /// In the order of [`Planner::ALL`].
    planners: [LookAhead; Planner::ALL.len()],
    /// Whether [`Advisor::MhEdf`] and [`Planner::Moderate`] have been asked since the last look.
    has_asked: (bool, bool),
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
            has_asked: (false, false),
        }
    }
}

impl Panel {
    /// Prepares for a system.
    pub fn start(&mut self, system: &System) {
        self.order.reserve(system.tasks());
        self.edf_skip.clear();
        self.edf_skip.reserve(system.cores());
        let others: [&mut dyn Scheduler; 4] =
            [&mut self.srpt, &mut self.mh_edf, &mut self.mh_edf_by_mean, &mut self.dios];
        others.into_iter().for_each(|advisor| drop(advisor.start(system)));
        self.planners.iter_mut().for_each(|planner| drop(planner.start(system)));
    }

    /// Forgets the ready jobs of the last decision. Nothing that the panel says depends on them, but it takes longer where
    /// the next ones are others.
    pub fn forget(&mut self) {
        self.order.forget();
    }

    /// Takes the jobs of a decision; `ahead` if planners will be asked as well.
    pub fn look(&mut self, view: &SystemView<'_>, ahead: bool) {
        self.has_asked = (false, false);
        self.order.gather(view);
        if ahead {
            self.order.look_ahead(view);
        }
    }

    /// Next arrivals of the tasks whose arrivals can be foreseen, as of the last look ahead; [`NextArrivals`] finds them
    /// without one.
    ///
    /// [`NextArrivals`]: super::NextArrivals
    pub fn arrivals(&self) -> impl Iterator<Item = (TaskId, FutureArrivals)> {
        self.order.arrivals()
    }

    /// The ready jobs of the last [`Panel::look`], in deadline order.
    pub fn ready(&self) -> &[JobId] {
        self.order.ready()
    }

    /// Returns the jobs that an advisor would run, the same as [`Advisor::scheduler`] alone. Call [`Panel::look`]
    /// before.
    pub fn advisor(&mut self, advisor: Advisor, view: &SystemView<'_>) -> &[JobId] {
        let order = self.order.ready();
        match advisor {
            Advisor::EdfSkip => {
                let with = |late: bool| {
                    let is_it = move |id: &&JobId| view.job(**id).is_late_by_wcet(view.now) == late;
                    order.iter().filter(is_it).copied()
                };
                self.edf_skip.clear();
                self.edf_skip.extend(with(false).chain(with(true)).take(view.system.most_offered()));
                &self.edf_skip
            }
            Advisor::Srpt => self.srpt.choose(view),
            Advisor::MhEdf => {
                self.has_asked.0 = true;
                self.mh_edf.choose(view, order)
            }
            Advisor::MhEdfByMean if self.has_asked.0 && self.order.knows_ready() => self.mh_edf.chosen(),
            Advisor::MhEdfByMean => self.mh_edf_by_mean.choose(view, order),
            Advisor::Dios => self.dios.choose(view, order),
        }
    }

    /// Returns the jobs that a planner would run. Call [`Panel::look`] with `ahead` before.
    pub fn planner(&mut self, planner: Planner, view: &SystemView<'_>) -> &[JobId] {
        const { assert!(Planner::Moderate.settings().1 == Planner::Bold.settings().1) };
        if planner == Planner::Bold && self.has_asked.1 && self.order.knows_entries() {
            return self.planners[Planner::Moderate as usize].chosen();
        }
        self.has_asked.1 |= planner == Planner::Moderate;
        self.planners[planner as usize].choose(view, self.order.entries())
    }

    /// Pressure on the ready jobs as [`Planner::Cautious`] sees it, once it has been asked; see
    /// [`LookAhead::pressures`].
    pub fn pressures(&self, view: &SystemView<'_>) -> impl Iterator<Item = (JobId, f64)> {
        self.planners[Planner::Cautious as usize].pressures(view)
    }
}
