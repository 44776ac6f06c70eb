//! The time of a whole decision of the learned scheduler, and of its parts: tokens, network, mapping.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use temponet::stages::{Learned, Mapper, Observation, Scale};
use temponet::{Mapping, Model, Options};
use temponet_infer::{Kernel, Network, NetworkOptions};
use temponet_task::{Assignment, Scheduler};

use crate::scene::{CORES, Scene};
use crate::{MeasureError, control};
use temponet_lab::stats::nearest_quantile;

/// Quantile that stands for a machine without other load.
pub const BEST: f64 = 0.01;

/// How much to measure.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimingEffort {
    /// Number of decisions.
    pub passes: u64,
    /// Number of times the control loop is timed among the parts, and again among the whole decisions; zero for never.
    pub controls: u64,
    /// Mapping from Q-values to cores.
    pub mapping: Mapping,
    /// Kernel of the network; `None` for the fastest one.
    pub kernel: Option<Kernel>,
}

/// Times of one number of jobs, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionFigures {
    /// Name of the model.
    pub model: &'static str,
    /// Number of ready jobs.
    pub n: usize,
    /// Number of distinct tokens: rows of the network, without the idle one.
    pub distinct: usize,
    /// 1% quantile of the time from jobs to tokens.
    pub tokens_ns_best: f64,
    /// Median time from jobs to tokens.
    pub tokens_ns_p50: f64,
    /// 1% quantile of the time of the network.
    pub encoder_ns_best: f64,
    /// Median time of the network.
    pub encoder_ns_p50: f64,
    /// 1% quantile of the time from Q-values to cores.
    pub mapping_ns_best: f64,
    /// Median time from Q-values to cores.
    pub mapping_ns_p50: f64,
    /// 1% quantile of the time of the whole decision.
    pub end_to_end_ns_best: f64,
    /// Median time of the whole decision.
    pub end_to_end_ns_p50: f64,
    /// Median absolute deviation of the time of the whole decision.
    pub end_to_end_ns_mad: f64,
    /// 99% quantile of the time of the whole decision.
    pub end_to_end_ns_p99: f64,
    /// 99.9% quantile of the time of the whole decision.
    pub end_to_end_ns_p999: f64,
    /// Median time of one step of the control loop; zero if it was not timed.
    pub control_ns_p50: f64,
    /// 99% quantile of the time of one step of the control loop; zero if it was not timed.
    pub control_ns_p99: f64,
}

/// Times decisions among `n` jobs.
pub fn measure(
    name: &'static str,
    model: &Arc<Model>,
    n: usize,
    effort: TimingEffort,
) -> Result<DecisionFigures, MeasureError> {
    let TimingEffort { passes, controls: wanted, mapping, kernel } = effort;
    let options = kernel.map_or_else(NetworkOptions::default, NetworkOptions::of);
    let scene = Scene::new(n, n as u64);
    let view = scene.view();
    let mut scheduler = Learned::new(model.clone(), Options { mapping, network: options, ..Options::default() })?;
    scheduler.start(&scene.system)?;
    let mut network = Network::new(&model.weights, options)?;
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
    // Whole decisions are timed after the parts, not in turn with them: the scheduler has its own network, and the
    // caches have no room for two.
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
        tokens_ns_best: quantile(tokens, BEST),
        tokens_ns_p50: quantile(tokens, 0.5),
        encoder_ns_best: quantile(encoder, BEST),
        encoder_ns_p50: quantile(encoder, 0.5),
        mapping_ns_best: quantile(mapping, BEST),
        mapping_ns_p50: quantile(mapping, 0.5),
        end_to_end_ns_best: quantile(whole, BEST),
        end_to_end_ns_p50: middle,
        end_to_end_ns_mad: quantile(&mut distances, 0.5),
        end_to_end_ns_p99: quantile(whole, 0.99),
        end_to_end_ns_p999: quantile(whole, 0.999),
        control_ns_p50: quantile(&mut controls, 0.5),
        control_ns_p99: quantile(&mut controls, 0.99),
    })
}

/// Returns the quantile of some times; zero if there are none.
fn quantile(times: &mut [f64], share: f64) -> f64 {
    nearest_quantile(times, share).unwrap_or(0.0)
}
