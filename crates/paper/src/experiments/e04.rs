//! E4: industrial software of mixed criticality on several cores: the share of critical jobs in time, and response times.

use crate::contest::paired_gain;
use crate::{Better, Contender, Contest, Context, Findings, Line, ReproduceError, Size, Unit};
use temponet_lab::stats::percent;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Size>()?;
    let size = *protocol.settings(context.mode);
    let bed = protocol.test_bed("automotive sets", "automotive", size)?.by_critical_jobs();
    let contest = context.contest(&bed)?;
    let Some(learned) = contest.paper() else { return Err(context.protocol_error("nobody has learned anything")) };
    findings.add(contest.score_line("pitmd", learned, |run| run.pitmd).headline());
    findings.add(contest.line("compliance", learned, Unit::Share, Better::Higher, |run| run.in_time()));
    findings.add(contest.line("art_completed", learned, Unit::Milliseconds, Better::Lower, |run| run.art_completed));
    findings.add(contest.line("art_all", learned, Unit::Milliseconds, Better::Lower, |run| run.art_all));
    for name in ["edf", "fcfs", "dios"] {
        let Some(contender) = contest.contender(name) else { continue };
        findings.add(Line::neither(format!("{name}_pitmd"), Unit::Share, contender.estimate(|run| run.pitmd)));
        let art = contender.estimate(|run| run.art_completed);
        findings.add(Line::neither(format!("{name}_art_completed"), Unit::Milliseconds, art));
    }
    let series: Vec<(String, Vec<f64>)> = contest.contenders.iter().map(shares).collect();
    let groups = ["critical jobs in time".to_string(), "all jobs in time".into()];
    findings.share_bars("In time", "Means over the sets.", &groups, &series);
    conclude(findings, &contest, learned);
    Ok(())
}

/// Returns the name of a contender with its shares of critical jobs and of all jobs in time.
fn shares(of: &Contender) -> (String, Vec<f64>) {
    let shares = [of.mean(|run| run.pitmd), of.mean(|run| run.in_time())];
    (of.name.clone(), shares.map(|share| share.unwrap_or(f64::NAN)).to_vec())
}

fn conclude(findings: &mut Findings, contest: &Contest, learned: &Contender) {
    let mut beside = format!(
        "EDF meets {} of the critical jobs, FCFS {}, DIOS {}",
        findings.percent("edf_pitmd"),
        findings.percent("fcfs_pitmd"),
        findings.percent("dios_pitmd")
    );
    if let Some((best, _)) = contest.best_classical(Better::Higher, |run| run.pitmd) {
        beside += &format!(
            "; to the best classical scheduler, {}, it is {} points, set by set",
            best.name,
            paired_gain(&learned.values(|run| run.pitmd), &best.values(|run| run.pitmd))
        );
    }
    let edf = contest.share("edf").map_or("–".into(), percent);
    beside += &format!("; of all jobs it meets {}, EDF {edf}", findings.percent("compliance"));
    beside += "; the paper's industrial traces are not published, and its response times have no unit";
    findings.judge(&beside);
}
