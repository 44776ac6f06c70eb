//! The search schedulers: what their methods gain over random search, and that they know no more than an online scheduler may.

use crate::two_worlds;
use temponet::search::{ALL, Method, SearchSettings, find};
use temponet::{Scheduler, Task, TaskSet, Time};
use temponet_sched::build;
use temponet_sim::{Unobserved, simulate};

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// Jobs that all come at once, more than the core can do. There is one search, at the first decision.
fn one_window() -> TaskSet {
    let job = |k: u64| {
        let task = Task::periodic(format!("job {k}"), ms(1_000), ms(6 + 17 * k % 23));
        task.with_deadline(ms(40 + 31 * k % 190))
    };
    TaskSet::new("window", (0..30).map(job).collect(), 1)
}

fn met(set: &TaskSet, scheduler: &mut dyn Scheduler) -> u64 {
    simulate(set, 1, ms(1_000), scheduler, &mut Unobserved).unwrap().jobs.met
}

/// Jobs in time in eight searches with different seeds.
fn met_by(method: &Method, evaluations: usize) -> u64 {
    let settings = |seed| SearchSettings { evaluations, seed, ..SearchSettings::default() };
    (1..=8).map(|seed| met(&one_window(), &mut *method.scheduler(settings(seed)))).sum()
}

fn method(name: &str) -> &'static Method {
    find(name).unwrap().0
}

#[test]
fn every_method_beats_random_search_with_as_many_evaluations() {
    let random = met_by(method("random-search"), 300);
    let known = 8 * met(&one_window(), &mut *build("edf-skip").unwrap());
    assert!(random >= known, "{random} against {known}");
    for method in ALL.iter().filter(|method| method.name != "random-search") {
        let met = met_by(method, 300);
        assert!(met > random, "{}: {met} against {random}", method.name);
    }
}

#[test]
fn more_evaluations_find_better_orders() {
    for name in ["pso", "cga"] {
        let [few, many] = [10, 1_000].map(|evaluations| met_by(method(name), evaluations));
        assert!(many > few, "{name}: {many} against {few}");
    }
}

#[test]
fn the_same_run_gives_the_same_decisions_and_another_seed_others() {
    let tasks = (0..9).map(|k| Task::periodic(format!("t{k}"), ms(11 + 5 * k), ms(7 + 2 * k)));
    let set = TaskSet::new("overload", tasks.collect(), 2);
    for method in &ALL {
        let run = |seed| {
            let settings = SearchSettings { evaluations: 20, seed, ..SearchSettings::default() };
            simulate(&set, 7, ms(300), &mut *method.scheduler(settings), &mut Unobserved).unwrap()
        };
        assert_eq!(run(1), run(1), "{}", method.name);
        // Random orders hardly ever beat the order by deadline, so that random search is the same with any seed here.
        let is_seeded = method.name != "random-search";
        assert!(!is_seeded || (2..9).any(|seed| run(seed) != run(1)), "{}", method.name);
    }
}

#[test]
fn what_is_hidden_changes_no_decision() {
    for method in &ALL {
        let settings = SearchSettings { evaluations: 30, ..SearchSettings::default() };
        two_worlds::assert_same_decisions(|| method.scheduler(settings));
    }
}

#[test]
fn options_are_checked() {
    let build = |spec: &str| find(spec).map(|(method, options)| method.build(options).map(|_| ()));
    assert!(build("pso").unwrap().is_ok());
    assert!(build("pso:evaluations=200,seed=1").unwrap().is_ok());
    assert!(build("mo-qiga:evaluations=200:futures=2:horizon=10").unwrap().is_ok());
    assert!(build("psi").is_none() && build("psox").is_none());
    let error = |spec: &str| build(spec).unwrap().unwrap_err().to_string();
    assert!(error("cga:evaluations=0").contains("from 1 to"));
    assert!(error("cga:evalations=8").contains("did you mean \"evaluations\""));
    assert!(error("hqiga:8").contains("is not option=value"));
}
