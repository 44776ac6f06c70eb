//! The paper's numbered statements, each held against a small problem that is solved exactly.
//!
//! A [`Check`] has what was measured and what the statement allows. Statements whose constants are not given cannot be
//! refuted by a single number; there the growth is checked, which no constant can mend. `docs/paper-notes.md` lists
//! every statement, those without a check included.

mod regret;
mod selection;
mod slack;
mod work;

use serde::Deserialize;

use crate::findings::words;
use crate::{Better, Context, Findings, FindingsTable, Line, ReproduceError, Unit, Verdict};

/// Extent of the checks in one mode.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of grid points of the slack.
    points: usize,
    /// Numbers of bins.
    bins: Vec<usize>,
    /// Discount factor.
    gamma: f64,
    /// Number of samples that a regression learns from.
    samples: usize,
    /// Number of repetitions with other samples.
    draws: u64,
    /// Number of random decision problems.
    problems: u64,
    /// Number of steps of their episodes.
    horizon: usize,
    /// Lengths of the chains that Q-learning explores.
    chains: Vec<usize>,
    /// Number of steps of Q-learning.
    steps: usize,
    /// Numbers of jobs for which work is counted.
    jobs: Vec<usize>,
}

/// Relation between a figure and what a statement says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The figure must not exceed the stated one.
    AtMost,
    /// The figure must reach the stated one.
    AtLeast,
    /// The figure must be the stated one.
    Exactly,
}

/// A statement of the paper and a figure that decides whether it holds on a problem.
#[derive(Clone, Debug)]
struct Check {
    /// Name of the figure.
    name: &'static str,
    /// The statement.
    statement: &'static str,
    /// What the figure is.
    figure: &'static str,
    /// Relation that the statement claims.
    relation: Relation,
    /// The figure as measured.
    measured: f64,
    /// The figure as stated.
    stated: f64,
    /// Another form of the statement, and the same figure for it.
    amended: Option<(&'static str, f64)>,
}

/// Largest numerical error of a figure.
const ERROR: f64 = 1e-9;

impl Check {
    /// Whether a figure is what the statement says.
    fn holds(&self, figure: f64) -> bool {
        match self.relation {
            Relation::AtMost => figure <= self.stated + ERROR,
            Relation::AtLeast => figure >= self.stated - ERROR,
            Relation::Exactly => (figure - self.stated).abs() <= ERROR,
        }
    }

    fn line(&self) -> Line {
        let better = match self.relation {
            Relation::AtMost => Better::Lower,
            Relation::AtLeast => Better::Higher,
            Relation::Exactly => Better::Neither,
        };
        Line::new(self.name, Unit::Number, better, self.measured).headline()
    }

    fn row(&self) -> Vec<String> {
        let verdict = |figure: f64| if self.holds(figure) { "holds" } else { "does not hold" };
        let relation = match self.relation {
            Relation::AtMost => "at most",
            Relation::AtLeast => "at least",
            Relation::Exactly => "exactly",
        };
        let amended = self.amended.map_or(String::new(), |(form, figure)| {
            format!("{form}: {} ({})", Unit::Number.show(figure), verdict(figure))
        });
        vec![
            self.statement.into(),
            self.figure.into(),
            Unit::Number.show(self.measured),
            format!("{relation} {}", Unit::Number.show(self.stated)),
            verdict(self.measured).into(),
            amended,
        ]
    }
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (_, settings) = &context.protocol::<Settings>()?;
    let mut checks = slack::checks(settings);
    checks.extend(selection::checks());
    checks.extend(regret::checks(settings, findings));
    checks.extend(work::checks(settings, findings));
    checks.iter().for_each(|check| findings.add(check.line()));
    for (name, of_form) in checks.iter().filter_map(|check| Some((check.name, check.amended?))) {
        findings.add(Line::neither(format!("{name}_amended"), Unit::Number, of_form.1));
    }
    let header = ["statement", "figure", "measured", "stated", "as printed", "in another form"];
    findings.tables.push(FindingsTable::new("Statements", &header, checks.iter().map(Check::row).collect()));
    conclude(findings, &checks);
    Ok(())
}

fn conclude(findings: &mut Findings, checks: &[Check]) {
    let named = |holds: bool| {
        let names = checks.iter().filter(|check| check.holds(check.measured) == holds).map(|check| words(check.name));
        names.collect::<Vec<_>>()
    };
    let (right, wrong) = (named(true), named(false));
    let mended = checks.iter().filter(|check| !check.holds(check.measured));
    let mended = mended.filter(|check| check.amended.is_some_and(|(_, figure)| check.holds(figure))).count();
    let list = |names: &[String]| if names.is_empty() { "none".to_string() } else { names.join(", ") };
    let sentence = format!(
        "{} of {} statements hold on the problems they are held against ({}), {} do not ({}), {mended} of these in another form",
        right.len(),
        checks.len(),
        list(&right),
        wrong.len(),
        list(&wrong)
    );
    findings.conclude(if wrong.is_empty() { Verdict::Reproduced } else { Verdict::Refuted }, &sentence);
}
