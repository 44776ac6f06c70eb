//! The weights file: safetensors with the architecture, the tokenizer, the provenance and a checksum in its metadata.
//!
//! The checksum covers the whole file, with its own digits counted as zeros, so that any damaged bit is noticed, in the
//! numbers as well as in the metadata. Files of older versions have a checksum of the numbers alone; they are read as
//! well.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::Architecture;
use crate::architecture::FileForm;
use crate::body::{Body, BodyError, OtherBody};

/// Entries of the metadata that the network itself does not use: the tokenizer, the provenance of the training.
pub type Metadata = BTreeMap<String, String>;

/// Content of a weights file.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Architecture of the network.
    pub architecture: Architecture,
    /// All other metadata.
    pub metadata: Metadata,
    tensors: HashMap<String, Vec<f32>>,
}

/// Reason why a weights file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The file is not a safetensors file, or it is truncated.
    #[error("is not a whole safetensors file: {0}")]
    Format(String),
    /// The file is a safetensors file, but not a model of this crate.
    #[error("is not a TempoNet model: its metadata has no {0:?}")]
    NotAModel(&'static str),
    /// A metadata entry is invalid.
    #[error("its {key:?} is wrong: {why}")]
    Metadata {
        /// Key of the entry.
        key: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The network has a body that this program does not have, or no network has.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A tensor is missing, has the wrong shape or type, or holds a value that is not finite.
    #[error("tensor {name:?}: {why}")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The content does not match the checksum.
    #[error("the checksum does not match: the file is damaged")]
    Checksum,
    /// The checksum is missing or of an unknown kind.
    #[error("its checksum {0:?} is of no known kind: the file is damaged, or of another version")]
    UnknownChecksum(String),
}

const FORMAT: &str = "temponet-model-1";
/// Keys of the metadata entries of this format.
const FORMAT_KEY: &str = "format";
const ARCHITECTURE_KEY: &str = "architecture";
const CHECKSUM_KEY: &str = "checksum";
/// Prefix of the checksum of a whole file, which eight hexadecimal digits follow.
const OF_FILE: &str = "crc32-file:";
const NO_DIGITS: &[u8; 8] = b"00000000";

impl Weights {
    /// Creates weights of an architecture. `fill` returns each tensor from its name, number of rows and number of
    /// columns; missing values are zero.
    pub fn new(architecture: Architecture, mut fill: impl FnMut(&str, usize, usize) -> Vec<f32>) -> Weights {
        let tensors = architecture.tensors();
        let tensors = tensors.into_iter().map(|(name, rows, columns)| {
            let mut values = fill(&name, rows, columns);
            values.resize(rows * columns, 0.0);
            (name, values)
        });
        let tensors = tensors.collect();
        Weights { architecture, metadata: Metadata::new(), tensors }
    }

    /// Random initial weights for training. Embeddings and linear maps are uniform with the usual variances, biases
    /// zero, and norms neutral.
    pub fn random(architecture: Architecture, seed: u64) -> Weights {
        let mut rng = Pcg64::seed_from_u64(seed);
        let body = architecture.body;
        Weights::new(architecture, |name, rows, columns| {
            let own_bound = match body {
                Body::Transformer(_) => None,
                Body::Other(OtherBody { kind, size }) => kind.initial_bound(size, name, columns),
            };
            let bound = match name {
                // This weight has one row per input, not per output.
                "embed.real.weight" => 1.0 / (rows as f32).sqrt(),
                "embed.real.hidden.weight" => 1.0 / (columns as f32).sqrt(),
                _ if name.starts_with("embed.") => 1.0,
                _ => 1.0 / (columns as f32).sqrt(),
            };
            let bound = own_bound.unwrap_or(bound);
            let value = |rng: &mut Pcg64| (2.0 * rng.random::<f32>() - 1.0) * bound;
            match name {
                _ if name.ends_with("norm.weight") => vec![1.0; columns],
                _ if name.ends_with("bias") => vec![0.0; columns],
                _ => (0..rows * columns).map(|_| value(&mut rng)).collect(),
            }
        })
    }

    /// Values of a tensor in row-major order. All tensors of [`Architecture::tensors`] are present; for an unknown name
    /// the slice is empty.
    pub fn tensor(&self, name: &str) -> &[f32] {
        self.tensors.get(name).map_or(&[], Vec::as_slice)
    }

    /// Replaces a tensor, or adds one of [`Architecture::training_tensors`]. Values beyond its size are dropped and
    /// missing values are zero. Unknown names are ignored.
    pub fn set_tensor(&mut self, name: &str, mut values: Vec<f32>) {
        let known = self.architecture.tensors().into_iter().chain(self.architecture.training_tensors());
        if let Some((name, rows, columns)) = known.into_iter().find(|(known, ..)| known == name) {
            values.resize(rows * columns, 0.0);
            self.tensors.insert(name, values);
        }
    }

    /// Tensors that the file holds: those of the network, and those for training that are present.
    fn held(&self) -> impl Iterator<Item = (String, usize, usize)> {
        let extra =
            self.architecture.training_tensors().into_iter().filter(|(name, ..)| self.tensors.contains_key(name));
        self.architecture.tensors().into_iter().chain(extra)
    }

    /// Reads a weights file.
    pub fn load(path: &Path) -> Result<Weights, WeightsError> {
        Weights::from_bytes(&std::fs::read(path)?)
    }

    /// Reads the content of a weights file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Weights, WeightsError> {
        let format = |error: safetensors::SafeTensorError| WeightsError::Format(error.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
        let file = SafeTensors::deserialize(bytes).map_err(format)?;
        let mut metadata: Metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
        let has_checksum = check_file(bytes)?;
        let mut take = |key: &'static str| metadata.remove(key).ok_or(WeightsError::NotAModel(key));
        let version = take(FORMAT_KEY)?;
        if version != FORMAT {
            let why = format!("it is {version:?}; this version reads {FORMAT:?}");
            return Err(WeightsError::Metadata { key: FORMAT_KEY, why });
        }
        let wrong = |why: String| WeightsError::Metadata { key: ARCHITECTURE_KEY, why };
        let form: FileForm =
            serde_json::from_str(&take(ARCHITECTURE_KEY)?).map_err(|error| wrong(error.to_string()))?;
        let architecture = Architecture::try_from(form)?;
        if let Some(problem) = architecture.problem() {
            return Err(wrong(problem));
        }
        let checksum = take(CHECKSUM_KEY)?;
        let mut tensors = HashMap::new();
        for (name, rows, columns) in architecture.tensors() {
            let values = read_tensor(&file, &name, rows, columns)?;
            tensors.insert(name, values);
        }
        for (name, rows, columns) in architecture.training_tensors() {
            if file.tensor(&name).is_ok() {
                let values = read_tensor(&file, &name, rows, columns)?;
                tensors.insert(name, values);
            }
        }
        let weights = Weights { architecture, metadata, tensors };
        match checksum.starts_with("crc32:") {
            true if weights.checksum() != checksum => return Err(WeightsError::Checksum),
            false if !has_checksum => return Err(WeightsError::UnknownChecksum(checksum)),
            _ => {}
        }
        for (name, ..) in weights.held() {
            if let Some(place) = weights.tensor(&name).iter().position(|value| !value.is_finite()) {
                let why = format!("value {place} is {}", weights.tensor(&name)[place]);
                return Err(WeightsError::Tensor { name, why });
            }
        }
        Ok(weights)
    }

    /// Returns the content of a weights file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WeightsError> {
        let format = |error: safetensors::SafeTensorError| WeightsError::Format(error.to_string());
        let architecture = serde_json::to_string(&self.architecture)
            .map_err(|error| WeightsError::Metadata { key: ARCHITECTURE_KEY, why: error.to_string() })?;
        let mut metadata: HashMap<String, String> = self.metadata.clone().into_iter().collect();
        metadata.insert(FORMAT_KEY.into(), FORMAT.into());
        metadata.insert(ARCHITECTURE_KEY.into(), architecture);
        let tensors: Vec<(String, usize, usize, Vec<u8>)> = self
            .held()
            .map(|(name, rows, columns)| {
                let bytes = self.tensor(&name).iter().flat_map(|value| value.to_le_bytes()).collect();
                (name, rows, columns, bytes)
            })
            .collect();
        let mut views = Vec::new();
        for (name, rows, columns, bytes) in &tensors {
            let shape = if *rows == 1 { vec![*columns] } else { vec![*rows, *columns] };
            views.push((name.as_str(), TensorView::new(Dtype::F32, shape, bytes).map_err(format)?));
        }
        write_tensors(views, metadata).map_err(format)
    }

    /// Checksum of the values of all tensors and nothing else, in the order of [`Architecture::tensors`] and then of
    /// [`Architecture::training_tensors`]. It tells whether two networks are the same.
    pub fn checksum(&self) -> String {
        let mut hasher = crc32fast::Hasher::new();
        for (name, ..) in self.held() {
            self.tensor(&name).iter().for_each(|value| hasher.update(&value.to_le_bytes()));
        }
        format!("crc32:{:08x}", hasher.finalize())
    }
}

/// Position of the digits of the whole-file checksum, if there is one. Quotes inside a JSON string are escaped, so
/// nothing else can look like it.
fn digits_at(bytes: &[u8]) -> Option<usize> {
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let header = bytes.get(8..8usize.checked_add(usize::try_from(length).ok()?)?)?;
    let key = format!("\"{CHECKSUM_KEY}\":\"{OF_FILE}");
    let at = 8 + header.windows(key.len()).position(|window| window == key.as_bytes())? + key.len();
    (at + NO_DIGITS.len() <= bytes.len()).then_some(at)
}

/// Digits of the checksum of a whole file. Its own digits, which begin at `at`, count as zeros.
fn file_digits(bytes: &[u8], at: usize) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..at]);
    hasher.update(NO_DIGITS);
    hasher.update(&bytes[at + NO_DIGITS.len()..]);
    format!("{:08x}", hasher.finalize())
}

/// Returns the whole-file checksum that is written in the content of a file, if there is one. It is not verified.
pub fn file_checksum(bytes: &[u8]) -> Option<String> {
    let at = digits_at(bytes)?;
    Some(format!("{OF_FILE}{}", String::from_utf8_lossy(&bytes[at..at + NO_DIGITS.len()])))
}

/// Verifies the whole-file checksum of a file of [`write_tensors`]. Returns `false` if there is none, and an error if
/// it does not match.
pub fn check_file(bytes: &[u8]) -> Result<bool, WeightsError> {
    match digits_at(bytes) {
        Some(at) if bytes[at..].starts_with(file_digits(bytes, at).as_bytes()) => Ok(true),
        Some(_) => Err(WeightsError::Checksum),
        None => Ok(false),
    }
}

/// Returns the content of a safetensors file with a checksum of the whole file. The same input gives the same bytes:
/// the header, which the library writes in the arbitrary order of a hash table, is sorted.
pub fn write_tensors<'a>(
    tensors: Vec<(&'a str, TensorView<'a>)>,
    mut metadata: HashMap<String, String>,
) -> Result<Vec<u8>, safetensors::SafeTensorError> {
    metadata.insert(CHECKSUM_KEY.into(), format!("{OF_FILE}{}", String::from_utf8_lossy(NO_DIGITS)));
    let mut bytes = safetensors::serialize(tensors, Some(metadata))?;
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default()) as usize;
    let header: BTreeMap<String, BTreeMap<String, serde_json::Value>> = serde_json::from_slice(&bytes[8..8 + length])?;
    let sorted = serde_json::to_vec(&header)?;
    // The header is padded with spaces; sorting does not change its length otherwise.
    if sorted.len() <= length {
        bytes[8..8 + length].fill(b' ');
        bytes[8..8 + sorted.len()].copy_from_slice(&sorted);
    }
    if let Some(at) = digits_at(&bytes) {
        let digits = file_digits(&bytes, at);
        bytes[at..at + NO_DIGITS.len()].copy_from_slice(digits.as_bytes());
    }
    Ok(bytes)
}

fn read_tensor(file: &SafeTensors<'_>, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>, WeightsError> {
    let wrong = |why: String| WeightsError::Tensor { name: name.into(), why };
    let view = file.tensor(name).map_err(|_| wrong("is missing".into()))?;
    if view.dtype() != Dtype::F32 {
        return Err(wrong(format!("holds {:?}, not F32", view.dtype())));
    }
    let expected = if rows == 1 { vec![columns] } else { vec![rows, columns] };
    if view.shape() != expected {
        return Err(wrong(format!("has the shape {:?}, not {expected:?}", view.shape())));
    }
    let value = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Ok(view.data().chunks_exact(4).map(value).collect())
}
