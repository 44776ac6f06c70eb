//! A run of the arena, and the list of its scenarios, as JSON objects.

use serde::Serialize;

use super::{ArenaResults, ArenaRow, Difference, Possible, Scenario, ScenarioResult};
use crate::comparison::json::JsonSkipped;

/// JSON report. All shares are fractions; `ci95` is half the width of the confidence interval, null for one set.
#[derive(Serialize)]
pub struct JsonArena<'a> {
    quick: bool,
    scenarios: Vec<JsonScenario<'a>>,
    /// Standings over all scenarios; null without a model.
    summary: Option<JsonSummary>,
}

#[derive(Serialize)]
struct JsonScenario<'a> {
    name: &'a str,
    version: u32,
    /// Version of the arena.
    arena: u32,
    held_out: bool,
    description: &'a str,
    goal: &'static str,
    sets: usize,
    /// Schedulers, the best one first.
    schedulers: Vec<JsonRow<'a>>,
    best_classical: Option<&'a str>,
    /// Best of all schedulers but the learned one and planners.
    best_other: Option<&'a str>,
    /// Score of the learned scheduler minus that of the best classical one, paired by set; null without a model.
    paired_delta: Option<Difference>,
    /// Score of the learned scheduler minus that of the best other one, paired by set; null without a model.
    other_delta: Option<Difference>,
    /// `below`, `level`, `undecided` or `above`, against the best other scheduler; null without a model.
    standing: Option<&'static str>,
    /// Closed share of the gap between the best classical scheduler and the optimum; null if there is none.
    gap_closed: Option<f64>,
    /// The planner on its own sets, if planner, tuned and learned scheduler all ran.
    planner: Option<JsonPlanner>,
    /// Number of sets in which the learned scheduler has fewer critical jobs in time than the best classical one; null
    /// without critical jobs.
    sets_with_fewer_critical: Option<usize>,
    /// Clairvoyant optimum. `exact` tells whether `upper` is the optimum rather than a bound.
    clairvoyant: Possible,
    skipped: Vec<JsonSkipped<'a>>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    score: f64,
    compliance: f64,
    ci95: Option<f64>,
    /// Share of jobs in time by criticality level, the highest first; empty without critical jobs.
    levels: Vec<f64>,
    /// Numbers of the sets that the scheduler ran on; null for all of them.
    sets: Option<&'a [usize]>,
    /// Score of each of these sets.
    scores: Vec<f64>,
}

/// Gains over the scheduler `tuned`, on the sets that the planner ran on.
#[derive(Serialize)]
struct JsonPlanner {
    sets: usize,
    gain: Difference,
    learned_gain: Difference,
    /// The learned scheduler's gain as a share of the planner's; null if the planner gains hardly anything.
    reached: Option<f64>,
}

/// A scenario in a list.
#[derive(Serialize)]
pub struct JsonListed<'a> {
    name: &'a str,
    version: u32,
    arena: u32,
    held_out: bool,
    goal: &'static str,
    sets: usize,
    description: &'a str,
}

impl<'a> JsonListed<'a> {
    /// Returns the entry of a scenario.
    pub fn of(scenario: &'a Scenario) -> JsonListed<'a> {
        JsonListed {
            name: &scenario.name,
            version: scenario.version,
            arena: scenario.arena,
            held_out: scenario.held_out,
            goal: scenario.goal.name(),
            sets: scenario.seeds.clone().count(),
            description: &scenario.description,
        }
    }
}

#[derive(Serialize)]
struct JsonSummary {
    below: usize,
    level: usize,
    undecided: usize,
    above: usize,
    /// Closed share of all gaps between the best classical scheduler and the optimum; null if there is no gap.
    gap_closed: Option<f64>,
    /// Share of the planner's gains over `tuned` that the learned scheduler reaches; null without a planner.
    planner_gain_reached: Option<f64>,
    /// Number of scenarios with critical jobs.
    critical: usize,
    /// Number of those with a set in which fewer critical jobs are in time than with the best classical scheduler.
    fewer_critical: usize,
    verdict: String,
}

impl<'a> JsonArena<'a> {
    /// Returns the report of a run of the arena.
    pub fn of(arena: &'a ArenaResults) -> JsonArena<'a> {
        let summary = arena.summary().zip(arena.verdict()).map(|(summary, verdict)| {
            let [below, level, undecided, above] = summary.standings;
            let (critical, fewer_critical) = summary.critical;
            let (gap_closed, planner_gain_reached) = (summary.gap_closed, summary.planner_gain_reached);
            JsonSummary {
                below,
                level,
                undecided,
                above,
                gap_closed,
                planner_gain_reached,
                critical,
                fewer_critical,
                verdict,
            }
        });
        JsonArena { quick: arena.quick, scenarios: arena.scenarios.iter().map(JsonScenario::of).collect(), summary }
    }
}

impl<'a> JsonScenario<'a> {
    fn of(outcome: &'a ScenarioResult) -> JsonScenario<'a> {
        let row = |row: &'a ArenaRow| JsonRow {
            name: &row.label,
            score: row.score(),
            compliance: row.compliance(),
            ci95: row.ci95(),
            levels: row.levels(),
            sets: (row.runs.len() < outcome.sets).then_some(&row.runs[..]),
            scores: row.values(),
        };
        let planner = outcome.planner().zip(outcome.gains_over_tuned());
        let planner = planner.map(|(row, (gain, learned_gain))| JsonPlanner {
            sets: row.runs.len(),
            gain,
            learned_gain,
            reached: outcome.planner_gain_reached(),
        });
        JsonScenario {
            name: &outcome.scenario.name,
            version: outcome.scenario.version,
            arena: outcome.scenario.arena,
            held_out: outcome.scenario.held_out,
            description: &outcome.scenario.description,
            goal: outcome.scenario.goal.name(),
            sets: outcome.sets,
            schedulers: outcome.rows.iter().map(row).collect(),
            best_classical: outcome.best_classical().map(|row| row.label.as_str()),
            best_other: outcome.best_rival().map(|row| row.label.as_str()),
            paired_delta: outcome.against_best_classical(),
            other_delta: outcome.against_best_rival(),
            standing: outcome.standing().map(|standing| standing.name()),
            gap_closed: outcome.gap_closed(),
            planner,
            sets_with_fewer_critical: outcome.sets_with_fewer_critical(),
            clairvoyant: outcome.possible,
            skipped: JsonSkipped::all(&outcome.skipped),
        }
    }
}
