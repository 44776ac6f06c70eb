//! Many sets of one's own, for `temponet compare a.toml b.toml …` and `temponet sweep --sets FOLDER`: a row for each
//! set, then a row for each scheduler, with acceptance by test beside acceptance by simulation.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use temponet_formats::Format;
use temponet_lab::bulk::json::JsonBulk;
use temponet_lab::bulk::{Acceptance, Bulk, BulkPlan, BulkRow, BulkSet, ByTest, picture, run as run_all};
use temponet_lab::roster::{Roster, is_baseline, kind};
use temponet_lab::stats::{percent, points};
use temponet_sched::Kind as SchedulerKind;
use temponet_sim::statistics::Interval;
use temponet_task::{TaskSet, Time};
use temponet_wording::{counted, listed};

use crate::paths::{Kind, Output};
use crate::setup::{SetupArgs, load};
use crate::{output, table};

/// What to run on many sets.
pub struct Wanted<'a> {
    /// Files, built-in sets, and folders of files.
    pub origins: &'a [String],
    pub setup: &'a SetupArgs,
    /// Length of a run of a set.
    pub horizon: &'a dyn Fn(&TaskSet) -> Time,
    pub runs: Option<u64>,
    pub schedulers: Vec<String>,
    pub roster: Roster,
    pub oracle: Option<f64>,
    pub csv: Option<&'a Path>,
    pub plot: Option<&'a Path>,
    pub force: bool,
    pub json: bool,
    /// Whether to show every scheduler.
    pub all: bool,
}

/// Default number of runs of a set in which anything is random.
const RUNS: u64 = 10;
/// Number of schedulers that are shown.
const MOST_SHOWN: usize = 10;
/// Number of proved schedulers that are named for each set.
const MOST_PROVED: usize = 2;

pub fn run(wanted: Wanted<'_>) -> Result<()> {
    let sets = sets(&wanted)?;
    let csv = Output::wanted(wanted.csv, Kind::Bulk, wanted.force)?;
    let plot = Output::wanted(wanted.plot, Kind::Picture, wanted.force)?;
    let Wanted { schedulers, roster, oracle, setup, .. } = wanted;
    let bulk = run_all(BulkPlan { sets, seed: setup.seed(), schedulers, roster, oracle })?;
    for (file, content) in [(csv, bulk.csv()), (plot, picture(&bulk).file())] {
        let Some(file) = file else { continue };
        file.write(content)?;
        output::say(&format!("written: {}", file.path().display()));
    }
    match wanted.json {
        true => output::print_json(&JsonBulk::of(&bulk)),
        false => output::print(&text(&bulk, wanted.all)),
    }
}

/// Reads every set. The error names all files that cannot be used.
fn sets(wanted: &Wanted<'_>) -> Result<Vec<BulkSet>> {
    let (mut sets, mut wrong, mut used) = (Vec::new(), Vec::new(), HashSet::new());
    for (origin, is_listed) in expanded(wanted.origins)? {
        let read = load(&origin).and_then(|loaded| Ok((wanted.setup.applied(loaded.set)?, loaded.files)));
        match read {
            Ok((set, files)) => {
                let runs = wanted.runs.unwrap_or(if set.is_random() { RUNS } else { 1 });
                used.extend(files.into_iter().filter_map(|file| file.canonicalize().ok()));
                sets.push(BulkSet { horizon: (wanted.horizon)(&set), origin, set, runs });
            }
            Err(error) => wrong.push((origin, is_listed, format!("{error:#}"))),
        }
    }
    // A folder may hold files that its sets refer to, such as measured times.
    wrong.retain(|(origin, is_listed, _)| {
        let is_used = Path::new(origin).canonicalize().is_ok_and(|path| used.contains(&path));
        !(*is_listed && is_used)
    });
    match wrong.as_slice() {
        [] => Ok(sets),
        [(.., error)] => bail!("{error}"),
        _ => {
            let lines: Vec<&str> = wrong.iter().map(|(.., error)| error.as_str()).collect();
            bail!("{} cannot be used: {}", counted(wrong.len(), "set"), lines.join("; "))
        }
    }
}

/// Returns the files and built-in sets, with those of folders in the order of their names, and whether each is from a
/// folder.
fn expanded(origins: &[String]) -> Result<Vec<(String, bool)>> {
    let mut all = Vec::new();
    for origin in origins {
        let path = Path::new(origin);
        if !path.is_dir() {
            all.push((origin.clone(), false));
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {origin}"))?;
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>();
        let mut paths = paths.with_context(|| format!("cannot read {origin}"))?;
        paths.retain(|path| path.is_file() && Format::of(path).is_some());
        paths.sort();
        if paths.is_empty() {
            bail!("{origin} has no task-set file (.toml, .csv, .json or .xml)");
        }
        all.extend(paths.into_iter().map(|path| (path.display().to_string(), true)));
    }
    Ok(all)
}

fn text(bulk: &Bulk, all: bool) -> String {
    let (proved, impossible) = bulk.by_test();
    let many = bulk.rows.len();
    let mut out = of_sets(bulk) + "\n" + &of_schedulers(bulk, all);
    out += &format!(
        "\nSets: {many}, of which a test proves {proved} schedulable and {impossible} impossible for any scheduler at the wcet; open: {}.\n\
         met all: share of the sets without a miss in these runs, with its 95% interval; deadlines met: mean over the sets.\n",
        many - proved - impossible
    );
    out
}

/// Renders the row of each set.
fn of_sets(bulk: &Bulk) -> String {
    let place = |is_meant: fn(&str) -> bool| bulk.plan.schedulers.iter().position(|name| is_meant(name));
    let (edf, learned) = (place(is_baseline), place(|name| kind(name) == SchedulerKind::Learned));
    let mut header = vec!["set", "tasks", "cores", "load", "proved by test for"];
    header.extend(edf.map(|_| "edf"));
    header.push("best classical");
    header.extend(learned.map(|_| "temponet"));
    header.extend(bulk.plan.oracle.map(|_| "optimum"));
    let row = |(of, row): (&BulkSet, &BulkRow)| {
        let share = |index: usize| {
            let Some(result) = &row.results[index] else { return "–".into() };
            // Options of the one who decides are in JSON.
            let name = result.decider.as_ref().and_then(|decider| decider.split(':').next());
            let decider = name.map_or(String::new(), |name| format!(" ({name})"));
            percent(result.share()) + &decider
        };
        let by_test = match &row.by_test {
            ByTest::Proved(proved) => listed(proved.iter().map(String::as_str), MOST_PROVED),
            ByTest::Impossible => "nobody: impossible".into(),
            ByTest::Open => "–".into(),
        };
        let (tasks, cores) = (of.set.task_count().to_string(), of.set.cores().to_string());
        let mut cells = vec![of.origin.clone(), tasks, cores, format!("{:.2}", of.load()), by_test];
        cells.extend(edf.map(share));
        cells.push(row.best_classical().map_or("–".into(), |(index, result)| {
            format!("{} {}", bulk.plan.schedulers[index], percent(result.share()))
        }));
        cells.extend(learned.map(share));
        cells.extend(bulk.plan.oracle.map(|_| match row.optimum {
            Some((_, upper)) if row.optimum_is_exact => percent(upper),
            Some((_, upper)) => format!("≤ {}", percent(upper)),
            None => "–".into(),
        }));
        cells
    };
    let rows: Vec<Vec<String>> = bulk.plan.sets.iter().zip(&bulk.rows).map(row).collect();
    table::render(&header, &rows)
}

/// Renders the row of each scheduler, the best first.
fn of_schedulers(bulk: &Bulk, all: bool) -> String {
    let mut found: Vec<(&String, Acceptance)> = bulk.plan.schedulers.iter().zip(bulk.acceptances()).collect();
    found.retain(|(_, of)| of.sets > 0);
    found.sort_by(|(_, a), (_, b)| b.compliance.total_cmp(&a.compliance).then(b.met_all.cmp(&a.met_all)));
    let is_shown = |place: usize, name: &str| all || place < MOST_SHOWN || is_baseline(name);
    let row = |(name, of): &(&String, Acceptance)| {
        let Interval { low, high } = of.interval;
        let error = of.ci95.map_or(String::new(), |half| match 2.0 * half < 1.0 {
            true => format!(" ± {}", points(half)),
            false => " (too few sets)".into(),
        });
        vec![
            name.to_string(),
            of.sets.to_string(),
            of.proved.to_string(),
            of.met_all.to_string(),
            format!("{:.0}–{:.0}%", 100.0 * low, 100.0 * high),
            percent(of.compliance) + &error,
        ]
    };
    let shown: Vec<Vec<String>> = found
        .iter()
        .enumerate()
        .filter(|(place, (name, _))| is_shown(*place, name))
        .map(|(_, found)| row(found))
        .collect();
    let header = ["scheduler", "sets", "proved", "met all", "95% interval", "deadlines met"];
    let mut out = table::render(&header, &shown);
    if let Some(more) = found.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        out += &format!("({} more: --all shows them)\n", counted(more, "scheduler"));
    }
    out
}
