//! Sensitivity: the largest factor on all execution times at which a scheduler is still proved to meet every deadline.

use temponet_task::{Attribute, TaskSet};

use crate::catalog::{Entry, find};
use crate::proofs::Facts;

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

/// Whether a scheduler is asked for on a set.
pub(crate) type IsAsked = fn(&TaskSet) -> bool;

/// The main schedulers whose proofs differ, and the sets on which they are asked for.
pub(crate) const SCHEDULERS: &[(&str, IsAsked)] = &[
    ("edf", |_| true),
    ("rm", |_| true),
    ("dm", |_| true),
    ("fp", |set| set.tasks().iter().any(|task| task.extra.has(Attribute::Priority))),
    ("p-edf", has_several_cores),
    ("p-rm", has_several_cores),
    ("edf-us", has_several_cores),
    ("fpedf", has_several_cores),
    ("cd-split", has_several_cores),
    ("dp-wrap", has_several_cores),
];

fn has_several_cores(set: &TaskSet) -> bool {
    set.cores() > 1
}

/// Returns the largest factor for each of the main schedulers, the greatest first. Schedulers that are not proved at
/// any factor are left out, and sets whose tasks come after each other have none.
pub fn scalings(set: &TaskSet) -> Vec<Scaling> {
    if set.has_precedence() && !set.has_sections() {
        return Vec::new();
    }
    let asked = SCHEDULERS.iter().filter(|(_, is_asked)| is_asked(set));
    let mut found: Vec<Scaling> = asked.filter_map(|(name, _)| largest(set, find(name)?)).collect();
    found.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    found
}

/// Finds the largest factor by bisection. Some sufficient tests are not monotonic, so a larger factor may exist; the
/// one returned is proved.
fn largest(set: &TaskSet, entry: &'static Entry) -> Option<Scaling> {
    Facts::of(set)?;
    let at = |parts: u64| entry.proved_by(&Facts::of(&set.with_work(parts, WHOLE))?);
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
    Some(Scaling { scheduler: &entry.name, factor: best.0 as f64 / WHOLE as f64, by })
}
