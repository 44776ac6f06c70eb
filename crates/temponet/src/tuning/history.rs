//! The jobs of a running system: the last few hundred, and whether they are as their tasks say.
//!
//! A job is remembered at its release, because a job that the scheduler abandons leaves without an event. Its execution time becomes known when it
//! completes. Nothing here allocates between two starts, except where more jobs are active than ever before.

use temponet_task::{Arrival, Event, Job, ListedJob, SystemView, Task, Time};

/// Limits on the number of remembered jobs. Between them, there are [`JOBS_PER_TASK`] for each task.
const WINDOW: (usize, usize) = (400, 1_600);
const JOBS_PER_TASK: usize = 4;
/// Share by which a job may differ from the description of its task, because timers of real systems are never exact.
const TOLERANCE: f64 = 0.1;

/// A job that was released.
#[derive(Clone, Copy)]
struct Seen {
    task: u32,
    release: Time,
    deadline: Time,
    wcet: Time,
    bcet: Time,
    value: f64,
    criticality: u8,
    /// Execution time, if the job has completed.
    execution: Option<Time>,
    /// Time for which the job had executed when it was aborted.
    executed: Time,
}

/// The last jobs of a system.
#[derive(Default)]
pub(super) struct History {
    /// Ring of the last jobs: job number `n` of the run is at `n % capacity`.
    ring: Vec<Seen>,
    capacity: usize,
    /// Number of jobs released since the start.
    pub released: u64,
    /// Number of the job with each id.
    by_id: Vec<u64>,
    /// Last release of each task.
    last: Vec<Option<Time>>,
    /// Number of the last job that was unlike its description, plus one; zero if there was none.
    unlike: u64,
    /// Number of the job at which the jobs began to be unlike their description.
    unlike_since: u64,
    /// Task that is checked next for having fallen silent.
    suspect: usize,
}

impl History {
    /// Forgets everything and prepares for tasks.
    pub fn start(&mut self, tasks: &[Task]) {
        self.capacity = (JOBS_PER_TASK * tasks.len()).clamp(WINDOW.0, WINDOW.1);
        self.ring.clear();
        self.ring.reserve(self.capacity);
        self.by_id.clear();
        // Ids of jobs that have just left are not free yet.
        self.by_id.resize(2 * tasks.len(), u64::MAX);
        self.last.clear();
        self.last.resize(tasks.len(), None);
        (self.released, self.unlike, self.unlike_since, self.suspect) = (0, 0, 0, 0);
    }

    /// Number of jobs that are remembered at most.
    pub fn window(&self) -> u64 {
        self.capacity as u64
    }

    /// Takes note of the events of a decision.
    pub fn observe(&mut self, view: &SystemView<'_>) {
        for event in view.events {
            match *event {
                // A job of a task that the system does not have cannot be simulated.
                Event::Released(id) if view.job(id).task as usize >= self.last.len() => {}
                Event::Released(id) => {
                    self.check(view, view.job(id));
                    if self.by_id.len() <= id.index() {
                        self.by_id.resize(2 * (id.index() + 1), u64::MAX);
                    }
                    self.by_id[id.index()] = self.released;
                    self.remember(view.job(id));
                }
                Event::Completed(id) => {
                    let executed = view.job(id).executed;
                    self.update(id.index(), |seen| seen.execution = Some(executed));
                }
                Event::Aborted(id) => {
                    let executed = view.job(id).executed;
                    self.update(id.index(), |seen| seen.executed = executed);
                }
                Event::DeadlinePassed(_) => {}
            }
        }
    }

    /// Whether some of the remembered jobs are unlike their description.
    pub fn is_unlike(&self) -> bool {
        self.unlike > 0 && self.released - self.unlike < self.window()
    }

    fn remember(&mut self, job: &Job) {
        let seen = Seen {
            task: job.task,
            release: job.release,
            deadline: job.deadline,
            wcet: job.wcet,
            bcet: job.bcet,
            value: job.value,
            criticality: job.criticality,
            execution: None,
            executed: Time::ZERO,
        };
        let place = (self.released % self.window()) as usize;
        match self.ring.get_mut(place) {
            Some(oldest) => *oldest = seen,
            None => self.ring.push(seen),
        }
        self.released += 1;
    }

    fn update(&mut self, id: usize, change: impl FnOnce(&mut Seen)) {
        let number = self.by_id.get(id).copied().unwrap_or(u64::MAX);
        if number < self.released && self.released - number <= self.window() {
            let place = (number % self.window()) as usize;
            if let Some(seen) = self.ring.get_mut(place) {
                change(seen);
            }
        }
    }

    /// Compares a released job with the description of its task, and looks whether another task has fallen silent.
    fn check(&mut self, view: &SystemView<'_>, job: &Job) {
        let Some(task) = view.system.tasks.get(job.task as usize) else { return };
        let last = self.last[job.task as usize].replace(job.release);
        self.suspect = (self.suspect + 1) % self.last.len();
        let suspect = view.system.tasks.get(self.suspect);
        let is_silent = suspect.is_some_and(|task| is_silent(task, self.last[self.suspect], view.now));
        if is_silent || is_unlike(task, job, last) {
            if !self.is_unlike() {
                self.unlike_since = self.released;
            }
            self.unlike = self.released + 1;
        }
    }

    /// Returns the remembered jobs by task, as lists, from the time on at which they became unlike their description if they are. Execution times that are
    /// not known are estimated by those of the task's other jobs.
    pub fn jobs(&self, tasks: &[Task]) -> Vec<Vec<ListedJob>> {
        let mut lists = vec![Vec::new(); tasks.len()];
        let ratios = self.ratios(tasks);
        let first = self.released.saturating_sub(self.window());
        let first = if self.is_unlike() { first.max(self.unlike_since) } else { first };
        for number in first..self.released {
            let seen = &self.ring[(number % self.window()) as usize];
            let expected = Time((seen.wcet.0 as f64 * ratios[seen.task as usize]) as u64);
            let execution = seen.execution.unwrap_or(expected.max(seen.executed + Time(1)));
            lists[seen.task as usize].push(ListedJob {
                release: seen.release,
                deadline: seen.deadline,
                execution: execution.max(Time(1)),
                wcet: seen.wcet,
                bcet: seen.bcet,
                criticality: seen.criticality,
                value: seen.value,
            });
        }
        lists
    }

    /// Mean share of the wcet that jobs of each task take: of those that completed, otherwise as the task says.
    fn ratios(&self, tasks: &[Task]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); tasks.len()];
        for seen in &self.ring {
            if let Some(execution) = seen.execution {
                let (done, wcet) = &mut sums[seen.task as usize];
                *done += execution.0 as f64;
                *wcet += seen.wcet.0 as f64;
            }
        }
        let described = |task: &Task| match task.arrival {
            Arrival::Listed(_) => 0.5 + 0.5 * task.bcet.0 as f64 / task.wcet.0.max(1) as f64,
            _ => task.mean_execution() / task.wcet.0.max(1) as f64,
        };
        let ratio =
            |(task, (done, wcet)): (&Task, (f64, f64))| if wcet > 0.0 { done / wcet } else { described(task).min(1.0) };
        tasks.iter().zip(sums).map(ratio).collect()
    }
}

/// Whether two times differ by more than the tolerance, apart from `slack`.
fn differ(a: Time, b: Time, slack: Time) -> bool {
    a.0.abs_diff(b.0) as f64 > TOLERANCE * b.0 as f64 + slack.0 as f64
}

/// Whether a job is unlike the description of its task; `last` is the release of the job before it.
fn is_unlike(task: &Task, job: &Job, last: Option<Time>) -> bool {
    let gap = last.map(|last| job.release.saturating_sub(last));
    let is_off_beat = match (&task.arrival, gap) {
        (Arrival::Listed(_), _) => return false,
        (Arrival::Periodic { period }, Some(gap)) => differ(gap, *period, task.jitter),
        (Arrival::Sporadic { minimum, .. }, Some(gap)) => gap < *minimum && differ(gap, *minimum, task.jitter),
        _ => false,
    };
    let relative = job.deadline.saturating_sub(job.release);
    is_off_beat || differ(job.wcet, task.wcet, Time::ZERO) || differ(relative, task.deadline, task.jitter)
}

/// Whether a periodic task has released no job for two periods.
fn is_silent(task: &Task, last: Option<Time>, now: Time) -> bool {
    match (&task.arrival, last) {
        (Arrival::Periodic { period }, Some(last)) => now > last + *period + *period + task.jitter,
        _ => false,
    }
}
