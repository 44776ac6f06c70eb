//! Contract of bodies: a request is served until its body has been sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::{Body, Frame};
use temponet_dispatch::{Dispatcher, Outcome, Policy, SimulatedClock};
use temponet_tower::{DispatchLayer, Handle, ServedBody};
use tower::{Layer, Service, ServiceExt};

/// A stream of this many frames; at an odd end it waits for ever, or fails.
#[derive(Default)]
struct Frames {
    left: u32,
    end: End,
}

#[derive(Clone, Copy, Default)]
enum End {
    #[default]
    Done,
    Waits,
    Fails,
}

impl Body for Frames {
    type Data = &'static [u8];
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.left > 0 {
            self.left -= 1;
            return Poll::Ready(Some(Ok(Frame::data(b"token"))));
        }
        match self.end {
            End::Done => Poll::Ready(None),
            End::Waits => Poll::Pending,
            End::Fails => Poll::Ready(Some(Err(std::io::Error::other("broken")))),
        }
    }
}

/// A response whose body is such a stream, due in 10 ms.
async fn streaming(left: u32, end: End) -> (ServedBody<Frames>, Handle, SimulatedClock) {
    asked(Request::new(()), move || Response::new(Frames { left, end }), |layer| layer).await
}

/// The body of a response to a request that is due in 10 ms.
async fn asked(
    request: Request<()>,
    response: impl Fn() -> Response<Frames> + Clone,
    more: impl FnOnce(DispatchLayer) -> DispatchLayer,
) -> (ServedBody<Frames>, Handle, SimulatedClock) {
    let clock = SimulatedClock::new();
    let layer = DispatchLayer::new(Dispatcher::builder().policy(Policy::Fcfs).clock(clock.clone())).unwrap();
    let handler = move |_: Request<()>| std::future::ready(Ok::<_, Infallible>(response()));
    let layer = more(layer.default_due(Duration::from_millis(10)));
    let mut service = layer.layer(tower::service_fn(handler));
    let response = service.ready().await.unwrap().call(request).await.unwrap();
    (response.into_body(), layer.handle(), clock)
}

/// What a frame is: data, an error, the end, or none yet.
fn next(body: &mut ServedBody<Frames>) -> &'static str {
    match Pin::new(body).poll_frame(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(Some(Ok(_))) => "data",
        Poll::Ready(Some(Err(_))) => "error",
        Poll::Ready(None) => "end",
        Poll::Pending => "none",
    }
}

fn outcome(handle: &Handle) -> Option<Outcome> {
    let stats = handle.stats();
    let counts = [
        (stats.met, Outcome::Met),
        (stats.late, Outcome::Late),
        (stats.failed, Outcome::Failed),
        (stats.cancelled, Outcome::Cancelled),
    ];
    assert_eq!(counts.iter().map(|(count, _)| count).sum::<u64>() + stats.running, 1);
    counts.iter().find(|(count, _)| *count > 0).map(|(_, outcome)| *outcome)
}

#[tokio::test]
async fn a_stream_holds_its_permit_until_its_end() {
    let (mut body, handle, _) = streaming(2, End::Done).await;
    assert_eq!([next(&mut body), next(&mut body)], ["data"; 2]);
    assert_eq!(outcome(&handle), None);
    assert_eq!(next(&mut body), "end");
    assert_eq!(outcome(&handle), Some(Outcome::Met));
    assert_eq!(next(&mut body), "end");
}

#[tokio::test]
async fn a_stream_is_ended_with_an_error_at_its_due_time() {
    let (mut body, handle, clock) = streaming(1, End::Waits).await;
    assert_eq!([next(&mut body), next(&mut body)], ["data", "none"]);
    clock.advance(Duration::from_millis(10));
    assert_eq!(next(&mut body), "error");
    assert_eq!(outcome(&handle), Some(Outcome::Cancelled));
}

#[tokio::test]
async fn a_stream_that_fails_or_is_left_frees_its_permit() {
    let (mut body, handle, _) = streaming(0, End::Fails).await;
    assert_eq!(next(&mut body), "error");
    assert_eq!(outcome(&handle), Some(Outcome::Failed));
    let (body, handle, _) = streaming(3, End::Done).await;
    drop(body);
    assert_eq!(outcome(&handle), Some(Outcome::Cancelled));
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_its_permit_until_its_due_time() {
    let (mut body, handle, clock) = streaming(3, End::Done).await;
    assert_eq!(next(&mut body), "data");
    clock.advance(Duration::from_millis(10));
    // What the timer does.
    handle.tick();
    assert_eq!((handle.stats().running, outcome(&handle)), (0, Some(Outcome::Cancelled)));
    assert_eq!(next(&mut body), "error", "it comes back");
}

#[tokio::test]
async fn a_permit_may_end_with_the_head_of_the_response() {
    let response = || Response::new(Frames { left: 1, end: End::Waits });
    let (mut body, handle, clock) = asked(Request::new(()), response, |layer| layer.hold_through_body(false)).await;
    assert_eq!(outcome(&handle), Some(Outcome::Met));
    clock.advance(Duration::from_millis(20));
    assert_eq!([next(&mut body), next(&mut body)], ["data", "none"]);
}

/// Servers do not read these bodies, or not to their ends, and drop them.
#[tokio::test]
async fn bodies_that_are_not_read_to_their_ends_are_done() {
    let with = |status: u16, length: Option<u32>| {
        move || {
            let response = Response::builder().status(status);
            let response =
                length.into_iter().fold(response, |response, length| response.header("content-length", length));
            response.body(Frames { left: 2, end: End::Waits }).unwrap()
        }
    };
    let head = Request::head("/").body(()).unwrap();
    for (request, response) in
        [(head, with(200, None)), (Request::new(()), with(204, None)), (Request::new(()), with(304, None))]
    {
        let (body, handle, _) = asked(request, response, |layer| layer).await;
        assert_eq!(outcome(&handle), Some(Outcome::Met));
        drop(body);
    }
    let (mut body, handle, _) = asked(Request::new(()), with(200, Some(10)), |layer| layer).await;
    assert_eq!((next(&mut body), outcome(&handle)), ("data", None));
    assert_eq!((next(&mut body), outcome(&handle)), ("data", Some(Outcome::Met)));
    drop(body);
    // Eleven were promised: whoever leaves after ten has not got them.
    let (mut body, handle, _) = asked(Request::new(()), with(200, Some(11)), |layer| layer).await;
    assert_eq!([next(&mut body), next(&mut body)], ["data"; 2]);
    drop(body);
    assert_eq!(outcome(&handle), Some(Outcome::Cancelled));
}
