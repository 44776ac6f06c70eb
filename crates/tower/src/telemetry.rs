//! Counts for the `metrics` facade, and the names that they have.
//!
//! | metric | kind | labels |
//! |---|---|---|
//! | `temponet_requests_total` | counter | `outcome`: met, late, failed, cancelled, shed |
//! | `temponet_requests_shed_total` | counter | `reason`: late, predicted-late, full, cancelled, shutdown |
//! | `temponet_request_deadlines_malformed_total` | counter | |
//! | `temponet_request_wait_seconds` | histogram | |
//! | `temponet_requests_waiting`, `temponet_requests_running` | gauge | |

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use temponet_dispatch::{Outcome, Reason};

pub(crate) fn malformed(count: u64) {
    if count > 0 {
        counter!("temponet_request_deadlines_malformed_total").increment(count);
        tracing::debug!(count, "a due time in the headers makes no sense; the default holds");
    }
}

pub(crate) fn arrives() {
    gauge!("temponet_requests_waiting").increment(1.0);
}

/// A request leaves the queue unserved.
pub(crate) fn is_shed(reason: Reason) {
    gauge!("temponet_requests_waiting").decrement(1.0);
    counter!("temponet_requests_shed_total", "reason" => reason.name()).increment(1);
    counter!("temponet_requests_total", "outcome" => "shed").increment(1);
    tracing::Span::current().record("outcome", "shed");
}

pub(crate) fn begins(span: &tracing::Span, waited: Duration) {
    gauge!("temponet_requests_waiting").decrement(1.0);
    gauge!("temponet_requests_running").increment(1.0);
    histogram!("temponet_request_wait_seconds").record(waited.as_secs_f64());
    span.record("waited_ms", waited.as_secs_f64() * 1e3);
}

/// A request that was begun ends; this is its span.
pub(crate) fn ends(span: &tracing::Span, outcome: Outcome) {
    let name = match outcome {
        Outcome::Met => "met",
        Outcome::Late => "late",
        Outcome::Cancelled => "cancelled",
        _ => "failed",
    };
    gauge!("temponet_requests_running").decrement(1.0);
    counter!("temponet_requests_total", "outcome" => name).increment(1);
    span.record("outcome", name);
}
