//! Random task sets: tasks whose utilizations add up to a given total, with the deadlines, criticalities, values,
//! bursts and modes that experiments need.
//!
//! A [`Spec`] says what a set is like. Flags, files, Python and [`WorkloadRanges`] all fill one:
//!
//! - its own fields draw the tasks,
//! - its [`Properties`] go on top of them: execution times, a fixed [`Shape`], a random [`Variety`]; they apply to sets
//!   from other sources as well,
//! - [`WorkloadRanges`] draws the specification itself, for training,
//! - [`text::SpecText`] is the form of a specification in files.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Arrival, ExecutionModel, Mode, Task, TaskSet, Time};

mod execution_shares;
mod fixed_sum;
mod graphs;
mod properties;
pub mod ranges;
mod shape;
mod shares;
pub mod text;
mod unc;
pub mod variety;
mod waters;

pub use execution_shares::ExecutionShares;
pub use graphs::Graphs;
pub use properties::Properties;
pub use ranges::{ExecutionKind, WorkloadRanges};
pub use shape::{Bound, Held, Shape, Shared, Wave};
pub use shares::Method;
pub use unc::Unc;
pub use variety::Variety;

/// Specification of a random task set. [`Spec::new`] fills in the usual choices of the field.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Number of tasks. `None` only with [`Method::Unc`], which requires it, and with [`Method::Waters2015`], which
    /// then draws about ten tasks per core.
    pub tasks: Option<usize>,
    /// Number of cores.
    pub cores: usize,
    /// Total utilization of the tasks, at most 1 per task.
    pub utilization: f64,
    /// Method that divides the total among the tasks.
    pub method: Method,
    /// Distribution of either periods or execution times. The other one follows from the utilizations.
    pub lengths: Lengths,
    /// Rule for relative deadlines.
    pub deadlines: Deadlines,
    /// Best-case execution time as a share of the wcet, 0 to 1. Below 1, execution times are uniform between the two.
    pub bcet: f64,
    /// Error of the estimates that jobs carry; see [`Task::estimate_error`].
    pub estimate_error: Option<f64>,
    /// Number and overruns of the critical tasks.
    pub critical: Critical,
    /// Lower and upper bound of the values of tasks, which are uniform in between.
    pub values: (f64, f64),
    /// Load peak in addition to the tasks.
    pub burst: Option<BurstSpec>,
    /// Modes: name, start and total utilization of each.
    pub modes: Vec<(String, Time, f64)>,
    /// Granularity: periods and execution times are whole multiples of this time.
    pub granularity: Time,
    /// Properties on top of the tasks.
    pub properties: Properties,
}

/// Distribution of times.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Log-uniform between two times: every order of magnitude is equally likely. This is the usual choice in the
    /// field.
    LogUniform(Time, Time),
    /// Uniform between two times.
    Uniform(Time, Time),
    /// One of these times, all equally likely.
    List(Vec<Time>),
    /// The first time multiplied by a power of two, up to the second time: every period divides every longer one.
    Harmonic(Time, Time),
    /// Pareto (heavy-tailed) with this shape and this least time, truncated at a thousand times the least time.
    Pareto(f64, Time),
}

/// Choice of the times that are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Periods are drawn. The wcet of a task is its period times its utilization.
    Periods(Rule),
    /// Worst-case execution times are drawn. The period of a task is its wcet divided by its utilization.
    Wcets(Rule),
}

impl Default for Lengths {
    /// Log-uniform periods of 10 to 100 ms.
    fn default() -> Lengths {
        Lengths::Periods(Rule::LogUniform(Time::from_ms(10), Time::from_ms(100)))
    }
}

/// Rule for relative deadlines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deadlines {
    /// The deadline equals the period.
    Implicit,
    /// The deadline is the wcet plus a share of the difference between period and wcet. The share is uniform between
    /// these two numbers; above 1, deadlines are longer than periods.
    Slack(f64, f64),
}

/// Specification of the critical tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Critical {
    /// Share of the tasks that are critical, 0 to 1, rounded to whole tasks.
    pub share: f64,
    /// Wcet at high criticality as a multiple of the wcet. With 1, critical tasks do not overrun.
    pub factor: f64,
    /// Probability that a job of a critical task overruns its wcet, if the factor is above 1.
    pub overrun: f64,
}

/// A load peak: `jobs` jobs arrive at once, every `every`, until `until`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstSpec {
    /// Number of jobs that arrive together.
    pub jobs: u32,
    /// Relative deadline of the jobs.
    pub deadline: Time,
    /// Time between bursts.
    pub every: Time,
    /// End of the peak.
    pub until: Time,
    /// Utilization that the peak adds while it lasts.
    pub utilization: f64,
}

/// Reason why a task set cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The tasks cannot have such a large total utilization.
    #[error("{tasks} tasks cannot have a total utilization of {total}: they have at most {most}")]
    TooMuch {
        /// Number of tasks.
        tasks: usize,
        /// Requested total utilization.
        total: f64,
        /// Largest possible total utilization.
        most: f64,
    },
    /// UUniFast-discard gave up.
    #[error(
        "UUniFast-discard found no sharing of {total} among {tasks} tasks in {draws} draws; RandFixedSum always does"
    )]
    TooManyDiscards {
        /// Number of tasks.
        tasks: usize,
        /// Requested total utilization.
        total: f64,
        /// Number of draws, all of which were discarded.
        draws: usize,
    },
    /// Times that contradict the method.
    #[error("waters2015 has periods and execution times of its own: leave periods, wcets and bcet out")]
    OwnTimes,
    /// Another contradiction in the specification.
    #[error("{0}")]
    Invalid(String),
}

impl Spec {
    /// Creates a specification with RandFixedSum, log-uniform periods of 10 to 100 ms, implicit deadlines, known
    /// execution times and a granularity of 1 µs.
    pub fn new(tasks: usize, cores: usize, utilization: f64) -> Spec {
        Spec {
            tasks: Some(tasks),
            cores,
            utilization,
            method: Method::RandFixedSum,
            lengths: Lengths::default(),
            deadlines: Deadlines::Implicit,
            bcet: 1.0,
            estimate_error: None,
            critical: Critical { share: 0.0, factor: 1.0, overrun: 0.1 },
            values: (1.0, 1.0),
            burst: None,
            modes: Vec::new(),
            granularity: Time::from_us(1),
            properties: Properties::default(),
        }
    }
}

/// Generates a task set with its properties, up to those that [`Properties::finish`] gives. Rounding to the granularity
/// changes the total utilization slightly.
pub fn generate(spec: &Spec, seed: u64) -> Result<TaskSet, GenerateError> {
    let mut set = generate_tasks(spec, seed)?;
    spec.properties.apply(&mut set, seed);
    Ok(set)
}

/// Generates the tasks of a set, without its properties.
pub fn generate_tasks(spec: &Spec, seed: u64) -> Result<TaskSet, GenerateError> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut tasks = match spec.method {
        Method::Waters2015 => waters::draw(spec, &mut rng)?,
        _ => {
            let shares = shares::draw(spec, &mut rng)?;
            shares.iter().enumerate().map(|(index, share)| draw_task(spec, index, *share, &mut rng)).collect()
        }
    };
    tasks.iter_mut().for_each(|task| task.estimate_error = spec.estimate_error);
    make_critical(&spec.critical, &mut tasks, &mut rng);
    let (low, high) = spec.values;
    if high > low {
        // Rounded to three digits to keep files readable.
        let value = |rng: &mut Pcg64| ((low + (high - low) * rng.random::<f64>()) * 1e3).round() / 1e3;
        tasks.iter_mut().for_each(|task| task.value = value(&mut rng));
    }
    let total: f64 = tasks.iter().map(Task::utilization).sum();
    tasks.extend(spec.burst.map(|burst| burst_task(&burst)).transpose()?);
    if tasks.iter().any(|task| task.deadline.max(task.period().unwrap_or_default()) > Time::MAX_INPUT) {
        return Err(GenerateError::Invalid("periods longer than 30 years were drawn".into()));
    }
    let mode = |(name, at, utilization): &(String, Time, f64)| {
        let work = (utilization / total * 1e6).round() / 1e6;
        Mode::new(name, *at).with_work(work)
    };
    let modes = spec.modes.iter().map(mode).collect();
    let name = format!("random-{}x{}-{seed}", tasks.len(), spec.cores);
    Ok(TaskSet::new(name, tasks, spec.cores).with_modes(modes))
}

/// Draws a task with this utilization.
fn draw_task(spec: &Spec, index: usize, share: f64, rng: &mut Pcg64) -> Task {
    let grain = spec.granularity.0 as f64;
    let steps = |length: f64| (length / grain).round().max(1.0);
    let time = |steps: f64| Time((steps * grain) as u64);
    let (period, wcet) = match &spec.lengths {
        Lengths::Periods(rule) => {
            let period = steps(rule.draw(rng));
            (period, steps(share * period * grain).min(period))
        }
        Lengths::Wcets(rule) => {
            let wcet = steps(rule.draw(rng));
            (steps(wcet * grain / share).max(wcet), wcet)
        }
    };
    let mut task = Task::periodic(format!("task{index}"), time(period), time(wcet));
    if let Deadlines::Slack(low, high) = spec.deadlines {
        let part = low + (high - low) * rng.random::<f64>();
        task.deadline = time((wcet + part * (period - wcet)).round().max(wcet));
    }
    if spec.bcet < 1.0 {
        task.bcet = time((spec.bcet * wcet).round().max(1.0)).min(task.wcet);
        task.execution = ExecutionModel::Uniform;
    }
    task
}

/// Makes randomly chosen tasks critical.
fn make_critical(critical: &Critical, tasks: &mut [Task], rng: &mut Pcg64) {
    let chosen = (critical.share * tasks.len() as f64).round() as usize;
    if chosen == 0 {
        return;
    }
    for index in shares::shuffled(tasks.len(), rng).into_iter().take(chosen) {
        let task = &mut tasks[index];
        task.criticality = 1;
        if critical.factor > 1.0 {
            task.wcet_high = Some(Time((task.wcet.0 as f64 * critical.factor).round() as u64));
            let below = Box::new(task.execution.clone());
            task.execution = ExecutionModel::Overrun { probability: critical.overrun, below };
        }
    }
}

/// Creates the task of a load peak. Its wcet follows from the utilization.
fn burst_task(burst: &BurstSpec) -> Result<Task, GenerateError> {
    let BurstSpec { jobs, deadline, every, until, utilization } = *burst;
    let wcet = Time((utilization * every.0 as f64 / f64::from(jobs)).round() as u64).max(Time(1));
    if wcet > deadline {
        return Err(GenerateError::Invalid(format!(
            "a burst of {jobs} jobs every {every} that adds a utilization of {utilization} has jobs of {wcet}, which cannot be \
             done within {deadline}"
        )));
    }
    let arrival = Arrival::Burst { jobs, every, until };
    Ok(Task::periodic("burst", every, wcet).with_arrival(arrival).with_deadline(deadline))
}

impl Rule {
    /// Draws a time, in nanoseconds.
    fn draw(&self, rng: &mut Pcg64) -> f64 {
        match self {
            Rule::LogUniform(low, high) => {
                let (low, high) = ((low.0 as f64).ln(), (high.0 as f64).ln());
                (low + (high - low) * rng.random::<f64>()).exp()
            }
            Rule::Uniform(low, high) => rng.random_range(low.0..=high.0) as f64,
            Rule::List(list) => list[rng.random_range(0..list.len())].0 as f64,
            Rule::Harmonic(base, most) => {
                let doublings = (most.0 / base.0).max(1).ilog2();
                (base.0 << rng.random_range(0..=doublings)) as f64
            }
            Rule::Pareto(shape, least) => {
                let beyond = 1e3_f64.powf(-shape);
                let left = beyond + (1.0 - beyond) * rng.random::<f64>();
                least.0 as f64 * left.powf(-1.0 / shape)
            }
        }
    }
}

#[cfg(test)]
mod tests;
