//! No bytes make the loader of weights panic; a model that is read can be written, reads back as the same, and runs.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_infer::{Architecture, Network, NetworkOptions, Rows, Weights};

/// Cuts, changes and grows whole files, so that what is behind the checks of the container is reached: the input is the
/// changes.
fn changed(data: &[u8]) -> Vec<u8> {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    let mut bytes = WHOLE.get_or_init(small).clone();
    for change in data.chunks_exact(4) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len().max(1);
        match change[2] % 4 {
            0 => bytes.truncate(place),
            1 => bytes.insert(place.min(bytes.len()), change[3]),
            _ if place < bytes.len() => bytes[place] = change[3],
            _ => {}
        }
    }
    bytes
}

/// The file of a small model.
fn small() -> Vec<u8> {
    let tokenizer = Tokenizer { bins: 2, features: Vec::new(), ..Tokenizer::full() };
    let (job, idle) = (tokenizer.job_vocabularies(), tokenizer.idle_vocabularies());
    let shape = Architecture { width: 4, layers: 1, heads: 2, feed_forward: 4, ..Architecture::paper(job, idle) };
    let model = Model { tokenizer, weights: Weights::random(shape, 1) };
    model.to_bytes().expect("a model of ours can be written")
}

fn check(bytes: &[u8]) {
    let Ok(weights) = Weights::from_bytes(bytes) else { return };
    let written = weights.to_bytes().expect("what was read can be written");
    assert_eq!(Weights::from_bytes(&written).expect("what we wrote reads back"), weights);
    if let Ok(model) = Model::from_bytes(bytes) {
        let written = model.to_bytes().expect("what was read can be written");
        assert_eq!(Model::from_bytes(&written).expect("what we wrote reads back").tokenizer, model.tokenizer);
    }
    let mut network = Network::new(&weights, NetworkOptions::default()).expect("a network that was read can run");
    let mut q = Vec::new();
    network.forward(&Rows { idle: &[0], jobs: &[1; 8], real: &[0.5; 8], bias: &[], sparsity: None }, &mut q);
    assert!(!q.is_empty());
}

fuzz_target!(|data: &[u8]| {
    check(data);
    check(&changed(data));
});
