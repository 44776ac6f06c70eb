//! A comparison, and a single run, as JSON objects: what `--json` prints and what the Python package shows.

use std::collections::BTreeMap;
use temponet_sim::labels;

use serde::Serialize;
use temponet_sim::Histogram;
use temponet_task::Measure;

use super::{Comparison, ComparisonPlan, ComparisonRow};
use crate::advice::{Advice, Decider};
use crate::chain_table::ChainFigures;
use crate::clairvoyant::{Clairvoyant, OptimumRange};
use crate::guarantee::{Guaranteed, JsonGuarantee};

/// A comparison.
#[derive(Serialize)]
pub struct JsonReport<'a> {
    task_set: &'a str,
    cores: usize,
    utilization: f64,
    horizon_ns: u64,
    on_miss: &'static str,
    /// Rule for jobs that share resources; none if there are no resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    costs_ns: JsonCosts,
    seed: u64,
    runs: u64,
    /// Measures that rank the schedulers, the most important one first.
    goal: Vec<String>,
    verdict: String,
    /// What is best, who decides, and what that rests on; the verdict is its sentences.
    advice: Advice,
    /// Role of the shield on this set, in one sentence; absent if no scheduler is behind the shield.
    #[serde(skip_serializing_if = "Option::is_none")]
    shield: Option<String>,
    /// Tasks that the shield guarantees.
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<JsonGuarantee>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clairvoyant: Option<JsonClairvoyant>,
    results: Vec<JsonRow<'a>>,
    skipped: Vec<JsonSkipped<'a>>,
    /// Information in the file of another tool that the task set does not represent.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// Dispatching costs, in nanoseconds.
#[derive(Serialize)]
struct JsonCosts {
    context_switch: u64,
    migration: u64,
    decision: u64,
}

/// Clairvoyant optimum, summed over the runs. Each figure but the last is maximized alone; `met`, `value` and
/// `critical_met` are null where they are not exact.
#[derive(Serialize)]
pub struct JsonClairvoyant {
    exact: bool,
    released: u64,
    met: Option<u64>,
    upper: u64,
    lower: u64,
    value: Option<f64>,
    value_upper: Option<f64>,
    value_lower: Option<f64>,
    critical_met: Option<u64>,
    critical_upper: Option<u64>,
    critical_lower: Option<u64>,
    /// Number of all jobs in time if critical jobs take precedence.
    met_critical_first: Option<u64>,
}

impl From<&Clairvoyant> for JsonClairvoyant {
    fn from(optimum: &Clairvoyant) -> JsonClairvoyant {
        let Clairvoyant { released, met, critical, value, met_critical_first, .. } = *optimum;
        let exact = |range: &OptimumRange| range.is_exact();
        JsonClairvoyant {
            exact: met.is_exact(),
            released,
            met: met.is_exact().then_some(met.lower as u64),
            upper: met.upper as u64,
            lower: met.lower as u64,
            // If every job has the value 1, the greatest value is the greatest number of jobs.
            value: value.unwrap_or(met).is_exact().then_some(value.unwrap_or(met).lower),
            value_upper: value.map(|range| range.upper),
            value_lower: value.map(|range| range.lower),
            critical_met: critical.filter(exact).map(|range| range.lower as u64),
            critical_upper: critical.map(|range| range.upper as u64),
            critical_lower: critical.map(|range| range.lower as u64),
            met_critical_first,
        }
    }
}

/// A scheduler that did not run.
#[derive(Serialize)]
pub struct JsonSkipped<'a> {
    scheduler: &'a str,
    reason: &'a str,
}

impl JsonSkipped<'_> {
    /// Returns the entries of schedulers with their reasons.
    pub fn all(skipped: &[(String, String)]) -> Vec<JsonSkipped<'_>> {
        skipped.iter().map(|(scheduler, reason)| JsonSkipped { scheduler, reason }).collect()
    }
}

/// Figures of a scheduler. Counts are sums over the runs.
#[derive(Serialize)]
pub struct JsonRow<'a> {
    scheduler: &'a str,
    /// Who decides, where the scheduler follows another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    decider: Option<&'a Decider>,
    released: u64,
    met: u64,
    missed: u64,
    /// Share of jobs in time; null if no job counts.
    compliance: Option<f64>,
    /// Distance to the farther end of the 95% confidence interval; null for one run.
    compliance_ci95: Option<f64>,
    /// Ends of the 95% confidence interval; null for one run.
    compliance_interval: Option<[f64; 2]>,
    /// Share of critical jobs in time; null if no job is critical.
    pitmd: Option<f64>,
    /// Share of the clairvoyant optimum; a lower bound if the optimum is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_optimum: Option<f64>,
    run_success: f64,
    /// Measures of the goal, in its order; null if there is nothing to measure.
    goal: Vec<Option<f64>>,
    /// Smallest share of jobs in time over the tasks.
    worst_task: f64,
    /// Share of (m,k) windows that are kept; null if no task has an (m,k) constraint.
    mk_kept: Option<f64>,
    by_criticality: Vec<JsonLevel>,
    value: f64,
    value_possible: f64,
    art_completed_ns: Option<f64>,
    art_all_ns: Option<f64>,
    lateness_mean_ns: Option<f64>,
    lateness_p95_ns: Option<i64>,
    lateness_p99_ns: Option<i64>,
    lateness_max_ns: Option<i64>,
    preemptions: u64,
    migrations: u64,
    decisions: u64,
    idle_ns: u64,
    /// Jobs that left without ever having run. They are among the missed ones.
    shed: u64,
    /// Work done for jobs that missed their deadlines.
    wasted_ns: u64,
    energy: f64,
    /// Counters of the scheduler itself, such as `shield_overrides` and `fallbacks`.
    #[serde(flatten)]
    counters: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_latency_ns: Option<JsonLatency>,
    tasks: Vec<JsonTask<'a>>,
    /// Jobs that were never released, because a job that they come after did not complete. They are among the missed
    /// ones.
    #[serde(skip_serializing_if = "is_zero")]
    unreleased: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chains: Vec<JsonChain<'a>>,
}

/// Figures of a chain.
#[derive(Serialize)]
struct JsonChain<'a> {
    chain: &'a str,
    deadline_ns: Option<u64>,
    communication: &'static str,
    instances: u64,
    /// Instances within the end-to-end deadline; null without one.
    met: Option<u64>,
    /// Instances of a chain of `after` alone that have no output.
    lost: u64,
    reaction_mean_ns: Option<f64>,
    reaction_p99_ns: Option<f64>,
    reaction_max_ns: Option<f64>,
    age_mean_ns: Option<f64>,
    age_p99_ns: Option<f64>,
    age_max_ns: Option<f64>,
}

impl<'a> From<ChainFigures<'a>> for JsonChain<'a> {
    fn from(figures: ChainFigures<'a>) -> JsonChain<'a> {
        let [reaction_mean_ns, reaction_p99_ns, reaction_max_ns, age_mean_ns, age_p99_ns, age_max_ns] = figures.times();
        let ChainFigures { chain, metrics } = figures;
        JsonChain {
            chain: &chain.name,
            deadline_ns: chain.deadline.map(|deadline| deadline.0),
            communication: chain.communication.name(),
            instances: metrics.instances.released,
            met: chain.deadline.map(|_| metrics.instances.met),
            lost: metrics.lost,
            reaction_mean_ns,
            reaction_p99_ns,
            reaction_max_ns,
            age_mean_ns,
            age_p99_ns,
            age_max_ns,
        }
    }
}

/// A single run: the run and the figures of the scheduler, as in a comparison.
#[derive(Serialize)]
pub struct JsonRun<'a> {
    task_set: &'a str,
    cores: usize,
    horizon_ns: u64,
    on_miss: &'static str,
    /// Rule for jobs that share resources; none if there are no resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    seed: u64,
    /// Information in the file of another tool that the task set does not represent.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(flatten)]
    row: JsonRow<'a>,
}

impl<'a> JsonRun<'a> {
    /// Returns the report of the first run of a plan, with the notes on an imported file.
    pub fn of(row: &'a ComparisonRow, plan: &'a ComparisonPlan, notes: &'a [String]) -> JsonRun<'a> {
        JsonRun {
            task_set: &plan.set.name,
            cores: plan.set.cores(),
            horizon_ns: plan.horizon.0,
            on_miss: plan.set.on_miss().name(),
            protocol: plan.set.has_sections().then(|| plan.set.protocol().name()),
            seed: plan.seed,
            notes,
            row: JsonRow::of(row, plan, None),
        }
    }
}

#[derive(Serialize)]
struct JsonLevel {
    criticality: usize,
    released: u64,
    met: u64,
}

/// Quantiles of a latency, in nanoseconds.
#[derive(Serialize)]
pub struct JsonLatency {
    p50: Option<i64>,
    p99: Option<i64>,
    p999: Option<i64>,
    max: Option<i64>,
}

#[derive(Serialize)]
struct JsonTask<'a> {
    task: &'a str,
    released: u64,
    met: u64,
    #[serde(skip_serializing_if = "is_zero")]
    mk_violated: u64,
    response_mean_ns: Option<f64>,
    response_max_ns: Option<u64>,
    /// Mean and longest time for which its jobs waited for resources, if tasks share any.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_mean_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_max_ns: Option<u64>,
}

impl<'a> JsonReport<'a> {
    /// Returns the report of a comparison, with the notes on an imported file.
    pub fn of(comparison: &'a Comparison, notes: &'a [String]) -> JsonReport<'a> {
        let plan = &comparison.plan;
        let advice = comparison.advice();
        let guaranteed = comparison.shield.clone().map(|role| Guaranteed::with(&plan.set, role));
        JsonReport {
            task_set: &plan.set.name,
            cores: plan.set.cores(),
            utilization: plan.set.utilization(),
            horizon_ns: plan.horizon.0,
            on_miss: plan.set.on_miss().name(),
            protocol: plan.set.has_sections().then(|| plan.set.protocol().name()),
            costs_ns: JsonCosts {
                context_switch: plan.set.costs().context_switch.0,
                migration: plan.set.costs().migration.0,
                decision: plan.set.costs().decision.0,
            },
            seed: plan.seed,
            runs: plan.runs,
            goal: plan.goal.measures().iter().map(|measure| labels::measure(&plan.goal, *measure)).collect(),
            verdict: advice.verdict(),
            advice,
            shield: guaranteed.as_ref().map(Guaranteed::sentence),
            guarantee: guaranteed.as_ref().map(Guaranteed::json),
            clairvoyant: comparison.clairvoyant.as_ref().map(JsonClairvoyant::from),
            results: comparison.rows.iter().map(|row| JsonRow::of(row, plan, comparison.of_optimum(row))).collect(),
            skipped: JsonSkipped::all(&comparison.skipped),
            notes,
        }
    }
}

impl JsonLatency {
    /// Returns the quantiles of a histogram.
    pub fn of(histogram: &Histogram) -> JsonLatency {
        JsonLatency {
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            max: histogram.max(),
        }
    }
}

impl<'a> JsonRow<'a> {
    /// Returns the figures of a row of this plan.
    pub fn of(row: &'a ComparisonRow, plan: &'a ComparisonPlan, of_optimum: Option<f64>) -> JsonRow<'a> {
        let metrics = &row.metrics;
        let levels = metrics.by_criticality.iter().enumerate().filter(|(_, count)| count.released > 0);
        JsonRow {
            scheduler: &row.scheduler,
            decider: row.decider.as_ref(),
            released: metrics.jobs.released,
            met: metrics.jobs.met,
            missed: metrics.missed(),
            compliance: (metrics.jobs.released > 0).then(|| metrics.jobs.compliance()),
            compliance_ci95: row.ci95(),
            compliance_interval: row.interval().map(|interval| [interval.low, interval.high]),
            pitmd: metrics.pitmd(),
            of_optimum,
            run_success: metrics.successful_runs as f64 / metrics.runs.max(1) as f64,
            goal: plan.goal.measures().iter().map(|measure| metrics.measured(*measure)).collect(),
            worst_task: metrics.score(Measure::WorstTask),
            mk_kept: plan.set.tasks().iter().any(|task| task.mk.is_some()).then(|| metrics.score(Measure::Mk)),
            by_criticality: levels
                .map(|(criticality, count)| JsonLevel { criticality, released: count.released, met: count.met })
                .collect(),
            value: metrics.value,
            value_possible: metrics.value_possible,
            art_completed_ns: metrics.art_completed(),
            art_all_ns: metrics.art_all(),
            lateness_mean_ns: metrics.lateness.mean(),
            lateness_p95_ns: metrics.lateness.quantile(0.95),
            lateness_p99_ns: metrics.lateness.quantile(0.99),
            lateness_max_ns: metrics.lateness.max(),
            preemptions: metrics.preemptions,
            migrations: metrics.migrations,
            decisions: metrics.decisions,
            idle_ns: metrics.idle_ns.try_into().unwrap_or(u64::MAX),
            shed: metrics.shed,
            wasted_ns: metrics.wasted_ns.try_into().unwrap_or(u64::MAX),
            energy: metrics.energy,
            counters: row.counters.iter().copied().collect(),
            decision_latency_ns: row.latency.as_ref().map(JsonLatency::of),
            tasks: plan
                .set
                .tasks()
                .iter()
                .zip(&metrics.tasks)
                .filter(|(task, _)| !task.is_part)
                .map(|(task, figures)| JsonTask {
                    task: &task.name,
                    released: figures.jobs.released,
                    met: figures.jobs.met,
                    mk_violated: figures.windows.violated,
                    response_mean_ns: (figures.completed > 0)
                        .then(|| figures.response_sum as f64 / figures.completed as f64),
                    response_max_ns: (figures.completed > 0).then_some(figures.response_max.0),
                    blocked_mean_ns: figures.blocked_mean().filter(|_| plan.set.has_sections()),
                    blocked_max_ns: plan.set.has_sections().then_some(figures.blocked_max.0),
                })
                .collect(),
            unreleased: metrics.unreleased,
            chains: ChainFigures::of(&plan.set, row).map(JsonChain::from).collect(),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
