//! How a training went, as a picture.

use temponet_train::PhaseFigures;

use crate::gantt::escape;
use crate::plot::{Panel, Span, svg as plot};

/// The share of validation jobs in time, phase by phase, and the best so far; the loss beside it, whose meaning changes with the method.
pub fn svg(phases: &[PhaseFigures]) -> String {
    let points = |of: fn(&PhaseFigures) -> f64| -> Vec<(f64, f64)> {
        phases.iter().enumerate().map(|(place, phase)| ((place + 1) as f64, of(phase))).collect()
    };
    let begins = |place: usize| place == 0 || phases[place - 1].stage != phases[place].stage;
    let marks: Vec<(f64, String)> = (0..phases.len())
        .filter(|place| begins(*place))
        .map(|place| ((place + 1) as f64, phases[place].method.clone()))
        .collect();
    let ends = |of: fn(&PhaseFigures) -> f64| {
        phases.iter().map(of).fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    // To whole steps of four per cent, so that the labels are whole.
    let (low, high) = ends(|phase| phase.score);
    let (low, high) = ((low * 25.0).floor() / 25.0, (high * 25.0).ceil() / 25.0);
    let shares = if low < high { Span::Shares(low, high) } else { Span::Shares(0.0, 1.0) };
    let (least, most) = ends(|phase| phase.loss);
    let numbers = Span::Numbers(least.min(0.0), if most > 0.0 { most } else { 1.0 });
    let scores = Panel {
        title: "In time on unseen jobs".into(),
        x_label: "phase",
        curves: vec![points(|phase| phase.best), points(|phase| phase.score), Vec::new()],
        y: shares,
        marks: marks.clone(),
        is_log: false,
    };
    let losses = Panel {
        title: "Mean loss".into(),
        x_label: "phase",
        curves: vec![Vec::new(), Vec::new(), points(|phase| phase.loss)],
        y: numbers,
        marks,
        is_log: false,
    };
    plot(&[scores, losses], 2, &["best so far".into(), "this phase".into(), "loss".into()])
}

/// The same as a page, with its figures.
pub fn page(phases: &[PhaseFigures]) -> String {
    let rows: String = phases
        .iter()
        .map(|p| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.4}</td><td>{:.3}</td><td>{:.2}%</td></tr>",
                p.stage,
                escape(&p.method),
                p.phase,
                p.updates,
                p.loss,
                p.norm,
                100.0 * p.score
            )
        })
        .collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Training</title><style>body{{font:15px system-ui,sans-serif;\
         max-width:1160px;margin:2em auto;padding:0 1em}}td,th{{padding:2px 12px;text-align:right}}</style><h1>Training</h1>{}<table><tr>\
         <th>stage</th><th>method</th><th>phase</th><th>updates</th><th>loss</th><th>norm</th><th>in time</th></tr>{rows}</table></html>\n",
        svg(phases)
    )
}
