//! Contract of the wide training ranges: every set that they draw is valid, has its load, can be written to a file and
//! read back, and is simulated in a time that is in proportion to its episode.

use std::collections::BTreeSet;
use std::path::Path;

use temponet_formats::Format;
use temponet_sim::generate::Variety;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Arrival, Costs, ExecutionModel, Gap, OnMiss, Task, TaskSet, Time};
use temponet_train::{ExecutionKind, Recipe, WorkloadRanges};

/// Number of drawn sets.
const SETS: u64 = 2_000;
/// Length of a run in median wcets, about a third of an episode.
const LENGTH: f64 = 40.0;
/// Most jobs per core and median wcet, over a whole run. Modes double rates, and bursts come early.
const MOST_JOBS: f64 = 100.0;

fn median_wcet(set: &TaskSet) -> f64 {
    let mut wcets: Vec<u64> = set.tasks().iter().map(|task| task.wcet.0).collect();
    wcets.sort_unstable();
    wcets[wcets.len() / 2] as f64
}

/// Names of the properties of a set.
fn properties(set: &TaskSet) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for task in set.tasks() {
        found.insert(match &task.arrival {
            Arrival::Periodic { .. } => "periodic",
            Arrival::Sporadic { gap: Gap::Uniform { .. }, .. } => "uniform gaps",
            Arrival::Sporadic { gap: Gap::Exponential { .. }, .. } => "exponential gaps",
            Arrival::Burst { .. } => "burst",
            _ => "list",
        });
        found.insert(match task.execution {
            ExecutionModel::Wcet => "known",
            ExecutionModel::Uniform => "uniform",
            ExecutionModel::Normal { .. } => "normal",
            ExecutionModel::Weibull { .. } => "weibull",
            ExecutionModel::Pareto { .. } => "pareto",
            ExecutionModel::Lognormal { .. } => "lognormal",
            ExecutionModel::Bimodal { .. } => "bimodal",
            ExecutionModel::Empirical { .. } => "empirical",
            _ => "overrun",
        });
        found.extend((task.jitter > Time::ZERO).then_some("jitter"));
        found.extend((task.offset > Time::ZERO).then_some("offset"));
        found.extend(task.mk.map(|_| "firm"));
        let period = task.period().unwrap_or(task.deadline);
        found.extend((task.deadline < period).then_some("constrained"));
        found.extend((task.deadline > period).then_some("arbitrary"));
    }
    found.insert(["no level", "one level", "two levels", "three levels", "four levels"][set.levels().len()]);
    found.extend(set.has_values().then_some("values"));
    found.extend((set.costs().migration > Time::ZERO).then_some("migration cost"));
    found.extend((set.costs().context_switch > Time::ZERO).then_some("switch cost"));
    found.extend((set.on_miss() == OnMiss::Continue).then_some("late jobs go on"));
    found.extend((!set.modes().is_empty()).then_some("modes"));
    found.extend(set.modes().iter().any(|mode| !mode.stop.is_empty()).then_some("silent tasks"));
    found
}

#[test]
fn drawn_sets_are_valid_have_their_load_and_are_simulated() {
    let wide = WorkloadRanges::wide();
    assert_eq!(wide.problem(), None);
    let mut found = BTreeSet::new();
    let (mut loads, mut most_tasks, mut most_cores) = ((f64::MAX, 0.0_f64), 0, 0);
    for seed in 0..SETS {
        let set = wide.draw(seed).unwrap();
        assert_eq!(set.system.validate(), Ok(()), "seed {seed}");
        let load = set.mean_utilization() / set.cores() as f64;
        let own = properties(&set);
        // A list is a sample of the jobs of its tasks, and no task has a load above 0.95.
        let is_within = (0.25..=3.1).contains(&load);
        assert!(is_within || own.contains("list"), "seed {seed}: {load}");
        loads = (loads.0.min(load), loads.1.max(load));
        (most_tasks, most_cores) = (most_tasks.max(set.tasks().len() / set.cores()), most_cores.max(set.cores()));
        found.extend(own);
        let horizon = Time((LENGTH * median_wcet(&set)) as u64);
        let mut edf = temponet_sched::build("edf").unwrap();
        let metrics = simulate(&set, seed, horizon, &mut *edf, &mut Unobserved)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let jobs = metrics.jobs.released as f64 / (LENGTH * set.cores() as f64);
        assert!(jobs < MOST_JOBS, "seed {seed}: {jobs} jobs per core and median wcet");
    }
    let names = [
        "arbitrary",
        "burst",
        "constrained",
        "empirical",
        "exponential gaps",
        "firm",
        "four levels",
        "jitter",
        "known",
        "late jobs go on",
        "list",
        "migration cost",
        "modes",
        "no level",
        "normal",
        "offset",
        "one level",
        "overrun",
        "pareto",
        "periodic",
        "silent tasks",
        "switch cost",
        "three levels",
        "two levels",
        "uniform",
        "uniform gaps",
        "values",
        "weibull",
    ];
    assert_eq!(found, BTreeSet::from(names));
    assert!(loads.0 < 0.55 && loads.1 > 2.8 && most_tasks >= 39 && most_cores == 16, "{loads:?} {most_tasks}");
}

/// Returns the tasks by name, because files state bursts after all other tasks.
fn by_name(set: &TaskSet) -> Vec<Task> {
    let mut tasks = set.tasks().to_vec();
    tasks.sort_by(|a, b| a.name.cmp(&b.name));
    tasks
}

#[test]
fn a_drawn_set_can_be_written_and_read_back() {
    for seed in 0..200 {
        let set = WorkloadRanges::wide().draw(seed).unwrap();
        let is_list = set.tasks().iter().any(|task| matches!(task.arrival, Arrival::Listed(_)));
        let format = if is_list { Format::Csv } else { Format::Toml };
        // A list of jobs states neither costs nor cores.
        let bare = set.clone().with_costs(Costs::default()).with_cores(1).with_on_miss(OnMiss::Abort);
        let text = temponet_formats::write(if is_list { &bare } else { &set }, format);
        let Ok(text) = text else { panic!("seed {seed}: {}", text.unwrap_err()) };
        let read = temponet_formats::parse(&text, format, Path::new("drawn")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(by_name(&read.set), by_name(&set), "seed {seed}");
    }
}

#[test]
fn a_set_has_the_load_that_was_drawn() {
    // One load and enough tasks for it, so that the load of each set is known.
    let ranges = WorkloadRanges { load: (1.2, 1.2), tasks_per_core: (4.0, 30.0), ..WorkloadRanges::wide() };
    for seed in 0..300 {
        let set = ranges.draw(seed).unwrap();
        if set.tasks().iter().all(|task| matches!(task.arrival, Arrival::Listed(_))) {
            continue;
        }
        let load = set.mean_utilization() / set.cores() as f64;
        assert!((load / 1.2 - 1.0).abs() < 0.02, "seed {seed}: {load}");
    }
}

#[test]
fn a_recipe_names_the_preset_or_spells_it_out() {
    let named: Recipe = toml::from_str("workload = \"wide\"").unwrap();
    assert_eq!(named.workload, WorkloadRanges::wide());
    let staged = "[[stage]]\nphases = 1\nworkload = \"wide\"\n[stage.method.ppo]\n";
    assert_eq!(toml::from_str::<Recipe>(staged).unwrap().stage[0].workload, Some(WorkloadRanges::wide()));
    let table =
        "[workload]\ncores = [2]\n[workload.variety]\noffsets = 0.5\ntold = { chance = 0.2, range = [1.0, 5.0] }\n";
    let table: Recipe = toml::from_str(table).unwrap();
    assert_eq!(table.workload.cores, [2]);
    assert_eq!(table.workload.execution, [ExecutionKind::Known, ExecutionKind::Uniform]);
    assert_eq!(table.workload.variety.as_ref().unwrap().told.chance, 0.2);
    let short: Recipe = toml::from_str("[workload]\nload = [0.5, 1.0]\nvariety = \"wide\"\n").unwrap();
    assert_eq!(short.workload.variety, Some(Variety::wide()));
    for recipe in [named, table, short] {
        assert_eq!(recipe.problem(), None);
        assert_eq!(toml::from_str::<Recipe>(&toml::to_string(&recipe).unwrap()).unwrap(), recipe);
        let json = serde_json::to_string(&recipe).unwrap();
        assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe);
    }
}

#[test]
fn mistakes_in_the_ranges_are_named() {
    let error = |text: &str| toml::from_str::<Recipe>(text).unwrap_err().to_string();
    assert!(error("workload = \"wode\"").contains("unknown variant `wode`, expected `wide`"));
    assert!(error("[workload]\nvariety = \"wode\"").contains("expected `wide`"));
    assert!(error("[workload]\ncore = [1]").contains("unknown field `core`"));
    assert!(error("[workload.variety]\njiter = 1").contains("unknown field `jiter`"));
    assert!(error("[workload.variety]\njitter = { chance = 1.0, rang = [0.0, 1.0] }").contains("unknown field `rang`"));
    let text = "[workload.variety]\njitter = { chance = 2.0, range = [0.1, 1.0] }";
    let problem = toml::from_str::<Recipe>(text).unwrap().problem().unwrap();
    assert_eq!(problem, "workload: variety.jitter: 2 is no probability from 0 to 1");
}
