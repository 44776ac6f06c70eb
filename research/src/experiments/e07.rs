//! E7: sparse attention beside dense attention and two rivals, on this CPU. The paper's figures were measured on a GPU;
//! `docs/gpu.md` has ours.

use serde::Deserialize;
use temponet::Model;
use temponet::stages::Tokenizer;

use crate::{Better, Context, Findings, FindingsTable, Line, RepeatedMean, ReproduceError, Unit};
use temponet_bench::attention::{AttentionEffort, AttentionFigures, Method, MethodFigures, measure};
use temponet_lab::stats::mean;
use temponet_page::charts::bars;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Numbers of jobs.
    jobs: Vec<usize>,
    /// The number of jobs that is judged, one of these: the paper's.
    judged: usize,
    /// Number of decisions per measurement of time.
    passes: u64,
    /// Number of decisions that are compared; they are not timed, so their number does not depend on the machine.
    decisions: u64,
    /// Time after which a measurement begins no further decision, in seconds.
    seconds: f64,
    /// Number of decisions in a batch.
    batch: f64,
    /// Number of repetitions of each measurement.
    repeats: usize,
}

/// Repeated measurements for one number of jobs.
struct Measured {
    jobs: usize,
    /// Random weights of the paper's shape, whose time is judged.
    timed: Vec<AttentionFigures>,
    /// The paper's model, whose decisions are compared.
    decided: AttentionFigures,
}

impl Measured {
    /// One number of a method in each repetition.
    fn all(&self, method: Method, value: impl Fn(&AttentionFigures, &MethodFigures) -> f64) -> Vec<f64> {
        self.timed.iter().filter_map(|figures| Some(value(figures, figures.of(method)?))).collect()
    }

    /// Mean time of a forward pass in nanoseconds.
    fn time(&self, method: Method) -> f64 {
        mean(&self.all(method, |_, figures| figures.ns_p50))
    }

    /// Share of the jobs that the paper's model chooses with dense attention, too.
    fn shared(&self, method: Method) -> f64 {
        self.decided.of(method).map_or(0.0, |figures| figures.shared)
    }

    /// Share of decisions of the paper's model in which other jobs are chosen than with dense attention.
    fn differing(&self, method: Method) -> f64 {
        self.decided.of(method).map_or(0.0, |figures| figures.differing as f64 / figures.decisions.max(1) as f64)
    }
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (_, settings) = &context.protocol::<Settings>()?;
    let wrong = |error: &dyn std::fmt::Display| context.protocol_error(error);
    let shape = Model::random(Tokenizer::full(), 1);
    let trained = context.long_trained(context.reading, false)?;
    let effort = AttentionEffort { passes: settings.passes, seconds: settings.seconds };
    let compared = AttentionEffort { passes: settings.decisions, seconds: f64::INFINITY };
    let mut all = Vec::new();
    for &jobs in &settings.jobs {
        let of = |model: &Model, effort| measure(model, jobs, &Method::ALL, effort).map_err(|error| wrong(&error));
        let timed = (0..settings.repeats).map(|_| of(&shape, effort)).collect::<Result<_, _>>()?;
        all.push(Measured { jobs, timed, decided: of(&trained, compared)? });
    }
    let Some(judged) = all.iter().find(|measured| measured.jobs == settings.judged) else {
        return Err(context.protocol_error("the judged number of jobs is not measured"));
    };
    add_lines(findings, judged, settings.batch);
    findings.tables.push(table(&all));
    draw(findings, &all);
    findings.notes.push(
        "the figures of a GPU are printed by cargo run --release -p temponet-paper --features cuda --example attention_cuda -- 600 (docs/gpu.md)".into(),
    );
    context.note_clock(findings);
    findings.judge_claim(&beside(findings, &all));
    Ok(())
}

/// Adds the figures of the judged number of jobs.
fn add_lines(findings: &mut Findings, judged: &Measured, batch: f64) {
    let per_layer = |method| {
        RepeatedMean::of(&judged.all(method, |all, figures| batch * figures.ns_p50 / all.layers.max(1) as f64 / 1e6))
    };
    // The methods of one repetition take turns, so their ratio depends less on the machine's speed than their times.
    let over = |method: Method| {
        let rival = judged.all(method, |_, figures| figures.ns_p50);
        let ours = judged.all(Method::Sparse, |_, figures| figures.ns_p50);
        RepeatedMean::of(&ours.iter().zip(&rival).map(|(ours, rival)| ours / rival).collect::<Vec<f64>>())
    };
    let bytes = |method| mean(&judged.all(method, |_, figures| figures.bytes as f64));
    findings.add(Line::lower("latency_per_layer", Unit::Milliseconds, per_layer(Method::Sparse)));
    findings.add(Line::lower("block_drop_latency_per_layer", Unit::Milliseconds, per_layer(Method::BlockDrop)));
    findings.add(Line::lower("top_keys_latency_per_layer", Unit::Milliseconds, per_layer(Method::TopKeys)));
    findings.add(Line::lower("dense_latency_per_layer", Unit::Milliseconds, per_layer(Method::Dense)));
    findings.add(Line::lower("time_over_top_keys", Unit::Number, over(Method::TopKeys)).headline());
    findings.add(Line::lower("time_over_block_drop", Unit::Number, over(Method::BlockDrop)).headline());
    findings.add(Line::lower("time_over_dense", Unit::Number, over(Method::Dense)));
    // These figures are counted, not timed, and so are the same in every repetition.
    let traffic = |method| bytes(method) / bytes(Method::TopKeys);
    findings.add(Line::lower("memory_traffic", Unit::Number, traffic(Method::Sparse)).headline());
    findings.add(Line::lower("block_drop_traffic", Unit::Number, traffic(Method::BlockDrop)));
    findings.add(Line::lower("dense_traffic", Unit::Number, traffic(Method::Dense)));
    for method in [Method::Sparse, Method::BlockDrop, Method::TopKeys] {
        let name = if method == Method::Sparse { String::new() } else { format!("{}_", method.name()) };
        findings.add(Line::lower(format!("{name}other_decisions"), Unit::Share, judged.differing(method)));
        findings.add(Line::new(format!("{name}same_jobs"), Unit::Share, Better::Higher, judged.shared(method)));
    }
}

/// All numbers of jobs and all methods.
fn table(all: &[Measured]) -> FindingsTable {
    let mut rows = Vec::new();
    for measured in all {
        for method in Method::ALL {
            let counted = |value: fn(&MethodFigures) -> f64| mean(&measured.all(method, |_, figures| value(figures)));
            rows.push(vec![
                measured.jobs.to_string(),
                method.name().replace('_', "-"),
                format!(
                    "{:.1}",
                    measured.time(method) / 1e3 / measured.timed.first().map_or(1, |all| all.layers) as f64
                ),
                format!("{:.2}", measured.time(method) / measured.time(Method::Dense)),
                format!("{:.0}", counted(|figures| figures.keys)),
                format!("{:.0}", counted(|figures| figures.scored)),
                format!("{:.2}", counted(|figures| figures.bytes as f64) / 1e6),
                format!("{:.0}%", 100.0 * measured.differing(method)),
                format!("{:.0}%", 100.0 * measured.shared(method)),
            ]);
        }
    }
    let header = [
        "jobs",
        "attention",
        "µs per layer",
        "time over dense",
        "keys per query",
        "scored per query",
        "keys and values read, MB",
        "other decisions",
        "same jobs",
    ];
    FindingsTable::new("Dense, sparse, and two rivals with as many keys", &header, rows)
}

/// Where sparse attention pays, and where it does not.
fn beside(findings: &Findings, all: &[Measured]) -> String {
    let ratio = |measured: &Measured| {
        let ratio = measured.time(Method::Sparse) / measured.time(Method::Dense);
        let pays = if ratio < 1.0 { "pays" } else { "does not pay" };
        format!("{ratio:.2} times as long with {} jobs ({pays})", measured.jobs)
    };
    format!(
        "the paper's {} ms per layer are of a V100; on this processor a network with sparse attention takes, beside our dense kernel, {}; other jobs than \
         with dense attention are chosen in {} of the decisions (the paper's model, trained with dense attention), and {} of the \
         chosen jobs are the same",
        findings.paper_value("latency_per_layer"),
        all.iter().map(ratio).collect::<Vec<_>>().join(", "),
        findings.percent("other_decisions"),
        findings.percent("same_jobs"),
    )
}

/// Draws the time of a forward pass by method.
fn draw(findings: &mut Findings, all: &[Measured]) {
    let series = Method::ALL.map(|method| {
        let times =
            all.iter().map(|measured| measured.time(method) / measured.time(Method::Dense)).collect::<Vec<f64>>();
        (method.name().replace('_', "-"), times)
    });
    let groups: Vec<String> = all.iter().map(|measured| format!("{} jobs", measured.jobs)).collect();
    let top = series.iter().flat_map(|(_, values)| values).copied().fold(1.0, f64::max);
    let caption = "Median time of a forward pass relative to dense attention; every job is a row of its own.";
    findings.picture("Dense and sparse attention", caption, bars(&groups, &series, top, |value| format!("{value:.2}")));
}
