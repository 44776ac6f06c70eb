//! How the network grows with the number of decisions, and what was tried where it does not.
//!
//!     cargo run --release -p temponet-school --example growth -- recipe curve > curve.toml
//!     temponet train --recipe curve.toml -o curve.safetensors --device cuda --snapshots curve
//!     cargo run --release -p temponet-school --example growth -- table BUILT-IN.json MODEL.json…
//!
//! `recipe` prints one of the recipes below, as what is different from that of the model that ships. `table` reads what
//! `temponet arena --json` printed for the built-in model, with EDF, the classical schedulers and `tuned`, and for others.

use std::error::Error;
use std::io::Write as _;

use serde_json::Value;
use temponet::stages::{Feature, Tokenizer};
use temponet_lab::roster::UNSHIELDED;
use temponet_sim::statistics::{mean, paired_interval};
use temponet_train::Tokens;
use toml::{Table, Value as Setting};

/// The recipe of the model that ships.
const DEFAULT: &str = include_str!("../../../recipes/default.toml");

/// Overloads with known times, and nothing else.
const KNOWN: &str = "cores = [1, 1, 8]\ntasks_per_core = [5.0, 15.0]\nload = [0.9, 1.5]\nexecution = [\"known\"]\n\
    periods_ms = [10.0, 100.0]\nconstrained = 0.0";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = match arguments[..] {
        ["recipe", name] => toml::to_string(&recipe(name)?)?,
        ["table", ref files @ ..] if !files.is_empty() => table(files)?,
        _ => return Err("recipe curve|further|advised|known, or table BUILT-IN.json MODEL.json…".into()),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// Returns a recipe. All have one stage, the last of the recipe of the model that ships.
fn recipe(name: &str) -> Result<Table, Box<dyn Error>> {
    let mut recipe: Table = DEFAULT.parse()?;
    let mut stage = recipe.get("stage").and_then(Setting::as_array).and_then(|stages| stages.last()).cloned();
    let stage = stage.as_mut().and_then(Setting::as_table_mut).ok_or("the recipe has no stage")?;
    let mut of_stage = |settings: &[(&str, Setting)], of_method: &[(&str, i64)]| {
        stage.extend(settings.iter().map(|(key, value)| (key.to_string(), value.clone())));
        let method = stage["method"]["ppo"].as_table_mut();
        method
            .into_iter()
            .for_each(|ppo| ppo.extend(of_method.iter().map(|(key, of)| (key.to_string(), (*of).into()))));
    };
    let seed = match name {
        // From random weights, 101 million decisions, a model after each 4.2 million.
        "curve" => {
            of_stage(&[("phases", 24.into()), ("rate", 0.001.into())], &[("rounds", 8)]);
            51
        }
        // From the built-in model, 17 million decisions a phase.
        "further" | "advised" => {
            of_stage(&[("phases", 6.into())], &[]);
            41
        }
        // From the built-in model, on one kind of sets.
        "known" => {
            of_stage(&[("phases", 2.into())], &[("environments", 4096), ("rounds", 92), ("batch", 4096)]);
            recipe.insert("workload".into(), KNOWN.parse::<Table>()?.into());
            61
        }
        _ => return Err(format!("there is no recipe {name}").into()),
    };
    if name == "advised" {
        let mut tokenizer = Tokenizer::ahead();
        tokenizer.features.extend([Feature::Advice, Feature::Plan]);
        recipe.insert("tokens".into(), Setting::try_from(Tokens::Custom(Box::new(tokenizer)))?);
    }
    let stages = vec![Setting::Table(stage.clone())];
    recipe.insert("stage".into(), stages.into());
    recipe.insert("seed".into(), seed.into());
    Ok(recipe)
}

/// Mean score in percent of a scheduler of a scenario.
fn score(scenario: &Value, name: &str) -> Option<f64> {
    let named =
        |row: &&Value| row["name"].as_str().is_some_and(|of| of == name || of.starts_with(&format!("{name} (")));
    let row = scenario["schedulers"].as_array()?.iter().find(named)?;
    Some(100.0 * row["score"].as_f64()?)
}

/// Returns two tables: each scenario, and the means over all of them with the difference from the first file's network.
fn table(files: &[&str]) -> Result<String, Box<dyn Error>> {
    let read =
        |file: &&str| -> Result<Value, Box<dyn Error>> { Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?) };
    let arenas = files.iter().map(read).collect::<Result<Vec<Value>, _>>()?;
    let scenarios = arenas[0]["scenarios"].as_array().ok_or("no scenarios")?;
    let mut text = format!("| scenario | sets | edf | best classical | tuned | optimum | {} |\n", files.join(" | "));
    text += &format!("|---|--:|--:|--:|--:|--:|{}\n", "--:|".repeat(files.len()));
    let mut all = vec![Vec::new(); files.len()];
    for (place, scenario) in scenarios.iter().enumerate() {
        let of = |name: &str| score(scenario, name).ok_or_else(|| format!("{}: no {name}", scenario["name"]));
        let classical = scenario["best_classical"].as_str().ok_or("no classical scheduler")?;
        let (tuned, bound) = (of("tuned")?, &scenario["clairvoyant"]);
        let optimum = 100.0 * bound["upper"].as_f64().ok_or("no optimum")?;
        let sign = if bound["exact"] == true { "" } else { "≤ " };
        let (edf, best) = (of("edf")?, of(classical)?);
        let (name, sets) = (scenario["name"].as_str().unwrap_or_default(), &scenario["sets"]);
        text += &format!("| {name} | {sets} | {edf:.2} | {classical} {best:.2} | {tuned:.2} | {sign}{optimum:.2} |");
        for (arena, all) in arenas.iter().zip(&mut all) {
            let own = score(&arena["scenarios"][place], UNSHIELDED).ok_or_else(|| format!("{name}: no network"))?;
            all.push(own - tuned);
            text += &format!(" {:+.2} |", own - tuned);
        }
        text += "\n";
    }
    text += "\n| file | less tuned | less the first |\n|---|--:|--:|\n";
    for (file, own) in files.iter().zip(&all) {
        let (difference, interval) = paired_interval(own, &all[0], None, 1);
        let interval = interval.map_or(String::new(), |of| format!(" ({:+.2} to {:+.2})", of.low, of.high));
        text += &format!("| {file} | {:+.2} | {difference:+.2}{interval} |\n", mean(own));
    }
    Ok(text)
}
