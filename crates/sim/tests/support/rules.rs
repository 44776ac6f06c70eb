//! Schedulers in their textbook form: rules that order all ready jobs from scratch.

use temponet_task::{Arrival, Attribute, Task, TaskId, Time};

use super::{NaiveJob, State};

/// Scheduling rule that returns the indices of the jobs to run, best first. `None` keeps the current assignment.
pub type Rule = Box<dyn FnMut(&State) -> Option<Vec<usize>>>;

/// Returns the naive form of a scheduler.
pub fn rule(name: &str) -> Rule {
    match name {
        "fcfs" => by_key(|_, _| ()),
        "rm" => by_key(period),
        "dm" => by_key(|state, job| state.task(job).deadline),
        "fp" => by_key(|state, job| std::cmp::Reverse(state.task(job).extra.get(Attribute::Priority))),
        "edf" => by_key(|_, job| job.deadline),
        "srpt" => by_key(|_, job| job.expected()),
        "edf-skip" => by_key(|state, job| (job.planned_laxity(state.now) < 0, job.deadline)),
        "llf" | "llf:quantum=1ns" => at_each_tick(by_key(|state, job| job.laxity(state.now))),
        "edzl" => at_each_tick(by_key(|state, job| (job.laxity(state.now) > 0, job.deadline))),
        "g-fl" => by_key(|state, job| {
            let cores = state.cores() as i64;
            job.deadline * cores - job.wcet * (cores - 1)
        }),
        "edf-us" => by_key(|state, job| {
            let (m, share) = (state.cores() as f64, job.wcet as f64 / period(state, job) as f64);
            if share > m / (2.0 * m - 1.0) { 0 } else { job.deadline }
        }),
        "edf-chain" => by_key(|state, job| {
            job.deadline - nanoseconds(state.task(job).deadline) + due(state.set.tasks(), job.task).max(0)
        }),
        "hlfet" => by_key(|state, job| -level(state.set.tasks(), job.task)),
        "mh-edf" => on_events(moore_hodgson),
        "look-ahead:caution=1" => on_events(look_ahead),
        "rr" => round_robin(),
        "pd2" => Box::new(|state| Some(pd2(state))),
        "p-edf" => clustered(1, false),
        "c-edf" => clustered(2, false),
        "p-rm" => clustered(1, true),
        _ => unreachable!("{name} has no naive form"),
    }
}

/// A rule that looks at the jobs when something has happened.
fn on_events(rule: impl Fn(&State) -> Vec<usize> + 'static) -> Rule {
    Box::new(move |state| state.happened.then(|| rule(state)))
}

/// The same rule, asked at each tick.
fn at_each_tick(mut rule: Rule) -> Rule {
    Box::new(move |state| {
        let State { now, tick, set, jobs, .. } = *state;
        rule(&State { now, tick, set, jobs, happened: true })
    })
}

/// Sorts jobs by a key and the common tie-break.
fn sorted<K: Ord>(state: &State, mut jobs: Vec<usize>, key: impl Fn(&NaiveJob) -> K) -> Vec<usize> {
    jobs.sort_by_key(|index| (key(&state.jobs[*index]), state.jobs[*index].tie()));
    jobs
}

fn by_key<K: Ord>(key: impl Fn(&State, &NaiveJob) -> K + 'static) -> Rule {
    on_events(move |state| sorted(state, (0..state.jobs.len()).collect(), |job| key(state, job)))
}

fn nanoseconds(time: Time) -> i64 {
    time.0 as i64
}

fn period(state: &State, job: &NaiveJob) -> i64 {
    state.task(job).period().map_or(0, nanoseconds)
}

impl NaiveJob {
    /// Remaining time by the first of these times that the job has not reached, otherwise by the wcet.
    fn remaining_by(&self, times: &[i64]) -> i64 {
        let reached = self.executed();
        match times.iter().find(|time| **time > reached) {
            Some(time) => time - reached,
            None => self.to_finish(),
        }
    }

    fn expected(&self) -> i64 {
        let Some([median, high]) = self.estimate else { return self.to_finish() };
        let range = (self.wcet - self.bcet).max(1) as f64;
        let share = (high - median) as f64 / range;
        let moved = ((self.wcet - median) as f64 * share) as i64;
        self.remaining_by(&[median + moved, high])
    }

    fn planned(&self) -> i64 {
        let high = self.estimate.filter(|_| !self.is_important).map(|[_, high]| high);
        self.remaining_by(&Vec::from_iter(high))
    }

    /// Laxity by the time that the job is planned with.
    fn planned_laxity(&self, now: i64) -> i64 {
        self.deadline - now - self.planned()
    }
}

/// Moore–Hodgson over the ready jobs, with list scheduling from scratch.
fn moore_hodgson(state: &State) -> Vec<usize> {
    let fits = |index: &usize| state.jobs[*index].planned_laxity(state.now) >= 0;
    let candidates = sorted(state, (0..state.jobs.len()).filter(fits).collect(), |job| job.deadline);
    let on_time = |accepted: &[usize]| {
        let mut free = vec![state.now; state.cores()];
        accepted.iter().all(|index| {
            let core = (0..state.cores()).min_by_key(|core| (free[*core], *core)).unwrap();
            free[core] += state.jobs[*index].planned();
            free[core] <= state.jobs[*index].deadline
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
    let urgent = |index: &usize| state.cores() > 1 && state.jobs[*index].planned_laxity(state.now) <= 0;
    let (first, then): (Vec<_>, Vec<_>) = accepted.into_iter().partition(urgent);
    [first, then, rejected].concat()
}

/// Moore–Hodgson over ready and future jobs, with the work due by each deadline summed up from scratch.
fn look_ahead(state: &State) -> Vec<usize> {
    let (fitting, late): (Vec<_>, Vec<_>) =
        (0..state.jobs.len()).partition(|index| state.jobs[*index].planned_laxity(state.now) >= 0);
    // Deadline, whether the job is in the future, tie-break, work, and index of the ready job.
    let ready = |index: usize| {
        let job = &state.jobs[index];
        (job.deadline, false, job.tie(), job.planned(), Some(index))
    };
    let mut all: Vec<_> = fitting.iter().map(|index| ready(*index)).collect();
    let last = all.iter().map(|job| job.0).max().unwrap_or(0);
    for (task, own) in state.set.tasks().iter().enumerate() {
        let Arrival::Periodic { period } = own.arrival else { continue };
        let releases = (0u64..).map(|number| (number, nanoseconds(own.offset) + number as i64 * nanoseconds(period)));
        for (number, release) in releases.skip_while(|(_, release)| *release <= state.now).take(3) {
            let deadline = release + nanoseconds(own.deadline);
            if deadline <= last {
                all.push((deadline, true, (release, task, number), nanoseconds(own.wcet), None));
            }
        }
    }
    all.sort();
    let mut kept: Vec<usize> = Vec::new();
    for place in 0..all.len() {
        kept.push(place);
        let possible = state.cores() as i64 * (all[place].0 - state.now);
        while kept.iter().map(|kept| all[*kept].3).sum::<i64>() > possible {
            let longest = kept.iter().copied().max_by_key(|kept| (all[*kept].3, *kept)).unwrap();
            kept.retain(|kept| *kept != longest);
        }
    }
    let ready_of = |stays: bool| (0..all.len()).filter(|place| kept.contains(place) == stays).collect::<Vec<_>>();
    let in_order = [ready_of(true), ready_of(false)].concat();
    let late = sorted(state, late, |job| job.deadline);
    in_order.into_iter().filter_map(|place| all[place].4).chain(late).collect()
}

/// Round-robin with time slices of one tick, in a plain list. Every tick ends a time slice.
fn round_robin() -> Rule {
    let mut queue: Vec<(usize, u64)> = Vec::new();
    Box::new(move |state| {
        let present: Vec<_> = state.jobs.iter().map(NaiveJob::id).collect();
        queue.retain(|job| present.contains(job));
        let arrivals = (0..state.jobs.len()).filter(|index| !queue.contains(&present[*index])).collect();
        for index in sorted(state, arrivals, |_| ()) {
            queue.push(present[index]);
        }
        // Running jobs keep their place in the order of cores. Those that must make room go to the tail.
        let place = |job: &(usize, u64)| present.iter().position(|p| p == job).unwrap();
        let core_of = |job: &(usize, u64)| state.jobs[place(job)].core;
        let (mut running, waiting): (Vec<_>, Vec<_>) = queue.iter().copied().partition(|job| core_of(job).is_some());
        running.sort_by_key(core_of);
        let free = state.cores() - running.len();
        let leaving = waiting.len().saturating_sub(free).min(running.len());
        let tail: Vec<_> = running.drain(..leaving).collect();
        queue = running.into_iter().chain(waiting).chain(tail).collect();
        Some(queue.iter().map(place).collect())
    })
}

/// PD² with the windows computed subtask by subtask, and the group deadline by its definition. Everything is in ticks.
fn pd2(state: &State) -> Vec<usize> {
    let window = |job: &NaiveJob| ((job.deadline - job.release) / state.tick).max(1);
    let needed = |job: &NaiveJob| (job.wcet / state.tick).clamp(1, window(job));
    let deadline = |job: &NaiveJob, i: i64| (i * window(job) + needed(job) - 1) / needed(job);
    let release = |job: &NaiveJob, i: i64| (i - 1) * window(job) / needed(job);
    let overlap = |job: &NaiveJob, i: i64| i < needed(job) && release(job, i + 1) < deadline(job, i);
    let subtask = |job: &NaiveJob| (job.executed() / state.tick).min(needed(job) - 1) + 1;
    let released = |job: &NaiveJob| job.release / state.tick;
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
        released(job) + t
    };
    let eligible = (0..state.jobs.len()).filter(|index| {
        let job = &state.jobs[*index];
        state.now / state.tick >= released(job) + release(job, subtask(job))
    });
    sorted(state, eligible.collect(), |job| {
        let i = subtask(job);
        (released(job) + deadline(job, i), !overlap(job, i), -group(job, i))
    })
}

/// First-fit decreasing assignment to clusters of `size` cores, then EDF or RM within each. Chooses at most one job per
/// core of each cluster. The simulator puts them on any cores, so preemptions and migrations mean nothing.
fn clustered(size: usize, rate_monotonic: bool) -> Rule {
    on_events(move |state| {
        let (tasks, cores) = (state.set.tasks(), state.cores());
        let clusters = cores.div_ceil(size);
        let cores_of = |cluster: usize| (cores - cluster * size).min(size);
        let load = |task: &Task| {
            let period = task.period().unwrap();
            task.wcet.0 as f64 / period.min(task.deadline).0 as f64
        };
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by(|a, b| load(&tasks[*b]).total_cmp(&load(&tasks[*a])));
        let mut loads = vec![Vec::<f64>::new(); clusters];
        let mut cluster_of = vec![0; tasks.len()];
        for task in order {
            let with = |cluster: usize| loads[cluster].iter().copied().chain([load(&tasks[task])]);
            let fits = |cluster: &usize| match rate_monotonic {
                true => with(*cluster).map(|load| load + 1.0).product::<f64>() <= 2.0 + 1e-9,
                false => with(*cluster).sum::<f64>() <= cores_of(*cluster) as f64 + 1e-9,
            };
            let room = |cluster: usize| cores_of(cluster) as f64 - loads[cluster].iter().sum::<f64>();
            let roomiest = || (0..clusters).rev().max_by(|a, b| room(*a).total_cmp(&room(*b))).unwrap();
            let cluster = (0..clusters).find(fits).unwrap_or_else(roomiest);
            loads[cluster].push(load(&tasks[task]));
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
        chosen
    })
}

/// Tasks that come after a task.
fn behind(tasks: &[Task], task: usize) -> impl Iterator<Item = usize> {
    (0..tasks.len()).filter(move |other| tasks[*other].after.contains(&TaskId::new(task)))
}

/// Time from the arrival of a task's job to the date by which it has to complete.
fn due(tasks: &[Task], task: usize) -> i64 {
    let later = |other: usize| nanoseconds(tasks[other].offset) - nanoseconds(tasks[task].offset);
    let by_next = behind(tasks, task).map(|next| due(tasks, next) - nanoseconds(tasks[next].wcet) + later(next));
    by_next.chain([nanoseconds(tasks[task].deadline)]).min().unwrap()
}

/// Longest path of wcets from the start of a task.
fn level(tasks: &[Task], task: usize) -> i64 {
    nanoseconds(tasks[task].wcet) + behind(tasks, task).map(|next| level(tasks, next)).max().unwrap_or(0)
}
