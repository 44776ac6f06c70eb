//! Contract: whatever the weights are, decisions are legal, the order of jobs does not matter, and the fallback decides
//! where the network cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet::stages::{Binning, Feature, JobAdvice, Learned, Observation, Scale, Tokenizer};
use temponet::{Calibration, LatencyTable, MEASURED_SIZES, Mapping, Model, Options, Temponet, Tuning};
use temponet_infer::Sparsity;
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Engine, Unobserved, simulate};
use temponet_task::{Assignment, Job, JobId, Scheduler, SystemView, Task, TaskId, TaskSet, Time};

fn overloaded(tasks: usize, cores: usize, seed: u64) -> TaskSet {
    let mut spec = Spec::new(tasks, cores, 1.2 * cores as f64);
    (spec.values, spec.critical.share, spec.bcet) = ((1.0, 5.0), 0.3, 0.4);
    generate(&spec, seed).unwrap()
}

fn all_mappings() -> [Mapping; 3] {
    let sinkhorn = Mapping::Sinkhorn { temperature: 0.1, iterations: 30, migration: 0.2 };
    [Mapping::Greedy, sinkhorn, Mapping::Hungarian { migration: 0.2 }]
}

#[test]
fn any_weights_give_legal_schedules_on_any_number_of_tasks_and_cores() {
    for (seed, (tasks, cores)) in [(1, 1), (5, 1), (12, 3), (40, 8)].into_iter().enumerate() {
        for tokenizer in [Tokenizer::paper(), Tokenizer::full()] {
            let model = Arc::new(Model::random(tokenizer, seed as u64));
            for mapping in all_mappings() {
                for sparse in [false, true] {
                    let options = Options { mapping, sparse, ..Options::default() };
                    let mut scheduler = Learned::new(model.clone(), options).unwrap();
                    let set = overloaded(tasks.max(cores + 1), cores, seed as u64);
                    let run = || Time::from_ms(200);
                    let first = simulate(&set, 1, run(), &mut scheduler, &mut Unobserved).unwrap();
                    let again = simulate(&set, 1, run(), &mut scheduler, &mut Unobserved).unwrap();
                    assert_eq!((first.jobs.met, first.decisions), (again.jobs.met, again.decisions));
                }
            }
        }
    }
}

#[test]
fn the_order_of_jobs_does_not_matter() {
    let set = overloaded(30, 4, 3);
    let model = Arc::new(Model::random(Tokenizer::full(), 9));
    let mut engine = Engine::new(&set, 1, Time::from_ms(200));
    let (mut one, mut other) =
        (Learned::new(model.clone(), Options::default()).unwrap(), Learned::new(model, Options::default()).unwrap());
    one.start(&set.system).unwrap();
    other.start(&set.system).unwrap();
    let mut decisions = 0;
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        let (mut first, mut second) = (Assignment::default(), Assignment::default());
        first.reset(4);
        second.reset(4);
        one.decide(&view, &mut first);
        let turned: Vec<_> = view.active.iter().rev().copied().collect();
        other.decide(&view.with_active(&turned), &mut second);
        // Where there is a core for every job, cores are assigned in the order of the view.
        let chosen = |assignment: &Assignment| {
            let mut chosen = assignment.cores().to_vec();
            if view.active.len() <= 4 {
                chosen.sort_unstable();
            }
            chosen
        };
        assert_eq!(chosen(&first), chosen(&second));
        decisions += 1;
        engine.apply(&first, &mut Unobserved).unwrap();
    }
    assert!(decisions > 100);
}

/// Jobs with equal deadlines are ordered by their tokens: the order of the tasks does not change what a job is worth,
/// though attention is sparse.
#[test]
fn the_order_of_tasks_does_not_matter_to_sparse_attention() {
    let task = |place: u64| {
        let wcet = Time::from_ms(1 + place * 7 % 19);
        Task::periodic(format!("t{place}"), Time::from_ms(90), wcet).with_deadline(Time::from_ms(30 + place % 4 * 10))
    };
    let tasks: Vec<Task> = (0..60).map(task).collect();
    let turned: Vec<Task> = tasks.iter().rev().cloned().collect();
    let model = Model::random(Tokenizer { sparse: true, ..Tokenizer::paper() }, 4);
    let values = |tasks: Vec<Task>| {
        let system = TaskSet::new("test", tasks, 2).system;
        let jobs: Vec<Job> = (0..).zip(system.tasks()).map(|(index, task)| Job::first(TaskId(index), task)).collect();
        let active: Vec<JobId> = (0..jobs.len() as u32).map(JobId).collect();
        let (running, events) = ([None; 2], []);
        let view = SystemView::new(Time(0), &system, &active, &jobs, &running).with_events(&events);
        let mut observation = Observation::default();
        observation.read(&model.tokenizer, &Scale::of(&model.tokenizer, &system), &view, false);
        // Some jobs are equal in deadline and token, and share a row.
        assert!((20..60).contains(&observation.distinct()), "{}", observation.distinct());
        assert_eq!(observation.rows().sparsity, Some(Sparsity::paper(observation.distinct())));
        let q = temponet_infer::reference(&model.weights, &observation.rows()).q;
        let name = |id: &JobId| system.tasks()[id.0 as usize].name.clone();
        observation.jobs().iter().map(|(id, row)| (name(id), q[*row as usize])).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(values(tasks), values(turned));
}

#[test]
fn a_model_with_a_tick_decides_at_each_tick_while_jobs_wait() {
    let set = overloaded(6, 1, 3);
    let decisions = |tick: Option<f64>| {
        let mut model = Model::random(Tokenizer::paper(), 1);
        model.set_tick(tick);
        let model = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(model.tick(), tick, "the file keeps it");
        let mut scheduler = Learned::new(Arc::new(model), Options::default()).unwrap();
        simulate(&set, 1, Time::from_ms(500), &mut scheduler, &mut Unobserved).unwrap().decisions
    };
    let (events, ticks) = (decisions(None), decisions(Some(0.1)));
    assert!(ticks > 4 * events, "{ticks} against {events}");
}

#[test]
fn a_network_that_cannot_answer_is_replaced_and_counted() {
    let set = overloaded(10, 2, 1);
    let horizon = Time::from_ms(300);
    let best = simulate(&set, 1, horizon, &mut *temponet_sched::build("mh-edf").unwrap(), &mut Unobserved).unwrap();
    // Over budget at every decision, but only with the network.
    let model = Arc::new(Model::random(Tokenizer::full(), 1));
    let network = LatencyTable([101; MEASURED_SIZES.len()]);
    let calibration = Some(Calibration { network, ..Calibration::default() });
    let options = Options { budget_ns: Some(100), calibration, ..Options::default() };
    let mut hasty = Learned::new(model.clone(), options).unwrap();
    let metrics = simulate(&set, 1, horizon, &mut hasty, &mut Unobserved).unwrap();
    assert_eq!(metrics.jobs, best.jobs);
    assert!(hasty.counters()[0].1 > 50 && hasty.counters()[1] == ("edf_fallbacks", 0), "{:?}", hasty.counters());
    // Weights so large that sums overflow.
    let mut broken = (*model).clone();
    broken.weights =
        temponet_infer::Weights::new(model.weights.architecture.clone(), |_, rows, columns| vec![1e30; rows * columns]);
    let mut broken = Learned::new(Arc::new(broken), Options::default()).unwrap();
    let metrics = simulate(&set, 1, horizon, &mut broken, &mut Unobserved).unwrap();
    assert_eq!(metrics.jobs, best.jobs);
    let mut plain = Learned::new(model, Options::default()).unwrap();
    simulate(&set, 1, horizon, &mut plain, &mut Unobserved).unwrap();
    assert_eq!(plain.counters(), [("fallbacks", 0)]);
}

#[test]
fn tokens_mean_the_same_on_every_time_scale() {
    let scaled = |factor: u64| {
        let tasks = [(40, 18), (60, 24), (100, 40)];
        let task = |(index, (period, wcet)): (usize, &(u64, u64))| {
            Task::periodic(format!("t{index}"), Time(period * factor), Time(wcet * factor))
        };
        TaskSet::new("s", tasks.iter().enumerate().map(task).collect(), 1)
    };
    let model = Arc::new(Model::random(Tokenizer::full(), 4));
    let run = |factor: u64| {
        let mut scheduler = Learned::new(model.clone(), Options::default()).unwrap();
        let metrics = simulate(&scaled(factor), 1, Time(6_000 * factor), &mut scheduler, &mut Unobserved).unwrap();
        (metrics.jobs, metrics.preemptions)
    };
    assert_eq!(run(1_000), run(1_000_000_000));
}

#[test]
fn hopeless_jobs_have_tokens_of_their_own_unless_clipped() {
    let set = overloaded(4, 1, 1);
    let mut engine = Engine::new(&set, 1, Time::from_ms(200));
    assert!(engine.advance(&mut Unobserved));
    let mut job = *engine.view().ready().next().unwrap().1;
    (job.bcet, job.wcet, job.executed) = (Time::from_ms(2), Time::from_ms(4), Time::ZERO);
    let token = |tokenizer: &Tokenizer, left: u64| {
        let mut out = Vec::new();
        let scale = Scale::of(tokenizer, &set.system);
        let mut view = engine.view();
        view.now = job.deadline - Time::from_ms(left);
        tokenizer.token(&job, &view, &scale, JobAdvice::default(), &mut out, &mut Vec::new());
        out[0]
    };
    let full = Tokenizer { features: vec![Feature::Core], ..Tokenizer::full() };
    assert_eq!([token(&full, 1), token(&full, 3), token(&full, 4)], [65, 64, 0], "impossible, late by wcet, no slack");
    let paper = Tokenizer::paper();
    assert_eq!([token(&paper, 1), token(&paper, 3), token(&paper, 4)], [0, 0, 0]);
    let mut out = Vec::new();
    let advice = JobAdvice { advisors: 3, planners: 5, pressure: 0.9 };
    full.token(&job, &engine.view(), &Scale::of(&full, &set.system), advice, &mut out, &mut Vec::new());
    assert_eq!(out.len(), full.job_vocabularies().len());
}

#[test]
fn a_model_reads_back_or_is_refused() {
    let fitted = Binning::fit(&[0.1, 0.2, 1.0, 5.0, 9.0], 4);
    let tokenizer = Tokenizer { bins: 4, binning: fitted, ..Tokenizer::full() };
    let model = Model::random(tokenizer, 3);
    let bytes = model.to_bytes().unwrap();
    let read = Model::from_bytes(&bytes).unwrap();
    assert_eq!(read.tokenizer, model.tokenizer);
    assert!(read.is_untrained() && read.provenance().unwrap().contains("seed 3"));
    let mut other = model.clone();
    other.tokenizer.bins = 5;
    let error = Model::from_bytes(&other.to_bytes().unwrap()).unwrap_err();
    assert!(error.to_string().contains("not those of the network"), "{error}");
    let bare = model.weights.to_bytes().unwrap();
    assert!(Model::from_bytes(&bare).unwrap_err().to_string().contains("it is missing"));
}

#[test]
fn a_damaged_file_is_an_error_and_never_a_panic() {
    let tokenizer = Tokenizer { bins: 2, features: vec![], ..Tokenizer::full() };
    let bytes = Model::random(tokenizer, 1).to_bytes().unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut rng = Pcg64::seed_from_u64(1);
    let mut refused = 0;
    for _ in 0..3_000 {
        let mut damaged = bytes[..header + rng.random_range(0..200)].to_vec();
        if rng.random::<bool>() {
            damaged = bytes.clone();
        }
        for _ in 0..rng.random_range(1..6) {
            let place = rng.random_range(0..header.min(damaged.len()));
            damaged[place] =
                if rng.random::<bool>() { rng.random() } else { b"0123456789{}[]\":,"[rng.random_range(0..17)] };
        }
        refused += usize::from(Model::from_bytes(&damaged).is_err());
    }
    // Each damaged file that is still accepted differs only in notation, or in a text that means nothing to the
    // program.
    assert!(refused > 2_700, "{refused}");
    let mut flipped = bytes.clone();
    flipped[header + 5] ^= 1;
    assert!(Model::from_bytes(&flipped).unwrap_err().to_string().contains("checksum"));
}

#[test]
fn behind_the_shield_no_weights_miss_what_is_safe() {
    let (mut misses, mut overrides) = (0, 0);
    for seed in 0..60 {
        let cores = 1 + seed as usize % 3;
        let mut spec = Spec::new(cores + 5, cores, cores as f64 * 0.95);
        spec.bcet = 0.5;
        let set = generate(&spec, seed).unwrap();
        let model = Arc::new(Model::random(if seed % 2 == 0 { Tokenizer::full() } else { Tokenizer::paper() }, seed));
        let horizon = Time::from_ms(500);
        let mut alone = Learned::new(model.clone(), Options::default()).unwrap();
        misses += simulate(&set, seed, horizon, &mut alone, &mut Unobserved).unwrap().missed();
        let mut shielded = Temponet::new(model, Options { tuning: Tuning::Off, ..Options::default() }).unwrap();
        let metrics = simulate(&set, seed, horizon, &mut shielded, &mut Unobserved).unwrap();
        assert_eq!(metrics.missed(), 0, "seed {seed}: {:?}", shielded.shield_role());
        overrides += shielded.counters()[0].1;
    }
    assert!(misses > 1_000 && overrides > 1_000, "{misses} misses, {overrides} overrides");
}

#[test]
fn that_a_model_never_idles_is_in_its_metadata_and_not_in_its_weights() {
    // Older files encode it as an idle head of zero weights and a huge negative bias, which training cannot continue
    // from.
    let mut old = Model::random(Tokenizer::full(), 3);
    let width = old.weights.tensor("head.idle.weight").len();
    old.weights.set_tensor("head.idle.weight", vec![0.0; width]);
    old.weights.set_tensor("head.idle.bias", vec![-1e6]);
    let mended = Model::from_bytes(&old.to_bytes().unwrap()).unwrap();
    assert!(mended.never_idles() && mended.weights.tensor("head.idle.bias") == [0.0]);
    let set = overloaded(12, 2, 5);
    let run = |model: &Model| {
        let mut scheduler = Learned::new(model.clone().into(), Options::default()).unwrap();
        let metrics = simulate(&set, 1, Time::from_ms(500), &mut scheduler, &mut Unobserved).unwrap();
        (metrics.jobs.met, metrics.decisions, metrics.preemptions)
    };
    assert_eq!(run(&old), run(&mended), "it decides as before");
    // A file that is written today and read back keeps the weights that training needs to continue.
    let mut own = Model::random(Tokenizer::full(), 3);
    own.set_never_idles(true);
    own.weights.set_tensor("head.value.weight", vec![0.5; width]);
    let read = Model::from_bytes(&own.to_bytes().unwrap()).unwrap();
    assert_eq!(read.weights.tensor("head.idle.weight"), own.weights.tensor("head.idle.weight"));
    assert!(read.never_idles() && read.weights.tensor("head.value.weight") == vec![0.5; width]);
    assert!(!Model::random(Tokenizer::full(), 3).never_idles());
    assert!(Model::built_in().unwrap().never_idles());
}

#[test]
fn hundreds_of_ready_jobs_need_no_fallback() {
    let shape = Model::random(Tokenizer::full(), 2);
    let small = temponet_infer::Architecture { width: 32, feed_forward: 64, ..shape.weights.architecture.clone() };
    let weights = temponet_infer::Weights::random(small, 2);
    let model = Arc::new(Model { tokenizer: Tokenizer::full(), weights });
    for (cores, tasks) in [(4, 160), (16, 640)] {
        let set = overloaded(tasks, cores, 3);
        let mut engine = Engine::new(&set, 1, Time::from_ms(2));
        let mut scheduler = Learned::new(model.clone(), Options::default()).unwrap();
        scheduler.start(&set.system).unwrap();
        let (mut assignment, mut most) = (Assignment::default(), 0);
        while engine.advance(&mut Unobserved) {
            assignment.reset(cores);
            most = most.max(engine.view().active.len());
            scheduler.decide(&engine.view(), &mut assignment);
            engine.apply(&assignment, &mut Unobserved).unwrap();
        }
        assert_eq!((most, scheduler.counters()[0]), (tasks, ("fallbacks", 0)));
    }
}
