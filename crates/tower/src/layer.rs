//! The layer, its settings, and the handle to shut it down.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use temponet_dispatch::{BuildError, Builder, Gate, Policy, Request, Seat, Stats};
use tower_layer::Layer;

use crate::DispatchService;

/// Says what is known of a request.
type Describe = dyn Fn(&Parts, Request) -> Request + Send + Sync;

/// What all services of a layer share.
#[derive(Clone)]
pub(crate) struct Settings {
    pub default_due: Option<Duration>,
    pub describe: Option<Arc<Describe>>,
    pub has_back_pressure: bool,
    pub holds_through_body: bool,
}

/// Admits requests by their due times, and answers those that are not served.
///
/// All services made by a layer, and their clones, share one queue and one set of permits.
#[derive(Clone)]
pub struct DispatchLayer {
    gate: Gate,
    settings: Arc<Settings>,
}

impl DispatchLayer {
    /// Creates a layer with the settings of a dispatcher. Its listeners are not used: whoever asked is answered, and
    /// changes of the rule are events of `tracing`.
    pub fn new(dispatcher: Builder<Seat>) -> Result<DispatchLayer, BuildError> {
        let gate = Gate::new(dispatcher.on_switch(|switch| tracing::info!("{switch}")))?;
        let settings =
            Settings { default_due: None, describe: None, has_back_pressure: false, holds_through_body: true };
        Ok(DispatchLayer { gate, settings: Arc::new(settings) })
    }

    /// Sets the time from arrival to due time of requests that state none, or none that makes sense. Without it they are
    /// never late.
    pub fn default_due(self, after: Duration) -> DispatchLayer {
        self.with(|settings| settings.default_due = Some(after))
    }

    /// Sets what says more of a request: its estimate, class, value and features, or another due time. It gets the
    /// request with the due time that its headers state.
    pub fn describe(self, describe: impl Fn(&Parts, Request) -> Request + Send + Sync + 'static) -> DispatchLayer {
        self.with(|settings| settings.describe = Some(Arc::new(describe)))
    }

    /// Sets whether services are not ready while the queue is full; off by default, so that they always are, and
    /// requests that are too many are answered at once. Servers seldom heed readiness: hyper reads one request of a
    /// connection after another.
    pub fn back_pressure(self, has_back_pressure: bool) -> DispatchLayer {
        self.with(|settings| settings.has_back_pressure = has_back_pressure)
    }

    /// Sets whether a request is served until the body of its response has been sent; on by default, so that a stream of
    /// tokens holds its permit. At its due time it gives it back, also if the client does not read. Off, a permit ends with
    /// the head of the response, as with tower's `ConcurrencyLimit`: for requests that are never due, or not cancelled,
    /// whose clients may take for ever to read.
    pub fn hold_through_body(self, holds: bool) -> DispatchLayer {
        self.with(|settings| settings.holds_through_body = holds)
    }

    /// Returns a handle to shut down and watch.
    pub fn handle(&self) -> Handle {
        Handle { gate: self.gate.clone() }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> DispatchLayer {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S> Layer<S> for DispatchLayer {
    type Service = DispatchService<S>;

    fn layer(&self, inner: S) -> DispatchService<S> {
        DispatchService::new(inner, self.gate.clone(), self.settings.clone())
    }
}

/// Shuts a layer down, and tells how it fares.
#[derive(Clone)]
pub struct Handle {
    gate: Gate,
}

impl Handle {
    /// Requests that wait, and those to come, are answered 503. Those that run may finish.
    pub fn shutdown(&self) {
        self.gate.dispatcher().shutdown();
    }

    /// Waits until the layer is shut down and no request runs any more.
    pub async fn drained(&self) {
        self.gate.dispatcher().drained().await;
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> Stats {
        self.gate.stats()
    }

    /// Returns the rule that is followed now.
    pub fn rule(&self) -> Policy {
        self.gate.dispatcher().rule()
    }

    /// Lets due times take effect, where the dispatcher has no timer.
    pub fn tick(&self) {
        self.gate.dispatcher().tick();
    }
}
