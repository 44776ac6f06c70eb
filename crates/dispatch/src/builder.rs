//! How a dispatcher is set up.

use std::sync::Arc;
use std::time::Instant;

use thiserror::Error;

use crate::dispatcher::{Dispatcher, Setup};
use crate::{Clock, Estimator, Policy, Shed, Switch, SystemClock};

/// The most workers, and the most requests that wait: their numbers are products with times of 64 bits.
const MOST: usize = u32::MAX as usize - 1;

/// The most features of a regression, whose weights are read for every request.
const MOST_FEATURES: usize = 1_000;

/// Settings that no dispatcher can have.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No number of workers.
    #[error("a dispatcher has from 1 to {most} workers, not {0}", most = MOST)]
    Workers(usize),
    /// No queue has this capacity.
    #[error("a capacity is from 1 to {most} requests, not {0}", most = MOST)]
    Capacity(usize),
    /// No share.
    #[error("a quantile lies between 0 and 1, not at {0}")]
    Quantile(f64),
    /// Too many features.
    #[error("a regression has at most {most} features, not {0}", most = MOST_FEATURES)]
    Features(usize),
    /// Too few or too many rules.
    #[error("a guard chooses among 1 to 8 rules, not {0}")]
    Candidates(usize),
    /// A guard among the rules of a guard.
    #[error("the rules of a guard are no guards")]
    Nested,
    /// The timer could not be started.
    #[error("the thread for due times cannot be started: {0}")]
    Timer(#[from] std::io::Error),
}

/// Settings of a [`Dispatcher`]. Made by [`Dispatcher::builder`].
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<T> {
    setup: Setup<T>,
    has_timer: Option<bool>,
    is_simulated: bool,
}

impl<T: Send + 'static> Builder<T> {
    pub(crate) fn new() -> Builder<T> {
        let setup = Setup {
            workers: 1,
            capacity: 10_000,
            policy: Policy::EdfShed { q: 0.5 },
            estimator: Estimator::Given,
            cancels: true,
            clock: Arc::new(SystemClock),
            on_shed: None,
            on_switch: None,
            origin: Instant::now(),
        };
        Builder { setup, has_timer: None, is_simulated: false }
    }

    /// Sets the number of requests that are served at a time; 1 by default.
    pub fn workers(mut self, workers: usize) -> Builder<T> {
        self.setup.workers = workers;
        self
    }

    /// Sets the number of requests that may wait; 10 000 by default.
    pub fn capacity(mut self, capacity: usize) -> Builder<T> {
        self.setup.capacity = capacity;
        self
    }

    /// Sets the rule; `EdfShed` by the median by default.
    pub fn policy(mut self, policy: Policy) -> Builder<T> {
        self.setup.policy = policy;
        self
    }

    /// Sets where lengths come from; from the requests by default.
    pub fn estimator(mut self, estimator: Estimator) -> Builder<T> {
        self.setup.estimator = estimator;
        self
    }

    /// Sets whether the tokens of requests that run fire at their due times; on by default. Requests that wait leave at
    /// their due times in any case.
    pub fn cancel_when_due(mut self, cancels: bool) -> Builder<T> {
        self.setup.cancels = cancels;
        self
    }

    /// Sets another clock. There is then no timer unless it is asked for: a timer sleeps in the system's time, so it
    /// is late where this clock jumps ahead.
    pub fn clock(mut self, clock: impl Clock) -> Builder<T> {
        self.setup.clock = Arc::new(clock);
        self.is_simulated = true;
        self
    }

    /// Sets whether a thread watches due times. Without it they are noticed at the next call, which may be
    /// [`Dispatcher::tick`].
    pub fn timer(mut self, has_timer: bool) -> Builder<T> {
        self.has_timer = Some(has_timer);
        self
    }

    /// Sets what is told of requests that leave the queue unserved. It may use the dispatcher, for no lock is held, and
    /// should not panic: it runs in whatever call made them leave. It must not wait for [`Dispatcher::drained`], which
    /// waits for it. Those that [`Dispatcher::submit`] refuses are not among them.
    pub fn on_shed(mut self, listener: impl Fn(Shed<T>) + Send + Sync + 'static) -> Builder<T> {
        self.setup.on_shed = Some(Box::new(listener));
        self
    }

    /// Sets what is told when [`Policy::Guarded`] follows another rule.
    pub fn on_switch(mut self, listener: impl Fn(&Switch) + Send + Sync + 'static) -> Builder<T> {
        self.setup.on_switch = Some(Box::new(listener));
        self
    }

    /// Returns the number of places of those who would rather wait than be refused, and whether one is taken until its
    /// request has been served; else until it begins.
    pub(crate) fn places(&self) -> (usize, bool) {
        let Setup { workers, capacity, .. } = self.setup;
        match self.setup.policy {
            Policy::RejectWhenBusy { queue } => (workers.saturating_add(queue.min(capacity)), true),
            _ => (capacity, false),
        }
    }

    /// Creates the dispatcher.
    pub fn build(mut self) -> Result<Dispatcher<T>, BuildError> {
        if !(1..=MOST).contains(&self.setup.workers) {
            return Err(BuildError::Workers(self.setup.workers));
        }
        if !(1..=MOST).contains(&self.setup.capacity) {
            return Err(BuildError::Capacity(self.setup.capacity));
        }
        if let Estimator::Regressor { features } = self.setup.estimator
            && features > MOST_FEATURES
        {
            return Err(BuildError::Features(features));
        }
        self.setup.origin = self.setup.clock.now();
        Dispatcher::start(self.setup, self.has_timer.unwrap_or(!self.is_simulated))
    }
}
