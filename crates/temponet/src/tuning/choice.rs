//! The result of tuning: which candidate is followed, and what speaks for it.

use std::fmt;
use temponet_sim::labels;
use temponet_sim::statistics::margin;

use serde::{Deserialize, Serialize};
use temponet_task::{Goal, System};
use temponet_wording::counted;

use super::candidates::NETWORK;
use super::guard::{OpenLevel, Service};

/// Basis of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The candidates were simulated.
    Simulated,
    /// The candidates were simulated, and none of them is known to serve the critical jobs as well as the one that does
    /// so by construction.
    Guarded,
    /// The simple candidates were simulated, and the best of them lost nothing, so that the network could gain nothing.
    NothingLost,
    /// The verdict of a training on this system found the network ahead of every other scheduler.
    Judged,
    /// The shield guarantees every deadline, so that every candidate serves the goal equally well.
    Guaranteed,
    /// The jobs are a list, which nobody knows beforehand.
    Unknown,
    /// A simulation would take too long, because the candidates decide too often or among too many jobs.
    TooLong,
    /// Tuning is off.
    Off,
}

/// What one candidate achieved in the simulation. All figures are shares from 0 to 1, one per measure of the goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateScore {
    /// Name of the candidate.
    pub name: String,
    /// Measures of the goal.
    pub scores: Vec<f64>,
    /// Standard errors of the scores.
    pub errors: Vec<f64>,
    /// Paired difference to the best simple candidate, over the blocks that both ran.
    pub differences: Vec<f64>,
    /// Standard errors of the differences.
    pub difference_errors: Vec<f64>,
    /// Number of blocks. A candidate that is clearly worse is dropped early.
    pub blocks: usize,
}

/// Which candidate is followed on a system, and what speaks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Name of the followed candidate: [`super::NETWORK`], or the spec of a scheduler of the catalog.
    pub name: String,
    /// Candidate that ties go to.
    pub favourite: String,
    /// Simple candidate that did best; empty if nothing was simulated. The network ran against this one, on other jobs
    /// than those on which the simple candidates ran against each other.
    #[serde(default)]
    pub best_simple: String,
    /// Basis of the choice.
    pub why: Why,
    /// Headings of the goal's measures, most important first.
    pub measures: Vec<String>,
    /// What these measures are shares of, for sentences: "the jobs", "criticality 2".
    #[serde(default)]
    pub wholes: Vec<String>,
    /// Number of simulated jobs of the followed candidate.
    pub jobs: u64,
    /// Candidates that were simulated, in the order of the portfolio.
    pub candidates: Vec<CandidateScore>,
    /// Names of the modes that were simulated because they can end a guarantee of every deadline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    /// How the followed candidate, or the one that was refused, serves critical jobs beside the one that does so by
    /// construction; none where that is not the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
}

impl Choice {
    /// A choice without a simulation.
    pub(super) fn untested(name: &str, why: Why, goal: &Goal) -> Choice {
        Choice {
            name: name.into(),
            favourite: name.into(),
            best_simple: String::new(),
            why,
            measures: goal.measures().iter().map(|measure| labels::measure(goal, *measure)).collect(),
            wholes: goal.measures().iter().map(|measure| labels::whole(goal, *measure)).collect(),
            jobs: 0,
            candidates: Vec::new(),
            modes: Vec::new(),
            service: None,
        }
    }

    /// A choice of the network by a verdict on it: `network` is what it achieved in `jobs` jobs, with its differences
    /// to `other`, the best other scheduler.
    pub fn judged(goal: &Goal, network: CandidateScore, other: &str, jobs: u64) -> Choice {
        let network = CandidateScore { name: NETWORK.into(), ..network };
        Choice {
            best_simple: other.into(),
            jobs,
            candidates: vec![network],
            ..Choice::untested(NETWORK, Why::Judged, goal)
        }
    }

    /// Adds the reports on candidates that are in none of these.
    pub(super) fn add_earlier_to(&self, candidates: &mut Vec<CandidateScore>) {
        let is_new = |row: &&CandidateScore| candidates.iter().all(|known| known.name != row.name);
        let others: Vec<CandidateScore> = self.candidates.iter().filter(is_new).cloned().collect();
        candidates.extend(others);
    }

    /// Returns the score of a candidate that was simulated.
    pub fn candidate(&self, name: &str) -> Option<&CandidateScore> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }
}

/// The verdict in one sentence, without its full stop.
impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, jobs) = (spoken(&self.name), counted(self.jobs, "simulated job"));
        match self.why {
            Why::Off => write!(out, "{name} is followed: tuning is off"),
            Why::Unknown => write!(out, "{name} is followed at first: the jobs are not known beforehand"),
            Why::TooLong => write!(out, "{name} is followed: a simulation of the candidates would take too long"),
            Why::Guaranteed => {
                write!(
                    out,
                    "{name} is followed: every deadline is guaranteed if tasks do as they say, whichever candidate chooses"
                )
            }
            Why::NothingLost => write!(
                out,
                "{name} is followed: it lost nothing in {jobs}, so that the network could gain nothing that was seen"
            ),
            Why::Judged => {
                write!(out, "{name} is followed: in the verdict of its training, {} in {jobs}", self.standing())
            }
            Why::Guarded => write!(out, "{name} is followed: {}", self.refusal()),
            Why::Simulated => write!(out, "{name} is followed: {} in {jobs}{}", self.standing(), self.trade()),
        }?;
        match self.modes.is_empty() {
            true => Ok(()),
            false => write!(out, "; its modes can end the guarantee of every deadline and were simulated, too"),
        }
    }
}

impl Choice {
    /// What the measures are shares of. Choices of older files do not say it.
    fn wholes(&self) -> &[String] {
        if self.wholes.is_empty() { &self.measures } else { &self.wholes }
    }

    /// States by how much the followed candidate was ahead: of the best simple one, or of the network.
    fn standing(&self) -> String {
        let Some(network) = self.candidate(NETWORK) else {
            return format!("the best of {}", counted(self.candidates.len(), "simple scheduler"));
        };
        let (sign, other) =
            if self.name == NETWORK { (1.0, self.best_simple.as_str()) } else { (-1.0, spoken(NETWORK)) };
        let pairs = || network.differences.iter().zip(&network.difference_errors).zip(self.wholes());
        // A simple candidate is followed although the network is a little ahead, where that is not certain.
        let first = pairs().find(|((difference, error), _)| difference.abs() > **error);
        let uncertain = first.filter(|((difference, _), _)| sign * **difference < 0.0 && self.name != NETWORK);
        if let Some(((difference, error), measure)) = uncertain {
            let half = margin(network.blocks, 0.025) * error;
            let lead = points(*difference, half, measure);
            let doubt = if *difference > half { "too little to outweigh what comes first" } else { "chance" };
            return format!("{other} is {lead} ahead of it, which may be {doubt},");
        }
        match pairs().find(|((difference, error), _)| sign * **difference > **error) {
            Some(((difference, error), measure)) => {
                let half = margin(network.blocks, 0.025) * error;
                let chance = if sign * difference > half { "" } else { ", which may be chance," };
                format!("{} ahead of {other}{chance}", points(sign * difference, half, measure))
            }
            None => format!("level with {other}"),
        }
    }

    /// States what a candidate that left the guard gains and risks by that; empty where there is no guard.
    fn trade(&self) -> String {
        let Some(Service { guard, lead, open, passed, .. }) = self.service.as_ref().filter(|of| of.name == self.name)
        else {
            return String::new();
        };
        let lead = match lead {
            Some(lead) => format!("{} ahead of {guard}", points(lead.difference, lead.ci95, &lead.measure)),
            None => format!("it serves the critical jobs as well as {guard}"),
        };
        let behind = passed.iter().map(|loss| {
            format!("{} behind it, which may be chance", points(-loss.difference, loss.ci95, &loss.measure))
        });
        let doubts: Vec<String> = behind.chain(open.iter().map(in_words)).collect();
        let though = if doubts.is_empty() { "" } else { ", though " };
        format!("; {lead}{though}{}", doubts.join(", and "))
    }

    /// States why another candidate was not left for the guard.
    fn refusal(&self) -> String {
        let known = "no other candidate is known to serve the critical jobs as well";
        let Some(Service { name, guard, lead, open, .. }) = &self.service else { return known.into() };
        let (name, behind) = (spoken(name), lead.as_ref().filter(|lead| lead.difference < 0.0));
        match (behind, open.first()) {
            (Some(lead), _) => {
                let chance = if lead.may_be_chance() { ", which may be chance" } else { "" };
                format!("{name} is {} behind {guard}{chance}", points(-lead.difference, lead.ci95, &lead.measure))
            }
            (None, Some(level)) => {
                let gain = lead.as_ref().map_or(String::new(), |lead| {
                    format!(", more than its lead of {}", points(lead.difference, lead.ci95, &lead.measure))
                });
                format!("{name} was ahead, but {}{gain}", in_words(level))
            }
            (None, None) => known.into(),
        }
    }
}

/// Name of a candidate in a sentence.
fn spoken(name: &str) -> &str {
    if name == NETWORK { "the network" } else { name }
}

fn points(difference: f64, half: f64, measure: &str) -> String {
    // Small differences need more digits to be visible.
    let digits = if difference.abs() < 5e-5 { 5 } else { 2 };
    // A single run has no interval.
    let half = if half.is_finite() { format!(" ± {:.digits$}", 100.0 * half) } else { String::new() };
    format!("{:.digits$}{half} points of {measure}", 100.0 * difference)
}

fn in_words(level: &OpenLevel) -> String {
    let OpenLevel { measure, jobs, possible_loss } = level;
    let share = 100.0 * possible_loss;
    format!("{} of {measure} leave open that it loses up to {share:.2}% of them", counted(*jobs, "simulated job"))
}

/// A choice as a model file holds it, with what it was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunedModel {
    /// Name of the task set, for people.
    pub set: String,
    /// [`System::fingerprint`] of the system.
    pub system: String,
    /// Checksum of the network's weights. Another network needs another choice.
    pub weights: String,
    /// The choice.
    pub choice: Choice,
}

impl TunedModel {
    /// Whether the choice was made for this system.
    pub fn is_for(&self, system: &System) -> bool {
        self.system == system.fingerprint()
    }
}
