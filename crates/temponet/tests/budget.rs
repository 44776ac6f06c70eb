//! The decision budget: who decides is what the expected latencies say, and no decision takes much longer than the
//! budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::stages::{Continuous, Learned, Observation, Scale, Tokenizer};
use temponet::{Calibration, LatencyTable, MEASURED_SIZES, Mapping, Model, Options, StageLatencies, Temponet, Tuning};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Assignment, Event, Job, JobId, Scheduler, System, SystemView, Task, TaskId, TaskSet, Time};

/// Ready jobs of an overloaded system, one of each task.
struct Backlog {
    system: System,
    jobs: Vec<Job>,
    active: Vec<JobId>,
    running: Vec<Option<JobId>>,
}

impl Backlog {
    fn new(jobs: usize, cores: usize, differs: bool) -> Backlog {
        let mut rng = Pcg64::seed_from_u64(jobs as u64);
        let task = |index: usize| {
            let wcet = Time(rng.random_range(500_000..1_500_000));
            let slack = Time(rng.random_range(0..1_000_000 + jobs as u64 * 400_000 / cores as u64));
            let mut task = Task::periodic(format!("t{index}"), wcet + slack, wcet);
            if differs {
                (task.value, task.criticality) = (rng.random_range(1.0..5.0), rng.random_range(0..2));
            }
            task
        };
        let system = TaskSet::new("backlog", (0..jobs).map(task).collect(), cores).system;
        let jobs: Vec<Job> = (0..).zip(system.tasks()).map(|(index, task)| Job::first(TaskId(index), task)).collect();
        let active: Vec<JobId> = (0..jobs.len() as u32).map(JobId).collect();
        Backlog { system, jobs, active, running: vec![None; cores] }
    }

    fn view<'a>(&'a self, active: &'a [JobId], events: &'a [Event]) -> SystemView<'a> {
        let Backlog { system, jobs, running, .. } = self;
        SystemView::new(Time::ZERO, system, active, jobs, running).with_events(events)
    }

    /// Starts a scheduler and shows it the releases of all jobs.
    fn show(&self, scheduler: &mut dyn Scheduler) {
        let releases: Vec<Event> = self.active.iter().copied().map(Event::Released).collect();
        scheduler.start(&self.system).unwrap();
        scheduler.watch(&self.view(&self.active, &releases), &mut self.idle());
    }

    fn idle(&self) -> Assignment {
        let mut assignment = Assignment::default();
        assignment.reset(self.system.cores());
        assignment
    }

    /// Returns what a scheduler decides.
    fn decide(&self, scheduler: &mut dyn Scheduler) -> Vec<Option<JobId>> {
        let mut assignment = self.idle();
        scheduler.decide(&self.view(&self.active, &[]), &mut assignment);
        assignment.cores().to_vec()
    }
}

/// The counters of a scheduler with a budget: decisions not taken by the network, and those among them taken by EDF.
fn fallbacks(scheduler: &dyn Scheduler) -> [u64; 2] {
    let counters = scheduler.counters();
    ["fallbacks", "edf_fallbacks"].map(|wanted| counters.iter().find(|(name, _)| *name == wanted).unwrap().1)
}

/// Returns the number of distinct tokens.
fn distinct(backlog: &Backlog, model: &Model) -> usize {
    let scale = Scale::of(&model.tokenizer, &backlog.system);
    let mut observation = Observation::default();
    observation.read(&model.tokenizer, &scale, &backlog.view(&backlog.active, &[]), false);
    observation.distinct()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    /// There is a core for every job, so there is nothing to decide.
    Everyone,
    Network,
    /// The network, which fits only because some jobs have equal tokens.
    NetworkAfterAll,
    Fallback,
    /// The usual fallback after the jobs were read in vain.
    FallbackAfterAll,
    Edf,
}

/// Latencies in proportion to the size, in nanoseconds: a table, and the value that it should give at any size.
fn table(per_unit: u64) -> LatencyTable {
    LatencyTable(MEASURED_SIZES.map(|size| size as u64 * per_unit))
}

fn price(per_unit: u64, size: usize) -> u64 {
    let size = size as u64;
    if size > 8_192 { 8_192 * per_unit * size / 8_192 * size / 8_192 } else { size * per_unit }
}

/// Returns the number of rows that the network computes.
fn padded(rows: usize) -> usize {
    rows.next_multiple_of(16)
}

/// Nanoseconds per row of the network, per core of the mapping, and per job of the other parts.
const NETWORK: u64 = 3_000;
const MAPPING: u64 = 50;
const EDF: u64 = 1;
const OBSERVATION: [u64; 2] = [40, 90];
const FALLBACK: [u64; 2] = [10, 70];

fn calibration() -> Calibration {
    let stages = |differs: usize| {
        let (observation, fallback) = (table(OBSERVATION[differs]), table(FALLBACK[differs]));
        [StageLatencies { observation, fallback, edf: table(EDF) }; 2]
    };
    let mapping = table(MAPPING);
    Calibration { network: table(NETWORK), mapping, staying: mapping, equal: stages(0), differing: stages(1) }
}

/// The level that the latencies above call for.
fn expected(budget: u64, jobs: usize, distinct: usize, cores: usize, differs: bool) -> Level {
    let left = budget.saturating_sub(price(EDF, jobs));
    let observation = price(OBSERVATION[usize::from(differs)], jobs);
    let fallback = price(FALLBACK[usize::from(differs)], jobs);
    let network = |rows: usize| observation + price(NETWORK, padded(1 + rows)) + price(MAPPING, cores);
    let may_read = network(1) <= left && observation + fallback <= left;
    match () {
        () if jobs <= cores => Level::Everyone,
        // The paper's tokens are 128 slack bins.
        () if network(jobs.min(128)) <= left => Level::Network,
        () if may_read && network(distinct) <= left => Level::NetworkAfterAll,
        () if may_read => Level::FallbackAfterAll,
        () if fallback <= left => Level::Fallback,
        () => Level::Edf,
    }
}

#[test]
fn the_level_is_what_the_latencies_say() {
    let cores = 2;
    let model = Arc::new(Model::random(Tokenizer::paper(), 1));
    let sizes = (1..40).chain((0..).map(|step| (40.0 * 1.12f64.powi(step)) as usize).take_while(|size| *size < 10_000));
    let mut seen = Vec::new();
    for (jobs, differs) in sizes.chain([10_000]).flat_map(|jobs| [(jobs, false), (jobs, true)]) {
        let backlog = Backlog::new(jobs, cores, differs);
        let differs = differs && jobs > 1;
        let distinct = distinct(&backlog, &model);
        let mut usual = temponet_sched::fallback(differs);
        let mut edf = temponet_sched::global_edf();
        let mut free = Learned::new(model.clone(), Options::default()).unwrap();
        [&mut *usual, &mut *edf, &mut free].into_iter().for_each(|scheduler| backlog.show(scheduler));
        for budget in [20_000, 100_000, 300_000, 1_000_000] {
            let options = Options { budget_ns: Some(budget), calibration: Some(calibration()), ..Options::default() };
            let mut scheduler = Learned::new(model.clone(), options).unwrap();
            let mut shared = scheduler.share();
            let level = expected(budget, jobs, distinct, cores, differs);
            let what = format!("{jobs} jobs, {differs}, {budget} ns: {level:?}");
            for scheduler in [&mut scheduler, &mut shared] {
                backlog.show(scheduler);
                for repetition in 1..3 {
                    let decision = backlog.decide(scheduler);
                    let (others, wanted) = match level {
                        Level::Everyone | Level::Network | Level::NetworkAfterAll => {
                            ([0, 0], backlog.decide(&mut free))
                        }
                        Level::Fallback | Level::FallbackAfterAll => ([1, 0], backlog.decide(&mut *usual)),
                        Level::Edf => ([1, 1], backlog.decide(&mut *edf)),
                    };
                    assert_eq!(fallbacks(scheduler), others.map(|count| count * repetition), "{what}");
                    assert_eq!(decision, wanted, "{what}");
                }
            }
            seen.push(level);
        }
    }
    let levels = [Level::Network, Level::NetworkAfterAll, Level::Fallback, Level::FallbackAfterAll, Level::Edf];
    assert!(levels.iter().all(|level| seen.contains(level)), "{seen:?}");
}

/// The time of the planners grows with the number of periodic tasks, and the time of EDF with the number of events.
#[test]
fn tasks_and_events_count_as_well() {
    let backlog = Backlog::new(1_000, 2, false);
    let few = &backlog.active[..10];
    let network = |tokenizer: Tokenizer, budget: u64, events: &[Event]| {
        let calibration = Calibration { network: LatencyTable::default(), ..calibration() };
        let options = Options { budget_ns: Some(budget), calibration: Some(calibration), ..Options::default() };
        let mut scheduler = Learned::new(Model::random(tokenizer, 1).into(), options).unwrap();
        scheduler.start(&backlog.system).unwrap();
        scheduler.decide(&backlog.view(few, events), &mut backlog.idle());
        fallbacks(&scheduler)[0] == 0
    };
    let releases: Vec<Event> = few.iter().copied().map(Event::Released).collect();
    // Ten events are five pairs: 5 · 10 ns. The mapping takes 100 ns, and ten jobs 400 ns.
    assert!(network(Tokenizer::paper(), 550, &releases) && !network(Tokenizer::paper(), 549, &releases));
    assert!(network(Tokenizer::paper(), 510, &releases[..2]) && !network(Tokenizer::paper(), 509, &[]));
    // Jobs of 1 000 tasks are to come: 40 000 ns.
    assert!(network(Tokenizer::full(), 40_110, &[]) && !network(Tokenizer::full(), 40_109, &[]));
}

#[test]
fn no_budget_at_all_is_edf() {
    let horizon = Time::from_ms(400);
    for cores in [1, 4] {
        let set = generate(&Spec::new(10 * cores, cores, 1.3 * cores as f64), 2).unwrap();
        let edf = simulate(&set, 1, horizon, &mut *temponet_sched::global_edf(), &mut Unobserved).unwrap();
        let options = Options { budget_ns: Some(0), ..Options::default() };
        let mut hasty = Learned::new(Model::random(Tokenizer::full(), 1).into(), options).unwrap();
        let metrics = simulate(&set, 1, horizon, &mut hasty, &mut Unobserved).unwrap();
        assert_eq!(metrics.jobs, edf.jobs);
        let [all, by_edf] = fallbacks(&hasty);
        assert!(all == by_edf && all > 50, "{all} {by_edf}");
    }
}

/// Weights whose sums overflow, so that the network has taken its time in vain.
#[test]
fn a_network_that_fails_late_leaves_what_still_fits() {
    let model = Model::random(Tokenizer::paper(), 1);
    let large = |_: &str, rows: usize, columns: usize| vec![1e30; rows * columns];
    let weights = temponet_infer::Weights::new(model.weights.architecture.clone(), large);
    let broken = Arc::new(Model { weights, ..model });
    let backlog = Backlog::new(20, 1, false);
    let calibration = Calibration { mapping: LatencyTable::default(), ..calibration() };
    let network = price(EDF, 20) + price(OBSERVATION[0], 20) + price(NETWORK, padded(1 + distinct(&backlog, &broken)));
    for (rest, wanted) in [(0, [1, 1]), (price(FALLBACK[0], 20), [1, 0])] {
        let options = Options { budget_ns: Some(network + rest), calibration: Some(calibration), ..Options::default() };
        let mut scheduler = Learned::new(broken.clone(), options).unwrap();
        backlog.show(&mut scheduler);
        backlog.decide(&mut scheduler);
        assert_eq!(fallbacks(&scheduler), wanted, "{rest} ns are left");
    }
}

/// The machine may be interrupted at any time, and by other tests most of all. An interruption only ever adds time, so
/// the least of several repetitions of the same decision tells how long it takes.
#[test]
fn no_decision_takes_much_longer_than_its_budget() {
    let model = Arc::new(Model::random(Tokenizer::full(), 1));
    let cores = 8;
    for budget in [20, 100, 1_000, 10_000].map(Duration::from_micros) {
        let options = Options { budget_ns: Some(budget.as_nanos() as u64), ..Options::default() };
        let scheduler = Learned::new(model.clone(), options).unwrap();
        for (jobs, differs) in [10, 100, 1_000, 10_000].into_iter().flat_map(|jobs| [(jobs, false), (jobs, true)]) {
            let backlog = Backlog::new(jobs, cores, differs);
            let mut scheduler = scheduler.share();
            // Not even EDF learns of 10 000 releases within any budget.
            backlog.show(&mut scheduler);
            let (id, rest) = backlog.active.split_last().unwrap();
            let leaves = ([Event::Completed(*id)], rest);
            let comes = ([Event::Released(*id)], &backlog.active[..]);
            let mut least = [Duration::MAX; 2];
            for _ in 0..12 {
                for ((events, active), least) in [leaves, comes].iter().zip(&mut least) {
                    let (view, mut assignment) = (backlog.view(active, events), backlog.idle());
                    let begin = Instant::now();
                    scheduler.decide(&view, &mut assignment);
                    *least = (*least).min(begin.elapsed());
                }
            }
            let most = 2 * budget + Duration::from_micros(50);
            let counters = scheduler.counters();
            assert!(least.iter().all(|least| *least <= most), "{jobs} jobs, {budget:?}: {least:?}, {counters:?}");
        }
    }
}

#[test]
fn a_calibration_can_be_stored_and_given_to_all() {
    let model = Arc::new(Model::random(Tokenizer::full(), 1));
    let options = Options { budget_ns: Some(50_000), ..Options::default() };
    let measured = Learned::new(model.clone(), options).unwrap();
    let calibration = measured.options().calibration.unwrap();
    assert_eq!(measured.share().options().calibration, Some(calibration));
    assert!(calibration.network.0.is_sorted() && calibration.network.0[0] > 0);
    let text = serde_json::to_string(&calibration).unwrap();
    let read: Calibration = serde_json::from_str(&text).unwrap();
    assert_eq!(read, calibration);
    let set = generate(&Spec::new(30, 2, 2.4), 3).unwrap();
    let run = |mut scheduler: Temponet| {
        let metrics = simulate(&set, 1, Time::from_ms(300), &mut scheduler, &mut Unobserved).unwrap();
        (metrics.jobs, scheduler.counters())
    };
    let given = Options { calibration: Some(read), tuning: Tuning::Off, ..options };
    let one = Temponet::new(model.clone(), given).unwrap();
    let (shared, other) = (one.share(), Temponet::new(model, given).unwrap());
    let first = run(one);
    assert_eq!((run(shared), run(other)), (first.clone(), first));
}

#[test]
fn models_of_every_kind_can_be_calibrated() {
    let continuous = Tokenizer::continuous(Continuous::Mlp { hidden: 8 });
    let feed_forward = Tokenizer { slots: Some(20), ..Tokenizer::full() };
    let set = generate(&Spec::new(12, 2, 2.4), 4).unwrap();
    for tokenizer in [Tokenizer::paper(), continuous, feed_forward] {
        let model = Arc::new(Model::random(tokenizer, 1));
        for (sparse, mapping) in [(false, Mapping::Greedy), (true, Mapping::Hungarian { migration: 0.2 })] {
            let budget_ns = Some(3_000_000);
            let mut scheduler =
                Learned::new(model.clone(), Options { sparse, mapping, budget_ns, ..Options::default() }).unwrap();
            let Calibration { network, mapping, staying, equal, differing } = scheduler.options().calibration.unwrap();
            let stages =
                equal.iter().chain(&differing).flat_map(|stages| [stages.observation, stages.fallback, stages.edf]);
            for table in stages.chain([network, mapping, staying]) {
                assert!(table.0.is_sorted() && table.0[0] > 0, "{table:?}");
            }
            simulate(&set, 1, Time::from_ms(200), &mut scheduler, &mut Unobserved).unwrap();
        }
    }
}

/// A decision that someone else takes is none for the network.
#[test]
fn watching_asks_nobody_but_edf() {
    let backlog = Backlog::new(50, 2, false);
    let mut assignment = backlog.idle();
    let mut scheduler = Learned::new(Model::random(Tokenizer::full(), 1).into(), Options::default()).unwrap();
    scheduler.start(&backlog.system).unwrap();
    scheduler.watch(&backlog.view(&backlog.active, &[]), &mut assignment);
    assert_eq!(assignment.cores(), [None, None]);
    let options = Options { budget_ns: Some(0), calibration: Some(calibration()), ..Options::default() };
    let mut hasty = Learned::new(Model::random(Tokenizer::full(), 1).into(), options).unwrap();
    backlog.show(&mut hasty);
    assert_eq!(fallbacks(&hasty), [0, 0]);
    let mut edf = temponet_sched::global_edf();
    backlog.show(&mut *edf);
    assert_eq!(backlog.decide(&mut hasty), backlog.decide(&mut *edf));
}
