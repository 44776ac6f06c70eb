//! The model of a set that the tests work on: every task is sporadic, with a minimum time between arrivals and a
//! bounded release jitter.
//!
//! A burst is a group of jobs that arrive together. Lists of single jobs and mode switches do not fit the model. A cost
//! of decisions falls on whichever job happens to run, which no test covers. [`WorstCase::of`] refuses such sets and
//! says why.

use std::cmp::Ordering;
use std::fmt;

use std::ops::Range;

use temponet_task::{
    Arrival, Attribute, CoreId, CoreSet, ExecutionModel, Gap, Preemption, Speed, Task, TaskId, TaskSet, Time,
};

use super::Outcome;
use super::blocking::Blocking;
use super::fractions::{Fraction, MARGIN, compare_sum};

/// The worst case of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sporadic {
    /// The task in the set.
    pub id: TaskId,
    /// Upper bound on the execution time of one job, switching included.
    pub wcet: Time,
    /// Number of jobs that arrive together; more than one only for bursts.
    pub jobs: u32,
    /// Relative deadline, from the arrival.
    pub deadline: Time,
    /// Minimum time between arrivals.
    pub period: Time,
    /// Longest time from an arrival to its release.
    pub jitter: Time,
    /// Date of the first arrival.
    pub offset: Time,
    /// Priority as in [`Attribute::Priority`](temponet_task::Attribute::Priority).
    pub priority: Option<i64>,
    /// Whether arrivals are exactly one period apart, forever.
    pub is_periodic: bool,
    /// Whether an arrival can come any time later than it may.
    pub can_wait: bool,
    /// Longest time for which a job holds the core, switching included; zero if it can be preempted at any time.
    pub region: Time,
    /// Work of a job after its last preemption point if it takes its wcet; at least a nanosecond.
    pub last_region: Time,
    /// Longest time for which jobs of lower priority that hold resources delay a busy period of the task; zero without
    /// critical sections.
    pub waits: Time,
}

impl Sporadic {
    /// Upper bound on the execution time of all jobs of one arrival, in nanoseconds.
    pub fn work(&self) -> u64 {
        self.wcet.0.saturating_mul(u64::from(self.jobs))
    }

    /// Time from the latest release to the deadline, in nanoseconds; zero if the release can be later than the
    /// deadline.
    pub fn window(&self) -> u64 {
        self.deadline.saturating_sub(self.jitter).0
    }

    pub(crate) fn utilization(&self) -> Fraction {
        (self.work(), self.period.0)
    }

    /// Work divided by the time that an arrival has for itself before its deadline and the next arrival. If jitter can
    /// take all of that time, the density exceeds any number of cores.
    pub(crate) fn density(&self) -> Fraction {
        match self.deadline.min(self.period).saturating_sub(self.jitter) {
            Time::ZERO => (u64::MAX, 1),
            time => (self.work(), time.0),
        }
    }
}

/// The worst case of a set.
#[derive(Clone, Debug)]
pub struct WorstCase {
    /// The tasks in the order of the set.
    pub tasks: Vec<Sporadic>,
    /// Number of cores.
    pub cores: usize,
    /// Speed of each core, and execution times at full speed; empty if all cores have the same speed, which is then
    /// included in every execution time.
    pub speeds: Vec<Speed>,
    /// Cores that each task may use, by its place; empty if every task may use all.
    pub allowed: Vec<CoreSet>,
    /// Upper bound on what dispatching adds to a job. It is included in every wcet here; with it, verdicts are no
    /// longer exact.
    pub switching: Time,
    /// Whether dispatching or migrating takes time.
    pub has_costs: bool,
    /// Whether jobs may take longer than the wcet that schedulers know.
    pub may_overrun: bool,
    /// Whether some burst ends, so that the long-term load is less than the utilization says.
    pub has_end: bool,
    /// Whether tasks share resources. Their delays are in [`Sporadic::waits`].
    pub is_sharing: bool,
}

/// Reason why a set does not fit the model of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAnalyzable {
    /// The load changes at mode switches.
    ModeSwitches,
    /// Decisions take time.
    DecisionCosts,
    /// A task is a list of single jobs.
    ListedJobs,
    /// A task follows others.
    Precedence,
    /// Tasks share resources.
    SharedResources,
}

impl fmt::Display for NotAnalyzable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotAnalyzable::ModeSwitches => "mode switches change the load; analyse each mode as a set of its own",
            NotAnalyzable::DecisionCosts => {
                "decisions cost time, which falls on whichever job runs and which no test covers"
            }
            NotAnalyzable::ListedJobs => "it is a list of single jobs, which do not recur",
            NotAnalyzable::SharedResources => "tasks share resources, and most tests are about independent tasks",
            NotAnalyzable::Precedence => "tasks come after each other, and the tests are about independent tasks",
        })
    }
}

impl std::error::Error for NotAnalyzable {}

/// Whether jobs of the task can take longer than its wcet.
pub fn may_overrun(task: &Task) -> bool {
    let overruns = matches!(task.execution, ExecutionModel::Overrun { probability, .. } if probability > 0.0);
    overruns && task.wcet_high.is_some_and(|high| high > task.wcet)
}

impl WorstCase {
    /// Returns the worst case of a set, or why the tests do not cover it.
    pub fn of(set: &TaskSet) -> Result<WorstCase, NotAnalyzable> {
        let worst_case = WorstCase::ignoring_precedence(set)?;
        if set.has_precedence() { Err(NotAnalyzable::Precedence) } else { Ok(worst_case) }
    }

    /// Returns the worst case of a set as if no task followed another. Whoever uses it has to account for precedence.
    pub fn ignoring_precedence(set: &TaskSet) -> Result<WorstCase, NotAnalyzable> {
        let worst_case = WorstCase::ignoring_sections(set)?;
        if set.has_sections() { Err(NotAnalyzable::SharedResources) } else { Ok(worst_case) }
    }

    /// Returns the worst case of a set as if no task followed another and no job waited for a resource. Whoever uses it
    /// has to account for both.
    pub fn ignoring_sections(set: &TaskSet) -> Result<WorstCase, NotAnalyzable> {
        if !set.modes().is_empty() {
            return Err(NotAnalyzable::ModeSwitches);
        }
        if set.costs().decision > Time::ZERO {
            return Err(NotAnalyzable::DecisionCosts);
        }
        // One switch when the job starts, one when the preempted job resumes.
        let switching = set.costs().context_switch * 2;
        let mut tasks = Vec::with_capacity(set.tasks().len());
        for (id, task) in set.task_ids().zip(set.tasks()) {
            let (jobs, is_periodic) = match task.arrival {
                Arrival::Periodic { .. } => (1, true),
                Arrival::Sporadic { .. } => (1, false),
                Arrival::Burst { jobs, until, .. } => (jobs, until == Time::NEVER),
                _ => return Err(NotAnalyzable::ListedJobs),
            };
            let Some(period) = task.period() else { continue };
            let wcet = if may_overrun(task) { task.wcet_high.unwrap_or(task.wcet) } else { task.wcet };
            let Task { jitter, offset, extra, preemption, .. } = *task;
            let region = preemption.longest_region(wcet);
            let last_region = match preemption {
                _ if switching > Time::ZERO => Time(1),
                Preemption::Free => Time(1),
                Preemption::None | Preemption::Cancel => wcet,
                Preemption::Every(every) => Time((wcet.0 - 1) % every.0 + 1),
            };
            tasks.push(Sporadic {
                id,
                wcet: wcet + switching,
                jobs,
                deadline: task.deadline,
                period,
                jitter,
                offset,
                priority: extra.get(Attribute::Priority),
                is_periodic,
                can_wait: matches!(task.arrival, Arrival::Sporadic { gap: Gap::Exponential { .. }, .. }),
                region: if region > Time::ZERO { region + switching } else { region },
                last_region,
                waits: Time::ZERO,
            });
        }
        let ends = |task: &Task| matches!(task.arrival, Arrival::Burst { until, .. } if until != Time::NEVER);
        let speeds: Vec<Speed> = set.core_ids().map(|core| set.machine().speed(core)).collect();
        let allowed = match set.bound_task() {
            Some(_) => set.tasks().iter().map(|task| task.cores.clone()).collect(),
            None => Vec::new(),
        };
        Ok(WorstCase {
            tasks,
            cores: set.cores(),
            speeds,
            allowed,
            switching,
            has_costs: switching > Time::ZERO || set.costs().migration > Time::ZERO,
            may_overrun: set.tasks().iter().any(may_overrun),
            has_end: set.tasks().iter().any(ends),
            is_sharing: false,
        }
        .at_one_speed())
    }

    /// If all cores have the same speed, includes it in the execution times. A job takes whole nanoseconds, however
    /// often it is preempted.
    fn at_one_speed(mut self) -> WorstCase {
        let Some(speed) = self.speeds.first().copied() else { return self };
        if self.speeds.iter().any(|other| *other != speed) {
            return self;
        }
        self.speeds.clear();
        if speed != Speed::FULL {
            self.switching = speed.time_for(self.switching);
            for task in &mut self.tasks {
                (task.wcet, task.region) = (speed.time_for(task.wcet), speed.time_for(task.region));
                task.last_region = Time(1);
            }
        }
        self
    }

    /// The worst case of some of the tasks, given by their places, on this many cores.
    pub fn part(&self, tasks: impl IntoIterator<Item = usize>, cores: usize) -> WorstCase {
        let tasks = tasks.into_iter().map(|place| self.tasks[place]).collect();
        WorstCase { tasks, cores, speeds: Vec::new(), allowed: Vec::new(), ..*self }
    }

    /// The worst case of some of the tasks, given by their places, on a range of the cores, with their speeds and the
    /// cores that the tasks may use.
    pub fn cluster(&self, tasks: impl IntoIterator<Item = usize>, cores: Range<usize>) -> WorstCase {
        let places: Vec<usize> = tasks.into_iter().collect();
        let mut part = self.part(places.iter().copied(), cores.len());
        part.speeds = self.speeds.get(cores.clone()).unwrap_or_default().to_vec();
        let own_cores = cores.clone().map(CoreId::new);
        let may_use_all = |place: &usize| own_cores.clone().all(|core| self.may_use(*place, core));
        if !places.iter().all(may_use_all) {
            let own = |place: usize| own_cores.clone().filter(move |core| self.may_use(place, *core));
            let moved = |place: &usize| CoreSet::of(own(*place).map(|core| CoreId::new(core.index() - cores.start)));
            part.allowed = places.iter().map(moved).collect();
        }
        part.at_one_speed()
    }

    /// The speed of a core.
    pub fn speed(&self, core: CoreId) -> Speed {
        self.speeds.get(core.index()).copied().unwrap_or(Speed::FULL)
    }

    /// Whether the task at this place may use a core.
    pub fn may_use(&self, place: usize, core: CoreId) -> bool {
        self.allowed.get(place).is_none_or(|cores| cores.contains(core))
    }

    /// Whether some task may not use every core.
    pub fn is_bound(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Whether all cores have the same speed and every task may use all of them.
    pub fn is_identical(&self) -> bool {
        self.speeds.is_empty() && !self.is_bound()
    }

    /// The outcome of a test that assumes identical cores and free migration, if they are not.
    pub(crate) fn if_cores_differ(&self) -> Option<Outcome> {
        let why = match (self.is_bound(), self.speeds.is_empty()) {
            (true, _) => "a task is bound to some of the cores",
            (false, false) => "the cores have different speeds",
            (false, true) => return None,
        };
        Some(Outcome::NotApplicable(why.into()))
    }

    /// Whether the utilization exceeds the speed of the cores, exactly. If it does, no scheduler can meet every
    /// deadline when jobs arrive as often and take as long as they may. Returns none if the comparison is too close to
    /// tell.
    pub fn is_overloaded(&self) -> Option<bool> {
        if self.has_end {
            return Some(false);
        }
        if !self.speeds.is_empty() {
            let total: f64 = self.speeds.iter().map(|speed| speed.as_f64()).sum();
            let load = self.utilization_without_switches();
            let is_close = (load - total).abs() <= MARGIN * total;
            return if is_close { None } else { Some(load > total) };
        }
        Some(compare_sum(self.own_utilizations(), self.cores as u64)? == Ordering::Greater)
    }

    /// Whether some task limits preemption.
    pub fn is_limited(&self) -> bool {
        self.tasks.iter().any(|task| task.region > Time::ZERO)
    }

    /// The outcome of a test that assumes preemption at any time, if a task limits it.
    pub(crate) fn if_limited(&self) -> Option<Outcome> {
        self.is_limited().then(|| Outcome::NotApplicable("a task limits preemption".into()))
    }

    /// How long the tasks can delay jobs that are due earlier. A job that holds the core began a nanosecond before.
    pub fn blocking(&self) -> Vec<Blocking> {
        let held = self.tasks.iter().filter(|task| task.region > Time::ZERO);
        held.map(|task| Blocking { deadline: task.deadline, length: Time(task.region.0 - 1) }).collect()
    }

    /// Whether the worst case of blocking can really happen: no job is preempted, and every task can wait for it.
    pub(crate) fn blocks_at_worst(&self) -> bool {
        let plain = |task: &Sporadic| {
            task.can_wait && task.jobs == 1 && task.jitter == Time::ZERO && task.last_region == task.wcet
        };
        self.tasks.iter().all(plain) && !self.has_costs
    }

    /// Sum over the tasks of work divided by the minimum time between arrivals.
    pub fn utilization(&self) -> f64 {
        self.utilizations().map(|(work, time)| work as f64 / time as f64).sum()
    }

    /// Sum of the utilizations without the switches that are in the wcets: what the jobs themselves ask for.
    pub fn utilization_without_switches(&self) -> f64 {
        self.own_utilizations().map(|(work, time)| work as f64 / time as f64).sum()
    }

    fn own_utilizations(&self) -> impl Iterator<Item = Fraction> + Clone + '_ {
        self.tasks.iter().map(|task| Sporadic { wcet: task.wcet - self.switching, ..*task }.utilization())
    }

    /// Sum of the densities: work divided by the time that each arrival has for itself. Infinite if jitter can take all
    /// of that time.
    pub fn density(&self) -> f64 {
        if self.tasks.iter().any(|task| task.deadline.min(task.period) <= task.jitter) {
            return f64::INFINITY;
        }
        self.tasks.iter().map(Sporadic::density).map(|(work, time)| work as f64 / time as f64).sum()
    }

    /// The utilization of each task.
    pub(crate) fn utilizations(&self) -> impl Iterator<Item = Fraction> + Clone + '_ {
        self.tasks.iter().map(Sporadic::utilization)
    }

    /// Whether all tasks may arrive together and then as often as possible, so that the worst case of the model can
    /// really happen in the set.
    pub fn is_synchronous(&self) -> bool {
        let first = self.tasks.first().map(|task| task.offset);
        let together = self.tasks.iter().all(|task| Some(task.offset) == first && task.jitter == Time::ZERO);
        together && !self.has_costs && !self.has_end
    }

    /// Whether every release is known beforehand.
    pub fn is_strictly_periodic(&self) -> bool {
        self.tasks.iter().all(|task| task.is_periodic && task.jitter == Time::ZERO)
    }

    /// Whether no deadline is longer than its period.
    pub fn is_constrained(&self) -> bool {
        self.tasks.iter().all(|task| task.deadline <= task.period)
    }

    /// Like [`WorstCase::tasks`], with each job of a burst as a task of its own, because on several cores these jobs
    /// can run in parallel.
    pub(crate) fn single_jobs(&self) -> Result<Vec<Sporadic>, String> {
        if let Some(long) = self.tasks.iter().find(|task| task.jobs > MOST_BURST_JOBS) {
            return Err(format!("a burst of {} jobs at once is too long", long.jobs));
        }
        let copies = |task: &Sporadic| std::iter::repeat_n(Sporadic { jobs: 1, ..*task }, task.jobs as usize);
        Ok(self.tasks.iter().flat_map(copies).collect())
    }
}

/// Longest burst that is analyzed on several cores, in jobs.
const MOST_BURST_JOBS: u32 = 1_000;
