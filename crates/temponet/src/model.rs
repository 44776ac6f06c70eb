//! A model: a tokenizer and the weights of a network that reads its tokens.

use std::path::Path;

use temponet_infer::{Architecture, Weights, WeightsError, file_checksum};
use temponet_task::{Costs, System, Time};

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
/// What a running job's number is more where moving jobs costs something.
const STAY_KEY: &str = "stay";

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
        self.weights.metadata.get(PROVENANCE_KEY).map(String::as_str)
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

    /// What the number of a running job is more on this system: [`Model::stay`] where moving jobs costs something.
    pub fn stay_on(&self, system: &System) -> f32 {
        let Costs { context_switch, migration, .. } = system.costs;
        if context_switch + migration > Time::ZERO { self.stay() } else { 0.0 }
    }

    /// What the number of a running job is more where moving jobs costs something, so that it loses its core only for a job that is clearly better.
    pub fn stay(&self) -> f32 {
        self.weights
            .metadata
            .get(STAY_KEY)
            .and_then(|text| text.parse().ok())
            .filter(|stay: &f32| stay.is_finite())
            .unwrap_or(0.0)
    }

    /// Says what staying is worth.
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
            return Err(wrong(problem));
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
        Ok(Model { tokenizer, weights })
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
