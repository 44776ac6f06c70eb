//! Sensitivity: the largest factor on all execution times at which a scheduler is still proved to meet every deadline.

use temponet_task::TaskSet;

use crate::catalog::Entry;
use crate::proofs::{Facts, sharing_proof};

/// Sensitivity of one scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// Name of the scheduler in the catalog.
    pub scheduler: &'static str,
    /// Largest factor, a multiple of 1/10 000; below 1 if there is no proof for the set as it is.
    pub factor: f64,
    /// Name of the test or theorem that proves it at that factor.
    pub by: String,
}

/// Factors are multiples of 1/`WHOLE`.
const WHOLE: u64 = 10_000;
/// Largest factor that is looked for, in units of 1/`WHOLE`.
const MOST: u64 = 1_000 * WHOLE;
/// Largest factor that [`scalings`] returns. A scheduler with this factor may be proved beyond it.
pub const LARGEST_SCALING: f64 = (MOST - 1) as f64 / WHOLE as f64;

/// The main schedulers whose proofs differ.
const SCHEDULERS: &[&str] = &["edf", "rm", "dm", "fp", "p-edf", "p-rm", "edf-us", "fpedf", "cd-split", "dp-wrap"];

/// Returns the largest factor for each of the main schedulers, the greatest first. Schedulers that are not proved at
/// any factor are left out.
pub fn scalings(set: &TaskSet) -> Vec<Scaling> {
    let one_core = |name: &str| matches!(name, "edf" | "rm" | "dm" | "fp");
    let has_priorities = set.tasks().iter().any(|task| task.priority.is_some());
    let asked = SCHEDULERS.iter().copied().filter(|name| set.cores() > 1 || one_core(name));
    let asked = asked.filter(|name| *name != "fp" || has_priorities);
    let mut found: Vec<Scaling> = asked.filter_map(|scheduler| largest(set, scheduler)).collect();
    found.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    found
}

/// Finds the largest factor by bisection. Some sufficient tests are not monotonic, so a larger factor may exist; the
/// one returned is proved.
fn largest(set: &TaskSet, scheduler: &'static str) -> Option<Scaling> {
    let entry = Entry::find(scheduler)?;
    if !set.has_sections() {
        Facts::of(set)?;
    }
    let at = |parts: u64| {
        let scaled = set.with_work(parts, WHOLE);
        match set.has_sections() {
            true => sharing_proof(&scaled, entry),
            false => entry.proof(&Facts::of(&scaled)?),
        }
    };
    let fits = set.cores() as f64 / set.utilization();
    let mut above = ((fits * WHOLE as f64) as u64).saturating_add(2).min(MOST);
    let mut best = (0, None);
    while best.0 + 1 < above {
        let middle = best.0 + (above - best.0) / 2;
        match at(middle) {
            Some(by) => best = (middle, Some(by)),
            None => above = middle,
        }
    }
    let by = best.1?;
    Some(Scaling { scheduler, factor: best.0 as f64 / WHOLE as f64, by })
}
