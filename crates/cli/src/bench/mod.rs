//! `temponet bench`: speed and memory, measured on this machine, now.

mod decision;
mod infer;
mod oracle;
mod sim;

use anyhow::Result;

/// Measure speed and memory
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench sim\n  temponet bench oracle\n  temponet bench infer")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Sim(sim::Args),
    Oracle(oracle::Args),
    Infer(infer::Args),
}

pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::Sim(args) => sim::run(args),
        What::Oracle(args) => oracle::run(args),
        What::Infer(args) => infer::run(args),
    }
}
