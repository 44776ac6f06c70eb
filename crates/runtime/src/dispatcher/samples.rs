//! The latencies of a run, sample by sample.

use temponet_sim::Histogram;

use crate::report::Latencies;

/// Latencies as they were measured. They become histograms after the run, because histograms allocate as they grow.
pub struct Samples {
    pub start: Vec<u64>,
    pub decide: Vec<u64>,
    pub switch: Vec<u64>,
    pub answer: Vec<u64>,
}

impl Samples {
    /// Room for this many jobs.
    pub fn with_room(jobs: usize) -> Samples {
        let some = || Vec::with_capacity(jobs);
        let (decide, answer) = (Vec::with_capacity(3 * jobs), Vec::with_capacity(3 * jobs));
        Samples { start: some(), decide, switch: some(), answer }
    }

    /// The samples as histograms.
    pub fn latencies(&self) -> Latencies {
        let histogram = |samples: &[u64]| {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|sample| histogram.record(*sample as i64));
            histogram
        };
        Latencies {
            start: histogram(&self.start),
            decide: histogram(&self.decide),
            switch: histogram(&self.switch),
            answer: histogram(&self.answer),
        }
    }
}
