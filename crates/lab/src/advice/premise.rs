//! What proofs, guarantees and simulations assume of a machine, what was measured on it, and whether the one covers the
//! other. On real threads a guarantee is worth no more than that.

use serde::Serialize;
use temponet_sim::Histogram;
use temponet_task::{TaskSet, Time};
use temponet_wording::{counted, grouped};

/// Delays and counts of runs on real threads.
#[derive(Clone, Debug, Default)]
pub struct MeasuredMachine {
    /// From the order to switch to the first instruction of the new job.
    pub switch: Histogram,
    /// From a release to the first instruction of a job that is put on a core at once.
    pub start: Histogram,
    /// Lateness of timers on an otherwise idle processor.
    pub timers: Histogram,
    /// Jobs of all schedulers.
    pub jobs: u64,
    /// Jobs that took longer than their wcet.
    pub overruns: u64,
    /// Releases that were skipped because the task was still busy.
    pub skipped: u64,
}

/// What was assumed of a machine, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Premise {
    /// Cost of a context switch that the set provides for.
    pub assumed_switch_ns: u64,
    /// Median and longest time that a switch took; null if there was none.
    pub measured_switch_ns: Option<[u64; 2]>,
    /// Longest time from a release to the first instruction of a job that is put on a core at once.
    pub longest_start_ns: u64,
    /// Longest delay of any kind: of a switch, a start or a timer.
    pub longest_delay_ns: u64,
    /// Least time that a job can be delayed and still be in time if it takes its wcet, and the task.
    pub least_slack_ns: u64,
    /// Task with the least slack.
    pub least_slack_of: String,
    /// Jobs of all schedulers.
    pub jobs: u64,
    /// Jobs that took longer than their wcet.
    pub overruns: u64,
    /// Releases that were skipped because the task was still busy.
    pub skipped: u64,
    /// Whether what was measured is within what was assumed.
    pub held: bool,
}

impl Premise {
    /// Compares what a set assumes with what was measured.
    pub fn of(set: &TaskSet, measured: &MeasuredMachine) -> Premise {
        let at = |histogram: &Histogram, q: f64| histogram.quantile(q).map(|ns| ns.max(0) as u64);
        let longest = |histogram: &Histogram| at(histogram, 1.0).unwrap_or(0);
        let MeasuredMachine { switch, start, timers, jobs, overruns, skipped } = measured;
        let assumed = set.costs().context_switch + set.costs().decision;
        let slack = set.tasks().iter().map(|task| (task.deadline.saturating_sub(task.wcet), task.name.clone()));
        let (least_slack, least_slack_of) = slack.min().unwrap_or_default();
        Premise {
            assumed_switch_ns: assumed.0,
            measured_switch_ns: at(switch, 0.5).zip(at(switch, 1.0)).map(|(median, most)| [median, most]),
            longest_start_ns: longest(start),
            longest_delay_ns: [switch, start, timers].into_iter().map(longest).max().unwrap_or(0),
            least_slack_ns: least_slack.0,
            least_slack_of,
            jobs: *jobs,
            overruns: *overruns,
            skipped: *skipped,
            held: longest(switch).max(longest(start)) <= assumed.0 && *overruns == 0 && *skipped == 0,
        }
    }

    /// Says that the machine is noisy, if a single delay can cost a deadline.
    pub fn noise(&self) -> Option<String> {
        (self.longest_delay_ns > self.least_slack_ns).then(|| {
            format!(
                "This machine is noisy: a delay took {}, and {} has a slack of {}. Misses below may be the machine's, not the scheduler's.",
                rounded(self.longest_delay_ns),
                self.least_slack_of,
                Time(self.least_slack_ns)
            )
        })
    }

    /// What was measured and is not as assumed.
    fn broken(&self) -> String {
        let counted = |number, what| (number > 0).then(|| counted(number, what));
        let longer =
            |what: &str, ns: u64| (ns > self.assumed_switch_ns).then(|| format!("{what} took {}", rounded(ns)));
        let switch = longer("a switch", self.measured_switch_ns.map_or(0, |[_, most]| most));
        let all = [
            switch.or_else(|| longer("the start of a job", self.longest_start_ns)),
            counted(self.overruns, "job").map(|jobs| format!("{jobs} took longer than the wcet")),
            counted(self.skipped, "release").map(|releases| format!("{releases} skipped")),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// States what was assumed, what was measured and whether it held. `guarantee` is what the shield does where it
    /// does, as the continuation of "the shield"; `None` if no scheduler is behind it.
    pub fn sentences(&self, guarantee: Option<&str>) -> Vec<String> {
        let switch = match self.assumed_switch_ns {
            0 => "that a switch costs nothing".into(),
            cost => format!("that a switch and its decision cost at most {}", Time(cost)),
        };
        let measured = self.measured_switch_ns.map_or("no switch was measured".into(), |[median, most]| {
            format!("a switch took {} at the median and {} at most", rounded(median), rounded(most))
        });
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", counted(skipped, "release")),
        };
        let overran =
            format!("{} of {} took longer than their wcet{skipped}", grouped(self.overruns), counted(self.jobs, "job"));
        let held = match (self.held, guarantee) {
            (true, Some(guarantee)) => format!("The premise held in these runs, in which the shield {guarantee}."),
            (true, None) => "The premise held in these runs.".into(),
            (false, Some(guarantee)) => format!(
                "The premise did not hold ({}), so nothing is guaranteed on this machine as it is; where it holds, the shield {guarantee}.",
                self.broken()
            ),
            (false, None) => {
                format!("The premise did not hold ({}), so no proof applies to this machine as it is.", self.broken())
            }
        };
        vec![
            format!("Assumed: {switch} and that no job takes longer than its wcet."),
            format!("Measured: {measured}; {overran}."),
            held,
        ]
    }
}

/// A measured time to three digits, as nobody needs more.
fn rounded(ns: u64) -> String {
    let step = 10u64.pow(ns.max(1).ilog10().saturating_sub(2));
    Time(ns / step * step).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Costs, Task};

    fn premise(switch: i64, assumed: u64, overruns: u64) -> Premise {
        let ms = Time::from_ms;
        let costs = Costs { context_switch: Time(assumed), ..Costs::default() };
        let set =
            TaskSet::new("s", vec![Task::periodic("tight", ms(10), ms(7)), Task::periodic("b", ms(40), ms(9))], 1);
        let mut measured = MeasuredMachine { jobs: 100, overruns, ..MeasuredMachine::default() };
        measured.switch.record(switch);
        Premise::of(&set.with_costs(costs), &measured)
    }

    #[test]
    fn a_guarantee_on_a_machine_that_does_not_keep_its_premise_is_none() {
        let broken = premise(63_123_456, 15_000, 3);
        assert!(!broken.held);
        let text = broken.sentences(Some("guarantees every deadline")).join(" ");
        assert_eq!(
            text,
            "Assumed: that a switch and its decision cost at most 15us and that no job takes longer than its wcet. \
            Measured: a switch took 63.1ms at the median and 63.1ms at most; 3 of 100 jobs took longer than their wcet. \
            The premise did not hold (a switch took 63.1ms, 3 jobs took longer than the wcet), so nothing is guaranteed on this machine as it is; where it holds, the shield guarantees every deadline."
        );
        let noise = broken.noise().unwrap();
        assert!(noise.contains("a delay took 63.1ms, and tight has a slack of 3ms"), "{noise}");
    }

    #[test]
    fn a_machine_that_keeps_its_premise_is_said_to() {
        let kept = premise(9_000, 15_000, 0);
        assert!(kept.held && kept.noise().is_none());
        assert!(kept.sentences(None).join(" ").ends_with("The premise held in these runs."));
        assert!(!premise(9_000, 0, 0).held && !premise(9_000, 15_000, 1).held);
    }
}
