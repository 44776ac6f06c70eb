//! The kernel of a WebAssembly module beside the reference, as a module without imports that any runtime can call:
//! `.ci/other-processors` builds it and calls it with Node.js.
#![allow(unsafe_code, reason = "names that the runtime calls")]

use temponet_infer::{Architecture, Kernel, Network, NetworkOptions, Precision, Rows, Vocabulary, Weights, reference};

/// Numbers of jobs: one row, several groups of rows, and as many as fill none.
const JOBS: [u16; 4] = [1, 20, 33, 64];

/// Whether the kernel is the one for vectors of four numbers.
#[unsafe(no_mangle)]
pub extern "C" fn has_vectors() -> bool {
    Kernel::best_of(Precision::F32) == Kernel::Simd128
}

/// Greatest difference between outputs of the kernel and of the reference, for outputs of about one.
#[unsafe(no_mangle)]
pub extern "C" fn greatest_difference() -> f32 {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let paper = Architecture::paper(vocabulary("slack", 130), vocabulary("cores", 8));
    let narrow = Architecture { width: 36, heads: 3, feed_forward: 50, ..paper.clone() };
    let mut greatest = 0.0f32;
    for architecture in [paper, narrow] {
        let weights = Weights::random(architecture, 7);
        let options = NetworkOptions { precision: Precision::F32, ..NetworkOptions::default() };
        let Ok(mut network) = Network::new(&weights, options) else { return f32::NAN };
        let mut q = Vec::new();
        for count in JOBS {
            let jobs: Vec<u16> = (0..count).map(|job| job * 7 % 130).collect();
            let bias: Vec<f32> = (0..=count).map(|job| f32::from(job % 5 + 1).ln()).collect();
            let rows = Rows { idle: &[3], jobs: &jobs, real: &[], bias: &bias, sparsity: None };
            network.forward(&rows, &mut q);
            let expected = reference(&weights, &rows).q;
            if q.len() != expected.len() {
                return f32::NAN;
            }
            let gaps = q.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            // A difference that is not a number must not be lost in a maximum.
            greatest = gaps.fold(greatest, |greatest, gap| if gap <= greatest { greatest } else { gap });
        }
    }
    greatest
}
