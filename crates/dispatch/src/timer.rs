//! A thread that lets due times pass without anybody's call. It sleeps until the next one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::Clock;

/// When to wake.
#[derive(Default)]
pub(crate) struct Alarm {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Default)]
struct AlarmState {
    at: Option<Instant>,
    is_closed: bool,
}

impl Alarm {
    /// Wakes the thread at this time, if it would not wake earlier.
    pub fn set(&self, at: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.at.is_none_or(|before| at < before) {
            state.at = Some(at);
            self.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until the time by this clock. False if there is nothing to wait for any more.
    fn wait(&self, clock: &dyn Clock) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.is_closed {
                return false;
            }
            let now = clock.now();
            state = match state.at {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) if at <= now => {
                    state.at = None;
                    return true;
                }
                Some(at) => self.changed.wait_timeout(state, at - now).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

/// Starts the thread. It ends with the alarm, or with whom it calls.
pub(crate) fn start<S: Send + Sync + 'static>(
    alarm: Arc<Alarm>,
    clock: Arc<dyn Clock>,
    whom: Weak<S>,
    tick: fn(&S),
) -> std::io::Result<()> {
    let run = move || {
        while alarm.wait(&*clock) {
            match whom.upgrade() {
                // A listener that panics is its own misfortune: due times go on.
                Some(whom) => drop(catch_unwind(AssertUnwindSafe(|| tick(&whom)))),
                None => return,
            }
        }
    };
    std::thread::Builder::new().name("temponet-timer".into()).spawn(run).map(drop)
}
