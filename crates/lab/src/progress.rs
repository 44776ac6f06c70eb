//! A progress bar over simulated time, on stderr, for work that takes longer than a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use temponet_sim::{End, Observer};
use temponet_task::{Job, Speed, Time};

/// Shown only if the work lasts and somebody looks at the terminal.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    visible: Arc<AtomicBool>,
}

impl Progress {
    /// For `runs` runs of length `horizon`.
    pub fn new(runs: u64, horizon: Time) -> Progress {
        let length = (horizon.0 / UNIT).max(1).saturating_mul(runs);
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let template = "{wide_bar} {percent}% · {msg} · {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar, visible: Arc::default() }
    }

    /// For so many steps of work.
    pub fn steps(count: u64) -> Progress {
        Progress::new(count, STEP)
    }

    /// One of the steps is done.
    pub fn step(&self) {
        self.advance(STEP);
    }

    /// An observer that moves the bar on as simulated time passes.
    pub fn watch<O: Observer>(&self, inner: O) -> Watched<O> {
        Watched { inner, progress: self.clone(), shown: Time::ZERO, until_update: UPDATE_EVERY }
    }

    /// `length` more of simulated time is done. Draws only if the work lasts.
    pub fn advance(&self, length: Time) {
        if self.bar.elapsed() > QUIET && !self.visible.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
        }
        self.bar.inc(length.0 / UNIT);
    }

    /// Names what is under way.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// What the bar moves for one step.
const STEP: Time = Time::from_ms(1);
/// The bar counts microseconds, so that long horizons times many runs fit.
const UNIT: u64 = 1_000;
/// Releases and slices between updates; a clock is looked at only then.
const UPDATE_EVERY: u32 = 4_096;
/// A bar that would be gone within this time is not drawn.
const QUIET: Duration = Duration::from_secs(1);

/// An observer that also moves a progress bar.
pub struct Watched<O> {
    /// The observer inside.
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

    /// Counts a release or a slice, and now and then shows where the run is.
    fn tick(&mut self, now: Time) {
        self.until_update -= 1;
        if self.until_update == 0 {
            self.until_update = UPDATE_EVERY;
            self.show(now);
        }
    }

    /// The run is over at `horizon`.
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

    fn ran(&mut self, core: usize, job: &Job, start: Time, end: Time, speed: Speed) {
        self.inner.ran(core, job, start, end, speed);
        self.tick(end);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        self.inner.left(job, first_start, end, now);
    }
}
