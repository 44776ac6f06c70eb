//! The task sets and runs of a scenario. They follow from its file alone, so every scheduler, whenever it runs, gets
//! the same jobs.

use temponet_sim::generate::{GenerateError, Spec, generate};
use temponet_task::{Arrival, Costs, Mode, Task, TaskSet, Time};

use super::scenario::{Scenario, Sets};
use crate::horizon::horizon_of;

/// One run on which schedulers are scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Tasks and machine.
    pub set: TaskSet,
    /// Seed of the set and of its jobs.
    pub seed: u64,
    /// Length of the run.
    pub horizon: Time,
}

/// Greatest relative error of the mean load of a generated set.
const CLOSE: f64 = 0.005;
/// Greatest number of attempts to reach that load.
const TRIES: usize = 8;

impl Scenario {
    /// Returns all runs of the scenario; if `is_quick`, only a few, spread over the same loads.
    pub fn cases(&self, is_quick: bool) -> Result<Vec<Case>, GenerateError> {
        let all = self.seeds.end() - self.seeds.start() + 1;
        let wanted = if is_quick { self.quick_sets.clamp(1, all) } else { all };
        (0..wanted).map(|index| self.case((2 * index + 1) * all / (2 * wanted), all)).collect()
    }

    /// Returns the run with the given number, counted from zero, of `all` runs.
    fn case(&self, number: u64, all: u64) -> Result<Case, GenerateError> {
        let seed = self.seeds.start() + number;
        let load = self.load.map(|[low, high]| low + (high - low) * (number as f64 + 0.5) / all as f64);
        let mut set = match &self.source {
            Sets::Generated(tasks, spec) => {
                let tasks = tasks.map(|[least, most]| least + number as usize % (most - least + 1));
                self.draw(&Spec { tasks, ..(**spec).clone() }, load.unwrap_or(1.0), seed)?
            }
            Sets::Builtin(sets) => {
                let builtin = sets[number as usize % sets.len()];
                let loaded = builtin.load().map_err(|error| GenerateError::Invalid(error.to_string()))?;
                let mut set = loaded.set;
                if let Some(cores) = self.cores {
                    set.system.on_identical_cores(cores);
                }
                self.properties.apply(&mut set, seed);
                scaled(set, load)
            }
            Sets::Ranges(ranges) => return Ok(self.run(ranges.draw(seed)?, seed)),
            Sets::Frames(frames) => scaled(frames.draw(number, self.cores.unwrap_or(1), self.jobs as f64, seed), load),
            Sets::Requests(requests) => scaled(requests.draw(self.cores.unwrap_or(1), self.jobs as f64, seed), load),
        };
        set.system.set_on_miss(self.on_miss);
        if self.properties.variety.is_none() || self.costs != Costs::default() {
            set.system.set_costs(self.costs);
        }
        Ok(self.run(set, seed))
    }

    /// Returns the run of a set: about as many jobs as the scenario says, with its modes.
    fn run(&self, mut set: TaskSet, seed: u64) -> Case {
        self.properties.finish(&mut set, seed);
        // Modes that a set has drawn are moved into the run, whose length follows from the jobs without them.
        let mut modes = set.modes().to_vec();
        set.set_modes(Vec::new());
        let horizon = horizon_of(&set, self.jobs as f64);
        let last = modes.last().map_or(1, |mode| mode.at.0.max(1)) as f64;
        let factor = (LAST_MODE * horizon.0 as f64 / last).min(1.0);
        modes.iter_mut().for_each(|mode| mode.at = Time((mode.at.0 as f64 * factor) as u64));
        set.set_modes(modes);
        self.properties.shape.add_wave(&mut set, horizon);
        for switch in &self.switches {
            let at = Time((switch.from * horizon.0 as f64) as u64);
            set.push_mode(Mode::new(&switch.name, at).with_work(switch.work));
        }
        // Schedulers may know what they are judged by.
        set.system.set_aims([&[self.goal], set.aims()].concat());
        Case { set, seed, horizon }
    }

    /// Draws a set with the given load per core at mean execution times, bursts included. Generators take the
    /// utilization at the wcet, so the set is drawn again with the same seed until its mean load is close.
    fn draw(&self, spec: &Spec, load: f64, seed: u64) -> Result<TaskSet, GenerateError> {
        let wanted = load * spec.cores as f64;
        let with = |utilization| Spec { utilization, properties: self.properties.clone(), ..spec.clone() };
        let mut utilization = wanted;
        for _ in 1..TRIES {
            let set = generate(&with(utilization), seed)?;
            let is_burst = |task: &&Task| matches!(task.arrival, Arrival::Burst { .. });
            let bursts: f64 = set.tasks().iter().filter(is_burst).map(Task::mean_utilization).sum();
            if (set.mean_utilization() / wanted - 1.0).abs() < CLOSE {
                return Ok(set);
            }
            utilization *= (wanted - bursts) / (set.mean_utilization() - bursts);
        }
        generate(&with(utilization), seed)
    }
}

/// Latest begin of a mode that a set has drawn, as a share of the run.
const LAST_MODE: f64 = 0.85;

/// Scales the work of a set to this mean load per core, if there is one.
fn scaled(set: TaskSet, load: Option<f64>) -> TaskSet {
    let Some(load) = load else { return set };
    let factor = load * set.capacity() / set.mean_utilization();
    set.with_work((factor * 1e6).round() as u64, 1_000_000)
}

#[cfg(test)]
mod tests {
    use crate::arena::scenario;
    use temponet_sim::generate::Method;

    use super::*;

    #[test]
    fn every_set_of_every_scenario_can_be_drawn_and_has_its_load() {
        for scenario in scenario::all().unwrap() {
            let cases = scenario.cases(false).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            let Some([low, high]) = scenario.load else { continue };
            // The automotive benchmark has few, long runnables, so one more or less changes the load noticeably.
            let is_automotive =
                matches!(&scenario.source, Sets::Generated(_, spec) if spec.method == Method::Waters2015);
            let tolerance = if is_automotive { 0.1 } else { 0.01 };
            for (number, case) in cases.iter().enumerate() {
                let wanted = low + (high - low) * (number as f64 + 0.5) / cases.len() as f64;
                let load = case.set.mean_utilization() / case.set.capacity();
                let name = &scenario.name;
                assert!((load / wanted - 1.0).abs() < tolerance, "{name}, seed {}: {load}, not {wanted}", case.seed);
            }
        }
    }
}
