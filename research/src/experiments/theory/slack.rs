//! Statements about quantized slack: what it gains, what it costs, and how much there is to learn.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::super::bound::{Problem, distance};
use super::{Check, Relation, Settings};

pub(super) fn checks(settings: &Settings) -> Vec<Check> {
    let smooth = Problem::smooth(settings.points);
    vec![
        expressivity(settings),
        approximation(&smooth, settings),
        projected_residual(&smooth, settings),
        risk(settings),
        complexity(settings),
        one_step_value(settings),
        concentration_bias(settings),
    ]
}

/// Returns the largest figure; -∞ if there is none.
fn greatest(figures: impl Iterator<Item = f64>) -> f64 {
    figures.fold(f64::NEG_INFINITY, f64::max)
}

/// Two jobs that take one unit each, with slacks drawn evenly from 0 to 2. The job that runs second is in time if its
/// slack is at least 1. Running the job with less slack first is optimal, and follows from a Q-value of −s, whose
/// Lipschitz constant is 1. A policy that sees only bins cannot tell two jobs of the same bin apart, and errs in half
/// of the cases in which one order is right.
fn expressivity(settings: &Settings) -> Check {
    let slacks: Vec<f64> = (0..settings.points).map(|at| 2.0 * (at as f64 + 0.5) / settings.points as f64).collect();
    let pairs = (slacks.len() * slacks.len()) as f64;
    let is_late = |slack: f64| f64::from(u8::from(slack < 1.0));
    let gap_over_bound = |bins: &usize| {
        // Late jobs by pair of bins, the lower bin first: if its job runs first, and if the other does.
        let mut late = vec![[0.0f64; 2]; bins * bins];
        let mut continuous = 0.0;
        for one in &slacks {
            for other in &slacks {
                let (low, high) = if one <= other { (*one, *other) } else { (*other, *one) };
                continuous += is_late(high);
                let [first, second] = [low, high].map(|slack| ((slack / 2.0 * *bins as f64) as usize).min(bins - 1));
                let of_pair = &mut late[first * bins + second];
                (of_pair[0], of_pair[1]) = (of_pair[0] + is_late(high), of_pair[1] + is_late(low));
            }
        }
        let best = |(place, [low_first, high_first]): (usize, &[f64; 2])| {
            let is_same_bin = place / bins == place % bins;
            if is_same_bin { (low_first + high_first) / 2.0 } else { low_first.min(*high_first) }
        };
        let quantized: f64 = late.iter().enumerate().map(best).sum();
        let width = 2.0 / *bins as f64;
        (continuous - quantized) / (2.0 * pairs) / (width / 4.0)
    };
    Check {
        name: "expressivity_gap",
        statement: "Theorem A.1: the best continuous policy misses more than the best quantized one by at least LΔ/4",
        figure: "difference of miss rates over LΔ/4 with L = 1, at the best number of bins",
        relation: Relation::AtLeast,
        measured: greatest(settings.bins.iter().map(gap_over_bound)),
        stated: 1.0,
        amended: None,
    }
}

/// Optimal action values, by action and state, and their Lipschitz constant over slack.
fn action_values(problem: &Problem, gamma: f64) -> (Vec<Vec<f64>>, f64) {
    let values = problem.solve(gamma, |state| state);
    let of = |action: usize| {
        (0..problem.slacks.len()).map(|state| problem.worth(gamma, &values, state, action)).collect::<Vec<f64>>()
    };
    let q: Vec<Vec<f64>> = (0..problem.rewards.len()).map(of).collect();
    let slope = |q: &Vec<f64>| {
        let apart = |state: usize| problem.slacks[state] - problem.slacks[state - 1];
        greatest(
            (1..q.len())
                .filter(|state| apart(*state) > 0.0)
                .map(|state| (q[state] - q[state - 1]).abs() / apart(state)),
        )
    };
    let lipschitz = greatest(q.iter().map(slope));
    (q, lipschitz)
}

/// Bin of each state if slack from 0 to 1 is cut into bins of equal width.
fn bins_of(problem: &Problem, bins: usize) -> Vec<usize> {
    problem.slacks.iter().map(|slack| ((slack * bins as f64) as usize).min(bins - 1)).collect()
}

/// Replaces the values of the states of each bin by one value.
fn by_bin(values: &[f64], bin_of: &[usize], one: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let bins = bin_of.iter().max().map_or(0, |last| last + 1);
    let mut members = vec![Vec::new(); bins];
    values.iter().zip(bin_of).for_each(|(value, bin)| members[*bin].push(*value));
    let ones: Vec<f64> = members.iter().map(|members| if members.is_empty() { 0.0 } else { one(members) }).collect();
    bin_of.iter().map(|bin| ones[*bin]).collect()
}

/// The value that is nearest to all values at once.
fn midrange(values: &[f64]) -> f64 {
    let (low, high) =
        values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    (low + high) / 2.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Projects action values onto bins, with the least error that is possible.
fn projected(q: &[Vec<f64>], bin_of: &[usize]) -> Vec<Vec<f64>> {
    q.iter().map(|q| by_bin(q, bin_of, midrange)).collect()
}

fn farthest(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    greatest(a.iter().zip(b).map(|(a, b)| distance(a, b)))
}

fn approximation(problem: &Problem, settings: &Settings) -> Check {
    let (q, lipschitz) = action_values(problem, settings.gamma);
    let over = |bins: &usize| farthest(&projected(&q, &bins_of(problem, *bins)), &q) / (lipschitz / *bins as f64);
    let measured = greatest(settings.bins.iter().map(over));
    Check {
        name: "approximation_error",
        statement: "Error of a bin: at most L·S/Q (appendix C; the first half of lemma G.2)",
        figure: "largest error of the best values per bin over L·S/Q",
        relation: Relation::AtMost,
        measured,
        stated: 1.0,
        amended: Some(("half of it, LΔ/2", 2.0 * measured)),
    }
}

fn projected_residual(problem: &Problem, settings: &Settings) -> Check {
    let (q, lipschitz) = action_values(problem, settings.gamma);
    let over = |bins: &usize| {
        let f = projected(&q, &bins_of(problem, *bins));
        let values = best_values(&f);
        let residual = |action: usize| {
            let of = |state: usize| (problem.worth(settings.gamma, &values, state, action) - f[action][state]).abs();
            greatest((0..values.len()).map(of))
        };
        greatest((0..f.len()).map(residual)) / (lipschitz / *bins as f64)
    };
    Check {
        name: "projected_residual",
        statement: "Lemma G.2: the Bellman residual that quantization leaves is at most LΔ",
        figure: "largest residual of the optimal values projected onto bins, over LΔ",
        relation: Relation::AtMost,
        measured: greatest(settings.bins.iter().map(over)),
        stated: 1.0,
        amended: None,
    }
}

/// Values of the states under the best action.
fn best_values(q: &[Vec<f64>]) -> Vec<f64> {
    (0..q[0].len()).map(|state| greatest(q.iter().map(|q| q[state]))).collect()
}

/// Expected absolute sum of `count` random signs.
fn expected_sum(count: usize) -> f64 {
    // E|S| of 2m and of 2m − 1 signs is 2m · C(2m, m) / 4^m.
    let half = count.div_ceil(2);
    2.0 * half as f64 * (1..=half).map(|at| 1.0 - 0.5 / at as f64).product::<f64>()
}

/// Rademacher complexity of functions that are constant on bins and at most `bound` in size, for these numbers of
/// samples in the bins.
fn rademacher(counts: &[usize], bound: f64) -> f64 {
    bound * counts.iter().map(|count| expected_sum(*count)).sum::<f64>() / counts.iter().sum::<usize>() as f64
}

/// Regression of a wave over slack, with noise, by one value for each bin: the empirical minimizer of the squared
/// error.
fn risk(settings: &Settings) -> Check {
    const BOUND: f64 = 1.5;
    const FINE: usize = 2_000;
    let truth = |slack: f64| (std::f64::consts::TAU * slack).sin();
    let lipschitz = std::f64::consts::TAU;
    let over = |(bins, draw): (usize, u64)| {
        let mut rng = Pcg64::seed_from_u64(draw);
        let (mut sums, mut counts) = (vec![0.0; bins], vec![0usize; bins]);
        let bin = |slack: f64| ((slack * bins as f64) as usize).min(bins - 1);
        for _ in 0..settings.samples {
            let slack: f64 = rng.random();
            sums[bin(slack)] += truth(slack) + rng.random::<f64>() - 0.5;
            counts[bin(slack)] += 1;
        }
        let learned: Vec<f64> = sums.iter().zip(&counts).map(|(sum, count)| sum / (*count).max(1) as f64).collect();
        let fine = (0..FINE).map(|at| (at as f64 + 0.5) / FINE as f64);
        let excess = fine.map(|slack| (learned[bin(slack)] - truth(slack)).powi(2)).sum::<f64>() / FINE as f64;
        excess / ((lipschitz / bins as f64).powi(2) + 2.0 * rademacher(&counts, BOUND))
    };
    let cases = settings.bins.iter().flat_map(|bins| (0..settings.draws).map(|draw| (*bins, draw)));
    Check {
        name: "generalisation_risk",
        statement: "Theorem C.1: the excess risk is at most (LS/Q)² + 2R + O(√(log(1/δ)/n))",
        figure: "largest excess risk over the first two terms",
        relation: Relation::AtMost,
        measured: greatest(cases.map(over)),
        stated: 1.0,
        amended: None,
    }
}

/// A table of embeddings has Q rows that are free of each other, so its complexity grows with √Q.
fn complexity(settings: &Settings) -> Check {
    let (fewest, most) =
        settings.bins.iter().fold((usize::MAX, 0), |(low, high), bins| (low.min(*bins), high.max(*bins)));
    let of = |bins: usize| rademacher(&vec![settings.samples.div_ceil(bins); bins], 1.0);
    let growth = of(most) / of(fewest);
    let (fewest, most) = (fewest as f64, most as f64);
    Check {
        name: "generalisation_complexity",
        statement: "Appendix C: the complexity grows as √(log Q), so finer bins cost little",
        figure: "growth from the fewest to the most bins over the growth of √(log Q)",
        relation: Relation::AtMost,
        measured: growth / (most.ln() / fewest.ln()).sqrt(),
        stated: 1.0,
        // A bin of few samples has a little less than the square root says.
        amended: Some(("√Q", growth / (most / fewest).sqrt())),
    }
}

/// The hard problem of the experiment `bound`, which has one action, so one policy.
fn one_step_value(settings: &Settings) -> Check {
    let (problem, gamma) = (Problem::hard(settings.points), settings.gamma);
    let values = problem.solve(gamma, |state| state);
    let constants = problem.constants();
    let norm = greatest(values.iter().map(|value| value.abs()));
    // The slacks of the grid; the final states beyond it are not quantized.
    let grid = settings.points;
    let over = |factor: f64| {
        let of = |steps: usize| {
            let width = steps as f64 / (grid - 1) as f64;
            let moved = greatest((steps..grid).map(|state| (values[state] - values[state - steps]).abs()));
            moved / (width * (constants.reward + factor * gamma * constants.transition * norm))
        };
        greatest((1..grid / 2).map(of))
    };
    Check {
        name: "one_step_value",
        statement: "Lemma D.1: values of a policy differ by at most Δ (Lr + γ Lp ‖V‖)",
        figure: "largest difference of values Δ apart over the bound",
        relation: Relation::AtMost,
        measured: over(1.0),
        stated: 1.0,
        amended: Some(("with the factor 2 of total variation", over(2.0))),
    }
}

/// With unlimited samples only the bias is left: the fixed point of Bellman's operator followed by the mean of each
/// bin.
fn concentration_bias(settings: &Settings) -> Check {
    let gamma = settings.gamma;
    let problems = [Problem::smooth(settings.points), Problem::hard(settings.points)];
    let over = |(problem, bins): (&Problem, &usize)| {
        let (q, _) = action_values(problem, gamma);
        let bin_of = bins_of(problem, *bins);
        let possible = farthest(&projected(&q, &bin_of), &q);
        let mut f = q.clone();
        loop {
            let values = best_values(&f);
            let of =
                |action: usize| (0..values.len()).map(|state| problem.worth(gamma, &values, state, action)).collect();
            let next: Vec<Vec<f64>> = (0..f.len()).map(of).map(|q: Vec<f64>| by_bin(&q, &bin_of, mean)).collect();
            let moved = farthest(&next, &f);
            f = next;
            if moved < 1e-12 {
                return farthest(&f, &q) / possible;
            }
        }
    };
    let cases = problems.iter().flat_map(|problem| settings.bins.iter().map(move |bins| (problem, bins)));
    let measured = greatest(cases.map(over));
    Check {
        name: "concentration_bias",
        statement: "Theorem H.1: with samples enough, learned values are as near as the function class allows",
        figure: "error of the learned values over the least error of the class",
        relation: Relation::AtMost,
        measured,
        stated: 1.0,
        amended: Some(("2 / (1 − γ) times the least error", measured * (1.0 - gamma) / 2.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_sums_of_signs_are_those_of_all_signs() {
        for count in 1..=10u32 {
            let sum = |signs: u32| (i64::from(count) - 2 * i64::from(signs.count_ones())).unsigned_abs() as f64;
            let all = (0..1u32 << count).map(sum).sum::<f64>() / f64::from(1u32 << count);
            assert!((expected_sum(count as usize) - all).abs() < 1e-12, "{count}: {all}");
        }
        assert_eq!(expected_sum(0), 0.0);
    }

    #[test]
    fn a_value_per_bin_is_the_one_with_the_least_error() {
        let values = by_bin(&[1.0, 2.0, 6.0, 3.0], &[0, 0, 0, 1], midrange);
        assert_eq!(values, [3.5, 3.5, 3.5, 3.0]);
    }
}
