//! What can be proved about a task set: the tests, response times and proofs behind `temponet analyze`, and its
//! verdict.

mod coverage;
pub mod json;

use temponet_analysis::{
    ChainBound, Impossible, NotAnalyzable, Outcome, PriorityRule, Refutation, ResponseTimes, SHARING_TESTS, TESTS,
    Test, WorstCase, chain_bounds, covers_followers, dependent_response_times, may_overrun, refutations,
};
use temponet_sched::{LARGEST_SCALING, Proof, Scaling, proofs, scalings};
use temponet_sim::labels;
use temponet_task::{Attribute, CoreId, TaskSet, Time};
use temponet_wording::behind_noun;

pub use coverage::NotCovered;

use crate::comparison::listed;
use crate::overload::Survivals;
use crate::progress::Progress;
use crate::stats::percent;

/// Results of the analysis.
pub struct Analysis {
    /// Task set.
    pub set: TaskSet,
    /// Worst case of the set, or the reason why it is not analyzable.
    pub worst_case: Result<WorstCase, NotAnalyzable>,
    /// Reasons why no scheduler can meet every deadline, in each mode that has one.
    pub refutations: Vec<Refutation>,
    /// Tests that concern the set, with their results.
    pub tests: Vec<(&'static Test, Outcome)>,
    /// Response times by priority rule; on one core only.
    pub responses: Vec<(PriorityRule, ResponseTimes)>,
    /// Schedulers that are proved to meet every deadline.
    pub proofs: Vec<Proof>,
    /// Greatest factor on the execution times for which each scheduler is proved.
    pub scalings: Vec<Scaling>,
    /// Bounds on the reaction times and data ages of chains: the index of the chain, the scheduler, and the bound.
    pub chains: Vec<(usize, &'static str, ChainBound)>,
    /// Overload that each scheduler survives; none if no simulation was wanted.
    pub survivals: Option<Survivals>,
    /// What tests do not cover, item by item.
    pub not_covered: Vec<NotCovered>,
    /// The analysis of the set without what no test covers; none if some test covers all of it.
    pub rest: Option<Box<Analysis>>,
}

impl Analysis {
    /// Analyzes a set.
    pub fn of(set: TaskSet, survivals: Option<Survivals>) -> Analysis {
        let progress = Progress::busy("analysis");
        let worst_case = WorstCase::of(&set);
        let (mut tests, mut responses) = (Vec::new(), Vec::new());
        let base = match &worst_case {
            Ok(worst_case) => Some((TESTS, worst_case.clone())),
            Err(NotAnalyzable::SharedResources) => {
                WorstCase::ignoring_sections(&set).ok().map(|worst_case| (SHARING_TESTS, worst_case))
            }
            Err(_) => None,
        };
        if let Some((tests_of_set, worst_case)) = &base {
            let concerned = tests_of_set.iter().filter(|test| (test.concerns)(&set));
            for test in concerned {
                progress.say(test.name);
                tests.push((test, (test.run)(&set, worst_case)));
            }
        }
        progress.say("response times");
        let has_priorities = set.tasks().iter().any(|task| task.extra.has(Attribute::Priority));
        let policies = [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given];
        let is_covered = set.cores() == 1 || set.has_precedence() && covers_followers(&set);
        let asked = policies.into_iter().filter(|rule| is_covered && (*rule != PriorityRule::Given || has_priorities));
        responses.extend(asked.filter_map(|rule| Some((rule, dependent_response_times(&set, rule).ok()?))));
        progress.say("proofs");
        let proofs = proofs(&set);
        progress.say("longer execution times");
        let scalings = scalings(&set);
        let chains = bounds(&set, &responses);
        let refutations = refutations(&set);
        let not_covered = coverage::not_covered(&set);
        let rest = coverage::rest(&set, &not_covered).map(|rest| Box::new(Analysis::of(rest, None)));
        Analysis {
            set,
            worst_case,
            refutations,
            tests,
            responses,
            proofs,
            scalings,
            chains,
            survivals,
            not_covered,
            rest,
        }
    }

    /// Returns the conclusion in one sentence.
    pub fn verdict(&self) -> String {
        let worst_case = match &self.worst_case {
            Ok(worst_case) => worst_case,
            Err(NotAnalyzable::Precedence | NotAnalyzable::SharedResources) if !self.proofs.is_empty() => {
                let names = listed(&self.proved_names());
                let cores = labels::machine(&self.set);
                return format!("On {cores} every deadline is proved to be met under {names}.");
            }
            Err(NotAnalyzable::SharedResources)
                if self.tests.iter().any(|(_, outcome)| !matches!(outcome, Outcome::NotApplicable(_))) =>
            {
                return match self.refutation() {
                    Some(sentence) => sentence,
                    None => format!(
                        "Nothing is proved on {}: no test for tasks that share resources holds.",
                        labels::machine(&self.set)
                    ),
                };
            }
            Err(why) => {
                return match self.refutation() {
                    Some(sentence) => format!("{sentence} The rest is not analysable: {why}."),
                    None => format!("Not analysable: {why}."),
                };
            }
        };
        // A speed that all cores have is part of the worst case.
        let speed = if worst_case.speeds.is_empty() { self.set.machine().speed(CoreId(0)).as_f64() } else { 1.0 };
        let (cores, utilization) = (labels::machine(&self.set), speed * worst_case.utilization());
        let best = self.scalings.first();
        let shrunk = best.filter(|best| best.factor < 1.0).map_or(String::new(), |best| {
            format!(
                "; with execution times at {} of these, {} is proved to meet all",
                percent(best.factor),
                best.scheduler
            )
        });
        if !self.proofs.is_empty() {
            let growth = best.filter(|best| best.factor >= 1.0).map_or(String::new(), |best| {
                let factor = best.factor;
                let by =
                    if factor < 2.0 { format!("by {}", percent(factor - 1.0)) } else { format!("{factor:.2}-fold") };
                let by = if factor < LARGEST_SCALING { by } else { format!("at least {by}") };
                format!("; execution times may grow {by} ({})", best.scheduler)
            });
            return format!(
                "On {cores} every deadline is proved to be met under {}{growth}.",
                listed(&self.proved_names())
            );
        }
        let held =
            |name: &str| self.tests.iter().any(|(test, outcome)| test.name == name && *outcome == Outcome::Schedulable);
        let keeping = [("EDF-VD", "edf-vd"), ("AMC-rtb", "amc")].into_iter().filter(|(test, _)| held(test));
        let keeping: Vec<&str> = keeping.map(|(_, scheduler)| scheduler).collect();
        if !keeping.is_empty() {
            return format!(
                "On {cores} every critical deadline is proved to be met under {}, and all others as long as no job overruns.",
                listed(&keeping)
            );
        }
        let longest = self.longest();
        let at = if worst_case.may_overrun { " at wcet_high" } else { "" };
        if worst_case.is_overloaded() == Some(true) {
            let utilization = worst_case.utilization_without_switches();
            // More digits are shown where rounding would hide the overload.
            let near = utilization / self.set.capacity() < 1.005;
            let utilization = if near { utilization.to_string() } else { format!("{utilization:.2}") };
            return format!(
                "Overloaded: utilization {utilization}{at} on {cores}, so no scheduler can meet every deadline if every job takes {longest}{shrunk}."
            );
        }
        if let Some(refutation) = self.refutations.first() {
            return format!(
                "{}, so no scheduler can meet every deadline if every job takes {longest}{shrunk}.",
                self.in_words(refutation)
            );
        }
        let edf = self.tests.iter().find(|(test, _)| test.name == "QPA");
        if let Some((_, Outcome::NotSchedulable)) = edf {
            return format!(
                "On {cores} even EDF misses deadlines if every job takes {longest}, so no scheduler can meet every deadline then{shrunk}."
            );
        }
        let fits = if utilization <= self.set.capacity() {
            " fits"
        } else {
            " may fit: costs count as work that need not be paid each time"
        };
        format!("Nothing is proved on {cores}, though the utilization of {utilization:.2}{at}{fits}{shrunk}.")
    }

    /// Says what the analysis of the rest takes for granted and what it finds; none if nothing had to be left out.
    pub fn rest_in_words(&self) -> Option<String> {
        let rest = self.rest.as_ref()?;
        let assumed: Vec<&str> = self.not_covered.iter().filter_map(|item| item.assumed).collect();
        let mut distinct: Vec<&str> = Vec::new();
        assumed.into_iter().for_each(|words| {
            if !distinct.contains(&words) {
                distinct.push(words);
            }
        });
        Some(format!("The rest, as if {}: {}", listed(&distinct), rest.verdict()))
    }

    /// What a job takes where it takes the most. Jobs that may overrun count with the longest time that they may take.
    fn longest(&self) -> &'static str {
        match self.set.tasks().iter().any(may_overrun) {
            true => "the longest that it may, its wcet_high",
            false => "its wcet",
        }
    }

    /// Says of a set that tests do not cover why no scheduler can meet every deadline; none if nothing shows it.
    fn refutation(&self) -> Option<String> {
        let reasons: Vec<String> = self.refutations.iter().map(|refutation| self.in_words(refutation)).collect();
        let longest = self.longest();
        (!reasons.is_empty()).then(|| {
            format!("No scheduler can meet every deadline if every job takes {longest}. {}.", reasons.join(". "))
        })
    }

    /// Whether no scheduler can meet every deadline if jobs arrive as often and take as long as they may; `None` if
    /// that cannot be told.
    pub fn is_overloaded(&self) -> Option<bool> {
        match self.refutations[..] {
            [] => self.worst_case.as_ref().ok()?.is_overloaded(),
            _ => Some(true),
        }
    }

    /// Returns a reason why no scheduler can meet every deadline as a sentence without its full stop.
    pub fn in_words(&self, refutation: &Refutation) -> String {
        let mode = refutation
            .mode
            .map(|index| format!("In {}, ", behind_noun("mode", [self.set.modes()[index].name.as_str()], 1)));
        let begun = |sentence: String| match &mode {
            // A sentence goes on in lower case, but a name keeps its own.
            Some(mode) => format!("{mode}{}{}", sentence[..1].to_lowercase(), &sentence[1..]),
            None => sentence,
        };
        begun(match &refutation.why {
            Impossible::Job { task, time, deadline } => {
                let (whole, first) = (self.set.whole(*task), self.set.first_part(*task));
                let task = &self.set.tasks()[whole];
                let follows = !self.set.tasks()[first].after.is_empty();
                let parts = if first == whole { "" } else { " in its parts" };
                let after = if follows { " after those that it follows" } else { "" };
                let core = if self.set.machine().is_full_speed() { "" } else { " on the fastest core that it may use" };
                format!("Task {} takes {time}{parts}{after}{core}, more than its deadline of {deadline}", task.name)
            }
            Impossible::Overload { utilization, speed } => {
                format!("Jobs ask for {utilization:.2} cores' worth of work, and there are {speed:.2}")
            }
            Impossible::Demand { interval, work, speed } => {
                format!("Within {interval}, {work} of work is due, and {speed:.2} cores' worth of time is there")
            }
            Impossible::Cores { cores, utilization, speed } => {
                let names: Vec<String> = cores.iter().map(|core| labels::core(&self.set, *core)).collect();
                let names = listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
                format!(
                    "Overloaded: the tasks bound to {names} have a utilization of {utilization:.2} on a speed of {speed:.2}"
                )
            }
        })
    }

    /// Returns the schedulers that are proved to meet all deadlines, the well-known ones first.
    fn proved_names(&self) -> Vec<&'static str> {
        let known = ["edf", "rm", "dm"];
        let is_known = |proof: &&Proof| known.contains(&proof.scheduler);
        let (mut first, others): (Vec<&Proof>, Vec<&Proof>) = self.proofs.iter().partition(is_known);
        first.sort_by_key(|proof| known.iter().position(|name| *name == proof.scheduler));
        first.into_iter().chain(others).map(|proof| proof.scheduler).collect()
    }
}

/// What the bounds of a chain presuppose where no scheduler is named.
pub const ANY: &str = "any that meets every deadline";

/// Returns the bounds on the chains of a set: under any scheduler that meets every deadline, and under fixed priorities
/// that are proved to.
fn bounds(set: &TaskSet, responses: &[(PriorityRule, ResponseTimes)]) -> Vec<(usize, &'static str, ChainBound)> {
    let mut bounds = Vec::new();
    let deadlines: Vec<Option<Time>> = set.tasks().iter().map(|task| Some(task.deadline)).collect();
    for (index, chain) in set.chains().iter().enumerate() {
        bounds.extend(chain_bounds(set, chain, &deadlines, None).into_iter().map(|bound| (index, ANY, bound)));
        for (rule, found) in responses.iter().filter(|(_, found)| found.outcome == Outcome::Schedulable) {
            let under = chain_bounds(set, chain, &found.bounds, Some(*rule));
            bounds.extend(under.into_iter().map(|bound| (index, rule.scheduler(), bound)));
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Core, CoreSet, ExecutionModel, Speed, Task};

    fn verdict(set: TaskSet) -> (String, Option<bool>) {
        let analysis = Analysis::of(set, None);
        (analysis.verdict(), analysis.is_overloaded())
    }

    #[test]
    fn a_task_that_is_too_slow_on_its_only_core_does_not_fit() {
        let ms = Time::from_ms;
        let core = |name: &str, speed: u32| Core::new(name, Speed(speed));
        let bound = |name: &str, wcet: u64| Task::periodic(name, ms(10), ms(wcet)).with_cores(CoreSet::of([CoreId(1)]));
        let machine = vec![core("big", 2000), core("lit", 100)];
        let set = |tasks: Vec<Task>| TaskSet::new("s", tasks, 2).with_machine(machine.clone());
        let (words, is_overloaded) = verdict(set(vec![bound("a", 2), Task::periodic("b", ms(10), ms(1))]));
        assert!(
            words.starts_with(
                "Task a takes 20ms on the fastest core that it may use, more than its deadline of 10ms, so"
            ),
            "{words}"
        );
        assert_eq!(is_overloaded, Some(true));
        let many = (0..3).map(|k| bound(&format!("t{k}"), 1));
        let (words, _) = verdict(set(many.collect()));
        assert!(
            words.contains("bound to core 1 (lit)") && words.contains("have a utilization of 0.30 on a speed of 0.10"),
            "{words}"
        );
    }

    #[test]
    fn a_utilization_with_overruns_is_not_said_to_be_that_of_the_wcets() {
        let ms = Time::from_ms;
        let mut task = Task::periodic("a", ms(10), ms(4));
        (task.wcet_high, task.execution) =
            (Some(ms(12)), ExecutionModel::Overrun { probability: 0.5, below: Box::new(ExecutionModel::Wcet) });
        let (words, _) = verdict(TaskSet::new("s", vec![task], 1));
        assert!(words.contains("utilization 1.20 at wcet_high") && words.contains("its wcet_high"), "{words}");
    }
}
