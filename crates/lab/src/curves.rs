//! How a training went, as a picture.

use temponet_train::PhaseFigures;

use crate::gantt::escape;
use crate::plot::{Panel, svg as plot};

/// The share of validation jobs in time, phase by phase, and the best so far.
pub fn svg(phases: &[PhaseFigures]) -> String {
    let points = |of: fn(&PhaseFigures) -> f64| -> Vec<(f64, f64)> {
        phases.iter().enumerate().map(|(place, phase)| ((place + 1) as f64, of(phase))).collect()
    };
    let most = phases.iter().map(|phase| phase.loss.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let loss =
        phases.iter().enumerate().map(|(place, phase)| ((place + 1) as f64, (phase.loss / most).clamp(0.0, 1.0)));
    let scores = Panel {
        title: "In time on unseen jobs".into(),
        x_label: "phase",
        curves: vec![points(|phase| phase.score), points(|phase| phase.best), Vec::new()],
    };
    let losses = Panel {
        title: format!("Loss, as a share of its greatest, {most:.3}"),
        x_label: "phase",
        curves: vec![Vec::new(), Vec::new(), loss.collect()],
    };
    plot(&[scores, losses], 2, &["this phase".into(), "best so far".into(), "loss".into()])
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
