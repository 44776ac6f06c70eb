//! The explanation of all decisions of the learned scheduler in a run, and its page.

use super::ModelRun;
use super::diagnostics::{
    Agreement, Distribution, ENTROPY_STEP, HeatMapCell, REMAINING_BINS, RunDiagnostics, RunReport, Spread,
};
use crate::advice::Decider;
use temponet::Model;
use temponet::stages::Tokenizer;
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, Scheduler, TaskSet, Time};
use temponet_wording::grouped;

use temponet_page::charts::{Grid, histogram};
use temponet_page::fragment::{figure, figures, folded, scrolling};
use temponet_page::svg::Svg;
use temponet_page::{HtmlCell, HtmlTable, Page};

/// Schedulers with which the network's choices are compared, by name.
pub type Others<'a> = [(&'a str, Box<dyn Scheduler>)];

/// Names of these schedulers in `temponet explain --run`.
pub const COMPARED: [&str; 2] = ["edf", "srpt"];

/// Factor by which the default horizon is shorter than in other commands, because inspecting a decision is slow.
pub const SHORTER: u64 = 10;

/// Returns the explanation of a run as a JSON object. `decider` is who decides on the set; `None` without a shield.
pub fn json(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    model: &Model,
    decider: Option<&Decider>,
    run: &RunReport,
) -> serde_json::Value {
    serde_json::json!({
        "task_set": set.name, "horizon_ns": horizon.0, "seed": seed, "provenance": model.provenance(),
        "untrained": model.is_untrained(), "shield": decider.is_some(), "decider": decider, "run": run,
    })
}

/// Runs to the horizon and gathers what the model alone would choose at every decision on the way.
pub fn explain_run(run: ModelRun<'_>, others: &mut Others<'_>) -> Result<RunReport, SimError> {
    let ModelRun { set, seed, horizon, model, scheduler, plain } = run;
    let system = set.system.clone();
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
        temponet_cancel::checkpoint();
        let view = engine.view();
        done.reset(set.cores());
        scheduler.decide(&view, &mut done);
        wanted.reset(set.cores());
        plain.decide(&view, &mut wanted);
        for ((_, other), assignment) in others.iter_mut().zip(&mut theirs) {
            assignment.reset(set.cores());
            other.decide(&view, assignment);
        }
        diagnostics.add(&view, &wanted, &theirs);
        engine.apply(&done, &mut Unobserved)?;
    }
    Ok(diagnostics.report())
}

/// Returns the findings of a run as pairs of name and value.
pub fn lines(run: &RunReport, model: &str) -> Vec<(String, String)> {
    let spread = |spread: &Spread| format!("{:.3} ± {:.3} bits", spread.mean, spread.deviation);
    let share = |share: f64| format!("{:.1}%", 100.0 * share);
    let agreement =
        |of: &Agreement| format!("{} of decisions, {} of contested ones", share(of.all), share(of.contested));
    let correlation = |of: Option<f64>| of.map_or("– (one of them never varies)".into(), |r| format!("{r:.3}"));
    let quantiles = |of: &Distribution| {
        let value = |(at, q): &(f64, f32)| format!("p{:.0} {q:.4}", 100.0 * at);
        of.quantiles.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![
        ("model".to_string(), model.to_string()),
        ("decisions".into(), grouped(run.decisions)),
        ("more ready jobs than cores in".into(), grouped(run.contested)),
        ("alignment".into(), share(run.alignment)),
    ];
    lines.extend(run.top_k_alignment.iter().map(|top| (format!("top-{} alignment", top.k), share(top.alignment))));
    let layers = run.entropy_bits.iter().enumerate();
    lines.extend(layers.map(|(layer, of)| (format!("attention entropy, layer {}", layer + 1), spread(of))));
    lines.extend([
        ("of the decision token".into(), spread(&run.decision_entropy_bits)),
        ("attention and criticality, r".into(), correlation(run.attention_criticality)),
        ("attention and urgency, r".into(), correlation(run.attention_urgency)),
        (format!("Q of {} chosen", grouped(run.q_chosen.count)), quantiles(&run.q_chosen)),
        (format!("Q of {} others", grouped(run.q_others.count)), quantiles(&run.q_others)),
        (format!("rule {:.2}/(s+1) + {:.2}/(c+1)", run.rule.alpha, run.rule.beta), agreement(&run.rule.agreement)),
    ]);
    lines.extend(
        run.agreement.iter().map(|named| (format!("same as {}", named.scheduler), agreement(&named.agreement))),
    );
    lines
}

/// Returns the page: `lines` of names and values, the heat map of the chosen jobs, and the distributions.
pub fn page(set: &TaskSet, tokenizer: &Tokenizer, report: &RunReport, lines: &[(String, String)]) -> String {
    let mut lines_table = HtmlTable::new();
    for (name, value) in lines {
        lines_table.row("", &[HtmlCell::text(name), HtmlCell::text(value).class("words")]);
    }
    let late = if tokenizer.clip { "" } else { " L: late by wcet, X: impossible." };
    let hint = format!(
        "How often a ready job is chosen, by its slack bin (to the right) and its remaining wcet as a share of the greatest (upwards). Brighter is \
         more often; where there is no cell, nothing was seen.{late}"
    );
    let chosen = scrolling(&heat_map(tokenizer, &report.heat_map).inline()) + &cells(report);
    let q = histogram(range(report), &[("not chosen", &report.q_others.bars), ("chosen", &report.q_chosen.bars)]);
    let mut entropies = String::new();
    for (layer, counts) in report.entropy_counts.iter().enumerate() {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let last = counts.iter().rposition(|count| *count > 0).map_or(1, |last| last + 1);
        let bars: Vec<f64> = counts[..last].iter().map(|count| *count as f64 / total).collect();
        let end = f64::from(last as f32 * ENTROPY_STEP);
        let picture = histogram((0.0, end), &[("decisions", &bars)]);
        entropies += &figure(&format!("layer {}", layer + 1), &picture);
    }
    let lead = format!(
        "What the network wants, over {} decisions with a job ready, {} of them with more ready jobs than cores.",
        report.decisions, report.contested
    );
    Page::new(&set.name)
        .kind("a run")
        .lead(&lead)
        .section("Figures", "", &lines_table.finish())
        .section("What is chosen", &hint, &chosen)
        .section("Q-values", "Share of the ready jobs that were chosen and that were not, by Q-value.", &q)
        .section(
            "Attention entropy",
            "In bits, decision by decision: the further to the right, the more spread out.",
            &figures(&entropies),
        )
        .finish()
}

fn range(report: &RunReport) -> (f64, f64) {
    let (low, high) = report.q_chosen.range;
    (f64::from(low), f64::from(high))
}

/// Width and height of a cell of the heat map, in pixels.
const CELL: (f64, f64) = (16.0, 20.0);

/// Returns the cells of the heat map as a table, for screen readers.
fn cells(report: &RunReport) -> String {
    let mut table = HtmlTable::sortable().columns(&["slack bin", "remaining, tenths", "chosen", "of", "share"]);
    for cell in &report.heat_map {
        let whole = |value: u64| HtmlCell::figure(value.to_string(), Some(value as f64));
        let share = cell.chosen as f64 / cell.seen.max(1) as f64;
        table.row(
            "",
            &[
                whole(u64::from(cell.slack_bin)),
                whole(cell.remaining_bin as u64),
                whole(cell.chosen),
                whole(cell.seen),
                HtmlCell::figure(format!("{:.1}%", 100.0 * share), Some(share)),
            ],
        );
    }
    folded("as a table", &table.finish())
}

/// Draws how often a ready job is chosen, by slack bin and remaining wcet.
pub fn heat_map(tokenizer: &Tokenizer, cells: &[HeatMapCell]) -> Svg {
    // Columns from the left: impossible, late by wcet, then the bins in use.
    let bins = tokenizer.bins as u16;
    let extra = if tokenizer.clip { 0 } else { 2 };
    let column = |bin: u16| if bin < bins { bin + extra } else { bins + 1 - bin };
    let last = cells.iter().map(|cell| column(cell.slack_bin)).max().unwrap_or(0);
    let label = |place: u16| match extra {
        2 if place < 2 => ["X", "L"][usize::from(place)].to_string(),
        _ if (place - extra).is_multiple_of(5) => (place - extra).to_string(),
        _ => String::new(),
    };
    let row_of = |remaining: usize| REMAINING_BINS - 1 - remaining.min(REMAINING_BINS - 1);
    let mut found: Vec<Vec<Option<&HeatMapCell>>> = vec![vec![None; usize::from(last) + 1]; REMAINING_BINS];
    for cell in cells {
        found[row_of(cell.remaining_bin)][usize::from(column(cell.slack_bin))] = Some(cell);
    }
    let share = |cell: &HeatMapCell| cell.chosen as f64 / cell.seen.max(1) as f64;
    let tenth = |row: usize| format!("{:.1}", (REMAINING_BINS - row) as f64 / REMAINING_BINS as f64);
    let grid = Grid {
        x_label: "slack bin".into(),
        y_label: "remaining up to".into(),
        columns: (0..=last).map(label).collect(),
        rows: (0..REMAINING_BINS).map(tenth).collect(),
        cells: found.iter().map(|row| row.iter().map(|cell| cell.map(share)).collect()).collect(),
        label: None,
        cell: Some(CELL),
        span: Some((0.0, 1.0)),
    };
    grid.picture(|row, place| {
        let HeatMapCell { slack_bin, remaining_bin, chosen, seen } = found[row][place]?;
        Some(format!("slack bin {slack_bin}, remaining {remaining_bin} tenths: {chosen} of {seen}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_page::colours::shade;

    #[test]
    fn late_jobs_stand_to_the_left_of_the_bins() {
        let cell = |slack_bin, remaining_bin| HeatMapCell { slack_bin, remaining_bin, seen: 4, chosen: 1 };
        let full = Tokenizer { bins: 8, ..Tokenizer::full() };
        let picture = heat_map(&full, &[cell(9, 0), cell(8, 0), cell(0, 9)]).inline();
        let columns = |picture: &str| -> Vec<f64> {
            let cells = picture.lines().filter(|line| line.contains("slack bin ") && line.contains("<rect"));
            cells.map(|line| line.split('"').nth(1).unwrap().parse().unwrap()).collect()
        };
        let left = columns(&picture).into_iter().fold(f64::MAX, f64::min);
        let mut places: Vec<f64> = columns(&picture).iter().map(|x| (x - left) / CELL.0).collect();
        places.sort_by(f64::total_cmp);
        assert_eq!(places, [0.0, 1.0, 2.0], "{picture}");
        assert!(picture.contains(&shade(0.25)) && picture.contains(">X</text>") && picture.contains(": 1 of 4"));
        let paper = heat_map(&Tokenizer::paper(), &[cell(0, 0), cell(3, 9)]).inline();
        assert!(columns(&paper).len() == 2 && !paper.contains(">X</text>"));
    }
}
