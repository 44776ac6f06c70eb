//! The two steps of an LSTM cell (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with the forget gate of Gers et al., 2000), and their
//! gradients. A row of gates has four parts of the width of the state: input, forget, candidate and output, before their nonlinearities.
//!
//! They are computed on the processor, whatever the device: states are small.

use crate::Real;
use crate::real::{double, rounded};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Next cell state of one row: σ(forget) · cell + σ(input) · tanh(candidate).
pub(crate) fn cell_state(gates: &[Real], cell: &[Real]) -> Vec<Real> {
    let width = cell.len();
    let gate = |part: usize, unit: usize| double(gates[part * width + unit]);
    let next = |unit: usize| {
        let kept = sigmoid(gate(1, unit)) * double(cell[unit]);
        rounded(kept + sigmoid(gate(0, unit)) * gate(2, unit).tanh())
    };
    (0..width).map(next).collect()
}

/// Gradients of [`cell_state`] with respect to the gates and the cell state before, given that with respect to its result.
pub(crate) fn cell_state_backward(gates: &[Real], cell: &[Real], dy: &[Real]) -> (Vec<Real>, Vec<Real>) {
    let width = cell.len();
    let (mut by_gates, mut by_cell) = (vec![0.0; gates.len()], Vec::with_capacity(width));
    for (unit, dy) in dy.iter().enumerate() {
        let gate = |part: usize| double(gates[part * width + unit]);
        let (dy, input, forget, candidate) = (double(*dy), sigmoid(gate(0)), sigmoid(gate(1)), gate(2).tanh());
        by_gates[unit] = rounded(dy * candidate * input * (1.0 - input));
        by_gates[width + unit] = rounded(dy * double(cell[unit]) * forget * (1.0 - forget));
        by_gates[2 * width + unit] = rounded(dy * input * (1.0 - candidate * candidate));
        by_cell.push(rounded(dy * forget));
    }
    (by_gates, by_cell)
}

/// Output of one row: σ(output) · tanh(cell).
pub(crate) fn cell_output(gates: &[Real], cell: &[Real]) -> Vec<Real> {
    let output = &gates[3 * cell.len()..];
    let one = |(cell, output): (&Real, &Real)| rounded(sigmoid(double(*output)) * double(*cell).tanh());
    cell.iter().zip(output).map(one).collect()
}

/// Gradients of [`cell_output`] with respect to the gates and the cell state, given that with respect to its result.
pub(crate) fn cell_output_backward(gates: &[Real], cell: &[Real], dy: &[Real]) -> (Vec<Real>, Vec<Real>) {
    let width = cell.len();
    let (mut by_gates, mut by_cell) = (vec![0.0; gates.len()], Vec::with_capacity(width));
    for (unit, dy) in dy.iter().enumerate() {
        let (dy, output) = (double(*dy), sigmoid(double(gates[3 * width + unit])));
        let squashed = double(cell[unit]).tanh();
        by_gates[3 * width + unit] = rounded(dy * squashed * output * (1.0 - output));
        by_cell.push(rounded(dy * output * (1.0 - squashed * squashed)));
    }
    (by_gates, by_cell)
}
