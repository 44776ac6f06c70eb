//! What an online scheduler knows of the future, and possible futures that are drawn from it.
//!
//! Known are the description of the tasks and the jobs that have been seen: progress and completion, never the hidden
//! execution time of a job, nor an arrival that has not happened. From this follow
//!
//! - the remaining execution of a ready job: drawn from its estimate if it has one, otherwise from its task's model,
//!   under the condition that the job is not complete after what it has executed;
//! - the next arrival of each task: its last one plus the period, or plus a gap drawn under the condition that it has
//!   not ended yet, delayed by a jitter that has not ended yet;
//! - everything later: as the simulator draws it.
//!
//! A task whose jobs come with another wcet or relative deadline than described has changed its mode; its coming jobs
//! are assumed to be like the last one. A task that has not released a job when it was due is assumed to be silent
//! until it does. The list of a task that is a list of jobs is never read: its coming jobs are drawn from those seen
//! lately, and so are execution times of its jobs.
//!
//! A job that follows others arrives with its sources and waits, as in the simulator. Which jobs wait is concluded from
//! the ready ones; a predecessor that has left is assumed to have completed.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg32;
use temponet_task::{Arrival, Estimate, Event, Gap, Job, Precedence, System, SystemView, Task, TaskId, TaskSet, Time};

use crate::Engine;
use crate::engine::Waiting;
use crate::execution::{Sampler, draw_estimated};
use crate::workload::{JobStream, ReleasedJob, Workload, divided, draw_gap, drawn, random_stream};

/// Knowledge of an online scheduler about the coming jobs of a system.
#[derive(Clone)]
pub struct Outlook {
    known: Arc<TaskSet>,
    /// Tasks as their latest jobs show them, without lists of jobs.
    set: Arc<TaskSet>,
    tasks: Vec<TaskOutlook>,
    /// Tasks that follow each other; `None` if none does.
    graph: Option<Precedence>,
}

#[derive(Clone)]
struct TaskOutlook {
    sampler: Sampler,
    stream: JobStream,
    /// Arrival and number of the latest job; `None` before the first.
    latest: Option<(Time, u64)>,
    /// Jobs of a list of jobs that have been seen.
    listed: SeenJobs,
}

/// Latest jobs of a task that is a list of jobs.
#[derive(Clone, Default)]
struct SeenJobs {
    /// Released jobs, with the time since the release before.
    released: VecDeque<(Job, Time)>,
    /// Execution times of completed jobs as shares of their wcets.
    shares: VecDeque<f64>,
}

/// Number of jobs that are remembered of a list of jobs.
const MOST_SEEN: usize = 256;
/// Largest number of coming jobs of a list that are drawn.
const MOST_DRAWN: usize = 1_024;
/// Draws of a remembered value under a condition before the condition is met in another way.
const MOST_REDRAWS: usize = 32;

impl Outlook {
    /// Creates the outlook on a system of which no job has been seen.
    pub fn new(system: &System) -> Outlook {
        let no_jobs = |task: &Task| match task.arrival {
            Arrival::Listed(_) => task.clone().with_arrival(Arrival::Listed([].into())),
            _ => task.clone(),
        };
        let tasks = system.tasks().iter().map(no_jobs).collect();
        let set = Arc::new(TaskSet::of_system("outlook", system.described_by(tasks)));
        let tasks = set.tasks().iter().map(|task| TaskOutlook {
            sampler: Sampler::new(task),
            stream: JobStream::new(task, 0, 0, 0),
            latest: None,
            listed: SeenJobs::default(),
        });
        Outlook { tasks: tasks.collect(), graph: Precedence::of(set.tasks()).ok().flatten(), known: set.clone(), set }
    }

    /// Returns the tasks as their latest jobs show them, without lists of jobs.
    pub fn tasks(&self) -> &[Task] {
        self.set.tasks()
    }

    /// Returns the number of jobs per second that have come lately of tasks that are lists of jobs; zero before two of
    /// a task have come.
    pub fn listed_jobs_per_second(&self) -> f64 {
        let rate = |known: &TaskOutlook| {
            let time: f64 = known.listed.released.iter().map(|(_, gap)| gap.as_secs_f64()).sum();
            // The first job has no release before it.
            if time > 0.0 { (known.listed.released.len() - 1) as f64 / time } else { 0.0 }
        };
        self.tasks.iter().map(rate).sum()
    }

    /// Takes note of the events of a decision point. It must see every one.
    pub fn observe(&mut self, view: &SystemView<'_>) {
        for event in view.events {
            match event {
                Event::Released(id) => self.released(view.job(*id)),
                Event::Completed(id) => {
                    let job = view.job(*id);
                    let listed = &mut self.tasks[job.task].listed;
                    if !listed.released.is_empty() {
                        remember(&mut listed.shares, job.executed.0 as f64 / job.wcet.0.max(1) as f64);
                    }
                }
                _ => {}
            }
        }
    }

    fn released(&mut self, job: &Job) {
        let id = job.task;
        let described = &self.known.tasks()[id];
        let known = &mut self.tasks[id];
        if let Arrival::Listed(_) = described.arrival {
            let gap = known.latest.map_or(Time::ZERO, |(last, _)| job.release.saturating_sub(last));
            remember(&mut known.listed.released, (*job, gap));
            known.latest = Some((job.release, job.number));
            return;
        }
        let relative = job.deadline.saturating_sub(job.release);
        let is_delayed = described.jitter > Time::ZERO || !described.after.is_empty();
        let task = &self.set.tasks()[id];
        if job.wcet != task.wcet || (!is_delayed && relative != task.deadline) {
            let deadline = if is_delayed { task.deadline } else { relative };
            let changed = changed(described, job.wcet, deadline);
            known.sampler = Sampler::new(&changed);
            known.stream = JobStream::new(&changed, 0, 0, 0);
            Arc::make_mut(&mut self.set).system.tasks_mut()[id] = changed;
        }
        if known.latest.is_none_or(|(_, number)| number < job.number) {
            let arrival = job.deadline.saturating_sub(self.set.tasks()[id].deadline);
            known.latest = Some((arrival.min(job.release), job.number));
        }
    }

    /// Draws a future from the decision point of `view` until `horizon`, as a run that can be continued from there.
    /// Every seed gives another future; jobs and arrivals do not depend on what the run decides.
    pub fn draw(&self, view: &SystemView<'_>, seed: u64, horizon: Time) -> Engine {
        let mut delayed = Vec::new();
        let (mut streams, mut next) = (Vec::with_capacity(self.tasks.len()), Vec::with_capacity(self.tasks.len()));
        for (id, (known, task)) in self.set.task_ids().zip(self.tasks.iter().zip(self.set.tasks())) {
            let mut stream = known.stream.clone();
            stream.restart(seed, u64::from(id.0), known.latest.map_or(0, |(_, number)| number + 1));
            next.push(match task.arrival {
                Arrival::Listed(_) => {
                    known.draw_listed(id, view.now, horizon, &mut stream.rng, &mut delayed);
                    None
                }
                _ if !task.after.is_empty() => None,
                _ => self.next_arrival(id, view.now, &mut stream, &mut delayed),
            });
            streams.push(stream);
        }
        let waiting = self.waiting(view, seed, &delayed, &mut streams);
        let workload = Workload::resumed(self.set.clone(), streams, next.into_iter(), delayed.into_iter(), horizon);
        let execution = |job: &Job| self.execution(job, seed);
        Engine::resumed(self.known.clone(), self.set.clone(), view, workload, waiting, horizon, execution)
    }

    /// Draws the jobs that wait for others, and lets the streams of their tasks go on with the arrivals of their
    /// sources.
    fn waiting(
        &self,
        view: &SystemView<'_>,
        seed: u64,
        delayed: &[ReleasedJob],
        streams: &mut [JobStream],
    ) -> Option<Box<Waiting>> {
        let graph = self.graph.as_ref()?;
        for id in self.set.task_ids().filter(|id| !self.set.tasks()[*id].after.is_empty()) {
            let next = graph.sources(id).iter().map(|source| streams[*source].next_number()).min();
            streams[id].continue_with(next.unwrap_or(0));
        }
        let next: Vec<u64> = streams.iter().map(JobStream::next_number).collect();
        Waiting::resumed(self.set.tasks(), view, delayed, &next, |id, number, arrival| {
            let mut rng = self.random_stream_of(id, number, seed);
            self.tasks[id].job(&self.set.tasks()[id], id, number, arrival, arrival, &mut rng)
        })
    }

    /// Random numbers of a single job.
    fn random_stream_of(&self, task: TaskId, number: u64, seed: u64) -> Pcg32 {
        let number = number.wrapping_mul(self.tasks.len() as u64).wrapping_add(u64::from(task.0));
        random_stream(seed.rotate_left(17), number)
    }

    /// Draws the execution time of a job that has not completed.
    fn execution(&self, job: &Job, seed: u64) -> Time {
        let known = &self.tasks[job.task];
        let mut rng = self.random_stream_of(job.task, job.number, seed);
        if let Some(estimate) = job.estimate
            && let Some(drawn) = draw_estimated(estimate, job.executed, [job.bcet, job.wcet], &mut rng)
        {
            return drawn;
        }
        if let Arrival::Listed(_) = self.set.tasks()[job.task].arrival {
            return known.listed.execution(job, &mut rng);
        }
        // A job from before a change of mode has another wcet than those to come.
        let factor = job.wcet.0 as f64 / self.set.tasks()[job.task].wcet.0.max(1) as f64;
        if factor == 1.0 {
            return known.sampler.draw_beyond(job.executed, &mut rng);
        }
        let drawn = known.sampler.draw_beyond(divided(job.executed, factor), &mut rng);
        divided(drawn, 1.0 / factor).max(job.executed + Time(1))
    }

    /// Returns the next arrival of a task after `now`. Jobs that have arrived and are still delayed are added to
    /// `delayed`.
    fn next_arrival(
        &self,
        id: TaskId,
        now: Time,
        stream: &mut JobStream,
        delayed: &mut Vec<ReleasedJob>,
    ) -> Option<Time> {
        let (task, known) = (&self.set.tasks()[id], &self.tasks[id]);
        if let Arrival::Periodic { period } = task.arrival {
            let after = |(last, number): (Time, u64)| (last + period, number + 1);
            let (mut next, mut number) = known.latest.map_or((task.offset, 0), after);
            while next <= now {
                let waited = now - next;
                if waited >= task.jitter {
                    // It should have been released: the task is silent.
                    return None;
                }
                let delay = Time(stream.rng.random_range(waited.0 + 1..=task.jitter.0));
                delayed.push(known.job(task, id, number, next, next + delay, &mut stream.rng));
                (next, number) = (next + period, number + 1);
            }
            stream.continue_with(number);
            return Some(next);
        }
        let Some((last, _)) = known.latest else { return Some(task.offset).filter(|offset| *offset > now) };
        match task.arrival {
            Arrival::Sporadic { minimum, gap } => {
                Some(last + gap_beyond(now - last.min(now), minimum, gap, &mut stream.rng)?)
            }
            Arrival::Burst { every, until, .. } => Some(last + every).filter(|next| *next < until && *next > now),
            _ => None,
        }
    }
}

impl TaskOutlook {
    /// Draws a job of the task with this id.
    fn job(&self, task: &Task, id: TaskId, number: u64, arrival: Time, release: Time, rng: &mut Pcg32) -> ReleasedJob {
        let execution = self.sampler.draw(rng);
        ReleasedJob {
            time: release,
            task: id,
            number,
            deadline: arrival + task.deadline,
            execution,
            wcet: task.wcet,
            bcet: task.bcet,
            criticality: task.criticality,
            value: task.value,
            estimate: task.estimate_error.map(|error| drawn(execution, error, [task.bcet, task.wcet], rng)),
        }
    }

    /// Draws coming jobs of a list of jobs from those that have been seen.
    fn draw_listed(&self, id: TaskId, now: Time, horizon: Time, rng: &mut Pcg32, out: &mut Vec<ReleasedJob>) {
        let (Some((last, number)), jobs) = (self.latest, &self.listed.released) else { return };
        if jobs.len() < 2 {
            return;
        }
        // The first remembered job has no gap before it.
        let gap = |rng: &mut Pcg32| jobs[rng.random_range(1..jobs.len())].1;
        let waited = now - last.min(now);
        let first = (0..MOST_REDRAWS).map(|_| gap(rng)).find(|gap| *gap > waited);
        let mut time = first.map_or_else(|| now + gap(rng).max(Time(1)), |gap| last + gap);
        let mut number = number + 1;
        while time < horizon && out.len() < MOST_DRAWN {
            let (like, _) = jobs[rng.random_range(0..jobs.len())];
            let fresh = like.with_executed(Time::ZERO);
            let execution = self.listed.execution(&fresh, rng);
            // The predictor is assumed to be as good as it said to be about the other job.
            let error = like.estimate.map(Estimate::error);
            out.push(ReleasedJob {
                time,
                task: id,
                number,
                deadline: time + like.deadline.saturating_sub(like.release),
                execution,
                wcet: like.wcet,
                bcet: like.bcet,
                criticality: like.criticality,
                value: like.value,
                estimate: error.map(|error| drawn(execution, error, [like.bcet, like.wcet], rng)),
            });
            (time, number) = (time + gap(rng), number + 1);
        }
    }
}

impl SeenJobs {
    /// Draws the execution time of a job that has not completed: its wcet times the share that a completed job took of
    /// its own. As long as none is longer, it is uniform between what is possible.
    fn execution(&self, job: &Job, rng: &mut Pcg32) -> Time {
        let next = job.executed + Time(1);
        if job.bcet == job.wcet {
            return job.wcet.max(next);
        }
        let drawn = (0..MOST_REDRAWS.min(self.shares.len())).find_map(|_| {
            let share = self.shares[rng.random_range(0..self.shares.len())];
            Some(Time((share * job.wcet.0 as f64).round() as u64)).filter(|time| *time > job.executed)
        });
        drawn.unwrap_or_else(|| {
            let least = next.max(job.bcet);
            Time(rng.random_range(least.0..=job.wcet.max(least).0))
        })
    }
}

/// Appends to the remembered values and forgets the oldest one if there are too many.
fn remember<T>(values: &mut VecDeque<T>, value: T) {
    if values.len() == MOST_SEEN {
        values.pop_front();
    }
    values.push_back(value);
}

/// Draws a gap under the condition that it is longer than `waited`; `None` if no gap is that long.
fn gap_beyond(waited: Time, minimum: Time, gap: Gap, rng: &mut Pcg32) -> Option<Time> {
    if waited < minimum {
        return Some(draw_gap(minimum, gap, rng));
    }
    match gap {
        Gap::Uniform { max } => (waited < max).then(|| Time(rng.random_range(waited.0 + 1..=max.0))),
        // What is left of an exponential time is distributed as the whole.
        Gap::Exponential { .. } => Some(waited + (draw_gap(minimum, gap, rng) - minimum).max(Time(1))),
    }
}

/// Returns the task with another wcet and relative deadline. Its other execution times change by the same factor as the
/// wcet, its time between arrivals by the same factor as the deadline, as in a mode.
fn changed(task: &Task, wcet: Time, deadline: Time) -> Task {
    let mut changed = task.with_work(wcet.0, task.wcet.0.max(1));
    let rate = task.deadline.0 as f64 / deadline.0.max(1) as f64;
    (changed.wcet, changed.deadline) = (wcet, deadline);
    match &mut changed.arrival {
        Arrival::Periodic { period } => *period = divided(*period, rate),
        Arrival::Sporadic { minimum, gap } => {
            *minimum = divided(*minimum, rate);
            match gap {
                Gap::Uniform { max } => *max = divided(*max, rate).max(*minimum),
                Gap::Exponential { mean } => *mean = divided(*mean, rate).max(*minimum),
            }
        }
        Arrival::Burst { every, .. } => *every = divided(*every, rate),
        _ => {}
    }
    changed
}
