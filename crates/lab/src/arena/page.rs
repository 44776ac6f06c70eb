//! The page of the arena: a dot plot over all scenarios, and a table for each.

use super::{ArenaResults, ArenaRow, Difference, LEVEL, ScenarioResult};
use crate::roster::{PLANNER, SHIELDED, UNSHIELDED};
use crate::stats::{percent, points};
use temponet_page::fragment::{scrolling, skipped};
use temponet_page::svg::{Svg, circle, fill, line, stroke, text};
use temponet_page::{HtmlCell, HtmlTable, Page, escape};
use temponet_sched::Kind;

const LABELS: f64 = 190.0;
const PLOT: f64 = 540.0;
/// Width of the column of paired differences, beside the scores.
const PAIRED: f64 = 200.0;
const NOTES: f64 = 330.0;
const ROW: f64 = 34.0;
const TOP: f64 = 64.0;
/// Vertical distance between the marks of a scenario, which keeps their intervals apart.
const APART: f64 = 5.0;

/// A scheduler with a mark in the plot.
struct Mark {
    name: &'static str,
    /// Series whose color the mark has.
    series: usize,
    row: fn(&ScenarioResult) -> Option<&ArenaRow>,
}

/// Schedulers with a mark in the plot. The optimum has a bar instead.
const MARKS: [Mark; 6] = [
    Mark { name: "edf", series: 9, row: |result| result.row("edf") },
    Mark { name: "best classical", series: 0, row: ScenarioResult::best_classical },
    // The best classical scheduler is often the best of all others, and has its mark already.
    Mark { name: "best other", series: 3, row: |result| result.best_rival().filter(|row| !row.is_classical()) },
    Mark { name: PLANNER, series: 4, row: ScenarioResult::planner },
    Mark { name: UNSHIELDED, series: 1, row: |result| result.of_kind(Kind::Network) },
    Mark { name: SHIELDED, series: 2, row: |result| result.of_kind(Kind::Learned) },
];
const OPTIMUM: &str = "clairvoyant optimum (dashed: a bound)";

/// Formats a score with its 95% interval.
fn in_words(row: &ArenaRow) -> String {
    row.ci95().map_or_else(|| percent(row.score()), |half| format!("{} ± {}", percent(row.score()), points(half)))
}

/// Returns the lowest score of the plot: a multiple of 10%, at most 90%, below every mark and its interval.
fn least(arena: &ArenaResults) -> f64 {
    let shown = |result: &ScenarioResult| {
        MARKS.map(|mark| (mark.row)(result).map_or(1.0, |row| row.score() - row.ci95().unwrap_or(0.0)))
    };
    let lowest = arena.scenarios.iter().flat_map(shown).fold(0.9, f64::min);
    (lowest * 10.0).floor().max(0.0) / 10.0
}

/// Draws the dot plot: one line per scenario, from the lowest score in the plot to 100%. Whiskers are 95% intervals
/// over the sets.
pub fn plot(arena: &ArenaResults) -> String {
    let low = least(arena);
    let x = |score: f64| LABELS + PLOT * (score.clamp(low, 1.0) - low) / (1.0 - low);
    let bottom = TOP + ROW * arena.scenarios.len() as f64;
    let label = "Scores of each scenario with their 95% intervals; the tables below have the same figures.";
    let extent = most_apart(arena);
    // Left edge of the notes, and the zero of the paired differences.
    let (notes, zero) = match extent {
        Some(_) => (LABELS + PLOT + PAIRED + 84.0, LABELS + PLOT + 56.0 + PAIRED / 2.0),
        None => (LABELS + PLOT + 14.0, 0.0),
    };
    let mut out = Svg::new(notes + NOTES, bottom + 30.0, label).font(13.0);
    legend(&mut out, arena);
    if let Some(extent) = extent {
        paired_axis(&mut out, zero, extent, bottom);
    }
    for step in 0..=((1.0 - low) * 10.0).round() as u32 {
        let score = low + f64::from(step) / 10.0;
        out.add(line((x(score), TOP - 8.0), (x(score), bottom)).class("line"));
        out.add(text(x(score), bottom + 18.0, &format!("{:.0}%", 100.0 * score)).middle().class("soft"));
    }
    for (index, result) in arena.scenarios.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let name = &result.scenario.name;
        out.link(name, text(LABELS - 14.0, y + 4.0, name).end());
        let optimum = result.possible.upper;
        if let Some(best) = result.best_classical() {
            out.add(line((x(best.score()), y), (x(optimum), y)).class("gap"));
            let (sign, possible) = (result.possible.sign(), percent(optimum));
            let words = format!("{} {} of {sign}{possible}", best.label, percent(best.score()));
            out.add(text(notes, y + 4.0, &words).class("soft"));
        }
        let bar = line((x(optimum), y - 13.0), (x(optimum), y + 13.0)).class("bound").width(3.0);
        let dashes = if result.possible.is_exact { "" } else { "4 3" };
        out.add(bar.dashed(dashes).title(&format!("optimum: {}", percent(optimum))));
        if let Some(extent) = extent {
            paired(&mut out, result, zero, extent, y);
        }
        for (place, Mark { series, row, .. }) in MARKS.into_iter().enumerate() {
            let Some(row) = row(result) else { continue };
            let y = y + APART * (place as f64 - 2.5);
            if let Some(half) = row.ci95() {
                let whisker = line((x(row.score() - half), y), (x(row.score() + half), y));
                out.add(whisker.class(&stroke(series)).width(1.5));
            }
            let words = format!("{}: {}", row.label, in_words(row));
            out.add(circle(x(row.score()), y, 4.5).class(&(fill(series) + " ring")).title(&words));
        }
    }
    out.inline()
}

/// Returns the greatest absolute difference to the best other scheduler that an interval reaches; `None` if the
/// learned scheduler did not run.
fn most_apart(arena: &ArenaResults) -> Option<f64> {
    let reach = |result: &ScenarioResult| {
        result.against_best_rival().map(|difference| difference.mean.abs() + difference.ci95.unwrap_or(0.0))
    };
    arena.scenarios.iter().filter_map(reach).reduce(f64::max).map(|most| most.max(LEVEL))
}

/// Draws the axis of the paired differences. They are taken set by set, so their intervals are far narrower than those
/// of the scores, which vary between sets.
fn paired_axis(out: &mut Svg, zero: f64, extent: f64, bottom: f64) {
    out.add(text(zero, TOP - 14.0, "learned less best other, points").middle().class("soft").size(12.0));
    for (side, class) in [(-1.0, "line"), (0.0, "axis"), (1.0, "line")] {
        let x = zero + side * PAIRED / 2.0;
        out.add(line((x, TOP - 8.0), (x, bottom)).class(class));
        out.add(text(x, bottom + 18.0, &points(side * extent)).middle().class("soft"));
    }
}

fn paired(out: &mut Svg, result: &ScenarioResult, zero: f64, extent: f64, y: f64) {
    let Some(Difference { mean, ci95: half }) = result.against_best_rival() else { return };
    let x = |difference: f64| zero + PAIRED / 2.0 * difference / extent;
    if let Some(half) = half {
        out.add(line((x(mean - half), y), (x(mean + half), y)).class(&stroke(2)).width(1.5));
    }
    let interval = half.map_or(String::new(), |half| format!(" ± {}", points(half)));
    out.add(circle(x(mean), y, 4.5).class(&(fill(2) + " ring")).title(&format!("{}{interval} points", points(mean))));
}

fn legend(out: &mut Svg, arena: &ArenaResults) {
    let mut left = LABELS;
    let is_there = |mark: &Mark| arena.scenarios.iter().any(|result| (mark.row)(result).is_some());
    for Mark { name, series, .. } in MARKS.into_iter().filter(is_there) {
        let label = arena.scenarios.iter().find_map(|result| result.row(name)).map_or(name, |row| &row.label);
        out.add(line((left - 9.0, 18.0), (left + 9.0, 18.0)).class(&stroke(series)).width(1.5));
        out.add(circle(left, 18.0, 4.5).class(&fill(series)));
        out.add(text(left + 15.0, 22.0, label));
        left += 44.0 + 7.2 * label.chars().count() as f64;
    }
    out.add(line((left, 10.0), (left, 26.0)).class("bound").width(3.0));
    out.add(text(left + 11.0, 22.0, OPTIMUM));
}

/// Returns the page.
pub fn html(arena: &ArenaResults) -> String {
    let facts = format!(
        "{} scenarios with {}; every scheduler meets the same jobs, whose seeds are kept from training. Scores are means over the sets, whiskers \
         their 95% confidence intervals.{}",
        arena.scenarios.len(),
        if arena.quick { "a few sets each (a quick look)" } else { "all their sets" },
        match arena.summary() {
            Some(_) => " Sets differ much, so look at the differences, which are set by set.",
            None => "",
        }
    );
    let page = Page::new("Arena").facts(&facts);
    let page = match arena.verdict() {
        Some(verdict) => page.verdict(&verdict),
        None => page,
    };
    let sections: String = arena.scenarios.iter().map(section).collect();
    page.section("", "", &scrolling(&plot(arena))).section("", "", &sections).finish()
}

fn section(result: &ScenarioResult) -> String {
    let scenario = &result.scenario;
    let names = ["scheduler", "score", "±95%", "jobs in time", "less the best classical", "±95%"];
    let mut table = HtmlTable::sortable().columns(&names);
    let possible = &result.possible;
    let empty = || HtmlCell::text("");
    let figure = HtmlCell::figure(format!("{}{}", possible.sign(), percent(possible.upper)), Some(possible.upper));
    table.pinned("optimum", &[HtmlCell::text(possible.name()), figure, empty(), empty(), empty(), empty()]);
    for row in &result.rows {
        let difference = result.against_best(row);
        let cell = |value: Option<f64>| HtmlCell::figure(value.map_or("–".into(), points), value);
        let share = |value: f64| HtmlCell::figure(percent(value), Some(value));
        let name = HtmlCell::text(row.name(result.sets));
        let cells = [
            name,
            share(row.score()),
            cell(row.ci95()),
            share(row.compliance()),
            cell(difference.map(|of| of.mean)),
            cell(difference.and_then(|of| of.ci95)),
        ];
        table.row(if row.is_classical() { "" } else { "learned" }, &cells);
    }
    format!(
        "<details id=\"{name}\"><summary><strong>{name}</strong> · {}</summary>\n<p class=\"facts\">{}</p>\n{}{}\
         </details>\n",
        escape(&scenario.description),
        escape(&result.facts()),
        table.finish(),
        skipped(&result.skipped),
        name = escape(&scenario.name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{ArenaPlan, run, scenario};
    use crate::roster::Roster;

    #[test]
    fn the_page_shows_every_scenario_and_everyone_in_it() {
        let scenarios = vec![scenario::find("standard-sets").unwrap()];
        let schedulers = ["edf", "mh-edf", "srpt"].map(String::from).to_vec();
        let plan = ArenaPlan { scenarios, schedulers, roster: Roster::classical(), quick: true, planner_sets: None };
        let page = html(&run(&plan, &plan.progress()).unwrap());
        assert!(page.contains("<details id=\"standard-sets\">") && !page.contains("NaN"));
        assert!(["edf", "mh-edf", "srpt"].iter().all(|name| page.contains(&format!("<td>{name}</td>"))));
        assert_eq!(page.matches("<circle").count(), 4, "a mark for edf and one for the best, and their legend");
        assert!(page.contains("clairvoyant optimum") && !page.contains("https://"));
        let whiskers = |series: usize| page.matches(&format!("class=\"s{series}\" stroke-width=\"1.5\"")).count();
        assert_eq!((whiskers(9), whiskers(0)), (2, 2), "an interval for edf and one for the best, and their legend");
    }
}
