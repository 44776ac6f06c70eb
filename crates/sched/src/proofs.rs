//! Proofs that schedulers of the catalog meet every deadline of a set.
//!
//! A proof holds for our implementation of the scheduler with its default options, for every arrival and every
//! execution time that the set allows. A scheduler without a proof may still meet every deadline. The entry of a
//! scheduler in the catalog names its proof; this module provides the facts about a set that the entries ask for.
//!
//! Many schedulers are identical to EDF as long as EDF is certain to meet every deadline. In that case no ready job can
//! be late by its wcet, wait without slack, or fail to fit a plan: it could take its whole wcet from that point on, and
//! EDF would miss its deadline. So these schedulers never deviate from EDF, and the proof of EDF applies to them.

use std::cell::OnceCell;

use temponet_analysis::packing::{Admits, Fit, fills_cores, hyperbolic_bound};
use temponet_analysis::{
    Order, Outcome, PriorityRule, WorstCase, bak, bcl, dependent_outcome, due_date_edf, fgb, fluid, gfb, is_in_quanta,
    meets_virtual_deadlines, pfair, qpa, response_times, rta, sharing_demand, sharing_response_times,
};
use temponet_task::{ExecutionModel, Speed, System, Task, TaskSet, Time};

use crate::catalog::{Entry, all};
use crate::shared::clusters::{clusters, packed};
use crate::shared::quantum::quantum;

/// A scheduler that is proved to meet every deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Name of the scheduler in the catalog.
    pub scheduler: &'static str,
    /// Name of the test or theorem.
    pub by: String,
}

/// Returns every scheduler that is proved to meet all deadlines, in the catalog's order. Returns none if the set cannot
/// be analyzed.
pub fn proofs(set: &TaskSet) -> Vec<Proof> {
    let Some(facts) = Facts::of(set) else { return Vec::new() };
    let proof = |entry: &'static Entry| Some(Proof { scheduler: &entry.name, by: entry.proved_by(&facts)? });
    all().into_iter().filter_map(proof).collect()
}

/// A set, its worst case, and what is proved about EDF on it.
///
/// Where tasks share resources or come after each other, other tests apply, and most proofs do not: a method returns
/// none there unless it says otherwise.
pub struct Facts<'a> {
    set: &'a TaskSet,
    tasks: Tasks,
    /// Computed when the first scheduler asks for it.
    edf: OnceCell<Option<String>>,
}

/// How the tasks of a set depend on each other.
enum Tasks {
    /// Not at all; this is their worst case.
    Independent(Box<WorstCase>),
    /// Some come after others.
    Ordered,
    /// Some have critical sections, and some may come after others.
    Sharing,
}

impl<'a> Facts<'a> {
    /// Returns the facts about a set, or none if the set cannot be analyzed.
    pub fn of(set: &'a TaskSet) -> Option<Facts<'a>> {
        let tasks = match (set.has_sections(), set.has_precedence()) {
            (true, _) => Tasks::Sharing,
            (false, true) => Tasks::Ordered,
            (false, false) => return Some(Facts::with(set, WorstCase::of(set).ok()?)),
        };
        Some(Facts { set, tasks, edf: OnceCell::new() })
    }

    /// Facts about a set of independent tasks whose worst case is known.
    pub(crate) fn with(set: &'a TaskSet, worst_case: WorstCase) -> Facts<'a> {
        Facts { set, tasks: Tasks::Independent(Box::new(worst_case)), edf: OnceCell::new() }
    }

    /// The worst case of independent tasks.
    fn worst_case(&self) -> Option<&WorstCase> {
        match &self.tasks {
            Tasks::Independent(worst_case) => Some(worst_case),
            Tasks::Ordered | Tasks::Sharing => None,
        }
    }

    /// Proof of global EDF; also where tasks share resources, on one core.
    pub fn edf(&self) -> Option<String> {
        let proof = || match &self.tasks {
            Tasks::Independent(worst_case) => edf_proof(worst_case),
            Tasks::Sharing => {
                (sharing_demand(self.set) == Ok(Outcome::Schedulable)).then(|| "demand with critical sections".into())
            }
            Tasks::Ordered => None,
        };
        self.edf.get_or_init(proof).clone()
    }

    /// Proof of EDF by due dates, where tasks come after each other, on one core. `leads` returns the time before its
    /// deadline at which a job of each task is due.
    pub fn due_dates(&self, leads: fn(&System) -> Vec<Time>) -> Option<String> {
        let is_proved = || due_date_edf(self.set, &leads(&self.set.system)) == Ok(Outcome::Schedulable);
        (matches!(self.tasks, Tasks::Ordered) && is_proved()).then(|| "QPA with due dates".into())
    }

    /// Proof of a scheduler that is identical to EDF on this set; `name` says in what sense. Laxities are whole
    /// nanoseconds, so it is claimed only where work and time are the same.
    pub fn as_edf(&self, name: &str) -> Option<String> {
        self.worst_case()?;
        self.edf().filter(|_| self.set.has_identical_cores()).map(|by| format!("{name} by {by}"))
    }

    /// Proof of a scheduler that is identical to EDF if every task is `plain`.
    pub fn as_edf_if(&self, plain: fn(&Task) -> bool) -> Option<String> {
        if self.set.tasks().iter().all(plain) { self.as_edf("EDF") } else { None }
    }

    /// Proof of a scheduler that plans with the remaining wcets and follows EDF as long as every job fits. It is not
    /// claimed where jobs hold their cores.
    pub fn planning_edf(&self) -> Option<String> {
        if keeps_to_wcets(self.worst_case()?) { self.as_edf("EDF") } else { None }
    }

    /// Proof of fixed priorities; also, on one core, where tasks share resources, and where tasks come after each other
    /// of which each may use a single core.
    pub fn fixed_priorities(&self, rule: PriorityRule) -> Option<String> {
        let (name, outcome) = match &self.tasks {
            Tasks::Sharing => {
                ("response times with critical sections", sharing_response_times(self.set, rule).ok()?.outcome)
            }
            // A follower arrives with its source and is released later, so that the order of arrivals is not that of
            // priorities.
            Tasks::Ordered if rule == PriorityRule::Equal => return None,
            Tasks::Ordered => ("response times with jitter of predecessors", dependent_outcome(self.set, rule).ok()?),
            Tasks::Independent(worst_case) if !worst_case.is_identical() => return None,
            Tasks::Independent(worst_case) => match worst_case.cores {
                1 => (fixed_priority_test(worst_case), response_times(worst_case, rule).outcome),
                _ => ("RTA", rta(worst_case, Order::Fixed(rule))),
            },
        };
        (outcome == Outcome::Schedulable).then(|| name.into())
    }

    /// Proof of fixed priorities that change when a job overruns its wcet, on sets where no job can.
    pub fn without_overruns(&self, rule: PriorityRule) -> Option<String> {
        let worst_case = self.worst_case()?;
        if has_jitter(worst_case) || !keeps_to_wcets(worst_case) { None } else { self.fixed_priorities(rule) }
    }

    /// Proof of EDF with virtual deadlines, on sets where no job can overrun its wcet.
    pub fn virtual_deadlines(&self) -> Option<String> {
        let worst_case = self.worst_case()?;
        let applies = !has_jitter(worst_case) && keeps_to_wcets(worst_case) && has_single_jobs(worst_case);
        let applies = applies && self.is_one_core() && self.set.machine().is_full_speed();
        (applies && meets_virtual_deadlines(self.set)).then(|| "QPA with virtual deadlines".into())
    }

    /// Proof of least laxity first with this quantum: optimal on one core, if all times are whole quanta and nothing
    /// happens between them.
    pub fn least_laxity(&self, given: Option<Time>) -> Option<String> {
        let worst_case = self.worst_case()?;
        let always_wcet = self.set.tasks().iter().all(|task| matches!(task.execution, ExecutionModel::Wcet));
        let in_quanta = always_wcet
            && worst_case.is_strictly_periodic()
            && is_in_quanta(worst_case, quantum(given, &self.set.system));
        if self.is_one_core() && keeps_to_wcets(worst_case) && in_quanta {
            self.as_edf("EDF, in whole quanta")
        } else {
            None
        }
    }

    /// Proof of EDF on a machine with one speed.
    pub fn one_speed(&self) -> Option<String> {
        if self.set.speeds() == [Speed::FULL] { self.as_edf("EDF at the one speed") } else { None }
    }

    /// Proof of EDF on one core at the constant speed that `chosen` returns.
    pub fn constant_speed(&self, chosen: fn(&System) -> Speed) -> Option<String> {
        let worst_case = self.worst_case().filter(|worst_case| !worst_case.is_limited())?;
        let fits = || qpa(&slowed(worst_case, chosen(&self.set.system))) == Outcome::Schedulable;
        (self.is_one_core() && fits()).then(|| "QPA at its speed".into())
    }

    /// Proof of EDF with precedence for the tasks that `heavy` marks. These always go first, so each of them has a core
    /// to itself.
    pub fn heavy_tasks_first(&self, heavy: fn(&[Task], usize) -> Vec<bool>) -> Option<String> {
        let worst_case = self.worst_case()?;
        let goes_first = heavy(self.set.tasks(), worst_case.cores);
        let alone = |place: usize| {
            let task = &worst_case.tasks[place];
            task.jobs == 1 && task.wcet.0 <= task.window() && task.wcet + task.jitter <= task.period
        };
        let (first, rest): (Vec<usize>, Vec<usize>) = (0..goes_first.len()).partition(|place| goes_first[*place]);
        let heavy = first.len();
        let is_covered = !worst_case.has_costs && !worst_case.is_limited() && self.set.has_identical_cores();
        if heavy >= worst_case.cores || !is_covered || !first.into_iter().all(alone) {
            return None;
        }
        let by = edf_proof(&worst_case.part(rest, worst_case.cores - heavy))?;
        Some(if heavy == 0 { by } else { format!("{heavy} heavy alone, {by} for the rest") })
    }

    /// Proof of partitioned EDF.
    pub fn partitioned_edf(&self, fit: Fit) -> Option<String> {
        let fits = |core: &WorstCase| qpa(core) == Outcome::Schedulable;
        self.each_cluster(1, fit, fills_cores, fits).map(|worst_case| format!("{} on each core", edf_test(worst_case)))
    }

    /// Proof of EDF in clusters of this many cores.
    pub fn clustered_edf(&self, fit: Fit, size: usize) -> Option<String> {
        let fits = |cluster: &WorstCase| edf_proof(cluster).is_some();
        self.each_cluster(size, fit, fills_cores, fits).map(|_| "EDF in each cluster".into())
    }

    /// Proof of partitioned rate-monotonic scheduling.
    pub fn partitioned_rm(&self, fit: Fit) -> Option<String> {
        let fits = |core: &WorstCase| response_times(core, PriorityRule::RateMonotonic).outcome == Outcome::Schedulable;
        self.each_cluster(1, fit, hyperbolic_bound, fits)
            .map(|worst_case| format!("{} on each core", fixed_priority_test(worst_case)))
    }

    /// Proof of a semi-partitioned scheduler that splits tasks; `fits` says whether every task finds its place.
    pub fn split_tasks(&self, fits: fn(&[Task], usize) -> bool) -> Option<String> {
        let worst_case = self.worst_case()?;
        let applies = !has_jitter(worst_case) && keeps_to_wcets(worst_case) && has_single_jobs(worst_case);
        let applies = applies && worst_case.is_constrained() && self.set.has_identical_cores();
        (applies && fits(self.set.tasks(), worst_case.cores)).then(|| "QPA on each core, pieces included".into())
    }

    /// Proof of a Pfair scheduler with this quantum.
    pub fn pfair(&self, given: Option<Time>) -> Option<String> {
        let is_fair = self.set.has_identical_cores() && pfair(self.worst_case()?, quantum(given, &self.set.system));
        is_fair.then(|| "Pfair: densities up to m".into())
    }

    /// Proof of a scheduler that follows the fluid schedule.
    pub fn fluid(&self) -> Option<String> {
        (self.set.has_identical_cores() && fluid(self.worst_case()?)).then(|| "DP-fair: densities up to m".into())
    }

    /// Whether the set has one core.
    pub fn is_one_core(&self) -> bool {
        self.set.cores() == 1
    }

    /// Returns the worst case if every cluster of a partition passes `test` by itself.
    fn each_cluster(
        &self,
        size: usize,
        fit: Fit,
        admits: Admits,
        test: impl Fn(&WorstCase) -> bool,
    ) -> Option<&WorstCase> {
        let worst_case = self.worst_case()?;
        let cluster_of = packed(&self.set.system, size, fit, admits);
        let passes = clusters(worst_case.cores, size).into_iter().enumerate().all(|(cluster, cores)| {
            let members = (0..cluster_of.len()).filter(|place| cluster_of[*place] == cluster);
            test(&worst_case.cluster(members, cores))
        });
        passes.then_some(worst_case)
    }
}

/// Whether jobs keep to their wcets and can be preempted at any time, which schedulers that compare remaining wcets
/// rely on.
fn keeps_to_wcets(worst_case: &WorstCase) -> bool {
    !worst_case.may_overrun && !worst_case.has_costs && !worst_case.is_limited()
}

fn has_jitter(worst_case: &WorstCase) -> bool {
    worst_case.tasks.iter().any(|task| task.jitter > Time::ZERO)
}

/// Whether at most one job of each task is ready at a time.
fn has_single_jobs(worst_case: &WorstCase) -> bool {
    worst_case.tasks.iter().all(|task| task.jobs == 1)
}

/// A schedulability test and its name.
type NamedTest = (&'static str, fn(&WorstCase) -> Outcome);

/// Name of the test for EDF on one core.
fn edf_test(worst_case: &WorstCase) -> &'static str {
    if worst_case.is_limited() { "demand with blocking" } else { "QPA" }
}

/// Name of the test for fixed priorities on one core.
fn fixed_priority_test(worst_case: &WorstCase) -> &'static str {
    if worst_case.is_limited() { "response times with blocking" } else { "response times" }
}

/// Proof of global EDF: QPA on one core, the first test that succeeds on several.
fn edf_proof(worst_case: &WorstCase) -> Option<String> {
    if !worst_case.is_identical() {
        return (fgb(worst_case) == Outcome::Schedulable).then(|| "FGB".into());
    }
    if worst_case.cores == 1 {
        return (qpa(worst_case) == Outcome::Schedulable).then(|| edf_test(worst_case).into());
    }
    let tests: [NamedTest; 4] = [
        ("GFB", gfb),
        ("BAK", bak),
        ("BCL", |worst_case| bcl(worst_case, Order::Edf)),
        ("RTA", |worst_case| rta(worst_case, Order::Edf)),
    ];
    tests.iter().find(|(_, test)| test(worst_case) == Outcome::Schedulable).map(|(name, _)| name.to_string())
}

/// The worst case at a constant speed. Completions are rounded up to the nanosecond.
fn slowed(worst_case: &WorstCase, speed: Speed) -> WorstCase {
    let mut slowed = worst_case.clone();
    for task in &mut slowed.tasks {
        let time = u128::from(task.wcet.0) * 1_000 / u128::from(speed.0.max(1)) + 1;
        task.wcet = Time(u64::try_from(time).unwrap_or(u64::MAX));
    }
    slowed
}
