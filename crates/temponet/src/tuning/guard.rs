//! The guard of critical jobs: the candidate that serves them by construction, which is only left for one that serves
//! them as well.
//!
//! That no critical job of a few hundred was lost under another candidate does not say that none will be. But a certain
//! gain is not given up for a loss that was never seen either: where too few jobs of a level were simulated, more are,
//! and what is then still open at a higher level is weighed against what is certain at a lower one, each as a share of
//! its own level.
//!
//! That the winner of the race loses critical jobs says nothing of the others, which may differ from it only there. So
//! the next ones are tried before the guard is followed.

use serde::{Deserialize, Serialize};
use temponet_sched::catalog::Mark;
use temponet_sim::labels;
use temponet_sim::ranking::{self, Edge, NEGLIGIBLE};
use temponet_task::{Goal, Measure, System, Task};

use super::Settings;
use super::by_ranking::FINALISTS;
use super::candidates::Candidate;
use super::contest::Contestant;
use super::race::{EVIDENCE, Jobs, Race, Stays, guarantees, run};

/// Number of jobs of a level without a loss after which only a negligible share may still be lost (rule of three).
const ENOUGH: u64 = 3_000;
/// Greatest factor on the effort where critical jobs or chains are at stake.
pub(super) const MOST_EFFORT: u64 = 4;

/// The candidate that serves critical jobs by construction, on a system whose goal begins with critical jobs that the
/// shield does not all guarantee.
pub(super) struct Guard<'a> {
    pub candidate: &'a Candidate,
    /// Places of the measures of critical jobs that are not guaranteed, and their levels, in the order of the goal.
    levels: Vec<(usize, u8)>,
}

/// How a candidate served the critical jobs, beside the guard on the same jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// The candidate.
    pub name: String,
    /// The guard.
    pub guard: String,
    /// The first level in which the two differ; none if they do in none.
    pub lead: Option<Lead>,
    /// More important levels in which no difference was seen, as far as more than a negligible share of their jobs may
    /// still be lost.
    pub open: Vec<OpenLevel>,
    /// More important levels in which the candidate was behind by what may be chance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Lead>,
    /// Whether the candidate may be followed.
    pub is_as_good: bool,
}

/// Difference to the guard in the jobs of a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// The jobs of the level, as in "criticality 2".
    pub measure: String,
    /// Mean difference as a share of the level's jobs; positive if the candidate is ahead.
    pub difference: f64,
    /// Half its 95% confidence interval.
    pub ci95: f64,
    /// Number of simulated jobs of the level.
    #[serde(default)]
    pub jobs: u64,
}

impl Lead {
    /// Whether chance alone would explain the difference.
    pub(super) fn may_be_chance(&self) -> bool {
        self.difference.abs() <= self.ci95
    }
}

/// A level of which too few jobs were simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLevel {
    /// The jobs of the level, as in "criticality 2".
    pub measure: String,
    /// Number of simulated jobs of the level.
    pub jobs: u64,
    /// Share of them that the candidate may lose beyond the guard, with a confidence of 95%.
    pub possible_loss: f64,
}

impl Service {
    pub(super) fn is_as_good(&self) -> bool {
        self.is_as_good
    }

    /// Whether the candidate is the guard itself.
    pub(super) fn is_of_guard(&self) -> bool {
        self.name == self.guard
    }

    /// The factor on the effort after which enough jobs of every open level would have been simulated, within bounds;
    /// `None` if more jobs are not what is lacking.
    pub(super) fn lacks(&self) -> Option<u64> {
        let is_behind = self.lead.as_ref().is_some_and(|lead| lead.difference < 0.0);
        if self.is_as_good || is_behind {
            return None;
        }
        if !self.passed.is_empty() {
            return Some(MOST_EFFORT);
        }
        let fewest = self.open.iter().map(|level| level.jobs).min()?;
        Some(ENOUGH.div_ceil(fewest.max(1)).clamp(2, MOST_EFFORT))
    }
}

impl<'a> Guard<'a> {
    pub fn of(system: &System, jobs: Jobs<'_>, simple: &[&'a Candidate], is_shielded: bool) -> Option<Guard<'a>> {
        let level = |(place, measure): (usize, &Measure)| match measure {
            Measure::Critical(level) => Some((place, *level)),
            _ => None,
        };
        let is_open = |(_, level): &(usize, u8)| {
            !is_shielded || !guarantees(system, jobs, |task: &Task| task.criticality == *level)
        };
        let leading = system.goal().measures().iter().enumerate().map_while(level);
        let levels: Vec<(usize, u8)> = leading.filter(is_open).collect();
        let candidate = simple.iter().copied().find(|one| one.has(Mark::CriticalFirst))?;
        (!levels.is_empty()).then_some(Guard { candidate, levels })
    }

    /// Lets the winner of a race run against the guard, on other jobs than those on which it won, and longer if too few
    /// jobs were simulated.
    pub fn tries(&self, system: &System, jobs: Jobs<'_>, winner: &Candidate, settings: Settings) -> Service {
        if winner.name() == self.candidate.name() {
            return self.refused(winner.name(), true);
        }
        let pair = [winner, self.candidate];
        let duel = |settings: Settings| {
            let race = run(system, jobs, &pair, &settings, Stays::One(self.candidate.name())).ok()?;
            let one = race.all().find(|one| one.name() == winner.name())?;
            Some(self.service(system.goal(), &race, one))
        };
        let first = duel(settings).unwrap_or_else(|| self.refused(winner.name(), false));
        let longer = first.lacks().and_then(|factor| duel(settings.times_at_most(factor)?));
        longer.unwrap_or(first)
    }

    /// Lets those that came next in a race run against the guard, all on the same jobs. Returns the best of those that
    /// serve the critical jobs as well as the guard, and the race that showed it; `None` if none does.
    pub fn tries_others(
        &self,
        system: &System,
        jobs: Jobs<'_>,
        others: &[&'a Candidate],
        settings: Settings,
    ) -> Option<(Service, Race<'a>)> {
        let goal = system.goal();
        let challengers = others.iter().copied().filter(|one| one.name() != self.candidate.name()).take(FINALISTS);
        let all: Vec<&Candidate> = challengers.chain([self.candidate]).collect();
        let settings = settings.times_at_most(MOST_EFFORT).unwrap_or(settings);
        let race = run(system, jobs, &all, &settings, Stays::Everybody).ok()?;
        let is_as_good =
            |one: &Contestant<'_>| one.name() != self.candidate.name() && self.service(goal, &race, one).is_as_good();
        let service = self.service(goal, &race, race.best(goal, is_as_good)?);
        Some((service, race))
    }

    fn refused(&self, name: &str, is_as_good: bool) -> Service {
        let guard = self.candidate.name().into();
        Service { name: name.into(), guard, lead: None, open: Vec::new(), passed: Vec::new(), is_as_good }
    }

    /// How a contestant of a race served the critical jobs beside the guard. From the highest level down, a difference
    /// that is no chance decides, and a lead that is likely. A level above it in which something may still be lost must
    /// be outweighed, by the rule of every comparison ([`ranking::outweighs`]).
    pub fn service(&self, goal: &Goal, race: &Race<'_>, one: &Contestant<'_>) -> Service {
        let Some(guard) = race.racing.iter().find(|other| other.name() == self.candidate.name()) else {
            return self.refused(one.name(), false);
        };
        let (own, other) = (one.scores(goal, guard.blocks()), guard.scores(goal, one.blocks()));
        let heading = |level: u8| labels::whole(goal, Measure::Critical(level));
        let mut service = self.refused(one.name(), true);
        let mut doubts: Vec<Edge> = Vec::new();
        for (place, level) in &self.levels {
            let jobs = one.jobs_of_level(*level);
            let edge = ranking::edge_at(goal, &own, &other, *place, Some(jobs as f64));
            let (difference, Some(error)) = ranking::difference(&own, &other, *place) else {
                return self.refused(one.name(), false);
            };
            let here = Lead { measure: heading(*level), difference, ci95: edge.half().unwrap_or(0.0), jobs };
            // A loss in a single block is as large as its standard error.
            let is_likely = difference.abs() > EVIDENCE * error + ranking::ROUNDING;
            if is_likely && (difference > 0.0 || !edge.may_be_chance()) {
                service.is_as_good = difference > 0.0 && doubts.iter().all(|doubt| ranking::outweighs(&edge, doubt));
                service.lead = Some(here);
                return service;
            }
            let possible_loss = edge.possible_loss();
            if is_likely {
                service.passed.push(here);
                doubts.push(edge);
            } else if possible_loss > NEGLIGIBLE {
                service.open.push(OpenLevel { measure: here.measure, jobs, possible_loss });
                doubts.push(edge);
            }
        }
        service.is_as_good = doubts.iter().all(|doubt| doubt.possible_loss() <= NEGLIGIBLE);
        service
    }
}
