//! Partitioned scheduling: tasks are packed onto cores by decreasing load, and each core must pass the exact test for
//! one core.
//!
//! Reference: Lopez, Diaz and Garcia, Real-Time Systems 28, 2004. The partitioned schedulers pack in the same order,
//! but by a utilization bound. The exact test admits more tasks, so more sets pass here.

use super::Outcome;
use super::blocking::{Blocking, blocked_test};
use super::packing::{ClusterLoad, Fit, pack_by};
use super::placement::search;
use super::priority_search::audsley;
use super::response_time::{PriorityRule, response_times};
use super::step_budget::StepBudget;
use super::uniprocessor_edf::{Demand, quick_test};
use super::worst_case::WorstCase;
use temponet_task::CoreId;

/// Whether `fit` finds a core for every task such that EDF meets every deadline on each core.
pub fn partitioned_edf(worst_case: &WorstCase, fit: Fit) -> Outcome {
    packed_by_demand(worst_case, fit).0
}

/// Returns a core for every task, by its place, such that EDF meets every deadline on each core; none if none is found.
/// Worst fit comes first, because it leaves every core some slack.
pub fn edf_partition(worst_case: &WorstCase) -> Option<Vec<usize>> {
    let packed =
        [Fit::Worst, Fit::First, Fit::Best].into_iter().find_map(|fit| match packed_by_demand(worst_case, fit) {
            (Outcome::Schedulable, core_of) => Some(core_of),
            _ => None,
        });
    packed.or_else(|| search(worst_case, test_of_core(worst_case, &mut StepBudget::small())))
}

/// Like [`edf_partition`], where jobs hold cores: `blocking` returns what can delay the tasks at these places on this
/// core, beside each other's demand.
pub fn edf_partition_with(
    worst_case: &WorstCase,
    blocking: impl Fn(CoreId, &[usize]) -> Vec<Blocking>,
) -> Option<Vec<usize>> {
    let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
    let test = |core: usize, members: &[usize], budget: &mut StepBudget| {
        let demands: Vec<Demand> = members.iter().map(|place| demands[*place]).collect();
        blocked_test(&demands, &blocking(CoreId::new(core), members), budget)
    };
    let mut budget = StepBudget::standard();
    let packed = partition_by(worst_case, |core, members| test(core, members, &mut budget));
    let mut budget = StepBudget::small();
    packed.or_else(|| search(worst_case, |core, members| test(core, members, &mut budget)))
}

fn packed_by_demand(worst_case: &WorstCase, fit: Fit) -> (Outcome, Vec<usize>) {
    let mut budget = StepBudget::standard();
    let by_density = !worst_case.is_limited() && worst_case.is_identical();
    packed(worst_case, fit, by_density, test_of_core(worst_case, &mut budget))
}

/// The demand test for tasks on a core.
fn test_of_core(worst_case: &WorstCase, budget: &mut StepBudget) -> impl FnMut(usize, &[usize]) -> Option<bool> {
    let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
    let is_plain = !worst_case.is_limited() && worst_case.is_identical();
    move |core, members| {
        if is_plain {
            let demands: Vec<Demand> = members.iter().map(|place| demands[*place]).collect();
            return quick_test(&demands, budget);
        }
        let part = worst_case.cluster(members.iter().copied(), core..core + 1);
        let demands: Vec<Demand> = part.tasks.iter().map(Demand::from).collect();
        match part.is_limited() {
            true => blocked_test(&demands, &part.blocking(), budget),
            false => quick_test(&demands, budget),
        }
    }
}

/// Whether `fit` finds a core for every task such that the fixed priorities of `rule` meet every deadline on each core.
pub fn partitioned_fixed(worst_case: &WorstCase, fit: Fit, rule: PriorityRule) -> Outcome {
    if worst_case.tasks.len() > MOST_TASKS {
        return Outcome::Undecided;
    }
    packed(worst_case, fit, false, |core, members| {
        match response_times(&worst_case.cluster(members.iter().copied(), core..core + 1), rule).outcome {
            Outcome::Undecided => None,
            outcome => Some(outcome == Outcome::Schedulable),
        }
    })
    .0
}

/// Returns a core for every task, by its place, such that some fixed priorities meet every deadline on each core
/// ([`audsley`]); none if none is found.
pub fn priority_partition(worst_case: &WorstCase) -> Option<Vec<usize>> {
    if worst_case.tasks.len() > MOST_TASKS {
        return None;
    }
    let has_order = |core: usize, members: &[usize], budget: &mut StepBudget| {
        let part = worst_case.cluster(members.iter().copied(), core..core + 1);
        let all: Vec<usize> = (0..members.len()).collect();
        Some(audsley(&part, &all, budget).is_some())
    };
    let mut budget = StepBudget::large();
    let packed = partition_by(worst_case, |core, members| has_order(core, members, &mut budget));
    let mut budget = StepBudget::standard();
    packed.or_else(|| search(worst_case, |core, members| has_order(core, members, &mut budget)))
}

/// Packs tasks such that `fits` holds of the tasks of each core, and returns the core of every task, by its place; none if
/// none is found. Worst fit comes first, because it leaves every core some slack.
pub fn partition_by(
    worst_case: &WorstCase,
    mut fits: impl FnMut(usize, &[usize]) -> Option<bool>,
) -> Option<Vec<usize>> {
    [Fit::Worst, Fit::First, Fit::Best].into_iter().find_map(|fit| {
        let (outcome, core_of) = packed(worst_case, fit, false, &mut fits);
        (outcome == Outcome::Schedulable).then_some(core_of)
    })
}

/// Largest number of tasks that are packed by response times. Packing more would take too many analyses.
const MOST_TASKS: usize = 500;

/// Packs the tasks. Returns the verdict and the core of each task.
fn packed(
    worst_case: &WorstCase,
    fit: Fit,
    by_density: bool,
    mut fits: impl FnMut(usize, &[usize]) -> Option<bool>,
) -> (Outcome, Vec<usize>) {
    let load = |(work, time): (u64, u64)| work as f64 / time as f64;
    let loads: Vec<f64> = worst_case.tasks.iter().map(|task| load(task.density())).collect();
    let (mut all_fit, mut undecided) = (true, false);
    let mut members = Vec::new();
    let empty = |core: CoreId| ClusterLoad::empty(1, worst_case.speed(core).as_f64());
    let empty: Vec<ClusterLoad> = CoreId::all(worst_case.cores).map(empty).collect();
    let may_use = |place: usize, core: usize| worst_case.may_use(place, CoreId::new(core));
    let partition = pack_by(&loads, &empty, fit, may_use, |core, packed, present, task| {
        // For EDF, densities up to one are enough. Once the budget is spent, no other test is run.
        if by_density && packed.surely_fits_one() {
            return true;
        }
        if undecided {
            return false;
        }
        members.clear();
        members.extend(present.iter().copied().chain([task]));
        fits(core, &members).unwrap_or_else(|| {
            undecided = true;
            false
        })
    });
    for (core, members) in partition.members.iter().enumerate() {
        let density: f64 = members.iter().map(|place| loads[*place]).sum();
        let may_run = members.iter().all(|place| worst_case.may_use(*place, CoreId::new(core)));
        let is_proved = (by_density && density <= 1.0 - 1e-6) || (!undecided && fits(core, members) == Some(true));
        all_fit &= may_run && is_proved;
    }
    let outcome = match (all_fit, undecided) {
        (true, _) => Outcome::Schedulable,
        (false, true) => Outcome::Undecided,
        (false, false) => Outcome::NotProved,
    };
    (outcome, partition.cluster_of)
}
