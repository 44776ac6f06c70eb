//! The bar without a terminal: the embedding program is told of each step.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Who hears of the share of the work that is done, if its length is known, and what is being done.
type Listener = fn(Option<f64>, &str);

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Reports all work of this process to a function. The first call counts.
pub fn listen(listener: Listener) {
    let _ = LISTENER.set(listener);
}

/// Work in progress; clones are the same work.
#[derive(Clone)]
pub(super) struct Bar(Arc<Work>);

struct Work {
    length: Option<u64>,
    done: AtomicU64,
    said: Mutex<String>,
}

impl Bar {
    /// Work of this many units.
    pub(super) fn of_length(units: u64) -> Bar {
        Bar::of(Some(units), "")
    }

    /// Work of unknown length.
    pub(super) fn busy(what: &str) -> Bar {
        let bar = Bar::of(None, what);
        bar.tell();
        bar
    }

    fn of(length: Option<u64>, said: &str) -> Bar {
        Bar(Arc::new(Work { length, done: AtomicU64::new(0), said: Mutex::new(said.into()) }))
    }

    /// Reports further units of work.
    pub(super) fn advance(&self, units: u64) {
        self.0.done.fetch_add(units, Ordering::Relaxed);
        self.tell();
    }

    /// Reports what is being done.
    pub(super) fn say(&self, what: &str) {
        *self.0.said.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
        self.tell();
    }

    /// Nothing is shown that would have to be removed.
    pub(super) fn finish(&self) {}

    fn tell(&self) {
        if let Some(listener) = LISTENER.get() {
            let share = |length: u64| (self.0.done.load(Ordering::Relaxed) as f64 / length.max(1) as f64).min(1.0);
            listener(self.0.length.map(share), &self.0.said.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
