//! `temponet bench oracle`: time to compute the clairvoyant optimum, and share of instances solved exactly.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet_lab::clairvoyant::equal_jobs;
use temponet_oracle::{Optimum, OracleJob, STEPS_PER_SECOND, optimum};
use temponet_sim::generate::{Spec, generate};
use temponet_task::Time;

use temponet_cli::paths::{Kind, Output, Replace};
use temponet_cli::{output, table};

/// Measure the clairvoyant optimum: time per instance, share solved exactly, gap
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet bench oracle\n  temponet bench oracle --case one-60 --json\n\n\
    Instances are the first jobs of random periodic sets (RandFixedSum, periods log-uniform from 10 to 100 ms), or bursts of random jobs.")]
pub struct Args {
    /// Run only this case
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Number of instances per case
    #[arg(long, value_name = "K", default_value_t = 21, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    instances: u64,
    /// Approximate time limit per instance, in seconds of one core
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    budget: f64,
    /// Write the instances as job lists into this folder instead of measuring, for other solvers
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Replace existing files of any kind in that folder
    #[arg(long, requires = "write")]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// A family of instances.
struct OracleCase {
    name: &'static str,
    about: &'static str,
    cores: usize,
    /// Number of tasks; none: bursts of unrelated jobs.
    tasks: Option<usize>,
    /// Load per core.
    load: f64,
    /// Number of jobs in an instance.
    jobs: usize,
}

const fn case(
    name: &'static str,
    about: &'static str,
    cores: usize,
    tasks: usize,
    load: f64,
    jobs: usize,
) -> OracleCase {
    OracleCase { name, about, cores, tasks: Some(tasks), load, jobs }
}

const CASES: &[OracleCase] = &[
    case("one-60", "1 core, 6 tasks, U = 1.3, 60 jobs", 1, 6, 1.3, 60),
    case("one-200", "1 core, 6 tasks, U = 1.3, 200 jobs", 1, 6, 1.3, 200),
    case("one-1000", "1 core, 10 tasks, U = 1.3, 1000 jobs", 1, 10, 1.3, 1000),
    case("one-10000", "1 core, 10 tasks, U = 1.3, 10000 jobs", 1, 10, 1.3, 10_000),
    OracleCase {
        name: "burst-60",
        about: "1 core, bursts of unrelated jobs, 60 jobs",
        cores: 1,
        tasks: None,
        load: 1.5,
        jobs: 60,
    },
    OracleCase {
        name: "burst-200",
        about: "1 core, bursts of unrelated jobs, 200 jobs",
        cores: 1,
        tasks: None,
        load: 1.5,
        jobs: 200,
    },
    case("two-40", "2 cores, 6 tasks, U = 2.4, 40 jobs", 2, 6, 1.2, 40),
    case("four-100", "4 cores, 12 tasks, U = 4.8, 100 jobs", 4, 12, 1.2, 100),
    case("eight-1000", "8 cores, 24 tasks, U = 9.6, 1000 jobs", 8, 24, 1.2, 1000),
    case("eight-10000", "8 cores, 100 tasks, U = 9.6, 10000 jobs", 8, 100, 1.2, 10_000),
];

#[derive(Serialize)]
struct Figures {
    name: &'static str,
    about: &'static str,
    instances: u64,
    median_ms: f64,
    max_ms: f64,
    /// Share of instances that were solved exactly.
    exact: f64,
    /// Mean of the gap, (upper − lower) / lower.
    gap_mean: f64,
    /// Greatest gap.
    gap_max: f64,
    /// Mean share of jobs in time in the best schedule found.
    met: f64,
}

pub fn run(args: Args) -> Result<()> {
    let chosen = super::chosen(CASES, |case| case.name, args.case.as_deref())?;
    if let Some(folder) = &args.write {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
        for case in chosen {
            for instance in 0..args.instances {
                let path = folder.join(format!("{}-{instance}.csv", case.name));
                let file = Output::claim(&path, Kind::BenchData, Replace::earlier_or(args.force))?;
                file.write(job_list(case, &jobs(case, instance)?))?;
            }
        }
        return Ok(());
    }
    let steps = (args.budget * STEPS_PER_SECOND) as u64;
    let mut cases = Vec::new();
    for case in chosen {
        if !args.json {
            output::say(&format!("{} …", case.about));
        }
        cases.push(measure(case, args.instances, steps)?);
    }
    if args.json {
        return output::print_json(&serde_json::json!({ "cases": cases }));
    }
    let header = ["case", "median", "longest", "exact", "gap", "greatest gap", "met"];
    let row = |figures: &Figures| {
        vec![
            figures.about.to_string(),
            format!("{:.2} ms", figures.median_ms),
            format!("{:.2} ms", figures.max_ms),
            format!("{:.0}%", 100.0 * figures.exact),
            format!("{:.3}%", 100.0 * figures.gap_mean),
            format!("{:.3}%", 100.0 * figures.gap_max),
            format!("{:.2}%", 100.0 * figures.met),
        ]
    };
    output::print(&table::render(&header, &cases.iter().map(row).collect::<Vec<_>>()))
}

fn measure(case: &OracleCase, instances: u64, steps: u64) -> Result<Figures> {
    let mut times = Vec::new();
    let mut found: Vec<(Optimum, usize)> = Vec::new();
    for instance in 0..instances {
        let jobs = jobs(case, instance)?;
        let begin = Instant::now();
        let optimum = optimum(&jobs, case.cores, steps);
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        found.push((optimum, jobs.len()));
    }
    times.sort_by(f64::total_cmp);
    let count = found.len() as f64;
    let gaps = || found.iter().map(|(optimum, _)| (optimum.upper - optimum.lower) / optimum.lower.max(1.0));
    Ok(Figures {
        name: case.name,
        about: case.about,
        instances,
        median_ms: times[times.len() / 2],
        max_ms: times[times.len() - 1],
        exact: found.iter().filter(|(optimum, _)| optimum.is_exact()).count() as f64 / count,
        gap_mean: gaps().sum::<f64>() / count,
        gap_max: gaps().fold(0.0, f64::max),
        met: found.iter().map(|(optimum, jobs)| optimum.lower / *jobs as f64).sum::<f64>() / count,
    })
}

/// Returns the first jobs of a random set, or bursts of unrelated jobs.
fn jobs(case: &OracleCase, instance: u64) -> Result<Vec<OracleJob>> {
    let Some(tasks) = case.tasks else { return Ok(bursts(case, instance)) };
    let set = generate(&Spec::new(tasks, case.cores, case.load * case.cores as f64), instance + 1)?;
    let mut horizon = Time::from_ms(100);
    loop {
        let mut jobs = equal_jobs(&set, 1, horizon);
        if jobs.len() >= case.jobs {
            jobs.sort_by_key(|job| (job.deadline, job.release));
            jobs.truncate(case.jobs);
            return Ok(jobs);
        }
        horizon = horizon * 2;
    }
}

/// Returns groups of ten jobs of 1 to 20 ms that are released together, with relative deadlines of up to 100 ms.
fn bursts(case: &OracleCase, instance: u64) -> Vec<OracleJob> {
    let mut rng = Pcg64::seed_from_u64(instance);
    let mean_ms = 10.5;
    let every = (mean_ms * 10.0 / case.load * 1e6) as u64;
    let job = |index: usize| {
        let release = Time(index as u64 / 10 * every);
        let execution = Time(rng.random_range(1_000_000..=20_000_000));
        let deadline = release + execution + Time(rng.random_range(0..=80_000_000));
        OracleJob { release, deadline, execution, weight: 1.0 }
    };
    (0..case.jobs).map(job).collect()
}

/// Renders jobs as a list of single jobs, which every command reads.
fn job_list(case: &OracleCase, jobs: &[OracleJob]) -> String {
    let mut out = format!("# {}\nname,release,execution,deadline\n", case.about);
    for (index, job) in jobs.iter().enumerate() {
        out += &format!("j{index},{},{},{}\n", job.release, job.execution, job.deadline);
    }
    out
}
