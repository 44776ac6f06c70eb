//! Fixed properties of a set, which follow from its tasks without any random number, graphs aside. Scenarios of the
//! arena state them. No training range has them, so that some scenarios test what nothing was trained or tuned on.

use serde::Deserialize;
use temponet_task::{
    Arrival, Core, CoreId, CoreSet, Mode, Preemption, Protocol, ResourceId, Section, Speed, Task, TaskSet, Time,
};

use super::Graphs;

/// Fixed properties of sets, which no training range draws. The default adds none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// Exponent of the wcet in the values: a task is worth `(wcet / shortest wcet)^exponent`.
    pub value_exponent: Option<f64>,
    /// Whether first releases are aligned on a grid: the task with index i first arrives i shortest periods later,
    /// within its own period.
    pub aligned: bool,
    /// Criticality labels that the tasks get in turn. Training draws labels of 1 to 9.
    pub levels: Vec<u8>,
    /// Centers of clusters of periods, which tasks belong to in turn, as multiples of the drawn periods.
    pub clusters: Vec<f64>,
    /// Error of the estimates that jobs carry.
    pub estimate_error: Option<f64>,
    /// Smooth waves of the load.
    pub wave: Option<Wave>,
    /// Limits on preemption.
    pub held: Option<Held>,
    /// Graphs that the tasks are joined to.
    pub graphs: Option<Graphs>,
    /// Speeds of the cores, which get them in turn. A load per core means the same as before if they are 1 on average.
    pub speeds: Vec<f64>,
    /// Tasks that are bound to some of the cores.
    pub bound: Option<Bound>,
    /// Resources that tasks share.
    pub shared: Option<Shared>,
}

/// Critical sections, one in the middle of each job of some tasks.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// Number of resources, which the tasks use in turn.
    pub resources: usize,
    /// Share of the tasks that use one, 0 to 1, evenly spread over the set.
    pub share: f64,
    /// Length of a section as a share of the wcet, above 0 and at most 1.
    pub length: f64,
    /// Whether the protocol is inheritance; otherwise there is none.
    pub inherits: bool,
}

/// Tasks that may use some of the cores only.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Share of the tasks that are bound, 0 to 1, evenly spread over the set.
    pub share: f64,
    /// Least and greatest number of cores that a bound task may use, in turn. They are consecutive, and the first one
    /// moves on from task to task.
    pub cores: [usize; 2],
}

/// Tasks whose jobs hold their cores.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Share of the tasks that limit preemption, those with the longest wcets, 0 to 1; at least one task does.
    pub share: f64,
    /// Number of parts between which a job of the wcet can be preempted; without it, a job is never preempted.
    pub parts: Option<u32>,
}

/// Waves of the load, as over the day, in small steps.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wave {
    /// Number of waves in a run.
    pub waves: u32,
    /// Number of steps in a wave.
    pub steps: u32,
    /// Least factor on execution times.
    pub low: f64,
    /// Greatest factor on execution times.
    pub high: f64,
}

impl Shape {
    /// Returns what is wrong with the numbers, or `None`.
    pub fn problem(&self) -> Option<String> {
        if self.value_exponent.is_some_and(|exponent| !(-4.0..=4.0).contains(&exponent)) {
            return Some("shape.value_exponent is not from -4 to 4".into());
        }
        let errors = 0.0..=Task::MOST_ESTIMATE_ERROR;
        if self.estimate_error.is_some_and(|error| !errors.contains(&error)) {
            return Some(format!("shape.estimate_error is not from 0 to {}", Task::MOST_ESTIMATE_ERROR));
        }
        if self.clusters.iter().any(|factor| !(1e-3..=1e6).contains(factor)) {
            return Some("shape.clusters are not factors from 0.001 to 1000000".into());
        }
        if self.held.is_some_and(|held| !(0.0..=1.0).contains(&held.share) || held.parts == Some(0)) {
            return Some("shape.held needs a share from 0 to 1, and at least one part".into());
        }
        if let Some(problem) = self.graphs.and_then(|graphs| graphs.problem()) {
            return Some(format!("shape.graphs: {problem}"));
        }
        let speeds = Speed::RANGE.start().as_f64()..=Speed::RANGE.end().as_f64();
        if self.speeds.iter().any(|speed| !speeds.contains(speed)) {
            return Some("shape.speeds are not from 0.001 to 1000".into());
        }
        let is_good =
            |bound: Bound| (0.0..=1.0).contains(&bound.share) && (1..=bound.cores[1]).contains(&bound.cores[0]);
        if self.bound.is_some_and(|bound| !is_good(bound)) {
            return Some("shape.bound needs a share from 0 to 1, and a range of numbers of cores from 1 on".into());
        }
        let is_good = |shared: Shared| {
            (1..=1000).contains(&shared.resources)
                && (0.0..=1.0).contains(&shared.share)
                && shared.length > 0.0
                && shared.length <= 1.0
        };
        if self.shared.is_some_and(|shared| !is_good(shared)) {
            return Some(
                "shape.shared needs 1 to 1000 resources, a share from 0 to 1, and a length above 0 and at most 1"
                    .into(),
            );
        }
        let wave = self.wave.as_ref()?;
        let is_good = (1..=100).contains(&wave.waves)
            && (2..=1000).contains(&wave.steps)
            && wave.low >= 0.01
            && wave.low <= wave.high
            && wave.high <= 100.0;
        (!is_good).then(|| "shape.wave needs 1 to 100 waves, 2 to 1000 steps, and factors from 0.01 to 100".into())
    }

    /// Gives a set these properties, apart from the wave. The mean load of every task stays as it is.
    pub(super) fn apply(&self, set: &mut TaskSet) {
        if !self.clusters.is_empty() {
            for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
                let factor = self.clusters[index % self.clusters.len()];
                if let Arrival::Periodic { period } = task.arrival {
                    let longer = |time: Time| Time(((time.0 as f64 * factor) as u64).clamp(1, Time::MAX_INPUT.0));
                    task.arrival = Arrival::Periodic { period: longer(period) };
                    task.deadline = longer(task.deadline);
                    *task = task.with_work((factor * 1e6) as u64, 1_000_000);
                }
            }
        }
        if let Some(exponent) = self.value_exponent {
            let shortest = set.tasks().iter().map(|task| task.wcet.0).min().unwrap_or(1).max(1) as f64;
            set.system
                .tasks_mut()
                .iter_mut()
                .for_each(|task| task.value = (task.wcet.0 as f64 / shortest).powf(exponent));
        }
        if self.aligned {
            let step = set.tasks().iter().filter_map(|task| task.period()).min().unwrap_or_default();
            for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
                if let Some(period) = task.period() {
                    task.offset = Time((step.0 * index as u64) % period.0);
                }
            }
        }
        if !self.levels.is_empty() {
            let levels = self.levels.iter().cycle();
            set.system.tasks_mut().iter_mut().zip(levels).for_each(|(task, level)| task.criticality = *level);
        }
        if self.estimate_error.is_some() {
            set.system.tasks_mut().iter_mut().for_each(|task| task.estimate_error = self.estimate_error);
        }
        if !self.speeds.is_empty() {
            let speed = |core: usize| Speed((1000.0 * self.speeds[core % self.speeds.len()]).round() as u32);
            let core = |core: usize| Core::new(format!("x{}", speed(core).as_f64()), speed(core));
            set.system.set_machine((0..set.cores()).map(core).collect());
        }
        if let Some(bound) = self.bound {
            bound.apply(set);
        }
    }

    /// Joins the tasks to graphs, if there are to be any.
    pub(super) fn join(&self, set: &mut TaskSet, seed: u64) {
        if let Some(graphs) = self.graphs {
            graphs.join(set, seed);
        }
    }

    /// Makes jobs hold their cores. The work of the set must be final, because parts of it are counted.
    pub(super) fn hold(&self, set: &mut TaskSet) {
        let Some(Held { share, parts }) = self.held else { return };
        let count = ((share * set.tasks().len() as f64).round() as usize).max(1);
        let mut longest: Vec<usize> = (0..set.tasks().len()).collect();
        longest.sort_by_key(|index| (std::cmp::Reverse(set.tasks()[*index].wcet), *index));
        for index in longest.into_iter().take(count) {
            let task = &mut set.system.tasks_mut()[index];
            let part = |parts: u32| Time(task.wcet.0.div_ceil(u64::from(parts)).max(1));
            task.preemption = parts.map_or(Preemption::None, |parts| Preemption::Every(part(parts)));
        }
    }

    /// Gives tasks critical sections. The work of the set must be final, because shares of it are counted.
    pub(super) fn share(&self, set: &mut TaskSet) {
        if let Some(shared) = self.shared {
            shared.apply(set);
        }
    }

    /// Adds the modes of the wave over a run of this length.
    pub fn add_wave(&self, set: &mut TaskSet, horizon: Time) {
        let Some(Wave { waves, steps, low, high }) = self.wave else { return };
        for step in 0..waves * steps {
            let angle = std::f64::consts::TAU * f64::from(step) / f64::from(steps);
            let work = low + (high - low) * (1.0 - angle.cos()) / 2.0;
            let at = Time((horizon.0 as f64 * f64::from(step) / f64::from(waves * steps)) as u64);
            let name = format!("hour{step}");
            set.push_mode(Mode::new(name, at).with_work((work * 1e6).round() / 1e6));
        }
    }
}

impl Shared {
    fn apply(&self, set: &mut TaskSet) {
        let place = |index: usize| (index as f64 * self.share).floor() as usize;
        for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
            if place(index + 1) > place(index) {
                let length = Time(((task.wcet.0 as f64 * self.length) as u64).clamp(1, task.wcet.0));
                let at = Time((task.wcet.0 - length.0) / 2);
                task.sections = vec![Section { resource: ResourceId::new(place(index) % self.resources), at, length }];
            }
        }
        set.system.set_resources((0..self.resources).map(|index| format!("r{index}")).collect());
        set.system.set_protocol(if self.inherits { Protocol::Inheritance } else { Protocol::None });
    }
}

impl Bound {
    fn apply(&self, set: &mut TaskSet) {
        let [least, most] = self.cores.map(|count| count.min(set.cores()));
        let place = |index: usize| (index as f64 * self.share).floor() as usize;
        let cores = set.cores();
        for (index, task) in set.system.tasks_mut().iter_mut().enumerate() {
            let turn = place(index);
            if place(index + 1) > turn {
                let count = least + turn % (most - least + 1);
                task.cores = CoreSet::of((turn..turn + count).map(|core| CoreId::new(core % cores)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Lengths, Rule, Spec, generate};

    fn set() -> TaskSet {
        let rule = Rule::Harmonic(Time::from_ms(10), Time::from_ms(80));
        generate(&Spec { lengths: Lengths::Periods(rule), ..Spec::new(9, 2, 1.5) }, 4).unwrap()
    }

    fn shaped(shape: Shape) -> TaskSet {
        assert_eq!(shape.problem(), None);
        let mut set = set();
        shape.apply(&mut set);
        assert!((set.mean_utilization() / 1.5 - 1.0).abs() < 1e-3);
        set
    }

    #[test]
    fn values_offsets_and_levels() {
        let squares = shaped(Shape { value_exponent: Some(2.0), ..Shape::default() });
        let (a, b) = (&squares.tasks()[0], &squares.tasks()[1]);
        assert!(((a.value / b.value) / (a.wcet.0 as f64 / b.wcet.0 as f64).powi(2) - 1.0).abs() < 1e-9);
        let aligned = shaped(Shape { aligned: true, ..Shape::default() });
        assert!(
            aligned.tasks().iter().all(|task| task.offset.0 % 10_000_000 == 0 && Some(task.offset) < task.period())
        );
        assert!(aligned.tasks().iter().any(|task| task.offset > Time::ZERO));
        let levels = shaped(Shape { levels: vec![0, 40, 200], ..Shape::default() });
        assert_eq!(levels.levels(), [40, 200]);
        let estimated = shaped(Shape { estimate_error: Some(0.2), ..Shape::default() });
        assert!(estimated.tasks().iter().all(|task| task.estimate_error == Some(0.2)));
        assert!(Shape { estimate_error: Some(f64::NAN), ..Shape::default() }.problem().is_some());
    }

    #[test]
    fn clusters_move_periods_and_work_together() {
        let (before, after) = (set(), shaped(Shape { clusters: vec![1.0, 30.0, 1000.0], ..Shape::default() }));
        assert_eq!(after.tasks()[0].period(), before.tasks()[0].period());
        assert_eq!(after.tasks()[2].period().unwrap().0, 1000 * before.tasks()[2].period().unwrap().0);
        assert_eq!(after.tasks()[2].deadline.0, 1000 * before.tasks()[2].deadline.0);
    }

    #[test]
    fn the_longest_jobs_hold_their_cores() {
        let mut set = set();
        let longest = set.tasks().iter().map(|task| task.wcet).max().unwrap();
        let shape = |parts| Shape { held: Some(Held { share: 0.3, parts }), ..Shape::default() };
        shape(None).hold(&mut set);
        let held: Vec<&temponet_task::Task> = set.tasks().iter().filter(|task| task.preemption.is_limited()).collect();
        assert_eq!(held.len(), 3);
        let shortest_held = held.iter().map(|task| task.wcet).min().unwrap();
        let free = set.tasks().iter().filter(|task| !task.preemption.is_limited());
        assert!(free.map(|task| task.wcet).max().unwrap() <= shortest_held);
        shape(Some(4)).hold(&mut set);
        let task = set.tasks().iter().find(|task| task.wcet == longest).unwrap();
        assert_eq!(task.preemption, Preemption::Every(Time(longest.0.div_ceil(4))));
        assert!(shape(Some(0)).problem().is_some());
    }

    #[test]
    fn cores_have_speeds_and_tasks_are_bound_to_some() {
        let fast = shaped(Shape { speeds: vec![1.6, 0.4], ..Shape::default() });
        assert_eq!(
            (fast.machine().speed(CoreId(0)), fast.machine().speed(CoreId(1)), fast.capacity()),
            (Speed(1600), Speed(400), 2.0)
        );
        let bound = Some(Bound { share: 0.5, cores: [1, 2] });
        let bound = shaped(Shape { bound, ..Shape::default() });
        assert_eq!(bound.tasks().iter().filter(|task| !task.cores.is_all()).count(), 4);
        assert_eq!(bound.system.validate(), Ok(()));
        let none = Some(Bound { share: 0.5, cores: [0, 2] });
        assert!(Shape { bound: none, ..Shape::default() }.problem().is_some());
    }

    #[test]
    fn tasks_share_resources_in_turn() {
        let mut set = set();
        let shape = |length| Shape {
            shared: Some(Shared { resources: 2, share: 0.5, length, inherits: true }),
            ..Shape::default()
        };
        shape(0.4).share(&mut set);
        assert_eq!(set.system.validate(), Ok(()));
        let used: Vec<usize> =
            set.tasks().iter().flat_map(|task| &task.sections).map(|section| section.resource.index()).collect();
        assert_eq!(used, [0, 1, 0, 1]);
        assert!(shape(0.0).problem().is_some() && shape(0.4).problem().is_none());
    }

    #[test]
    fn a_wave_rises_and_falls() {
        let mut set = set();
        let wave = Some(Wave { waves: 2, steps: 8, low: 0.5, high: 1.5 });
        Shape { wave, ..Shape::default() }.add_wave(&mut set, Time::from_secs(16));
        let work: Vec<f64> = set.modes().iter().map(|mode| mode.work).collect();
        assert_eq!((work.len(), work[0], work[4], work[8]), (16, 0.5, 1.5, 0.5));
        assert_eq!(set.modes()[4].at, Time::from_secs(4));
    }
}
