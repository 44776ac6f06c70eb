//! The tasks of a system as the proof of a guarantee sees them: which of them can be guaranteed at all, which of them
//! fit together, and on which cores.
//!
//! Where cores have different speeds, a job of a guaranteed task counts with the time that it takes on the slowest core
//! that its task may use: wherever it runs, it is done no later. A task belongs to a core that it may use.

use temponet_analysis::{
    Blocking, Demand, NotAnalyzable, Outcome, Sporadic, WorstCase, edf_partition, edf_partition_with, is_schedulable,
    is_schedulable_with, qpa,
};
use temponet_task::{Arrival, CoreId, Protocol, ResourceId, Speed, System, Task, TaskId, Time};
use temponet_wording::listed;

use super::guarantee::{Guarantee, Reserved, Ruled, as_set};
use super::interrupts;
use super::no_guarantee::WhyNot;
use super::slices::Slices;
use super::stretches::{Stretches, longest_region};

/// Returns the reason in the task itself why it cannot be guaranteed, precedence and resources aside.
pub(super) fn not_reservable(task: &Task) -> Option<WhyNot> {
    match task.arrival {
        Arrival::Listed(_) => Some(WhyNot::DoesNotRecur),
        Arrival::Burst { jobs, .. } if jobs > 1 && task.jitter > Time::ZERO => Some(WhyNot::ScatteredBurst),
        _ if task.period().is_some_and(|period| task.jitter > period) => Some(WhyNot::OvertakingReleases),
        _ => None,
    }
}

/// Returns the speed of the slowest core that a task may use.
fn slowest(system: &System, task: &Task) -> Speed {
    task.cores.iter(system.cores()).map(|core| system.machine().speed(core)).min().unwrap_or(Speed::FULL)
}

/// The tasks of a system as the proof of a guarantee sees them.
pub(super) struct ProvableTasks<'a> {
    pub system: &'a System,
    stretches: Stretches<'a>,
    slices: Slices,
    /// Worst case of the tasks that can be guaranteed.
    worst_case: WorstCase,
    /// Place of each task in the worst case, or why it cannot be guaranteed.
    sporadic: Vec<Result<usize, WhyNot>>,
    /// Execution time up to which jobs of the task at each place are guaranteed.
    budgets: Vec<Time>,
    /// Longest stretch of a job of the task at each place on its own core, where it is in turn.
    held: Vec<Time>,
    covers_overruns: bool,
}

/// Cores of tasks that fit.
pub(super) struct Fit {
    pub core_of: Vec<CoreId>,
    pub is_exact: bool,
}

impl<'a> ProvableTasks<'a> {
    /// The tasks as they are with every one due at its deadline, and those that come after others left out.
    pub fn of(system: &'a System, covers_overruns: bool) -> Result<ProvableTasks<'a>, NotAnalyzable> {
        ProvableTasks::with(system, covers_overruns, Slices::none(system))
    }

    /// The tasks with the deadlines of followers divided among those that are `kept`. Returns none if no such task
    /// follows another, or if modes lengthen deadlines, which would release followers later.
    pub fn sliced(&self, is_kept: impl Fn(TaskId) -> bool) -> Option<ProvableTasks<'a>> {
        if self.system.stretch() > 1.0 || !self.system.has_precedence() {
            return None;
        }
        let tasks = self.system.tasks();
        let time = |task: &Task| {
            let wcet = task.wcet_high.filter(|_| self.covers_overruns).unwrap_or(task.wcet);
            let work = wcet + self.worst_case.switching;
            Time(slowest(self.system, task).time_for(work).0.saturating_add(self.stretches.waits_of(task).0))
        };
        let times: Vec<Time> = tasks.iter().map(time).collect();
        let is_able = |task: &Task| not_reservable(task).is_none() && self.stretches.problem(task).is_none();
        let is_kept = self.system.task_ids().map(|id| is_kept(id) && is_able(&tasks[id])).collect();
        let slices = Slices::of(self.system, &times, is_kept)?;
        ProvableTasks::with(self.system, self.covers_overruns, slices).ok()
    }

    fn with(system: &'a System, covers_overruns: bool, slices: Slices) -> Result<ProvableTasks<'a>, NotAnalyzable> {
        let stretches = Stretches::of(system);
        let why_not = |id: TaskId| {
            let task = &system.tasks()[id];
            let (lead, jitter) = (slices.lead[id], slices.jitter[id]);
            match not_reservable(task).or_else(|| stretches.problem(task)) {
                Some(why) => Some(why),
                None if task.after.is_empty() => None,
                None if system.stretch() > 1.0 => Some(WhyNot::FollowsInModes),
                None if jitter.is_none() => Some(WhyNot::Follows),
                None if slices.is_too_long[id] => Some(WhyNot::PathTooLong),
                None if jitter >= Some(task.deadline - lead) => Some(WhyNot::FollowsTooLate),
                None if jitter > task.period() => Some(WhyNot::OvertakingReleases),
                None => None,
            }
        };
        let why_not: Vec<Option<WhyNot>> = system.task_ids().map(why_not).collect();
        let mut set = as_set(system, covers_overruns);
        let mut tasks = set.system.tasks_mut();
        for (id, task) in system.task_ids().zip(tasks.iter_mut()) {
            (task.deadline, task.jitter) = (task.deadline - slices.lead[id], slices.jitter[id].unwrap_or_default());
            task.after.clear();
        }
        let mut index = 0..;
        tasks.retain(|_| index.next().is_some_and(|index: usize| why_not[index].is_none()));
        drop(tasks);
        let mut places = 0..;
        let place = |why: Option<WhyNot>| match why {
            Some(why) => Err(why),
            None => places.next().ok_or(WhyNot::DoesNotFit),
        };
        let sporadic: Vec<Result<usize, WhyNot>> = why_not.into_iter().map(place).collect();
        let mut worst_case = WorstCase::of(&set)?;
        let budgets: Vec<Time> = worst_case.tasks.iter().map(|task| task.wcet - worst_case.switching).collect();
        if !system.machine().is_full_speed() {
            for task in set.system.tasks_mut().iter_mut() {
                let speed = slowest(system, task);
                (task.wcet, task.bcet) = (speed.time_for(task.wcet), speed.time_for(task.bcet));
                task.wcet_high = task.wcet_high.map(|wcet| speed.time_for(wcet));
            }
            worst_case = WorstCase::of(&set)?;
        }
        let mut held = vec![Time::ZERO; budgets.len()];
        for (task, place) in system.tasks().iter().zip(&sporadic) {
            let Ok(place) = *place else { continue };
            let region = task.preemption.longest_region(budgets[place]);
            held[place] = stretches.longest(task, region, slowest(system, task), |_| true);
            let wcet = &mut worst_case.tasks[place].wcet;
            *wcet = Time(wcet.0.saturating_add(stretches.waits_of(task).0));
        }
        Ok(ProvableTasks { system, stretches, slices, worst_case, sporadic, budgets, held, covers_overruns })
    }

    /// Whether every task can be guaranteed if they fit.
    pub fn covers_all(&self) -> bool {
        self.sporadic.iter().all(Result::is_ok)
    }

    /// Why each task cannot be guaranteed, whether or not it would fit.
    pub fn why_not(&self) -> Vec<Option<WhyNot>> {
        self.sporadic.iter().map(|place| place.as_ref().err().cloned()).collect()
    }

    /// Why a task that does not fit by itself does not.
    pub fn why_not_alone(&self, task: TaskId) -> WhyNot {
        let stated = &self.system.tasks()[task];
        let waits = self.stretches.waits_of(stated);
        let Some(place) = self.place(task) else { return WhyNot::DoesNotFitAlone };
        let fits = |change: &dyn Fn(&mut Sporadic)| {
            let mut alone = self.worst_case.tasks[place];
            change(&mut alone);
            is_schedulable(&[Demand::from(&alone)])
        };
        let slowest = slowest(self.system, stated);
        let fastest = self.system.fastest(stated);
        let at_best = fastest.time_for(self.budgets[place] + self.worst_case.switching);
        if fastest > slowest && fits(&|task| task.wcet = Time(at_best.0.saturating_add(waits.0))) {
            let mut usable = stated.cores.iter(self.system.cores());
            let core = usable.find(|core| self.system.machine().speed(*core) == slowest).unwrap_or(CoreId(0));
            return WhyNot::TooSlowACore(self.system.core_name(core));
        }
        let whole_deadline = |task: &mut Sporadic| (task.deadline, task.jitter) = (stated.deadline, stated.jitter);
        if waits > Time::ZERO && fits(&|task| task.wcet = task.wcet.saturating_sub(waits)) {
            return WhyNot::WaitsTooLong(self.awaited(stated));
        }
        if fits(&whole_deadline) { WhyNot::ShareTooShort } else { WhyNot::DoesNotFitAlone }
    }

    /// The names of the resources that a task may have to wait for.
    fn awaited(&self, task: &Task) -> String {
        let resources = task.sections.iter().map(|section| section.resource);
        let mut awaited: Vec<ResourceId> = resources.filter(|id| self.stretches.wait(*id) > Time::ZERO).collect();
        awaited.sort_unstable();
        awaited.dedup();
        listed(awaited.into_iter().map(|resource| self.system.resources()[resource].as_str()), usize::MAX)
    }

    /// Place of a task in the worst case; none if it cannot be guaranteed.
    fn place(&self, task: TaskId) -> Option<usize> {
        self.sporadic[task].as_ref().ok().copied()
    }

    /// Places of tasks in the worst case; none if one of them cannot be guaranteed.
    fn places(&self, tasks: &[TaskId]) -> Option<Vec<usize>> {
        tasks.iter().map(|task| self.place(*task)).collect()
    }

    /// Returns a core for each of the tasks; none if they do not fit.
    pub fn fit(&self, tasks: &[TaskId]) -> Option<Fit> {
        let cores = self.system.cores();
        if cores == 1 {
            let is_exact = self.fit_on_a_core(tasks)?;
            return Some(Fit { core_of: vec![CoreId(0); tasks.len()], is_exact });
        }
        // On several cores, the job on core 0 pays for every decision, however many there are.
        let first = usize::from(self.system.costs().decision > Time::ZERO);
        let places = self.places(tasks)?;
        let cluster = self.worst_case.cluster(places.iter().copied(), first..cores);
        let core_of = match places.iter().any(|place| self.held[*place] > Time::ZERO) {
            false => edf_partition(&cluster)?,
            true => edf_partition_with(&cluster, |_, members| {
                self.blocking(members.iter().map(|member| places[*member])).collect()
            })?,
        };
        Some(Fit { core_of: core_of.into_iter().map(|core| CoreId::new(core + first)).collect(), is_exact: false })
    }

    /// Returns whether EDF on one core meets every deadline of the tasks only because of their exact arrivals; none if
    /// it does not.
    pub fn fit_on_a_core(&self, tasks: &[TaskId]) -> Option<bool> {
        let places = self.places(tasks)?;
        let part = self.worst_case.part(places.iter().copied(), 1);
        let is_alone = self.system.cores() == 1;
        let demands: Vec<Demand> = if is_alone && self.system.costs().decision > Time::ZERO {
            interrupts::demands(self.system, &part)?
        } else {
            part.tasks.iter().map(Demand::from).collect()
        };
        let blocking: Vec<Blocking> = self.blocking(places.iter().copied()).collect();
        let fits = match blocking.is_empty() {
            true => is_schedulable(&demands),
            false => is_schedulable_with(&demands, &blocking),
        };
        if fits {
            return Some(false);
        }
        let is_plain = !self.system.is_limited() && !self.system.has_sections() && !self.system.has_precedence();
        (is_alone && is_plain && !part.has_costs && qpa(&part) == Outcome::Schedulable).then_some(true)
    }

    /// How long guaranteed tasks of a core can delay those that are due earlier. A job that keeps the core began a
    /// nanosecond before.
    ///
    /// No task delays itself: its jobs are released in the order of their deadlines. So once its own demand counts,
    /// which is before its deadline where it has jitter, its stretch stands in the place of one of its jobs. Only modes
    /// that lengthen deadlines change the order, and they lengthen that of the job that keeps the core.
    fn blocking(&self, places: impl Iterator<Item = usize>) -> impl Iterator<Item = Blocking> {
        let held = places.filter(|place| self.held[*place] > Time::ZERO);
        held.flat_map(|place| {
            let (task, length) = (&self.worst_case.tasks[place], Time(self.held[place].0 - 1));
            let longest = (task.deadline.0 as f64 * self.system.stretch()).ceil() as u64;
            if longest > task.deadline.0 {
                return [Some(Blocking { deadline: Time(longest.saturating_add(1)), length }), None];
            }
            let before = Blocking { deadline: task.deadline.saturating_sub(task.jitter), length };
            let after = Blocking { deadline: task.deadline, length: length.saturating_sub(task.wcet) };
            [Some(before), Some(after).filter(|after| after.length > Time::ZERO)]
        })
        .flatten()
    }

    /// Longest stretch of another task that the guaranteed tasks of a core can wait for, whenever it begins.
    fn patience(&self, core: CoreId, own: &[TaskId], rules: &[Option<Ruled>]) -> Time {
        if own.is_empty() {
            return Time::NEVER;
        }
        if !self.system.is_limited() && rules.iter().all(Option::is_none) {
            return Time::ZERO;
        }
        let others = self.system.task_ids().filter(|task| !own.contains(task));
        let others = others.map(|task| &self.system.tasks()[task]).filter(|task| task.cores.contains(core));
        let speed = self.system.machine().speed(core);
        let is_ruled = |resource: ResourceId| matches!(rules.get(resource.index()), Some(Some(_)));
        let longest = |task: &Task| self.stretches.longest(task, longest_region(task), speed, is_ruled);
        let mut stretches: Vec<Time> = others.map(longest).filter(|stretch| *stretch > Time::ZERO).collect();
        stretches.sort_unstable();
        stretches.dedup();
        let places = self.places(own).unwrap_or_default();
        let demands: Vec<Demand> = places.iter().map(|place| Demand::from(&self.worst_case.tasks[*place])).collect();
        let mut blocking: Vec<Blocking> = self.blocking(places.iter().copied()).collect();
        let fits = stretches.partition_point(|stretch| {
            blocking.push(Blocking { deadline: Time::NEVER, length: Time(stretch.0 - 1) });
            let fits = is_schedulable_with(&demands, &blocking);
            blocking.pop();
            fits
        });
        fits.checked_sub(1).map_or(Time::ZERO, |last| stretches[last])
    }

    /// The guarantee of tasks that fit. `why_not` says for each task of the system why it is not among them.
    pub fn guarantee(&self, tasks: &[TaskId], fit: &Fit, why_not: Vec<Option<WhyNot>>) -> Guarantee {
        let mut reserved = vec![None; self.system.tasks().len()];
        for (task, core) in tasks.iter().zip(&fit.core_of) {
            reserved[*task] = self.place(*task).map(|place| {
                let Sporadic { jobs, deadline, period, jitter, .. } = self.worst_case.tasks[place];
                let (budget, work) = (self.budgets[place], self.worst_case.tasks[place].work());
                let slowest = slowest(self.system, &self.system.tasks()[*task]);
                let lead = self.slices.lead[*task];
                Reserved { core: *core, budget, slowest, work, jobs, deadline: deadline + lead, lead, period, jitter }
            });
        }
        let rules = self.rules(tasks);
        let own = |core: CoreId| -> Vec<TaskId> {
            let of_core = tasks.iter().zip(&fit.core_of).filter(|(_, own)| **own == core);
            of_core.map(|(task, _)| *task).collect()
        };
        let patience = self.system.core_ids().map(|core| self.patience(core, &own(core), &rules)).collect();
        let names = self.system.tasks().iter().map(|task| task.name.clone()).collect();
        let (is_exact, covers_overruns, is_divided) = (fit.is_exact, self.covers_overruns, self.slices.is_divided);
        let is_part = self.system.tasks().iter().map(|task| task.is_part).collect();
        Guarantee { reserved, is_exact, patience, rules, covers_overruns, is_divided, why_not, names, is_part }
    }

    /// The resources that the shield rules: those that guaranteed tasks use. Under the ceiling protocol they are all
    /// resources, because there any section can keep a job from starting.
    pub fn rules(&self, guaranteed: &[TaskId]) -> Vec<Option<Ruled>> {
        let uses = |task: &TaskId, resource: ResourceId| {
            self.system.tasks()[*task].sections.iter().any(|section| section.resource == resource)
        };
        let ruled = |resource: ResourceId| {
            let is_ruled = guaranteed.iter().any(|task| uses(task, resource))
                || (self.system.protocol() == Protocol::Ceiling && !guaranteed.is_empty());
            let (wait, longest) = (self.stretches.wait(resource), self.stretches.longest_section(resource));
            is_ruled.then_some(Ruled { wait, longest })
        };
        ResourceId::all(self.system.resources().len()).map(ruled).collect()
    }
}
