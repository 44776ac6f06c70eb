//! Whether a learned scheduler is worth using: its verdict against all other schedulers, on jobs that training never
//! saw, trial by trial, by the goal of their sets.

use rayon::prelude::*;
use serde::Serialize;
use temponet_sim::labels;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Aim, Goal, Measure};

use temponet_lab::arena::{Case, possible};
use temponet_lab::comparison::ranking::{self, Edge};
use temponet_lab::comparison::{CompareError, listed};
use temponet_lab::roster::{Roster, SHIELDED, UNSHIELDED};
use temponet_lab::stats::{self, percent};

/// Figures of one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedScheduler {
    /// Scheduler name with options.
    pub name: String,
    /// Mean share of deadlines met, 0 to 1.
    pub compliance: f64,
    /// Half the width of its 95% confidence interval over the trials; `None` for a single trial.
    pub ci95: Option<f64>,
    /// Means of the goal's measures.
    pub goal: Vec<f64>,
    /// Tasks that never meet a deadline, if all trials have the same tasks.
    pub starved: Vec<String>,
    #[serde(skip)]
    scores: Vec<Vec<f64>>,
}

/// Verdict on a learned scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct TrainingVerdict {
    /// The learned scheduler with its shield.
    pub temponet: JudgedScheduler,
    /// The learned scheduler without its shield.
    pub unshielded: JudgedScheduler,
    /// Other schedulers that apply to every trial, the best first.
    pub others: Vec<JudgedScheduler>,
    /// Mean over the trials of the greatest possible share of deadlines met, or an upper bound on it.
    pub clairvoyant: f64,
    /// The same for the first measure of the goal; `None` if there is no bound on that measure.
    pub clairvoyant_goal: Option<f64>,
    /// Mean difference between the learned scheduler and the best other one, trial by trial, in the measure that tells
    /// them apart.
    pub difference: f64,
    /// Half the width of its 95% confidence interval; `None` for a single trial.
    pub difference_ci95: Option<f64>,
    /// Number of trials.
    pub trials: usize,
    #[serde(skip)]
    goal: Goal,
    #[serde(skip)]
    edge: Option<Edge>,
}

/// Runs the learned scheduler, and every scheduler of `others` that applies, on all trials. `oracle` is the effort for
/// the optimum of each trial, in seconds of one core of a reference machine.
pub fn judge(
    roster: &Roster,
    others: &[String],
    trials: &[Case],
    oracle: f64,
) -> Result<TrainingVerdict, CompareError> {
    let goal = Goal::of_systems(&[], trials.iter().map(|trial| &trial.set.system));
    let is_one_set = trials.windows(2).all(|pair| pair[0].set.tasks() == pair[1].set.tasks());
    let judged = |name: &str| -> Result<JudgedScheduler, CompareError> {
        let one = |trial: &Case| {
            let metrics = simulate(&trial.set, trial.seed, trial.horizon, &mut *roster.build(name)?, &mut Unobserved);
            metrics.map_err(|error| CompareError::Run(name.into(), error))
        };
        let runs = trials.par_iter().map(one).collect::<Result<Vec<_>, CompareError>>()?;
        let met: Vec<f64> = runs.iter().map(|run| run.jobs.compliance()).collect();
        let scores: Vec<Vec<f64>> = runs.iter().map(|run| run.scores(&goal)).collect();
        let mut starved = Vec::new();
        if let (true, Some(trial)) = (is_one_set, trials.first()) {
            for (index, task) in trial.set.tasks().iter().enumerate() {
                let (released, met) = runs.iter().fold((0, 0), |(released, met), run| {
                    let jobs = run.tasks[index].jobs;
                    (released + jobs.released, met + jobs.met)
                });
                starved.extend((released > 0 && met == 0).then(|| task.name.clone()));
            }
        }
        let (compliance, ci95) = (stats::mean(&met), stats::ci95(&met));
        Ok(JudgedScheduler { name: name.into(), compliance, ci95, goal: ranking::means(&scores), starved, scores })
    };
    let mut rivals = Vec::new();
    for name in others {
        match judged(name) {
            Err(CompareError::Run(_, why)) if why.is_about_the_set() => {}
            outcome => rivals.push(outcome?),
        }
    }
    rivals.sort_by(|a, b| ranking::order(&a.goal, &b.goal));
    // Not by the names of the roster: a trained model that is used as `temponet` tunes itself, and what is judged here
    // is the network.
    let network = |spec, name: &str| judged(spec).map(|judged| JudgedScheduler { name: name.into(), ..judged });
    let (temponet, unshielded) = (network(SHIELDED, "network, shielded")?, network(UNSHIELDED, "network alone")?);
    let bound = |aim: Aim| {
        let upper = |trial: &Case| possible(aim, oracle, trial).upper;
        stats::mean(&trials.par_iter().map(upper).collect::<Vec<f64>>())
    };
    let clairvoyant = bound(Aim::Met);
    let critical_levels = goal.measures().iter().filter(|measure| matches!(measure, Measure::Critical(_))).count();
    let clairvoyant_goal = match goal.first() {
        Measure::Met => Some(clairvoyant),
        Measure::Value => Some(bound(Aim::Value)),
        // The bound is over all critical jobs, so with several levels it is not one on the highest.
        Measure::Critical(_) => (critical_levels == 1).then(|| bound(Aim::Critical)),
        Measure::Chains | Measure::Mk | Measure::WorstTask => None,
    };
    let edge = rivals.first().and_then(|best| ranking::edge(&goal, &temponet.scores, &best.scores));
    Ok(TrainingVerdict {
        temponet,
        unshielded,
        others: rivals,
        clairvoyant,
        clairvoyant_goal,
        difference: edge.map_or(0.0, |edge| edge.difference),
        difference_ci95: edge.and_then(|edge| edge.interval),
        trials: trials.len(),
        goal,
        edge,
    })
}

impl TrainingVerdict {
    /// Returns the goal of the verdict.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Recommends a scheduler in a sentence or two.
    pub fn sentence(&self) -> String {
        let Some(best) = self.others.first() else {
            return "No other scheduler applies to compare with.".into();
        };
        let name = &best.name;
        let Some(edge) = self.edge else {
            return format!("It does exactly as well as {name}, the best other scheduler here: {name} is simpler.");
        };
        let (points, of) = (edge.points(), labels::whole(&self.goal, edge.measure));
        let chosen = if edge.is_clear() && edge.difference > 0.0 { &self.temponet } else { best };
        let lead = match (edge.is_clear(), edge.difference > 0.0) {
            (true, true) => format!("Use it: {points} points of {of} more than {name}, the best other scheduler here."),
            (true, false) => format!("Use {name} instead: {points} points of {of} more than what was learned."),
            (false, _) => {
                let sign = if edge.difference < 0.0 { '-' } else { '+' };
                format!(
                    "No difference to {name}, the best other scheduler here, can be told ({sign}{points} points of {of}): {name} is simpler."
                )
            }
        };
        let starved: Vec<&str> = chosen.starved.iter().map(String::as_str).collect();
        let mut text = lead;
        if !starved.is_empty() {
            text += &format!(" But {} never in time under {}.", is_or_are(&starved), chosen.name);
        }
        if let Some(place) = self.goal.measures().iter().position(|measure| *measure == Measure::Mk) {
            let kept = chosen.goal[place];
            if kept < 1.0 {
                text += &format!(" But {} violates (m,k) in {} of the windows.", chosen.name, percent(1.0 - kept));
            }
        }
        text
    }
}

fn is_or_are(names: &[&str]) -> String {
    format!("{} {}", listed(names), if names.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet::Model;
    use temponet::stages::Tokenizer;
    use temponet_task::{OnMiss, Task, TaskSet, Time};

    #[test]
    fn a_rival_that_cannot_handle_the_backlog_is_left_out() {
        let task = Task::periodic("t", Time::from_ms(1), Time::from_ms(8));
        let mut set = TaskSet::new("backlog", vec![task], 1);
        set.system.set_on_miss(OnMiss::Continue);
        let trials = [Case { set, seed: 1, horizon: Time::from_secs(5) }];
        let roster = Roster::with(Model::random(Tokenizer::paper(), 1));
        let verdict = judge(&roster, &["llref".into(), "edf".into()], &trials, 0.01).unwrap();
        let names: Vec<&str> = verdict.others.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(names, ["edf"]);
    }
}
