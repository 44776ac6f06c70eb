//! The goal of a task set: the measures that its schedules are judged by, most important first.
//!
//! A goal is a lexicographic order, not a weighted sum: no number of ordinary jobs makes up for one critical job.
//! Rankings, verdicts and the arena compare schedules measure by measure. Training needs a single number per job, and
//! [`Goal::worths`] derives it from the same order.

use alloc::{format, vec, vec::Vec};
use core::fmt;

use crate::{Arrival, System, Task};

/// An objective, as named by `goal` in a file or by `--rank-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aim {
    /// Critical jobs that meet their deadline, the highest criticality level first.
    Critical,
    /// Instances of chains that meet their end-to-end deadline.
    Chains,
    /// (m,k)-firm constraints that hold.
    Mk,
    /// Total value of the jobs that meet their deadline.
    Value,
    /// Number of jobs that meet their deadline.
    Met,
    /// Jobs that meet their deadline, of the task with the smallest share of them.
    WorstTask,
}

impl Aim {
    /// Every aim.
    pub const ALL: [Aim; 6] = [Aim::Critical, Aim::Chains, Aim::Mk, Aim::Value, Aim::Met, Aim::WorstTask];

    /// Name of the aim in files, flags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Aim::Critical => "critical",
            Aim::Chains => "chains",
            Aim::Mk => "mk",
            Aim::Value => "value",
            Aim::Met => "met",
            Aim::WorstTask => "worst-task",
        }
    }

    /// Returns the aim with this name.
    pub fn from_name(name: &str) -> Option<Aim> {
        Aim::ALL.into_iter().find(|aim| aim.name() == name)
    }
}

/// A figure by which a schedule is judged: a share from 0 to 1, where more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Share of the jobs of this criticality level that meet their deadline.
    Critical(u8),
    /// Share of the instances of chains that meet their end-to-end deadline.
    Chains,
    /// Share of the windows of k consecutive jobs in which at least m jobs meet their deadline.
    Mk,
    /// Value of the jobs that meet their deadline, as a share of the value of all jobs.
    Value,
    /// Share of the jobs that meet their deadline.
    Met,
    /// Share of jobs that meet their deadline, of the task with the smallest such share.
    WorstTask,
}

/// Measures by which the schedules of a task set are judged, in order of importance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    measures: Vec<Measure>,
    /// Whether critical jobs have more than one criticality level.
    has_levels: bool,
}

impl Default for Goal {
    /// As many jobs as possible meet their deadline.
    fn default() -> Goal {
        Goal::new(&[Aim::Met], &[])
    }
}

impl Goal {
    /// Creates a goal from `aims`, most important first. `levels` are the criticality levels of the jobs, in any order.
    ///
    /// [`Aim::Critical`] becomes one measure per level above 0. Without any measure, the goal is [`Measure::Met`].
    pub fn new(aims: &[Aim], levels: &[u8]) -> Goal {
        let mut levels: Vec<u8> = levels.iter().copied().filter(|level| *level > 0).collect();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        levels.dedup();
        let mut measures: Vec<Measure> = Vec::new();
        for aim in aims {
            let more: Vec<Measure> = match aim {
                Aim::Critical => levels.iter().map(|level| Measure::Critical(*level)).collect(),
                Aim::Chains => vec![Measure::Chains],
                Aim::Mk => vec![Measure::Mk],
                Aim::Value => vec![Measure::Value],
                Aim::Met => vec![Measure::Met],
                Aim::WorstTask => vec![Measure::WorstTask],
            };
            for measure in more {
                if !measures.contains(&measure) {
                    measures.push(measure);
                }
            }
        }
        if measures.is_empty() {
            measures.push(Measure::Met);
        }
        Goal { measures, has_levels: levels.len() > 1 }
    }

    /// Creates the common goal of several systems: the aims in `first`, then every aim that one of the systems states
    /// or that follows from its tasks.
    pub fn of_systems<'a>(first: &[Aim], systems: impl Iterator<Item = &'a System> + Clone) -> Goal {
        let mut aims = first.to_vec();
        aims.extend(systems.clone().flat_map(|system| system.aims().iter().copied()));
        aims.push(Aim::Critical);
        aims.extend(systems.clone().any(System::has_chain_deadlines).then_some(Aim::Chains));
        let is_firm = |system: &System| system.tasks().iter().any(|task| task.mk.is_some());
        aims.extend(systems.clone().any(is_firm).then_some(Aim::Mk));
        aims.extend(systems.clone().any(System::has_values).then_some(Aim::Value));
        aims.push(Aim::Met);
        let levels: Vec<u8> = systems.flat_map(System::levels).collect();
        Goal::new(&aims, &levels)
    }

    /// Returns the measures, most important first. There is at least one.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Returns the most important measure.
    pub fn first(&self) -> Measure {
        self.measures[0]
    }

    /// Returns whether critical jobs are judged at more than one level.
    pub fn has_levels(&self) -> bool {
        self.has_levels
    }

    /// Returns whether the number of jobs that meet their deadline is all that counts.
    pub fn is_plain(&self) -> bool {
        self.measures == [Measure::Met]
    }

    /// Computes the worth of a job of `tasks` for training: one number that keeps the order of this goal.
    ///
    /// Where criticality leads the goal, one job of a level is worth more than one job of every less critical task
    /// together, up to a factor of 1e9.
    pub fn worths(&self, tasks: &[Task]) -> Worths {
        let place = |wanted: fn(&Measure) -> bool| self.measures.iter().position(wanted).unwrap_or(usize::MAX);
        let met = place(|measure| *measure == Measure::Met);
        let value = place(|measure| *measure == Measure::Value);
        let critical = place(|measure| matches!(measure, Measure::Critical(_)));
        let by_value = value < met;
        let mut worths = Worths { by_value, levels: Vec::new(), mean: 1.0 };
        let kinds: Vec<(u8, f64)> = tasks.iter().filter(|task| !task.is_part).flat_map(kinds).collect();
        if critical < met.min(value) {
            let highest = kinds.iter().map(|(level, _)| *level).max().unwrap_or(0);
            for level in 0..=highest {
                let plain = |value: f64| if by_value { value } else { 1.0 };
                let lower: f64 = kinds.iter().filter(|kind| kind.0 < level).map(|kind| worths.of(kind.0, kind.1)).sum();
                let least = kinds.iter().filter(|kind| kind.0 == level && kind.1 > 0.0);
                let least = least.map(|kind| plain(kind.1)).fold(f64::INFINITY, f64::min);
                // One job of a level outweighs one job of every less critical task together.
                let factor =
                    if lower > 0.0 && least.is_finite() { (1.0 + lower / least).min(MOST_FACTOR) } else { 1.0 };
                worths.levels.push(factor);
            }
        }
        let total: f64 = kinds.iter().map(|kind| worths.of(kind.0, kind.1)).sum();
        if total > 0.0 {
            worths.mean = total / kinds.len() as f64;
        }
        worths
    }
}

/// Largest factor of a criticality level. With a larger one, sums of worths would lose the least critical jobs to
/// rounding.
const MOST_FACTOR: f64 = 1e9;

/// Returns the criticality and value of a task's jobs. For listed jobs, each combination appears once.
fn kinds(task: &Task) -> Vec<(u8, f64)> {
    match &task.arrival {
        Arrival::Listed(jobs) => {
            let mut kinds: Vec<(u8, f64)> = Vec::new();
            for job in jobs.iter() {
                // A trace has either few kinds of jobs or a different value for each job. In the latter case the first
                // kinds stand for all.
                if kinds.len() < MOST_KINDS && !kinds.contains(&(job.criticality, job.value)) {
                    kinds.push((job.criticality, job.value));
                }
            }
            kinds
        }
        _ => vec![(task.criticality, task.value)],
    }
}

/// Number of kinds of listed jobs that are told apart.
const MOST_KINDS: usize = 64;

/// Worth of jobs for training: one number per job that keeps the order of the goal, scaled to a mean of 1 over the
/// tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Worths {
    by_value: bool,
    /// Factor of each criticality level, starting at level 0. Empty if criticality does not count.
    levels: Vec<f64>,
    mean: f64,
}

impl Worths {
    /// Returns the worth of a job of this criticality and value that meets its deadline.
    pub fn of(&self, criticality: u8, value: f64) -> f64 {
        let factor = match self.levels.get(usize::from(criticality)).or(self.levels.last()) {
            Some(factor) => *factor,
            None => 1.0,
        };
        factor * if self.by_value { value } else { 1.0 } / self.mean
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        let mut last_level = None;
        for measure in &self.measures {
            let words = match measure {
                Measure::Critical(level) if self.has_levels => {
                    let text = if last_level.is_some() {
                        format!("level {level}")
                    } else {
                        format!("critical jobs of level {level}")
                    };
                    last_level = Some(*level);
                    text
                }
                Measure::Critical(_) => "critical jobs".into(),
                Measure::Chains => "chains in time".into(),
                Measure::Mk => "(m,k) kept".into(),
                Measure::Value => "value".into(),
                Measure::Met => "jobs in time".into(),
                Measure::WorstTask => "the worst task".into(),
            };
            write!(f, "{}{words}", if is_first { "" } else { ", then " })?;
            is_first = false;
        }
        Ok(())
    }
}

impl System {
    /// Returns the goal of the system with the aims in `first` before all others.
    pub fn goal_led_by(&self, first: &[Aim]) -> Goal {
        Goal::of_systems(first, [self].into_iter())
    }

    /// Returns the criticality levels above 0 that occur among the jobs, ascending.
    pub fn levels(&self) -> Vec<u8> {
        let mut is_there = [false; 256];
        for task in self.tasks() {
            match &task.arrival {
                Arrival::Listed(jobs) => jobs.iter().for_each(|job| is_there[usize::from(job.criticality)] = true),
                _ => is_there[usize::from(task.criticality)] = true,
            }
        }
        (1..=u8::MAX).filter(|level| is_there[usize::from(*level)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskSet, Time};

    fn set(tasks: &[(u8, f64)]) -> TaskSet {
        let task = |(index, (criticality, value)): (usize, &(u8, f64))| {
            Task::periodic(format!("t{index}"), Time(100), Time(10)).with_criticality(*criticality).with_value(*value)
        };
        TaskSet::new("s", tasks.iter().enumerate().map(task).collect(), 1)
    }

    #[test]
    fn a_goal_follows_from_the_tasks_unless_the_file_states_one() {
        assert!(set(&[(0, 1.0)]).goal().is_plain());
        let mut rich = set(&[(0, 1.0), (2, 5.0), (7, 1.0)]);
        rich.system.tasks_mut()[0].mk = Some((1, 2));
        let derived = [Measure::Critical(7), Measure::Critical(2), Measure::Mk, Measure::Value, Measure::Met];
        assert_eq!(rich.goal().measures(), derived);
        assert_eq!(
            rich.goal().to_string(),
            "critical jobs of level 7, then level 2, then (m,k) kept, then value, then jobs in time"
        );
        rich.system.set_aims(vec![Aim::Value]);
        let stated = rich.goal();
        assert_eq!(stated.first(), Measure::Value);
        assert_eq!(stated.measures().len(), derived.len(), "the others still decide among equals");
        assert_eq!(rich.goal_led_by(&[Aim::WorstTask]).first(), Measure::WorstTask);
        // Without critical tasks, the aim adds no measure.
        assert!(set(&[(0, 1.0)]).goal_led_by(&[Aim::Critical]).is_plain());
    }

    #[test]
    fn one_critical_job_is_worth_more_than_one_of_every_other_task() {
        let set = set(&[(0, 1.0), (0, 10.0), (1, 2.0), (3, 1.0)]);
        let worths = set.goal().worths(set.tasks());
        assert!(worths.of(1, 2.0) > worths.of(0, 1.0) + worths.of(0, 10.0));
        assert!(worths.of(3, 1.0) > worths.of(1, 2.0) + worths.of(0, 1.0) + worths.of(0, 10.0));
        assert!((worths.of(0, 10.0) / worths.of(0, 1.0) - 10.0).abs() < 1e-9, "values count within a level");
        let mean: f64 = set.tasks().iter().map(|task| worths.of(task.criticality, task.value)).sum::<f64>() / 4.0;
        assert!((mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn worths_are_all_one_where_nothing_differs_or_nothing_else_counts() {
        let plain = set(&[(0, 1.0), (0, 1.0)]);
        assert_eq!(plain.goal().worths(plain.tasks()).of(0, 1.0), 1.0);
        let all_critical = set(&[(2, 1.0), (2, 1.0)]);
        assert_eq!(all_critical.goal().worths(all_critical.tasks()).of(2, 1.0), 1.0);
        let rich = set(&[(0, 1.0), (2, 5.0)]);
        assert_eq!(rich.goal_led_by(&[Aim::Met]).worths(rich.tasks()).of(2, 5.0), 1.0);
    }
}
