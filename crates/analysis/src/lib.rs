//! Schedulability analysis: what can be proved about a task set without running it.
//!
//! [`WorstCase`] is the worst case of a set, and each test takes it as input. The modules hold one family of tests
//! each, and [`TESTS`] lists all of them. A test is *exact* or *sufficient*: only an exact test can say "not
//! schedulable".
//!
//! Every comparison that decides a verdict is made in whole numbers or with a margin on the safe side. Every search is
//! bounded by a [`StepBudget`]; a test that would take longer is undecided.
//!
//! The analysis knows tasks and rules, not schedulers. Which schedulers of the catalog are proved on a set is answered
//! by `temponet_sched::proofs`.

mod blocking;
mod bounds;
mod chains;
mod cycle;
mod fractions;
mod global;
mod impossible;
mod listing;
mod mixed_criticality;
mod optimal;
pub mod packing;
mod partitioned;
mod placement;
mod precedence;
mod priority_search;
mod response_time;
mod sections;
mod step_budget;
mod uniform;
mod uniprocessor_edf;
mod worst_case;

pub use blocking::{Blocking, demand_with_blocking, is_schedulable_with};
pub use bounds::{bak, density, gfb, hyperbolic, liu_layland};
pub use chains::{ChainBound, chain_bounds};
pub use global::{Order, bcl, rta};
pub use impossible::{Impossible, Refutation, refutations};
pub use listing::{SHARING_TESTS, TESTS, Test};
pub use mixed_criticality::{amc_rtb, edf_vd, is_mixed, meets_virtual_deadlines, shrink_factor};
pub use optimal::{fluid, is_in_quanta, pfair};
pub use partitioned::{
    edf_partition, edf_partition_with, partition_by, partitioned_edf, partitioned_fixed, priority_partition,
};
pub use precedence::{covers_followers, dependent_outcome, dependent_response_times, due_date_edf};
pub use priority_search::{audsley, response_among};
pub use response_time::{PriorityRule, ResponseTimes, response_times};
pub use sections::{sharing_demand, sharing_response_times};
pub use step_budget::StepBudget;
pub use uniform::fgb;
pub use uniprocessor_edf::{Demand, is_schedulable, processor_demand, qpa, quick_test};
pub use worst_case::{NotAnalyzable, Sporadic, WorstCase, may_overrun};

/// The verdict of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every deadline is always met.
    Schedulable,
    /// Some deadline is missed if jobs arrive as often and take as long as the set allows.
    NotSchedulable,
    /// A sufficient test failed: nothing is known.
    NotProved,
    /// The test would have taken too long.
    Undecided,
    /// The test does not cover such sets; the text says why.
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

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
