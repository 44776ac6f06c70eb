//! Contract of spans: whatever a request does happens in its span, also what its body does, and its outcome stands there.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use http_body::{Body, Frame};
use temponet_dispatch::{Dispatcher, Policy, SimulatedClock};
use temponet_tower::DispatchLayer;
use tower::{Layer, Service, ServiceExt};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What a subscriber saw: whether a span is entered, and the outcomes that were recorded.
#[derive(Default)]
struct Seen {
    entered: AtomicU64,
    outcomes: Mutex<Vec<String>>,
    events_inside: AtomicU64,
}

struct Watches(Arc<Seen>);

impl Visit for &Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "outcome" {
            self.outcomes.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Watches {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self.0);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.0.events_inside.fetch_add(self.0.entered.load(Ordering::SeqCst), Ordering::SeqCst);
    }
    fn enter(&self, _: &Id) {
        self.0.entered.fetch_add(1, Ordering::SeqCst);
    }
    fn exit(&self, _: &Id) {
        self.0.entered.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body that says when it is asked.
#[derive(Default)]
struct Speaks(bool);

impl Body for Speaks {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
        tracing::info!("asked");
        Poll::Ready((!std::mem::replace(&mut self.0, true)).then(|| Ok(Frame::data(b"x".as_slice()))))
    }
}

#[tokio::test]
async fn bodies_are_sent_in_the_span_of_their_requests() {
    let seen = Arc::new(Seen::default());
    let _guard = tracing::subscriber::set_default(Watches(seen.clone()));
    let settings = Dispatcher::builder().policy(Policy::Fcfs).clock(SimulatedClock::new());
    let layer = DispatchLayer::new(settings).unwrap();
    let handler = |_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Speaks(false))));
    let mut service = layer.layer(tower::service_fn(handler));
    let mut body = service.ready().await.unwrap().call(Request::new(())).await.unwrap().into_body();
    assert_eq!(seen.outcomes.lock().unwrap().len(), 0);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
    }
    assert_eq!((seen.events_inside.load(Ordering::SeqCst), seen.entered.load(Ordering::SeqCst)), (2, 0));
    assert_eq!(*seen.outcomes.lock().unwrap(), ["\"met\""]);
    // A client that leaves while the body is sent.
    let mut body = service.ready().await.unwrap().call(Request::new(())).await.unwrap().into_body();
    assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
    drop(body);
    assert_eq!(seen.outcomes.lock().unwrap()[1..], ["\"cancelled\""]);
}
