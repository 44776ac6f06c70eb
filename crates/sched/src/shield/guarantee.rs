//! The guarantee: which tasks never miss a deadline, and which core keeps the time for them. It is chosen and proved
//! before a run.
//!
//! - If everything fits, every task is guaranteed.
//! - Otherwise the tasks that ask for it are, or, if none does, the critical ones: as many as fit ([`super::choice`]).
//!
//! A guaranteed task belongs to one core, and the tasks of each core pass the exact demand test of EDF
//! ([`super::provable`]).

use temponet_analysis::{NotAnalyzable, WorstCase};
use temponet_task::{
    CoreId, Costs, ExecutionModel, Job, Protocol, ResourceId, Speed, System, Task, TaskId, TaskSet, Time,
};

use super::choice::{Choice, Wanted};
use super::no_guarantee::{NoGuarantee, WhyNot};
use super::provable::{Fit, ProvableTasks, not_reservable};
use super::reasons;
use super::stand_in::{self, StandIn};
use super::stretches::{Stretches, longest_region};

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
    /// For each core, the longest stretch of others that its tasks can wait for, whenever it begins. A longer one begins
    /// only if the slack covers it, jobs that have not been released included.
    pub(super) patience: Vec<Time>,
    /// For each resource, how the shield rules it; none if no guaranteed task depends on it.
    pub(super) rules: Vec<Option<Ruled>>,
    /// Whether jobs may take their `wcet_high`. Otherwise a job is guaranteed up to its wcet.
    pub(super) covers_overruns: bool,
    /// Whether the deadlines of followers are divided among the tasks before them.
    pub(super) is_divided: bool,
    pub(super) why_not: Vec<Option<WhyNot>>,
    pub(super) names: Vec<String>,
    /// Whether each task is a part of another one.
    pub(super) is_part: Vec<bool>,
}

/// Bounds on a resource that guaranteed tasks use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ruled {
    /// Longest time for which a job waits for it once it has asked for it.
    pub wait: Time,
    /// Longest work of a section.
    pub longest: Time,
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
    /// Time before its deadline at which a job is due, so that those that come after it can be guaranteed, too.
    pub lead: Time,
    pub period: Time,
    pub jitter: Time,
}

impl Reserved {
    /// Upper bound on the time that the remaining work of a guaranteed job takes, overhead included.
    pub fn remaining(&self, job: &Job) -> Time {
        let work = self.budget.0.saturating_sub(job.executed.0).max(1).saturating_add(job.overhead.0);
        self.slowest.time_for(Time(work))
    }

    /// Date by which a guaranteed job completes.
    pub fn due(&self, job: &Job) -> Time {
        job.deadline.saturating_sub(self.lead)
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
        let of_task = |task: TaskId| match (self.core_of(task), &self.why_not[task]) {
            (Some(core), _) => Ok(core),
            (None, why) => Err(why.clone().unwrap_or(WhyNot::NotAsked)),
        };
        TaskId::all(self.names.len()).zip(&self.names).map(move |(task, name)| (name.as_str(), of_task(task)))
    }

    /// Iterates over the tasks that are no parts of others, as [`Guarantee::tasks`] does. A task whose last part is
    /// guaranteed is guaranteed as a whole.
    pub fn whole_tasks(&self) -> impl Iterator<Item = (&str, Result<CoreId, WhyNot>)> {
        self.tasks().zip(&self.is_part).filter(|(_, is_part)| !**is_part).map(|(task, _)| task)
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

    /// Whether a guaranteed task comes after others.
    fn follows(&self, system: &System) -> bool {
        let mut kept = system.task_ids().filter(|task| self.core_of(*task).is_some());
        kept.any(|task| !system.tasks()[task].after.is_empty())
    }

    /// Returns why each task of the system is not guaranteed; none for a task that is.
    pub(super) fn reasons(&self, system: &System) -> Vec<Option<WhyNot>> {
        let (mut why_not, wanted) = (self.why_not.clone(), Wanted::of(system));
        let guaranteed: Vec<TaskId> = system.task_ids().filter(|task| self.core_of(*task).is_some()).collect();
        if let Ok(plain) = ProvableTasks::of(system, self.covers_overruns) {
            let sliced = plain.sliced(|task| wanted.tasks.contains(&task)).filter(|_| self.is_divided);
            reasons::refine(&sliced.unwrap_or(plain), &wanted, &guaranteed, &mut why_not);
        }
        why_not
    }

    /// Returns how the shield rules a resource.
    pub(super) fn ruled(&self, resource: ResourceId) -> Option<Ruled> {
        *self.rules.get(resource.index())?
    }

    /// Whether guaranteed tasks use a resource.
    pub(super) fn rules_resources(&self) -> bool {
        self.rules.iter().any(Option::is_some)
    }

    /// Returns the names of the resources that guaranteed tasks depend on: jobs wait for them on their cores, first come
    /// first served, and keep the core while they hold one.
    pub fn ruled_resources<'a>(&self, system: &'a System) -> Vec<&'a str> {
        let names = system.resources().iter().zip(&self.rules).filter(|(_, ruled)| ruled.is_some());
        names.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the tasks that are not guaranteed and whose jobs keep a core for so long that they start, or enter a
    /// critical section, only where the slack of guaranteed tasks covers it.
    pub fn restricted(&self, system: &System) -> Vec<TaskId> {
        let stretches = Stretches::of(system);
        let is_ruled = |resource: ResourceId| self.ruled(resource).is_some();
        let exceeds = |task: &Task, core: CoreId| {
            let speed = system.machine().speed(core);
            stretches.longest(task, longest_region(task), speed, is_ruled) > self.patience[core]
        };
        let is_restricted = |id: &TaskId| {
            let task = &system.tasks()[*id];
            self.core_of(*id).is_none() && task.cores.iter(system.cores()).all(|core| exceeds(task, core))
        };
        system.task_ids().filter(is_restricted).collect()
    }

    /// Returns, for each core, the largest factor on the execution times of its guaranteed tasks at which they still
    /// fit, up to `most`; none for a core without guaranteed tasks.
    pub fn growth(&self, system: &System, most: f64) -> Vec<Option<f64>> {
        let of_core = |core: CoreId| {
            let tasks: Vec<TaskId> = system.task_ids().filter(|task| self.core_of(*task) == Some(core)).collect();
            if tasks.is_empty() { None } else { Some(growth(system, self, &tasks, most)) }
        };
        system.core_ids().map(of_core).collect()
    }
}

/// Largest factor, a multiple of 1/1000, on the execution times of these tasks at which they fit on one core.
fn growth(system: &System, guarantee: &Guarantee, tasks: &[TaskId], most: f64) -> f64 {
    let covers_overruns = guarantee.covers_overruns;
    let is_kept: Vec<bool> = guarantee.reserved.iter().map(Option::is_some).collect();
    let follows = guarantee.follows(system);
    let fits = |parts: u64| {
        let times = |time: Time| {
            let scaled = (u128::from(time.0) * u128::from(parts)).div_ceil(WHOLE);
            Time(u64::try_from(scaled).unwrap_or(u64::MAX).clamp(1, Time::MAX_INPUT.0))
        };
        let mut scaled = system.clone();
        for task in scaled.tasks_mut().iter_mut() {
            (task.wcet, task.wcet_high) = (times(task.wcet), task.wcet_high.map(times));
            for section in &mut task.sections {
                // Rounded down, so that sections stay apart.
                let part = |work: Time| Time((u128::from(work.0) * u128::from(parts) / WHOLE) as u64);
                (section.at, section.length) = (part(section.at), part(section.end()) - part(section.at));
            }
        }
        let Ok(plain) = ProvableTasks::of(&scaled, covers_overruns) else { return false };
        let sliced = plain.sliced(|task| is_kept[task]).filter(|_| follows);
        sliced.unwrap_or(plain).fit_on_a_core(tasks).is_some()
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
    if let Some(why) = uncovered(system) {
        return Err(why);
    }
    let may_overrun = system.tasks().iter().any(|task| matches!(task.execution, ExecutionModel::Overrun { .. }));
    let wanted = Wanted::of(system);
    let all: Vec<TaskId> = system.task_ids().collect();
    // A proof that covers overruns if there is one, else a proof that holds for each job until it overruns.
    for covers_overruns in [true, false].into_iter().take(1 + usize::from(may_overrun)) {
        let plain = ProvableTasks::of(system, covers_overruns)?;
        let sliced = plain.sliced(|_| true);
        let whole = sliced.as_ref().unwrap_or(&plain);
        if whole.covers_all() {
            if let Some(found) = whole.fit(&all) {
                return Ok(Premise::Reserved(whole.guarantee(&all, &found, vec![None; all.len()])));
            }
            // A job that overruns costs others their deadlines under a stand-in, which keeps no time for them.
            if covers_overruns && let Some((name, is_exact)) = stand_in::proved(system) {
                let anywhere = Fit { core_of: vec![CoreId(0); all.len()], is_exact };
                let promised = whole.guarantee(&all, &anywhere, vec![None; all.len()]);
                if let Some(found) = StandIn::new(name, promised) {
                    return Ok(Premise::StandIn(Box::new(found), part(&plain, &wanted)));
                }
            }
        }
        if let Some(guarantee) = part(&plain, &wanted) {
            return Ok(Premise::Reserved(guarantee));
        }
    }
    Err(why_nothing(system, &wanted))
}

/// Returns why each task is not guaranteed where nothing is, for the reason `why`.
pub(super) fn reasons_of_nothing(system: &System, why: &NoGuarantee) -> Vec<String> {
    let plain = if uncovered(system).is_some() { None } else { ProvableTasks::of(system, false).ok() };
    let Some(plain) = plain else { return vec![why.to_string(); system.tasks().len()] };
    let wanted = Wanted::of(system);
    let why_not = match wanted.tasks.is_empty() {
        true => plain.sliced(|_| true).unwrap_or(plain).why_not(),
        false => choice_of_nothing(plain, &wanted),
    };
    let reason = |in_task: Option<WhyNot>| in_task.map_or_else(|| why.to_string(), |in_task| in_task.to_string());
    why_not.into_iter().map(reason).collect()
}

/// Returns why each task is left out where no wanted one can be guaranteed.
fn choice_of_nothing(plain: ProvableTasks<'_>, wanted: &Wanted) -> Vec<Option<WhyNot>> {
    let provable = plain.sliced(|task| wanted.tasks.contains(&task)).unwrap_or(plain);
    let Choice { mut why_not, .. } = Choice::of(&provable, wanted);
    reasons::refine(&provable, wanted, &[], &mut why_not);
    why_not
}

/// Guarantees the most of the wanted tasks. Followers are among them if that costs no other task its guarantee.
fn part(plain: &ProvableTasks<'_>, wanted: &Wanted) -> Option<Guarantee> {
    let mut without = Choice::of(plain, wanted);
    if let Some(sliced) = plain.sliced(|task| wanted.tasks.contains(&task)) {
        let with = Choice::of(&sliced, wanted);
        if with.keeps(&without) {
            return with.guarantee(&sliced);
        }
        reasons::of_followers(plain.system, &mut without, &with);
    }
    without.guarantee(plain)
}

/// Returns why no proof covers a system, whatever its tasks are.
fn uncovered(system: &System) -> Option<NoGuarantee> {
    if system.costs().decision > Time::ZERO {
        // How many decisions fall into an interval, or into a stretch, depends on the schedule.
        if let Some(task) = system.limited_task() {
            return Some(NoGuarantee::LimitedWithCosts(task.name.clone()));
        }
        if system.has_sections() {
            return Some(NoGuarantee::SharingWithCosts);
        }
        if system.has_precedence() {
            return Some(NotAnalyzable::Precedence.into());
        }
    }
    if !system.machine().is_full_speed() && *system.costs() != Costs::default() {
        return Some(NoGuarantee::SpeedsWithCosts);
    }
    if system.has_sections() && system.protocol() == Protocol::Ceiling {
        let resource = Stretches::of(system).unbounded()?;
        return Some(NoGuarantee::UnboundedUnderCeiling(system.resources()[resource].clone()));
    }
    None
}

fn why_nothing(system: &System, wanted: &Wanted) -> NoGuarantee {
    let stretches = Stretches::of(system);
    let problem = |task: &Task| not_reservable(task).or_else(|| stretches.problem(task));
    let why_not = ProvableTasks::of(system, false).map(|plain| choice_of_nothing(plain, wanted));
    let waits_for_higher =
        |task: TaskId| why_not.as_ref().is_ok_and(|why_not| matches!(why_not[task], Some(WhyNot::HigherLeftOut(_))));
    let wanted = wanted.tasks.iter().copied().filter(|task| !waits_for_higher(*task));
    let is_first = |task: &Task| problem(task).is_none() && task.after.is_empty();
    if wanted.clone().any(|task| is_first(&system.tasks()[task])) {
        return NoGuarantee::NoneFits;
    }
    let followers = wanted.clone().filter(|task| problem(&system.tasks()[*task]).is_none());
    let reason = |task: TaskId| why_not.as_ref().ok()?[task].clone().filter(|why| *why != WhyNot::OtherPart);
    if let Some((task, why)) = followers.filter_map(|task| Some((task, reason(task)?))).next() {
        return NoGuarantee::OfTask(reasons::name_of_whole(system, task), why);
    }
    let wanted = wanted.map(|task| &system.tasks()[task]);
    for task in wanted.chain(system.tasks()) {
        match problem(task) {
            Some(WhyNot::OvertakingReleases) => return NoGuarantee::OvertakingReleases(task.name.clone()),
            Some(WhyNot::ScatteredBurst) => return NoGuarantee::ScatteredBurst(task.name.clone()),
            Some(WhyNot::DoesNotRecur) => return NotAnalyzable::ListedJobs.into(),
            Some(_) => return NoGuarantee::Unbounded(task.name.clone()),
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
        _ => NoGuarantee::NotProved,
    }
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
