//! Contract: the event-driven engine with the real schedulers produces, job by job, the schedule of a naive simulator
//! (`support`), with the same preemptions, migrations, and times in which jobs hold and wait for resources. Tested on
//! random small sets with both miss rules, one to four cores, known and uncertain execution times; with limits on
//! preemption, tasks that come after each other, cores that differ, shared resources, costs of switches and jobs that
//! carry estimates, each alone and together.

use proptest::prelude::*;
use temponet_sim::{JobRecord, Recorder, Stretch, simulate};
use temponet_task::{Costs, ResourceId, Section, Task, TaskSet, Time};

use crate::support::naive;
use crate::support::rules::rule;
use crate::support::sets::{
    any_edges, any_estimates, any_limits, any_machine, any_set, any_sharing, with_estimates, with_limits, with_machine,
    with_precedence, with_sharing,
};

/// Tick of sets on cores of full speed, on the scale that quanta are made for.
const MS: Time = Time::from_ms(1);
/// Tick of sets on cores of any speed, on which jobs complete within nanoseconds.
const NS: Time = Time(1);
/// Length of a run in ticks.
const TICKS: u64 = 80;

/// Schedulers with a naive form for independent jobs on identical cores.
const NAMES: [&str; 18] = [
    "g-fl",
    "edf-us",
    "fcfs",
    "rr",
    "fp",
    "rm",
    "dm",
    "edf",
    "llf",
    "srpt",
    "edf-skip",
    "mh-edf",
    "edzl",
    "p-edf",
    "c-edf",
    "p-rm",
    "pd2",
    "look-ahead:caution=1",
];

/// Schedulers with a naive form for everything.
const ROBUST: [&str; 8] = ["fcfs", "fp", "edf", "rm", "dm", "srpt", "edf-skip", "llf:quantum=1ns"];

/// Schedulers whose order does not depend on what switches cost.
const BY_FIXED_KEYS: [&str; 5] = ["fcfs", "fp", "edf", "rm", "dm"];

/// Schedulers whose naive form does not count on periodic releases, and those for tasks that come after each other.
fn for_graphs(set: &TaskSet) -> impl Iterator<Item = &'static str> {
    let counts_on_periods = ["pd2", "look-ahead:caution=1"];
    let own = ["edf-chain", "hlfet"].into_iter().filter(|_| set.has_precedence());
    NAMES.into_iter().filter(move |name| !counts_on_periods.contains(name)).chain(own)
}

/// Compares a run under a scheduler with its naive form.
fn agrees(set: &TaskSet, seed: u64, tick: Time, name: &str) -> Result<(), TestCaseError> {
    let horizon = Time(tick.0 * TICKS);
    let mut expected = naive(set, seed, tick, horizon, rule(name));
    let mut recorder = Recorder::until(Time::NEVER);
    let mut scheduler = temponet_sched::build(name).unwrap();
    let metrics = simulate(set, seed, horizon, &mut *scheduler, &mut recorder).unwrap();
    let order = |job: &JobRecord| (job.task, job.number);
    expected.jobs.sort_by_key(order);
    recorder.jobs.sort_by_key(order);
    prop_assert_eq!(&recorder.jobs, &expected.jobs, "{}", name);
    // Partitions have cores of their own in the real scheduler only; who waits for a resource gives its core up without
    // being preempted.
    if !matches!(name, "p-edf" | "c-edf" | "p-rm") && set.resources().is_empty() {
        let (preemptions, migrations) = (expected.preemptions, expected.migrations);
        prop_assert_eq!((metrics.preemptions, metrics.migrations), (preemptions, migrations), "{}", name);
    }
    let by_time = |stretch: &Stretch| (stretch.task, stretch.number, stretch.resource, stretch.start, stretch.end);
    expected.waits.retain(|wait| wait.start < wait.end);
    for stretches in [&mut expected.holds, &mut expected.waits, &mut recorder.holds, &mut recorder.waits] {
        stretches.sort_by_key(by_time);
    }
    prop_assert_eq!(&recorder.holds, &expected.holds, "{} holds", name);
    prop_assert_eq!(&recorder.waits, &expected.waits, "{} waits", name);
    let counted = |wait: &&Stretch| {
        let record = expected.jobs.iter().find(|job| order(job) == (wait.task, wait.number)).unwrap();
        record.deadline <= horizon
    };
    let waited: u128 = expected.waits.iter().filter(counted).map(|wait| u128::from((wait.end - wait.start).0)).sum();
    prop_assert_eq!(metrics.tasks.iter().map(|task| task.blocked_sum).sum::<u128>(), waited, "{}", name);
    Ok(())
}

fn all_agree<'a>(
    set: &TaskSet,
    seed: u64,
    tick: Time,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(set.system.validate(), Ok(()));
    names.into_iter().try_for_each(|name| agrees(set, seed, tick, name))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_scheduler_agrees_with_its_naive_form(set in any_set(MS), seed in 0u64..1000) {
        all_agree(&set, seed, MS, NAMES)?;
    }

    #[test]
    fn estimates(set in any_set(MS), estimates in any_estimates(), seed in 0u64..1000) {
        let set = with_estimates(set, &estimates);
        // The naive form of look-ahead knows no importance.
        let has_form = |name: &&str| !set.has_critical_tasks() || !name.starts_with("look-ahead");
        all_agree(&set, seed, MS, NAMES.into_iter().filter(has_form))?;
    }

    #[test]
    fn limits_on_preemption(set in any_set(MS), limits in any_limits(), seed in 0u64..1000) {
        // These cut jobs themselves.
        let takes_limits = |name: &&str| !["pd2", "rr"].contains(name);
        all_agree(&with_limits(set, &limits, MS), seed, MS, NAMES.into_iter().filter(takes_limits))?;
    }

    #[test]
    fn precedence(set in any_set(MS), edges in any_edges(), seed in 0u64..1000) {
        let set = with_precedence(set, &edges, MS);
        all_agree(&set, seed, MS, for_graphs(&set))?;
    }

    #[test]
    fn limits_on_preemption_and_precedence(
        set in any_set(MS),
        limits in any_limits(),
        edges in any_edges(),
        seed in 0u64..1000,
    ) {
        let set = with_precedence(with_limits(set, &limits, MS), &edges, MS);
        let names = ["edf", "dm", "fcfs", "mh-edf", "edf-chain", "hlfet"];
        all_agree(&set, seed, MS, for_graphs(&set).filter(|name| names.contains(name)))?;
    }

    #[test]
    fn cores_that_differ(set in any_set(NS), machine in any_machine(), seed in 0u64..1000) {
        all_agree(&with_machine(set, &machine), seed, NS, ROBUST)?;
    }

    #[test]
    fn sections(set in any_set(NS), sharing in any_sharing(), seed in 0u64..1000) {
        all_agree(&with_sharing(set, &sharing, NS), seed, NS, ROBUST)?;
    }

    #[test]
    fn sections_and_limits_on_preemption(
        set in any_set(NS),
        sharing in any_sharing(),
        limits in any_limits(),
        seed in 0u64..1000,
    ) {
        all_agree(&with_limits(with_sharing(set, &sharing, NS), &limits, NS), seed, NS, ROBUST)?;
    }

    #[test]
    fn sections_and_cores_that_differ(
        set in any_set(NS),
        sharing in any_sharing(),
        machine in any_machine(),
        seed in 0u64..1000,
    ) {
        all_agree(&with_machine(with_sharing(set, &sharing, NS), &machine), seed, NS, ROBUST)?;
    }

    #[test]
    fn sections_and_precedence(
        set in any_set(NS),
        sharing in any_sharing(),
        edges in any_edges(),
        seed in 0u64..1000,
    ) {
        all_agree(&with_precedence(with_sharing(set, &sharing, NS), &edges, NS), seed, NS, ROBUST)?;
    }

    #[test]
    fn everything_at_once(
        set in any_set(NS),
        sharing in any_sharing(),
        limits in any_limits(),
        machine in any_machine(),
        edges in any_edges(),
        seed in 0u64..1000,
    ) {
        let set = with_machine(with_limits(with_sharing(set, &sharing, NS), &limits, NS), &machine);
        all_agree(&with_precedence(set, &edges, NS), seed, NS, ROBUST)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Jobs that came to several sections at once got a core only to lose it in the same instant: they started too
    /// early, and paid for the switch twice.
    #[test]
    fn sections_and_costs(
        set in any_set(NS),
        sharing in any_sharing(),
        limits in any_limits(),
        context_switch in 0u64..=2,
        migration in 0u64..=2,
        seed in 0u64..1000,
    ) {
        let mut set = with_limits(with_sharing(set, &sharing, NS), &limits, NS);
        set.system.set_costs(Costs { context_switch: Time(context_switch), migration: Time(migration), ..Costs::default() });
        all_agree(&set, seed, NS, BY_FIXED_KEYS)?;
    }
}

/// The smallest set in which that happened.
#[test]
fn a_job_starts_when_it_can_lock_all_that_it_comes_to() {
    let us = Time::from_us;
    let section = |resource: u32| Section { resource: ResourceId(resource), at: Time::ZERO, length: us(1_000) };
    let task = |name: &str, deadline: u64| Task::periodic(name, us(10_000), us(1_000)).with_deadline(us(deadline));
    let tasks = vec![
        task("holds", 5_000).with_sections(vec![section(1)]),
        task("nests", 6_000).with_sections(vec![section(0), section(1)]),
    ];
    let mut set = TaskSet::new("nested", tasks, 2).with_resources(vec!["r0".into(), "r1".into()]);
    set.system.set_costs(Costs { context_switch: us(100), ..Costs::default() });
    let mut recorder = Recorder::until(Time::NEVER);
    let mut scheduler = temponet_sched::build("edf").unwrap();
    simulate(&set, 1, us(10_000), &mut *scheduler, &mut recorder).unwrap();
    recorder.jobs.sort_by_key(|job| job.task);
    let times: Vec<_> = recorder.jobs.iter().map(|job| (job.start, job.left)).collect();
    assert_eq!(times, [(Some(Time::ZERO), us(1_100)), (Some(us(1_100)), us(2_200))]);
}
