//! What an advice rests on: runs and jobs, whether the worst case fits, and what such runs leave open.

use serde::Serialize;
use temponet_analysis::{WorstCase, refutations};
use temponet_sim::statistics::{FEW, rule_of_three};
use temponet_task::TaskSet;
use temponet_wording::{counted, grouped};

/// Where the figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Simulated runs.
    Simulation,
    /// Runs on real threads.
    Measurement,
}

/// What an advice rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Where the figures come from.
    pub source: Source,
    /// Number of runs, the same ones for every scheduler.
    pub runs: u64,
    /// Number of jobs that count in these runs, for each scheduler.
    pub jobs: u64,
    /// Whether runs with other seeds differ.
    pub is_random: bool,
    /// Whether no scheduler can meet every deadline if jobs arrive as often and take as long as they may; none if that
    /// cannot be told, or if the runs are of different sets.
    pub overloaded_at_wcet: Option<bool>,
    /// Whether the cores have less time than the jobs then ask for, rather than too little at the right moment.
    #[serde(skip)]
    lacks_cores: bool,
    /// Share of missed jobs that runs without a miss still leave open at 95% (rule of three), if each miss comes by
    /// itself.
    pub open_share_of_jobs: f64,
    /// Share of runs with a miss that runs without one still leave open at 95%, however misses come.
    pub open_share_of_runs: f64,
}

impl Evidence {
    /// Evidence of runs of a set on real threads, which are never twice the same.
    pub fn measured(set: &TaskSet, runs: u64, jobs: u64) -> Evidence {
        Evidence { source: Source::Measurement, is_random: true, ..Evidence::simulated(set, runs, jobs) }
    }

    /// Evidence of simulated runs of a set.
    pub fn simulated(set: &TaskSet, runs: u64, jobs: u64) -> Evidence {
        Evidence::of_runs(Some(set), runs, jobs)
    }

    /// Evidence of simulated runs of one set, or of different sets.
    pub fn of_runs(set: Option<&TaskSet>, runs: u64, jobs: u64) -> Evidence {
        Evidence {
            source: Source::Simulation,
            runs,
            jobs,
            is_random: set.is_none_or(|set| set.is_random()),
            overloaded_at_wcet: set.and_then(is_overloaded),
            lacks_cores: set.is_some_and(|set| set.utilization() > set.capacity()),
            open_share_of_jobs: rule_of_three(jobs),
            open_share_of_runs: rule_of_three(runs),
        }
    }

    /// Returns the runs as an adverbial: "in these 10 runs (99 935 jobs each scheduler; at the wcet the set is overloaded)".
    pub fn in_runs(&self) -> String {
        let runs = if self.runs == 1 { "this run".into() } else { format!("these {} runs", grouped(self.runs)) };
        format!("in {runs} ({}{})", counted(self.jobs, "job"), self.at_wcet())
    }

    /// Returns the last sentence of an advice.
    pub fn sentence(&self) -> String {
        let plural = if self.runs == 1 { "" } else { "s" };
        let runs = match self.source {
            Source::Simulation => format!("{} simulated run{plural}", grouped(self.runs)),
            Source::Measurement => format!("{} run{plural} on real threads", grouped(self.runs)),
        };
        let few = if (self.jobs as f64) < FEW && self.is_random { ", too few to tell schedulers apart" } else { "" };
        format!("This rests on {runs} with {}{few}{}.", counted(self.jobs, "job"), self.at_wcet())
    }

    fn at_wcet(&self) -> &'static str {
        match (self.overloaded_at_wcet, self.lacks_cores) {
            (Some(true), true) => "; at the wcet the set is overloaded",
            (Some(true), false) => "; at the wcet no scheduler can meet every deadline",
            _ => "",
        }
    }

    /// Says what runs without a miss leave open; none where nothing is random, so that the runs are all there is.
    pub fn left_open(&self) -> Option<String> {
        let one_in = (1.0 / self.open_share_of_jobs).floor() as u64;
        let per_run = 100.0 * self.open_share_of_runs;
        (self.is_random && self.jobs > 0).then(|| {
            format!(
                "Runs without a miss leave open up to 1 miss in {} jobs if each comes by itself, and a miss in up to {per_run:.0}% of such runs (95%).",
                grouped(one_in)
            )
        })
    }
}

/// Whether no scheduler can meet every deadline of a set in its worst case; `None` if that cannot be told.
fn is_overloaded(set: &TaskSet) -> Option<bool> {
    if !refutations(set).is_empty() {
        return Some(true);
    }
    WorstCase::of(set).ok()?.is_overloaded()
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{ExecutionModel, Task, Time};

    #[test]
    fn runs_without_a_miss_leave_something_open() {
        let ms = Time::from_ms;
        let mut task = Task::periodic("a", ms(10), ms(12));
        (task.bcet, task.execution) = (ms(1), ExecutionModel::Uniform);
        let set = TaskSet::new("s", vec![task], 1);
        let evidence = Evidence::simulated(&set, 10, 99_935);
        assert_eq!(evidence.in_runs(), "in these 10 runs (99 935 jobs; at the wcet the set is overloaded)");
        let open = evidence.left_open().unwrap();
        assert!(open.contains("1 miss in 33 359 jobs") && open.contains("up to 26% of such runs"), "{open}");
    }
}
