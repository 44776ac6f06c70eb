//! Sources of the task sets to learn on.

use std::sync::Arc;

use temponet_sim::generate::GenerateError;
use temponet_task::TaskSet;

use crate::job_trace::JobTrace;
use temponet_sim::generate::WorkloadRanges;

/// Source of the task set of each episode.
#[derive(Clone, Debug)]
pub enum TaskSetSource {
    /// The same set in every episode, with different jobs.
    Fixed(Arc<TaskSet>),
    /// Part of a trace, from a different release on in every episode.
    Trace(Arc<JobTrace>),
    /// A new random set in every episode.
    Drawn(Box<WorkloadRanges>),
}

impl TaskSetSource {
    /// Returns the set of the episode with this seed.
    pub fn set(&self, seed: u64) -> Result<Arc<TaskSet>, GenerateError> {
        match self {
            TaskSetSource::Fixed(set) => Ok(set.clone()),
            TaskSetSource::Trace(trace) => Ok(Arc::new(trace.window(seed))),
            TaskSetSource::Drawn(ranges) => ranges.draw(seed).map(Arc::new),
        }
    }
}
