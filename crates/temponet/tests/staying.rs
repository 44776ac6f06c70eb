//! Contract of the switching bonus: it is zero where switching is free, continuous and monotone in the cost, and never
//! keeps a job against a more critical one.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::stages::{Learned, Mapper, Staying};
use temponet::{Mapping, Model, Options};
use temponet_sim::generate::{Critical, Spec, generate};
use temponet_sim::{Engine, Metrics, Unobserved, simulate};
use temponet_task::{
    Assignment, CoreId, Costs, Job, JobId, Scheduler, System, SystemView, Task, TaskId, TaskSet, Time,
};

/// An overloaded task set, a third of whose tasks are critical.
fn set(cores: usize, seed: u64) -> TaskSet {
    let mut spec = Spec::new(6 * cores, cores, 1.3 * cores as f64);
    spec.bcet = 0.4;
    spec.critical = Critical { share: 0.34, factor: 1.0, overrun: 0.0 };
    generate(&spec, seed).unwrap()
}

fn with_costs(set: &TaskSet, context_switch: Time, migration: Time) -> TaskSet {
    set.clone().with_costs(Costs { context_switch, migration, ..Costs::default() })
}

fn model(stay: f32) -> Arc<Model> {
    let mut model = Model::built_in().unwrap();
    model.set_stay(stay);
    model.into()
}

fn run(set: &TaskSet, stay: f32) -> Metrics {
    let mut scheduler = Learned::new(model(stay), Options::default()).unwrap();
    simulate(set, 1, Time::from_ms(400), &mut scheduler, &mut Unobserved).unwrap()
}

#[test]
fn without_costs_staying_changes_no_schedule() {
    for seed in 0..6 {
        let set = set(1 + seed as usize % 3, seed);
        let (with, without) = (run(&set, 1e6), run(&set, 0.0));
        assert_eq!(
            (with.jobs.met, with.preemptions, with.decisions),
            (without.jobs.met, without.preemptions, without.decisions)
        );
    }
}

/// Runs a task set without costs and asks two schedulers at every decision point: one for the free system, one for the
/// same system with `costs`. Returns the number of decisions and the number of decisions in which the two differ.
fn differing(set: &TaskSet, costs: Costs, stay: f32) -> (usize, usize) {
    let (free, costly) = (set.system.clone(), set.clone().with_costs(costs).system);
    let mut schedulers = [&free, &costly].map(|system| {
        let mut scheduler = Learned::new(model(stay), Options::default()).unwrap();
        scheduler.start(system).unwrap();
        scheduler
    });
    let mut engine = Engine::new(set, 1, Time::from_ms(400));
    let (mut decisions, mut differing) = (0, 0);
    while engine.advance(&mut Unobserved) {
        let mut assignments = [Assignment::default(), Assignment::default()];
        for ((scheduler, system), assignment) in schedulers.iter_mut().zip([&free, &costly]).zip(&mut assignments) {
            assignment.reset(set.cores());
            scheduler.decide(&engine.view().with_system(system), assignment);
        }
        decisions += 1;
        differing += usize::from(assignments[0].cores() != assignments[1].cores());
        engine.apply(&assignments[0], &mut Unobserved).unwrap();
    }
    (decisions, differing)
}

#[test]
fn a_cost_of_a_nanosecond_changes_no_decision() {
    let nanosecond = Costs { context_switch: Time(1), migration: Time(1), ..Costs::default() };
    let much = Costs { context_switch: Time::from_ms(1), migration: Time::from_ms(5), ..Costs::default() };
    let (mut all, mut with_much) = (0, 0);
    for seed in 0..8 {
        let set = set(1 + seed as usize % 4, 40 + seed);
        let (decisions, differing_now) = differing(&set, nanosecond, 20.0);
        assert_eq!(differing_now, 0, "seed {seed}");
        all += decisions;
        with_much += differing(&set, much, 20.0).1;
    }
    assert!(all > 1_000 && with_much > 20, "{all} decisions, {with_much} differ where moving costs much");
}

#[test]
fn a_nanosecond_of_cost_does_not_cost_a_three_task_set_its_deadlines() {
    let ms = Time::from_ms;
    let task = |name: &str, period: u64, wcet: u64, criticality: u8| {
        Task::periodic(name, ms(period), ms(wcet)).with_criticality(criticality)
    };
    let tasks = vec![task("control", 10, 3, 2), task("vision", 25, 10, 1), task("logging", 100, 20, 0)];
    let set = TaskSet::new("robot", tasks, 1);
    let costly = with_costs(&set, Time(1), Time(1));
    for stay in [Model::built_in().unwrap().stay(), 40.0] {
        let [free, costly] = [&set, &costly].map(|set| run(set, stay));
        assert_eq!(
            (free.jobs.met, free.missed(), free.preemptions),
            (costly.jobs.met, costly.missed(), costly.preemptions)
        );
    }
}

/// Ready jobs with Q-values. The first `cores` jobs are running, one on each core.
#[derive(Clone, Debug)]
struct Scene {
    jobs: Vec<Job>,
    q: Vec<f32>,
    cores: usize,
    stay: f32,
}

impl Scene {
    /// A random scene.
    fn draw(seed: u64) -> Scene {
        let mut rng = Pcg64::seed_from_u64(seed);
        let cores = rng.random_range(1..5usize);
        let count = rng.random_range(cores + 1..4 * cores + 4);
        let task = Task::periodic("t", Time::from_ms(100), Time::from_ms(10));
        let job = |index: usize, rng: &mut Pcg64| {
            Job::first(TaskId(0), &task)
                .with_task(TaskId(index as u32))
                .with_criticality(rng.random_range(0..3))
                .with_running(index < cores)
                .with_last_core(if index < cores {
                    Some(CoreId(index as u32))
                } else {
                    rng.random_bool(0.3).then(|| CoreId(rng.random_range(0..cores as u32)))
                })
                .with_executed(Time::from_us(rng.random_range(0..10_500)))
        };
        let jobs: Vec<Job> = (0..count).map(|index| job(index, &mut rng)).collect();
        let q = (0..count).map(|_| rng.random_range(-4.0f32..4.0)).collect();
        Scene { jobs, q, cores, stay: rng.random_range(0.0..40.0) }
    }

    /// Returns the job that each core runs under the given costs.
    fn chosen(&self, costs: Costs) -> Vec<Option<JobId>> {
        let tasks = (0..self.jobs.len())
            .map(|index| Task::periodic(format!("t{index}"), Time::from_ms(100), Time::from_ms(10)));
        let set = TaskSet::new("scene", tasks.collect(), self.cores).with_costs(costs);
        let system: System = set.system.clone();
        let active: Vec<JobId> = (0..self.jobs.len() as u32).map(JobId).collect();
        let running: Vec<Option<JobId>> = (0..self.cores as u32).map(|core| Some(JobId(core))).collect();
        let view = SystemView::new(Time::ZERO, &system, &active, &self.jobs, &running);
        let mut mapper = Mapper::default();
        mapper.staying = Staying::on(&system, self.stay);
        let mut assignment = Assignment::default();
        assignment.reset(self.cores);
        let jobs = active.iter().map(|id| (*id, self.q[id.index()]));
        mapper.assign(Mapping::Greedy, jobs, f32::NEG_INFINITY, &view, &mut assignment);
        assignment.cores().to_vec()
    }
}

/// A context switch that costs this many microseconds, and a migration that costs three times as much.
fn costs(us: u64) -> Costs {
    Costs { context_switch: Time::from_us(us), migration: Time::from_us(3 * us), ..Costs::default() }
}

#[test]
fn no_job_is_kept_against_a_more_critical_one_that_is_preferred() {
    let mut kept_at_all = 0;
    for seed in 0..20_000 {
        let scene = Scene::draw(seed);
        let chosen: Vec<JobId> = scene.chosen(costs(seed * 7 % 20_000)).into_iter().flatten().collect();
        assert_eq!(chosen.len(), scene.cores);
        kept_at_all += usize::from(scene.chosen(costs(0)).iter().flatten().any(|id| !chosen.contains(id)));
        for kept in chosen.iter().filter(|id| scene.jobs[id.index()].running) {
            let waiting = (0..scene.jobs.len() as u32).map(JobId).filter(|id| !chosen.contains(id));
            for other in waiting {
                let is_critical = scene.jobs[other.index()].criticality > scene.jobs[kept.index()].criticality;
                let is_preferred = scene.q[other.index()] > scene.q[kept.index()];
                assert!(!is_critical || !is_preferred, "{other:?} waits for {kept:?}: {scene:?}");
            }
        }
    }
    assert!(kept_at_all > 2_000, "{kept_at_all}");
}

#[test]
fn the_more_moving_costs_the_more_a_job_stays() {
    let mut began_to_stay = 0;
    for seed in 0..5_000 {
        let mut scene = Scene { cores: 1, ..Scene::draw(seed) };
        scene.jobs.iter_mut().enumerate().for_each(|(index, job)| job.running = index == 0);
        let stays = |us: u64| scene.chosen(costs(us))[0] == Some(JobId(0));
        let (less, more) = (seed % 700, seed % 700 + seed % 3_000);
        assert!(!stays(less) || stays(more), "{scene:?}");
        began_to_stay += usize::from(stays(more) && !stays(less));
        let worth = |us: u64| {
            let set = TaskSet::new("one", vec![], 2).with_costs(costs(us));
            Staying::on(&set.system, 10.0).worth(&scene.jobs[0], &scene.jobs[1])
        };
        assert!(worth(0) == 0.0 && worth(less) <= worth(more) && worth(more) <= 10.0);
    }
    assert!(began_to_stay > 100, "{began_to_stay}");
}

#[test]
fn a_job_that_is_nearly_done_stays_where_moving_costs_as_much_as_it_still_takes() {
    let task = Task::periodic("t", Time::from_ms(100), Time::from_ms(10));
    let system = with_costs(&TaskSet::new("one", vec![task.clone()], 1), Time::from_us(100), Time::ZERO).system;
    let job = |executed: Time| {
        Job::first(TaskId(0), &task).with_executed(executed).with_running(true).with_last_core(Some(CoreId(0)))
    };
    let worth = |executed: Time| Staying::on(&system, 8.0).worth(&job(executed), &Job::first(TaskId(0), &task));
    assert!(worth(Time::from_us(9_900)) == 4.0 && worth(Time::ZERO) < 0.1);
    assert!(worth(Time::from_ms(11)) < 0.1, "what is left of a job that has overrun its wcet is not known");
}
