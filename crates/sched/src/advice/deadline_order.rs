//! Jobs in deadline order, computed once for all schedulers that plan in that order: the ready jobs, and the jobs that
//! periodic tasks will release before the last deadline of these.
//!
//! Ties: among equal deadlines ready jobs come before future ones, then the earlier release, then the lower task index.

use temponet_task::{Arrival, Job, JobId, SystemView, Task, Tie, Time};

/// Maximum number of future jobs per task.
pub(crate) const AHEAD: u64 = 3;

/// Factor by which one level of criticality multiplies the importance of a job.
const CRITICAL: f64 = 8.0;

/// The jobs of one decision. The buffers are reused between decisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadlineOrder {
    /// Deadlines of the jobs to sort, with their ids or places.
    keys: Vec<(Time, u32)>,
    ready: Vec<JobId>,
    coming: Vec<(Tie, PlanEntry)>,
    entries: Vec<PlanEntry>,
}

/// A job to plan: a ready job with its id, or a future job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanEntry {
    pub deadline: Time,
    pub id: Option<JobId>,
    pub task: u32,
    /// Least and greatest remaining work.
    pub least: Time,
    pub most: Time,
    pub importance: f64,
}

impl DeadlineOrder {
    /// Reserves memory for one ready job per task and for the future jobs.
    pub fn reserve(&mut self, tasks: usize) {
        let coming = AHEAD as usize * tasks;
        self.keys.clear();
        self.keys.reserve(coming.max(tasks));
        self.ready.clear();
        self.ready.reserve(tasks);
        self.coming.clear();
        self.coming.reserve(coming);
        self.entries.clear();
        self.entries.reserve(coming + tasks);
    }

    /// The ready jobs of the last decision, in deadline order.
    pub fn ready(&self) -> &[JobId] {
        &self.ready
    }

    /// The ready and future jobs in deadline order; see [`DeadlineOrder::look_ahead`].
    pub fn entries(&self) -> &[PlanEntry] {
        &self.entries
    }

    /// Takes the ready jobs of a decision.
    pub fn gather(&mut self, view: &SystemView<'_>) {
        self.keys.clear();
        self.keys.extend(view.ready().map(|(id, job)| (job.deadline, id.0)));
        self.put_in_order(view);
    }

    /// Like [`DeadlineOrder::gather`], but takes at most `most` jobs, those with the earliest deadlines. If there are
    /// more, impossible jobs are left out, provided that enough others remain for the cores: in such a backlog they
    /// could not run anyway.
    pub fn gather_earliest(&mut self, view: &SystemView<'_>, most: usize) {
        if view.active.len() <= most {
            return self.gather(view);
        }
        let possible = view.ready().filter(|(_, job)| !job.is_impossible(view.now));
        self.keys.clear();
        self.keys.extend(possible.map(|(id, job)| (job.deadline, id.0)));
        if self.keys.len() < view.cores() {
            self.keys.clear();
            self.keys.extend(view.ready().map(|(id, job)| (job.deadline, id.0)));
        }
        if self.keys.len() > most {
            self.keys.select_nth_unstable_by_key(most, |(deadline, id)| (*deadline, view.job(JobId(*id)).tie()));
            self.keys.truncate(most);
        }
        self.put_in_order(view);
    }

    fn put_in_order(&mut self, view: &SystemView<'_>) {
        sort(&mut self.keys, |id| view.job(JobId(id)).tie());
        self.ready.clear();
        self.ready.extend(self.keys.iter().map(|(_, id)| JobId(*id)));
    }

    /// Merges the future jobs into the ready ones that were gathered, up to the last deadline of these.
    pub fn look_ahead(&mut self, view: &SystemView<'_>) {
        let last = self.ready.last().map_or(Time::ZERO, |id| view.job(*id).deadline);
        self.coming.clear();
        for (index, task) in view.system.tasks.iter().enumerate() {
            let Arrival::Periodic { period } = task.arrival else { continue };
            let next = view.now.0.checked_sub(task.offset.0).map_or(0, |since| since / period.0 + 1);
            for number in next..next + AHEAD {
                let release = Time(task.offset.0.saturating_add(number.saturating_mul(period.0)));
                let deadline = Time(release.0.saturating_add(task.deadline.0));
                if deadline > last {
                    break;
                }
                self.coming.push(((release, index as u32, number), PlanEntry::coming(index as u32, task, deadline)));
            }
        }
        self.keys.clear();
        self.keys.extend(self.coming.iter().zip(0..).map(|((_, entry), place)| (entry.deadline, place)));
        sort(&mut self.keys, |place| self.coming[place as usize].0);
        let mut coming = self.keys.iter().map(|(_, place)| self.coming[*place as usize].1).peekable();
        self.entries.clear();
        for id in &self.ready {
            let job = view.job(*id);
            while let Some(entry) = coming.next_if(|entry| entry.deadline < job.deadline) {
                self.entries.push(entry);
            }
            self.entries.push(PlanEntry::ready(*id, job));
        }
        self.entries.extend(coming);
    }
}

/// Sorts by deadline. The tie-break is computed only for equal deadlines, which are rare.
fn sort(keys: &mut [(Time, u32)], tie: impl Fn(u32) -> Tie) {
    keys.sort_unstable_by_key(|(deadline, _)| *deadline);
    for same in keys.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        same.sort_unstable_by_key(|(_, place)| tie(*place));
    }
}

impl PlanEntry {
    fn ready(id: JobId, job: &Job) -> PlanEntry {
        let Job { deadline, task, .. } = *job;
        let importance = importance(job.value, job.criticality);
        PlanEntry { deadline, id: Some(id), task, least: job.least_remaining(), most: job.remaining(), importance }
    }

    fn coming(index: u32, task: &Task, deadline: Time) -> PlanEntry {
        let importance = importance(task.value, task.criticality);
        PlanEntry { deadline, id: None, task: index, least: task.bcet, most: task.wcet, importance }
    }

    /// Estimate of the work; `share` is 0 for the least work and 1 for the greatest.
    pub fn work(&self, share: f64) -> Time {
        Time(self.least.0 + (share * self.most.0.saturating_sub(self.least.0) as f64) as u64)
    }
}

fn importance(value: f64, criticality: u8) -> f64 {
    let critical = if criticality == 0 { 1.0 } else { CRITICAL.powi(i32::from(criticality)) };
    value.max(f64::MIN_POSITIVE) * critical
}
