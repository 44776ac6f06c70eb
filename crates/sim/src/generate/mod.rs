//! Random task sets: tasks whose utilisations add up to a given total, and what experiments add to them.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_task::{Arrival, ExecutionModel, Mode, Task, TaskSet, Time};

mod fixed_sum;
mod shares;
pub mod text;
mod unc;
mod waters;

pub use shares::Method;
pub use unc::Unc;

/// What to draw. [`Spec::new`] fills in the field's usual choices.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Number of tasks; [`Method::Unc`] and [`Method::Waters2015`] find their own where there is none.
    pub tasks: Option<usize>,
    /// Number of cores.
    pub cores: usize,
    /// Total utilisation; at most one per task.
    pub utilization: f64,
    /// How the total is shared out.
    pub method: Method,
    /// Whether periods or execution times are drawn, and how; the others follow from the utilisations.
    pub lengths: Lengths,
    /// How relative deadlines follow from periods.
    pub deadlines: Deadlines,
    /// The best-case execution time as a share of the worst; below one, execution times are uniform in between.
    pub bcet: f64,
    /// The critical tasks.
    pub critical: Critical,
    /// Values are uniform between these two.
    pub values: (f64, f64),
    /// A load peak on top.
    pub burst: Option<BurstSpec>,
    /// Name, beginning and total utilisation of each mode.
    pub modes: Vec<(String, Time, f64)>,
    /// Periods and execution times are whole multiples of this.
    pub granularity: Time,
}

/// How times are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// The logarithm is uniform, so that each order of magnitude is as likely: the field's default.
    LogUniform(Time, Time),
    /// Uniform.
    Uniform(Time, Time),
    /// One of these, each as likely.
    List(Vec<Time>),
    /// The first times a power of two, at most the second: every period divides every longer one.
    Harmonic(Time, Time),
    /// Pareto with this shape and this least time: heavy-tailed. A thousand times the least is the most.
    Pareto(f64, Time),
}

/// Which times are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Periods; execution times are the tasks' shares of them.
    Periods(Rule),
    /// Worst-case execution times; periods are as long as the shares make them.
    Wcets(Rule),
}

/// How relative deadlines follow from periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deadlines {
    /// Equal to the period.
    Implicit,
    /// Uniform between two shares of the way from the wcet (0) to the period (1); beyond one, deadlines are longer than periods.
    Slack(f64, f64),
}

/// Which tasks are critical.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Critical {
    /// The share of the tasks, rounded to whole tasks.
    pub share: f64,
    /// The wcet at high criticality as a multiple of the wcet; at 1 they do not overrun.
    pub factor: f64,
    /// How often a job of theirs overruns its wcet, if the factor is above 1.
    pub overrun: f64,
}

/// A load peak: `jobs` at once, every `every`, until `until`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstSpec {
    /// Jobs that arrive together.
    pub jobs: u32,
    /// Their relative deadline.
    pub deadline: Time,
    /// The time between bursts.
    pub every: Time,
    /// When the peak ends.
    pub until: Time,
    /// The utilisation it adds.
    pub utilization: f64,
}

/// Why a set cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// No such sharing exists.
    #[error("{tasks} tasks cannot have a total utilisation of {total}: they have at most {most}")]
    TooMuch {
        /// Number of tasks.
        tasks: usize,
        /// The total asked for.
        total: f64,
        /// The greatest total there is.
        most: f64,
    },
    /// Discarding took too long.
    #[error(
        "UUniFast-discard found no sharing of {total} among {tasks} tasks in {draws} draws; RandFixedSum always does"
    )]
    TooManyDiscards {
        /// Number of tasks.
        tasks: usize,
        /// The total asked for.
        total: f64,
        /// How often it was tried.
        draws: usize,
    },
    /// Something else does not fit together.
    #[error("{0}")]
    Invalid(String),
}

impl Spec {
    /// RandFixedSum, log-uniform periods of 10 to 100 ms, implicit deadlines, known execution times, a granularity of 1 µs.
    pub fn new(tasks: usize, cores: usize, utilization: f64) -> Spec {
        Spec {
            tasks: Some(tasks),
            cores,
            utilization,
            method: Method::RandFixedSum,
            lengths: Lengths::Periods(Rule::LogUniform(Time::from_ms(10), Time::from_ms(100))),
            deadlines: Deadlines::Implicit,
            bcet: 1.0,
            critical: Critical { share: 0.0, factor: 1.0, overrun: 0.1 },
            values: (1.0, 1.0),
            burst: None,
            modes: Vec::new(),
            granularity: Time::from_us(1),
        }
    }
}

/// Draws a set. Rounding to the granularity moves the total utilisation a little.
pub fn generate(spec: &Spec, seed: u64) -> Result<TaskSet, GenerateError> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut tasks = match spec.method {
        Method::Waters2015 => waters::draw(spec, &mut rng)?,
        _ => {
            let shares = shares::draw(spec, &mut rng)?;
            shares.iter().enumerate().map(|(index, share)| draw_task(spec, index, *share, &mut rng)).collect()
        }
    };
    make_critical(&spec.critical, &mut tasks, &mut rng);
    let (low, high) = spec.values;
    if high > low {
        // To three digits, so that files stay readable.
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
        Mode { name: name.clone(), at: *at, work, rate: 1.0, tasks: None }
    };
    let modes = spec.modes.iter().map(mode).collect();
    let name = format!("random-{}x{}-{seed}", tasks.len(), spec.cores);
    Ok(TaskSet { modes, ..TaskSet::new(name, tasks, spec.cores) })
}

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

fn burst_task(burst: &BurstSpec) -> Result<Task, GenerateError> {
    let BurstSpec { jobs, deadline, every, until, utilization } = *burst;
    let wcet = Time((utilization * every.0 as f64 / f64::from(jobs)).round() as u64).max(Time(1));
    if wcet > deadline {
        return Err(GenerateError::Invalid(format!(
            "a burst of {jobs} jobs every {every} that adds a utilisation of {utilization} has jobs of {wcet}, which cannot be \
             done within {deadline}"
        )));
    }
    let arrival = Arrival::Burst { jobs, every, until };
    Ok(Task { arrival, deadline, ..Task::periodic("burst", every, wcet) })
}

impl Rule {
    /// A time, in nanoseconds.
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
