//! Matching rows (jobs) to columns (cores) for the greatest gain: the relaxed way and the exact one. Gains are given row after row; a row or
//! column may stay unmatched, which gains nothing.

/// The transport plan of entropic optimal transport: shares of rows in columns, row after row. Every row and column has one unit to give;
/// a slack row and a slack column of zero gain take what is better left alone.
pub fn sinkhorn(gains: &[f32], columns: usize, temperature: f32, iterations: u32) -> Vec<f32> {
    let rows = gains.len() / columns.max(1);
    let temperature = temperature.max(1e-6);
    let most = gains.iter().copied().fold(0.0, f32::max);
    // With the slack row and column the problem is balanced: row marginals 1, …, 1, columns; column marginals 1, …, 1, rows.
    let gain =
        |row: usize, column: usize| if row < rows && column < columns { gains[row * columns + column] } else { 0.0 };
    let cells = (0..=rows).flat_map(|row| (0..=columns).map(move |column| (row, column)));
    let weights: Vec<f32> =
        cells.map(|(row, column)| ((gain(row, column) - most) / temperature).max(-80.0).exp()).collect();
    let kernel = |row: usize, column: usize| weights[row * (columns + 1) + column];
    let mut u = vec![1.0; rows + 1];
    let mut v = vec![1.0; columns + 1];
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
    let share = |row: usize, column: usize| u[row] * kernel(row, column) * v[column];
    (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| share(row, column))
        .collect()
}

/// A legal matching from a plan: the greatest shares first, each row and column once, and only where there is a gain.
pub fn round_plan(plan: &[f32], gains: &[f32], columns: usize) -> Vec<Option<usize>> {
    let rows = plan.len() / columns.max(1);
    let mut order: Vec<usize> = (0..plan.len()).filter(|cell| gains[*cell] >= 0.0).collect();
    order.sort_by(|a, b| plan[*b].total_cmp(&plan[*a]).then(gains[*b].total_cmp(&gains[*a])).then(a.cmp(b)));
    let mut matched = vec![None; rows];
    let mut taken = vec![false; columns];
    for cell in order {
        let (row, column) = (cell / columns, cell % columns);
        if matched[row].is_none() && !taken[column] {
            matched[row] = Some(column);
            taken[column] = true;
        }
    }
    matched
}

/// The matching of greatest gain (Kuhn and Munkres, by shortest augmenting paths).
pub fn hungarian(gains: &[f32], columns: usize) -> Vec<Option<usize>> {
    let rows = gains.len() / columns.max(1);
    // Columns beyond the real ones stand for staying unmatched.
    let width = columns + rows;
    let cost =
        |row: usize, column: usize| if column < columns { -f64::from(gains[row * columns + column]) } else { 0.0 };
    let (mut row_price, mut column_price) = (vec![0.0; rows + 1], vec![0.0; width + 1]);
    // The row of each column, counted from 1; column 0 is where a search begins.
    let mut row_of = vec![0; width + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut column = 0;
        let mut least = vec![f64::INFINITY; width + 1];
        let mut came_from = vec![0; width + 1];
        let mut used = vec![false; width + 1];
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
    let mut matched = vec![None; rows];
    for (column, row) in row_of.iter().enumerate().skip(1).filter(|(column, row)| *column <= columns && **row > 0) {
        matched[row - 1] = Some(column - 1);
    }
    matched
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    fn total(gains: &[f32], columns: usize, matched: &[Option<usize>]) -> f32 {
        let mut taken = vec![false; columns];
        let gain = |(row, column): (usize, &Option<usize>)| {
            column.map_or(0.0, |column| {
                assert!(!std::mem::replace(&mut taken[column], true), "a column twice");
                gains[row * columns + column]
            })
        };
        matched.iter().enumerate().map(gain).sum()
    }

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
        for _ in 0..300 {
            let (rows, columns) = (rng.random_range(1..=5), rng.random_range(1..=4));
            let gains: Vec<f32> = (0..rows * columns).map(|_| rng.random_range(-1.0..3.0)).collect();
            let matched = hungarian(&gains, columns);
            let most = best(&gains, columns, 0, &mut vec![false; columns]);
            assert!((total(&gains, columns, &matched) - most).abs() < 1e-4, "{gains:?}");
            let rounded = round_plan(&sinkhorn(&gains, columns, 0.05, 100), &gains, columns);
            (exact, relaxed) = (exact + most, relaxed + total(&gains, columns, &rounded));
        }
        assert!(relaxed > 0.98 * exact, "{relaxed} of {exact}");
    }
}
