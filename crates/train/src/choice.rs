//! The best rows for the cores; how likely a choice is says [`likelihood`].

pub use temponet_grad::{Likelihood, likelihood};

/// The best rows for so many cores, the best first: those whose number is at least the threshold.
pub fn best_rows(q: &[f32], counts: &[u32], cores: u32, threshold: f32) -> Vec<u32> {
    let mut rows: Vec<u32> = (1..q.len() as u32).filter(|row| q[*row as usize] >= threshold).collect();
    rows.sort_by(|a, b| q[*b as usize].total_cmp(&q[*a as usize]).then(a.cmp(b)));
    let mut chosen = Vec::new();
    for row in rows {
        let room = cores as usize - chosen.len();
        chosen.extend(std::iter::repeat_n(row, room.min(counts[row as usize - 1] as usize)));
        if chosen.len() == cores as usize {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rows_fill_the_cores() {
        let q = [0.0, 1.0, 3.0, -1.0];
        assert_eq!(best_rows(&q, &[2, 1, 5], 4, f32::NEG_INFINITY), [2, 1, 1, 3]);
        assert_eq!(best_rows(&q, &[2, 1, 5], 4, 0.0), [2, 1, 1]);
        assert_eq!(best_rows(&q, &[2, 1, 5], 1, 0.0), [2]);
    }
}
