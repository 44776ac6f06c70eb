//! Search on several cores: branch and bound on the linear relaxation. It branches on a job that the relaxation
//! completes only partly: the job is taken, or it is left out.

use super::relaxation::{Fixed, Relaxation, beats, by_density, relax, tighten};
use super::{OracleJob, weight_of};

/// The result of a search.
pub(super) struct BranchResult {
    pub weight: f64,
    pub chosen: Vec<bool>,
    /// Upper bound on the weight of any set.
    pub upper: f64,
}

struct Node {
    bound: f64,
    fixed: Vec<Fixed>,
}

/// Returns the best set found within about `most_steps` steps, and an upper bound. `known` is an upper bound that the
/// caller already has.
pub(super) fn search(
    jobs: &[OracleJob],
    cores: usize,
    known: f64,
    has_whole_weights: bool,
    most_steps: u64,
) -> BranchResult {
    let order = by_density(jobs);
    let free = vec![Fixed::Free; jobs.len()];
    let Some(root) = relax(jobs, cores, &order, &free, most_steps) else {
        return BranchResult { weight: 0.0, chosen: vec![false; jobs.len()], upper: known };
    };
    let bound = tighten(root.upper, has_whole_weights).min(known);
    // A relaxation that was not solved to the end gives no bounds below the root.
    let is_solved = !root.network.is_coarse && !root.network.was_cut;
    let branches = if is_solved { branch(&root, &free) } else { Vec::new() };
    let (mut chosen, mut steps) = root.rounded(jobs, &order, &free, most_steps / 4);
    let mut weight = weight_of(jobs, &chosen);
    let mut open: Vec<Node> = Vec::new();
    let mut unsolved = if is_solved { f64::MIN } else { bound };
    if beats(bound, weight, has_whole_weights) {
        open.extend(branches.into_iter().map(|fixed| Node { bound, fixed }));
    }
    while let Some(node) = open.pop() {
        temponet_cancel::checkpoint();
        if !beats(node.bound, weight, has_whole_weights) {
            continue;
        }
        if steps > most_steps {
            open.push(node);
            break;
        }
        let Some(relaxed) = relax(jobs, cores, &order, &node.fixed, most_steps / 4) else {
            steps += jobs.len() as u64;
            continue;
        };
        let bound = tighten(relaxed.upper, has_whole_weights).min(node.bound);
        if !beats(bound, weight, has_whole_weights) {
            steps += relaxed.network.steps;
            continue;
        }
        // A relaxation that was not solved to the end cannot be branched on: its bound stands.
        let is_solved = !relaxed.network.was_cut;
        if !is_solved {
            unsolved = unsolved.max(bound);
        }
        let branches = if is_solved { branch(&relaxed, &node.fixed) } else { Vec::new() };
        let (rounded, used) = relaxed.rounded(jobs, &order, &node.fixed, most_steps / 16);
        steps += used;
        let found = weight_of(jobs, &rounded);
        if found > weight {
            (weight, chosen) = (found, rounded);
        }
        open.extend(branches.into_iter().map(|fixed| Node { bound, fixed }));
    }
    let upper = open.iter().map(|node| node.bound).fold(unsolved, f64::max).max(weight);
    BranchResult { weight, chosen, upper }
}

/// Splits a problem at the partly completed job that is closest to completion. The branch that takes the job comes
/// last, so it is searched first.
fn branch(relaxed: &Relaxation, fixed: &[Fixed]) -> Vec<Vec<Fixed>> {
    let halves = relaxed.share.iter().enumerate().filter(|(_, share)| **share > 0.0 && **share < 1.0);
    let Some((job, _)) = halves.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0))) else { return Vec::new() };
    let with = |value: Fixed| {
        let mut fixed = fixed.to_vec();
        fixed[job] = value;
        fixed
    };
    vec![with(Fixed::LeftOut), with(Fixed::Taken)]
}
