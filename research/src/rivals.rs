//! The rivals that the paper names: learned ones, each with a recipe and a model, and those that search.
//!
//! A model comes from the folder that the user names, from the program itself (`research/models/baselines`), or from
//! the cache; in a full run it is trained if it is nowhere. A rival without a model is listed with the command that
//! trains it.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use temponet::Model;
use temponet_formats::read_settings;
use temponet_infer::file_checksum;
use temponet_lab::stats::mean;
use temponet_train::{DqnSettings, OfflineSettings, PpoSettings, Recipe, ReplaySettings, StageMethod};

use super::ablation::{Variant, convergence};
use super::methods::{A2cSettings, HierarchicalSettings, PrioritySettings, RainbowSettings, SacSettings};
use super::plots::Curve;
use super::training::{Trained, Training};
use super::{Context, Mode, ReproduceError};

/// A learned rival.
pub struct Rival {
    /// Name in the results, and of the file of its model.
    pub name: &'static str,
    /// Path of the recipe within `recipes`.
    pub path: &'static str,
    /// Text of the recipe.
    recipe: &'static str,
    /// Source that it follows.
    pub source: &'static str,
}

macro_rules! rivals {
    ($($name:literal $path:literal $source:literal),* $(,)?) => {
        &[$(Rival {
            name: $name,
            path: $path,
            recipe: include_str!(concat!("../recipes/", $path)),
            source: $source,
        }),*]
    };
}

/// All learned rivals, a line each: name, recipe, source. `docs/baselines.md` says more.
#[rustfmt::skip]
pub const LEARNED: &[Rival] = rivals![
    "ff-dqn" "ff-dqn.toml" "the paper's baseline; DQN: Mnih et al. 2015",
    "rainbow" "rainbow.toml" "Hessel et al. 2018",
    "ppo" "ppo.toml" "Schulman et al. 2017",
    "ppo-feed-forward" "ppo-feed-forward.toml" "Schulman et al. 2017",
    "a2c" "a2c.toml" "A3C: Mnih et al. 2016",
    "a2c-feed-forward" "a2c-feed-forward.toml" "A3C: Mnih et al. 2016",
    "lstm-ppo" "lstm-ppo.toml" "Hochreiter and Schmidhuber 1997; Hausknecht and Stone 2015",
    "td3" "td3.toml" "Fujimoto et al. 2018",
    "sac-priorities" "sac-priorities.toml" "Haarnoja et al. 2018",
    "sac" "sac.toml" "Haarnoja et al. 2018; Christodoulou 2019",
    "gnn-dqn" "gnn-dqn.toml" "Gilmer et al. 2017; Hu et al. 2020",
    "gnn-ppo" "gnn-ppo.toml" "Gilmer et al. 2017; Hu et al. 2020",
    "transformer-numbers" "transformer-numbers.toml" "the paper's own ablation",
    "hierarchical" "hierarchical.toml" "h-DQN: Kulkarni et al. 2016",
    "cql" "cql.toml" "Kumar et al. 2020",
    "iql" "iql.toml" "Kostrikov et al. 2021",
];

/// Rivals that search: name and source. Their methods are in [`crate::search`].
pub const SEARCHING: [(&str, &str); 7] = [
    ("random-search", "yardstick"),
    ("pso", "Kennedy and Eberhart 1995; Liu 2021"),
    ("cga", "Holland 1975"),
    ("hqiga", "Konar et al. 2017"),
    ("mo-qiga", "Konar et al. 2018"),
    ("mhqisso", "no source; salp swarm: Mirjalili et al. 2017"),
    ("enf-s", "Abdi and Salimi-Badr 2023"),
];

/// Returns the learned rival of a name.
pub fn named(name: &str) -> Option<&'static Rival> {
    LEARNED.iter().find(|rival| rival.name == name)
}

/// A model that is part of the program, and the report of its training.
struct Embedded {
    name: &'static str,
    model: &'static [u8],
    report: Option<&'static str>,
}

/// Models in `research/models/baselines` when the program was built.
static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/baselines.rs"));

/// Content of a model's file, and of the report of its training if there is one.
type Files = (Vec<u8>, Option<String>);

/// A rival's model and its training.
pub struct Ready {
    /// Models of its trainings.
    pub models: Vec<Arc<Model>>,
    /// Seeds of the trainings, if known.
    pub seeds: Option<String>,
    /// Mean wall-clock duration of a training in seconds, if known.
    pub seconds: Option<f64>,
    /// Learning rate that was chosen, if one was.
    pub rate: Option<f64>,
    /// Validation score over the phases, where it was trained here.
    pub curve: Curve,
}

/// Number of trainings of a rival in the full mode, of phases in each, and of decisions in a phase.
const SEEDS: u64 = 5;
const PHASES: u64 = 10;
const DECISIONS: u64 = 16_000;
/// Decisions from one update to the next, and transitions in an update.
const UPDATE_EVERY: u64 = 4;
const BATCH: usize = 64;
/// Width of the networks and of their feed-forward layers.
const WIDTH: usize = 128;
const FEED_FORWARD: usize = 512;
/// Factors on the recipe's learning rate that are tried, phases in each trial, and what is added to the seed there, so
/// that no trial decides with the sets of a training.
const RATES: [f64; 3] = [0.3, 1.0, 3.0];
const SWEEP_PHASES: u64 = 3;
const SWEEP_SEED: u64 = 100;

/// Returns a recipe with the budget and the width that all have in the full mode.
fn alike(mut recipe: Recipe, phases: u64) -> Recipe {
    if recipe.network.width < WIDTH {
        // A step of Adam moves the sums of a layer by as much as it is wide.
        recipe.optimizer.rate *= recipe.network.width as f64 / WIDTH as f64;
    }
    (recipe.network.width, recipe.network.feed_forward) = (WIDTH, FEED_FORWARD);
    for stage in &mut recipe.stage {
        stage.phases = phases;
        let method = &mut stage.method;
        if let Some(replay) = replay_of(method) {
            (replay.steps, replay.update_every, replay.batch) = (DECISIONS, UPDATE_EVERY, BATCH);
        }
        if let Some(ppo) = method.settings_mut::<PpoSettings>() {
            (ppo.rounds, ppo.batch) = (DECISIONS.div_ceil((ppo.environments * ppo.length) as u64), BATCH);
        }
        if let Some(a2c) = method.settings_mut::<A2cSettings>() {
            a2c.updates = DECISIONS.div_ceil((a2c.environments * a2c.length) as u64);
        }
        if let Some(offline) = method.settings_mut::<OfflineSettings>() {
            (offline.transitions, offline.updates) = ((phases * DECISIONS) as usize, DECISIONS / UPDATE_EVERY);
            offline.dqn.replay.batch = BATCH;
        }
    }
    recipe
}

/// Returns the settings of acting and replay of a method, if it has a replay buffer.
pub(crate) fn replay_of(method: &mut StageMethod) -> Option<&mut ReplaySettings> {
    macro_rules! first_of {
        ($($settings:ty: $($field:ident).+),* $(,)?) => {
            $(if method.settings::<$settings>().is_some() {
                return method.settings_mut::<$settings>().map(|settings| &mut settings.$($field).+);
            })*
        };
    }
    first_of!(
        DqnSettings: replay,
        RainbowSettings: dqn.replay,
        SacSettings: replay,
        PrioritySettings: replay,
        HierarchicalSettings: replay,
    );
    None
}

/// Report that `temponet train --json` prints, as far as it is read.
#[derive(Deserialize)]
struct Report {
    seed: Option<u64>,
    seconds: Option<f64>,
}

/// Returns a recipe with its learning rate times a factor.
pub(crate) fn with_rate(recipe: &Recipe, factor: f64) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.optimizer.rate *= factor;
    recipe
}

impl Context<'_> {
    /// Returns the factor on the rate of a short training whose validation is best.
    pub(crate) fn best_rate(&self, name: &str, short: &Recipe) -> Result<f64, ReproduceError> {
        let variants = RATES.map(|factor| {
            let recipe = Recipe { seed: short.seed + SWEEP_SEED, ..with_rate(short, factor) };
            Variant::new(format!("{name}, rate times {factor}"), recipe)
        });
        let swept = self.train_variants(&variants, 1)?;
        self.chooses(&swept, name);
        let score = |trained: &[Trained]| {
            let phases = trained.iter().flat_map(|trained| &trained.history.phases);
            phases.map(|phase| phase.score).fold(0.0, f64::max)
        };
        let best = RATES.into_iter().zip(&swept).max_by(|a, b| score(a.1).total_cmp(&score(b.1)));
        Ok(best.map_or(1.0, |(factor, _)| factor))
    }
}

impl Rival {
    /// Returns the model of the rival; `None` if there is none, and this is no full run.
    pub fn ready(&self, context: &Context<'_>) -> Result<Option<Ready>, ReproduceError> {
        if context.mode == Mode::Full {
            return self.trained_alike(context).map(Some);
        }
        if let Some((bytes, report)) = self.files(context.cache.models())? {
            return Ok(Some(self.read(&bytes, report.as_deref())?));
        }
        let recipe = self.recipe()?;
        let training = Training { name: self.name, recipe: &recipe, set: None, begin_with: None };
        let trained = context.already_trained(&training)?;
        Ok(trained.map(|Trained { model, history }| Ready {
            models: vec![Arc::new(model)],
            seeds: Some(format!("seed {}", recipe.seed)),
            seconds: Some(history.seconds),
            rate: None,
            curve: Curve::new(),
        }))
    }

    /// Trains the rival as all are trained in the full mode: the same decisions, updates and width, five seeds, and the
    /// best of three learning rates by a shorter training.
    fn trained_alike(&self, context: &Context<'_>) -> Result<Ready, ReproduceError> {
        let recipe = alike(self.recipe()?, PHASES);
        let factor = context.best_rate(self.name, &alike(self.recipe()?, SWEEP_PHASES))?;
        let recipe = with_rate(&recipe, factor);
        let trained = context.train_variants(&[Variant::new(self.name, recipe.clone())], SEEDS)?.remove(0);
        let seconds: Vec<f64> = trained.iter().map(|trained| trained.history.seconds).collect();
        Ok(Ready {
            seeds: Some(format!("seeds {} to {}", recipe.seed, recipe.seed + SEEDS - 1)),
            seconds: Some(mean(&seconds)),
            rate: Some(recipe.optimizer.rate),
            curve: convergence(&trained),
            models: trained.into_iter().map(|trained| Arc::new(trained.model)).collect(),
        })
    }

    /// Returns the command that trains the rival.
    pub fn command(&self) -> String {
        format!("temponet-paper train --recipe research/recipes/{} -o {}.safetensors", self.path, self.name)
    }

    /// Returns the file of the model and of its report: from the user's folder, or else from the program.
    fn files(&self, folder: Option<&Path>) -> Result<Option<Files>, ReproduceError> {
        if let Some(folder) = folder {
            let path = folder.join(self.name).with_extension("safetensors");
            match std::fs::read(&path) {
                Ok(bytes) => return Ok(Some((bytes, std::fs::read_to_string(path.with_extension("json")).ok()))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(ReproduceError::Cache(path.display().to_string(), error.to_string())),
            }
        }
        let embedded = EMBEDDED.iter().find(|embedded| embedded.name == self.name);
        Ok(embedded.map(|embedded| (embedded.model.to_vec(), embedded.report.map(String::from))))
    }

    fn read(&self, bytes: &[u8], report: Option<&str>) -> Result<Ready, ReproduceError> {
        let model = Model::from_bytes(bytes);
        let model = model.map_err(|error| ReproduceError::Network(format!("{}: {error}", self.name)))?;
        // A report that cannot be read only leaves its figures out.
        let report = report.and_then(|text| serde_json::from_str::<Report>(text).ok());
        let noted = || model.provenance()?.rsplit_once("seed ")?.1.parse().ok();
        let seed = report.as_ref().and_then(|report| report.seed).or_else(noted);
        let seeds = seed.map(|seed| format!("seed {seed}"));
        let seconds = report.and_then(|report| report.seconds);
        Ok(Ready { seeds, seconds, rate: None, curve: Curve::new(), models: vec![Arc::new(model)] })
    }

    fn recipe(&self) -> Result<Recipe, ReproduceError> {
        let wrong =
            |why: String| ReproduceError::Train(self.name.into(), format!("research/recipes/{}: {why}", self.path));
        crate::register();
        let recipe: Recipe = read_settings(self.recipe).map_err(|error| wrong(error.in_text(self.recipe)))?;
        recipe.problem().map_or(Ok(recipe), |problem| Err(wrong(problem.to_string())))
    }
}

/// Text that changes with the models of the rivals, as far as they are files.
pub(crate) fn fingerprint(folder: Option<&Path>) -> Result<String, ReproduceError> {
    let mut all = String::new();
    for rival in LEARNED {
        let sum = rival.files(folder)?.and_then(|(bytes, _)| file_checksum(&bytes));
        all += &format!("{} {} ", rival.name, sum.unwrap_or_default());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_full_mode_all_have_the_same_decisions_updates_and_width() {
        crate::register();
        for rival in LEARNED {
            let recipe = alike(rival.recipe().unwrap(), PHASES);
            assert_eq!((recipe.network.width, recipe.network.feed_forward), (WIDTH, FEED_FORWARD), "{}", rival.name);
            for stage in &recipe.stage {
                let mut method = stage.method.clone();
                let decisions = if let Some(replay) = replay_of(&mut method) {
                    assert_eq!((replay.updates(), replay.batch), (4_000, 64), "{}", rival.name);
                    replay.steps
                } else if let Some(ppo) = method.settings::<PpoSettings>() {
                    ppo.rounds * (ppo.environments * ppo.length) as u64
                } else if let Some(a2c) = method.settings::<A2cSettings>() {
                    a2c.updates * (a2c.environments * a2c.length) as u64
                } else {
                    let offline = method.settings::<OfflineSettings>().unwrap_or_else(|| panic!("{}", rival.name));
                    assert_eq!(offline.updates, 4_000, "{}", rival.name);
                    offline.transitions as u64 / PHASES
                };
                assert_eq!(stage.phases, PHASES);
                assert!((DECISIONS..DECISIONS + 1_024).contains(&decisions), "{}: {decisions}", rival.name);
            }
            assert!(recipe.problem().is_none(), "{}: {:?}", rival.name, recipe.problem());
        }
    }

    #[test]
    fn every_recipe_is_read_and_every_name_is_of_one() {
        crate::register();
        for rival in LEARNED {
            rival.recipe().unwrap_or_else(|error| panic!("{error}"));
        }
        let names: Vec<&str> = LEARNED.iter().map(|rival| rival.name).collect();
        assert!(names.iter().enumerate().all(|(at, name)| !names[..at].contains(name)));
        for embedded in EMBEDDED {
            assert!(names.contains(&embedded.name), "{} is no rival's model", embedded.name);
            Model::from_bytes(embedded.model).unwrap();
        }
        assert!(SEARCHING.iter().map(|(name, _)| *name).eq(crate::search::ALL.iter().map(|method| method.name)));
    }
}
