//! Contract of the documentation: everything that it refers to exists, and everything that it must cover is covered.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use temponet_infer::Body;
use temponet_train::{
    CloningSettings, DqnSettings, OfflineSettings, PpoSettings, Recipe, Reward, RolloutSettings, Stage, StageMethod,
    StaySettings,
};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(document: &str) -> String {
    std::fs::read_to_string(root().join(document)).unwrap()
}

/// Every document: the README, CONTRIBUTING, and all pages below `docs` but the contents of the book. Pages that a command wrote may name files of
/// their time.
fn documents() -> Vec<String> {
    let pages = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        let names = entries.map(|name| name.into_string().unwrap());
        names
            .filter(|name| {
                name.ends_with(".md")
                    && name != "SUMMARY.md"
                    && !name.starts_with("reproduction-")
                    && name != "reproduction.md"
            })
            .map(|name| format!("{folder}/{name}"))
            .collect()
    };
    let named = ["README.md", "CONTRIBUTING.md", "docs/reproduction.md"].map(String::from);
    let folders = ["docs", "docs/guides", "docs/results"];
    named.into_iter().chain(folders.into_iter().flat_map(pages)).collect()
}

#[test]
fn every_file_of_tests_is_run() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let packages = crates.chain(["research", "bench"].map(|name| root().join(name)));
    for folder in packages.map(|package| package.join("tests")).filter(|tests| tests.join("suite.rs").exists()) {
        let manifest = std::fs::read_to_string(folder.join("../Cargo.toml")).unwrap();
        assert_modules_are_named(&folder, "suite.rs", &|stem| {
            manifest.contains(&format!("[[test]]\nname = \"{stem}\""))
        });
    }
}

/// Checks that `parent`, a file of this folder, has as modules all other files with code, and all folders with such
/// files. `is_program` says of which modules Cargo makes programs of their own.
fn assert_modules_are_named(folder: &Path, parent: &str, is_program: &dyn Fn(&str) -> bool) {
    let text = std::fs::read_to_string(folder.join(parent)).unwrap_or_default();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_code = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
        let has_code =
            path.is_dir() && std::fs::read_dir(&path).unwrap().any(|within| is_code(&within.unwrap().path()));
        if !(has_code || is_code(&path) && path.file_name().is_some_and(|name| name != parent)) {
            continue;
        }
        let is_named = text.contains(&format!("mod {stem};"));
        assert!(is_named || is_program(&stem), "{} does not name {stem}", folder.join(parent).display());
        if has_code {
            let of_folder = if path.join("mod.rs").exists() { "mod.rs".into() } else { format!("../{stem}.rs") };
            assert_modules_are_named(&path, &of_folder, &|_| false);
        }
    }
}

#[test]
fn paths_named_in_documents_exist() {
    let mut count = 0;
    for document in documents() {
        let text = read(&document);
        let quoted = text.split('`').skip(1).step_by(2);
        let starts = ["crates/", "docs/", "bench/", "recipes/", "research/", "fuzz/"];
        for path in quoted.filter(|word| starts.iter().any(|start| word.starts_with(start)) && !word.contains(' ')) {
            assert!(root().join(path).exists(), "{document} names {path}");
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
}

#[test]
fn every_crate_is_in_the_architecture() {
    let text = read("docs/ARCHITECTURE.md");
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(text.contains(&format!("| `crates/{name}` |")), "crates/{name}");
    }
}

/// Returns all files with code below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn every_crate_can_be_published() {
    let mut included = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path().canonicalize().unwrap();
        let name = folder.display();
        let manifest: toml::Table = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let package = manifest["package"].as_table().unwrap();
        for key in ["description", "license", "rust-version", "keywords", "categories", "documentation"] {
            assert!(package.contains_key(key), "{name}: {key}");
        }
        assert_eq!(package["readme"].as_str(), Some("README.md"), "{name}");
        assert!(folder.join("README.md").is_file(), "{name} has no README of its own");
        for source in sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&source).unwrap();
            let paths =
                ["include_str!(\"", "include_bytes!(\""].into_iter().flat_map(|start| text.split(start).skip(1));
            for path in paths.filter_map(|rest| rest.split('"').next()) {
                let file = source.with_file_name(path).canonicalize();
                assert!(file.is_ok_and(|file| file.starts_with(&folder)), "{}: {path}", source.display());
                included += 1;
            }
        }
    }
    assert!(included > 10, "{included}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    for document in documents() {
        let text = read(&document);
        let folder = root().join(&document);
        let folder = folder.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            assert!(link.starts_with("http") || folder.join(file).exists(), "{document} links to {link}");
        }
    }
}

#[test]
fn every_page_is_in_the_book_and_every_page_of_the_book_is_there() {
    let contents = read("docs/SUMMARY.md");
    let named: HashSet<&str> = contents.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    // Three pages lie at the root, beside the documents.
    let at_root = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    for page in &named {
        let folder = if at_root.contains(page) { "" } else { "docs/" };
        assert!(root().join(format!("{folder}{page}")).exists(), "docs/SUMMARY.md names {page}");
    }
    let pages = documents()
        .into_iter()
        .chain(["docs/results/reproduction.md", "docs/results/reproduction-full.md"].map(String::from));
    for page in pages {
        assert!(named.contains(page.strip_prefix("docs/").unwrap_or(&page)), "docs/SUMMARY.md lacks {page}");
    }
}

#[test]
fn sets_shown_in_the_guides_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut read_sets = 0;
    for document in ["docs/start.md", "docs/guides/robots.md", "docs/guides/servers.md"] {
        let text = read(document);
        for (kind, rest) in ["toml", "csv"].into_iter().flat_map(|kind| {
            text.split(&format!("```{kind}\n")).skip(1).map(move |rest| (kind, rest)).collect::<Vec<_>>()
        }) {
            let file = folder.path().join(format!("set.{kind}"));
            std::fs::write(&file, rest.split("```").next().unwrap()).unwrap();
            let options = ["compare", file.to_str().unwrap(), "--schedulers", "edf", "--horizon", "1s"];
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_temponet")).args(options).output().unwrap();
            assert!(output.status.success(), "{document}: {}", String::from_utf8_lossy(&output.stderr));
            read_sets += 1;
        }
    }
    assert!(read_sets >= 3, "{read_sets}");
}

#[test]
fn every_scheduler_is_in_the_changelog() {
    let changelog = read("CHANGELOG.md");
    let words: HashSet<&str> = changelog.split(|c: char| !(c.is_alphanumeric() || "-:".contains(c))).collect();
    for entry in temponet_sched::catalog::all() {
        assert!(words.contains(&*entry.name), "the changelog does not name {}", entry.name);
    }
}

#[test]
fn every_test_of_the_analysis_is_documented() {
    let text = read("docs/analysis.md");
    for test in temponet_analysis::TESTS {
        assert!(text.contains(test.name), "{}", test.name);
    }
}

/// Returns the keys of a table and of all nested tables.
fn keys(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::Table(table) => {
            table.iter().flat_map(|(key, value)| std::iter::once(key.clone()).chain(keys(value))).collect()
        }
        toml::Value::Array(list) => list.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_setting_of_a_recipe_is_documented() {
    let text = read("docs/training.md");
    let methods: [StageMethod; 6] = [
        CloningSettings { matching: Some(Default::default()), ..Default::default() }.into(),
        RolloutSettings::default().into(),
        DqnSettings::default().into(),
        PpoSettings::default().into(),
        OfflineSettings::default().into(),
        StaySettings::default().into(),
    ];
    assert_eq!(methods.each_ref().map(|method| method.name()), temponet_train::method_names()[..]);
    let stage = |method| Stage { phases: 1, method, rate: Some(1.0), workload: None, reward: Some(Reward::default()) };
    let mut recipe = Recipe { stage: methods.map(stage).into(), ..Recipe::default() };
    recipe.network.body = Body::transformer(Some(1), 1);
    recipe.episode.tick = Some(1.0);
    recipe.validation.patience = Some(1);
    let mut keys = keys(&toml::Value::try_from(&recipe).unwrap());
    // Keys of other bodies of a network.
    keys.extend(["slots", "atoms", "count", "low", "high", "graph", "memory"].map(String::from));
    assert!(keys.len() > 80, "{keys:?}");
    let quoted = text.split('`').skip(1).step_by(2);
    let words: HashSet<&str> =
        quoted.flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_'))).collect();
    for key in &keys {
        assert!(words.contains(key.as_str()), "docs/training.md does not say what {key} is");
    }
    let papers = ["dqn-paper", "dqn-paper-remaining", "dqn-paper-ticks", "dqn-paper-sparse"];
    let paths = papers.map(|name| format!("research/recipes/{name}.toml"));
    for path in ["recipes/quick.toml", "recipes/offline.toml"].map(String::from).into_iter().chain(paths) {
        assert!(text.contains(&format!("`{path}`")) && root().join(&path).exists(), "{path}");
    }
}

#[test]
fn the_readmes_test_command_is_the_one_ci_runs() {
    let command = "cargo test --workspace";
    assert!(read("README.md").contains(command) && read(".ci/run").contains(command));
}

#[test]
fn every_key_of_a_protocol_is_documented() {
    let text = read("docs/reproduction.md");
    for key in
        ["title", "claim", "reading", "paper", "tolerance", "schedulers", "workload.NAME", "smallest", "quick", "full"]
    {
        assert!(text.contains(&format!("`{key}`")), "{key}");
    }
}
