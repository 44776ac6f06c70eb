//! One core, exactly: a dynamic program over the releases whose states are what may matter later, with dominance and dual bounds.
//!
//! At a release each state splits: the job is taken (if all taken ones can still meet their deadlines) or left out. Later only the weight
//! so far and the backlog matter: how much work of taken jobs is left, by deadline. A state is dropped if another has at least its
//! weight and nowhere more backlog, or if it cannot beat the best known set even at the prices of the linear relaxation: time is worth
//! its price, a job to come its weight less the cheapest time in its window, and backlog costs the cheapest time before its deadline.
//!
//! If no state had to be dropped for want of room, the answer is exact; else the dropped ones' bounds still bound it.

use super::OracleJob;
use super::relaxation::{beats, tighten};

/// What a search came to.
pub(super) struct LabelResult {
    /// The best set found, if it beats what was known.
    pub better: Option<(f64, Vec<bool>)>,
    /// No set has more.
    pub upper: f64,
    pub steps: u64,
}

struct State {
    weight: f64,
    bound: f64,
    total: u64,
    /// Range of its backlog in the layer's list.
    begin: usize,
    end: usize,
    parent: u32,
    takes: bool,
}

/// Work left, by deadline (as an index into the bounds), ascending.
type Backlog = Vec<(u32, u64)>;

/// The prices of time, made ready for questions.
struct Prices<'a> {
    bounds: &'a [u64],
    /// The least price of `2^k` intervals from each.
    least: Vec<Vec<f64>>,
    /// What all time from each bound on is worth.
    time_from: Vec<f64>,
}

impl<'a> Prices<'a> {
    fn new(bounds: &'a [u64], price: &[f64]) -> Prices<'a> {
        let mut least = vec![price.to_vec()];
        let mut width = 1;
        while 2 * width <= price.len() {
            let last = &least[least.len() - 1];
            let next = (0..=price.len() - 2 * width).map(|at| last[at].min(last[at + width])).collect();
            least.push(next);
            width *= 2;
        }
        let mut time_from = vec![0.0; bounds.len()];
        for at in (0..price.len()).rev() {
            time_from[at] = time_from[at + 1] + price[at] * (bounds[at + 1] - bounds[at]) as f64;
        }
        Prices { bounds, least, time_from }
    }

    /// The cheapest time between two bounds.
    fn cheapest(&self, from: usize, to: usize) -> f64 {
        if from >= to {
            return 0.0;
        }
        let level = (to - from).ilog2() as usize;
        self.least[level][from].min(self.least[level][to - (1 << level)])
    }
}

/// Looks for a set of more than `known` weight with at most `width` states at a time. Jobs are sorted by release.
pub(super) fn search(
    jobs: &[OracleJob],
    bounds: &[u64],
    price: &[f64],
    known: f64,
    has_whole_weights: bool,
    width: usize,
    most_steps: u64,
) -> LabelResult {
    let prices = Prices::new(bounds, price);
    let index = |time: u64| bounds.partition_point(|bound| *bound < time);
    let places: Vec<(usize, usize)> = jobs.iter().map(|job| (index(job.release.0), index(job.deadline.0))).collect();
    // What the jobs from each on are worth beyond the time they take.
    let mut gains = vec![0.0; jobs.len() + 1];
    for (at, job) in jobs.iter().enumerate().rev() {
        let (from, to) = places[at];
        gains[at] = gains[at + 1] + (job.weight - job.execution.0 as f64 * prices.cheapest(from, to)).max(0.0);
    }
    let mut layer = vec![State { weight: 0.0, bound: 0.0, total: 0, begin: 0, end: 0, parent: 0, takes: false }];
    let mut store: Backlog = Vec::new();
    let mut history: Vec<Vec<(u32, bool)>> = Vec::with_capacity(jobs.len());
    let (mut dropped, mut steps) = (f64::MIN, 0);
    let mut now = bounds.first().copied().unwrap_or(0);
    let (mut backlog, mut with): (Backlog, Backlog) = (Vec::new(), Vec::new());
    for (at, job) in jobs.iter().enumerate() {
        let (from, to) = places[at];
        let passed = job.release.0 - now;
        now = job.release.0;
        let mut next: Vec<State> = Vec::with_capacity(2 * layer.len());
        let mut next_store: Backlog = Vec::with_capacity(2 * store.len());
        for (parent, state) in layer.iter().enumerate() {
            run(&store[state.begin..state.end], passed, &mut backlog);
            steps += 4 + 2 * backlog.len() as u64;
            let mut keep = |backlog: &Backlog, weight: f64, takes: bool| {
                let cost: f64 = backlog
                    .iter()
                    .map(|(deadline, left)| *left as f64 * prices.cheapest(from, *deadline as usize))
                    .sum();
                let bound = weight + prices.time_from[from] + gains[at + 1] - cost;
                if beats(bound, known, has_whole_weights) {
                    let begin = next_store.len();
                    next_store.extend_from_slice(backlog);
                    let total = backlog.iter().map(|(_, left)| left).sum();
                    let end = next_store.len();
                    next.push(State { weight, bound, total, begin, end, parent: parent as u32, takes });
                }
            };
            keep(&backlog, state.weight, false);
            if with_job(&backlog, to as u32, job.execution.0, now, prices.bounds, &mut with) {
                keep(&with, state.weight + job.weight, true);
            }
        }
        steps += prune(&mut next, &next_store);
        if next.len() > width {
            next.sort_by(|a, b| {
                b.bound.total_cmp(&a.bound).then(b.weight.total_cmp(&a.weight)).then(a.total.cmp(&b.total))
            });
            dropped = dropped.max(next[width].bound);
            next.truncate(width);
        }
        history.push(next.iter().map(|state| (state.parent, state.takes)).collect());
        (layer, store) = (next, next_store);
        if layer.is_empty() || steps > most_steps {
            break;
        }
    }
    let is_complete = history.len() == jobs.len() && steps <= most_steps || layer.is_empty();
    if !is_complete {
        // It stopped half-way: what is open bounds the rest.
        let open = layer.iter().map(|state| state.bound).fold(dropped, f64::max);
        return LabelResult { better: None, upper: tighten(open, has_whole_weights).max(known), steps };
    }
    let best = layer.iter().enumerate().max_by(|(_, a), (_, b)| a.weight.total_cmp(&b.weight));
    let better = best.map(|(place, state)| (state.weight, trace(&history, place)));
    let found = better.as_ref().map_or(known, |(weight, _)| *weight);
    let upper = tighten(dropped, has_whole_weights).max(found).max(known);
    LabelResult { better: better.filter(|(weight, _)| *weight > known), upper, steps }
}

/// The backlog after the core has worked on it for `passed`.
fn run(before: &[(u32, u64)], passed: u64, after: &mut Backlog) {
    after.clear();
    let mut left = passed;
    for (deadline, work) in before {
        let done = left.min(*work);
        left -= done;
        if done < *work {
            after.push((*deadline, work - done));
        }
    }
}

/// The backlog with one more job, if everything can still be done in time.
fn with_job(before: &Backlog, deadline: u32, work: u64, now: u64, bounds: &[u64], after: &mut Backlog) -> bool {
    after.clear();
    after.extend_from_slice(before);
    let place = after.partition_point(|(other, _)| *other < deadline);
    match after.get_mut(place) {
        Some((other, left)) if *other == deadline => *left += work,
        _ => after.insert(place, (deadline, work)),
    }
    let mut finish = now;
    after.iter().enumerate().all(|(index, (deadline, left))| {
        finish += left;
        index < place || finish <= bounds[*deadline as usize]
    })
}

/// Drops the states that another one is at least as good as.
fn prune(states: &mut Vec<State>, store: &Backlog) -> u64 {
    states.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.total.cmp(&b.total)));
    let mut kept: Vec<State> = Vec::with_capacity(states.len());
    let mut steps = 0;
    for state in states.drain(..) {
        let own = &store[state.begin..state.end];
        let is_beaten = kept.iter().any(|other| {
            steps += 1;
            other.total <= state.total && {
                steps += (other.end - other.begin) as u64;
                is_nowhere_more(&store[other.begin..other.end], own)
            }
        });
        if !is_beaten {
            kept.push(state);
        }
    }
    *states = kept;
    steps
}

/// Whether the first has, up to each deadline, no more work left than the second.
fn is_nowhere_more(first: &[(u32, u64)], second: &[(u32, u64)]) -> bool {
    let (mut sum, mut other_sum, mut place) = (0, 0, 0);
    for (deadline, left) in first {
        sum += left;
        while place < second.len() && second[place].0 <= *deadline {
            other_sum += second[place].1;
            place += 1;
        }
        if sum > other_sum {
            return false;
        }
    }
    true
}

/// Which jobs a state of the last layer has taken.
fn trace(history: &[Vec<(u32, bool)>], mut place: usize) -> Vec<bool> {
    let mut taken = vec![false; history.len()];
    for (at, layer) in history.iter().enumerate().rev() {
        let (parent, takes) = layer[place];
        taken[at] = takes;
        place = parent as usize;
    }
    taken
}
