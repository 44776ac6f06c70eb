//! Contract of the schedulability tests: published examples give the published results, hand-made sets give the results
//! computed by hand, and tests agree with each other wherever theory says that they must.

mod priority_search;
mod task_sets;

use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{
    NotAnalyzable, Order, Outcome, PriorityRule, TESTS, WorstCase, bcl, density, gfb, hyperbolic, liu_layland,
    processor_demand, qpa, response_times, rta,
};
use temponet_task::{Arrival, Costs, Task, TaskSet, Time};

use task_sets::{Kind, drawn, model, ms, set, uncovered_sets};

/// Bounds on the response times, in whole ms.
fn bounds(set: &TaskSet, rule: PriorityRule) -> Vec<Option<u64>> {
    let bounds = response_times(&model(set), rule).bounds;
    bounds.into_iter().map(|bound| bound.map(|time| time.0 / 1_000_000)).collect()
}

#[test]
fn lehoczkys_arbitrary_deadlines_come_out_as_published() {
    // Lehoczky 1990: C = 26, T = 70 and C = 62, T = 100. The busy period lasts 694. In it the second task has seven
    // jobs with the response times 114, 102, 116, 104, 118, 106 and 94: the fifth is the longest, not the first.
    let example = set(&[(26, 70, 70), (62, 120, 100)], 1);
    assert_eq!(bounds(&example, PriorityRule::RateMonotonic), [Some(26), Some(118)]);
    let tighter = set(&[(26, 70, 70), (62, 117, 100)], 1);
    assert_eq!(response_times(&model(&tighter), PriorityRule::RateMonotonic).outcome, Outcome::NotSchedulable);
}

#[test]
fn response_times_with_jitter_and_classical_sets() {
    // Burns and Wellings: C = 3, 3, 5 and T = 7, 12, 20. The textbook's response times are 3, 6 and 20.
    let classical = set(&[(3, 7, 7), (3, 12, 12), (5, 20, 20)], 1);
    assert_eq!(bounds(&classical, PriorityRule::RateMonotonic), [Some(3), Some(6), Some(20)]);
    assert_eq!(hyperbolic(&model(&classical)), Outcome::NotProved);
    // By hand: with 2 ms of jitter, two releases of the first task can be 5 ms apart. The second task then waits for
    // both: 3 + 2·3 = 9.
    let mut jittery = set(&[(3, 7, 7), (3, 12, 12)], 1);
    jittery.system.tasks_mut()[0].jitter = ms(2);
    assert_eq!(bounds(&jittery, PriorityRule::RateMonotonic), [Some(5), Some(9)]);
}

#[test]
fn the_utilization_bounds_are_exact_at_their_edge() {
    // Π = 3/2 · 4/3 = 2 exactly; and U = 1 exactly, in thirds.
    assert_eq!(hyperbolic(&model(&set(&[(1, 2, 2), (1, 3, 3)], 1))), Outcome::Schedulable);
    let thirds = set(&[(1, 3, 3), (2, 6, 6), (3, 9, 9)], 1);
    let mut over = thirds.clone();
    over.system.tasks_mut()[2].wcet = Time(over.tasks()[2].wcet.0 + 1);
    assert_eq!(qpa(&model(&over)), Outcome::NotSchedulable);
    assert_eq!((model(&over).is_overloaded(), model(&thirds).is_overloaded()), (Some(true), Some(false)));
    // An upper bound on switching costs does not make a set overloaded.
    let switching = Costs { context_switch: Time(1), ..Costs::default() };
    let costly = model(&thirds.with_costs(switching));
    assert_eq!((qpa(&costly), costly.is_overloaded()), (Outcome::NotProved, Some(false)));
    // GFB: Σλ = 3 · 2/4 = 3/2 ≤ 2 − 1/2, with equality.
    assert_eq!(gfb(&model(&set(&[(2, 4, 4), (2, 4, 4), (2, 4, 4)], 2))), Outcome::Schedulable);
    assert_eq!(gfb(&model(&set(&[(2, 4, 4), (2, 4, 4), (2, 4, 4), (1, 1000, 1000)], 2))), Outcome::NotProved);
}

#[test]
fn demand_and_interference_checked_by_hand() {
    // h(4) = 3, h(7) = 6, h(12) = 9, h(15) = 12: the set fits, although its densities add up to 1.18. With a deadline
    // of 5 instead of 7, h(5) = 6.
    let fits = set(&[(3, 4, 8), (3, 7, 8)], 1);
    assert_eq!(density(&model(&fits)), Outcome::NotProved);
    assert_eq!(qpa(&model(&fits)), Outcome::Schedulable);
    assert_eq!(qpa(&model(&set(&[(3, 4, 8), (3, 5, 8)], 1))), Outcome::NotSchedulable);
    // Two cores, priorities by period: the first two tasks run at once and have slacks of 3 and 4. In the 5 ms after
    // the release of the third task, each of them occupies a core for 2 ms, so the third completes after 2 + 3.
    let third = |deadline| model(&set(&[(2, 5, 5), (2, 6, 6), (3, deadline, 7)], 2));
    let order = Order::Fixed(PriorityRule::RateMonotonic);
    assert_eq!(rta(&third(5), order), Outcome::Schedulable);
    assert_eq!(rta(&third(4), order), Outcome::NotProved);
}

#[test]
fn jitter_beyond_the_deadline_makes_the_density_infinite() {
    let mut late = set(&[(1, 4, 4)], 3);
    late.system.tasks_mut()[0].jitter = ms(9);
    assert!(model(&late).density().is_infinite());
}

#[test]
fn offsets_are_exact_where_the_cycle_is_short() {
    // Released together, one task misses; released half a period apart, none does.
    let mut apart = set(&[(2, 2, 4), (2, 2, 4)], 1);
    assert_eq!(qpa(&model(&apart)), Outcome::NotSchedulable);
    apart.system.tasks_mut()[1].offset = ms(2);
    assert_eq!(qpa(&model(&apart)), Outcome::Schedulable);
    // The cycle has too many jobs to follow, so nothing is claimed.
    let mut long = apart.clone();
    (long.system.tasks_mut()[0].arrival, long.system.tasks_mut()[1].offset) =
        (Arrival::Periodic { period: Time(4_000_003) }, Time(7));
    assert_eq!(qpa(&model(&long)), Outcome::NotProved);
}

#[test]
fn sets_that_no_test_covers_are_refused_with_the_reason() {
    let reason = |set: &TaskSet| WorstCase::of(set).unwrap_err();
    let (_, [moded, deciding, listed]) = uncovered_sets();
    assert_eq!(reason(&moded), NotAnalyzable::ModeSwitches);
    assert!(reason(&moded).to_string().contains("mode"));
    assert_eq!(reason(&deciding), NotAnalyzable::DecisionCosts);
    assert!(reason(&deciding).to_string().contains("decisions"));
    assert_eq!(reason(&listed), NotAnalyzable::ListedJobs);
    assert!(reason(&listed).to_string().contains("list"));
}

#[test]
fn the_largest_inputs_are_neither_proved_nor_slow() {
    let started = Instant::now();
    let huge = Time::MAX_INPUT;
    let mut largest =
        TaskSet::new("largest", vec![Task::periodic("a", Time(1), huge), Task::periodic("b", huge, Time(1))], 1);
    largest.system.tasks_mut()[0].arrival = Arrival::Burst { jobs: u32::MAX, every: Time(1), until: Time::NEVER };
    (
        largest.system.tasks_mut()[1].jitter,
        largest.system.tasks_mut()[1].offset,
        largest.system.tasks_mut()[1].deadline,
    ) = (huge, huge, huge);
    for cores in [1, 2, 4096] {
        let set = largest.clone().with_cores(cores);
        let model = model(&set);
        for test in TESTS {
            assert_ne!((test.run)(&set, &model), Outcome::Schedulable, "{}", test.name);
        }
    }
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn both_demand_tests_give_the_same_verdict() {
    let mut rng = Pcg64::seed_from_u64(5);
    for _ in 0..2_000 {
        let mut set = drawn(&mut rng, 1, Kind::Plain);
        if rng.random_bool(0.5) {
            set.system
                .tasks_mut()
                .iter_mut()
                .for_each(|task| task.offset = Time(rng.random_range(0..12) * task.deadline.0 / 12));
        }
        let model = model(&set);
        assert_eq!(qpa(&model), processor_demand(&model), "{set:?}");
    }
}

#[test]
fn stronger_tests_prove_what_weaker_ones_do() {
    let mut rng = Pcg64::seed_from_u64(13);
    let mut counts = [0; 4];
    for _ in 0..1_500 {
        let cores = rng.random_range(2..=4);
        let set = drawn(&mut rng, cores, Kind::Wild);
        let several = model(&set);
        for order in [Order::Edf, Order::Fixed(PriorityRule::DeadlineMonotonic)] {
            let (iterative, response) = (bcl(&several, order), rta(&several, order));
            assert!(iterative != Outcome::Schedulable || response == Outcome::Schedulable, "{order:?} {set:?}");
            counts[0] += u64::from(iterative == Outcome::Schedulable);
            counts[1] += u64::from(response == Outcome::Schedulable);
        }
        let set = set.with_cores(1);
        let one = model(&set);
        let is_met = |outcome: Outcome| outcome == Outcome::Schedulable;
        let rate_monotonic = is_met(response_times(&one, PriorityRule::RateMonotonic).outcome);
        let within_hyperbolic = is_met(hyperbolic(&one));
        assert!(!within_hyperbolic || rate_monotonic, "{set:?}");
        assert!(!is_met(liu_layland(&one)) || within_hyperbolic, "{set:?}");
        assert!(!rate_monotonic || is_met(qpa(&one)), "EDF is optimal: {set:?}");
        assert!(!is_met(density(&one)) || is_met(qpa(&one)), "{set:?}");
        counts[2] += u64::from(within_hyperbolic);
        counts[3] += u64::from(rate_monotonic);
    }
    assert!(counts[0] > 100 && counts[1] > counts[0] && counts[2] > 20 && counts[3] > counts[2], "{counts:?}");
}
