//! `--fail-if 'critical<100%'`: a comparison as a check in a build, which exits with code 1 if the condition holds.

use anyhow::{Result, bail};
use temponet_lab::arena::scenario::measured;
use temponet_lab::comparison::Comparison;
use temponet_lab::stats::percent;
use temponet_task::Aim;

use temponet_wording::did_you_mean;

use crate::Failed;
use crate::setup::aim;

/// A condition that makes the check fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// Scheduler that the condition applies to; none: the best one.
    scheduler: Option<String>,
    aim: Aim,
    comparison: Relation,
    share: f64,
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

/// Parses `[SCHEDULER:]MEASURE<SHARE`.
pub fn parse(text: &str) -> Result<Condition, String> {
    let found = RELATIONS.iter().find_map(|(sign, relation)| Some((text.split_once(sign)?, *relation)));
    let ((left, right), comparison) = found.ok_or("has none of <, <=, >, >=, as in 'critical<100%'")?;
    // The options of a scheduler may contain colons; the measure does not.
    let (scheduler, measure) = match left.rsplit_once(':') {
        Some((scheduler, measure)) => (Some(scheduler.trim().to_string()), measure),
        None => (None, left),
    };
    let measure = measure.trim();
    let aim = aim(measure).map_err(|why| format!("{measure:?} {why}"))?;
    let number = right.trim();
    let (digits, scale) = number.strip_suffix('%').map_or((number, 1.0), |digits| (digits.trim(), 100.0));
    let share = digits.parse::<f64>().ok().map(|value| value / scale).filter(|share| (0.0..=1.0).contains(share));
    let share = share.ok_or_else(|| format!("{number:?} is no share from 0 to 1, or from 0% to 100%"))?;
    Ok(Condition { text: text.into(), scheduler, aim, comparison, share })
}

/// Rejects conditions on schedulers that will not run.
pub fn refuse_unknown(conditions: &[Condition], schedulers: &[String]) -> Result<()> {
    for condition in conditions {
        if let Some(name) = condition.scheduler.as_ref().filter(|name| !schedulers.contains(name)) {
            let meant = did_you_mean(name, schedulers.iter().map(String::as_str));
            bail!("--fail-if {:?}: there will be no result of {name}{meant}", condition.text);
        }
    }
    Ok(())
}

/// Fails if a condition holds.
pub fn check(conditions: &[Condition], comparison: &Comparison) -> Result<()> {
    for condition in conditions {
        let row = match &condition.scheduler {
            Some(name) => comparison.row(name),
            None => comparison.rows.first(),
        };
        let Some(row) = row else {
            let name = condition.scheduler.as_deref().unwrap_or("any scheduler");
            bail!("--fail-if {:?}: there is no result of {name}", condition.text);
        };
        let Some(share) = measured(condition.aim, &row.metrics) else {
            // A check without anything to measure must not pass.
            bail!("--fail-if {:?}: there is no job or window to measure", condition.text);
        };
        let holds = match condition.comparison {
            Relation::Less => share < condition.share,
            Relation::AtMost => share <= condition.share,
            Relation::More => share > condition.share,
            Relation::AtLeast => share >= condition.share,
        };
        if holds {
            let (name, aim) = (&row.scheduler, condition.aim.name());
            return Err(Failed(format!("{}: {aim} of {name} is {}", condition.text, percent(share))).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        let condition = parse("critical<100%").unwrap();
        assert_eq!((condition.aim, condition.comparison, condition.share), (Aim::Critical, Relation::Less, 1.0));
        let condition = parse("llf:quantum=500us: worst-task <= 0.5").unwrap();
        assert_eq!(condition.scheduler.as_deref(), Some("llf:quantum=500us"));
        assert_eq!((condition.aim, condition.comparison, condition.share), (Aim::WorstTask, Relation::AtMost, 0.5));
        for wrong in ["critical", "critical<", "critical<120%", "speed<1", "met<-1", "met<nan", "<5%", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
