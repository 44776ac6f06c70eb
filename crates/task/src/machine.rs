//! The cores of a system: their names and speeds, the cores that a task may use, and the time that work takes on them.
//!
//! Execution times are stated at speed 1. A core of speed 2 does two nanoseconds of work in a nanosecond, whatever the
//! task: a *uniform* machine in the words of the field. Times that depend on the pair of task and core (*unrelated*
//! machines) cannot be stated.

use alloc::{format, string::String, vec::Vec};

#[cfg(not(feature = "std"))]
use crate::float::Float as _;
use crate::{CoreId, System, Task, TaskId, Time};

/// Speed of a core, in thousandths of full speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(pub u32);

impl Speed {
    /// Full speed: the speed at which execution times are stated.
    pub const FULL: Speed = Speed(1000);
    /// Lowest and highest speed of a core: a thousandth of full speed, and a thousand times full speed.
    pub const RANGE: core::ops::RangeInclusive<Speed> = Speed(1)..=Speed(1_000_000);
    /// Returns the speed that is this multiple of full speed, or `None` if it is out of range or has more than three
    /// decimals.
    pub fn of(multiple: f64) -> Option<Speed> {
        let thousandths = (multiple * 1000.0).round();
        let speed = Speed(thousandths as u32);
        (Speed::RANGE.contains(&speed) && (multiple * 1000.0 - thousandths).abs() < 1e-6).then_some(speed)
    }

    /// Longest time that work takes. Longer ones are cut off here, so that dates can be added without overflow.
    const LONGEST: u64 = 4 * Time::MAX_INPUT.0;

    /// Returns the time that `work` takes at this speed, rounded up to whole nanoseconds.
    #[inline]
    pub fn time_for(self, work: Time) -> Time {
        if self == Speed::FULL {
            return work;
        }
        self.time_for_thousandths(u128::from(work.0) * 1000)
    }

    /// Returns the time that `work`, in thousandths of a nanosecond, takes at this speed, rounded up.
    pub fn time_for_thousandths(self, work: u128) -> Time {
        Time(work.div_ceil(u128::from(self.0.max(1))).min(u128::from(Speed::LONGEST)) as u64)
    }

    /// Returns the work done in `time` at this speed, rounded down to whole nanoseconds.
    pub fn work_in(self, time: Time) -> Time {
        let work = u128::from(time.0) * u128::from(self.0) / 1000;
        Time(work.min(u128::from(Speed::LONGEST)) as u64)
    }

    /// Returns the speed as a multiple of full speed.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// A core that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Core {
    /// Name of the core's group, such as "big". Several cores may have the same one.
    pub name: String,
    /// Speed of the core, always the same.
    pub speed: Speed,
    /// Whether it runs nothing but the tasks that name it in their [`Task::cores`], as a GPU, a DSP or a bus does.
    pub only: bool,
}

impl Core {
    /// Creates a core that every task may use.
    pub fn new(name: impl Into<String>, speed: Speed) -> Core {
        Core { name: name.into(), speed, only: false }
    }
}

replaced_fields! { Core:
    with_only only: bool,
}

/// Cores that the jobs of a task may run on. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreSet {
    /// One bit per core; none means all cores.
    words: Vec<u64>,
}

impl CoreSet {
    /// The set of all cores, whatever their number.
    pub const ALL: CoreSet = CoreSet { words: Vec::new() };

    /// Creates the set of these cores, of which there is at least one; without any, it is the set of all cores.
    pub fn of(cores: impl IntoIterator<Item = CoreId>) -> CoreSet {
        let mut words = Vec::new();
        for core in cores.into_iter().map(CoreId::index) {
            if core / 64 >= words.len() {
                words.resize(core / 64 + 1, 0);
            }
            words[core / 64] |= 1 << (core % 64);
        }
        CoreSet { words }
    }

    /// Returns those of the named cores that run tasks which name none; none if those are all cores, or if every core is
    /// only for tasks that name it.
    pub fn shared(cores: &[Core]) -> Option<CoreSet> {
        let shared = || CoreId::all(cores.len()).filter(|core| !cores[*core].only);
        let is_part = (1..cores.len()).contains(&shared().count());
        is_part.then(|| CoreSet::of(shared()))
    }

    /// Returns whether this is the set of all cores.
    pub fn is_all(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns whether the core is in the set.
    #[inline]
    pub fn contains(&self, core: CoreId) -> bool {
        let core = core.index();
        self.words.is_empty() || self.words.get(core / 64).is_some_and(|word| word >> (core % 64) & 1 == 1)
    }

    /// Iterates over the cores of the set that a machine with this many cores has, ascending.
    pub fn iter(&self, cores: usize) -> impl Iterator<Item = CoreId> + '_ {
        CoreId::all(cores).filter(|core| self.contains(*core))
    }

    /// Returns the highest core that the set names; none for the set of all cores.
    pub fn last(&self) -> Option<CoreId> {
        let (at, word) = self.words.iter().enumerate().rfind(|(_, word)| **word != 0)?;
        Some(CoreId::new(at * 64 + word.ilog2() as usize))
    }
}

/// The machine of a system, with what placement asks at every decision worked out once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Named cores; none if the cores are identical and have no names.
    cores: Vec<Core>,
    /// Speed of the fastest core that each task may use; empty if every core has full speed.
    fastest: Vec<Speed>,
    is_unequal: bool,
    is_bound: bool,
}

impl Machine {
    /// Creates the machine of a set of tasks. `cores` are its named cores, none if they have no names.
    pub fn new(cores: Vec<Core>, count: usize, tasks: &[Task]) -> Machine {
        let mut machine = Machine { cores, ..Machine::default() };
        machine.is_unequal = machine.cores.iter().any(|core| core.speed != machine.cores[0].speed);
        machine.is_bound = bound_task(tasks, count).is_some();
        if machine.cores.iter().any(|core| core.speed != Speed::FULL) {
            let speed = |task: &Task| task.cores.iter(count).map(|core| machine.speed(core)).max();
            machine.fastest = tasks.iter().map(|task| speed(task).unwrap_or(Speed::FULL)).collect();
        }
        machine
    }

    /// The named cores; none if the cores are identical and have no names.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// Returns the cores that run tasks which name none; none if those are all cores, or if every core is only for tasks
    /// that name it.
    pub fn shared(&self) -> Option<CoreSet> {
        CoreSet::shared(&self.cores)
    }

    /// Returns whether every core is only for the tasks that name it.
    pub fn is_only_for_named(&self) -> bool {
        !self.cores.is_empty() && self.cores.iter().all(|core| core.only)
    }

    /// Returns the speed of a core.
    #[inline]
    pub fn speed(&self, core: CoreId) -> Speed {
        self.cores.get(core.index()).map_or(Speed::FULL, |core| core.speed)
    }

    /// Returns the speed of the fastest core that a task may use.
    #[inline]
    pub fn fastest(&self, task: TaskId) -> Speed {
        self.fastest.get(task.index()).copied().unwrap_or(Speed::FULL)
    }

    /// Returns whether it makes no difference on which core a job runs: all have the same speed, and every task may use
    /// all.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.is_unequal && !self.is_bound
    }

    /// Returns whether every core has full speed, so that work and time are the same.
    #[inline]
    pub fn is_full_speed(&self) -> bool {
        self.fastest.is_empty()
    }

    /// Returns whether cores have different speeds.
    pub fn is_unequal(&self) -> bool {
        self.is_unequal
    }

    /// Returns whether some task may not use every core.
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }
}

impl System {
    /// Returns the largest number of jobs that a scheduler passes to [`crate::Assignment::place`]: the number of cores,
    /// or any number where tasks are bound to cores or share resources, because the best jobs may then compete for the
    /// same ones.
    #[inline]
    pub fn most_offered(&self) -> usize {
        if self.machine().is_bound || self.has_sections() { usize::MAX } else { self.cores() }
    }

    /// Returns the first task that may not use every core, if there is one.
    pub fn bound_task(&self) -> Option<&Task> {
        if self.machine().is_bound { bound_task(self.tasks(), self.cores()) } else { None }
    }

    /// Returns the total speed of the cores, as a number of cores at full speed. A system whose utilization exceeds it
    /// is overloaded.
    pub fn capacity(&self) -> f64 {
        match self.machine().cores() {
            [] => self.cores() as f64,
            cores => cores.iter().map(|core| core.speed.as_f64()).sum(),
        }
    }

    /// Returns the name of a core for messages and labels: "core 3", or "core 3 (big)" if it has a name.
    pub fn core_name(&self, core: CoreId) -> String {
        match self.machine().cores().get(core.index()) {
            Some(Core { name, .. }) => format!("core {core} ({name})"),
            None => format!("core {core}"),
        }
    }

    /// Returns whether every core has full speed and every task may use all of them, as most theory presupposes.
    pub fn has_identical_cores(&self) -> bool {
        self.machine().is_full_speed() && !self.machine().is_bound()
    }

    /// Returns the speed of the fastest core that a task of this set may use.
    pub fn fastest(&self, task: &Task) -> Speed {
        task.cores.iter(self.cores()).map(|core| self.machine().speed(core)).max().unwrap_or(Speed::FULL)
    }

    /// Changes the number of cores. The error says what in the system does not allow it.
    pub fn change_cores(&mut self, cores: usize) -> Result<(), String> {
        if !self.machine().cores().is_empty() && cores != self.cores() {
            return Err(format!("the set names its {} cores one by one ([[core]])", self.cores()));
        }
        let bound = self.tasks().iter().find(|task| task.cores.last().is_some_and(|last| last.index() >= cores));
        if let Some(task) = bound {
            let last = task.cores.last().unwrap_or_default();
            return Err(format!("task {:?} is bound to core {last}", task.name));
        }
        self.set_cores(cores);
        Ok(())
    }

    /// Gives the system this many identical cores that every task may use, in place of the machine that it has.
    pub fn on_identical_cores(&mut self, cores: usize) {
        self.set_machine(Vec::new());
        self.set_cores(cores);
        self.tasks_mut().iter_mut().for_each(|task| task.cores = CoreSet::ALL);
    }
}

fn bound_task(tasks: &[Task], cores: usize) -> Option<&Task> {
    tasks.iter().find(|task| !task.cores.is_all() && task.cores.iter(cores).count() < cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_up_and_work_rounds_down() {
        let (half, double) = (Speed(500), Speed(2000));
        assert_eq!((half.time_for(Time(3)), double.time_for(Time(3))), (Time(6), Time(2)));
        assert_eq!((half.work_in(Time(3)), double.work_in(Time(3))), (Time(1), Time(6)));
        assert_eq!(Speed(3).time_for(Time(1)), Time(334));
        assert_eq!(Speed(1).time_for(Time::MAX_INPUT), Time(Speed::LONGEST));
        for speed in [1, 333, 999, 1000, 1001, 2500, 1_000_000].map(Speed) {
            for work in (1..200).map(Time) {
                let time = speed.time_for(work);
                assert!(speed.work_in(time) >= work && speed.work_in(Time(time.0 - 1)) < work, "{speed:?} {work:?}");
            }
        }
    }

    #[test]
    fn sets_of_cores_know_their_cores() {
        let set = CoreSet::of([0, 2, 70].map(CoreId));
        assert_eq!(set.iter(128).collect::<Vec<CoreId>>(), [0, 2, 70].map(CoreId));
        assert_eq!((set.last(), set.contains(CoreId(1)), set.contains(CoreId(4000))), (Some(CoreId(70)), false, false));
        assert!(CoreSet::ALL.is_all() && CoreSet::ALL.contains(CoreId(4095)) && CoreSet::ALL.last().is_none());
    }

    #[test]
    fn a_machine_knows_the_fastest_core_of_each_task() {
        let core = |name: &str, speed: u32| Core::new(name, Speed(speed));
        let task = |cores: CoreSet| Task::periodic("t", Time(10), Time(1)).with_cores(cores);
        let tasks = [task(CoreSet::ALL), task(CoreSet::of([CoreId(1)]))];
        let machine = Machine::new(vec![core("big", 2000), core("little", 500)], 2, &tasks);
        assert_eq!([0, 1].map(|task| machine.fastest(TaskId(task))), [Speed(2000), Speed(500)]);
        assert!(machine.is_unequal() && machine.is_bound() && !machine.is_plain());
        let named = Machine::new(vec![core("a", 1000), core("b", 1000)], 2, &tasks[..1]);
        assert!(named.is_plain() && named.is_full_speed());
    }

    #[test]
    fn a_core_can_be_only_for_the_tasks_that_name_it() {
        let core = |name: &str, only: bool| Core::new(name, Speed::FULL).with_only(only);
        let task = |name: &str, cores: CoreSet| Task::periodic(name, Time(10), Time(1)).with_cores(cores);
        let both = CoreSet::of([0, 2].map(CoreId));
        let tasks =
            vec![task("free", CoreSet::ALL), task("kernel", CoreSet::of([CoreId(2)])), task("both", both.clone())];
        let system =
            System::new(tasks, 3).with_machine(vec![core("cpu", false), core("cpu", false), core("gpu", true)]);
        let cores: Vec<_> = system.tasks().iter().map(|task| task.cores.clone()).collect();
        assert_eq!(cores, [CoreSet::of([0, 1].map(CoreId)), CoreSet::of([CoreId(2)]), both]);
        assert_eq!((system.validate(), system.machine().is_bound()), (Ok(()), true));
        // Tasks that come later are bound as well.
        let mut more = system.clone();
        more.tasks_mut().push(task("late", CoreSet::ALL));
        assert_eq!(more.tasks()[3].cores, cores[0]);
        let nowhere = System::new(vec![task("free", CoreSet::ALL)], 1).with_machine(vec![core("gpu", true)]);
        assert!(nowhere.validate().is_err());
    }
}
