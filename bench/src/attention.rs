//! Dense attention, sparse attention and its two rivals: their time, what they read, and whether they decide the same.

use std::time::Instant;

use serde::Serialize;
use temponet::stages::{Mapper, Observation, Scale};
use temponet::{Mapping, Model};
use temponet_infer::{AttentionWork, Network, NetworkOptions, Rows, Rule, Sparsity};
use temponet_task::JobId;

use crate::scene::{Scene, chosen};
use crate::{MeasureError, control};
use temponet_lab::stats::nearest_quantile;

/// Least number of passes, whatever time they take.
const LEAST: u64 = 3;

/// A kind of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Every query attends to all keys.
    Dense,
    /// The paper's: deadline-sorted chunks, and blocks that are chosen by summaries.
    Sparse,
    /// Rival: whole blocks are dropped by their summaries, and nothing of them is kept.
    BlockDrop,
    /// Rival: each query keeps its best keys of all.
    TopKeys,
}

impl Method {
    /// All methods, dense attention first.
    pub const ALL: [Method; 4] = [Method::Dense, Method::Sparse, Method::BlockDrop, Method::TopKeys];

    /// Returns the name, as in JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::Dense => "dense",
            Method::Sparse => "sparse",
            Method::BlockDrop => "block_drop",
            Method::TopKeys => "top_keys",
        }
    }

    /// Parameters of the method for this many jobs. The rivals get as many keys per query as sparse attention keeps;
    /// block-drop as near as whole blocks allow.
    fn sparsity(self, jobs: usize, keys: f64) -> Option<Sparsity> {
        let paper = Sparsity::paper(jobs);
        match self {
            Method::Dense => None,
            Method::Sparse => Some(paper),
            Method::BlockDrop => {
                let keep = ((keys - 1.0) / paper.block as f64).round().max(1.0) as usize;
                Some(Sparsity { rule: Rule::BlockDrop, keep, ..paper })
            }
            Method::TopKeys => {
                Some(Sparsity { rule: Rule::TopKeys, keep: (keys - 1.0).round().max(1.0) as usize, ..paper })
            }
        }
    }
}

/// Figures of one method.
#[derive(Clone, Debug, Serialize)]
pub struct MethodFigures {
    /// The method.
    pub method: Method,
    /// Median time of a forward pass of the whole network, in nanoseconds.
    pub ns_p50: f64,
    /// Mean number of keys that a query attends to, of the first decision.
    pub keys: f64,
    /// Mean number of keys that a query is scored with, of the first decision.
    pub scored: f64,
    /// Bytes of keys and values that the kernel read in the first decision, over all heads and layers; see
    /// [`AttentionWork::bytes`].
    pub bytes: u64,
    /// Number of decisions that were taken and compared.
    pub decisions: u64,
    /// Number of decisions in which other jobs get the cores than with dense attention.
    pub differing: u64,
    /// Mean share of the chosen jobs that dense attention chooses, too; 0 to 1.
    pub shared: f64,
}

/// Figures for one number of jobs, each with a row of its own in deadline order.
#[derive(Clone, Debug, Serialize)]
pub struct AttentionFigures {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of layers of the network.
    pub layers: usize,
    /// Figures of each method.
    pub methods: Vec<MethodFigures>,
    /// Time of one step of the control loop, in nanoseconds.
    pub control_ns: f64,
}

impl AttentionFigures {
    /// Returns the figures of a method, if it was measured.
    pub fn of(&self, method: Method) -> Option<&MethodFigures> {
        self.methods.iter().find(|figures| figures.method == method)
    }
}

/// Limits of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct AttentionEffort {
    /// Number of decisions; each is a forward pass of every method.
    pub passes: u64,
    /// Time after which no further decision begins, in seconds. Three are always taken.
    pub seconds: f64,
}

/// Measures a model with one number of jobs and the fastest kernel; the methods take turns. [`Method::TopKeys`] is
/// measured after the others, because it takes so long that a busy machine would interrupt whatever comes next.
pub fn measure(
    model: &Model,
    jobs: usize,
    methods: &[Method],
    effort: AttentionEffort,
) -> Result<AttentionFigures, MeasureError> {
    let quick: Vec<Method> = methods.iter().copied().filter(|method| *method != Method::TopKeys).collect();
    let mut figures = measure_in_turns(model, jobs, &quick, effort)?;
    if methods.contains(&Method::TopKeys) {
        let slow = measure_in_turns(model, jobs, &[Method::Dense, Method::TopKeys], effort)?;
        figures.methods.extend(slow.methods.into_iter().filter(|figures| figures.method == Method::TopKeys));
    }
    Ok(figures)
}

/// Measures a model with one number of jobs and the fastest kernel. The methods take turns, and are compared with the
/// first, which should be [`Method::Dense`]. Each decision is of other jobs.
fn measure_in_turns(
    model: &Model,
    jobs: usize,
    methods: &[Method],
    effort: AttentionEffort,
) -> Result<AttentionFigures, MeasureError> {
    let shape = &model.weights.architecture;
    let mut network = Network::new(&model.weights, NetworkOptions { rows: jobs + 1, ..NetworkOptions::default() })?;
    let (mut observation, mut mapper, mut q) = (Observation::default(), Mapper::default(), Vec::new());
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); methods.len()];
    let mut work: Vec<AttentionWork> = vec![AttentionWork::default(); methods.len()];
    let (mut differing, mut shared, mut decisions) = (vec![0; methods.len()], vec![0.0; methods.len()], 0);
    let queries = (shape.layers * shape.heads * (jobs + 1)).max(1) as f64;
    let mut kept = None;
    let begin = Instant::now();
    while decisions < effort.passes && (decisions < LEAST || begin.elapsed().as_secs_f64() < effort.seconds) {
        let scene = Scene::new(jobs, decisions);
        let view = scene.view();
        observation.read(&model.tokenizer, &Scale::of(&model.tokenizer, &scene.system), &view, true);
        let rows = observation.rows();
        let keys = *kept.get_or_insert_with(|| {
            network.forward(&rows, &mut q);
            network.attention_work().pairs as f64 / queries
        });
        let mut dense: Option<Vec<JobId>> = None;
        for (place, method) in methods.iter().enumerate() {
            let rows = Rows { sparsity: method.sparsity(jobs, keys), ..rows };
            let begin = Instant::now();
            network.forward(&rows, &mut q);
            times[place].push(begin.elapsed().as_nanos() as f64);
            if decisions == 0 {
                work[place] = network.attention_work();
            }
            let values = observation.jobs().iter().map(|(id, row)| (*id, q[*row as usize]));
            let assigned = chosen(&mut mapper, Mapping::Greedy, values, &view);
            let dense = dense.get_or_insert_with(|| assigned.clone());
            differing[place] += u64::from(*dense != assigned);
            let same = assigned.iter().filter(|job| dense.contains(job)).count();
            shared[place] += same as f64 / assigned.len().max(1) as f64;
        }
        decisions += 1;
    }
    let figures = |(place, method): (usize, &Method)| {
        let scored = work[place].pairs as f64 / queries;
        let keys = match method.sparsity(jobs, kept.unwrap_or(0.0)) {
            // The idle row's query and key are always kept.
            Some(Sparsity { rule: Rule::TopKeys, keep, .. }) => {
                (((keep.min(jobs) + 1) * jobs + jobs + 1) as f64) / (jobs + 1) as f64
            }
            _ => scored,
        };
        MethodFigures {
            method: *method,
            ns_p50: nearest_quantile(&mut times[place], 0.5).unwrap_or(0.0),
            keys,
            scored,
            bytes: work[place].bytes,
            decisions,
            differing: differing[place],
            shared: shared[place] / decisions.max(1) as f64,
        }
    };
    let methods = methods.iter().enumerate().map(figures).collect();
    Ok(AttentionFigures { jobs, layers: shape.layers, methods, control_ns: control() })
}
