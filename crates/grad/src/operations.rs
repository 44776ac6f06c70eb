//! The operations of a tape without the type of its device.
//!
//! A network that is written against [`Operations`] is compiled once, in its own crate, and runs on every device. A
//! call through it costs nothing beside an operation on a batch. Row numbers are copied to the device at each call, so
//! a network that uses the same many numbers in every layer is better written against [`Tape`].

use std::sync::Arc;

use crate::{Device, ProcessorFunction, Real, Tape, TensorId, Var};

/// Operations of a [`Tape`] on any device.
pub trait Operations {
    /// See [`Tape::input`].
    fn input(&mut self, rows: usize, columns: usize, values: &[Real]) -> Var;
    /// See [`Tape::linear`].
    fn linear(&mut self, x: Var, weight: TensorId, bias: Option<TensorId>) -> Var;
    /// The rows of a table with these numbers, in this order.
    fn table_rows(&mut self, table: TensorId, rows: &[u32]) -> Var;
    /// See [`Tape::gather`].
    fn gather(&mut self, x: Var, rows: &[u32]) -> Var;
    /// See [`Tape::message_sum`].
    fn message_sum(&mut self, x: Var, rows: usize, from: &[u32], to: &[u32]) -> Var;
    /// See [`Tape::combine`].
    fn combine(&mut self, rows: usize, parts: &[(Var, &[u32])]) -> Var;
    /// See [`Tape::add`].
    fn add(&mut self, left: Var, right: Var) -> Var;
    /// See [`Tape::norm`].
    fn norm(&mut self, x: Var, change: Option<Var>, weight: TensorId, bias: TensorId) -> Var;
    /// See [`Tape::relu`].
    fn relu(&mut self, x: Var) -> Var;
    /// See [`Tape::on_processor`].
    fn on_processor(&mut self, operands: &[Var], shape: (usize, usize), function: Arc<dyn ProcessorFunction>) -> Var;
}

impl<D: Device> Operations for Tape<'_, D> {
    fn input(&mut self, rows: usize, columns: usize, values: &[Real]) -> Var {
        self.input(rows, columns, values)
    }

    fn linear(&mut self, x: Var, weight: TensorId, bias: Option<TensorId>) -> Var {
        self.linear(x, weight, bias)
    }

    fn table_rows(&mut self, table: TensorId, rows: &[u32]) -> Var {
        self.embedding(rows.len(), &[(table, rows, None)])
    }

    fn gather(&mut self, x: Var, rows: &[u32]) -> Var {
        let rows = self.numbers(rows);
        self.gather(x, &rows)
    }

    fn message_sum(&mut self, x: Var, rows: usize, from: &[u32], to: &[u32]) -> Var {
        self.message_sum(x, rows, from, to)
    }

    fn combine(&mut self, rows: usize, parts: &[(Var, &[u32])]) -> Var {
        let parts: Vec<_> = parts.iter().map(|(x, places)| (*x, self.numbers(places))).collect();
        let parts: Vec<_> = parts.iter().map(|(x, places)| (*x, places)).collect();
        self.combine(rows, &parts)
    }

    fn add(&mut self, left: Var, right: Var) -> Var {
        self.add(left, right)
    }

    fn norm(&mut self, x: Var, change: Option<Var>, weight: TensorId, bias: TensorId) -> Var {
        self.norm(x, change, weight, bias)
    }

    fn relu(&mut self, x: Var) -> Var {
        self.relu(x)
    }

    fn on_processor(&mut self, operands: &[Var], shape: (usize, usize), function: Arc<dyn ProcessorFunction>) -> Var {
        self.on_processor(operands, shape, function)
    }
}
