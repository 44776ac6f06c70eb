//! Sparse attention compared with dense attention: its time, the bytes it reads, and whether it decides the same.

use std::time::Instant;

use serde::Serialize;
use temponet::stages::{Mapper, Observation, Scale, Tokenizer};
use temponet::{Mapping, Model};
use temponet_infer::{Network, NetworkOptions, Rows, Sparsity};

use super::{MeasureError, Scene, chosen, control};
use crate::stats::nearest_quantile;

/// Greatest number of random decisions that are compared.
const DECISIONS: u64 = 300;
/// Time limit for one number of jobs, in seconds.
const MOST: f64 = 5.0;
const SEED: u64 = 1;
/// Bytes of a key and a value together, at two bytes per number.
const BYTES: usize = 4;

/// Figures for one number of jobs, each with a row of its own.
#[derive(Clone, Debug, Serialize)]
pub struct AttentionFigures {
    /// Number of jobs.
    pub jobs: usize,
    /// Median time of the network with dense attention, in nanoseconds.
    pub dense_ns_p50: f64,
    /// Median time of the network with sparse attention, in nanoseconds.
    pub sparse_ns_p50: f64,
    /// Bytes of the keys and values that dense queries attend to, over all heads and layers, at two bytes per number.
    pub dense_bytes: usize,
    /// Bytes of the keys and values that sparse queries attend to.
    pub sparse_bytes: usize,
    /// Number of decisions compared.
    pub decisions: u64,
    /// Number of decisions in which other jobs get the cores.
    pub differing: u64,
    /// Number of layers of the network.
    pub layers: usize,
    /// Time of one step of the control loop, in nanoseconds.
    pub control_ns: f64,
}

/// Measures one number of jobs, with the full tokenizer, random weights and the fastest kernel.
pub fn measure(jobs: usize, passes: u64) -> Result<AttentionFigures, MeasureError> {
    let model = Model::random(Tokenizer::full(), SEED);
    let shape = &model.weights.architecture;
    let mut network = Network::new(&model.weights, NetworkOptions { rows: jobs + 1, ..NetworkOptions::default() })?;
    let (mut observation, mut mapper) = (Observation::default(), Mapper::default());
    let (mut q, mut differing) = (Vec::new(), 0);
    let decisions = passes.min(DECISIONS);
    let mut times: [Vec<f64>; 2] = Default::default();
    let begin = Instant::now();
    for pass in 0..passes {
        if pass >= decisions && begin.elapsed().as_secs_f64() > MOST {
            break;
        }
        let scene = Scene::new(jobs, pass % decisions);
        let view = scene.view();
        observation.read(&model.tokenizer, &Scale::of(&model.tokenizer, &scene.system), &view, true);
        let sparse = observation.rows();
        let both = [Rows { sparsity: None, ..sparse }, sparse];
        let mut assigned = Vec::new();
        for (rows, times) in both.iter().zip(&mut times) {
            let begin = Instant::now();
            network.forward(rows, &mut q);
            times.push(begin.elapsed().as_nanos() as f64);
            let jobs = observation.jobs().iter().map(|(id, row)| (*id, q[*row as usize]));
            assigned.push(chosen(&mut mapper, Mapping::Greedy, jobs, &view));
        }
        differing += u64::from(pass < decisions && assigned[0] != assigned[1]);
    }
    let [dense, sparse] = times.map(|mut times| nearest_quantile(&mut times, 0.5).unwrap_or(0.0));
    let bytes = |kept: usize| kept * shape.width * shape.layers * BYTES;
    let sparsity = Sparsity::paper(jobs);
    Ok(AttentionFigures {
        jobs,
        dense_ns_p50: dense,
        sparse_ns_p50: sparse,
        dense_bytes: bytes((jobs + 1) * (jobs + 1)),
        sparse_bytes: bytes((0..=jobs).map(|query| sparsity.kept(query, jobs)).sum()),
        decisions,
        differing,
        layers: shape.layers,
        control_ns: control(),
    })
}
