//! Which request is next, and which is not served.

use std::fmt;

use temponet_task::IndexWeights;

use crate::BuildError;

/// Rule by which waiting requests are chosen and refused. Under every rule, a request whose due time has passed is not
/// begun.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// In the order of arrival.
    Fcfs,
    /// The newest first.
    Lifo,
    /// The earliest due time first.
    Edf,
    /// The earliest due time first; what would be late by this quantile of its length (0 to 1) is refused.
    EdfShed {
        /// Share of requests that take no longer than what is planned for them.
        q: f64,
    },
    /// The shortest first for its value; what would be late by this quantile of its length (0 to 1) is refused.
    SjfShed {
        /// Share of requests that take no longer than what is planned for them.
        q: f64,
    },
    /// Of a large set of waiting requests that can all be in time by this quantile of their lengths (0 to 1), the one due
    /// first; when none of them waits, the shortest of the others. What would be late by itself is refused.
    MhEdf {
        /// Share of requests that take no longer than what is planned for them.
        q: f64,
    },
    /// The greatest ratio of waiting time to length first; lengths in classes, of which a doubling has four.
    Hrrn,
    /// In the order of arrival; what comes while all workers are busy is refused, but for this many that wait.
    RejectWhenBusy {
        /// Number of requests that may wait.
        queue: usize,
    },
    /// By a score that was learned from simulated servers in overload, between all of these orders, and what would be late
    /// by a length that the score says is refused. [`Policy::learned`] has the weights that come with this crate.
    Learned(IndexWeights),
    /// Follows the rule that would have met the most of late, in shadows of the real queue; at most eight rules.
    Guarded(Vec<Policy>),
}

/// The most rules that [`Policy::Guarded`] can have.
pub(crate) const MOST_CANDIDATES: usize = 8;

impl Policy {
    /// The rules that no other one leads in every overload, under [`Policy::Guarded`].
    pub fn guarded() -> Policy {
        Policy::Guarded(vec![
            Policy::learned(),
            Policy::EdfShed { q: 0.5 },
            Policy::SjfShed { q: 0.5 },
            Policy::RejectWhenBusy { queue: 0 },
            Policy::Lifo,
            Policy::Fcfs,
        ])
    }

    /// The learned index with the weights that come with this crate.
    pub fn learned() -> Policy {
        Policy::Learned(IndexWeights::learned())
    }

    /// Weights of the learned index among the rules, the first if there are several.
    pub(crate) fn weights(rules: &[Policy]) -> Option<&IndexWeights> {
        rules.iter().find_map(|rule| match rule {
            Policy::Learned(weights) => Some(weights),
            _ => None,
        })
    }

    /// Returns the rules among which the policy chooses, itself if there is no choice.
    pub(crate) fn candidates(&self) -> Result<Vec<Policy>, BuildError> {
        let candidates = match self {
            Policy::Guarded(candidates) => candidates.clone(),
            rule => vec![rule.clone()],
        };
        match candidates.len() {
            1..=MOST_CANDIDATES => {}
            count => return Err(BuildError::Candidates(count)),
        }
        for candidate in &candidates {
            match candidate {
                Policy::Guarded(_) => return Err(BuildError::Nested),
                Policy::EdfShed { q } | Policy::SjfShed { q } | Policy::MhEdf { q } if !(*q > 0.0 && *q < 1.0) => {
                    return Err(BuildError::Quantile(*q));
                }
                _ => {}
            }
        }
        Ok(candidates)
    }

    /// Quantile of lengths that the rule plans by.
    pub(crate) fn quantile(&self) -> f64 {
        match self {
            Policy::EdfShed { q } | Policy::SjfShed { q } | Policy::MhEdf { q } => *q,
            _ => 0.5,
        }
    }

    /// Whether requests that would be late are refused.
    pub(crate) fn sheds(&self) -> bool {
        matches!(self, Policy::EdfShed { .. } | Policy::SjfShed { .. } | Policy::MhEdf { .. } | Policy::Learned(_))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fcfs => f.write_str("fcfs"),
            Policy::Lifo => f.write_str("lifo"),
            Policy::Edf => f.write_str("edf"),
            Policy::EdfShed { q } => write!(f, "edf-shed:q={q}"),
            Policy::SjfShed { q } => write!(f, "sjf-shed:q={q}"),
            Policy::MhEdf { q } => write!(f, "mh-edf:q={q}"),
            Policy::Hrrn => f.write_str("hrrn"),
            Policy::RejectWhenBusy { queue: 0 } => f.write_str("reject-when-busy"),
            Policy::RejectWhenBusy { queue } => write!(f, "reject-when-busy:queue={queue}"),
            Policy::Learned(_) => f.write_str("request-index"),
            Policy::Guarded(_) => f.write_str("guarded"),
        }
    }
}
