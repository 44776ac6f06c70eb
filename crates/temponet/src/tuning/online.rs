//! Tuning during a run.
//!
//! Jobs of a *list* are not known beforehand, so the remembered ones are simulated under every candidate ([`review`]).
//! The run of jobs that really came is divided into blocks like any contest. Every job that came so far is used, as
//! long as a review takes no more effort than the choice at the start, because a few hundred jobs tell little. Reviews
//! are repeated, each on about twice as many jobs as the one before. A move needs so much evidence that at most one
//! review in twenty moves away from a candidate that no other one is better than, however many rivals there are. On a
//! *server*, whose requests are never preempted, the rules differ by tens of points. Reviews begin sooner there, and
//! compare requests one by one ([`requests`]).
//!
//! Tasks that *change*, as in modes, show in their jobs what they have become ([`present_tasks`]). The changed tasks
//! are simulated like those of a description, which tells as much as the choice at the start does.

use std::sync::Arc;

use temponet_sim::statistics::margin;
use temponet_sim::{Outlook, ranking};
use temponet_task::{Arrival, System, Task, TaskId, TaskSet, Time};

use super::candidates::Candidate;
use super::contest::{Contestant, Course};
use super::history::History;
use super::race::best;
use super::requests;

/// The measure of the goal that a move needs evidence in. A less important one never decides, even where candidates are
/// equal in the first one: that none of a few hundred critical jobs was lost does not say that none will be, and no
/// gain in another measure makes up for one.
const FIRST_MEASURE: usize = 0;
/// Probability that a review moves away from a candidate that no other one is better than.
pub(super) const CHANCE: f64 = 0.05;
/// A rival that is behind the followed candidate as far as this happens by chance is not simulated to the end.
const HOPELESS: f64 = 0.01;
/// Greatest and smallest number of blocks, the warm-up included.
const BLOCKS: (u64, u64) = (33, 5);
/// Number of jobs before the first review. The distance between reviews doubles each time, until as many jobs have come
/// as are remembered.
const FIRST_REVIEW: u64 = 200;
/// The same on a server. The distance there is a quarter of the jobs that have come, and at least this.
const FIRST_REVIEW_OF_SERVER: u64 = 100;

/// When the next review is due.
#[derive(Default)]
pub(super) struct Schedule {
    /// Number of released jobs at which the next review is due.
    due: u64,
    distance: u64,
    is_server: bool,
}

impl Schedule {
    /// Begins anew, at the start of a run.
    pub fn begin(system: &System) -> Schedule {
        let is_server = system.is_server();
        let first = if is_server { FIRST_REVIEW_OF_SERVER } else { FIRST_REVIEW };
        Schedule { due: first, distance: first, is_server }
    }

    /// Whether a review is due. A decision that leaves a choice is only used if there was no other one for as long as
    /// between two reviews; a server in overload has no others.
    pub fn is_due(&self, history: &History, leaves_choice: bool) -> bool {
        history.released >= self.due + if leaves_choice && !self.is_server { self.distance } else { 0 }
    }

    /// Plans the next review, later each time.
    pub fn reviewed(&mut self, history: &History) {
        self.distance = match self.is_server {
            true => (history.released / 4).max(FIRST_REVIEW_OF_SERVER),
            false => (2 * self.distance).min(history.window()).max(FIRST_REVIEW),
        };
        self.due = history.released + self.distance;
    }
}

/// Input of a review of the choice during a run.
pub(super) struct Review<'a> {
    /// The system as simple schedulers may know it.
    pub known: &'a System,
    /// The system as the network is told of it. The network has to meet in the simulation what it meets in the run.
    pub told_network: &'a System,
    /// Candidates to choose from.
    pub candidates: &'a [Candidate],
    /// Place of the followed candidate. Another one takes its place only if it is better on the remembered jobs.
    pub followed: usize,
    /// Place of the candidate that was followed at the start.
    pub home: usize,
    /// Whether the candidates run behind the shield.
    pub is_shielded: bool,
    /// Effort that a review may take, over all candidates.
    pub effort: u64,
}

/// Simulates the remembered jobs, and returns the place of the candidate to follow from now on. Candidates for which no
/// effort is left are passed over.
pub(super) fn review<'a>(history: &History, input: &Review<'a>) -> usize {
    let goal = input.known.goal();
    let Some(course) = course(history, input.known, input.is_shielded) else { return input.followed };
    let networks = Course { system: input.told_network, set: course.set.clone(), ..course };
    if input.known.is_server() && requests::counts(goal.first()) {
        return requests::review(&course, &networks, input);
    }
    let mut left = input.effort;
    let mut run = |candidate: &'a Candidate, followed: Option<&Contestant<'_>>| -> Option<Contestant<'a>> {
        let course = if matches!(candidate, Candidate::Network(_)) { &networks } else { &course };
        let mut contestant = Contestant::new(candidate, course)?;
        for _ in 0..course.most_blocks {
            if !contestant.run_block(course, &mut left) {
                return None;
            }
            let blocks = contestant.blocks();
            let is_behind = |followed: &Contestant<'_>| {
                let (own, other) = (contestant.scores(goal, blocks), followed.scores(goal, blocks));
                ranking::leads_for_good(goal, &other, &own, margin(blocks, HOPELESS))
            };
            if blocks > 1 && followed.is_some_and(is_behind) {
                return None;
            }
        }
        Some(contestant)
    };
    let Some(contestant) = input.candidates.get(input.followed).and_then(|candidate| run(candidate, None)) else {
        return input.followed;
    };
    let followed = contestant.scores(goal, usize::MAX);
    let rivals = input.candidates.iter().enumerate().filter(|(place, _)| *place != input.followed);
    let scores =
        rivals.filter_map(|(place, rival)| Some((place, run(rival, Some(&contestant))?.scores(goal, usize::MAX))));
    let mut scores: Vec<(usize, Vec<Vec<f64>>)> = scores.collect();
    let rivals = input.candidates.len().saturating_sub(1).max(1);
    let margin = margin(followed.len(), CHANCE / rivals as f64);
    scores.retain(|(_, own)| {
        let (difference, error) = ranking::difference(own, &followed, FIRST_MEASURE);
        error.is_some_and(|error| difference > margin * error && difference > 0.0)
    });
    let (places, scores): (Vec<usize>, Vec<_>) = scores.into_iter().unzip();
    best(goal, &scores, 0..scores.len()).map_or(input.followed, |best| places[best])
}

/// The remembered jobs as a course; `None` if they are too few to be divided into blocks. A block is at least as long
/// as the longest relative deadline, so that what a candidate does in one block hardly reaches beyond the next, and
/// blocks count as independent. Where requests are compared one by one there is a single block.
///
/// Where tasks follow each other, the followed candidate has decided on their releases, so they are no course for
/// others.
fn course<'a>(history: &History, system: &'a System, is_shielded: bool) -> Option<Course<'a>> {
    if system.tasks().iter().any(|task| !task.after.is_empty()) {
        return None;
    }
    let lists = history.jobs(system.tasks());
    let jobs = || lists.iter().flatten();
    let (first, last) = (jobs().map(|job| job.release).min()?, jobs().map(|job| job.release).max()?);
    let longest = jobs().map(|job| job.deadline.saturating_sub(job.release)).max()?;
    let by_request = system.is_server() && requests::counts(system.goal().first());
    let blocks = if by_request { 1 } else { ((last - first).0 / longest.0.max(1)).min(BLOCKS.0) };
    let block = Time((last - first).0 / blocks.max(1));
    let listed = |(task, jobs): (&Task, &Vec<_>)| {
        let arrival = Arrival::Listed(jobs.as_slice().into());
        task.clone().with_arrival(arrival).with_jitter(Time::ZERO)
    };
    let tasks = system.tasks().iter().zip(&lists).map(listed).collect();
    let set = Arc::new(TaskSet::of_system("remembered", system.described_by(tasks)));
    let most_blocks = blocks as usize;
    ((by_request || blocks >= BLOCKS.1) && block > Time::ZERO).then_some(Course {
        system,
        set,
        seed: 0,
        begins: first,
        block,
        most_blocks,
        is_shielded,
        planned: u64::MAX,
    })
}

/// Returns the tasks as they behave at present: as their latest jobs show them, and without jobs if they have fallen
/// silent.
pub(super) fn present_tasks(history: &History, outlook: &Outlook) -> Vec<Task> {
    let present = |(place, task): (usize, &Task)| match history.is_silent(TaskId::new(place)) {
        true => task.clone().with_arrival(Arrival::Listed([].into())),
        false => task.clone(),
    };
    outlook.tasks().iter().enumerate().map(present).collect()
}
