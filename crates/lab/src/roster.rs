//! All schedulers of the lab by name: those of `temponet-sched`, the tuned portfolio of them and, with a model, the
//! learned one.

use std::sync::Arc;

use temponet::planner::{self, Planner};
use temponet::search;
use temponet::stages::Learned;
use temponet::tuning::{Choices, Portfolio, Settings};
use temponet::{Model, NetworkError, Options, Temponet};
use temponet_sched::SpecError;
use temponet_sched::shield::Shield;
use temponet_task::Scheduler;
use temponet_wording::did_you_mean;

/// Name of the learned scheduler with its shield.
pub const SHIELDED: &str = "temponet";
/// Name of the learned scheduler without a shield: the network alone.
pub const UNSHIELDED: &str = "temponet-unshielded";
/// Name of the scheduler that follows the best simple scheduler of each set, found by simulation: the learned one without network and shield.
pub const TUNED: &str = "tuned";
/// The same behind the shield.
const SHIELDED_TUNED: &str = "shield:tuned";
/// Name of the rollout planner. It is too slow for the list of all schedulers and has to be asked for.
pub const PLANNER: &str = planner::NAME;
/// Names of the learned scheduler, with and without its shield.
pub const LEARNED: [&str; 2] = [SHIELDED, UNSHIELDED];

/// Name, default and meaning of an option.
pub type Described = (&'static str, &'static str, &'static str);

/// Names, summaries, purposes and options of this project's own schedulers that are not in the catalog of classical ones.
pub const LISTED: [(&str, &str, &str, &[Described]); 4] = [
    (
        SHIELDED,
        "the learned scheduler behind its shield: no deadline that is proved safe is missed",
        "uncertain execution times, several cores, bursts, values; --model names other weights",
        &[],
    ),
    (UNSHIELDED, "the network of the learned scheduler alone", "what the shield and the tuning cost and save", &[]),
    (
        TUNED,
        "the simple scheduler that serves the set best, found by simulating the set before the run",
        "a known set without the learned scheduler; what the network adds is its distance from it",
        &[],
    ),
    (
        PLANNER,
        "tries out each decision on futures drawn from what is known; slow, and only run if named",
        "the online reference: what an online scheduler could still gain",
        &planner::OPTIONS,
    ),
];

/// Whether a name, with or without options, is that of a scheduler from the literature that decides by a rule: neither the
/// learned one nor another of this project's own, and none that searches.
pub fn is_classical(spec: &str) -> bool {
    let is_ours = [TUNED, SHIELDED_TUNED].contains(&spec) || is_planner(spec) || is_search(spec);
    !LEARNED.contains(&spec) && !is_ours && temponet_sched::is_classical(spec)
}

/// Whether the scheduler with this name, with or without options, runs behind the shield.
pub fn is_shielded(spec: &str) -> bool {
    spec == SHIELDED || spec.starts_with("shield:")
}

/// Whether a name, with or without options, is that of the rollout planner, the online reference.
pub fn is_planner(spec: &str) -> bool {
    planner_options(spec).is_some()
}

/// Whether a name, with or without options, is that of a scheduler that searches. These are slow and have to be asked for.
pub fn is_search(spec: &str) -> bool {
    search::find(spec).is_some()
}

/// Returns the options in the name of the rollout planner; `None` if the name is another scheduler's.
fn planner_options(spec: &str) -> Option<&str> {
    let options = spec.strip_prefix(planner::NAME)?;
    if options.is_empty() { Some("") } else { options.strip_prefix(':') }
}

/// Builds schedulers from their names.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Model of the learned scheduler; without one, only the other schedulers exist.
    pub model: Option<Arc<Model>>,
    /// Options of the learned scheduler. With a budget, they should have its calibration: otherwise each scheduler that
    /// is built measures its own, and runs differ.
    pub options: Options,
    /// Which scheduler to follow on each set, once found. Clones of the roster share it.
    pub choices: Choices,
    /// Schedulers of the embedding program, by name. Their names win over all others.
    pub own: Vec<OwnScheduler>,
}

/// A scheduler of the embedding program.
#[derive(Clone)]
pub struct OwnScheduler {
    /// Name in results.
    pub name: String,
    /// Makes the scheduler of one run. Runs may be in parallel.
    pub make: Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>,
}

impl std::fmt::Debug for OwnScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnScheduler").field(&self.name).finish()
    }
}

impl Roster {
    /// A roster without a model, and so without the learned scheduler.
    pub fn classical() -> Roster {
        Roster::default()
    }

    /// A roster with a model for the learned scheduler, which has its default options.
    pub fn with(model: Model) -> Roster {
        Roster { model: Some(Arc::new(model)), ..Roster::default() }
    }

    /// Returns all names, those of this project's own schedulers first.
    pub fn names(&self) -> Vec<String> {
        let learned = LEARNED.iter().filter(|_| self.model.is_some()).copied();
        let ours = learned.chain([TUNED]);
        ours.chain(temponet_sched::ALL.iter().map(|entry| entry.name)).map(String::from).collect()
    }

    /// Returns the schedulers that a list of names stands for, without duplicates. `all` stands for [`Roster::names`]; beside
    /// other names it adds schedulers with options, and those that are not in the list of all. What has a value and no name, such
    /// as the end of `pso:evaluations=200,seed=1`, is an option of the scheduler before it.
    pub fn chosen<'a>(&self, list: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut specs: Vec<String> = Vec::new();
        for part in list.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
            let is_option = part.split_once('=').is_some_and(|(key, _)| !key.contains(':'));
            match specs.last_mut().filter(|last| is_option && last.contains(':')) {
                Some(last) => *last = format!("{last},{part}"),
                None => specs.push(part.into()),
            }
        }
        let mut names: Vec<String> = Vec::new();
        for name in specs {
            let meant = if name == "all" { self.names() } else { vec![name] };
            for name in meant {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Builds the scheduler with the given name and options.
    pub fn build(&self, spec: &str) -> Result<Box<dyn Scheduler>, SpecError> {
        if let Some(own) = self.own.iter().find(|own| own.name == spec) {
            return Ok((own.make)());
        }
        let shielded = spec.strip_prefix("shield:");
        if let Some(own) = self.own.iter().find(|own| Some(own.name.as_str()) == shielded) {
            return Ok(Box::new(Shield::new((own.make)())));
        }
        if let Some(options) = planner_options(spec) {
            return Ok(Box::new(Planner::with_options(options)?));
        }
        if let Some((method, options)) = search::find(spec) {
            return method.build(options);
        }
        let tuned = |settings| Portfolio::classical(self.options.tuning, settings).sharing(self.choices.clone());
        match spec {
            TUNED => return Ok(Box::new(tuned(Settings::BARE))),
            SHIELDED_TUNED => return Ok(Box::new(Shield::new(tuned(Settings::SHIELDED)))),
            _ => {}
        }
        if !LEARNED.contains(&spec) {
            return temponet_sched::build(spec).map_err(|error| match error {
                // The hint for a misspelled name must know the learned scheduler too.
                SpecError::Unknown(name, _) if LEARNED.contains(&name.as_str()) => {
                    SpecError::Option(spec.into(), format!("{name} has no options and needs no other shield"))
                }
                SpecError::Unknown(name, _) if name == planner::NAME || is_search(&name) => {
                    SpecError::Option(spec.into(), format!("{name} runs without a shield: {name} or {name}:OPTION=…"))
                }
                SpecError::Unknown(name, _) if name == TUNED => {
                    SpecError::Option(spec.into(), format!("{name} has no options"))
                }
                SpecError::Unknown(name, _) => {
                    let names = self.names();
                    let slow = search::ALL.iter().map(|method| method.name).chain(["shield", planner::NAME]);
                    let hint = did_you_mean(&name, names.iter().map(String::as_str).chain(slow));
                    SpecError::Unknown(name, hint)
                }
                error => error,
            });
        }
        let wrong = |why: String| SpecError::Option(spec.into(), why);
        let missing = || wrong("needs a model: --model FILE or --model random:SEED".into());
        let (model, options) = (self.model.clone().ok_or_else(missing)?, self.options);
        let cannot_run = |error: NetworkError| wrong(error.to_string());
        Ok(match spec {
            SHIELDED => Box::new(Temponet::new(model, options).map_err(cannot_run)?.sharing(self.choices.clone())),
            _ => Box::new(Learned::new(model, options).map_err(cannot_run)?),
        })
    }

    /// Returns the name of a scheduler in results, which marks untrained models: random weights are never reported as
    /// TempoNet's.
    pub fn label(&self, spec: &str) -> String {
        let is_untrained = LEARNED.contains(&spec) && self.model.as_ref().is_some_and(|model| model.is_untrained());
        if is_untrained { format!("{spec} (untrained)") } else { spec.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planner_or_search_behind_the_shield_is_refused_with_the_reason() {
        for spec in ["shield:planner", "shield:pso", "shield:enf-s:seed=2"] {
            let error = Roster::classical().build(spec).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|text| text.contains("runs without a shield")), "{error:?}");
        }
    }

    #[test]
    fn search_schedulers_are_built_by_name_and_are_not_classical() {
        for method in &search::ALL {
            assert!(Roster::classical().build(&format!("{}:evaluations=20,seed=3", method.name)).is_ok());
            assert!(!is_classical(method.name));
        }
    }
}
