//! Contract of recipe files: a recipe that is written reads back the same, and those of the repository can be followed.

use temponet::stages::{Continuous, Tokenizer};
use temponet_infer::Body;
use temponet_train::{
    CloningSettings, DqnSettings, ExecutionKind, ExplorationBonus, Keep, OfflineAlgorithm, OfflineSettings,
    PpoSettings, Recipe, Reward, RewardShape, Stage, StageMethod, StaySettings, Tokens, WorkloadRanges,
};

/// Every method, every reward shape, every bonus, and every setting that is usually left out.
fn everything() -> Vec<Recipe> {
    let bonuses = [
        ExplorationBonus::None,
        ExplorationBonus::Count { weight: 0.5, sketch: None },
        ExplorationBonus::Count { weight: 0.5, sketch: Some(64) },
        ExplorationBonus::Ucb { weight: 1.0 },
    ];
    let dqn = |bonus| DqnSettings { bonus, huber: None, epsilon: (0.5, 0.1), ..DqnSettings::default() };
    let weight = 0.25;
    let rewards = [
        RewardShape::Binary,
        RewardShape::NoPenalty,
        RewardShape::Misses,
        RewardShape::Lateness { weight },
        RewardShape::Early { weight },
        RewardShape::Slack { weight },
        RewardShape::Risk { weight },
        RewardShape::Energy { weight },
    ];
    let algorithms =
        [OfflineAlgorithm::Cql { conservative: 1.0 }, OfflineAlgorithm::Iql { expectile: 0.8, sharpness: 3.0 }];
    let mut methods = vec![
        StageMethod::from(CloningSettings { teacher: "optimum".into(), ..CloningSettings::default() }),
        PpoSettings::default().into(),
        StaySettings { step: 0.5 }.into(),
    ];
    methods.extend(bonuses.map(|bonus| StageMethod::from(dqn(bonus))));
    methods.extend(algorithms.map(|algorithm| {
        OfflineSettings { algorithm, dqn: dqn(ExplorationBonus::None), ..OfflineSettings::default() }.into()
    }));
    let stage = |(place, method): (usize, StageMethod)| Stage {
        phases: place as u64 + 1,
        method,
        rate: Some(1e-4),
        workload: Some(WorkloadRanges {
            execution: vec![ExecutionKind::Weibull, ExecutionKind::Pareto],
            ..WorkloadRanges::default()
        }),
        reward: rewards.get(place).map(|shape| Reward { shape: *shape, by_value: Some(true), ..Reward::default() }),
    };
    let stages: Vec<Stage> = methods.into_iter().enumerate().map(stage).collect();
    let custom = Tokenizer::continuous(Continuous::Mlp { hidden: 24 });
    [Tokens::Full, Tokens::Paper, Tokens::Custom(Box::new(custom))]
        .map(|tokens| {
            let mut recipe = Recipe { seed: 3, tokens, stage: stages.clone(), ..Recipe::default() };
            recipe.episode.tick = Some(0.25);
            recipe.validation.patience = Some(3);
            recipe.validation.keep = Keep::Last;
            recipe
        })
        .into_iter()
        .chain([actor_critic(stages[1].clone())])
        .collect()
}

/// A recipe with a network whose settings are usually left out.
fn actor_critic(policy: Stage) -> Recipe {
    let mut recipe = Recipe { stage: vec![policy], ..Recipe::default() };
    recipe.network.body = Body::transformer(Some(5), 0);
    recipe
}

#[test]
fn what_is_written_reads_back() {
    for recipe in everything().into_iter().chain([Recipe::default()]) {
        assert_eq!(recipe.problem(), None);
        let text = toml::to_string(&recipe).unwrap();
        assert_eq!(toml::from_str::<Recipe>(&text).unwrap(), recipe, "{text}");
        let json = serde_json::to_string(&recipe).unwrap();
        assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe, "{json}");
    }
    assert_eq!(toml::from_str::<Recipe>("").unwrap(), Recipe::default());
}

#[test]
fn the_recipes_of_the_repository_can_be_followed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let files = std::fs::read_dir(format!("{root}/recipes")).unwrap().map(|entry| entry.unwrap().path());
    let mut methods = Vec::new();
    for path in files {
        let recipe: Recipe = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(recipe.problem(), None, "{}", path.display());
        methods.extend(recipe.stage.iter().map(|stage| stage.method.name()));
    }
    assert!(["cloning", "ppo", "offline"].iter().all(|name| methods.contains(name)), "{methods:?}");
}

#[test]
fn one_coefficient_is_not_written_as_two() {
    let text =
        "[[stage]]\nphases = 1\n[stage.method.offline]\nalgorithm = { cql = { conservative = 1.0, cloning = 0.5 } }";
    let error = toml::from_str::<Recipe>(text).unwrap_err();
    assert!(error.message().contains("cloning") && error.message().contains("conservative"), "{}", error.message());
}

#[test]
fn every_problem_is_named() {
    let problem = |change: fn(&mut Recipe)| {
        let mut recipe = everything().remove(0);
        change(&mut recipe);
        recipe.problem().unwrap()
    };
    assert_eq!(problem(|recipe| recipe.episode.gamma = 1.5), "episode.gamma = 1.5 is not from 0 to 1");
    assert_eq!(problem(|recipe| recipe.validation.runs = 0), "validation.runs = 0 is not from 1 to 100000000");
    assert_eq!(
        problem(|recipe| recipe.optimizer.adam.epsilon = f64::NAN),
        "adam.epsilon = NaN is negative or no number"
    );
    assert_eq!(problem(|recipe| recipe.stage[1].rate = Some(0.0)), "stage 2: rate = 0 is not positive");
    assert_eq!(problem(|recipe| recipe.stage[0].phases = 0), "stage 1: phases = 0 is not from 1 to 100000000");
    let reward = problem(|recipe| recipe.stage[0].reward = Some(Reward { migration: -1.0, ..Reward::default() }));
    assert_eq!(reward, "stage 1: reward: migration = -1 is negative or no number");
    let endless = problem(|recipe| {
        let ppo = PpoSettings { rounds: 100_000_000, epochs: 100_000_000, ..PpoSettings::default() };
        recipe.stage[0].method = ppo.into();
    });
    assert!(endless.starts_with("stage 1: its ") && endless.contains(" updates are more than "), "{endless}");
}
