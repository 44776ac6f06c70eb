//! The distinct rows of a batch. Equal rows have equal embeddings, and the same first linear maps, so these are
//! computed once for all of them.

use std::collections::HashMap;

use crate::sample::Batch;

/// Distinct rows of a batch, idle rows first.
#[derive(Clone, Debug)]
pub struct DistinctRows {
    /// Values of each idle feature, for the distinct idle rows.
    pub idle: Vec<Vec<u32>>,
    /// Values of each job feature, for the distinct job rows.
    pub jobs: Vec<Vec<u32>>,
    /// Number of the distinct row that each row of the batch equals.
    pub of_rows: Vec<u32>,
    /// Number of distinct idle rows.
    pub idle_rows: usize,
    /// Number of distinct rows, idle and job.
    pub rows: usize,
}

/// Greatest share of the rows that may be distinct for sharing to pay.
const MAX_SHARE: f64 = 0.7;

impl DistinctRows {
    /// Finds the distinct rows of a batch. Returns `None` where that saves no work: if rows have real-valued inputs, or
    /// if most rows are distinct.
    pub fn of(batch: &Batch<'_>) -> Option<DistinctRows> {
        if batch.inputs > 0 {
            return None;
        }
        let (idle_firsts, idle_numbers) = number_rows(&batch.idle, batch.idle_places.len())?;
        let (job_firsts, job_numbers) = number_rows(&batch.jobs, batch.job_places.len())?;
        let rows = idle_firsts.len() + job_firsts.len();
        if rows as f64 > MAX_SHARE * batch.segments.rows() as f64 {
            return None;
        }
        let mut of_rows = vec![0; batch.segments.rows()];
        batch.idle_places.iter().zip(idle_numbers).for_each(|(row, number)| of_rows[*row as usize] = number);
        let jobs = batch.job_places.iter().zip(job_numbers);
        jobs.for_each(|(row, number)| of_rows[*row as usize] = idle_firsts.len() as u32 + number);
        let some = |features: &[Vec<u32>], places: &[usize]| -> Vec<Vec<u32>> {
            features.iter().map(|feature| places.iter().map(|place| feature[*place]).collect()).collect()
        };
        let (idle, jobs) = (some(&batch.idle, &idle_firsts), some(&batch.jobs, &job_firsts));
        Some(DistinctRows { idle, jobs, of_rows, idle_rows: idle_firsts.len(), rows })
    }
}

/// Returns the first row of each distinct one, and the number of the distinct row of each row. `None` if a row has too
/// many features for the key.
fn number_rows(features: &[Vec<u32>], rows: usize) -> Option<(Vec<usize>, Vec<u32>)> {
    const BITS: u32 = 16;
    if features.len() as u32 * BITS > u128::BITS {
        return None;
    }
    let (mut firsts, mut numbers) = (Vec::new(), HashMap::new());
    let number = |row: usize| {
        let key = features.iter().fold(0u128, |key, feature| key << BITS | u128::from(feature[row]));
        *numbers.entry(key).or_insert_with(|| {
            firsts.push(row);
            firsts.len() as u32 - 1
        })
    };
    let of_rows = (0..rows).map(number).collect();
    Some((firsts, of_rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn sample(idle: [u16; 2], tokens: &[u16]) -> Sample {
        let rows = tokens.len();
        Sample {
            idle: idle.to_vec(),
            tokens: tokens.to_vec(),
            real: Vec::new(),
            counts: vec![1; rows],
            bias: vec![0.0; rows + 1],
            cores: 1,
            past: None,
        }
    }

    #[test]
    fn equal_rows_have_the_same_features() {
        let samples = [sample([0, 8], &[5, 7, 5]), sample([0, 8], &[7, 7]), sample([1, 8], &[5])];
        let batch = Batch::of(&samples.iter().collect::<Vec<_>>());
        let distinct = DistinctRows::of(&batch).expect("four of nine rows are different");
        assert_eq!((distinct.idle_rows, distinct.rows), (2, 4));
        assert_eq!((distinct.idle, distinct.jobs), (vec![vec![0, 1], vec![8, 8]], vec![vec![5, 7]]));
        assert_eq!(distinct.of_rows, [0, 2, 3, 2, 0, 3, 3, 1, 2]);
    }

    #[test]
    fn rows_that_differ_are_left_alone() {
        let samples = [sample([0, 8], &[1, 2, 3]), sample([0, 7], &[4])];
        assert!(DistinctRows::of(&Batch::of(&samples.iter().collect::<Vec<_>>())).is_none());
    }
}
