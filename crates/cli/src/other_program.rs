//! Commands that another program carries out: `temponet reproduce …` runs `temponet-paper reproduce …`, as cargo does
//! with `cargo-foo`.
//!
//! What few people need is not built with `temponet`. Its commands are still in the help, the completions and the
//! manual.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Arguments that are passed on as they are, `--help` too.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Arguments of the command
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// A program of this workspace that has a command more than `temponet`.
pub struct OtherProgram {
    /// Name of the command.
    pub command: &'static str,
    /// Name of the program, and of its package.
    pub name: &'static str,
    /// Folder of the package in the repository.
    pub folder: &'static str,
}

/// Program with the paper's experiments.
pub const PAPER: OtherProgram = OtherProgram { command: "reproduce", name: "temponet-paper", folder: "research" };

/// Program with the measurements of speed and memory.
pub const BENCH: OtherProgram = OtherProgram { command: "bench", name: "temponet-bench", folder: "bench" };

impl OtherProgram {
    /// Runs the command in the other program: the one beside this program, else the one on the path. Ends this program
    /// with its exit code.
    pub fn run(&self, args: Args) -> Result<()> {
        let program = self.beside().unwrap_or_else(|| self.name.into());
        let mut call = Command::new(&program);
        call.arg(self.command).args(args.args);
        match take_place(&mut call) {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "`{command}` is a command of {name}, which is not there: `cargo build --release -p {name}` builds it beside \
                 temponet, `cargo install --path {folder}` installs it",
                command = self.command,
                name = self.name,
                folder = self.folder
            ),
            outcome => outcome.with_context(|| format!("cannot run {}", program.display())),
        }
    }

    /// Returns the path of the program in the folder of the running one; none if it is not there.
    fn beside(&self) -> Option<PathBuf> {
        let running = std::env::current_exe().ok()?;
        let path = running.with_file_name(format!("{}{}", self.name, std::env::consts::EXE_SUFFIX));
        path.is_file().then_some(path)
    }
}

/// Replaces this process, so that signals and the exit code need no forwarding. Returns only if that fails.
#[cfg(unix)]
fn take_place(call: &mut Command) -> std::io::Result<()> {
    Err(std::os::unix::process::CommandExt::exec(call))
}

/// Waits for the other program and ends this one with its exit code.
#[cfg(not(unix))]
fn take_place(call: &mut Command) -> std::io::Result<()> {
    std::process::exit(call.status()?.code().unwrap_or(2))
}
