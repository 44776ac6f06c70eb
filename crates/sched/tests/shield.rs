//! Contract of the shield: behind it no scheduler, however bad, misses a deadline that is proved to be safe; it is not
//! just EDF; and where nothing is proved it does not interfere.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::build;
use temponet_sched::catalog::all;
use temponet_sched::shield::{Role, Shield, ShieldCounters};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{
    Arrival, Assignment, CoreId, Costs, ExecutionModel, JobId, Mode, NotApplicable, OnMiss, Scheduler, System,
    SystemView, Task, TaskSet, Time,
};

use crate::bad::{BAD, Bad, BadScheduler, bare, drawn, horizon, inner, shielded, vary};

/// Whether the shield can be armed on this set.
fn is_proved(set: &TaskSet) -> bool {
    let mut shield = Shield::new(BadScheduler::new(Bad::Idle, 0));
    shield.start(&set.system).unwrap();
    shield.why_disarmed().is_none()
}

/// A random set with a utilization of exactly one, in whole milliseconds, with a hyperperiod of 120 ms.
fn full(rng: &mut Pcg64) -> TaskSet {
    let (mut left, mut tasks) = (120, Vec::new());
    while left > 0 {
        let period: u64 = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60, 120][rng.random_range(0..13)];
        let wcet = rng.random_range(1..=period.div_ceil(2)).min(left * period / 120);
        let (period, wcet) = if wcet == 0 { (120, left) } else { (period, wcet) };
        left -= wcet * (120 / period);
        tasks.push(Task::periodic(format!("t{}", tasks.len()), Time::from_ms(period), Time::from_ms(wcet)));
    }
    TaskSet::new("full", tasks, 1)
}

#[test]
fn on_one_core_nothing_is_missed_whoever_chooses() {
    let mut rng = Pcg64::seed_from_u64(1);
    let (mut runs, mut bare_missed, mut sporadic, mut total) = (0, 0, 0, ShieldCounters::default());
    for round in 0..2_500u64 {
        let mut set = match rng.random_bool(0.2) {
            true => full(&mut rng),
            false => {
                let load = rng.random_range(0.4..1.0);
                drawn(&mut rng, load, 1)
            }
        };
        if rng.random_bool(0.7) {
            vary(&mut rng, &mut set);
        }
        if rng.random_bool(0.3) {
            set.system.set_on_miss(OnMiss::Continue);
        }
        if !is_proved(&set) {
            continue;
        }
        let (horizon, choices) = (horizon(&set), BAD.len() + all().len());
        for choice in [round as usize % BAD.len(), rng.random_range(0..choices), rng.random_range(0..choices)] {
            let (name, scheduler) = inner(choice, round);
            let (metrics, counters) = shielded(scheduler, &set, round, horizon);
            assert_eq!(metrics.missed(), 0, "{name} on {set:?}");
            assert_eq!((counters.lapses, counters.decisions), (0, counters.armed), "{name} on {set:?}");
            runs += 1;
            sporadic += u64::from(set.tasks().iter().any(|task| matches!(task.arrival, Arrival::Sporadic { .. })));
            bare_missed += u64::from(bare(inner(choice, round).1, &set, round, horizon).missed() > 0);
            total.decisions += counters.decisions;
            total.deviations += counters.deviations;
            total.overrides += counters.overrides;
            total.kept += counters.kept;
            total.unknown += counters.unknown;
        }
    }
    println!("{runs} runs, {sporadic} of sporadic sets, {bare_missed} with misses when bare: {total:?}");
    assert!(runs > 5_000 && sporadic > 1_500 && bare_missed * 3 > runs, "{runs} {sporadic} {bare_missed}");
    assert!(total.kept > 1_000 && total.unknown * 1_000 < total.decisions, "{total:?}");
}

#[test]
fn offsets_that_make_a_set_schedulable_are_relied_on_as_long_as_they_hold() {
    let ms = Time::from_ms;
    let task =
        |name: &str, offset: u64| Task::periodic(name, ms(8), ms(2)).with_deadline(ms(2)).with_offset(ms(offset));
    // Released together they would miss; one after the other they fill three quarters of the time.
    let slow = Task::periodic("slow", ms(16), ms(4)).with_deadline(ms(16));
    let mut set = TaskSet::new("apart", vec![task("a", 0), task("b", 2), slow], 1);
    assert!(is_proved(&set));
    for (choice, bad) in BAD.into_iter().enumerate() {
        let (metrics, counters) = shielded(inner(choice, 1).1, &set, 0, ms(160));
        assert_eq!((metrics.missed(), counters.lapses), (0, 0), "{bad:?}");
    }
    // Once the arrivals leave their pattern, nothing is proved any more.
    set.push_mode(Mode::new("fast", ms(80)).with_rate(1.1));
    let mut shield = Shield::new(build("edf").unwrap());
    simulate(&set, 0, ms(160), &mut shield, &mut Unobserved).unwrap();
    assert!(shield.why_disarmed().is_some_and(|why| why.to_string().contains("pattern")) && !shield.is_armed());
}

#[test]
fn at_moderate_load_most_choices_are_allowed() {
    for (choice, least) in [("fcfs", 0.2), ("srpt", 0.2), ("rr", 0.2), ("rm", 0.2)] {
        let mut rng = Pcg64::seed_from_u64(2);
        let mut total = ShieldCounters::default();
        for round in 0..200 {
            let set = drawn(&mut rng, 0.7, 1);
            if is_proved(&set) {
                let counters = shielded(build(choice).unwrap(), &set, round, horizon(&set)).1;
                (total.armed, total.deviations) =
                    (total.armed + counters.armed, total.deviations + counters.deviations);
                total.overrides += counters.overrides;
            }
        }
        let allowed = total.deviations as f64 / (total.deviations + total.overrides).max(1) as f64;
        let of_all = total.deviations as f64 / total.armed as f64;
        println!("{choice}: {:.1}% of its deviations from EDF allowed, {:.1}% of all", 100.0 * allowed, 100.0 * of_all);
        assert!(allowed > least, "{choice}: {allowed}");
    }
}

#[test]
fn on_several_cores_nothing_proved_is_missed() {
    let mut rng = Pcg64::seed_from_u64(3);
    let (mut runs, mut overrides) = (0, 0);
    for round in 0..800u64 {
        let cores = rng.random_range(2..=4);
        let load = cores as f64 * rng.random_range(0.6..1.0);
        let mut set = drawn(&mut rng, load, cores);
        if rng.random_bool(0.5) {
            vary(&mut rng, &mut set);
        }
        // Periodic sets with implicit deadlines are proved up to full load.
        let is_plain = |task: &Task| {
            let known = matches!(task.arrival, Arrival::Periodic { .. }) && task.offset.0.is_multiple_of(1_000);
            known && Some(task.deadline) == task.period() && task.jitter == Time::ZERO
        };
        let is_light = set.utilization() < cores as f64 && set.tasks().iter().all(|task| task.utilization() > 2e-3);
        assert!(is_proved(&set) || !is_light || !set.tasks().iter().all(is_plain), "{set:?}");
        if !is_proved(&set) {
            continue;
        }
        for choice in [round as usize % BAD.len(), rng.random_range(0..BAD.len() + all().len())] {
            let (name, mut scheduler) = inner(choice, round);
            if scheduler.start(&set.system).is_err() {
                continue;
            }
            let (metrics, counters) = shielded(scheduler, &set, round, horizon(&set));
            assert_eq!((metrics.missed(), counters.lapses), (0, 0), "{name} on {set:?}");
            runs += 1;
            overrides += counters.overrides;
        }
    }
    assert!(runs > 500 && overrides > runs, "{runs} {overrides}");
}

#[test]
fn after_an_overload_it_is_armed_again_at_the_first_idle_instant() {
    // Twice the work between 100 and 150 ms.
    let ms = Time::from_ms;
    let tasks = vec![Task::periodic("a", ms(10), ms(4)), Task::periodic("b", ms(15), ms(4))];
    let mut set = TaskSet::new("peak", tasks, 1);
    let mode = |at: u64, work: f64| Mode::new("m", ms(at)).with_work(work);
    set.set_modes(vec![mode(100, 2.0), mode(150, 1.0)]);
    for (choice, bad) in BAD.into_iter().enumerate() {
        for on_miss in [OnMiss::Abort, OnMiss::Continue] {
            set.system.set_on_miss(on_miss);
            let mut shield = Shield::new(BadScheduler::new(bad, 1));
            let long = simulate(&set, 0, ms(1_000), &mut shield, &mut Unobserved).unwrap();
            assert_eq!(shield.why_disarmed(), None);
            let counters = shield.counters();
            assert!(counters.lapses > 0 && counters.armed < counters.decisions, "{bad:?} {counters:?}");
            if bad != Bad::Idle && bad != Bad::Random {
                assert!(shield.is_armed(), "{bad:?}");
                // All misses belong to the peak and to the backlog that it leaves.
                let short = simulate(&set, 0, ms(400), &mut shield, &mut Unobserved).unwrap();
                assert_eq!(long.missed(), short.missed(), "{bad:?} ({choice}), {on_miss:?}");
            }
        }
    }
}

#[test]
fn overruns_disarm_it_unless_they_are_provided_for() {
    let ms = Time::from_ms;
    let overrunning = |high: u64| {
        let mut task = Task::periodic("a", ms(10), ms(4));
        task.wcet_high = Some(ms(high));
        task.execution = ExecutionModel::Overrun { probability: 0.2, below: Box::new(ExecutionModel::Wcet) };
        TaskSet::new("overrun", vec![task, Task::periodic("b", ms(14), ms(5)), Task::periodic("c", ms(70), ms(7))], 1)
    };
    for bad in BAD {
        let (metrics, counters) = shielded(Box::new(BadScheduler::new(bad, 1)), &overrunning(5), 1, ms(7_000));
        assert_eq!((metrics.missed(), counters.lapses), (0, 0), "{bad:?}");
    }
    let (_, counters) = shielded(build("edf").unwrap(), &overrunning(8), 1, ms(7_000));
    assert!(counters.lapses > 10 && counters.armed > counters.decisions / 4, "{counters:?}");
}

#[test]
fn in_overload_the_inner_scheduler_rules_but_impossible_jobs_make_way() {
    let mut rng = Pcg64::seed_from_u64(4);
    let choices = ["fcfs", "edf", "srpt", "edf-skip", "mh-edf", "edzl"];
    let mut met = vec![(0u64, 0u64); BAD.len() + choices.len()];
    for round in 0..240 {
        let cores = [1, 1, 2, 4][round as usize % 4];
        let mut set = drawn(&mut rng, 1.3 * cores as f64, cores);
        let horizon = horizon(&set).min(Time::from_ms(200));
        if round % 3 == 0 {
            set.system.set_on_miss(OnMiss::Continue);
        }
        for (place, met) in met.iter_mut().enumerate() {
            let scheduler = || -> Box<dyn Scheduler> {
                match BAD.get(place) {
                    Some(bad) => Box::new(BadScheduler::new(*bad, round)),
                    None => build(choices[place - BAD.len()]).unwrap(),
                }
            };
            let (metrics, counters) = shielded(scheduler(), &set, round, horizon);
            assert_eq!(counters.armed, 0);
            met.0 += metrics.jobs.met;
            met.1 += bare(scheduler(), &set, round, horizon).jobs.met;
        }
    }
    for (place, (with, without)) in met.into_iter().enumerate() {
        let name = BAD.get(place).map_or_else(|| choices[place - BAD.len()].to_string(), |bad| format!("{bad:?}"));
        println!("{name}: {with} met behind the shield, {without} bare");
        assert!(with as f64 >= 0.99 * without as f64, "{name}: {with} {without}");
    }
}

#[test]
fn what_it_cannot_rely_on_is_said() {
    let ms = Time::from_ms;
    let why = |set: &TaskSet| {
        let mut shield = Shield::new(build("edf").unwrap());
        shield.start(&set.system).unwrap();
        shield.why_disarmed().map(ToString::to_string).unwrap_or_default()
    };
    let set = TaskSet::new("s", vec![Task::periodic("a", ms(10), ms(11))], 1);
    assert!(why(&set).contains("overloaded"));
    let task = Task::periodic("late", ms(10), ms(1)).with_jitter(ms(12)).with_deadline(ms(40));
    assert!(why(&TaskSet::new("s", vec![task], 1)).contains("\"late\" can overtake"));
    let arrival = Arrival::Burst { jobs: 2, every: ms(10), until: Time::NEVER };
    let task = Task::periodic("peak", ms(10), ms(1)).with_arrival(arrival).with_jitter(ms(1));
    assert!(why(&TaskSet::new("s", vec![task], 1)).contains("\"peak\" are released one by one"));
    let task = Task::periodic("a", ms(10), ms(1)).with_arrival(Arrival::Listed([].into()));
    assert!(why(&TaskSet::new("s", vec![task], 1)).contains("list"));
}

#[test]
fn an_illegal_choice_is_still_an_error() {
    struct Illegal;
    impl Scheduler for Illegal {
        fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
            Ok(())
        }
        fn decide(&mut self, _view: &SystemView<'_>, assignment: &mut Assignment) {
            assignment.run(CoreId(0), JobId(77));
        }
    }
    let set = TaskSet::new("s", vec![Task::periodic("a", Time::from_ms(10), Time::from_ms(1))], 1);
    let error = simulate(&set, 0, Time::from_ms(50), &mut Shield::new(Illegal), &mut Unobserved).unwrap_err();
    assert!(error.to_string().contains("unknown job id 77"), "{error}");
}

#[test]
fn what_switches_and_decisions_cost_is_provided_for() {
    let mut rng = Pcg64::seed_from_u64(6);
    let (mut runs, mut bare_missed) = (0, 0);
    for round in 0..1_500u64 {
        let load = rng.random_range(0.5..1.0);
        let mut set = drawn(&mut rng, load, 1);
        if rng.random_bool(0.5) {
            vary(&mut rng, &mut set);
        }
        let mut cost = || Time::from_us(rng.random_range(0..10));
        set.system.set_costs(Costs { context_switch: cost(), decision: cost(), ..Costs::default() });
        if !is_proved(&set) {
            continue;
        }
        let choice = rng.random_range(0..BAD.len() + all().len());
        let (name, scheduler) = inner(choice, round);
        let (metrics, counters) = shielded(scheduler, &set, round, horizon(&set));
        assert_eq!((metrics.missed(), counters.lapses), (0, 0), "{name} on {set:?}");
        runs += 1;
        bare_missed += u64::from(bare(inner(choice, round).1, &set, round, horizon(&set)).missed() > 0);
    }
    println!("with costs: {runs} runs, {bare_missed} with misses when bare");
    assert!(runs > 500 && bare_missed * 5 > runs, "{runs} {bare_missed}");
}

#[test]
fn its_role_is_said() {
    let ms = Time::from_ms;
    let tasks = |wcet: u64| vec![Task::periodic("a", ms(10), ms(wcet)), Task::periodic("b", ms(20), ms(wcet))];
    let costs = Costs { context_switch: Time::from_us(10), ..Costs::default() };
    let one = TaskSet::new("one core", tasks(3), 1);
    let two = TaskSet::new("two cores", tasks(6), 2);
    let costly = TaskSet::new("costly", tasks(3), 1).with_costs(costs);
    let thirds = (0..3).map(|task| Task::periodic(format!("t{task}"), ms(9), ms(6))).collect();
    let indivisible = TaskSet::new("not divisible", thirds, 2);
    let over = TaskSet::new("overloaded", tasks(9), 1);
    let mut critical = TaskSet::new("critical", tasks(9), 1);
    critical.system.tasks_mut()[1].criticality = 1;
    let mut asked = critical.clone();
    asked.system.tasks_mut()[0].guarantee = true;
    let mut too_much = TaskSet::new("too much", tasks(9), 1);
    too_much.system.tasks_mut().iter_mut().for_each(|task| task.guarantee = true);
    for (set, sentence, stands_in) in [
        (&one, "guarantees every deadline by slack stealing", false),
        (&two, "guarantees every deadline by slack stealing", false),
        (&costly, "guarantees every deadline by slack stealing", false),
        (&indivisible, "guarantees every deadline; C=D splitting decides alone, the network is not followed", true),
        (&over, "guarantees nothing: the set is overloaded, and no task is critical", false),
        (&critical, "guarantees every deadline of 1 of 2 tasks by slack stealing: b", false),
        (&asked, "guarantees every deadline of 1 of 2 tasks by slack stealing: a", false),
        (&too_much, "guarantees every deadline of 1 of 2 tasks by slack stealing: b; not a", false),
    ] {
        let mut shield = Shield::new(build("srpt").unwrap());
        simulate(set, 0, ms(200), &mut shield, &mut Unobserved).unwrap();
        assert_eq!(shield.role().sentence("the network"), sentence, "{}", set.name);
        assert_eq!(Role::on(&set.system), shield.role());
        let ShieldCounters { decisions, stand_in, .. } = shield.counters();
        assert_eq!(stand_in, if stands_in { decisions } else { 0 }, "{}", set.name);
        assert!(Scheduler::counters(&shield).contains(&("stand_in_decisions", stand_in)));
    }
}
