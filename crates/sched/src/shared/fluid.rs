//! The fluid schedule cut at deadlines (DP-fair scheduling), which the optimal multicore schedulers share. Between two
//! consecutive releases or deadlines every job receives its fluid share of that interval. Where inside the interval it
//! runs is up to the scheduler.
//!
//! Reference: Levin et al., DP-FAIR: A Simple Model for Understanding Optimal Multiprocessor Scheduling, ECRTS 2010.
//! Shares are whole nanoseconds: each job gets its fluid share rounded down, and the nanoseconds left over go, one
//! each, to the jobs with the largest fractions (boundary fairness: Zhu, Mossé and Melhem, RTSS 2003). So no job is
//! ever a whole nanosecond behind.
//!
//! If the shares exceed the cores, the earliest deadlines get theirs first: best effort. Releases that are not known
//! beforehand (sporadic tasks, jitter) begin a new interval when they happen.

use temponet_task::{Arrival, Event, JobId, System, SystemView, Tie, Time};

/// Number of ready jobs up to which computing a share for each in every interval takes a reasonable time.
pub(crate) const MOST_SHARED: usize = 4_096;

/// Share of a job in the current interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub id: JobId,
    /// Work to do before the interval ends.
    pub local: Time,
    executed_before: Time,
    deadline: Time,
    tie: Tie,
    fraction: f64,
}

/// The current interval and the share of every job.
#[derive(Default)]
pub(crate) struct Fluid {
    pub begin: Time,
    pub end: Time,
    /// Sorted by task, so that a task tends to stay on the same core.
    pub shares: Vec<Share>,
    /// Next known release of each task.
    next_release: Vec<Time>,
}

impl Fluid {
    pub fn start(&mut self, system: &System) {
        (self.begin, self.end) = (Time::ZERO, Time::ZERO);
        self.shares.clear();
        self.next_release = system.tasks().iter().map(|task| task.offset).collect();
    }

    /// Begins a new interval if one is due. Returns whether it did.
    pub fn update(&mut self, view: &SystemView<'_>) -> bool {
        let mut changed = view.now >= self.end;
        for event in view.events {
            if let Event::Released(id) = *event {
                changed = true;
                let job = view.job(id);
                let task = view.task_of(job);
                self.next_release[job.task] = match task.arrival {
                    Arrival::Periodic { period } if task.jitter == Time::ZERO => job.release + period,
                    _ => Time::NEVER,
                };
            }
        }
        if changed {
            self.begin_interval(view);
        }
        changed
    }

    fn begin_interval(&mut self, view: &SystemView<'_>) {
        self.begin = view.now;
        let releases = self.next_release.iter().copied().filter(|release| *release > view.now);
        let deadlines = view.ready().map(|(_, job)| job.deadline).filter(|deadline| *deadline > view.now);
        self.end = releases.chain(deadlines).min().unwrap_or(Time::NEVER);
        self.shares.clear();
        if self.end == Time::NEVER {
            // Only late jobs are left, and no release is known.
            self.end = Time(view.now.0 + 1_000_000);
        }
        let length = self.end - self.begin;
        for (id, job) in view.ready() {
            let window = u128::from(job.deadline.saturating_sub(job.release).0.max(1));
            let passed = u128::from(self.end.saturating_sub(job.release).0).min(window);
            let fluid = u128::from(job.wcet.0) * passed;
            let target = Time((fluid / window) as u64);
            let local = target.saturating_sub(job.executed).min(length);
            let fraction = if local < length { (fluid % window) as f64 / window as f64 } else { 0.0 };
            let (deadline, tie, executed_before) = (job.deadline, job.tie(), job.executed);
            self.shares.push(Share { id, local, executed_before, deadline, tie, fraction });
        }
        self.fit(u128::from(length.0) * view.cores() as u128, length);
        self.shares.sort_by_key(|share| (share.tie.1, share.tie));
    }

    /// Cuts the shares down to the capacity, or hands out the nanoseconds that rounding left over.
    fn fit(&mut self, capacity: u128, length: Time) {
        let asked: u128 = self.shares.iter().map(|share| u128::from(share.local.0)).sum();
        let mut left = capacity;
        if asked > capacity {
            self.shares.sort_by_key(|share| (share.deadline, share.tie));
            for share in &mut self.shares {
                share.local = Time(u128::from(share.local.0).min(left) as u64);
                left -= u128::from(share.local.0);
            }
        } else {
            left -= asked;
            self.shares.sort_by(|a, b| b.fraction.total_cmp(&a.fraction).then(a.deadline.cmp(&b.deadline)));
            for share in self.shares.iter_mut().filter(|share| share.fraction > 0.0 && share.local < length) {
                if left > 0 {
                    share.local = Time(share.local.0 + 1);
                    left -= 1;
                }
            }
        }
    }

    /// Remaining part of a share.
    pub fn left(&self, share: &Share, view: &SystemView<'_>) -> Time {
        let job = view.job(share.id);
        share.local.saturating_sub(job.executed.saturating_sub(share.executed_before))
    }

    /// Removes jobs that have left. Returns whether there were any.
    pub fn forget(&mut self, view: &SystemView<'_>) -> bool {
        let before = self.shares.len();
        for event in view.events {
            if let Event::Completed(id) | Event::Aborted(id) = *event {
                self.shares.retain(|share| share.id != id);
            }
        }
        self.shares.len() < before
    }
}
