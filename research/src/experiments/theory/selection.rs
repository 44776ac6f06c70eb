//! Statements about selection: the derivative of the greedy choice, the limit of the softmax, and the cost of sorting.

use std::cell::Cell;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Check, Relation};

/// Number of scores.
const SCORES: usize = 24;
/// Number of cores.
const CORES: usize = 4;

pub(super) fn checks() -> Vec<Check> {
    vec![greedy_derivative(), softmax_limit(), sorting()]
}

fn scores(count: usize) -> Vec<f64> {
    let mut rng = Pcg64::seed_from_u64(7);
    (0..count).map(|_| rng.random()).collect()
}

/// Takes the best score, masks it, and so on.
fn masked_greedy(scores: &[f64], cores: usize) -> Vec<usize> {
    let mut chosen = Vec::new();
    while chosen.len() < cores.min(scores.len()) {
        let free = (0..scores.len()).filter(|at| !chosen.contains(at));
        chosen.extend(free.max_by(|a, b| scores[*a].total_cmp(&scores[*b])));
    }
    chosen
}

fn greedy_derivative() -> Check {
    const STEP: f64 = 1e-6;
    let before = scores(SCORES);
    let chosen = masked_greedy(&before, CORES);
    // Derivative of each chosen index with respect to the score of the job that is chosen.
    let derivative = |(place, at): (usize, &usize)| {
        let mut after = before.clone();
        after[*at] += STEP;
        (masked_greedy(&after, CORES)[place] as f64 - *at as f64).abs() / STEP
    };
    let measured = chosen.iter().enumerate().map(derivative).sum::<f64>() / chosen.len() as f64;
    Check {
        name: "greedy_derivative",
        statement: "Appendix E: the index that masked greedy chooses has the derivative 1 by its own score",
        figure: "mean difference quotient of the chosen indices",
        relation: Relation::Exactly,
        measured,
        stated: 1.0,
        amended: None,
    }
}

fn softmax_limit() -> Check {
    let scores = scores(SCORES);
    let best = masked_greedy(&scores, 2);
    let temperature = (scores[best[0]] - scores[best[1]]) / 40.0;
    let weights: Vec<f64> = scores.iter().map(|score| ((score - scores[best[0]]) / temperature).exp()).collect();
    Check {
        name: "softmax_limit",
        statement: "Appendix F: as the temperature goes to 0, softmax puts all weight on the largest score",
        figure: "weight of the largest score at a fortieth of its lead",
        relation: Relation::Exactly,
        measured: weights[best[0]] / weights.iter().sum::<f64>(),
        stated: 1.0,
        amended: None,
    }
}

fn sorting() -> Check {
    let per_job = |jobs: usize| {
        let (mut list, count) = (scores(jobs), Cell::new(0u64));
        list.sort_by(|a, b| {
            count.set(count.get() + 1);
            b.total_cmp(a)
        });
        count.get() as f64 / (jobs as f64 * (jobs as f64).log2())
    };
    Check {
        name: "sorting_comparisons",
        statement: "Appendix E: masked greedy costs Θ(N log N + m)",
        figure: "comparisons of one sort over N log₂ N, at 100 000 over at 1 000 scores",
        relation: Relation::AtMost,
        measured: per_job(100_000) / per_job(1_000),
        // The lower terms of the sort are worth less than a tenth.
        stated: 1.1,
        amended: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_greedy_takes_the_best_scores_in_order() {
        assert_eq!(masked_greedy(&[0.1, 0.9, 0.5, 0.7], 3), [1, 3, 2]);
        assert_eq!(masked_greedy(&[0.1], 3), [0]);
    }
}
