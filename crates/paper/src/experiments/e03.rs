//! E3: a hundred and six hundred tasks on several cores, and how long deciding takes in all.

use serde::Deserialize;
use temponet_sim::{Unobserved, simulate};
use temponet_task::Aim;

use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Size, Unit};
use temponet_lab::arena::Case;
use temponet_lab::comparison::CompareError;
use temponet_lab::measure::latency::Timed;
use temponet_lab::roster::SHIELDED;
use temponet_lab::stats::percent;
use temponet_page::charts::bars;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    hundred: Size,
    six_hundred: Size,
    /// Runs of each whose decisions are timed, one after the other.
    timed: usize,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let sizes = [("100", "hundred", settings.hundred), ("600", "six_hundred", settings.six_hundred)];
    let mut shown: Vec<(String, Vec<f64>)> = Vec::new();
    for (tasks, workload, size) in sizes {
        let cases = protocol.cases(workload, size)?;
        let entrants = context.learned_and(&protocol.schedulers);
        let what = format!("{tasks} tasks");
        let contest = context.contest(&what, &cases, &entrants, Some((Aim::Critical, size.oracle_seconds)))?;
        let Some(learned) = contest.learned() else { continue };
        let success = contest
            .line(&format!("success_{tasks}_tasks"), learned, Unit::Share, Better::Higher, |run| Some(run.success));
        findings.add(success.headline());
        findings.add(contest.score_line(&format!("pitmd_{tasks}_tasks"), learned, |run| run.pitmd));
        let compliance = format!("compliance_{tasks}_tasks");
        findings.add(contest.line(&compliance, learned, Unit::Share, Better::Higher, |run| run.in_time()));
        let left = Line::new(
            format!("fallbacks_{tasks}_tasks"),
            Unit::Share,
            Better::Neither,
            learned.estimate(|run| Some(run.fallbacks)),
        );
        findings.add(left);
        let seconds: Vec<f64> =
            cases.iter().take(settings.timed.max(1)).map(|case| deciding(context, case)).collect::<Result<_, _>>()?;
        findings.add(Line::new(format!("seconds_{tasks}_tasks"), Unit::Seconds, Better::Lower, Estimate::of(&seconds)));
        for contender in &contest.contenders {
            let mean = contender.mean(|run| run.in_time()).unwrap_or(f64::NAN);
            match shown.iter_mut().find(|(name, _)| *name == contender.name) {
                Some((_, values)) => values.push(mean),
                None => shown.push((contender.name.clone(), vec![mean])),
            }
        }
    }
    let groups = sizes.map(|(tasks, ..)| format!("{tasks} tasks"));
    findings.picture(
        "Jobs in time",
        "Means over the runs.",
        bars(&groups, &shown, 1.0, |share| format!("{:.0}", 100.0 * share)),
    );
    let share = |name: &str| findings.line(name).map_or("–".into(), |line| percent(line.ours.mean));
    let best = |name: &str| {
        let found =
            findings.line(name).and_then(|line| line.references.iter().find(|found| found.column == "best classical"));
        found.map_or("–".into(), |found| format!("{} {}", found.who.as_deref().unwrap_or(""), percent(found.value)))
    };
    let beside = format!(
        "of all jobs {} and {} are in time (best classical: {} and {}); with six hundred tasks {} of the decisions lie beyond what the model has \
         learned and are its fallback's; what the paper's seconds are of is unsaid",
        share("compliance_100_tasks"),
        share("compliance_600_tasks"),
        best("compliance_100_tasks"),
        best("compliance_600_tasks"),
        share("fallbacks_600_tasks")
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}

/// Seconds that all decisions of a run take together.
fn deciding(context: &Context<'_>, case: &Case) -> Result<f64, ReproduceError> {
    let mut timed = Timed::new(context.roster.build(SHIELDED).map_err(CompareError::from)?);
    simulate(&case.set, case.seed, case.horizon, &mut timed, &mut Unobserved)?;
    Ok(timed.latencies.mean().unwrap_or(0.0) * timed.latencies.count() as f64 / 1e9)
}
