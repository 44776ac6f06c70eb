//! `temponet bench train`: speed of learning and of the environment, on one core.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use temponet_cli::{output, table};
use temponet_school::recipe_file;
use temponet_train::TrainingDevice;

use crate::environments::{self, EnvironmentFigures};
use crate::training::{PolicyCase, measure};

/// The recipe of the built-in model.
const DEFAULT: &str = include_str!("../../../recipes/default.toml");

/// Measure training: learning steps, decisions of the environment, and both together
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench train\n  temponet bench train --json\n  \
    temponet bench train --environments --stage 1\n\n\
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
    /// Measure only the environments of a recipe, without a network: processor time of a choice on one thread, and memory
    #[arg(long, conflicts_with = "device")]
    environments: bool,
    /// Recipe whose environments to measure [default: that of the built-in model]
    #[arg(long, value_name = "FILE", requires = "environments")]
    recipe: Option<PathBuf>,
    /// Stage of the recipe whose environments to measure [default: the last one]
    #[arg(long, value_name = "N", requires = "environments", value_parser = clap::value_parser!(u64).range(1..))]
    stage: Option<u64>,
    /// Measure only a few environments, which takes seconds
    #[arg(long, requires = "environments")]
    quick: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<()> {
    if args.environments {
        return run_environments(&args);
    }
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

fn run_environments(args: &Args) -> Result<()> {
    let recipe = match &args.recipe {
        Some(path) => recipe_file::read(path)?,
        None => recipe_file::parse(DEFAULT, Path::new("recipes/default.toml"))?,
    };
    let stages = recipe.stage.len();
    let stage = args.stage.map_or(stages, |stage| stage as usize);
    if stage > stages {
        bail!("--stage {stage}: the recipe has {stages}");
    }
    let figures = environments::measure(&recipe, stage - 1, args.rounds, args.quick)?;
    if args.json {
        return output::print_json(&figures);
    }
    let EnvironmentFigures { bytes_per_environment, begin_us, choices_per_episode, rows_per_choice, .. } = figures;
    let EnvironmentFigures { cases, digest, control_ns, .. } = figures;
    let header = ["environments in turn", "choices", "µs a choice", "with new episodes"];
    let rows = cases.iter().map(|case| {
        let [alone, whole] = [case.us_per_choice, case.us_per_choice_with_episodes].map(|us| format!("{us:.2}"));
        vec![table::count(case.environments as u64), table::count(case.choices as u64), alone, whole]
    });
    let mut text = table::render(&header, &rows.collect::<Vec<_>>());
    text += &format!(
        "\nrows of a choice: {rows_per_choice:.1}\na new episode: {begin_us:.0} µs, after {choices_per_episode:.0} choices\n"
    );
    if let Some(bytes) = bytes_per_environment {
        text += &format!("memory of an environment: {:.1} KiB\n", bytes / 1024.0);
    }
    text += &format!("digest of what was seen: {digest}\ncontrol loop: {control_ns:.3} ns\n");
    output::print(&text)
}
