//! Contract: every kernel computes the same as the reference within its precision, and the same bits each time, for any
//! architecture and number of rows.

use std::sync::Barrier;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_infer::{
    Architecture, AttentionMap, Body, Kernel, Network, NetworkError, NetworkOptions, Precision, RealInput, Rows, Rule,
    Sparsity, Vocabulary, Weights, reference,
};

/// Greatest differences of outputs, which are about one. Products of eight significant bits keep two or three digits.
const CLOSE: f32 = 1e-4;
const ROUGH: f32 = 0.04;
/// Greatest mean difference with sparse attention. Rounding may swap two nearly equal keys, so single outputs may
/// differ more.
const ROUGH_MEAN: f32 = 0.02;

fn vocabularies(sizes: &[(&str, usize)]) -> Vec<Vocabulary> {
    sizes.iter().map(|(name, size)| Vocabulary { name: name.to_string(), size: *size }).collect()
}

fn shape(width: usize, layers: usize, heads: usize, feed_forward: usize) -> Architecture {
    let job = vocabularies(&[("slack", 130), ("remaining", 40), ("core", 3)]);
    let idle = vocabularies(&[("cores", 8), ("load", 16)]);
    Architecture { width, layers, heads, feed_forward, ..Architecture::paper(job, idle) }
}

/// Random weights with norms and biases that are not neutral, so that a missing one is noticed.
fn weights(architecture: Architecture, seed: u64) -> Weights {
    let plain = Weights::random(architecture.clone(), seed);
    let mut rng = Pcg64::seed_from_u64(seed);
    Weights::new(architecture, |name, _, _| {
        let mut values = plain.tensor(name).to_vec();
        if name.ends_with("bias") || name.ends_with("norm.weight") {
            values.iter_mut().for_each(|value| *value += 0.4 * rng.random::<f32>() - 0.2);
        }
        values
    })
}

struct Input {
    idle: [u16; 2],
    jobs: Vec<u16>,
    real: Vec<f32>,
    bias: Vec<f32>,
}

impl Input {
    fn random(jobs: usize, rng: &mut Pcg64) -> Input {
        let sizes = [130, 40, 3];
        let bias = (0..=jobs).map(|_| f32::from(rng.random_range(1u16..9)).ln()).collect();
        Input {
            idle: [rng.random_range(0..8), rng.random_range(0..16)],
            bias,
            jobs: (0..jobs * 3).map(|place| rng.random_range(0..sizes[place % 3])).collect(),
            real: (0..jobs * 2).map(|_| rng.random_range(-2.0..6.0)).collect(),
        }
    }

    fn rows(&self, sparsity: Option<Sparsity>) -> Rows<'_> {
        Rows { idle: &self.idle, jobs: &self.jobs, real: &self.real, bias: &self.bias, sparsity }
    }
}

fn network(weights: &Weights, kernel: Kernel) -> Network {
    Network::new(weights, NetworkOptions { rows: 1, ..NetworkOptions::of(kernel) }).unwrap()
}

/// The paper's sparse attention, others of short chunks and blocks, and the rivals.
fn sparsities(jobs: usize) -> impl Iterator<Item = Sparsity> {
    let of = |rule, chunk, block, keep| Sparsity { rule, chunk, block, keep };
    let short = [of(Rule::Chunks, 40, 9, 2), of(Rule::Chunks, 5, 9, 4), of(Rule::Chunks, 90, 40, 0)];
    let rivals = [of(Rule::BlockDrop, 0, 7, 3), of(Rule::TopKeys, 0, 0, 12)];
    [Sparsity::paper(jobs)].into_iter().chain(short).chain(rivals)
}

fn check(architecture: Architecture, counts: &[usize]) {
    let mut rng = Pcg64::seed_from_u64(counts.len() as u64);
    let speeds = architecture.speeds();
    let weights = weights(architecture, 3);
    let mut networks: Vec<Network> = Kernel::available().into_iter().map(|kernel| network(&weights, kernel)).collect();
    let mut q = Vec::new();
    for &jobs in counts {
        let input = Input::random(jobs, &mut rng);
        for sparsity in [None].into_iter().chain(sparsities(jobs).map(Some)) {
            let expected = reference(&weights, &input.rows(sparsity)).q;
            for network in &mut networks {
                network.forward(&input.rows(sparsity), &mut q);
                let what = format!("{} on {jobs} jobs, {sparsity:?}", network.kernel());
                assert_eq!(q.len(), 1 + (1 + speeds) * jobs, "{what}");
                let gaps: Vec<f32> = q.iter().zip(&expected).map(|(a, b)| (a - b).abs()).collect();
                let (greatest, mean) =
                    (gaps.iter().copied().fold(0.0, f32::max), gaps.iter().sum::<f32>() / gaps.len() as f32);
                assert!(q.iter().all(|value| value.is_finite()), "{what}");
                match (network.kernel().precision(), sparsity) {
                    (Precision::F32, _) => assert!(greatest < CLOSE, "{what}: {greatest}"),
                    (_, None) => assert!(greatest < ROUGH, "{what}: {greatest}"),
                    (_, Some(_)) => assert!(mean < ROUGH_MEAN, "{what}: {mean}"),
                }
            }
        }
    }
}

#[test]
fn the_papers_shape() {
    check(shape(128, 2, 4, 512), &[0, 1, 14, 15, 16, 17, 31, 47, 63, 131]);
}

#[test]
fn many_rows() {
    check(shape(64, 1, 4, 128), &[255, 700]);
    check(shape(64, 1, 2, 64), &[300]);
}

#[test]
fn other_shapes() {
    for (width, layers, heads, feed_forward) in
        [(64, 2, 4, 256), (64, 3, 2, 64), (32, 2, 1, 128), (32, 1, 8, 96), (256, 1, 4, 64), (16, 2, 2, 40)]
    {
        check(shape(width, layers, heads, feed_forward), &[1, 20, 33, 64]);
    }
}

#[test]
fn real_numbers_beside_features_and_alone() {
    for (width, hidden) in [(32, 0), (45, 0), (64, 1), (64, 20), (128, 64)] {
        let real = Some(RealInput { inputs: 2, hidden });
        let heads = if width == 45 { 5 } else { 4 };
        check(Architecture { real, ..shape(width, 2, heads, 64) }, &[1, 20, 33]);
        check(Architecture { real, job: vec![], ..shape(width, 2, heads, 64) }, &[0, 1, 20, 33]);
    }
}

fn with_heads(actor: Option<usize>, speeds: usize, architecture: Architecture) -> Architecture {
    Architecture { body: Body::transformer(actor, speeds), ..architecture }
}

#[test]
fn actors_and_speeds() {
    for (width, hidden, speeds) in [(64, 32, 0), (36, 5, 2), (16, 1, 1)] {
        check(with_heads(Some(hidden), speeds, shape(width, 2, 2, 40)), &[0, 1, 20, 33]);
        check(with_heads(None, 1 + speeds, shape(width, 1, 2, 40)), &[0, 1, 33]);
    }
    assert!(with_heads(Some(0), 0, shape(16, 1, 2, 8)).problem().unwrap().contains("actor"));
    assert!(with_heads(None, 9, shape(16, 1, 2, 8)).problem().unwrap().contains("9 speeds"));
}

#[test]
fn shapes_that_fit_no_vector() {
    for (width, heads, feed_forward) in [(36, 3, 50), (1, 1, 1), (6, 2, 7), (45, 5, 33), (130, 2, 70)] {
        check(shape(width, 2, heads, feed_forward), &[1, 18, 35]);
    }
}

/// The pairs that are scored are those of the lists of kept keys, counted by the reference: a key that is not kept has
/// the weight zero.
#[test]
fn only_kept_keys_are_scored() {
    let mut rng = Pcg64::seed_from_u64(21);
    let weights = weights(shape(64, 2, 4, 64), 8);
    let mut q = Vec::new();
    for jobs in [1, 12, 64, 230, 600] {
        let mut input = Input::random(jobs, &mut rng);
        input.bias.fill(0.0);
        for sparsity in sparsities(jobs).filter(|sparsity| sparsity.rule != Rule::TopKeys) {
            let maps = reference(&weights, &input.rows(Some(sparsity))).attention;
            let weights_of = |map: &AttentionMap| map.weights.iter().flatten().filter(|weight| **weight > 0.0).count();
            let expected: usize = maps.iter().map(weights_of).sum();
            let all = 2 * 4 * (jobs + 1) * (jobs + 1);
            for kernel in Kernel::available() {
                let mut network = network(&weights, kernel);
                network.forward(&input.rows(Some(sparsity)), &mut q);
                let work = network.attention_work();
                let what = format!("{kernel} on {jobs} jobs, {sparsity:?}");
                match kernel.precision() {
                    Precision::F32 => assert_eq!(work.pairs, expected as u64, "{what}"),
                    // Rounding may choose another block, and blocks differ in length.
                    _ => assert!(work.pairs.abs_diff(expected as u64) < expected as u64 / 10, "{what}: {work:?}"),
                }
                network.forward(&input.rows(None), &mut q);
                let dense = network.attention_work();
                assert_eq!(dense.pairs, all as u64, "{what}");
                if jobs >= 230 && sparsity == Sparsity::paper(jobs) {
                    assert!(10 * work.pairs < 5 * dense.pairs, "{what}: {work:?} of {dense:?}");
                    // Few keys are shared by more dense queries than sparse ones.
                    assert!(jobs < 600 || work.bytes < dense.bytes, "{what}: {work:?} of {dense:?}");
                }
            }
        }
    }
}

#[test]
fn great_logits() {
    // Queries so long that logits have no small bound: the attention is sharp, and the greatest logit must be found.
    let plain = weights(shape(64, 1, 2, 64), 5);
    let sharp = Weights::new(plain.architecture.clone(), |name, _, _| {
        let factor = if name.contains("query") { 60.0 } else { 1.0 };
        plain.tensor(name).iter().map(|value| value * factor).collect()
    });
    let mut rng = Pcg64::seed_from_u64(11);
    let mut q = Vec::new();
    for (jobs, faint) in [(3, 0.0), (40, 0.0), (300, 0.0), (40, -90.0), (300, -90.0)] {
        let mut input = Input::random(jobs, &mut rng);
        // Keys with a tiny weight may still have the greatest logits.
        input.bias.iter_mut().step_by(2).for_each(|bias| *bias += faint);
        for sparsity in [None, Some(Sparsity::paper(jobs))] {
            let expected = reference(&sharp, &input.rows(sparsity)).q;
            for kernel in Kernel::available() {
                network(&sharp, kernel).forward(&input.rows(sparsity), &mut q);
                let gaps = q.iter().zip(&expected).map(|(a, b)| (a - b).abs());
                let mean = gaps.sum::<f32>() / q.len() as f32;
                let allowed = if kernel.precision() == Precision::F32 { CLOSE } else { ROUGH_MEAN };
                assert!(mean < allowed, "{kernel} on {jobs} jobs, {faint}, {sparsity:?}: {mean}");
            }
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bits() {
    let mut rng = Pcg64::seed_from_u64(9);
    let weights = weights(shape(128, 2, 4, 512), 4);
    let (small, large) = (Input::random(21, &mut rng), Input::random(150, &mut rng));
    for kernel in Kernel::available() {
        let (mut q, mut again) = (Vec::new(), Vec::new());
        let mut network = network(&weights, kernel);
        network.forward(&small.rows(None), &mut q);
        // Results do not depend on earlier passes or on the thread.
        network.forward(&large.rows(Some(Sparsity::paper(150))), &mut again);
        network.forward(&small.rows(None), &mut again);
        assert_eq!(q, again, "{kernel}");
        let mut clone = network.clone();
        std::thread::scope(|scope| scope.spawn(|| clone.forward(&small.rows(None), &mut again)).join()).unwrap();
        assert_eq!(q, again, "{kernel}, a clone in a thread");
        equal_rows(&mut network);
    }
}

/// Networks in several threads that share one copy of the prepared weights compute what one network computes alone.
#[test]
fn threads_share_prepared_weights() {
    fn is_shareable<T: Clone + Send + Sync>(_: &T) {}
    let mut rng = Pcg64::seed_from_u64(12);
    let inputs: Vec<Input> = [0, 1, 20, 47, 150].into_iter().map(|jobs| Input::random(jobs, &mut rng)).collect();
    let weights = weights(shape(64, 2, 4, 128), 6);
    for kernel in Kernel::available() {
        let shared = network(&weights, kernel);
        is_shareable(&shared);
        let all = |network: &mut Network, first: usize| -> Vec<Vec<f32>> {
            let mut q = vec![Vec::new(); inputs.len()];
            for place in (0..inputs.len()).map(|place| (place + first) % inputs.len()) {
                network.forward(&inputs[place].rows(None), &mut q[place]);
            }
            q
        };
        let alone = all(&mut network(&weights, kernel), 0);
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (shared, start, all, alone) = (&shared, &start, &all, &alone);
                scope.spawn(move || {
                    let mut own = shared.clone();
                    start.wait();
                    for pass in 0..10 {
                        assert_eq!(all(&mut own, thread + pass), *alone, "{kernel}, thread {thread}");
                    }
                });
            }
        });
    }
}

/// Equal rows have equal outputs, wherever they are.
fn equal_rows(network: &mut Network) {
    let jobs: Vec<u16> = (0..40).flat_map(|place| [[7, 3, 1], [90, 20, 0]][place % 2]).collect();
    let mut q = Vec::new();
    network.forward(&Rows { idle: &[0, 0], jobs: &jobs, real: &[], bias: &[0.0; 41], sparsity: None }, &mut q);
    assert!(q[1..].iter().enumerate().all(|(place, value)| *value == q[1 + place % 2]), "{q:?}");
}

#[test]
fn input_that_makes_no_sense_is_no_panic() {
    let weights = weights(shape(32, 2, 4, 64), 4);
    for kernel in Kernel::available() {
        let mut network = network(&weights, kernel);
        let (mut q, mut clamped) = (Vec::new(), Vec::new());
        let sparsity = Some(Sparsity { rule: Rule::Chunks, chunk: 0, block: 0, keep: 0 });
        let wild = Rows { idle: &[u16::MAX], jobs: &[u16::MAX; 8], real: &[f32::NAN; 3], bias: &[], sparsity };
        network.forward(&wild, &mut q);
        assert_eq!(q.len(), 3, "{kernel}");
        let jobs = [129, 39, 2, 129, 39, 2];
        network.forward(&Rows { idle: &[7, 0], jobs: &jobs, real: &[], bias: &[0.0; 3], sparsity }, &mut clamped);
        assert_eq!(q, clamped, "{kernel}");
        let far = Rows { idle: &[0, 0], jobs: &jobs, real: &[], bias: &[0.0, f32::NEG_INFINITY, -1e9], sparsity: None };
        network.forward(&far, &mut q);
        assert!(q.iter().all(|value| value.is_finite()), "{kernel}: {q:?}");
    }
}

#[test]
fn missing_real_numbers_are_zeros() {
    let real = Some(RealInput { inputs: 2, hidden: 5 });
    let weights = weights(Architecture { real, ..shape(32, 2, 4, 64) }, 4);
    for kernel in Kernel::available() {
        let mut network = network(&weights, kernel);
        let (mut q, mut zeros) = (Vec::new(), Vec::new());
        let rows = |real| Rows { idle: &[1, 1], jobs: &[1, 2, 0, 5, 2, 1], real, bias: &[0.0; 3], sparsity: None };
        network.forward(&rows(&[0.5]), &mut q);
        network.forward(&rows(&[0.0; 4]), &mut zeros);
        assert_eq!(q, zeros, "{kernel}");
        network.forward(&rows(&[0.5, 0.0, 0.0, 0.0]), &mut q);
        assert_ne!(q, zeros, "{kernel}");
    }
}

#[test]
fn options_are_kept_or_refused() {
    let weights = weights(shape(32, 1, 4, 64), 4);
    let exact = NetworkOptions { precision: Precision::F32, ..NetworkOptions::default() };
    assert_eq!(Network::new(&weights, exact).unwrap().kernel(), Kernel::best_of(Precision::F32));
    assert_eq!(Network::new(&weights, NetworkOptions::default()).unwrap().kernel(), Kernel::best());
    let rough = NetworkOptions { kernel: Some(Kernel::Amx), ..exact };
    assert_eq!(Network::new(&weights, rough).unwrap_err(), NetworkError::Precision(Kernel::Amx));
    for kernel in Kernel::ALL {
        assert_eq!(Kernel::from_name(kernel.name()), Some(kernel));
        let built = Network::new(&weights, NetworkOptions::of(kernel));
        match kernel.is_available() {
            true => assert_eq!(built.unwrap().kernel(), kernel),
            false => assert_eq!(built.unwrap_err(), NetworkError::Unavailable(kernel)),
        }
    }
    let mut wrong = shape(30, 1, 4, 64);
    assert!(matches!(Network::new(&Weights::random(wrong.clone(), 1), exact), Err(NetworkError::Architecture(_))));
    wrong.width = 32;
    assert!(Network::new(&Weights::random(wrong, 1), exact).is_ok());
}
