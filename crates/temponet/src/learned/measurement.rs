//! Measures a [`Calibration`]: times the parts of synthetic decisions with the very model and options that will decide.
//!
//! The decisions are hard ones: twice as many jobs are ready as can be on time, no two deadlines are equal, jobs of
//! every task are to come, and the order of the jobs changes from one decision to the next. Latencies are upper
//! estimates for a machine that is not interrupted: the upper quartile of a few repetitions, plus a margin. Caches are
//! warm, because decisions follow each other.

use std::sync::Arc;
use std::time::Instant;

use temponet_infer::{Network, NetworkError, Rows, Sparsity};
use temponet_sched::global_edf;
use temponet_task::{
    Assignment, CoreId, Costs, Event, Job, JobId, Scheduler, System, SystemView, Task, TaskId, TaskSet, Time,
};

use super::{Learned, Options};
use crate::stage_latencies::{Calibration, LatencyTable, MEASURED_CORES, MEASURED_SIZES, StageLatencies};
use crate::{Mapping, Model};

/// Latency up to which larger sizes are measured if there is no budget, in nanoseconds.
const DEFAULT_CEILING: u64 = 10_000_000;
/// Number of repetitions of a measurement, and how many are enough once they have taken [`LONG`] nanoseconds.
const REPETITIONS: usize = 8;
const FEW_REPETITIONS: usize = 3;
const LONG: u64 = 10_000_000;
/// Largest number of rows at which the network is measured. Beyond it attention dominates, which grows with the square
/// as tables do.
const MOST_ROWS: usize = 2_048;
/// Largest number of cores at which a mapping is measured. A matching takes memory for the square of it.
const MOST_CORES: usize = 128;

impl Calibration {
    /// Measures the latencies of decisions with this model and these options, on this machine and as it is now. That
    /// takes less than a second with a budget of 10 ms, and longer with a larger one.
    ///
    /// Sizes are measured until a latency exceeds [`Options::budget_ns`] (10 ms if there is none). Latencies at larger
    /// sizes are extrapolated from it with the square of the size, so a calibration is less exact for a larger budget
    /// than its own.
    pub fn measure(model: &Arc<Model>, options: Options) -> Result<Calibration, NetworkError> {
        Ok(measure(&Network::new(&model.weights, options.network)?, model, options))
    }
}

/// Measures a calibration for a network that is already built.
pub(super) fn measure(network: &Network, model: &Arc<Model>, options: Options) -> Calibration {
    let ceiling = options.budget_ns.unwrap_or(DEFAULT_CEILING);
    let options = Options { budget_ns: None, calibration: None, ..options };
    let learned = |options: Options| Learned::over(network.clone(), model.clone(), options);
    // The pass over the jobs is the same for all mappings. What a matching adds depends on the number of cores alone.
    let mut greedy = learned(Options { mapping: Mapping::Greedy, ..options });
    let mut stages = |differs: bool| MEASURED_CORES.map(|cores| time_stages(&mut greedy, differs, cores, ceiling));
    let (equal, differing) = (stages(false), stages(true));
    let mut learned = learned(options);
    Calibration {
        network: time_network(&mut learned, ceiling),
        mapping: time_mapping(&mut learned, Costs::default(), ceiling),
        staying: time_mapping(&mut learned, Costs { context_switch: Time(1), ..Costs::default() }, ceiling),
        equal,
        differing,
    }
}

/// Times the parts that depend on the number of ready jobs.
fn time_stages(learned: &mut Learned, differs: bool, cores: usize, ceiling: u64) -> StageLatencies {
    let [mut observation, mut fallback, mut edf] = [(); 3].map(|()| Series::new(ceiling));
    let mut assignment = Assignment::default();
    for size in MEASURED_SIZES {
        let scene = Scene::new(size, cores, differs);
        learned.prepare(&scene.system);
        observation.add(|turn| {
            learned.observe(&scene.view(turn));
            learned.set_any_q();
            assignment.reset(cores);
            learned.map(&scene.view(turn), &mut assignment);
        });
        fallback.add(|turn| {
            assignment.reset(cores);
            learned.fallback.decide(&scene.view(turn), &mut assignment);
        });
        let mut sorted = global_edf();
        let mut releases: Vec<JobId> = scene.active.clone();
        releases.sort_unstable_by_key(|id| scene.jobs[0][id.index()].deadline);
        let releases: Vec<Event> = releases.into_iter().map(Event::Released).collect();
        assignment.reset(cores);
        sorted.decide(&scene.view(0).with_events(&releases), &mut assignment);
        edf.add(|turn| {
            // A job leaves and comes back with the deadline that it has in the other view.
            let id = scene.active[turn / 2 * 5 % size];
            assignment.reset(cores);
            let events = [Event::Completed(id), Event::Released(id)];
            sorted.decide(&scene.view(turn).with_events(&events), &mut assignment);
        });
    }
    StageLatencies { observation: observation.table(), fallback: fallback.table(), edf: edf.table() }
}

/// Times the network. What the tokens are makes no difference to it.
fn time_network(learned: &mut Learned, ceiling: u64) -> LatencyTable {
    let mut series = Series::new(ceiling);
    let tokenizer = &learned.model.tokenizer;
    let vocabularies = tokenizer.job_vocabularies();
    let inputs = tokenizer.real_input().map_or(0, |real| real.inputs);
    let idle = vec![0; tokenizer.idle.len()];
    for rows in MEASURED_SIZES.into_iter().filter(|rows| *rows <= MOST_ROWS) {
        if series.is_complete() {
            break;
        }
        let jobs = rows - 1;
        let token = |job: usize| vocabularies.iter().map(move |feature| (job % feature.size) as u16);
        let tokens: Vec<u16> = (0..jobs).flat_map(token).collect();
        let (real, bias) = (vec![0.5; jobs * inputs], vec![0.0; rows]);
        let sparsity = learned.options.sparse.then(|| Sparsity::paper(jobs));
        let rows = Rows { idle: &idle, jobs: &tokens, real: &real, bias: &bias, sparsity };
        series.add(|_| learned.network.forward(&rows, &mut learned.q));
    }
    series.table()
}

/// Times the mapping where dispatching has these costs.
fn time_mapping(learned: &mut Learned, costs: Costs, ceiling: u64) -> LatencyTable {
    let mut series = Series::new(ceiling);
    let mut assignment = Assignment::default();
    for cores in MEASURED_SIZES.into_iter().filter(|cores| *cores <= MOST_CORES) {
        if series.is_complete() {
            break;
        }
        let mut scene = Scene::new(4 * cores, cores, false);
        scene.system.set_costs(costs);
        learned.prepare(&scene.system);
        learned.observe(&scene.view(0));
        learned.set_any_q();
        series.add(|_| {
            assignment.reset(cores);
            learned.map(&scene.view(0), &mut assignment);
        });
    }
    series.table()
}

impl Learned {
    /// Gives the rows of the observation distinct Q-values, all better than idling.
    fn set_any_q(&mut self) {
        self.q.clear();
        self.q.extend((0..=self.observation.distinct()).map(|row| spread(row, 1_000, SEEDS[0]) as f32));
        self.q[0] = -1.0;
    }
}

/// Latencies at growing sizes.
struct Series {
    /// Latency above which larger sizes are not measured.
    ceiling: u64,
    latencies: Vec<u64>,
}

impl Series {
    fn new(ceiling: u64) -> Series {
        Series { ceiling, latencies: Vec::new() }
    }

    /// Whether a smaller size has exceeded the ceiling.
    fn is_complete(&self) -> bool {
        self.latencies.last().is_some_and(|last| *last > self.ceiling)
    }

    /// Times `decide` at the next size, unless the series is complete. `decide` gets the number of the repetition.
    fn add(&mut self, decide: impl FnMut(usize)) {
        if !self.is_complete() {
            // A larger size that seems faster is noise.
            let last = self.latencies.last().copied().unwrap_or(0);
            self.latencies.push(upper_latency(decide).max(last));
        }
    }

    /// Returns the table. Sizes that were not measured are extrapolated with the square of the size.
    fn table(self) -> LatencyTable {
        let known = self.latencies.len();
        LatencyTable(std::array::from_fn(|place| match self.latencies.get(place) {
            Some(latency) => *latency,
            None => {
                let ratio = (MEASURED_SIZES[place] / MEASURED_SIZES[known - 1]) as u64;
                self.latencies[known - 1].saturating_mul(ratio * ratio)
            }
        }))
    }
}

/// Returns an upper estimate of the latency of `decide` in nanoseconds: the upper quartile, which a few interruptions
/// do not change, plus a quarter.
fn upper_latency(mut decide: impl FnMut(usize)) -> u64 {
    // The first decisions allocate.
    (0..2).for_each(&mut decide);
    let (mut latencies, mut total) = (Vec::with_capacity(REPETITIONS), 0);
    while latencies.len() < FEW_REPETITIONS || (latencies.len() < REPETITIONS && total < LONG) {
        let begin = Instant::now();
        decide(2 + latencies.len());
        let latency = begin.elapsed().as_nanos() as u64;
        latencies.push(latency);
        total += latency;
    }
    latencies.sort_unstable();
    let upper = latencies[(latencies.len() - 1) * 3 / 4];
    upper + upper / 4
}

/// A system with one ready job per task, at time zero.
struct Scene {
    system: System,
    /// The jobs twice, with different deadlines.
    jobs: [Vec<Job>; 2],
    active: Vec<JobId>,
    running: Vec<Option<JobId>>,
}

/// Mean wcet in nanoseconds.
const WCET: u64 = 1_000_000;
/// Multipliers of [`spread`]: 2⁶⁴ times the fractional parts of the golden ratio and of the square roots of 2, 3 and 5,
/// made odd.
const SEEDS: [u64; 4] = [0x9E37_79B9_7F4A_7C15, 0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B];

/// Returns numbers below `range` that look random but fill the range evenly as `index` grows.
fn spread(index: usize, range: u64, seed: u64) -> u64 {
    let share = (index as u64 + 1).wrapping_mul(seed);
    ((u128::from(share) * u128::from(range)) >> 64) as u64
}

impl Scene {
    /// A scene of `size` jobs. If `differs` is set, they differ in value and criticality.
    fn new(size: usize, cores: usize, differs: bool) -> Scene {
        // Half the time that the cores need for all jobs.
        let longest_slack = (size as u64 * WCET / (2 * cores as u64)).max(1);
        let task = |index: usize| {
            let wcet = Time(WCET / 2 + spread(index, WCET, SEEDS[0]));
            let deadline = wcet + Time(spread(index, longest_slack, SEEDS[1]));
            // Short periods, so that planners have several coming jobs of most tasks to plan.
            let mut task =
                Task::periodic("", Time(deadline.0 / 4), wcet).with_deadline(deadline).with_bcet(Time(wcet.0 / 2));
            if differs {
                (task.value, task.criticality) = (1.0 + spread(index, 100, SEEDS[2]) as f64, (index % 3) as u8);
            }
            task
        };
        let system = TaskSet::new("", (0..size).map(task).collect(), cores).system;
        let job = |(index, task): (usize, &Task)| {
            let is_running = index < cores;
            let last_core = is_running.then_some(CoreId::new(index));
            Job::first(TaskId::new(index), task).with_running(is_running).with_last_core(last_core)
        };
        let jobs: Vec<Job> = system.tasks().iter().enumerate().map(job).collect();
        let mut others = jobs.clone();
        for (index, job) in others.iter_mut().enumerate() {
            job.deadline = job.wcet + Time(spread(index, longest_slack, SEEDS[3]));
        }
        let active: Vec<JobId> = (0..size as u32).map(JobId).collect();
        let running = (0..cores).map(|core| active.get(core).copied()).collect();
        Scene { system, jobs: [jobs, others], active, running }
    }

    /// Returns the scene as a scheduler sees it, in turn with one set of deadlines and with the other.
    fn view(&self, turn: usize) -> SystemView<'_> {
        SystemView::new(Time::ZERO, &self.system, &self.active, &self.jobs[turn % 2], &self.running)
    }
}
