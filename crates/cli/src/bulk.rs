//! Many sets of one's own, for `temponet compare a.toml b.toml …` and `temponet sweep --sets FOLDER`: a row for each
//! set, then a row for each scheduler, with acceptance by test beside acceptance by simulation.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use temponet_formats::Format;
use temponet_lab::bulk::json::JsonBulk;
use temponet_lab::bulk::{Acceptance, Bulk, BulkPlan, BulkRow, BulkSet, ByTest, Simulated, picture, run as run_all};
use temponet_lab::roster::{Roster, is_baseline, kind};
use temponet_lab::stats::{percent, points};
use temponet_sched::Kind as SchedulerKind;
use temponet_sim::labels;
use temponet_sim::statistics::Interval;
use temponet_task::{Goal, TaskSet, Time};
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
    for file in [wanted.csv, wanted.plot].into_iter().flatten() {
        refuse_within(wanted.origins, file)?;
    }
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

/// Refuses to write a file that the next call would take for a set: one in a folder of sets, with the name of a set.
fn refuse_within(folders: &[String], file: &Path) -> Result<()> {
    let parent = file.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let folder = parent.and_then(|parent| parent.canonicalize().ok());
    let is_meant = |origin: &&String| folder.is_some() && Path::new(origin).canonicalize().ok() == folder;
    match folders.iter().find(is_meant).filter(|_| Format::of(file).is_some()) {
        Some(origin) => bail!(
            "{} would lie among the sets of {origin} and be read as one of them the next time; name a file elsewhere",
            file.display()
        ),
        None => Ok(()),
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

/// Whether a path is a folder of task sets, and not one of a trace.
pub fn is_folder_of_sets(path: &Path) -> bool {
    path.is_dir() && !temponet_traces::is_trace(path)
}

/// Returns the files and built-in sets, with those of folders in the order of their names, and whether each is from a
/// folder.
fn expanded(origins: &[String]) -> Result<Vec<(String, bool)>> {
    let mut all = Vec::new();
    for origin in origins {
        let path = Path::new(origin);
        if !is_folder_of_sets(path) {
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
    if bulk.has_other_goals() {
        out += "\nFigures of a set: the measures of its goal, the most important first.\n";
    }
    out += &format!(
        "\nSets: {many}, of which a test proves {proved} schedulable and {impossible} impossible for any scheduler at the wcet; open: {}.\n\
         place: mean over the sets of the place by the set's goal; met all: share of the sets without a miss in these runs, with its\n\
         95% interval; deadlines met: mean over the sets.\n",
        many - proved - impossible
    );
    out
}

/// Renders the row of each set.
fn of_sets(bulk: &Bulk) -> String {
    let place = |is_meant: fn(&str) -> bool| bulk.plan.schedulers.iter().position(|name| is_meant(name));
    let (edf, learned) = (place(is_baseline), place(|name| kind(name) == SchedulerKind::Learned));
    let has_goals = bulk.has_other_goals();
    let mut header = vec!["set", "tasks", "cores", "load"];
    header.extend(has_goals.then_some("goal"));
    header.push("proved by test for");
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
            figures(result) + &decider
        };
        let by_test = match &row.by_test {
            ByTest::Proved(proved) => listed(proved.iter().map(String::as_str), MOST_PROVED),
            ByTest::Impossible => "nobody: impossible".into(),
            ByTest::Open => "–".into(),
        };
        let (tasks, cores) = (of.set.task_count().to_string(), of.set.cores().to_string());
        let mut cells = vec![of.origin.clone(), tasks, cores, format!("{:.2}", of.load())];
        cells.extend(has_goals.then(|| goal(of.set.goal())));
        cells.push(by_test);
        cells.extend(edf.map(share));
        cells
            .push(row.best_classical().map_or("–".into(), |(index, result)| {
                format!("{} {}", bulk.plan.schedulers[index], figures(result))
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

/// Names the measures of a goal: "critical 2, critical 1, met".
fn goal(goal: &Goal) -> String {
    let names: Vec<String> = goal.measures().iter().map(|measure| labels::measure(goal, *measure)).collect();
    names.join(", ")
}

/// Shares in the measures of the set's goal.
fn figures(result: &Simulated) -> String {
    result.goal.iter().map(|share| percent(*share)).collect::<Vec<String>>().join(", ")
}

/// Renders the row of each scheduler, the best first.
fn of_schedulers(bulk: &Bulk, all: bool) -> String {
    let found = bulk.ranked();
    let is_complete = |of: &Acceptance| of.sets == bulk.rows.len();
    let is_shown = |place: usize, name: &str| all || place < MOST_SHOWN || is_baseline(name);
    let row = |(index, of): &(usize, Acceptance)| {
        let name = bulk.plan.schedulers[*index].clone();
        let Interval { low, high } = of.interval;
        let error = of.ci95.map_or(String::new(), |half| match 2.0 * half < 1.0 {
            true => format!(" ± {}", points(half)),
            false => " (too few sets)".into(),
        });
        vec![
            if is_complete(of) { name } else { name + "*" },
            of.sets.to_string(),
            format!("{:.1}", of.place),
            of.proved.to_string(),
            of.met_all.to_string(),
            format!("{:.0}–{:.0}%", 100.0 * low, 100.0 * high),
            percent(of.compliance) + &error,
        ]
    };
    let shown: Vec<Vec<String>> = found
        .iter()
        .enumerate()
        .filter(|(place, (index, _))| is_shown(*place, &bulk.plan.schedulers[*index]))
        .map(|(_, found)| row(found))
        .collect();
    let header = ["scheduler", "sets", "place", "proved", "met all", "95% interval", "deadlines met"];
    let mut out = table::render(&header, &shown);
    if found.iter().any(|(_, of)| !is_complete(of)) {
        out += "* did not run on every set, so that its figures do not compare with the others'\n";
    }
    if let Some(more) = found.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        out += &format!("({} more: --all shows them)\n", counted(more, "scheduler"));
    }
    out
}
