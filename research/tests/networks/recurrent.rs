//! Contract of a recurrent network: its first decision is that of the reference, later ones depend on those before, and
//! a reset or a clone forgets them.

use temponet_infer::{Architecture, Body, BodyKeys, Network, NetworkOptions, Rows, Vocabulary, Weights};
use temponet_paper::networks;

use super::reference;

fn shape() -> Architecture {
    let vocabulary = |name: &str, size: usize| vec![Vocabulary { name: name.into(), size }];
    let paper = Architecture::paper(vocabulary("slack", 20), vocabulary("cores", 4));
    Architecture { width: 12, layers: 1, heads: 1, feed_forward: 20, body: networks::recurrent(6), ..paper }
}

#[test]
fn it_remembers_until_it_is_reset() {
    let weights = Weights::random(shape(), 3);
    let rows =
        |jobs: &'static [u16]| Rows { idle: &[2], jobs, real: &[], bias: &[0.0; 5][..=jobs.len()], sparsity: None };
    let mut network = Network::new(&weights, NetworkOptions::default()).unwrap();
    let next = |network: &mut Network, jobs: &'static [u16]| {
        let mut q = vec![7.0];
        network.forward(&rows(jobs), &mut q);
        q
    };
    let close = |a: &[f32], b: &[f32]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    let first = next(&mut network, &[3, 9, 14]);
    assert!(close(&first, &reference::recurrent(&weights, &rows(&[3, 9, 14]))));
    let second = next(&mut network, &[3, 9, 14]);
    assert!(!close(&first, &second), "the same rows, but not the same past");
    assert!(close(&next(&mut network.clone(), &[3, 9, 14]), &first), "a clone begins anew");
    network.reset();
    next(&mut network, &[5, 1]);
    assert!(!close(&next(&mut network, &[3, 9, 14]), &second), "another past");
    network.reset();
    assert!(close(&next(&mut network, &[3, 9, 14]), &first) && close(&next(&mut network, &[3, 9, 14]), &second));
    // The order of the rows means nothing.
    network.reset();
    let turned = next(&mut network, &[14, 3, 9]);
    assert!(close(&turned, &[first[0], first[3], first[1], first[2]]));
}

#[test]
fn it_is_saved_and_read_and_a_wrong_shape_is_named() {
    temponet_paper::register();
    let weights = Weights::random(shape(), 7);
    let read = Weights::from_bytes(&weights.to_bytes().unwrap()).unwrap();
    assert!(read == weights && read.architecture.body.keys().memory == Some(6));
    assert_eq!(
        Architecture { body: networks::recurrent(0), ..shape() }.problem().unwrap(),
        "memory is 0, not from 1 to 1024"
    );
    assert!(Body::try_from(BodyKeys { speeds: 1, ..shape().body.keys() }).is_err());
}
