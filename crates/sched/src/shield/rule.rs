//! The rule that keeps the guarantee: every core may run anything as long as its guaranteed tasks have slack.
//!
//! Let a core's *first* job be the ready guaranteed job with the earliest deadline among those that the core keeps time
//! for. While the first job runs, on whichever core, nothing is lost. While another guaranteed job of the core runs,
//! all deadlines before that of the other job lose time; while none runs, all deadlines do. The slack over those
//! deadlines is how long this may last. A core without slack runs its first job.

use temponet_task::{Assignment, CoreId, Job, JobId, System, SystemView, TaskId, Tie, Time};

use super::arrivals::Arrivals;
use super::costs::{Dispatching, is_on};
use super::guarantee::{Guarantee, Reserved};
use super::interrupts;
use super::queue::Queue;
use super::slack::{Claims, EFFORT, Slack};
use super::stretches::longest_region;

/// The state of a system and of its guarantee at a decision.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    pub view: &'a SystemView<'a>,
    pub guarantee: &'a Guarantee,
    pub arrivals: &'a Arrivals,
}

impl<'a> Now<'a> {
    /// Returns a job and what is kept for its task, if the job is guaranteed.
    pub fn guaranteed(&self, id: JobId) -> Option<(&'a Job, &'a Reserved)> {
        let job = self.view.job(id);
        Some((job, self.guarantee.of(job).filter(|_| self.arrivals.is_guaranteed(id))?))
    }

    /// Whether the job is guaranteed by this core.
    pub fn is_own(&self, core: CoreId, id: JobId) -> bool {
        self.guaranteed(id).is_some_and(|(_, reserved)| reserved.core == core)
    }
}

/// Applies the rule to proposed assignments. Its buffers are reused from decision to decision.
#[derive(Debug, Default)]
pub(super) struct Rule {
    pub(super) dispatching: Dispatching,
    /// Tasks of each core.
    tasks: Vec<Vec<TaskId>>,
    /// Least slack of each core that is used: a small part of the shortest deadline of its tasks. Slack can come back
    /// with time alone, and without a limit a nanosecond of it could be used over and over.
    pub(super) quantum: Vec<Time>,
    /// First job of each core and the deadline of the next one.
    pub(super) first: Vec<Option<First>>,
    /// For each core, the earliest of its guaranteed jobs that run.
    running: Vec<Option<Rank>>,
    /// For each task, the longest work for which the proof lets its jobs hold a core.
    pub(super) longest: Vec<Time>,
    /// Job that each core is pinned to.
    pub(super) pins: Vec<Option<JobId>>,
    /// Jobs that wait for resources.
    pub(super) queue: Queue,
    /// Job of each core.
    pub(super) plan: Vec<Option<JobId>>,
    /// Whether each core has to run its first job at this decision.
    is_forced: Vec<bool>,
    /// Date at which each core runs out of slack, as far as the last decision told; never if it did not tell.
    exhausted: Vec<Time>,
    pub(super) claims: Claims,
}

/// Order of the guaranteed jobs of a core.
type Rank = (Time, Tie, JobId);

/// Guaranteed job of a core with the earliest deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub rank: Rank,
    /// Deadline of the second job in the order; never if there is none.
    second: Time,
}

/// Whether a core may run what the plan gives it instead of its first guaranteed job.
pub(super) enum Verdict {
    /// Yes, for this long from now; without a limit if there is none.
    Safe(Option<Time>),
    /// No: the core has to run its first guaranteed job.
    Unsafe,
    /// Undecided, because the computation was cut off.
    Unknown,
}

/// Outcome of the rule for all cores at one decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Applied {
    /// Whether the plan differs from the proposal.
    pub overrides: bool,
    /// Whether a core runs another job while its first guaranteed job waits.
    pub deviates: bool,
    /// Whether a core has to run its first guaranteed job because the verdict on another one is undecided.
    pub is_unknown: bool,
}

/// Greatest number of decisions within the shortest relative deadline that are made only because slack runs out.
const QUANTA: u64 = 256;

/// Least slack for which a core runs another job, given the shortest relative deadline: with less, it would have to
/// decide again at once.
pub(super) fn quantum(shortest: Time) -> Time {
    Time(shortest.0.div_ceil(QUANTA).max(1))
}

impl Rule {
    pub fn start(&mut self, system: &System, guarantee: &Guarantee) {
        let cores = system.cores();
        self.dispatching = Dispatching::on(system.costs());
        self.tasks.clear();
        self.tasks.resize_with(cores, Vec::new);
        for (task, reserved) in system.task_ids().zip(&guarantee.reserved) {
            reserved.iter().for_each(|reserved| self.tasks[reserved.core].push(task));
        }
        let shortest = |core: CoreId| {
            let of_core = guarantee.reserved.iter().flatten().filter(|reserved| reserved.core == core);
            of_core.map(|reserved| reserved.deadline.0 - reserved.lead.0).min().unwrap_or_default()
        };
        self.quantum.clear();
        self.quantum.extend(system.core_ids().map(|core| quantum(Time(shortest(core)))));
        self.longest.clear();
        self.longest.extend(system.tasks().iter().map(longest_region));
        self.first.clear();
        self.first.resize(cores, None);
        self.running.clear();
        self.running.resize(cores, None);
        self.pins.clear();
        self.pins.resize(cores, None);
        self.queue.clear();
        self.plan.clear();
        self.plan.resize(cores, None);
        self.is_forced.clear();
        self.is_forced.resize(cores, false);
        self.exhausted.clear();
        self.exhausted.resize(cores, Time::NEVER);
        self.claims.reserve(4 * system.tasks().len());
    }

    /// Finds the first of the ready guaranteed jobs of every core, and the jobs that cores are pinned to.
    pub fn look(&mut self, now: Now<'_>) {
        self.find_pins(now);
        for core in CoreId::all(self.first.len()) {
            // A caller that does not tell of every job that leaves gets no job that has.
            let mut ready = now.arrivals.ready(core).iter().filter(|(.., id)| now.view.is_active(*id));
            let first = ready.next();
            let second = ready.next().map_or(Time::NEVER, |(deadline, ..)| deadline);
            self.first[core] = first.map(|rank| First { rank, second });
        }
    }

    /// Whether a core has too many guaranteed jobs to look at all of them. The slack would not be found then.
    pub(super) fn is_crowded(core: CoreId, now: Now<'_>) -> bool {
        now.arrivals.ready(core).len() > EFFORT
    }

    /// Whether every core has to run its first job, whatever is proposed. If so, this is the assignment. The slack is
    /// computed only where it was used up before.
    pub fn leaves_no_choice(&mut self, now: Now<'_>, assignment: &mut Assignment) -> bool {
        let is_exhausted = self.exhausted.iter().all(|date| *date <= now.view.now);
        if self.pins.iter().any(Option::is_some) || now.guarantee.rules_resources() {
            return false;
        }
        if !is_exhausted || self.first.iter().any(Option::is_none) {
            return false;
        }
        for core in now.view.system.core_ids() {
            let Some(First { rank, second }) = self.first[core] else { return false };
            if rank.0 == second || Rule::is_crowded(core, now) {
                return false;
            }
            self.claim(core, now, false);
            if !matches!(
                self.claims.slack(now.view.now, rank.0, second, Time(1)),
                Slack::Spare(Time(0)) | Slack::Overdrawn
            ) {
                return false;
            }
        }
        for (core, first) in self.first.iter().enumerate() {
            self.plan[core] = first.map(|first| first.rank.2);
        }
        self.write(now, assignment);
        true
    }

    /// Turns a proposal into an assignment that keeps the guarantee.
    pub fn apply(&mut self, now: Now<'_>, proposal: &Assignment, assignment: &mut Assignment) -> Applied {
        let mut applied = Applied::default();
        self.is_forced.fill(false);
        self.plan.copy_from_slice(proposal.cores());
        self.keep_pinned(now);
        for core in CoreId::all(self.plan.len()) {
            // Time that nobody wants goes to the first job.
            if let (None, Some(first)) = (self.plan[core], self.first[core])
                && !self.plan.contains(&Some(first.rank.2))
            {
                self.plan[core] = Some(first.rank.2);
            }
        }
        let wake = loop {
            self.find_running(now);
            let (mut wake, mut changed) = (Time::NEVER, false);
            for core in CoreId::all(self.plan.len()) {
                let verdict = self.verdict(core, now);
                if !self.is_forced[core] {
                    self.exhausted[core] = match verdict {
                        Verdict::Safe(Some(time)) => now.view.now + time,
                        Verdict::Safe(None) => Time::NEVER,
                        Verdict::Unsafe | Verdict::Unknown => now.view.now,
                    };
                }
                match verdict {
                    Verdict::Safe(Some(time)) => wake = wake.min(now.view.now + time),
                    Verdict::Safe(None) => {}
                    verdict => {
                        applied.is_unknown |= matches!(verdict, Verdict::Unknown);
                        changed |= self.force(core, now);
                    }
                }
            }
            if !changed {
                break wake;
            }
        };
        self.ask_for_resources(now);
        self.write(now, assignment);
        if wake != Time::NEVER {
            assignment.wake_at(wake);
        }
        applied.overrides = self.plan != proposal.cores();
        applied.deviates = self.first.iter().flatten().any(|first| !self.plan.contains(&Some(first.rank.2)));
        applied
    }

    /// Number of cores of the system that the rule was started with.
    pub fn cores(&self) -> usize {
        self.plan.len()
    }

    /// Whether the first job of some core runs on that core.
    pub fn runs_first(&self) -> bool {
        self.first
            .iter()
            .zip(&self.plan)
            .any(|(first, planned)| first.is_some_and(|first| *planned == Some(first.rank.2)))
    }

    /// Whether the plan runs a job or lets it wait on its core.
    pub fn is_planned(&self, id: JobId) -> bool {
        self.plan.contains(&Some(id))
    }

    /// Writes the plan. Asks for a decision when a guaranteed job has used up its budget, and when a job comes to a
    /// critical section or to its end.
    fn write(&self, now: Now<'_>, assignment: &mut Assignment) {
        for (core, id) in CoreId::all(self.plan.len()).zip(&self.plan) {
            let Some(id) = id.filter(|id| !self.has_to_wait(*id, now)) else { continue };
            assignment.run(core, id);
            self.next_gate(core, id, now).into_iter().for_each(|date| assignment.wake_at(date));
            if let Some((job, reserved)) = now.guaranteed(id) {
                let entry = self.dispatching.entry(job, Some(core));
                assignment.wake_at(now.view.now + reserved.remaining(job) + entry);
            }
        }
    }

    /// Finds, for each core, the earliest of its guaranteed jobs that the plan runs.
    fn find_running(&mut self, now: Now<'_>) {
        self.running.fill(None);
        for id in self.plan.iter().flatten() {
            let Some((job, reserved)) = now.guaranteed(*id) else { continue };
            let (rank, running) = ((reserved.due(job), job.tie(), *id), &mut self.running[reserved.core]);
            *running = Some(running.map_or(rank, |earlier| earlier.min(rank)));
        }
    }

    /// Says whether the plan is safe for the tasks of a core.
    fn verdict(&mut self, core: CoreId, now: Now<'_>) -> Verdict {
        // A job that the core is pinned to stays; whether there is time for that was found out when it began.
        if self.pins[core].is_some() {
            return if self.is_charged(core, now) { Verdict::Unsafe } else { Verdict::Safe(None) };
        }
        let planned = self.plan[core].map(|id| now.view.job(id));
        if let Some(id) = self.plan[core].filter(|id| self.first[core].is_none_or(|first| first.rank.2 != *id)) {
            match self.stretch(core, id, now) {
                None => return Verdict::Unsafe,
                Some(Time::ZERO) => {}
                Some(stretch) => return self.verdict_on_stretch(core, id, stretch, now),
            }
        }
        let Some(First { rank: first, .. }) = self.first[core] else { return Verdict::Safe(None) };
        let runs_first = self.running[core] == Some(first);
        let is_free = self.dispatching.is_free();
        if runs_first && (is_free || self.is_in_turn(core, first.2, now)) {
            return Verdict::Safe(None);
        }
        if Rule::is_crowded(core, now) {
            return Verdict::Unknown;
        }
        let entry = planned.map_or(Time::ZERO, |job| self.dispatching.entry(job, Some(core)));
        // The remaining work of a job that overruns is not known.
        let remaining = planned.filter(|job| job.executed < job.wcet).map_or(Time::NEVER, Job::time_to_finish);
        let cap = first.0.saturating_sub(now.view.now).min(Time(remaining.0.saturating_add(entry.0)));
        let until = self.running[core].map_or(Time::NEVER, |earliest| earliest.0);
        self.claim(core, now, true);
        if !is_free && until != Time::NEVER {
            // Charges also concern the deadlines that lose no time.
            match self.claims.all_fit(now.view.now, first.0) {
                Some(false) => return Verdict::Unsafe,
                None => return Verdict::Unknown,
                Some(true) if runs_first => return Verdict::Safe(None),
                Some(true) => {}
            }
        }
        // An interlude has to be worth a decision and its switches, or to complete the job.
        let switches = if planned.is_none_or(|job| is_on(job, core)) { Time::ZERO } else { self.dispatching.full() };
        let useful = entry + (switches + self.quantum[core]).min(remaining);
        match self.claims.slack(now.view.now, first.0, until, cap.max(useful)) {
            Slack::Spare(time) if time >= useful => Verdict::Safe(Some(time)),
            // Overdrawn: time was lost to something that is not part of any budget, such as a late decision. EDF still
            // loses least.
            Slack::Spare(_) | Slack::Overdrawn => Verdict::Unsafe,
            Slack::Unknown => Verdict::Unknown,
        }
    }

    /// Whether the core runs its first job and no other of its guaranteed jobs is charged for running elsewhere.
    fn is_in_turn(&self, core: CoreId, first: JobId, now: Now<'_>) -> bool {
        let is_own = |id: JobId| now.is_own(core, id);
        let is_charged = |place: CoreId, id: JobId| {
            let job = now.view.job(id);
            !is_on(job, place) || self.dispatching.entry(job, Some(place)) > Time::ZERO
        };
        let mut planned = CoreId::all(self.plan.len()).zip(&self.plan).filter_map(|(place, id)| Some((place, (*id)?)));
        self.plan[core] == Some(first)
            && !planned.any(|(place, id)| place != core && is_own(id) && is_charged(place, id))
    }

    /// Collects the demand of a core's guaranteed tasks, as it is after the plan has been carried out if `is_charged`.
    pub(super) fn claim(&mut self, core: CoreId, now: Now<'_>, is_charged: bool) {
        let is_charged = is_charged && !self.dispatching.is_free();
        self.claims.clear();
        let first = self.first[core].map(|first| first.rank.2);
        for (.., id) in now.arrivals.ready(core).iter() {
            let Some((job, reserved)) = now.guaranteed(id) else { continue };
            let mut work = reserved.remaining(job) + self.waits_ahead(id, now);
            if is_charged {
                let place = self.plan.iter().position(|planned| *planned == Some(id)).map(CoreId::new);
                work += self.dispatching.entry(job, place);
                if place != Some(core) || Some(id) != first {
                    work += self.dispatching.way_back(job, place, core);
                }
            }
            self.claims.add_job(reserved.due(job), work);
        }
        for task in &self.tasks[core] {
            let Some(reserved) = now.guarantee.reserved[*task] else { continue };
            let Some(arrival) = now.arrivals.next_arrival(now.view.now, *task, &reserved) else { continue };
            self.claims.add_task(arrival + (reserved.deadline - reserved.lead), reserved.period, reserved.work);
        }
        if self.plan.len() == 1 && now.view.system.costs().decision > Time::ZERO {
            interrupts::claim(now.view.system, now.view.now, &mut self.claims);
        }
    }

    /// Makes a core run its first job, or, if it does so already, none of its other guaranteed jobs. Returns whether
    /// this changed anything.
    fn force(&mut self, core: CoreId, now: Now<'_>) -> bool {
        let first = self.first[core].map(|first| first.rank.2).filter(|first| !self.pins.contains(&Some(*first)));
        let Some(first) = first.filter(|_| self.pins[core].is_none()) else {
            // There is no time for a job that would keep the core, and nobody else wants it.
            self.is_forced[core] = true;
            let idles = self.pins[core].is_none() && self.plan[core].take().is_some();
            return self.stop_charged(core, now) || idles;
        };
        if std::mem::replace(&mut self.is_forced[core], true) {
            return self.run_alone(core, first, now);
        }
        let displaced = self.plan[core].replace(first).filter(|id| *id != first);
        let is_vacated = |place: &CoreId| *place != core && self.plan[*place] == Some(first);
        let vacated = CoreId::all(self.plan.len()).find(is_vacated);
        if let Some(place) = vacated {
            self.plan[place] = None;
        }
        // The job that was chosen goes on elsewhere if it can.
        self.put_elsewhere(displaced, vacated, now);
        true
    }

    /// Takes the guaranteed jobs of a core, except the first, from all other cores.
    fn run_alone(&mut self, core: CoreId, first: JobId, now: Now<'_>) -> bool {
        let mut changed = false;
        for (planned, pinned) in self.plan.iter_mut().zip(&self.pins) {
            if planned.is_some_and(|id| id != first && now.is_own(core, id)) && pinned.is_none() {
                *planned = None;
                changed = true;
            }
        }
        changed
    }
}
