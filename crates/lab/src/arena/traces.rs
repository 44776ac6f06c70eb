//! Job lists of the arena: video streams with groups of pictures, and requests to an inference server. No training
//! range draws such patterns.
//!
//! Schedulers see a job when it is released, never the rest of the list.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;
use temponet_task::{Arrival, Estimate, ListedJob, Preemption, Task, TaskSet, Time};

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
    /// Tail index of lengths that are Pareto; either this or `sigma`.
    pub shape: Option<f64>,
    /// Deviation of the logarithm of lengths that are log-normal.
    pub sigma: Option<f64>,
    /// Longest length as a multiple of the shortest one, or of the median if they are log-normal.
    pub longest: f64,
    /// Kinds of requests, equally frequent: relative deadline as a multiple of the mean length, and value.
    pub kinds: Vec<(f64, f64)>,
    /// What can be done with a request that has begun: nothing, or to give it up at its deadline. Clients of such a
    /// server state no limits. Without it a request can be preempted at any time.
    pub begun: Option<Begun>,
    /// Error of estimates, as the deviation of the logarithm; without it there are no estimates.
    pub estimate_error: Option<f64>,
    /// Multiple of its own length by which each request has more time than its kind says.
    #[serde(default)]
    pub time_for_length: f64,
}

/// What can be done with a request that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Begun {
    /// Nothing: it keeps its core until it completes.
    None,
    /// It is given up at its deadline.
    Cancel,
}

/// Number of standard deviations from the median to the ninth decile of a normal distribution.
const NINTH_DECILE: f64 = 1.281_551_565_544_600_4;

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
        if self.shape.is_some() == self.sigma.is_some() {
            return Some("requests: lengths have either a shape or a sigma".into());
        }
        if self.shape.is_some_and(|shape| !(0.1..=10.0).contains(&shape)) || !(1.0..=1e6).contains(&self.longest) {
            return Some("requests: shape is not from 0.1 to 10, or longest not from 1 to 1000000".into());
        }
        let is_bad = |kind: &(f64, f64)| !(0.01..=1e6).contains(&kind.0) || !(0.0..=1e9).contains(&kind.1);
        let deviations = [("sigma", self.sigma), ("estimate_error", self.estimate_error)];
        if let Some((name, _)) = deviations.iter().find(|(_, of)| of.is_some_and(|of| !(0.0..=5.0).contains(&of))) {
            return Some(format!("requests.{name} is not from 0 to 5"));
        }
        if !(0.0..=1e6).contains(&self.time_for_length) {
            return Some("requests.time_for_length is not from 0 to 1000000".into());
        }
        let is_wrong = self.kinds.is_empty() || self.kinds.iter().any(is_bad);
        is_wrong.then(|| "requests.kinds are not pairs of a deadline from 0.01 to 1000000 and a value".into())
    }

    /// Draws a set of about `jobs` requests on `cores` cores.
    pub(super) fn draw(&self, cores: usize, jobs: f64, seed: u64) -> TaskSet {
        let mut rng = Pcg64::seed_from_u64(seed);
        let gap = 1e3 * self.gap_us / cores as f64;
        let (mut now, mut lists) = (0.0, vec![Vec::new(); self.kinds.len()]);
        let length = |rng: &mut Pcg64| match (self.shape, self.sigma) {
            (Some(shape), _) => {
                let beyond = self.longest.powf(-shape);
                (beyond + (1.0 - beyond) * rng.random::<f64>()).powf(-1.0 / shape)
            }
            (None, sigma) => (sigma.unwrap_or(0.0) * normal(rng)).exp().min(self.longest),
        };
        let sample: Vec<f64> = (0..1000).map(|_| length(&mut rng)).collect();
        // The mean length keeps a core busy for one mean gap. The load of the scenario scales it.
        let unit = 1e3 * self.gap_us / (sample.iter().sum::<f64>() / 1000.0);
        for _ in 0..jobs as usize {
            now += -gap * (1.0 - rng.random::<f64>()).ln();
            let (kind, length) = (rng.random_range(0..self.kinds.len()), length(&mut rng));
            let (deadline, value) = self.kinds[kind];
            // A client states the most that it will take, as a power of four times the shortest length.
            let stated = 4_f64.powf(length.log(4.0).ceil()).max(1.0);
            let (most, told) = if self.begun.is_some() { (self.longest, 0.0) } else { (stated, stated) };
            let due = now + deadline * 1e3 * self.gap_us + (told + self.time_for_length * length) * unit;
            let mut job = job([now, due, length * unit, most * unit], value);
            if let Some(error) = self.estimate_error {
                let median = (length * (error * normal(&mut rng)).exp()).min(most);
                let high = (median * (NINTH_DECILE * error).exp()).min(most);
                let [median, high] = [median, high].map(|length| Time((length * unit).round().max(1.0) as u64));
                job = job.with_estimate(Estimate::new(median, high));
            }
            lists[kind].push(job);
        }
        let tasks = lists.into_iter().enumerate().filter(|(_, jobs)| !jobs.is_empty());
        let tasks = tasks.map(|(kind, jobs)| {
            let task = listed(format!("kind{kind}"), jobs);
            match self.begun {
                None => task,
                Some(Begun::None) => task.with_preemption(Preemption::None),
                Some(Begun::Cancel) => task.with_preemption(Preemption::Cancel),
            }
        });
        let tasks = tasks.collect();
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

    fn requests() -> Requests {
        Requests {
            gap_us: 1000.0,
            shape: Some(1.3),
            sigma: None,
            longest: 200.0,
            kinds: vec![(4.0, 1.0), (40.0, 1.0)],
            begun: None,
            estimate_error: None,
            time_for_length: 0.0,
        }
    }

    #[test]
    fn requests_of_a_server_are_not_preempted_and_have_estimates_but_no_limits() {
        let (sigma, estimate_error) = (Some(1.0), Some(0.5));
        let requests =
            Requests { shape: None, sigma, estimate_error, begun: Some(Begun::Cancel), longest: 20.0, ..requests() };
        assert_eq!(requests.problem(), None);
        assert!(Requests { sigma: Some(-1.0), ..requests.clone() }.problem().unwrap().contains("sigma"));
        let set = requests.draw(4, 4_000.0, 9);
        assert!(set.system.validate().is_ok() && set.system.is_server());
        let all: Vec<ListedJob> = set.tasks().iter().flat_map(|task| jobs(task).to_vec()).collect();
        assert!(all.iter().all(|job| job.wcet == all[0].wcet), "nothing is said of how long one takes at most");
        let above = all.iter().filter(|job| job.estimate.unwrap().high() >= job.execution).count();
        assert!((3_450..3_750).contains(&above), "{above} of 4000 are within the ninth decile");
        let in_time = Requests { time_for_length: 3.0, kinds: vec![(0.01, 1.0)], ..requests };
        let set = in_time.draw(4, 1_000.0, 9);
        assert!(jobs(&set.tasks()[0]).iter().all(|job| (job.deadline - job.release).0 >= 3 * job.execution.0));
    }

    #[test]
    fn requests_have_a_heavy_tail_and_honest_limits() {
        let requests = requests();
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
