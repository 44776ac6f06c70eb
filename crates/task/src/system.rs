//! The part of the state that does not change during a run: tasks, machine and rules.
//!
//! A [`System`] states properties and keeps what follows from them: tables of the machine, whether preemption is
//! limited, the goal. Its fields are private, and every way to change one works out anew what follows from it, so that
//! nothing that is derived can be stale. A [`TaskSet`] contains a system and dereferences to it; what it has in
//! addition is what schedulers do not see, such as modes.

use alloc::{string::String, vec, vec::Vec};
use core::ops::{Deref, DerefMut};

use crate::{
    Aim, Arrival, Chain, Core, CoreId, Costs, Goal, ListedJob, Machine, OnMiss, Protocol, Server, Speed, Task, TaskId,
    TaskSet, Time,
};

/// Tasks and machine, as a scheduler knows them from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    tasks: Vec<Task>,
    cores: usize,
    machine: Machine,
    is_limited: bool,
    on_miss: OnMiss,
    costs: Costs,
    stretch: f64,
    most_work: f64,
    least_work: f64,
    speeds: Vec<Speed>,
    servers: Vec<Server>,
    chains: Vec<Chain>,
    resources: Vec<String>,
    protocol: Protocol,
    aims: Vec<Aim>,
    goal: Goal,
}

impl System {
    /// Creates a system of `tasks` on `cores` identical cores. Everything else has the default value of a file.
    pub fn new(tasks: Vec<Task>, cores: usize) -> System {
        let mut system = System {
            tasks,
            cores,
            machine: Machine::default(),
            is_limited: false,
            on_miss: OnMiss::default(),
            costs: Costs::default(),
            stretch: 1.0,
            most_work: 1.0,
            least_work: 1.0,
            speeds: vec![Speed::FULL],
            servers: Vec::new(),
            chains: Vec::new(),
            resources: Vec::new(),
            protocol: Protocol::default(),
            aims: Vec::new(),
            goal: Goal::default(),
        };
        system.derive();
        system
    }

    /// Works out what follows from the stated properties.
    fn derive(&mut self) {
        self.derive_from_tasks();
        self.goal = self.goal_led_by(&[]);
    }

    fn derive_from_tasks(&mut self) {
        if let Some(shared) = self.machine.shared() {
            let free = self.tasks.iter_mut().filter(|task| task.cores.is_all());
            free.for_each(|task| task.cores = shared.clone());
        }
        self.machine = Machine::new(self.machine.cores().to_vec(), self.cores, &self.tasks);
        self.is_limited = self.tasks.iter().any(|task| task.preemption.is_limited());
    }

    /// Tasks in file order. The order breaks ties between jobs.
    #[inline]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Iterates over the ids of the tasks.
    #[inline]
    pub fn task_ids(&self) -> impl DoubleEndedIterator<Item = TaskId> + ExactSizeIterator + Clone + use<> {
        TaskId::all(self.tasks.len())
    }

    /// Returns the tasks to change. What follows from them is worked out anew when the guard is dropped.
    pub fn tasks_mut(&mut self) -> TasksMut<'_> {
        TasksMut { system: self }
    }

    /// Number of cores.
    #[inline]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Iterates over the ids of the cores.
    #[inline]
    pub fn core_ids(&self) -> impl DoubleEndedIterator<Item = CoreId> + ExactSizeIterator + Clone + use<> {
        CoreId::all(self.cores)
    }

    /// Names and speeds of the cores, and which of them the tasks may use.
    #[inline]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether jobs of some task hold their cores; see [`crate::Preemption`].
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Rule for jobs that are not complete at their deadline.
    #[inline]
    pub fn on_miss(&self) -> OnMiss {
        self.on_miss
    }

    /// Overheads of scheduling, which come on top of the wcets.
    #[inline]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Largest factor by which a mode lengthens relative deadlines and periods; 1 if none does. Schedulers do not know
    /// when a mode begins.
    #[inline]
    pub fn stretch(&self) -> f64 {
        self.stretch
    }

    /// Largest factor by which a mode lengthens execution times; 1 if none does.
    #[inline]
    pub fn most_work(&self) -> f64 {
        self.most_work
    }

    /// Smallest factor by which a mode shortens execution times; 1 if none does.
    #[inline]
    pub fn least_work(&self) -> f64 {
        self.least_work
    }

    /// Speeds that a scheduler may choose from, ascending. The last is full speed, which is also the only one by
    /// default.
    #[inline]
    pub fn speeds(&self) -> &[Speed] {
        &self.speeds
    }

    /// Servers: reservations for the jobs of some tasks.
    #[inline]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Chains of tasks whose reaction time and data age are measured.
    #[inline]
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Names of the resources that tasks lock in their critical sections.
    #[inline]
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// Rule for jobs that want a resource that another one holds.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Aims that are stated, most important first; see [`System::goal`].
    pub fn aims(&self) -> &[Aim] {
        &self.aims
    }

    /// Measures by which schedules of this system are judged: the stated aims, then, to decide among schedules that are
    /// equal in those, the aims that follow from the tasks: critical jobs level by level, chains, (m,k) constraints,
    /// value, jobs in time.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Replaces the tasks.
    pub fn set_tasks(&mut self, tasks: Vec<Task>) {
        self.tasks = tasks;
        self.derive();
    }

    /// Sets the number of cores. Whether the named cores and the tasks agree with it is for [`System::validate`] to
    /// say; [`System::change_cores`] asks before.
    pub fn set_cores(&mut self, cores: usize) {
        self.cores = cores;
        self.derive_from_tasks();
    }

    /// Sets names and speeds of the cores; none if the cores are identical and have no names. Tasks that may use all
    /// cores are bound to those that are not [`Core::only`] for others.
    pub fn set_machine(&mut self, cores: Vec<Core>) {
        self.machine = Machine::new(cores, self.cores, &self.tasks);
        self.derive_from_tasks();
    }

    /// Sets the rule for jobs that are not complete at their deadline.
    pub fn set_on_miss(&mut self, on_miss: OnMiss) {
        self.on_miss = on_miss;
    }

    /// Sets the overheads of scheduling.
    pub fn set_costs(&mut self, costs: Costs) {
        self.costs = costs;
    }

    /// Sets what modes change: the factor by which they lengthen times between releases, and the least and the most
    /// work.
    pub(crate) fn set_modes(&mut self, stretch: f64, [least_work, most_work]: [f64; 2]) {
        (self.stretch, self.least_work, self.most_work) = (stretch, least_work, most_work);
    }

    /// Sets the speeds that a scheduler may choose from.
    pub fn set_speeds(&mut self, speeds: Vec<Speed>) {
        self.speeds = speeds;
    }

    /// Sets the servers.
    pub fn set_servers(&mut self, servers: Vec<Server>) {
        self.servers = servers;
    }

    /// Sets the chains.
    pub fn set_chains(&mut self, chains: Vec<Chain>) {
        self.chains = chains;
        self.goal = self.goal_led_by(&[]);
    }

    /// Sets the names of the resources.
    pub fn set_resources(&mut self, resources: Vec<String>) {
        self.resources = resources;
    }

    /// Sets the rule for jobs that want a resource that another one holds.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Sets the stated aims, most important first.
    pub fn set_aims(&mut self, aims: Vec<Aim>) {
        self.aims = aims;
        self.goal = self.goal_led_by(&[]);
    }

    /// Returns the system as an observer of its jobs describes it: with `tasks` in place of its own, and judged as
    /// before. What an observer does not know, such as the values of listed jobs to come, does not change the goal.
    #[must_use]
    pub fn described_by(&self, tasks: Vec<Task>) -> System {
        let mut system = self.clone();
        system.tasks = tasks;
        system.derive_from_tasks();
        system
    }

    /// Returns the first task whose jobs hold their cores, if there is one.
    pub fn limited_task(&self) -> Option<&Task> {
        self.tasks.iter().find(|task| task.preemption.is_limited())
    }

    /// Returns whether no job is ever preempted, as requests of a server that has as many slots as there are cores.
    pub fn is_server(&self) -> bool {
        self.tasks.iter().all(|task| task.preemption.is_never())
    }

    /// Returns the median wcet of the tasks, each on the fastest core that it may use, and at least one nanosecond: the
    /// unit of time of a set.
    pub fn median_wcet(&self) -> Time {
        let time = |(id, task): (TaskId, &Task)| self.machine.fastest(id).time_for(task.wcet);
        let mut wcets: Vec<Time> = self.task_ids().zip(&self.tasks).map(time).collect();
        wcets.sort_unstable();
        wcets.get(wcets.len() / 2).copied().unwrap_or_default().max(Time(1))
    }

    /// Returns the total utilization at the wcet. A system whose utilization exceeds the number of cores
    /// ([`System::capacity`] where they have speeds) is overloaded.
    ///
    /// Listed jobs contribute their mean demand between the first release and the last deadline: of the whole system if
    /// every task is a list of jobs, otherwise of their own list.
    pub fn utilization(&self) -> f64 {
        self.listed_utilization(|job| job.wcet).unwrap_or_else(|| self.tasks.iter().map(Task::utilization).sum())
    }

    /// Returns the total utilization at average execution times, for reports.
    ///
    /// A system that consists of listed jobs only is measured by their true execution times, which a scheduler does not
    /// know. [`Task::mean_utilization`] uses only what a scheduler knows.
    pub fn mean_utilization(&self) -> f64 {
        let listed = self.listed_utilization(|job| job.execution);
        listed.unwrap_or_else(|| self.tasks.iter().map(Task::mean_utilization).sum())
    }

    /// Mean demand of a system that consists of listed jobs only, in cores.
    fn listed_utilization(&self, demand: fn(&ListedJob) -> Time) -> Option<f64> {
        let mut jobs: Vec<&ListedJob> = Vec::new();
        for task in &self.tasks {
            // In a system with recurring tasks, each list contributes the mean demand over its own jobs.
            let Arrival::Listed(list) = &task.arrival else { return None };
            jobs.extend(list.iter());
        }
        let first = jobs.iter().map(|job| job.release).min()?;
        let last = jobs.iter().map(|job| job.deadline).max()?;
        let work: f64 = jobs.iter().map(|job| demand(job).0 as f64).sum();
        Some(work / last.saturating_sub(first).0.max(1) as f64)
    }

    /// Returns the mean utilization of each task, as far as an online scheduler may know it.
    ///
    /// For listed jobs, it is the middle of [`crate::ListedJob::bcet`] and [`crate::ListedJob::wcet`], summed up and
    /// divided by the time between the first release and the last deadline of all lists.
    pub fn mean_utilizations(&self) -> Vec<f64> {
        let listed = self.tasks.iter().filter_map(|task| match &task.arrival {
            Arrival::Listed(jobs) => Some(jobs.iter()),
            _ => None,
        });
        let (first, last) = listed
            .flatten()
            .fold((Time::NEVER, Time::ZERO), |(first, last), job| (first.min(job.release), last.max(job.deadline)));
        let window = last.saturating_sub(first).0.max(1) as f64;
        let load = |task: &Task| match &task.arrival {
            Arrival::Listed(jobs) => {
                jobs.iter().map(|job| (job.bcet.0 + job.wcet.0) as f64 / 2.0).sum::<f64>() / window
            }
            _ => task.mean_utilization(),
        };
        self.tasks.iter().map(load).collect()
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

/// Tasks of a [`System`] while they are being changed. What follows from them is worked out anew when this is dropped.
#[derive(Debug)]
pub struct TasksMut<'a> {
    system: &'a mut System,
}

impl Deref for TasksMut<'_> {
    type Target = Vec<Task>;

    fn deref(&self) -> &Vec<Task> {
        &self.system.tasks
    }
}

impl DerefMut for TasksMut<'_> {
    fn deref_mut(&mut self) -> &mut Vec<Task> {
        &mut self.system.tasks
    }
}

impl Drop for TasksMut<'_> {
    fn drop(&mut self) {
        self.system.derive();
    }
}

/// Defines the methods that return a system, or a set, with one property replaced.
macro_rules! replaced {
    ($($(#[$doc:meta])* $with:ident, $set:ident, $type:ty;)*) => {
        impl System {
            $($(#[$doc])*
            #[must_use]
            pub fn $with(mut self, value: $type) -> System {
                self.$set(value);
                self
            })*
        }

        impl TaskSet {
            $($(#[$doc])*
            #[must_use]
            pub fn $with(mut self, value: $type) -> TaskSet {
                self.system.$set(value);
                self
            })*
        }
    };
}

replaced! {
    /// Returns it with these tasks.
    with_tasks, set_tasks, Vec<Task>;
    /// Returns it with this number of cores; see [`System::set_cores`].
    with_cores, set_cores, usize;
    /// Returns it with these named cores; see [`System::set_machine`].
    with_machine, set_machine, Vec<Core>;
    /// Returns it with this rule for jobs that are not complete at their deadline.
    with_on_miss, set_on_miss, OnMiss;
    /// Returns it with these overheads of scheduling.
    with_costs, set_costs, Costs;
    /// Returns it with these speeds to choose from.
    with_speeds, set_speeds, Vec<Speed>;
    /// Returns it with these servers.
    with_servers, set_servers, Vec<Server>;
    /// Returns it with these chains.
    with_chains, set_chains, Vec<Chain>;
    /// Returns it with these resources.
    with_resources, set_resources, Vec<String>;
    /// Returns it with this rule for jobs that want a resource that another one holds.
    with_protocol, set_protocol, Protocol;
    /// Returns it with these stated aims.
    with_aims, set_aims, Vec<Aim>;
}
