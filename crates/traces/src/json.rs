//! What was found, as JSON: `temponet import --json`, and what a page shows.

use serde_json::{Value, json};

use crate::import::Import;
use crate::set::{Found, Kind};

impl Found {
    /// Word for how jobs arrive.
    pub fn arrives(&self) -> &'static str {
        match self.kind {
            Kind::Periodic { .. } => "periodic",
            Kind::Sporadic { .. } => "sporadic",
            Kind::Follows { .. } => "after",
        }
    }
}

impl Import {
    /// Returns what was found as one object.
    pub fn json(&self) -> Value {
        let name = |at: usize| self.tasks[at].name.as_str();
        let task = |found: &Found| {
            let after: Vec<&str> = match found.kind {
                Kind::Follows { after } => vec![name(after)],
                _ => Vec::new(),
            };
            let reads: Vec<&str> = found.reads.iter().map(|at| name(*at)).collect();
            json!({
                "name": found.name, "kind": found.arrives(), "period_ns": found.period.0,
                "residual_ns": found.kind.residual(), "confidence": found.kind.confidence(), "jobs": found.jobs,
                "dropped": found.dropped, "median_ns": found.median.0, "max_ns": found.most.0,
                "min_ns": found.least.0, "longest_response_ns": found.longest_response.0,
                "processors": found.processors, "policy": found.policy, "thread": found.thread, "after": after,
                "reads": reads, "notes": found.notes,
            })
        };
        json!({
            "set": self.set.name,
            "formats": self.formats.iter().map(|format| format.name()).collect::<Vec<_>>(),
            "task_by": self.task_by.name(),
            "cores": self.set.cores(),
            "length_ns": self.length,
            "events": self.events,
            "bytes": self.bytes,
            "jobs": self.jobs,
            "dropped": self.dropped,
            "tasks": self.tasks.iter().map(task).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}
