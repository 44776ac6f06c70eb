//! The paper's bound on the loss from quantizing slack, checked on small decision problems that are solved exactly.
//!
//! Slack is a fine grid. Quantizing makes every state behave like the representative of its bin. There are two
//! problems: a smooth one that resembles waiting and running, and a hard one in which slack decides between the best
//! and the worst possible outcome.
//!
//! Total variation is half the L1 distance. The difference between the expectations of a value of either sign is
//! therefore up to twice its norm times the total variation. The paper leaves this factor of 2 out.

use serde::Deserialize;

use crate::plots::panel;
use crate::{Context, Findings, FindingsTable, Line, ReproduceError, Unit, Verdict};
use temponet_page::plot::Span;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of grid points of the slack, from 0 to 1.
    points: usize,
    /// Bin widths, in grid steps.
    bins: Vec<usize>,
    /// Discount factors of the smooth problem.
    gammas: Vec<f64>,
    /// Discount factor of the hard problem.
    hard_gamma: f64,
}

/// A Markov decision problem whose states are slacks in ascending order.
pub(super) struct Problem {
    /// Slack of each state.
    pub slacks: Vec<f64>,
    /// Rewards, by action and state.
    pub rewards: Vec<Vec<f64>>,
    /// Transition probabilities, by action, state and next state.
    pub transitions: Vec<Vec<Vec<f64>>>,
}

/// Constants that the bound depends on.
pub(super) struct Constants {
    /// Lipschitz constant of the rewards over slack.
    pub reward: f64,
    /// Lipschitz constant of the transitions over slack, in total variation.
    pub transition: f64,
    /// Greatest absolute reward.
    pub greatest: f64,
}

impl Problem {
    /// Computes the optimal values by value iteration, until no value changes by 1e-12 or more. Every state behaves
    /// like its representative.
    pub fn solve(&self, gamma: f64, representative: impl Fn(usize) -> usize) -> Vec<f64> {
        let mut values = vec![0.0; self.slacks.len()];
        loop {
            let best = |state: usize| {
                let worth = |action: usize| self.worth(gamma, &values, representative(state), action);
                (0..self.rewards.len()).map(worth).fold(f64::MIN, f64::max)
            };
            let next: Vec<f64> = (0..values.len()).map(best).collect();
            let moved = distance(&next, &values);
            values = next;
            if moved < 1e-12 {
                return values;
            }
        }
    }

    /// Returns the value of an action in a state if the states after it have these values.
    pub fn worth(&self, gamma: f64, values: &[f64], state: usize, action: usize) -> f64 {
        let next = &self.transitions[action][state];
        self.rewards[action][state] + gamma * next.iter().zip(values).map(|(p, value)| p * value).sum::<f64>()
    }

    /// Computes the constants of the bound.
    pub fn constants(&self) -> Constants {
        let (mut reward, mut transition) = (0.0f64, 0.0f64);
        for (rewards, transitions) in self.rewards.iter().zip(&self.transitions) {
            // Neighbors suffice, because both distances add up along the line.
            for state in 1..self.slacks.len() {
                let apart = self.slacks[state] - self.slacks[state - 1];
                if apart == 0.0 {
                    continue;
                }
                reward = reward.max((rewards[state] - rewards[state - 1]).abs() / apart);
                let pairs = transitions[state].iter().zip(&transitions[state - 1]);
                transition = transition.max(0.5 * pairs.map(|(a, b)| (a - b).abs()).sum::<f64>() / apart);
            }
        }
        let greatest = self.rewards.iter().flatten().fold(0.0f64, |most, reward| most.max(reward.abs()));
        Constants { reward, transition, greatest }
    }

    /// The smooth problem. Waiting loses slack; running loses less and earns more the later it begins. Both outcomes
    /// are random.
    pub fn smooth(points: usize) -> Problem {
        let slacks: Vec<f64> = (0..points).map(|at| at as f64 / (points - 1) as f64).collect();
        let around = |centre: f64| {
            let weights: Vec<f64> =
                slacks.iter().map(|slack| (-((slack - centre) / 0.12).powi(2) / 2.0).exp()).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / sum).collect::<Vec<f64>>()
        };
        let wait = slacks.iter().map(|slack| around(slack - 0.25)).collect();
        let work = slacks.iter().map(|slack| around(0.35 + 0.6 * slack)).collect();
        let rewards = vec![
            slacks.iter().map(|slack| slack - 0.5).collect(),
            slacks.iter().map(|slack| 1.0 - 1.5 * slack).collect(),
        ];
        Problem { rewards, transitions: vec![wait, work], slacks }
    }

    /// The hard problem. A slack s leads to the best state forever with probability s, otherwise to the worst state
    /// forever.
    pub fn hard(points: usize) -> Problem {
        let mut slacks: Vec<f64> = (0..points).map(|at| at as f64 / (points - 1) as f64).collect();
        // The two final states lie beyond the grid, at its last slack, where nothing is quantized.
        slacks.extend([1.0, 1.0]);
        let (win, lose) = (points, points + 1);
        let mut transitions = vec![vec![0.0; slacks.len()]; slacks.len()];
        for state in 0..points {
            (transitions[state][win], transitions[state][lose]) = (slacks[state], 1.0 - slacks[state]);
        }
        (transitions[win][win], transitions[lose][lose]) = (1.0, 1.0);
        let mut rewards = vec![0.0; slacks.len()];
        (rewards[win], rewards[lose]) = (1.0, -1.0);
        Problem { slacks, rewards: vec![rewards], transitions: vec![transitions] }
    }
}

/// Returns the greatest absolute difference.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Returns the bound. `factor` is 1 as printed and 2 as corrected.
fn allowed(constants: &Constants, gamma: f64, width: f64, factor: f64) -> f64 {
    let Constants { reward, transition, greatest } = constants;
    width / (1.0 - gamma) * (reward + factor * gamma * transition * greatest / (1.0 - gamma))
}

/// Returns the loss in value from bins of `steps` grid steps. Only the first `points` states of the problem are
/// quantized.
fn gap(problem: &Problem, points: usize, gamma: f64, steps: usize) -> f64 {
    // Every state behaves like the first state of its bin.
    let representative = |state: usize| if state < points { state / steps * steps } else { state };
    distance(&problem.solve(gamma, |state| state), &problem.solve(gamma, representative))
}

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (_, settings) = &context.protocol::<Settings>()?;
    let points = settings.points;
    let (smooth, hard) = (Problem::smooth(points), Problem::hard(points));
    let problems = settings.gammas.iter().map(|gamma| ("smooth", &smooth, *gamma));
    let (mut rows, mut curves, mut legend) = (Vec::new(), Vec::new(), Vec::new());
    // Greatest gap over the printed and over the corrected bound: of the smooth problem, then of the hard one.
    let mut worst = [[0.0f64; 2]; 2];
    for (name, problem, gamma) in problems.chain([("hard", &hard, settings.hard_gamma)]) {
        let constants = problem.constants();
        let worst = &mut worst[usize::from(name == "hard")];
        let mut curve = Vec::new();
        for steps in &settings.bins {
            // The greatest distance of a state from its representative.
            let width = (*steps - 1) as f64 / (points - 1) as f64;
            let gap = gap(problem, points, gamma, *steps);
            let [printed, right] = [1.0, 2.0].map(|factor| allowed(&constants, gamma, width, factor));
            *worst = [worst[0].max(gap / printed), worst[1].max(gap / right)];
            curve.push((width, gap / printed));
            let numbers = [width, gap, printed, right, gap / printed].map(|number| format!("{number:.4}"));
            rows.push([name.to_string(), format!("{gamma}")].into_iter().chain(numbers).collect());
        }
        curves.push(curve);
        legend.push(format!("{name}, γ = {gamma}"));
    }
    for (name, [printed, right]) in ["smooth", "hard"].into_iter().zip(worst) {
        findings.add(Line::lower(format!("{name}_gap_over_bound"), Unit::Number, printed).headline());
        findings.add(Line::lower(format!("{name}_gap_over_corrected_bound"), Unit::Number, right));
    }
    let header = ["problem", "γ", "Δ", "gap", "bound as printed", "with the factor 2", "gap / bound as printed"];
    findings.tables.push(FindingsTable::new("Gaps and bounds", &header, rows));
    let most = curves.iter().flatten().map(|(_, y)| *y).fold(1.0, f64::max);
    let panel = panel("Gap as a share of the bound as printed", "Δ", curves, Span::Numbers(0.0, most * 1.05));
    findings.plot("The bound and the truth", "Above 1 the bound is broken.", panel, &legend);
    conclude(findings, worst);
    Ok(())
}

fn conclude(findings: &mut Findings, worst: [[f64; 2]; 2]) {
    let is_broken = worst.iter().any(|[printed, _]| *printed > 1.0 + 1e-9);
    let holds = worst.iter().all(|[_, right]| *right <= 1.0 + 1e-9);
    let sentence = format!(
        "the gap is at most {:.3} of the printed bound in the smooth problem and {:.3} in the hard one; with the factor 2 that total variation as half the L1 \
         distance needs, {:.3} and {:.3}, so the corrected bound {}",
        worst[0][0],
        worst[1][0],
        worst[0][1],
        worst[1][1],
        if holds { "holds" } else { "does not hold either" },
    );
    findings.conclude(if is_broken { Verdict::Refuted } else { Verdict::Reproduced }, &sentence);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_problem_has_the_value_that_theory_says() {
        let (points, gamma) = (11, 0.3);
        let problem = Problem::hard(points);
        let values = problem.solve(gamma, |state| state);
        // V(s) = γ (2 s − 1) / (1 − γ).
        for (slack, value) in problem.slacks[..points].iter().zip(&values) {
            assert!((value - gamma * (2.0 * slack - 1.0) / (1.0 - gamma)).abs() < 1e-9, "{slack}: {value}");
        }
        let constants = problem.constants();
        assert!((constants.transition - 1.0).abs() < 1e-9 && constants.greatest == 1.0);
        // Bins of three steps, so Δ = 0.2: the gap is 2 γ Δ / (1 − γ), the printed bound γ Δ / (1 − γ)².
        let gap = gap(&problem, points, gamma, 3);
        assert!((gap - 2.0 * gamma * 0.2 / (1.0 - gamma)).abs() < 1e-9, "{gap}");
        assert!(gap > allowed(&constants, gamma, 0.2, 1.0) && gap < allowed(&constants, gamma, 0.2, 2.0));
    }

    #[test]
    fn probabilities_add_up() {
        for problem in [Problem::smooth(21), Problem::hard(21)] {
            let sums = problem.transitions.iter().flatten().map(|next| next.iter().sum::<f64>());
            assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-12));
        }
    }
}
