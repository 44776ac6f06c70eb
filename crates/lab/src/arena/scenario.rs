//! A scenario of the arena: a fixed protocol for scoring schedulers, stored as a file in `crates/lab/scenarios`. The
//! version of a scenario changes with every change that moves a figure.

use std::ops::RangeInclusive;

use temponet_formats::builtin::Builtin;
use temponet_formats::read_settings;
use temponet_sim::generate::{Properties, Spec, WorkloadRanges};
use temponet_sim::{EVALUATION_SEEDS, Metrics};
use temponet_task::{Aim, Costs, Measure, OnMiss};
use temponet_wording::did_you_mean;

use super::scenario_file::{ScenarioFile, Switch, spec};
use super::traces::{Frames, Requests};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),*]
    };
}

/// Name and file content of every scenario, in the order of reports.
const FILES: &[(&str, &str)] = scenarios![
    "one-core",
    "one-core-overload",
    "standard-sets",
    "one-core-uniform",
    "one-core-weibull",
    "one-core-pareto",
    "two-cores",
    "four-cores",
    "eight-cores",
    "two-cores-uncertain",
    "four-cores-uncertain",
    "eight-cores-uncertain",
    "hundred-tasks",
    "six-hundred-tasks",
    "costs",
    "automotive",
    "avionics",
    "heavy-tails",
    "bursts",
    "mode-switch",
    "values",
    "tiny-costs",
    "dear-costs",
    "three-levels",
    "value-tails",
    "long-is-dear",
    "one-dear-task",
    "two-tasks",
    "two-cores-few-tasks",
    "forty-a-core",
    "tight-deadlines",
    "told-fourfold",
    "bimodal",
    "poisson",
    "jitter-and-offsets",
    "keep-late",
    "firm",
    "wide-jobs",
    "wide-values",
    "wide-levels",
    "robot-levels",
    "automotive-levels",
    "harmonic-aligned",
    "video-frames",
    "inference-requests",
    "day-waves",
    "squared-values",
    "period-clusters",
    "trimodal",
    "far-labels",
    "long-kernels",
    "preemption-points",
    "random-graphs",
    "autoware-graphs",
    "big-little",
    "affinity",
    "good-estimates",
    "rough-estimates",
    "shared-bus",
    "no-protocol",
    "requests-unknown",
    "requests-cancelled",
    "requests-estimated",
    "requests-proportional",
];

/// Returns the figure of a run that an aim is about, 0 to 1; `None` if the run has nothing to measure. Critical jobs of
/// all levels count.
pub fn measured(aim: Aim, metrics: &Metrics) -> Option<f64> {
    metrics.measured(match aim {
        Aim::Critical => return metrics.pitmd(),
        Aim::Chains => Measure::Chains,
        Aim::Mk => Measure::Mk,
        Aim::Value => Measure::Value,
        Aim::Met => Measure::Met,
        Aim::WorstTask => Measure::WorstTask,
    })
}

/// Returns the meaning of a score in words.
pub fn meaning(aim: Aim) -> &'static str {
    match aim {
        Aim::Critical => "share of critical jobs in time, of the highest level",
        Aim::Chains => "share of chain instances in time",
        Aim::Mk => "share of (m,k) windows kept",
        Aim::Value => "share of the value in time",
        Aim::Met => "share of jobs in time",
        Aim::WorstTask => "share of the worst task's jobs in time",
    }
}

/// Source of a scenario's task sets.
#[derive(Clone, Debug)]
pub enum Sets {
    /// Generated sets. The number of tasks runs from the first to the second in turn; `None` leaves it to the
    /// generation method.
    Generated(Option<[usize; 2]>, Box<Spec>),
    /// Built-in sets, in turn.
    Builtin(Vec<&'static Builtin>),
    /// Sets as training draws them, which have cores, load, costs and miss rule of their own.
    Ranges(Box<WorkloadRanges>),
    /// Video streams.
    Frames(Frames),
    /// Requests to a server.
    Requests(Requests),
}

/// A fixed protocol for scoring schedulers.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name on the command line and in reports.
    pub name: String,
    /// Version; it changes with every change of the protocol.
    pub version: u32,
    /// Version of the arena that the scenario belongs to.
    pub arena: u32,
    /// Whether no training range draws sets of this kind.
    pub held_out: bool,
    /// Description in one sentence.
    pub description: String,
    /// Aim by which schedulers are scored.
    pub goal: Aim,
    /// Seeds, one per set. All lie in the range that is reserved for evaluation.
    pub seeds: RangeInclusive<u64>,
    /// Number of sets in a quick run.
    pub quick_sets: u64,
    /// Approximate number of jobs per run.
    pub jobs: u64,
    /// Lowest and highest load per core at mean execution times, evenly spaced over the sets; `None` leaves the load of
    /// built-in sets as it is.
    pub load: Option<[f64; 2]>,
    /// Number of cores; `None` takes that of the built-in set.
    pub cores: Option<usize>,
    /// What happens to a job that misses its deadline.
    pub on_miss: OnMiss,
    /// Costs of dispatching.
    pub costs: Costs,
    /// Effort for the clairvoyant optimum per set, in seconds of one core of a reference machine.
    pub oracle_seconds: f64,
    /// Source of a scenario's task sets.
    pub source: Sets,
    /// Changes of the execution times during the run, in order of time.
    pub switches: Vec<Switch>,
    /// Further properties of the sets.
    pub properties: Properties,
}

/// Error of looking up or reading a scenario.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// Unknown name.
    #[error("there is no scenario {0:?}; there are {names}{hint}", names = names().join(", "), hint = did_you_mean(.0, names()))]
    Unknown(String),
    /// Invalid file: the name of the scenario, and what is wrong.
    #[error("scenario {0}: {1}")]
    File(String, String),
}

/// Returns the names of all scenarios.
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// Returns all scenarios of one version of the arena, in the order of reports.
pub fn of_version(arena: u32) -> Result<Vec<Scenario>, ScenarioError> {
    Ok(all()?.into_iter().filter(|scenario| scenario.arena == arena).collect())
}

/// Returns all scenarios of every version, in the order of reports.
pub fn all() -> Result<Vec<Scenario>, ScenarioError> {
    FILES.iter().map(|(name, text)| Scenario::parse(name, text)).collect()
}

/// Returns the scenario with the given name.
pub fn find(name: &str) -> Result<Scenario, ScenarioError> {
    let file = FILES.iter().find(|(known, _)| *known == name);
    let (name, text) = file.ok_or_else(|| ScenarioError::Unknown(name.into()))?;
    Scenario::parse(name, text)
}

impl Scenario {
    /// Parses the text of a scenario file.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let wrong = |why: String| ScenarioError::File(name.into(), why);
        let file: ScenarioFile = read_settings(text).map_err(|error| wrong(error.in_text(text)))?;
        Scenario::of(name, file).map_err(wrong)
    }

    /// Validates a scenario file and makes the scenario it describes.
    pub fn of(name: &str, file: ScenarioFile) -> Result<Scenario, String> {
        let [first, last] = file.seeds;
        if first > last || !EVALUATION_SEEDS.contains(&first) || !EVALUATION_SEEDS.contains(&last) {
            let (from, to) = (EVALUATION_SEEDS.start(), EVALUATION_SEEDS.end());
            return Err(format!("seeds = [{first}, {last}] must be a range within {from} to {to}"));
        }
        let costs = file.costs.read()?;
        let properties =
            Properties { execution: file.execution, shape: file.shape.clone(), variety: file.variety.clone() };
        if let Some(problem) = properties.problem().or_else(|| file.problem()) {
            return Err(problem);
        }
        let source = file.source()?;
        Ok(Scenario {
            name: name.into(),
            version: file.version,
            arena: file.arena,
            held_out: file.held_out,
            description: file.description,
            goal: file.goal,
            seeds: first..=last,
            quick_sets: file.quick_sets,
            jobs: file.jobs,
            load: file.load,
            cores: file.cores,
            on_miss: OnMiss::from_name(&file.on_miss).ok_or("on_miss is none of abort, continue")?,
            costs,
            oracle_seconds: file.oracle_seconds,
            source,
            switches: file.mode,
            properties,
        })
    }
}

impl ScenarioFile {
    /// Returns what is wrong with numbers that only some scenarios have, or `None`.
    fn problem(&self) -> Option<String> {
        if !matches!(self.arena, 1 | 2) {
            return Some(format!("arena = {} is neither 1 nor 2", self.arena));
        }
        let ranges = self.ranges.as_ref().and_then(WorkloadRanges::problem).map(|problem| format!("ranges: {problem}"));
        let frames = || self.frames.as_ref().and_then(Frames::problem);
        ranges.or_else(frames).or_else(|| self.requests.as_ref().and_then(Requests::problem))
    }

    /// Returns where the sets come from: the file has exactly one source.
    fn source(&self) -> Result<Sets, String> {
        let mut sources = Vec::new();
        if let Some(generate) = &self.generate {
            let cores = self.cores.ok_or("sets that are drawn need cores")?;
            self.load.ok_or("sets that are drawn need a load")?;
            let spec = spec(generate, cores, self.burst.as_ref())?;
            if generate.tasks.map_or(!spec.method.counts_tasks(), |[least, most]| least < 1 || least > most) {
                return Err("generate needs tasks = [LEAST, MOST]".into());
            }
            sources.push(Sets::Generated(generate.tasks, Box::new(spec)));
        }
        if let Some(names) = self.builtin.as_ref().filter(|names| !names.is_empty()) {
            let find = |name: &String| Builtin::find(name).ok_or(format!("there is no built-in set {name:?}"));
            sources.push(Sets::Builtin(names.iter().map(find).collect::<Result<_, _>>()?));
        }
        sources.extend(self.ranges.clone().map(|ranges| Sets::Ranges(Box::new(ranges))));
        sources.extend(self.frames.clone().map(Sets::Frames));
        sources.extend(self.requests.clone().map(Sets::Requests));
        let is_listed = matches!(sources[..], [Sets::Frames(_) | Sets::Requests(_)]);
        if is_listed && (self.cores.is_none() || self.load.is_none()) {
            return Err("frames and requests need cores and a load".into());
        }
        match sources.pop() {
            Some(source) if sources.is_empty() => Ok(source),
            _ => Err(
                "exactly one of [generate], builtin, [ranges], [frames] and [requests] says where the sets come from"
                    .into(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use temponet_sim::generate::{ExecutionShares, Shape};

    use super::*;

    #[test]
    fn every_file_parses_and_its_seeds_are_its_own_and_reserved() {
        let mut taken: Vec<u64> = Vec::new();
        for scenario in all().unwrap() {
            assert!(scenario.seeds.clone().all(temponet_sim::is_for_evaluation), "{}", scenario.name);
            assert!(scenario.quick_sets <= scenario.seeds.clone().count() as u64, "{}", scenario.name);
            assert!(find(&scenario.name).is_ok());
            taken.extend(scenario.seeds);
        }
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "two scenarios share a seed");
    }

    #[test]
    fn held_out_kinds_say_so_and_use_what_no_training_range_draws() {
        let second = of_version(2).unwrap();
        assert!(of_version(1).unwrap().iter().all(|scenario| !scenario.held_out));
        for scenario in &second {
            assert_eq!(scenario.held_out, scenario.description.starts_with("held out: "), "{}", scenario.name);
            let is_special = scenario.properties.shape != Shape::default()
                || matches!(scenario.source, Sets::Frames(_) | Sets::Requests(_))
                || matches!(&scenario.source, Sets::Builtin(sets) if sets.iter().all(|set| set.text.contains("[[chain]]")))
                || matches!(scenario.properties.execution, Some(ExecutionShares::Trimodal { .. }));
            assert_eq!(scenario.held_out, is_special, "{}", scenario.name);
        }
        assert!(second.iter().filter(|scenario| scenario.held_out).count() >= 6);
    }

    #[test]
    fn every_file_in_the_folder_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut stems: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().into()).collect();
        stems.sort();
        let mut listed = names();
        listed.sort_unstable();
        assert_eq!(stems, listed);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let good = FILES[0].1;
        let why = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            Scenario::parse("s", &good.replace(from, to)).unwrap_err().to_string()
        };
        assert!(why("version = 1", "versions = 1").contains("unknown field `versions`"));
        assert!(why("[9000000000,", "[8999999999,").contains("within 9000000000 to 9000999999"));
        assert!(why("log:10ms,100ms", "lag:10ms").contains("none of log, uniform"));
        assert!(why("\"abort\"", "\"retry\"").contains("none of abort, continue"));
        assert!(why("cores = 1", "").contains("need cores"));
        assert!(why("version = 1", "version = 1\narena = 3").contains("arena = 3 is neither 1 nor 2"));
        let twice = good.to_string() + "\n[requests]\ngap_us = 1.0\nshape = 1.3\nlongest = 9.0\nkinds = [[1.0, 1.0]]\n";
        assert!(Scenario::parse("s", &twice).unwrap_err().to_string().contains("exactly one of"));
        let variety = good.to_string() + "\n[variety]\njitter = { chance = 1.0, range = [0.5, 2.0] }\n";
        assert!(
            Scenario::parse("s", &variety).unwrap_err().to_string().contains("variety.jitter: [0.5, 2] is no range")
        );
        assert!(why("tasks = [5, 15]", "tasks = [15, 5]").contains("LEAST, MOST"));
        let unknown = find("one-cores").unwrap_err().to_string();
        assert!(names().iter().all(|name| unknown.contains(name)), "{unknown}");
    }
}
