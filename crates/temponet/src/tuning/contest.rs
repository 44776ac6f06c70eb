//! The contest: candidates run the same jobs side by side, and what they achieve is counted block by block.
//!
//! A block is a stretch of simulated time, and a job belongs to the block of its deadline. Every candidate has an
//! engine of its own with the same task set and seed, so the jobs are equal, and the differences between two candidates
//! in a block are paired. One long run in blocks needs a single warm-up, where many short runs would need one each, and
//! it sees the tasks drift against each other. The first block is the warm-up and does not count.
//!
//! A figure over all blocks is a ratio (or a minimum), not a mean of ratios: blocks with few jobs of a level, or none,
//! must not count as much as others. The scores per block are therefore jackknife pseudo-values, whose mean is the
//! figure over all blocks and whose spread is its uncertainty.

use std::sync::Arc;

use temponet_sched::shield::Shield;
use temponet_sim::ranking;
use temponet_sim::{ChainMeter, Count, End, Engine, MOST_READY, Metrics, Observer, WindowCounter};
use temponet_task::{Assignment, Goal, Job, Scheduler, System, Task, TaskSet, Time};

use super::candidates::{Candidate, decides_alone};

/// What the candidates run, and how it is divided into blocks.
pub(super) struct Course<'a> {
    /// System that the candidates are told. It may say less than the set does, and never says more than a scheduler may
    /// know.
    pub system: &'a System,
    /// Tasks that release the jobs.
    pub set: Arc<TaskSet>,
    /// Seed of the jobs.
    pub seed: u64,
    /// Start of the first block.
    pub begins: Time,
    /// Length of a block.
    pub block: Time,
    /// Greatest number of blocks, the warm-up included.
    pub most_blocks: usize,
    /// Whether candidates run behind the shield.
    pub is_shielded: bool,
    /// Effort that is planned for a block, over all candidates; [`u64::MAX`] without a limit.
    pub planned: u64,
}

impl Course<'_> {
    /// End of a block.
    pub fn end(&self, block: usize) -> Time {
        self.begins + self.block * (block as u64 + 1)
    }
}

/// A candidate in the contest.
pub(super) struct Contestant<'a> {
    /// The candidate that runs.
    pub candidate: &'a Candidate,
    scheduler: Box<dyn Scheduler>,
    engine: Engine,
    blocks: Blocks,
    /// Meter of the chains; `None` without chains.
    chains: Option<ChainMeter>,
    assignment: Assignment,
    /// Effort spent so far.
    pub effort: u64,
}

impl<'a> Contestant<'a> {
    /// Puts a candidate on the course; `None` if it does not apply to the system.
    pub fn new(candidate: &'a Candidate, course: &Course<'_>) -> Option<Contestant<'a>> {
        let bare = candidate.scheduler()?;
        let scheduler = if course.is_shielded { shielded(candidate, bare, course)? } else { started(bare, course)? };
        let horizon = course.end(course.most_blocks.saturating_sub(1));
        Some(Contestant {
            candidate,
            scheduler,
            engine: Engine::new(course.set.clone(), course.seed, horizon),
            blocks: Blocks::new(course),
            chains: (!course.set.chains().is_empty()).then(|| ChainMeter::new(&course.set, horizon)),
            assignment: Assignment::default(),
            effort: 0,
        })
    }

    /// Name of the candidate.
    pub fn name(&self) -> &'static str {
        self.candidate.name()
    }

    /// Runs to the end of the next block, and takes its effort from what is `left` of it. Returns whether the candidate
    /// could: an illegal assignment, an endless backlog or the end of the effort ends its contest.
    pub fn run_block(&mut self, course: &Course<'_>, left: &mut u64) -> bool {
        let end = course.end(self.blocks.closed);
        let (mut blocks, mut chains) = (std::mem::take(&mut self.blocks), self.chains.take());
        let could = self.run_until(end, course, left, &mut (&mut blocks, chains.as_mut()));
        (self.blocks, self.chains) = (blocks, chains);
        if could {
            self.close_block(end);
        }
        could
    }

    /// Runs to a point in time, and tells an observer of it; see [`Contestant::run_block`].
    pub fn run_until(&mut self, end: Time, course: &Course<'_>, left: &mut u64, observer: &mut dyn Observer) -> bool {
        let most = self.scheduler.most_ready().min(MOST_READY);
        while self.engine.now() < end {
            temponet_cancel::checkpoint();
            if !self.engine.advance(observer) {
                break;
            }
            let view = self.engine.view().with_system(course.system);
            if view.active.len() > most {
                return false;
            }
            let effort = self.candidate.effort(view.active.len(), view.cores());
            self.effort += effort;
            *left = left.saturating_sub(effort);
            if *left == 0 {
                return false;
            }
            self.assignment.reset(view.cores());
            self.scheduler.decide(&view, &mut self.assignment);
            if self.engine.apply(&self.assignment, observer).is_err() {
                return false;
            }
        }
        true
    }

    /// Counts what is left of a block that ends.
    fn close_block(&mut self, end: Time) {
        let view = self.engine.view();
        view.ready().filter(|(_, job)| job.deadline <= end).for_each(|(_, job)| self.blocks.count(job, false));
        if let Some(block) = self.blocks.blocks.get_mut(self.blocks.closed)
            && let Some(chains) = &mut self.chains
        {
            block.chains = chains.take(self.engine.now());
        }
        self.blocks.closed += 1;
    }

    /// Returns the number of counted jobs so far.
    pub fn jobs(&self) -> u64 {
        self.jobs_in(usize::MAX)
    }

    /// Returns the number of jobs in the first counted blocks.
    pub fn jobs_in(&self, blocks: usize) -> u64 {
        self.blocks.counted().iter().take(blocks).map(|block| block.jobs.released).sum()
    }

    /// Returns the number of counted jobs of a criticality level so far.
    pub fn jobs_of_level(&self, level: u8) -> u64 {
        let of = |block: &Metrics| block.by_criticality.get(usize::from(level)).map_or(0, |count| count.released);
        self.blocks.counted().iter().map(of).sum()
    }

    /// Whether every measure of the goal was served in full.
    pub fn loses_nothing(&self, goal: &Goal) -> bool {
        let scores = self.scores(goal, usize::MAX);
        !scores.is_empty() && scores.iter().flatten().all(|score| *score >= 1.0 - ranking::ROUNDING)
    }

    /// Returns the number of counted blocks so far.
    pub fn blocks(&self) -> usize {
        self.blocks.counted().len()
    }

    /// Returns the scores by the goal over the first counted blocks: for each block, one figure per measure.
    pub fn scores(&self, goal: &Goal, blocks: usize) -> Vec<Vec<f64>> {
        let counted = self.blocks.counted();
        pseudo_values(&counted[..blocks.min(counted.len())], goal)
    }
}

fn started<S: Scheduler>(mut scheduler: S, course: &Course<'_>) -> Option<S> {
    scheduler.start(course.system).ok()?;
    Some(scheduler)
}

/// Starts a scheduler behind the shield. Where nothing is guaranteed, a simple candidate may decide alone, as in
/// [`crate::Temponet`].
fn shielded(candidate: &Candidate, bare: Box<dyn Scheduler>, course: &Course<'_>) -> Option<Box<dyn Scheduler>> {
    let shield = started(Shield::new(bare), course)?;
    let is_simple = matches!(candidate, Candidate::Classical(_));
    let is_alone = is_simple && shield.why_disarmed().is_some() && decides_alone(course.system);
    Some(if is_alone { shield.into_inner() } else { Box::new(shield) })
}

/// Jackknife pseudo-values of the goal's measures, one row per block.
fn pseudo_values(blocks: &[Metrics], goal: &Goal) -> Vec<Vec<f64>> {
    // Sums over the blocks up to each place, and from each place on, so that the sum of all others takes one addition.
    let sums = |ordered: &mut dyn Iterator<Item = &Metrics>| {
        let mut sums = vec![Metrics::default()];
        for block in ordered {
            let mut next = sums.last().cloned().unwrap_or_default();
            next.merge(block);
            sums.push(next);
        }
        sums
    };
    let (before, after) = (sums(&mut blocks.iter()), sums(&mut blocks.iter().rev()));
    let (all, n) = (before[blocks.len()].scores(goal), blocks.len() as f64);
    let row = |place: usize| {
        let mut others = before[place].clone();
        others.merge(&after[blocks.len() - 1 - place]);
        let others = if blocks.len() > 1 { others.scores(goal) } else { all.clone() };
        all.iter().zip(others).map(|(all, others)| n * all - (n - 1.0) * others).collect()
    };
    (0..blocks.len()).map(row).collect()
}

/// Counts jobs by the block of their deadline.
#[derive(Default)]
struct Blocks {
    begins: Time,
    length: Time,
    blocks: Vec<Metrics>,
    windows: Vec<Option<WindowCounter>>,
    /// Number of blocks that have ended. Jobs of theirs that are still active have been counted as missed.
    closed: usize,
}

impl Blocks {
    fn new(course: &Course<'_>) -> Blocks {
        let counter = |task: &Task| task.mk.map(WindowCounter::new);
        let tasks = course.set.tasks();
        let mut empty = Metrics::default();
        empty.tasks.resize_with(tasks.len(), Default::default);
        Blocks {
            begins: course.begins,
            length: course.block,
            blocks: vec![empty; course.most_blocks],
            windows: tasks.iter().map(counter).collect(),
            closed: 0,
        }
    }

    /// Blocks that have ended, without the warm-up.
    fn counted(&self) -> &[Metrics] {
        self.blocks.get(1..self.closed).unwrap_or_default()
    }

    /// Adds a job to the block of its deadline, unless it has been counted there.
    fn count(&mut self, job: &Job, met: bool) {
        // A deadline at the end of a block belongs to the block.
        let since = job.deadline.saturating_sub(self.begins).0.saturating_sub(1);
        let place = usize::try_from(since / self.length.0.max(1)).unwrap_or(usize::MAX);
        let Some(block) = self.blocks.get_mut(place).filter(|_| place >= self.closed) else { return };
        let add = |count: &mut Count| {
            count.released += 1;
            count.met += u64::from(met);
        };
        add(&mut block.jobs);
        let level = usize::from(job.criticality);
        if level >= block.by_criticality.len() {
            block.by_criticality.resize(level + 1, Count::default());
        }
        add(&mut block.by_criticality[level]);
        block.value_possible += job.value;
        block.value += if met { job.value } else { 0.0 };
        let task = &mut block.tasks[job.task];
        add(&mut task.jobs);
        if let Some(Some(counter)) = self.windows.get_mut(job.task.index()) {
            let before = counter.counted;
            counter.left(job.number, met);
            task.windows.all += counter.counted.all - before.all;
            task.windows.violated += counter.counted.violated - before.violated;
        }
    }
}

impl Observer for Blocks {
    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        self.count(job, end == End::Completed && now <= job.deadline);
    }
}
