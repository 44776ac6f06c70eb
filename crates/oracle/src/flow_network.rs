//! Preemptive scheduling with migration as a flow network (Horn 1974).
//!
//! Time is cut at all releases and deadlines. A job sends its work into the intervals of its window, at most the length
//! of an interval into each. An interval takes as much work as its cores can do. Large instances are cut more coarsely,
//! which relaxes feasibility slightly: bounds still hold, but there may be no schedule.
//!
//! The amounts of work that can be done together form a polymatroid. The linear relaxation of "maximize the weight of
//! the jobs in time" is therefore solved greedily: jobs in order of weight per work, each as much as still fits.
//! Intervals that a job found closed stay closed. The weight per work at which that happened is their price, and the
//! prices are the dual solution.

use temponet_task::{CoreId, Time};

use super::{OracleJob, Piece};

/// Jobs, intervals, and the work sent from jobs to intervals.
pub(super) struct FlowNetwork {
    /// Ends of the intervals, ascending.
    bounds: Vec<u64>,
    /// Whether time is cut in equal steps and not at every release and deadline.
    pub is_coarse: bool,
    /// Number of cores, as a fraction.
    capacity: (u64, u64),
    /// Free capacity of each interval: cores × length, rounded up, less the work in it.
    spare: Vec<u64>,
    is_closed: Vec<bool>,
    /// Weight per unit of work of the first job that found the interval closed; zero if none did.
    pub price: Vec<f64>,
    /// Intervals `first..end` of each job, and the index of its first flow.
    windows: Vec<Window>,
    flow: Vec<u64>,
    /// Jobs that may have work in each interval.
    users: Vec<Vec<u32>>,
    /// Elementary steps taken so far, the measure of effort.
    pub steps: u64,
    /// Maximum number of intervals that one search visits.
    pub reach: usize,
    /// Whether a search stopped at that limit, so that a push may have sent less than possible.
    pub was_cut: bool,
    // State of the search.
    round: u32,
    interval_seen: Vec<u32>,
    /// A later interval such that all intervals in between are closed (`skip_closed`) or visited (`skip_seen`).
    skip_closed: Vec<u32>,
    skip_seen: Vec<u32>,
    job_seen: Vec<u32>,
    /// The job that moves work into the interval, and the interval it moves it from; none where the search began.
    came_by: Vec<Option<(u32, u32)>>,
    queue: Vec<u32>,
    /// Intervals with free capacity that the search has reached.
    goals: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Window {
    first: usize,
    end: usize,
    offset: usize,
    release: u64,
    deadline: u64,
}

/// All releases and deadlines, ascending.
pub(super) fn dates(jobs: &[OracleJob]) -> Vec<u64> {
    let mut dates: Vec<u64> = jobs.iter().flat_map(|job| [job.release.0, job.deadline.0]).collect();
    dates.sort_unstable();
    dates.dedup();
    dates
}

/// Average number of intervals per window in a coarse network.
const COARSE: u64 = 32;
/// Largest number of flows of a network that is cut at every release and deadline.
const MOST_FLOWS: usize = 4_000_000;

/// Returns the ends of the intervals, and whether they are coarse: every release and deadline if that makes at most
/// [`MOST_FLOWS`] flows, else equal steps.
fn cuts(jobs: &[OracleJob]) -> (Vec<u64>, bool) {
    let dates = dates(jobs);
    let index = |time: Time| dates.partition_point(|date| *date < time.0);
    let mut flows = 0;
    for job in jobs {
        flows += index(job.deadline) - index(job.release);
        if flows > MOST_FLOWS {
            let (Some(first), Some(last)) = (dates.first(), dates.last()) else { break };
            let windows: u128 = jobs.iter().map(|job| u128::from((job.deadline - job.release).0)).sum();
            let step = ((windows / jobs.len() as u128) as u64 / COARSE).max(1);
            return ((0..=(last - first).div_ceil(step)).map(|cut| first + cut * step).collect(), true);
        }
    }
    (dates, false)
}

/// Work that a number of cores, as a fraction, can do in a time, rounded up.
fn work_in((cores, whole): (u64, u64), time: u64) -> u64 {
    (cores * time).div_ceil(whole)
}

impl FlowNetwork {
    pub fn new(jobs: &[OracleJob], cores: usize) -> FlowNetwork {
        FlowNetwork::with_capacity(jobs, (cores as u64, 1))
    }

    /// A network with a number of cores that need not be whole, as a fraction. It has no schedules unless it is.
    pub fn with_capacity(jobs: &[OracleJob], capacity: (u64, u64)) -> FlowNetwork {
        let (bounds, is_coarse) = cuts(jobs);
        let mut offset = 0;
        let mut windows = Vec::with_capacity(jobs.len());
        for job in jobs {
            let (release, deadline) = (job.release.0, job.deadline.0);
            let first = bounds.partition_point(|bound| *bound <= release).saturating_sub(1);
            let end = bounds.partition_point(|bound| *bound < deadline);
            windows.push(Window { first, end, offset, release, deadline });
            offset += end - first;
        }
        let intervals = bounds.len().saturating_sub(1);
        FlowNetwork {
            spare: bounds.windows(2).map(|pair| work_in(capacity, pair[1] - pair[0])).collect(),
            bounds,
            is_coarse,
            capacity,
            is_closed: vec![false; intervals],
            price: vec![0.0; intervals],
            windows,
            flow: vec![0; offset],
            users: vec![Vec::new(); intervals],
            steps: 0,
            reach: usize::MAX,
            was_cut: false,
            round: 0,
            interval_seen: vec![0; intervals + 1],
            skip_closed: (0..=intervals as u32).collect(),
            skip_seen: vec![0; intervals + 1],
            job_seen: vec![0; jobs.len()],
            came_by: vec![None; intervals],
            queue: Vec::new(),
            goals: Vec::new(),
        }
    }

    /// Work that the cores can do in an interval.
    fn work_in(&self, interval: usize) -> u64 {
        work_in(self.capacity, self.length(interval))
    }

    fn length(&self, interval: usize) -> u64 {
        self.bounds[interval + 1] - self.bounds[interval]
    }

    /// Index of the flow from a job into an interval.
    fn edge(&self, job: usize, interval: usize) -> usize {
        let window = self.windows[job];
        window.offset + interval - window.first
    }

    /// Length of the part of an interval that lies in the window.
    fn overlap(&self, window: &Window, interval: usize) -> u64 {
        self.bounds[interval + 1].min(window.deadline) - self.bounds[interval].max(window.release)
    }

    fn room(&self, job: usize, interval: usize) -> u64 {
        let window = &self.windows[job];
        self.overlap(window, interval) - self.flow[window.offset + interval - window.first]
    }

    fn add(&mut self, job: usize, interval: usize, amount: u64) {
        let edge = self.edge(job, interval);
        if self.flow[edge] == 0 {
            self.users[interval].push(job as u32);
        }
        self.flow[edge] += amount;
    }

    /// Sends up to `amount` of the work of a job, moving work of other jobs where that makes room. Returns how much was
    /// sent.
    pub fn push(&mut self, job: usize, amount: u64) -> u64 {
        temponet_cancel::checkpoint();
        let mut left = amount;
        let Window { first, end, .. } = self.windows[job];
        self.steps += (end - first) as u64;
        for interval in first..end {
            let part = left.min(self.spare[interval]).min(self.room(job, interval));
            if part > 0 {
                self.add(job, interval, part);
                self.spare[interval] -= part;
                left -= part;
                if left == 0 {
                    return amount;
                }
            }
        }
        while left > 0 {
            self.search(job, left);
            if self.goals.is_empty() {
                break;
            }
            for place in 0..self.goals.len() {
                left -= self.augment(job, self.goals[place] as usize, left);
            }
        }
        amount - left
    }

    /// Closes, after a push that fell short, every interval that it visited, at this price.
    pub fn close_seen(&mut self, price: f64) {
        for interval in &self.queue {
            let interval = *interval as usize;
            self.is_closed[interval] = true;
            self.skip_closed[interval] = interval as u32 + 1;
            self.price[interval] = price;
        }
    }

    /// Takes back all work of a job. Closed intervals may have room again then: [`FlowNetwork::reopen`] opens them.
    pub fn withdraw(&mut self, job: usize) {
        let Window { first, end, offset, .. } = self.windows[job];
        for interval in first..end {
            let amount = std::mem::take(&mut self.flow[offset + interval - first]);
            if amount > 0 {
                self.spare[interval] += amount;
                self.users[interval].retain(|user| *user != job as u32);
            }
        }
    }

    /// Opens all closed intervals again.
    pub fn reopen(&mut self) {
        self.is_closed.fill(false);
        self.skip_closed.iter_mut().enumerate().for_each(|(interval, next)| *next = interval as u32);
    }

    /// Returns the first interval from here on that is neither closed nor visited in this round.
    fn next_new(&mut self, from: usize) -> usize {
        let mut at = from;
        loop {
            let start = at;
            while self.skip_closed[at] as usize != at {
                let next = self.skip_closed[at];
                self.skip_closed[at] = self.skip_closed[next as usize];
                at = next as usize;
            }
            while self.interval_seen[at] == self.round {
                let next = self.skip_seen[at] as usize;
                if self.interval_seen[next] == self.round {
                    self.skip_seen[at] = self.skip_seen[next];
                }
                at = next;
            }
            if at == start {
                return at;
            }
        }
    }

    /// Finds paths from the job to intervals with free capacity, through jobs whose work can be moved, until they
    /// suffice for `amount`. If there are none, `queue` holds every interval visited.
    fn search(&mut self, job: usize, amount: u64) {
        self.round += 1;
        self.queue.clear();
        self.goals.clear();
        let mut wanted = amount;
        self.look_from(job, None, &mut wanted);
        let mut next = 0;
        while next < self.queue.len() && wanted > 0 {
            if self.queue.len() > self.reach {
                self.was_cut |= self.goals.is_empty();
                break;
            }
            let interval = self.queue[next] as usize;
            next += 1;
            let mut place = 0;
            while place < self.users[interval].len() {
                let user = self.users[interval][place] as usize;
                self.steps += 1;
                if self.flow[self.edge(user, interval)] == 0 {
                    self.users[interval].swap_remove(place);
                    continue;
                }
                place += 1;
                if self.job_seen[user] != self.round {
                    self.look_from(user, Some((user as u32, interval as u32)), &mut wanted);
                }
            }
        }
    }

    /// Visits all intervals that a job can still use.
    fn look_from(&mut self, job: usize, came_by: Option<(u32, u32)>, wanted: &mut u64) {
        self.job_seen[job] = self.round;
        let Window { first, end, .. } = self.windows[job];
        let mut interval = self.next_new(first);
        while interval < end {
            self.steps += 1;
            if self.room(job, interval) > 0 {
                self.interval_seen[interval] = self.round;
                self.skip_seen[interval] = interval as u32 + 1;
                self.came_by[interval] = came_by;
                if self.spare[interval] > 0 {
                    self.goals.push(interval as u32);
                    *wanted = wanted.saturating_sub(self.spare[interval]);
                } else {
                    self.queue.push(interval as u32);
                }
            }
            interval = self.next_new(interval + 1);
        }
    }

    /// Sends work along a path that the search found. Returns how much was sent.
    fn augment(&mut self, job: usize, goal: usize, amount: u64) -> u64 {
        let mut part = amount.min(self.spare[goal]);
        let mut interval = goal;
        while let Some((mover, from)) = self.came_by[interval] {
            let (mover, from) = (mover as usize, from as usize);
            part = part.min(self.room(mover, interval)).min(self.flow[self.edge(mover, from)]);
            interval = from;
        }
        part = part.min(self.room(job, interval));
        if part == 0 {
            // Another path has used this one up.
            return 0;
        }
        self.spare[goal] -= part;
        interval = goal;
        while let Some((mover, from)) = self.came_by[interval] {
            let (mover, from) = (mover as usize, from as usize);
            self.add(mover, interval, part);
            let edge = self.edge(mover, from);
            self.flow[edge] -= part;
            interval = from;
        }
        self.add(job, interval, part);
        part
    }

    /// Upper bound on the weight in time, valid at any prices: all time is worth its price, and each job is worth at
    /// best its weight less the cheapest time that it can take.
    pub fn dual_bound(&mut self, jobs: &[OracleJob]) -> f64 {
        let time: f64 = (0..self.price.len()).map(|at| self.price[at] * self.work_in(at) as f64).sum();
        let mut offers: Vec<(f64, u64)> = Vec::new();
        let mut gains = 0.0;
        for (window, job) in self.windows.iter().zip(jobs) {
            let (mut left, mut cost) = (job.execution.0, 0.0);
            offers.clear();
            offers.extend((window.first..window.end).map(|at| (self.price[at], self.overlap(window, at))));
            offers.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            for (price, length) in &offers {
                let part = left.min(*length);
                cost += price * part as f64;
                left -= part;
                if left == 0 {
                    break;
                }
            }
            gains += (job.weight - cost).max(0.0);
            self.steps += offers.len() as u64;
        }
        time + gains
    }

    /// Price at the beginning of each interval between these dates.
    pub fn prices_at(&self, dates: &[u64]) -> Vec<f64> {
        let price = |date: &u64| self.price[self.bounds.partition_point(|bound| bound <= date).saturating_sub(1)];
        dates.split_last().map_or(Vec::new(), |(_, begins)| begins.iter().map(price).collect())
    }

    /// Turns the flow into a schedule: in each interval, McNaughton's wrap-around over the cores.
    pub fn schedule(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for interval in 0..self.spare.len() {
            let (begin, length) = (self.bounds[interval], self.length(interval));
            let mut users: Vec<u32> = self.users[interval].clone();
            users.sort_unstable();
            users.dedup();
            let (mut core, mut used) = (0, 0);
            for job in users {
                let mut left = self.flow[self.edge(job as usize, interval)];
                while left > 0 && core < self.capacity.0 {
                    let part = left.min(length - used);
                    let (start, end) = (Time(begin + used), Time(begin + used + part));
                    pieces.push(Piece { core: CoreId::new(core as usize), job: job as usize, start, end });
                    (left, used) = (left - part, used + part);
                    if used == length {
                        (core, used) = (core + 1, 0);
                    }
                }
            }
        }
        pieces
    }
}
