//! Progress on stderr, for work that takes longer than two seconds, if somebody looks at a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use temponet_sim::{End, Observer};
use temponet_task::{Job, Speed, Time};

/// Shown only if the work lasts and somebody looks at the terminal.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
}

/// Shows a bar once its work has lasted, also while that work says nothing.
fn show_later(bar: &ProgressBar) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let bar = bar.downgrade();
    std::thread::spawn(move || {
        std::thread::sleep(QUIET);
        if let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
            bar.enable_steady_tick(TICK);
        }
    });
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
        show_later(&bar);
        Progress { bar }
    }

    /// For work of which nobody knows how much it is; gone when it is dropped.
    pub fn busy(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} · {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        show_later(&bar);
        Progress { bar }
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

    /// `length` more of simulated time is done.
    pub fn advance(&self, length: Time) {
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
/// Releases and slices between updates.
const UPDATE_EVERY: u32 = 4_096;
/// A bar that would be gone within this time is not drawn.
const QUIET: Duration = Duration::from_secs(2);
/// How often time passes on it while nothing else does.
const TICK: Duration = Duration::from_millis(250);

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

    fn dispatched(&mut self, core: usize, job: &Job, now: Time) {
        self.inner.dispatched(core, job, now);
    }

    fn ran(&mut self, core: usize, job: &Job, start: Time, end: Time, speed: Speed) {
        self.inner.ran(core, job, start, end, speed);
        self.tick(end);
    }

    fn left(&mut self, job: &Job, first_start: Option<Time>, end: End, now: Time) {
        self.inner.left(job, first_start, end, now);
    }
}
