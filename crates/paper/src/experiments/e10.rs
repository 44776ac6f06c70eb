//! E10: mapping from Q-values to cores: greedy, by Sinkhorn's relaxation, and exact.

use serde::Deserialize;
use temponet::{Mapping, Options};

use crate::contest::paired_gain;
use crate::{Better, Contender, Contest, Context, Entrant, Findings, Line, ReproduceError, Size, Unit, model_entrant};
use temponet_lab::measure::decision::{TimingEffort, measure};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    size: Size,
    /// Number of ready jobs in the decisions that are timed.
    jobs: usize,
    /// Number of decisions that are timed.
    passes: u64,
    /// Temperature of Sinkhorn's relaxation.
    temperature: f32,
    /// Number of iterations of Sinkhorn's relaxation.
    iterations: u32,
    /// Cost of a migration in the matchings, in units of Q.
    migration: f32,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let Settings { size, temperature, iterations, migration, .. } = *settings;
    let mappings = [
        ("greedy", Mapping::Greedy),
        ("sinkhorn", Mapping::Sinkhorn { temperature, iterations, migration }),
        ("exact", Mapping::Hungarian { migration }),
    ];
    let model = context.model()?;
    let bed = protocol.test_bed("mappings", "trace", size)?.by_critical_jobs();
    let learned =
        mappings.map(|(name, mapping)| model_entrant(name, model, Options { mapping, ..Options::default() }, false));
    let entrants: Vec<Entrant<'_>> = learned.into_iter().chain(context.entrants(bed.classical)).collect();
    let contest = context.contest_of(&bed, &entrants)?;
    for (name, mapping) in mappings {
        let Some(contender) = contest.contender(name) else { continue };
        add_lines(findings, &contest, contender);
        add_times(context, findings, settings, (name, mapping))?;
    }
    if let Some(contender) = contest.contender("greedy") {
        let fallbacks = contender.estimate(|run| Some(run.fallbacks));
        findings.add(Line::neither("fallbacks", Unit::Share, fallbacks));
    }
    let (Some(greedy), Some(sinkhorn)) = (contest.contender("greedy"), contest.contender("sinkhorn")) else {
        return Ok(());
    };
    let beside = format!(
        "Sinkhorn less greedy is {} points of critical jobs in time, run by run (the paper: 0.50), and a decision among {} jobs takes {:.0} µs against {:.0} µs \
         (the paper: 860 and 420); {} of the \
         decisions lie beyond what the model has learned, and are its fallback's under every mapping",
        paired_gain(&sinkhorn.values(|run| run.pitmd), &greedy.values(|run| run.pitmd)),
        settings.jobs,
        findings.value("sinkhorn_decision"),
        findings.value("greedy_decision"),
        findings.percent("fallbacks"),
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}

/// Adds what a mapping achieves on the trace.
fn add_lines(findings: &mut Findings, contest: &Contest, contender: &Contender) {
    let name = &contender.name;
    let line = contest.score_line(&format!("{name}_pitmd"), contender, |run| run.pitmd);
    findings.add(if name == "exact" { line } else { line.headline() });
    let ms = |what: &str, of| contest.line(&format!("{name}_{what}"), contender, Unit::Milliseconds, Better::Lower, of);
    findings.add(ms("art_completed", |run| run.art_completed));
    findings.add(ms("art_all", |run| run.art_all));
    let migrations = contender.estimate(|run| Some(run.migrations));
    findings.add(Line::lower(format!("{name}_migrations"), Unit::Number, migrations));
}

/// Adds the time of a decision with a mapping. The network decides, however many jobs are ready.
fn add_times(
    context: &Context<'_>,
    findings: &mut Findings,
    settings: &Settings,
    (name, mapping): (&str, Mapping),
) -> Result<(), ReproduceError> {
    let effort = TimingEffort { passes: settings.passes, mapping, ..TimingEffort::default() };
    let figures =
        measure("given", context.model()?, settings.jobs, effort).map_err(|error| context.protocol_error(error))?;
    let micro = |what: &str, ns: f64| Line::lower(format!("{name}_{what}"), Unit::Microseconds, ns / 1e3);
    findings.add(micro("decision", figures.end_to_end_ns_p50));
    findings.add(micro("mapping", figures.mapping_ns_p50));
    Ok(())
}
