//! The result of an experiment: its figures, tables and pictures, and a verdict that follows from the figures.
//!
//! Findings are plain data that the cache stores as JSON. `page` and the command line show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::protocol::Mode;
use super::result_line::{Better, Claim, Line, Standing};
use temponet_lab::stats::percent;

/// Conclusion of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Our measurement says what the paper says, at either end of its interval.
    Reproduced,
    /// Our figures are better than the paper's.
    Better,
    /// Our figures are worse than the paper's.
    Worse,
    /// Our measurement contradicts a claim, and so does all of its interval.
    Refuted,
    /// What the paper reports cannot be: there is a proof.
    Impossible,
    /// Our intervals are too wide to tell.
    Undecided,
    /// The paper has no figure to hold ours against.
    #[serde(rename = "no figure in the paper")]
    NoFigure,
}

impl Verdict {
    /// Every verdict, in the order of summaries.
    pub const ALL: [Verdict; 7] = [
        Verdict::Reproduced,
        Verdict::Better,
        Verdict::Worse,
        Verdict::Refuted,
        Verdict::Impossible,
        Verdict::Undecided,
        Verdict::NoFigure,
    ];

    /// Returns the name used in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Refuted => "refuted",
            Verdict::Impossible => "impossible",
            Verdict::Undecided => "undecided",
            Verdict::NoFigure => "no figure in the paper",
        }
    }
}

/// An additional table of an experiment. Its cells are text; the figures that are judged are [`Line`]s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingsTable {
    /// Heading above the table.
    pub title: String,
    /// Column headings.
    pub header: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl FindingsTable {
    /// A table with fixed column headings.
    pub fn new(title: impl Into<String>, header: &[&str], rows: Vec<Vec<String>>) -> FindingsTable {
        FindingsTable { title: title.into(), header: header.iter().map(|column| column.to_string()).collect(), rows }
    }
}

/// A picture of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Heading above the picture.
    pub title: String,
    /// Explanation below the picture.
    pub caption: String,
    /// The picture as an SVG element.
    pub svg: String,
}

/// Result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Identifier of the experiment, such as `E1`.
    pub id: String,
    /// Title of the experiment.
    pub title: String,
    /// What the paper did and claims.
    pub claim: String,
    /// How the claim is interpreted here.
    pub reading: String,
    /// Name of the mode: `smallest`, `quick` or `full`.
    pub mode: String,
    /// The paper's figures by name.
    pub paper: BTreeMap<String, f64>,
    /// Greatest difference from the paper's figure that counts as equal, by name.
    #[serde(skip)]
    pub tolerance: BTreeMap<String, f64>,
    /// Figures of the experiment.
    pub lines: Vec<Line>,
    /// Additional tables.
    pub tables: Vec<FindingsTable>,
    /// Pictures.
    pub pictures: Vec<Picture>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// Conclusion.
    pub verdict: Verdict,
    /// Conclusion as one sentence.
    pub sentence: String,
    /// Wall-clock duration of the run, in seconds.
    pub seconds: f64,
    /// Text of the protocol file.
    pub protocol: String,
}

impl Findings {
    /// Findings without any content.
    pub(crate) fn blank(id: &str) -> Findings {
        Findings {
            id: id.into(),
            title: String::new(),
            claim: String::new(),
            reading: String::new(),
            mode: String::new(),
            paper: BTreeMap::new(),
            tolerance: BTreeMap::new(),
            lines: Vec::new(),
            tables: Vec::new(),
            pictures: Vec::new(),
            notes: Vec::new(),
            verdict: Verdict::NoFigure,
            sentence: String::new(),
            seconds: 0.0,
            protocol: String::new(),
        }
    }

    /// Adds a figure and puts the paper's figure of the same name beside it. A figure that is not finite is replaced by
    /// a note.
    pub fn add(&mut self, line: Line) {
        if !line.ours.mean.is_finite() {
            return self.notes.push(format!("{}: there is no figure", line.name));
        }
        let (paper, tolerance) = (self.paper.get(&line.name).copied(), self.tolerance.get(&line.name).copied());
        self.lines.push(Line { paper: line.paper.or(paper), tolerance: line.tolerance.or(tolerance), ..line });
    }

    /// Returns the line with this name.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// Returns our figure with this name; NaN if there is none.
    pub fn value(&self, name: &str) -> f64 {
        self.line(name).map_or(f64::NAN, |line| line.ours.mean)
    }

    /// Formats our figure with this name in percent; a dash if there is none.
    pub fn percent(&self, name: &str) -> String {
        self.line(name).map_or("–".into(), |line| percent(line.ours.mean))
    }

    /// Returns the paper's figure with this name; NaN if there is none.
    pub fn paper_value(&self, name: &str) -> f64 {
        self.paper.get(name).copied().unwrap_or(f64::NAN)
    }

    /// Derives the verdict from the headline figures of which the paper says something.
    ///
    /// The verdict is *refuted* if an order that the paper claims is the other way round, or if a figure differs of which
    /// neither direction is better. Otherwise it is *worse* if one figure is worse, *undecided* if one is undecided,
    /// *better* if one is better, and *reproduced* if all are the same. `beside` ends the sentence with further facts,
    /// such as the figures of EDF and of the optimum.
    pub fn judge(&mut self, beside: &str) {
        self.judge_headlines(beside, Verdict::Worse);
    }

    /// Derives the verdict on claimed differences: a claim that our figures do not reach is *refuted* rather than
    /// *worse*.
    pub fn judge_claim(&mut self, beside: &str) {
        self.judge_headlines(beside, Verdict::Refuted);
    }

    fn judge_headlines(&mut self, beside: &str, if_worse: Verdict) {
        let judged = |line: &&Line| line.is_headline && line.standing().is_some();
        let headlines: Vec<&Line> = self.lines.iter().filter(judged).collect();
        let any = |standing| headlines.iter().any(|line| line.standing() == Some(standing));
        let is_refuted = |line: &&&Line| line.claim == Claim::Order || line.better == Better::Neither;
        let worse: Vec<&&Line> = headlines.iter().filter(|line| line.standing() == Some(Standing::Worse)).collect();
        let verdict = match () {
            () if headlines.is_empty() => Verdict::NoFigure,
            () if worse.iter().any(is_refuted) => Verdict::Refuted,
            () if !worse.is_empty() => if_worse,
            () if any(Standing::Undecided) => Verdict::Undecided,
            () if any(Standing::Better) => Verdict::Better,
            () => Verdict::Reproduced,
        };
        let figures = headlines.iter().map(|line| against(line)).collect::<Vec<_>>().join("; ");
        let text = if figures.is_empty() { beside.to_string() } else { format!("{figures}; {beside}") };
        self.conclude(verdict, text.trim_end_matches([';', ' ']));
    }

    /// Sets the verdict and its sentence.
    pub fn conclude(&mut self, verdict: Verdict, sentence: &str) {
        let name = verdict.name();
        self.verdict = verdict;
        self.sentence = format!("{}{}: {sentence}.", name[..1].to_uppercase(), &name[1..]);
    }

    /// Returns the figures that carry little evidence in this mode.
    pub fn noisy(&self) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.noise().is_some()).collect()
    }

    /// Adds a picture.
    pub fn picture(&mut self, title: &str, caption: &str, svg: String) {
        self.pictures.push(Picture { title: title.into(), caption: caption.into(), svg });
    }

    /// Whether the run was shorter than a full one.
    pub fn is_quick(&self) -> bool {
        self.mode != Mode::Full.name()
    }
}

/// Describes how a headline stands against what the paper says.
fn against(line: &Line) -> String {
    let (name, shown) = (words(&line.name), line.shown());
    let claimed = match line.claim {
        Claim::Order => "which the paper has above zero".into(),
        Claim::Value => {
            format!("against the paper's {}", line.paper.map(|paper| line.unit.show(paper)).unwrap_or_default())
        }
    };
    let text = format!("{name} {shown} {claimed}");
    if line.standing() != Some(Standing::Undecided) {
        return text;
    }
    let needed = match line.repetitions_to_decide() {
        Some(count @ ..100_000) => format!("about {count} repetitions would decide"),
        Some(_) => "more repetitions than anybody would make would decide".into(),
        None => "one measurement decides nothing".into(),
    };
    format!("{text}, which its interval does not tell apart ({needed})")
}

/// Returns the name of a figure or a variant as words.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::super::result_line::{RepeatedMean, tests::line};
    use super::*;

    fn findings(lines: Vec<Line>) -> Findings {
        Findings { lines, mode: "quick".into(), ..Findings::blank("E0") }
    }

    #[test]
    fn a_wide_interval_makes_no_verdict() {
        let better = line(1.0, Some(0.0), 5, 0.901).headline();
        let mut undecided = findings(vec![line(0.70, Some(0.35), 10, 0.982).headline(), better.clone()]);
        undecided.judge("EDF meets all");
        assert_eq!(undecided.verdict, Verdict::Undecided);
        let words = "which its interval does not tell apart (one measurement decides nothing); x 100.00% ± 0.00 against the paper's 90.10%; EDF meets all.";
        assert!(undecided.sentence.ends_with(words), "{}", undecided.sentence);
        let mut worse = findings(vec![line(0.70, Some(0.05), 10, 0.982).headline(), better.clone()]);
        worse.judge("");
        assert_eq!(worse.verdict, Verdict::Worse);
        worse.judge_claim("");
        assert_eq!(worse.verdict, Verdict::Refuted);
        let mut same = findings(vec![line(0.98, Some(0.005), 10, 0.982).headline(), better]);
        same.judge("");
        assert_eq!(same.verdict, Verdict::Better, "one is the same, the other better");
        let mut none = findings(vec![line(0.98, Some(0.005), 10, 0.982)]);
        none.judge("");
        assert_eq!(none.verdict, Verdict::NoFigure, "nothing is judged");
    }

    #[test]
    fn an_order_that_is_the_other_way_round_refutes_what_better_figures_hide() {
        let lead = Line::order("lead over the other", vec![-0.01, -0.012, -0.011]);
        let mut findings = findings(vec![line(0.98, Some(0.005), 10, 0.87).headline(), lead]);
        findings.judge("");
        assert_eq!(findings.verdict, Verdict::Refuted);
        assert!(findings.sentence.contains("-1.10% ± 0.25 which the paper has above zero"), "{}", findings.sentence);
    }

    #[test]
    fn a_wide_interval_does_not_confirm_a_claim() {
        let ours = RepeatedMean { mean: 0.0445, deviation: Some(0.063), ci95: None, count: Some(2) };
        let mut findings = findings(vec![Line { ours, ..line(0.0, None, 2, 0.051) }.headline()]);
        findings.judge_claim("EDF meets all");
        assert_eq!(findings.verdict, Verdict::Undecided);
        let words = "against the paper's 5.10%, which its interval does not tell apart (about 1248 repetitions would decide); EDF meets all.";
        assert!(findings.sentence.ends_with(words), "{}", findings.sentence);
        findings.lines = vec![line(0.048, Some(0.002), 9, 0.05).headline()];
        findings.judge_claim("EDF meets all");
        assert_eq!(findings.verdict, Verdict::Reproduced);
        assert!(findings.sentence.ends_with("the paper's 5.00%; EDF meets all."), "{}", findings.sentence);
    }
}
