//! The two steps of an LSTM cell (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with the forget gate of Gers et al., 2000), and their
//! gradients. A row of gates has four parts of the width of the state: input, forget, candidate and output, before their nonlinearities.
//!
//! They are computed on the processor, whatever the device: states are small.

use crate::Real;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Next cell state of one row: σ(forget) · cell + σ(input) · tanh(candidate).
pub(crate) fn cell_state<R: Real>(gates: &[R], cell: &[R]) -> Vec<R> {
    let width = cell.len();
    let gate = |part: usize, unit: usize| gates[part * width + unit].to_f64();
    let next = |unit: usize| {
        let kept = sigmoid(gate(1, unit)) * cell[unit].to_f64();
        R::of(kept + sigmoid(gate(0, unit)) * gate(2, unit).tanh())
    };
    (0..width).map(next).collect()
}

/// Gradients of [`cell_state`] with respect to the gates and the cell state before, given that with respect to its result.
pub(crate) fn cell_state_backward<R: Real>(gates: &[R], cell: &[R], dy: &[R]) -> (Vec<R>, Vec<R>) {
    let width = cell.len();
    let (mut by_gates, mut by_cell) = (vec![R::ZERO; gates.len()], Vec::with_capacity(width));
    for (unit, dy) in dy.iter().enumerate() {
        let gate = |part: usize| gates[part * width + unit].to_f64();
        let (dy, input, forget, candidate) = (dy.to_f64(), sigmoid(gate(0)), sigmoid(gate(1)), gate(2).tanh());
        by_gates[unit] = R::of(dy * candidate * input * (1.0 - input));
        by_gates[width + unit] = R::of(dy * cell[unit].to_f64() * forget * (1.0 - forget));
        by_gates[2 * width + unit] = R::of(dy * input * (1.0 - candidate * candidate));
        by_cell.push(R::of(dy * forget));
    }
    (by_gates, by_cell)
}

/// Output of one row: σ(output) · tanh(cell).
pub(crate) fn cell_output<R: Real>(gates: &[R], cell: &[R]) -> Vec<R> {
    let output = &gates[3 * cell.len()..];
    let one = |(cell, output): (&R, &R)| R::of(sigmoid(output.to_f64()) * cell.to_f64().tanh());
    cell.iter().zip(output).map(one).collect()
}

/// Gradients of [`cell_output`] with respect to the gates and the cell state, given that with respect to its result.
pub(crate) fn cell_output_backward<R: Real>(gates: &[R], cell: &[R], dy: &[R]) -> (Vec<R>, Vec<R>) {
    let width = cell.len();
    let (mut by_gates, mut by_cell) = (vec![R::ZERO; gates.len()], Vec::with_capacity(width));
    for (unit, dy) in dy.iter().enumerate() {
        let (dy, output) = (dy.to_f64(), sigmoid(gates[3 * width + unit].to_f64()));
        let squashed = cell[unit].to_f64().tanh();
        by_gates[3 * width + unit] = R::of(dy * squashed * output * (1.0 - output));
        by_cell.push(R::of(dy * output * (1.0 - squashed * squashed)));
    }
    (by_gates, by_cell)
}
