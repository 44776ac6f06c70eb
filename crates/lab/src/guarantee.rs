//! What the shield guarantees on a task set, as a JSON object.
//!
//! It depends on the set alone, not on the scheduler behind the shield, and it does not need the schedulability tests
//! of `temponet analyze`: a part of a set can be guaranteed where the whole cannot be analyzed.

use serde::Serialize;
use temponet_sched::LARGEST_SCALING;
use temponet_sched::shield::{Guarantee, Role, WhyNot};
use temponet_task::{CoreId, Mode, TaskId, TaskSet, Time};
use temponet_wording::{behind_noun, listed};

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
    /// Sentences on what modes except from the guarantee, and on what it costs jobs that keep a core.
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

/// What the choice of the guaranteed tasks rests on, where modes change what they ask for.
const WITHOUT_MODES: &str = "What fits is judged by the tasks alone, as if no mode ever began.";

/// Largest number of names in a sentence.
const MOST_NAMES: usize = 6;

/// Largest product of tasks and cores for which growth factors are computed. Each factor takes about 20 tests.
const MOST_TESTED: usize = 200_000;

/// Returns the modes of a set if they can end what the shield guarantees on it; none otherwise.
pub fn breaking_modes(set: &TaskSet) -> &[Mode] {
    let breaks = !set.modes().is_empty() && !Guaranteed::on(set).exceptions_by_modes().is_empty();
    if breaks { set.modes() } else { &[] }
}

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

    /// Whether a guaranteed task may take longer than its wcet.
    pub fn has_overruns(&self) -> bool {
        let is_kept = |id: TaskId| self.role.guarantee().is_some_and(|guarantee| guarantee.core_of(id).is_some());
        let exceeds =
            |id: &TaskId| self.set.tasks()[*id].wcet_high.is_some_and(|high| high > self.set.tasks()[*id].wcet);
        self.set.task_ids().any(|id| is_kept(id) && exceeds(&id))
    }

    /// Returns the role of the shield.
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// The role of the shield as the continuation of a sentence that begins with "the shield".
    pub fn sentence(&self) -> String {
        self.role.sentence(INNER)
    }

    /// Returns the tasks that are not guaranteed, in the order of the set, each with the reason.
    pub fn not_guaranteed(&self) -> Vec<(&str, String)> {
        let named = |(id, why): (TaskId, Option<String>)| Some((self.set.tasks()[id].name.as_str(), why?));
        self.why_not().into_iter().filter_map(named).collect()
    }

    /// Returns for each task why it is not guaranteed, if it is not. Of a task with parts, the part at fault is named
    /// unless all have the same reason.
    fn why_not(&self) -> Vec<(TaskId, Option<String>)> {
        let reasons = self.role.why_not(&self.set.system);
        let other_part = WhyNot::OtherPart.to_string();
        let of_task = |whole: TaskId| {
            let own = || self.set.parts(whole).map(|part| reasons.get(part.index())?.as_ref()).zip(1..);
            let is_at_fault = |why: &Option<&String>| why.is_some_and(|why| *why != other_part);
            let (why, number) = own().find(|(why, _)| is_at_fault(why))?;
            match own().all(|(of_part, _)| of_part == why) {
                true => why.cloned(),
                false => Some(format!("part {number}: {}", why?)),
            }
        };
        self.set.whole_tasks().map(|task| (task, of_task(task))).collect()
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
        let role = match &self.role {
            Role::StealsSlack(_) => "slack_stealing",
            Role::StandIn(_) => "stand_in",
            Role::Disarmed(_) => "none",
            _ => "unknown",
        };
        let core_of = |id: TaskId| self.role.guarantee().and_then(|guarantee| guarantee.core_of(id));
        let (mut tasks, mut not_guaranteed) = (Vec::new(), Vec::new());
        for (id, why) in self.why_not() {
            let name = self.set.tasks()[id].name.clone();
            match why {
                None => tasks.push(JsonGuaranteed { name, core: core_of(id).map(CoreId::index) }),
                Some(reason) => not_guaranteed.push(JsonNotGuaranteed { name, reason }),
            }
        }
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

    /// Returns sentences on the modes in which something is not guaranteed, and on jobs that keep a core for a while.
    pub fn exceptions(&self) -> Vec<String> {
        let stretches = self.role.guarantee().map(|guarantee| self.stretches(guarantee));
        let is_unfit = |core: Result<CoreId, WhyNot>| {
            core.is_err_and(|why| !matches!(why, WhyNot::NotCritical | WhyNot::NotAsked))
        };
        let leaves_out = || match self.role.guarantee() {
            Some(guarantee) => guarantee.whole_tasks().any(|(_, core)| is_unfit(core)),
            None => matches!(self.role, Role::Disarmed(_)),
        };
        let without_modes = (!self.set.modes().is_empty() && leaves_out()).then(|| WITHOUT_MODES.to_string());
        self.exceptions_by_modes().into_iter().chain(without_modes).chain(stretches.unwrap_or_default()).collect()
    }

    /// Returns sentences on the modes in which something is not guaranteed, which the shield does not see coming.
    pub fn exceptions_by_modes(&self) -> Vec<String> {
        let named = |is_meant: &dyn Fn(&Mode) -> bool| {
            let modes: Vec<&str> =
                self.set.modes().iter().filter(|mode| is_meant(mode)).map(|mode| mode.name.as_str()).collect();
            (!modes.is_empty()).then(|| behind_noun("mode", modes, MOST_NAMES))
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

    /// Returns sentences on the resources that the shield rules, and on the jobs that it may keep from starting.
    fn stretches(&self, guarantee: &Guarantee) -> Vec<String> {
        let (mut sentences, ruled) = (Vec::new(), guarantee.ruled_resources(&self.set.system));
        if !ruled.is_empty() {
            let (them, one) = if ruled.len() == 1 { ("it", "it") } else { ("them", "one") };
            sentences.push(format!(
                "Behind the shield, jobs wait for {} on their cores, first come first served; they are not preempted \
                 while they wait for {them} or hold {one}.",
                listed(ruled, MOST_NAMES)
            ));
        }
        let restricted = guarantee.restricted(&self.set.system);
        if !restricted.is_empty() {
            let names = listed(restricted.iter().map(|task| self.set.tasks()[*task].name.as_str()), MOST_NAMES);
            sentences.push(format!(
                "Jobs of {names} keep a core for some time; out of turn they get it only where the slack of the \
                 guaranteed tasks covers that, which may be never."
            ));
        }
        sentences
    }
}
