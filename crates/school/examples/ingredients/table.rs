//! The table of all results.

use std::collections::BTreeMap;
use std::error::Error;

use temponet_sim::statistics::{deviation, mean, paired_interval};

use crate::ingredient::Ingredient;
use crate::{LOADS, Outcome, read};

/// Prints a row for each ingredient with its share in time, the spread of the seeds, and the difference from all
/// ingredients with its 95% interval over the sets.
pub fn print(files: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut all: Vec<Outcome> = Vec::new();
    for file in files {
        all.extend(read(file)?);
    }
    for load in &LOADS {
        // By ingredient and seed.
        let mut found: BTreeMap<&str, BTreeMap<u64, &[f64]>> = BTreeMap::new();
        for one in all.iter().filter(|one| one.scenario == load.scenario) {
            found.entry(&one.without).or_default().insert(one.seed, &one.shares);
        }
        let Some(whole) = found.get(Ingredient::None.name()) else { continue };
        println!("\n{}\n", load.scenario);
        println!("| | seeds | in time, % | deviation between seeds | less all ingredients |");
        println!("|---|--:|--:|--:|--:|");
        for ingredient in Ingredient::ALL {
            let Some(own) = found.get(ingredient.name()) else { continue };
            let means: Vec<f64> = own.values().map(|shares| 100.0 * mean(shares)).collect();
            let spread = if means.len() > 1 { format!("{:.2}", deviation(&means)) } else { String::new() };
            let both: Vec<u64> = own.keys().filter(|seed| whole.contains_key(seed)).copied().collect();
            let (difference, interval) = paired_interval(&by_set(own, &both), &by_set(whole, &both), None, 1);
            let less = match interval {
                _ if ingredient == Ingredient::None => String::new(),
                Some(interval) => format!(
                    "{:+.2} ({:+.2} to {:+.2})",
                    100.0 * difference,
                    100.0 * interval.low,
                    100.0 * interval.high
                ),
                None => format!("{:+.2}", 100.0 * difference),
            };
            println!("| {} | {} | {:.2} | {spread} | {less} |", ingredient.name(), means.len(), mean(&means));
        }
    }
    Ok(())
}

/// Mean share of each set over some seeds.
fn by_set(shares: &BTreeMap<u64, &[f64]>, seeds: &[u64]) -> Vec<f64> {
    let sets = shares.values().next().map_or(0, |shares| shares.len());
    let of = |set: usize| seeds.iter().map(|seed| shares[seed][set]).sum::<f64>() / seeds.len().max(1) as f64;
    (0..sets).map(of).collect()
}
