//! Admission: jobs enter an EDF list schedule one by one, each only if all jobs in it stay on time.
//!
//! Computing the list schedule answers that, but takes a step for each job with a later deadline. Two bounds answer
//! most cases first. Let *work* be the work in the schedule up to a deadline:
//!
//! - Refusal: if the work up to some deadline exceeds what all cores can do until then, some job is late.
//! - Admission: a job starts no later than all work before it takes on all cores together. If each job is on time when
//!   it starts then, no job is late.
//!
//! A segment tree over the deadline order holds, for each range of jobs, the least margin of either bound. So a bound
//! is checked in O(log n) steps. Where neither decides, the list schedule is computed from the new job on. Its earlier
//! part is kept.

use temponet_task::Time;

use crate::shared::planned_jobs::{PlannedJob, add, add_fixed};

/// The list schedule of the accepted jobs. The buffers are reused between decisions.
#[derive(Default)]
pub(crate) struct Admission {
    /// Places of the accepted jobs, ascending.
    accepted: Vec<usize>,
    /// Work and deadlines of these jobs.
    work: Vec<(Time, Time)>,
    /// Dates at which the cores become free: before any job, after the first accepted job, after the second, and so on.
    /// It ends where the schedule has changed since.
    free_at: Vec<Time>,
    /// Segment tree: the root is node 1, the children of node `i` are `2 i` and `2 i + 1`, and the last half are
    /// leaves.
    tree: Vec<Margins>,
    scratch: Vec<Time>,
}

/// Margins of the accepted jobs in a range of places, in nanoseconds of core time. The work before the range is not
/// subtracted.
#[derive(Clone, Copy, Debug)]
struct Margins {
    /// Work of all accepted jobs in the range.
    work: i64,
    /// Least difference between what all cores can do until a job's deadline and the work up to that job.
    possible: i64,
    /// Least difference between what all cores can do until a job's latest start and the work before that job.
    safe: i64,
}

impl Margins {
    /// Margins of an empty range. It is half the greatest number, so subtracting work cannot overflow.
    const NONE: Margins = Margins { work: 0, possible: i64::MAX / 2, safe: i64::MAX / 2 };

    fn of(job: &PlannedJob, now: Time, cores: i64) -> Margins {
        let (work, left) = (job.remaining.0 as i64, (job.deadline - now).0 as i64);
        Margins { work, possible: cores * left - work, safe: cores * (left - work) }
    }

    /// Margins of a range that is followed by another one.
    fn then(self, next: Margins) -> Margins {
        Margins {
            work: self.work + next.work,
            possible: self.possible.min(next.possible - self.work),
            safe: self.safe.min(next.safe - self.work),
        }
    }
}

/// Work and deadline of a job.
fn work(job: &PlannedJob) -> (Time, Time) {
    (job.remaining, job.deadline)
}

/// What the bounds say about a job.
enum Bound {
    Fits,
    IsTooMuch,
    Unknown,
}

impl Admission {
    /// Reserves memory for this many jobs and cores.
    pub fn reserve(&mut self, jobs: usize, cores: usize) {
        let more = |wanted: usize, length: usize| wanted.saturating_sub(length);
        self.accepted.reserve(more(jobs, self.accepted.len()));
        self.work.reserve(more(jobs, self.work.len()));
        self.free_at.reserve(more((jobs + 1) * cores.next_power_of_two(), self.free_at.len()));
        self.tree.reserve(more(2 * jobs.next_power_of_two(), self.tree.len()));
        self.scratch.reserve(more(cores, self.scratch.len()));
    }

    /// Accepts the jobs at these places one by one, each if all accepted ones are then on time. The jobs are in
    /// deadline order, none of them is late on its own, and some may be accepted already.
    pub fn accept_each(&mut self, jobs: &mut [PlannedJob], places: &[usize], now: Time, cores: usize) {
        match cores {
            1 => self.accept::<1>(jobs, places, now, cores),
            2 => self.accept::<2>(jobs, places, now, cores),
            3..=4 => self.accept::<4>(jobs, places, now, cores),
            5..=8 => self.accept::<8>(jobs, places, now, cores),
            9..=16 => self.accept::<16>(jobs, places, now, cores),
            _ => self.accept::<0>(jobs, places, now, cores),
        }
    }

    /// Like [`Admission::accept_each`], on at most `C` cores, or on any number if `C` is 0.
    fn accept<const C: usize>(&mut self, jobs: &mut [PlannedJob], places: &[usize], now: Time, cores: usize) {
        let stride = if C == 0 { cores } else { C };
        self.accepted.clear();
        self.accepted.extend((0..jobs.len()).filter(|place| jobs[*place].accepted));
        self.free_at.clear();
        self.free_at.resize(cores, now);
        self.free_at.resize(stride, Time::NEVER);
        // Often there is time for all jobs.
        let all = self.accepted.len() + places.len() == jobs.len();
        self.work.clear();
        self.work.extend(jobs.iter().map(work));
        if all && self.is_on_time::<C>(stride, 0, None) {
            jobs.iter_mut().for_each(|job| job.accepted = true);
            return;
        }
        self.work.clear();
        self.work.extend(self.accepted.iter().map(|place| work(&jobs[*place])));
        if !self.is_on_time::<C>(stride, 0, None) {
            return;
        }
        let has_bounds = self.grow_tree(jobs, now, cores);
        for place in places {
            let job = &mut jobs[*place];
            let bound = if has_bounds { self.bound(*place, job, now, cores as i64) } else { Bound::Unknown };
            if matches!(bound, Bound::IsTooMuch) {
                continue;
            }
            let at = self.accepted.partition_point(|other| other < place);
            if matches!(bound, Bound::Fits) || self.is_on_time::<C>(stride, at, Some(work(job))) {
                job.accepted = true;
                self.accepted.insert(at, *place);
                self.work.insert(at, work(job));
                self.free_at.truncate((at + 1) * stride);
                if has_bounds {
                    self.set_leaf(*place, Margins::of(job, now, cores as i64));
                }
            }
        }
    }

    /// Whether the accepted jobs from the `at`-th on are on time, after `new` if there is a new job at that place. The
    /// jobs before are known to be on time.
    fn is_on_time<const C: usize>(&mut self, stride: usize, at: usize, new: Option<(Time, Time)>) -> bool {
        let Admission { work, free_at, scratch, .. } = self;
        let known = free_at.len() / stride - 1;
        if C == 0 {
            for index in known..at {
                free_at.extend_from_within(index * stride..);
                add(&mut free_at[(index + 1) * stride..], work[index].0);
            }
            scratch.clear();
            scratch.extend_from_slice(&free_at[at * stride..][..stride]);
            let mut is_on_time = |(remaining, deadline): &(Time, Time)| add(scratch, *remaining) <= *deadline;
            return new.iter().all(&mut is_on_time) && work[at..].iter().all(is_on_time);
        }
        let mut dates = [Time::NEVER; C];
        dates.copy_from_slice(&free_at[known.min(at) * C..][..C]);
        for (remaining, _) in work.get(known..at).unwrap_or_default() {
            add_fixed(&mut dates, *remaining);
            free_at.extend_from_slice(&dates);
        }
        if let Some((remaining, deadline)) = new
            && add_fixed(&mut dates, remaining) > deadline
        {
            return false;
        }
        for (remaining, deadline) in &work[at..] {
            if add_fixed(&mut dates, *remaining) > *deadline {
                return false;
            }
        }
        true
    }

    /// Computes the tree of the accepted jobs. Returns false, without a tree, if its numbers could overflow.
    fn grow_tree(&mut self, jobs: &[PlannedJob], now: Time, cores: usize) -> bool {
        let window = jobs.last().map_or(0, |job| (job.deadline - now).0);
        let most = window.checked_mul(cores as u64).filter(|most| *most < (i64::MAX / 8) as u64);
        if most.is_none() {
            return false;
        }
        let leaves = jobs.len().next_power_of_two();
        self.tree.clear();
        self.tree.resize(2 * leaves, Margins::NONE);
        for place in &self.accepted {
            self.tree[leaves + place] = Margins::of(&jobs[*place], now, cores as i64);
        }
        if !self.accepted.is_empty() {
            (1..leaves).rev().for_each(|node| self.tree[node] = self.tree[2 * node].then(self.tree[2 * node + 1]));
        }
        true
    }

    fn set_leaf(&mut self, place: usize, margins: Margins) {
        let mut node = self.tree.len() / 2 + place;
        self.tree[node] = margins;
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node].then(self.tree[2 * node + 1]);
        }
    }

    /// Compares a job that is not accepted with the bounds.
    fn bound(&self, place: usize, job: &PlannedJob, now: Time, cores: i64) -> Bound {
        let mut node = self.tree.len() / 2 + place;
        let (mut before, mut margins) = (0, Margins::of(job, now, cores));
        while node > 1 {
            let sibling = self.tree[node ^ 1];
            if node.is_multiple_of(2) {
                margins = margins.then(sibling);
            } else {
                before += sibling.work;
            }
            node /= 2;
        }
        if margins.possible < before {
            Bound::IsTooMuch
        } else if margins.safe >= before {
            Bound::Fits
        } else {
            Bound::Unknown
        }
    }
}
