//! E2: heterogeneous sets on one core that is not overloaded, where EDF misses nothing.

use crate::ablation::{Effort, span};
use crate::ff_dqn;
use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Unit};
use temponet_lab::roster::{SHIELDED, UNSHIELDED};
use temponet_lab::stats::{self, percent};
use temponet_page::plot::{Panel, svg};
use temponet_task::Aim;

/// Tasks of a set.
const TASKS: usize = 5;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Effort>()?;
    let effort = protocol.settings(context.mode);
    let size = effort.test;
    let cases = protocol.cases("sets", size)?;
    let learned = [SHIELDED, UNSHIELDED].map(String::from);
    let names: Vec<String> = learned.iter().chain(&protocol.schedulers).cloned().collect();
    let entrants = context.entrants(&names);
    let contest = context.contest("heterogeneous sets", &cases, &entrants, Some((Aim::Met, size.oracle_seconds)))?;
    for (prefix, name) in [("", SHIELDED), ("unshielded_", UNSHIELDED)] {
        let label = context.roster.label(name);
        let Some(contender) = contest.of(&label) else { continue };
        let shares = contender.values(|run| run.in_time());
        let part = |share: f64| Estimate::single(stats::quantile(&shares, share).unwrap_or(f64::NAN));
        findings.add(contest.score_line(&format!("{prefix}mean"), contender, |run| run.in_time()).headline());
        findings.add(Line::share(format!("{prefix}median"), part(0.5)));
        let spread = Estimate::single(stats::deviation(&shares));
        findings.add(Line::new(format!("{prefix}deviation"), Unit::Share, Better::Lower, spread));
        findings.add(Line::share(format!("{prefix}least"), part(0.0)));
        findings.add(Line::share(format!("{prefix}most"), part(1.0)));
    }
    let baseline = ff_dqn::variant(&effort.recipe(&protocol.recipe), TASKS, None);
    let (seeds, seconds) = (effort.seeds, size.oracle_seconds);
    let held = context.ablation(ff_dqn::NAME, &[baseline], seeds, &cases, &protocol.schedulers, seconds)?;
    for tried in &held.results {
        let shares: Vec<f64> = tried.runs.iter().flat_map(|run| run.values(|run| run.in_time())).collect();
        let part = |share: f64| Estimate::single(stats::quantile(&shares, share).unwrap_or(f64::NAN));
        let name = &tried.name;
        findings.add(held.share_line(format!("{name}_mean"), tried));
        findings.add(Line::share(format!("{name}_median"), part(0.5)));
        let spread = Estimate::single(stats::deviation(&shares));
        findings.add(Line::new(format!("{name}_deviation"), Unit::Share, Better::Lower, spread));
        findings.add(Line::share(format!("{name}_least"), part(0.0)));
        findings.add(Line::share(format!("{name}_most"), part(1.0)));
    }
    held.add_convergence(findings, &[ff_dqn::NAME]);
    let curve = |name: &String| -> Vec<(f64, f64)> {
        let shares =
            contest.of(&context.roster.label(name)).map(|of| of.values(|run| run.in_time())).unwrap_or_default();
        cases.iter().map(|case| case.set.mean_utilization()).zip(shares).collect()
    };
    let shown: Vec<String> = learned.iter().cloned().chain(["edf", "rm", "fcfs"].map(String::from)).collect();
    let curves: Vec<Vec<(f64, f64)>> = shown.iter().map(curve).collect();
    let panel = Panel {
        title: "In time, set by set".into(),
        x_label: "utilisation",
        y: span(curves.iter().flatten().map(|(_, share)| *share)),
        curves,
        marks: Vec::new(),
        is_log: false,
    };
    let caption = "EDF is optimal here: whoever is below it has a defect.";
    findings.picture("Compliance over utilisation", caption, svg(&[panel], 1, &shown));
    let edf = contest.of("edf").and_then(|edf| edf.mean(|run| run.in_time())).unwrap_or(f64::NAN);
    let beside = format!(
        "on one core up to a load of 1 everything can be met, EDF meets {}, so that the paper's best figure is {} points below what its table leaves out",
        percent(edf),
        stats::points(edf - findings.paper.get("mean").copied().unwrap_or(f64::NAN)),
    );
    findings.judge(&beside);
    Ok(())
}
