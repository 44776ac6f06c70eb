//! Contract of the experiments: every protocol is valid, every experiment completes, and nothing is computed twice.

use temponet::stages::{Continuous, Tokenizer};
use temponet::{Model, Options, Tuning};
use temponet_lab::arena::scenario;
use temponet_lab::roster::Roster;
use temponet_paper::{
    ALL, Cache, Context, DeviceTrainer, Findings, Mode, Protocol, Size, TestBed, Trained, Training, Variant, cached,
    find, names, run,
};
use temponet_train::{DqnSettings, NetworkShape, Recipe, ReplaySettings, RolloutSettings, Stage, TrainingDevice};

use crate::folder::Folder;

fn roster() -> Roster {
    let options = Options { tuning: Tuning::Off, ..Options::default() };
    Roster { options, ..Roster::with(Model::built_in().unwrap()) }
}

#[test]
fn every_protocol_is_read_and_every_file_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
    let files = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files, ALL.len());
    for experiment in ALL {
        let protocol = Protocol::parse(experiment.id, experiment.protocol).unwrap();
        assert!(!protocol.title.is_empty() && !protocol.claim.is_empty() && !protocol.reading.is_empty());
        assert!(std::ptr::eq(find(&experiment.id.to_lowercase()).unwrap(), experiment));
    }
    let unknown = find("E99").err().unwrap().to_string();
    assert!(names().iter().all(|name| unknown.contains(name)), "{unknown}");
}

#[test]
fn a_key_that_means_nothing_is_refused() {
    let text = ALL[0].protocol.replace("\ntitle", "\nverison = 2\ntitle");
    let error = Protocol::parse("E1", &text).unwrap_err().to_string();
    assert!(error.contains("E1") && error.contains("unknown field `verison`"), "{error}");
}

#[test]
fn seeds_are_reserved_and_of_one_experiment_only() {
    /// Greatest number of sets of one workload.
    const SPAN: u64 = 1_000;
    let mut taken: Vec<(u64, u64)> =
        scenario::all().unwrap().iter().map(|of| (*of.seeds.start(), *of.seeds.end())).collect();
    for experiment in ALL {
        let protocol = Protocol::parse(experiment.id, experiment.protocol).unwrap();
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
    let cache = Cache::open(&folder.0).unwrap();
    for experiment in ALL {
        let findings = run(experiment, Mode::Smallest, &roster, &cache, &DeviceTrainer::cpu())
            .unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
        let id = experiment.id;
        assert!(!findings.lines.is_empty(), "{id} has no figures");
        assert!(findings.sentence.len() > 40 && findings.sentence.ends_with('.'), "{id}: {}", findings.sentence);
        for name in findings.paper.keys() {
            assert!(findings.line(name).is_some(), "{id}: the paper has {name}, we do not: {:?}", findings.notes);
        }
        assert!(findings.pictures.iter().all(|picture| !picture.svg.contains("NaN")), "{id}");
        assert_eq!(
            cached(experiment, Mode::Smallest, &roster, &cache).unwrap().lines,
            findings.lines,
            "{id} is not kept"
        );
        assert!(cached(experiment, Mode::Quick, &roster, &cache).is_none());
    }
}

#[test]
fn a_rival_takes_part_with_a_model_from_the_users_folder_and_is_a_note_without() {
    let (folder, models, roster) = (Folder::new("rivals"), Folder::new("models"), roster());
    let rivals = find("rivals").unwrap();
    let run = |cache: &Cache| run(rivals, Mode::Smallest, &roster, cache, &DeviceTrainer::cpu()).unwrap();
    let without = run(&Cache::open(&folder.0).unwrap());
    // Files of the program would take part in any case.
    if without.line("e2_ff-dqn").is_none() {
        assert!(without.notes.iter().any(|note| note.contains("ff-dqn is not trained: run temponet train --recipe")));
    }
    std::fs::create_dir_all(&models.0).unwrap();
    let tokenizer = Tokenizer { slots: Some(5), ..Tokenizer::continuous(Continuous::Raw) };
    let bytes = Model::random(tokenizer, 1).to_bytes().unwrap();
    std::fs::write(models.0.join("ff-dqn.safetensors"), bytes).unwrap();
    std::fs::write(models.0.join("ff-dqn.json"), "{\"seed\": 4, \"seconds\": 61.0}").unwrap();
    let cache = Cache::open(&folder.0).unwrap().with_models(Some(models.0.clone()));
    assert!(cached(rivals, Mode::Smallest, &roster, &cache).is_none(), "findings of other models");
    let with = run(&cache);
    assert!(with.line("e2_ff-dqn").is_some_and(|line| line.paper == Some(0.74)));
    let cells: Vec<&String> = with.tables.iter().flat_map(|table| table.rows.iter().flatten()).collect();
    assert!(cells.iter().any(|cell| *cell == "seed 4, 61 s"));
    // Everyone else is known from the first run.
    let figure = |findings: &Findings| findings.line("e2_pso").map(|line| line.ours);
    assert_eq!(figure(&with), figure(&without));
    std::fs::write(models.0.join("ff-dqn.safetensors"), "nothing").unwrap();
    let error = temponet_paper::run(rivals, Mode::Smallest, &roster, &cache, &DeviceTrainer::cpu()).unwrap_err();
    assert!(error.to_string().contains("ff-dqn"), "{error}");
}

/// Returns a recipe whose training takes no time.
fn tiny(seed: u64) -> Recipe {
    let method = DqnSettings {
        replay: ReplaySettings { steps: 200, learn_from: 50, ..ReplaySettings::default() },
        episodes: Some(3),
        ..DqnSettings::default()
    };
    let stage = Stage::new(2, method);
    let mut recipe = Recipe { seed, stage: vec![stage], ..Recipe::default() };
    recipe.network = NetworkShape { width: 8, layers: 1, heads: 2, feed_forward: 8, ..NetworkShape::default() };
    recipe.validation.runs = 2;
    recipe.workload.cores = vec![1, 2];
    recipe
}

#[test]
fn many_trainings_at_once_are_those_one_by_one() {
    let (folder, other, roster) = (Folder::new("many"), Folder::new("one"), roster());
    let (cache, other) = (Cache::open(&folder.0).unwrap(), Cache::open(&other.0).unwrap());
    let recipes: Vec<Recipe> = (1..6).map(tiny).collect();
    let training = |recipe| Training { name: "tiny", recipe, set: None, begin_with: None };
    let trainings: Vec<Training<'_>> = recipes.iter().map(training).collect();
    let trainer = DeviceTrainer::cpu();
    let context = |cache| Context::new(&ALL[0], Mode::Smallest, &roster, cache, &trainer);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let together = pool.install(|| context(&cache).trained_all(&trainings)).unwrap();
    for (training, trained) in trainings.iter().zip(&together) {
        let alone = context(&other).trained(training).unwrap();
        assert_eq!(alone.history.phases, trained.history.phases);
        assert_eq!(alone.model.weights.checksum(), trained.model.weights.checksum());
    }
    let again = context(&cache).trained_all(&trainings).unwrap();
    let histories = |all: &[Trained]| all.iter().map(|trained| trained.history.clone()).collect::<Vec<_>>();
    assert_eq!(histories(&again), histories(&together), "even the seconds are those of the first time");
}

#[test]
fn a_variant_is_trained_with_every_seed_and_stands_beside_edf_and_the_optimum() {
    let (folder, roster) = (Folder::new("variants"), roster());
    let cache = Cache::open(&folder.0).unwrap();
    let trainer = DeviceTrainer::cpu();
    let context = Context::new(&ALL[0], Mode::Smallest, &roster, &cache, &trainer);
    let (protocol, _) = context.protocol::<toml::Table>().unwrap();
    let size = Size { sets: 3, jobs: 60, oracle_seconds: 0.1 };
    let classical = ["edf".into(), "rm".into()];
    let bed = TestBed { classical: &classical, ..protocol.test_bed("test", "abort", size).unwrap() };
    let variants = [Variant::new("one", tiny(1)), Variant::new("two", tiny(9))];
    let held = context.ablation(&bed, &variants, 2).unwrap();
    assert_eq!(held.results.iter().map(|result| result.runs.len()).collect::<Vec<_>>(), [2, 2]);
    let seeds: Vec<&str> = held.results[0].trained.iter().filter_map(|trained| trained.model.provenance()).collect();
    assert!(seeds[0].ends_with("seed 1") && seeds[1].ends_with("seed 2"), "{seeds:?}");
    let line = held.share_line("one", &held.results[0]);
    let columns: Vec<&str> = line.references.iter().map(|reference| reference.column.as_str()).collect();
    assert_eq!((columns, line.ours.count), (vec!["edf", "best classical", "optimum"], Some(2)));
    let wrong = Variant::new("wrong", Recipe { stage: vec![], ..tiny(1) });
    let error = context.train_variants(&[wrong], 1).unwrap_err().to_string();
    assert!(error.contains("E1") && error.contains("wrong: 0 stages"), "{error}");
}

#[test]
fn a_model_is_trained_once() {
    let (folder, roster) = (Folder::new("trained"), roster());
    let cache = Cache::open(&folder.0).unwrap();
    let trainer = DeviceTrainer::cpu();
    let context = Context::new(&ALL[0], Mode::Smallest, &roster, &cache, &trainer);
    let method = RolloutSettings { states: 40, updates: 3, ..RolloutSettings::default() };
    let stage = Stage::new(2, method);
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
    let trainer = DeviceTrainer::new("elsewhere", TrainingDevice::cpu());
    let elsewhere = Context::new(&ALL[0], Mode::Smallest, &roster, &cache, &trainer);
    let other = elsewhere.trained(&training).unwrap();
    assert_eq!(other.history, first.history, "a model of another kind of device is taken rather than trained again");
}
