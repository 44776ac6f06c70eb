//! Contract: no sequence of calls, with handles and jobs that are right, stale, foreign, null or made up, does anything
//! but succeed or return an error of the kind; what has been freed stays freed.
//!
//! A test binary of its own: handles that are made up may name what other tests have made.
#![allow(unsafe_code, reason = "calls of the C interface")]

#[path = "random_calls/player.rs"]
mod player;

use arbitrary::Unstructured;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

#[test]
fn random_sequences_of_calls() {
    let (mut errors, mut successes) = (0, 0);
    for seed in 0..40 {
        let mut bytes = vec![0; 50_000];
        Pcg64::seed_from_u64(seed).fill_bytes(&mut bytes);
        let outcomes = player::play(&mut Unstructured::new(&bytes));
        (errors, successes) = (errors + outcomes.errors, successes + outcomes.successes);
    }
    assert!(errors > 10_000 && successes > 10_000, "{errors} errors, {successes} successes");
}
