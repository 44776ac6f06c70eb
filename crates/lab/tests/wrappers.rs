//! Wrappers change what they say and nothing else: every method of the contract reaches the scheduler inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use temponet::Tuning;
use temponet::tuning::{Portfolio, Settings};
use temponet_lab::latency::Timed;
use temponet_sched::build;
use temponet_sched::shield::Shield;
use temponet_sim::{Engine, Unobserved, simulate};
use temponet_task::{
    Arrival, Assignment, MOST_LOOKED_AT, NotApplicable, OnMiss, Scheduler, System, SystemView, Task, TaskSet, Time,
};

/// Writes down which of its methods are called. It has a figure of its own for every method with a default.
struct Probe(Arc<Mutex<Vec<&'static str>>>);

const MOST: usize = 123_456;
const COUNTER: (&str, u64) = ("probe", 7);

#[deny(clippy::missing_trait_methods)]
impl Scheduler for Probe {
    fn start(&mut self, _: &System) -> Result<(), NotApplicable> {
        self.0.lock().unwrap().push("start");
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.0.lock().unwrap().push("decide");
        assignment.place(view, &view.active[..1]);
    }

    fn watch(&mut self, _: &SystemView<'_>, _: &mut Assignment) {
        self.0.lock().unwrap().push("watch");
    }

    fn most_ready(&self) -> usize {
        MOST
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![COUNTER]
    }
}

fn ms(time: u64) -> Time {
    Time::from_ms(time)
}

/// More work than the core can do, of which nothing is guaranteed.
fn overload() -> TaskSet {
    TaskSet::new("overload", vec![Task::periodic("a", ms(10), ms(9)), Task::periodic("b", ms(10), ms(8))], 1)
}

/// Checks that every method of a wrapper reaches the scheduler inside. `watched` is what watching does with it.
fn assert_forwards(name: &str, watched: &str, wrap: impl FnOnce(Probe) -> Box<dyn Scheduler>) {
    let called = Arc::new(Mutex::new(Vec::new()));
    let mut wrapper = wrap(Probe(called.clone()));
    let set = overload();
    let mut engine = Engine::new(&set, 0, ms(100));
    assert!(engine.advance(&mut Unobserved));
    let mut assignment = Assignment::default();
    wrapper.start(&set.system).unwrap();
    assignment.reset(1);
    wrapper.decide(&engine.view(), &mut assignment);
    assert!(assignment.cores()[0].is_some(), "{name}");
    assignment.reset(1);
    wrapper.watch(&engine.view(), &mut assignment);
    assert_eq!(*called.lock().unwrap(), ["start", "decide", watched], "{name}");
    assert_eq!(wrapper.most_ready(), MOST, "{name}");
    assert!(wrapper.counters().contains(&COUNTER), "{name}: {:?}", wrapper.counters());
}

#[test]
fn every_method_reaches_the_scheduler_inside() {
    assert_forwards("a box", "watch", |probe| Box::new(Box::new(probe)));
    assert_forwards("a reference", "watch", |probe| Box::new(Box::leak(Box::new(probe))));
    assert_forwards("the stopwatch", "watch", |probe| Box::new(Timed::new(probe)));
    assert_forwards("the shield", "decide", |probe| Box::new(Shield::new(probe)));
    assert_forwards("several", "decide", |probe| Box::new(Timed::new(Box::new(Shield::new(Timed::new(probe))))));
}

#[test]
fn a_portfolio_bears_what_the_followed_scheduler_bears() {
    let mut set = overload();
    set.system.tasks_mut().truncate(1);
    for (tuning, most) in [(Tuning::AtStart, usize::MAX), (Tuning::Online, MOST_LOOKED_AT)] {
        let mut tuned = Portfolio::classical(tuning, Settings::BARE);
        tuned.start(&set.system).unwrap();
        let followed = build(tuned.followed().unwrap()).unwrap();
        assert_eq!(tuned.most_ready(), followed.most_ready().min(most), "{:?}", tuned.followed());
    }
}

/// Behind the shield, EDF gave up at 50 000 ready jobs, because the shield had the limit of schedulers that look at
/// every job.
#[test]
fn edf_bears_as_many_ready_jobs_behind_the_shield_as_without() {
    let arrival = Arrival::Burst { jobs: 60_000, every: ms(1_000), until: Time::NEVER };
    let mut set = TaskSet::new("burst", vec![Task::periodic("a", ms(1_000), Time(100)).with_arrival(arrival)], 1);
    set.system.set_on_miss(OnMiss::Continue);
    let mut engine = Engine::new(&set, 0, ms(1_000));
    assert!(engine.advance(&mut Unobserved) && engine.view().active.len() == 60_000);
    for name in ["edf", "shield:edf", "shield:fp"] {
        let mut scheduler = build(name).unwrap();
        scheduler.start(&set.system).unwrap();
        assert!(scheduler.most_ready() > 60_000, "{name}");
        // The shield looked at every job at every decision, which takes minutes here.
        let metrics = simulate(&set, 0, ms(1_000), &mut *scheduler, &mut Unobserved).unwrap();
        assert_eq!((metrics.jobs.met, metrics.jobs.released), (60_000, 60_000), "{name}");
    }
}

/// Files of Rust under a folder, without what was built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&entry, found);
        } else if name.ends_with(".rs") {
            found.push(entry);
        }
    }
}

/// A scheduler that is generic over a scheduler wraps it. It forwards everything only if it says so.
#[test]
fn whatever_wraps_a_scheduler_is_a_wrapper() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "research", "bindings", "fuzz"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 300, "{}", files.len());
    let by_hand = files.iter().filter(|file| {
        let text = fs::read_to_string(file).unwrap();
        text.lines()
            .any(|line| line.starts_with("impl<") && line.contains(": Scheduler") && line.contains("> Scheduler for"))
    });
    let by_hand: Vec<&PathBuf> = by_hand.collect();
    assert!(by_hand.is_empty(), "implement temponet_task::Wrapper instead of Scheduler: {by_hand:?}");
}
