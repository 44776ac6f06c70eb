//! E1: the standard set, in three variants, because the paper does not state execution times.

use super::readings;
use crate::ablation::{Effort, Variant};
use crate::ff_dqn;
use crate::plots::share_range;
use crate::{
    Baselines, Contender, Contest, Context, Findings, FindingsTable, Line, Protocol, ReproduceError, Unit, Verdict,
};
use temponet_lab::arena::Case;
use temponet_lab::stats::percent;

/// Names of the variants, in the order of the protocol's sets.
const VARIANTS: [&str; 3] = ["standard_112", "standard_125", "standard_145"];
/// Share of jobs in time that the paper reports for both EDF and RM, and the difference that counts as equal.
const CLASSICAL: (f64, f64) = (0.1167, 0.01);

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, effort) = &context.protocol::<Effort>()?;
    let mut is_found = false;
    let (mut ranges, mut other) = (Vec::new(), String::new());
    for rule in ["abort", "continue"] {
        let bed = protocol.test_bed(rule, rule, effort.test)?;
        let contest = context.contest_of(&bed, &context.learned_and(bed.classical)?)?;
        let (edf, rm) = (contest.shares("edf"), contest.shares("rm"));
        let is_close = |share: &f64| (share - CLASSICAL.0).abs() <= CLASSICAL.1;
        is_found |= edf.iter().zip(&rm).any(|(edf, rm)| is_close(edf) && is_close(rm));
        ranges.push(format!("EDF meets {} and RM {} if late jobs {rule}", from_to(edf), from_to(rm)));
        findings.tables.push(table(rule, &contest));
        let sets = bed.cases.iter().zip(VARIANTS);
        let deciders: Vec<String> =
            sets.map(|(case, name)| format!("{} on {name}", context.followed(std::slice::from_ref(case)))).collect();
        findings.notes.push(format!("late jobs {rule}: temponet follows {}", deciders.join(", ")));
        if rule == "abort" {
            add_lines(findings, &contest);
            add_trained(context, findings, (protocol, effort), &bed.cases)?;
            if !context.reading.continues() {
                other = readings::add(context, findings, &bed.cases, &VARIANTS, CLASSICAL.0)? + "; ";
            }
        }
    }
    let met = |prefix: &str| {
        let lines = VARIANTS.iter().filter_map(|name| findings.line(&format!("{prefix}{name}")));
        lines.map(|line| line.shown()).collect::<Vec<String>>().join(", ")
    };
    let ours = format!(
        "of the three variants the paper's TempoNet meets {} where it is trained on them and {} as a generalist, against the 79.00% that it reports, and the scheduler \
         that ships {}",
        met(""),
        met("generalist_"),
        met("temponet_")
    );
    if is_found {
        findings.judge(&ranges.join("; "));
    } else {
        let why = format!(
            "no variant under either miss rule gives the paper's EDF = RM = {}: {}; {other}{ours}",
            percent(CLASSICAL.0),
            ranges.join("; ")
        );
        findings.conclude(Verdict::Impossible, &why);
    }
    Ok(())
}

fn from_to(shares: Vec<f64>) -> String {
    let (least, greatest) = share_range(shares.into_iter());
    format!("{} to {}", percent(least), percent(greatest))
}

fn add_lines(findings: &mut Findings, contest: &Contest) {
    let (Some(paper), Some(shipped)) = (contest.paper(), contest.shipped()) else { return };
    for (at, variant) in VARIANTS.into_iter().enumerate() {
        let line = |name: String, who: &Contender| {
            Line::share(name, who.runs[at].compliance).beside_baselines(&baselines(contest, at))
        };
        findings.add(line(format!("generalist_{variant}"), paper));
        findings.add(line(format!("temponet_{variant}"), shipped));
        for name in ["edf", "rm"] {
            if let Some(share) = contest.shares(name).get(at) {
                findings.add(Line::neither(format!("{name}_{variant}"), Unit::Share, *share));
            }
        }
    }
}

/// Returns the baselines of a single run.
fn baselines(contest: &Contest, run: usize) -> Baselines {
    let classical = contest.contenders.iter().filter(|contender| contender.is_classical);
    let best = classical.max_by(|a, b| a.runs[run].compliance.total_cmp(&b.runs[run].compliance));
    let optimum = contest.possible[run];
    Baselines {
        edf: contest.shares("edf").get(run).copied(),
        best: best.map(|best| best.runs[run].compliance),
        best_name: best.map(|best| best.name.clone()),
        optimum: Some((optimum.upper, optimum.is_exact())),
    }
}

/// Trains the paper's TempoNet and a feed-forward DQN on each variant, and adds their figures.
fn add_trained<'a>(
    context: &Context<'_>,
    findings: &mut Findings,
    (protocol, effort): (&Protocol, &Effort),
    cases: &'a [Case],
) -> Result<(), ReproduceError> {
    let recipe = effort.recipe(&protocol.recipe, findings);
    let both = |(name, case): (&'static str, &'a Case)| {
        let own = Variant { set: Some(&case.set), ..Variant::new(name, recipe.clone()) };
        let tasks = case.set.tasks().len();
        let ff_dqn = ff_dqn::variant(context, &recipe, tasks, Some(&case.set));
        let named = ff_dqn.map(|ff_dqn| Variant { name: format!("{}_{name}", ff_dqn::NAME), ..ff_dqn });
        [own].into_iter().chain(named)
    };
    let variants: Vec<Variant<'_>> = VARIANTS.into_iter().zip(cases).flat_map(both).collect();
    let each = variants.len() / VARIANTS.len();
    let mut trained =
        variants.iter().map(|variant| variant.name.clone()).zip(context.train_variants(&variants, effort.seeds)?);
    for case in cases {
        let bed = protocol.test_bed_of(ff_dqn::NAME, vec![case.clone()], effort.test);
        let held = context.contest_models(&bed, trained.by_ref().take(each).collect())?;
        for result in &held.results {
            let is_headline = VARIANTS.contains(&result.name.as_str());
            findings.add(held.share_line(&result.name, result).headline_if(is_headline));
        }
    }
    Ok(())
}

fn table(rule: &str, contest: &Contest) -> FindingsTable {
    let header = ["scheduler"].into_iter().chain(VARIANTS).map(String::from).collect();
    let row = |name: &str, shares: Vec<f64>| -> Vec<String> {
        [name.to_string()].into_iter().chain(shares.into_iter().map(percent)).collect()
    };
    let mut rows = vec![row("clairvoyant, at most", contest.possible.iter().map(|range| range.upper).collect())];
    rows.extend(contest.contenders.iter().map(|of| row(&of.name, of.shares())));
    FindingsTable { title: format!("In time if late jobs {rule}"), header, rows }
}
