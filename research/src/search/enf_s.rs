//! ENF-S (Abdi and Salimi-Badr 2023): a fuzzy neural network, evolved by NSGA-II, that ranks by degrees of criticality.
//!
//! The source ranks heterogeneous cores by temperature, power, failure rate and execution time, for graphs of tasks.
//! Here, where cores are identical and jobs independent, the network ranks the ready jobs by slack, remaining execution
//! and worth. Its rules are of the Takagi–Sugeno kind with constant consequents: each input has three Gaussian sets,
//! and each of the 27 combinations is a rule. As there, the parameters are evolved before use and then stay: here at
//! the first decision with more ready jobs than cores, by two measures, the worth of the jobs in time and the mean time
//! in the system, in futures that are drawn from what is known. Of a list of jobs, of which little is known at first,
//! it is evolved again whenever twice as many jobs have been seen.

use rand::RngExt;
use rand_pcg::Pcg32;
use temponet::planner::Prospect;
use temponet_sim::SimError;
use temponet_task::{Arrival, Assignment, Event, Job, NotApplicable, Scheduler, System, SystemView, Time, Worths};

use super::judge::{Judge, Judged, Score};
use super::window::Ranked;
use super::{Futures, SearchSettings};

/// Inputs of the network, fuzzy sets of each, and rules.
const INPUTS: usize = 3;
const SETS: usize = 3;
const RULES: usize = SETS.pow(INPUTS as u32);
/// Number of parameters: centers, widths and consequents, each from 0 to 1.
const PARAMETERS: usize = 2 * INPUTS * SETS + RULES;
/// Greatest and least width of a fuzzy set.
const WIDTHS: (f64, f64) = (0.6, 0.1);
/// Least number of futures in which a network is judged: it has to be good at more than one, as the source trains on
/// many graphs.
const FUTURES: usize = 8;
/// Distribution index of crossover and mutation; the usual one of NSGA-II.
const INDEX: f64 = 15.0;

/// The fuzzy neural network.
#[derive(Clone, Debug)]
struct Network<'a> {
    parameters: &'a [f64],
}

impl Network<'_> {
    /// Returns the criticality of a job, 0 to 1.
    fn criticality(&self, inputs: [f64; INPUTS]) -> f64 {
        let mut membership = [[0.0; SETS]; INPUTS];
        for (input, sets) in membership.iter_mut().enumerate() {
            for (set, degree) in sets.iter_mut().enumerate() {
                let at = 2 * (input * SETS + set);
                let width = WIDTHS.1 + (WIDTHS.0 - WIDTHS.1) * self.parameters[at + 1];
                *degree = (-((inputs[input] - self.parameters[at]) / width).powi(2)).exp();
            }
        }
        let (mut sum, mut weights) = (0.0, 1e-12);
        for (rule, consequent) in self.parameters[2 * INPUTS * SETS..].iter().enumerate() {
            let weight = membership[0][rule % SETS]
                * membership[1][rule / SETS % SETS]
                * membership[2][rule / (SETS * SETS) % SETS];
            sum += weight * consequent;
            weights += weight;
        }
        sum / weights
    }

    /// Parameters of evenly spread sets whose rules rank by deadline: little slack and little remaining execution are
    /// critical.
    fn by_deadline() -> Vec<f64> {
        let spread = |set: usize| set as f64 / (SETS - 1) as f64;
        let mut parameters: Vec<f64> = (0..INPUTS * SETS).flat_map(|at| [spread(at % SETS), 0.5]).collect();
        parameters.extend((0..RULES).map(|rule| 1.0 - (spread(rule % SETS) + spread(rule / SETS % SETS)) / 2.0));
        parameters
    }
}

/// Returns the inputs of a job: slack and remaining execution in units of `unit`, and worth in worths of a mean job,
/// each bent into the range from 0 to 1.
fn inputs(job: &Job, now: Time, unit: f64, worths: &Worths) -> [f64; INPUTS] {
    let bent = |ratio: f64| (ratio / (1.0 + ratio.abs()) + 1.0) / 2.0;
    let worth = worths.of(job.criticality, job.value);
    [bent(job.slack(now) as f64 / unit), bent(job.time_to_finish().0 as f64 / unit), bent(worth)]
}

/// The scheduler.
pub(super) struct EnfS {
    settings: SearchSettings,
    prospect: Option<Prospect>,
    /// Median wcet, in nanoseconds.
    unit: f64,
    has_lists: bool,
    parameters: Vec<f64>,
    released: u64,
    /// Number of released jobs at which the network is evolved.
    evolve_at: u64,
    ranked: Ranked,
    scratch: Assignment,
    evolutions: u64,
}

impl EnfS {
    pub fn new(settings: SearchSettings) -> EnfS {
        EnfS {
            settings,
            prospect: None,
            unit: 1.0,
            has_lists: false,
            parameters: Network::by_deadline(),
            released: 0,
            evolve_at: 0,
            ranked: Ranked::default(),
            scratch: Assignment::default(),
            evolutions: 0,
        }
    }

    fn observe(&mut self, view: &SystemView<'_>) {
        if let Some(prospect) = &mut self.prospect {
            prospect.outlook.observe(view);
        }
        let is_release = |event: &&Event| matches!(event, Event::Released(_));
        self.released += view.events.iter().filter(is_release).count() as u64;
    }

    /// Returns evolved parameters.
    fn evolved(&mut self, view: &SystemView<'_>) -> Result<Vec<f64>, SimError> {
        let Some(prospect) = &self.prospect else { return Ok(Network::by_deadline()) };
        let settings = SearchSettings { futures: self.settings.futures.max(FUTURES), ..self.settings };
        let (futures, _) = Futures::draw(prospect, view, settings, &mut self.scratch)?;
        let (ranked, scratch, unit, worths) = (&mut self.ranked, &mut self.scratch, self.unit, &prospect.worths);
        let mut problem = None;
        let mut measure = |parameters: &[f64]| {
            let network = Network { parameters };
            futures.score(scratch, &mut problem, |view, assignment| {
                ranked.place(view, assignment, |job| -network.criticality(inputs(job, view.now, unit, worths)));
            })
        };
        let known =
            [Network::by_deadline(), self.parameters.clone()].into_iter().take(1 + self.evolutions.min(1) as usize);
        let mut judge = Judge::new(&mut measure, known, self.settings.evaluations);
        evolve(&mut judge, &mut Pcg32::new(futures.seed, 1));
        let parameters = judge.best().keys.clone();
        problem.map_or(Ok(parameters), Err)
    }
}

impl Scheduler for EnfS {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let worths = system.goal().worths(system.tasks());
        *self = EnfS::new(self.settings);
        self.unit = system.median_wcet().0 as f64;
        self.has_lists = system.tasks().iter().any(|task| matches!(task.arrival, Arrival::Listed(_)));
        self.prospect = Some(Prospect::new(system, worths, self.settings.horizon));
        Ok(())
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.observe(view);
        if view.leaves_no_choice() {
            return assignment.place(view, view.active);
        }
        if self.released >= self.evolve_at {
            // An error would be an illegal decision in a future; the order by deadline stands in then.
            self.parameters = self.evolved(view).unwrap_or_else(|_| Network::by_deadline());
            self.evolve_at = if self.has_lists { 2 * self.released } else { u64::MAX };
            self.evolutions += 1;
        }
        let (network, unit) = (Network { parameters: &self.parameters }, self.unit);
        let Some(prospect) = &self.prospect else { return };
        self.ranked.place(view, assignment, |job| -network.criticality(inputs(job, view.now, unit, &prospect.worths)));
    }

    fn watch(&mut self, view: &SystemView<'_>, _scratch: &mut Assignment) {
        self.observe(view);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("searches", self.evolutions)]
    }
}

/// NSGA-II (Deb et al. 2002): of parents and children together, those live on that the fewest others dominate, and
/// among equals those in the sparsest neighborhood.
fn evolve(judge: &mut Judge<'_>, rng: &mut Pcg32) {
    let size = judge.population();
    let Some(mut population) = judge.first_population(size, rng) else { return };
    loop {
        // Survivors are sorted best first, so a tournament is won by the lower place.
        for _ in 0..size {
            let mut winner = || rng.random_range(0..size).min(rng.random_range(0..size));
            let (mother, father) = (winner(), winner());
            let child = child(&population[mother].keys, &population[father].keys, rng);
            let Some(score) = judge.judge(&child) else { return };
            population.push(Judged { keys: child, score });
        }
        population = survivors(population, size);
    }
}

/// Simulated binary crossover and polynomial mutation of one parameter in each child on average.
fn child(mother: &[f64], father: &[f64], rng: &mut Pcg32) -> Vec<f64> {
    let rate = 1.0 / PARAMETERS as f64;
    let exponent = 1.0 / (INDEX + 1.0);
    let mut gene = |(one, other): (&f64, &f64)| {
        let drawn: f64 = rng.random();
        let spread =
            if drawn < 0.5 { (2.0 * drawn).powf(exponent) } else { (1.0 / (2.0 * (1.0 - drawn))).powf(exponent) };
        let sign = if rng.random::<bool>() { spread } else { -spread };
        let mut value = ((1.0 + sign) * one + (1.0 - sign) * other) / 2.0;
        if rng.random::<f64>() < rate {
            let drawn: f64 = rng.random();
            value += match drawn < 0.5 {
                true => (2.0 * drawn).powf(exponent) - 1.0,
                false => 1.0 - (2.0 * (1.0 - drawn)).powf(exponent),
            };
        }
        value.clamp(0.0, 1.0)
    };
    mother.iter().zip(father).map(&mut gene).collect()
}

/// Returns the `size` best of a population, best first: by front, then by crowding distance.
fn survivors(mut population: Vec<Judged>, size: usize) -> Vec<Judged> {
    let mut kept = Vec::with_capacity(size);
    while kept.len() < size && !population.is_empty() {
        let scores: Vec<Score> = population.iter().map(|one| one.score).collect();
        let is_dominated = |score: Score| scores.iter().any(|other| other.dominates(score));
        let (mut front, rest): (Vec<_>, Vec<_>) = population.into_iter().partition(|one| !is_dominated(one.score));
        // On a front of two measures, the order by one is the reverse of the order by the other.
        front.sort_by(|a, b| b.score.worth.total_cmp(&a.score.worth));
        let crowding: Vec<f64> = (0..front.len()).map(|at| crowding(&front, at)).collect();
        let mut places: Vec<usize> = (0..front.len()).collect();
        places.sort_by(|a, b| crowding[*b].total_cmp(&crowding[*a]));
        kept.extend(places.into_iter().take(size - kept.len()).map(|place| front[place].clone()));
        population = rest;
    }
    kept
}

/// Returns the distance between the neighbors of a place on a front, as shares of the ranges; infinite at the ends.
fn crowding(front: &[Judged], at: usize) -> f64 {
    let (Some(before), Some(after)) = (at.checked_sub(1).and_then(|at| front.get(at)), front.get(at + 1)) else {
        return f64::INFINITY;
    };
    let range = |of: fn(&Score) -> f64| {
        let whole = of(&front[0].score) - of(&front[front.len() - 1].score);
        if whole == 0.0 { 0.0 } else { (of(&before.score) - of(&after.score)) / whole }
    };
    range(|score| score.worth) + range(|score| score.response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_first_the_network_ranks_by_deadline() {
        let parameters = Network::by_deadline();
        let network = Network { parameters: &parameters };
        let at = |slack: f64, remaining: f64| network.criticality([slack, remaining, 0.5]);
        assert!(at(0.1, 0.5) > at(0.4, 0.5) && at(0.4, 0.5) > at(0.9, 0.5));
        assert!(at(0.5, 0.6) > at(0.5, 0.9));
    }

    #[test]
    fn survivors_are_the_first_fronts_and_their_ends() {
        let one = |worth: f64, response: f64| Judged { keys: vec![worth], score: Score { worth, response } };
        let population = vec![one(1.0, 0.1), one(3.0, 0.9), one(0.5, 0.5), one(2.0, 0.2), one(2.1, 0.3), one(0.4, 0.9)];
        let kept: Vec<f64> = survivors(population, 3).iter().map(|one| one.score.worth).collect();
        assert_eq!(kept, [3.0, 1.0, 2.1]);
    }
}
