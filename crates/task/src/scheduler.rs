//! The contract between a scheduler and whatever runs its decisions.

use crate::{JobId, Speed, System, SystemView, Time};

/// Decides which job runs on which core.
///
/// It is called at every *decision point*: after the releases, completions and deadlines of one instant, and at the
/// dates it asks for with [`Assignment::wake_at`]. It must not look at a clock other than [`SystemView::now`].
///
/// **Ties are part of the contract.** Equal keys go to the earlier release, then to the lower task index
/// ([`crate::Job::tie`]). On several cores the best jobs run, those that keep running stay on their core, and the rest
/// take the free cores in order ([`Assignment::place`]).
pub trait Scheduler: Send {
    /// Forgets everything and prepares for a system. Called once before each run.
    fn start(&mut self, system: &System) -> Result<(), NotApplicable>;

    /// Fills `assignment`, which comes with every core idle and at full speed.
    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment);

    /// The most ready jobs among which it decides in a time worth waiting for. Whoever looks at every ready job at every decision takes time
    /// that grows with the square of a backlog; whoever keeps them in order does not, and says so here.
    fn most_ready(&self) -> usize {
        MOST_LOOKED_AT
    }

    /// What it has counted about itself since `start`, by name, for reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The backlog that a scheduler can have looked at as often as it has jobs within a minute.
pub const MOST_LOOKED_AT: usize = 50_000;

/// Whatever leads to a scheduler is one.
macro_rules! is_scheduler {
    ($pointer:ty) => {
        impl<S: Scheduler + ?Sized> Scheduler for $pointer {
            fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
                (**self).start(system)
            }

            fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
                (**self).decide(view, assignment);
            }

            fn most_ready(&self) -> usize {
                (**self).most_ready()
            }

            fn counters(&self) -> Vec<(&'static str, u64)> {
                (**self).counters()
            }
        }
    };
}
is_scheduler!(Box<S>);
is_scheduler!(&mut S);

/// A scheduler that cannot run on this system at all, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotApplicable(pub String);

/// A decision: a job or nothing for each core, their speeds, jobs to give up, and when to ask again.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    cores: Vec<Option<JobId>>,
    speeds: Vec<Speed>,
    dropped: Vec<JobId>,
    wake: Option<Time>,
}

impl Assignment {
    /// Every one of `cores` cores idle at full speed, nothing dropped, no date asked for.
    pub fn reset(&mut self, cores: usize) {
        self.cores.fill(None);
        self.cores.resize(cores, None);
        self.speeds.clear();
        self.dropped.clear();
        self.wake = None;
    }

    /// Puts `job` on `core`.
    pub fn run(&mut self, core: usize, job: JobId) {
        self.cores[core] = Some(job);
    }

    /// Puts `chosen`, best first and at most as many as there are cores, on cores by the common rule: jobs that are
    /// running stay where they are, the rest take the free cores in order.
    pub fn place(&mut self, view: &SystemView<'_>, chosen: &[JobId]) {
        self.place_on(view, chosen, 0..view.cores());
    }

    /// As [`Assignment::place`], on a range of cores only. Jobs that are running outside it move in.
    pub fn place_on(&mut self, view: &SystemView<'_>, chosen: &[JobId], cores: std::ops::Range<usize>) {
        let own_core = |id: JobId| {
            let job = view.job(id);
            job.last_core.map(|core| core as usize).filter(|core| job.running && cores.contains(core))
        };
        let mut settled = 0;
        for id in chosen {
            if let Some(core) = own_core(*id) {
                self.cores[core] = Some(*id);
                settled += 1;
            }
        }
        if settled == chosen.len() {
            return;
        }
        let mut free = cores.start;
        for id in chosen {
            if own_core(*id).is_some() {
                continue;
            }
            while self.cores[free].is_some() {
                free += 1;
            }
            self.cores[free] = Some(*id);
        }
    }

    /// Runs `core` at `speed` until the next decision; one of [`System::speeds`].
    pub fn set_speed(&mut self, core: usize, speed: Speed) {
        if self.speeds.is_empty() {
            self.speeds.resize(self.cores.len(), Speed::FULL);
        }
        self.speeds[core] = speed;
    }

    /// Asks for a decision at `date` even if nothing happens. The earliest date asked for counts.
    pub fn wake_at(&mut self, date: Time) {
        self.wake = Some(self.wake.map_or(date, |earlier| earlier.min(date)));
    }

    /// Gives `job` up for good: it leaves the system and counts as missed.
    pub fn abandon(&mut self, job: JobId) {
        self.dropped.push(job);
    }

    /// The job for each core.
    pub fn cores(&self) -> &[Option<JobId>] {
        &self.cores
    }

    /// The speed of a core.
    pub fn speed(&self, core: usize) -> Speed {
        self.speeds.get(core).copied().unwrap_or(Speed::FULL)
    }

    /// Whether any core has a speed of its own.
    pub fn has_speeds(&self) -> bool {
        !self.speeds.is_empty()
    }

    /// The jobs given up.
    pub fn abandoned(&self) -> &[JobId] {
        &self.dropped
    }

    /// The date asked for.
    pub fn wake(&self) -> Option<Time> {
        self.wake
    }
}
