//! Growing a model: the same network with a tokenizer that tells it more.
//!
//! The embeddings of new features, and of new values of old ones, are zero. A row is the sum of its embeddings, so a
//! grown network gives the Q-values of the old one until training changes these embeddings. New features stand at the
//! end of the old lists, which keeps the meaning of everything learned.

use temponet_infer::{Architecture, Weights};

use crate::Model;
use crate::tokenizer::Tokenizer;

/// Reason why a model cannot be grown to a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrowthError {
    /// Slack bins or their edges, the reserve, continuous slack or slots differ.
    #[error("{what} of the model are not those of the tokenizer")]
    Different {
        /// What differs.
        what: &'static str,
    },
    /// The features of the model are not the first ones of the tokenizer.
    #[error("the {kind} features {old:?} of the model are not the first of {new:?}")]
    NotFirst {
        /// `job` or `idle`.
        kind: &'static str,
        /// Features of the model.
        old: Vec<String>,
        /// Features of the tokenizer.
        new: Vec<String>,
    },
    /// A feature of the model has more values than the same feature of the tokenizer.
    #[error("the {kind} feature {name:?} of the model has {old} values, more than {new}")]
    FewerValues {
        /// `job` or `idle`.
        kind: &'static str,
        /// Name of the feature.
        name: String,
        /// Number of values in the model.
        old: usize,
        /// Number of values in the tokenizer.
        new: usize,
    },
}

impl Model {
    /// Returns the model with another tokenizer, which must have all its features, in the same order, and may have more
    /// after them. Until it is trained, the grown model decides as this one. Metadata and the tensors for further
    /// training are kept.
    pub fn grown(&self, tokenizer: &Tokenizer) -> Result<Model, GrowthError> {
        let (old, new) = (&self.tokenizer, tokenizer);
        let same = [
            ("the slack bins", old.bins == new.bins && old.binning == new.binning && old.clip == new.clip),
            ("the long-slack reserves", old.long_slack_reserve == new.long_slack_reserve),
            ("the real numbers", old.continuous == new.continuous && old.numbers == new.numbers),
            ("the rows", (old.coming, old.skips_impossible) == (new.coming, new.skips_impossible)),
            ("the slots", old.slots == new.slots),
        ];
        if let Some((what, _)) = same.into_iter().find(|(_, is_same)| !is_same) {
            return Err(GrowthError::Different { what });
        }
        if !new.features.starts_with(&old.features) {
            let names = |tokenizer: &Tokenizer| names(tokenizer.features.iter().map(|feature| feature.vocabulary(1)));
            return Err(GrowthError::NotFirst { kind: "job", old: names(old), new: names(new) });
        }
        if !new.idle.starts_with(&old.idle) {
            let names = |tokenizer: &Tokenizer| names(tokenizer.idle_vocabularies().into_iter());
            return Err(GrowthError::NotFirst { kind: "idle", old: names(old), new: names(new) });
        }
        let before = &self.weights.architecture;
        let architecture =
            Architecture { job: new.job_vocabularies(), idle: new.idle_vocabularies(), ..before.clone() };
        for (kind, before, after) in
            [("job", &before.job, &architecture.job), ("idle", &before.idle, &architecture.idle)]
        {
            let size = |name: &str| after.iter().find(|feature| feature.name == name).map_or(0, |feature| feature.size);
            if let Some(feature) = before.iter().find(|feature| feature.size > size(&feature.name)) {
                let (name, old) = (feature.name.clone(), feature.size);
                return Err(GrowthError::FewerValues { kind, new: size(&name), name, old });
            }
        }
        // Missing rows and tables are filled with zeros.
        let mut weights = Weights::new(architecture, |name, _, _| self.weights.tensor(name).to_vec());
        for (name, ..) in before.training_tensors() {
            let values = self.weights.tensor(&name);
            if !values.is_empty() {
                weights.set_tensor(&name, values.to_vec());
            }
        }
        weights.metadata = self.weights.metadata.clone();
        Ok(Model { tokenizer: Tokenizer { most_rows: old.most_rows, ..new.clone() }, weights })
    }
}

fn names(features: impl Iterator<Item = temponet_infer::Vocabulary>) -> Vec<String> {
    features.map(|feature| feature.name).collect()
}
