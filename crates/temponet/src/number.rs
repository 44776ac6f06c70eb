//! Numbers of a row, beside its discrete features: what bins are too coarse for, and sums over the other jobs.
//!
//! Times are in units of the set's scale and are compressed: sign(x) · ln(1 + 4·|x|) / 2. Work is compared with what
//! the cores can do until the deadline of the row.

use serde::{Deserialize, Serialize};

/// A number that a network reads of each job row. New ones are added at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    /// Time to the deadline.
    Due,
    /// Time from one release of the task to the next, in the mean.
    Gap,
    /// The wcet.
    Wcet,
    /// The wcet as a share of the gap.
    Share,
    /// Remaining wcet.
    Remaining,
    /// Expected remaining execution time, given what the job has executed.
    Expected,
    /// Least remaining execution time.
    Least,
    /// Slack by the remaining wcet.
    Slack,
    /// Slack by the expected remaining time.
    ExpectedSlack,
    /// Slack by the least remaining time.
    LeastSlack,
    /// Executed time as a share of the wcet.
    Executed,
    /// Probability that the job completes in time if it runs from now on.
    Chance,
    /// Remaining wcets of the ready jobs that are due no later.
    WorkBefore,
    /// Expected remaining times of the ready jobs that are due no later.
    ExpectedBefore,
    /// The same with the coming jobs that are due no later.
    ComingBefore,
    /// Expected work that is released until the deadline.
    Inflow,
    /// Number of ready jobs that are due earlier, per core.
    Earlier,
    /// Number of ready jobs with less remaining work, per core.
    Shorter,
    /// Time to the deadline of the next job of the task.
    NextDue,
    /// Time to the release; 0 for a ready job.
    Start,
    /// Number of ready jobs per core.
    Ready,
    /// 1 for a job that is running, else 0.
    Running,
    /// 1 for a job that has run, else 0.
    HasRun,
    /// Worth of the job under the goal of the set, relative to the mean over the tasks: its logarithm to base 16.
    Worth,
    /// 1 for a job of the highest level of criticality, 1/2 for one of the second, and so on; 0 for one of none.
    Level,
    /// Cost of running the job now: a context switch unless it is running, and a migration if another job is on its
    /// core; 0 below 1/1024 of the set's unit of time.
    Cost,
    /// Load per core of all tasks whose jobs take no longer, relative to their value, than this job.
    Rank,
    /// Number of ready jobs with more worth for their expected remaining time, per core.
    Denser,
    /// Time that the jobs after this one in its chain still need when it completes.
    Lead,
    /// Windows of the (m,k) constraint that a miss loses, per job of a window.
    AtStake,
    /// One over the number of misses in a row that lose a window of the (m,k) constraint; 0 without one.
    Closeness,
    /// Expected remaining times of the ready jobs that are due no later and of no lower level of criticality.
    LevelBefore,
}

impl Number {
    /// Every number, in the order of [`crate::stages::Tokenizer::ahead`].
    pub const ALL: [Number; 32] = [
        Number::Due,
        Number::Gap,
        Number::Wcet,
        Number::Share,
        Number::Remaining,
        Number::Expected,
        Number::Least,
        Number::Slack,
        Number::ExpectedSlack,
        Number::LeastSlack,
        Number::Executed,
        Number::Chance,
        Number::WorkBefore,
        Number::ExpectedBefore,
        Number::ComingBefore,
        Number::Inflow,
        Number::Earlier,
        Number::Shorter,
        Number::NextDue,
        Number::Start,
        Number::Ready,
        Number::Running,
        Number::HasRun,
        Number::Worth,
        Number::Level,
        Number::Cost,
        Number::Rank,
        Number::Denser,
        Number::Lead,
        Number::AtStake,
        Number::Closeness,
        Number::LevelBefore,
    ];
}

/// Everything that the numbers of one row are computed from. Times are in units of the set's scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RowFacts {
    /// Time from now to the release; 0 for a ready job.
    pub start: f64,
    /// Time that the job has from now, or from its release, to its deadline.
    pub span: f64,
    pub gap: f64,
    pub wcet: f64,
    /// Remaining time by the wcet, the expected one and the least one.
    pub remaining: [f64; 3],
    /// Executed time as a share of the wcet.
    pub executed: f64,
    pub chance: f64,
    /// Work before the deadline: ready by wcet, ready as expected, the same with coming jobs, all that is released, and
    /// ready as expected without lower levels.
    pub work: [f64; 5],
    /// Ready jobs that are due earlier, those with less remaining work, all, and those with more worth for their time.
    pub jobs: [f64; 4],
    /// Number of cores, each counted by its speed.
    pub capacity: f64,
    pub is_running: bool,
    pub has_run: bool,
    pub worth: f64,
    /// Rank of the level of criticality, from 1; 0 for none.
    pub level: u16,
    pub cost: f64,
    /// Load per core of the tasks that are no dearer.
    pub rank: f64,
    /// Time that its successors need.
    pub lead: f64,
    /// [`Number::AtStake`] and [`Number::Closeness`].
    pub firm: (f32, f32),
}

impl RowFacts {
    /// Returns all numbers of the row, in the order of [`Number::ALL`].
    pub fn numbers(&self) -> [f32; Number::ALL.len()] {
        let RowFacts { start, span, gap, remaining: [most, expected, least], work, jobs, capacity, .. } = *self;
        let due = start + span;
        let share_of_time = 1.0 / (capacity * due).max(f64::MIN_POSITIVE);
        let times = compressed([
            due,
            gap,
            self.wcet,
            most,
            expected,
            least,
            span - most,
            span - expected,
            span - least,
            jobs[0] / capacity,
            jobs[1] / capacity,
            due + gap,
            start,
            jobs[2] / capacity,
            if self.cost < LEAST_COST { 0.0 } else { self.cost },
            jobs[3] / capacity,
        ]);
        let [due, gap, wcet, most, expected, least, slack, expected_slack, least_slack, ..] = times;
        let [.., earlier, shorter, next_due, start, ready, cost, denser] = times;
        let [work_before, expected_before, coming_before, inflow, level_before] =
            work.map(|work| (work * share_of_time).min(4.0) as f32);
        let mut numbers = [0.0; Number::ALL.len()];
        let mut set = |number: Number, value: f32| numbers[number as usize] = value;
        set(Number::Due, due);
        set(Number::Gap, gap);
        set(Number::Wcet, wcet);
        set(Number::Share, (self.wcet / self.gap.max(f64::MIN_POSITIVE)).min(4.0) as f32);
        set(Number::Remaining, most);
        set(Number::Expected, expected);
        set(Number::Least, least);
        set(Number::Slack, slack);
        set(Number::ExpectedSlack, expected_slack);
        set(Number::LeastSlack, least_slack);
        set(Number::Executed, self.executed.min(4.0) as f32);
        set(Number::Chance, self.chance as f32);
        set(Number::WorkBefore, work_before);
        set(Number::ExpectedBefore, expected_before);
        set(Number::ComingBefore, coming_before);
        set(Number::Inflow, inflow);
        set(Number::Earlier, earlier);
        set(Number::Shorter, shorter);
        set(Number::NextDue, next_due);
        set(Number::Start, start);
        set(Number::Ready, ready);
        set(Number::Running, f32::from(u8::from(self.is_running)));
        set(Number::HasRun, f32::from(u8::from(self.has_run)));
        set(Number::Worth, if self.worth == 1.0 { 0.0 } else { compressed_worth(self.worth) });
        set(Number::Level, if self.level == 0 { 0.0 } else { 1.0 / f32::from(self.level) });
        set(Number::Cost, cost);
        set(Number::Rank, self.rank.min(4.0) as f32);
        set(Number::Denser, denser);
        set(Number::Lead, if self.lead == 0.0 { 0.0 } else { compressed_time(self.lead as f32) });
        set(Number::AtStake, self.firm.0);
        set(Number::Closeness, self.firm.1);
        set(Number::LevelBefore, level_before);
        numbers
    }
}

/// What the numbers of a row are computed from that changes from moment to moment, where the others are those of its task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// As in [`RowFacts`].
    pub start: f64,
    pub span: f64,
    pub gap: f64,
    pub capacity: f64,
    pub work: [f64; 5],
    pub firm: (f32, f32),
    /// Compressed numbers of the jobs of [`RowFacts::jobs`] per core.
    pub jobs: [f32; 4],
}

/// What the numbers of a ready job are computed from that depends on how far it has got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// As in [`RowFacts`].
    pub remaining: [f64; 3],
    pub executed: f64,
    pub chance: f64,
    pub cost: f64,
    pub is_running: bool,
    pub has_run: bool,
}

impl Moment {
    /// Sets the numbers of the row of a job that comes, which are those of its task.
    pub fn set_coming(&self, numbers: &mut [f32; Number::ALL.len()]) {
        let due = self.start + self.span;
        let [due, next_due, start, _] = compressed([due, due + self.gap, self.start, 0.0]);
        numbers[Number::Due as usize] = due;
        numbers[Number::NextDue as usize] = next_due;
        numbers[Number::Start as usize] = start;
        self.set_others(numbers);
    }

    /// Sets the numbers of the row of a ready job, which are those of its task.
    pub fn set_ready(&self, progress: &Progress, numbers: &mut [f32; Number::ALL.len()]) {
        let (due, span, [most, expected, least]) = (self.start + self.span, self.span, progress.remaining);
        let times = [due, due + self.gap, most, expected, least, span - most, span - expected, span - least];
        let of = [
            Number::Due,
            Number::NextDue,
            Number::Remaining,
            Number::Expected,
            Number::Least,
            Number::Slack,
            Number::ExpectedSlack,
            Number::LeastSlack,
        ];
        for (number, value) in of.into_iter().zip(compressed(times)) {
            numbers[number as usize] = value;
        }
        if progress.cost >= LEAST_COST {
            numbers[Number::Cost as usize] = compressed_time(progress.cost as f32);
        } else {
            numbers[Number::Cost as usize] = compressed_time(0.0);
        }
        numbers[Number::Executed as usize] = progress.executed.min(4.0) as f32;
        numbers[Number::Chance as usize] = progress.chance as f32;
        numbers[Number::Running as usize] = f32::from(u8::from(progress.is_running));
        numbers[Number::HasRun as usize] = f32::from(u8::from(progress.has_run));
        self.set_others(numbers);
    }

    fn set_others(&self, numbers: &mut [f32; Number::ALL.len()]) {
        let share_of_time = 1.0 / (self.capacity * (self.start + self.span)).max(f64::MIN_POSITIVE);
        let work = self.work.map(|work| (work * share_of_time).min(4.0) as f32);
        let of =
            [Number::WorkBefore, Number::ExpectedBefore, Number::ComingBefore, Number::Inflow, Number::LevelBefore];
        of.into_iter().zip(work).for_each(|(number, value)| numbers[number as usize] = value);
        let of = [Number::Earlier, Number::Shorter, Number::Ready, Number::Denser];
        of.into_iter().zip(self.jobs).for_each(|(number, value)| numbers[number as usize] = value);
        numbers[Number::AtStake as usize] = self.firm.0;
        numbers[Number::Closeness as usize] = self.firm.1;
    }
}

/// Compressed numbers of jobs per core, by the number of jobs, for each capacity that was met last. They are the same at
/// every decision of a system.
#[derive(Debug, Default)]
pub(crate) struct JobsPerCore {
    tables: Vec<(f64, Vec<f32>)>,
    /// Table of the present decision.
    current: usize,
}

/// Capacities whose tables are kept.
const MOST_TABLES: usize = 16;

impl JobsPerCore {
    /// Prepares for a decision with this capacity and at most this many jobs.
    pub fn prepare(&mut self, capacity: f64, most: usize) {
        let same = |(known, _): &(f64, Vec<f32>)| known.to_bits() == capacity.to_bits();
        self.current = self.tables.iter().position(same).unwrap_or_else(|| {
            if self.tables.len() == MOST_TABLES {
                self.tables.clear();
            }
            self.tables.push((capacity, Vec::new()));
            self.tables.len() - 1
        });
        let table = &mut self.tables[self.current].1;
        while table.len() <= most {
            let jobs: [f64; 16] = std::array::from_fn(|place| (table.len() + place) as f64 / capacity);
            table.extend(compressed(jobs));
        }
    }

    /// Returns the number of a number of jobs.
    #[inline]
    pub fn of(&self, jobs: usize) -> f32 {
        self.tables[self.current].1[jobs]
    }
}

/// Logarithm of a relative worth to base 16.
fn compressed_worth(worth: f64) -> f32 {
    (worth.max(f64::MIN_POSITIVE).log2().clamp(-16.0, 16.0) / 4.0) as f32
}

/// Least cost that is seen, in units of the scale. Below it moving costs nothing that could count, and nothing may change.
const LEAST_COST: f64 = 1.0 / 1024.0;

/// Greatest magnitude of a time, in units of the scale; beyond it times are not told apart.
const LIMIT: f32 = 1e6;

/// Compresses times. All at once, in a number that fills the processor's wide registers.
fn compressed<const N: usize>(times: [f64; N]) -> [f32; N] {
    times.map(|time| time as f32).map(compressed_time)
}

#[inline]
fn compressed_time(x: f32) -> f32 {
    let magnitude = if x.abs() < LIMIT { x.abs() } else { LIMIT };
    log2(1.0 + 4.0 * magnitude).copysign(x) * (std::f32::consts::LN_2 / 2.0)
}

/// Logarithm to base 2 of a normal positive number, within 3e-6, by the series of artanh around √2. It is much faster
/// than that of the standard library and the same on every machine.
#[inline]
fn log2(x: f32) -> f32 {
    let exponent = (x.to_bits() >> 23) as i32 - 127;
    let mantissa = f32::from_bits((x.to_bits() & 0x7F_FFFF) | 0x3F80_0000);
    let s = (mantissa - std::f32::consts::SQRT_2) / (mantissa + std::f32::consts::SQRT_2);
    let series = s * (1.0 + s * s * (1.0 / 3.0 + s * s / 5.0));
    exponent as f32 + 0.5 + series * (2.0 * std::f32::consts::LOG2_E)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_logarithm_is_a_logarithm() {
        for k in 0..100_000 {
            let x = 1.0 + (k as f32) * 0.37 + (k as f32).powi(2) * 1e-3;
            assert!((log2(x) - x.log2()).abs() < 1e-5 * (1.0 + x.log2()), "{x}: {}", log2(x));
        }
        let compressed = |x: f64| compressed([x; 16])[7];
        assert_eq!((compressed(0.0).abs() < 3e-6, compressed(-2.0)), (true, -compressed(2.0)));
        assert!(compressed(f64::INFINITY).is_finite() && compressed(3.0) > compressed(2.9));
    }
}
