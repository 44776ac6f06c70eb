//! What every search method works with: candidates in, scores out, until the budget of evaluations is spent.
//!
//! A candidate is a vector of keys from 0 to 1, one for each job of the window (random keys, Bean 1994): the jobs
//! sorted by their keys are a priority order, so that every vector is a valid candidate. The judge knows nothing of
//! simulation, and a method knows nothing of jobs.

use rand::RngExt;
use rand_pcg::Pcg32;

/// How good a candidate is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Worth of the jobs in time, in worths of a mean job.
    pub worth: f64,
    /// Mean time in the system of a job as a share of the future's length, 0 to 1. Less is better.
    pub response: f64,
}

/// Weight of the response time in the fitness: it decides among candidates of the same worth, and does not outweigh a
/// job.
const RESPONSE_WEIGHT: f64 = 1e-2;

impl Score {
    /// Returns both measures as one number, of which more is better.
    pub fn fitness(self) -> f64 {
        self.worth - RESPONSE_WEIGHT * self.response
    }

    /// Whether this score is at least as good in both measures and better in one.
    pub fn dominates(self, other: Score) -> bool {
        self.worth >= other.worth && self.response <= other.response && self != other
    }
}

/// A candidate with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub keys: Vec<f64>,
    pub score: Score,
}

impl Judged {
    /// Returns the fitness of the score.
    pub fn fitness(&self) -> f64 {
        self.score.fitness()
    }
}

/// Judge of candidates, with a budget.
pub struct Judge<'a> {
    measure: &'a mut dyn FnMut(&[f64]) -> Score,
    /// Orders that were known before, best first.
    known: Vec<Judged>,
    best: Judged,
    evaluations: usize,
    left: usize,
}

impl<'a> Judge<'a> {
    /// Creates a judge with a budget of `evaluations`, of which each of the `known` candidates takes one. There must be
    /// at least one of them.
    pub fn new(
        measure: &'a mut dyn FnMut(&[f64]) -> Score,
        known: impl Iterator<Item = Vec<f64>>,
        evaluations: usize,
    ) -> Judge<'a> {
        let mut judged: Vec<Judged> = Vec::new();
        for keys in known.take(evaluations.max(1)) {
            let score = measure(&keys);
            judged.push(Judged { keys, score });
        }
        let left = evaluations.saturating_sub(judged.len());
        judged.sort_by(|a, b| b.fitness().total_cmp(&a.fitness()));
        let best = judged.first().cloned().unwrap_or(Judged { keys: Vec::new(), score: Score::default() });
        Judge { measure, known: judged, best, evaluations, left }
    }

    /// Returns the number of keys of a candidate.
    pub fn dimension(&self) -> usize {
        self.best.keys.len()
    }

    /// Returns the candidates that were known before, best first. There is at least one.
    pub fn known(&self) -> &[Judged] {
        &self.known
    }

    /// Returns the best candidate so far.
    pub fn best(&self) -> &Judged {
        &self.best
    }

    /// Returns the number of members of a population. With as many generations, it takes the whole budget.
    pub fn population(&self) -> usize {
        (self.evaluations as f64).sqrt().round().clamp(4.0, 32.0) as usize
    }

    /// Returns the part of the budget that is spent, 0 to 1.
    pub fn progress(&self) -> f64 {
        1.0 - self.left as f64 / self.evaluations.max(1) as f64
    }

    /// Judges a candidate; `None` if the budget is spent, and the search is over.
    pub fn judge(&mut self, keys: &[f64]) -> Option<Score> {
        temponet_cancel::checkpoint();
        self.left = self.left.checked_sub(1)?;
        let score = (self.measure)(keys);
        if score.fitness() > self.best.fitness() {
            self.best.score = score;
            self.best.keys.clear();
            self.best.keys.extend_from_slice(keys);
        }
        Some(score)
    }

    /// Returns a population of judged candidates: the known ones, and random ones up to `size`; `None` if the budget
    /// does not suffice.
    pub fn first_population(&mut self, size: usize, rng: &mut Pcg32) -> Option<Vec<Judged>> {
        let mut population = self.known.clone();
        population.truncate(size);
        while population.len() < size {
            let keys = random_keys(self.dimension(), rng);
            let score = self.judge(&keys)?;
            population.push(Judged { keys, score });
        }
        Some(population)
    }
}

/// Draws a uniform candidate.
pub fn random_keys(dimension: usize, rng: &mut Pcg32) -> Vec<f64> {
    (0..dimension).map(|_| rng.random::<f64>()).collect()
}
