//! `temponet reproduce`: the paper's experiments, our figures beside the claimed ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use temponet_cli::paths::{Kind, Output};
use temponet_cli::setup::ModelArgs;
use temponet_cli::{ExtraCommand, output, table};
use temponet_train::TrainingDevice;

use crate::{
    ALL, Cache, DeviceTrainer, Experiment, Findings, Line, Mode, Part, Planned, RIVALS, Trainer, Verdict, page,
};
use temponet_wording::counted;

/// Run the paper's experiments and compare the figures
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  temponet reproduce E1\n  temponet reproduce E2 E18 --report out.html\n  \
    temponet reproduce all --quick --json\n  temponet reproduce all --full --report full.html\n  \
    temponet reproduce rivals --models my-models --report rivals.html\n\n\
    Results are cached. A second call, or a call after an interruption, runs only what is missing.\n\
    docs/reproduction.md explains the figures.")]
pub struct Reproduce {
    /// Experiments to run, such as E1 E18, or all [default: list the experiments]
    #[arg(value_name = "ID")]
    experiments: Vec<String>,
    /// Run few sets and seeds, and mark figures that are mere noise; all take over an hour of one core [default]
    #[arg(long, conflicts_with_all = ["full", "smallest"])]
    quick: bool,
    /// Run the full extent, which takes days of processor time; --plan says what it trains
    #[arg(long, conflicts_with = "smallest")]
    full: bool,
    /// Run the least possible, to test that everything works
    #[arg(long, hide = true)]
    smallest: bool,
    #[command(flatten)]
    model: ModelArgs,
    /// Folder for findings and trained models [default: temponet in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Folder with models of rivals, NAME.safetensors, that take the place of the built-in ones (for the experiment
    /// rivals)
    #[arg(long, value_name = "FOLDER")]
    models: Option<PathBuf>,
    /// Device for training: cpu (the fastest for networks this small), cuda, or auto for a GPU if there is one
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = ["auto", "cpu", "cuda"])]
    device: String,
    /// Train many networks at once on the GPU, eight for each core, which compute together
    #[arg(long)]
    together: bool,
    /// Run experiments again even if their findings are cached, and replace any existing report; trained models are
    /// kept
    #[arg(long)]
    force: bool,
    /// Print the trainings that the experiments need, the most important first, and run nothing
    #[arg(long, conflicts_with_all = ["train", "report", "markdown"])]
    plan: bool,
    /// Time a few updates of each kind of training on the device, and say how many hours the plan takes there, one
    /// training at a time
    #[arg(long, requires = "plan")]
    hours: bool,
    /// Carry out the trainings of the plan that the cache does not have, and no experiment
    #[arg(long, conflicts_with_all = ["report", "markdown", "json"])]
    train: bool,
    /// Carry out one of N parts of the plan with --train, K from 1 to N, so that N processes with the same experiments and
    /// the same cache share the trainings, as research/train-beside does on one GPU
    #[arg(long, value_name = "K/N", requires = "train")]
    part: Option<Part>,
    /// Greatest number of trainings that --train carries out [default: all]
    #[arg(long, value_name = "COUNT", requires = "train")]
    most: Option<usize>,
    /// Write a self-contained HTML page with all figures and pictures
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

impl ExtraCommand for Reproduce {
    const NAME: &'static str = "reproduce";

    fn run(self) -> Result<()> {
        if self.experiments.is_empty() {
            return list();
        }
        let chosen = chosen(&self.experiments)?;
        let mode = match (self.full, self.smallest) {
            (true, _) => Mode::Full,
            (_, true) => Mode::Smallest,
            _ => Mode::Quick,
        };
        if let Some(folder) = self.models.as_ref().filter(|folder| !folder.is_dir()) {
            bail!("--models {}: there is no such folder", folder.display());
        }
        let roster = self.model.roster()?;
        let cache = Cache::open(&self.cache.clone().unwrap_or_else(Cache::default_folder))?
            .with_models(self.models.clone())
            .anew(self.force);
        let trainer = trainer(&self.device, self.together)?;
        if self.plan || self.train {
            let chosen = crate::by_importance(chosen);
            return match self.plan {
                true => {
                    let all = crate::plan(&chosen, mode, &roster, &cache, &*trainer)?;
                    let hours = if self.hours { Some(crate::hours(&all, &*trainer)?) } else { None };
                    print_plan(&all, hours.as_deref(), self.json)
                }
                false => {
                    let most = self.most.unwrap_or(usize::MAX);
                    let part = self.part.unwrap_or(Part::WHOLE);
                    let left = crate::train(&chosen, mode, &roster, &cache, &*trainer, part, most)?;
                    let of_plan = counted(left.of_plan, "training");
                    output::print(&match part {
                        Part::WHOLE => format!("{of_plan} left\n"),
                        _ => format!("{} left in this part, {of_plan} in all\n", counted(left.of_part, "training")),
                    })
                }
            };
        }
        // The output is claimed first, so that a path that cannot be written does not waste hours.
        let report_file = Output::wanted(self.report.as_deref(), Kind::Page, self.force)?;
        let mut all = Vec::new();
        for experiment in chosen {
            let known = if self.force { None } else { crate::cached(experiment, mode, &roster, &cache) };
            let findings = match known {
                Some(findings) => {
                    output::say(&format!("{}: known", experiment.id));
                    findings
                }
                None => {
                    let findings = crate::run(experiment, mode, &roster, &cache, &*trainer)?;
                    output::say(&format!("{}: {:.1} s", experiment.id, findings.seconds));
                    findings
                }
            };
            all.push(findings);
        }
        if let Some(file) = report_file {
            file.write(page::html(&all))?;
        }
        if self.json {
            return output::print_json(&JsonReport::of(mode, &all));
        }
        output::print(&if self.markdown { markdown(&all) } else { text(&all) })?;
        if let Some(path) = &self.report {
            output::say(&format!("report: {}", path.display()));
        }
        Ok(())
    }
}

/// Trainings of an experiment, counted.
#[derive(Default, Serialize)]
struct PlanRow {
    experiment: &'static str,
    trainings: usize,
    updates: u64,
    /// How many of them the cache has.
    done: usize,
    updates_left: u64,
    /// Hours of one device for those that are left, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    hours_left: Option<f64>,
}

impl PlanRow {
    fn add(&mut self, planned: &Planned, hours: Option<f64>) {
        if let Some(hours) = hours {
            *self.hours_left.get_or_insert(0.0) += if planned.is_done { 0.0 } else { hours };
        }
        let updates = planned.updates();
        self.trainings += 1;
        self.updates += updates;
        self.done += usize::from(planned.is_done);
        self.updates_left += if planned.is_done { 0 } else { updates };
    }

    fn cells(&self) -> Vec<String> {
        let PlanRow { experiment, trainings, updates, done, updates_left, hours_left } = self;
        let mut cells = vec![
            experiment.to_string(),
            trainings.to_string(),
            updates.to_string(),
            done.to_string(),
            updates_left.to_string(),
        ];
        cells.extend(hours_left.map(|hours| format!("{hours:.1}")));
        cells
    }
}

fn print_plan(all: &[Planned], hours: Option<&[f64]>, json: bool) -> Result<()> {
    let mut rows: Vec<PlanRow> = Vec::new();
    let mut total = PlanRow { experiment: "all", ..PlanRow::default() };
    for (place, planned) in all.iter().enumerate() {
        let hours = hours.and_then(|hours| hours.get(place)).copied();
        total.add(planned, hours);
        match rows.iter_mut().find(|row| row.experiment == planned.experiment) {
            Some(row) => row.add(planned, hours),
            None => {
                let mut row = PlanRow { experiment: planned.experiment, ..PlanRow::default() };
                row.add(planned, hours);
                rows.push(row);
            }
        }
    }
    if json {
        let training = |planned: &Planned| {
            serde_json::json!({
                "experiment": planned.experiment, "name": planned.name, "file": planned.file, "updates": planned.updates(),
                "done": planned.is_done, "waits": planned.waits,
            })
        };
        let trainings: Vec<_> = all.iter().map(training).collect();
        return output::print_json(&serde_json::json!({ "experiments": rows, "all": total, "trainings": trainings }));
    }
    let cells: Vec<Vec<String>> = rows.iter().chain([&total]).map(PlanRow::cells).collect();
    let mut header = vec!["experiment", "trainings", "updates", "done", "updates left"];
    header.extend(hours.map(|_| "hours left"));
    output::print(&table::render(&header, &cells))
}

fn trainer(device: &str, is_together: bool) -> Result<Box<dyn Trainer>> {
    let opened = TrainingDevice::open(device).map_err(|why| anyhow!("--device {device}: {why}"))?;
    let trainer = match (is_together, opened.name()) {
        (false, kind) => DeviceTrainer::new(kind, opened),
        (true, "cpu") => {
            bail!("--together: --device {device} is the processor here, and trainings compute together on a GPU")
        }
        (true, kind) => DeviceTrainer::together(kind, opened.in_gang().map_err(|why| anyhow!("--together: {why}"))?),
    };
    Ok(Box::new(trainer))
}

/// Returns the experiments asked for, without duplicates, in the order of the list.
fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>> {
    let mut wanted = Vec::new();
    for name in names.iter().flat_map(|names| names.split(',')).filter(|name| !name.is_empty()) {
        if name.eq_ignore_ascii_case("all") {
            // The rivals take minutes of search even in a quick run, and have to be asked for.
            wanted.extend(ALL.iter().map(|experiment| experiment.id).filter(|id| *id != RIVALS));
            continue;
        }
        wanted.push(crate::find(name)?.id);
    }
    Ok(ALL.iter().filter(|experiment| wanted.contains(&experiment.id)).collect())
}

fn list() -> Result<()> {
    let row = |experiment: &Experiment| -> Result<Vec<String>> {
        Ok(vec![experiment.id.to_string(), crate::title(experiment)?])
    };
    let rows = ALL.iter().map(row).collect::<Result<Vec<_>>>()?;
    output::print(&table::render_with(&["id", "experiment"], &rows, 2))
}

fn text(all: &[Findings]) -> String {
    let mut out = String::new();
    for findings in all {
        out += &format!("{} · {} ({})\n{}\n\n", findings.id, findings.title, findings.mode, findings.sentence);
        let (header, rows) = page::figures(findings);
        if !rows.is_empty() {
            out += &(table::render(&strs(&header), &rows) + "\n");
        }
        for of in &findings.tables {
            out += &format!("{}\n{}\n", of.title, table::render(&strs(&of.header), &of.rows));
        }
        findings.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
        out += "\n";
    }
    if all.len() > 1 { out + &summary(all) } else { out.trim_end().to_string() + "\n" }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Describes how many experiments have each verdict.
fn summary(all: &[Findings]) -> String {
    let count = |kind: Verdict| all.iter().filter(|findings| findings.verdict == kind).count();
    let counts = Verdict::ALL.map(|kind| format!("{} {}", count(kind), kind.name()));
    let noun = if all.len() == 1 { "experiment" } else { "experiments" };
    format!("{} {noun}: {}.\n", all.len(), counts.join(", "))
}

fn markdown(all: &[Findings]) -> String {
    let mut out = String::from("| experiment | verdict | in one sentence |\n|---|---|---|\n");
    for of in all {
        out += &format!("| {} {} | {} | {} |\n", of.id, of.title, of.verdict.name(), of.sentence);
    }
    out += &format!("\n{}", summary(all));
    for of in all {
        out += &format!(
            "\n## {} {}\n\nThe paper: {}\n\nHere: {}\n\n{}\n\n",
            of.id, of.title, of.claim, of.reading, of.sentence
        );
        let (header, rows) = page::figures(of);
        if !rows.is_empty() {
            out += &(table::markdown(&strs(&header), &rows) + "\n");
        }
        for table in &of.tables {
            out += &format!("{}:\n\n{}\n", table.title, table::markdown(&strs(&table.header), &table.rows));
        }
        of.notes.iter().for_each(|note| out += &format!("- {note}\n"));
    }
    out.trim_end().to_string() + "\n"
}

/// JSON report. Shares are fractions; other figures are in the unit given in their details.
#[derive(Serialize)]
struct JsonReport<'a> {
    mode: &'static str,
    experiments: Vec<JsonExperiment<'a>>,
}

#[derive(Serialize)]
struct JsonExperiment<'a> {
    id: &'a str,
    title: &'a str,
    /// Our figures by name.
    ours: BTreeMap<&'a str, f64>,
    paper: &'a BTreeMap<String, f64>,
    verdict: Verdict,
    sentence: &'a str,
    /// Figures that carry little evidence, and why.
    noise: BTreeMap<&'a str, &'static str>,
    /// Figures with spread, confidence interval, the paper's figure and those of other schedulers.
    details: &'a [Line],
    notes: &'a [String],
    seconds: f64,
}

impl<'a> JsonReport<'a> {
    fn of(mode: Mode, all: &'a [Findings]) -> JsonReport<'a> {
        let experiment = |of: &'a Findings| JsonExperiment {
            id: &of.id,
            title: &of.title,
            ours: of.lines.iter().map(|line| (line.name.as_str(), line.ours.mean)).collect(),
            paper: &of.paper,
            verdict: of.verdict,
            sentence: &of.sentence,
            noise: of.noisy().into_iter().filter_map(|line| Some((line.name.as_str(), line.noise()?.text()))).collect(),
            details: &of.lines,
            notes: &of.notes,
            seconds: of.seconds,
        };
        JsonReport { mode: mode.name(), experiments: all.iter().map(experiment).collect() }
    }
}
