//! E20: sustained overload with bursts of urgent jobs, without and with the paper's mitigations.

use std::sync::Arc;

use serde::Deserialize;
use temponet::stages::{Learned, Observation, Scale};
use temponet::{Model, Options};
use temponet_infer::reference;
use temponet_lab::explain::diagnostics::alignment;
use temponet_lab::roster::SHIELDED;
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, JobId, Mode, Scheduler, Time};

use crate::contest::paired_gain;
use crate::{
    Better, Contender, Contest, Context, Entrant, Findings, Line, Protocol, ReproduceError, TestBed, TimedSize, Unit,
    models_entrant,
};
use temponet_bench::peak_rss_mb;
use temponet_lab::arena::Case;
use temponet_lab::latency::Timed;
use temponet_lab::stats::{mean, percent};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of tasks in each set.
    tasks: usize,
    /// Runs in which late jobs are aborted.
    size: TimedSize,
    /// Runs in which late jobs continue. They show the lateness and the overload detector, which counts late jobs.
    late: TimedSize,
    /// Peaks of the load.
    peak: Peak,
    /// Duration of the tick that a decision must fit into, in microseconds.
    tick_us: f64,
    /// Value added to the attention logits of jobs with long slack.
    reserve: f32,
    /// Number of runs that are inspected and timed, one after the other.
    inspected: usize,
    /// Interval between two inspected decisions, in decisions.
    look_every: u64,
}

/// Peaks of the load: for a share of every period, it rises from a lower level so that its mean stays as it is.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peak {
    /// Load per core during a peak.
    load: f64,
    /// Period, in seconds.
    every: f64,
    /// Share of the period that is a peak, at its end.
    share: f64,
}

impl Peak {
    /// Adds the peaks to a run.
    fn add_to(self, case: &mut Case) {
        let mean = case.set.mean_utilization() / case.set.cores() as f64;
        let low = (mean - self.share * self.load) / (1.0 - self.share);
        let mode = |name: &str, seconds: f64, load: f64| {
            let at = Time((seconds * 1e9) as u64);
            Mode::new(name, at).with_work(load / mean)
        };
        let periods = (case.horizon.0 as f64 / 1e9 / self.every).ceil() as u32;
        let modes = (0..periods).flat_map(|period| {
            let begin = f64::from(period) * self.every;
            [mode("between", begin, low), mode("peak", begin + (1.0 - self.share) * self.every, self.load)]
        });
        case.set.set_modes(modes.collect());
    }
}

/// Rival that the paper's table has beside EDF and SRPT.
const GNN: &str = "gnn-dqn";

/// A way of running the network.
struct Variant {
    /// Name in the results.
    name: &'static str,
    /// The models of its trainings.
    models: Vec<Arc<Model>>,
    options: Options,
}

/// Result of inspecting one run.
struct Inspected {
    /// Share of heads whose decision token attends most to a chosen job.
    alignment: f64,
    /// Attention entropy of the decision token in the last layer, in nats.
    entropy: f64,
    /// Share of decisions that take longer than the tick on this machine.
    overruns: f64,
    /// Share of the decisions at which the overload detector is on, with its hysteresis.
    fired: f64,
    /// Number of ready jobs at a decision.
    ready: f64,
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, settings) = &context.protocol::<Settings>()?;
    let cases = cases(protocol, "abort", settings, settings.size)?;
    let bed = protocol.test_bed_of("stress", cases, settings.size.size());
    let variants = variants(&context.sparse_papers()?, settings.reserve);
    let mut all = entrants(context, &variants, bed.classical);
    let gnn = crate::rivals::named(GNN).map(|rival| rival.ready(context)).transpose()?.flatten();
    all.extend(gnn.map(|gnn| models_entrant(GNN, &gnn.models, Options::default(), false)));
    if context.is_planning() {
        return Ok(());
    }
    let contest = context.contest_of(&bed, &all)?;
    if let Some(gnn) = contest.contender(GNN) {
        findings.add(Line::neither("compliance_gnn", Unit::Share, gnn.estimate(|run| run.in_time())));
    }
    for variant in &variants {
        let name = variant.name;
        let Some(contender) = contest.contender(name) else { continue };
        findings.add(contest.score_line(&format!("compliance_{name}"), contender, |run| run.in_time()).headline());
        look_inside(findings, variant, name, &bed.cases, settings)?;
    }
    for name in ["edf", "srpt"] {
        if let Some(contender) = contest.contender(name) {
            findings.add(Line::neither(format!("compliance_{name}"), Unit::Share, contender.shares()));
        }
    }
    if let Some(shipped) = shipped(&contest, &variants) {
        findings.add(contest.score_line("compliance_shipped", shipped, |run| run.in_time()));
        let fallbacks = shipped.estimate(|run| Some(run.fallbacks));
        findings.add(Line::neither("fallbacks_shipped", Unit::Share, fallbacks));
    }
    add_orders(findings, &contest);
    let continuing = continuing(context, findings, settings, &variants)?;
    if let Some(peak) = peak_rss_mb() {
        findings.add(Line::lower("peak_memory", Unit::Megabytes, peak));
    }
    let series: Vec<(String, Vec<f64>)> = contest
        .contenders
        .iter()
        .map(|of| (of.name.clone(), vec![of.mean(|run| run.in_time()).unwrap_or(f64::NAN)]))
        .chain(contest.optimum().map(|(optimum, _)| ("optimum, at most".to_string(), vec![optimum])))
        .collect();
    findings.share_bars("Under stress", "Means over the runs.", &["jobs in time".into()], &series);
    context.note_clock(findings);
    conclude(findings, &contest, &continuing);
    Ok(())
}

/// Returns the runs of a workload, with their length and peaks.
fn cases(
    protocol: &Protocol,
    workload: &str,
    settings: &Settings,
    size: TimedSize,
) -> Result<Vec<Case>, ReproduceError> {
    let mut cases = size.lasting(protocol.cases_of(workload, size.size(), settings.tasks)?);
    cases.iter_mut().for_each(|case| settings.peak.add_to(case));
    Ok(cases)
}

/// Returns the network in both variants, the scheduler as it ships, and classical schedulers.
fn entrants<'a>(context: &'a Context<'_>, variants: &[Variant], classical: &[String]) -> Vec<Entrant<'a>> {
    let networks = variants.iter().map(|of| models_entrant(of.name, &of.models, of.options, false));
    let names: Vec<String> = [SHIELDED.to_string()].into_iter().chain(classical.iter().cloned()).collect();
    networks.chain(context.entrants(&names)).collect()
}

/// Returns the scheduler as it ships.
fn shipped<'a>(contest: &'a Contest, variants: &[Variant]) -> Option<&'a Contender> {
    let is_network = |name: &str| name == GNN || variants.iter().any(|known| known.name == name);
    contest.contenders.iter().find(|of| !of.is_classical && !is_network(&of.name))
}

/// Formats the gain from the mitigations, paired by run.
fn gain(contest: &Contest) -> String {
    paired_gain(&contest.shares("mitigated"), &contest.shares("unmitigated"))
}

/// Adds that the mitigations are worth something, and that the network leads simple schedulers, as the paper has it.
fn add_orders(findings: &mut Findings, contest: &Contest) {
    for (name, to, from) in [
        ("gain_of_mitigations", "mitigated", "unmitigated"),
        ("lead_over_edf", "mitigated", "edf"),
        ("lead_over_srpt", "mitigated", "srpt"),
    ] {
        if let (Some(to), Some(from)) = (contest.contender(to), contest.contender(from)) {
            findings.add(Line::order(name, to.lead_over(from, |run| run.in_time())));
        }
    }
}

fn conclude(findings: &mut Findings, contest: &Contest, continuing: &Contest) {
    let share = |name: &str| findings.percent(name);
    let best = contest.best_classical(Better::Higher, |run| run.in_time());
    let beside = format!(
        "run by run the mitigations are worth {} points where late jobs are aborted and the overload detector is on in {} of the decisions, {} points where they \
         continue and it is on in {} (the paper: 5.50); overruns of the tick go from {} to {} (2% to 0.1%); EDF meets {}, SRPT {}, {} {}, the scheduler as it ships {}",
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

/// Returns the network with sparse attention, without mitigations and with both.
fn variants(models: &[Arc<Model>], reserve: f32) -> [Variant; 2] {
    let with = |reserve: f32| {
        let reserved = |model: &Arc<Model>| {
            let mut model = Model::clone(model);
            model.tokenizer.long_slack_reserve = reserve;
            Arc::new(model)
        };
        models.iter().map(reserved).collect()
    };
    let sparse = Options { sparse: true, ..Options::default() };
    let whole = Options { keep_attention: true, ..sparse };
    [
        Variant { name: "unmitigated", models: with(0.0), options: whole },
        Variant { name: "mitigated", models: with(reserve), options: sparse },
    ]
}

impl Variant {
    fn scheduler(&self) -> Result<Learned, ReproduceError> {
        Ok(Learned::new(self.models[0].clone(), self.options)?)
    }
}

/// Runs a case with every decision timed, in the first training. The attention of every `look_every`-th decision is recomputed by the
/// reference implementation.
fn inspect(variant: &Variant, case: &Case, settings: &Settings) -> Result<Inspected, ReproduceError> {
    let mut timed = Timed::new(variant.scheduler()?);
    let model = &variant.models[0];
    let mut engine = Engine::new(&case.set, case.seed, case.horizon);
    timed.start(engine.system()).map_err(SimError::NotApplicable)?;
    let scale = Scale::of(&model.tokenizer, engine.system());
    let (mut observation, mut assignment) = (Observation::default(), Assignment::default());
    let (mut alignments, mut entropies) = (Vec::new(), Vec::new());
    let (mut decisions, mut fired, mut ready) = (0u64, 0u64, 0usize);
    let last = model.weights.architecture.layers - 1;
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        assignment.reset(case.set.cores());
        timed.decide(&view, &mut assignment);
        if view.active.len() > view.cores() {
            decisions += 1;
            fired += u64::from(timed.inner().is_overloaded());
            ready += view.active.len();
        }
        if timed.latencies.count().is_multiple_of(settings.look_every) && !view.active.is_empty() {
            observation.read(&model.tokenizer, &scale, &view, true);
            if !variant.options.keep_attention && timed.inner().is_overloaded() {
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
    let per_decision = |count: f64| count / decisions.max(1) as f64;
    Ok(Inspected {
        alignment: mean(&alignments),
        entropy: mean(&entropies),
        overruns,
        fired: per_decision(fired as f64),
        ready: per_decision(ready as f64),
    })
}

/// Returns the entropy of a query's attention, in nats.
fn entropy(weights: &[f32]) -> f64 {
    let positive = weights.iter().map(|weight| f64::from(*weight)).filter(|weight| *weight > 0.0);
    positive.map(|weight| -weight * weight.ln()).sum()
}

/// Inspects runs of the network, one after the other, and adds the results under `name`.
fn look_inside(
    findings: &mut Findings,
    variant: &Variant,
    name: &str,
    cases: &[Case],
    settings: &Settings,
) -> Result<(), ReproduceError> {
    let inspected = cases.iter().take(settings.inspected).map(|case| inspect(variant, case, settings));
    let inspected = inspected.collect::<Result<Vec<Inspected>, _>>()?;
    let of = |value: fn(&Inspected) -> f64| inspected.iter().map(value).collect::<Vec<f64>>();
    findings.add(Line::share(format!("alignment_{name}"), of(|seen| seen.alignment)));
    findings.add(Line::lower(format!("entropy_{name}"), Unit::Number, of(|seen| seen.entropy)));
    findings.add(Line::lower(format!("overruns_{name}"), Unit::Share, of(|seen| seen.overruns)));
    findings.add(Line::neither(format!("detector_{name}"), Unit::Share, of(|seen| seen.fired)));
    findings.add(Line::neither(format!("ready_jobs_{name}"), Unit::Number, of(|seen| seen.ready)));
    Ok(())
}

/// Runs the same where late jobs continue, and adds the 95th percentile of the lateness. The contest shows the gain
/// from the mitigations there.
fn continuing(
    context: &Context<'_>,
    findings: &mut Findings,
    settings: &Settings,
    variants: &[Variant],
) -> Result<Contest, ReproduceError> {
    let (protocol, _) = &context.protocol::<Settings>()?;
    let cases = cases(protocol, "continue", settings, settings.late)?;
    let classical = ["edf", "srpt", "mh-edf"].map(String::from);
    let label = "stress, late jobs continue".to_string();
    let bed = TestBed { label, cases, classical: &classical, oracle: None };
    let contest = context.contest_of(&bed, &entrants(context, variants, bed.classical))?;
    for variant in variants {
        let Some(contender) = contest.contender(variant.name) else { continue };
        let name = format!("continuing_{}", variant.name);
        let line =
            contest.line(&format!("compliance_{name}"), contender, Unit::Share, Better::Higher, |run| run.in_time());
        findings.add(line);
        look_inside(findings, variant, &name, &bed.cases, settings)?;
    }
    if let (Some(to), Some(from)) = (contest.contender("mitigated"), contest.contender("unmitigated")) {
        findings.add(Line::order("continuing_gain_of_mitigations", to.lead_over(from, |run| run.in_time())));
    }
    if let (Some(ours), Some(edf)) = (contest.contender("unmitigated"), contest.contender("edf")) {
        let pairs = edf.runs.iter().zip(&ours.runs);
        let saved = pairs.filter_map(|(edf, ours)| Some(1.0 - ours.lateness_p95? / edf.lateness_p95?));
        findings.add(Line::share("lateness_saved_over_edf", saved.collect::<Vec<f64>>()).headline());
    }
    if let Some(shipped) = shipped(&contest, variants) {
        let late = Unit::Milliseconds;
        findings.add(contest.line("lateness_shipped", shipped, late, Better::Lower, |run| run.lateness_p95));
    }
    for name in ["edf", "srpt"] {
        if let Some(contender) = contest.contender(name) {
            let estimate = contender.estimate(|run| run.lateness_p95);
            findings.add(Line::neither(format!("lateness_{name}"), Unit::Milliseconds, estimate));
        }
    }
    Ok(contest)
}

#[cfg(test)]
mod tests {
    use temponet_task::{Task, TaskSet};

    use super::*;

    #[test]
    fn peaks_reach_their_load_and_leave_the_mean_as_it_is() {
        let task = Task::periodic("task", Time(10_000_000), Time(12_500_000));
        let mut case = Case { set: TaskSet::new("one", vec![task], 1), seed: 1, horizon: Time(2_000_000_000) };
        Peak { load: 1.4, every: 0.5, share: 0.25 }.add_to(&mut case);
        let modes = case.set.modes();
        assert_eq!(modes.len(), 8);
        let ends = modes[1..].iter().map(|mode| mode.at).chain([case.horizon]);
        let work: f64 = modes.iter().zip(ends).map(|(mode, end)| mode.work * (end.0 - mode.at.0) as f64).sum();
        assert!((work / case.horizon.0 as f64 - 1.0).abs() < 1e-9, "{work}");
        let load = |mode: &Mode| 1.25 * mode.work;
        assert!((load(&modes[1]) - 1.4).abs() < 1e-9 && (load(&modes[0]) - 1.2).abs() < 1e-9);
    }
}
