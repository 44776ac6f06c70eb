//! A task set: the tasks, the machine they run on, and what happens to them over time.

use crate::{Aim, Arrival, ExecutionModel, ListedJob, Task, Time, TimeUnit};

/// What happens to a job that is not complete at its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMiss {
    /// It is removed at its deadline.
    #[default]
    Abort,
    /// It stays and keeps competing for the cores.
    Continue,
}

impl OnMiss {
    /// Its name in files, flags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            OnMiss::Abort => "abort",
            OnMiss::Continue => "continue",
        }
    }

    /// The rule called `name`.
    pub fn from_name(name: &str) -> Option<OnMiss> {
        [OnMiss::Abort, OnMiss::Continue].into_iter().find(|rule| rule.name() == name)
    }
}

/// The time that dispatching takes from the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Added to a job's work when it is put on a core that did not run it just before.
    pub context_switch: Time,
    /// Added to a job's work when it resumes on another core than the one it last ran on.
    pub migration: Time,
    /// Added to the work of the job on core 0, which takes the decisions, and of every job a decision dispatches.
    pub decision: Time,
}

/// A core's speed in thousandths of full speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speed(pub u32);

impl Speed {
    /// Full speed, at which execution times are stated.
    pub const FULL: Speed = Speed(1000);
}

/// From `at` on, the load is another one, until the next mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Shown in reports.
    pub name: String,
    /// When it begins.
    pub at: Time,
    /// Execution times are multiplied by this.
    pub work: f64,
    /// Arrivals come this many times as often; deadlines shrink alike.
    pub rate: f64,
    /// The tasks, by index, that release jobs in this mode; `None` is all.
    pub tasks: Option<Vec<usize>>,
}

/// A reservation that serves the jobs of some tasks: `budget` in every `period`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Unique within its set.
    pub name: String,
    /// Processor time per period.
    pub budget: Time,
    /// Replenishment period.
    pub period: Time,
}

/// Everything a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSet {
    /// The file's stem or the built-in name.
    pub name: String,
    /// One sentence on what it is and where it comes from.
    pub description: String,
    /// In file order; the order breaks ties.
    pub tasks: Vec<Task>,
    /// Identical cores.
    pub cores: usize,
    /// The default miss rule.
    pub on_miss: OnMiss,
    /// What the file states as the goal, the most important first; see [`TaskSet::goal`].
    pub aims: Vec<Aim>,
    /// The unit the file was written in; conversions keep it.
    pub time_unit: TimeUnit,
    /// What dispatching costs.
    pub costs: Costs,
    /// Speeds a scheduler may choose from, ascending, the last one full. Just full speed if the file is silent.
    pub speeds: Vec<Speed>,
    /// Sorted by date.
    pub modes: Vec<Mode>,
    /// Reservations for aperiodic work.
    pub servers: Vec<Server>,
}

impl TaskSet {
    /// A set of `tasks` on `cores` cores, with everything else as files have it by default.
    pub fn new(name: impl Into<String>, tasks: Vec<Task>, cores: usize) -> TaskSet {
        TaskSet {
            name: name.into(),
            description: String::new(),
            tasks,
            cores,
            on_miss: OnMiss::default(),
            aims: Vec::new(),
            time_unit: TimeUnit::Ms,
            costs: Costs::default(),
            speeds: vec![Speed::FULL],
            modes: Vec::new(),
            servers: Vec::new(),
        }
    }

    /// Total utilisation at the wcet; above the number of cores the set is overloaded. For a list of jobs: the mean demand
    /// between the first release and the last deadline.
    pub fn utilization(&self) -> f64 {
        self.listed_utilization(|job| job.wcet).unwrap_or_else(|| self.tasks.iter().map(Task::utilization).sum())
    }

    /// Total utilisation at average execution times; at the true ones for a list of jobs. For reports: a scheduler knows [`Task::mean_utilization`].
    pub fn mean_utilization(&self) -> f64 {
        let listed = self.listed_utilization(|job| job.execution);
        listed.unwrap_or_else(|| self.tasks.iter().map(Task::mean_utilization).sum())
    }

    fn listed_utilization(&self, demand: fn(&ListedJob) -> Time) -> Option<f64> {
        let mut jobs: Vec<&ListedJob> = Vec::new();
        for task in &self.tasks {
            // Beside tasks that recur, a list counts by its own mean demand.
            let Arrival::Listed(list) = &task.arrival else { return None };
            jobs.extend(list.iter());
        }
        let first = jobs.iter().map(|job| job.release).min()?;
        let last = jobs.iter().map(|job| job.deadline).max()?;
        let work: f64 = jobs.iter().map(|job| demand(job).0 as f64).sum();
        Some(work / last.saturating_sub(first).0.max(1) as f64)
    }

    /// The least common multiple of the periods, if every task is periodic and it fits.
    pub fn hyperperiod(&self) -> Option<Time> {
        let mut lcm: u64 = 1;
        for task in &self.tasks {
            let Arrival::Periodic { period } = task.arrival else { return None };
            lcm = (lcm / gcd(lcm, period.0)).checked_mul(period.0)?;
            if lcm > Time::MAX_INPUT.0 {
                return None;
            }
        }
        Some(Time(lcm))
    }

    /// The same set with every execution time multiplied by `parts / whole`, rounded up to whole nanoseconds and cut at the
    /// longest time a user may write.
    pub fn with_work(&self, parts: u64, whole: u64) -> TaskSet {
        let scaled = |time: Time| {
            let product = u128::from(time.0) * u128::from(parts);
            Time(product.div_ceil(u128::from(whole.max(1))).clamp(1, u128::from(Time::MAX_INPUT.0)) as u64)
        };
        let mut set = self.clone();
        for task in &mut set.tasks {
            (task.wcet, task.bcet) = (scaled(task.wcet), scaled(task.bcet));
            (task.acet, task.wcet_high) = (task.acet.map(scaled), task.wcet_high.map(scaled));
            scale_model(&mut task.execution, &scaled);
            if let Arrival::Listed(jobs) = &mut task.arrival {
                let job = |job: &ListedJob| ListedJob {
                    execution: scaled(job.execution),
                    wcet: scaled(job.wcet),
                    bcet: if job.bcet == job.wcet { scaled(job.wcet) } else { job.bcet },
                    ..*job
                };
                *jobs = jobs.iter().map(job).collect();
            }
        }
        set
    }

    /// Whether two runs with different seeds can differ.
    pub fn is_random(&self) -> bool {
        self.tasks.iter().any(|task| match &task.arrival {
            Arrival::Listed(_) => false,
            Arrival::Sporadic { .. } => true,
            _ => task.jitter > Time::ZERO || task.execution.is_random(),
        })
    }

    /// Whether jobs differ from one in value, so that value says more than their number.
    pub fn has_values(&self) -> bool {
        self.tasks.iter().any(|task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.iter().any(|job| job.value != 1.0),
            _ => task.value != 1.0,
        })
    }

    /// Whether any job is critical, so that PITMD means something.
    pub fn has_critical_tasks(&self) -> bool {
        !self.levels().is_empty()
    }
}

fn scale_model(model: &mut ExecutionModel, scaled: &dyn Fn(Time) -> Time) {
    match model {
        ExecutionModel::Normal { deviation } => *deviation = scaled(*deviation),
        ExecutionModel::Empirical { samples } => *samples = samples.iter().map(|sample| scaled(*sample)).collect(),
        ExecutionModel::Overrun { below, .. } => scale_model(below, scaled),
        ExecutionModel::Wcet
        | ExecutionModel::Uniform
        | ExecutionModel::Weibull { .. }
        | ExecutionModel::Pareto { .. } => {}
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyperperiod_is_the_least_common_multiple_or_none() {
        let set = |periods: &[u64]| {
            let tasks = periods.iter().map(|p| Task::periodic(format!("t{p}"), Time::from_ms(*p), Time::from_ms(1)));
            TaskSet::new("test", tasks.collect(), 1)
        };
        assert_eq!(set(&[40, 60, 100]).hyperperiod(), Some(Time::from_ms(600)));
        let primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039];
        assert_eq!(set(&primes).hyperperiod(), None);
    }

    #[test]
    fn single_jobs_beside_recurring_tasks_add_their_mean_demand() {
        let ms = Time::from_ms;
        let (execution, wcet) = (ms(1), ms(2));
        let job =
            ListedJob { release: ms(5), deadline: ms(15), execution, wcet, bcet: Time(1), criticality: 0, value: 1.0 };
        let listed = Task { arrival: Arrival::Listed([job].into()), ..Task::periodic("jobs", ms(10), wcet) };
        let mut set = TaskSet::new("test", vec![listed], 1);
        assert_eq!(set.utilization(), 0.2);
        set.tasks.push(Task::periodic("task", ms(10), ms(5)));
        assert_eq!(set.utilization(), 0.7);
    }

    #[test]
    fn scaling_multiplies_every_execution_time_and_rounds_up() {
        let mut task = Task::periodic("a", Time(100), Time(10));
        (task.bcet, task.wcet_high) = (Time(5), Some(Time(15)));
        let samples = [Time(5), Time(10)].into();
        let below = Box::new(ExecutionModel::Empirical { samples });
        task.execution = ExecutionModel::Overrun { probability: 0.1, below };
        let scaled = TaskSet::new("s", vec![task], 1).with_work(1_250, 1_000);
        let task = &scaled.tasks[0];
        assert_eq!((task.bcet, task.wcet, task.wcet_high), (Time(7), Time(13), Some(Time(19))));
        let ExecutionModel::Overrun { below, .. } = &task.execution else { panic!("{task:?}") };
        assert_eq!(**below, ExecutionModel::Empirical { samples: [Time(7), Time(13)].into() });
    }
}
