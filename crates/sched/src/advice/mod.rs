//! Advice: what simple schedulers would do at a decision, as an input of the learned scheduler.
//!
//! [`Advisor`] and [`Planner`] name the schedulers that give advice. [`Panel`] asks them together, which costs less
//! than asking each one alone.

pub(crate) mod deadline_order;
mod forecast;
mod future_arrivals;
mod outcomes;
mod panel;
mod repair;

use temponet_task::Scheduler;

use crate::schedulers::dios::Dios;
use crate::schedulers::edf_skip::EdfSkip;
use crate::schedulers::look_ahead::LookAhead;
use crate::schedulers::mh_edf::MhEdf;
use crate::schedulers::srpt::Srpt;

pub use forecast::NextArrivals;
pub use future_arrivals::{ArrivalRule, FutureArrivals, most_coming};
pub use outcomes::Outcomes;
pub use panel::Panel;

/// A simple scheduler that gives advice. It looks only at the ready jobs, so it can be asked at any decision.
///
/// The discriminant is the bit of the advisor in a job's advice token. Trained weights rely on it: new advisors are
/// added at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advisor {
    /// EDF that runs jobs late by wcet last.
    EdfSkip,
    /// Shortest remaining processing time first, impossible jobs last.
    Srpt,
    /// EDF over the largest set of ready jobs that fits.
    MhEdf,
    /// Like [`Advisor::MhEdf`], with mean execution times instead of wcets.
    MhEdfByMean,
    /// Admission by importance: criticality, then value density.
    Dios,
}

impl Advisor {
    /// Every advisor, by ascending discriminant.
    pub const ALL: [Advisor; 5] =
        [Advisor::EdfSkip, Advisor::Srpt, Advisor::MhEdf, Advisor::MhEdfByMean, Advisor::Dios];

    /// The advisor as a scheduler of its own.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Advisor::EdfSkip => Box::new(EdfSkip::by_wcet()),
            Advisor::Srpt => Box::new(Srpt::skipping()),
            Advisor::MhEdf => Box::new(MhEdf::default()),
            Advisor::MhEdfByMean => Box::new(MhEdf::by_mean()),
            Advisor::Dios => Box::new(Dios::default()),
        }
    }
}

/// A `look-ahead` scheduler that gives advice. The planners differ in how they estimate execution times.
///
/// The discriminant is the bit of the planner in a job's plan token. Trained weights rely on it: new planners are added
/// at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planner {
    /// Estimates halfway between the mean and the wcet; plans with 95% of the cores' time.
    Cautious,
    /// Estimates a fifth of the way from the mean to the wcet; plans with 85% of the cores' time.
    Moderate,
    /// Estimates by the mean; plans with 85% of the cores' time.
    Bold,
}

impl Planner {
    /// Every planner, by ascending discriminant.
    pub const ALL: [Planner; 3] = [Planner::Cautious, Planner::Moderate, Planner::Bold];

    /// Caution and capacity of the planner; see [`LookAhead::new`].
    pub(crate) const fn settings(self) -> (f64, f64) {
        match self {
            Planner::Cautious => (0.5, 0.95),
            Planner::Moderate => (0.2, 0.85),
            Planner::Bold => (0.0, 0.85),
        }
    }

    /// The planner as a scheduler of its own.
    pub fn scheduler(self) -> LookAhead {
        let (caution, capacity) = self.settings();
        LookAhead::new(caution, capacity)
    }
}

/// The advisors as schedulers, in the order of [`Advisor::ALL`].
pub fn advisors() -> [Box<dyn Scheduler>; Advisor::ALL.len()] {
    Advisor::ALL.map(Advisor::scheduler)
}

/// The planners as schedulers, in the order of [`Planner::ALL`].
pub fn planners() -> [LookAhead; Planner::ALL.len()] {
    Planner::ALL.map(Planner::scheduler)
}

/// The scheduler to fall back on when the learned one cannot decide: EDF where everything fits, and one of the best
/// classical schedulers in overload. With `minds_importance` it is one that respects criticality and value.
pub fn fallback(minds_importance: bool) -> Box<dyn Scheduler> {
    let advisor = if minds_importance { Advisor::Dios } else { Advisor::MhEdf };
    advisor.scheduler()
}
