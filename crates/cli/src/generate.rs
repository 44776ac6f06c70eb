//! `temponet generate`: random task sets.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use temponet_sim::generate::{Method, Periods, Spec, generate};
use temponet_task::Time;
use temponet_task::files::{self, Format};

use crate::convert::written;
use crate::output;
use crate::setup::positive_time;

/// Draw a random task set: periodic tasks, implicit deadlines, a given total utilisation
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet generate --tasks 20 --utilization 3.2 --cores 4 -o random.toml\n  \
    temponet generate --tasks 8 --utilization 1.2 --periods list:10ms,20ms,50ms --seed 7 -o random.json")]
pub struct Args {
    /// Number of tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// Total utilisation; above the number of cores the set is overloaded
    #[arg(long, value_name = "U", value_parser = positive_number)]
    utilization: f64,
    /// Number of cores
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    cores: u16,
    /// The same seed gives the same set
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How the total is shared out: randfixedsum or uunifast (discarding)
    #[arg(long, value_name = "NAME", default_value = "randfixedsum", value_parser = method)]
    method: Method,
    /// How periods are drawn: log:MIN,MAX, uniform:MIN,MAX, list:A,B,… or harmonic:BASE,MAX
    #[arg(long, value_name = "RULE", default_value = "log:10ms,100ms", value_parser = periods)]
    periods: Periods,
    /// Periods and execution times are whole multiples of this
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = positive_time)]
    granularity: Time,
    /// The file to write; its ending says the format
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn positive_number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "must be a number greater than zero".into())
}

fn method(text: &str) -> Result<Method, String> {
    match text {
        "randfixedsum" => Ok(Method::RandFixedSum),
        "uunifast" => Ok(Method::UUniFastDiscard),
        _ => Err("is none of randfixedsum, uunifast".into()),
    }
}

/// `log:10ms,100ms`, `uniform:…`, `list:…`, `harmonic:…`.
pub fn periods(text: &str) -> Result<Periods, String> {
    let (rule, times) = text.split_once(':').ok_or("must be RULE:TIMES, such as log:10ms,100ms")?;
    let times: Vec<Time> = times.split(',').map(positive_time).collect::<Result<_, _>>()?;
    match (rule, &times[..]) {
        ("list", _) => Ok(Periods::List(times)),
        ("log", [low, high]) if low <= high => Ok(Periods::LogUniform(*low, *high)),
        ("uniform", [low, high]) if low <= high => Ok(Periods::Uniform(*low, *high)),
        ("harmonic", [base, most]) if base <= most => Ok(Periods::Harmonic(*base, *most)),
        ("log" | "uniform" | "harmonic", _) => Err(format!("{rule} needs two times, the smaller first")),
        _ => Err(format!("{rule:?} is none of log, uniform, list, harmonic")),
    }
}

pub fn run(args: Args) -> Result<()> {
    let format = Format::of(&args.output)
        .with_context(|| format!("{}: the name must end in .toml, .csv or .json", args.output.display()))?;
    output::refuse_existing(&args.output, args.force)?;
    let spec = Spec {
        tasks: args.tasks as usize,
        cores: usize::from(args.cores),
        utilization: args.utilization,
        method: args.method,
        periods: args.periods,
        granularity: args.granularity,
    };
    let mut set = generate(&spec, args.seed)?;
    if set.tasks.iter().any(|task| task.deadline > Time::MAX_INPUT) {
        bail!("periods longer than 30 years were drawn");
    }
    let (tasks, total) = (spec.tasks, set.utilization());
    set.description = format!("{tasks} random tasks, total utilisation {total:.4}, seed {}", args.seed);
    output::write_file(&args.output, &files::write(&set, format)?)?;
    written(&args.output, args.json)
}
