//! The `temponet` command.
//!
//! Results go to stdout, everything else to stderr. A mistake of the user ends the program with one line and exit code 2. A check that the user
//! asked for and that fails ends it with exit code 1. Every subcommand has its own module; the work itself is done by the library crates.

mod analyze;
mod arena;
mod bench;
mod chains;
mod compare;
mod convert;
mod exec;
mod explain;
mod generate;
mod guarantee;
mod interrupt;
mod listing;
mod model;
mod output;
mod paths;
mod reproduce;
mod setup;
mod shape;
mod simulate;
mod sweep;
mod table;
mod train;
mod tune;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use temponet_task::wording::{visible, visible_lines};

/// Compare deadline schedulers: which one meets the most deadlines, and what does its schedule look like?
#[derive(Parser)]
#[command(name = "temponet", version, after_help = "Example:\n  temponet compare democar --report democar.html")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compare(compare::Args),
    Simulate(simulate::Args),
    Exec(exec::Args),
    Analyze(analyze::Args),
    Explain(explain::Args),
    Train(train::Args),
    Tune(tune::Args),
    Model(model::Args),
    Sets(listing::SetsArgs),
    Schedulers(listing::SchedulersArgs),
    New(convert::NewArgs),
    Convert(convert::Args),
    Generate(generate::Args),
    Sweep(sweep::Args),
    Arena(arena::Args),
    Reproduce(reproduce::Args),
    Bench(bench::Args),
    /// Print shell completions
    #[command(
        after_help = "Example:\n  temponet completions bash > ~/.local/share/bash-completion/completions/temponet"
    )]
    Completions {
        /// Shell to print completions for
        shell: clap_complete::Shell,
    },
    /// Print the manual page as roff, or write one page per command into a folder
    #[command(after_help = "Example:\n  temponet man | man -l -")]
    Man {
        /// Folder to write one manual page per command into
        #[arg(long, value_name = "FOLDER")]
        dir: Option<std::path::PathBuf>,
    },
}

fn main() -> ExitCode {
    if let Err(error) = interrupt::listen() {
        output::say(&format!("warning: an interruption may leave temporary files behind: {error}"));
    }
    match run(command().command) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has closed the pipe, as in `temponet sets | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<Failed>() => {
            output::say(&format!("failed: {error}"));
            ExitCode::from(1)
        }
        Err(error) => {
            output::say(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Parses the command line. A wrong call ends the program here; control characters in it do not reach the terminal.
fn command() -> Cli {
    let is_wrong = |error: &clap::Error| error.exit_code() != 0;
    match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if is_wrong(&error) && std::env::args_os().any(|arg| is_hidden(&arg.to_string_lossy())) => {
            let text = error.render().to_string();
            let _ = write!(std::io::stderr(), "{}", visible_lines(&text));
            std::process::exit(error.exit_code());
        }
        Err(error) => error.exit(),
    }
}

/// Whether a text contains characters that are escaped when shown.
fn is_hidden(text: &str) -> bool {
    matches!(visible(text), std::borrow::Cow::Owned(_))
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Compare(args) => compare::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Exec(args) => exec::run(args),
        Command::Analyze(args) => analyze::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Train(args) => train::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Model(args) => model::run(args),
        Command::Sets(args) => listing::sets(args),
        Command::Schedulers(args) => listing::schedulers(args),
        Command::New(args) => convert::new(args),
        Command::Convert(args) => convert::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Arena(args) => arena::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "temponet", &mut script);
            output::print_bytes(&script)
        }
        Command::Man { dir: Some(dir) } => {
            std::fs::create_dir_all(&dir)?;
            Ok(clap_mangen::generate_to(Cli::command(), dir)?)
        }
        Command::Man { dir: None } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::print_bytes(&page)
        }
    }
}

/// A check that the user asked for has failed, which exit code 1 reports. The command itself succeeded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
