//! The dispatcher: its state behind one lock, a clock, and what is told to others once the lock is free.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::handles::{Desk, End};
use crate::queue::{NEVER, Place};
use crate::state::{Effects, Started, State};
use crate::sync::Mutex;
use crate::timer::{self, Alarm};
use crate::waiters::block_on;
use crate::{
    BuildError, Builder, Clock, Estimate, Estimator, Outcome, Policy, Request, Running, Shed, Stats, Switch, Ticket,
    Token,
};

/// Listener to requests that leave the queue unserved.
pub(crate) type OnShed<T> = Box<dyn Fn(Shed<T>) + Send + Sync>;
/// Listener to changes of the rule.
pub(crate) type OnSwitch = Box<dyn Fn(&Switch) + Send + Sync>;

/// Settings of a dispatcher.
pub(crate) struct Setup<T> {
    pub workers: usize,
    pub capacity: usize,
    pub policy: Policy,
    pub estimator: Estimator,
    pub cancels: bool,
    pub clock: Arc<dyn Clock>,
    pub on_shed: Option<OnShed<T>>,
    pub on_switch: Option<OnSwitch>,
    pub origin: Instant,
}

/// Queue of requests between those who submit and those who serve them. Clones are the same dispatcher; when the last
/// one is dropped it is shut down. `T` is what comes with a request: a job, a channel for the answer.
pub struct Dispatcher<T> {
    shared: Arc<Shared<T>>,
    _last: Arc<Last<T>>,
}

impl<T> Clone for Dispatcher<T> {
    fn clone(&self) -> Dispatcher<T> {
        Dispatcher { shared: self.shared.clone(), _last: self._last.clone() }
    }
}

/// Goes with the last clone of a dispatcher: nobody could serve what waits then.
struct Last<T>(Arc<Shared<T>>);

impl<T> Drop for Last<T> {
    fn drop(&mut self) {
        self.0.with(|state, effects| state.shut_down(effects));
    }
}

struct Shared<T> {
    clock: Arc<dyn Clock>,
    origin: Instant,
    cancels: bool,
    on_shed: Option<OnShed<T>>,
    on_switch: Option<OnSwitch>,
    alarm: Option<Arc<Alarm>>,
    state: Mutex<State<T>>,
}

impl<T: Send + 'static> Dispatcher<T> {
    /// Returns the settings to begin with: one worker, room for 10 000, `EdfShed` by the median, lengths as given.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    pub(crate) fn start(setup: Setup<T>, has_timer: bool) -> Result<Dispatcher<T>, BuildError> {
        let Setup { workers, capacity, policy, estimator, cancels, clock, on_shed, on_switch, origin } = setup;
        let state = Mutex::new(State::new(workers, capacity, &policy, estimator, cancels)?);
        let alarm = has_timer.then(Arc::<Alarm>::default);
        let shared = Arc::new(Shared { clock, origin, cancels, on_shed, on_switch, alarm, state });
        if let Some(alarm) = &shared.alarm {
            let (clock, whom) = (shared.clock.clone(), Arc::downgrade(&shared));
            timer::start(alarm.clone(), clock, whom, |shared: &Shared<T>| shared.with(|_, _| ()))?;
        }
        Ok(Dispatcher { _last: Arc::new(Last(shared.clone())), shared })
    }

    /// Takes a request in, or refuses it with the reason. Never waits.
    pub fn submit(&self, request: Request, payload: T) -> Result<Ticket, Shed<T>> {
        let shared = &self.shared;
        let due = request.due.map_or(NEVER, |due| shared.nanoseconds(due));
        let mut notice = None;
        let ((seq, place), mut effects) = shared.locked(|state, effects| {
            let (seq, place) = state.submit(request, due, payload, effects);
            notice = place.and_then(|place| state.notice(place));
            (seq, place)
        });
        let refused = match place {
            Some(_) => None,
            None => effects.leaving.iter().position(|(waiting, _)| waiting.seq == seq),
        };
        let refused = refused.map(|place| effects.leaving.swap_remove(place));
        let retry_after = effects.retry_after;
        shared.carry_out(effects);
        match (place, notice, refused) {
            (Some(place), Some(notice), _) => Ok(Ticket { desk: shared.clone(), place, notice, waiter: None }),
            (_, _, Some((waiting, reason))) => Err(Shed { reason, retry_after, payload: waiting.content.payload }),
            _ => unreachable!("a request is taken in or refused"),
        }
    }

    /// Waits for the next request to serve; `None` once the dispatcher is shut down. Dropping the future loses nothing.
    pub fn next(&self) -> Next<T> {
        Next { shared: self.shared.clone(), waiter: None }
    }

    /// Blocks this thread until there is a request to serve; `None` once the dispatcher is shut down.
    pub fn next_blocking(&self) -> Option<(T, Running)> {
        block_on(self.next())
    }

    /// Returns the next request to serve, if there is one and a worker is free for it.
    pub fn try_next(&self) -> Option<(T, Running)> {
        let (started, effects) = self.shared.locked(|state, effects| state.start(effects));
        // From here on the request has an owner, whatever listeners do.
        let running = started.map(|started| self.shared.running(started));
        self.shared.carry_out(effects);
        running
    }

    /// Lets due times take effect by now. Only needed where there is no timer. Returns how long it is until the next one.
    pub fn tick(&self) -> Option<Duration> {
        let ((), effects) = self.shared.locked(|_, _| ());
        let next = effects.alarm.map(|at| self.shared.instant(at).saturating_duration_since(self.shared.clock.now()));
        self.shared.carry_out(effects);
        next
    }

    /// Refuses what waits and what comes from now on. What runs may finish; [`Dispatcher::drained`] waits for it.
    pub fn shutdown(&self) {
        self.shared.with(|state, effects| state.shut_down(effects));
    }

    /// Waits until the dispatcher is shut down, no request runs any more, and the listener has been told of all that left.
    pub fn drained(&self) -> Drained<T> {
        Drained { shared: self.shared.clone(), waiter: None }
    }

    /// Blocks this thread until the dispatcher is shut down and no request runs any more.
    pub fn wait_drained(&self) {
        block_on(self.drained());
    }

    /// Returns the time by the dispatcher's clock.
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> Stats {
        self.shared.with(|state, effects| state.stats(effects))
    }

    /// Returns the rule that is followed now.
    pub fn rule(&self) -> Policy {
        self.shared.with(|state, _| state.rule().clone())
    }
}

impl<T> Shared<T> {
    /// Nanoseconds from the start of the dispatcher to a time; zero before it.
    fn nanoseconds(&self, time: Instant) -> u64 {
        let since = time.saturating_duration_since(self.origin).as_nanos();
        u64::try_from(since).unwrap_or(NEVER - 1).min(NEVER - 1)
    }

    /// The time this long after the start; a century after it, if the clock cannot show it.
    fn instant(&self, nanoseconds: u64) -> Instant {
        let century = Duration::from_secs(100 * 365 * 24 * 3600);
        self.origin.checked_add(Duration::from_nanos(nanoseconds)).unwrap_or_else(|| self.origin + century)
    }

    /// Changes the state at the present time. What follows from it is still to be carried out.
    fn locked<R>(&self, change: impl FnOnce(&mut State<T>, &mut Effects<T>) -> R) -> (R, Effects<T>) {
        let now = self.nanoseconds(self.clock.now());
        let mut effects = Effects::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.advance(now, &mut effects);
        let result = change(&mut state, &mut effects);
        state.settle(&mut effects);
        effects.listener_waits = self.on_shed.is_some() && !effects.leaving.is_empty();
        state.listeners += usize::from(effects.listener_waits);
        drop(state);
        (result, effects)
    }

    fn with<R>(&self, change: impl FnOnce(&mut State<T>, &mut Effects<T>) -> R) -> R {
        let (result, effects) = self.locked(change);
        self.carry_out(effects);
        result
    }

    fn carry_out(&self, effects: Effects<T>) {
        let Effects { leaving, told, cancelled, wake, unused: _unused, switch, retry_after, alarm, listener_waits } =
            effects;
        // Also if the listener panics.
        let _called = listener_waits.then(|| Called(self));
        if let (Some(alarm), Some(at)) = (&self.alarm, alarm) {
            alarm.set(self.instant(at));
        }
        wake.into_iter().for_each(|waker| waker.wake());
        cancelled.into_iter().for_each(|(notice, reason)| notice.tell_cancelled(reason));
        told.into_iter().for_each(|(notice, outcome)| notice.tell_outcome(outcome));
        // Everybody is told before a listener is called, which may panic.
        leaving.iter().for_each(|(waiting, reason)| waiting.content.notice.tell_outcome(Outcome::Shed(*reason)));
        if let Some(listener) = &self.on_shed {
            for (waiting, reason) in leaving {
                listener(Shed { reason, retry_after, payload: waiting.content.payload });
            }
        }
        if let (Some(listener), Some(switch)) = (&self.on_switch, switch) {
            listener(&switch);
        }
    }
}

/// Dropped once the listener has been called for all that left with one change of the state.
struct Called<'a, T>(&'a Shared<T>);

impl<T> Drop for Called<'_, T> {
    fn drop(&mut self) {
        // No time passes here: more would leave, and the listener be called while it may be panicking.
        let wakers = self.0.state.lock().unwrap_or_else(PoisonError::into_inner).listener_returns();
        wakers.into_iter().for_each(|waker| waker.wake());
    }
}

impl<T: Send + 'static> Shared<T> {
    fn running(self: &Arc<Self>, started: Started<T>) -> (T, Running) {
        let Started { place, due, waited, class, notice, payload } = started;
        let due = (due != NEVER).then(|| self.instant(due));
        let token = Token { notice, clock: self.clock.clone(), due: due.filter(|_| self.cancels) };
        let waited = Duration::from_nanos(waited);
        (payload, Running { desk: self.clone(), place, class, waited, due, token, has_ended: false })
    }
}

impl<T: Send + 'static> Desk for Shared<T> {
    fn leave(&self, seq: u64, end: End) -> Option<Outcome> {
        self.with(|state, effects| state.leave(seq, end, effects))
    }

    fn cancel(&self, place: Place) {
        self.with(|state, effects| state.cancel(place, effects));
    }

    fn update(&self, place: Place, estimate: Estimate) {
        self.with(|state, effects| state.update(place, estimate, effects));
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if let Some(alarm) = &self.alarm {
            alarm.close();
        }
    }
}

/// Future of [`Dispatcher::next`].
#[must_use = "futures do nothing unless polled"]
pub struct Next<T> {
    shared: Arc<Shared<T>>,
    waiter: Option<u64>,
}

impl<T: Send + 'static> Future for Next<T> {
    type Output = Option<(T, Running)>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Next { shared, waiter } = &mut *self;
        let waker = context.waker().clone();
        let (found, effects) = shared.locked(|state, effects| {
            let started = state.start(effects);
            if started.is_some() || state.is_closed {
                effects.unused = state.idle.remove(waiter.take());
                return Poll::Ready(started);
            }
            effects.unused = state.idle.register(waiter, waker);
            Poll::Pending
        });
        let found = found.map(|started| started.map(|started| shared.running(started)));
        shared.carry_out(effects);
        found
    }
}

impl<T> Drop for Next<T> {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            // If it had been woken, another one is woken in its place.
            self.shared.with(|state, effects| effects.unused = state.idle.remove(self.waiter));
        }
    }
}

/// Future of [`Dispatcher::drained`].
#[must_use = "futures do nothing unless polled"]
pub struct Drained<T> {
    shared: Arc<Shared<T>>,
    waiter: Option<u64>,
}

impl<T> Future for Drained<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Drained { shared, waiter } = &mut *self;
        let waker = context.waker().clone();
        shared.with(|state, effects| {
            if state.is_drained() {
                effects.unused = state.drained.remove(waiter.take());
                return Poll::Ready(());
            }
            effects.unused = state.drained.register(waiter, waker);
            Poll::Pending
        })
    }
}

impl<T> Drop for Drained<T> {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            self.shared.with(|state, effects| effects.unused = state.drained.remove(self.waiter));
        }
    }
}
