//! `--fail-if 'critical<100%'`: a comparison as a check in a build, which exits with code 1 if the condition holds.

use anyhow::{Result, bail};
use temponet_lab::arena::scenario::measured;
use temponet_lab::comparison::{Comparison, ComparisonRow};
use temponet_lab::stats::percent;
use temponet_sim::{Count, Metrics};
use temponet_task::{Aim, TaskSet};

use temponet_wording::did_you_mean;

use crate::Failed;
use crate::setup::aim;

/// A condition that makes the check fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// Scheduler that the condition applies to; none: the best one.
    scheduler: Option<String>,
    subject: Subject,
    comparison: Relation,
    share: f64,
}

/// What a condition measures.
#[derive(Clone, Debug, PartialEq)]
enum Subject {
    Aim(Aim),
    /// Jobs of one level of criticality.
    Level(u8),
    /// Jobs of the task with this name.
    Task(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Less,
    AtMost,
    More,
    AtLeast,
}

const RELATIONS: [(&str, Relation); 4] =
    [("<=", Relation::AtMost), (">=", Relation::AtLeast), ("<", Relation::Less), (">", Relation::More)];

/// Begin of a measure that names a level of criticality, or a task.
const LEVEL: &str = "critical.";
const TASK: &str = "task.";

/// Parses `[SCHEDULER:]MEASURE<SHARE`, where the measure is that of an aim, `critical.LEVEL` or `task.NAME`.
pub fn parse(text: &str) -> Result<Condition, String> {
    // The name of a task may contain any of the signs; the share after the last one does not.
    let found = RELATIONS.iter().filter_map(|(sign, relation)| Some((text.rsplit_once(sign)?, *relation)));
    let found = found
        .max_by_key(|((left, _), relation)| (left.len(), matches!(relation, Relation::AtMost | Relation::AtLeast)));
    let ((left, right), comparison) = found.ok_or("has none of <, <=, >, >=, as in 'critical<100%'")?;
    let right = right.trim();
    // The options of a scheduler may contain colons, and so may the name of a task; other measures do not.
    let of_task =
        if left.trim_start().starts_with(TASK) { Some(0) } else { left.find(&format!(":{TASK}")).map(|at| at + 1) };
    let begins = of_task.or_else(|| left.rfind(':').map(|at| at + 1)).unwrap_or(0);
    let scheduler = begins.checked_sub(1).map(|end| left[..end].trim().to_string());
    let subject = subject(left[begins..].trim())?;
    let (digits, scale) = right.strip_suffix('%').map_or((right, 1.0), |digits| (digits.trim(), 100.0));
    let share = digits.parse::<f64>().ok().map(|value| value / scale).filter(|share| (0.0..=1.0).contains(share));
    let share = share.ok_or_else(|| format!("{right:?} is no share from 0 to 1, or from 0% to 100%"))?;
    Ok(Condition { text: text.into(), scheduler, subject, comparison, share })
}

fn subject(measure: &str) -> Result<Subject, String> {
    if let Some(level) = measure.strip_prefix(LEVEL) {
        let level = level.parse().ok().filter(|level| *level > 0);
        return level.map(Subject::Level).ok_or_else(|| format!("{measure:?} names no level from 1 to 255"));
    }
    if let Some(name) = measure.strip_prefix(TASK) {
        return Ok(Subject::Task(name.into()));
    }
    aim(measure).map(Subject::Aim).map_err(|why| format!("{measure:?} {why}, critical.LEVEL or task.NAME"))
}

impl Subject {
    /// Returns the share that a scheduler reached; `None` if there is nothing to measure.
    fn measured(&self, set: &TaskSet, metrics: &Metrics) -> Option<f64> {
        let share = |count: Count| (count.released > 0).then(|| count.compliance());
        match self {
            Subject::Aim(aim) => measured(*aim, metrics),
            Subject::Level(level) => share(*metrics.by_criticality.get(usize::from(*level))?),
            Subject::Task(name) => {
                let place = set.tasks().iter().position(|task| task.name == *name)?;
                share(metrics.tasks.get(place)?.jobs)
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Subject::Aim(aim) => aim.name().into(),
            Subject::Level(level) => format!("{LEVEL}{level}"),
            Subject::Task(name) => format!("{TASK}{name}"),
        }
    }
}

/// Names of the tasks. The parts of a task have none of their own here.
fn whole_names(set: &TaskSet) -> impl Iterator<Item = &str> {
    set.tasks().iter().filter(|task| !task.is_part).map(|task| task.name.as_str())
}

/// Rejects an option about a task that the set does not have.
pub fn refuse_unknown_task(option: &str, name: &str, set: &TaskSet) -> Result<()> {
    if whole_names(set).any(|known| known == name) {
        return Ok(());
    }
    bail!("{option}: there is no task {name:?}{}", did_you_mean(name, whole_names(set)));
}

/// Rejects an option about an aim that the set says nothing about.
pub fn refuse_unmeasurable(option: &str, aim: Aim, set: &TaskSet) -> Result<()> {
    let missing = match aim {
        Aim::Critical if set.levels().is_empty() => "no task is critical",
        Aim::Mk if set.tasks().iter().all(|task| task.mk.is_none()) => "no task has an (m,k) constraint",
        Aim::Chains if !set.has_chain_deadlines() => "no chain has a deadline",
        _ => return Ok(()),
    };
    bail!("{option}: {missing}")
}

/// Rejects conditions on schedulers that will not run, and on aims, levels and tasks that the set does not have.
pub fn refuse_unknown(conditions: &[Condition], schedulers: &[String], set: &TaskSet) -> Result<()> {
    for Condition { text, scheduler, subject, .. } in conditions {
        if let Some(name) = scheduler.as_ref().filter(|name| !schedulers.contains(name)) {
            let meant = did_you_mean(name, schedulers.iter().map(String::as_str));
            bail!("--fail-if {text:?}: there will be no result of {name}{meant}");
        }
        match subject {
            Subject::Level(level) if !set.levels().contains(level) => {
                bail!("--fail-if {text:?}: no task has criticality {level}");
            }
            Subject::Level(_) => {}
            Subject::Task(name) => refuse_unknown_task(&format!("--fail-if {text:?}"), name, set)?,
            Subject::Aim(aim) => refuse_unmeasurable(&format!("--fail-if {text:?}"), *aim, set)?,
        }
    }
    Ok(())
}

/// Fails if any condition holds, and names all that do.
pub fn check(conditions: &[Condition], comparison: &Comparison) -> Result<()> {
    let best = comparison.advice().best;
    let mut failed = Vec::new();
    for condition in conditions {
        let Condition { text, scheduler, subject, .. } = condition;
        let row: Option<&ComparisonRow> = scheduler.as_ref().or(best.as_ref()).and_then(|name| comparison.row(name));
        let Some(row) = row else {
            let name = scheduler.as_deref().unwrap_or("any scheduler");
            bail!("--fail-if {text:?}: there is no result of {name}");
        };
        let Some(share) = subject.measured(&comparison.plan.set, &row.metrics) else {
            // A check without anything to measure must not pass.
            bail!("--fail-if {text:?}: there is no job or window to measure");
        };
        let holds = match condition.comparison {
            Relation::Less => share < condition.share,
            Relation::AtMost => share <= condition.share,
            Relation::More => share > condition.share,
            Relation::AtLeast => share >= condition.share,
        };
        if holds {
            failed.push(format!("{text}: {} of {} is {}", subject.name(), row.scheduler, percent(share)));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failed(failed.join("\n")).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        let condition = parse("critical<100%").unwrap();
        let of = |condition: &Condition| (condition.subject.clone(), condition.comparison, condition.share);
        assert_eq!(of(&condition), (Subject::Aim(Aim::Critical), Relation::Less, 1.0));
        let condition = parse("llf:quantum=500us: worst-task <= 0.5").unwrap();
        assert_eq!(condition.scheduler.as_deref(), Some("llf:quantum=500us"));
        assert_eq!(of(&condition), (Subject::Aim(Aim::WorstTask), Relation::AtMost, 0.5));
        let condition = parse("shield:edf:critical.2>=0.5").unwrap();
        assert_eq!(condition.scheduler.as_deref(), Some("shield:edf"));
        assert_eq!(of(&condition), (Subject::Level(2), Relation::AtLeast, 0.5));
        let condition = parse("edf:task.a:b<c < 95%").unwrap();
        assert_eq!(condition.scheduler.as_deref(), Some("edf"));
        assert_eq!(of(&condition), (Subject::Task("a:b<c".into()), Relation::Less, 0.95));
        assert_eq!(parse("task.camera<=1").unwrap().scheduler, None);
        let wrong = [
            "critical",
            "critical<",
            "critical<120%",
            "speed<1",
            "met<-1",
            "met<nan",
            "<5%",
            "",
            "critical.0<1",
            "critical.x<1",
        ];
        for wrong in wrong {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
