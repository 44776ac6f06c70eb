//! The builder of a run: tasks with their code, cores, scheduler and rules.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use temponet_sim::MOST_READY;
use temponet_task::{Arrival, Gap, OnMiss, Preemption, Scheduler, Server, System, Task, Time};

use crate::carrier::Carrier;
use crate::decider::Mailbox;
use crate::dispatcher::{DispatchPlan, Dispatcher};
use crate::doorbell::{Doorbell, TaskRequests};
use crate::error::RuntimeError;
use crate::job::Job;
use crate::platform::Platform;
use crate::releases::{Releases, Timers};
use crate::report::{Report, metrics};
use crate::virtual_time::VirtualTime;

/// What happens to a job that has used up its wcet. Whatever the rule, a job that has used ten times its wcet is
/// demoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverrun {
    /// The overrun is counted and the job goes on. This is the default.
    #[default]
    Report,
    /// The job goes on without real-time priority, where no other job needs the core. It may still meet its deadline.
    Demote,
    /// The job counts as missed and is told to return ([`Job::expired`]).
    Abort,
}

/// Code of a task.
pub(crate) type Body = Box<dyn FnMut(&Job<'_>) + Send>;

pub(crate) struct TaskPlan {
    pub task: Task,
    pub body: Body,
    pub on_overrun: OnOverrun,
    pub requests: Arc<TaskRequests>,
}

/// Description of a run. See the [crate's documentation](crate) for an example.
pub struct Runtime {
    pub(crate) tasks: Vec<TaskPlan>,
    /// Setter of a task that was called before there was one.
    misplaced: Option<&'static str>,
    servers: Vec<Server>,
    pub(crate) cpus: Vec<usize>,
    pub(crate) housekeeping: usize,
    pub(crate) scheduler: Option<Box<dyn Scheduler>>,
    pub(crate) decider: Option<Box<dyn Scheduler>>,
    on_miss: OnMiss,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) locks_memory: bool,
    pub(crate) has_guard: bool,
    pub(crate) carrier: Option<Box<dyn Carrier>>,
}

impl Default for Runtime {
    fn default() -> Runtime {
        Runtime::new()
    }
}

impl Runtime {
    /// A run without tasks, of workers on processor 1 and the dispatcher on processor 0. Late jobs are aborted.
    pub fn new() -> Runtime {
        Runtime {
            tasks: Vec::new(),
            misplaced: None,
            servers: Vec::new(),
            cpus: vec![1],
            housekeeping: 0,
            scheduler: None,
            decider: None,
            on_miss: OnMiss::Abort,
            doorbell: Arc::default(),
            locks_memory: true,
            has_guard: true,
            carrier: None,
        }
    }

    /// Processors of the machine that jobs run on. The scheduler sees as many cores.
    pub fn cores(self, cpus: impl IntoIterator<Item = usize>) -> Runtime {
        Runtime { cpus: cpus.into_iter().collect(), ..self }
    }

    /// Processor of the dispatcher, which no job ever runs on. Interrupts and other programs belong here, too.
    pub fn housekeeping(self, cpu: usize) -> Runtime {
        Runtime { housekeeping: cpu, ..self }
    }

    /// Scheduler whose choice is applied at once. It has to be fast: the dispatcher waits for it.
    pub fn scheduler(self, scheduler: impl Scheduler + 'static) -> Runtime {
        Runtime { scheduler: Some(Box::new(scheduler)), ..self }
    }

    /// Slow scheduler, such as the learned one, on a thread of its own. Its choice replaces that of
    /// [`Runtime::scheduler`] when it comes, unless something has happened meanwhile.
    pub fn decider(self, scheduler: impl Scheduler + 'static) -> Runtime {
        Runtime { decider: Some(Box::new(scheduler)), ..self }
    }

    /// Has a carrier put the chosen threads on the processors, in place of real-time priorities.
    pub fn carrier(self, carrier: impl Carrier + 'static) -> Runtime {
        Runtime { carrier: Some(Box::new(carrier)), ..self }
    }

    /// Rule for jobs that are not done at their deadline.
    pub fn on_miss(self, rule: OnMiss) -> Runtime {
        Runtime { on_miss: rule, ..self }
    }

    /// Reservations that tasks name by their index, for the scheduler `cbs`; see
    /// [`Attribute::Server`](temponet_task::Attribute::Server).
    pub fn servers(self, servers: Vec<Server>) -> Runtime {
        Runtime { servers, ..self }
    }

    /// Whether all memory of the process is locked while the run lasts, so that no page fault delays a job. True by
    /// default.
    pub fn lock_memory(self, locks: bool) -> Runtime {
        Runtime { locks_memory: locks, ..self }
    }

    /// Adds a periodic task whose jobs run `body`, with the period as relative deadline. The calls that follow change
    /// this task.
    pub fn task(
        self,
        name: impl Into<String>,
        period: Time,
        wcet: Time,
        body: impl FnMut(&Job<'_>) + Send + 'static,
    ) -> Runtime {
        self.add(Task::periodic(name, period, wcet), Box::new(body))
    }

    /// Adds a task whose jobs are released by [`TaskHandle::release`], at least `minimum` apart. The calls that follow
    /// change this task.
    pub fn sporadic(
        self,
        name: impl Into<String>,
        minimum: Time,
        wcet: Time,
        body: impl FnMut(&Job<'_>) + Send + 'static,
    ) -> Runtime {
        let arrival = Arrival::Sporadic { minimum, gap: Gap::Uniform { max: minimum } };
        self.add(Task::periodic(name, minimum, wcet).with_arrival(arrival), Box::new(body))
    }

    /// Adds a task with all that `task` states, such as one of a task-set file. The calls that follow change this task.
    ///
    /// A run refuses tasks that follow others, have critical sections, or arrive in bursts or from a list.
    pub fn task_like(self, task: Task, body: impl FnMut(&Job<'_>) + Send + 'static) -> Runtime {
        self.add(task, Box::new(body))
    }

    fn add(mut self, task: Task, body: Body) -> Runtime {
        self.tasks.push(TaskPlan { task, body, on_overrun: OnOverrun::default(), requests: Arc::default() });
        self
    }

    /// Changes the task that was added last. Without a task, the run is refused and names the `setter`.
    fn last(mut self, setter: &'static str, change: impl FnOnce(&mut TaskPlan)) -> Runtime {
        match self.tasks.last_mut() {
            Some(plan) => change(plan),
            None => _ = self.misplaced.get_or_insert(setter),
        }
        self
    }

    /// Changes any attribute of the task: `.with(|task| task.with_value(3.0).with_mk(Some((2, 3))))`.
    pub fn with(self, change: impl FnOnce(Task) -> Task) -> Runtime {
        self.last("with", |plan| plan.task = change(plan.task.clone()))
    }

    /// Relative deadline of the task.
    pub fn deadline(self, deadline: Time) -> Runtime {
        self.last("deadline", |plan| plan.task.deadline = deadline)
    }

    /// Date of the first release of the task.
    pub fn offset(self, offset: Time) -> Runtime {
        self.last("offset", |plan| plan.task.offset = offset)
    }

    /// Criticality level of the task; 0 is not critical.
    pub fn criticality(self, level: u8) -> Runtime {
        self.last("criticality", |plan| plan.task.criticality = level)
    }

    /// The shield guarantees the deadlines of the task, even if others have to miss theirs.
    pub fn guarantee(self) -> Runtime {
        self.last("guarantee", |plan| plan.task.guarantee = true)
    }

    /// Value of meeting a deadline of the task.
    pub fn value(self, value: f64) -> Runtime {
        self.last("value", |plan| plan.task.value = value)
    }

    /// Best-case execution time of the task. Equal to the wcet by default.
    pub fn bcet(self, bcet: Time) -> Runtime {
        self.last("bcet", |plan| plan.task.bcet = bcet)
    }

    /// Jobs of the task run to completion once they have started: no other job takes their core, and at their deadline
    /// they go on. An overrun is only reported, up to ten times the wcet.
    pub fn not_preempted(self) -> Runtime {
        self.last("not_preempted", |plan| plan.task.preemption = Preemption::None)
    }

    /// Rule for jobs of the task that use up their wcet.
    pub fn on_overrun(self, rule: OnOverrun) -> Runtime {
        self.last("on_overrun", |plan| plan.on_overrun = rule)
    }

    /// Leaves the task out at first, until [`TaskHandle::join`].
    pub fn absent(self) -> Runtime {
        self.last("absent", |plan| plan.requests.is_present.store(false, Ordering::Release))
    }

    /// Handle of the task with this name, to release its jobs from other threads, or to let it come and go; none if
    /// there is no such task.
    pub fn handle(&self, task: &str) -> Option<TaskHandle> {
        let plan = self.tasks.iter().find(|plan| plan.task.name == task)?;
        Some(TaskHandle { requests: plan.requests.clone(), doorbell: self.doorbell.clone() })
    }

    /// The system that schedulers are started with.
    pub fn system(&self) -> System {
        let tasks = self.tasks.iter().map(|plan| plan.task.clone()).collect();
        System::new(tasks, self.cpus.len()).with_on_miss(self.on_miss).with_servers(self.servers.clone())
    }

    /// Runs in virtual time, without threads: a job takes the time that `execution` returns for its task's name and
    /// number, and its closure is called when it begins. Needs no privilege and gives the same result each time. A
    /// decider is not asked.
    pub fn run_virtual(
        mut self,
        horizon: Time,
        mut execution: impl FnMut(&str, u64) -> Time,
    ) -> Result<Report, RuntimeError> {
        let mut scheduler = self.checked()?;
        let (plan, releases) = (self.dispatch_plan(horizon), self.timers());
        let names: Vec<String> = self.tasks.iter().map(|plan| plan.task.name.clone()).collect();
        let mut bodies: Vec<Body> = self.tasks.into_iter().map(|plan| plan.body).collect();
        let begin = Box::new(move |due: &crate::releases::Due| {
            let (number, release, deadline) = (due.number, due.release.release, due.release.deadline);
            bodies[due.task](&Job { number, release, deadline, clock: None });
            execution(&names[due.task], due.number).max(Time(1))
        });
        let platform = VirtualTime::new(plan.system.cores(), begin);
        let (_, report) = dispatched(plan, platform, &mut *scheduler, Box::new(releases), None)?;
        Ok(report)
    }

    /// Runs on real threads for `horizon`, and returns what happened.
    ///
    /// # Errors
    ///
    /// If the system is not Linux, or if the rights of the process do not suffice; the error says which ones are
    /// missing. Nothing has been run then.
    pub fn run_for(self, horizon: Time) -> Result<Report, RuntimeError> {
        #[cfg(target_os = "linux")]
        return crate::linux::run(self, horizon);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = horizon;
            Err(RuntimeError::NotPermitted("running threads needs Linux".into()))
        }
    }

    /// Checks the description and takes the scheduler.
    pub(crate) fn checked(&mut self) -> Result<Box<dyn Scheduler>, RuntimeError> {
        let wrong = |why: String| Err(RuntimeError::Setup(why));
        if let Some(setter) = self.misplaced {
            return wrong(format!("{setter} is set before the first task, and it belongs to one"));
        }
        let mut seen = HashMap::new();
        for (place, plan) in self.tasks.iter().enumerate() {
            if seen.insert(plan.task.name.as_str(), place).is_some() {
                return wrong(format!("two tasks are called {:?}", plan.task.name));
            }
        }
        if self.tasks.is_empty() {
            return wrong("there is no task".into());
        }
        if let Some(why) = self.tasks.iter().find_map(|plan| refusal(&plan.task)) {
            return wrong(why);
        }
        if let Some(plan) = self.tasks.iter().find(|plan| !is_timed(&plan.task)) {
            let name = &plan.task.name;
            return wrong(format!(
                "task {name:?} arrives in bursts or from a list, and closures recur or are asked for"
            ));
        }
        if self.cpus.is_empty() {
            return wrong("there is no core to run on".into());
        }
        if let Some(cpu) = self.cpus.iter().find(|cpu| **cpu == self.housekeeping) {
            return wrong(format!("processor {cpu} is for housekeeping, so no job may run on it"));
        }
        let mut sorted = self.cpus.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return wrong("a processor is named twice".into());
        }
        self.system().validate()?;
        self.scheduler.take().ok_or_else(|| RuntimeError::Setup("there is no scheduler".into()))
    }

    pub(crate) fn dispatch_plan(&self, horizon: Time) -> DispatchPlan {
        let rate: f64 = self.tasks.iter().map(|plan| plan.task.jobs_per_second()).sum();
        let jobs = (rate * horizon.as_secs_f64()).min(MOST_READY as f64) as usize;
        let on_overrun = self.tasks.iter().map(|plan| plan.on_overrun).collect();
        DispatchPlan { system: self.system(), on_overrun, horizon, jobs, hopeless: Vec::new(), shares: false }
    }

    pub(crate) fn timers(&self) -> Timers {
        let tasks = self.tasks.iter().map(|plan| plan.task.clone()).collect();
        Timers::new(tasks, self.tasks.iter().map(|plan| plan.requests.clone()).collect())
    }
}

/// Whether a timer or a request releases the jobs of a task.
fn is_timed(task: &Task) -> bool {
    matches!(task.arrival, Arrival::Periodic { .. } | Arrival::Sporadic { .. })
}

/// Returns why closures cannot be run as a task, if they cannot.
fn refusal(task: &Task) -> Option<String> {
    let name = &task.name;
    if !task.after.is_empty() {
        return Some(format!(
            "task {name:?} comes after others: make it sporadic, and have their code release it by its handle"
        ));
    }
    let has_sections = !task.sections.is_empty();
    let why = || format!("task {name:?} has critical sections: its code locks what it needs, so leave section out");
    refused_parts(task).or_else(|| has_sections.then(why))
}

/// Returns why threads cannot run the parts of a task, if it has some.
pub(crate) fn refused_parts(task: &Task) -> Option<String> {
    let name = &task.name;
    task.is_part.then(|| {
        format!("task {name:?}: a thread stays on its core, and so has no parts: simulate the set, or leave parts out")
    })
}

/// Returns why threads cannot keep to the preemption points of a task, if it has some.
pub(crate) fn refused_points(task: &Task) -> Option<String> {
    let has_points = matches!(task.preemption, Preemption::Every(_));
    let name = &task.name;
    has_points.then(|| format!("a thread cannot be stopped exactly at a preemption point, as task {name:?} asks"))
}

/// Runs a dispatcher on a platform and makes the report. Returns the platform as well.
pub(crate) fn dispatched<P: Platform>(
    plan: DispatchPlan,
    platform: P,
    scheduler: &mut dyn Scheduler,
    releases: Box<dyn Releases>,
    mailbox: Option<Mailbox>,
) -> Result<(P, Report), RuntimeError> {
    let (tasks, cores, horizon) = (plan.system.tasks().to_vec(), plan.system.cores(), plan.horizon);
    let mut dispatcher = Dispatcher::new(plan, platform, scheduler, releases, mailbox)?;
    dispatcher.run()?;
    let (platform, jobs, counts, latencies) = dispatcher.results();
    let metrics = metrics(&tasks, &jobs, horizon, &counts, cores);
    let report = Report {
        horizon,
        jobs,
        metrics,
        latencies,
        counts,
        dispatcher_time: Time::ZERO,
        lost: Vec::new(),
        notes: Vec::new(),
    };
    Ok((platform, report))
}

/// A way to a task of a run from other threads.
#[derive(Clone, Debug)]
pub struct TaskHandle {
    requests: Arc<TaskRequests>,
    doorbell: Arc<Doorbell>,
}

impl TaskHandle {
    /// Releases a job of a sporadic task now. The release is skipped, and counted, if the previous job of the task has
    /// not returned.
    pub fn release(&self) {
        #[cfg(target_os = "linux")]
        self.requests.asked_at.store(crate::linux::monotonic_ns(), Ordering::Relaxed);
        self.requests.asked.fetch_add(1, Ordering::Release);
        self.doorbell.ring_for_request();
    }

    /// Lets an absent task release jobs again, on its own grid of periods.
    pub fn join(&self) {
        self.requests.is_present.store(true, Ordering::Release);
    }

    /// Takes a task away: it releases no more jobs until it joins again. A job that is already released stays.
    pub fn leave(&self) {
        self.requests.is_present.store(false, Ordering::Release);
    }
}
