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
use std::ops::Range;

use temponet_analysis::packing::{Admits, Fit, fills_cores, hyperbolic_bound, pack};
use temponet_analysis::{
    Order, Outcome, PriorityRule, WorstCase, bak, bcl, dependent_response_times, due_date_edf, fgb, fluid, gfb,
    is_in_quanta, meets_virtual_deadlines, pfair, qpa, response_times, rta, sharing_demand, sharing_response_times,
};
use temponet_task::{ExecutionModel, Speed, System, Task, TaskSet, Time};

use crate::catalog::{ALL, Entry, Options};
use crate::schedulers::{edf_chain, egs};
use crate::shared::quantum::quantum;

/// A scheduler that is proved to meet every deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Name of the scheduler in the catalog.
    pub scheduler: &'static str,
    /// Name of the test or theorem.
    pub by: String,
}

/// Returns every scheduler that is proved to meet all deadlines, in the catalog's order. Returns none if the set cannot be analyzed.
pub fn proofs(set: &TaskSet) -> Vec<Proof> {
    if set.has_sections() {
        return sharing_proofs(set);
    }
    if set.has_precedence() {
        return dependent_proofs(set);
    }
    let Some(facts) = Facts::of(set) else { return Vec::new() };
    let proof = |entry: &'static Entry| Some(Proof { scheduler: entry.name, by: entry.proof(&facts)? });
    ALL.iter().filter_map(proof).collect()
}

/// Proofs where tasks share resources: fixed priorities and EDF, on one core.
fn sharing_proofs(set: &TaskSet) -> Vec<Proof> {
    ALL.iter().filter_map(|entry| Some(Proof { scheduler: entry.name, by: sharing_proof(set, entry)? })).collect()
}

/// Proof of a scheduler where tasks share resources.
pub(crate) fn sharing_proof(set: &TaskSet, entry: &Entry) -> Option<String> {
    let fixed = |rule| sharing_response_times(set, rule).is_ok_and(|found| found.outcome == Outcome::Schedulable);
    let by = match entry.name {
        "fcfs" if fixed(PriorityRule::Equal) => Some("response times with critical sections"),
        "fp" if fixed(PriorityRule::Given) => Some("response times with critical sections"),
        "rm" if fixed(PriorityRule::RateMonotonic) => Some("response times with critical sections"),
        "dm" if fixed(PriorityRule::DeadlineMonotonic) => Some("response times with critical sections"),
        "edf" if sharing_demand(set) == Ok(Outcome::Schedulable) => Some("demand with critical sections"),
        _ => None,
    };
    by.map(String::from)
}

/// Proofs where tasks follow each other: fixed priorities and EDF by due dates, on one core.
fn dependent_proofs(set: &TaskSet) -> Vec<Proof> {
    let fixed = |rule| dependent_response_times(set, rule).is_ok_and(|found| found.outcome == Outcome::Schedulable);
    let by_due_dates = |leads: &[Time]| due_date_edf(set, leads) == Ok(Outcome::Schedulable);
    let by = |entry: &Entry| match entry.name {
        "fp" if fixed(PriorityRule::Given) => Some("response times with jitter of predecessors"),
        "rm" if fixed(PriorityRule::RateMonotonic) => Some("response times with jitter of predecessors"),
        "dm" if fixed(PriorityRule::DeadlineMonotonic) => Some("response times with jitter of predecessors"),
        "edf-chain" if by_due_dates(&edf_chain::leads(&set.system)) => Some("QPA with due dates"),
        "egs" if by_due_dates(&egs::leads(&set.system)) => Some("QPA with due dates"),
        _ => None,
    };
    ALL.iter().filter_map(|entry| Some(Proof { scheduler: entry.name, by: by(entry)?.into() })).collect()
}

/// The proof function of a scheduler without a proof.
pub(crate) fn unproved(_: &Facts, _: &Options) -> Option<String> {
    None
}

/// A set, its worst case, and what is proved about EDF on it.
pub(crate) struct Facts<'a> {
    set: &'a TaskSet,
    worst_case: WorstCase,
    /// Computed when the first scheduler asks for it.
    edf: OnceCell<Option<String>>,
}

impl<'a> Facts<'a> {
    /// Returns the facts about a set, or none if the set cannot be analyzed.
    pub fn of(set: &'a TaskSet) -> Option<Facts<'a>> {
        Some(Facts::with(set, WorstCase::of(set).ok()?))
    }

    /// Facts about a set whose worst case is known.
    pub fn with(set: &'a TaskSet, worst_case: WorstCase) -> Facts<'a> {
        Facts { set, worst_case, edf: OnceCell::new() }
    }

    /// Proof of global EDF.
    pub fn edf(&self) -> Option<String> {
        self.edf.get_or_init(|| edf_proof(&self.worst_case)).clone()
    }

    /// Proof of a scheduler that is identical to EDF on this set; `name` says in what sense. Laxities are whole nanoseconds,
    /// so it is claimed only where work and time are the same.
    pub fn as_edf(&self, name: &str) -> Option<String> {
        self.edf().filter(|_| self.set.has_identical_cores()).map(|by| format!("{name} by {by}"))
    }

    /// Proof of a scheduler that is identical to EDF if every task is `plain`.
    pub fn as_edf_if(&self, plain: fn(&Task) -> bool) -> Option<String> {
        if self.set.tasks().iter().all(plain) { self.as_edf("EDF") } else { None }
    }

    /// Proof of a scheduler that plans with the remaining wcets and follows EDF as long as every job fits. It is not claimed
    /// where jobs hold their cores.
    pub fn planning_edf(&self) -> Option<String> {
        if self.keeps_to_wcets() { self.as_edf("EDF") } else { None }
    }

    /// Proof of fixed priorities.
    pub fn fixed_priorities(&self, rule: PriorityRule) -> Option<String> {
        if !self.worst_case.is_identical() {
            return None;
        }
        let (name, outcome) = match self.worst_case.cores {
            1 => (fixed_priority_test(&self.worst_case), response_times(&self.worst_case, rule).outcome),
            _ => ("RTA", rta(&self.worst_case, Order::Fixed(rule))),
        };
        (outcome == Outcome::Schedulable).then(|| name.into())
    }

    /// Proof of fixed priorities that change when a job overruns its wcet, on sets where no job can.
    pub fn without_overruns(&self, rule: PriorityRule) -> Option<String> {
        if self.has_jitter() || !self.keeps_to_wcets() { None } else { self.fixed_priorities(rule) }
    }

    /// Proof of EDF with virtual deadlines, on sets where no job can overrun its wcet.
    pub fn virtual_deadlines(&self) -> Option<String> {
        let applies = !self.has_jitter() && self.keeps_to_wcets() && self.is_one_core() && self.has_single_jobs();
        let applies = applies && self.set.machine().is_full_speed();
        (applies && meets_virtual_deadlines(self.set)).then(|| "QPA with virtual deadlines".into())
    }

    /// Proof of least laxity first with this quantum: optimal on one core, if all times are whole quanta and nothing
    /// happens between them.
    pub fn least_laxity(&self, given: Option<Time>) -> Option<String> {
        let always_wcet = self.set.tasks().iter().all(|task| matches!(task.execution, ExecutionModel::Wcet));
        let in_quanta = always_wcet
            && self.worst_case.is_strictly_periodic()
            && is_in_quanta(&self.worst_case, quantum(given, &self.set.system));
        if self.is_one_core() && self.keeps_to_wcets() && in_quanta {
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
        if self.worst_case.is_limited() {
            return None;
        }
        let fits = || qpa(&slowed(&self.worst_case, chosen(&self.set.system))) == Outcome::Schedulable;
        (self.is_one_core() && fits()).then(|| "QPA at its speed".into())
    }

    /// Proof of EDF with precedence for the tasks that `heavy` marks. These always go first, so each of them has a core
    /// to itself.
    pub fn heavy_tasks_first(&self, heavy: fn(&[Task], usize) -> Vec<bool>) -> Option<String> {
        let worst_case = &self.worst_case;
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
        self.each_cluster(1, fit, fills_cores, fits).then(|| format!("{} on each core", edf_test(&self.worst_case)))
    }

    /// Proof of EDF in clusters of this many cores.
    pub fn clustered_edf(&self, fit: Fit, size: usize) -> Option<String> {
        let fits = |cluster: &WorstCase| edf_proof(cluster).is_some();
        self.each_cluster(size, fit, fills_cores, fits).then(|| "EDF in each cluster".into())
    }

    /// Proof of partitioned rate-monotonic scheduling.
    pub fn partitioned_rm(&self, fit: Fit) -> Option<String> {
        let fits = |core: &WorstCase| response_times(core, PriorityRule::RateMonotonic).outcome == Outcome::Schedulable;
        self.each_cluster(1, fit, hyperbolic_bound, fits)
            .then(|| format!("{} on each core", fixed_priority_test(&self.worst_case)))
    }

    /// Proof of a semi-partitioned scheduler that splits tasks; `fits` says whether every task finds its place.
    pub fn split_tasks(&self, fits: fn(&[Task], usize) -> bool) -> Option<String> {
        let applies =
            !self.has_jitter() && self.keeps_to_wcets() && self.worst_case.is_constrained() && self.has_single_jobs();
        let applies = applies && self.set.has_identical_cores();
        (applies && fits(self.set.tasks(), self.worst_case.cores)).then(|| "QPA on each core, pieces included".into())
    }

    /// Proof of a Pfair scheduler with this quantum.
    pub fn pfair(&self, given: Option<Time>) -> Option<String> {
        let is_fair = self.set.has_identical_cores() && pfair(&self.worst_case, quantum(given, &self.set.system));
        is_fair.then(|| "Pfair: densities up to m".into())
    }

    /// Proof of a scheduler that follows the fluid schedule.
    pub fn fluid(&self) -> Option<String> {
        (self.set.has_identical_cores() && fluid(&self.worst_case)).then(|| "DP-fair: densities up to m".into())
    }

    pub fn is_one_core(&self) -> bool {
        self.worst_case.cores == 1
    }

    /// Whether jobs keep to their wcets and can be preempted at any time, which schedulers that compare remaining wcets
    /// rely on.
    fn keeps_to_wcets(&self) -> bool {
        !self.worst_case.may_overrun && !self.worst_case.has_costs && !self.worst_case.is_limited()
    }

    fn has_jitter(&self) -> bool {
        self.worst_case.tasks.iter().any(|task| task.jitter > Time::ZERO)
    }

    fn has_single_jobs(&self) -> bool {
        self.worst_case.tasks.iter().all(|task| task.jobs == 1)
    }

    /// Whether every cluster of a partition passes `test` by itself.
    fn each_cluster(&self, size: usize, fit: Fit, admits: Admits, test: impl Fn(&WorstCase) -> bool) -> bool {
        let cores = self.worst_case.cores;
        let clusters: Vec<Range<usize>> =
            (0..cores).step_by(size).map(|start| start..(start + size).min(cores)).collect();
        let cluster_of = pack(&self.set.system, &clusters, fit, admits);
        clusters.iter().enumerate().all(|(cluster, cores)| {
            let members = (0..cluster_of.len()).filter(|place| cluster_of[*place] == cluster);
            test(&self.worst_case.cluster(members, cores.clone()))
        })
    }
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
