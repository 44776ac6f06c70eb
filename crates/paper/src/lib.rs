//! Every experiment of the paper as one command: its protocol a file, our figures beside the paper's and beside what EDF, the best classical
//! scheduler and the optimum come to, and a verdict that follows from the figures.
//!
//! An experiment is a file here and a protocol in `crates/lab/experiments`; [`ALL`] lists them. [`run`] runs one, or finds in the [`Cache`] what
//! came of it before. Figures are shares as fractions, or times in the unit their line says.

mod ablation;
mod adaptation;
mod cache;
mod contest;
mod experiments;
mod ff_dqn;
mod findings;
mod line;
mod observed;
pub mod page;
mod protocol;
mod training;

use std::time::Instant;

use serde::de::DeserializeOwned;
use temponet::Model;
use temponet_sim::SimError;
use temponet_sim::generate::GenerateError;

pub use ablation::{Ablation, Effort, Variant, VariantResult};
pub use cache::{Cache, key};
pub use contest::{Contender, Contest, Entrant, RunFigures, RunMetric, model_entrant};
pub use experiments::ALL;
pub use findings::{Findings, FindingsTable, Picture, Verdict};
pub use line::{Better, Estimate, Line, Noise, Reference, Standing, Unit};
pub use protocol::{Mode, Protocol, Size, Workload};
pub use training::{DeviceTrainer, History, Trained, Trainer, Training};

use temponet_task::wording::did_you_mean;

use temponet_lab::comparison::CompareError;
use temponet_lab::roster::Roster;

/// Why there are no findings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReproduceError {
    /// A name that means nothing.
    #[error("there is no experiment {0:?}; there are {names} and all{hint}", names = names().join(", "), hint = did_you_mean(.0, names()))]
    Unknown(String),
    /// A protocol that does not make sense.
    #[error("experiment {0}: {1}")]
    Protocol(String, String),
    /// The cache cannot be used.
    #[error("{0}: {1}")]
    Cache(String, String),
    /// A training failed.
    #[error("training {0}: {1}")]
    Train(String, String),
    /// A scheduler that is unknown or broke its contract.
    #[error(transparent)]
    Run(#[from] CompareError),
    /// A run could not be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A set could not be drawn.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A model cannot run.
    #[error("the model cannot run: {0}")]
    Network(String),
}

/// One experiment.
pub struct Experiment {
    /// Such as `E1`.
    pub id: &'static str,
    /// Its protocol file.
    pub protocol: &'static str,
    /// Does what the protocol says.
    pub run: fn(&Context<'_>, &mut Findings) -> Result<(), ReproduceError>,
}

/// What an experiment has at hand.
pub struct Context<'a> {
    /// Its number and protocol.
    pub experiment: &'static Experiment,
    /// How much of it is wanted.
    pub mode: Mode,
    /// The schedulers by name, the learned one with the model of this call.
    pub roster: &'a Roster,
    /// What was computed before.
    pub cache: &'a Cache,
    /// Where models are trained.
    pub trainer: &'a dyn Trainer,
}

impl Context<'_> {
    /// The protocol, with the settings of this experiment.
    pub fn protocol<S: DeserializeOwned>(&self) -> Result<Protocol<S>, ReproduceError> {
        Protocol::parse(self.experiment.id, self.experiment.protocol)
    }

    /// The model of this call.
    pub fn model(&self) -> Result<&std::sync::Arc<Model>, ReproduceError> {
        self.roster.model.as_ref().ok_or_else(|| ReproduceError::Network("there is none".into()))
    }

    /// The same, deciding by itself however many jobs are ready.
    pub fn model_alone(&self) -> Result<std::sync::Arc<Model>, ReproduceError> {
        let mut model = (**self.model()?).clone();
        model.set_reach(f64::from(u32::MAX));
        Ok(std::sync::Arc::new(model))
    }

    /// Says that times are not what they could be, if the program was built without all its optimisation.
    pub fn note_clock(&self, findings: &mut Findings) {
        if cfg!(debug_assertions) {
            findings.notes.push(
                "wall-clock figures are of a development build, which is several times slower than a release".into(),
            );
        }
    }

    /// An error of this experiment's protocol.
    pub fn protocol_error(&self, why: impl Into<String>) -> ReproduceError {
        ReproduceError::Protocol(self.experiment.id.into(), why.into())
    }
}

/// The names of all experiments.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|experiment| experiment.id).collect()
}

/// The experiment of a name, in capitals or not.
pub fn find(name: &str) -> Result<&'static Experiment, ReproduceError> {
    let found = ALL.iter().find(|experiment| experiment.id.eq_ignore_ascii_case(name));
    found.ok_or_else(|| ReproduceError::Unknown(name.into()))
}

/// The file that keeps what came of an experiment: another protocol, mode, model or version has another.
fn file_of(experiment: &Experiment, mode: Mode, roster: &Roster) -> String {
    let checksum = |model: &std::sync::Arc<Model>| model.checksum().unwrap_or_default();
    let model = roster.model.as_ref().map_or(String::new(), checksum);
    let version = env!("CARGO_PKG_VERSION");
    let name = experiment.id.to_lowercase();
    format!("{name}-{}.json", key(&[experiment.protocol, mode.name(), &model, version]))
}

/// What came of an experiment before; none if it has not been run like this, or if its file is damaged.
pub fn known(experiment: &Experiment, mode: Mode, roster: &Roster, cache: &Cache) -> Option<Findings> {
    let bytes = cache.read(&file_of(experiment, mode, roster)).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// Runs an experiment and keeps what comes of it, wherever its models are trained.
pub fn run(
    experiment: &'static Experiment,
    mode: Mode,
    roster: &Roster,
    cache: &Cache,
    trainer: &dyn Trainer,
) -> Result<Findings, ReproduceError> {
    let protocol: Protocol<toml::Table> = Protocol::parse(experiment.id, experiment.protocol)?;
    let mut findings = Findings {
        id: experiment.id.into(),
        title: protocol.title,
        claim: protocol.claim,
        reading: protocol.reading,
        mode: mode.name().into(),
        paper: protocol.paper,
        tolerance: protocol.tolerance,
        lines: Vec::new(),
        tables: Vec::new(),
        pictures: Vec::new(),
        notes: Vec::new(),
        verdict: Verdict::NotReproducible,
        sentence: String::new(),
        seconds: 0.0,
        protocol: experiment.protocol.into(),
    };
    let begin = Instant::now();
    (experiment.run)(&Context { experiment, mode, roster, cache, trainer }, &mut findings)?;
    findings.seconds = begin.elapsed().as_secs_f64();
    let content = serde_json::to_vec(&findings)
        .map_err(|error| ReproduceError::Cache(experiment.id.into(), error.to_string()))?;
    cache.write(&file_of(experiment, mode, roster), &content)?;
    Ok(findings)
}

/// What an experiment is about.
pub fn title(experiment: &Experiment) -> Result<String, ReproduceError> {
    Ok(Protocol::<toml::Table>::parse(experiment.id, experiment.protocol)?.title)
}
