//! Lists the trained rivals in `models/baselines` for the program to embed, so that a model joins by its file alone,
//! and a missing one is a row without figures and no failure to build.
//!
//! Hashes the code that decides results, so that nothing computed by other code is taken from a cache:
//! `TEMPONET_TRAINING_CODE` for trained models, `TEMPONET_CODE` for what all findings depend on, and a table of hashes
//! for the files of the experiments, so that a change to one experiment leaves the findings of the others. Comments,
//! blank lines and tests at the end of a file do not count.

use std::path::{Path, PathBuf};

/// Folders whose code decides the weights of a trained model.
const TRAINING: [&str; 9] = [
    "../crates/task/src",
    "../crates/sim/src",
    "../crates/sched/src",
    "../crates/infer/src",
    "../crates/temponet/src",
    "../crates/grad/src",
    "../crates/train/src",
    "src/methods",
    "src/networks",
];

/// Folders whose code decides findings besides.
const FINDINGS: [&str; 4] = ["../crates/lab/src", "../crates/oracle/src", "../bench/src", "src"];

/// Folder with a file for each experiment. A file counts for its own experiment, and for those that use it.
const EXPERIMENTS: &str = "src/experiments";

/// Files that arrange calls or write pages, and decide no finding.
const OUTSIDE: [&str; 7] = [
    "src/main.rs",
    "src/reproduce.rs",
    "src/check.rs",
    "src/page.rs",
    "src/plan.rs",
    "src/hours.rs",
    "src/experiments/mod.rs",
];

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = root.join("models").join("baselines");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed=build.rs");
    let training = code(&files(&root, &TRAINING));
    println!("cargo:rustc-env=TEMPONET_TRAINING_CODE={training:016x}");
    let experiments = root.join(EXPERIMENTS);
    let mut shared = files(&root, &FINDINGS);
    shared.retain(|path| !path.starts_with(&experiments) && OUTSIDE.iter().all(|name| *path != root.join(name)));
    println!("cargo:rustc-env=TEMPONET_CODE={:016x}", training ^ code(&shared).rotate_left(1));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    write(&out.join("experiments.rs"), &experiment_codes(&experiments));
    let mut models: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    models.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    models.sort();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut text = String::from("&[\n");
    for model in &models {
        let report = model.with_extension("json");
        let report = match report.is_file() {
            true => format!("Some(include_str!({report:?}))"),
            false => "None".into(),
        };
        text += &format!(
            "    Embedded {{ name: {:?}, model: include_bytes!({model:?}), report: {report} }},\n",
            name(model)
        );
    }
    text += "]\n";
    write(&out.join("baselines.rs"), &text);
}

/// Writes a generated file. A build without it could not compile, and the reason must be told.
fn write(path: &Path, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        panic!("{}: {error}", path.display());
    }
}

/// Table of the experiments' modules with the hash of what each of them consists of.
fn experiment_codes(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut modules: Vec<String> =
        entries.filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned())).collect();
    modules.sort();
    modules.dedup();
    let mut text = String::from("&[\n");
    for name in &modules {
        text += &format!("    ({name:?}, \"{:016x}\"),\n", code(&with_used(folder, name)));
    }
    text + "]\n"
}

/// The files of an experiment, NAME.rs or a folder NAME, and of the modules beside it that it uses, directly or not.
fn with_used(folder: &Path, name: &str) -> Vec<PathBuf> {
    let (mut modules, mut all, mut place) = (vec![name.to_string()], Vec::new(), 0);
    while let Some(name) = modules.get(place).cloned() {
        let file = folder.join(format!("{name}.rs"));
        let mut own = Vec::from_iter(file.is_file().then_some(file));
        collect(&folder.join(&name), &mut own);
        own.sort();
        for text in own.iter().map(|file| std::fs::read_to_string(file).unwrap_or_default()) {
            for used in text.split("super::").skip(1) {
                let used: String = used.chars().take_while(|of| of.is_alphanumeric() || *of == '_').collect();
                let is_beside =
                    folder.join(format!("{used}.rs")).is_file() || folder.join(&used).join("mod.rs").is_file();
                if used != "mod" && is_beside && !modules.contains(&used) {
                    modules.push(used);
                }
            }
        }
        all.append(&mut own);
        place += 1;
    }
    all
}

/// The files in some folders, folder by folder in the order of their names.
fn files(root: &Path, folders: &[&str]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in folders {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files);
        files.sort();
        all.append(&mut files);
    }
    all
}

/// Hash of the code in files: FNV-1a over their lines.
fn code(files: &[PathBuf]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
        let counted = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
        for byte in counted.flat_map(|line| line.bytes().chain([b'\n'])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

/// Adds the Rust files of a folder and of those in it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
