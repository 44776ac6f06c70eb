//! Rows of a batch with the same features are embedded alike: what depends on nothing else is computed once for all of them.

use std::collections::HashMap;

use crate::sample::Batch;

/// The different rows of a batch, the idle ones first.
#[derive(Clone, Debug)]
pub struct DistinctRows {
    /// Each idle feature of the different idle rows.
    pub idle: Vec<Vec<u32>>,
    /// Each job feature of the different job rows.
    pub jobs: Vec<Vec<u32>>,
    /// Which one each row of the batch is.
    pub of_rows: Vec<u32>,
    /// How many idle ones there are.
    pub idle_rows: usize,
    /// How many there are in all.
    pub rows: usize,
}

/// Fewer than this share of the rows must be different for it to pay.
const SHARE: f64 = 0.7;

impl DistinctRows {
    /// The different rows of a batch, where that saves work: not if they have numbers of their own, nor if most are different.
    pub fn of(batch: &Batch) -> Option<DistinctRows> {
        if !batch.real.is_empty() {
            return None;
        }
        let (idle_firsts, idle_kinds) = kinds(&batch.idle, batch.idle_places.len())?;
        let (job_firsts, job_kinds) = kinds(&batch.jobs, batch.job_places.len())?;
        let rows = idle_firsts.len() + job_firsts.len();
        if rows as f64 > SHARE * batch.segments.rows() as f64 {
            return None;
        }
        let mut of_rows = vec![0; batch.segments.rows()];
        batch.idle_places.iter().zip(idle_kinds).for_each(|(row, kind)| of_rows[*row as usize] = kind);
        let jobs = batch.job_places.iter().zip(job_kinds);
        jobs.for_each(|(row, kind)| of_rows[*row as usize] = idle_firsts.len() as u32 + kind);
        let some = |features: &[Vec<u32>], places: &[usize]| -> Vec<Vec<u32>> {
            features.iter().map(|feature| places.iter().map(|place| feature[*place]).collect()).collect()
        };
        let (idle, jobs) = (some(&batch.idle, &idle_firsts), some(&batch.jobs, &job_firsts));
        Some(DistinctRows { idle, jobs, of_rows, idle_rows: idle_firsts.len(), rows })
    }
}

/// Where each kind first is, and the kind of each of so many rows. None if a row has more features than can be told apart here.
fn kinds(features: &[Vec<u32>], rows: usize) -> Option<(Vec<usize>, Vec<u32>)> {
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
        }
    }

    #[test]
    fn rows_of_a_kind_have_the_same_features() {
        let samples = [sample([0, 8], &[5, 7, 5]), sample([0, 8], &[7, 7]), sample([1, 8], &[5])];
        let batch = Batch::of(&samples.iter().collect::<Vec<_>>());
        let kinds = DistinctRows::of(&batch).expect("four of nine rows are different");
        assert_eq!((kinds.idle_rows, kinds.rows), (2, 4));
        assert_eq!((kinds.idle, kinds.jobs), (vec![vec![0, 1], vec![8, 8]], vec![vec![5, 7]]));
        assert_eq!(kinds.of_rows, [0, 2, 3, 2, 0, 3, 3, 1, 2]);
    }

    #[test]
    fn rows_that_differ_are_left_alone() {
        let samples = [sample([0, 8], &[1, 2, 3]), sample([0, 7], &[4])];
        assert!(DistinctRows::of(&Batch::of(&samples.iter().collect::<Vec<_>>())).is_none());
    }
}
