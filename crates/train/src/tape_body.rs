//! Bodies of networks on the tape that other crates bring.
//!
//! A crate that registers a [`temponet_infer::BodyKind`] registers its form on the tape here, so that it can be
//! trained. The form is written against [`Operations`], which every device has.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use temponet_grad::{Operations, TensorId, Var};
use temponet_infer::Architecture;

use crate::sample::Batch;
use crate::tape_network::OutputRows;

/// Body of a network on the tape.
pub trait TapeBody: Debug + Send + Sync {
    /// Computes what stands before the heads of idling and of the state value, and the outputs of the job rows.
    fn forward(&self, tape: &mut dyn Operations, input: &BodyInput<'_>) -> BodyOutput;
}

/// Input of a body.
pub struct BodyInput<'a> {
    /// Batch.
    pub batch: &'a Batch<'a>,
    /// Rows whose outputs are needed.
    pub output_rows: &'a OutputRows,
    /// Embedded rows of the batch.
    pub x: Var,
    /// Embedded rows of the pasts of its samples; `None` if no sample has a past.
    pub past: Option<Var>,
}

/// Results of a body.
pub struct BodyOutput {
    /// Input of the heads of idling and of the state value, one row for each sample.
    pub idle_rows: Var,
    /// Outputs of some job rows, and their places among the output rows. Together they are all job rows.
    pub jobs: Vec<(Var, Vec<u32>)>,
    /// Output and cell state of an LSTM after each sample; `None` for a body without memory.
    pub memory: Option<(Var, Var)>,
}

/// Creates a body on the tape, given the size of the body, the architecture and the ids of its tensors by their names.
pub type MakeTapeBody = fn(usize, &Architecture, &dyn Fn(&str) -> TensorId) -> Arc<dyn TapeBody>;

static BODIES: RwLock<Vec<(&'static str, MakeTapeBody)>> = RwLock::new(Vec::new());

/// Makes the form on the tape of the body with this key known to the whole process. One with the same key is replaced.
pub fn register_tape_body(key: &'static str, make: MakeTapeBody) {
    let mut bodies = BODIES.write().unwrap_or_else(PoisonError::into_inner);
    bodies.retain(|(known, _)| *known != key);
    bodies.push((key, make));
}

/// Form on the tape of the body with this key.
pub(crate) fn tape_body(key: &str) -> Option<MakeTapeBody> {
    let bodies = BODIES.read().unwrap_or_else(PoisonError::into_inner);
    bodies.iter().find(|(known, _)| *known == key).map(|(_, make)| *make)
}
