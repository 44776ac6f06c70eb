//! Contract: a whole decision (shield, network and mapping) allocates nothing once the scheduler has seen as many jobs
//! before. This test is a binary of its own because it counts all allocations.

#[path = "../../infer/tests/allocation/counting.rs"]
mod counting;

use std::sync::Arc;

use counting::allocations;
use temponet::stages::{Continuous, Tokenizer};
use temponet::{Calibration, LatencyTable, MEASURED_SIZES, Mapping, Model, Options, StageLatencies, Temponet, Tuning};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Engine, Unobserved};
use temponet_task::{Assignment, Scheduler, TaskSet, Time};

/// Returns the number of decisions of a run, the number of allocations in the first decision, where all tasks release a
/// job at once, and the number of allocations in all later decisions.
fn run(set: &TaskSet, scheduler: &mut Temponet) -> (u64, u64, u64) {
    scheduler.start(&set.system).unwrap();
    let mut engine = Engine::new(set, 1, Time::from_ms(150));
    let mut assignment = Assignment::default();
    let (mut decisions, mut first, mut later) = (0, 0, 0);
    while engine.advance(&mut Unobserved) {
        assignment.reset(set.cores());
        let before = allocations();
        scheduler.decide(&engine.view(), &mut assignment);
        let here = allocations() - before;
        *if decisions == 0 { &mut first } else { &mut later } += here;
        decisions += 1;
        engine.apply(&assignment, &mut Unobserved).unwrap();
    }
    (decisions, first, later)
}

#[test]
fn a_decision_does_not_allocate() {
    let sinkhorn = Mapping::Sinkhorn { temperature: 0.1, iterations: 30, migration: 0.2 };
    let mappings = [Mapping::Greedy, sinkhorn, Mapping::Hungarian { migration: 0.2 }];
    let tokenizers = [Tokenizer::full(), Tokenizer::continuous(Continuous::Mlp { hidden: 8 }), Tokenizer::ahead()];
    let models = tokenizers.map(|tokenizer| Arc::new(Model::random(tokenizer, 2)));
    // With a budget of zero, the best level that takes no time decides: the network, the fallback, or EDF.
    let never = LatencyTable([u64::MAX; MEASURED_SIZES.len()]);
    let no_network = Calibration { network: never, ..Calibration::default() };
    let stages = StageLatencies { observation: never, fallback: never, ..StageLatencies::default() };
    let only_edf = Calibration { equal: [stages; 2], differing: [stages; 2], ..Calibration::default() };
    let budgets = [Calibration::default(), no_network, only_edf];
    // The shield is armed on one core, armed on several cores, and disarmed in overload.
    for (tasks, cores, load) in [(60, 1, 0.9), (60, 4, 0.5), (7, 4, 0.98), (60, 1, 1.3), (60, 4, 1.3)] {
        let set = generate(&Spec::new(tasks, cores, load * cores as f64), 3).unwrap();
        for (model, sparse) in models.iter().flat_map(|model| [(model, false), (model, true)]) {
            let by_mapping =
                mappings.map(|mapping| Options { mapping, sparse, tuning: Tuning::Off, ..Options::default() });
            let by_level = budgets.map(|calibration| Options {
                sparse,
                tuning: Tuning::Off,
                budget_ns: Some(0),
                calibration: Some(calibration),
                ..Options::default()
            });
            for options in by_mapping.into_iter().chain(by_level) {
                let mut scheduler = Temponet::new(model.clone(), options).unwrap();
                let what = format!("{tasks} tasks, {cores} cores, load {load}, {options:?}");
                let (decisions, first, later) = run(&set, &mut scheduler);
                assert!(decisions > 30, "{what}: {decisions} decisions");
                assert!(first > 0, "{what}: the counter counts");
                assert_eq!(later, 0, "{what}: allocations in {decisions} decisions");
                assert_eq!(matches!(scheduler.shield_role(), temponet::Role::Disarmed(_)), load > 1.0, "{what}");
            }
        }
    }
    // Remembering the jobs allocates nothing either, whoever is followed.
    let set = generate(&Spec::new(12, 1, 1.3), 3).unwrap();
    let mut scheduler = Temponet::new(models[0].clone(), Options::default()).unwrap();
    assert_eq!(run(&set, &mut scheduler).2, 0, "{:?} is followed", scheduler.followed());
}
