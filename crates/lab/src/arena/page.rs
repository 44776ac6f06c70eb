//! The arena as one page: a dot plot over the scenarios, and a table for each.

use std::fmt::Write;

use super::outcome::{Arena, Outcome, Row};
use crate::gantt::{PALETTE, escape};
use crate::report::STYLE;
use crate::roster::{SHIELDED, UNSHIELDED};
use crate::stats::{percent, points};

const LABELS: f64 = 190.0;
const PLOT: f64 = 700.0;
const NOTES: f64 = 330.0;
const ROW: f64 = 30.0;
const TOP: f64 = 64.0;

/// Who has a mark in the plot, by name, and its colour; the optimum has a bar.
const MARKS: [(&str, &str); 4] =
    [("edf", "#8a96a3"), (BEST, PALETTE[0]), (UNSHIELDED, PALETTE[1]), (SHIELDED, PALETTE[2])];
const BEST: &str = "best classical";
const OPTIMUM: &str = "clairvoyant optimum (dashed: a bound)";

fn marked<'a>(outcome: &'a Outcome, name: &str) -> Option<&'a Row> {
    if name == BEST { outcome.best_classical() } else { outcome.row(name) }
}

/// The dot plot: a line per scenario, from the lowest score that is shown to everything.
pub fn plot(arena: &Arena) -> String {
    let shown = |outcome: &Outcome| MARKS.map(|(name, _)| marked(outcome, name).map_or(1.0, Row::score));
    let lowest = arena.outcomes.iter().flat_map(shown).fold(0.9, f64::min);
    let low = (lowest * 10.0).floor() / 10.0;
    let x = |score: f64| LABELS + PLOT * (score - low) / (1.0 - low);
    let (width, bottom) = (LABELS + PLOT + NOTES, TOP + ROW * arena.outcomes.len() as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        height = bottom + 30.0
    );
    let mut left = LABELS;
    for (name, colour) in MARKS.iter().filter(|(name, _)| arena.outcomes.iter().any(|of| marked(of, name).is_some())) {
        let label = arena.outcomes.iter().find_map(|outcome| outcome.row(name)).map_or(*name, |row| &row.label);
        let _ = writeln!(
            out,
            "<circle cx=\"{left}\" cy=\"18\" r=\"5.5\" fill=\"{colour}\"/><text x=\"{}\" y=\"22\">{}</text>",
            left + 11.0,
            escape(label)
        );
        left += 34.0 + 7.2 * label.chars().count() as f64;
    }
    let _ = writeln!(
        out,
        "<line x1=\"{left}\" x2=\"{left}\" y1=\"10\" y2=\"26\" stroke=\"#1c2733\" stroke-width=\"3\"/>\
         <text x=\"{}\" y=\"22\">{OPTIMUM}</text>",
        left + 11.0
    );
    for step in 0..=((1.0 - low) * 10.0).round() as u32 {
        let score = low + f64::from(step) / 10.0;
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{bottom}\" stroke=\"#e3e3e3\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{:.0}%</text>",
            TOP - 8.0,
            bottom + 18.0,
            100.0 * score,
            at = x(score)
        );
    }
    for (index, outcome) in arena.outcomes.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let name = escape(&outcome.scenario.name);
        let _ = writeln!(
            out,
            "<a href=\"#{name}\"><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text></a>",
            LABELS - 14.0,
            y + 4.0
        );
        let optimum = outcome.possible.upper;
        if let Some(best) = outcome.best_classical() {
            let _ = writeln!(
                out,
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#c3ccd4\" stroke-width=\"4\"/>\
                 <text x=\"{}\" y=\"{}\" fill=\"#5c6b7a\">{} {} of {}{}</text>",
                x(best.score()),
                x(optimum),
                LABELS + PLOT + 14.0,
                y + 4.0,
                escape(&best.label),
                percent(best.score()),
                if outcome.possible.is_exact { "" } else { "≤" },
                percent(optimum)
            );
        }
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"#1c2733\" stroke-width=\"3\"{}>\
             <title>optimum: {}</title></line>",
            y - 9.0,
            y + 9.0,
            if outcome.possible.is_exact { "" } else { " stroke-dasharray=\"4 3\"" },
            percent(optimum),
            at = x(optimum)
        );
        for (name, colour) in MARKS {
            if let Some(row) = marked(outcome, name) {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"5.5\" fill=\"{colour}\" stroke=\"white\"><title>{}: {}</title></circle>",
                    x(row.score()),
                    escape(&row.label),
                    percent(row.score())
                );
            }
        }
    }
    out + "</svg>\n"
}

/// The page.
pub fn html(arena: &Arena) -> String {
    let sections: String = arena.outcomes.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Arena · TempoNet</title>\n\
         <style>{STYLE}\nsvg {{ max-width: 100%; height: auto; }} summary {{ cursor: pointer; padding: 6px 0; }}\n\
         tr.learned td {{ font-weight: 700; }}</style>\n<header><h1>Arena</h1>\n\
         <p class=\"facts\">{} scenarios with {}; every scheduler meets the same jobs, whose seeds are kept from training. Scores are means over the sets. \
         Made with TempoNet {}.</p>\n{}</header>\n<section>\n{}</section>\n<section>\n{sections}</section>\n",
        arena.outcomes.len(),
        if arena.quick { "a few sets each (a quick look)" } else { "all their sets" },
        env!("CARGO_PKG_VERSION"),
        arena.verdict().map_or(String::new(), |verdict| format!("<p class=\"verdict\">{}</p>\n", escape(&verdict))),
        plot(arena),
    )
}

fn section(outcome: &Outcome) -> String {
    let scenario = &outcome.scenario;
    let mut out = format!(
        "<details id=\"{name}\"><summary><strong>{name}</strong> · {}</summary>\n<p class=\"facts\">{}</p>\n<table><tr>\
         <th>scheduler</th><th>score</th><th>±95%</th><th>jobs in time</th><th>less the best classical</th><th>±95%</th></tr>\n",
        escape(&scenario.description),
        escape(&outcome.facts()),
        name = escape(&scenario.name),
    );
    let _ = writeln!(
        out,
        "<tr class=\"optimum\"><td>{}</td><td>{}{}</td><td></td><td></td><td></td><td></td></tr>",
        outcome.possible.name(),
        outcome.possible.sign(),
        percent(outcome.possible.upper)
    );
    for row in &outcome.rows {
        let (difference, interval) = outcome.against_best(row).unwrap_or_default();
        let cell = |value: Option<f64>| value.map_or("–".into(), points);
        let _ = writeln!(
            out,
            "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            if row.is_classical() { "" } else { " class=\"learned\"" },
            escape(&row.label),
            percent(row.score()),
            cell(row.ci95()),
            percent(row.compliance()),
            cell(Some(difference)),
            cell(interval)
        );
    }
    out += "</table>\n<ul class=\"skipped\">";
    for (name, why) in &outcome.skipped {
        let _ = write!(out, "<li>{}: {}</li>", escape(name), escape(why));
    }
    out + "</ul></details>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Plan, run, scenario};
    use crate::roster::Roster;

    #[test]
    fn the_page_shows_every_scenario_and_everyone_in_it() {
        let scenarios = vec![scenario::find("standard-sets").unwrap()];
        let schedulers = ["edf", "mh-edf", "srpt"].map(String::from).to_vec();
        let plan = Plan { scenarios, schedulers, roster: Roster::classical(), quick: true };
        let page = html(&run(&plan, &plan.progress()).unwrap());
        assert!(page.contains("<details id=\"standard-sets\">") && !page.contains("NaN"));
        assert!(["edf", "mh-edf", "srpt"].iter().all(|name| page.contains(&format!("<td>{name}</td>"))));
        assert_eq!(page.matches("<circle").count(), 4, "a mark for edf and one for the best, and their legend");
        assert!(page.contains("clairvoyant optimum") && !page.contains("https://"));
    }
}
