//! The overload that each scheduler survives: the largest factor on all execution times at which it still meets nearly
//! every deadline.
//!
//! The answer comes from simulation, so it holds for the simulated jobs. It is found by bisection, which assumes that
//! more work never means more deadlines met. Schedulers that choose whom to follow by simulations of their own take
//! long to start; for them the search begins where the simple ones end.

use rayon::prelude::*;
use temponet_oracle::STEPS_PER_SECOND;
use temponet_sim::{Count, Workload, jobs_unless_missed};
use temponet_task::{Costs, TaskSet, Time};

use crate::clairvoyant::{equal_optimum, has_only_bounds};
use crate::comparison::CompareError;
use crate::progress::Progress;
use crate::roster::{Roster, kind};

/// Least share of deadlines met that counts as survival.
pub const SURVIVAL: f64 = 0.99;

/// What to run to find the overload that schedulers survive.
#[derive(Clone, Debug)]
pub struct OverloadPlan {
    /// Tasks and machine.
    pub set: TaskSet,
    /// Length of each run.
    pub horizon: Time,
    /// Seed of the first run; each further run uses the next seed.
    pub seed: u64,
    /// Number of runs at each factor.
    pub runs: u64,
    /// Scheduler names with options.
    pub schedulers: Vec<String>,
    /// Roster that builds schedulers from their names.
    pub roster: Roster,
}

/// Greatest overload that one scheduler survives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survival {
    /// Scheduler name with options.
    pub scheduler: String,
    /// Largest factor on all execution times that it survives; zero if it survives none of those tried.
    pub factor: f64,
    /// Mean load per core at that factor.
    pub load: f64,
    /// Share of deadlines met at that factor.
    pub compliance: f64,
    /// Whether this is the largest factor tried, so that the scheduler may survive more.
    pub is_limit: bool,
}

/// Greatest overload that each scheduler survives.
#[derive(Clone, Debug, PartialEq)]
pub struct Survivals {
    /// Overload that a scheduler with knowledge of the future survives, at least; `None` if there are too many jobs to
    /// find it, or if no schedules with this knowledge are known for such sets.
    pub possible: Option<Survival>,
    /// Schedulers, the largest factor first.
    pub rows: Vec<Survival>,
    /// Schedulers that do not apply to this set, with the reason.
    pub skipped: Vec<(String, String)>,
}

/// Name of the optimum in results. Its schedules are known, but better ones may exist.
const CLAIRVOYANT: &str = "clairvoyant, at least";
/// Effort for the optimum of one run, in steps of the oracle.
const ORACLE_STEPS: u64 = (0.1 * STEPS_PER_SECOND) as u64;

/// Number of factors tried for each scheduler.
const STEPS: u64 = 11;
/// Mean load per core at the largest factor. Factors are multiples of 1/[`WHOLE`] of the largest.
const GREATEST_LOAD: f64 = 2.0;
const WHOLE: u64 = 1 << (STEPS - 1);

impl OverloadPlan {
    /// Returns the total number of runs, for a progress bar.
    pub fn runs_in_all(&self) -> u64 {
        (self.schedulers.len() as u64 + 1) * self.runs * STEPS
    }

    /// Runs the plan in parallel. The result does not depend on the number of threads.
    pub fn run(&self, progress: &Progress) -> Result<Survivals, CompareError> {
        for name in &self.schedulers {
            self.roster.build(name)?;
        }
        let chooses = |name: &String| !kind(name).is_rule();
        let of_each = |guess: Option<u64>, choosing: bool| -> Vec<(usize, Result<Survival, CompareError>)> {
            let names = self.schedulers.par_iter().enumerate().filter(|(_, name)| chooses(name) == choosing);
            names.map(|(place, name)| (place, self.survival(name, guess, progress))).collect()
        };
        let mut outcomes = of_each(None, false);
        if self.schedulers.iter().any(chooses) {
            let part = |of: &Result<Survival, CompareError>| of.as_ref().map_or(0, |of| self.part_of(of.factor));
            let probe = || part(&self.survival("edf", None, progress));
            let guess = outcomes.iter().map(|(_, found)| part(found)).max().unwrap_or_else(probe);
            outcomes.extend(of_each(Some(guess), true));
        }
        // Those that survive the same stay in the order in which they were asked for.
        outcomes.sort_by_key(|(place, _)| *place);
        let possible = self.possible(progress)?;
        progress.finish();
        let (mut rows, mut skipped) = (Vec::new(), Vec::new());
        for (_, outcome) in outcomes {
            match outcome {
                Ok(survival) => rows.push(survival),
                Err(CompareError::Run(name, why)) if why.is_about_the_set() => skipped.push((name, why.to_string())),
                Err(error) => return Err(error),
            }
        }
        rows.sort_by(|a: &Survival, b: &Survival| b.factor.total_cmp(&a.factor));
        Ok(Survivals { possible, rows, skipped })
    }

    fn survival(&self, name: &str, guess: Option<u64>, progress: &Progress) -> Result<Survival, CompareError> {
        let allowed = self.misses_of_survivors();
        self.most_survived(name, guess, progress, |set, seed| {
            let scheduler = &mut *self.roster.build(name)?;
            let jobs = jobs_unless_missed(set, seed, self.horizon, scheduler, allowed);
            let jobs = jobs.map_err(|error| CompareError::Run(name.to_string(), error))?;
            // Of whoever survives not, nothing but that is asked.
            Ok(Some(jobs.unwrap_or(Count { released: allowed.saturating_mul(1_000), met: 0 })))
        })
        .map(Option::unwrap_or_default)
    }

    /// Number of misses in all runs of a factor that a survivor may have, at least.
    fn misses_of_survivors(&self) -> u64 {
        let counted = |run: u64| Workload::counted(&self.set, self.seed.wrapping_add(run), self.horizon).len();
        let released: usize = (0..self.runs).map(counted).sum();
        ((1.0 - SURVIVAL) * released as f64) as u64 + 1
    }

    /// Returns the overload that a scheduler with knowledge of the future survives, at least, because only schedules
    /// that are known count. Where there are none, or where dispatching costs time that they do not count, nothing is
    /// said.
    fn possible(&self, progress: &Progress) -> Result<Option<Survival>, CompareError> {
        if has_only_bounds(&self.set) || *self.set.costs() != Costs::default() {
            return Ok(None);
        }
        self.most_survived(CLAIRVOYANT, None, progress, |set, seed| {
            let found = equal_optimum(set, seed, self.horizon, ORACLE_STEPS);
            Ok(found.map(|(found, released)| Count { released, met: found.lower as u64 }))
        })
    }

    /// Mean load per core of the set as it is.
    fn load(&self) -> f64 {
        self.set.mean_utilization() / self.set.capacity()
    }

    /// Returns the factor, in millionths, that is this multiple of 1/[`WHOLE`] of the largest.
    fn millionths(&self, part: u64) -> u64 {
        ((GREATEST_LOAD / self.load() * 1e6).min(1e15) * part as f64 / WHOLE as f64) as u64
    }

    /// Returns the multiple that gives this factor.
    fn part_of(&self, factor: f64) -> u64 {
        (factor * self.load() / GREATEST_LOAD * WHOLE as f64).round() as u64
    }

    /// Returns the largest factor at which enough deadlines are met. `outcome` counts the jobs of one run of a set with
    /// a seed; if it returns `None`, so does this function. With a guess, factors near it are tried first, farther and
    /// farther away; otherwise the largest is.
    fn most_survived(
        &self,
        name: &str,
        guess: Option<u64>,
        progress: &Progress,
        outcome: impl Fn(&TaskSet, u64) -> Result<Option<Count>, CompareError>,
    ) -> Result<Option<Survival>, CompareError> {
        progress.say(name);
        let compliance = |millionths: u64| -> Result<Option<f64>, CompareError> {
            let set = self.set.with_work(millionths, 1_000_000);
            let mut jobs = Count::default();
            for run in 0..self.runs {
                let Some(one) = outcome(&set, self.seed.wrapping_add(run))? else { return Ok(None) };
                (jobs.met, jobs.released) = (jobs.met + one.met, jobs.released + one.released);
                progress.advance(self.horizon);
            }
            Ok(Some(jobs.compliance()))
        };
        let (mut best, mut above) = ((0, 1.0), WHOLE + 1);
        let (mut middle, mut step) = (guess.unwrap_or(WHOLE).clamp(1, WHOLE), 1);
        // Of a great overload, many factors are the same number of millionths.
        let mut known: Vec<(u64, f64)> = Vec::new();
        while best.0 + 1 < above {
            let millionths = self.millionths(middle);
            let share = match known.iter().find(|(tried, _)| *tried == millionths) {
                Some((_, share)) => *share,
                None => {
                    let Some(share) = compliance(millionths)? else { return Ok(None) };
                    known.push((millionths, share));
                    share
                }
            };
            if share >= SURVIVAL {
                best = (middle, share)
            } else {
                above = middle
            }
            middle = match guess {
                Some(_) if above > WHOLE => (best.0 + step).min(WHOLE),
                Some(_) if best.0 == 0 => above.saturating_sub(step).max(1),
                _ => best.0 + (above - best.0) / 2,
            };
            step *= 2;
        }
        let factor = self.millionths(best.0) as f64 / 1e6;
        let is_limit = best.0 == WHOLE;
        let load = self.load() * factor;
        Ok(Some(Survival { scheduler: name.to_string(), factor, load, compliance: best.1, is_limit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::{Unobserved, simulate};
    use temponet_task::{OnMiss, Task, TaskId};

    fn plan(schedulers: &[&str]) -> OverloadPlan {
        let ms = Time::from_ms;
        let tasks = vec![Task::periodic("a", ms(10), ms(5)), Task::periodic("b", ms(14), ms(3))];
        let schedulers = schedulers.iter().map(|name| name.to_string()).collect();
        let (set, roster) = (TaskSet::new("s", tasks, 1), Roster::classical());
        OverloadPlan { set, horizon: Time::from_secs(7), seed: 1, runs: 1, schedulers, roster }
    }

    #[test]
    fn edf_survives_full_load_and_hardly_more() {
        let plan = plan(&["edf", "fcfs", "mh-edf", "d-over"]);
        let found = plan.run(&Progress::new(plan.runs_in_all(), plan.horizon)).unwrap();
        assert!(found.skipped.is_empty());
        let load = |name: &str| found.rows.iter().find(|row| row.scheduler == name).unwrap().load;
        assert!((0.99..1.03).contains(&load("edf")), "{found:?}");
        let possible = found.possible.as_ref().unwrap().load;
        assert!(found.rows.iter().all(|row| row.load <= possible + 1e-9), "{found:?}");
        assert!(load("mh-edf") >= load("edf") && load("fcfs") < load("edf"), "{found:?}");
        assert!(found.rows.iter().all(|row| row.compliance >= SURVIVAL && !row.is_limit), "{found:?}");
        let again = plan.run(&Progress::new(plan.runs_in_all(), plan.horizon)).unwrap();
        assert_eq!(found, again);
    }

    /// Runs that end early end only where a whole run would not survive.
    #[test]
    fn what_survives_survives_whole_runs_and_one_step_more_does_not() {
        let mut plan = plan(&["edf", "srpt", "fcfs"]);
        plan.set.system.set_on_miss(OnMiss::Continue);
        plan.runs = 2;
        let found = plan.run(&Progress::new(plan.runs_in_all(), plan.horizon)).unwrap();
        for row in &found.rows {
            let share = |part: u64| {
                let set = plan.set.with_work(plan.millionths(part), 1_000_000);
                let run = |run: u64| {
                    let scheduler = &mut *plan.roster.build(&row.scheduler).unwrap();
                    simulate(&set, plan.seed + run, plan.horizon, scheduler, &mut Unobserved).unwrap().jobs
                };
                let [one, other] = [run(0), run(1)];
                (one.met + other.met) as f64 / (one.released + other.released) as f64
            };
            let part = plan.part_of(row.factor);
            assert_eq!(share(part), row.compliance, "{}", row.scheduler);
            assert!(share(part + 1) < SURVIVAL, "{}", row.scheduler);
        }
    }

    #[test]
    fn a_search_from_a_guess_finds_what_bisection_finds() {
        let plan = plan(&[]);
        let progress = Progress::new(1, plan.horizon);
        for name in ["edf", "fcfs"] {
            let found = plan.survival(name, None, &progress).unwrap();
            let part = plan.part_of(found.factor);
            for guess in [0, 1, part - 40, part - 1, part, part + 1, part + 40, WHOLE, u64::MAX] {
                assert_eq!(plan.survival(name, Some(guess), &progress).unwrap(), found, "{name} {guess}");
            }
        }
    }

    #[test]
    fn a_clairvoyant_without_known_schedules_is_not_said_to_survive_nothing() {
        let possible = |change: fn(&mut TaskSet)| {
            let mut plan = plan(&["edf"]);
            plan.horizon = Time::from_ms(200);
            plan.set.system.tasks_mut().push(Task::periodic("c", Time::from_ms(10), Time::from_ms(1)));
            change(&mut plan.set);
            plan.run(&Progress::new(1, plan.horizon)).unwrap().possible
        };
        assert!(possible(|_| ()).is_some_and(|found| found.factor > 1.0));
        let follow = |set: &mut TaskSet| {
            set.system.tasks_mut()[2].after = vec![TaskId(0)];
            set.system.follow_sources().unwrap();
        };
        assert_eq!(possible(follow), None);
        assert_eq!(possible(|set| set.system.set_costs(Costs { context_switch: Time(1), ..Costs::default() })), None);
    }

    #[test]
    fn who_does_not_apply_is_named_and_unknown_names_are_errors() {
        let mut two = plan(&["edf", "d-over"]);
        two.set.system.set_cores(2);
        let found = two.run(&Progress::new(1, two.horizon)).unwrap();
        assert_eq!((found.rows.len(), found.skipped.len()), (1, 1));
        assert!(plan(&["eddf"]).run(&Progress::new(1, Time(1))).is_err());
    }
}
