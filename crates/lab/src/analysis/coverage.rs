//! What in a set the tests do not cover, item by item, and the set without it.

use temponet_analysis::{WorstCase, covers_followers};
use temponet_sim::labels;
use temponet_task::{Arrival, Costs, Task, TaskId, TaskSet, Time};
use temponet_wording::{behind_noun, listed};

/// Something in a set that tests do not cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCovered {
    /// The feature, such as "follows others".
    pub what: String,
    /// Names of the tasks that have it; empty if it concerns the whole set.
    pub tasks: Vec<String>,
    /// Tests that do not cover it.
    pub tests: &'static str,
    /// What is assumed in its place for the analysis of the rest; none if some test covers it.
    pub assumed: Option<&'static str>,
}

/// Feature of tasks that come after others.
const FOLLOWS: &str = "follows others";
/// Feature of tasks whose parts come after each other.
const IN_PARTS: &str = "runs in parts";

/// Largest number of names in a line.
const MOST_NAMES: usize = 6;

impl NotCovered {
    /// The tasks in one phrase.
    pub fn named(&self) -> String {
        if self.tasks.is_empty() { "the set".into() } else { listed(self.tasks.iter().map(String::as_str), MOST_NAMES) }
    }
}

/// Returns what tests do not cover in a set.
pub(super) fn not_covered(set: &TaskSet) -> Vec<NotCovered> {
    let mut found = Vec::new();
    let several = set.cores() > 1;
    let of = |is_meant: &dyn Fn(&Task) -> bool| -> Vec<String> {
        set.tasks().iter().filter(|task| is_meant(task)).map(|task| task.name.clone()).collect()
    };
    let mut add =
        |what: String, tasks: Vec<String>, tests, assumed| found.push(NotCovered { what, tasks, tests, assumed });
    for mode in set.modes() {
        let name = behind_noun("mode", [mode.name.as_str()], 1);
        add(format!("{name} changes the load"), Vec::new(), "all tests", Some("no mode ever begins"));
    }
    if set.costs().decision > Time::ZERO {
        let cost = set.costs().decision;
        add(format!("each decision costs {cost}"), Vec::new(), "all tests", Some("decisions cost nothing"));
    }
    let mut add_tasks = |what: &str, tasks: Vec<String>, tests, assumed| {
        if !tasks.is_empty() {
            add(what.into(), tasks, tests, assumed);
        }
    };
    let is_listed = |task: &Task| matches!(task.arrival, Arrival::Listed(_));
    add_tasks("a list of single jobs", of(&is_listed), "all tests", Some("these tasks are left out"));
    let sharing = of(&|task| !task.sections.is_empty());
    let locks_are_tested = !several && !set.has_precedence() && WorstCase::ignoring_sections(set).is_ok();
    match locks_are_tested {
        true => add_tasks("locks resources", sharing, "tests without critical sections", None),
        false => add_tasks("locks resources", sharing, "all tests", Some("nobody waits for a resource")),
    }
    let whole = |is_meant: &dyn Fn(TaskId) -> bool| -> Vec<String> {
        set.whole_tasks().filter(|task| is_meant(*task)).map(|task| set.tasks()[task].name.clone()).collect()
    };
    let followers = whole(&|task| !set.tasks()[set.first_part(task)].after.is_empty());
    let in_parts = whole(&|task| set.first_part(task) != task);
    match several && !covers_followers(set) || set.has_sections() {
        true => {
            add_tasks(FOLLOWS, followers, "all tests", Some("no task comes after another"));
            add_tasks(IN_PARTS, in_parts, "all tests", Some("parts are independent tasks"));
        }
        false => {
            add_tasks(FOLLOWS, followers, "tests of independent tasks", None);
            add_tasks(IN_PARTS, in_parts, "tests of independent tasks", None);
        }
    }
    let limited = of(&|task| labels::preemption(task.preemption).is_some());
    let tests = if several { "global tests" } else { "tests without blocking" };
    add_tasks("limits preemption", limited, tests, None);
    if several {
        let bound = of(&|task| !task.cores.is_all());
        add_tasks("is bound to some cores", bound, "tests of global schedulers", None);
        if set.machine().is_unequal() {
            add("cores have different speeds".into(), Vec::new(), "tests of global schedulers, but FGB", None);
        }
    }
    found
}

/// Returns the set without what no test covers; none if nothing of it is left, or if some test covers all of it.
pub(super) fn rest(set: &TaskSet, not_covered: &[NotCovered]) -> Option<TaskSet> {
    if not_covered.iter().all(|item| item.assumed.is_none()) {
        return None;
    }
    let mut rest = set.clone().with_modes(Vec::new());
    rest.system.set_costs(Costs { decision: Time::ZERO, ..*set.costs() });
    rest.system.set_chains(Vec::new());
    let recurs = |task: &&Task| !matches!(task.arrival, Arrival::Listed(_));
    let has_lists = set.tasks().iter().any(|task| !recurs(&task));
    let is_assumed = |what: &str| not_covered.iter().any(|item| item.what == what && item.assumed.is_some());
    let mut tasks: Vec<Task> = set.tasks().iter().filter(recurs).cloned().collect();
    for task in &mut tasks {
        // Indices of other tasks have moved where lists of jobs are left out.
        if has_lists || is_assumed(FOLLOWS) || is_assumed(IN_PARTS) {
            task.after.clear();
            task.reads.clear();
            task.is_part = false;
        }
        if is_assumed("locks resources") {
            task.sections.clear();
        }
    }
    if is_assumed("locks resources") {
        rest.system.set_resources(Vec::new());
    }
    let is_empty = tasks.is_empty();
    rest.system.set_tasks(tasks);
    (!is_empty && rest.system.validate().is_ok()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use temponet_task::{Mode, ResourceId, Section};

    fn set(cores: usize) -> TaskSet {
        let task = |name: &str| Task::periodic(name, Time::from_ms(10), Time::from_ms(2));
        TaskSet::new("s", vec![task("a"), task("b"), task("c")], cores)
    }

    #[test]
    fn each_feature_is_named_with_its_tasks_and_the_rest_is_analysed() {
        let mut given = set(2);
        given.system.tasks_mut()[1].after = vec![TaskId(0)];
        given.system.set_resources(vec!["bus".into()]);
        given.system.tasks_mut()[2].sections =
            vec![Section { resource: ResourceId(0), at: Time::ZERO, length: Time::from_ms(1) }];
        given.push_mode(Mode::new("hot", Time::from_ms(50)));
        given.push_mode(Mode::new("mode 2", Time::from_ms(90)));
        let analysis = Analysis::of(given, None);
        let items: Vec<(&str, String)> =
            analysis.not_covered.iter().map(|item| (item.what.as_str(), item.named())).collect();
        let expected = [
            ("mode hot changes the load", "the set"),
            ("mode 2 changes the load", "the set"),
            ("locks resources", "c"),
            ("follows others", "b"),
        ];
        assert_eq!(items, expected.map(|(what, tasks)| (what, tasks.to_string())));
        let rest = analysis.rest.expect("the rest is analysed");
        assert!(rest.verdict().contains("every deadline is proved to be met under edf"), "{}", rest.verdict());
        assert!(rest.rest.is_none() && rest.not_covered.is_empty());
    }

    #[test]
    fn what_a_test_covers_needs_no_assumption() {
        let mut given = set(1);
        given.system.tasks_mut()[1].after = vec![TaskId(0)];
        let analysis = Analysis::of(given, None);
        assert_eq!(analysis.not_covered.len(), 1);
        assert!(analysis.rest.is_none() && !analysis.proofs.is_empty());
        assert!(Analysis::of(set(1), None).not_covered.is_empty());
    }
}
