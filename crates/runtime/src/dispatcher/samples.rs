//! The latencies of a run, sample by sample.

use temponet_sim::Histogram;

use crate::report::Latencies;

/// Latencies as they were measured. They become histograms after the run, because histograms allocate as they grow.
pub struct Samples {
    pub start: Vec<u64>,
    pub timer: Vec<u64>,
    pub charge: Vec<u64>,
    pub release: Vec<u64>,
    pub decide: Vec<u64>,
    pub order: Vec<u64>,
    pub switch: Vec<u64>,
    pub answer: Vec<u64>,
}

impl Samples {
    /// Room for this many jobs.
    pub fn with_room(jobs: usize) -> Samples {
        let (once, often) = (|| Vec::with_capacity(jobs), || Vec::with_capacity(3 * jobs));
        Samples {
            start: once(),
            timer: once(),
            charge: once(),
            release: once(),
            decide: often(),
            order: often(),
            switch: once(),
            answer: often(),
        }
    }

    /// The samples as histograms.
    pub fn latencies(&self) -> Latencies {
        let histogram = |samples: &[u64]| {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|sample| histogram.record(*sample as i64));
            histogram
        };
        let Samples { start, timer, charge, release, decide, order, switch, answer } = self;
        Latencies::of_kinds([start, timer, charge, release, decide, order, switch, answer].map(|kind| histogram(kind)))
    }
}
