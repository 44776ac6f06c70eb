//! A permit, held while a request is served: by its future, then by the body of its response.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use temponet_dispatch::{Cancelled, Outcome, Permit, Reason};

use crate::telemetry;

/// A permit, and how its request ends if nobody says so: it failed if the handler panicked, else the client has gone.
pub(crate) struct Held {
    permit: Option<Permit>,
    cancelled: Cancelled,
    /// Whether the handler is at work. Still so when this is dropped, it panicked.
    is_polled: bool,
}

impl Held {
    pub fn new(permit: Permit) -> Held {
        let cancelled = permit.token().cancelled();
        telemetry::begins(permit.running().waited());
        Held { permit: Some(permit), cancelled, is_polled: false }
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
        Pin::new(&mut self.cancelled).poll(context)
    }

    /// The request is done.
    pub fn finish(mut self) {
        if let Some(permit) = self.permit.take() {
            telemetry::ends(permit.finish());
        }
    }

    /// The request has failed.
    pub fn fail(mut self) {
        self.is_polled = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        if self.is_polled {
            drop(permit);
            telemetry::ends(Outcome::Failed);
        } else {
            permit.give_up();
            telemetry::ends(Outcome::Cancelled);
        }
    }
}

/// Body of a response. The request is served until its body has been sent; at its due time the body ends with an error.
pub struct ServedBody<B> {
    body: Pin<Box<B>>,
    held: Option<Held>,
}

impl<B: Body> ServedBody<B> {
    pub(crate) fn new(body: B, held: Held) -> ServedBody<B> {
        let is_sent = body.is_end_stream();
        let mut served = ServedBody { body: Box::pin(body), held: Some(held) };
        if is_sent {
            served.finish();
        }
        served
    }

    fn finish(&mut self) {
        self.held.take().into_iter().for_each(Held::finish);
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
        let Some(holds) = held else {
            return body.as_mut().poll_frame(context).map_err(Into::into);
        };
        let frame = match holds.poll(context, |context| body.as_mut().poll_frame(context)) {
            Poll::Ready(frame) => frame,
            Poll::Pending => match holds.poll_cancelled(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(reason) => {
                    *held = None;
                    return Poll::Ready(Some(Err(format!("the request was ended: {reason}").into())));
                }
            },
        };
        match &frame {
            // Nothing comes after trailers, and nobody asks again.
            Some(Ok(frame)) if !body.is_end_stream() && !frame.is_trailers() => {}
            Some(Err(_)) => held.take().into_iter().for_each(Held::fail),
            _ => self.finish(),
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
