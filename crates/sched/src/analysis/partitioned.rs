//! Partitioned scheduling: tasks packed onto cores by decreasing load, each core held against the exact test of one core.
//!
//! Reference: Lopez, Diaz and Garcia, Real-Time Systems 28, 2004. Packing is that of the partitioned schedulers, but what fits is asked of
//! the exact test and not of a utilisation bound, so more sets pass.

use super::Outcome;
use super::effort::Effort;
use super::model::Model;
use super::response_time::{Policy, response_times};
use super::uniprocessor_edf::{Demand, quick_test};
use crate::partition::{Fit, pack_by};

/// Which core that has room a task goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The first.
    First,
    /// The fullest.
    Best,
    /// The emptiest.
    Worst,
}

impl Packing {
    fn fit(self) -> Fit {
        match self {
            Packing::First => Fit::First,
            Packing::Best => Fit::Best,
            Packing::Worst => Fit::Worst,
        }
    }
}

/// Whether `packing` finds a core for every task such that EDF meets every deadline on each.
pub fn partitioned_edf(model: &Model, packing: Packing) -> Outcome {
    let demands: Vec<Demand> = model.tasks.iter().map(Demand::from).collect();
    let mut effort = Effort::new();
    packed(model, packing, true, |members| {
        let demands: Vec<Demand> = members.iter().map(|place| demands[*place]).collect();
        quick_test(&demands, &mut effort)
    })
}

/// Whether `packing` finds a core for every task such that the fixed priorities of `policy` meet every deadline on each.
pub fn partitioned_fixed(model: &Model, packing: Packing, policy: Policy) -> Outcome {
    if model.tasks.len() > MOST_TASKS {
        return Outcome::Undecided;
    }
    packed(model, packing, false, |members| {
        match response_times(&model.part(members.iter().copied(), 1), policy).outcome {
            Outcome::Undecided => None,
            outcome => Some(outcome == Outcome::Schedulable),
        }
    })
}

/// Packing many tasks asks for many response-time analyses.
const MOST_TASKS: usize = 500;

fn packed(
    model: &Model,
    packing: Packing,
    by_density: bool,
    mut fits: impl FnMut(&[usize]) -> Option<bool>,
) -> Outcome {
    let load = |(work, time): (u64, u64)| work as f64 / time as f64;
    let loads: Vec<f64> = model.tasks.iter().map(|task| load(task.density())).collect();
    let (mut all_fit, mut undecided) = (true, false);
    let mut members = Vec::new();
    let partition = pack_by(&loads, &vec![1; model.cores], packing.fit(), |packed, present, task| {
        // Densities up to one are enough for EDF; nothing is asked any more once the effort is spent.
        if by_density && packed.surely_fits_one() {
            return true;
        }
        if undecided {
            return false;
        }
        members.clear();
        members.extend(present.iter().copied().chain([task]));
        fits(&members).unwrap_or_else(|| {
            undecided = true;
            false
        })
    });
    for core in partition.members {
        let density: f64 = core.iter().map(|place| loads[*place]).sum();
        all_fit &= (by_density && density <= 1.0 - 1e-6) || (!undecided && fits(&core) == Some(true));
    }
    match (all_fit, undecided) {
        (true, _) => Outcome::Schedulable,
        (false, true) => Outcome::Undecided,
        (false, false) => Outcome::NotProved,
    }
}
