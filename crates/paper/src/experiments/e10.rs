//! E10: from Q-values to cores: greedily, by Sinkhorn's relaxation, and exactly.

use serde::Deserialize;
use temponet::{Mapping, Options};
use temponet_task::Aim;

use crate::{Better, Context, Entrant, Estimate, Findings, Line, ReproduceError, Size, Unit, model_entrant};
use temponet_lab::measure::decision::{TimingEffort, measure};
use temponet_lab::stats::{paired_difference, percent, points};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    size: Size,
    /// Ready jobs of the decisions that are timed, and how many decisions.
    jobs: usize,
    passes: u64,
    temperature: f32,
    iterations: u32,
    /// What a migration costs the matchings, in units of Q.
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
    // What is timed is to be the network's own, however many jobs are ready.
    let unlimited = context.model_alone()?;
    let cases = protocol.cases("trace", size)?;
    let learned =
        mappings.map(|(name, mapping)| model_entrant(name, model, Options { mapping, ..Options::default() }, false));
    let classical = context.entrants(&protocol.schedulers);
    let entrants: Vec<Entrant<'_>> = learned.into_iter().chain(classical).collect();
    let contest = context.contest("mappings", &cases, &entrants, Some((Aim::Critical, size.oracle_seconds)))?;
    for (name, mapping) in mappings {
        let Some(contender) = contest.of(name) else { continue };
        let line = contest.score_line(&format!("{name}_pitmd"), contender, |run| run.pitmd);
        findings.add(if name == "exact" { line } else { line.headline() });
        let ms =
            |what: &str, of| contest.line(&format!("{name}_{what}"), contender, Unit::Milliseconds, Better::Lower, of);
        findings.add(ms("art_completed", |run| run.art_completed));
        findings.add(ms("art_all", |run| run.art_all));
        findings.add(Line::new(
            format!("{name}_migrations"),
            Unit::Number,
            Better::Lower,
            contender.estimate(|run| Some(run.migrations)),
        ));
        let effort = TimingEffort { passes: settings.passes, controls: 0, mapping };
        let figures =
            measure("given", &unlimited, settings.jobs, effort).map_err(|error| context.wrong(error.to_string()))?;
        let micro = |what: &str, ns: f64| {
            Line::new(format!("{name}_{what}"), Unit::Microseconds, Better::Lower, Estimate::single(ns / 1e3))
        };
        findings.add(micro("decision", figures.end_to_end_ns_p50));
        findings.add(micro("mapping", figures.mapping_ns_p50));
    }
    if let Some(contender) = contest.of("greedy") {
        let left = contender.estimate(|run| Some(run.fallbacks));
        findings.add(Line::new("fallbacks", Unit::Share, Better::Neither, left));
    }
    let (Some(greedy), Some(sinkhorn)) = (contest.of("greedy"), contest.of("sinkhorn")) else { return Ok(()) };
    let (gain, half) = paired_difference(&sinkhorn.values(|run| run.pitmd), &greedy.values(|run| run.pitmd));
    let half = half.map(|half| format!(" ± {}", points(half))).unwrap_or_default();
    let of = |name: &str| findings.line(name).map_or(f64::NAN, |line| line.ours.mean);
    let beside = format!(
        "Sinkhorn less greedy is {}{half} points of critical jobs in time, run by run (the paper: 0.50), and a decision among {} jobs takes {:.0} µs against {:.0} µs \
         (the paper: 860 and 420); {} of the \
         decisions lie beyond what the model has learned, and are its fallback's under every mapping",
        points(gain),
        settings.jobs,
        of("sinkhorn_decision"),
        of("greedy_decision"),
        percent(of("fallbacks")),
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}
