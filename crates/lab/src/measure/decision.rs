//! A whole decision of the learned scheduler: tokens, network, mapping.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use temponet::{Learned, Mapper, Mapping, Model, Observation, Options, Scale};
use temponet_infer::Network;
use temponet_task::{Assignment, Scheduler};

use super::{CORES, MeasureError, Scene, control};

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct TimingEffort {
    /// Decisions.
    pub passes: u64,
    /// How often the control loop is timed between them, twice; none: not at all.
    pub controls: u64,
    /// From Q-values to cores.
    pub mapping: Mapping,
}

/// What one number of jobs takes; times in ns.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionFigures {
    /// How the model is called.
    pub model: &'static str,
    /// Ready jobs.
    pub n: usize,
    /// Rows of the network, without the idle one.
    pub distinct: usize,
    /// The fallback took the whole decisions: this many jobs are beyond the model's reach.
    pub is_fallback: bool,
    /// From jobs to rows.
    pub tokens_ns_p50: f64,
    /// The network.
    pub encoder_ns_p50: f64,
    /// From Q-values to cores.
    pub mapping_ns_p50: f64,
    /// The whole decision.
    pub end_to_end_ns_p50: f64,
    /// Its median distance from the median.
    pub end_to_end_ns_mad: f64,
    /// What 99% do not exceed.
    pub end_to_end_ns_p99: f64,
    /// What 99.9% do not exceed.
    pub end_to_end_ns_p999: f64,
    /// One step of the control loop; zero where it was not timed.
    pub control_ns_p50: f64,
    /// The same of the slowest.
    pub control_ns_p99: f64,
}

/// Times decisions among `n` jobs.
pub fn measure(
    name: &'static str,
    model: &Arc<Model>,
    n: usize,
    effort: TimingEffort,
) -> Result<DecisionFigures, MeasureError> {
    let TimingEffort { passes, controls: wanted, mapping } = effort;
    let scene = Scene::new(n, n as u64);
    let view = scene.view();
    let mut scheduler = Learned::new(model.clone(), Options { mapping, ..Options::default() })?;
    scheduler.start(&scene.system)?;
    let mut network = Network::new(&model.weights, temponet_infer::Options::default())?;
    let (scale, mut observation, mut mapper) =
        (Scale::of(&model.tokenizer, &scene.system), Observation::default(), Mapper::default());
    let (mut assignment, mut q) = (Assignment::default(), Vec::new());
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut controls = Vec::new();
    let ns = |begin: Instant| begin.elapsed().as_nanos() as f64;
    let is_control = |pass: u64| wanted > 0 && pass.is_multiple_of((passes / wanted).max(1));
    for pass in 0..passes {
        let begin = Instant::now();
        observation.read(&model.tokenizer, &scale, &view, false);
        let tokens = ns(begin);
        let begin = Instant::now();
        network.forward(&observation.rows(), &mut q);
        let encoder = ns(begin);
        assignment.reset(CORES);
        let begin = Instant::now();
        let jobs = observation.jobs().iter().map(|(id, row)| (*id, q[*row as usize]));
        mapper.assign(mapping, jobs, f32::NEG_INFINITY, &view, &mut assignment);
        for (times, time) in times.iter_mut().zip([tokens, encoder, ns(begin)]) {
            times.push(time);
        }
        if is_control(pass) {
            controls.push(control());
        }
    }
    // Not in turn with the parts: the scheduler has a network of its own, and the caches have no room for two.
    for pass in 0..passes {
        assignment.reset(CORES);
        let begin = Instant::now();
        scheduler.decide(&view, &mut assignment);
        times[3].push(ns(begin));
        if is_control(pass) {
            controls.push(control());
        }
    }
    let [tokens, encoder, mapping, whole] = &mut times;
    let middle = quantile(whole, 0.5);
    let mut distances: Vec<f64> = whole.iter().map(|time| (time - middle).abs()).collect();
    Ok(DecisionFigures {
        model: name,
        n,
        distinct: observation.distinct(),
        is_fallback: scheduler.counters().contains(&("fallbacks", passes)),
        tokens_ns_p50: quantile(tokens, 0.5),
        encoder_ns_p50: quantile(encoder, 0.5),
        mapping_ns_p50: quantile(mapping, 0.5),
        end_to_end_ns_p50: middle,
        end_to_end_ns_mad: quantile(&mut distances, 0.5),
        end_to_end_ns_p99: quantile(whole, 0.99),
        end_to_end_ns_p999: quantile(whole, 0.999),
        control_ns_p50: quantile(&mut controls, 0.5),
        control_ns_p99: quantile(&mut controls, 0.99),
    })
}

/// The value of a share of them; zero if there are none.
fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get((times.len().saturating_sub(1) as f64 * share).round() as usize).copied().unwrap_or(0.0)
}
