//! Kinds of task sets whose jobs a scheduler does not know beforehand: lists of jobs, and tasks that change their mode.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use temponet_sim::generate::{Spec, generate};
use temponet_task::{Arrival, ExecutionModel, ListedJob, Mode, Task, TaskSet, Time};

/// A kind of set, and how one is drawn from a seed.
pub type Kind = (&'static str, fn(u64) -> TaskSet);

/// The kinds.
pub const KINDS: [Kind; 20] = [
    ("list", |seed| List::new().draw(seed)),
    ("list, execution times a third of the wcet", |seed| List { wcet: 3.0, ..List::new() }.draw(seed)),
    ("list on three cores", |seed| List { cores: 3, wcet: 2.0, ..List::new() }.draw(seed)),
    ("list in bursts", |seed| List { burst: 12, wcet: 2.0, ..List::new() }.draw(seed)),
    ("list, short", |seed| List { jobs: 300, wcet: 2.0, ..List::new() }.draw(seed)),
    ("list, load rises and falls", |seed| List { jobs: 8_000, wave: 0.6, wcet: 1.5, ..List::new() }.draw(seed)),
    ("list, a value per task", |seed| List { value: by_task, wcet: 2.0, ..List::new() }.draw(seed)),
    ("list, a value per job", |seed| List { value: by_job, ..List::new() }.draw(seed)),
    ("list, value by length, two cores", |seed| List { value: by_length, cores: 2, ..List::new() }.draw(seed)),
    ("list, few critical jobs", |seed| List { levels: &[0, 0, 0, 0, 0, 0, 0, 1], wcet: 2.0, ..List::new() }.draw(seed)),
    ("list, critical jobs, light", |seed| List { load: 0.8, levels: &[0, 0, 1], ..List::new() }.draw(seed)),
    ("list, levels and values, two cores", |seed| {
        List { levels: &[0, 0, 2, 7], value: by_task, cores: 2, wcet: 2.0, load: 1.4, ..List::new() }.draw(seed)
    }),
    ("list, critical jobs in bursts, three cores", |seed| {
        List { levels: &[0, 0, 0, 5], burst: 9, cores: 3, wcet: 1.5, load: 1.1, ..List::new() }.draw(seed)
    }),
    ("list, values, load rises and falls, told wcets", |seed| {
        List { value: by_task, jobs: 6_000, wave: 0.5, wcet: 2.5, load: 1.5, ..List::new() }.draw(seed)
    }),
    ("mode with more work", |seed| modes(seed, 1, |_| (0, 1.0), &[(3, 1.7, 1.0, false)])),
    ("mode with more jobs, values, two cores", |seed| {
        modes(seed, 2, |i| (0, (1 + i * i) as f64), &[(3, 1.0, 1.9, false)])
    }),
    ("mode in which tasks are silent", |seed| modes(seed, 1, |i| (0, (1 + i % 3) as f64), &[(3, 2.2, 1.0, true)])),
    ("four modes", |seed| {
        modes(
            seed,
            1,
            |i| (0, (1 + i) as f64),
            &[(3, 1.5, 1.0, false), (8, 0.6, 2.2, false), (13, 1.0, 1.0, false), (18, 2.0, 1.0, true)],
        )
    }),
    ("mode with more work, critical tasks", |seed| {
        modes(seed, 1, |i| ((i % 3 == 0) as u8, 1.0), &[(3, 1.6, 1.0, false)])
    }),
    ("mode with more jobs, levels, two cores", |seed| {
        modes(seed, 2, |i| ((i % 3) as u8, 1.0), &[(3, 1.1, 1.7, false)])
    }),
];

/// How a list of jobs is drawn.
struct List {
    jobs: usize,
    cores: usize,
    /// Mean load of a core.
    load: f64,
    /// Wcet as a multiple of the mean execution time; with 1, execution times are known.
    wcet: f64,
    /// Number of jobs that are released at once.
    burst: usize,
    /// Share by which the load rises and falls, once in 1500 jobs.
    wave: f64,
    /// Criticality levels, equally likely.
    levels: &'static [u8],
    /// Value of a job by its task, its execution time in milliseconds, and a random number from 0 to 1.
    value: fn(usize, f64, f64) -> f64,
}

fn by_task(task: usize, _execution: f64, _random: f64) -> f64 {
    [1.0, 30.0, 4.0, 9.0, 2.0][task]
}

fn by_job(_task: usize, _execution: f64, random: f64) -> f64 {
    (0.05 + 0.95 * random).powi(-2)
}

fn by_length(_task: usize, execution: f64, _random: f64) -> f64 {
    execution.ceil()
}

impl List {
    fn new() -> List {
        List { jobs: 3_000, cores: 1, load: 1.25, wcet: 1.0, burst: 1, wave: 0.0, levels: &[0], value: |_, _, _| 1.0 }
    }

    fn draw(self, seed: u64) -> TaskSet {
        let mut rng = Pcg32::seed_from_u64(seed);
        // Mean execution time of the jobs of each task in milliseconds.
        let means = [1.0, 2.0, 3.0, 5.0, 9.0];
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let mut lists: Vec<Vec<ListedJob>> = vec![Vec::new(); means.len()];
        let mut now = 0.0;
        for number in 0..self.jobs {
            if number % self.burst == 0 {
                let wave = 1.0 + self.wave * (number as f64 / 1_500.0 * std::f64::consts::TAU).sin();
                let gap = mean * self.burst as f64 / (self.load * wave * self.cores as f64);
                now += -gap * (1.0 - rng.random::<f64>()).ln();
            }
            let task = rng.random_range(0..means.len());
            let wcet = means[task] * self.wcet;
            // Execution times are skewed: half of them are below 0.7 of the mean.
            let share = if self.wcet > 1.0 { (-(1.0 - rng.random::<f64>()).ln()).clamp(0.1, self.wcet) } else { 1.0 };
            let execution = share * means[task];
            let window = wcet * (1.2 + 4.0 * rng.random::<f64>());
            let ms = |time: f64| Time((time * 1e6) as u64);
            lists[task].push(
                ListedJob::new(ms(now), ms(now + window), ms(execution).min(ms(wcet)))
                    .with_wcet(ms(wcet))
                    .with_bcet(if self.wcet > 1.0 { Time(1) } else { ms(wcet) })
                    .with_criticality(self.levels[rng.random_range(0..self.levels.len())])
                    .with_value((self.value)(task, execution, rng.random())),
            );
        }
        let task = |(place, jobs): (usize, Vec<ListedJob>)| {
            let most = |time: fn(&ListedJob) -> Time| jobs.iter().map(time).max().unwrap_or(Time(1));
            Task::periodic(format!("t{place}"), Time::from_ms(100), most(|job| job.wcet))
                .with_deadline(most(|job| job.deadline - job.release))
                .with_bcet(jobs.iter().map(|job| job.bcet).min().unwrap_or(Time(1)))
                .with_criticality(jobs.iter().map(|job| job.criticality).max().unwrap_or(0))
                .with_value(jobs.iter().map(|job| job.value).fold(0.0, f64::max))
                .with_arrival(Arrival::Listed(jobs.clone().into()))
        };
        TaskSet::new("list", lists.into_iter().enumerate().map(task).collect(), self.cores)
    }
}

/// A mode: when it begins in seconds, the factors of the work and of the rate, and whether every third task is silent
/// in it.
type Switch = (u64, f64, f64, bool);

/// Draws seven tasks with a load of 0.9 and uncertain execution times, and adds criticality, value and modes.
fn modes(seed: u64, cores: usize, worth: fn(usize) -> (u8, f64), switches: &[Switch]) -> TaskSet {
    let spec = Spec::new(6 * cores + 1, cores, 0.9 * cores as f64);
    let mut set = generate(&spec, seed).expect("the utilization fits the number of tasks");
    for (place, task) in set.system.tasks_mut().iter_mut().enumerate() {
        task.bcet = Time(task.wcet.0 * 2 / 5);
        task.execution = ExecutionModel::Uniform;
        (task.criticality, task.value) = worth(place);
    }
    let mode = |(place, (at, work, rate, silent)): (usize, &Switch)| {
        let stop = set.task_ids().filter(|task| *silent && task.0 % 3 == 2).collect();
        Mode::new(format!("m{place}"), Time::from_secs(*at)).with_work(*work).with_rate(*rate).with_stop(stop)
    };
    set.set_modes(switches.iter().enumerate().map(mode).collect());
    set
}
