//! Training on a GPU gives the same result as on the processor. Skipped if there is no GPU.
#![cfg(feature = "cuda")]

use temponet::stages::Learned;
use temponet::{Model, Options};
use temponet_grad::{Cpu, Cuda};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};
use temponet_train::{
    CloningSettings, DqnSettings, MethodDevice, NetworkShape, NoObserver, PpoSettings, Recipe, ReplaySettings,
    RolloutSettings, Stage, StageMethod, TrainingRun,
};

fn overloaded() -> TaskSet {
    let task = |name: &str, period, wcet| Task::periodic(name, Time::from_ms(period), Time::from_ms(wcet));
    TaskSet::new("overloaded", vec![task("a", 40, 18), task("b", 60, 24), task("c", 100, 40)], 1)
}

fn trained<D: MethodDevice>(device: D, method: StageMethod) -> Model {
    let mut recipe = Recipe {
        network: NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, ..NetworkShape::default() },
        stage: vec![Stage::new(4, method)],
        ..Recipe::default()
    };
    recipe.optimizer.rate = 3e-3;
    recipe.validation.runs = 4;
    let mut run = TrainingRun::new(device, recipe, Some(overloaded()), None);
    run.train(&mut NoObserver).unwrap();
    run.model()
}

fn compliance(model: Model) -> f64 {
    let mut scheduler = Learned::new(model.into(), Options::default()).unwrap();
    simulate(&overloaded(), 1, Time::from_secs(30), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
}

/// Both devices learn all there is to learn: they meet as many deadlines as the best schedule of this set, 80.65%, or
/// nearly as many.
#[test]
fn both_devices_learn_the_same() {
    let methods: [StageMethod; 5] = [
        DqnSettings {
            replay: ReplaySettings { steps: 1_500, learn_from: 200, environments: 8, ..ReplaySettings::default() },
            ..DqnSettings::default()
        }
        .into(),
        // All options of Q-learning that the other one leaves at their defaults.
        DqnSettings {
            replay: ReplaySettings { steps: 1_500, learn_from: 200, environments: 8, ..ReplaySettings::default() },
            priority: 0.6,
            double: false,
            dueling: false,
            huber: None,
            conservative: 0.1,
            ..DqnSettings::default()
        }
        .into(),
        CloningSettings { teacher: "optimum".into(), steps: 2_000, updates: 300, ..CloningSettings::default() }.into(),
        RolloutSettings { states: 500, environments: 16, updates: 200, ..RolloutSettings::default() }.into(),
        PpoSettings { environments: 16, length: 16, rounds: 6, batch: 128, ..PpoSettings::default() }.into(),
    ];
    for method in methods {
        let Ok(gpu) = Cuda::new() else {
            eprintln!("skipped: no GPU");
            return;
        };
        let (on_cpu, on_gpu) = (trained(Cpu::default(), method.clone()), trained(gpu, method.clone()));
        let (on_cpu, on_gpu) = (compliance(on_cpu), compliance(on_gpu));
        eprintln!("{}: {on_cpu} on the processor, {on_gpu} on the GPU", method.name());
        assert!((on_cpu - on_gpu).abs() < 0.02 && on_gpu > 0.78, "{}: {on_cpu} and {on_gpu}", method.name());
    }
}
