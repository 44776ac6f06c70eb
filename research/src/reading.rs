//! Readings of the paper, where it leaves open what a token tells, when decisions are made and what becomes of late
//! jobs. An experiment is carried out in each reading that its protocol names, and its verdict is about the best one.

use temponet::stages::{Feature, Tokenizer};
use temponet_train::{Recipe, Tokens};

use super::findings::{Findings, Verdict};
use super::protocol::Protocol;
use super::result_line::Line;

/// A way to read the paper.
#[derive(Debug, PartialEq)]
pub struct Reading {
    /// Name in protocols and in figures.
    pub name: &'static str,
    /// Name in sentences.
    pub words: &'static str,
    /// What a token tells beside the slack.
    features: &'static [Feature],
    /// Period of additional decisions, in median wcets.
    tick: Option<f64>,
    /// Whether late jobs continue, in training and in the runs.
    continues: bool,
    /// Whether some tasks of the drawn sets are critical.
    is_critical: bool,
}

const PLAIN: Reading =
    Reading { name: "slack", words: "slack alone", features: &[], tick: None, continues: false, is_critical: false };

/// All readings. The first is the default.
pub static READINGS: [Reading; 6] = [
    PLAIN,
    Reading {
        name: "remaining",
        words: "the remaining work beside the slack",
        features: &[Feature::Remaining],
        ..PLAIN
    },
    Reading { name: "ticks", words: "slack alone and a decision at each tick", tick: Some(0.1), ..PLAIN },
    Reading { name: "continue", words: "slack alone, late jobs continuing", continues: true, ..PLAIN },
    Reading {
        name: "remaining_continue",
        words: "the remaining work beside the slack, late jobs continuing",
        features: &[Feature::Remaining],
        continues: true,
        ..PLAIN
    },
    Reading {
        name: "criticality",
        words: "the remaining work and the criticality beside the slack",
        features: &[Feature::Remaining, Feature::Criticality],
        is_critical: true,
        ..PLAIN
    },
];

/// Share of critical tasks in the sets that a reading with criticality learns on, as in the protocols.
const CRITICAL_SHARE: f64 = 0.3;
/// Load per core up to which late jobs go on: any.
const GREATEST_LOAD: f64 = 1_000.0;

impl Reading {
    /// Finds a reading by its name.
    pub fn find(name: &str) -> Option<&'static Reading> {
        READINGS.iter().find(|reading| reading.name == name)
    }

    /// Whether late jobs continue.
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// Returns a recipe in this reading. Only the paper's own tokens are read in another way.
    pub fn of(&self, mut recipe: Recipe) -> Recipe {
        if recipe.tokens == Tokens::Paper && !self.features.is_empty() {
            let tokenizer = Tokenizer { features: self.features.to_vec(), ..Tokenizer::paper() };
            recipe.tokens = Tokens::Custom(Box::new(tokenizer));
        }
        recipe.episode.tick = recipe.episode.tick.or(self.tick);
        if self.continues {
            let late = &mut recipe.workload.variety.get_or_insert_default().keep_late;
            (late.chance, late.range) = (1.0, (0.0, GREATEST_LOAD));
        }
        if self.is_critical {
            (recipe.workload.critical, recipe.workload.critical_share) = (1.0, CRITICAL_SHARE);
        }
        recipe
    }

    /// Puts a protocol into this reading.
    pub fn apply(&self, protocol: &mut Protocol) {
        protocol.recipe = self.of(protocol.recipe.clone());
        if self.continues {
            protocol.workload.values_mut().for_each(|workload| workload.on_miss = "continue".into());
        }
    }
}

/// Returns the findings of the reading that is best for the paper, with the figures of the others under the names of
/// their readings. The best one has the verdict that grants the paper most; among equals, the one whose judged figures
/// are the greatest beside the paper's.
pub fn together(mut all: Vec<(&'static Reading, Findings)>) -> Option<Findings> {
    let rank = |(_, findings): &(&Reading, Findings)| {
        let judged: Vec<f64> =
            findings.lines.iter().filter(|line| line.is_headline).filter_map(Line::gain_over_paper).collect();
        (granted(findings.verdict), -judged.iter().sum::<f64>() / judged.len().max(1) as f64)
    };
    let best = (0..all.len()).min_by(|a, b| {
        let (a, b) = (rank(&all[*a]), rank(&all[*b]));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let (reading, mut findings) = all.remove(best);
    if all.is_empty() {
        return Some(findings);
    }
    let mut sentence = format!(
        "{}; this is the best of {} readings: {}",
        findings.sentence.trim_end_matches('.'),
        all.len() + 1,
        reading.words
    );
    for (other, read) in all {
        sentence += &format!("; with {}: {}", other.words, read.verdict.name());
        let lines = read.lines.into_iter().filter(|line| {
            findings
                .line(&line.name)
                .is_none_or(|known| (known.ours, &known.references) != (line.ours, &line.references))
        });
        let named: Vec<Line> = lines
            .map(|line| Line { name: format!("{}_{}", other.name, line.name), is_headline: false, ..line })
            .collect();
        findings.lines.extend(named);
        let notes = read.notes.into_iter().filter(|note| !findings.notes.contains(note));
        let notes: Vec<String> = notes.map(|note| format!("{}: {note}", other.words)).collect();
        findings.notes.extend(notes);
    }
    findings.sentence = sentence + ".";
    Some(findings)
}

/// Rank of a verdict by how much it grants the paper; 0 grants the most.
fn granted(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Reproduced => 0,
        Verdict::Better => 1,
        Verdict::NoFigure => 2,
        Verdict::Undecided => 3,
        Verdict::Worse => 4,
        Verdict::Refuted => 5,
        Verdict::Impossible => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result_line::RepeatedMean;

    fn recipe_file(name: &str) -> Recipe {
        crate::register();
        let path = format!("{}/recipes/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn the_readings_are_those_of_the_recipes() {
        for (reading, file) in
            [("slack", "dqn-paper"), ("remaining", "dqn-paper-remaining"), ("ticks", "dqn-paper-ticks")]
        {
            let read = Reading::find(reading).unwrap().of(crate::learner::paper());
            let file = recipe_file(file);
            assert_eq!(read.tokenizer(), file.tokenizer(), "{reading}");
            assert_eq!(Recipe { tokens: Tokens::Paper, ..read }, Recipe { tokens: Tokens::Paper, ..file }, "{reading}");
        }
    }

    #[test]
    fn the_verdict_is_about_the_best_reading_and_names_it() {
        let of = |verdict, mean: f64| {
            let mut findings = Findings::blank("E0");
            findings.paper.insert("met".into(), 0.8);
            findings.add(Line::share("met", RepeatedMean::single(mean)).headline());
            findings.add(Line::neither("edf", crate::Unit::Share, 0.5));
            findings.conclude(verdict, "so it is");
            findings
        };
        let all = vec![(&READINGS[0], of(Verdict::Worse, 0.7)), (&READINGS[1], of(Verdict::Worse, 0.75))];
        let best = together(all).unwrap();
        let names: Vec<(&str, bool)> = best.lines.iter().map(|line| (line.name.as_str(), line.is_headline)).collect();
        assert_eq!(names, [("met", true), ("edf", false), ("slack_met", false)], "EDF is the same in both");
        let end = "the best of 2 readings: the remaining work beside the slack; with slack alone: worse.";
        assert!((best.value("met") - 0.75).abs() < 1e-12 && best.sentence.ends_with(end), "{}", best.sentence);
        let all = vec![(&READINGS[0], of(Verdict::Undecided, 0.7)), (&READINGS[1], of(Verdict::Worse, 0.75))];
        assert_eq!(together(all).unwrap().verdict, Verdict::Undecided);
    }

    #[test]
    fn where_late_jobs_continue_they_do_in_training_and_in_the_runs() {
        crate::register();
        let mut protocol = Protocol::parse("E4", crate::find("E4").unwrap().protocol).unwrap();
        Reading::find("remaining_continue").unwrap().apply(&mut protocol);
        assert!(protocol.workload.values().all(|workload| workload.on_miss == "continue"));
        assert_eq!(protocol.recipe.workload.variety.as_ref().unwrap().keep_late.chance, 1.0);
        assert_eq!(protocol.recipe.tokenizer().features, [Feature::Remaining]);
    }
}
