//! The simulator as an environment to act in: one run of one set, decision point by decision point.

use std::sync::Arc;

use temponet::stages::Scale;
use temponet_sim::{Count, Engine, SimError};
use temponet_task::{Assignment, Scheduler, SystemView, TaskSet, Time};

use crate::reward::{Reward, RewardAccumulator};

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No job is left and none will come: a terminal state, which has no value.
    Terminated,
    /// The horizon was reached. The state is not terminal, so its estimated value counts.
    Truncated,
}

/// Result of one decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Reward since the decision.
    pub reward: f64,
    /// Time until the next decision point, in units of the set's scale.
    pub elapsed: f64,
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
}

/// Settings of one run.
#[derive(Clone, Debug)]
pub struct EnvironmentSettings {
    /// Scale on which the network sees the set; its unit is the unit of time of the reward.
    pub scale: Scale,
    /// Seed of the set's jobs.
    pub seed: u64,
    /// End of the run.
    pub horizon: Time,
    /// Reward.
    pub reward: Reward,
    /// Period of additional decision points, the paper's tick; `None` leaves only those of the simulator.
    pub tick: Option<Time>,
}

/// One run of one set. Decision points are those of the simulator, and with a tick also each multiple of it.
pub struct Environment {
    engine: Engine,
    rewards: RewardAccumulator,
    scale: Scale,
    tick: Option<Time>,
    ending: Option<Ending>,
    migrations: u64,
}

impl Environment {
    /// Starts a run and goes to its first decision point.
    pub fn new(set: Arc<TaskSet>, settings: EnvironmentSettings) -> Environment {
        let EnvironmentSettings { scale, seed, horizon, reward, tick } = settings;
        let rewards = RewardAccumulator::new(reward, scale.unit, &set);
        let engine = Engine::new(set, seed, horizon).without_histograms();
        let mut environment = Environment { engine, rewards, scale, tick, ending: None, migrations: 0 };
        environment.advance();
        environment
    }

    /// The same run for a learner to whom the weight of a reward falls to 1/e in `fade` units of the scale.
    pub(crate) fn fading_in(self, fade: f64) -> Environment {
        Environment { rewards: self.rewards.fading_in(fade), ..self }
    }

    /// Scale on which the network sees the set.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    fn advance(&mut self) {
        if !self.engine.advance(&mut self.rewards) {
            let is_over = self.engine.view().active.is_empty() && self.engine.is_workload_over();
            self.ending = Some(if is_over { Ending::Terminated } else { Ending::Truncated });
        }
    }

    /// Returns what a scheduler sees now.
    pub fn view(&self) -> SystemView<'_> {
        self.engine.view()
    }

    /// How the episode ended, if it did.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Returns the number of jobs that count and have left so far, and of those that met their deadline.
    pub fn jobs_so_far(&self) -> Count {
        self.engine.jobs_so_far()
    }

    /// Simulates what would happen if `scheduler`, which must have been started, decided from now on, for `units` of
    /// the set's scale. Returns the reward of the jobs that are due by then and meet their deadlines; the environment
    /// itself does not change.
    pub fn reward_of(&self, scheduler: &mut dyn Scheduler, units: f64) -> Result<f64, SimError> {
        let mut engine = self.engine.clone();
        let end = engine.now() + Time((units * self.scale.unit) as u64);
        engine.set_horizon(end);
        let mut rewards = self.rewards.on_time_only(end);
        let mut assignment = Assignment::default();
        loop {
            assignment.reset(engine.view().cores());
            scheduler.decide(&engine.view(), &mut assignment);
            engine.apply(&assignment, &mut rewards)?;
            if !engine.advance(&mut rewards) {
                return Ok(rewards.take());
            }
        }
    }

    /// Carries out a decision and goes to the next decision point.
    #[inline]
    pub fn act(&mut self, assignment: &mut Assignment) -> Result<Step, SimError> {
        let before = self.engine.view().now;
        if let Some(tick) = self.tick {
            assignment.wake_at(Time((before.0 / tick.0 + 1) * tick.0));
        }
        self.engine.apply(assignment, &mut self.rewards)?;
        let slacks: Option<Vec<i64>> = self.rewards.charges_slack().then(|| {
            let view = self.engine.view();
            view.ready().map(|(_, job)| job.slack(view.now)).collect()
        });
        self.advance();
        let length = self.engine.view().now - before;
        if let Some(slacks) = slacks {
            self.rewards.charge_negative_slack(slacks.into_iter(), length);
        }
        let migrations = self.engine.migrations();
        self.rewards.charge_migrations(migrations - std::mem::replace(&mut self.migrations, migrations));
        Ok(Step { reward: self.rewards.take(), elapsed: length.0 as f64 / self.scale.unit, ending: self.ending })
    }
}
