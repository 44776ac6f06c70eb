//! Execution times of remembered jobs that did not complete.
//!
//! A job that was aborted after executing for some time takes longer than that, and how much longer is not known. Jobs
//! that did complete are short ones more often than not, so their mean would flatter every candidate that runs other
//! jobs than the followed one did. The product-limit estimate ([`ProductLimit`]) uses both kinds of jobs: it is
//! the distribution of all execution times under which what was seen is most likely. Times are drawn from it under the
//! condition that the job was not complete when it left. Times are shares of the wcet, which differs from job to job.

use temponet_sim::mixed_seed;
use temponet_task::ProductLimit;

/// Estimated distribution of execution times, as shares of the wcet.
#[derive(Debug, Default)]
pub(super) struct Executions {
    /// Shares at which jobs completed, ascending, and the estimated probability of taking longer.
    steps: Vec<(f64, f64)>,
}

impl Executions {
    /// Estimates the distribution from shares of the wcet and whether the job was complete then.
    pub fn estimate(mut seen: Vec<(f64, bool)>) -> Executions {
        // A job that left at the time at which another one completed was not complete then.
        seen.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let (mut limit, mut steps) = (ProductLimit::of(seen.len() as f64), Vec::new());
        for (share, is_complete) in seen {
            if is_complete {
                steps.push((share, limit.pass(1.0, 0.0)));
            } else {
                limit.pass(0.0, 1.0);
            }
        }
        Executions { steps }
    }

    /// Draws the share of a job that was not complete after the share `executed`. Equal numbers give equal draws.
    /// Beyond the longest job that completed, every share up to the wcet is equally likely.
    pub fn draw(&self, executed: f64, number: u64) -> f64 {
        let place = self.steps.partition_point(|(share, _)| *share <= executed);
        let beyond = if place == 0 { 1.0 } else { self.steps[place - 1].1 };
        let target = beyond * uniform(number);
        if let Some((share, _)) = self.steps[place..].iter().find(|(_, beyond)| *beyond <= target) {
            return *share;
        }
        let (last, left) = self.steps.last().copied().unwrap_or((0.0, 1.0));
        let begin = last.max(executed).min(1.0);
        begin + (1.0 - begin) * if left > 0.0 { (1.0 - target / left).clamp(0.0, 1.0) } else { 1.0 }
    }
}

/// Number from 0 to 1, exclusive, that depends on `number` alone.
fn uniform(number: u64) -> f64 {
    // A double has 53 bits of precision.
    ((mixed_seed(STREAM, number) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Tells these draws apart from others with the same numbers.
const STREAM: u64 = 7_300_000_001;

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(executions: &Executions, executed: f64) -> f64 {
        (0..2_000).map(|number| executions.draw(executed, number)).sum::<f64>() / 2_000.0
    }

    #[test]
    fn jobs_that_did_not_complete_count() {
        // Half of the jobs take 0.2, half 0.8; those that are not complete at 0.4 are aborted, except a few.
        let mut seen = vec![(0.2, true); 50];
        seen.extend([(0.4, false); 45]);
        seen.extend([(0.8, true); 5]);
        let executions = Executions::estimate(seen);
        assert!((mean(&executions, 0.0) - 0.5).abs() < 0.02, "not the 0.25 of those that completed");
        assert!((mean(&executions, 0.4) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn without_longer_jobs_everything_up_to_the_wcet_is_likely() {
        let executions = Executions::estimate(vec![(0.3, true), (0.5, false)]);
        let beyond: Vec<f64> = (0..500).map(|number| executions.draw(0.5, number)).collect();
        assert!(beyond.iter().all(|share| (0.5..=1.0).contains(share)));
        assert!((mean(&executions, 0.5) - 0.75).abs() < 0.02);
        assert!((mean(&Executions::default(), 0.0) - 0.5).abs() < 0.02);
        assert_eq!(Executions::default().draw(1.2, 3), 1.0);
        let none_left = Executions::estimate(vec![(0.3, true)]);
        assert_eq!((none_left.draw(0.1, 1), none_left.draw(0.9, 1)), (0.3, 1.0));
    }
}
