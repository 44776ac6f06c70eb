//! One environment: an episode, what is seen of it, and the picks of the decision that is being made.

use std::sync::{Arc, Mutex, PoisonError};

use temponet::stages::{Scale, Tokenizer};
use temponet_sched::shield::Shield;
use temponet_task::{Assignment, CoreId, JobId, NotApplicable, Scheduler, System, SystemView, Time};
use temponet_train::{Ending, Environment, EnvironmentSettings, training_seed};

use super::{FEATURES, Settings, SharedSet};

/// When a finished environment begins its next episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autoreset {
    /// In the next step, whose action is ignored.
    NextStep,
    /// In the step that ends the episode.
    SameStep,
    /// When it is asked to.
    Disabled,
}

/// One environment's part of the caller's buffers.
pub struct Buffers<'a> {
    pub observation: &'a mut [f32],
    pub mask: &'a mut [i8],
    pub reward: &'a mut f64,
    pub terminated: &'a mut bool,
    pub truncated: &'a mut bool,
    /// Jobs that have left, and those of them that met their deadlines.
    pub figures: &'a mut [i64],
    /// Last observation and mask of an episode that ends in a step that begins the next one.
    pub last: Option<(&'a mut [f32], &'a mut [i8])>,
}

/// A scheduler that proposes what the action says, for the shield around it.
struct Proposal(Arc<Mutex<Assignment>>);

impl Scheduler for Proposal {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, _view: &SystemView<'_>, assignment: &mut Assignment) {
        assignment.clone_from(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The shield around the actions of an episode.
struct Guard {
    shield: Shield<Proposal>,
    proposal: Arc<Mutex<Assignment>>,
}

/// An episode in progress.
struct Episode {
    environment: Environment,
    guard: Option<Guard>,
    /// Number of cores.
    cores: usize,
    /// Nanoseconds of a median wcet.
    unit: f64,
    /// Mean value of the tasks.
    value: f64,
}

/// One environment.
pub struct Member {
    seed: u64,
    episodes: u64,
    episode: Option<Episode>,
    /// Jobs in the slots, by earliest deadline.
    shown: Vec<JobId>,
    /// Jobs picked so far at this choice.
    picks: Vec<JobId>,
    is_over: bool,
}

/// Greatest magnitude of a number in an observation.
const MOST: f32 = 32.0;

/// Greatest number of episodes in a row without a choice.
const MAX_EMPTY: usize = 50;

impl Member {
    /// An environment that has not been reset.
    pub fn new(seed: u64) -> Member {
        Member { seed, episodes: 0, episode: None, shown: Vec::new(), picks: Vec::new(), is_over: true }
    }

    /// Restarts the sequence of episodes.
    pub fn reseed(&mut self, seed: u64) {
        (self.seed, self.episodes) = (seed, 0);
    }

    /// Time of the current choice, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.episode.as_ref().map_or(0, |episode| episode.environment.view().now.0)
    }

    /// Begins the next episode that has a choice in it. `scratch` holds decisions; one for each thread stays in its
    /// cache.
    pub fn restart(&mut self, settings: &Settings, scratch: &mut Assignment) -> Result<(), String> {
        for _ in 0..MAX_EMPTY {
            let seed = training_seed(self.seed, self.episodes);
            self.episodes += 1;
            let set = settings.source.set(training_seed(seed, 0)).map_err(|error| error.to_string())?;
            self.episode = Some(Episode::begin(settings, set, training_seed(seed, 1))?);
            self.picks.clear();
            self.skip_forced(scratch)?;
            self.is_over = self.ending().is_some();
            if !self.is_over {
                self.look(settings);
                return Ok(());
            }
        }
        Err(format!("in {MAX_EMPTY} episodes there were never more ready jobs than cores: there is nothing to choose"))
    }

    fn ending(&self) -> Option<Ending> {
        self.episode.as_ref().and_then(|episode| episode.environment.ending())
    }

    /// Runs all ready jobs until there is a choice or the episode ends. Returns the reward meanwhile.
    fn skip_forced(&mut self, scratch: &mut Assignment) -> Result<f64, String> {
        let Some(episode) = &mut self.episode else { return Ok(0.0) };
        let mut reward = 0.0;
        while episode.environment.ending().is_none() {
            let view = episode.environment.view();
            if view.active.len() > episode.cores {
                break;
            }
            scratch.reset(episode.cores);
            scratch.place(&view, view.active);
            reward += episode.act(scratch)?;
        }
        Ok(reward)
    }

    /// Puts the ready jobs into the slots.
    fn look(&mut self, settings: &Settings) {
        let Some(episode) = &self.episode else { return };
        let view = episode.environment.view();
        self.shown.clear();
        self.shown.extend_from_slice(view.active);
        let key = |id: &JobId| {
            let job = view.job(*id);
            (job.deadline, job.tie())
        };
        self.shown.sort_unstable_by_key(key);
        self.shown.truncate(settings.slots);
    }

    /// Writes what is seen now.
    pub fn show(&self, settings: &Settings, observation: &mut [f32], mask: &mut [i8]) {
        observation.fill(0.0);
        mask.fill(0);
        let Some(episode) = &self.episode else { return };
        let view = episode.environment.view();
        let choices = settings.choices();
        let in_units = |time: f64| ((time / episode.unit) as f32).clamp(-MOST, MOST);
        for (slot, id) in self.shown.iter().enumerate() {
            let job = view.job(*id);
            let row = &mut observation[slot * FEATURES..][..FEATURES];
            row.copy_from_slice(&[
                1.0,
                in_units(job.deadline.signed_sub(view.now) as f64),
                in_units(job.slack(view.now) as f64),
                in_units(job.remaining().0 as f64),
                in_units(job.least_remaining().0 as f64),
                f32::from(job.criticality).min(MOST),
                ((job.value / episode.value) as f32).clamp(-MOST, MOST),
                f32::from(u8::from(job.running)),
            ]);
            if !self.is_over && !self.picks.contains(id) {
                mask.iter_mut().skip(slot).step_by(choices).for_each(|legal| *legal = 1);
            }
        }
        if choices > settings.slots {
            mask.iter_mut().skip(settings.slots).step_by(choices).for_each(|legal| *legal = 1);
        }
        // A distribution over actions needs one that is possible, even where it is ignored.
        if mask.iter().all(|legal| *legal == 0) {
            mask[0] = 1;
        }
    }

    /// Takes an action and writes what comes of it.
    pub fn step(
        &mut self,
        settings: &Settings,
        action: &[i64],
        autoreset: Autoreset,
        buffers: Buffers<'_>,
        scratch: &mut Assignment,
    ) -> Result<(), String> {
        let Buffers { observation, mask, reward, terminated, truncated, figures, last } = buffers;
        if self.is_over {
            *reward = 0.0;
            if autoreset == Autoreset::Disabled {
                return Ok(());
            }
            self.restart(settings, scratch)?;
            (*terminated, *truncated) = (false, false);
            figures.fill(0);
            self.show(settings, observation, mask);
            return Ok(());
        }
        *reward = self.act(settings, action, scratch)?;
        let ending = self.ending();
        self.is_over = ending.is_some();
        *terminated = ending == Some(Ending::Terminated);
        *truncated = ending == Some(Ending::Truncated);
        if let Some(episode) = &self.episode {
            let jobs = episode.environment.jobs_so_far();
            figures.copy_from_slice(&[jobs.released as i64, jobs.met as i64]);
        }
        if self.is_over && autoreset == Autoreset::SameStep {
            if let Some((observation, mask)) = last {
                self.show(settings, observation, mask);
            }
            self.restart(settings, scratch)?;
        }
        self.show(settings, observation, mask);
        Ok(())
    }

    /// Picks jobs; with the last pick of a choice, time goes on to the next choice. Returns the reward.
    fn act(&mut self, settings: &Settings, action: &[i64], scratch: &mut Assignment) -> Result<f64, String> {
        let Some(episode) = &mut self.episode else { return Ok(0.0) };
        let job_of = |action: i64| usize::try_from(action).ok().and_then(|slot| self.shown.get(slot)).copied();
        scratch.reset(episode.cores);
        let view = episode.environment.view();
        if settings.per_core {
            for (core, action) in action.iter().enumerate() {
                if let Some(id) = job_of(*action).filter(|id| !self.picks.contains(id)) {
                    self.picks.push(id);
                    scratch.run(CoreId::new(core), id);
                }
            }
        } else {
            let picked = action.first().and_then(|action| job_of(*action)).filter(|id| !self.picks.contains(id));
            self.picks.extend(picked);
            // A pick that is none leaves this core and the others idle.
            let most = episode.cores.min(self.shown.len());
            if picked.is_some() && self.picks.len() < most {
                return Ok(0.0);
            }
            scratch.place(&view, &self.picks);
        }
        self.picks.clear();
        let reward = episode.act(scratch)?;
        let reward = reward + self.skip_forced(scratch)?;
        self.look(settings);
        Ok(reward)
    }
}

impl Episode {
    fn begin(settings: &Settings, set: SharedSet, seed: u64) -> Result<Episode, String> {
        let system = set.system.clone();
        let scale = Scale::of(&Tokenizer::paper(), &system);
        let (unit, cores) = (scale.unit, set.cores());
        let in_time = |units: f64| Time((unit * units).min(Time::MAX_INPUT.0 as f64) as u64).max(Time(1));
        let (horizon, tick) = (in_time(settings.length), settings.tick.map(in_time));
        let guard = match settings.shield {
            false => None,
            true => {
                let proposal = Arc::new(Mutex::new(Assignment::default()));
                let mut shield = Shield::new(Proposal(proposal.clone()));
                shield.start(&system).map_err(|error| error.to_string())?;
                Some(Guard { shield, proposal })
            }
        };
        let total: f64 = set.tasks().iter().map(|task| task.value).sum();
        let value = (total / set.tasks().len().max(1) as f64).max(f64::MIN_POSITIVE);
        let reward = settings.reward;
        let environment = Environment::new(set, EnvironmentSettings { scale, seed, horizon, reward, tick });
        Ok(Episode { environment, guard, cores, unit, value })
    }

    /// Carries out a decision, as far as the shield lets it pass. Returns the reward.
    fn act(&mut self, assignment: &mut Assignment) -> Result<f64, String> {
        if let Some(Guard { shield, proposal }) = &mut self.guard {
            proposal.lock().unwrap_or_else(PoisonError::into_inner).clone_from(assignment);
            assignment.reset(self.cores);
            shield.decide(&self.environment.view(), assignment);
        }
        Ok(self.environment.act(assignment).map_err(|error| error.to_string())?.reward)
    }
}
