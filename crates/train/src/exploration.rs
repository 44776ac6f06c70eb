//! Count-based exploration: a bonus on the Q-values of (slack bin, task) pairs that were rarely tried.

use std::collections::BTreeMap;
use temponet_task::TaskId;

use serde::{Deserialize, Serialize};

use crate::fleet::mix;

/// Bonus added to Q-values while acting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExplorationBonus {
    /// No bonus: ε-greedy alone.
    #[default]
    None,
    /// β / √(n + 1), where n is the number of times that the pair was tried.
    Count {
        /// β, 0 or more.
        weight: f64,
        /// Number of cells per row of a count-min sketch that counts approximately; `None` counts exactly.
        sketch: Option<usize>,
    },
    /// Upper confidence bound: c · √(ln t / (n + 1)), where t is the number of choices made so far.
    Ucb {
        /// c, 0 or more.
        weight: f64,
    },
}

/// Number of times that each pair was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VisitCounter {
    /// Exact counts.
    Exact(BTreeMap<(u16, u32), u64>),
    /// Count-min sketch: never counts too few, sometimes too many.
    Sketch {
        /// Cells per row.
        width: usize,
        /// Cells of all rows, row after row.
        cells: Vec<u32>,
    },
}

/// Rows of a sketch.
const ROWS: usize = 4;

impl VisitCounter {
    /// Empty counter of the kind that the bonus asks for.
    pub fn new(bonus: ExplorationBonus) -> VisitCounter {
        match bonus {
            ExplorationBonus::Count { sketch: Some(width), .. } => {
                VisitCounter::Sketch { width: width.max(1), cells: vec![0; ROWS * width.max(1)] }
            }
            _ => VisitCounter::Exact(BTreeMap::new()),
        }
    }

    /// Counts one try of a pair.
    pub fn add(&mut self, slack: u16, task: TaskId) {
        match self {
            VisitCounter::Exact(counts) => *counts.entry((slack, task.0)).or_default() += 1,
            VisitCounter::Sketch { width, cells } => {
                for row in 0..ROWS {
                    cells[place(slack, task, row, *width)] += 1;
                }
            }
        }
    }

    /// Returns the number of times that a pair was tried.
    pub fn of(&self, slack: u16, task: TaskId) -> u64 {
        match self {
            VisitCounter::Exact(counts) => counts.get(&(slack, task.0)).copied().unwrap_or(0),
            VisitCounter::Sketch { width, cells } => {
                (0..ROWS).map(|row| u64::from(cells[place(slack, task, row, *width)])).min().unwrap_or(0)
            }
        }
    }
}

fn place(slack: u16, task: TaskId, row: usize, width: usize) -> usize {
    row * width + (mix(u64::from(slack) << 32 | u64::from(task.0), row as u64) % width as u64) as usize
}

impl ExplorationBonus {
    /// Returns the bonus of a pair after `tries` choices in all.
    pub fn of(self, counter: &VisitCounter, tries: u64, slack: u16, task: TaskId) -> f64 {
        let rarely = |weight: f64, above: f64| weight * (above / (counter.of(slack, task) as f64 + 1.0)).sqrt();
        match self {
            ExplorationBonus::None => 0.0,
            ExplorationBonus::Count { weight, .. } => rarely(weight, 1.0),
            ExplorationBonus::Ucb { weight } => rarely(weight, (tries.max(1) as f64).ln()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_never_counts_too_few() {
        let bonus = ExplorationBonus::Count { weight: 1.0, sketch: Some(512) };
        let (mut sketch, mut exact) = (VisitCounter::new(bonus), VisitCounter::new(ExplorationBonus::None));
        for k in 0..2_000u32 {
            let (slack, task) = ((k % 37) as u16, k * k % 11);
            sketch.add(slack, TaskId(task));
            exact.add(slack, TaskId(task));
        }
        let pairs = (0..37u16).flat_map(|slack| (0..11).map(move |task| (slack, task)));
        let close = pairs.clone().filter(|(s, t)| sketch.of(*s, TaskId(*t)) == exact.of(*s, TaskId(*t))).count();
        assert!(pairs.clone().all(|(s, t)| sketch.of(s, TaskId(t)) >= exact.of(s, TaskId(t))));
        assert!(close > 200, "{close}");
        assert!(bonus.of(&exact, 10, 36, TaskId(99)) == 1.0 && bonus.of(&exact, 10, 0, TaskId(0)) < 0.5);
    }
}
