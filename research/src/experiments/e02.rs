//! E2: heterogeneous sets on one core that is not overloaded, where EDF misses nothing.

use crate::ablation::{Effort, Variant, VariantResult};
use crate::contest::differences;
use crate::ff_dqn;
use crate::plots::{Curve, share_panel};
use crate::{Contest, Context, Findings, Line, PAPER, RepeatedMean, ReproduceError, TestBed, Unit};
use temponet_lab::roster::UNSHIELDED;
use temponet_lab::stats::{self, percent};

/// The paper's TempoNet, trained on sets of this kind.
const OWN: &str = "temponet_of_the_paper";

/// Number of tasks in a set.
const TASKS: usize = 5;

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, effort) = &context.protocol::<Effort>()?;
    let bed = protocol.test_bed("heterogeneous sets", "sets", effort.test)?;
    let mut entrants = context.learned_and(&protocol.schedulers)?;
    entrants.extend(context.entrants(&[UNSHIELDED.to_string()]));
    let contest = context.contest_of(&bed, &entrants)?;
    for contender in contest.contenders.iter().filter(|contender| !contender.is_classical) {
        let is_paper = contender.name == PAPER;
        let prefix = if is_paper { "generalist_".into() } else { contender.name.replace('-', "_") + "_" };
        let mean = contest.score_line(&format!("{prefix}mean"), contender, |run| run.in_time());
        add_distribution(findings, &prefix, mean, &contender.shares());
    }
    findings.notes.push(format!("temponet follows {}", context.followed(&bed.cases)));
    let recipe = effort.recipe(&protocol.recipe, findings);
    let mut variants = vec![Variant::new(OWN, recipe.clone())];
    variants.extend(ff_dqn::variant(context, &recipe, TASKS, None));
    let bed = TestBed { label: ff_dqn::NAME.into(), ..bed };
    let held = context.ablation(&bed, &variants, effort.seeds())?;
    for result in &held.results {
        let shares: Vec<f64> = result.runs.iter().flat_map(|run| run.shares()).collect();
        let is_own = result.name == OWN;
        let prefix = if is_own { String::new() } else { format!("{}_", result.name) };
        let mean = held.share_line(format!("{prefix}mean"), result).headline_if(is_own);
        add_distribution(findings, &prefix, mean, &shares);
    }
    let overload = context.in_overload(findings, &held, effort.test)?;
    for (prefix, held) in [("", &held), ("overload_", &overload)] {
        if let Some((own, ff_dqn)) = held.pair(OWN, ff_dqn::NAME) {
            // The lead differs from set to set and from training to training.
            let by_set = RepeatedMean::of(&differences(&by_set(own), &by_set(ff_dqn)));
            let lead = by_set.with_trainings(&differences(&own.shares(), &ff_dqn.shares()));
            findings.add(Line::order(format!("{prefix}lead_over_ff_dqn"), lead));
        }
    }
    held.add_convergence(findings);
    draw(findings, &bed, &contest);
    let edf = contest.share("edf").unwrap_or(f64::NAN);
    let beside = format!(
        "on one core up to a load of 1 everything can be met, EDF meets {}, so that the paper's best figure is {} points below what its table leaves out; in overload {}",
        percent(edf),
        stats::points(edf - findings.paper_value("mean")),
        overload.baselines_sentence()
    );
    findings.judge(&beside);
    Ok(())
}

/// Returns the share of jobs in time of each set, averaged over the trainings.
fn by_set(result: &VariantResult) -> Vec<f64> {
    let shares: Vec<Vec<f64>> = result.runs.iter().map(|run| run.shares()).collect();
    let sets = shares.first().map_or(0, Vec::len);
    (0..sets).map(|set| stats::mean(&shares.iter().map(|shares| shares[set]).collect::<Vec<f64>>())).collect()
}

/// Adds the mean, the median, the spread and the extremes of shares.
fn add_distribution(findings: &mut Findings, prefix: &str, mean: Line, shares: &[f64]) {
    let part = |share: f64| stats::quantile(shares, share).unwrap_or(f64::NAN);
    findings.add(mean);
    findings.add(Line::share(format!("{prefix}median"), part(0.5)));
    findings.add(Line::lower(format!("{prefix}deviation"), Unit::Share, stats::deviation(shares)));
    findings.add(Line::share(format!("{prefix}least"), part(0.0)));
    findings.add(Line::share(format!("{prefix}most"), part(1.0)));
}

/// Draws the share of jobs in time over the utilization of each set.
fn draw(findings: &mut Findings, bed: &TestBed<'_>, contest: &Contest) {
    let learned = contest.contenders.iter().filter(|contender| !contender.is_classical).map(|one| one.name.clone());
    let shown: Vec<String> = learned.chain(["edf", "rm", "fcfs"].map(String::from)).collect();
    let utilizations = || bed.cases.iter().map(|case| case.set.mean_utilization());
    let curve = |name: &String| -> Curve { utilizations().zip(contest.shares(name)).collect() };
    let panel = share_panel("In time, set by set", "utilization", shown.iter().map(curve).collect());
    let caption = "EDF is optimal here: whoever is below it has a defect.";
    findings.plot("Compliance over utilization", caption, panel, &shown);
}
