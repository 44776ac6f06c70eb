//! The paper's own TempoNet, as far as the paper defines it: its tokens, its network, plain Q-learning and no shield.
//! It stands beside the scheduler that ships, which has other tokens, another way of learning and a shield. A verdict
//! about the paper's figures is about this one.
//!
//! Three readings of the paper are trained, with `research/recipes/dqn-paper.toml`, `dqn-paper-remaining.toml` and
//! `dqn-paper-ticks.toml`, and the first one with sparse attention, with `dqn-paper-sparse.toml`. The files in
//! `research/models` are those of the recipes' own seed; docs/results/paper-model.md has the other seeds and the
//! curves.

use std::sync::Arc;

use temponet::{Model, Options};
use temponet_infer::file_checksum;

use super::contest::model_entrant;
use super::{Entrant, ReproduceError};

/// A reading of the paper's TempoNet.
pub struct PaperModel {
    /// Name in the results.
    pub name: &'static str,
    /// Content of the weights file.
    bytes: &'static [u8],
}

/// Slack alone, decisions at releases and completions. It stands in every experiment that names TempoNet.
pub static PAPER: PaperModel = PaperModel { name: "paper", bytes: include_bytes!("../models/slack.safetensors") };

static REMAINING: PaperModel =
    PaperModel { name: "paper-remaining", bytes: include_bytes!("../models/remaining.safetensors") };

static TICKS: PaperModel = PaperModel { name: "paper-ticks", bytes: include_bytes!("../models/ticks.safetensors") };

/// All readings: [`PAPER`]; the remaining work beside the slack; a decision at each tick.
pub static READINGS: [&PaperModel; 3] = [&PAPER, &REMAINING, &TICKS];

/// Slack alone, trained with the paper's sparse attention, for the experiment that stresses it.
pub static SPARSE: PaperModel =
    PaperModel { name: "paper-sparse", bytes: include_bytes!("../models/sparse.safetensors") };

impl PaperModel {
    /// Reads the model.
    pub fn model(&self) -> Result<Arc<Model>, ReproduceError> {
        let wrong = |error| ReproduceError::Network(format!("{}: {error}", self.name));
        Model::from_bytes(self.bytes).map(Arc::new).map_err(wrong)
    }

    /// The model as an entrant without a shield.
    pub fn entrant(&self) -> Result<Entrant<'static>, ReproduceError> {
        Ok(model_entrant(self.name, &self.model()?, Options::default(), false))
    }
}

/// Text that changes with the models.
pub(crate) fn fingerprint() -> String {
    READINGS
        .into_iter()
        .chain([&SPARSE])
        .filter_map(|reading| file_checksum(reading.bytes))
        .collect::<Vec<String>>()
        .join(" ")
}
