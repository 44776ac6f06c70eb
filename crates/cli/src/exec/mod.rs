//! `temponet exec`: the jobs of a task set on real threads of this machine, under our schedulers and those of Linux.
//!
//! Every run is a process of its own, which this one starts and waits for: a run that has to be killed costs its row,
//! not the comparison. `child.rs` is that process, `outcome.rs` puts the runs together with what the simulator says of
//! the same jobs, and `text.rs` and `json.rs` show them.

mod child;
mod files;
mod host_time;
mod json;
mod outcome;
mod page;
mod text;
pub mod undo;

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use temponet_lab::progress::Progress;
use temponet_runtime::platform_sheet::{PlatformSheet, usual_cpus};
use temponet_runtime::trial::LinuxScheduler;
use temponet_task::{OnMiss, TaskSet, Time};

use self::undo::Machine;
use crate::output;
use crate::paths::{Kind, Output};
use crate::setup::{ModelArgs, load, on_miss, positive_time};
use crate::shape::positive_number;

/// Run the jobs of a set on real threads of this machine, under our schedulers and those of Linux
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  temponet exec --check\n  temponet exec standard-125 --load 1.3 --duration 10s --runs 3\n  \
    temponet exec robot --schedulers edf,temponet,linux-fifo --jobs jobs.csv --trace trace.json\n\n\
    Needs Linux, real-time priorities, and one processor more than the set has cores. Jobs compute for their drawn execution time and do nothing else."
)]
pub struct Args {
    /// Task-set file (.toml, .csv, .json, rt-app's .json, SimSo's .xml) or a built-in set's name
    #[arg(value_name = "FILE|NAME", required_unless_present = "check")]
    pub set: Option<String>,
    /// Schedulers to run, separated by commas: those of `temponet schedulers`, linux-deadline, linux-fifo, linux-rr and
    /// linux-eevdf
    #[arg(long, value_name = "LIST", default_value = SCHEDULERS)]
    pub schedulers: String,
    /// Length of each run, such as 20s
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = positive_time)]
    pub duration: Time,
    /// Number of runs of each scheduler, with consecutive seeds
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: u64,
    /// Seed of the first run
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Scale all execution times so that the load per core at the wcet is this, such as 1.3 [default: as in the file]
    #[arg(long, value_name = "LOAD", value_parser = positive_number)]
    pub load: Option<f64>,
    /// Number of cores of the set, 1 to 64 [default: as in the file]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub cores: Option<u16>,
    /// Processors that jobs run on, separated by commas, one for each core of the set [default: the usable ones after
    /// the first]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Processor of the dispatcher, which no job runs on [default: the first usable one]
    #[arg(long, value_name = "N")]
    pub housekeeping: Option<usize>,
    /// Rule for a job that misses its deadline: abort or continue [default: as in the file]
    #[arg(long, value_name = "RULE", value_parser = on_miss)]
    pub on_miss: Option<OnMiss>,
    /// Turn the kernel's throttling of real-time threads, and the admission control of SCHED_DEADLINE, off while this
    /// runs
    #[arg(long)]
    pub unthrottled: bool,
    #[command(flatten)]
    pub model: ModelArgs,
    /// Write a CSV file with one row per job, of all schedulers and runs
    #[arg(long, value_name = "OUT.csv")]
    pub jobs: Option<PathBuf>,
    /// Write a Chrome trace of the first run of each scheduler, for ui.perfetto.dev: what jobs noticed, beside the
    /// kernel's own record
    #[arg(long, value_name = "OUT.json")]
    pub trace: Option<PathBuf>,
    /// Write an SVG picture of the beginning of the first scheduler's first run
    #[arg(long, value_name = "OUT.svg")]
    pub gantt: Option<PathBuf>,
    /// Length of the schedule in the picture, such as 200ms [default: about 40 jobs]
    #[arg(long, value_name = "TIME", requires = "gantt", value_parser = positive_time)]
    pub gantt_until: Option<Time>,
    /// Write a self-contained HTML page with table, schedules and distributions
    #[arg(long, value_name = "OUT.html")]
    pub report: Option<PathBuf>,
    /// Replace existing files of any kind
    #[arg(long)]
    pub force: bool,
    /// Print what this machine is, how late its timers are, and what would work; run nothing
    #[arg(long)]
    pub check: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Scheduler, run and trace instance of a run in a process of its own
    #[arg(long, hide = true, num_args = 2..=3, value_names = ["SCHEDULER", "RUN", "INSTANCE"])]
    pub child: Vec<String>,
}

/// Schedulers that run unless others are named.
const SCHEDULERS: &str = "edf,mh-edf,temponet,linux-deadline,linux-fifo,linux-rr,linux-eevdf";
/// Number of jobs that a picture shows well.
const PICTURE_JOBS: f64 = 40.0;

/// A run of the command, with the options applied.
pub struct ExecPlan {
    pub set: TaskSet,
    pub notes: Vec<String>,
    pub cpus: Vec<usize>,
    pub housekeeping: usize,
    pub schedulers: Vec<String>,
}

impl Args {
    fn plan(&self) -> Result<ExecPlan> {
        let loaded = load(self.set.as_deref().unwrap_or_default())?;
        let mut set = loaded.set;
        if let Some(cores) = self.cores {
            set.system.change_cores(usize::from(cores)).map_err(|why| anyhow!("--cores {cores}: {why}"))?;
        }
        set.system.set_on_miss(self.on_miss.unwrap_or(set.on_miss()));
        if let Some(load) = self.load {
            let factor = load * set.capacity() / set.utilization();
            if !(1e-6..1e6).contains(&factor) {
                bail!("--load {load}: the set's own load of {:.3} cannot be scaled to it", set.utilization());
            }
            set = set.with_work((factor * 1e9).round() as u64, 1_000_000_000);
        }
        let mut schedulers: Vec<String> = Vec::new();
        for name in self.schedulers.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let name = self.model.scheduler(name);
            if !schedulers.iter().any(|known| known == name) {
                schedulers.push(name.into());
            }
        }
        if schedulers.is_empty() {
            bail!("--schedulers {:?} names no scheduler", self.schedulers);
        }
        let (housekeeping, cpus) = self.processors(set.cores())?;
        Ok(ExecPlan { set, notes: loaded.notes, cpus, housekeeping, schedulers })
    }

    /// The processor for housekeeping and those of the jobs.
    fn processors(&self, cores: usize) -> Result<(usize, Vec<usize>)> {
        let usual = usual_cpus(cores);
        let (housekeeping, cpus) = match (self.housekeeping, self.cpus.is_empty(), usual) {
            (Some(housekeeping), false, _) => (housekeeping, self.cpus.clone()),
            (None, false, Some((first, _))) => (first, self.cpus.clone()),
            (Some(housekeeping), true, Some((_, cpus))) if !cpus.contains(&housekeeping) => (housekeeping, cpus),
            (None, true, Some(usual)) => usual,
            (Some(housekeeping), true, Some(_)) => {
                bail!("--housekeeping {housekeeping}: name the processors of the jobs, too: --cpus")
            }
            (_, _, None) => bail!(
                "the set has {cores} cores, and jobs never run on the processor for housekeeping, so it takes {} processors; \
                 --cores runs the set on fewer",
                cores + 1
            ),
        };
        if cpus.len() != cores {
            bail!("--cpus names {} processors, and the set has {cores} cores", cpus.len());
        }
        if cpus.contains(&housekeeping) {
            bail!("processor {housekeeping} is for housekeeping, so no job may run on it");
        }
        Ok((housekeeping, cpus))
    }
}

pub fn run(args: Args) -> Result<()> {
    if args.check {
        let cpus: Vec<usize> = PlatformSheet::of_this_machine(&[]).usable.into_iter().take(2).collect();
        return output::print(&text::sheet(&PlatformSheet::of_this_machine(&cpus)));
    }
    let plan = args.plan()?;
    if !args.child.is_empty() {
        return child::run(&args, plan);
    }
    let roster = args.model.roster()?;
    for name in plan.schedulers.iter().filter(|name| LinuxScheduler::from_name(name).is_none()) {
        roster.build(name)?;
    }
    let sheet = PlatformSheet::of_this_machine(&[plan.housekeeping, plan.cpus[0]]);
    if let Some(problem) = sheet.problem() {
        bail!("{problem}; `temponet exec --check` says more");
    }
    let outputs = files::Outputs::claim(&args)?;
    let report_file = Output::wanted(args.report.as_deref(), Kind::Page, args.force)?;
    Machine::this().repair().iter().for_each(|note| output::say(note));
    let _throttle = args.unthrottled.then(|| Machine::this().unthrottled()).transpose()?.flatten();
    let sheet = PlatformSheet { throttling: PlatformSheet::of_this_machine(&[]).throttling, ..sheet };
    let instance = args.trace.as_ref().map(|_| Machine::this().trace_instance("--trace")).transpose()?;
    let (schedulers, seconds) = (plan.schedulers.len() as u64, args.duration.as_secs_f64());
    let minutes = seconds * (args.runs * schedulers) as f64 / 60.0;
    if minutes >= 1.0 {
        output::say(&format!(
            "{schedulers} schedulers, {} runs of {} each: {minutes:.0} minutes",
            args.runs, args.duration
        ));
    }
    let progress = Progress::new(args.runs * plan.schedulers.len() as u64, args.duration);
    let result = outcome::gather(&args, plan, roster, sheet, instance.as_ref(), &progress)?;
    progress.finish();
    drop(instance);
    if result.comparison.rows.is_empty() {
        let reasons: Vec<String> =
            result.comparison.skipped.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        bail!("no run succeeded: {}", reasons.join("; "));
    }
    outputs.write(&args, &result)?;
    if let Some(file) = report_file {
        file.write(page::html(&result))?;
    }
    match args.json {
        true => output::print_json(&json::ExecJson::of(&result)),
        false => output::print(&text::text(&result)),
    }
}
