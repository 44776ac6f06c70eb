//! The service, and the future of its responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use temponet_dispatch::{Enter, Gate, Place, Reserve};
use tower_service::Service;
use tracing::Span;

use crate::answer::{self, Protocol};
use crate::deadline;
use crate::held::{Held, ServedBody};
use crate::layer::Settings;
use crate::telemetry;

/// A service behind a [`DispatchLayer`](crate::DispatchLayer).
///
/// The inner service is asked whether it is ready once a request has its permit, so that what it reserves is not held by
/// requests that wait. The request has the [`Token`](temponet_dispatch::Token) among its extensions.
pub struct DispatchService<S> {
    inner: S,
    gate: Gate,
    settings: Arc<Settings>,
    reserve: Option<Reserve>,
    place: Option<Place>,
}

impl<S> DispatchService<S> {
    pub(crate) fn new(inner: S, gate: Gate, settings: Arc<Settings>) -> DispatchService<S> {
        DispatchService { inner, gate, settings, reserve: None, place: None }
    }

    /// What the dispatcher is told of a request.
    fn described(&self, parts: &Parts) -> temponet_dispatch::Request {
        let stated = deadline::stated(&parts.headers);
        telemetry::malformed(stated.malformed);
        let left = stated.left.or(self.settings.default_due);
        let mut request = temponet_dispatch::Request::new();
        // A due time that no clock can show is none.
        request.due = left.and_then(|left| self.gate.dispatcher().now().checked_add(left));
        match &self.settings.describe {
            Some(describe) => describe(parts, request),
            None => request,
        }
    }
}

/// A clone has reserved nothing.
impl<S: Clone> Clone for DispatchService<S> {
    fn clone(&self) -> DispatchService<S> {
        DispatchService::new(self.inner.clone(), self.gate.clone(), self.settings.clone())
    }
}

impl<S, B, R> Service<Request<B>> for DispatchService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body + Default,
{
    type Response = Response<ServedBody<R>>;
    type Error = S::Error;
    type Future
        = ResponseFuture<S, B>
    where
        S: Service<Request<B>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.settings.has_back_pressure && self.place.is_none() {
            let reserve = self.reserve.get_or_insert_with(|| self.gate.reserve());
            self.place = Some(ready!(Pin::new(reserve).poll(context)));
            self.reserve = None;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        let (parts, body) = request.into_parts();
        let described = self.described(&parts);
        let span = span(&described, self.gate.dispatcher().now());
        let protocol = Protocol::of(&parts.headers);
        let reading = Reading { is_head: parts.method == Method::HEAD, holds_permit: self.settings.holds_through_body };
        let request = Request::from_parts(parts, body);
        telemetry::arrives();
        let enter = match self.place.take() {
            Some(place) => self.gate.enter_reserved(described, place),
            None => self.gate.enter(described),
        };
        let state = State::Waiting { enter: Waits(Some(enter)), inner: self.inner.clone(), request };
        ResponseFuture { state: Some(state), protocol, reading, span }
    }
}

fn span(request: &temponet_dispatch::Request, now: std::time::Instant) -> Span {
    let due_ms = request.due.map(|due| due.saturating_duration_since(now).as_secs_f64() * 1e3);
    let empty = tracing::field::Empty;
    tracing::info_span!("request", class = request.class, due_ms, waited_ms = empty, outcome = empty)
}

/// A request that waits, and is counted if it goes away.
struct Waits(Option<Enter>);

impl Drop for Waits {
    fn drop(&mut self) {
        if self.0.is_some() {
            telemetry::is_shed(temponet_dispatch::Reason::Cancelled);
        }
    }
}

/// Future of a response. Dropped, its request is withdrawn.
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<S: Service<Request<B>>, B> {
    /// None once the response is there.
    state: Option<State<S, B>>,
    protocol: Protocol,
    reading: Reading,
    span: Span,
}

/// How the body of a response is read.
#[derive(Clone, Copy)]
struct Reading {
    /// Not at all: only the head was asked for.
    is_head: bool,
    holds_permit: bool,
}

impl Reading {
    /// Returns the number of bytes of a body that are read, if that is known: a server stops there, and does not ask
    /// whether there are more.
    fn length<R: Body>(self, response: &Response<R>) -> Option<u64> {
        let status = response.status();
        let has_none = status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if self.is_head || has_none {
            return Some(0);
        }
        let stated = response.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        stated.or_else(|| response.body().size_hint().exact())
    }
}

enum State<S: Service<Request<B>>, B> {
    Waiting {
        enter: Waits,
        inner: S,
        request: Request<B>,
    },
    /// It has its permit; the inner service is not ready.
    Admitted {
        held: Held,
        inner: S,
        request: Request<B>,
    },
    Served {
        /// Dropped before its permit is free.
        response: Pin<Box<S::Future>>,
        held: Held,
    },
}

// Nothing in it is pinned but what is boxed.
impl<S: Service<Request<B>>, B> Unpin for ResponseFuture<S, B> {}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body + Default,
{
    type Output = Result<Response<ServedBody<R>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let span = self.span.clone();
        let _entered = span.enter();
        loop {
            // A panic leaves no state behind, and its permit is dropped.
            let state = self.state.take().expect("polled after it was ready");
            match state.step(&span, &self.protocol, self.reading, context) {
                Step::Next(state) => self.state = Some(state),
                Step::Wait(state) => {
                    self.state = Some(state);
                    return Poll::Pending;
                }
                Step::Done(result) => return Poll::Ready(result),
            }
        }
    }
}

impl<S: Service<Request<B>>, B> Drop for ResponseFuture<S, B> {
    fn drop(&mut self) {
        let _entered = self.span.enter();
        self.state = None;
    }
}

/// What follows from a look at a state.
enum Step<S: Service<Request<B>>, B, R> {
    Next(State<S, B>),
    Wait(State<S, B>),
    Done(Result<Response<ServedBody<R>>, S::Error>),
}

impl<S, B, R> State<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body + Default,
{
    fn step(self, span: &Span, protocol: &Protocol, reading: Reading, context: &mut Context<'_>) -> Step<S, B, R> {
        match self {
            State::Waiting { mut enter, inner, mut request } => {
                let found = enter.0.as_mut().map(|enter| Pin::new(enter).poll(context));
                match found {
                    Some(Poll::Ready(Ok(permit))) => {
                        enter.0 = None;
                        request.extensions_mut().insert(permit.token().clone());
                        Step::Next(State::Admitted { held: Held::new(permit, span), inner, request })
                    }
                    Some(Poll::Ready(Err(shed))) => {
                        enter.0 = None;
                        telemetry::is_shed(shed.reason);
                        Step::Done(Ok(answer::shed(protocol, shed.reason, shed.retry_after)))
                    }
                    Some(Poll::Pending) | None => Step::Wait(State::Waiting { enter, inner, request }),
                }
            }
            State::Admitted { mut held, mut inner, request } => {
                let ready = held.poll(context, |context| inner.poll_ready(context));
                // The inner service may have become ready too late.
                if let (Poll::Ready(Ok(())), Poll::Ready(reason)) = (&ready, held.poll_cancelled(context)) {
                    return Step::Done(Ok(answer::ended(protocol, reason)));
                }
                match ready {
                    Poll::Ready(Ok(())) => {
                        let response = held.poll(context, |_| Box::pin(inner.call(request)));
                        Step::Next(State::Served { held, response })
                    }
                    Poll::Ready(Err(error)) => {
                        held.fail();
                        Step::Done(Err(error))
                    }
                    Poll::Pending => match held.poll_cancelled(context) {
                        Poll::Ready(reason) => Step::Done(Ok(answer::ended(protocol, reason))),
                        Poll::Pending => Step::Wait(State::Admitted { held, inner, request }),
                    },
                }
            }
            State::Served { mut held, mut response } => {
                match held.poll(context, |context| response.as_mut().poll(context)) {
                    Poll::Ready(Ok(response)) => {
                        let length = reading.length(&response);
                        Step::Done(Ok(response.map(|body| match reading.holds_permit {
                            true => ServedBody::new(body, length, held),
                            false => {
                                held.finish();
                                ServedBody::without_permit(body)
                            }
                        })))
                    }
                    Poll::Ready(Err(error)) => {
                        held.fail();
                        Step::Done(Err(error))
                    }
                    Poll::Pending => match held.poll_cancelled(context) {
                        Poll::Ready(reason) => Step::Done(Ok(answer::ended(protocol, reason))),
                        Poll::Pending => Step::Wait(State::Served { held, response }),
                    },
                }
            }
        }
    }
}
