//! Contract of the parts of Rainbow that plain Q-learning lacks: distributions of returns, and noise in place of random
//! choices.

use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use temponet::stages::Tokenizer;
use temponet_grad::{AdamSettings, Cpu, Tape};
use temponet_infer::{Atoms, Body, Heads, Weights};
use temponet_paper::methods::RainbowSettings;
use temponet_task::{Task, TaskSet, Time};
use temponet_train::{
    Batch, DqnSettings, EpisodeSettings, Learner, NetworkShape, NoObserver, OutputRows, Recipe, ReplaySettings, Sample,
    Stage, StepSize, Tokens, Transition,
};

use super::met_by;

type Device = Cpu;

const ATOMS: Atoms = Atoms { count: 11, low: -5, high: 5 };

fn of_returns(atoms: Atoms) -> Body {
    Body::Transformer(Heads::Returns(atoms))
}

fn shape() -> NetworkShape {
    NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, body: of_returns(ATOMS) }
}

fn learner(shape: NetworkShape) -> Learner<Device> {
    let weights = Weights::random(shape.architecture(&Tokenizer::paper()), 3);
    Learner::new(Device::default(), &weights, AdamSettings::default())
}

/// Two jobs with different slacks and one core.
fn state() -> Arc<Sample> {
    let (tokens, counts, bias) = (vec![3, 40], vec![1, 1], vec![0.0; 3]);
    Arc::new(Sample { idle: vec![0], tokens, real: vec![], counts, bias, cores: 1, past: None })
}

/// Distribution of returns of running one job of a state.
fn distribution(learner: &mut Learner<Device>, state: &Sample, row: usize) -> Vec<f64> {
    let found = learner.each_shard(&[state], |device, network, parameters, _| {
        let batch = Batch::of(&[state]);
        let mut tape = Tape::new(device, parameters);
        let output = network.forward(&mut tape, &batch, &OutputRows::all(&batch));
        (tape.values(output.q), tape.values(output.value))
    });
    let (q, value) = &found[0];
    let logit = |atom: usize| f64::from(value[atom] + q[row * ATOMS.count + atom] - q[atom]);
    let powers: Vec<f64> = (0..ATOMS.count).map(|atom| logit(atom).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

#[test]
fn a_distribution_with_two_points_is_learned() {
    for (dueling, double, cores) in [(true, true, 1), (false, false, 1), (true, false, 4)] {
        let mut learner = learner(shape());
        let settings = DqnSettings {
            replay: ReplaySettings { batch: 32, ..ReplaySettings::default() },
            dueling,
            double,
            ..DqnSettings::default()
        };
        let mut dqn = RainbowSettings { noisy: 0.0, dqn: settings }.algorithm(&mut learner);
        let state = Arc::new(Sample { cores, ..(*state()).clone() });
        // The first job returns 2 at three times of ten and −3 else, the second one always 1; both are counted per
        // core.
        let outcomes = (0..10).map(|number| (1, if number < 3 { 2.0 } else { -3.0 })).chain([(2, 1.0); 10]);
        for (row, reward) in outcomes {
            let (reward, next) = (reward * cores as f32, state.clone());
            let (state, chosen) = (state.clone(), vec![row]);
            dqn.replay.push(Transition { state, chosen, speeds: vec![], reward, discount: 0.0, next });
        }
        let mut rng = Pcg64::seed_from_u64(1);
        for rate in [vec![3e-3; 400], vec![2e-4; 400]].concat() {
            dqn.update(&mut learner, &mut rng, StepSize { rate, clip: 10.0 });
        }
        let first = distribution(&mut learner, &state, 1);
        assert!((first[7] - 0.3).abs() < 0.06 && (first[2] - 0.7).abs() < 0.06, "{dueling} {first:?}");
        let second = distribution(&mut learner, &state, 2);
        assert!(second[6] > 0.97, "{dueling} {second:?}");
        let outputs = learner.outputs(None, &[&*state]);
        assert!((outputs.q(0)[1] + 1.5).abs() < 0.35 && (outputs.q(0)[2] - 1.0).abs() < 0.1, "{:?}", outputs.q(0));
    }
}

#[test]
fn a_later_distribution_is_moved_and_shrunk() {
    let mut learner = learner(shape());
    let replay = ReplaySettings { batch: 32, target_share: 0.1, ..ReplaySettings::default() };
    let settings = DqnSettings { replay, ..DqnSettings::default() };
    let mut dqn = RainbowSettings { noisy: 0.0, dqn: settings }.algorithm(&mut learner);
    let state = state();
    // Running the first job ends with 4 or 0; the second job leads back to the same state, with a reward of 1 and half
    // of what follows.
    for (row, reward, discount) in [(1, 4.0, 0.0), (1, 0.0, 0.0), (2, 1.0, 0.5), (2, 1.0, 0.5)] {
        let (chosen, next) = (vec![row], state.clone());
        dqn.replay.push(Transition { state: state.clone(), chosen, speeds: vec![], reward, discount, next });
    }
    let mut rng = Pcg64::seed_from_u64(1);
    for _ in 0..1_500 {
        dqn.update(&mut learner, &mut rng, StepSize { rate: 2e-3, clip: 10.0 });
    }
    // Both have a mean of 2, and so the second one always returns 2, or 1 or 3, as the better one of the two is
    // followed.
    let mean = |outputs: Vec<f64>| outputs.iter().enumerate().map(|(atom, p)| p * ATOMS.value(atom)).sum::<f64>();
    let second = distribution(&mut learner, &state, 2);
    assert!((mean(second) - 2.0).abs() < 0.3);
    let first = distribution(&mut learner, &state, 1);
    assert!((first[5] - 0.5).abs() < 0.15 && (first[9] - 0.5).abs() < 0.15, "{first:?}");
}

fn counterexample() -> TaskSet {
    let task = |name: &str, wcet: u64, deadline: u64| {
        Task::periodic(name, Time::from_ms(20), Time::from_ms(wcet)).with_deadline(Time::from_ms(deadline))
    };
    TaskSet::new("test", vec![task("short", 4, 20), task("long", 8, 10)], 1)
}

#[test]
fn every_part_of_rainbow_can_be_left_out() {
    let set = counterexample();
    let rainbow = DqnSettings {
        replay: ReplaySettings { steps: 1_200, learn_from: 200, environments: 8, ..ReplaySettings::default() },
        priority: 0.5,
        n_step: 3,
        epsilon: (0.0, 0.0),
        ..DqnSettings::default()
    };
    let noisy = |dqn| RainbowSettings { noisy: 0.5, dqn };
    let quiet = |dqn| RainbowSettings { noisy: 0.0, dqn };
    let settings = [
        (shape(), noisy(rainbow.clone())),
        (shape(), noisy(DqnSettings { double: false, ..rainbow.clone() })),
        (shape(), noisy(DqnSettings { dueling: false, ..rainbow.clone() })),
        (shape(), noisy(DqnSettings { priority: 0.0, ..rainbow.clone() })),
        (shape(), noisy(DqnSettings { n_step: 1, ..rainbow.clone() })),
        (shape(), quiet(DqnSettings { epsilon: (1.0, 0.05), ..rainbow.clone() })),
        (NetworkShape { body: Body::default(), ..shape() }, noisy(rainbow)),
    ];
    for (place, (network, settings)) in settings.into_iter().enumerate() {
        let small = Atoms { count: 21, low: -5, high: 15 };
        let body = network.body.keys().atoms.map_or(network.body, |_| of_returns(small));
        let network = NetworkShape { body, ..network };
        let stage = vec![Stage::new(4, settings)];
        let recipe = Recipe { network, stage, tokens: Tokens::Paper, ..Recipe::default() };
        assert_eq!(met_by(recipe, &set), 1.0, "{place}");
    }
}

#[test]
fn noise_explores_without_random_choices() {
    use temponet_train::{Episodes, Fleet, TaskSetSource, UpdatePlan, Updates};
    let tried = |noisy: f64| {
        let mut learner = learner(NetworkShape { body: Body::default(), ..shape() });
        let settings = DqnSettings {
            replay: ReplaySettings { learn_from: 1_000_000, steps: 400, ..ReplaySettings::default() },
            epsilon: (0.0, 0.0),
            ..DqnSettings::default()
        };
        let mut dqn = RainbowSettings { noisy, dqn: settings }.algorithm(&mut learner);
        let before = learner.weights();
        let episodes = Episodes::new(
            TaskSetSource::Fixed(Arc::new(counterexample())),
            Tokenizer::paper(),
            EpisodeSettings { length: 100.0, ..EpisodeSettings::default() },
        );
        let mut fleet = Fleet::new(episodes, 4, 5).unwrap();
        let (mut observer, mut rng) = (NoObserver, Pcg64::seed_from_u64(7));
        let mut updates = Updates::new(UpdatePlan::constant(StepSize { rate: 1e-3, clip: 1.0 }), &mut observer);
        dqn.act_and_learn(&mut learner, &mut fleet, &mut rng, |_| 0.0, &mut updates).unwrap();
        assert!(learner.weights() == before, "the noise is taken away again");
        // Every choice is between the same two jobs at their release.
        let first = dqn.replay.get(0);
        let same = (0..dqn.replay.len()).map(|place| dqn.replay.get(place)).filter(|own| own.state == first.state);
        let (all, others) =
            same.fold((0, 0), |(all, others), own| (all + 1, others + i32::from(own.chosen != first.chosen)));
        assert!(all > 100, "{all}");
        f64::from(others) / f64::from(all)
    };
    assert_eq!(tried(0.0), 0.0, "without noise, the same state gets the same choice");
    let share = tried(0.5);
    assert!((0.02..0.98).contains(&share), "{share}");
}
