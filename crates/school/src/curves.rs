//! The course of a training: curves as a picture, and a page with all figures.

use temponet_train::PhaseFigures;

use temponet_lab::stats::percent;
use temponet_page::fragment::scrolling;
use temponet_page::plot::{Panel, Span, picture};
use temponet_page::svg::Svg;
use temponet_page::{HtmlCell, HtmlTable, Page};

/// A scheduler to beat: its name, and its share of deadlines met on unseen jobs, 0 to 1.
pub type Baseline = (String, f64);

/// Draws the course of a training as an SVG file. One chart has the share of deadlines met on validation jobs, phase by
/// phase, the best share so far, and each baseline as a level. The other has the loss, whose meaning changes with the
/// method.
pub fn svg(phases: &[PhaseFigures], baselines: &[Baseline]) -> String {
    drawn(phases, baselines).file()
}

fn drawn(phases: &[PhaseFigures], baselines: &[Baseline]) -> Svg {
    let points = |of: &dyn Fn(&PhaseFigures) -> f64| -> Vec<(f64, f64)> {
        phases.iter().enumerate().map(|(place, phase)| ((place + 1) as f64, of(phase))).collect()
    };
    let begins = |place: usize| place == 0 || phases[place - 1].stage != phases[place].stage;
    let marks: Vec<(f64, String)> = (0..phases.len())
        .filter(|place| begins(*place))
        .map(|place| ((place + 1) as f64, phases[place].method.clone()))
        .collect();
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    // Rounded to multiples of four percent, so that all labels of the axis are whole.
    let levels = baselines.iter().map(|(_, score)| *score);
    let (low, high) = ends(&mut phases.iter().flat_map(|phase| [phase.score, phase.best]).chain(levels));
    let (low, high) = ((low * 25.0).floor() / 25.0, (high * 25.0).ceil() / 25.0);
    let shares = if low < high { Span::Shares(low, high) } else { Span::Shares(0.0, 1.0) };
    let (least, most) = ends(&mut phases.iter().map(|phase| phase.loss));
    let numbers = Span::Numbers(least.min(0.0), if most > 0.0 { most } else { 1.0 });
    let mut curves = vec![points(&|phase| phase.best), points(&|phase| phase.score), Vec::new()];
    curves.extend(baselines.iter().map(|(_, score)| points(&|_| *score)));
    let scores = Panel {
        title: "In time on unseen jobs".into(),
        x_label: "phase",
        curves,
        y: shares,
        marks: marks.clone(),
        is_log: false,
    };
    let losses = Panel {
        title: "Mean loss".into(),
        x_label: "phase",
        curves: vec![Vec::new(), Vec::new(), points(&|phase| phase.loss)],
        y: numbers,
        marks,
        is_log: false,
    };
    let mut names: Vec<String> = ["best so far", "this phase", "loss"].map(String::from).to_vec();
    names.extend(baselines.iter().map(|(name, score)| format!("{name} {}", percent(*score))));
    picture(&[scores, losses], 2, &names)
}

/// Returns a page with the curves and their figures.
pub fn page(phases: &[PhaseFigures], baselines: &[Baseline]) -> String {
    let mut table = HtmlTable::sortable();
    for name in ["stage", "method", "phase", "updates", "loss", "norm", "in time"] {
        table.column(name, "", "");
    }
    for phase in phases {
        let whole = |value: u64| HtmlCell::figure(value.to_string(), Some(value as f64));
        table.row(
            "",
            &[
                HtmlCell::text(phase.stage.to_string()),
                HtmlCell::text(&phase.method),
                whole(phase.phase),
                whole(phase.updates),
                HtmlCell::figure(format!("{:.4}", phase.loss), Some(phase.loss)),
                HtmlCell::figure(format!("{:.3}", phase.norm), Some(phase.norm)),
                HtmlCell::figure(percent(phase.score), Some(phase.score)),
            ],
        );
    }
    let hint = if baselines.is_empty() {
        ""
    } else {
        "Level lines: schedulers to beat, on the runs of the verdict, which are other unseen runs than those of the phases."
    };
    let curves = scrolling(&drawn(phases, baselines).inline());
    Page::new("Training").section("", hint, &curves).section("Phases", "", &table.finish()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(phase: u64, score: f64) -> PhaseFigures {
        let (method, updates) = ("dqn <1>".to_string(), 10 * phase);
        PhaseFigures {
            stage: 1,
            method,
            phase,
            updates,
            loss: 0.5,
            norm: 1.0,
            score,
            best: score,
            met: score,
            critical: None,
        }
    }

    #[test]
    fn baselines_are_levels_within_the_picture() {
        let phases = [phase(1, 0.82), phase(2, 0.83)];
        let plain = svg(&phases, &[]);
        let with = svg(&phases, &[("edf".into(), 0.92), ("mh-edf".into(), 0.957)]);
        assert_eq!((plain.matches("<polyline").count(), with.matches("<polyline").count()), (3, 5));
        assert!(with.contains(">edf 92.00%<") && with.contains(">96%<"), "the axis reaches the baselines: {with}");
        assert!(page(&phases, &[]).contains("dqn &lt;1&gt;") && !page(&[], &[]).contains("NaN"));
    }
}
