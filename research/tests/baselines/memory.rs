//! Contract of the recurrent network: it computes in deployment what it computes in training, decision after decision,
//! and it learns what only a memory can know.

use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_grad::{AdamSettings, Cpu};
use temponet_infer::{Body, Network, NetworkOptions, Rows, Weights};
use temponet_paper::networks;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};
use temponet_train::{
    DqnSettings, EpisodeSettings, Episodes, Fleet, Learner, NetworkShape, NoObserver, PpoSettings, Recipe, Sample,
    Stage, TaskSetSource, Tokens, TrainingRun,
};

type Device = Cpu;

fn shape() -> NetworkShape {
    temponet_paper::register();
    NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, body: networks::recurrent(16) }
}

#[test]
fn a_past_in_training_is_the_state_in_deployment() {
    let weights = Weights::random(shape().architecture(&Tokenizer::full()), 3);
    let mut learner = Learner::new(Device::default(), &weights, AdamSettings::default());
    let episodes = Episodes::new(
        TaskSetSource::Drawn(Box::default()),
        Tokenizer::full(),
        EpisodeSettings { length: 15.0, ..EpisodeSettings::default() },
    );
    let mut fleet = Fleet::new(episodes, 3, 5).unwrap();
    let network = Network::new(&weights, NetworkOptions::default()).unwrap();
    let mut networks: Vec<Network> = fleet.members.iter().map(|_| network.clone()).collect();
    let mut ended = 0;
    for _ in 0..40 {
        let samples: Vec<Sample> = fleet.members.iter().map(|member| member.sample()).collect();
        let outputs = learner.outputs(None, &samples.iter().collect::<Vec<_>>());
        for (place, sample) in samples.iter().enumerate() {
            let Sample { idle, tokens, real, bias, .. } = sample;
            let mut q = Vec::new();
            networks[place].forward(&Rows { idle, jobs: tokens, real, bias, sparsity: None }, &mut q);
            let gap = q.iter().zip(outputs.q(place)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(q.len() == outputs.q(place).len() && gap < 1e-4, "{gap}");
            let member = &mut fleet.members[place];
            // The pasts are of different lengths, and some are longer than the truncation.
            member.remember(sample.into(), outputs.memory(place), 3 + place);
            assert!(member.sample().past.unwrap().samples.len() < 3 + place);
            let jobs = member.top_jobs(|_, row| q[row as usize]);
            if member.act(&fleet.episodes, &jobs).unwrap().ending.is_some() {
                member.restart(&fleet.episodes).unwrap();
                assert_eq!(member.sample().past, None, "a run begins without a past");
                networks[place].reset();
                ended += 1;
            }
        }
    }
    assert!(ended > 0);
}

/// A set on one core in which the right choice depends on what happened before. Every 40 ms the same pair of jobs is
/// released twice: x, of 2 ms, and y, of 8 ms with 1 ms of slack. After the first pair five short jobs follow, each
/// with half a millisecond of slack, so that y costs more than it is worth and x must be run first. After the second
/// pair nothing follows, and only y before x meets both deadlines. A pair of other jobs announces which of the two it
/// is. Thirteen jobs are released in 40 ms; whoever decides both pairs alike meets eleven at most, and twelve can be
/// met.
fn announced_bursts() -> TaskSet {
    let task = |name: &str, offset: u64, wcet: u64, deadline_us: u64| {
        Task::periodic(name, Time::from_ms(40), Time::from_ms(wcet))
            .with_offset(Time::from_ms(offset))
            .with_deadline(Time::from_us(deadline_us))
    };
    let mut tasks = vec![task("burst comes", 0, 2, 20_000), task("now", 0, 2, 3_000)];
    tasks.extend([task("no burst", 24, 2, 10_000), task("now", 24, 2, 3_000)]);
    tasks.extend([10, 30].into_iter().flat_map(|at| [task("x", at, 2, 12_000), task("y", at, 8, 9_000)]));
    tasks.extend((0..5).map(|number| task("burst", 12 + 2 * number, 2, 2_500)));
    for (place, task) in tasks.iter_mut().enumerate() {
        task.name = format!("{} {place}", task.name);
    }
    TaskSet::new("announced bursts", tasks, 1)
}

/// Share of the deadlines that a network meets on the set after learning by policy optimization.
fn trained(network: NetworkShape) -> f64 {
    let set = announced_bursts();
    let ppo =
        PpoSettings { environments: 16, length: 32, rounds: 4, batch: 128, entropy: 0.02, ..PpoSettings::default() };
    let stage = Stage::new(8, ppo);
    let mut recipe = Recipe { network, stage: vec![stage], tokens: Tokens::Paper, ..Recipe::default() };
    recipe.optimizer.rate = 2e-3;
    recipe.validation.runs = 1;
    recipe.episode.gamma = 0.9;
    assert_eq!(recipe.problem(), None);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(set.clone()), None);
    run.train(&mut NoObserver).unwrap();
    let saved = Model::from_bytes(&run.model().to_bytes().unwrap()).unwrap();
    let mut scheduler = temponet::stages::Learned::new(saved.into(), temponet::Options::default()).unwrap();
    simulate(&set, 1, Time::from_ms(4_000), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
}

#[test]
fn only_a_memory_knows_which_burst_was_announced() {
    let without = trained(NetworkShape { body: Body::default(), ..shape() });
    assert!(without < 11.1 / 13.0, "{without}");
    let with = trained(shape());
    assert!(with > 11.9 / 13.0, "{with}, without a memory {without}");
}

#[test]
fn only_policy_optimization_learns_a_memory() {
    let stage = Stage::new(1, DqnSettings::default());
    let recipe = Recipe { network: shape(), stage: vec![stage], ..Recipe::default() };
    assert_eq!(recipe.problem().unwrap(), "stage 1: network.memory is learned by ppo, not by dqn");
}
