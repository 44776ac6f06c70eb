//! Exact search on one core: a dynamic program over the releases, with dominance and dual bounds.
//!
//! At each release every state splits in two: the job is taken, if all taken jobs can still meet their deadlines, or
//! left out. After that, only two things matter: the weight taken so far, and the backlog, that is, the remaining work
//! of the taken jobs by deadline. A state is dropped in two cases:
//!
//! - Another state has at least its weight and, up to every deadline, no more backlog.
//! - It cannot beat the best known set even at the prices of the linear relaxation. There, time is worth its price, a
//!   coming job is worth its weight less the cheapest time in its window, and backlog costs the cheapest time before
//!   its deadline.
//!
//! The answer is exact unless states had to be dropped because a layer was full. The bounds of those states still bound
//! the optimum.

use super::OracleJob;
use super::relaxation::{beats, tighten};

/// The input of a search.
pub(super) struct LabelSearch<'a> {
    /// Sorted by release.
    pub jobs: &'a [OracleJob],
    /// All releases and deadlines, ascending.
    pub dates: &'a [u64],
    /// Price of one nanosecond in each interval between two dates.
    pub price: &'a [f64],
    /// Weight of the best set known so far; only better sets are looked for.
    pub known: f64,
    pub has_whole_weights: bool,
    /// Maximum number of states per layer.
    pub width: usize,
    /// Elementary steps after which the search stops.
    pub most_steps: u64,
}

/// The result of a search.
pub(super) struct LabelResult {
    /// The best set found and its weight, if it beats the known weight.
    pub better: Option<(f64, Vec<bool>)>,
    /// Upper bound on the weight of any set.
    pub upper: f64,
    /// Elementary steps taken.
    pub steps: u64,
}

/// One way to take or leave the jobs released so far.
struct State {
    weight: f64,
    /// Upper bound on the weight of any set that continues this state.
    bound: f64,
    /// Sum of the backlog.
    total: u64,
    /// Range of the backlog in [`Layer::backlogs`].
    begin: usize,
    end: usize,
    /// Index of the preceding state in the layer before.
    parent: u32,
    /// Whether the last job is taken.
    takes: bool,
}

/// Remaining work by deadline (as an index into the dates), ascending.
type Backlog = Vec<(u32, u64)>;

/// The states after one release.
struct Layer {
    states: Vec<State>,
    /// The backlogs of all states, one after the other.
    backlogs: Backlog,
}

impl Layer {
    /// The layer before the first release.
    fn root() -> Layer {
        let root = State { weight: 0.0, bound: 0.0, total: 0, begin: 0, end: 0, parent: 0, takes: false };
        Layer { states: vec![root], backlogs: Vec::new() }
    }

    /// Keeps the `width` states with the greatest bounds. Returns the greatest bound of the others, `f64::MIN` if there
    /// are none.
    fn narrow(&mut self, width: usize) -> f64 {
        let states = &mut self.states;
        if states.len() <= width {
            return f64::MIN;
        }
        states.sort_by(|a, b| {
            b.bound.total_cmp(&a.bound).then(b.weight.total_cmp(&a.weight)).then(a.total.cmp(&b.total))
        });
        let dropped = states[width].bound;
        states.truncate(width);
        dropped
    }
}

/// The prices of time, prepared for queries.
struct Prices {
    /// `least[k][i]` is the lowest price of the `2^k` intervals from `i` on.
    least: Vec<Vec<f64>>,
    /// Value of all time from each date on.
    time_from: Vec<f64>,
}

impl Prices {
    fn new(dates: &[u64], price: &[f64]) -> Prices {
        let mut least = vec![price.to_vec()];
        let mut width = 1;
        while 2 * width <= price.len() {
            let last = &least[least.len() - 1];
            let next = (0..=price.len() - 2 * width).map(|at| last[at].min(last[at + width])).collect();
            least.push(next);
            width *= 2;
        }
        let mut time_from = vec![0.0; dates.len()];
        for at in (0..price.len()).rev() {
            time_from[at] = time_from[at + 1] + price[at] * (dates[at + 1] - dates[at]) as f64;
        }
        Prices { least, time_from }
    }

    /// Lowest price between two dates, zero if `from` is not before `to`.
    fn cheapest(&self, from: usize, to: usize) -> f64 {
        if from >= to {
            return 0.0;
        }
        let level = (to - from).ilog2() as usize;
        self.least[level][from].min(self.least[level][to - (1 << level)])
    }
}

impl LabelSearch<'_> {
    /// Looks for a set with more than the known weight.
    pub fn run(&self) -> LabelResult {
        let prices = Prices::new(self.dates, self.price);
        let index = |time: u64| self.dates.partition_point(|date| *date < time);
        let windows: Vec<(usize, usize)> =
            self.jobs.iter().map(|job| (index(job.release.0), index(job.deadline.0))).collect();
        let gains = self.gains(&prices, &windows);
        let mut layer = Layer::root();
        let mut history: Vec<Vec<(u32, bool)>> = Vec::with_capacity(self.jobs.len());
        let (mut dropped, mut steps) = (f64::MIN, 0);
        let mut now = self.dates.first().copied().unwrap_or(0);
        for (at, job) in self.jobs.iter().enumerate() {
            temponet_cancel::checkpoint();
            let passed = job.release.0 - now;
            now = job.release.0;
            let (mut next, used) = self.expand(&layer, job, passed, windows[at], &prices, gains[at + 1]);
            steps += used + prune(&mut next);
            dropped = dropped.max(next.narrow(self.width));
            history.push(next.states.iter().map(|state| (state.parent, state.takes)).collect());
            layer = next;
            if layer.states.is_empty() || steps > self.most_steps {
                break;
            }
        }
        let (known, states) = (self.known, &layer.states);
        let is_complete = history.len() == self.jobs.len() && steps <= self.most_steps || states.is_empty();
        if !is_complete {
            // The search stopped half-way: the open states bound the rest.
            let open = states.iter().map(|state| state.bound).fold(dropped, f64::max);
            return LabelResult { better: None, upper: tighten(open, self.has_whole_weights).max(known), steps };
        }
        let best = states.iter().enumerate().max_by(|(_, a), (_, b)| a.weight.total_cmp(&b.weight));
        let better = best.map(|(place, state)| (state.weight, trace(&history, place)));
        let found = better.as_ref().map_or(known, |(weight, _)| *weight);
        let upper = tighten(dropped, self.has_whole_weights).max(found).max(known);
        LabelResult { better: better.filter(|(weight, _)| *weight > known), upper, steps }
    }

    /// Weight of the jobs from each one on, beyond the price of the time that they take.
    fn gains(&self, prices: &Prices, windows: &[(usize, usize)]) -> Vec<f64> {
        let mut gains = vec![0.0; self.jobs.len() + 1];
        for (at, job) in self.jobs.iter().enumerate().rev() {
            let (from, to) = windows[at];
            gains[at] = gains[at + 1] + (job.weight - job.execution.0 as f64 * prices.cheapest(from, to)).max(0.0);
        }
        gains
    }

    /// Splits every state at the release of a job, `passed` nanoseconds after the release before it. `gain` is the gain
    /// of the jobs after this one. Returns the states that can still beat the known weight, and the steps taken.
    fn expand(
        &self,
        layer: &Layer,
        job: &OracleJob,
        passed: u64,
        (from, to): (usize, usize),
        prices: &Prices,
        gain: f64,
    ) -> (Layer, u64) {
        let mut states: Vec<State> = Vec::with_capacity(2 * layer.states.len());
        let mut backlogs: Backlog = Vec::with_capacity(2 * layer.backlogs.len());
        let (mut without, mut with): (Backlog, Backlog) = (Vec::new(), Vec::new());
        let mut steps = 0;
        for (parent, state) in layer.states.iter().enumerate() {
            work_off(&layer.backlogs[state.begin..state.end], passed, &mut without);
            steps += 4 + 2 * without.len() as u64;
            let mut keep = |backlog: &Backlog, weight: f64, takes: bool| {
                let price = |(deadline, left): &(u32, u64)| *left as f64 * prices.cheapest(from, *deadline as usize);
                let cost: f64 = backlog.iter().map(price).sum();
                let bound = weight + prices.time_from[from] + gain - cost;
                if beats(bound, self.known, self.has_whole_weights) {
                    let begin = backlogs.len();
                    backlogs.extend_from_slice(backlog);
                    let total = backlog.iter().map(|(_, left)| left).sum();
                    let end = backlogs.len();
                    states.push(State { weight, bound, total, begin, end, parent: parent as u32, takes });
                }
            };
            keep(&without, state.weight, false);
            if with_job(&without, to as u32, job.execution.0, job.release.0, self.dates, &mut with) {
                keep(&with, state.weight + job.weight, true);
            }
        }
        (Layer { states, backlogs }, steps)
    }
}

/// Computes the backlog after the core has worked on it for `passed` nanoseconds.
fn work_off(before: &[(u32, u64)], passed: u64, after: &mut Backlog) {
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

/// Computes the backlog with one more job. Returns whether all of it can still be done in time.
fn with_job(before: &Backlog, deadline: u32, work: u64, now: u64, dates: &[u64], after: &mut Backlog) -> bool {
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
        index < place || finish <= dates[*deadline as usize]
    })
}

/// Drops the states that another state dominates. Returns the steps taken.
fn prune(layer: &mut Layer) -> u64 {
    let Layer { states, backlogs } = layer;
    states.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.total.cmp(&b.total)));
    let mut kept: Vec<State> = Vec::with_capacity(states.len());
    let mut steps = 0;
    for state in states.drain(..) {
        let own = &backlogs[state.begin..state.end];
        let is_dominated = kept.iter().any(|other| {
            steps += 1;
            other.total <= state.total && {
                steps += (other.end - other.begin) as u64;
                is_nowhere_more(&backlogs[other.begin..other.end], own)
            }
        });
        if !is_dominated {
            kept.push(state);
        }
    }
    *states = kept;
    steps
}

/// Whether the first backlog has, up to each deadline, no more work than the second.
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

/// Returns, for each job, whether the state at `place` in the last layer takes it.
fn trace(history: &[Vec<(u32, bool)>], mut place: usize) -> Vec<bool> {
    let mut taken = vec![false; history.len()];
    for (at, layer) in history.iter().enumerate().rev() {
        let (parent, takes) = layer[place];
        taken[at] = takes;
        place = parent as usize;
    }
    taken
}
