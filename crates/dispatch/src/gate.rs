//! Admission where every request has a task of its own, as in most servers: no workers, but permits.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard};
use crate::waiters::Waiters;
use crate::{BuildError, Builder, Dispatcher, Estimate, Outcome, Reason, Request, Running, Shed, Stats, Ticket, Token};

/// Lets requests in by the policy of a [`Dispatcher`], as a semaphore that knows due times. Clones are the same gate.
///
/// ```
/// use temponet_dispatch::{Dispatcher, Gate, Policy, Request};
///
/// let gate = Gate::new(Dispatcher::builder().workers(8).policy(Policy::Lifo))?;
/// # let serve = async {
/// match gate.enter(Request::new()).await {
///     Ok(permit) => println!("{:?}", permit.finish()), // once the work is done
///     Err(shed) => println!("{}, come back in {:?}", shed.reason, shed.retry_after),
/// }
/// # };
/// # std::mem::drop(serve);
/// # Ok::<(), temponet_dispatch::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Gate {
    dispatcher: Dispatcher<Seat>,
    room: Arc<Room>,
}

/// What waits for a permit; only a [`Gate`] has any.
pub struct Seat(Arc<Mutex<Waits>>);

enum Waits {
    Waiting(Option<Waker>, Option<Place>),
    Granted(Running, Option<Place>),
    Shed(Reason, Duration),
    /// Whoever waited has got the answer, or has gone.
    Left,
}

impl Seat {
    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells why the request is not served.
    fn shed(&self, reason: Reason, retry_after: Duration) {
        let mut waits = self.lock();
        let Waits::Waiting(waker, place) = &mut *waits else { return };
        let (waker, place) = (waker.take(), place.take());
        *waits = Waits::Shed(reason, retry_after);
        drop(waits);
        // The place is free before whoever waited is told.
        drop(place);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Gives a permit, and keeps its place taken if `keeps_place`. Returns it if nobody waits for it.
    fn grant(&self, running: Running, keeps_place: bool) -> Option<Running> {
        let mut waits = self.lock();
        let Waits::Waiting(waker, place) = &mut *waits else { return Some(running) };
        let (waker, place) = (waker.take(), place.take());
        let (kept, free) = if keeps_place { (place, None) } else { (None, place) };
        *waits = Waits::Granted(running, kept);
        drop(waits);
        drop(free);
        waker.into_iter().for_each(Waker::wake);
        None
    }
}

impl Gate {
    /// Creates a gate with the settings of a dispatcher. Its listener to shed requests is not used: whoever waits is
    /// told.
    pub fn new(settings: Builder<Seat>) -> Result<Gate, BuildError> {
        let told = |shed: Shed<Seat>| shed.payload.shed(shed.reason, shed.retry_after);
        let (free, is_kept) = settings.places();
        let dispatcher = settings.on_shed(told).build()?;
        let room = Arc::new(Room { is_kept, state: Mutex::new(RoomState { free, waiters: Waiters::default() }) });
        Ok(Gate { dispatcher, room })
    }

    /// Asks for a permit. The request is submitted at once, and withdrawn if the future is dropped.
    pub fn enter(&self, request: Request) -> Enter {
        self.submit(request, None)
    }

    /// Asks for a permit with a place that was reserved.
    pub fn enter_reserved(&self, request: Request, place: Place) -> Enter {
        self.submit(request, Some(place))
    }

    fn submit(&self, request: Request, place: Option<Place>) -> Enter {
        let seat = Seat(Arc::new(Mutex::new(Waits::Waiting(None, place))));
        let ticket = match self.dispatcher.submit(request, Seat(seat.0.clone())) {
            Ok(ticket) => Some(ticket),
            Err(shed) => {
                seat.shed(shed.reason, shed.retry_after);
                None
            }
        };
        self.hand_out();
        Enter { gate: self.clone(), seat, ticket }
    }

    /// Waits for room in the queue, for those who would rather wait than be refused. A place is taken until its request
    /// leaves the queue, under [`Policy::RejectWhenBusy`](crate::Policy::RejectWhenBusy) until it has been served. There is
    /// always room for requests with places if all have one. [`Policy::Guarded`](crate::Policy::Guarded) counts places
    /// as the other rules do: where it follows `RejectWhenBusy`, that rule refuses some of them.
    pub fn reserve(&self) -> Reserve {
        Reserve { room: self.room.clone(), waiter: None }
    }

    /// Returns the dispatcher behind the gate, to shut it down or read its counts.
    pub fn dispatcher(&self) -> &Dispatcher<Seat> {
        &self.dispatcher
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> Stats {
        self.dispatcher.stats()
    }

    /// Gives permits to those who are next.
    fn hand_out(&self) {
        while let Some((seat, running)) = self.dispatcher.try_next() {
            // Whoever waited may have just gone.
            let unseen = seat.grant(running, self.room.is_kept);
            unseen.into_iter().for_each(|running| running.hand_back(Reason::Cancelled));
        }
    }
}

/// Future of [`Gate::enter`]: a permit, or why there is none.
#[must_use = "futures do nothing unless polled"]
pub struct Enter {
    gate: Gate,
    seat: Seat,
    ticket: Option<Ticket>,
}

impl Enter {
    /// Says anew how long the request takes in all; see [`Ticket::update_estimate`].
    pub fn update_estimate(&self, estimate: Estimate) {
        if let Some(ticket) = &self.ticket {
            ticket.update_estimate(estimate);
        }
    }
}

impl Future for Enter {
    type Output = Result<Permit, Shed<()>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let mut waits = self.seat.lock();
        if let Waits::Waiting(before, _) = &mut *waits {
            let before = before.replace(waker);
            drop((waits, before));
            return Poll::Pending;
        }
        let found = std::mem::replace(&mut *waits, Waits::Left);
        drop(waits);
        match found {
            // Its due time came after the permit, and before whoever waits for it was awake.
            Waits::Granted(running, _place) if running.is_late() => {
                running.hand_back(Reason::Late);
                self.gate.hand_out();
                let retry_after = Duration::ZERO;
                Poll::Ready(Err(Shed { reason: Reason::Late, retry_after, payload: () }))
            }
            Waits::Granted(running, place) => {
                Poll::Ready(Ok(Permit { gate: self.gate.clone(), running: Some(running), _place: place }))
            }
            Waits::Shed(reason, retry_after) => Poll::Ready(Err(Shed { reason, retry_after, payload: () })),
            Waits::Waiting(..) | Waits::Left => panic!("polled after it was ready"),
        }
    }
}

impl Drop for Enter {
    fn drop(&mut self) {
        let found = std::mem::replace(&mut *self.seat.lock(), Waits::Left);
        match found {
            Waits::Waiting(..) => {
                // The request leaves the queue before its place there is free for another one.
                if let Some(ticket) = &self.ticket {
                    ticket.cancel();
                }
                drop(found);
            }
            Waits::Granted(running, _place) => {
                running.hand_back(Reason::Cancelled);
                self.gate.hand_out();
            }
            Waits::Shed(..) | Waits::Left => {}
        }
    }
}

/// The right to serve a request. Dropped without a word, the request has failed.
#[must_use = "a permit that is dropped is a request that failed"]
pub struct Permit {
    gate: Gate,
    running: Option<Running>,
    /// Free once the request has left.
    _place: Option<Place>,
}

impl Permit {
    /// Returns the request that runs.
    pub fn running(&self) -> &Running {
        self.running.as_ref().expect("there until the permit ends")
    }

    /// Returns the token that tells when to end.
    pub fn token(&self) -> &Token {
        self.running().token()
    }

    /// The request is done. Returns whether it was in time.
    pub fn finish(mut self) -> Outcome {
        self.running.take().map_or(Outcome::Failed, Running::finish)
    }

    /// The request was ended before it was done.
    pub fn give_up(mut self) {
        self.running.take().into_iter().for_each(Running::give_up);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        drop(self.running.take());
        self.gate.hand_out();
    }
}

/// Places in the queue.
struct Room {
    /// Whether a place is taken until its request has been served.
    is_kept: bool,
    state: Mutex<RoomState>,
}

struct RoomState {
    free: usize,
    waiters: Waiters,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever is first, if there is room.
    fn wake(&self) {
        let mut state = self.lock();
        let waker = if state.free > 0 { state.waiters.pop() } else { None };
        drop(state);
        waker.into_iter().for_each(|waker| waker.wake());
    }
}

/// A place in the queue. Dropped, it is free again.
pub struct Place {
    room: Arc<Room>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.lock().free += 1;
        self.room.wake();
    }
}

/// Future of [`Gate::reserve`].
#[must_use = "futures do nothing unless polled"]
pub struct Reserve {
    room: Arc<Room>,
    waiter: Option<u64>,
}

impl Future for Reserve {
    type Output = Place;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Place> {
        let waker = context.waker().clone();
        let Reserve { room, waiter } = &mut *self;
        let mut state = room.lock();
        if state.free == 0 {
            let replaced = state.waiters.register(waiter, waker);
            drop((state, replaced));
            return Poll::Pending;
        }
        state.free -= 1;
        let registered = state.waiters.remove(waiter.take());
        drop((state, registered));
        room.wake();
        Poll::Ready(Place { room: room.clone() })
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            let registered = self.room.lock().waiters.remove(self.waiter);
            drop(registered);
            self.room.wake();
        }
    }
}
