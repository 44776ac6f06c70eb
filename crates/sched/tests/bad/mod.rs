//! Bad schedulers and random sets, for the tests of the shield.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::catalog::{Need, all};
use temponet_sched::shield::{Shield, ShieldCounters};
use temponet_sched::{Entry, build};
use temponet_sim::generate::{Deadlines, Lengths, Rule, Spec, generate};
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{
    Arrival, Assignment, ExecutionModel, Gap, JobId, NotApplicable, Scheduler, System, SystemView, Task, TaskSet, Time,
};

/// Bad schedulers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bad {
    /// Random ready jobs, other ones at every decision, and sometimes none.
    Random,
    /// Latest deadline first.
    LatestDeadline,
    /// Longest remaining work first.
    Longest,
    /// Last come, first served.
    LastComeFirst,
    /// Never runs a job.
    Idle,
    /// Earliest or latest deadline first, at random.
    Fickle,
    /// Latest deadline first; at times abandons the job with the earliest deadline.
    Quitter,
    /// Latest deadline first; requests wake-ups at odd dates.
    Restless,
}

pub const BAD: [Bad; 8] = [
    Bad::Random,
    Bad::LatestDeadline,
    Bad::Longest,
    Bad::LastComeFirst,
    Bad::Idle,
    Bad::Fickle,
    Bad::Quitter,
    Bad::Restless,
];

pub struct BadScheduler {
    kind: Bad,
    seed: u64,
    rng: Pcg64,
    ready: Vec<JobId>,
}

impl BadScheduler {
    pub fn new(kind: Bad, seed: u64) -> BadScheduler {
        BadScheduler { kind, seed, rng: Pcg64::seed_from_u64(seed), ready: Vec::new() }
    }
}

impl Scheduler for BadScheduler {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        self.rng = Pcg64::seed_from_u64(self.seed);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.ready.clear();
        self.ready.extend(view.active);
        // The job to run first is the last in the list.
        match self.kind {
            Bad::Random => self.ready.sort_by_cached_key(|_| self.rng.next_u32()),
            Bad::Longest => self.ready.sort_by_key(|id| (view.job(*id).remaining(), *id)),
            Bad::LastComeFirst => self.ready.sort_by_key(|id| view.job(*id).tie()),
            _ => self.ready.sort_by_key(|id| (view.job(*id).deadline, *id)),
        }
        if self.kind == Bad::Fickle && self.rng.random() {
            self.ready.reverse();
        }
        let quits = self.kind == Bad::Quitter && self.ready.len() > 1 && self.rng.random_bool(0.3);
        let given_up = quits.then(|| self.ready.remove(0));
        if self.kind == Bad::Restless && !self.ready.is_empty() {
            let soon = [1, 10, 1_000, 1_000_000, u64::MAX - view.now.0][self.rng.random_range(0..5)];
            assignment.wake_at(Time(view.now.0 + soon));
        }
        let idles = self.kind == Bad::Idle || (self.kind == Bad::Random && self.rng.random_bool(0.2));
        if !idles {
            let chosen: Vec<JobId> = self.ready.iter().rev().take(view.cores()).copied().collect();
            assignment.place(view, &chosen);
        } else {
            assignment.keep_held(view, 0..view.cores());
        }
        // Others may wait for it, so that it gets a core.
        let is_free = |id: &JobId| view.job(*id).held || !assignment.runs(*id);
        given_up.filter(is_free).into_iter().for_each(|id| assignment.abandon(id));
    }
}

/// A bad scheduler or one of the catalog.
pub fn inner(choice: usize, seed: u64) -> (String, Box<dyn Scheduler>) {
    match BAD.get(choice) {
        Some(bad) => (format!("{bad:?}"), Box::new(BadScheduler::new(*bad, seed))),
        None => {
            // The sets are of independent tasks, which schedulers of graphs refuse.
            let is_for_all = |entry: &&Entry| !entry.needs.iter().any(|need| matches!(need, Need::Precedence));
            let entries: Vec<&Entry> = all().into_iter().filter(is_for_all).collect();
            let entry = entries[(choice - BAD.len()) % entries.len()];
            (entry.name.to_string(), build(&entry.name).unwrap())
        }
    }
}

pub fn shielded(scheduler: Box<dyn Scheduler>, set: &TaskSet, seed: u64, horizon: Time) -> (Metrics, ShieldCounters) {
    let mut shield = Shield::new(scheduler);
    let metrics = simulate(set, seed, horizon, &mut shield, &mut Unobserved).unwrap();
    (metrics, shield.counters())
}

pub fn bare(mut scheduler: Box<dyn Scheduler>, set: &TaskSet, seed: u64, horizon: Time) -> Metrics {
    simulate(set, seed, horizon, &mut scheduler, &mut Unobserved).unwrap()
}

/// A random set with log-uniform periods over one to three orders of magnitude and implicit, constrained or longer
/// deadlines.
pub fn drawn(rng: &mut Pcg64, load: f64, cores: usize) -> TaskSet {
    let (tasks, longest) = (
        rng.random_range((2 * cores).max(load.ceil() as usize + 1)..=10 * cores),
        [10, 100, 1_000][rng.random_range(0..3)],
    );
    let lengths = Lengths::Periods(Rule::LogUniform(Time::from_ms(1), Time::from_ms(longest)));
    let deadlines = match rng.random_range(0..4) {
        0 | 1 => Deadlines::Implicit,
        2 => Deadlines::Slack(0.3, 1.0),
        _ => Deadlines::Slack(0.5, 2.0),
    };
    generate(&Spec { lengths, deadlines, ..Spec::new(tasks, cores, load) }, rng.next_u64()).unwrap()
}

/// Adds offsets, jitter, sporadic arrivals, bursts, and execution times below the wcet.
pub fn vary(rng: &mut Pcg64, set: &mut TaskSet) {
    let [offsets, jitter, sporadic, short] = [0.3, 0.15, 0.5, 0.5].map(|share| rng.random_bool(share));
    for task in set.system.tasks_mut().iter_mut() {
        let Time(period) = task.period().unwrap();
        if offsets {
            task.offset = Time(rng.random_range(0..period));
        }
        if jitter && rng.random_bool(0.5) {
            task.jitter = Time(rng.random_range(0..=period / 4));
        }
        if sporadic && rng.random_bool(0.7) {
            let gap = match rng.random_bool(0.5) {
                true => Gap::Uniform { max: Time(period + rng.random_range(0..period)) },
                false => Gap::Exponential { mean: Time(period + rng.random_range(1..period)) },
            };
            task.arrival = Arrival::Sporadic { minimum: Time(period), gap };
        } else if rng.random_bool(0.05) {
            let (jobs, until) = (rng.random_range(1..=3), if rng.random() { Time::NEVER } else { Time(6 * period) });
            task.arrival = Arrival::Burst { jobs, every: Time(period), until };
        }
        if short {
            (task.bcet, task.execution) = (Time((task.wcet.0 / 4).max(1)), ExecutionModel::Uniform);
            // Nothing that is guaranteed may rest on an estimate.
            task.estimate_error = Some(1.0).filter(|_| task.wcet.0.is_multiple_of(2));
        }
    }
}

/// A horizon of some hundred jobs and several of the longest periods.
pub fn horizon(set: &TaskSet) -> Time {
    let rate: f64 = set.tasks().iter().map(|task| 1.0 / task.period().unwrap().0 as f64).sum();
    let longest = set.tasks().iter().filter_map(Task::period).max().unwrap();
    Time((300.0 / rate) as u64).max(longest * 3)
}
