//! Choosing jobs for the cores one after the other, without putting any back: how likely a choice is, and its gradients. Jobs of one row are
//! equal, so a row of c jobs is c times as likely.

/// A choice's likelihood under some Q-values.
#[derive(Clone, Debug, Default)]
pub struct Likelihood {
    /// The logarithm of the choice's probability.
    pub log: f64,
    /// Its gradient with respect to each row's number; the idle row's is nought.
    pub gradient: Vec<f32>,
    /// Entropy of the first pick.
    pub entropy: f64,
    /// Its gradient.
    pub entropy_gradient: Vec<f32>,
}

/// The likelihood of picking `chosen` rows in this order. `q` has the idle row first, `counts` only the job rows.
pub fn likelihood(q: &[f32], counts: &[u32], chosen: &[u32]) -> Likelihood {
    let mut left: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
    let most = q[1..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = q[1..].iter().map(|q| f64::from(q - most).exp()).collect();
    let mut result =
        Likelihood { gradient: vec![0.0; q.len()], entropy_gradient: vec![0.0; q.len()], ..Likelihood::default() };
    for (turn, row) in chosen.iter().enumerate() {
        let total: f64 = left.iter().zip(&powers).map(|(left, power)| left * power).sum();
        let total = total.max(f64::MIN_POSITIVE);
        let share = |place: usize| left[place] * powers[place] / total;
        if turn == 0 {
            let mean: f64 = (0..left.len()).map(|place| share(place) * f64::from(q[place + 1] - most)).sum();
            result.entropy = total.ln() - mean;
            for place in 0..left.len() {
                result.entropy_gradient[place + 1] = (-share(place) * (f64::from(q[place + 1] - most) - mean)) as f32;
            }
        }
        let place = *row as usize - 1;
        result.log += f64::from(q[place + 1] - most) + left[place].max(1.0).ln() - total.ln();
        for other in 0..left.len() {
            result.gradient[other + 1] -= share(other) as f32;
        }
        result.gradient[place + 1] += 1.0;
        left[place] = (left[place] - 1.0).max(0.0);
    }
    result
}

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
    fn likelihoods_sum_to_one_and_gradients_are_right() {
        let (q, counts) = ([9.0, 0.3, -0.5, 1.2], [1, 2, 1]);
        let mut total = 0.0;
        for a in 1..=3u32 {
            for b in 1..=3u32 {
                if a != b || counts[a as usize - 1] > 1 {
                    total += likelihood(&q, &counts, &[a, b]).log.exp();
                }
            }
        }
        assert!((total - 1.0).abs() < 1e-6, "{total}");
        let at = |place: usize, step: f32| {
            let mut moved = q;
            moved[place] += step;
            let likelihood = likelihood(&moved, &counts, &[2, 3]);
            (likelihood.log, likelihood.entropy)
        };
        let found = likelihood(&q, &counts, &[2, 3]);
        for place in 0..4 {
            let (up, down) = (at(place, 1e-2), at(place, -1e-2));
            assert!(((up.0 - down.0) / 0.02 - f64::from(found.gradient[place])).abs() < 1e-3);
            assert!(((up.1 - down.1) / 0.02 - f64::from(found.entropy_gradient[place])).abs() < 1e-3);
        }
    }

    #[test]
    fn the_best_rows_fill_the_cores() {
        let q = [0.0, 1.0, 3.0, -1.0];
        assert_eq!(best_rows(&q, &[2, 1, 5], 4, f32::NEG_INFINITY), [2, 1, 1, 3]);
        assert_eq!(best_rows(&q, &[2, 1, 5], 4, 0.0), [2, 1, 1]);
        assert_eq!(best_rows(&q, &[2, 1, 5], 1, 0.0), [2]);
    }
}
