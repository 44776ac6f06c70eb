//! Tuning during a run: the remembered jobs are simulated under every candidate.
//!
//! The window is one short run of jobs that really came, so it needs no description. It is divided into blocks like any contest. Windows overlap and are
//! short, so that more evidence is asked for than at the start.

use std::sync::Arc;

use temponet_task::{Arrival, System, Task, TaskSet, Time};

use super::candidates::Candidate;
use super::contest::{Contestant, Course};
use super::history::History;
use super::race::best;

/// Number of standard errors beyond which a difference is evidence enough to move. With a dozen rivals and eight blocks, some rival is ahead of an equal one
/// by two standard errors in every second look.
const EVIDENCE: f64 = 3.0;
/// Number of blocks, the warm-up included.
const BLOCKS: usize = 9;
/// Number of jobs, as a share of the window, after which the first look is worth it.
const FIRST_LOOK: u64 = 2;
/// Greatest distance between two looks, as a multiple of the first. The distance doubles each time, until the jobs change again.
const MOST_PATIENCE: u64 = 8;

/// When to look next.
#[derive(Default)]
pub(super) struct Schedule {
    /// Number of released jobs at which the next look is due; none while jobs are as described.
    due: Option<u64>,
    distance: u64,
}

impl Schedule {
    /// Begins to look, from now on.
    pub fn begin(&mut self, history: &History) {
        self.distance = history.window() / FIRST_LOOK;
        self.due = Some(history.released + self.distance);
    }

    /// Stops looking.
    pub fn stop(&mut self) {
        self.due = None;
    }

    /// Whether looks are being taken.
    pub fn is_on(&self) -> bool {
        self.due.is_some()
    }

    /// Whether it is time to look. A decision that leaves a choice is only used if there was no other one for as long as between two looks.
    pub fn is_due(&self, history: &History, leaves_choice: bool) -> bool {
        let patience = if leaves_choice { self.distance } else { 0 };
        self.due.is_some_and(|due| history.released >= due + patience)
    }

    /// Plans the next look, later each time.
    pub fn looked(&mut self, history: &History) {
        self.distance = (2 * self.distance).min(MOST_PATIENCE * history.window() / FIRST_LOOK);
        self.due = Some(history.released + self.distance);
    }
}

/// Returns the candidate to follow from now on, by the remembered jobs. `system` is what a scheduler may know, and `followed` the candidate that is left only on
/// evidence.
pub(super) fn look(
    history: &History,
    system: &System,
    candidates: &[Candidate],
    followed: usize,
    is_shielded: bool,
) -> usize {
    let Some(course) = course(history, system, is_shielded) else { return followed };
    let contest = candidates.iter().enumerate().filter_map(|(place, candidate)| {
        let mut contestant = Contestant::new(candidate, &course)?;
        let has_run = (0..BLOCKS).all(|_| contestant.run_block(&course));
        has_run.then(|| (place, contestant.scores(&system.goal, usize::MAX)))
    });
    let (places, scores): (Vec<usize>, Vec<_>) = contest.unzip();
    let favourite = places.iter().position(|place| *place == followed);
    let best = best(&system.goal, &scores, favourite.map(|favourite| (favourite, EVIDENCE)));
    places.get(best).copied().unwrap_or(followed)
}

/// The remembered jobs as a course; `None` if they are too few to be divided into blocks.
fn course<'a>(history: &History, system: &'a System, is_shielded: bool) -> Option<Course<'a>> {
    let lists = history.jobs(&system.tasks);
    let releases = || lists.iter().flatten().map(|job| job.release);
    let (first, last) = (releases().min()?, releases().max()?);
    let block = Time((last - first).0 / BLOCKS as u64);
    let listed = |(task, jobs): (&Task, &Vec<_>)| {
        let arrival = Arrival::Listed(jobs.as_slice().into());
        Task { arrival, jitter: Time::ZERO, ..task.clone() }
    };
    let tasks = system.tasks.iter().zip(&lists).map(listed).collect();
    let set = Arc::new(TaskSet { tasks, ..TaskSet::of_system("remembered", system) });
    let is_enough = block > Time::ZERO && lists.iter().map(Vec::len).sum::<usize>() > 2 * BLOCKS;
    is_enough.then_some(Course { system, set, seed: 0, begins: first, block, most_blocks: BLOCKS, is_shielded })
}
