//! What keeps a core from being given to another job, and when a job may begin to keep one.
//!
//! A core is *pinned* while its job cannot be preempted: within a region of a task that limits preemption, within a
//! critical section of a resource that guaranteed tasks use, and while the job waits there for such a resource. The
//! guaranteed tasks of a core have to wait for the end of such a stretch. Their own stretches are part of the proof
//! as long as each begins in its turn; any other one begins only if the slack of the core covers it.

use temponet_task::{CoreId, Job, JobId, ResourceId, Speed, Time};

use super::costs::is_on;
use super::rule::{Now, Rule, Verdict};
use super::slack::Slack;

impl Rule {
    /// Finds the job that each core is pinned to.
    pub(super) fn find_pins(&mut self, now: Now<'_>) {
        for core in CoreId::all(self.pins.len()) {
            self.pins[core] = now.view.held_on(core);
        }
        let Some(locks) = now.view.locks.filter(|_| now.guarantee.rules_resources()) else { return };
        self.queue.update(now.view);
        for (core, id) in self.queue.waiting() {
            self.pins[core] = Some(id);
        }
        for resource in ResourceId::all(now.guarantee.rules.len()) {
            let Some(id) = locks.holder(resource).filter(|_| now.guarantee.ruled(resource).is_some()) else { continue };
            let job = now.view.job(id);
            if let Some(core) = job.last_core.filter(|_| job.running) {
                self.pins[core] = Some(id);
            }
        }
    }

    /// Leaves the jobs that cores are pinned to where they are. What was planned there goes elsewhere if it can.
    pub(super) fn keep_pinned(&mut self, now: Now<'_>) {
        for core in CoreId::all(self.pins.len()) {
            let Some(id) = self.pins[core].filter(|id| self.plan[core] != Some(*id)) else { continue };
            if let Some(place) = self.plan.iter().position(|planned| *planned == Some(id)) {
                self.plan[place] = None;
            }
            let displaced = self.plan[core].replace(id);
            self.put_elsewhere(displaced, None, now);
        }
    }

    /// Puts a job that has lost its core on an idle one that is not pinned, `preferred` if possible.
    pub(super) fn put_elsewhere(&mut self, displaced: Option<JobId>, preferred: Option<CoreId>, now: Now<'_>) {
        let may_run = |place: CoreId| displaced.is_none_or(|id| now.view.may_run(now.view.job(id), place));
        let is_open = |place: &CoreId| self.plan[*place].is_none() && self.pins[*place].is_none() && may_run(*place);
        if let Some(place) = preferred.filter(is_open).or_else(|| CoreId::all(self.plan.len()).find(is_open)) {
            self.plan[place] = displaced;
        }
    }

    /// Whether a guaranteed job of the core pays for a dispatch elsewhere.
    pub(super) fn is_charged(&self, core: CoreId, now: Now<'_>) -> bool {
        let mut places = CoreId::all(self.plan.len());
        !self.dispatching.is_free() && places.any(|place| self.charges(core, place, now))
    }

    /// Stops the guaranteed jobs of a core that would pay for a dispatch elsewhere. Returns whether there are any.
    pub(super) fn stop_charged(&mut self, core: CoreId, now: Now<'_>) -> bool {
        let mut changed = false;
        for place in CoreId::all(self.plan.len()).filter(|_| !self.dispatching.is_free()) {
            if self.charges(core, place, now) {
                self.plan[place] = None;
                changed = true;
            }
        }
        changed
    }

    /// Whether the plan dispatches a guaranteed job of the core at another place.
    fn charges(&self, core: CoreId, place: CoreId, now: Now<'_>) -> bool {
        let planned =
            self.plan[place].filter(|id| place != core && self.pins[place].is_none() && now.is_own(core, *id));
        planned.is_some_and(|id| !is_on(now.view.job(id), place))
    }

    /// Lets planned jobs ask for the resources that they are about to lock.
    pub(super) fn ask_for_resources(&mut self, now: Now<'_>) {
        let Some(locks) = now.view.locks.filter(|_| now.guarantee.rules_resources()) else { return };
        for (core, id) in CoreId::all(self.plan.len()).zip(&self.plan) {
            let Some(id) = *id else { continue };
            let mut wanted = locks.wanted_by(id, now.view.job(id));
            if let Some(resource) = wanted.find(|wanted| now.guarantee.ruled(*wanted).is_some()) {
                self.queue.ask(core, id, resource, now.view.now);
            }
        }
    }

    /// Whether a planned job has to wait on its core.
    pub(super) fn has_to_wait(&self, id: JobId, now: Now<'_>) -> bool {
        now.view.locks.is_some_and(|locks| self.queue.has_to_wait(id, locks))
    }

    /// Longest time for which a guaranteed job may still wait for resources.
    pub(super) fn waits_ahead(&self, id: JobId, now: Now<'_>) -> Time {
        let Some(locks) = now.view.locks.filter(|_| now.guarantee.rules_resources()) else { return Time::ZERO };
        let ahead = locks.ahead(id, now.view.job(id)).filter_map(|resource| now.guarantee.ruled(resource));
        let total = ahead.fold(0, |sum: u64, ruled| sum.saturating_add(ruled.wait.0));
        Time(total).saturating_sub(self.queue.waited(id, now.view.now))
    }

    /// Earliest date at which a planned job comes to the beginning or the end of a section that the shield rules. There
    /// it has to decide: locks are no decision points of their own.
    pub(super) fn next_gate(&self, core: CoreId, id: JobId, now: Now<'_>) -> Option<Time> {
        let locks = now.view.locks.filter(|_| now.guarantee.rules_resources())?;
        let (job, is_ruled) = (now.view.job(id), |resource: ResourceId| now.guarantee.ruled(resource).is_some());
        let is_held = |resource: &ResourceId| is_ruled(*resource) && locks.holder(*resource) == Some(id);
        let work = match ResourceId::all(now.guarantee.rules.len()).find(is_held) {
            Some(held) => locks.end_of_section(id, job, held)?,
            None => {
                let (_, at, end) = locks.next_section(id, job, is_ruled)?;
                if at > job.executed { at } else { end }
            }
        };
        let left = work.saturating_sub(job.executed) + job.overhead;
        let speed = now.view.system.machine().speed(core);
        // On a slow core, a part of a nanosecond of work may be done already.
        let time = match speed {
            Speed::FULL => left,
            _ => speed.time_for_thousandths((u128::from(left.0) * 1000).saturating_sub(999)),
        };
        Some(now.view.now + time.max(Time(1)))
    }

    /// Longest time for which a job that gets this core now keeps it before it can be preempted; zero if it can be
    /// preempted at any time. Returns none for a section that is longer than any that its resource may have.
    pub(super) fn stretch(&self, core: CoreId, id: JobId, now: Now<'_>) -> Option<Time> {
        let job = now.view.job(id);
        let (speed, entry) = (now.view.system.machine().speed(core), self.dispatching.entry(job, Some(core)));
        let hold = self.hold(job, now);
        if hold > Time::ZERO {
            return Some(speed.time_for(hold) + entry);
        }
        let is_ruled = |resource: ResourceId| now.guarantee.ruled(resource).is_some();
        let ahead = now.view.locks.and_then(|locks| locks.next_section(id, job, is_ruled));
        let Some((resource, at, end)) = ahead.filter(|(_, at, _)| *at <= job.executed) else { return Some(Time::ZERO) };
        let ruled = now.guarantee.ruled(resource)?;
        let length = Some(end.saturating_sub(at)).filter(|length| *length <= ruled.longest)?;
        Some(ruled.wait + speed.time_for(length + job.overhead) + entry)
    }

    /// Longest work for which the task of a job holds a core that the job gets now; zero if it can be preempted at any
    /// time.
    fn hold(&self, job: &Job, now: Now<'_>) -> Time {
        let Some(task) = now.view.system.tasks().get(job.task.index()) else { return Time::ZERO };
        let work = job.wcet.max(task.wcet_high.unwrap_or_default());
        let next = task.preemption.next_point(job.executed).min(work.max(job.executed + Time(1)));
        if task.preemption.is_limited() { next - job.executed + job.overhead } else { Time::ZERO }
    }

    /// Whether the proof accounts for a stretch of a job that is not in its turn, as long as the slack covers it for
    /// the jobs that are ready. Those that arrive meanwhile can wait for a stretch of the core's own tasks, and for one
    /// of others that is within the patience of the core.
    fn is_foreseen(&self, core: CoreId, id: JobId, stretch: Time, now: Now<'_>) -> bool {
        let job = now.view.job(id);
        let known = self.longest.get(job.task.index()).copied().unwrap_or_default();
        let is_known = self.hold(job, now) <= known + self.dispatching.full();
        (is_known && now.is_own(core, id)) || stretch <= now.guarantee.patience[core]
    }

    /// Verdict on a job that would keep the core for a stretch, out of its turn. The slack has to cover all of it,
    /// whatever runs on other cores meanwhile: it may be stopped there.
    pub(super) fn verdict_on_stretch(&mut self, core: CoreId, id: JobId, stretch: Time, now: Now<'_>) -> Verdict {
        if Rule::is_crowded(core, now) {
            return Verdict::Unknown;
        }
        let (job, is_foreseen) = (now.view.job(id), self.is_foreseen(core, id, stretch, now));
        let first = self.first[core].map(|first| first.rank.0);
        let from = match first {
            None if is_foreseen => return Verdict::Safe(None),
            Some(first) if is_foreseen => first,
            _ => now.view.now,
        };
        let own = now.guaranteed(id).filter(|(_, reserved)| reserved.core == core);
        let until = own.map_or(Time::NEVER, |(job, reserved)| reserved.due(job));
        self.claim(core, now, true);
        if !self.dispatching.is_free() {
            // Charges also concern the deadlines that lose no time.
            match self.claims.all_fit(now.view.now, from) {
                Some(false) => return Verdict::Unsafe,
                None => return Verdict::Unknown,
                Some(true) => {}
            }
        }
        let entry = self.dispatching.entry(job, Some(core));
        let remaining = if job.executed < job.wcet { job.time_to_finish() } else { Time::NEVER };
        let switches = if is_on(job, core) { Time::ZERO } else { self.dispatching.full() };
        let worth = if is_foreseen { entry + (switches + self.quantum[core]).min(remaining) } else { Time::ZERO };
        let useful = worth.max(stretch);
        let cap = first.map_or(Time::ZERO, |first| {
            first.saturating_sub(now.view.now).min(Time(remaining.0.saturating_add(entry.0)))
        });
        match self.claims.slack(now.view.now, from, until, cap.max(useful)) {
            Slack::Spare(time) if time >= useful => Verdict::Safe(Some(time).filter(|_| is_foreseen)),
            Slack::Spare(_) | Slack::Overdrawn => Verdict::Unsafe,
            Slack::Unknown => Verdict::Unknown,
        }
    }
}
