//! `temponet sweep`: acceptance and compliance over many random task sets, computed in parallel and resumable.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use temponet_formats::read_bytes;
use temponet_lab::horizon::horizon_of;
use temponet_lab::progress::Progress;
use temponet_lab::roster::kind;
use temponet_lab::stats::percent;
use temponet_lab::sweep::{PointSummary, SweepPlan, SweepPoint, SweepRow, page};
use temponet_sim::generate::{Spec, text};
use temponet_task::Time;
use temponet_task::encoding::checksum;
use temponet_wording::counted;

use crate::bulk::{self, Wanted};
use crate::compare::chosen;
use crate::paths::{Kind, Output, Replace};
use crate::setup::{ModelArgs, SetupArgs};
use crate::shape::{ShapeArgs, positive_number};
use crate::{output, table};

/// Run schedulers on random task sets of rising load
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet sweep -o sweep.csv --plot sweep.svg\n  \
    temponet sweep --sets my-sets/ -o results.csv --plot results.svg\n  \
    temponet sweep --loads 0.6:1.4:0.1 --cores 2,4,8 --tasks 12,24 --sets 200 --schedulers edf,edzl,mh-edf,dp-wrap -o sweep.csv \
    --report sweep.html --parquet sweep.parquet\n\n\
    The CSV file grows by 64 sets at a time. Called again with the same options, the command continues where it stopped.")]
pub struct Args {
    /// Utilizations per core: FROM:TO:STEP, or a list separated by commas
    #[arg(long, value_name = "RANGE", default_value = LOADS, value_parser = loads)]
    loads: List<f64>,
    /// Numbers of cores, separated by commas
    #[arg(long, value_name = "LIST", default_value = "1", value_parser = cores)]
    cores: List<usize>,
    /// Numbers of tasks per set, separated by commas [default: 10; unc:… chooses its own, waters2015 takes about this
    /// many]
    #[arg(long, value_name = "LIST", value_parser = tasks)]
    tasks: Option<List<usize>>,
    /// Number of sets for each combination of load, cores and tasks; or a folder of task-set files, which are run in
    /// place of random ones
    #[arg(long, value_name = "K|FOLDER", default_value = "100", value_parser = sets)]
    sets: Sets,
    /// Approximate number of jobs per set
    #[arg(long, value_name = "J", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    jobs: u64,
    /// Schedulers to run, separated by commas, or all; temponet is the learned scheduler
    #[arg(long, value_name = "LIST", default_value = SCHEDULERS)]
    schedulers: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Seed of the random sets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Do not compute the clairvoyant optimum
    #[arg(long)]
    no_oracle: bool,
    /// Approximate time limit for the clairvoyant optimum of one set, in seconds of one core; beyond it, bounds are
    /// shown. The limit also bounds memory: a set may have at most 200 000 jobs plus 400 000 per second
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = positive_number, conflicts_with = "no_oracle")]
    oracle_budget: f64,
    /// CSV file to write or to continue
    #[arg(short, long, value_name = "FILE.csv")]
    output: PathBuf,
    /// Write the same rows as a Parquet file (only in a program built with the feature parquet)
    #[arg(long, value_name = "OUT.parquet")]
    parquet: Option<PathBuf>,
    /// Write the curves as an SVG picture, or as the page of --report
    #[arg(long, value_name = "OUT.svg|OUT.html")]
    plot: Option<PathBuf>,
    /// Write a self-contained HTML page with the curves and their figures
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Replace existing files of any kind and restart the sweep
    #[arg(long)]
    force: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// Schedulers that are run by default; on sets of a folder, the learned one as well.
const SCHEDULERS: &str = "edf,rm,llf,srpt,edf-skip,mh-edf,edzl,p-edf,dp-wrap";

/// Loads that are swept by default.
const LOADS: &str = "0.5:1.5:0.1";

fn default_loads() -> List<f64> {
    loads(LOADS).unwrap_or(List(Vec::new()))
}

/// Sets to sweep over.
#[derive(Clone)]
enum Sets {
    /// This many random ones at each point.
    Drawn(u64),
    /// Those of a folder.
    Folder(String),
}

fn sets(text: &str) -> Result<Sets, String> {
    match text.parse() {
        Ok(sets @ 1..=10_000_000) => Ok(Sets::Drawn(sets)),
        Err(_) if Path::new(text).is_dir() => Ok(Sets::Folder(text.into())),
        _ => Err("must be a whole number from 1 to 10000000, or a folder of task-set files".into()),
    }
}

#[derive(Clone)]
struct List<T>(Vec<T>);

fn list<T: std::str::FromStr>(text: &str, is_good: impl Fn(&T) -> bool) -> Option<List<T>> {
    let parse = |part: &str| part.trim().parse().ok().filter(&is_good);
    text.split(',').map(parse).collect::<Option<Vec<T>>>().map(List)
}

fn cores(text: &str) -> Result<List<usize>, String> {
    list(text, |cores| (1..=4096).contains(cores))
        .ok_or_else(|| "must be whole numbers from 1 to 4096, such as 2,4,8".into())
}

fn tasks(text: &str) -> Result<List<usize>, String> {
    list(text, |tasks| (1..=100_000).contains(tasks))
        .ok_or_else(|| "must be whole numbers from 1 to 100000, such as 10,20".into())
}

fn loads(text: &str) -> Result<List<f64>, String> {
    let parts: Vec<f64> = text.split(':').map_while(|part| part.parse().ok()).collect();
    match parts[..] {
        [from, to, step] if from > 0.0 && to >= from && step > 0.0 && (to - from) / step < 10_000.0 => {
            // Rounding makes the loads read as they were written.
            let load = |index: usize| ((from + step * index as f64) * 1e6).round() / 1e6;
            Ok(List((0..).map(load).take_while(|load| *load <= to + 1e-9).collect()))
        }
        _ => list(text, |load: &f64| *load > 0.0 && load.is_finite()).ok_or_else(|| {
            "must be FROM:TO:STEP with 0 < FROM <= TO and a positive STEP, such as 0.5:1.5:0.1, or a list".into()
        }),
    }
}

impl Args {
    /// Runs the schedulers on the sets of a folder.
    fn run_folder(&self, folder: &str) -> Result<()> {
        let shape = text::described(&self.shape.spec(Some(10), 1, 1.0)?);
        let is_shaped = shape != text::described(&Spec::new(10, 1, 1.0));
        let drawing = [
            (self.loads.0 != default_loads().0, "--loads"),
            (self.cores.0 != [1], "--cores"),
            (self.tasks.is_some(), "--tasks"),
            (is_shaped, "a shape such as --method or --periods"),
            (self.parquet.is_some(), "--parquet"),
            (self.report.is_some(), "--report"),
        ];
        if let Some((_, option)) = drawing.into_iter().find(|(is_given, _)| *is_given) {
            bail!("{option} is for random sets, and --sets {folder} has its own");
        }
        let roster = self.model.roster()?;
        let with_learned = format!("{SCHEDULERS},temponet");
        let list = if self.schedulers == SCHEDULERS { &with_learned } else { &self.schedulers };
        let mut schedulers: Vec<String> = chosen(list, &roster)?;
        schedulers.iter_mut().for_each(|name| *name = self.model.scheduler(name).into());
        bulk::run(Wanted {
            origins: &[folder.to_string()],
            setup: &SetupArgs { seed: Some(self.seed), ..SetupArgs::default() },
            horizon: &|set| horizon_of(set, self.jobs as f64),
            runs: None,
            schedulers,
            roster,
            oracle: (!self.no_oracle).then_some(self.oracle_budget),
            csv: Some(&self.output),
            plot: self.plot.as_deref(),
            force: self.force,
            json: self.json,
            all: true,
        })
    }

    fn plan(&self, sets: u64) -> Result<SweepPlan> {
        let tasks: Vec<Option<usize>> = match &self.tasks {
            Some(tasks) => tasks.0.iter().copied().map(Some).collect(),
            None if self.shape.counts_tasks() => vec![None],
            None => vec![Some(10)],
        };
        let mut points = Vec::new();
        for cores in &self.cores.0 {
            for tasks in &tasks {
                for load in &self.loads.0 {
                    points
                        .push(SweepPoint { load: *load, spec: self.shape.spec(*tasks, *cores, load * *cores as f64)? });
                }
            }
        }
        let roster = self.model.roster()?;
        let mut schedulers: Vec<String> = Vec::new();
        for name in chosen(&self.schedulers, &roster)? {
            let name = self.model.scheduler(&name);
            if !schedulers.iter().any(|known| known == name) {
                schedulers.push(name.into());
            }
        }
        let oracle = (!self.no_oracle).then_some(self.oracle_budget);
        Ok(SweepPlan { points, sets, jobs: self.jobs, schedulers, roster, seed: self.seed, oracle })
    }
}

/// First line of the file. The last column says which options the row was made with, so that any program reads the file
/// as it is, and a sweep with other options does not continue it.
const HEADER: &str = "load,cores,tasks,set,scheduler,released,met,options";

pub fn run(args: Args) -> Result<()> {
    let plan = match &args.sets {
        Sets::Folder(folder) => return args.run_folder(folder),
        Sets::Drawn(sets) => args.plan(*sets)?,
    };
    let table = Output::claim(&args.output, Kind::Sweep, Replace::earlier_or(args.force))?;
    #[cfg(not(feature = "parquet"))]
    if args.parquet.is_some() {
        bail!(
            "--parquet: this program was built without Parquet; build it with `--features parquet`, or convert the CSV"
        );
    }
    #[cfg(feature = "parquet")]
    let parquet = Output::wanted(args.parquet.as_deref(), Kind::Parquet, args.force)?;
    let plot = Output::wanted(args.plot.as_deref(), Kind::PictureOrPage, args.force)?;
    let report = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    let applicable = applicable(&plan)?;
    let schedulers_at = |point: usize| &applicable[&plan.points[point].spec.cores];
    let optimum_rows = plan.names().len() - plan.schedulers.len();
    // With --force an earlier sweep is not continued.
    let before = table.ordinary().filter(|_| !args.force);
    let mut rows = read_done(before, &plan, |point| schedulers_at(point).len() + optimum_rows)?;
    let (names, options) = (plan.names(), options(&plan));
    let line = |row: &SweepRow| line(&plan, &names, &options, row);
    // Incomplete sets are dropped: the file restarts with the complete ones.
    let kept = rows.iter().fold(format!("{HEADER}\n"), |text, row| text + &line(row));
    table.write(kept)?;
    let mut file = std::fs::File::options().append(true).open(&args.output)?;
    let left = remaining(&plan, &rows);
    let progress = Progress::new(left.len() as u64, Time::from_secs(1));
    progress.say("sets");
    for chunk in left.chunks(CHUNK) {
        let one = |(point, set): &(usize, u64)| {
            let outcome = plan.run_set(*point, *set, schedulers_at(*point));
            progress.advance(Time::from_secs(1));
            outcome
        };
        let outcomes: Result<Vec<Vec<SweepRow>>, _> = chunk.par_iter().map(one).collect();
        let new: Vec<SweepRow> = outcomes?.into_iter().flatten().collect();
        let text: String = new.iter().map(line).collect();
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", args.output.display()))?;
        rows.extend(new);
    }
    progress.finish();
    #[cfg(feature = "parquet")]
    if let Some(file) = parquet {
        file.write(temponet_lab::sweep::parquet(&plan, &rows)?)?;
    }
    if let Some(file) = plot {
        match file.is_page() {
            true => file.write(page(&plan, &rows))?,
            false => file.write(plan.picture(&rows).file())?,
        }
    }
    if let Some(file) = report {
        file.write(page(&plan, &rows))?;
    }
    let summary = plan.summary(&rows);
    if args.json {
        return output::print_json(&plan.json(&summary));
    }
    output::print(&tables(&plan, &summary))
}

/// Returns the indices of the applicable schedulers by number of cores, and tells the user about the others.
fn applicable(plan: &SweepPlan) -> Result<BTreeMap<usize, Vec<usize>>> {
    let (applicable, refused) = plan.applicable()?;
    for (cores, name, why) in refused {
        output::say(&format!("not run on {}: {name} ({why})", counted(cores, "core")));
    }
    Ok(applicable)
}

/// Returns the point and number of each set that has no rows yet.
fn remaining(plan: &SweepPlan, rows: &[SweepRow]) -> Vec<(usize, u64)> {
    let done: HashSet<(usize, u64)> = rows.iter().map(|row| (row.point, row.set)).collect();
    let cells = (0..plan.points.len()).flat_map(|point| (0..plan.sets).map(move |set| (point, set)));
    cells.filter(|cell| !done.contains(cell)).collect()
}

/// Number of sets that run together and are then appended to the file.
const CHUNK: usize = 64;

/// Renders acceptance and compliance for each number of cores and tasks, with a column for each load.
fn tables(plan: &SweepPlan, summary: &[Vec<PointSummary>]) -> String {
    let mut groups: BTreeMap<(usize, Option<usize>), Vec<usize>> = BTreeMap::new();
    for (index, point) in plan.points.iter().enumerate() {
        groups.entry((point.spec.cores, point.spec.tasks)).or_default().push(index);
    }
    let mut out = String::new();
    let names = plan.names();
    for ((cores, tasks), points) in &groups {
        if groups.len() > 1 {
            out += &format!(
                "{}{}\n\n",
                counted(*cores, "core"),
                tasks.map_or(String::new(), |tasks| format!(", {}", counted(tasks, "task")))
            );
        }
        for (title, value) in PointSummary::KINDS {
            let loads = points.iter().map(|point| format!("U={}", plan.points[*point].load));
            let header: Vec<String> = [title.to_lowercase()].into_iter().chain(loads).collect();
            let cell = |summary: &PointSummary| if summary.sets > 0 { percent(value(summary)) } else { "–".into() };
            let row = |(name, of): (&String, &Vec<PointSummary>)| -> Vec<String> {
                [name.clone()].into_iter().chain(points.iter().map(|point| cell(&of[*point]))).collect()
            };
            let header: Vec<&str> = header.iter().map(String::as_str).collect();
            let rows: Vec<Vec<String>> = names.iter().zip(summary).map(row).collect();
            out += &(table::render_fitting(&header, &rows, 1) + "\n");
        }
    }
    out
}

/// Number of digits that tell options apart.
const DIGITS: usize = 16;

/// Returns digits that stand for the options which determine the meaning of a row.
fn options(plan: &SweepPlan) -> String {
    let SweepPlan { jobs, seed, points, oracle, .. } = plan;
    // The swept parameters are in the rows.
    let spec = points.first().map(|point| {
        let mut spec = point.spec.clone();
        (spec.tasks, spec.cores, spec.utilization) = (None, 0, 0.0);
        spec
    });
    let names = plan.names().join(" ");
    let oracle = oracle.map_or("none".into(), |seconds| format!("{seconds} s"));
    // Two sweeps draw the same sets if all other parameters are equal; the checksum identifies the model.
    let spec = spec.map_or(String::new(), |spec| text::described(&spec));
    let learned = plan.roster.model.as_ref().filter(|_| plan.schedulers.iter().any(|name| !kind(name).is_classical()));
    let model = learned.and_then(|model| model.checksum().ok()).map_or(String::new(), |sum| format!(", model {sum}"));
    let text = format!("jobs {jobs}, seed {seed}, schedulers {names}, oracle {oracle}, {spec}{model}");
    checksum(text.as_bytes())[..DIGITS].into()
}

/// Returns the first three cells of a row: load, cores and tasks.
fn place(point: &SweepPoint) -> String {
    let tasks = point.spec.tasks.map_or(String::new(), |tasks| tasks.to_string());
    format!("{},{},{tasks}", point.load, point.spec.cores)
}

fn line(plan: &SweepPlan, names: &[String], options: &str, row: &SweepRow) -> String {
    let SweepRow { point, set, scheduler, released, met } = *row;
    format!("{},{set},{},{released},{met},{options}\n", place(&plan.points[point]), names[scheduler])
}

/// Reads the complete sets of an earlier run of the same plan; empty if there is no file.
fn read_done(path: Option<&Path>, plan: &SweepPlan, schedulers_at: impl Fn(usize) -> usize) -> Result<Vec<SweepRow>> {
    let Some(path) = path.filter(|path| path.exists()) else { return Ok(Vec::new()) };
    let bytes = read_bytes(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let options = options(plan);
    // A last line without its end may be cut off in the middle of a number.
    let whole_lines = text.rfind('\n').map_or("", |end| &text[..end]);
    let is_ours = |line: &str| line.rsplit_once(',').is_some_and(|(_, of)| of == options);
    if whole_lines.lines().next() != Some(HEADER) || !whole_lines.lines().skip(1).all(is_ours) {
        bail!(
            "{} exists and was not made with these options; remove it, name another file, or begin anew with --force",
            path.display()
        );
    }
    let points: HashMap<String, usize> = plan.points.iter().enumerate().map(|(at, point)| (place(point), at)).collect();
    let names = plan.names();
    let mut sets: BTreeMap<(usize, u64), Vec<SweepRow>> = BTreeMap::new();
    for line in whole_lines.lines().skip(1) {
        let parse = || {
            let cells: Vec<&str> = line.split(',').collect();
            let [load, cores, tasks, set, scheduler, released, met, _options] = cells[..] else { return None };
            let point = *points.get(&format!("{load},{cores},{tasks}"))?;
            let scheduler = names.iter().position(|name| name == scheduler)?;
            let (set, released, met) = (set.parse().ok()?, released.parse().ok()?, met.parse().ok()?);
            Some(SweepRow { point, set, scheduler, released, met })
        };
        let Some(row) = parse().filter(|row| row.set < plan.sets) else {
            bail!(
                "{}: the row {line:?} is not of this sweep and would be lost; sweep at least what the file has, name another file, or begin anew \
                 with --force",
                path.display()
            );
        };
        sets.entry((row.point, row.set)).or_default().push(row);
    }
    Ok(sets.into_values().filter(|rows| rows.len() == schedulers_at(rows[0].point)).flatten().collect())
}
