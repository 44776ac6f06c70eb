//! Necessary conditions on any set: reasons why no scheduler can meet every deadline, whatever else is in the set.
//!
//! Locks, costs, limits on preemption, lists of jobs and bursts that end only add to what has to be done, so a set is
//! refuted if it is refuted without them. Each mode is looked at by itself: what arrives in it and is due in it has to
//! be done in it. The conditions are not complete: a set without such a reason may still be infeasible.

use std::collections::BTreeSet;

use temponet_task::{Arrival, CoreId, CoreSet, Precedence, Task, TaskId, TaskSet, Time};

use super::fractions::MARGIN;
use super::worst_case::{WorstCase, may_overrun};

/// A reason why no scheduler can meet every deadline if jobs arrive as often and take as long as they may.
#[derive(Clone, Debug, PartialEq)]
pub enum Impossible {
    /// A job takes longer than its deadline, alone or after the jobs that it follows.
    Job {
        /// Index of its task in the set.
        task: TaskId,
        /// Time that the job takes on the fastest core that it may use, after those that it follows.
        time: Time,
        /// Its relative deadline.
        deadline: Time,
    },
    /// All tasks together overload the cores.
    Overload {
        /// Utilization of the tasks, as work at full speed.
        utilization: f64,
        /// Total speed of the cores.
        speed: f64,
    },
    /// More is due in an interval than the cores can do in it.
    Demand {
        /// Length of the interval.
        interval: Time,
        /// Work that arrives and is due in it, as time at full speed.
        work: Time,
        /// Total speed of the cores.
        speed: f64,
    },
    /// Tasks that may use no other cores overload these.
    Cores {
        /// The cores, ascending.
        cores: Vec<CoreId>,
        /// Utilization of the tasks that may use no other cores, as work at full speed.
        utilization: f64,
        /// Total speed of the cores.
        speed: f64,
    },
}

/// A reason why no scheduler can meet every deadline, and where it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Refutation {
    /// Index of the mode; none for the time before the first mode, and for sets without modes.
    pub mode: Option<usize>,
    /// The reason.
    pub why: Impossible,
}

/// Largest number of deadlines at which the demand is counted.
const MOST_DEADLINES: usize = 20_000;

/// Returns why no scheduler can meet every deadline if jobs arrive as often and take as long as they may: the first
/// reason of each mode that has one. It takes any valid set.
pub fn refutations(set: &TaskSet) -> Vec<Refutation> {
    let modes = set.modes();
    let starts_alone = modes.first().is_none_or(|mode| mode.at > Time::ZERO);
    let before = starts_alone.then(|| (None, modes.first().map(|first| first.at)));
    let own = modes.iter().enumerate().map(|(index, mode)| {
        let next = modes.get(index + 1);
        (Some(index), next.map(|next| next.at.saturating_sub(mode.at)))
    });
    let refuted = |(mode, length): (Option<usize>, Option<Time>)| {
        let phase = Phase::of(set, mode, length);
        Some(Refutation { mode, why: phase.refuted()? })
    };
    before.into_iter().chain(own).filter_map(refuted).collect()
}

/// What has to be done in a mode at least.
struct Phase {
    /// The recurring tasks, independent of each other.
    set: TaskSet,
    /// Least time from arrival to completion of the tasks of which a job arrives, by their index in the whole set, and
    /// their deadlines.
    paths: Vec<(TaskId, Time, Time)>,
    /// When it begins.
    begin: Time,
    /// How long the mode lasts; none if it does not end.
    length: Option<Time>,
    /// Longest period of each of the tasks in any mode.
    gaps: Vec<Time>,
}

impl Phase {
    fn of(set: &TaskSet, mode: Option<usize>, length: Option<Time>) -> Phase {
        let mode = mode.map(|index| &set.modes()[index]);
        let is_active = |index: TaskId| mode.is_none_or(|mode| !mode.stops(index));
        let in_this_mode = |index: TaskId| match mode {
            Some(mode) => in_mode(&set.tasks()[index], mode.work, mode.rate_of(index)),
            None => set.tasks()[index].clone(),
        };
        let changed: Vec<Task> = set.task_ids().map(in_this_mode).collect();
        let recurs = |task: &Task| match task.arrival {
            Arrival::Periodic { .. } | Arrival::Sporadic { .. } => true,
            Arrival::Burst { until, .. } => until == Time::NEVER,
            _ => false,
        };
        let kept: Vec<TaskId> =
            TaskId::all(changed.len()).filter(|index| is_active(*index) && recurs(&changed[*index])).collect();
        let tasks = kept.iter().map(|index| {
            let mut task = changed[*index].clone();
            task.after.clear();
            task.sections.clear();
            task
        });
        let bare = TaskSet::new("", tasks.collect(), set.cores()).with_machine(set.machine().cores().to_vec());
        let begin = mode.map_or(Time::ZERO, |mode| mode.at);
        let gaps = kept.iter().map(|index| longest_gap(set, *index)).collect();
        let mut phase = Phase { set: bare, paths: Vec::new(), begin, length, gaps };
        let arrives =
            |index: TaskId| is_active(index) && phase.arrivals(&changed[index], longest_gap(set, index), Time(1)) > 0;
        phase.paths = paths(set, &changed).into_iter().filter(|(index, ..)| arrives(*index)).collect();
        phase
    }

    /// Whether it begins with the first arrivals.
    fn is_first(&self) -> bool {
        self.begin == Time::ZERO
    }

    /// Number of jobs of a task that at least arrive in the mode, each this long before its end. `gap` is the longest
    /// period of the task in any mode.
    fn arrivals(&self, task: &Task, gap: Time, before_end: Time) -> u64 {
        let Some(period) = task.period() else { return 0 };
        if matches!(task.arrival, Arrival::Burst { until, .. } if until != Time::NEVER && !self.is_first()) {
            return 0;
        }
        let Some(length) = self.length else { return u64::MAX };
        // The first one comes with the offset, or up to a period of the mode before after the switch.
        let wait = match self.is_first() {
            true => task.offset,
            false => task.offset.saturating_sub(self.begin) + gap,
        };
        let room = length.0.checked_sub(before_end.0).and_then(|room| room.checked_sub(wait.0));
        room.map_or(0, |room| room / period.0.max(1) + 1)
    }

    fn refuted(&self) -> Option<Impossible> {
        let late = self.paths.iter().find(|(_, time, deadline)| time > deadline);
        if let Some((task, time, deadline)) = late {
            return Some(Impossible::Job { task: *task, time: *time, deadline: *deadline });
        }
        let worst_case = WorstCase::ignoring_sections(&self.set).ok()?;
        let speed = self.set.capacity();
        match self.length {
            None if worst_case.is_overloaded() == Some(true) => {
                let utilization = self.set.tasks().iter().map(longest_utilization).sum();
                Some(Impossible::Overload { utilization, speed })
            }
            None => overloaded_cores(&worst_case).or_else(|| self.demanded(None)),
            // A mode that ends does not have to do what is due after its end.
            Some(length) if self.is_first() => self.demanded(Some(length)),
            Some(length) => self.due_within(length),
        }
    }

    /// The first interval from the common first arrival on in which more is due than the cores can do.
    fn demanded(&self, until: Option<Time>) -> Option<Impossible> {
        // Sporadic tasks can wait for the others to arrive together again, if there is time for that.
        let can_wait = |task: &Task| until.is_none() && matches!(task.arrival, Arrival::Sporadic { .. });
        let arrives = |task: &&Task| task.offset == Time::ZERO || can_wait(task);
        let together: Vec<&Task> = self.set.tasks().iter().filter(arrives).collect();
        let each = MOST_DEADLINES / together.len().max(1);
        let mut due: Vec<(Time, f64)> = Vec::new();
        let mut known = until.unwrap_or(Time::NEVER);
        for task in together {
            let (period, jobs) = (task.period()?, jobs_of(task));
            let work = longest(task).0 as f64 * jobs;
            // A later deadline than the last one that was listed would not be complete.
            let beyond = (task.deadline.0 as u128) + (each as u128) * u128::from(period.0);
            known = known.min(Time(u64::try_from(beyond).unwrap_or(u64::MAX)));
            let dates =
                (0..each as u64).map(|k| period.0.checked_mul(k).and_then(|sum| sum.checked_add(task.deadline.0)));
            due.extend(dates.map_while(|date| date).take_while(|date| *date <= known.0).map(|date| (Time(date), work)));
        }
        due.retain(|(date, _)| *date <= known);
        due.sort_by_key(|(date, _)| *date);
        let (mut work, speed) = (0.0, self.set.capacity());
        for place in 0..due.len() {
            let (date, own) = due[place];
            work += own;
            let is_last = due.get(place + 1).is_none_or(|(next, _)| *next > date);
            if is_last && work > speed * date.0 as f64 * (1.0 + MARGIN) {
                return Some(Impossible::Demand { interval: date, work: Time(work as u64), speed });
            }
        }
        None
    }

    /// Whether more arrives and is due in the mode than the cores can do in it, wherever the first arrivals fall.
    fn due_within(&self, length: Time) -> Option<Impossible> {
        let of_task = |(task, gap): (&Task, &Time)| {
            self.arrivals(task, *gap, task.deadline) as f64 * jobs_of(task) * longest(task).0 as f64
        };
        let work: f64 = self.set.tasks().iter().zip(&self.gaps).map(of_task).sum();
        let speed = self.set.capacity();
        let is_too_much = work > speed * length.0 as f64 * (1.0 + MARGIN);
        is_too_much.then_some(Impossible::Demand { interval: length, work: Time(work as u64), speed })
    }
}

/// Cores that the tasks which may use no others overload.
fn overloaded_cores(worst_case: &WorstCase) -> Option<Impossible> {
    if worst_case.has_end || !worst_case.is_bound() {
        return None;
    }
    // Utilization by the cores that tasks may use, switching not included.
    let mut loads: Vec<(&CoreSet, f64)> = Vec::new();
    for (task, allowed) in worst_case.tasks.iter().zip(&worst_case.allowed) {
        let work = (task.wcet - worst_case.switching).0 as f64 * f64::from(task.jobs);
        let utilization = work / task.period.0 as f64;
        match loads.iter_mut().find(|(known, _)| *known == allowed) {
            Some((_, load)) => *load += utilization,
            None => loads.push((allowed, utilization)),
        }
    }
    let all = worst_case.cores;
    loads.iter().find_map(|(cores, _)| {
        let is_within = |other: &CoreSet| other.iter(all).all(|core| cores.contains(core));
        let utilization: f64 = loads.iter().filter(|(other, _)| is_within(other)).map(|(_, load)| load).sum();
        let cores: Vec<CoreId> = cores.iter(all).collect();
        let speed: f64 = cores.iter().map(|core| worst_case.speed(*core).as_f64()).sum();
        (utilization > speed * (1.0 + MARGIN)).then_some(Impossible::Cores { cores, utilization, speed })
    })
}

/// Longest period of a task in any mode, rounded up.
fn longest_gap(set: &TaskSet, task: TaskId) -> Time {
    let stretch = set.modes().iter().map(|mode| 1.0 / mode.rate_of(task)).fold(1.0, f64::max);
    let period = set.tasks()[task].period().unwrap_or_default();
    Time((period.0 as f64 * stretch) as u64 + 1)
}

/// A task as it is in a mode.
fn in_mode(task: &Task, work: f64, rate: f64) -> Task {
    let mut task = task.clone();
    let scaled = |time: Time, factor: f64| match factor == 1.0 {
        true => time,
        false => Time(((time.0 as f64 * factor).round() as u64).clamp(1, Time::MAX_INPUT.0)),
    };
    task.wcet = scaled(task.wcet, work);
    task.wcet_high = task.wcet_high.map(|high| scaled(high, work));
    task.deadline = scaled(task.deadline, 1.0 / rate);
    let longer = |time: Time| scaled(time, 1.0 / rate);
    task.arrival = match task.arrival {
        Arrival::Periodic { period } => Arrival::Periodic { period: longer(period) },
        Arrival::Sporadic { minimum, gap } => Arrival::Sporadic { minimum: longer(minimum), gap },
        Arrival::Burst { jobs, every, until } => Arrival::Burst { jobs, every: longer(every), until },
        other => other,
    };
    task
}

/// Longest time that a job of the task may take.
fn longest(task: &Task) -> Time {
    if may_overrun(task) { task.wcet_high.unwrap_or(task.wcet) } else { task.wcet }
}

fn jobs_of(task: &Task) -> f64 {
    match task.arrival {
        Arrival::Burst { jobs, .. } => f64::from(jobs),
        _ => 1.0,
    }
}

fn longest_utilization(task: &Task) -> f64 {
    task.period().map_or(0.0, |period| longest(task).0 as f64 * jobs_of(task) / period.0 as f64)
}

/// For each task the least time from its arrival to its completion, on the fastest cores, and its deadline. Tasks that
/// are lists of jobs are left out.
///
/// A task with several sources arrives with the last of them. Which one that is may change, so the path that counts is
/// the shortest of the longest ones from each source.
fn paths(set: &TaskSet, tasks: &[Task]) -> Vec<(TaskId, Time, Time)> {
    let alone = |index: TaskId| set.machine().fastest(index).time_for(longest(&tasks[index]));
    let mut least: Vec<Time> = TaskId::all(tasks.len()).map(alone).collect();
    if let Ok(Some(graph)) = Precedence::of(tasks) {
        let mut shortest = vec![None; tasks.len()];
        let followers = TaskId::all(tasks.len()).filter(|index| !tasks[*index].after.is_empty());
        let sources: BTreeSet<TaskId> = followers.flat_map(|index| graph.sources(index)).copied().collect();
        for source in sources {
            let mut done: Vec<Option<Time>> = vec![None; tasks.len()];
            for index in graph.order().iter().copied() {
                let before = tasks[index].after.iter().filter_map(|before| done[*before]).max();
                let begin = if index == source { Some(Time::ZERO) } else { before };
                done[index] = begin.map(|begin| begin + alone(index));
            }
            for (shortest, done) in shortest.iter_mut().zip(done) {
                *shortest = [*shortest, done].into_iter().flatten().min();
            }
        }
        for (least, shortest) in least.iter_mut().zip(shortest) {
            *least = shortest.unwrap_or(*least);
        }
    }
    let is_listed = |index: &TaskId| matches!(tasks[*index].arrival, Arrival::Listed(_));
    let recurring = TaskId::all(tasks.len()).filter(|index| !is_listed(index));
    recurring.map(|index| (index, least[index], tasks[index].deadline)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Core, Costs, Mode, ResourceId, Section, Speed};

    /// Two cores, the second of them with a tenth of the speed of the first.
    fn machine(tasks: Vec<Task>) -> TaskSet {
        let core = |name: &str, speed: u32| Core::new(name, Speed(speed));
        TaskSet::new("s", tasks, 2).with_machine(vec![core("big", 1000), core("lit", 100)])
    }

    fn bound(name: &str, wcet: u64, cores: &[u32]) -> Task {
        Task::periodic(name, Time(100), Time(wcet)).with_cores(CoreSet::of(cores.iter().copied().map(CoreId)))
    }

    fn found(tasks: Vec<Task>) -> Option<Impossible> {
        refutations(&machine(tasks)).into_iter().next().map(|found| found.why)
    }

    #[test]
    fn a_job_that_is_too_long_for_its_fastest_core_is_hopeless() {
        let free = || Task::periodic("free", Time(100), Time(50));
        assert_eq!(found(vec![free(), bound("a", 10, &[1])]), None, "all of the slow core");
        let late = Some(Impossible::Job { task: TaskId(1), time: Time(110), deadline: Time(100) });
        assert_eq!(found(vec![free(), bound("a", 11, &[1])]), late);
        assert_eq!(found(vec![free(), bound("a", 11, &[0, 1])]), None, "the other core is fast enough");
    }

    #[test]
    fn tasks_that_share_their_only_cores_overload_them_together() {
        let two = |a: u64, b: u64| found(vec![bound("a", a, &[1]), bound("b", b, &[1]), bound("c", 50, &[0, 1])]);
        assert_eq!(two(5, 5), None);
        let Some(Impossible::Cores { cores, utilization, speed }) = two(5, 6) else { panic!("not found") };
        assert_eq!((cores, (100.0 * utilization).round(), speed), (vec![CoreId(1)], 11.0, 0.1));
    }

    #[test]
    fn a_core_that_is_only_for_others_takes_no_load_of_the_rest() {
        let task = |name: &str, wcet: u64| Task::periodic(name, Time(100), Time(wcet));
        let tasks = |free: u64, kernel: u64| vec![task("free", free), task("more", 60), bound("kernel", kernel, &[1])];
        let found = |only: bool, free: u64, kernel: u64| {
            let cores = vec![Core::new("cpu", Speed::FULL), Core::new("gpu", Speed::FULL).with_only(only)];
            let set = TaskSet::new("s", tasks(free, kernel), 2).with_machine(cores);
            refutations(&set).into_iter().next().map(|found| found.why)
        };
        assert_eq!(found(false, 50, 30), None, "1.4 of two cores");
        assert!(matches!(found(true, 50, 30), Some(Impossible::Cores { cores, .. }) if cores == [CoreId(0)]));
        assert_eq!(found(true, 40, 90), None);
    }

    fn reasons(set: &TaskSet) -> Vec<Refutation> {
        refutations(set)
    }

    #[test]
    fn locks_costs_chains_and_lists_hide_no_overload() {
        let ms = Time::from_ms;
        let task = |name: &str, wcet: u64| Task::periodic(name, ms(10), ms(wcet));
        let mut set = TaskSet::new("s", vec![task("a", 6), task("b", 6), task("c", 3)], 1);
        set.system.set_resources(vec!["bus".into()]);
        set.system.tasks_mut()[0].sections = vec![Section { resource: ResourceId(0), at: ms(1), length: ms(1) }];
        set.system.tasks_mut()[2].after = vec![TaskId(1)];
        set.system.set_costs(Costs { decision: Time(5), ..Costs::default() });
        let found = reasons(&set);
        assert!(
            matches!(found[..], [Refutation { mode: None, why: Impossible::Overload { speed: 1.0, .. } }]),
            "{found:?}"
        );
        // On two cores it fits, but c comes after b.
        set.system.set_cores(2);
        assert_eq!(reasons(&set), []);
        set.system.tasks_mut()[2].deadline = ms(8);
        assert_eq!(
            reasons(&set),
            [Refutation { mode: None, why: Impossible::Job { task: TaskId(2), time: ms(9), deadline: ms(8) } }]
        );
    }

    #[test]
    fn what_is_due_early_can_be_too_much_although_the_utilization_fits() {
        let ms = Time::from_ms;
        let due = |wcet: u64| Task::periodic("t", ms(100), ms(wcet)).with_deadline(ms(10));
        assert_eq!(reasons(&TaskSet::new("s", vec![due(10), due(10)], 2)), []);
        let found = reasons(&TaskSet::new("s", vec![due(7), due(7), due(7)], 2));
        let why = Impossible::Demand { interval: ms(10), work: ms(21), speed: 2.0 };
        assert_eq!(found, [Refutation { mode: None, why }]);
        let apart = due(7).with_offset(ms(50));
        assert_eq!(reasons(&TaskSet::new("s", vec![due(7), due(7), apart], 2)), [], "they never arrive together");
    }

    #[test]
    fn each_mode_is_judged_by_itself() {
        let ms = Time::from_ms;
        let mode = |at: u64, work: f64, rate: f64| Mode::new("m", ms(at)).with_work(work).with_rate(rate);
        let alone = |mode: Mode| mode.with_stop(vec![TaskId(1)]);
        let mut set =
            TaskSet::new("s", vec![Task::periodic("a", ms(10), ms(8)), Task::periodic("b", ms(10), ms(1))], 1);
        set.set_modes(vec![mode(100, 1.0, 1.2), alone(mode(200, 1.0, 1.2)), mode(300, 1.0, 0.5)]);
        let modes = |set: &TaskSet| reasons(set).into_iter().map(|found| found.mode).collect::<Vec<_>>();
        assert_eq!(modes(&set), [], "100 ms of little more than a core's work can be done, if the rest is due later");
        set.set_modes(vec![mode(100, 1.3, 1.2), mode(3_000, 1.0, 1.0)]);
        assert_eq!(modes(&set), [Some(0)]);
        set.set_modes(vec![mode(100, 1.0, 1.2)]);
        assert_eq!(modes(&set), [Some(0)], "it does not end");
        // Jobs of 16 ms are hopeless, but none need arrive within 9 ms; within 12 ms one does, unless the next one was
        // delayed by a slow mode.
        let short = |to: u64| vec![alone(mode(100, 2.0, 1.0)), mode(to, 1.0, 1.0)];
        set.set_modes(short(109));
        assert_eq!(modes(&set), []);
        set.set_modes(short(112));
        assert_eq!(modes(&set), [Some(0)]);
        set.set_modes([vec![mode(50, 1.0, 0.2)], short(112)].concat());
        assert_eq!(modes(&set), []);
        set.set_modes(vec![mode(0, 1.0, 1.2), mode(10_000, 1.0, 1.0)]);
        assert_eq!(modes(&set), [Some(0)]);
    }

    #[test]
    fn a_mode_slows_or_speeds_single_tasks() {
        let ms = Time::from_ms;
        let tasks = vec![Task::periodic("a", ms(10), ms(6)), Task::periodic("b", ms(10), ms(5))];
        let set = |slower: Vec<(TaskId, f64)>| {
            let mode = Mode::new("m", ms(1_000)).with_slower(slower);
            reasons(&TaskSet::new("s", tasks.clone(), 1).with_modes(vec![Mode::new("all", Time::ZERO), mode]))
        };
        let last = |found: Vec<Refutation>| found.iter().any(|found| found.mode == Some(1));
        assert!(last(set(vec![])), "11 ms in each 10 ms");
        assert!(!last(set(vec![(TaskId(1), 1.25)])), "6 ms in 10 and 5 in 12.5 are one core");
        assert!(last(set(vec![(TaskId(1), 1.2)])));
        assert!(last(set(vec![(TaskId(0), 2.0), (TaskId(1), 0.7)])));
        // Jobs of a are hopeless in the second mode, which lasts 12 ms. One need not arrive in it if a was slower before.
        let short = |slower: Vec<(TaskId, f64)>| {
            let modes = vec![
                Mode::new("before", ms(50)).with_slower(slower),
                Mode::new("short", ms(100)).with_work(2.0).with_stop(vec![TaskId(1)]),
                Mode::new("after", ms(112)),
            ];
            reasons(&TaskSet::new("s", tasks.clone(), 2).with_modes(modes))
        };
        assert_eq!(short(vec![]).iter().map(|found| found.mode).collect::<Vec<_>>(), [Some(1)]);
        assert_eq!(short(vec![(TaskId(0), 1.5)]), []);
        assert_ne!(short(vec![(TaskId(1), 1.5)]), [], "only the other one was slower");
    }
}
