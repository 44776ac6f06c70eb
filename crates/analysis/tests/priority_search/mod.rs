//! Contract of the search for fixed priorities: it finds an order exactly if trying all of them finds one.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{Outcome, PriorityRule, StepBudget, WorstCase, audsley, response_times};
use temponet_task::{Preemption, TaskSet, Time};

use crate::task_sets::{Kind, drawn, model, ms, set};

/// Whether the tasks are always in time with priorities in this order; those that it does not name are below.
fn is_proved(worst_case: &WorstCase, order: &[usize]) -> bool {
    let mut given = worst_case.clone();
    given.tasks.iter_mut().for_each(|task| task.priority = Some(0));
    order.iter().rev().zip(1..).for_each(|(place, priority)| given.tasks[*place].priority = Some(priority));
    response_times(&given, PriorityRule::Given).outcome == Outcome::Schedulable
}

/// Calls `visit` with every order of the places until it returns true; returns whether it did.
fn any_order(places: &mut [usize], fixed: usize, visit: &mut impl FnMut(&[usize]) -> bool) -> bool {
    if fixed == places.len() {
        return visit(places);
    }
    for at in fixed..places.len() {
        places.swap(fixed, at);
        if any_order(places, fixed + 1, visit) {
            return true;
        }
        places.swap(fixed, at);
    }
    false
}

fn found(worst_case: &WorstCase) -> Option<Vec<usize>> {
    let all: Vec<usize> = (0..worst_case.tasks.len()).collect();
    audsley(worst_case, &all, &mut StepBudget::large())
}

#[test]
fn an_order_is_found_exactly_if_one_of_all_orders_is_proved() {
    let mut rng = Pcg64::seed_from_u64(42);
    let (mut orders, mut none, mut beyond_deadlines) = (0, 0, 0);
    for round in 0..3_000 {
        let kind = if round % 3 == 0 { Kind::Plain } else { Kind::Wild };
        let mut drawn = drawn(&mut rng, 1, kind);
        let most = drawn.tasks().len().min(6);
        let mut tasks = drawn.tasks()[..most].to_vec();
        if round % 4 == 1 {
            for task in &mut tasks {
                if rng.random_bool(0.4) {
                    task.preemption = Preemption::None;
                }
            }
        }
        drawn.system.set_tasks(tasks);
        let worst_case = model(&drawn);
        let mut places: Vec<usize> = (0..worst_case.tasks.len()).collect();
        let exists = any_order(&mut places, 0, &mut |order| is_proved(&worst_case, order));
        let order = found(&worst_case);
        assert_eq!(order.is_some(), exists, "{order:?} {drawn:?}");
        if let Some(order) = order {
            assert!(is_proved(&worst_case, &order), "{order:?} {drawn:?}");
            let by_deadline = response_times(&worst_case, PriorityRule::DeadlineMonotonic).outcome;
            beyond_deadlines += usize::from(by_deadline != Outcome::Schedulable);
            orders += 1;
        } else {
            none += 1;
        }
    }
    assert!(orders > 1_000 && none > 500 && beyond_deadlines > 10, "{orders} {none} {beyond_deadlines}");
}

/// Lehoczky's example of 1990: with deadlines beyond periods, neither deadline nor rate monotonic is optimal.
#[test]
fn deadlines_beyond_periods_need_another_order_than_theirs() {
    let example = set(&[(52, 110, 100), (52, 154, 140)], 1);
    let worst_case = model(&example);
    assert_eq!(response_times(&worst_case, PriorityRule::RateMonotonic).outcome, Outcome::NotSchedulable);
    assert_eq!(response_times(&worst_case, PriorityRule::DeadlineMonotonic).outcome, Outcome::NotSchedulable);
    assert_eq!(found(&worst_case), Some(vec![1, 0]));
}

#[test]
fn tasks_that_are_given_up_run_below_the_others_and_may_still_block_them() {
    let mut overloaded = set(&[(4, 10, 10), (6, 10, 10), (5, 20, 20)], 1);
    let kept = |set: &TaskSet| audsley(&model(set), &[2, 0], &mut StepBudget::standard());
    assert_eq!(kept(&overloaded), Some(vec![0, 2]));
    overloaded.system.tasks_mut()[1].preemption = Preemption::None;
    assert_eq!(kept(&overloaded), Some(vec![0, 2]), "4 ms and 6 ms fit into 10 ms");
    overloaded.system.tasks_mut()[1].wcet = ms(6) + Time(2);
    assert_eq!(kept(&overloaded), None);
    assert_eq!(audsley(&model(&overloaded), &[], &mut StepBudget::standard()), Some(vec![]));
}
