//! Contract of the experiments: every protocol is read, every experiment runs through, and nothing is computed twice.

use std::path::PathBuf;
use std::sync::Arc;

use temponet::Model;
use temponet_lab::arena::scenario;
use temponet_lab::reproduce::{ALL, Cache, Context, Mode, Protocol, Training, find, known, names, run};
use temponet_lab::roster::Roster;
use temponet_train::{Method, Recipe, RolloutSettings, Stage};

/// A fresh folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("temponet-reproduce-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn roster() -> Roster {
    Roster { model: Some(Arc::new(Model::built_in().unwrap())) }
}

#[test]
fn every_protocol_is_read_and_every_file_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
    let files = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files, ALL.len());
    for experiment in ALL {
        let protocol: Protocol<toml::Table> = Protocol::parse(experiment.id, experiment.protocol).unwrap();
        assert!(!protocol.title.is_empty() && !protocol.claim.is_empty() && !protocol.reading.is_empty());
        assert!(std::ptr::eq(find(&experiment.id.to_lowercase()).unwrap(), experiment));
    }
    let unknown = find("E99").err().unwrap().to_string();
    assert!(names().iter().all(|name| unknown.contains(name)), "{unknown}");
}

#[test]
fn a_key_that_means_nothing_is_refused() {
    let text = ALL[0].protocol.replace("version = 1", "version = 1\nverison = 2");
    let error = Protocol::<toml::Table>::parse("E1", &text).unwrap_err().to_string();
    assert!(error.contains("E1") && error.contains("unknown field `verison`"), "{error}");
}

#[test]
fn seeds_are_reserved_and_of_one_experiment_only() {
    /// At most so many sets of one workload.
    const SPAN: u64 = 1_000;
    let mut taken: Vec<(u64, u64)> =
        scenario::all().unwrap().iter().map(|of| (*of.seeds.start(), *of.seeds.end())).collect();
    for experiment in ALL {
        let protocol: Protocol<toml::Table> = Protocol::parse(experiment.id, experiment.protocol).unwrap();
        let mut seeds: Vec<u64> = protocol.workload.values().map(|workload| workload.first_seed).collect();
        seeds.sort_unstable();
        let Some((first, last)) = seeds.first().copied().zip(seeds.last().copied()) else { continue };
        assert!(temponet_sim::is_for_evaluation(first) && temponet_sim::is_for_evaluation(last + SPAN));
        assert!(taken.iter().all(|(from, to)| first > *to || last < *from), "{}", experiment.id);
        taken.push((first, last));
    }
}

#[test]
fn every_experiment_runs_through_and_says_something() {
    let (folder, roster) = (Folder::new("smallest"), roster());
    let cache = folder.cache();
    for experiment in ALL {
        let findings = run(experiment, Mode::Smallest, &roster, &cache)
            .unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
        let id = experiment.id;
        assert!(!findings.lines.is_empty(), "{id} has no figures");
        assert!(findings.sentence.len() > 40 && findings.sentence.ends_with('.'), "{id}: {}", findings.sentence);
        for name in findings.paper.keys() {
            assert!(findings.line(name).is_some(), "{id}: the paper has {name}, we do not: {:?}", findings.notes);
        }
        assert!(findings.pictures.iter().all(|picture| !picture.svg.contains("NaN")), "{id}");
        assert_eq!(
            known(experiment, Mode::Smallest, &roster, &cache).unwrap().lines,
            findings.lines,
            "{id} is not kept"
        );
        assert!(known(experiment, Mode::Quick, &roster, &cache).is_none());
    }
}

#[test]
fn a_model_is_trained_once() {
    let (folder, roster) = (Folder::new("trained"), roster());
    let cache = folder.cache();
    let context = Context { experiment: &ALL[0], mode: Mode::Smallest, roster: &roster, cache: &cache };
    let method = Method::Rollouts(RolloutSettings { states: 40, updates: 3, ..RolloutSettings::default() });
    let stage = Stage { phases: 2, method, rate: None, workload: None, reward: None };
    let mut recipe = Recipe { stage: vec![stage], ..Recipe::default() };
    recipe.network.width = 16;
    recipe.validation.runs = 2;
    let training = Training { name: "small", recipe: &recipe, set: None, begin_with: None };
    let first = context.trained(&training).unwrap();
    assert_eq!(first.history.phases.len(), 2);
    let again = context.trained(&training).unwrap();
    let checksum = |model: &Model| model.weights.checksum();
    assert_eq!(again.history, first.history, "the seconds are those of the first");
    assert_eq!(checksum(&again.model), checksum(&first.model));
    let other = context.trained(&Training { begin_with: Some(&first.model), ..training }).unwrap();
    assert_ne!(checksum(&other.model), checksum(&first.model));
}
