//! Validity of a system that a program describes in code rather than in a file.

use alloc::collections::BTreeSet;
use alloc::string::String;

use crate::{
    Arrival, Attribute, Costs, ExecutionModel, Gap, PrecedenceProblem, SectionProblem, Server, Speed, System, Task,
    Time,
};

/// Reason why a [`System`] cannot be scheduled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSystem {
    /// There is no core, or there are more than [`System::MOST_CORES`].
    #[error("the system has {0} cores, not 1 to {most}", most = System::MOST_CORES)]
    Cores(usize),
    /// A cost of dispatching is longer than [`Time::MAX_INPUT`].
    #[error("a cost of {0} is longer than {max}", max = Time::MAX_INPUT)]
    Cost(Time),
    /// A server has no budget or no period, or more budget than period.
    #[error("server {0:?} must have a budget above zero and at most its period")]
    Server(String),
    /// Two tasks have the same name.
    #[error("two tasks are called {0:?}")]
    TaskName(String),
    /// The machine does not name every core, or names one of a speed outside [`Speed::RANGE`].
    #[error("the machine must name every core once, with a speed from 0.001 to 1000")]
    Machine,
    /// Cores have speeds of their own, and there are speeds to choose from.
    #[error("cores with speeds of their own have no speeds to choose from")]
    SpeedsOfCores,
    /// The speeds are not ascending, do not end with full speed, or contain zero.
    #[error("speeds must ascend from above 0 to full speed (1000)")]
    Speeds,
    /// A time of a task is zero or longer than [`Time::MAX_INPUT`].
    #[error("task {task:?}: {what} is {time}, outside 1ns to {max}", max = Time::MAX_INPUT)]
    TaskTime {
        /// Name of the task.
        task: String,
        /// Which time.
        what: &'static str,
        /// Its value.
        time: Time,
    },
    /// The best-case execution time exceeds the worst-case execution time.
    #[error("task {task:?}: the bcet of {bcet} exceeds the wcet of {wcet}")]
    BcetAboveWcet {
        /// Name of the task.
        task: String,
        /// Best-case execution time.
        bcet: Time,
        /// Worst-case execution time.
        wcet: Time,
    },
    /// A setting of a task contradicts itself or another one.
    #[error("task {task:?}: {what}")]
    TaskSetting {
        /// Name of the task.
        task: String,
        /// What is wrong.
        what: TaskSettingProblem,
    },
    /// The value of a task is not a number from zero on.
    #[error("task {task:?}: the value {value} is not a number from zero on")]
    Value {
        /// Name of the task.
        task: String,
        /// Its value.
        value: f64,
    },
    /// A task names a server that does not exist.
    #[error("task {task:?}: there is no server {server}")]
    UnknownServer {
        /// Name of the task.
        task: String,
        /// Place of the server.
        server: i64,
    },
    /// Precedence, a read or a chain is impossible.
    #[error("{name:?}: {what}")]
    Precedence {
        /// Name of the task or chain.
        name: String,
        /// What is wrong.
        what: PrecedenceProblem,
    },
    /// A task cannot have its critical sections.
    #[error("task {task:?}: {what}")]
    Section {
        /// Name of the task.
        task: String,
        /// What is wrong.
        what: SectionProblem,
    },
    /// A program that runs its own jobs describes critical sections.
    #[error(
        "task {0:?} has critical sections, which only the simulator follows; leave them out of a system that runs its own jobs"
    )]
    Sections(String),
    /// The system has a protocol that its cores do not allow.
    #[error("{0}")]
    Protocol(SectionProblem),
}

/// What is wrong with a setting of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskSettingProblem {
    /// The offset or the jitter is longer than [`Time::MAX_INPUT`].
    #[error("its offset or jitter is too long")]
    Offset,
    /// The longest or the mean gap of a sporadic task is less than its minimum, or longer than [`Time::MAX_INPUT`].
    #[error("its gap is less than its minimal separation, or too long")]
    Gap,
    /// The average execution time is not between the bcet and the wcet.
    #[error("its acet is not between its bcet and its wcet")]
    Average,
    /// The wcet at high criticality is less than the wcet, or longer than [`Time::MAX_INPUT`].
    #[error("its wcet_high is less than its wcet, or too long")]
    HighWcet,
    /// The execution-time model has no samples, or a parameter that is not a number it can use.
    #[error("its execution-time model has no samples or an unusable parameter")]
    Execution,
    /// The error of its estimates is not a number from 0 to [`Task::MOST_ESTIMATE_ERROR`].
    #[error("the error of its estimates is not a number from 0 to {}", Task::MOST_ESTIMATE_ERROR)]
    Estimate,
    /// (m,k) is not 1 ≤ m ≤ k.
    #[error("its (m,k) is not 1 <= m <= k")]
    Mk,
    /// The skip factor is less than 2.
    #[error("its skip factor is less than 2")]
    Skip,
    /// The work between two preemption points is zero, longer than [`Time::MAX_INPUT`], or less than a millionth of the
    /// wcet.
    #[error("the work between its preemption points is zero, too long, or less than a millionth of its wcet")]
    Preemption,
    /// The task may use no core, names a core that does not exist, or names none where every core is only for tasks
    /// that name it.
    #[error("it is bound to a core that does not exist, or to none")]
    Cores,
}

impl System {
    /// Greatest number of cores.
    pub const MOST_CORES: usize = 4096;

    /// Checks everything that schedulers rely on. Systems of task-set files are valid.
    pub fn validate(&self) -> Result<(), InvalidSystem> {
        if !(1..=System::MOST_CORES).contains(&self.cores()) {
            return Err(InvalidSystem::Cores(self.cores()));
        }
        let Costs { context_switch, migration, decision } = *self.costs();
        if let Some(cost) = [context_switch, migration, decision].into_iter().find(|cost| *cost > Time::MAX_INPUT) {
            return Err(InvalidSystem::Cost(cost));
        }
        let is_empty = |server: &&Server| server.budget == Time::ZERO || server.budget > server.period;
        if let Some(server) = self.servers().iter().find(is_empty) {
            return Err(InvalidSystem::Server(server.name.clone()));
        }
        let mut names = BTreeSet::new();
        if let Some(task) = self.tasks().iter().find(|task| !names.insert(&task.name)) {
            return Err(InvalidSystem::TaskName(task.name.clone()));
        }
        let ascend = self.speeds().is_sorted_by(|a, b| a < b);
        if !ascend || self.speeds().last() != Some(&Speed::FULL) || self.speeds().first() == Some(&Speed(0)) {
            return Err(InvalidSystem::Speeds);
        }
        let cores = self.machine().cores();
        let is_whole = cores.is_empty() || cores.len() == self.cores();
        if !is_whole || cores.iter().any(|core| !Speed::RANGE.contains(&core.speed)) {
            return Err(InvalidSystem::Machine);
        }
        if self.speeds().len() > 1 && cores.iter().any(|core| core.speed != Speed::FULL) {
            return Err(InvalidSystem::SpeedsOfCores);
        }
        self.tasks().iter().try_for_each(|task| self.validate_task(task))?;
        for task in self.tasks() {
            if let Some((_, what)) = task.section_problem(self.resources()) {
                return Err(InvalidSystem::Section { task: task.name.clone(), what });
            }
        }
        if let Some(problem) = self.protocol_problem() {
            return Err(InvalidSystem::Protocol(problem));
        }
        let precedence = crate::precedence::validate(self.tasks(), self.chains());
        precedence.map_err(|(name, what)| InvalidSystem::Precedence { name, what })
    }

    fn validate_task(&self, task: &Task) -> Result<(), InvalidSystem> {
        let name = || task.name.clone();
        let gap = match task.arrival {
            Arrival::Periodic { period } => Some(("period", period)),
            Arrival::Sporadic { minimum, .. } => Some(("minimal separation", minimum)),
            Arrival::Burst { every, .. } => Some(("time between bursts", every)),
            Arrival::Listed(_) => None,
        };
        let times = [("wcet", task.wcet), ("bcet", task.bcet), ("deadline", task.deadline)];
        for (what, time) in times.into_iter().chain(gap) {
            if time == Time::ZERO || time > Time::MAX_INPUT {
                return Err(InvalidSystem::TaskTime { task: name(), what, time });
            }
        }
        if task.bcet > task.wcet {
            return Err(InvalidSystem::BcetAboveWcet { task: name(), bcet: task.bcet, wcet: task.wcet });
        }
        if task.cores.iter(self.cores()).next().is_none()
            || task.cores.is_all() && self.machine().is_only_for_named()
            || task.cores.last().is_some_and(|last| last.index() >= self.cores())
        {
            return Err(InvalidSystem::TaskSetting { task: name(), what: TaskSettingProblem::Cores });
        }
        if let Some(what) = setting_problem(task) {
            return Err(InvalidSystem::TaskSetting { task: name(), what });
        }
        if !(task.value.is_finite() && task.value >= 0.0) {
            return Err(InvalidSystem::Value { task: name(), value: task.value });
        }
        match task.extra.get(Attribute::Server) {
            Some(server) if usize::try_from(server).map_or(true, |server| server >= self.servers().len()) => {
                Err(InvalidSystem::UnknownServer { task: name(), server })
            }
            _ => Ok(()),
        }
    }
}

fn setting_problem(task: &Task) -> Option<TaskSettingProblem> {
    let is_long = |time: Time| time > Time::MAX_INPUT;
    let bad_gap = match task.arrival {
        Arrival::Sporadic { minimum, gap: Gap::Uniform { max: longest } | Gap::Exponential { mean: longest } } => {
            longest < minimum || is_long(longest)
        }
        _ => false,
    };
    let errors = 0.0..=Task::MOST_ESTIMATE_ERROR;
    let checks = [
        (is_long(task.offset) || is_long(task.jitter), TaskSettingProblem::Offset),
        (bad_gap, TaskSettingProblem::Gap),
        (task.acet.is_some_and(|acet| !(task.bcet..=task.wcet).contains(&acet)), TaskSettingProblem::Average),
        (task.wcet_high.is_some_and(|high| high < task.wcet || is_long(high)), TaskSettingProblem::HighWcet),
        (!is_usable(&task.execution), TaskSettingProblem::Execution),
        (task.estimate_error.is_some_and(|error| !errors.contains(&error)), TaskSettingProblem::Estimate),
        (task.mk.is_some_and(|(m, k)| m == 0 || m > k), TaskSettingProblem::Mk),
        (task.extra.get(Attribute::Skip).is_some_and(|skip| skip < 2), TaskSettingProblem::Skip),
        (!task.preemption.is_usable(task.wcet), TaskSettingProblem::Preemption),
    ];
    checks.into_iter().find(|(is_wrong, _)| *is_wrong).map(|(_, problem)| problem)
}

fn is_usable(model: &ExecutionModel) -> bool {
    match model {
        ExecutionModel::Wcet | ExecutionModel::Uniform | ExecutionModel::Normal { .. } => true,
        ExecutionModel::Weibull { exceed } => (0.0..1.0).contains(exceed),
        ExecutionModel::Pareto { shape } => shape.is_finite() && *shape > 0.0,
        ExecutionModel::Lognormal { median, sigma } => {
            *median > Time::ZERO && *median <= Time::MAX_INPUT && (0.0..=Task::MOST_SPREAD).contains(sigma)
        }
        ExecutionModel::Bimodal { levels, probability, spread } => {
            let are_good = levels.iter().all(|level| *level > Time::ZERO && *level <= Time::MAX_INPUT);
            are_good && (0.0..=1.0).contains(probability) && (0.0..=Task::MOST_SPREAD).contains(spread)
        }
        ExecutionModel::Empirical { samples } => !samples.is_empty(),
        ExecutionModel::Overrun { probability, below } => (0.0..=1.0).contains(probability) && is_usable(below),
    }
}
