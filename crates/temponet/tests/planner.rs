//! The rollout planner: what it gains, and that it knows no more than an online scheduler may.

use crate::two_worlds;
use temponet::planner::{self, Planner, PlannerSettings};
use temponet::{ExecutionModel, Scheduler, Task, TaskSet, Time};
use temponet_sched::build;
use temponet_sched::catalog::Spec;
use temponet_sim::{Unobserved, simulate};

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// An overloaded set whose execution times vary widely.
fn uncertain(cores: usize) -> TaskSet {
    let task = |k: u64| {
        let task = Task::periodic(format!("t{k}"), ms(11 + 5 * k), ms(7 + 2 * k));
        task.with_bcet(Time(ms(7 + 2 * k).0 / 10)).with_execution(ExecutionModel::Uniform)
    };
    let mut set = TaskSet::new("uncertain", (0..5 * cores as u64).map(|k| task(k % 7)).collect(), cores);
    set.system.tasks_mut().iter_mut().enumerate().for_each(|(index, task)| task.name = format!("task {index}"));
    set
}

fn planner(futures: usize) -> Planner {
    Planner::new("edf-skip", PlannerSettings { futures, ..PlannerSettings::default() }).unwrap()
}

/// The planner with options as a user writes them.
fn named(options: &str) -> Result<Box<dyn Scheduler>, String> {
    let (spec, own) = (format!("planner:{options}"), [planner::entry()]);
    Spec::parse(&spec, &own).and_then(|spec| spec.build(&())).map_err(|error| error.to_string())
}

fn met(set: &TaskSet, scheduler: &mut dyn Scheduler) -> u64 {
    (1..=2).map(|seed| simulate(set, seed, Time::from_secs(2), scheduler, &mut Unobserved).unwrap().jobs.met).sum()
}

#[test]
fn it_meets_more_deadlines_than_its_base_where_times_are_uncertain() {
    for cores in [1, 2] {
        let set = uncertain(cores);
        let (base, planned) = (met(&set, &mut *build("edf-skip").unwrap()), met(&set, &mut planner(16)));
        assert!(planned as f64 > 1.002 * base as f64, "{cores} cores: {planned} against {base}");
    }
}

/// `edf-skip` begins with the long task, which has the same deadline as the others. A single future changes no choice.
#[test]
fn by_default_its_base_is_the_one_that_simulations_choose() {
    let mut tasks = vec![Task::periodic("long", ms(100), ms(60))];
    tasks.extend(["a", "b", "c"].map(|name| Task::periodic(name, ms(100), ms(30))));
    let set = TaskSet::new("overload", tasks, 1);
    let met_by = |options: &str| met(&set, &mut *named(options).unwrap());
    assert!(met_by("futures=1") > met_by("base=edf-skip:futures=1"));
}

#[test]
fn the_same_run_gives_the_same_decisions() {
    let set = uncertain(2);
    let run = || simulate(&set, 7, Time::from_ms(500), &mut planner(8), &mut Unobserved).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn what_is_hidden_changes_no_decision() {
    two_worlds::assert_same_decisions(|| Box::new(planner(16)));
}

#[test]
fn options_are_checked() {
    assert!(named("").is_err(), "a colon announces an option");
    assert!(named("base=mh-edf:futures=8:horizon=10:exchanges=4:seed=3").is_ok());
    assert!(named("base=mh-edf,futures=8").is_ok());
    let error = |text: &str| named(text).err().unwrap_or_default();
    assert!(error("base=edf").contains("is none of"), "{}", error("base=edf"));
    assert!(error("futures=0").contains("from 1 to"));
    assert!(error("futurs=8").contains("did you mean \"futures\""));
    assert!(error("8").contains("is not option=value"));
}
