//! Contract: a feed-forward network computes the same as the reference, distinguishes its slots, and is saved and read
//! like any other network.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_infer::{Architecture, Network, NetworkOptions, RealInput, Rows, SLOT, Vocabulary, Weights};
use temponet_paper::networks;

use super::reference;

fn shape(slots: usize, layers: usize, real: Option<RealInput>) -> Architecture {
    let vocabulary = |name: &str, size: usize| Vocabulary { name: name.into(), size };
    let job = vec![vocabulary("slack", 20), vocabulary(SLOT, slots)];
    let idle = vec![vocabulary("cores", 4)];
    let body = networks::feed_forward(slots);
    Architecture { width: 24, layers, heads: 1, feed_forward: 40, real, body, ..Architecture::paper(job, idle) }
}

/// Jobs in some of the slots, in random order.
fn jobs(slots: u16, rng: &mut Pcg64) -> Vec<[u16; 2]> {
    let mut places: Vec<u16> = (0..slots).filter(|_| rng.random::<f64>() < 0.6).collect();
    places.sort_by_key(|_| rng.random::<u32>());
    places.into_iter().map(|place| [rng.random_range(0..20), place]).collect()
}

#[test]
fn the_fast_pass_computes_what_the_reference_computes() {
    let mut rng = Pcg64::seed_from_u64(1);
    let reals = [None, Some(RealInput { inputs: 2, hidden: 0 }), Some(RealInput { inputs: 2, hidden: 9 })];
    for (layers, real) in (1..=3).flat_map(|layers| reals.map(|real| (layers, real))) {
        let weights = Weights::random(shape(6, layers, real), layers as u64);
        let mut network = Network::new(&weights, NetworkOptions::default()).unwrap().clone();
        for _ in 0..20 {
            let jobs = jobs(6, &mut rng);
            let inputs = real.map_or(0, |real| real.inputs);
            let numbers: Vec<f32> = (0..jobs.len() * inputs).map(|_| rng.random_range(-2.0..9.0)).collect();
            let bias = vec![0.0; jobs.len() + 1];
            let rows = Rows { idle: &[3], jobs: jobs.as_flattened(), real: &numbers, bias: &bias, sparsity: None };
            let (mut q, expected) = (Vec::new(), reference::feed_forward(&weights, &rows));
            network.forward(&rows, &mut q);
            assert_eq!(q.len(), expected.len());
            let gap = q.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(gap < 1e-5, "{gap}");
        }
    }
}

#[test]
fn clones_agree_across_threads() {
    let weights = Weights::random(shape(6, 3, None), 5);
    let network = Network::new(&weights, NetworkOptions::default()).unwrap();
    let all = |mut network: Network| {
        let mut rng = Pcg64::seed_from_u64(4);
        let pass = |_| {
            let (jobs, mut q) = (jobs(6, &mut rng), Vec::new());
            let bias = vec![0.0; jobs.len() + 1];
            let rows = Rows { idle: &[2], jobs: jobs.as_flattened(), real: &[], bias: &bias, sparsity: None };
            network.forward(&rows, &mut q);
            q
        };
        (0..50).map(pass).collect::<Vec<Vec<f32>>>()
    };
    let expected = all(network.clone());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| network.clone()).map(|clone| scope.spawn(|| all(clone))).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == expected));
    });
}

#[test]
fn a_job_is_told_by_its_place_and_not_by_the_order_of_rows() {
    let weights = Weights::random(shape(4, 2, None), 3);
    let q = |jobs: &[[u16; 2]]| {
        let bias = vec![0.0; jobs.len() + 1];
        let rows = Rows { idle: &[0], jobs: jobs.as_flattened(), real: &[], bias: &bias, sparsity: None };
        temponet_infer::reference(&weights, &rows).q
    };
    let (one_way, the_other) = (q(&[[5, 0], [9, 2]]), q(&[[9, 2], [5, 0]]));
    assert!((one_way[1] - the_other[2]).abs() < 1e-5 && (one_way[0] - the_other[0]).abs() < 1e-5);
    assert!((one_way[1] - q(&[[5, 1], [9, 2]])[1]).abs() > 1e-4, "another place is another job");
}

#[test]
fn it_is_saved_and_read_and_a_wrong_shape_is_named() {
    temponet_paper::register();
    let weights = Weights::random(shape(5, 2, None), 7);
    let read = Weights::from_bytes(&weights.to_bytes().unwrap()).unwrap();
    assert!(read == weights && read.architecture.body.keys().slots == Some(5));
    let problem = |change: fn(&mut Architecture)| {
        let mut shape = shape(5, 2, None);
        change(&mut shape);
        shape.problem().unwrap()
    };
    assert_eq!(
        problem(|shape| shape.body = networks::feed_forward(6)),
        "the last job feature is not \"slot\" with 6 values"
    );
    assert_eq!(problem(|shape| shape.body = networks::feed_forward(0)), "the number of slots is 0, not from 1 to 256");
    assert!(problem(|shape| shape.job.clear()).contains("last job feature"));
}
