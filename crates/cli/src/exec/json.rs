//! The results of `exec` as a JSON object. Rows have the fields of `compare --json`, and those that only a machine has.

use serde::Serialize;
use temponet_runtime::platform_sheet::PlatformSheet;
use temponet_sim::labels;

use super::outcome::{ExecResult, Measured};
use temponet_lab::advice::{Advice, Premise};
use temponet_lab::comparison::json::{JsonLatency, JsonRow, JsonSkipped};

#[derive(Serialize)]
pub struct ExecJson<'a> {
    task_set: &'a str,
    cores: usize,
    utilization: f64,
    horizon_ns: u64,
    on_miss: &'static str,
    seed: u64,
    runs: u64,
    goal: Vec<String>,
    verdict: String,
    advice: Advice,
    /// What was assumed of the machine, what was measured, and whether it held.
    premise: Option<&'a Premise>,
    platform: JsonSheet<'a>,
    results: Vec<JsonExecRow<'a>>,
    skipped: Vec<JsonSkipped<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct JsonSheet<'a> {
    kernel: &'a str,
    machine: &'a str,
    hz: Option<u64>,
    preemption: &'a str,
    isolated: &'a str,
    nohz_full: &'a str,
    throttling: &'a str,
    clock_source: &'a str,
    /// Share of the processors' time that the host of a virtual machine took; null where that cannot be told.
    stolen_share: Option<f64>,
    timers: Vec<JsonTimer>,
    /// The least that the kernel has to do for a switch; null if it was not measured.
    bare_switch_ns: Option<JsonLatency>,
}

#[derive(Serialize)]
struct JsonTimer {
    cpu: usize,
    late_ns: JsonLatency,
}

#[derive(Serialize)]
struct JsonExecRow<'a> {
    #[serde(flatten)]
    row: JsonRow<'a>,
    /// Share of jobs in time in the simulator, with the same jobs and the measured costs; null if nothing there decides
    /// alike.
    simulated_compliance: Option<f64>,
    /// Measured share less simulated share, in percentage points.
    difference_points: Option<f64>,
    /// Costs that the simulator was told.
    context_switch_ns: u64,
    decision_ns: u64,
    start_latency_ns: JsonLatency,
    /// Parts of the time from a release to the order to switch.
    timer_latency_ns: JsonLatency,
    charge_latency_ns: JsonLatency,
    release_latency_ns: JsonLatency,
    order_latency_ns: JsonLatency,
    switch_latency_ns: JsonLatency,
    /// Median switch as a multiple of the median bare one.
    switch_against_bare: Option<f64>,
    /// Latency of answers of the learned scheduler; null if it was not asked.
    answer_latency_ns: Option<JsonLatency>,
    dispatcher_share: Option<f64>,
    answers_adopted: u64,
    answers_agreed: u64,
    answers_overtaken: u64,
    overruns: u64,
    releases_skipped: u64,
    lost: &'a [String],
}

impl<'a> ExecJson<'a> {
    pub fn of(result: &'a ExecResult) -> ExecJson<'a> {
        let (comparison, plan) = (&result.comparison, &result.comparison.plan);
        let rows = comparison.rows.iter().zip(&result.measured);
        let advice = comparison.advice();
        ExecJson {
            task_set: &plan.set.name,
            cores: plan.set.cores(),
            utilization: plan.set.utilization(),
            horizon_ns: plan.horizon.0,
            on_miss: plan.set.on_miss().name(),
            seed: plan.seed,
            runs: plan.runs,
            goal: plan.goal.measures().iter().map(|measure| labels::measure(&plan.goal, *measure)).collect(),
            verdict: advice.verdict(),
            advice,
            premise: comparison.premise.as_ref(),
            platform: JsonSheet::of(&result.sheet, result.stolen),
            results: rows
                .map(|(row, measured)| {
                    JsonExecRow::of(
                        JsonRow::of(row, plan, comparison.of_optimum(row)),
                        row.metrics.jobs.compliance(),
                        measured,
                        &result.sheet,
                    )
                })
                .collect(),
            skipped: JsonSkipped::all(&comparison.skipped),
            notes: &result.notes,
        }
    }
}

impl<'a> JsonSheet<'a> {
    fn of(sheet: &'a PlatformSheet, stolen_share: Option<f64>) -> JsonSheet<'a> {
        let timer = |timer: &temponet_runtime::platform_sheet::TimerLatency| JsonTimer {
            cpu: timer.cpu,
            late_ns: JsonLatency::of(&timer.late_ns),
        };
        JsonSheet {
            kernel: &sheet.kernel,
            machine: &sheet.machine,
            hz: sheet.hz,
            preemption: &sheet.preemption,
            isolated: &sheet.isolated,
            nohz_full: &sheet.no_ticks,
            throttling: &sheet.throttling,
            clock_source: &sheet.clock,
            stolen_share,
            timers: sheet.timers.iter().map(timer).collect(),
            bare_switch_ns: sheet.bare_switch.as_ref().map(|bare| JsonLatency::of(&bare.took_ns)),
        }
    }
}

impl<'a> JsonExecRow<'a> {
    fn of(row: JsonRow<'a>, met: f64, measured: &'a Measured, sheet: &PlatformSheet) -> JsonExecRow<'a> {
        let simulated = measured.simulated_share();
        let answers = &measured.latencies.answer;
        JsonExecRow {
            row,
            simulated_compliance: simulated,
            difference_points: simulated.map(|simulated| 100.0 * (met - simulated)),
            context_switch_ns: measured.costs.context_switch.0,
            decision_ns: measured.costs.decision.0,
            start_latency_ns: JsonLatency::of(&measured.latencies.start),
            timer_latency_ns: JsonLatency::of(&measured.latencies.timer),
            charge_latency_ns: JsonLatency::of(&measured.latencies.charge),
            release_latency_ns: JsonLatency::of(&measured.latencies.release),
            order_latency_ns: JsonLatency::of(&measured.latencies.order),
            switch_latency_ns: JsonLatency::of(&measured.latencies.switch),
            switch_against_bare: measured.against_bare(sheet),
            answer_latency_ns: (answers.count() > 0).then(|| JsonLatency::of(answers)),
            dispatcher_share: measured.dispatcher,
            answers_adopted: measured.counts.adopted,
            answers_agreed: measured.counts.agreed,
            answers_overtaken: measured.counts.overtaken,
            overruns: measured.counts.overruns,
            releases_skipped: measured.counts.skipped,
            lost: &measured.lost,
        }
    }
}
