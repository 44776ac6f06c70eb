//! The page of advice on settings: the lines, and for each line its settings task by task.

use temponet_page::fragment::folded;
use temponet_page::{HtmlCell, HtmlTable, Page};
use temponet_sim::labels;

use super::advice::{Line, SettingsAdvice};
use crate::stats::percent;

/// Returns the page.
pub fn html(advice: &SettingsAdvice) -> String {
    let plan = &advice.plan;
    let jobs =
        advice.lines.iter().filter_map(|line| line.simulated.as_ref()).map(|runs| runs.metrics.jobs.released).max();
    let facts = format!(
        "{} on {}; horizon {}, seed {}, {} jobs simulated for each line.",
        temponet_wording::counted(plan.set.tasks().len(), "task"),
        labels::machine(&plan.set),
        plan.horizon,
        plan.seed,
        temponet_wording::grouped(jobs.unwrap_or(0)),
    );
    let hint = "Proved lines first, those with most room before others; then by the goal in simulation. Growth: the factor on \
        all execution times up to which every deadline is still proved.";
    let mut page = Page::new(&plan.set.name)
        .kind("settings of Linux")
        .facts(&facts)
        .verdict(&advice.verdict())
        .section("What can be done", hint, &lines(advice));
    for note in &advice.notes {
        page = page.facts(note);
    }
    let mut details = String::new();
    for line in advice.lines.iter().filter(|line| line.settings().is_some()) {
        details += &folded(&line.name, &threads(advice, line));
    }
    page.section("Settings", "The settings of each thread, and what is proved and simulated of it.", &details).finish()
}

fn lines(advice: &SettingsAdvice) -> String {
    let mut table = HtmlTable::sortable().columns(&[
        "line",
        "verdict",
        "tasks proved",
        "growth",
        "met",
        "±95%",
        "against today",
        "what changes",
    ]);
    for line in &advice.lines {
        let claim = advice.against_today(line);
        let words = claim.as_ref().map_or("–".into(), |claim| {
            let sign = if claim.edge.difference < 0.0 { "−" } else { "+" };
            format!("{sign}{}", claim.points(&advice.goal))
        });
        let mut notes = line.notes.join("; ");
        if !notes.is_empty() {
            notes = format!("; {notes}");
        }
        table.row(
            if line.is_today { "best" } else { "" },
            &[
                HtmlCell::text(&line.name),
                HtmlCell::text(line.verdict().name()).class("words"),
                HtmlCell::figure(line.proved_tasks().to_string(), Some(line.proved_tasks() as f64)),
                HtmlCell::figure(line.growth.map_or("–".into(), |growth| format!("{growth:.2}")), line.growth),
                HtmlCell::figure(line.share().map_or("–".into(), percent), line.share()),
                HtmlCell::figure(line.margin().map_or("–".into(), percent), line.margin()),
                HtmlCell::figure(words, claim.map(|claim| claim.edge.difference)),
                HtmlCell::text(format!("{}{notes}", line.changes())).class("words"),
            ],
        );
    }
    table.finish()
}

fn threads(advice: &SettingsAdvice, line: &Line) -> String {
    let set = &advice.plan.set;
    let mut table = HtmlTable::sortable().columns(&[
        "task",
        "today",
        "setting",
        "processors",
        "deadline",
        "response at most",
        "by",
        "met",
    ]);
    let Some(settings) = line.settings() else { return String::new() };
    for (id, task) in set.task_ids().zip(set.tasks()) {
        let (today, thread) = (&advice.today.threads[id.index()], &settings.threads[id.index()]);
        let bound = line.bounds[id.index()];
        let jobs = line.simulated.as_ref().map(|runs| runs.metrics.tasks[id.index()].jobs.compliance());
        let figure = |ns: Option<u64>, words: Option<String>| {
            HtmlCell::figure(words.unwrap_or("–".into()), ns.map(|ns| ns as f64))
        };
        table.row(
            "",
            &[
                HtmlCell::text(&task.name),
                HtmlCell::text(today.policy.to_string()).class("words"),
                HtmlCell::text(thread.policy.to_string()).class("words"),
                HtmlCell::text(super::advice::processors(set, thread)).class("words"),
                figure(Some(task.deadline.0), Some(task.deadline.to_string())),
                figure(bound.map(|bound| bound.response.0), bound.map(|bound| bound.response.to_string())),
                HtmlCell::text(bound.map_or("", |bound| bound.by)).class("words"),
                HtmlCell::figure(jobs.map_or("–".into(), percent), jobs),
            ],
        );
    }
    table.finish()
}
