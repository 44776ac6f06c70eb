//! The `temponet` command.
//!
//! Data goes to stdout, everything else to stderr. Whatever the user got wrong ends with one line and exit code 2; a check that he asked for
//! and that fails, with exit code 1.

mod analyze;
mod arena;
mod bench;
mod compare;
mod convert;
mod device;
mod explain;
mod generate;
mod interrupt;
mod listing;
mod model;
mod output;
mod paths;
mod recipe;
mod reproduce;
mod setup;
mod shape;
mod simulate;
mod sweep;
mod table;
mod train;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use temponet_task::wording::{visible, visible_lines};

/// Which scheduler meets the most deadlines, and what does its schedule look like?
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
    Analyze(analyze::Args),
    Explain(explain::Args),
    Train(train::Args),
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
    /// Print the completions of a shell
    #[command(
        after_help = "Example:\n  temponet completions bash > ~/.local/share/bash-completion/completions/temponet"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff), or write one per command into a folder
    #[command(after_help = "Example:\n  temponet man | man -l -")]
    Man {
        /// Write the page of every command into this folder
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
        // The reader of our output has had enough, as in `temponet sets | head`.
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

/// What the user asks for; a wrong call ends here. Control characters in it do not reach the terminal.
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

/// Whether a text would not be shown as it is.
fn is_hidden(text: &str) -> bool {
    matches!(visible(text), std::borrow::Cow::Owned(_))
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Compare(args) => compare::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Analyze(args) => analyze::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Train(args) => train::run(args),
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

/// What a user asked to be told by exit code 1: the command itself went well.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
