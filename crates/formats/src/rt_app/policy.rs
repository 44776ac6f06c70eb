//! How Linux may schedule a thread, and what of ours that corresponds to.

use crate::Problem;
use crate::node::Node;

/// The scheduling policies of Linux.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Policy {
    Deadline,
    Fifo,
    RoundRobin,
    Other,
    Batch,
    Idle,
}

impl Policy {
    const ALL: [Policy; 6] =
        [Policy::Deadline, Policy::Fifo, Policy::RoundRobin, Policy::Other, Policy::Batch, Policy::Idle];

    pub fn name(self) -> &'static str {
        match self {
            Policy::Deadline => "SCHED_DEADLINE",
            Policy::Fifo => "SCHED_FIFO",
            Policy::RoundRobin => "SCHED_RR",
            Policy::Other => "SCHED_OTHER",
            Policy::Batch => "SCHED_BATCH",
            Policy::Idle => "SCHED_IDLE",
        }
    }

    pub fn of(node: &Node) -> Result<Policy, Problem> {
        let name = node.text("policy")?;
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            let names = Policy::ALL.map(Policy::name).join(", ");
            Problem::at(node.line, format!("policy {} is none of {names}", node.shown()))
        })
    }

    /// The scheduler of ours that comes closest.
    pub fn scheduler(self) -> &'static str {
        match self {
            Policy::Deadline => "the scheduler edf comes closest (budgets are not enforced)",
            Policy::Fifo => "the scheduler is fp",
            Policy::RoundRobin => "the scheduler fp comes closest (equal priorities have no time slices)",
            Policy::Other | Policy::Batch | Policy::Idle => "no scheduler is the same; rr comes closest",
        }
    }
}
