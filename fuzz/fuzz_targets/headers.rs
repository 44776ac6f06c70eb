//! Any header through the layer: each request gets one answer of the right kind, and nothing of it is left behind.
#![no_main]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use temponet_dispatch::{Dispatcher, Policy, SimulatedClock};
use temponet_tower::DispatchLayer;
use tower_layer::Layer;
use tower_service::Service;

/// Body without content.
#[derive(Default)]
struct Empty;

impl http_body::Body for Empty {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Answers;

impl Service<Request<()>> for Answers {
    type Response = Response<Empty>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Empty>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        std::future::ready(Ok(Response::new(Empty)))
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static LAYER: OnceLock<DispatchLayer> = OnceLock::new();
    let layer = LAYER.get_or_init(|| {
        let settings = Dispatcher::builder().policy(Policy::EdfShed { q: 0.5 }).clock(SimulatedClock::new());
        DispatchLayer::new(settings).expect("the settings are sound").default_due(Duration::from_secs(1))
    });
    let mut request = Request::new(());
    // Lines are values of the headers in turn.
    let names = ["x-request-deadline", "grpc-timeout", "content-type"];
    for (line, name) in bytes.split(|byte| *byte == b'\n').take(9).zip(names.into_iter().cycle()) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            request.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    let mut service = layer.layer(Answers);
    let mut context = Context::from_waker(Waker::noop());
    let mut call = service.call(request);
    let Poll::Ready(Ok(answer)) = Pin::new(&mut call).poll(&mut context) else { panic!("the handler answers at once") };
    let headers = answer.headers();
    let is_shed = headers.contains_key("x-shed-reason");
    match answer.status() {
        StatusCode::OK => assert_eq!(headers.contains_key("grpc-status"), is_shed),
        StatusCode::SERVICE_UNAVAILABLE => assert!(is_shed && headers.contains_key("retry-after")),
        status => panic!("{status}"),
    }
    let stats = layer.handle().stats();
    assert_eq!((stats.queued, stats.running), (0, 0));
});
