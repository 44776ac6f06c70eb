//! Whether a learned scheduler is worth using: its figures beside those of the model that it began with and of all
//! other schedulers, on jobs that training never saw, trial by trial, by the goal of their sets. The sentences are an
//! [`Advice`], like those of all commands.

use rayon::prelude::*;
use serde::Serialize;
use temponet::tuning::{CandidateScore, Choice};
use temponet::{Model, Options, Tuning};
use temponet_sim::statistics::standard_error;
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{Aim, Arrival, Goal, Measure};

use temponet_lab::advice::{Advice, Claim, Evidence};
use temponet_lab::arena::{Case, possible};
use temponet_lab::comparison::ranking;
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
    #[serde(skip)]
    units: Vec<Option<f64>>,
    #[serde(skip)]
    jobs: u64,
}

impl JudgedScheduler {
    /// Compares with another scheduler; `None` if all trials are equal.
    fn claim(&self, goal: &Goal, other: &JudgedScheduler) -> Option<Claim> {
        Claim::from_edges(ranking::edges(goal, &self.scores, &other.scores, &self.units))
    }

    /// States the lead over another scheduler, as in "0.19 ± 0.06 points of the jobs more than edf-skip".
    fn lead(&self, goal: &Goal, other: &JudgedScheduler, claim: &Claim) -> String {
        let place = |measure: Measure| goal.measures().iter().position(|one| *one == measure).unwrap_or(0);
        let reservation = claim.reservation(goal, |edge| {
            let place = place(edge.measure);
            (self.goal[place], other.goal[place])
        });
        format!("{} more than {}{reservation}", claim.points(goal), other.name)
    }
}

/// Model that a training began with.
#[derive(Clone, Debug)]
pub struct Start {
    /// Name of the model, as in "the built-in model".
    pub name: String,
    /// The model, with the tokens of the recipe.
    pub model: Model,
}

impl Start {
    /// Whether training has not changed the weights.
    pub fn is_unchanged(&self, trained: &Model) -> bool {
        self.model.weights.checksum() == trained.weights.checksum()
    }
}

/// Verdict on a learned scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct TrainingVerdict {
    /// The learned scheduler with its shield.
    pub temponet: JudgedScheduler,
    /// The learned scheduler without its shield.
    pub unshielded: JudgedScheduler,
    /// The model that the training began with, with its shield; `None` if it began with random weights.
    pub start: Option<JudgedScheduler>,
    /// Whether no phase of the training was better than its start, so that the weights are those of the start.
    pub is_unchanged: bool,
    /// Whether what was learned stays: it did something in the trials that the model that it began with did not, and was
    /// not worse beyond chance. What does exactly as well, or worse, is not written as a new model.
    pub is_new: bool,
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
    /// What follows from the figures.
    pub advice: Advice,
    #[serde(skip)]
    goal: Goal,
    /// The choice of the network that a model file can carry; `None` unless the network is ahead on one set that is
    /// known beforehand.
    #[serde(skip)]
    choice: Option<Choice>,
}

/// Runs the network of the roster's model, the model that it began with, and every scheduler of `others` that applies,
/// on all trials. `oracle` is the effort for the optimum of each trial, in seconds of one core of a reference machine.
pub fn judge(
    roster: &Roster,
    start: Option<&Start>,
    others: &[String],
    trials: &[Case],
    oracle: f64,
) -> Result<TrainingVerdict, CompareError> {
    let goal = Goal::of_systems(&[], trials.iter().map(|trial| &trial.set.system));
    let is_one_set = trials.windows(2).all(|pair| pair[0].set.tasks() == pair[1].set.tasks());
    let judged = |roster: &Roster, name: &str| -> Result<JudgedScheduler, CompareError> {
        let one = |trial: &Case| {
            let metrics = simulate(&trial.set, trial.seed, trial.horizon, &mut *roster.build(name)?, &mut Unobserved);
            metrics.map_err(|error| CompareError::Run(name.into(), error))
        };
        let runs = trials.par_iter().map(one).collect::<Result<Vec<_>, CompareError>>()?;
        let met: Vec<f64> = runs.iter().map(|run| run.jobs.compliance()).collect();
        let scores: Vec<Vec<f64>> = runs.iter().map(|run| run.scores(&goal)).collect();
        let mut all = Metrics::default();
        runs.iter().for_each(|run| all.merge(run));
        let tasks = trials.first().filter(|_| is_one_set).map_or(&[][..], |trial| trial.set.tasks());
        let starved = tasks.iter().zip(&all.tasks).filter(|(_, of)| of.jobs.released > 0 && of.jobs.met == 0);
        Ok(JudgedScheduler {
            name: name.into(),
            compliance: stats::mean(&met),
            ci95: stats::ci95(&met),
            goal: ranking::means(&scores),
            starved: starved.map(|(task, _)| task.name.clone()).collect(),
            scores,
            units: all.units(&goal),
            jobs: all.jobs.released,
        })
    };
    let mut rivals = Vec::new();
    for name in others {
        match judged(roster, name) {
            Err(CompareError::Run(_, why)) if why.is_about_the_set() => {}
            outcome => rivals.push(outcome?),
        }
    }
    rivals.sort_by(|a, b| ranking::order(&a.goal, &b.goal));
    // As in a comparison, the first place goes to the first one that no other is ahead of.
    let is_ahead = |one: &JudgedScheduler, other: &JudgedScheduler| {
        let edges = ranking::edges_among(rivals.len(), &goal, &one.scores, &other.scores, &one.units);
        Claim::from_edges(edges).is_some_and(|claim| claim.is_lead())
    };
    if let Some(best) = ranking::first_unbeaten(&rivals, is_ahead) {
        rivals[..=best].rotate_right(1);
    }
    // Not by the names of the roster: a trained model that is used as `temponet` tunes itself, and what is judged here
    // is the network. Others, such as `tuned`, are what they are in every command.
    let options = Options { tuning: Tuning::Off, ..roster.options };
    let network = |roster: &Roster, spec, name: String| {
        let untuned = Roster { options, ..roster.clone() };
        judged(&untuned, spec).map(|judged| JudgedScheduler { name, ..judged })
    };
    let temponet = network(roster, SHIELDED, "network, shielded".into())?;
    let unshielded = network(roster, UNSHIELDED, "network alone".into())?;
    let is_unchanged = start.zip(roster.model.as_ref()).is_some_and(|(start, model)| start.is_unchanged(model));
    let start = start.map(|start| {
        let name = start.name.clone();
        match is_unchanged {
            true => Ok(JudgedScheduler { name, ..temponet.clone() }),
            false => network(&Roster::with(start.model.clone()), SHIELDED, name),
        }
    });
    let start = start.transpose()?;
    let is_better = |start| temponet.claim(&goal, start).is_some_and(|claim| !claim.is_deficit());
    let is_new = start.as_ref().is_none_or(is_better);
    let kept = start.as_ref().filter(|_| !is_new).unwrap_or(&temponet);
    // Whoever is ahead of the network is the one to hold it against.
    let is_ahead = |one: &JudgedScheduler| one.claim(&goal, kept).is_some_and(|claim| claim.is_lead());
    if let Some(ahead) = rivals.iter().position(is_ahead) {
        rivals[..=ahead].rotate_right(1);
    }
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
    let judgement = Judgement {
        goal: &goal,
        network: kept,
        learned: &temponet,
        start: start.as_ref(),
        is_unchanged,
        is_new,
        others: &rivals,
    };
    let claim = judgement.best_other().and_then(|best| kept.claim(&goal, best));
    let set = trials.first().filter(|_| is_one_set).map(|trial| &trial.set);
    let is_known = set.is_some_and(|set| set.tasks().iter().all(|task| !matches!(task.arrival, Arrival::Listed(_))));
    Ok(TrainingVerdict {
        advice: judgement.advice(Evidence::of_runs(set, trials.len() as u64, temponet.jobs)),
        choice: judgement.choice().filter(|_| is_known),
        temponet,
        unshielded,
        start,
        is_unchanged,
        is_new,
        others: rivals,
        clairvoyant,
        clairvoyant_goal,
        difference: claim.as_ref().map_or(0.0, |claim| claim.edge.difference),
        difference_ci95: claim.and_then(|claim| claim.edge.half()),
        trials: trials.len(),
        goal,
    })
}

/// The figures from which the advice follows.
struct Judgement<'a> {
    goal: &'a Goal,
    /// The network that stays: what was learned if it is new, else what it began with.
    network: &'a JudgedScheduler,
    learned: &'a JudgedScheduler,
    start: Option<&'a JudgedScheduler>,
    is_unchanged: bool,
    is_new: bool,
    others: &'a [JudgedScheduler],
}

impl<'a> Judgement<'a> {
    /// The best other scheduler: the first one, which is ahead of the network if any is.
    fn best_other(&self) -> Option<&'a JudgedScheduler> {
        self.others.first()
    }

    /// The choice of the network, if it is new and ahead of the best other scheduler.
    fn choice(&self) -> Option<Choice> {
        let best = self.best_other().filter(|_| self.is_new)?;
        let is_lead = self.network.claim(self.goal, best).is_some_and(|claim| claim.is_lead());
        let places = 0..self.goal.measures().len();
        let error = |scores: &[Vec<f64>], place: usize| standard_error(&ranking::values(scores, place)).unwrap_or(0.0);
        let differences = places.clone().map(|place| {
            let (difference, error) = ranking::difference(&self.network.scores, &best.scores, place);
            (difference, error.unwrap_or(0.0))
        });
        let (differences, difference_errors) = differences.unzip();
        let network = CandidateScore {
            name: String::new(),
            scores: self.network.goal.clone(),
            errors: places.map(|place| error(&self.network.scores, place)).collect(),
            differences,
            difference_errors,
            blocks: self.network.scores.len(),
            jobs: self.network.jobs,
        };
        is_lead.then(|| Choice::judged(self.goal, network, &best.name, self.network.jobs))
    }

    fn advice(&self, evidence: Evidence) -> Advice {
        let Some(best) = self.best_other() else {
            let sentences = vec!["No other scheduler applies to compare with.".into(), evidence.sentence()];
            return Advice { best: None, decider: None, level_with: Vec::new(), warning: None, sentences, evidence };
        };
        let claim = self.network.claim(self.goal, best);
        let is_ahead = |one: &JudgedScheduler| {
            let claim = one.claim(self.goal, self.network);
            claim.filter(Claim::is_lead).map(|claim| one.lead(self.goal, self.network, &claim))
        };
        let name = &best.name;
        let points = |claim: &Claim| claim.points(self.goal);
        let (chosen, lead) = match &claim {
            None => {
                (best, format!("It does exactly as well as {name}, the best other scheduler here: {name} is simpler."))
            }
            Some(claim) if claim.is_lead() => {
                let lead = self.network.lead(self.goal, best, claim);
                let it = if self.is_new { "it" } else { self.network.name.as_str() };
                (self.network, format!("Use {it}: {lead}, the best other scheduler here."))
            }
            Some(claim) if claim.is_deficit() => {
                (best, format!("Use {name} instead: {}.", is_ahead(best).unwrap_or_else(|| points(claim))))
            }
            Some(claim) => {
                let sign = if claim.edge.difference < 0.0 { '-' } else { '+' };
                let points = points(claim);
                let difference = format!("No difference to {name}, the best other scheduler here, can be told");
                (best, format!("{difference} ({sign}{points}): {name} is simpler."))
            }
        };
        let mut sentences = Vec::new();
        sentences.extend(self.found());
        sentences.push(lead);
        if !chosen.starved.is_empty() {
            let starved: Vec<&str> = chosen.starved.iter().map(String::as_str).collect();
            let is_or_are = if starved.len() == 1 { "is" } else { "are" };
            sentences.push(format!("But {} {is_or_are} never in time under {}.", listed(&starved), chosen.name));
        }
        let kept = self.goal.measures().iter().position(|measure| *measure == Measure::Mk);
        if let Some(kept) = kept.map(|place| chosen.goal[place]).filter(|kept| *kept < 1.0) {
            sentences.push(format!("But {} violates (m,k) in {} of the windows.", chosen.name, percent(1.0 - kept)));
        }
        sentences.push(evidence.sentence());
        let all = self.others.iter().chain([self.network]).filter(|one| one.name != chosen.name);
        let is_level = |one: &&JudgedScheduler| chosen.claim(self.goal, one).is_none_or(|claim| !claim.edge.is_clear());
        let level_with = all.filter(is_level).map(|one| one.name.clone()).collect();
        Advice { best: Some(chosen.name.clone()), decider: None, level_with, warning: None, sentences, evidence }
    }

    /// States what training found beyond the model that it began with.
    fn found(&self) -> Option<String> {
        let start = self.start?;
        let name = &start.name;
        if self.is_unchanged {
            return Some(format!(
                "Training found nothing better than {name}: the weights are unchanged, and no new model is written."
            ));
        }
        let claim = self.learned.claim(self.goal, start);
        Some(match claim {
            Some(claim) if claim.is_deficit() => {
                let back = start.claim(self.goal, self.learned);
                let lead =
                    back.map_or_else(|| claim.points(self.goal), |claim| start.lead(self.goal, self.learned, &claim));
                let lead = lead.replace(&self.learned.name, "what was learned");
                format!("{name} has {lead}: no new model is written.")
            }
            Some(claim) if claim.is_lead() => {
                format!("What was learned has {}.", self.learned.lead(self.goal, start, &claim))
            }
            Some(claim) => {
                let sign = if claim.edge.difference < 0.0 { '-' } else { '+' };
                format!("What was learned cannot be told from {name} ({sign}{}).", claim.points(self.goal))
            }
            None => format!("What was learned does exactly as well as {name}: no new model is written."),
        })
    }
}

impl TrainingVerdict {
    /// Returns the goal of the verdict.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// Returns the advice in a few sentences.
    pub fn sentence(&self) -> String {
        self.advice.verdict()
    }

    /// Makes the verdict part of the model if it is in favour of the network, and adds who decides in a scheduler with
    /// this model, which is that of the start if nothing new was learned. `set` is the set that the model was trained
    /// on, if it is one.
    pub fn settle(&mut self, model: &mut Model, set: Option<&temponet_task::TaskSet>) {
        let Some(set) = set else { return };
        if let Some(choice) = &self.choice {
            // What cannot be written as JSON is left out: the scheduler then tunes itself, as without a verdict.
            let _ = model.set_tuned(&set.name, &set.system, choice.clone());
        }
        let roster = Roster::with(model.clone());
        roster.foresee(set);
        let decider = roster.decider(SHIELDED, set);
        if let Some(decider) = &decider {
            let place = self.advice.sentences.len().saturating_sub(1);
            let model = self.start.as_ref().filter(|_| !self.is_new).map_or("this model", |start| &start.name);
            let sentence = format!("In {SHIELDED} with {model}, {}.", decider.sentence);
            self.advice.sentences.insert(place, sentence);
        }
        self.advice.decider = decider;
    }
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
        let verdict = judge(&roster, None, &["llref".into(), "edf".into()], &trials, 0.01).unwrap();
        let names: Vec<&str> = verdict.others.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(names, ["edf"]);
    }

    /// Trials of one overloaded core with uncertain times.
    fn trials() -> Vec<Case> {
        let task = |name: &str, period: u64, wcet: u64| {
            let task = Task::periodic(name, Time::from_ms(period), Time::from_ms(wcet));
            task.with_bcet(Time::from_ms(1)).with_execution(temponet_task::ExecutionModel::Uniform)
        };
        let set = TaskSet::new("s", vec![task("a", 10, 8), task("b", 15, 9), task("c", 20, 12)], 1);
        (1..=6).map(|seed| Case { set: set.clone(), seed, horizon: Time::from_secs(4) }).collect()
    }

    #[test]
    fn weights_that_did_not_change_are_no_new_model() {
        let model = Model::built_in().unwrap();
        let start = Start { name: "the built-in model".into(), model: model.clone() };
        let roster = Roster::with(model.clone());
        let others = ["edf".to_string()];
        let mut verdict = judge(&roster, Some(&start), &others, &trials(), 0.01).unwrap();
        assert!(verdict.is_unchanged && !verdict.is_new);
        let sentence = verdict.sentence();
        assert!(
            sentence.starts_with("Training found nothing better than the built-in model: the weights are"),
            "{sentence}"
        );
        assert!(sentence.contains("Use the built-in model: ") && !sentence.contains("Use it"), "{sentence}");
        assert!(sentence.contains("This rests on 6 simulated runs with"), "{sentence}");
        let mut same = model.clone();
        verdict.settle(&mut same, Some(&trials()[0].set));
        assert_eq!(same.tuned(), None, "what is not new is not followed by a verdict");
        assert!(verdict.advice.decider.is_some());
    }

    /// One task alone: whoever chooses, the same jobs are in time.
    #[test]
    fn weights_that_do_exactly_as_well_are_no_new_model() {
        let start = Start { name: "random weights".into(), model: Model::random(Tokenizer::paper(), 1) };
        let roster = Roster::with(Model::random(Tokenizer::paper(), 2));
        let alone = |case: Case| {
            let set = TaskSet::new("alone", case.set.tasks()[..1].to_vec(), 1);
            Case { set, ..case }
        };
        let trials: Vec<Case> = trials().into_iter().map(alone).collect();
        let verdict = judge(&roster, Some(&start), &["edf".to_string()], &trials, 0.01).unwrap();
        assert!(!verdict.is_unchanged && !verdict.is_new);
        let sentence = verdict.sentence();
        let same = "What was learned does exactly as well as random weights: no new model is written.";
        assert!(sentence.starts_with(same), "{sentence}");
        assert!(verdict.choice.is_none());
    }

    #[test]
    fn what_is_worse_than_its_start_is_no_new_model() {
        let start = Start { name: "the built-in model".into(), model: Model::built_in().unwrap() };
        let roster = Roster::with(Model::random(Tokenizer::paper(), 1));
        let verdict = judge(&roster, Some(&start), &["edf".to_string()], &trials(), 0.01).unwrap();
        assert!(!verdict.is_unchanged && !verdict.is_new);
        let sentence = verdict.sentence();
        assert!(sentence.starts_with("the built-in model has "), "{sentence}");
        assert!(sentence.contains(" more than what was learned: no new model is written. "), "{sentence}");
        assert!(sentence.contains("Use the built-in model: "), "{sentence}");
        assert_eq!(verdict.advice.best.as_deref(), Some("the built-in model"));
        assert!(verdict.choice.is_none());
    }

    /// The verdict judges the network without tuning, but its rivals are those of every command.
    #[test]
    fn the_tuned_portfolio_is_tuned_in_a_verdict() {
        let mut trials = trials();
        // The first candidate of the portfolio gives up the long critical task, and tuning finds one that does not.
        trials.iter_mut().for_each(|trial| trial.set.system.tasks_mut()[0].criticality = 1);
        let roster = Roster::with(Model::random(Tokenizer::paper(), 1));
        let others = ["tuned", "mh-edf", "muf"].map(String::from);
        let verdict = judge(&roster, None, &others, &trials, 0.01).unwrap();
        let goal_of = |name: &str| &verdict.others.iter().find(|other| other.name == name).unwrap().goal;
        assert!(goal_of("tuned")[0] >= goal_of("muf")[0]);
        assert!(ranking::order(goal_of("tuned"), goal_of("mh-edf")).is_lt(), "{:?}", goal_of("mh-edf"));
    }

    #[test]
    fn a_model_that_is_ahead_carries_its_verdict_and_is_followed() {
        let start = Start { name: "random weights".into(), model: Model::random(Tokenizer::paper(), 1) };
        let mut model = Model::built_in().unwrap();
        let roster = Roster::with(model.clone());
        let mut verdict = judge(&roster, Some(&start), &["edf".to_string()], &trials(), 0.01).unwrap();
        assert!(!verdict.is_unchanged && verdict.is_new && verdict.start.is_some());
        let sentence = verdict.sentence();
        assert!(sentence.starts_with("What was learned has ") && sentence.contains("Use it: "), "{sentence}");
        verdict.settle(&mut model, Some(&trials()[0].set));
        let tuned = model.tuned().unwrap();
        assert_eq!((tuned.choice.name.as_str(), tuned.choice.why), ("network", temponet::tuning::Why::Judged));
        let decider = Roster::with(model.clone()).decider(SHIELDED, &trials()[0].set).unwrap();
        assert_eq!(Some(&decider), verdict.advice.decider.as_ref());
        assert!(decider.sentence.contains("in the verdict of its training"), "{}", decider.sentence);
        // On another system the verdict does not hold, and the line says so.
        let mut other = trials()[0].set.clone();
        other.system = other.system.described_by(other.tasks()[..2].to_vec());
        let decider = Roster::with(model).decider(SHIELDED, &other).unwrap();
        assert!(decider.sentence.ends_with("; the verdict of the training on s is for another system"), "{decider:?}");
    }
}
