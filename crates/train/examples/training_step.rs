//! Runs a few whole updates of Q-learning on logged runs, and prints their inputs and results as JSON, for
//! `bench/peers/torch_training_step.py` to repeat.

use std::collections::BTreeMap;
use std::error::Error;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde_json::{Value, json};
use temponet::stages::Tokenizer;
use temponet_grad::{AdamSettings, Cpu};
use temponet_infer::Weights;
use temponet_train::{
    Dqn, DqnSettings, EpisodeSettings, Episodes, Learner, NetworkShape, OfflineSettings, ReplaySettings, StepSize,
    TaskSetSource, log_runs,
};

const UPDATES: usize = 5;
const RATE: f64 = 1e-3;
/// Large enough that gradients are never clipped.
const CLIP: f64 = 1e9;

fn main() -> Result<(), Box<dyn Error>> {
    let tokenizer = Tokenizer::full();
    let shape = NetworkShape { width: 32, layers: 2, heads: 4, feed_forward: 64, ..NetworkShape::default() };
    let architecture = shape.architecture(&tokenizer);
    // Where a gradient is zero except for rounding, Adam with a tiny epsilon would make a whole step out of the
    // rounding.
    let adam = AdamSettings { epsilon: 1e-4, ..AdamSettings::default() };
    let mut learner = Learner::new(Cpu::default(), &Weights::random(architecture.clone(), 1), adam);
    let settings = DqnSettings {
        replay: ReplaySettings { batch: 16, target_share: 0.05, ..ReplaySettings::default() },
        double: false,
        dueling: true,
        huber: Some(1.0),
        ..Default::default()
    };
    let mut dqn = Dqn::new(settings.clone(), &mut learner);
    let episodes = Episodes::new(
        TaskSetSource::Drawn(Box::default()),
        tokenizer,
        EpisodeSettings { length: 100.0, ..EpisodeSettings::default() },
    );
    let logs = OfflineSettings { transitions: 200, dqn: settings.clone(), ..OfflineSettings::default() };
    dqn.replay = log_runs(&logs, &episodes, 1)?;
    let before = tensors(&mut learner, &mut dqn);
    let mut rng = Pcg64::seed_from_u64(1);
    let mut updates: Vec<Value> = Vec::new();
    for _ in 0..UPDATES {
        // The update draws the same transitions, because it starts from the same random state.
        let places = dqn.replay.draw(settings.replay.batch, 1.0, &mut rng.clone()).places;
        let queued = dqn.update(&mut learner, &mut rng, StepSize { rate: RATE, clip: CLIP });
        let figures = learner.figures(&queued);
        updates.push(json!({ "places": places, "loss": figures.loss, "norm": figures.norm }));
    }
    let case = json!({
        "architecture": architecture,
        "adam": adam,
        "rate": RATE,
        "huber": settings.huber,
        "target_share": settings.replay.target_share,
        "transitions": (0..dqn.replay.len()).map(|place| dqn.replay.get(place)).collect::<Vec<_>>(),
        "before": before,
        "updates": updates,
        "after": tensors(&mut learner, &mut dqn),
    });
    println!("{case}");
    Ok(())
}

/// Returns the shape and values of all tensors, by the name of their list and their own name.
fn tensors(learner: &mut Learner<Cpu>, dqn: &mut Dqn<Cpu>) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    learner.visit(vec![("target", &mut dqn.target)], |list, device, values| {
        for id in values.ids() {
            let value = json!({ "shape": values.shape(id), "values": values.values(device, id) });
            all.insert(format!("{list}/{}", values.name(id)), value);
        }
    });
    all
}
