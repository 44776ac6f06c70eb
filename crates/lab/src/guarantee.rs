//! What the shield guarantees on a task set, as a JSON object.
//!
//! It depends on the set alone, not on the scheduler behind the shield, and it does not need the schedulability tests
//! of `temponet analyze`: a part of a set can be guaranteed where the whole cannot be analyzed.

use serde::Serialize;
use temponet_sched::LARGEST_SCALING;
use temponet_sched::shield::{Guarantee, Role};
use temponet_task::{Mode, TaskSet, Time};
use temponet_wording::listed;

/// Role of the shield on a set, as a JSON object.
#[derive(Serialize)]
pub struct JsonGuarantee {
    /// `slack_stealing`, `stand_in` or `none`.
    role: &'static str,
    /// The role in one sentence.
    sentence: String,
    /// Guaranteed tasks, in the order of the set.
    tasks: Vec<JsonGuaranteed>,
    /// Other tasks, in the order of the set.
    not_guaranteed: Vec<JsonNotGuaranteed>,
    /// Cores that keep time for a guaranteed task; left out where the factors were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<Vec<KeptCore>>,
    /// Whether jobs that overrun their wcet are guaranteed even then; null unless cores keep the time.
    covers_overruns: Option<bool>,
    /// Sentences on what modes except from the guarantee.
    exceptions: Vec<String>,
}

#[derive(Serialize)]
struct JsonGuaranteed {
    name: String,
    /// Core that keeps time for the task; null where a stand-in decides.
    core: Option<usize>,
}

#[derive(Serialize)]
struct JsonNotGuaranteed {
    name: String,
    reason: String,
}

/// A core that keeps time for guaranteed tasks.
#[derive(Serialize)]
pub struct KeptCore {
    /// Index of the core.
    pub core: usize,
    /// Utilization of its guaranteed tasks at the wcet, 0 to 1.
    pub utilization: f64,
    /// Largest factor on their execution times at which they still fit, up to [`LARGEST_SCALING`]; null for very large
    /// sets, where it would take too long.
    pub growth: Option<f64>,
}

/// Name of the inner scheduler in sentences about the shield.
const INNER: &str = "the network";

/// Largest number of names in a sentence.
const MOST_NAMES: usize = 6;

/// Largest product of tasks and cores for which growth factors are computed. Each factor takes about 20 tests.
const MOST_TESTED: usize = 200_000;

/// What the shield guarantees on a set.
pub struct Guaranteed<'a> {
    set: &'a TaskSet,
    role: Role,
}

impl<'a> Guaranteed<'a> {
    /// Proves what the shield guarantees on the set.
    pub fn on(set: &'a TaskSet) -> Guaranteed<'a> {
        Guaranteed { set, role: Role::on(&set.system) }
    }

    /// Takes a role that has been proved for it.
    pub fn with(set: &'a TaskSet, role: Role) -> Guaranteed<'a> {
        Guaranteed { set, role }
    }

    /// Returns the role of the shield.
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// The role of the shield as the continuation of a sentence that begins with "the shield".
    pub fn sentence(&self) -> String {
        self.role.sentence(INNER)
    }

    /// Returns the role as a JSON object, without the growth factors.
    pub fn json(&self) -> JsonGuarantee {
        self.json_of(None)
    }

    /// Returns the role as a JSON object, with the cores and their growth factors.
    pub fn json_with_cores(&self) -> JsonGuarantee {
        self.json_of(Some(self.cores()))
    }

    fn json_of(&self, cores: Option<Vec<KeptCore>>) -> JsonGuarantee {
        let all = || self.set.tasks().iter().map(|task| task.name.clone());
        let (mut tasks, mut not_guaranteed) = (Vec::new(), Vec::new());
        let role = match &self.role {
            Role::StealsSlack(guarantee) => {
                for (name, core) in guarantee.tasks() {
                    let name = name.to_string();
                    match core {
                        Ok(core) => tasks.push(JsonGuaranteed { name, core: Some(core.index()) }),
                        Err(why) => not_guaranteed.push(JsonNotGuaranteed { name, reason: why.to_string() }),
                    }
                }
                "slack_stealing"
            }
            Role::StandIn(_) => {
                tasks.extend(all().map(|name| JsonGuaranteed { name, core: None }));
                "stand_in"
            }
            Role::Disarmed(why) => {
                not_guaranteed.extend(all().map(|name| JsonNotGuaranteed { name, reason: why.to_string() }));
                "none"
            }
            _ => "unknown",
        };
        let covers_overruns = self.role.guarantee().map(Guarantee::covers_overruns);
        let (sentence, exceptions) = (self.sentence(), self.exceptions());
        JsonGuarantee { role, sentence, tasks, not_guaranteed, cores, covers_overruns, exceptions }
    }

    /// Returns the cores that keep time for guaranteed tasks.
    pub fn cores(&self) -> Vec<KeptCore> {
        let Some(guarantee) = self.role.guarantee() else { return Vec::new() };
        let is_tested = self.set.tasks().len().saturating_mul(self.set.cores()) <= MOST_TESTED;
        let growth = if is_tested { guarantee.growth(&self.set.system, LARGEST_SCALING) } else { Vec::new() };
        let mut utilization = vec![None; self.set.cores()];
        for (id, task) in self.set.task_ids().zip(self.set.tasks()) {
            if let Some(core) = guarantee.core_of(id) {
                *utilization[core].get_or_insert(0.0) += task.utilization();
            }
        }
        let kept = utilization.into_iter().enumerate().filter_map(|(core, utilization)| Some((core, utilization?)));
        kept.map(|(core, utilization)| KeptCore { core, utilization, growth: growth.get(core).copied().flatten() })
            .collect()
    }

    /// Returns sentences on the modes in which something is not guaranteed. The shield does not know when they begin.
    pub fn exceptions(&self) -> Vec<String> {
        let named = |is_meant: &dyn Fn(&Mode) -> bool| {
            let modes: Vec<&str> =
                self.set.modes().iter().filter(|mode| is_meant(mode)).map(|mode| mode.name.as_str()).collect();
            let noun = if modes.len() == 1 { "mode" } else { "modes" };
            (!modes.is_empty()).then(|| format!("{noun} {}", listed(modes, MOST_NAMES)))
        };
        let mut sentences = Vec::new();
        let rates = |mode: &Mode| self.set.task_ids().map(|task| mode.rate_of(task)).collect::<Vec<_>>();
        let is_faster = |mode: &Mode| rates(mode).iter().any(|rate| *rate > 1.0);
        let other_rates = |mode: &Mode| rates(mode).iter().any(|rate| *rate != 1.0);
        match &self.role {
            Role::StealsSlack(guarantee) => {
                if let Some(modes) = named(&|mode| mode.work > 1.0 || is_faster(mode)) {
                    sentences.push(format!(
                        "In {modes}, jobs that come or take more than their task says are not guaranteed."
                    ));
                }
                if let Some(modes) = named(&other_rates).filter(|_| guarantee.needs_pattern()) {
                    sentences.push(format!("The other rates of {modes} end the guarantee of all tasks."));
                }
                let pays_for_all = self.set.cores() == 1 && self.set.costs().decision > Time::ZERO;
                if let Some(modes) = named(&is_faster).filter(|_| pays_for_all) {
                    sentences.push(format!("In {modes}, decisions can cost more than the guarantee provides for."));
                }
            }
            Role::StandIn(_) => {
                sentences.extend(named(&|_| true).map(|modes| format!("The switch to {modes} can end the guarantee.")));
            }
            _ => {}
        }
        sentences
    }
}
