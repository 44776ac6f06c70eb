//! Findings as a self-contained HTML page, and their figures as a text table.

use std::fmt::Write;

use super::findings::words;
use super::{Findings, Line, Verdict};
use temponet_page::{HtmlCell, HtmlTable, Page, escape};

/// Renders findings as an HTML page with an overview and one section for each experiment.
pub fn html(all: &[Findings]) -> String {
    let quick = all.iter().any(Findings::is_quick);
    let mode = if quick { "A quick run: what is mere noise is marked." } else { "A full run." };
    let facts =
        format!("{mode} Ours is the mean with its 95% interval; σ is the standard deviation over n sets or seeds.");
    let mut overview = HtmlTable::new().columns(&["experiment", "verdict", "in one sentence"]);
    for findings in all {
        let id = escape(&findings.id);
        let link = format!("<a href=\"#{id}\">{id}</a> {}", escape(&findings.title));
        let (verdict, sentence) = (HtmlCell::text(findings.verdict.name()), HtmlCell::text(&findings.sentence));
        overview.row(
            "",
            &[
                HtmlCell::html(link, None).class("words"),
                verdict.class(class(findings.verdict)),
                sentence.class("words"),
            ],
        );
    }
    let mut out = String::new();
    all.iter().for_each(|findings| section(&mut out, findings));
    Page::new("The paper's experiments").facts(&facts).section("", "", &overview.finish()).html(&out).finish()
}

/// Largest number of figures that are shown at once. More are folded away below the tables, which then have them in
/// short.
const MOST_OPEN: usize = 80;

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Better => "better",
        Verdict::Worse | Verdict::Refuted | Verdict::Impossible => "worse",
        Verdict::Undecided | Verdict::NoFigure => "not",
    }
}

fn section(out: &mut String, findings: &Findings) {
    let _ = writeln!(
        out,
        "<section id=\"{id}\"><h2>{id} · {}</h2>\n<p><strong>The paper:</strong> {}</p>\n<p><strong>Here:</strong> {}</p>\n\
         <p class=\"verdict {}\">{}</p>",
        escape(&findings.title),
        escape(&findings.claim),
        escape(&findings.reading),
        class(findings.verdict),
        escape(&findings.sentence),
        id = escape(&findings.id),
    );
    let (header, rows) = figures(findings);
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = HtmlTable::new().columns(&header);
    for (line, row) in findings.lines.iter().zip(&rows) {
        let last = row.len().saturating_sub(1);
        let cell = |(at, words): (usize, &String)| {
            if at == last { HtmlCell::text(words).class("noise") } else { HtmlCell::text(words) }
        };
        let class = if line.is_headline && line.paper.is_some() { "headline" } else { "" };
        table.row(class, &row.iter().enumerate().map(cell).collect::<Vec<HtmlCell>>());
    }
    let (is_long, figures) = (rows.len() > MOST_OPEN, table.finish());
    if !rows.is_empty() && !is_long {
        out.push_str(&figures);
    }
    for table in &findings.tables {
        let header: Vec<&str> = table.header.iter().map(String::as_str).collect();
        let mut shown = HtmlTable::new().columns(&header);
        table.rows.iter().for_each(|row| shown.row("", &row.iter().map(HtmlCell::text).collect::<Vec<HtmlCell>>()));
        let _ = writeln!(out, "<h3>{}</h3>{}", escape(&table.title), shown.finish());
    }
    for picture in &findings.pictures {
        let _ = writeln!(
            out,
            "<figure><h3>{}</h3>\n<div class=\"scroll\">{}</div><figcaption>{}</figcaption></figure>",
            escape(&picture.title),
            picture.svg,
            escape(&picture.caption)
        );
    }
    if is_long {
        let _ = writeln!(out, "<details><summary>All {} figures</summary>{figures}</details>", rows.len());
    }
    if !findings.notes.is_empty() {
        let notes: String = findings.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
        let _ = writeln!(out, "<ul class=\"skipped\">{notes}</ul>");
    }
    let _ = writeln!(
        out,
        "<details><summary>Protocol ({} settings, {:.1} s)</summary><pre>{}</pre></details></section>",
        escape(&findings.mode),
        findings.seconds,
        escape(&findings.protocol)
    );
}

/// Returns the figures as a table: header and rows. Every reference has a column; the last column states why a figure
/// carries little evidence.
pub fn figures(findings: &Findings) -> (Vec<String>, Vec<Vec<String>>) {
    let mut columns: Vec<&str> = Vec::new();
    for reference in findings.lines.iter().flat_map(|line| &line.references) {
        if !columns.contains(&reference.column.as_str()) {
            columns.push(&reference.column);
        }
    }
    let header = ["figure", "ours", "±95%", "σ", "n", "paper"].into_iter().chain(columns.iter().copied()).chain([""]);
    let row = |line: &Line| {
        let unit = line.unit;
        let width = |value: Option<f64>| value.map_or("–".into(), |value| unit.show_width(value));
        let mut cells = vec![
            words(&line.name),
            unit.show(line.ours.mean),
            width(line.ours.ci95),
            width(line.ours.deviation),
            line.ours.count.map_or("–".into(), |count| count.to_string()),
            line.paper.map_or("–".into(), |paper| unit.show(paper)),
        ];
        for column in &columns {
            let found = line.references.iter().find(|reference| reference.column == *column);
            cells.push(found.map_or(String::new(), |found| {
                let who = found.who.as_ref().map(|who| who.clone() + " ").unwrap_or_default();
                who + &unit.show(found.value)
            }));
        }
        cells.push(line.noise().map_or(String::new(), |noise| noise.text().into()));
        cells
    };
    (header.map(String::from).collect(), findings.lines.iter().map(row).collect())
}
