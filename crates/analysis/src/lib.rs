//! Schedulability analysis: what can be proved about a set without running it.
//!
//! [`WorstCase`] is the worst case of a set; each file beside it holds one family of tests on it, [`TESTS`] lists them, and [`proofs`] says
//! which schedulers of the catalog are proved to meet every deadline, and by what. A test is *exact* or *sufficient*: only an exact one
//! can say "not schedulable". All comparisons that decide are made in whole numbers, or with a margin on the safe side, and every search
//! is bounded: what takes too long is undecided.

mod bounds;
mod cycle;
mod fractions;
mod global;
mod listing;
mod mixed_criticality;
mod optimal;
pub mod packing;
mod partitioned;
mod response_time;
mod step_budget;
mod uniprocessor_edf;
mod worst_case;

pub use bounds::{bak, density, gfb, hyperbolic, liu_layland};
pub use global::{Order, bcl, rta};
pub use listing::{TESTS, Test};
pub use mixed_criticality::{amc_rtb, edf_vd, is_mixed, meets_virtual_deadlines, shrink_factor};
pub use optimal::{fluid, is_in_quanta, pfair};
pub use partitioned::{partitioned_edf, partitioned_fixed};
pub use response_time::{PriorityRule, ResponseTimes, response_times};
pub use step_budget::StepBudget;
pub use uniprocessor_edf::{Demand, is_schedulable, processor_demand, qpa, quick_test};
pub use worst_case::{Sporadic, WorstCase};

/// What a test says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every deadline is met, always.
    Schedulable,
    /// Some deadline is missed, if jobs arrive as they may and take as long as they may.
    NotSchedulable,
    /// A sufficient test failed: nothing is known.
    NotProved,
    /// It would have taken too long.
    Undecided,
    /// The test does not cover such sets, and why.
    NotApplicable(String),
}

impl Outcome {
    fn if_proved(proved: bool) -> Outcome {
        if proved { Outcome::Schedulable } else { Outcome::NotProved }
    }

    fn exactly(schedulable: bool) -> Outcome {
        if schedulable { Outcome::Schedulable } else { Outcome::NotSchedulable }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Schedulable => f.write_str("schedulable"),
            Outcome::NotSchedulable => f.write_str("not schedulable"),
            Outcome::NotProved => f.write_str("not proved"),
            Outcome::Undecided => f.write_str("not decided within the effort"),
            Outcome::NotApplicable(why) => write!(f, "not applicable: {why}"),
        }
    }
}
