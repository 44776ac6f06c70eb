//! The results of an arena run: scores with their intervals, the best scheduler of each scenario, and how far the
//! learned scheduler closes the gap between the best classical one and the optimum.

use super::Score;
use super::scenario::{Scenario, meaning};
use crate::clairvoyant::OptimumRange;
use crate::roster::{SHIELDED, is_classical};
use crate::stats;

/// Result of one scheduler on all runs of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaRow {
    /// Scheduler name with options.
    pub spec: String,
    /// Name shown in results; it marks untrained models.
    pub label: String,
    /// Scores, run by run.
    pub scores: Vec<Score>,
}

impl ArenaRow {
    /// Returns the scores by the scenario's goal, run by run.
    pub fn values(&self) -> Vec<f64> {
        self.scores.iter().map(|score| score.score).collect()
    }

    /// Returns the mean score.
    pub fn score(&self) -> f64 {
        stats::mean(&self.values())
    }

    /// Returns half the width of the 95% confidence interval of the mean score over the sets; `None` for fewer than two
    /// sets.
    pub fn ci95(&self) -> Option<f64> {
        stats::ci95(&self.values())
    }

    /// Returns the mean share of jobs that met their deadline.
    pub fn compliance(&self) -> f64 {
        stats::mean(&self.scores.iter().map(|score| score.compliance).collect::<Vec<f64>>())
    }

    /// Whether the scheduler is a classical one.
    pub fn is_classical(&self) -> bool {
        is_classical(&self.spec)
    }
}

/// Bounds on the greatest possible mean score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Possible {
    /// Upper bound: no schedule scores more.
    pub upper: f64,
    /// Lower bound: schedules with this score are known.
    pub lower: f64,
    /// Whether both bounds are equal, that is, the optimum of every run is known.
    pub is_exact: bool,
}

impl Possible {
    /// Name in tables; a bound is never called an optimum.
    pub fn name(&self) -> &'static str {
        if self.is_exact { "clairvoyant optimum" } else { "clairvoyant bound" }
    }

    /// Sign before the upper bound; empty if it is the optimum itself.
    pub fn sign(&self) -> &'static str {
        if self.is_exact { "" } else { "≤" }
    }
}

/// The learned scheduler compared with the best classical one in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioStanding {
    /// Worse by more than [`LEVEL`], and by more than the confidence interval.
    Below,
    /// Different by at most [`LEVEL`].
    Level,
    /// Different by more than [`LEVEL`], but the confidence interval includes zero.
    Undecided,
    /// Better by more than [`LEVEL`], and by more than the confidence interval.
    Above,
}

/// Greatest difference of mean scores that counts as level: 0.2 percentage points.
pub const LEVEL: f64 = 0.002;

impl ScenarioStanding {
    /// All standings, the worst first.
    pub const ALL: [ScenarioStanding; 4] =
        [ScenarioStanding::Below, ScenarioStanding::Level, ScenarioStanding::Undecided, ScenarioStanding::Above];

    fn of(difference: f64, interval: Option<f64>) -> ScenarioStanding {
        match difference {
            small if small.abs() <= LEVEL => ScenarioStanding::Level,
            unclear if interval.is_some_and(|half| unclear.abs() <= half) => ScenarioStanding::Undecided,
            less if less < 0.0 => ScenarioStanding::Below,
            _ => ScenarioStanding::Above,
        }
    }

    /// Name in tables: one word.
    pub fn name(self) -> &'static str {
        match self {
            ScenarioStanding::Below => "below",
            ScenarioStanding::Level => "level",
            ScenarioStanding::Undecided => "undecided",
            ScenarioStanding::Above => "above",
        }
    }
}

/// Results of one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The scenario.
    pub scenario: Scenario,
    /// Number of sets that were run.
    pub sets: usize,
    /// Schedulers, the best score first.
    pub rows: Vec<ArenaRow>,
    /// Schedulers that do not apply to the scenario, with the reason.
    pub skipped: Vec<(String, String)>,
    /// The clairvoyant optimum, or bounds on it.
    pub possible: Possible,
}

impl ScenarioResult {
    /// Sorts the rows, and averages `ranges`, the bounds on the optimum of each run.
    pub(super) fn new(
        scenario: Scenario,
        sets: usize,
        mut rows: Vec<ArenaRow>,
        skipped: Vec<(String, String)>,
        mut ranges: Vec<OptimumRange>,
    ) -> ScenarioResult {
        // Equal scores are ordered by the share of deadlines met.
        rows.sort_by(|a, b| (b.score().total_cmp(&a.score())).then(b.compliance().total_cmp(&a.compliance())));
        for (at, range) in ranges.iter_mut().enumerate() {
            // Where only bounds are known, a scheduler may have found a better schedule than the oracle.
            range.lower = rows.iter().map(|row| row.scores[at].score).fold(range.lower, f64::max);
        }
        let mean = |of: fn(&OptimumRange) -> f64| stats::mean(&ranges.iter().map(of).collect::<Vec<f64>>());
        let is_exact = ranges.iter().all(OptimumRange::is_exact);
        let possible = Possible { upper: mean(|range| range.upper), lower: mean(|range| range.lower), is_exact };
        ScenarioResult { scenario, sets, rows, skipped, possible }
    }

    /// Returns the protocol of the scenario in one line.
    pub fn facts(&self) -> String {
        let Scenario { version, goal, jobs, seeds, cores, load, on_miss, .. } = &self.scenario;
        let cores = match cores {
            Some(1) => " · 1 core".into(),
            Some(cores) => format!(" · {cores} cores"),
            None => String::new(),
        };
        let load = load.map_or(String::new(), |[low, high]| format!(" · mean load {low} to {high} per core"));
        let (first, last) = (seeds.start(), seeds.end());
        format!(
            "version {version} · {} · {} sets of about {jobs} jobs{cores}{load} · on a miss: {} · seeds {first} to {last}",
            meaning(*goal),
            self.sets,
            on_miss.name(),
        )
    }

    /// Returns the row of a scheduler, if it ran.
    pub fn row(&self, spec: &str) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.spec == spec)
    }

    /// Returns the classical scheduler with the best mean score.
    pub fn best_classical(&self) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.is_classical())
    }

    /// Returns the mean of a row's score minus that of the best classical scheduler, set by set, and half its 95%
    /// confidence interval.
    pub fn against_best(&self, row: &ArenaRow) -> Option<(f64, Option<f64>)> {
        Some(stats::paired_difference(&row.values(), &self.best_classical()?.values()))
    }

    /// Returns the difference of [`against_best`](Self::against_best) for the learned scheduler with its shield, if it
    /// ran.
    pub fn paired_delta(&self) -> Option<(f64, Option<f64>)> {
        self.against_best(self.row(SHIELDED)?)
    }

    /// Returns the standing of the learned scheduler with its shield, if it ran.
    pub fn standing(&self) -> Option<ScenarioStanding> {
        self.paired_delta().map(|(difference, interval)| ScenarioStanding::of(difference, interval))
    }

    /// Returns the difference between the optimum, or the upper bound on it, and the best classical score.
    pub fn gap(&self) -> Option<f64> {
        Some(self.possible.upper - self.best_classical()?.score())
    }
}

/// Results of all scenarios of an arena run.
#[derive(Clone, Debug)]
pub struct ArenaResults {
    /// Results by scenario, in the order of the plan.
    pub scenarios: Vec<ScenarioResult>,
    /// Whether only a few sets of each scenario were run.
    pub quick: bool,
}

/// The learned scheduler's standing over all scenarios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArenaSummary {
    /// Number of scenarios with each standing, in the order of [`ScenarioStanding::ALL`].
    pub standings: [usize; 4],
    /// Sum of the differences to the best classical scheduler as a share of the sum of the gaps to the optimum. It is a
    /// lower bound of that share where some optima are only bounded. `None` if there is hardly any gap.
    pub gap_closed: Option<f64>,
}

impl ArenaResults {
    /// Returns the summary of the learned scheduler, if it ran.
    pub fn summary(&self) -> Option<ArenaSummary> {
        let standings: Vec<ScenarioStanding> = self.scenarios.iter().filter_map(ScenarioResult::standing).collect();
        if standings.is_empty() {
            return None;
        }
        let count = |wanted: ScenarioStanding| standings.iter().filter(|standing| **standing == wanted).count();
        let of = |result: &ScenarioResult| Some((result.paired_delta()?.0, result.gap()?));
        let (won, gap) =
            self.scenarios.iter().filter_map(of).fold((0.0, 0.0), |sum, (won, gap)| (sum.0 + won, sum.1 + gap));
        Some(ArenaSummary {
            standings: ScenarioStanding::ALL.map(count),
            gap_closed: (gap > LEVEL).then_some(won / gap),
        })
    }

    /// Returns the summary as a sentence, if the learned scheduler ran.
    pub fn verdict(&self) -> Option<String> {
        let ArenaSummary { standings: [below, level, undecided, above], gap_closed } = self.summary()?;
        let label = self.scenarios.iter().find_map(|result| result.row(SHIELDED)).map(|row| &row.label)?;
        let at_least = if self.is_exact() { "" } else { "at least " };
        let closed = match gap_closed {
            Some(share) if share > 0.0 => {
                format!("; it closes {at_least}{} of the gap to the optimum", stats::percent(share))
            }
            Some(_) => "; it closes none of the gap to the optimum".into(),
            None => String::new(),
        };
        let among = self.scenarios.len();
        Some(format!(
            "Against the best classical scheduler of each of {among} scenarios, {label} is below in {below}, level (within {} points) in \
             {level}, undecided (within its interval) in {undecided} and above in {above}{closed}.",
            100.0 * LEVEL
        ))
    }

    /// Whether the optimum of every run of every scenario is known exactly.
    pub fn is_exact(&self) -> bool {
        self.scenarios.iter().all(|result| result.possible.is_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::scenario;

    fn row(spec: &str, scores: &[f64]) -> ArenaRow {
        let scores = scores.iter().map(|score| Score { score: *score, compliance: *score }).collect();
        ArenaRow { spec: spec.into(), label: spec.into(), scores }
    }

    fn result(rows: Vec<ArenaRow>, upper: f64) -> ScenarioResult {
        let range = OptimumRange { lower: 0.0, upper };
        ScenarioResult::new(scenario::all().unwrap().remove(0), 2, rows, Vec::new(), vec![range; 2])
    }

    #[test]
    fn the_best_classical_one_has_the_best_mean_and_differences_are_paired() {
        let rows = vec![row("edf", &[0.9, 0.3]), row("mh-edf", &[0.7, 0.7]), row(SHIELDED, &[0.8, 0.8])];
        let result = result(rows, 0.9);
        assert_eq!(result.best_classical().unwrap().spec, "mh-edf");
        let (mean, interval) = result.paired_delta().unwrap();
        assert!((mean - 0.1).abs() < 1e-12 && interval.unwrap() < 1e-9, "both sets differ by as much");
        assert_eq!((result.standing(), result.possible.is_exact), (Some(ScenarioStanding::Above), false));
        assert!((result.possible.lower - 0.85).abs() < 1e-12, "the best schedule known of each set");
    }

    #[test]
    fn a_difference_within_its_interval_is_not_above() {
        // The interval of +0.36 ± 0.40 points includes zero, so the difference is not "above".
        assert_eq!(ScenarioStanding::of(0.0036, Some(0.0040)), ScenarioStanding::Undecided);
        assert_eq!(ScenarioStanding::of(-0.0036, Some(0.0040)), ScenarioStanding::Undecided);
        assert_eq!(ScenarioStanding::of(0.0036, Some(0.0030)), ScenarioStanding::Above);
        assert_eq!(ScenarioStanding::of(-0.0036, Some(0.0030)), ScenarioStanding::Below);
        assert_eq!(ScenarioStanding::of(0.0015, Some(0.0001)), ScenarioStanding::Level);
    }

    #[test]
    fn the_summary_counts_standings_and_adds_up_gaps() {
        let learned = |score: f64| result(vec![row("edf", &[0.7, 0.7]), row(SHIELDED, &[score, score])], 0.8);
        let scenarios = vec![learned(0.69), learned(0.7015), learned(0.7985)];
        let arena = ArenaResults { scenarios, quick: false };
        let summary = arena.summary().unwrap();
        assert_eq!(summary.standings, [1, 1, 0, 1]);
        assert!((summary.gap_closed.unwrap() - 0.3).abs() < 1e-9);
        let verdict = arena.verdict().unwrap();
        assert!(
            verdict.contains(
                "below in 1, level (within 0.2 points) in 1, undecided (within its interval) in 0 and above in 1"
            ),
            "{verdict}"
        );
        assert!(verdict.contains("at least 30.00%"), "{verdict}");
        let classical = result(vec![row("edf", &[0.7, 0.7])], 0.8);
        assert_eq!(ArenaResults { scenarios: vec![classical], quick: true }.summary(), None);
    }
}
