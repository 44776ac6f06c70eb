//! Schedulers that search: before they decide, they judge priority orders of the ready and coming jobs in simulated
//! futures.
//!
//! They are the search baselines of the paper: particle swarm, genetic and quantum-inspired search, and random search
//! as the yardstick. All of them share the window, the futures, the budget and the rule when to search; a method is one
//! short file that turns scores into further candidates.
//!
//! A search takes place at a decision with more ready jobs than cores if jobs have been released since the last one, an
//! eighth of the ready ones at least. Until the next, the order found is followed. Futures are drawn from what an
//! online scheduler knows, as the [planner](temponet::planner) draws them. The budget counts evaluations, and no clock
//! is read. Order by deadline and the order found before are the first two candidates of every method, so none begins
//! worse than EDF that skips hopeless jobs.
//!
//! `enf-s` is the exception: it searches the parameters of a fuzzy network once, and the network decides.
//!
//! These schedulers are for comparison, not for embedding: a decision takes milliseconds.

mod cga;
mod enf_s;
mod judge;
mod mhqisso;
mod pso;
mod qiga;
mod qubits;
mod random;
mod window;

use rand_pcg::Pcg32;
use temponet::planner::{Outcome, Prospect, Rollout};
use temponet_sched::catalog::{Entry, Kind, OptionHelp, Options, Request};
use temponet_sim::{SimError, mixed_seed};
use temponet_task::{Assignment, Event, NotApplicable, Scheduler, System, SystemView};

use judge::{Judge, Score};
use window::{Ranked, Window};

/// A way to search orders.
type Search = fn(&mut Judge<'_>, &mut Pcg32);

/// A search scheduler of the list.
pub struct Method {
    /// Name as a scheduler.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Way to search orders; none for the method that searches a network.
    search: Option<Search>,
}

/// All search schedulers.
pub static ALL: [Method; 7] = [
    Method {
        name: "random-search",
        summary: "the best of random priority orders in simulated futures; slow, and only run if named",
        search: Some(random::search),
    },
    Method {
        name: "pso",
        summary: "particle swarm over priority orders in simulated futures; slow, and only run if named",
        search: Some(pso::search),
    },
    Method {
        name: "cga",
        summary: "genetic algorithm over priority orders in simulated futures; slow, and only run if named",
        search: Some(cga::search),
    },
    Method {
        name: "hqiga",
        summary: "quantum-inspired genetic algorithm over priority orders; slow, and only run if named",
        search: Some(qiga::hybrid),
    },
    Method {
        name: "mo-qiga",
        summary: "quantum-inspired genetic algorithm with two objectives; slow, and only run if named",
        search: Some(qiga::multi_objective),
    },
    Method {
        name: "mhqisso",
        summary: "quantum-inspired salp swarm over priority orders; slow, and only run if named",
        search: Some(mhqisso::search),
    },
    Method {
        name: "enf-s",
        summary: "fuzzy network that is evolved in simulated futures at the first decision, and then ranks the jobs",
        search: None,
    },
];

/// Options of every search scheduler.
const OPTIONS: [OptionHelp; 4] = [
    ("evaluations", "100", "number of candidates that a search judges"),
    ("futures", "1", "number of futures in which a candidate is judged"),
    ("horizon", "20", "length of a future in median wcets"),
    ("seed", "1", "seed of the futures and of the search"),
];

/// Number of ready jobs for each release that makes a search worthwhile: among many ready jobs, one more changes
/// little.
const RARITY: usize = 8;
/// Largest value of an option.
const MOST: usize = 1_000_000;

/// Settings of a search scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchSettings {
    /// Number of candidates that a search judges; default 100.
    pub evaluations: usize,
    /// Number of futures in which a candidate is judged; default 1.
    pub futures: usize,
    /// Length of a future in median wcets of the set; default 20. It is at most 40 mean execution times of a job.
    pub horizon: f64,
    /// Seed of the futures and of the search; default 1.
    pub seed: u64,
}

impl Default for SearchSettings {
    fn default() -> SearchSettings {
        SearchSettings { evaluations: 100, futures: 1, horizon: 20.0, seed: 1 }
    }
}

impl SearchSettings {
    /// Reads the options of a user.
    fn of(options: &Options) -> Result<SearchSettings, String> {
        let count = |key: &str| options.count_within(key, 1..=MOST);
        Ok(SearchSettings {
            evaluations: count("evaluations")?,
            futures: count("futures")?,
            horizon: count("horizon")? as f64,
            seed: count("seed")? as u64,
        })
    }
}

impl Method {
    /// Returns the entry of the method for the catalog of schedulers.
    pub fn entry(&'static self) -> Entry {
        let purpose = "a search baseline of the paper beside the learned scheduler";
        let build = |request: &Request<'_>| Ok(self.scheduler(SearchSettings::of(request.options)?));
        Entry::new(self.name, self.summary, purpose, build).kind(Kind::Searching).options(&OPTIONS)
    }

    /// Builds the scheduler with these settings.
    pub fn scheduler(&self, settings: SearchSettings) -> Box<dyn Scheduler> {
        match self.search {
            Some(search) => Box::new(Searcher::new(search, settings)),
            None => Box::new(enf_s::EnfS::new(settings)),
        }
    }
}

/// A scheduler that searches orders. See the [module](self).
struct Searcher {
    search: Search,
    settings: SearchSettings,
    prospect: Option<Prospect>,
    /// Window and keys of the last search.
    found: Option<(Window, Vec<f64>)>,
    /// Number of jobs that have been released since the last search.
    released: usize,
    ranked: Ranked,
    scratch: Assignment,
    searches: u64,
}

impl Searcher {
    fn new(search: Search, settings: SearchSettings) -> Searcher {
        Searcher {
            search,
            settings,
            prospect: None,
            found: None,
            released: 0,
            ranked: Ranked::default(),
            scratch: Assignment::default(),
            searches: 0,
        }
    }

    fn observe(&mut self, view: &SystemView<'_>) {
        if let Some(prospect) = &mut self.prospect {
            prospect.outlook.observe(view);
        }
        self.released += view.events.iter().filter(|event| matches!(event, Event::Released(_))).count();
    }

    /// Searches an order for the jobs of a decision.
    fn found(&mut self, view: &SystemView<'_>) -> Result<Option<(Window, Vec<f64>)>, SimError> {
        let Some(prospect) = &self.prospect else { return Ok(None) };
        let (futures, window) = Futures::draw(prospect, view, self.settings, &mut self.scratch)?;
        if window.len() < 2 {
            return Ok(None);
        }
        let mut problem = None;
        let (ranked, scratch) = (&mut self.ranked, &mut self.scratch);
        let mut measure = |keys: &[f64]| {
            futures.score(scratch, &mut problem, |view, assignment| window.place(view, keys, ranked, assignment))
        };
        let carried = self.found.as_ref().map(|(earlier, keys)| window.carried(earlier, keys));
        let known = [window.by_deadline()].into_iter().chain(carried);
        let mut judge = Judge::new(&mut measure, known, self.settings.evaluations);
        let mut rng = Pcg32::new(futures.seed, 1);
        (self.search)(&mut judge, &mut rng);
        let keys = judge.best().keys.clone();
        problem.map_or(Ok(Some((window, keys))), Err)
    }
}

/// Futures of a decision in which candidates are judged.
struct Futures<'a> {
    rollout: Rollout<'a>,
    begin: temponet_task::Time,
    /// Seed of this decision.
    seed: u64,
    all: Vec<temponet_sim::Engine>,
}

impl<'a> Futures<'a> {
    /// Draws the futures of a decision, and returns the window of the first one. Where more jobs come than a window can
    /// hold, the futures end with the last job in it.
    fn draw(
        prospect: &'a Prospect,
        view: &SystemView<'_>,
        settings: SearchSettings,
        idle: &mut Assignment,
    ) -> Result<(Futures<'a>, Window), SimError> {
        // Nothing that a scheduler does not know decides which futures are drawn.
        let seed = mixed_seed(settings.seed, view.now.0);
        let draw = |number: usize, end| prospect.outlook.draw(view, mixed_seed(seed, number as u64), end);
        let longest = prospect.end(view);
        let window = Window::of(view, draw(0, longest), idle)?;
        let end = window.end().map_or(longest, |end| end.min(longest));
        let all = (0..settings.futures.max(1)).map(|number| draw(number, end)).collect();
        Ok((Futures { rollout: Rollout { worths: &prospect.worths, end }, begin: view.now, seed, all }, window))
    }

    /// Returns the mean score in all futures of a rule for decisions. An error goes to `problem`.
    fn score(
        &self,
        scratch: &mut Assignment,
        problem: &mut Option<SimError>,
        mut decide: impl FnMut(&SystemView<'_>, &mut Assignment),
    ) -> Score {
        let mut total = Outcome::default();
        for future in &self.all {
            match self.rollout.outcome(future.clone(), scratch, &mut decide) {
                Ok(Outcome { earned, sojourn, jobs }) => {
                    total.earned += earned;
                    total.sojourn += sojourn;
                    total.jobs += jobs;
                }
                Err(error) => *problem = Some(error),
            }
        }
        let length = self.rollout.end.saturating_sub(self.begin).0.max(1) as f64;
        let response = total.sojourn / (length * total.jobs.max(1) as f64);
        Score { worth: total.earned / self.all.len() as f64, response }
    }
}

impl Scheduler for Searcher {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let worths = system.goal().worths(system.tasks());
        self.prospect = Some(Prospect::new(system, worths, self.settings.horizon));
        (self.found, self.released, self.searches) = (None, 0, 0);
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.observe(view);
        if view.leaves_no_choice() {
            return assignment.place(view, view.active);
        }
        let is_outdated = self.released > 0 && RARITY * self.released >= view.active.len();
        if self.found.is_none() || is_outdated {
            // An error would be an illegal decision in a future; the order by deadline stands in then.
            self.found = self.found(view).unwrap_or_default();
            self.released = 0;
            self.searches += 1;
        }
        match &self.found {
            Some((window, keys)) => window.place(view, keys, &mut self.ranked, assignment),
            None => self.ranked.place(view, assignment, |_| 0.0),
        }
    }

    fn watch(&mut self, view: &SystemView<'_>, _scratch: &mut Assignment) {
        self.observe(view);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("searches", self.searches)]
    }
}
