//! Teachers to learn from: any scheduler of the catalog, or the clairvoyant optimum.

use std::collections::HashSet;

use temponet_oracle::{OracleJob, STEPS_PER_SECOND, optimum};
use temponet_sched::{SpecError, build};
use temponet_sim::Workload;
use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, TaskId, TaskSet, Time};

/// Name of the clairvoyant optimum as a teacher.
pub const OPTIMUM: &str = "optimum";

/// Processor time in seconds, on one core, for the search of the optimum of an episode.
const OPTIMUM_SECONDS: f64 = 0.5;

/// Makes the teacher of an episode.
pub fn teacher(name: &str, set: &TaskSet, seed: u64, horizon: Time) -> Result<Box<dyn Scheduler>, SpecError> {
    if name == OPTIMUM { Ok(Box::new(Hindsight::new(set, seed, horizon))) } else { build(name) }
}

/// Returns why there is no teacher of this name, or `None`.
pub(crate) fn unknown(name: &str) -> Option<String> {
    if name == OPTIMUM { None } else { build(name).err().map(|error| format!("teacher: {error}")) }
}

/// Returns why a teacher cannot schedule a set, or `None`.
pub fn cannot_teach(name: &str, set: &TaskSet) -> Option<NotApplicable> {
    if name == OPTIMUM { None } else { build(name).ok()?.start(&set.system).err() }
}

/// Scheduler that knows the future: it runs the jobs that the clairvoyant optimum keeps, by deadline, before all
/// others.
struct Hindsight {
    kept: HashSet<(TaskId, u64)>,
}

impl Hindsight {
    fn new(set: &TaskSet, seed: u64, horizon: Time) -> Hindsight {
        let releases = Workload::counted(set, seed, horizon);
        let weight = if set.has_values() { |value: f64| value } else { |_| 1.0 };
        let job = |release: &temponet_sim::ReleasedJob| OracleJob {
            release: release.time,
            deadline: release.deadline,
            execution: release.execution,
            weight: weight(release.value).max(f64::MIN_POSITIVE),
        };
        let jobs: Vec<OracleJob> = releases.iter().map(job).collect();
        let chosen = optimum(&jobs, set.cores(), (OPTIMUM_SECONDS * STEPS_PER_SECOND) as u64).chosen;
        let kept = releases.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        Hindsight { kept: kept.map(|(release, _)| (release.task, release.number)).collect() }
    }
}

impl Scheduler for Hindsight {
    fn start(&mut self, _system: &System) -> Result<(), NotApplicable> {
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        let mut jobs: Vec<JobId> = view.active.to_vec();
        jobs.sort_unstable_by_key(|id| {
            let job = view.job(*id);
            let is_kept =
                self.kept.contains(&(view.system.whole(job.task), job.number)) && !job.is_impossible(view.now);
            (!is_kept, job.is_impossible(view.now), job.deadline, job.tie())
        });
        jobs.truncate(view.cores());
        assignment.place(view, &jobs);
    }
}
