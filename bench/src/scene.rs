//! A moment with many ready jobs, at which a scheduler is asked.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::Mapping;
use temponet::stages::Mapper;
use temponet_task::{Assignment, Event, Job, JobId, System, SystemView, Task, TaskId, TaskSet, Time};

/// Number of cores of a scene.
pub const CORES: usize = 8;

/// Load per core of the critical tasks in [`Scene::half_critical`].
pub const CRITICAL_LOAD: f64 = 0.7;

/// Tasks of about a millisecond, each with one ready job. The slack of the jobs is spread over the range of the
/// tokenizer's bins.
pub struct Scene {
    /// System that a scheduler is started with.
    pub system: System,
    jobs: Vec<Job>,
    /// Identifiers of the ready jobs.
    pub active: Vec<JobId>,
    events: Vec<Event>,
}

impl Scene {
    /// Draws a scene of `n` jobs.
    pub fn new(n: usize, seed: u64) -> Scene {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut tasks = Vec::with_capacity(n);
        let mut jobs = Vec::with_capacity(n);
        for index in 0..n {
            let wcet = Time(rng.random_range(500_000..1_500_000));
            let slack = Time(rng.random_range(0..32_000_000));
            let task = Task::periodic(format!("t{index}"), wcet + slack, wcet);
            jobs.push(Job::first(TaskId(index as u32), &task));
            tasks.push(task);
        }
        let active: Vec<JobId> = (0..n as u32).map(JobId).collect();
        let events = active.iter().copied().map(Event::Released).collect();
        Scene { system: TaskSet::new("bench", tasks, CORES).system, jobs, active, events }
    }

    /// Draws a scene of `n` jobs with the lengths of [`Scene::new`], in which every second task is critical. The
    /// critical tasks load the cores to [`CRITICAL_LOAD`] and all tasks together to more than they can bear, so the
    /// shield guarantees exactly the critical ones.
    pub fn half_critical(n: usize, seed: u64) -> Scene {
        let mut scene = Scene::new(n, seed);
        let per_task = |load: f64, count: usize| load * CORES as f64 / count.max(1) as f64;
        let (critical, others) = (per_task(CRITICAL_LOAD, n / 2), per_task(1.1 - CRITICAL_LOAD, n - n / 2));
        for (index, task) in scene.system.tasks_mut().iter_mut().enumerate() {
            task.criticality = (index % 2) as u8;
            let share = if task.criticality > 0 { critical } else { others };
            task.wcet = Time((task.deadline.0 as f64 * share.min(1.0)) as u64);
            task.bcet = task.wcet;
            scene.jobs[index] = Job::first(TaskId(index as u32), task);
        }
        scene
    }

    /// Returns the scene as a scheduler sees it. No job runs yet.
    pub fn view(&self) -> SystemView<'_> {
        let Scene { system, jobs, active, events } = self;
        SystemView::new(Time::ZERO, system, active, jobs, &[None; CORES]).with_events(events)
    }
}

/// Returns the jobs that get cores, in ascending order. Idling never wins, so all cores are taken.
pub fn chosen(
    mapper: &mut Mapper,
    mapping: Mapping,
    jobs: impl Iterator<Item = (JobId, f32)> + Clone,
    view: &SystemView<'_>,
) -> Vec<JobId> {
    let mut assignment = Assignment::default();
    assignment.reset(CORES);
    mapper.assign(mapping, jobs, f32::NEG_INFINITY, view, &mut assignment);
    let mut chosen: Vec<JobId> = assignment.cores().iter().flatten().copied().collect();
    chosen.sort_unstable();
    chosen
}
