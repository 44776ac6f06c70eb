//! The penalty λ of a migration in the reward, and its cost δ in execution time: a network whose tokens tell what
//! moving a job costs learns to move less.

use temponet::stages::{Feature, Learned, Tokenizer};
use temponet::{Model, Options};
use temponet_grad::Cpu;
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{Costs, Task, TaskSet, Time};
use temponet_train::{
    DqnSettings, NetworkShape, NoObserver, Recipe, ReplaySettings, Reward, Stage, Tokens, TrainingRun,
};

/// Five tasks on two cores that are overloaded a little, and half a millisecond of work for each migration.
fn set() -> TaskSet {
    let task = |(place, (period, wcet)): (usize, &(u64, u64))| {
        Task::periodic(format!("t{place}"), Time::from_ms(*period), Time::from_ms(*wcet))
    };
    let tasks = [(10, 3), (14, 5), (25, 11), (40, 18), (60, 26)];
    let mut set = TaskSet::new("moving", tasks.iter().enumerate().map(task).collect(), 2);
    set.system.set_costs(Costs { migration: Time::from_us(500), ..*set.costs() });
    set
}

fn learned(migration: f64) -> Model {
    let dqn = DqnSettings {
        replay: ReplaySettings { steps: 2_000, learn_from: 300, environments: 8, ..ReplaySettings::default() },
        ..DqnSettings::default()
    };
    let stage = Stage::new(4, dqn);
    let network = NetworkShape { width: 16, layers: 1, heads: 2, feed_forward: 32, ..NetworkShape::default() };
    let features = vec![Feature::Remaining, Feature::Core, Feature::Cost];
    let tokens = Tokens::Custom(Box::new(Tokenizer { features, ..Tokenizer::paper() }));
    let mut recipe = Recipe { network, tokens, stage: vec![stage], seed: 4, ..Recipe::default() };
    recipe.optimizer.rate = 3e-3;
    recipe.episode.reward = Reward { migration, ..Reward::default() };
    let mut run = TrainingRun::new(Cpu::default(), recipe, Some(set()), None);
    run.train(&mut NoObserver).unwrap();
    run.model()
}

fn run(model: Model) -> Metrics {
    let mut scheduler = Learned::new(model.into(), Options::default()).unwrap();
    simulate(&set(), 1_000, Time::from_secs(10), &mut scheduler, &mut Unobserved).unwrap()
}

#[test]
fn a_model_that_pays_for_migrations_migrates_less() {
    let (free, paid) = (run(learned(0.0)), run(learned(0.5)));
    assert!(free.migrations > 0);
    assert!(2 * paid.migrations < free.migrations, "{} with the penalty, {} without", paid.migrations, free.migrations);
    let (free, paid) = (free.jobs.compliance(), paid.jobs.compliance());
    assert!(paid > free - 0.1, "{paid} with the penalty, {free} without");
}
