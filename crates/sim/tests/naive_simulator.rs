//! Contract: the event-driven engine with the real schedulers produces, job by job, the same schedule as a naive simulator
//! that advances millisecond by millisecond and sorts all ready jobs by the textbook rule. Tested on random small sets
//! with both miss rules, one to four cores, known and uncertain execution times, with and without limits on preemption, with
//! tasks that come after each other, and with jobs that carry estimates.

use std::collections::HashMap;

use proptest::prelude::*;
use temponet_sim::{End, JobRecord, Recorder, Release, Workload, simulate};
use temponet_task::{Arrival, ExecutionModel, OnMiss, Preemption, Task, TaskSet, Time};

const HORIZON_MS: u64 = 60;

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

const MS: i64 = 1_000_000;

/// Job of the naive simulator. All times are in milliseconds, except for the bcet and the estimate.
#[derive(Clone, Copy, Debug)]
struct NaiveJob {
    task: usize,
    number: u64,
    release: i64,
    deadline: i64,
    wcet: i64,
    /// Best-case execution time in nanoseconds.
    bcet: i64,
    /// Median and ninth decile of the estimate in nanoseconds; none without one.
    estimate: Option<[i64; 2]>,
    /// Whether the job is planned by its wcet in any case.
    is_important: bool,
    execution: i64,
    done: i64,
    start: Option<i64>,
    core: Option<usize>,
    last_core: Option<usize>,
    /// Whether the job keeps its core at this instant.
    held: bool,
    /// Whether the job leaves at its next preemption point.
    leaves: bool,
}

impl NaiveJob {
    fn remaining(&self) -> i64 {
        self.wcet - self.done
    }

    fn laxity(&self, now: i64) -> i64 {
        self.deadline - now - self.remaining()
    }

    /// Remaining nanoseconds by the first of these times that the job has not reached, otherwise by the wcet.
    fn remaining_by(&self, times: &[i64]) -> i64 {
        let done = self.done * MS;
        times.iter().find(|time| **time > done).unwrap_or(&(self.wcet * MS)) - done
    }

    fn expected(&self) -> i64 {
        let Some([median, high]) = self.estimate else { return self.remaining_by(&[]) };
        let range = (self.wcet * MS - self.bcet).max(1) as f64;
        let share = (high - median) as f64 / range;
        let moved = ((self.wcet * MS - median) as f64 * share) as i64;
        self.remaining_by(&[median + moved, high])
    }

    fn planned(&self) -> i64 {
        let high = self.estimate.filter(|_| !self.is_important).map(|[_, high]| high);
        self.remaining_by(&Vec::from_iter(high))
    }

    /// Laxity in nanoseconds by the time that the job is planned with.
    fn planned_laxity(&self, now: i64) -> i64 {
        (self.deadline - now) * MS - self.planned()
    }

    fn tie(&self) -> (i64, usize, u64) {
        (self.release, self.task, self.number)
    }
}

/// State that a rule sees: the time, the ready jobs, the tasks, the number of cores, and whether any event happened now.
struct NaiveState<'a> {
    now: i64,
    jobs: &'a [NaiveJob],
    tasks: &'a [Task],
    cores: usize,
    happened: bool,
}

/// Scheduling rule that returns the indices of the jobs to run, best first. `None` keeps the current assignment.
type NaiveRule<'a> = Box<dyn FnMut(&NaiveState) -> Option<Vec<usize>> + 'a>;

/// Sorts jobs by a key and the common tie-break.
fn sorted<K: Ord>(state: &NaiveState, mut jobs: Vec<usize>, key: impl Fn(&NaiveJob) -> K) -> Vec<usize> {
    jobs.sort_by_key(|index| (key(&state.jobs[*index]), state.jobs[*index].tie()));
    jobs
}

fn by_key<K: Ord>(key: impl Fn(&NaiveState, &NaiveJob) -> K + 'static) -> NaiveRule<'static> {
    Box::new(move |state| {
        let mut best = sorted(state, (0..state.jobs.len()).collect(), |job| key(state, job));
        best.truncate(state.cores);
        Some(best)
    })
}

fn period(state: &NaiveState, job: &NaiveJob) -> i64 {
    state.tasks[job.task].period().map_or(0, |period| (period.0 / 1_000_000) as i64)
}

/// Moore–Hodgson over the ready jobs, with list scheduling from scratch.
fn moore_hodgson(state: &NaiveState) -> Option<Vec<usize>> {
    if !state.happened {
        return None;
    }
    let fits = |index: &usize| state.jobs[*index].planned_laxity(state.now) >= 0;
    let candidates = sorted(state, (0..state.jobs.len()).filter(fits).collect(), |job| job.deadline);
    let on_time = |accepted: &[usize]| {
        let mut free = vec![state.now * MS; state.cores];
        accepted.iter().all(|index| {
            let core = (0..state.cores).min_by_key(|core| (free[*core], *core)).unwrap();
            free[core] += state.jobs[*index].planned();
            free[core] <= state.jobs[*index].deadline * MS
        })
    };
    let mut accepted: Vec<usize> = Vec::new();
    for candidate in candidates {
        accepted.push(candidate);
        while !on_time(&accepted) {
            let longest = (0..accepted.len()).max_by_key(|at| (state.jobs[accepted[*at]].planned(), *at)).unwrap();
            accepted.remove(longest);
        }
    }
    let rejected = (0..state.jobs.len()).filter(|index| !accepted.contains(index)).collect();
    let rejected = sorted(state, rejected, NaiveJob::planned);
    let urgent = |index: &usize| state.cores > 1 && state.jobs[*index].planned_laxity(state.now) <= 0;
    let (first, then): (Vec<_>, Vec<_>) = accepted.into_iter().partition(urgent);
    let mut order = first;
    order.extend(then);
    order.extend(rejected);
    order.truncate(state.cores);
    Some(order)
}

/// Moore–Hodgson over ready and future jobs, with the work due by each deadline summed up from scratch.
fn look_ahead(state: &NaiveState) -> Option<Vec<usize>> {
    if !state.happened {
        return None;
    }
    let (fitting, late): (Vec<_>, Vec<_>) =
        (0..state.jobs.len()).partition(|index| state.jobs[*index].planned_laxity(state.now) >= 0);
    // Deadline, whether the job is in the future, tie-break, work, and index of the ready job.
    let ready = |index: usize| {
        let job = &state.jobs[index];
        (job.deadline, false, job.tie(), job.planned(), Some(index))
    };
    let mut all: Vec<_> = fitting.iter().map(|index| ready(*index)).collect();
    let last = all.iter().map(|job| job.0).max().unwrap_or(0);
    let in_ms = |time: Time| (time.0 / 1_000_000) as i64;
    for (task, own) in state.tasks.iter().enumerate() {
        let Arrival::Periodic { period } = own.arrival else { continue };
        let releases = (0u64..).map(|number| (number, in_ms(own.offset) + number as i64 * in_ms(period)));
        for (number, release) in releases.skip_while(|(_, release)| *release <= state.now).take(3) {
            let deadline = release + in_ms(own.deadline);
            if deadline <= last {
                all.push((deadline, true, (release, task, number), in_ms(own.wcet) * MS, None));
            }
        }
    }
    all.sort();
    let mut kept: Vec<usize> = Vec::new();
    for place in 0..all.len() {
        kept.push(place);
        let possible = state.cores as i64 * (all[place].0 - state.now) * MS;
        while kept.iter().map(|kept| all[*kept].3).sum::<i64>() > possible {
            let longest = kept.iter().copied().max_by_key(|kept| (all[*kept].3, *kept)).unwrap();
            kept.retain(|kept| *kept != longest);
        }
    }
    let ready_of = |stays: bool| (0..all.len()).filter(|place| kept.contains(place) == stays).collect::<Vec<_>>();
    let in_order = [ready_of(true), ready_of(false)].concat();
    let late = sorted(state, late, |job| job.deadline);
    Some(in_order.into_iter().filter_map(|place| all[place].4).chain(late).take(state.cores).collect())
}

/// Round-robin with time slices of one millisecond, in a plain list. Every tick ends a time slice.
fn round_robin() -> NaiveRule<'static> {
    let mut queue: Vec<(usize, u64)> = Vec::new();
    Box::new(move |state| {
        let id = |job: &NaiveJob| (job.task, job.number);
        let present: Vec<_> = state.jobs.iter().map(id).collect();
        queue.retain(|job| present.contains(job));
        let arrivals = (0..state.jobs.len()).filter(|index| !queue.contains(&id(&state.jobs[*index]))).collect();
        for index in sorted(state, arrivals, |_| ()) {
            queue.push(id(&state.jobs[index]));
        }
        // Running jobs keep their place in the order of cores. Those that must make room go to the tail.
        let core_of = |job: &(usize, u64)| state.jobs[present.iter().position(|p| p == job).unwrap()].core;
        let (mut running, waiting): (Vec<_>, Vec<_>) = queue.iter().copied().partition(|job| core_of(job).is_some());
        running.sort_by_key(core_of);
        let free = state.cores - running.len();
        let leaving = waiting.len().saturating_sub(free).min(running.len());
        let tail: Vec<_> = running.drain(..leaving).collect();
        queue = running.into_iter().chain(waiting).chain(tail).collect();
        let place = |job: &(usize, u64)| present.iter().position(|p| p == job).unwrap();
        Some(queue.iter().take(state.cores).map(place).collect())
    })
}

/// PD² with the windows computed subtask by subtask, and the group deadline by its definition.
fn pd2(state: &NaiveState) -> Option<Vec<usize>> {
    let window = |job: &NaiveJob| (job.deadline - job.release).max(1);
    let needed = |job: &NaiveJob| job.wcet.clamp(1, window(job));
    let deadline = |job: &NaiveJob, i: i64| (i * window(job) + needed(job) - 1) / needed(job);
    let release = |job: &NaiveJob, i: i64| (i - 1) * window(job) / needed(job);
    let overlap = |job: &NaiveJob, i: i64| i < needed(job) && release(job, i + 1) < deadline(job, i);
    let subtask = |job: &NaiveJob| job.done.min(needed(job) - 1) + 1;
    let group = |job: &NaiveJob, i: i64| {
        if 2 * needed(job) < window(job) || !overlap(job, i) {
            return 0;
        }
        let ends = |t: i64, k: i64| {
            (t == deadline(job, k) && !overlap(job, k))
                || (t + 1 == deadline(job, k) && deadline(job, k) - release(job, k) == 3)
        };
        let mut t = deadline(job, i);
        while !(i..=needed(job)).any(|k| ends(t, k)) {
            t += 1;
        }
        job.release + t
    };
    let eligible = (0..state.jobs.len()).filter(|index| {
        let job = &state.jobs[*index];
        state.now >= job.release + release(job, subtask(job))
    });
    let mut best = sorted(state, eligible.collect(), |job| {
        let i = subtask(job);
        (job.release + deadline(job, i), !overlap(job, i), -group(job, i))
    });
    best.truncate(state.cores);
    Some(best)
}

/// First-fit decreasing assignment to clusters of `size` cores, then EDF or RM within each. Chooses at most one job per
/// core of each cluster.
fn clustered(size: usize, rate_monotonic: bool) -> NaiveRule<'static> {
    Box::new(move |state| {
        let clusters = state.cores.div_ceil(size);
        let cores_of = |cluster: usize| (state.cores - cluster * size).min(size);
        let load = |task: &Task| {
            let period = task.period().unwrap();
            task.wcet.0 as f64 / period.min(task.deadline).0 as f64
        };
        let mut order: Vec<usize> = (0..state.tasks.len()).collect();
        order.sort_by(|a, b| load(&state.tasks[*b]).total_cmp(&load(&state.tasks[*a])));
        let mut loads = vec![Vec::<f64>::new(); clusters];
        let mut cluster_of = vec![0; state.tasks.len()];
        for task in order {
            let with = |cluster: usize| loads[cluster].iter().copied().chain([load(&state.tasks[task])]);
            let fits = |cluster: &usize| match rate_monotonic {
                true => with(*cluster).map(|load| load + 1.0).product::<f64>() <= 2.0 + 1e-9,
                false => with(*cluster).sum::<f64>() <= cores_of(*cluster) as f64 + 1e-9,
            };
            let room = |cluster: usize| cores_of(cluster) as f64 - loads[cluster].iter().sum::<f64>();
            let roomiest = || (0..clusters).rev().max_by(|a, b| room(*a).total_cmp(&room(*b))).unwrap();
            let cluster = (0..clusters).find(fits).unwrap_or_else(roomiest);
            loads[cluster].push(load(&state.tasks[task]));
            cluster_of[task] = cluster;
        }
        let mut chosen = Vec::new();
        for cluster in 0..clusters {
            let mine = (0..state.jobs.len()).filter(|index| cluster_of[state.jobs[*index].task] == cluster);
            let key = |job: &NaiveJob| if rate_monotonic { period(state, job) } else { job.deadline };
            let (held, free): (Vec<_>, Vec<_>) = mine.partition(|index| state.jobs[*index].held);
            let room = cores_of(cluster) - held.len();
            chosen.extend(held);
            chosen.extend(sorted(state, free, key).into_iter().take(room));
        }
        Some(chosen)
    })
}

fn whole(time: Time) -> i64 {
    (time.0 / 1_000_000) as i64
}

/// Tasks that come after a task.
fn behind(tasks: &[Task], task: usize) -> impl Iterator<Item = usize> {
    (0..tasks.len()).filter(move |other| tasks[*other].after.contains(&task))
}

/// Time from the arrival of a task's job to the date by which it has to complete.
fn due(tasks: &[Task], task: usize) -> i64 {
    let later = |other: usize| whole(tasks[other].offset) - whole(tasks[task].offset);
    let by_next = behind(tasks, task).map(|next| due(tasks, next) - whole(tasks[next].wcet) + later(next));
    by_next.chain([whole(tasks[task].deadline)]).min().unwrap()
}

/// Longest path of wcets from the start of a task.
fn level(tasks: &[Task], task: usize) -> i64 {
    whole(tasks[task].wcet) + behind(tasks, task).map(|next| level(tasks, next)).max().unwrap_or(0)
}

/// Returns the naive rule for a scheduler. For p-* and c-edf, jobs are placed by cluster in the real scheduler only, so
/// the comparison leaves out preemptions and migrations.
fn rule(name: &str) -> NaiveRule<'static> {
    match name {
        "fcfs" => by_key(|_, _| ()),
        "rm" => by_key(period),
        "dm" => by_key(|state, job| state.tasks[job.task].deadline),
        "fp" => by_key(|state, job| std::cmp::Reverse(state.tasks[job.task].priority)),
        "edf" => by_key(|_, job| job.deadline),
        "srpt" => {
            let mut shortest = by_key(|_, job| job.expected());
            // Between events, nobody looks whether a job has reached its estimate.
            Box::new(move |state| if state.happened { shortest(state) } else { None })
        }
        "llf" => by_key(|state, job| job.laxity(state.now)),
        "edf-skip" => by_key(|state, job| (job.laxity(state.now) < 0, job.deadline)),
        "edzl" => by_key(|state, job| (job.laxity(state.now) > 0, job.deadline)),
        "g-fl" => by_key(|state, job| job.deadline * state.cores as i64 - job.wcet * (state.cores as i64 - 1)),
        "edf-us" => by_key(|state, job| {
            let (m, share) = (state.cores as f64, job.wcet as f64 / period(state, job) as f64);
            if share > m / (2.0 * m - 1.0) { 0 } else { job.deadline }
        }),
        "edf-chain" => by_key(|state, job| {
            job.deadline - whole(state.tasks[job.task].deadline) + due(state.tasks, job.task).max(0)
        }),
        "hlfet" => by_key(|state, job| -level(state.tasks, job.task)),
        "mh-edf" => Box::new(moore_hodgson),
        "look-ahead:caution=1" => Box::new(look_ahead),
        "rr" => round_robin(),
        "pd2" => Box::new(pd2),
        "p-edf" => clustered(1, false),
        "c-edf" => clustered(2, false),
        "p-rm" => clustered(1, true),
        _ => unreachable!("{name} has no naive form"),
    }
}

const NAMES: [&str; 18] = [
    "g-fl",
    "edf-us",
    "fcfs",
    "rr",
    "fp",
    "rm",
    "dm",
    "edf",
    "llf",
    "srpt",
    "edf-skip",
    "mh-edf",
    "edzl",
    "p-edf",
    "c-edf",
    "p-rm",
    "pd2",
    "look-ahead:caution=1",
];

/// Result of a naive run.
struct NaiveRun {
    jobs: Vec<JobRecord>,
    preemptions: u64,
    migrations: u64,
}

/// Simulates a run tick by tick.
fn naive(set: &TaskSet, seed: u64, mut rule: NaiveRule) -> NaiveRun {
    let mut workload = Workload::new(set, seed);
    let mut jobs: Vec<NaiveJob> = Vec::new();
    let mut run = NaiveRun { jobs: Vec::new(), preemptions: 0, migrations: 0 };
    // Jobs that wait for others, and how the jobs that have left did so.
    let (mut waiting, mut completed): (Vec<NaiveJob>, HashMap<(usize, u64), bool>) = (Vec::new(), HashMap::new());
    let leave = |job: &NaiveJob, now: i64, end: End| JobRecord {
        task: job.task as u32,
        number: job.number,
        release: ms(job.release as u64),
        deadline: ms(job.deadline as u64),
        start: job.start.map(|start| ms(start as u64)),
        left: ms(now as u64),
        end,
        executed: ms(job.done as u64),
    };
    for now in 0..=HORIZON_MS as i64 {
        let mut happened = false;
        jobs.retain_mut(|job| {
            let is_point = match set.tasks()[job.task].preemption {
                Preemption::Every(every) => ms(job.done as u64).0.is_multiple_of(every.0),
                _ => false,
            };
            let can_hold = set.tasks()[job.task].preemption.is_limited() && job.core.is_some();
            job.held = can_hold && !is_point;
            let aborts = (job.deadline == now && set.on_miss() == OnMiss::Abort) || job.leaves;
            job.leaves = aborts;
            let end = match job.done == job.execution {
                true => Some(End::Completed),
                false => (aborts && !job.held).then_some(End::Aborted),
            };
            happened |= end.is_some() || job.deadline == now || (can_hold && is_point);
            completed.extend(end.map(|end| ((job.task, job.number), end == End::Completed)));
            run.jobs.extend(end.map(|end| leave(job, now, end)));
            end.is_none()
        });
        lose(set, &mut waiting, &mut completed, |job| run.jobs.push(leave(job, now, End::Unreleased)));
        if now == HORIZON_MS as i64 {
            break;
        }
        while workload.next_time() == ms(now as u64) {
            let Release { task, number, deadline, execution, wcet, bcet, estimate, .. } = workload.pop().unwrap();
            let (deadline, execution, wcet) = (whole(deadline), whole(execution), whole(wcet));
            let (task, start, core, last_core) = (task as usize, None, None, None);
            let follows = !set.tasks()[task].after.is_empty();
            let arrived = if follows { &mut waiting } else { &mut jobs };
            arrived.push(NaiveJob {
                task,
                number,
                release: now,
                deadline,
                wcet,
                bcet: bcet.0 as i64,
                estimate: estimate.map(|of| [of.median(), of.high()].map(|time| time.0 as i64)),
                is_important: set.tasks()[task].criticality > 0 || set.tasks()[task].guarantee,
                execution,
                done: 0,
                start,
                core,
                last_core,
                held: false,
                leaves: false,
            });
            happened |= !follows;
        }
        lose(set, &mut waiting, &mut completed, |job| run.jobs.push(leave(job, now, End::Unreleased)));
        let is_ripe = |job: &NaiveJob| {
            let before = &set.tasks()[job.task].after;
            before.iter().all(|before| completed.get(&(*before, job.number)) == Some(&true))
        };
        let (ripe, rest): (Vec<NaiveJob>, Vec<NaiveJob>) = waiting.into_iter().partition(is_ripe);
        waiting = rest;
        for mut job in ripe {
            (job.release, happened) = (now, true);
            if job.deadline <= now && set.on_miss() == OnMiss::Abort {
                run.jobs.push(leave(&job, now, End::Aborted));
                completed.insert((job.task, job.number), false);
            } else {
                jobs.push(job);
            }
        }
        lose(set, &mut waiting, &mut completed, |job| run.jobs.push(leave(job, now, End::Unreleased)));
        let state = NaiveState { now, jobs: &jobs, tasks: set.tasks(), cores: set.cores(), happened };
        if let Some(chosen) = rule(&state) {
            place(&mut jobs, &chosen, set.cores(), &mut run);
        }
        for job in jobs.iter_mut().filter(|job| job.core.is_some()) {
            job.start.get_or_insert(now);
            job.done += 1;
        }
    }
    let unfinished = jobs.iter().chain(&waiting);
    run.jobs.extend(unfinished.map(|job| leave(job, HORIZON_MS as i64, End::Unfinished)));
    run
}

/// Takes the waiting jobs out that will never be released, one after another.
fn lose(
    set: &TaskSet,
    waiting: &mut Vec<NaiveJob>,
    completed: &mut HashMap<(usize, u64), bool>,
    mut lost: impl FnMut(&NaiveJob),
) {
    let is_lost = |job: &NaiveJob, completed: &HashMap<(usize, u64), bool>| {
        let before = &set.tasks()[job.task].after;
        before.iter().any(|before| completed.get(&(*before, job.number)) == Some(&false))
    };
    while let Some(at) = waiting.iter().position(|job| is_lost(job, completed)) {
        let job = waiting.remove(at);
        completed.insert((job.task, job.number), false);
        lost(&job);
    }
}

/// Puts the chosen jobs on cores: jobs that hold their cores stay, the best others that there is room for get one. Running
/// jobs stay on their core, and the rest take the free cores in ascending order.
fn place(jobs: &mut [NaiveJob], chosen: &[usize], cores: usize, run: &mut NaiveRun) {
    let held: Vec<usize> = (0..jobs.len()).filter(|index| jobs[*index].held).collect();
    let others = chosen.iter().copied().filter(|index| !jobs[*index].held);
    let chosen: Vec<usize> = others.take(cores - held.len()).chain(held.iter().copied()).collect();
    for (index, job) in jobs.iter_mut().enumerate() {
        if job.core.is_some() && !chosen.contains(&index) {
            job.core = None;
            run.preemptions += 1;
        }
    }
    for index in &chosen {
        if jobs[*index].core.is_none() {
            let free = (0..cores).find(|core| jobs.iter().all(|job| job.core != Some(*core)));
            let job = &mut jobs[*index];
            run.migrations += u64::from(job.last_core.is_some() && job.last_core != free);
            (job.core, job.last_core) = (free, free);
        }
    }
}

fn any_task() -> impl Strategy<Value = Task> {
    let shape = (2u64..=12, 1u64..=6, 1u64..=14, 0u64..=5);
    (shape, any::<bool>(), 0i64..4, any::<bool>()).prop_map(
        |((period, wcet, deadline, offset), implicit, priority, known)| {
            let mut task = Task::periodic("t", ms(period), ms(wcet));
            task.offset = ms(offset);
            task.priority = Some(priority);
            if !implicit {
                task.deadline = ms(deadline);
            }
            if !known {
                task.bcet = ms(1);
                task.execution = ExecutionModel::Empirical { samples: (1..=wcet).map(ms).collect() };
            }
            task
        },
    )
}

fn any_set() -> impl Strategy<Value = TaskSet> {
    (prop::collection::vec(any_task(), 1..=6), 1usize..=4, any::<bool>()).prop_map(|(mut tasks, cores, aborts)| {
        for (index, task) in tasks.iter_mut().enumerate() {
            task.name = format!("t{index}");
        }
        let mut set = TaskSet::new("random", tasks, cores);
        set.system.set_on_miss(if aborts { OnMiss::Abort } else { OnMiss::Continue });
        set
    })
}

/// A set some of whose tasks limit preemption.
fn any_limited_set() -> impl Strategy<Value = TaskSet> {
    (any_set(), prop::collection::vec(0u64..=5, 6)).prop_map(|(set, limits)| limited(set, limits))
}

fn limited(mut set: TaskSet, limits: Vec<u64>) -> TaskSet {
    for (task, limit) in set.system.tasks_mut().iter_mut().zip(limits) {
        task.preemption = match limit {
            0 => Preemption::Free,
            1 | 2 => Preemption::None,
            every => Preemption::Every(ms(every - 2)),
        };
    }
    set
}

/// A set whose tasks come after each other: tasks with even and with odd indices form graphs, each with one period.
fn any_dependent_set() -> impl Strategy<Value = TaskSet> {
    let edges = prop::collection::vec(prop::bool::weighted(0.4), 36);
    (any_set(), edges, prop::collection::vec(prop::bool::weighted(0.7), 6)).prop_map(|(mut set, edges, joins)| {
        let periods: Vec<Option<Time>> = set.tasks().iter().map(Task::period).collect();
        for index in 0..set.tasks().len() {
            let period = periods[index % 2].unwrap_or(ms(5)).max(ms(4));
            set.system.tasks_mut()[index].arrival = Arrival::Periodic { period };
            let before = (index % 2..index).step_by(2);
            set.system.tasks_mut()[index].after =
                before.filter(|other| joins[index] && edges[6 * index + other]).collect();
        }
        set.system.follow_sources().unwrap();
        set
    })
}

/// A set some of whose tasks carry estimates, exact ones and ones with small and large errors.
fn any_estimated_set() -> impl Strategy<Value = TaskSet> {
    (any_set(), prop::collection::vec((0usize..5, 0u8..12), 6)).prop_map(|(mut set, estimates)| {
        for (task, (error, importance)) in set.system.tasks_mut().iter_mut().zip(estimates) {
            task.estimate_error = [None, Some(0.0), Some(0.1), Some(0.4), Some(1.5)][error];
            (task.criticality, task.guarantee) = (u8::from(importance == 1), (2..4).contains(&importance));
        }
        set
    })
}

/// Returns whether a scheduler has a naive form for tasks that come after each other: it must not count on periodic releases.
fn takes_precedence(name: &str) -> bool {
    !matches!(name, "pd2" | "look-ahead:caution=1")
}

/// Returns whether a scheduler runs sets that limit preemption, and has a naive form for them.
fn takes_limits(name: &str) -> bool {
    !matches!(name, "pd2" | "rr")
}

/// Compares every job and the number of preemptions and migrations under a scheduler with its naive form.
fn agrees(set: &TaskSet, seed: u64, name: &str) -> Result<(), TestCaseError> {
    let mut expected = naive(set, seed, rule(name));
    let mut recorder = Recorder::until(Time::NEVER);
    let mut scheduler = temponet_sched::build(name).unwrap();
    let metrics = simulate(set, seed, ms(HORIZON_MS), &mut *scheduler, &mut recorder).unwrap();
    let order = |job: &JobRecord| (job.task, job.number);
    expected.jobs.sort_by_key(order);
    recorder.jobs.sort_by_key(order);
    prop_assert_eq!(&recorder.jobs, &expected.jobs, "{}", name);
    if !matches!(name, "p-edf" | "c-edf" | "p-rm") {
        let (preemptions, migrations) = (expected.preemptions, expected.migrations);
        prop_assert_eq!((metrics.preemptions, metrics.migrations), (preemptions, migrations), "{}", name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_scheduler_agrees_with_its_naive_form(set in any_set(), seed in 0u64..1000) {
        for name in NAMES {
            agrees(&set, seed, name)?;
        }
    }

    #[test]
    fn every_scheduler_agrees_with_its_naive_form_where_jobs_carry_estimates(
        set in any_estimated_set(),
        seed in 0u64..1000,
    ) {
        prop_assert_eq!(set.system.validate(), Ok(()));
        // The naive form of look-ahead knows no importance.
        let has_form = |name: &&str| !set.has_critical_tasks() || !name.starts_with("look-ahead");
        for name in NAMES.into_iter().filter(has_form) {
            agrees(&set, seed, name)?;
        }
    }

    #[test]
    fn every_scheduler_agrees_with_its_naive_form_where_preemption_is_limited(
        set in any_limited_set(),
        seed in 0u64..1000,
    ) {
        for name in NAMES.into_iter().filter(|name| takes_limits(name)) {
            agrees(&set, seed, name)?;
        }
    }

    #[test]
    fn every_scheduler_agrees_with_its_naive_form_where_tasks_come_after_each_other(
        set in any_dependent_set(),
        seed in 0u64..1000,
    ) {
        prop_assert_eq!(set.system.validate(), Ok(()));
        let for_graphs = ["edf-chain", "hlfet"].into_iter().filter(|_| set.has_precedence());
        for name in NAMES.into_iter().filter(|name| takes_precedence(name)).chain(for_graphs) {
            agrees(&set, seed, name)?;
        }
    }

    #[test]
    fn limits_on_preemption_and_precedence_go_together(
        set in any_dependent_set(),
        limits in prop::collection::vec(0u64..=5, 6),
        seed in 0u64..1000,
    ) {
        let set = limited(set, limits);
        let for_graphs = ["edf-chain", "hlfet"].into_iter().filter(|_| set.has_precedence());
        for name in ["edf", "dm", "fcfs", "mh-edf"].into_iter().chain(for_graphs) {
            agrees(&set, seed, name)?;
        }
    }
}
