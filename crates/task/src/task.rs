//! A task: how its jobs arrive, how long they execute, and when they are due.

use alloc::{boxed::Box, string::String, vec::Vec};

#[cfg(not(feature = "std"))]
use crate::float::Float as _;
use alloc::sync::Arc;

use crate::{CoreSet, Estimate, Extra, LogNormal, Section, TaskId, Time};

/// A recurring activity that releases jobs. Tasks are independent unless they state precedence ([`Task::after`]) or
/// share resources ([`Task::sections`]).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Name, unique among the tasks of the set.
    pub name: String,
    /// Arrival pattern of the jobs.
    pub arrival: Arrival,
    /// Worst-case execution time.
    pub wcet: Time,
    /// Best-case execution time. Equal to `wcet` if execution times are known.
    pub bcet: Time,
    /// Average execution time, if known.
    pub acet: Option<Time>,
    /// Model of the true execution times.
    pub execution: ExecutionModel,
    /// Error of the estimates that jobs carry: standard deviation of the logarithm of estimate divided by execution
    /// time. `None` if jobs carry no estimates. Jobs of a list have estimates of their own.
    pub estimate_error: Option<f64>,
    /// Worst-case execution time at high criticality. Jobs may overrun `wcet` up to this time.
    pub wcet_high: Option<Time>,
    /// Relative deadline, counted from the arrival. May be longer than the period.
    pub deadline: Time,
    /// Time of the first arrival.
    pub offset: Time,
    /// Largest delay between the arrival and the release of a job. The deadline does not move with the release.
    pub jitter: Time,
    /// Criticality level. 0 is low; a task with a level above 0 is critical, the higher the more.
    pub criticality: u8,
    /// Whether the shield is to guarantee every deadline of this task, even where other tasks have to miss theirs. If
    /// no task of a set says so, it guarantees the most critical ones.
    pub guarantee: bool,
    /// Value of meeting one deadline. 1 by default.
    pub value: f64,
    /// (m,k)-firm constraint: at least m of any k consecutive jobs must meet their deadline.
    pub mk: Option<(u32, u32)>,
    /// Attributes that only some schedulers read, such as a priority.
    pub extra: Extra,
    /// Where a running job of this task can lose its core.
    pub preemption: Preemption,
    /// Tasks that this one follows: its job number k is released when job number k of each of them has
    /// completed. Such a task arrives with its sources; [`crate::System::follow_sources`] sets that.
    pub after: Vec<TaskId>,
    /// Tasks whose newest values the jobs of this task read. A read releases nothing; it matters for
    /// [`crate::Chain`]s.
    pub reads: Vec<TaskId>,
    /// Critical sections of every job, nested or apart.
    pub sections: Vec<Section>,
    /// Cores that jobs of this task may run on.
    pub cores: CoreSet,
    /// Whether its jobs are parts of those of the next task, which comes after this one. Such jobs do not count by
    /// themselves; see [`crate::System::whole`].
    pub is_part: bool,
}

/// Largest number of preemption points in one job.
const MOST_POINTS: u64 = 1_000_000;

/// Limits on the preemption of a task's jobs.
///
/// A job with a limit *holds* its core from its dispatch to its next preemption point or to its completion: no other
/// job takes the core, and the job does not migrate and cannot be removed, unless it can be cancelled. Preemption
/// points are counted in the job's own work, overhead not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// A job can be preempted at any time. This is the default.
    #[default]
    Free,
    /// A job runs to completion once it has started.
    None,
    /// Like [`Preemption::None`], but a job can be removed at any time: if late jobs are aborted, it leaves at its
    /// deadline.
    Cancel,
    /// A job can be preempted whenever its work reaches a multiple of this time, which is greater than zero.
    Every(Time),
}

impl Preemption {
    /// Returns whether a job is never preempted.
    pub fn is_never(self) -> bool {
        matches!(self, Preemption::None | Preemption::Cancel)
    }

    /// Returns whether jobs hold their cores at all.
    pub fn is_limited(self) -> bool {
        self != Preemption::Free
    }

    /// Returns the work at the next preemption point of a job that has done `executed` of its work and goes on from
    /// there; [`Time::NEVER`] if the job has no further point. A point at `executed` itself is behind the job.
    pub fn next_point(self, executed: Time) -> Time {
        match self {
            Preemption::Free | Preemption::None | Preemption::Cancel => Time::NEVER,
            Preemption::Every(every) => Time((executed.0 / every.0.max(1)).saturating_add(1).saturating_mul(every.0)),
        }
    }

    /// Returns whether a task with this wcet can have this limit: the work between two points is at least a nanosecond
    /// and a millionth of the wcet, because every point is a decision.
    pub fn is_usable(self, wcet: Time) -> bool {
        match self {
            Preemption::Free | Preemption::None | Preemption::Cancel => true,
            Preemption::Every(every) => {
                every > Time::ZERO && every <= Time::MAX_INPUT && wcet.0 / every.0 <= MOST_POINTS
            }
        }
    }

    /// Returns the longest time for which a job that takes `wcet` holds its core; zero without limits.
    pub fn longest_region(self, wcet: Time) -> Time {
        match self {
            Preemption::Free => Time::ZERO,
            Preemption::None | Preemption::Cancel => wcet,
            Preemption::Every(every) => every.min(wcet),
        }
    }
}

/// Arrival pattern of a task's jobs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arrival {
    /// Jobs arrive exactly every `period`.
    Periodic {
        /// Time between arrivals.
        period: Time,
    },
    /// Jobs arrive at least `minimum` apart.
    Sporadic {
        /// Minimum time between arrivals.
        minimum: Time,
        /// Distribution of the time between arrivals.
        gap: Gap,
    },
    /// A load peak: `jobs` jobs arrive at once, every `every`, before `until`.
    Burst {
        /// Number of jobs that arrive together.
        jobs: u32,
        /// Time between bursts.
        every: Time,
        /// End of the peak: no burst arrives at this time or later.
        until: Time,
    },
    /// Individual jobs, such as a recorded trace, sorted by release.
    Listed(Arc<[ListedJob]>),
}

/// Distribution of the time between two arrivals of a sporadic task, which is never below its minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// Uniform from the minimum to `max`.
    Uniform {
        /// Longest gap.
        max: Time,
    },
    /// The minimum plus an exponentially distributed time.
    Exponential {
        /// Mean gap, the minimum included.
        mean: Time,
    },
}

impl Gap {
    /// Returns the mean time between two arrivals, where `minimum` is the least one.
    pub fn mean(self, minimum: Time) -> Time {
        match self {
            Gap::Uniform { max } => Time((minimum.0 + max.0) / 2),
            Gap::Exponential { mean } => mean,
        }
    }
}

/// One job of a list, with the properties that otherwise come from its task.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ListedJob {
    /// Release time.
    pub release: Time,
    /// Absolute deadline.
    pub deadline: Time,
    /// True execution time, which schedulers do not see.
    pub execution: Time,
    /// Worst-case execution time that schedulers see; at least `execution`.
    pub wcet: Time,
    /// Best-case execution time that schedulers see.
    ///
    /// It equals the wcet if the list states no wcets at all, because execution times are then known; otherwise it is
    /// one nanosecond. It is never chosen per job, because that would reveal the execution time.
    pub bcet: Time,
    /// Criticality level; see [`Task::criticality`].
    pub criticality: u8,
    /// Value of meeting the deadline; see [`Task::value`].
    pub value: f64,
    /// Estimate of the execution time that schedulers see, if there is one.
    pub estimate: Option<Estimate>,
}

impl ListedJob {
    /// Creates a job whose execution time is known, of criticality 0 and value 1.
    pub fn new(release: Time, deadline: Time, execution: Time) -> ListedJob {
        ListedJob {
            release,
            deadline,
            execution,
            wcet: execution,
            bcet: execution,
            criticality: 0,
            value: 1.0,
            estimate: None,
        }
    }
}

replaced_fields! {
    ListedJob:
    with_release release: Time,
    with_deadline deadline: Time,
    with_execution execution: Time,
    with_wcet wcet: Time,
    with_bcet bcet: Time,
    with_criticality criticality: u8,
    with_value value: f64,
    with_estimate estimate: Option<Estimate>,
}

replaced_fields! {
    Task:
    with_name name: String,
    with_arrival arrival: Arrival,
    with_wcet wcet: Time,
    with_bcet bcet: Time,
    with_acet acet: Option<Time>,
    with_execution execution: ExecutionModel,
    with_estimate_error estimate_error: Option<f64>,
    with_wcet_high wcet_high: Option<Time>,
    with_deadline deadline: Time,
    with_offset offset: Time,
    with_jitter jitter: Time,
    with_criticality criticality: u8,
    with_guarantee guarantee: bool,
    with_value value: f64,
    with_mk mk: Option<(u32, u32)>,
    with_extra extra: Extra,
    with_preemption preemption: Preemption,
    with_after after: Vec<TaskId>,
    with_reads reads: Vec<TaskId>,
    with_sections sections: Vec<Section>,
    with_cores cores: CoreSet,
    with_is_part is_part: bool,
}

/// Model of the true execution times of a task's jobs.
///
/// Every model stays within `[bcet, wcet]` except [`ExecutionModel::Overrun`], with which jobs exceed their `wcet` at
/// the stated probability.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExecutionModel {
    /// Always the wcet. This is the only model that is not random.
    Wcet,
    /// Uniform between bcet and wcet.
    Uniform,
    /// Normal distribution with mean `acet` (or the middle of bcet and wcet). Values out of bounds are redrawn; after
    /// 64 draws, the time is drawn uniformly between bcet and wcet.
    Normal {
        /// Standard deviation.
        deviation: Time,
    },
    /// Weibull distribution that starts at bcet and has mean `acet`, truncated at the wcet: the estimator of the WATERS
    /// 2015 automotive benchmark.
    Weibull {
        /// Share of the probability mass beyond the wcet before truncation.
        exceed: f64,
    },
    /// Pareto distribution with least value bcet, truncated at the wcet.
    Pareto {
        /// Tail index α.
        shape: f64,
    },
    /// Log-normal distribution. Values out of bounds are moved to the bounds.
    Lognormal {
        /// Median.
        median: Time,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// One of two levels, such as a cache hit and a miss. Values out of bounds are moved to the bounds.
    Bimodal {
        /// Medians of the two levels.
        levels: [Time; 2],
        /// Probability of the second level, 0 to 1.
        probability: f64,
        /// Standard deviation of the logarithm around either level.
        spread: f64,
    },
    /// Measured times, drawn with replacement.
    Empirical {
        /// Measured execution times.
        samples: Arc<[Time]>,
    },
    /// Uniform from wcet to wcet_high with the given probability, otherwise drawn from `below`.
    Overrun {
        /// Probability that a job overruns its wcet, 0 to 1.
        probability: f64,
        /// Model of the jobs that do not overrun.
        below: Box<ExecutionModel>,
    },
}

impl ExecutionModel {
    /// Returns whether two jobs of the task can have different execution times.
    pub fn is_random(&self) -> bool {
        !matches!(self, ExecutionModel::Wcet)
    }
}

impl Task {
    /// Greatest error of estimates; see [`Task::estimate_error`]. Such an estimate says nothing.
    pub const MOST_ESTIMATE_ERROR: f64 = 10.0;
    /// Greatest standard deviation of the logarithm of an execution time.
    pub const MOST_SPREAD: f64 = 10.0;

    /// Creates a periodic task with an implicit deadline and a known execution time, the usual default in the field.
    pub fn periodic(name: impl Into<String>, period: Time, wcet: Time) -> Task {
        Task {
            name: name.into(),
            arrival: Arrival::Periodic { period },
            wcet,
            bcet: wcet,
            acet: None,
            execution: ExecutionModel::Wcet,
            estimate_error: None,
            wcet_high: None,
            deadline: period,
            offset: Time::ZERO,
            jitter: Time::ZERO,
            criticality: 0,
            guarantee: false,
            value: 1.0,
            mk: None,
            extra: Extra::default(),
            preemption: Preemption::Free,
            after: Vec::new(),
            reads: Vec::new(),
            sections: Vec::new(),
            cores: CoreSet::ALL,
            is_part: false,
        }
    }

    /// Returns the time between arrivals, the minimum if it varies. A list of jobs has none.
    pub fn period(&self) -> Option<Time> {
        match self.arrival {
            Arrival::Periodic { period } => Some(period),
            Arrival::Sporadic { minimum, .. } => Some(minimum),
            Arrival::Burst { every, .. } => Some(every),
            Arrival::Listed(_) => None,
        }
    }

    /// Returns the mean number of jobs per second in the long run; zero for a list of jobs.
    pub fn jobs_per_second(&self) -> f64 {
        match &self.arrival {
            Arrival::Periodic { period } => 1.0 / period.as_secs_f64(),
            Arrival::Sporadic { gap: Gap::Exponential { mean }, .. } => 1.0 / mean.as_secs_f64(),
            Arrival::Sporadic { minimum, gap: Gap::Uniform { max } } => {
                2.0 / (minimum.as_secs_f64() + max.as_secs_f64())
            }
            Arrival::Burst { jobs, every, .. } => f64::from(*jobs) / every.as_secs_f64(),
            Arrival::Listed(_) => 0.0,
        }
    }

    /// Returns the utilization at the wcet and the highest arrival rate, as a share of one core.
    ///
    /// For a list of jobs, this is the mean demand between the first release and the last deadline.
    pub fn utilization(&self) -> f64 {
        self.share(self.wcet)
    }

    /// Returns the utilization at the mean execution time and the mean arrival rate, as far as an online scheduler may
    /// know them. For a list of jobs, the middle of bcet and wcet stands for the execution time.
    pub fn mean_utilization(&self) -> f64 {
        let share = self.share(Time(self.mean_execution().round() as u64));
        match self.arrival {
            Arrival::Sporadic { minimum, gap } => {
                let mean = match gap {
                    Gap::Uniform { max } => (minimum.0 + max.0) as f64 / 2.0,
                    Gap::Exponential { mean } => mean.0 as f64,
                };
                share * minimum.0 as f64 / mean
            }
            Arrival::Listed(ref jobs) => listed_share(jobs, |job| (job.bcet.0 + job.wcet.0) as f64 / 2.0),
            _ => share,
        }
    }

    /// Returns the mean execution time in nanoseconds.
    ///
    /// It follows from the model and its bounds; for normal and Weibull times it is the acet if known, otherwise the
    /// middle of bcet and wcet.
    pub fn mean_execution(&self) -> f64 {
        let mean_of = |model: &ExecutionModel| -> f64 {
            let (least, most) = (self.bcet.0 as f64, self.wcet.0 as f64);
            match (model, self.acet) {
                (ExecutionModel::Wcet | ExecutionModel::Overrun { .. }, _) => most,
                (ExecutionModel::Empirical { samples }, _) => {
                    samples.iter().map(|time| time.0 as f64).sum::<f64>() / samples.len().max(1) as f64
                }
                (ExecutionModel::Uniform, _) => (least + most) / 2.0,
                (ExecutionModel::Pareto { shape }, _) => truncated_pareto_mean(*shape, least, most),
                (ExecutionModel::Lognormal { median, sigma }, _) => {
                    LogNormal::new(median.0 as f64, *sigma, [least, most]).mean()
                }
                (ExecutionModel::Bimodal { levels, probability, spread }, _) => {
                    let mean = |level: Time| LogNormal::new(level.0 as f64, *spread, [least, most]).mean();
                    (1.0 - probability) * mean(levels[0]) + probability * mean(levels[1])
                }
                (_, Some(acet)) => acet.0 as f64,
                (_, None) => (least + most) / 2.0,
            }
        };
        match &self.execution {
            ExecutionModel::Overrun { probability, below } => {
                let above = (self.wcet.0 + self.wcet_high.unwrap_or(self.wcet).0) as f64 / 2.0;
                probability * above + (1.0 - probability) * mean_of(below)
            }
            model => mean_of(model),
        }
    }

    /// Returns the task with every execution time multiplied by `parts / whole`, rounded up to whole nanoseconds and
    /// limited to [`Time::MAX_INPUT`].
    pub fn with_work(&self, parts: u64, whole: u64) -> Task {
        let scaled = |time: Time| {
            let product = u128::from(time.0) * u128::from(parts);
            Time(product.div_ceil(u128::from(whole.max(1))).clamp(1, u128::from(Time::MAX_INPUT.0)) as u64)
        };
        let mut task = self.clone();
        (task.wcet, task.bcet) = (scaled(task.wcet), scaled(task.bcet));
        (task.acet, task.wcet_high) = (task.acet.map(scaled), task.wcet_high.map(scaled));
        scale_model(&mut task.execution, &scaled);
        // Boundaries are rounded down, so that nested sections stay nested. However short a job is, it still waits for
        // its resources, so a section lasts a nanosecond at least; those of one resource that fall together are one.
        let moved =
            |time: Time| Time((u128::from(time.0) * u128::from(task.wcet.0) / u128::from(self.wcet.0.max(1))) as u64);
        task.sections.clear();
        for section in &self.sections {
            let at = moved(section.at);
            let length = (moved(section.end()) - at).max(Time(1));
            let section = Section { at: at.min(task.wcet.saturating_sub(length)), length, ..*section };
            let overlaps = |other: &Section| {
                other.resource == section.resource && other.at < section.end() && section.at < other.end()
            };
            if !task.sections.iter().any(overlaps) {
                task.sections.push(section);
            }
        }
        if let Arrival::Listed(jobs) = &mut task.arrival {
            let job = |job: &ListedJob| ListedJob {
                execution: scaled(job.execution),
                wcet: scaled(job.wcet),
                bcet: if job.bcet == job.wcet { scaled(job.wcet) } else { job.bcet },
                estimate: job.estimate.and_then(|of| Estimate::new(scaled(of.median()), scaled(of.high()))),
                ..*job
            };
            *jobs = jobs.iter().map(job).collect();
        }
        task
    }

    /// Utilization if every job takes `execution`; listed jobs take their wcet instead.
    fn share(&self, execution: Time) -> f64 {
        let execution = execution.0 as f64;
        match &self.arrival {
            Arrival::Periodic { period } => execution / period.0 as f64,
            Arrival::Sporadic { minimum, .. } => execution / minimum.0 as f64,
            Arrival::Burst { jobs, every, .. } => execution * f64::from(*jobs) / every.0 as f64,
            Arrival::Listed(jobs) => listed_share(jobs, |job| job.wcet.0 as f64),
        }
    }
}

fn scale_model(model: &mut ExecutionModel, scaled: &dyn Fn(Time) -> Time) {
    match model {
        ExecutionModel::Normal { deviation } => *deviation = scaled(*deviation),
        ExecutionModel::Empirical { samples } => *samples = samples.iter().map(|sample| scaled(*sample)).collect(),
        ExecutionModel::Overrun { below, .. } => scale_model(below, scaled),
        ExecutionModel::Lognormal { median, .. } => *median = scaled(*median),
        ExecutionModel::Bimodal { levels, .. } => *levels = levels.map(scaled),
        ExecutionModel::Wcet
        | ExecutionModel::Uniform
        | ExecutionModel::Weibull { .. }
        | ExecutionModel::Pareto { .. } => {}
    }
}

/// Total work of the jobs as a share of the time between the first release and the last deadline.
fn listed_share(jobs: &[ListedJob], work: impl Fn(&ListedJob) -> f64) -> f64 {
    let work: f64 = jobs.iter().map(work).sum();
    let first = jobs.iter().map(|job| job.release).min().unwrap_or_default();
    let last = jobs.iter().map(|job| job.deadline).max().unwrap_or_default();
    work / last.saturating_sub(first).0.max(1) as f64
}

/// Mean of a Pareto distribution with this shape and least value `least`, truncated at `most`.
fn truncated_pareto_mean(shape: f64, least: f64, most: f64) -> f64 {
    if least >= most {
        return most;
    }
    let ratio = least / most;
    if (shape - 1.0).abs() < 1e-9 {
        return least * (1.0 / ratio).ln() / (1.0 - ratio);
    }
    shape / (shape - 1.0) * least * (1.0 - ratio.powf(shape - 1.0)) / (1.0 - ratio.powf(shape))
}
