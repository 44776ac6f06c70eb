//! Many simulators as one vector environment. Each step runs on all threads without the interpreter lock and writes
//! into buffers that belong to the caller.
//!
//! An environment stops only at *choices*, decision points with more ready jobs than cores; elsewhere every ready job
//! runs. At a choice the ready jobs are shown by earliest deadline, a row of [`FEATURES`] numbers each, and one action
//! picks a job (`per_job`; with several cores there is one step for each core, and time stands still in between) or one
//! job for each core (`per_core`). An action that the mask forbids leaves the core idle.

mod member;

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyReadwriteArray3};
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;
use temponet_task::Assignment;
use temponet_train::{Recipe, Reward, TaskSetSource, WorkloadRanges};

use self::member::{Autoreset, Buffers, Member};
use crate::errors;
use crate::task_set::TaskSet;

/// Numbers that describe a job: whether there is one; in median wcets the time to its deadline, its slack, its
/// remaining wcet and its remaining bcet; its criticality; its value over the mean of the tasks; whether it is running.
pub const FEATURES: usize = 8;

/// What an episode is and what an action means.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    /// Number of jobs that are shown.
    slots: usize,
    /// Length of an episode in median wcets.
    length: f64,
    /// Period of additional decision points in median wcets.
    tick: Option<f64>,
    /// Whether an action can leave a core idle although jobs wait.
    may_idle: bool,
    /// Whether the shield overrules actions that could cost a guaranteed deadline.
    shield: bool,
    /// Whether an action is one job for each core.
    per_core: bool,
    reward: Reward,
    /// Random sets, if no set is given.
    workload: Option<WorkloadRanges>,
}

/// Settings of all environments.
struct Settings {
    source: TaskSetSource,
    slots: usize,
    length: f64,
    tick: Option<f64>,
    may_idle: bool,
    shield: bool,
    per_core: bool,
    reward: Reward,
    cores: usize,
}

impl Settings {
    /// Number of actions for one core: a slot, or idling where that is possible.
    fn choices(&self) -> usize {
        self.slots + usize::from(self.may_idle || self.per_core)
    }

    /// Numbers in an action.
    fn action_width(&self) -> usize {
        if self.per_core { self.cores } else { 1 }
    }
}

/// Simulators that step together.
#[pyclass(module = "temponet._temponet")]
pub struct Environments {
    settings: Settings,
    /// Never contended: Python's own borrow checks let one call in at a time.
    members: Mutex<Vec<Member>>,
}

/// Fewest environments that are worth another thread.
const ON_ONE_THREAD: usize = 32;

#[pymethods]
impl Environments {
    /// Makes environments that have not been reset.
    #[new]
    #[pyo3(signature = (settings, set, number))]
    fn new(settings: &str, set: Option<&TaskSet>, number: usize) -> PyResult<Environments> {
        let given: Given = serde_json::from_str(settings).map_err(errors::input)?;
        let wrong = |what: String| Err(errors::input(what));
        if !(1..=4096).contains(&given.slots) {
            return wrong(format!("slots = {} is not from 1 to 4096", given.slots));
        }
        for (name, value) in [("length", Some(given.length)), ("tick", given.tick)] {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && *value <= 1e9)) {
                return wrong(format!("{name} = {value} is not positive, or more than 1e9"));
            }
        }
        if !(1..=1 << 20).contains(&number) {
            return wrong(format!("num_envs = {number} is not from 1 to {}", 1 << 20));
        }
        let mut recipe = Recipe::default();
        recipe.episode.reward = given.reward;
        let cores = match (&set, &given.workload) {
            (Some(set), _) => set.set.cores(),
            (None, Some(ranges)) => {
                recipe.workload = ranges.clone();
                let most = ranges.cores.iter().copied().max().unwrap_or(1);
                if ranges.cores.iter().any(|cores| *cores != most) && given.per_core {
                    return wrong("actions = \"per_core\": the workload draws several numbers of cores".into());
                }
                most
            }
            (None, None) => return wrong("there is neither a task set nor a workload".into()),
        };
        // The recipe's own checks cover reward and workload.
        if let Some(problem) = recipe.problem() {
            return wrong(problem);
        }
        let source = match (set, given.workload) {
            (Some(set), _) => TaskSetSource::Fixed(set.set.clone()),
            (None, workload) => TaskSetSource::Drawn(Box::new(workload.unwrap_or_default())),
        };
        let Given { slots, length, tick, may_idle, shield, per_core, reward, .. } = given;
        let settings = Settings { source, slots, length, tick, may_idle, shield, per_core, reward, cores };
        let members = (0..number as u64).map(Member::new).collect();
        Ok(Environments { settings, members: Mutex::new(members) })
    }

    #[getter]
    fn features(&self) -> usize {
        FEATURES
    }

    #[getter]
    fn choices(&self) -> usize {
        self.settings.choices()
    }

    #[getter]
    fn cores(&self) -> usize {
        self.settings.cores
    }

    /// Begins new episodes of the environments in `chosen`, or of all. A seed, if it is not negative, restarts the
    /// sequence of episodes of its environment.
    #[pyo3(signature = (seeds, chosen, observations, masks, figures))]
    fn reset(
        &mut self,
        py: Python<'_>,
        seeds: PyReadonlyArray1<'_, i64>,
        chosen: Option<PyReadonlyArray1<'_, bool>>,
        mut observations: PyReadwriteArray3<'_, f32>,
        mut masks: PyReadwriteArray2<'_, i8>,
        mut figures: PyReadwriteArray2<'_, i64>,
    ) -> PyResult<()> {
        let Environments { settings, members } = self;
        let members = members.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (width, choices) = (settings.slots * FEATURES, settings.choices() * settings.action_width());
        let seeds = seeds.as_slice()?;
        let chosen = chosen.as_ref().map(|chosen| chosen.as_slice()).transpose()?;
        let (observations, masks, figures) =
            (observations.as_slice_mut()?, masks.as_slice_mut()?, figures.as_slice_mut()?);
        check(members.len(), &[seeds.len(), observations.len() / width, masks.len() / choices, figures.len() / 2])?;
        check(members.len(), &[chosen.map_or(members.len(), |chosen| chosen.len())])?;
        let pool = crate::calls::pool()?;
        py.detach(|| {
            pool.install(|| {
                let rows = members.par_iter_mut().zip(observations.par_chunks_exact_mut(width));
                let rows =
                    rows.zip(masks.par_chunks_exact_mut(choices)).zip(figures.par_chunks_exact_mut(2)).enumerate();
                let one = |scratch: &mut Assignment, (place, row): (usize, ResetRow<'_>)| {
                    let (((member, observation), mask), figures) = row;
                    if chosen.is_some_and(|chosen| !chosen[place]) {
                        return Ok(());
                    }
                    if let Ok(seed) = u64::try_from(seeds[place]) {
                        member.reseed(seed);
                    }
                    member.restart(settings, scratch)?;
                    member.show(settings, observation, mask);
                    figures.fill(0);
                    Ok(())
                };
                rows.with_min_len(ON_ONE_THREAD).try_for_each_init(Assignment::default, one)
            })
        })
        .map_err(|why: String| errors::input(why))
    }

    /// Takes one step of every environment: action, then observation, mask, reward, endings, and the jobs that have
    /// left and met their deadlines. `autoreset` is 0 for the next step, 1 for the same step and 2 for none; `finals`
    /// and `final_masks` take the last observations where the same step begins a new episode.
    #[pyo3(signature = (actions, autoreset, observations, masks, rewards, terminated, truncated, figures, finals, final_masks))]
    #[expect(clippy::too_many_arguments, reason = "each is a buffer of the caller")]
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArray2<'_, i64>,
        autoreset: u8,
        mut observations: PyReadwriteArray3<'_, f32>,
        mut masks: PyReadwriteArray2<'_, i8>,
        mut rewards: PyReadwriteArray1<'_, f64>,
        mut terminated: PyReadwriteArray1<'_, bool>,
        mut truncated: PyReadwriteArray1<'_, bool>,
        mut figures: PyReadwriteArray2<'_, i64>,
        mut finals: PyReadwriteArray3<'_, f32>,
        mut final_masks: PyReadwriteArray2<'_, i8>,
    ) -> PyResult<()> {
        let autoreset = [Autoreset::NextStep, Autoreset::SameStep, Autoreset::Disabled]
            .get(usize::from(autoreset))
            .copied()
            .ok_or_else(|| errors::input(format!("autoreset = {autoreset}")))?;
        let Environments { settings, members } = self;
        let members = members.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (width, choices) = (settings.slots * FEATURES, settings.choices() * settings.action_width());
        let picks = settings.action_width();
        let actions = actions.as_slice()?;
        let (observations, masks) = (observations.as_slice_mut()?, masks.as_slice_mut()?);
        let (rewards, figures) = (rewards.as_slice_mut()?, figures.as_slice_mut()?);
        let (terminated, truncated) = (terminated.as_slice_mut()?, truncated.as_slice_mut()?);
        let (finals, final_masks) = (finals.as_slice_mut()?, final_masks.as_slice_mut()?);
        let number = members.len();
        let lengths = [rewards.len(), terminated.len(), truncated.len(), figures.len() / 2, actions.len() / picks];
        check(number, &lengths)?;
        check(number, &[observations.len() / width, masks.len() / choices])?;
        // Without a reset in the same step there are no last observations to keep, and the buffers have one row.
        let keeps = autoreset == Autoreset::SameStep;
        check(if keeps { number } else { 1 }, &[finals.len() / width, final_masks.len() / choices])?;
        let pool = crate::calls::pool()?;
        py.detach(|| {
            pool.install(|| {
                let rows = members.par_iter_mut().zip(actions.par_chunks_exact(picks));
                let rows = rows.zip(observations.par_chunks_exact_mut(width)).zip(masks.par_chunks_exact_mut(choices));
                let rows =
                    rows.zip(rewards.par_iter_mut()).zip(terminated.par_iter_mut()).zip(truncated.par_iter_mut());
                let rows = rows.zip(figures.par_chunks_exact_mut(2));
                let one = |scratch: &mut Assignment, row: Row<'_>, last: Option<(&mut [f32], &mut [i8])>| {
                    let (((((((member, action), observation), mask), reward), terminated), truncated), figures) = row;
                    let buffers = Buffers { observation, mask, reward, terminated, truncated, figures, last };
                    member.step(settings, action, autoreset, buffers, scratch)
                };
                if keeps {
                    let last = finals.par_chunks_exact_mut(width).zip(final_masks.par_chunks_exact_mut(choices));
                    rows.zip(last)
                        .with_min_len(ON_ONE_THREAD)
                        .try_for_each_init(Assignment::default, |scratch, (row, last)| one(scratch, row, Some(last)))
                } else {
                    rows.with_min_len(ON_ONE_THREAD)
                        .try_for_each_init(Assignment::default, |scratch, row| one(scratch, row, None))
                }
            })
        })
        .map_err(|why: String| errors::input(why))
    }

    /// Time of the current choice of an environment, in nanoseconds.
    fn now(&self, place: usize) -> PyResult<u64> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let member = members.get(place).ok_or_else(|| errors::input(format!("there is no environment {place}")))?;
        Ok(member.now())
    }
}

/// One environment's part of the buffers of a step.
type Row<'a> = (
    ((((((&'a mut Member, &'a [i64]), &'a mut [f32]), &'a mut [i8]), &'a mut f64), &'a mut bool), &'a mut bool),
    &'a mut [i64],
);

/// One environment's part of the buffers of a reset.
type ResetRow<'a> = (((&'a mut Member, &'a mut [f32]), &'a mut [i8]), &'a mut [i64]);

/// Refuses buffers of another length than the number of environments.
fn check(number: usize, lengths: &[usize]) -> PyResult<()> {
    match lengths.iter().all(|length| *length == number) {
        true => Ok(()),
        false => Err(errors::input(format!("buffers of {lengths:?} environments, where there are {number}"))),
    }
}

/// A set that all episodes share.
type SharedSet = Arc<temponet_task::TaskSet>;
