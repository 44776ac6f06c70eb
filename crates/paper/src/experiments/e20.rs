//! E20: sustained overload with bursts of urgent jobs, the paper's mitigations off and on.

use std::sync::Arc;

use serde::Deserialize;
use temponet::{Learned, Model, Observation, Options, Scale};
use temponet_infer::reference;
use temponet_lab::explain::diagnostics::alignment;
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Aim, Assignment, JobId, Scheduler};

use crate::{
    Better, Contender, Contest, Context, Entrant, Estimate, Findings, Line, ReproduceError, Size, Unit, model_entrant,
};
use temponet_lab::arena::Case;
use temponet_lab::measure::latency::Timed;
use temponet_lab::measure::peak_rss_mb;
use temponet_lab::stats::{mean, paired_difference, percent, points};
use temponet_page::charts::bars;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Of each set.
    tasks: usize,
    /// Late jobs aborted.
    size: Size,
    /// Late jobs continuing, for their lateness and for the overload detector, which counts them.
    late: Size,
    /// The tick that a decision has to fit into.
    tick_us: f64,
    /// Added to the attention logits of jobs with long slack.
    reserve: f32,
    /// Runs that are looked into, one after the other, and timed.
    inspected: usize,
    /// The attention of every so many decisions of theirs is looked at.
    look_every: u64,
}

/// A way to run the network.
struct Variant {
    name: &'static str,
    model: Arc<Model>,
    options: Options,
}

/// What is seen of the network in a run.
struct Inspected {
    /// The share of heads whose decision token attends most to a chosen job.
    alignment: f64,
    /// Of the decision token in the last layer, in nats.
    entropy: f64,
    /// The share of decisions that take longer than the tick on this machine.
    overruns: f64,
    /// The share of the decisions looked at in which the overload detector fires.
    fired: f64,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let settings = protocol.settings(context.mode);
    let size = settings.size;
    let cases = protocol.cases_of("abort", size, settings.tasks)?;
    let variants = variants(context.model_alone()?.as_ref(), settings.reserve);
    let entrants = entrants(context, &variants, &protocol.schedulers);
    let contest = context.contest("stress", &cases, &entrants, Some((Aim::Met, size.oracle_seconds)))?;
    for variant in &variants {
        let Some(contender) = contest.of(variant.name) else { continue };
        let name = variant.name;
        findings.add(contest.score_line(&format!("compliance_{name}"), contender, |run| run.in_time()).headline());
        look_inside(findings, variant, name, &cases, settings)?;
    }
    for name in ["edf", "srpt"] {
        if let Some(contender) = contest.of(name) {
            let line = Line::new(
                format!("compliance_{name}"),
                Unit::Share,
                Better::Neither,
                contender.estimate(|run| run.in_time()),
            );
            findings.add(line);
        }
    }
    if let Some(shipped) = shipped(&contest, &variants) {
        findings.add(contest.score_line("compliance_shipped", shipped, |run| run.in_time()));
        findings.add(Line::new(
            "fallbacks_shipped",
            Unit::Share,
            Better::Neither,
            shipped.estimate(|run| Some(run.fallbacks)),
        ));
    }
    let continuing = continuing(context, findings, settings, &variants)?;
    if let Some(peak) = peak_rss_mb() {
        findings.add(Line::new("peak_memory", Unit::Megabytes, Better::Lower, Estimate::single(peak)));
    }
    let series: Vec<(String, Vec<f64>)> = contest
        .contenders
        .iter()
        .map(|of| (of.name.clone(), vec![of.mean(|run| run.in_time()).unwrap_or(f64::NAN)]))
        .chain(contest.optimum().map(|(optimum, _)| ("optimum, at most".to_string(), vec![optimum])))
        .collect();
    let picture = bars(&["jobs in time".into()], &series, 1.0, |share| format!("{:.0}", 100.0 * share));
    findings.picture("Under stress", "Means over the runs.", picture);
    context.note_clock(findings);
    conclude(findings, &contest, &continuing);
    Ok(())
}

/// The network in both ways, the scheduler as it ships, and classical ones.
fn entrants<'a>(context: &'a Context<'_>, variants: &[Variant], classical: &[String]) -> Vec<Entrant<'a>> {
    let networks = variants.iter().map(|of| model_entrant(of.name, &of.model, of.options, false));
    networks.chain(context.learned_and(classical)).collect()
}

/// The scheduler as it ships.
fn shipped<'a>(contest: &'a Contest, variants: &[Variant]) -> Option<&'a Contender> {
    contest.contenders.iter().find(|of| !of.is_classical && variants.iter().all(|known| known.name != of.name))
}

/// What the mitigations are worth, run by run.
fn gain(contest: &Contest) -> String {
    let values = |name: &str| contest.of(name).map(|of| of.values(|run| run.in_time())).unwrap_or_default();
    let (gain, half) = paired_difference(&values("mitigated"), &values("unmitigated"));
    points(gain) + &half.map(|half| format!(" ± {}", points(half))).unwrap_or_default()
}

fn conclude(findings: &mut Findings, contest: &Contest, continuing: &Contest) {
    let share = |name: &str| findings.line(name).map_or("–".into(), |line| percent(line.ours.mean));
    let best = contest.best_classical(Better::Higher, |run| run.in_time());
    let beside = format!(
        "run by run the mitigations are worth {} points where late jobs are aborted and the overload detector fires in {} of the decisions looked at, {} points where they \
         continue and it fires in {} (the paper: 5.50); overruns of the tick go from {} to {} (2% to 0.1%); EDF meets {}, SRPT {}, {} {}, the scheduler as it ships {}",
        gain(contest),
        share("detector_mitigated"),
        gain(continuing),
        share("detector_continuing_mitigated"),
        share("overruns_unmitigated"),
        share("overruns_mitigated"),
        share("compliance_edf"),
        share("compliance_srpt"),
        best.map_or("–", |(best, _)| best.name.as_str()),
        best.map_or("–".into(), |(_, mean)| percent(mean)),
        share("compliance_shipped"),
    );
    findings.judge(&beside);
}

/// The network with sparse attention, without the mitigations and with both.
fn variants(model: &Model, reserve: f32) -> [Variant; 2] {
    let with = |reserve: f32| {
        let mut model = model.clone();
        model.tokenizer.long_slack_reserve = reserve;
        Arc::new(model)
    };
    let sparse = Options { sparse: true, ..Options::default() };
    let whole = Options { keep_attention: true, ..sparse };
    [
        Variant { name: "unmitigated", model: with(0.0), options: whole },
        Variant { name: "mitigated", model: with(reserve), options: sparse },
    ]
}

impl Variant {
    fn scheduler(&self) -> Result<Learned, ReproduceError> {
        let wrong = |error: temponet::NetworkError| ReproduceError::Network(error.to_string());
        Learned::new(self.model.clone(), self.options).map_err(wrong)
    }
}

/// A run with every decision timed, and the attention of every so many of them computed again in plain loops.
fn inspect(variant: &Variant, case: &Case, settings: &Settings) -> Result<Inspected, ReproduceError> {
    let mut timed = Timed::new(variant.scheduler()?);
    let model = &variant.model;
    let mut engine = Engine::new(&case.set, case.seed, case.horizon);
    timed.start(engine.system()).map_err(SimError::NotApplicable)?;
    let scale = Scale::of(&model.tokenizer, engine.system());
    let (mut observation, mut assignment) = (Observation::default(), Assignment::default());
    let (mut alignments, mut entropies, mut fired) = (Vec::new(), Vec::new(), Vec::new());
    let last = model.weights.architecture.layers - 1;
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        assignment.reset(case.set.cores);
        timed.decide(&view, &mut assignment);
        if timed.latencies.count().is_multiple_of(settings.look_every) && !view.active.is_empty() {
            observation.read(&model.tokenizer, &scale, &view, true);
            let is_overloaded = timed.inner().is_overloaded();
            fired.push(f64::from(u8::from(is_overloaded)));
            if !variant.options.keep_attention && is_overloaded {
                observation.halve_attention();
            }
            let trace = reference(&model.weights, &observation.rows());
            let is_chosen = |job: &&(JobId, u32)| assignment.cores().contains(&Some(job.0));
            let rows: Vec<usize> = observation.jobs().iter().filter(is_chosen).map(|(_, row)| *row as usize).collect();
            alignments.push(f64::from(alignment(&trace, last, &rows)));
            let heads = trace.attention.iter().filter(|map| map.layer == last);
            entropies.push(mean(&heads.map(|map| entropy(&map.weights[0])).collect::<Vec<f64>>()));
        }
        engine.apply(&assignment, &mut Unobserved)?;
    }
    let over = timed.latencies.buckets().filter(|(ns, _)| *ns as f64 > settings.tick_us * 1e3);
    let over: u64 = over.map(|(_, count)| count).sum();
    let overruns = over as f64 / timed.latencies.count().max(1) as f64;
    Ok(Inspected { alignment: mean(&alignments), entropy: mean(&entropies), overruns, fired: mean(&fired) })
}

/// The entropy of a query's attention, in nats.
fn entropy(weights: &[f32]) -> f64 {
    let positive = weights.iter().map(|weight| f64::from(*weight)).filter(|weight| *weight > 0.0);
    positive.map(|weight| -weight * weight.ln()).sum()
}

/// Timed runs of the network, one after the other, and what is seen inside it.
fn look_inside(
    findings: &mut Findings,
    variant: &Variant,
    name: &str,
    cases: &[Case],
    settings: &Settings,
) -> Result<(), ReproduceError> {
    let inspected = cases.iter().take(settings.inspected).map(|case| inspect(variant, case, settings));
    let inspected = inspected.collect::<Result<Vec<Inspected>, _>>()?;
    let of = |value: fn(&Inspected) -> f64| Estimate::of(&inspected.iter().map(value).collect::<Vec<f64>>());
    findings.add(Line::share(format!("alignment_{name}"), of(|seen| seen.alignment)));
    let lower = |what: &str, unit, estimate| Line::new(format!("{what}_{name}"), unit, Better::Lower, estimate);
    findings.add(lower("entropy", Unit::Number, of(|seen| seen.entropy)));
    findings.add(lower("overruns", Unit::Share, of(|seen| seen.overruns)));
    findings.add(Line::new(format!("detector_{name}"), Unit::Share, Better::Neither, of(|seen| seen.fired)));
    Ok(())
}

/// The same where late jobs continue: the lateness that 95% do not exceed, and what the mitigations are worth there.
fn continuing(
    context: &Context<'_>,
    findings: &mut Findings,
    settings: &Settings,
    variants: &[Variant],
) -> Result<Contest, ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let cases = protocol.cases_of("continue", settings.late, settings.tasks)?;
    let entrants = entrants(context, variants, &["edf", "srpt", "mh-edf"].map(String::from));
    let contest = context.contest("stress, late jobs continue", &cases, &entrants, None)?;
    for variant in variants {
        let Some(contender) = contest.of(variant.name) else { continue };
        let name = format!("continuing_{}", variant.name);
        let line =
            contest.line(&format!("compliance_{name}"), contender, Unit::Share, Better::Higher, |run| run.in_time());
        findings.add(line);
        look_inside(findings, variant, &name, &cases, settings)?;
    }
    if let Some(shipped) = shipped(&contest, variants) {
        let late = Unit::Milliseconds;
        findings.add(contest.line("lateness_shipped", shipped, late, Better::Lower, |run| run.lateness_p95));
    }
    for name in ["edf", "srpt"] {
        if let Some(contender) = contest.of(name) {
            let estimate = contender.estimate(|run| run.lateness_p95);
            findings.add(Line::new(format!("lateness_{name}"), Unit::Milliseconds, Better::Neither, estimate));
        }
    }
    Ok(contest)
}
