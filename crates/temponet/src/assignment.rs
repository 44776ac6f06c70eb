//! Matching of rows (jobs) to columns (cores) for the greatest total gain: relaxed ([`Sinkhorn`]) and exact
//! ([`Hungarian`]).
//!
//! Gains are given in row-major order. A row or column may stay unmatched; its gain is then zero. Both matchers reuse
//! their buffers from call to call.

/// Entropy-regularized optimal transport by Sinkhorn iterations, and a matching that is rounded from its plan.
#[derive(Clone, Debug, Default)]
pub struct Sinkhorn {
    weights: Vec<f32>,
    row_factors: Vec<f32>,
    column_factors: Vec<f32>,
    plan: Vec<f32>,
    order: Vec<usize>,
    taken: Vec<bool>,
    matched: Vec<Option<usize>>,
}

impl Sinkhorn {
    /// Returns the transport plan in row-major order: the share of each row that goes to each column.
    ///
    /// Every row and every column has a mass of one. A slack row and a slack column of zero gain take the mass that
    /// gains more when it stays unmatched; they are not part of the result. The lower the `temperature`, the closer the
    /// plan is to a matching. `iterations` is the number of times that rows and columns are rescaled.
    pub fn plan(&mut self, gains: &[f32], columns: usize, temperature: f32, iterations: u32) -> &[f32] {
        let rows = gains.len() / columns.max(1);
        let temperature = temperature.max(1e-6);
        let most = gains.iter().copied().fold(0.0, f32::max);
        // With the slack row and column the problem is balanced: row marginals 1, …, 1, columns; column marginals 1, …,
        // 1, rows.
        let gain = |row: usize, column: usize| match row < rows && column < columns {
            true => gains[row * columns + column],
            false => 0.0,
        };
        let cells = (0..=rows).flat_map(|row| (0..=columns).map(move |column| (row, column)));
        self.weights.clear();
        self.weights.extend(cells.map(|(row, column)| ((gain(row, column) - most) / temperature).max(-80.0).exp()));
        let kernel = |row: usize, column: usize| self.weights[row * (columns + 1) + column];
        let (u, v) = (&mut self.row_factors, &mut self.column_factors);
        refill(u, rows + 1, 1.0);
        refill(v, columns + 1, 1.0);
        for _ in 0..iterations {
            for (row, u) in u.iter_mut().enumerate() {
                let sum: f32 = (0..=columns).map(|column| kernel(row, column) * v[column]).sum();
                *u = if row < rows { 1.0 } else { columns as f32 } / sum.max(f32::MIN_POSITIVE);
            }
            for (column, v) in v.iter_mut().enumerate() {
                let sum: f32 = (0..=rows).map(|row| kernel(row, column) * u[row]).sum();
                *v = if column < columns { 1.0 } else { rows as f32 } / sum.max(f32::MIN_POSITIVE);
            }
        }
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        self.plan.clear();
        self.plan.extend(cells.map(|(row, column)| u[row] * kernel(row, column) * v[column]));
        &self.plan
    }

    /// Returns the column of each row, rounded from the plan: cells with the greatest shares first, each row and column
    /// at most once. Cells with a negative gain are never matched. The parameters are those of [`Sinkhorn::plan`].
    pub fn matching(&mut self, gains: &[f32], columns: usize, temperature: f32, iterations: u32) -> &[Option<usize>] {
        self.plan(gains, columns, temperature, iterations);
        let plan = &self.plan;
        self.order.clear();
        self.order.extend((0..plan.len()).filter(|cell| gains[*cell] >= 0.0));
        let by_share =
            |a: &usize, b: &usize| plan[*b].total_cmp(&plan[*a]).then(gains[*b].total_cmp(&gains[*a])).then(a.cmp(b));
        self.order.sort_unstable_by(by_share);
        refill(&mut self.matched, plan.len() / columns.max(1), None);
        refill(&mut self.taken, columns, false);
        for cell in &self.order {
            let (row, column) = (cell / columns, cell % columns);
            if self.matched[row].is_none() && !self.taken[column] {
                self.matched[row] = Some(column);
                self.taken[column] = true;
            }
        }
        &self.matched
    }
}

/// Exact matching of greatest total gain: the Hungarian method of Kuhn and Munkres, by shortest augmenting paths.
#[derive(Clone, Debug, Default)]
pub struct Hungarian {
    row_price: Vec<f64>,
    column_price: Vec<f64>,
    /// Row matched to each column. Rows and columns are counted from 1; row 0 means unmatched, and column 0 is where a
    /// search begins.
    row_of: Vec<usize>,
    least: Vec<f64>,
    came_from: Vec<usize>,
    used: Vec<bool>,
    matched: Vec<Option<usize>>,
}

impl Hungarian {
    /// Returns the column of each row.
    pub fn matching(&mut self, gains: &[f32], columns: usize) -> &[Option<usize>] {
        let rows = gains.len() / columns.max(1);
        // One extra column per row, of zero cost: a row that is matched to an extra column stays unmatched.
        let width = columns + rows;
        let cost = |row: usize, column: usize| match column < columns {
            true => -f64::from(gains[row * columns + column]),
            false => 0.0,
        };
        let Hungarian { row_price, column_price, row_of, least, came_from, used, matched } = self;
        refill(row_price, rows + 1, 0.0);
        refill(column_price, width + 1, 0.0);
        refill(row_of, width + 1, 0);
        for row in 1..=rows {
            row_of[0] = row;
            let mut column = 0;
            refill(least, width + 1, f64::INFINITY);
            refill(came_from, width + 1, 0);
            refill(used, width + 1, false);
            while row_of[column] != 0 {
                used[column] = true;
                let (current, mut delta, mut next) = (row_of[column], f64::INFINITY, 0);
                for other in 1..=width {
                    if used[other] {
                        continue;
                    }
                    let reduced = cost(current - 1, other - 1) - row_price[current] - column_price[other];
                    if reduced < least[other] {
                        (least[other], came_from[other]) = (reduced, column);
                    }
                    if least[other] < delta {
                        (delta, next) = (least[other], other);
                    }
                }
                for other in 0..=width {
                    if used[other] {
                        row_price[row_of[other]] += delta;
                        column_price[other] -= delta;
                    } else {
                        least[other] -= delta;
                    }
                }
                column = next;
            }
            while column != 0 {
                row_of[column] = row_of[came_from[column]];
                column = came_from[column];
            }
        }
        refill(matched, rows, None);
        for (column, row) in row_of.iter().enumerate().skip(1).filter(|(column, row)| *column <= columns && **row > 0) {
            matched[row - 1] = Some(column - 1);
        }
        matched
    }
}

/// Sets `buffer` to `length` copies of `value`; reuses its memory.
fn refill<T: Copy>(buffer: &mut Vec<T>, length: usize, value: T) {
    buffer.clear();
    buffer.resize(length, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// Total gain of a matching; panics if a column is matched twice.
    fn total(gains: &[f32], columns: usize, matched: &[Option<usize>]) -> f32 {
        let mut taken = vec![false; columns];
        let gain = |(row, column): (usize, &Option<usize>)| {
            column.map_or(0.0, |column| {
                assert!(!std::mem::replace(&mut taken[column], true), "a column is matched twice");
                gains[row * columns + column]
            })
        };
        matched.iter().enumerate().map(gain).sum()
    }

    /// Greatest total gain of rows `row` and after, by exhaustive search.
    fn best(gains: &[f32], columns: usize, row: usize, taken: &mut Vec<bool>) -> f32 {
        if row * columns >= gains.len() {
            return 0.0;
        }
        let mut most = best(gains, columns, row + 1, taken);
        for column in 0..columns {
            if !taken[column] {
                taken[column] = true;
                most = most.max(gains[row * columns + column] + best(gains, columns, row + 1, taken));
                taken[column] = false;
            }
        }
        most
    }

    #[test]
    fn hungarian_is_the_best_and_sinkhorn_is_close() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut exact, mut relaxed) = (0.0, 0.0);
        let (mut hungarian, mut sinkhorn) = (Hungarian::default(), Sinkhorn::default());
        for _ in 0..300 {
            let (rows, columns) = (rng.random_range(1..=5), rng.random_range(1..=4));
            let gains: Vec<f32> = (0..rows * columns).map(|_| rng.random_range(-1.0..3.0)).collect();
            let matched = hungarian.matching(&gains, columns);
            let most = best(&gains, columns, 0, &mut vec![false; columns]);
            assert!((total(&gains, columns, matched) - most).abs() < 1e-4, "{gains:?}");
            let rounded = sinkhorn.matching(&gains, columns, 0.05, 100);
            (exact, relaxed) = (exact + most, relaxed + total(&gains, columns, rounded));
        }
        assert!(relaxed > 0.98 * exact, "{relaxed} of {exact}");
    }
}
