//! Checkpoints: everything that a training needs to continue, as the content of one file.
//!
//! The file is in the safetensors format. Parameters, optimizer moments and target networks are tensors; everything
//! else is one more tensor of bytes, in the postcard format.

use std::collections::HashMap;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use temponet_infer::{Weights, check_file, write_tensors};

use crate::error::TrainError;
use crate::method::MethodDevice;
use crate::run::{TrainingProgress, TrainingRun};

/// The part of a checkpoint that is not tensors. The order of the fields is part of the format.
#[derive(Serialize, Deserialize)]
struct Rest {
    progress: TrainingProgress,
    /// Optimizer steps of the network.
    steps: u64,
    /// Memory of the method; see [`encode_memory`].
    memory: Vec<u8>,
    /// Best weights so far, as the bytes of a weights file.
    best: Vec<u8>,
}

const FORMAT: &str = "temponet-checkpoint-4";
const RECIPE: &str = "recipe";
const REST: &str = "rest";

fn wrong(error: impl ToString) -> TrainError {
    TrainError::Checkpoint(error.to_string())
}

/// Writes what a method remembers besides tensors, for [`crate::Algorithm::memory`].
pub fn encode_memory(memory: &impl Serialize) -> Result<Vec<u8>, TrainError> {
    postcard::to_stdvec(memory).map_err(wrong)
}

/// Reads what [`encode_memory`] wrote, for [`crate::Algorithm::restore`].
pub fn decode_memory<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, TrainError> {
    postcard::from_bytes(bytes).map_err(wrong)
}

impl<D: MethodDevice> TrainingRun<D> {
    /// Returns the recipe and the set as text. A checkpoint can only be used with the same ones.
    fn fingerprint(&self) -> Result<String, TrainError> {
        let recipe = serde_json::to_string(&self.recipe).map_err(wrong)?;
        Ok(format!("{recipe} on {}", self.set_fingerprint()))
    }

    /// Returns the content of a checkpoint file.
    pub fn checkpoint(&mut self) -> Result<Vec<u8>, TrainError> {
        let recipe = self.fingerprint()?;
        let steps = self.learner.adam.steps;
        let memory = self.algorithm.as_ref().map(|algorithm| algorithm.memory()).transpose()?.unwrap_or_default();
        let best = self.best.to_bytes().map_err(wrong)?;
        let rest = Rest { progress: self.progress.clone(), steps, memory, best };
        let rest = postcard::to_stdvec(&rest).map_err(wrong)?;
        let mut tensors: Vec<(String, Vec<usize>, Dtype, Vec<u8>)> =
            vec![(REST.into(), vec![rest.len()], Dtype::U8, rest)];
        self.visit_tensors(|list, device, values| {
            for id in values.ids() {
                let (rows, columns) = values.shape(id);
                let bytes = values.values(device, id).iter().flat_map(|value| value.to_le_bytes()).collect();
                tensors.push((format!("{list}/{}", values.name(id)), vec![rows, columns], Dtype::F32, bytes));
            }
        });
        let mut views = Vec::new();
        for (name, shape, kind, bytes) in &tensors {
            views.push((name.as_str(), TensorView::new(*kind, shape.clone(), bytes).map_err(wrong)?));
        }
        let metadata = HashMap::from([("format".into(), FORMAT.into()), (RECIPE.into(), recipe)]);
        write_tensors(views, metadata).map_err(wrong)
    }

    /// Continues where a checkpoint was made. The recipe and the set must be the same.
    pub fn resume(&mut self, bytes: &[u8]) -> Result<(), TrainError> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
        let file = SafeTensors::deserialize(bytes).map_err(wrong)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        if metadata.get("format").map(String::as_str) != Some(FORMAT) {
            return Err(wrong("it is no checkpoint of a training, or one of another version"));
        }
        // The checksum is verified before anything is read, because training would go on with a damaged number
        // unnoticed.
        if !check_file(bytes).map_err(wrong)? {
            return Err(wrong("it has no checksum: it is damaged, or was made by an older version"));
        }
        if metadata.get(RECIPE) != Some(&self.fingerprint()?) {
            return Err(wrong("it was made with another recipe or another task set"));
        }
        let rest: Rest = postcard::from_bytes(file.tensor(REST).map_err(wrong)?.data()).map_err(wrong)?;
        self.best = Weights::from_bytes(&rest.best).map_err(wrong)?;
        self.progress = rest.progress;
        self.begin_stage(self.progress.stage);
        self.learner.adam.steps = rest.steps;
        if let Some(algorithm) = &mut self.algorithm {
            algorithm.restore(&rest.memory)?;
        }
        let mut outcome = Ok(());
        self.visit_tensors(|list, device, values| {
            for id in values.ids() {
                let name = format!("{list}/{}", values.name(id));
                match numbers(&file, &name, values.shape(id)) {
                    Ok(numbers) => values.set(device, id, &numbers),
                    Err(error) => outcome = Err(error),
                }
            }
        });
        outcome
    }
}

/// Returns the values of a tensor of the given shape.
fn numbers(file: &SafeTensors<'_>, name: &str, (rows, columns): (usize, usize)) -> Result<Vec<f32>, TrainError> {
    let view = file.tensor(name).map_err(wrong)?;
    let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let numbers: Vec<f32> = view.data().chunks_exact(4).map(number).collect();
    if numbers.len() == rows * columns { Ok(numbers) } else { Err(wrong(format!("tensor {name:?} has another shape"))) }
}
