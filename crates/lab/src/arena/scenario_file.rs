//! The file of a scenario: its keys, and how they are read.

use serde::Deserialize;
use temponet_sim::generate::{BurstSpec, Critical, Lengths, Spec, text};
use temponet_task::{Aim, Costs, Time};

/// A scenario file as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Version of the scenario; figures of different versions are not compared.
    pub version: u32,
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
    /// Lowest and highest load per core of generated sets.
    pub load: Option<[f64; 2]>,
    /// Number of cores.
    pub cores: Option<usize>,
    /// Miss rule: `abort` or `continue`.
    pub on_miss: String,
    /// Effort of the clairvoyant optimum per run, in seconds of a reference machine.
    pub oracle_seconds: f64,
    /// Names of built-in sets, used in turn.
    pub builtin: Option<Vec<String>>,
    /// Generator of random sets.
    pub generate: Option<Generate>,
    /// Model of execution times; the wcet if absent.
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

/// Generator of random sets, with the options of `temponet generate`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    method: String,
    /// Least and greatest number of tasks; absent for methods that choose the number themselves.
    pub tasks: Option<[usize; 2]>,
    periods: Option<String>,
    wcets: Option<String>,
    deadlines: Option<String>,
    values: Option<[f64; 2]>,
    critical: Option<f64>,
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

impl Generate {
    pub(super) fn spec(&self, cores: usize, burst: Option<&Burst>) -> Result<Spec, String> {
        let plain = Spec::new(1, cores, 0.0);
        let lengths = match (&self.periods, &self.wcets) {
            (Some(_), Some(_)) => return Err("either periods or wcets are drawn".into()),
            (Some(rule), _) => Lengths::Periods(text::rule(rule)?),
            (_, Some(rule)) => Lengths::Wcets(text::rule(rule)?),
            _ => plain.lengths.clone(),
        };
        let burst = burst
            .map(|burst| -> Result<BurstSpec, String> {
                let (deadline, every) = (text::positive_time(&burst.deadline)?, text::positive_time(&burst.every)?);
                let utilization = burst.load * cores as f64;
                Ok(BurstSpec { jobs: burst.jobs, deadline, every, until: Time::NEVER, utilization })
            })
            .transpose()?;
        let critical = Critical { share: self.critical.unwrap_or(0.0), ..plain.critical };
        let [low, high] = self.values.unwrap_or([1.0, 1.0]);
        Ok(Spec {
            method: text::method(&self.method)?,
            lengths,
            deadlines: self.deadlines.as_deref().map_or(Ok(plain.deadlines), text::deadlines)?,
            critical,
            values: (low, high),
            burst,
            ..plain
        })
    }
}

/// What true execution times are, as shares of the wcet.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ExecutionShares {
    /// Uniform from `bcet` on.
    Uniform {
        /// The best case.
        bcet: f64,
    },
    /// Weibull from `bcet` with mean `acet`; a share `exceed` of its mass lay beyond the wcet before it was cut off there.
    Weibull {
        /// The best case.
        bcet: f64,
        /// The mean.
        acet: f64,
        /// The share cut off.
        exceed: f64,
    },
    /// Pareto from `bcet`, cut off at the wcet.
    Pareto {
        /// The best case.
        bcet: f64,
        /// The tail index.
        shape: f64,
    },
}

/// A change of all execution times during the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// What the mode is called.
    pub name: String,
    /// When it begins, as a share of the run.
    pub from: f64,
    /// What execution times are multiplied by.
    pub work: f64,
}

/// Deserializes an aim from its name.
pub fn read_aim<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Aim, D::Error> {
    let name = String::deserialize(from)?;
    Aim::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("goal = {name:?} is no aim")))
}
