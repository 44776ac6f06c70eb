//! `--fail-unless edf`: an analysis as a check in a build, which exits with code 1 unless this is proved.

use std::str::FromStr;

use anyhow::{Result, bail};
use temponet_lab::analysis::Analysis;
use temponet_lab::guarantee::Guaranteed;
use temponet_lab::roster::SHIELDED;
use temponet_sched::catalog;
use temponet_task::{Aim, Task, TaskSet};
use temponet_wording::{did_you_mean, listed};

use crate::Failed;
use crate::compare::{refuse_unknown_task, refuse_unmeasurable};

/// What must be proved.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// Every deadline is met under at least one scheduler.
    Any,
    /// The shield guarantees every deadline of every critical task.
    Critical,
    /// The shield guarantees every deadline of the task with this name.
    Task(String),
    /// Every deadline is met under the scheduler with this name.
    Scheduler(&'static str),
}

impl FromStr for Demand {
    type Err = String;

    fn from_str(text: &str) -> Result<Demand, String> {
        Ok(match text {
            "any" => Demand::Any,
            "critical" => Demand::Critical,
            _ => match text.strip_prefix("task.") {
                Some(name) => Demand::Task(name.into()),
                None => Demand::Scheduler(scheduler(text)?),
            },
        })
    }
}

/// Returns the name of a scheduler as the catalog has it.
fn scheduler(name: &str) -> Result<&'static str, String> {
    if let Some(entry) = catalog::find(name) {
        return Ok(&entry.name);
    }
    let known = catalog::all().into_iter().map(|entry| &*entry.name).chain(["any", "critical"]);
    Err(format!("is neither any, critical, task.NAME nor a scheduler without options{}", did_you_mean(name, known)))
}

impl Demand {
    /// Returns the demand as it is written.
    fn name(&self) -> String {
        match self {
            Demand::Any => "any".into(),
            Demand::Critical => "critical".into(),
            Demand::Task(name) => format!("task.{name}"),
            Demand::Scheduler(name) => (*name).into(),
        }
    }

    /// Whether it is the shield that meets it.
    fn rests_on_the_shield(&self) -> bool {
        !matches!(self, Demand::Any | Demand::Scheduler(_)) || *self == Demand::Scheduler(SHIELDED)
    }
}

/// Rejects demands on tasks that the set does not have, on critical ones if none is, and on the shield if there is none.
pub fn refuse_unknown(demands: &[Demand], set: &TaskSet, has_shield: bool) -> Result<()> {
    for demand in demands {
        let option = format!("--fail-unless {}", demand.name());
        match demand {
            Demand::Critical => refuse_unmeasurable(&option, Aim::Critical, set)?,
            Demand::Task(name) => refuse_unknown_task(&option, name, set)?,
            _ => {}
        }
        if !has_shield && demand.rests_on_the_shield() {
            bail!("{option}: only the shield guarantees that, and --no-shield takes it away");
        }
    }
    Ok(())
}

/// Fails unless all of it is proved, and names what is not.
pub fn check(demands: &[Demand], analysis: &Analysis) -> Result<()> {
    if demands.is_empty() {
        return Ok(());
    }
    let guaranteed = Guaranteed::on(&analysis.set);
    let failed: Vec<String> = demands.iter().filter_map(|demand| missing(demand, analysis, &guaranteed)).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failed(failed.join("\n")).into()) }
}

/// Returns what is missing of a demand.
fn missing(demand: &Demand, analysis: &Analysis, guaranteed: &Guaranteed) -> Option<String> {
    let (proofs, set) = (&analysis.proofs, &analysis.set);
    match demand {
        Demand::Any => proofs.is_empty().then(|| "any: no scheduler is proved to meet every deadline".into()),
        // Behind the shield every deadline is met that is guaranteed.
        Demand::Scheduler(SHIELDED) => not_guaranteed(SHIELDED, names_of(set, |_| true), guaranteed),
        Demand::Scheduler(name) => {
            let is_proved = proofs.iter().any(|proof| proof.scheduler == *name);
            (!is_proved).then(|| format!("{name}: not proved to meet every deadline"))
        }
        Demand::Critical => not_guaranteed("critical", names_of(set, |task| task.criticality > 0), guaranteed),
        Demand::Task(name) => not_guaranteed(&format!("task.{name}"), vec![name.as_str()], guaranteed),
    }
}

fn names_of(set: &TaskSet, is_meant: impl Fn(&Task) -> bool) -> Vec<&str> {
    set.tasks().iter().filter(|task| is_meant(task)).map(|task| task.name.as_str()).collect()
}

/// Returns which of the tasks the shield does not guarantee, with the reasons; none if it guarantees all.
fn not_guaranteed(demand: &str, names: Vec<&str>, guaranteed: &Guaranteed) -> Option<String> {
    let others = guaranteed.not_guaranteed();
    let concerned = others.iter().filter(|(name, _)| names.contains(name));
    let concerned: Vec<String> = concerned.map(|(name, why)| format!("{name} ({why})")).collect();
    if !concerned.is_empty() {
        return Some(format!(
            "{demand}: the shield does not guarantee {}",
            listed(concerned.iter().map(String::as_str), MOST_NAMES)
        ));
    }
    // What a mode can end is no guarantee that a build may rest on.
    let exceptions = guaranteed.exceptions_by_modes();
    (!exceptions.is_empty()).then(|| format!("{demand}: {}", exceptions.join(" ")))
}

/// Greatest number of tasks that a failure names.
const MOST_NAMES: usize = 8;
