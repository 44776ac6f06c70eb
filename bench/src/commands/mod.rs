//! `temponet bench`: measurements of speed and memory on this machine.

mod agreement;
mod attention;
mod infer;
mod oracle;
mod sim;
mod train;

use anyhow::{Result, bail};
use temponet_cli::ExtraCommand;

/// Measure speed and memory on this machine
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet bench sim\n  temponet bench oracle\n  temponet bench infer\n  temponet bench train"
)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Sim(sim::Args),
    Oracle(oracle::Args),
    Infer(infer::Args),
    Train(train::Args),
}

impl ExtraCommand for Bench {
    const NAME: &'static str = "bench";

    fn run(self) -> Result<()> {
        match self.what {
            What::Sim(args) => sim::run(args),
            What::Oracle(args) => oracle::run(args),
            What::Infer(args) => infer::run(args),
            What::Train(args) => train::run(args),
        }
    }
}

/// Returns the case with the wanted name, or all cases.
fn chosen<'a, C>(cases: &'a [C], name_of: fn(&C) -> &'static str, wanted: Option<&str>) -> Result<Vec<&'a C>> {
    let chosen: Vec<&C> = cases.iter().filter(|case| wanted.is_none_or(|wanted| wanted == name_of(case))).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = cases.iter().map(name_of).collect();
        bail!("there is no case {:?}; there are {}", wanted.unwrap_or_default(), names.join(", "));
    }
    Ok(chosen)
}
