//! The distilled rule: how well the priority `α/(s̃+1) + β/(c+1)` reproduces the network's choices. Here s̃ is the
//! slack bin and c the remaining wcet in units of the set's scale. Only the ratio of α and β matters, so they add up to
//! one.

use serde::Serialize;

use super::run::Agreement;

/// Number of steps in which α is searched between 0 and 1.
const STEPS: usize = 100;

/// The rule that agrees best with the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DistilledRule {
    /// Weight of little slack, 0 to 1.
    pub alpha: f64,
    /// Weight of little remaining wcet: 1 − α.
    pub beta: f64,
    /// Agreement with the network's choices.
    #[serde(flatten)]
    pub agreement: Agreement,
}

/// What the rule knows of a job. Jobs are given in the order that breaks ties.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleInput {
    pub slack: f64,
    pub remaining: f64,
    pub is_chosen: bool,
}

/// Tries all values of α at every decision.
#[derive(Clone, Debug)]
pub(super) struct RuleSearch {
    tried: Vec<Agreement>,
    order: Vec<usize>,
}

impl RuleSearch {
    pub fn new() -> RuleSearch {
        RuleSearch { tried: vec![Agreement::default(); STEPS + 1], order: Vec::new() }
    }

    /// Adds a decision. Every rule chooses as many jobs as the network did; decisions without a chosen job do not
    /// count.
    pub fn add(&mut self, jobs: &[RuleInput], is_contested: bool) {
        let chosen = jobs.iter().filter(|job| job.is_chosen).count();
        if chosen == 0 {
            return;
        }
        for (step, agreement) in self.tried.iter_mut().enumerate() {
            let (alpha, beta) = weights(step);
            let priority = |place: &usize| alpha / (jobs[*place].slack + 1.0) + beta / (jobs[*place].remaining + 1.0);
            let by_priority = |a: &usize, b: &usize| priority(b).total_cmp(&priority(a)).then(a.cmp(b));
            self.order.clear();
            self.order.extend(0..jobs.len());
            self.order.select_nth_unstable_by(chosen - 1, by_priority);
            let same = self.order[..chosen].iter().filter(|place| jobs[**place].is_chosen).count();
            agreement.add(same as f64 / chosen as f64, is_contested);
        }
    }

    /// Returns the best rule; the middle one if several are equally good.
    pub fn best(&self) -> DistilledRule {
        let most = self.tried.iter().map(|agreement| agreement.all).fold(0.0, f64::max);
        let best: Vec<usize> = (0..=STEPS).filter(|step| self.tried[*step].all == most).collect();
        let step = best[best.len() / 2];
        let (alpha, beta) = weights(step);
        DistilledRule { alpha, beta, agreement: self.tried[step].clone() }
    }
}

fn weights(step: usize) -> (f64, f64) {
    (step as f64 / STEPS as f64, (STEPS - step) as f64 / STEPS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    #[test]
    fn the_search_finds_the_rule_that_chose() {
        let mut rng = Pcg64::seed_from_u64(1);
        for alpha in [0.0, 0.37, 0.73, 1.0] {
            let mut search = RuleSearch::new();
            for _ in 0..2_000 {
                let mut job = || RuleInput {
                    slack: rng.random_range(0.0..40.0),
                    remaining: rng.random_range(0.0..6.0),
                    is_chosen: false,
                };
                let mut jobs: Vec<RuleInput> = (0..8).map(|_| job()).collect();
                let priority = |job: &RuleInput| alpha / (job.slack + 1.0) + (1.0 - alpha) / (job.remaining + 1.0);
                jobs.sort_by(|a, b| priority(b).total_cmp(&priority(a)));
                jobs[0].is_chosen = true;
                jobs[1].is_chosen = true;
                jobs.sort_by(|a, b| a.remaining.total_cmp(&b.remaining).then(a.slack.total_cmp(&b.slack)));
                search.add(&jobs, true);
            }
            let rule = search.best();
            assert!((rule.alpha - alpha).abs() < 0.02 && (rule.alpha + rule.beta - 1.0).abs() < 1e-9, "{rule:?}");
            assert!(rule.agreement.all > 0.995, "{rule:?}");
        }
    }
}
