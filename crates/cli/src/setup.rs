//! Options shared by several commands: the task set, the platform, the length of the run and the model of the learned
//! scheduler.

use std::path::Path;
use std::sync::Arc;
use temponet_sim::labels;

use anyhow::{Context, Result, anyhow, bail};
use temponet::{Calibration, Model, Options};
use temponet_formats::builtin::{self, Builtin};
use temponet_formats::{Format, Loaded};
use temponet_lab::horizon::{default_horizon, unseen};
use temponet_lab::models::{self, BUILT_IN, ModelError};
use temponet_lab::roster::{Roster, UNSHIELDED, kind};
use temponet_sched::Kind;
pub use temponet_sim::generate::text::{positive_time, time as any_time};
use temponet_task::{Aim, Costs, OnMiss, Protocol, TaskSet, Time};
use temponet_wording::{counted, did_you_mean};

use crate::hints::with_flags;
use crate::{import, output, paths};

/// Options that change the task set and the length of the run.
#[derive(clap::Args, Default)]
pub struct SetupArgs {
    /// Number of cores, 1 to 4096 [default: as in the file]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub cores: Option<u16>,
    /// Simulated time, such as 10s or 500ms [default: whole hyperperiods with about 10 000 jobs; explain --run: about 1
    /// 000]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub horizon: Option<Time>,
    /// Rule for a job that misses its deadline: abort or continue [default: as in the file]
    #[arg(long, value_name = "RULE", value_parser = on_miss)]
    pub on_miss: Option<OnMiss>,
    /// Protocol for resources that tasks share: none, inheritance or ceiling [default: as in the file]
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol)]
    pub protocol: Option<Protocol>,
    /// Seed of random execution times, jitter and sporadic arrivals [default: 1; train: as in the recipe]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Duration of a context switch, such as 10us [default: as in the file, else 0]
    #[arg(long, value_name = "TIME", value_parser = any_time)]
    pub switch_cost: Option<Time>,
    /// Additional duration of a migration to another core, such as 50us [default: as in the file, else 0]
    #[arg(long, value_name = "TIME", value_parser = any_time)]
    pub migration_cost: Option<Time>,
    /// Duration of a scheduling decision, such as 5us [default: as in the file, else 0]
    #[arg(long, value_name = "TIME", value_parser = any_time)]
    pub decision_cost: Option<Time>,
}

/// Options of the learned scheduler.
#[derive(clap::Args)]
pub struct ModelArgs {
    /// Model of the learned scheduler: a weights file, or random:SEED for untrained weights (random-paper:, random-raw:
    /// and random-mlp:SEED use other tokens) [default: the built-in model]
    #[arg(long, value_name = "FILE|random:SEED")]
    pub model: Option<String>,
    /// Run the learned scheduler without its shield, so that temponet means temponet-unshielded
    #[arg(long)]
    pub no_shield: bool,
    /// Expected time of a decision of the learned scheduler that it may not exceed, such as 50us; simpler schedulers
    /// decide where the network would. Expected times are measured on this machine, so results may differ from run to
    /// run [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub budget: Option<Time>,
}

impl ModelArgs {
    /// Returns the scheduler that a name stands for.
    pub fn scheduler<'a>(&self, name: &'a str) -> &'a str {
        if self.no_shield && kind(name) == Kind::Learned { UNSHIELDED } else { name }
    }

    /// Returns all schedulers, with the model of these options. A budget is calibrated here, once for all runs.
    pub fn roster(&self) -> Result<Roster> {
        let model = Arc::new(self.named()?);
        let mut options = Options { budget_ns: self.budget.map(|time| time.0), ..Options::default() };
        if self.budget.is_some() {
            options.calibration = Some(Calibration::measure(&model, options)?);
        }
        Ok(Roster { model: Some(model), options, ..Roster::default() })
    }

    /// Loads the model asked for, or the built-in one.
    pub fn named(&self) -> Result<Model> {
        model(self.model.as_deref().unwrap_or(BUILT_IN))
    }
}

/// Loads a model by name: a path, `built-in`, or untrained weights such as `random:1`.
pub fn model(name: &str) -> Result<Model> {
    if models::is_path(name) {
        paths::reads(Path::new(name))?;
    }
    models::named(name).map_err(|error| match error {
        ModelError::Seed(_) => anyhow!("--model {error}"),
        other => anyhow!(other),
    })
}

/// Parses the rule for jobs that miss their deadline.
pub fn on_miss(text: &str) -> Result<OnMiss, String> {
    OnMiss::from_name(text).ok_or_else(|| "is none of abort, continue".into())
}

/// Parses the protocol for resources that tasks share.
fn protocol(text: &str) -> Result<Protocol, String> {
    Protocol::from_name(text).ok_or_else(|| format!("is none of {}", Protocol::ALL.map(Protocol::name).join(", ")))
}

/// Parses a measure to rank by.
pub fn aim(text: &str) -> Result<Aim, String> {
    Aim::from_name(text).ok_or_else(|| format!("is none of {}", Aim::ALL.map(Aim::name).join(", ")))
}

impl SetupArgs {
    /// Returns the seed of commands without a recipe.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Loads the set, the default one if `name` is none, and applies the options. Returns the set, the horizon and the
    /// notes on an imported file.
    pub fn prepare(&self, name: Option<&str>) -> Result<(TaskSet, Time, Vec<String>)> {
        let Loaded { set, mut notes, .. } = load(name.unwrap_or(builtin::DEFAULT))?;
        let set = self.applied(set)?;
        let horizon = self.horizon.unwrap_or_else(|| default_horizon(&set));
        for note in unseen(&set, horizon) {
            output::say(&format!("note: {note}"));
            notes.push(with_flags(&note).into_owned());
        }
        Ok((set, horizon, notes))
    }

    /// Returns the set with the options applied.
    pub fn applied(&self, mut set: TaskSet) -> Result<TaskSet> {
        if let Some(cores) = self.cores {
            set.system.change_cores(usize::from(cores)).map_err(|why| anyhow!("--cores {cores}: {why}"))?;
        }
        set.system.set_on_miss(self.on_miss.unwrap_or(set.on_miss()));
        set.system.set_protocol(self.protocol.unwrap_or(set.protocol()));
        if let Some(problem) = set.protocol_problem() {
            bail!("{problem}");
        }
        let own = set.costs();
        set.system.set_costs(Costs {
            context_switch: self.switch_cost.unwrap_or(own.context_switch),
            migration: self.migration_cost.unwrap_or(own.migration),
            decision: self.decision_cost.unwrap_or(own.decision),
        });
        Ok(set)
    }
}

/// A file, or a built-in set where no file has that name. Warnings and notes go to stderr.
pub fn load(name: &str) -> Result<Loaded> {
    let path = Path::new(name);
    let mut loaded = match Builtin::find(name) {
        Some(set) if !path.exists() => set.load().context("the built-in set is broken")?,
        None if !path.exists() && path.extension().is_none() => {
            let hint = did_you_mean(name, builtin::ALL.iter().map(|set| set.name));
            bail!("there is no file and no built-in set {name:?}; `temponet sets` lists the sets{hint}")
        }
        _ => {
            paths::reads(path)?;
            // Our own formats go by their names, and JSON is that of many tools.
            let may_be_trace = matches!(Format::of(path), None | Some(Format::Json));
            match may_be_trace && temponet_traces::is_trace(path) {
                true => import::load(path)?,
                false => temponet_formats::load(path)?,
            }
        }
    };
    loaded.files.iter().try_for_each(|file| paths::reads(file))?;
    for warning in &loaded.warnings {
        output::say(warning);
    }
    for note in &mut loaded.notes {
        *note = with_flags(note).into_owned();
        output::say(&format!("note: {note}"));
    }
    Ok(loaded)
}

/// Returns the cores in words.
pub fn cores(set: &TaskSet) -> String {
    labels::machine(set)
}

/// Returns one line about the set, its load and the length of the run.
pub fn heading(set: &TaskSet, horizon: Time) -> String {
    let cores = cores(set);
    let (load, mean) = (set.utilization() / set.capacity(), set.mean_utilization() / set.capacity());
    let load = if (load - mean).abs() < 0.005 {
        format!("load {load:.2}")
    } else {
        format!("load {load:.2} at the wcet, {mean:.2} on average")
    };
    let per_core = match (set.machine().is_full_speed(), set.cores()) {
        (true, 1) => "",
        (true, _) => " per core",
        (false, _) => " of the total speed",
    };
    let rule = set.on_miss().name();
    let protocol = if set.has_sections() { format!(", protocol: {}", set.protocol().name()) } else { String::new() };
    let costs = [
        ("switch", set.costs().context_switch),
        ("migration", set.costs().migration),
        ("decision", set.costs().decision),
    ];
    let costs =
        costs.iter().filter(|(_, cost)| *cost > Time::ZERO).map(|(what, cost)| format!(", a {what} costs {cost}"));
    let costs: String = costs.collect();
    format!(
        "{}: {} on {cores}, {load}{per_core}{costs}; horizon {horizon}, on a miss: {rule}{protocol}",
        set.name,
        counted(set.task_count(), "task")
    )
}
