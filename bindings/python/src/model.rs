//! Models of the learned scheduler.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use temponet::stages::{Observation, Scale};
use temponet_infer::Weights;
use temponet_lab::models;
use temponet_sim::{Engine, Unobserved};
use temponet_task::{Assignment, Scheduler, Time};

use crate::errors;
use crate::task_set::TaskSet;

/// A model that does not change.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Model {
    /// The model.
    pub model: Arc<temponet::Model>,
}

#[pymethods]
impl Model {
    /// Loads a model by name: a path, `built-in`, or untrained weights such as `random:1`.
    #[staticmethod]
    fn load(name: &str) -> PyResult<Model> {
        models::named(name).map(|model| Model { model: Arc::new(model) }).map_err(errors::input)
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Model> {
        temponet::Model::from_bytes(bytes).map(|model| Model { model: Arc::new(model) }).map_err(errors::input)
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.model.to_bytes().map(|bytes| PyBytes::new(py, &bytes)).map_err(errors::input)
    }

    /// The model with other values of its tensors, which must have the shapes of its own. What was tuned is forgotten.
    #[pyo3(signature = (tensors, provenance, never_idles))]
    fn with_tensors(
        &self,
        tensors: Vec<(String, Vec<f32>)>,
        provenance: String,
        never_idles: Option<bool>,
    ) -> PyResult<Model> {
        let mut model = (*self.model).clone();
        let mut given: HashMap<String, Vec<f32>> = HashMap::new();
        for (name, values) in tensors {
            let own = model.weights.tensor(&name).len();
            if own == 0 || own != values.len() {
                let has = if own == 0 { "the model has none".into() } else { format!("the model's has {own}") };
                return Err(errors::input(format!("tensor {name:?} has {} values, but {has}", values.len())));
            }
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                return Err(errors::input(format!("tensor {name:?} has the value {value}, which is not finite")));
            }
            given.insert(name, values);
        }
        let own = |name: &str| self.model.weights.tensor(name).to_vec();
        let values = |name: &str, _: usize, _: usize| given.remove(name).unwrap_or_else(|| own(name));
        let mut weights = Weights::new(model.weights.architecture.clone(), values);
        weights.metadata.clone_from(&model.weights.metadata);
        model.weights = weights;
        model.forget_tuned();
        if let Some(never) = never_idles {
            model.set_never_idles(never);
        }
        model.set_provenance(provenance);
        Ok(Model { model: Arc::new(model) })
    }

    /// Names, rows and columns of the tensors.
    fn shapes(&self) -> Vec<(String, usize, usize)> {
        self.model.weights.architecture.tensors()
    }

    /// Values of a tensor in row-major order; empty for an unknown name.
    fn tensor(&self, name: &str) -> Vec<f32> {
        self.model.weights.tensor(name).to_vec()
    }

    /// Architecture as a JSON object.
    fn architecture(&self) -> PyResult<String> {
        serde_json::to_string(&self.model.weights.architecture).map_err(errors::input)
    }

    #[getter]
    fn provenance(&self) -> Option<&str> {
        self.model.provenance()
    }

    #[getter]
    fn is_untrained(&self) -> bool {
        self.model.is_untrained()
    }

    #[getter]
    fn checksum(&self) -> PyResult<String> {
        self.model.checksum().map_err(errors::input)
    }
}

/// What the network sees at a decision: the token of the idle row, the tokens of the job rows one after the other, the
/// attention bias of every row (the logarithm of the number of jobs that it stands for), and the rows of the jobs that
/// were chosen.
pub type Seen = (Vec<u16>, Vec<u16>, Vec<f32>, Vec<u32>);

/// Returns the observations of a run under a scheduler at all choices, as the model's network sees them.
#[pyfunction]
pub fn observations(
    py: Python<'_>,
    model: &Model,
    set: &TaskSet,
    scheduler: &str,
    seed: u64,
    horizon: u64,
) -> PyResult<Vec<Seen>> {
    let (model, set) = (model.model.clone(), set.set.clone());
    if model.tokenizer.real_input().is_some() || model.tokenizer.leaves_out() {
        return Err(errors::input(
            "the network reads numbers or coming jobs, which observations do not have; random:1 reads tokens alone",
        ));
    }
    let mut scheduler = temponet_lab::roster::Roster::classical().build(scheduler).map_err(errors::input)?;
    crate::calls::interruptible(py, move || -> PyResult<Vec<Seen>> {
        let system = set.system.clone();
        scheduler.start(&system).map_err(errors::input)?;
        let scale = Scale::of(&model.tokenizer, &system);
        let mut engine = Engine::new(&*set, seed, Time(horizon));
        let (mut observation, mut assignment, mut all) = (Observation::default(), Assignment::default(), Vec::new());
        observation.start(&system);
        while engine.advance(&mut Unobserved) {
            temponet_cancel::checkpoint();
            let view = engine.view();
            assignment.reset(set.cores());
            scheduler.decide(&view, &mut assignment);
            observation.read(&model.tokenizer, &scale, &view, false);
            if view.active.len() > set.cores() {
                let chosen: Vec<_> = assignment.cores().iter().flatten().collect();
                let jobs = observation.jobs();
                let rows = jobs.iter().filter(|(id, _)| chosen.contains(&id)).map(|(_, row)| *row).collect();
                let seen = observation.rows();
                all.push((seen.idle.to_vec(), seen.jobs.to_vec(), seen.bias.to_vec(), rows));
            }
            engine.apply(&assignment, &mut Unobserved).map_err(errors::input)?;
        }
        Ok(all)
    })?
}
