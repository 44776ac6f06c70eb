//! Settings that all methods with a replay buffer share: how much they act, how often they learn, and from what.

use serde::{Deserialize, Serialize};

use crate::limits::{not_a_share, not_environments, not_whole};

/// Settings of acting and of a replay buffer. In a recipe they are keys of the method's own table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySettings {
    /// Choices that all environments together make in a phase; at least 1, default 4,000.
    pub steps: u64,
    /// Environments that act in parallel, 1 to 100,000; default 16.
    pub environments: usize,
    /// Transitions per update; at least 1, default 64.
    pub batch: usize,
    /// Choices per update; at least 1, default 4.
    pub update_every: u64,
    /// Choices made before the first update; default 1,000.
    pub learn_from: u64,
    /// Capacity of the replay buffer in transitions, the key `replay`; at least 1, default 100,000.
    #[serde(rename = "replay")]
    pub capacity: usize,
    /// Share, 0 to 1, by which target networks move towards their networks at an update; default 0.01.
    pub target_share: f64,
}

impl Default for ReplaySettings {
    fn default() -> Self {
        ReplaySettings {
            steps: 4_000,
            environments: 16,
            batch: 64,
            update_every: 4,
            learn_from: 1_000,
            capacity: 100_000,
            target_share: 0.01,
        }
    }
}

impl ReplaySettings {
    /// Returns what is wrong with the settings, or `None`.
    pub fn problem(&self) -> Option<String> {
        let whole = [
            ("steps", self.steps as usize),
            ("batch", self.batch),
            ("replay", self.capacity),
            ("update_every", self.update_every as usize),
        ];
        not_whole(&whole)
            .or_else(|| not_environments(self.environments))
            .or_else(|| not_a_share(&[("target_share", self.target_share)]))
    }

    /// Number of updates per phase, once there are transitions to learn from.
    pub fn updates(&self) -> u64 {
        self.steps / self.update_every.max(1)
    }

    /// Adds the choices just made to those made before, and returns the number of updates that are due.
    pub fn updates_due(&self, choices: &mut u64, made: u64) -> u64 {
        let before = *choices / self.update_every.max(1);
        *choices += made;
        if *choices < self.learn_from { 0 } else { *choices / self.update_every.max(1) - before }
    }
}
