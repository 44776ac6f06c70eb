//! E21: what the network attends to, the simple rule that best predicts its decisions, and how often EDF and SRPT
//! decide alike.

use std::sync::Arc;

use rayon::prelude::*;
use serde::Deserialize;
use temponet::stages::Learned;
use temponet::{Model, Options};
use temponet_lab::explain::diagnostics::{HeatMapCell, RunReport};
use temponet_sched::build;

use crate::{Context, Findings, Line, PAPER, ReproduceError, Size, Unit, model_entrant};
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
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let many = protocol.cases_of("many", settings.many, settings.tasks)?;
    let one_core = protocol.cases("one_core", settings.one_core)?;
    let (paper, shipped) = (Inspected::paper(context)?, Inspected::shipped(context)?);
    if context.is_planning() {
        return Ok(());
    }
    for (inspected, of, prefix, what, cases) in [
        (&paper, "", "", "eight cores", &many),
        (&paper, "", "one_core_", "one core", &one_core),
        (&shipped, "temponet_", "", "eight cores", &many),
        (&shipped, "temponet_", "one_core_", "one core", &one_core),
    ] {
        let reports = reports(what, cases, inspected)?;
        add_lines(findings, of, prefix, &reports);
        let cells = together(&reports);
        let title = format!("What {} chooses, {what}", inspected.name);
        let caption = "How often a ready job is chosen, by its slack bin (to the right; X: impossible, L: late by wcet) and its remaining wcet as a \
             share of the greatest (upwards). Brighter is more often.";
        findings.picture(&title, caption, heat_map(&inspected.models[0].tokenizer, &cells).inline());
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

/// A model whose decisions are looked into.
pub(super) struct Inspected {
    /// Name in the results.
    pub name: &'static str,
    /// The models of its trainings.
    pub models: Vec<Arc<Model>>,
    /// Whether the run is behind the shield.
    is_shielded: bool,
}

impl Inspected {
    /// The paper's own TempoNet, without a shield.
    pub fn paper(context: &Context<'_>) -> Result<Inspected, ReproduceError> {
        Ok(Inspected { name: PAPER, models: context.papers()?, is_shielded: false })
    }

    /// The network of the caller, behind its shield.
    pub fn shipped(context: &Context<'_>) -> Result<Inspected, ReproduceError> {
        Ok(Inspected { name: "temponet", models: vec![context.model()?.clone()], is_shielded: true })
    }
}

/// Inspects every decision of some runs, in each training.
pub(super) fn reports(what: &str, cases: &[Case], inspected: &Inspected) -> Result<Vec<RunReport>, ReproduceError> {
    let Inspected { name, models, is_shielded } = inspected;
    let progress = Progress::steps((cases.len() * models.len()) as u64);
    progress.say(&format!("looking inside {name}: {what}"));
    let one = |(model, case): (&Arc<Model>, &Case)| -> Result<RunReport, ReproduceError> {
        let mut plain = Learned::new(model.clone(), Options::default())?;
        let mut scheduler = model_entrant(name, model, Options::default(), *is_shielded).scheduler()?;
        let other = |name: &'static str| build(name).map(|scheduler| (name, scheduler)).map_err(CompareError::from);
        let mut others = [other("edf")?, other("srpt")?];
        let Case { set, seed, horizon } = case;
        let (seed, horizon) = (*seed, *horizon);
        let run = ModelRun { set, seed, horizon, model, scheduler: &mut *scheduler, plain: &mut plain };
        let report = explain_run(run, &mut others)?;
        progress.step();
        Ok(report)
    };
    let runs: Vec<_> = models.iter().flat_map(|model| cases.iter().map(move |case| (model, case))).collect();
    let reports = runs.into_par_iter().map(one).collect();
    progress.finish();
    reports
}

/// Adds the figures of a model on a workload, which begin the names of the figures.
fn add_lines(findings: &mut Findings, model: &str, workload: &str, reports: &[RunReport]) {
    let prefix = format!("{model}{workload}");
    // The verdict is about the paper's own model.
    let headline = |line: Line| if model.is_empty() { line.headline() } else { line };
    let of = |value: &dyn Fn(&RunReport) -> Option<f64>| reports.iter().filter_map(value).collect::<Vec<f64>>();
    let neither = |name: &str, unit, values: Vec<f64>| Line::neither(format!("{prefix}{name}"), unit, values);
    findings.add(headline(neither("alpha", Unit::Number, of(&|report| Some(report.rule.alpha)))));
    let rule = Line::share(format!("{prefix}rule_agreement"), of(&|report| Some(report.rule.agreement.all)));
    findings.add(headline(rule));
    findings.add(neither("rule_contested", Unit::Share, of(&|report| Some(report.rule.agreement.contested))));
    for (place, name) in ["edf", "srpt"].into_iter().enumerate() {
        let all = of(&|report| Some(report.agreement[place].agreement.all));
        findings.add(headline(neither(&format!("{name}_agreement"), Unit::Share, all)));
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
