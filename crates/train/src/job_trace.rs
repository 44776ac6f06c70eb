//! A recorded trace has one past and one future: what is learned on comes first, what progress is judged on after it, and what the verdict is for last.
//! Jobs that were learned on are in no later part.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Arrival, ListedJob, TaskSet, Time};

/// A part of a trace.
#[derive(Clone, Debug)]
pub struct JobTrace {
    set: Arc<TaskSet>,
    /// Of all its jobs, sorted.
    releases: Vec<Time>,
}

/// The parts of a trace; see [`JobTrace::split`].
#[derive(Clone, Debug)]
pub struct TraceSplit {
    /// To learn on.
    pub training: Arc<JobTrace>,
    /// To judge progress on.
    pub validation: Arc<JobTrace>,
    /// For the verdict.
    pub verdict: Arc<JobTrace>,
}

/// Shares of the jobs, by release, up to which a trace is learned on and validated on.
pub const TRACE_SHARES: (f64, f64) = (0.6, 0.8);

/// A trace of fewer jobs is not cut: its parts would say nothing.
pub const MIN_TRACE_JOBS: usize = 50;

impl JobTrace {
    /// The parts of a set all of whose jobs are listed; none for another set, or one that is too short.
    pub fn split(set: &TaskSet) -> Option<TraceSplit> {
        let is_trace = set.tasks.iter().all(|task| matches!(task.arrival, Arrival::Listed(_)));
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
        let mut releases: Vec<Time> = set.tasks.iter().flat_map(jobs).collect();
        releases.sort_unstable();
        JobTrace { set: Arc::new(set), releases }
    }

    /// The jobs released from one date on and before another, the first of them at once. Tasks keep what is said of them.
    fn between(&self, from: Time, to: Time) -> TaskSet {
        let begin = self.releases.iter().copied().find(|release| *release >= from).unwrap_or(from);
        let mut set = (*self.set).clone();
        for task in &mut set.tasks {
            if let Arrival::Listed(jobs) = &mut task.arrival {
                let own = jobs.iter().filter(|job| (from..to).contains(&job.release));
                let shifted = |job: &ListedJob| ListedJob {
                    release: job.release - begin,
                    deadline: job.deadline - begin,
                    ..*job
                };
                *jobs = own.map(shifted).collect();
            }
        }
        set
    }

    /// All of it.
    pub fn set(&self) -> &Arc<TaskSet> {
        &self.set
    }

    /// Jobs.
    pub fn len(&self) -> usize {
        self.releases.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.releases.is_empty()
    }

    /// When its last job is due.
    pub fn end(&self) -> Time {
        let due = |task: &temponet_task::Task| match &task.arrival {
            Arrival::Listed(jobs) => jobs.iter().map(|job| job.deadline).max(),
            _ => None,
        };
        self.set.tasks.iter().filter_map(due).max().unwrap_or_default()
    }

    /// What comes from one of its releases on, in its first three quarters, drawn by a seed: so that episodes do not all begin alike.
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
            // The execution time tells which one it is.
            let (execution, wcet) = (Time(place + 1), Time(500));
            ListedJob {
                release,
                deadline: release + Time(600),
                execution,
                wcet,
                bcet: Time(1),
                criticality: 0,
                value: 1.0,
            }
        };
        let task = |name: &str, from: u64, to: u64| Task {
            arrival: Arrival::Listed((from..to).map(job).collect()),
            ..Task::periodic(name, Time(600), Time(500))
        };
        let set = TaskSet::new("trace", vec![task("a", 0, 70), task("b", 70, 100)], 1);
        let parts = JobTrace::split(&set).unwrap();
        let executions = |set: &TaskSet| -> Vec<u64> {
            let jobs = |task: &Task| match &task.arrival {
                Arrival::Listed(jobs) => jobs.to_vec(),
                _ => vec![],
            };
            set.tasks.iter().flat_map(jobs).map(|job| job.execution.0).collect()
        };
        assert_eq!(executions(parts.training.set()), (1..=60).collect::<Vec<u64>>());
        assert_eq!(executions(parts.validation.set()), (61..=80).collect::<Vec<u64>>());
        assert_eq!(executions(parts.verdict.set()), (81..=100).collect::<Vec<u64>>());
        assert_eq!((parts.verdict.releases[0], parts.verdict.end()), (Time::ZERO, Time(790)));
        let windows: Vec<usize> = (0..20).map(|seed| executions(&parts.training.window(seed)).len()).collect();
        assert!(windows.iter().all(|jobs| (15..=60).contains(jobs)) && windows.iter().any(|jobs| *jobs != windows[0]));
        let recurring = TaskSet { tasks: vec![Task::periodic("p", Time(10), Time(1))], ..set };
        assert!(JobTrace::split(&recurring).is_none());
    }
}
