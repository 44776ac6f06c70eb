//! The course of a training: curves as a picture, and a page with all figures.

use temponet_train::PhaseFigures;
use temponet_wording::counted;

use temponet_lab::stats::percent;
use temponet_page::fragment::figures;
use temponet_page::plot::{Panel, Span, picture};
use temponet_page::{HtmlCell, HtmlTable, Page};

use crate::verdict::TrainingVerdict;

/// A scheduler to beat: its name, and its share of deadlines met on unseen jobs, 0 to 1.
pub type Baseline = (String, f64);

/// Draws the course of a training as an SVG file. One chart has the share of deadlines met on validation jobs, phase by
/// phase, that of the critical jobs, and each baseline as a level. If the weights are chosen by another score, such as a
/// value, a chart of its own has that. The last one has the loss, whose meaning changes with the method.
pub fn svg(phases: &[PhaseFigures], baselines: &[Baseline]) -> String {
    let (panels, names) = panels(phases, baselines);
    picture(&panels, panels.len(), &names).file()
}

/// Names of the curves before the baselines.
const CURVES: [&str; 5] = ["in time", "critical in time", "score", "best so far", "loss"];

/// Returns the charts and the names of their curves.
fn panels(phases: &[PhaseFigures], baselines: &[Baseline]) -> (Vec<Panel>, Vec<String>) {
    let points = |of: &dyn Fn(&PhaseFigures) -> Option<f64>| -> Vec<(f64, f64)> {
        let numbered = phases.iter().enumerate();
        numbered.filter_map(|(place, phase)| Some(((place + 1) as f64, of(phase)?))).collect()
    };
    let begins = |place: usize| place == 0 || phases[place - 1].stage != phases[place].stage;
    let marks: Vec<(f64, String)> = (0..phases.len())
        .filter(|place| begins(*place))
        .map(|place| ((place + 1) as f64, phases[place].method.clone()))
        .collect();
    // Weights are chosen by the share in time itself where all jobs are worth the same.
    let is_plain = phases.iter().all(|phase| phase.score == phase.met);
    let of_best = |is_asked: bool| if is_asked { points(&|phase| Some(phase.best)) } else { Vec::new() };
    let panel = |title: &str, curves: Vec<Vec<(f64, f64)>>, is_share: bool| {
        let values = curves.iter().flatten().map(|(_, value)| *value);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let y = match is_share {
            // Rounded to multiples of four percent, so that all labels of the axis are whole.
            true => match ((low * 25.0).floor() / 25.0, (high * 25.0).ceil() / 25.0) {
                (low, high) if low < high => Span::Shares(low, high),
                _ => Span::Shares(0.0, 1.0),
            },
            false => match (low.min(0.0), high.max(0.0)) {
                (low, high) if low < high => Span::Numbers(low, high),
                _ => Span::Numbers(0.0, 1.0),
            },
        };
        Panel { title: title.into(), x_label: "phase", curves, y, marks: marks.clone(), is_log: false }
    };
    let mut shares = vec![points(&|phase| Some(phase.met)), points(&|phase| phase.critical), Vec::new()];
    shares.extend([of_best(is_plain), Vec::new()]);
    shares.extend(baselines.iter().map(|(_, share)| points(&|_| Some(*share))));
    let mut panels = vec![panel("In time on unseen jobs", shares, true)];
    if !is_plain {
        let score = points(&|phase| Some(phase.score));
        panels.push(panel(
            "Score that weights are chosen by",
            vec![Vec::new(), Vec::new(), score, of_best(true)],
            true,
        ));
    }
    let loss = points(&|phase| Some(phase.loss));
    panels.push(panel("Mean loss", vec![Vec::new(), Vec::new(), Vec::new(), Vec::new(), loss], false));
    let mut names: Vec<String> = CURVES.map(String::from).to_vec();
    names.extend(baselines.iter().map(|(name, share)| format!("{name} {}", percent(*share))));
    (panels, names)
}

/// What a training was about.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Name of the set that was learned on; "random sets" if the recipe draws them.
    pub set: String,
    /// How it was judged.
    pub facts: String,
    /// Sentence of the verdict.
    pub verdict: String,
}

impl About {
    /// Describes a training that is still running or was interrupted.
    pub fn unfinished(set: Option<&str>) -> About {
        let facts = "curves so far".into();
        About { set: set.unwrap_or("random sets").into(), facts, verdict: "The training is not finished.".into() }
    }

    /// Describes a training on a set, or on sets that the recipe draws, from its verdict.
    pub fn of(set: Option<&str>, verdict: &TrainingVerdict) -> About {
        let runs = counted(verdict.trials, "unseen run");
        let facts = format!("judged on {runs}, by the goal: {}", verdict.goal());
        About { set: set.unwrap_or("random sets").into(), facts, verdict: verdict.sentence() }
    }
}

/// Returns a page with set, verdict, the curves and their figures.
pub fn page(phases: &[PhaseFigures], baselines: &[Baseline], about: &About) -> String {
    let mut table = HtmlTable::sortable();
    for name in ["stage", "method", "phase", "updates", "loss", "norm", "score", "in time", "critical in time"] {
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
                HtmlCell::figure(percent(phase.met), Some(phase.met)),
                HtmlCell::figure(phase.critical.map_or("–".into(), percent), phase.critical),
            ],
        );
    }
    let hint = if baselines.is_empty() {
        ""
    } else {
        "Level lines: schedulers to beat, on the runs of the verdict, which are other unseen runs than those of the phases."
    };
    let (panels, names) = panels(phases, baselines);
    let charts = panels.iter().map(|panel| picture(std::slice::from_ref(panel), 1, &names).inline());
    let curves = figures(&charts.collect::<String>());
    Page::new(&format!("Training on {}", about.set))
        .facts(&about.facts)
        .verdict(&about.verdict)
        .section("", hint, &curves)
        .section("Phases", "", &table.finish())
        .finish()
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
            skipped: 0,
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
        let about = About { set: "<robot>".into(), facts: "judged".into(), verdict: "Use it.".into() };
        let html = page(&phases, &[], &about);
        assert!(html.contains("dqn &lt;1&gt;") && !page(&[], &[], &about).contains("NaN"));
        assert!(html.contains("Training on &lt;robot&gt;") && html.contains("<p class=\"verdict\">Use it.</p>"));
    }

    #[test]
    fn what_is_not_a_share_in_time_has_an_axis_of_its_own() {
        let worth = PhaseFigures { score: 0.4, best: 0.4, critical: Some(0.99), ..phase(1, 0.82) };
        let more = PhaseFigures { score: 0.5, best: 0.5, critical: Some(0.98), ..phase(2, 0.83) };
        let picture = svg(&[worth, more], &[("edf".into(), 0.9)]);
        assert!(picture.contains("Score that weights are chosen by"), "{picture}");
        assert!(picture.contains(">80%<") && picture.contains(">40%<"), "two axes: {picture}");
    }
}
