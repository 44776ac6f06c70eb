//! The findings as one self-contained page.

use std::fmt::Write;

use super::{Findings, Line, Verdict};
use crate::gantt::escape;
use crate::report::STYLE;

/// The page.
pub fn html(all: &[Findings]) -> String {
    let quick = all.iter().any(Findings::is_quick);
    let mode = if quick { "A quick run: what is mere noise is marked." } else { "A full run." };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>The paper's experiments · TempoNet</title>\n\
         <style>{STYLE}\n{MORE}</style>\n<header><h1>The paper's experiments</h1>\n<p class=\"facts\">{mode} Ours is the mean with \
         its 95% interval; σ is the standard deviation over n sets or seeds. Made with TempoNet {}.</p></header>\n",
        env!("CARGO_PKG_VERSION")
    );
    out += "<section><table class=\"overview\"><tr><th>experiment</th><th>verdict</th><th>in one sentence</th></tr>\n";
    for findings in all {
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#{id}\">{id}</a> {}</td><td class=\"{}\">{}</td><td>{}</td></tr>",
            escape(&findings.title),
            class(findings.verdict),
            findings.verdict.name(),
            escape(&findings.sentence),
            id = escape(&findings.id),
        );
    }
    out += "</table></section>\n";
    all.iter().for_each(|findings| section(&mut out, findings));
    out + "</html>\n"
}

const MORE: &str = "svg { max-width: 100%; height: auto; } summary { cursor: pointer; padding: 6px 0; }\n\
    .overview td { white-space: normal; text-align: left; vertical-align: top; } .overview td:nth-child(2) { white-space: nowrap; }\n\
    .overview th { text-align: left; } td.reproduced, td.better { color: #00795a; font-weight: 600; } td.worse { color: #c8102e; font-weight: 600; }\n\
    td.not { color: #8a5a00; font-weight: 600; } .verdict { font-size: 15.5px; } .verdict.worse { border-color: #c8102e; background: #fdf3f4; }\n\
    .verdict.not { border-color: #c98a1b; background: #fdf8ee; } td.noise { color: #8a5a00; text-align: left; } tr.headline td:first-child { font-weight: 700; }\n\
    figure { margin: 12px 0; } figcaption { color: var(--soft); font-size: 13.5px; } h3 { margin: 18px 0 4px; font-size: 15px; }\n\
    pre { background: #f6f9fb; padding: 10px; font-size: 12.5px; white-space: pre-wrap; } section p { max-width: 1000px; }";

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NotReproducible => "not",
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
    let mut body = String::new();
    for (line, row) in findings.lines.iter().zip(&rows) {
        let class = if line.is_headline && line.paper.is_some() { " class=\"headline\"" } else { "" };
        let _ = write!(body, "<tr{class}>");
        for (at, cell) in row.iter().enumerate() {
            let class = if at + 1 == row.len() { " class=\"noise\"" } else { "" };
            let _ = write!(body, "<td{class}>{}</td>", escape(cell));
        }
        body += "</tr>\n";
    }
    if !rows.is_empty() {
        let _ = writeln!(out, "<div class=\"scroll\"><table>{}{body}</table></div>", head(&header));
    }
    for table in &findings.tables {
        let rows: String = table.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
        let header = head(&table.header);
        let title = escape(&table.title);
        let _ = writeln!(out, "<h3>{title}</h3><div class=\"scroll\"><table>{header}{rows}</table></div>");
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

fn cells(tag: &str, row: &[String]) -> String {
    row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
}

fn head(header: &[String]) -> String {
    format!("<tr>{}</tr>\n", cells("th", header))
}

/// The figures as a table for people: header and rows. A column for each that stands beside ours, and at the end why a figure says little.
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
            line.name.replace('_', " "),
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
