//! E4: industrial software of mixed criticality on several cores: the share of critical jobs in time, and response times.

use crate::{Better, Context, Findings, Line, ReproduceError, Size, Unit};
use temponet_lab::stats::{paired_difference, percent, points};
use temponet_page::charts::bars;
use temponet_task::Aim;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Size>()?;
    let size = *protocol.settings(context.mode);
    let cases = protocol.cases("automotive", size)?;
    let entrants = context.learned_and(&protocol.schedulers);
    let contest = context.contest("automotive sets", &cases, &entrants, Some((Aim::Critical, size.oracle_seconds)))?;
    let Some(learned) = contest.learned() else { return Err(context.protocol_error("nobody has learned anything")) };
    findings.add(contest.score_line("pitmd", learned, |run| run.pitmd).headline());
    findings.add(contest.line("compliance", learned, Unit::Share, Better::Higher, |run| run.in_time()));
    findings.add(contest.line("art_completed", learned, Unit::Milliseconds, Better::Lower, |run| run.art_completed));
    findings.add(contest.line("art_all", learned, Unit::Milliseconds, Better::Lower, |run| run.art_all));
    for name in ["edf", "fcfs", "dios"] {
        let Some(contender) = contest.of(name) else { continue };
        findings.add(Line::new(
            format!("{name}_pitmd"),
            Unit::Share,
            Better::Neither,
            contender.estimate(|run| run.pitmd),
        ));
        let art = contender.estimate(|run| run.art_completed);
        findings.add(Line::new(format!("{name}_art_completed"), Unit::Milliseconds, Better::Neither, art));
    }
    let of = |name: &str| findings.line(name).map_or("–".into(), |line| percent(line.ours.mean));
    let mut beside = format!(
        "EDF meets {} of the critical jobs, FCFS {}, DIOS {}",
        of("edf_pitmd"),
        of("fcfs_pitmd"),
        of("dios_pitmd")
    );
    if let Some((best, _)) = contest.best_classical(Better::Higher, |run| run.pitmd) {
        let (difference, half) = paired_difference(&learned.values(|run| run.pitmd), &best.values(|run| run.pitmd));
        let half = half.map(|half| format!(" ± {}", points(half))).unwrap_or_default();
        beside += &format!(
            "; to the best classical scheduler, {}, it is {}{half} points, set by set",
            best.name,
            points(difference)
        );
    }
    let all = |who: &str| contest.of(who).and_then(|of| of.mean(|run| run.in_time())).map_or("–".into(), percent);
    beside += &format!("; of all jobs it meets {}, EDF {}", of("compliance"), all("edf"));
    beside += "; the paper's industrial traces are not published, and its response times have no unit";
    let series: Vec<(String, Vec<f64>)> = contest
        .contenders
        .iter()
        .map(|of| {
            (
                of.name.clone(),
                [of.mean(|run| run.pitmd), of.mean(|run| run.in_time())]
                    .map(|share| share.unwrap_or(f64::NAN))
                    .to_vec(),
            )
        })
        .collect();
    let groups = ["critical jobs in time".to_string(), "all jobs in time".into()];
    findings.picture(
        "In time",
        "Means over the sets.",
        bars(&groups, &series, 1.0, |share| format!("{:.0}", 100.0 * share)),
    );
    findings.judge(&beside);
    Ok(())
}
