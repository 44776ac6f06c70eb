//! The contract between a scheduler and whatever runs its decisions.

use crate::placement::Matching;
use crate::{CoreId, JobId, Speed, System, SystemView, Time};
use alloc::{string::String, vec::Vec};

/// Decides which job runs on which core.
///
/// A scheduler is called at every *decision point*: after the releases, completions and deadlines of an instant, and at
/// the times that it asks for with [`Assignment::wake_at`]. It must not read any clock other than [`SystemView::now`].
///
/// **Ties are part of the contract.** Among jobs with equal keys, the one released earlier goes first, then the one
/// with the lower task index, then the one with the lower job number ([`crate::Job::tie`]). On several cores the best
/// jobs run: those already running stay on their core, and the others take the free cores in ascending order
/// ([`Assignment::place`]).
///
/// **A held job keeps its core.** A job whose task limits preemption ([`crate::Preemption`]) holds its core between its
/// preemption points ([`crate::Job::held`]). A decision that takes it off its core, or puts it on another one, is
/// illegal. [`Assignment::place`] keeps held jobs by itself, so a scheduler that ranks jobs becomes its non-preemptive
/// version without a rule of its own. A scheduler that cuts jobs at times of its own refuses such a system in
/// [`Scheduler::start`].
///
/// **Cores may differ.** A core may have a speed of its own, and a task may be bound to some of the cores
/// ([`System::machine`]). A decision that puts a job on a core that its task may not use is illegal.
/// [`Assignment::place`] minds both: a scheduler passes it the jobs in its order, as many as [`System::most_offered`]
/// says. A scheduler whose rule makes no sense on such a machine refuses it in [`Scheduler::start`].
///
/// **Jobs may wait for each other.** A job in need of a resource that another one holds cannot run
/// ([`SystemView::is_blocked`]), and a decision that puts it on a core is illegal. [`Assignment::place`] minds that,
/// too: it runs the job that the chosen one waits for, as far as the protocol of the set says so. A scheduler that has
/// to know which job will run refuses such a system in [`Scheduler::start`].
pub trait Scheduler: Send {
    /// Resets the scheduler and prepares it for `system`. Called once before each run.
    fn start(&mut self, system: &System) -> Result<(), NotApplicable>;

    /// Writes a decision into `assignment`, in which every core is initially idle and at full speed.
    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment);

    /// Takes note of the events of a decision that someone else has taken, such as a shield that leaves no choice. What
    /// it writes into `scratch`, which is empty as for [`Scheduler::decide`], is ignored.
    ///
    /// The default decides. A scheduler whose decisions are expensive and that keeps no state of past events does
    /// nothing here.
    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        self.decide(view, scratch);
    }

    /// Returns the number of ready jobs up to which a run finishes in reasonable time. Default: [`MOST_LOOKED_AT`].
    ///
    /// The time to work off a backlog grows with its square for a scheduler that looks at every ready job at every
    /// decision. A scheduler that keeps the jobs sorted returns a larger number here.
    fn most_ready(&self) -> usize {
        MOST_LOOKED_AT
    }

    /// Returns the counters that the scheduler has kept since `start`, by name, for reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Largest backlog for which a scheduler can look at every ready job once per job within a minute.
pub const MOST_LOOKED_AT: usize = 50_000;

/// Reason why a scheduler cannot run on a system at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotApplicable(pub String);

/// A decision: the job for each core, the speed of each core, the jobs to abandon, and the time of the next wake-up.
#[derive(Debug, Default)]
pub struct Assignment {
    cores: Vec<Option<JobId>>,
    speeds: Vec<Speed>,
    dropped: Vec<JobId>,
    wake: Option<Time>,
    /// Jobs that would have had a core, had another job not held a resource.
    passed_over: Vec<JobId>,
    /// Scratch memory of placement among jobs that share resources.
    pub(crate) runners: Vec<JobId>,
    /// Scratch memory of placement.
    pub(crate) matching: Matching,
}

impl Clone for Assignment {
    fn clone(&self) -> Assignment {
        let Assignment { cores, speeds, dropped, wake, passed_over, runners: _, matching: _ } = self;
        Assignment {
            cores: cores.clone(),
            speeds: speeds.clone(),
            dropped: dropped.clone(),
            wake: *wake,
            passed_over: passed_over.clone(),
            runners: Vec::new(),
            matching: Matching::default(),
        }
    }

    /// Allocates nothing if the assignment has held as many cores and jobs before.
    fn clone_from(&mut self, source: &Assignment) {
        self.cores.clone_from(&source.cores);
        self.speeds.clone_from(&source.speeds);
        self.dropped.clone_from(&source.dropped);
        self.wake = source.wake;
        self.passed_over.clone_from(&source.passed_over);
    }
}

impl Assignment {
    /// Makes all `cores` cores idle and at full speed, with no abandoned jobs and no wake-up.
    pub fn reset(&mut self, cores: usize) {
        self.cores.fill(None);
        self.cores.resize(cores, None);
        self.speeds.clear();
        self.dropped.clear();
        self.wake = None;
        self.passed_over.clear();
    }

    /// Puts `job` on `core`.
    ///
    /// # Panics
    ///
    /// If there is no such core.
    pub fn run(&mut self, core: CoreId, job: JobId) {
        self.cores[core] = Some(job);
    }

    /// Puts the jobs in `chosen` on cores by the common rule: jobs that hold their cores stay, chosen or not; running
    /// jobs stay where they are; and the others take the free cores in ascending order. `chosen` is sorted best first
    /// and has at most as many jobs as [`System::most_offered`] says. Where jobs are held, the best of the others take
    /// the cores that are left.
    ///
    /// Where cores differ in speed or tasks are bound to cores, the best jobs that can have cores together run, and in
    /// turn each gets the highest speed that leaves the others a core. Running jobs stay as far as these speeds allow,
    /// and the others take the lowest cores.
    ///
    /// Where tasks share resources, a job that waits for another one is replaced by the job that it waits for, if the
    /// protocol says so, and is passed over otherwise; see [`crate::Protocol`].
    ///
    /// # Panics
    ///
    /// If there are more jobs than cores on a machine whose cores are alike for every task, or if an id is not in the
    /// view.
    pub fn place(&mut self, view: &SystemView<'_>, chosen: &[JobId]) {
        self.place_on(view, chosen, 0..view.cores());
    }

    /// Like [`Assignment::place`], on a range of cores only. Jobs that run outside the range move into it, unless they
    /// are held there.
    ///
    /// # Panics
    ///
    /// As [`Assignment::place`].
    pub fn place_on(&mut self, view: &SystemView<'_>, chosen: &[JobId], cores: core::ops::Range<usize>) {
        if let Some(locks) = view.locks {
            return self.place_sharing(view, locks, chosen, cores);
        }
        self.place_independent(view, chosen, cores);
    }

    /// Like [`Assignment::place_on`], for jobs that can all run.
    pub(crate) fn place_independent(
        &mut self,
        view: &SystemView<'_>,
        chosen: &[JobId],
        cores: core::ops::Range<usize>,
    ) {
        if !view.system.machine().is_plain() {
            return self.place_by_core(view, chosen, cores);
        }
        let own_core = |id: JobId| {
            let job = view.job(id);
            job.last_core.filter(|core| job.running && cores.contains(&core.index()))
        };
        let is_held = || {
            let on_core = cores.clone().any(|core| view.is_held(CoreId::new(core)));
            // A chosen job may be held outside of the range, where the shield has put it.
            on_core || chosen.iter().any(|id| view.job(*id).held)
        };
        if view.system.is_limited() && is_held() {
            return self.place_beside_held(view, chosen, cores.clone(), own_core);
        }
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

    /// Leaves the jobs that hold a core of the range where they are, and returns their number. Whatever was put on such
    /// a core is replaced.
    pub fn keep_held(&mut self, view: &SystemView<'_>, cores: core::ops::Range<usize>) -> usize {
        let mut held = 0;
        for core in cores.map(CoreId::new) {
            if let Some(id) = view.held_on(core) {
                self.cores[core] = Some(id);
                held += 1;
            }
        }
        held
    }

    /// Leaves held jobs where they are, and puts the best of the other chosen jobs on the cores of the range that are
    /// left.
    #[cold]
    #[inline(never)]
    fn place_beside_held(
        &mut self,
        view: &SystemView<'_>,
        chosen: &[JobId],
        cores: core::ops::Range<usize>,
        own_core: impl Fn(JobId) -> Option<CoreId>,
    ) {
        let room = cores.len() - self.keep_held(view, cores.clone());
        let best = || chosen.iter().copied().filter(|id| !view.job(*id).held).take(room);
        for id in best() {
            if let Some(core) = own_core(id) {
                self.cores[core] = Some(id);
            }
        }
        let mut free = cores.start;
        for id in best().filter(|id| own_core(*id).is_none()) {
            while self.cores[free].is_some() {
                free += 1;
            }
            self.cores[free] = Some(id);
        }
    }

    /// Runs `core` at `speed`, which must be one of [`System::speeds`], until the next decision.
    ///
    /// # Panics
    ///
    /// If there is no such core.
    pub fn set_speed(&mut self, core: CoreId, speed: Speed) {
        if self.speeds.is_empty() {
            self.speeds.resize(self.cores.len(), Speed::FULL);
        }
        self.speeds[core] = speed;
    }

    /// Asks for a decision at `date` even if no event occurs. Of several dates, the earliest counts.
    pub fn wake_at(&mut self, date: Time) {
        self.wake = Some(self.wake.map_or(date, |earlier| earlier.min(date)));
    }

    /// Moves the wake-up, if one was asked for, to `date` if it is earlier.
    pub fn wake_no_sooner_than(&mut self, date: Time) {
        self.wake = self.wake.map(|earlier| earlier.max(date));
    }

    /// Abandons `job`: it leaves the system for good and counts as a miss. A held job leaves at its next preemption
    /// point or at its completion, which [`crate::Event::Aborted`] or [`crate::Event::Completed`] reports; until then
    /// it stays on its core.
    pub fn abandon(&mut self, job: JobId) {
        self.dropped.push(job);
    }

    /// Takes back that jobs are abandoned.
    pub fn keep_all(&mut self) {
        self.dropped.clear();
    }

    /// Returns the job for each core; `None` is idle.
    pub fn cores(&self) -> &[Option<JobId>] {
        &self.cores
    }

    /// Returns the jobs that have cores, those on faster cores first, then in the order of their cores.
    pub fn jobs_in_order(&self, view: &SystemView<'_>) -> Vec<JobId> {
        let mut cores: Vec<CoreId> = CoreId::all(self.cores.len()).filter(|core| self.cores[*core].is_some()).collect();
        if !view.system.machine().is_plain() {
            cores.sort_by_key(|core| core::cmp::Reverse(view.system.machine().speed(*core)));
        }
        cores.into_iter().filter_map(|core| self.cores[core]).collect()
    }

    /// Returns whether a job has a core.
    pub fn runs(&self, job: JobId) -> bool {
        self.cores.contains(&Some(job))
    }

    /// Returns the speed of a core.
    pub fn speed(&self, core: CoreId) -> Speed {
        self.speeds.get(core.index()).copied().unwrap_or(Speed::FULL)
    }

    /// Returns whether a speed was set for any core.
    pub fn has_speeds(&self) -> bool {
        !self.speeds.is_empty()
    }

    /// Returns the jobs that would have had a core, had another job not held a resource; see [`Assignment::place`].
    pub fn passed_over(&self) -> &[JobId] {
        &self.passed_over
    }

    /// Notes that a job would have had a core, had another job not held a resource.
    pub(crate) fn pass_over(&mut self, job: JobId) {
        self.passed_over.push(job);
    }

    /// Returns the abandoned jobs.
    pub fn abandoned(&self) -> &[JobId] {
        &self.dropped
    }

    /// Returns the time of the wake-up, if one was asked for.
    pub fn wake(&self) -> Option<Time> {
        self.wake
    }
}
