//! The scheduling policies of Linux, and the TempoNet schedulers that correspond to them.

use crate::Problem;
use crate::node::Node;

/// A scheduling policy of Linux.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinuxPolicy {
    Deadline,
    Fifo,
    RoundRobin,
    Other,
    Batch,
    Idle,
}

impl LinuxPolicy {
    const ALL: [LinuxPolicy; 6] = [
        LinuxPolicy::Deadline,
        LinuxPolicy::Fifo,
        LinuxPolicy::RoundRobin,
        LinuxPolicy::Other,
        LinuxPolicy::Batch,
        LinuxPolicy::Idle,
    ];

    /// Name in rt-app.
    pub fn name(self) -> &'static str {
        match self {
            LinuxPolicy::Deadline => "SCHED_DEADLINE",
            LinuxPolicy::Fifo => "SCHED_FIFO",
            LinuxPolicy::RoundRobin => "SCHED_RR",
            LinuxPolicy::Other => "SCHED_OTHER",
            LinuxPolicy::Batch => "SCHED_BATCH",
            LinuxPolicy::Idle => "SCHED_IDLE",
        }
    }

    /// Reads the name of a policy.
    pub fn of(node: &Node) -> Result<LinuxPolicy, Problem> {
        let name = node.text("policy")?;
        LinuxPolicy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            let names = LinuxPolicy::ALL.map(LinuxPolicy::name).join(", ");
            Problem::at(node.line, format!("policy {} is none of {names}", node.shown()))
        })
    }

    /// Returns a note on the TempoNet scheduler that comes closest.
    pub fn scheduler(self) -> &'static str {
        match self {
            LinuxPolicy::Deadline => "the scheduler edf comes closest (budgets are not enforced)",
            LinuxPolicy::Fifo => "the scheduler is fp",
            LinuxPolicy::RoundRobin => "the scheduler fp comes closest (equal priorities have no time slices)",
            LinuxPolicy::Other | LinuxPolicy::Batch | LinuxPolicy::Idle => "no scheduler is the same; rr comes closest",
        }
    }
}
