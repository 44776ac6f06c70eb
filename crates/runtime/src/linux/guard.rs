//! The guard: a process of its own that kills this program if its dispatcher no longer beats.
//!
//! A real-time thread that never sleeps can make a machine unusable. The guard runs above every thread of the program,
//! on the housekeeping processor, and looks at a heartbeat in shared memory. If it is late by [`PATIENCE`], the guard
//! takes the priority from the program's threads and kills the program; priorities, locked memory and limits end with
//! it. The guard itself ends with the program, however that ends.

use std::sync::atomic::Ordering;

use super::monotonic_ns;
use super::sys::{self, MOST_THREADS, SharedPage};
use crate::error::RuntimeError;

/// Age of the heartbeat at which the guard acts, in nanoseconds.
pub const PATIENCE: u64 = 50_000_000;
/// Time between two looks, in nanoseconds.
const INTERVAL: u64 = 10_000_000;
/// Longest sleep of a dispatcher, in nanoseconds. It beats whenever it wakes up.
pub const LONGEST_SLEEP: u64 = 10_000_000;

/// A running guard. Dropping it ends it.
pub struct Guard {
    page: &'static SharedPage,
    process: i32,
}

impl Guard {
    /// Starts a guard on a processor. It begins to watch with the first beat.
    pub fn start(cpu: usize) -> Result<Guard, RuntimeError> {
        let page = sys::shared_page().map_err(|error| RuntimeError::Os { what: "cannot map the heartbeat", error })?;
        let process = sys::fork_guard(page, cpu, INTERVAL, PATIENCE)
            .map_err(|error| RuntimeError::Os { what: "cannot start the guard", error })?;
        Ok(Guard { page, process })
    }

    /// The heart to beat with.
    pub fn heart(&self) -> Heart {
        Heart(Some(self.page))
    }

    /// Tells the guard of a real-time thread.
    pub fn knows(&self, thread: i32) {
        let place = self.page.count.load(Ordering::Relaxed) as usize;
        if place < MOST_THREADS {
            self.page.threads[place].store(thread, Ordering::Relaxed);
            self.page.count.store(place as u32 + 1, Ordering::Release);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.page.done.store(1, Ordering::Release);
        sys::wait_for(self.process);
    }
}

/// A dispatcher's sign of life. Without a guard it does nothing.
#[derive(Clone, Copy)]
pub struct Heart(Option<&'static SharedPage>);

impl Heart {
    /// The heart of a dispatcher without a guard.
    pub const NONE: Heart = Heart(None);

    /// Says that the dispatcher is alive.
    pub fn beat(self) {
        if let Some(page) = self.0 {
            page.beat.store(monotonic_ns(), Ordering::Release);
        }
    }

    /// Says that no thread of the run has a priority any more.
    pub fn rest(self) {
        if let Some(page) = self.0 {
            page.done.store(1, Ordering::Release);
        }
    }
}
