//! Rewards: what completions, misses and other events of a run are worth.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use temponet::stages::LastOutcomes;
use temponet_sim::{End, Observer};
use temponet_task::{Arrival, CoreId, Job, Measure, Speed, TaskId, TaskSet, Time, Worths};

/// Reward for meeting and missing deadlines, and for other things. A job's worth is 1 or what [`Reward`] says; the
/// amounts below are for a worth of 1. All weights are 0 or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RewardShape {
    /// +1 for a job that meets its deadline, −1 for a miss.
    #[default]
    Binary,
    /// +1 for a job that meets its deadline, 0 for a miss.
    NoPenalty,
    /// 0 for a job that meets its deadline, −1 for a miss. Unlike a reward for completing, the penalty does not come
    /// sooner for a short job, so discounting does not prefer short jobs.
    Misses,
    /// Binary, and a miss costs more, the more of the job's work is undone or the later it completes.
    Lateness {
        /// Cost of a whole wcet undone, or of completing a whole relative deadline late.
        weight: f64,
    },
    /// Binary, and a job that meets its deadline earns more, the earlier it completes.
    Early {
        /// Bonus for completing at the release.
        weight: f64,
    },
    /// Binary, and negative slack costs while it lasts: the paper's R3, η · max(0, −s). The paper takes s from the
    /// quantized slack, whose bins are clipped at 0. That s is never negative, and the term is zero in every state.
    /// This shape takes the slack itself.
    Slack {
        /// Cost of one unit of negative slack for one unit of time.
        weight: f64,
    },
    /// Binary, and a job counts more if the execution times of its task have varied so far: the paper's R4, which
    /// up-weights tasks by ρ · σ̂.
    Risk {
        /// Additional worth, met or missed, at a coefficient of variation of 1.
        weight: f64,
    },
    /// Binary, and energy costs: the paper's R5. The network chooses speeds only if its shape has some; without them it
    /// saves energy by idling alone.
    Energy {
        /// Cost of one unit of time of one core at full speed; at lower speeds it falls with the cube of the speed.
        weight: f64,
    },
}

/// Everything that is rewarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reward {
    /// Reward for meeting and missing deadlines; default [`RewardShape::Binary`].
    pub shape: RewardShape,
    /// Cost of a migration, 0 or more; default 0.
    pub migration: f64,
    /// Whether a job counts by its value instead of as 1. If neither this nor `by_criticality` is given, which is the
    /// default, jobs count by the goal of their set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_value: Option<bool>,
    /// Additional worth of a job for each level of criticality, 0 or more, as a share of its worth at level 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_criticality: Option<f64>,
    /// Whether the rewards of a set are divided by the root of the squared worth of the jobs that it releases in the
    /// time in which the weight of a reward falls to 1/e. The returns of all sets then vary alike; otherwise those with
    /// many cores or dear jobs drown the others' in the loss. Default `false`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standardized: bool,
}

/// Worth of a job that meets its deadline.
#[derive(Clone, Debug)]
enum JobWorth {
    /// Worth by the goal of the set.
    Goal(Worths),
    /// Worth by the recipe.
    Stated {
        /// Mean value of a task, if jobs count by value.
        mean_value: Option<f64>,
        by_criticality: f64,
    },
}

impl JobWorth {
    fn new(reward: &Reward, set: &TaskSet) -> JobWorth {
        if reward.by_value.is_none() && reward.by_criticality.is_none() {
            return JobWorth::Goal(set.goal().worths(set.tasks()));
        }
        let total: f64 = set.tasks().iter().map(|task| task.value).sum();
        let mean = (total / set.tasks().len().max(1) as f64).max(f64::MIN_POSITIVE);
        let mean_value = reward.by_value.unwrap_or(false).then_some(mean);
        JobWorth::Stated { mean_value, by_criticality: reward.by_criticality.unwrap_or(0.0) }
    }

    fn of_job(&self, criticality: u8, value: f64) -> f64 {
        match self {
            JobWorth::Goal(worths) => worths.of(criticality, value),
            JobWorth::Stated { mean_value, by_criticality } => {
                let value = mean_value.map_or(1.0, |mean| value / mean);
                value * (1.0 + by_criticality * f64::from(criticality))
            }
        }
    }
}

/// Observer of a run that adds up its reward.
#[derive(Clone, Debug)]
pub struct RewardAccumulator {
    reward: Reward,
    /// Unit of time in nanoseconds: that of the set's scale.
    unit: f64,
    job_worth: JobWorth,
    /// Reward since it was last taken.
    total: f64,
    /// Worth of all jobs that have left, as if they had met their deadlines.
    possible: f64,
    /// Deadline after which jobs do not count.
    due_by: Time,
    /// Cost of one unit of time of one core at full speed.
    energy: f64,
    /// Execution times of each task so far: their number, their mean and the sum of their squared differences from it.
    history: Vec<(f64, f64, f64)>,
    /// Factor on the reward when it is taken.
    factor: f64,
    firm: Firm,
    /// Jobs that have passed their deadlines and stay, by task and number. They have cost what a miss costs.
    late: HashSet<(TaskId, u64)>,
}

/// What windows of (m,k) constraints cost that are lost, where these lead the goal.
#[derive(Clone, Debug, Default)]
struct Firm {
    /// Outcomes of each task; empty if windows cost nothing.
    outcomes: Vec<Option<LastOutcomes>>,
    /// Cost of a window: one outweighs a job of every task, as if none were critical.
    window: f64,
}

impl Firm {
    fn new(worth: &JobWorth, set: &TaskSet) -> Firm {
        let JobWorth::Goal(worths) = worth else { return Firm::default() };
        let measures = set.goal().measures();
        let place = |wanted: &[Measure]| measures.iter().position(|measure| wanted.contains(measure));
        let jobs = place(&[Measure::Met, Measure::Value]).unwrap_or(usize::MAX);
        if place(&[Measure::Mk]).is_none_or(|windows| windows >= jobs) {
            return Firm::default();
        }
        let outcomes = set.tasks().iter().map(|task| task.mk.map(LastOutcomes::new)).collect();
        Firm { outcomes, window: set.tasks().iter().map(|task| worths.of(0, task.value)).sum() }
    }

    /// Cost of losing a window of a task; 0 if it has none.
    fn window_of(&self, task: TaskId) -> f64 {
        if self.outcomes.get(task.index()).is_some_and(Option::is_some) { self.window } else { 0.0 }
    }

    /// Notes the outcome of a job; returns what the windows cost that it loses.
    fn note(&mut self, task: TaskId, is_met: bool) -> f64 {
        let Some(Some(outcomes)) = self.outcomes.get_mut(task.index()) else { return 0.0 };
        let lost = if is_met { 0 } else { outcomes.windows_at_stake() };
        outcomes.push(is_met);
        f64::from(lost) * self.window
    }
}

impl RewardAccumulator {
    /// No reward so far, for a set whose scale has this unit in nanoseconds.
    pub fn new(reward: Reward, unit: f64, set: &TaskSet) -> RewardAccumulator {
        let (job_worth, history) = (JobWorth::new(&reward, set), vec![(0.0, 0.0, 0.0); set.tasks().len()]);
        let energy = if let RewardShape::Energy { weight } = reward.shape { weight } else { 0.0 };
        let firm = Firm::new(&job_worth, set);
        let variance = if reward.standardized { unit * squared_worth_per_time(&job_worth, &firm, set) } else { 1.0 };
        let factor = if variance.is_normal() { variance.sqrt().recip() } else { 1.0 };
        let (total, possible, due_by) = (0.0, 0.0, Time::NEVER);
        let late = HashSet::new();
        RewardAccumulator { reward, unit, job_worth, total, possible, due_by, energy, history, factor, firm, late }
    }

    /// The same where the weight of a reward falls to 1/e in `fade` units of time, which counts if rewards are
    /// standardized. Without this call it is one unit.
    pub fn fading_in(mut self, fade: f64) -> RewardAccumulator {
        if self.reward.standardized && fade.is_normal() {
            self.factor /= fade.sqrt();
        }
        self
    }

    /// Returns an empty accumulator for the same set that scores a model: as [`RewardAccumulator::on_time_only`], less
    /// the cost of energy if the reward has one. Without that cost, the best score would be that of the weights that
    /// save least.
    pub fn score(&self, due_by: Time) -> RewardAccumulator {
        let mut score = self.on_time_only(due_by);
        if let RewardShape::Energy { weight } = self.reward.shape {
            score.energy = weight;
        }
        score
    }

    /// Returns an empty accumulator for the same set that rewards only jobs that meet their deadlines, and of them only
    /// those due by `due_by`. Doing early what is due later then gains nothing.
    pub fn on_time_only(&self, due_by: Time) -> RewardAccumulator {
        let reward = Reward { shape: RewardShape::NoPenalty, migration: 0.0, ..self.reward };
        let history = vec![(0.0, 0.0, 0.0); self.history.len()];
        RewardAccumulator {
            reward,
            unit: self.unit,
            job_worth: self.job_worth.clone(),
            total: 0.0,
            possible: 0.0,
            due_by,
            energy: 0.0,
            history,
            factor: 1.0,
            firm: Firm::default(),
            late: HashSet::new(),
        }
    }

    /// Returns the reward since the last call.
    pub fn take(&mut self) -> f64 {
        self.factor * std::mem::take(&mut self.total)
    }

    /// Returns the reward as a share of the worth of all jobs that have left; 1 if none has.
    pub fn share(&self) -> f64 {
        if self.possible > 0.0 { self.total / self.possible } else { 1.0 }
    }

    /// Charges for this many migrations.
    pub fn charge_migrations(&mut self, times: u64) {
        self.total -= self.reward.migration * times as f64;
    }

    /// Charges for the negative slack that jobs had for a length of time.
    pub fn charge_negative_slack(&mut self, jobs: impl Iterator<Item = i64>, length: Time) {
        if let RewardShape::Slack { weight } = self.reward.shape {
            let lacking: f64 = jobs.map(|slack| (-slack).max(0) as f64 / self.unit).sum();
            self.total -= weight * lacking * length.0 as f64 / self.unit;
        }
    }

    /// Whether negative slack costs.
    pub fn charges_slack(&self) -> bool {
        matches!(self.reward.shape, RewardShape::Slack { .. })
    }

    /// Returns what a job is worth, met or missed.
    fn worth(&self, job: &Job) -> f64 {
        let worth = self.job_worth.of_job(job.criticality, job.value);
        match self.reward.shape {
            RewardShape::Risk { weight } => worth * (1.0 + weight * self.variation(job.task)),
            _ => worth,
        }
    }

    /// Charges for a job that has missed its deadline. This is due at the deadline, also for a job that goes on: a cost
    /// at its end would be avoided by never ending it.
    fn miss(&mut self, job: &Job) {
        let worth = self.worth(job);
        self.possible += worth;
        let windows = self.firm.note(job.task, false);
        if self.reward.shape != RewardShape::NoPenalty {
            self.total -= worth + windows;
        }
    }

    /// Returns the coefficient of variation of a task's execution times so far.
    fn variation(&self, task: TaskId) -> f64 {
        let (count, mean, squares) = self.history[task];
        if count < 2.0 || mean <= 0.0 { 0.0 } else { (squares / (count - 1.0)).sqrt() / mean }
    }
}

/// Returns the sum of the squared worths of the jobs that a set releases per nanosecond in the mean, each with one
/// window that it may lose.
fn squared_worth_per_time(worth: &JobWorth, firm: &Firm, set: &TaskSet) -> f64 {
    let tasks = set.system.task_ids().zip(set.tasks()).zip(set.system.mean_utilizations());
    let each = tasks.map(|((id, task), utilization)| {
        let window = firm.window_of(id);
        let square = |criticality: u8, value: f64| (worth.of_job(criticality, value) + window).powi(2);
        let squared = match &task.arrival {
            Arrival::Listed(jobs) => {
                jobs.iter().map(|job| square(job.criticality, job.value)).sum::<f64>() / jobs.len().max(1) as f64
            }
            _ => square(task.criticality, task.value),
        };
        squared * utilization / task.mean_execution().max(1.0)
    });
    each.sum()
}

impl Observer for RewardAccumulator {
    fn ran(&mut self, _core: CoreId, _job: &Job, start: Time, end: Time, speed: Speed) {
        if self.energy > 0.0 {
            let length = (end - start).0 as f64 / self.unit;
            self.total -= self.energy * length * (f64::from(speed.0) / 1000.0).powi(3);
        }
    }

    fn passed_deadline(&mut self, job: &Job) {
        if job.deadline <= self.due_by {
            self.late.insert((job.task, job.number));
            self.miss(job);
        }
    }

    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        let relative = job.deadline.saturating_sub(job.release).0.max(1) as f64;
        let worth = self.worth(job);
        if end == End::Completed {
            let (count, mean, squares) = &mut self.history[job.task];
            *count += 1.0;
            let difference = job.executed.0 as f64 - *mean;
            *mean += difference / *count;
            *squares += difference * (job.executed.0 as f64 - *mean);
        }
        if job.deadline > self.due_by {
            return;
        }
        if end == End::Completed && now <= job.deadline {
            self.possible += worth;
            self.firm.note(job.task, true);
            let early = (job.deadline - now).0 as f64 / relative;
            self.total += match self.reward.shape {
                RewardShape::Misses => 0.0,
                RewardShape::Early { weight } => worth + weight * early,
                _ => worth,
            };
            return;
        }
        if !self.late.remove(&(job.task, job.number)) {
            self.miss(job);
        }
        if let RewardShape::Lateness { weight } = self.reward.shape {
            let late = match end {
                End::Completed => (now - job.deadline).0 as f64 / relative,
                _ => job.remaining().0 as f64 / job.wcet.0.max(1) as f64,
            };
            self.total -= weight * late;
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

    /// Share of the possible reward in a run that completes only the jobs of one task.
    fn share(reward: Reward, met: u32) -> f64 {
        let set = set();
        let mut rewards = RewardAccumulator::new(reward, 1.0, &set).on_time_only(Time::NEVER);
        for (index, task) in (0..).zip(set.tasks()) {
            let job = Job::first(TaskId(index), task);
            let end = if index == met { End::Completed } else { End::Aborted };
            rewards.left(&job, None, end, job.deadline);
        }
        rewards.share()
    }

    /// Ends a job of a task that has executed for `ms`.
    fn end_job(rewards: &mut RewardAccumulator, task: TaskId, ms: u64, end: End) -> f64 {
        let mut job = Job::first(task, &set().tasks()[task]);
        job.executed = Time::from_ms(ms);
        rewards.left(&job, None, end, job.deadline);
        rewards.take()
    }

    #[test]
    fn a_task_whose_execution_times_vary_counts_more_for_the_risk_aware_reward() {
        let shape = RewardShape::Risk { weight: 2.0 };
        let reward = Reward { shape, by_value: Some(false), ..Reward::default() };
        let mut rewards = RewardAccumulator::new(reward, 1.0, &set());
        // The times of the first task vary, those of the second do not.
        for ms in [2, 4, 6] {
            end_job(&mut rewards, TaskId(0), ms, End::Completed);
            end_job(&mut rewards, TaskId(1), 4, End::Completed);
        }
        // A deviation of 2 ms around 4 ms.
        let coefficient = 0.5;
        assert_eq!(end_job(&mut rewards, TaskId(0), 4, End::Completed), 1.0 + 2.0 * coefficient);
        assert_eq!(end_job(&mut rewards, TaskId(1), 4, End::Completed), 1.0);
        let missed = end_job(&mut rewards, TaskId(0), 3, End::Aborted);
        assert!(missed < -1.5, "a miss costs more, too: {missed}");
        assert_eq!(end_job(&mut rewards, TaskId(1), 3, End::Aborted), -1.0);
    }

    #[test]
    fn standardized_rewards_fall_with_the_root_of_the_jobs_that_come() {
        let reward = Reward { by_value: Some(false), standardized: true, ..Reward::default() };
        // Two tasks with a period of 10 ms release 1.6 jobs in 8 ms.
        let mut rewards = RewardAccumulator::new(reward, 8e6, &set());
        let missed = end_job(&mut rewards, TaskId(0), 3, End::Aborted);
        assert!((missed + 1.6f64.sqrt().recip()).abs() < 1e-12, "{missed}");
        let mut longer = RewardAccumulator::new(reward, 8e6, &set()).fading_in(4.0);
        assert!((2.0 * end_job(&mut longer, TaskId(0), 3, End::Aborted) - missed).abs() < 1e-12);
        assert_eq!(share(reward, 0), 0.5, "a share is one of whole jobs");
    }

    #[test]
    fn a_miss_costs_the_windows_that_it_loses_where_they_lead_the_goal() {
        let mut set = set();
        set.system.tasks_mut()[0].mk = Some((2, 3));
        let misses = Reward { shape: RewardShape::Misses, ..Reward::default() };
        let mut rewards = RewardAccumulator::new(misses, 1.0, &set);
        let job = -end_job(&mut rewards, TaskId(0), 3, End::Aborted);
        // The second miss in a row loses the window with the first one in front and the one between.
        let second = -end_job(&mut rewards, TaskId(0), 3, End::Aborted);
        let window = (second - job) / 2.0;
        let one_of_each: f64 = set.tasks().iter().map(|task| set.goal().worths(set.tasks()).of(0, task.value)).sum();
        assert!((window - one_of_each).abs() < 1e-9, "{window}");
        assert_eq!(end_job(&mut rewards, TaskId(0), 3, End::Completed), 0.0);
        let stated = Reward { by_value: Some(false), ..misses };
        let mut rewards = RewardAccumulator::new(stated, 1.0, &set);
        assert_eq!([(); 2].map(|()| end_job(&mut rewards, TaskId(0), 3, End::Aborted)), [-1.0; 2]);
    }

    #[test]
    fn a_job_that_goes_on_costs_its_miss_at_the_deadline_and_once() {
        let set = set();
        let reward = Reward { shape: RewardShape::Misses, by_value: Some(false), ..Reward::default() };
        let mut rewards = RewardAccumulator::new(reward, 1.0, &set);
        let job = Job::first(TaskId(0), &set.tasks()[0]);
        rewards.passed_deadline(&job);
        assert_eq!((rewards.take(), rewards.possible), (-1.0, 1.0));
        rewards.left(&job, None, End::Completed, job.deadline + Time(5));
        assert_eq!((rewards.take(), rewards.possible), (0.0, 1.0));
        let late = Reward { shape: RewardShape::Lateness { weight: 2.0 }, ..reward };
        let mut rewards = RewardAccumulator::new(late, 1.0, &set);
        rewards.passed_deadline(&job);
        rewards.left(&job, None, End::Completed, job.deadline + Time::from_ms(5));
        assert_eq!(rewards.take(), -2.0, "late by half of its relative deadline");
    }

    #[test]
    fn half_the_speed_costs_an_eighth_of_the_power_also_in_the_score() {
        let reward = Reward { shape: RewardShape::Energy { weight: 0.5 }, ..Reward::default() };
        let whole = RewardAccumulator::new(reward, 1e6, &set());
        for mut rewards in [whole.clone(), whole.score(Time::NEVER)] {
            let job = Job::first(TaskId(0), &set().tasks()[0]);
            rewards.ran(CoreId(0), &job, Time::ZERO, Time::from_ms(8), Speed::FULL);
            assert_eq!(rewards.take(), -4.0);
            rewards.ran(CoreId(0), &job, Time::ZERO, Time::from_ms(8), Speed(500));
            assert_eq!(rewards.take(), -0.5);
        }
        let mut free = whole.on_time_only(Time::NEVER);
        free.ran(CoreId(0), &Job::first(TaskId(0), &set().tasks()[0]), Time::ZERO, Time::from_ms(8), Speed::FULL);
        assert_eq!(free.take(), 0.0);
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
