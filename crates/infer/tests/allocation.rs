//! Contract: a forward pass allocates nothing unless it has more rows than ever before, or attention is sparse for the
//! first time. This is a test binary of its own because it counts all allocations.

#[path = "allocation/counting.rs"]
mod counting;

use counting::{allocations_of, bytes_of};
use temponet_infer::{Architecture, Kernel, Network, NetworkOptions, RealInput, Rows, Sparsity, Vocabulary, Weights};

#[test]
fn a_forward_pass_does_not_allocate() {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let plain = Architecture::paper(vocabulary("slack", 130), vocabulary("cores", 8));
    let weights = Weights::random(Architecture { real: Some(RealInput { inputs: 1, hidden: 8 }), ..plain }, 1);
    let real = vec![0.5; 300];
    let jobs: Vec<u16> = (0..300).map(|job| job % 130).collect();
    let bias = vec![0.0; 301];
    for kernel in Kernel::available() {
        let options = NetworkOptions { rows: 200, ..NetworkOptions::of(kernel) };
        let mut network = Network::new(&weights, options).unwrap();
        let mut q = Vec::with_capacity(301);
        let mut run = |count: usize, sparsity: Option<Sparsity>| {
            let rows =
                Rows { idle: &[1], jobs: &jobs[..count], real: &real[..count], bias: &bias[..count + 1], sparsity };
            allocations_of(|| network.forward(&rows, &mut q))
        };
        run(3, Some(Sparsity::paper(3)));
        for count in [0, 1, 15, 16, 130, 199] {
            assert_eq!(run(count, None), 0, "{kernel}, {count} jobs");
            assert_eq!(run(count, Some(Sparsity::paper(count))), 0, "{kernel}, {count} jobs, sparse");
        }
        assert!(run(300, None) > 0, "{kernel}: more rows than ever, and the counter counts");
        assert_eq!(run(300, None), 0, "{kernel}: they have been met");
    }
}

#[test]
fn a_clone_shares_the_weights() {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let weights = Weights::random(Architecture::paper(vocabulary("slack", 7), vocabulary("cores", 8)), 1);
    for kernel in Kernel::available() {
        let network = Network::new(&weights, NetworkOptions { rows: 1, ..NetworkOptions::of(kernel) }).unwrap();
        let (clone, bytes) = bytes_of(|| network.clone());
        // A copy of the weights would take at least one byte for each.
        assert!(bytes < weights.architecture.parameters(), "{kernel}: a clone takes {bytes} bytes");
        drop(clone);
    }
}
