//! C=D semi-partitioning: tasks are packed onto cores, and a task that does not fit whole is split. Its first piece,
//! whose deadline equals its length so that it runs at once and without pause, fills the core; the rest goes to the
//! next core. This reaches nearly U = m, and at most m − 1 tasks ever migrate.
//!
//! Reference: Burns, Davis, Wang and Zhang, Partitioned EDF Scheduling for Multiprocessors Using a C=D Task Splitting
//! Scheme, Real-Time Systems 48(1), 2012. Cores are filled one after the other in order of decreasing utilization of
//! the tasks; each core must pass the exact demand test. A task that fits nowhere goes whole to the core with the
//! lowest load: best effort.
//! Ties: earlier piece deadline, then earlier release and lower task index.

use temponet_analysis::{Demand, StepBudget, quick_test};
use temponet_task::{Assignment, CoreId, JobId, NotApplicable, Scheduler, System, SystemView, Task, Tie, Time};

#[derive(Default)]
pub(crate) struct CdSplit {
    /// Pieces of each task, in the order in which they run.
    pieces: Vec<Vec<TaskPiece>>,
    best: Vec<Option<Best>>,
}

/// The job that a core runs: piece deadline, tie, id, and the remaining work of a piece that is not the last.
type Best = (Time, Tie, JobId, Option<Time>);

/// A part of the work of a task that runs on one core.
#[derive(Clone, Copy, Debug)]
struct TaskPiece {
    core: CoreId,
    /// Work of the job that is done when this piece ends; none for the last piece, which takes all remaining work.
    until: Option<Time>,
    /// Deadline relative to the release; none for the last piece, which has the deadline of the job.
    deadline: Option<Time>,
}

/// Demand of a task after `done` of its work.
fn demand_of(task: &Task, done: Time) -> Demand {
    let period = task.period().unwrap_or(task.deadline);
    Demand { wcet: task.wcet - done, deadline: task.deadline.saturating_sub(done), period }
}

/// Whether every task finds a place, so that each core passes the exact test. This holds for deadlines up to the period
/// and releases without jitter: a piece then runs as soon as the piece before it is done.
pub(crate) fn fits(tasks: &[Task], cores: usize) -> bool {
    split(tasks, cores).1
}

/// The pieces and tasks packed onto a core.
#[derive(Clone, Default)]
struct PackedCore {
    parts: Vec<Demand>,
    /// Sums of their utilizations and densities.
    load: f64,
    density: f64,
}

/// Margin for the rounding of sums of loads.
const MARGIN: f64 = 1e-6;

impl PackedCore {
    fn push(&mut self, part: Demand) {
        (self.load, self.density) = self.with(part);
        self.parts.push(part);
    }

    fn with(&self, part: Demand) -> (f64, f64) {
        let share = |time: Time| part.wcet.0 as f64 / time.0.max(1) as f64;
        (self.load + share(part.period), self.density + share(part.deadline.min(part.period)))
    }

    /// Whether EDF meets every deadline with this part added. Mostly the sums decide. The exact test looks at every
    /// part; if it exceeds the budget, the part is not admitted.
    fn admits(&self, part: Demand, budget: &mut StepBudget) -> bool {
        match self.with(part) {
            (load, _) if load > 1.0 + MARGIN => false,
            (_, density) if density <= 1.0 - MARGIN => true,
            _ => {
                // The budget is charged before the parts are copied.
                let parts = |_| [&self.parts[..], &[part]].concat();
                budget.spend(self.parts.len()).map(parts).and_then(|parts| quick_test(&parts, budget)) == Some(true)
            }
        }
    }
}

/// Returns the pieces of each task, and whether all tasks found a place.
fn split(tasks: &[Task], cores: usize) -> (Vec<Vec<TaskPiece>>, bool) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by(|a, b| tasks[*b].utilization().total_cmp(&tasks[*a].utilization()));
    let mut pieces: Vec<Vec<TaskPiece>> = vec![Vec::new(); tasks.len()];
    let mut packed = vec![PackedCore::default(); cores];
    let mut budget = StepBudget::large();
    let mut first_open = 0;
    let mut all_fit = true;
    for index in order {
        let task = &tasks[index];
        let mut done = Time::ZERO;
        let placed = loop {
            let rest = demand_of(task, done);
            let fits = |core: &usize| packed[*core].admits(rest, &mut budget);
            // A task that has not been split may go to any core from `first_open` on; a rest must not return to a core
            // that the task already uses.
            if let Some(core) = (first_open..cores).find(fits) {
                break Some((core, rest));
            }
            if first_open >= cores {
                break None;
            }
            let length = longest_piece(&packed[first_open], rest, &mut budget);
            if length > Time::ZERO {
                done += length;
                packed[first_open].push(Demand { wcet: length, deadline: length, ..rest });
                pieces[index].push(TaskPiece {
                    core: CoreId::new(first_open),
                    until: Some(done),
                    deadline: Some(done),
                });
            }
            first_open += 1;
        };
        let emptiest = || (0..cores).min_by(|a, b| packed[*a].load.total_cmp(&packed[*b].load)).unwrap_or(0);
        let core = placed.map_or_else(emptiest, |(core, _)| core);
        packed[core].push(demand_of(task, done));
        if placed.is_none() {
            pieces[index].clear();
            all_fit = false;
        }
        pieces[index].push(TaskPiece { core: CoreId::new(core), until: None, deadline: None });
    }
    (pieces, all_fit)
}

/// Returns the longest piece with C = D that a core admits, to the nanosecond.
fn longest_piece(packed: &PackedCore, rest: Demand, budget: &mut StepBudget) -> Time {
    let (mut low, mut high) = (0, rest.wcet.0 - 1);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let piece = Demand { wcet: Time(middle), deadline: Time(middle), ..rest };
        if packed.admits(piece, budget) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Time(low)
}

impl Scheduler for CdSplit {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.pieces = split(system.tasks(), system.cores()).0;
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.best.clear();
        self.best.resize(view.cores(), None);
        for (id, job) in view.ready() {
            let pieces = &self.pieces[job.task];
            let present = pieces.iter().find(|piece| piece.until.is_none_or(|until| job.executed < until));
            let Some(piece) = present else { continue };
            let deadline = piece.deadline.map_or(job.deadline, |relative| job.release + relative);
            let end = piece.until.map(|until| view.date_after(job, until - job.executed));
            let entry = (deadline, job.tie(), id, end);
            let best = &mut self.best[piece.core];
            if best.is_none_or(|(deadline, tie, ..)| (entry.0, entry.1) < (deadline, tie)) {
                *best = Some(entry);
            }
        }
        for (core, best) in view.system.core_ids().zip(&self.best) {
            if let Some((_, _, id, end)) = best {
                assignment.run(core, *id);
                if let Some(end) = end {
                    assignment.wake_at(*end);
                }
            }
        }
    }
}
