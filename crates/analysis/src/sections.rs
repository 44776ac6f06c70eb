//! Sets whose tasks share resources, on one core.
//!
//! A job of lower priority delays others only within a critical section that it was in when they arrived, because it
//! runs only in their place. It leaves its outermost section once, so each task of lower priority delays a busy period
//! by one section at most.
//!
//! *Inheritance.* Every task of lower priority can do so: the delay is the sum over these tasks of their longest
//! outermost section that can keep a job of the level waiting (Sha, Rajkumar and Lehoczky, IEEE Transactions on
//! Computers 39, 1990). Where no section is within another, it is also at most the sum over the resources of the
//! longest section on each. A section can keep a job waiting if some job of its priority or a higher one locks the
//! resource, or a job that inherits such a priority in the section around. Resources that are locked in a circle can
//! end in a deadlock; nothing is claimed then.
//!
//! *Ceiling.* A job starts only above the ceilings of what others hold, so only one of these sections is under way: the
//! delay is the longest (Baker, Real-Time Systems 3, 1991). That needs preemption levels in the order of the
//! priorities: a job that goes before another one has the higher level.
//!
//! *EDF.* The demand within t is delayed by jobs with a relative deadline beyond t, by sums or by the longest as above.
//!
//! Costs, speeds, limits on preemption and precedence beside critical sections are not covered.

use temponet_task::{
    CoreId, Preemption, Protocol, ResourceId, Speed, Task, TaskSet, Time, ceilings, preemption_levels,
};

use super::Outcome;
use super::blocking::piece_fits;
use super::response_time::{Key, PriorityRule, ResponseTimes, response_times};
use super::step_budget::StepBudget;
use super::uniprocessor_edf::{Demand, Interval, interval};
use super::worst_case::{NotAnalyzable, WorstCase};

/// Returns why the tests of this module do not cover a set that they are about.
fn uncovered(set: &TaskSet, nesting: &Nesting, worst_case: &WorstCase) -> Option<&'static str> {
    let reasons = [
        (set.cores() > 1, "tasks share resources on several cores"),
        (set.protocol() == Protocol::None, "without a protocol, nothing bounds how long a job waits"),
        (set.has_precedence(), "tasks share resources and come after each other"),
        (
            set.tasks().iter().any(|task| task.preemption != Preemption::Free),
            "tasks share resources, and one limits preemption",
        ),
        (worst_case.has_costs, "tasks share resources, and switches cost time"),
        (set.machine().speed(CoreId(0)) != Speed::FULL, "tasks share resources on a core with a speed of its own"),
        (
            set.protocol() == Protocol::Inheritance && nesting.is_circular(set.resources().len()),
            "resources are locked in a circle, which can end in a deadlock",
        ),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
}

/// How the sections of a set lie within each other.
struct Nesting {
    /// Pairs of resources of which a task locks the second while it holds the first, each pair once.
    pairs: Vec<(ResourceId, ResourceId)>,
    /// By task: its outermost sections.
    outermost: Vec<Vec<Outermost>>,
}

/// A section that is within no other one.
struct Outermost {
    length: u64,
    /// The resources that are held in it, be it for a part of it.
    resources: Vec<ResourceId>,
}

impl Nesting {
    fn of(set: &TaskSet) -> Nesting {
        let mut nesting = Nesting { pairs: Vec::new(), outermost: Vec::new() };
        for task in set.tasks() {
            let mut outermost: Vec<(usize, Outermost)> = Vec::new();
            let mut inner: Vec<(usize, ResourceId)> = Vec::new();
            for (at, section) in task.sections.iter().enumerate() {
                let around: Vec<usize> = task.sections_around(at).collect();
                match around.is_empty() {
                    true => {
                        outermost.push((at, Outermost { length: section.length.0, resources: vec![section.resource] }))
                    }
                    false => inner.extend(around.iter().map(|outer| (*outer, section.resource))),
                }
                nesting.pairs.extend(around.iter().map(|outer| (task.sections[*outer].resource, section.resource)));
            }
            for (at, section) in &mut outermost {
                section.resources.extend(inner.iter().filter(|(outer, _)| outer == at).map(|(_, resource)| *resource));
            }
            nesting.outermost.push(outermost.into_iter().map(|(_, section)| section).collect());
        }
        nesting.pairs.sort_unstable();
        nesting.pairs.dedup();
        nesting
    }

    /// Whether resources are locked within each other in a circle: those that are locked within no other one are taken
    /// away, again and again, and some are left.
    fn is_circular(&self, resources: usize) -> bool {
        let mut around = vec![0_usize; resources];
        self.pairs.iter().for_each(|(_, inner)| around[*inner] += 1);
        let mut free: Vec<ResourceId> = ResourceId::all(resources).filter(|resource| around[*resource] == 0).collect();
        let mut taken = 0;
        while let Some(outer) = free.pop() {
            taken += 1;
            let first = self.pairs.partition_point(|(resource, _)| *resource < outer);
            for (_, inner) in self.pairs[first..].iter().take_while(|(resource, _)| *resource == outer) {
                around[*inner] -= 1;
                if around[*inner] == 0 {
                    free.push(*inner);
                }
            }
        }
        taken < resources
    }

    /// Returns for each resource the least key of a job that can wait for it, be it its own or inherited.
    fn waiting_keys<K: Ord + Copy>(&self, set: &TaskSet, keys: &[K], last: K) -> Vec<K> {
        let mut least = vec![last; set.resources().len()];
        for (task, key) in set.tasks().iter().zip(keys) {
            for section in &task.sections {
                least[section.resource] = least[section.resource].min(*key);
            }
        }
        // Each round extends the chains of inheritance by one resource at least.
        let mut changes = true;
        while changes {
            changes = false;
            for (outer, inner) in &self.pairs {
                if least[*outer] < least[*inner] {
                    (least[*inner], changes) = (least[*outer], true);
                }
            }
        }
        least
    }

    /// Length of the longest outermost section of a task in which it holds a resource that `keeps` others waiting, be
    /// it for a part of the section.
    fn longest(&self, task: usize, keeps: impl Fn(ResourceId) -> bool) -> u64 {
        let counts = |outer: &&Outermost| outer.resources.iter().any(|resource| keeps(*resource));
        self.outermost[task].iter().filter(counts).map(|section| section.length).max().unwrap_or_default()
    }
}

/// Length of the longest section of a task on a resource.
fn longest_on(task: &Task, resource: ResourceId) -> u64 {
    task.sections
        .iter()
        .filter(|section| section.resource == resource)
        .map(|section| section.length.0)
        .max()
        .unwrap_or_default()
}

/// How long jobs of lower priority can delay a busy period of each task.
fn delays(set: &TaskSet, nesting: &Nesting, keys: &[Key]) -> Vec<u64> {
    let places = 0..set.tasks().len();
    let lower = |place: usize| places.clone().filter(move |other| keys[*other] > keys[place]);
    if set.protocol() == Protocol::Ceiling {
        let (levels, ceilings) = (preemption_levels(set.tasks()), ceilings(set.tasks(), set.resources().len()));
        let delay = |place: usize| {
            // A job of equal priority that came before and waits delays this one.
            let first = keys.iter().zip(&levels).filter(|(key, _)| **key <= keys[place]);
            let level = first.map(|(_, level)| *level).min().unwrap_or(i64::MAX);
            let longest = |other| nesting.longest(other, |resource| ceilings[resource] >= level);
            lower(place).map(longest).max().unwrap_or_default()
        };
        return places.clone().map(delay).collect();
    }
    let waiting = nesting.waiting_keys(set, keys, (i128::MAX, u64::MAX));
    let delay = |place: usize| summed(set, nesting, || lower(place), |resource| waiting[resource] <= keys[place]);
    places.clone().map(delay).collect()
}

/// Whether a task that goes before another one has the higher preemption level.
fn levels_follow<K: Ord>(set: &TaskSet, keys: &[K]) -> bool {
    let levels = preemption_levels(set.tasks());
    let places = || 0..set.tasks().len();
    places().all(|first| places().all(|second| keys[first] >= keys[second] || levels[first] > levels[second]))
}

/// Reason for nothing to be claimed of the ceiling protocol.
const OTHER_LEVELS: &str = "the preemption levels are not in the order of the priorities";

/// Computes bounds on the response times of a set whose tasks share resources, under `rule` on one core.
pub fn sharing_response_times(set: &TaskSet, rule: PriorityRule) -> Result<ResponseTimes, NotAnalyzable> {
    let mut worst_case = WorstCase::ignoring_sections(set)?;
    let unknown = |why: &str| ResponseTimes {
        bounds: vec![None; set.tasks().len()],
        from_schedule: false,
        outcome: Outcome::NotApplicable(why.into()),
    };
    let nesting = Nesting::of(set);
    if let Some(why) = uncovered(set, &nesting, &worst_case) {
        return Ok(unknown(why));
    }
    let keys = rule.keys(&worst_case.tasks);
    if set.protocol() == Protocol::Ceiling && !levels_follow(set, &keys) {
        return Ok(unknown(OTHER_LEVELS));
    }
    worst_case.is_sharing = true;
    for (task, delay) in worst_case.tasks.iter_mut().zip(delays(set, &nesting, &keys)) {
        task.waits = Time(delay);
    }
    Ok(response_times(&worst_case, rule))
}

/// Tests EDF on one core for a set whose tasks share resources.
pub fn sharing_demand(set: &TaskSet) -> Result<Outcome, NotAnalyzable> {
    let worst_case = WorstCase::ignoring_sections(set)?;
    let nesting = Nesting::of(set);
    let why = uncovered(set, &nesting, &worst_case).or_else(|| {
        let has_jitter = set.tasks().iter().any(|task| task.jitter > Time::ZERO);
        let deadlines: Vec<Time> = set.tasks().iter().map(|task| task.deadline).collect();
        match set.protocol() {
            Protocol::Ceiling if !levels_follow(set, &deadlines) => Some(OTHER_LEVELS),
            Protocol::Ceiling if has_jitter => {
                Some("releases are delayed, so that levels say less about who preempts whom")
            }
            _ => None,
        }
    });
    if let Some(why) = why {
        return Ok(Outcome::NotApplicable(why.into()));
    }
    let demands: Vec<Demand> = worst_case.tasks.iter().map(Demand::from).collect();
    Ok(match delayed_test(set, &nesting, &demands, &mut StepBudget::standard()) {
        Some(true) => Outcome::Schedulable,
        Some(false) if worst_case.is_overloaded() == Some(true) => Outcome::NotSchedulable,
        Some(false) => Outcome::NotProved,
        None => Outcome::Undecided,
    })
}

/// Whether the tasks fit beside the delays, in pieces between which these change. Returns none if the budget is spent.
fn delayed_test(set: &TaskSet, nesting: &Nesting, demands: &[Demand], budget: &mut StepBudget) -> Option<bool> {
    let until = match interval(demands, budget)? {
        Interval::Decided(false) => return Some(false),
        Interval::Decided(true) => 0,
        Interval::Until(limit) => limit,
    };
    let longest_deadline = set.tasks().iter().map(|task| task.deadline.0).max().unwrap_or_default();
    let edges = set.tasks().iter().map(|task| task.deadline.0).chain(demands.iter().map(|task| task.deadline.0));
    let mut edges: Vec<u64> = edges.chain([0]).collect();
    edges.sort_unstable();
    edges.dedup();
    let deadlines: Vec<u64> = demands.iter().map(|task| task.deadline.0).collect();
    let waiting = nesting.waiting_keys(set, &deadlines, u64::MAX);
    let mut above = until.max(longest_deadline.saturating_add(1));
    for edge in edges.into_iter().rev() {
        budget.spend(set.tasks().len())?;
        // Within a piece, the tasks with deadlines up to `edge` are those with deadlines up to any of its dates.
        if !piece_fits(demands, delay_within(set, nesting, &waiting, edge), edge..above, budget)? {
            return Some(false);
        }
        above = edge;
    }
    Some(true)
}

/// How long jobs that are due later can delay the demand within `t`, by what can wait for each resource. A job that is
/// released late has less than its relative deadline left.
fn delay_within(set: &TaskSet, nesting: &Nesting, waiting: &[u64], t: u64) -> u64 {
    let later = || (0..set.tasks().len()).filter(|place| set.tasks()[*place].deadline.0 > t);
    let keeps = |resource: ResourceId| waiting[resource.index()] <= t;
    match set.protocol() {
        Protocol::Ceiling => later().map(|task| nesting.longest(task, keeps)).max().unwrap_or_default(),
        _ => summed(set, nesting, later, keeps),
    }
}

/// Sum of the delays by each of the tasks; where no section is within another, at most that of the longest section on
/// each resource, which one job holds at a time.
fn summed<T: Iterator<Item = usize>>(
    set: &TaskSet,
    nesting: &Nesting,
    tasks: impl Fn() -> T,
    keeps: impl Fn(ResourceId) -> bool,
) -> u64 {
    let by_task = tasks().map(|task| nesting.longest(task, &keeps)).fold(0, u64::saturating_add);
    if !nesting.pairs.is_empty() {
        return by_task;
    }
    let resources = ResourceId::all(set.resources().len()).filter(|resource| keeps(*resource));
    let on_each = resources
        .map(|resource| tasks().map(|task| longest_on(&set.tasks()[task], resource)).max().unwrap_or_default());
    by_task.min(on_each.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use temponet_task::Section;

    use super::*;

    /// Two tasks that lock two resources each, both for the same work, in these orders.
    fn sharing(orders: [[u32; 2]; 2]) -> TaskSet {
        let ms = Time::from_ms;
        let task = |(index, order): (usize, [u32; 2])| {
            let section = |resource| Section { resource: ResourceId(resource), at: ms(1), length: ms(2) };
            let sections = order.map(section).to_vec();
            Task::periodic(format!("t{index}"), ms(20 + 20 * index as u64), ms(4)).with_sections(sections)
        };
        let resources = ["a", "b"].map(String::from).to_vec();
        TaskSet::new("s", orders.into_iter().enumerate().map(task).collect(), 1).with_resources(resources)
    }

    #[test]
    fn sections_of_the_same_work_are_locked_in_the_order_of_the_list() {
        let alike = sharing([[0, 1], [0, 1]]);
        let nesting = Nesting::of(&alike);
        assert_eq!(nesting.pairs, [(ResourceId(0), ResourceId(1))]);
        assert!(nesting.outermost.iter().all(|sections| sections.len() == 1));
        assert!(!nesting.is_circular(2));
        assert_eq!(sharing_demand(&alike).unwrap(), Outcome::Schedulable);
        // The second task can hold what the first wants, and the other way round.
        let crossed = sharing([[0, 1], [1, 0]]);
        assert!(Nesting::of(&crossed).is_circular(2));
        assert!(
            matches!(sharing_demand(&crossed).unwrap(), Outcome::NotApplicable(why) if why.contains("in a circle"))
        );
    }
    /// The time grew with the fourth power of their number.
    #[test]
    fn hundreds_of_nested_sections_are_analyzed_at_once() {
        const COUNT: u64 = 400;
        let section = |number: u64| Section {
            resource: ResourceId(number as u32),
            at: Time::from_us(number),
            length: Time::from_us(2 * (COUNT - number)),
        };
        let last = Section { resource: ResourceId(COUNT as u32 - 1), at: Time::ZERO, length: Time::from_us(1) };
        let nested = Task::periodic("nested", Time::from_ms(100), Time::from_ms(50));
        let nested = nested.with_sections((0..COUNT).map(section).collect());
        let short = Task::periodic("short", Time::from_ms(10), Time::from_ms(1)).with_sections(vec![last]);
        let resources = (0..COUNT).map(|number| format!("r{number}")).collect();
        let set = TaskSet::new("s", vec![nested, short], 1).with_resources(resources);
        let nesting = Nesting::of(&set);
        assert_eq!(nesting.pairs.len() as u64, COUNT * (COUNT - 1) / 2);
        assert_eq!(nesting.outermost[0].len(), 1);
        // The short task waits for the innermost section, so for the whole of the outermost one.
        let bounds = sharing_response_times(&set, PriorityRule::RateMonotonic).unwrap().bounds;
        assert_eq!(bounds[1], Some(Time::from_us(1_000 + 2 * COUNT)));
    }
}
