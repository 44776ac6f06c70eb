//! A task set: the tasks, the machine they run on, and the modes that change their load over time.

use crate::{Aim, Arrival, Chain, Core, ListedJob, Protocol, Speed, Task, Time, TimeUnit};

/// Rule for a job that is not complete at its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMiss {
    /// The job is removed at its deadline. This is the default.
    #[default]
    Abort,
    /// The job stays and keeps competing for the cores.
    Continue,
}

impl OnMiss {
    /// Name of the rule in files, flags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            OnMiss::Abort => "abort",
            OnMiss::Continue => "continue",
        }
    }

    /// Returns the rule with this name.
    pub fn from_name(name: &str) -> Option<OnMiss> {
        [OnMiss::Abort, OnMiss::Continue].into_iter().find(|rule| rule.name() == name)
    }
}

/// Overheads of scheduling, as times added to the work of jobs. All are zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Added when a job is dispatched to a core whose previous job was another one.
    pub context_switch: Time,
    /// Added when a job resumes on a core other than the one it last ran on.
    pub migration: Time,
    /// Added at each decision to the job on core 0, which takes the decisions, and to every job that the decision
    /// dispatches.
    pub decision: Time,
}

/// A change of the load that lasts from `at` until the next mode begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Name shown in reports.
    pub name: String,
    /// Time at which the mode begins.
    pub at: Time,
    /// Factor on execution times, best and worst case included.
    pub work: f64,
    /// Factor on the arrival rate. Relative deadlines shrink by the same factor.
    pub rate: f64,
    /// Indices of the tasks that release jobs in this mode; `None` means all tasks.
    pub tasks: Option<Vec<usize>>,
}

/// A reservation that serves the jobs of some tasks with `budget` processor time in every `period`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Name, unique among the servers of the set.
    pub name: String,
    /// Processor time per period.
    pub budget: Time,
    /// Replenishment period.
    pub period: Time,
}

/// A task set with its machine: everything that a task-set file can state.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSet {
    /// Stem of the file name, or name of the built-in set.
    pub name: String,
    /// One sentence on what the set is and where it comes from. May be empty.
    pub description: String,
    /// Tasks in file order. The order breaks ties between jobs.
    pub tasks: Vec<Task>,
    /// Number of cores.
    pub cores: usize,
    /// Name and speed of each core; empty if the cores are identical and have no names.
    pub machine: Vec<Core>,
    /// Rule for jobs that are not complete at their deadline.
    pub on_miss: OnMiss,
    /// Aims that the file states, most important first; see [`TaskSet::goal`].
    pub aims: Vec<Aim>,
    /// Unit of bare numbers in the file. Conversions keep it.
    pub time_unit: TimeUnit,
    /// Overheads of scheduling.
    pub costs: Costs,
    /// Speeds that a scheduler may choose from, ascending. The last is full speed, which is also the only one by default.
    pub speeds: Vec<Speed>,
    /// Modes, sorted by the time at which they begin.
    pub modes: Vec<Mode>,
    /// Servers: reservations for aperiodic work.
    pub servers: Vec<Server>,
    /// Chains of tasks whose reaction time and data age are measured.
    pub chains: Vec<Chain>,
    /// Names of the resources that tasks lock in their critical sections.
    pub resources: Vec<String>,
    /// Rule for jobs that want a resource that another one holds.
    pub protocol: Protocol,
}

impl TaskSet {
    /// Creates a set of `tasks` on `cores` cores. Everything else has the default value of a file.
    pub fn new(name: impl Into<String>, tasks: Vec<Task>, cores: usize) -> TaskSet {
        TaskSet {
            name: name.into(),
            description: String::new(),
            tasks,
            cores,
            machine: Vec::new(),
            on_miss: OnMiss::default(),
            aims: Vec::new(),
            time_unit: TimeUnit::Ms,
            costs: Costs::default(),
            speeds: vec![Speed::FULL],
            modes: Vec::new(),
            servers: Vec::new(),
            chains: Vec::new(),
            resources: Vec::new(),
            protocol: Protocol::default(),
        }
    }

    /// Returns whether jobs of some task hold their cores; see [`crate::Preemption`].
    pub fn is_limited(&self) -> bool {
        self.tasks.iter().any(|task| task.preemption.is_limited())
    }

    /// Returns the total utilization at the wcet. A set whose utilization exceeds the number of cores
    /// ([`TaskSet::capacity`] where they have speeds) is overloaded.
    ///
    /// Listed jobs contribute their mean demand between the first release and the last deadline: of the whole set if
    /// every task is a list of jobs, otherwise of their own list.
    pub fn utilization(&self) -> f64 {
        self.listed_utilization(|job| job.wcet).unwrap_or_else(|| self.tasks.iter().map(Task::utilization).sum())
    }

    /// Returns the total utilization at average execution times, for reports.
    ///
    /// A set that consists of listed jobs only is measured by their true execution times, which a scheduler does not
    /// know. [`Task::mean_utilization`] uses only what a scheduler knows.
    pub fn mean_utilization(&self) -> f64 {
        let listed = self.listed_utilization(|job| job.execution);
        listed.unwrap_or_else(|| self.tasks.iter().map(Task::mean_utilization).sum())
    }

    /// Mean demand of a set that consists of listed jobs only, in cores.
    fn listed_utilization(&self, demand: fn(&ListedJob) -> Time) -> Option<f64> {
        let mut jobs: Vec<&ListedJob> = Vec::new();
        for task in &self.tasks {
            // In a set with recurring tasks, each list contributes the mean demand over its own jobs.
            let Arrival::Listed(list) = &task.arrival else { return None };
            jobs.extend(list.iter());
        }
        let first = jobs.iter().map(|job| job.release).min()?;
        let last = jobs.iter().map(|job| job.deadline).max()?;
        let work: f64 = jobs.iter().map(|job| demand(job).0 as f64).sum();
        Some(work / last.saturating_sub(first).0.max(1) as f64)
    }

    /// Returns the least common multiple of the periods, or `None` if a task is not periodic or the result exceeds
    /// [`Time::MAX_INPUT`].
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

    /// Returns the set with every execution time multiplied by `parts / whole`; see [`Task::with_work`].
    pub fn with_work(&self, parts: u64, whole: u64) -> TaskSet {
        TaskSet { tasks: self.tasks.iter().map(|task| task.with_work(parts, whole)).collect(), ..self.clone() }
    }

    /// Returns whether two runs with different seeds can differ.
    pub fn is_random(&self) -> bool {
        self.tasks.iter().any(|task| match &task.arrival {
            Arrival::Listed(_) => false,
            Arrival::Sporadic { .. } => true,
            _ => task.jitter > Time::ZERO || task.execution.is_random() || task.estimate_error > Some(0.0),
        })
    }

    /// Returns whether any job has a value other than 1, so that total value and number of jobs differ.
    pub fn has_values(&self) -> bool {
        self.tasks.iter().any(|task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.iter().any(|job| job.value != 1.0),
            _ => task.value != 1.0,
        })
    }

    /// Returns whether any job is critical, which is when PITMD, the share of critical jobs in time, is defined.
    pub fn has_critical_tasks(&self) -> bool {
        !self.levels().is_empty()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExecutionModel;

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
        let job = ListedJob {
            release: ms(5),
            deadline: ms(15),
            execution,
            wcet,
            bcet: Time(1),
            criticality: 0,
            value: 1.0,
            estimate: None,
        };
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
