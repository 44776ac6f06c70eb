//! Which schedulers of the catalog are proved to meet every deadline of a set, and by what. Said of our implementations, with their
//! default options, for every arrival and every execution time that the set allows; what is not proved here may well be true.
//!
//! Many schedulers are EDF as long as EDF is sure to meet everything: then no ready job can ever be late by its wcet, be without slack
//! and waiting, or fail to fit a plan, for it could take its whole wcet from then on and would miss under EDF. So they never deviate.

use temponet_task::{ExecutionModel, Speed, TaskSet, Time};

use super::global::Order;
use super::mixed_criticality::meets_virtual_deadlines;
use super::model::Model;
use super::response_time::{Policy, response_times};
use super::uniprocessor_edf::qpa;
use super::{Outcome, bounds, global, optimal};
use crate::catalog::ALL;
use crate::partition::{Fit, fills_cores, hyperbolic_bound, pack};
use crate::quantum::quantum;
use crate::{cd_split, dvfs, edf_us, fpedf};

/// A scheduler that meets every deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Its name.
    pub scheduler: &'static str,
    /// The test or theorem.
    pub by: String,
}

/// Every scheduler that is proved, in the catalog's order. None is if the set is not analysable.
pub fn proofs(set: &TaskSet) -> Vec<Proof> {
    let Ok(model) = Model::of(set) else { return Vec::new() };
    let edf = edf_proof(&model);
    let proof = |name: &'static str| Some(Proof { scheduler: name, by: proved(set, &model, name, &edf)? });
    ALL.iter().filter_map(|entry| proof(entry.name)).collect()
}

/// What proves one scheduler.
pub(super) fn proof(set: &TaskSet, scheduler: &str) -> Option<String> {
    let model = Model::of(set).ok()?;
    // Most have tests of their own.
    let asks_edf =
        !matches!(scheduler, "rm" | "dm" | "fp" | "p-edf" | "p-rm" | "edf-us" | "fpedf" | "cd-split" | "dp-wrap");
    proved(set, &model, scheduler, &asks_edf.then(|| edf_proof(&model)).flatten())
}

/// The name of a scheduler that meets every deadline on several cores, the one that migrates least if there are many.
pub(crate) fn any_proved(set: &TaskSet, model: &Model) -> Option<&'static str> {
    if model.is_overloaded() == Some(true) {
        return None;
    }
    let is_proved = |name: &&str| proved(set, model, name, &None).is_some();
    let by_migrations = ["p-edf", "cd-split", "dp-wrap"].into_iter().find(is_proved);
    by_migrations.or_else(|| edf_proof(model).map(|_| "edf"))
}

type ModelTest = fn(&Model) -> Outcome;

fn edf_proof(model: &Model) -> Option<String> {
    if model.cores == 1 {
        return (qpa(model) == Outcome::Schedulable).then(|| "QPA".into());
    }
    let tests: [(&str, ModelTest); 4] = [
        ("GFB", bounds::gfb),
        ("BAK", bounds::bak),
        ("BCL", |model| global::bcl(model, Order::Edf)),
        ("RTA", |model| global::rta(model, Order::Edf)),
    ];
    tests.iter().find(|(_, test)| test(model) == Outcome::Schedulable).map(|(name, _)| name.to_string())
}

fn fixed_proof(model: &Model, policy: Policy) -> Option<String> {
    let (name, outcome) = match model.cores {
        1 => ("response times", response_times(model, policy).outcome),
        _ => ("RTA", global::rta(model, Order::Fixed(policy))),
    };
    (outcome == Outcome::Schedulable).then(|| name.into())
}

/// Tasks that always go first have a core each; the others run by EDF on the cores that are left.
fn heavy_first(model: &Model, goes_first: &[bool]) -> Option<String> {
    let heavy = goes_first.iter().filter(|first| **first).count();
    let alone = |place: usize| {
        let task = &model.tasks[place];
        task.jobs == 1 && task.wcet.0 <= task.window() && task.wcet + task.jitter <= task.period
    };
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..goes_first.len()).partition(|place| goes_first[*place]);
    if heavy >= model.cores || model.has_costs || !first.into_iter().all(alone) {
        return None;
    }
    let by = edf_proof(&model.part(rest, model.cores - heavy))?;
    Some(if heavy == 0 { by } else { format!("{heavy} heavy alone, {by} for the rest") })
}

/// Every core or cluster of a partition by itself.
fn each(model: &Model, sizes: &[usize], cluster_of: &[usize], test: impl Fn(&Model) -> bool) -> bool {
    sizes.iter().enumerate().all(|(cluster, cores)| {
        let members = (0..cluster_of.len()).filter(|place| cluster_of[*place] == cluster);
        test(&model.part(members, *cores))
    })
}

fn proved(set: &TaskSet, model: &Model, scheduler: &str, edf: &Option<String>) -> Option<String> {
    let as_edf = |name: &str| edf.as_ref().map(|by| format!("{name} by {by}"));
    // These compare remaining wcets, so jobs must keep to them.
    let plans = !model.may_overrun && !model.has_costs;
    let cores = vec![1; model.cores];
    let has_one_speed = set.speeds == [Speed::FULL];
    let no_jitter = model.tasks.iter().all(|task| task.jitter == Time::ZERO);
    match scheduler {
        "edf" => edf.clone(),
        "edf-skip" | "mh-edf" | "red" | "lbesa" | "dasa" | "dios" | "edzl" | "edcl" if plans => as_edf("EDF"),
        "d-over" | "run" if plans && model.cores == 1 => as_edf("EDF"),
        "skip-over-rto" | "skip-over-bwp" if set.tasks.iter().all(|task| task.skip.is_none()) => as_edf("EDF"),
        "cbs" if set.tasks.iter().all(|task| task.server.is_none()) => as_edf("EDF"),
        "static-edf" | "cc-edf" if has_one_speed => as_edf("EDF at the one speed"),
        "static-edf" if model.cores == 1 => {
            let slowed = slowed(model, dvfs::constant_speed(&set.system()));
            (qpa(&slowed) == Outcome::Schedulable).then(|| "QPA at its speed".into())
        }
        "g-fl" if model.cores == 1 => as_edf("EDF"),
        "llf" if model.cores == 1 && plans && runs_in_quanta(set, model) => as_edf("EDF, in whole quanta"),
        "rm" => fixed_proof(model, Policy::RateMonotonic),
        "dm" => fixed_proof(model, Policy::DeadlineMonotonic),
        "fp" => fixed_proof(model, Policy::Given),
        "fcfs" => fixed_proof(model, Policy::Equal),
        "amc" if no_jitter && plans => fixed_proof(model, Policy::GivenOrDeadline),
        "edf-vd" if no_jitter && plans && model.cores == 1 && model.tasks.iter().all(|task| task.jobs == 1) => {
            meets_virtual_deadlines(set).then(|| "QPA with virtual deadlines".into())
        }
        "edf-us" => heavy_first(model, &edf_us::heavy(&set.tasks, model.cores)),
        "fpedf" => heavy_first(model, &fpedf::heavy(&set.tasks, model.cores)),
        "p-edf" => {
            let packed = pack(&set.tasks, &cores, Fit::First, fills_cores);
            let fits = each(model, &cores, &packed, |core| qpa(core) == Outcome::Schedulable);
            fits.then(|| "QPA on each core".into())
        }
        "c-edf" => {
            let sizes: Vec<usize> = (0..model.cores).step_by(2).map(|start| 2.min(model.cores - start)).collect();
            let packed = pack(&set.tasks, &sizes, Fit::First, fills_cores);
            each(model, &sizes, &packed, |cluster| edf_proof(cluster).is_some()).then(|| "EDF in each cluster".into())
        }
        "p-rm" => {
            let packed = pack(&set.tasks, &cores, Fit::First, hyperbolic_bound);
            let fits = |core: &Model| response_times(core, Policy::RateMonotonic).outcome == Outcome::Schedulable;
            each(model, &cores, &packed, fits).then(|| "response times on each core".into())
        }
        "cd-split" if no_jitter && plans && model.is_constrained() && model.tasks.iter().all(|task| task.jobs == 1) => {
            cd_split::fits(&set.tasks, model.cores).then(|| "QPA on each core, pieces included".into())
        }
        "pd2" | "er-pd2" => {
            optimal::pfair(model, quantum(None, &set.system())).then(|| "Pfair: densities up to m".into())
        }
        "llref" | "lre-tl" | "dp-wrap" => optimal::fluid(model).then(|| "DP-fair: densities up to m".into()),
        _ => None,
    }
}

/// Least laxity first is optimal on one core, and is at whole quanta if nothing ever happens between them.
fn runs_in_quanta(set: &TaskSet, model: &Model) -> bool {
    let always_wcet = set.tasks.iter().all(|task| matches!(task.execution, ExecutionModel::Wcet));
    always_wcet && model.is_strictly_periodic() && optimal::is_in_quanta(model, quantum(None, &set.system()))
}

/// The same at a constant speed; a completion rounds up to the nanosecond.
fn slowed(model: &Model, speed: Speed) -> Model {
    let mut slowed = model.clone();
    for task in &mut slowed.tasks {
        let time = u128::from(task.wcet.0) * 1_000 / u128::from(speed.0.max(1)) + 1;
        task.wcet = Time(u64::try_from(time).unwrap_or(u64::MAX));
    }
    slowed
}
