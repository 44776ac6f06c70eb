//! Any header through the layer: each request gets one answer of the right kind, due times are what a naive reader makes
//! of them, and nothing is left behind, whatever the response says of its body.
#![no_main]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use temponet_dispatch::{Clock, Dispatcher, Policy, SimulatedClock};
use temponet_tower::DispatchLayer;
use tower_layer::Layer;
use tower_service::Service;

/// Body of this many frames of two bytes each.
#[derive(Default)]
struct Frames(u8);

impl Body for Frames {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        Poll::Ready(left.map(|_| Ok(http_body::Frame::data(b"xx".as_slice()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }
}

/// Answers with such a body, and what is said of its length.
#[derive(Clone)]
struct Answers(u8, Option<HeaderValue>);

impl Service<Request<()>> for Answers {
    type Response = Response<Frames>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Frames>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let mut response = Response::new(Frames(self.0));
        let said = self.1.clone();
        said.into_iter().for_each(|length| _ = response.headers_mut().insert("content-length", length));
        std::future::ready(Ok(response))
    }
}

/// Seconds that a due time says, if it makes sense.
fn naive(name: &str, value: &HeaderValue) -> Option<f64> {
    let text = value.to_str().ok()?;
    let is_grpc = name == "grpc-timeout";
    let text = if is_grpc { text } else { text.trim_matches([' ', '\t']) };
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match (is_grpc, &text[number.len()..]) {
        (true, "H") => 3600.0,
        (true, "M") | (false, "m") => 60.0,
        (true, "S") | (false, "s") => 1.0,
        (true, "m") | (false, "" | "ms") => 1e-3,
        (true, "u") | (false, "us") => 1e-6,
        (true, "n") => 1e-9,
        _ => return None,
    };
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) if !is_grpc => (0.0, number),
        _ => (1.0, number),
    };
    let parts: Vec<&str> = number.split('.').collect();
    let most = if is_grpc { 8 } else { 9 };
    let is_number = |part: &&str| (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_sound = parts.len() <= if is_grpc { 1 } else { 2 } && parts.iter().all(is_number);
    is_sound.then(|| sign * seconds * number.parse::<f64>().expect("digits and a point"))
}

/// What the layer made of the last due time, in seconds from now.
static READ: Mutex<Option<f64>> = Mutex::new(None);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static LAYER: OnceLock<DispatchLayer> = OnceLock::new();
    let layer = LAYER.get_or_init(|| {
        let clock = SimulatedClock::new();
        let settings = Dispatcher::builder().policy(Policy::EdfShed { q: 0.5 }).clock(clock.clone());
        let layer = DispatchLayer::new(settings).expect("the settings are sound").default_due(Duration::from_secs(1));
        layer.describe(move |_, request| {
            *READ.lock().unwrap() = request.due.map(|due| due.duration_since(clock.now()).as_secs_f64());
            request
        })
    });
    // The first byte says what the answer is like. Lines are values of the headers in turn.
    let (shape, bytes) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let mut request = Request::new(());
    if shape & 1 == 1 {
        *request.method_mut() = Method::HEAD;
    }
    let names = ["x-request-deadline", "grpc-timeout", "content-type", "content-length"];
    let (mut length, mut due) = (None, None::<f64>);
    for (line, name) in bytes.split(|byte| *byte == b'\n').take(12).zip(names.into_iter().cycle()) {
        let Ok(value) = HeaderValue::from_bytes(line) else { continue };
        match name {
            "content-length" => length = Some(value),
            name => {
                let stated = if name == "content-type" { None } else { naive(name, &value) };
                due = stated.into_iter().chain(due).reduce(f64::min);
                request.headers_mut().append(HeaderName::from_static(name), value);
            }
        }
    }
    let mut service = layer.layer(Answers(shape >> 1 & 3, length));
    let mut context = Context::from_waker(Waker::noop());
    let mut call = service.call(request);
    let (expected, read) = (due.unwrap_or(1.0), *READ.lock().unwrap());
    // What no clock can show is never due; 64 bits of nanoseconds are as long as can be.
    let expected = expected.min(u64::MAX as f64 / 1e9);
    assert!(read.is_none_or(|read| (read - expected).abs() <= 1e-8 + 1e-9 * expected), "{read:?}, not {expected}");
    assert!(read.is_some() || expected > 1e9, "no due time in place of {expected}");
    let Poll::Ready(Ok(answer)) = Pin::new(&mut call).poll(&mut context) else { panic!("the handler answers at once") };
    let headers = answer.headers();
    let is_shed = headers.contains_key("x-shed-reason");
    // Less than a nanosecond is no time.
    assert!(is_shed == (expected < 1e-9) || (expected - 1e-9).abs() < 1e-15, "{expected}");
    match answer.status() {
        StatusCode::OK => assert_eq!(headers.contains_key("grpc-status"), is_shed),
        StatusCode::SERVICE_UNAVAILABLE => assert!(is_shed && headers.contains_key("retry-after")),
        status => panic!("{status}"),
    }
    // Read to its end, or left after one frame.
    let mut body = answer.into_body();
    for _ in 0..if shape & 8 == 0 { 9 } else { 1 } {
        let frame = Pin::new(&mut body).poll_frame(&mut context);
        assert!(matches!(frame, Poll::Ready(None | Some(Ok(_)))), "frames are there at once");
    }
    drop(body);
    let stats = layer.handle().stats();
    assert_eq!((stats.queued, stats.running), (0, 0));
    assert_eq!(stats.submitted, stats.met + stats.cancelled + stats.all_shed());
});
