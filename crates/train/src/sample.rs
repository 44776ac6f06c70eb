//! What the network sees at one decision, kept compactly, and many such samples as a ragged batch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use temponet::stages::Observation;
use temponet_grad::Segments;
use temponet_infer::Rows;

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

/// A sample that is kept elsewhere, alone or among [`Samples`].
#[derive(Clone, Copy, Debug)]
pub struct SampleView<'a> {
    /// [`Sample::idle`].
    pub idle: &'a [u16],
    /// [`Sample::tokens`].
    pub tokens: &'a [u16],
    /// [`Sample::real`].
    pub real: &'a [f32],
    /// [`Sample::counts`].
    pub counts: &'a [u32],
    /// [`Sample::bias`].
    pub bias: &'a [f32],
    /// [`Sample::cores`].
    pub cores: u32,
    /// [`Sample::past`].
    pub past: Option<&'a Arc<Past>>,
}

impl<'a> From<&'a Sample> for SampleView<'a> {
    fn from(sample: &'a Sample) -> Self {
        let Sample { idle, tokens, real, counts, bias, cores, past } = sample;
        SampleView { idle, tokens, real, counts, bias, cores: *cores, past: past.as_ref() }
    }
}

impl<'a> SampleView<'a> {
    /// What an observation shows.
    pub fn of(observation: &'a Observation, cores: usize) -> SampleView<'a> {
        let Rows { idle, jobs: tokens, real, bias, .. } = observation.rows();
        SampleView { idle, tokens, real, counts: observation.counts(), bias, cores: cores as u32, past: None }
    }

    /// Returns the number of rows, including the idle row.
    pub fn rows(&self) -> usize {
        self.counts.len() + 1
    }

    /// Returns the features and the real-valued inputs of a job row, which is counted from 1.
    pub fn job_row(&self, row: u32) -> (&'a [u16], &'a [f32]) {
        let (rows, place) = (self.counts.len(), row as usize - 1);
        let (width, inputs) = (self.tokens.len() / rows, self.real.len() / rows);
        (&self.tokens[place * width..][..width], &self.real[place * inputs..][..inputs])
    }

    /// Returns a copy that is kept by itself.
    pub fn copied(&self) -> Sample {
        Sample {
            idle: self.idle.to_vec(),
            tokens: self.tokens.to_vec(),
            real: self.real.to_vec(),
            counts: self.counts.to_vec(),
            bias: self.bias.to_vec(),
            cores: self.cores,
            past: self.past.cloned(),
        }
    }
}

/// Samples one after the other in common memory, without an allocation for each: hundreds of thousands of choices are
/// kept for a round, and the next round uses the memory again.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    idle: Vec<u16>,
    tokens: Vec<u16>,
    real: Vec<f32>,
    counts: Vec<u32>,
    bias: Vec<f32>,
    others: Vec<SampleEnd>,
}

/// Ends of a sample's parts, and what has a place of its own.
#[derive(Clone, Debug, Default)]
struct SampleEnd {
    idle: usize,
    tokens: usize,
    real: usize,
    counts: usize,
    bias: usize,
    cores: u32,
    past: Option<Arc<Past>>,
}

impl Samples {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.others.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Forgets all samples and keeps their memory.
    pub fn clear(&mut self) {
        self.idle.clear();
        self.tokens.clear();
        self.real.clear();
        self.counts.clear();
        self.bias.clear();
        self.others.clear();
    }

    /// Adds a copy of a sample.
    pub fn push(&mut self, sample: SampleView<'_>) {
        self.idle.extend_from_slice(sample.idle);
        self.tokens.extend_from_slice(sample.tokens);
        self.real.extend_from_slice(sample.real);
        self.counts.extend_from_slice(sample.counts);
        self.bias.extend_from_slice(sample.bias);
        self.others.push(SampleEnd {
            idle: self.idle.len(),
            tokens: self.tokens.len(),
            real: self.real.len(),
            counts: self.counts.len(),
            bias: self.bias.len(),
            cores: sample.cores,
            past: sample.past.cloned(),
        });
    }

    /// Returns the sample at a place.
    pub fn get(&self, place: usize) -> SampleView<'_> {
        let first = SampleEnd::default();
        let (begin, end) = (if place == 0 { &first } else { &self.others[place - 1] }, &self.others[place]);
        SampleView {
            idle: &self.idle[begin.idle..end.idle],
            tokens: &self.tokens[begin.tokens..end.tokens],
            real: &self.real[begin.real..end.real],
            counts: &self.counts[begin.counts..end.counts],
            bias: &self.bias[begin.bias..end.bias],
            cores: end.cores,
            past: end.past.as_ref(),
        }
    }
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
        SampleView::of(observation, cores).copied()
    }

    /// Returns the number of rows, including the idle row.
    pub fn rows(&self) -> usize {
        self.counts.len() + 1
    }
}

/// Rows of many samples, one sample after the other, each with its idle row first.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    samples: Vec<SampleView<'a>>,
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
    /// Number of real-valued inputs of each job row; see [`Batch::write_real`].
    pub inputs: usize,
    /// Number of jobs that each job row stands for.
    pub counts: Vec<u32>,
    /// Attention bias of every row.
    pub bias: Vec<f32>,
    /// Pasts of the samples; `None` if no sample has one.
    pub past: Option<Box<PastBatch<'a>>>,
}

/// Pasts of the samples of a batch.
#[derive(Clone, Debug)]
pub struct PastBatch<'a> {
    /// Observations of all pasts, one past after the other.
    pub rows: Batch<'a>,
    /// Number of observations of each past.
    pub lengths: Vec<usize>,
    /// States at the beginning of the pasts, one after the other.
    pub states: Vec<f32>,
}

impl<'a> PastBatch<'a> {
    /// Puts the pasts of some samples together; `None` if no sample has one.
    fn of(samples: &[SampleView<'a>]) -> Option<Box<PastBatch<'a>>> {
        let width = samples.iter().filter_map(|sample| sample.past).map(|past| past.state.len()).max()?;
        let (mut lengths, mut seen, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for sample in samples {
            let past = sample.past;
            let (state, own) = past.map_or((&[][..], &[][..]), |past| (&past.state[..], &past.samples[..]));
            lengths.push(own.len());
            seen.extend(own.iter().map(|sample| SampleView::from(&**sample)));
            states.extend(state);
            states.resize(lengths.len() * width, 0.0);
        }
        Some(Box::new(PastBatch { rows: Batch::of(&seen), lengths, states }))
    }
}

impl<'a> Batch<'a> {
    /// Puts samples together, with several threads if there are many.
    pub fn of<S: Copy + Into<SampleView<'a>>>(samples: &[S]) -> Batch<'a> {
        Batch::of_views(samples.iter().map(|sample| (*sample).into()).collect())
    }

    fn of_views(samples: Vec<SampleView<'a>>) -> Batch<'a> {
        let segments = Arc::new(Segments::of_lengths(samples.iter().map(|sample| sample.rows())));
        let rows = segments.rows() - samples.len();
        let of = |of: fn(&SampleView<'a>) -> (usize, usize)| {
            samples.iter().map(of).find(|(rows, _)| *rows > 0).map_or(0, |(rows, all)| all / rows)
        };
        let features = of(|sample| (sample.counts.len(), sample.tokens.len()));
        let inputs = of(|sample| (sample.counts.len(), sample.real.len()));
        let idle = samples.first().map_or(0, |sample| sample.idle.len());
        let mut batch = Batch {
            idle_places: Vec::new(),
            job_places: Vec::new(),
            idle: vec![vec![0; samples.len()]; idle],
            jobs: vec![vec![0; rows]; features],
            inputs,
            counts: vec![0; rows],
            bias: vec![0.0; segments.rows()],
            past: PastBatch::of(&samples),
            segments,
            samples,
        };
        (batch.idle_places, batch.job_places) = places(&batch.segments);
        par_map(batch.parts(), 1, |_, part| part.fill());
        batch
    }

    /// Writes the real-valued inputs of all job rows, row after row.
    pub fn write_real(&self, mut out: &mut [f32]) {
        let parts: Vec<_> = self
            .samples
            .chunks(SAMPLES_PER_TASK)
            .map(|samples| {
                let numbers = samples.iter().map(|sample| sample.real.len()).sum();
                (samples, take(&mut out, numbers))
            })
            .collect();
        par_map(parts, 1, |_, (samples, mut out)| {
            samples.iter().for_each(|sample| take(&mut out, sample.real.len()).copy_from_slice(sample.real));
        });
    }

    /// Divides the batch among threads.
    fn parts(&mut self) -> Vec<Part<'_>> {
        let mut idle: Vec<&mut [u32]> = self.idle.iter_mut().map(Vec::as_mut_slice).collect();
        let mut jobs: Vec<&mut [u32]> = self.jobs.iter_mut().map(Vec::as_mut_slice).collect();
        let (mut counts, mut bias) = (&mut self.counts[..], &mut self.bias[..]);
        let mut parts = Vec::new();
        for samples in self.samples.chunks(SAMPLES_PER_TASK) {
            let rows: usize = samples.iter().map(|sample| sample.counts.len()).sum();
            parts.push(Part {
                samples,
                idle: idle.iter_mut().map(|all| take(all, samples.len())).collect(),
                jobs: jobs.iter_mut().map(|all| take(all, rows)).collect(),
                counts: take(&mut counts, rows),
                bias: take(&mut bias, rows + samples.len()),
            });
        }
        parts
    }
}

/// Splits the first `count` values off a slice.
fn take<'a, T>(all: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (first, rest) = std::mem::take(all).split_at_mut(count);
    *all = rest;
    first
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
const SAMPLES_PER_TASK: usize = 256;

/// Places of some samples in a batch, feature by feature.
struct Part<'a> {
    samples: &'a [SampleView<'a>],
    idle: Vec<&'a mut [u32]>,
    jobs: Vec<&'a mut [u32]>,
    counts: &'a mut [u32],
    bias: &'a mut [f32],
}

impl Part<'_> {
    fn fill(self) {
        let Part { samples, mut idle, mut jobs, mut counts, mut bias } = self;
        for (place, sample) in samples.iter().enumerate() {
            idle.iter_mut().zip(sample.idle).for_each(|(all, value)| all[place] = u32::from(*value));
            let (rows, features) = (sample.counts.len(), jobs.len());
            for (feature, all) in jobs.iter_mut().enumerate() {
                let own = take(all, rows).iter_mut().zip(sample.tokens.iter().skip(feature).step_by(features));
                own.for_each(|(to, value)| *to = u32::from(*value));
            }
            take(&mut counts, rows).copy_from_slice(sample.counts);
            take(&mut bias, rows + 1).copy_from_slice(sample.bias);
        }
    }
}
