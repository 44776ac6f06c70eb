//! Contract: where tasks share resources, the engine with the real schedulers produces, job by job, the schedule of a naive
//! simulator, with the same times in which jobs hold and wait for resources. That one advances nanosecond by nanosecond, looks
//! at every section of every job, sorts all ready jobs by the textbook rule, and finds their cores by trying every assignment.
//! Tested with each protocol, alone and together with limits on preemption, cores that differ, and tasks that come after each
//! other.

use std::collections::HashMap;

use proptest::prelude::*;
use temponet_sim::{End, JobRecord, Recorder, Release, Stretch, Workload, simulate};
use temponet_task::{
    Arrival, Core, CoreSet, ExecutionModel, OnMiss, Preemption, Protocol, Section, Speed, Task, TaskSet, Time,
};

const HORIZON: u64 = 90;

/// Job of the naive simulator. Times are in nanoseconds, work is in thousandths.
#[derive(Clone, Debug)]
struct NaiveJob {
    task: usize,
    number: u64,
    release: u64,
    deadline: u64,
    wcet: u64,
    execution: u64,
    done: u64,
    /// Work a nanosecond ago.
    before: u64,
    start: Option<u64>,
    core: Option<usize>,
    last_core: Option<usize>,
    held: bool,
    leaves: bool,
    /// For each section of the task: `None` before its lock, then since when the job is in it, [`DONE`] at last.
    inside: Vec<Option<u64>>,
    /// Since when the job waits, and for which resource.
    waits: Option<(u64, usize)>,
    was_blocked: bool,
}

const DONE: u64 = u64::MAX;

impl NaiveJob {
    /// Time that the remaining wcet takes on the fastest core that the job may use, by whole nanoseconds of work.
    fn to_finish(&self, fastest: u64) -> u64 {
        ((self.wcet.saturating_sub(self.done / 1000)).max(1) * 1000).div_ceil(fastest)
    }

    fn holds<'a>(&'a self, set: &'a TaskSet) -> impl Iterator<Item = usize> + 'a {
        let inside = self.inside.iter().zip(&set.tasks()[self.task].sections);
        inside.filter(|(state, _)| state.is_some_and(|since| since != DONE)).map(|(_, section)| section.resource)
    }

    /// The section that the job has to enter before it can go on: of several, the longest.
    fn wants(&self, set: &TaskSet) -> Option<usize> {
        let sections = &set.tasks()[self.task].sections;
        let is_next = |at: &usize| self.inside[*at].is_none() && sections[*at].at.0 <= self.done / 1000;
        (0..sections.len())
            .filter(is_next)
            .min_by_key(|at| (sections[*at].at, std::cmp::Reverse(sections[*at].length), *at))
    }
}

/// Key of a job: the least runs first. It gets the time and the speed of the fastest core that the job may use.
type Key = fn(&NaiveJob, &Task, u64, u64) -> (i64, i64);

/// Schedulers with their keys, and whether the key decides anew in every nanosecond and not only when something happens.
const RULES: [(&str, Key, bool); 8] = [
    ("fcfs", |_, _, _, _| (0, 0), false),
    ("fp", |_, task, _, _| (-task.priority.unwrap(), 0), false),
    ("edf", |job, _, _, _| (job.deadline as i64, 0), false),
    ("rm", |_, task, _, _| (task.period().unwrap().0 as i64, 0), false),
    ("dm", |_, task, _, _| (task.deadline.0 as i64, 0), false),
    ("srpt", |job, _, _, fastest| (job.to_finish(fastest) as i64, 0), false),
    (
        "edf-skip",
        |job, _, now, fastest| (i64::from(now + job.to_finish(fastest) > job.deadline), job.deadline as i64),
        false,
    ),
    (
        "llf:quantum=1ns",
        |job, _, now, fastest| (job.deadline as i64 - now as i64 - job.to_finish(fastest) as i64, 0),
        true,
    ),
];

struct Naive<'a> {
    set: &'a TaskSet,
    key: Key,
    now: u64,
    jobs: Vec<NaiveJob>,
    records: Vec<JobRecord>,
    holds: Vec<Stretch>,
    waits: Vec<Stretch>,
    completed: HashMap<(usize, u64), bool>,
}

impl Naive<'_> {
    fn stretch(&self, job: &NaiveJob, resource: usize, start: u64) -> Stretch {
        let (resource, task, number) = (resource as u32, job.task as u32, job.number);
        Stretch { resource, task, number, start: Time(start), end: Time(self.now) }
    }

    /// What keeps a job from running: the resource and the index of the job that holds it.
    fn blocker(&self, index: usize) -> Option<(usize, usize)> {
        let job = &self.jobs[index];
        let holder = |resource: usize| {
            let others = (0..self.jobs.len()).filter(|other| *other != index);
            others.into_iter().find(|other| self.jobs[*other].holds(self.set).any(|held| held == resource))
        };
        if let Some(section) = job.wants(self.set) {
            let resource = self.set.tasks()[job.task].sections[section].resource;
            if let Some(holder) = holder(resource) {
                return Some((resource, holder));
            }
        }
        if self.set.protocol() != Protocol::Ceiling || job.last_core.is_some() {
            return None;
        }
        // Every task of these sets has a priority, which is its preemption level.
        let level = |task: &Task| task.priority.unwrap();
        let ceiling = |resource: usize| {
            let users = self.set.tasks().iter();
            users.filter(|task| task.sections.iter().any(|own| own.resource == resource)).map(level).max().unwrap()
        };
        let above = (0..self.set.resources().len()).filter(|resource| holder(*resource).is_some());
        let above = above.filter(|resource| ceiling(*resource) >= level(&self.set.tasks()[job.task]));
        let highest = above.min_by_key(|resource| (-ceiling(*resource), *resource))?;
        Some((highest, holder(highest).unwrap()))
    }

    fn leave(&mut self, index: usize, end: End) {
        let job = self.jobs.remove(index);
        self.end_sections(&job);
        self.completed.insert((job.task, job.number), end == End::Completed);
        self.record(&job, end);
    }

    fn end_sections(&mut self, job: &NaiveJob) {
        for (state, section) in job.inside.iter().zip(&self.set.tasks()[job.task].sections) {
            if let Some(since) = state.filter(|since| *since != DONE) {
                self.holds.push(self.stretch(job, section.resource, since));
            }
        }
        if let Some((since, resource)) = job.waits {
            self.waits.push(self.stretch(job, resource, since));
        }
    }

    fn record(&mut self, job: &NaiveJob, end: End) {
        self.records.push(JobRecord {
            task: job.task as u32,
            number: job.number,
            release: Time(job.release),
            deadline: Time(job.deadline),
            start: job.start.map(Time),
            left: Time(self.now),
            end,
            executed: Time((job.done / 1000).min(job.execution)),
        });
    }

    /// Ends the waits of jobs that can run. Returns whether there is one.
    fn end_waits(&mut self) -> bool {
        let mut is_freed = false;
        for index in 0..self.jobs.len() {
            let is_blocked = self.blocker(index).is_some();
            let was_blocked = std::mem::replace(&mut self.jobs[index].was_blocked, is_blocked);
            is_freed |= was_blocked && !is_blocked;
            if !is_blocked && let Some((since, resource)) = self.jobs[index].waits.take() {
                self.waits.push(self.stretch(&self.jobs[index], resource, since));
            }
        }
        is_freed
    }

    /// Takes jobs off their cores that want what others hold. Returns whether there is one.
    fn stop(&mut self) -> bool {
        let mut stopped: Vec<(usize, usize)> = Vec::new();
        for index in 0..self.jobs.len() {
            let blocker = self.blocker(index);
            if let (Some(_), Some((resource, _))) = (self.jobs[index].core, blocker) {
                let job = &mut self.jobs[index];
                (job.core, job.held) = (None, false);
                job.waits.get_or_insert((self.now, resource));
                stopped.push((job.task, job.number as usize));
            }
        }
        for (task, number) in &stopped {
            let index = self.jobs.iter().position(|job| (job.task, job.number as usize) == (*task, *number)).unwrap();
            if self.jobs[index].leaves {
                self.leave(index, End::Aborted);
                self.end_waits();
            }
        }
        !stopped.is_empty()
    }

    /// What running jobs do in this instant before the deadlines. Returns whether the scheduler has to decide.
    fn reach(&mut self) -> bool {
        let mut happened = false;
        while let Some(index) = self.jobs.iter().position(|job| job.done >= 1000 * job.execution) {
            self.leave(index, End::Completed);
            happened = true;
        }
        for index in 0..self.jobs.len() {
            let job = &mut self.jobs[index];
            job.held = job.core.is_some() && self.set.tasks()[job.task].preemption.is_limited();
            if let Preemption::Every(every) = self.set.tasks()[job.task].preemption
                && job.core.is_some()
                && job.done / 1000 / every.0 > job.before / 1000 / every.0
            {
                (job.held, happened) = (false, true);
            }
        }
        while let Some(index) = self.jobs.iter().position(|job| job.leaves && job.core.is_some() && !job.held) {
            self.leave(index, End::Aborted);
        }
        for index in 0..self.jobs.len() {
            self.unlock(index);
        }
        let freed = self.end_waits();
        self.stop() || freed || happened
    }

    fn unlock(&mut self, index: usize) {
        let job = self.jobs[index].clone();
        let sections = &self.set.tasks()[job.task].sections;
        for (at, section) in sections.iter().enumerate() {
            // A fast core can do more than a section in a nanosecond. It comes to all of them nevertheless, one after another.
            let is_skipped = |(other, inner): (usize, &Section)| {
                job.inside[other].is_none() && section.at <= inner.at && inner.end() <= section.end()
            };
            if sections.iter().enumerate().any(is_skipped) {
                continue;
            }
            if let Some(since) = job.inside[at].filter(|since| *since != DONE && section.end().0 <= job.done / 1000) {
                self.holds.push(self.stretch(&job, section.resource, since));
                self.jobs[index].inside[at] = Some(DONE);
            }
        }
    }

    /// Lets running jobs lock, core by core. Returns whether the scheduler has to decide again.
    fn lock(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.jobs.len()).filter(|index| self.jobs[*index].core.is_some()).collect();
        order.sort_by_key(|index| self.jobs[*index].core);
        for index in order {
            while let Some(section) = self.jobs[index].wants(self.set) {
                let resource = self.set.tasks()[self.jobs[index].task].sections[section].resource;
                let is_taken = |other: usize| self.jobs[other].holds(self.set).any(|held| held == resource);
                if (0..self.jobs.len()).any(|other| other != index && is_taken(other)) {
                    break;
                }
                self.jobs[index].inside[section] = Some(self.now);
                self.unlock(index);
            }
        }
        let freed = self.end_waits();
        self.stop() || freed
    }

    /// Takes the waiting jobs out that have lost a predecessor and will never be released, one after another.
    fn lose(&mut self, behind: &mut Vec<NaiveJob>) {
        let is_lost = |run: &Naive<'_>, job: &NaiveJob| {
            let mut before = run.set.tasks()[job.task].after.iter();
            before.any(|before| run.completed.get(&(*before, job.number)) == Some(&false))
        };
        while let Some(at) = behind.iter().position(|job| is_lost(self, job)) {
            let job = behind.remove(at);
            self.completed.insert((job.task, job.number), false);
            self.record(&job, End::Unreleased);
        }
    }

    fn decide(&mut self) {
        let set = self.set;
        let fastest = |job: &NaiveJob| u64::from(set.fastest(&set.tasks()[job.task]).0);
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|index| {
            let job = &self.jobs[*index];
            ((self.key)(job, &set.tasks()[job.task], self.now, fastest(job)), job.release, job.task, job.number)
        });
        let held: Vec<usize> = (0..self.jobs.len()).filter(|index| self.jobs[*index].held).collect();
        let mut runners: Vec<usize> = Vec::new();
        for index in order {
            let is_plain = set.system.machine().is_plain();
            if is_plain && runners.len() + held.len() >= set.cores() {
                break;
            }
            let (mut runner, mut hops) = (Some(index), 0);
            if let Some((resource, _)) = self.blocker(index)
                && runners.len() + held.len() < set.cores()
            {
                self.jobs[index].waits.get_or_insert((self.now, resource));
            }
            while let Some((_, holder)) = runner.and_then(|runner| self.blocker(runner)) {
                hops += 1;
                runner = Some(holder).filter(|_| set.protocol() != Protocol::None && hops <= self.jobs.len());
            }
            let wanted = |index: usize| {
                let section = self.jobs[index].wants(set)?;
                Some(set.tasks()[self.jobs[index].task].sections[section].resource)
            };
            let Some(runner) = runner.filter(|runner| !runners.contains(runner) && !held.contains(runner)) else {
                continue;
            };
            let is_claimed = |other: &usize| wanted(*other).is_some() && wanted(*other) == wanted(runner);
            if !runners.iter().chain(&held).any(is_claimed) {
                runners.push(runner);
            }
        }
        let cores: Vec<usize> =
            (0..set.cores()).filter(|core| !held.iter().any(|index| self.jobs[*index].core == Some(*core))).collect();
        let mut best = None;
        try_all(set, &cores, &self.jobs, &runners, &mut Vec::new(), &mut best);
        let chosen = best.unwrap().1;
        for index in (0..self.jobs.len()).filter(|index| !held.contains(index)) {
            let core = runners.iter().position(|runner| *runner == index).and_then(|at| chosen[at]);
            let job = &mut self.jobs[index];
            (job.core, job.last_core) = (core, core.or(job.last_core));
            job.start = job.start.or(core.map(|_| self.now));
            job.held = core.is_some() && set.tasks()[job.task].preemption.is_limited();
        }
    }
}

/// Quality of an assignment, the greater the better, and the assignment.
type Found = ((Vec<bool>, Vec<u32>, Vec<bool>, Vec<i64>), Vec<Option<usize>>);

fn try_all(
    set: &TaskSet,
    free: &[usize],
    jobs: &[NaiveJob],
    order: &[usize],
    cores: &mut Vec<Option<usize>>,
    best: &mut Option<Found>,
) {
    // Which jobs run comes first in the quality.
    let runs: Vec<bool> = cores.iter().map(Option::is_some).collect();
    if best.as_ref().is_some_and(|(known, _)| runs[..] < known.0[..runs.len()]) {
        return;
    }
    if cores.len() == order.len() {
        let stays = |(job, core): (&usize, &Option<usize>)| core.map(|core| jobs[*job].core == Some(core));
        let quality = (
            runs,
            cores.iter().flatten().map(|core| set.machine().speed(*core).0).collect(),
            order.iter().zip(cores.iter()).filter_map(stays).collect(),
            cores.iter().flatten().map(|core| -(*core as i64)).collect(),
        );
        if best.as_ref().is_none_or(|(known, _)| quality > *known) {
            *best = Some((quality, cores.clone()));
        }
        return;
    }
    let task = &set.tasks()[jobs[order[cores.len()]].task];
    for core in free.iter().copied().filter(|core| task.cores.contains(*core)) {
        if !cores.contains(&Some(core)) {
            cores.push(Some(core));
            try_all(set, free, jobs, order, cores, best);
            cores.pop();
        }
    }
    cores.push(None);
    try_all(set, free, jobs, order, cores, best);
    cores.pop();
}

fn naive(set: &TaskSet, seed: u64, key: Key, always: bool) -> (Vec<JobRecord>, Vec<Stretch>, Vec<Stretch>) {
    let mut workload = Workload::new(set, seed);
    let (records, holds, waits, completed) = (Vec::new(), Vec::new(), Vec::new(), HashMap::new());
    let mut run = Naive { set, key, now: 0, jobs: Vec::new(), records, holds, waits, completed };
    let mut behind: Vec<NaiveJob> = Vec::new();
    for now in 0..=HORIZON {
        run.now = now;
        let mut happened = run.reach();
        let due: Vec<(usize, u64)> =
            run.jobs.iter().filter(|job| job.deadline == now).map(|job| (job.task, job.number)).collect();
        for (task, number) in due {
            happened = true;
            let index = run.jobs.iter().position(|job| (job.task, job.number) == (task, number)).unwrap();
            if set.on_miss() == OnMiss::Continue {
                continue;
            }
            match run.jobs[index].held {
                true => run.jobs[index].leaves = true,
                false => run.leave(index, End::Aborted),
            }
        }
        run.end_waits();
        let mut arrived = Vec::new();
        while now < HORIZON && workload.next_time() == Time(now) {
            let Release { task, number, deadline, execution, wcet, .. } = workload.pop().unwrap();
            let task = task as usize;
            arrived.push(NaiveJob {
                task,
                number,
                release: now,
                deadline: deadline.0,
                wcet: wcet.0,
                execution: execution.0,
                done: 0,
                before: 0,
                start: None,
                core: None,
                last_core: None,
                held: false,
                leaves: false,
                inside: vec![None; set.tasks()[task].sections.len()],
                waits: None,
                was_blocked: false,
            });
        }
        behind.extend(arrived);
        run.lose(&mut behind);
        if now == HORIZON {
            break;
        }
        let is_ripe = |job: &NaiveJob| {
            let mut before = set.tasks()[job.task].after.iter();
            before.all(|before| run.completed.get(&(*before, job.number)) == Some(&true))
        };
        let (mut ripe, rest): (Vec<NaiveJob>, Vec<NaiveJob>) = behind.into_iter().partition(is_ripe);
        behind = rest;
        ripe.sort_by_key(|job| (job.task, job.number));
        for mut job in ripe {
            (job.release, happened) = (now, true);
            run.jobs.push(job);
            if run.jobs[run.jobs.len() - 1].deadline <= now && set.on_miss() == OnMiss::Abort {
                run.leave(run.jobs.len() - 1, End::Aborted);
            }
        }
        run.lose(&mut behind);
        run.end_waits();
        if happened || always {
            run.decide();
        }
        while run.lock() {
            run.decide();
        }
        run.lose(&mut behind);
        for job in &mut run.jobs {
            job.before = job.done;
            if let Some(core) = job.core {
                job.done += u64::from(set.machine().speed(core).0);
            }
        }
    }
    for job in std::mem::take(&mut run.jobs) {
        run.end_sections(&job);
        run.record(&job, End::Unfinished);
    }
    behind.iter().for_each(|job| run.record(job, End::Unfinished));
    (run.records, run.holds, run.waits)
}

const RESOURCES: usize = 3;

fn any_set() -> impl Strategy<Value = TaskSet> {
    let section = (0..RESOURCES, 0u64..8, 1u64..6);
    let sections = prop::collection::vec(section, 0..=4);
    let task = (3u64..=24, 1u64..=9, 3u64..=24, 0u64..8, any::<bool>(), 0i64..5, sections);
    let cores = prop::sample::select(vec![1usize, 1, 2, 3]);
    (prop::collection::vec(task, 2..=5), cores, any::<bool>(), 0usize..3).prop_map(
        |(tasks, cores, aborts, protocol)| {
            let resources: Vec<String> = (0..RESOURCES).map(|index| format!("r{index}")).collect();
            let mut set = TaskSet::new("random", Vec::new(), cores);
            for (index, (period, wcet, deadline, offset, known, priority, sections)) in tasks.into_iter().enumerate() {
                let mut task = Task::periodic(format!("t{index}"), Time(period), Time(wcet));
                (task.deadline, task.offset, task.priority) = (Time(deadline), Time(offset), Some(priority));
                if !known {
                    task.bcet = Time(1);
                    task.execution = ExecutionModel::Empirical { samples: (1..=wcet).map(Time).collect() };
                }
                for (resource, at, length) in sections {
                    task.sections.push(Section { resource, at: Time(at), length: Time(length) });
                    if task.section_problem(&resources).is_some() {
                        task.sections.pop();
                    }
                }
                set.system.tasks_mut().push(task);
            }
            set.system.set_resources(resources);
            set.system.set_on_miss(if aborts { OnMiss::Abort } else { OnMiss::Continue });
            set.system.set_protocol(Protocol::ALL[if cores > 1 { protocol.min(1) } else { protocol }]);
            set
        },
    )
}

fn with_limits(mut set: TaskSet, limits: &[u64]) -> TaskSet {
    for (task, limit) in set.system.tasks_mut().iter_mut().zip(limits) {
        task.preemption = match limit {
            0 | 1 => Preemption::Free,
            2 => Preemption::None,
            every => Preemption::Every(Time(every - 2)),
        };
    }
    set
}

fn with_machine(mut set: TaskSet, speeds: &[u32], cores: &[usize]) -> TaskSet {
    let count = set.cores();
    let core = |speed: &u32| Core { name: "c".into(), speed: Speed(*speed) };
    set.system.set_machine(speeds.iter().take(count).map(core).collect());
    for (task, cores) in set.system.tasks_mut().iter_mut().zip(cores) {
        task.cores = CoreSet::of((0..count).filter(|core| cores >> core & 1 == 1));
    }
    set
}

fn with_precedence(mut set: TaskSet, edges: &[bool]) -> TaskSet {
    let periods: Vec<Time> = set.tasks().iter().filter_map(Task::period).collect();
    for index in 0..set.tasks().len() {
        set.system.tasks_mut()[index].arrival = Arrival::Periodic { period: periods[index % 2].max(Time(8)) };
        let before = (index % 2..index).step_by(2);
        set.system.tasks_mut()[index].after = before.filter(|other| edges[5 * index + other]).collect();
    }
    set.system.follow_sources().unwrap();
    set
}

fn agree(set: &TaskSet, seed: u64) -> Result<(), TestCaseError> {
    prop_assert_eq!(set.system.validate(), Ok(()));
    for (name, key, always) in RULES {
        let (mut jobs, mut holds, mut waits) = naive(set, seed, key, always);
        let mut recorder = Recorder::until(Time::NEVER);
        let mut scheduler = temponet_sched::build(name).unwrap();
        let metrics = simulate(set, seed, Time(HORIZON), &mut *scheduler, &mut recorder).unwrap();
        let order = |job: &JobRecord| (job.task, job.number);
        jobs.sort_by_key(order);
        recorder.jobs.sort_by_key(order);
        let by_time = |stretch: &Stretch| (stretch.task, stretch.number, stretch.resource, stretch.start, stretch.end);
        waits.retain(|wait| wait.start < wait.end);
        for stretches in [&mut holds, &mut waits, &mut recorder.holds, &mut recorder.waits] {
            stretches.sort_by_key(by_time);
        }
        prop_assert_eq!(&recorder.jobs, &jobs, "{}", name);
        prop_assert_eq!(&recorder.holds, &holds, "{} holds", name);
        prop_assert_eq!(&recorder.waits, &waits, "{} waits", name);
        let counted = |wait: &&Stretch| {
            let record = jobs.iter().find(|job| (job.task, job.number) == (wait.task, wait.number)).unwrap();
            record.deadline <= Time(HORIZON)
        };
        let waited: u128 = waits.iter().filter(counted).map(|wait| u128::from((wait.end - wait.start).0)).sum();
        prop_assert_eq!(metrics.tasks.iter().map(|task| task.blocked_sum).sum::<u128>(), waited, "{}", name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_scheduler_agrees_with_its_naive_form(set in any_set(), seed in 0u64..1000) {
        agree(&set, seed)?;
    }

    #[test]
    fn sections_and_limits_on_preemption_go_together(
        set in any_set(),
        limits in prop::collection::vec(0u64..=6, 5),
        seed in 0u64..1000,
    ) {
        agree(&with_limits(set, &limits), seed)?;
    }

    #[test]
    fn sections_and_cores_that_differ_go_together(
        set in any_set(),
        speeds in prop::collection::vec(prop::sample::select(vec![370u32, 500, 1000, 1600, 3000]), 3),
        cores in prop::collection::vec(0usize..16, 5),
        seed in 0u64..1000,
    ) {
        agree(&with_machine(set, &speeds, &cores), seed)?;
    }

    #[test]
    fn sections_and_precedence_go_together(
        set in any_set(),
        edges in prop::collection::vec(prop::bool::weighted(0.4), 25),
        seed in 0u64..1000,
    ) {
        agree(&with_precedence(set, &edges), seed)?;
    }

    #[test]
    fn all_of_it_goes_together(
        set in any_set(),
        limits in prop::collection::vec(0u64..=6, 5),
        speeds in prop::collection::vec(prop::sample::select(vec![370u32, 500, 1000, 1600, 3000]), 3),
        cores in prop::collection::vec(0usize..16, 5),
        edges in prop::collection::vec(prop::bool::weighted(0.4), 25),
        seed in 0u64..1000,
    ) {
        agree(&with_precedence(with_machine(with_limits(set, &limits), &speeds, &cores), &edges), seed)?;
    }
}
