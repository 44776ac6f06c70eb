//! The bar on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::TICK;

/// Time before the bar appears; shorter work shows none.
const QUIET: Duration = Duration::from_secs(2);

/// A bar on stderr; clones are the same bar.
#[derive(Clone)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar for work of this many units.
    pub(super) fn of_length(units: u64) -> Bar {
        Bar::shown_later(Some(units), "{wide_bar} {percent}% · {msg} · {eta} left")
    }

    /// A spinner for work of unknown length; it disappears when it is dropped.
    pub(super) fn busy(what: &str) -> Bar {
        let bar = Bar::shown_later(None, "{spinner} {msg} · {elapsed}");
        bar.say(what);
        bar
    }

    fn shown_later(length: Option<u64>, template: &str) -> Bar {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        show_later(&bar);
        Bar(bar)
    }

    /// Reports further units of work.
    pub(super) fn advance(&self, units: u64) {
        self.0.inc(units);
    }

    /// Shows what is being done.
    pub(super) fn say(&self, what: &str) {
        self.0.set_message(what.to_string());
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }

    /// Returns the units of work that are done.
    #[cfg(test)]
    pub(super) fn done(&self) -> u64 {
        self.0.position()
    }
}

/// Starts a thread that shows the bar after [`QUIET`], even if the work reports nothing until then.
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
