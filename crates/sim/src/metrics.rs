//! Metrics of a run, accumulated job by job, so that memory does not grow with the horizon.
//!
//! *Jobs that count:* every job whose absolute deadline is within the horizon. *End of a job:* its completion. A job
//! that never completes ends when it leaves the system, but not before its deadline, so that abandoning a job early
//! does not make it look fast.

use temponet_task::{Goal, Job, Measure, Task, Time};

use crate::chains::ChainMetrics;
use crate::histogram::Histogram;
use crate::windows::{WindowCounter, Windows};

/// Reason why a job left the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The job completed.
    Completed,
    /// The job was removed at its deadline.
    Aborted,
    /// The scheduler abandoned the job.
    Abandoned,
    /// The run ended before the job did.
    Unfinished,
    /// The job was never released, because a job that it follows did not complete.
    Unreleased,
}

impl End {
    /// Description for traces and charts.
    pub fn name(self) -> &'static str {
        match self {
            End::Completed => "completed",
            End::Aborted => "aborted at its deadline",
            End::Abandoned => "given up by the scheduler",
            End::Unfinished => "unfinished at the horizon",
            End::Unreleased => "never released: a predecessor did not complete",
        }
    }
}

/// Number of jobs released, and of those that met their deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Jobs that count.
    pub released: u64,
    /// Jobs that completed by their deadline.
    pub met: u64,
}

impl Count {
    /// Returns the share of jobs that met their deadline, 0 to 1; 1 if there were no jobs.
    pub fn compliance(&self) -> f64 {
        if self.released == 0 { 1.0 } else { self.met as f64 / self.released as f64 }
    }

    pub(crate) fn add(&mut self, other: Count) {
        self.released += other.released;
        self.met += other.met;
    }
}

/// Metrics of the jobs of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskMetrics {
    /// Jobs released and met.
    pub jobs: Count,
    /// Jobs that completed, in time or late.
    pub completed: u64,
    /// Sum of the response times of the completed jobs, in nanoseconds.
    pub response_sum: u128,
    /// Longest response time of a completed job.
    pub response_max: Time,
    /// Windows of the task's (m,k) constraint.
    pub windows: Windows,
    /// Sum of the times for which jobs waited for a resource, in nanoseconds.
    pub blocked_sum: u128,
    /// Longest time for which a job waited for resources.
    pub blocked_max: Time,
}

impl TaskMetrics {
    /// Returns the mean time for which a job waited for resources, in nanoseconds; `None` if no job counts.
    pub fn blocked_mean(&self) -> Option<f64> {
        (self.jobs.released > 0).then(|| self.blocked_sum as f64 / self.jobs.released as f64)
    }
}

/// Metrics of one run, or of several runs added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// All jobs that count.
    pub jobs: Count,
    /// Jobs that count, by criticality level: the index is the level.
    pub by_criticality: Vec<Count>,
    /// Metrics per task, in the order of the set.
    pub tasks: Vec<TaskMetrics>,
    /// Total value of the jobs that met their deadline.
    pub value: f64,
    /// Total value of all jobs.
    pub value_possible: f64,
    /// Response times of the completed jobs, in nanoseconds.
    pub response_completed: Histogram,
    /// Sum over all jobs of the time from release to end, in nanoseconds.
    pub response_all_sum: u128,
    /// Lateness (end minus deadline) of all jobs, in nanoseconds; negative is early.
    pub lateness: Histogram,
    /// Number of jobs that were never released, because a job that they follow did not complete. They count as missed.
    pub unreleased: u64,
    /// Number of jobs that left without ever having run, most of them because their scheduler never chose them. They
    /// count as missed.
    pub shed: u64,
    /// Work done for jobs that missed their deadlines, in nanoseconds at full speed.
    pub wasted_ns: u128,
    /// Work done for all jobs that count, in nanoseconds at full speed.
    pub work_ns: u128,
    /// Metrics per chain, in the order of the set; empty without chains.
    pub chains: Vec<ChainMetrics>,
    /// Number of preemptions: a running job lost its core and did not move to another one.
    pub preemptions: u64,
    /// Number of migrations: a job resumed on a core other than its last one.
    pub migrations: u64,
    /// Number of decisions.
    pub decisions: u64,
    /// Idle time, summed over all cores, in nanoseconds.
    pub idle_ns: u128,
    /// Dynamic energy. The unit is one core at full speed for one second; power grows with the cube of the speed.
    pub energy: f64,
    /// Number of runs added up.
    pub runs: u64,
    /// Number of runs in which every critical job met its deadline (every job, if none is critical).
    pub successful_runs: u64,
    /// Window counters of the tasks with an (m,k) constraint; empty after the run.
    window_counters: Vec<Option<WindowCounter>>,
    /// Whether the histograms stay empty.
    skips_histograms: bool,
}

impl Metrics {
    /// Creates empty metrics for a run of these tasks.
    pub fn new(tasks: &[Task]) -> Metrics {
        let is_firm = tasks.iter().any(|task| task.mk.is_some());
        let window_counters =
            if is_firm { tasks.iter().map(|task| task.mk.map(WindowCounter::new)).collect() } else { Vec::new() };
        Metrics { tasks: vec![TaskMetrics::default(); tasks.len()], window_counters, ..Metrics::default() }
    }

    /// Leaves the histograms of response times and lateness empty from now on. They take tens of kilobytes, which is
    /// most of a run's memory where many runs are under way at once.
    pub fn skip_histograms(&mut self) {
        self.skips_histograms = true;
    }

    /// Returns the scores of the measures of `goal`, in its order.
    pub fn scores(&self, goal: &Goal) -> Vec<f64> {
        goal.measures().iter().map(|measure| self.score(*measure)).collect()
    }

    /// Returns the score of a measure, 0 to 1; 1 if there is nothing to measure.
    pub fn score(&self, measure: Measure) -> f64 {
        self.measured(measure).unwrap_or(1.0)
    }

    /// Returns the score of a measure, 0 to 1; `None` if there is nothing to measure.
    pub fn measured(&self, measure: Measure) -> Option<f64> {
        let share = |count: Count| (count.released > 0).then(|| count.compliance());
        match measure {
            Measure::Critical(level) => share(*self.by_criticality.get(usize::from(level))?),
            Measure::Chains => share(self.chain_instances()),
            Measure::Mk => Some(self.windows()).filter(|windows| windows.all > 0).map(|windows| windows.kept()),
            Measure::Value => (self.value_possible > 0.0).then(|| self.value / self.value_possible),
            Measure::Met => share(self.jobs),
            Measure::WorstTask => self.worst_task().map(|(_, share)| share),
        }
    }

    /// Returns how many jobs, instances or windows each measure of `goal` is a share of; `None` for a measure that is no
    /// share of a number.
    pub fn units(&self, goal: &Goal) -> Vec<Option<f64>> {
        let units = |measure: &Measure| match measure {
            Measure::Critical(level) => self.by_criticality.get(usize::from(*level)).map(|count| count.released),
            Measure::Chains => Some(self.chain_instances().released),
            Measure::Mk => Some(self.windows().all),
            // A job of mean value counts as one.
            Measure::Value | Measure::Met => Some(self.jobs.released),
            Measure::WorstTask => None,
        };
        goal.measures().iter().map(|measure| units(measure).map(|count| count as f64)).collect()
    }

    /// Returns the instances of all chains with an end-to-end deadline.
    pub fn chain_instances(&self) -> Count {
        let mut instances = Count::default();
        self.chains.iter().filter(|chain| chain.has_deadline).for_each(|chain| instances.add(chain.instances));
        instances
    }

    /// Returns the (m,k) windows of all tasks together.
    pub fn windows(&self) -> Windows {
        let mut windows = Windows::default();
        self.tasks.iter().for_each(|task| windows.add(task.windows));
        windows
    }

    /// Returns the index of the task with the smallest share of jobs in time, the first of several, and that share;
    /// `None` if no job counts.
    pub fn worst_task(&self) -> Option<(usize, f64)> {
        let shares = self.tasks.iter().enumerate().filter(|(_, task)| task.jobs.released > 0);
        shares.map(|(at, task)| (at, task.jobs.compliance())).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the number of jobs that missed their deadline.
    pub fn missed(&self) -> u64 {
        self.jobs.released - self.jobs.met
    }

    /// Returns the jobs of all criticality levels above 0.
    pub fn critical(&self) -> Count {
        let mut critical = Count::default();
        self.by_criticality.iter().skip(1).for_each(|count| critical.add(*count));
        critical
    }

    /// Returns the share of critical jobs in time (PITMD in the paper); `None` if no job is critical.
    pub fn pitmd(&self) -> Option<f64> {
        let critical = self.critical();
        (critical.released > 0).then(|| critical.compliance())
    }

    /// Returns the mean response time of the completed jobs in nanoseconds (ART in the paper).
    pub fn art_completed(&self) -> Option<f64> {
        self.response_completed.mean()
    }

    /// Returns the mean time from release to end over all jobs, in nanoseconds.
    pub fn art_all(&self) -> Option<f64> {
        (self.jobs.released > 0).then(|| self.response_all_sum as f64 / self.jobs.released as f64)
    }

    /// Returns the share of the work done that was for jobs that missed their deadlines; `None` if none was done.
    pub fn wasted_share(&self) -> Option<f64> {
        (self.work_ns > 0).then(|| self.wasted_ns as f64 / self.work_ns as f64)
    }

    /// Adds a job that leaves at `now`. Its deadline must be within the horizon.
    #[inline]
    pub fn record(&mut self, job: &Job, end: End, now: Time) {
        let completed = end == End::Completed;
        let met = completed && now <= job.deadline;
        let count = Count { released: 1, met: u64::from(met) };
        let ended = if completed { now } else { now.max(job.deadline) };
        let response = ended.saturating_sub(job.release);
        self.jobs.add(count);
        self.level(job.criticality as usize).add(count);
        self.value_possible += job.value;
        self.work_ns += u128::from(job.executed.0);
        if met {
            self.value += job.value;
        } else {
            self.shed += u64::from(end != End::Unreleased && job.last_core.is_none());
            self.wasted_ns += u128::from(job.executed.0);
        }
        self.response_all_sum += u128::from(response.0);
        if !self.skips_histograms {
            self.lateness.record(ended.signed_sub(job.deadline));
        }
        let task = &mut self.tasks[job.task];
        task.jobs.add(count);
        if let Some(Some(counter)) = self.window_counters.get_mut(job.task.index()) {
            counter.left(job.number, met);
        }
        if completed {
            if !self.skips_histograms {
                self.response_completed.record(response.0 as i64);
            }
            task.completed += 1;
            task.response_sum += u128::from(response.0);
            task.response_max = task.response_max.max(response);
        }
    }

    /// Adds the time for which a job that leaves has waited for resources. Its deadline must be within the horizon.
    pub fn record_blocked(&mut self, job: &Job, blocked: Time) {
        let task = &mut self.tasks[job.task];
        task.blocked_sum += u128::from(blocked.0);
        task.blocked_max = task.blocked_max.max(blocked);
    }

    /// Returns the count of a criticality level.
    #[inline]
    fn level(&mut self, level: usize) -> &mut Count {
        if level >= self.by_criticality.len() {
            self.by_criticality.resize(level + 1, Count::default());
        }
        &mut self.by_criticality[level]
    }

    /// Completes the metrics at the end of a run. Whoever counts jobs with [`Metrics::record`] calls it once.
    pub fn finish_run(&mut self) {
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

    /// Adds the metrics of another run of the same set.
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
            task.blocked_sum += more.blocked_sum;
            task.blocked_max = task.blocked_max.max(more.blocked_max);
        }
        self.value += other.value;
        self.value_possible += other.value_possible;
        self.response_completed.merge(&other.response_completed);
        self.response_all_sum += other.response_all_sum;
        self.lateness.merge(&other.lateness);
        self.unreleased += other.unreleased;
        self.shed += other.shed;
        self.wasted_ns += other.wasted_ns;
        self.work_ns += other.work_ns;
        if self.chains.len() < other.chains.len() {
            self.chains.resize(other.chains.len(), ChainMetrics::default());
        }
        self.chains.iter_mut().zip(&other.chains).for_each(|(chain, more)| chain.merge(more));
        self.preemptions += other.preemptions;
        self.migrations += other.migrations;
        self.decisions += other.decisions;
        self.idle_ns += other.idle_ns;
        self.energy += other.energy;
        self.runs += other.runs;
        self.successful_runs += other.successful_runs;
    }
}
