//! The simulator as an environment to act in.

use std::sync::Arc;

use temponet::Scale;
use temponet_sim::{Engine, SimError};
use temponet_task::{Assignment, JobId, Scheduler, SystemView, TaskSet, Time};

use crate::reward::{Reward, RewardAccumulator};

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There is nothing left to schedule, ever: no state follows.
    Terminated,
    /// The horizon came; the state that would have followed is worth what it is worth.
    Truncated,
}

/// What an action led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What was earned.
    pub reward: f64,
    /// How long it took until the next decision point, in units of the set's scale.
    pub elapsed: f64,
    /// Whether it was the last one.
    pub ending: Option<Ending>,
}

/// Settings of one run.
#[derive(Clone, Debug)]
pub struct EnvironmentSettings {
    /// Scale on which the network sees the set; its unit is the unit of time of the reward.
    pub scale: Scale,
    /// Seed of the set's jobs.
    pub seed: u64,
    /// Length of the run.
    pub horizon: Time,
    /// Reward.
    pub reward: Reward,
    /// Period of additional decision points; `None` leaves only the simulator's.
    pub tick: Option<Time>,
}

/// One run of one set. Decision points are the simulator's, and with a tick also each whole multiple of it.
pub struct Environment {
    engine: Engine<Arc<TaskSet>>,
    rewards: RewardAccumulator,
    scale: Scale,
    tick: Option<Time>,
    ending: Option<Ending>,
    migrations: u64,
}

impl Environment {
    /// A run of the jobs that `seed` stands for, up to `horizon`, at its first decision point.
    pub fn new(set: Arc<TaskSet>, settings: EnvironmentSettings) -> Environment {
        let EnvironmentSettings { scale, seed, horizon, reward, tick } = settings;
        let rewards = RewardAccumulator::new(reward, scale.unit, &set);
        let engine = Engine::new(set, seed, horizon);
        let mut environment = Environment { engine, rewards, scale, tick, ending: None, migrations: 0 };
        environment.advance();
        environment
    }

    /// The scale on which its set is seen.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    fn advance(&mut self) {
        if !self.engine.advance(&mut self.rewards) {
            let is_over = self.engine.view().active.is_empty() && self.engine.is_workload_over();
            self.ending = Some(if is_over { Ending::Terminated } else { Ending::Truncated });
        }
    }

    /// What a scheduler sees now.
    pub fn view(&self) -> SystemView<'_> {
        self.engine.view()
    }

    /// Whether and how it ended.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// What if these jobs ran now, and then those that `base` says, for some units of time? With an exchange, the job that came in for another keeps a core
    /// until it leaves: whoever prefers it now will go on to do so. What is earned by jobs due until then; nothing here changes.
    pub fn rollout_reward(
        &self,
        jobs: &[JobId],
        exchange: Option<JobExchange>,
        base: &mut dyn Scheduler,
        units: f64,
    ) -> Result<f64, SimError> {
        let mut engine = self.engine.clone();
        let tie = exchange.map(|exchange| engine.view().job(exchange.inward).tie());
        let end = engine.now() + Time((units * self.scale.unit) as u64);
        engine.set_horizon(end);
        let mut rewards = self.rewards.on_time_only(end);
        let mut assignment = Assignment::default();
        assignment.reset(engine.view().cores());
        assignment.place(&engine.view(), jobs);
        engine.apply(&assignment, &mut rewards)?;
        while engine.advance(&mut rewards) {
            assignment.reset(engine.view().cores());
            let view = engine.view();
            base.decide(&view, &mut assignment);
            if let Some(exchange) = exchange
                && view.active.contains(&exchange.inward)
                && Some(view.job(exchange.inward).tie()) == tie
            {
                exchange.keep(&view, &mut assignment);
            }
            engine.apply(&assignment, &mut rewards)?;
        }
        Ok(rewards.take())
    }

    /// Takes a decision and goes on to the next decision point.
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

/// A job that runs in the place of another.
#[derive(Clone, Copy, Debug)]
pub struct JobExchange {
    /// The one that runs.
    pub inward: JobId,
    /// The one that does not.
    pub outward: JobId,
}

impl JobExchange {
    /// Sees to it that the one that came in runs: instead of the other one, or of the one that is due last.
    fn keep(self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let mut jobs: Vec<JobId> = assignment.cores().iter().flatten().copied().collect();
        if jobs.contains(&self.inward) {
            return;
        }
        if jobs.len() == view.cores() {
            let due = |id: &JobId| (*id == self.outward, view.job(*id).deadline, view.job(*id).tie());
            jobs.sort_unstable_by_key(due);
            jobs.pop();
        }
        jobs.push(self.inward);
        assignment.reset(view.cores());
        assignment.place(view, &jobs);
    }
}
