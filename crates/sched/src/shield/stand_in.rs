//! A stand-in: on several cores, where the tasks cannot be divided among the cores, a scheduler that is proved to meet
//! every deadline decides alone. This module chooses it, and checks during the run that jobs arrive and take their time
//! as the proof assumes.

use temponet_analysis::WorstCase;
use temponet_task::{Event, NotApplicable, Scheduler, System, SystemView, Time};

use super::arrivals::Arrivals;
use super::guarantee::{Guarantee, as_set};
use crate::catalog::find;
use crate::proofs::Facts;

/// A scheduler that decides alone, and what its proof relies on.
pub(super) struct StandIn {
    /// Name in the catalog.
    pub name: &'static str,
    pub scheduler: Box<dyn Scheduler>,
    /// Whether every deadline is guaranteed at present.
    pub is_armed: bool,
    /// What the jobs of all tasks have to keep to. The cores in it have no meaning.
    promised: Guarantee,
    arrivals: Arrivals,
}

/// A scheduler that can stand in.
struct Substitute {
    /// Name in the catalog.
    name: &'static str,
    /// Name in sentences.
    title: &'static str,
    /// Whether its proof holds only for the exact arrivals.
    is_exact: bool,
}

/// Schedulers that can stand in, in order of increasing migrations.
const SUBSTITUTES: [Substitute; 3] = [
    Substitute { name: "cd-split", title: "C=D splitting", is_exact: false },
    Substitute { name: "dp-wrap", title: "DP-Wrap", is_exact: true },
    Substitute { name: "edf", title: "EDF", is_exact: false },
];

/// Returns the name of a stand-in in sentences.
pub(super) fn title(name: &str) -> &str {
    SUBSTITUTES.iter().find(|candidate| candidate.name == name).map_or(name, |candidate| candidate.title)
}

/// Returns the name of the first of [`SUBSTITUTES`] that is proved to meet every deadline, and whether its proof holds
/// only for the exact arrivals.
pub(super) fn proved(system: &System) -> Option<(&'static str, bool)> {
    let is_identical = system.machine().is_plain() && system.machine().is_full_speed();
    let is_free = !system.is_limited() && !system.has_sections() && !system.has_precedence();
    if system.cores() == 1 || system.costs().decision > Time::ZERO || !is_identical || !is_free {
        return None;
    }
    let set = as_set(system, true);
    let worst_case = WorstCase::of(&set).ok()?;
    if worst_case.is_overloaded() == Some(true) {
        return None;
    }
    let facts = Facts::with(&set, worst_case);
    let is_proved =
        |candidate: &&Substitute| find(candidate.name).is_some_and(|entry| entry.proved_by(&facts).is_some());
    SUBSTITUTES.iter().find(is_proved).map(|candidate| (candidate.name, candidate.is_exact))
}

impl StandIn {
    /// The scheduler with this name, which is proved for jobs that keep to what is `promised`.
    pub fn new(name: &'static str, promised: Guarantee) -> Option<StandIn> {
        let scheduler = crate::build(name).ok()?;
        Some(StandIn { name, scheduler, is_armed: false, promised, arrivals: Arrivals::default() })
    }

    pub fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.arrivals.start(system);
        self.is_armed = true;
        self.scheduler.start(system)
    }

    /// Disarms when the premise is violated, and arms again when no effect of the violation is left. Returns whether
    /// the proof is void for the rest of the run.
    pub fn look_around(&mut self, view: &SystemView<'_>) -> bool {
        let losses = self.arrivals.observe(view, &self.promised);
        // The stand-in may plan with the wcet that it is told.
        let is_told_more = view.events.iter().any(|event| {
            let job = view.jobs.get(event.job().index());
            let exceeds = job.is_some_and(|job| self.promised.of(job).is_none_or(|task| job.wcet > task.budget));
            matches!(event, Event::Released(_)) && exceeds
        });
        let is_sound = (self.is_armed && losses.jobs == 0) || is_idle_instant(view);
        self.is_armed = is_sound && self.arrivals.is_complete() && !is_told_more && !losses.breaks_pattern;
        losses.breaks_pattern
    }
}

/// Whether no job was waiting just before, that is, whether every ready job has just been released.
fn is_idle_instant(view: &SystemView<'_>) -> bool {
    view.ready().all(|(_, job)| job.release == view.now && job.executed == Time::ZERO && job.deadline > view.now)
}
