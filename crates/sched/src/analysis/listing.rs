//! Every test by name, as `temponet analyze` shows them.

use temponet_task::TaskSet;

use super::global::Order;
use super::partitioned::Packing;
use super::response_time::{Policy, response_times};
use super::{Model, Outcome, bounds, global, mixed_criticality, partitioned, uniprocessor_edf};

/// A test that can be asked of a set.
pub struct Test {
    /// What it is called in the field.
    pub name: &'static str,
    /// Whose deadlines it is about.
    pub scheduler: &'static str,
    /// Whether it can also say "not schedulable".
    pub is_exact: bool,
    /// Whether it has something to say about such a set.
    pub concerns: fn(&TaskSet) -> bool,
    /// The verdict.
    pub run: fn(&TaskSet, &Model) -> Outcome,
}

fn one_core(set: &TaskSet) -> bool {
    set.cores == 1
}

fn many_cores(set: &TaskSet) -> bool {
    set.cores > 1
}

fn has_priorities(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| task.priority.is_some())
}

const fn test(
    name: &'static str,
    scheduler: &'static str,
    is_exact: bool,
    concerns: fn(&TaskSet) -> bool,
    run: fn(&TaskSet, &Model) -> Outcome,
) -> Test {
    Test { name, scheduler, is_exact, concerns, run }
}

/// The tests, those of one core first.
pub const TESTS: &[Test] = &[
    test("QPA", "edf", true, one_core, |_, model| uniprocessor_edf::qpa(model)),
    test("processor demand", "edf", true, one_core, |_, model| uniprocessor_edf::processor_demand(model)),
    test("density", "edf", false, one_core, |_, model| bounds::density(model)),
    test("response times", "rm", true, one_core, |_, model| response_times(model, Policy::RateMonotonic).outcome),
    test("response times", "dm", true, one_core, |_, model| response_times(model, Policy::DeadlineMonotonic).outcome),
    test(
        "response times",
        "fp",
        true,
        |set| one_core(set) && has_priorities(set),
        |_, model| response_times(model, Policy::Given).outcome,
    ),
    test("hyperbolic bound", "rm", false, one_core, |_, model| bounds::hyperbolic(model)),
    test("Liu and Layland", "rm", false, one_core, |_, model| bounds::liu_layland(model)),
    test("GFB", "edf", false, many_cores, |_, model| bounds::gfb(model)),
    test("BAK", "edf", false, many_cores, |_, model| bounds::bak(model)),
    test("BCL iterative", "edf", false, many_cores, |_, model| global::bcl(model, Order::Edf)),
    test("RTA", "edf", false, many_cores, |_, model| global::rta(model, Order::Edf)),
    test("BCL iterative", "rm", false, many_cores, |_, model| global::bcl(model, Order::Fixed(Policy::RateMonotonic))),
    test("RTA", "rm", false, many_cores, |_, model| global::rta(model, Order::Fixed(Policy::RateMonotonic))),
    test("BCL iterative", "dm", false, many_cores, |_, model| {
        global::bcl(model, Order::Fixed(Policy::DeadlineMonotonic))
    }),
    test("RTA", "dm", false, many_cores, |_, model| global::rta(model, Order::Fixed(Policy::DeadlineMonotonic))),
    test(
        "RTA",
        "fp",
        false,
        |set| many_cores(set) && has_priorities(set),
        |_, model| global::rta(model, Order::Fixed(Policy::Given)),
    ),
    test("first fit, QPA", "partitioned EDF", false, many_cores, |_, model| {
        partitioned::partitioned_edf(model, Packing::First)
    }),
    test("best fit, QPA", "partitioned EDF", false, many_cores, |_, model| {
        partitioned::partitioned_edf(model, Packing::Best)
    }),
    test("worst fit, QPA", "partitioned EDF", false, many_cores, |_, model| {
        partitioned::partitioned_edf(model, Packing::Worst)
    }),
    test("first fit, RTA", "partitioned DM", false, many_cores, |_, model| {
        partitioned::partitioned_fixed(model, Packing::First, Policy::DeadlineMonotonic)
    }),
    test("EDF-VD", "edf-vd, critical", false, mixed_criticality::is_mixed, mixed_criticality::edf_vd),
    test("AMC-rtb", "amc, critical", false, mixed_criticality::is_mixed, mixed_criticality::amc_rtb),
];
