//! E9: against SRPT, whose mean response time nobody can beat over the same jobs.

use temponet_sim::Workload;
use temponet_task::Aim;

use crate::{Better, Contest, Context, Estimate, Findings, FindingsTable, Line, ReproduceError, Size, Unit, Verdict};
use temponet_lab::arena::Case;
use temponet_lab::stats::{mean, paired_t_test, percent};

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Size>()?;
    let size = *protocol.settings(context.mode);
    for rule in ["abort", "continue"] {
        let cases = protocol.cases(rule, size)?;
        let entrants = context.learned_and(&protocol.schedulers);
        let what = format!("against SRPT, late jobs {rule}");
        let contest = context.contest(&what, &cases, &entrants, Some((Aim::Met, size.oracle_seconds)))?;
        findings.tables.push(table(rule, &contest));
        if rule == "abort" {
            add_lines(findings, &contest, &cases);
        }
    }
    let of = |name: &str| findings.line(name).map_or(f64::NAN, |line| line.ours.mean);
    let claimed = findings.paper.get("art_completed").copied().unwrap_or(f64::NAN);
    let (least, art, art_all) = (of("execution"), of("art_completed"), of("art_all"));
    let (srpt, srpt_all) = (of("srpt_art_completed"), of("srpt_art_all"));
    let figures = format!(
        "ours meets {} against SRPT's {} (the paper: 87.00% and 68.30%), with mean response times of {art:.1} against {srpt:.1} ms over completed jobs \
         and {art_all:.1} against {srpt_all:.1} ms over all",
        percent(of("compliance")),
        percent(of("srpt_compliance")),
    );
    if claimed < least {
        let why = format!(
            "jobs of 10 to 50 ms execute for {least:.1} ms on average, and none responds faster than it executes, yet the paper has {claimed:.1} ms; {figures}"
        );
        findings.conclude(Verdict::NotReproducible, &why);
    } else {
        findings.judge(&figures);
    }
    Ok(())
}

fn add_lines(findings: &mut Findings, contest: &Contest, cases: &[Case]) {
    let (Some(learned), Some(srpt)) = (contest.learned(), contest.of("srpt")) else { return };
    findings.add(contest.score_line("compliance", learned, |run| run.in_time()).headline());
    findings.add(
        contest.line("art_completed", learned, Unit::Milliseconds, Better::Lower, |run| run.art_completed).headline(),
    );
    findings.add(contest.line("art_all", learned, Unit::Milliseconds, Better::Lower, |run| run.art_all));
    findings.add(Line::new("srpt_compliance", Unit::Share, Better::Neither, srpt.estimate(|run| run.in_time())));
    let ms = |name: &str, estimate| Line::new(name, Unit::Milliseconds, Better::Neither, estimate);
    findings.add(ms("srpt_art_completed", srpt.estimate(|run| run.art_completed)));
    findings.add(ms("srpt_art_all", srpt.estimate(|run| run.art_all)));
    let execution = |case: &Case| {
        let jobs = Workload::counted(&case.set, case.seed, case.horizon);
        mean(&jobs.iter().map(|job| job.execution.0 as f64 / 1e6).collect::<Vec<f64>>())
    };
    findings.add(ms("execution", Estimate::of(&cases.iter().map(execution).collect::<Vec<f64>>())));
    if let Some(test) = paired_t_test(&learned.values(|run| run.art_all), &srpt.values(|run| run.art_all)) {
        findings.notes.push(format!(
            "mean time over all jobs, set by set against SRPT: t = {:.2}, p = {:.2e} (paired two-sided t-test)",
            test.statistic, test.p
        ));
    }
}

fn table(rule: &str, contest: &Contest) -> FindingsTable {
    let header = ["scheduler", "in time", "response, completed", "response, all"].map(String::from).to_vec();
    let ms = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.2} ms"));
    let row = |of: &crate::Contender| {
        let share = of.mean(|run| run.in_time()).map_or("–".into(), percent);
        vec![of.name.clone(), share, ms(of.mean(|run| run.art_completed)), ms(of.mean(|run| run.art_all))]
    };
    FindingsTable { title: format!("Late jobs {rule}"), header, rows: contest.contenders.iter().map(row).collect() }
}
