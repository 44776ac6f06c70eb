//! A model: a tokenizer and the weights of a network that reads its tokens.

use std::path::Path;

use temponet_infer::{Architecture, Weights, WeightsError, file_checksum};
use temponet_task::System;

use crate::tokenizer::Tokenizer;
use crate::tuning::{Choice, TunedModel};

/// A model, as a weights file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Tokenizer: how jobs become tokens.
    pub tokenizer: Tokenizer,
    /// Weights of the network.
    pub weights: Weights,
}

/// Reason why a file is not a usable model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The weights file cannot be used.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The weights are valid, but the tokenizer is not.
    #[error("its \"tokenizer\" is wrong: {0}")]
    Tokenizer(String),
    /// A choice cannot be written.
    #[error("its \"tuned\" cannot be written: {0}")]
    Tuned(String),
    /// The model is valid, but cannot run on this machine.
    #[error(transparent)]
    Network(#[from] temponet_infer::NetworkError),
}

const TOKENIZER_KEY: &str = "tokenizer";
/// Provenance of the model, in one line; random weights say so here.
const PROVENANCE_KEY: &str = "provenance";
const UNTRAINED: &str = "untrained";
/// Set to [`NEVER`] if the model never leaves a core idle while a job waits.
const IDLES_KEY: &str = "idles";
const NEVER: &str = "never";
/// Bias of the idle head, with zero weights, by which older files said the same.
const OLD_NEVER_IDLE: f32 = -1e6;
/// Greatest Q-value bonus of a running job. Older files have a "stay" with another meaning, which is not used.
const STAY_KEY: &str = "staying";
/// Period of additional decision points in median wcets.
const TICK_KEY: &str = "tick";
/// Number of decisions for which a hierarchical model follows an advisor.
const FOLLOWING_KEY: &str = "following";
/// Which scheduler to follow on one system.
const TUNED_KEY: &str = "tuned";

/// Provenance of weights, if their file states it.
pub fn provenance(weights: &Weights) -> Option<&str> {
    weights.metadata.get(PROVENANCE_KEY).map(String::as_str)
}

impl Model {
    /// An untrained model for a tokenizer: the paper's Transformer.
    pub fn random(tokenizer: Tokenizer, seed: u64) -> Model {
        let paper = Architecture::paper(tokenizer.job_vocabularies(), tokenizer.idle_vocabularies());
        let architecture = Architecture { real: tokenizer.real_input(), ..paper };
        let mut model = Model { tokenizer, weights: Weights::random(architecture, seed) };
        model.set_provenance(format!("{UNTRAINED}: random weights, seed {seed}"));
        model
    }

    /// The built-in model. `docs/model-card.md` says how it was trained and where it helps.
    pub fn built_in() -> Result<Model, ModelError> {
        Model::from_bytes(include_bytes!("../models/default.safetensors"))
    }

    /// Whether the model has not been trained.
    pub fn is_untrained(&self) -> bool {
        self.provenance().is_none_or(|text| text.starts_with(UNTRAINED))
    }

    /// Provenance of the model, if the file states it.
    pub fn provenance(&self) -> Option<&str> {
        provenance(&self.weights)
    }

    /// Sets the provenance.
    pub fn set_provenance(&mut self, text: String) {
        self.weights.metadata.insert(PROVENANCE_KEY.into(), text);
    }

    /// Whether the model never leaves a core idle while a job waits, regardless of its idle head.
    pub fn never_idles(&self) -> bool {
        self.weights.metadata.get(IDLES_KEY).is_some_and(|text| text == NEVER)
    }

    /// Sets whether the model never leaves a core idle while a job waits.
    pub fn set_never_idles(&mut self, never: bool) {
        match never {
            true => self.weights.metadata.insert(IDLES_KEY.into(), NEVER.into()),
            false => self.weights.metadata.remove(IDLES_KEY),
        };
    }

    /// Least Q-value with which a job runs, given the Q-value of idling.
    pub fn threshold(&self, idle_q: f32) -> f32 {
        if self.never_idles() { f32::NEG_INFINITY } else { idle_q }
    }

    /// Greatest Q-value bonus for a running job. How much of it applies depends on the costs of dispatching
    /// ([`crate::stages::Staying`]).
    pub fn stay(&self) -> f32 {
        self.weights
            .metadata
            .get(STAY_KEY)
            .and_then(|text| text.parse().ok())
            .filter(|stay: &f32| stay.is_finite() && *stay >= 0.0)
            .unwrap_or(0.0)
    }

    /// Sets the greatest Q-value bonus for a running job.
    pub fn set_stay(&mut self, stay: f32) {
        self.weights.metadata.insert(STAY_KEY.into(), stay.to_string());
    }

    /// Period of additional decision points, in median wcets, while jobs wait; `None` decides at releases and
    /// completions only.
    pub fn tick(&self) -> Option<f64> {
        self.weights
            .metadata
            .get(TICK_KEY)
            .and_then(|text| text.parse().ok())
            .filter(|tick: &f64| tick.is_finite() && *tick > 0.0)
    }

    /// Sets the period of additional decision points, in median wcets.
    pub fn set_tick(&mut self, tick: Option<f64>) {
        match tick {
            Some(tick) => self.weights.metadata.insert(TICK_KEY.into(), tick.to_string()),
            None => self.weights.metadata.remove(TICK_KEY),
        };
    }

    /// Number of decisions for which a hierarchical model follows an advisor, at least 1; `None` if the file does not
    /// state it.
    pub fn following(&self) -> Option<u32> {
        self.weights.metadata.get(FOLLOWING_KEY).and_then(|text| text.parse().ok()).filter(|period| *period > 0)
    }

    /// Sets the number of decisions for which a hierarchical model follows an advisor.
    pub fn set_following(&mut self, period: u32) {
        self.weights.metadata.insert(FOLLOWING_KEY.into(), period.to_string());
    }

    /// The choice that the file carries, if it has been tuned for a system. A text that is none counts as no choice.
    pub fn tuned(&self) -> Option<TunedModel> {
        self.weights.metadata.get(TUNED_KEY).and_then(|text| serde_json::from_str(text).ok())
    }

    /// Removes the choice that the file carries, if any.
    pub fn forget_tuned(&mut self) {
        self.weights.metadata.remove(TUNED_KEY);
    }

    /// Makes the choice for a system part of the model; `set` names it for people. A scheduler with this model that
    /// starts on the same system follows the choice without a simulation.
    pub fn set_tuned(&mut self, set: &str, system: &System, choice: Choice) -> Result<(), ModelError> {
        let tuned =
            TunedModel { set: set.into(), system: system.fingerprint(), weights: self.weights.checksum(), choice };
        let text = serde_json::to_string(&tuned).map_err(|error| ModelError::Tuned(error.to_string()))?;
        self.weights.metadata.insert(TUNED_KEY.into(), text);
        Ok(())
    }

    /// Reads a weights file.
    pub fn load(path: &Path) -> Result<Model, ModelError> {
        Model::of(Weights::load(path)?)
    }

    /// Reads the content of a weights file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model, ModelError> {
        Model::of(Weights::from_bytes(bytes)?)
    }

    fn of(weights: Weights) -> Result<Model, ModelError> {
        let wrong = ModelError::Tokenizer;
        let text = weights.metadata.get(TOKENIZER_KEY).ok_or_else(|| wrong("it is missing".into()))?;
        let tokenizer: Tokenizer = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if let Some(problem) = tokenizer.problem() {
            return Err(wrong(problem.to_string()));
        }
        let Architecture { job, idle, real, .. } = &weights.architecture;
        if *job != tokenizer.job_vocabularies() || *idle != tokenizer.idle_vocabularies() {
            return Err(wrong("its vocabularies are not those of the network".into()));
        }
        if *real != tokenizer.real_input() {
            return Err(wrong("its real numbers are not those of the network".into()));
        }
        let mut model = Model { tokenizer, weights };
        model.mend_old_idle_head();
        Ok(model)
    }

    /// Moves "never idles" of an older file from the weights into the metadata, so that training can continue.
    fn mend_old_idle_head(&mut self) {
        let (weight, bias) = (self.weights.tensor("head.idle.weight"), self.weights.tensor("head.idle.bias"));
        if *bias == [OLD_NEVER_IDLE] && weight.iter().all(|weight| *weight == 0.0) {
            self.weights.set_tensor("head.idle.bias", vec![0.0]);
            self.set_never_idles(true);
        }
    }

    /// Checksum of the weights file, metadata included.
    pub fn checksum(&self) -> Result<String, ModelError> {
        Ok(file_checksum(&self.to_bytes()?).unwrap_or_default())
    }

    /// Content of the weights file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        let mut weights = self.weights.clone();
        let tokenizer =
            serde_json::to_string(&self.tokenizer).map_err(|error| ModelError::Tokenizer(error.to_string()))?;
        weights.metadata.insert(TOKENIZER_KEY.into(), tokenizer);
        Ok(weights.to_bytes()?)
    }
}
