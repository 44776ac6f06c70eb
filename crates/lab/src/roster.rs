//! The schedulers of the lab: the catalog of `temponet-sched`, to which this module adds the learned scheduler, the
//! tuned portfolio and the planner, and what these are built with.

use std::sync::{Arc, OnceLock};

use temponet::planner;
use temponet::stages::Learned;
use temponet::tuning::{Choices, Portfolio, Settings};
use temponet::{Model, Options, Temponet};
use temponet_sched::SpecError;
use temponet_sched::catalog::{self, Entry, Kind, Mark, RegisterError, Request, Spec};
use temponet_sched::shield::Role;
use temponet_task::{Scheduler, TaskSet};

use crate::advice::Decider;
use crate::guarantee::breaking_modes;

/// Name of the learned scheduler with its shield.
pub const SHIELDED: &str = "temponet";
/// Name of the learned scheduler without a shield: the network alone.
pub const UNSHIELDED: &str = "temponet-unshielded";
/// Name of the scheduler that follows the best simple scheduler of each set, found by simulation: the learned one
/// without network and shield.
pub const TUNED: &str = "tuned";
/// Name of the rollout planner. It is too slow for the list of all schedulers and has to be asked for.
pub const PLANNER: &str = planner::NAME;

/// Schedulers that search, which `temponet-paper` adds to the catalog. Who names one elsewhere is told so.
const OF_THE_PAPER: [&str; 7] = ["random-search", "pso", "cga", "hqiga", "mo-qiga", "mhqisso", "enf-s"];

/// Returns the entries of this module.
fn entries() -> [Entry; 4] {
    [
        Entry::new(
            SHIELDED,
            "the learned scheduler behind its shield: no deadline that is proved safe is missed",
            "uncertain execution times, several cores, bursts, values; any model can give the weights",
            |request| {
                let (roster, model) = of_model(request)?;
                let learned = Temponet::new(model, roster.options).map_err(|error| error.to_string())?;
                Ok(Box::new(learned.sharing(roster.choices.clone())))
            },
        )
        .kind(Kind::Learned),
        Entry::new(
            UNSHIELDED,
            "the network of the learned scheduler alone",
            "what the shield and the tuning cost and save",
            |request| {
                let (roster, model) = of_model(request)?;
                Ok(Box::new(Learned::new(model, roster.options).map_err(|error| error.to_string())?))
            },
        )
        .kind(Kind::Network),
        Entry::new(
            TUNED,
            "the simple scheduler that serves the set best, found by simulating the set before the run",
            "a known set without the learned scheduler; what the network adds is its distance from it",
            |request| {
                let roster = request.context::<Roster>().cloned().unwrap_or_default();
                let settings = settings(request.is_shielded);
                Ok(Box::new(Portfolio::classical(roster.options.tuning, settings).sharing(roster.choices)))
            },
        )
        .kind(Kind::Tuned),
        planner::entry(),
    ]
}

fn settings(is_shielded: bool) -> Settings {
    if is_shielded { Settings::SHIELDED } else { Settings::BARE }
}

/// Returns the roster of a request, and its model.
fn of_model<'a>(request: &'a Request<'_>) -> Result<(&'a Roster, Arc<Model>), String> {
    let found = request.context::<Roster>().and_then(|roster| Some((roster, roster.model.clone()?)));
    found.ok_or_else(|| "needs a model: a file or random:SEED".into())
}

/// Adds the schedulers of this module to the catalog. Everything here does that by itself.
///
/// A program that has registered a scheduler of its own under one of these names before keeps it. The error, which
/// every call returns, names the first of them.
pub fn register() -> Result<(), RegisterError> {
    static REGISTERED: OnceLock<Result<(), RegisterError>> = OnceLock::new();
    REGISTERED.get_or_init(|| entries().map(catalog::register).into_iter().collect()).clone()
}

/// Adds the schedulers of this module to the catalog, whoever has taken their names.
fn ensure_registered() {
    let _ = register();
}

/// Returns all entries of the catalog, those of this module among them.
pub fn all() -> Vec<&'static Entry> {
    ensure_registered();
    catalog::all()
}

/// Whether a scheduler is the baseline, which tables, curves and pictures always show.
pub fn is_baseline(name: &str) -> bool {
    catalog::is_marked(name, Mark::Baseline)
}

/// Returns the kind of the scheduler that a name, with or without options and shield, stands for. A name that is not in
/// the catalog is that of the embedding program.
pub fn kind(spec: &str) -> Kind {
    ensure_registered();
    Spec::entry_of(spec, &[]).map_or(Kind::User, |entry| entry.kind)
}

/// Whether a name puts the shield in front of a scheduler that has none of its own.
pub fn adds_shield(spec: &str) -> bool {
    spec.starts_with("shield:")
}

/// Whether the scheduler with this name, with or without options, runs behind the shield.
pub fn is_shielded(spec: &str) -> bool {
    kind(spec) == Kind::Learned || adds_shield(spec)
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
    /// Schedulers of the embedding program that are not for the catalog of the whole process. Their names win over all
    /// others.
    pub own: Vec<Entry>,
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

    /// Returns all names but those of slow schedulers, those of this project's own schedulers first.
    pub fn names(&self) -> Vec<String> {
        let is_listed = |kind: Kind| !kind.is_slow() && (self.model.is_some() || !kind.is_learned());
        all().into_iter().filter(|entry| is_listed(entry.kind)).map(|entry| entry.name.to_string()).collect()
    }

    /// Returns the schedulers that a list of names stands for, without duplicates. `all` stands for [`Roster::names`];
    /// beside other names it adds schedulers with options, and those that are not in the list of all. What has a value
    /// and no name, such as the end of `look-ahead:caution=0.2,capacity=0.9`, is an option of the scheduler before it.
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
        ensure_registered();
        let named = Spec::parse(spec, &self.own).map_err(|error| match error {
            SpecError::Unknown(name, _) if OF_THE_PAPER.contains(&name.as_str()) => {
                let why = "is one of temponet-paper's: cargo build --release -p temponet-paper builds the program that has it";
                SpecError::Option(name, why.into())
            }
            error => error,
        })?;
        named.build(self)
    }

    /// Lets schedulers that follow others reckon with the modes of a set that end a guarantee, before they are built
    /// for it.
    pub fn foresee(&self, set: &TaskSet) {
        self.choices.foresee(&set.system, breaking_modes(set));
    }

    /// Returns who decides in a scheduler that follows another one, on a set; `None` for all others. The choice is
    /// shared with the schedulers that are built, so it is made once.
    pub fn decider(&self, spec: &str, set: &TaskSet) -> Option<Decider> {
        let system = &set.system;
        match kind(spec) {
            Kind::Learned => {
                let mut learned = Temponet::new(self.model.clone()?, self.options).ok()?.sharing(self.choices.clone());
                learned.start(system).ok()?;
                let choice = learned.choice()?;
                let decider = Decider::of(choice, Some(&learned.shield_role())).on(set, choice);
                Some(decider.beside(self.model.as_ref().and_then(|model| model.tuned()).as_ref(), system))
            }
            Kind::Tuned => {
                let is_shielded = adds_shield(spec);
                let tuned = Portfolio::classical(self.options.tuning, settings(is_shielded));
                let mut tuned = tuned.sharing(self.choices.clone());
                tuned.start(system).ok()?;
                let choice = tuned.choice()?;
                Some(Decider::of(choice, is_shielded.then(|| Role::on(system)).as_ref()).on(set, choice))
            }
            _ => None,
        }
    }

    /// Returns the name of a scheduler in results, which marks untrained models: random weights are never reported as
    /// TempoNet's.
    pub fn label(&self, spec: &str) -> String {
        let is_untrained = kind(spec).is_learned() && self.model.as_ref().is_some_and(|model| model.is_untrained());
        if is_untrained { format!("{spec} (untrained)") } else { spec.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planner_behind_the_shield_is_refused_with_the_reason() {
        for spec in ["shield:planner", "shield:planner:seed=2"] {
            let error = Roster::classical().build(spec).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|text| text.contains("runs without a shield")), "{error:?}");
        }
    }

    #[test]
    fn rivals_of_the_paper_are_named_as_such() {
        for name in OF_THE_PAPER {
            let error = Roster::classical().build(name).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|text| text.contains("one of temponet-paper's")), "{error:?}");
        }
    }

    #[test]
    fn an_own_scheduler_is_built_also_behind_the_shield_and_hides_others_of_its_name() {
        let own = Entry::new("my: own", "a test's", "this test", |_| Ok(catalog::global_edf()));
        let roster = Roster { own: vec![own.kind(Kind::User)], ..Roster::default() };
        assert!(roster.build("my: own").is_ok() && roster.build("shield:my: own").is_ok());
        assert!(Roster::classical().build("my: own").is_err());
        assert_eq!(
            (kind("my: own"), kind("shield:tuned"), kind("planner:8")),
            (Kind::User, Kind::Tuned, Kind::Planning)
        );
    }
}
