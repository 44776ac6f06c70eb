//! A permit, held while a request is served: by its future, then by the body of its response.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use temponet_dispatch::{Cancelled, Outcome, Permit, Reason, Token};
use tracing::Span;

use crate::telemetry;

/// A permit, and how its request ends if nobody says so: it failed if the handler panicked, else the client has gone.
pub(crate) struct Held {
    slot: Arc<Slot>,
    token: Token,
    cancelled: Cancelled,
    /// Whether the handler is at work. Still so when this is dropped, it panicked.
    is_polled: bool,
}

/// Place of a permit, until somebody ends the request.
struct Slot {
    permit: Mutex<Option<Permit>>,
    span: Span,
}

impl Slot {
    fn end(&self, how: impl FnOnce(Permit) -> Outcome) {
        let permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(permit) = permit {
            telemetry::ends(&self.span, how(permit));
        }
    }

    fn give_up(&self) {
        self.end(|permit| {
            permit.give_up();
            Outcome::Cancelled
        });
    }
}

/// Woken by the token, the permit is given back: nobody may be there to ask for the body.
impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.give_up();
    }
}

impl Held {
    pub fn new(permit: Permit, span: &Span) -> Held {
        let token = permit.token().clone();
        telemetry::begins(span, permit.running().waited());
        let slot = Arc::new(Slot { permit: Mutex::new(Some(permit)), span: span.clone() });
        Held { slot, cancelled: token.cancelled(), token, is_polled: false }
    }

    /// Lets the handler work.
    pub fn poll<R>(&mut self, context: &mut Context<'_>, work: impl FnOnce(&mut Context<'_>) -> R) -> R {
        self.is_polled = true;
        let result = work(context);
        self.is_polled = false;
        result
    }

    /// Waits until it is time to end.
    pub fn poll_cancelled(&mut self, context: &mut Context<'_>) -> Poll<Reason> {
        match Pin::new(&mut self.cancelled).poll(context) {
            Poll::Ready(Some(reason)) => Poll::Ready(reason),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// The request is done.
    pub fn finish(self) {
        self.slot.end(Permit::finish);
    }

    /// The request has failed.
    pub fn fail(mut self) {
        self.is_polled = true;
    }

    /// Lets the permit end at the due time, whether anybody asks for the body or not. Holds as long as what is returned.
    fn end_when_due(&self) -> Option<Cancelled> {
        let mut fires = self.token.cancelled();
        let waker = Waker::from(self.slot.clone());
        match Pin::new(&mut fires).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Some(fires),
            Poll::Ready(_) => {
                self.slot.give_up();
                None
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_polled {
            self.slot.end(|permit| {
                drop(permit);
                Outcome::Failed
            });
        } else {
            self.slot.give_up();
        }
    }
}

/// Body of a response. The request is served until its body has been sent; at its due time the body ends with an error.
pub struct ServedBody<B> {
    body: Pin<Box<B>>,
    held: Option<HeldByBody>,
}

struct HeldByBody {
    held: Held,
    /// Bytes that are still to be read, if that is known.
    left: Option<u64>,
    _fires: Option<Cancelled>,
}

impl<B: Body> ServedBody<B> {
    /// A body of which this many bytes are read, if that is known.
    pub(crate) fn new(body: B, length: Option<u64>, held: Held) -> ServedBody<B> {
        if body.is_end_stream() || length == Some(0) {
            held.finish();
            return ServedBody::without_permit(body);
        }
        let fires = held.end_when_due();
        ServedBody { body: Box::pin(body), held: Some(HeldByBody { held, left: length, _fires: fires }) }
    }

    pub(crate) fn without_permit(body: B) -> ServedBody<B> {
        ServedBody { body: Box::pin(body), held: None }
    }
}

/// The empty body of an answer to a request that was not served.
impl<B: Default> Default for ServedBody<B> {
    fn default() -> ServedBody<B> {
        ServedBody { body: Box::pin(B::default()), held: None }
    }
}

impl<B> Body for ServedBody<B>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Self::Error>>> {
        let ServedBody { body, held } = &mut *self;
        let Some(HeldByBody { held: holds, left, .. }) = held else {
            return body.as_mut().poll_frame(context).map_err(Into::into);
        };
        let span = holds.slot.span.clone();
        let _entered = span.enter();
        // First, so that a token that has fired while nobody asked ends the body.
        if let Poll::Ready(reason) = holds.poll_cancelled(context) {
            *held = None;
            return Poll::Ready(Some(Err(format!("the request was ended: {reason}").into())));
        }
        let frame = match holds.poll(context, |context| body.as_mut().poll_frame(context)) {
            Poll::Ready(frame) => frame,
            Poll::Pending => return Poll::Pending,
        };
        let goes_on = match &frame {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, |data| data.remaining() as u64);
                *left = left.map(|left| left.saturating_sub(length));
                // Nothing comes after trailers, and nobody asks again.
                !body.is_end_stream() && !frame.is_trailers() && *left != Some(0)
            }
            _ => false,
        };
        if !goes_on && let Some(HeldByBody { held, .. }) = held.take() {
            if matches!(frame, Some(Err(_))) { held.fail() } else { held.finish() }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> std::fmt::Debug for ServedBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedBody").field("is_held", &self.held.is_some()).finish_non_exhaustive()
    }
}
