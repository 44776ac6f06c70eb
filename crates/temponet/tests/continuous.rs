//! Contract: a model that reads slack as a number is a model like any other. Its schedules are legal, the order of jobs
//! does not matter, every kernel agrees with the reference, and its file can be read back.

use std::sync::Arc;

use temponet::stages::{Continuous, Feature, Learned, Observation, Scale, Tokenizer};
use temponet::{Model, Options, Temponet};
use temponet_infer::{Kernel, Network, Precision, RealInput, reference};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Engine, Unobserved, simulate};
use temponet_task::{Assignment, Scheduler, SystemView, TaskSet, Time};

/// Greatest difference from the reference's Q-values that is allowed to f32 kernels.
const CLOSE: f32 = 1e-3;
/// Greatest difference from the reference's Q-values that is allowed to kernels of lower precision.
const ROUGH: f32 = 0.06;

/// A tokenizer for each kind of continuous slack, and one with further features.
fn all() -> Vec<Tokenizer> {
    let fitted = Continuous::fit(&[[0.5, 1.0], [3.0, 2.0], [-1.0, 0.2]]);
    let beside = Tokenizer { features: vec![Feature::Core, Feature::Value], ..Tokenizer::continuous(Continuous::Raw) };
    let kinds = [Continuous::Raw, fitted, Continuous::Mlp { hidden: 16 }];
    kinds.into_iter().map(Tokenizer::continuous).chain([beside]).collect()
}

fn overloaded(tasks: usize, cores: usize) -> TaskSet {
    generate(&Spec::new(tasks, cores, 1.2 * cores as f64), 5).unwrap()
}

/// Calls `of` at every decision point of a run under EDF.
fn at_decisions(set: &TaskSet, mut of: impl FnMut(&SystemView<'_>)) {
    let mut edf = temponet_sched::build("edf").unwrap();
    edf.start(&set.system).unwrap();
    let mut engine = Engine::new(set, 1, Time::from_ms(100));
    let mut assignment = Assignment::default();
    while engine.advance(&mut Unobserved) {
        of(&engine.view());
        assignment.reset(set.cores());
        edf.decide(&engine.view(), &mut assignment);
        engine.apply(&assignment, &mut Unobserved).unwrap();
    }
}

#[test]
fn it_schedules_and_its_shield_holds() {
    let mut met = 0;
    for (seed, tokenizer) in all().into_iter().enumerate() {
        let model = Arc::new(Model::random(tokenizer, seed as u64));
        for cores in [1, 4] {
            let set = overloaded(10 * cores, cores);
            let mut scheduler = Learned::new(model.clone(), Options::default()).unwrap();
            let first = simulate(&set, 1, Time::from_ms(200), &mut scheduler, &mut Unobserved).unwrap();
            let again = simulate(&set, 1, Time::from_ms(200), &mut scheduler, &mut Unobserved).unwrap();
            assert_eq!(first.jobs, again.jobs);
            assert_eq!(scheduler.counters(), [("fallbacks", 0)], "the network has answered every time");
            met += first.jobs.met;
        }
        let safe = generate(&Spec::new(6, 1, 0.95), 2).unwrap();
        let mut shielded = Temponet::new(model, Options::default()).unwrap();
        let metrics = simulate(&safe, 1, Time::from_ms(500), &mut shielded, &mut Unobserved).unwrap();
        assert_eq!(metrics.missed(), 0);
    }
    assert!(met > 100, "{met}");
}

#[test]
fn every_kernel_gives_the_reference_and_the_order_does_not_matter() {
    let set = overloaded(40, 2);
    for tokenizer in all() {
        let model = Model::random(tokenizer, 3);
        let scale = Scale::of(&model.tokenizer, &set.system);
        let network =
            |kernel: Kernel| Network::new(&model.weights, temponet_infer::NetworkOptions::of(kernel)).unwrap();
        let mut networks: Vec<Network> = Kernel::available().into_iter().map(network).collect();
        let (mut straight, mut turned) = (Observation::default(), Observation::default());
        let (mut q, mut decisions) = (Vec::new(), 0);
        at_decisions(&set, |view| {
            decisions += 1;
            if decisions % 40 != 0 || view.active.is_empty() {
                return;
            }
            straight.read(&model.tokenizer, &scale, view, false);
            let expected = reference(&model.weights, &straight.rows()).q;
            for network in &mut networks {
                network.forward(&straight.rows(), &mut q);
                let most = if network.kernel().precision() == Precision::F32 { CLOSE } else { ROUGH };
                let gap = q.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(gap < most, "{}: {gap}", network.kernel());
            }
            let reversed: Vec<_> = view.active.iter().rev().copied().collect();
            turned.read(&model.tokenizer, &scale, &view.with_active(&reversed), false);
            let other = reference(&model.weights, &turned.rows()).q;
            for (id, row) in straight.jobs() {
                let place = turned.jobs().iter().find(|(of, _)| of == id).unwrap().1;
                assert!((expected[*row as usize] - other[place as usize]).abs() < CLOSE);
            }
        });
        assert!(decisions > 80, "{decisions}");
    }
}

#[test]
fn equal_jobs_are_one_row_and_others_are_not() {
    let tasks = ["a", "b", "c"].map(|name| temponet_task::Task::periodic(name, Time::from_ms(10), Time::from_ms(2)));
    let mut set = TaskSet::new("s", tasks.to_vec(), 1);
    set.system.tasks_mut()[2].wcet = Time::from_ms(3);
    let tokenizer = Tokenizer::continuous(Continuous::Raw);
    let scale = Scale::of(&tokenizer, &set.system);
    let mut observation = Observation::default();
    let mut engine = Engine::new(&set, 1, Time::from_ms(100));
    assert!(engine.advance(&mut Unobserved));
    observation.read(&tokenizer, &scale, &engine.view(), false);
    assert_eq!(observation.jobs().iter().map(|(_, row)| *row).collect::<Vec<_>>(), [1, 1, 2]);
    // The scale is the median wcet, 2 ms.
    assert_eq!([observation.real(1), observation.real(2)], [[4.0, 1.0], [3.5, 1.5]]);
    assert_eq!(observation.rows().bias, [0.0, 2f32.ln(), 0.0]);
}

#[test]
fn urgent_and_long_are_told_by_the_slack_itself() {
    let set = overloaded(20, 1);
    let mut clear = 0;
    for how in [Continuous::Raw, Continuous::fit(&[[0.0, 1.0], [9.0, 3.0]])] {
        let binned = Tokenizer { bins: 8, long_slack_reserve: 0.5, ..Tokenizer::paper() };
        let continuous = Tokenizer { continuous: Some(how), ..binned.clone() };
        let scale = Scale::of(&binned, &set.system);
        let [mut bins, mut numbers] = [(); 2].map(|()| Observation::default());
        at_decisions(&set, |view| {
            bins.read(&binned, &scale, view, true);
            numbers.read(&continuous, &scale, view, true);
            assert_eq!(bins.urgent(), numbers.urgent());
            assert_eq!(bins.rows().bias, numbers.rows().bias);
            clear += usize::from(bins.urgent() > 0.0 && bins.rows().bias.contains(&0.5));
        });
    }
    assert!(clear > 50, "{clear} decisions with jobs of both kinds");
}

#[test]
fn its_file_reads_back_or_is_refused() {
    for tokenizer in all() {
        let model = Model::random(tokenizer, 3);
        let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!((read.tokenizer, read.weights.architecture), (model.tokenizer, model.weights.architecture));
    }
    let mut other = Model::random(Tokenizer::continuous(Continuous::Mlp { hidden: 4 }), 1);
    assert_eq!(other.weights.architecture.real, Some(RealInput { inputs: 2, hidden: 4 }));
    other.tokenizer.continuous = Some(Continuous::Raw);
    let error = Model::from_bytes(&other.to_bytes().unwrap()).unwrap_err();
    assert!(error.to_string().contains("not those of the network"), "{error}");
    // A tokenizer without the field `continuous`, as older files have it.
    let old = r#"{"bins":4,"binning":{"uniform":{"width":0.5}},"clip":true,"long_slack_reserve":0.0,"features":[]}"#;
    let tokenizer: Tokenizer = serde_json::from_str(old).unwrap();
    assert_eq!(tokenizer.continuous, None);
    assert_eq!(serde_json::to_string(&tokenizer).unwrap(), old);
}
