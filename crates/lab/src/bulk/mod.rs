//! Many task sets of one's own: on how many of them each scheduler is proved to meet every deadline (acceptance by
//! test), on how many it does so in simulation, and which share of the deadlines it meets.
//!
//! Each set is a comparison of its own, with its own horizon. Shares over sets count each set once, however many jobs
//! it has.

pub mod json;
mod picture;

use temponet_sched::what_if::is_impossible;
use temponet_sched::{Kind, proofs};
use temponet_sim::statistics::{Interval, count_interval};
use temponet_sim::{mixed_seed, quoted};
use temponet_task::{Measure, TaskSet, Time};

use crate::comparison::{CompareError, Comparison, ComparisonPlan, ComparisonRow, compare, ranking};
use crate::progress::Progress;
use crate::roster::Roster;
use crate::stats;

pub use picture::picture;

/// What to run on many sets.
#[derive(Clone, Debug)]
pub struct BulkPlan {
    /// The sets.
    pub sets: Vec<BulkSet>,
    /// Seed that those of the sets follow from; see [`BulkPlan::seed_of`].
    pub seed: u64,
    /// Scheduler names with options.
    pub schedulers: Vec<String>,
    /// Roster that builds schedulers from their names.
    pub roster: Roster,
    /// Effort for the clairvoyant optimum of each set, in seconds of one core of a reference machine; `None` leaves it
    /// out.
    pub oracle: Option<f64>,
}

impl BulkPlan {
    /// Seed of the first run of a set, by its place; each further run uses the next one. Every set has seeds of its
    /// own: with the same random numbers, their results would vary together, and a mean over them would be less certain
    /// than their number says. The first set has that of the plan.
    pub fn seed_of(&self, place: usize) -> u64 {
        if place == 0 { self.seed } else { mixed_seed(self.seed, place as u64) }
    }
}

/// A set of a plan.
#[derive(Clone, Debug)]
pub struct BulkSet {
    /// File or built-in set, as the user named it.
    pub origin: String,
    /// The set.
    pub set: TaskSet,
    /// Length of each run.
    pub horizon: Time,
    /// Number of runs.
    pub runs: u64,
}

impl BulkSet {
    /// Returns the utilization at the wcet as a share of the total speed of the cores.
    pub fn load(&self) -> f64 {
        self.set.utilization() / self.set.capacity()
    }
}

/// What the analysis says about a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByTest {
    /// These schedulers are proved to meet every deadline.
    Proved(Vec<String>),
    /// No scheduler can meet every deadline.
    Impossible,
    /// Neither is proved.
    Open,
}

impl ByTest {
    /// What the analysis says, where these schedulers of a comparison are proved, too.
    fn of(set: &TaskSet, compared: &[&ComparisonRow]) -> ByTest {
        let mut proved: Vec<String> = proofs(set).iter().map(|proof| proof.scheduler.to_string()).collect();
        for row in compared {
            if !proved.contains(&row.spec) {
                proved.push(row.spec.clone());
            }
        }
        match proved.is_empty() {
            false => ByTest::Proved(proved),
            true if is_impossible(set) => ByTest::Impossible,
            true => ByTest::Open,
        }
    }

    /// Returns whether a scheduler is proved to meet every deadline.
    pub fn accepts(&self, scheduler: &str) -> bool {
        matches!(self, ByTest::Proved(proved) if proved.iter().any(|name| name == scheduler))
    }
}

/// Figures of one scheduler on one set, over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Number of jobs that count.
    pub released: u64,
    /// Number of those that met their deadline.
    pub met: u64,
    /// Distance to the farther end of the 95% confidence interval of the share of deadlines met; none for a single run.
    pub ci95: Option<f64>,
    /// Whether every deadline was met, those of chains included.
    pub misses_nothing: bool,
    /// Measures of the set's goal, the most important first.
    pub goal: Vec<f64>,
    /// Place among the schedulers that ran on the set, by its goal: 1 is the recommended one ([`crate::advice::rank`]),
    /// and equal ones share the mean of their places.
    pub place: f64,
    /// Whether the scheduler is a classical one.
    pub is_classical: bool,
    /// Who decides, where the scheduler follows another one.
    pub decider: Option<String>,
}

impl Simulated {
    /// Returns the share of deadlines met, 0 to 1.
    pub fn share(&self) -> f64 {
        self.met as f64 / self.released.max(1) as f64
    }
}

/// Result on one set.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkRow {
    /// What the analysis says.
    pub by_test: ByTest,
    /// Figures of each scheduler of the plan; none where it does not apply.
    pub results: Vec<Option<Simulated>>,
    /// Least and greatest share of deadlines that a clairvoyant schedule may meet; none if it was not computed.
    pub optimum: Option<(f64, f64)>,
    /// Whether the greatest share is that of the optimum by the set's goal, rather than a bound on it.
    pub optimum_is_exact: bool,
}

impl BulkRow {
    fn of(set: &TaskSet, comparison: &Comparison) -> BulkRow {
        let scores: Vec<Vec<f64>> = comparison.rows.iter().map(|row| ranking::means(&row.scores)).collect();
        let place = |own: &[f64]| {
            let equal = scores.iter().zip(1..).filter(|(other, _)| ranking::order(own, other).is_eq());
            stats::mean(&equal.map(|(_, place)| f64::from(place)).collect::<Vec<f64>>())
        };
        let found = |name: &String| {
            let (row, goal) = comparison.rows.iter().zip(&scores).find(|(row, _)| row.spec == *name)?;
            Some(Simulated {
                goal: goal.clone(),
                place: place(goal),
                released: row.metrics.jobs.released,
                met: row.metrics.jobs.met,
                ci95: row.ci95(),
                misses_nothing: row.misses_nothing(),
                is_classical: row.kind() == Kind::Classical,
                decider: row.decider.as_ref().map(|decider| decider.name.clone()),
            })
        };
        let share = |met: f64, released: u64| met / released.max(1) as f64;
        let optimum = comparison.clairvoyant.as_ref();
        BulkRow {
            by_test: ByTest::of(set, &comparison.proved()),
            results: comparison.plan.schedulers.iter().map(found).collect(),
            optimum: optimum
                .map(|found| (share(found.met.lower, found.released), share(found.met.upper, found.released))),
            optimum_is_exact: comparison.possible(Measure::Met).is_some_and(|(_, is_exact)| is_exact),
        }
    }

    /// Returns the index and the figures of the classical scheduler that serves the set's goal best; the first among
    /// equals.
    pub fn best_classical(&self) -> Option<(usize, &Simulated)> {
        let classical = self.results.iter().enumerate().filter_map(|(index, result)| Some((index, result.as_ref()?)));
        classical.filter(|(_, result)| result.is_classical).min_by(|a, b| a.1.place.total_cmp(&b.1.place))
    }
}

/// One scheduler over all sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// Number of sets that it applies to.
    pub sets: usize,
    /// Mean over those sets of its place by the set's goal. Only schedulers that ran on the same sets compare.
    pub place: f64,
    /// Number of those on which it is proved to meet every deadline.
    pub proved: usize,
    /// Number of those on which it met every deadline in simulation.
    pub met_all: usize,
    /// 95% confidence interval of the share of sets on which it meets every deadline in simulation.
    pub interval: Interval,
    /// Mean over the sets of the share of deadlines met.
    pub compliance: f64,
    /// Half the width of the 95% confidence interval of that mean, with the sets as a sample; none for one set.
    pub ci95: Option<f64>,
}

/// Results on all sets of a plan.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The plan that was run.
    pub plan: BulkPlan,
    /// Results, in the order of the sets.
    pub rows: Vec<BulkRow>,
}

/// Runs the schedulers on every set, one set after the other. The result does not depend on the number of threads.
pub fn run(plan: BulkPlan) -> Result<Bulk, CompareError> {
    let mut rows = Vec::new();
    for (place, BulkSet { set, horizon, runs, .. }) in plan.sets.iter().enumerate() {
        let progress = Progress::new(runs * plan.schedulers.len() as u64, *horizon);
        let comparison = ComparisonPlan {
            set: set.clone(),
            goal: set.goal().clone(),
            horizon: *horizon,
            seed: plan.seed_of(place),
            runs: *runs,
            schedulers: plan.schedulers.clone(),
            roster: plan.roster.clone(),
            latency: false,
            charge_latency: false,
            record_until: Time::ZERO,
            oracle: plan.oracle,
        };
        rows.push(BulkRow::of(set, &compare(comparison, &progress)?));
    }
    Ok(Bulk { plan, rows })
}

impl Bulk {
    /// Returns the figures of each scheduler of the plan over all sets.
    pub fn acceptances(&self) -> Vec<Acceptance> {
        let of = |(index, name): (usize, &String)| {
            let ran = || self.rows.iter().filter_map(|row| Some((&row.by_test, row.results[index].as_ref()?)));
            let shares: Vec<f64> = ran().map(|(_, result)| result.share()).collect();
            let met_all = ran().filter(|(_, result)| result.misses_nothing).count();
            Acceptance {
                sets: shares.len(),
                place: stats::mean(&ran().map(|(_, result)| result.place).collect::<Vec<f64>>()),
                proved: ran().filter(|(by_test, _)| by_test.accepts(name)).count(),
                met_all,
                interval: count_interval(met_all as f64, shares.len() as f64),
                compliance: stats::mean(&shares),
                ci95: stats::ci95(&shares),
            }
        };
        self.plan.schedulers.iter().enumerate().map(of).collect()
    }

    /// Returns the schedulers that ran, the best first, each with its index in the plan: by their mean places, as
    /// Friedman's test ranks, then by the deadlines met. Those that did not run on every set come last.
    pub fn ranked(&self) -> Vec<(usize, Acceptance)> {
        let mut found: Vec<(usize, Acceptance)> = self.acceptances().into_iter().enumerate().collect();
        found.retain(|(_, of)| of.sets > 0);
        found.sort_by(|(_, a), (_, b)| {
            let by_sets = b.sets.cmp(&a.sets);
            by_sets.then(a.place.total_cmp(&b.place)).then(b.compliance.total_cmp(&a.compliance))
        });
        found
    }

    /// Whether any set has another goal than jobs in time.
    pub fn has_other_goals(&self) -> bool {
        self.plan.sets.iter().any(|of| !of.set.goal().is_plain())
    }

    /// Returns the number of sets that some scheduler is proved on, and of those that no scheduler can schedule.
    pub fn by_test(&self) -> (usize, usize) {
        let count = |is_meant: fn(&ByTest) -> bool| self.rows.iter().filter(|row| is_meant(&row.by_test)).count();
        (count(|found| matches!(found, ByTest::Proved(_))), count(|found| *found == ByTest::Impossible))
    }

    /// Returns the rows as CSV: one line for each scheduler on each set.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "set,tasks,cores,load,scheduler,proved,impossible,runs,released,met,met_all,optimum_lower,optimum_upper,place\n",
        );
        for (of, row) in self.plan.sets.iter().zip(&self.rows) {
            let place = format!("{},{},{},{:.6}", quoted(&of.origin), of.set.task_count(), of.set.cores(), of.load());
            let [lower, upper] = match row.optimum {
                Some((lower, upper)) => [lower, upper].map(|share| format!("{share:.6}")),
                None => Default::default(),
            };
            for (name, result) in self.plan.schedulers.iter().zip(&row.results) {
                let Some(Simulated { released, met, misses_nothing, place: by_goal, .. }) = result else { continue };
                let (proved, impossible) = (row.by_test.accepts(name), row.by_test == ByTest::Impossible);
                out += &format!(
                    "{place},{},{proved},{impossible},{},{released},{met},{misses_nothing},{lower},{upper},{by_goal}\n",
                    quoted(name),
                    of.runs
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{ExecutionModel, Task};

    pub(super) fn small() -> Bulk {
        let ms = Time::from_ms;
        let set = |name: &str, wcets: &[u64]| {
            let task = |(index, wcet): (usize, &u64)| Task::periodic(format!("t{index}"), ms(10), ms(*wcet));
            let set = TaskSet::new(name, wcets.iter().enumerate().map(task).collect(), 1);
            BulkSet { origin: format!("{name}.toml"), set, horizon: ms(100), runs: 1 }
        };
        let plan = BulkPlan {
            sets: vec![set("fits", &[2, 5]), set("too, much", &[6, 5])],
            seed: 1,
            schedulers: ["rm", "edf", "d-over"].map(String::from).to_vec(),
            roster: Roster::classical(),
            oracle: Some(0.1),
        };
        run(plan).unwrap()
    }

    #[test]
    fn every_set_has_random_numbers_of_its_own() {
        let ms = Time::from_ms;
        let task = |index: u64| {
            let task = Task::periodic(format!("t{index}"), ms(10), ms(5)).with_bcet(ms(1));
            task.with_execution(ExecutionModel::Uniform)
        };
        let set = TaskSet::new("twice", (0..3).map(task).collect(), 1);
        let of = BulkSet { origin: "twice.toml".into(), set, horizon: ms(2_000), runs: 1 };
        let (sets, schedulers) = (vec![of.clone(), of], vec!["edf".to_string()]);
        let bulk = run(BulkPlan { sets, seed: 1, schedulers, roster: Roster::classical(), oracle: None }).unwrap();
        assert_ne!(bulk.rows[0].results, bulk.rows[1].results);
        assert_eq!(bulk.plan.seed_of(0), 1, "the first one is what a comparison of it alone shows");
    }

    #[test]
    fn sets_are_accepted_by_test_and_by_simulation() {
        let bulk = small();
        assert_eq!(bulk.by_test(), (1, 1));
        let ByTest::Proved(proved) = &bulk.rows[0].by_test else { panic!("{:?}", bulk.rows[0]) };
        assert!(proved.contains(&"edf".to_string()) && bulk.rows[1].by_test == ByTest::Impossible);
        assert_eq!(bulk.rows[0].optimum, Some((1.0, 1.0)));
        assert_eq!(bulk.rows[1].optimum, Some((0.5, 0.5)));
        assert!(bulk.rows.iter().all(|row| row.optimum_is_exact));
        let edf = &bulk.acceptances()[1];
        assert_eq!((edf.sets, edf.proved, edf.met_all, edf.interval), (2, 1, 1, count_interval(1.0, 2.0)));
        assert!(edf.compliance > 0.5 && edf.compliance < 1.0 && edf.ci95.is_some(), "{edf:?}");
        let (index, best) = bulk.rows[1].best_classical().unwrap();
        assert_eq!((index, best.share()), (0, bulk.rows[1].results[0].as_ref().unwrap().share()));
        let csv = bulk.csv();
        assert!(csv.contains("fits.toml,2,1,0.700000,edf,true,false,1,20,20,true,1.000000,1.000000,2\n"), "{csv}");
        assert!(csv.contains("\"too, much.toml\",2,1,1.100000,edf,false,true,1,20,"), "{csv}");
    }

    /// A set whose long task is critical: whoever runs it first misses one deadline more than necessary.
    fn critical() -> BulkSet {
        let ms = Time::from_ms;
        let mut tasks = ["a", "b"].map(|name| Task::periodic(name, ms(10), ms(4))).to_vec();
        tasks.push(Task::periodic("long", ms(10), ms(8)).with_criticality(1));
        let set = TaskSet::new("critical", tasks, 1);
        BulkSet { origin: "critical.toml".into(), set, horizon: ms(100), runs: 1 }
    }

    #[test]
    fn each_set_ranks_by_its_own_goal() {
        let ms = Time::from_ms;
        let tasks = ["a", "b"].map(|name| Task::periodic(name, ms(10), ms(4))).to_vec();
        let plain = BulkSet { origin: "plain.toml".into(), set: TaskSet::new("plain", tasks, 1), ..critical() };
        let schedulers = ["srpt", "edf", "muf"].map(String::from).to_vec();
        let sets = vec![critical(), plain];
        let bulk = run(BulkPlan { sets, seed: 1, schedulers, roster: Roster::classical(), oracle: None }).unwrap();
        let (best, result) = bulk.rows[0].best_classical().unwrap();
        assert_eq!((best, &result.goal[0]), (2, &1.0), "muf serves the critical task, srpt meets more deadlines");
        assert!(result.share() < bulk.rows[0].results[0].as_ref().unwrap().share() && bulk.has_other_goals());
        assert!(bulk.rows[1].results.iter().flatten().all(|result| result.place == 2.0), "all meet all of them");
        let order: Vec<usize> = bulk.ranked().iter().map(|(index, _)| *index).collect();
        assert_eq!(order[0], 2, "{:?}", bulk.ranked());
    }

    #[test]
    fn a_scheduler_that_did_not_run_on_every_set_comes_last() {
        let mut bulk = small();
        bulk.rows[1].results[1] = None;
        let order: Vec<usize> = bulk.ranked().iter().map(|(index, _)| *index).collect();
        assert_eq!(order.last(), Some(&1), "edf met every deadline of the one set that it ran on");
    }

    #[test]
    fn the_most_deadlines_are_only_a_bound_where_something_else_comes_first() {
        let of = critical();
        let schedulers = vec!["muf".to_string(), "srpt".to_string()];
        let plan = BulkPlan { sets: vec![of], seed: 1, schedulers, roster: Roster::classical(), oracle: Some(0.1) };
        let row = &run(plan).unwrap().rows[0];
        assert_eq!(row.optimum.map(|(lower, upper)| lower == upper), Some(true), "srpt meets as many");
        assert!(!row.optimum_is_exact);
    }
}
