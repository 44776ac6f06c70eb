//! Tasks by schedulers: the share of deadlines met, as a heat map. It is an HTML table, so it can be sorted and read
//! aloud.

use temponet_task::{Arrival, Task, TaskId};

use temponet_sched::shield::Role;

use crate::comparison::Comparison;
use crate::gantt::limits;
use temponet_page::colours::LEVELS;
use temponet_page::{HtmlCell, HtmlTable, escape};

/// Greatest number of rows of the table.
const MOST_TASKS: usize = 200;

pub(super) const HINT: &str = "Deadlines met in per cent, task by task, schedulers from the best on the left. The brighter a cell, the more is missed. \
    A header sorts the tasks.";

/// Returns the greatest criticality of a task's jobs.
pub(super) fn criticality(task: &Task) -> u8 {
    match &task.arrival {
        Arrival::Listed(jobs) => jobs.iter().map(|job| job.criticality).max().unwrap_or(0),
        _ => task.criticality,
    }
}

/// Returns the share of a task's deadlines met under each scheduler; `None` if none of its jobs counts.
fn shares(comparison: &Comparison, task: TaskId) -> Vec<Option<f64>> {
    let jobs = comparison.rows.iter().map(|row| row.metrics.tasks[task].jobs);
    jobs.map(|jobs| (jobs.released > 0).then(|| jobs.compliance())).collect()
}

/// Returns the mark of a task that the shield guarantees; an empty string for other tasks.
fn guarantee_mark(comparison: &Comparison, task: TaskId) -> String {
    let by = match &comparison.shield {
        Some(Role::StealsSlack(guarantee)) => guarantee.core_of(task).map(|core| format!("core {core} keeps the time")),
        Some(Role::StandIn(name)) => Some(format!("{name} decides")),
        _ => None,
    };
    by.map_or(String::new(), |by| {
        let title = format!("guaranteed behind the shield: {by}");
        format!(
            " <span class=\"guaranteed\" title=\"{title}\">{GUARANTEED}<span class=\"quiet\"> guaranteed</span></span>"
        )
    })
}

/// Mark of a guaranteed task.
const GUARANTEED: &str = "◆";

/// Formats a share in percent with one decimal; only a share of 1 reads as 100.
fn figure(share: f64) -> String {
    if share >= 1.0 {
        return "100".into();
    }
    format!("{:.1}", (share * 1000.0).round().min(999.0) / 10.0)
}

pub(super) fn html(comparison: &Comparison) -> String {
    let set = &comparison.plan.set;
    let all: Vec<Vec<Option<f64>>> = set.task_ids().map(|task| shares(comparison, task)).collect();
    let least = all.iter().flatten().flatten().copied().fold(1.0, f64::min);
    let level = |share: f64| {
        let missed = if least < 1.0 { (1.0 - share) / (1.0 - least) } else { 0.0 };
        // A task with any miss has a different color from one without.
        ((missed * LEVELS as f64).round() as usize).max(usize::from(share < 1.0)).min(LEVELS)
    };
    let mut order: Vec<TaskId> = set.whole_tasks().collect();
    let mut table = HtmlTable::sortable().id("tasks");
    if order.len() > MOST_TASKS {
        // The worst tasks come first, because a long list is cut.
        let worst = |task: &TaskId| all[*task].iter().flatten().copied().fold(1.0, f64::min);
        order.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        order.truncate(MOST_TASKS);
        table = table.caption(&format!("the {MOST_TASKS} worst of {} tasks", set.task_count()));
    }
    table.column("task", "", "");
    comparison.rows.iter().for_each(|row| table.column(&row.scheduler, "", "up"));
    for task in order {
        let name = escape(&set.tasks()[task].name);
        let mark = match criticality(&set.tasks()[task]) {
            0 => String::new(),
            of => format!(
                " <span class=\"critical\" title=\"criticality {of}\">▲{of}<span class=\"quiet\"> critical</span></span>"
            ),
        };
        let limit = limits(set, task).map(|limit| format!(" <span class=\"limit\">{}</span>", escape(&limit)));
        let name = name + &mark + &guarantee_mark(comparison, task) + &limit.unwrap_or_default();
        let mut cells = vec![HtmlCell::html(name, None)];
        cells.extend(all[task].iter().map(|share| match share {
            Some(share) => HtmlCell::text(figure(*share)).class(format!("q{}", level(*share))),
            None => HtmlCell::text("–"),
        }));
        table.row("", &cells);
    }
    let steps: String = (0..=LEVELS).map(|step| format!("<b class=\"q{step}\"></b>")).collect();
    let critical =
        if set.has_critical_tasks() { "<span class=\"critical\">▲</span> critical task, with its level" } else { "" };
    let guaranteed = if set.task_ids().any(|task| !guarantee_mark(comparison, task).is_empty()) {
        format!(" <span class=\"guaranteed\">{GUARANTEED}</span> guaranteed behind the shield")
    } else {
        String::new()
    };
    let scale = match least < 1.0 {
        true => format!("100% met <i aria-hidden=\"true\">{steps}</i> {}% met", figure(least)),
        false => "Every job is in time.".into(),
    };
    format!("<p class=\"scale\">{scale} {critical}{guaranteed}</p>\n<div class=\"heat\">{}</div>\n", table.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_less_than_everything_never_reads_as_100() {
        assert_eq!([figure(1.0), figure(0.99999), figure(0.5), figure(0.0)], ["100", "99.9", "50.0", "0.0"]);
    }
}
