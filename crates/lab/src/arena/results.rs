//! What came of the scenarios: scores with their intervals, who is best, and how far the learned scheduler gets from there to the optimum.

use super::Score;
use super::scenario::{Scenario, meaning};
use crate::clairvoyant::OptimumRange;
use crate::roster::{SHIELDED, is_classical};
use crate::stats;

/// One scheduler on all runs of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaRow {
    /// The name with options.
    pub spec: String,
    /// How results call it.
    pub label: String,
    /// Run by run.
    pub scores: Vec<Score>,
}

impl ArenaRow {
    /// Its scores by the scenario's goal.
    pub fn values(&self) -> Vec<f64> {
        self.scores.iter().map(|score| score.score).collect()
    }

    /// Their mean.
    pub fn score(&self) -> f64 {
        stats::mean(&self.values())
    }

    /// Half the 95% confidence interval of that mean; the set is the unit.
    pub fn ci95(&self) -> Option<f64> {
        stats::ci95(&self.values())
    }

    /// The mean share of jobs in time.
    pub fn compliance(&self) -> f64 {
        stats::mean(&self.scores.iter().map(|score| score.compliance).collect::<Vec<f64>>())
    }

    /// Whether it is classical.
    pub fn is_classical(&self) -> bool {
        is_classical(&self.spec)
    }
}

/// The greatest mean score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Possible {
    /// Nobody has more.
    pub upper: f64,
    /// It is known that so much can be had.
    pub lower: f64,
    /// Whether they are one: the optimum of every run is known.
    pub is_exact: bool,
}

impl Possible {
    /// What it is: a bound is never called an optimum.
    pub fn name(&self) -> &'static str {
        if self.is_exact { "clairvoyant optimum" } else { "clairvoyant bound" }
    }

    /// Before the upper figure where it is only a bound.
    pub fn sign(&self) -> &'static str {
        if self.is_exact { "" } else { "≤" }
    }
}

/// The learned scheduler beside the best classical one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioStanding {
    /// Worse by more than [`LEVEL`], and by more than chance.
    Below,
    /// Within [`LEVEL`].
    Level,
    /// The difference is more than [`LEVEL`], but its interval includes none.
    Undecided,
    /// Better by more than [`LEVEL`], and by more than chance.
    Above,
}

/// Differences of mean scores up to this, 0.2 points, count as level.
pub const LEVEL: f64 = 0.002;

impl ScenarioStanding {
    /// All of them, the worst first.
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

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            ScenarioStanding::Below => "below",
            ScenarioStanding::Level => "level",
            ScenarioStanding::Undecided => "undecided",
            ScenarioStanding::Above => "above",
        }
    }
}

/// One scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// Its protocol.
    pub scenario: Scenario,
    /// Sets that were run.
    pub sets: usize,
    /// Best score first.
    pub rows: Vec<ArenaRow>,
    /// Schedulers that do not apply, and why.
    pub skipped: Vec<(String, String)>,
    /// The clairvoyant optimum or the bound on it.
    pub possible: Possible,
}

impl ScenarioResult {
    /// Sorts the rows and sums up the optimum, `ranges`, of each run.
    pub(super) fn new(
        scenario: Scenario,
        sets: usize,
        mut rows: Vec<ArenaRow>,
        skipped: Vec<(String, String)>,
        mut ranges: Vec<OptimumRange>,
    ) -> ScenarioResult {
        // Equal by the goal: more jobs in time.
        rows.sort_by(|a, b| (b.score().total_cmp(&a.score())).then(b.compliance().total_cmp(&a.compliance())));
        for (at, range) in ranges.iter_mut().enumerate() {
            // Where only bounds are known, a scheduler may have found a better schedule than they have.
            range.lower = rows.iter().map(|row| row.scores[at].score).fold(range.lower, f64::max);
        }
        let mean = |of: fn(&OptimumRange) -> f64| stats::mean(&ranges.iter().map(of).collect::<Vec<f64>>());
        let is_exact = ranges.iter().all(OptimumRange::is_exact);
        let possible = Possible { upper: mean(|range| range.upper), lower: mean(|range| range.lower), is_exact };
        ScenarioResult { scenario, sets, rows, skipped, possible }
    }

    /// The protocol in one line.
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

    /// The row of a scheduler, if it ran.
    pub fn row(&self, spec: &str) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.spec == spec)
    }

    /// The classical scheduler with the best mean score here.
    pub fn best_classical(&self) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.is_classical())
    }

    /// Mean and half interval of a row's score less the best classical one's, set by set.
    pub fn against_best(&self, row: &ArenaRow) -> Option<(f64, Option<f64>)> {
        Some(stats::paired_difference(&row.values(), &self.best_classical()?.values()))
    }

    /// The same of the learned scheduler behind its shield, if it ran.
    pub fn paired_delta(&self) -> Option<(f64, Option<f64>)> {
        self.against_best(self.row(SHIELDED)?)
    }

    /// Where the learned scheduler stands, if it ran.
    pub fn standing(&self) -> Option<ScenarioStanding> {
        self.paired_delta().map(|(difference, interval)| ScenarioStanding::of(difference, interval))
    }

    /// What lies between the best classical scheduler and the optimum, or the bound on it.
    pub fn gap(&self) -> Option<f64> {
        Some(self.possible.upper - self.best_classical()?.score())
    }
}

/// All scenarios.
#[derive(Clone, Debug)]
pub struct ArenaResults {
    /// In the order asked for.
    pub scenarios: Vec<ScenarioResult>,
    /// A few sets of each only.
    pub quick: bool,
}

/// The learned scheduler over all scenarios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArenaSummary {
    /// Scenarios by standing against the best classical scheduler of that scenario, in the order of [`ScenarioStanding::ALL`].
    pub standings: [usize; 4],
    /// The sum of its differences as a share of the sum of the gaps to the optimum; at least that share, where some optima are only bounded.
    pub gap_closed: Option<f64>,
}

impl ArenaResults {
    /// The learned scheduler over all scenarios, if it ran.
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

    /// What the summary says, in a sentence.
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

    /// Whether the optimum of every run of every scenario is known.
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
        // The arena once called +0.36 ± 0.40 points "above".
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
