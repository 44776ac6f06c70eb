//! The rollout planner: what it gains, and that it knows no more than an online scheduler may.

use std::sync::Arc;

use temponet::planner::{Planner, PlannerSettings};
use temponet::{
    Arrival, Assignment, ExecutionModel, ListedJob, NotApplicable, Scheduler, System, SystemView, Task, TaskSet, Time,
};
use temponet_sched::build;
use temponet_sim::{Unobserved, simulate};

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// An overloaded set whose execution times vary widely.
fn uncertain(cores: usize) -> TaskSet {
    let task = |k: u64| {
        let task = Task::periodic(format!("t{k}"), ms(11 + 5 * k), ms(7 + 2 * k));
        Task { bcet: Time(task.wcet.0 / 10), execution: ExecutionModel::Uniform, ..task }
    };
    let mut set = TaskSet::new("uncertain", (0..5 * cores as u64).map(|k| task(k % 7)).collect(), cores);
    set.tasks.iter_mut().enumerate().for_each(|(index, task)| task.name = format!("task {index}"));
    set
}

fn planner(futures: usize) -> Planner {
    Planner::new("edf-skip", PlannerSettings { futures, ..PlannerSettings::default() }).unwrap()
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
    let met_by = |options: &str| met(&set, &mut Planner::with_options(options).unwrap());
    assert!(met_by("futures=1") > met_by("base=edf-skip:futures=1"));
}

#[test]
fn the_same_run_gives_the_same_decisions() {
    let set = uncertain(2);
    let run = || simulate(&set, 7, Time::from_ms(500), &mut planner(8), &mut Unobserved).unwrap();
    assert_eq!(run(), run());
}

/// Task and number of the job on each core.
type Choice = Vec<Option<(u32, u64)>>;

/// Keeps what a scheduler decides up to a time.
struct Noting<S> {
    inner: S,
    until: Time,
    decisions: Vec<(Time, Choice)>,
}

impl<S: Scheduler> Scheduler for Noting<S> {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.inner.start(system)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.inner.decide(view, assignment);
        if view.now < self.until {
            let name = |id: &temponet::JobId| (view.job(*id).task, view.job(*id).number);
            self.decisions.push((view.now, assignment.cores().iter().map(|id| id.as_ref().map(name)).collect()));
        }
    }
}

/// Two worlds that differ only in what comes after a date, in arrivals and in execution times that no job has reached.
#[test]
fn what_is_hidden_changes_no_decision() {
    let until = ms(300);
    let job = |k: u64, is_other: bool| {
        let is_late = 7 * k >= 300 && is_other;
        ListedJob {
            release: ms(7 * k + if is_late { 3 } else { 0 }),
            deadline: ms(7 * k + 19),
            execution: Time::from_us(if is_late { 900 } else { 3_000 + 700 * (k % 9) }),
            wcet: ms(if is_late { 1 } else { 9 }),
            bcet: Time(1),
            criticality: 0,
            value: 1.0,
        }
    };
    let decisions = |is_other: bool| {
        let jobs: Arc<[ListedJob]> = (0..90).map(|k| job(k, is_other)).collect();
        let listed = Task { arrival: Arrival::Listed(jobs), ..Task::periodic("list", ms(7), ms(9)) };
        // Short jobs that recur decide how long a future is; the listed ones must not.
        let samples = [1, 1, 1, 1, 1, 1, 1, 1, 1, 40].map(|quarters| Time::from_us(225 * quarters)).into();
        let short = Task {
            bcet: Time(1),
            execution: ExecutionModel::Empirical { samples },
            ..Task::periodic("p", ms(10), ms(9))
        };
        let set = TaskSet::new("list", vec![listed, short.clone(), Task { name: "q".into(), ..short }], 1);
        let mut noting = Noting { inner: planner(16), until, decisions: Vec::new() };
        simulate(&set, 1, ms(600), &mut noting, &mut Unobserved).unwrap();
        noting.decisions
    };
    let (one, other) = (decisions(false), decisions(true));
    assert!(one.len() > 60);
    assert_eq!(one, other);
}

#[test]
fn options_are_checked() {
    assert!(Planner::with_options("").is_ok());
    assert!(Planner::with_options("base=mh-edf:futures=8:horizon=10:exchanges=4:seed=3").is_ok());
    let error = |text: &str| Planner::with_options(text).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error("base=edf").contains("is none of"), "{}", error("base=edf"));
    assert!(error("futures=0").contains("from 1 to"));
    assert!(error("futurs=8").contains("did you mean \"futures\""));
    assert!(error("8").contains("is not option=value"));
}
