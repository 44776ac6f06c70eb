//! Who takes part: TempoNet as it ships and as the paper has it, the rivals that learned, those that search, and the
//! classical schedulers.

use std::sync::Arc;

use temponet::{Model, Options};
use temponet_lab::roster::SHIELDED;

use crate::cache::{model_key, options_key};
use crate::contest::models_entrant;
use crate::plots::Curve;
use crate::rivals::{LEARNED, Ready, SEARCHING};
use crate::{Context, Entrant, Mode, PAPER, READINGS, ReproduceError};

/// CompetitorKind of a competitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompetitorKind {
    TempoNet,
    Learned,
    Search,
    Classical,
}

impl CompetitorKind {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            CompetitorKind::TempoNet => "TempoNet",
            CompetitorKind::Learned => "learned",
            CompetitorKind::Search => "search",
            CompetitorKind::Classical => "classical",
        }
    }

    /// Whether it is one that the paper's TempoNet is held against.
    pub fn is_rival(self) -> bool {
        matches!(self, CompetitorKind::Learned | CompetitorKind::Search)
    }
}

/// One who takes part, or would if it were trained.
pub struct Competitor<'a> {
    pub name: String,
    pub kind: CompetitorKind,
    pub source: &'static str,
    /// The scheduler; none if there is no model of it.
    pub entrant: Option<Entrant<'a>>,
    /// Text that changes with what it would decide.
    pub key: String,
    /// Number of parameters of its network.
    pub parameters: Option<usize>,
    /// Seed and duration of the training, or why there is none.
    pub training: String,
    /// Validation score over the phases of its training, where it was trained here.
    pub curve: Curve,
}

impl Competitor<'_> {
    /// Whether it has a row of its own. Of the classical schedulers only EDF has.
    pub fn is_shown(&self) -> bool {
        self.kind != CompetitorKind::Classical || self.name == "edf"
    }
}

impl Context<'_> {
    /// Returns all who take part; searches judge these numbers of candidates.
    pub fn field(&self, evaluations: &[usize], classical: &[String]) -> Result<Vec<Competitor<'_>>, ReproduceError> {
        let mut field = vec![self.shipped()?];
        field.extend(self.papers_beside_rivals()?);
        for rival in LEARNED {
            let ready = rival.ready(self)?;
            let learned =
                ready.map(|ready| of_model(rival.name, CompetitorKind::Learned, rival.source, ready)).transpose()?;
            field.push(learned.unwrap_or_else(|| Competitor {
                name: rival.name.into(),
                kind: CompetitorKind::Learned,
                source: rival.source,
                entrant: None,
                key: String::new(),
                parameters: None,
                training: format!("not trained: run {}", rival.command()),
                curve: Curve::new(),
            }));
        }
        field.extend(self.searching(evaluations));
        for entrant in self.entrants(classical) {
            field.push(Competitor {
                name: entrant.name.clone(),
                kind: CompetitorKind::Classical,
                source: "",
                key: entrant.name.clone(),
                entrant: Some(entrant),
                parameters: None,
                training: String::new(),
                curve: Curve::new(),
            });
        }
        Ok(field)
    }

    /// Returns the rivals that search, each with its number of evaluations in a search.
    pub fn searching(&self, evaluations: &[usize]) -> Vec<Competitor<'_>> {
        let competitor = |((name, source), evaluations): (&(&'static str, &'static str), &usize)| {
            let spec = format!("{name}:evaluations={evaluations}");
            let mut entrant = self.entrants(std::slice::from_ref(&spec)).pop();
            entrant.iter_mut().for_each(|entrant| entrant.name = name.to_string());
            Competitor {
                name: name.to_string(),
                kind: CompetitorKind::Search,
                source,
                entrant,
                key: spec,
                parameters: None,
                training: format!("none; {evaluations} evaluations"),
                curve: Curve::new(),
            }
        };
        SEARCHING.iter().zip(evaluations).map(competitor).collect()
    }

    /// The paper's own TempoNet with slack alone, and with the remaining work beside it; in the full mode with the budget
    /// of the rivals, and with the long training that is part of the program.
    fn papers_beside_rivals(&self) -> Result<Vec<Competitor<'static>>, ReproduceError> {
        let mut all = Vec::new();
        for (reading, name) in READINGS.iter().zip([PAPER.to_string(), format!("{PAPER}-remaining")]) {
            let long = vec![self.long_trained(reading, false)?];
            if self.mode == Mode::Full {
                all.push((name.clone(), self.papers_of(reading, false)?, "as the rivals"));
                all.push((format!("{name}-long"), long, "docs/results/paper-model.md"));
            } else {
                all.push((name, long, "docs/results/paper-model.md"));
            }
        }
        let competitor = |(name, models, training): (String, Vec<Arc<Model>>, &str)| {
            let ready = Ready { models, seeds: None, seconds: None, rate: None, curve: Curve::new() };
            let competitor = of_model(&name, CompetitorKind::TempoNet, "the paper", ready)?;
            Ok(Competitor { training: training.into(), ..competitor })
        };
        all.into_iter().map(competitor).collect()
    }

    /// The learned scheduler as it ships, or the model that the user names, behind its shield.
    fn shipped(&self) -> Result<Competitor<'_>, ReproduceError> {
        let model = self.model()?;
        Ok(Competitor {
            name: self.roster.label(SHIELDED),
            kind: CompetitorKind::TempoNet,
            source: "this project",
            entrant: self.entrants(&[SHIELDED.to_string()]).pop(),
            key: model_key(model)? + &options_key(&self.roster.options),
            parameters: Some(model.weights.architecture.parameters()),
            training: "docs/model-card.md".into(),
            curve: Curve::new(),
        })
    }
}

/// The models of a training, which run without a shield.
fn of_model(
    name: &str,
    kind: CompetitorKind,
    source: &'static str,
    Ready { models, seeds, seconds, rate, curve }: Ready,
) -> Result<Competitor<'static>, ReproduceError> {
    let known: Vec<String> =
        [seeds, rate.map(|rate| format!("rate {rate}")), seconds.map(|seconds| format!("{seconds:.0} s"))]
            .into_iter()
            .flatten()
            .collect();
    let mut key = String::new();
    for model in &models {
        key += &model_key(model)?;
    }
    Ok(Competitor {
        name: name.into(),
        kind,
        source,
        entrant: Some(models_entrant(name, &models, Options::default(), false)),
        key,
        parameters: models.first().map(|model| model.weights.architecture.parameters()),
        training: if known.is_empty() { "unknown".into() } else { known.join(", ") },
        curve,
    })
}
