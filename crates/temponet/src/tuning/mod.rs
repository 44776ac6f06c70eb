//! Tuning: which scheduler to follow on a system is found by simulating the system.
//!
//! A network that was trained on many systems is not the best scheduler of each of them. The simple schedulers of the
//! catalog are cheap to simulate, so a [`Portfolio`] holds the network together with them, lets all of them run the
//! described tasks ([`choose`]), and follows the one that serves the system's goal best.
//!
//! - `candidates.rs` lists the schedulers that take part, and `contest.rs` runs them side by side, block by block.
//! - `race.rs` compares the blocks, drops the worse ones, and returns a [`Choice`]; `guard.rs` protects critical jobs,
//!   `by_ranking.rs` decides where there are chains; `temponet_sim::statistics::margin` says which differences are more
//!   than chance.
//! - `history.rs` remembers the jobs of a running system and notices when tasks change. `online.rs` simulates the
//!   changed tasks, or the remembered jobs, whose unknown execution times are estimated in `executions.rs`.
//! - `cache.rs` keeps a choice for the system that it was made for, by the system's fingerprint.
//!
//! No clock is read: effort is counted in decisions, and a choice is a function of system, model and settings alone. It
//! stops paying off where the description is wrong, and where a set is so large that few jobs of each task fit into the
//! effort.

mod by_ranking;
mod cache;
mod candidates;
mod choice;
mod contest;
mod executions;
mod guard;
mod history;
mod online;
mod portfolio;
mod race;
mod requests;
mod successor;

pub use cache::Choices;
pub(crate) use candidates::decides_alone;
pub use candidates::{Candidate, NETWORK};
pub use choice::{CandidateScore, Choice, TunedModel, Why};
pub use guard::{Lead, OpenLevel, Service};
pub use portfolio::Portfolio;
pub use race::{choose, choose_with_modes};

use temponet_task::Time;

/// When the scheduler to follow is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tuning {
    /// Never: the network is followed on every system.
    Off,
    /// When the scheduler starts, by simulating the described tasks. Decisions are never delayed: real-time programs
    /// should ask for this one.
    AtStart,
    /// When the scheduler starts, and again during the run where tasks change, as in modes, or where jobs are not known
    /// beforehand (lists of jobs, servers). A review takes as long as the choice at the start, tenths of a second,
    /// within a decision: if possible in one that leaves nothing to choose. There are no reviews if decisions have a
    /// budget. This is the default.
    #[default]
    Online,
}

/// How a described system is simulated. Everything is counted, nothing is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Total effort over all candidates. One unit is about a microsecond of one core in a release build: a decision of
    /// a simple scheduler.
    pub effort: u64,
    /// Simulated time per candidate that is not dropped, whatever the effort; `None` leaves it to the effort.
    pub horizon: Option<Time>,
    /// Seed of the simulated jobs. The default is a constant, so that a choice is a function of the system, and it is
    /// no evaluation seed.
    pub seed: u64,
    /// Whether candidates run behind the shield, as they will later.
    pub is_shielded: bool,
    /// How many times the effort a race may take. A backlog that grows, a short quantum or many preemption points can
    /// ask for thousands of times as much as was expected of a decision.
    pub patience: u64,
}

impl Settings {
    /// Settings for candidates behind the shield, with the default effort of 250 000.
    pub const SHIELDED: Settings =
        Settings { effort: EFFORT, horizon: None, seed: SEED, is_shielded: true, patience: PATIENCE };
    /// Settings for candidates without a shield, with the default effort of 250 000.
    pub const BARE: Settings = Settings { is_shielded: false, ..Settings::SHIELDED };

    /// The same settings with more effort; `None` if a horizon says how long to simulate.
    fn times(self, factor: u64) -> Option<Settings> {
        self.horizon.is_none().then(|| Settings { effort: self.effort.saturating_mul(factor), ..self })
    }

    /// The same settings with more effort, which ends where a race without it would have ended at the latest; `None` if
    /// a horizon says how long to simulate.
    fn times_at_most(self, factor: u64) -> Option<Settings> {
        self.times(factor).map(|longer| Settings { patience: (self.patience / factor.max(1)).max(1), ..longer })
    }
}

/// Default patience.
const PATIENCE: u64 = 16;
/// Default seed of the simulated jobs.
const SEED: u64 = 7_300_000_000;
/// Default effort: about a quarter of a second.
const EFFORT: u64 = 250_000;
