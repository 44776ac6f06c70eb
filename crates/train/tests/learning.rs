//! Contract of training: it sees what the deployed scheduler sees, it learns, and after an interruption it continues as
//! if there had been none.

use std::sync::Arc;

use temponet::Model;
use temponet::stages::{Continuous, Scale, Tokenizer};
use temponet_grad::{AdamSettings, Cpu, Tape};
use temponet_infer::{Body, Rows, Sparsity, Weights, reference};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};
use temponet_train::{
    Batch, Cloning, CloningSettings, DqnSettings, EpisodeSettings, Episodes, Fleet, Learner, MatchingSettings,
    NetworkShape, NoObserver, OfflineAlgorithm, OfflineSettings, OutputRows, PpoSettings, Recipe, ReplaySettings,
    Reward, RewardAccumulator, RewardShape, RolloutSettings, Sample, Stage, StageMethod, StaySettings, TapeNetwork,
    TaskSetSource, Tokens, TrainError, TrainingRun, WorkloadRanges, check_resumption, interrupted,
};

type Device = Cpu;

fn small() -> NetworkShape {
    NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, ..NetworkShape::default() }
}

fn recipe(stages: Vec<Stage>) -> Recipe {
    let mut recipe = Recipe { network: small(), stage: stages, ..Recipe::default() };
    recipe.optimizer.rate = 3e-3;
    recipe.validation.runs = 8;
    recipe
}

fn set(tasks: &[(u64, u64)], cores: usize) -> TaskSet {
    let task = |(place, (period, wcet)): (usize, &(u64, u64))| {
        Task::periodic(format!("t{place}"), Time::from_ms(*period), Time::from_ms(*wcet))
    };
    TaskSet::new("test", tasks.iter().enumerate().map(task).collect(), cores)
}

fn episodes(source: TaskSetSource, teacher: Option<&str>) -> Episodes {
    let settings = EpisodeSettings { length: 100.0, ..EpisodeSettings::default() };
    Episodes { teacher: teacher.map(String::from), ..Episodes::new(source, Tokenizer::full(), settings) }
}

/// Samples of random sets of one to eight cores.
fn samples(count: usize, tokenizer: &Tokenizer) -> Vec<Sample> {
    let episodes = episodes(TaskSetSource::Drawn(Box::default()), Some("edf"));
    let episodes = Episodes { tokenizer: Arc::new(tokenizer.clone()), ..episodes };
    let mut fleet = Fleet::new(episodes, count, 5).unwrap();
    for member in &mut fleet.members {
        for _ in 0..5 {
            let jobs = member.teacher_jobs();
            if member.act(&fleet.episodes, &jobs).unwrap().ending.is_some() {
                member.restart(&fleet.episodes).unwrap();
            }
        }
    }
    fleet.members.iter().map(|member| member.sample()).collect()
}

#[test]
fn training_and_deployment_compute_the_same() {
    let continuous = [Continuous::Raw, Continuous::Mlp { hidden: 24 }].map(Tokenizer::continuous);
    for tokenizer in [Tokenizer::full(), Tokenizer::paper()].into_iter().chain(continuous) {
        let model = Model::random(tokenizer, 3);
        let mut learner = Learner::new(Device::default(), &model.weights, AdamSettings::default());
        let samples = samples(40, &model.tokenizer);
        let outputs = learner.outputs(None, &samples.iter().collect::<Vec<_>>());
        for (place, sample) in samples.iter().enumerate() {
            let q = outputs.q(place);
            let Sample { idle, tokens, real, bias, .. } = sample;
            let expected = reference(&model.weights, &Rows { idle, jobs: tokens, real, bias, sparsity: None }).q;
            assert_eq!(q.len(), expected.len());
            let error = q.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(error < 2e-5, "{error}");
        }
        for (name, ..) in model.weights.architecture.tensors() {
            assert_eq!(learner.weights().tensor(&name), model.weights.tensor(&name), "{name}");
        }
    }
}

/// With sparse attention, too: the same keys are kept, whether all outputs are needed or some.
#[test]
fn training_and_deployment_keep_the_same_keys() {
    for tokenizer in [Tokenizer::full(), Tokenizer::paper()] {
        let model = Model::random(Tokenizer { sparse: true, ..tokenizer }, 3);
        let mut learner = Learner::new(Device::default(), &model.weights, AdamSettings::default());
        learner.network.sparse = true;
        let samples = samples(60, &model.tokenizer);
        let all: Vec<&Sample> = samples.iter().collect();
        let outputs = learner.outputs(None, &all);
        let mut most = 0;
        for (place, sample) in samples.iter().enumerate() {
            let Sample { idle, tokens, real, bias, .. } = sample;
            let sparsity = Some(Sparsity::paper(sample.rows() - 1));
            let expected = reference(&model.weights, &Rows { idle, jobs: tokens, real, bias, sparsity }).q;
            let error = outputs.q(place).iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(error < 2e-5, "{error}");
            most = most.max(sample.rows());
        }
        assert!(most > 20, "{most} rows are all kept");
        let batch = Batch::of(&all);
        let some: Vec<Vec<u32>> = samples.iter().map(|sample| (1..sample.rows() as u32).step_by(3).collect()).collect();
        let focus = OutputRows::of(&batch, some.iter().map(Vec::as_slice));
        let mut device = Device::default();
        let (mut network, tensors) = TapeNetwork::new(&mut device, &model.weights);
        network.sparse = true;
        let mut q = |rows: &OutputRows| {
            let mut tape = Tape::new(&mut device, &tensors);
            let q = network.forward(&mut tape, &batch, rows).q;
            tape.values(q)
        };
        let (whole, narrow) = (q(&OutputRows::all(&batch)), q(&focus));
        for (row, q) in focus.rows.iter().zip(narrow) {
            assert!((whole[*row as usize] - q).abs() < 1e-6);
        }
    }
}

#[test]
fn a_model_learns_with_sparse_attention_and_keeps_it() {
    let settings = CloningSettings { teacher: "edf".into(), updates: 150, steps: 2_000, ..CloningSettings::default() };
    let mut recipe = Recipe { sparse: true, tokens: Tokens::Full, ..recipe(vec![Stage::new(2, settings)]) };
    recipe.optimizer.rate = 4e-3;
    let many: Vec<(u64, u64)> = (0..24).map(|place| (40 + 7 * place, 2 + place % 3)).collect();
    let set = set(&many, 1);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(set.clone()), None);
    run.train(&mut NoObserver).unwrap();
    let model = run.model();
    assert!(model.tokenizer.sparse);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert!(again.tokenizer.sparse, "the file says so");
    let learned = compliance(again, &set);
    let untrained = Model::random(Tokenizer { sparse: true, ..Tokenizer::full() }, 1);
    assert!(learned > compliance(untrained, &set), "{learned}");
}

#[test]
fn cloning_edf_agrees_on_unseen_states() {
    let settings = CloningSettings { teacher: "edf".into(), updates: 400, steps: 6_000, ..CloningSettings::default() };
    let mut recipe = Recipe { tokens: Tokens::Full, ..recipe(vec![Stage::new(4, settings.clone())]) };
    recipe.optimizer.rate = 4e-3;
    let overload = set(&[(20, 7), (30, 11), (50, 16), (70, 21)], 1);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(overload.clone()), None);
    run.train(&mut NoObserver).unwrap();
    let mut learner = Learner::new(Device::default(), &run.model().weights, AdamSettings::default());
    let mut cloning = Cloning::new(settings);
    let mut fleet = Fleet::new(episodes(TaskSetSource::Fixed(overload.into()), Some("edf")), 16, 99).unwrap();
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    cloning.collect(&mut learner, &mut fleet, &mut rng, 0.0).unwrap();
    let agreement = cloning.agreement(&mut learner);
    assert!(agreement > 0.99, "{agreement}");
}

/// A short job, and a long one with an earlier deadline: shortest remaining time first misses, least laxity first does
/// not.
fn counterexample() -> TaskSet {
    let mut set = set(&[(10, 2), (10, 7)], 1);
    set.system.tasks_mut()[1].deadline = Time::from_ms(8);
    set
}

fn compliance(model: Model, set: &TaskSet) -> f64 {
    let mut scheduler = temponet::stages::Learned::new(model.into(), temponet::Options::default()).unwrap();
    simulate(set, 1_000, Time::from_secs(3), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
}

fn classical(name: &str, set: &TaskSet) -> f64 {
    let mut scheduler = temponet_sched::build(name).unwrap();
    simulate(set, 1_000, Time::from_secs(3), &mut scheduler, &mut Unobserved).unwrap().jobs.compliance()
}

fn trained(method: StageMethod, phases: u64, set: &TaskSet) -> f64 {
    trained_as(small(), method, phases, set)
}

fn trained_as(network: NetworkShape, method: StageMethod, phases: u64, set: &TaskSet) -> f64 {
    let mut recipe = Recipe { network, ..recipe(vec![Stage::new(phases, method)]) };
    recipe.seed = 2;
    assert_eq!(recipe.problem(), None);
    let mut run = TrainingRun::new(Device::default(), recipe, Some(set.clone()), None);
    run.train(&mut NoObserver).unwrap();
    compliance(run.model(), set)
}

#[test]
fn every_method_solves_the_counterexample() {
    let set = counterexample();
    assert!(classical("srpt", &set) < 0.99 && classical("llf", &set) == 1.0);
    let dqn = DqnSettings {
        replay: ReplaySettings { steps: 1_200, learn_from: 200, environments: 8, ..ReplaySettings::default() },
        ..DqnSettings::default()
    };
    assert_eq!(trained(dqn.clone().into(), 4, &set), 1.0, "dqn");
    let plain = DqnSettings { double: false, dueling: false, huber: None, n_step: 3, priority: 0.6, ..dqn.clone() };
    assert_eq!(trained(plain.into(), 4, &set), 1.0, "plain dqn");
    let ppo = PpoSettings { environments: 16, length: 16, rounds: 5, batch: 128, ..PpoSettings::default() };
    assert_eq!(trained(ppo.clone().into(), 6, &set), 1.0, "ppo");
    let actor = NetworkShape { body: Body::transformer(Some(8), 0), ..small() };
    assert_eq!(trained_as(actor, ppo.clone().into(), 8, &set), 1.0, "ppo with an actor");
    // The same jobs twice on two cores.
    let mut double = set.clone();
    double.system.set_tasks([set.tasks(), set.tasks()].concat());
    double.system.set_cores(2);
    assert!(classical("srpt", &double) < 0.99 && classical("llf", &double) == 1.0);
    assert_eq!(trained_as(actor, ppo.into(), 8, &double), 1.0, "ppo with an actor on two cores");
    let matching = Some(MatchingSettings::default());
    let cloning = CloningSettings { teacher: "llf".into(), matching, steps: 600, updates: 100, ..Default::default() };
    assert_eq!(trained(cloning.into(), 3, &double), 1.0, "cloning through a matching");
    let offline = |algorithm| {
        let teachers = vec!["edf".into(), "srpt".into()];
        OfflineSettings { teachers, transitions: 3_000, updates: 200, algorithm, dqn: dqn.clone() }.into()
    };
    let cql = OfflineAlgorithm::Cql { conservative: 0.1 };
    assert_eq!(trained(offline(cql), 4, &set), 1.0, "cql");
    let iql = OfflineAlgorithm::Iql { expectile: 0.8, sharpness: 3.0 };
    assert_eq!(trained(offline(iql), 4, &set), 1.0, "iql");
}

#[test]
fn one_task_is_learned_at_once_and_dqn_is_edf_where_edf_is_best() {
    let method = || {
        let dqn = DqnSettings {
            replay: ReplaySettings { steps: 2_500, learn_from: 500, ..ReplaySettings::default() },
            ..DqnSettings::default()
        };
        dqn.into()
    };
    assert_eq!(trained(method(), 1, &set(&[(10, 4)], 1)), 1.0);
    let light = set(&[(20, 8), (33, 10), (50, 13)], 1);
    assert!(light.utilization() < 1.0 && classical("edf", &light) == 1.0);
    let random =
        compliance(TrainingRun::new(Device::default(), recipe(vec![]), Some(light.clone()), None).model(), &light);
    let learned = trained(method(), 6, &light);
    assert!(learned > 0.995 && random < learned, "{learned} {random}");
}

fn all_methods() -> Recipe {
    let dqn = DqnSettings {
        replay: ReplaySettings { steps: 300, learn_from: 50, batch: 16, ..ReplaySettings::default() },
        priority: 0.5,
        n_step: 2,
        ..DqnSettings::default()
    };
    let cloning = CloningSettings { steps: 200, updates: 20, ..CloningSettings::default() };
    let ppo = PpoSettings { environments: 8, length: 8, rounds: 3, ..PpoSettings::default() };
    let iql = OfflineAlgorithm::Iql { expectile: 0.7, sharpness: 1.0 };
    let offline =
        OfflineSettings { transitions: 300, updates: 20, algorithm: iql, dqn: dqn.clone(), ..Default::default() };
    let matched = CloningSettings { matching: Some(MatchingSettings::default()), ..cloning.clone() };
    let rollouts = RolloutSettings { states: 40, environments: 8, updates: 10, own_share: 0.9, ..Default::default() };
    let mut recipe = recipe(vec![
        Stage::new(2, cloning),
        Stage::new(4, rollouts),
        Stage::new(2, dqn),
        Stage::new(2, ppo),
        Stage::new(2, matched),
        Stage::new(2, offline),
        Stage::new(2, StaySettings::default()),
    ]);
    recipe.validation.runs = 2;
    recipe.workload = WorkloadRanges { cores: vec![1, 2], costs: (0.5, 0.5), ..WorkloadRanges::default() };
    recipe
}

#[test]
fn what_staying_is_worth_is_the_value_with_the_best_score_and_nothing_else_changes() {
    let mut recipe = recipe(vec![Stage::new(4, StaySettings { step: 0.5 })]);
    recipe.workload = WorkloadRanges { cores: vec![2, 4], costs: (1.0, 1.0), ..WorkloadRanges::default() };
    let begin = Weights::random(recipe.network.architecture(&recipe.tokenizer()), 7);
    let mut run = TrainingRun::new(Device::default(), recipe, None, Some(&begin));
    run.train(&mut NoObserver).unwrap();
    let scores: Vec<f64> = run.figures().iter().map(|figures| figures.score).collect();
    let best = (0..4).reduce(|best, phase| if scores[phase] > scores[best] { phase } else { best }).unwrap();
    assert!(scores.iter().any(|score| *score != scores[0]), "{scores:?}");
    assert_eq!(run.model().stay(), 0.5 * best as f32, "{scores:?}");
    assert_eq!(run.model().weights.checksum(), begin.checksum());
}

#[test]
fn an_interrupted_training_goes_on_bit_for_bit_at_any_number_of_threads() {
    let (expected, figures) = check_resumption(&all_methods()).unwrap();
    assert_eq!(figures.len(), 16);
    let mut other = all_methods();
    other.seed = 9;
    let mut run = TrainingRun::new(Device::default(), other, None, None);
    assert!(matches!(run.resume(&expected), Err(TrainError::Checkpoint(_))));
    assert!(matches!(run.resume(&expected[..1000]), Err(TrainError::Checkpoint(_))));
}

#[test]
fn a_checkpoint_with_a_flipped_bit_is_neither_trained_on_nor_a_panic() {
    let (whole, _) = interrupted(&all_methods(), 1).unwrap();
    let mut run = TrainingRun::new(Device::default(), all_methods(), None, None);
    for place in (0..whole.len() * 8).step_by(whole.len() / 25) {
        let mut flipped = whole.clone();
        flipped[place / 8] ^= 1 << (place % 8);
        assert!(matches!(run.resume(&flipped), Err(TrainError::Checkpoint(_))), "bit {place}");
    }
    run.resume(&whole).unwrap();
}

#[test]
fn numbers_that_go_astray_stop_the_training() {
    let mut recipe = all_methods();
    recipe.optimizer.rate = 1e30;
    let error = TrainingRun::new(Device::default(), recipe, None, None).train(&mut NoObserver).unwrap_err();
    assert!(matches!(error, TrainError::Diverged { stage: 1, .. }), "{error}");
}

#[test]
fn the_environment_keeps_its_promises() {
    for (seed, tokens) in [(1, Tokens::Full), (2, Tokens::Paper), (3, Tokens::Ahead)] {
        let ranges = WorkloadRanges { costs: (0.5, 0.2), values: 0.5, critical: 0.5, ..WorkloadRanges::default() };
        let tokenizer = tokens.tokenizer();
        temponet_train::check_environment(&TaskSetSource::Drawn(Box::new(ranges)), &tokenizer, seed, 50).unwrap();
    }
    let set = set(&[(10, 4)], 1);
    assert!(Scale::of(&Tokenizer::full(), &set.system).unit == 4e6);
}

#[test]
fn what_is_earned_and_what_is_lost_add_up() {
    let set = set(&[(10, 6), (14, 9)], 1);
    let earned = |shape| {
        let scale = Scale::of(&Tokenizer::full(), &set.system);
        let reward = Reward { shape, ..Reward::default() };
        let mut purse = RewardAccumulator::new(reward, scale.unit, &set);
        let mut edf = temponet_sched::build("edf").unwrap();
        let metrics = simulate(&set, 1, Time::from_secs(2), &mut edf, &mut purse).unwrap();
        (purse.take(), metrics)
    };
    let (binary, metrics) = earned(RewardShape::Binary);
    let (gains, losses) = (earned(RewardShape::NoPenalty).0, earned(RewardShape::Misses).0);
    assert!(gains > 0.0 && losses < 0.0, "{gains} {losses}");
    assert_eq!(gains + losses, binary);
    assert_eq!(gains, metrics.jobs.met as f64);
}
