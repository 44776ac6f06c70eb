//! `temponet bench sim`: speed and peak memory of the simulator.
//!
//! Each case runs in its own process, so that its peak memory can be measured.

use std::path::PathBuf;
use std::time::Instant;

use crate::{control, peak_rss_mb};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use temponet_formats::Format;
use temponet_lab::comparison::{ComparisonPlan, compare};
use temponet_lab::progress::Progress;
use temponet_lab::roster::Roster;
use temponet_sim::generate::{Method, Spec, generate};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{TaskSet, Time};

use temponet_cli::paths::{Kind, Output, Replace};
use temponet_cli::{output, table};

/// Measure the simulator: jobs per second and peak memory
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench sim\n  temponet bench sim --case edf-1x5 --jobs 1000000000\n\n\
    Periods are log-uniform from 10 to 100 ms, deadlines implicit, traces off. Each case runs three times; the median \
    time is reported. control_ns is the time of one step of a fixed loop, which tells a slow machine from slow code.")]
pub struct Args {
    /// Run only this case
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Number of jobs to simulate per run [default: depends on the case]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// Write the task sets as JSON into this folder instead of measuring, for other simulators
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Replace existing files of any kind in that folder
    #[arg(long, requires = "write")]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
    /// Run the case in this process and print its figures as JSON
    #[arg(long, hide = true, requires = "case")]
    in_process: bool,
}

/// A task set and a scheduler to simulate.
struct SimCase {
    name: &'static str,
    about: &'static str,
    tasks: usize,
    cores: usize,
    utilization: f64,
    /// Name of the scheduler; `all` compares all of them.
    scheduler: &'static str,
    /// Number of jobs per run.
    jobs: u64,
}

const CASES: &[SimCase] = &[
    SimCase {
        name: "edf-1x5",
        about: "EDF, 1 core, 5 tasks, U = 0.9",
        tasks: 5,
        cores: 1,
        utilization: 0.9,
        scheduler: "edf",
        jobs: 5_000_000,
    },
    SimCase {
        name: "edf-8x100",
        about: "global EDF, 8 cores, 100 tasks, U = 7",
        tasks: 100,
        cores: 8,
        utilization: 7.0,
        scheduler: "edf",
        jobs: 2_000_000,
    },
    SimCase {
        name: "edf-8x600",
        about: "global EDF, 8 cores, 600 tasks, U = 7",
        tasks: 600,
        cores: 8,
        utilization: 7.0,
        scheduler: "edf",
        jobs: 2_000_000,
    },
    SimCase {
        name: "llf-1x5",
        about: "LLF, 1 core, 5 tasks, U = 0.9",
        tasks: 5,
        cores: 1,
        utilization: 0.9,
        scheduler: "llf",
        jobs: 2_000_000,
    },
    SimCase {
        name: "llf-8x100",
        about: "LLF, 8 cores, 100 tasks, U = 7",
        tasks: 100,
        cores: 8,
        utilization: 7.0,
        scheduler: "llf",
        jobs: 1_000_000,
    },
    SimCase {
        name: "compare-all",
        about: "compare --schedulers all, 8 cores, 100 tasks, U = 7",
        tasks: 100,
        cores: 8,
        utilization: 7.0,
        scheduler: "all",
        jobs: 20_000,
    },
];

/// Number of runs of each case.
const REPEATS: usize = 3;
/// Number of jobs above which a case runs only once.
const MOST_REPEATED: u64 = 100_000_000;

#[derive(Serialize, Deserialize)]
struct Figures {
    name: String,
    about: String,
    jobs: u64,
    seconds: f64,
    jobs_per_s: f64,
    /// Peak memory in megabytes; null if the system does not report it.
    peak_rss_mb: Option<f64>,
    /// Time of one step of the control loop, measured with the case.
    control_ns: f64,
}

pub fn run(args: Args) -> Result<()> {
    let chosen = super::chosen(CASES, |case| case.name, args.case.as_deref())?;
    if let Some(folder) = &args.write {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
        for case in chosen {
            let path = folder.join(case.name).with_extension("json");
            let file = Output::claim(&path, Kind::BenchData, Replace::earlier_or(args.force))?;
            file.write(temponet_formats::write(&set(case)?, Format::Json)?)?;
        }
        return Ok(());
    }
    if let (true, [case]) = (args.in_process, &chosen[..]) {
        return output::print_json(&measure(case, args.jobs.unwrap_or(case.jobs))?);
    }
    let mut cases = Vec::new();
    for case in chosen {
        if !args.json {
            output::say(&format!("{} …", case.about));
        }
        cases.push(in_own_process(case, args.jobs.unwrap_or(case.jobs))?);
    }
    if args.json {
        return output::print_json(&serde_json::json!({ "cases": cases }));
    }
    let header = ["case", "jobs", "seconds", "jobs/s", "peak MB", "control ns"];
    let rows = cases.iter().map(|case| {
        vec![
            case.name.clone(),
            table::count(case.jobs),
            format!("{:.3}", case.seconds),
            format!("{:.2} M", case.jobs_per_s / 1e6),
            case.peak_rss_mb.map_or("–".into(), |peak| format!("{peak:.1}")),
            format!("{:.3}", case.control_ns),
        ]
    });
    output::print(&table::render(&header, &rows.collect::<Vec<_>>()))
}

/// Generates the task set of a case from a fixed seed.
fn set(case: &SimCase) -> Result<TaskSet> {
    let SimCase { tasks, cores, utilization, .. } = *case;
    let spec = Spec { method: Method::UUniFastDiscard, ..Spec::new(tasks, cores, utilization) };
    Ok(generate(&spec, 1)?.with_name(case.name))
}

/// Measures a case in a new process.
fn in_own_process(case: &SimCase, jobs: u64) -> Result<Figures> {
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let mut command = std::process::Command::new(program);
    command.args(["bench", "sim", "--in-process", "--case", case.name, "--jobs", &jobs.to_string()]);
    let output =
        command.stderr(std::process::Stdio::inherit()).output().context("cannot start a process for a case")?;
    if !output.status.success() {
        bail!("case {} failed", case.name);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn measure(case: &SimCase, jobs: u64) -> Result<Figures> {
    let set = set(case)?;
    let rate: f64 = set.tasks().iter().filter_map(|task| task.period()).map(|period| 1.0 / period.as_secs_f64()).sum();
    let horizon = Time((jobs as f64 / rate * 1e9) as u64).min(Time::MAX_INPUT);
    let (mut seconds, mut controls, mut simulated) = (Vec::new(), Vec::new(), 0);
    for _ in 0..if jobs > MOST_REPEATED { 1 } else { REPEATS } {
        controls.push(control());
        let begin = Instant::now();
        simulated = match case.scheduler {
            "all" => compare_all(&set, horizon)?,
            name => {
                let metrics = simulate(&set, 1, horizon, &mut *temponet_sched::build(name)?, &mut Unobserved)?;
                // EDF and LLF meet all deadlines of these sets; a miss means that the run is broken.
                if metrics.missed() > 0 {
                    bail!("case {}: {} deadlines missed where none should be", case.name, metrics.missed());
                }
                metrics.jobs.released
            }
        };
        seconds.push(begin.elapsed().as_secs_f64());
    }
    let seconds = median(&mut seconds);
    Ok(Figures {
        name: case.name.into(),
        about: case.about.into(),
        jobs: simulated,
        seconds,
        jobs_per_s: simulated as f64 / seconds,
        peak_rss_mb: peak_rss_mb(),
        control_ns: median(&mut controls),
    })
}

/// Runs every scheduler that decides by a rule on the same set and returns the total number of jobs.
fn compare_all(set: &TaskSet, horizon: Time) -> Result<u64> {
    let rules = temponet_sched::catalog::all().into_iter().filter(|entry| entry.kind.is_rule());
    let schedulers: Vec<String> = rules.map(|entry| entry.name.to_string()).collect();
    let progress = Progress::new(schedulers.len() as u64, horizon);
    let record_until = Time::ZERO;
    let plan = ComparisonPlan {
        goal: set.goal().clone(),
        set: set.clone(),
        horizon,
        seed: 1,
        runs: 1,
        schedulers,
        roster: Roster::classical(),
        latency: false,
        charge_latency: false,
        record_until,
        oracle: None,
    };
    Ok(compare(plan, &progress)?.rows.iter().map(|row| row.metrics.jobs.released).sum())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
