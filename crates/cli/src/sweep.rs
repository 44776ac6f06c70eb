//! `temponet sweep`: acceptance and compliance over many random sets, in parallel, resumable.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use temponet_lab::progress::Progress;
use temponet_lab::stats::percent;
use temponet_lab::sweep::{Summary, SweepPlan, SweepRow};
use temponet_sim::generate::Periods;
use temponet_task::Time;

use crate::compare::chosen;
use crate::generate::periods;
use crate::{output, table};

/// Random sets of rising load: which share does each scheduler meet?
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet sweep -o sweep.csv --plot sweep.svg\n  \
    temponet sweep --loads 0.6:1.4:0.1 --cores 4 --tasks 12 --sets 200 --schedulers edf,edzl,mh-edf,dp-wrap -o sweep.csv\n\n\
    The CSV is written set by set; started again with the same options, the command goes on where it stopped.")]
pub struct Args {
    /// Utilisations per core, FROM:TO:STEP
    #[arg(long, value_name = "RANGE", default_value = "0.5:1.5:0.1", value_parser = loads)]
    loads: Loads,
    /// Number of cores
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    cores: u16,
    /// Tasks per set
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// Sets per load
    #[arg(long, value_name = "K", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    sets: u64,
    /// Jobs per set, about
    #[arg(long, value_name = "J", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    jobs: u64,
    /// Schedulers, separated by commas, or all
    #[arg(long, value_name = "LIST", default_value = "edf,rm,llf,srpt,edf-skip,mh-edf,edzl,p-edf,dp-wrap")]
    schedulers: String,
    /// Seed of the sets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How periods are drawn, as in `temponet generate`
    #[arg(long, value_name = "RULE", default_value = "log:10ms,100ms", value_parser = periods)]
    periods: Periods,
    /// The CSV to write, or to go on with
    #[arg(short, long, value_name = "FILE.csv")]
    output: PathBuf,
    /// Draw both curves
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
struct Loads(Vec<f64>);

fn loads(text: &str) -> Result<Loads, String> {
    let parts: Vec<f64> = text.split(':').map_while(|part| part.parse().ok()).collect();
    match parts[..] {
        [from, to, step] if from > 0.0 && to >= from && step > 0.0 && (to - from) / step < 10_000.0 => {
            // Rounded, so that the loads read as they were written.
            let load = |index: usize| ((from + step * index as f64) * 1e6).round() / 1e6;
            Ok(Loads((0..).map(load).take_while(|load| *load <= to + 1e-9).collect()))
        }
        _ => Err("must be FROM:TO:STEP with 0 < FROM <= TO and a positive STEP, such as 0.5:1.5:0.1".into()),
    }
}

const HEADER: &str = "load,cores,tasks,set,scheduler,released,met";

pub fn run(args: Args) -> Result<()> {
    let mut plan = SweepPlan {
        loads: args.loads.0,
        cores: usize::from(args.cores),
        tasks: args.tasks as usize,
        sets: args.sets,
        jobs: args.jobs,
        schedulers: chosen(&args.schedulers)?,
        seed: args.seed,
        periods: args.periods,
    };
    for (name, why) in plan.drop_inapplicable()? {
        eprintln!("not run: {name} ({why})");
    }
    let mut rows = read_done(&args.output, &plan)?;
    // Only whole sets are kept, and the file begins with just them.
    output::write_file(
        &args.output,
        &rows.iter().fold(format!("{}\n{HEADER}\n", stamp(&plan)), |text, row| text + &line(&plan, row)),
    )?;
    let mut file = std::fs::File::options().append(true).open(&args.output)?;
    let done: std::collections::HashSet<(usize, u64)> = rows.iter().map(|row| (row.load, row.set)).collect();
    let cells = (0..plan.loads.len()).flat_map(|load| (0..plan.sets).map(move |set| (load, set)));
    let left: Vec<(usize, u64)> = cells.filter(|cell| !done.contains(cell)).collect();
    let progress = Progress::new(left.len() as u64, Time::from_secs(1));
    progress.say("sets");
    for chunk in left.chunks(CHUNK) {
        let outcomes: Result<Vec<Vec<SweepRow>>, _> = chunk
            .par_iter()
            .map(|(load, set)| {
                let outcome = plan.run_set(*load, *set);
                progress.advance(Time::from_secs(1));
                outcome
            })
            .collect();
        let new: Vec<SweepRow> = outcomes?.into_iter().flatten().collect();
        let text: String = new.iter().map(|row| line(&plan, row)).collect();
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", args.output.display()))?;
        rows.extend(new);
    }
    progress.finish();
    if let Some(path) = &args.plot {
        output::write_file(path, &plan.picture(&rows))?;
    }
    let summary = plan.summary(&rows);
    if args.json {
        return output::print_json(&json(&plan, &summary));
    }
    let mut out = String::new();
    for (title, value) in
        [("sets met completely", Summary::acceptance as fn(&Summary) -> f64), ("deadlines met", Summary::compliance)]
    {
        let header: Vec<String> =
            [title.to_string()].into_iter().chain(plan.loads.iter().map(|load| format!("U={load}"))).collect();
        let cells = |(name, points): &(String, Vec<Summary>)| -> Vec<String> {
            [name.clone()].into_iter().chain(points.iter().map(|point| percent(value(point)))).collect()
        };
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        out += &(table::render(&header, &summary.iter().map(cells).collect::<Vec<_>>()) + "\n");
    }
    output::print(&out)
}

/// Sets under way together; the file grows by so many at a time.
const CHUNK: usize = 64;

/// The options that decide what a row means; a file with others is not gone on with.
fn stamp(plan: &SweepPlan) -> String {
    let SweepPlan { jobs, seed, periods, schedulers, .. } = plan;
    format!("# temponet sweep: jobs {jobs}, seed {seed}, periods {periods:?}, schedulers {}", schedulers.join(" "))
}

fn line(plan: &SweepPlan, row: &SweepRow) -> String {
    let SweepRow { load, set, scheduler, released, met } = row;
    format!("{},{},{},{set},{scheduler},{released},{met}\n", plan.loads[*load], plan.cores, plan.tasks)
}

/// The whole sets of an earlier run of the same plan; nothing if there is no file.
fn read_done(path: &Path, plan: &SweepPlan) -> Result<Vec<SweepRow>> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(Vec::new()) };
    let name = path.display();
    if text.lines().next() != Some(stamp(plan).as_str()) {
        bail!("{name} exists and was not made with these options; remove it or name another file");
    }
    let load_index: HashMap<String, usize> =
        plan.loads.iter().enumerate().map(|(at, load)| (load.to_string(), at)).collect();
    let mut sets: std::collections::BTreeMap<(usize, u64), Vec<SweepRow>> = Default::default();
    // A line without its end was cut off; a number in it may be too.
    let whole_lines = text.rfind('\n').map_or("", |end| &text[..end]);
    for text in whole_lines.lines().skip(2) {
        let cells: Vec<&str> = text.split(',').collect();
        let row = match cells[..] {
            [load, cores, tasks, set, scheduler, released, met]
                if cores.parse() == Ok(plan.cores) && tasks.parse() == Ok(plan.tasks) =>
            {
                (|| {
                    let (load, set) = (*load_index.get(load)?, set.parse().ok()?);
                    let (released, met) = (released.parse().ok()?, met.parse().ok()?);
                    Some(SweepRow { load, set, scheduler: scheduler.into(), released, met })
                })()
            }
            _ => None,
        };
        // A point that is not asked for now is left out.
        if let Some(row) = row.filter(|row| row.set < plan.sets) {
            sets.entry((row.load, row.set)).or_default().push(row);
        }
    }
    Ok(sets.into_values().filter(|rows| rows.len() == plan.schedulers.len()).flatten().collect())
}

fn json(plan: &SweepPlan, summary: &[(String, Vec<Summary>)]) -> serde_json::Value {
    let point = |(load, summary): (&f64, &Summary)| {
        serde_json::json!({
            "load": load, "sets": summary.sets, "acceptance": summary.acceptance(), "compliance": summary.compliance(),
        })
    };
    let curve = |(name, points): &(String, Vec<Summary>)| {
        let points: Vec<_> = plan.loads.iter().zip(points).map(point).collect();
        serde_json::json!({ "scheduler": name, "points": points })
    };
    let curves: Vec<_> = summary.iter().map(curve).collect();
    serde_json::json!({ "cores": plan.cores, "tasks": plan.tasks, "seed": plan.seed, "curves": curves })
}
