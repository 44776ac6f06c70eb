//! Contract on tasks with parts on a processor, a GPU and a bus: simulations never refute the bounds on their response
//! times, what is proved of them, and what the shield guarantees of them.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_analysis::{NotAnalyzable, Outcome, PriorityRule, WorstCase, dependent_response_times};
use temponet_sched::shield::Role;
use temponet_sched::what_if::what_if;
use temponet_sched::{build, proofs};
use temponet_sim::{End, Recorder, Unobserved, simulate};
use temponet_task::{
    Attribute, Core, CoreId, CoreSet, Costs, ExecutionModel, OnMiss, Speed, Task, TaskId, TaskSet, Time,
};

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

#[test]
fn no_time_is_kept_for_a_part_of_a_task_that_is_not_guaranteed() {
    let mut rng = Pcg64::seed_from_u64(77);
    let (mut kept, mut left_out) = (0, 0);
    for round in 0..300 {
        let mut set = drawn(&mut rng, [0.6, 1.0, 1.4][round % 3]);
        set.system.tasks_mut().iter_mut().for_each(|task| task.criticality = 1);
        let role = Role::on(&set.system);
        let Some(guarantee) = role.guarantee() else { continue };
        for whole in set.system.whole_tasks() {
            let parts: Vec<bool> = set.system.parts(whole).map(|part| guarantee.core_of(part).is_some()).collect();
            assert!(parts.iter().all(|part| *part == parts[0]), "{whole:?} {parts:?}: {set:?}");
            *(if parts[0] { &mut kept } else { &mut left_out }) += usize::from(parts.len() > 1);
        }
    }
    assert!(kept > 20 && left_out > 20, "{kept} {left_out}");
}

/// A random set in which each part may use a single core, at about this load of each of the three cores.
fn drawn(rng: &mut Pcg64, load: f64) -> TaskSet {
    let (mut tasks, count) = (Vec::<Task>::new(), rng.random_range(2..6));
    for number in 0..count {
        let period = [8, 10, 16, 20, 40][rng.random_range(0..5)];
        let (parts, priority) = (rng.random_range(1..5), rng.random_range(0..100));
        let before = tasks.len().checked_sub(1).map(TaskId::new).filter(|_| rng.random_bool(0.2));
        for place in 0..parts {
            let is_part = place + 1 < parts;
            let name = if is_part { format!("t{number} (part {place})") } else { format!("t{number}") };
            let share = 3.0 * load / f64::from(count * parts);
            let wcet = Time(((share * period as f64 * 1e6 * rng.random_range(0.3..1.5)) as u64).max(1));
            let mut task = Task::periodic(name, ms(period), wcet).with_is_part(is_part);
            task.cores = CoreSet::of([CoreId(rng.random_range(0..3))]);
            task.extra.set(Attribute::Priority, Some(priority));
            task.criticality = u8::from(number == 0);
            if rng.random_bool(0.5) {
                (task.bcet, task.execution) = (Time(wcet.0.div_ceil(4)), ExecutionModel::Uniform);
            }
            match (place, before) {
                (0, Some(before)) => task.after = vec![before],
                (0, None) => {
                    task.offset = ms(rng.random_range(0..6));
                    task.jitter = if rng.random_bool(0.2) { ms(1) } else { Time::ZERO };
                }
                _ => task.after = vec![TaskId::new(tasks.len() - 1)],
            }
            tasks.push(task);
        }
    }
    let mut set = TaskSet::new("drawn", tasks, 3);
    let named = |name: &str, speed: u32| Core::new(name, Speed(speed));
    let gpu_speed = if rng.random_bool(0.3) { 2000 } else { 1000 };
    set.system.set_machine(vec![named("cpu", 1000), named("gpu", gpu_speed).with_only(true), named("bus", 1000)]);
    set.system.follow_sources().unwrap();
    set.system.set_on_miss(if rng.random_bool(0.5) { OnMiss::Abort } else { OnMiss::Continue });
    if rng.random_bool(0.3) && gpu_speed == 1000 {
        set.system.set_costs(Costs { context_switch: Time::from_us(50), ..Costs::default() });
    }
    assert_eq!(set.system.validate(), Ok(()));
    set
}

#[test]
fn response_times_stay_within_their_bounds_core_by_core() {
    let mut rng = Pcg64::seed_from_u64(31);
    let (mut bounded, mut closest, mut proved) = (0, 0.0f64, 0);
    for case in 0..150 {
        let set = drawn(&mut rng, 0.2 + 0.7 * (case % 10) as f64 / 10.0);
        if !set.has_precedence() {
            continue;
        }
        assert_eq!(WorstCase::of(&set).unwrap_err(), NotAnalyzable::Precedence);
        for rule in [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given] {
            let found = dependent_response_times(&set, rule).unwrap();
            let mut recorder = Recorder::until(Time::NEVER);
            let mut scheduler = build(rule.scheduler()).unwrap();
            let metrics = simulate(&set, case, ms(800), &mut *scheduler, &mut recorder).unwrap();
            if found.outcome == Outcome::Schedulable {
                assert_eq!(metrics.missed(), 0, "{rule:?}: {set:?}");
                assert!(proofs(&set).iter().any(|proof| proof.scheduler == rule.scheduler()));
                proved += 1;
            }
            for job in recorder.jobs.iter().filter(|job| job.end == End::Completed) {
                let arrival = job.deadline - set.tasks()[job.task].deadline;
                if let Some(bound) = found.bounds[job.task] {
                    assert!(job.left - arrival <= bound, "{rule:?} {job:?} > {bound}: {set:?}");
                    bounded += 1;
                    closest = closest.max((job.left - arrival).0 as f64 / bound.0 as f64);
                }
            }
        }
    }
    assert!(bounded > 20_000 && proved > 40 && closest > 0.99, "{bounded} {proved} {closest}");
}

#[test]
fn a_task_that_may_use_several_cores_has_no_bound() {
    let mut rng = Pcg64::seed_from_u64(3);
    let mut set = drawn(&mut rng, 0.2);
    set.system.tasks_mut()[0].cores = CoreSet::of([0, 2].map(CoreId));
    let found = dependent_response_times(&set, PriorityRule::RateMonotonic).unwrap();
    assert!(matches!(found.outcome, Outcome::NotApplicable(_)) && found.bounds.iter().all(Option::is_none));
}

#[test]
fn the_shield_keeps_what_it_guarantees_of_tasks_with_parts() {
    let mut rng = Pcg64::seed_from_u64(41);
    let (mut kept, mut with_parts) = (0, 0);
    for case in 0..200 {
        let set = drawn(&mut rng, 0.2 + 0.9 * (case % 10) as f64 / 10.0);
        let role = Role::on(&set.system);
        let Some(guarantee) = role.guarantee() else { continue };
        let guaranteed: Vec<TaskId> = set.whole_tasks().filter(|task| guarantee.core_of(*task).is_some()).collect();
        // A whole is guaranteed with all its parts.
        for task in &guaranteed {
            assert!(set.parts(*task).all(|part| guarantee.core_of(part).is_some()));
        }
        for inner in ["shield:srpt", "shield:fcfs"] {
            let metrics = simulate(&set, case, ms(800), &mut *build(inner).unwrap(), &mut Unobserved).unwrap();
            for task in &guaranteed {
                let jobs = metrics.tasks[*task].jobs;
                assert_eq!(jobs.met, jobs.released, "{inner} {}: {set:?}", set.tasks()[*task].name);
                kept += jobs.met;
                with_parts += if set.first_part(*task) == *task { 0 } else { jobs.met };
            }
        }
    }
    assert!(kept > 10_000 && with_parts > 5_000, "{kept} jobs, {with_parts} with parts");
}

#[test]
fn changes_concern_the_whole_and_leave_a_valid_set() {
    use temponet_sched::what_if::Change;
    let mut rng = Pcg64::seed_from_u64(51);
    let (mut dropped, mut later) = (0, 0);
    for case in 0..24 {
        let set = drawn(&mut rng, 0.6 + 0.1 * f64::from(case % 6));
        for task in set.whole_tasks() {
            if let Some(without) = Change::Drop(task).apply(&set) {
                assert_eq!(without.task_count(), set.task_count() - 1);
                assert_eq!(without.tasks().len(), set.tasks().len() - set.parts(task).count());
                dropped += 1;
            }
            let deadline = set.tasks()[task].deadline + ms(1);
            let changed = Change::Deadline(task, deadline).apply(&set).unwrap();
            assert!(set.parts(task).all(|part| changed.tasks()[part].deadline == deadline));
            later += 1;
        }
        // The search itself takes its time.
        if case > 1 {
            continue;
        }
        let found = what_if(&set);
        let is_of_whole = |change: &Change| match change {
            Change::Drop(task) | Change::Deadline(task, _) => !set.tasks()[*task].is_part,
            _ => true,
        };
        assert!(found.advice.iter().all(|advised| is_of_whole(&advised.change)));
        assert!(found.guarantee.iter().all(|task| !set.tasks()[*task].is_part));
    }
    assert!(dropped > 15 && later > 50, "{dropped} {later}");
}
