//! What came of an experiment: our figures beside the paper's and those of EDF, the best classical scheduler and the optimum, pictures, and a
//! verdict that follows from the figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::line::{Better, Line, Noise, Standing};
use super::protocol::Mode;

/// What to conclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The same figures.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Better ones.
    #[serde(rename = "better")]
    Better,
    /// Worse ones.
    #[serde(rename = "worse")]
    Worse,
    /// What is claimed cannot be, or cannot be checked from what the paper says.
    #[serde(rename = "not reproducible")]
    NotReproducible,
}

impl Verdict {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NotReproducible => "not reproducible",
        }
    }
}

/// A table of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingsTable {
    /// Above it.
    pub title: String,
    /// The columns.
    pub header: Vec<String>,
    /// The rows, as text.
    pub rows: Vec<Vec<String>>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Above it.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// The picture itself.
    pub svg: String,
}

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Such as `E1`.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// What the paper did and says.
    pub claim: String,
    /// How we read it.
    pub reading: String,
    /// `quick` or `full`.
    pub mode: String,
    /// The paper's figures by name.
    pub paper: BTreeMap<String, f64>,
    /// How far from them ours may be to count as the same.
    #[serde(skip)]
    pub tolerance: BTreeMap<String, f64>,
    /// The figures.
    pub lines: Vec<Line>,
    /// Further tables.
    pub tables: Vec<FindingsTable>,
    /// Pictures.
    pub pictures: Vec<Picture>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// What to conclude.
    pub verdict: Verdict,
    /// That in one sentence.
    pub sentence: String,
    /// How long it took.
    pub seconds: f64,
    /// The protocol file.
    pub protocol: String,
}

impl Findings {
    /// Adds a figure, with the paper's of that name beside it. One that is no number is left out, and said to be.
    pub fn add(&mut self, line: Line) {
        if !line.ours.mean.is_finite() {
            return self.notes.push(format!("{}: there is no figure", line.name));
        }
        let (paper, tolerance) = (self.paper.get(&line.name).copied(), self.tolerance.get(&line.name).copied());
        self.lines.push(Line { paper: line.paper.or(paper), tolerance: line.tolerance.or(tolerance), ..line });
    }

    /// The figure of a name.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// Concludes from the headline figures that the paper has as well: worse if one is, better if none is worse and one is better; where one cannot
    /// be told, neither can the whole. `beside` says what else there is to know, such as what EDF and the optimum come to.
    pub fn judge(&mut self, beside: &str) {
        self.judge_headlines(beside, Verdict::Worse);
    }

    /// Concludes about claimed differences: one that ours does not come near is not found here.
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

    /// Concludes.
    pub fn conclude(&mut self, verdict: Verdict, sentence: &str) {
        let name = verdict.name();
        self.verdict = verdict;
        self.sentence = format!("{}{}: {sentence}.", name[..1].to_uppercase(), &name[1..]);
    }

    /// Figures that say little in this mode.
    pub fn noisy(&self) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.noise().is_some()).collect()
    }

    /// Adds a picture.
    pub fn picture(&mut self, title: &str, caption: &str, svg: String) {
        self.pictures.push(Picture { title: title.into(), caption: caption.into(), svg });
    }

    /// Whether this was a short look.
    pub fn is_quick(&self) -> bool {
        self.mode != Mode::Full.name()
    }
}

/// A figure's name in a sentence.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::super::line::tests::line;
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
