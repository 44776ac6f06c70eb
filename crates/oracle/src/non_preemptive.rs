//! The optimum of jobs that run to completion once they have started.
//!
//! On one core (the problem is strongly NP-hard) a schedule is a sequence of jobs, each of which starts as soon as the
//! one before is done and it is released itself. States are reached job by job: the time at which the core becomes
//! free, the weight so far, and the jobs done whose deadlines have not passed. Of equal sets of such jobs, only the
//! states with less time or more weight stay. A job is tried next only if no other job could be completed before it
//! starts, because that job would be in time for nothing. States that cannot beat the best schedule known are dropped:
//! what is left is at most a fractional knapsack of the time until the last deadline. A search that never had to drop a
//! state for lack of room proves its answer.
//!
//! On several cores only a schedule is looked for: the earliest deadline first of the jobs that can still be in time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use temponet_task::{CoreId, Time};

use super::{Optimum, OracleJob, Piece, optimum, weight_of};

/// An optimum, and the schedule behind its lower bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// Bounds on the greatest weight of jobs in time.
    pub optimum: Optimum,
    /// One piece for each chosen job, in the order of their starts.
    pub pieces: Vec<Piece>,
}

/// Numbers of states per round that are kept, tried in turn.
const WIDTHS: [usize; 4] = [4, 32, 512, 16_384];

/// Computes the greatest weight of jobs that `cores` cores can complete in time if no job is ever interrupted. The
/// upper bound is at most that with preemption. `steps` limits the effort as for [`optimum`].
pub fn optimum_without_preemption(jobs: &[OracleJob], cores: usize, steps: u64) -> Sequence {
    let greedy = earliest_deadlines(jobs, cores);
    if cores > 1 {
        return of_pieces(jobs, greedy, optimum(jobs, cores, steps).upper);
    }
    let parts = split(jobs);
    let mut left = steps;
    let mut jobs_left = parts.iter().map(Vec::len).sum::<usize>().max(1);
    let (mut pieces, mut upper) = (Vec::new(), 0.0);
    let mut solved: HashMap<Vec<(u64, u64, u64, u64)>, PartResult> = HashMap::new();
    for part in &parts {
        let share = (left as f64 * part.len() as f64 / jobs_left as f64) as u64;
        jobs_left -= part.len();
        let first = part.iter().map(|index| jobs[*index].release).min().unwrap_or_default();
        let relative = |job: &OracleJob| {
            let (release, deadline) = (job.release - first, job.deadline - first);
            (release.0, deadline.0, job.execution.0, job.weight.to_bits())
        };
        let key = part.iter().map(|index| relative(&jobs[*index])).collect();
        let own: Vec<OracleJob> = part.iter().map(|index| jobs[*index]).collect();
        let result = solved.entry(key).or_insert_with(|| {
            let (result, used) = solve_part(&own, first, share);
            left = left.saturating_sub(used.min(share));
            result
        });
        upper += result.upper;
        pieces.extend(result.starts.iter().map(|(place, start)| {
            let job = part[*place];
            let start = first + *start;
            Piece { core: CoreId(0), job, start, end: start + jobs[job].execution }
        }));
    }
    let found = of_pieces(jobs, pieces, upper);
    let greedy = of_pieces(jobs, greedy, found.optimum.upper);
    if greedy.optimum.lower > found.optimum.lower { greedy } else { found }
}

/// The answer for a part: an upper bound, and the jobs in time with their starts from the first release on.
#[derive(Clone)]
struct PartResult {
    upper: f64,
    starts: Vec<(usize, Time)>,
}

/// Cuts the jobs that can be in time where no window reaches across. A job that waits may end at its deadline, so
/// nothing less keeps the parts apart.
fn split(jobs: &[OracleJob]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..jobs.len()).filter(|index| can_be_met(&jobs[*index], Time::ZERO)).collect();
    order.sort_by_key(|index| (jobs[*index].release, jobs[*index].deadline, *index));
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut last = Time::ZERO;
    for index in order {
        match parts.last_mut() {
            Some(part) if jobs[index].release < last => part.push(index),
            _ => parts.push(vec![index]),
        }
        last = last.max(jobs[index].deadline);
    }
    parts
}

/// Whether a job is in time if it may start at `free`.
fn can_be_met(job: &OracleJob, free: Time) -> bool {
    job.release.max(free) + job.execution <= job.deadline
}

/// A schedule of a part: when the core becomes free, the weight in time, and the last job with the schedule before it.
#[derive(Clone, Copy)]
struct State {
    free: Time,
    weight: f64,
    /// Index of the last step in the list of all steps; none at the beginning.
    last: Option<usize>,
}

/// A job that was added to a schedule, its start, and the step before.
#[derive(Clone, Copy)]
struct Step {
    job: usize,
    start: Time,
    before: Option<usize>,
}

/// Jobs that are done and whose deadline has not passed, ascending.
type Open = Vec<u32>;

/// Solves a part, whose jobs are sorted by release and all begin at `first` or later. Returns the answer and the steps
/// taken.
fn solve_part(jobs: &[OracleJob], first: Time, steps: u64) -> (PartResult, u64) {
    let mut search = Search::of(jobs, first);
    for width in WIDTHS {
        if search.run(width, steps / 2) {
            break;
        }
    }
    let upper = if search.is_complete { search.best } else { optimum(jobs, 1, steps / 2).upper };
    (PartResult { upper, starts: search.best_starts }, search.used)
}

struct Search<'a> {
    jobs: &'a [OracleJob],
    first: Time,
    /// Indices by descending weight per execution time.
    by_density: Vec<usize>,
    best: f64,
    best_starts: Vec<(usize, Time)>,
    used: u64,
    /// Whether the last run dropped nothing that could have been better.
    is_complete: bool,
}

impl<'a> Search<'a> {
    fn of(jobs: &'a [OracleJob], first: Time) -> Search<'a> {
        let density = |index: usize| jobs[index].weight / jobs[index].execution.0.max(1) as f64;
        let mut by_density: Vec<usize> = (0..jobs.len()).collect();
        by_density.sort_by(|a, b| density(*b).total_cmp(&density(*a)).then(a.cmp(b)));
        let (best, best_starts, used) = (0.0, Vec::new(), 0);
        Search { jobs, first, by_density, best, best_starts, used, is_complete: false }
    }

    /// Searches with at most `width` states per round. Returns whether there is nothing more to find: the answer is
    /// proved, or the steps are used up.
    fn run(&mut self, width: usize, steps: u64) -> bool {
        let mut history: Vec<Step> = Vec::new();
        let mut round: Vec<(Open, State)> = vec![(Vec::new(), State { free: self.first, weight: 0.0, last: None })];
        self.is_complete = true;
        while !round.is_empty() {
            let mut next: HashMap<Open, Vec<State>> = HashMap::new();
            for (open, state) in &round {
                if self.used >= steps {
                    self.is_complete = false;
                    return true;
                }
                self.used += 1 + self.jobs.len() as u64 / 4;
                if self.most_from(open, state) <= self.best * (1.0 + 1e-12) && self.best > 0.0 {
                    continue;
                }
                for job in self.candidates(open, state.free) {
                    self.used += 1;
                    let start = self.jobs[job].release.max(state.free);
                    let free = start + self.jobs[job].execution;
                    let last = Some(history.len());
                    history.push(Step { job, start, before: state.last });
                    let reached = State { free, weight: state.weight + self.jobs[job].weight, last };
                    if reached.weight > self.best {
                        self.best = reached.weight;
                        self.best_starts = starts(&history, last, self.first);
                    }
                    insert(next.entry(self.opened(open, job, free)).or_default(), reached);
                }
            }
            round = next
                .into_iter()
                .flat_map(|(open, states)| states.into_iter().map(move |state| (open.clone(), state)))
                .collect();
            // Hash maps have no order of their own.
            let order = |(open, state): &(Open, State)| (Reverse(state.weight.to_bits()), state.free, open.clone());
            round.sort_by_cached_key(order);
            if round.len() > width {
                round.truncate(width);
                self.is_complete = false;
            }
        }
        self.is_complete
    }

    /// Jobs that may come next: those that start before any other job could be completed.
    fn candidates(&self, open: &Open, free: Time) -> Vec<usize> {
        let is_possible =
            |index: &usize| can_be_met(&self.jobs[*index], free) && open.binary_search(&(*index as u32)).is_err();
        let possible: Vec<usize> = (0..self.jobs.len()).filter(is_possible).collect();
        let end = |index: &usize| self.jobs[*index].release.max(free) + self.jobs[*index].execution;
        let Some(soonest) = possible.iter().map(end).min() else { return possible };
        possible.into_iter().filter(|index| self.jobs[*index].release.max(free) < soonest).collect()
    }

    /// Jobs that are done and still open after `job`, when the core becomes free at `free`.
    fn opened(&self, open: &Open, job: usize, free: Time) -> Open {
        let mut opened: Open = open.iter().copied().chain([job as u32]).collect();
        // A job that could no longer be started in time needs no mark.
        opened.retain(|index| can_be_met(&self.jobs[*index as usize], free));
        opened.sort_unstable();
        opened
    }

    /// Upper bound on the weight of any schedule that continues a state.
    fn most_from(&self, open: &Open, state: &State) -> f64 {
        let is_left = |index: &&usize| {
            can_be_met(&self.jobs[**index], state.free) && open.binary_search(&(**index as u32)).is_err()
        };
        let left = || self.by_density.iter().filter(is_left);
        let last = left().map(|index| self.jobs[*index].deadline).max().unwrap_or(state.free);
        let mut room = last.saturating_sub(state.free).0;
        let mut weight = state.weight;
        for index in left() {
            let job = &self.jobs[*index];
            if job.execution.0 > room {
                return weight + job.weight * room as f64 / job.execution.0 as f64;
            }
            room -= job.execution.0;
            weight += job.weight;
        }
        weight
    }
}

/// Adds a state to those with the same open jobs, unless another one has as much weight in as little time.
fn insert(states: &mut Vec<State>, state: State) {
    let is_as_good = |a: &State, b: &State| a.free <= b.free && a.weight >= b.weight;
    if states.iter().any(|other| is_as_good(other, &state)) {
        return;
    }
    states.retain(|other| !is_as_good(&state, other));
    states.push(state);
}

/// Jobs of a schedule and their starts from the first release on, in order.
fn starts(history: &[Step], mut last: Option<usize>, first: Time) -> Vec<(usize, Time)> {
    let mut starts = Vec::new();
    while let Some(at) = last {
        starts.push((history[at].job, history[at].start - first));
        last = history[at].before;
    }
    starts.reverse();
    starts
}

/// A schedule in which every free core takes the job with the earliest deadline among those that can still be in time.
fn earliest_deadlines(jobs: &[OracleJob], cores: usize) -> Vec<Piece> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|index| (jobs[*index].release, *index));
    let mut coming = order.into_iter().peekable();
    let mut ready: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<(Time, CoreId)>> =
        CoreId::all(cores).map(|core| Reverse((Time::ZERO, core))).collect();
    let mut pieces = Vec::new();
    while let Some(Reverse((mut now, core))) = free.pop() {
        if ready.is_empty() {
            let Some(next) = coming.peek() else { continue };
            now = now.max(jobs[*next].release);
        }
        while let Some(index) = coming.next_if(|index| jobs[*index].release <= now) {
            ready.push(Reverse((jobs[index].deadline, index)));
        }
        while let Some(Reverse((_, index))) = ready.pop() {
            if can_be_met(&jobs[index], now) {
                // Another core may have waited for it longer.
                let start = jobs[index].release.max(now);
                now = start + jobs[index].execution;
                pieces.push(Piece { core, job: index, start, end: now });
                break;
            }
        }
        free.push(Reverse((now, core)));
    }
    pieces
}

/// A schedule with its weight as the lower bound.
fn of_pieces(jobs: &[OracleJob], mut pieces: Vec<Piece>, upper: f64) -> Sequence {
    pieces.sort_by_key(|piece| (piece.start, piece.core));
    let mut chosen = vec![false; jobs.len()];
    pieces.iter().for_each(|piece| chosen[piece.job] = true);
    let lower = weight_of(jobs, &chosen);
    Sequence { optimum: Optimum { upper: upper.max(lower), lower, chosen }, pieces }
}
