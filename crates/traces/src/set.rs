//! Tasks from the jobs of each, and the task set of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use temponet_task::{
    Arrival, Attribute, Core, CoreId, CoreSet, ExecutionModel, Gap, OnMiss, Speed, Task, TaskId, TaskSet, Time,
};
use temponet_wording::{counted, verb};

use crate::arrivals::{Arrivals, FEWEST};
use crate::collect::{Collected, Key};
use crate::edges::{Incoming, Node, edges};
use crate::notes::Reading;
use crate::ros::Trigger;
use crate::{Options, TaskBy};

/// Most measured times in a file, per task.
const MOST_SAMPLES: usize = 256;
/// Most cores of a set.
const MOST_CORES: usize = 4096;
/// Fewest jobs from which the processors of a task are taken for those that it may use.
const FEWEST_FOR_CORES: u64 = 20;
/// Fewest jobs on which a largest time rests without a note.
pub(crate) const FEW: u64 = 30;
/// Largest kernel priority of real-time threads, and the number from which they count down.
const REAL_TIME: i32 = 99;

/// How the jobs of a task arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// At a fixed period.
    Periodic {
        /// Standard deviation of the releases from the period, in nanoseconds.
        residual: f64,
        /// Confidence that they are not at random, 0 to 1.
        confidence: f64,
        /// Period as fitted, in nanoseconds, before it was rounded within its error.
        fitted: f64,
    },
    /// At varying gaps.
    Sporadic {
        /// Mean gap in nanoseconds.
        mean: f64,
        /// Longest gap.
        longest: Time,
        /// Standard deviation of the gaps, in nanoseconds.
        residual: f64,
        /// Confidence that they are not at random, which did not suffice for a period, 0 to 1.
        confidence: f64,
    },
    /// When a job of another task completes.
    Follows {
        /// Index of that task.
        after: usize,
    },
}

impl Kind {
    /// Standard deviation of the releases or of the gaps in nanoseconds; 0 for a task that follows another.
    pub fn residual(&self) -> f64 {
        match self {
            Kind::Periodic { residual, .. } | Kind::Sporadic { residual, .. } => *residual,
            Kind::Follows { .. } => 0.0,
        }
    }

    /// Confidence in a period, 0 to 1; 0 for a task that follows another.
    pub fn confidence(&self) -> f64 {
        match self {
            Kind::Periodic { confidence, .. } | Kind::Sporadic { confidence, .. } => *confidence,
            Kind::Follows { .. } => 0.0,
        }
    }
}

/// A task as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Name, that of the task in the set.
    pub name: String,
    /// How its jobs arrive.
    pub kind: Kind,
    /// Period, or the shortest gap.
    pub period: Time,
    /// Number of jobs that count.
    pub jobs: u64,
    /// Number of jobs that do not.
    pub dropped: u64,
    /// Median processor time of a job.
    pub median: Time,
    /// Largest processor time of a job.
    pub most: Time,
    /// Smallest processor time of a job.
    pub least: Time,
    /// Longest time from a release to the end of the job.
    pub longest_response: Time,
    /// Processor time of all jobs.
    pub total: Time,
    /// Number of measured times in the set.
    pub samples: usize,
    /// Processors of the trace that it ran on.
    pub processors: Vec<u32>,
    /// Policy and priority, as far as the trace says them.
    pub policy: Option<String>,
    /// Number of the thread, if the task is one.
    pub thread: Option<i32>,
    /// Indices of the tasks whose values it reads.
    pub reads: Vec<usize>,
    /// What the set does not represent of this task.
    pub notes: Vec<String>,
}

impl Found {
    /// Share of a core that its jobs took, in a trace of this length in nanoseconds.
    pub fn share(&self, length: u64) -> f64 {
        self.total.0 as f64 / length.max(1) as f64
    }
}

/// Builds the set, with its tasks as they were found and notes on the whole.
pub(crate) fn build(
    reading: &Reading<'_>,
    options: &Options,
    name: String,
) -> Result<(TaskSet, Vec<Found>, Vec<String>), String> {
    let all = &reading.collector.tasks;
    let mut notes = Vec::new();
    let stated = |task: &Collected| match task.key {
        Key::Callback(callback) => match reading.collector.ros.trigger(callback) {
            Trigger::Timer { period } => period,
            _ => None,
        },
        _ => None,
    };
    let arrivals = |task: &Collected| {
        let (releases, ends) = task.log.spans();
        Arrivals::of(&releases, &ends, stated(task))
    };
    let with_arrivals: Vec<Option<Arrivals>> = all.iter().map(arrivals).collect();
    let incoming = incoming(reading, all);
    let chosen: Vec<usize> =
        (0..all.len()).filter(|at| with_arrivals[*at].is_some() && all[*at].log.total > 0).collect();
    if chosen.is_empty() {
        return Err(none_found(reading));
    }
    let place: BTreeMap<usize, usize> = chosen.iter().enumerate().map(|(to, from)| (*from, to)).collect();
    let processors: BTreeSet<u32> = chosen.iter().flat_map(|at| all[*at].log.cpus.iter().copied()).collect();
    let processors: Vec<u32> = processors.into_iter().collect();
    let is_free = options.cores.is_some() || processors.len() > MOST_CORES;
    let cores = options.cores.map_or(processors.len().clamp(1, MOST_CORES), usize::from);
    if processors.is_empty() && options.cores.is_none() {
        notes.push("the trace names no processors: the set has one core; --cores states another number".into());
    }
    let mut context = Context { reading, processors: &processors, is_free, names_cores: false };
    context.names_cores = !is_free && processors.iter().zip(0..).any(|(cpu, core)| *cpu != core);
    let (mut tasks, mut found): (Vec<Task>, Vec<Found>) = (Vec::new(), Vec::new());
    for at in &chosen {
        let Some(arrivals) = &with_arrivals[*at] else { continue };
        let (task, mut of) = context.task(&all[*at], arrivals);
        let edges = &incoming[*at];
        of.reads = edges.reads.iter().filter_map(|from| place.get(from).copied()).collect();
        if let Some(why) = &edges.why {
            of.notes.push(format!("reads instead of coming after: {why}"));
        }
        let missing = edges.after.iter().chain(&edges.reads).filter(|from| !place.contains_key(from)).count();
        if missing > 0 {
            of.notes.push(format!("{} before it are not in the set", counted(missing, "callback")));
        }
        if let Some(before) = edges.after.and_then(|from| place.get(&from)) {
            of.kind = Kind::Follows { after: *before };
        }
        tasks.push(task);
        found.push(of);
    }
    follow(&mut tasks, &mut found);
    for (task, of) in tasks.iter_mut().zip(&found) {
        task.reads = of.reads.iter().map(|from| TaskId::new(*from)).collect();
    }
    let mut set = TaskSet::new(name, tasks, cores);
    set.system.set_on_miss(OnMiss::Continue);
    if context.names_cores {
        set.system.set_machine(processors.iter().map(|cpu| Core::new(format!("cpu{cpu}"), Speed::FULL)).collect());
    }
    notes.extend(on_cores(&found, &processors, options));
    Ok((set, found, notes))
}

/// Edges of publications, if tasks are callbacks.
fn incoming(reading: &Reading<'_>, all: &[Collected]) -> Vec<Incoming> {
    if reading.task_by != TaskBy::Callback {
        return vec![Incoming::default(); all.len()];
    }
    let ros = &reading.collector.ros;
    let nodes: Vec<Node> = all
        .iter()
        .map(|task| Node {
            trigger: match task.key {
                Key::Callback(callback) => ros.trigger(callback),
                _ => Trigger::Unknown,
            },
            jobs: task.log.count,
            dropped: task.log.dropped,
        })
        .collect();
    edges(&nodes, &ros.publications())
}

/// Tasks that come after others arrive with them, and have the period at the beginning of their chain.
fn follow(tasks: &mut [Task], found: &mut [Found]) {
    for at in 0..tasks.len() {
        let Kind::Follows { after } = found[at].kind else { continue };
        let mut source = after;
        // Circles have been cut.
        for _ in 0..tasks.len() {
            match found[source].kind {
                Kind::Follows { after } => source = after,
                _ => break,
            }
        }
        let of_source = tasks[source].clone();
        let task = &mut tasks[at];
        task.after = vec![TaskId::new(after)];
        task.arrival = of_source.arrival.clone();
        task.offset = of_source.offset;
        task.jitter = of_source.jitter;
        task.deadline = of_source.deadline;
        found[at].period = found[source].period;
    }
}

/// Why there is no task.
fn none_found(reading: &Reading<'_>) -> String {
    let collector = reading.collector;
    let counts = &collector.counts;
    let all = collector.tasks.len();
    if counts.outside > 0 {
        return format!("all {} are outside of --from and --to", counted(counts.outside as usize, "job"));
    }
    if all > 0 {
        let jobs: u64 = collector.tasks.iter().map(|task| task.log.count).sum();
        let dropped: u64 = collector.tasks.iter().map(|task| task.log.dropped).sum();
        let jobs = counted(jobs as usize, "complete job");
        if collector.tasks.iter().any(|task| task.log.count >= FEWEST as u64 && task.log.total == 0) {
            return format!("has {jobs} without any processor time: all begin and end at one date");
        }
        return format!(
            "has {jobs} of {} and {dropped} that lost events touch: a task needs {FEWEST} complete jobs of its own",
            counted(all, "task")
        );
    }
    if counts.tasks_left_out > 0 {
        return format!("--threads matches none of {}", counted(counts.tasks_left_out as usize, "task"));
    }
    let others: Vec<&str> = [
        (TaskBy::Thread, collector.threads.saw_switch),
        (TaskBy::Callback, counts.callbacks > 0),
        (TaskBy::Marker, counts.markers + counts.slices + counts.stretches > 0),
    ]
    .into_iter()
    .filter(|(by, is_there)| *is_there && *by != reading.task_by)
    .map(|(by, _)| by.name())
    .collect();
    let own = match reading.task_by {
        TaskBy::Thread => "sched_switch events",
        TaskBy::Callback => "callback_start events of ROS 2",
        TaskBy::Marker => "pairs of markers",
    };
    match &others[..] {
        [] => format!("has no {own}"),
        _ => format!("has no {own}: use --task-by {}", others.join(" or ")),
    }
}

fn on_cores(found: &[Found], processors: &[u32], options: &Options) -> Option<String> {
    let bound = found.iter().filter(|task| is_bound(task, processors)).count();
    (options.cores.is_none() && bound > 0).then(|| {
        let tasks = counted(bound, "task");
        let (was, them) = if bound == 1 { ("was", "it") } else { ("were", "them") };
        format!(
            "{tasks} {was} seen on some of the processors only, and `cores` binds {them} there: remove it where others are allowed, or state --cores"
        )
    })
}

fn is_bound(task: &Found, processors: &[u32]) -> bool {
    task.jobs >= FEWEST_FOR_CORES && !task.processors.is_empty() && task.processors.len() < processors.len()
}

/// What all tasks have in common.
struct Context<'a, 'b> {
    reading: &'a Reading<'b>,
    processors: &'a [u32],
    /// Whether tasks may use every core, whatever they were seen on.
    is_free: bool,
    names_cores: bool,
}

impl Context<'_, '_> {
    fn task(&self, collected: &Collected, arrivals: &Arrivals) -> (Task, Found) {
        let Collected { name, log, priority, key, tid } = collected;
        let mut notes = Vec::new();
        let period_of_jobs = match arrivals {
            Arrivals::Periodic(periodic) if self.reading.task_by == TaskBy::Thread => Some(periodic.period),
            _ => None,
        };
        let times = log.times(period_of_jobs);
        let most = Time(times.most.clamp(1, Time::MAX_INPUT.0));
        let median = Time(times.samples[times.samples.len() / 2]);
        if times.merged > 0 {
            notes.push(format!(
                "{} went on past the next release: {} of several jobs and left out, but for the share",
                counted(times.merged, "job"),
                verb(times.merged, "its time is that", "their times are those")
            ));
        }
        let samples = sampled(&times.samples, most);
        let mut task = Task::periodic(name.clone(), Time(1), most);
        let kind = match arrivals {
            Arrivals::Periodic(periodic) => {
                let period = periodic.period.clamp(1, Time::MAX_INPUT.0);
                task.arrival = Arrival::Periodic { period: Time(period) };
                task.deadline = Time(period);
                task.offset = Time(offset(periodic.phase, self.reading.origin, period));
                // A nanosecond or two are the clock's.
                let jitter = if periodic.jitter < 1_000 { 0 } else { periodic.jitter };
                task.jitter = Time(jitter);
                if periodic.beside > 0 {
                    notes.push(format!("{} came between those of the period", counted(periodic.beside, "release")));
                }
                if periodic.missing > 0 {
                    notes.push(format!("{} had no release", counted(periodic.missing as usize, "period")));
                }
                let (residual, confidence, fitted) = (periodic.residual, periodic.confidence, periodic.fitted);
                Kind::Periodic { residual, confidence, fitted }
            }
            Arrivals::Sporadic(sporadic) => {
                let least = Time(sporadic.least.clamp(1, Time::MAX_INPUT.0));
                let mean = Time((sporadic.mean.round() as u64).clamp(least.0, Time::MAX_INPUT.0));
                task.arrival = Arrival::Sporadic { minimum: least, gap: Gap::Exponential { mean } };
                task.deadline = least;
                if least < most {
                    task.deadline = mean;
                    notes.push(format!(
                        "its deadline is the mean gap {mean}, because no job of {most} fits into the shortest one, {least}"
                    ));
                }
                let (mean, residual, confidence) = (sporadic.mean, sporadic.deviation, sporadic.confidence);
                Kind::Sporadic { mean, longest: Time(sporadic.most), residual, confidence }
            }
        };
        task.bcet = samples.first().copied().unwrap_or(most).min(most);
        task.execution = match task.bcet == most {
            true => ExecutionModel::Wcet,
            false => ExecutionModel::Empirical { samples: Arc::from(&samples[..]) },
        };
        let policy = policy(*priority);
        if (0..REAL_TIME).contains(priority) {
            task.extra.set(Attribute::Priority, Some(i64::from(REAL_TIME - priority)));
        }
        let processors: Vec<u32> = log.cpus.iter().copied().collect();
        if log.count < FEW {
            notes.push(format!("its times rest on {} only", counted(log.count as usize, "job")));
        }
        if log.is_partial() {
            notes.push(format!("its period is that of its first {} jobs of {}", log.kept(), log.count));
        }
        if log.unwoken > 0 && self.reading.collector.threads.saw_wake {
            let jobs = counted(log.unwoken as usize, "job");
            let begin = verb(log.unwoken, "begins when it", "begin when they");
            notes.push(format!("{jobs} without a wake-up in the trace {begin} got a processor"));
        }
        if log.waited > 0 {
            let jobs = counted(log.waited as usize, "job");
            notes.push(format!("{jobs} waited in state D, for a disk or a lock of the kernel: not represented"));
        }
        let found = Found {
            name: name.clone(),
            kind,
            period: task.period().unwrap_or_default(),
            jobs: log.count,
            dropped: log.dropped,
            median,
            most,
            least: task.bcet,
            longest_response: Time(log.longest_response),
            total: Time(log.total),
            samples: samples.len(),
            processors,
            policy,
            thread: matches!(key, Key::Thread(..)).then_some(*tid),
            reads: Vec::new(),
            notes,
        };
        if !self.is_free && is_bound(&found, self.processors) {
            let core = |cpu: &u32| self.processors.iter().position(|known| known == cpu).map(CoreId::new);
            task.cores = CoreSet::of(found.processors.iter().filter_map(core));
        }
        (task, found)
    }
}

/// Returns at most 256 of the times, evenly over their order, with the largest one.
fn sampled(times: &[u64], most: Time) -> Vec<Time> {
    let count = times.len().min(MOST_SAMPLES);
    let middle = |at: usize| times[(2 * at + 1) * times.len() / (2 * count)];
    let mut samples: Vec<Time> = match count == times.len() {
        true => times.iter().map(|time| Time((*time).max(1))).collect(),
        false => (0..count).map(|at| Time(middle(at).max(1))).collect(),
    };
    if let Some(last) = samples.last_mut() {
        *last = most;
    }
    samples.iter_mut().for_each(|time| *time = (*time).min(most));
    samples
}

/// Date of the first arrival after the beginning of the trace.
fn offset(phase: u64, origin: u64, period: u64) -> u64 {
    let after = i128::from(phase) - i128::from(origin);
    after.rem_euclid(i128::from(period)) as u64
}

/// Policy and priority of a priority of the kernel. First in, first out and round robin look the same.
fn policy(priority: i32) -> Option<String> {
    match priority {
        -1 => Some("SCHED_DEADLINE".into()),
        0..=98 => Some(format!("SCHED_FIFO or SCHED_RR, priority {}", REAL_TIME - priority)),
        100..=139 => Some(format!("SCHED_OTHER, nice {}", priority - 120)),
        _ => None,
    }
}
