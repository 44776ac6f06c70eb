//! The list of all tests with their names, as `temponet analyze` shows them.

use temponet_task::{Attribute, TaskSet};

use super::global::Order;
use super::packing::Fit;
use super::response_time::{PriorityRule, response_times};
use super::sections::{sharing_demand, sharing_response_times};
use super::worst_case::NotAnalyzable;
use super::{Outcome, WorstCase, blocking, bounds, global, mixed_criticality, partitioned, uniform, uniprocessor_edf};

/// A test that can be applied to a set.
pub struct Test {
    /// Name of the test in the literature.
    pub name: &'static str,
    /// Scheduler whose deadlines the test is about.
    pub scheduler: &'static str,
    /// Whether the test can also say "not schedulable".
    pub is_exact: bool,
    /// Whether the test is meant for a set like this one.
    pub concerns: fn(&TaskSet) -> bool,
    /// Applies the test to a set and its worst case.
    pub run: fn(&TaskSet, &WorstCase) -> Outcome,
}

fn one_core(set: &TaskSet) -> bool {
    set.cores() == 1 && !set.is_limited()
}

fn limited_on_one_core(set: &TaskSet) -> bool {
    set.cores() == 1 && set.is_limited()
}

fn many_cores(set: &TaskSet) -> bool {
    set.cores() > 1
}

fn unequal_cores(set: &TaskSet) -> bool {
    many_cores(set) && set.machine().is_unequal()
}

fn has_priorities(set: &TaskSet) -> bool {
    set.tasks().iter().any(|task| task.extra.has(Attribute::Priority))
}

const fn test(
    name: &'static str,
    scheduler: &'static str,
    is_exact: bool,
    concerns: fn(&TaskSet) -> bool,
    run: fn(&TaskSet, &WorstCase) -> Outcome,
) -> Test {
    Test { name, scheduler, is_exact, concerns, run }
}

/// All tests, those for one core first.
pub const TESTS: &[Test] = &[
    test("QPA", "edf", true, one_core, |_, worst_case| uniprocessor_edf::qpa(worst_case)),
    test("processor demand", "edf", true, one_core, |_, worst_case| uniprocessor_edf::processor_demand(worst_case)),
    test("density", "edf", false, one_core, |_, worst_case| bounds::density(worst_case)),
    test("response times", "rm", true, one_core, |_, worst_case| {
        response_times(worst_case, PriorityRule::RateMonotonic).outcome
    }),
    test("response times", "dm", true, one_core, |_, worst_case| {
        response_times(worst_case, PriorityRule::DeadlineMonotonic).outcome
    }),
    test(
        "response times",
        "fp",
        true,
        |set| one_core(set) && has_priorities(set),
        |_, worst_case| response_times(worst_case, PriorityRule::Given).outcome,
    ),
    test("hyperbolic bound", "rm", false, one_core, |_, worst_case| bounds::hyperbolic(worst_case)),
    test("Liu and Layland", "rm", false, one_core, |_, worst_case| bounds::liu_layland(worst_case)),
    test("demand with blocking", "edf", true, limited_on_one_core, |_, worst_case| {
        blocking::demand_with_blocking(worst_case)
    }),
    test("response times with blocking", "rm", true, limited_on_one_core, |_, worst_case| {
        response_times(worst_case, PriorityRule::RateMonotonic).outcome
    }),
    test("response times with blocking", "dm", true, limited_on_one_core, |_, worst_case| {
        response_times(worst_case, PriorityRule::DeadlineMonotonic).outcome
    }),
    test(
        "response times with blocking",
        "fp",
        true,
        |set| limited_on_one_core(set) && has_priorities(set),
        |_, worst_case| response_times(worst_case, PriorityRule::Given).outcome,
    ),
    test("GFB", "edf", false, many_cores, |_, worst_case| bounds::gfb(worst_case)),
    test("FGB", "edf", false, unequal_cores, |_, worst_case| uniform::fgb(worst_case)),
    test("BAK", "edf", false, many_cores, |_, worst_case| bounds::bak(worst_case)),
    test("BCL iterative", "edf", false, many_cores, |_, worst_case| global::bcl(worst_case, Order::Edf)),
    test("RTA", "edf", false, many_cores, |_, worst_case| global::rta(worst_case, Order::Edf)),
    test("BCL iterative", "rm", false, many_cores, |_, worst_case| {
        global::bcl(worst_case, Order::Fixed(PriorityRule::RateMonotonic))
    }),
    test("RTA", "rm", false, many_cores, |_, worst_case| {
        global::rta(worst_case, Order::Fixed(PriorityRule::RateMonotonic))
    }),
    test("BCL iterative", "dm", false, many_cores, |_, worst_case| {
        global::bcl(worst_case, Order::Fixed(PriorityRule::DeadlineMonotonic))
    }),
    test("RTA", "dm", false, many_cores, |_, worst_case| {
        global::rta(worst_case, Order::Fixed(PriorityRule::DeadlineMonotonic))
    }),
    test(
        "RTA",
        "fp",
        false,
        |set| many_cores(set) && has_priorities(set),
        |_, worst_case| global::rta(worst_case, Order::Fixed(PriorityRule::Given)),
    ),
    test("first fit, QPA", "partitioned EDF", false, many_cores, |_, worst_case| {
        partitioned::partitioned_edf(worst_case, Fit::First)
    }),
    test("best fit, QPA", "partitioned EDF", false, many_cores, |_, worst_case| {
        partitioned::partitioned_edf(worst_case, Fit::Best)
    }),
    test("worst fit, QPA", "partitioned EDF", false, many_cores, |_, worst_case| {
        partitioned::partitioned_edf(worst_case, Fit::Worst)
    }),
    test("first fit, RTA", "partitioned DM", false, many_cores, |_, worst_case| {
        partitioned::partitioned_fixed(worst_case, Fit::First, PriorityRule::DeadlineMonotonic)
    }),
    test("EDF-VD", "edf-vd, critical", false, mixed_criticality::is_mixed, mixed_criticality::edf_vd),
    test("AMC-rtb", "amc, critical", false, mixed_criticality::is_mixed, mixed_criticality::amc_rtb),
];

/// Tests of sets whose tasks share resources. They get the worst case as if no job waited.
pub const SHARING_TESTS: &[Test] = &[
    test("demand with critical sections", "edf", false, |_| true, |set, _| sharing_demand(set).unwrap_or_else(refused)),
    test(
        "response times with critical sections",
        "rm",
        false,
        |_| true,
        |set, _| sharing(set, PriorityRule::RateMonotonic),
    ),
    test(
        "response times with critical sections",
        "dm",
        false,
        |_| true,
        |set, _| sharing(set, PriorityRule::DeadlineMonotonic),
    ),
    test("response times with critical sections", "fp", false, has_priorities, |set, _| {
        sharing(set, PriorityRule::Given)
    }),
];

fn sharing(set: &TaskSet, rule: PriorityRule) -> Outcome {
    sharing_response_times(set, rule).map_or_else(refused, |found| found.outcome)
}

fn refused(why: NotAnalyzable) -> Outcome {
    Outcome::NotApplicable(why.to_string())
}
