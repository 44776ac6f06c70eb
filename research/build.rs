//! Lists the trained rivals in `models/baselines` for the program to embed, so that a model joins by its file alone,
//! and a missing one is a row without figures and no failure to build.

use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = root.join("models").join("baselines");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed=build.rs");
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
