//! E1: the standard set, in three variants, since the paper gives no execution times.

use crate::ablation::{Effort, Variant};
use crate::ff_dqn;
use crate::{
    Better, Contest, Context, Estimate, Findings, FindingsTable, Line, Protocol, ReproduceError, Unit, Verdict,
};
use temponet_lab::arena::Case;
use temponet_lab::stats::percent;
use temponet_task::Aim;

/// The variants, in the order of the protocol's sets.
const VARIANTS: [&str; 3] = ["standard_112", "standard_125", "standard_145"];
/// What the paper says that EDF and RM both meet, and how close to it counts as the same.
const CLASSICAL: (f64, f64) = (0.1167, 0.01);

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Effort>()?;
    let effort = protocol.settings(context.mode);
    let size = effort.test;
    let entrants = context.learned_and(&protocol.schedulers);
    let mut is_found = false;
    let mut ranges = Vec::new();
    for rule in ["abort", "continue"] {
        let cases = protocol.cases(rule, size)?;
        let contest = context.contest(rule, &cases, &entrants, Some((Aim::Met, size.oracle_seconds)))?;
        let of =
            |name: &str| contest.of(name).map(|contender| contender.values(|run| run.in_time())).unwrap_or_default();
        let (edf, rm) = (of("edf"), of("rm"));
        let is_close = |share: &f64| (share - CLASSICAL.0).abs() <= CLASSICAL.1;
        is_found |= edf.iter().zip(&rm).any(|(edf, rm)| is_close(edf) && is_close(rm));
        ranges.push(format!("EDF meets {} and RM {} if late jobs {rule}", from_to(&edf), from_to(&rm)));
        findings.tables.push(table(rule, &contest));
        if rule == "abort" {
            add_lines(findings, &contest);
            add_ff_dqn(context, findings, &protocol, &cases)?;
        }
    }
    let ours: Vec<String> = VARIANTS.iter().filter_map(|name| Some(findings.line(name)?.shown())).collect();
    let ours = format!("the learned scheduler meets {} of the three variants, the paper's 79.00%", ours.join(", "));
    if is_found {
        findings.judge(&ranges.join("; "));
    } else {
        let why = format!(
            "no variant under either miss rule gives the paper's EDF = RM = {}: {}; {ours}",
            percent(CLASSICAL.0),
            ranges.join("; ")
        );
        findings.conclude(Verdict::NotReproducible, &why);
    }
    Ok(())
}

fn from_to(shares: &[f64]) -> String {
    let ends = shares.iter().fold((1.0f64, 0.0f64), |(low, high), share| (low.min(*share), high.max(*share)));
    format!("{} to {}", percent(ends.0), percent(ends.1))
}

fn add_lines(findings: &mut Findings, contest: &Contest) {
    let shares = |name: &str| contest.of(name).map(|contender| contender.values(|run| run.in_time()));
    let Some(learned) = contest.learned() else { return };
    let learned = learned.values(|run| run.in_time());
    for (at, variant) in VARIANTS.into_iter().enumerate() {
        let classical = contest.contenders.iter().filter(|contender| contender.is_classical);
        let best = classical.max_by(|a, b| a.runs[at].compliance.total_cmp(&b.runs[at].compliance));
        let of = |name: &str| shares(name).map(|shares| shares[at]);
        let optimum = contest.possible[at];
        findings.add(
            Line::share(variant, Estimate::single(learned[at]))
                .headline()
                .beside("edf", None, of("edf"))
                .beside(
                    "best classical",
                    best.map(|best| best.name.as_str()),
                    best.map(|best| best.runs[at].compliance),
                )
                .beside("optimum", (!optimum.is_exact()).then_some("at most"), Some(optimum.upper)),
        );
        for name in ["edf", "rm"] {
            if let Some(share) = of(name) {
                let line =
                    Line::new(format!("{name}_{variant}"), Unit::Share, Better::Neither, Estimate::single(share));
                findings.add(line);
            }
        }
    }
}

/// A feed-forward DQN for each variant.
fn add_ff_dqn(
    context: &Context<'_>,
    findings: &mut Findings,
    protocol: &Protocol<Effort>,
    cases: &[Case],
) -> Result<(), ReproduceError> {
    let effort = protocol.settings(context.mode);
    let recipe = effort.recipe(&protocol.recipe);
    let sets = cases.iter().map(|case| &case.set);
    let variants: Vec<Variant<'_>> = sets.map(|set| ff_dqn::variant(&recipe, set.tasks.len(), Some(set))).collect();
    let trained = context.train_variants(&variants, effort.seeds)?;
    for ((name, trained), case) in VARIANTS.into_iter().zip(trained).zip(cases) {
        let (named, alone) = (vec![(name.to_string(), trained)], std::slice::from_ref(case));
        let held =
            context.contest_models(ff_dqn::NAME, named, alone, &protocol.schedulers, effort.test.oracle_seconds)?;
        findings.add(held.share_line(format!("{}_{name}", ff_dqn::NAME), &held.results[0]));
    }
    Ok(())
}

fn table(rule: &str, contest: &Contest) -> FindingsTable {
    let header = ["scheduler"].into_iter().chain(VARIANTS).map(String::from).collect();
    let row = |name: &str, shares: Vec<f64>| -> Vec<String> {
        [name.to_string()].into_iter().chain(shares.into_iter().map(percent)).collect()
    };
    let mut rows = vec![row("clairvoyant, at most", contest.possible.iter().map(|range| range.upper).collect())];
    rows.extend(contest.contenders.iter().map(|of| row(&of.name, of.values(|run| run.in_time()))));
    FindingsTable { title: format!("In time if late jobs {rule}"), header, rows }
}
