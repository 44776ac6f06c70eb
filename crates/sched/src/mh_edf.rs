//! MH-EDF: at every event, the largest set of ready jobs that can all be on time is chosen by Moore and Hodgson's rule,
//! and its earliest deadline runs. On one core with known execution times this is all but optimal; it is the classical
//! scheduler to beat in overload.
//!
//! The rule: add jobs in deadline order; when one would be late, drop the longest so far. Cores that are left take the other
//! jobs, shortest remaining first.
//!
//! Reference: Moore, Management Science 15(1), 1968, applied online to the ready jobs with their remaining wcet.
//! Ties: equal deadlines, equal lengths and equal remaining go to the earlier release, then the lower task index; of equally
//! long jobs the one last in that order is dropped.

use std::collections::BinaryHeap;

use crate::overload::{Candidate, Candidates, add};
use temponet_task::{Assignment, Job, JobId, NotApplicable, Scheduler, System, SystemView, Time};

#[derive(Default)]
pub(crate) struct MhEdf {
    candidates: Candidates,
    plan: Plan,
}

impl MhEdf {
    /// Plans with the middle between the least and the most that may be left of each job.
    pub fn by_mean() -> MhEdf {
        let mean = |job: &Job| Time((job.least_remaining().0 + job.remaining().0) / 2);
        MhEdf { candidates: Candidates::planned_with(mean), plan: Plan::default() }
    }

    /// The jobs to run, of ready ones that are in deadline order already.
    pub fn choose(&mut self, view: &SystemView<'_>, order: &[JobId]) -> &[JobId] {
        self.candidates.gather_in_order(view, order);
        self.plan.choose(&mut self.candidates.jobs, view.now, view.cores());
        self.candidates.choose(view.cores(), |job| job.remaining)
    }
}

impl Scheduler for MhEdf {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.candidates.reserve(system.tasks.len());
        self.plan.reserve(system.tasks.len(), system.cores);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.candidates.gather(view);
        self.plan.choose(&mut self.candidates.jobs, view.now, view.cores());
        self.candidates.assign(view, assignment, |job| job.remaining);
    }
}

/// The list schedule of the jobs accepted so far, as it was after each of them, so that dropping one takes it up from there and not
/// from the beginning. Leaving a job out of a list schedule delays nobody, so only the job added last can ever be late.
#[derive(Default)]
struct Plan {
    /// The accepted jobs, by place.
    accepted: Vec<usize>,
    /// When each core is free: at first, after one accepted job, after two, …
    free_at: Vec<Time>,
    /// Remaining work and place of the accepted jobs.
    longest: BinaryHeap<(Time, usize)>,
}

impl Plan {
    /// Makes room for so many jobs.
    fn reserve(&mut self, jobs: usize, cores: usize) {
        self.accepted.reserve(jobs);
        self.longest.reserve(jobs);
        self.free_at.reserve((jobs + 1) * cores);
    }

    /// Accepts by Moore and Hodgson's rule; the jobs are in deadline order.
    fn choose(&mut self, jobs: &mut [Candidate], now: Time, cores: usize) {
        self.accepted.clear();
        self.longest.clear();
        self.free_at.clear();
        self.free_at.resize(cores, now);
        // Those before have not been looked at for the longest, as nothing had to be dropped.
        let mut unlisted = 0;
        for last in 0..jobs.len() {
            self.accepted.push(last);
            // On one core one job is enough to drop; on several it may take more.
            while self.completion(jobs, cores) > jobs[last].deadline {
                self.longest.extend((unlisted..=last).map(|place| (jobs[place].remaining, place)));
                unlisted = last + 1;
                let dropped = self.longest.pop().map_or(last, |(_, place)| place);
                let at = self.accepted.partition_point(|place| *place < dropped);
                self.accepted.remove(at);
                self.free_at.truncate((at + 1) * cores);
                if dropped == last {
                    break;
                }
            }
        }
        self.accepted.iter().for_each(|place| jobs[*place].accepted = true);
    }

    /// Plans the accepted jobs that are not planned yet; when the last one completes.
    fn completion(&mut self, jobs: &[Candidate], cores: usize) -> Time {
        let mut completion = Time::ZERO;
        for at in self.free_at.len() / cores - 1..self.accepted.len() {
            self.free_at.extend_from_within(at * cores..);
            completion = add(&mut self.free_at[(at + 1) * cores..], jobs[self.accepted[at]].remaining);
        }
        completion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// The rule word for word: the whole list schedule again after each job dropped.
    fn plain(jobs: &mut [Candidate], now: Time, cores: usize) {
        let is_late = |jobs: &[Candidate]| {
            let mut free_at = vec![now; cores];
            jobs.iter().filter(|job| job.accepted).any(|job| {
                let first = (0..cores).min_by_key(|core| free_at[*core]).unwrap();
                free_at[first] += job.remaining;
                free_at[first] > job.deadline
            })
        };
        for last in 0..jobs.len() {
            jobs[last].accepted = true;
            while is_late(&jobs[..=last]) {
                let accepted = (0..=last).filter(|place| jobs[*place].accepted);
                let longest = accepted.max_by_key(|place| (jobs[*place].remaining, *place)).unwrap();
                jobs[longest].accepted = false;
            }
        }
    }

    #[test]
    fn taking_the_plan_up_from_the_dropped_job_chooses_what_planning_again_chooses() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut plan, mut dropped) = (Plan::default(), 0);
        for case in 0..3_000 {
            let cores = rng.random_range(1..=9);
            let now = Time(rng.random_range(0..100));
            // Few lengths make many ties.
            let longest = if case % 2 == 0 { 6 } else { 1_000 };
            let window = longest * rng.random_range(1..=12);
            let mut jobs: Vec<Candidate> = (0..rng.random_range(0..70))
                .map(|index| {
                    let remaining = Time(rng.random_range(1..=longest));
                    let deadline = now + remaining + Time(rng.random_range(0..window));
                    let (id, tie) = (JobId(index), (Time::ZERO, index, 0));
                    Candidate {
                        id,
                        deadline,
                        tie,
                        remaining,
                        value: 1.0,
                        density: 1.0,
                        criticality: 0,
                        accepted: false,
                    }
                })
                .collect();
            jobs.sort_by_key(|job| (job.deadline, job.tie));
            let mut expected = jobs.clone();
            plain(&mut expected, now, cores);
            plan.choose(&mut jobs, now, cores);
            let accepted = |jobs: &[Candidate]| jobs.iter().map(|job| job.accepted).collect::<Vec<bool>>();
            assert_eq!(accepted(&jobs), accepted(&expected), "case {case}");
            dropped += jobs.iter().filter(|job| !job.accepted).count();
        }
        assert!(dropped > 10_000, "{dropped}: overload is what this is about");
    }
}
