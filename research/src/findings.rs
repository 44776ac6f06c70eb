//! The result of an experiment: its figures, tables and pictures, and a verdict that follows from the figures.
//!
//! Findings are plain data that the cache stores as JSON. `page` and the command line show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::protocol::Mode;
use super::result_line::{Better, Line, Noise, Standing};
use temponet_lab::stats::percent;

/// Conclusion of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Our figures equal the paper's.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Our figures are better than the paper's.
    #[serde(rename = "better")]
    Better,
    /// Our figures are worse than the paper's.
    #[serde(rename = "worse")]
    Worse,
    /// The claim is impossible, or cannot be checked with what the paper states.
    #[serde(rename = "not reproducible")]
    NotReproducible,
}

impl Verdict {
    /// Returns the name used in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NotReproducible => "not reproducible",
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

    /// Derives the verdict from the headline figures that the paper has as well.
    ///
    /// The verdict is *worse* if one figure is worse. Otherwise it is *not reproducible* if one figure is undecided,
    /// *better* if one is better, and *reproduced* if all are the same. `beside` ends the sentence with further facts,
    /// such as the figures of EDF and of the optimum.
    pub fn judge(&mut self, beside: &str) {
        self.judge_headlines(beside, Verdict::Worse);
    }

    /// Derives the verdict on claimed differences: a claim that our figures do not reach is *not reproducible* rather
    /// than *worse*.
    pub fn judge_claim(&mut self, beside: &str) {
        let is_noise = |line: &Line| line.is_headline && line.noise() == Some(Noise::Few);
        let noise = if self.lines.iter().any(is_noise) { "; so few seeds are mere noise" } else { "" };
        self.judge_headlines(&format!("{beside}{noise}"), Verdict::NotReproducible);
    }

    fn judge_headlines(&mut self, beside: &str, if_worse: Verdict) {
        let judged = |line: &&Line| line.is_headline && line.standing().is_some();
        let headlines: Vec<&Line> = self.lines.iter().filter(judged).collect();
        let any = |standing| headlines.iter().any(|line| line.standing() == Some(standing));
        let verdict = match () {
            () if headlines.is_empty() => Verdict::NotReproducible,
            () if any(Standing::Worse) => if_worse,
            () if any(Standing::Undecided) => Verdict::NotReproducible,
            () if any(Standing::Better) => Verdict::Better,
            () => Verdict::Reproduced,
        };
        let against = |line: &&Line| {
            let paper = line.paper.map(|paper| line.unit.show(paper)).unwrap_or_default();
            let undecided = match (line.standing(), line.better) {
                (Some(Standing::Undecided), Better::Neither) => {
                    ", apart by less than its interval and so not to be told"
                }
                (Some(Standing::Undecided), _) => ", worse by less than its interval and so not to be told",
                _ => "",
            };
            format!("{} {} against the paper's {paper}{undecided}", words(&line.name), line.shown())
        };
        let figures = headlines.iter().map(against).collect::<Vec<_>>().join("; ");
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

/// Returns the name of a figure or a variant as words.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::super::result_line::tests::line;
    use super::*;

    fn findings(lines: Vec<Line>) -> Findings {
        Findings {
            id: "E0".into(),
            title: String::new(),
            claim: String::new(),
            reading: String::new(),
            mode: "quick".into(),
            paper: BTreeMap::new(),
            tolerance: BTreeMap::new(),
            lines,
            tables: Vec::new(),
            pictures: Vec::new(),
            notes: Vec::new(),
            verdict: Verdict::Reproduced,
            sentence: String::new(),
            seconds: 0.0,
            protocol: String::new(),
        }
    }

    #[test]
    fn a_wide_interval_makes_no_verdict() {
        let better = line(1.0, Some(0.0), 5, 0.901).headline();
        let mut undecided = findings(vec![line(0.70, Some(0.35), 10, 0.982).headline(), better.clone()]);
        undecided.judge("EDF meets all");
        assert_eq!(undecided.verdict, Verdict::NotReproducible);
        let words = "98.20%, worse by less than its interval and so not to be told; x 100.00% ± 0.00 against the paper's 90.10%; EDF meets all.";
        assert!(undecided.sentence.ends_with(words), "{}", undecided.sentence);
        let mut worse = findings(vec![line(0.70, Some(0.05), 10, 0.982).headline(), better.clone()]);
        worse.judge("");
        assert_eq!(worse.verdict, Verdict::Worse);
        worse.judge_claim("");
        assert_eq!(worse.verdict, Verdict::NotReproducible);
        let mut same = findings(vec![line(0.98, Some(0.05), 10, 0.982).headline(), better]);
        same.judge("");
        assert_eq!(same.verdict, Verdict::Better, "one is the same, the other better");
    }

    #[test]
    fn a_wide_interval_does_not_confirm_a_claim() {
        let mut findings = findings(vec![line(-0.01, Some(0.2), 2, 0.05).headline()]);
        findings.judge_claim("EDF meets all");
        assert_eq!(findings.verdict, Verdict::NotReproducible);
        assert!(findings.sentence.ends_with("EDF meets all; so few seeds are mere noise."), "{}", findings.sentence);
        findings.lines = vec![line(0.048, Some(0.002), 9, 0.05).headline()];
        findings.judge_claim("EDF meets all");
        assert_eq!(findings.verdict, Verdict::Reproduced);
        assert!(findings.sentence.ends_with("the paper's 5.00%; EDF meets all."), "{}", findings.sentence);
    }
}
