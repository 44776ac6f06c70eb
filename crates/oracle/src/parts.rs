//! Cutting a run into parts that can be solved independently, and combining the answers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use temponet_task::Time;

use super::branch::{self, BranchResult};
use super::flow_network::dates;
use super::labels::LabelSearch;
use super::relaxation::{Fixed, by_density, relax, tighten};
use super::{Optimum, OracleJob, weight_of};

/// Widths of the search, tried in turn: the narrow searches find a good set, which lets the wide ones drop more states.
const WIDTHS: [usize; 5] = [8, 64, 512, 4_096, 32_768];

/// Largest number of jobs on several cores for which the bound by one fast core is computed. For more jobs it costs as
/// much as the relaxation and rarely gives a better bound.
const MOST_EMULATED: usize = 2_000;

/// Drops the jobs that can never be in time, sorts the others by release and cuts them into independent parts.
pub(super) fn split(jobs: &[OracleJob], cores: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..jobs.len())
        .filter(|index| jobs[*index].release + jobs[*index].execution <= jobs[*index].deadline)
        .collect();
    order.sort_by_key(|index| (jobs[*index].release, jobs[*index].deadline, *index));
    let mut parts: Vec<Vec<usize>> = Vec::new();
    // End of the last window, and the date by which one core would have done all work.
    let (mut last_deadline, mut all_done) = (Time::ZERO, Time::ZERO);
    for index in order {
        let job = &jobs[index];
        let is_apart = job.release >= last_deadline || (cores == 1 && job.release >= all_done);
        match parts.last_mut() {
            Some(part) if !is_apart => part.push(index),
            _ => parts.push(vec![index]),
        }
        last_deadline = last_deadline.max(job.deadline);
        all_done = Time(all_done.max(job.release).0.saturating_add(job.execution.0));
    }
    parts
}

/// A part relative to its first release. Parts with equal keys have equal answers.
type PartKey = Vec<(u64, u64, u64, u64)>;

fn key_of(jobs: &[OracleJob], part: &[usize]) -> PartKey {
    let first = jobs[part[0]].release;
    let of =
        |job: &OracleJob| ((job.release - first).0, (job.deadline - first).0, job.execution.0, job.weight.to_bits());
    part.iter().map(|index| of(&jobs[*index])).collect()
}

/// Solves all parts. Each part may use its share of the steps; what it does not use goes to the parts after it.
pub(super) fn solve(jobs: &[OracleJob], parts: &[Vec<usize>], cores: usize, steps: u64) -> Optimum {
    let mut total = Optimum { upper: 0.0, lower: 0.0, chosen: vec![false; jobs.len()] };
    let mut kind_of: HashMap<PartKey, usize> = HashMap::new();
    let mut kinds: Vec<(Vec<OracleJob>, Vec<&Vec<usize>>)> = Vec::new();
    for part in parts {
        let kind = *kind_of.entry(key_of(jobs, part)).or_insert(kinds.len());
        if kind == kinds.len() {
            kinds.push((part.iter().map(|index| jobs[*index]).collect(), Vec::new()));
        }
        kinds[kind].1.push(part);
    }
    let mut left = steps;
    let mut jobs_left: usize = kinds.iter().map(|(part, _)| part.len()).sum();
    for (part, places) in &kinds {
        let share = (left as f64 * part.len() as f64 / jobs_left as f64) as u64;
        jobs_left -= part.len();
        let (optimum, used) = solve_part(part, cores, share);
        left = left.saturating_sub(used.min(share));
        total.upper += optimum.upper * places.len() as f64;
        total.lower += optimum.lower * places.len() as f64;
        for place in places {
            for (index, chosen) in place.iter().zip(&optimum.chosen) {
                total.chosen[*index] = *chosen;
            }
        }
    }
    total
}

/// Solves one part, whose jobs are sorted by release. Returns the answer and the steps taken.
fn solve_part(jobs: &[OracleJob], cores: usize, steps: u64) -> (Optimum, u64) {
    let all: f64 = jobs.iter().map(|job| job.weight).sum();
    if jobs.len() <= cores || (cores == 1 && fits_one_core(jobs)) {
        return (Optimum { upper: all, lower: all, chosen: vec![true; jobs.len()] }, jobs.len() as u64);
    }
    let last = jobs.iter().map(|job| job.deadline.0).max().unwrap_or(0);
    if last.checked_mul(2 * cores as u64).is_none() {
        // With centuries of core time the sums would overflow, so only the simplest bounds are computed.
        let (lower, chosen) = without_hopeless(jobs, cores);
        return (Optimum { upper: all, lower, chosen }, jobs.len() as u64);
    }
    let has_whole_weights = jobs.iter().all(|job| job.weight.fract() == 0.0);
    if cores > 1 {
        let is_small = jobs.len() <= MOST_EMULATED;
        let speedup = if is_small { emulated(jobs, cores, has_whole_weights, steps / 4) } else { all };
        let BranchResult { weight, chosen, upper } =
            branch::search(jobs, cores, speedup.min(all), has_whole_weights, steps.saturating_sub(steps / 4));
        let (simple_weight, simple) = without_hopeless(jobs, cores);
        return match simple_weight > weight {
            true => (Optimum { upper: upper.max(simple_weight), lower: simple_weight, chosen: simple }, steps),
            false => (Optimum { upper, lower: weight, chosen }, steps),
        };
    }
    solve_one_core(jobs, has_whole_weights, steps)
}

fn solve_one_core(jobs: &[OracleJob], has_whole_weights: bool, steps: u64) -> (Optimum, u64) {
    let order = by_density(jobs);
    let free = vec![Fixed::Free; jobs.len()];
    let Some(relaxed) = relax(jobs, 1, &order, &free, steps / 2) else {
        return (Optimum { upper: 0.0, lower: 0.0, chosen: vec![false; jobs.len()] }, 0);
    };
    let mut upper = tighten(relaxed.upper, has_whole_weights);
    let mut chosen = relaxed.whole();
    let mut lower = weight_of(jobs, &chosen);
    let mut used = relaxed.network.steps;
    let dates = dates(jobs);
    let price = relaxed.network.prices_at(&dates);
    for width in WIDTHS {
        if upper <= lower || used > steps {
            break;
        }
        let most_steps = steps - used;
        let search =
            LabelSearch { jobs, dates: &dates, price: &price, known: lower, has_whole_weights, width, most_steps };
        let found = search.run();
        used += found.steps;
        upper = upper.min(found.upper);
        if let Some((weight, better)) = found.better {
            (lower, chosen) = (weight, better);
        }
    }
    (Optimum { upper: upper.max(lower), lower, chosen }, used)
}

/// Upper bound for several cores: one core with the speed of all of them can do whatever they can do.
fn emulated(jobs: &[OracleJob], cores: usize, has_whole_weights: bool, steps: u64) -> f64 {
    let scaled = |time: Time| time.0.checked_mul(cores as u64).map(Time);
    let fast: Option<Vec<OracleJob>> = jobs
        .iter()
        .map(|job| Some(OracleJob { release: scaled(job.release)?, deadline: scaled(job.deadline)?, ..*job }))
        .collect();
    fast.map_or(f64::INFINITY, |fast| {
        if fits_one_core(&fast) {
            return jobs.iter().map(|job| job.weight).sum();
        }
        solve_one_core(&fast, has_whole_weights, steps).0.upper
    })
}

/// Whether EDF completes all jobs, which are sorted by release, in time on one core.
fn fits_one_core(jobs: &[OracleJob]) -> bool {
    let mut ready: BinaryHeap<Reverse<(Time, u64)>> = Default::default();
    let mut now = Time::ZERO;
    let mut next = 0;
    while next < jobs.len() || !ready.is_empty() {
        if ready.is_empty() {
            now = now.max(jobs[next].release);
        }
        while next < jobs.len() && jobs[next].release <= now {
            ready.push(Reverse((jobs[next].deadline, jobs[next].execution.0)));
            next += 1;
        }
        let Some(Reverse((deadline, left))) = ready.pop() else { continue };
        let until = jobs.get(next).map_or(Time::NEVER, |job| job.release);
        let done = left.min((until - now).0);
        now += Time(done);
        if now > deadline {
            return false;
        }
        if done < left {
            ready.push(Reverse((deadline, left - done)));
        }
    }
    true
}

/// A simple schedule for large instances: EDF among the jobs that can still be in time. Returns its weight and whether
/// each job is in time.
fn without_hopeless(jobs: &[OracleJob], cores: usize) -> (f64, Vec<bool>) {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.execution.0).collect();
    let mut ready: BTreeSet<(Time, usize)> = BTreeSet::new();
    let (mut now, mut next, mut weight) = (Time::ZERO, 0, 0.0);
    let mut running: Vec<(Time, usize)> = Vec::with_capacity(cores);
    while next < jobs.len() || !ready.is_empty() {
        if ready.is_empty() {
            now = now.max(jobs[next].release);
        }
        while next < jobs.len() && jobs[next].release <= now {
            ready.insert((jobs[next].deadline, next));
            next += 1;
        }
        running.clear();
        while let Some(first) = ready.pop_first() {
            if now.0 + left[first.1] <= first.0.0 {
                running.push(first);
                if running.len() == cores {
                    break;
                }
            }
        }
        let arrival = jobs.get(next).map_or(u64::MAX, |job| job.release.0 - now.0);
        let Some(passed) = running.iter().map(|(_, job)| left[*job]).min() else { continue };
        let passed = passed.min(arrival);
        now += Time(passed);
        for job in &running {
            left[job.1] -= passed;
            if left[job.1] == 0 {
                weight += jobs[job.1].weight;
            } else {
                ready.insert(*job);
            }
        }
    }
    (weight, left.iter().map(|left| *left == 0).collect())
}
