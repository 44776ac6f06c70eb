//! How long decisions and training take on this machine.
//!
//! Wall-clock figures depend on the machine and its other load as much as on the code, so each comes with the time of a
//! fixed control loop.

pub mod attention;
pub mod decision;
pub mod latency;
pub mod shield;
pub mod training;

use std::hint::black_box;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::stages::Mapper;
use temponet::{Mapping, NetworkError};
use temponet_task::{Assignment, Event, Job, JobId, NotApplicable, System, SystemView, Task, TaskSet, Time};
use temponet_train::TrainError;

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Network that cannot run.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Scheduler that does not apply to the scene.
    #[error(transparent)]
    NotApplicable(#[from] NotApplicable),
    /// Training that fails.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Thread pool that cannot be built.
    #[error(transparent)]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Device that fails.
    #[error("{0}")]
    Device(String),
}

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
    active: Vec<JobId>,
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
            jobs.push(Job::first(index as u32, &task));
            tasks.push(task);
        }
        let active: Vec<JobId> = (0..n as u32).map(JobId).collect();
        let events = active.iter().copied().map(Event::Released).collect();
        Scene { system: TaskSet::new("bench", tasks, CORES).system, jobs, active, events }
    }

    /// Draws a scene of `n` jobs with the lengths of [`Scene::new`], in which every second task is critical. The critical
    /// tasks load the cores to [`CRITICAL_LOAD`] and all tasks together to more than they can bear, so the shield
    /// guarantees exactly the critical ones.
    pub fn half_critical(n: usize, seed: u64) -> Scene {
        let mut scene = Scene::new(n, seed);
        let per_task = |load: f64, count: usize| load * CORES as f64 / count.max(1) as f64;
        let (critical, others) = (per_task(CRITICAL_LOAD, n / 2), per_task(1.1 - CRITICAL_LOAD, n - n / 2));
        for (index, task) in scene.system.tasks_mut().iter_mut().enumerate() {
            task.criticality = (index % 2) as u8;
            let share = if task.criticality > 0 { critical } else { others };
            task.wcet = Time((task.deadline.0 as f64 * share.min(1.0)) as u64);
            task.bcet = task.wcet;
            scene.jobs[index] = Job::first(index as u32, task);
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

/// Returns the time of one step of a fixed loop, in nanoseconds: the speed of the machine right now.
pub fn control() -> f64 {
    const STEPS: u64 = 50_000_000;
    let begin = Instant::now();
    let mut state = black_box(1u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    begin.elapsed().as_secs_f64() * 1e9 / STEPS as f64
}

/// Returns the greatest memory that this process ever held, in MiB (Linux only).
pub fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kb| kb / 1024.0)
}
