//! The two steps of an LSTM cell (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with the forget gate of
//! Gers et al., 2000), and their gradients. A row of gates has four parts of the width of the state: input, forget,
//! candidate and output, before their nonlinearities.
//!
//! They are computed on the processor and in double precision, whatever the device: states are small.

use temponet_grad::ProcessorFunction;

/// Next cell states: σ(forget) ∘ cell + σ(input) ∘ tanh(candidate). The operands are the gates and the cell states
/// before, one row per sequence.
pub(super) struct CellState {
    /// Width of the state.
    pub width: usize,
}

/// Outputs: σ(output) ∘ tanh(cell). The operands are the gates and the cell states of this step, one row per sequence.
pub(super) struct CellOutput {
    /// Width of the state.
    pub width: usize,
}

/// Result of a unit from its gates (input, forget, candidate, output) and its cell state.
type Value = fn([f64; 4], f64) -> f64;
/// Gradients with respect to its gates and its cell state, given that with respect to the result.
type Slopes = fn([f64; 4], f64, f64) -> ([f64; 4], f64);

impl ProcessorFunction for CellState {
    fn value(&self, operands: &[Vec<f32>]) -> Vec<f32> {
        values(self.width, operands, state)
    }

    fn gradients(&self, operands: &[Vec<f32>], dy: &[f32]) -> Vec<Vec<f32>> {
        gradients(self.width, operands, dy, state_slopes)
    }
}

impl ProcessorFunction for CellOutput {
    fn value(&self, operands: &[Vec<f32>]) -> Vec<f32> {
        values(self.width, operands, output)
    }

    fn gradients(&self, operands: &[Vec<f32>], dy: &[f32]) -> Vec<Vec<f32>> {
        gradients(self.width, operands, dy, output_slopes)
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn state([input, forget, candidate, _]: [f64; 4], cell: f64) -> f64 {
    sigmoid(forget) * cell + sigmoid(input) * candidate.tanh()
}

fn state_slopes([input, forget, candidate, _]: [f64; 4], cell: f64, dy: f64) -> ([f64; 4], f64) {
    let (input, forget, candidate) = (sigmoid(input), sigmoid(forget), candidate.tanh());
    let by_input = dy * candidate * input * (1.0 - input);
    let by_forget = dy * cell * forget * (1.0 - forget);
    ([by_input, by_forget, dy * input * (1.0 - candidate * candidate), 0.0], dy * forget)
}

fn output([.., output]: [f64; 4], cell: f64) -> f64 {
    sigmoid(output) * cell.tanh()
}

fn output_slopes([.., output]: [f64; 4], cell: f64, dy: f64) -> ([f64; 4], f64) {
    let (output, squashed) = (sigmoid(output), cell.tanh());
    ([0.0, 0.0, 0.0, dy * squashed * output * (1.0 - output)], dy * output * (1.0 - squashed * squashed))
}

/// Gates and cell state of each unit of all rows.
fn units(width: usize, operands: &[Vec<f32>]) -> impl Iterator<Item = ([f64; 4], f64)> {
    let rows = operands[0].chunks_exact(4 * width).zip(operands[1].chunks_exact(width));
    rows.flat_map(move |(gates, cell)| {
        let gate = move |unit: usize| [0, 1, 2, 3].map(|part| f64::from(gates[part * width + unit]));
        cell.iter().enumerate().map(move |(unit, cell)| (gate(unit), f64::from(*cell)))
    })
}

fn values(width: usize, operands: &[Vec<f32>], value: Value) -> Vec<f32> {
    units(width, operands).map(|(gates, cell)| value(gates, cell) as f32).collect()
}

fn gradients(width: usize, operands: &[Vec<f32>], dy: &[f32], slopes: Slopes) -> Vec<Vec<f32>> {
    let (mut by_gates, mut by_cell) = (vec![0.0; operands[0].len()], Vec::with_capacity(dy.len()));
    for (place, ((gates, cell), dy)) in units(width, operands).zip(dy).enumerate() {
        let (of_gates, of_cell) = slopes(gates, cell, f64::from(*dy));
        let first = place / width * 4 * width + place % width;
        for (part, slope) in of_gates.into_iter().enumerate() {
            by_gates[first + part * width] = slope as f32;
        }
        by_cell.push(of_cell as f32);
    }
    vec![by_gates, by_cell]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_agree_with_finite_differences() {
        let numbers = [0.3, -1.1, 0.8, 0.4, -0.7];
        for (value, slopes) in [(state as Value, state_slopes as Slopes), (output, output_slopes)] {
            let at = |n: [f64; 5]| value([n[0], n[1], n[2], n[3]], n[4]);
            let (by_gates, by_cell) = slopes([numbers[0], numbers[1], numbers[2], numbers[3]], numbers[4], 1.0);
            for (place, found) in by_gates.into_iter().chain([by_cell]).enumerate() {
                let moved = |step: f64| {
                    let mut moved = numbers;
                    moved[place] += step;
                    at(moved)
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((found - expected).abs() < 1e-9, "{place}: {found} instead of {expected}");
            }
        }
    }

    #[test]
    fn gates_of_a_row_lie_part_after_part() {
        let gates = vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8];
        let operands = [gates, vec![-0.5, 0.5, 1.5, -1.5]];
        let found = CellState { width: 2 }.value(&operands);
        let expected = state([1.2, 1.4, 1.6, 1.8], -1.5);
        assert!((f64::from(found[3]) - expected).abs() < 1e-6, "{found:?}");
        let by_gates = &CellState { width: 2 }.gradients(&operands, &[0.0, 0.0, 0.0, 2.0])[0];
        let expected = state_slopes([1.2, 1.4, 1.6, 1.8], -1.5, 2.0).0;
        let own = [9, 11, 13, 15].map(|place| f64::from(by_gates[place]));
        assert!(own.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{own:?} {expected:?}");
        assert!(by_gates[..8].iter().all(|slope| *slope == 0.0));
    }
}
