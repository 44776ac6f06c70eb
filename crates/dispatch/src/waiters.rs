//! Tasks and threads that wait for something, and how a thread waits as a task does.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::sync::{Thread, thread};

/// Wakers in the order in which they came.
#[derive(Default)]
pub(crate) struct Waiters {
    next: u64,
    list: VecDeque<(u64, Waker)>,
}

impl Waiters {
    /// Adds a waker, or replaces the one with this number. Returns one to drop once no lock is held.
    pub fn register(&mut self, id: &mut Option<u64>, waker: Waker) -> Option<Waker> {
        if let Some(place) = self.place(*id) {
            return Some(std::mem::replace(&mut self.list[place].1, waker));
        }
        *id = Some(self.next);
        self.list.push_back((self.next, waker));
        self.next += 1;
        None
    }

    /// Removes a waker, if it has not been taken.
    pub fn remove(&mut self, id: Option<u64>) -> Option<Waker> {
        let place = self.place(id)?;
        self.list.remove(place).map(|(_, waker)| waker)
    }

    /// Place of the waker with this number. Numbers go up, so the place of one among thousands is found in a few steps.
    fn place(&self, id: Option<u64>) -> Option<usize> {
        self.list.binary_search_by_key(&id?, |entry| entry.0).ok()
    }

    /// Takes the first waker.
    pub fn pop(&mut self) -> Option<Waker> {
        self.list.pop_front().map(|(_, waker)| waker)
    }

    /// Takes all wakers.
    pub fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.list).into_iter().map(|(_, waker)| waker)
    }
}

/// Wakes a thread.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
