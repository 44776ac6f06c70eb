//! Which seeds are for what. What is trained on some jobs must be measured on others.

use std::ops::RangeInclusive;

/// Seeds of task sets and runs that published scenarios are evaluated with. Nothing may be trained, tuned or selected on them.
pub const EVALUATION_SEEDS: RangeInclusive<u64> = 9_000_000_000..=9_000_999_999;

/// Whether a seed is kept for evaluation, so that training must refuse it.
pub fn is_for_evaluation(seed: u64) -> bool {
    EVALUATION_SEEDS.contains(&seed)
}
