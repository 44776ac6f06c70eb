//! Settings that may serve a set, found by rules. What they guarantee is proved afterwards (`proof.rs`), so a rule may
//! be wrong without harm.
//!
//! Where not everything fits, tasks are given up: those that matter least for the goal run below all others, as far as
//! time is left. What matters is, in this order, criticality, a guarantee that the set asks for, value for work, and
//! little load.

use std::cmp::Reverse;

use temponet_analysis::{Outcome, Sporadic, StepBudget, WorstCase, audsley, partition_by, priority_partition, qpa};
use temponet_task::{CoreId, CoreSet, TaskId, TaskSet, Time};

use super::settings::{ADMITTED, Policy, Setting, Settings, highest_for, levels, time_to_serve, wakes_once};

/// Settings with a name.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is done, in a few words.
    pub name: String,
    /// The settings.
    pub settings: Settings,
    /// Tasks that are given up: they run in time that is left.
    pub given_up: Vec<TaskId>,
}

/// Shortest and longest period of a reservation, and shortest budget, that the kernel admits.
const PERIODS: [Time; 2] = [Time::from_us(100), Time::from_us(1 << 22)];
const SHORTEST_BUDGET: Time = Time(1 << 10);

/// Largest number of tasks for which partitions are searched.
const MOST_TASKS: usize = 200;

/// Returns the plans for a set. `margin` is what a budget is to have beyond the wcet, as a share of it.
pub fn plans(set: &TaskSet, margin: f64) -> Vec<Plan> {
    let search = Search {
        set,
        worst_case: WorstCase::ignoring_precedence(set).ok().or_else(|| WorstCase::ignoring_sections(set).ok()),
    };
    let mut plans = Vec::new();
    if set.cores() == 1 {
        plans.extend(search.fifo_on_cores("FIFO"));
    } else {
        plans.push(search.fifo_by_deadline("FIFO, all cores"));
        plans.extend(search.fifo_on_cores("FIFO, pinned"));
    }
    for has_partitions in [false, true] {
        if !set.has_sections() && (has_partitions != (set.cores() == 1)) {
            plans.extend(search.reservations(margin, has_partitions));
        }
    }
    plans
}

/// Reservations for some of the tasks.
struct Reserved {
    margin: f64,
    /// Whether each task has one, in the order of importance.
    is_kept: Vec<bool>,
    kept: Vec<usize>,
    /// A policy for each task.
    wanted: Vec<Policy>,
}

struct Search<'a> {
    set: &'a TaskSet,
    /// The worst case as if no task depended on another; none if jobs do not recur.
    worst_case: Option<WorstCase>,
}

impl Search<'_> {
    /// The tasks in the order in which they are kept.
    fn by_importance(&self) -> Vec<usize> {
        let tasks = self.set.tasks();
        let has_values = self.set.has_values();
        let worth = |task: usize| {
            let value = if has_values { tasks[task].value } else { 1.0 };
            value / tasks[task].wcet.0 as f64
        };
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by(|a, b| {
            let rank = |task: usize| Reverse((tasks[task].criticality, tasks[task].guarantee));
            let by_worth = || worth(*b).total_cmp(&worth(*a));
            let by_load = || tasks[*a].utilization().total_cmp(&tasks[*b].utilization());
            rank(*a).cmp(&rank(*b)).then_with(by_worth).then_with(by_load)
        });
        order
    }

    fn by_deadline(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.set.tasks().len()).collect();
        order.sort_by_key(|task| (self.set.tasks()[*task].deadline, *task));
        order
    }

    /// SCHED_FIFO for all on all the processors that they may use, deadline monotonic.
    fn fifo_by_deadline(&self, name: &str) -> Plan {
        let order = self.by_deadline();
        let levels = levels(order.len(), 1, highest_for(order.len()));
        let mut threads = self.fair();
        order.iter().zip(levels).for_each(|(task, priority)| threads[*task].policy = Policy::Fifo { priority });
        Plan {
            name: format!("{name}, by deadline"),
            settings: Settings { threads, has_partitions: false },
            given_up: Vec::new(),
        }
    }

    /// SCHED_OTHER for all.
    fn fair(&self) -> Vec<Setting> {
        let thread =
            |task: &temponet_task::Task| Setting { policy: Policy::Other { nice: 0 }, cores: task.cores.clone() };
        self.set.tasks().iter().map(thread).collect()
    }

    /// SCHED_FIFO, every kept thread on one processor: an order for each that passes the test, by Audsley's search. One
    /// plan if all tasks are kept, and two ways to run the others if not.
    fn fifo_on_cores(&self, name: &str) -> Vec<Plan> {
        let Some(worst_case) = self.worst_case.as_ref().filter(|case| case.tasks.len() <= MOST_TASKS) else {
            return if self.set.cores() == 1 { vec![self.fifo_by_deadline(name)] } else { Vec::new() };
        };
        let orders = match priority_partition(worst_case) {
            Some(core_of) => self.orders(worst_case, &core_of),
            None => None,
        };
        if let Some(orders) = orders {
            return vec![self.fifo(name.into(), &orders, &[], false)];
        }
        let (orders, given_up) = self.keep_what_fits(worst_case);
        let mut plans = Vec::new();
        if orders.iter().any(|order| !order.is_empty()) {
            plans.push(self.fifo(format!("{name}, {} given up", given_up.len()), &orders, &given_up, true));
            plans.push(self.fifo(format!("{name}, {} given up to OTHER", given_up.len()), &orders, &given_up, false));
        }
        if self.set.cores() == 1 {
            plans.push(self.fifo_by_deadline(name));
        } else if let Some(core_of) = partition_by(worst_case, |_, _| Some(true)) {
            // By load alone: on average, jobs may take less than their wcets.
            let mut orders = vec![Vec::new(); self.set.cores()];
            self.by_deadline().into_iter().for_each(|task| orders[core_of[task]].push(task));
            plans.push(self.fifo(format!("{name}, by load and deadline"), &orders, &[], false));
        }
        plans
    }

    /// An order for each core, from the highest priority on; none if a core has none.
    fn orders(&self, worst_case: &WorstCase, core_of: &[usize]) -> Option<Vec<Vec<usize>>> {
        let on = |core: usize| -> Vec<usize> { (0..core_of.len()).filter(|place| core_of[*place] == core).collect() };
        (0..self.set.cores()).map(|core| order_on(worst_case, core, &on(core), &[], &mut StepBudget::large())).collect()
    }

    /// Keeps tasks in the order of their importance, each on the emptiest core on which it fits. Returns an order for
    /// each core, and the tasks that fit nowhere.
    fn keep_what_fits(&self, worst_case: &WorstCase) -> (Vec<Vec<usize>>, Vec<usize>) {
        let cores = self.set.cores();
        let (mut orders, mut given_up) = (vec![Vec::new(); cores], Vec::new());
        let load = |place: &usize| self.set.tasks()[*place].utilization();
        let mut budget = StepBudget::large();
        let important = self.by_importance();
        for (at, place) in important.iter().copied().enumerate() {
            let mut by_room: Vec<usize> =
                (0..cores).filter(|core| worst_case.may_use(place, CoreId::new(*core))).collect();
            by_room.sort_by(|a, b| {
                let total = |core: usize| orders[core].iter().map(load).sum::<f64>();
                total(*a).total_cmp(&total(*b))
            });
            // Whoever is not kept may run on any core, and hold it.
            let others: Vec<usize> = important[at + 1..].iter().chain(&given_up).copied().collect();
            let found = by_room.into_iter().find_map(|core| {
                let kept: Vec<usize> = orders[core].iter().copied().chain([place]).collect();
                Some((core, order_on(worst_case, core, &kept, &others, &mut budget)?))
            });
            match found {
                Some((core, order)) => orders[core] = order,
                None => given_up.push(place),
            }
        }
        (orders, given_up)
    }

    /// Settings from an order for each core. Tasks that are given up may use every core, at the lowest priorities or as
    /// fair threads.
    fn fifo(&self, name: String, orders: &[Vec<usize>], given_up: &[usize], is_below: bool) -> Plan {
        let mut threads = self.fair();
        let longest = orders.iter().map(Vec::len).max().unwrap_or_default();
        let below = if is_below { given_up.len() } else { 0 };
        let high = highest_for(longest + below);
        let lowest = below.min(usize::from(high).saturating_sub(longest).max(1)) as u8;
        for (core, order) in orders.iter().enumerate() {
            for (place, priority) in order.iter().zip(levels(order.len(), lowest + 1, high)) {
                threads[*place] =
                    Setting { policy: Policy::Fifo { priority }, cores: CoreSet::of([CoreId::new(core)]) };
            }
        }
        if is_below {
            let levels = levels(given_up.len(), 1, lowest);
            given_up
                .iter()
                .zip(levels)
                .for_each(|(place, priority)| threads[*place].policy = Policy::Fifo { priority });
        }
        let given_up = given_up.iter().map(|place| TaskId::new(*place)).collect();
        Plan { name, settings: Settings { threads, has_partitions: false }, given_up }
    }

    /// Reservations on all processors, or on single ones, with the largest margin up to `margin` with which all fit, and
    /// for the most important tasks if not all fit without any. The others are fair threads or SCHED_FIFO.
    fn reservations(&self, margin: f64, has_partitions: bool) -> Vec<Plan> {
        let Some(worst_case) = &self.worst_case else { return Vec::new() };
        if !has_partitions && worst_case.is_bound() || worst_case.is_limited() {
            return Vec::new();
        }
        let all: Vec<usize> = (0..worst_case.tasks.len()).collect();
        let margins = [margin, margin / 2.0, margin / 4.0];
        for margin in margins {
            let wanted: Option<Vec<Policy>> = worst_case.tasks.iter().map(|task| reservation(task, margin)).collect();
            if let Some(settings) = wanted.and_then(|wanted| self.reserved(worst_case, &all, &wanted, has_partitions)) {
                return vec![Plan { name: reserved_name(margin, has_partitions, 0), settings, given_up: Vec::new() }];
            }
        }
        // Whoever matters most is kept, by a smaller margin if need be.
        let found = margins.map(|margin| self.reserve_for_some(worst_case, margin, has_partitions));
        let better = |best: Reserved, next: Reserved| if next.is_kept > best.is_kept { next } else { best };
        let Some(Reserved { margin, kept, wanted, .. }) = found.into_iter().reduce(better) else { return Vec::new() };
        let rest: Vec<usize> = self.by_deadline().into_iter().filter(|place| !kept.contains(place)).collect();
        let Some(mut settings) = self.reserved(worst_case, &kept, &wanted, has_partitions).filter(|_| !kept.is_empty())
        else {
            return Vec::new();
        };
        let priorities = levels(rest.len(), 1, highest_for(rest.len()));
        rest.iter()
            .zip(priorities)
            .for_each(|(place, priority)| settings.threads[*place].policy = Policy::Fifo { priority });
        let given_up = rest.iter().map(|place| TaskId::new(*place)).collect();
        vec![Plan { name: reserved_name(margin, has_partitions, rest.len()), settings, given_up }]
    }

    /// Reserves with a margin for the most important tasks for which that is possible.
    fn reserve_for_some(&self, worst_case: &WorstCase, margin: f64, has_partitions: bool) -> Reserved {
        let wanted = vec![Policy::Other { nice: 0 }; worst_case.tasks.len()];
        let mut found = Reserved { margin, is_kept: Vec::new(), kept: Vec::new(), wanted };
        for place in self.by_importance() {
            let policy = reservation(&worst_case.tasks[place], margin);
            let fits = policy.is_some_and(|policy| {
                found.kept.push(place);
                found.wanted[place] = policy;
                self.reserved(worst_case, &found.kept, &found.wanted, has_partitions).is_some()
            });
            if !fits && policy.is_some() {
                found.kept.pop();
                found.wanted[place] = Policy::Other { nice: 0 };
            }
            found.is_kept.push(fits);
        }
        found
    }

    /// Settings with these reservations if the kernel admits them; on single processors also only if they can be served.
    fn reserved(
        &self,
        worst_case: &WorstCase,
        kept: &[usize],
        wanted: &[Policy],
        has_partitions: bool,
    ) -> Option<Settings> {
        let mut threads = self.fair();
        kept.iter().for_each(|place| threads[*place].policy = wanted[*place]);
        if has_partitions {
            let mut served = worst_case.cluster(kept.iter().copied(), 0..worst_case.cores);
            for (task, place) in served.tasks.iter_mut().zip(kept) {
                *task = wanted[*place].served(task);
            }
            let fits = |core: usize, members: &[usize]| {
                let bandwidth: f64 = members.iter().map(|at| wanted[kept[*at]].bandwidth()).sum();
                let part = served.cluster(members.iter().copied(), core..core + 1);
                bandwidth <= ADMITTED - 1e-9 && qpa(&part) == Outcome::Schedulable
            };
            let found = partition_by(&served, |core, members| Some(fits(core, members)));
            for (place, core) in kept.iter().zip(found?) {
                threads[*place].cores = CoreSet::of([CoreId::new(core)]);
            }
        }
        let settings = Settings { threads, has_partitions };
        settings.is_admitted(self.set.cores()).then_some(settings)
    }
}

fn reserved_name(margin: f64, has_partitions: bool, given_up: usize) -> String {
    let place = if has_partitions { " in cpusets" } else { "" };
    let given_up = if given_up > 0 { format!(", {given_up} given up") } else { String::new() };
    format!("DEADLINE{place}, wcet + {}%{given_up}", (1000.0 * margin).round() / 10.0)
}

/// The reservation for a task; none if the kernel has none that serves it.
fn reservation(task: &Sporadic, margin: f64) -> Option<Policy> {
    let [shortest, longest] = PERIODS;
    let period = task.period.min(longest);
    let deadline = time_to_serve(task).min(period);
    let wanted = Time((task.work() as f64 * (1.0 + margin)).ceil().min(1e18) as u64);
    // Whole microseconds are easier to read.
    let whole = Time(wanted.0.next_multiple_of(Time::from_us(1).0)).max(SHORTEST_BUDGET);
    let budget = if whole <= deadline { whole } else { wanted };
    (wakes_once(task) && period >= shortest && budget <= deadline).then_some(Policy::Deadline {
        budget,
        deadline,
        period,
    })
}

/// An order of `kept` on a core, with `others` that may run there below them; none if there is none.
fn order_on(
    worst_case: &WorstCase,
    core: usize,
    kept: &[usize],
    others: &[usize],
    budget: &mut StepBudget,
) -> Option<Vec<usize>> {
    let others = others.iter().copied().filter(|place| worst_case.may_use(*place, CoreId::new(core)));
    let members: Vec<usize> = kept.iter().copied().chain(others).collect();
    let part = worst_case.cluster(members.iter().copied(), core..core + 1);
    let own: Vec<usize> = (0..kept.len()).collect();
    Some(audsley(&part, &own, budget)?.into_iter().map(|at| members[at]).collect())
}
