//! A naive simulator to hold the engine against. It advances tick by tick, looks at every section of every job, asks a
//! textbook rule for the order of all ready jobs, and finds their cores by trying every assignment. It knows the whole
//! task model but the costs of decisions and modes.

pub mod placement;
pub mod resources;
pub mod rules;
pub mod sets;

use std::collections::HashMap;

use temponet_sim::{End, JobRecord, ReleasedJob, Stretch, Workload};
use temponet_task::{CoreId, OnMiss, Preemption, Task, TaskId, TaskSet, Time};

use rules::Rule;

/// Job of the naive simulator. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct NaiveJob {
    pub task: usize,
    pub number: u64,
    pub release: i64,
    pub deadline: i64,
    pub wcet: i64,
    pub bcet: i64,
    /// Median and ninth decile of the estimate.
    pub estimate: Option<[i64; 2]>,
    /// Whether the job is planned by its wcet in any case.
    pub is_important: bool,
    /// Speed of the fastest core that the job may use, in thousandths.
    fastest: i64,
    execution: i64,
    /// Work done, in thousandths of a nanosecond.
    done: i64,
    /// Work done a tick ago.
    before: i64,
    /// Costs of switches that are to be paid before the job does its work, in thousandths of a nanosecond.
    overhead: i64,
    start: Option<i64>,
    pub core: Option<usize>,
    last_core: Option<usize>,
    /// Whether the job keeps its core at this instant.
    pub held: bool,
    /// Whether the job leaves at its next preemption point.
    leaves: bool,
    /// For each section of the task: `None` before its lock, then since when the job is in it, [`resources::DONE`] at
    /// last.
    inside: Vec<Option<i64>>,
    /// Since when the job waits, and for which resource.
    waits: Option<(i64, usize)>,
    was_blocked: bool,
}

impl NaiveJob {
    fn released(set: &TaskSet, now: i64, release: &ReleasedJob) -> NaiveJob {
        let task = &set.tasks()[release.task];
        let nanoseconds = |time: Time| time.0 as i64;
        NaiveJob {
            task: release.task.index(),
            number: release.number,
            release: now,
            deadline: nanoseconds(release.deadline),
            wcet: nanoseconds(release.wcet),
            bcet: nanoseconds(release.bcet),
            estimate: release.estimate.map(|of| [of.median(), of.high()].map(nanoseconds)),
            is_important: task.criticality > 0 || task.guarantee,
            fastest: i64::from(set.fastest(task).0),
            execution: nanoseconds(release.execution),
            done: 0,
            before: 0,
            overhead: 0,
            start: None,
            core: None,
            last_core: None,
            held: false,
            leaves: false,
            inside: vec![None; task.sections.len()],
            waits: None,
            was_blocked: false,
        }
    }

    /// Whole nanoseconds of work done.
    pub fn executed(&self) -> i64 {
        self.done / 1000
    }

    /// Time that the remaining wcet takes on the fastest core that the job may use.
    pub fn to_finish(&self) -> i64 {
        let remaining = (self.wcet - self.executed()).max(1) * 1000;
        (remaining + self.fastest - 1) / self.fastest
    }

    pub fn laxity(&self, now: i64) -> i64 {
        self.deadline - now - self.to_finish()
    }

    pub fn tie(&self) -> (i64, usize, u64) {
        (self.release, self.task, self.number)
    }

    fn id(&self) -> (usize, u64) {
        (self.task, self.number)
    }
}

/// State that a rule sees.
pub struct State<'a> {
    pub now: i64,
    /// Time between two looks at the rule.
    pub tick: i64,
    pub set: &'a TaskSet,
    pub jobs: &'a [NaiveJob],
    /// Whether anything but time has changed since the last look.
    pub happened: bool,
}

impl State<'_> {
    pub fn task(&self, job: &NaiveJob) -> &Task {
        &self.set.tasks()[job.task]
    }

    pub fn cores(&self) -> usize {
        self.set.cores()
    }
}

/// Result of a naive run.
#[derive(Default)]
pub struct Outcome {
    pub jobs: Vec<JobRecord>,
    pub holds: Vec<Stretch>,
    pub waits: Vec<Stretch>,
    pub preemptions: u64,
    pub migrations: u64,
}

/// A run under way.
pub struct Naive<'a> {
    set: &'a TaskSet,
    now: i64,
    jobs: Vec<NaiveJob>,
    /// Jobs that wait for others to complete.
    waiting: Vec<NaiveJob>,
    /// Last job of each core.
    previous: Vec<Option<(usize, u64)>>,
    /// Jobs that have left, and whether they had completed.
    completed: HashMap<(usize, u64), bool>,
    outcome: Outcome,
}

/// Simulates a run whose dates and execution times are multiples of `tick`.
pub fn naive(set: &TaskSet, seed: u64, tick: Time, horizon: Time, mut rule: Rule) -> Outcome {
    let mut workload = Workload::new(set, seed);
    let (jobs, waiting, completed, outcome) = (Vec::new(), Vec::new(), HashMap::new(), Outcome::default());
    let previous = vec![None; set.cores()];
    let mut run = Naive { set, now: 0, jobs, waiting, previous, completed, outcome };
    for now in (0..=horizon.0 as i64).step_by(tick.0 as usize) {
        run.now = now;
        let mut happened = run.reach();
        happened |= run.pass_deadlines();
        run.end_waits();
        while now < horizon.0 as i64 && workload.next_time() == Time(now as u64) {
            let release = workload.pop().unwrap();
            run.waiting.push(NaiveJob::released(set, now, &release));
        }
        run.lose();
        if now == horizon.0 as i64 {
            break;
        }
        happened |= run.release();
        run.end_waits();
        let chosen = rule(&State { now, tick: tick.0 as i64, set, jobs: &run.jobs, happened });
        if let Some(order) = chosen {
            run.place(order);
        }
        while run.lock() {
            let state = State { now, tick: tick.0 as i64, set, jobs: &run.jobs, happened: true };
            let order = rule(&state).expect("a rule decides when something happened");
            run.place(order);
        }
        run.lose();
        for job in &mut run.jobs {
            job.before = job.done;
            if let Some(core) = job.core {
                let work = i64::from(set.machine().speed(CoreId::new(core)).0) * tick.0 as i64;
                let paid = work.min(job.overhead);
                job.overhead -= paid;
                job.done += work - paid;
            }
        }
    }
    for job in std::mem::take(&mut run.jobs) {
        run.end_sections(&job);
        run.record(&job, End::Unfinished);
    }
    for job in std::mem::take(&mut run.waiting) {
        run.record(&job, End::Unfinished);
    }
    run.outcome
}

impl Naive<'_> {
    fn record(&mut self, job: &NaiveJob, end: End) {
        let time = |date: i64| Time(date as u64);
        self.outcome.jobs.push(JobRecord {
            task: TaskId(job.task as u32),
            number: job.number,
            release: time(job.release),
            deadline: time(job.deadline),
            start: job.start.map(time),
            left: time(self.now),
            end,
            executed: time(job.executed().min(job.execution)),
        });
    }

    fn leave(&mut self, index: usize, end: End) {
        let job = self.jobs.remove(index);
        self.end_sections(&job);
        self.completed.insert(job.id(), end == End::Completed);
        self.record(&job, end);
    }

    /// What running jobs do in this instant before the deadlines. Returns whether anything happened.
    fn reach(&mut self) -> bool {
        let mut happened = false;
        while let Some(index) = self.jobs.iter().position(|job| job.done >= 1000 * job.execution) {
            self.leave(index, End::Completed);
            happened = true;
        }
        for job in &mut self.jobs {
            let preemption = self.set.tasks()[job.task].preemption;
            job.held = job.core.is_some() && preemption.is_limited();
            if let Preemption::Every(every) = preemption
                && job.core.is_some()
                && job.executed() / every.0 as i64 > job.before / 1000 / every.0 as i64
            {
                (job.held, happened) = (false, true);
            }
        }
        while let Some(index) = self.jobs.iter().position(|job| job.leaves && job.core.is_some() && !job.held) {
            self.leave(index, End::Aborted);
        }
        for index in 0..self.jobs.len() {
            self.unlock(index);
        }
        let freed = self.end_waits();
        self.stop() || freed || happened
    }

    /// Removes jobs at their deadlines, as far as they are not held. Returns whether a deadline has passed.
    fn pass_deadlines(&mut self) -> bool {
        let due: Vec<_> = self.jobs.iter().filter(|job| job.deadline == self.now).map(NaiveJob::id).collect();
        for id in due.iter().filter(|_| self.set.on_miss() == OnMiss::Abort) {
            let index = self.jobs.iter().position(|job| job.id() == *id).unwrap();
            let preemption = self.set.tasks()[self.jobs[index].task].preemption;
            match self.jobs[index].held && preemption != Preemption::Cancel {
                true => self.jobs[index].leaves = true,
                false => self.leave(index, End::Aborted),
            }
        }
        !due.is_empty()
    }

    /// Releases the jobs whose predecessors have all completed. Returns whether there is one.
    fn release(&mut self) -> bool {
        let is_ripe = |job: &NaiveJob| {
            let mut before = self.set.tasks()[job.task].after.iter();
            before.all(|before| self.completed.get(&(before.index(), job.number)) == Some(&true))
        };
        let (mut ripe, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().partition(is_ripe);
        self.waiting = rest;
        ripe.sort_by_key(NaiveJob::id);
        let happened = !ripe.is_empty();
        for mut job in ripe {
            job.release = self.now;
            self.jobs.push(job);
            let last = self.jobs.len() - 1;
            if self.jobs[last].deadline <= self.now && self.set.on_miss() == OnMiss::Abort {
                self.leave(last, End::Aborted);
            }
        }
        self.lose();
        happened
    }

    /// Takes the waiting jobs out that have lost a predecessor and will never be released, one after another.
    fn lose(&mut self) {
        let is_lost = |run: &Naive<'_>, job: &NaiveJob| {
            let mut before = run.set.tasks()[job.task].after.iter();
            before.any(|before| run.completed.get(&(before.index(), job.number)) == Some(&false))
        };
        while let Some(at) = self.waiting.iter().position(|job| is_lost(self, job)) {
            let job = self.waiting.remove(at);
            self.completed.insert(job.id(), false);
            self.record(&job, End::Unreleased);
        }
    }
}
