//! What a run is judged by, gathered job by job so that memory does not grow with the horizon.
//!
//! *Who counts:* every job whose absolute deadline is within the horizon. *When a job ends:* at its completion; a job
//! that never completes ends when it leaves the system, but not before its deadline, so that giving up early does not
//! look fast.

use temponet_task::{Goal, Job, Measure, Task, Time};

use crate::histogram::Histogram;
use crate::windows::{WindowCounter, Windows};

/// Why a job left the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It completed.
    Completed,
    /// It was removed at its deadline.
    Aborted,
    /// The scheduler gave it up.
    Abandoned,
    /// The run ended first.
    Unfinished,
}

impl End {
    /// One word, for traces and pictures.
    pub fn name(self) -> &'static str {
        match self {
            End::Completed => "completed",
            End::Aborted => "aborted at its deadline",
            End::Abandoned => "given up by the scheduler",
            End::Unfinished => "unfinished at the horizon",
        }
    }
}

/// Jobs released and met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Jobs that count.
    pub released: u64,
    /// Those that completed by their deadline.
    pub met: u64,
}

impl Count {
    /// Share of jobs met; 1 if there were none.
    pub fn compliance(&self) -> f64 {
        if self.released == 0 { 1.0 } else { self.met as f64 / self.released as f64 }
    }

    fn add(&mut self, other: Count) {
        self.released += other.released;
        self.met += other.met;
    }
}

/// The jobs of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskMetrics {
    /// Released and met.
    pub jobs: Count,
    /// Jobs that completed, in time or not.
    pub completed: u64,
    /// Sum of their response times, in ns.
    pub response_sum: u128,
    /// The longest of them.
    pub response_max: Time,
    /// Its (m,k) windows.
    pub windows: Windows,
}

/// The figures of one run, or of several added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// All jobs that count.
    pub jobs: Count,
    /// The same by criticality: the index is the level.
    pub by_criticality: Vec<Count>,
    /// Per task, in the set's order.
    pub tasks: Vec<TaskMetrics>,
    /// Value of the jobs met.
    pub value: f64,
    /// Value of all jobs.
    pub value_possible: f64,
    /// Response times of the jobs that completed.
    pub response_completed: Histogram,
    /// Time from release to end over all jobs, in ns.
    pub response_all_sum: u128,
    /// End less deadline over all jobs; negative is early.
    pub lateness: Histogram,
    /// Running jobs that lost their core unfinished.
    pub preemptions: u64,
    /// Jobs that resumed on another core.
    pub migrations: u64,
    /// Decisions taken.
    pub decisions: u64,
    /// Core time without a job, over all cores, in ns.
    pub idle_ns: u128,
    /// Dynamic energy: one unit is a core at full speed for a second, and power grows with the cube of the speed.
    pub energy: f64,
    /// Runs added up here.
    pub runs: u64,
    /// Runs in which every critical job met its deadline (every job, if none is critical).
    pub successful_runs: u64,
    /// Of the tasks with an (m,k) constraint, during a run.
    window_counters: Vec<Option<WindowCounter>>,
}

impl Metrics {
    /// Nothing yet, for these tasks.
    pub fn new(tasks: &[Task]) -> Metrics {
        let is_firm = tasks.iter().any(|task| task.mk.is_some());
        let window_counters =
            if is_firm { tasks.iter().map(|task| task.mk.map(WindowCounter::new)).collect() } else { Vec::new() };
        Metrics { tasks: vec![TaskMetrics::default(); tasks.len()], window_counters, ..Metrics::default() }
    }

    /// The figures of a goal, in its order.
    pub fn scores(&self, goal: &Goal) -> Vec<f64> {
        goal.measures().iter().map(|measure| self.score(*measure)).collect()
    }

    /// One measure; 1 where there is nothing to measure.
    pub fn score(&self, measure: Measure) -> f64 {
        self.measured(measure).unwrap_or(1.0)
    }

    /// One measure; none where there is nothing to measure.
    pub fn measured(&self, measure: Measure) -> Option<f64> {
        let share = |count: Count| (count.released > 0).then(|| count.compliance());
        match measure {
            Measure::Critical(level) => share(*self.by_criticality.get(usize::from(level))?),
            Measure::Mk => Some(self.windows()).filter(|windows| windows.all > 0).map(|windows| windows.kept()),
            Measure::Value => (self.value_possible > 0.0).then(|| self.value / self.value_possible),
            Measure::Met => share(self.jobs),
            Measure::WorstTask => self.worst_task().map(|(_, share)| share),
        }
    }

    /// All (m,k) windows.
    pub fn windows(&self) -> Windows {
        let mut windows = Windows::default();
        self.tasks.iter().for_each(|task| windows.add(task.windows));
        windows
    }

    /// The task with the least share of jobs in time, the first of several, and that share; none if no job counts.
    pub fn worst_task(&self) -> Option<(usize, f64)> {
        let shares = self.tasks.iter().enumerate().filter(|(_, task)| task.jobs.released > 0);
        shares.map(|(at, task)| (at, task.jobs.compliance())).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Jobs that count and did not meet their deadline.
    pub fn missed(&self) -> u64 {
        self.jobs.released - self.jobs.met
    }

    /// Jobs of criticality above 0.
    pub fn critical(&self) -> Count {
        let mut critical = Count::default();
        self.by_criticality.iter().skip(1).for_each(|count| critical.add(*count));
        critical
    }

    /// Share of critical jobs in time (the paper's PITMD); none where no job is critical.
    pub fn pitmd(&self) -> Option<f64> {
        let critical = self.critical();
        (critical.released > 0).then(|| critical.compliance())
    }

    /// Mean response time in ns over the jobs that completed (the paper's ART).
    pub fn art_completed(&self) -> Option<f64> {
        self.response_completed.mean()
    }

    /// Mean time in ns from release to end over all jobs.
    pub fn art_all(&self) -> Option<f64> {
        (self.jobs.released > 0).then(|| self.response_all_sum as f64 / self.jobs.released as f64)
    }

    /// Counts a job that leaves at `now`. Jobs with deadlines beyond the horizon must not be passed.
    #[inline]
    pub(crate) fn record(&mut self, job: &Job, end: End, now: Time) {
        let completed = end == End::Completed;
        let met = completed && now <= job.deadline;
        let count = Count { released: 1, met: u64::from(met) };
        let ended = if completed { now } else { now.max(job.deadline) };
        let response = ended.saturating_sub(job.release);
        self.jobs.add(count);
        self.level(job.criticality as usize).add(count);
        self.value_possible += job.value;
        if met {
            self.value += job.value;
        }
        self.response_all_sum += u128::from(response.0);
        self.lateness.record(ended.signed_sub(job.deadline));
        let task = &mut self.tasks[job.task as usize];
        task.jobs.add(count);
        if let Some(Some(counter)) = self.window_counters.get_mut(job.task as usize) {
            counter.left(job.number, met);
        }
        if completed {
            self.response_completed.record(response.0 as i64);
            task.completed += 1;
            task.response_sum += u128::from(response.0);
            task.response_max = task.response_max.max(response);
        }
    }

    #[inline]
    fn level(&mut self, level: usize) -> &mut Count {
        if level >= self.by_criticality.len() {
            self.by_criticality.resize(level + 1, Count::default());
        }
        &mut self.by_criticality[level]
    }

    /// Closes a run.
    pub(crate) fn finish_run(&mut self) {
        for (task, counter) in self.tasks.iter_mut().zip(std::mem::take(&mut self.window_counters)) {
            if let Some(mut counter) = counter {
                counter.finish();
                task.windows = counter.counted;
            }
        }
        let required = if self.critical().released > 0 { self.critical() } else { self.jobs };
        self.runs = 1;
        self.successful_runs = u64::from(required.met == required.released);
    }

    /// Adds another run of the same set.
    pub fn merge(&mut self, other: &Metrics) {
        self.jobs.add(other.jobs);
        for (level, count) in other.by_criticality.iter().enumerate() {
            self.level(level).add(*count);
        }
        if self.tasks.len() < other.tasks.len() {
            self.tasks.resize(other.tasks.len(), TaskMetrics::default());
        }
        for (task, more) in self.tasks.iter_mut().zip(&other.tasks) {
            task.jobs.add(more.jobs);
            task.completed += more.completed;
            task.response_sum += more.response_sum;
            task.response_max = task.response_max.max(more.response_max);
            task.windows.add(more.windows);
        }
        self.value += other.value;
        self.value_possible += other.value_possible;
        self.response_completed.merge(&other.response_completed);
        self.response_all_sum += other.response_all_sum;
        self.lateness.merge(&other.lateness);
        self.preemptions += other.preemptions;
        self.migrations += other.migrations;
        self.decisions += other.decisions;
        self.idle_ns += other.idle_ns;
        self.energy += other.energy;
        self.runs += other.runs;
        self.successful_runs += other.successful_runs;
    }
}
