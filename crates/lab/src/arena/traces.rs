//! Job lists of the arena: video streams with groups of pictures, and requests to an inference server. No training
//! range draws such patterns.
//!
//! Schedulers see a job when it is released, never the rest of the list.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;
use temponet_task::{Arrival, ListedJob, Task, TaskSet, Time};

/// Video streams that are decoded frame by frame, in groups of I, P and B frames.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Least and greatest number of streams, in turn.
    pub streams: [usize; 2],
    /// Frames per second, which the streams have in turn.
    pub rates: Vec<u32>,
    /// Types of the frames of a group, such as `IBBPBBPBB`.
    pub pattern: String,
    /// Relative deadline in frames of the stream.
    pub deadline: f64,
}

/// Requests that arrive at random and take lengths with a heavy tail.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Mean time between requests per core, in microseconds.
    pub gap_us: f64,
    /// Tail index of the lengths, which are Pareto.
    pub shape: f64,
    /// Longest length as a multiple of the shortest one.
    pub longest: f64,
    /// Kinds of requests, equally frequent: relative deadline as a multiple of the mean length, and value.
    pub kinds: Vec<(f64, f64)>,
}

/// Mean work of an I, P and B frame, relative to each other, and their values: without an I frame, a whole group is
/// lost.
const FRAME_TYPES: [(char, f64, f64); 3] = [('I', 3.0, 9.0), ('P', 1.5, 3.0), ('B', 1.0, 1.0)];
/// Wcet of a frame as a multiple of the mean work of its type. Longer frames are cut to it.
const FRAME_WCET: f64 = 2.2;
/// Deviation of the logarithm of the work of a frame.
const FRAME_DEVIATION: f64 = 0.3;

impl Frames {
    /// Returns what is wrong with the numbers, or `None`.
    pub fn problem(&self) -> Option<String> {
        let [least, most] = self.streams;
        if least < 1 || least > most || most > 10_000 {
            return Some("frames.streams are not [LEAST, MOST] from 1 to 10000".into());
        }
        if self.rates.is_empty() || self.rates.iter().any(|rate| !(1..=1000).contains(rate)) {
            return Some("frames.rates are not from 1 to 1000 frames per second".into());
        }
        if self.pattern.is_empty() || !self.pattern.chars().all(|kind| FRAME_TYPES.iter().any(|of| of.0 == kind)) {
            return Some(format!("frames.pattern = {:?} has other letters than I, P and B", self.pattern));
        }
        (!(0.1..=100.0).contains(&self.deadline)).then(|| "frames.deadline is not from 0.1 to 100 frames".into())
    }

    /// Draws the set with this number: about `jobs` frames on `cores` cores.
    pub(super) fn draw(&self, number: u64, cores: usize, jobs: f64, seed: u64) -> TaskSet {
        let mut rng = Pcg64::seed_from_u64(seed);
        let [least, most] = self.streams;
        let streams = least + number as usize % (most - least + 1);
        let rates: Vec<f64> = (0..streams).map(|stream| f64::from(self.rates[stream % self.rates.len()])).collect();
        let seconds = jobs / rates.iter().sum::<f64>();
        let kinds: Vec<char> = self.pattern.chars().collect();
        let task = |(stream, rate): (usize, &f64)| {
            let gap = 1e9 / rate;
            // Streams of different sizes, each at a place of its own within a group and within a frame.
            let size = 1e5 * (1.0 + 4.0 * rng.random::<f64>());
            let (place, phase) = (rng.random_range(0..kinds.len()), rng.random::<f64>());
            let frames = (0..(seconds * rate).round().max(1.0) as usize).map(|frame| {
                let kind = kinds[(place + frame) % kinds.len()];
                let (_, work, value) = FRAME_TYPES.into_iter().find(|of| of.0 == kind).unwrap_or(FRAME_TYPES[0]);
                let wcet = size * work * FRAME_WCET;
                let execution = (size * work * (FRAME_DEVIATION * normal(&mut rng)).exp()).min(wcet);
                let release = (frame as f64 + phase) * gap;
                job([release, release + self.deadline * gap, execution, wcet], value)
            });
            listed(format!("stream{stream}"), frames.collect())
        };
        let tasks = rates.iter().enumerate().map(task).collect();
        TaskSet::new(format!("frames-{seed}"), tasks, cores)
    }
}

impl Requests {
    /// Returns what is wrong with the numbers, or `None`.
    pub fn problem(&self) -> Option<String> {
        if !(1.0..=1e9).contains(&self.gap_us) {
            return Some("requests.gap_us is not from 1 to 1000000000".into());
        }
        if !(0.1..=10.0).contains(&self.shape) || !(1.0..=1e6).contains(&self.longest) {
            return Some("requests: shape is not from 0.1 to 10, or longest not from 1 to 1000000".into());
        }
        let is_bad = |kind: &(f64, f64)| !(0.01..=1e6).contains(&kind.0) || !(0.0..=1e9).contains(&kind.1);
        let is_wrong = self.kinds.is_empty() || self.kinds.iter().any(is_bad);
        is_wrong.then(|| "requests.kinds are not pairs of a deadline from 0.01 to 1000000 and a value".into())
    }

    /// Draws a set of about `jobs` requests on `cores` cores.
    pub(super) fn draw(&self, cores: usize, jobs: f64, seed: u64) -> TaskSet {
        let mut rng = Pcg64::seed_from_u64(seed);
        let gap = 1e3 * self.gap_us / cores as f64;
        let (mut now, mut lists) = (0.0, vec![Vec::new(); self.kinds.len()]);
        let beyond = self.longest.powf(-self.shape);
        let length = |rng: &mut Pcg64| (beyond + (1.0 - beyond) * rng.random::<f64>()).powf(-1.0 / self.shape);
        let sample: Vec<f64> = (0..1000).map(|_| length(&mut rng)).collect();
        // The mean length keeps a core busy for one mean gap. The load of the scenario scales it.
        let unit = 1e3 * self.gap_us / (sample.iter().sum::<f64>() / 1000.0);
        for _ in 0..jobs as usize {
            now += -gap * (1.0 - rng.random::<f64>()).ln();
            let (kind, length) = (rng.random_range(0..self.kinds.len()), length(&mut rng));
            let (deadline, value) = self.kinds[kind];
            // A client states the most that it will take, as a power of four times the shortest length.
            let stated = 4_f64.powf(length.log(4.0).ceil()).max(1.0);
            let due = now + deadline * 1e3 * self.gap_us + stated * unit;
            lists[kind].push(job([now, due, length * unit, stated * unit], value));
        }
        let tasks = lists.into_iter().enumerate().filter(|(_, jobs)| !jobs.is_empty());
        let tasks = tasks.map(|(kind, jobs)| listed(format!("kind{kind}"), jobs)).collect();
        TaskSet::new(format!("requests-{seed}"), tasks, cores)
    }
}

/// Creates a job from its release, deadline, execution time and wcet, in nanoseconds, and its value.
fn job(times: [f64; 4], value: f64) -> ListedJob {
    let [release, deadline, execution, wcet] = times.map(|time| Time(time.round().max(1.0) as u64));
    ListedJob::new(release, deadline, execution.min(wcet)).with_wcet(wcet).with_bcet(Time(1)).with_value(value)
}

/// Creates the task of a list of jobs, which must be sorted by release.
fn listed(name: String, jobs: Vec<ListedJob>) -> Task {
    let window = jobs.iter().map(|job| job.deadline - job.release).max().unwrap_or_default();
    let wcet = jobs.iter().map(|job| job.wcet).max().unwrap_or(Time(1));
    let value = jobs.iter().map(|job| job.value).fold(0.0, f64::max);
    let arrival = Arrival::Listed(jobs.into());
    Task::periodic(name, window, wcet).with_arrival(arrival).with_bcet(Time(1)).with_deadline(window).with_value(value)
}

/// Draws a number that is close to normal, as the sum of twelve uniform ones.
fn normal(rng: &mut Pcg64) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(task: &Task) -> &[ListedJob] {
        match &task.arrival {
            Arrival::Listed(jobs) => jobs,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn frames_come_in_groups() {
        let pattern = "IBBPBB".to_string();
        let frames = Frames { streams: [4, 6], rates: vec![25, 50], pattern, deadline: 1.0 };
        assert_eq!(frames.problem(), None);
        let set = frames.draw(2, 2, 1_000.0, 9);
        assert_eq!((set.tasks().len(), set.system.validate()), (6, Ok(())));
        for task in set.tasks() {
            let jobs = jobs(task);
            let first = jobs.iter().position(|job| job.value == 9.0).unwrap();
            assert!(jobs.iter().skip(first).step_by(6).all(|job| job.value == 9.0 && job.wcet == task.wcet));
            assert!(jobs.iter().all(|job| job.execution <= job.wcet && job.release < job.deadline));
        }
        let count: usize = set.tasks().iter().map(|task| jobs(task).len()).sum();
        assert!((950..=1050).contains(&count), "{count}");
        assert_eq!(set, frames.draw(2, 2, 1_000.0, 9));
    }

    #[test]
    fn requests_have_a_heavy_tail_and_honest_limits() {
        let requests = Requests { gap_us: 1000.0, shape: 1.3, longest: 200.0, kinds: vec![(4.0, 1.0), (40.0, 1.0)] };
        assert_eq!(requests.problem(), None);
        let set = requests.draw(4, 4_000.0, 9);
        assert_eq!((set.tasks().len(), set.system.validate()), (2, Ok(())));
        let all: Vec<ListedJob> = set.tasks().iter().flat_map(|task| jobs(task).to_vec()).collect();
        assert_eq!(all.len(), 4_000);
        assert!(all.iter().all(|job| job.execution <= job.wcet && job.wcet.0 <= 5 * job.execution.0.max(1)));
        let mut lengths: Vec<u64> = all.iter().map(|job| job.execution.0).collect();
        lengths.sort_unstable();
        assert!(lengths[3_960] > 10 * lengths[2_000], "one in a hundred is ten times the median");
        assert!((0.7..1.3).contains(&(set.mean_utilization() / 4.0)), "{}", set.mean_utilization());
    }
}
