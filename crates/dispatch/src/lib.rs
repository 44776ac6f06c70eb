//! Requests of a server by their due times: which one is next, which ones are not worth beginning, and when one that
//! runs should end.
//!
//! A server that has more requests than time must choose. Lengths are uncertain, a request is not interrupted once it
//! has begun, and an answer that comes too late is worth nothing. A [`Dispatcher`] keeps the queue: requests are
//! submitted with a due time and what is known of their lengths; workers take the next one by a [`Policy`]; what is
//! late, or would be, leaves at once with the [`Reason`]; a [`Token`] tells a handler that its request is past due.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use temponet_dispatch::{Dispatcher, Estimate, Outcome, Policy, Request};
//!
//! let dispatcher = Dispatcher::builder().workers(2).policy(Policy::EdfShed { q: 0.5 }).build()?;
//! let worker = std::thread::spawn({
//!     let dispatcher = dispatcher.clone();
//!     move || {
//!         while let Some((name, running)) = dispatcher.next_blocking() {
//!             println!("{name}");
//!             running.finish();
//!         }
//!     }
//! });
//!
//! let request = Request::new().due(Instant::now() + Duration::from_secs(5)).estimate(Estimate::seconds(0.2));
//! let ticket = dispatcher.submit(request, "a question")?;
//! assert_eq!(ticket.wait(), Outcome::Met);
//!
//! dispatcher.shutdown();
//! worker.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Threads call [`Dispatcher::next_blocking`], tasks of any runtime await [`Dispatcher::next`]. Where there are no
//! workers, but every request has a task of its own, as in most servers, a [`Gate`] lets requests in.
//!
//! Every request has exactly one [`Outcome`]. Memory is bounded by the capacity and the number of workers; when the
//! queue is full, the request that would be served last leaves. A decision takes a logarithm of the number of waiting
//! requests. One lock is held for each call, never while a task waits or foreign code runs.

#![forbid(unsafe_code)]

mod builder;
mod clock;
mod contest;
mod dispatcher;
mod estimator;
mod gate;
mod guard;
mod handles;
mod plan;
mod policy;
mod queue;
mod regressor;
mod request;
mod sketch;
mod state;
mod stats;
mod sync;
mod timer;
mod waiters;

pub use builder::{BuildError, Builder};
pub use clock::{Clock, SimulatedClock, SystemClock};
pub use dispatcher::{Dispatcher, Drained, Next};
pub use estimator::Estimator;
pub use gate::{Enter, Gate, Permit, Place, Reserve, Seat};
pub use guard::Switch;
pub use handles::{Cancelled, Running, Ticket, Token};
pub use policy::Policy;
pub use request::{Estimate, Outcome, Reason, Request, Shed};
pub use stats::Stats;
pub use temponet_task::{IndexWeights, WeightsProblem};

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
