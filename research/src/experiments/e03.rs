//! E3: 100 and 600 tasks on several cores, and the total time spent on decisions.

use serde::Deserialize;
use temponet_sim::{Unobserved, simulate};

use crate::plots::{Curve, share_panel};
use crate::{Better, Context, Entrant, Findings, Line, ReproduceError, TimedSize, Unit};
use temponet_lab::arena::Case;
use temponet_lab::latency::Timed;
use temponet_lab::stats::percent;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    hundred: TimedSize,
    six_hundred: TimedSize,
    /// Runs of 100 tasks at loads that no scheduler but one for critical jobs comes through.
    overload: TimedSize,
    /// Loads per core of the sweep, and the runs of 100 tasks at each.
    loads: Vec<f64>,
    sweep: TimedSize,
    /// Number of runs of each size whose decisions are timed, one run after the other.
    timed: usize,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let sizes = [("100", "hundred", settings.hundred), ("600", "six_hundred", settings.six_hundred)];
    let mut shown: Vec<(String, Vec<f64>)> = Vec::new();
    for (tasks, workload, size) in sizes {
        let cases = size.lasting(protocol.cases(workload, size.size())?);
        let bed = protocol.test_bed_of(format!("{tasks} tasks"), cases, size.size()).by_critical_jobs();
        let contest = context.contest(&bed)?;
        if context.is_planning() {
            return Ok(());
        }
        findings.notes.push(format!("{tasks} tasks: temponet follows {}", context.followed(&bed.cases)));
        let entrants = context.learned_and(&[])?;
        for (prefix, who, entrant) in
            [("", contest.paper(), &entrants[0]), ("temponet_", contest.shipped(), &entrants[1])]
        {
            let Some(who) = who else { continue };
            let name = |what: &str| format!("{prefix}{what}_{tasks}_tasks");
            let line = |what: &str, of| contest.line(&name(what), who, Unit::Share, Better::Higher, of);
            let success = line("success", |run| Some(run.success));
            findings.add(success.headline_if(prefix.is_empty()));
            findings.add(contest.score_line(&name("pitmd"), who, |run| run.pitmd));
            findings.add(line("compliance", |run| run.in_time()));
            let timed = bed.cases.iter().take(settings.timed.max(1)).map(|case| deciding(entrant, case));
            findings.add(Line::lower(name("seconds"), Unit::Seconds, timed.collect::<Result<Vec<f64>, _>>()?));
        }
        for contender in &contest.contenders {
            let mean = contender.mean(|run| run.in_time()).unwrap_or(f64::NAN);
            match shown.iter_mut().find(|(name, _)| *name == contender.name) {
                Some((_, values)) => values.push(mean),
                None => shown.push((contender.name.clone(), vec![mean])),
            }
        }
    }
    let groups = sizes.map(|(tasks, ..)| format!("{tasks} tasks"));
    findings.share_bars("Jobs in time", "Means over the runs.", &groups, &shown);
    let overloaded = overloaded(context, findings)?;
    let swept = swept(context, findings)?;
    conclude(findings, &format!("{overloaded}; {swept}"));
    context.note_clock(findings);
    Ok(())
}

/// Runs 100 tasks at higher loads, at which success is not the same for all good schedulers. Returns a sentence about
/// it.
fn overloaded(context: &Context<'_>, findings: &mut Findings) -> Result<String, ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let size = settings.overload;
    let cases = size.lasting(protocol.cases("overload", size.size())?);
    let bed = protocol.test_bed_of("100 tasks, overload", cases, size.size()).by_critical_jobs();
    let contest = context.contest(&bed)?;
    for (prefix, who) in contest.learned() {
        let name = |what: &str| format!("{prefix}{what}_overload");
        let line = |what: &str, of| contest.line(&name(what), who, Unit::Share, Better::Higher, of);
        findings.add(line("success", |run| Some(run.success)));
        findings.add(contest.score_line(&name("pitmd"), who, |run| run.pitmd));
        findings.add(line("compliance", |run| run.in_time()));
    }
    let best = contest.best_classical(Better::Higher, |run| Some(run.success));
    Ok(format!(
        "at loads of 1 to 3 with 100 tasks it succeeds in {} of the runs, the scheduler that ships in {}, the best classical one in {}; they meet {} and {} \
         of the critical jobs",
        findings.percent("success_overload"),
        findings.percent("temponet_success_overload"),
        best.map_or("–".into(), |(best, mean)| format!("{} as {}", percent(mean), best.name)),
        findings.percent("pitmd_overload"),
        findings.percent("temponet_pitmd_overload")
    ))
}

fn conclude(findings: &mut Findings, overloaded: &str) {
    let best = |name: &str| {
        let found =
            findings.line(name).and_then(|line| line.references.iter().find(|found| found.column == "best classical"));
        found.map_or("–".into(), |found| format!("{} {}", found.who.as_deref().unwrap_or(""), percent(found.value)))
    };
    let beside = format!(
        "of all jobs {} and {} are in time, with the scheduler that ships {} and {} (best classical: {} and {}); {overloaded}; what the paper's \
         seconds are of is unsaid",
        findings.percent("compliance_100_tasks"),
        findings.percent("compliance_600_tasks"),
        findings.percent("temponet_compliance_100_tasks"),
        findings.percent("temponet_compliance_600_tasks"),
        best("compliance_100_tasks"),
        best("compliance_600_tasks"),
    );
    findings.judge(&beside);
}

/// Runs 100 tasks at single loads. Returns a sentence about the loads up to which schedulers succeed as the paper says.
fn swept(context: &Context<'_>, findings: &mut Findings) -> Result<String, ReproduceError> {
    let (protocol, Settings { loads, sweep, .. }) = &context.protocol::<Settings>()?;
    let claimed = findings.paper_value("success_100_tasks");
    let mut names: Vec<String> = Vec::new();
    let mut curves: Vec<Curve> = Vec::new();
    for (n, load) in loads.iter().enumerate() {
        let cases = sweep.lasting(protocol.cases_at("sweep", sweep.size(), *load, n)?);
        let bed = protocol.test_bed_of(format!("100 tasks, load {load}"), cases, sweep.size()).by_critical_jobs();
        let contest = context.contest(&bed)?;
        for (prefix, who) in contest.learned() {
            let name = format!("{prefix}success_at_load_{load}");
            findings.add(contest.line(&name, who, Unit::Share, Better::Higher, |run| Some(run.success)));
        }
        for contender in &contest.contenders {
            let success = contender.mean(|run| Some(run.success)).unwrap_or(f64::NAN);
            let place = names.iter().position(|name| *name == contender.name).unwrap_or_else(|| {
                names.push(contender.name.clone());
                curves.push(Vec::new());
                names.len() - 1
            });
            curves[place].push((*load, success));
        }
    }
    let up_to =
        |curve: &Curve| curve.iter().take_while(|(_, success)| *success >= claimed).last().map(|(load, _)| *load);
    let said = names.iter().zip(&curves).map(|(name, curve)| match up_to(curve) {
        Some(load) => format!("{name} {load}"),
        None => format!("{name} none"),
    });
    let sentence = format!(
        "greatest loads of the sweep up to which each succeeds in the paper's {} of the runs: {}",
        percent(claimed),
        said.collect::<Vec<String>>().join(", ")
    );
    let panel = share_panel("Runs without a late critical job, 100 tasks", "load per core", curves);
    findings.plot("Success over the load", "Means over the runs.", panel, &names);
    Ok(sentence)
}

/// Returns the total duration of all decisions of a run, in seconds.
fn deciding(entrant: &Entrant<'_>, case: &Case) -> Result<f64, ReproduceError> {
    let mut timed = Timed::new(entrant.scheduler()?);
    simulate(&case.set, case.seed, case.horizon, &mut timed, &mut Unobserved)?;
    Ok(timed.latencies.mean().unwrap_or(0.0) * timed.latencies.count() as f64 / 1e9)
}
