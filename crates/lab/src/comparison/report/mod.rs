//! The page of a comparison: verdict, four numbers and the two schedules that show why; then the ranked table, tasks by
//! schedulers, chains, response times, and what to change.
//!
//! Tables are written into the page as HTML. Schedules and response times are stored as JSON and drawn by the page's
//! scripts, so the reader can select and zoom them.

mod chains;
mod lead;
mod ranked_table;
mod schedules;
mod tasks;

use serde::Serialize;
use temponet_sim::Metrics;
use temponet_sim::labels;
use temponet_task::{TaskId, TaskSet};
use temponet_wording::counted;

use crate::comparison::{Comparison, ComparisonRow, picture_window};
use crate::gantt::MOST_TASK_ROWS;
use crate::stats::percent;
use crate::what_if::WhatToChange;
use schedules::SchedulesJson;
use temponet_page::fragment::{folded, skipped};
use temponet_page::{HtmlCell, HtmlTable, Page, printable, svg};

/// Rules of the page beside those of every page.
pub const STYLE: &str = include_str!("report.css");
/// The box with the schedules, their tools and their legend.
pub const SCHEDULES: &str = include_str!("schedules.html");
/// Scripts that draw the data of a page, in the order in which they run. Their function `start` takes the data.
pub const SCRIPTS: [&str; 4] = [
    include_str!("schedules.js"),
    include_str!("parting.js"),
    include_str!("toolbar.js"),
    include_str!("responses.js"),
];
/// What a page with one comparison does with its data.
const START: &str = "start(JSON.parse(document.getElementById(\"data\").textContent));\n";

/// Greatest number of jobs in the schedules of a page, approximately and per scheduler.
pub const MOST_JOBS: f64 = 600.0;
/// Approximate number of jobs that are legible without zooming.
const FIRST_VIEW_JOBS: f64 = 60.0;
/// What the curves of response times show.
pub const RESPONSES_HINT: &str =
    "Share of all jobs that completed within a time. A curve that stays below 100% never completed the rest.";
/// Number of steps of a distribution of response times.
const QUANTILES: usize = 60;
/// Number of distributions that are drawn when the page opens.
const FIRST_CURVES: usize = 5;

#[derive(Serialize)]
struct PageData<'a> {
    tasks: Vec<String>,
    critical: Vec<u8>,
    cores: usize,
    /// Labels of the cores.
    core_names: Vec<String>,
    until_ns: u64,
    /// Begin and end of the time axis when the page opens.
    first_view_ns: [u64; 2],
    /// Shortest time for which two schedules must run different jobs to part.
    least_difference_ns: u64,
    by_task: bool,
    /// Indices of the tasks that each task comes after; empty if no task does.
    after: Vec<Vec<u32>>,
    /// Names of the resources that tasks share.
    resources: Vec<String>,
    #[serde(flatten)]
    schedules: SchedulesJson,
    /// Indices of the schedules that are shown when the page opens.
    chosen: Vec<usize>,
    responses: Vec<ResponseCurve<'a>>,
}

/// Distribution of response times over all jobs. Jobs that never complete keep it below one.
#[derive(Serialize)]
struct ResponseCurve<'a> {
    name: &'a str,
    shown: bool,
    /// Share of jobs that completed, 0 to 1.
    completed: f64,
    /// Quantiles of the response times of completed jobs, in nanoseconds, at even steps.
    ns: Vec<i64>,
}

/// A section of a page.
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// What stands above it, in small print.
    pub hint: String,
    /// Trusted HTML.
    pub html: String,
}

/// Returns the page of a comparison.
pub fn html(comparison: &Comparison) -> String {
    html_with(comparison, &[])
}

/// What a page says and shows of a comparison, piece by piece.
#[derive(Serialize)]
pub struct Parts {
    /// How the figures were obtained.
    pub facts: String,
    /// The conclusion, after a warning where there is one.
    pub verdict: String,
    /// The few numbers that matter, each with what it is.
    pub numbers: Vec<(String, String)>,
    /// What the table of schedulers shows.
    pub ranking_hint: String,
    /// The table of schedulers, and those that were left out, as HTML.
    pub ranking: String,
    /// The table of tasks by schedulers, as HTML.
    pub tasks: String,
    /// The table of chains, as HTML; empty without chains.
    pub chains: String,
    /// The table of response times, as HTML.
    pub responses: String,
    /// Schedules and response times for the scripts of a page, as JSON.
    #[serde(skip)]
    pub data: String,
}

impl Parts {
    /// Returns the parts of a comparison.
    pub fn of(comparison: &Comparison) -> Parts {
        let (plan, set) = (&comparison.plan, &comparison.plan.set);
        let facts = format!(
            "{} tasks · {} · load {:.2}{} · horizon {} · {} · on a miss: {}",
            set.task_count(),
            labels::machine(set),
            set.mean_utilization() / set.capacity(),
            if set.machine().is_full_speed() { " per core" } else { " of the total speed" },
            plan.horizon,
            if plan.runs == 1 { "1 run".into() } else { format!("{} runs from seed {}", plan.runs, plan.seed) },
            set.on_miss().name()
        );
        let advice = comparison.advice();
        let verdict: String =
            advice.warning.iter().map(|warning| format!("{warning} ")).chain([advice.verdict()]).collect();
        Parts {
            facts,
            verdict,
            numbers: lead::numbers(comparison),
            ranking_hint: ranked_table::hint(comparison),
            ranking: ranked_table::html(comparison) + &not_for_this_set(comparison),
            tasks: tasks::html(comparison),
            chains: if set.chains().is_empty() { String::new() } else { chains::html(comparison) },
            responses: response_table(comparison),
            data: data(comparison, true),
        }
    }
}

/// Returns the schedules and response times for the scripts of a page as JSON. Response times take longer than all else,
/// and can be left out.
pub fn data(comparison: &Comparison, with_responses: bool) -> String {
    let plan = &comparison.plan;
    let set = &plan.set;
    let schedules = schedules::schedules(comparison);
    let chosen = first_chosen(comparison, schedules.schedules.len());
    let parting = match chosen[..] {
        [first, second, ..] => lead::parting(comparison, first, second),
        _ => None,
    };
    let (rows, whole_tasks) = (schedules::task_rows(set), || set.whole_tasks().map(|task| &set.tasks()[task]));
    let after = |task: TaskId| set.tasks()[set.first_part(task)].after.iter().map(|before| rows[*before]).collect();
    let curves = comparison.rows.iter().enumerate().map(|(rank, row)| curve(rank, row, comparison));
    let data = PageData {
        tasks: whole_tasks().map(|task| printable(&task.name)).collect(),
        critical: whole_tasks().map(tasks::criticality).collect(),
        cores: set.cores(),
        core_names: set.core_ids().map(|core| printable(&labels::core(set, core))).collect(),
        until_ns: plan.record_until.0,
        first_view_ns: first_view(comparison, parting.as_ref()),
        least_difference_ns: lead::least_difference(comparison).0,
        by_task: set.task_count() <= MOST_TASK_ROWS,
        after: if set.has_precedence() { set.whole_tasks().map(after).collect() } else { Vec::new() },
        resources: set.resources().iter().map(|name| printable(name)).collect(),
        chosen,
        schedules,
        responses: if with_responses { curves.collect() } else { Vec::new() },
    };
    serde_json::to_string(&data).unwrap_or_default()
}

/// Returns the page of a comparison with further sections, which stand after the table of schedulers.
pub fn html_with(comparison: &Comparison, further: &[Section]) -> String {
    let set = &comparison.plan.set;
    let parts = Parts::of(comparison);
    let [schedules_script, parting_script, toolbar_script, responses_script] = SCRIPTS;
    let premise = match (set.has_precedence(), set.has_sections()) {
        (true, false) => "Tasks share no resources.".into(),
        (false, false) => "Tasks are independent: no shared resources, no precedence.".into(),
        (_, true) => format!("Tasks share resources; the protocol is {}.", set.protocol().name()),
    };
    let mut page = Page::new(&set.name)
        .style(STYLE)
        .lead(&set.description)
        .facts(&parts.facts)
        .verdict(&parts.verdict)
        .numbers(&parts.numbers)
        .section("Two schedules", "", SCHEDULES)
        .section("Schedulers", &parts.ranking_hint, &parts.ranking);
    for Section { heading, hint, html } in further {
        page = page.section(heading, hint, html);
    }
    page = page.section("Tasks", tasks::HINT, &parts.tasks);
    let page = if parts.chains.is_empty() { page } else { page.section("Chains", chains::HINT, &parts.chains) };
    page.section("Response times", RESPONSES_HINT, &format!("<div id=\"responses\"></div>\n{}", parts.responses))
        .section("What to change", "", &what_to_change(set))
        .html(&format!("<p class=\"facts\">{premise}</p>\n"))
        .data(&parts.data)
        .script(&(svg::script() + schedules_script))
        .script(parting_script)
        .script(toolbar_script)
        .script(&(responses_script.to_string() + START))
        .finish()
}

/// Greatest number of tasks for which the page says what to change; of larger sets the analysis takes its time.
const MOST_CHANGED: usize = 200;

fn what_to_change(set: &TaskSet) -> String {
    match set.tasks().len() <= MOST_CHANGED {
        true => WhatToChange::on(set).html(),
        false => "<p>The set is large; <code>temponet analyze --what-if</code> says what to change.</p>\n".into(),
    }
}

/// Lists the schedulers that do not apply to the set, folded.
fn not_for_this_set(comparison: &Comparison) -> String {
    match comparison.skipped.len() {
        0 => String::new(),
        count => {
            let summary = format!("{} left out, with the reasons", counted(count, "scheduler"));
            folded(&summary, &skipped(&comparison.skipped))
        }
    }
}

/// Returns the schedules that are shown when the page opens: those of the recommended scheduler and of EDF, or of the
/// best other one. If these are the same, the first that differs is shown.
fn first_chosen(comparison: &Comparison, count: usize) -> Vec<usize> {
    let Some(other) = lead::other_than(comparison, 0) else { return (0..count.min(1)).collect() };
    let differs = |place: &usize| lead::parting(comparison, 0, *place).is_some();
    let different = [other].into_iter().chain(1..comparison.rows.len()).find(differs);
    vec![0, different.unwrap_or(other)]
}

/// Returns the part of the time axis that is shown when the page opens: where the two schedules part, and the first job
/// that only one of them misses, if that is not too far away.
fn first_view(comparison: &Comparison, parting: Option<&lead::Parting>) -> [u64; 2] {
    let plan = &comparison.plan;
    let span = picture_window(&plan.set, plan.record_until, FIRST_VIEW_JOBS).0;
    let Some(parting) = parting else { return [0, span] };
    let from = parting.at.0.saturating_sub(span / 6);
    let needed = (parting.shows.0 - parting.at.0) * 5 / 4 + span / 6;
    let span = if needed <= 3 * span { span.max(needed) } else { span };
    let from = from.min(plan.record_until.0.saturating_sub(span));
    [from, (from + span).min(plan.record_until.0)]
}

/// Returns the distribution of a scheduler. Those of the best schedulers and of EDF are drawn when the page opens.
fn curve<'a>(rank: usize, row: &'a ComparisonRow, comparison: &Comparison) -> ResponseCurve<'a> {
    let edf = comparison.rows.iter().position(ComparisonRow::is_baseline);
    let others = if edf.is_some_and(|edf| edf >= FIRST_CURVES) { FIRST_CURVES - 1 } else { FIRST_CURVES };
    let quantile = |step: usize| row.metrics.response_completed.quantile(step as f64 / QUANTILES as f64);
    ResponseCurve {
        name: &row.scheduler,
        shown: rank < others || Some(rank) == edf,
        completed: completed(&row.metrics),
        ns: (0..=QUANTILES).filter_map(quantile).collect(),
    }
}

/// Returns the share of jobs that completed, in time or not.
fn completed(metrics: &Metrics) -> f64 {
    let completed = metrics.tasks.iter().map(|task| task.completed).sum::<u64>();
    completed as f64 / metrics.jobs.released.max(1) as f64
}

/// Returns the distributions as a table.
fn response_table(comparison: &Comparison) -> String {
    let mut table = HtmlTable::sortable().columns(&["scheduler", "completed", "median", "p95", "p99", "longest"]);
    for row in &comparison.rows {
        let share = completed(&row.metrics);
        let mut cells = vec![HtmlCell::text(&row.scheduler), HtmlCell::figure(percent(share), Some(share))];
        cells.extend([0.5, 0.95, 0.99, 1.0].map(|at| {
            let ns = row.metrics.response_completed.quantile(at).map(|ns| ns as f64);
            HtmlCell::figure(ranked_table::time(ns), ns)
        }));
        table.row("", &cells);
    }
    folded("Response times of completed jobs as a table", &table.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{ComparisonPlan, compare};
    use crate::progress::Progress;
    use crate::roster::Roster;
    use temponet_task::{Task, Time};

    fn page_of(tasks: Vec<Task>, schedulers: &[&str], oracle: Option<f64>) -> (Comparison, String) {
        page_of_set(TaskSet::new("<set>", tasks, 1), schedulers, oracle)
    }

    fn page_of_set(set: TaskSet, schedulers: &[&str], oracle: Option<f64>) -> (Comparison, String) {
        let horizon = Time::from_ms(100);
        let plan = ComparisonPlan {
            goal: set.goal().clone(),
            set,
            horizon,
            seed: 0,
            runs: 1,
            schedulers: schedulers.iter().map(|name| name.to_string()).collect(),
            roster: Roster::classical(),
            latency: false,
            charge_latency: false,
            record_until: horizon,
            oracle,
        };
        let comparison = compare(plan, &Progress::new(1, horizon)).unwrap();
        let page = html(&comparison);
        (comparison, page)
    }

    fn data(page: &str) -> serde_json::Value {
        let from = page.split("type=\"application/json\">").nth(1).unwrap();
        serde_json::from_str(from.split("</script>").next().unwrap()).unwrap()
    }

    fn overload() -> Vec<Task> {
        let ms = Time::from_ms;
        vec![Task::periodic("a", ms(10), ms(6)), Task::periodic("b", ms(20), ms(12))]
    }

    #[test]
    fn the_page_is_self_contained_and_cannot_be_broken_by_names() {
        let name = "</script><!--<script>\u{1}";
        let tasks = vec![Task::periodic(name, Time::from_ms(10), Time::from_ms(12))];
        let (_, page) = page_of(tasks, &["edf"], Some(1.0));
        assert_eq!(page.matches("</script>").count(), 6, "the data, the common script and four of the page");
        assert!(page.contains("&lt;set&gt;") && !page.contains("<!--<script>") && !page.contains('\u{1}'));
        for outside in ["http://", "https://", "src=", "href="] {
            assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
        }
        let data = data(&page);
        assert_eq!(data["tasks"][0], name.replace('\u{1}', "\u{fffd}"));
        assert_eq!(data["reasons"][1], "aborted at its deadline with {} done");
        assert_eq!(data["schedules"][0]["missed"].as_array().unwrap().len(), 4 * 10, "every job, with what was done");
        assert_eq!(data["whys"], serde_json::json!(["late by wcet at its release"]));
    }

    #[test]
    fn two_schedules_and_five_curves_are_shown_at_first_not_all() {
        let names = ["edf", "rm", "llf", "srpt", "fcfs", "mh-edf", "edf-skip", "dm"];
        let (comparison, page) = page_of(overload(), &names, Some(1.0));
        let data = data(&page);
        let chosen: Vec<&str> = data["chosen"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| at.as_u64().unwrap() as usize)
            .map(|at| data["schedules"][at]["name"].as_str().unwrap())
            .collect();
        let best = comparison.rows[0].scheduler.as_str();
        let second = if best == "edf" { chosen[1] } else { "edf" };
        assert_eq!(chosen, [best, second]);
        assert_eq!(data["least_difference_ns"], 1);
        let shown: Vec<&serde_json::Value> =
            data["responses"].as_array().unwrap().iter().filter(|curve| curve["shown"] == true).collect();
        assert_eq!(shown.len(), FIRST_CURVES);
        assert!(shown.iter().any(|curve| curve["name"] == "edf"));
        let (_, alone) = page_of(overload(), &["edf"], None);
        assert_eq!(self::data(&alone)["chosen"], serde_json::json!([0]));
    }

    #[test]
    fn the_page_leads_with_the_answer_and_folds_what_is_long() {
        let names =
            ["edf", "rm", "llf", "srpt", "fcfs", "mh-edf", "edf-skip", "dm", "edzl", "red", "lbesa", "dasa", "muf"];
        let (comparison, page) = page_of(overload(), &names, Some(1.0));
        let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words} is missing"));
        let order = ["class=\"verdict\"", "class=\"numbers\"", ">Two schedules<", ">Schedulers<", ">Tasks<"];
        assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])));
        assert!(place(">Response times<") < place(">What to change<"));
        let numbers = page.split("class=\"numbers\"").nth(1).unwrap().split("</ul>").next().unwrap();
        assert_eq!(numbers.matches("<li>").count(), 4, "{numbers}");
        let rows = |id: &str| {
            let table = page.split(&format!("id=\"{id}\"")).nth(1).unwrap();
            table.split("</table>").next().unwrap().split("class=\"rows\"").nth(1).unwrap().matches("<tr").count()
        };
        assert_eq!((rows("ranking"), rows("ranking-rest")), (10, comparison.rows.len() - 10));
        assert!(page.contains("<summary>3 more schedulers: "));
    }

    #[test]
    fn a_chain_has_one_row_and_its_schedulers_are_folded() {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("a", ms(10), ms(3)), Task::periodic("b", ms(10), ms(3))];
        tasks[1].after = vec![TaskId(0)];
        let mut set = TaskSet::new("s", tasks, 1);
        set.system.follow_sources().unwrap();
        let communication = temponet_task::Communication::Implicit;
        let (name, tasks, deadline) = ("k".into(), vec![TaskId(0), TaskId(1)], Some(ms(9)));
        set.system.set_chains(vec![temponet_task::Chain { name, tasks, deadline, communication }]);
        let (_, page) = page_of_set(set, &["edf", "rm", "fcfs"], None);
        let table = page.split("id=\"chains\"").nth(1).unwrap().split("</table>").next().unwrap();
        assert_eq!(table.split("class=\"rows\"").nth(1).unwrap().matches("<tr").count(), 1);
        assert!(page.contains("<summary>k under every scheduler</summary>"));
    }

    #[test]
    fn a_heat_map_in_which_all_is_met_has_no_scale_from_100_to_100() {
        let mut task = Task::periodic("gpu", Time::from_ms(10), Time::from_ms(2));
        task.preemption = temponet_task::Preemption::None;
        let (_, page) = page_of(vec![task], &["edf"], None);
        assert!(page.contains("Every job is in time.") && !page.contains("100% met"));
        assert!(page.contains("gpu <span class=\"limit\">not preempted</span>"), "not as if it were part of the name");
        let (_, page) = page_of(overload(), &["edf"], None);
        assert!(page.contains("100% met"));
    }

    #[test]
    fn a_bound_is_marked_as_one_unless_a_scheduler_reaches_it() {
        let ms = Time::from_ms;
        let page = |deadline: u64| {
            let mut tasks = vec![Task::periodic("a", ms(10), ms(3)), Task::periodic("b", ms(10), ms(3))];
            tasks[1].after = vec![TaskId(0)];
            let mut set = TaskSet::new("s", tasks, 1);
            set.system.follow_sources().unwrap();
            let communication = temponet_task::Communication::Implicit;
            let (name, tasks, deadline) = ("k".into(), vec![TaskId(0), TaskId(1)], Some(ms(deadline)));
            set.system.set_chains(vec![temponet_task::Chain { name, tasks, deadline, communication }]);
            page_of_set(set, &["edf"], Some(1.0)).1
        };
        let hopeless = page(5);
        assert!(hopeless.contains("clairvoyant bound") && hopeless.contains("≤ 100.00%"), "{hopeless}");
        assert!(hopeless.contains("≥ 100.00%") && hopeless.contains("≥ 0"));
        let met = page(6);
        assert!(met.contains("clairvoyant optimum") && !met.contains('≤') && !met.contains('≥'), "{met}");
    }

    #[test]
    fn the_page_is_accessible_by_keyboard_and_without_pictures() {
        let (_, page) = page_of(overload(), &["edf", "rm"], None);
        for part in ["aria-sort=\"none\"", "<table id=\"ranking\"", "<table id=\"tasks\"", "aria-live", "Arrow"] {
            assert!(page.contains(part), "{part}");
        }
    }
}
