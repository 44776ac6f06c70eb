//! What can be proved of a set, as parts of a page and as what `temponet analyze --json` prints.

use serde_json::{Value, json};
use temponet_analysis::{PriorityRule, ResponseTimes};
use temponet_lab::analysis::{Analysis, json::report};
use temponet_lab::guarantee::{Guaranteed, KeptCore};
use temponet_lab::what_if::WhatToChange;
use temponet_page::fragment::scrolling;
use temponet_page::{HtmlCell, HtmlTable, escape};
use temponet_task::{CoreId, TaskId, Time};
use temponet_wording::listed;

use crate::Failure;
use crate::request::Set;

/// Analyzes a set. Overload is not simulated: the curve shows it.
pub fn analyze(set: &Set) -> Result<Value, Failure> {
    let analysis = Analysis::of(set.load()?.set, None);
    let what_if = WhatToChange::on(&analysis.set);
    let shield = shield(&Guaranteed::on(&analysis.set));
    let html = tests(&analysis) + &proofs(&analysis) + &response_times(&analysis) + &shield;
    Ok(json!({
        "verdict": analysis.verdict(),
        "html": html,
        "changes": what_if.html(),
        "report": report(&analysis, &[], Some(&what_if)),
    }))
}

fn words(text: impl AsRef<str>) -> HtmlCell {
    HtmlCell::text(text).class("words")
}

/// Returns a table with a caption; nothing if it has no rows.
fn table(caption: &str, header: &[&str], rows: Vec<Vec<HtmlCell>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = HtmlTable::new().caption(caption).columns(header);
    rows.iter().for_each(|row| table.row("", row));
    scrolling(&table.finish())
}

fn tests(analysis: &Analysis) -> String {
    let row = |(test, outcome): &(&temponet_analysis::Test, temponet_analysis::Outcome)| {
        let kind = if test.is_exact { "exact" } else { "sufficient" };
        vec![words(test.name), words(test.scheduler), words(kind), words(outcome.to_string())]
    };
    table("Tests", &["test", "for", "kind", "result"], analysis.tests.iter().map(row).collect())
}

fn proofs(analysis: &Analysis) -> String {
    let proved = analysis.proofs.iter().map(|proof| vec![words(proof.scheduler), words(&proof.by)]);
    let scaled = analysis.scalings.iter().map(|scaling| {
        let factor = HtmlCell::figure(format!("{:.4}", scaling.factor), Some(scaling.factor));
        vec![words(scaling.scheduler), words(&scaling.by), factor]
    });
    table("Proved to meet every deadline", &["scheduler", "by"], proved.collect())
        + &table("Proved up to", &["scheduler", "by", "times the wcets"], scaled.collect())
}

fn response_times(analysis: &Analysis) -> String {
    if analysis.responses.is_empty() {
        return String::new();
    }
    let set = &analysis.set;
    let rules = analysis.responses.iter().map(|(rule, _)| format!("under {}", rule.scheduler()));
    let header: Vec<String> = ["task", "wcet", "deadline"].map(String::from).into_iter().chain(rules).collect();
    let time = |time: Time| HtmlCell::figure(time.to_string(), Some(time.0 as f64));
    let row = |index: TaskId| {
        let task = &set.tasks()[index];
        let wcet = set.parts(index).map(|part| set.tasks()[part].wcet).fold(Time::ZERO, |sum, wcet| sum + wcet);
        let bound = |(_, responses): &(PriorityRule, ResponseTimes)| match responses.bounds[index.index()] {
            Some(bound) if bound > task.deadline => time(bound).class("worse"),
            Some(bound) => time(bound),
            None => HtmlCell::text("–"),
        };
        let own = [HtmlCell::text(&task.name), time(wcet), time(task.deadline)];
        own.into_iter().chain(analysis.responses.iter().map(bound)).collect()
    };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table("Response times at most", &header, set.whole_tasks().map(row).collect())
}

/// Greatest number of tasks that are named for a core or a reason.
const MOST_NAMES: usize = 8;

/// Says what the shield guarantees, on which cores it keeps time for that, and why it does not guarantee the rest.
fn shield(guaranteed: &Guaranteed<'_>) -> String {
    let own = format!("The shield {}.", guaranteed.sentence());
    let sentences = std::iter::once(own).chain(guaranteed.exceptions());
    let html: String = sentences.map(|sentence| format!("<p>{}</p>\n", escape(&sentence))).collect();
    let Some(guarantee) = guaranteed.role().guarantee() else { return html };
    let row = |kept: KeptCore| {
        let tasks = guarantee.tasks().filter(|(_, core)| *core == Ok(CoreId::new(kept.core))).map(|(name, _)| name);
        vec![
            words(listed(tasks, MOST_NAMES)),
            HtmlCell::text(kept.core.to_string()),
            HtmlCell::figure(format!("{:.4}", kept.utilization), Some(kept.utilization)),
            HtmlCell::figure(kept.growth.map_or("–".into(), |factor| format!("{factor:.3}")), kept.growth),
        ]
    };
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, reason) in guaranteed.not_guaranteed() {
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    let others = by_reason.into_iter().map(|(why, names)| vec![words(listed(names, MOST_NAMES)), words(why)]);
    let header = ["tasks", "core", "utilization", "times the wcets"];
    html + &table("Guaranteed by the shield", &header, guaranteed.cores().into_iter().map(row).collect())
        + &table("Not guaranteed", &["tasks", "why"], others.collect())
}
