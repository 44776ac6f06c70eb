//! The command line of `temponet`, as a library: programs with further commands, such as `temponet-paper`, are this one
//! and more.
//!
//! Results go to stdout, everything else to stderr. A mistake of the user ends the program with one line and exit code
//! 2. A check that the user asked for and that fails ends it with exit code 1. Every subcommand has its own module; the
//! work itself is done by the library crates.
//!
//! A program adds a command of its own with [`Program::with`]; [`output`], [`paths`], [`setup`] and [`table`] are there
//! for it to use.

mod advise;
mod analyze;
mod arena;
mod bulk;
mod chains;
mod compare;
mod convert;
mod exec;
mod explain;
mod generate;
mod guarantee;
mod hints;
mod import;
mod interrupt;
mod lab;
mod listing;
mod model;
mod other_program;
pub mod output;
pub mod paths;
mod record;
pub mod setup;
mod shape;
mod simulate;
mod sweep;
pub mod table;
mod train;
mod tune;
mod version;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use temponet_wording::{visible, visible_lines};

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
    Advise(advise::Args),
    Explain(explain::Args),
    Lab(lab::Args),
    Train(train::Args),
    Tune(tune::Args),
    Model(model::Args),
    Sets(listing::SetsArgs),
    Schedulers(listing::SchedulersArgs),
    New(convert::NewArgs),
    Convert(convert::Args),
    Import(import::Args),
    Record(record::Args),
    Schema(convert::SchemaArgs),
    Generate(generate::Args),
    Sweep(sweep::Args),
    Arena(arena::Args),
    /// Run the paper's experiments and compare the figures (by the program temponet-paper)
    Reproduce(other_program::Args),
    /// Measure speed and memory on this machine (by the program temponet-bench)
    Bench(other_program::Args),
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

/// A command that a program adds to those of `temponet`. Its options are those of [`clap::Args`], with help and
/// examples.
pub trait ExtraCommand: clap::Args {
    /// Name of the command. It takes the place of a command of `temponet` with that name, if there is one.
    const NAME: &'static str;

    /// Carries out the command.
    fn run(self) -> anyhow::Result<()>;
}

/// An [`ExtraCommand`] without its type.
struct Extra {
    name: &'static str,
    options: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches) -> anyhow::Result<()>,
}

/// A program with the command line of `temponet`.
pub struct Program {
    name: &'static str,
    extras: Vec<Extra>,
}

impl Program {
    /// The commands of `temponet` under the name of a program.
    pub fn named(name: &'static str) -> Program {
        Program { name, extras: Vec::new() }
    }

    /// Adds a command.
    pub fn with<C: ExtraCommand>(mut self) -> Program {
        let run = |matches: &ArgMatches| C::from_arg_matches(matches)?.run();
        self.extras.push(Extra { name: C::NAME, options: C::augment_args, run });
        self
    }

    /// Carries out the command that the program was called with, and returns its exit code. A program that has given a
    /// scheduler of its own a name of TempoNet's (`temponet`, `tuned`, …) ends with an error.
    pub fn main(&self) -> ExitCode {
        if let Err(error) = interrupt::listen() {
            output::say(&format!("warning: an interruption may leave temporary files behind: {error}"));
        }
        if let Err(error) = temponet_lab::roster::register() {
            output::say(&format!("error: {} has a scheduler under a name of TempoNet's own: {error}", self.name));
            return ExitCode::from(2);
        }
        let result = self.run(&self.matches());
        output::say_what_was_written();
        match result {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of our output has closed the pipe, as in `temponet sets | head`.
            Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) if error.is::<Failed>() => {
                error.to_string().lines().for_each(|line| output::say(&format!("failed: {line}")));
                ExitCode::from(1)
            }
            Err(error) => {
                output::say(&format!("error: {error:#}"));
                ExitCode::from(2)
            }
        }
    }

    /// Returns the whole command line.
    fn command_line(&self) -> clap::Command {
        let add = |line: clap::Command, extra: &Extra| {
            let command = (extra.options)(clap::Command::new(extra.name));
            match line.find_subcommand(extra.name) {
                Some(_) => line.mut_subcommand(extra.name, |_| command),
                None => line.subcommand(command),
            }
        };
        self.extras.iter().fold(Cli::command().name(self.name), add)
    }

    /// Parses the command line. A wrong call ends the program here; control characters in it do not reach the terminal.
    fn matches(&self) -> ArgMatches {
        let is_wrong = |error: &clap::Error| error.exit_code() != 0;
        match self.command_line().try_get_matches_from(with_negative_values(std::env::args_os())) {
            Ok(matches) => matches,
            // `-V` prints the version alone.
            Err(error)
                if error.kind() == ErrorKind::DisplayVersion && std::env::args_os().any(|arg| arg == "--version") =>
            {
                let _ = write!(std::io::stdout(), "{}", version::text(self.name));
                std::process::exit(0);
            }
            Err(error) if is_wrong(&error) && std::env::args_os().any(|arg| is_hidden(&arg.to_string_lossy())) => {
                let text = error.render().to_string();
                let _ = write!(std::io::stderr(), "{}", visible_lines(&text));
                std::process::exit(error.exit_code());
            }
            Err(error) => error.exit(),
        }
    }

    fn run(&self, matches: &ArgMatches) -> anyhow::Result<()> {
        let given = matches.subcommand();
        let extra = given.and_then(|(name, within)| Some((self.extras.iter().find(|of| of.name == name)?, within)));
        match extra {
            Some((extra, matches)) => (extra.run)(matches),
            None => self.carry_out(Cli::from_arg_matches(matches)?.command),
        }
    }

    fn carry_out(&self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Compare(args) => compare::run(args),
            Command::Simulate(args) => simulate::run(args),
            Command::Exec(args) => exec::run(args),
            Command::Analyze(args) => analyze::run(args),
            Command::Advise(args) => advise::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Lab(args) => lab::run(args),
            Command::Train(args) => train::run(args),
            Command::Tune(args) => tune::run(args),
            Command::Model(args) => model::run(args),
            Command::Sets(args) => listing::sets(args),
            Command::Schedulers(args) => listing::schedulers(args),
            Command::New(args) => convert::new(args),
            Command::Convert(args) => convert::run(args),
            Command::Import(args) => import::run(args),
            Command::Record(args) => record::run(args),
            Command::Schema(args) => convert::schema(args),
            Command::Generate(args) => generate::run(args),
            Command::Sweep(args) => sweep::run(args),
            Command::Arena(args) => arena::run(args),
            Command::Reproduce(args) => other_program::PAPER.run(args),
            Command::Bench(args) => other_program::BENCH.run(args),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut self.command_line(), self.name, &mut script);
                output::print_bytes(&script)
            }
            Command::Man { dir: Some(dir) } => {
                std::fs::create_dir_all(&dir)?;
                Ok(clap_mangen::generate_to(self.command_line(), dir)?)
            }
            Command::Man { dir: None } => {
                let mut page = Vec::new();
                clap_mangen::Man::new(self.command_line()).render(&mut page)?;
                output::print_bytes(&page)
            }
        }
    }
}

/// Joins options with a value that begins like a negative number, such as `--horizon -5ms`, as in `--horizon=-5ms`. No
/// option begins with a digit, so that the range of the option is what such a value violates.
fn with_negative_values(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut is_over = false;
    for argument in arguments {
        let is_negative = matches!(argument.as_encoded_bytes(), [b'-', b'0'..=b'9' | b'.', ..]);
        let takes = |before: &OsString| {
            let bytes = before.as_encoded_bytes();
            bytes.starts_with(b"--") && bytes.len() > 2 && !bytes.contains(&b'=')
        };
        is_over |= argument == "--";
        match joined.last_mut().filter(|before| is_negative && !is_over && takes(before)) {
            Some(before) => {
                before.push("=");
                before.push(argument);
            }
            None => joined.push(argument),
        }
    }
    joined
}

/// Whether a text contains characters that are escaped when shown.
fn is_hidden(text: &str) -> bool {
    matches!(visible(text), std::borrow::Cow::Owned(_))
}

/// A check that the user asked for has failed, which exit code 1 reports. The command itself succeeded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// The examples of the README, which are run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
