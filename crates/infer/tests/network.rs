//! Contract: the network is equivariant under permutations of jobs, equal rows may be counted instead of repeated, and
//! a damaged weights file is refused.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_infer::{
    Architecture, Atoms, Body, Heads, Kernel, Network, NetworkOptions, RealInput, Rows, Rule, Sparsity, Vocabulary,
    Weights, WeightsError, reference,
};

fn vocabularies(sizes: &[(&str, usize)]) -> Vec<Vocabulary> {
    sizes.iter().map(|(name, size)| Vocabulary { name: name.to_string(), size: *size }).collect()
}

fn small() -> Architecture {
    let (job, idle) = (vocabularies(&[("slack", 20), ("core", 3)]), vocabularies(&[("cores", 4), ("load", 5)]));
    Architecture { width: 32, layers: 2, heads: 4, feed_forward: 64, ..Architecture::paper(job, idle) }
}

fn random_rows(n: usize, rng: &mut Pcg64) -> Vec<[u16; 2]> {
    (0..n).map(|_| [rng.random_range(0..20), rng.random_range(0..3)]).collect()
}

fn q(weights: &Weights, jobs: &[[u16; 2]], bias: &[f32], sparsity: Option<Sparsity>) -> Vec<f32> {
    reference(weights, &Rows { idle: &[1, 2], jobs: jobs.as_flattened(), real: &[], bias, sparsity }).q
}

fn assert_close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len());
    let gap = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(gap < 2e-5, "{what}: {gap}");
}

#[test]
fn permuting_the_jobs_permutes_the_outputs() {
    let mut rng = Pcg64::seed_from_u64(1);
    for seed in 0..20 {
        let weights = Weights::random(small(), seed);
        let jobs = random_rows(17, &mut rng);
        let bias = vec![0.0; 18];
        let plain = q(&weights, &jobs, &bias, None);
        let turned: Vec<[u16; 2]> = (0..17).map(|at| jobs[(at * 5 + 3) % 17]).collect();
        let turned = q(&weights, &turned, &bias, None);
        let expected: Vec<f32> = [plain[0]].into_iter().chain((0..17).map(|at| plain[1 + (at * 5 + 3) % 17])).collect();
        assert_close(&turned, &expected, "permuted");
    }
}

#[test]
fn jobs_of_real_numbers_only_are_permuted_too() {
    let mut rng = Pcg64::seed_from_u64(4);
    for (seed, hidden) in [(0, 0), (1, 9)] {
        let weights =
            Weights::random(Architecture { job: vec![], real: Some(RealInput { inputs: 2, hidden }), ..small() }, seed);
        let jobs: Vec<[f32; 2]> = (0..17).map(|_| [rng.random_range(-3.0..9.0), rng.random_range(0.0..2.0)]).collect();
        let turned: Vec<[f32; 2]> = (0..17).map(|at| jobs[(at * 5 + 3) % 17]).collect();
        let q = |jobs: &[[f32; 2]]| {
            let real = jobs.as_flattened();
            reference(&weights, &Rows { idle: &[1, 2], jobs: &[], real, bias: &[0.0; 18], sparsity: None }).q
        };
        let plain = q(&jobs);
        let expected: Vec<f32> = [plain[0]].into_iter().chain((0..17).map(|at| plain[1 + (at * 5 + 3) % 17])).collect();
        assert_close(&q(&turned), &expected, "permuted");
        assert!(plain[1..].windows(2).all(|pair| pair[0] != pair[1]), "{plain:?}");
    }
}

#[test]
fn equal_rows_may_be_counted_instead_of_repeated() {
    let mut rng = Pcg64::seed_from_u64(2);
    for seed in 0..20 {
        let weights = Weights::random(small(), seed);
        let distinct = [[3, 0], [7, 1], [7, 2], [19, 0]];
        let counts: Vec<usize> = (0..4).map(|_| rng.random_range(1..30)).collect();
        let repeated: Vec<[u16; 2]> =
            distinct.iter().zip(&counts).flat_map(|(row, count)| std::iter::repeat_n(*row, *count)).collect();
        let plain = q(&weights, &repeated, &vec![0.0; repeated.len() + 1], None);
        let bias: Vec<f32> = [0.0].into_iter().chain(counts.iter().map(|count| (*count as f32).ln())).collect();
        let counted = q(&weights, &distinct, &bias, None);
        let mut first = 1;
        for (place, count) in counts.iter().enumerate() {
            assert_close(&plain[first..first + 1], &counted[place + 1..place + 2], "counted");
            first += count;
        }
        assert_close(&plain[..1], &counted[..1], "idle");
    }
}

#[test]
fn sparse_attention_that_keeps_everything_is_dense() {
    let mut rng = Pcg64::seed_from_u64(3);
    let weights = Weights::random(small(), 5);
    let jobs = random_rows(40, &mut rng);
    let bias = vec![0.0; 41];
    let dense = q(&weights, &jobs, &bias, None);
    let of = |rule, chunk, block, keep| Sparsity { rule, chunk, block, keep };
    for all in [of(Rule::Chunks, 10, 7, 6), of(Rule::BlockDrop, 0, 7, 6), of(Rule::TopKeys, 0, 0, 40)] {
        assert_close(&q(&weights, &jobs, &bias, Some(all)), &dense, "all kept");
    }
    let sparse = q(&weights, &jobs, &bias, Some(Sparsity::paper(40)));
    assert!(sparse.iter().zip(&dense).any(|(a, b)| (a - b).abs() > 1e-4), "the paper's leaves some out");
    assert_eq!(Sparsity::paper(600), of(Rule::Chunks, 86, 25, 5));
    assert_eq!(Sparsity::paper(64), of(Rule::Chunks, 13, 8, 1));
}

#[test]
fn attention_maps_are_shares() {
    let weights = Weights::random(small(), 1);
    let rows = Rows { idle: &[0, 0], jobs: &[1, 0, 5, 1, 9, 2], real: &[], bias: &[0.0; 4], sparsity: None };
    let trace = reference(&weights, &rows);
    assert_eq!(trace.attention.len(), 2 * 4);
    for row in trace.attention.iter().flat_map(|map| &map.weights) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.len() == 4);
    }
}

#[test]
fn a_file_reads_back_or_is_refused() {
    let mut weights = Weights::random(small(), 7);
    weights.metadata.insert("tokenizer".into(), "{}".into());
    let bytes = weights.to_bytes().unwrap();
    assert_eq!(Weights::from_bytes(&bytes).unwrap(), weights);
    assert!(!String::from_utf8_lossy(&bytes).contains("real"), "what a network does not have is not in its file");
    for hidden in [0, 6] {
        let real = Weights::random(Architecture { real: Some(RealInput { inputs: 3, hidden }), ..small() }, 7);
        assert_eq!(Weights::from_bytes(&real.to_bytes().unwrap()).unwrap(), real);
    }
    let none = Architecture { real: Some(RealInput { inputs: 0, hidden: 0 }), ..small() };
    assert!(none.problem().unwrap().contains("real inputs is 0"));
    assert!(Architecture { job: vec![], ..small() }.problem().unwrap().contains("0 job features"));
    for cut in [0, 3, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(matches!(Weights::from_bytes(&bytes[..cut]), Err(WeightsError::Format(_))), "cut at {cut}");
    }
    let mut damaged = bytes.clone();
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    assert!(matches!(Weights::from_bytes(&damaged), Err(WeightsError::Checksum)));
    let not_a_number = Weights::new(small(), |_, rows, columns| vec![f32::NAN; rows * columns]);
    let error = Weights::from_bytes(&not_a_number.to_bytes().unwrap()).unwrap_err();
    assert!(error.to_string().contains("value 0 is NaN"), "{error}");
    // A file whose tensors do not have the shapes that its architecture claims.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.contains("\\\"width\\\":32"));
    let claimed: Vec<u8> = sealed(replace(&bytes, b"\\\"heads\\\":4", b"\\\"heads\\\":5"));
    assert!(Weights::from_bytes(&claimed).unwrap_err().to_string().contains("cannot be divided among 5 heads"));
    let claimed = sealed(replace(&bytes, b"\\\"width\\\":32", b"\\\"width\\\":64"));
    assert!(Weights::from_bytes(&claimed).unwrap_err().to_string().contains("has the shape"));
}

/// Sets the matching checksum: an inconsistent file, but not a damaged one.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mark = b"crc32-file:";
    let at = bytes.windows(mark.len()).position(|window| window == mark).expect("it is there") + mark.len();
    bytes[at..at + 8].fill(b'0');
    let digits = format!("{:08x}", crc32fast::hash(&bytes));
    bytes[at..at + 8].copy_from_slice(digits.as_bytes());
    bytes
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let place = bytes.windows(from.len()).position(|window| window == from).expect("it is there");
    [&bytes[..place], to, &bytes[place + from.len()..]].concat()
}

#[test]
fn a_flipped_bit_anywhere_in_a_weights_file_is_an_error() {
    let tiny = Architecture { width: 8, heads: 2, layers: 1, feed_forward: 8, ..small() };
    let mut weights = Weights::random(tiny, 1);
    weights.metadata.insert("provenance".into(), "here".into());
    let bytes = weights.to_bytes().unwrap();
    assert_eq!(Weights::from_bytes(&bytes).unwrap(), weights);
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // Every bit of the header, and one bit of each byte of the numbers.
    let flips = (0..header * 8).chain((header..bytes.len()).map(|byte| byte * 8 + byte % 8));
    for bit in flips {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Weights::from_bytes(&flipped).is_err(), "bit {bit} of {header} bytes of header");
    }
}

#[test]
fn a_network_with_atoms_gives_the_mean_return_of_each_job_alone() {
    let atoms = Atoms { count: 9, low: -3, high: 5 };
    let mut rng = Pcg64::seed_from_u64(6);
    let plain = Weights::random(Architecture { body: Body::Transformer(Heads::Returns(atoms)), ..small() }, 2);
    let mut dueling = plain.clone();
    for (name, rows, columns) in plain.architecture.training_tensors() {
        dueling.set_tensor(&name, (0..rows * columns).map(|_| rng.random_range(-1.0..1.0)).collect());
    }
    let (jobs, bias) = (random_rows(17, &mut rng), vec![0.0; 18]);
    let means = [plain, dueling].map(|weights| {
        let expected = q(&weights, &jobs, &bias, None);
        let rows = Rows { idle: &[1, 2], jobs: jobs.as_flattened(), real: &[], bias: &bias, sparsity: None };
        let (mut network, mut q) = (Network::new(&weights, NetworkOptions::of(Kernel::Scalar)).unwrap(), Vec::new());
        network.forward(&rows, &mut q);
        assert_close(&q, &expected, "means");
        let read = Weights::from_bytes(&weights.to_bytes().unwrap()).unwrap();
        assert!(read == weights && q.iter().all(|mean| (-3.0..=5.0).contains(mean)));
        q
    });
    assert!(means[0].iter().zip(&means[1]).all(|(a, b)| (a - b).abs() > 1e-4), "the value head counts");
    let problem =
        |atoms: Atoms| Architecture { body: Body::Transformer(Heads::Returns(atoms)), ..small() }.problem().unwrap();
    assert_eq!(problem(Atoms { count: 1, ..atoms }), "1 atoms, not from 2 to 256");
    assert_eq!(problem(Atoms { high: -3, ..atoms }), "atoms from -3 to -3: the first is not below the last");
}
