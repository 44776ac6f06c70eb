//! The results of an arena run: scores with their intervals, the best schedulers of each scenario, and where the
//! learned scheduler stands among them.
//!
//! The learned scheduler is held against the best *rival* of each scenario, chosen with hindsight: the best of all
//! other schedulers, this project's own simple ones included. Planners are no rivals: they simulate the future at every
//! decision and show what is possible without knowing it. They may run on some of the sets only. Every comparison is
//! made on the sets that both schedulers ran on.

use temponet_sched::Kind;

use super::Score;
use super::row::{ArenaRow, Difference, Possible};
use super::scenario::{Scenario, meaning};
use crate::clairvoyant::OptimumRange;
use crate::roster::adds_shield;
use crate::stats;

/// The learned scheduler compared with the best rival in a scenario.
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

/// Greatest difference of mean scores that counts as level: 0.1 percentage points.
pub const LEVEL: f64 = 0.001;

impl ScenarioStanding {
    /// All standings, the worst first.
    pub const ALL: [ScenarioStanding; 4] =
        [ScenarioStanding::Below, ScenarioStanding::Level, ScenarioStanding::Undecided, ScenarioStanding::Above];

    fn of(difference: Difference) -> ScenarioStanding {
        let half = difference.ci95.unwrap_or(f64::INFINITY);
        match difference.mean {
            small if small.abs() <= LEVEL => ScenarioStanding::Level,
            unclear if unclear.abs() <= half => ScenarioStanding::Undecided,
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
            let found = rows.iter().filter_map(|row| row.runs.binary_search(&at).ok().map(|run| row.scores[run].score));
            range.lower = found.fold(range.lower, f64::max);
        }
        let mean = |of: fn(&OptimumRange) -> f64| stats::mean(&ranges.iter().map(of).collect::<Vec<f64>>());
        let is_exact = ranges.iter().all(OptimumRange::is_exact);
        let possible = Possible { upper: mean(|range| range.upper), lower: mean(|range| range.lower), is_exact };
        ScenarioResult { scenario, sets, rows, skipped, possible }
    }

    /// Returns the protocol of the scenario in one line.
    pub fn facts(&self) -> String {
        let Scenario { arena, goal, jobs, seeds, cores, load, on_miss, .. } = &self.scenario;
        let cores = match cores {
            Some(1) => " · 1 core".into(),
            Some(cores) => format!(" · {cores} cores"),
            None => String::new(),
        };
        let load = load.map_or(String::new(), |[low, high]| format!(" · mean load {low} to {high} per core"));
        let (first, last) = (seeds.start(), seeds.end());
        format!(
            "arena version {arena} · {} · {} sets of about {jobs} jobs{cores}{load} · on a miss: {} · seeds {first} to {last}",
            meaning(*goal),
            self.sets,
            on_miss.name(),
        )
    }

    /// Returns the row of a scheduler, if it ran.
    pub fn row(&self, spec: &str) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.spec == spec)
    }

    /// Returns the row of the scheduler of this kind, without an added shield, with the best mean score.
    pub fn of_kind(&self, kind: Kind) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.kind() == kind && !adds_shield(&row.spec))
    }

    /// Returns the classical scheduler with the best mean score.
    pub fn best_classical(&self) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.is_classical())
    }

    /// Returns the rival of the learned scheduler with the best mean score; see [`ArenaRow::is_rival`].
    pub fn best_rival(&self) -> Option<&ArenaRow> {
        self.rows.iter().find(|row| row.is_rival())
    }

    /// Returns the row of the planner, if it ran; the best one of several.
    pub fn planner(&self) -> Option<&ArenaRow> {
        self.of_kind(Kind::Planning)
    }

    /// Returns a row's score minus that of the best classical scheduler.
    pub fn against_best(&self, row: &ArenaRow) -> Option<Difference> {
        Some(row.less(self.best_classical()?))
    }

    /// Returns the score of the learned scheduler, with its shield, minus that of the best classical scheduler.
    pub fn against_best_classical(&self) -> Option<Difference> {
        self.against_best(self.of_kind(Kind::Learned)?)
    }

    /// Returns the score of the learned scheduler, with its shield, minus that of the best rival.
    pub fn against_best_rival(&self) -> Option<Difference> {
        Some(self.of_kind(Kind::Learned)?.less(self.best_rival()?))
    }

    /// Returns the standing of the learned scheduler against the best rival, if both ran.
    pub fn standing(&self) -> Option<ScenarioStanding> {
        self.against_best_rival().map(ScenarioStanding::of)
    }

    /// Returns the number of sets in which the learned scheduler has fewer critical jobs in time than the best
    /// classical one; `None` if no set has critical jobs.
    pub fn sets_with_fewer_critical(&self) -> Option<usize> {
        let (learned, best) = (self.of_kind(Kind::Learned)?, self.best_classical()?);
        let has_levels = learned.scores.iter().any(|score| score.levels[0].is_some());
        has_levels.then(|| learned.runs_with_fewer_critical(best))
    }

    /// Returns what the planner and the learned scheduler gain over `tuned`, on the sets that the planner ran on;
    /// `None` unless all three ran.
    pub fn gains_over_tuned(&self) -> Option<(Difference, Difference)> {
        let (planner, tuned, learned) = (self.planner()?, self.of_kind(Kind::Tuned)?, self.of_kind(Kind::Learned)?);
        let runs_of = |row: &ArenaRow| -> (Vec<usize>, Vec<Score>) {
            let kept = row.runs.iter().zip(&row.scores).filter(|(run, _)| planner.runs.binary_search(run).is_ok());
            kept.map(|(run, score)| (*run, *score)).unzip()
        };
        let (runs, scores) = runs_of(learned);
        let learned = ArenaRow { runs, scores, ..learned.clone() };
        Some((planner.less(tuned), learned.less(tuned)))
    }

    /// Returns the share of the planner's gain over `tuned` that the learned scheduler reaches; `None` where the
    /// planner gains no more than [`LEVEL`].
    pub fn planner_gain_reached(&self) -> Option<f64> {
        let (planner, learned) = self.gains_over_tuned()?;
        (planner.mean > LEVEL).then_some(learned.mean / planner.mean)
    }

    /// Returns the closed share of the gap between the best classical scheduler and the optimum, or the bound on it;
    /// `None` where there is hardly any gap.
    pub fn gap_closed(&self) -> Option<f64> {
        let (won, gap) = (self.against_best_classical()?.mean, self.gap()?);
        (gap > LEVEL).then_some(won / gap)
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
    /// Scenarios with critical jobs, and those of them in which some set has fewer critical jobs in time than with the
    /// best classical scheduler.
    pub critical: (usize, usize),
    /// Sum of the learned scheduler's gains over `tuned` as a share of the sum of the planner's gains, over all
    /// scenarios in which all three ran; `None` if the planner gains hardly anything.
    pub planner_gain_reached: Option<f64>,
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
        let share = |of: &dyn Fn(&ScenarioResult) -> Option<(f64, f64)>| {
            let (won, whole) =
                self.scenarios.iter().filter_map(of).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (whole > LEVEL).then_some(won / whole)
        };
        let gains =
            |result: &ScenarioResult| result.gains_over_tuned().map(|(planner, learned)| (learned.mean, planner.mean));
        let critical: Vec<usize> = self.scenarios.iter().filter_map(ScenarioResult::sets_with_fewer_critical).collect();
        Some(ArenaSummary {
            standings: ScenarioStanding::ALL.map(count),
            critical: (critical.len(), critical.iter().filter(|sets| **sets > 0).count()),
            planner_gain_reached: share(&gains),
            gap_closed: share(&|result| Some((result.against_best_classical()?.mean, result.gap()?))),
        })
    }

    /// Returns the summary as a sentence, if the learned scheduler ran.
    pub fn verdict(&self) -> Option<String> {
        let summary = self.summary()?;
        let [below, level, undecided, above] = summary.standings;
        let label = self.scenarios.iter().find_map(|result| result.of_kind(Kind::Learned)).map(|row| &row.label)?;
        let at_least = if self.is_exact() { "" } else { "at least " };
        let closed = match summary.gap_closed {
            Some(share) if share > 0.0 => {
                let share = stats::percent(share);
                format!(" It closes {at_least}{share} of the gap from the best classical scheduler to the optimum.")
            }
            Some(_) => " It closes none of the gap from the best classical scheduler to the optimum.".into(),
            None => String::new(),
        };
        let reached = summary.planner_gain_reached.map_or(String::new(), |share| {
            format!(" It reaches {} of the planner's gain over tuned.", stats::percent(share))
        });
        let critical = match summary.critical {
            (0, _) => String::new(),
            (among, fewer) => format!(
                " Of {among} scenarios with critical jobs, {fewer} have a set in which fewer of them are in time than with the best \
                 classical scheduler."
            ),
        };
        let among = self.scenarios.len();
        Some(format!(
            "Against the best other scheduler of each of {among} scenarios, {label} is below by more than {points} points in {below}, \
             level in {level}, undecided (within its interval) in {undecided} and above in {above}.{closed}{reached}{critical}",
            points = 100.0 * LEVEL
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
    use crate::arena::{LEVELS, scenario};
    use crate::roster::{PLANNER, SHIELDED, TUNED};

    fn row(spec: &str, scores: &[f64]) -> ArenaRow {
        let score = |score: &f64| Score { score: *score, compliance: *score, levels: [None; LEVELS] };
        let (runs, scores) = ((0..scores.len()).collect(), scores.iter().map(score).collect());
        ArenaRow { spec: spec.into(), label: spec.into(), runs, scores }
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
        let Difference { mean, ci95 } = result.against_best_classical().unwrap();
        assert!((mean - 0.1).abs() < 1e-12 && ci95.unwrap() < 1e-9, "both sets differ by as much");
        assert_eq!((result.standing(), result.possible.is_exact), (Some(ScenarioStanding::Above), false));
        assert!((result.possible.lower - 0.85).abs() < 1e-12, "the best schedule known of each set");
    }

    #[test]
    fn a_difference_within_its_interval_is_not_above() {
        // The interval of +0.36 ± 0.40 points includes zero, so the difference is not "above".
        let of = |mean: f64, ci95: Option<f64>| ScenarioStanding::of(Difference { mean, ci95 });
        assert_eq!(of(0.0036, Some(0.0040)), ScenarioStanding::Undecided);
        assert_eq!(of(-0.0036, Some(0.0040)), ScenarioStanding::Undecided);
        assert_eq!(of(-0.5, None), ScenarioStanding::Undecided, "one set decides nothing");
        assert_eq!(of(0.0036, Some(0.0030)), ScenarioStanding::Above);
        assert_eq!(of(-0.0036, Some(0.0030)), ScenarioStanding::Below);
        assert_eq!(of(-0.0009, Some(0.0001)), ScenarioStanding::Level);
    }

    #[test]
    fn own_simple_schedulers_are_rivals_and_planners_are_not() {
        let rows = vec![
            row("edf", &[0.7, 0.7]),
            row("look-ahead", &[0.75, 0.75]),
            row(TUNED, &[0.76, 0.76]),
            row("planner:8", &[0.9, 0.9]),
            row(SHIELDED, &[0.8, 0.8]),
        ];
        let result = result(rows, 1.0);
        assert_eq!(
            (result.best_classical().unwrap().spec.as_str(), result.best_rival().unwrap().spec.as_str()),
            ("edf", TUNED)
        );
        assert!((result.against_best_rival().unwrap().mean - 0.04).abs() < 1e-12);
        assert!((result.gap_closed().unwrap() - 0.1 / 0.3).abs() < 1e-9);
        assert!((result.planner_gain_reached().unwrap() - 0.04 / 0.14).abs() < 1e-9);
    }

    #[test]
    fn a_planner_is_compared_on_its_own_sets() {
        let mut planner = row(PLANNER, &[0.9]);
        planner.runs = vec![1];
        let result = result(vec![planner, row(TUNED, &[0.5, 0.7]), row(SHIELDED, &[0.5, 0.8])], 1.0);
        let (planner, learned) = result.gains_over_tuned().unwrap();
        assert!((planner.mean - 0.2).abs() < 1e-12 && (learned.mean - 0.1).abs() < 1e-12);
        assert_eq!(planner.ci95, None);
        assert!((result.possible.lower - 0.7).abs() < 1e-12, "0.5 and 0.9");
    }

    #[test]
    fn the_highest_level_with_a_difference_decides() {
        let with = |spec: &str, levels: [f64; 2]| {
            let mut row = row(spec, &[0.5, 0.5]);
            row.scores.iter_mut().for_each(|score| score.levels = [Some(levels[0]), Some(levels[1]), None, None]);
            row
        };
        let fewer =
            |levels| result(vec![with("edf", [0.9, 0.5]), with(SHIELDED, levels)], 1.0).sets_with_fewer_critical();
        assert_eq!(fewer([0.9, 0.5]), Some(0));
        assert_eq!(fewer([0.95, 0.1]), Some(0));
        assert_eq!(fewer([0.9, 0.4]), Some(2));
        assert_eq!(result(vec![row("edf", &[0.5]), row(SHIELDED, &[0.5])], 1.0).sets_with_fewer_critical(), None);
        assert_eq!(with("edf", [0.9, 0.5]).levels(), [0.9, 0.5]);
    }

    #[test]
    fn the_summary_counts_standings_and_adds_up_gaps() {
        let learned = |score: f64| result(vec![row("edf", &[0.7, 0.7]), row(SHIELDED, &[score, score])], 0.8);
        let scenarios = vec![learned(0.69), learned(0.7005), learned(0.7995)];
        let arena = ArenaResults { scenarios, quick: false };
        let summary = arena.summary().unwrap();
        assert_eq!(summary.standings, [1, 1, 0, 1]);
        assert!((summary.gap_closed.unwrap() - 0.3).abs() < 1e-9);
        let verdict = arena.verdict().unwrap();
        assert!(
            verdict.contains(
                "below by more than 0.1 points in 1, level in 1, undecided (within its interval) in 0 and above in 1"
            ),
            "{verdict}"
        );
        assert!(verdict.contains("at least 30.00%"), "{verdict}");
        let classical = result(vec![row("edf", &[0.7, 0.7])], 0.8);
        assert_eq!(ArenaResults { scenarios: vec![classical], quick: true }.summary(), None);
    }
}
