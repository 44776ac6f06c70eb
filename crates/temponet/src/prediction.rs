//! What can be expected of a job, by the distribution of its task's execution times and by what it has executed so far.
//!
//! A wcet says little about a job that usually takes a tenth of it. The distribution is part of the task, so every
//! scheduler may know it. For the jobs of a list it is unknown, and the execution time counts as uniform between the
//! bcet and the wcet of the job. The estimate of a job, if it carries one, counts as much as it excludes, and the task
//! for the rest, until the job has exceeded everything that the estimate considers possible.

use temponet_sim::Survival;
use temponet_task::{Arrival, Estimate, Job, System, Task, Time};

/// Expectation about a job that runs from now on without interruption.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Prediction {
    /// Probability that it completes by its deadline.
    pub chance: f64,
    /// Deadline minus expected completion time, in nanoseconds.
    pub slack: f64,
}

/// Distributions of the execution times of all tasks, computed once when a scheduler starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Predictions {
    /// Distribution and wcet of each task; none for a list of jobs.
    laws: Vec<Option<(Survival, f64)>>,
}

impl Predictions {
    /// Computes the distributions of a system.
    pub(crate) fn of(system: &System) -> Predictions {
        let law = |task: &Task| match task.arrival {
            Arrival::Listed(_) => None,
            _ => Some((Survival::of(task), task.wcet.0 as f64)),
        };
        Predictions { laws: system.tasks().iter().map(law).collect() }
    }

    /// Returns what can be expected of a job now.
    pub(crate) fn about(&self, job: &Job, now: Time) -> Prediction {
        let executed = job.executed.0 as f64;
        // What is left until the deadline is counted as work on the fastest core that the job may use.
        let speed = job.fastest.as_f64();
        let left = job.deadline.signed_sub(now + job.fastest.time_for(job.overhead)) as f64 * speed;
        let (chance, remaining) = match self.laws.get(job.task.index()) {
            // Without a division in the usual case.
            Some(Some((survival, wcet))) if *wcet == job.wcet.0 as f64 => by_survival(survival, executed, left),
            Some(Some((survival, wcet))) => {
                // In a mode with more work, all execution times of the task grow by the same factor.
                let factor = wcet / job.wcet.0.max(1) as f64;
                let (chance, remaining) = by_survival(survival, executed * factor, left * factor);
                (chance, remaining / factor)
            }
            _ => by_bounds(job.bcet.0 as f64, job.wcet.0 as f64, executed, left),
        };
        let (chance, remaining) = match job.estimate {
            None => (chance, remaining),
            Some(estimate) => with_estimate(estimate, job, left, (chance, remaining)),
        };
        // A job that is not complete has work left, even if it has exceeded every execution time that its task can
        // have.
        Prediction { chance, slack: (left - remaining.max(1.0)) / speed }
    }
}

/// Returns the chance and the expected remaining time of a job that has `executed` and has `left` time to its deadline.
fn by_survival(survival: &Survival, executed: f64, left: f64) -> (f64, f64) {
    let (beyond, mean) = match executed < survival.least() {
        true => (1.0, Some(survival.mean())),
        false => survival.mean_beyond(executed),
    };
    let Some(mean) = mean else { return beyond_all(left) };
    let chance = match executed + left {
        _ if left <= 0.0 => 0.0,
        end if end >= survival.most() => 1.0,
        end if end < survival.least() => 0.0,
        end => 1.0 - survival.beyond(end) / beyond,
    };
    (chance, mean - executed)
}

/// Returns the chance and the expected remaining time of a job with an estimate, where `task` is what its task says.
fn with_estimate(estimate: Estimate, job: &Job, left: f64, task: (f64, f64)) -> (f64, f64) {
    let (law, executed) = (estimate.distribution(job.bcet, job.wcet), job.executed.0 as f64);
    let Some(mean) = law.mean_beyond(executed) else { return task };
    let chance = if left <= 0.0 { 0.0 } else { 1.0 - law.beyond(executed + left) / law.beyond(executed) };
    let vagueness = estimate.vagueness(job.bcet, job.wcet);
    let mixed = |by_task: f64, by_estimate: f64| by_estimate + vagueness * (by_task - by_estimate);
    (mixed(task.0, chance), mixed(task.1, mean - executed))
}

/// Like [`by_survival`], for an execution time that is uniform between two bounds.
fn by_bounds(least: f64, most: f64, executed: f64, left: f64) -> (f64, f64) {
    if executed >= most {
        return beyond_all(left);
    }
    let least = least.max(executed);
    let chance = match executed + left {
        end if end >= most => 1.0,
        end if end <= least => 0.0,
        end => (end - least) / (most - least),
    };
    (chance, (least + most) / 2.0 - executed)
}

/// Chance and remaining time of a job that has executed for longer than it can take: it may complete at any moment.
fn beyond_all(left: f64) -> (f64, f64) {
    (if left >= 1.0 { 1.0 } else { 0.0 }, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg32;
    use temponet_sim::draw_estimated;
    use temponet_task::{ExecutionModel, TaskId, TaskSet};

    const WCET: u64 = 1_000_000;

    fn system(execution: ExecutionModel) -> System {
        let (bcet, acet, wcet_high) = (Time(WCET / 10), Some(Time(WCET / 4)), Some(Time(2 * WCET)));
        let task = Task::periodic("t", Time(9 * WCET), Time(WCET))
            .with_bcet(bcet)
            .with_acet(acet)
            .with_wcet_high(wcet_high)
            .with_execution(execution);
        TaskSet::new("set", vec![task], 1).system
    }

    fn job(system: &System, executed: u64, deadline: u64) -> Job {
        Job::first(TaskId(0), &system.tasks()[0]).with_executed(Time(executed)).with_deadline(Time(deadline))
    }

    /// Execution times that the simulator draws, by running the task on a core of its own.
    fn drawn(execution: ExecutionModel) -> Vec<f64> {
        let set = TaskSet::of_system("set", system(execution));
        let mut workload = temponet_sim::Workload::new(&set, 5);
        std::iter::from_fn(|| workload.pop()).take(20_000).map(|release| release.execution.0 as f64).collect()
    }

    #[test]
    fn the_chance_is_that_of_simulated_jobs() {
        let overrun = ExecutionModel::Overrun { probability: 0.05, below: Box::new(ExecutionModel::Uniform) };
        for model in [
            ExecutionModel::Uniform,
            ExecutionModel::Normal { deviation: Time(WCET / 8) },
            ExecutionModel::Weibull { exceed: 0.01 },
            ExecutionModel::Pareto { shape: 1.2 },
            overrun,
        ] {
            let (drawn, system) = (drawn(model.clone()), system(model.clone()));
            let predictions = Predictions::of(&system);
            for (executed, left) in [(0, 2), (0, 5), (0, 9), (2, 1), (3, 3), (5, 1), (5, 4), (8, 1), (8, 6)] {
                let (executed, left) = (executed * WCET / 10, left * WCET / 10);
                let later: Vec<f64> = drawn.iter().copied().filter(|time| *time > executed as f64).collect();
                let in_time = later.iter().filter(|time| **time <= (executed + left) as f64).count();
                if later.len() < 400 {
                    continue;
                }
                let chance = in_time as f64 / later.len() as f64;
                let slack = left as f64 + executed as f64 - later.iter().sum::<f64>() / later.len() as f64;
                let prediction = predictions.about(&job(&system, executed, left), Time::ZERO);
                let what = format!("{model:?}: {executed} executed, {left} left");
                assert!((prediction.chance - chance).abs() < 0.08, "{what}: {} and {chance}", prediction.chance);
                assert!(
                    (prediction.slack - slack).abs() < 0.03 * WCET as f64,
                    "{what}: {} and {slack}",
                    prediction.slack
                );
            }
        }
    }

    /// What is drawn from an estimate, or from the task if the estimate is vague, is what the prediction is about.
    #[test]
    fn the_chance_of_a_job_with_an_estimate_is_that_of_draws() {
        let (bcet, wcet) = (Time(WCET / 10), Time(WCET));
        let system = system(ExecutionModel::Uniform);
        let (predictions, uniform) = (Predictions::of(&system), drawn(ExecutionModel::Uniform));
        let estimates = [(3, 3), (3, 4), (5, 8), (2, 10)];
        for (median, high) in estimates.map(|(median, high)| (Time(median * WCET / 10), Time(high * WCET / 10))) {
            let estimate = Estimate::new(median, high).unwrap();
            for (executed, left) in [(0, 2), (0, 5), (2, 2), (4, 3)].map(|(a, b)| (a * WCET / 10, b * WCET / 10)) {
                let mut rng = Pcg32::new(4, 1);
                let mut later = uniform.iter().filter(|time| **time > executed as f64).cycle();
                let times: Vec<f64> = (0..20_000)
                    .map(|_| {
                        let drawn = draw_estimated(estimate, Time(executed), [bcet, wcet], &mut rng);
                        drawn.map_or_else(|| *later.next().unwrap(), |time| time.0 as f64)
                    })
                    .collect();
                let in_time = times.iter().filter(|time| **time <= (executed + left) as f64).count();
                let chance = in_time as f64 / times.len() as f64;
                let slack = (executed + left) as f64 - times.iter().sum::<f64>() / times.len() as f64;
                let job = job(&system, executed, left).with_estimate(Some(estimate));
                let prediction = predictions.about(&job, Time::ZERO);
                let what = format!("{estimate:?}: {executed} executed, {left} left");
                assert!((prediction.chance - chance).abs() < 0.02, "{what}: {} and {chance}", prediction.chance);
                assert!(
                    (prediction.slack - slack).abs() < 0.02 * WCET as f64,
                    "{what}: {} and {slack}",
                    prediction.slack
                );
            }
        }
    }

    #[test]
    fn the_chance_grows_with_the_time_left_from_exactly_zero_to_exactly_one() {
        for model in [ExecutionModel::Wcet, ExecutionModel::Uniform, ExecutionModel::Weibull { exceed: 0.01 }] {
            let system = system(model.clone());
            let predictions = Predictions::of(&system);
            let chance = |executed: u64, left: u64| predictions.about(&job(&system, executed, left), Time::ZERO).chance;
            for executed in [0, WCET / 5, WCET / 2] {
                let chances: Vec<f64> = (0..=40).map(|step| chance(executed, step * WCET / 40)).collect();
                assert!(chances.is_sorted() && chances[0] == 0.0, "{model:?}: {chances:?}");
                assert_eq!(chance(executed, WCET - executed), 1.0, "{model:?}");
            }
            // Overhead takes time away from the job's own work.
            let whole = job(&system, 0, WCET);
            let delayed = whole.with_overhead(Time(WCET));
            assert_eq!(predictions.about(&delayed, Time::ZERO).chance, 0.0);
            assert_eq!(predictions.about(&whole, Time(WCET)).chance, 0.0, "the deadline has come");
            // A job may take longer than anybody said.
            assert_eq!([chance(3 * WCET, 0), chance(3 * WCET, 1)], [0.0, 1.0]);
        }
    }

    #[test]
    fn a_mode_with_more_work_scales_the_distribution() {
        let system = system(ExecutionModel::Weibull { exceed: 0.01 });
        let predictions = Predictions::of(&system);
        let usual = job(&system, WCET / 5, WCET / 4);
        let longer = |time: Time| Time(time.0 * 3);
        let scaled = usual
            .with_wcet(longer(usual.wcet))
            .with_bcet(longer(usual.bcet))
            .with_executed(longer(usual.executed))
            .with_deadline(longer(usual.deadline));
        let (usual, scaled) = (predictions.about(&usual, Time::ZERO), predictions.about(&scaled, Time::ZERO));
        assert!(usual.chance > 0.1 && usual.chance < 0.9, "{usual:?}");
        assert!((usual.chance - scaled.chance).abs() < 1e-9 && (3.0 * usual.slack - scaled.slack).abs() < 1e-3);
    }

    #[test]
    fn a_listed_job_is_uniform_between_its_own_bounds() {
        let of = |executed: u64, left: u64| by_bounds(200.0, 1_000.0, executed as f64, left as f64);
        assert_eq!([of(0, 200), of(0, 600), of(0, 1_000)], [(0.0, 600.0), (0.5, 600.0), (1.0, 600.0)]);
        assert_eq!(of(600, 200), (0.5, 200.0));
        let known = |left: f64| by_bounds(500.0, 500.0, 100.0, left);
        assert_eq!([known(399.0), known(400.0)], [(0.0, 400.0), (1.0, 400.0)]);
    }
}
