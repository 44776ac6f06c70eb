//! The paper's learner, in one place: `research/recipes/dqn-paper.toml`. A protocol states only what its experiment is about
//! (its workload, the number of tasks, another reward), and everything else is that recipe's.

use serde::{Deserialize, Deserializer, de::Error};
use temponet_train::{DqnSettings, NetworkShape, Recipe};
use toml::{Table, Value};

const PAPER: &str = include_str!("../recipes/dqn-paper.toml");

/// Reads a recipe that says what is different from the paper's learner.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Recipe, D::Error> {
    let paper: Table = toml::from_str(PAPER).map_err(Error::custom)?;
    merged(paper, Table::deserialize(deserializer)?).try_into().map_err(Error::custom)
}

/// The recipe where nothing is different.
pub fn paper() -> Recipe {
    toml::from_str(PAPER).unwrap_or_default()
}

/// The paper's recipe with what is different. Random sets are never a mixture of both, and a stage of Q-learning has the
/// paper's settings where it states none.
fn merged(mut paper: Table, own: Table) -> Table {
    let stages = paper.get("stage").and_then(Value::as_array).cloned().unwrap_or_default();
    let dqn = stages.iter().find_map(|stage| stage.get("method")?.get(DQN)).cloned();
    for (key, value) in own {
        let value = match (key.as_str(), paper.remove(&key), value) {
            ("workload", _, value) => value,
            ("stage", _, Value::Array(stages)) => {
                Value::Array(stages.into_iter().map(|stage| with_settings(stage, dqn.as_ref())).collect())
            }
            (_, Some(Value::Table(paper)), Value::Table(own)) => Value::Table(over(paper, own)),
            (.., value) => value,
        };
        paper.insert(key, value);
    }
    paper
}

/// Name of Q-learning in a recipe.
const DQN: &str = "dqn";

/// A stage whose Q-learning has these settings where it states none.
fn with_settings(mut stage: Value, paper: Option<&Value>) -> Value {
    let own = stage.get_mut("method").and_then(|method| method.get_mut(DQN));
    if let (Some(Value::Table(own)), Some(Value::Table(paper))) = (own, paper) {
        *own = over(paper.clone(), std::mem::take(own));
    }
    stage
}

/// One table over another, key by key.
fn over(mut under: Table, own: Table) -> Table {
    under.extend(own);
    under
}

/// Returns the recipe of a network of another shape. A step of Adam moves the sums of a layer by as much as it is wide, so
/// that the rate is inverse to the width.
pub fn with_shape(recipe: &Recipe, shape: NetworkShape) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.optimizer.rate *= recipe.network.width as f64 / shape.width as f64;
    Recipe { network: shape, ..recipe }
}

/// Says how an experiment learns.
pub fn described(recipe: &Recipe) -> String {
    let of_stage = recipe.stage.iter().filter_map(|stage| Some((stage, stage.method.settings::<DqnSettings>()?)));
    let stages = of_stage.map(|(stage, dqn)| {
        let options = [
            (dqn.double, "double"),
            (dqn.dueling, "dueling"),
            (dqn.huber.is_some_and(f64::is_finite), "Huber's loss"),
            (dqn.priority > 0.0, "priorities"),
            (dqn.n_step > 1, "n steps"),
        ];
        let with: Vec<&str> = options.into_iter().filter_map(|(is_on, name)| is_on.then_some(name)).collect();
        let kind =
            if with.is_empty() { "plain Q-learning".into() } else { format!("Q-learning with {}", with.join(", ")) };
        let rate = stage.rate.unwrap_or(recipe.optimizer.rate);
        let (updates, batch) = (stage.phases * dqn.replay.updates(), dqn.replay.batch);
        format!("{kind}, {updates} updates of {batch} at a rate of {rate}")
    });
    let shape = &recipe.network;
    format!(
        "the learner: {}; width {}, {} layers of {} heads, feed-forward {}, except where a variant says otherwise",
        stages.collect::<Vec<String>>().join(", then "),
        shape.width,
        shape.layers,
        shape.heads,
        shape.feed_forward
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        #[serde(deserialize_with = "read")]
        recipe: Recipe,
    }

    fn recipe(text: &str) -> Recipe {
        crate::register();
        toml::from_str::<File>(text).unwrap().recipe
    }

    #[test]
    fn what_a_protocol_does_not_say_is_the_papers() {
        crate::register();
        let same = recipe("recipe = {}");
        assert_eq!(same, paper());
        let text = described(&same);
        assert!(text.starts_with("the learner: plain Q-learning, 160000 updates of 64 at a rate of 0.0001; width 128, 2 layers of 4 heads, feed-forward 512"), "{text}");
        let other = recipe(
            "[recipe]\nseed = 7\nworkload = { cores = [3] }\noptimizer = { warm_up = 5 }\n\
             [[recipe.stage]]\nphases = 2\nmethod.cloning = { teacher = \"edf\" }\n\
             [[recipe.stage]]\nphases = 3\nmethod.dqn = { batch = 32, double = true }\n",
        );
        let dqn = other.stage[1].method.settings::<DqnSettings>().unwrap();
        assert_eq!((dqn.double, dqn.dueling, dqn.replay.batch, dqn.may_idle), (true, false, 32, true));
        assert_eq!(
            (other.seed, other.optimizer.warm_up, other.optimizer.rate, other.network),
            (7, 5, 1e-4, same.network)
        );
        assert_eq!(
            (other.workload.cores.clone(), other.workload.load),
            (vec![3], temponet_train::WorkloadRanges::default().load)
        );
        assert!(described(&other).contains("Q-learning with double"), "{}", described(&other));
    }
}
