//! What the network sees at one decision, kept compactly, and many such samples as a ragged batch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use temponet::stages::Observation;
use temponet_grad::Segments;

use crate::parallel::par_map;

/// One observation: the idle row, then one row for each distinct job token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Features of the idle row.
    pub idle: Vec<u16>,
    /// Features of the job rows, row after row.
    pub tokens: Vec<u16>,
    /// Real-valued inputs of the job rows, row after row; empty if all inputs are tokens.
    pub real: Vec<f32>,
    /// Number of jobs that each job row stands for.
    pub counts: Vec<u32>,
    /// Attention bias of the idle row and of each job row.
    pub bias: Vec<f32>,
    /// Number of cores: how many jobs can run at once.
    pub cores: u32,
    /// What a recurrent network has seen before; `None` at the first decision of a run, and for networks without
    /// memory.
    pub past: Option<Arc<Past>>,
}

/// Past of a sample: the state of a recurrent network some decisions ago, and the observations since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// Output and then cell state of the LSTM.
    pub state: Vec<f32>,
    /// Observations since then, without pasts of their own, the oldest first.
    pub samples: Vec<Arc<Sample>>,
}

impl Sample {
    /// Copies an observation.
    pub fn of(observation: &Observation, cores: usize) -> Sample {
        let rows = observation.rows();
        Sample {
            idle: rows.idle.to_vec(),
            tokens: rows.jobs.to_vec(),
            real: rows.real.to_vec(),
            counts: observation.counts().to_vec(),
            bias: rows.bias.to_vec(),
            cores: cores as u32,
            past: None,
        }
    }

    /// Returns the number of rows, including the idle row.
    pub fn rows(&self) -> usize {
        self.counts.len() + 1
    }
}

/// Rows of many samples, one sample after the other, each with its idle row first.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Rows of each sample.
    pub segments: Arc<Segments>,
    /// Numbers of the idle rows.
    pub idle_places: Vec<u32>,
    /// Numbers of the job rows.
    pub job_places: Vec<u32>,
    /// Values of each idle feature, for all idle rows.
    pub idle: Vec<Vec<u32>>,
    /// Values of each job feature, for all job rows.
    pub jobs: Vec<Vec<u32>>,
    /// Real-valued inputs of all job rows, row after row.
    pub real: Vec<f32>,
    /// Number of jobs that each job row stands for.
    pub counts: Vec<u32>,
    /// Attention bias of every row.
    pub bias: Vec<f32>,
    /// Pasts of the samples; `None` if no sample has one.
    pub past: Option<Box<PastBatch>>,
}

/// Pasts of the samples of a batch.
#[derive(Clone, Debug)]
pub struct PastBatch {
    /// Observations of all pasts, one past after the other.
    pub rows: Batch,
    /// Number of observations of each past.
    pub lengths: Vec<usize>,
    /// States at the beginning of the pasts, one after the other.
    pub states: Vec<f32>,
}

impl PastBatch {
    /// Puts the pasts of some samples together; `None` if no sample has one.
    fn of(samples: &[&Sample]) -> Option<Box<PastBatch>> {
        let width = samples.iter().filter_map(|sample| sample.past.as_ref()).map(|past| past.state.len()).max()?;
        let (mut lengths, mut seen, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for sample in samples {
            let past = sample.past.as_deref();
            let (state, own) = past.map_or((&[][..], &[][..]), |past| (&past.state[..], &past.samples[..]));
            lengths.push(own.len());
            seen.extend(own.iter().map(|sample| &**sample));
            states.extend(state);
            states.resize(lengths.len() * width, 0.0);
        }
        Some(Box::new(PastBatch { rows: Batch::of(&seen), lengths, states }))
    }
}

impl Batch {
    /// Puts samples together, with several threads if there are many.
    pub fn of(samples: &[&Sample]) -> Batch {
        let parts = par_map(samples.chunks(SAMPLES_PER_TASK), 1, |_, samples| Columns::of(samples));
        let mut columns = Columns::default();
        parts.into_iter().for_each(|part| columns.append(part));
        let Columns { lengths, idle, jobs, real, counts, bias } = columns;
        let segments = Arc::new(Segments::of_lengths(lengths));
        let (idle_places, job_places) = places(&segments);
        let past = PastBatch::of(samples);
        Batch { segments, idle_places, job_places, idle, jobs, real, counts, bias, past }
    }
}

/// Returns the numbers of each sample's first row, and those of all other rows.
pub fn places(segments: &Segments) -> (Vec<u32>, Vec<u32>) {
    let first = segments.ranges().map(|range| range.start as u32).collect();
    let mut others = Vec::with_capacity(segments.rows() - segments.len());
    segments.ranges().for_each(|range| others.extend(range.start as u32 + 1..range.end as u32));
    (first, others)
}

/// Returns the sample of each row.
pub fn owners(segments: &Segments) -> Vec<u32> {
    segments.ranges().enumerate().flat_map(|(sample, range)| range.map(move |_| sample as u32)).collect()
}

/// Samples that one thread reads at a time.
const SAMPLES_PER_TASK: usize = 1024;

/// Rows of some samples, feature by feature.
#[derive(Default)]
struct Columns {
    /// Number of rows of each sample.
    lengths: Vec<usize>,
    idle: Vec<Vec<u32>>,
    jobs: Vec<Vec<u32>>,
    real: Vec<f32>,
    counts: Vec<u32>,
    bias: Vec<f32>,
}

impl Columns {
    fn of(samples: &[&Sample]) -> Columns {
        let mut columns = Columns::default();
        let push = |lists: &mut Vec<Vec<u32>>, token: &[u16]| {
            lists.resize(token.len(), Vec::new());
            lists.iter_mut().zip(token).for_each(|(list, value)| list.push(u32::from(*value)));
        };
        for sample in samples {
            columns.lengths.push(sample.rows());
            push(&mut columns.idle, &sample.idle);
            let width = sample.tokens.len() / sample.counts.len().max(1);
            sample.tokens.chunks_exact(width.max(1)).for_each(|token| push(&mut columns.jobs, token));
            columns.real.extend_from_slice(&sample.real);
            columns.counts.extend_from_slice(&sample.counts);
            columns.bias.extend_from_slice(&sample.bias);
        }
        columns
    }

    fn append(&mut self, mut other: Columns) {
        let join = |to: &mut Vec<Vec<u32>>, from: &mut Vec<Vec<u32>>| {
            to.resize(to.len().max(from.len()), Vec::new());
            to.iter_mut().zip(from).for_each(|(to, from)| to.append(from));
        };
        join(&mut self.idle, &mut other.idle);
        join(&mut self.jobs, &mut other.jobs);
        self.lengths.append(&mut other.lengths);
        self.real.append(&mut other.real);
        self.counts.append(&mut other.counts);
        self.bias.append(&mut other.bias);
    }
}
