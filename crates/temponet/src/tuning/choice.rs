//! The result of tuning: which candidate is followed, and what speaks for it.

use std::fmt;

use serde::{Deserialize, Serialize};
use temponet_task::{Goal, System};

use super::fingerprint::fingerprint;

/// Basis of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The candidates were simulated.
    Simulated,
    /// The shield guarantees every deadline, so that every candidate serves the goal equally well.
    Guaranteed,
    /// The jobs are a list, which nobody knows beforehand.
    Unknown,
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
    /// Paired difference to the followed candidate, over the blocks that both ran.
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
    /// Candidate that is followed as long as nothing speaks against it.
    pub favourite: String,
    /// Basis of the choice.
    pub why: Why,
    /// Headings of the goal's measures, most important first.
    pub measures: Vec<String>,
    /// Number of simulated jobs per candidate that was not dropped.
    pub jobs: u64,
    /// Candidates that were simulated, in the order of the portfolio.
    pub candidates: Vec<CandidateScore>,
}

impl Choice {
    /// A choice without a simulation.
    pub(super) fn untested(name: &str, why: Why, goal: &Goal) -> Choice {
        Choice {
            name: name.into(),
            favourite: name.into(),
            why,
            measures: goal.measures().iter().map(|measure| goal.label(*measure)).collect(),
            jobs: 0,
            candidates: Vec::new(),
        }
    }

    /// Returns the score of a candidate that was simulated.
    pub fn candidate(&self, name: &str) -> Option<&CandidateScore> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }
}

/// The verdict in one sentence.
impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.why {
            Why::Off => return write!(out, "{name} is followed: tuning is off"),
            Why::Unknown => return write!(out, "{name} is followed at first: the jobs are not known beforehand"),
            Why::Guaranteed => {
                return write!(out, "{name} is followed: every deadline is guaranteed, whichever candidate chooses");
            }
            Why::Simulated => {}
        }
        let other = if *name == self.favourite { None } else { self.candidate(&self.favourite) };
        let Some(other) = other else {
            return write!(out, "{name} is followed: no candidate is better beyond chance");
        };
        let beyond = |place: &usize| -other.differences[*place] > other.difference_errors[*place];
        match (0..self.measures.len()).find(beyond) {
            Some(place) => write!(
                out,
                "{name} is followed: {:.2} ± {:.2} points of {} ahead of {}",
                -100.0 * other.differences[place],
                100.0 * other.difference_errors[place],
                self.measures[place],
                self.favourite
            ),
            None => write!(out, "{name} is followed instead of {}", self.favourite),
        }
    }
}

/// A choice as a model file holds it, with what it was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunedModel {
    /// Name of the task set, for people.
    pub set: String,
    /// [`fingerprint`] of the system.
    pub system: String,
    /// Checksum of the network's weights. Another network needs another choice.
    pub weights: String,
    /// The choice.
    pub choice: Choice,
}

impl TunedModel {
    /// Whether the choice was made for this system.
    pub fn is_for(&self, system: &System) -> bool {
        self.system == fingerprint(system)
    }
}
