//! Contract: a pass of the feed-forward network allocates nothing, and a clone shares its weights. This is a test
//! binary of its own because it counts all allocations.

#[path = "../../crates/infer/tests/allocation/counting.rs"]
mod counting;

use counting::{allocations_of, bytes_of};
use temponet_infer::{Architecture, Network, NetworkOptions, Rows, SLOT, Vocabulary, Weights};
use temponet_paper::networks;

#[test]
fn a_pass_allocates_nothing_and_clones_share_weights() {
    let vocabulary = |name: &str, size: usize| Vocabulary { name: name.into(), size };
    let job = vec![vocabulary("slack", 20), vocabulary(SLOT, 6)];
    let plain = Architecture::paper(job, vec![vocabulary("cores", 4)]);
    let weights = Weights::random(Architecture { layers: 2, body: networks::feed_forward(6), ..plain }, 1);
    let (mut network, first) = bytes_of(|| Network::new(&weights, NetworkOptions::default()).unwrap());
    let (clone, bytes) = bytes_of(|| network.clone());
    // A copy of the weights would take at least one byte for each.
    assert!(first > 0 && bytes < weights.architecture.parameters(), "a clone takes {bytes} bytes");
    drop(clone);
    let jobs: Vec<u16> = (0..6).flat_map(|slot| [3 * slot, slot]).collect();
    let (bias, mut q) = ([0.0; 7], Vec::with_capacity(7));
    for count in 0..=6 {
        let rows = Rows { idle: &[1], jobs: &jobs[..2 * count], real: &[], bias: &bias[..count + 1], sparsity: None };
        assert_eq!(allocations_of(|| network.forward(&rows, &mut q)), 0, "{count} jobs");
        assert_eq!(q.len(), count + 1);
    }
}
