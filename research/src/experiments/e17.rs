//! E17: growth of the decision time with the number of jobs, fitted by a power law.

use std::sync::Arc;

use serde::Deserialize;
use temponet::Model;
use temponet::stages::Tokenizer;

use crate::findings::words;
use crate::plots::{Curve, log_panel};
use crate::{Better, Context, Findings, Line, ReproduceError, Unit};
use temponet_bench::attention::Method;
use temponet_bench::{attention, decision};
use temponet_lab::comparison::CompareError;
use temponet_lab::latency::Timed;
use temponet_lab::stats::{power_law, quantile};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Numbers of jobs that the judged law is fitted to: the paper's range.
    jobs: Vec<usize>,
    /// Greater numbers of jobs, for a law that is fitted to all.
    beyond: Vec<usize>,
    /// Numbers of jobs among which DIOS and MHQISSO decide.
    simple: Vec<usize>,
    /// Number of passes per measurement.
    passes: u64,
    /// Time after which a measurement begins no further pass, in seconds.
    seconds: f64,
}

/// Simple schedulers whose growth the paper states: name and specification.
const SIMPLE: [(&str, &str); 2] = [("dios", "dios"), ("mhqisso", "mhqisso:evaluations=30")];
/// Number of times that the decision of a simple scheduler is timed.
const REPEATS: usize = 5;
/// Number of times as long as the least pass a pass has to take, so that constants do not make up most of it.
const ABOVE_CONSTANTS: f64 = 4.0;

/// Returns the points of a curve at which constants do not make up most of the time; all of them if there are not three.
fn without_constants(curve: &[(f64, f64)]) -> Curve {
    let least = curve.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    let above: Curve = curve.iter().copied().filter(|(_, time)| *time >= ABOVE_CONSTANTS * least).collect();
    if above.len() < 3 { curve.to_vec() } else { above }
}

/// Returns the median time in which a scheduler decides among ready jobs, in microseconds.
fn deciding(context: &Context<'_>, spec: &str, jobs: usize) -> Result<f64, ReproduceError> {
    let task = |index: usize| {
        let wcet = Time::from_us(500 + (index as u64 * 7919) % 1000);
        Task::periodic(
            format!("t{index}"),
            Time::from_us(wcet.0 / 1000 + 1000 + (index as u64 * 104_729) % 32_000),
            wcet,
        )
    };
    let set = TaskSet::new("ready", (0..jobs).map(task).collect(), 8);
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let mut timed = Timed::new(context.roster.build(spec).map_err(CompareError::from)?);
        simulate(&set, 1, Time::from_us(1), &mut timed, &mut Unobserved)?;
        times.push(timed.latencies.mean().unwrap_or(f64::NAN) / 1e3);
    }
    Ok(quantile(&times, 0.5).unwrap_or(f64::NAN))
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (_, settings) = &context.protocol::<Settings>()?;
    let effort = decision::TimingEffort { passes: settings.passes, ..Default::default() };
    let model = Arc::new(Model::random(Tokenizer::paper(), 1));
    let full = Model::random(Tokenizer::full(), 1);
    let limits = attention::AttentionEffort { passes: settings.passes, seconds: settings.seconds };
    let methods = [Method::Sparse, Method::Dense];
    // Sparse and dense attention with one row for each job, and our default with distinct rows only.
    let mut curves: Vec<Curve> = vec![Vec::new(); 3];
    for jobs in settings.jobs.iter().chain(&settings.beyond) {
        let wrong = |error: temponet_bench::MeasureError| context.protocol_error(error);
        let by_job = attention::measure(&full, *jobs, &methods, limits).map_err(wrong)?;
        let distinct = decision::measure("paper", &model, *jobs, effort).map_err(wrong)?;
        let times = by_job.methods.iter().map(|figures| figures.ns_p50).chain([distinct.end_to_end_ns_p50]);
        curves.iter_mut().zip(times).for_each(|(curve, ns)| curve.push((*jobs as f64, ns / 1e3)));
    }
    let names = ["sparse", "dense", "distinct_rows"];
    let most = settings.beyond.iter().max().copied();
    let mut sentences = Vec::new();
    for (name, curve) in names.into_iter().zip(&curves) {
        let all = &curve[..settings.jobs.len()];
        let whole = power_law(all);
        findings.add(Line::lower(format!("{name}_exponent_with_constants"), Unit::Number, whole.exponent));
        let law = power_law(&without_constants(all));
        let exponent = Line::lower(format!("{name}_exponent"), Unit::Number, law.exponent);
        findings.add(exponent.headline_if(name == "sparse"));
        findings.add(Line::new(format!("{name}_r_squared"), Unit::Number, Better::Higher, law.r_squared));
        let mut sentence = format!("{} N^{:.2} (R² = {:.3}", words(name), law.exponent, law.r_squared);
        if let Some(most) = most {
            let law = power_law(curve);
            findings.add(Line::lower(format!("{name}_exponent_to_{most}"), Unit::Number, law.exponent));
            sentence += &format!("; up to {most} jobs N^{:.2}", law.exponent);
        }
        sentences.push(sentence + ")");
    }
    for (name, spec) in SIMPLE {
        let mut curve: Curve = Vec::new();
        for jobs in &settings.simple {
            curve.push((*jobs as f64, deciding(context, spec, *jobs)?));
        }
        let law = power_law(&without_constants(&curve));
        findings.add(Line::neither(format!("{name}_exponent"), Unit::Number, law.exponent));
        findings.add(Line::new(format!("{name}_r_squared"), Unit::Number, Better::Higher, law.r_squared));
        sentences.push(format!("{name} N^{:.2} (R² = {:.3})", law.exponent, law.r_squared));
        curves.push(curve);
    }
    let panel = log_panel("Median time, µs", "jobs", curves);
    let legend = ["sparse attention".to_string(), "dense attention".into(), "distinct rows, whole decision".into()];
    let legend: Vec<String> = legend.into_iter().chain(SIMPLE.map(|(name, _)| name.to_string())).collect();
    let caption = "Both axes are logarithmic: a power law is a line.";
    findings.plot("Time over the number of jobs", caption, panel, &legend);
    let beside = format!(
        "the time of a whole pass grows as {}; full attention inside ⌈ln N⌉ chunks is N²/ln N in the end, as the paper's own appendix says",
        sentences.join(", ")
    );
    context.note_clock(findings);
    findings.judge(&beside);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_is_fitted_where_constants_do_not_make_up_most_of_the_time() {
        let curve: Curve = [10.0, 20.0, 50.0, 100.0, 200.0, 400.0].map(|n: f64| (n, 100.0 + n * n / 25.0)).to_vec();
        let above = without_constants(&curve);
        assert_eq!(above.iter().map(|(n, _)| *n).collect::<Vec<f64>>(), [100.0, 200.0, 400.0]);
        assert!(power_law(&above).exponent > 1.5 && power_law(&curve).exponent < 1.3);
        assert_eq!(without_constants(&curve[..4]).len(), 4, "too few are above");
    }
}
