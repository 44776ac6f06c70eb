//! `temponet model`: inspecting and writing model files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use temponet::Model;
use temponet::stages::{Binning, Continuous};
use temponet_infer::Body;
use temponet_wording::visible;

use crate::convert::written;
use crate::paths::{Kind, Output, Replace};
use crate::{output, setup, table};

/// Show a model, change its metadata, or write untrained weights
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet model show mine.safetensors\n  temponet model new random:1 -o fresh.safetensors"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Show the shape, tokens, provenance and checksum of a model
    #[command(after_help = "Example:\n  temponet model show mine.safetensors")]
    Show {
        /// Weights file, built-in, or random:SEED
        #[arg(value_name = "FILE")]
        model: String,
        /// Print the results as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write a copy of a model with other metadata
    #[command(
        after_help = "Example:\n  temponet model note mine.safetensors --provenance \"line 3, March\" -o noted.safetensors"
    )]
    Note {
        /// Weights file
        #[arg(value_name = "FILE")]
        model: String,
        /// Provenance to record in the model
        #[arg(long, value_name = "TEXT")]
        provenance: String,
        /// File to write
        #[arg(short, long, value_name = "FILE.safetensors")]
        output: PathBuf,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Write untrained weights
    #[command(after_help = "Example:\n  temponet model new random:1 -o fresh.safetensors")]
    New {
        /// random:SEED, random-paper:SEED for the paper's tokens, or random-raw:SEED or random-mlp:SEED for continuous
        /// slack
        #[arg(value_name = "NAME")]
        model: String,
        /// File to write
        #[arg(short, long, value_name = "FILE.safetensors")]
        output: PathBuf,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
        /// Print the results as one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::Show { model, json } => show(&setup::model(&model)?, json),
        What::Note { model, provenance, output, force } => {
            let file = Output::claim(&output, Kind::Model, Replace::nothing_or(force))?;
            let mut model = setup::model(&model)?;
            model.set_provenance(provenance);
            file.write(model.to_bytes().context("cannot write the model")?)?;
            written(&output, false)
        }
        What::New { model, output, force, json } => {
            let file = Output::claim(&output, Kind::Model, Replace::nothing_or(force))?;
            let model = setup::model(&model)?;
            file.write(model.to_bytes().context("cannot write the model")?)?;
            written(&output, json)
        }
    }
}

fn show(model: &Model, json: bool) -> Result<()> {
    let shape = &model.weights.architecture;
    if json {
        return output::print_json(&serde_json::json!({
            "architecture": shape, "tokenizer": model.tokenizer, "parameters": shape.parameters(),
            "kernel": temponet_infer::Kernel::best().name(), "provenance": model.provenance(), "tick": model.tick(), "staying": model.stay(), "never_idles": model.never_idles(), "untrained": model.is_untrained(), "tuned": model.tuned(), "checksum": model.checksum()?,
        }));
    }
    let features = |features: &[temponet_infer::Vocabulary]| {
        features.iter().map(|feature| format!("{} ({})", feature.name, feature.size)).collect::<Vec<_>>().join(", ")
    };
    let tokenizer = &model.tokenizer;
    let slack = match &tokenizer.continuous {
        Some(how) => format!("continuous, {}", continuous(how)),
        None => {
            let hopeless = if tokenizer.clip { "clipped to bin 0" } else { "tokens of their own" };
            format!("{} bins, {}; hopeless jobs: {hopeless}", tokenizer.bins, binning(&tokenizer.binning))
        }
    };
    let rows = [
        (
            "blocks",
            format!(
                "{} of width {}, {} heads, feed-forward {}",
                shape.layers, shape.width, shape.heads, shape.feed_forward
            ),
        ),
        ("parameters", table::count(shape.parameters() as u64)),
        ("parts", parts(model)),
        ("job tokens", features(&shape.job)),
        ("idle token", features(&shape.idle)),
        ("slack", slack),
        ("kernel here", temponet_infer::Kernel::best().name().into()),
        ("provenance", model.provenance().unwrap_or("unknown").into()),
        (
            "idles",
            if model.never_idles() { "never while a job waits".into() } else { "where that is worth most".to_string() },
        ),
        (
            "staying",
            format!("worth up to {} in units of Q, by what moving costs", table::number(f64::from(model.stay()))),
        ),
        ("tuned", model.tuned().map_or("for no set".into(), |tuned| format!("for {}: {}", tuned.set, tuned.choice))),
        ("checksum", model.checksum()?),
    ];
    let line = |(name, value): &(&str, String)| format!("{name:<14} {}\n", visible(value));
    output::print(&rows.iter().map(line).collect::<String>())
}

/// What sets the network apart from a Transformer with one head for jobs and one for idling.
fn parts(model: &Model) -> String {
    let shape = &model.weights.architecture;
    let other = match &shape.body {
        Body::Transformer(_) => None,
        Body::Other(body) => Some(body.summary()),
    };
    let found = [
        model.tokenizer.sparse.then(|| "sparse attention".into()),
        other,
        shape.actor().map(|hidden| format!("actor with a hidden layer of {hidden}")),
        (shape.speeds() > 0).then(|| format!("heads for {} lower speeds", shape.speeds())),
        shape.atoms().is_some().then(|| "distribution of returns".into()),
        model.tick().map(|tick| format!("decides every {} median wcets too", table::number(tick))),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() { "attention, one head".into() } else { found.join("; ") }
}

fn continuous(how: &Continuous) -> String {
    let pair = |[slack, remaining]: [f64; 2]| format!("{} and {}", table::number(slack), table::number(remaining));
    match how {
        Continuous::Raw => "as it is".into(),
        Continuous::ZScore { mean, deviation } => {
            format!("less the mean ({}), by the deviation ({})", pair(*mean), pair(*deviation))
        }
        Continuous::Slack { mean, deviation } => {
            format!("as a z-score without the remaining wcet (mean {mean:.3}, deviation {deviation:.3})")
        }
        Continuous::Mlp { hidden } => format!("through a hidden layer of {hidden}"),
    }
}

fn binning(how: &Binning) -> String {
    match how {
        Binning::Uniform { width } => format!("each {} median wcets wide", table::number(*width)),
        Binning::Log { first, last } => {
            format!(
                "from {} to {} median wcets, each wider than the one before",
                table::number(*first),
                table::number(*last)
            )
        }
        Binning::Fitted { edges } => format!("fitted to data, {} edges", edges.len()),
    }
}
