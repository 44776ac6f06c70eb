//! Is what was learned worth using? The learned scheduler against every other one on jobs that training never saw, pair by pair.

use rayon::prelude::*;
use serde::Serialize;
use temponet_sim::SimError;

use crate::arena::{Case, Metric, possible, score};
use crate::comparison::CompareError;
use crate::roster::{Roster, SHIELDED, UNSHIELDED};
use crate::stats;

/// One scheduler's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// Mean share of jobs in time.
    pub compliance: f64,
    /// Half its 95% confidence interval over the trials.
    pub ci95: Option<f64>,
    #[serde(skip)]
    scores: Vec<f64>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The learned scheduler behind its shield.
    pub temponet: Judged,
    /// Without it.
    pub unshielded: Judged,
    /// The other ones that apply to every trial, the best first.
    pub others: Vec<Judged>,
    /// Mean over the trials of what any scheduler could have met, or a bound on it.
    pub clairvoyant: f64,
    /// The learned one less the best other one, trial by trial.
    pub difference: f64,
    /// Half its 95% confidence interval.
    pub difference_ci95: Option<f64>,
    /// Trials.
    pub trials: usize,
}

/// Runs the learned scheduler and every other one named that applies on all trials. `oracle` is how many seconds of one core the optimum of each
/// trial may take.
pub fn judge(roster: &Roster, others: &[String], trials: &[Case], oracle: f64) -> Result<Verdict, CompareError> {
    let judged = |name: &str| -> Result<Judged, CompareError> {
        let one = |trial: &Case| -> Result<f64, CompareError> {
            let outcome = score(Metric::Compliance, trial, &mut *roster.build(name)?);
            Ok(outcome.map_err(|error| CompareError::Run(name.into(), error))?.score)
        };
        let scores = trials.par_iter().map(one).collect::<Result<Vec<f64>, CompareError>>()?;
        let (compliance, ci95) = (stats::mean(&scores), stats::ci95(&scores));
        Ok(Judged { name: name.into(), compliance, ci95, scores })
    };
    let mut rivals = Vec::new();
    for name in others {
        match judged(name) {
            Err(CompareError::Run(_, SimError::NotApplicable(_))) => {}
            outcome => rivals.push(outcome?),
        }
    }
    rivals.sort_by(|a, b| b.compliance.total_cmp(&a.compliance));
    let (temponet, unshielded) = (judged(SHIELDED)?, judged(UNSHIELDED)?);
    let upper = |trial: &Case| possible(Metric::Compliance, oracle, trial).upper;
    let clairvoyant = stats::mean(&trials.par_iter().map(upper).collect::<Vec<f64>>());
    let best: &[f64] = rivals.first().map_or(&[], |best| &best.scores);
    let (difference, difference_ci95) = stats::paired_difference(&temponet.scores, best);
    let trials = trials.len();
    Ok(Verdict { temponet, unshielded, others: rivals, clairvoyant, difference, difference_ci95, trials })
}

impl Verdict {
    /// What to do, in one sentence.
    pub fn sentence(&self) -> String {
        let Some(best) = self.others.first() else {
            return "No other scheduler applies to compare with.".into();
        };
        let points = |share: f64| format!("{:.2} points", 100.0 * share.abs());
        let interval = self.difference_ci95.map(|half| format!(" ± {:.2}", 100.0 * half)).unwrap_or_default();
        let is_clear = self.difference_ci95.is_some_and(|half| self.difference.abs() > half);
        let name = &best.name;
        match (is_clear, self.difference > 0.0) {
            (true, true) => {
                format!(
                    "Use it: it meets {}{interval} more than {name}, the best other scheduler here.",
                    points(self.difference)
                )
            }
            (true, false) => {
                format!(
                    "Use {name} instead: it meets {}{interval} more than what was learned.",
                    points(self.difference)
                )
            }
            (false, _) => format!(
                "No difference to {name}, the best other scheduler here, can be told ({:+.2}{interval} points): {name} is simpler.",
                100.0 * self.difference
            ),
        }
    }
}
