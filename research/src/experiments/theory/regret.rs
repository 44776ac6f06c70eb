//! Statements about regret: its decomposition into Bellman residuals, the price of exploration, and the constant in
//! front of √T.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Check, Relation, Settings};
use crate::{Findings, FindingsTable, Unit};

pub(super) fn checks(settings: &Settings, findings: &mut Findings) -> Vec<Check> {
    vec![decomposition(settings), exploration(settings), universal_constant(settings, findings)]
}

/// Number of states and of actions of a random episodic problem.
const STATES: usize = 4;
const ACTIONS: usize = 3;

/// Action values at each step, by step, state and action.
type StepValues = Vec<[[f64; ACTIONS]; STATES]>;

/// An episodic problem with the same rewards and transitions at each step. Episodes start in state 0.
struct Episodic {
    rewards: [[f64; ACTIONS]; STATES],
    transitions: [[[f64; STATES]; ACTIONS]; STATES],
    horizon: usize,
}

impl Episodic {
    fn random(horizon: usize, rng: &mut Pcg64) -> Episodic {
        let (mut rewards, mut transitions) = ([[0.0; ACTIONS]; STATES], [[[0.0; STATES]; ACTIONS]; STATES]);
        for state in 0..STATES {
            for action in 0..ACTIONS {
                rewards[state][action] = rng.random();
                let weights: [f64; STATES] = std::array::from_fn(|_| rng.random());
                let sum: f64 = weights.iter().sum();
                transitions[state][action] = weights.map(|weight| weight / sum);
            }
        }
        Episodic { rewards, transitions, horizon }
    }

    /// Bellman's operator at one step: the values of actions from the values of the states after them.
    fn backup(&self, after: &[f64; STATES]) -> [[f64; ACTIONS]; STATES] {
        let worth = |state: usize, action: usize| {
            let next = self.transitions[state][action].iter().zip(after).map(|(p, value)| p * value);
            self.rewards[state][action] + next.sum::<f64>()
        };
        std::array::from_fn(|state| std::array::from_fn(|action| worth(state, action)))
    }

    fn optimum(&self) -> StepValues {
        let mut after = [0.0; STATES];
        let mut steps: StepValues = (0..self.horizon)
            .map(|_| {
                let q = self.backup(&after);
                after = q.map(|q| best(&q).1);
                q
            })
            .collect();
        steps.reverse();
        steps
    }

    /// Value of following the best actions by `f`, and the sum over the steps of the expected residual of `f` along the
    /// way.
    fn follow(&self, f: &StepValues) -> (f64, f64) {
        let mut at = [0.0; STATES];
        at[0] = 1.0;
        let (mut value, mut residual) = (0.0, 0.0);
        for step in 0..self.horizon {
            let after = f.get(step + 1).map_or([0.0; STATES], |q| q.map(|q| best(&q).1));
            let backed = self.backup(&after);
            let mut next = [0.0; STATES];
            for state in 0..STATES {
                let (action, own) = best(&f[step][state]);
                value += at[state] * self.rewards[state][action];
                residual += at[state] * (backed[state][action] - own);
                next.iter_mut().zip(self.transitions[state][action]).for_each(|(next, p)| *next += at[state] * p);
            }
            at = next;
        }
        (value, residual)
    }
}

/// Best action and its value.
fn best(q: &[f64]) -> (usize, f64) {
    q.iter().copied().enumerate().fold((0, f64::MIN), |best, next| if next.1 > best.1 { next } else { best })
}

/// Random problems and estimates that are never below the optimum, as the lemma's proof wants them.
fn decomposition(settings: &Settings) -> Check {
    let mut rng = Pcg64::seed_from_u64(11);
    let mut holds = [0u64; 2];
    for _ in 0..settings.problems {
        let problem = Episodic::random(settings.horizon, &mut rng);
        let optimum = problem.optimum();
        let mut f = optimum.clone();
        f.iter_mut().flatten().flatten().for_each(|value| *value += rng.random::<f64>());
        let (value, residual) = problem.follow(&f);
        let regret = best(&optimum[0][0]).1 - value;
        for (holds, bound) in holds.iter_mut().zip([residual, -residual]) {
            *holds += u64::from(regret <= bound + 1e-9);
        }
    }
    let [printed, reversed] = holds.map(|count| count as f64 / settings.problems.max(1) as f64);
    Check {
        name: "regret_decomposition",
        statement: "Lemma G.1: regret is at most the sum of the residuals Tf − f along the way, f optimistic",
        figure: "share of random problems on which it is",
        relation: Relation::AtLeast,
        measured: printed,
        stated: 1.0,
        amended: Some(("residuals f − Tf", reversed)),
    }
}

/// A learner that knows the optimum and explores with a constant probability, the floor of the paper's own schedule. In
/// the good state one action earns 1 and stays; the other leads to a bad state, which earns nothing and is left with a
/// probability of one tenth.
fn exploration(settings: &Settings) -> Check {
    const EPSILON: f64 = 0.05;
    const RETURN: f64 = 0.1;
    let gamma = settings.gamma;
    // A bad state is worth a fixed share of a good one.
    let share = gamma * RETURN / (1.0 - gamma * (1.0 - RETURN));
    let worth = |leave: f64| {
        let good = (1.0 - leave) / (1.0 - gamma * (1.0 - leave) - gamma * leave * share);
        [good, share * good]
    };
    let leave = EPSILON / 2.0;
    let often = [RETURN / (RETURN + leave), leave / (RETURN + leave)];
    let lost = often.iter().zip(worth(0.0)).zip(worth(leave)).map(|((often, best), own)| often * (best - own));
    let measured = lost.sum::<f64>() / EPSILON;
    Check {
        name: "regret_of_exploration",
        statement: "Theorems H.2 and H.3: exploring with probability ε costs at most Rmax·ε a step",
        figure: "regret per step of an optimal policy that explores, over Rmax·ε",
        relation: Relation::AtMost,
        measured,
        stated: 1.0,
        amended: Some(("Rmax·ε / (1 − γ)²", measured * (1.0 - gamma).powi(2))),
    }
}

/// Probability of error that the bound is taken at.
const DELTA: f64 = 0.05;

/// Tabular Q-learning on a chain: one action leads a state further, the other back to the start, and only the last
/// state pays.
struct Chain {
    length: usize,
    gamma: f64,
}

impl Chain {
    fn next(&self, state: usize, action: usize) -> (usize, f64) {
        let is_last = state == self.length;
        if action == 0 { (0, 0.0) } else { ((state + 1).min(self.length), f64::from(u8::from(is_last))) }
    }

    /// Values of the states if the given actions are chosen, or a random one with probability `epsilon`.
    fn values(&self, greedy: &[usize], epsilon: f64) -> Vec<f64> {
        let mut values = vec![0.0; greedy.len()];
        loop {
            let worth = |state: usize, action: usize| {
                let (next, reward) = self.next(state, action);
                reward + self.gamma * values[next]
            };
            let own = |(state, greedy): (usize, &usize)| {
                let random = (worth(state, 0) + worth(state, 1)) / 2.0;
                epsilon * random + (1.0 - epsilon) * worth(state, *greedy)
            };
            let next: Vec<f64> = greedy.iter().enumerate().map(own).collect();
            let moved = next.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            values = next;
            if moved < 1e-9 {
                return values;
            }
        }
    }

    /// Constants in front of the first term that the regret asks for, after a quarter of the steps and after all.
    fn constants(&self, steps: usize) -> [f64; 2] {
        /// Steps between two changes of the probability to explore.
        const BLOCK: usize = 100;
        let states = self.length + 1;
        let best = self.values(&vec![1; states], 0.0);
        let mut rng = Pcg64::seed_from_u64(self.length as u64);
        let mut q = vec![[0.0f64; 2]; states];
        let mut greedy = vec![0; states];
        let (mut state, mut regret, mut explored, mut epsilon) = (0, 0.0, 0.0, 1.0);
        let (mut own, mut constants) = (Vec::new(), [f64::NAN; 2]);
        for step in 0..steps {
            let is_new = step.is_multiple_of(BLOCK);
            if is_new {
                epsilon = 1.0 / (1.0 + step as f64).cbrt();
            }
            let chosen: Vec<usize> = q.iter().map(|q| usize::from(q[1] > q[0])).collect();
            if is_new || chosen != greedy {
                greedy = chosen;
                own = self.values(&greedy, epsilon);
            }
            regret += best[state] - own[state];
            explored += epsilon;
            let action = if rng.random::<f64>() < epsilon { rng.random_range(0..2) } else { greedy[state] };
            let (next, reward) = self.next(state, action);
            q[state][action] += 0.2 * (reward + self.gamma * q[next][0].max(q[next][1]) - q[state][action]);
            state = next;
            let root = ((step + 1) as f64 * (2 * states) as f64 * (1.0 / DELTA).ln()).sqrt();
            let constant = (regret - explored) * (1.0 - self.gamma) / root;
            if step + 1 == steps / 4 {
                constants[0] = constant;
            }
            constants[1] = constant;
        }
        constants
    }
}

fn universal_constant(settings: &Settings, findings: &mut Findings) -> Check {
    let (mut rows, mut growth) = (Vec::new(), f64::NAN);
    for length in &settings.chains {
        let [quarter, whole] = Chain { length: *length, gamma: settings.gamma }.constants(settings.steps);
        growth = whole / quarter;
        let shown = [quarter, whole].map(|constant| Unit::Number.show(constant));
        rows.push([length.to_string()].into_iter().chain(shown).collect());
    }
    let header = ["states before the one that pays", "constant after a quarter of the steps", "after all"];
    findings.tables.push(FindingsTable::new("Constant that the regret of Q-learning asks for", &header, rows));
    Check {
        name: "regret_universal_constant",
        statement: "Theorem H.2: ε-greedy Q-learning has a regret of C√(T|S||A|log(1/δ))/(1 − γ) beside exploration, C universal",
        figure: "constant asked for after all steps over that after a quarter, on the longest chain",
        relation: Relation::AtMost,
        measured: growth,
        stated: 1.0,
        amended: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_optimum_has_no_regret_and_no_residual() {
        let mut rng = Pcg64::seed_from_u64(3);
        let problem = Episodic::random(5, &mut rng);
        let optimum = problem.optimum();
        let (value, residual) = problem.follow(&optimum);
        assert!((best(&optimum[0][0]).1 - value).abs() < 1e-12 && residual.abs() < 1e-12);
    }

    #[test]
    fn a_chain_is_worth_what_its_last_state_pays() {
        let chain = Chain { length: 3, gamma: 0.5 };
        let values = chain.values(&[1; 4], 0.0);
        for (state, value) in values.iter().enumerate() {
            assert!((value - 2.0 * 0.5f64.powi(3 - state as i32)).abs() < 1e-8, "{state}: {value}");
        }
        assert!(chain.values(&[0; 4], 0.0).iter().all(|value| *value == 0.0));
    }
}
