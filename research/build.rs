//! Lists the trained rivals in `models/baselines` for the program to embed, so that a model joins by its file alone,
//! and a missing one is a row without figures and no failure to build.
//!
//! Hashes the code that decides results, so that nothing computed by other code is taken from a cache:
//! `TEMPONET_TRAINING_CODE` for trained models, `TEMPONET_CODE` for findings. Comments, blank lines and tests at the end
//! of a file do not count.

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

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = root.join("models").join("baselines");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed=build.rs");
    let training = code(&root, &TRAINING);
    println!("cargo:rustc-env=TEMPONET_TRAINING_CODE={training:016x}");
    println!("cargo:rustc-env=TEMPONET_CODE={:016x}", training ^ code(&root, &FINDINGS).rotate_left(1));
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
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("baselines.rs");
    // A build without this file could not compile, and the reason must be told.
    if let Err(error) = std::fs::write(&out, text) {
        panic!("{}: {error}", out.display());
    }
}

/// Hash of the code in some folders: FNV-1a over the lines of their files in the order of their names.
fn code(root: &Path, folders: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for folder in folders {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files);
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let lines = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
            let counted = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
            for byte in counted.flat_map(|line| line.bytes().chain([b'\n'])) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
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
