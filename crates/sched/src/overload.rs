//! What the planning schedulers for overload have in common: the ready jobs as candidates in deadline order, some of them
//! accepted so that all accepted ones are on time, and the cores given out accordingly.
//!
//! "On time" is asked of an EDF list schedule of the remaining wcets on all cores: exact on one core, a good guess on several.
//! Jobs that are late by wcet are no candidates. Cores that the accepted jobs leave free take the others.

use temponet_task::{Assignment, Job, JobId, SystemView, Tie, Time};

/// A ready job that can still make it by its wcet.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub id: JobId,
    pub deadline: Time,
    pub tie: Tie,
    pub remaining: Time,
    pub value: f64,
    pub criticality: u8,
    pub accepted: bool,
}

impl Candidate {
    fn new(id: JobId, job: &Job) -> Candidate {
        Candidate {
            id,
            deadline: job.deadline,
            tie: job.tie(),
            remaining: job.remaining(),
            value: job.value,
            criticality: job.criticality,
            accepted: false,
        }
    }

    /// Value per remaining work.
    pub fn density(&self) -> f64 {
        self.value / self.remaining.0 as f64
    }
}

/// The ready jobs of one decision; keeps its memory between decisions.
#[derive(Default)]
pub(crate) struct Candidates {
    now: Time,
    /// In deadline order.
    pub jobs: Vec<Candidate>,
    hopeless: Vec<Candidate>,
    /// When each core is free in the list schedule.
    free_at: Vec<Time>,
    chosen: Vec<JobId>,
}

impl Candidates {
    /// Makes room for so many jobs.
    pub fn reserve(&mut self, jobs: usize) {
        self.jobs.reserve(jobs);
        self.hopeless.reserve(jobs);
        self.chosen.clear();
        self.chosen.reserve(jobs);
    }

    /// Takes the ready jobs of a decision, none accepted yet.
    pub fn gather(&mut self, view: &SystemView<'_>) {
        self.now = view.now;
        self.jobs.clear();
        self.hopeless.clear();
        self.reserve(view.active.len());
        for (id, job) in view.ready() {
            let side = if job.is_late_by_wcet(view.now) { &mut self.hopeless } else { &mut self.jobs };
            side.push(Candidate::new(id, job));
        }
        self.jobs.sort_unstable_by_key(|candidate| (candidate.deadline, candidate.tie));
        self.free_at.clear();
        self.free_at.resize(view.cores(), view.now);
    }

    /// Adds the candidate at `place` to the list schedule of those before it; whether it is on time.
    pub fn append(&mut self, place: usize) -> bool {
        let Candidate { remaining, deadline, .. } = self.jobs[place];
        add(&mut self.free_at, remaining) <= deadline
    }

    /// The first of the accepted candidates up to `last` that the list schedule makes late, and by how much.
    pub fn first_late(&mut self, last: usize) -> Option<(usize, Time)> {
        self.free_at.fill(self.now);
        for (place, candidate) in self.jobs[..=last].iter().enumerate().filter(|(_, candidate)| candidate.accepted) {
            let completion = add(&mut self.free_at, candidate.remaining);
            if completion > candidate.deadline {
                return Some((place, completion - candidate.deadline));
            }
        }
        None
    }

    /// Whether all accepted candidates are on time.
    pub fn all_on_time(&mut self) -> bool {
        self.jobs.is_empty() || self.first_late(self.jobs.len() - 1).is_none()
    }

    /// Accepts candidates one by one, the least by `order` first, each if all accepted ones are then on time.
    pub fn accept_in_order<K: PartialOrd>(&mut self, order: impl Fn(&Candidate) -> K) {
        let mut places: Vec<usize> = (0..self.jobs.len()).collect();
        places.sort_by(|a, b| {
            let key = |place: &usize| order(&self.jobs[*place]);
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b))
        });
        for place in places {
            self.jobs[place].accepted = true;
            self.jobs[place].accepted = self.all_on_time();
        }
    }

    /// Gives out the cores: on several, accepted jobs without slack first; accepted ones by deadline; then the others, the
    /// least by `spare` first.
    pub fn assign<K: PartialOrd>(
        &mut self,
        view: &SystemView<'_>,
        assignment: &mut Assignment,
        spare: impl Fn(&Candidate) -> K,
    ) {
        let (now, cores) = (self.now, view.cores());
        let is_urgent = |candidate: &Candidate| cores > 1 && now + candidate.remaining >= candidate.deadline;
        self.chosen.clear();
        for urgent in [true, false] {
            let accepted = self.jobs.iter().filter(|job| job.accepted && is_urgent(job) == urgent);
            self.chosen.extend(accepted.map(|candidate| candidate.id));
        }
        if self.chosen.len() < cores {
            self.hopeless.extend(self.jobs.iter().filter(|candidate| !candidate.accepted));
            self.hopeless.sort_unstable_by(|a, b| {
                let by_key = spare(a).partial_cmp(&spare(b)).unwrap_or(std::cmp::Ordering::Equal);
                by_key.then(a.tie.cmp(&b.tie))
            });
            self.chosen.extend(self.hopeless.iter().map(|candidate| candidate.id));
        }
        self.chosen.truncate(cores);
        assignment.place(view, &self.chosen);
    }
}

/// Puts a job on the core that is free first; when it completes.
fn add(free_at: &mut [Time], remaining: Time) -> Time {
    let mut first = 0;
    for core in 1..free_at.len() {
        if free_at[core] < free_at[first] {
            first = core;
        }
    }
    free_at[first] += remaining;
    free_at[first]
}
