//! Contract of the learned rivals: a model that `train` writes runs in `compare --model` with the numbers that it had
//! in training.

use serde_json::Value;

use crate::folder::Folder;

/// Settings of the smallest network and the shortest runs.
const SMALL: &str = "[network]\nwidth = 16\nlayers = 1\nheads = 2\nfeed_forward = 16\n\
    [episode]\nlength = 60\n[validation]\nruns = 2\nlength = 1000\n";

/// The network with a two-layer actor.
const ACTOR: &str = "actor = 8\n";

const LEVELS: &str = "[tokens.custom]\nbins = 32\nbinning = { uniform = { width = 0.5 } }\nclip = true\nlong_slack_reserve = 0.0\n\
    features = [\"advice\"]\nidle = [\"misses\", \"advisor\"]\n";

fn stage(method: &str) -> String {
    format!("[[stage]]\nphases = 2\n[stage.method.{method}")
}

#[test]
fn a_model_runs_with_the_numbers_that_it_had_in_training() {
    let few = "steps = 200\nlearn_from = 100\nenvironments = 4\nbatch = 16\n";
    let actor = SMALL.replace("[episode]", &format!("{ACTOR}[episode]"));
    let priorities = |algorithm: &str| format!("{actor}{}{few}algorithm = {algorithm}\n", stage("priorities]\n"));
    let recipes = [
        ("a2c", format!("{SMALL}{}", stage("a2c]\nenvironments = 4\nupdates = 10\n"))),
        ("td3", priorities("{ td3 = { delay = 2, exploration = 0.1, smoothing = 0.2, bound = 0.5 } }")),
        ("sac", priorities("{ sac = { entropy = -1.0, rate = 0.003 } }")),
        ("hierarchical", format!("{LEVELS}{SMALL}{}{few}period = 3\n", stage("hierarchical]\n"))),
    ];
    for (name, recipe) in recipes {
        let folder = Folder::new(name);
        folder.write("recipe.toml", &recipe);
        let train =
            ["train", "standard-125", "--recipe", "recipe.toml", "--trials", "2", "-o", "m.safetensors", "--json"];
        let report: Value = folder.json(&train);
        let phases = report["phases"].as_array().unwrap();
        let best = phases.iter().map(|phase| phase["score"].as_f64().unwrap()).fold(0.0, f64::max);
        // The verdict and the validation have runs of 1000 median wcets, of 24 ms each.
        let compare = "compare standard-125 --model m.safetensors --schedulers temponet-unshielded --horizon 24s --no-oracle --json";
        let compared: Value = folder.json(&compare.split(' ').collect::<Vec<_>>());
        let compliance = compared["results"][0]["compliance"].as_f64().unwrap();
        assert_eq!(report["verdict"]["unshielded"]["compliance"].as_f64(), Some(compliance), "{name}");
        assert!((compliance - best).abs() < 1e-9 && compliance > 0.0, "{name}: {compliance} {best}");
    }
}
