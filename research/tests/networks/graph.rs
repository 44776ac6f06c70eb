//! Contract of a graph network: it computes the same as the reference, its rows may stand in any order, equal jobs may
//! share a row, and its messages tell the order of deadlines and who holds a core.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_infer::{Architecture, Body, BodyKeys, Network, NetworkOptions, Rows, Vocabulary, Weights};
use temponet_paper::networks;

use super::reference;

fn shape() -> Architecture {
    let vocabulary = |name: &str, size: usize| Vocabulary { name: name.into(), size };
    let job = vec![vocabulary("slack", 20), vocabulary("due", 12), vocabulary("core", 3)];
    let idle = vec![vocabulary("cores", 4)];
    Architecture {
        width: 24,
        layers: 2,
        heads: 1,
        feed_forward: 40,
        body: networks::graph(),
        ..Architecture::paper(job, idle)
    }
}

fn jobs(count: usize, rng: &mut Pcg64) -> Vec<[u16; 3]> {
    (0..count).map(|_| [rng.random_range(0..20), rng.random_range(0..12), rng.random_range(0..3)]).collect()
}

fn q(weights: &Weights, jobs: &[[u16; 3]], counts: &[u32]) -> Vec<f32> {
    let bias: Vec<f32> = [0.0].into_iter().chain(counts.iter().map(|count| (*count as f32).ln())).collect();
    let rows = Rows { idle: &[3], jobs: jobs.as_flattened(), real: &[], bias: &bias, sparsity: None };
    let mut network = Network::new(weights, NetworkOptions::default()).unwrap().clone();
    let (mut q, expected) = (vec![1.0; 7], reference::graph(weights, &rows));
    network.forward(&rows, &mut q);
    assert_eq!(q.len(), expected.len());
    let gap = q.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(gap < 1e-5, "{gap}");
    q
}

fn gap(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn outputs_follow_their_rows_in_any_order() {
    let weights = Weights::random(shape(), 3);
    let mut rng = Pcg64::seed_from_u64(1);
    for count in [0, 1, 2, 7, 30] {
        let jobs = jobs(count, &mut rng);
        let mut order: Vec<usize> = (0..count).collect();
        order.shuffle(&mut rng);
        let turned: Vec<[u16; 3]> = order.iter().map(|place| jobs[*place]).collect();
        let (straight, turned) = (q(&weights, &jobs, &vec![1; count]), q(&weights, &turned, &vec![1; count]));
        let expected: Vec<f32> =
            [straight[0]].into_iter().chain(order.iter().map(|place| straight[place + 1])).collect();
        assert!(gap(&turned, &expected) < 1e-5);
    }
}

#[test]
fn equal_jobs_may_share_a_row() {
    let weights = Weights::random(shape(), 4);
    let apart = q(&weights, &[[3, 5, 0], [9, 2, 2], [3, 5, 0], [3, 5, 0]], &[1; 4]);
    let together = q(&weights, &[[3, 5, 0], [9, 2, 2]], &[3, 1]);
    assert!(gap(&apart[..3], &together) < 1e-5);
}

#[test]
fn messages_tell_the_order_of_deadlines_and_who_holds_a_core() {
    // All embeddings are equal, so only relations can tell rows apart.
    let mut weights = Weights::random(shape(), 5);
    for name in ["slack", "due", "core"] {
        weights.set_tensor(&format!("embed.job.{name}"), Vec::new());
    }
    let q = q(&weights, &[[0, 1, 0], [0, 4, 0], [0, 8, 0], [0, 8, 2]], &[1; 4]);
    let apart = |a: usize, b: usize| assert!((q[a] - q[b]).abs() > 1e-4, "{q:?}");
    (1..4).for_each(|row| apart(row, row + 1));
}

#[test]
fn it_is_saved_and_read_and_what_it_lacks_is_named() {
    temponet_paper::register();
    let weights = Weights::random(shape(), 7);
    let read = Weights::from_bytes(&weights.to_bytes().unwrap()).unwrap();
    assert!(read == weights && read.architecture.body.keys().graph);
    let without = Architecture { job: shape().job[..2].to_vec(), ..shape() };
    assert_eq!(without.problem().unwrap(), "a graph network needs the job features \"due\" and \"core\"");
    assert!(Body::try_from(BodyKeys { speeds: 1, ..shape().body.keys() }).is_err());
}
