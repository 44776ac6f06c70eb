//! The arena: fixed scenarios on which every scheduler meets the same jobs, with scores beside the clairvoyant optimum.
//!
//! A scenario is a file ([`scenario`]) from which its runs follow ([`cases`]). [`evaluate`] scores one scheduler on
//! them, and [`run`] scores all schedulers. Figures are means over task sets. Intervals and paired comparisons use the
//! set as their unit, because the jobs of one set are not independent.

pub mod cases;
pub mod json;
pub mod page;
mod results;
mod row;
pub mod scenario;
pub mod scenario_file;
pub mod traces;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use temponet_oracle::STEPS_PER_SECOND;
use temponet_sched::Kind;
use temponet_sim::generate::GenerateError;
use temponet_sim::{ReleasedJob, SimError, Unobserved, simulate};
use temponet_task::{Aim, Costs, Scheduler};

pub use cases::Case;
pub use results::{ArenaResults, ArenaSummary, LEVEL, ScenarioResult, ScenarioStanding};
pub use row::{ArenaRow, Difference, Possible};
pub use scenario::{Scenario, ScenarioError};

use crate::clairvoyant::{OptimumRange, counted, optimum_of_run};
use crate::comparison::CompareError;
use crate::progress::Progress;
use crate::roster::{Roster, kind};

/// What to run in the arena.
#[derive(Clone, Debug)]
pub struct ArenaPlan {
    /// Scenarios, in the order of the report.
    pub scenarios: Vec<Scenario>,
    /// Scheduler names with options.
    pub schedulers: Vec<String>,
    /// Roster that builds schedulers from their names.
    pub roster: Roster,
    /// Whether to run only a few sets of each scenario.
    pub quick: bool,
    /// Number of sets of each scenario on which planners run, evenly spread; `None` is all of them.
    pub planner_sets: Option<usize>,
}

/// Error of an arena run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArenaError {
    /// Unknown or invalid scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Scenario with a set that cannot be generated.
    #[error("scenario {0}: {1}")]
    Generate(String, GenerateError),
    /// Scheduler that is unknown or broke its contract.
    #[error(transparent)]
    Run(#[from] CompareError),
}

/// Result of one scheduler on one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Score by the scenario's goal, 0 to 1.
    pub score: f64,
    /// Share of jobs that met their deadline, 0 to 1.
    pub compliance: f64,
    /// Share of jobs that met their deadline, 0 to 1, of the highest criticality level of the set, the second highest,
    /// and so on; `None` where there are fewer levels.
    pub levels: [Option<f64>; LEVELS],
}

/// Number of criticality levels that results tell apart.
pub const LEVELS: usize = 4;

/// Scores a scheduler on one run of a scenario.
pub fn score(aim: Aim, case: &Case, scheduler: &mut dyn Scheduler) -> Result<Score, SimError> {
    let metrics = simulate(&case.set, case.seed, case.horizon, scheduler, &mut Unobserved)?;
    let mut levels = [None; LEVELS];
    let critical = metrics.by_criticality.iter().skip(1).rev().filter(|count| count.released > 0);
    levels.iter_mut().zip(critical).for_each(|(level, count)| *level = Some(count.compliance()));
    let score = if aim == Aim::Critical { levels[0] } else { scenario::measured(aim, &metrics) };
    // Nothing is lost where there is nothing to measure, such as no critical jobs.
    let score = score.unwrap_or(1.0);
    Ok(Score { score, compliance: metrics.jobs.compliance(), levels })
}

/// Scores a scheduler on some runs of a scenario, in parallel, and returns the scores in the order of the runs. Each
/// run gets a new scheduler from `make`.
pub fn evaluate<S: Scheduler>(aim: Aim, cases: &[Case], make: impl Fn() -> S + Sync) -> Result<Vec<Score>, SimError> {
    cases.par_iter().map(|case| score(aim, case, &mut make())).collect()
}

/// Returns bounds on the greatest score of a run for a scheduler that knows the future. With dispatch costs only the
/// upper bound holds, because the optimum pays none. The effort is limited to about `seconds` of one core of a
/// reference machine.
pub fn possible(aim: Aim, seconds: f64, case: &Case) -> OptimumRange {
    let Case { set, seed, horizon } = case;
    let releases = counted(set, *seed, *horizon);
    if matches!(aim, Aim::Chains | Aim::Mk | Aim::WorstTask) {
        return OptimumRange { lower: 0.0, upper: 1.0 };
    }
    let highest = releases.iter().map(|release| release.criticality).max().unwrap_or_default();
    let weight = |release: &ReleasedJob| match aim {
        Aim::Critical => f64::from(u8::from(release.criticality > 0 && release.criticality == highest)),
        Aim::Value => release.value,
        _ => 1.0,
    };
    let all: f64 = releases.iter().map(weight).sum();
    if all == 0.0 {
        return OptimumRange { lower: 1.0, upper: 1.0 };
    }
    let (found, _) = optimum_of_run(set, &releases, weight, (seconds * STEPS_PER_SECOND) as u64);
    let is_free = *set.costs() == Costs::default();
    OptimumRange { lower: if is_free { found.lower / all } else { 0.0 }, upper: found.upper / all }
}

/// Result of one scheduler, or of the optimum, on one run.
enum CellResult {
    Score(Score),
    NotApplicable(String),
    Possible(OptimumRange),
}

impl ArenaPlan {
    /// Returns a progress bar for this plan, with one step per run for each scheduler and for the optimum.
    pub fn progress(&self) -> Progress {
        let runs = |scenario: &Scenario| match self.quick {
            true => scenario.quick_sets,
            false => scenario.seeds.end() - scenario.seeds.start() + 1,
        };
        let cells = |scenario: &Scenario| {
            let all = runs(scenario) as usize;
            let of = |name: &String| self.runs_of(name, all).len();
            all + self.schedulers.iter().map(of).sum::<usize>()
        };
        Progress::steps(self.scenarios.iter().map(|scenario| cells(scenario) as u64).sum())
    }

    /// Returns the numbers of the runs, of `all` in a scenario, that a scheduler makes: every run, or for a planner
    /// only some, evenly spread.
    fn runs_of(&self, spec: &str, all: usize) -> Vec<usize> {
        match self.planner_sets.filter(|_| kind(spec) == Kind::Planning) {
            Some(wanted) if wanted < all => (0..wanted).map(|index| (2 * index + 1) * all / (2 * wanted)).collect(),
            _ => (0..all).collect(),
        }
    }
}

/// Runs the plan in parallel. The result does not depend on the number of threads.
pub fn run(plan: &ArenaPlan, progress: &Progress) -> Result<ArenaResults, ArenaError> {
    for name in &plan.schedulers {
        plan.roster.build(name).map_err(CompareError::from)?;
    }
    let scenarios = plan.scenarios.iter().map(|scenario| run_scenario(plan, scenario, progress));
    let arena = ArenaResults { scenarios: scenarios.collect::<Result<_, _>>()?, quick: plan.quick };
    progress.finish();
    Ok(arena)
}

fn run_scenario(plan: &ArenaPlan, scenario: &Scenario, progress: &Progress) -> Result<ScenarioResult, ArenaError> {
    progress.say(&scenario.name);
    let cases = cases_of(plan, scenario)?;
    // The optimum comes first because it takes longest; short work at the end keeps all threads busy.
    let names = plan.schedulers.iter().map(|name| Some(name.as_str()));
    let contenders: Vec<Option<&str>> = [None].into_iter().chain(names).collect();
    Ok(join(scenario.clone(), run_parts(plan, scenario, &cases, &contenders, progress)?))
}

fn cases_of(plan: &ArenaPlan, scenario: &Scenario) -> Result<Vec<Case>, ArenaError> {
    scenario.cases(plan.quick).map_err(|error| ArenaError::Generate(scenario.name.clone(), error))
}

/// Result of one scheduler, or of the optimum, on the runs of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaPart {
    /// Name of the scheduler; `None` for the optimum.
    scheduler: Option<String>,
    /// Name in results.
    label: String,
    /// Number of runs of the scenario.
    sets: usize,
    /// Numbers of the runs that the scheduler made.
    runs: Vec<usize>,
    scores: Vec<Score>,
    /// Bounds on the greatest score of each run.
    ranges: Vec<OptimumRange>,
    /// Reason why the scheduler does not apply.
    refused: Option<String>,
}

/// Runs one scheduler of the plan, or the optimum for `None`, on one scenario. [`join`] puts the parts of a scenario
/// together.
pub fn run_part(plan: &ArenaPlan, scenario: &Scenario, scheduler: Option<&str>) -> Result<ArenaPart, ArenaError> {
    let cases = cases_of(plan, scenario)?;
    let mut parts = run_parts(plan, scenario, &cases, &[scheduler], &Progress::steps(cases.len() as u64))?;
    Ok(parts.remove(0))
}

/// Runs some contenders, of which `None` is the optimum, in parallel.
fn run_parts(
    plan: &ArenaPlan,
    scenario: &Scenario,
    cases: &[Case],
    contenders: &[Option<&str>],
    progress: &Progress,
) -> Result<Vec<ArenaPart>, ArenaError> {
    let contenders = contenders.iter().map(|contender| {
        let runs = contender.map_or_else(|| (0..cases.len()).collect(), |name| plan.runs_of(name, cases.len()));
        (*contender, runs)
    });
    let contenders: Vec<(Option<&str>, Vec<usize>)> = contenders.collect();
    let cells: Vec<(Option<&str>, &Case)> =
        contenders.iter().flat_map(|(contender, runs)| runs.iter().map(|run| (*contender, &cases[*run]))).collect();
    let one = |(contender, case): &(Option<&str>, &Case)| -> Result<CellResult, ArenaError> {
        temponet_cancel::checkpoint();
        let found = match contender {
            None => CellResult::Possible(possible(scenario.goal, scenario.oracle_seconds, case)),
            Some(name) => {
                let mut scheduler = plan.roster.build(name).map_err(CompareError::from)?;
                match score(scenario.goal, case, &mut *scheduler) {
                    Ok(score) => CellResult::Score(score),
                    Err(why) if why.is_about_the_set() => CellResult::NotApplicable(why.to_string()),
                    Err(error) => return Err(CompareError::Run(name.to_string(), error).into()),
                }
            }
        };
        progress.step();
        Ok(found)
    };
    let found: Vec<CellResult> = cells.par_iter().map(one).collect::<Result<_, _>>()?;
    let mut found = found.into_iter();
    let part = |(contender, runs): (Option<&str>, Vec<usize>)| {
        let (mut scores, mut ranges, mut refused) = (Vec::new(), Vec::new(), None);
        for found in found.by_ref().take(runs.len()) {
            match found {
                CellResult::Score(score) => scores.push(score),
                CellResult::NotApplicable(why) => refused = refused.or(Some(why)),
                CellResult::Possible(range) => ranges.push(range),
            }
        }
        let label = contender.map_or(String::new(), |name| plan.roster.label(name));
        let scheduler = contender.map(String::from);
        ArenaPart { scheduler, label, sets: cases.len(), runs, scores, ranges, refused }
    };
    Ok(contenders.into_iter().map(part).collect())
}

/// Puts the parts of a scenario together.
pub fn join(scenario: Scenario, parts: Vec<ArenaPart>) -> ScenarioResult {
    let (mut ranges, mut rows, mut skipped, mut sets) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for part in parts {
        sets = part.sets;
        match (part.scheduler, part.refused) {
            (None, _) => ranges = part.ranges,
            (Some(spec), None) => {
                rows.push(ArenaRow { spec, label: part.label, runs: part.runs, scores: part.scores });
            }
            (Some(name), Some(why)) => skipped.push((name, why)),
        }
    }
    ScenarioResult::new(scenario, sets, rows, skipped, ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::{SHIELDED, UNSHIELDED};
    use temponet::Model;
    use temponet::stages::Tokenizer;
    use temponet_task::{Measure, Time};

    /// A small scenario, whose file ends with the lines `more`.
    fn small(more: &str) -> Scenario {
        let text = "version = 1\ndescription = \"small\"\ngoal = \"met\"\nseeds = [9000900000, 9000900005]\n\
            quick_sets = 2\njobs = 150\ncores = 2\nload = [0.9, 1.5]\non_miss = \"abort\"\noracle_seconds = 0.05\n\
            [generate]\nmethod = \"randfixedsum\"\ntasks = [8, 10]\n";
        Scenario::parse("small", &(text.to_string() + more)).unwrap()
    }

    const UNIFORM: &str = "[execution]\nmodel = \"uniform\"\nbcet = 0.2\n";

    fn plan(scenario: Scenario, schedulers: &[&str], model: Option<Model>) -> ArenaPlan {
        let schedulers = schedulers.iter().map(|name| name.to_string()).collect();
        ArenaPlan {
            scenarios: vec![scenario],
            schedulers,
            roster: model.map(Roster::with).unwrap_or_default(),
            quick: false,
            planner_sets: None,
        }
    }

    fn result(plan: &ArenaPlan) -> ScenarioResult {
        run(plan, &plan.progress()).unwrap().scenarios.remove(0)
    }

    #[test]
    fn cases_have_the_load_asked_for_and_a_quick_look_is_a_part_of_them() {
        for more in ["", UNIFORM, "[burst]\njobs = 3\ndeadline = \"30ms\"\nevery = \"100ms\"\nload = 0.2\n"] {
            let scenario = small(more);
            let cases = scenario.cases(false).unwrap();
            assert_eq!(cases.len(), 6);
            for (index, case) in cases.iter().enumerate() {
                let load = case.set.mean_utilization() / 2.0;
                assert!((load / (0.95 + 0.1 * index as f64) - 1.0).abs() < 0.006, "{more}{load}");
            }
            let quick = scenario.cases(true).unwrap();
            assert_eq!(quick, [cases[1].clone(), cases[4].clone()]);
        }
    }

    #[test]
    fn a_scenario_from_end_to_end() {
        let model = Model::random(Tokenizer::full(), 1);
        let plan = plan(small(UNIFORM), &["edf", "mh-edf", "d-over", SHIELDED, UNSHIELDED], Some(model));
        let result = result(&plan);
        assert_eq!((result.rows.len(), result.sets), (4, 6));
        assert_eq!(result.skipped, [("d-over".into(), "d-over is defined for one core, not for 2".into())]);
        let best = result.best_classical().unwrap();
        assert_eq!(best.spec, "mh-edf");
        assert!(result.rows.iter().all(|row| row.score() <= result.possible.upper && row.ci95().is_some()));
        assert!(result.possible.lower >= best.score());
        assert_eq!(result.row(SHIELDED).unwrap().label, "temponet (untrained)");
        let delta = result.against_best_classical().unwrap().mean;
        assert!((delta - (result.row(SHIELDED).unwrap().score() - best.score())).abs() < 1e-12);
        // A single evaluation, as the trainer asks for, gives the same scores as the arena.
        let cases = plan.scenarios[0].cases(false).unwrap();
        let alone = evaluate(Aim::Met, &cases, || plan.roster.build("edf").unwrap()).unwrap();
        assert_eq!(alone, result.row("edf").unwrap().scores);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let plan = plan(small(UNIFORM), &["edf", "llf", "mh-edf", "srpt"], None);
        let on =
            |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| result(&plan));
        let (one, four) = (on(1), on(4));
        assert_eq!((one.rows, one.possible), (four.rows, four.possible));
    }

    #[test]
    fn goals_count_what_they_say() {
        let text = "critical = 0.5\nvalues = [1.0, 10.0]\n";
        for goal in [Aim::Critical, Aim::Value] {
            let scenario = Scenario { goal, ..small(text) };
            let result = result(&plan(scenario, &["edf", "muf", "dasa"], None));
            let best = result.best_classical().unwrap();
            assert_eq!(best.spec, if goal == Aim::Critical { "muf" } else { "dasa" });
            assert!(best.score() > best.compliance() && best.score() <= result.possible.upper + 1e-12);
        }
    }

    #[test]
    fn with_costs_the_optimum_is_a_bound() {
        let costs = "[costs]\ncontext_switch = \"500us\"\n";
        let with = result(&plan(small(costs), &["edf"], None));
        let without = result(&plan(small(""), &["edf"], None));
        assert!(!with.possible.is_exact && with.possible.upper == without.possible.upper);
        assert!(with.rows[0].score() < without.rows[0].score());
        assert_eq!(with.possible.lower, with.rows[0].score());
    }

    #[test]
    fn schedulers_know_the_goal_of_the_scenario() {
        for scenario in scenario::all().unwrap() {
            for case in scenario.cases(true).unwrap() {
                let first = match case.set.goal().first() {
                    Measure::Critical(_) => Aim::Critical,
                    Measure::Value => Aim::Value,
                    Measure::Met => Aim::Met,
                    Measure::Chains => Aim::Chains,
                    Measure::Mk => Aim::Mk,
                    Measure::WorstTask => Aim::WorstTask,
                };
                // A generated set may happen to have no critical task.
                let has_critical = case.set.tasks().iter().any(|task| task.criticality > 0);
                assert!(first == scenario.goal || scenario.goal == Aim::Critical && !has_critical, "{}", scenario.name);
            }
        }
    }

    #[test]
    fn modes_change_the_work_on_the_way() {
        let modes =
            "[[mode]]\nname = \"calm\"\nfrom = 0.0\nwork = 0.1\n[[mode]]\nname = \"high\"\nfrom = 0.5\nwork = 0.2\n";
        let calm = result(&plan(small(modes), &["edf"], None));
        assert_eq!((calm.rows[0].score(), calm.possible.is_exact), (1.0, true));
        let case = &small(modes).cases(false).unwrap()[0];
        assert_eq!(case.set.modes()[1].at, Time(case.horizon.0 / 2));
    }
}
