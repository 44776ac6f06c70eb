//! Planning for overload: the ready jobs are candidates in deadline order, a scheduler accepts as many as can be on
//! time together, and the cores go to the accepted jobs.
//!
//! "On time" refers to an EDF list schedule of the remaining wcets on all cores, or of what estimates say is likely to
//! be enough ([`SystemView::planned_time_to_finish`]). This is exact on one core and a good estimate on several. Where
//! cores differ, the list schedule minds their speeds and who may use them. Jobs that are late by wcet are no
//! candidates. Cores that the accepted jobs leave free take the other jobs.
//!
//! The running time of planning grows faster than the number of jobs. Of a larger backlog only the [`MOST_PLANNED`]
//! earliest deadlines are candidates; the other jobs wait until they are among these.

use temponet_task::{Assignment, Job, JobId, System, SystemView, Tie, Time};

use crate::shared::admission::Admission;
use crate::shared::lengths::Lengths;
use crate::shared::machine_plan::{MOST_PLANNED_BY_CORE, MachinePlan};
use crate::shared::moore_hodgson::ListSchedule;

/// Maximum number of jobs that one decision plans with, far more than ordinary sets have ready.
pub(crate) const MOST_PLANNED: usize = 2_048;

/// Time that a job is planned to take still, on the fastest core that it may use.
pub(crate) enum PlannedTime {
    /// By what the job says.
    Rule(fn(&SystemView<'_>, &Job) -> Time),
    /// By a quantile of lengths.
    Quantile(Lengths),
}

impl PlannedTime {
    /// Forgets what was learned, and takes the tasks of a system.
    pub fn start(&mut self, system: &System) {
        if let PlannedTime::Quantile(lengths) = self {
            lengths.start(system);
        }
    }

    /// Learns from the jobs that have left.
    pub fn follow(&mut self, view: &SystemView<'_>) {
        if let PlannedTime::Quantile(lengths) = self {
            lengths.follow(view);
        }
    }

    pub fn of(&self, view: &SystemView<'_>, job: &Job) -> Time {
        match self {
            PlannedTime::Rule(rule) => rule(view, job),
            PlannedTime::Quantile(lengths) => lengths.time_to_finish(job),
        }
    }
}

/// A ready job that can still be on time if it takes its planned remaining work.
#[derive(Clone, Copy)]
pub(crate) struct PlannedJob {
    pub id: JobId,
    pub deadline: Time,
    pub tie: Tie,
    /// Time that the remaining work takes on the fastest core that the job may use.
    pub remaining: Time,
    pub value: f64,
    /// Value per remaining work.
    pub density: f64,
    pub criticality: u8,
    pub accepted: bool,
}

impl PlannedJob {
    fn new(view: &SystemView<'_>, id: JobId, job: &Job, planned: &PlannedTime) -> PlannedJob {
        let remaining = planned.of(view, job);
        PlannedJob {
            id,
            deadline: job.deadline,
            tie: job.tie(),
            remaining,
            value: job.value,
            density: job.value / remaining.0 as f64,
            criticality: job.criticality,
            accepted: false,
        }
    }
}

/// The ready jobs of one decision. The buffers are reused between decisions.
pub(crate) struct PlannedJobs {
    /// Time that a job is planned to take still.
    planned: PlannedTime,
    now: Time,
    /// The candidates, in deadline order.
    pub jobs: Vec<PlannedJob>,
    hopeless: Vec<PlannedJob>,
    /// Number of the decision, from 1.
    decision: u64,
    /// For every job id, the last decision at which the job was ready and had not been listed yet.
    seen: Vec<u64>,
    /// Dates at which the cores become free in the list schedule, ascending.
    free_at: Vec<Time>,
    chosen: Vec<JobId>,
    /// Order of admission: keys with places below them.
    keys: Vec<u128>,
    places: Vec<usize>,
    admission: Admission,
    /// The machine, if it is not one of identical cores.
    machine: Option<Box<MachinePlan>>,
}

impl Default for PlannedJobs {
    /// PlannedJobs that are planned with their remaining wcets, or with what their estimates say is likely to be
    /// enough.
    fn default() -> Self {
        PlannedJobs::planned_with(PlannedTime::Rule(|view, job| view.planned_time_to_finish(job)))
    }
}

impl PlannedJobs {
    /// PlannedJobs that are planned with this time that they still take.
    pub fn planned_with(planned: PlannedTime) -> PlannedJobs {
        PlannedJobs {
            planned,
            now: Time::ZERO,
            jobs: Vec::new(),
            hopeless: Vec::new(),
            decision: 0,
            seen: Vec::new(),
            free_at: Vec::new(),
            chosen: Vec::new(),
            keys: Vec::new(),
            places: Vec::new(),
            admission: Admission::default(),
            machine: None,
        }
    }

    /// Prepares for a system.
    pub fn start(&mut self, system: &System) {
        self.reserve(system.tasks().len());
        self.planned.start(system);
    }

    /// Learns from the jobs that have left, where another one decides.
    pub fn follow(&mut self, view: &SystemView<'_>) {
        self.planned.follow(view);
    }

    /// Reserves memory for this many jobs.
    pub fn reserve(&mut self, jobs: usize) {
        self.jobs.reserve(jobs.saturating_sub(self.jobs.len()));
        self.hopeless.reserve(jobs.saturating_sub(self.hopeless.len()));
        // The ids of jobs that have just left are still in use.
        self.seen.reserve((2 * jobs).saturating_sub(self.seen.len()));
        self.places.clear();
        self.places.reserve(jobs);
        self.chosen.clear();
        self.chosen.reserve(jobs);
    }

    /// Reserves memory to accept this many jobs by density; see [`PlannedJobs::accept_by_density`].
    pub fn reserve_admission(&mut self, jobs: usize, cores: usize) {
        self.keys.clear();
        self.keys.reserve(jobs);
        self.admission.reserve(jobs, cores);
    }

    /// Takes the ready jobs of a decision; none is accepted yet.
    pub fn gather(&mut self, view: &SystemView<'_>) {
        self.planned.follow(view);
        self.now = view.now;
        self.hopeless.clear();
        self.reserve(view.active.len());
        self.decision += 1;
        self.seen.resize(view.jobs.len().max(self.seen.len()), 0);
        view.active.iter().for_each(|id| self.seen[id.index()] = self.decision);
        // Jobs that were ready at the last decision are already in order, which makes sorting faster.
        let mut kept = 0;
        for at in 0..self.jobs.len() {
            let PlannedJob { id, tie, .. } = self.jobs[at];
            if self.seen[id.index()] != self.decision || view.job(id).tie() != tie {
                continue;
            }
            self.seen[id.index()] = 0;
            let candidate = PlannedJob::new(view, id, view.job(id), &self.planned);
            if view.now + candidate.remaining > candidate.deadline {
                self.hopeless.push(candidate);
            } else {
                self.jobs[kept] = candidate;
                kept += 1;
            }
        }
        self.jobs.truncate(kept);
        for (id, job) in view.ready() {
            if self.seen[id.index()] == self.decision {
                self.take(view, id, job);
            }
        }
        let order = |candidate: &PlannedJob| (candidate.deadline, candidate.tie);
        let most = self.look_at_machine(view);
        if self.jobs.len() > most {
            self.jobs.select_nth_unstable_by_key(most, order);
            self.jobs.truncate(most);
        }
        self.jobs.sort_unstable_by_key(order);
        self.free_at.clear();
        self.free_at.resize(view.cores(), view.now);
    }

    /// Like [`PlannedJobs::gather`], for ready jobs that are already in deadline order.
    pub fn gather_in_order(&mut self, view: &SystemView<'_>, order: &[JobId]) {
        self.now = view.now;
        self.hopeless.clear();
        self.jobs.clear();
        self.reserve(order.len());
        order.iter().for_each(|id| self.take(view, *id, view.job(*id)));
        let most = self.look_at_machine(view);
        self.jobs.truncate(most);
        self.free_at.clear();
        self.free_at.resize(view.cores(), view.now);
    }

    /// Takes the machine, and returns the number of jobs to plan with.
    fn look_at_machine(&mut self, view: &SystemView<'_>) -> usize {
        if view.system.machine().is_plain() {
            self.machine = None;
            return MOST_PLANNED;
        }
        self.machine.get_or_insert_default().look(view.system);
        MOST_PLANNED_BY_CORE
    }

    /// Adds a job to the candidates, or to the hopeless jobs if it will be late.
    fn take(&mut self, view: &SystemView<'_>, id: JobId, job: &Job) {
        let candidate = PlannedJob::new(view, id, job, &self.planned);
        let is_late = self.now + candidate.remaining > candidate.deadline;
        if is_late { &mut self.hopeless } else { &mut self.jobs }.push(candidate);
    }

    /// Returns the first accepted candidate up to `last` that is late in the list schedule, and its tardiness.
    pub fn first_late(&mut self, last: usize) -> Option<(usize, Time)> {
        if let Some(machine) = &mut self.machine {
            return machine.first_late(&self.jobs[..=last], self.now);
        }
        self.free_at.fill(self.now);
        for (place, candidate) in self.jobs[..=last].iter().enumerate().filter(|(_, candidate)| candidate.accepted) {
            let completion = add(&mut self.free_at, candidate.remaining);
            if completion > candidate.deadline {
                return Some((place, completion - candidate.deadline));
            }
        }
        None
    }

    /// Accepts candidates one by one, by descending criticality if `minds_criticality` is set, then by descending
    /// density, then by deadline. A candidate is accepted if all accepted ones are then on time.
    pub fn accept_by_density(&mut self, minds_criticality: bool) {
        self.keys.clear();
        self.keys.extend(self.jobs.iter().enumerate().map(|(place, job)| {
            let level = if minds_criticality { u8::MAX - job.criticality } else { 0 };
            u128::from(level) << 96 | u128::from(!ascending_bits(job.density)) << 32 | place as u128
        }));
        self.keys.sort_unstable();
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.extend(self.keys.iter().map(|key| *key as u32 as usize));
        self.accept_each(&places);
        self.places = places;
    }

    /// Accepts the candidates at these places one by one. A candidate is accepted if all accepted ones are then on
    /// time.
    pub fn accept_each(&mut self, places: &[usize]) {
        match &mut self.machine {
            Some(machine) => machine.accept_each(&mut self.jobs, places, self.now),
            None => self.admission.accept_each(&mut self.jobs, places, self.now, self.free_at.len()),
        }
    }

    /// Accepts candidates by Moore and Hodgson's rule; see [`ListSchedule::choose`].
    pub fn accept_by_moore_hodgson(&mut self, schedule: &mut ListSchedule, key: impl Fn(&PlannedJob) -> u64) {
        match &mut self.machine {
            Some(machine) => machine.drop_worst(&mut self.jobs, self.now, key),
            None => schedule.choose(&mut self.jobs, self.now, self.free_at.len(), key),
        }
    }

    /// The jobs of the last [`PlannedJobs::choose`].
    pub fn chosen(&self) -> &[JobId] {
        &self.chosen
    }

    /// Assigns the cores; see [`PlannedJobs::choose`].
    pub fn assign<K: PartialOrd>(
        &mut self,
        view: &SystemView<'_>,
        assignment: &mut Assignment,
        spare: impl Fn(&PlannedJob) -> K,
    ) {
        assignment.place(view, self.choose(view, spare));
    }

    /// Returns the jobs that get a core. On several cores the accepted jobs without slack come first; then the accepted
    /// jobs by deadline; then the others, the least by `spare` first. Where tasks are bound to cores, all jobs are in
    /// this order.
    pub fn choose<K: PartialOrd>(&mut self, view: &SystemView<'_>, spare: impl Fn(&PlannedJob) -> K) -> &[JobId] {
        let (now, cores, most) = (self.now, view.cores(), view.system.most_offered());
        let is_urgent = |candidate: &PlannedJob| cores > 1 && now + candidate.remaining >= candidate.deadline;
        self.chosen.clear();
        for urgent in [true, false] {
            let accepted = self.jobs.iter().filter(|job| job.accepted && is_urgent(job) == urgent);
            self.chosen.extend(accepted.map(|candidate| candidate.id));
        }
        if self.chosen.len() < most {
            self.hopeless.extend(self.jobs.iter().filter(|candidate| !candidate.accepted));
            let order = |a: &PlannedJob, b: &PlannedJob| {
                let by_key = spare(a).partial_cmp(&spare(b)).unwrap_or(std::cmp::Ordering::Equal);
                by_key.then(a.tie.cmp(&b.tie))
            };
            if self.hopeless.len() > most {
                self.hopeless.select_nth_unstable_by(most, order);
                self.hopeless.truncate(most);
            }
            self.hopeless.sort_unstable_by(order);
            self.chosen.extend(self.hopeless.iter().map(|candidate| candidate.id));
        }
        self.chosen.truncate(most);
        &self.chosen
    }
}

/// Puts a job on the core that becomes free first. Returns its completion. `free_at` is ascending and stays so.
pub(crate) fn add(free_at: &mut [Time], remaining: Time) -> Time {
    let completion = free_at[0] + remaining;
    let mut at = 0;
    while at + 1 < free_at.len() && free_at[at + 1] < completion {
        free_at[at] = free_at[at + 1];
        at += 1;
    }
    free_at[at] = completion;
    completion
}

/// Like [`add`], with a number of cores that is a constant: without a branch. Cores that do not exist are never free.
#[inline]
pub(crate) fn add_fixed<const C: usize>(free_at: &mut [Time; C], remaining: Time) -> Time {
    let completion = free_at[0] + remaining;
    // The first core is taken, and the completion is inserted where it belongs: a core that becomes free later keeps
    // its place, and one that becomes free earlier moves down.
    for core in 0..C {
        let next = if core + 1 < C { free_at[core + 1] } else { Time::NEVER };
        free_at[core] = free_at[core].max(completion.min(next));
    }
    completion
}

/// Returns a number that grows with a finite float, and is the same for both zeros.
pub(crate) fn ascending_bits(value: f64) -> u64 {
    // Adding zero turns the negative zero into the positive one.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use temponet_task::{Task, TaskId, TaskSet};

    use super::*;

    /// Whether a list schedule computed from scratch, with the cores in any order, has all accepted jobs on time.
    fn is_on_time(jobs: &[PlannedJob], now: Time, cores: usize) -> bool {
        let mut free_at = vec![now; cores];
        jobs.iter().filter(|job| job.accepted).all(|job| {
            let first = (0..cores).min_by_key(|core| free_at[*core]).unwrap();
            free_at[first] += job.remaining;
            free_at[first] <= job.deadline
        })
    }

    /// Planning the whole of a very large burst at every decision would take too long.
    #[test]
    fn a_backlog_is_planned_by_its_earliest_deadlines() {
        let count = 3 * MOST_PLANNED as u32;
        let task = |index: u32| {
            Task::periodic(format!("t{index}"), Time(1_000_000), Time(10))
                .with_deadline(Time(1_000 + u64::from(count - index)))
        };
        let system = TaskSet::new("set", (0..count).map(task).collect(), 1).system;
        let jobs: Vec<Job> = system.task_ids().map(|id| Job::first(id, &system.tasks()[id])).collect();
        let active: Vec<JobId> = (0..count).map(JobId).collect();
        let (now, running, events) = (Time::ZERO, &[None], &[]);
        let view = SystemView::new(now, &system, &active, &jobs, running).with_events(events);
        let mut order = active.clone();
        order.reverse();
        let earliest = &order[..MOST_PLANNED];
        let ids = |candidates: &PlannedJobs| candidates.jobs.iter().map(|job| job.id).collect::<Vec<JobId>>();
        let mut candidates = PlannedJobs::default();
        for _ in 0..2 {
            candidates.gather(&view);
            assert_eq!(ids(&candidates), earliest);
        }
        candidates.gather_in_order(&view, &order);
        assert_eq!(ids(&candidates), earliest);
        let mut ordered = crate::advice::deadline_order::DeadlineOrder::default();
        ordered.gather_earliest(&view, MOST_PLANNED);
        assert_eq!(ordered.ready(), earliest);
    }

    #[test]
    fn accepting_many_at_a_time_accepts_what_one_at_a_time_does() {
        let mut rng = Pcg64::seed_from_u64(2);
        let mut refused = 0;
        for case in 0..2_000 {
            let (now, cores) = (Time(rng.random_range(0..100)), rng.random_range(1..=9));
            let mut candidates = PlannedJobs { now, free_at: vec![now; cores], ..PlannedJobs::default() };
            for index in 0..rng.random_range(0..60) {
                let remaining = Time(rng.random_range(1..=20));
                let deadline = now + remaining + Time(rng.random_range(0..100));
                let (id, tie, value) =
                    (JobId(index), (Time::ZERO, TaskId(index), 0), f64::from(rng.random_range(1..=5)));
                candidates.jobs.push(PlannedJob {
                    id,
                    deadline,
                    tie,
                    remaining,
                    value,
                    density: value / remaining.0 as f64,
                    criticality: 0,
                    accepted: false,
                });
            }
            candidates.jobs.sort_by_key(|job| (job.deadline, job.tie));
            let mut expected = candidates.jobs.clone();
            let mut order: Vec<usize> = (0..expected.len()).collect();
            order.sort_by(|a, b| expected[*b].density.total_cmp(&expected[*a].density).then(a.cmp(b)));
            for place in order {
                expected[place].accepted = true;
                expected[place].accepted = is_on_time(&expected, now, cores);
            }
            candidates.accept_by_density(false);
            let accepted = |jobs: &[PlannedJob]| jobs.iter().map(|job| job.accepted).collect::<Vec<bool>>();
            assert_eq!(accepted(&candidates.jobs), accepted(&expected), "case {case}");
            refused += expected.iter().filter(|job| !job.accepted).count();
        }
        assert!(refused > 5_000, "{refused}: overload is what this is about");
    }
}
