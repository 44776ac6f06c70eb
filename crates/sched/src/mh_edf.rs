//! MH-EDF: at every event, the largest set of ready jobs that can all be on time is chosen by Moore and Hodgson's rule,
//! and its earliest deadline runs. On one core with known execution times this is all but optimal; it is the classical
//! scheduler to beat in overload.
//!
//! The rule: add jobs in deadline order; when one would be late, drop the longest so far. Jobs that are late by wcet are
//! not candidates. On several cores "would be late" is asked of an EDF list schedule; accepted jobs without slack run
//! first, then by deadline. Cores that are left take the rejected jobs, shortest remaining first.
//!
//! Reference: Moore, Management Science 15(1), 1968, applied online to the ready jobs with their remaining wcet.
//! Ties: equal deadlines, equal lengths and equal remaining go to the earlier release, then the lower task index; of equally long
//! jobs the one last in that order is dropped.

use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, Tie, Time};

pub(crate) struct MhEdf {
    /// Candidates in deadline order.
    candidates: Vec<Candidate>,
    rejected: Vec<(Time, Tie, JobId)>,
    /// When each core is free in the list schedule.
    free_at: Vec<Time>,
    chosen: Vec<JobId>,
}

#[derive(Clone, Copy)]
struct Candidate {
    deadline: Time,
    tie: Tie,
    id: JobId,
    remaining: Time,
    accepted: bool,
}

impl MhEdf {
    pub fn new() -> MhEdf {
        MhEdf { candidates: Vec::new(), rejected: Vec::new(), free_at: Vec::new(), chosen: Vec::new() }
    }

    /// Marks the accepted candidates.
    fn accept(&mut self, now: Time, cores: usize) {
        self.free_at.clear();
        self.free_at.resize(cores, now);
        for at in 0..self.candidates.len() {
            let Candidate { remaining, deadline, .. } = self.candidates[at];
            self.candidates[at].accepted = true;
            if schedule(&mut self.free_at, remaining) <= deadline {
                continue;
            }
            while self.drop_longest(at) && !self.is_on_time(at, now) {}
        }
    }

    /// Rejects the longest accepted candidate up to `last`.
    fn drop_longest(&mut self, last: usize) -> bool {
        let accepted = self.candidates[..=last].iter().enumerate().filter(|(_, candidate)| candidate.accepted);
        let longest = accepted.max_by_key(|(place, candidate)| (candidate.remaining, *place)).map(|(place, _)| place);
        longest.is_some_and(|place| std::mem::replace(&mut self.candidates[place].accepted, false))
    }

    /// Schedules the accepted candidates up to `last` anew; whether all are on time. On one core dropping the longest
    /// always mends it, on several it may take more.
    fn is_on_time(&mut self, last: usize, now: Time) -> bool {
        self.free_at.fill(now);
        let mut on_time = true;
        for candidate in self.candidates[..=last].iter().filter(|candidate| candidate.accepted) {
            on_time &= schedule(&mut self.free_at, candidate.remaining) <= candidate.deadline;
        }
        on_time
    }
}

/// Puts a job on the core that is free first; when it completes.
fn schedule(free_at: &mut [Time], remaining: Time) -> Time {
    let mut first = 0;
    for core in 1..free_at.len() {
        if free_at[core] < free_at[first] {
            first = core;
        }
    }
    free_at[first] += remaining;
    free_at[first]
}

impl Scheduler for MhEdf {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let (now, cores) = (view.now, view.cores());
        self.candidates.clear();
        self.rejected.clear();
        for (id, job) in view.ready() {
            let (remaining, tie) = (job.remaining(), job.tie());
            if job.is_late_by_wcet(now) {
                self.rejected.push((remaining, tie, id));
            } else {
                self.candidates.push(Candidate { deadline: job.deadline, tie, id, remaining, accepted: false });
            }
        }
        self.candidates.sort_unstable_by_key(|candidate| (candidate.deadline, candidate.tie));
        self.accept(now, cores);
        let is_urgent = |candidate: &Candidate| cores > 1 && now + candidate.remaining >= candidate.deadline;
        self.chosen.clear();
        for urgent in [true, false] {
            let accepted =
                self.candidates.iter().filter(|candidate| candidate.accepted && is_urgent(candidate) == urgent);
            self.chosen.extend(accepted.map(|candidate| candidate.id));
        }
        if self.chosen.len() < cores {
            let dropped = self.candidates.iter().filter(|candidate| !candidate.accepted);
            self.rejected.extend(dropped.map(|candidate| (candidate.remaining, candidate.tie, candidate.id)));
            self.rejected.sort_unstable();
            self.chosen.extend(self.rejected.iter().map(|(_, _, id)| *id));
        }
        self.chosen.truncate(cores);
        assignment.place(view, &self.chosen);
    }
}
