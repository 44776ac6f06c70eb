//! The experiments of the paper, each runnable by name.
//!
//! An experiment consists of a Rust module in `src/experiments` and a protocol file in `research/experiments`; [`ALL`]
//! lists them. [`run`] runs one and stores its [`Findings`] in the [`Cache`]; [`cached`] returns the findings of an
//! earlier run.
//!
//! Findings hold our figures beside the paper's and beside those of EDF, the best classical scheduler and the
//! clairvoyant optimum on the same runs, and a verdict that follows from the figures. Shares are fractions from 0 to 1;
//! every other figure states its unit.
//!
//! The rivals' methods of learning are in [`methods`], those that search in [`search`]; [`register`] makes them known
//! to recipes and to the catalog of schedulers. Everything else is arranged from the product's crates.

mod ablation;
mod adaptation;
mod baselines;
mod cache;
mod check;
mod contest;
mod experiments;
mod ff_dqn;
mod findings;
mod hours;
mod learner;
pub mod methods;
pub mod networks;
mod observed;
pub mod page;
mod paper_model;
mod plan;
mod plots;
mod protocol;
mod reading;
mod register;
mod reproduce;
mod result_line;
mod rivals;
pub mod search;
mod training;

use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use temponet::{Model, NetworkError};
use temponet_sim::SimError;
use temponet_sim::generate::GenerateError;

pub use ablation::{Ablation, Effort, Variant, VariantResult};
pub use baselines::Baselines;
use cache::{CODE, experiment_code};
pub use cache::{Cache, key, model_key, options_key};
pub use check::Check;
use contest::SharedResults;
pub use contest::{Contender, Contest, Entrant, RunFigures, RunMetric, TestBed, model_entrant, models_entrant};
pub use experiments::ALL;
pub use findings::{Findings, FindingsTable, Picture, Verdict};
pub use hours::hours;
pub use paper_model::PAPER;
pub use plan::{Left, Part, Plan, Planned, by_importance, plan, train};
pub use protocol::{Mode, Protocol, Size, TimedSize, Workload};
pub use reading::{READINGS, Reading};
pub use register::register;
pub use reproduce::Reproduce;
pub use result_line::{Better, Line, Noise, Reference, RepeatedMean, Standing, Unit};
pub use training::{DeviceTrainer, History, Trained, Trainer, Training};

use temponet_wording::did_you_mean;

use temponet_lab::comparison::CompareError;
use temponet_lab::roster::Roster;

/// Reason why an experiment has no findings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReproduceError {
    /// No experiment has this name.
    #[error("there is no experiment {0:?}; there are {names} and all{hint}", names = names().join(", "), hint = did_you_mean(.0, names()))]
    Unknown(String),
    /// The protocol of an experiment is invalid: the experiment, and why.
    #[error("experiment {0}: {1}")]
    Protocol(String, String),
    /// The cache cannot be read or written: the path, and why.
    #[error("{0}: {1}")]
    Cache(String, String),
    /// A training failed: its name, and why.
    #[error("training {0}: {1}")]
    Train(String, String),
    /// A scheduler is unknown or broke its contract.
    #[error(transparent)]
    Run(#[from] CompareError),
    /// A run could not be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A task set could not be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A model cannot run.
    #[error("the model cannot run: {0}")]
    Network(String),
}

impl From<NetworkError> for ReproduceError {
    fn from(error: NetworkError) -> ReproduceError {
        ReproduceError::Network(error.to_string())
    }
}

/// An experiment of the paper.
pub struct Experiment {
    /// Identifier, such as `E1`.
    pub id: &'static str,
    /// Name of its module in `src/experiments`.
    module: &'static str,
    /// Text of the protocol file.
    pub protocol: &'static str,
    /// Carries out the protocol and adds the results to the findings.
    pub run: fn(&Context<'_>, &mut Findings) -> Result<(), ReproduceError>,
}

/// Environment that an experiment runs in.
#[derive(Clone)]
pub struct Context<'a> {
    /// The experiment that is running.
    pub experiment: &'static Experiment,
    /// Extent of the run.
    pub mode: Mode,
    /// Schedulers by name; the learned scheduler uses the model chosen by the caller.
    pub roster: &'a Roster,
    /// Results of earlier runs.
    pub cache: &'a Cache,
    /// Device that trains models.
    pub trainer: &'a dyn Trainer,
    /// How the paper is read.
    pub reading: &'static Reading,
    /// Whether that is not the first reading of the protocol.
    is_further: bool,
    /// Notes the trainings instead of carrying them out.
    plan: Option<&'a Plan>,
    /// Results that do not depend on the reading.
    shared: Arc<SharedResults>,
}

impl<'a> Context<'a> {
    /// Environment of an experiment that is carried out.
    pub fn new(
        experiment: &'static Experiment,
        mode: Mode,
        roster: &'a Roster,
        cache: &'a Cache,
        trainer: &'a dyn Trainer,
    ) -> Context<'a> {
        let (reading, shared) = (&READINGS[0], Arc::default());
        Context { experiment, mode, roster, cache, trainer, reading, is_further: false, plan: None, shared }
    }
}

impl Context<'_> {
    /// Parses the protocol with the settings type of this experiment. A plan has the runs of the smallest mode, whatever
    /// the mode.
    pub fn protocol<S: DeserializeOwned>(&self) -> Result<(Protocol, S), ReproduceError> {
        let Experiment { id, protocol, .. } = self.experiment;
        let mut protocol = Protocol::parse(id, protocol)?;
        if self.plan.is_some() {
            protocol.shorten();
        }
        self.reading.apply(&mut protocol);
        let settings = protocol.settings(id, self.mode)?;
        Ok((protocol, settings))
    }

    /// Whether trainings are noted instead of carried out. What the models are worth need not be known then, and an
    /// experiment may end when it has asked for all of them.
    pub fn is_planning(&self) -> bool {
        self.plan.is_some()
    }

    /// Whether this is a further reading of the paper, in which only what judged figures rest on is trained.
    pub fn is_further(&self) -> bool {
        self.is_further
    }

    /// Whether the experiment simulates runs, as all do that need trained models.
    fn has_runs(&self) -> Result<bool, ReproduceError> {
        Ok(Protocol::parse(self.experiment.id, self.experiment.protocol)?.has_runs())
    }

    /// Returns the model chosen by the caller.
    pub fn model(&self) -> Result<&Arc<Model>, ReproduceError> {
        self.roster.model.as_ref().ok_or_else(|| ReproduceError::Network("there is none".into()))
    }

    /// Adds a note about slow wall-clock figures if this is a debug build.
    pub fn note_clock(&self, findings: &mut Findings) {
        if cfg!(debug_assertions) {
            findings.notes.push(
                "wall-clock figures are of a development build, which is several times slower than a release".into(),
            );
        }
    }

    /// Returns an error that blames the protocol of this experiment.
    pub fn protocol_error(&self, why: impl std::fmt::Display) -> ReproduceError {
        ReproduceError::Protocol(self.experiment.id.into(), why.to_string())
    }
}

/// Identifier of the experiment with all rivals. It is long, and `all` does not stand for it.
pub const RIVALS: &str = "rivals";

/// Returns the identifiers of all experiments.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|experiment| experiment.id).collect()
}

/// Finds an experiment by its identifier, ignoring case.
pub fn find(name: &str) -> Result<&'static Experiment, ReproduceError> {
    let found = ALL.iter().find(|experiment| experiment.id.eq_ignore_ascii_case(name));
    found.ok_or_else(|| ReproduceError::Unknown(name.into()))
}

/// Returns the name of the cache file that holds the findings. It depends on what the protocol says of the mode, the
/// model's file, the options of the learned scheduler, the readings of the paper and the code; that of the rivals on
/// their models, too.
fn file_of(experiment: &Experiment, mode: Mode, roster: &Roster, cache: &Cache) -> Result<String, ReproduceError> {
    let model = roster.model.as_ref().map_or(Ok(String::new()), |model| model_key(model))?;
    let options = options_key(&roster.options);
    let papers = paper_model::fingerprint();
    let name = experiment.id.to_lowercase();
    let own = experiment_code(experiment.module);
    let protocol = Protocol::fingerprint(experiment.id, experiment.protocol, mode)?;
    let mut parts = vec![&*protocol, mode.name(), &model, &options, &papers, CODE, own];
    let rivals = if experiment.id == RIVALS { rivals::fingerprint(cache.models())? } else { String::new() };
    parts.extend((experiment.id == RIVALS).then_some(rivals.as_str()));
    Ok(format!("{name}-{}.json", key(&parts)))
}

/// Returns the findings of an earlier run; none if there was no such run, or if its cache file is damaged.
pub fn cached(experiment: &Experiment, mode: Mode, roster: &Roster, cache: &Cache) -> Option<Findings> {
    let bytes = cache.read(&file_of(experiment, mode, roster, cache).ok()?).ok()??;
    let findings: Findings = serde_json::from_slice(&bytes).ok()?;
    // What the file says of other modes may have changed since.
    Some(Findings { protocol: experiment.protocol.into(), ..findings })
}

/// Runs an experiment and stores its findings in the cache.
pub fn run(
    experiment: &'static Experiment,
    mode: Mode,
    roster: &Roster,
    cache: &Cache,
    trainer: &dyn Trainer,
) -> Result<Findings, ReproduceError> {
    let context = Context::new(experiment, mode, roster, cache, trainer);
    let begin = Instant::now();
    let mut findings = findings_of(&context)?;
    findings.seconds = begin.elapsed().as_secs_f64();
    let content = serde_json::to_vec(&findings)
        .map_err(|error| ReproduceError::Cache(experiment.id.into(), error.to_string()))?;
    cache.write(&file_of(experiment, mode, roster, cache)?, &content)?;
    Ok(findings)
}

/// Runs an experiment in every reading of its protocol.
fn findings_of(context: &Context<'_>) -> Result<Findings, ReproduceError> {
    register();
    let Experiment { id, protocol: text, run, .. } = context.experiment;
    let protocol = Protocol::parse(id, text)?;
    let blank = Findings {
        title: protocol.title.clone(),
        claim: protocol.claim.clone(),
        reading: protocol.reading.clone(),
        mode: context.mode.name().into(),
        paper: protocol.paper.clone(),
        tolerance: protocol.tolerance.clone(),
        protocol: (*text).into(),
        ..Findings::blank(id)
    };
    let mut all = Vec::new();
    for reading in protocol.readings(context.mode).map_err(|why| context.protocol_error(why))? {
        let mut findings = blank.clone();
        run(&Context { reading, is_further: !all.is_empty(), ..context.clone() }, &mut findings)?;
        all.push((reading, findings));
    }
    reading::together(all).ok_or_else(|| context.protocol_error("it has no reading"))
}

/// Returns the title of an experiment.
pub fn title(experiment: &Experiment) -> Result<String, ReproduceError> {
    Ok(Protocol::parse(experiment.id, experiment.protocol)?.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet::stages::Tokenizer;
    use temponet::{Options, Tuning};

    #[test]
    fn findings_of_a_mode_do_not_depend_on_the_settings_of_another() {
        let text = ALL[0].protocol;
        let other = text.replace("[full]\nseeds = 5", "# All of it.\n[full]\nseeds = 6");
        let of = |text, mode| Protocol::fingerprint("E1", text, mode).unwrap();
        assert_ne!(text, other);
        assert_eq!(of(text, Mode::Quick), of(&other, Mode::Quick));
        assert_ne!(of(text, Mode::Full), of(&other, Mode::Full));
    }

    #[test]
    fn findings_of_other_metadata_or_options_are_kept_apart() {
        let of = |model: &Model, options: Options| {
            let roster = Roster { options, ..Roster::with(model.clone()) };
            let cache = Cache::open(&std::env::temp_dir()).unwrap();
            file_of(&ALL[0], Mode::Quick, &roster, &cache).unwrap()
        };
        let model = Model::random(Tokenizer::paper(), 1);
        let mut other = model.clone();
        other.tokenizer.long_slack_reserve = 0.5;
        let (plain, untuned) = (Options::default(), Options { tuning: Tuning::Off, ..Options::default() });
        assert_eq!(of(&model, plain), of(&model, plain));
        assert_ne!(of(&model, plain), of(&other, plain));
        assert_ne!(of(&model, plain), of(&model, untuned));
    }
}
