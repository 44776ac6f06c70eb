//! All decisions of the learned scheduler in a run, laid open for people.

use std::fmt::Write;

use temponet::diagnostics::{Cell, Distribution, ENTROPY_STEP, REMAINING_BINS, RunDiagnostics, RunReport};
use temponet::{Model, Tokenizer};
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, Scheduler, TaskSet, Time};

use crate::gantt::escape;
use crate::report::STYLE;

/// Schedulers that a network's choices are compared with, by name.
pub type Others<'a> = [(&'a str, Box<dyn Scheduler>)];

/// Runs `scheduler` on the set and looks at what the model chooses at every decision on the way; `plain` is the same model without anything
/// around it.
pub fn explain_run(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    model: &Model,
    scheduler: &mut dyn Scheduler,
    plain: &mut dyn Scheduler,
    others: &mut Others<'_>,
) -> Result<RunReport, SimError> {
    let system = set.system();
    scheduler.start(&system)?;
    plain.start(&system)?;
    for (_, other) in others.iter_mut() {
        other.start(&system)?;
    }
    let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    let mut diagnostics = RunDiagnostics::new(model, &system, &names);
    let mut engine = Engine::new(set, seed, horizon);
    let (mut done, mut wanted) = (Assignment::default(), Assignment::default());
    let mut theirs: Vec<Assignment> = names.iter().map(|_| Assignment::default()).collect();
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        done.reset(set.cores);
        scheduler.decide(&view, &mut done);
        wanted.reset(set.cores);
        plain.decide(&view, &mut wanted);
        for ((_, other), assignment) in others.iter_mut().zip(&mut theirs) {
            assignment.reset(set.cores);
            other.decide(&view, assignment);
        }
        diagnostics.add(&view, &wanted, &theirs);
        engine.apply(&done, &mut Unobserved)?;
    }
    Ok(diagnostics.report())
}

/// A page: the figures as lines of name and value, the heat map of what is chosen, and the distributions.
pub fn page(set: &TaskSet, tokenizer: &Tokenizer, report: &RunReport, lines: &[(String, String)]) -> String {
    let mut body = String::from("<section><h2>Figures</h2><table>\n");
    for (name, value) in lines {
        let _ = writeln!(body, "<tr><td>{}</td><td>{}</td></tr>", escape(name), escape(value));
    }
    let late = if tokenizer.clip { "" } else { " L: late by wcet, X: impossible." };
    let _ = write!(
        body,
        "</table></section>\n<section><h2>What is chosen</h2><p class=\"hint\">How often a ready job is chosen, by its slack bin (to the right) and its \
         remaining wcet as a share of the greatest (upwards). Darker is more often; cells without a frame were never seen.{late}</p>\n"
    );
    let _ = write!(body, "<div class=\"scroll\">{}</div>", heat_map(tokenizer, &report.heat_map));
    body += "</section>\n<section><h2>Q-values</h2><p class=\"hint\">Share of the ready jobs that were chosen (green) and that were not (grey).</p>\n";
    body += &q_values(&report.q_chosen, &report.q_others);
    body += "</section>\n<section><h2>Attention entropy</h2><p class=\"hint\">In bits, decision by decision: the further to the right, the more spread out.</p>\n";
    for (layer, counts) in report.entropy_counts.iter().enumerate() {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let last = counts.iter().rposition(|count| *count > 0).map_or(1, |last| last + 1);
        let bars: Vec<f64> = counts[..last].iter().map(|count| *count as f64 / total).collect();
        let end = last as f32 * ENTROPY_STEP;
        let _ = write!(
            body,
            "<figure><figcaption>layer {}</figcaption>{}</figure>",
            layer + 1,
            bars_svg((0.0, end), &[(&bars, GREEN)])
        );
    }
    body += "</section>\n";
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{name} · a run · TempoNet</title>\n\
         <style>{STYLE}\nfigure {{ display: inline-block; margin: 0 18px 18px 0; }}</style>\n<header><h1>{name}</h1><p>What the network wants, \
         over {} decisions with a job ready, {} of them with more ready jobs than cores.</p></header>\n{body}",
        report.decisions,
        report.contested,
        name = escape(&set.name),
    )
}

pub(crate) const GREEN: &str = "#0b6e4f";
pub(crate) const GREY: &str = "#5c6b7a";
/// Sides of a cell, and the space for labels.
const CELL: (f64, f64) = (16.0, 20.0);
const MARGIN: f64 = 44.0;

/// How often a ready job is chosen, by slack bin and remaining.
pub(crate) fn heat_map(tokenizer: &Tokenizer, cells: &[Cell]) -> String {
    // From the left: impossible, late by wcet, then the bins in use.
    let bins = tokenizer.bins as u16;
    let extra = if tokenizer.clip { 0 } else { 2 };
    let column = |bin: u16| if bin < bins { bin + extra } else { bins + 1 - bin };
    let last = cells.iter().map(|cell| column(cell.slack_bin)).max().unwrap_or(0);
    let (width, height) = (CELL.0 * f64::from(last + 1), CELL.1 * REMAINING_BINS as f64);
    let mut out = format!(
        "<svg width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"{GREY}\">",
        w = width + 2.0 * MARGIN,
        h = height + MARGIN
    );
    for cell in cells {
        let share = cell.chosen as f64 / cell.seen as f64;
        let (x, y) = (
            MARGIN + CELL.0 * f64::from(column(cell.slack_bin)),
            CELL.1 * (REMAINING_BINS - 1 - cell.remaining_bin) as f64,
        );
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" fill=\"{GREEN}\" fill-opacity=\"{share:.3}\" stroke=\"#dfe5ea\">\
             <title>slack bin {}, remaining {} tenths: {} of {}</title></rect>",
            CELL.0, CELL.1, cell.slack_bin, cell.remaining_bin, cell.chosen, cell.seen
        );
    }
    for place in 0..=last {
        let label = match extra {
            2 if place < 2 => ["X", "L"][usize::from(place)].to_string(),
            _ if (place - extra) % 5 == 0 => (place - extra).to_string(),
            _ => continue,
        };
        let x = MARGIN + CELL.0 * (f64::from(place) + 0.5);
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", height + 14.0);
    }
    for tenth in [0, REMAINING_BINS / 2, REMAINING_BINS] {
        let y = height - CELL.1 * tenth as f64 + if tenth == REMAINING_BINS { 10.0 } else { 4.0 };
        let share = tenth as f64 / REMAINING_BINS as f64;
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{share:.1}</text>", MARGIN - 6.0);
    }
    out + &format!("<text x=\"{MARGIN}\" y=\"{:.1}\">slack bin</text></svg>\n", height + 32.0)
}

fn q_values(chosen: &Distribution, others: &Distribution) -> String {
    let bars = bars_svg(chosen.range, &[(&others.bars, GREY), (&chosen.bars, GREEN)]);
    format!("<figure>{bars}</figure>\n")
}

/// Histograms over each other: shares of equal steps of a range.
pub(crate) fn bars_svg(range: (f32, f32), series: &[(&[f64], &str)]) -> String {
    let (width, height) = (520.0, 160.0);
    let most = series.iter().flat_map(|(bars, _)| bars.iter()).copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut out = format!(
        "<svg width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"{GREY}\">",
        w = width + 2.0 * MARGIN,
        h = height + 24.0
    );
    for (bars, colour) in series {
        let step = width / bars.len().max(1) as f64;
        for (place, share) in bars.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let tall = height * share / most;
            let _ = write!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" fill=\"{colour}\" fill-opacity=\"0.55\"/>",
                MARGIN + step * place as f64,
                height - tall,
                step - 1.0
            );
        }
    }
    let _ = write!(
        out,
        "<line x1=\"{MARGIN}\" x2=\"{}\" y1=\"{height}\" y2=\"{height}\" stroke=\"#dfe5ea\"/>\
         <text x=\"{}\" y=\"10\" text-anchor=\"end\">{:.0}%</text>",
        MARGIN + width,
        MARGIN - 6.0,
        100.0 * most
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let value = f64::from(range.0) + share * f64::from(range.1 - range.0);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{value:.2}</text>",
            MARGIN + width * share,
            height + 16.0
        );
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_jobs_stand_to_the_left_of_the_bins() {
        let cell = |slack_bin, remaining_bin| Cell { slack_bin, remaining_bin, seen: 4, chosen: 1 };
        let full = Tokenizer { bins: 8, ..Tokenizer::full() };
        let picture = heat_map(&full, &[cell(9, 0), cell(8, 0), cell(0, 9)]);
        let x = |column: f64| format!("<rect x=\"{:.1}\"", MARGIN + CELL.0 * column);
        assert_eq!(picture.matches("<rect").count(), 3);
        assert!(picture.contains(&x(0.0)) && picture.contains(&x(1.0)) && picture.contains(&x(2.0)), "{picture}");
        assert!(picture.contains("fill-opacity=\"0.250\"") && picture.contains(">X</text>"));
        let paper = heat_map(&Tokenizer::paper(), &[cell(0, 0), cell(3, 9)]);
        assert!(paper.contains(&x(0.0)) && paper.contains(&x(3.0)) && !paper.contains(">X</text>"));
    }
}
