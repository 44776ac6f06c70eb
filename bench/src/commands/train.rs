//! `temponet bench train`: speed of learning and of the environment, on one core.

use crate::training::{PolicyCase, measure};
use anyhow::{Result, anyhow};
use temponet_train::TrainingDevice;

use temponet_cli::{output, table};

/// Measure training: learning steps, decisions of the environment, and both together
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench train\n  temponet bench train --json\n\n\
    The paper's network (d = 128, L = 2, H = 4, feed-forward 512), one core. A step is a whole update of Q-learning: two forward passes, one \
    backward pass, Adam, soft update. The median of several rounds is reported. control_ns is the time of one step of a fixed loop, which tells \
    a slow machine from slow code.")]
pub struct Args {
    /// Number of rounds per case
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Device to measure: cpu (one core), cuda, or auto for a GPU if there is one
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = ["auto", "cpu", "cuda"])]
    device: String,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<()> {
    let device = TrainingDevice::open(&args.device).map_err(|why| anyhow!("--device {}: {why}", args.device))?;
    let figures = measure(&device, args.rounds)?;
    if args.json {
        return output::print_json(&figures);
    }
    let rows: Vec<Vec<String>> = figures
        .cases
        .iter()
        .map(|case| {
            let rows = if case.merged { "equal ones merged" } else { "each its own row" };
            vec![format!("{} × {}", case.batch, case.tokens), rows.into(), format!("{:.2}", case.steps_per_s)]
        })
        .collect();
    let mut text = table::render_with(&["batch × tokens", "tokens", "steps/s"], &rows, 2);
    for case in &figures.policy {
        let PolicyCase { environments, tokens, width, samples_per_s } = case;
        text += &format!("{environments} environments, {tokens} tokens, d = {width}: {samples_per_s:.0} choices/s\n");
    }
    text += &format!(
        "\nenvironment with a trivial scheduler: {:.2} million decisions/s\nenvironments read for the network, random choices: {:.0} \
         choices/s\nacting and learning, 6 tokens, an update every 4 choices: {:.0} choices/s\ncontrol loop: {:.3} ns\n",
        figures.env_decisions_per_s / 1e6,
        figures.observed_choices_per_s,
        figures.loop_steps_per_s,
        figures.control_ns
    );
    output::print(&text)
}
