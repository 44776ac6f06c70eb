//! Contract of commands of other programs: they run beside `temponet` or from the path, with all arguments and the exit
//! code, and where the other program is not there, one line says how to build it.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::folder::Folder;

/// Writes a program that prints who it is and its arguments, and ends with exit code 7.
pub fn fake(path: &Path, who: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\necho {who} \"$@\"\nexit 7\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A copy of `temponet` in a folder of its own, and another folder that is on the path.
pub fn installed(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir_all(folder.0.join("bin")).unwrap();
    std::fs::create_dir_all(folder.0.join("path")).unwrap();
    let program = env!("CARGO_BIN_EXE_temponet");
    std::fs::hard_link(program, folder.0.join("bin/temponet"))
        .or_else(|_| std::fs::copy(program, folder.0.join("bin/temponet")).map(drop))
        .unwrap();
    folder
}

pub fn call(folder: &Folder, args: &[&str]) -> Output {
    let mut command = Command::new(folder.0.join("bin/temponet"));
    command.current_dir(&folder.0).env("PATH", format!("{}:/usr/bin:/bin", folder.0.join("path").display()));
    command.args(args).output().unwrap()
}

#[test]
fn the_program_beside_comes_before_the_one_on_the_path() {
    let folder = installed("other-program");
    fake(&folder.0.join("path/temponet-paper"), "path");
    let args = ["reproduce", "E1", "--quick", "--help", "-x", "a b"];
    let output = call(&folder, &args);
    let printed = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), printed(&output)), (Some(7), "path reproduce E1 --quick --help -x a b\n".into()));
    fake(&folder.0.join("bin/temponet-paper"), "beside");
    let output = call(&folder, &args);
    assert_eq!(
        (output.status.code(), printed(&output)),
        (Some(7), "beside reproduce E1 --quick --help -x a b\n".into())
    );
    fake(&folder.0.join("bin/temponet-bench"), "bench");
    let output = call(&folder, &["bench", "sim"]);
    assert_eq!((output.status.code(), printed(&output)), (Some(7), "bench bench sim\n".into()));
}

#[test]
fn a_missing_program_is_one_line_that_says_how_to_build_it() {
    let folder = installed("no-other-program");
    for (command, program, install) in
        [("reproduce", "temponet-paper", "research"), ("bench", "temponet-bench", "bench")]
    {
        let output = call(&folder, &[command, "--help"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count(), output.stdout.len()), (Some(2), 1, 0), "{said}");
        assert!(said.contains(&format!("`cargo build --release -p {program}`")), "{said}");
        assert!(said.contains(&format!("`cargo install --path {install}`")), "{said}");
    }
}

#[test]
fn commands_of_other_programs_are_in_help_completions_and_manual() {
    let folder = installed("other-programs-help");
    for of in [&["help"][..], &["completions", "bash"], &["man"]] {
        let output = call(&folder, of);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("reproduce") && text.contains("bench"), "{of:?}");
    }
}
