//! A model: a tokenizer and the weights of a network that reads its tokens.

use std::path::Path;

use temponet_infer::{Architecture, Weights, WeightsError, file_checksum};

use crate::tokenizer::Tokenizer;

/// What a weights file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// How jobs become tokens.
    pub tokenizer: Tokenizer,
    /// The network.
    pub weights: Weights,
}

/// Why a file is no model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The weights file cannot be used.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The weights are whole, but the tokenizer is not.
    #[error("its \"tokenizer\" is wrong: {0}")]
    Tokenizer(String),
    /// It is whole, but cannot run.
    #[error(transparent)]
    Network(#[from] temponet_infer::NetworkError),
}

const TOKENIZER_KEY: &str = "tokenizer";
/// Where the model comes from, in one line; random weights say so here.
const PROVENANCE_KEY: &str = "provenance";
const UNTRAINED: &str = "untrained";
/// Ready jobs per core up to which it has learned.
const REACH_KEY: &str = "reach";
/// Says that it never leaves a core idle while a job waits.
const IDLES_KEY: &str = "idles";
const NEVER: &str = "never";
/// The idle head by which files said so before: no weights and this bias.
const OLD_NEVER_IDLE: f32 = -1e6;
/// What staying is worth at most, in units of Q. Files of before have a "stay", which any cost added to every running job: it is not used.
const STAY_KEY: &str = "staying";

/// Where weights come from, if their file says.
pub fn provenance(weights: &Weights) -> Option<&str> {
    weights.metadata.get(PROVENANCE_KEY).map(String::as_str)
}

impl Model {
    /// Untrained weights for a tokenizer.
    pub fn random(tokenizer: Tokenizer, seed: u64) -> Model {
        let paper = Architecture::paper(tokenizer.job_vocabularies(), tokenizer.idle_vocabularies());
        let architecture = Architecture { real: tokenizer.real_input(), slots: tokenizer.slots, ..paper };
        let mut model = Model { tokenizer, weights: Weights::random(architecture, seed) };
        model.set_provenance(format!("{UNTRAINED}: random weights, seed {seed}"));
        model
    }

    /// The model that comes with the program: `docs/model-card.md` says what it learned and what it is good for.
    pub fn built_in() -> Result<Model, ModelError> {
        Model::from_bytes(include_bytes!("../models/default.safetensors"))
    }

    /// Whether nobody has taught it anything.
    pub fn is_untrained(&self) -> bool {
        self.provenance().is_none_or(|text| text.starts_with(UNTRAINED))
    }

    /// Where it comes from, if the file says.
    pub fn provenance(&self) -> Option<&str> {
        provenance(&self.weights)
    }

    /// Says where it comes from.
    pub fn set_provenance(&mut self, text: String) {
        self.weights.metadata.insert(PROVENANCE_KEY.into(), text);
    }

    /// Ready jobs per core up to which it has learned, if the file says. Beyond, it does not decide.
    pub fn reach(&self) -> Option<f64> {
        self.weights.metadata.get(REACH_KEY)?.parse().ok().filter(|reach: &f64| *reach > 0.0)
    }

    /// Says up to how many ready jobs per core it has learned.
    pub fn set_reach(&mut self, jobs_per_core: f64) {
        self.weights.metadata.insert(REACH_KEY.into(), jobs_per_core.to_string());
    }

    /// Whether it never leaves a core idle while a job waits, whatever its idle head says.
    pub fn never_idles(&self) -> bool {
        self.weights.metadata.get(IDLES_KEY).is_some_and(|text| text == NEVER)
    }

    /// Says whether it never leaves a core idle while a job waits.
    pub fn set_never_idles(&mut self, never: bool) {
        match never {
            true => self.weights.metadata.insert(IDLES_KEY.into(), NEVER.into()),
            false => self.weights.metadata.remove(IDLES_KEY),
        };
    }

    /// What a job must be worth to run, where idling is worth `idle_q` to the network.
    pub fn threshold(&self, idle_q: f32) -> f32 {
        if self.never_idles() { f32::NEG_INFINITY } else { idle_q }
    }

    /// What it is worth at most, in units of Q, that a running job keeps its core; how much of it counts depends on what moving costs ([`crate::Staying`]).
    pub fn stay(&self) -> f32 {
        self.weights
            .metadata
            .get(STAY_KEY)
            .and_then(|text| text.parse().ok())
            .filter(|stay: &f32| stay.is_finite() && *stay >= 0.0)
            .unwrap_or(0.0)
    }

    /// Says what staying is worth at most.
    pub fn set_stay(&mut self, stay: f32) {
        self.weights.metadata.insert(STAY_KEY.into(), stay.to_string());
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Model, ModelError> {
        Model::of(Weights::load(path)?)
    }

    /// Reads the content of a file.
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
        let Architecture { job, idle, real, slots, .. } = &weights.architecture;
        if *job != tokenizer.job_vocabularies() || *idle != tokenizer.idle_vocabularies() {
            return Err(wrong("its vocabularies are not those of the network".into()));
        }
        if *real != tokenizer.real_input() {
            return Err(wrong("its real numbers are not those of the network".into()));
        }
        if *slots != tokenizer.slots {
            return Err(wrong("its slots are not those of the network".into()));
        }
        let mut model = Model { tokenizer, weights };
        model.mend_old_idle_head();
        Ok(model)
    }

    /// A file of before says in its weights what is now said in the metadata; with such weights no training can go on.
    fn mend_old_idle_head(&mut self) {
        let (weight, bias) = (self.weights.tensor("head.idle.weight"), self.weights.tensor("head.idle.bias"));
        if *bias == [OLD_NEVER_IDLE] && weight.iter().all(|weight| *weight == 0.0) {
            self.weights.set_tensor("head.idle.bias", vec![0.0]);
            self.set_never_idles(true);
        }
    }

    /// The checksum of its file: of the weights and of all that the metadata say.
    pub fn checksum(&self) -> Result<String, ModelError> {
        Ok(file_checksum(&self.to_bytes()?).unwrap_or_default())
    }

    /// The content of a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        let mut weights = self.weights.clone();
        let tokenizer =
            serde_json::to_string(&self.tokenizer).map_err(|error| ModelError::Tokenizer(error.to_string()))?;
        weights.metadata.insert(TOKENIZER_KEY.into(), tokenizer);
        Ok(weights.to_bytes()?)
    }
}
