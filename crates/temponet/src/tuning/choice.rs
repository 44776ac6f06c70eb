//! The result of tuning: which candidate is followed, and what speaks for it.

use std::fmt;
use temponet_sim::labels;

use serde::{Deserialize, Serialize};
use temponet_task::{Goal, System};

use super::candidates::NETWORK;

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
    /// Number of simulated jobs of the followed candidate.
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
            best_simple: String::new(),
            why,
            measures: goal.measures().iter().map(|measure| labels::measure(goal, *measure)).collect(),
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
            Why::Guarded => {
                return write!(
                    out,
                    "{name} is followed: no other candidate is known to serve the critical jobs as well"
                );
            }
            Why::NothingLost => {
                return write!(
                    out,
                    "{name} is followed: it lost nothing in the simulation, so nothing is to be gained"
                );
            }
            Why::Simulated => {}
        }
        let Some(network) = self.candidate(NETWORK) else {
            return write!(out, "{name} is followed: the best of {} simple schedulers", self.candidates.len());
        };
        let (sign, other) = if name == NETWORK { (1.0, self.best_simple.as_str()) } else { (-1.0, NETWORK) };
        let pairs = || network.differences.iter().zip(&network.difference_errors).zip(&self.measures);
        match pairs().find(|((difference, error), _)| sign * **difference > **error) {
            Some(((difference, error), measure)) => write!(
                out,
                "{name} is followed: {:.2} ± {:.2} points of {measure} ahead of {other}",
                100.0 * sign * difference,
                100.0 * error
            ),
            None => write!(out, "{name} is followed: it is level with {other}"),
        }
    }
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
