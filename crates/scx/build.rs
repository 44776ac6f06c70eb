//! Compiles the kernel's part with clang, if the feature `scx` asks for it.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/temponet.bpf.c";
/// Names that clang may have; the variable CLANG overrides them.
const COMPILERS: [&str; 6] = ["clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_SCX").is_none() || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let object = PathBuf::from(env::var("OUT_DIR")?).join("temponet.bpf.o");
    let asked = env::var("CLANG").ok();
    let compilers = asked.iter().map(String::as_str).chain(COMPILERS.into_iter().filter(|_| asked.is_none()));
    let mut tried = Vec::new();
    for compiler in compilers {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c", SOURCE, "-o"]).arg(&object);
        match command.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => tried.push(format!("{compiler}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => tried.push(format!("{compiler}: {error}")),
        }
    }
    Err(format!("no clang could compile {SOURCE} (16 or later is wanted; CLANG names one):\n{}", tried.join("\n"))
        .into())
}
