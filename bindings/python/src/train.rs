//! Training, with the recipe as a JSON object or the text of a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use pyo3::prelude::*;
use temponet_lab::models::BUILT_IN;
use temponet_school::preparation::{baselines, check_teachers, initial_weights, parts, start, trials, verdict};
use temponet_school::verdict::TrainingVerdict;
use temponet_school::{curves, recipe_file};
use temponet_train::{
    PhaseFigures, Recipe, TrainError, TrainingDevice, TrainingObserver, UpdateFigures, ValidationScores,
};

use crate::calls::{Message, reporting};
use crate::errors;
use crate::model::Model;
use crate::task_set::TaskSet;

/// A finished training.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Training {
    model: Arc<temponet::Model>,
    phases: Vec<PhaseFigures>,
    verdict: TrainingVerdict,
    seed: u64,
    /// Name of the set; none for sets that the recipe draws.
    set: Option<String>,
}

/// Passes the progress of a training on to a Python function, and lets it be cancelled.
struct Reporter {
    sender: Sender<Message>,
    callback: Option<Arc<Py<PyAny>>>,
}

impl Reporter {
    fn send(&self, event: serde_json::Value) {
        let Some(callback) = self.callback.clone() else { return };
        // A call that has ended takes no more messages.
        let _ = self.sender.send(Box::new(move |py| {
            let event = py.import("json")?.call_method1("loads", (event.to_string(),))?;
            callback.call1(py, (event,)).map(|_| ())
        }));
    }
}

/// Number of updates between two reports.
const REPORT_EVERY: u64 = 8;

impl TrainingObserver for Reporter {
    fn begun(&mut self, validated: &ValidationScores) {
        let ValidationScores { score, met, critical } = *validated;
        self.send(serde_json::json!({ "event": "begun", "score": score, "met": met, "critical": critical }));
    }

    fn updated(&mut self, stage: usize, done: u64, of: u64, figures: UpdateFigures) {
        temponet_cancel::checkpoint();
        if done.is_multiple_of(REPORT_EVERY) || done == of {
            let loss = figures.loss;
            self.send(serde_json::json!({ "event": "update", "stage": stage, "done": done, "of": of, "loss": loss }));
        }
    }

    fn phase(
        &mut self,
        figures: &PhaseFigures,
        _checkpoint: &mut dyn FnMut() -> Result<Vec<u8>, TrainError>,
    ) -> Result<(), TrainError> {
        temponet_cancel::checkpoint();
        if let Ok(serde_json::Value::Object(mut event)) = serde_json::to_value(figures) {
            event.insert("event".into(), "phase".into());
            self.send(event.into());
        }
        Ok(())
    }
}

/// Reads a recipe: the text of a file (`toml`), or a JSON object that has the same keys.
fn parsed(text: &str, kind: &str, origin: &str) -> PyResult<Recipe> {
    if kind == "toml" {
        return recipe_file::parse(text, Path::new(origin)).map_err(|error| errors::file(&error));
    }
    let recipe: Recipe = serde_json::from_str(text).map_err(|error| errors::input(format!("recipe: {error}")))?;
    match recipe.problem() {
        Some(problem) => Err(errors::input(format!("recipe: {problem}"))),
        None => Ok(recipe),
    }
}

/// Returns a recipe with all its settings as a JSON object; the standard one for `None`.
#[pyfunction]
#[pyo3(signature = (text, kind, origin))]
pub fn recipe(text: Option<&str>, kind: &str, origin: &str) -> PyResult<String> {
    let recipe = text.map(|text| parsed(text, kind, origin)).transpose()?.unwrap_or_else(recipe_file::standard);
    serde_json::to_string(&recipe).map_err(errors::input)
}

/// Trains a model by a recipe (a JSON object; the standard one for `None`) and judges it.
#[pyfunction]
#[pyo3(signature = (set, recipe, seed, begin_with, device, judged, callback))]
#[expect(clippy::too_many_arguments, reason = "the Python layer passes keyword arguments on")]
pub fn train(
    py: Python<'_>,
    set: Option<&TaskSet>,
    recipe: Option<&str>,
    seed: Option<u64>,
    begin_with: Option<&str>,
    device: &str,
    judged: u32,
    callback: Option<Py<PyAny>>,
) -> PyResult<Training> {
    // Without a recipe, the training goes on from the built-in model, as in `temponet train`.
    let begin_with = begin_with.or(recipe.is_none().then_some(BUILT_IN));
    let mut recipe = recipe.map(|text| parsed(text, "json", "")).transpose()?.unwrap_or_else(recipe_file::standard);
    recipe.seed = seed.unwrap_or(recipe.seed);
    let own = set.map(|set| (*set.set).clone());
    let set = own.as_ref().map(|own| own.name.clone());
    parts(own.as_ref()).map_err(errors::input)?;
    check_teachers(&recipe, own.as_ref()).map_err(errors::input)?;
    let weights = begin_with.map(|name| initial_weights(name, &recipe)).transpose().map_err(errors::input)?;
    let start = begin_with.zip(weights.as_ref()).map(|(name, weights)| start(name, weights, &recipe));
    let device = TrainingDevice::open(device).map_err(|why| errors::input(format!("device = {device:?}: {why}")))?;
    let callback = callback.map(Arc::new);
    let seed = recipe.seed;
    let trained = reporting(py, move |sender| -> Result<_, String> {
        let mut run = device.session(recipe.clone(), own.clone(), weights.as_ref());
        let mut reporter = Reporter { sender, callback };
        run.train(&mut reporter).map_err(|error| error.to_string())?;
        let (mut model, phases) = (run.model(), run.figures().to_vec());
        let trials = trials(&recipe, own.clone(), judged).map_err(|error| error.to_string())?;
        let verdict = verdict(model.clone(), start.as_ref(), &trials);
        let mut verdict = verdict.map_err(|error| error.to_string())?;
        // What is not better than the start is no new model, whatever the training was.
        if let Some(start) = start.filter(|_| !verdict.is_new) {
            model = start.model;
        }
        verdict.settle(&mut model, own.as_ref());
        Ok((model, phases, verdict))
    })?;
    let (model, phases, verdict) = trained.map_err(errors::input)?;
    Ok(Training { model: Arc::new(model), phases, verdict, seed, set })
}

#[pymethods]
impl Training {
    /// The best model.
    fn model(&self) -> Model {
        Model { model: self.model.clone() }
    }

    /// Seed, phases, verdict and its sentence, as `temponet train --json` prints them.
    fn json(&self) -> PyResult<String> {
        let report = serde_json::json!({
            "seed": self.seed, "phases": self.phases, "verdict": self.verdict, "sentence": self.verdict.sentence(),
        });
        serde_json::to_string(&report).map_err(errors::input)
    }

    /// The curves as an SVG picture.
    fn svg(&self) -> String {
        curves::svg(&self.phases, &baselines(&self.verdict))
    }

    /// The curves as a self-contained page.
    fn html(&self) -> String {
        let about = curves::About::of(self.set.as_deref(), &self.verdict);
        curves::page(&self.phases, &baselines(&self.verdict), &about)
    }
}
