//! Recorded traces, split in time: the first part is learned on, the next one validates, and the last one is for the
//! verdict. A trace has only one past and one future, so no job of an earlier part is in a later one.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Arrival, ListedJob, TaskSet, Time};

/// Part of a trace.
#[derive(Clone, Debug)]
pub struct JobTrace {
    set: Arc<TaskSet>,
    /// Releases of all jobs, in ascending order.
    releases: Vec<Time>,
}

/// Parts of a trace; see [`JobTrace::split`].
#[derive(Clone, Debug)]
pub struct TraceSplit {
    /// Part to learn on.
    pub training: Arc<JobTrace>,
    /// Part to validate on.
    pub validation: Arc<JobTrace>,
    /// Part for the verdict.
    pub verdict: Arc<JobTrace>,
}

/// Shares of the jobs, in the order of their releases, at which the training and the validation part end.
pub const TRACE_SHARES: (f64, f64) = (0.6, 0.8);

/// Least number of jobs of a trace that can be split; the parts of a shorter one would say nothing.
pub const MIN_TRACE_JOBS: usize = 50;

impl JobTrace {
    /// Splits a set all of whose jobs are listed. Returns `None` for any other set, and for a trace that is too short.
    pub fn split(set: &TaskSet) -> Option<TraceSplit> {
        let is_trace = set.tasks().iter().all(|task| matches!(task.arrival, Arrival::Listed(_)));
        let whole = JobTrace::of(set.clone());
        if !is_trace || whole.releases.len() < MIN_TRACE_JOBS {
            return None;
        }
        let cut = |share: f64| whole.releases[(whole.releases.len() as f64 * share) as usize];
        let (first, second) = (cut(TRACE_SHARES.0), cut(TRACE_SHARES.1));
        let part = |from: Time, to: Time| Arc::new(JobTrace::of(whole.between(from, to)));
        let parts = TraceSplit {
            training: part(Time::ZERO, first),
            validation: part(first, second),
            verdict: part(second, Time::NEVER),
        };
        let is_whole =
            [&parts.training, &parts.validation, &parts.verdict].iter().all(|part| !part.releases.is_empty());
        is_whole.then_some(parts)
    }

    fn of(set: TaskSet) -> JobTrace {
        let jobs = |task: &temponet_task::Task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.iter().map(|job| job.release).collect::<Vec<Time>>(),
            _ => Vec::new(),
        };
        let mut releases: Vec<Time> = set.tasks().iter().flat_map(jobs).collect();
        releases.sort_unstable();
        JobTrace { set: Arc::new(set), releases }
    }

    /// Returns the jobs released in `from..to`, shifted so that the first one is released at time zero. Everything else
    /// stays.
    fn between(&self, from: Time, to: Time) -> TaskSet {
        let begin = self.releases.iter().copied().find(|release| *release >= from).unwrap_or(from);
        let mut set = (*self.set).clone();
        for task in set.system.tasks_mut().iter_mut() {
            if let Arrival::Listed(jobs) = &mut task.arrival {
                let own = jobs.iter().filter(|job| (from..to).contains(&job.release));
                let shifted =
                    |job: &ListedJob| job.with_release(job.release - begin).with_deadline(job.deadline - begin);
                *jobs = own.map(shifted).collect();
            }
        }
        set
    }

    /// Returns the part as a task set.
    pub fn set(&self) -> &Arc<TaskSet> {
        &self.set
    }

    /// Returns the number of jobs.
    pub fn len(&self) -> usize {
        self.releases.len()
    }

    /// Whether the part has no jobs.
    pub fn is_empty(&self) -> bool {
        self.releases.is_empty()
    }

    /// Returns the deadline of the job that is due last.
    pub fn end(&self) -> Time {
        let due = |task: &temponet_task::Task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.iter().map(|job| job.deadline).max(),
            _ => None,
        };
        self.set.tasks().iter().filter_map(due).max().unwrap_or_default()
    }

    /// Returns the part from one of its releases on. The seed draws the release among the first three quarters, so that
    /// episodes begin differently.
    pub fn window(&self, seed: u64) -> TaskSet {
        let place = Pcg64::seed_from_u64(seed).random_range(0..=self.releases.len() * 3 / 4);
        self.between(self.releases[place.min(self.releases.len() - 1)], Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Task;

    #[test]
    fn a_trace_is_not_judged_on_the_jobs_it_was_learned_on() {
        let job = |place: u64| {
            let release = Time(1_000 + 10 * place);
            // The execution time identifies the job.
            let (execution, wcet) = (Time(place + 1), Time(500));
            ListedJob::new(release, release + Time(600), execution).with_wcet(wcet).with_bcet(Time(1))
        };
        let task = |name: &str, from: u64, to: u64| {
            Task::periodic(name, Time(600), Time(500)).with_arrival(Arrival::Listed((from..to).map(job).collect()))
        };
        let set = TaskSet::new("trace", vec![task("a", 0, 70), task("b", 70, 100)], 1);
        let parts = JobTrace::split(&set).unwrap();
        let executions = |set: &TaskSet| -> Vec<u64> {
            let jobs = |task: &Task| match &task.arrival {
                Arrival::Listed(jobs) => jobs.to_vec(),
                _ => vec![],
            };
            set.tasks().iter().flat_map(jobs).map(|job| job.execution.0).collect()
        };
        assert_eq!(executions(parts.training.set()), (1..=60).collect::<Vec<u64>>());
        assert_eq!(executions(parts.validation.set()), (61..=80).collect::<Vec<u64>>());
        assert_eq!(executions(parts.verdict.set()), (81..=100).collect::<Vec<u64>>());
        assert_eq!((parts.verdict.releases[0], parts.verdict.end()), (Time::ZERO, Time(790)));
        let windows: Vec<usize> = (0..20).map(|seed| executions(&parts.training.window(seed)).len()).collect();
        assert!(windows.iter().all(|jobs| (15..=60).contains(jobs)) && windows.iter().any(|jobs| *jobs != windows[0]));
        let recurring = set.with_tasks(vec![Task::periodic("p", Time(10), Time(1))]);
        assert!(JobTrace::split(&recurring).is_none());
    }
}
