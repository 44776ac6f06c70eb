//! E9: against SRPT, whose mean response time over the same jobs cannot be beaten.

use temponet_sim::Workload;

use crate::{Better, Contest, Context, Findings, FindingsTable, Line, ReproduceError, Size, Unit, Verdict};
use temponet_lab::arena::Case;
use temponet_lab::stats::{mean, paired_t_test, percent};

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, size) = context.protocol::<Size>()?;
    for rule in ["abort", "continue"] {
        let bed = protocol.test_bed(format!("against SRPT, late jobs {rule}"), rule, size)?;
        let contest = context.contest(&bed)?;
        findings.tables.push(table(rule, &contest));
        if rule == "abort" {
            add_lines(findings, &contest, &bed.cases);
        }
    }
    let of = |name: &str| findings.value(name);
    let claimed = findings.paper_value("art_completed");
    let (least, art, art_all) = (of("execution"), of("art_completed"), of("art_all"));
    let (srpt, srpt_all) = (of("srpt_art_completed"), of("srpt_art_all"));
    let figures = format!(
        "the paper's TempoNet meets {} against SRPT's {} (the paper: 87.00% and 68.30%) and the one that ships {}; its mean response times are \
         {art:.1} against SRPT's {srpt:.1} ms over completed jobs and {art_all:.1} against {srpt_all:.1} ms over all",
        percent(of("compliance")),
        percent(of("srpt_compliance")),
        percent(of("temponet_compliance")),
    );
    if claimed < least {
        let why = format!(
            "jobs of 10 to 50 ms execute for {least:.1} ms on average, and none responds faster than it executes, yet the paper has {claimed:.1} ms; {figures}"
        );
        findings.conclude(Verdict::Impossible, &why);
    } else {
        findings.judge(&figures);
    }
    Ok(())
}

fn add_lines(findings: &mut Findings, contest: &Contest, cases: &[Case]) {
    let (Some(learned), Some(srpt)) = (contest.paper(), contest.contender("srpt")) else { return };
    for (prefix, who) in contest.learned() {
        let name = |figure: &str| format!("{prefix}{figure}");
        let response = |figure: &str, of| contest.line(&name(figure), who, Unit::Milliseconds, Better::Lower, of);
        let met = contest.score_line(&name("compliance"), who, |run| run.in_time());
        let completed = response("art_completed", |run| run.art_completed);
        let is_paper = prefix.is_empty();
        findings.add(met.headline_if(is_paper));
        findings.add(completed.headline_if(is_paper));
        findings.add(response("art_all", |run| run.art_all));
    }
    findings.add(Line::neither("srpt_compliance", Unit::Share, srpt.shares()));
    let ms = |name: &str, values: Vec<f64>| Line::neither(name, Unit::Milliseconds, values);
    findings.add(ms("srpt_art_completed", srpt.values(|run| run.art_completed)));
    findings.add(ms("srpt_art_all", srpt.values(|run| run.art_all)));
    let execution = |case: &Case| {
        let jobs = Workload::counted(&case.set, case.seed, case.horizon);
        mean(&jobs.iter().map(|job| job.execution.0 as f64 / 1e6).collect::<Vec<f64>>())
    };
    findings.add(ms("execution", cases.iter().map(execution).collect()));
    if let Some(test) = paired_t_test(&learned.values(|run| run.art_all), &srpt.values(|run| run.art_all)) {
        findings.notes.push(format!(
            "mean time over all jobs, set by set against SRPT: t = {:.2}, p = {:.2e} (paired two-sided t-test)",
            test.statistic, test.p
        ));
    }
}

/// Returns the table of all schedulers under a miss rule.
fn table(rule: &str, contest: &Contest) -> FindingsTable {
    let ms = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.2} ms"));
    let row = |of: &crate::Contender| {
        let share = of.mean(|run| run.in_time()).map_or("–".into(), percent);
        vec![of.name.clone(), share, ms(of.mean(|run| run.art_completed)), ms(of.mean(|run| run.art_all))]
    };
    let header = ["scheduler", "in time", "response, completed", "response, all"];
    FindingsTable::new(format!("Late jobs {rule}"), &header, contest.contenders.iter().map(row).collect())
}
