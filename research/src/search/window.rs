//! The jobs whose order is searched, and orders of them.
//!
//! A window holds the ready jobs that can still be in time and the coming jobs of a drawn future, those that are due
//! first if there are too many. A job is known by its task and number, so that an order that was found once holds on as
//! time goes by. A job outside of the window gets the key that its deadline has among those in it, and jobs that cannot
//! be in time come last.

use temponet_sim::{Engine, Observer, SimError};
use temponet_task::{Assignment, Job, JobId, SystemView, TaskId, Tie, Time};

/// Largest number of jobs in a window.
const MOST: usize = 64;

/// Task and number of a job.
type Name = (TaskId, u64);

fn name(job: &Job) -> Name {
    (job.task, job.number)
}

/// The jobs of a window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Names in ascending order.
    names: Vec<Name>,
    /// Keys by which the job due first has the least.
    by_deadline: Vec<f64>,
    /// Deadlines in ascending order.
    deadlines: Vec<Time>,
}

/// Observer that collects released jobs.
struct Releases {
    jobs: Vec<(Time, Tie)>,
}

impl Observer for Releases {
    fn released(&mut self, job: &Job) {
        self.jobs.push((job.deadline, job.tie()));
    }
}

impl Window {
    /// Returns the window of a decision, with the coming jobs of `future`.
    pub fn of(view: &SystemView<'_>, mut future: Engine, idle: &mut Assignment) -> Result<Window, SimError> {
        let ready = view.ready().filter(|(_, job)| !job.is_impossible(view.now));
        let mut releases = Releases { jobs: ready.map(|(_, job)| (job.deadline, job.tie())).collect() };
        loop {
            idle.reset(view.cores());
            future.apply(idle, &mut releases)?;
            if releases.jobs.len() > 2 * MOST.max(view.active.len()) || !future.advance(&mut releases) {
                break;
            }
        }
        let mut jobs = releases.jobs;
        jobs.sort_unstable();
        jobs.truncate(MOST);
        let count = jobs.len().max(1) as f64;
        let deadlines = jobs.iter().map(|(deadline, _)| *deadline).collect();
        let mut keyed: Vec<(Name, f64)> = jobs
            .iter()
            .enumerate()
            .map(|(place, (_, (_, task, number)))| ((*task, *number), place as f64 / count))
            .collect();
        keyed.sort_unstable_by_key(|(name, _)| *name);
        let (names, by_deadline) = keyed.into_iter().unzip();
        Ok(Window { names, by_deadline, deadlines })
    }

    /// Returns the number of jobs.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the date until which a future has to last to show what becomes of all jobs; `None` if there are fewer
    /// than a window can hold, and the future is as long as it may be.
    pub fn end(&self) -> Option<Time> {
        self.deadlines.last().copied().filter(|_| self.len() == MOST)
    }

    /// Returns the keys by which the job due first comes first.
    pub fn by_deadline(&self) -> Vec<f64> {
        self.by_deadline.clone()
    }

    /// Returns the keys of this window that an order of an earlier one says; jobs that it does not have get their key
    /// by deadline.
    pub fn carried(&self, earlier: &Window, keys: &[f64]) -> Vec<f64> {
        let key = |(name, by_deadline): (&Name, &f64)| earlier.key(*name, keys).unwrap_or(*by_deadline);
        self.names.iter().zip(&self.by_deadline).map(key).collect()
    }

    fn key(&self, name: Name, keys: &[f64]) -> Option<f64> {
        self.names.binary_search(&name).ok().map(|at| keys[at])
    }

    /// Puts those jobs on the cores that come first by the keys. `scratch` is reused from call to call.
    pub fn place(&self, view: &SystemView<'_>, keys: &[f64], scratch: &mut Ranked, assignment: &mut Assignment) {
        let by_deadline = |job: &Job| {
            let before = self.deadlines.partition_point(|deadline| *deadline <= job.deadline);
            before as f64 / self.len().max(1) as f64
        };
        scratch.place(view, assignment, |job| self.key(name(job), keys).unwrap_or_else(|| by_deadline(job)));
    }
}

/// Ready jobs with what decides their rank.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    ranks: Vec<(Rank, JobId)>,
    chosen: Vec<JobId>,
}

/// What decides the rank of a job: whether it cannot be in time, its key, its deadline and the tie-break.
type Rank = (bool, f64, Time, Tie);

impl Ranked {
    /// Puts the jobs with the least keys on the cores. Jobs with the same key are in order of their deadlines; jobs
    /// that cannot be in time come last.
    pub fn place(&mut self, view: &SystemView<'_>, assignment: &mut Assignment, mut key: impl FnMut(&Job) -> f64) {
        self.ranks.clear();
        self.ranks.extend(view.active.iter().map(|id| {
            let job = view.job(*id);
            ((job.is_impossible(view.now), key(job), job.deadline, job.tie()), *id)
        }));
        let before = |(a, _): &(Rank, JobId), (b, _): &(Rank, JobId)| {
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then_with(|| (a.2, a.3).cmp(&(b.2, b.3)))
        };
        let most = view.system.most_offered();
        if self.ranks.len() > most {
            self.ranks.select_nth_unstable_by(most - 1, before);
            self.ranks.truncate(most);
        }
        self.ranks.sort_unstable_by(before);
        self.chosen.clear();
        self.chosen.extend(self.ranks.iter().map(|(_, id)| *id));
        assignment.place(view, &self.chosen);
    }
}
