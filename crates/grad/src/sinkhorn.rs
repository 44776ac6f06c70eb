//! Sinkhorn iterations and their derivative: the relaxed matching of the rows and columns of a matrix of gains.
//!
//! Every row and every column has a mass of one. A slack row and a slack column of zero gain take what stays unmatched:
//! the slack row has as much mass as there are columns, the slack column as much as there are rows. The iterations are
//! computed in logarithms and in double precision, so that a low temperature neither overflows nor underflows. The
//! derivative is that of the iterations as they were computed, not of their limit.
//!
//! Reference: Cuturi, Sinkhorn Distances: Lightspeed Computation of Optimal Transport, NIPS 2013; Mena et al., Learning
//! Latent Permutations with Gumbel-Sinkhorn Networks, ICLR 2018.

use std::ops::Range;
use std::sync::Arc;

use crate::real::{double, rounded};
use crate::{ProcessorFunction, Real};

/// Shape and settings of one matching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchingShape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Temperature in units of the gains, positive: the lower, the closer the plan is to a matching.
    pub temperature: f64,
    /// Number of times that rows and columns are rescaled.
    pub iterations: u32,
}

impl MatchingShape {
    /// Number of cells, without those of the slack row and column.
    pub fn cells(&self) -> usize {
        self.rows * self.columns
    }

    /// Gains divided by the temperature, with the slack row and column.
    fn kernel(&self, gains: &[f64]) -> Kernel {
        let width = self.columns + 1;
        let mut cells = vec![0.0; (self.rows + 1) * width];
        for (row, own) in gains.chunks_exact(self.columns.max(1)).enumerate() {
            cells[row * width..][..self.columns]
                .iter_mut()
                .zip(own)
                .for_each(|(cell, gain)| *cell = gain / self.temperature);
        }
        Kernel { cells, rows: self.rows + 1, columns: width }
    }
}

/// Logarithms of the plans of several matchings, whose gains stand one after the other.
pub(crate) struct Matchings(pub Arc<[MatchingShape]>);

impl Matchings {
    /// Each matching with the range of its cells.
    fn ranges(&self) -> impl Iterator<Item = (&MatchingShape, Range<usize>)> {
        self.0.iter().scan(0, |end, shape| {
            let first = std::mem::replace(end, *end + shape.cells());
            Some((shape, first..*end))
        })
    }
}

impl ProcessorFunction for Matchings {
    fn value(&self, operands: &[Vec<Real>]) -> Vec<Real> {
        let gains: Vec<f64> = operands[0].iter().map(|gain| double(*gain)).collect();
        self.ranges().flat_map(|(shape, own)| log_plan(shape, &gains[own])).map(rounded).collect()
    }

    fn gradients(&self, operands: &[Vec<Real>], dy: &[Real]) -> Vec<Vec<Real>> {
        let [gains, dy] = [&operands[0], dy].map(|list| list.iter().map(|x| double(*x)).collect::<Vec<f64>>());
        let of_one =
            |(shape, own): (&MatchingShape, Range<usize>)| log_plan_backward(shape, &gains[own.clone()], &dy[own]);
        vec![self.ranges().flat_map(of_one).map(rounded).collect()]
    }
}

/// Logarithms of a kernel, slack row and column included.
struct Kernel {
    cells: Vec<f64>,
    rows: usize,
    columns: usize,
}

/// Logarithm of a sum of powers.
fn log_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    most + terms.map(|term| (term - most).exp()).sum::<f64>().ln()
}

impl Kernel {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.columns + column]
    }

    /// Mass of the last of `own` lines is that of all lines across but the last; every other line has a mass of one.
    fn log_mass(place: usize, own: usize, across: usize) -> f64 {
        if place + 1 == own { ((across - 1).max(1) as f64).ln() } else { 0.0 }
    }

    /// Logarithms of the row factors for given column factors.
    fn row_factors(&self, by_column: &[f64]) -> Vec<f64> {
        let of = |row: usize| {
            let terms = (0..self.columns).map(|column| self.at(row, column) + by_column[column]);
            Kernel::log_mass(row, self.rows, self.columns) - log_sum(terms)
        };
        (0..self.rows).map(of).collect()
    }

    /// Logarithms of the column factors for given row factors.
    fn column_factors(&self, by_row: &[f64]) -> Vec<f64> {
        let of = |column: usize| {
            let terms = (0..self.rows).map(|row| self.at(row, column) + by_row[row]);
            Kernel::log_mass(column, self.columns, self.rows) - log_sum(terms)
        };
        (0..self.columns).map(of).collect()
    }

    /// Row and column factors of every iteration, in logarithms. Before the first one the column factors are one.
    fn factors(&self, iterations: u32) -> Vec<(Vec<f64>, Vec<f64>)> {
        let mut all = vec![(vec![0.0; self.rows], vec![0.0; self.columns])];
        for _ in 0..iterations {
            let by_row = self.row_factors(&all[all.len() - 1].1);
            let by_column = self.column_factors(&by_row);
            all.push((by_row, by_column));
        }
        all
    }
}

/// Logarithms of the transport plan in row-major order, without the slack row and column.
fn log_plan(shape: &MatchingShape, gains: &[f64]) -> Vec<f64> {
    let kernel = shape.kernel(gains);
    let mut factors = kernel.factors(shape.iterations);
    let (by_row, by_column) = factors.pop().unwrap_or_default();
    let cells = (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |column| (row, column)));
    cells.map(|(row, column)| kernel.at(row, column) + by_row[row] + by_column[column]).collect()
}

/// Gradient with respect to the gains, given that with respect to the result of [`log_plan`].
fn log_plan_backward(shape: &MatchingShape, gains: &[f64], dy: &[f64]) -> Vec<f64> {
    let kernel = shape.kernel(gains);
    let factors = kernel.factors(shape.iterations);
    let (rows, columns) = (kernel.rows, kernel.columns);
    let mut by_kernel = vec![0.0; rows * columns];
    let (mut by_row, mut by_column) = (vec![0.0; rows], vec![0.0; columns]);
    for (row, own) in dy.chunks_exact(shape.columns.max(1)).enumerate() {
        for (column, slope) in own.iter().enumerate() {
            by_kernel[row * columns + column] += slope;
            by_row[row] += slope;
            by_column[column] += slope;
        }
    }
    for pair in factors.windows(2).rev() {
        let (before, (row_factors, column_factors)) = (&pair[0].1, &pair[1]);
        // A column factor is its mass less the logarithm of a sum over the rows; the terms' shares are its derivatives.
        for column in 0..columns {
            let log_sum = Kernel::log_mass(column, columns, rows) - column_factors[column];
            for row in 0..rows {
                let share = (kernel.at(row, column) + row_factors[row] - log_sum).exp();
                by_kernel[row * columns + column] -= by_column[column] * share;
                by_row[row] -= by_column[column] * share;
            }
        }
        by_column.fill(0.0);
        for row in 0..rows {
            let log_sum = Kernel::log_mass(row, rows, columns) - row_factors[row];
            for column in 0..columns {
                let share = (kernel.at(row, column) + before[column] - log_sum).exp();
                by_kernel[row * columns + column] -= by_row[row] * share;
                by_column[column] -= by_row[row] * share;
            }
        }
        by_row.fill(0.0);
    }
    let cells = (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |column| row * columns + column));
    cells.map(|cell| by_kernel[cell] / shape.temperature).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_have_a_mass_of_one_and_the_best_matching_wins() {
        let shape = MatchingShape { rows: 3, columns: 2, temperature: 0.05, iterations: 200 };
        // The first two rows want the first column; the second row can do with the second.
        let gains = [3.0, 1.0, 2.5, 2.0, 0.3, 0.2];
        let plan: Vec<f64> = log_plan(&shape, &gains).iter().map(|log| log.exp()).collect();
        for column in 0..2 {
            let mass: f64 = (0..3).map(|row| plan[2 * row + column]).sum();
            assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        }
        assert!((0..3).all(|row| plan[2 * row] + plan[2 * row + 1] < 1.001));
        assert!(plan[0] > 0.99 && plan[3] > 0.99 && plan[4] + plan[5] < 0.01, "{plan:?}");
        // A temperature at which the powers themselves would overflow.
        let cold = MatchingShape { temperature: 1e-4, ..shape };
        assert!(log_plan(&cold, &gains).iter().all(|log| log.is_finite()));
    }
}
