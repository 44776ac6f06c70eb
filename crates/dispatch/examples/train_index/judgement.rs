//! What each rule meets of loads that training never drew.

use temponet_dispatch::Policy;

use crate::load::{Draws, Kinds, Known, Load};
use crate::server::share_met;
use crate::strategy::parallel;

/// Tells the loads of the judgement apart from those of training.
const STREAM: u64 = 1 << 60;

/// Prints a table: means over loads, percent of the value, with the 95% interval of what the learned rule meets more
/// than each other one.
pub fn print(learned: &Policy, loads: u64) {
    let policies = [
        learned.clone(),
        Policy::Fcfs,
        Policy::Lifo,
        Policy::Edf,
        Policy::RejectWhenBusy { queue: 0 },
        Policy::Hrrn,
        Policy::EdfShed { q: 0.5 },
        Policy::SjfShed { q: 0.5 },
        Policy::MhEdf { q: 0.5 },
        Policy::MhEdf { q: 0.9 },
        Policy::guarded(),
    ];
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let known = [
        ("nothing", Known::Nothing),
        ("regression", Known::Feature { error: 0.7 }),
        ("σ = 0.5", Known::Estimate { error: 0.5 }),
        ("exact", Known::Estimate { error: 0.0 }),
    ];
    for (kinds, title) in [
        (Kinds::Training, "Kinds of training"),
        (Kinds::Judgement, "Kinds that training never drew"),
        (Kinds::Foreign, "Spells, regimes, and estimates that are off"),
    ] {
        println!(
            "{title}, {loads} loads each:\n\n| | {} |\n|---|{}",
            known.map(|(name, _)| format!("{name} | learned")).join(" | "),
            "--:|".repeat(2 * known.len())
        );
        let found: Vec<Vec<(bool, Vec<f64>)>> = known
            .iter()
            .map(|(_, known)| {
                parallel(threads, loads as usize, |place| {
                    let load = Load::draw(&mut Draws::new(7, STREAM + place as u64), kinds, Some(*known));
                    let met = policies.iter().map(|policy| 100.0 * share_met(&load, policy)).collect();
                    (load.cancels, met)
                })
            })
            .collect();
        for (place, policy) in policies.iter().enumerate() {
            let mut line = format!("| `{policy}` |");
            for found in &found {
                let mean = found.iter().map(|(_, row)| row[place]).sum::<f64>() / loads as f64;
                let more: Vec<f64> = found.iter().map(|(_, row)| row[0] - row[place]).collect();
                let (ahead, interval) = interval(&more);
                line += &format!(" {mean:.1} | {ahead:+.1} ± {interval:.1} |");
            }
            println!("{line}");
        }
        for (title, kept) in [
            ("the best rule of each load", [false, true]),
            ("the same, where nothing is cancelled", [false; 2]),
            ("the same, where requests are cancelled", [true; 2]),
        ] {
            let mut line = format!("| {title} |");
            for found in &found {
                // The guard is no rule.
                let best = |row: &[f64]| row[1..row.len() - 1].iter().copied().fold(0.0, f64::max);
                let rows: Vec<&[f64]> =
                    found.iter().filter(|(cancels, _)| kept.contains(cancels)).map(|(_, row)| &row[..]).collect();
                let mean = rows.iter().map(|row| best(row)).sum::<f64>() / rows.len() as f64;
                let (ahead, interval) = interval(&rows.iter().map(|row| row[0] - best(row)).collect::<Vec<f64>>());
                line += &format!(" {mean:.1} | {ahead:+.1} ± {interval:.1} |");
            }
            println!("{line}");
        }
        // Each rule and its distance from the best with hindsight, the index and the guard among them.
        let last = policies.len() - 1;
        for (title, of, kept) in [
            ("the index, behind the best of all", 0, [false, true]),
            ("the same, where nothing is cancelled", 0, [false; 2]),
            ("the same, where requests are cancelled", 0, [true; 2]),
            ("the guard, behind the best of all", last, [false, true]),
            ("the same, where nothing is cancelled", last, [false; 2]),
            ("the same, where requests are cancelled", last, [true; 2]),
        ] {
            let mut line = format!("| {title} |");
            for found in &found {
                let behind = |row: &[f64]| row[..row.len() - 1].iter().copied().fold(0.0, f64::max) - row[of];
                let mut all: Vec<f64> =
                    found.iter().filter(|(cancels, _)| kept.contains(cancels)).map(|(_, row)| behind(row)).collect();
                let (mean, interval) = interval(&all);
                all.sort_by(f64::total_cmp);
                line += &format!(" {mean:.1} ± {interval:.1} | {:.1} |", all[all.len() * 9 / 10]);
            }
            println!("{line}");
        }
        println!();
    }
}

/// Mean and half of its 95% interval.
fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, 1.96 * (variance / count).sqrt())
}
