//! The guarantee: which tasks never miss a deadline, and which core keeps the time for them. It is chosen and proved
//! before a run.
//!
//! - If everything fits, every task is guaranteed.
//! - Otherwise the tasks that ask for it are, or, if none does, the critical ones: as many as fit, the most critical
//!   first and the lighter first among equally critical ones.
//!
//! A guaranteed task belongs to one core, and the tasks of each core pass the exact demand test of EDF.
//!
//! Where cores have different speeds, a job of a guaranteed task counts with the time that it takes on the slowest core
//! that its task may use: wherever it runs, it is done no later. A task belongs to a core that it may use.

use temponet_analysis::{
    Blocking, Demand, NotAnalyzable, Outcome, Sporadic, WorstCase, edf_partition, is_schedulable, is_schedulable_with,
    qpa,
};
use temponet_task::{Arrival, CoreId, Costs, ExecutionModel, Job, Speed, System, Task, TaskId, TaskSet, Time};

use super::interrupts;
use super::no_guarantee::{NoGuarantee, WhyNot};
use super::stand_in::{self, StandIn};

/// What is proved about a system.
pub(super) enum Premise {
    /// Each core keeps the time that its guaranteed tasks need.
    Reserved(Guarantee),
    /// A scheduler that is proved to meet every deadline decides alone. When its proof no longer holds, the cores keep
    /// the time of the tasks that should be guaranteed where not all can be.
    StandIn(Box<StandIn>, Option<Guarantee>),
}

impl Premise {
    /// The tasks that cores keep time for.
    pub fn kept_tasks(&self) -> Option<&Guarantee> {
        match self {
            Premise::Reserved(guarantee) => Some(guarantee),
            Premise::StandIn(_, guarantee) => guarantee.as_ref(),
        }
    }
}

/// The guaranteed tasks of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// What is kept for each task, by its index; none for a task that is not guaranteed.
    pub(super) reserved: Vec<Option<Reserved>>,
    /// Whether the proof holds only for these exact arrivals. Otherwise jobs may also arrive later.
    pub(super) is_exact: bool,
    /// Whether jobs may take their `wcet_high`. Otherwise a job is guaranteed up to its wcet.
    covers_overruns: bool,
    why_not: Vec<Option<WhyNot>>,
    names: Vec<String>,
}

/// The time that a core keeps for a guaranteed task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserved {
    /// Core that keeps the time.
    pub core: CoreId,
    /// Execution time up to which a job is guaranteed.
    pub budget: Time,
    /// Speed of the slowest core that the task may use.
    pub slowest: Speed,
    /// Work of one arrival: budgets and dispatches of its jobs, as time on that core, in nanoseconds.
    pub work: u64,
    /// Number of jobs that arrive together.
    pub jobs: u32,
    pub deadline: Time,
    pub period: Time,
    pub jitter: Time,
}

impl Reserved {
    /// Upper bound on the time that the remaining work of a guaranteed job takes, overhead included.
    pub fn remaining(&self, job: &Job) -> Time {
        let work = self.budget.0.saturating_sub(job.executed.0).max(1).saturating_add(job.overhead.0);
        self.slowest.time_for(Time(work))
    }
}

impl Guarantee {
    /// Returns the core that keeps time for a task; none if the task is not guaranteed.
    pub fn core_of(&self, task: TaskId) -> Option<CoreId> {
        self.reserved.get(task.index())?.map(|reserved| reserved.core)
    }

    /// Returns what is kept for the task of a job.
    pub(super) fn of(&self, job: &Job) -> Option<&Reserved> {
        self.reserved.get(job.task.index())?.as_ref()
    }

    /// Iterates over all tasks of the system: the name, and the core that keeps time for the task or why none does.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, Result<CoreId, WhyNot>)> {
        let of_task = |task: TaskId| match (self.core_of(task), self.why_not[task]) {
            (Some(core), _) => Ok(core),
            (None, why) => Err(why.unwrap_or(WhyNot::OthersComeFirst)),
        };
        TaskId::all(self.names.len()).zip(&self.names).map(move |(task, name)| (name.as_str(), of_task(task)))
    }

    /// Whether every task is guaranteed.
    pub fn is_for_all(&self) -> bool {
        self.reserved.iter().all(Option::is_some)
    }

    /// Whether the proof holds only as long as all tasks arrive in the pattern of their offsets.
    pub fn needs_pattern(&self) -> bool {
        self.is_exact
    }

    /// Whether jobs that may overrun their wcet are guaranteed even then.
    pub fn covers_overruns(&self) -> bool {
        self.covers_overruns
    }

    /// Returns, for each core, the largest factor on the execution times of its guaranteed tasks at which they still
    /// fit, up to `most`; none for a core without guaranteed tasks.
    pub fn growth(&self, system: &System, most: f64) -> Vec<Option<f64>> {
        let of_core = |core: CoreId| {
            let tasks: Vec<TaskId> = system.task_ids().filter(|task| self.core_of(*task) == Some(core)).collect();
            if tasks.is_empty() { None } else { Some(growth(system, &tasks, self.covers_overruns, most)) }
        };
        system.core_ids().map(of_core).collect()
    }
}

/// Largest factor, a multiple of 1/1000, on the execution times of these tasks at which they fit on one core.
fn growth(system: &System, tasks: &[TaskId], covers_overruns: bool, most: f64) -> f64 {
    let fits = |parts: u64| {
        let times = |time: Time| {
            let scaled = (u128::from(time.0) * u128::from(parts)).div_ceil(WHOLE);
            Time(u64::try_from(scaled).unwrap_or(u64::MAX).clamp(1, Time::MAX_INPUT.0))
        };
        let mut scaled = system.clone();
        for task in scaled.tasks_mut().iter_mut() {
            (task.wcet, task.wcet_high) = (times(task.wcet), task.wcet_high.map(times));
        }
        ProvableTasks::of(&scaled, covers_overruns).is_ok_and(|provable| provable.fit_on_a_core(tasks).is_some())
    };
    let (mut below, mut above) = (WHOLE as u64, (most * WHOLE as f64) as u64 + 1);
    while below + 1 < above {
        let middle = below + (above - below) / 2;
        if fits(middle) { below = middle } else { above = middle }
    }
    below as f64 / WHOLE as f64
}

/// Factors of [`Guarantee::growth`] are multiples of 1/`WHOLE`.
const WHOLE: u128 = 1_000;

/// Returns what is proved about a system, or why nothing is.
pub(super) fn prove(system: &System) -> Result<Premise, NoGuarantee> {
    if system.has_sections() {
        // A guaranteed job may have to wait for one that the inner scheduler chose.
        return Err(NotAnalyzable::SharedResources.into());
    }
    if let Some(task) = system.limited_task() {
        let name = task.name.clone();
        if system.cores() > 1 {
            return Err(NoGuarantee::LimitedOnSeveralCores(name));
        }
        if *system.costs() != Costs::default() {
            return Err(NoGuarantee::LimitedWithCosts(name));
        }
    }
    if system.costs().decision > Time::ZERO && system.tasks().iter().any(|task| !task.after.is_empty()) {
        // How many decisions fall into an interval depends on the schedule then.
        return Err(NotAnalyzable::Precedence.into());
    }
    if !system.machine().is_full_speed() && (system.limited_task().is_some() || *system.costs() != Costs::default()) {
        return Err(NoGuarantee::SpeedsWithCosts);
    }
    let may_overrun = system.tasks().iter().any(|task| matches!(task.execution, ExecutionModel::Overrun { .. }));
    let wanted = wanted(system);
    let all: Vec<TaskId> = system.task_ids().collect();
    // A proof that covers overruns if there is one, else a proof that holds for each job until it overruns.
    for covers_overruns in [true, false].into_iter().take(1 + usize::from(may_overrun)) {
        let provable = ProvableTasks::of(system, covers_overruns)?;
        if provable.sporadic.iter().all(Result::is_ok) {
            if let Some(found) = provable.fit(&all) {
                return Ok(Premise::Reserved(provable.guarantee(&all, &found, &all)));
            }
            // A job that overruns costs others their deadlines under a stand-in, which keeps no time for them.
            if covers_overruns && let Some((name, is_exact)) = stand_in::proved(system) {
                let promised = provable.guarantee(&all, &Fit { core_of: vec![CoreId(0); all.len()], is_exact }, &all);
                if let Some(found) = StandIn::new(name, promised) {
                    return Ok(Premise::StandIn(Box::new(found), provable.largest_prefix(&wanted)));
                }
            }
        }
        if let Some(guarantee) = provable.largest_prefix(&wanted) {
            return Ok(Premise::Reserved(guarantee));
        }
    }
    Err(why_nothing(system, &wanted))
}

/// Returns the tasks that should be guaranteed where not all can be, in the order in which they are added.
fn wanted(system: &System) -> Vec<TaskId> {
    let asks = system.tasks().iter().any(|task| task.guarantee);
    let is_wanted = |task: &Task| if asks { task.guarantee } else { task.criticality > 0 };
    let mut wanted: Vec<TaskId> = system.task_ids().filter(|task| is_wanted(&system.tasks()[*task])).collect();
    wanted.sort_by(|a, b| {
        let (a, b) = (&system.tasks()[*a], &system.tasks()[*b]);
        b.criticality.cmp(&a.criticality).then(a.utilization().total_cmp(&b.utilization()))
    });
    wanted
}

fn why_nothing(system: &System, wanted: &[TaskId]) -> NoGuarantee {
    let longest = system.tasks().iter().filter(|task| task.preemption.is_limited());
    let longest = longest.max_by_key(|task| longest_region(task));
    let wanted = wanted.iter().map(|task| &system.tasks()[*task]);
    if wanted.clone().any(|task| not_reservable(task).is_none()) {
        return longest.map_or(NoGuarantee::CriticalDoNotFit, |task| NoGuarantee::Blocked(task.name.clone()));
    }
    for task in wanted.chain(system.tasks()) {
        match not_reservable(task) {
            Some(WhyNot::OvertakingReleases) => return NoGuarantee::OvertakingReleases(task.name.clone()),
            Some(WhyNot::ScatteredBurst) => return NoGuarantee::ScatteredBurst(task.name.clone()),
            Some(WhyNot::Follows) => return NotAnalyzable::Precedence.into(),
            Some(_) => return NotAnalyzable::ListedJobs.into(),
            None => {}
        }
    }
    let whole = as_set(system, true).with_machine(system.machine().cores().to_vec());
    let may_overrun = |task: &&Task| matches!(task.execution, ExecutionModel::Overrun { .. });
    match WorstCase::of(&whole).map(|worst_case| worst_case.is_overloaded()) {
        Ok(Some(true)) => match system.tasks().iter().find(may_overrun) {
            Some(task) if system.utilization() <= system.cores() as f64 => NoGuarantee::Overruns(task.name.clone()),
            _ => NoGuarantee::Overloaded,
        },
        _ => longest.map_or(NoGuarantee::NotProved, |task| NoGuarantee::Blocked(task.name.clone())),
    }
}

/// Longest time for which a job of the task holds its core, overruns included; zero if it can be preempted at any time.
pub(super) fn longest_region(task: &Task) -> Time {
    let longest = |wcet: Time| task.preemption.longest_region(wcet.max(task.wcet_high.unwrap_or_default()));
    match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| longest(job.wcet)).max().unwrap_or_default(),
        _ => longest(task.wcet),
    }
}

/// Returns the reason in the task itself why it cannot be guaranteed.
fn not_reservable(task: &Task) -> Option<WhyNot> {
    match task.arrival {
        _ if !task.after.is_empty() => Some(WhyNot::Follows),
        Arrival::Listed(_) => Some(WhyNot::DoesNotRecur),
        Arrival::Burst { jobs, .. } if jobs > 1 && task.jitter > Time::ZERO => Some(WhyNot::ScatteredBurst),
        _ if task.period().is_some_and(|period| task.jitter > period) => Some(WhyNot::OvertakingReleases),
        _ => None,
    }
}

/// Returns the speed of the slowest core that a task may use.
fn slowest(system: &System, task: &Task) -> Speed {
    task.cores.iter(system.cores()).map(|core| system.machine().speed(core)).min().unwrap_or(Speed::FULL)
}

/// Returns the system as a task set on cores of full speed in which a context switch costs the decision, too. Without
/// `covers_overruns`, jobs keep to their wcets.
pub(super) fn as_set(system: &System, covers_overruns: bool) -> TaskSet {
    let mut costs = *system.costs();
    costs.context_switch += std::mem::take(&mut costs.decision);
    let set = TaskSet::new("", system.tasks().to_vec(), system.cores()).with_speeds(system.speeds().to_vec());
    let mut set = set.with_servers(system.servers().to_vec()).with_costs(costs);
    for task in set.system.tasks_mut().iter_mut().filter(|_| !covers_overruns) {
        if matches!(task.execution, ExecutionModel::Overrun { .. }) {
            (task.wcet_high, task.execution) = (None, ExecutionModel::Wcet);
        }
    }
    set
}

/// The tasks of a system as the proof of a guarantee sees them.
struct ProvableTasks<'a> {
    system: &'a System,
    /// Worst case of the tasks that can be guaranteed.
    worst_case: WorstCase,
    /// Place of each task in the worst case, or why it cannot be guaranteed.
    sporadic: Vec<Result<usize, WhyNot>>,
    /// Execution time up to which jobs of the task at each place are guaranteed.
    budgets: Vec<Time>,
    covers_overruns: bool,
}

/// Cores of tasks that fit.
struct Fit {
    core_of: Vec<CoreId>,
    is_exact: bool,
}

impl<'a> ProvableTasks<'a> {
    fn of(system: &'a System, covers_overruns: bool) -> Result<ProvableTasks<'a>, NotAnalyzable> {
        let mut set = as_set(system, covers_overruns);
        set.system.tasks_mut().retain(|task| not_reservable(task).is_none());
        let mut places = 0..;
        let place = |task: &Task| match not_reservable(task) {
            Some(why) => Err(why),
            None => places.next().ok_or(WhyNot::DoesNotFit),
        };
        let sporadic = system.tasks().iter().map(place).collect();
        let worst_case = WorstCase::of(&set)?;
        let budgets = worst_case.tasks.iter().map(|task| task.wcet - worst_case.switching).collect();
        if system.machine().is_full_speed() {
            return Ok(ProvableTasks { system, worst_case, sporadic, budgets, covers_overruns });
        }
        for task in set.system.tasks_mut().iter_mut() {
            let speed = slowest(system, task);
            (task.wcet, task.bcet) = (speed.time_for(task.wcet), speed.time_for(task.bcet));
            task.wcet_high = task.wcet_high.map(|wcet| speed.time_for(wcet));
        }
        Ok(ProvableTasks { system, worst_case: WorstCase::of(&set)?, sporadic, budgets, covers_overruns })
    }

    /// The worst case of some tasks on this many cores; none if one of them cannot be guaranteed.
    fn part(&self, tasks: &[TaskId], cores: usize) -> Option<WorstCase> {
        let places: Option<Vec<usize>> = tasks.iter().map(|task| self.sporadic[*task].ok()).collect();
        Some(self.worst_case.part(places?, cores))
    }

    /// Returns a core for each of the tasks; none if they do not fit.
    fn fit(&self, tasks: &[TaskId]) -> Option<Fit> {
        let cores = self.system.cores();
        if cores == 1 {
            let is_exact = self.fit_on_a_core(tasks)?;
            return Some(Fit { core_of: vec![CoreId(0); tasks.len()], is_exact });
        }
        // On several cores, the job on core 0 pays for every decision, however many there are.
        let first = usize::from(self.system.costs().decision > Time::ZERO);
        let places: Option<Vec<usize>> = tasks.iter().map(|task| self.sporadic[*task].ok()).collect();
        let core_of = edf_partition(&self.worst_case.cluster(places?, first..cores))?;
        Some(Fit { core_of: core_of.into_iter().map(|core| CoreId::new(core + first)).collect(), is_exact: false })
    }

    /// Returns whether EDF on one core meets every deadline of the tasks only because of their exact arrivals; none if
    /// it does not.
    fn fit_on_a_core(&self, tasks: &[TaskId]) -> Option<bool> {
        let part = self.part(tasks, 1)?;
        if self.system.limited_task().is_some() {
            let demands: Vec<Demand> = part.tasks.iter().map(Demand::from).collect();
            return is_schedulable_with(&demands, &self.blocking(tasks, &part)).then_some(false);
        }
        let is_alone = self.system.cores() == 1;
        let demands: Vec<Demand> = if is_alone && self.system.costs().decision > Time::ZERO {
            interrupts::demands(self.system, &part)?
        } else {
            part.tasks.iter().map(Demand::from).collect()
        };
        if is_schedulable(&demands) {
            return Some(false);
        }
        (is_alone && !part.has_costs && qpa(&part) == Outcome::Schedulable).then_some(true)
    }

    /// How long jobs can hold the core while guaranteed jobs wait. A guaranteed task delays only those that are due
    /// before its own jobs; the others delay all.
    fn blocking(&self, guaranteed: &[TaskId], part: &WorstCase) -> Vec<Blocking> {
        let others = self.system.task_ids().filter(|task| !guaranteed.contains(task));
        let held = others.map(|task| longest_region(&self.system.tasks()[task])).filter(|held| *held > Time::ZERO);
        let held = held.map(|held| Blocking { deadline: Time::NEVER, length: Time(held.0 - 1) });
        part.blocking().into_iter().chain(held).collect()
    }

    /// Guarantees the most of the `wanted` tasks, which are in order of precedence. Tasks that do not even fit alone
    /// are passed over. Returns none if no task is left.
    fn largest_prefix(&self, wanted: &[TaskId]) -> Option<Guarantee> {
        let able: Vec<TaskId> = wanted.iter().copied().filter(|task| self.fit(&[*task]).is_some()).collect();
        let (mut most, mut too_many) = (0, able.len() + 1);
        let mut found = None;
        while most + 1 < too_many {
            // All of them at first, then bisection.
            let tried =
                if found.is_none() && too_many > able.len() { able.len() } else { most + (too_many - most) / 2 };
            match self.fit(&able[..tried]) {
                Some(fit) => (most, found) = (tried, Some(fit)),
                None => too_many = tried,
            }
        }
        Some(self.guarantee(&able[..most], &found?, wanted))
    }

    fn guarantee(&self, tasks: &[TaskId], fit: &Fit, wanted: &[TaskId]) -> Guarantee {
        let mut reserved = vec![None; self.system.tasks().len()];
        for (task, core) in tasks.iter().zip(&fit.core_of) {
            reserved[*task] = self.sporadic[*task].ok().map(|place| {
                let Sporadic { jobs, deadline, period, jitter, .. } = self.worst_case.tasks[place];
                let (budget, work) = (self.budgets[place], self.worst_case.tasks[place].work());
                let slowest = slowest(self.system, &self.system.tasks()[*task]);
                Reserved { core: *core, budget, slowest, work, jobs, deadline, period, jitter }
            });
        }
        let mut is_wanted = vec![false; reserved.len()];
        wanted.iter().for_each(|task| is_wanted[*task] = true);
        let why_not = |task: TaskId| match self.sporadic[task] {
            _ if reserved[task].is_some() => None,
            Err(why) => Some(why),
            _ if !is_wanted[task] => Some(WhyNot::OthersComeFirst),
            Ok(_) => Some(WhyNot::DoesNotFit),
        };
        let why_not = self.system.task_ids().map(why_not).collect();
        let names = self.system.tasks().iter().map(|task| task.name.clone()).collect();
        Guarantee { reserved, is_exact: fit.is_exact, covers_overruns: self.covers_overruns, why_not, names }
    }
}
