//! A `tower` layer that admits requests by their due times, for hyper, axum and tonic.
//!
//! Requests wait in the queue of a [`Dispatcher`](temponet_dispatch::Dispatcher) until a permit is free. Which one is
//! next, and which ones are not worth beginning, is decided by its policy. What is shed is answered 503 with
//! `retry-after`, or `RESOURCE_EXHAUSTED` in gRPC. What is still served at its due time is ended: the handler's future is
//! dropped, and the answer is 504, or `DEADLINE_EXCEEDED`.
//!
//! ```
//! use std::time::Duration;
//!
//! use temponet_dispatch::{Dispatcher, Estimate, Policy};
//! use temponet_tower::DispatchLayer;
//!
//! let layer = DispatchLayer::new(Dispatcher::builder().workers(8).policy(Policy::guarded()))?
//!     .default_due(Duration::from_secs(10))
//!     .describe(|parts, request| {
//!         let tokens = parts.headers.get("x-prompt-tokens").and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
//!         let request = request.class(u32::from(parts.uri.path().starts_with("/embed")));
//!         match tokens {
//!             Some(tokens) => request.estimate(Estimate::seconds(0.2 + 1e-4 * tokens)),
//!             None => request,
//!         }
//!     });
//! let handle = layer.handle(); // `handle.shutdown()` on SIGTERM
//! # drop((layer, handle));
//! # Ok::<(), temponet_dispatch::BuildError>(())
//! ```
//!
//! The due time of a request is what its headers state: `grpc-timeout`, or `x-request-deadline` with a number of
//! milliseconds from now (`250`) or a duration with a unit (`1.5s`; `us`, `ms`, `s`, `m`). If both are there, the shorter
//! one counts. One that makes no sense is counted and left out of account. Without any, the
//! [default](DispatchLayer::default_due) holds, and [`DispatchLayer::describe`] has the last word.
//!
//! A request is served from its permit until the body of its response is sent, so a stream of tokens holds its permit. At
//! its due time it gives it back, whether the client reads or not; see [`DispatchLayer::hold_through_body`]. Due
//! times are watched by a thread of the dispatcher, not by a runtime.
//!
//! Do not put a timeout or a limit of concurrency around this layer: they would end or hold back what it has to see.
//! Where requests neither wait nor have due times, tower's own `ConcurrencyLimit` is enough.
//!
//! Counts go to the `metrics` facade: `temponet_requests_total` (`outcome`), `temponet_requests_shed_total` (`reason`),
//! `temponet_request_deadlines_malformed_total`, `temponet_request_wait_seconds`, `temponet_requests_waiting` and
//! `temponet_requests_running`. Every request has a `tracing` span, `request`, with class, due time, waiting time and
//! outcome.

#![forbid(unsafe_code)]

mod answer;
mod deadline;
mod held;
mod layer;
mod service;
mod telemetry;

pub use held::ServedBody;
pub use layer::{DispatchLayer, Handle};
pub use service::{DispatchService, ResponseFuture};

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
