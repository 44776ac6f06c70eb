//! The result of tuning: which candidate is followed, and what speaks for it.

use std::fmt;
use temponet_sim::labels;
use temponet_sim::statistics::margin;

use serde::{Deserialize, Serialize};
use temponet_task::{Goal, System};
use temponet_wording::counted;

use super::candidates::NETWORK;
use super::guard::{Lead, OpenLevel, Service};

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
    /// Number of simulated jobs in the blocks that the differences rest on.
    #[serde(default)]
    pub jobs: u64,
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
        let network = CandidateScore { name: NETWORK.into(), jobs, ..network };
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

    /// Returns the number of simulated jobs that the choice rests on: those that the network and the best simple
    /// candidate ran both, where the network ran at all. Choices of older files do not say it.
    pub fn compared_jobs(&self) -> u64 {
        self.candidate(NETWORK).map(|network| network.jobs).filter(|jobs| *jobs > 0).unwrap_or(self.jobs)
    }

    /// Returns the score of a candidate that was simulated.
    pub fn candidate(&self, name: &str) -> Option<&CandidateScore> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }
}

/// The verdict in one sentence, without its full stop.
impl fmt::Display for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, jobs) = (spoken(&self.name), counted(self.compared_jobs(), "simulated job"));
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
            Some(lead) => format!("{} ahead of {guard}{}", lead.points(), lead.evidence()),
            None => format!("it serves the critical jobs as well as {guard}"),
        };
        let behind = passed.iter().map(|loss| format!("{} behind it{}", loss.points(), loss.evidence()));
        let doubts: Vec<String> = behind.chain(open.iter().map(in_words)).collect();
        let though = if doubts.is_empty() { "" } else { ", though " };
        format!("; {lead}{though}{}", doubts.join(", and "))
    }

    /// States why another candidate was not left for the guard.
    fn refusal(&self) -> String {
        let known = "no other candidate is known to serve the critical jobs as well";
        let Some(Service { name, guard, lead, open, passed, .. }) = &self.service else { return known.into() };
        let (name, behind) = (spoken(name), lead.as_ref().filter(|lead| lead.difference < 0.0));
        let gain = lead
            .as_ref()
            .filter(|_| behind.is_none())
            .map_or(String::new(), |lead| format!(", which its lead of {} does not outweigh", lead.points()));
        match (behind.or(passed.first()), open.first()) {
            (Some(loss), _) => format!("{name} is {} behind {guard}{}{gain}", loss.points(), loss.evidence()),
            (None, Some(level)) => format!("no likely loss was seen under {name}, but {}{gain}", in_words(level)),
            (None, None) => known.into(),
        }
    }
}

impl Lead {
    /// The difference without its sign, as in "0.84 ± 0.37 points of criticality 1".
    fn points(&self) -> String {
        points(self.difference.abs(), self.ci95, &self.measure)
    }

    /// States what the difference rests on, and that it may be chance.
    fn evidence(&self) -> String {
        // Choices of older files do not say the number.
        let jobs = if self.jobs > 0 {
            format!(" in {} of that level", counted(self.jobs, "simulated job"))
        } else {
            String::new()
        };
        format!("{jobs}{}", if self.may_be_chance() { ", which may be chance" } else { "" })
    }
}

/// Name of a candidate in a sentence.
fn spoken(name: &str) -> &str {
    if name == NETWORK { "the network" } else { name }
}

fn points(difference: f64, half: f64, measure: &str) -> String {
    // Small differences need more digits to be visible.
    let digits = if difference.abs() < 5e-5 { 5 } else { 2 };
    // A single run has no interval, and one of a few runs may exclude nothing.
    let half = match half {
        half if !half.is_finite() => String::new(),
        half if half >= 1.0 => " (too few runs)".into(),
        half => format!(" ± {:.digits$}", 100.0 * half),
    };
    format!("{:.digits$}{half} points of {measure}", 100.0 * difference)
}

fn in_words(level: &OpenLevel) -> String {
    let OpenLevel { measure, jobs, possible_loss } = level;
    let share = 100.0 * possible_loss;
    let verb = if *jobs == 1 { "leaves" } else { "leave" };
    let jobs = match measure == "the critical jobs" {
        true => counted(*jobs, "simulated critical job"),
        false => format!("{} of {measure}", counted(*jobs, "simulated job")),
    };
    format!("{jobs} {verb} open that it loses up to {share:.2}% of them")
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

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Aim;

    fn lead(difference: f64, ci95: f64, jobs: u64) -> Lead {
        Lead { measure: "criticality 1".into(), difference, ci95, jobs }
    }

    fn choice(why: Why, service: Service) -> Choice {
        let goal = Goal::new(&[Aim::Critical, Aim::Met], &[1]);
        Choice { jobs: 900, best_simple: "mllf".into(), service: Some(service), ..Choice::untested("mllf", why, &goal) }
    }

    #[test]
    fn a_sentence_says_what_may_be_chance_and_what_it_rests_on() {
        let service = |lead: Option<Lead>, passed: Vec<Lead>, is_as_good| Service {
            name: "mllf".into(),
            guard: "muf".into(),
            lead,
            open: Vec::new(),
            passed,
            is_as_good,
        };
        let ahead = choice(Why::Simulated, service(Some(lead(0.02, 0.03, 500)), vec![lead(-0.0004, 0.0007, 40)], true));
        let text = ahead.to_string();
        assert!(
            text.ends_with(
                "; 2.00 ± 3.00 points of criticality 1 ahead of muf in 500 simulated jobs of that level, which may be chance, though \
                 0.04 ± 0.07 points of criticality 1 behind it in 40 simulated jobs of that level, which may be chance"
            ),
            "{text}"
        );
        let refused = choice(Why::Guarded, service(None, vec![lead(-0.0007, 0.001, 1)], false)).to_string();
        assert!(
            refused
                .ends_with("mllf is 0.07 ± 0.10 points of criticality 1 behind muf in 1 simulated job of that level, which may be chance"),
            "{refused}"
        );
    }

    /// The network dropped out after two blocks of the many that the followed candidate ran.
    #[test]
    fn a_lead_rests_on_the_jobs_that_both_ran() {
        let goal = Goal::new(&[Aim::Met], &[]);
        let network = CandidateScore {
            name: NETWORK.into(),
            scores: vec![0.5],
            errors: vec![0.01],
            differences: vec![-0.2],
            difference_errors: vec![0.01],
            blocks: 2,
            jobs: 60,
        };
        let mut choice =
            Choice { jobs: 900, candidates: vec![network], ..Choice::untested("edf", Why::Simulated, &goal) };
        assert!(
            choice.to_string().ends_with(" points of the jobs ahead of the network in 60 simulated jobs"),
            "{choice}"
        );
        assert_eq!(choice.compared_jobs(), 60);
        choice.candidates[0].difference_errors = vec![0.1];
        let text = choice.to_string();
        assert!(
            text.contains("20.00 (too few runs) points of the jobs ahead of the network, which may be chance,"),
            "{text}"
        );
        choice.candidates[0].jobs = 0;
        assert_eq!(choice.compared_jobs(), 900, "a file of an older version");
    }
}
