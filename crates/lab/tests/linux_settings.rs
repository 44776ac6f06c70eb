//! Contract of settings of Linux: what is called proved never misses in simulation, over random sets with adversarial
//! phases and execution times; the plans that are found are among what is proved; and forms are quoted.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_lab::linux::advice::{AdvicePlan, SettingsAdvice, Verdict, advise};
use temponet_lab::linux::apply::{Applied, Form};
use temponet_lab::linux::{LinuxPolicies, Policy, Setting, Settings, plans, proved};
use temponet_lab::progress::Progress;
use temponet_lab::roster::Roster;
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{CoreId, CoreSet, Costs, ExecutionModel, OnMiss, Preemption, Task, TaskId, TaskSet, Time};

use crate::task_sets::{Kind, drawn, ms, set};

/// Simulates a set with settings for twelve of its longest periods.
fn run(set: &TaskSet, settings: &Settings, seed: u64) -> Metrics {
    let horizon = set.tasks().iter().filter_map(Task::period).max().unwrap() * 12;
    let mut scheduler = LinuxPolicies::new(settings.clone());
    simulate(&settings.applied(set), seed, horizon, &mut scheduler, &mut Unobserved).unwrap()
}

/// Asserts that no task that is proved misses a deadline; returns the number of those tasks.
fn assert_proofs_hold(set: &TaskSet, settings: &Settings, seed: u64) -> usize {
    let bounds = proved(set, settings);
    if bounds.iter().all(Option::is_none) {
        return 0;
    }
    let metrics = run(set, settings, seed);
    for (at, bound) in bounds.iter().enumerate().filter(|(_, bound)| bound.is_some()) {
        let jobs = metrics.tasks[at].jobs;
        assert_eq!(jobs.met, jobs.released, "task {at} {bound:?}: {settings:?} {set:?}");
    }
    bounds.iter().flatten().count()
}

/// A random set, with phases that are tried anew each time.
fn random_set(rng: &mut Pcg64, round: u64) -> TaskSet {
    let cores = [1, 1, 2, 2, 3][round as usize % 5];
    let kind = if round.is_multiple_of(2) { Kind::Wild } else { Kind::Plain };
    let mut set = drawn(rng, cores, kind);
    if round.is_multiple_of(3) {
        for task in set.system.tasks_mut().iter_mut() {
            let period = task.period().unwrap().0;
            task.offset = Time(rng.random_range(0..period));
        }
    }
    if round.is_multiple_of(7) {
        for task in set.system.tasks_mut().iter_mut() {
            if rng.random_bool(0.3) {
                task.preemption = Preemption::None;
            }
        }
    }
    if round.is_multiple_of(4) {
        set.system.set_on_miss(OnMiss::Continue);
    }
    if round.is_multiple_of(13) {
        set.system.set_costs(Costs { context_switch: Time::from_us(rng.random_range(0..100)), ..*set.costs() });
    }
    set
}

#[test]
fn what_is_proved_of_plans_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(42);
    let (mut fifo, mut reserved, mut global, mut kept) = (0, 0, 0, 0);
    for round in 0..1_200 {
        let set = random_set(&mut rng, round);
        for plan in plans(&set, [0.0, 0.1, 0.5][round as usize % 3]) {
            let count = assert_proofs_hold(&set, &plan.settings, round);
            let is_reserved = plan.name.contains("DEADLINE");
            fifo += usize::from(count > 0 && !is_reserved);
            reserved += usize::from(count > 0 && is_reserved);
            global += usize::from(count > 0 && set.cores() > 1 && plan.name.contains("all cores"));
            kept += usize::from(count > 0 && !plan.given_up.is_empty());
        }
    }
    assert!(fifo > 500 && reserved > 300 && global > 50 && kept > 50, "{fifo} {reserved} {global} {kept}");
}

/// Tasks that follow each other, each on one core by SCHED_FIFO.
#[test]
fn what_is_proved_of_tasks_that_follow_each_other_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(45);
    let mut proofs = 0;
    for round in 0..1_500u64 {
        let cores = rng.random_range(1..=2);
        let mut tasks: Vec<Task> = Vec::new();
        for index in 0..rng.random_range(2..=6) {
            let follows = index > 0 && rng.random_bool(0.5);
            let (period, before) = match follows {
                true => (tasks[index - 1].period().unwrap(), vec![TaskId::new(index - 1)]),
                false => (ms([10, 20, 40, 50][rng.random_range(0..4)]), Vec::new()),
            };
            let wcet = Time((period.0 as f64 * rng.random_range(0.02..0.25)) as u64);
            let deadline = Time(period.0 * rng.random_range(60..160) / 100);
            let mut task = Task::periodic(format!("t{index}"), period, wcet).with_deadline(deadline).with_after(before);
            (task.bcet, task.execution) = (Time(wcet.0 / 2), ExecutionModel::Uniform);
            tasks.push(task);
        }
        let mut set = TaskSet::new("chains", tasks, cores);
        set.system.follow_sources().unwrap();
        if round.is_multiple_of(2) {
            set.system.set_on_miss(OnMiss::Continue);
        }
        let mut priorities: Vec<u8> = (1..=set.tasks().len() as u8).collect();
        priorities.shuffle(&mut rng);
        let thread = |priority: u8| Setting {
            policy: Policy::Fifo { priority },
            cores: CoreSet::of([CoreId(rng.random_range(0..cores as u32))]),
        };
        let threads = priorities.into_iter().map(thread).collect();
        let settings = Settings { threads, has_partitions: false };
        proofs += assert_proofs_hold(&set, &settings, round);
        for plan in plans(&set, 0.1) {
            proofs += assert_proofs_hold(&set, &plan.settings, round);
        }
    }
    assert!(proofs > 2_000, "{proofs}");
}

/// Settings that nobody would choose: a proof of them holds as well.
#[test]
fn what_is_proved_of_any_settings_is_never_refuted() {
    let mut rng = Pcg64::seed_from_u64(43);
    let mut by_class = [0; 3];
    for round in 0..6_000 {
        let set = random_set(&mut rng, round);
        let cores = set.cores();
        let is_pinned = rng.random_bool(0.7);
        let reserve = rng.random_range(0.0..0.8);
        let mut thread = |task: &Task| {
            let period = task.period().unwrap();
            let policy = if rng.random_bool(reserve) {
                let deadline = Time(task.deadline.min(period).saturating_sub(task.jitter).0.max(1));
                let budget = task.wcet.0 * rng.random_range(90..150) / 100;
                Policy::Deadline { budget: Time(budget.clamp(1, deadline.0)), deadline, period }
            } else if rng.random_bool(0.9) {
                Policy::Fifo { priority: rng.random_range(1..8) }
            } else {
                Policy::Other { nice: rng.random_range(-20..=19) }
            };
            let own = CoreId(rng.random_range(0..cores as u32));
            Setting { policy, cores: if is_pinned { CoreSet::of([own]) } else { CoreSet::ALL } }
        };
        let threads: Vec<Setting> = set.tasks().iter().map(&mut thread).collect();
        let settings = Settings { threads, has_partitions: is_pinned };
        if assert_proofs_hold(&set, &settings, round) > 0 {
            for (at, _) in proved(&set, &settings).iter().enumerate().filter(|(_, bound)| bound.is_some()) {
                by_class[match settings.threads[at].policy {
                    Policy::Deadline { .. } => 0,
                    Policy::Fifo { .. } => 1,
                    Policy::Other { .. } => 2,
                }] += 1;
            }
        }
    }
    assert!(by_class[0] > 500 && by_class[1] > 1_000 && by_class[2] == 0, "{by_class:?}");
}

fn advice(set: TaskSet) -> SettingsAdvice {
    let (horizon, roster) = (ms(2_000), Roster::classical());
    let plan = AdvicePlan { set, may_leave_cores: false, margin: 0.1, horizon, seed: 1, runs: 4, roster };
    advise(plan, &Progress::busy("advice")).unwrap()
}

#[test]
fn a_set_that_fair_shares_miss_is_proved_with_priorities() {
    // A control loop with 2 of 5 ms beside 50 of 100 ms.
    let advice = advice(set(&[(2, 4, 5), (50, 100, 100)], 1));
    let (best, today) = (advice.best().unwrap(), advice.today().unwrap());
    assert_eq!((best.verdict(), today.verdict()), (Verdict::Proved, Verdict::Simulated));
    assert!(!best.is_today && today.share().unwrap() < 1.0, "{:?}", today.share());
    assert!(advice.verdict().contains("is proved to meet every deadline"), "{}", advice.verdict());
    let growth = best.growth.unwrap();
    assert!((1.0..1.2).contains(&growth), "{growth}");
}

#[test]
fn what_does_not_fit_gives_up_what_matters_least() {
    let mut overloaded = set(&[(5, 10, 10), (5, 10, 10), (5, 20, 20)], 1);
    overloaded.system.tasks_mut()[2].criticality = 1;
    let advice = advice(overloaded);
    let line = advice.lines.iter().find(|line| !line.given_up.is_empty()).unwrap();
    assert!(line.bounds[2].is_some(), "the critical task is kept");
    assert_eq!(line.proved_tasks() + line.given_up.len(), 3);
    assert!(line.bounds[0].is_some() != line.bounds[1].is_some(), "{:?}", line.bounds);
}

#[test]
fn reservations_stay_within_what_the_kernel_admits() {
    let mut rng = Pcg64::seed_from_u64(44);
    let mut seen = 0;
    for round in 0..300 {
        let set = random_set(&mut rng, round);
        for plan in plans(&set, 0.1).iter().filter(|plan| plan.name.contains("DEADLINE")) {
            assert!(plan.settings.is_admitted(set.cores()), "{plan:?}");
            for thread in &plan.settings.threads {
                if let Policy::Deadline { budget, deadline, period } = thread.policy {
                    assert!(budget <= deadline && deadline <= period && budget >= Time(1024), "{thread:?}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn a_reservation_keeps_its_budget_and_waits_for_the_next_period() {
    // A job of 4 ms under a budget of 2 ms in 10 ms ends 12 ms after its release, whoever else is idle.
    let mut one = set(&[(4, 20, 20)], 1);
    one.system.set_on_miss(OnMiss::Continue);
    let reserve = |budget| Policy::Deadline { budget: ms(budget), deadline: ms(10), period: ms(10) };
    let settings = |budget| Settings {
        threads: vec![Setting { policy: reserve(budget), cores: CoreSet::ALL }],
        has_partitions: false,
    };
    let response = |budget| run(&one, &settings(budget), 1).art_completed().unwrap();
    assert!((response(2) - 12e6).abs() < 1.0, "{}", response(2));
    assert!((response(4) - 4e6).abs() < 1.0, "{}", response(4));
}

#[test]
fn fair_shares_are_even_and_nice_values_weigh() {
    // Two threads that always have work, 10 s: each has half, or 1024 parts of 1024 + 335 with a nice value of 5.
    let mut two = set(&[(1000, 1000, 1000), (1000, 1000, 1000)], 1);
    two.system.set_on_miss(OnMiss::Continue);
    let completed = |nice: i8| -> Vec<u64> {
        let other = |nice| Setting { policy: Policy::Other { nice }, cores: CoreSet::ALL };
        let settings = Settings { threads: vec![other(0), other(nice)], has_partitions: false };
        run(&two, &settings, 1).tasks.iter().map(|task| task.completed).collect()
    };
    assert_eq!(completed(0), [6, 6]);
    let weighed = completed(5);
    assert!(weighed[0] == 9 && weighed[1] <= 3, "{weighed:?}");
}

#[test]
fn forms_quote_the_names_of_users() {
    let mut nasty = set(&[(1, 10, 10), (2, 20, 20)], 2);
    nasty.system.tasks_mut()[0].name = "a'; rm /; 'b".into();
    nasty.system.tasks_mut()[1].name = "quote\" back\\ $(x)".into();
    let threads = vec![
        Setting { policy: Policy::Fifo { priority: 7 }, cores: CoreSet::of([CoreId(1)]) },
        Setting { policy: Policy::Other { nice: 3 }, cores: CoreSet::ALL },
    ];
    let settings = Settings { threads, has_partitions: false };
    let text = |form: Form| form.write(&nasty, &settings).unwrap().text;
    assert!(text(Form::Chrt).contains(r"thread 'a'\''; rm /; '\''b' fifo 7"), "{}", text(Form::Chrt));
    assert!(text(Form::Cie).contains(
        "id: \"quote\\\" back\\\\ $(x)\"\n    affinity:\n      - 0\n      - 1\n    policy: SCHED_OTHER\n    nice: 3"
    ));
    assert!(text(Form::Cie).contains("affinity:\n      - 1\n    policy: SCHED_FIFO\n    priority: 7"));
    assert!(text(Form::Systemd).contains(r"a\x27\x3b\x20rm\x20-\x3b\x20\x27b.service.d"));
    let workload: serde_json::Value = serde_json::from_str(&text(Form::RtApp)).unwrap();
    // rt-app names files after its threads.
    let first = &workload["tasks"]["a'; rm _; 'b"];
    assert_eq!((&first["policy"], &first["priority"], &first["cpus"][0]), (&"SCHED_FIFO".into(), &7.into(), &1.into()));
    assert!(text(Form::Toml).contains("priority = 7"));
    nasty.system.tasks_mut()[0].name = "fifteen bytes é".into();
    let applied = Form::Chrt.write(&nasty, &settings).unwrap();
    assert!(applied.notes.iter().any(|note| note.contains("cuts its name within a character")), "{applied:?}");
    assert!(!applied.text.contains("fifteen"), "{}", applied.text);
}

#[test]
fn every_form_says_where_a_thread_may_run() {
    let set = set(&[(1, 10, 10), (2, 20, 20)], 2);
    let written = |policy: Policy, cores: CoreSet, has_partitions: bool, form: Form| {
        let thread = Setting { policy, cores };
        let settings = Settings { threads: vec![thread.clone(), thread], has_partitions };
        form.write(&set, &settings).unwrap()
    };
    let (fifo, all, second) = (Policy::Fifo { priority: 7 }, CoreSet::ALL, CoreSet::of([CoreId(1)]));
    // A drop-in's affinity is added to that of its unit unless it is emptied first.
    for (cores, affinity) in [(&all, "CPUAffinity=\nCPUAffinity=0 1\n"), (&second, "CPUAffinity=\nCPUAffinity=1\n")] {
        let systemd = written(fifo, cores.clone(), false, Form::Systemd);
        assert!(systemd.text.contains(affinity) && systemd.notes.is_empty(), "{systemd:?}");
    }
    let reserved = Policy::Deadline { budget: ms(2), deadline: ms(10), period: ms(10) };
    // The kernel refuses reservations with affinities.
    let on_all = written(reserved, all, false, Form::Systemd).text;
    assert!(on_all.contains("CPUAffinity=\nEND"), "{on_all}");
    for form in [Form::Chrt, Form::Systemd, Form::Cie] {
        let Applied { text, notes } = written(reserved, second.clone(), true, form);
        assert!(text.contains("ts cpuset: a partition root with processor 1"), "{text}");
        assert!(!text.contains("CPUAffinity=1") && !text.contains("      - 1") && !text.contains("pin 1"), "{text}");
        assert!(notes.iter().any(|note| note.contains("cpusets that are partition roots")), "{notes:?}");
    }
}

/// Whoever matters most is kept, by a smaller margin if need be; whole budgets stay as they are.
#[test]
fn a_smaller_margin_keeps_a_critical_task() {
    let mut set = set(&[(5, 10, 10), (8, 20, 20), (9, 20, 20), (6, 40, 40)], 1);
    for (task, criticality) in set.system.tasks_mut().iter_mut().zip([2, 1, 0, 0]) {
        task.criticality = criticality;
    }
    let reserved = |margin: f64| {
        let plans = plans(&set, margin).into_iter();
        plans.filter(|plan| plan.name.starts_with("DEADLINE")).map(|plan| (plan.name, plan.settings)).next().unwrap()
    };
    let (name, settings) = reserved(0.1);
    assert_eq!(name, "DEADLINE, wcet + 5%, 2 given up");
    assert!(settings.threads[0].policy.bandwidth() > 0.5 && settings.threads[1].policy.bandwidth() > 0.4);
    let budget = |policy: Policy| match policy {
        Policy::Deadline { budget, .. } => budget,
        _ => Time::ZERO,
    };
    assert_eq!(budget(reserved(0.0).1.threads[0].policy), Time::from_ms(5));
}
