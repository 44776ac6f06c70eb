//! E21: what the network attends to, which simple rule chooses as it does, and how often EDF and SRPT would.

use std::sync::Arc;

use rayon::prelude::*;
use serde::Deserialize;
use temponet::{Learned, Model, Options, Temponet};
use temponet_lab::explain::diagnostics::{HeatMapCell, RunReport};
use temponet_sched::build;

use crate::{Better, Context, Estimate, Findings, Line, ReproduceError, Size, Unit};
use temponet_lab::arena::Case;
use temponet_lab::comparison::CompareError;
use temponet_lab::explain::ModelRun;
use temponet_lab::explain::run::{explain_run, heat_map};
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Of each set with many.
    tasks: usize,
    many: Size,
    one_core: Size,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let model = context.model_alone()?;
    let many = protocol.cases_of("many", settings.many, settings.tasks)?;
    let one_core = protocol.cases("one_core", settings.one_core)?;
    for (prefix, what, cases) in [("", "many tasks", many), ("one_core_", "one core", one_core)] {
        let reports = reports(what, &cases, &model)?;
        add_lines(findings, prefix, &reports);
        let cells = together(&reports);
        let title = if prefix.is_empty() { "What is chosen, eight cores" } else { "What is chosen, one core" };
        let caption = "How often a ready job is chosen, by its slack bin (to the right; X: impossible, L: late by wcet) and its remaining wcet as a \
             share of the greatest (upwards). Brighter is more often.";
        findings.picture(title, caption, heat_map(&model.tokenizer, &cells).inline());
    }
    let of = |name: &str| findings.line(name).map_or("–".into(), |line| percent(line.ours.mean));
    let alpha = findings.line("alpha").map_or(f64::NAN, |line| line.ours.mean);
    let beside = format!(
        "the rule that fits best has α = {alpha:.2}, β = {:.2} (the paper: 0.73 and 0.27); on one core the rule agrees in {} of the decisions, EDF in {} and SRPT in {}, \
         at states with more ready jobs than cores in {}, {} and {}",
        1.0 - alpha,
        of("one_core_rule_agreement"),
        of("one_core_edf_agreement"),
        of("one_core_srpt_agreement"),
        of("one_core_rule_contested"),
        of("one_core_edf_contested"),
        of("one_core_srpt_contested"),
    );
    findings.judge(&beside);
    Ok(())
}

/// Every decision of some runs, laid open.
pub(super) fn reports(what: &str, cases: &[Case], model: &Arc<Model>) -> Result<Vec<RunReport>, ReproduceError> {
    let progress = Progress::steps(cases.len() as u64);
    progress.say(&format!("looking inside: {what}"));
    let one = |case: &Case| -> Result<RunReport, ReproduceError> {
        let wrong = |error: temponet::NetworkError| ReproduceError::Network(error.to_string());
        let mut scheduler = Temponet::new(model.clone(), Options::default()).map_err(wrong)?;
        let mut plain = Learned::new(model.clone(), Options::default()).map_err(wrong)?;
        let other = |name: &'static str| build(name).map(|scheduler| (name, scheduler)).map_err(CompareError::from);
        let mut others = [other("edf")?, other("srpt")?];
        let Case { set, seed, horizon } = case;
        let (seed, horizon) = (*seed, *horizon);
        let run = ModelRun { set, seed, horizon, model, scheduler: &mut scheduler, plain: &mut plain };
        let report = explain_run(run, &mut others)?;
        progress.step();
        Ok(report)
    };
    let reports = cases.par_iter().map(one).collect();
    progress.finish();
    reports
}

fn add_lines(findings: &mut Findings, prefix: &str, reports: &[RunReport]) {
    let of = |value: &dyn Fn(&RunReport) -> Option<f64>| {
        Estimate::of(&reports.iter().filter_map(value).collect::<Vec<f64>>())
    };
    let neither = |name: &str, unit, estimate| Line::new(format!("{prefix}{name}"), unit, Better::Neither, estimate);
    findings.add(neither("alpha", Unit::Number, of(&|report| Some(report.rule.alpha))).headline());
    let rule = Line::share(format!("{prefix}rule_agreement"), of(&|report| Some(report.rule.agreement.all)));
    findings.add(rule.headline());
    findings.add(neither("rule_contested", Unit::Share, of(&|report| Some(report.rule.agreement.contested))));
    for (place, name) in ["edf", "srpt"].into_iter().enumerate() {
        let all = of(&|report| Some(report.agreement[place].agreement.all));
        findings.add(neither(&format!("{name}_agreement"), Unit::Share, all).headline());
        let contested = of(&|report| Some(report.agreement[place].agreement.contested));
        findings.add(neither(&format!("{name}_contested"), Unit::Share, contested));
    }
    findings.add(Line::share(format!("{prefix}alignment"), of(&|report| Some(report.alignment))));
    let top = of(&|report| report.top_k_alignment.first().map(|top| top.alignment));
    findings.add(Line::share(format!("{prefix}top_1_alignment"), top));
    // The paper's logarithm is the natural one.
    let nats = of(&|report| Some(report.decision_entropy_bits.mean * std::f64::consts::LN_2));
    findings.add(Line::new(format!("{prefix}entropy"), Unit::Number, Better::Lower, nats));
}

/// The cells of several heat maps added up.
fn together(reports: &[RunReport]) -> Vec<HeatMapCell> {
    let mut all: Vec<HeatMapCell> = Vec::new();
    for cell in reports.iter().flat_map(|report| &report.heat_map) {
        let is_same =
            |known: &&mut HeatMapCell| (known.slack_bin, known.remaining_bin) == (cell.slack_bin, cell.remaining_bin);
        match all.iter_mut().find(is_same) {
            Some(known) => (known.seen, known.chosen) = (known.seen + cell.seen, known.chosen + cell.chosen),
            None => all.push(*cell),
        }
    }
    all
}
