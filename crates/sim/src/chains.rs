//! Reaction time and data age of chains, measured while a run goes on.
//!
//! Every job of a chain carries the number and the arrival of the source job whose value it works on. A job that
//! follows the step before takes both from its predecessor; a job that reads takes them from the newest value, the one
//! of the job with the largest number, that it can see when it reads. Two times are measured:
//!
//! - *reaction time* of a source job: from its arrival to the first output of the chain that carries its value or a
//!   newer one;
//! - *data age* of an output: from the arrival of the source job whose value it carries.
//!
//! In a chain whose every step follows the one before, an instance is one job of each task. Both times are then the
//! response time from the arrival of the source to the completion of the last job. An instance whose last job does not
//! complete has none and is *lost*: newer data does not stand in for it.
//!
//! The meter is an observer of a run, so sets without chains do not pay for it.

use std::collections::BTreeMap;

use temponet_task::{Communication, CoreId, Job, TaskId, TaskSet, Time};

use crate::histogram::Histogram;
use crate::metrics::{Count, End};
use crate::trace::Observer;

/// Whether jobs of `reader` read the value of `read` when they start, and not only at the dates of LET: unless every
/// chain over this step is LET.
pub fn is_read_at_start(set: &TaskSet, read: TaskId, reader: TaskId) -> bool {
    let mut over =
        set.chains().iter().filter(|chain| chain.tasks.windows(2).any(|step| step == [read, reader])).peekable();
    over.peek().is_none() || over.any(|chain| chain.communication != Communication::Let)
}

/// Metrics of the instances of one chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainMetrics {
    /// Source jobs that count, and those of them whose reaction time is within the chain's deadline. Without a
    /// deadline, every source job with a reaction time counts and is met.
    pub instances: Count,
    /// Instances without an output in a chain whose every step follows the one before: a job of theirs did not
    /// complete. Only those count whose end-to-end deadline, if there is one, is within the horizon.
    pub lost: u64,
    /// Whether the chain has an end-to-end deadline.
    pub has_deadline: bool,
    /// Reaction times, in nanoseconds.
    pub reaction: Histogram,
    /// Data ages, in nanoseconds.
    pub age: Histogram,
}

impl ChainMetrics {
    /// Returns the share of instances that met the end-to-end deadline; `None` without a deadline or without instances.
    pub fn on_time(&self) -> Option<f64> {
        (self.has_deadline && self.instances.released > 0).then(|| self.instances.compliance())
    }

    /// Adds the metrics of the same chain in another run.
    pub fn merge(&mut self, other: &ChainMetrics) {
        self.instances.add(other.instances);
        self.lost += other.lost;
        self.has_deadline |= other.has_deadline;
        self.reaction.merge(&other.reaction);
        self.age.merge(&other.age);
    }
}

/// A source job whose value travels along a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Origin {
    number: u64,
    arrival: Time,
}

/// A value that a job has written.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// Date from which it can be read.
    from: Time,
    /// Number of the job that wrote it.
    number: u64,
    origin: Origin,
}

/// Measurement of one chain.
#[derive(Clone, Debug)]
struct Meter {
    deadline: Option<Time>,
    communication: Communication,
    is_triggered: bool,
    /// For each place of the chain, whether its task follows the one before; `false` for the source.
    follows: Vec<bool>,
    /// Relative deadline of the source, by which its arrivals are known; `None` if modes change it.
    first_deadline: Option<Time>,
    /// For each place, the jobs that have taken a value and have not left; `None` where there was no value to take.
    taken: Vec<BTreeMap<u64, Option<Origin>>>,
    /// For each place, the values that can be read or will be, by the number of their writer.
    written: Vec<Vec<Written>>,
    /// Outputs that are not visible yet, by date and number of the last task's job.
    outputs: BTreeMap<(Time, u64), Origin>,
    /// Source jobs without an output, with their arrival, and whether they have been counted as missed.
    open: BTreeMap<u64, (Time, bool)>,
    counted: ChainMetrics,
}

/// Largest number of source jobs of a chain that wait for an output. Older ones have no reaction time.
const MOST_OPEN: usize = 1 << 16;

impl Meter {
    fn last(&self) -> usize {
        self.follows.len() - 1
    }

    /// Returns the arrival of a source job.
    fn arrival(&self, job: &Job) -> Time {
        self.first_deadline.map_or(job.release, |relative| job.deadline.saturating_sub(relative))
    }

    /// Opens an instance with a source job.
    fn open(&mut self, job: &Job, horizon: Time) {
        let arrival = self.arrival(job);
        self.open.entry(job.number).or_insert((arrival, false));
        if self.open.len() > MOST_OPEN
            && let Some((_, (arrival, was_counted))) = self.open.pop_first()
        {
            self.count(arrival, None, was_counted, horizon);
        }
    }

    /// Counts an instance, unless it has been counted. Its deadline must be within the horizon.
    fn count(&mut self, arrival: Time, reaction: Option<Time>, was_counted: bool, horizon: Time) {
        let (counts, met) = match self.deadline {
            None => (reaction.is_some(), true),
            Some(deadline) => (arrival + deadline <= horizon, reaction.is_some_and(|reaction| reaction <= deadline)),
        };
        if counts && !was_counted {
            self.counted.instances.add(Count { released: 1, met: u64::from(met) });
        }
        if let Some(reaction) = reaction {
            self.counted.reaction.record(reaction.0 as i64);
        }
    }

    /// A job at `place` takes the newest value of the place before that can be read now.
    fn read(&mut self, place: usize, job: &Job, now: Time) {
        if self.taken[place].contains_key(&job.number) {
            return;
        }
        let newest = newest_by(&self.written[place - 1], now);
        self.taken[place].insert(job.number, newest.map(|value| value.origin));
    }

    /// A job at `place` completes.
    fn complete(&mut self, place: usize, job: &Job, now: Time, horizon: Time) {
        let origin = match place {
            0 => Some(Origin { number: job.number, arrival: self.arrival(job) }),
            _ => self.taken[place].remove(&job.number).flatten(),
        };
        let Some(origin) = origin else { return };
        let from = match self.communication {
            Communication::Let if !self.is_triggered => now.max(job.deadline),
            _ => now,
        };
        if place == self.last() {
            self.outputs.insert((from, job.number), origin);
            return self.flush(now, horizon);
        }
        if self.follows[place + 1] {
            self.taken[place + 1].insert(job.number, Some(origin));
        } else {
            let values = &mut self.written[place];
            values.push(Written { from, number: job.number, origin });
            // Values that are older than the newest one that can be read will not be read again.
            let newest = newest_by(values, now).map_or(0, |value| value.number);
            values.retain(|value| value.number >= newest);
        }
    }

    /// Measures the outputs that are visible now.
    fn flush(&mut self, now: Time, horizon: Time) {
        while let Some(entry) = self.outputs.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((date, _), origin) = entry.remove_entry();
            self.counted.age.record(date.saturating_sub(origin.arrival).0 as i64);
            if self.is_triggered {
                if let Some((arrival, was_counted)) = self.open.remove(&origin.number) {
                    self.count(arrival, Some(date.saturating_sub(arrival)), was_counted, horizon);
                }
                continue;
            }
            while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() <= origin.number) {
                let (arrival, was_counted) = entry.remove();
                self.count(arrival, Some(date.saturating_sub(arrival)), was_counted, horizon);
            }
        }
    }

    /// Counts the source jobs whose instance is late at `now` as missed.
    fn count_late(&mut self, now: Time, horizon: Time) {
        let Some(deadline) = self.deadline else { return };
        for (arrival, was_counted) in self.open.values_mut().filter(|(_, was_counted)| !was_counted) {
            // An output at the deadline itself is in time, and is counted before this.
            if *arrival + deadline <= now.min(horizon) {
                *was_counted = true;
                self.counted.instances.add(Count { released: 1, met: 0 });
            }
        }
    }
}

/// Returns the value with the largest number that can be read at `now`.
fn newest_by(values: &[Written], now: Time) -> Option<Written> {
    values.iter().filter(|value| value.from <= now).max_by_key(|value| value.number).copied()
}

/// Observer that measures reaction times and data ages of the chains of a set.
#[derive(Clone, Debug)]
pub struct ChainMeter {
    horizon: Time,
    chains: Vec<Meter>,
    /// For each task, the chains that it is in, with its place there.
    places: Vec<Vec<(usize, usize)>>,
}

impl ChainMeter {
    /// Creates a meter for a run of `set` until `horizon`. An instance counts if its end-to-end deadline is within the
    /// horizon.
    pub fn new(set: &TaskSet, horizon: Time) -> ChainMeter {
        let mut places = vec![Vec::new(); set.tasks().len()];
        for (index, chain) in set.chains().iter().enumerate() {
            chain.tasks.iter().enumerate().for_each(|(place, task)| places[*task].push((index, place)));
        }
        let meter = |chain: &temponet_task::Chain| Meter {
            deadline: chain.deadline,
            communication: chain.communication,
            is_triggered: chain.is_triggered(set.tasks()),
            follows: std::iter::once(false).chain(chain.steps(set.tasks())).collect(),
            // Modes change relative deadlines. A source job's release stands for its arrival then.
            first_deadline: set.modes().is_empty().then(|| set.tasks()[chain.tasks[0]].deadline),
            taken: vec![BTreeMap::new(); chain.tasks.len()],
            written: vec![Vec::new(); chain.tasks.len()],
            outputs: BTreeMap::new(),
            open: BTreeMap::new(),
            counted: ChainMetrics { has_deadline: chain.deadline.is_some(), ..ChainMetrics::default() },
        };
        ChainMeter { horizon, chains: set.chains().iter().map(meter).collect(), places }
    }

    /// Returns what has been measured up to `now` since the last call. Instances that are late by then are counted as
    /// missed.
    pub fn take(&mut self, now: Time) -> Vec<ChainMetrics> {
        let horizon = self.horizon;
        let taken = self.chains.iter_mut().map(|chain| {
            chain.flush(now, horizon);
            chain.count_late(now, horizon);
            let empty = ChainMetrics { has_deadline: chain.deadline.is_some(), ..ChainMetrics::default() };
            std::mem::replace(&mut chain.counted, empty)
        });
        taken.collect()
    }

    /// Returns the metrics of the chains at the end of the run.
    pub fn finish(mut self) -> Vec<ChainMetrics> {
        self.take(self.horizon)
    }
}

impl Observer for ChainMeter {
    fn released(&mut self, job: &Job) {
        let horizon = self.horizon;
        for (chain, place) in &self.places[job.task] {
            let chain = &mut self.chains[*chain];
            match place {
                0 => chain.open(job, horizon),
                _ if chain.communication == Communication::Let && !chain.follows[*place] => {
                    chain.flush(job.release, horizon);
                    chain.read(*place, job, job.release);
                }
                _ => {}
            }
        }
    }

    fn dispatched(&mut self, _core: CoreId, job: &Job, now: Time) {
        for (chain, place) in &self.places[job.task] {
            let chain = &mut self.chains[*chain];
            let reads = *place > 0 && !chain.follows[*place] && chain.communication == Communication::Implicit;
            if reads && job.executed == Time::ZERO {
                chain.read(*place, job, now);
            }
        }
    }

    fn left(&mut self, job: &Job, _first_start: Option<Time>, end: End, now: Time) {
        let horizon = self.horizon;
        for (chain, place) in &self.places[job.task] {
            let chain = &mut self.chains[*chain];
            if *place == 0 && end == End::Unreleased {
                chain.open(job, horizon);
            }
            match end {
                End::Completed => chain.complete(*place, job, now, horizon),
                _ => _ = chain.taken[*place].remove(&job.number),
            }
            let is_over =
                chain.is_triggered && *place == chain.last() && !matches!(end, End::Completed | End::Unfinished);
            if let Some((arrival, was_counted)) = is_over.then(|| chain.open.remove(&job.number)).flatten() {
                chain.count(arrival, None, was_counted, horizon);
                let counts = chain.deadline.is_none_or(|deadline| arrival + deadline <= horizon);
                chain.counted.lost += u64::from(counts);
            }
        }
    }
}
