//! What a schedule is worth, event by event.

use serde::{Deserialize, Serialize};
use temponet_sim::{End, Observer};
use temponet_task::{Job, Speed, TaskSet, Time, Worths};

/// How on-time completions, misses and other things are paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RewardShape {
    /// +1 for a job on time, −1 for a missed one.
    #[default]
    Binary,
    /// +1 for a job on time, nothing for a missed one.
    NoPenalty,
    /// Nothing for a job on time, −1 for a missed one: unlike what is earned, what is lost does not depend on how early a job ends, so that
    /// discounting prefers no short jobs.
    Misses,
    /// Binary, and a missed job costs more the more of its work is undone, or the later it ends.
    Lateness {
        /// The cost of a whole wcet undone, or of a whole relative deadline late.
        weight: f64,
    },
    /// Binary, and a job on time is worth more the earlier it ends.
    Early {
        /// The bonus for ending at the release.
        weight: f64,
    },
    /// Binary, and negative slack costs while it lasts.
    Slack {
        /// The cost of one unit of negative slack for one unit of time.
        weight: f64,
    },
    /// Binary, and running a job of a task whose execution times vary costs.
    Risk {
        /// The cost of one unit of time at a coefficient of variation of one.
        weight: f64,
    },
    /// Binary, and energy costs.
    Energy {
        /// The cost of one unit of time of one core at full speed; it falls with the cube of the speed.
        weight: f64,
    },
}

/// All there is to earn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reward {
    /// The shape.
    pub shape: RewardShape,
    /// What a migration costs.
    pub migration: f64,
    /// Whether a job counts by its value instead of as one. Without this and the next, jobs count by the goal of their set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_value: Option<bool>,
    /// How much more a job counts for each level of criticality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_criticality: Option<f64>,
}

/// What a job in time is worth.
#[derive(Clone, Debug)]
enum JobWorth {
    /// As the set's goal says.
    Goal(Worths),
    /// As the recipe says.
    Stated {
        /// The mean value of a task, where values count.
        mean_value: Option<f64>,
        by_criticality: f64,
    },
}

impl JobWorth {
    fn of(reward: &Reward, set: &TaskSet) -> JobWorth {
        if reward.by_value.is_none() && reward.by_criticality.is_none() {
            return JobWorth::Goal(set.goal().worths(&set.tasks));
        }
        let total: f64 = set.tasks.iter().map(|task| task.value).sum();
        let mean = (total / set.tasks.len().max(1) as f64).max(f64::MIN_POSITIVE);
        let mean_value = reward.by_value.unwrap_or(false).then_some(mean);
        JobWorth::Stated { mean_value, by_criticality: reward.by_criticality.unwrap_or(0.0) }
    }

    fn worth(&self, job: &Job) -> f64 {
        match self {
            JobWorth::Goal(worths) => worths.of(job.criticality, job.value),
            JobWorth::Stated { mean_value, by_criticality } => {
                let value = mean_value.map_or(1.0, |mean| job.value / mean);
                value * (1.0 + by_criticality * f64::from(job.criticality))
            }
        }
    }
}

/// Adds up the reward of a run as it goes on.
#[derive(Clone, Debug)]
pub struct RewardAccumulator {
    reward: Reward,
    /// One unit of time, in ns: the set's scale.
    unit: f64,
    pay: JobWorth,
    earned: f64,
    /// What all jobs that have left would have been worth in time.
    possible: f64,
    /// Jobs due later do not count.
    due_by: Time,
    /// What each task's executions were like: how many, their mean and their sum of squared differences.
    history: Vec<(f64, f64, f64)>,
}

impl RewardAccumulator {
    /// An empty one, for a set of this scale.
    pub fn new(reward: Reward, unit: f64, set: &TaskSet) -> RewardAccumulator {
        let (pay, history) = (JobWorth::of(&reward, set), vec![(0.0, 0.0, 0.0); set.tasks.len()]);
        RewardAccumulator { reward, unit, pay, earned: 0.0, possible: 0.0, due_by: Time::NEVER, history }
    }

    /// An empty one that only counts jobs in time, and of them only those due by a date: so nothing is gained by what is done early.
    pub fn on_time_only(&self, due_by: Time) -> RewardAccumulator {
        let reward = Reward { shape: RewardShape::NoPenalty, migration: 0.0, ..self.reward };
        let history = vec![(0.0, 0.0, 0.0); self.history.len()];
        RewardAccumulator {
            reward,
            unit: self.unit,
            pay: self.pay.clone(),
            earned: 0.0,
            possible: 0.0,
            due_by,
            history,
        }
    }

    /// Takes out what was earned since the last time.
    pub fn take(&mut self) -> f64 {
        std::mem::take(&mut self.earned)
    }

    /// What was earned as a share of what could have been.
    pub fn share(&self) -> f64 {
        if self.possible > 0.0 { self.earned / self.possible } else { 1.0 }
    }

    /// Pays for so many migrations.
    pub fn charge_migrations(&mut self, times: u64) {
        self.earned -= self.reward.migration * times as f64;
    }

    /// Pays for the negative slack that jobs had during a time.
    pub fn charge_negative_slack(&mut self, jobs: impl Iterator<Item = i64>, length: Time) {
        if let RewardShape::Slack { weight } = self.reward.shape {
            let lacking: f64 = jobs.map(|slack| (-slack).max(0) as f64 / self.unit).sum();
            self.earned -= weight * lacking * length.0 as f64 / self.unit;
        }
    }

    /// Whether negative slack costs.
    pub fn charges_slack(&self) -> bool {
        matches!(self.reward.shape, RewardShape::Slack { .. })
    }

    /// The coefficient of variation of a task's executions so far.
    fn variation(&self, task: u32) -> f64 {
        let (count, mean, squares) = self.history[task as usize];
        if count < 2.0 || mean <= 0.0 { 0.0 } else { (squares / (count - 1.0)).sqrt() / mean }
    }
}

impl Observer for RewardAccumulator {
    fn ran(&mut self, _core: usize, job: &Job, start: Time, end: Time, speed: Speed) {
        let length = (end - start).0 as f64 / self.unit;
        self.earned -= match self.reward.shape {
            RewardShape::Risk { weight } => weight * self.variation(job.task) * length,
            RewardShape::Energy { weight } => weight * length * (f64::from(speed.0) / 1000.0).powi(3),
            _ => 0.0,
        };
    }

    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        let (worth, relative) = (self.pay.worth(job), (job.deadline - job.release).0.max(1) as f64);
        if end == End::Completed {
            let (count, mean, squares) = &mut self.history[job.task as usize];
            *count += 1.0;
            let difference = job.executed.0 as f64 - *mean;
            *mean += difference / *count;
            *squares += difference * (job.executed.0 as f64 - *mean);
        }
        if job.deadline > self.due_by {
            return;
        }
        self.possible += worth;
        if end == End::Completed && now <= job.deadline {
            let early = (job.deadline - now).0 as f64 / relative;
            self.earned += match self.reward.shape {
                RewardShape::Misses => 0.0,
                RewardShape::Early { weight } => worth + weight * early,
                _ => worth,
            };
        } else {
            let late = match end {
                End::Completed => (now - job.deadline).0 as f64 / relative,
                _ => job.remaining().0 as f64 / job.wcet.0.max(1) as f64,
            };
            self.earned -= match self.reward.shape {
                RewardShape::NoPenalty => 0.0,
                RewardShape::Lateness { weight } => worth + weight * late,
                _ => worth,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Task;

    fn set() -> TaskSet {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("log", ms(10), ms(8)), Task::periodic("brake", ms(10), ms(8))];
        (tasks[0].value, tasks[1].criticality) = (5.0, 1);
        TaskSet::new("s", tasks, 1)
    }

    /// What the run of a scheduler that completes only jobs of one task earns.
    fn share(reward: Reward, met: u32) -> f64 {
        let set = set();
        let mut rewards = RewardAccumulator::new(reward, 1.0, &set).on_time_only(Time::NEVER);
        for (index, task) in (0..).zip(&set.tasks) {
            let job = Job::first(index, task);
            let end = if index == met { End::Completed } else { End::Aborted };
            rewards.left(&job, None, end, job.deadline);
        }
        rewards.share()
    }

    #[test]
    fn a_reward_that_says_nothing_counts_by_the_goal() {
        assert!(share(Reward::default(), 1) > 0.5, "the critical job outweighs the valuable one");
        let by_value = Reward { by_value: Some(true), ..Reward::default() };
        assert!(share(by_value, 0) > 0.8, "a recipe may say otherwise");
        let plain = Reward { by_value: Some(false), ..Reward::default() };
        assert_eq!(share(plain, 0), share(plain, 1));
    }
}
