//! The rollout planner: a scheduler that tries out its decisions on futures drawn from what it knows.
//!
//! At a decision with more ready jobs than cores, a simple *base* scheduler makes a choice: by default the one that
//! [tuning](crate::tuning) chooses. The planner compares it with alternatives: the choices of other simple schedulers,
//! and the base choice with one job exchanged. Each one is followed through the same futures
//! ([`Outlook`](temponet_sim::Outlook)), in which everything hidden is drawn anew and the base scheduler makes all
//! later decisions. A job that an alternative brings in keeps its core until it leaves. The planner takes an
//! alternative only if its mean gain exceeds the standard error of that gain.
//!
//! It is slow, milliseconds per decision, and is not for embedding. The lab shows it as the *online reference*: how
//! much an online scheduler can gain with almost unlimited time, beside the clairvoyant optimum that none can reach.
//! Training learns from the gains that it finds.
//!
//! Reference: rollout algorithms (Bertsekas, Tsitsiklis and Wu 1997); here with sampled futures that are common to all
//! alternatives, and weak alternatives dropped early.

mod alternatives;
mod prospect;
mod rollout;

use temponet_sched::advice::Advisor;
use temponet_sched::build;
use temponet_sched::catalog::{Entry, Kind, OptionHelp, Options};
use temponet_sim::statistics::{mean, standard_error};
use temponet_sim::{SimError, mixed_seed};
use temponet_task::{Assignment, JobId, NotApplicable, Scheduler, System, SystemView, Task, Tie, Worths};
use temponet_wording::did_you_mean;

use alternatives::{Alternatives, Choice};
use prospect::MOST_JOBS;

pub use prospect::Prospect;
pub use rollout::{Outcome, Rollout};

use crate::tuning::{Candidate, Settings, Why, choose};

/// Base that tuning chooses for the system among [`BASES`].
const TUNED: &str = "tuned";

/// Schedulers that can be the base: those that decide by the ready jobs alone, so that they can be asked in any future.
pub const BASES: [&str; 8] = ["edf-skip", "mh-edf", "look-ahead", "srpt", "dasa", "lbesa", "dios", "red"];

/// Name of the planner as a scheduler.
pub const NAME: &str = "planner";

/// Returns the entry of the planner for the catalog of schedulers.
pub fn entry() -> Entry {
    let entry = Entry::new(
        NAME,
        "tries out each decision on futures drawn from what is known; slow, and only run if named",
        "the online reference: what an online scheduler could still gain",
        |request| Ok(Box::new(Planner::with_options(request.options)?)),
    );
    entry.kind(Kind::Planning).options(&OPTIONS)
}

/// Options of the planner.
const OPTIONS: [OptionHelp; 5] = [
    (
        "base",
        TUNED,
        "scheduler that decides in the futures: edf-skip, mh-edf, look-ahead, srpt, dasa, lbesa, dios or red; by default the one of them that simulations of the set choose",
    ),
    ("futures", "32", "number of futures that are drawn at a decision"),
    ("horizon", "20", "length of a future in median wcets"),
    ("exchanges", "24", "largest number of exchanges of one job that are tried"),
    ("seed", "1", "seed of the futures"),
];

/// Largest value of an option.
const MOST: usize = 1_000_000;

/// Schedulers whose whole choices are alternatives to the base choice.
const COUNSELORS: [&str; 4] = ["edf-skip", "mh-edf", "look-ahead", "dios"];

/// Settings of a [`Planner`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannerSettings {
    /// Number of futures; default 32.
    pub futures: usize,
    /// Length of a future in median wcets of the set; default 20. It is at most 40 mean execution times of a job.
    pub horizon: f64,
    /// Largest number of exchanges that are tried at a decision; default 24.
    pub exchanges: usize,
    /// Greatest effort of a plan, in ready jobs that the base scheduler reads over all futures: with many ready jobs
    /// fewer futures are drawn, and none where two of them would take four times the effort. `None`, the default, is no
    /// limit.
    pub effort: Option<usize>,
    /// Seed of the futures; default 1.
    pub seed: u64,
}

impl Default for PlannerSettings {
    fn default() -> PlannerSettings {
        PlannerSettings { futures: 32, horizon: 20.0, exchanges: 24, effort: None, seed: 1 }
    }
}

impl PlannerSettings {
    /// Returns the number of futures that the effort allows for this many alternatives.
    fn affordable_futures(&self, view: &SystemView<'_>, alternatives: usize) -> usize {
        let Some(effort) = self.effort else { return self.futures };
        let of_future = ((alternatives + 1) * view.active.len() * view.cores() * MOST_JOBS as usize).max(1);
        match effort / of_future {
            0 | 1 if 2 * of_future > 4 * effort => 0,
            affordable => affordable.max(2).min(self.futures),
        }
    }
}

/// Number of futures after which weak alternatives are dropped.
const TRIAL: usize = 8;

/// The rollout planner. See the [module](self).
pub struct Planner {
    base: Box<dyn Scheduler>,
    /// Whether the base is chosen for the system.
    is_base_tuned: bool,
    counselors: Vec<Box<dyn Scheduler>>,
    settings: PlannerSettings,
    state: Option<Prospect>,
    /// Jobs that came in by an exchange, and keep their core until they leave.
    kept: Vec<(JobId, Tie)>,
    assignment: Assignment,
    /// Decisions that were compared, and those in which the planner differed from its base.
    planned: u64,
    changed: u64,
}

/// What the planner found at a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Jobs to run.
    pub chosen: Vec<JobId>,
    /// Alternatives that were compared, through all futures or until they were dropped, with what would run otherwise:
    /// the choice of the base scheduler, and jobs that came in earlier.
    pub compared: Vec<Compared>,
}

/// An alternative to the base choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Jobs that run instead of others.
    pub inward: Vec<JobId>,
    /// Jobs that do not run.
    pub outward: Vec<JobId>,
    /// Mean gain over the base choice, in worths of a mean job.
    pub gain: f64,
    /// Greatest worth of the exchanged jobs. A gain as a share of it does not depend on what the goal makes of the
    /// jobs.
    pub worth: f64,
}

impl Planner {
    /// A planner with the base scheduler of this name, which must be one of [`BASES`], or `tuned`: the one of them that
    /// tuning chooses for the system.
    pub fn new(base: &str, settings: PlannerSettings) -> Result<Planner, String> {
        if base == TUNED {
            let planner = Planner::over(Advisor::EdfSkip.scheduler(), settings);
            return Ok(Planner { is_base_tuned: true, ..planner });
        }
        let name = base.split(':').next().unwrap_or_default();
        if !BASES.contains(&name) {
            let hint = did_you_mean(name, BASES);
            return Err(format!("base = {base:?} is none of {TUNED}, {}{hint}", BASES.join(", ")));
        }
        Ok(Planner::over(build(base).map_err(|error| error.to_string())?, settings))
    }

    /// A planner with the options of a user.
    fn with_options(options: &Options) -> Result<Planner, String> {
        let count = |key: &str| options.count_within(key, 1..=MOST);
        let settings = PlannerSettings {
            futures: count("futures")?,
            exchanges: count("exchanges")?,
            horizon: count("horizon")? as f64,
            seed: count("seed")? as u64,
            ..PlannerSettings::default()
        };
        Planner::new(options.text("base"), settings)
    }

    /// A planner over this base scheduler, which must decide by the view alone, without memory of events.
    pub fn over(base: Box<dyn Scheduler>, settings: PlannerSettings) -> Planner {
        Planner {
            base,
            is_base_tuned: false,
            counselors: COUNSELORS.iter().filter_map(|name| build(name).ok()).collect(),
            settings,
            state: None,
            kept: Vec::new(),
            assignment: Assignment::default(),
            planned: 0,
            changed: 0,
        }
    }

    /// Takes note of the events of a decision point at which nothing is to be chosen.
    pub fn observe(&mut self, view: &SystemView<'_>) {
        if let Some(state) = &mut self.state {
            state.outlook.observe(view);
        }
        self.kept.retain(|(id, tie)| view.active.contains(id) && view.job(*id).tie() == *tie);
    }

    /// Takes note that these jobs run, where someone else than the planner has decided. Jobs that came in by a plan and
    /// do not run are no longer kept.
    pub fn carried_out(&mut self, jobs: &[JobId]) {
        self.kept.retain(|(id, _)| jobs.contains(id));
    }

    /// Returns the jobs that a scheduler would run.
    fn ask(scheduler: &mut dyn Scheduler, view: &SystemView<'_>, assignment: &mut Assignment) -> Vec<JobId> {
        assignment.reset(view.cores());
        scheduler.decide(view, assignment);
        assignment.jobs_in_order(view)
    }

    /// Compares what could run now; `suggestions` are alternatives to try first. The scheduler must have been started
    /// and must have observed every decision point.
    pub fn plan(&mut self, view: &SystemView<'_>, suggestions: &[Vec<JobId>]) -> Result<Plan, SimError> {
        self.observe(view);
        let Some(state) = &self.state else { return Ok(Plan::default()) };
        let base = Self::ask(&mut *self.base, view, &mut self.assignment);
        let mut counsels = suggestions.to_vec();
        let asked = self.counselors.iter_mut().map(|other| Self::ask(&mut **other, view, &mut self.assignment));
        counsels.extend(asked);
        let kept: Vec<JobId> = self.kept.iter().map(|(id, _)| *id).collect();
        let reference = Choice::keeping(view, base.clone(), &kept);
        let alternatives = Alternatives::of(view, &reference, base, &counsels, self.settings.exchanges);
        let mut plan = Plan { chosen: reference.jobs.clone(), compared: Vec::new() };
        let futures = self.settings.affordable_futures(view, alternatives.choices.len());
        if alternatives.choices.is_empty() || futures == 0 {
            return Ok(plan);
        }
        let rollout = Rollout { worths: &state.worths, end: state.end(view) };
        // Nothing that a scheduler does not know decides which futures are drawn.
        let seed = mixed_seed(self.settings.seed, view.now.0);
        let mut gains = vec![Gains::default(); alternatives.choices.len()];
        for number in 0..futures {
            if number == TRIAL {
                gains.iter_mut().for_each(Gains::drop_if_weak);
            }
            if gains.iter().all(|gain| gain.is_dropped) {
                break;
            }
            let future = state.outlook.draw(view, mixed_seed(seed, number as u64), rollout.end);
            let before = rollout.earned(future.clone(), &reference, &mut *self.base, &mut self.assignment)?;
            for (choice, gain) in alternatives.choices.iter().zip(&mut gains).filter(|(_, gain)| !gain.is_dropped) {
                let after = rollout.earned(future.clone(), choice, &mut *self.base, &mut self.assignment)?;
                gain.of_futures.push(after - before);
            }
        }
        self.planned += 1;
        let eligible = alternatives.choices.iter().zip(&gains).filter(|(_, gain)| gain.is_certain());
        if let Some((choice, _)) = eligible.max_by(|(_, a), (_, b)| a.mean().total_cmp(&b.mean())) {
            plan.chosen = choice.jobs.clone();
            self.kept.retain(|(id, _)| choice.jobs.contains(id));
            self.kept.extend(choice.kept.iter().filter(|id| !kept.contains(id)).map(|id| (*id, view.job(*id).tie())));
            self.changed += 1;
        }
        plan.compared = alternatives
            .choices
            .iter()
            .zip(&gains)
            .map(|(choice, gain)| choice.compared(view, &state.worths, &reference, gain.mean()))
            .collect();
        Ok(plan)
    }
}

/// Returns the base that serves the system best; of jobs that are not known beforehand, `edf-skip`, or `dios` where
/// they differ in worth.
fn tuned_base(system: &System, worths: &Worths) -> Box<dyn Scheduler> {
    let mut candidates = Candidate::classical(system);
    candidates.retain(|candidate| candidate.name().split(':').next().is_some_and(|name| BASES.contains(&name)));
    let choice = choose(system, &candidates, Settings::BARE);
    let tuned = build(&choice.name).ok().filter(|_| choice.why == Why::Simulated);
    tuned.unwrap_or_else(|| {
        let worth = |task: &Task| worths.of(task.criticality, task.value);
        let differs = system.tasks().windows(2).any(|pair| worth(&pair[0]) != worth(&pair[1]));
        if differs { Advisor::Dios } else { Advisor::EdfSkip }.scheduler()
    })
}

/// Gains of an alternative in the futures so far.
#[derive(Clone, Debug, Default)]
struct Gains {
    of_futures: Vec<f64>,
    is_dropped: bool,
}

impl Gains {
    fn mean(&self) -> f64 {
        mean(&self.of_futures)
    }

    /// Standard error of the mean; infinite for a single future.
    fn error(&self) -> f64 {
        standard_error(&self.of_futures).unwrap_or(f64::INFINITY)
    }

    /// Whether the mean is positive and exceeds its standard error.
    fn is_certain(&self) -> bool {
        self.mean() > self.error()
    }

    /// Drops an alternative that will hardly gain anything.
    fn drop_if_weak(&mut self) {
        self.is_dropped = self.mean() + self.error() <= 0.0;
    }
}

impl Scheduler for Planner {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let worths = system.goal().worths(system.tasks());
        if self.is_base_tuned {
            self.base = tuned_base(system, &worths);
        }
        self.base.start(system)?;
        self.counselors.retain_mut(|scheduler| scheduler.start(system).is_ok());
        self.state = Some(Prospect::new(system, worths, self.settings.horizon));
        self.kept.clear();
        (self.planned, self.changed) = (0, 0);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if view.leaves_no_choice() {
            self.observe(view);
            return assignment.place(view, view.active);
        }
        // An error would be an illegal decision of the base scheduler, which the simulator reports when it is carried
        // out.
        match self.plan(view, &[]) {
            Ok(plan) => assignment.place(view, &plan.chosen),
            Err(_) => self.base.decide(view, assignment),
        }
    }

    fn watch(&mut self, view: &SystemView<'_>, _scratch: &mut Assignment) {
        self.observe(view);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("planned", self.planned), ("changed", self.changed)]
    }
}
