//! The file format of scenarios: the TOML keys and how they are read. `docs/arena.md` explains the keys to users.

use serde::{Deserialize, Deserializer};
use temponet_sim::generate::text::SpecText;
use temponet_sim::generate::variety::named_or_table;
use temponet_sim::generate::{BurstSpec, ExecutionShares, Shape, Spec, Variety, WorkloadRanges, text};
use temponet_task::{Aim, Costs, Time};

use super::traces::{Frames, Requests};

/// A scenario file as it is written, before validation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Version of the scenario; figures of different versions are not compared.
    pub version: u32,
    /// Version of the arena that the scenario belongs to, 1 by default.
    #[serde(default = "first")]
    pub arena: u32,
    /// Whether the scenario is of a kind that no training range draws; default no.
    #[serde(default)]
    pub held_out: bool,
    /// One sentence about the scenario.
    pub description: String,
    /// Measure by which schedulers are ranked.
    #[serde(deserialize_with = "read_aim")]
    pub goal: Aim,
    /// First and last seed.
    pub seeds: [u64; 2],
    /// Number of sets in a quick run.
    pub quick_sets: u64,
    /// Number of jobs per run, approximately.
    pub jobs: u64,
    /// Lowest and highest load per core at mean execution times; required for generated sets.
    pub load: Option<[f64; 2]>,
    /// Number of cores.
    pub cores: Option<usize>,
    /// Miss rule: `abort` or `continue`.
    pub on_miss: String,
    /// Effort for the clairvoyant optimum per run, in seconds of one core of a reference machine.
    pub oracle_seconds: f64,
    /// Names of built-in sets, used in turn.
    pub builtin: Option<Vec<String>>,
    /// Generator of random sets, with the options of `temponet generate`.
    pub generate: Option<SpecText>,
    /// Training ranges from which sets are drawn.
    pub ranges: Option<WorkloadRanges>,
    /// Video streams.
    pub frames: Option<Frames>,
    /// Requests to a server.
    pub requests: Option<Requests>,
    /// Further random properties of the sets: a table, or the name of a preset.
    #[serde(default, deserialize_with = "read_variety")]
    pub variety: Option<Variety>,
    /// Properties that no training range draws.
    #[serde(default)]
    pub shape: Shape,
    /// Model of execution times; that of the sets if absent.
    pub execution: Option<ExecutionShares>,
    /// Burst of jobs beside the tasks.
    pub burst: Option<Burst>,
    /// Costs of dispatching.
    #[serde(default)]
    pub costs: FileCosts,
    /// Mode switches, in order of time.
    #[serde(default)]
    pub mode: Vec<Switch>,
}

fn first() -> u32 {
    1
}

fn read_variety<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Variety>, D::Error> {
    named_or_table(from, Variety::preset, &Variety::PRESETS).map(Some)
}

/// A burst of jobs that is added to a generated set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    jobs: u32,
    deadline: String,
    every: String,
    /// Load that the burst adds, per core.
    load: f64,
}

/// Costs of dispatching, as times with a unit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileCosts {
    context_switch: Option<String>,
    migration: Option<String>,
    decision: Option<String>,
}

impl FileCosts {
    pub(super) fn read(&self) -> Result<Costs, String> {
        let time = |text: &Option<String>| text.as_deref().map_or(Ok(Time::ZERO), text::time);
        Ok(Costs {
            context_switch: time(&self.context_switch)?,
            migration: time(&self.migration)?,
            decision: time(&self.decision)?,
        })
    }
}

/// Returns the specification of a scenario's random sets.
pub(super) fn spec(generate: &SpecText, cores: usize, burst: Option<&Burst>) -> Result<Spec, String> {
    let mut spec = generate.read()?;
    // Critical tasks of a scenario are always stated, whatever the method.
    spec.critical.share = generate.critical.unwrap_or(0.0);
    if let Some(Burst { jobs, deadline, every, load }) = burst {
        let (deadline, every) = (text::positive_time(deadline)?, text::positive_time(every)?);
        let utilization = load * cores as f64;
        spec.burst = Some(BurstSpec { jobs: *jobs, deadline, every, until: Time::NEVER, utilization });
    }
    Ok(Spec { cores, ..spec })
}

/// A change of all execution times during the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Name of the mode.
    pub name: String,
    /// Start of the mode, as a share of the run, 0 to 1.
    pub from: f64,
    /// Factor on all execution times.
    pub work: f64,
}

/// Deserializes an aim from its name.
pub fn read_aim<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Aim, D::Error> {
    let name = String::deserialize(from)?;
    Aim::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("goal = {name:?} is no aim")))
}
