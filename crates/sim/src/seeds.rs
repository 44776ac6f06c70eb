//! Seeds: how they are derived from one another, and which ones are reserved for evaluation. A scheduler must not be
//! evaluated on jobs that it was trained on.

use std::ops::RangeInclusive;

/// Seeds of the task sets and runs on which published scenarios are evaluated. Nothing may be trained, tuned or
/// selected on them.
pub const EVALUATION_SEEDS: RangeInclusive<u64> = 9_000_000_000..=9_000_999_999;

/// Returns whether a seed is reserved for evaluation. Training skips it.
pub fn is_for_evaluation(seed: u64) -> bool {
    EVALUATION_SEEDS.contains(&seed)
}

/// Derives a seed from a seed and a number, by one step of SplitMix64.
pub fn mixed_seed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
