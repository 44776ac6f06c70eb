//! The paper's own TempoNet, as far as the paper defines it: its tokens, its network, plain Q-learning and no shield.
//! It stands beside the scheduler that ships, which has other tokens, another way of learning and a shield. A verdict
//! about the paper's figures is about this one.
//!
//! An experiment that trains nothing of its own takes a model that learned on sets of all kinds, in its [`Reading`] of
//! the paper. The full mode trains five of them, with the budget of all trainings. The other modes take a model of the
//! program, of one seed and a longer training (docs/results/paper-model.md), where there is one.

use std::sync::Arc;

use temponet::{Model, Options};
use temponet_infer::file_checksum;
use temponet_train::Recipe;

use super::ablation::Variant;
use super::contest::models_entrant;
use super::reading::Reading;
use super::{Context, Entrant, Mode, ReproduceError, learner};

/// Name of the paper's TempoNet in the results.
pub const PAPER: &str = "paper";

/// Number of trainings of a reading in the full mode, and of phases in each.
const SEEDS: u64 = 5;
const PHASES: u64 = 10;

/// A model in the program.
struct Embedded {
    /// Name of its reading.
    reading: &'static str,
    /// Whether it learned with the paper's sparse attention.
    is_sparse: bool,
    /// Content of the weights file.
    bytes: &'static [u8],
}

static EMBEDDED: [Embedded; 4] = [
    Embedded { reading: "slack", is_sparse: false, bytes: include_bytes!("../models/slack.safetensors") },
    Embedded { reading: "remaining", is_sparse: false, bytes: include_bytes!("../models/remaining.safetensors") },
    Embedded { reading: "ticks", is_sparse: false, bytes: include_bytes!("../models/ticks.safetensors") },
    Embedded { reading: "slack", is_sparse: true, bytes: include_bytes!("../models/sparse.safetensors") },
];

impl Context<'_> {
    /// Returns the models of this reading that learned on sets of all kinds.
    pub fn papers(&self) -> Result<Vec<Arc<Model>>, ReproduceError> {
        self.papers_of(self.reading, false)
    }

    /// Returns the same with the paper's sparse attention.
    pub fn sparse_papers(&self) -> Result<Vec<Arc<Model>>, ReproduceError> {
        self.papers_of(self.reading, true)
    }

    /// Returns the models of a reading that learned on sets of all kinds.
    pub fn papers_of(&self, reading: &'static Reading, is_sparse: bool) -> Result<Vec<Arc<Model>>, ReproduceError> {
        if self.mode == Mode::Full {
            let variant = Variant::new(format!("generalist, {}", reading.words), recipe(reading, is_sparse));
            let trained = self.train_variants(&[variant], SEEDS)?.remove(0);
            return Ok(trained.into_iter().map(|trained| Arc::new(trained.model)).collect());
        }
        Ok(vec![self.long_trained(reading, is_sparse)?])
    }

    /// Returns the model of a reading that is part of the program.
    pub fn long_trained(&self, reading: &Reading, is_sparse: bool) -> Result<Arc<Model>, ReproduceError> {
        let of = |one: &&Embedded| one.reading == reading.name && one.is_sparse == is_sparse;
        let Some(one) = EMBEDDED.iter().find(of) else {
            return Err(
                self.protocol_error(format!("the program has no model with {}; --full trains it", reading.words))
            );
        };
        let wrong = |error| ReproduceError::Network(format!("{}: {error}", one.reading));
        Model::from_bytes(one.bytes).map(Arc::new).map_err(wrong)
    }

    /// The paper's TempoNet, without a shield.
    pub fn paper_entrant(&self) -> Result<Entrant<'static>, ReproduceError> {
        Ok(models_entrant(PAPER, &self.papers()?, Options::default(), false))
    }
}

/// Returns how a model of a reading learns on sets of all kinds.
fn recipe(reading: &Reading, is_sparse: bool) -> Recipe {
    let mut recipe = Recipe { sparse: is_sparse, ..reading.of(learner::paper()) };
    recipe.stage.iter_mut().for_each(|stage| stage.phases = PHASES);
    recipe
}

/// Text that changes with the models.
pub(crate) fn fingerprint() -> String {
    EMBEDDED.iter().filter_map(|one| file_checksum(one.bytes)).collect::<Vec<String>>().join(" ")
}
