//! The progress of long work. On a terminal it is a bar on stderr, which appears only if the work takes longer than two
//! seconds. WebAssembly has neither terminal nor threads: there the embedding program listens (`progress::listen`).

#[cfg_attr(target_family = "wasm", path = "progress/listener.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "progress/terminal.rs")]
mod bar;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use temponet_sim::{End, Observer};
use temponet_task::{CoreId, Job, ResourceId, Speed, Time};

use bar::Bar;
#[cfg(target_family = "wasm")]
pub use bar::listen;

/// The progress of long work, which a terminal shows as a bar if it takes longer than two seconds.
#[derive(Clone)]
pub struct Progress {
    bar: Bar,
}

impl Progress {
    /// A bar for `runs` runs of length `horizon`.
    pub fn new(runs: u64, horizon: Time) -> Progress {
        let length = (horizon.0 / UNIT).max(1).saturating_mul(runs);
        Progress { bar: Bar::of_length(length) }
    }

    /// A spinner for work of unknown length; it disappears when it is dropped.
    pub fn busy(what: &str) -> Progress {
        Progress { bar: Bar::busy(what) }
    }

    /// A bar for `count` steps of work.
    pub fn steps(count: u64) -> Progress {
        Progress::new(count, STEP)
    }

    /// Reports that one step is done.
    pub fn step(&self) {
        self.advance(STEP);
    }

    /// Wraps an observer so that the bar advances with simulated time.
    pub fn watch<O: Observer>(&self, inner: O) -> Watched<O> {
        Watched { inner, progress: self.clone(), shown: Time::ZERO, until_update: UPDATE_EVERY }
    }

    /// Reports that a further `length` of simulated time is done.
    pub fn advance(&self, length: Time) {
        self.bar.advance(length.0 / UNIT);
    }

    /// Does work that takes about as long as `length` on a real clock, and advances the bar with that clock meanwhile.
    pub fn during<R>(&self, length: Time, work: impl FnOnce() -> R) -> R {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clock = scope.spawn(|| {
                let (mut shown, start) = (Time::ZERO, Instant::now());
                while !is_done.load(Ordering::Acquire) {
                    std::thread::park_timeout(TICK);
                    // Whole units, so that none is lost between two steps.
                    let passed = Time(start.elapsed().as_nanos().min(u128::from(length.0)) as u64 / UNIT * UNIT);
                    self.advance(passed - shown);
                    shown = passed;
                }
                self.advance(length - shown);
            });
            // The thread ends also if the work panics, else the scope would wait for it.
            let guard = Finished { is_done: &is_done, thread: clock.thread().clone() };
            let result = work();
            drop(guard);
            result
        })
    }

    /// Shows what is being done.
    pub fn say(&self, what: &str) {
        self.bar.say(what);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish();
    }
}

/// Ends the clock of [`Progress::during`] when it is dropped.
struct Finished<'a> {
    is_done: &'a AtomicBool,
    thread: std::thread::Thread,
}

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Simulated time that stands for one step.
const STEP: Time = Time::from_ms(1);
/// Nanoseconds per unit of the bar. It counts microseconds, so that long horizons times many runs fit.
const UNIT: u64 = 1_000;
/// Number of releases and slices between two updates.
const UPDATE_EVERY: u32 = 4_096;
/// Interval at which the elapsed time is updated without any report.
const TICK: Duration = Duration::from_millis(250);

/// An observer that also advances a progress bar.
pub struct Watched<O> {
    /// The wrapped observer.
    pub inner: O,
    progress: Progress,
    shown: Time,
    until_update: u32,
}

impl<O> Watched<O> {
    fn show(&mut self, now: Time) {
        self.progress.advance(now.saturating_sub(self.shown));
        self.shown = now;
    }

    /// Counts a release or a slice, and updates the bar once in a while.
    fn tick(&mut self, now: Time) {
        self.until_update -= 1;
        if self.until_update == 0 {
            self.until_update = UPDATE_EVERY;
            self.show(now);
        }
    }

    /// Reports the end of the run at `horizon`, and returns the wrapped observer.
    pub fn done(mut self, horizon: Time) -> O {
        self.show(horizon);
        self.inner
    }
}

impl<O: Observer> Observer for Watched<O> {
    fn released(&mut self, job: &Job) {
        self.inner.released(job);
        self.tick(job.release);
    }

    fn dispatched(&mut self, core: CoreId, job: &Job, now: Time) {
        self.inner.dispatched(core, job, now);
    }

    fn ran(&mut self, core: CoreId, job: &Job, start: Time, end: Time, speed: Speed) {
        self.inner.ran(core, job, start, end, speed);
        self.tick(end);
    }

    fn passed_deadline(&mut self, job: &Job) {
        self.inner.passed_deadline(job);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        self.inner.left(job, first_start, end, now);
    }

    fn held(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        self.inner.held(resource, job, start, end);
    }

    fn blocked(&mut self, resource: ResourceId, job: &Job, start: Time, end: Time) {
        self.inner.blocked(resource, job, start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_moves_while_work_takes_its_time_and_is_full_after_it() {
        let progress = Progress::new(2, Time::from_ms(800));
        let halfway = progress.during(Time::from_ms(800), || {
            std::thread::sleep(Duration::from_millis(600));
            progress.bar.done()
        });
        assert!(halfway > 0, "it moves before the work is done");
        assert_eq!(progress.bar.done(), 800_000, "and counts the whole run after it");
    }
}
