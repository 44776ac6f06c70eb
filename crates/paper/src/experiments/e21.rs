//! E21: what the network attends to, the simple rule that best predicts its decisions, and how often EDF and SRPT decide alike.

use std::sync::Arc;

use rayon::prelude::*;
use serde::Deserialize;
use temponet::stages::Learned;
use temponet::{Model, Options, Temponet, Tuning};
use temponet_lab::explain::diagnostics::{HeatMapCell, RunReport};
use temponet_sched::build;

use crate::{Context, Findings, Line, ReproduceError, Size, Unit};
use temponet_lab::arena::Case;
use temponet_lab::comparison::CompareError;
use temponet_lab::explain::ModelRun;
use temponet_lab::explain::run::{explain_run, heat_map};
use temponet_lab::progress::Progress;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of tasks in each set of the first workload.
    tasks: usize,
    /// Runs with many tasks on several cores.
    many: Size,
    /// Runs on one core.
    one_core: Size,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let model = context.model()?.clone();
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
    let of = |name: &str| findings.percent(name);
    let alpha = findings.value("alpha");
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

/// Inspects every decision of some runs.
pub(super) fn reports(what: &str, cases: &[Case], model: &Arc<Model>) -> Result<Vec<RunReport>, ReproduceError> {
    let progress = Progress::steps(cases.len() as u64);
    progress.say(&format!("looking inside: {what}"));
    let one = |case: &Case| -> Result<RunReport, ReproduceError> {
        let mut scheduler = Temponet::new(model.clone(), Options { tuning: Tuning::Off, ..Options::default() })?;
        let mut plain = Learned::new(model.clone(), Options::default())?;
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

/// Adds the figures of a workload; `prefix` begins their names.
fn add_lines(findings: &mut Findings, prefix: &str, reports: &[RunReport]) {
    let of = |value: &dyn Fn(&RunReport) -> Option<f64>| reports.iter().filter_map(value).collect::<Vec<f64>>();
    let neither = |name: &str, unit, values: Vec<f64>| Line::neither(format!("{prefix}{name}"), unit, values);
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
    // The paper uses the natural logarithm.
    let nats = of(&|report| Some(report.decision_entropy_bits.mean * std::f64::consts::LN_2));
    findings.add(Line::lower(format!("{prefix}entropy"), Unit::Number, nats));
}

/// Adds up the cells of several heat maps.
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
