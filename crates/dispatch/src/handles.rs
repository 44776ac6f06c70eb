//! What the two sides of a request hold: a ticket whoever submitted it, the running request and its token whoever
//! serves it.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::queue::Place;
use crate::sync::{Mutex, MutexGuard};
use crate::waiters::{Waiters, block_on};
use crate::{Clock, Estimate, Outcome, Reason};

/// How a request that ran leaves its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    GivenUp,
    Failed,
    /// It was handed out, but nobody began to work on it.
    Unbegun(Reason),
}

/// What handles ask of a dispatcher, whatever it carries.
pub(crate) trait Desk: Send + Sync {
    fn leave(&self, seq: u64, end: End) -> Option<Outcome>;
    fn cancel(&self, place: Place);
    fn update(&self, place: Place, estimate: Estimate);
}

/// What is told to those who hold a request.
#[derive(Default)]
pub(crate) struct Notice {
    state: Mutex<NoticeState>,
}

#[derive(Default)]
struct NoticeState {
    outcome: Option<Outcome>,
    cancelled: Option<Reason>,
    waiters: Waiters,
}

impl Notice {
    fn lock(&self) -> MutexGuard<'_, NoticeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tell_outcome(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome.get_or_insert(outcome);
        let waiters = state.waiters.take();
        drop(state);
        waiters.for_each(|waker| waker.wake());
    }

    pub fn tell_cancelled(&self, reason: Reason) {
        let mut state = self.lock();
        // Whoever found it running may come here after it has finished.
        if state.outcome.is_some() {
            return;
        }
        state.cancelled.get_or_insert(reason);
        let waiters = state.waiters.take();
        drop(state);
        waiters.for_each(|waker| waker.wake());
    }

    /// Waits for what `of` finds.
    fn poll<R>(
        &self,
        id: &mut Option<u64>,
        context: &mut Context<'_>,
        of: impl Fn(&NoticeState) -> Option<R>,
    ) -> Poll<R> {
        let waker = context.waker().clone();
        let mut state = self.lock();
        match of(&state) {
            Some(found) => Poll::Ready(found),
            None => {
                let replaced = state.waiters.register(id, waker);
                drop((state, replaced));
                Poll::Pending
            }
        }
    }

    fn forget(&self, id: Option<u64>) {
        let waker = self.lock().waiters.remove(id);
        drop(waker);
    }
}

/// A request that was taken in. As a future it tells what became of the request. Dropping it changes nothing.
pub struct Ticket {
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) place: Place,
    pub(crate) notice: Arc<Notice>,
    pub(crate) waiter: Option<u64>,
}

impl Ticket {
    /// Returns the number of the request, in the order of arrival.
    pub fn number(&self) -> u64 {
        self.place.seq
    }

    /// Withdraws the request: it leaves the queue, or its token fires if it runs.
    pub fn cancel(&self) {
        self.desk.cancel(self.place);
    }

    /// Says anew how long the request takes in all. One that waits may change its place; one that runs and would be
    /// late by it is cancelled, if the policy refuses such requests.
    pub fn update_estimate(&self, estimate: Estimate) {
        self.desk.update(self.place, estimate);
    }

    /// Returns what became of the request, if it has left.
    pub fn outcome(&self) -> Option<Outcome> {
        self.notice.lock().outcome
    }

    /// Blocks this thread until the request has left.
    pub fn wait(self) -> Outcome {
        block_on(self)
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let ticket = &mut *self;
        ticket.notice.poll(&mut ticket.waiter, context, |state| state.outcome)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.notice.forget(self.waiter);
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("number", &self.number()).field("outcome", &self.outcome()).finish()
    }
}

/// A request that a worker serves, and its claim to a worker. Dropped without a word, as by a panic, it has failed, and
/// the worker is free.
#[must_use = "a running request that is dropped has failed"]
pub struct Running {
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) place: Place,
    pub(crate) class: u32,
    pub(crate) waited: Duration,
    pub(crate) due: Option<Instant>,
    pub(crate) token: Token,
    pub(crate) has_ended: bool,
}

impl Running {
    /// Returns the number of the request, in the order of arrival.
    pub fn number(&self) -> u64 {
        self.place.seq
    }

    /// Returns the class of the request.
    pub fn class(&self) -> u32 {
        self.class
    }

    /// Returns the time that it has waited.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the token that tells when to end.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Says anew how long the request takes in all; see [`Ticket::update_estimate`].
    pub fn update_estimate(&self, estimate: Estimate) {
        self.desk.update(self.place, estimate);
    }

    /// The request is done. Returns whether it was in time.
    pub fn finish(mut self) -> Outcome {
        self.end(End::Finished).unwrap_or(Outcome::Failed)
    }

    /// The request was ended before it was done, because its token fired.
    pub fn give_up(mut self) {
        _ = self.end(End::GivenUp);
    }

    /// The request has failed. Its length says nothing about others.
    pub fn fail(mut self) {
        _ = self.end(End::Failed);
    }

    /// Whether its due time has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.due.is_some_and(|due| due <= self.token.clock.now())
    }

    /// The request was handed out, but nobody began to work on it.
    pub(crate) fn hand_back(mut self, reason: Reason) {
        _ = self.end(End::Unbegun(reason));
    }

    fn end(&mut self, end: End) -> Option<Outcome> {
        if std::mem::replace(&mut self.has_ended, true) { None } else { self.desk.leave(self.place.seq, end) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.end(End::Failed);
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("number", &self.number()).field("class", &self.class).finish()
    }
}

/// Tells a handler when to end: at the due time, or when the request was withdrawn. Once a request is finished its token
/// does not fire any more.
#[derive(Clone)]
pub struct Token {
    pub(crate) notice: Arc<Notice>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Time at which the token fires; `None` if it does not by itself.
    pub(crate) due: Option<Instant>,
}

impl Token {
    /// Whether to end.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Returns why to end; `None` while there is no reason to.
    pub fn reason(&self) -> Option<Reason> {
        let (told, has_left) = {
            let state = self.notice.lock();
            (state.cancelled, state.outcome.is_some())
        };
        let is_due = || !has_left && self.due.is_some_and(|due| due <= self.clock.now());
        told.or_else(|| is_due().then_some(Reason::Late))
    }

    /// Returns the time at which the token fires by itself.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Waits until it is time to end, and returns why; `None` once the request is finished, so that whoever watches a
    /// token does not wait for ever. A due time is noticed by the dispatcher's timer, or by
    /// [`Dispatcher::tick`](crate::Dispatcher::tick).
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), waiter: None }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("reason", &self.reason()).field("due", &self.due).finish()
    }
}

/// Future of [`Token::cancelled`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    token: Token,
    waiter: Option<u64>,
}

impl Future for Cancelled {
    type Output = Option<Reason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Reason>> {
        let Cancelled { token, waiter } = &mut *self;
        match token.reason() {
            Some(reason) => Poll::Ready(Some(reason)),
            None => token.notice.poll(waiter, context, |state| match (state.cancelled, state.outcome) {
                (None, None) => None,
                (reason, _) => Some(reason),
            }),
        }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.token.notice.forget(self.waiter);
    }
}
