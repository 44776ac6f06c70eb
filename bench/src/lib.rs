//! How long decisions, simulations and trainings take on this machine, and how much memory they take.
//!
//! [`Bench`] is the command; the modules are its measurements, which the paper's experiments use as well.
//!
//! Wall-clock figures depend on the machine and its other load as much as on the code, so each comes with the time of a
//! fixed [`control`] loop.

pub mod attention;
mod commands;
pub mod decision;
pub mod environments;
mod rounds;
pub mod scene;
pub mod shield;
pub mod training;

use std::hint::black_box;
use std::time::Instant;

use temponet::NetworkError;
use temponet_task::NotApplicable;
use temponet_train::TrainError;

pub use commands::Bench;

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Network that cannot run.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Scheduler that does not apply to the scene.
    #[error(transparent)]
    NotApplicable(#[from] NotApplicable),
    /// Training that fails.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Thread pool that cannot be built.
    #[error(transparent)]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Device that fails.
    #[error("{0}")]
    Device(String),
}

/// Returns the time of one step of a fixed loop, in nanoseconds: the speed of the machine right now.
pub fn control() -> f64 {
    const STEPS: u64 = 50_000_000;
    let begin = Instant::now();
    let mut state = black_box(1u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    begin.elapsed().as_secs_f64() * 1e9 / STEPS as f64
}

/// Returns the greatest memory that this process ever held, in MiB (Linux only).
pub fn peak_rss_mb() -> Option<f64> {
    status_kb("VmHWM:").map(|kb| kb / 1024.0)
}

/// Returns the memory that this process holds now, in bytes (Linux only).
fn rss_bytes() -> Option<f64> {
    status_kb("VmRSS:").map(|kb| kb * 1024.0)
}

/// Reads a line of the process's status, in KiB.
fn status_kb(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
