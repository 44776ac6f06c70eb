//! Contract: every model file of the repository is written as it was read, and a network that this program does not
//! have is named.

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use temponet_infer::{Architecture, Body, BodyError, BodyKeys, Weights, WeightsError};

/// Metadata entry of a file that holds its architecture.
fn architecture_text(bytes: &[u8]) -> String {
    SafeTensors::read_metadata(bytes).unwrap().1.metadata().as_ref().unwrap()["architecture"].clone()
}

fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("crates/temponet/models/default.safetensors")];
    for folder in ["research/models", "research/models/baselines"] {
        let entries = root.join(folder).read_dir().unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "safetensors")));
    }
    files
}

/// A file of the Transformer has the same metadata and the same numbers after it is read and written. The others'
/// networks are in another crate.
#[test]
fn files_are_written_as_they_were_read() {
    let mut missing = Vec::new();
    for path in models() {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        match Weights::from_bytes(&bytes) {
            Ok(weights) => {
                let written = weights.to_bytes().unwrap();
                assert_eq!(architecture_text(&written), architecture_text(&bytes), "{name}");
                assert_eq!(Weights::from_bytes(&written).unwrap(), weights, "{name}");
                let of_file = |bytes: &[u8]| temponet_infer::file_checksum(bytes);
                assert!(of_file(&bytes).is_none() || of_file(&bytes) == of_file(&written), "{name}");
            }
            Err(WeightsError::Body(BodyError::Missing(_))) => missing.push(name),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    missing.sort();
    assert_eq!(missing, ["a2c-feed-forward", "ff-dqn", "gnn-dqn", "gnn-ppo", "lstm-ppo", "ppo-feed-forward"]);
}

#[test]
fn keys_name_one_body() {
    let body = |keys: BodyKeys| Body::try_from(keys);
    let none = BodyKeys::default();
    assert_eq!(body(none), Ok(Body::default()));
    let both = BodyKeys { actor: Some(4), speeds: 2, ..none };
    assert_eq!(body(both).unwrap().keys(), both);
    assert_eq!(body(BodyKeys { speeds: 1, graph: true, ..none }), Err(BodyError::Excluded("graph", "speeds")));
    assert_eq!(body(BodyKeys { slots: Some(1), memory: Some(1), ..none }), Err(BodyError::Excluded("slots", "memory")));
    let error = body(BodyKeys { graph: true, ..none }).unwrap_err().to_string();
    assert_eq!(
        error,
        "the network is a graph network, which temponet-paper has (cargo build --release -p temponet-paper)"
    );
    let text = r#"{"width":8,"layers":1,"heads":1,"feed_forward":8,"job":[{"name":"a","size":2}],"idle":[{"name":"b","size":2}],"speeds":2}"#;
    let architecture: Architecture = serde_json::from_str(text).unwrap();
    assert_eq!((architecture.speeds(), serde_json::to_string(&architecture).unwrap()), (2, text.into()));
}
