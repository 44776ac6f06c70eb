//! Times of a forward pass of the paper's network on every kernel of this machine, in turn in one process:
//! `cargo run --release -p temponet-infer --example kernel_times`.
//!
//! `temponet bench infer --all-kernels` measures more; this needs nothing but this crate. Beside the median stands the
//! time that one pass in a hundred does not exceed, because on a busy machine a median is mostly waiting.

use std::time::Instant;

use temponet_infer::{Architecture, Kernel, Network, NetworkError, NetworkOptions, Rows, Vocabulary, Weights};

const PASSES: usize = 400;
/// Numbers of distinct rows: those among 16, 64, 200 and 600 jobs in the measurements of the documentation.
const DISTINCT: [u16; 4] = [14, 48, 99, 129];

fn main() -> Result<(), NetworkError> {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let weights = Weights::random(Architecture::paper(vocabulary("slack", 130), vocabulary("cores", 8)), 1);
    let network = |kernel: Kernel| Network::new(&weights, NetworkOptions { rows: 200, ..NetworkOptions::of(kernel) });
    let mut networks = Kernel::available().into_iter().map(network).collect::<Result<Vec<Network>, _>>()?;
    println!("distinct  kernel        best µs  median µs");
    let mut q = Vec::new();
    for distinct in DISTINCT {
        let jobs: Vec<u16> = (0..distinct).collect();
        let bias = vec![0.0; jobs.len() + 1];
        let mut times = vec![Vec::with_capacity(PASSES); networks.len()];
        for _ in 0..PASSES {
            for (network, times) in networks.iter_mut().zip(&mut times) {
                let begin = Instant::now();
                network.forward(&Rows { idle: &[3], jobs: &jobs, real: &[], bias: &bias, sparsity: None }, &mut q);
                times.push(begin.elapsed().as_nanos() as u64);
            }
        }
        for (network, times) in networks.iter().zip(&mut times) {
            times.sort_unstable();
            let [best, median] = [times[PASSES / 100], times[PASSES / 2]].map(|time| time as f64 / 1000.0);
            println!("{distinct:>8}  {:<12} {best:>8.0} {median:>10.0}", network.kernel());
        }
    }
    Ok(())
}
