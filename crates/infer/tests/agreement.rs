//! Contract: kernels with less precise products choose the same row as single precision in at least 995 of 1000 random
//! decisions.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_infer::{Architecture, Kernel, Network, NetworkOptions, Precision, Rows, Vocabulary, Weights};

const LEAST: f64 = 0.995;
const NETWORKS: u64 = 20;
const DECISIONS: usize = 200;

fn best(q: &[f32]) -> usize {
    (0..q.len()).max_by(|a, b| q[*a].total_cmp(&q[*b]).then(b.cmp(a))).unwrap_or(0)
}

#[test]
fn the_same_row_is_best() {
    let sizes = |sizes: &[(&str, usize)]| -> Vec<Vocabulary> {
        sizes.iter().map(|(name, size)| Vocabulary { name: name.to_string(), size: *size }).collect()
    };
    let architecture = Architecture::paper(sizes(&[("slack", 130)]), sizes(&[("cores", 8), ("load", 16)]));
    let mut rng = Pcg64::seed_from_u64(5);
    let rough: Vec<Kernel> =
        Kernel::available().into_iter().filter(|kernel| kernel.precision() < Precision::F32).collect();
    let mut agreed = vec![0; rough.len()];
    let (mut expected, mut q) = (Vec::new(), Vec::new());
    for seed in 0..NETWORKS {
        let weights = Weights::random(architecture.clone(), seed);
        let network = |options: NetworkOptions| Network::new(&weights, options).unwrap();
        let mut exact = network(NetworkOptions { precision: Precision::F32, ..NetworkOptions::default() });
        let mut networks: Vec<Network> = rough.iter().map(|kernel| network(NetworkOptions::of(*kernel))).collect();
        for _ in 0..DECISIONS {
            // The distinct slacks of up to 200 jobs, and how often each occurs.
            let mut counts = [0u16; 130];
            (0..rng.random_range(2..=200)).for_each(|_| counts[rng.random_range(0..130)] += 1);
            let jobs: Vec<u16> = (0..130).filter(|slack| counts[usize::from(*slack)] > 0).collect();
            let counted = jobs.iter().map(|slack| f32::from(counts[usize::from(*slack)]).ln());
            let bias: Vec<f32> = [0.0].into_iter().chain(counted).collect();
            let idle = [rng.random_range(0..8), rng.random_range(0..16)];
            let rows = Rows { idle: &idle, jobs: &jobs, real: &[], bias: &bias, sparsity: None };
            exact.forward(&rows, &mut expected);
            for (network, agreed) in networks.iter_mut().zip(&mut agreed) {
                network.forward(&rows, &mut q);
                *agreed += usize::from(best(&q) == best(&expected));
            }
        }
    }
    for (kernel, agreed) in rough.iter().zip(agreed) {
        let share = agreed as f64 / (NETWORKS as usize * DECISIONS) as f64;
        println!("{kernel}: the same row in {agreed} of {} decisions", NETWORKS as usize * DECISIONS);
        assert!(share >= LEAST, "{kernel}: {share}");
    }
}
