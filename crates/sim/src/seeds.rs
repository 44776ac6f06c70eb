//! Seeds that are reserved for evaluation. A scheduler must not be evaluated on jobs that it was trained on.

use std::ops::RangeInclusive;

/// Seeds of the task sets and runs on which published scenarios are evaluated. Nothing may be trained, tuned or selected
/// on them.
pub const EVALUATION_SEEDS: RangeInclusive<u64> = 9_000_000_000..=9_000_999_999;

/// Returns whether a seed is reserved for evaluation. Training skips it.
pub fn is_for_evaluation(seed: u64) -> bool {
    EVALUATION_SEEDS.contains(&seed)
}
