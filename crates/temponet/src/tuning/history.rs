//! The jobs of a running system: the last ones, and whether they are as their tasks say.
//!
//! A job is remembered at its release, because a job that the scheduler abandons leaves without an event. Its execution
//! time becomes known when it completes. Nothing here allocates between two starts, except where more jobs are active
//! than ever before.
//!
//! A *stretch* of the run is a time in which the latest jobs of every task are alike. It ends when a job has another
//! wcet or relative deadline than the job of its task before it, as at a switch of the mode, or when a periodic task
//! falls silent. Jobs of a list are never alike, so a list is one stretch.

use rand::SeedableRng;
use rand_pcg::Pcg32;
use temponet_sim::{draw_estimated, mixed_seed};
use temponet_task::{Arrival, Estimate, Event, Job, ListedJob, SystemView, Task, TaskId, Time};

use super::executions::Executions;

/// Share by which a job may differ from the description of its task, because timers of real systems are never exact.
const TOLERANCE: f64 = 0.1;

/// Tells draws from estimates apart from others with the same numbers.
const STREAM: u64 = 7_300_000_002;

/// A job that was released.
#[derive(Clone, Copy)]
struct Seen {
    task: TaskId,
    release: Time,
    deadline: Time,
    wcet: Time,
    bcet: Time,
    value: f64,
    estimate: Option<Estimate>,
    criticality: u8,
    /// Execution time, if the job has completed.
    execution: Option<Time>,
    /// Time for which the job had executed when it was aborted.
    executed: Time,
}

/// The latest job of a task.
#[derive(Clone, Copy, Default)]
struct Latest {
    /// Number of the job in the run; `None` before the first one.
    number: Option<u64>,
    release: Time,
    wcet: Time,
    relative: Time,
    /// Whether the job was unlike the description of the task, or the task has fallen silent.
    is_unlike: bool,
    is_silent: bool,
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
    latest: Vec<Latest>,
    /// Number of tasks whose latest job was unlike its description, or that have fallen silent.
    unlike: usize,
    /// Number of the job that began the present stretch.
    pub stretch: u64,
    /// Task that is checked next for having fallen silent.
    suspect: usize,
}

impl History {
    /// Forgets everything and prepares for tasks, of which the last `capacity` jobs are remembered.
    pub fn start(&mut self, tasks: &[Task], capacity: usize) {
        self.capacity = capacity.max(1);
        self.ring.clear();
        self.ring.reserve(self.capacity);
        self.by_id.clear();
        // Ids of jobs that have just left are not free yet.
        self.by_id.resize(2 * tasks.len(), u64::MAX);
        self.latest.clear();
        self.latest.resize(tasks.len(), Latest::default());
        (self.released, self.unlike, self.stretch, self.suspect) = (0, 0, 0, 0);
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
                Event::Released(id) if view.job(id).task.index() >= self.latest.len() => {}
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
                _ => {}
            }
        }
    }

    /// Takes note of how long the jobs that are active have executed: one that runs takes longer than that.
    pub fn observe_progress(&mut self, view: &SystemView<'_>) {
        for id in view.active {
            let executed = view.job(*id).executed;
            self.update(id.index(), |seen| seen.executed = executed);
        }
    }

    /// Whether some task's latest job is unlike its description, or some task has fallen silent.
    pub fn is_unlike(&self) -> bool {
        self.unlike > 0
    }

    /// Whether every periodic task that has begun has shown in the present stretch how it behaves now: by a job, or by
    /// silence. Others come when they come.
    pub fn is_settled(&self, tasks: &[Task]) -> bool {
        let is_periodic = |task: &Task| matches!(task.arrival, Arrival::Periodic { .. });
        let mut periodic = tasks.iter().zip(&self.latest).filter(|(task, _)| is_periodic(task));
        periodic.all(|(_, latest)| latest.is_silent || latest.number.is_none_or(|number| number >= self.stretch))
    }

    /// Whether a task has fallen silent.
    pub fn is_silent(&self, task: TaskId) -> bool {
        self.latest[task].is_silent
    }

    fn remember(&mut self, job: &Job) {
        let seen = Seen {
            task: job.task,
            release: job.release,
            deadline: job.deadline,
            wcet: job.wcet,
            bcet: job.bcet,
            value: job.value,
            estimate: job.estimate,
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

    /// Compares a released job with the description of its task and with the job before it, and looks whether another
    /// task has fallen silent.
    fn check(&mut self, view: &SystemView<'_>, job: &Job) {
        let place = job.task;
        let Some(task) = view.system.tasks().get(place.index()) else { return };
        let before = self.latest[place];
        let relative = job.deadline.saturating_sub(job.release);
        let has_before = before.number.is_some();
        let is_listed = matches!(task.arrival, Arrival::Listed(_));
        // Where a task follows others, the schedule decides on its releases.
        let is_free = !task.after.is_empty();
        let is_alike =
            !differ(job.wcet, before.wcet, Time::ZERO) && (is_free || !differ(relative, before.relative, task.jitter));
        if has_before && !is_listed && (before.is_silent || !is_alike) {
            self.stretch = self.released;
        }
        let is_unlike = is_unlike(task, job, has_before.then_some(before.release));
        self.unlike -= usize::from(before.is_unlike || before.is_silent);
        self.unlike += usize::from(is_unlike);
        let number = Some(self.released);
        self.latest[place] =
            Latest { number, release: job.release, wcet: job.wcet, relative, is_unlike, is_silent: false };
        self.check_silence(view);
    }

    /// Looks whether the next task has fallen silent, one after another.
    fn check_silence(&mut self, view: &SystemView<'_>) {
        self.suspect = (self.suspect + 1) % self.latest.len();
        let (Some(task), suspect) = (view.system.tasks().get(self.suspect), &mut self.latest[self.suspect]) else {
            return;
        };
        let last = suspect.number.map(|_| suspect.release);
        if !suspect.is_silent && is_silent(task, last, view.now) {
            self.unlike += usize::from(!suspect.is_unlike);
            suspect.is_silent = true;
            self.stretch = self.released;
        }
    }

    /// Returns the remembered jobs by task, as lists. Execution times that are not known are drawn from what the
    /// estimate of the job tells, or the others of the task.
    pub fn jobs(&self, tasks: &[Task]) -> Vec<Vec<ListedJob>> {
        let mut lists = vec![Vec::new(); tasks.len()];
        let units: Vec<Unit> = (0..tasks.len()).map(|task| self.unit(&tasks[task], TaskId::new(task))).collect();
        let executions = self.executions(&units);
        for number in self.released.saturating_sub(self.window())..self.released {
            let seen = &self.ring[(number % self.window()) as usize];
            let by_estimate = || {
                let mut rng = Pcg32::seed_from_u64(mixed_seed(STREAM, number));
                draw_estimated(seen.estimate?, seen.executed, [seen.bcet, seen.wcet], &mut rng)
            };
            let execution = seen.execution.or_else(by_estimate).unwrap_or_else(|| {
                let unit = units[seen.task.index()].of(seen);
                let share = executions[seen.task].draw(seen.executed.0 as f64 / unit, number);
                let drawn = if seen.bcet == seen.wcet { seen.wcet } else { Time((share * unit) as u64).min(seen.wcet) };
                drawn.max(seen.executed + Time(1))
            });
            lists[seen.task].push(
                ListedJob::new(seen.release, seen.deadline, execution.max(Time(1)))
                    .with_wcet(seen.wcet)
                    .with_bcet(seen.bcet)
                    .with_criticality(seen.criticality)
                    .with_value(seen.value)
                    .with_estimate(seen.estimate),
            );
        }
        lists
    }

    /// Distribution of the execution times of each task, as shares of its unit.
    fn executions(&self, units: &[Unit]) -> Vec<Executions> {
        let mut seen = vec![Vec::new(); units.len()];
        for job in &self.ring {
            let executed = job.execution.unwrap_or(job.executed);
            seen[job.task].push((executed.0 as f64 / units[job.task.index()].of(job), job.execution.is_some()));
        }
        seen.into_iter().map(Executions::estimate).collect()
    }

    /// Unit of the execution times of a task. Requests of a server state no bounds that tell one from the other, but they
    /// may be due in proportion to their lengths.
    fn unit(&self, task: &Task, id: TaskId) -> Unit {
        let jobs = || self.ring.iter().filter(|seen| seen.task == id);
        let complete = || jobs().filter_map(|seen| Some((seen, seen.execution?)));
        if !task.preemption.is_never() || complete().count() < FEWEST {
            return Unit::Wcet;
        }
        let variance = |unit: Unit| {
            let of = |(seen, execution): (&Seen, Time)| (execution.0.max(1) as f64 / unit.of(seen)).ln();
            let count = complete().count() as f64;
            let mean = complete().map(of).sum::<f64>() / count;
            complete().map(of).map(|value| (value - mean).powi(2)).sum::<f64>() / count
        };
        let most = jobs().map(|seen| seen.wcet.0.max(1) as f64 / seen.window()).fold(0.0, f64::max);
        let by_window = Unit::Window { most };
        if variance(by_window) < variance(Unit::Wcet) { by_window } else { Unit::Wcet }
    }
}

/// Number of complete jobs from which on they tell what their execution times go with.
const FEWEST: usize = 10;

/// Unit of the execution times of a task: the wcet of each job, or a multiple of its window. The multiple is the greatest
/// wcet per window, so that no execution time is more than one unit.
#[derive(Clone, Copy)]
enum Unit {
    Wcet,
    Window { most: f64 },
}

impl Unit {
    fn of(self, seen: &Seen) -> f64 {
        match self {
            Unit::Wcet => seen.wcet.0.max(1) as f64,
            Unit::Window { most } => most * seen.window(),
        }
    }
}

impl Seen {
    /// Time from the release to the deadline.
    fn window(&self) -> f64 {
        self.deadline.saturating_sub(self.release).0.max(1) as f64
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
    if !task.after.is_empty() {
        return differ(job.wcet, task.wcet, Time::ZERO);
    }
    let relative = job.deadline.saturating_sub(job.release);
    is_off_beat || differ(job.wcet, task.wcet, Time::ZERO) || differ(relative, task.deadline, task.jitter)
}

/// Whether a periodic task has released no job for two periods.
fn is_silent(task: &Task, last: Option<Time>, now: Time) -> bool {
    match (&task.arrival, last) {
        // The schedule decides whether and when a job that follows others is released.
        _ if !task.after.is_empty() => false,
        (Arrival::Periodic { period }, Some(last)) => now > last + *period + *period + task.jitter,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use temponet_task::Preemption;

    use super::*;

    /// A history of requests that took a third of the time that they had, and one of which nothing is known but that it
    /// has run for a while. No request says what it takes at most.
    fn history(window: u64, executed: u64) -> History {
        let seen = |(number, window): (u64, u64), execution: Option<Time>| Seen {
            task: TaskId::new(0),
            release: Time(number),
            deadline: Time(number + window),
            wcet: Time(1_000_000),
            bcet: Time(1),
            value: 1.0,
            estimate: None,
            criticality: 0,
            execution,
            executed: Time(0),
        };
        let windows = (0..40).map(|number| (number, 300 * (1 + number % 7 * number)));
        let mut ring: Vec<Seen> =
            windows.map(|(number, window)| seen((number, window), Some(Time(window / 3)))).collect();
        ring.push(Seen { executed: Time(executed), ..seen((40, window), None) });
        History { released: ring.len() as u64, capacity: 100, ring, ..History::default() }
    }

    #[test]
    fn on_a_server_lengths_that_go_with_due_times_are_drawn_by_them() {
        let request = Task::periodic("request", Time(1_000_000), Time(1_000_000)).with_bcet(Time(1));
        let last = |history: History, task: &Task| history.jobs(std::slice::from_ref(task))[0][40].execution;
        let server = request.clone().with_preemption(Preemption::None);
        assert_eq!(last(history(30_000, 0), &server), Time(10_000));
        assert_eq!(last(history(3_000, 0), &server), Time(1_000));
        // Whatever is known, a request takes longer than it has run for.
        assert!(last(history(3_000, 2_000), &server) > Time(2_000));
        assert_ne!(last(history(30_000, 0), &request), Time(10_000), "a bound is what others go by");
    }
}
