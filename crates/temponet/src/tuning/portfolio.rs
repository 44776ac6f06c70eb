//! The portfolio: a scheduler that follows the candidate that serves the system best, and that can change its mind
//! during the run.

use std::sync::Arc;

use temponet_sim::Outlook;
use temponet_task::{Assignment, Event, MOST_LOOKED_AT, NotApplicable, Scheduler, System, SystemView};

use super::cache::Choices;
use super::candidates::{Candidate, before_evidence, is_listed, without_lists};
use super::choice::{Choice, TunedModel, Why};
use super::history::History;
use super::online::{Review, Schedule, present_tasks, review};
use super::race::{Jobs, choose_for, choose_with_modes, effort_per_job};
use super::successor::Successor;
use super::{Settings, Tuning};
use crate::Model;
use crate::stages::Learned;

/// The network, if there is one, and the simple schedulers, of which one is followed at a time.
pub struct Portfolio {
    network: Option<Learned>,
    /// Choice that came with the model, if it was made for its weights.
    tuned: Option<Arc<TunedModel>>,
    tuning: Tuning,
    settings: Settings,
    choices: Choices,
    candidates: Vec<Candidate>,
    /// The system without lists of jobs, which tell the future; none before the start.
    known: Option<System>,
    choice: Option<Choice>,
    followed: usize,
    follower: Option<Successor>,
    /// Candidates that see the whole run although another one is followed, with their places.
    watchers: Vec<(usize, Successor)>,
    /// What watchers would do; nobody reads it.
    scratch: Assignment,
    history: History,
    schedule: Schedule,
    /// What the tasks have become, and the stretch of the run that the followed candidate was chosen for; none if the
    /// run is not reviewed for changes.
    outlook: Option<Outlook>,
    stretch: Option<u64>,
    /// Whether the choice is reviewed during the run.
    reviews: bool,
    /// Whether jobs are not known beforehand.
    is_unknown: bool,
    /// Number of times that the remembered jobs were simulated.
    reviews_made: u64,
    /// Number of times that another candidate took over.
    switches: u64,
    /// Counters of the network in the times that it was followed before.
    earlier: Vec<(&'static str, u64)>,
}

impl Portfolio {
    /// The network first, then the simple schedulers, for use behind a shield.
    pub fn with_network(network: Learned) -> Portfolio {
        let model = network.model();
        let tuned = model.tuned().filter(|tuned| tuned.weights == model.weights.checksum()).map(Arc::new);
        let tuning = network.options().tuning;
        Portfolio { network: Some(network), tuned, ..Portfolio::classical(tuning, Settings::SHIELDED) }
    }

    /// The simple schedulers alone.
    pub fn classical(tuning: Tuning, settings: Settings) -> Portfolio {
        Portfolio {
            network: None,
            tuned: None,
            tuning,
            settings,
            choices: Choices::default(),
            candidates: Vec::new(),
            known: None,
            choice: None,
            followed: 0,
            follower: None,
            watchers: Vec::new(),
            scratch: Assignment::default(),
            history: History::default(),
            schedule: Schedule::default(),
            outlook: None,
            stretch: None,
            reviews: false,
            is_unknown: false,
            reviews_made: 0,
            switches: 0,
            earlier: Vec::new(),
        }
    }

    /// The same portfolio with choices that are shared with others.
    pub fn sharing(self, choices: Choices) -> Portfolio {
        Portfolio { choices, ..self }
    }

    /// Another portfolio over the same network and choices. It has to be started like a new one.
    pub fn share(&self) -> Portfolio {
        Portfolio {
            network: self.network.as_ref().map(Learned::share),
            tuned: self.tuned.clone(),
            ..Portfolio::classical(self.tuning, self.settings).sharing(self.choices.clone())
        }
    }

    /// The choice at the start; none before it.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }

    /// Name of the candidate that is followed at present; none before the start.
    pub fn followed(&self) -> Option<&'static str> {
        self.candidates.get(self.followed).map(Candidate::name)
    }

    /// The network, if there is one.
    pub fn network(&self) -> Option<&Learned> {
        self.network.as_ref()
    }

    /// Finds the choice for a system: the one that came with the model, one made before, or a new one.
    fn find_choice(&self, system: &System) -> Choice {
        let favourite = self.candidates.first().map_or("", Candidate::name);
        if self.tuning == Tuning::Off {
            return Choice::untested(favourite, Why::Off, system.goal());
        }
        if is_listed(system) {
            return Choice::untested(before_evidence(system, &self.candidates), Why::Unknown, system.goal());
        }
        if let Some(tuned) = self.tuned.as_ref().filter(|tuned| tuned.is_for(system)) {
            return tuned.choice.clone();
        }
        let modes = self.choices.foreseen(system);
        self.remembered(system, None, || choose_with_modes(system, &modes, &self.candidates, self.settings))
    }

    /// Returns a choice for a system that was made before, or makes it. `told` is the system that the candidates are
    /// told of, if it is another one.
    fn remembered(&self, system: &System, told: Option<&System>, make: impl FnOnce() -> Choice) -> Choice {
        let model: Option<&Arc<Model>> = self.network.as_ref().map(Learned::model);
        let options = self.network.as_ref().map(Learned::options);
        self.choices.get_or_make(system, told, model, (self.settings, options), make)
    }

    /// Lets a candidate take over. It has seen nothing of the run if the run has begun.
    fn follow(&mut self, place: usize, system: &System, has_begun: bool) -> Result<(), NotApplicable> {
        let Some(candidate) = self.candidates.get(place) else {
            return Err(NotApplicable("no scheduler of the portfolio applies to this system".into()));
        };
        let follower = match self.watchers.iter().position(|(watcher, _)| *watcher == place) {
            Some(watcher) => self.watchers.swap_remove(watcher).1,
            None => start(candidate, system, has_begun)?,
        };
        self.keep_counters();
        let before = (std::mem::replace(&mut self.followed, place), self.follower.replace(follower));
        if let (place, Some(before)) = before
            && has_begun
            && self.candidates[place].is_of_server()
        {
            self.watchers.push((place, before));
        }
        Ok(())
    }

    /// Lets the candidates of a server see the run from its start, if the choice is reviewed.
    fn watch_all(&mut self, system: &System) {
        self.watchers.clear();
        if !self.reviews || !system.is_server() {
            return;
        }
        for (place, candidate) in self.candidates.iter().enumerate() {
            if place != self.followed
                && candidate.is_of_server()
                && let Ok(watcher) = start(candidate, system, false)
            {
                self.watchers.push((place, watcher));
            }
        }
    }

    /// Adds up the network's counters before it stops being followed.
    fn keep_counters(&mut self) {
        if self.is_network() {
            self.earlier = self.network_counters();
        }
    }

    /// Whether the network is followed.
    pub(crate) fn is_network(&self) -> bool {
        matches!(self.candidates.get(self.followed), Some(Candidate::Network(_)))
    }

    /// Counters of the network over all times that it was followed.
    fn network_counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.network.as_ref().map(Learned::counters).unwrap_or_default();
        let of = |counters: &[(&str, u64)], name: &str| {
            counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
        };
        let current = self.follower.as_ref().filter(|_| self.is_network()).map(Successor::counters);
        for (name, count) in &mut counters {
            *count = of(&self.earlier, name) + current.as_ref().map_or(0, |current| of(current, name));
        }
        counters
    }

    /// Reviews the choice, if that is due.
    fn tune(&mut self, view: &SystemView<'_>) {
        self.history.observe(view);
        let leaves_choice = !view.leaves_no_choice();
        let place = match &mut self.outlook {
            Some(outlook) => {
                // A job of a task that the system does not have tells nothing of its tasks.
                let is_known = |event: &Event| view.job(event.job()).task.index() < outlook.tasks().len();
                if view.events.iter().all(is_known) {
                    outlook.observe(view);
                }
                self.choose_for_present(leaves_choice)
            }
            None => self.choose_by_history(view, leaves_choice),
        };
        if let Some(place) = place {
            self.switch(place, view.system);
        }
    }

    /// Chooses anew where the tasks have changed, and returns to the choice of the start where they are as described
    /// again.
    fn choose_for_present(&mut self, leaves_choice: bool) -> Option<usize> {
        let (Some(known), Some(outlook)) = (&self.known, &self.outlook) else { return None };
        if !self.history.is_unlike() {
            self.stretch.take()?;
            return self.choice.as_ref().and_then(|choice| self.place_of(&choice.name));
        }
        let since = self.history.released - self.history.stretch;
        let is_urgent = since > (JOBS_PER_TASK * known.tasks().len()) as u64;
        if self.stretch == Some(self.history.stretch)
            || leaves_choice && !is_urgent
            || !self.history.is_settled(known.tasks())
        {
            return None;
        }
        self.stretch = Some(self.history.stretch);
        let tasks = present_tasks(&self.history, outlook);
        if tasks == known.tasks() {
            // A job came at another time than described, which says nothing of the next ones.
            return None;
        }
        self.reviews_made += 1;
        let system = known.described_by(tasks);
        let choice = self.remembered(&system, Some(known), || {
            choose_for(known, Jobs::of(system.tasks()), &self.candidates, self.settings)
        });
        // Where no task recurs at present, or nothing can be simulated, nothing speaks against the followed candidate.
        if matches!(choice.why, Why::Unknown | Why::TooLong) { None } else { self.place_of(&choice.name) }
    }

    /// Simulates the remembered jobs, if that is due.
    fn choose_by_history(&mut self, view: &SystemView<'_>, leaves_choice: bool) -> Option<usize> {
        let known = self.known.as_ref().filter(|_| self.schedule.is_due(&self.history, leaves_choice))?;
        self.schedule.reviewed(&self.history);
        if known.is_server() {
            // Nothing is preempted there, so what has run for long is long.
            self.history.observe_progress(view);
        }
        self.reviews_made += 1;
        let (candidates, followed) = (&self.candidates, self.followed);
        let (is_shielded, effort) =
            (self.settings.is_shielded, self.settings.effort.saturating_mul(self.settings.patience));
        let told_network = view.system;
        let home = self.choice.as_ref().and_then(|choice| self.place_of(&choice.name)).unwrap_or(followed);
        Some(review(&self.history, &Review { known, told_network, candidates, followed, home, is_shielded, effort }))
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.name() == name)
    }

    /// Moves to another candidate in the middle of the run. One that does not start is not followed.
    fn switch(&mut self, place: usize, system: &System) {
        if place == self.followed {
            return;
        }
        let known = self.known.take();
        let is_network = matches!(self.candidates.get(place), Some(Candidate::Network(_)));
        let shown = if is_network { system } else { known.as_ref().unwrap_or(system) };
        self.switches += u64::from(self.follow(place, shown, true).is_ok());
        self.known = known;
    }

    /// Lets the followed candidate decide, or watch if someone else decides, after a review of the choice if one is
    /// due.
    fn pass_on(&mut self, view: &SystemView<'_>, assignment: &mut Assignment, only_watches: bool) {
        if self.reviews {
            self.tune(view);
        }
        // The network reads of the lists no more than it does alone; the others do not get them at all.
        let is_network = self.is_network();
        let known = self.known.as_ref().filter(|_| self.is_unknown && !is_network);
        let shown = view.with_system(known.unwrap_or(view.system));
        if let Some(follower) = &mut self.follower {
            follower.decide(&shown, assignment, only_watches);
        }
        let shown = view.with_system(self.known.as_ref().unwrap_or(view.system));
        for (_, watcher) in &mut self.watchers {
            self.scratch.reset(view.cores());
            watcher.decide(&shown, &mut self.scratch, true);
        }
    }
}

/// Starts a candidate.
fn start(candidate: &Candidate, system: &System, has_begun: bool) -> Result<Successor, NotApplicable> {
    let scheduler = candidate.scheduler().ok_or_else(|| NotApplicable(candidate.name().into()))?;
    Successor::start(scheduler, system, has_begun)
}

/// Number of jobs per task after which tasks that have changed are simulated even within a decision that leaves a
/// choice.
const JOBS_PER_TASK: usize = 4;

impl Scheduler for Portfolio {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let known = without_lists(system);
        self.follower = None;
        self.watchers.clear();
        self.earlier.clear();
        let network = self.network.as_ref().map(|network| Candidate::Network(Box::new(network.share())));
        let needs_others = self.tuning != Tuning::Off || network.is_none();
        let others = if needs_others { Candidate::classical(&known) } else { Vec::new() };
        self.candidates = network.into_iter().chain(others).collect();
        self.is_unknown = is_listed(system) || !system.servers().is_empty();
        // A review would exceed any budget of a decision.
        let has_budget = self.network.as_ref().is_some_and(|network| network.options().budget_ns.is_some());
        self.reviews = self.tuning == Tuning::Online && !has_budget;
        (self.reviews_made, self.switches, self.followed) = (0, 0, 0);
        if self.network.is_some() {
            // What the network cannot read is refused, whoever would be followed.
            self.follow(0, system, false)?;
            self.earlier.clear();
        }
        let choice = self.find_choice(system);
        let place = self.place_of(&choice.name).unwrap_or(0);
        if place > 0 || self.network.is_none() {
            self.follow(place, &known, false)?;
        }
        self.choice = Some(choice);
        self.watch_all(&known);
        self.known = Some(known);
        (self.stretch, self.schedule) = (None, Schedule::begin(system));
        self.outlook = (self.reviews && !self.is_unknown).then(|| Outlook::new(system));
        if self.reviews {
            // Only jobs that are not known beforehand are simulated again, as many as the effort of a start allows.
            let jobs = self.settings.effort / effort_per_job(system, self.candidates.iter());
            self.history.start(system.tasks(), if self.is_unknown { jobs as usize } else { 1 });
        }
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.pass_on(view, assignment, false);
    }

    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        self.pass_on(view, scratch, true);
    }

    /// As many as the followed candidate bears. Where another one may take over, no more than any candidate bears.
    fn most_ready(&self) -> usize {
        let followed = self.follower.as_ref().map_or(MOST_LOOKED_AT, Successor::most_ready);
        if self.reviews { followed.min(MOST_LOOKED_AT) } else { followed }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let own = [("retunings", self.reviews_made), ("switches", self.switches)];
        self.network_counters().into_iter().chain(own).collect()
    }
}
