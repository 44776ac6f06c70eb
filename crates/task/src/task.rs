//! A task: what recurs, how long it takes, by when it must be done.

use std::sync::Arc;

use crate::Time;

/// One recurring activity. Tasks are independent: no shared resources, no precedence.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Unique within its set.
    pub name: String,
    /// When its jobs arrive.
    pub arrival: Arrival,
    /// Worst-case execution time.
    pub wcet: Time,
    /// Best-case execution time; equal to `wcet` when execution times are known.
    pub bcet: Time,
    /// Average execution time, where it is known.
    pub acet: Option<Time>,
    /// What a job really takes.
    pub execution: ExecutionModel,
    /// Worst-case execution time assumed at high criticality; jobs may then overrun `wcet` up to it.
    pub wcet_high: Option<Time>,
    /// Relative deadline, counted from the arrival. It may be longer than the period.
    pub deadline: Time,
    /// First arrival.
    pub offset: Time,
    /// A job is released up to this long after it arrives; its deadline does not move.
    pub jitter: Time,
    /// 0 is low; everything above is critical, more critical the higher.
    pub criticality: u8,
    /// What meeting one deadline is worth.
    pub value: f64,
    /// A fixed priority for `fp`: the larger number runs first.
    pub priority: Option<i64>,
    /// Skip factor: one job in every `skip` may be skipped (Koren and Shasha).
    pub skip: Option<u32>,
    /// (m,k)-firm: at least m of any k consecutive jobs must meet their deadline.
    pub mk: Option<(u32, u32)>,
    /// The server, by index in the set, that this task's jobs are served by.
    pub server: Option<usize>,
}

/// How the jobs of a task arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Every `period`, exactly.
    Periodic {
        /// The time between arrivals.
        period: Time,
    },
    /// At least `minimum` apart.
    Sporadic {
        /// The least time between arrivals.
        minimum: Time,
        /// How the time between arrivals is drawn.
        gap: Gap,
    },
    /// `jobs` at once, every `every`, before `until`: a load peak.
    Burst {
        /// How many jobs arrive together.
        jobs: u32,
        /// The time between bursts.
        every: Time,
        /// No burst at or after this date.
        until: Time,
    },
    /// Single jobs, sorted by release: a recorded trace.
    Listed(Arc<[ListedJob]>),
}

/// The time between two arrivals of a sporadic task, never below its minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// Uniform from the minimum to `max`.
    Uniform {
        /// The longest gap.
        max: Time,
    },
    /// The minimum plus an exponential time, so that the mean gap is `mean`.
    Exponential {
        /// The mean gap.
        mean: Time,
    },
}

/// One job of a list, with everything that a task would otherwise say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListedJob {
    /// When it is released.
    pub release: Time,
    /// Its absolute deadline.
    pub deadline: Time,
    /// What it really takes.
    pub execution: Time,
    /// What the scheduler is told it may take; at least `execution`.
    pub wcet: Time,
    /// What the scheduler is told it takes at least: the wcet where the list as a whole states no wcets, so that times are known, else a nanosecond. Never
    /// chosen job by job: that would tell the execution time.
    pub bcet: Time,
    /// As [`Task::criticality`].
    pub criticality: u8,
    /// As [`Task::value`].
    pub value: f64,
}

/// What a job really takes. Every model stays within `[bcet, wcet]`, except that a task with a `wcet_high` overruns
/// its `wcet` with the set probability.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionModel {
    /// Always the wcet.
    Wcet,
    /// Uniform between bcet and wcet.
    Uniform,
    /// Normal with mean `acet` (or the middle) and the given standard deviation, redrawn until within bounds, and uniform within them
    /// if that does not come about in 64 draws.
    Normal {
        /// Standard deviation.
        deviation: Time,
    },
    /// Weibull from bcet with mean `acet`, where a share `exceed` of the untruncated mass lies beyond the wcet: the
    /// estimator of the WATERS 2015 automotive benchmark.
    Weibull {
        /// Share beyond the wcet before truncation.
        exceed: f64,
    },
    /// Pareto with the given shape and least value bcet, truncated at the wcet.
    Pareto {
        /// The tail index α.
        shape: f64,
    },
    /// Drawn with replacement from measured times.
    Empirical {
        /// The measurements.
        samples: Arc<[Time]>,
    },
    /// As `below` with probability 1 − `probability`, else uniform from wcet to wcet_high.
    Overrun {
        /// How often a job overruns its wcet.
        probability: f64,
        /// What it takes otherwise.
        below: Box<ExecutionModel>,
    },
}

impl ExecutionModel {
    /// Whether two jobs of the task can take different times.
    pub fn is_random(&self) -> bool {
        !matches!(self, ExecutionModel::Wcet)
    }
}

impl Task {
    /// A periodic task with an implicit deadline and known execution time: the field's default.
    pub fn periodic(name: impl Into<String>, period: Time, wcet: Time) -> Task {
        Task {
            name: name.into(),
            arrival: Arrival::Periodic { period },
            wcet,
            bcet: wcet,
            acet: None,
            execution: ExecutionModel::Wcet,
            wcet_high: None,
            deadline: period,
            offset: Time::ZERO,
            jitter: Time::ZERO,
            criticality: 0,
            value: 1.0,
            priority: None,
            skip: None,
            mk: None,
            server: None,
        }
    }

    /// The time between arrivals, the least one if it varies. A list of single jobs has none.
    pub fn period(&self) -> Option<Time> {
        match self.arrival {
            Arrival::Periodic { period } => Some(period),
            Arrival::Sporadic { minimum, .. } => Some(minimum),
            Arrival::Burst { every, .. } => Some(every),
            Arrival::Listed(_) => None,
        }
    }

    /// The most processor time it can ask for, as a share of one core. For a list of jobs: its mean demand between
    /// its first release and its last deadline.
    pub fn utilization(&self) -> f64 {
        self.share(self.wcet)
    }

    /// As [`Task::utilization`] with the means of execution times and gaps, as far as an online scheduler may know them: for a list of jobs that is
    /// the middle between their bcets and wcets.
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

    /// The mean execution time in ns: the acet where it is known, else the model's.
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

/// What jobs ask for, as a share of the time between the first release and the last deadline.
fn listed_share(jobs: &[ListedJob], work: impl Fn(&ListedJob) -> f64) -> f64 {
    let work: f64 = jobs.iter().map(work).sum();
    let first = jobs.iter().map(|job| job.release).min().unwrap_or_default();
    let last = jobs.iter().map(|job| job.deadline).max().unwrap_or_default();
    work / last.saturating_sub(first).0.max(1) as f64
}

/// The mean of a Pareto distribution of the given shape from `least`, cut off at `most`.
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
