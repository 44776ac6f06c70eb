//! E4: industrial software of mixed criticality on several cores: the share of critical jobs in time, and response
//! times.

use serde::Deserialize;

use crate::contest::paired_gain;
use crate::{Better, Contender, Contest, Context, Findings, Line, ReproduceError, Size, TestBed, Unit};
use temponet_lab::stats::percent;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Runs in which late jobs are aborted.
    abort: Size,
    /// Runs in which late jobs continue. Their backlog grows with the length of the run, and with it the time of a
    /// decision.
    #[serde(rename = "continue")]
    continuing: Size,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let size = settings.abort;
    let bed = protocol.test_bed("automotive sets", "automotive", size)?.by_critical_jobs();
    let contest = context.contest(&bed)?;
    let Some(learned) = contest.paper() else { return Err(context.protocol_error("nobody has learned anything")) };
    add_lines(findings, &contest, "");
    findings.notes.push(format!("temponet follows {}", context.followed(&bed.cases)));
    for name in ["edf", "fcfs", "dios"] {
        let Some(contender) = contest.contender(name) else { continue };
        findings.add(Line::neither(format!("{name}_pitmd"), Unit::Share, contender.estimate(|run| run.pitmd)));
        let art = contender.estimate(|run| run.art_completed);
        findings.add(Line::neither(format!("{name}_art_completed"), Unit::Milliseconds, art));
    }
    for name in ["edf", "fcfs", "dios"] {
        let Some(rival) = contest.contender(name) else { continue };
        findings.add(Line::order(format!("lead_over_{name}"), learned.lead_over(rival, |run| run.pitmd)));
    }
    if let Some(dios) = contest.contender("dios") {
        let [ours, theirs] = [learned, dios].map(|of| of.values(|run| run.art_completed));
        let saved = theirs.iter().zip(&ours).map(|(theirs, ours)| 1.0 - ours / theirs).collect::<Vec<f64>>();
        findings.add(Line::share("art_saved_over_dios", saved).headline());
    }
    let series: Vec<(String, Vec<f64>)> = contest.contenders.iter().map(shares).collect();
    let groups = ["critical jobs in time".to_string(), "all jobs in time".into()];
    findings.share_bars("In time", "Means over the sets.", &groups, &series);
    let continuing = continuing(context, findings)?;
    conclude(findings, &contest, learned, &continuing);
    Ok(())
}

/// Adds the figures of the paper's TempoNet and of the scheduler that ships, under names that begin with `regime`.
fn add_lines(findings: &mut Findings, contest: &Contest, regime: &str) {
    for (prefix, who) in contest.learned() {
        let name = |what: &str| format!("{prefix}{regime}{what}");
        let ms = |what: &str, of| contest.line(&name(what), who, Unit::Milliseconds, Better::Lower, of);
        let pitmd = contest.score_line(&name("pitmd"), who, |run| run.pitmd);
        let is_headline = prefix.is_empty() && regime.is_empty();
        findings.add(pitmd.headline_if(is_headline));
        findings.add(contest.line(&name("compliance"), who, Unit::Share, Better::Higher, |run| run.in_time()));
        findings.add(ms("art_completed", |run| run.art_completed));
        findings.add(ms("art_all", |run| run.art_all));
        findings.add(ms("lateness", |run| run.lateness_p95));
    }
}

/// Runs the same kind of sets where late jobs continue, and adds the figures. Returns a sentence about them.
fn continuing(context: &Context<'_>, findings: &mut Findings) -> Result<String, ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let size = settings.continuing;
    // DASA plans over all ready jobs at each decision, which takes too long with a backlog.
    let classical: Vec<String> = protocol.schedulers.iter().filter(|name| *name != "dasa").cloned().collect();
    let bed = protocol.test_bed("automotive sets, late jobs continue", "continue", size)?.by_critical_jobs();
    let bed = TestBed { classical: &classical, ..bed };
    let contest = context.contest(&bed)?;
    add_lines(findings, &contest, "continuing_");
    for name in ["edf", "fcfs", "dios"] {
        let Some(contender) = contest.contender(name) else { continue };
        let pitmd = contender.estimate(|run| run.pitmd);
        findings.add(Line::neither(format!("{name}_continuing_pitmd"), Unit::Share, pitmd));
        let art = contender.estimate(|run| run.art_completed);
        findings.add(Line::neither(format!("{name}_continuing_art_completed"), Unit::Milliseconds, art));
    }
    let of = |name: &str| findings.percent(name);
    let best = contest.best_classical(Better::Higher, |run| run.pitmd);
    Ok(format!(
        "where late jobs continue it meets {} of the critical jobs, the scheduler that ships {}, EDF {}, FCFS {}, DIOS {}, the best classical scheduler {}",
        of("continuing_pitmd"),
        of("temponet_continuing_pitmd"),
        of("edf_continuing_pitmd"),
        of("fcfs_continuing_pitmd"),
        of("dios_continuing_pitmd"),
        best.map_or("–".into(), |(best, mean)| format!("{} as {}", percent(mean), best.name))
    ))
}

/// Returns the name of a contender with its shares of critical jobs and of all jobs in time.
fn shares(of: &Contender) -> (String, Vec<f64>) {
    let shares = [of.mean(|run| run.pitmd), of.mean(|run| run.in_time())];
    (of.name.clone(), shares.map(|share| share.unwrap_or(f64::NAN)).to_vec())
}

fn conclude(findings: &mut Findings, contest: &Contest, learned: &Contender, continuing: &str) {
    let mut beside = format!(
        "the scheduler that ships, which knows what is critical, meets {} of the critical jobs, EDF {}, FCFS {}, DIOS {}",
        findings.percent("temponet_pitmd"),
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
    beside += &format!("; {continuing}");
    beside += "; the paper's industrial traces are not published, and its response times have no unit";
    findings.judge(&beside);
}
