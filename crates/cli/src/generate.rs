//! `temponet generate`: drawing a random task set.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use temponet_formats::Format;
use temponet_lab::drawing::{self, draw};
use temponet_lab::progress::Progress;
use temponet_sim::generate::{BurstSpec, Graphs, Properties, Shape, Spec, Variety};
use temponet_task::{Core, Speed, System, Time};

use crate::convert::written;
use crate::paths::{Kind, Output, Replace};
use crate::setup::{any_time, positive_time};
use crate::shape::{ShapeArgs, positive_number};

/// Draw a random task set with a given total utilization
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet generate --tasks 20 --utilization 3.2 --cores 4 -o random.toml\n  \
    temponet generate --tasks 8 --utilization 1.2 --periods list:10ms,20ms,50ms --seed 7 -o random.json\n  \
    temponet generate --method waters2015 --utilization 2.4 --cores 2 -o engine.toml\n  \
    temponet generate --tasks 200 --utilization 6 --cores 8 --modes low=5@0s,burst=11@5s,high=9@10s -o switch.toml\n  \
    temponet generate --tasks 20 --utilization 2.4 --cores 2 --variety sporadic,told,values -o varied.toml\n  \
    temponet generate --tasks 20 --utilization 1.6 --cores 2 --graphs 5,0.3 -o graphs.toml\n  \
    temponet generate --tasks 30 --utilization 5.6 --machine big=1:4,little=0.4:4 -o phone.toml\n  \
    temponet generate --tasks 600 --utilization 10 --cores 8 --burst 10,10ms,20ms,10s,1.2 -o stress.toml")]
pub struct Args {
    /// Number of tasks, 1 to 100000; waters2015 takes about this many (10 per core by default), and unc:… chooses its
    /// own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: Option<u32>,
    /// Total utilization over all cores; above the number of cores the set is overloaded
    #[arg(long, value_name = "U", value_parser = positive_number)]
    utilization: f64,
    /// Number of cores, 1 to 4096
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    cores: u16,
    /// Cores that differ, in place of --cores: NAME=SPEED:COUNT,…, such as big=1:4,little=0.4:4. Execution times are at
    /// speed 1
    #[arg(long, value_name = "LIST", value_parser = machine, conflicts_with = "cores")]
    machine: Option<Machine>,
    /// Seed; the same seed gives the same set
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Additional bursts of JOBS jobs with a relative deadline: JOBS,DEADLINE,EVERY,UNTIL,UTILIZATION, such as
    /// 10,10ms,20ms,10s,1.2
    #[arg(long, value_name = "PEAK", value_parser = burst)]
    burst: Option<BurstSpec>,
    /// Modes with different total utilizations over time: NAME=UTILIZATION@BEGIN,…, such as low=5@0s,high=9@10s
    #[arg(long, value_name = "LIST", value_parser = modes)]
    modes: Option<Modes>,
    /// Further properties at random: wide (each with its probability), or a list of sporadic, bursts, jitter, offsets,
    /// deadlines, execution, told, overruns, values, criticality, firm, costs, keep_late, modes, lists (one core, a
    /// .csv file). The utilization is then the mean one
    #[arg(long, value_name = "LIST", value_parser = variety)]
    variety: Option<Box<Variety>>,
    /// Join the tasks to random graphs with an end-to-end deadline: TASKS,PROBABILITY of a graph's size and of its
    /// edges, such as 5,0.3
    #[arg(long, value_name = "SHAPE", value_parser = graphs)]
    graphs: Option<Graphs>,
    /// File to write; its extension (.toml, .json or .csv) determines the format
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
struct Modes(Vec<(String, Time, f64)>);

fn modes(text: &str) -> Result<Modes, String> {
    let mode = |part: &str| -> Result<(String, Time, f64), String> {
        let shape = || format!("{part:?} is not NAME=UTILIZATION@BEGIN, such as burst=1.4@5s");
        let (name, rest) = part.split_once('=').ok_or_else(shape)?;
        let (utilization, at) = rest.split_once('@').filter(|_| !name.is_empty()).ok_or_else(shape)?;
        let utilization = positive_number(utilization).map_err(|_| shape())?;
        Ok((name.to_string(), any_time(at)?, utilization))
    };
    let modes: Vec<_> = text.split(',').map(mode).collect::<Result<_, _>>()?;
    match modes.windows(2).all(|pair| pair[0].1 < pair[1].1) {
        true => Ok(Modes(modes)),
        false => Err("each mode must begin after the one before it".into()),
    }
}

#[derive(Clone)]
struct Machine(Vec<Core>);

fn machine(text: &str) -> Result<Machine, String> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let shape = || format!("{part:?} is not NAME=SPEED:COUNT, such as little=0.4:4");
        let (name, rest) = part.split_once('=').ok_or_else(shape)?;
        let (speed, count) = rest.split_once(':').ok_or_else(shape)?;
        if name.trim().is_empty() || name.trim().parse::<i64>().is_ok() {
            return Err(format!("{part:?} needs a name that is not a number"));
        }
        let speed: f64 = speed.trim().parse().map_err(|_| shape())?;
        let speed = Speed::of(speed)
            .ok_or_else(|| format!("{part:?}: the speed must be from 0.001 to 1000, with at most three decimals"))?;
        let count: usize = count.trim().parse().map_err(|_| shape())?;
        if !(1..=System::MOST_CORES).contains(&count) {
            return Err(format!("{part:?}: the count must be from 1 to {}", System::MOST_CORES));
        }
        cores.extend(std::iter::repeat_n(Core::new(name.trim(), speed), count));
    }
    match cores.len() {
        1..=System::MOST_CORES => Ok(Machine(cores)),
        many => Err(format!("{many} cores are more than {}", System::MOST_CORES)),
    }
}

fn variety(text: &str) -> Result<Box<Variety>, String> {
    drawing::variety(text).map(Box::new)
}

fn graphs(text: &str) -> Result<Graphs, String> {
    let shape = || "must be TASKS,PROBABILITY, such as 5,0.3".to_string();
    let (size, edges) = text.split_once(',').ok_or_else(shape)?;
    let parsed = (size.trim().parse().ok(), edges.trim().parse().ok());
    let (Some(size), Some(edges)) = parsed else { return Err(shape()) };
    let graphs = Graphs { size, edges, deadline: 1.0 };
    match graphs.problem() {
        None => Ok(graphs),
        Some(_) => Err("graphs have 2 to 1000 tasks, and edges a probability from 0 to 1".into()),
    }
}

fn burst(text: &str) -> Result<BurstSpec, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let [jobs, deadline, every, until, utilization] = parts[..] else {
        return Err("must be JOBS,DEADLINE,EVERY,UNTIL,UTILIZATION, such as 10,10ms,20ms,10s,1.2".into());
    };
    let jobs = jobs.parse().ok().filter(|jobs| (1..=100_000).contains(jobs));
    Ok(BurstSpec {
        jobs: jobs.ok_or("the number of jobs must be from 1 to 100000")?,
        deadline: positive_time(deadline)?,
        every: positive_time(every)?,
        until: positive_time(until)?,
        utilization: positive_number(utilization).map_err(|why| format!("the utilization {why}"))?,
    })
}

pub fn run(args: Args) -> Result<()> {
    let format = Format::of(&args.output)
        .with_context(|| format!("{}: the name must end in .toml, .csv or .json", args.output.display()))?;
    let file = Output::claim(&args.output, Kind::TaskSet, Replace::nothing_or(args.force))?;
    if args.tasks.is_none() && !args.shape.counts_tasks() {
        bail!("--tasks N is missing: how many tasks?");
    }
    let cores = args.machine.as_ref().map_or(usize::from(args.cores), |machine| machine.0.len());
    let spec = Spec {
        burst: args.burst,
        modes: args.modes.map_or_else(Vec::new, |modes| modes.0),
        properties: Properties {
            shape: Shape { graphs: args.graphs, ..Shape::default() },
            variety: args.variety.map(|variety| *variety),
            ..Properties::default()
        },
        ..args.shape.spec(args.tasks.map(|tasks| tasks as usize), cores, args.utilization)?
    };
    let _progress = Progress::busy("drawing tasks");
    let mut set = draw(&spec, args.seed)?;
    set.system.set_machine(args.machine.map(|machine| machine.0).unwrap_or_default());
    file.write(temponet_formats::write(&set, format)?)?;
    written(&args.output, args.json)
}
