//! Relations between two rows of a graph network: the edge features of the complete graph over the ready jobs and the
//! idle row.
//!
//! They are read from the tokens, so that jobs with equal tokens have equal relations and can share a row.

use temponet_infer::{Architecture, Vocabulary};

/// Names of the job features that relations are read from: the time to the deadline, and whether the job is running.
const DUE: &str = "due";
const CORE: &str = "core";
/// Value of the feature [`CORE`] of a job that is running.
const RUNNING: u16 = 2;

/// Reads the relations between rows from their tokens.
#[derive(Clone, Copy, Debug)]
pub struct Relations {
    due: usize,
    core: usize,
}

impl Relations {
    /// Number of different relations.
    pub const COUNT: usize = 14;

    /// Finds the features that relations are read from; `None` if the job features lack one.
    pub fn of(architecture: &Architecture) -> Option<Relations> {
        let find = |name: &str| architecture.job.iter().position(|Vocabulary { name: own, .. }| own == name);
        Some(Relations { due: find(DUE)?, core: find(CORE)? })
    }

    /// Returns the relation of a source of a message to its target. `None` stands for the idle row. Between jobs, it
    /// says whether the deadline of the source is earlier, in the same bin, or later, and which of the two is running.
    pub fn between(&self, source: Option<&[u16]>, target: Option<&[u16]>) -> usize {
        let (Some(source), Some(target)) = (source, target) else {
            return if source.is_none() { 12 } else { 13 };
        };
        let order = match source[self.due].cmp(&target[self.due]) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => 1,
            std::cmp::Ordering::Greater => 2,
        };
        let runs = |token: &[u16]| usize::from(token[self.core] == RUNNING);
        4 * order + 2 * runs(source) + runs(target)
    }
}
