//! A service behind the layer, with a clock that the test moves.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use temponet_dispatch::{Builder, Dispatcher, Policy, Seat, SimulatedClock};
use temponet_tower::{DispatchLayer, DispatchService, Handle, ServedBody};
use tokio::sync::Semaphore;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

pub type Inner = BoxCloneSyncService<Request<String>, Response<String>, Infallible>;
pub type Answer = Response<ServedBody<String>>;

/// One worker whose handlers wait until they are let go. A body says what a handler does.
pub struct Scene {
    pub service: DispatchService<Inner>,
    pub handle: Handle,
    pub clock: SimulatedClock,
    /// Lets handlers go on, one for each permit.
    pub go: Arc<Semaphore>,
    /// Number of handlers that have begun.
    pub begun: Arc<AtomicUsize>,
}

pub fn settings(policy: Policy) -> Builder<Seat> {
    Dispatcher::builder().policy(policy).capacity(2)
}

pub fn scene(settings: Builder<Seat>, more: impl FnOnce(DispatchLayer) -> DispatchLayer) -> Scene {
    let clock = SimulatedClock::new();
    let layer = more(DispatchLayer::new(settings.clock(clock.clone())).unwrap());
    let (go, begun) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (go, begun) = (go.clone(), begun.clone());
        move |request: Request<String>| {
            let (go, begun) = (go.clone(), begun.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                go.acquire().await.unwrap().forget();
                assert_ne!(request.body(), "panic", "as the test wants it");
                Ok::<_, Infallible>(Response::new(String::new()))
            }
        }
    };
    let handle = layer.handle();
    let service = layer.layer(BoxCloneSyncService::new(tower::service_fn(handler)));
    Scene { service, handle, clock, go, begun }
}

impl Scene {
    /// Sends a request from a task of its own, and lets it come as far as it can.
    pub async fn send(&self, request: Request<String>) -> tokio::task::JoinHandle<Answer> {
        let mut service = self.service.clone();
        let call = async move { service.ready().await.unwrap().call(request).await.unwrap() };
        let task = tokio::spawn(call);
        settle().await;
        task
    }

    pub async fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
        self.handle.tick();
        settle().await;
    }

    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

/// Lets all tasks of this thread come as far as they can.
pub async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

pub fn request(body: &str) -> Request<String> {
    Request::new(body.to_owned())
}

pub fn due(body: &str, deadline: &str) -> Request<String> {
    Request::builder().header("x-request-deadline", deadline).body(body.to_owned()).unwrap()
}

pub fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers().get(name).and_then(|value| value.to_str().ok())
}
